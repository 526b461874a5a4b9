"""Lesson 01, the seq2seq bottleneck: the exercises, their solutions and the ways in which they go wrong."""

import math
from collections import Counter
from itertools import pairwise

import torch
import torch.nn.functional as F

from ..data.text import BOS, EOS, PAD
from ..metrics import bleu
from .engine import Exercise, each
from .inputs import maker, number, randn, sizes, targets


def pad_batch(sentences):
    """B lists of ids, of different lengths, to ids ``(B, T)``, padded at the end with PAD, and lengths ``(B,)``."""
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    ids = torch.full((len(sentences), int(lengths.max())), PAD)
    for row, sentence in enumerate(sentences):
        ids[row, :len(sentence)] = torch.tensor(sentence)
    return ids, lengths


def _sentences_inputs(rng):
    B, T = sizes(rng, 2)
    lengths = [*torch.randint(1, T, (B - 1,), generator=rng).tolist(), T]      # the longest is not the first
    return ([torch.randint(EOS + 1, 40, (length,), generator=rng).tolist() for length in lengths],)


PAD_BATCH = Exercise(pad_batch, {"ids": "B, T", "lengths": "B"}, {
    "on ordinary inputs": _sentences_inputs,
    "with a single sentence, of 90 words": lambda rng: (
        torch.randint(EOS + 1, 60_000, (1, 90), generator=rng).tolist(),),
    "when a sentence stands there twice": lambda rng: (2 * _sentences_inputs(rng)[0],),
}, (
    ("The padding stands in front. The words come first, the padding after them: the encoder reads from the left, "
     "and `lengths` says where it may stop.", "[row, :len(sentence)]", "[row, -len(sentence):]"),
    *each("The padding is not PAD = 0: 1 is BOS, 2 is EOS, and an embedding table has no row -1. Fill with PAD.",
          (", PAD)", ", 1)"), (", PAD)", ", -1)"), (", PAD)", ", 2)")),
    *each("The lengths are not the numbers of words. Count them before you pad: len(sentence).",
          ("ids, lengths", "ids, torch.tensor([len(row) for row in ids])"), ("ids, lengths", "ids, lengths - 1")),
    *each("The sentences were sorted by length. Row b belongs to sentence b: the other half of the pair is in that "
          "order.", ("lengths = torch", "sentences = sorted(sentences, key=len, reverse=True)\n    lengths = torch"),
          ("lengths = torch", "sentences = sorted(sentences, key=len)\n    lengths = torch")),
    ("An EOS was added. The sentences come with all their symbols: only padding is missing.",
     "lengths = torch", "sentences = [[*sentence, 2] for sentence in sentences]\n    lengths = torch"),
    ("A tensor is a rectangle, and these lists have different lengths. Pad the short ones first.",
     "torch.full((len(sentences), int(lengths.max())), PAD)", "torch.tensor(sentences)"),
), timed=lambda rng: (torch.randint(EOS + 1, 40, (64, 40), generator=rng).tolist(),))


def most_frequent_pair(words):
    """Counts ``{tuple of symbols: n}`` to the most frequent pair of neighbours, of equals the alphabetically first."""
    counts = Counter()
    for symbols, n in words.items():
        for pair in pairwise(symbols):
            counts[pair] += n
    return min(counts, key=lambda pair: (-counts[pair], pair))


def _letters(rng, n: int) -> str:
    return "".join("abdeghilnorst"[i] for i in torch.randperm(13, generator=rng)[:n].tolist())


def _words_inputs(rng):
    """A few words of few letters; no letter twice in a row, and one pair more frequent than all others."""
    while True:
        letters, words = _letters(rng, 4), {}
        for _ in range(number(rng, 6, 9)):
            word = [letters[i] for i in torch.randint(0, 4, (number(rng, 3, 7),), generator=rng)]
            if all(a != b for a, b in pairwise(word)):
                words[*word[:-1], word[-1] + "·"] = number(rng, 1, 20)
        most = Counter(pair for word, n in words.items() for pair in [*pairwise(word)] * n).most_common(2)
        if len(words) > 3 and most[0][1] > most[1][1]:
            return (words,)


@maker
def _words_of(rng, *words, step=1):
    """Words of a to e, for which other letters stand in the same order; counts n, n + step, …"""
    letters, n = "".join(sorted(_letters(rng, 5))), number(rng, 3, 9)
    letters = str.maketrans("abcdeABCDE", letters + letters.upper())
    return ({tuple(f"{word}·".translate(letters).split()): n + step * i for i, word in enumerate(words)},)


NEIGHBOURS, COUNT = "pairwise(symbols)", "counts[pair] += n"
BEST = "min(counts, key=lambda pair: (-counts[pair], pair))"
LEFT_OUT = "Pairs are left out. Of n symbols there are n - 1: l o w has (l, o) and (o, w), a a a has (a, a) twice."

MOST_FREQUENT_PAIR = Exercise(most_frequent_pair, {"pair": ""}, {
    "on ordinary inputs": _words_inputs,
    "when a pair stands twice in a word": _words_of("d e c d e b", "a b"),
    "when a letter stands three times in a row": _words_of("e e e b", "c d"),
    "when two pairs join to the same text": _words_of("cd e", "c de", "a b"),
    "when pairs are equally frequent": _words_of("b c", "a e", "a d", "c b", step=0),
    "when a word is written with a capital, too": _words_of("A b", "a b", "c d"),
    "when a word is a single symbol": _words_of("c b c", "b c", "a", step=20),
}, (
    *each("The counts are ignored: every word counts once. Add the word's count for each of its pairs.",
          (COUNT, "counts[pair] += 1"), (COUNT, "counts[pair] += 1", BEST, "max(counts, key=counts.get)")),
    *each("Any two symbols of a word are counted. A pair can be merged only if its symbols are neighbours.",
          (NEIGHBOURS, "((a, b) for i, a in enumerate(symbols) for b in symbols[i + 1:])"),
          (NEIGHBOURS, "((a, b) for i, a in enumerate(symbols) for b in symbols[i + 1:])",
           BEST, "max(counts, key=counts.get)")),
    *each(LEFT_OUT, (NEIGHBOURS, "zip(symbols[::2], symbols[1::2])"), (NEIGHBOURS, "pairwise(symbols[:-1])")),
    ("The order in a pair is lost: (a, b) and (b, a) are different pairs.",
     NEIGHBOURS, "map(tuple, map(sorted, pairwise(symbols)))"),
    *each("This is the rarest pair. BPE merges the most frequent one.", (BEST, "min(counts, key=counts.get)"),
          (BEST, "min(counts, key=lambda pair: (counts[pair], pair))")),
), reasons={
    "when a pair stands twice in a word":
        "A pair that stands twice in a word is counted once, as in a set or by `in`. Count every place.",
    "when a letter stands three times in a row": LEFT_OUT,
    "when pairs are equally frequent":
        "Of equally frequent pairs, another is returned than the alphabetically first (max() takes the one met first): "
        "min(counts, key=lambda pair: (-counts[pair], pair)).",
}, timed=lambda rng: ({tuple(_letters(rng, number(rng, 2, 9))): number(rng, 1, 99) for _ in range(40)},))


def gate_bias(fraction, steps):
    """The bias of a gate that keeps ``fraction`` of the state over ``steps`` steps."""
    gate = fraction ** (1 / steps)                          # kept at every step
    return math.log(gate / (1 - gate))                      # the sigmoid, undone


def _gate_inputs(rng, steps=None):
    """A fraction between 0.005 and 0.995, and a number of steps from 2."""
    return 0.005 + 0.99 * float(torch.rand((), generator=rng)), steps or number(rng, 2, 120)


GATE, UNDONE = "fraction ** (1 / steps)", "math.log(gate / (1 - gate))"

GATE_BIAS = Exercise(gate_bias, {"bias": ""}, {
    "on ordinary inputs": _gate_inputs,
    "with a single step": lambda rng: _gate_inputs(rng, 1),
    "when almost everything is kept over 1,000 steps": lambda rng: (0.99, 1000),
}, (
    *each("The losses are added up. They multiply: after n steps gate ** n is left, so the gate is the n-th root.",
          (GATE, "1 - (1 - fraction) / steps"), (GATE, "fraction / steps")),
    ("This is the power, not the root: the gate to the power of `steps` is to give `fraction`.",
     GATE, "fraction ** steps"),
    ("`fraction` is to be left after all steps, not after one: take the root.", GATE, "fraction"),
    ("This is the gate, not its bias. The gate is sigmoid(bias): undo the sigmoid.", UNDONE, "gate"),
    ("The sigmoid was applied once more. Undo it: log(gate / (1 - gate)).", UNDONE, "1 / (1 + math.exp(-gate))"),
    ("The sign is wrong: a gate above one half needs a positive bias.", UNDONE, "math.log((1 - gate) / gate)"),
    *each("The logarithm undoes an exponential. What undoes the sigmoid is log(gate / (1 - gate)).",
          (UNDONE, "math.log(gate)"), (UNDONE, "-math.log(gate)")),
    ("The exponential is natural, and so is its logarithm: math.log.", "math.log(", "math.log10("),
))


def gru_step(x, h, W_x, W_h, b_x, b_h):
    """Input ``(B, d_in)`` and state ``(B, d)`` to the next state; rows of W and b: reset, update, new."""
    x_r, x_z, x_n = (x @ W_x.T + b_x).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ W_h.T + b_h).chunk(3, dim=-1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h


def _gru_inputs(rng, B=None, far=0):
    """Biases of the input `far` above or below zero, and with them the sums."""
    b, d_in, d = sizes(rng, 3)
    x, h = randn(rng, B or b, d_in), randn(rng, B or b, d).tanh()
    W_x, W_h, b_x, b_h = (randn(rng, 3 * d, *columns) for columns in ((d_in,), (d,), (), ()))
    return x, h, W_x, W_h, b_x + far * b_x.sign(), b_h


NEW, NEXT = "x_n + r * h_n", "(1 - z) * n + z * h"
GATES = "r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()"

GRU_STEP = Exercise(gru_step, {"h": "B, d"}, {
    "on ordinary inputs": _gru_inputs,
    "with one sentence (B = 1)": lambda rng: _gru_inputs(rng, 1),
    "when the sums are far from zero (around 100 and -100)": lambda rng: _gru_inputs(rng, far=100),
}, (
    *each("The gates are taken in another order. In PyTorch's matrices the thirds are reset, update, new.",
          ("x_r, x_z, x_n", "x_z, x_r, x_n", "h_r, h_z, h_n", "h_z, h_r, h_n"),
          ("x_r, x_z, x_n", "x_r, x_n, x_z", "h_r, h_z, h_n", "h_r, h_n, h_z"),
          ("x_r, x_z, x_n", "x_n, x_z, x_r", "h_r, h_z, h_n", "h_n, h_z, h_r")),
    ("The update gate is the wrong way round: here z keeps the old state, h' = (1 - z) * n + z * h. (Cho et al. 2014 "
     "say so, too; Chung et al. 2014 swap the two.)", NEXT, "(1 - z) * h + z * n"),
    *each("The reset gate acts before the matrix product, W_hn (r * h), as in Cho et al. 2014. PyTorch multiplies "
          "afterwards, so that one product serves all three thirds: r * (W_hn h + b_hn).",
          *((NEW, f"x_n + (r * h) @ W_h[-h.size(1):].T{bias}") for bias in (" + b_h[-h.size(1):]", ""))),
    *each("The reset gate multiplies the old state's part, all of it, and no more: x_n + r * (W_hn h + b_hn).",
          (NEW, "x_n + h_n"), (NEW, "r * (x_n + h_n)"), (NEW, "x_n + r * (h_n - b_h[-h.size(1):]) + b_h[-h.size(1):]"),
          (NEW, "x_n"), (NEW, "r * x_n + h_n")),
    *each("The new state lies between -1 and 1: tanh.", (f"torch.tanh({NEW})", NEW),
          (f"torch.tanh({NEW})", f"torch.sigmoid({NEW})")),
    *each("A gate is a share between 0 and 1, each number on its own: sigmoid.", (GATES, "r, z = x_r + h_r, x_z + h_z"),
          (GATES, "r, z = (x_r + h_r).tanh(), (x_z + h_z).tanh()")),
    *each("The two shares of the mixture make one, and nothing follows: the next h is (1 - z) * n + z * h.",
          (NEXT, "n + z * h"), (NEXT, "h + (1 - z) * n"), (NEXT, "z * n + z * h")),
), reasons={
    "when the sums are far from zero (around 100 and -100)":
        "exp() overflows when a sum is far from zero, and the value or the gradient is NaN. Use torch.tanh and "
        "torch.sigmoid.",
}, timed=lambda rng: (randn(rng, 32, 64), randn(rng, 32, 128), randn(rng, 384, 64), randn(rng, 384, 128),
                     randn(rng, 384), randn(rng, 384)))


def shift(target):
    """``(B, T+1)`` of BOS, words, EOS and PAD to what the decoder reads and what it should say, each ``(B, T)``."""
    return target[:, :-1], target[:, 1:]


INPUTS, LABELS = "target[:, :-1]", "target[:, 1:]"
BOTH = f"{INPUTS}, {LABELS}"

SHIFT = Exercise(shift, {"inputs": "B, T", "labels": "B, T"}, {
    "on ordinary inputs": targets,
    "with one sentence (B = 1)": lambda rng: targets(rng, 1),
}, (
    *each("Both are the same: the decoder would be asked to copy what it reads. The inputs begin with BOS, target[:, "
          ":-1], and the labels are one word ahead, target[:, 1:].", (LABELS, INPUTS), (INPUTS, LABELS),
          (BOTH, "target, target")),
    *each("The labels are two words ahead. After BOS comes the first word: target[:, 1:].",
          (BOTH, "target[:, :-2], target[:, 2:]"), (LABELS, "F.pad(target[:, 2:], (0, 1))")),
    *each("BOS or EOS is cut off both. The decoder begins by reading BOS, and has to learn when to say EOS.",
          (BOTH, "target[:, 1:-1], target[:, 2:]"), (BOTH, "target[:, 1:-1], target[:, 1:-1]")),
    ("Sentences are cut off, not words: axis 0 is the batch. Time is axis 1.", BOTH, "target[:-1], target[1:]"),
    ("EOS is taken out of the inputs by its value. No need: where EOS is read, the label is PAD, which the loss skips. "
     "Leave out the last column, whatever it holds.", INPUTS, "target.masked_fill(target == EOS, PAD)[:, :-1]"),
    *each("EOS is taken out of the labels. The decoder has to learn when to stop.",
          (LABELS, "target.masked_fill(target == EOS, PAD)[:, 1:]"), (LABELS, "target[:, 1:-1]"),
          (BOTH, "target[:, :-2], target[:, 1:-1]")),
    ("The inputs begin with a second BOS. The target has one already: target[:, :-1].",
     INPUTS, f"F.pad(target[:, :-2], (1, 0), value={BOS})"),
    *each("One of the two is not cut. The inputs lose the last column, the labels the first: T columns each.",
          (INPUTS, "target"), (LABELS, "target"), (BOTH, "target, F.pad(target[:, 1:], (0, 1))")),
))


def beam_step(log_probs, scores, beam):
    """Next words' ``(K, V)`` and the hypotheses' own ``(K,)`` to scores, parents and words, each ``(beam,)``."""
    with torch.no_grad():                                           # a search learns nothing
        total = scores.unsqueeze(1) + log_probs                     # (K, V)
        best, flat = total.flatten().topk(beam)
    return best, flat // log_probs.size(1), flat % log_probs.size(1)


def _beam_inputs(rng, K=None, beam=None, low=1):
    V, k, b = sizes(rng, 3)
    V, K = V + 6, K or k                                       # more words than hypotheses
    return (3 * randn(rng, K, V)).log_softmax(-1), -3 * torch.rand(K, generator=rng) - low, beam or K


def _beam_leader(rng):
    """One hypothesis is far ahead: its words take every place."""
    log_probs, scores, beam = _beam_inputs(rng)
    return (log_probs / 3).log_softmax(-1), torch.cat([scores[:-1] - 20, scores[-1:]]), beam


SUM, BEST = "scores.unsqueeze(1) + log_probs", "best, flat = total.flatten().topk(beam)"
ROWS, OWN = "best, words = total.topk(beam, dim=1)", "torch.arange(len(scores))"
RETURNED = "best, flat // log_probs.size(1), flat % log_probs.size(1)"

BEAM_STEP = Exercise(beam_step, {"scores": "beam", "parents": "beam", "words": "beam"}, {
    "on ordinary inputs": _beam_inputs,
    "at the first step (K = 1)": lambda rng: _beam_inputs(rng, 1, 3),
    "when one hypothesis is far ahead": _beam_leader,
    "when the beam is wider than the vocabulary": lambda rng: _beam_inputs(rng, 4, 14),
    "when the scores are low (around -2000)": lambda rng: _beam_inputs(rng, low=2000),
}, (
    ("Log-probabilities add up, for the logarithm of a product is a sum: scores.unsqueeze(1) + log_probs.",
     SUM, "scores.unsqueeze(1) * log_probs"),
    *each("Probabilities and logarithms are mixed. log_probs and scores are logarithms, and so is the result (no exp, "
          "no log): a long sentence's probability underflows to 0.",
          *((SUM, total) for total in (f"{SUM}.exp()", f"{SUM}.log()", f"({SUM}).exp()",
                                       "(scores.exp()[:, None] * log_probs.exp()).log()"))),
    ("The worst continuations are taken. The best log-probability is the largest, the one nearest to 0.",
     "topk(beam)", "topk(beam, largest=False)"),
    ("The best stands last. Sort from the best down.", BEST, f"best, flat = (x.flip(0) for x in {BEST[13:]})"),
    *each("The best are chosen for each hypothesis apart. All K * V continuations compete for the same places: "
          "flatten them, then topk. A good hypothesis may have several children, a bad one none.",
          (BEST, "best, words = total.max(1)", RETURNED, f"best, {OWN}, words"), (BEST, ROWS, RETURNED,
           f"best.flatten(), {OWN}.repeat_interleave(best.size(1)), words.flatten()"),
          (BEST, ROWS, RETURNED, f"best, {OWN}, words")),
    *each("A flat index counts through rows of V words: parents = index // V, words = index % V.",
          (RETURNED, "best, flat // len(scores), flat % len(scores)"),
          (RETURNED, "best, flat // log_probs.size(1), flat"), (RETURNED, "best, flat, flat % log_probs.size(1)")),
    *each("The scores are only the old ones, or lack them. Return the sums.",
          ("return best", "return log_probs.flatten()[flat]"),
          ("return best", "return scores[flat // log_probs.size(1)]")),
), reasons={
    "when the beam is wider than the vocabulary":
        "No hypothesis has that many continuations: one row has V. Flatten first, or take min(beam, V) of each row.",
})


def bleu_by_length(sources, hypotheses, references, buckets):
    """Lists of lists of words, buckets ``[(low, high), …]``, to ``{(low, high): BLEU}``, no empty buckets."""
    scores = {}
    for low, high in buckets:
        chosen = [i for i, source in enumerate(sources) if low <= len(source) <= high]
        if chosen:
            scores[low, high] = bleu([hypotheses[i] for i in chosen], [references[i] for i in chosen])
    return scores


def _translations_inputs(rng, lengths=range(2, 11), buckets=((2, 4), (5, 7), (8, 10))):
    """Each length of source twice, and one source with other references, too; a reference and a hypothesis are a little
    longer or shorter.
    """
    def some(n):
        return [["a", "A", "b", "B", "c-c", "d'", "e.e", "f"][i] for i in torch.randint(0, 8, (n,), generator=rng)]
    sources = [some(lengths[i // 2]) for i in torch.randperm(2 * len(lengths), generator=rng)]
    sources.append([*sources[0]])
    references = [some(len(source) + number(rng, 0, 4)) for source in sources]
    hypotheses = [words[:len(words) - number(rng, 0, 2)] for words in references]
    for hypothesis in hypotheses:
        hypothesis[number(rng, 0, len(hypothesis))] = some(1)[0]
    return sources, hypotheses, references, list(buckets)


def _nothing_said(rng):
    sources, hypotheses, *others = _translations_inputs(rng)
    return sources, [words * (len(source) > 4) for source, words in zip(sources, hypotheses, strict=True)], *others


BETWEEN, BLEU = "low <= len(source) <= high", "bleu([hypotheses[i] for i in chosen], [references[i] for i in chosen])"

BLEU_BY_LENGTH = Exercise(bleu_by_length, {"scores": ""}, {
    "on ordinary inputs": _translations_inputs,
    "when a bucket is empty": lambda rng: _translations_inputs(rng, [2, 3, 4, 8, 9, 10]),
    "when a sentence fits no bucket, or two": lambda rng: _translations_inputs(rng, range(2, 13), ((3, 6), (5, 8))),
    "when the hypotheses of a bucket are empty (BLEU 0)": _nothing_said,
}, (
    ("The sentences are sorted by the length of their reference. Take the source's: it is what the encoder has to "
     "cram into one vector.", "enumerate(sources)", "enumerate(references)"),
    ("The sentences are sorted by the length of the hypothesis. A model that stops too early would move its mistakes "
     "into another bucket. Take the source's.", "enumerate(sources)", "enumerate(hypotheses)"),
    ("This is the mean of the sentences' BLEU. Corpus BLEU adds up the counts of all sentences first: give bleu the "
     "bucket's in one call.", BLEU, "sum(bleu([hypotheses[i]], [references[i]]) for i in chosen) / len(chosen)"),
    *each("An end is left out. Both belong to the bucket: low <= length <= high.",
          (BETWEEN, "low <= len(source) < high"), (BETWEEN, "low < len(source) <= high"),
          (BETWEEN, "low < len(source) < high")),
    *each("An end is not looked at: the bucket holds sentences of other lengths, too. Pick low <= length <= high.",
          (BETWEEN, "len(source) <= high"), (BETWEEN, "low <= len(source)")),
    ("The arguments of bleu have changed places. The hypotheses come first: the penalty for brevity is theirs.",
     "bleu([hypotheses[i]", "bleu([references[i]", "chosen], [references[i]", "chosen], [hypotheses[i]"),
    ("The words are changed (lower-cased, or split again). Give them to bleu as they are.",
     "[hypotheses[i] ", "[[word.lower() for word in hypotheses[i]] ",
     "[references[i] ", "[[word.lower() for word in references[i]] "),
    *each("Leave BLEU as bleu gives it, between 0 and 100: it is no sum, and no count.",
          (BLEU, f"{BLEU} / 100"), (BLEU, f"{BLEU} / len(chosen)")),
    ("The hypotheses are compared with the sources. Take the references.", "[references[i]", "[sources[i]"),
    ("Sentences longer than every bucket are put into the last one. Leave them out.",
     BETWEEN, "low <= len(source) <= (high if (low, high) != buckets[-1] else 99)"),
), reasons={
    "when a bucket is empty": "An empty bucket has no BLEU, and bleu refuses it. Leave the bucket out.",
})


def sampled_loss(hidden, targets, weight, candidates):
    """``(B, d)``, ids ``(B,)``, ``(V, d)``, sorted ids ``(C,)`` to the mean cross-entropy among the candidates."""
    logits = hidden @ weight[candidates].T                                  # (B, C)
    return F.cross_entropy(logits, torch.searchsorted(candidates, targets))


def _sampled_inputs(rng, all_words=False, scale=1, others=1):
    B, d = sizes(rng, 2)
    V = 20 + number(rng, 0, 5)
    targets = torch.randint(1, V, (B,), generator=rng)
    targets[0] *= not all_words
    some = torch.cat([targets, torch.randperm(V - 1, generator=rng)[:6] + 1])      # 0 is none, so that numbers move
    candidates = torch.arange(V) if all_words else some.unique()
    competes = torch.isin(torch.arange(V), candidates)[:, None]
    return scale * randn(rng, B, d), targets, randn(rng, V, d) * torch.where(competes, 1, others), candidates


LOGITS, NUMBERED = "hidden @ weight[candidates].T", "torch.searchsorted(candidates, targets)"
LOSS = f"F.cross_entropy(logits, {NUMBERED})"
SCORE = f"logits.gather(1, {NUMBERED}.unsqueeze(1))"                  # the target's own
ONE_HOT = f"F.one_hot({NUMBERED}, logits.size(1))"

ALL_ROWS = ("All rows of weight are multiplied, so nothing is saved; and all words compete, unless the others get -inf "
            "(with a score of 0 they do: exp(0) is 1). Take the rows first: weight[candidates].")

SAMPLED_LOSS = Exercise(sampled_loss, {"loss": ""}, {
    "on ordinary inputs": _sampled_inputs,
    "when every word is a candidate (the full loss)": lambda rng: _sampled_inputs(rng, all_words=True),
    "when the scores are large (in the hundreds)": lambda rng: _sampled_inputs(rng, scale=100),
    "when all rows but the candidates' are NaN (nobody need read them)": lambda rng: _sampled_inputs(
        rng, others=torch.nan),
}, (
    (ALL_ROWS, LOGITS, "hidden @ weight.T", NUMBERED, "targets"),
    ("A target's id is its row in weight, but the scores have one column a candidate, counted from zero. "
     "torch.searchsorted(candidates, targets) finds the column.", NUMBERED, "targets"),
    ("The first C rows of weight are taken. The candidates' rows are weight[candidates].",
     "weight[candidates]", "weight[:len(candidates)]"),
    *each("The loss is the mean over the batch, whatever the candidates: no sum, no factor.",
          (LOSS, f"{LOSS[:-1]}, reduction='sum')"), (LOSS, f"{LOSS} / logits.size(1)")),
    *each("These are sigmoids: every candidate is judged alone, right or noise, as in negative sampling. That learns "
          "good word vectors, but no probabilities of the next word. Let the candidates compete: cross_entropy.",
          (LOSS, f"F.binary_cross_entropy_with_logits(logits, {ONE_HOT}.float(), reduction='none').sum(1).mean()"),
          (LOSS, f"F.binary_cross_entropy_with_logits(logits, {ONE_HOT}.float())")),
    ("The minus sign is missing: this loss would be smallest for the worst model.", LOSS, f"-{LOSS}"),
    ("The logarithm is missing: cross-entropy is -log of the target's probability.", LOSS,
     f"-{SCORE.replace('logits', 'logits.softmax(1)')}.mean()"),
    ("The target is missing below the fraction. It is one of the candidates.", LOSS,
     f"(logits.masked_fill({ONE_HOT}.bool(), -torch.inf).logsumexp(1, keepdim=True) - {SCORE}).mean()"),
    ("The softmax is missing: these are the targets' scores alone. Nobody competes.", LOSS, f"-{SCORE}.mean()"),
    ("The softmax runs twice, or over the batch. Give cross_entropy the scores: it lets the candidates compete.",
     "entropy(logits", "entropy(logits.softmax(1)"),
), reasons={
    "when all rows but the candidates' are NaN (nobody need read them)": ALL_ROWS,
    "when the scores are large (in the hundreds)":
        "exp() overflows when scores are far from zero. F.cross_entropy, log_softmax and logsumexp subtract the "
        "largest score first.",
})


def probe(X, Y, X_test):
    """``(N, d + 1)``, one-hot ``(N, n_words)``, ``(M, d + 1)`` to columns ``(M,)``: a linear map, by least squares."""
    weights = torch.linalg.lstsq(X, Y).solution                             # (d + 1, n_words)
    return (X_test @ weights).argmax(dim=1)


def _probe_inputs(rng, columns=4, scale=1.0):
    """Clouds around n points that only a map with a bias can part; test rows that are decided clearly.

    They lie in n dimensions, so that X has n + 1 columns and Y n: weights the wrong way round do not fit by chance.
    """
    n = 4
    centres = 2.5 * F.pad(torch.eye(n)[:, 1:], (0, 1)) + 3 * torch.rand(n, generator=rng) + 1  # off the origin
    mix = torch.linalg.qr(randn(rng, n, n)).Q * torch.tensor([0.5, 1, 2, 1])
    labels = torch.tensor([0, 1, 2, 3, 0, 1, 0, 1, 0, 0] * 7)[torch.randperm(70, generator=rng)]
    test_labels = torch.randint(0, n, (80,), generator=rng)
    X, X_test = (F.pad(scale * (centres[of] + 0.5 * randn(rng, len(of), n)) @ mix, (0, 1), value=1.0)
                 for of in (labels, test_labels))
    Y = F.one_hot(torch.randperm(columns, generator=rng)[:n][labels], columns).float()
    best = (X_test @ torch.linalg.lstsq(X, Y).solution).topk(2).values
    return X, Y, X_test[best[:, 0] - best[:, 1] > 0.08][:40]


FIT, PREDICTED = "torch.linalg.lstsq(X, Y).solution", "(X_test @ weights).argmax(dim=1)"

PROBE = Exercise(probe, {"columns": "M"}, {
    "on ordinary inputs": _probe_inputs,
    "when some columns of Y are empty (words that never stand there)": lambda rng: _probe_inputs(rng, columns=26),
    "when the vectors are small (in the tenths)": lambda rng: _probe_inputs(rng, scale=0.1),
    "with one test row (M = 1)": lambda rng: tuple(x[:1] if i == 2 else x for i, x in enumerate(_probe_inputs(rng))),
}, (
    ("The map is fitted the wrong way round, from the words to the vectors. lstsq(A, B) finds the W for which A W is "
     "nearest to B: A are the vectors, B the one-hot rows.", FIT, "torch.linalg.lstsq(Y, X).solution.T"),
    ("The weights do not fit to X_test: they must have one row per column of X_test. lstsq(A, B) finds the W for "
     "which A W is nearest to B: A are the vectors, B the one-hot rows. Its solution is (d + 1, n_words), not to be "
     "transposed.", FIT, "torch.linalg.lstsq(Y, X).solution"),
    ("The column of ones is dropped, and with it the bias: every score is then 0 at the origin, wherever the vectors "
     "lie.", "(X, Y)", "(X[:, :-1], Y)", "X_test @", "X_test[:, :-1] @"),
    ("The map is fitted to the test rows, with the words of other rows. Fit it to X and Y; X_test is only looked at.",
     "lstsq(X, Y)", "lstsq(X_test, Y[:len(X_test)])"),
    ("The largest score is taken in each column: for each word, the row that fits it best. Go along each row: "
     "argmax(dim=1).", "dim=1", "dim=0"),
    ("The columns' numbers are fitted, as if word 7 lay between word 6 and word 8. They are names: fit the one-hot "
     "rows Y.", FIT, "torch.linalg.lstsq(X, Y.argmax(dim=1).float()[:, None]).solution",
     PREDICTED, "(X_test @ weights)[:, 0].round().long()"),
    *each("This is no least-squares fit, but correlations X^T Y, the nearest mean, or a fit with a large penalty on "
          "the weights: torch.linalg.lstsq.", (FIT, "X.T @ Y"),
          (PREDICTED, "torch.cdist(X_test, Y.T @ X / Y.sum(0)[:, None]).nan_to_num(1e9).argmin(dim=1)"),
          (FIT, "torch.linalg.solve(X.T @ X + 0.1 * torch.eye(X.size(1)), X.T @ Y)")),
    *each("These are scores. The prediction is the column of the largest: argmax(dim=1).",
          (".argmax(dim=1)", ""), (".argmax(dim=1)", ".amax(dim=1)")),
))


LESSON_01 = (PAD_BATCH, MOST_FREQUENT_PAIR, GATE_BIAS, GRU_STEP, SHIFT, BEAM_STEP, BLEU_BY_LENGTH, SAMPLED_LOSS,
             PROBE)
