"""Lesson 03, self-attention: the exercises, their solutions and the ways in which they go wrong."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import attention
from .engine import Exercise, each
from .inputs import maker, number, randn, sizes
from .lesson_02 import (
    IGNORED,
    INVERTED,
    RAW_EXP,
    SCALED_LATE,
    WRONG_AXIS,
    masked_softmax,
)

NO_SOFTMAX = "The softmax is missing: the raw scores are used as weights."


def self_attention(x, W_q, W_k, W_v):
    """x ``(T, d)``, W_q and W_k ``(d, d_k)``, W_v ``(d, d_v)`` to the output ``(T, d_v)`` and weights ``(T, T)``."""
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    weights = (q @ k.T / math.sqrt(q.size(-1))).softmax(dim=-1)     # (T, T)
    return weights @ v, weights


def _self_inputs(rng, T=None):
    t, d, d_k, d_v = sizes(rng, 4)
    return randn(rng, T or t, d), randn(rng, d, d_k), randn(rng, d, d_k), randn(rng, d, d_v)


def _large_scores(rng):
    """Scores of a hundred, exact in whatever order they are computed: halves, and a scale of 16."""
    T, d, d_v = sizes(rng, 3)
    W = torch.randint(-1, 2, (d, 256), generator=rng) / 2
    return torch.randint(-3, 4, (T, d), generator=rng).float(), W, W.clone(), randn(rng, d, d_v)


SCALE = " / math.sqrt(q.size(-1))"

SELF_ATTENTION = Exercise(self_attention, {"output": "T, d_v", "weights": "T, T"}, {
    "on ordinary inputs": _self_inputs,
    "where scores are large (around 100)": _large_scores,
    "with a single word (T = 1)": lambda rng: _self_inputs(rng, T=1),
}, (
    ("The scale is missing: divide the scores by sqrt(d_k), the width of a query.", SCALE, ""),
    *each("The scale is not the root of a query's width. Divide by sqrt(d_k), with d_k = q.size(-1): not by d_k, nor "
          "by a root of the width of x.", (SCALE, " / q.size(-1)"), (SCALE, " / math.sqrt(x.size(-1))"),
          (SCALE, " / math.sqrt(v.size(-1))"), (SCALE, " / math.sqrt(len(x))"), (SCALE, " * math.sqrt(q.size(-1))"),
          (SCALE, " / 8")),
    *each(SCALED_LATE, (f"{SCALE}).softmax(dim=-1)", f").softmax(dim=-1){SCALE}"),
          (SCALE, "", "weights @ v", f"weights{SCALE} @ v")),
    (WRONG_AXIS, "dim=-1", "dim=0"),
    ("Queries and keys have changed places. Queries are the rows: q @ k.T.", "q @ k.T", "k @ q.T"),
    ("The weights are transposed before they mix the values. Row i has the weights of query i: weights @ v.",
     "weights @ v", "weights.T @ v"),
    ("The keys are mixed instead of the values. Keys say where to look, values what is found.", "s @ v", "s @ k"),
    *each("The second result holds the scores. Return the weights, after the softmax.",
          ("v, weights", f"v, q @ k.T{SCALE}"), ("v, weights", "v, q @ k.T")),
    (NO_SOFTMAX, ".softmax(dim=-1)", ""),
), reasons={
    "where scores are large (around 100)": RAW_EXP,
})


def causal_mask(n):
    """Boolean ``(n, n)``: True where a query (row) may attend to a key (column), up to its own position."""
    return torch.arange(n) <= torch.arange(n).unsqueeze(1)


WHOLE_MASK = "torch.arange(n) <= torch.arange(n).unsqueeze(1)"

CAUSAL_MASK = Exercise(causal_mask, {"mask": "n, n"}, {
    "on ordinary inputs": lambda rng: (number(rng, 3, 9),),
    "with a single position (n = 1)": lambda rng: (1,),
    "with 130 positions": lambda rng: (130,),
}, (
    ("The mask is inverted: it is True where a query must not look. True means *may attend*; turn it round with ~.",
     "<=", ">"),
    ("Past and future are swapped: a query sees itself and everything after it. Rows are queries, columns are keys: "
     "the lower triangle, tril.", "<=", ">="),
    ("Off by one: a query does not see its own position, and the first one sees nothing. The diagonal belongs to the "
     "mask.", "<=", "<"),
    ("Off by one: every query also sees the position after its own, which is the one to be predicted.",
     "<=", "<= 1 +"),
    ("Every query sees every key. Only keys up to the query's own position: tril.", "<=", "<= n +"),
    ("This is a mask to be added to the scores, 0 and -inf. Here it is boolean: True = may attend.",
     WHOLE_MASK, f"torch.zeros(n, n).masked_fill(~({WHOLE_MASK}), -math.inf)"),
    ("Each position is compared with itself only. To cross rows and columns, give the rows an axis of their own: "
     "torch.arange(n).unsqueeze(1).", ".unsqueeze(1)", ""),
))


def is_causal(layer, x):
    """Whether changing x[t] changes no output before t, for each t: layer ``(T, d)`` to ``(T, d)``, x ``(T, d)``."""
    before = layer(x)
    for t in range(len(x)):
        changed = x.clone()
        changed[t] = torch.randn_like(x[t])
        if not torch.allclose(layer(changed)[:t], before[:t], atol=1e-5):
            return False
    return True


def renormalized(scores: Tensor, mask: Tensor) -> Tensor:
    """`attention.masked_softmax` by another way, in which what is hidden changes the rounding."""
    weights = scores.softmax(-1) * mask
    return weights / weights.sum(-1, keepdim=True)


@dataclass(frozen=True)
class _Planted:
    """An attention over x's own rows, however many: what it does, and who sees whom, (query, key, T) -> bool."""

    does: str
    sees: Callable[[Tensor, Tensor, int], Tensor] = lambda i, j, T: j <= i
    weigh: Callable[[Tensor, Tensor], Tensor] = attention.masked_softmax
    norm_in: bool = False
    norm_out: bool = False

    def __call__(self, x: Tensor) -> Tensor:
        T, d = x.shape
        h = F.layer_norm(x, (d,)) if self.norm_in else x
        scores = 2 * torch.tanh(h @ h.T / math.sqrt(d))                # bounded, so that x may change a lot
        mask = self.sees(torch.arange(T).unsqueeze(1), torch.arange(T).expand(T, T), T)
        output = self.weigh(scores, mask) @ h
        return F.layer_norm(output, (d,)) if self.norm_out else output

    def __repr__(self) -> str:
        return f"an attention that {self.does}"

    def inputs(self, rng: torch.Generator) -> tuple:
        """Itself, and x of more positions than numbers in each."""
        T, d = sizes(rng, 2)
        return self, randn(rng, T + 6, d + 1)                          # in a layer norm two numbers are only ever ±1


CAUSAL = _Planted("is causal")
PLANTED = (
    _Planted("has no mask", lambda i, j, T: j < T),
    _Planted("has an inverted mask", lambda i, j, T: j > i),
    _Planted("lets each query see the next key, too", lambda i, j, T: j <= i + 1),
    _Planted("masks after the softmax, so that later keys have taken their share", CAUSAL.sees,
             lambda scores, mask: scores.softmax(-1) * mask),
    _Planted("adds the mean of all positions", CAUSAL.sees,
             lambda scores, mask: attention.masked_softmax(scores, mask) + 1 / max(len(mask), 1)),
    _Planted("lets all queries see the last key", lambda i, j, T: (j <= i) | (j == T - 1)),
    _Planted("lets the first query see the last key", lambda i, j, T: (j <= i) | (i == 0) & (j == T - 1)),
    _Planted("lets the first query see the next key", lambda i, j, T: (j <= i) | (i == 0) & (j == 1)),
    _Planted("lets the last query but one see the last key", lambda i, j, T: (j <= i) | (i == T - 2) & (j == T - 1)),
    _Planted("lets a query in the middle see the next key but one",
             lambda i, j, T: (j <= i) | (i == T // 2) & (j == T // 2 + 2)),
    _Planted("is causal, but lets no query see its own position", lambda i, j, T: j < i),
    _Planted("is causal, and only rounding depends on later positions", CAUSAL.sees, renormalized),
    _Planted("layer-norms its output, and has no mask", lambda i, j, T: j < T, norm_out=True),
    _Planted("layer-norms its input first, and has no mask", lambda i, j, T: j < T, norm_in=True),
)

EVERY_T = "range(len(x))"
BOTH = "layer(changed)[:t], before[:t]"
NOT_ALL_PAIRS = ("A leak was not seen: only some positions are changed, or only some outputs compared. Change every "
                 "x[t] in turn, and compare all outputs before it: out[:t].")

IS_CAUSAL = Exercise(is_causal, {"causal": ""}, {
    "on ordinary inputs": CAUSAL.inputs,
    **{f"when the attention {planted.does}": planted.inputs for planted in PLANTED},
}, (
    ("A causal attention is called not causal. Compare only the outputs before t, out[:t]: output t may change, and so "
     "may all after it. Copy x anew for every t, or the changes pile up. (If you wrote NaN or inf into x[t]: times a "
     "weight of 0 it is NaN, leak or not. Write a number.)", BOTH, "layer(changed)[:t + 1], before[:t + 1]"),
    ("An attention without a mask is called causal. Compare the outputs of x with those of a changed copy of it, "
     "x.clone(), for every t: with new numbers in changed[t]. Return True only after the loop: before t = 0 there is "
     "no output. (Words that only change places leave a sum as it is.)",
     "torch.randn_like(x[t])", "x[t]"),
    ("Only neighbours are compared: x[t] with output t - 1. Compare all outputs before t: out[:t].",
     EVERY_T, "range(1, len(x))", BOTH, "layer(changed)[t - 1], before[t - 1]"),
    *(("The last position is never changed, so its leak stays unseen. Change every x[t] in turn: range(len(x)) holds "
       "them all, the last one too.", EVERY_T, some) for some in ("range(len(x) - 1)", "[len(x) // 2]", "[1]")),
    ("Adding the same to all numbers of x[t] is undone by a layer norm, so the leak stays unseen. Put random numbers "
     "there: torch.randn_like(x[t]).", "torch.randn_like(x[t])", "x[t] + 1"),
    (NOT_ALL_PAIRS, EVERY_T, "[len(x) - 1]"),
    (NOT_ALL_PAIRS, EVERY_T, "range(1, len(x))", BOTH, "layer(changed)[0], before[0]"),
    (NOT_ALL_PAIRS, BOTH, "layer(changed)[:t][:2], before[:t][:2]"),
    (NOT_ALL_PAIRS, EVERY_T, "[len(x) // 2]", "changed[t] = torch.randn_like(x[t])",
     "changed[t:] = torch.randn_like(x[t:])"),
    ("Numbers are compared for exact equality. Sums are rounded, and rounding is no leak: torch.allclose.",
     f"torch.allclose({BOTH}, atol=1e-5)", f"torch.equal({BOTH})"),
))


def split_heads(x, n_heads):
    """x ``(B, T, d_model)`` to ``(B, n_heads, T, d_k)``; head h gets the h-th part of the width."""
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)   # (B, n_heads, T, d_k)


def _head_inputs(rng, one_head=False, one_word=False):
    while True:
        B, T, d_k, n_heads = sizes(rng, 4)
        if n_heads * d_k not in (B, T):
            B, T, n_heads = 1 if one_word else B, 1 if one_word else T, 1 if one_head else n_heads
            return randn(rng, B, T, n_heads * d_k), n_heads


SPLIT = "x.unflatten(-1, (n_heads, -1)).transpose(1, 2)"
MIXED = ("view or reshape to (B, n_heads, T, d_k) cuts the numbers in the order in which they lie, so that a head gets "
         "whole positions and no head sees them all. First give the heads an axis, (B, T, n_heads, d_k), then "
         "transpose(1, 2).")

SPLIT_HEADS = Exercise(split_heads, {"heads": "B, n_heads, T, d_k"}, {
    "on ordinary inputs": _head_inputs,
    "with one head": lambda rng: _head_inputs(rng, one_head=True),
    "with one sentence of one word (B = T = 1)": lambda rng: _head_inputs(rng, one_word=True),
}, (
    (MIXED, SPLIT, "x.reshape(x.size(0), n_heads, x.size(1), -1)"),
    (MIXED, SPLIT, "x.transpose(1, 2).reshape(x.size(0), n_heads, x.size(1), -1)"),
    ("A head gets every n_heads-th number of the width. It gets neighbours: view the width as (n_heads, d_k), in this "
     "order.", SPLIT, "x.unflatten(-1, (-1, n_heads)).permute(0, 3, 1, 2)"),
    ("Every head gets the same part of the width, the first. Head h gets part h.",
     "transpose(1, 2)", "transpose(1, 2)[:, :1].expand(-1, n_heads, -1, -1)"),
    ("Batch and heads are mixed: the heads' axis has to come out of the width, not out of the batch.",
     SPLIT, "x.reshape(n_heads, x.size(0), x.size(1), -1).transpose(0, 1)"),
), timed=lambda rng: (randn(rng, 32, 24, 64), 4))


def multi_head(x, W_q, W_k, W_v, W_o, n_heads, mask):
    """x ``(B, T, d_model)`` to the output, like x, and weights ``(B, n_heads, T, T)``; mask: True = may attend."""
    q, k, v = (split_heads(x @ W, n_heads) for W in (W_q, W_k, W_v))
    weights = masked_softmax(q @ k.mT / math.sqrt(q.size(-1)), mask)
    return (weights @ v).transpose(1, 2).flatten(-2) @ W_o, weights


@maker
def _multi_inputs(rng, shape=lambda B, n_heads, T: (B, 1, 1, T), one_head=False, empty=False):
    """Each row of the mask has an allowed and a forbidden key; or none, the first row."""
    x, n_heads = _head_inputs(rng, one_head)
    B, T, d_model = x.shape
    matrices = [randn(rng, d_model, d_model) / math.sqrt(d_model) for _ in range(4)]
    *rows, T = shape(B, n_heads, T)
    ranks = torch.rand((*rows, T), generator=rng).argsort(-1)
    mask = ranks < torch.randint(1, T, (*rows, 1), generator=rng)
    mask[0] &= not empty
    return x, *matrices, n_heads, mask


def _far_below_zero(rng):
    """A query's score with its own key is the lowest, around -30,000; whole numbers and a scale of 8 keep it exact."""
    B, T = sizes(rng, 2)
    x, W = (torch.randint(-n, n + 1, shape, generator=rng).float() for n, shape in ((10, (B, T, 128)), (1, (128, 128))))
    return x, -W, W, *(randn(rng, 128, 128) / n for n in (1000, 10)), 2, causal_mask(T)


SCORES = f"q @ k.mT{SCALE}"
WEIGHTS = f"masked_softmax({SCORES}, mask)"
EACH = "split_heads(x @ W, n_heads)"
JOINED, BY_VIEW = "(weights @ v).transpose(1, 2).flatten(-2)", "(weights @ v).reshape(x.shape)"

MULTI_HEAD = Exercise(multi_head, {"output": "B, T, d_model", "weights": "B, n_heads, T, T"}, {
    "on ordinary inputs": _multi_inputs(),
    "when each query has its own mask (T, T)": _multi_inputs(lambda B, n_heads, T: (T, T)),
    "when each head has its own mask (B, n_heads, T, T)": _multi_inputs(lambda B, n_heads, T: (B, n_heads, T, T)),
    "with one head": _multi_inputs(one_head=True),
    "when a query may attend to nothing": _multi_inputs(lambda B, n_heads, T: (T, T), empty=True),
    "when scores are large (down to -30,000), the masked ones the largest": _far_below_zero,
}, (
    *each("The scale is missing, or not that of a head: divide the scores by sqrt(d_k), the root of a head's width, "
          "d_k = d_model / n_heads. A head adds up d_k products, not d_model.", (SCALE, ""),
          (SCALE, " / math.sqrt(x.size(-1))"), (SCALE, " / q.size(-1)"), (SCALE, " / math.sqrt(n_heads)")),
    (IGNORED, WEIGHTS, f"({SCORES}).softmax(-1)"),
    (INVERTED, WEIGHTS, f"({SCORES}).masked_fill(mask, -math.inf).softmax(-1)"),
    ("The mask is applied after the softmax: masked keys have already taken their share. Mask the scores, not the "
     "weights.", WEIGHTS, f"({SCORES}).softmax(-1) * mask"),
    *each(WRONG_AXIS, (WEIGHTS, f"({SCORES}).masked_fill(~mask, -math.inf).softmax(-2)"),
          (WEIGHTS, f"({SCORES}).masked_fill(~mask, -1e9).softmax(-2)"),
          (WEIGHTS, f"({SCORES}).masked_fill(~mask, -1e9).softmax(1)")),
    *each(MIXED, (EACH, "(x @ W).reshape(len(x), n_heads, x.size(1), -1)", JOINED, BY_VIEW),
          (EACH, "(x @ W).reshape(len(x), n_heads, x.size(1), -1)")),
    ("The heads' outputs (B, n_heads, T, d_k) are joined without a transpose, so that positions are mixed. First "
     "transpose(1, 2), then flatten the last two axes.", JOINED, BY_VIEW),
    *each("The heads are missing: n_heads is not used for splitting. Split the projected queries, keys and values, "
          "so that every head has weights of its own.", (EACH, "split_heads(x @ W, 1)"),
          (EACH, "split_heads(x @ W, 1)", "o, weights", "o, weights.squeeze(1)")),
    *each("W_o is missing, or matrices are transposed (W_o or all, as in nn.Linear). They are used as they are, x @ "
          "W, and W_o mixes the heads' outputs, which lie side by side until then.", (" @ W_o", ""),
          (" @ W_o", " @ W_o.T"), (" @ W_o", " @ W_o.T", "x @ W,", "x @ W.T,")),
), reasons={
    "when scores are large (down to -30,000), the masked ones the largest":
        "Masked keys took part in the softmax, with a finite score or because the mask came after it (they have taken "
        "their share, and with a huge score all of it), or exp() underflows. Mask the scores, with -inf.",
    "when a query may attend to nothing":
        "A query that may attend to nothing has a row of -inf, whose softmax is 0 / 0 = NaN, or (with a large finite "
        "number, such as -1e9) equal weights on all that is forbidden. masked_softmax gives it zeros.",
})


def sinusoidal(n, d_model):
    """``(n, d_model)``: sin(position / 10000^(2i / d_model)) in column 2i, its cos in column 2i + 1; d_model even."""
    frequencies = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)       # (d_model / 2,)
    angles = torch.arange(n).unsqueeze(1) * frequencies                     # (n, d_model / 2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def _size_inputs(rng):
    """An odd number of positions and an even width, so that the two differ."""
    n, pairs = sizes(rng, 2)
    return 2 * n + 1, 2 * pairs


WAVES = "[angles.sin(), angles.cos()]"
MULTIPLIED = "The position is multiplied by 10000^(2i / d). Divide: later pairs are slower."
FROM_ONE = "The positions are numbered from one. They count from zero: torch.arange(n)."
SAME_SPEED = ("All pairs have the same angle, the position itself. Pair i is slower: position / 10000^(2i / d). (// "
              "would round that exponent down to 0.)")

SINUSOIDAL = Exercise(sinusoidal, {"table": "n, d_model"}, {
    "on ordinary inputs": _size_inputs,
    "with one pair of columns (d_model = 2)": lambda rng: (_size_inputs(rng)[0], 2),
    "with 120 positions": lambda rng: (120, _size_inputs(rng)[1]),
}, (
    ("sin and cos are swapped. sin stands in the even columns 0, 2, …, cos in the odd ones.",
     WAVES, "[angles.cos(), angles.sin()]"),
    ("One half of the columns is sin and the other cos. The paper puts them in pairs: sin in columns 0, 2, …, cos in "
     "1, 3, ….", "dim=-1", "dim=-2"),
    ("The exponent is i / d (or the base 100, which is the same). The pair i has the columns 2i and 2i + 1, and both "
     "have the exponent 2i / d: with i = 0, 1, … for the pairs, multiply by 2.", "/ d_model)", "/ d_model / 2)"),
    ("The exponent grows twice as fast as it should. If torch.arange(0, d, 2) counts the columns, it is 2i already: do "
     "not multiply by 2 again.", "/ d_model)", "/ d_model * 2)"),
    *each("Every column has an angle of its own. sin and cos of a pair have the same: column 2i + 1 also has the "
          "exponent 2i / d.",
          *(("d_model, 2)", columns, f"torch.stack({WAVES}, dim=-1).flatten(-2)",
             "torch.where(torch.arange(d_model) % 2 == 0, angles.sin(), angles.cos())")
            for columns in ("d_model)", "d_model) * 2"))),
    ("The base is not 10000: position / 10000^(2i / d).", "10000.0", "1000.0"),
    *each(MULTIPLIED, ("(-torch", "(torch"), ("10000.0 ** (-torch.arange(0, d_model, 2) / d_model)",
          "(torch.arange(0, d_model, 2) * (math.log(10000.0) / d_model)).exp()")),
    (FROM_ONE, "arange(n)", "arange(1, n + 1)"),
    (SAME_SPEED, "* frequencies", "* frequencies ** 0"),
    ("** comes before /, so only 2i is the exponent. Put it in parentheses: 10000 ** (2 * i / d).",
     "** (-torch.arange(0, d_model, 2) / d_model)", "** -torch.arange(0, d_model, 2) * d_model"),
    ("These are the angles. Take sin of them in the even columns, cos in the odd ones.", WAVES, "[angles, angles]"),
    *each("The odd columns are empty, or sin as well. They hold cos of the same angles.",
          ("angles.cos()", "0 * angles"), ("angles.cos()", "angles.sin()")),
))


def rotary(x):
    """x ``(T, d)``: at position t, the pair (x[t, 2i], x[t, 2i + 1]) is rotated by t / 10000^(2i / d); d even."""
    T, d = x.shape
    angles = torch.arange(T).unsqueeze(1) * 10000.0 ** (-torch.arange(0, d, 2) / d)
    a, b, cos, sin = x[:, 0::2], x[:, 1::2], angles.cos(), angles.sin()
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


def _rotary_inputs(rng):
    return (randn(rng, *_size_inputs(rng)),)


ROTATED = "[a * cos - b * sin, a * sin + b * cos]"

ROTARY = Exercise(rotary, {"rotated": "T, d"}, {
    "on ordinary inputs": _rotary_inputs,
    "with a single position, which is 0 and stays as it is": lambda rng: (_rotary_inputs(rng)[0][:1],),
    "with 40 positions": lambda rng: (randn(rng, 40, _size_inputs(rng)[1]),),
}, (
    *each("Number i of the left half is paired with number i of the right half, as some models do. Here neighbours "
          "are a pair: x[:, 0::2] and x[:, 1::2].", ("x[:, 0::2], x[:, 1::2]", "*x.chunk(2, -1)", "dim=-1)", "dim=-2)"),
          ("x[:, 0::2], x[:, 1::2]", "*x.chunk(2, -1)")),
    ("The pairs are rotated right, but put back as two halves. They go back to their places, 2i and 2i + 1: stack them "
     "on a new last axis, then flatten.", "dim=-1)", "dim=-2)"),
    ("The rotation goes the other way round: the minus belongs to the first of the pair, a cos - b sin, a sin + b cos.",
     ROTATED, "[a * cos + b * sin, b * cos - a * sin]"),
    ("sin and cos are swapped. Position 0 has the angle 0 and stays as it is: a cos - b sin, a sin + b cos.",
     "angles.cos(), angles.sin()", "angles.sin(), angles.cos()"),
    *each("There is no minus, or one too many: this is no rotation, lengths change. a cos - b sin, a sin + b cos.",
          ("cos - b", "cos + b"), ("sin + b", "sin - b")),
    ("The second of the pair is computed from the first after its rotation. Keep the old one until both are done.",
     "[a * cos - b * sin, a *", "[a * cos - b * sin, (a * cos - b * sin) *"),
    *each("Each number is only multiplied. Its partner's part is missing: a rotation mixes the two numbers of a "
          "pair, a cos - b sin, a sin + b cos.", (ROTATED, "[a * cos, b * sin]"),
          ("[a * cos - b * sin, a * sin + b * cos]", "[a * cos, b * cos]")),
    *each("The exponent or the base is wrong. The pair i, x[:, 2i] and x[:, 2i + 1], turns by t / 10000^(2i / d): "
          "with i = 0, 1, … for the pairs, multiply by 2; torch.arange(0, d, 2) is 2i already.", ("/ d)", "/ d / 2)"),
          ("/ d)", "/ d * 2)"), ("10000.0", "1000.0")),
    (MULTIPLIED, "(-torch", "(torch"),
    (SAME_SPEED, " * 10000.0 ** (-torch.arange(0, d, 2) / d)", " * torch.ones(d // 2)"),
    (FROM_ONE, "arange(T)", "arange(1, T + 1)"),
    ("The sinusoidal table is added. That is the other method: here pairs are rotated, nothing is added.",
     "return torch.stack([a * cos - b * sin, a * sin + b * cos]", "return x + torch.stack([sin, cos]"),
))


LESSON_03 = (SELF_ATTENTION, CAUSAL_MASK, IS_CAUSAL, SPLIT_HEADS, MULTI_HEAD, SINUSOIDAL, ROTARY)
