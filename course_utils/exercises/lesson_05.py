"""Lesson 05, BERT: the exercises, their references and the ways in which they go wrong."""

import math
import re
import string
from collections import Counter
from functools import partial

import torch
from torch import Tensor

from course_utils.exercises.counted import Counted
from course_utils.exercises.engine import Exercise, attempt, close
from course_utils.exercises.inputs import randn, sizes
from course_utils.exercises.lesson_03 import NO_SOFTMAX


def _pick(rng: torch.Generator, items, n: int) -> list:
    """`n` different ones, in random order."""
    return [items[i] for i in torch.randperm(len(items), generator=rng)[:n].tolist()]


def _number(rng: torch.Generator, low: int, high: int) -> int:
    """A whole number from `low` to `high`, both included."""
    return int(torch.randint(low, high + 1, (), generator=rng))


# --- pair_input ----------------------------------------------------------------------------------------------

def pair_input(a: list[str], b: list[str]) -> tuple[list[str], list[int]]:
    """a, b: the pieces of two texts
    -> pieces: [CLS], the pieces of a, [SEP], the pieces of b, [SEP]; segments: 0 up to the first [SEP], which belongs
    to a, then 1 (Devlin et al. 2019, section 3)
    """
    return _paired()(a, b)


def _paired(pieces=lambda a, b: ["[CLS]", *a, "[SEP]", *b, "[SEP]"],
            segments=lambda a, b: [0] * (len(a) + 2) + [1] * (len(b) + 1)):
    """The input for two texts, of which a part may be wrong."""
    return lambda a, b: (pieces(a, b), segments(a, b))


PIECES = ("a", "soft", "look", "##up", "in", "a", "small", "dictionary", "of", "vector", "##s", "it", "learn", "##ed")


def _pair_inputs(same=False):
    """A maker of inputs: two texts of different lengths; with `same` they share their first piece."""
    def make(rng):
        n, m = sizes(rng, 2)
        drawn = _pick(rng, sorted(set(PIECES)), n + m)
        a, b = drawn[:n], drawn[n:]
        return a, a[:1] + b[1:] if same else b
    return make


SEP_ENDS = "A [SEP] stands at the end of each of the two texts."
FIRST_SEP = "The first [SEP] ends text a and belongs to it: segment 0."
CLS_FIRST = "[CLS] stands in front of all: it is the place from which the whole input is judged."
SEGMENTS_FROM = "Count places, not pieces: 0 for [CLS], a and its [SEP], 1 for b and its [SEP]."

PAIR_INPUT = Exercise(pair_input, {"pieces": "", "segments": ""}, {
    "on ordinary inputs": _pair_inputs(),
    "when a piece stands in both texts": _pair_inputs(same=True),
}, (
    (f"The second [SEP] is missing. {SEP_ENDS}",
     _paired(lambda a, b: ["[CLS]", *a, "[SEP]", *b], lambda a, b: [0] * (len(a) + 2) + [1] * len(b))),
    (f"The second [SEP] is missing in the pieces. {SEP_ENDS}", _paired(lambda a, b: ["[CLS]", *a, "[SEP]", *b])),
    (f"The first [SEP] is missing: nothing stands between the two texts. {SEP_ENDS}",
     _paired(lambda a, b: ["[CLS]", *a, *b, "[SEP]"], lambda a, b: [0] * (len(a) + 1) + [1] * (len(b) + 1))),
    (f"There is no [SEP]. {SEP_ENDS}",
     _paired(lambda a, b: ["[CLS]", *a, *b], lambda a, b: [0] * (len(a) + 1) + [1] * len(b))),
    (f"[CLS] is missing. {CLS_FIRST}",
     _paired(lambda a, b: [*a, "[SEP]", *b, "[SEP]"], lambda a, b: [0] * (len(a) + 1) + [1] * (len(b) + 1))),
    (f"[CLS] is missing in the pieces. {CLS_FIRST}", _paired(lambda a, b: [*a, "[SEP]", *b, "[SEP]"])),
    ("There is a second [CLS], in front of text b. One is enough: a single [SEP] stands between the texts.",
     _paired(lambda a, b: ["[CLS]", *a, "[SEP]", "[CLS]", *b, "[SEP]"],
             lambda a, b: [0] * (len(a) + 2) + [1] * (len(b) + 2))),
    ("The two texts are swapped: a comes first.", lambda a, b: pair_input(b, a)),
    ("The second [SEP] is in segment 0. It ends text b and belongs to it: 1.",
     _paired(segments=lambda a, b: [0] * (len(a) + 2) + [1] * len(b) + [0])),
    (f"The first [SEP] is in segment 1. {FIRST_SEP}",
     _paired(segments=lambda a, b: [0] * (len(a) + 1) + [1] * (len(b) + 2))),
    ("All segments are 0. The second text and its [SEP] are 1.",
     _paired(segments=lambda a, b: [0] * (len(a) + len(b) + 3))),
    ("The segments are counted from 1. The first text is 0, the second 1.",
     _paired(segments=lambda a, b: [1] * (len(a) + 2) + [2] * (len(b) + 1))),
    ("0 and 1 are swapped: the first text is 0.",
     _paired(segments=lambda a, b: [1] * (len(a) + 2) + [0] * (len(b) + 1))),
    ("The special pieces have no segment. Each place has one: [CLS] and the first [SEP] 0, the second [SEP] 1.",
     _paired(segments=lambda a, b: [0] * len(a) + [1] * len(b))),
    ("The segments are positions. They say which text a piece is of: 0 or 1.",
     _paired(segments=lambda a, b: list(range(len(a) + len(b) + 3)))),
    (f"The segment is looked up by the piece, and a piece may stand in both texts. {SEGMENTS_FROM}",
     _paired(segments=lambda a, b: [0, *(int(p in b) for p in a), 0, *[1] * (len(b) + 1)])),
    (f"The segment is looked up by the piece, and a piece may stand in both texts. {SEGMENTS_FROM}",
     _paired(segments=lambda a, b: [0] * (len(a) + 2) + [int(p not in a) for p in b] + [1])),
))


# --- split_word ----------------------------------------------------------------------------------------------

def split_word(word: str, vocab: set[str]) -> list[str]:
    """word: one word, not empty; vocab: the pieces that are known, those inside a word written with ##
    -> its pieces: the longest known piece that the word begins with, then the longest one that the rest begins with,
    and so on; ["[UNK]"] for the whole word if a rest begins with no known piece (Wu et al. 2016, section 4.1)
    """
    return _cutting()(word, vocab)


ROUNDS = "Does each round of the loop cut something off the word, and does it stop when no piece fits?"


class EndlessLoopError(RuntimeError):
    """An answer asks the vocabulary again and again."""


class _Vocab(set):
    """A set that stops a loop without end."""

    most = 20_000    # a word of nine letters needs 45 look-ups at most

    def __contains__(self, piece) -> bool:
        self.asked = getattr(self, "asked", 0) + 1
        if self.asked > self.most:
            raise EndlessLoopError(f"after {self.most:,} look-ups in vocab there is still no end. {ROUNDS}")
        return super().__contains__(piece)

    def __iter__(self):
        self.asked = getattr(self, "asked", 0) + len(self)
        if self.asked > self.most:
            raise EndlessLoopError(f"vocab was gone through {self.most // len(self):,} times, and there is still no "
                                   f"end. {ROUNDS}")
        return super().__iter__()


def _longest(start: int, n: int) -> range:
    return range(n, start, -1)


def _inside(start: int) -> str:
    return "##" if start else ""


def _cutting(ends=_longest, look_up=_inside, write=_inside, stuck=lambda word, pieces, start: ["[UNK]"]):
    """WordPiece, of which a part may be wrong; `stuck` is what comes back if no piece fits."""
    def cut(word, vocab):
        pieces, start = [], 0
        while start < len(word):
            end = next((end for end in ends(start, len(word)) if look_up(start) + word[start:end] in vocab), None)
            if end is None:
                return stuck(word, pieces, start)
            pieces.append(write(start) + word[start:end])
            start = end
        return pieces
    return cut


def _goes_on(word: str, vocab: set[str]) -> list[str]:
    """A letter that is not known becomes an [UNK] of its own."""
    pieces, start = [], 0
    while start < len(word):
        end = next((e for e in _longest(start, len(word)) if _inside(start) + word[start:e] in vocab), None)
        pieces.append("[UNK]" if end is None else _inside(start) + word[start:end])
        start = end or start + 1
    return pieces


def _tries_again(word: str, vocab: set[str], start: int = 0) -> list[str]:
    """Backtracking: if the longest piece leads nowhere, a shorter one."""
    for end in _longest(start, len(word)):
        piece = _inside(start) + word[start:end]
        if piece in vocab:
            rest = _tries_again(word, vocab, end) if end < len(word) else []
            if rest != ["[UNK]"]:
                return [piece, *rest]
    return ["[UNK]"]


def _fewest(word: str, vocab: set[str]) -> list[str]:
    """The cut into the fewest pieces."""
    best = {0: []}
    for end in range(1, len(word) + 1):
        found = [best[start] + [_inside(start) + word[start:end]] for start in range(end)
                 if start in best and _inside(start) + word[start:end] in vocab]
        if found:
            best[end] = min(found, key=len)
    return best.get(len(word), ["[UNK]"])


def _from_the_right(word: str, vocab: set[str]) -> list[str]:
    pieces, end = [], len(word)
    while end:
        start = next((start for start in range(end) if _inside(start) + word[start:end] in vocab), None)
        if start is None:
            return ["[UNK]"]
        pieces.insert(0, _inside(start) + word[start:end])
        end = start
    return pieces


def _word(rng: torch.Generator, letters: str = "abcd") -> str:
    """Six to nine letters; the first does not come again, so that nothing inside looks like the beginning."""
    n = _number(rng, 5, 8)
    return "e" + "".join(letters[i] for i in torch.randint(len(letters), (n,), generator=rng).tolist())


def _letters(word: str, beginning: bool = True) -> set[str]:
    """The letters as pieces, at the beginning and inside."""
    return ({word[0]} if beginning else set()) | {"##" + letter for letter in word[1:]}


def _ordinary_word(rng):
    """The letters, a longer beginning, some pieces inside, and some that look like these but may only begin a word."""
    word = _word(rng)
    n, first = len(word), _number(rng, 2, 3)
    longer = {word[:first], "##" + word[first:first + 2], "##" + word[n - 2:], "##" + word[first - 1:first + 1]}
    return word, _Vocab(_letters(word) | longer | {word[first:first + 3], word[n - 3:], "##" + word[0]})


def _whole_word(rng):
    word, vocab = _ordinary_word(rng)
    return word, _Vocab({*vocab, word})


def _unknown_letter(rng):
    """A letter in the middle is known at the beginning of words only."""
    word, vocab = _ordinary_word(rng)
    return word[:4] + "f" + word[4:], _Vocab({*vocab, "f"})


def _unknown_beginning(rng):
    """The first letter is known inside words only."""
    word = _word(rng)
    return word, _Vocab({*_letters(word, beginning=False), "##" + word[0], "##" + word[:2], word[1:3]})


def _greedy_is_stuck(rng):
    """A beginning of two letters and the rest are pieces; but a beginning of three is there, too."""
    word = _word(rng, "abcd")
    word = word[:3] + "f" + word[4:]
    return word, _Vocab({word[0], word[:2], word[:3], "##" + word[2:], "##" + word[4:], "##" + word[-1]})


def _greedy_is_longer(rng):
    """Greedy takes three letters and then one by one; two letters and the rest would be two pieces."""
    word = _word(rng)
    return word, _Vocab({*_letters(word), word[:2], word[:3], "##" + word[2:]})


def _one_letter(rng):
    return "e", _Vocab({"a", "e", "##a", "##e"})


LONGEST = "Take the longest piece that fits: begin with the whole rest, and make it shorter letter by letter."
MARKED = "Inside a word a piece is written with ##, in the vocabulary and in the result."
ALL_OR_NOTHING = 'If a rest begins with no known piece, the whole word is ["[UNK]"].'
GREEDY = ("WordPiece is greedy: it takes the longest piece and never goes back. That is fast, and sometimes not the "
          "best cut.")

SPLIT_WORD = Exercise(split_word, {"pieces": ""}, {
    "on ordinary inputs": _ordinary_word,
    "when the whole word is a piece": _whole_word,
    "when a letter of the word is not known inside words": _unknown_letter,
    "when the word begins with a letter that is known only inside words": _unknown_beginning,
    "when the longest first piece leads nowhere": _greedy_is_stuck,
    "when a shorter first piece would make fewer pieces": _greedy_is_longer,
    "with a word of one letter": _one_letter,
}, (
    (f"The shortest piece is taken. {LONGEST}", _cutting(ends=lambda start, n: range(start + 1, n + 1))),
    ("Every word that is no piece itself is [UNK]. Either it is not cut at all, or its last letter is never reached: "
     f"the end of a slice is not part of it, so the first end to try is len(word). {LONGEST}",
     _cutting(ends=lambda start, n: range(n - 1, start, -1))),
    (f"Only pieces of two letters and more are tried. {LONGEST}",
     _cutting(ends=lambda start, n: range(n, start + 1, -1))),
    (f"## is missing in the result. {MARKED}", _cutting(write=lambda start: "")),
    (f"The rest is looked up without ##. {MARKED}", _cutting(look_up=lambda start: "")),
    (f"The rest is looked up without ##, and written without. {MARKED}",
     _cutting(look_up=lambda start: "", write=lambda start: "")),
    ("The first piece is looked up with ##, too. ## stands only inside a word.", _cutting(look_up=lambda start: "##")),
    ("The first piece is looked up and written with ##, too. ## stands only inside a word.",
     _cutting(look_up=lambda start: "##", write=lambda start: "##")),
    ("The first piece is written with ##, too. ## stands only inside a word.", _cutting(write=lambda start: "##")),
    ("## stands behind the pieces. It stands in front of those inside: ##ing.",
     lambda word, vocab: [piece.removeprefix("##") + "##" * (piece != word) for piece in split_word(word, vocab)]),
    ("The pieces come in the wrong order: the first one begins the word.",
     lambda word, vocab: split_word(word, vocab)[::-1]),
    ("The word is cut from its end. WordPiece begins at the beginning.", _from_the_right),
    (f"[UNK] stands for the rest only. {ALL_OR_NOTHING}",
     _cutting(stuck=lambda word, pieces, start: [*pieces, "[UNK]"])),
    (f"[UNK] stands for the rest only. {ALL_OR_NOTHING}",
     _cutting(stuck=lambda word, pieces, start: [*pieces, "##[UNK]" if start else "[UNK]"])),
    (f"[UNK] stands for one letter, and the cutting goes on behind it. {ALL_OR_NOTHING}", _goes_on),
    (f"The rest that is not known is left out. {ALL_OR_NOTHING}", _cutting(stuck=lambda word, pieces, start: pieces)),
    (f"The result is empty. {ALL_OR_NOTHING}", _cutting(stuck=lambda word, pieces, start: [])),
    (f"The rest is a piece although it is not known. {ALL_OR_NOTHING}",
     _cutting(stuck=lambda word, pieces, start: [*pieces, _inside(start) + word[start:]])),
    (f"The word is a piece although it is not known. {ALL_OR_NOTHING}",
     _cutting(stuck=lambda word, pieces, start: [word])),
    (f"The word was cut in another way when the longest piece led nowhere. {GREEDY}", _tries_again),
    (f"This is the cut into the fewest pieces. {GREEDY}", _fewest),
))


# --- mask_tokens ---------------------------------------------------------------------------------------------

NOT_ASKED = -100
"""The target that the loss skips: the default ``ignore_index`` of ``F.cross_entropy``."""


def mask_tokens(ids: Tensor, can_mask: Tensor, mask_id: int, vocab_size: int, generator: torch.Generator,
                share: float = 0.15) -> tuple[Tensor, Tensor]:
    """ids (B, T) long; can_mask bool (B, T), False at special pieces and padding; mask_id: the id of [MASK];
    generator: what every random number is drawn with
    -> inputs (B, T), targets (B, T): a random share of the places that can be masked is asked; there the target is the
    id, elsewhere -100; an asked place becomes [MASK] in 80 % of cases, a random id below vocab_size in 10 %, and stays
    as it is in 10 % (Devlin et al. 2019, section 3.1)
    """
    return _masking()(ids, can_mask, mask_id, vocab_size, generator, share)


class _Seeded(torch.Generator):
    """A generator that says in messages what it is."""

    def __repr__(self) -> str:
        return f"a generator with seed {self.initial_seed()}"


def _seeded(seed: int) -> _Seeded:
    generator = _Seeded()
    generator.manual_seed(seed)
    return generator


def _unseeded() -> torch.Generator:
    """Other numbers each time, and the notebook's random state stays as it is."""
    generator = torch.Generator()
    generator.seed()
    return generator


def _masking_inputs(share=0.15):
    """A maker of inputs: texts of pieces from the lower half of the vocabulary; [CLS] and [SEP] around, padding."""
    def make(rng):
        B, T, V = 64, 96, 400
        ids = torch.randint(5, V // 2, (B, T), generator=rng)
        ends = torch.randint(T // 2, T, (B, 1), generator=rng)
        place = torch.arange(T)
        ids = ids.masked_fill(place == 0, 2).masked_fill(place == ends, 3).masked_fill(place > ends, 0)
        return ids, ids > 4, 4, V, _seeded(100 + _number(rng, 0, 899)), share
    return make


def _masking_counts(function, arguments, result) -> dict[str, Tensor]:
    ids, can_mask, mask_id, vocab_size, generator, share = arguments
    inputs, targets = result
    asked = targets != NOT_ASKED
    random = inputs[asked & (inputs != ids) & (inputs != mask_id)]
    below, beside = asked[:-1] & can_mask[1:], asked[:, :-1] & can_mask[:, 1:]

    def same(seed: int) -> Tensor:
        again, _ = attempt(function, (*arguments[:4], _seeded(seed), share))
        return torch.tensor([close(again, result)])

    return {
        "of the places that can be masked, {} are asked (their target is not -100)": asked[can_mask],
        "of the special pieces and the padding, {} are asked (their target is not -100)": asked[~can_mask],
        "of the asked places, {} have the original id as their target": (targets == ids)[asked],
        "of the places that are not asked, {} have another id in inputs than before": (inputs != ids)[~asked],
        "of the asked places, {} are [MASK] in inputs": (inputs == mask_id)[asked],
        "of the asked places, {} are as they were": (inputs == ids)[asked],
        "of the random ids, {} are one and the same": random == (random.mode().values if len(random) else -1),
        "of the random ids, {} are of the upper half of the vocabulary": random >= vocab_size // 2,
        "in {} of the batches a random id is not in the vocabulary (0 to vocab_size - 1)": torch.tensor(
            [bool(((random < 0) | (random >= vocab_size)).any())]),
        "below an asked place, in the next text, {} are asked": asked[1:][below],
        "beside an asked place, {} are asked": asked[:, 1:][beside],
        "called again with a generator of the same seed, it gives the same in {} of cases": same(
            generator.initial_seed()),
        "called with a generator of another seed, it gives the same in {} of cases": same(
            generator.initial_seed() + 1),
    }


def _drawn(draw, ids, can_mask, share):
    return (draw() < share) & can_mask


def _lots(mask=0.8, random=0.9, where=lambda asked, can_mask: asked):
    """A second random number below `mask`: [MASK]; from there up to `random`: a random id; else as it was."""
    def inputs(draw, ids, asked, can_mask, mask_id, random_ids):
        lot, places = draw(), where(asked, can_mask)
        new = torch.where(places & (lot < random), random_ids, ids)
        return torch.where(places & (lot < mask), mask_id, new)
    return inputs


def _two_lots(share, again):
    """First [MASK] or not, then with a new random number a random id or not."""
    def inputs(draw, ids, asked, can_mask, mask_id, random_ids):
        masked = asked & (draw() < 0.8)
        return torch.where(asked & (again | ~masked) & (draw() < share), random_ids, torch.where(masked, mask_id, ids))
    return inputs


BY_LOTS = _lots()


def _masking(asked=_drawn, inputs=BY_LOTS, targets=lambda ids, asked, inputs, mask_id: ids.where(asked, NOT_ASKED),
             generator=lambda given: given, random_ids=lambda ids, V, g: torch.randint(V, ids.shape, generator=g)):
    """Masking, of which a part may be wrong."""
    def mask(ids, can_mask, mask_id, vocab_size, given, share):
        g = generator(given)
        draw = partial(torch.rand, ids.shape, generator=g)
        places = asked(draw, ids, can_mask, share)
        new = inputs(draw, ids, places, can_mask, mask_id, random_ids(ids, vocab_size, g))
        return new, targets(ids, places, new, mask_id)
    return mask


def _one_for(shape):
    """Random numbers for rows or columns only."""
    return lambda draw, ids, can_mask, share: (draw()[tuple(slice(n) for n in shape)] < share) & can_mask


ONLY_TEXT = "Special pieces and padding are not asked: & can_mask."
OF_THE_ASKED = "80, 10 and 10 % are shares of the asked places; the others stay as they are."
SKIPPED = "Where nothing is asked, the target is -100: the loss skips it."
OTHERS_LEFT = ("After [MASK] there is a fifth left. Half of it, 10 % of the asked, gets a random id, and the other "
               "half stays.")
DRAWN_ONCE = "Draw a number for each place: torch.rand(ids.shape, generator=generator)."
USE_GENERATOR = "Give it to each draw: generator=generator."

MASK_TOKENS = Counted(mask_tokens, {"inputs": "B, T", "targets": "B, T"}, {
    "on ordinary inputs": _masking_inputs(),
    "with another share (0.4)": _masking_inputs(0.4),
}, (
    ("Random ids go from 0 to vocab_size - 1, which is the last piece: torch.randint(vocab_size, …).",
     _masking(random_ids=lambda ids, V, g: torch.randint(1, V + 1, ids.shape, generator=g))),
    (f"can_mask is not used. {ONLY_TEXT}", _masking(asked=lambda draw, ids, can_mask, share: draw() < share)),
    (f"can_mask is inverted: only special pieces and padding are asked. {ONLY_TEXT}",
     _masking(asked=lambda draw, ids, can_mask, share: _drawn(draw, ids, ~can_mask, share))),
    ("Every place that can be masked is asked. Draw: only a share of them.",
     _masking(asked=lambda draw, ids, can_mask, share: can_mask)),
    ("1 - share of the places are asked. A random number is *below* share in that share of cases.",
     _masking(asked=lambda draw, ids, can_mask, share: _drawn(draw, ids, can_mask, 1 - share))),
    ("share is not used: it is 15 % whatever was given.",
     _masking(asked=lambda draw, ids, can_mask, share: _drawn(draw, ids, can_mask, 0.15))),
    (f"The same places are asked in all texts. {DRAWN_ONCE}", _masking(asked=_one_for((1, None)))),
    (f"Whole texts are asked, and others not at all. {DRAWN_ONCE}", _masking(asked=_one_for((None, 1)))),
    ("Every asked place becomes [MASK]. Either two of the three branches are missing, or one random number decides "
     "twice: what is below 0.15 is below 0.8, too. Draw a second one.", _masking(inputs=_lots(1.0, 1.0))),
    ("Nothing is replaced: inputs are the ids. Either that step is missing, or one random number decides twice, and "
     "what is below 0.15 is never above 0.2. Draw a second one.", _masking(inputs=_lots(0.0, 0.0))),
    (f"No asked place stays as it was. {OTHERS_LEFT} The model does not know which pieces it can trust, so it has to "
     "look at all of them.", _masking(inputs=_lots(0.8, 1.0))),
    (f"No asked place gets a random id. {OTHERS_LEFT}", _masking(inputs=_lots(0.8, 0.8))),
    ("80 % get a random id and 10 % [MASK]: the two are swapped.", _masking(inputs=_lots(0.1, 0.9))),
    ("80 % stay as they were and 10 % become [MASK]: the two are swapped.", _masking(inputs=_lots(0.1, 0.2))),
    (f"Of the fifth that is left after [MASK], a tenth gets a random id: that is 2 %. {OTHERS_LEFT}",
     _masking(inputs=_two_lots(0.1, again=False))),
    ("The random ids are written over a part of the [MASK]: 72 % are left. Choose among the asked places that have not "
     "become [MASK]; of those it is one half.", _masking(inputs=_two_lots(0.1, again=True))),
    ("The random ids are written over a part of the [MASK]: 40 % are left. Choose among the asked places that have not "
     "become [MASK].", _masking(inputs=_two_lots(0.5, again=True))),
    (f"Pieces are replaced that are not asked. {OF_THE_ASKED}",
     _masking(inputs=_lots(where=lambda asked, can_mask: can_mask))),
    (f"Pieces are replaced that are not asked, special ones and padding among them. {OF_THE_ASKED}",
     _masking(inputs=_lots(where=lambda asked, can_mask: torch.ones_like(asked)))),
    (f"Each place is asked, since the targets are all ids. {SKIPPED}",
     _masking(targets=lambda ids, asked, inputs, mask_id: ids)),
    (f"The targets have 0 where nothing is asked, and that is an id, too. {SKIPPED}",
     _masking(targets=lambda ids, asked, inputs, mask_id: ids.where(asked, 0))),
    (f"The targets have -1 where nothing is asked. {SKIPPED}",
     _masking(targets=lambda ids, asked, inputs, mask_id: ids.where(asked, -1))),
    (f"The targets are turned round: -100 stands at the asked places. {SKIPPED}",
     _masking(targets=lambda ids, asked, inputs, mask_id: ids.where(~asked, NOT_ASKED))),
    ("The targets are the new ids. The model has to say what stood there *before*.",
     _masking(targets=lambda ids, asked, inputs, mask_id: inputs.where(asked, NOT_ASKED))),
    ("Only changed places are asked. Those that stay as they were are asked, too: that is what they are for.",
     _masking(targets=lambda ids, asked, inputs, mask_id: ids.where(inputs != ids, NOT_ASKED))),
    ("Only the places with [MASK] are asked. All chosen places are, the 20 % without [MASK], too.",
     _masking(targets=lambda ids, asked, inputs, mask_id: ids.where(inputs == mask_id, NOT_ASKED))),
    ("inputs and targets are swapped: return inputs, targets.", lambda *arguments: mask_tokens(*arguments)[::-1]),
    ("The random id is the same everywhere: it was drawn once. Draw one for each place: "
     "torch.randint(vocab_size, ids.shape, generator=generator).",
     _masking(random_ids=lambda ids, V, g: torch.randint(V, (), generator=g).expand_as(ids))),
    ("The random ids are other pieces of the same texts. Draw from the whole vocabulary: torch.randint(vocab_size, "
     "ids.shape, generator=generator).",
     _masking(random_ids=lambda ids, V, g: torch.randint(5, V // 2, ids.shape, generator=g))),
    (f"The generator is not used: two calls with the same seed differ. {USE_GENERATOR}",
     _masking(generator=lambda given: _unseeded())),
    (f"The generator is not used, but one of your own: another seed changes nothing. {USE_GENERATOR}",
     _masking(generator=lambda given: torch.Generator().manual_seed(0))),
), counts=_masking_counts)


# --- mean_pool -----------------------------------------------------------------------------------------------

def mean_pool(states: Tensor, mask: Tensor) -> Tensor:
    """states (B, T, d); mask bool (B, T), True = a piece, False = padding
    -> (B, d): the mean of a text's states, without the padding; zeros for a text without pieces
    (Reimers and Gurevych 2019, section 3)
    """
    return _pooled()(states, mask)


def _pooled(total=lambda states, mask: (states * mask.unsqueeze(-1)).sum(1),
            n=lambda states, mask: mask.sum(1, keepdim=True).clamp(min=1)):
    """A sum of states, divided by a number."""
    return lambda states, mask: total(states, mask) / n(states, mask)


def _pool_inputs(in_front=False, empty=False):
    """A maker of inputs; every text has two pieces or more, and padding; with `empty` the first has no piece."""
    def make(rng):
        B, T, d = sizes(rng, 3)
        T += 6
        mask = torch.arange(T) < torch.randint(2, T, (B, 1), generator=rng)
        if empty:
            mask[0] = False
        return randn(rng, B, T, d) + 1, mask.flip(1) if in_front else mask
    return make


def _all(states, mask):
    return states.sum(1)


PADDING_IN_THE_SUM = ("Padding is added up, too: it has states like all others. Make them zero: "
                      "states * mask.unsqueeze(-1).")
COUNT_PIECES = "Count the pieces, not the places: mask.sum(dim=1, keepdim=True)."
EMPTY = "A text without pieces divides by 0. Let the number be 1 at least: .clamp(min=1); its sum is zero already."

MEAN_POOL = Exercise(mean_pool, {"pooled": "B, d"}, {
    "on ordinary inputs": _pool_inputs(),
    "when the padding stands in front": _pool_inputs(in_front=True),
    "when a text has no pieces": _pool_inputs(empty=True),
}, (
    (f"This is the mean over all places. {PADDING_IN_THE_SUM} {COUNT_PIECES}",
     _pooled(_all, lambda states, mask: mask.size(1))),
    (PADDING_IN_THE_SUM, _pooled(_all)),
    ("The numbers of pieces are (B,), the sums (B, d): keep the axis with mask.sum(dim=1, keepdim=True).",
     _pooled(n=lambda states, mask: mask.sum(1).clamp(min=1))),
    (f"The sum is divided by T, padding included. {COUNT_PIECES}", _pooled(n=lambda states, mask: mask.size(1))),
    ("This is the sum. Divide by the number of pieces.", _pooled(n=lambda states, mask: 1)),
    ("The sum is divided by the root of the number of pieces. That was exercise 7 of lesson 04; a mean divides by the "
     "number itself.", _pooled(n=lambda states, mask: mask.sum(1, keepdim=True).clamp(min=1).sqrt())),
    ("The sum is divided by the number of pieces in the whole batch. Each text has its own: mask.sum(dim=1, "
     "keepdim=True).", _pooled(n=lambda states, mask: mask.sum())),
    ("The sum is divided by d. Divide by the number of pieces.", _pooled(n=lambda states, mask: states.size(-1))),
    ("This is the first state, that of [CLS]. Take the mean of all pieces.", lambda states, mask: states[:, 0]),
    ("This is the last state, and most texts end with padding. Take the mean of all pieces.",
     lambda states, mask: states[:, -1]),
    ("This is the largest number of each feature. Take the mean.",
     lambda states, mask: states.masked_fill(~mask.unsqueeze(-1), -math.inf).amax(1)),
    ("This is the largest number of each feature, padding among them. Take the mean of the pieces.",
     lambda states, mask: states.amax(1)),
    ("The mask is inverted: this is the mean of the padding. True means that there is a piece.",
     lambda states, mask: mean_pool(states, ~mask)),
    ("The mean runs over the features: one number for each piece. It runs over the pieces, dim=1.",
     lambda states, mask: states.mean(-1)),
    ("The mean runs over the features: one number for each piece. It runs over the pieces, dim=1.",
     lambda states, mask: (states * mask.unsqueeze(-1)).mean(-1)),
    ("The mean runs over the batch. It runs over the pieces, dim=1.", lambda states, mask: states.mean(0)),
    ("states[mask] puts the pieces of all texts into one list. Keep the batch: states * mask.unsqueeze(-1).",
     lambda states, mask: states[mask].mean(0)),
    ("(B, T, d) times (B, T) do not line up. Give the mask an axis for the features: mask.unsqueeze(-1).",
     lambda states, mask: states * mask),
    ("The pieces are taken from the left, as many as there are. Padding may stand in front: ask the mask which places "
     "are pieces.", lambda states, mask: mean_pool(states, torch.arange(mask.size(1)) < mask.sum(1, keepdim=True))),
    (EMPTY, _pooled(n=lambda states, mask: mask.sum(1, keepdim=True))),
))


# --- span_f1 -------------------------------------------------------------------------------------------------

def span_f1(prediction: str, truth: str) -> float:
    """prediction, truth: two answers
    -> F1 of their words, counted with repetitions, after lower case and without punctuation and the articles a, an,
    the; both empty then: 1.0; one empty, or no word shared: 0.0 (Rajpurkar et al. 2016, section 6.1)
    """
    return _f1_of()(prediction, truth)


def _no_punctuation(text: str, by: str = "") -> str:
    return text.translate({ord(mark): by for mark in string.punctuation})


def _no_articles(words: list[str]) -> list[str]:
    return [word for word in words if word not in ("a", "an", "the")]


def _normal(text: str) -> list[str]:
    return _no_articles(_no_punctuation(text.lower()).split())


def _overlap(p: list[str], t: list[str]) -> int:
    return (Counter(p) & Counter(t)).total()


def _harmonic(shared: int, n_p: int, n_t: int) -> float:
    return 2 * shared / (n_p + n_t)


def _f1_of(words=_normal, overlap=_overlap, score=_harmonic, length=len,
           empty=lambda p, t: float(p == t)):
    """F1 of two answers, of which a part may be wrong."""
    def f1(prediction, truth):
        p, t = words(prediction), words(truth)
        if not p or not t:
            return empty(p, t)
        return score(overlap(p, t), length(p), length(t))
    return f1


def _by_halves(shared, n_p, n_t):
    """Precision and recall first, which fails if nothing is shared."""
    precision, recall = shared / n_p, shared / n_t
    return 2 * precision * recall / (precision + recall)


def _divides(p, t):
    return _by_halves(0, len(p), len(t))


WORDS = ("small", "grey", "cat", "river", "bank", "deep", "learning", "seven", "year", "old", "theatre", "analysis",
         "banana", "another")


def _answers(change=lambda rng, words: words):
    """A maker of inputs: two answers of different lengths that share one word or two; `change` is for each of both."""
    def make(rng):
        shared = _number(rng, 1, 2)
        words = _pick(rng, WORDS, shared + 5)
        p, t = words[:shared + 1], words[:shared] + words[shared + 1:shared + 4]
        p, t = (change(rng, _pick(rng, part, len(part))) for part in (p, t))
        return (" ".join(p), " ".join(t)) if _number(rng, 0, 1) else (" ".join(t), " ".join(p))
    return make


def _repeated(rng):
    """A word that stands in both, three times in one and twice in the other, and in one pair only once."""
    word, *others = _pick(rng, WORDS, 4)
    p, t = [word] * 3 + others[:1], [word] * _number(rng, 1, 2) + others[1:]
    return (" ".join(p), " ".join(t)) if _number(rng, 0, 1) else (" ".join(t), " ".join(p))


def _some(rng, words, changed):
    """One word of each answer, and by chance others, changed."""
    first = _number(rng, 0, len(words) - 1)
    return [changed(word) if i == first or _number(rng, 0, 1) else word for i, word in enumerate(words)]


def _with_articles(rng, words):
    """One in front and by chance others; the name Ana would vanish if articles were cut out of words."""
    return [part for i, word in enumerate([*words, "ana"])
            for part in ([("a", "an", "the")[_number(rng, 0, 2)]] if i == 0 or _number(rng, 0, 1) else []) + [word]]


def _with_marks(rng, words):
    """Marks around words, and one inside: U.S. is us."""
    marked = _some(rng, words, lambda word: word + ",.!?:"[_number(rng, 0, 4)])
    return [*marked, ("u.s.", "us")[_number(rng, 0, 1)]]


def _with_everything(rng, words):
    return ["The", '"' + words[0].upper() + ',"', *words[1:], "A.", "u.s."]


def _nothing_shared(rng):
    words = _pick(rng, WORDS, 5)
    return " ".join(words[:2]), " ".join(words[2:])


def _one_empty(rng):
    words = " ".join(_pick(rng, WORDS, 2))
    return (words, "") if _number(rng, 0, 1) else ("", words)


def _both_empty(rng):
    return tuple(("", "The", "a.")[i] for i in torch.randint(3, (2,), generator=rng).tolist())


REPEATED = ("A word counts as often as it stands in both, the smaller of the two numbers: "
            "(Counter(p) & Counter(t)).total().")
BOTH_SIDES = "F1 takes both: 2 · precision · recall / (precision + recall)."
ARTICLES = "The articles a, an and the are left out of both answers."
NOT_DIVIDED = "Precision and recall are both 0, and 0 is divided by 0. If no word is shared, return 0.0."

SPAN_F1 = Exercise(span_f1, {"f1": ""}, {
    "on ordinary inputs": _answers(),
    "when a word stands there more than once": _repeated,
    "with capital letters": _answers(lambda rng, words: _some(rng, words, str.upper)),
    "with articles": _answers(_with_articles),
    "with punctuation": _answers(_with_marks),
    "with capitals, punctuation and articles at once": _answers(_with_everything),
    "when no word is shared": _nothing_shared,
    "when one of the answers is empty": _one_empty,
    "when nothing is left of both (no words, or articles only)": _both_empty,
}, (
    (f"This is the precision: the share of the prediction's words that are right. {BOTH_SIDES}",
     _f1_of(score=lambda shared, n_p, n_t: shared / n_p)),
    (f"This is the recall: the share of the true words that were found. {BOTH_SIDES}",
     _f1_of(score=lambda shared, n_p, n_t: shared / n_t)),
    (f"This is the mean of precision and recall. {BOTH_SIDES} That is never above their mean.",
     _f1_of(score=lambda shared, n_p, n_t: (shared / n_p + shared / n_t) / 2)),
    (f"This is precision times recall. {BOTH_SIDES}",
     _f1_of(score=lambda shared, n_p, n_t: shared * shared / n_p / n_t)),
    (f"The factor 2 is missing. {BOTH_SIDES}", _f1_of(score=lambda shared, n_p, n_t: shared / (n_p + n_t))),
    ("Shared words are divided by all different words (Jaccard). F1 divides twice the shared by the sum of both "
     "lengths.", _f1_of(score=lambda shared, n_p, n_t: shared / (n_p + n_t - shared))),
    ("This is the number of shared words. F1 is a share.", _f1_of(score=lambda shared, n_p, n_t: float(shared))),
    ("The result is in per cent. It is a number from 0 to 1.",
     _f1_of(score=lambda shared, n_p, n_t: 200 * shared / (n_p + n_t), empty=lambda p, t: 100.0 * (p == t))),
    ("This is the exact match: 1 if the answers are the same, else 0. F1 also rewards a part.",
     lambda prediction, truth: float(_normal(prediction) == _normal(truth))),
    ("Words are compared place by place. A bag of words has no order: count the words that both have.",
     _f1_of(overlap=lambda p, t: sum(a == b for a, b in zip(p, t, strict=False)))),
    ("Letters are compared. Cut the answers into words first: .split().",
     _f1_of(lambda text: list(" ".join(_normal(text))))),
    ("Letters are compared. Cut the answers into words first: .split().",
     _f1_of(lambda text: list("".join(_normal(text))))),
    (f"Sets are compared, in which a word stands once. {REPEATED}",
     _f1_of(overlap=lambda p, t: len(set(p) & set(t)), length=lambda words: len(set(words)))),
    (f"The shared words are a set, in which a word stands once. {REPEATED}",
     _f1_of(overlap=lambda p, t: len(set(p) & set(t)))),
    (f"Every word of the prediction counts that stands in the truth, however often. {REPEATED}",
     _f1_of(overlap=lambda p, t: sum(word in t for word in p))),
    (f"Every word of the truth counts that stands in the prediction, however often. {REPEATED}",
     _f1_of(overlap=lambda p, t: sum(word in p for word in t))),
    ("Capital letters count as others. Bring both answers to lower case.",
     _f1_of(lambda text: _no_articles(_no_punctuation(text).split()))),
    (f"{ARTICLES} They count here.", _f1_of(lambda text: _no_punctuation(text.lower()).split())),
    (f"{ARTICLES} Only *the* is.",
     _f1_of(lambda text: [w for w in _no_punctuation(text.lower()).split() if w != "the"])),
    (f"{ARTICLES} *an* stays.",
     _f1_of(lambda text: [w for w in _no_punctuation(text.lower()).split() if w not in ("a", "the")])),
    ("Articles are cut out of other words, too (banana, Ana). Leave out whole words only.",
     _f1_of(lambda text: re.sub("the|an|a", "", _no_punctuation(text.lower())).split())),
    ("Articles are cut out of other words, too (banana, Ana). Leave out whole words only.",
     _f1_of(lambda text: re.sub("the|an|a", " ", _no_punctuation(text.lower())).split())),
    ("Punctuation stays with the words, so that *bank.* is not *bank*. Take out every mark of string.punctuation.",
     _f1_of(lambda text: _no_articles(text.lower().split()))),
    ("Punctuation is replaced by a space: u.s. becomes two words. SQuAD takes the marks out: us.",
     _f1_of(lambda text: _no_articles(_no_punctuation(text.lower(), " ").split()))),
    ("Punctuation is taken off the ends of words only: u.s. becomes u.s, not us. Take out every mark.",
     _f1_of(lambda text: _no_articles([w for word in text.lower().split() if (w := word.strip(string.punctuation))]))),
    ("Articles are taken out before lower case, so that *The* stays. In order: lower case, punctuation, articles.",
     _f1_of(lambda text: [w.lower() for w in _no_articles(_no_punctuation(text).split())])),
    ("Articles are taken out before punctuation, so that *a.* stays. In order: lower case, punctuation, articles.",
     _f1_of(lambda text: [w for word in _no_articles(text.lower().split()) if (w := _no_punctuation(word))])),
    (NOT_DIVIDED, _f1_of(score=_by_halves)),
    ("With both answers empty, 0 is divided by 0. They are the same: 1.0.",
     _f1_of(empty=lambda p, t: _harmonic(0, len(p), len(t)))),
    ("An empty answer has no words to divide by. First ask whether one of the two is empty.",
     _f1_of(empty=_divides)),
    ("Two empty answers are the same: 1.0.", _f1_of(empty=lambda p, t: 0.0)),
    ("One empty answer is no hit: 0.0. Only if both are empty it is 1.0.", _f1_of(empty=lambda p, t: 1.0)),
))


# --- best_span -----------------------------------------------------------------------------------------------

def best_span(start: Tensor, end: Tensor, is_passage: Tensor, max_len: int) -> tuple[int, int]:
    """start, end: logits (T,); is_passage bool (T,), False at [CLS], the question and [SEP]; max_len: pieces at most
    -> first, last: the places with the highest start[first] + end[last], both in the passage, first <= last, and at
    most max_len pieces from first to last, both counted (Devlin et al. 2019, section 4.2)
    """
    return _best()(start, end, is_passage, max_len)


def _in_order(n):
    """``(T, T)`` of how far the last piece is behind the first."""
    return n >= 0


def _best(score=lambda s, e: s.unsqueeze(1) + e, in_order=_in_order, short=lambda n, max_len: n < max_len,
          inside=lambda p: p.unsqueeze(1) & p, result=lambda i, j, p: (i, j)):
    """The best of all pairs, of which a part may be wrong."""
    def best(start, end, is_passage, max_len):
        place = torch.arange(len(start))
        n = place - place.unsqueeze(1)                                          # (T, T): last - first
        allowed = in_order(n) & short(n, max_len) & inside(is_passage)
        scores = score(start, end).masked_fill(~allowed, -math.inf)
        return result(*divmod(int(scores.argmax()), len(start)), is_passage)
    return best


def _anything(*given):
    return torch.tensor(True)


def _two_maxima(inside, result=lambda i, j: (i, j)):
    """The best start and the best end, each on its own."""
    def best(start, end, is_passage, max_len):
        if inside:
            start, end = (logits.masked_fill(~is_passage, -math.inf) for logits in (start, end))
        return result(int(start.argmax()), int(end.argmax()))
    return best


def _greedy(first_the_start):
    """The best start, then the best end that fits; or the other way round."""
    def best(start, end, is_passage, max_len):
        place = torch.arange(len(start))
        one, other = (start, end) if first_the_start else (end, start)
        fixed = int(one.masked_fill(~is_passage, -math.inf).argmax())
        n = place - fixed if first_the_start else fixed - place
        found = int(other.masked_fill(~(is_passage & (n >= 0) & (n < max_len)), -math.inf).argmax())
        return (fixed, found) if first_the_start else (found, fixed)
    return best


def _times_zero(start, end, is_passage, max_len):
    """What is not allowed gets the sum 0."""
    place = torch.arange(len(start))
    n = place - place.unsqueeze(1)
    allowed = (n >= 0) & (n < max_len) & is_passage & is_passage.unsqueeze(1)
    return divmod(int(((start.unsqueeze(1) + end) * allowed).argmax()), len(start))


def _logits(change=lambda rng, start, end, is_passage: None, max_len=None):
    """A maker of inputs: [CLS], a question, [SEP], a passage of eight pieces or more, [SEP]."""
    def make(rng):
        question, n, longest = _number(rng, 2, 5), _number(rng, 8, 12), _number(rng, 2, 4)
        T = question + n + 3
        place = torch.arange(T)
        is_passage = (place > question + 1) & (place < T - 1)
        start, end = 2 * randn(rng, T), 2 * randn(rng, T)
        change(rng, start, end, is_passage)
        return start, end, is_passage, max_len or longest
    return make


def _turned_round(rng, start, end, is_passage):
    """The highest start stands two places behind the highest end."""
    first = int(is_passage.nonzero()[_number(rng, 2, 5)])
    start[first], end[first - 1], end[first - 2] = 12.0, 6.0, 12.0


def _outside_is_higher(rng, start, end, is_passage):
    """[CLS] and the question have the highest logits, and the [SEP] at the end a high one."""
    start[~is_passage] += 12
    end[~is_passage] += 12


def _negative(rng, start, end, is_passage):
    start -= 20
    end -= 20


def _too_long(rng, start, end, is_passage):
    """The best start stands at the passage's beginning, the best end at its end."""
    places = is_passage.nonzero().flatten()
    start[places[0]], end[places[-1]] = 8.0, 8.0


ONE_PAIR = ("Start and end are chosen each on its own. It is the *pair* that must be allowed and best: add up all "
            "pairs, start.unsqueeze(1) + end is (T, T).")
SORTED = "The two are put in order afterwards; but then they are no longer a best start and a best end."
PASSAGE = "Both ends have to be in the passage: is_passage.unsqueeze(1) & is_passage."
LENGTH = "From first to last there are last - first + 1 pieces, at most max_len: last - first < max_len."

BEST_SPAN = Exercise(best_span, {"first": "", "last": ""}, {
    "on ordinary inputs": _logits(),
    "when the highest end stands before the highest start": _logits(_turned_round),
    "when the highest logits are those of [CLS] and the question": _logits(_outside_is_higher),
    "when all logits are negative": _logits(_negative),
    "when the best span is too long": _logits(_too_long),
    "with max_len = 1": _logits(max_len=1),
}, (
    (f"{ONE_PAIR}", _two_maxima(inside=False)),
    (f"{ONE_PAIR}", _two_maxima(inside=True)),
    (f"{SORTED} {ONE_PAIR}", _two_maxima(False, lambda i, j: (min(i, j), max(i, j)))),
    (f"{SORTED} {ONE_PAIR}", _two_maxima(True, lambda i, j: (min(i, j), max(i, j)))),
    ("First the best start is chosen, then an end for it. Another start with a better end may have the higher sum: "
     "compare all pairs.", _greedy(True)),
    ("First the best end is chosen, then a start for it. Another end with a better start may have the higher sum: "
     "compare all pairs.", _greedy(False)),
    ("last stands before first in some results. Rows of the sums are first, columns last: only the upper triangle is "
     "allowed, triu().", _best(in_order=_anything, short=lambda n, max_len: n.abs() < max_len)),
    ("last stands before first in some results. Rows of the sums are first, columns last: only the upper triangle is "
     "allowed, triu().", _best(in_order=_anything)),
    ("first and last are always different here. A span of one piece is allowed: first <= last.",
     _best(in_order=lambda n: n > 0, short=lambda n, max_len: n < max(max_len, 2))),
    ("first and last are always different here. A span of one piece is allowed: first <= last.",
     _best(in_order=lambda n: n > 0)),
    (f"is_passage is not used: [CLS] or the question may be the answer. {PASSAGE}", _best(inside=_anything)),
    (f"Only the start has to be in the passage here. {PASSAGE}",
     _best(inside=lambda p: p.unsqueeze(1))),
    (f"Only the end has to be in the passage here. {PASSAGE}", _best(inside=lambda p: p)),
    (f"One of the two in the passage is enough here (| is *or*). {PASSAGE}",
     _best(inside=lambda p: p.unsqueeze(1) | p)),
    ("is_passage is inverted: the answer is outside. True means that a place is in the passage.",
     _best(inside=lambda p: ~p.unsqueeze(1) & ~p)),
    (f"max_len is not used. {LENGTH}", _best(short=_anything)),
    (f"One piece too many is allowed. {LENGTH}", _best(short=lambda n, max_len: n <= max_len)),
    (f"One piece too few is allowed. {LENGTH}", _best(short=lambda n, max_len: n < max_len - 1)),
    (f"One piece too few is allowed. {LENGTH}", _best(short=lambda n, max_len: n < max(max_len - 1, 1))),
    ("last is one too far, as the end of a slice. Here last is the place of the last piece.",
     _best(result=lambda i, j, p: (i, j + 1))),
    ("The second result is the number of pieces. It is the place of the last one.",
     _best(result=lambda i, j, p: (i, j - i + 1))),
    ("The places are counted from the passage's beginning. Count from [CLS], which is 0.",
     _best(result=lambda i, j, p: (i - int(p.int().argmax()), j - int(p.int().argmax())))),
    ("first and last are swapped. Rows are first, columns last.", _best(result=lambda i, j, p: (j, i))),
    ("start and end are swapped: the first place gets the end's logit.", _best(lambda s, e: e.unsqueeze(1) + s)),
    ("The logits are multiplied: two low ones make a high product. Add them.", _best(lambda s, e: s.unsqueeze(1) * e)),
    ("The end's logit is not used.", _best(lambda s, e: s.unsqueeze(1) + 0 * e)),
    ("The start's logit is not used.", _best(lambda s, e: 0 * s.unsqueeze(1) + e)),
    ("What is not allowed gets the score 0, and that is more than a negative sum. Give it -inf.", _times_zero),
))


# --- scalar_mix ----------------------------------------------------------------------------------------------

def scalar_mix(states: Tensor, s: Tensor, gamma: Tensor) -> Tensor:
    """states (B, L+1, T, d): the embeddings and the outputs of L layers; s (L+1,): a number for each, learned, of any
    sign; gamma: a number, learned
    -> (B, T, d): gamma times the sum of the layers, weighted by the softmax of s (Peters et al. 2018, equation 1)
    """
    return _mixed()(states, s, gamma)


def _mixed(weights=lambda s: s.softmax(0), scale=lambda mixed, gamma: gamma * mixed):
    """A weighted sum of layers, of which a part may be wrong."""
    return lambda states, s, gamma: scale(torch.einsum("bltd,l->btd", states, weights(s)), gamma)


def _layers(same=False, large=False):
    """A maker of inputs; `same`: B, T and L+1 are one number, so that wrong axes do line up."""
    def make(rng):
        B, n, T, d = sizes(rng, 4)
        if same:
            B = T = n
        return randn(rng, B, n, T, d), (100 if large else 1) * randn(rng, n), randn(rng) + 2
    return make


WEIGHTS_SUM = "The weights are shares of the layers and sum to one: s.softmax(dim=0)."
LAYER_AXIS = ("The layers are axis 1 of the states: s.softmax(0).view(-1, 1, 1) lines up with them. Then sum over "
              "dim=1.")
GAMMA_LAST = "gamma scales the finished sum: gamma * (…)."

SCALAR_MIX = Exercise(scalar_mix, {"mixed": "B, T, d"}, {
    "on ordinary inputs": _layers(),
    "when B, L+1 and T are the same number, so that wrong axes line up": _layers(same=True),
    "when the numbers in s are large (around 100)": _layers(large=True),
}, (
    (f"{NO_SOFTMAX} {WEIGHTS_SUM}", _mixed(lambda s: s)),
    (f"s is divided by its sum, and that may be near zero or negative. {WEIGHTS_SUM}", _mixed(lambda s: s / s.sum())),
    (f"exp(s) is not divided by its sum. {WEIGHTS_SUM}", _mixed(torch.exp)),
    ("A sigmoid for each layer is no softmax: the weights do not sum to one.", _mixed(torch.sigmoid)),
    ("These are log-probabilities. Take the softmax.", _mixed(lambda s: s.log_softmax(0))),
    ("All layers have the same weight: the softmax is over an axis of one number, or s is not used.",
     _mixed(lambda s: torch.ones_like(s) / len(s))),
    ("The layers are added up: every weight is 1. The softmax is over an axis of one number, or s is not used.",
     _mixed(torch.ones_like)),
    ("The weighted layers are averaged: the softmax already sums to one, so take the sum.",
     _mixed(lambda s: s.softmax(0) / len(s))),
    ("The weights are in the wrong order: states[:, 0], the embeddings, gets s[0].",
     _mixed(lambda s: s.flip(0).softmax(0))),
    ("The softmax is of -s.", _mixed(lambda s: (-s).softmax(0))),
    ("This is the last layer only. Mix all of them.", lambda states, s, gamma: states[:, -1]),
    ("This is the last layer only, times gamma. Mix all of them.", lambda states, s, gamma: gamma * states[:, -1]),
    ("This is the layer with the highest weight only. Mix all of them.",
     lambda states, s, gamma: gamma * states[:, int(s.argmax())]),
    (f"gamma is forgotten. {GAMMA_LAST}", _mixed(scale=lambda mixed, gamma: mixed)),
    (f"The sum is divided by gamma. {GAMMA_LAST}", _mixed(scale=lambda mixed, gamma: mixed / gamma)),
    (f"gamma is added. {GAMMA_LAST}", _mixed(scale=lambda mixed, gamma: mixed + gamma)),
    (f"gamma is inside the softmax. {GAMMA_LAST}",
     lambda states, s, gamma: _mixed(scale=lambda mixed, gamma: mixed)(states, gamma * s, gamma)),
    (f"gamma is inside the softmax, as a temperature. {GAMMA_LAST}",
     lambda states, s, gamma: _mixed(scale=lambda mixed, gamma: mixed)(states, s / gamma, gamma)),
    ("The softmax is of gamma times s, and gamma is in front, too. Only in front.",
     lambda states, s, gamma: scalar_mix(states, gamma * s, gamma)),
    ("The softmax is over the states. It is over s, the weights of the layers: one for each layer, the same for all "
     "words.", lambda states, s, gamma: gamma * (states.softmax(1) * s.view(-1, 1, 1)).sum(1)),
    (f"The batch was summed, not the layers. {LAYER_AXIS}",
     lambda states, s, gamma: gamma * (states * s.softmax(0).view(-1, 1, 1)).sum(0)),
    ("The layers are weighted, but not added up: sum over dim=1.",
     lambda states, s, gamma: gamma * states * s.softmax(0).view(-1, 1, 1)),
    (f"The weights do not line up with the layers. {LAYER_AXIS}",
     lambda states, s, gamma: gamma * (states * s.softmax(0)).sum(1)),
    (f"The weights stand at the words, not at the layers. {LAYER_AXIS}",
     lambda states, s, gamma: gamma * (states * s.softmax(0).view(-1, 1)).sum(1)),
    (f"The weights stand at the texts of the batch, not at the layers. {LAYER_AXIS}",
     lambda states, s, gamma: gamma * (states * s.softmax(0).view(-1, 1, 1, 1)).sum(1)),
    ("exp(s) is infinite for large s. torch.softmax subtracts the largest first: s.softmax(0).",
     _mixed(lambda s: s.exp() / s.exp().sum())),
))


LESSON_05 = (PAIR_INPUT, SPLIT_WORD, MASK_TOKENS, MEAN_POOL, SPAN_F1, BEST_SPAN, SCALAR_MIX)
