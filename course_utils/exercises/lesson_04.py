"""Lesson 04, the Transformer: the exercises, their references and the ways in which they go wrong."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import permutations

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils import attention as ours
from course_utils.data.text import BOS, EOS, PAD
from course_utils.exercises.engine import Exercise
from course_utils.exercises.inputs import randn, sizes
from course_utils.exercises.lesson_01 import SAME
from course_utils.exercises.lesson_02 import WRONG_AXIS
from course_utils.exercises.lesson_03 import NO_SOFTMAX, NOT_BOOLEAN, TO_BE_ADDED

Sublayer = Callable[[Tensor], Tensor]
Layer = Callable[[Tensor, Tensor, Tensor], Tensor]


# --- layer_norm ----------------------------------------------------------------------------------------------

def layer_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    """x (B, T, d), gain (d,), bias (d,), eps: a small number, added to the variance
    -> (B, T, d): every word's d numbers with mean 0 and variance 1, then times gain, plus bias
    (Ba et al. 2016, section 3)
    """
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps)


def _root(var: Tensor, eps: float) -> Tensor:
    return (var + eps).sqrt()


def _shift_and_scale(z: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    return z * gain + bias


def _normed(dim=-1, correction=0, root=_root, result=_shift_and_scale, centre=lambda x, mean: x - mean):
    """A LayerNorm, of which a part may be wrong."""
    def norm(x, gain, bias, eps):
        mean, var = x.mean(dim, keepdim=True), x.var(dim, keepdim=True, correction=correction)
        return result(centre(x, mean) / root(var, eps), gain, bias)
    return norm


def _norm_inputs(scale=3.0, shift=1.0, eps=1e-5):
    """A maker of inputs; a word has at least eight numbers, so that its variance is never near zero by chance."""
    def make(rng):
        B, T, d = sizes(rng, 3)
        return scale * randn(rng, B, T, d + 6) + shift, 1 + randn(rng, d + 6), randn(rng, d + 6), eps
    return make


def _outside(var: Tensor, eps: float) -> Tensor:
    return var.sqrt() + eps


def _over(dim):
    """The statistics over other axes, in the usual four ways to compute them: few numbers make them differ."""
    return [_normed(dim, correction, root) for correction in (0, 1) for root in (_root, _outside)]


OVER = "Take mean and variance over the last axis, dim=-1: each word is normed with its own d numbers."
UNBIASED = ("The variance is divided by d - 1, which is the default of var() and std(). LayerNorm divides by d: "
            "correction=0.")
OUTSIDE = ("eps is added to the standard deviation, that is, outside the root. It belongs inside: the root of "
           "(variance + eps).")

LAYER_NORM = Exercise(layer_norm, {"normed": "B, T, d"}, {
    "on ordinary inputs": _norm_inputs(),
    "when the numbers are small (around 0.01), so that eps counts": _norm_inputs(0.01, 0.0, 1e-3),
}, (
    *((f"The statistics run over the batch: a word's result depends on the other sentences. {OVER}", wrong)
      for wrong in _over(0)),
    *((f"The statistics run over time: every word sees the others of its sentence, the later ones too. {OVER}", wrong)
      for wrong in _over(1)),
    *((f"The statistics run over all words of a sentence at once. {OVER}", wrong) for wrong in _over((1, 2))),
    *((f"The statistics run over batch and time, one mean for each feature. That is BatchNorm. {OVER}", wrong)
      for wrong in _over((0, 1))),
    *((f"There is one mean and one variance for all numbers of the batch. {OVER}", wrong)
      for wrong in _over((0, 1, 2))),
    (UNBIASED, _normed(correction=1)),
    ("The numbers are divided by the variance. Divide by its root.", _normed(root=lambda var, eps: var + eps)),
    ("The numbers are multiplied by the standard deviation. Divide.",
     _normed(root=lambda var, eps: 1 / (var + eps).sqrt())),
    ("The mean is subtracted, but the numbers are not divided by the standard deviation.",
     _normed(root=lambda var, eps: 1.0)),
    ("The mean is not subtracted.", _normed(centre=lambda x, mean: x)),
    ("This is RMSNorm: the root of the mean square, and no mean subtracted. LayerNorm takes the mean away first, then "
     "divides.", lambda x, gain, bias, eps: x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * gain + bias),
    ("gain and bias are forgotten: times gain, plus bias.", _normed(result=lambda z, gain, bias: z)),
    ("gain is forgotten: the normed numbers times gain.", _normed(result=lambda z, gain, bias: z + bias)),
    ("bias is forgotten: plus bias, at the end.", _normed(result=lambda z, gain, bias: z * gain)),
    ("gain and bias are swapped: times gain, plus bias.", _normed(result=lambda z, gain, bias: z * bias + gain)),
    ("bias is added before gain multiplies. First times gain, then plus bias.",
     _normed(result=lambda z, gain, bias: (z + bias) * gain)),
    ("The gain is counted from zero, as 1 + gain. Here it is the factor itself.",
     _normed(result=lambda z, gain, bias: z * (1 + gain) + bias)),
    ("Mean and variance lost an axis, so that (B, T) meets (B, T, d). Keep it: keepdim=True.",
     lambda x, gain, bias, eps: x - x.mean(-1)),
    ("eps is forgotten. Add it to the variance, inside the root.", _normed(root=lambda var, eps: var.sqrt())),
    (OUTSIDE, _normed(root=_outside)),
    ("eps is a number of your own, 1e-5. Use the one that is given.", _normed(root=lambda var, eps: _root(var, 1e-5))),
))


# --- smoothed_targets ----------------------------------------------------------------------------------------

def smoothed_targets(ids: Tensor, vocab_size: int, smoothing: float) -> Tensor:
    """ids (B, T) long, of the right words; smoothing: the share that is spread evenly over all words of the vocabulary
    -> (B, T, vocab_size) float32: 1 - smoothing at the right word, plus smoothing / vocab_size at every word
    (Szegedy et al. 2016, section 7)
    """
    return _smoothed(lambda hot, V, s: (1 - s) * hot + s / V)(ids, vocab_size, smoothing)


def _smoothed(mix):
    """Targets made of one-hot rows."""
    return lambda ids, vocab_size, smoothing: mix(F.one_hot(ids, vocab_size).float(), vocab_size, smoothing)


def _ids_inputs(rng):
    """The last word of the vocabulary does not occur."""
    B, T, V = sizes(rng, 3)
    smoothing = 0.1 + 0.3 * torch.rand((), generator=rng).item()
    return torch.randint(0, V + 5, (B, T), generator=rng), V + 6, smoothing


TO_THE_WRONG = ("The smoothing goes to the wrong words only, smoothing / (vocab_size - 1) to each. In PyTorch's label "
                "smoothing all words share it, the right one too: smoothing / vocab_size to each.")
NOT_ONE = "A row must sum to one, as probabilities do."

SMOOTHED_TARGETS = Exercise(smoothed_targets, {"targets": "B, T, vocab_size"}, {
    "on ordinary inputs": _ids_inputs,
}, (
    (TO_THE_WRONG, _smoothed(lambda hot, V, s: hot * (1 - s) + (1 - hot) * s / (V - 1))),
    (f"The right word lost the smoothing and got no share of it back. {NOT_ONE} All words get smoothing / vocab_size, "
     "the right one too.", _smoothed(lambda hot, V, s: hot * (1 - s) + (1 - hot) * s / V)),
    (f"The smoothing is added to a full one. {NOT_ONE} First take it away: 1 - smoothing at the right word.",
     _smoothed(lambda hot, V, s: hot + s / V)),
    (f"Every word gets the whole smoothing. {NOT_ONE} They share it: smoothing / vocab_size to each.",
     _smoothed(lambda hot, V, s: (1 - s) * hot + s)),
    (f"Every wrong word gets the whole smoothing. {NOT_ONE} All words share it: smoothing / vocab_size to each.",
     _smoothed(lambda hot, V, s: hot * (1 - s) + (1 - hot) * s)),
    (f"The smoothing is taken away and given to nobody. {NOT_ONE} Add smoothing / vocab_size everywhere.",
     _smoothed(lambda hot, V, s: (1 - s) * hot)),
    ("The targets are one-hot: the smoothing is not used.", _smoothed(lambda hot, V, s: hot)),
    ("smoothing and 1 - smoothing are swapped: the right word keeps 1 - smoothing.",
     _smoothed(lambda hot, V, s: s * hot + (1 - s) / V)),
    ("All words get the same. The right one keeps 1 - smoothing.", _smoothed(lambda hot, V, s: hot * 0 + 1 / V)),
    ("The smoothing is shared by the T words of a sentence. The words of the vocabulary share it: "
     "smoothing / vocab_size.", _smoothed(lambda hot, V, s: (1 - s) * hot + s / hot.size(1))),
    ("The vocabulary is the last axis: (B, T, vocab_size).", lambda ids, V, s: smoothed_targets(ids, V, s).mT),
    ("Batch and time have become one axis. Keep both: (B, T, vocab_size).",
     lambda ids, V, s: smoothed_targets(ids, V, s).flatten(0, 1)),
    ("one_hot was not told the size of the vocabulary, so it ends at the largest id that it saw: "
     "F.one_hot(ids, vocab_size).",
     lambda ids, V, s: (1 - s) * F.one_hot(ids).float() + s / V),
    ("one_hot was not told the size of the vocabulary, so it ends at the largest id that it saw: "
     "F.one_hot(ids, vocab_size).",
     lambda ids, V, s: smoothed_targets(ids, int(ids.max()) + 1, s)),
    ("These are whole numbers, which cannot hold a share. one_hot makes long: .float() first.",
     lambda ids, V, s: smoothed_targets(ids, V, s).long()),
))


# --- encoder_layer -------------------------------------------------------------------------------------------

def encoder_layer(x: Tensor, attention: Sublayer, feed_forward: Sublayer, norm_1: Sublayer, norm_2: Sublayer,
                  pre_norm: bool) -> Tensor:
    """x (B, T, d); attention, feed_forward, norm_1, norm_2: functions (B, T, d) -> (B, T, d);
    pre_norm: False = norm after each sum (Vaswani et al. 2017, section 3.1), True = norm in front of each sublayer
    (Xiong et al. 2020)
    -> (B, T, d): attention, then feed_forward, each with its own residual and its own norm
    """
    return (_pre_layer if pre_norm else _post_layer)(x, attention, feed_forward, norm_1, norm_2)


def _post_layer(x, a, f, norm_1, norm_2):
    x = norm_1(x + a(x))
    return norm_2(x + f(x))


def _pre_layer(x, a, f, norm_1, norm_2):
    x = x + a(norm_1(x))
    return x + f(norm_2(x))


def _paper(layer):
    """A layer that is wrong where the norms come after the sums, as in the paper."""
    return lambda x, a, f, n, m, pre_norm: (_pre_layer if pre_norm else layer)(x, a, f, n, m)


def _in_front(layer):
    """A layer that is wrong where the norms come in front of the sublayers."""
    return lambda x, a, f, n, m, pre_norm: (layer if pre_norm else _post_layer)(x, a, f, n, m)


@dataclass(frozen=True)
class _Part:
    """One of the functions that a layer is put together from, and its name."""

    name: str
    compute: Sublayer = field(compare=False)

    def __call__(self, x: Tensor) -> Tensor:
        return self.compute(x)

    def __repr__(self) -> str:
        return self.name


def _norm_part(rng, d):
    gain, bias = 1 + randn(rng, d) / 2, randn(rng, d)
    return _Part("a LayerNorm", lambda x: F.layer_norm(x, (d,), gain, bias))


def _layer_inputs(pre_norm):
    """A maker of inputs; each part has matrices of its own."""
    def make(rng):
        B, T, d = sizes(rng, 3)
        W, W_1, W_2 = (randn(rng, *shape) / math.sqrt(shape[0]) for shape in ((d, d), (d, 2 * d), (2 * d, d)))
        return (randn(rng, B, T, d), _Part("self-attention", lambda x: (x @ x.mT / d).softmax(-1) @ x @ W),
                _Part("a feed-forward network", lambda x: torch.relu(x @ W_1) @ W_2),
                _norm_part(rng, d), _norm_part(rng, d), pre_norm)
    return make


NO_RESIDUAL = "{} no residual: what went in is lost. Add it to what comes out: x + sublayer(…)."
NORM_OF_THE_OUTPUT = "Each norm gets what its sublayer returned."
THE_SUM = "With pre_norm=False it gets the sum: norm(x + sublayer(x))."
THE_INPUT = "With pre_norm=True it gets what the sublayer is to read: x + sublayer(norm(x))."
OWN_NORMS = "Each sublayer has a norm of its own: norm_1 belongs to attention, norm_2 to feed_forward."
TWICE = f"{{}} is used twice, {{}} never. {OWN_NORMS}"
FORGOTTEN = f"{{}} forgotten. {OWN_NORMS}"
OLD_X = ("feed_forward reads what the layer was given. It reads what attention has made: first x becomes the new sum, "
         "then go on with that.")
LONG_WAY = ("The second residual goes around both sublayers: it adds what the layer was given. It goes around "
            "feed_forward only, and adds what attention has made.")
LOST = "What attention has made is lost: the second half begins with the layer's input again."
ORDER = "feed_forward comes before attention. First attention, then feed_forward."
NORMED_WAY = ("{}: the normed x goes around the sublayer. Only the sublayer reads the norm. The residual adds x as it "
              "is: x + sublayer(norm(x)).")

ENCODER_LAYER = Exercise(encoder_layer, {"x": "B, T, d"}, {
    "with pre_norm=False": _layer_inputs(False),
    "with pre_norm=True": _layer_inputs(True),
}, (
    ("The norms come first, but pre_norm is False here: norm(x + sublayer(x)), after each sum. (Is pre_norm used, and "
     "the right way round?)", _paper(_pre_layer)),
    (NO_RESIDUAL.format("The sublayers have"), _paper(lambda x, a, f, n, m: m(f(n(a(x)))))),
    (NO_RESIDUAL.format("attention has"), _paper(lambda x, a, f, n, m: m((h := n(a(x))) + f(h)))),
    (NO_RESIDUAL.format("feed_forward has"), _paper(lambda x, a, f, n, m: m(f(n(x + a(x)))))),
    (f"{NORM_OF_THE_OUTPUT} {THE_SUM}", _paper(lambda x, a, f, n, m: (h := x + n(a(x))) + m(f(h)))),
    (TWICE.format("norm_1", "norm_2"), _paper(lambda x, a, f, n, m: _post_layer(x, a, f, n, n))),
    (TWICE.format("norm_2", "norm_1"), _paper(lambda x, a, f, n, m: _post_layer(x, a, f, m, m))),
    (f"norm_1 and norm_2 are swapped. {OWN_NORMS}", _paper(lambda x, a, f, n, m: _post_layer(x, a, f, m, n))),
    (FORGOTTEN.format("The norms are"), _paper(lambda x, a, f, n, m: (h := x + a(x)) + f(h))),
    (FORGOTTEN.format("norm_1 is"), _paper(lambda x, a, f, n, m: m((h := x + a(x)) + f(h)))),
    (FORGOTTEN.format("norm_2 is"), _paper(lambda x, a, f, n, m: (h := n(x + a(x))) + f(h))),
    (OLD_X, _paper(lambda x, a, f, n, m: m(n(x + a(x)) + f(x)))),
    (LONG_WAY, _paper(lambda x, a, f, n, m: m(x + f(n(x + a(x)))))),
    (LOST, _paper(lambda x, a, f, n, m: m(x + f(x)))),
    (ORDER, _paper(lambda x, a, f, n, m: _post_layer(x, f, a, n, m))),
    (ORDER, _paper(lambda x, a, f, n, m: _post_layer(x, f, a, m, n))),
    ("Each norm is there twice, in front of its sublayer and after the sum. With pre_norm=False only the sum is "
     "normed.", _paper(lambda x, a, f, n, m: m((h := n(x + a(n(x)))) + f(m(h))))),
    ("pre_norm is not used: the norms still come after the sums. With pre_norm=True: x + sublayer(norm(x)).",
     _in_front(_post_layer)),
    (NORMED_WAY.format("Twice"), _in_front(lambda x, a, f, n, m: (k := m((h := n(x)) + a(h))) + f(k))),
    (NORMED_WAY.format("Around attention"), _in_front(lambda x, a, f, n, m: (k := (h := n(x)) + a(h)) + f(m(k)))),
    (NORMED_WAY.format("Around feed_forward"), _in_front(lambda x, a, f, n, m: (h := m(x + a(n(x)))) + f(h))),
    (NO_RESIDUAL.format("The sublayers have"), _in_front(lambda x, a, f, n, m: f(m(a(n(x)))))),
    (NO_RESIDUAL.format("attention has"), _in_front(lambda x, a, f, n, m: (h := a(n(x))) + f(m(h)))),
    (NO_RESIDUAL.format("feed_forward has"), _in_front(lambda x, a, f, n, m: f(m(x + a(n(x)))))),
    (f"{NORM_OF_THE_OUTPUT} {THE_INPUT}", _in_front(lambda x, a, f, n, m: (h := x + n(a(x))) + m(f(h)))),
    (TWICE.format("norm_1", "norm_2"), _in_front(lambda x, a, f, n, m: _pre_layer(x, a, f, n, n))),
    (TWICE.format("norm_2", "norm_1"), _in_front(lambda x, a, f, n, m: _pre_layer(x, a, f, m, m))),
    (f"norm_1 and norm_2 are swapped. {OWN_NORMS}", _in_front(lambda x, a, f, n, m: _pre_layer(x, a, f, m, n))),
    (FORGOTTEN.format("The norms are"), _in_front(lambda x, a, f, n, m: (h := x + a(x)) + f(h))),
    (FORGOTTEN.format("norm_1 is"), _in_front(lambda x, a, f, n, m: (h := x + a(x)) + f(m(h)))),
    (FORGOTTEN.format("norm_2 is"), _in_front(lambda x, a, f, n, m: (h := x + a(n(x))) + f(h))),
    (OLD_X, _in_front(lambda x, a, f, n, m: x + a(n(x)) + f(m(x)))),
    (OLD_X, _in_front(lambda x, a, f, n, m: x + a(h := n(x)) + f(h))),
    (LONG_WAY, _in_front(lambda x, a, f, n, m: x + f(m(x + a(n(x)))))),
    (LOST, _in_front(lambda x, a, f, n, m: x + f(m(x)))),
    (ORDER, _in_front(lambda x, a, f, n, m: _pre_layer(x, f, a, n, m))),
    (ORDER, _in_front(lambda x, a, f, n, m: _pre_layer(x, f, a, m, n))),
    ("The sums are normed as well. With pre_norm=True nothing comes after a sum.",
     _in_front(lambda x, a, f, n, m: m((h := n(x + a(n(x)))) + f(m(h))))),
    ("The last sum is normed as well. With pre_norm=True nothing comes after a sum; a whole encoder has one norm more, "
     "at its end.", _in_front(lambda x, a, f, n, m: m(_pre_layer(x, a, f, n, m)))),
))


# --- decoder_inputs ------------------------------------------------------------------------------------------

def decoder_inputs(target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """target (B, T+1): BOS = 1, the words, EOS = 2, then PAD = 0 in shorter sentences
    -> inputs (B, T), what the decoder reads; labels (B, T), what it should say next;
    mask bool (B, T, T), True where query (row) may attend to key (column): a word that was read, up to its own place
    """
    return _fed()(target)


def _read_words(inputs: Tensor) -> Tensor:
    """``(B, 1, T)``: the keys that are words."""
    return (inputs != PAD).unsqueeze(1)


def _so_far(inputs: Tensor) -> Tensor:
    return ours.causal_mask(inputs.size(1))


def _fed(inputs=lambda target: target[:, :-1], labels=lambda target: target[:, 1:],
         mask=lambda inputs, labels: _read_words(inputs) & _so_far(inputs)):
    """What a decoder is fed in training, of which a part may be wrong; the mask fits what the inputs are."""
    return lambda target: (inputs(target), labels(target), mask(inputs(target), labels(target)))


def _fed_one(ids):
    """Inputs and labels that are the same."""
    return _fed(ids, ids)


def _target_inputs(B=None):
    """A maker of inputs: rows of BOS, words, EOS and padding, of which the last has none, the first two."""
    def make(rng):
        b, columns = sizes(rng, 2)
        n, columns = B or b, columns + 6                       # at most 7 sentences, at least 8 columns
        target = torch.randint(EOS + 1, 40, (n, columns), generator=rng)
        ends = torch.randint(1, columns - 1, (n,), generator=rng)
        ends[-1], ends[0] = columns - 1, columns - 3           # a single sentence is a short one
        target[:, 0] = BOS
        target[torch.arange(n), ends] = EOS
        return (target.masked_fill(torch.arange(columns) > ends[:, None], PAD),)
    return make


KEYS_HIDDEN = "Padding is hidden as a key, in its column: mask[b, i, j] depends on inputs[b, j]."
AXIS_MISSING = ("inputs != PAD is (B, T), a row a sentence; the causal mask is (T, T), a row a query. The padding "
                "needs an axis for the queries: (inputs != PAD).unsqueeze(1) is (B, 1, T).")
EOS_NEEDED = "The decoder has to learn when to say EOS."

DECODER_INPUTS = Exercise(decoder_inputs, {"inputs": "B, T", "labels": "B, T", "mask": "B, T, T"}, {
    "on ordinary inputs": _target_inputs(),
    "with one sentence (B = 1)": _target_inputs(B=1),
}, (
    (SAME + " The labels are one word ahead: target[:, 1:].", _fed_one(lambda t: t[:, :-1])),
    (SAME + " The inputs are one word behind, and begin with BOS: target[:, :-1].", _fed_one(lambda t: t[:, 1:])),
    (SAME + " Cut the last column off the inputs, and the first off the labels.", _fed_one(lambda t: t)),
    ("The two are swapped. The inputs begin with BOS, and the labels end with EOS.",
     _fed(lambda t: t[:, 1:], lambda t: t[:, :-1])),
    ("The labels are two words ahead. After BOS comes the first word: target[:, 1:].",
     _fed(lambda t: t[:, :-2], lambda t: t[:, 2:])),
    ("The labels are two words ahead. After BOS comes the first word: target[:, 1:].",
     _fed(labels=lambda t: F.pad(t[:, 2:], (0, 1), value=PAD))),
    (f"BOS and EOS are cut off both. The decoder begins by reading BOS. {EOS_NEEDED}", _fed_one(lambda t: t[:, 1:-1])),
    (f"The labels lost their last column. {EOS_NEEDED}", _fed(lambda t: t[:, :-2], lambda t: t[:, 1:-1])),
    (f"EOS is taken out of the labels. {EOS_NEEDED}", _fed(labels=lambda t: t.masked_fill(t == EOS, PAD)[:, 1:])),
    ("EOS is taken out of the inputs. No need: where EOS is read, the label is PAD, which the loss skips.",
     _fed(lambda t: t.masked_fill(t == EOS, PAD)[:, :-1])),
    ("Sentences are cut off, not words: axis 0 is the batch. Time is axis 1: target[:, :-1], target[:, 1:].",
     _fed(lambda t: t[:-1], lambda t: t[1:])),
    ("The inputs are not shortened. With T labels there are T inputs: target[:, :-1].", _fed(lambda t: t)),
    ("The padding of the labels was replaced by -100. It stays PAD: the loss is told to skip that (ignore_index=PAD).",
     _fed(labels=lambda t: t[:, 1:].masked_fill(t[:, 1:] == PAD, -100))),
    ("The mask is inverted: it is True where a query must not look. True means *may attend*.",
     _fed(mask=lambda inputs, labels: ~(_read_words(inputs) & _so_far(inputs)))),
    ("The causal part is inverted: a query sees what comes after it, and not itself. True means *may attend*.",
     _fed(mask=lambda inputs, labels: _read_words(inputs) & ~_so_far(inputs))),
    ("The padding part is inverted: padding is seen, words are not. True means *may attend*: inputs != PAD.",
     _fed(mask=lambda inputs, labels: ~_read_words(inputs) & _so_far(inputs))),
    ("Past and future are swapped: a query sees itself and everything after it. The lower triangle, tril.",
     _fed(mask=lambda inputs, labels: _read_words(inputs) & _so_far(inputs).T)),
    ("Off by one: a query does not see its own place. It may: what it has to say is the *next* word, the label.",
     _fed(mask=lambda inputs, labels: _read_words(inputs) & _so_far(inputs).tril(-1))),
    ("Off by one: a query sees the input after its own, and that is the word it has to say.",
     _fed(mask=lambda inputs, labels: _read_words(inputs) & torch.ones_like(_so_far(inputs)).tril(1))),
    (f"The mask is causal, but padding is seen. Both must hold. {KEYS_HIDDEN}",
     _fed(mask=lambda inputs, labels: _so_far(inputs).expand(len(inputs), -1, -1))),
    ("The mask has no batch axis, so it cannot know where a sentence ends. Padding differs from sentence to sentence: "
     "(inputs != PAD).unsqueeze(1) is (B, 1, T); & broadcasts it with the causal (T, T).",
     _fed(mask=lambda inputs, labels: _so_far(inputs))),
    (AXIS_MISSING, _fed(mask=lambda inputs, labels: (inputs != PAD) & _so_far(inputs))),
    (AXIS_MISSING, _fed(mask=lambda inputs, labels: _so_far(inputs) & (inputs != PAD))),
    ("Padding is hidden, but the future is seen. Both must hold: & the causal mask.",
     _fed(mask=lambda inputs, labels: _read_words(inputs).expand(-1, inputs.size(1), -1))),
    ("Padding is hidden, but the future is seen. Both must hold: & the causal mask.",
     _fed(mask=lambda inputs, labels: _read_words(inputs))),
    ("One of the two is enough here (| is *or*). Both must hold: &.",
     _fed(mask=lambda inputs, labels: _read_words(inputs) | _so_far(inputs))),
    (f"Rows of padding are empty, and a query that sees nothing has no softmax. {KEYS_HIDDEN} So unsqueeze(1), not "
     "unsqueeze(2).", _fed(mask=lambda inputs, labels: _read_words(inputs).mT & _so_far(inputs))),
    ("EOS is hidden: the mask is made from the labels, or hides EOS by its value. Hide the inputs that are PAD, no "
     "others.", _fed(mask=lambda inputs, labels: _read_words(labels) & _so_far(labels))),
    ("BOS is hidden, and then the first query sees nothing. Hide PAD only.",
     _fed(mask=lambda inputs, labels: (inputs > BOS).unsqueeze(1) & _so_far(inputs))),
    ("The mask was made from the whole target: (B, T+1, T+1). Make it from the inputs.",
     lambda t: (t[:, :-1], t[:, 1:], _read_words(t) & _so_far(t))),
    ("The mask has an axis for the heads. Leave it away: (B, T, T).",
     _fed(mask=lambda inputs, labels: (_read_words(inputs) & _so_far(inputs)).unsqueeze(1))),
    (NOT_BOOLEAN, _fed(mask=lambda inputs, labels: (_read_words(inputs) & _so_far(inputs)).float())),
    (NOT_BOOLEAN, _fed(mask=lambda inputs, labels: (_read_words(inputs) & _so_far(inputs)).long())),
    (TO_BE_ADDED, _fed(mask=lambda inputs, labels: torch.zeros(len(inputs), *_so_far(inputs).shape).masked_fill(
        ~(_read_words(inputs) & _so_far(inputs)), -math.inf))),
))


# --- keeps_promises ------------------------------------------------------------------------------------------

def keeps_promises(layer: Layer, x: Tensor, memory: Tensor, src_mask: Tensor) -> tuple[bool, bool, bool]:
    """layer(x, memory, src_mask) -> (T_q, d), any decoder layer, for one sentence;
    x (T_q, d), memory (T_k, d), src_mask bool (T_k,), False = padding; leave all of them as they are
    -> causal: changing x[t] changes no output before t;
    reads_memory: changing any word of the memory changes every output;
    ignores_padding: changing the memory's padding changes no output
    """
    return _tested()(layer, x, memory, src_mask)


def _moved(after: Tensor, before: Tensor) -> Tensor:
    """``(…, T_q)``: which outputs are others now; rounding does not count."""
    return ((after - before).abs() > 1e-4).any(-1)


def _one_by_one(words: Tensor) -> Tensor:
    """``(trials, T)``: a trial for each of the words, in which it alone is changed."""
    return torch.eye(len(words), dtype=torch.bool)[words]


def _tested(change=torch.neg, moved=_moved, of_memory=_one_by_one, is_padding=torch.logical_not,
            causal=lambda by_x: not by_x.tril(-1).any(), reads_memory=lambda by_words: bool(by_words.all()),
            ignores_padding=lambda by_padding: not by_padding.any()):
    """A test of a layer, which may miss something.

    ``by_…[i, t]`` says whether trial i has changed output t; `of_memory` makes the trials of the memory. The planted
    layers take all trials as one batch.
    """
    def test(layer, x, memory, src_mask):
        padding = is_padding(src_mask)
        trials = [_one_by_one(torch.ones(len(x)) > 0), of_memory(~padding), of_memory(padding)]
        of_x, of_the_memory = (torch.where(places.unsqueeze(-1), change(states), states)        # (trials, T, d)
                               for states, places in ((x, trials[0]), (memory, torch.cat(trials[1:]))))
        xs = torch.cat([x.unsqueeze(0), of_x, x.expand(len(of_the_memory), -1, -1)])
        memories = torch.cat([memory.expand(1 + len(of_x), -1, -1), of_the_memory])
        before, *after = layer(xs, memories, src_mask).split([1, *map(len, trials)])
        by_x, by_words, by_padding = (moved(outputs, before) for outputs in after)
        return causal(by_x), reads_memory(by_words), ignores_padding(by_padding)
    return test


def _one_call_each(layer: Layer) -> Layer:
    """The same without batches, which are rounded otherwise."""
    return lambda xs, memories, src_mask: torch.stack(
        [layer(x, memory, src_mask) for x, memory in zip(xs, memories, strict=True)])


def _over_features(x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:])


def _over_positions(x: Tensor) -> Tensor:
    return _over_features(x.mT).mT


def _the_words(x, memory, src_mask):
    """Keys and mask of self-attention."""
    return x, ours.causal_mask(x.size(-2))


def _the_memory(x, memory, src_mask):
    """Keys and mask of cross-attention."""
    return memory, src_mask.expand(x.size(-2), -1)


def _masked_after(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.softmax(-1) * mask


def _masked_after_and_divided(scores: Tensor, mask: Tensor) -> Tensor:
    weights = _masked_after(scores, mask)
    return weights / weights.sum(-1, keepdim=True)


@dataclass(frozen=True)
class _Planted:
    """A decoder layer with random weights and something planted in it, and what that is."""

    what: str
    weights: Tensor = field(compare=False)                                          # (8, d, d)
    of_self: Callable = _the_words
    of_cross: Callable = _the_memory
    weigh: tuple[Callable, Callable] = (ours.masked_softmax, ours.masked_softmax)
    norm: Sublayer = _over_features
    pre_norm: bool = True

    def __call__(self, x: Tensor, memory: Tensor, src_mask: Tensor) -> Tensor:
        of_self, of_cross, (W_1, W_2) = self.weights.split([3, 3, 2])
        x = self._around(x, lambda x: _look(x, *self.of_self(x, memory, src_mask), self.weigh[0], *of_self))
        x = self._around(x, lambda x: _look(x, *self.of_cross(x, memory, src_mask), self.weigh[1], *of_cross))
        return self._around(x, lambda x: torch.relu(x @ W_1) @ W_2)

    def _around(self, x, sublayer):
        return x + sublayer(self.norm(x)) if self.pre_norm else self.norm(x + sublayer(x))

    def __repr__(self) -> str:
        return self.what


def _look(query, keys, mask, weigh, W_q, W_k, W_v):
    scores = (query @ W_q) @ (keys @ W_k).mT / math.sqrt(query.size(-1))
    return weigh(2 * torch.tanh(scores), mask) @ (keys @ W_v)        # bounded, so that no weight is near zero


def _planted(what, **parts):
    """A maker of inputs: a layer to be tested, and sentences of at least five words."""
    def make(rng):
        T_q, T_k, d = (n + 3 for n in sizes(rng, 3))
        weights = randn(rng, 8, d, d) / math.sqrt(d)
        n_words = int(torch.randint(3, T_k - 1, (), generator=rng))                # padding: two or more
        return (_Planted(what, weights, **parts), randn(rng, T_q, d), randn(rng, T_k, d),
                torch.arange(T_k) < n_words)
    return make


def _masked_by(reads, change):
    """Attention that reads what it should, but whose mask is changed."""
    def other(x, memory, src_mask):
        keys, mask = reads(x, memory, src_mask)
        return keys, change(mask.clone())
    return other


def _but(row, column, value):
    """A mask of which some cells are set."""
    def change(mask):
        mask[row, column] = value
        return mask
    return change


ALL_CAUSAL = ("Every layer is called causal. A promise is kept or broken by numbers, not by shapes: change a word in a "
              "copy of x, call the layer again, and compare the outputs.")
BLIND = ("The change is one that a LayerNorm takes out again. It subtracts the mean and divides by the standard "
         "deviation: x[t] + 1 and 2 * x[t] look to the attention behind it just as x[t] does. Put random numbers "
         "there: torch.randn_like(x[t]).")
TOO_STRICT = ("A causal layer is called not causal. Compare only the outputs before t, out[:t]: output t may change, "
              "and so may all after it. And copy x anew for every t, or the changes pile up.")
MISSED = "A leak from a later word was not seen. Change every x[t] in turn, and compare all outputs before it, out[:t]."
ANY_OUTPUT = ("Some output changes: that is not enough. Every one of the T_q outputs has to read the memory: "
              ".any(dim=-1) tells which outputs have changed, .all() whether all have.")
ANY_WORD = ("Not every word of the memory was put to the test on its own. Change one word at a time, and go through "
            "all of them: src_mask.nonzero() has their places.")
ANY_PADDING = "Not all padding was put to the test. Change every memory[j] where src_mask is False."
ROUNDING = ("Numbers are compared too strictly. Sums are rounded, and rounding breaks no promise: "
            "torch.allclose(…, atol=1e-5).")
MIXED_UP = "The results are mixed up. Their order is (causal, reads_memory, ignores_padding)."
PADDING_TAKEN = ("Words and padding are mixed up. src_mask is True for words: they must be read. It is False for "
                 "padding, ~src_mask: that must be ignored.")
NOT_A_NUMBER = ("NaN is no way to change a word: times a weight of 0 it is NaN, leak or not. Write a number.")

KEEPS_PROMISES = Exercise(keeps_promises, {"causal": "", "reads_memory": "", "ignores_padding": ""}, {
    "on ordinary inputs": _planted("a right one, norms after the sums (post-LN)", pre_norm=False),
    "when the layer is right and has its norms in front (pre-LN)":
        _planted("a right one, norms in front of the sublayers (pre-LN)"),
    "when the layer is right, and only rounding depends on what it must not see":
        _planted("a right one that masks after the softmax and divides again",
                 weigh=(_masked_after_and_divided, _masked_after_and_divided)),
    "when the layer's norms take mean and variance over the positions":
        _planted("one whose norms take mean and variance over the positions", norm=_over_positions, pre_norm=False),
    "when the layer has no causal mask":
        _planted("a pre-LN layer without a causal mask", of_self=_masked_by(_the_words, torch.ones_like)),
    "when only the first query sees ahead, the last word":
        _planted("one in which the first query sees the last word", of_self=_masked_by(_the_words, _but(0, -1, True))),
    "when only one query sees ahead, one later word":
        _planted("one in which query 1 sees the last word but one", of_self=_masked_by(_the_words, _but(1, -2, True))),
    "when the layer's cross-attention reads the decoder's own words":
        _planted("one whose cross-attention takes keys and values from the decoder", of_cross=_the_words),
    "when only the first query does not read the memory":
        _planted("one in which the first query reads nothing of the memory",
                 of_cross=_masked_by(_the_memory, _but(0, slice(None), False))),
    "when the layer does not read one word of the memory":
        _planted("one that does not read word 1 of the memory",
                 of_cross=_masked_by(_the_memory, _but(slice(None), 1, False))),
    "when the layer does not use src_mask":
        _planted("one that does not use src_mask", of_cross=_masked_by(_the_memory, torch.ones_like)),
    "when the layer masks after the softmax, so that padding has taken its share":
        _planted("one that masks padding after the softmax", weigh=(ours.masked_softmax, _masked_after)),
    "when the layer sees only the last of the padding":
        _planted("one that sees the last of the padding",
                 of_cross=_masked_by(_the_memory, _but(slice(None), -1, True))),
}, (
    (ALL_CAUSAL, _tested(causal=lambda by_x: True)),
    (BLIND, _tested(lambda states: states + 1)),
    (BLIND, _tested(lambda states: 2 * states)),
    (NOT_A_NUMBER, _tested(lambda states: states * math.nan,
                           lambda after, before: ~torch.isclose(after, before).all(-1))),
    (TOO_STRICT, _tested(causal=lambda by_x: not by_x.any())),
    (TOO_STRICT, _tested(causal=lambda by_x: not by_x.tril().any())),
    *((MISSED, _tested(causal=causal)) for causal in (
        lambda by_x: not by_x[-1, :-1].any(),
        lambda by_x: not by_x[:-1].tril(-1).any(),
        lambda by_x: not by_x[1:, 0].any(),
        lambda by_x: not by_x[len(by_x) // 2, :len(by_x) // 2].any(),
    )),
    ("A layer that reads every word of the memory is said not to. Either reads_memory is turned round: it is True if "
     "the outputs change. Or the padding was asked to be read as well: change memory[j] only where src_mask is True.",
     _tested(reads_memory=lambda by_words: not by_words.any())),
    (ANY_OUTPUT, _tested(reads_memory=lambda by_words: bool(by_words.any(1).all()))),
    (ANY_OUTPUT, _tested(reads_memory=lambda by_words: bool(by_words.any()))),
    (ANY_WORD, _tested(reads_memory=lambda by_words: bool(by_words.any(0).all()))),
    (ANY_WORD, _tested(reads_memory=lambda by_words: bool(by_words[0].all()))),
    (ANY_WORD, _tested(reads_memory=lambda by_words: bool(by_words[-1].all()))),
    (ANY_WORD, _tested(of_memory=lambda words: words.unsqueeze(0))),
    ("Every layer is said to read the memory. Change a word of it, and see whether all outputs change.",
     _tested(reads_memory=lambda by_words: True)),
    ("ignores_padding is turned round: it is True if no output changes.",
     _tested(ignores_padding=lambda by_padding: bool(by_padding.any()))),
    (ANY_PADDING, _tested(ignores_padding=lambda by_padding: not by_padding[0].any())),
    (ANY_PADDING, _tested(ignores_padding=lambda by_padding: not by_padding[:-1].any())),
    ("Every layer is said to ignore padding. Change memory[j] where src_mask is False: no output may change.",
     _tested(ignores_padding=lambda by_padding: True)),
    (PADDING_TAKEN, _tested(is_padding=torch.clone)),
    (ROUNDING, lambda layer, *given: _tested(moved=lambda after, before: (after != before).any(-1))(
        _one_call_each(layer), *given)),
    *((MIXED_UP, lambda *arguments, order=order: tuple(keeps_promises(*arguments)[i] for i in order))
      for order in list(permutations(range(3)))[1:]),
))


# --- decode_step ---------------------------------------------------------------------------------------------

def decode_step(x: Tensor, past_k: Tensor, past_v: Tensor, W_q: Tensor, W_k: Tensor,
                W_v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """x (B, n, d): the new words, mostly n = 1; past_k (B, T, d_k), past_v (B, T, d_v): keys and values of the T
    words before; W_q and W_k (d, d_k), W_v (d, d_v), used as x @ W
    -> output (B, n, d_v) of the new words, each sees all words up to itself; k (B, T+n, d_k), v (B, T+n, d_v): the
    cache for the next step
    """
    return _step()(x, past_k, past_v, W_q, W_k, W_v)


def _append(past: Tensor, new: Tensor) -> Tensor:
    return torch.cat([past, new], 1)


def _step(scale=lambda q, x, v: math.sqrt(q.size(-1)), softmax=ours.masked_softmax, mask=ours.causal_mask,
          extend=_append, new=lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_k, x @ W_v),
          result=lambda output, k, v, new_k, new_v: (output, k, v)):
    """One step with a cache, of which a part may be wrong."""
    def step(x, past_k, past_v, W_q, W_k, W_v):
        q, new_k, new_v = new(x, W_q, W_k, W_v)
        k, v = extend(past_k, new_k), extend(past_v, new_v)
        weights = softmax(q @ k.mT / scale(q, x, v), mask(q.size(1), k.size(1)))
        return result(weights @ v, k, v, new_k, new_v)
    return step


def _attends_to(keys):
    """Attention to some of the keys only, and the cache right; `keys(past, new)` are those."""
    def step(x, past_k, past_v, W_q, W_k, W_v):
        _, k, v = decode_step(x, past_k, past_v, W_q, W_k, W_v)
        seen_k, seen_v = keys(past_k, x @ W_k), keys(past_v, x @ W_v)
        weights = (x @ W_q @ seen_k.mT / math.sqrt(W_q.size(1))).softmax(-1)
        return weights @ seen_v, k, v
    return step


def _step_inputs(n=1, T=None):
    """A maker of inputs: n new words, after T in the cache."""
    def make(rng):
        B, t, d, d_k, d_v = sizes(rng, 5)
        before = t if T is None else T
        return (randn(rng, B, n, d), randn(rng, B, before, d_k), randn(rng, B, before, d_v),
                *(randn(rng, d, width) / math.sqrt(d) for width in (d_k, d_k, d_v)))
    return make


GROWN = "Append the new key and the new value: torch.cat([past_k, x @ W_k], dim=1), and the same for v."
CACHE_ORDER = "The order of the results is (output, k, v)."

DECODE_STEP = Exercise(decode_step, {"output": "B, n, d_v", "k": "B, T+n, d_k", "v": "B, T+n, d_v"}, {
    "on ordinary inputs": _step_inputs(),
    "with the first word of all, when the cache is empty (T = 0)": _step_inputs(T=0),
    "when several new words come at once": _step_inputs(n=4),
}, (
    (f"The cache is not used: the new word sees only itself. {GROWN}", _step(extend=lambda past, new: new)),
    (f"The cache is not used: the new word sees only itself. {GROWN}", _attends_to(lambda past, new: new)),
    (f"The cache comes back as it was: the next word would not see this one. {GROWN}",
     lambda x, k, v, *W: (decode_step(x, k, v, *W)[0], k, v)),
    (f"The new word does not see itself, and it is not in the cache. {GROWN}",
     _step(extend=lambda past, new: past, mask=lambda n, m: None)),
    ("The new word does not see itself. First append its key and value, then attend to all of them; no mask may hide "
     "the newest.", _attends_to(lambda past, new: past)),
    ("Only the new key and value come back: all words before are forgotten. Return the longer ones.",
     _step(result=lambda output, k, v, new_k, new_v: (output, new_k, new_v))),
    ("The new key and value stand in front. They belong behind the others, where their place in the sentence is: "
     "torch.cat([past_k, new_k], dim=1).", _step(extend=lambda past, new: _append(new, past), mask=lambda n, m: None)),
    ("The new key and value take the place of the last word's. The cache grows: torch.cat.",
     _step(extend=lambda past, new: _append(past[:, :-1], new))),
    ("The oldest word falls out of the cache. It grows: every word before is still to be seen.",
     _step(extend=lambda past, new: _append(past, new)[:, 1:])),
    ("The query went into the cache instead of the key: x @ W_k.",
     _step(new=lambda x, W_q, W_k, W_v: (x @ W_q, x @ W_q, x @ W_v))),
    ("The key is used as the query: x @ W_q.", _step(new=lambda x, W_q, W_k, W_v: (x @ W_k, x @ W_k, x @ W_v))),
    ("W_q and W_k are swapped: the key is compared with the queries of the words before, and the query is cached.",
     _step(new=lambda x, W_q, W_k, W_v: (x @ W_k, x @ W_q, x @ W_v))),
    ("The new words go into the cache as they are. Project them first: x @ W_k, x @ W_v.",
     lambda x, k, v, *W: _append(k, x)),
    ("What is in the cache is projected once more. It is projected already: that is what the cache saves.",
     lambda x, k, v, W_q, W_k, W_v: k @ W_k),
    ("The new word is appended along the batch. Time is axis 1: dim=1.", lambda x, k, v, W_q, W_k, W_v:
     torch.cat([k, x @ W_k], 0)),
    ("The new word is appended along the width. Time is axis 1: dim=1.", lambda x, k, v, W_q, W_k, W_v:
     torch.cat([k, x @ W_k], -1)),
    ("The scale is missing: divide the scores by sqrt(d_k).", _step(lambda q, x, v: 1)),
    ("The scores are divided by d_k. The scale is its root, sqrt(d_k).", _step(lambda q, x, v: q.size(-1))),
    ("The scores are scaled by the width of x. The scale is sqrt(d_k), with d_k the width of a query.",
     _step(lambda q, x, v: math.sqrt(x.size(-1)))),
    ("The scores are scaled by the number of keys. The scale is sqrt(d_k), with d_k the width of a query.",
     _step(lambda q, x, v: math.sqrt(v.size(1)))),
    (NO_SOFTMAX, _step(softmax=lambda scores, mask: scores)),
    *((WRONG_AXIS, _step(softmax=lambda scores, mask, dim=dim: scores.softmax(dim))) for dim in (1, 0)),
    ("The mask begins at the first key, so that the new word sees only that one. The new words are the *last* "
     "positions: attention.causal_mask(n, T + n).",
     _step(mask=lambda n, m: torch.ones(n, m, dtype=torch.bool).tril())),
    *((CACHE_ORDER, lambda *arguments, order=order: tuple(decode_step(*arguments)[i] for i in order))
      for order in list(permutations(range(3)))[1:]),
    ("Of several new words, the earlier see the later. They need a causal mask among themselves: "
     "attention.causal_mask(n, T + n).", _step(mask=lambda n, m: None)),
    ("Each of the new words sees the cache and itself, but not the new words before it. They need a causal mask among "
     "themselves: attention.causal_mask(n, T + n).",
     _step(mask=lambda n, m: torch.cat([torch.ones(n, m - n), torch.eye(n)], 1) > 0)),
))


# --- sentence_vector -----------------------------------------------------------------------------------------

def sentence_vector(states: Tensor, mask: Tensor) -> Tensor:
    """states (B, T, d) from an encoder; mask bool (B, T), True = a word; every sentence has one at least
    -> (B, d): the sum of a sentence's word states, divided by the root of the number of its words (Cer et al. 2018,
    section 3.1)
    """
    return _summed()(states, mask)


def _summed(share=lambda n, T: n.sqrt(), counted=lambda mask: mask):
    """A sum of states, divided by something; `counted` are the words that are added up."""
    def summed(states, mask):
        n = mask.sum(1, keepdim=True).float()                                       # (B, 1)
        return (states * counted(mask).unsqueeze(-1)).sum(1) / share(n, mask.size(1))
    return summed


def _states_inputs(in_front=False):
    """A maker of inputs; every sentence has two words or more, and one padded place or more."""
    def make(rng):
        B, T, d = sizes(rng, 3)
        T += 6
        mask = torch.arange(T) < torch.randint(2, T, (B, 1), generator=rng)
        return randn(rng, B, T, d), mask.flip(1) if in_front else mask
    return make


ROOT_OF_THE_LENGTH = "Divide by the root of the number of words."
PADDING_COUNTED = "Padding is added up, too. First make its states zero: states * mask.unsqueeze(-1)."

SENTENCE_VECTOR = Exercise(sentence_vector, {"vector": "B, d"}, {
    "on ordinary inputs": _states_inputs(),
    "when the padding stands in front": _states_inputs(in_front=True),
}, (
    (f"This is the mean: the sum is divided by the number of words. {ROOT_OF_THE_LENGTH}", _summed(lambda n, T: n)),
    (f"This is the sum alone. A long sentence gets a long vector. {ROOT_OF_THE_LENGTH}", _summed(lambda n, T: 1)),
    ("The sum is multiplied by the root of the number of words. Divide.", _summed(lambda n, T: 1 / n.sqrt())),
    ("The sum is divided by the root of T, which counts the padding, so that a sentence's vector depends on the "
     "longest one of its batch. Count the words: mask.sum(dim=1).", _summed(lambda n, T: math.sqrt(T))),
    ("The sum is divided by T, and that counts the padding. Divide by the root of the number of words: "
     "mask.sum(dim=1).", _summed(lambda n, T: T)),
    ("The sum is divided by the root of the number of words in the whole batch. Each sentence has its own: "
     "mask.sum(dim=1, keepdim=True).", _summed(lambda n, T: n.sum().sqrt())),
    ("The sum is divided by the root of the width, d. Divide by the root of the number of words.",
     lambda states, mask: _summed(lambda n, T: math.sqrt(states.size(-1)))(states, mask)),
    (PADDING_COUNTED, _summed(counted=torch.ones_like)),
    (f"{PADDING_COUNTED} And count the words only: mask.sum(dim=1).",
     _summed(lambda n, T: math.sqrt(T), torch.ones_like)),
    (f"This is the mean over all places, padding among them. {PADDING_COUNTED}",
     _summed(lambda n, T: T, torch.ones_like)),
    (f"This is the sum over all places, padding among them. {PADDING_COUNTED}",
     _summed(lambda n, T: 1, torch.ones_like)),
    ("The mask is inverted: the padding is added up. True means that there is a word.",
     _summed(counted=torch.logical_not)),
    ("The mask is inverted: the padding is added up and counted. True means that there is a word.",
     lambda states, mask: sentence_vector(states, ~mask)),
    ("This is the largest number of each feature. Add the states up.",
     lambda states, mask: states.masked_fill(~mask.unsqueeze(-1), -math.inf).amax(1)),
    ("This is the largest number of each feature, padding among them. Add the states of the words up.",
     lambda states, mask: states.amax(1)),
    ("This is the first word's state. Add all of them up.", lambda states, mask: states[:, 0]),
    ("This is the last state, which is padding in most sentences. Add the states of all words up.",
     lambda states, mask: states[:, -1]),
    ("The vector is brought to length 1. The paper only divides by the root of the number of words.",
     lambda states, mask: F.normalize(sentence_vector(states, mask), dim=-1)),
    ("The root is taken of the whole mean. Divide the sum by the root of the number of words.",
     lambda states, mask: _summed(lambda n, T: n)(states, mask).sqrt()),
    ("(B, T, d) times (B, T) do not line up. Give the mask an axis for the features: mask.unsqueeze(-1).",
     lambda states, mask: states * mask),
    ("The number of words lost an axis, so that (B, d) meets (B,). Keep it: mask.sum(dim=1, keepdim=True).",
     lambda states, mask: (states * mask.unsqueeze(-1)).sum(1) / mask.sum(1).sqrt()),
    ("states[mask] puts the words of all sentences into one list. Keep the batch: states * mask.unsqueeze(-1).",
     lambda states, mask: states[mask].sum(0) / mask.sum() ** 0.5),
    ("The features are added up. Add up the words, dim=1.",
     lambda states, mask: (states * mask.unsqueeze(-1)).sum(-1) / mask.sum(1, keepdim=True).sqrt()),
    ("The words are taken from the left, as many as there are. Padding may stand in front: ask the mask which places "
     "are words.", lambda states, mask: _summed(counted=lambda mask: torch.arange(mask.size(1)) < mask.sum(
         1, keepdim=True))(states, mask)),
))


LESSON_04 = (LAYER_NORM, SMOOTHED_TARGETS, ENCODER_LAYER, DECODER_INPUTS, KEEPS_PROMISES, DECODE_STEP, SENTENCE_VECTOR)
