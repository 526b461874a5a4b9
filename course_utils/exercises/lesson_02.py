"""Lesson 02, Bahdanau attention: the exercises, their references and the ways in which they go wrong."""

import math

import torch
from torch import Tensor

from course_utils import attention
from course_utils.exercises.engine import Exercise
from course_utils.exercises.inputs import randn, sizes

Pairs = set[tuple[int, int]]


# --- what the functions share --------------------------------------------------------------------------------

def _padding(rng: torch.Generator, B: int, T_k: int) -> Tensor:
    """``(B, 1, T_k)``: every row has a key that may be attended and one that may not."""
    lengths = torch.randint(1, T_k, (B, 1, 1), generator=rng)
    return torch.arange(T_k) < lengths


def _own_masks(rng: torch.Generator, B: int, T_q: int, T_k: int) -> Tensor:
    """``(B, T_q, T_k)``: each query its own; never empty, never full."""
    ranks = torch.rand((B, T_q, T_k), generator=rng).argsort(-1)
    return ranks < torch.randint(1, T_k, (B, T_q, 1), generator=rng)


def _empty_first(mask: Tensor) -> Tensor:
    mask = mask.clone()
    mask[0] = False
    return mask


def _half(arguments: tuple) -> tuple:
    return tuple(x.half() if isinstance(x, Tensor) and x.is_floating_point() else x for x in arguments)


# Sentences that more than one table needs.
LINED_UP = ("Queries (B, T_q, d_h) and keys (B, T_k, d_h) are lined up instead of crossed: added as they are, or with "
            "the new axis at the same place. Give each its own: query.unsqueeze(2) + keys.unsqueeze(1) is "
            "(B, T_q, T_k, d_h).")
WRONG_AXIS = ("The softmax runs over the wrong axis. Each query spreads its attention over the keys, "
              "so the weights of a row sum to one: dim=-1.")
IGNORED = "The mask is ignored. Give the scores of masked keys the value -inf before the softmax."
INVERTED = "The mask is inverted. True means *may attend*: fill where the mask is False (~mask)."
AFTER = ("The mask is applied after the softmax, so the masked keys have already taken their share and the rows no "
         "longer sum to one. Mask the scores, not the weights.")
TOOK_PART = ("The masked keys took part in the softmax, and dividing again afterwards does not help when one of them "
             "has a huge score: everything else underflows to 0, and 0 / 0 is NaN. Mask the scores.")
SET_TO_ZERO = ("The masked scores become 0 (by * mask, or filled with 0), and exp(0) is 1: masked keys still get "
               "weight. They must be -inf.")
TIMES_INF = ("0 times inf is NaN: do not multiply a mask by infinity. "
             "masked_fill(~mask, -math.inf) does it without arithmetic.")
FINITE = ("A large finite number stands where -inf should. It is not below every score, it may not fit into float16, "
          "and a row in which every key is masked gets equal weights on padding. Use -inf, and then treat such rows.")
EQUAL_WEIGHTS = ("Rows without an allowed key come back with equal weights: they were made finite before the softmax; "
                 "set them to 0 after it, too.")
EMPTY_ROW = ("A row in which every key is masked is all -inf, and its softmax is 0 / 0 = NaN. "
             "We define its weights as zeros: find those rows with mask.any(dim=-1, keepdim=True).")
RAW_EXP = ("exp() over- or underflows when scores are far from zero. Subtract the largest score of the row that may be "
           "attended first (the result is the same), or use softmax, which does so.")


# --- context_vector ------------------------------------------------------------------------------------------

def context_vector(scores, values):
    """One query by hand: scores ``(T_k,)``, values ``(T_k, d_v)`` to the context ``(d_v,)``."""
    return scores.softmax(dim=0) @ values


def _context_inputs(rng):
    T_k, d_v = sizes(rng, 2)
    return 2 * randn(rng, T_k), randn(rng, T_k, d_v)


CONTEXT_VECTOR = Exercise(context_vector, {"context": "d_v"}, {"on ordinary inputs": _context_inputs}, (
    ("The softmax is missing: the raw scores are used as weights.", "scores.softmax(dim=0)", "scores"),
    ("The scores are divided by their sum, without exp(). Softmax is exp(score) / sum of exp(scores).",
     "scores.softmax(dim=0)", "scores / scores.sum()"),
    ("The sum of exp(scores) is missing below the fraction: the weights do not sum to one.",
     "scores.softmax(dim=0)", "scores.exp()"),
    ("The scores are not used: this is the plain mean of the values.", "scores.softmax(dim=0) @ values", "values.mean(0)"),
    ("All values are added with weight 1: the softmax ran over an axis of length one.",
     "scores.softmax(dim=0) @ values", "values.sum(0)"),
    ("Only the value with the best score is taken. Soft attention mixes all of them: use softmax, not argmax.",
     "scores.softmax(dim=0) @ values", "values[scores.argmax()]"),
    ("These are the weights. The context is the weighted sum of the values.", " @ values", ""),
    ("The weighted values are not summed yet: add them up over the keys, dim=0.", "dim=0) @", "dim=0)[:, None] *"),
    ("This is the mean of the weighted values. The weights sum to one already: use the sum.",
     "@ values", "@ values / len(values)"),
    ("The softmax comes after the weighted sum. First softmax the scores, then sum.",
     "scores.softmax(dim=0) @ values", "(scores @ values).softmax(dim=0)"),
    ("The scores are scaled here as well. They are final: softmax them as they are.",
     "scores.softmax", "(scores / math.sqrt(values.size(-1))).softmax"),
    ("The scores have the wrong sign: the best score gets the smallest weight.", "scores.softmax", "(-scores).softmax"),
))


# --- hard_alignment ------------------------------------------------------------------------------------------

def hard_alignment(weights):
    """Weights ``(T_q, T_k)`` to pairs (row, column): each target word and its largest weight."""
    return set(enumerate(weights.argmax(dim=1).tolist()))


def _weights_inputs(rng):
    T_q, T_k = sizes(rng, 2)
    return ((2 * randn(rng, T_q, T_k)).softmax(-1),)


ENUMERATED = "enumerate(weights.argmax(dim=1).tolist())"
WHOLE_MATRIX = ("This is what argmax() without dim leads to: that is the largest of the whole matrix; take it for each "
                "row: dim=1.")

HARD_ALIGNMENT = Exercise(hard_alignment, {"links": ""}, {"on ordinary inputs": _weights_inputs}, (
    ("The largest weight is taken in each column: a link for every source word. Go along each row, dim=-1.",
     ENUMERATED, "(row, column) for column, row in enumerate(weights.argmax(dim=0).tolist())"),
    ("The largest weight is taken in each column, and the pairs are swapped too. Go along each row, dim=-1.",
     "dim=1", "dim=0"),
    ("The pairs are the wrong way round. A link is (row, column) = (target position, source position).",
     ENUMERATED, "(column, row) for row, column in " + ENUMERATED),
    ("The positions count from one. They count from zero here.", ".tolist())", ".tolist(), start=1)"),
    ("The smallest weight of each row is taken (argmin). The link goes to the largest: argmax.", "argmax", "argmin"),
    ("Weights above a threshold become links. Each target word gets exactly one, to its largest weight, however small.",
     ENUMERATED, "map(tuple, (weights > 0.5).nonzero().tolist())"),
    ("There is only one link, the largest weight of the whole matrix. Every row gets its own: argmax(dim=-1).",
     f"set({ENUMERATED})", "{divmod(int(weights.argmax()), weights.size(1))}"),
    (WHOLE_MATRIX, f"set({ENUMERATED})", "{(row, int(weights.argmax())) for row in range(len(weights))}"),
    (WHOLE_MATRIX, "dim=1", ""),
    ("These are the columns alone. A link is a pair (row, column).", ENUMERATED, "weights.argmax(dim=1).tolist()"),
    ("Every cell became a link. Keep one a row: the largest weight.",
     ENUMERATED, "map(tuple, (weights >= 0).nonzero().tolist())"),
    ("The links are the diagonal: the weights are not used.", ENUMERATED, "(row, row) for row in range(len(weights))"),
))


# --- masked_softmax ------------------------------------------------------------------------------------------

def masked_softmax(scores, mask):
    """Scores ``(B, T_q, T_k)``, mask broadcastable to it, to weights; a fully masked row becomes zeros."""
    empty = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -math.inf).masked_fill(empty, 0.0)
    return scores.softmax(dim=-1).masked_fill(empty, 0.0)


def _scores_inputs(rng):
    B, T_q, T_k = sizes(rng, 3)
    return 2 * randn(rng, B, T_q, T_k), _padding(rng, B, T_k)


def _scores_of_heads(rng):
    B, n_heads, T_q, T_k = sizes(rng, 4)
    return randn(rng, B, n_heads, T_q, T_k), _padding(rng, B, T_k).unsqueeze(1)


def _scores_own_masks(rng):
    scores = _scores_inputs(rng)[0]
    return scores, _own_masks(rng, *scores.shape)


def _scores_empty_row(rng):
    scores, mask = _scores_inputs(rng)
    return scores, _empty_first(mask)


def _scores_shifted(attended: float, masked: float):
    def make(rng):
        scores, mask = _scores_inputs(rng)
        return scores + torch.where(mask, attended, masked), mask
    return make


MASKED_SCORES = "scores = scores.masked_fill(~mask, -math.inf).masked_fill(empty, 0.0)"
FILL = "scores.masked_fill(~mask, -math.inf)"

MASKED_SOFTMAX = Exercise(masked_softmax, {"weights": "B, T_q, T_k"}, {
    "on ordinary inputs": _scores_inputs,
    "when each query has its own mask (B, T_q, T_k)": _scores_own_masks,
    "when the scores are large (around 200)": _scores_shifted(200.0, 200.0),
    "when the masked scores are huge (around 1e10)": _scores_shifted(0.0, 1e10),
    "when all scores are far below zero (around -1e10)": _scores_shifted(-1e10, -1e10),
    "when every key of a row is masked": _scores_empty_row,
    "in float16": lambda rng: _half(_scores_inputs(rng)),
    "in float16, when every key of a row is masked": lambda rng: _half(_scores_empty_row(rng)),
    "with heads, (B, n_heads, T_q, T_k)": _scores_of_heads,
}, (
    (WRONG_AXIS, "softmax(dim=-1)", "softmax(dim=-2)"),
    (IGNORED, FILL, "scores"),
    (INVERTED, "fill(~mask", "fill(mask"),
    (AFTER, MASKED_SCORES, "", "softmax(dim=-1)", "softmax(dim=-1) * mask"),
    (SET_TO_ZERO, "-math.inf", "0.0"),
    (TIMES_INF, FILL, "(scores + (~mask).to(scores.dtype) * -math.inf)"),
    (RAW_EXP, MASKED_SCORES, "scores = scores.exp() * mask", "scores.softmax(dim=-1).masked_fill(empty, 0.0)",
     "scores / scores.sum(dim=-1, keepdim=True)"),
    (TOOK_PART, MASKED_SCORES, "scores = scores.softmax(dim=-1) * mask",
     "scores.softmax(dim=-1).masked_fill(empty, 0.0)", "scores / scores.sum(dim=-1, keepdim=True)"),
    (EMPTY_ROW, "-math.inf).masked_fill(empty, 0.0)", "-math.inf)", "(dim=-1).masked_fill(empty, 0.0)", "(dim=-1)"),
    (EQUAL_WEIGHTS, "(dim=-1).masked_fill(empty, 0.0)", "(dim=-1)"),
    (FINITE, MASKED_SCORES, "scores = scores.masked_fill(~mask, -1e4)", "(dim=-1).masked_fill(empty, 0.0)", "(dim=-1)"),
    (FINITE, MASKED_SCORES, "scores = scores.masked_fill(~mask, -1e9)", "(dim=-1).masked_fill(empty, 0.0)", "(dim=-1)"),
    ("The scores are scaled here as well. That belongs to the score function.",
     "scores.softmax", "(scores / math.sqrt(scores.size(-1))).softmax"),
), timed=lambda rng: (randn(rng, 32, 8, 40, 40), _padding(rng, 32, 40).unsqueeze(1)))


# --- additive_score ------------------------------------------------------------------------------------------

def additive_score(query: Tensor, keys: Tensor, W_q: Tensor, W_k: Tensor, v: Tensor) -> Tensor:
    """``v . tanh(W_q q + W_k k)`` of every query with every key: ``(B, T_q, T_k)``."""
    return (query @ W_q.T).unsqueeze(2).add((keys @ W_k.T).unsqueeze(1)).tanh() @ v


def _additive_inputs(rng, B=None, T_q=None):
    b, t_q, T_k, d_q, d_k, d_h = sizes(rng, 6)
    B, T_q = B or b, T_q or t_q
    return (randn(rng, B, T_q, d_q), randn(rng, B, T_k, d_k),
            randn(rng, d_h, d_q), randn(rng, d_h, d_k), randn(rng, d_h))


def _hidden(q, k, W_q, W_k):
    return (q @ W_q.T).unsqueeze(2) + (k @ W_k.T).unsqueeze(1)


def _additive(activation, shape=lambda scores: scores):
    return lambda q, k, W_q, W_k, v: shape(activation(_hidden(q, k, W_q, W_k)) @ v)


ADDITIVE_SCORE = Exercise(additive_score, {"scores": "B, T_q, T_k"}, {
    "on ordinary inputs": _additive_inputs,
    "with one sentence and one query (B = T_q = 1)": lambda rng: _additive_inputs(rng, 1, 1),
}, (
    ("The tanh is missing. Without it the query adds the same number to every key's score, and the softmax "
     "drops it: every query would attend alike.", _additive(lambda hidden: hidden)),
    ("The tanh comes after the product with v. It belongs inside: v . tanh(...).",
     lambda q, k, W_q, W_k, v: (_hidden(q, k, W_q, W_k) @ v).tanh()),
    ("The tanh is taken of query and key apart. They meet inside: tanh(W_q q + W_k k).",
     lambda q, k, W_q, W_k, v: (q @ W_q.T).tanh().unsqueeze(2).add((k @ W_k.T).tanh().unsqueeze(1)) @ v),
    ("The hidden layer uses relu. This score uses tanh.", _additive(torch.relu)),
    ("The hidden layer uses the sigmoid. This score uses tanh.", _additive(torch.sigmoid)),
    ("The vector v is not used: the hidden units are summed with weight 1.",
     lambda q, k, W_q, W_k, v: _hidden(q, k, W_q, W_k).tanh().sum(-1)),
    ("The vector v is not used: the hidden units are averaged.",
     lambda q, k, W_q, W_k, v: _hidden(q, k, W_q, W_k).tanh().mean(-1)),
    ("The product with v is missing: every query and key still have d_h numbers. @ v makes one score of them.",
     lambda q, k, W_q, W_k, v: _hidden(q, k, W_q, W_k).tanh()),
    ("The products with v are not summed. The last axis goes away: @ v, or * v and sum(-1).",
     lambda q, k, W_q, W_k, v: _hidden(q, k, W_q, W_k).tanh() * v),
    ("Queries and keys have changed places. Queries are the rows: query.unsqueeze(2) + keys.unsqueeze(1).",
     _additive(torch.tanh, lambda scores: scores.transpose(1, 2))),
    ("These are weights already. The score function ends before the softmax.",
     _additive(torch.tanh, lambda scores: scores.softmax(-1))),
    ("The query is not used.",
     lambda q, k, W_q, W_k, v: ((k @ W_k.T).tanh() @ v).unsqueeze(1).expand(-1, q.size(1), -1)),
    ("The keys are not used.",
     lambda q, k, W_q, W_k, v: ((q @ W_q.T).tanh() @ v).unsqueeze(2).expand(-1, -1, k.size(1))),
    ("The projections are multiplied, as in a dot product. Here they are added: tanh(W_q q + W_k k).",
     lambda q, k, W_q, W_k, v: (q @ W_q.T) @ (k @ W_k.T).transpose(1, 2)),
    ("The projections are multiplied before the tanh. Here they are added: tanh(W_q q + W_k k).",
     lambda q, k, W_q, W_k, v: ((q @ W_q.T).unsqueeze(2) * (k @ W_k.T).unsqueeze(1)).tanh() @ v),
    ("The key is subtracted. The two projections are added.",
     lambda q, k, W_q, W_k, v: ((q @ W_q.T).unsqueeze(2) - (k @ W_k.T).unsqueeze(1)).tanh() @ v),
    ("The scores are divided by sqrt(d_h). The additive score has no scale.",
     lambda q, k, W_q, W_k, v: _hidden(q, k, W_q, W_k).tanh() @ v / math.sqrt(len(v))),
    ("The matrices are not transposed. W_q is (d_h, d_q), so that W_q q in code is query @ W_q.T.",
     lambda q, k, W_q, W_k, v: (q @ W_q).unsqueeze(2).add((k @ W_k).unsqueeze(1)).tanh() @ v),
    ("The matrices are swapped. W_q projects the query, W_k the keys.",
     lambda q, k, W_q, W_k, v: (q @ W_k.T).unsqueeze(2).add((k @ W_q.T).unsqueeze(1)).tanh() @ v),
    (LINED_UP, lambda q, k, W_q, W_k, v: (q @ W_q.T + k @ W_k.T).tanh() @ v),
    (LINED_UP, lambda q, k, W_q, W_k, v: ((q @ W_q.T).unsqueeze(1) + (k @ W_k.T).unsqueeze(1)).tanh() @ v),
    ("An axis of length one is left over from v as a column. v is a vector: … @ v, or .squeeze(-1).",
     _additive(torch.tanh, lambda scores: scores.unsqueeze(-1))),
    ("squeeze() without a dimension drops every axis of length one, also a batch or a query of one. Name it: "
     "squeeze(-1).", _additive(torch.tanh, torch.squeeze)),
))


# --- scaled_dot_attention ------------------------------------------------------------------------------------

def scaled_dot_attention(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """``softmax(q k^T / sqrt(d)) v``: the context ``(B, T_q, d_v)`` and the weights ``(B, T_q, T_k)``."""
    weights = attention.masked_softmax(query @ keys.transpose(1, 2) / math.sqrt(query.size(-1)), mask)
    return weights @ values, weights


def _dot_inputs(rng):
    B, T_q, T_k, d, d_v = sizes(rng, 5)
    return randn(rng, B, T_q, d), randn(rng, B, T_k, d), randn(rng, B, T_k, d_v), _padding(rng, B, T_k)


def _dot_own_masks(rng):
    query, keys, values, _ = _dot_inputs(rng)
    return query, keys, values, _own_masks(rng, query.size(0), query.size(1), keys.size(1))


def _dot_garbage(rng):
    query, keys, values, mask = _dot_inputs(rng)
    padded = ~mask.transpose(1, 2)
    return query, keys.masked_fill(padded, 1e4), values.masked_fill(padded, -1e4), mask


def _dot_empty_row(rng):
    *tensors, mask = _dot_inputs(rng)
    return *tensors, _empty_first(mask)


def _dot(scale=lambda q, k, v: math.sqrt(q.size(-1)), softmax=attention.masked_softmax):
    def wrong(query, keys, values, mask):
        weights = softmax(query @ keys.transpose(1, 2) / scale(query, keys, values), mask)
        return weights @ values, weights
    return wrong


def _dot_result(result):
    """A wrong answer made of the right context, weights and the inputs."""
    def wrong(query, keys, values, mask):
        return result(*scaled_dot_attention(query, keys, values, mask), query, keys, values, mask)
    return wrong


def _dot_scaled_late(result):
    def wrong(query, keys, values, mask):
        weights = attention.masked_softmax(query @ keys.transpose(1, 2), mask)
        return result(weights, values, math.sqrt(query.size(-1)))
    return wrong


SCALED_LATE = "The division by sqrt(d) comes after the softmax: divide the scores, not the weights."

SCALED_DOT_ATTENTION = Exercise(scaled_dot_attention, {"context": "B, T_q, d_v", "weights": "B, T_q, T_k"}, {
    "on ordinary inputs": _dot_inputs,
    "when each query has its own mask (B, T_q, T_k)": _dot_own_masks,
    "when padded keys and values hold large numbers": _dot_garbage,
    "when every key of a row is masked": _dot_empty_row,
    "in float16": lambda rng: _half(_dot_inputs(rng)),
}, (
    ("The scale is missing: divide the scores by sqrt(d).", _dot(lambda q, k, v: 1)),
    ("The scores are divided by d. The scale is its root, sqrt(d): a sum of d products has the standard deviation "
     "sqrt(d).", _dot(lambda q, k, v: q.size(-1))),
    ("The scores are scaled by the number of keys. The scale is sqrt(d), with d the width of a query: "
     "query.size(-1).", _dot(lambda q, k, v: math.sqrt(k.size(1)))),
    ("The scores are scaled by the number of queries. The scale is sqrt(d), with d the width of a query: "
     "query.size(-1).", _dot(lambda q, k, v: math.sqrt(q.size(1)))),
    ("The scores are scaled by the width of the values. The scale is sqrt(d), with d the width of a query.",
     _dot(lambda q, k, v: math.sqrt(v.size(-1)))),
    ("The scores are multiplied by sqrt(d). Divide.", _dot(lambda q, k, v: 1 / math.sqrt(q.size(-1)))),
    (SCALED_LATE, _dot_scaled_late(lambda weights, v, root: (weights / root @ v, weights / root))),
    (SCALED_LATE, _dot_scaled_late(lambda weights, v, root: (weights / root @ v, weights))),
    (IGNORED, _dot(softmax=lambda s, m: s.softmax(-1))),
    (INVERTED, _dot(softmax=lambda s, m: _filled(s, ~m))),
    (AFTER, _dot(softmax=lambda s, m: s.softmax(-1) * m)),
    (SET_TO_ZERO, _dot(softmax=lambda s, m: (s * m).softmax(-1))),
    (WRONG_AXIS, _dot(softmax=lambda s, m: _filled(s, m, dim=-2))),
    (WRONG_AXIS, _dot(softmax=lambda s, m: _filled(s, m, dim=-2).nan_to_num())),
    (WRONG_AXIS, _dot(softmax=lambda s, m: _filled(s, m, -1e9, dim=-2))),
    (WRONG_AXIS, _dot(softmax=lambda s, m: _filled(s, m, dim=0))),
    (WRONG_AXIS, _dot(softmax=lambda s, m: _filled(s, m, -1e9, dim=0))),
    ("The softmax is missing: the raw scores are used as weights.",
     _dot(softmax=lambda s, m: s.masked_fill(~m, 0.0))),
    ("The order of the results is (context, weights).", _dot_result(lambda c, w, q, k, v, m: (w, c))),
    ("The keys are summed instead of the values. Keys say where to look, values what is found.",
     _dot_result(lambda c, w, q, k, v, m: (w @ k, w))),
    ("The second result holds the scores. Return the weights, after the softmax.",
     _dot_result(lambda c, w, q, k, v, m: (c, q @ k.transpose(1, 2) / math.sqrt(q.size(-1))))),
    ("The second result holds the masked scores. Return the weights, after the softmax.",
     _dot_result(lambda c, w, q, k, v, m:
                 (c, (q @ k.transpose(1, 2) / math.sqrt(q.size(-1))).masked_fill(~m, -math.inf)))),
    ("The weights have their axes swapped: rows are queries, columns are keys.",
     _dot_result(lambda c, w, q, k, v, m: (c, w.transpose(1, 2)))),
    (TOOK_PART, _dot(softmax=_renormalised)),
    (EMPTY_ROW, _dot(softmax=_filled)),
    (EQUAL_WEIGHTS, _dot(softmax=_equal_if_empty)),
    (FINITE, _dot(softmax=lambda s, m: _filled(s, m, -1e9) * m)),
    ("Keys need their last two axes swapped before the product: query @ keys.transpose(1, 2).",
     lambda q, k, v, m: attention.attend(q, k, v, lambda q, k: q @ k / math.sqrt(q.size(-1)), m)),
    (".T reverses all axes, the batch too. Swap two: keys.transpose(1, 2), or keys.mT.",
     lambda q, k, v, m: attention.attend(q, k, v, lambda q, k: q @ k.permute(2, 1, 0) / math.sqrt(q.size(-1)), m)),
))


# --- alignment_error_rate ------------------------------------------------------------------------------------

def alignment_error_rate(predicted: Pairs, true: Pairs) -> float:
    """``1 - 2 |A and S| / (|A| + |S|)``; two empty sets agree: 0.0."""
    n_links = len(predicted) + len(true)
    return 1 - 2 * len(predicted & true) / n_links if n_links else 0.0


def _links(rng, n: int, first_row: int = 0) -> Pairs:
    return {divmod(i, 8) for i in (torch.randperm(32, generator=rng)[:n] + 8 * first_row).tolist()}


def _links_inputs(rng):
    n_shared, n_predicted, n_true = sizes(rng, 3)
    shared = _links(rng, n_shared)
    return shared | _links(rng, n_predicted, 4), shared | _links(rng, n_true, 8)


def _share(predicted: Pairs, true: Pairs, below) -> float:
    return len(predicted & true) / below


ALIGNMENT_ERROR_RATE = Exercise(alignment_error_rate, {"rate": ""}, {
    "on ordinary inputs": _links_inputs,
    "when no link is shared": lambda rng: (_links(rng, 3), _links(rng, 5, 4)),
    "when one of the sets is empty": lambda rng: (set(), _links(rng, 5)),
    "when both sets are empty": lambda rng: (set(), set()),
}, (
    ("The factor 2 is missing: a shared link is counted once, but it stands in both sets.",
     lambda a, s: 1 - _share(a, s, len(a) + len(s))),
    ("This is the agreement. The error rate is 1 minus it.", lambda a, s: 2 * _share(a, s, len(a) + len(s))),
    ("This is precision: the share of predicted links that are true. Divide by |A| + |S|, and subtract from 1.",
     lambda a, s: _share(a, s, len(a))),
    ("This is 1 - precision: true links that were not found cost nothing. Divide 2 |A and S| by |A| + |S|.",
     lambda a, s: 1 - _share(a, s, len(a))),
    ("This is recall: the share of true links that are predicted. Divide by |A| + |S|, and subtract from 1.",
     lambda a, s: _share(a, s, len(s))),
    ("This is 1 - recall: wrong predicted links cost nothing. Divide 2 |A and S| by |A| + |S|.",
     lambda a, s: 1 - _share(a, s, len(s))),
    ("The sum below the fraction counts shared links once (the union). Count them in both sets: |A| + |S|.",
     lambda a, s: 1 - _share(a, s, len(a | s))),
    ("The sum below the fraction counts shared links once (the union). Count them in both sets: |A| + |S|.",
     lambda a, s: 1 - 2 * _share(a, s, len(a | s))),
    ("The union is counted where the shared links belong: & is *and*, | is *or*.",
     lambda a, s: 1 - 2 * len(a | s) / (len(a) + len(s))),
    ("/ comes before +, so only |A| divides. Put parentheses around |A| + |S|.",
     lambda a, s: 1 - 2 * len(a & s) / len(a) + len(s)),
    ("/ comes before +, so only |A| divides. Put parentheses around |A| + |S|.",
     lambda a, s: 1 - (2 * len(a & s) / len(a) + len(s))),
    ("This is a percentage. The rate lies between 0 and 1.",
     lambda a, s: 100 * alignment_error_rate(a, s)),
    ("This is the number of wrong links. Divide it by |A| + |S|.", lambda a, s: len(a ^ s)),
    ("// rounds down to a whole number. Use /.", lambda a, s: 1 - 2 * len(a & s) // (len(a) + len(s))),
    ("The rate is rounded. Return it as it is.", lambda a, s: round(alignment_error_rate(a, s), 2)),
    ("Two empty sets have no links to divide by. They agree: the rate is 0.0.",
     lambda a, s: 1 - 2 * len(a & s) / (len(a) + len(s))),
    ("Two empty sets have no links to divide by. They agree: the rate is 0.0.",
     lambda a, s: 1 - 2.0 * len(a & s) / (len(a) + len(s))),
    ("Two empty sets agree: nothing is wrong, the rate is 0.0.",
     lambda a, s: alignment_error_rate(a, s) if a or s else 1.0),
))


# --- local_mask ----------------------------------------------------------------------------------------------

def local_mask(centres: Tensor, n_keys: int, window: int) -> Tensor:
    """``(T_q, n_keys)``, True where ``|j - centre| <= window`` (Luong et al. 2015, section 3.2)."""
    return (torch.arange(n_keys) - centres.unsqueeze(1)).abs() <= window


def _window_inputs(rng):
    T_q, window, more = sizes(rng, 3)
    n_keys = 2 * window + 1 + more
    return torch.randint(window, n_keys - window, (T_q,), generator=rng), n_keys, window


def _window_edges(rng):
    centres, n_keys, window = _window_inputs(rng)
    centres[:2] = torch.tensor([0, n_keys - 1])
    return centres, n_keys, window


def _distance(centres: Tensor, n_keys: int) -> Tensor:
    return torch.arange(n_keys) - centres.unsqueeze(1)


def _sliced(centres: Tensor, n_keys: int, window: int, end: int = 1) -> Tensor:
    mask = torch.zeros(len(centres), n_keys, dtype=torch.bool)
    for row, centre in enumerate(centres.tolist()):
        mask[row, centre - window:centre + window + end] = True
    return mask


def _wrapped(centres: Tensor, n_keys: int, window: int) -> Tensor:
    distance = _distance(centres, n_keys).abs()
    return torch.minimum(distance, n_keys - distance) <= window


NO_AXIS = ("T_q centres and n_keys positions do not line up. To cross them, give the centres an axis of their own: "
           "centres.unsqueeze(1).")

LOCAL_MASK = Exercise(local_mask, {"mask": "T_q, n_keys"}, {
    "on ordinary inputs": _window_inputs,
    "when a centre lies at the edge of the sentence": _window_edges,
}, (
    ("The ends of the window are missing: it reaches up to and including the distance `window`, <= rather than <.",
     lambda c, n, w: _distance(c, n).abs() < w),
    ("The last key of the window is missing: the end of a slice or range is not part of it, so add 1.",
     lambda c, n, w: _sliced(c, n, w, end=0)),
    ("The mask is inverted. True means *may attend*, that is, inside the window.",
     lambda c, n, w: _distance(c, n).abs() > w),
    ("The distance has a sign: every key to the left of the window counts as near. Take abs().",
     lambda c, n, w: _distance(c, n) <= w),
    ("The distance has a sign: every key to the right of the window counts as near. Take abs().",
     lambda c, n, w: _distance(c, n) >= -w),
    ("Only the keys to the left of the centre are in the window. It reaches as far to the right.",
     lambda c, n, w: (_distance(c, n) <= 0) & (_distance(c, n) >= -w)),
    ("Only the keys to the right of the centre are in the window. It reaches as far to the left.",
     lambda c, n, w: (_distance(c, n) >= 0) & (_distance(c, n) <= w)),
    ("The window is half as wide as it should be: it reaches `window` keys to each side.",
     lambda c, n, w: _distance(c, n).abs() <= w // 2),
    ("The window is half as wide as it should be: it reaches `window` keys to each side.",
     lambda c, n, w: _distance(c, n).abs() <= w / 2),
    ("The axes are swapped: one row a query, one column a key. Use centres.unsqueeze(1) - torch.arange(n_keys).",
     lambda c, n, w: (_distance(c, n).abs() <= w).T),
    ("The row number is used as the centre. Each query's centre is given in `centres`.",
     lambda c, n, w: _distance(torch.arange(len(c)), n).abs() <= w),
    ("The centres are not used: the window starts at the first key.",
     lambda c, n, w: (torch.arange(n) <= w).expand(len(c), n)),
    *((NO_AXIS, wrong) for wrong in (
        lambda c, n, w: (torch.arange(n) - c).abs() <= w,
        lambda c, n, w: (c - torch.arange(n)).abs() <= w,
    )),
    ("The keys are numbered from one, but positions count from zero: torch.arange(n_keys).",
     lambda c, n, w: (_distance(c, n) + 1).abs() <= w),
    ("The keys are numbered from one, but positions count from zero: torch.arange(n_keys).",
     lambda c, n, w: _distance(c, n)[:, 1:].abs() <= w),
    ("Only the centre itself is in the window.", lambda c, n, w: _distance(c, n) == 0),
    ("A slice with a negative start counts from the end, so near the first key the window is lost. "
     "Start at max(centre - window, 0), or compare distances.", _sliced),
    ("The window wraps around: a sentence's last word is not next to its first.", _wrapped),
))


LESSON_02 = (CONTEXT_VECTOR, HARD_ALIGNMENT, MASKED_SOFTMAX, ADDITIVE_SCORE, SCALED_DOT_ATTENTION,
             ALIGNMENT_ERROR_RATE, LOCAL_MASK)
