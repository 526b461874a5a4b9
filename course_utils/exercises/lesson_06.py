"""Lesson 06, efficient attention: the exercises, their references and the ways in which they go wrong."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_utils import attention as ours
from course_utils.exercises.engine import Exercise, attempt
from course_utils.exercises.inputs import randn, sizes
from course_utils.exercises.lesson_02 import AFTER, SCALED_LATE, SET_TO_ZERO, WRONG_AXIS
from course_utils.exercises.lesson_03 import NO_SOFTMAX


@dataclass(frozen=True, kw_only=True)
class Promising(Exercise):
    """An exercise in which right values are not enough: they must also be reached in the right way.

    Args:
        promise: ``promise(function, *arguments)`` -> what is wrong with the way, or an empty string.
        given: the arguments that the promise is tried with.
        why: the explanation of what is wrong.
    """

    promise: Callable[..., str]
    given: Callable[[torch.Generator], tuple]
    why: str

    def judge(self, function) -> tuple[bool, str]:
        """As `Exercise.judge`; then the promise."""
        written, text = super().judge(function)
        if written:
            arguments = self.given(torch.Generator().manual_seed(0))
            if what := self.promise(function, *arguments):
                self._reject("", f"Right values, but {what}", arguments, None, f"\nWhy: {self.why}")
        return written, text


class _Made(TorchDispatchMode):
    """Counts the numbers of all new tensors; a view makes none, and writing into a tensor does not either."""

    def __init__(self):
        super().__init__()
        self.n = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        given = {tensor.untyped_storage().data_ptr() for tensor in _tensors((args, kwargs))}
        self.n += sum(new.numel() for new in _tensors(out) if new.untyped_storage().data_ptr() not in given)
        return out


def _tensors(tree) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def _makes_at_most(allowed: Callable[..., int]):
    """A promise: so many numbers in new tensors at most, all steps together; `allowed` is asked with the arguments."""
    def promise(function, *arguments):
        def count(*copies):
            with _Made() as made:
                function(*copies)
            return made.n

        n, most = attempt(count, arguments)[0], allowed(*arguments)
        if isinstance(n, Exception):
            return f"it raised {type(n).__name__} on a longer input: {n}"
        return f"it makes {n:,} numbers on the way; at most {most:,} are allowed here." if n > most else ""
    return promise


# --- count_pairs ---------------------------------------------------------------------------------------------

def count_pairs(n: int, window: int) -> int:
    """n: positions; window: each sees so many keys before itself, as far as there are any, and its own
    -> int: the number of pairs (query, key), counted without an n x n matrix
    """
    w = min(window, n - 1)
    return n * (w + 1) - w * (w + 1) // 2


def _window_sizes(narrow):
    """A maker of inputs: a window that is narrower than the text, or one that is not."""
    def make(rng):
        small, more = sizes(rng, 2)
        return (small + more + 8, small) if narrow else (small, small + more - 2)
    return make


def _no_window(rng):
    return sizes(rng, 1)[0], 0


def _long_text(rng):
    return 2000 + sizes(rng, 1)[0], 50


def _pair_matrix(n, window):
    return int(torch.ones(n, n).tril().triu(-window).sum())


THE_CORNER = ("The first queries have fewer keys: query 0 has only its own, query 1 two, and so on. Query t sees "
              "min(t, window) + 1 keys.")
OWN_TOO = "A query also sees its own key: that is n pairs more."
TOO_WIDE = ("The window may be wider than the text: no query has more than n - 1 keys before it. First "
            "window = min(window, n - 1).")
BUILT = ("You built the whole n x n matrix to count in it. For 80,000 words that is 6.4 billion entries. Add up what "
         "each query sees, or find the formula.")

COUNT_PAIRS = Promising(count_pairs, {"pairs": ""}, {
    "on ordinary inputs": _window_sizes(narrow=True),
    "when the window is as wide as the text, or wider": _window_sizes(narrow=False),
    "with window = 0": _no_window,
}, (
    (f"Every query is given all its keys, its own not among them. {OWN_TOO} {THE_CORNER}", lambda n, w: n * w),
    (f"Every query is given window + 1 keys. {THE_CORNER}", lambda n, w: n * (w + 1)),
    (f"The query's own key is not counted. {OWN_TOO}", lambda n, w: count_pairs(n, w) - n),
    ("Only the n - window full windows are counted (or a whole square is subtracted, window * (window + 1)). The first "
     f"queries see something, too; a triangle is missing there, half of that. {THE_CORNER}",
     lambda n, w: n * (w + 1) - w * (w + 1)),
    ("The missing triangle at the beginning is one step too small: query 0 misses window keys, query 1 one less; "
     "together window * (window + 1) / 2.", lambda n, w: n * (w + 1) - w * (w - 1) // 2),
    ("The missing triangle at the beginning was added, not subtracted.",
     lambda n, w: n * (w + 1) + w * (w + 1) // 2),
    ("The window is open to both sides here. A causal query sees no key after itself.",
     lambda n, w: sum(min(t, w) + 1 + min(n - 1 - t, w) for t in range(n))),
    ("These are the pairs of causal attention: the window is not used.", lambda n, w: n * (n + 1) // 2),
    ("These are all pairs, n * n. A query sees its own key and `window` before it.", lambda n, w: n * n),
    ("The window counts the query's own key here. It does not: window keys before it, *and* its own.",
     lambda n, w: sum(min(t + 1, w) for t in range(n))),
    ("A division with / makes a float. Pairs are whole: //.", lambda n, w: float(count_pairs(n, w))),
    ("The count is a tensor. Return an int: int(…).", lambda n, w: torch.tensor(count_pairs(n, w))),
    (TOO_WIDE, lambda n, w: n * (w + 1) - w * (w + 1) // 2),
    (TOO_WIDE, lambda n, w: w * (w + 1) // 2 + (n - w) * (w + 1)),
    (BUILT, _pair_matrix),
), promise=_makes_at_most(lambda n, window: n * n // 4), given=_long_text, why=BUILT)


# --- window_by_blocks ----------------------------------------------------------------------------------------

def window_by_blocks(q: Tensor, k: Tensor, v: Tensor, window: int) -> Tensor:
    """q, k, v (B, n_heads, n, d), n a multiple of window
    -> (B, n_heads, n, d): each query attends to its own key and the window keys before it. By blocks of window
    queries: they need the keys of their own block and of the block before (Child et al. 2019, section 5.5: blocks;
    Beltagy et al. 2020, section 3.1: the window)
    """
    return _by_blocks()(q, k, v, window)


def _blocks(x: Tensor, window: int) -> Tensor:
    """``(B, n_heads, n, d)`` -> ``(B, n_heads, n / window, window, d)``."""
    return x.unflatten(-2, (-1, window))


def _before_and_own(x: Tensor, window: int) -> Tensor:
    """``(B, n_heads, n / window, 2 window, d)``: the block before, zeros at first, and the own one."""
    before = F.pad(x, (0, 0, window, 0))[..., :-window, :]
    return torch.cat([_blocks(before, window), _blocks(x, window)], -2)


def _in_window(distance: Tensor, exists: Tensor, window: int) -> Tensor:
    return (distance >= 0) & (distance <= window) & exists


def _root_of_width(q: Tensor) -> float:
    return math.sqrt(q.size(-1))


def _not_a_number(scores: Tensor, mask: Tensor) -> Tensor:
    """A softmax that gives NaN where all is masked."""
    return scores.masked_fill(~mask, -math.inf).softmax(-1)


def _softmax_over(dim):
    return lambda scores, mask: scores.masked_fill(~mask, -math.inf).softmax(dim)


def _by_blocks(seen=_in_window, keys=_before_and_own, values=None, scale=_root_of_width, weigh=ours.masked_softmax,
               join=lambda out: out.flatten(-3, -2)):
    """A sliding window by blocks, of which a part may be wrong; distance is (window, 2 window) or narrower."""
    def attend(q, k, v, window):
        k, v = keys(k, window), (values or keys)(v, window)
        scores = _blocks(q, window) @ k.mT / scale(q)                # (B, n_heads, n / window, window, 2 window)
        place = torch.arange(2 * window)[-k.size(-2):] - window      # of a key; the block begins at 0
        distance = torch.arange(window).unsqueeze(1) - place
        first = torch.arange(scores.size(2)).view(-1, 1, 1) == 0
        return join(weigh(scores, seen(distance, ~first | (place >= 0), window)) @ v)
    return attend


def _all_at_once(seen, softmax=ours.masked_softmax):
    """The whole matrix; `seen(distance, window)` is the mask."""
    def attend(q, k, v, window):
        place = torch.arange(q.size(-2))
        return softmax(q @ k.mT / _root_of_width(q), seen(place.unsqueeze(1) - place, window)) @ v
    return attend


def _around(x: Tensor, window: int) -> Tensor:
    return torch.cat([_blocks(x, window).roll(1, 2), _blocks(x, window)], -2)


def _block_after(x: Tensor, window: int) -> Tensor:
    after = F.pad(x, (0, 0, 0, window))[..., window:, :]
    return torch.cat([_blocks(after, window), _blocks(x, window)], -2)


def _own_first(x: Tensor, window: int) -> Tensor:
    return _before_and_own(x, window).roll(window, -2)


def _every(x: Tensor, window: int) -> Tensor:
    """Blocks of positions that are not neighbours."""
    return x.unflatten(-2, (window, -1)).transpose(-2, -3)


def _interleaved(q, k, v, window):
    """The axis of the positions is cut the wrong way round."""
    q, k, v = (_every(x, window).flatten(-3, -2) for x in (q, k, v))
    return window_by_blocks(q, k, v, window)


def _window_inputs(blocks=None, window=None):
    """A maker of inputs; the number of positions is none of the other sizes."""
    def make(rng):
        B, n_heads, d, w, n_blocks = sizes(rng, 5)
        w, n_blocks = window or w + 1, blocks or n_blocks + 1
        if blocks is None:
            w, n_blocks = max(w, 3) if window is None else w, max(n_blocks, 8 if window else 3)
        q, k, v = (randn(rng, B, n_heads, n_blocks * w, d) for _ in range(3))
        return q, k, v + 1, w                                                     # zeros are no mean of the values
    return make


def _long_inputs(rng):
    return (*(randn(rng, 1, 1, 1024, 4) for _ in range(3)), 8)


BY_DISTANCE = "The query in row i and the key in column j of [before, own] are window + i - j apart."
NEED_BEFORE = ("The first queries of a block look back into the block before: give each block the keys and values of "
               "both, torch.cat([before, own], dim=-2).")
NOTHING_BEFORE = "The first block has nothing before it: there, the first window columns get -inf."
SAVES_NOTHING = ("The result is right, but nothing is saved: n x n pairs are computed and then masked away. Cut the "
                 "positions into blocks, q.unflatten(-2, (-1, window)); the keys of two blocks are enough.")

WINDOW_BY_BLOCKS = Promising(window_by_blocks, {"output": "B, n_heads, n, d"}, {
    "on ordinary inputs": _window_inputs(),
    "with one block (n = window)": _window_inputs(blocks=1),
    "with window = 1": _window_inputs(window=1),
}, (
    (f"The block before is forgotten: a query sees its own block only. {NEED_BEFORE}",
     _by_blocks(keys=_blocks)),
    ("The mask goes by blocks: a query sees its own block so far and the *whole* block before it, and so the last "
     f"query of a block sees nearly twice as far as the first. Mask by distance, 0 to window. {BY_DISTANCE}",
     _by_blocks(lambda distance, exists, w: (distance >= 0) & exists)),
    (f"There is no mask: a query sees two whole blocks, also what comes after it. {BY_DISTANCE} See 0 to window.",
     _by_blocks(lambda distance, exists, w: exists | (distance < 0))),
    (f"There is no mask, and the first block attends to the zeros of the padding, too. {BY_DISTANCE} See 0 to window. "
     f"{NOTHING_BEFORE}", _by_blocks(lambda distance, exists, w: torch.ones_like(exists | (distance > 0)))),
    ("The future is seen: keys of the own block that come after the query. Their distance is negative; "
     "0 <= distance.", _by_blocks(lambda distance, exists, w: (distance <= w) & exists)),
    ("Off by one: the farthest key is missing. The window is `window` keys before the query *and* its own: "
     "distance <= window.", _by_blocks(lambda distance, exists, w: _in_window(distance, exists, w - 1))),
    ("Off by one: a key too many, where the two blocks hold it. distance <= window.",
     _by_blocks(lambda distance, exists, w: _in_window(distance, exists, w + 1))),
    *(("The query does not see its own key, and the first query sees nothing at all. Distance 0 belongs to the window.",
       _by_blocks(lambda distance, exists, w: (distance > 0) & _in_window(distance, exists, w), weigh=weigh))
      for weigh in (ours.masked_softmax, _not_a_number)),
    ("The first block attends to the zeros of the padding: a zero key has the score 0, and that gets a weight. "
     f"{NOTHING_BEFORE}", _by_blocks(lambda distance, exists, w: _in_window(distance, True, w))),
    (f"The first block sees the last one: roll goes around the end, and that is the future. {NOTHING_BEFORE}",
     _by_blocks(lambda distance, exists, w: _in_window(distance, True, w), _around)),
    ("Each block got the block *after* it. Put a block of zeros in front, and cut the last block off.",
     _by_blocks(keys=_block_after)),
    ("Each block got the block *after* it, and the last one the zeros of the padding. Put a block of zeros in front, "
     "and cut the last block off.",
     _by_blocks(lambda distance, exists, w: _in_window(distance, True, w), keys=_block_after)),
    ("The keys stand in the order [own, before], and the mask is made for [before, own].",
     _by_blocks(keys=_own_first)),
    ("The keys stand in the order [before, own], the values do not. Gather both in the same way.",
     _by_blocks(values=_own_first)),
    ("The values of the block before are not there: the own ones stand in their place. Gather v as you gather k.",
     _by_blocks(values=lambda v, w: torch.cat([_blocks(v, w)] * 2, -2))),
    ("The positions of a block are not neighbours. Cut the axis into (n / window, window), in this order: "
     "unflatten(-2, (-1, window)).", _interleaved),
    ("The blocks are not joined again: out.flatten(-3, -2) makes (B, n_heads, n, d).",
     _by_blocks(join=lambda out: out)),
    ("The scale is missing: divide the scores by sqrt(d).", _by_blocks(scale=lambda q: 1)),
    ("The scores are divided by d. The scale is its root, sqrt(d).", _by_blocks(scale=lambda q: q.size(-1))),
    (SCALED_LATE, _by_blocks(scale=lambda q: 1, join=lambda out: out.flatten(-3, -2) / _root_of_width(out))),
    (NO_SOFTMAX, _by_blocks(weigh=lambda scores, mask: scores.masked_fill(~mask, 0))),
    *((WRONG_AXIS, _by_blocks(weigh=_softmax_over(dim))) for dim in (-2, -3)),
    (AFTER, _by_blocks(weigh=lambda scores, mask: scores.softmax(-1) * mask)),
    (SET_TO_ZERO, _by_blocks(weigh=lambda scores, mask: (scores * mask).softmax(-1))),
    ("The mask is inverted: the window is hidden. Fill with -inf where it is False.",
     _by_blocks(lambda distance, exists, w: ~_in_window(distance, exists, w))),
    ("The window is not used: every query sees all keys up to its own.",
     _all_at_once(lambda distance, w: distance >= 0)),
    ("The window is open to both sides: a query sees the keys after it. Causal: 0 <= distance <= window.",
     _all_at_once(lambda distance, w: distance.abs() <= w)),
    (SAVES_NOTHING, _all_at_once(lambda distance, w: (distance >= 0) & (distance <= w))),
), promise=_makes_at_most(lambda q, k, v, window: q.size(-2) ** 2), given=_long_inputs, why=SAVES_NOTHING)


# --- slots_to_keys -------------------------------------------------------------------------------------------

def slots_to_keys(scores: Tensor) -> Tensor:
    """scores (T, K), K >= T: of the last T of K positions, by distance: slot p is the key K-1-p positions back
    -> (T, K): by key. The last query's row stays, the row above moves one to the left, and so on; where a key is ahead
    of the query may stand anything (Dai et al. 2019, appendix B)
    """
    T, K = scores.shape
    return _only_seen(F.pad(scores, (1, 0)).view(K + 1, T)[1:].view(T, K))


def _only_seen(by_key):
    """Zeros where a key is ahead of the query."""
    if not isinstance(by_key, Tensor) or by_key.dim() != 2:
        return by_key
    return by_key.tril(by_key.size(1) - by_key.size(0))


class ComparedWhereSeen(Exercise):
    """Keys ahead of the query are not compared."""

    def judge(self, function) -> tuple[bool, str]:
        """As `Exercise.judge`."""
        if not callable(function):
            return super().judge(function)

        @wraps(function)
        def seen(*arguments):
            try:
                return _only_seen(function(*arguments))
            except Exception as error:  # given back, not raised again: its traceback shows the student's lines
                return error
        return super().judge(seen)


def _moved(by, slots=lambda scores: scores):
    """The row t, moved to the left by `by(t, T, K)`; what falls out comes in again on the right."""
    def move(scores):
        T, K = scores.shape
        rows = [row.roll(-by(t, T, K)) for t, row in enumerate(slots(scores))]
        return _only_seen(torch.stack(rows))
    return move


def _viewed(pad=lambda scores: F.pad(scores, (1, 0)), drop=lambda x: x[1:], cut=lambda x, T, K: x.reshape(K + 1, T)):
    """The trick with a view, of which a part may be wrong."""
    def view(scores):
        T, K = scores.shape
        return _only_seen(drop(cut(pad(scores), T, K)).reshape(T, K))
    return view


def _zero_row(scores: Tensor) -> Tensor:
    return F.pad(scores, (0, 0, 1, 0))[1:]


def _slot_inputs(memory=True, T=None):
    """A maker of inputs: scores of T queries against K keys, of which K - T are a memory's."""
    def make(rng):
        t, m = sizes(rng, 2)
        t = T or t + 1
        return (randn(rng, t, t + m * memory),)
    return make


LEFT = "The last row stays. The row above it moves one to the left, the next one two: row t moves by T-1-t."
TRICK = "A column of zeros on the left, view(K + 1, T), without its first row, view(T, K)."

SLOTS_TO_KEYS = ComparedWhereSeen(slots_to_keys, {"by_key": "T, K"}, {
    "on ordinary inputs": _slot_inputs(),
    "without a memory (K = T)": _slot_inputs(memory=False),
    "with one query (T = 1)": _slot_inputs(T=1),
}, (
    (f"The scores come back by slot, as they were. {LEFT}", _moved(lambda t, T, K: 0)),
    (f"The rows move to the right. {LEFT}", _moved(lambda t, T, K: t + 1 - T)),
    (f"The first row stays and the last moves most. {LEFT}", _moved(lambda t, T, K: t)),
    (f"The first row stays and the others move to the right. {LEFT}", _moved(lambda t, T, K: -t)),
    (f"Every row moves one too far, the last one as well. {LEFT}", _moved(lambda t, T, K: T - t)),
    (f"Every row moves one too little. {LEFT}", _moved(lambda t, T, K: T - 2 - t)),
    (f"All rows move by the same. {LEFT}", _moved(lambda t, T, K: T - 1)),
    (f"All rows move by one. {LEFT}", _moved(lambda t, T, K: 1)),
    ("The queries are taken as the first T of the K positions. They are the last: query t stands at K-T+t, behind the "
     f"memory. {LEFT}", _moved(lambda t, T, K: K - 1 - t)),
    ("The slots are read the wrong way round. Slot p holds distance K-1-p: the last slot is the query itself.",
     _moved(lambda t, T, K: T - 1 - t, lambda scores: scores.flip(1))),
    ("The slots are read the wrong way round. Slot p holds distance K-1-p: the last slot is the query itself.",
     _moved(lambda t, T, K: t + 1 - T, lambda scores: scores.flip(1))),
    ("The slots are read the wrong way round. Slot p holds distance K-1-p: the last slot is the query itself.",
     lambda scores: _only_seen(torch.stack([row.flip(0).roll(scores.size(1) - scores.size(0) + t + 1)
                                            for t, row in enumerate(scores)]))),
    (f"The column of zeros stands on the right. {TRICK}", _viewed(pad=lambda scores: F.pad(scores, (0, 1)))),
    (f"The zeros are a row, not a column. {TRICK}",
     lambda scores: _only_seen(F.pad(scores, (0, 0, 1, 0)).view(scores.size(1), -1)[:, 1:].reshape(scores.shape))),
    (f"The last row of the view was dropped. Drop the first one. {TRICK}", _viewed(drop=lambda x: x[:-1])),
    (f"The first row of the view is still there. Drop it. {TRICK}",
     lambda scores: _only_seen(F.pad(scores, (1, 0)).view(scores.size(1) + 1, scores.size(0)))),
    ("Rows and columns are swapped by a transpose. view(K + 1, T) keeps the order in which the numbers lie, and that "
     f"is what moves them. {TRICK}", _viewed(cut=lambda x, T, K: x.T)),
    ("Rows and columns are swapped by a transpose at the end. The second view is view(T, K), and keeps the order in "
     f"which the numbers lie. {TRICK}",
     lambda scores: _only_seen(F.pad(scores, (1, 0)).view(scores.size(1) + 1, -1)[1:].T)),
    (f"The last step is missing: K rows of T numbers are still to be viewed as T rows of K. {TRICK}",
     lambda scores: _only_seen(F.pad(scores, (1, 0)).view(scores.size(1) + 1, -1)[1:])),
    ("view(K, T) does not hold the column of zeros: there are T * (K + 1) numbers, K + 1 rows of T.",
     lambda scores: F.pad(scores, (1, 0)).view(scores.size(1), scores.size(0))),
))


# --- remember ------------------------------------------------------------------------------------------------

def remember(memory: Tensor, segment: Tensor, mem_len: int) -> Tensor:
    """memory (B, M, d): states of positions before; segment (B, T, d): states of this segment
    -> (B, min(mem_len, M + T), d): the last mem_len positions of both together, through which no gradient flows
    (Dai et al. 2019, section 3.2)
    """
    return _last(torch.cat([memory, segment], 1), mem_len).detach()


def _last(x: Tensor, n: int) -> Tensor:
    return x[:, max(x.size(1) - n, 0):]


def _grows(memory: Tensor, segment: Tensor) -> Tensor:
    return torch.cat([memory, segment], 1)


def _kept(which, of=_grows):
    """A new memory, of which a part may be wrong: `which(both, mem_len)`."""
    return lambda memory, segment, mem_len: which(of(memory, segment), mem_len).detach()


def _filled(x: Tensor, n: int) -> Tensor:
    """With zeros in front, so that there are always `n`."""
    return F.pad(_last(x, n), (0, 0, max(n - x.size(1), 0), 0))


def _memory_inputs(lengths):
    """A maker of inputs; `lengths(M, T)` are values of mem_len, of which one is drawn."""
    def make(rng):
        B, M, T, d = sizes(rng, 4)
        M, T = M + 12, T + 6                                          # M > T: which of the two is cut can be seen
        choice = lengths(M, T)
        mem_len = choice[int(torch.randint(len(choice), (), generator=rng))]
        return randn(rng, B, M, d), randn(rng, B, T, d), mem_len
    return make


def _no_memory_yet(rng):
    B, T, d = sizes(rng, 3)
    return randn(rng, B, 0, d), randn(rng, B, T, d), T + 1


def _learning(rng):
    memory, segment, mem_len = _memory_inputs(lambda M, T: [T + 3])(rng)
    return memory, segment.requires_grad_(), mem_len


def _no_gradient(function, memory, segment, mem_len):
    new, _ = attempt(function, (memory, segment, mem_len))
    if isinstance(new, Exception):
        return f"it raised {type(new).__name__} when the segment carries a gradient: {new}"
    return "the new memory still carries a gradient (requires_grad is True)." if new.requires_grad else ""


LAST_OF_BOTH = "The last mem_len positions of both together: torch.cat([memory, segment], dim=1)."
MINUS_ZERO = ("With mem_len = 0 everything is kept: -0 is 0, so x[:, -0:] is x[:, 0:]. Count from the front: "
              "x[:, max(x.size(1) - mem_len, 0):].")
NOT_DETACHED = ("The memory is not detached. The next segment's gradient would flow back into this one, and through it "
                "into all before: the graph grows with every segment. End with .detach().")

REMEMBER = Promising(remember, {"new_memory": "B, M_new, d"}, {
    "on ordinary inputs": _memory_inputs(lambda M, T: [T + 3, 1, M + 2]),
    "with mem_len = 0": _memory_inputs(lambda M, T: [0]),
    "when there is less to remember than mem_len": _memory_inputs(lambda M, T: [M + T + 4]),
    "when the memory is still empty (M = 0)": _no_memory_yet,
}, (
    (f"The old memory is forgotten: only the segment is kept. {LAST_OF_BOTH}",
     _kept(_last, lambda memory, segment: segment)),
    (f"Only the old memory is kept. {LAST_OF_BOTH}", _kept(_last, lambda memory, segment: memory)),
    (f"The whole segment is kept, whatever mem_len says. {LAST_OF_BOTH}",
     _kept(lambda x, n: x, lambda memory, segment: segment)),
    ("Nothing is forgotten: mem_len is not used, so the memory grows with every segment. Keep the last mem_len "
     "positions.", _kept(lambda x, n: x)),
    ("The *first* mem_len positions are kept, the oldest. Keep the last.", _kept(lambda x, n: x[:, :n])),
    ("The segment stands before the memory. Time goes on: torch.cat([memory, segment], dim=1).",
     _kept(_last, lambda memory, segment: _grows(segment, memory))),
    ("The last mem_len of the memory and the last mem_len of the segment are kept. Cut once, after joining: "
     f"{LAST_OF_BOTH}",
     lambda memory, segment, n: _grows(_last(memory, n), _last(segment, n)).detach()),
    ("mem_len positions of the memory are kept *and* the whole segment. Cut after joining.",
     lambda memory, segment, n: _grows(_last(memory, n), segment).detach()),
    ("The new memory is as long as the old one, not mem_len.",
     lambda memory, segment, n: _last(_grows(memory, segment), memory.size(1)).detach()),
    ("Off by one: a position too few.", _kept(lambda x, n: _last(x, n - 1))),
    ("Off by one: a position too many.", _kept(lambda x, n: _last(x, n + 1))),
    ("Off by one: the last position is not remembered. x[:, -mem_len:] ends at the end.",
     _kept(lambda x, n: x[:, -n - 1:-1])),
    ("The last texts of the batch are kept. Time is axis 1: x[:, …].", _kept(lambda x, n: x[max(len(x) - n, 0):])),
    ("The last numbers of each vector are kept. Time is axis 1, not the last.",
     _kept(lambda x, n: x[..., max(x.size(-1) - n, 0):])),
    ("The two are joined along the batch. Time is axis 1: dim=1.", lambda memory, segment, n:
     torch.cat([memory, segment])),
    ("The two are joined along the width. Time is axis 1: dim=1.", lambda memory, segment, n:
     torch.cat([memory, segment], -1)),
    (MINUS_ZERO, _kept(lambda x, n: x[:, -n:])),
    ("When there is less than mem_len, M + T - mem_len is negative and counts from the end. At least 0: max(…, 0).",
     _kept(lambda x, n: x[:, x.size(1) - n:])),
    ("Zeros fill the memory up to mem_len. They would be attended to; keep what there is, and no more.",
     _kept(_filled)),
    (NOT_DETACHED, lambda memory, segment, n: _last(_grows(memory, segment), n)),
    (NOT_DETACHED, lambda memory, segment, n: _last(_grows(memory.detach(), segment), n)),
), promise=_no_gradient, given=_learning, why=NOT_DETACHED)


# --- online_update -------------------------------------------------------------------------------------------

def online_update(m: Tensor, s: Tensor, o: Tensor, scores: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """m (T, 1): the largest score of each query so far; s (T, 1): the sum of exp(score - m); o (T, d): the sum of
    exp(score - m) times the value; at first m is -inf, s and o are 0. scores (T, tile), v (tile, d): the next keys;
    the score of a masked key is -inf
    -> m, s, o after this tile: o / s is the attention to all keys so far (Dao et al. 2022, algorithm 1; Milakov and
    Gimelshein 2018, algorithm 3)
    """
    return _updated()(m, s, o, scores, v)


def _largest(m: Tensor, scores: Tensor) -> Tensor:
    return torch.maximum(m, scores.amax(-1, keepdim=True))


def _finite(m: Tensor) -> Tensor:
    """-inf is what a query has that has seen nothing; minus -inf is NaN, minus 0 is not."""
    return m.masked_fill(m == -math.inf, 0.0)


def _updated(largest=_largest, shrink=lambda old, new: (old - new).exp(), finite=_finite,
             p=lambda scores, old, new: (scores - new).exp(), add_s=lambda s, a, p: s * a + p.sum(-1, keepdim=True),
             add_o=lambda o, a, p, v: o * a + p @ v, result=lambda m, s, o: (m, s, o)):
    """The update for one tile, of which a part may be wrong; a is what the old sums are multiplied by."""
    def update(m, s, o, scores, v):
        new = largest(m, scores)
        a, weights = shrink(m, finite(new)), p(scores, finite(m), finite(new))
        return result(new, add_s(s, a, weights), add_o(o, a, weights, v))
    return update


def _as_it_is(m: Tensor) -> Tensor:
    return m


def _not_shrunk(old: Tensor, new: Tensor) -> Tensor:
    return torch.ones_like(new)


def _tile_max(m: Tensor, scores: Tensor) -> Tensor:
    return scores.amax(-1, keepdim=True)


def _mean_output(o, a, p, v):
    return (o * a + p @ v) / p.sum(-1, keepdim=True)


def _tile_inputs(hidden="none", begun=True, size=1.0):
    """A maker of inputs: queries that have seen some keys, or none; double, since only what goes forward is judged.

    The rows' own level makes that in some the largest score is an old one and in others a new one.
    """
    def make(rng):
        T, tile, d, before = sizes(rng, 4)
        T, tile = T + 6, tile + 1 if tile + 1 != d else tile + 7
        m, s, o = torch.full((T, 1), -math.inf), torch.zeros(T, 1), torch.zeros(T, d)
        level = torch.linspace(-2, 2, T).unsqueeze(1)
        if begun:
            seen = size * (randn(rng, T, before) - level)
            m = seen.amax(-1, keepdim=True)
            p = (seen - m).exp()
            s, o = p.sum(-1, keepdim=True), p @ randn(rng, before, d)
        scores = size * (randn(rng, T, tile) + level)
        if hidden == "some":                                          # at least one key is seen
            scores[:, 1:] = scores[:, 1:].masked_fill(randn(rng, T, tile - 1) > 0, -math.inf)
        if hidden == "rows":
            scores[::2] = -math.inf
        return tuple(x.double() for x in (m, s, o, scores, randn(rng, tile, d)))
    return make


SHRINK = ("The old sums are of exp(score - *old* maximum). Bring them to the new one before adding: times "
          "exp(m - m_new).")
NO_DIVISION = "o stays a sum until the last tile; then, once, o / s."
INF_MINUS_INF = ("-inf - (-inf) is NaN. A query that has seen no key has m = -inf, before and after a tile that is "
                 "masked. Subtract 0 there: m_new.masked_fill(m_new == -math.inf, 0).")
NEW_MAX = "The new maximum is torch.maximum(m, scores.amax(-1, keepdim=True))."

ONLINE_UPDATE = Exercise(online_update, {"m": "T, 1", "s": "T, 1", "o": "T, d"}, {
    "on ordinary inputs": _tile_inputs(),
    "when some keys are masked (-inf)": _tile_inputs("some"),
    "when the scores are large (around 1,000)": _tile_inputs(size=500.0),
    "with the first tile of all (m is -inf, s and o are 0)": _tile_inputs(begun=False),
    "when a query sees no key of the tile (a row of -inf)": _tile_inputs("rows"),
    "when a query has seen nothing yet, and sees no key of this tile": _tile_inputs("rows", begun=False),
}, (
    ("The old sums are added as they are: s and o are not rescaled. (Or m was overwritten before exp(m - m_new), which "
     f"is then exp(0) = 1.) {SHRINK}", _updated(shrink=_not_shrunk)),
    (f"o is not rescaled, s is. {SHRINK}", _updated(add_o=lambda o, a, p, v: o + p @ v)),
    (f"s is not rescaled, o is. {SHRINK}", _updated(add_s=lambda s, a, p: s + p.sum(-1, keepdim=True))),
    (f"The rescaling is turned round: exp(m_new - m) makes the old sums larger. {SHRINK}",
     _updated(shrink=lambda old, new: (new - old).exp())),
    (f"The new sums are rescaled as well. p is made with the new maximum already; only the old ones are rescaled. "
     f"{SHRINK}", _updated(add_s=lambda s, a, p: (s + p.sum(-1, keepdim=True)) * a,
                           add_o=lambda o, a, p, v: (o + p @ v) * a)),
    (f"The old maximum is forgotten: m is the tile's. If the old one is larger, exp(m - m_new) may overflow. {NEW_MAX}",
     _updated(_tile_max)),
    ("p is made with the tile's own maximum, m is the larger of both. All sums need the same: exp(scores - m_new).",
     _updated(p=lambda scores, old, new: (scores - scores.amax(-1, keepdim=True)).exp())),
    ("p is made with the old maximum. Take the new one, or exp grows beyond all bounds: exp(scores - m_new).",
     _updated(p=lambda scores, old, new: (scores - old).exp())),
    ("exp(scores) without a maximum overflows when scores are large, and does not fit the old sums: "
     "exp(scores - m_new).", _updated(p=lambda scores, old, new: scores.exp())),
    ("The maximum stays the old one. " + NEW_MAX, _updated(lambda m, scores: m)),
    ("The smaller of the two maxima was taken. " + NEW_MAX,
     _updated(lambda m, scores: torch.minimum(m, scores.amax(-1, keepdim=True)))),
    ("One maximum for all queries. Each has its own: amax(-1, keepdim=True).",
     _updated(lambda m, scores: torch.maximum(m, scores.max()))),
    (f"o is divided by s already. Then the next tile would rescale a mean, not a sum. {NO_DIVISION}",
     lambda *given: (lambda m, s, o: (m, s, o / s))(*online_update(*given))),
    (f"p is divided by its sum: that is a softmax over this tile alone. {NO_DIVISION}",
     _updated(add_o=lambda o, a, p, v: o * a + p / p.sum(-1, keepdim=True) @ v)),
    (f"p is divided by its sum: that is a softmax over this tile alone. {NO_DIVISION}",
     _updated(p=lambda scores, old, new: (scores - new).softmax(-1))),
    (f"o is divided by the sum of this tile. {NO_DIVISION}", _updated(add_o=_mean_output)),
    ("The old sum is forgotten: s is the sum of this tile only.",
     _updated(add_s=lambda s, a, p: p.sum(-1, keepdim=True))),
    ("The old output is forgotten: o is that of this tile only.", _updated(add_o=lambda o, a, p, v: p @ v)),
    ("The old sums are forgotten: s and o are those of this tile only. Rescale what was there, and add.",
     _updated(add_s=lambda s, a, p: p.sum(-1, keepdim=True), add_o=lambda o, a, p, v: p @ v)),
    ("p is averaged over the tile. s is a sum.", _updated(add_s=lambda s, a, p: s * a + p.mean(-1, keepdim=True))),
    ("All queries share one sum. Each has its own: p.sum(-1, keepdim=True).", _updated(add_s=lambda s, a, p:
                                                                                         s * a + p.sum())),
    ("The sum lost an axis, so that (T,) meets (T, 1) and becomes (T, T). Keep it: keepdim=True.",
     _updated(add_s=lambda s, a, p: s * a + p.sum(-1))),
    ("The order of the results is (m, s, o).", _updated(result=lambda m, s, o: (o, m, s))),
    ("The order of the results is (m, s, o).", _updated(result=lambda m, s, o: (m, o, s))),
    ("The order of the results is (m, s, o).", _updated(result=lambda m, s, o: (s, m, o))),
    ("A large negative number stands in for -inf, and now a query that has seen nothing believes that it is a score. "
     "m stays -inf there.", _updated(lambda m, scores: _largest(m, scores).clamp(min=-1e9))),
    ("A large negative number stands in for -inf, and now a query that has seen nothing believes that it is a score. "
     "m stays -inf there.",
     _updated(lambda m, scores: _largest(m, scores).clamp(min=torch.finfo(torch.float32).min))),
    ("m becomes 0 where a query has seen nothing. Only what is subtracted may be 0; m stays -inf, or a later negative "
     "score would not be the largest.", _updated(lambda m, scores: _finite(_largest(m, scores)))),
    ("exp(NaN) was mended to 1: a masked key gets the weight exp(0). Its weight is 0: subtract a finite number, and "
     "exp(-inf) is 0 by itself.",
     _updated(finite=_as_it_is, shrink=lambda old, new: (old - new).nan_to_num(0.0, neginf=-math.inf).exp(),
              p=lambda scores, old, new: (scores - new).nan_to_num(0.0, neginf=-math.inf).exp())),
    (INF_MINUS_INF, _updated(finite=_as_it_is)),
    (INF_MINUS_INF, _updated(shrink=lambda old, new: (old - new.where(old > -math.inf, old)).exp())),
    (INF_MINUS_INF, lambda m, s, o, scores, v: _updated(finite=_as_it_is, shrink=lambda old, new: torch.where(
        old == -math.inf, 0.0, (old - new).exp()))(m, s, o, scores, v)),
))


# --- choose --------------------------------------------------------------------------------------------------

def choose(masks: dict[str, Tensor], layers: int) -> str:
    """masks: name -> bool (n, n), True = the query (row) sees the key (column); at least one of them will do
    -> the name of the pattern with the fewest pairs with which, after so many layers, the last position depends on
    every position
    """
    return _chosen()(masks, layers)


def _after(mask: Tensor, layers: int) -> Tensor:
    """``(n, n)``: whether, after so many layers, the row depends on the column."""
    return torch.linalg.matrix_power(mask.double(), layers) > 0


def _chosen(reaches=lambda mask, layers: _after(mask, layers)[-1].all(), cost=lambda mask: mask.sum(), best=min,
            result=lambda name, masks: name):
    """A choice, of which a part may be wrong; if nothing reaches, it is the first one."""
    def chosen(masks, layers):
        names = [name for name, mask in masks.items() if reaches(mask, layers)] or list(masks)[:1]
        return result(best(names, key=lambda name: int(cost(masks[name]))), masks)
    return chosen


def _layers_needed(mask: Tensor) -> int:
    return next((n for n in range(1, len(mask)) if _after(mask, n)[-1].all()), len(mask))


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


def _choice(*layers):
    """A maker of inputs: patterns in random order, and a number of layers; the first key is whole strides away."""
    def make(rng):
        blocks, window, stride = sizes(rng, 3)
        window, stride = 2 + window % 3, 4 + stride % 3
        made = _patterns((blocks + 3) * stride + 1, window, stride)
        names = [list(made)[i] for i in torch.randperm(len(made), generator=rng).tolist()]
        return _Masks({name: made[name] for name in names}), layers[int(torch.randint(len(layers), (), generator=rng))]
    return make


EVERY_POSITION = ("Look at the whole last row after all layers: "
                  "torch.linalg.matrix_power(mask.double(), layers)[-1], and all of it must be positive.")
CHEAPEST = "Of those that reach, take the one with the fewest pairs: mask.sum()."
NONE_REACHES = ("No pattern passes your test. Is it the last *row* that is looked at, [-1], and that one alone? In a "
                "causal mask nothing reaches an earlier position, and the last column is empty but for its end.")

CHOOSE = Exercise(choose, {"name": ""}, {
    "on ordinary inputs": _choice(12, 3, 2),
    "with one layer": _choice(1),
    "with many layers": _choice(20),
}, (
    ("This is the pattern with the fewest pairs of all, but it does not carry everything to the last position. First "
     "ask which ones do. (One position that reaches, any(), is not enough: all() must.)",
     _chosen(reaches=lambda mask, layers: True)),
    ("This one has the most pairs. The fewest are wanted: min.", _chosen(best=max)),
    (f"Only the first position is looked at: it reaches the last one, but others do not. {EVERY_POSITION}",
     _chosen(reaches=lambda mask, layers: _after(mask, layers)[-1, 0])),
    ("The layers are not used: this one sees everything in a single layer. With more layers information goes in "
     "steps, and a step is a matrix product: @ or torch.linalg.matrix_power (mask ** layers changes nothing).",
     _chosen(reaches=lambda mask, layers: mask[-1].all())),
    ("One layer too few was counted. matrix_power(mask, layers) is already layers steps; a loop that begins with the "
     "mask has made one.", _chosen(reaches=lambda mask, layers: _after(mask, layers - 1)[-1].all())),
    ("One layer too many was counted. matrix_power(mask, layers) is layers steps; a loop that begins with the mask "
     "needs layers - 1 more.", _chosen(reaches=lambda mask, layers: _after(mask, layers + 1)[-1].all())),
    ("The first column was looked at: which positions depend on the first one. Ask on which ones the last one depends; "
     "rows are queries: [-1].", _chosen(reaches=lambda mask, layers: _after(mask, layers)[:, 0].all())),
    (NONE_REACHES, _chosen(reaches=lambda mask, layers: _after(mask, layers).all())),
    (NONE_REACHES, lambda masks, layers: min([], key=len)),
    (NONE_REACHES, lambda masks, layers: [][0]),
    (f"This is the first one that reaches. {CHEAPEST}", _chosen(cost=lambda mask: 0)),
    (f"This is the one that needs the fewest layers. It only has to manage with the layers there are. {CHEAPEST}",
     _chosen(cost=_layers_needed)),
    (f"The keys of the last query are counted, not the pairs of all. {CHEAPEST}",
     _chosen(cost=lambda mask: mask[-1].sum())),
    ("The mask itself comes back. Return its name.", _chosen(result=lambda name, masks: masks[name])),
    ("The number of pairs comes back. Return the name.",
     _chosen(result=lambda name, masks: int(masks[name].sum()))),
    ("Booleans cannot be multiplied as matrices. Make numbers of them first: mask.double().",
     lambda masks, layers: [mask @ mask for mask in masks.values()]),
    ("Booleans cannot be multiplied as matrices. Make numbers of them first: mask.double().",
     lambda masks, layers: [torch.linalg.matrix_power(mask, layers) for mask in masks.values()]),
))


# --- grouped_query -------------------------------------------------------------------------------------------

def grouped_query(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """q (B, n_heads, T, d), k and v (B, n_kv_heads, T_k, d); head h reads kv head h // (n_heads / n_kv_heads); causal;
    the queries are the last T of T_k positions
    -> (B, n_heads, T, d). k and v are not copied (Ainslie et al. 2023, section 2.2)
    """
    return _grouped()(q, k, v)


def _together(q: Tensor, n_kv: int) -> Tensor:
    """The queries of a group one after the other: ``(B, n_kv_heads, group * T, d)``."""
    return q.reshape(len(q), n_kv, -1, q.size(-1))


def _causal(T: int, T_k: int) -> Tensor:
    return ours.causal_mask(T, T_k)


def _grouped(mask=_causal, scale=_root_of_width, weigh=ours.masked_softmax, result=lambda out, q: out.view(q.shape)):
    """Grouped-query attention, of which a part may be wrong."""
    def attend(q, k, v):
        n_kv, T_k = k.shape[1:3]
        scores = (_together(q, n_kv) @ k.mT / scale(q)).view(*q.shape[:3], T_k)
        weights = weigh(scores, mask(q.size(2), T_k))
        return result(_together(weights, n_kv) @ v, q)
    return attend


def _with_heads(of_k, of_v=None):
    """Every head gets a key and value head of its own; `of_k(k, n_heads)` are those of the keys."""
    def attend(q, k, v):
        k, v = of_k(k, q.size(1)), (of_v or of_k)(v, q.size(1))
        weights = ours.masked_softmax(q @ k.mT / _root_of_width(q), _causal(q.size(2), k.size(2)))
        return weights @ v
    return attend


def _repeated(k: Tensor, n_heads: int) -> Tensor:
    return k.repeat_interleave(n_heads // k.size(1), 1)


def _in_turn(k: Tensor, n_heads: int) -> Tensor:
    return k.repeat(1, n_heads // k.size(1), 1, 1)


def _broadcast(q, k, v):
    """An axis for the group in k and v: matmul copies them, unseen."""
    scores = q.unflatten(1, (k.size(1), -1)) @ k.unsqueeze(2).mT / _root_of_width(q)
    return (ours.masked_softmax(scores, _causal(q.size(2), k.size(2))) @ v.unsqueeze(2)).flatten(1, 2)


def _one_for_all(head):
    return lambda k, n_heads: head(k).expand(-1, n_heads, -1, -1)


def _head_inputs(n_kv=None, T=None, before=0):
    """A maker of inputs; the number of positions is none of the other sizes."""
    def make(rng):
        kv, groups = (torch.randperm(2, generator=rng) + 2).tolist()
        B, t, d = (torch.tensor([4, 5, 7])[torch.randperm(3, generator=rng)]).tolist()
        kv, t = n_kv or kv, T or t
        return (randn(rng, B, kv * groups, t, d), *(randn(rng, B, kv, t + before, d) for _ in range(2)))
    return make


def _cached(rng):
    return randn(rng, 1, 8, 1, 64), *(randn(rng, 1, 2, 512, 64) for _ in range(2))


GROUPS = "Neighbours share: with 6 heads and 2 kv heads, heads 0, 1, 2 read kv head 0, and 3, 4, 5 read kv head 1."
COPIED = ("k and v are copied for every head of a group, and the memory traffic that grouping saves is back. "
          "repeat_interleave copies, and so does @ when k has an axis of 1 for the group. Put the queries of a group "
          "side by side instead: q.reshape(B, n_kv_heads, -1, d) @ k.mT.")
LAST_POSITIONS = ("The queries are the *last* T of T_k positions: query t sees the keys up to T_k - T + t. "
                  "triu(T_k - T + 1) is what is ahead.")

GROUPED_QUERY = Promising(grouped_query, {"output": "B, n_heads, T, d"}, {
    "on ordinary inputs": _head_inputs(),
    "with one kv head for all (n_kv_heads = 1)": _head_inputs(n_kv=1),
    "with a cache (T_k = T + 6)": _head_inputs(before=6),
    "with one new query and a cache (T = 1)": _head_inputs(T=1, before=6),
}, (
    (f"The kv heads are dealt out in turn: head h reads kv head h % n_kv_heads. {GROUPS}", _with_heads(_in_turn)),
    (f"The keys are shared by neighbours, the values in turn. The same for both. {GROUPS}",
     _with_heads(_repeated, _in_turn)),
    (f"The values are shared by neighbours, the keys in turn. The same for both. {GROUPS}",
     _with_heads(_in_turn, _repeated)),
    (f"All heads read the first kv head. {GROUPS}", _with_heads(_one_for_all(lambda k: k[:, :1]))),
    (f"All heads read the last kv head. {GROUPS}", _with_heads(_one_for_all(lambda k: k[:, -1:]))),
    (f"All heads read the mean of the kv heads. {GROUPS}", _with_heads(_one_for_all(lambda k: k.mean(1, True)))),
    ("The mask is missing: a query sees the keys after it. Causal: fill what is ahead with -inf.",
     _grouped(mask=lambda T, T_k: torch.ones(T, T_k, dtype=torch.bool))),
    ("The mask is made for the queries of a group one after the other, as if the second head's came after the first "
     "one's. View the scores as (B, n_heads, T, T_k) before you mask.",
     lambda q, k, v: _grouped_and_masked(q, k, v)),
    ("Past and future are swapped: a query sees its own key and those after it.",
     _grouped(mask=lambda T, T_k: torch.ones(T, T_k, dtype=torch.bool).triu(T_k - T))),
    *(("Off by one: a query does not see its own key. It may: hide what is *ahead*, triu(T_k - T + 1).",
       _grouped(mask=lambda T, T_k: _causal(T, T_k).tril(T_k - T - 1), weigh=weigh))
      for weigh in (ours.masked_softmax, _not_a_number)),
    ("Off by one: a query sees the key after its own. Hide triu(T_k - T + 1).",
     _grouped(mask=lambda T, T_k: torch.ones(T, T_k, dtype=torch.bool).tril(T_k - T + 1))),
    ("The scale is missing: divide the scores by sqrt(d).", _grouped(scale=lambda q: 1)),
    ("The scores are divided by d. The scale is its root, sqrt(d).", _grouped(scale=lambda q: q.size(-1))),
    (NO_SOFTMAX, _grouped(weigh=lambda scores, mask: scores.masked_fill(~mask, 0))),
    *((WRONG_AXIS, _grouped(weigh=_softmax_over(dim))) for dim in (-2, 1, 0)),
    (AFTER, _grouped(weigh=lambda scores, mask: scores.softmax(-1) * mask)),
    (SET_TO_ZERO, _grouped(weigh=lambda scores, mask: (scores * mask).softmax(-1))),
    ("The groups are still apart. Put the heads back side by side: .view(B, n_heads, T, d).",
     _grouped(result=lambda out, q: out)),
    ("The groups are still apart. Put the heads back side by side: .view(B, n_heads, T, d).",
     _grouped(result=lambda out, q: out.view(len(q), out.size(1), -1, *q.shape[2:]))),
    ("Inside a group, heads and positions are mixed up: view(B, n_heads, T, d) keeps the order of the axes, so the "
     "positions must be the axis before the width.",
     _grouped(result=lambda out, q: out.unflatten(2, (q.size(2), -1)).transpose(2, 3).reshape(q.shape))),
    ("The heads do not line up: q has n_heads of them, k has n_kv_heads. View the queries as groups first.",
     lambda q, k, v: q @ k.mT),
    (LAST_POSITIONS, _grouped(mask=lambda T, T_k: torch.ones(T, T_k, dtype=torch.bool).tril())),
    (COPIED, _with_heads(_repeated)),
    (COPIED, _broadcast),
), promise=_makes_at_most(lambda q, k, v: k.numel() * q.size(1) // k.size(1)), given=_cached, why=COPIED)


def _grouped_and_masked(q, k, v):
    n_kv, T_k = k.shape[1:3]
    scores = _together(q, n_kv) @ k.mT / _root_of_width(q)
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(T_k - q.size(2))
    return (ours.masked_softmax(scores, mask) @ v).view(q.shape)


LESSON_06 = (COUNT_PAIRS, REMEMBER, SLOTS_TO_KEYS, WINDOW_BY_BLOCKS, ONLINE_UPDATE, GROUPED_QUERY, CHOOSE)
