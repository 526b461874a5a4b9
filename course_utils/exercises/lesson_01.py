"""Lesson 01, the seq2seq bottleneck: the exercises, their references and the ways in which they go wrong."""

from collections import Counter
from itertools import combinations

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.data.text import BOS, EOS, PAD
from course_utils.exercises.engine import Exercise
from course_utils.exercises.inputs import randn, sizes
from course_utils.metrics import bleu, exact_match

Words = dict[tuple[str, ...], int]
Sentences = list[list[str]]
Buckets = list[tuple[int, int]]


# --- pad_batch -----------------------------------------------------------------------------------------------

def pad_batch(sentences: list[list[int]]) -> tuple[Tensor, Tensor]:
    """B lists of ids, of different lengths (leave them as they are)
    -> ids (B, T) long, filled up at the end with PAD = 0; lengths (B,) long
    """
    lengths = [len(sentence) for sentence in sentences]
    return torch.tensor(_filled(sentences)), torch.tensor(lengths)


def _filled(sentences, fill=PAD):
    longest = max(map(len, sentences))
    return [[*sentence, *[fill] * (longest - len(sentence))] for sentence in sentences]


def _sentences_inputs(rng):
    B, T = sizes(rng, 2)
    lengths = torch.randint(1, T, (B,), generator=rng).tolist()
    lengths[-1] = T                                            # the longest is not the first
    return ([torch.randint(EOS + 1, 40, (length,), generator=rng).tolist() for length in lengths],)


def _padded(ids=_filled, lengths=lambda sentences: [len(sentence) for sentence in sentences]):
    return lambda sentences: (torch.tensor(ids(sentences)), torch.tensor(lengths(sentences)))


def _sorted(sentences, reverse):
    return pad_batch(sorted(sentences, key=len, reverse=reverse))


PAD_BATCH = Exercise(pad_batch, {"ids": "B, T", "lengths": "B"}, {
    "on ordinary inputs": _sentences_inputs,
    "with a single sentence": lambda rng: (_sentences_inputs(rng)[0][-1:],),
}, (
    ("The padding stands in front. The words come first, the padding after them: the encoder reads from the left, "
     "and `lengths` says where it may stop.",
     _padded(lambda s: [[*row[len(words):], *words] for words, row in zip(s, _filled(s), strict=True)])),
    ("The sentences are cut to the shortest. Pad to the longest: no word may be lost.",
     _padded(lambda s: [words[:min(map(len, s))] for words in s])),
    ("The sentences are cut to the shortest. Pad to the longest: no word may be lost.",
     _padded(lambda s: [words[:min(map(len, s))] for words in s], lambda s: [min(map(len, s))] * len(s))),
    ("The padding is 1, and that is BOS, the start of a sentence. Fill with PAD = 0.",
     _padded(lambda s: _filled(s, BOS))),
    ("The padding is 2, and that is EOS, the end of a sentence. Fill with PAD = 0.",
     _padded(lambda s: _filled(s, EOS))),
    ("The padding is -1. An id is a row of the embedding table, and there is no row -1. Fill with PAD = 0.",
     _padded(lambda s: _filled(s, -1))),
    ("The lengths were taken after the padding, so they are all T. Count the words before you pad.",
     _padded(lengths=lambda s: [max(map(len, s))] * len(s))),
    ("The lengths count the padding. Count the words.",
     _padded(lengths=lambda s: [max(map(len, s)) - len(words) for words in s])),
    ("These are the places of the last words. Places count from zero, lengths do not: len(sentence).",
     _padded(lengths=lambda s: [len(words) - 1 for words in s])),
    ("The order of the results is (ids, lengths).", lambda s: pad_batch(s)[::-1]),
    ("The ids are floats: torch.zeros makes floats. An embedding looks up whole numbers: dtype=torch.long.",
     lambda s: (pad_batch(s)[0].float(), pad_batch(s)[1])),
    ("The lengths are floats. They count words: dtype=torch.long.",
     lambda s: (pad_batch(s)[0], pad_batch(s)[1].float())),
    ("Time runs down the rows here, which is pad_sequence's default. One row a sentence: batch_first=True.",
     lambda s: (pad_batch(s)[0].T, pad_batch(s)[1])),
    ("Every sentence got padding, the longest too. T is the length of the longest: that one needs none.",
     _padded(lambda s: [[*row, PAD] for row in _filled(s)])),
    ("The sentences were sorted by length. Row b belongs to sentence b: the other half of the pair is in that order, "
     "too.", lambda s: _sorted(s, reverse=True)),
    ("The sentences were sorted by length. Row b belongs to sentence b: the other half of the pair is in that order, "
     "too.", lambda s: _sorted(s, reverse=False)),
    ("An EOS was added. The sentences come with all their symbols: only padding is missing.",
     _padded(lambda s: _filled([[*words, EOS] for words in s]))),
    ("An EOS was added. The sentences come with all their symbols: only padding is missing.",
     _padded(lambda s: _filled([[*words, EOS] for words in s]), lambda s: [len(words) + 1 for words in s])),
    ("A tensor is a rectangle, and these lists have different lengths. Pad the short ones first.",
     lambda s: (torch.tensor(s), torch.tensor([len(words) for words in s]))),
    ("A batch of one lost its axis: squeeze() drops every axis of length one. One sentence is still a batch, (1, T).",
     lambda s: (pad_batch(s)[0].squeeze(), pad_batch(s)[1])),
))


# --- most_frequent_pair --------------------------------------------------------------------------------------

def most_frequent_pair(words: Words) -> tuple[str, str]:
    """words: {tuple of symbols: the word's count}, e.g. {("l", "o", "w·"): 5}
    -> the most frequent pair of neighbours; of equals the alphabetically first
    """
    return _first(_count(words))


def _neighbours(word):
    return list(zip(word, word[1:], strict=False))


def _count(words: Words, pairs=_neighbours, times=lambda n: n) -> Counter:
    counts = Counter()
    for word, n in words.items():
        for pair in pairs(word):
            counts[pair] += times(n)
    return counts


def _first(counts: Counter):
    return min(counts, key=lambda pair: (-counts[pair], pair))


def _first_met(counts: Counter):
    return max(counts, key=counts.get)


def _letters(rng, n: int) -> list[str]:
    """Different letters, in any order."""
    return ["abdeghilnorst"[i] for i in torch.randperm(13, generator=rng)[:n].tolist()]


def _number(rng, low: int, high: int) -> int:
    return int(torch.randint(low, high, (), generator=rng))


def _words_inputs(rng):
    """A few words of few letters; no letter twice in a row, and one pair more frequent than all others."""
    while True:
        letters, words = _letters(rng, 4), {}
        for _ in range(_number(rng, 6, 9)):
            word = [letters[i] for i in torch.randint(0, 4, (_number(rng, 3, 7),), generator=rng)]
            if all(a != b for a, b in _neighbours(word)):
                words[*word[:-1], word[-1] + "·"] = _number(rng, 1, 20)
        best = _count(words).most_common(2)
        if len(words) > 3 and best[0][1] > best[1][1]:
            return (words,)


def _words_twice(rng):
    """``abcabf`` n times, ``de`` n + 1 times: ``ab`` wins only if both are counted."""
    a, b, c, d, e, f = _letters(rng, 6)
    n = _number(rng, 3, 9)
    return ({(a, b, c, a, b, f + "·"): n, (d, e + "·"): n + 1},)


def _words_tie(rng):
    """Three words equally often; the pair that is first in the alphabet stands in the second."""
    a, b, c, d = sorted(_letters(rng, 4))
    n = _number(rng, 3, 9)
    return ({(b, c + "·"): n, (a, b + "·"): n, (c, d + "·"): n},)


def _words_single(rng):
    """A frequent word of one symbol has no pair."""
    a, b, c = _letters(rng, 3)
    return ({(a + "·",): 50, (b, c + "·"): 4, (c, b, c + "·"): 3},)


def _both_ways(wrong_counts):
    """A wrong count, and the two usual ways to take its largest."""
    return lambda words: _first(wrong_counts(words)), lambda words: _first_met(wrong_counts(words))


MOST_FREQUENT_PAIR = Exercise(most_frequent_pair, {"pair": ""}, {
    "on ordinary inputs": _words_inputs,
    "when a pair stands twice in a word": _words_twice,
    "when two pairs are equally frequent": _words_tie,
    "when a word is a single symbol": _words_single,
}, (
    ("The pair is right, but a list: a pair of neighbours is a tuple, as the words themselves are. tuple(pair).",
     lambda words: list(most_frequent_pair(words))),
    *(("The counts are ignored: every word counts once. Add the word's count for each of its pairs.", wrong)
      for wrong in _both_ways(lambda words: _count(words, times=lambda n: 1))),
    *(("A pair that stands twice in a word is counted once, as in a set or by `in`. Count every place.", wrong)
      for wrong in _both_ways(lambda words: _count(words, lambda word: list(dict.fromkeys(_neighbours(word)))))),
    *(("Any two symbols of a word are counted. A pair can be merged only if its symbols are neighbours: "
       "zip(word, word[1:]).", wrong)
      for wrong in _both_ways(lambda words: _count(words, lambda word: combinations(word, 2)))),
    *(("Every second pair is left out. Pairs overlap: of l o w there are (l, o) and (o, w). Go on by one symbol.",
       wrong)
      for wrong in _both_ways(lambda words: _count(words, lambda word: zip(word[::2], word[1::2], strict=False)))),
    *(("The last pair of each word is left out. A word of n symbols has n - 1 pairs, that of the end among them.",
       wrong) for wrong in _both_ways(lambda words: _count(words, lambda word: _neighbours(word[:-1])))),
    *(("Only the first pair of each word is counted.", wrong)
      for wrong in _both_ways(lambda words: _count(words, lambda word: _neighbours(word[:2])))),
    *(("The order in a pair is lost: (a, b) and (b, a) are different pairs.", wrong)
      for wrong in _both_ways(lambda words: _count(words, lambda word: [tuple(sorted(p)) for p in _neighbours(word)]))),
    *(("These are three neighbours. A pair has two.", wrong)
      for wrong in _both_ways(lambda words: _count(words, lambda word: zip(word, word[1:], word[2:], strict=False)))),
    ("Of equally frequent pairs, the one met first is returned, as max() does: the result hangs on the order of the "
     "words. Take the alphabetically first: min(counts, key=lambda pair: (-counts[pair], pair)).",
     lambda words: _first_met(_count(words))),
    ("Of equally frequent pairs, the alphabetically last is returned. Take the first: "
     "min(counts, key=lambda pair: (-counts[pair], pair)).",
     lambda words: max((n, pair) for pair, n in _count(words).items())[1]),
    ("This is the rarest pair. BPE merges the most frequent one.",
     lambda words: min(_count(words).items(), key=lambda item: (item[1], item[0]))[0]),
    ("This is the rarest pair. BPE merges the most frequent one.",
     lambda words: min(_count(words), key=_count(words).get)),
    ("This is how often the pair occurs. Return the pair.", lambda words: max(_count(words).values())),
    ("The pair is joined to one symbol. Return both: merging is the next step.",
     lambda words: "".join(_first(_count(words)))),
    ("The pair is joined to one symbol. Return both: merging is the next step.",
     lambda words: "".join(_first_met(_count(words)))),
    ("These are all the counts. Return the pair with the largest.", _count),
    ("This is a list with one entry, such as most_common(1). Return the pair alone.",
     lambda words: _count(words).most_common(1)),
    ("This is the most frequent symbol. Count pairs of neighbours.",
     lambda words: _first(_count(words, lambda word: word))),
    ("This is the most frequent symbol. Count pairs of neighbours.",
     lambda words: _first_met(_count(words, lambda word: word))),
    ("This is the most frequent word. Count the pairs inside the words.", lambda words: max(words, key=words.get)),
))


# --- gru_step ------------------------------------------------------------------------------------------------

def gru_step(x: Tensor, h: Tensor, W_x: Tensor, W_h: Tensor, b_x: Tensor, b_h: Tensor) -> Tensor:
    """x (B, d_in), h (B, d), W_x (3d, d_in), W_h (3d, d), b_x (3d,), b_h (3d,);
    the rows of W_x, W_h, b_x, b_h are in nn.GRUCell's order: reset, update, new
    -> the next h (B, d)
    """
    return _gru(_torch_new, _mix)(x, h, W_x, W_h, b_x, b_h)


def _torch_new(r, h, x_n, h_n, W, b):
    return (x_n + r * h_n).tanh()


def _cho_new(r, h, x_n, h_n, W, b):
    return (x_n + (r * h) @ W.T + b).tanh()


def _mix(z, n, h):
    return (1 - z) * n + z * h


def _gru(new=_torch_new, mix=_mix, order=(0, 1, 2), gate=torch.sigmoid, use_b_x=True, use_b_h=True):
    """A GRU step; `order` says which third of the rows is taken for reset, update, new."""
    def step(x, h, W_x, W_h, b_x, b_h):
        of_x, of_h = x @ W_x.T + use_b_x * b_x, h @ W_h.T + use_b_h * b_h
        x_r, x_z, x_n = (of_x.chunk(3, -1)[i] for i in order)
        h_r, h_z, h_n = (of_h.chunk(3, -1)[i] for i in order)
        r, z = gate(x_r + h_r), gate(x_z + h_z)
        n = new(r, h, x_n, h_n, W_h.chunk(3)[order[2]], use_b_h * b_h.chunk(3)[order[2]])
        return mix(z, n, h)
    return step


def _gru_inputs(rng, B=None):
    b, d_in, d = sizes(rng, 3)
    return (randn(rng, B or b, d_in), randn(rng, B or b, d).tanh(), randn(rng, 3 * d, d_in), randn(rng, 3 * d, d),
            randn(rng, 3 * d), randn(rng, 3 * d))


GATES = "reset", "update", "new"

GRU_STEP = Exercise(gru_step, {"h": "B, d"}, {
    "on ordinary inputs": _gru_inputs,
    "with one sentence (B = 1)": lambda rng: _gru_inputs(rng, 1),
}, (
    *((f"The gates are taken in the order {', '.join(GATES[order.index(i)] for i in range(3))}. In PyTorch's matrices "
       "the thirds are reset, update, new.", _gru(order=order))
      for order in ((1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1))),
    ("The update gate is the wrong way round: here z keeps the old state, h' = (1 - z) * n + z * h. (Cho et al. 2014 "
     "say so, too; Chung et al. 2014 swap the two.)", _gru(mix=lambda z, n, h: (1 - z) * h + z * n)),
    ("The reset gate acts before the matrix product, W_hn (r * h), as in Cho et al. 2014. PyTorch multiplies "
     "afterwards, so that one product serves all three thirds: r * (W_hn h + b_hn).", _gru(_cho_new)),
    ("The reset gate acts before the matrix product, and that third's b_h is not there. PyTorch: "
     "r * (W_hn h + b_hn).", _gru(lambda r, h, x_n, h_n, W, b: (x_n + (r * h) @ W.T).tanh())),
    ("The reset gate is forgotten in the new state: n = tanh(W_in x + b_in + r * (W_hn h + b_hn)).",
     _gru(lambda r, h, x_n, h_n, W, b: (x_n + h_n).tanh())),
    ("The reset gate multiplies the input, too. It acts on the old state's part only.",
     _gru(lambda r, h, x_n, h_n, W, b: (r * (x_n + h_n)).tanh())),
    ("The reset gate multiplies the input's part. It belongs to the old state's: r * (W_hn h + b_hn).",
     _gru(lambda r, h, x_n, h_n, W, b: (r * x_n + h_n).tanh())),
    ("b_hn stands outside the brackets. The reset gate multiplies it, too: r * (W_hn h + b_hn).",
     _gru(lambda r, h, x_n, h_n, W, b: (x_n + r * (h_n - b) + b).tanh())),
    ("The old state's part of n is missing: n = tanh(W_in x + b_in + r * (W_hn h + b_hn)).",
     _gru(lambda r, h, x_n, h_n, W, b: x_n.tanh())),
    ("The new state goes through a sigmoid. A gate lies between 0 and 1; the state between -1 and 1: tanh.",
     _gru(lambda r, h, x_n, h_n, W, b: (x_n + r * h_n).sigmoid())),
    ("The new state's tanh is missing.", _gru(lambda r, h, x_n, h_n, W, b: x_n + r * h_n)),
    ("The gates go through tanh. A gate is a share, between 0 and 1: sigmoid.", _gru(gate=torch.tanh)),
    ("The gates' sigmoid is missing. A gate is a share, between 0 and 1.", _gru(gate=lambda x: x)),
    ("The gates go through a softmax. They are independent of each other: sigmoid.",
     _gru(gate=lambda x: x.softmax(-1))),
    ("The bias b_h is forgotten. Both products have one.", _gru(use_b_h=False)),
    ("The bias b_x is forgotten. Both products have one.", _gru(use_b_x=False)),
    ("Both biases are forgotten.", _gru(use_b_x=False, use_b_h=False)),
    ("This is the new state n. The next h mixes it with the old one: (1 - z) * n + z * h.",
     _gru(mix=lambda z, n, h: n)),
    ("This is the update gate. The next h is (1 - z) * n + z * h.", _gru(mix=lambda z, n, h: z)),
    ("n is added in full. The two shares make one: (1 - z) * n + z * h.", _gru(mix=lambda z, n, h: n + z * h)),
    ("h is added in full, as in a residual connection. The two shares make one: (1 - z) * n + z * h.",
     _gru(mix=lambda z, n, h: h + (1 - z) * n)),
    ("The update gate stands at the wrong terms: (1 - z) * n + z * h.", _gru(mix=lambda z, n, h: z * n + z * h)),
    ("The result goes through one more tanh. (1 - z) * n + z * h is final.",
     _gru(mix=lambda z, n, h: _mix(z, n, h).tanh())),
    ("The matrices are not transposed. W_x is (3d, d_in), so that W_x x in code is x @ W_x.T.",
     lambda x, h, W_x, W_h, b_x, b_h: x @ W_x),
    ("The matrices are not transposed. W_h is (3d, d), so that W_h h in code is h @ W_h.T.",
     lambda x, h, W_x, W_h, b_x, b_h: h @ W_h),
    ("The batch is missing: squeeze() drops every axis of length one. One sentence is still a batch, (1, d).",
     lambda *arguments: gru_step(*arguments).squeeze()),
))


# --- shift ---------------------------------------------------------------------------------------------------

def shift(target: Tensor) -> tuple[Tensor, Tensor]:
    """target (B, T+1): BOS = 1, the words, EOS = 2, then PAD = 0 in shorter sentences
    -> inputs (B, T), what the decoder reads; labels (B, T), what it should say next
    """
    return target[:, :-1], target[:, 1:]


def _target_inputs(rng, B=None):
    """Rows of BOS, words, EOS and padding; the last row has none."""
    b, columns = sizes(rng, 2)
    B, columns = B or b, columns + 6                           # at most 7 rows, at least 8 columns
    target = torch.randint(EOS + 1, 40, (B, columns), generator=rng)
    ends = torch.randint(1, columns - 1, (B,), generator=rng)
    ends[-1] = columns - 1
    target[:, 0] = BOS
    target[torch.arange(B), ends] = EOS
    return (target.masked_fill(torch.arange(columns) > ends[:, None], PAD),)


SAME = "Both are the same: the decoder would be asked to copy what it reads."

SHIFT = Exercise(shift, {"inputs": "B, T", "labels": "B, T"}, {
    "on ordinary inputs": _target_inputs,
    "with one sentence (B = 1)": lambda rng: _target_inputs(rng, 1),
}, (
    (SAME + " The labels are one word ahead: target[:, 1:].", lambda t: (t[:, :-1], t[:, :-1])),
    (SAME + " The inputs are one word behind, and begin with BOS: target[:, :-1].", lambda t: (t[:, 1:], t[:, 1:])),
    (SAME + " Cut the last column off the inputs, and the first off the labels.", lambda t: (t, t)),
    ("The two are swapped. The inputs begin with BOS, and the labels end with EOS.", lambda t: (t[:, 1:], t[:, :-1])),
    ("The labels are two words ahead. After BOS comes the first word: target[:, 1:].",
     lambda t: (t[:, :-2], t[:, 2:])),
    ("The labels are two words ahead. After BOS comes the first word: target[:, 1:].",
     lambda t: (t[:, :-1], F.pad(t[:, 2:], (0, 1), value=PAD))),
    ("BOS and EOS are cut off both. The decoder begins by reading BOS, and has to learn when to say EOS.",
     lambda t: (t[:, 1:-1], t[:, 1:-1])),
    ("The labels lost their last column. The decoder has to learn when to say EOS.",
     lambda t: (t[:, :-1], t[:, 1:-1])),
    ("The labels lost their last column. The decoder has to learn when to say EOS.",
     lambda t: (t[:, :-2], t[:, 1:-1])),
    ("EOS is taken out of the inputs by its value. No need: where EOS is read, the label is PAD, which the loss skips. "
     "Leave out the last column, whatever it holds.", lambda t: (t.masked_fill(t == EOS, PAD)[:, :-1], t[:, 1:])),
    ("EOS is taken out of the labels. The decoder has to learn when to stop.",
     lambda t: (t[:, :-1], t.masked_fill(t == EOS, PAD)[:, 1:])),
    ("Sentences are cut off, not words: axis 0 is the batch. Time is axis 1: target[:, :-1], target[:, 1:].",
     lambda t: (t[:-1], t[1:])),
    ("The inputs are not shortened. With T labels there are T inputs: target[:, :-1].", lambda t: (t, t[:, 1:])),
    ("The labels are not shortened. They begin with the first word: target[:, 1:].", lambda t: (t[:, :-1], t)),
    ("The labels are rolled, so the last one is BOS. Cut instead: target[:, 1:].",
     lambda t: (t, t.roll(-1, dims=1))),
    ("The inputs are rolled, so the first one is the end of the sentence. Cut instead: target[:, :-1].",
     lambda t: (t.roll(1, dims=1), t)),
    ("The inputs begin with a second BOS. The target has one already: target[:, :-1].",
     lambda t: (F.pad(t[:, :-2], (1, 0), value=BOS), t[:, 1:])),
))


# --- beam_step -----------------------------------------------------------------------------------------------

@torch.no_grad()
def beam_step(log_probs: Tensor, scores: Tensor, beam: int) -> tuple[Tensor, Tensor, Tensor]:
    """log_probs (K, V) of K hypotheses' next words, scores (K,): their own so far
    -> scores, parents (which of the K goes on), words (its next id),
    each (beam,), best first
    """
    return _search(log_probs + scores.unsqueeze(1), beam)


def _search(total: Tensor, beam: int, largest: bool = True):
    best, index = total.flatten().topk(beam, largest=largest)
    return best, index // total.size(1), index % total.size(1)


def _beam_of(total, beam=None, largest=True):
    """A wrong sum, and the rest right."""
    return lambda p, s, n: _search(total(p, s.unsqueeze(1)), n, largest)


def _beam_result(result):
    """A wrong answer made of the right scores, parents, words and the inputs."""
    return lambda p, s, n: result(*beam_step(p, s, n), p, s, n)


def _beam_each(p, s, n):
    """Each hypothesis continued by its own best word, sorted."""
    best, words = (p + s.unsqueeze(1)).max(1)
    order = best.argsort(descending=True)[:n]
    return best[order], order, words[order]


def _beam_unsorted(p, s, n):
    best, words = (p + s.unsqueeze(1)).max(1)
    return best, torch.arange(len(s)), words


def _beam_flattened(p, s, n):
    """The best n of each hypothesis, one after the other: K * n."""
    best, words = (p + s.unsqueeze(1)).topk(min(n, p.size(1)), 1)
    return best.flatten(), torch.arange(len(s)).repeat_interleave(best.size(1)), words.flatten()


def _beam_twice(p, s, n):
    """Right, but for a beam wider than the vocabulary: the best of each hypothesis, then the best of those."""
    best, words = (p + s.unsqueeze(1)).topk(n, 1)
    best, index = best.flatten().topk(n)
    return best, index // n, words.flatten()[index]


def _beam_inputs(rng, K=None, beam=None):
    V, k, b = sizes(rng, 3)
    V, K = V + 6, K or k                                       # more words than hypotheses
    return (3 * randn(rng, K, V)).log_softmax(-1), -3 * torch.rand(K, generator=rng) - 1, beam or K


def _beam_leader(rng):
    """One hypothesis is far ahead: its words take every place."""
    log_probs, scores, beam = _beam_inputs(rng)
    scores = scores - 20
    scores[-1] += 20
    return (log_probs / 3).log_softmax(-1), scores, beam


PER_HYPOTHESIS = ("The best are chosen for each hypothesis apart. All K * V continuations compete for the same places: "
                  "flatten them, then topk. A good hypothesis may have several children, a bad one none.")
SPLIT = "A flat index counts through rows of V words: parents = index // V, words = index % V."

BEAM_STEP = Exercise(beam_step, {"scores": "beam", "parents": "beam", "words": "beam"}, {
    "on ordinary inputs": _beam_inputs,
    "at the first step (K = 1)": lambda rng: _beam_inputs(rng, 1, 3),
    "when one hypothesis is far ahead": _beam_leader,
    "when the beam is wider than the vocabulary": lambda rng: _beam_inputs(rng, 4, 14),
}, (
    ("The scores so far are not added: a poor beginning would be forgotten. Add scores.unsqueeze(1).",
     _beam_of(lambda p, s: p)),
    ("Log-probabilities are multiplied. The logarithm of a product is a sum: add them.", _beam_of(lambda p, s: p * s)),
    ("The scores so far are subtracted. Log-probabilities add up.", _beam_of(lambda p, s: p - s)),
    ("Probabilities are added to log-probabilities. log_probs are logarithms already: no exp().",
     _beam_of(lambda p, s: p.exp() + s)),
    ("The logarithm is taken twice. log_probs are logarithms already.", _beam_of(lambda p, s: p.log() + s)),
    ("The scores come back as probabilities. Keep the logarithms: a long sentence's probability underflows to 0.",
     _beam_of(lambda p, s: (p + s).exp())),
    ("The scores are normalised once more over the whole beam. log_probs + scores is final.",
     _beam_of(lambda p, s: (p + s).flatten().log_softmax(0).view_as(p))),
    ("The scores are averaged. They add up.", _beam_of(lambda p, s: (p + s) / 2)),
    ("The worst continuations are taken. The best log-probability is the largest, the one nearest to 0.",
     _beam_of(lambda p, s: p + s, largest=False)),
    ("The best stands last. Sort from the best down.",
     _beam_result(lambda s, p, w, *_: (s.flip(0), p.flip(0), w.flip(0)))),
    ("No hypothesis has that many continuations: one row has V. Flatten first, or take min(beam, V) of each row.",
     _beam_twice),
    (PER_HYPOTHESIS, _beam_each),
    (PER_HYPOTHESIS, _beam_unsorted),
    (PER_HYPOTHESIS, _beam_flattened),
    (PER_HYPOTHESIS, lambda p, s, n: tuple(part[:n] for part in _beam_flattened(p, s, n))),
    (PER_HYPOTHESIS, lambda p, s, n: (*(p + s.unsqueeze(1)).topk(n, -1), torch.arange(len(s)))),
    (PER_HYPOTHESIS, lambda p, s, n: ((p + s.unsqueeze(1)).topk(n, -1)[0],
                                      torch.arange(len(s)).unsqueeze(1).expand(-1, n),
                                      (p + s.unsqueeze(1)).topk(n, -1)[1])),
    (PER_HYPOTHESIS, lambda p, s, n: ((p + s.unsqueeze(1)).topk(n, -1)[0], torch.arange(len(s)),
                                      (p + s.unsqueeze(1)).topk(n, -1)[1])),
    ("// and % have changed places. " + SPLIT, _beam_result(lambda s, p, w, *_: (s, w, p))),
    ("The flat index is not split: it is returned as the word. " + SPLIT,
     _beam_result(lambda s, p, w, logs, *_: (s, p, p * logs.size(1) + w))),
    ("The flat index is not split: it is returned as the parent. " + SPLIT,
     _beam_result(lambda s, p, w, logs, *_: (s, p * logs.size(1) + w, w))),
    ("The flat index is divided by K, the number of hypotheses. " + SPLIT,
     _beam_result(lambda s, p, w, logs, so_far, n: (
         s, (p * logs.size(1) + w) // len(so_far), (p * logs.size(1) + w) % len(so_far)))),
    ("The parents are floats: / divides, // divides and drops the rest.",
     _beam_result(lambda s, p, w, logs, *_: (s, (p * logs.size(1) + w) / logs.size(1), w))),
    ("The new scores lack the old ones. Return the sums.",
     _beam_result(lambda s, p, w, logs, *_: (logs[p, w], p, w))),
    ("The old scores come back. Return the sums.",
     _beam_result(lambda s, p, w, logs, so_far, n: (so_far[p], p, w))),
    ("The order of the results is (scores, parents, words).",
     _beam_result(lambda s, p, w, *_: (p, w, s))),
    ("(K, V) and (K,) do not line up. Give the scores an axis for the words: scores.unsqueeze(1).",
     lambda p, s, n: p + s),
    ("(K, V) and (K,) do not line up. Give the scores an axis for the words: scores.unsqueeze(1).",
     lambda p, s, n: s + p),
))


# --- bleu_by_length ------------------------------------------------------------------------------------------

def bleu_by_length(sources: Sentences, hypotheses: Sentences, references: Sentences,
                   buckets: Buckets) -> dict[tuple[int, int], float]:
    """three lists of lists of words; buckets: a list of (low, high), both ends included
    -> {(low, high): BLEU of the sentences whose source is that long}, no empty buckets
    """
    return _by_length(sources, hypotheses, references, buckets)


def _by_length(sources, hypotheses, references, buckets, lengths=None,
               inside=lambda low, n, high: low <= n <= high, metric=bleu, empty=None):
    """BLEU by the lengths of `lengths` (the sources)."""
    lengths, result = list(map(len, lengths or sources)), {}
    for low, high in buckets:
        chosen = [i for i, n in enumerate(lengths) if inside(low, n, high)]
        if chosen or empty == "crash":
            result[low, high] = metric([hypotheses[i] for i in chosen], [references[i] for i in chosen])
        elif empty is not None:
            result[low, high] = empty
    return result


def _mean_bleu(hypotheses, references):
    return sum(bleu([h], [r]) for h, r in zip(hypotheses, references, strict=True)) / len(hypotheses)


def _translations_inputs(rng, lengths=range(2, 11), buckets=((2, 4), (5, 7), (8, 10))):
    """Each length of source twice, with a reference and a hypothesis that are a little longer or shorter."""
    lengths = torch.tensor([*lengths, *lengths])[torch.randperm(2 * len(lengths), generator=rng)]
    letters, sources, hypotheses, references = "abcdefgh", [], [], []
    for n in lengths.tolist():
        sources.append([letters[i].upper() for i in torch.randint(0, 8, (n,), generator=rng)])
        reference = [letters[i] for i in torch.randint(0, 8, (n + _number(rng, 0, 4),), generator=rng)]
        hypothesis = reference[:len(reference) - _number(rng, 0, 2)]
        hypothesis[_number(rng, 0, len(hypothesis))] = letters[_number(rng, 0, 8)]
        references.append(reference)
        hypotheses.append(hypothesis)
    return sources, hypotheses, references, list(buckets)


def _translations_gap(rng):
    return _translations_inputs(rng, [2, 3, 4, 8, 9, 10])


def _translations_outside(rng):
    return _translations_inputs(rng, range(2, 13), ((3, 5), (6, 8)))


def _bleu_of(**changes):
    return lambda s, h, r, b: _by_length(s, h, r, b, **changes)


BLEU_BY_LENGTH = Exercise(bleu_by_length, {"scores": ""}, {
    "on ordinary inputs": _translations_inputs,
    "when a bucket is empty": _translations_gap,
    "when a sentence fits no bucket": _translations_outside,
}, (
    ("The sentences are sorted by the length of their reference. Take the source's: it is what the encoder has to "
     "cram into one vector.", lambda s, h, r, b: _by_length(s, h, r, b, lengths=r)),
    ("The sentences are sorted by the length of the hypothesis. A model that stops too early would move its mistakes "
     "into another bucket. Take the source's.", lambda s, h, r, b: _by_length(s, h, r, b, lengths=h)),
    ("This is the mean of the sentences' BLEU. Corpus BLEU adds up the counts of all sentences first: give bleu the "
     "bucket's sentences in one call.", _bleu_of(metric=_mean_bleu)),
    ("`high` is left out. Both ends belong to the bucket: low <= length <= high.",
     _bleu_of(inside=lambda low, n, high: low <= n < high)),
    ("`low` is left out. Both ends belong to the bucket: low <= length <= high.",
     _bleu_of(inside=lambda low, n, high: low < n <= high)),
    ("Both ends are left out. They belong to the bucket: low <= length <= high.",
     _bleu_of(inside=lambda low, n, high: low < n < high)),
    ("`low` is not looked at, so that a bucket holds all shorter sentences, too.",
     _bleu_of(inside=lambda low, n, high: n <= high)),
    ("`high` is not looked at, so that a bucket holds all longer sentences, too.",
     _bleu_of(inside=lambda low, n, high: low <= n)),
    ("The arguments of bleu have changed places. The hypotheses come first: the penalty for brevity is theirs.",
     _bleu_of(metric=lambda h, r: bleu(r, h))),
    ("Every bucket holds all sentences. Pick those of the bucket.",
     _bleu_of(inside=lambda low, n, high: True)),
    ("The hypotheses are compared with the sources. Compare them with the references.",
     lambda s, h, r, b: _by_length(s, h, s, b)),
    ("BLEU is divided by 100. Leave it as bleu gives it.", _bleu_of(metric=lambda h, r: bleu(h, r) / 100)),
    ("BLEU is divided by the number of sentences. Corpus BLEU is no sum: leave it as it is.",
     _bleu_of(metric=lambda h, r: bleu(h, r) / len(h))),
    ("This is how many sentences are in each bucket. Give bleu those sentences.",
     _bleu_of(metric=lambda h, r: len(h))),
    ("This is the share of sentences that are right word for word. Use bleu.", _bleu_of(metric=exact_match)),
    ("BLEU is rounded. Return it as it is.", _bleu_of(metric=lambda h, r: round(bleu(h, r), 1))),
    ("The keys are texts. Use the bucket itself, (low, high).",
     lambda s, h, r, b: {f"{low}-{high}": score for (low, high), score in bleu_by_length(s, h, r, b).items()}),
    ("The keys are the buckets' numbers. Use the bucket itself, (low, high).",
     lambda s, h, r, b: dict(enumerate(bleu_by_length(s, h, r, b).values()))),
    ("An empty bucket has no BLEU, and bleu refuses it. Leave the bucket out.", _bleu_of(empty="crash")),
    ("An empty bucket counts as 0, as if every translation were wrong. It has no BLEU: leave it out.",
     _bleu_of(empty=0.0)),
    ("An empty bucket has no BLEU: leave it out.", _bleu_of(metric=lambda h, r: bleu(h, r) if h else None,
                                                            empty="crash")),
    ("Sentences longer than every bucket are put into the last one. Leave them out.",
     lambda s, h, r, b: _by_length(s, h, r, b, inside=lambda low, n, high: low <= n <= high or n > high == b[-1][1])),
))


# --- sampled_loss --------------------------------------------------------------------------------------------

def sampled_loss(hidden: Tensor, targets: Tensor, weight: Tensor, candidates: Tensor) -> Tensor:
    """hidden (B, d), targets (B,) ids, weight (V, d): one row a word,
    candidates (C,) ids: ascending, none twice, all targets among them
    -> mean cross-entropy, shape (), in which only the candidates compete
    """
    return F.cross_entropy(hidden @ weight[candidates].T, torch.searchsorted(candidates, targets))


def _candidate_scores(hidden, targets, weight, candidates):
    return hidden @ weight[candidates].T, torch.searchsorted(candidates, targets)


def _sampled_inputs(rng, all_words=False):
    B, d = sizes(rng, 2)
    V = 20 + _number(rng, 0, 5)
    targets = torch.randint(1, V, (B,), generator=rng)
    others = torch.randperm(V - 1, generator=rng)[:6] + 1             # 0 is no candidate, so that numbers move
    candidates = torch.arange(V) if all_words else torch.cat([targets, others]).unique()
    return randn(rng, B, d), targets, randn(rng, V, d), candidates


def _sampled_only(rng):
    """The rows of all other words are NaN: who reads them, shows it."""
    hidden, targets, weight, candidates = _sampled_inputs(rng)
    return hidden, targets, torch.full_like(weight, torch.nan).index_copy(0, candidates, weight[candidates]), candidates


def _sampled_large(rng):
    hidden, *others = _sampled_inputs(rng)
    return 100 * hidden, *others


def _sampled(loss):
    """A wrong loss of the candidates' right scores ``(B, C)`` and the targets' new numbers."""
    return lambda h, t, w, c: loss(*_candidate_scores(h, t, w, c))


def _of_labels(table: Tensor, labels: Tensor) -> Tensor:
    return table.gather(1, labels.unsqueeze(1)).squeeze(1)


def _against_others(scores, labels):
    labelled = F.one_hot(labels, scores.size(1)).bool()
    return (scores.masked_fill(labelled, -torch.inf).logsumexp(1) - _of_labels(scores, labels)).mean()


def _binary(scores, labels, reduce):
    return reduce(F.binary_cross_entropy_with_logits(
        scores, F.one_hot(labels, scores.size(1)).to(scores.dtype), reduction="none"))


SIGMOIDS = ("These are sigmoids: every candidate is judged alone, right or noise, as in negative sampling. That learns "
            "good word vectors, but no probabilities of the next word. Let the candidates compete: cross_entropy.")
OVERFLOW = ("exp() overflows when scores are far from zero. F.cross_entropy, log_softmax and logsumexp subtract the "
            "largest score first.")

SAMPLED_LOSS = Exercise(sampled_loss, {"loss": ""}, {
    "on ordinary inputs": _sampled_inputs,
    "when every word is a candidate (the full loss)": lambda rng: _sampled_inputs(rng, all_words=True),
    "when the scores are large (in the hundreds)": _sampled_large,
    "when all rows but the candidates' are NaN (nobody need read them)": _sampled_only,
}, (
    ("All rows of weight are multiplied, and the other words hidden afterwards: right, but nothing is saved. Take the "
     "rows first: weight[candidates].",
     lambda h, t, w, c: F.cross_entropy(h @ w.T + torch.full((len(w),), -torch.inf).index_fill(0, c, 0.0), t)),
    ("The whole vocabulary competes: right, but nothing is saved. Take the candidates' rows: weight[candidates].",
     lambda h, t, w, c: F.cross_entropy(h @ w.T, t)),
    ("The targets are not renumbered: a target's id is its row in weight, but the scores have one column a candidate. "
     "torch.searchsorted(candidates, targets) finds the column.",
     lambda h, t, w, c: F.cross_entropy(h @ w[c].T, t)),
    ("The targets' numbers are one too high. They count from zero: torch.searchsorted without right=True.",
     lambda h, t, w, c: F.cross_entropy(h @ w[c].T, torch.searchsorted(c, t, right=True))),
    ("The first C rows of weight are taken. The candidates' rows are weight[candidates].",
     lambda h, t, w, c: F.cross_entropy(h @ w[:len(c)].T, torch.searchsorted(c, t))),
    ("This is the sum over the batch. Take the mean, so that the step does not grow with the batch.",
     _sampled(lambda s, t: F.cross_entropy(s, t, reduction="sum"))),
    ("This is one loss an example. Take their mean.", _sampled(lambda s, t: F.cross_entropy(s, t, reduction="none"))),
    ("The sum is divided by B * C. Divide by B: there is one loss an example.",
     _sampled(lambda s, t: F.cross_entropy(s, t) / s.size(1))),
    (SIGMOIDS, _sampled(lambda s, t: _binary(s, t, torch.mean))),
    (SIGMOIDS, _sampled(lambda s, t: _binary(s, t, torch.sum))),
    (SIGMOIDS, _sampled(lambda s, t: _binary(s, t, lambda each: each.sum(1).mean()))),
    (SIGMOIDS, _sampled(lambda s, t: -F.logsigmoid(_of_labels(s, t)).mean())),
    (OVERFLOW, _sampled(lambda s, t: -(_of_labels(s.exp(), t) / s.exp().sum(1)).log().mean())),
    (OVERFLOW, _sampled(lambda s, t: (s.exp().sum(1).log() - _of_labels(s, t)).mean())),
    (OVERFLOW, _sampled(lambda s, t: -_of_labels(s.softmax(1).log(), t).mean())),
    ("The minus sign is missing: this loss would be smallest for the worst model.",
     _sampled(lambda s, t: -F.cross_entropy(s, t))),
    ("The logarithm is missing: cross-entropy is -log of the target's probability.",
     _sampled(lambda s, t: -_of_labels(s.softmax(1), t).mean())),
    ("This is the targets' mean probability. Cross-entropy is the mean of its -log.",
     _sampled(lambda s, t: _of_labels(s.softmax(1), t).mean())),
    ("The softmax is missing: these are the targets' scores alone (nll_loss takes log-probabilities). Nobody competes.",
     _sampled(lambda s, t: -_of_labels(s, t).mean())),
    ("The softmax runs twice. cross_entropy contains one: give it the scores.",
     _sampled(lambda s, t: F.cross_entropy(s.softmax(1), t))),
    ("The softmax runs over the batch. The candidates compete, dim=1.",
     _sampled(lambda s, t: -_of_labels(s.log_softmax(0), t).mean())),
    ("The target itself is missing below the fraction. It is one of the candidates.", _sampled(_against_others)),
    ("Words that are no candidates get the score 0, and exp(0) is 1: they still compete.",
     lambda h, t, w, c: F.cross_entropy((h @ w.T) * F.one_hot(c, len(w)).sum(0), t)),
    ("The loss is scaled by V / C. It is the mean over the batch, whatever the candidates.",
     lambda h, t, w, c: sampled_loss(h, t, w, c) * len(w) / len(c)),
    ("weight is not transposed. It is (V, d), one row a word: hidden @ weight[candidates].T.",
     lambda h, t, w, c: h @ w[c]),
))


# --- probe ---------------------------------------------------------------------------------------------------

def probe(features: Tensor, labels: Tensor, test_features: Tensor) -> Tensor:
    """features (N, d), labels (N,) ids, test_features (M, d)
    -> labels (M,) as predicted by a linear map with a bias,
    fitted to the one-hot labels by least squares
    """
    return _scores(features, labels, test_features).argmax(1)


def _solve(features: Tensor, wanted: Tensor) -> Tensor:
    return torch.linalg.lstsq(features, wanted).solution


def _with_ones(features: Tensor) -> Tensor:
    return F.pad(features, (0, 1), value=1.0)


def _scores(features, labels, test_features, bias=_with_ones) -> Tensor:
    """``(M, ids)``: for each id, how strongly it is meant."""
    return bias(test_features) @ _solve(bias(features), F.one_hot(labels).to(features.dtype))


def _probe_inputs(rng, ids=lambda n: torch.arange(n)):
    """Clouds around n points that only a map with a bias can part; test rows that are decided clearly."""
    n = 4
    centres = 2.5 * torch.eye(n)[:, 1:] + 3 * torch.rand(n - 1, generator=rng) + 1     # (n, n - 1), off the origin
    mix = torch.linalg.qr(randn(rng, n - 1, n - 1)).Q * torch.tensor([0.5, 1, 2])
    labels = torch.tensor([0, 1, 2, 3, 0, 1, 0, 1, 0, 0] * 7)[torch.randperm(70, generator=rng)]
    test_labels = torch.randint(0, n, (80,), generator=rng)
    features, tests = ((centres[of] + 0.5 * randn(rng, len(of), n - 1)) @ mix for of in (labels, test_labels))
    best = _scores(features, labels, tests).topk(2).values
    labels = ids(n)[labels]
    return features, labels, tests[best[:, 0] - best[:, 1] > 0.08][:40]


def _probe_word_ids(rng):
    return _probe_inputs(rng, lambda n: torch.randperm(26, generator=rng)[:n] + EOS + 1)


def _probe_from(weights_of, result=lambda scores: scores.argmax(1)):
    """A wrong answer that fits other things: ``weights_of(features, one_hot, tests)``."""
    return lambda f, y, t: result(_with_ones(t) @ weights_of(_with_ones(f), F.one_hot(y).to(f.dtype), _with_ones(t)))


def _nearest_mean(f, y, t):
    ids = y.unique()
    return ids[torch.cdist(t, torch.stack([f[y == i].mean(0) for i in ids])).argmin(1)]


NO_BIAS = ("The bias is missing: without a column of ones every score is 0 at the origin, wherever the features lie. "
           "Add the column to both features and test_features.")
NUMBERED = ("These are the columns' numbers, not the labels. If the columns stand for labels.unique(), look up which: "
            "unique[columns].")
AS_NUMBERS = ("The ids themselves are fitted, as if word 7 lay between word 6 and word 8. Ids are names: fit one-hot "
              "rows, one column an id.")

PROBE = Exercise(probe, {"labels": "M"}, {
    "on ordinary inputs": _probe_inputs,
    "when the labels are words' ids, with gaps": _probe_word_ids,
}, (
    (NO_BIAS, lambda f, y, t: _scores(f, y, t, bias=lambda x: x).argmax(1)),
    ("The features are centred, and the bias is left out. Then the one-hot labels have to be centred, too: some ids "
     "are more frequent than others. A column of ones is easier.",
     lambda f, y, t: _scores(f - f.mean(0), y, t - f.mean(0), bias=lambda x: x).argmax(1)),
    ("The map is fitted to the test features, with labels of other rows. Fit it to features and labels; test_features "
     "are only looked at.", _probe_from(lambda f, one_hot, t: _solve(t, one_hot[:len(t)]))),
    ("These are the scores, one column an id. The prediction is the column with the largest: argmax(dim=1).",
     _scores),
    ("These are the largest scores. Return where they stand: argmax.",
     lambda f, y, t: _scores(f, y, t).max(1).values),
    ("The largest score is taken in each column: for each id, the row that fits it best. Go along each row: "
     "argmax(dim=1).", lambda f, y, t: _scores(f, y, t).argmax(0)),
    ("The smallest score is taken. Take the largest: argmax.", lambda f, y, t: _scores(f, y, t).argmin(1)),
    ("The labels were sorted, so they no longer belong to their rows.", lambda f, y, t: probe(f, y.sort().values, t)),
    ("The predictions are those of the training rows. Apply the map to test_features.",
     lambda f, y, t: probe(f, y, f)),
    (AS_NUMBERS, lambda f, y, t: (_with_ones(t) @ _solve(_with_ones(f), y.to(f.dtype)[:, None]))[:, 0].round().long()),
    (AS_NUMBERS, lambda f, y, t: (_with_ones(t) @ _solve(_with_ones(f), y.to(f.dtype)[:, None]))[:, 0].round()),
    (AS_NUMBERS, lambda f, y, t: (_with_ones(t) @ _solve(_with_ones(f), y.to(f.dtype)[:, None]))[:, 0]),
    (AS_NUMBERS, lambda f, y, t: (_with_ones(t) @ _solve(_with_ones(f), y.to(f.dtype)[:, None]))[:, 0].long()),
    ("The mean is taken off the training features, but not off the tests. Both need the same map: subtract the "
     "training mean from both, or neither.", lambda f, y, t: probe(f - f.mean(0), y, t)),
    ("Each set is centred by its own mean. The map was fitted with the training mean: use that for both.",
     lambda f, y, t: probe(f - f.mean(0), y, t - t.mean(0))),
    ("There is no fit: these are X^T Y, correlations. Least squares also needs the inverse of X^T X: "
     "torch.linalg.lstsq.", _probe_from(lambda f, one_hot, t: f.T @ one_hot)),
    ("This is the class with the nearest mean. Fit a linear map by least squares.", _nearest_mean),
    ("Every test row gets the most frequent label: the features are not used.",
     lambda f, y, t: y.mode().values.expand(len(t))),
    (NUMBERED, lambda f, y, t: probe(f, y.unique(return_inverse=True)[1], t)),
    ("The prediction is a float. Labels are ids: long.", lambda f, y, t: probe(f, y, t).to(f.dtype)),
    ("The prediction is one-hot. Return the ids: argmax(dim=1).", lambda f, y, t: F.one_hot(probe(f, y, t))),
))


LESSON_01 = (PAD_BATCH, MOST_FREQUENT_PAIR, GRU_STEP, SHIFT, BEAM_STEP, BLEU_BY_LENGTH, SAMPLED_LOSS, PROBE)
