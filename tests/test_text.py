"""Words as numbers, and batches of a limited number of tokens."""

from dataclasses import replace

import pytest
import torch

from course_utils.bert import Bert
from course_utils.data.text import (
    BOS,
    EOS,
    PAD,
    UNK,
    TokenBatchSampler,
    Vocab,
    collate,
    encode_pairs,
    encode_sources,
    token_batches,
)
from course_utils.language_models import CausalLM, TransformerXL
from course_utils.seq2seq import Seq2Seq
from course_utils.transformer import Config, Transformer

SENTENCES = [sentence.split() for sentence in ("the cat saw the dog .", "the dog slept .")]


def random_lengths(n=500, longest=40, seed=0):
    """Lengths of n sentence pairs; both sides differ."""
    generator = torch.Generator().manual_seed(seed)
    return [tuple(pair) for pair in torch.randint(3, longest + 1, (n, 2), generator=generator).tolist()]


def numbered_examples(lengths):
    """Encoded pairs whose first source id says which pair it is."""
    return [(torch.tensor([100 + i] + [4] * (n - 2) + [EOS]), torch.tensor([BOS] + [4] * (m - 2) + [EOS]))
            for i, (n, m) in enumerate(lengths)]


def padded_tokens(batch, lengths):
    """Numbers in the larger of a batch's two tensors."""
    return len(batch) * max(max(lengths[i]) for i in batch)


# --- vocabulary ----------------------------------------------------------------------------------------------------

def test_the_most_frequent_words_come_first_and_ties_in_the_order_they_are_met():
    vocab = Vocab(SENTENCES)
    assert vocab.words == ["<pad>", "<bos>", "<eos>", "<unk>", "the", "dog", ".", "cat", "saw", "slept"]
    assert len(vocab) == 10
    assert vocab.encode(["the", "slept"]) == [4, 9]


def test_rare_words_are_left_out():
    assert Vocab(SENTENCES, min_count=2).words[4:] == ["the", "dog", "."]
    assert Vocab(SENTENCES, min_count=3).words[4:] == ["the"]


def test_unknown_words_become_one_symbol():
    vocab = Vocab(SENTENCES)
    assert vocab.encode(["the", "zebra", "slept"]) == [4, UNK, 9]
    assert vocab.decode([4, UNK, 9]) == ["the", "<unk>", "slept"]


def test_special_symbols_found_in_a_text_keep_their_one_number():
    vocab = Vocab([["<unk>", "the", "<unk>", "<eos>"]])
    assert vocab.words == ["<pad>", "<bos>", "<eos>", "<unk>", "the"]
    assert vocab.encode(["<unk>", "the"]) == [UNK, 4]


def test_a_sentence_comes_back_as_it_was():
    vocab = Vocab(SENTENCES)
    for sentence in SENTENCES:
        assert vocab.decode(vocab.encode(sentence)) == sentence
        assert vocab.decode(torch.tensor([BOS, *vocab.encode(sentence), EOS, PAD, PAD])) == sentence


def test_decoding_stops_at_the_end_symbol():
    vocab = Vocab(SENTENCES)
    assert vocab.decode([4, EOS, 9, 9]) == ["the"]
    assert vocab.decode([BOS, 4, PAD, 9]) == ["the", "slept"]
    assert vocab.decode([EOS, 4]) == []


@pytest.mark.parametrize("i", [-1, 10, 10_000])
def test_an_id_that_is_no_words_is_refused(i):
    with pytest.raises(IndexError, match=f"id {i} is not in this vocabulary; expected 0 to 9"):
        Vocab(SENTENCES).decode([4, i])


@pytest.mark.parametrize("i", [4.7, torch.tensor([4, 5])])
def test_what_is_no_id_is_refused(i):
    with pytest.raises(TypeError, match=r"id .* is not a whole number; expected one from 0 to 9. Of a batch, decode"):
        Vocab(SENTENCES).decode([4, i])


SMALL, GOOD = Config(d_model=8, n_heads=2, n_layers=1, d_ff=8), torch.full((2, 3), 4)


@pytest.mark.parametrize("wrong", [-1, 10])
@pytest.mark.parametrize("read", [
    lambda ids: Seq2Seq(10, 20, 8, 8)(ids, GOOD), lambda ids: Seq2Seq(20, 10, 8, 8)(GOOD, ids),
    lambda ids: Transformer(10, 20, SMALL)(ids, GOOD), lambda ids: Transformer(20, 10, SMALL)(GOOD, ids),
    lambda ids: Transformer(10, config=SMALL)(GOOD, ids), lambda ids: CausalLM(10, SMALL)(ids),
    lambda ids: TransformerXL(10, SMALL, 2)(ids), lambda ids: Bert(10, replace(SMALL, pre_norm=False))(ids, None),
    lambda ids: Bert(20, replace(SMALL, pre_norm=False), n_segments=10)(GOOD, None, ids),
])
def test_a_model_says_which_ids_it_has_no_vector_for(read, wrong):
    ids = GOOD.clone()
    read(ids)
    ids[1, 2] = wrong
    with pytest.raises(IndexError, match=rf"the ids \(2, 3\) go from {min(4, wrong)} to {max(4, wrong)}, but there are "
                                         r"vectors for 0 to 9. Encode with the vocabulary that the model was made for"):
        read(ids)


@pytest.mark.parametrize("call", [
    lambda vocab: Vocab(["the cat saw the dog ."]), lambda vocab: Vocab("the cat"),
    lambda vocab: vocab.encode("the cat"), lambda vocab: encode_pairs([("the cat", ["le"])], vocab, vocab),
    lambda vocab: encode_pairs([(["the"], "le chat")], vocab, vocab)])
def test_one_string_is_not_a_list_of_words(call):
    with pytest.raises(TypeError, match="given as one string, '.*expected a list of words, e.g. sentence.split"):
        call(Vocab(SENTENCES))


def test_pairs_are_not_sentences():
    with pytest.raises(TypeError, match=r"\('the', 'cat'\) was given as a word; .*Vocab\(pair\[0\] for"):
        Vocab([(("the", "cat"), ("le", "chat"))])


# --- batches -------------------------------------------------------------------------------------------------------

def test_a_batch_ends_sources_starts_and_ends_targets_and_pads_both():
    vocab = Vocab([["a", "b"]])
    examples = encode_pairs([(["a", "b"], ["b"], "a third field"), (["a"], ["b", "a"])], vocab, vocab)
    batch = collate(examples)
    assert batch.source.tolist() == [[4, 5, EOS], [4, EOS, PAD]]
    assert batch.target.tolist() == [[BOS, 5, EOS, PAD], [BOS, 5, 4, EOS]]
    assert batch.source.dtype == batch.target.dtype == torch.int64


def test_sentences_to_translate_end_in_eos_and_are_padded():
    vocab = Vocab(SENTENCES)
    ids = encode_sources([["dog"], ["the", "cat"]], vocab)
    assert ids.tolist() == [[*vocab.encode(["dog"]), EOS, PAD], [*vocab.encode(["the", "cat"]), EOS]]
    with pytest.raises(ValueError, match="no examples"):
        encode_sources([], vocab)


def test_each_side_has_its_own_vocabulary():
    english, french = Vocab([["cat"]]), Vocab([["le", "chat", "le"]])
    (source, target), = encode_pairs([(["cat"], ["le", "chat"])], english, french)
    assert source.tolist() == [4, EOS]
    assert target.tolist() == [BOS, 4, 5, EOS]


def test_no_examples_are_no_batch():
    with pytest.raises(ValueError, match="collate was given no examples"):
        collate([])


def test_every_example_exactly_once_an_epoch():
    lengths = random_lengths()
    sampler = TokenBatchSampler(lengths, 200)
    for _ in range(3):
        assert sorted(i for batch in sampler for i in batch) == list(range(len(lengths)))


@pytest.mark.parametrize("tokens", [40, 200, 2500])
def test_no_batch_is_larger_than_the_limit(tokens):
    """Both sides count, padding included; 40 is the length of the longest sentence."""
    lengths = random_lengths()
    batches = list(TokenBatchSampler(lengths, tokens))
    assert max(padded_tokens(batch, lengths) for batch in batches) <= tokens
    for batch in token_batches(numbered_examples(lengths), tokens):
        assert max(batch.source.numel(), batch.target.numel()) <= tokens


@pytest.mark.parametrize("side", [0, 1])
def test_the_longer_side_decides(side):
    """Ten pairs of 4 and 20 tokens: five fit in 100, whichever side is the long one."""
    lengths = [(20, 4) if side == 0 else (4, 20)] * 10
    assert [len(batch) for batch in TokenBatchSampler(lengths, 100)] == [5, 5]


def test_batches_are_as_full_as_the_limit_allows():
    assert [len(batch) for batch in TokenBatchSampler([(10, 10)] * 25, 100)].count(10) == 2


def test_similar_lengths_go_together():
    """Of the padded source tokens, less than 5 % are padding; in batches of random sentences it is about 40 %."""
    lengths = [(n, n) for n, _ in random_lengths(2000)]
    batches = list(TokenBatchSampler(lengths, 400))
    padded = sum(padded_tokens(batch, lengths) for batch in batches)
    assert 1 - sum(n for n, _ in lengths) / padded < 0.05


def test_most_batches_hold_sentences_of_one_length():
    """Such a batch needs no packing, and an unpacked LSTM trains about three times as fast on a CPU."""
    lengths = random_lengths(20_000)
    batches = list(TokenBatchSampler(lengths, 400))
    uniform = [len({lengths[i][0] for i in batch}) == 1 for batch in batches]
    assert sum(uniform) > 0.85 * len(batches)


def test_batches_do_not_come_sorted_by_length():
    lengths = random_lengths(2000)
    widths = [max(lengths[i][0] for i in batch) for batch in TokenBatchSampler(lengths, 400)]
    longer = sum(b > a for a, b in zip(widths, widths[1:], strict=False)) / (len(widths) - 1)
    assert 0.3 < longer < 0.7


def test_every_epoch_has_its_own_order_and_its_own_batches():
    sampler = TokenBatchSampler(random_lengths(), 200)
    first, second = list(sampler), list(sampler)
    assert first != second
    assert {frozenset(batch) for batch in first} != {frozenset(batch) for batch in second}


def test_every_epoch_has_as_many_batches_as_are_promised():
    sampler = TokenBatchSampler(random_lengths(), 200)
    assert [len(list(sampler)) for _ in range(3)] == [len(sampler)] * 3
    assert len(token_batches([(torch.ones(5), torch.ones(5))] * 25, tokens=50)) == 3
    assert len(TokenBatchSampler([], 200)) == 0


def test_the_seed_decides_the_order_of_every_epoch():
    def epochs(seed):
        torch.rand(seed + 1)                       # the global generator plays no part
        sampler = TokenBatchSampler(random_lengths(), 200, seed=seed)
        return [list(sampler) for _ in range(3)]

    assert epochs(5) == epochs(5)
    assert epochs(5) != epochs(6)
    assert epochs(5)[1] != epochs(6)[0]         # one seed's second epoch is not the next one's first


def test_the_loader_reshuffles_and_loses_nothing():
    lengths = random_lengths(100)
    loader = token_batches(numbered_examples(lengths), 200, seed=3)
    epochs = [[i for batch in loader for i in batch.source[:, 0].tolist()] for _ in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(100, 200))
    assert epochs[0] != epochs[1]
    again = token_batches(numbered_examples(lengths), 200, seed=3)
    assert [i for batch in again for i in batch.source[:, 0].tolist()] == epochs[0]


@pytest.mark.parametrize("pair", [(31, 5), (5, 31)])
def test_a_sentence_longer_than_the_limit_is_refused_at_once(pair):
    with pytest.raises(ValueError, match="tokens=30, but the longest sentence has 31; give at least that many"):
        token_batches(numbered_examples([(5, 5), pair]), 30)


def test_no_examples_are_refused_at_once():
    with pytest.raises(ValueError, match="no examples; it needs at least one encoded pair"):
        token_batches([])


@pytest.mark.parametrize("example", [(["a"], ["b"]), (["a"], ["b"], ()), "a"])
def test_words_instead_of_ids_are_refused_at_once(example):
    ids = torch.tensor([4, EOS])
    with pytest.raises(TypeError, match=r"example 1 is .*'a'.*; expected two tensors of ids.*encode_pairs\(pairs, "):
        token_batches([(ids, ids), example])
