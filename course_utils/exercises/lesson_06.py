"""Lesson 06, efficient attention: the exercises, and the ways in which they go wrong."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, wraps

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .engine import Exercise, Verdict, attempt, each
from .inputs import maker, number, randn, sizes


@dataclass(frozen=True, kw_only=True)
class Promising(Exercise):
    """An exercise in which right values are not enough: they must also be reached in the right way.

    Args:
        promise: ``promise(function, *arguments)`` -> what is wrong with the way, or an empty string.
        given: a maker of the arguments that the promise is tried with.
        why: the explanation of what is wrong.
    """

    promise: Callable[..., str]
    given: Callable[[torch.Generator], tuple]
    why: str

    def _judge(self, function) -> Verdict:
        verdict = super()._judge(function)
        if verdict.kind in ("right", "slow"):
            arguments = self.given(torch.Generator().manual_seed(0))
            if what := self.promise(function, *arguments):
                self.reject("", f"Right values, but {what}", arguments, None, self.why)
        return verdict


class _Made(TorchDispatchMode):
    """Counts the numbers of all new tensors; a view makes none, and writing into a tensor does not either."""

    n = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given, out = tree_leaves((args, kwargs)), func(*args, **(kwargs or {}))
        storages = {x.untyped_storage().data_ptr() for x in given if isinstance(x, Tensor)}
        self.n += sum(x.numel() for x in tree_leaves(out)
                      if isinstance(x, Tensor) and x.untyped_storage().data_ptr() not in storages)
        return out


def _makes_at_most(allowed: Callable[..., int]):
    """A promise: so many numbers in new tensors at most, all steps together; `allowed` is asked with the arguments."""
    def promise(function, *arguments):
        with _Made() as made:
            result, most = attempt(function, arguments)[0], allowed(*arguments)
        if isinstance(result, Exception):
            return f"it raised {type(result).__name__} on a longer input: {result}"
        return f"it makes {made.n:,} numbers on the way; at most {most:,} are allowed here." if made.n > most else ""
    return promise


def remember(memory, segment, mem_len):
    """The last `mem_len` positions of memory ``(B, M, d)`` and segment ``(B, T, d)``: Dai et al. 2019, section 3.2."""
    both = torch.cat([memory, segment], dim=1)                          # (B, M+T, d)
    return both[:, max(both.size(1) - mem_len, 0):].detach()


@maker
def _memory_inputs(rng, lengths):
    """`lengths(M, T)` are values of mem_len, of which one is drawn."""
    B, M, T, d = sizes(rng, 4)
    M, T = M + 12, T + 6                                          # M > T: which of the two is cut can be seen
    choice = lengths(M, T)
    mem_len = choice[number(rng, 0, len(choice))]
    return randn(rng, B, M, d), randn(rng, B, T, d), mem_len


def _no_memory_yet(rng):
    B, T, d = sizes(rng, 3)
    return randn(rng, B, 0, d), randn(rng, B, T, d), T + 1


def _no_gradient(function, memory, segment, mem_len):
    for before, when in ((memory, ""), (memory[:, :0], ", when there is no old one yet")):
        with torch.enable_grad():
            new = attempt(function, (before, segment.clone().requires_grad_(), mem_len))[0]
        if isinstance(new, Exception):
            return f"it raised {type(new).__name__} when the segment carries a gradient: {new}"
        if new.requires_grad:
            return f"the new memory still carries a gradient (requires_grad is True){when}."
    return ""


JOINED, START = "torch.cat([memory, segment], dim=1)", "max(both.size(1) - mem_len, 0)"

REMEMBER = Promising(remember, {"new_memory": "B, M_new, d"}, {
    "on ordinary inputs": _memory_inputs(lambda M, T: [T + 3, 1, M + 2]),
    "with mem_len = 0": _memory_inputs(lambda M, T: [0]),
    "when the segment is just as long as mem_len": _memory_inputs(lambda M, T: [T]),
    "when there is less to remember than mem_len": _memory_inputs(lambda M, T: [M + T + 4]),
    "when the memory is still empty (M = 0)": _no_memory_yet,
}, (
    *each("mem_len is not used: the memory grows with every segment, or stays as long as it was. Keep mem_len.",
          (START, "0"), (START, "segment.size(1)")),
    ("The *first* mem_len positions are kept, the oldest. Keep the last.", f"{START}:", ":mem_len"),
    ("The segment stands before the memory. Time goes on: torch.cat([memory, segment], dim=1).",
     "[memory, segment]", "[segment, memory]"),
    ("mem_len positions of the memory are kept *and* the whole segment. Cut once, after joining.",
     "[memory, segment]", "[memory[:, -mem_len:], segment]", START, "0"),
    ("The last position is not remembered. x[:, -mem_len:] ends at the end.", f"{START}:", "-mem_len - 1:-1"),
    *each("Time is axis 1: join along it, dim=1, and cut along it, x[:, …].", ("dim=1", "dim=0"), ("dim=1", "dim=-1"),
          (f"[:, {START}:]", "[-mem_len:]"), (f"[:, {START}:]", "[..., -mem_len:]")),
    ("When there is less than mem_len, M + T - mem_len is negative and counts from the end. At least 0: max(…, 0).",
     START, "both.size(1) - mem_len"),
    ("Zeros fill the memory up to mem_len. They would be attended to; keep what there is, and no more.",
     "[memory, segment]", "[memory.new_zeros(len(memory), mem_len, memory.size(2)), memory, segment]"),
), reasons={
    "with mem_len = 0":
        "With mem_len = 0 everything is kept: -0 is 0, so x[:, -0:] is x[:, 0:]. Count from the front: "
        "x[:, max(x.size(1) - mem_len, 0):].",
}, promise=_no_gradient, given=_memory_inputs(lambda M, T: [T + 3]), why=(
    "The memory is not detached. The next segment's gradient would flow back into this one, and through it into all "
    "before: the graph grows with every segment. End with .detach()."))


def slots_to_keys(scores):
    """Scores ``(T, K)`` of the last T of K positions from by distance to by key: Dai et al. 2019, appendix B.

    Slot p is the key K-1-p positions back; what is ahead of a query is left over.
    """
    T, K = scores.shape
    padded = F.pad(scores, (1, 0))                                      # (T, K+1)
    return padded.view(K + 1, T)[1:].view(T, K)


def _where_seen(function):
    """The function, with zeros where a key is ahead of the query."""
    @wraps(function)
    def seen(*arguments):
        try:
            by_key = function(*arguments)
        except Exception as error:  # given back, not raised again: its traceback shows the student's lines
            return error
        if not isinstance(by_key, Tensor) or by_key.dim() != 2:
            return by_key
        return by_key.tril(by_key.size(1) - by_key.size(0))
    return seen


class ComparedWhereSeen(Exercise):
    """Keys ahead of the query are not compared."""

    @cached_property
    def known(self) -> list[tuple[str, Callable]]:
        """As `Exercise.known`."""
        return [(why, _where_seen(wrong)) for why, wrong in Exercise.known.func(self)]

    def _judge(self, function) -> Verdict:
        seen = replace(self, solution=_where_seen(self.solution))
        return Exercise._judge(seen, _where_seen(function) if callable(function) else function)


@maker
def _slot_inputs(rng, memory=True, T=None):
    """Scores of T queries against K keys, of which K - T are a memory's."""
    t, m = sizes(rng, 2)
    t = T or t + 1
    return (randn(rng, t, t + m * memory),)


VIEWED = "padded.view(K + 1, T)[1:].view(T, K)"


def _rolled(by, rows="scores"):
    """An edit: row t is rolled; what falls out comes in again at the other end."""
    return VIEWED, f"torch.stack([row.roll({by}) for t, row in enumerate({rows})])"


LEFT = "The last row stays. The row above it moves one to the left, the next one two: row t moves by T-1-t."
TRICK = "A column of zeros on the left, view(K + 1, T), without its first row, view(T, K)."

SLOTS_TO_KEYS = ComparedWhereSeen(slots_to_keys, {"by_key": "T, K"}, {
    "on ordinary inputs": _slot_inputs(),
    "without a memory (K = T)": _slot_inputs(memory=False),
    "with one query (T = 1)": _slot_inputs(T=1),
    "when the scores are a transposed tensor": lambda rng: (_slot_inputs()(rng)[0].T.contiguous().T,),
}, (
    (f"The scores come back by slot, as they were. {LEFT}", VIEWED, "scores"),
    (f"The rows move to the right. {LEFT}", *_rolled("T - 1 - t")),
    *each(f"The first row stays and the last moves most. {LEFT}", _rolled("-t"), _rolled("t")),
    *each(f"Every row moves one too far, or one too little, the last one as well. {LEFT}", _rolled("t - T"),
          _rolled("t + 2 - T")),
    *each(f"All rows move by the same. {LEFT}", _rolled("1 - T"), _rolled("-1")),
    ("The queries are taken as the first T of the K positions. They are the last: query t stands at K-T+t, behind the "
     f"memory. {LEFT}", *_rolled("t + 1 - K")),
    ("The slots are read the wrong way round. Slot p holds distance K-1-p: the last slot is the query itself.",
     *_rolled("t + 1 - T", "scores.flip(1)")),
    (f"The zeros are not a column on the left. {TRICK}", "(1, 0)", "(0, 1)"),
    (f"The last row of the view was dropped. Drop the first one. {TRICK}", "[1:]", "[:-1]"),
    *each("Rows and columns are swapped by a transpose. A view keeps the order in which the numbers lie, and that is "
          f"what moves them. {TRICK}", (VIEWED, "padded.T[1:].reshape(T, K)"), ("[1:].view(T, K)", "[1:].T")),
    *each(f"The last steps are missing: without the first row, the K rows of T are viewed as T rows of K. {TRICK}",
          ("[1:].view(T, K)", "[1:]"), ("[1:].view(T, K)", "")),
    ("view(K, T) does not hold the column of zeros: there are T * (K + 1) numbers, K + 1 rows of T.", "K + 1", "K"),
))


def two_blocks(x, w):
    """Each block of `w` positions, and before it the one before: ``(…, n, d)`` to ``(…, n/w, 2w, d)``."""
    blocks = x.unflatten(-2, (-1, w))
    before = F.pad(blocks, (0, 0, 0, 0, 1, 0))[..., :-1, :, :]
    return torch.cat([before, blocks], dim=-2)


def near(n, w):
    """``(n/w, w, 2w)``: whether a block's query (row) may attend to the key (column)."""
    query = torch.arange(w, 2 * w).unsqueeze(1)
    key = torch.arange(2 * w)
    mask = ((key <= query) & (query - key <= w)).repeat(n // w, 1, 1)
    mask[0, :, :w] = False
    return mask


def window_by_blocks(q, k, v, window):
    """Each query of ``(B, n_heads, n, d)`` attends to its own key and the `window` before: Child et al. 2019, 5.5."""
    blocks = q.unflatten(-2, (-1, window))                  # (…, n/window, window, d)
    scores = blocks @ two_blocks(k, window).mT / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~near(q.size(-2), window), -math.inf)
    weights = scores.softmax(dim=-1)                        # (…, window, 2 window)
    return (weights @ two_blocks(v, window)).flatten(-3, -2)


@maker
def _window_inputs(rng, blocks=None, window=None):
    """The number of positions is none of the other sizes."""
    B, n_heads, d, w, n_blocks = sizes(rng, 5)
    w, n_blocks = window or w + 1, blocks or n_blocks + 1
    if blocks is None:
        w, n_blocks = max(w, 3) if window is None else w, max(n_blocks, 8 if window else 3)
    q, k, v = (randn(rng, B, n_heads, n_blocks * w, d) for _ in range(3))
    return q, k, v + 1, w                                                     # zeros are no mean of the values


def _far_below_zero(rng):
    """Scores around -256, lower than those of the zeros before the first block; eighths keep them exact."""
    *shape, _ = (q := _window_inputs()(rng))[0].shape
    k = 8 + torch.randint(-8, 9, (*shape, 16), generator=rng) / 8
    return -k, k.clone(), randn(rng, *k.shape) / 20, q[-1]


def _long(n_heads, n, d, window):
    return lambda rng: (*(randn(rng, 1, n_heads, n, d) for _ in range(3)), window)


NEAR = "near(q.size(-2), window)"
BY_DISTANCE = ("The query in row i and the key in column j of [before, own] are window + i - j apart, and it sees 0 "
               "to window: near(n, window) is this mask.")
NOT_INF = ("The hidden scores are not -inf before the softmax. A finite number hides no score (exp(0) is 1); and "
           "masked after the softmax, it has already taken its share.")
SUM_TO_ONE = ("The weights of a query sum to one over its keys, also where every exp() is 0 or infinite: "
              "scores.softmax(dim=-1).")
BY_ROOT = ("Divide by sqrt(d), d = q.size(-1), once and before the softmax: not by d or another root, not the weights, "
           "and do not leave it out.")

WINDOW_BY_BLOCKS = Promising(window_by_blocks, {"output": "B, n_heads, n, d"}, {
    "on ordinary inputs": _window_inputs(),
    "with one block (n = window)": _window_inputs(blocks=1),
    "with window = 1": _window_inputs(window=1),
    "where scores are low (around -256)": _far_below_zero,
}, (
    (f"There is no mask, or it goes by whole blocks: a query sees two blocks, also what comes after it, or all of the "
     f"block before. {BY_DISTANCE}", f"scores.masked_fill(~{NEAR}, -math.inf)", "scores"),
    ("Every query sees its own block only. The mask counts all positions, near(q.size(-2), window): with n = "
     "blocks.size(-2), one block, it hides what is before *every* block. Keys and values are those of two_blocks.",
     NEAR, "near(blocks.size(-2), window)"),
    *each("The queries are in blocks, and the keys are not, or .T turned all their axes: the axes do not line up. "
          "The keys of each block, and of the one before it, the last two axes turned: two_blocks(k, window).mT.",
          ("two_blocks(k, window).mT", "k.mT"), ("two_blocks(k, window).mT", "two_blocks(k, window).T")),
    *each("A block is `window` neighbours; its queries look back into the block before. So it gets the keys *and* "
          "the values of both, the one before first: two_blocks(k, window) and two_blocks(v, window).",
          ("two_blocks(v, window)", "v.unflatten(-2, (-1, window))"),
          ("two_blocks(k, window)", "k.unflatten(-2, (-1, window))")),
    ("Off by one at an edge of the window: the farthest key is missing or one too many, or the query's own key is "
     f"missing. {BY_DISTANCE}", NEAR, f"({NEAR} & ~torch.eye(window, 2 * window).bool())"),
    ("The first block has nothing before it, and attends to the zeros of the padding (a zero key has the score 0, and "
     "that gets a weight) or, by roll, to the last block. There, the first window columns get -inf.",
     NEAR, "near(2 * window, window)[1]"),
    *each(BY_ROOT, (" / math.sqrt(q.size(-1))", ""), ("math.sqrt(q.size(-1))", "q.size(-1)"),
          ("q.size(-1))\n", "window)\n"),
          (" / math.sqrt(q.size(-1))", "", "(dim=-1)", "(dim=-1) / math.sqrt(q.size(-1))")),
    *each(NOT_INF, ("-math.inf", "0"),
          (f"scores.masked_fill(~{NEAR}, -math.inf)", "scores", "(dim=-1)", f"(dim=-1) * {NEAR}")),
    ("The mask is inverted: the window is hidden. Fill with -inf where it is False.", "~near", "near"),
    *each(SUM_TO_ONE, ("dim=-1", "dim=2"), ("scores.softmax(dim=-1)", "scores"),
          ("scores.softmax(dim=-1)", "scores.flatten().softmax(0).view(scores.shape)"), ("dim=-1", "dim=-2"),
          ("scores.softmax(dim=-1)", "scores.exp() / scores.exp().sum(-1, keepdim=True)")),
), timed=_long(2, 2048, 64, 128), promise=_makes_at_most(lambda q, k, v, window: q.size(-2) ** 2),
   given=_long(1, 1024, 4, 8), why=(
       "The result is right, but nothing is saved: n x n pairs are computed and then masked away. Cut the positions "
       "into blocks, q.unflatten(-2, (-1, window)); the keys of two blocks are enough."))


def online_update(m, s, o, scores, v):
    """One tile, scores ``(T, tile)`` and v ``(tile, d)``, after those of m, s ``(T, 1)`` and o ``(T, d)``.

    Dao et al. 2022, algorithm 1; Milakov and Gimelshein 2018, algorithm 3.
    """
    m_new = torch.maximum(m, scores.amax(dim=-1, keepdim=True))     # (T, 1)
    factor, p = (m - m_new).exp(), (scores - m_new).exp()           # (T, 1), (T, tile)
    return m_new, factor * s + p.sum(dim=-1, keepdim=True), factor * o + p @ v


@maker
def _tile_inputs(rng, hidden="none", begun=True, size=1.0, shift=0.0):
    """Queries that have seen some keys, or none; double, since only what goes forward is judged.

    The rows' own level makes that in some the largest score is an old one and in others a new one.
    """
    T, tile, d, before = sizes(rng, 4)
    T, tile = T + 6, tile + 1 if tile + 1 != d else tile + 7
    m, s, o = torch.full((T, 1), -math.inf), torch.zeros(T, 1), torch.zeros(T, d)
    level = torch.linspace(-2, 2, T).unsqueeze(1)
    if begun:
        seen = size * (randn(rng, T, before) - level) + shift
        m = seen.amax(-1, keepdim=True)
        p = (seen - m).exp()
        s, o = p.sum(-1, keepdim=True), p @ randn(rng, before, d)
    scores = size * (randn(rng, T, tile) + level) + shift
    if hidden == "some":                                          # at least one key is seen
        scores[:, 1:] = scores[:, 1:].masked_fill(randn(rng, T, tile - 1) > 0, -math.inf)
    if hidden == "rows":
        scores[::2] = -math.inf
    return tuple(x.double() for x in (m, s, o, scores, randn(rng, tile, d)))


def _a_tile(rng):
    return (torch.full((128, 1), -math.inf), torch.zeros(128, 1), torch.zeros(128, 64), randn(rng, 128, 128),
            randn(rng, 128, 64))


MAXIMUM, TILE_MAX = "torch.maximum(m, scores.amax(dim=-1, keepdim=True))", "scores.amax(dim=-1, keepdim=True)"
FACTOR, P, P_SUM = "(m - m_new).exp()", "(scores - m_new).exp()", "p.sum(dim=-1, keepdim=True)"
ONLINE_UPDATE = Exercise(online_update, {"m": "T, 1", "s": "T, 1", "o": "T, d"}, {
    "on ordinary inputs": _tile_inputs(),
    "when some keys are masked (-inf)": _tile_inputs("some"),
    "when the scores are large (around 1,000)": _tile_inputs(size=500.0),
    "when the scores are far below zero (around -20,000)": _tile_inputs(shift=-20_000.0),
    "with the first tile of all (m is -inf, s and o are 0)": _tile_inputs(begun=False),
    "when a query sees no key of the tile (a row of -inf)": _tile_inputs("rows"),
}, (
    *each("Old sums are added as they are: s or o, or both, are not rescaled. (Or m was overwritten before exp(m - "
          "m_new), which is then exp(0) = 1.) They are sums of exp(score - old maximum): bring both to the new one "
          "before adding, times exp(m - m_new).", (FACTOR, "torch.ones_like(m)"), ("factor * o", "o"),
          ("factor * s", "s")),
    ("The rescaling is turned round: exp(m_new - m) makes the old sums larger. It is exp(m - m_new).",
     FACTOR, "(m_new - m).exp()"),
    ("The new sums are rescaled as well: factor * s + …, not factor * (s + …).",
     f"s + {P_SUM}", f"(s + {P_SUM})", "o + p @ v", "(o + p @ v)"),
    *each("m is the larger of the old maximum and the tile's, for each query: torch.maximum(m, scores.amax(dim=-1, "
          "keepdim=True)).", (MAXIMUM, "torch.maximum(m.max(), scores.max()).expand_as(m)"), (MAXIMUM, TILE_MAX),
          (TILE_MAX, "scores.max()")),
    *each("p is made with another maximum than the one that is kept: the tile's own, the old one, none (then exp "
          "overflows when scores are large), or a bound that scores may be far below. All sums need the same: "
          "exp(scores - m_new).", (P, f"(scores - {TILE_MAX}).exp()"), (P, "(scores - m).exp()"), (P, "scores.exp()")),
    *each("The running maximum is left out of the sums: exp(score) overflows once a score is large (float32: beyond "
          "88). Subtract it before exp, exp(scores - m_new), and rescale the old sums to it.",
          (FACTOR, "torch.ones_like(m)", P, "scores.exp()"),
          (MAXIMUM, "m", FACTOR, "torch.ones_like(m)", P, "scores.exp()")),
    ("The values are multiplied by the raw scores. A value's weight is p = exp(scores - m_new), the same as in the sum "
     "s: p @ v.", "p @ v", "scores @ v"),
    *each("o or p is divided by a sum already: a softmax over this tile alone, or a mean that the next tile would "
          "rescale. o stays a sum until the last tile; then, once, o / s.",
          ("factor * o + p @ v", f"(factor * o + p @ v) / (factor * s + {P_SUM})"),
          ("p @ v", "scores.softmax(dim=-1) @ v")),
    *each("Each query has its own sum of p, and keeps the axis, or (T,) meets (T, 1) and becomes (T, T): "
          "p.sum(dim=-1, keepdim=True).", (P_SUM, "p.sum(dim=0, keepdim=True)"), (P_SUM, "p.sum(dim=-1)")),
    *each("The tile's maximum is to be a tensor (T, 1). Without keepdim it is (T,); and max(dim=-1) gives a pair, "
          "values and indices. amax(dim=-1, keepdim=True) is one.",
          (TILE_MAX, "scores.amax(dim=-1)"), ("amax", "max")),
), timed=_a_tile)


def grouped_query(q, k, v):
    """Causal attention of q ``(B, n_heads, T, d)`` to k, v ``(B, n_kv_heads, T_k, d)``: Ainslie et al. 2023, 2.2."""
    B, n_heads, T, d = q.shape
    n_kv_heads, T_k = k.shape[1:3]
    groups = q.reshape(B, n_kv_heads, -1, d)                # (B, n_kv_heads, group·T, d)
    scores = (groups @ k.mT / math.sqrt(d)).view(B, n_heads, T, T_k)
    ahead = torch.ones(T, T_k, dtype=torch.bool).triu(T_k - T + 1)
    weights = scores.masked_fill(ahead, -math.inf).softmax(dim=-1)
    return (weights.view(B, n_kv_heads, -1, T_k) @ v).view(B, n_heads, T, d)


@maker
def _head_inputs(rng, n_kv=None, T=None, before=0):
    """The number of positions is none of the other sizes."""
    kv, groups = (torch.randperm(2, generator=rng) + 2).tolist()
    B, t, d = (torch.tensor([4, 5, 7])[torch.randperm(3, generator=rng)]).tolist()
    kv, t = n_kv or kv, T or t
    return (randn(rng, B, kv * groups, t, d), *(randn(rng, B, kv, t + before, d) for _ in range(2)))


def _cached(rng):
    return randn(rng, 1, 8, 1, 64), *(randn(rng, 1, 2, 512, 64) for _ in range(2))


PRODUCT, AHEAD = "(groups @ k.mT / math.sqrt(d)).view(B, n_heads, T, T_k)", "triu(T_k - T + 1)"


def _with_heads(made):
    """Edits: every head reads a key and value head of its own, made from x."""
    return (PRODUCT, f"q @ {made.replace('x', 'k')}.mT / math.sqrt(d)",
            "(weights.view(B, n_kv_heads, -1, T_k) @ v)", f"(weights @ {made.replace('x', 'v')})")


NEIGHBOURS_SHARE = ("Neighbours share, keys and values alike: with 6 heads and 2 kv heads, heads 0, 1, 2 read kv head "
                    "0, and 3, 4, 5 read kv head 1.")

GROUPED_QUERY = Promising(grouped_query, {"output": "B, n_heads, T, d"}, {
    "on ordinary inputs": _head_inputs(),
    "with one kv head for all (n_kv_heads = 1)": _head_inputs(n_kv=1),
    "with a cache (T_k = T + 6)": _head_inputs(before=6),
    "with one new query and a cache (T = 1)": _head_inputs(T=1, before=6),
}, (
    (f"The kv heads of k or v are dealt out in turn: head h reads kv head h % n_kv_heads. {NEIGHBOURS_SHARE}",
     *_with_heads("x.repeat(1, n_heads // n_kv_heads, 1, 1)")),
    (f"All heads read the same: the first kv head, the last one, or the mean of all. {NEIGHBOURS_SHARE}",
     *_with_heads("x[:, :1]")),
    ("The mask is missing: a query sees the keys after it. Causal: fill what is ahead with -inf.",
     "scores.masked_fill(ahead, -math.inf)", "scores"),
    ("The mask is made for the queries of a group one after the other, as if the second head's came after the first "
     "one's. View the scores as (B, n_heads, T, T_k) before you mask.",
     ".view(B, n_heads, T, T_k)", "", "ones(T, T_k", "ones(groups.size(2), T_k"),
    *each("The mask is turned round or off by one: a query sees its own key and all before it, and none after it. "
          "Hide what is *ahead*, triu(T_k - T + 1).", (AHEAD, "tril(T_k - T - 1)"), (AHEAD, "triu(T_k - T + 2)"),
          (AHEAD, "triu(T_k - T)")),
    *each(BY_ROOT, (" / math.sqrt(d)", ""), ("math.sqrt(d)", "d")),
    (SUM_TO_ONE, "dim=-1", "dim=-2"),
    *each(NOT_INF, ("-math.inf", "0"),
          ("scores.masked_fill(ahead, -math.inf).softmax(dim=-1)", "scores.softmax(dim=-1) * ~ahead")),
    *each("The groups are still apart, or heads and positions are mixed up. Put the heads back side by side: "
          ".view(B, n_heads, T, d). It keeps the order of the axes: the positions must be the axis before the width.",
          (".view(B, n_heads, T, d)", ".view(B, n_kv_heads, -1, T, d)"),
          (".view(B, n_heads, T, d)", ".unflatten(2, (T, -1)).transpose(2, 3).reshape(q.shape)")),
    ("The heads do not line up: q has n_heads of them, k has n_kv_heads. View the queries as groups first.",
     PRODUCT, "q @ k.mT"),
    ("The queries are the *last* T of T_k positions: query t sees the keys up to T_k - T + t. "
     "triu(T_k - T + 1) is what is ahead.", AHEAD, "triu(1)"),
), promise=_makes_at_most(lambda q, k, v: k.numel() * q.size(1) // k.size(1)), given=_cached, why=(
    "k and v are copied for every head of a group, and the memory traffic that grouping saves is back. "
    "repeat_interleave copies, and so does @ when k has an axis of 1 for the group. Put the queries of a group side by "
    "side instead: q.reshape(B, n_kv_heads, -1, d) @ k.mT."))


def choose(masks, layers):
    """The name of the mask ``(n, n)`` with the fewest pairs by which the last position depends on every position."""
    pairs = {name: mask.sum() for name, mask in masks.items()
             if torch.linalg.matrix_power(mask.double(), layers)[-1].all()}
    return min(pairs, key=pairs.get)


class _Masks(dict):
    """Patterns by name, shown by name."""

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{name!r}: …' for name in self)}}}, {len(next(iter(self.values())))} positions each"


def _patterns(n: int, window: int, stride: int) -> dict[str, Tensor]:
    """Patterns of the lesson, and some that look cheap and do not carry everything."""
    q = torch.arange(n).unsqueeze(1)
    k = q.T
    d = q - k
    made = {
        "own block of 2": q // 2 == k // 2,
        "first three keys and own": (k < 3) | (d == 0),
        f"every {stride}th key": d % stride == 0,
        f"own block of {stride}": q // stride == k // stride,
        f"window {window}": d <= window,
        f"window {2 * window}": d <= 2 * window,
        f"window {n // 2}, the last sees all": (d <= n // 2) | (q == n - 1),
        f"fixed {stride}": (q // stride == k // stride) | (k % stride == stride - 1),
        f"strided {stride}": (d <= stride) | (d % stride == 0),
        "all before": d >= 0,
    }
    return {name: mask & (d >= 0) for name, mask in made.items()}


@maker
def _choice(rng, *layers):
    """Patterns in random order, and a number of layers; the first key is whole strides away."""
    blocks, window, stride = sizes(rng, 3)
    window, stride = 2 + window % 2, 5 + stride % 2
    made = _patterns((4 + blocks % 2) * stride + 1, window, stride)
    names = [list(made)[i] for i in torch.randperm(len(made), generator=rng).tolist()]
    return _Masks({name: made[name] for name in names}), layers[number(rng, 0, len(layers))]


def _many_ways(rng):
    return _Masks({"own position": torch.eye(32).bool(), "all positions": torch.ones(32, 32).bool()}), 14


POWER, BEST = "torch.linalg.matrix_power(mask.double(), layers)", "min(pairs, key=pairs.get)"
CHOOSE = Exercise(choose, {"name": ""}, {
    "on ordinary inputs": _choice(8, 3, 2),
    "with one layer": _choice(1),
    "with many layers": _choice(12),
    "where 2^65 ways lead from each key to the query": _many_ways,
}, (
    ("This is the pattern with the fewest pairs of all, but it does not carry everything to the last position. First "
     "ask which ones do. (One position that reaches, any(), is not enough: all() must.)", ".all()", ".any()"),
    ("This one has the most pairs. The fewest are wanted: min.", "min", "max"),
    ("Only the first position is looked at: it reaches the last one, but others do not. The whole last row after all "
     "layers, matrix_power(mask.double(), layers)[-1], must be positive.", "[-1].all()", "[-1, 0]"),
    ("The layers are not used: this one sees everything in a single layer. With more layers information goes in "
     "steps, and a step is a matrix product: @ or torch.linalg.matrix_power (mask ** layers changes nothing).",
     POWER, "mask"),
    *each("One layer too few or too many was counted. matrix_power(mask, layers) is already layers steps; a loop "
          "that begins with the mask has made one, and needs layers - 1 more.", ("layers)[", "layers + 1)["),
          ("layers)[", "layers - 1)[")),
    ("The first column was looked at: which positions depend on the first one. Ask on which ones the last one depends; "
     "rows are queries: [-1].", "[-1]", "[:, 0]"),
    *each("No pattern passes your test. Is it the last *row* that is looked at, [-1], and that one alone? In a "
          "causal mask nothing reaches an earlier position, and the last column is empty but for its end.",
          ("[-1]", "", BEST, "list(pairs)[0]"), ("[-1]", "")),
    ("This one reaches, but it is not the cheapest. (Is it the first one found? Are the pairs of the power counted?) "
     "Of those that reach, take the one with the fewest pairs of its own: mask.sum().", BEST, "next(iter(pairs))"),
    ("This is the one that needs the fewest layers. It only has to manage with the layers there are; of those that do, "
     "take the one with the fewest pairs.", "mask.sum()",
     "next(n for n in range(1, layers + 1) if torch.linalg.matrix_power(mask.double(), n)[-1].all())"),
    ("The keys of the last query are counted, not the pairs of all.", "mask.sum()", "mask[-1].sum()"),
    ("Booleans cannot be multiplied as matrices. Make numbers of them first: mask.double().", POWER, "(mask @ mask)"),
))


def cache_bytes(tokens, full, local, window, n_kv_heads, d_head, bytes_per_number=2):
    """Bytes of one text's cache: `full` layers keep all its tokens, `local` layers at most the last `window`."""
    per_token = 2 * n_kv_heads * d_head * bytes_per_number         # of one layer: a key and a value
    return per_token * (full * tokens + local * min(tokens, window))


@maker
def _model(rng, shorter=False, **fixed):
    """A text longer than the window, or shorter; no two of the numbers are the same."""
    full, local, window, n_kv_heads, d_head, bytes_per_number = sizes(rng, 6)
    window = 10 + 2 * window
    tokens = window - 3 if shorter else window + 50
    model = {"full": full + 1, "local": local + 8, "window": window, "n_kv_heads": n_kv_heads,
             "d_head": 16 * d_head, "bytes_per_number": bytes_per_number} | fixed
    return tokens, *model.values()


KEPT, IN_ALL = "min(tokens, window)", "(full * tokens + local * min(tokens, window))"
CACHE_BYTES = Exercise(cache_bytes, {"bytes": ""}, {
    "on ordinary inputs": _model(),
    "when the text is shorter than the window": _model(shorter=True),
    "without local layers": _model(local=0, window=0),
    "without full layers": _model(full=0),
}, (
    ("A key *and* a value are kept for each token: times 2.", "2 * n_kv_heads", "n_kv_heads"),
    *each("These are numbers, or bytes of 2-byte numbers. Each number takes `bytes_per_number`.",
          (" * bytes_per_number", ""), (" * bytes_per_number", " * 2")),
    *each("Each layer keeps a key for every key-value head, and a key is `d_head` numbers: n_kv_heads * d_head.",
          (" * d_head", ""), ("n_kv_heads * ", "")),
    ("The local layers keep every token here. They drop what has left the window: min(tokens, window).",
     KEPT, "tokens"),
    ("One token too many in a local layer: it keeps at most `window` of them.", KEPT, "min(tokens, window + 1)"),
    ("The local layers are not counted. They keep less, but not nothing.", f" + local * {KEPT}", ""),
    ("The full layers keep *every* token; only the local ones stop at the window.",
     "full * tokens", f"full * {KEPT}"),
    ("Full and local layers are swapped: the full ones keep every token.",
     IN_ALL, "(local * tokens + full * min(tokens, window))"),
    ("All layers are counted as one kind: full + local layers of all tokens and windows together. Each kind has its "
     "own number of tokens.", IN_ALL, "(full + local) * (tokens + window)"),
    ("These are the bytes per token. A text's cache has a key and a value for each token that a layer keeps.",
     IN_ALL, "(full + local)"),
), reasons={
    "when the text is shorter than the window":
        "While the text is shorter than the window, a local layer keeps what there is: min(tokens, window).",
})


LESSON_06 = (REMEMBER, SLOTS_TO_KEYS, WINDOW_BY_BLOCKS, ONLINE_UPDATE, GROUPED_QUERY, CHOOSE, CACHE_BYTES)
