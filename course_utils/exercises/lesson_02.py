"""Lesson 02, Bahdanau attention: the exercises, their solutions and the ways in which they go wrong."""

import math

import torch
from torch import Tensor

from .engine import Exercise, each
from .inputs import maker, randn, sizes


def _padding(rng: torch.Generator, B: int, T_k: int) -> Tensor:
    """``(B, 1, T_k)``: every row has a key that may be attended and one that may not."""
    lengths = torch.randint(1, T_k, (B, 1, 1), generator=rng)
    return torch.arange(T_k) < lengths


def _own_masks(scores: Tensor) -> Tensor:
    """``(B, T_q, T_k)``: each query its own; never empty, never full."""
    others = scores.roll(1)
    return others > others.mean(dim=-1, keepdim=True)


def _empty_first(mask: Tensor) -> Tensor:
    mask = mask.clone()
    mask[0] = False
    return mask


def _half(*arguments: Tensor) -> tuple[Tensor, ...]:
    return tuple(x.half() if x.is_floating_point() else x for x in arguments)


# Sentences that more than one table needs.
WRONG_AXIS = ("The softmax runs over the wrong axis. Each query spreads its attention over the keys, "
              "so the weights of a row sum to one: dim=-1.")
IGNORED = "The mask is ignored. Give the scores of masked keys the value -inf before the softmax."
INVERTED = "The mask is inverted. True means *may attend*: fill where the mask is False (~mask)."
AFTER = ("The mask is applied after the softmax, so the masked keys have already taken their share and the rows no "
         "longer sum to one. Mask the scores, not the weights.")
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


def context_vector(scores, values):
    """One query by hand: scores ``(T_k,)``, values ``(T_k, d_v)`` to the context ``(d_v,)``."""
    return scores.softmax(dim=0) @ values


def _context_inputs(rng, d_v=None, around=0):
    T_k, d = sizes(rng, 2)
    return 2 * randn(rng, T_k) + around, randn(rng, T_k, d_v or d)


CONTEXT_VECTOR = Exercise(context_vector, {"context": "d_v"}, {
    "on ordinary inputs": _context_inputs,
    "when the values are single numbers (d_v = 1)": lambda rng: _context_inputs(rng, d_v=1),
    "when the scores are large (around 100)": lambda rng: _context_inputs(rng, around=100),
}, (
    ("The softmax is missing: the raw scores are used as weights.", "scores.softmax(dim=0)", "scores"),
    ("The scores are divided by their sum, without exp(). Softmax is exp(score) / sum of exp(scores).",
     "scores.softmax(dim=0)", "scores / scores.sum()"),
    ("The sum of exp(scores) is missing below the fraction: the weights do not sum to one.",
     "scores.softmax(dim=0)", "scores.exp()"),
    ("The scores are not used: this is the plain sum of the values (a softmax over an axis of length one leads to "
     "that).", "scores.softmax(dim=0) @ values", "values.sum(0)"),
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
), reasons={
    "when the scores are large (around 100)":
        "exp() is infinite for large scores, or 0 for all of them. Subtract the largest score first (the result is the "
        "same), or use softmax, which does so.",
})


def hard_alignment(weights):
    """Weights ``(T_q, T_k)`` to pairs (row, column): each target word and its largest weight."""
    return set(enumerate(weights.argmax(dim=1).tolist()))


def _weights_inputs(rng):
    T_q, T_k = sizes(rng, 2)
    return ((2 * randn(rng, T_q, T_k)).softmax(-1),)


ENUMERATED = "enumerate(weights.argmax(dim=1).tolist())"

HARD_ALIGNMENT = Exercise(hard_alignment, {"links": ""}, {
    "on ordinary inputs": _weights_inputs,
    "when the only source word has the weight 0": lambda rng: (0.0 * _weights_inputs(rng)[0][:, :1],),
}, (
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
    *each("This is what argmax() without dim leads to: that is the largest of the whole matrix; take it for each row: "
          "dim=1.", (f"set({ENUMERATED})", "{(row, int(weights.argmax())) for row in range(len(weights))}"),
          ("dim=1", "")),
    ("These are the columns alone. A link is a pair (row, column).", ENUMERATED, "weights.argmax(dim=1).tolist()"),
    ("Every cell became a link. Keep one a row: the largest weight.",
     ENUMERATED, "map(tuple, (weights >= 0).nonzero().tolist())"),
))


def masked_softmax(scores, mask):
    """Scores ``(B, T_q, T_k)``, mask broadcastable to it, to weights; a fully masked row becomes zeros."""
    empty = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -math.inf).masked_fill(empty, 0.0)
    return scores.softmax(dim=-1).masked_fill(empty, 0.0)


@maker
def _scores_inputs(rng, change=lambda scores, mask: (scores, mask)):
    """Scores and the mask of their padding; and then a change."""
    B, T_q, T_k = sizes(rng, 3)
    return change(2 * randn(rng, B, T_q, T_k), _padding(rng, B, T_k))


def _scores_of_heads(rng):
    B, n_heads, T_q, T_k = sizes(rng, 4)
    return randn(rng, B, n_heads, T_q, T_k), _padding(rng, B, T_k).unsqueeze(1)


MASKED_SCORES = "scores = scores.masked_fill(~mask, -math.inf).masked_fill(empty, 0.0)"
FILL = "scores.masked_fill(~mask, -math.inf)"

MASKED_SOFTMAX = Exercise(masked_softmax, {"weights": "B, T_q, T_k"}, {
    "on ordinary inputs": _scores_inputs(),
    "when each query has its own mask (B, T_q, T_k)": _scores_inputs(lambda scores, mask: (scores, _own_masks(scores))),
    "when the scores are large (around 200)": _scores_inputs(lambda scores, mask: (scores + 200, mask)),
    "when some scores are exactly 0": _scores_inputs(lambda scores, mask: (scores.relu(), mask)),
    "when the masked scores are huge (around 1e10)": _scores_inputs(lambda scores, mask: (scores + 1e10 * ~mask, mask)),
    "when all scores are far below zero (around -1e10)": _scores_inputs(lambda scores, mask: (scores - 1e10, mask)),
    "when every key of a row is masked": _scores_inputs(lambda scores, mask: (scores, _empty_first(mask))),
    "in float16": _scores_inputs(_half),
    "in float16, when every key of a row is masked": _scores_inputs(
        lambda scores, mask: _half(scores, _empty_first(mask))),
    "with heads, (B, n_heads, T_q, T_k)": _scores_of_heads,
}, (
    *((WRONG_AXIS, MASKED_SCORES, f"scores = {FILL}", "(dim=-1).masked_fill(empty, 0.0)", f"(dim={axis}){after}")
      for axis in (-2, 0) for after in ("", ".nan_to_num()")),
    (IGNORED, FILL, "scores"),
    (INVERTED, "fill(~mask", "fill(mask"),
    (AFTER, MASKED_SCORES, "", "softmax(dim=-1)", "softmax(dim=-1) * mask"),
    (SET_TO_ZERO, "-math.inf", "0.0"),
    (TIMES_INF, FILL, "(scores + (~mask).to(scores.dtype) * -math.inf)"),
    (EMPTY_ROW, "-math.inf).masked_fill(empty, 0.0)", "-math.inf)", "(dim=-1).masked_fill(empty, 0.0)", "(dim=-1)"),
    (EQUAL_WEIGHTS, "(dim=-1).masked_fill(empty, 0.0)", "(dim=-1)"),
), reasons={
    "when the scores are large (around 200)": RAW_EXP,
    "when the masked scores are huge (around 1e10)":
        "The masked keys took part in the softmax, and dividing again afterwards does not help when one of them has a "
        "huge score: everything else underflows to 0, and 0 / 0 is NaN. Mask the scores.",
    "when all scores are far below zero (around -1e10)": FINITE,
}, timed=lambda rng: (randn(rng, 32, 8, 40, 40), _padding(rng, 32, 40).unsqueeze(1)))


def additive_score(query, keys, v):
    """``v . tanh(q + k)`` of every projected query with every projected key: ``(B, T_q, T_k)``."""
    return torch.tanh(query.unsqueeze(2) + keys.unsqueeze(1)) @ v


def _additive_inputs(rng, B=None, T_q=None):
    b, t_q, T_k, d_h = sizes(rng, 4)
    B, T_q = B or b, T_q or t_q
    return randn(rng, B, T_q, d_h), randn(rng, B, T_k, d_h), randn(rng, d_h)


CROSSED = "query.unsqueeze(2) + keys.unsqueeze(1)"
TANH = f"torch.tanh({CROSSED})"
LINED_UP = ("Queries and keys are lined up instead of crossed: added as they are, or with the new axis at the same "
            "place. Every query meets every key: give each an axis of length one where the other counts.")

ADDITIVE_SCORE = Exercise(additive_score, {"scores": "B, T_q, T_k"}, {
    "on ordinary inputs": _additive_inputs,
    "with one sentence and one query (B = T_q = 1)": lambda rng: _additive_inputs(rng, 1, 1),
    "when the sums are large (in the hundreds)": lambda rng: tuple(
        200 * x if x.dim() == 3 else x for x in _additive_inputs(rng)),
}, (
    ("The tanh is missing. Without it the query adds the same number to every key's score, and the softmax "
     "drops it: every query would attend alike.", TANH, f"({CROSSED})"),
    ("The tanh comes after the product with v. It belongs inside: v . tanh(...).",
     f"{TANH} @ v", f"torch.tanh(({CROSSED}) @ v)"),
    ("v is inside the tanh. It weights the hidden layer afterwards: tanh(q + k) @ v.",
     f"{TANH} @ v", f"torch.tanh(({CROSSED}) * v).sum(-1)"),
    ("The tanh is taken of query and key apart. They meet inside: tanh(q + k).",
     TANH, "(torch.tanh(query).unsqueeze(2) + torch.tanh(keys).unsqueeze(1))"),
    ("The hidden layer uses relu. This score uses tanh.", "torch.tanh", "torch.relu"),
    ("These are weights already. The score function ends before the softmax.",
     f"{TANH} @ v", f"({TANH} @ v).softmax(dim=-1)"),
    ("Query and key are multiplied, as in a dot product. Here they are added: tanh(q + k).",
     f"{TANH} @ v", "query @ keys.transpose(1, 2)"),
    ("The keys stand in the rows. A row belongs to a query, a column to a key.",
     CROSSED, "query.unsqueeze(1) + keys.unsqueeze(2)"),
    (LINED_UP, CROSSED, "query + keys"),
    (LINED_UP, CROSSED, "query.unsqueeze(1) + keys.unsqueeze(1)"),
    ("repeat, view and reshape fill new axes in memory's order, so that other pairs meet. Give queries and keys an "
     "axis of length one each, with unsqueeze.",
     CROSSED, "query.repeat(1, keys.size(1), 1).view(*query.shape[:2], -1, query.size(2)) + keys.unsqueeze(1)"),
), reasons={
    "with one sentence and one query (B = T_q = 1)":
        "squeeze() without a dimension drops every axis of length one, also a batch or a query of one. Name it: "
        "squeeze(-1).",
}, timed=lambda rng: (randn(rng, 32, 1, 64), randn(rng, 32, 30, 64), randn(rng, 64)))


def scaled_dot_attention(query, keys, values, mask):
    """``softmax(q k^T / sqrt(d)) v``: the context ``(B, T_q, d_v)`` and the weights ``(B, T_q, T_k)``."""
    scores = query @ keys.transpose(-2, -1) / math.sqrt(query.size(-1))     # (B, T_q, T_k)
    weights = masked_softmax(scores, mask)
    return weights @ values, weights


@maker
def _dot_inputs(rng, change=lambda *given: given):
    B, T_q, T_k, d, d_v = sizes(rng, 5)
    return change(randn(rng, B, T_q, d), randn(rng, B, T_k, d), randn(rng, B, T_k, d_v), _padding(rng, B, T_k))


SCALE, WEIGHTS = " / math.sqrt(query.size(-1))", "masked_softmax(scores, mask)"
SCALED_LATE = "The division by sqrt(d) comes after the softmax: divide the scores, not the weights."

SCALED_DOT_ATTENTION = Exercise(scaled_dot_attention, {"context": "B, T_q, d_v", "weights": "B, T_q, T_k"}, {
    "on ordinary inputs": _dot_inputs(),
    "when each query has its own mask (B, T_q, T_k)": _dot_inputs(
        lambda q, k, v, mask: (q, k, v, _own_masks(q @ k.mT))),
    "when padded keys and values hold large numbers": _dot_inputs(
        lambda q, k, v, mask: (q, k.masked_fill(~mask.mT, 1e4), v.masked_fill(~mask.mT, -1e4), mask)),
    "when every key of a row is masked": _dot_inputs(lambda *given: (*given[:3], _empty_first(given[3]))),
    "in float16": _dot_inputs(_half),
}, (
    ("The scale is missing: divide the scores by sqrt(d).", SCALE, ""),
    *each("The scores are divided by another number than sqrt(d). d is the width of a query, query.size(-1): a sum "
          "of d products has the standard deviation sqrt(d).", (SCALE, " / query.size(-1)"),
          ("query.size(-1)", "keys.size(1)"), ("query.size(-1)", "query.size(1)")),
    *each("keys.transpose(-2, -1) swaps the last two axes. .T reverses all of them, the batch's, too; view and "
          "reshape swap none: they cut the numbers, in memory's order, into other rows.", ("transpose(-2, -1)", "T"),
          ("transpose(-2, -1)", "reshape(len(keys), keys.size(2), keys.size(1))")),
    *each(SCALED_LATE, (SCALE, "", WEIGHTS, f"{WEIGHTS}{SCALE}"),
          (SCALE, "", "weights @ values", f"weights{SCALE} @ values")),
    (IGNORED, WEIGHTS, "scores.softmax(dim=-1)"),
    (INVERTED, WEIGHTS, "scores.masked_fill(mask, -math.inf).softmax(dim=-1)"),
    (AFTER, WEIGHTS, "scores.softmax(dim=-1) * mask"),
    *each(WRONG_AXIS, (WEIGHTS, "scores.masked_fill(~mask, -math.inf).softmax(dim=-2)"),
          (WEIGHTS, "scores.masked_fill(~mask, -1e9).softmax(dim=-2)"),
          (WEIGHTS, "scores.masked_fill(~mask, -1e9).softmax(dim=0)")),
    ("The keys are summed instead of the values. Keys say where to look, values what is found.",
     "@ values", "@ keys"),
    ("The second result holds the scores. Return the weights, after the softmax.",
     "@ values, weights", "@ values, scores"),
    (EMPTY_ROW, WEIGHTS, "scores.masked_fill(~mask, -math.inf).softmax(dim=-1)"),
    *each(FINITE, (WEIGHTS, "scores.masked_fill(~mask, -1e9).softmax(dim=-1)"),
          (WEIGHTS, "scores.masked_fill(~mask, -1e9).softmax(dim=-1) * mask")),
))


def alignment_error_rate(predicted, true):
    """``1 - 2 |A and S| / (|A| + |S|)``; two empty sets agree: 0.0."""
    total = len(predicted) + len(true)
    return 1 - 2 * len(predicted & true) / total if total else 0.0


def _links(rng, *numbers: int) -> tuple[set[tuple[int, int]], ...]:
    """Sets of so many links, none in two of them; a column may have two digits."""
    cells = torch.randperm(56, generator=rng).split([*numbers, 56 - sum(numbers)])
    return tuple({divmod(i, 14) for i in part.tolist()} for part in cells[:-1])


def _links_inputs(rng):
    shared, predicted, true = _links(rng, *sizes(rng, 3))
    return shared | predicted, shared | true


def _links_mirrored(rng):
    predicted, true = _links_inputs(rng)
    return predicted, true | {(column, row) for row, column in predicted}


RATE = "1 - 2 * len(predicted & true) / total"

ALIGNMENT_ERROR_RATE = Exercise(alignment_error_rate, {"rate": ""}, {
    "on ordinary inputs": _links_inputs,
    "when no link is shared": lambda rng: _links(rng, 3, 5),
    "when rows and columns have changed places": _links_mirrored,
    "when one of the sets is empty": lambda rng: _links(rng, 0, 5),
    "when both sets are empty": lambda rng: (set(), set()),
}, (
    ("The factor 2 is missing: a shared link is counted once, but it stands in both sets.", "1 - 2 *", "1 -"),
    ("This is the agreement. The error rate is 1 minus it.", "1 - 2 *", "2 *"),
    ("This is 1 - precision: true links that were not found cost nothing. Divide 2 |A and S| by |A| + |S|.",
     RATE, "1 - len(predicted & true) / len(predicted)"),
    ("This is 1 - recall: wrong predicted links cost nothing. Divide 2 |A and S| by |A| + |S|.",
     RATE, "1 - len(predicted & true) / len(true)"),
    *each("The sum below the fraction counts shared links once (the union). Count them in both sets: |A| + |S|.",
          (RATE, "1 - len(predicted & true) / len(predicted | true)"),
          (RATE, "1 - 2 * len(predicted & true) / len(predicted | true)")),
    ("The union is counted where the shared links belong: & is *and*, | is *or*.", " & ", " | "),
    *each("/ comes before +, so only |A| divides. Put parentheses around |A| + |S|.",
          ("/ total", "/ len(predicted) + len(true)"),
          (RATE, "1 - (2 * len(predicted & true) / len(predicted) + len(true))")),
    ("This is a percentage. The rate lies between 0 and 1.", RATE, f"100 * ({RATE})"),
    ("This is the number of wrong links. Divide it by |A| + |S|.",
     f"{RATE} if total else 0.0", "len(predicted ^ true)"),
    ("// rounds down to a whole number. Use /.", "/ total", "// total"),
    ("This is precision: the share of predicted links that are true. Divide 2 |A and S| by |A| + |S|, and subtract "
     "from 1.", RATE, "len(predicted & true) / len(predicted)"),
), reasons={
    "when both sets are empty": "Two empty sets have no links to divide by. They agree: the rate is 0.0.",
})


def local_mask(centres, n_keys, window):
    """``(T_q, n_keys)``, True where ``|j - centre| <= window`` (Luong et al. 2015, section 3.2)."""
    distance = torch.arange(n_keys) - centres.unsqueeze(1)      # (T_q, n_keys)
    return distance.abs() <= window


def _window_inputs(rng):
    T_q, window, more = sizes(rng, 3)
    n_keys = 2 * window + 1 + more
    return torch.randint(window, n_keys - window, (T_q,), generator=rng), n_keys, window


def _window_edges(rng, n_keys=None):
    centres, n, window = _window_inputs(rng)
    centres[:2] = torch.tensor([0, (n_keys or n) - 1])
    return centres, n_keys or n, window


LOCAL_MASK = Exercise(local_mask, {"mask": "T_q, n_keys"}, {
    "on ordinary inputs": _window_inputs,
    "when a centre lies at the edge of the sentence": _window_edges,
    "when the sentence is long (200 words)": lambda rng: _window_edges(rng, 200),
}, (
    ("The ends of the window are missing: it reaches up to and including the distance `window`, <= rather than <.",
     "<=", "<"),
    ("The last key of the window is missing: the end of a slice or range is not part of it, so add 1.",
     "distance.abs() <= window", "(-window <= distance) & (distance < window)"),
    ("The mask is inverted. True means *may attend*, that is, inside the window.", "<=", ">"),
    *each("The distance has a sign: every key on one side of the window counts as near. Take abs().", (".abs()", ""),
          ("distance.abs() <= window", "distance >= -window")),
    ("The window is half as wide as it should be: it reaches `window` keys to each side.", "= window", "= window // 2"),
    ("The row number is used as the centre. Each query's centre is given in `centres`.",
     "centres.unsqueeze", "torch.arange(len(centres)).unsqueeze"),
    *each("T_q centres and n_keys positions do not line up. To cross them, give the centres an axis of their own: "
          "centres.unsqueeze(1).", (".unsqueeze(1)", ""),
          ("torch.arange(n_keys) - centres.unsqueeze(1)", "centres - torch.arange(n_keys)")),
    ("The keys are numbered from one, but positions count from zero: torch.arange(n_keys).",
     "torch.arange(n_keys)", "torch.arange(1, n_keys + 1)"),
    ("The window wraps around: a sentence's last word is not next to its first.",
     "distance.abs()", "torch.minimum(distance.abs(), n_keys - distance.abs())"),
), reasons={
    "when a centre lies at the edge of the sentence":
        "A slice with a negative start counts from the end, so near the first key the window is lost. "
        "Start at max(centre - window, 0), or compare distances.",
})


LESSON_02 = (CONTEXT_VECTOR, HARD_ALIGNMENT, MASKED_SOFTMAX, ADDITIVE_SCORE, SCALED_DOT_ATTENTION,
             ALIGNMENT_ERROR_RATE, LOCAL_MASK)
