"""Lesson 04, the Transformer: the exercises, their solutions and the ways in which they go wrong."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import attention
from ..data.text import BOS, EOS
from .engine import Exercise, each
from .inputs import maker, number, randn, sizes
from .lesson_03 import renormalized
from .symbolic import Layer, Parts


def layer_norm(x, gain, bias, eps):
    """Every word's d numbers, x ``(B, T, d)``, with mean 0 and variance 1, then scaled and shifted (Ba et al. 2016)."""
    mean = x.mean(dim=-1, keepdim=True)                                 # (B, T, 1)
    var = x.var(dim=-1, correction=0, keepdim=True)                     # (B, T, 1)
    return gain * (x - mean) / (var + eps).sqrt() + bias


@maker
def _norm_inputs(rng, scale=3.0, shift=1.0, eps=1e-5):
    """A word has at least eight numbers, so that its variance is never near zero by chance."""
    B, T, d = sizes(rng, 3)
    return scale * randn(rng, B, T, d + 6) + shift, 1 + randn(rng, d + 6), randn(rng, d + 6), eps


def _far_from_zero(rng):
    """Eight numbers a word, and multiples of 1/64: their mean is not rounded, in whatever order they are added."""
    x, gain, bias, eps = _norm_inputs()(rng)
    return 100 + (64 * x[:, :, :8]).round() / 64, gain[:8], bias[:8], eps


OUTSIDE = "(var + eps).sqrt()", "(var.sqrt() + eps)"


LAYER_NORM = Exercise(layer_norm, {"normed": "B, T, d"}, {
    "on ordinary inputs": _norm_inputs(),
    "when the numbers are small (around 0.01), so that eps counts": _norm_inputs(0.01, 0.0, 1e-3),
    "when the numbers are far from zero (around 100)": _far_from_zero,
}, (
    *((f"The statistics run over {what} Take mean and variance over the last axis, dim=-1: each word is normed with "
       "its own d numbers.",
       "mean(dim=-1", f"mean(dim={axis}", "var(dim=-1, correction=0", f"var(dim={axis}, correction={less}", *root)
      for what, *axes in (
        ("the batch: a word's result depends on the other sentences.", 0),
        ("time: every word sees the others of its sentence, the later ones too.", 1),
        ("several axes at once. (Over batch and time, that is BatchNorm.)", (0, 1), (1, 2)))
      for axis in axes for less, *root in ((0,), (1, *OUTSIDE))),
    ("The variance is divided by d - 1, which is the default of var() and std(). LayerNorm divides by d: correction=0.",
     "correction=0", "correction=1"),
    ("eps is added to the standard deviation, outside the root. It belongs inside: the root of (variance + eps).",
     *OUTSIDE),
    *each("x - mean is to be divided by the standard deviation: once, and by the root of (variance + eps).",
          (".sqrt()", ""), (" / (var + eps).sqrt()", "")),
    *each("The mean is not subtracted. (With the root of the mean square below the fraction line, this is RMSNorm.)",
          ("(x - mean)", "x"), ("(x - mean)", "x", "x.var(dim=-1, correction=0,", "x.pow(2).mean(dim=-1,")),
    *each("First times gain, then plus bias: here the two are swapped, or bias is added too early.",
          ("gain *", "bias *", "+ bias", "+ gain"), ("gain * (x", "gain * ((x", " + bias", " + bias)")),
    *each("The eps that is given is not used. Add it to the variance, inside the root.", (" + eps", ""),
          (" + eps", " + 1e-5")),
    ("Mean and variance lost an axis, so that (B, T) meets (B, T, d). Keep it: keepdim=True.",
     "mean(dim=-1, keepdim=True)", "mean(dim=-1)"),
), reasons={
    "when the numbers are far from zero (around 100)":
        "The mean of the squares minus the square of the mean: both are large here, and of what is between them "
        "float32 keeps hardly a digit. Subtract the mean first, then square.",
})


def smoothed_targets(ids, vocab_size, smoothing):
    """The right words' ids ``(B, T)`` to targets ``(B, T, vocab_size)`` (Szegedy et al. 2016, section 7)."""
    one_hot = F.one_hot(ids, vocab_size).float()                        # (B, T, vocab_size)
    return (1 - smoothing) * one_hot + smoothing / vocab_size


def _ids_inputs(rng, smoothing=None):
    """The last word of the vocabulary does not occur."""
    B, T, V = sizes(rng, 3)
    if smoothing is None:
        smoothing = 0.1 + 0.3 * torch.rand((), generator=rng).item()
    return torch.randint(0, V + 5, (B, T), generator=rng), V + 6, smoothing


SHARE, MIX = "smoothing / vocab_size", "(1 - smoothing) * one_hot + smoothing / vocab_size"
NOT_ONE = "A row must sum to one, as probabilities do."

SMOOTHED_TARGETS = Exercise(smoothed_targets, {"targets": "B, T, vocab_size"}, {
    "on ordinary inputs": _ids_inputs,
    "with smoothing = 0": lambda rng: _ids_inputs(rng, 0.0),
}, (
    ("The smoothing goes to the wrong words only, smoothing / (vocab_size - 1) to each. In PyTorch's label smoothing "
     "all words share it, the right one too: smoothing / vocab_size to each.",
     SHARE, "(1 - one_hot) * smoothing / (vocab_size - 1)"),
    (f"The right word lost the smoothing and got no share of it back. {NOT_ONE} All words get smoothing / vocab_size, "
     "the right one too.", SHARE, "(1 - one_hot) * smoothing / vocab_size"),
    (f"The smoothing is added to a full one. {NOT_ONE} First take it away: 1 - smoothing at the right word.",
     "(1 - smoothing) * ", ""),
    *each(f"Words get the whole smoothing. {NOT_ONE} All words share it: smoothing / vocab_size to each.",
          (" / vocab_size", ""), (SHARE, "(1 - one_hot) * smoothing")),
    (f"The smoothing is taken away and given to nobody. {NOT_ONE} Add smoothing / vocab_size everywhere.",
     f" + {SHARE}", ""),
    *each("The smoothing that is given is not used: the targets are one-hot, or have a share that is always the same.",
          (MIX, "one_hot"), (MIX, "0.9 * one_hot + 0.1 / vocab_size")),
    ("smoothing and 1 - smoothing are swapped: the right word keeps 1 - smoothing.",
     "(1 - smoothing) * one_hot + smoothing", "smoothing * one_hot + (1 - smoothing)"),
    ("The smoothing is shared by the T words of a sentence. Those of the vocabulary share it: smoothing / vocab_size.",
     "/ vocab_size", "/ ids.size(1)"),
    *each("one_hot was not told the size of the vocabulary, so it ends at the largest id that it saw: F.one_hot(ids, "
          "vocab_size).", (", vocab_size).", ")."), (", vocab_size).", ").", "/ vocab_size", "/ one_hot.size(-1)")),
    ("These are whole numbers, which cannot hold a share. one_hot makes long: .float() first.", MIX, f"({MIX}).long()"),
))


@dataclass(frozen=True)
class Function:
    """A function among the arguments, and what it is."""

    what: str
    compute: Callable = field(compare=False)

    def __call__(self, *arguments: Tensor, **named: Tensor) -> Tensor:
        """What it computes."""
        return self.compute(*arguments, **named)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.compute)

    def __repr__(self) -> str:
        return self.what


def _norm_part(rng, d):
    gain, bias = 1 + randn(rng, d) / 2, randn(rng, d)
    return Function("a LayerNorm", lambda x: F.layer_norm(x, (d,), gain, bias))


def _look(rng, d):
    W = randn(rng, d, d) / math.sqrt(d)
    return lambda query, keys, mask: attention.masked_softmax(query @ keys.mT / d, mask) @ keys @ W


def _words(rng, B, T):
    """The mask of B sentences whose last words are padding, ``(B, 1, T)``."""
    return torch.arange(T).expand(B, 1, -1) < number(rng, 1, T)


def layer_inputs(rng):
    """Each part has matrices of its own."""
    B, T, d = sizes(rng, 3)
    W_1, W_2 = (randn(rng, *shape) / math.sqrt(shape[0]) for shape in ((d, 2 * d), (2 * d, d)))
    return (randn(rng, B, T, d), _words(rng, B, T), Function("self-attention", _look(rng, d)),
            Function("a feed-forward network", lambda x: torch.relu(x @ W_1) @ W_2),
            _norm_part(rng, d), _norm_part(rng, d))


ASKS = {"query": "who asks?", "keys": "who answers?", "mask": "who is hidden?"}


def decoder_layer(layer, x, memory, mask, src_mask):
    """Self-attention, cross-attention, feed_forward, each with its own residual and a norm in front of the sublayer
    (Vaswani et al. 2017, section 3.1, in the order of GPT-2).
    """
    h = layer.norm_1(x)
    x = x + layer.self_attention(h, h, mask)            # what is written
    h = layer.norm_2(x)
    x = x + layer.cross_attention(h, memory, src_mask)  # the source
    h = layer.norm_3(x)
    return x + layer.feed_forward(h)                    # each on its own


def _decoder_inputs(rng):
    """Sizes that differ, so that a mask in the wrong place fits nowhere."""
    x, _, self_attention, feed_forward, norm_1, norm_2 = layer_inputs(rng)
    B, T_q, d = x.shape
    T_k = max(x.shape) + number(rng, 1, 4)
    memory, src_mask = randn(rng, B, T_k, d), _words(rng, B, T_k)
    layer = Parts(self_attention=self_attention, cross_attention=Function("cross-attention", _look(rng, d)),
                  feed_forward=feed_forward, norm_1=norm_1, norm_2=norm_2, norm_3=_norm_part(rng, d))
    return layer, x, memory, attention.causal_mask(T_q), src_mask


DECODER_LAYER = Layer(decoder_layer, {"x": "B, T_q, d"}, {"on ordinary inputs": _decoder_inputs}, reasons={
    "NameError": "The layer has the parts. Write `layer.` before each: layer.norm_1(x).",
    "AttributeError": "Is a part's name misspelled? The layer has self_attention, cross_attention, feed_forward, and "
                      "norm_1 to norm_3.",
}, asks=ASKS)


def moves(run, x, t):
    """Which outputs of run, a layer: x ``(T, d)`` to ``(T_q, d)``, move when x[t] changes: ``(T_q,)``, boolean."""
    changed = x.clone()
    changed[t] = -x[t]                                  # not + 1: a norm would hide it
    difference = run(changed) - run(x)                  # (T_q, d)
    return difference.abs().amax(dim=-1) > 1e-4         # more than rounding


@dataclass(frozen=True)
class _Reader:
    """An attention whose queries are given, so that an output moves with the words that it sees, and with no others."""

    does: str
    queries: Tensor = field(compare=False)
    sees: Tensor = field(compare=False)
    norm_in: bool = False
    to_output: Callable[[Tensor], Tensor] = lambda output: output
    weigh: Callable[[Tensor, Tensor], Tensor] = attention.masked_softmax

    def __call__(self, x: Tensor) -> Tensor:
        d = x.size(-1)
        h = F.layer_norm(x, (d,), torch.linspace(0.5, 1.5, d)) if self.norm_in else x
        scores = torch.tanh(self.queries @ h.T / math.sqrt(d))                # bounded: every word has its weight
        return self.to_output(self.weigh(scores, self.sees) @ h)

    def __repr__(self) -> str:
        return f"a layer that {self.does}"


def _alone(output: Tensor) -> Tensor:
    """Of each output only the second number."""
    return F.one_hot(torch.tensor(1), output.size(-1)) * output


@maker
def _readers(rng, does="reads some words", none=False, **how):
    """Fewer outputs than words: of these, some see word t, or `none` does."""
    T_q, T, d = 4 + number(rng, 0, 3), 8 + number(rng, 0, 4), 12 + number(rng, 0, 4)
    t = number(rng, 1, T - 1)
    sees = torch.rand(T_q, T, generator=rng) < 0.6
    sees[:, 0] = True                                                         # every output sees something
    sees[:, t] = torch.zeros(T_q, dtype=torch.bool) if none else torch.arange(T_q) % 2 == number(rng, 0, 2)
    return _Reader(does, 2 * randn(rng, T_q, d), sees, **how), randn(rng, T, d), t


NEW, COMPARED = "-x[t]  ", "difference.abs().amax(dim=-1) > 1e-4"
NORM_UNDOES = ("A LayerNorm undoes x[t] + 1 (it subtracts the mean) and 2 * x[t] (it divides by the deviation), so a "
               "layer that reads the word seems not to. Flip the sign, or draw new numbers.")
CHANGED = f"changed[t] = {NEW}"
ANY_NUMBER = "An output moves if any of its d numbers does: the largest difference, .abs().amax(dim=-1)."

MOVES = Exercise(moves, {"moved": "T_q"}, {
    "on ordinary inputs": _readers(),
    "when the layer norms what it reads": _readers("norms each word, then reads some", norm_in=True),
    "when an output moves in one of its numbers only":
        _readers("writes one number, and zeros", to_output=_alone),
    "when the layer norms its outputs, so that their sums stay":
        _readers("norms its outputs", to_output=lambda output: F.layer_norm(output, output.shape[-1:])),
    "when no output reads the word": _readers("does not read this word", none=True),
    "when only the rounding of outputs depends on the word":
        _readers("does not read this word, up to rounding", none=True, weigh=renormalized),
    "when outputs are small (around 0.05)": _readers("writes small numbers", to_output=lambda output: 0.05 * output),
}, (
    *each(NORM_UNDOES, (NEW, "x[t] + 1  "), (NEW, "2 * x[t]  ")),
    ("Nothing was changed: the copy still has the same x[t].", NEW, "x[t]  "),
    *each("Other words were changed as well. Change x[t] alone: changed[t] = …",
          (CHANGED, "changed = -x  "), (CHANGED, "changed[t:] = -x[t:]  "),
          (CHANGED, "changed[:t + 1] = -x[:t + 1]  ")),
    ("A number may also become smaller. Take the size of each difference first: .abs().", ".abs()", ""),
    *each(ANY_NUMBER, (".amax(dim=-1)", ".amin(dim=-1)"), (".abs().amax(dim=-1)", ".sum(dim=-1).abs()"),
          (".abs().amax(dim=-1)", ".sum(dim=-1)"),
          (COMPARED, "(difference.abs() > 1e-4).all(dim=-1)"), (".amax(dim=-1)", "[:, 0]")),
    *each("Numbers are compared for exact equality. Sums are rounded, and rounding is no move: allow for 1e-4.",
          ("> 1e-4", "> 0"), ("> 1e-4", "!= 0")),
    ("True and False are swapped: True is an output that moves.", "> 1e-4", "<= 1e-4"),
    ("Small outputs move by small amounts: with so large a tolerance you miss them. 1e-4 is more than rounding.",
     "> 1e-4", "> 0.1"),
), reasons={
    "IndexError": "There are T_q outputs and T words, and the two differ: go through the rows of what run returns.",
})


def write(source, encoder, decoder, max_words):
    """The ids of the words written for source ``(1, T_k)``, greedily, up to EOS or `max_words`. encoder: source to
    memory and src_mask; decoder: words ``(1, T_q)`` and these two to logits ``(1, T_q, V)``.
    """
    memory, src_mask = encoder(source)                              # once
    words = [BOS]
    while words[-1] != EOS and len(words) <= max_words:
        logits = decoder(torch.tensor([words]), memory, src_mask)   # (1, T_q, V)
        words.append(int(logits[0, -1].argmax()))
    return words[1:]


@maker
def _writers(rng, ends=None):
    """A decoder whose logits depend on all words before, and that ends after max_words + `ends`, or before."""
    T_k, d, max_words = sizes(rng, 3)
    source, table, out = torch.randint(EOS + 1, 30, (1, T_k), generator=rng), randn(rng, 30, d), randn(rng, d, 30)
    ends_at = max_words + ends if ends is not None else number(rng, 1, max_words - 1)
    runs = []

    def encode(source):
        runs.clear()
        return table[source], torch.ones(1, 1, source.size(-1), dtype=torch.bool)

    def decode(words, memory, src_mask):
        if words.dim() != 2:
            raise ValueError(f"decoder takes words (1, T_q), a batch of one sentence; given {tuple(words.shape)}. "
                             "torch.tensor([words]) has the outer axis")
        runs.append(1)
        if len(runs) > 2 * max_words + 2:
            raise TimeoutError(f"the loop does not stop: the decoder was run {len(runs)} times, and max_words is "
                               f"{max_words}")
        logits = (table[words].cumsum(dim=1) + memory.mean(dim=1, keepdim=True)).sin() @ out
        logits[..., :EOS + 1] = -1000.0
        logits[:, ends_at:, EOS] = 1000.0
        return logits

    return source, Function("an encoder", encode), Function("a decoder", decode), max_words


NEXT, READS = "int(logits[0, -1].argmax())", "torch.tensor([words])"

WRITE = Exercise(write, {"words": ""}, {
    "on ordinary inputs": _writers(),
    "when <eos> is the last word that may be written": _writers(-1),
    "when max_words are written before an <eos>": _writers(3),
}, (
    ("Every run takes the prediction of the first position, the word after <bos>. The next word is predicted at the "
     "last position: logits[0, -1].", NEXT, "int(logits[0, 0].argmax())"),
    *each("The decoder is given the last word only. It keeps nothing between runs, so it has to read all words again: "
          "torch.tensor([words]).", (READS, "torch.tensor([words[-1:]])"), (READS, "torch.tensor([[words[-1]]])")),
    *each("The decoder is not given <bos>, or not the word that was written last. It reads all of `words`.",
          (READS, "torch.tensor([words[:-1] or words])"), (READS, "torch.tensor([words[1:] or words])")),
    ("`words` holds tensors. int(…) makes a number of each: int(logits[0, -1].argmax()).", NEXT,
     "logits[0, -1].argmax()"),
    ("It goes on after <eos>. What follows is no part of the sentence: stop when words[-1] is EOS.",
     "words[-1] != EOS and ", ""),
    ("Only <eos> ends the loop, and a decoder may never write it: stop after max_words, too.",
     " and len(words) <= max_words", ""),
    ("One word too few: `words` begins with <bos>, which nobody wrote. len(words) <= max_words.", "<= max", "< max"),
    ("One word too many: `words` begins with <bos>, so it may grow to 1 + max_words. len(words) <= max_words.",
     "<= max_words", "<= max_words + 1"),
    ("<bos> was given, not written. Return words[1:].", "words[1:]", "words"),
    ("The last word is missing. <eos>, too, was written; and where max_words is reached, the last is a word.",
     "words[1:]", "words[1:-1]"),
), reasons={
    "IndexError": "An index that is no word: the largest number of *all* positions is taken. Only the last position "
                  "predicts the next word: logits[0, -1].argmax().",
})


def decode_step(q, k, v, past_k, past_v):
    """Queries, keys and values ``(B, n_heads, n, d_k)`` of n new words, and ``(B, n_heads, T, d_k)`` of those before,
    to the new words' outputs ``(B, n_heads, n, d_k)`` and the longer cache.
    """
    k = torch.cat([past_k, k], dim=2)                                   # (B, n_heads, T+n, d_k)
    v = torch.cat([past_v, v], dim=2)                                   # (B, n_heads, T+n, d_k)
    mask = attention.causal_mask(q.size(2), k.size(2))                  # (n, T+n)
    weights = attention.masked_softmax(q @ k.mT / math.sqrt(q.size(-1)), mask)
    return weights @ v, k, v


@maker
def _step_inputs(rng, n=1, T=None):
    """N new words, after T in the cache."""
    B, t, d_k, n_heads = sizes(rng, 4)
    before = t if T is None else T
    return (*(randn(rng, B, n_heads, n, d_k) for _ in range(3)),
            *(randn(rng, B, n_heads, before, d_k) for _ in range(2)))


NEW_K, NEW_V = "torch.cat([past_k, k], dim=2)", "torch.cat([past_v, v], dim=2)"
STEP_MASK, SCALE = "attention.causal_mask(q.size(2), k.size(2))", "math.sqrt(q.size(-1))"
WEIGHTS, SCORES = f"attention.masked_softmax(q @ k.mT / {SCALE}, mask)", f"(q @ k.mT / {SCALE})"
GROWN = f"Append the new keys and the new values: {NEW_K}, and the same for v."

DECODE_STEP = Exercise(decode_step, {"output": "B, n_heads, n, d_k", "k": "B, n_heads, T+n, d_k",
                                     "v": "B, n_heads, T+n, d_k"}, {
    "on ordinary inputs": _step_inputs(),
    "with the first word of all, when the cache is empty (T = 0)": _step_inputs(T=0),
    "when several new words come at once": _step_inputs(n=4),
    "when the first words of all come at once (T = 0)": _step_inputs(n=3, T=0),
}, (
    (f"The cache is not used: the new word sees only itself. {GROWN}", NEW_K, "k", NEW_V, "v"),
    *each(f"The longer cache does not come back: a next word would not see this one, or none before it. {GROWN}",
          ("v, k, v", "v, past_k, past_v"), ("v, k, v", "v, k[:, :, -q.size(2):], v[:, :, -q.size(2):]")),
    ("The new word does not see itself. First append its key and value, then attend to all of them; no mask may hide "
     "the newest.", "weights @ v, k", "(q @ past_k.mT / math.sqrt(k.size(-1))).softmax(-1) @ past_v, k"),
    ("The new key and value stand in front. They belong behind the others, where their place in the sentence is: "
     "torch.cat([past_k, k], dim=2).", "past_k, k]", "k, past_k]", "past_v, v]", "v, past_v]"),
    ("A word falls out of the cache, the oldest or the last. It grows: every word before is still to be seen.",
     NEW_K, f"{NEW_K}[:, :, 1:]", NEW_V, f"{NEW_V}[:, :, 1:]"),
    ("Keys and values are mixed up. Scores are made with the keys, the weights sum the values.",
     "weights @ v, k", "weights @ k, k"),
    *each("The new word is appended along the batch, the heads or the width. Time is axis 2: dim=2.",
          ("k], dim=2", "k], dim=1"), ("k], dim=2", "k], dim=0"), ("k], dim=2", "k], dim=-1")),
    *each("The scale is wrong. Divide the scores by sqrt(d_k), with d_k the width of a query.", (f" / {SCALE}", ""),
          ("math.sqrt(q.size(-1))", "q.size(-1)")),
    ("The softmax is missing, or runs over the wrong axis. Each new word spreads its attention over the keys, so its "
     "weights sum to one: dim=-1.", WEIGHTS, SCORES),
    ("The mask counts from the first key, so that a new word sees only the first, or the first few. The new words are "
     "the *last* positions: attention.causal_mask(n, T + n).", STEP_MASK, f"torch.ones_like({STEP_MASK}).tril()"),
    ("Of several new words, each is to see those before it, and none after it. They need a causal mask among "
     "themselves: attention.causal_mask(n, T + n).", STEP_MASK, "None"),
    ("The mask comes after the softmax, when hidden words have taken their share: a row does not sum to one. Hide them "
     "before it, with -inf.", WEIGHTS, f"{SCORES}.softmax(-1) * mask"),
), timed=lambda rng: (*(randn(rng, 16, 4, 1, 16) for _ in range(3)), *(randn(rng, 16, 4, 200, 16) for _ in range(2))))


def effective_words(weights):
    """Weights ``(…, T_k)`` to ``(…)``: among how many words each row is spread, the exponential of its entropy."""
    logs = weights.masked_fill(weights == 0, 1).log()                   # 0 log 0 is 0
    return (-(weights * logs).sum(dim=-1)).exp()


@maker
def _rows(rng, hard=False):
    """A maker of rows of weights, with ``hard`` one in four of them on a single word, with zeros elsewhere."""
    B, T_q, T_k = sizes(rng, 3)
    weights = (3 * randn(rng, B, T_q + 1, T_k)).softmax(-1)
    if hard:
        weights[:, 0] = F.one_hot(torch.arange(B) % T_k, T_k).float()
    return (weights.double(),)                 # in float64 no gradient is asked for: it is a measurement


ENTROPY = "-(weights * logs).sum(dim=-1)"

EFFECTIVE_WORDS = Exercise(effective_words, {"words": "B, T_q"}, {
    "on ordinary inputs": _rows(),
    "when all weight is on one word, and the others have 0": _rows(hard=True),
}, (
    ("This is the entropy in nats. Its exponential is a number of words: 1 if all weight is on one.",
     f"({ENTROPY}).exp()", ENTROPY),
    ("This is the entropy in bits. Take the natural logarithm, then the exponential.",
     ".log()", ".log2()", f"({ENTROPY}).exp()", ENTROPY),
    ("The logarithm has base 2 and the exponential base e. They must belong together: log and exp.",
     ".log()", ".log2()"),
    ("The sign is lost: logarithms of weights are negative, and the entropy is minus their mean.",
     "(-(weights", "((weights"),
    *each("The sum runs over the wrong axis. A row is a query, its weights run over the keys: dim=-1.",
          ("dim=-1", "dim=1"), ("dim=-1", "dim=0"), ("dim=-1", "")),
    ("This counts the words whose weight is not 0, however small. Use the entropy.",
     "(-(weights * logs).sum(dim=-1)).exp()", "(weights > 0).sum(dim=-1).float()"),
    ("This is the inverse of the summed squares, another measure of spread. Use the exponential of the entropy.",
     "(-(weights * logs).sum(dim=-1)).exp()", "1 / weights.pow(2).sum(dim=-1)"),
), reasons={
    "when all weight is on one word, and the others have 0":
        "0 times log 0 is NaN in floating-point numbers. Such a word adds nothing: torch.special.entr does it right, "
        "or set its weight to 1 before the logarithm.",
})


def layer_parameters(d_model, d_ff, decoder):
    """How many numbers a layer learns; a decoder layer has one attention and one norm more."""
    attention = 4 * (d_model * d_model + d_model)                       # W_q, W_k, W_v, W_o, each with a bias
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model                                                  # gain and bias
    return attention + feed_forward + 2 * norm + decoder * (attention + norm)


@maker
def _widths(rng, decoder):
    a, b = sizes(rng, 2)
    return 8 * a, 40 * b + 8, decoder


LAYER_PARAMETERS = Exercise(layer_parameters, {"parameters": ""}, {
    "with decoder=False": _widths(False),
    "with decoder=True": _widths(True),
}, (
    ("An attention has four matrices: W_q, W_k, W_v, and W_o after the heads are joined.", "4 *", "3 *"),
    *each("The biases are missing. Each of the six matrices of an encoder layer has one.",
          ("d_model * d_model + d_model", "d_model * d_model", " + d_ff + d_model", ""),
          ("d_model * d_model + d_model", "d_model * d_model")),
    *each("The biases of the feed-forward network are d_ff numbers inside and d_model at its end.",
          (" + d_ff + d_model", ""), (" + d_ff + d_model", " + d_ff"), (" + d_ff + d_model", " + d_model"),
          (" + d_ff + d_model", " + 2 * d_model")),
    ("The feed-forward network has two matrices, into d_ff numbers and back.", "2 * d_model * d_ff", "d_model * d_ff"),
    *each("A LayerNorm learns two numbers per feature, gain and bias, and each sublayer has a norm of its own: two "
          "in an encoder layer, three in a decoder layer.", ("2 * d_model  ", "d_model  "), ("2 * norm", "norm"),
          ("attention + norm)", "attention)"), ("2 * norm", "3 * norm")),
    *each("A decoder layer has a second attention, which reads the memory.", ("attention + norm)", "norm)"),
          (" + decoder * (attention + norm)", "")),
    ("A decoder layer has one feed-forward network, as an encoder layer has.",
     "decoder * (attention + norm)", "decoder * (attention + norm + feed_forward)"),
))


def combined_gradient(gradients, n_tokens):
    """Gradients ``(P, n)`` of P processes' mean losses, and how many tokens each had ``(P,)``, to that of the mean over
    all tokens ``(n,)``.
    """
    shares = n_tokens / n_tokens.sum()                                  # (P,)
    return (shares.unsqueeze(1) * gradients).sum(dim=0)


@maker
def _processes(rng, equal=False):
    P, n = sizes(rng, 2)
    tokens = torch.full((P,), 7) if equal else torch.randint(3, 60, (P,), generator=rng)
    return randn(rng, P, n).double(), tokens.double()     # float64, as in the lesson: no gradient is asked for


SHARES, WEIGHTED = "n_tokens / n_tokens.sum()", "(shares.unsqueeze(1) * gradients).sum(dim=0)"

COMBINED_GRADIENT = Exercise(combined_gradient, {"gradient": "n"}, {
    "when all have equally many tokens": _processes(equal=True),
    "when they have different numbers of tokens": _processes(),
}, (
    ("Every process counts the same, however few tokens it had. Weight each gradient by its share of the tokens.",
     WEIGHTED, "gradients.mean(dim=0)"),
    *each("The gradients are added up, not averaged: the step would grow with the number of processes.",
          (WEIGHTED, "gradients.sum(dim=0)"), (SHARES, "n_tokens / n_tokens.mean()")),
    *each("The gradients are divided by numbers of tokens. They are those of mean losses, divided already: multiply "
          "each by its process's share of all tokens.", (SHARES, "1 / n_tokens"),
          (WEIGHTED, "gradients.sum(dim=0) / n_tokens.sum()")),
    ("The sum is not divided by the number of all tokens.", SHARES, "n_tokens"),
    ("The processes are weighted by the inverse of their tokens. Many tokens: much weight.",
     SHARES, "(1 / n_tokens) / (1 / n_tokens).sum()"),
    ("The weighted gradients are averaged once more: the shares sum to one already.",
     "(shares.unsqueeze(1) * gradients).sum(dim=0)", "(shares.unsqueeze(1) * gradients).mean(dim=0)"),
    ("(P,) and (P, n) do not line up. Give the shares an axis for the parameters: shares.unsqueeze(1).",
     "shares.unsqueeze(1)", "shares"),
))


LESSON_04 = (LAYER_NORM, SMOOTHED_TARGETS, DECODER_LAYER, MOVES, WRITE, DECODE_STEP, EFFECTIVE_WORDS,
             LAYER_PARAMETERS, COMBINED_GRADIENT)
