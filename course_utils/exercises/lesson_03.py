"""Lesson 03, self-attention: the exercises, their references and the ways in which they go wrong."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils import attention as ours
from course_utils.exercises.engine import Exercise
from course_utils.exercises.inputs import randn, sizes
from course_utils.exercises.lesson_02 import AFTER, IGNORED, INVERTED, SCALED_LATE, SET_TO_ZERO, WRONG_AXIS

NO_SOFTMAX = "The softmax is missing: the raw scores are used as weights."
ORDER = "The order of the results is (output, weights)."
SCORES_RETURNED = "The second result holds the scores. Return the weights, after the softmax."


# --- self_attention ------------------------------------------------------------------------------------------

def self_attention(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> tuple[Tensor, Tensor]:
    """x (T, d), W_q and W_k (d, d_k), W_v (d, d_v), used as x @ W
    -> output (T, d_v), weights (T, T)
    """
    return _self()(x, W_q, W_k, W_v)


def _root_of_width(q, x, v):
    return math.sqrt(q.size(-1))


def _self(scale=_root_of_width, softmax=lambda scores: scores.softmax(-1), project=lambda x, W: x @ W,
          result=lambda weights, scores, q, k, v, x: (weights @ v, weights)):
    """Self-attention, of which a part may be wrong."""
    def attend(x, W_q, W_k, W_v):
        q, k, v = (project(x, W) for W in (W_q, W_k, W_v))
        scores = q @ k.T / scale(q, x, v)
        return result(softmax(scores), scores, q, k, v, x)
    return attend


def _self_inputs(rng):
    T, d, d_k, d_v = sizes(rng, 4)
    return randn(rng, T, d), randn(rng, d, d_k), randn(rng, d, d_k), randn(rng, d, d_v)


def _divided_late(of_output):
    def result(weights, scores, q, k, v, x):
        late = weights / math.sqrt(q.size(-1))
        return late @ v, late if of_output else weights
    return _self(lambda q, x, v: 1, result=result)


SELF_ATTENTION = Exercise(self_attention, {"output": "T, d_v", "weights": "T, T"}, {
    "on ordinary inputs": _self_inputs,
}, (
    ("The scale is missing: divide the scores by sqrt(d_k), the width of a query.", _self(lambda q, x, v: 1)),
    ("The scores are divided by d_k. The scale is its root, sqrt(d_k): a sum of d_k products has the standard "
     "deviation sqrt(d_k).", _self(lambda q, x, v: q.size(-1))),
    ("The scores are scaled by the width of x, sqrt(d). The products that were added up are those of a query and a "
     "key: sqrt(d_k).", _self(lambda q, x, v: math.sqrt(x.size(-1)))),
    ("The scores are scaled by the width of the values. The scale is sqrt(d_k), with d_k the width of a query.",
     _self(lambda q, x, v: math.sqrt(v.size(-1)))),
    ("The scores are scaled by the number of positions. The scale is sqrt(d_k), with d_k the width of a query.",
     _self(lambda q, x, v: math.sqrt(len(x)))),
    ("The scores are multiplied by sqrt(d_k). Divide.", _self(lambda q, x, v: 1 / math.sqrt(q.size(-1)))),
    (SCALED_LATE, _divided_late(True)),
    (SCALED_LATE, _divided_late(False)),
    (WRONG_AXIS, _self(softmax=lambda s: s.softmax(0))),
    (NO_SOFTMAX, _self(softmax=lambda s: s)),
    ("exp() of the scores is not divided by its sum over the keys.", _self(softmax=torch.exp)),
    ("Queries and keys have changed places. Queries are the rows: q @ k.T.", _self(softmax=lambda s: s.T.softmax(-1))),
    ("The keys are not projected by W_k: queries meet queries.",
     lambda x, W_q, W_k, W_v: self_attention(x, W_q, W_q, W_v)),
    ("The queries are not projected by W_q: keys meet keys.",
     lambda x, W_q, W_k, W_v: self_attention(x, W_k, W_k, W_v)),
    ("The values are not projected: x itself is mixed. Mix x @ W_v.",
     _self(result=lambda w, s, q, k, v, x: (w @ x, w))),
    ("The keys are mixed instead of the values. Keys say where to look, values what is found.",
     _self(result=lambda w, s, q, k, v, x: (w @ k, w))),
    ("The weights are transposed before the product with the values. Rows are queries: weights @ v.",
     _self(result=lambda w, s, q, k, v, x: (w.T @ v, w))),
    ("The weights have their axes swapped: rows are queries, columns are keys.",
     _self(result=lambda w, s, q, k, v, x: (w @ v, w.T))),
    ("The weights are not used: the output is the values.", _self(result=lambda w, s, q, k, v, x: (v, w))),
    (ORDER, _self(result=lambda w, s, q, k, v, x: (w, w @ v))),
    (SCORES_RETURNED, _self(result=lambda w, s, q, k, v, x: (w @ v, s))),
    (SCORES_RETURNED, _self(result=lambda w, s, q, k, v, x: (w @ v, q @ k.T))),
    ("The matrices are not to be transposed. They are (d, d_k): x @ W.", _self(project=lambda x, W: x @ W.T)),
    ("The keys are not transposed. Every query meets every key: q @ k.T.",
     lambda x, W_q, W_k, W_v: (x @ W_q) @ (x @ W_k)),
))


# --- causal_mask ---------------------------------------------------------------------------------------------

def causal_mask(n: int) -> Tensor:
    """n positions
    -> bool (n, n): True where query (row) may attend to key (column), that is, up to its own position
    """
    return ours.causal_mask(n)


def _ones(n: int) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool)


NOT_BOOLEAN = ("These are numbers, which could mean either thing. Make it boolean: a comparison, .bool(), or "
               "dtype=torch.bool.")
TO_BE_ADDED = ("This is a mask to be added to the scores, 0 and -inf. Here it is boolean: True where a query may "
               "attend.")

CAUSAL_MASK = Exercise(causal_mask, {"mask": "n, n"}, {
    "on ordinary inputs": lambda rng: (int(torch.randint(3, 9, (), generator=rng)),),
    "with a single position (n = 1)": lambda rng: (1,),
}, (
    ("The mask is inverted: it is True where a query must not look. True means *may attend*; turn it round with ~.",
     lambda n: _ones(n).triu(1)),
    ("Past and future are swapped: a query sees itself and everything after it. Rows are queries, columns are keys: "
     "the lower triangle, tril.", lambda n: _ones(n).triu()),
    ("Off by one: a query does not see its own position, and the first one sees nothing. The diagonal belongs to the "
     "mask.", lambda n: _ones(n).tril(-1)),
    ("Off by one: every query also sees the position after its own, which is the one to be predicted.",
     lambda n: _ones(n).tril(1)),
    ("Every query sees every key. Only keys up to the query's own position: tril.", _ones),
    ("A query sees nothing but itself. It may look back: all keys up to its own position.",
     lambda n: torch.eye(n, dtype=torch.bool)),
    ("A query sees only itself and its neighbour on the left. It may look back all the way.",
     lambda n: _ones(n).tril() & _ones(n).triu(-1)),
    (NOT_BOOLEAN, lambda n: _ones(n).tril().float()),
    (NOT_BOOLEAN, lambda n: _ones(n).tril().long()),
    (NOT_BOOLEAN, lambda n: _ones(n).triu(1).float()),
    (NOT_BOOLEAN, lambda n: _ones(n).triu().float()),
    (TO_BE_ADDED, lambda n: torch.zeros(n, n).masked_fill(_ones(n).triu(1), -math.inf)),
    (TO_BE_ADDED, lambda n: torch.zeros(n, n).masked_fill(_ones(n).tril(), -math.inf)),
    ("Each position is compared with itself only. To cross rows and columns, give the rows an axis of their own: "
     "torch.arange(n).unsqueeze(1).", lambda n: torch.arange(n) <= torch.arange(n)),
    ("The mask has a batch axis. Leave it away: (n, n) broadcasts to every batch.", lambda n: _ones(n).tril()[None]),
    ("squeeze() drops every axis of length one, and a single position has two of them. A mask of one is still (1, 1).",
     lambda n: _ones(n).tril().squeeze()),
))


# --- is_causal -----------------------------------------------------------------------------------------------

def is_causal(layer: Callable[[Tensor], Tensor], x: Tensor) -> bool:
    """layer: any function x (T, d) -> output (T, d); x (T, d), leave it as it is
    -> True if changing x[t] changes no output before t, whatever t
    """
    return _perturbed()(layer, x)


def _same(after: Tensor, before: Tensor) -> bool:
    return torch.allclose(after, before, atol=1e-5)


def _other(row: Tensor) -> Tensor:
    return torch.randn(row.shape, generator=torch.Generator().manual_seed(0))


def _perturbed(positions=lambda T: range(T), compared=lambda out, t: out[:t], change=_other, same=_same):
    """Which positions are changed, to what, and which outputs are compared how; it may be too few."""
    def judge(layer, x):
        before = layer(x)
        for t in positions(len(x)):
            changed = x.clone()
            changed[t] = change(x[t])
            if not same(compared(layer(changed), t), compared(before, t)):
                return False
        return True
    return judge


@dataclass(frozen=True)
class _Planted:
    """An attention over x's own rows with something planted in it, and what that is."""

    what: str
    mask: Callable[[int], Tensor]
    weigh: Callable[[Tensor, Tensor], Tensor] = ours.masked_softmax
    norm: bool = False

    def __call__(self, x: Tensor) -> Tensor:
        h = F.layer_norm(x, x.shape[-1:]) if self.norm else x
        scores = 2 * torch.tanh(h @ h.T / math.sqrt(x.size(-1)))       # bounded, so that x may change a lot
        return self.weigh(scores, self.mask(len(x))) @ h

    def __repr__(self) -> str:
        return self.what


def _after(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.softmax(-1) * mask


def _after_and_divided(scores: Tensor, mask: Tensor) -> Tensor:
    return _after(scores, mask) / _after(scores, mask).sum(-1, keepdim=True)


def _and_the_mean(scores: Tensor, mask: Tensor) -> Tensor:
    return ours.masked_softmax(scores, mask) + 1 / len(mask)


def _with_leak(row, column):
    """A causal mask in which one row or cell sees what it must not."""
    def mask(T):
        leaky = ours.causal_mask(T)
        leaky[row, column] = True
        return leaky
    return mask


def _judged(*planted):
    """A maker of inputs: an attention to be judged, and x of more positions than numbers in each."""
    def make(rng):
        T, d = sizes(rng, 2)
        return _Planted(*planted), randn(rng, T + 6, d + 1)            # in a layer norm two numbers are only ever ±1
    return make


NOT_THE_LAST = ("The last position is never changed, so its leak stays unseen. Change every x[t] in turn: "
                "range(len(x)) holds them all, the last one too.")
NOT_ALL_PAIRS = ("A leak was not seen: only some positions are changed, or only some outputs compared. Change every "
                 "x[t] in turn, and compare all outputs before it: out[:t].")
TOO_STRICT = ("A causal attention is called not causal. Compare only the outputs before t, out[:t]: output t may "
              "change, and so may all after it. Copy x anew for every t, or the changes pile up. (If you wrote NaN or "
              "inf into x[t]: times a weight of 0 it is NaN, leak or not. Write a number.)")
ALWAYS_TRUE = ("Every attention is called causal. Compare the outputs of x with those of a changed copy of it: "
               "x.clone(), then other numbers in changed[t], for every t, not only the first.")
SAME_TO_ALL = ("Adding the same to all numbers of x[t] is undone by a layer norm, so the leak stays unseen. Put random "
               "numbers there: torch.randn_like(x[t]).")

IS_CAUSAL = Exercise(is_causal, {"causal": ""}, {
    "on ordinary inputs": _judged("a causal one", ours.causal_mask),
    "when the attention has no mask": _judged("one without a mask", _ones),
    "when the attention's mask is inverted": _judged("one with an inverted mask", lambda T: _ones(T).triu(1)),
    "when the attention's mask is off by one, so that each query sees the next key":
        _judged("one that also sees the next key", lambda T: _ones(T).tril(1)),
    "when the attention masks after the softmax, so that later keys have taken their share":
        _judged("one that masks after the softmax", ours.causal_mask, _after),
    "when the attention adds the mean of all positions": _judged("one that adds the mean", ours.causal_mask,
                                                                 _and_the_mean),
    "when only the last position leaks, into all outputs":
        _judged("one in which all see the last key", _with_leak(slice(None), -1)),
    "when only the first query sees ahead, the last key":
        _judged("one in which the first query sees the last key", _with_leak(0, -1)),
    "when one query sees one later key":
        _judged("one in which query 1 sees the last key but one", _with_leak(1, -2)),
    "when the attention is causal, but no query sees its own position":
        _judged("one that sees earlier keys only", lambda T: _ones(T).tril(-1)),
    "when the attention is causal, and only rounding depends on later positions":
        _judged("one that masks after the softmax and divides again", ours.causal_mask, _after_and_divided),
    "when the attention layer-norms its input first, and has no mask":
        _judged("one that layer-norms its input and has no mask", _ones, ours.masked_softmax, True),
}, (
    (TOO_STRICT, lambda layer, x: False),
    (ALWAYS_TRUE, lambda layer, x: True),
    ("Only neighbours are compared: x[t] with output t - 1. Compare all outputs before t: out[:t].",
     _perturbed(lambda T: range(1, T), lambda out, t: out[t - 1])),
    *((NOT_THE_LAST, _perturbed(positions))
      for positions in (lambda T: range(T - 1), lambda T: [T // 2], lambda T: [1])),
    (SAME_TO_ALL, _perturbed(change=lambda row: row + 1)),
    (NOT_ALL_PAIRS, _perturbed(lambda T: [T - 1])),
    (NOT_ALL_PAIRS, _perturbed(lambda T: range(1, T), lambda out, t: out[0])),
    ("Numbers are compared for exact equality. Sums are rounded, and rounding is no leak: torch.allclose.",
     _perturbed(same=torch.equal)),
))


# --- split_heads ---------------------------------------------------------------------------------------------

def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """x (B, T, d_model)
    -> (B, n_heads, T, d_model // n_heads); head h gets the h-th part of the width
    """
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def _join(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(-2)


def _viewed(x: Tensor, n_heads: int) -> Tensor:
    return x.reshape(x.size(0), n_heads, x.size(1), -1)


def _every_nth(x: Tensor, n_heads: int) -> Tensor:
    return x.unflatten(-1, (-1, n_heads)).permute(0, 3, 1, 2)


def _head_inputs(rng, one_head=False):
    while True:
        B, T, d_k, n_heads = sizes(rng, 4)
        if n_heads * d_k not in (B, T):
            n_heads = 1 if one_head else n_heads
            return randn(rng, B, T, n_heads * d_k), n_heads


MIXED = ("view or reshape to (B, n_heads, T, d_k) cuts the numbers in the order in which they lie, so that a head gets "
         "whole positions and no head sees them all. First give the heads an axis, (B, T, n_heads, d_k), then "
         "transpose(1, 2).")
INTERLEAVED = ("A head gets every n_heads-th number of the width. It gets neighbours: view the width as "
               "(n_heads, d_k), in this order.")

SPLIT_HEADS = Exercise(split_heads, {"heads": "B, n_heads, T, d_k"}, {
    "on ordinary inputs": _head_inputs,
    "with one head": lambda rng: _head_inputs(rng, one_head=True),
}, (
    (MIXED, _viewed),
    (MIXED, lambda x, n: x.transpose(1, 2).reshape(x.size(0), n, x.size(1), -1)),
    (INTERLEAVED, _every_nth),
    ("The heads stand behind the positions. Swap the two axes: transpose(1, 2).",
     lambda x, n: x.unflatten(-1, (n, -1))),
    ("The heads are the first axis. The batch comes first: (B, n_heads, T, d_k).",
     lambda x, n: torch.stack(x.chunk(n, -1))),
    ("The heads are the last axis. They come behind the batch: (B, n_heads, T, d_k).",
     lambda x, n: torch.stack(x.chunk(n, -1), -1)),
    ("The last two axes are swapped. Each head is (T, d_k), as x is (T, d_model).",
     lambda x, n: split_heads(x, n).mT),
    ("The number of heads and their width have changed places: view the width as (n_heads, d_k).",
     lambda x, n: x.unflatten(-1, (-1, n)).transpose(1, 2)),
    ("Every head gets the whole width. It is shared: each gets d_model // n_heads.",
     lambda x, n: x.unsqueeze(1).expand(-1, n, -1, -1)),
    ("Every head gets the same part of the width, the first. Head h gets part h.",
     lambda x, n: split_heads(x, n)[:, :1].expand(-1, n, -1, -1)),
    ("Batch and heads are mixed: the heads' axis has to come out of the width, not out of the batch.",
     lambda x, n: x.reshape(n, x.size(0), x.size(1), -1).transpose(0, 1)),
    ("The heads are a part of the batch. Give them an axis of their own: (B, n_heads, T, d_k).",
     lambda x, n: split_heads(x, n).flatten(0, 1)),
    ("squeeze() drops the heads' axis if there is one head. One head is still (B, 1, T, d_k).",
     lambda x, n: split_heads(x, n).squeeze(1)),
))


# --- multi_head ----------------------------------------------------------------------------------------------

def multi_head(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, n_heads: int,
               mask: Tensor) -> tuple[Tensor, Tensor]:
    """x (B, T, d_model), W_q, W_k, W_v, W_o (d_model, d_model), used as x @ W,
    mask bool, True = may attend, broadcastable to (B, n_heads, T, T); every query may attend to something
    -> output (B, T, d_model), weights (B, n_heads, T, T)
    """
    return _multi()(x, W_q, W_k, W_v, W_o, n_heads, mask)


def _multi(scale=_root_of_width, softmax=ours.masked_softmax, split=split_heads, join=_join,
           project=lambda x, W: x @ W, result=lambda output, weights, scores: (output, weights)):
    """Multi-head attention, of which a part may be wrong."""
    def attend(x, W_q, W_k, W_v, W_o, n_heads, mask):
        q, k, v = (split(project(x, W), n_heads) for W in (W_q, W_k, W_v))
        scores = q @ k.mT / scale(q, x, v)
        weights = softmax(scores, mask)
        return result(project(join(weights @ v), W_o), weights, scores)
    return attend


def _multi_given(change):
    """Right, but given other matrices."""
    return lambda x, W_q, W_k, W_v, W_o, n, mask: multi_head(x, *change(W_q, W_k, W_v, W_o), n, mask)


def _multi_inputs(shape=lambda B, n_heads, T: (B, 1, 1, T), one_head=False):
    """A maker of inputs; each row of the mask has a key that may be attended and one that may not."""
    def make(rng):
        x, n_heads = _head_inputs(rng, one_head)
        B, T, d_model = x.shape
        matrices = [randn(rng, d_model, d_model) / math.sqrt(d_model) for _ in range(4)]
        *rows, T = shape(B, n_heads, T)
        ranks = torch.rand((*rows, T), generator=rng).argsort(-1)
        return x, *matrices, n_heads, ranks < torch.randint(1, T, (*rows, 1), generator=rng)
    return make


def _filled(scores, mask, fill=-math.inf, dim=-1):
    return scores.masked_fill(~mask, fill).softmax(dim)


NOT_SPLIT = ("The heads are missing: n_heads is not used for splitting. Split the projected queries, keys and values, "
             "so that every head has weights of its own.")

MULTI_HEAD = Exercise(multi_head, {"output": "B, T, d_model", "weights": "B, n_heads, T, T"}, {
    "on ordinary inputs": _multi_inputs(),
    "when each query has its own mask (T, T)": _multi_inputs(lambda B, n_heads, T: (T, T)),
    "when each head has its own mask (B, n_heads, T, T)": _multi_inputs(lambda B, n_heads, T: (B, n_heads, T, T)),
    "with one head": _multi_inputs(one_head=True),
}, (
    ("The scale is missing: divide the scores by sqrt(d_k), the width of a head.", _multi(lambda q, x, v: 1)),
    ("The scores are scaled by sqrt(d_model). A head adds up d_k = d_model / n_heads products: sqrt(d_k).",
     _multi(lambda q, x, v: math.sqrt(x.size(-1)))),
    ("The scores are divided by d_k. The scale is its root, sqrt(d_k).", _multi(lambda q, x, v: q.size(-1))),
    ("The scores are scaled by the number of heads. The scale is sqrt(d_k), with d_k = d_model / n_heads.",
     _multi(lambda q, x, v: math.sqrt(q.size(1)))),
    ("The scores are scaled by the number of positions. The scale is sqrt(d_k), with d_k = d_model / n_heads.",
     _multi(lambda q, x, v: math.sqrt(x.size(1)))),
    (IGNORED, _multi(softmax=lambda s, m: s.softmax(-1))),
    (INVERTED, _multi(softmax=lambda s, m: _filled(s, ~m))),
    (AFTER, _multi(softmax=lambda s, m: s.softmax(-1) * m)),
    (SET_TO_ZERO, _multi(softmax=lambda s, m: (s * m).softmax(-1))),
    *((WRONG_AXIS, _multi(softmax=lambda s, m, fill=fill, dim=dim: _filled(s, m, fill, dim)))
      for fill in (-math.inf, -1e9) for dim in (-2, 1, 0)),
    (NO_SOFTMAX, _multi(softmax=lambda s, m: s.masked_fill(~m, 0.0))),
    (MIXED, _multi(split=_viewed)),
    (MIXED, _multi(split=_viewed, join=lambda z: z.reshape(z.size(0), z.size(2), -1))),
    ("The heads' outputs (B, n_heads, T, d_k) are joined without a transpose, so that positions are mixed. First "
     "transpose(1, 2), then flatten the last two axes.",
     _multi(join=lambda z: z.reshape(z.size(0), z.size(2), -1))),
    (INTERLEAVED, _multi(split=_every_nth)),
    (INTERLEAVED, _multi(split=_every_nth, join=lambda z: z.permute(0, 2, 3, 1).flatten(-2))),
    ("The heads' outputs are interleaved: number by number. Put them side by side, head after head: "
     "transpose(1, 2), then flatten the last two axes.", _multi(join=lambda z: z.permute(0, 2, 3, 1).flatten(-2))),
    (NOT_SPLIT, _multi(split=lambda x, n: x.unsqueeze(1))),
    (NOT_SPLIT, _multi(split=lambda x, n: x.unsqueeze(1),
                       result=lambda output, weights, s: (output, weights.expand(-1, s.size(1), -1, -1)))),
    (NOT_SPLIT, _multi(split=lambda x, n: x.unsqueeze(1),
                       result=lambda output, weights, s: (output, weights.squeeze(1)))),
    ("W_o is missing. The heads' outputs lie side by side until W_o mixes them.",
     _multi_given(lambda W_q, W_k, W_v, W_o: (W_q, W_k, W_v, torch.eye(len(W_o))))),
    ("The matrices are transposed, as in nn.Linear. Here they are used as they are: x @ W.",
     _multi(project=lambda x, W: x @ W.T)),
    ("W_o is transposed. Here it is used as it is: @ W_o.",
     _multi_given(lambda W_q, W_k, W_v, W_o: (W_q, W_k, W_v, W_o.T))),
    ("The values are not projected by W_v.",
     _multi_given(lambda W_q, W_k, W_v, W_o: (W_q, W_k, torch.eye(len(W_v)), W_o))),
    ("The values are projected by W_k. They have a matrix of their own, W_v.",
     _multi_given(lambda W_q, W_k, W_v, W_o: (W_q, W_k, W_k, W_o))),
    ("The keys are projected by W_q. They have a matrix of their own, W_k.",
     _multi_given(lambda W_q, W_k, W_v, W_o: (W_q, W_q, W_v, W_o))),
    ("Queries and keys have changed places. Queries are the rows: q @ k.transpose(-2, -1).",
     _multi_given(lambda W_q, W_k, W_v, W_o: (W_k, W_q, W_v, W_o))),
    ("The weights are averaged over the heads, as nn.MultiheadAttention does. Return those of every head.",
     _multi(result=lambda output, weights, s: (output, weights.mean(1)))),
    (ORDER, _multi(result=lambda output, weights, s: (weights, output))),
    (SCORES_RETURNED, _multi(result=lambda output, weights, s: (output, s))),
))


# --- sinusoidal ----------------------------------------------------------------------------------------------

def sinusoidal(n: int, d_model: int) -> Tensor:
    """n positions 0, 1, …; d_model even
    -> (n, d_model): sin(position / 10000^(2i / d_model)) in column 2i, its cos in column 2i + 1
    """
    return ours.sinusoidal(n, d_model)


def _pairs(d: int, rate: float = 2.0) -> Tensor:
    """One speed for each pair of columns."""
    return 10000 ** (-rate * torch.arange(d // 2) / d)


def _turns(n: int, speeds: Tensor, first: int = 0) -> Tensor:
    return torch.arange(first, first + n).unsqueeze(1) * speeds


def _waves(turns: Tensor, even=torch.sin, odd=torch.cos) -> Tensor:
    return torch.stack([even(turns), odd(turns)], -1).flatten(-2)


def _columns(turns: Tensor) -> Tensor:
    """sin at even, cos at odd columns, of angles that every column has for itself."""
    return turns.sin().where(torch.arange(turns.size(1)) % 2 == 0, turns.cos())


def _size_inputs(rng):
    """An odd number of positions and an even width, so that the two differ."""
    n, pairs = sizes(rng, 2)
    return 2 * n + 1, 2 * pairs


HALF_RATE = ("The exponent is i / d (or the base 100, which is the same). The pair i has the columns 2i and 2i + 1, "
             "and both have the exponent 2i / d: with i = 0, 1, … for the pairs, multiply by 2.")
DOUBLE_RATE = ("The exponent grows twice as fast as it should. If torch.arange(0, d, 2) counts the columns, it is 2i "
               "already: do not multiply by 2 again.")
OWN_COLUMN = ("Every column has an angle of its own. sin and cos of a pair have the same: column 2i + 1 also has the "
              "exponent 2i / d.")
BASE = "The base is not 10000: position / 10000^(2i / d)."
MULTIPLIED = "The position is multiplied by 10000^(2i / d). Divide: later pairs are slower."
FROM_ONE = "The positions are numbered from one. They count from zero: torch.arange(n)."
SAME_SPEED = ("All pairs have the same angle, the position itself. Pair i is slower: position / 10000^(2i / d). (// "
              "would round that exponent down to 0.)")

SINUSOIDAL = Exercise(sinusoidal, {"table": "n, d_model"}, {
    "on ordinary inputs": _size_inputs,
    "with one pair of columns (d_model = 2)": lambda rng: (_size_inputs(rng)[0], 2),
}, (
    ("sin and cos are swapped. sin stands in the even columns 0, 2, …, cos in the odd ones.",
     lambda n, d: _waves(_turns(n, _pairs(d)), torch.cos, torch.sin)),
    ("The left half is sin and the right half cos. The paper puts them in pairs: sin in columns 0, 2, …, cos in "
     "1, 3, ….", lambda n, d: torch.cat([_turns(n, _pairs(d)).sin(), _turns(n, _pairs(d)).cos()], -1)),
    ("The left half is cos and the right half sin. The paper puts them in pairs: sin in columns 0, 2, …, cos in "
     "1, 3, ….", lambda n, d: torch.cat([_turns(n, _pairs(d)).cos(), _turns(n, _pairs(d)).sin()], -1)),
    (HALF_RATE, lambda n, d: _waves(_turns(n, _pairs(d, 1)))),
    (DOUBLE_RATE, lambda n, d: _waves(_turns(n, _pairs(d, 4)))),
    (OWN_COLUMN, lambda n, d: _columns(_turns(n, 10000 ** (-torch.arange(d) / d)))),
    (OWN_COLUMN, lambda n, d: _columns(_turns(n, 10000 ** (-2 * torch.arange(d) / d)))),
    *((BASE, lambda n, d, base=base: _waves(_turns(n, base ** (-torch.arange(0, d, 2) / d))))
      for base in (10.0, 1000.0, 100000.0, math.e)),
    (MULTIPLIED, lambda n, d: _waves(_turns(n, 10000 ** (torch.arange(0, d, 2) / d)))),
    (MULTIPLIED, lambda n, d: _waves(_turns(n, (torch.arange(0, d, 2) * (math.log(10000) / d)).exp()))),
    (FROM_ONE, lambda n, d: _waves(_turns(n, _pairs(d), first=1))),
    (SAME_SPEED, lambda n, d: _waves(_turns(n, torch.ones(d // 2)))),
    ("** comes before /, so only 2i is the exponent. Put it in parentheses: 10000 ** (2 * i / d).",
     lambda n, d: _waves(_turns(n, d / 10000.0 ** torch.arange(0, d, 2)))),
    ("All columns are sin. The odd ones are cos.", lambda n, d: _waves(_turns(n, _pairs(d)), torch.sin, torch.sin)),
    ("These are the angles. Take sin of them in the even columns, cos in the odd ones.",
     lambda n, d: _waves(_turns(n, _pairs(d)), torch.clone, torch.clone)),
    ("Only the sin columns are there. cos of the same angles stands between them.",
     lambda n, d: _turns(n, _pairs(d)).sin()),
    ("The odd columns are empty. They hold cos of the same angles.",
     lambda n, d: _waves(_turns(n, _pairs(d)), odd=torch.zeros_like)),
    ("Rows and columns are swapped: one row a position.", lambda n, d: sinusoidal(n, d).T),
))


# --- rotary --------------------------------------------------------------------------------------------------

def rotary(x: Tensor) -> Tensor:
    """x (T, d), d even
    -> (T, d): at position t, the pair (x[t, 2i], x[t, 2i + 1]) is rotated by the angle t / 10000^(2i / d)
    """
    return ours.rotary(x)


def _rotated(speeds=_pairs, first=0, cos=torch.cos, sin=torch.sin, halves=(False, False),
             turn=lambda a, b, c, s: (a * c - b * s, a * s + b * c)):
    """A rotation; `halves` says whether pairs are taken from, and put back into, the halves of the width."""
    def rotate(x):
        turns = _turns(len(x), speeds(x.size(1)), first)
        a, b = x.chunk(2, -1) if halves[0] else (x[:, 0::2], x[:, 1::2])
        a, b = turn(a, b, cos(turns), sin(turns))
        return torch.cat([a, b], -1) if halves[1] else torch.stack([a, b], -1).flatten(-2)
    return rotate


def _one_after_the_other(a, b, c, s):
    a = a * c - b * s
    return a, a * s + b * c


def _rotary_inputs(rng):
    return (randn(rng, *_size_inputs(rng)),)


ROTARY = Exercise(rotary, {"rotated": "T, d"}, {
    "on ordinary inputs": _rotary_inputs,
    "with a single position, which is 0 and stays as it is": lambda rng: (_rotary_inputs(rng)[0][:1],),
}, (
    ("Number i of the left half is paired with number i of the right half, as some models do. Here neighbours are a "
     "pair: x[:, 0::2] and x[:, 1::2].", _rotated(halves=(True, True))),
    ("The pairs are rotated right, but put back as two halves. They go back to their places, 2i and 2i + 1: stack them "
     "on a new last axis, then flatten.", _rotated(halves=(False, True))),
    ("The pairs are taken from the two halves and put back as neighbours. Neighbours are a pair from the start: "
     "x[:, 0::2] and x[:, 1::2].", _rotated(halves=(True, False))),
    ("The rotation goes the other way round: the minus belongs to the first of the pair, a cos - b sin, a sin + b cos.",
     _rotated(turn=lambda a, b, c, s: (a * c + b * s, b * c - a * s))),
    ("sin and cos are swapped. Position 0 has the angle 0 and stays as it is: a cos - b sin, a sin + b cos.",
     _rotated(cos=torch.sin, sin=torch.cos)),
    ("There is no minus: this is no rotation, and lengths change. a cos - b sin, a sin + b cos.",
     _rotated(turn=lambda a, b, c, s: (a * c + b * s, a * s + b * c))),
    ("The second of the pair has the wrong sign: a cos - b sin, a sin + b cos.",
     _rotated(turn=lambda a, b, c, s: (a * c - b * s, a * s - b * c))),
    ("The second of the pair is computed from the first after its rotation. Keep the old one until both are done.",
     _rotated(turn=_one_after_the_other)),
    ("Each number is only multiplied by cos. Its partner's part is missing: a cos - b sin, a sin + b cos.",
     _rotated(turn=lambda a, b, c, s: (a * c, b * c))),
    ("The first of the pair is multiplied by cos and the second by sin. A rotation mixes the two: a cos - b sin, "
     "a sin + b cos.", _rotated(turn=lambda a, b, c, s: (a * c, b * s))),
    ("The pair's numbers have changed places in the result: first a cos - b sin, then a sin + b cos.",
     _rotated(turn=lambda a, b, c, s: (a * s + b * c, a * c - b * s))),
    (HALF_RATE, _rotated(lambda d: _pairs(d, 1))),
    (DOUBLE_RATE, _rotated(lambda d: _pairs(d, 4))),
    *((BASE, _rotated(lambda d, base=base: base ** (-torch.arange(0, d, 2) / d)))
      for base in (10.0, 1000.0, 100000.0, math.e)),
    (MULTIPLIED, _rotated(lambda d: 10000 ** (torch.arange(0, d, 2) / d))),
    (MULTIPLIED, _rotated(lambda d: (torch.arange(0, d, 2) * (math.log(10000) / d)).exp())),
    (SAME_SPEED, _rotated(lambda d: torch.ones(d // 2))),
    (FROM_ONE, _rotated(first=1)),
    ("The sinusoidal table is added. That is the other method: here pairs are rotated, nothing is added.",
     lambda x: x + sinusoidal(*x.shape)),
    ("The sinusoidal table is multiplied with x. A rotation mixes the two numbers of a pair: a cos - b sin, "
     "a sin + b cos.", lambda x: x * sinusoidal(*x.shape)),
    ("x is returned as it is. Rotate each pair by its angle.", torch.clone),
))


LESSON_03 = (SELF_ATTENTION, CAUSAL_MASK, IS_CAUSAL, SPLIT_HEADS, MULTI_HEAD, SINUSOIDAL, ROTARY)
