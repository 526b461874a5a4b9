"""Lesson 05, BERT: the exercises and the ways in which they go wrong."""

import math
import string
from collections import Counter
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import bert
from ..pretraining import LITTLE, Classifier, mask_tokens
from .compared import close
from .counted import Counted
from .engine import Exercise, attempt, each
from .inputs import maker, number, randn, sizes
from .lesson_04 import Function, layer_inputs
from .symbolic import Layer
from .trained import Trained


def _pick(rng: torch.Generator, items, n: int) -> list:
    """`n` different ones, in random order."""
    return [items[i] for i in torch.randperm(len(items), generator=rng)[:n].tolist()]


def pair_input(a, b):
    """The pieces of two texts to [CLS] a [SEP] b [SEP] and their segments (Devlin et al. 2019, section 3)."""
    first, second = ["[CLS]", *a, "[SEP]"], [*b, "[SEP]"]
    return first + second, [0] * len(first) + [1] * len(second)


PIECES = ("a", "soft", "look", "##up", "in", "small", "dictionary", "of", "vector", "##s", "it", "learn", "##ed")


@maker
def _pair_inputs(rng, change=lambda a, b: (a, b)):
    """Two texts of different lengths without a common piece, and then a change."""
    n, m = sizes(rng, 2)
    drawn = _pick(rng, PIECES, n + m)
    return change(drawn[:n], drawn[n:])


SEGMENTS = "[0] * len(first) + [1] * len(second)"

PAIR_INPUT = Exercise(pair_input, {"pieces": "", "segments": ""}, {
    "on ordinary inputs": _pair_inputs(),
    "when a piece stands in both texts": _pair_inputs(lambda a, b: (a, a[:1] + b[1:])),
    "when the second text is empty": _pair_inputs(lambda a, b: (a, [])),
    "when the texts are long": _pair_inputs(lambda a, b: (50 * a, 50 * b)),
    "when a piece of the first text is itself [SEP]": _pair_inputs(lambda a, b: ([a[0], "[SEP]", *a[1:]], b)),
}, (
    ("The second [SEP] is missing. Each of the two texts ends with one.", '[*b, "[SEP]"]', "[*b]"),
    ("The first [SEP] is missing: nothing stands between the two texts.", '*a, "[SEP]"', "*a"),
    ("[CLS] is missing: it stands in front of all, the place from which the whole input is judged.", '"[CLS]", ', ""),
    ("There is a second [CLS], in front of text b. One is enough: a single [SEP] stands between the texts.",
     "[*b", '["[CLS]", *b'),
    ("The second [SEP] is in segment 0. It ends text b and belongs to it: 1.", "len(second)", "len(b) + [0]"),
    ("The first [SEP] is in segment 1. It ends text a and belongs to it: 0.",
     SEGMENTS, "[0] * len(first[1:]) + [1] * (len(second) + 1)"),
    ("The special pieces have no segment. Each place has one: [CLS] and the first [SEP] 0, the second [SEP] 1.",
     SEGMENTS, "[0] * len(a) + [1] * len(b)"),
), reasons=dict.fromkeys(("when a piece stands in both texts", "when a piece of the first text is itself [SEP]"), (
    "The segment is looked up by the piece, and a piece may stand at several places. Count the places: 0 for "
    "[CLS], a and its [SEP], 1 for b and its [SEP].")))


def split_word(word, vocab):
    """A word to the pieces of a vocabulary, the longest first (Wu et al. 2016, section 4.1)."""
    pieces, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):             # the longest first
            piece = ("##" if start else "") + word[start:end]
            if piece in vocab:
                break
        else:                                               # none fits
            return ["[UNK]"]
        pieces.append(piece)
        start = end
    return pieces


class EndlessLoopError(RuntimeError):
    """An answer asks the vocabulary again and again."""


class _Vocab(set):
    """A set that stops a loop without end: a word of ten letters needs 55 look-ups at most."""

    asked = 0

    def __contains__(self, piece) -> bool:
        self._count(1)
        return super().__contains__(piece)

    def __iter__(self):
        self._count(len(self))
        return super().__iter__()

    def _count(self, look_ups: int):
        self.asked += look_ups
        if self.asked > 20_000:
            raise EndlessLoopError("after 20,000 look-ups in vocab there is still no end. Does each round of the loop "
                                   "cut something off the word, and does it stop when no piece fits?")


@maker
def _words(rng, change=lambda word, vocab: (word, vocab)):
    """A word of six to nine letters, the first only once, so that nothing inside looks like the
    beginning; its letters and some longer pieces, and some that may stand elsewhere only; and then a change.
    """
    word = "e" + "".join("abcd"[number(rng, 0, 4)] for _ in range(number(rng, 5, 9)))
    i = number(rng, 2, 4)
    inside = {"##" + piece for piece in (*word, word[i:i + 2], word[-2:], word[i - 1:i + 1])}
    word, vocab = change(word, inside | {word[0], word[:i], word[i:i + 3], word[-3:]})
    return word, _Vocab(vocab)


LONGEST = "Take the longest piece that fits: begin with the whole rest, and make it shorter letter by letter."
MARKED = "Inside a word a piece is written with ##, in the vocabulary and in the result."
ALL_OR_NOTHING = 'If a rest begins with no known piece, the whole word is ["[UNK]"].'
MARK, NONE_FITS = '("##" if start else "")', 'return ["[UNK]"]'

SPLIT_WORD = Exercise(split_word, {"pieces": ""}, {
    "on ordinary inputs": _words(),
    "when the whole word is a piece": _words(lambda w, vocab: (w, vocab | {w})),
    "in capital letters": _words(lambda w, vocab: (w.upper(), vocab | {piece.upper() for piece in vocab})),
    "when a letter of the word is known only where a word begins": _words(
        lambda w, vocab: (w[:4] + "f" + w[4:], vocab | {"f"})),
    "when the first letter of the word is known only inside words": _words(
        lambda w, vocab: (w, {piece for piece in vocab if piece[0] != "e"})),
    "when the longest first piece leads nowhere": _words(
        lambda w, vocab: (w[:3] + "f" + w[3:], {"e", w[:2], w[:3], f"##{w[2]}f{w[3:]}", "##" + w[3:], "##" + w[-1]})),
    "when a shorter first piece would make fewer pieces": _words(
        lambda w, vocab: (w, vocab | {w[:2], w[:3], "##" + w[2:]})),
    "with long pieces": _words(lambda w, vocab: (10 * w, vocab | {2 * w, "##" + 4 * w})),
    "with a word of one letter": lambda rng: ("e", _Vocab({"a", "e", "##a", "##e"})),
}, (
    (f"The shortest piece is taken. {LONGEST}", "range(len(word), start, -1)", "range(start + 1, len(word) + 1)"),
    ("Every word that is no piece itself is [UNK]. Either it is not cut at all, or its last letter is never reached: "
     f"the end of a slice is not part of it, so the first end to try is len(word). {LONGEST}",
     "range(len(word)", "range(len(word) - 1"),
    (f"## is missing in the result. {MARKED}", "append(piece)", "append(word[start:end])"),
    *each(f"The rest is looked up without ##. {MARKED}", (f"{MARK} + ", ""), ("if piece in", "if word[start:end] in")),
    ("The first piece is looked up with ##, too. ## stands only inside a word.", MARK, '"##"'),
    ("The word is cut from its end. WordPiece begins at the beginning.", "start = [], 0", "end = [], len(word)",
     "while start < len(word)", "while end", "end in range(len(word), start, -1)", "start in range(end)",
     "append(", "insert(0, ", "start = end\n", "end = start\n"),
    (f"[UNK] stands for the rest only. {ALL_OR_NOTHING}", NONE_FITS, 'return [*pieces, "[UNK]"]'),
    (f"[UNK] stands for one letter, and the cutting goes on behind it. {ALL_OR_NOTHING}",
     NONE_FITS, 'piece, end = "[UNK]", start + 1'),
    (f"The rest that is not known is left out. {ALL_OR_NOTHING}", NONE_FITS, "return pieces"),
    ("replace() takes the piece out at every place of the word. Cut it off the beginning: word[len(piece):].",
     "start = end\n", 'word, start = word[:end] + word[end:].replace(word[start:end], ""), end\n'),
), reasons=dict.fromkeys((
    "when the longest first piece leads nowhere", "when a shorter first piece would make fewer pieces"), (
    "The word was cut in another way when the longest piece led nowhere. WordPiece is greedy: it takes the longest "
    "piece and never goes back. That is fast, and sometimes not the best cut.")))


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _masking_inputs(rng, share=0.15):
    """Texts of pieces from the lower half of the vocabulary; [CLS] and [SEP] around, padding."""
    B, T, V = 64, 96, 400
    ids = torch.randint(5, V // 2, (B, T), generator=rng)
    ends = torch.randint(T // 2, T, (B, 1), generator=rng)
    place = torch.arange(T)
    ids = ids.masked_fill(place == 0, 2).masked_fill(place == ends, 3).masked_fill(place > ends, 0)
    return ids, ids > 4, 4, V, _seeded(100 + number(rng, 0, 900)), share


def _masking_counts(function, arguments, result) -> dict[tuple[str, float], Tensor]:
    ids, can_mask, mask_id, vocab_size, generator, share = arguments
    inputs, targets = result
    asked = targets != -100
    masked, changed = asked & (inputs == mask_id), asked & (inputs != ids) & (inputs != mask_id)
    random = inputs[changed]
    below, beside = asked[:-1] & can_mask[1:], asked[:, :-1] & can_mask[:, 1:]

    def alike(inputs: Tensor, changed: Tensor) -> Tensor:
        return (inputs[changed].diff() == 0)[changed.nonzero()[:, 0].diff() == 0]

    def same(seed: int) -> Tensor:
        return torch.tensor([close(attempt(function, (*arguments[:4], _seeded(seed), share))[0], result)])

    return {
        ("of the places that can be masked, {} are asked (their target is not -100)", share): asked[can_mask],
        ("of the special pieces and the padding, {} are asked (their target is not -100)", 0): asked[~can_mask],
        ("of the asked places, {} have the original id as their target", 1): (targets == ids)[asked],
        ("of the places that are not asked, {} have another id in inputs than before", 0): (inputs != ids)[~asked],
        ("of the asked places, {} are [MASK] in inputs", 0.8): masked[asked],
        ("of the asked places, {} are as they were", 0.1): (inputs == ids)[asked],
        ("of the random ids, {} are of the upper half of the vocabulary", 0.5): random >= vocab_size // 2,
        ("of the random ids, {} are odd", 0.5): random % 2 == 1,
        ("of two random ids in one text, {} are the same", 1 / vocab_size): alike(inputs, changed),
        ("of two random ids in one column, {} are the same", 1 / vocab_size): alike(inputs.T, changed.T),
        ("in {} of the batches a random id is not in the vocabulary (0 to vocab_size - 1)", 0): torch.tensor(
            [bool(((random < 0) | (random >= vocab_size)).any())]),
        ("below an asked place, in the next text, {} are asked", share): asked[1:][below],
        ("beside an asked place, {} are asked", share): asked[:, 1:][beside],
        ("below a [MASK], in the next text, {} of the asked places are [MASK]", 0.8): masked[1:][
            masked[:-1] & asked[1:]],
        ("beside a [MASK], {} of the asked places are [MASK]", 0.8): masked[:, 1:][masked[:, :-1] & asked[:, 1:]],
        ("called with a generator of the same seed, it gives the same in {} of cases", 1): same(
            generator.initial_seed()),
        ("called with a generator of another seed, it gives the same in {} of cases", 0): same(
            generator.initial_seed() + 1),
    }



MASK_TOKENS = Counted(mask_tokens, {"inputs": "B, T", "targets": "B, T"}, {
    "on ordinary inputs": _masking_inputs,
    "with another share (0.4)": lambda rng: _masking_inputs(rng, 0.4),
}, (
    ("Every asked place becomes [MASK]. Either two of the three branches are missing, or one random number decides "
     "twice: what is below 0.15 is below 0.8, too. Draw two.", "lot < 0.8", "lot < 1", "lot >= 0.9", "lot > 1"),
    ("The targets are the new ids. The model has to say what stood there *before*.", "(asked, ids,", "(asked, inputs,"),
    *each("Targets come from what stands in inputs. All chosen places are asked: the 20 % without [MASK], and the 10 "
          "% that stay as they were, too.", ("(asked, ids,", "(inputs == mask_id, ids,"),
          ("(asked, ids,", "(inputs != ids, ids,")),
    ("The random ids are written over the [MASK], or a part of them. Choose among the asked places that have not "
     "become [MASK]; of those it is one half.", "lot >= 0.9", "lot < 0.9"),
    ("Of the fifth that is left after [MASK], a tenth gets a random id: that is 2 %. Half of it does, 10 % of the "
     "asked, and the other half stays.", "lot >= 0.9", "lot >= 0.98"),
    ("One draw serves all places, or a whole text, or a column of all texts. Draw for each place: its size is "
     "ids.shape.", "lot = torch.rand(ids.shape,", "lot = torch.rand(ids.shape[1],"),
    ("inputs and targets are swapped: return inputs, targets.",
     "return inputs, torch.where(asked, ids, -100)", "return torch.where(asked, ids, -100), inputs"),
    ("A draw does not use the generator: two calls with the same seed differ. Give it to each draw: "
     "generator=generator.", "lot = torch.rand(ids.shape, generator=generator)", "lot = torch.rand(ids.shape)"),
    ("can_mask is not used. Special pieces and padding are not asked: & can_mask.", "share) & can_mask", "share)"),
    ("Each place is asked, since the targets are all ids. Where nothing is asked, it is -100: the loss skips it.",
     "torch.where(asked, ids, -100)", "ids.clone()"),
), counts=_masking_counts)


def mean_pool(states, mask):
    """States ``(B, T, d)`` to each text's mean ``(B, d)`` without the padding (Reimers and Gurevych 2019)."""
    total = (states * mask.unsqueeze(-1)).sum(dim=1)                    # (B, d)
    return total / mask.sum(dim=1, keepdim=True).clamp(min=1)           # (B, 1)


@maker
def _pool_inputs(rng, change=lambda states, mask: (states, mask)):
    """Every text has two pieces or more, and padding; and then a change."""
    B, T, d = sizes(rng, 3)
    mask = torch.arange(T + 6) < torch.randint(2, T + 6, (B, 1), generator=rng)
    return change(randn(rng, B, T + 6, d) + 1, mask)


PADDING_IN_THE_SUM = ("Padding is added up, too: it has states like all others. Make them zero: "
                      "states * mask.unsqueeze(-1).")
COUNT_PIECES = "Count the text's own pieces: mask.sum(dim=1, keepdim=True)."
N_PIECES = "mask.sum(dim=1, keepdim=True).clamp(min=1)"

MEAN_POOL = Exercise(mean_pool, {"pooled": "B, d"}, {
    "on ordinary inputs": _pool_inputs(),
    "when the padding stands in front": _pool_inputs(lambda states, mask: (states, mask.flip(1))),
    "when numbers of the states are 0": _pool_inputs(lambda states, mask: (states.relu(), mask)),
    "with one text (B = 1)": _pool_inputs(lambda states, mask: (states[:1], mask[:1])),
    "when a text has no pieces": _pool_inputs(
        lambda states, mask: (states, mask & (torch.arange(len(mask)) > 0).unsqueeze(1))),
}, (
    (f"This is the mean over all places. {PADDING_IN_THE_SUM} {COUNT_PIECES}", f"total / {N_PIECES}", "states.mean(1)"),
    (PADDING_IN_THE_SUM, "states * mask.unsqueeze(-1)", "states"),
    ("The numbers of pieces are (B,), the sums (B, d): keep the axis with mask.sum(dim=1, keepdim=True).",
     "dim=1, keepdim=True", "dim=1"),
    (f"The sum is divided by T, padding included. {COUNT_PIECES}", N_PIECES, "mask.size(1)"),
    (f"All sums are divided by the same number, that of the longest text or of all. {COUNT_PIECES}",
     N_PIECES, "mask.sum()"),
    ("This is the sum. Divide by the number of pieces.", f" / {N_PIECES}", ""),
    ("This is the first state, that of [CLS]. Take the mean of all pieces.", f"total / {N_PIECES}", "states[:, 0]"),
    ("The mask is inverted: this is the mean of the padding. True means that there is a piece.",
     "    total", "    mask = ~mask\n    total"),
    ("states[mask] puts the pieces of all texts into one list. Keep the batch: states * mask.unsqueeze(-1).",
     f"total / {N_PIECES}", "states[mask].mean(0)"),
    ("(B, T, d) times (B, T) do not line up. Give the mask an axis for the features: mask.unsqueeze(-1).",
     "mask.unsqueeze(-1)", "mask"),
    ("The pieces are taken from the left, as many as there are. Padding may stand in front: ask the mask which places "
     "are pieces.", "    total", "    mask = torch.arange(mask.size(1)) < mask.sum(1, keepdim=True)\n    total"),
), reasons={
    "when a text has no pieces":
        "A text without pieces divides by 0. Let the number be 1 at least: .clamp(min=1); its sum is zero already.",
})


def span_f1(prediction, truth):
    """F1 of the words of two answers, from 0 to 1 (Rajpurkar et al. 2016, section 6.1)."""
    def words(text):
        text = "".join(c for c in text.lower() if c not in string.punctuation)
        return [word for word in text.split() if word not in ("a", "an", "the")]

    p, t = words(prediction), words(truth)
    if not p or not t:
        return float(p == t)                                # both empty: 1
    return 2 * (Counter(p) & Counter(t)).total() / (len(p) + len(t))


WORDS = ("small", "grey", "cat", "river", "bank", "deep", "learning", "seven", "year", "old", "theatre", "analysis",
         "banana", "another")


@maker
def _answers(rng, change=lambda rng, words: words):
    """Two answers of different lengths that share one word or two; `change` is for each of both."""
    shared = number(rng, 1, 3)
    words = _pick(rng, WORDS, shared + 5)
    p, t = words[:shared + 1], words[:shared] + words[shared + 1:shared + 4]
    p, t = (" ".join(change(rng, _pick(rng, part, len(part)))) for part in (p, t))
    return (p, t) if number(rng, 0, 2) else (t, p)


def _some(rng, words, changed):
    """One word of each answer, and by chance others, changed."""
    first = number(rng, 0, len(words))
    return [changed(word) if i == first or number(rng, 0, 2) else word for i, word in enumerate(words)]


EVERY_MARK = ("Punctuation stays with the words, all or a part, so that *bank.* is not *bank*. Take out every mark of "
              "string.punctuation, at the ends of words and inside.")
SHARED, CLEAN = "(Counter(p) & Counter(t)).total()", '"".join(c for c in text.lower() if c not in string.punctuation)'
RESULT, NO_ARTICLES = f"2 * {SHARED} / (len(p) + len(t))", 'if word not in ("a", "an", "the")'

SPAN_F1 = Exercise(span_f1, {"f1": ""}, {
    "on ordinary inputs": _answers(),
    "when a word stands there more than once": lambda rng: tuple(
        _pick(rng, ("la la la sea", "la la land land city"), 2)),
    "with capital letters": _answers(lambda rng, words: _some(rng, words, str.upper)),
    "with articles": _answers(lambda rng, words: [*_pick(rng, ("a", "an", "the"), 2), *words, "ana"]),
    "with punctuation": _answers(lambda rng, words: [
        *_some(rng, words, lambda word: word + ",.!?:"[number(rng, 0, 5)]), ("u.s.", "us")[number(rng, 0, 2)]]),
    "with capitals, articles and all of string.punctuation at once": _answers(lambda rng, words: [
        "The", words[0].upper() + string.punctuation, *words[1:], "A.", "u.s."]),
    "with years and accents": lambda rng: tuple(_pick(rng, ("seven é 2013", "seven å 1998"), 2)),
    "when no word is shared": lambda rng: tuple(" ".join(_pick(rng, words, 3)) for words in (WORDS[:7], WORDS[7:])),
    "when one of the answers is empty": lambda rng: tuple(_pick(rng, ("", "deep river"), 2)),
    "when nothing is left of both (no words, or articles only)": lambda rng: tuple(_pick(rng, ("", "The", "a."), 2)),
}, (
    ("This is the precision. F1 is 2 · precision · recall / (precision + recall).", RESULT, f"{SHARED} / len(p)"),
    ("This is the recall. F1 is 2 · precision · recall / (precision + recall).", RESULT, f"{SHARED} / len(t)"),
    ("This is the exact match: 1 if the answers are the same. F1 also rewards a part.", RESULT, "float(p == t)"),
    ("Letters are compared. Cut the answers into words first: .split().",
     "    if not p", '    p, t = " ".join(p), " ".join(t)\n    if not p'),
    ("The articles a, an and the are left out of both answers. They count here.", f" {NO_ARTICLES}", ""),
    ("Articles are cut out of other words, too (banana, Ana). Leave out whole words only.",
     "text.split()", 'text.replace("the", "").replace("an", "").replace("a", "").split()'),
    (EVERY_MARK, CLEAN, "text.lower()"),
    ("Punctuation is replaced by a space: u.s. becomes two words. SQuAD takes the marks out: us.",
     CLEAN, '"".join(" " if c in string.punctuation else c for c in text.lower())'),
    ("Articles are taken out before punctuation, so that *a.* stays. In order: lower case, punctuation, articles.",
     CLEAN, f'" ".join(word for word in text.lower().split() {NO_ARTICLES})', f"text.split() {NO_ARTICLES}",
     '"".join(c for c in text if c not in string.punctuation).split()'),
), reasons={
    "when a word stands there more than once":
        "A word counts as often as it stands in both, the smaller of the two numbers, and no set keeps that: "
        "(Counter(p) & Counter(t)).total().",
    "with capitals, articles and all of string.punctuation at once": EVERY_MARK,
    "when no word is shared":
        "0 is divided by 0 if no word is shared: precision and recall are both 0. F1 is then 0.0: ask for that first.",
})


def best_span(start, end, is_passage, max_len):
    """Logits ``(T,)`` of start and end to the best span's first and last place (Devlin et al. 2019, section 4.2)."""
    place = torch.arange(len(start))
    n = place - place.unsqueeze(1)                          # (T, T): last - first
    allowed = (n >= 0) & (n < max_len) & is_passage & is_passage.unsqueeze(1)
    scores = (start.unsqueeze(1) + end).masked_fill(~allowed, -math.inf)
    return divmod(scores.argmax().item(), len(start))


@maker
def _logits(rng, more=lambda k, n: (0.0, 0.0), max_len=None):
    """[CLS], a question, [SEP], a passage of twelve pieces or more, [SEP]; `more` is added to the
    logits of start and end at place k of the n in the passage.
    """
    question, n, longest = number(rng, 2, 6), number(rng, 12, 17), number(rng, 2, 5)
    k = torch.arange(-question - 2, n + 1)
    start, end = (2 * randn(rng, len(k)) + add for add in more(k, n))
    return start, end, (k >= 0) & (k < n), max_len or longest


ONE_PAIR = ("Start and end are chosen each on its own. It is the *pair* that must be allowed and best: add up all "
            "pairs, start.unsqueeze(1) + end is (T, T).")
LENGTH = "From first to last there are last - first + 1 pieces, at most max_len: last - first < max_len."
DIVMOD = "divmod(scores.argmax().item(), len(start))"
OUTSIDE = "    start, end = (x.masked_fill(~is_passage, -math.inf) for x in (start, end))\n    place ="
MAXIMA = "start.argmax().item(), end.argmax().item()"

BEST_SPAN = Exercise(best_span, {"first": "", "last": ""}, {
    "on ordinary inputs": _logits(),
    "when the highest ends stand before the highest starts": _logits(
        lambda k, n: (12.0 * (k >= n // 2), 12.0 * (k < n // 2))),
    "when the highest logits are those of [CLS] and the question": _logits(
        lambda k, n: (12.0 * ((k < 0) | (k == n)),) * 2),
    "when all logits are far below zero (around -1000)": _logits(lambda k, n: (-1000.0, -1000.0)),
    "when the best span is too long": _logits(lambda k, n: (8.0 * (k == 0), 8.0 * (k == n - 1))),
    "with max_len = 1": _logits(max_len=1),
}, (
    (ONE_PAIR, DIVMOD, MAXIMA),
    (ONE_PAIR, "    place =", OUTSIDE, DIVMOD, MAXIMA),
    ("The two are put in order afterwards; but then they are no longer a best start and a best end. Compare all pairs.",
     "    place =", OUTSIDE, DIVMOD, f"tuple(sorted(({MAXIMA})))"),
    ("First the best start is chosen, then an end for it. Another start with a better end may have the higher sum: "
     "compare all pairs.", "start.unsqueeze(1) + end", "1e6 * start.double().unsqueeze(1) + end"),
    ("last stands before first in some results. Rows of the sums are first, columns last: only the upper triangle is "
     "allowed, triu().", "(n >= 0) & (n <", "(n.abs() <"),
    ("first and last are always different here. A span of one piece is allowed: first <= last.", "n >= 0", "n > 0"),
    *each("is_passage is not used, or for one of the two places only: [CLS] or the question may be in the answer. "
          "Use is_passage.unsqueeze(1) & is_passage.", (" & is_passage & is_passage.unsqueeze(1)", ""),
          (" & is_passage.unsqueeze(1)", "")),
    (f"max_len is not used. {LENGTH}", " & (n < max_len)", ""),
    (f"One piece too many is allowed. {LENGTH}", "n < max_len", "n <= max_len"),
    ("last is one too far, as the end of a slice. Here last is the place of the last piece.",
     f"return {DIVMOD}", f"first, last = {DIVMOD}\n    return first, last + 1"),
    ("These are places in the passage. Count from the beginning of the input, where [CLS] is place 0.",
     f"return {DIVMOD}",
     f"offset = is_passage.nonzero().min().item()\n    return tuple(place - offset for place in {DIVMOD})"),
    ("What is not allowed gets the score 0, and that is more than a negative sum. Give it -inf.", "-math.inf", "0.0"),
))


def scalar_mix(states, s, gamma):
    """States ``(B, L+1, T, d)`` to a learned mix of the layers ``(B, T, d)`` (Peters et al. 2018, equation 1)."""
    weights = s.softmax(dim=0).view(-1, 1, 1)                           # (L+1, 1, 1)
    return gamma * (weights * states).sum(dim=1)                        # (B, T, d)


def _layers(rng, same=False, scale=1.0, most=None):
    """With `same`, B, T and L+1 are one number, so that wrong axes do line up; `most` is the largest B."""
    B, n, T, d = sizes(rng, 4)
    B, T = (n, n) if same else (B, T)
    return randn(rng, B, n, T, d)[:most], scale * randn(rng, n), randn(rng) + 2


WEIGHTS_SUM = "The weights are shares of the layers and sum to one: s.softmax(dim=0)."
SOFTMAX, MIX = "s.softmax(dim=0)", "(weights * states).sum(dim=1)"

SCALAR_MIX = Exercise(scalar_mix, {"mixed": "B, T, d"}, {
    "on ordinary inputs": _layers,
    "when B, L+1 and T are the same number, so that wrong axes line up": lambda rng: _layers(rng, same=True),
    "with one sentence (B = 1)": lambda rng: _layers(rng, most=1),
    "when the numbers in s are large (around 100)": lambda rng: _layers(rng, scale=100.0),
}, (
    (f"The softmax is missing: the raw numbers are used as weights. {WEIGHTS_SUM}", SOFTMAX, "s"),
    (f"s is divided by its sum, and that may be near zero or negative. {WEIGHTS_SUM}", SOFTMAX, "(s / s.sum())"),
    (f"exp(s) is not divided by its sum. {WEIGHTS_SUM}", SOFTMAX, "s.exp()"),
    ("The softmax runs over an axis of one number: each layer has the weight 1.", SOFTMAX, "torch.ones_like(s)"),
    ("The weighted layers are averaged. The weights already sum to one: take the sum.", "sum(dim=1)", "mean(dim=1)"),
    *each("The embeddings are left out. They are layer 0 of the L + 1, and s has a number for them, too.",
          (SOFTMAX, "s[1:].softmax(dim=0)", "weights * states", "weights * states[:, 1:]"),
          (SOFTMAX, f"{SOFTMAX}[1:]", "weights * states", "weights * states[:, 1:]")),
    ("This is the last layer only. Mix all of them.", MIX, "states[:, -1]"),
    ("gamma is inside the softmax. It scales the finished sum: gamma * (…).",
     "gamma * ", "", SOFTMAX, "(gamma * s).softmax(dim=0)"),
    ("The softmax is over the states. It is over s, the weights of the layers: one for each layer, the same for all "
     "words.", "weights * states", "s.view(-1, 1, 1) * states.softmax(1)"),
    *each("The weights do not line up with the layers, which are axis 1 of the states: s.softmax(0).view(-1, 1, 1) "
          "does. Then sum over dim=1.", (".view(-1, 1, 1)", "", "weights * states", "weights @ states"),
          ("view(-1, 1, 1)", "view(-1, 1)", "weights * states", "states * weights"), (".view(-1, 1, 1)", ""),
          ("view(-1, 1, 1)", "view(-1, 1)")),
), reasons={
    "when the numbers in s are large (around 100)":
        "exp(s) is infinite for large s. torch.softmax subtracts the largest first: s.softmax(0).",
})


def fine_tuning_step(classifier, optimizer, texts, labels):
    """One step for a whole network: texts are ids, mask and segments, labels ``(B,)``; the loss as a float."""
    optimizer.zero_grad()
    logits = classifier(*texts)                             # through every layer
    loss = F.cross_entropy(logits, labels)                  # of logits
    loss.backward()
    optimizer.step()
    return loss.item()


def _three_batches(rng, n=4):
    """A small classifier with a deviation of 0.3, so that a step shows, and three batches."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(number(rng, 0, 1000))
        small = Classifier(bert.Bert(30, replace(LITTLE, d_model=8, n_heads=2, d_ff=16, max_len=12)))
        for weight in small.parameters():
            torch.nn.init.normal_(weight, mean=float(weight.dim() == 1), std=0.3)
    batches = []
    for _ in range(3):
        length = torch.randint(3, 9, (n, 1), generator=rng)
        mask = torch.arange(int(length.max())) < length
        ids = torch.randint(5, 30, mask.shape, generator=rng) * mask
        batches.append(((ids, mask, torch.zeros_like(ids)), torch.arange(n) % 2))
    return small, batches


FORWARD, PROBABILITIES = "logits = classifier(*texts)", ("cross_entropy(logits", "cross_entropy(logits.softmax(dim=-1)")
FROZEN = (FORWARD, "with torch.no_grad():\n        x = classifier.trunk(*texts).x\n"
                   "    logits = classifier.head(classifier.trunk.pool(x))")
KEPT, BACKWARD = ("    optimizer.zero_grad()\n", ""), "    loss.backward()\n"
NO_GRAD = ("Under no_grad no gradient reaches the trunk: only the new layer and the pooler learn. These are features, "
           "not fine-tuning. Read without it: classifier(*texts).")
TWICE = ("cross_entropy takes logits and makes the softmax itself. Of probabilities it takes a second softmax: the "
         "loss cannot fall below 0.31, and the gradients are small.")
ADDED_UP = ("The gradients of all steps so far are added up: backward adds to what is there. Set them to zero in each "
            "step, before backward: optimizer.zero_grad().")
NOTHING_MOVES = ("Nothing can move. In this order: zero_grad, forward, loss.backward() (computes the gradients), "
                 "optimizer.step() (uses them).")

FINE_TUNING_STEP = Trained(fine_tuning_step, {"loss": ""}, {
    "on ordinary inputs": _three_batches,
    "with one text": lambda rng: _three_batches(rng, 1),
}, (
    *((TWICE, *PROBABILITIES, *edits) for edits in ((), KEPT, (*FROZEN, *KEPT))),     # shows in the first loss
    *((NO_GRAD, *FROZEN, *edits) for edits in ((), KEPT)),
    (ADDED_UP, *KEPT),
    (NOTHING_MOVES, BACKWARD, f"{BACKWARD}    optimizer.zero_grad()\n"),
    (NOTHING_MOVES, "    optimizer.step()\n", ""),
    ("The mask is not used: padding is read as if it were text.", "*texts", "texts[0], None, texts[2]"),
    ("The losses of a batch are added up. Take their mean, which is cross_entropy's default: otherwise the step grows "
     "with the batch.", "labels)  ", 'labels, reduction="sum")  '),
))


def lora_linear(x, W, b, A, B, scale):
    """A linear layer and a correction of low rank; x ``(B, T, d_in)`` -> ``(B, T, d_out)`` (Hu et al. 2021, eq. 3)."""
    return x @ W.T + b + scale * (x @ A.T @ B.T)            # through r numbers, not d_out * d_in


def _low_rank(rng, square=False, zero=False):
    """`square`: d_in, d_out and r are one number, so that swapped matrices line up."""
    n, T, d_in, r = sizes(rng, 4)
    d_out, r = (d_in, d_in) if square else (d_in + 3, r)
    B = randn(rng, d_out, r) * (not zero)
    factor = 0.5 + torch.rand((), generator=rng).item()
    return randn(rng, n, T, d_in), randn(rng, d_out, d_in), randn(rng, d_out), randn(rng, r, d_in), B, factor


CORRECTION = "scale * (x @ A.T @ B.T)"
LORA_LINEAR = Exercise(lora_linear, {"y": "B, T, d_out"}, {
    "on ordinary inputs": _low_rank,
    "when d_in, d_out and r are the same number, so that swapped matrices line up": lambda rng: _low_rank(
        rng, square=True),
    "when B is zero, as at the start": lambda rng: _low_rank(rng, zero=True),
}, (
    ("The correction is missing: scale times x through A, then through B.", f" + {CORRECTION}", ""),
    ("scale is not used. It scales the correction, not the layer.", "scale * ", ""),
    ("scale multiplies the layer, too. It scales the correction only.",
     f"x @ W.T + b + {CORRECTION}", "scale * (x @ W.T + b + x @ A.T @ B.T)"),
    *each("As in nn.Linear, rows are outputs: x @ W.T. First through A, down to r numbers, then through B: "
          "x @ A.T @ B.T.", ("A.T @ B.T", "A @ B"), ("W.T", "W"), ("A.T @ B.T", "B.T @ A.T")),
    ("The published layer is missing: x @ W.T + b stays as it is, and the correction is added.", "x @ W.T + b + ", ""),
))


def into_fake(ids, n_pieces, shared):
    """English ids ``(B, T)`` to those of fake English, which shares a few pieces only (K et al. 2020)."""
    return torch.where(torch.isin(ids, shared), ids, ids + n_pieces)


def _two_vocabularies(rng, pick=lambda rng, n: torch.randperm(n, generator=rng)[:number(rng, 2, 5)]):
    """Ids in which one shared piece at least occurs, if there is one; `pick` chooses the shared."""
    B, T = sizes(rng, 2)
    n = number(rng, 12, 21)
    ids, shared = torch.randint(n, (B, T + 3), generator=rng), pick(rng, n)
    ids[0, :len(shared)] = shared
    return ids, n, shared


SHIFT = "ids + n_pieces"

INTO_FAKE = Exercise(into_fake, {"moved": "B, T"}, {
    "on ordinary inputs": _two_vocabularies,
    "when the first five pieces are shared": lambda rng: _two_vocabularies(rng, lambda rng, n: torch.arange(5)),
    "when only [PAD] is shared": lambda rng: _two_vocabularies(rng, lambda rng, n: torch.zeros(1, dtype=torch.long)),
    "when nothing is shared": lambda rng: _two_vocabularies(rng, lambda rng, n: torch.zeros(0, dtype=torch.long)),
}, (
    ("The shared pieces moved, too. They are the same in both languages and keep their ids.",
     f"torch.where(torch.isin(ids, shared), ids, {SHIFT})", SHIFT),
    ("It is the wrong way round: the shared pieces moved, and the others stayed.", f"ids, {SHIFT}", f"{SHIFT}, ids"),
    *each("The pieces that stay are those in shared, whichever they are, not the first ids of the vocabulary: "
          "torch.isin(ids, shared).", ("torch.isin(ids, shared)", "ids < 5"),
          ("torch.isin(ids, shared)", "ids < len(shared)")),
    ("Only the first of the shared pieces stays. All of them do: torch.isin(ids, shared).",
     "torch.isin(ids, shared)", "torch.isin(ids, shared[:1])"),
    ("The shift is n_pieces, also where some pieces are shared: what is shared leaves a gap, and that is all right.",
     SHIFT, f"{SHIFT} - len(shared)"),
    ("The shift is off by one. English has the ids 0 to n_pieces - 1; its first piece's double is n_pieces.",
     SHIFT, f"{SHIFT} + 1"),
    ("The shift is one short. English has the ids 0 to n_pieces - 1; its first piece's double is n_pieces.",
     "ids + n_pieces", "ids + n_pieces - 1"),
))


def nearest_words(english, fake):
    """The nearest row of fake ``(m, d)`` for each of english ``(n, d)``, by cosine; ``(n,)`` row numbers."""
    english, fake = F.normalize(english, dim=1), F.normalize(fake, dim=1)
    return (english @ fake.T).argmax(dim=1)


def _words_to_match(rng, same=False):
    """Rows that differ in length; `same`: as many words in one language as in the other."""
    n, m, d = sizes(rng, 3)
    m = n if same else m
    lengths = torch.rand(m, 1, generator=rng) * 9 + 0.2
    return randn(rng, n, d), lengths * randn(rng, m, d)


NORMED = "english, fake = F.normalize(english, dim=1), F.normalize(fake, dim=1)"

NEAREST_WORDS = Exercise(nearest_words, {"nearest": "n"}, {
    "on ordinary inputs": _words_to_match,
    "when both languages have the same number of words": lambda rng: _words_to_match(rng, same=True),
}, (
    ("Long vectors win: a product grows with the length. The cosine divides by it: F.normalize(fake, dim=1) first.",
     NORMED, "pass"),
    ("For each *fake* word the nearest English one is looked up. Rows of the product are English words: argmax(dim=1).",
     "argmax(dim=1)", "argmax(dim=0)"),
    ("This is the furthest word: the largest cosine is the nearest.", "argmax(dim=1)", "argmin(dim=1)"),
    ("Columns are scaled, not words. A word is a row: F.normalize(x, dim=1).",
     NORMED, NORMED.replace("dim=1", "dim=0")),
    ("This is the nearest by distance, for which the length counts. Asked for is the largest cosine.",
     NORMED, "pass", "(english @ fake.T).argmax(dim=1)", "torch.cdist(english, fake).argmin(dim=1)"),
))


def post_norm_layer(x, attention, feed_forward, norm_1, norm_2):
    """BERT's layer: each sum is normed (Devlin et al. 2019; Vaswani et al. 2017, section 3.1)."""
    x = norm_1(x + attention(x))
    return norm_2(x + feed_forward(x))


def _post_norm_inputs(rng):
    """Lesson 04's, for an attention of one thing, x."""
    x, mask, look, *rest = layer_inputs(rng)
    return x, Function(str(look), lambda x: look(x, x, mask)), *rest


POST_NORM_LAYER = Layer(post_norm_layer, {"x": "B, T, d"}, {"on ordinary inputs": _post_norm_inputs})


LESSON_05 = (PAIR_INPUT, SPLIT_WORD, MASK_TOKENS, MEAN_POOL, FINE_TUNING_STEP, SPAN_F1, BEST_SPAN, SCALAR_MIX,
             LORA_LINEAR, INTO_FAKE, NEAREST_WORDS, POST_NORM_LAYER)
