"""WordPiece: cuts as the tokenizers library, leaves no word unknown, learns a vocabulary of the size asked for."""

import math
import random
from collections import Counter
from itertools import pairwise

import pytest
import torch
from tokenizers.implementations import BertWordPieceTokenizer

from course_utils import bert
from course_utils.data.grammar import train_test
from course_utils.data.wordpiece import MAX_LETTERS, SPECIALS, WordPiece, join, split_words, train

TEXTS = (
    "Attention is all you need.|The animal didn't cross the street because it was too tired!|em-bed-dings|"
    "Café crème, naïve façade — déjà vu; Ångström, İstanbul, ﬁnancé|ΟΔΥΣΣΕΥΣ ὁδός|Straße, GROẞ|Привет, мир!|"
    "नमस्ते दुनिया|สวัสดีชาวโลก|機械学習は楽しい。|中文和English混合text123|한국어 문장입니다|𠀀𠀁 rare 𪛖|價格豈|"
    "👍🏽 emoji 🎉🎉!! ❤️ 👨\u200d👩\u200d👧 :-) ¯\\_(ツ)_/¯|x²+y²=z² → ∞ ≠ √2|$9.99, 50% off & #hashtag @user|"
    "http://a.b/c?d=e&f=%20|<script>alert('x')</script>|[MASK] is a [SEP] token[CLS]inside [UNK]|[PAD]|"
    "[mask] [PADDING] [[MASK]]|\"quoted\" 'single' ‘curly’ «guillemets»|non\u00a0breaking\u2003em\u3000wide|"
    "zero\u200bwidth\u200djoiner\ufeffbom|soft\u00adhyphen|tabs\tand\r\nlines\nend|null\x00 bell\x07 \x0b \x1c \x85|"
    "a|.|!?…|##ing ##s #|un##able|1234567890 3.14159 1,000,000|ﾊﾝｶｸ ｆｕｌｌ Ｗｉｄｔｈ|e\u0301 and \u0301alone|"
    "A\u030a \u1e69\u0323|Ǆ ǅ ǆ ŉ|\u2028line\u2029par|the-the_the.the|unbelievableness electroencephalographically|"
    "floccinaucinihilipilification|aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)
LETTERS = "aabcdeéèïnorstuzAÉZ  ..,-'’#[]0149?!\t\n\u00a0\u0301\u200d\ufe0f_@中文日本字🙂🎉ßſΣσςжЯअाก한가각ｗ½²"


def texts() -> list[str]:
    """Hand-picked ones, around the longest word that is cut, and 600 of random letters."""
    rng = random.Random(0)
    words = ["transformers", "embedding", "naïve", "Zürich", "[MASK]", "playing", "中", "don't", "ngrams", "🙂"]
    long = [letter * n for letter in "aé中." for n in (MAX_LETTERS - 1, MAX_LETTERS, MAX_LETTERS + 1, 1000)]
    noise = ["".join(rng.choices(LETTERS, k=rng.randint(1, 40))) for _ in range(400)]
    mixed = [rng.choice(["", " ", "-"]).join(rng.choices(words, k=rng.randint(1, 8))) for _ in range(200)]
    return ["", " ", "\n", *TEXTS.split("|"), *long, *noise, *mixed]


@pytest.fixture(scope="module")
def vocab():
    return WordPiece.read(find_or_skip() / "vocab.txt").vocab


def find_or_skip():
    try:
        return bert.find("all-MiniLM-L6-v2")
    except ModuleNotFoundError as missing:
        pytest.skip(str(missing))


def library(vocab, lowercase=True):
    """Hugging Face's tokenizer on the same vocabulary."""
    return BertWordPieceTokenizer({piece: i for i, piece in enumerate(vocab)}, lowercase=lowercase)


def trained(size=120, **options):
    return train(["low low low lower lowest", "new newer newest", "wide wider widest"], size, **options)


# --- encode --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("lowercase", [True, False])
def test_pieces_are_those_of_the_tokenizers_library(vocab, lowercase):
    ours, theirs = WordPiece(vocab, lowercase), library(vocab, lowercase)
    assert len(texts()) > 600
    for text in texts():
        expected = theirs.encode(text)
        assert ["[CLS]", *ours.tokenize(text), "[SEP]"] == expected.tokens, repr(text)
        assert ours.encode(text, max_len=2000) == (expected.ids, expected.type_ids), repr(text)


def test_pairs_are_those_of_the_tokenizers_library(vocab):
    ours, theirs, rest = WordPiece(vocab), library(vocab), texts()[::-1]
    for text, second in zip(texts()[:200], rest, strict=False):
        expected = theirs.encode(text, second)
        assert ours.encode(text, second, max_len=4000) == (expected.ids, expected.type_ids), repr((text, second))


def test_the_librarys_words_are_cut_alike_on_a_vocabulary_trained_here():
    ours = trained(60)
    theirs = library(ours.vocab)
    for text in ["lowest newest", "wonder", "low-newest", "Löwest", "unknown letters: xyz", "w", "llllll"]:
        assert ours.tokenize(text) == theirs.encode(text, add_special_tokens=False).tokens


def test_words_by_hand():
    assert split_words("Don't  stop, Zoë!\tA中b") == ["don", "'", "t", "stop", ",", "zoe", "!", "a", "中", "b"]
    assert split_words("Zoë", lowercase=False) == ["Zoë"]
    assert split_words("") == []


def test_a_lone_surrogate_is_cut_too(vocab):                     # the library cannot be given one
    assert WordPiece(vocab).tokenize("a\ud800 b")[-1] == "b"


def test_the_longest_piece_wins_and_a_rest_that_is_no_piece_makes_the_word_unknown():
    tokenizer = WordPiece([*SPECIALS, "a", "ab", "##b", "##c", "##bc"])
    assert tokenizer.cut("abc") == ["ab", "##c"]                 # not a ##bc
    assert tokenizer.cut("abx") == ["[UNK]"]
    assert tokenizer.cut("") == ["[UNK]"]
    assert tokenizer.tokenize("abc [MASK]abx") == ["ab", "##c", "[MASK]", "[UNK]"]


def test_what_is_too_long_loses_its_end_from_the_longer_text():
    tokenizer = trained()
    ids, segments = tokenizer.encode("low " * 10, "new wide", max_len=8)
    assert tokenizer.decode(ids) == "low low low new wide"
    assert segments == [0] * 5 + [1] * 3
    ids, _ = tokenizer.encode("low low low", "new new new", max_len=8)                  # alike: the second, as in BERT
    assert tokenizer.decode(ids) == "low low low new new"
    assert len(tokenizer.encode("low " * 600)[0]) == 512
    with pytest.raises(ValueError, match=r"max_len=2 leaves no room .* at least 3"):
        tokenizer.encode("low", "new", max_len=2)


def test_a_batch_is_padded_and_says_where():
    tokenizer = trained()
    batch = tokenizer.batch(["low", "wide"], ["newest new", "low"])
    (a, a_segments), (b, b_segments) = tokenizer.encode("low", "newest new"), tokenizer.encode("wide", "low")
    n = len(b)
    assert len(a) > n
    assert torch.equal(batch.ids, torch.tensor([a, [*b, *[0] * (len(a) - n)]]))
    assert torch.equal(batch.mask, torch.tensor([[True] * len(a), [True] * n + [False] * (len(a) - n)]))
    assert torch.equal(batch.segments, torch.tensor([a_segments, [*b_segments, *[0] * (len(a) - n)]]))
    assert tokenizer.batch(["low"]).segments.unique().tolist() == [0]


@pytest.mark.parametrize("wrong", ["a text", []])
def test_a_batch_wants_a_list(wrong):
    with pytest.raises(ValueError, match="expected a list of at least one text"):
        trained().batch(wrong)


@pytest.mark.parametrize("seconds", [["c"], "xy", ["c", "d", "e"]])
def test_pairs_must_be_complete(seconds):
    with pytest.raises(ValueError, match="2 texts, and as second texts .*; expected a list of as many"):
        trained().batch(["a", "b"], seconds)


def test_an_id_that_is_no_pieces_is_refused():
    with pytest.raises(IndexError, match="id -1 is not in this vocabulary; expected 0 to 4"):
        WordPiece(SPECIALS).decode([-1])


def test_one_string_is_not_a_list_of_texts():
    with pytest.raises(TypeError, match="texts is one string, 'a text'; expected a list of texts"):
        train("a text", 100)


def test_decode_joins_pieces():
    tokenizer = trained(30)
    ids, _ = tokenizer.encode("Lowest wider!", "new")
    assert any(piece.startswith("##") for piece in tokenizer.tokenize("lowest"))
    assert tokenizer.decode(ids) == "lowest wider new"                  # "!" was not learned
    assert tokenizer.decode(torch.tensor(ids)) == "lowest wider new"


@pytest.mark.parametrize(("vocab", "what"), [
    (["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"], r"lacks \[MASK\]"),
    ([*SPECIALS, "a", "a"], "a piece twice"),
])
def test_a_vocabulary_with_a_fault_is_refused(vocab, what):
    with pytest.raises(ValueError, match=what):
        WordPiece(vocab)


# --- train ---------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def sentences():
    return [" ".join(pair.source) for pair in train_test(2000, 10)[0]]


@pytest.mark.parametrize("size", [80, 300])
def test_training_reaches_its_size_and_knows_every_word(sentences, size):
    tokenizer = train(sentences, size)
    assert len(tokenizer) == len(set(tokenizer.vocab)) == size
    assert tokenizer.vocab[:5] == list(SPECIALS)
    words = {word for sentence in sentences for word in split_words(sentence)}
    letters = "".join(sorted(set("".join(words))))
    invented = ["".join(random.Random(i).choices(letters, k=i % 20 + 1)) for i in range(200)]
    for word in [*words, *invented, letters[::-1]]:
        pieces = tokenizer.cut(word)
        assert "[UNK]" not in pieces
        assert "".join(piece.removeprefix("##") for piece in pieces) == word


def test_more_pieces_make_shorter_texts(sentences):
    tokenizers = [train(sentences, size) for size in (70, 150, 300)]
    lengths = [sum(len(tokenizer.tokenize(text)) for text in sentences[:200]) for tokenizer in tokenizers]
    assert lengths[0] > lengths[1] > lengths[2]


def test_the_first_pair_is_the_one_with_the_largest_gain():
    # by hand: a 4 times, ##b 4, c 2, ##d 2, N = 12; ab: 4 log(12 * 4 / 16) = 4.39, cd: 2 log(12 * 2 / 4) = 3.58
    assert train(["ab ab ab ab cd cd"], 14).vocab[-1] == "ab"
    # x is followed by y 6 times, but both have other company; q and z, 4 times, have none. BPE would take xy.
    # N = 56; xy: 6 log(56 * 6 / 18 / 18) = 0.22, qz: 4 log(56 * 4 / 4 / 4) = 10.6
    text = "xy " * 6 + "x " * 12 + "ay by cy dy " * 3 + "qz " * 4
    assert train([text], 5 + 2 * 8 + 1).vocab[-1] == "qz"


def test_pieces_run_out_and_the_vocabulary_stays_smaller():
    tokenizer = trained(1000)
    assert len(tokenizer) < 100
    assert tokenizer.tokenize("lowest newer") == ["lowest", "newer"]


def test_training_is_the_same_in_every_order(sentences):
    assert train(sentences, 150).vocab == train(sentences[::-1], 150).vocab


def test_capitals_and_accents_stay_if_asked():
    assert "É" in train(["Été"], 20, lowercase=False).vocab
    assert {"e", "##e", "t"} <= set(train(["Été"], 20).vocab)


def test_a_size_without_room_for_the_letters_is_refused():
    with pytest.raises(ValueError, match=r"size=10, .* 3 letters, .* are 11 already"):
        train(["abc"], 10)


def test_join():
    assert join(("t", "##h", "##e"), ("t", "##h")) == ("th", "##e")
    assert join(("a", "##a", "##a", "##a"), ("##a", "##a")) == ("a", "##aa", "##a")
    assert join(("a",), ("a", "##b")) == ("a",)


def test_every_join_is_the_best_one_when_all_is_counted_anew():
    sentences = [" ".join(pair.source) for pair in train_test(300, 7, seed=0)[0]]
    counts = Counter(word for sentence in sentences for word in split_words(sentence))
    cut = {word: (word[0], *("##" + letter for letter in word[1:])) for word in counts}
    joins = []
    while len(joins) < 60:
        single, pairs = Counter(), Counter()
        for word, n in counts.items():
            for piece in cut[word]:
                single[piece] += n
            for pair in pairwise(cut[word]):
                pairs[pair] += n
        total = single.total()
        gain = {(a, b): n * math.log(total * n / (single[a] * single[b])) for (a, b), n in pairs.items()}
        best = max(gain, key=lambda pair: (gain[pair], pair))
        cut = {word: join(pieces, best) for word, pieces in cut.items()}
        joined = best[0] + best[1].removeprefix("##")
        joins += [joined] if joined not in joins else []
    trained = train(sentences, len(SPECIALS) + 2 * len(set("".join(counts))) + 60)
    assert trained.vocab[-60:] == joins
