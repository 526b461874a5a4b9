"""Efficient attention: patterns that save the work, exact attention in tiles, linear attention, relative positions.

Shapes: ``q, k, v (B, n_heads, n, d)``; the output is shaped like ``v``. A query sees no later key (causal) unless said.
Any length is possible, with as many keys as queries; `dense` also takes more. A *window* of w means the w keys before
the query, and the query's own. A query that may see no key gets zeros. `dense` stores the whole matrix and is what
everything else is checked against.
"""

import math
from collections.abc import Callable, Iterable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .arguments import at_least
from .attention import MultiHeadAttention, at_least_float32, causal_mask, check_mask, masked_softmax, sinusoidal


def _check(q: Tensor, k: Tensor, v: Tensor, as_many_keys: bool = True) -> None:
    shapes = [tuple(x.shape) for x in (q, k, v)]
    if {len(shape) for shape in shapes} != {4} or len({shape[:2] for shape in shapes}) > 1 or q.size(3) != k.size(3):
        raise ValueError("q, k, v are {}, {}, {}; expected (B, n_heads, n, d), the same B and n_heads for all and the "
                         "same d for q and k.".format(*shapes))
    at_least(1, d=q.size(3))
    if len({x.dtype for x in (q, k, v)}) > 1 or not q.is_floating_point():
        raise TypeError(f"q, k, v are {q.dtype}, {k.dtype}, {v.dtype}; expected one floating type.")
    if k.size(2) != v.size(2):
        raise ValueError(f"{k.size(2)} keys and {v.size(2)} values; expected as many.")
    if as_many_keys and q.size(2) != k.size(2):
        raise ValueError(f"{q.size(2)} queries and {k.size(2)} keys; expected as many. `dense` takes more keys.")


def dense(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attention as in the textbook: all ``n * n`` scores are stored (Vaswani et al. 2017, eq. 1).

    Two matrices are alive at the worst moment, the scores and their softmax; the mask is written into the scores.

    ``mask``: boolean, ``True`` = may attend, broadcastable to ``(B, n_heads, n, n)``; by default `causal_mask`.
    """
    _check(q, k, v, as_many_keys=False)
    mask = causal_mask(q.size(2), k.size(2), q.device) if mask is None else mask
    queries, keys = at_least_float32(q, k)
    scores = queries * q.size(-1) ** -0.5 @ keys.transpose(-2, -1)          # (B, n_heads, n, n)
    check_mask(mask, scores.shape)
    empty = ~mask.any(dim=-1, keepdim=True)
    weights = scores.masked_fill_(~(mask | empty), -math.inf).softmax(dim=-1)
    return (weights.to(v.dtype) @ v).masked_fill(empty, 0.0)


def sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same by PyTorch's kernel, which works tile by tile."""
    _check(q, k, v)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


# --- patterns ------------------------------------------------------------------------------------------------

def _blocks(x: Tensor, size: int) -> Tensor:
    """``(B, n_heads, n, d)`` to ``(B, n_heads, n / size, size, d)``; zeros fill the last block."""
    return F.pad(x, (0, 0, 0, -x.size(2) % size)).unflatten(2, (-1, size))


def _stretches(x: Tensor, length: int, step: int) -> Tensor:
    """Overlapping stretches of ``length`` positions, ``step`` apart: ``(B * n_heads, m, length, d)``, a view."""
    return x.flatten(0, 1).unfold(1, length, step).transpose(-2, -1)


def _in_turn(parts: Iterable[Tensor], n: int) -> Tensor:
    """Concatenate parts of the positions, each written into the output before the next is computed.

    If a gradient is needed, the parts are kept and joined instead.
    """
    parts = iter(parts)
    part = next(parts)
    if torch.is_grad_enabled() and part.requires_grad:
        return torch.cat([part, *parts], dim=2)
    output, begin = part.new_empty(*part.shape[:2], n, part.size(-1)), 0
    while part is not None:
        output[:, :, begin:begin + part.size(2)] = part
        begin, part = begin + part.size(2), next(parts, None)
    return output


def sliding_window(q: Tensor, k: Tensor, v: Tensor, window: int) -> Tensor:
    """Each query sees ``window`` keys before it and its own (Beltagy et al. 2020, 3.1); on both sides: `longformer`.

    Queries go by blocks; a block needs its own keys and ``window`` before them. With blocks of ``window / 4``, at least
    16, that is ``1.25 n * window`` scores instead of ``n * n`` for wide windows, one in five of them masked. The first
    ``window`` queries see all that is before them; all later blocks share one mask. No key is copied. Without a
    gradient about 1,024 queries go at a time: beside its output it then needs the same memory for any length.
    """
    at_least(0, window=window)
    _check(q, k, v)
    n, size = q.size(2), max(16, window // 4)
    first = sdpa(*(x[:, :, :window] for x in (q, k, v)))                    # (B, n_heads, window, d)
    if n <= window:
        return first
    distance = window + torch.arange(size, device=q.device)[:, None] - torch.arange(window + size, device=q.device)
    mask = (distance >= 0) & (distance <= window)                           # (size, window + size)

    def blocks(begin: int, end: int, size: int) -> Tensor:
        queries = q[:, :, begin:end].unflatten(2, (-1, size)).flatten(0, 1)             # (B * n_heads, m, size, d)
        keys, values = (_stretches(x[:, :, begin - window:end], window + size, size) for x in (k, v))
        near = F.scaled_dot_product_attention(queries, keys, values, mask[:size, :window + size])
        return near.unflatten(0, q.shape[:2]).flatten(2, 3)

    def parts() -> Iterator[Tensor]:
        yield first
        last = n - (n - window) % size                                      # where whole blocks end
        step = n if torch.is_grad_enabled() and first.requires_grad else max(1, 1024 // size) * size
        for begin in range(window, last, step):
            yield blocks(begin, min(begin + step, last), size)
        if last < n:
            yield blocks(last, n, n - last)

    return _in_turn(parts(), n)


def longformer(q: Tensor, k: Tensor, v: Tensor, window: int, n_global: int) -> Tensor:
    """A window on either side, and ``n_global`` first tokens that see all and are seen by all, in one softmax.

    Not causal (Beltagy et al. 2020, section 3.1, where the global tokens have projections of their own).
    """
    at_least(0, window=window, n_global=n_global)
    _check(q, k, v)
    n = q.size(2)
    window, n_global = min(window, n), min(n_global, n)
    size = max(16, window // 4)
    everywhere = F.scaled_dot_product_attention(q[:, :, :n_global], k, v)   # (B, n_heads, n_global, d)
    if n_global == n:
        return everywhere
    m, length = -(-n // size), size + 2 * window
    keys_values = [_stretches(F.pad(x, (0, 0, window, window + -n % size)), length, size) for x in (k, v)]
    if n_global:                                                            # in front of each block's own: copies
        keys_values = [torch.cat([x[:, :, :n_global].flatten(0, 1).unsqueeze(1).expand(-1, m, -1, -1), own], dim=2)
                       for x, own in zip((k, v), keys_values, strict=True)]
    key = torch.arange(-window, size + window, device=q.device)             # from the block's first query
    distance = torch.arange(size, device=q.device)[:, None] - key           # (size, length)
    place = key + size * torch.arange(m, device=q.device)[:, None, None]    # (m, 1, length)
    mask = (distance.abs() <= window) & (n_global <= place) & (place < n)
    mask = F.pad(mask, (n_global, 0), value=True)                           # (m, size, n_global + length)
    near = F.scaled_dot_product_attention(_blocks(q, size).flatten(0, 1), *keys_values, mask[None])
    return torch.cat([everywhere, near.unflatten(0, q.shape[:2]).flatten(2, 3)[:, :, n_global:n]], dim=2)


def _columns(x: Tensor, stride: int) -> Tensor:
    """Every stride-th position is a short sequence of its own: ``(B, n_heads * stride, n / stride, d)``."""
    return _blocks(x, stride).transpose(2, 3).flatten(1, 2)


def _from_columns(x: Tensor, stride: int, n: int) -> Tensor:
    return x.unflatten(1, (-1, stride)).transpose(2, 3).flatten(2, 3)[:, :, :n]


def columns(q: Tensor, k: Tensor, v: Tensor, stride: int) -> Tensor:
    """Each query sees the keys 0, stride, 2 stride, … before it: the column above it, if a row is ``stride`` long.

    ``n * n / (2 stride)`` scores (Child et al. 2019, section 4.3).
    """
    at_least(1, stride=stride)
    _check(q, k, v)
    return _from_columns(sdpa(*(_columns(x, stride) for x in (q, k, v))), stride, q.size(2))


def dilated(q: Tensor, k: Tensor, v: Tensor, window: int, dilation: int) -> Tensor:
    """A window with gaps: keys 0, dilation, …, window * dilation before the query (Beltagy et al. 2020, 3.1)."""
    at_least(1, dilation=dilation)
    _check(q, k, v)
    split = (_columns(x, dilation) for x in (q, k, v))
    return _from_columns(sliding_window(*split, window), dilation, q.size(2))


def own_block(q: Tensor, k: Tensor, v: Tensor, stride: int) -> Tensor:
    """Each query sees the keys up to it in its block of ``stride``."""
    at_least(1, stride=stride)
    _check(q, k, v)
    parts = (_blocks(x, stride).flatten(1, 2) for x in (q, k, v))           # (B, n_heads * m, stride, d)
    return sdpa(*parts).unflatten(1, (q.size(1), -(-q.size(2) // stride))).flatten(2, 3)[:, :, :q.size(2)]


def summaries(q: Tensor, k: Tensor, v: Tensor, stride: int, c: int) -> Tensor:
    """Each query sees the last ``c`` keys of every block of ``stride``, up to itself: ``n * n * c / stride`` scores.

    The first ``stride - c`` queries see nothing and get zeros (Child et al. 2019, section 4.3, *fixed*).
    """
    at_least(1, stride=stride, c=c)
    _check(q, k, v)
    if c > stride:
        raise ValueError(f"c is {c}, but a block has stride={stride} positions; expected c <= stride.")
    k, v = (_blocks(x, stride)[:, :, :, -c:].flatten(2, 3) for x in (k, v))             # (B, n_heads, m * c, d)
    position = torch.arange(k.size(2) // c * stride, device=q.device).view(-1, stride)[:, -c:].flatten()
    mask = position <= torch.arange(q.size(2), device=q.device)[:, None]    # (n, m * c)
    return F.scaled_dot_product_attention(q, k, v, mask)


def _by_halves(q: Tensor, k: Tensor, v: Tensor, first: Callable, second: Callable) -> Tensor:
    _check(q, k, v)
    if q.size(1) % 2:
        raise ValueError(f"two patterns share the heads, but there are {q.size(1)}; expected an even number.")
    left, right = zip(*(x.tensor_split(2, dim=1) for x in (q, k, v)), strict=True)
    return torch.cat([first(*left), second(*right)], dim=1)


def strided(q: Tensor, k: Tensor, v: Tensor, stride: int) -> Tensor:
    """Half of the heads look along the row, half up the column (Child et al. 2019, section 4.3, by heads as in 5.2)."""
    return _by_halves(q, k, v, lambda *x: sliding_window(*x, stride), lambda *x: columns(*x, stride))


def fixed(q: Tensor, k: Tensor, v: Tensor, stride: int, c: int) -> Tensor:
    """Half of the heads look at their own block, half at the summaries of all (Child et al. 2019, section 4.3)."""
    return _by_halves(q, k, v, lambda *x: own_block(*x, stride), lambda *x: summaries(*x, stride, c))


# --- exact, in tiles -----------------------------------------------------------------------------------------

def tiled(q: Tensor, k: Tensor, v: Tensor, tile: int = 128) -> Tensor:
    """Exact attention that never holds more than ``tile * tile`` scores (Dao et al. 2022, algorithm 1, forward).

    Largest score, sum and weighted sum so far; if a tile of keys brings a larger score, both sums shrink to fit it.
    Summed in float32 at least.
    """
    at_least(1, tile=tile)
    _check(q, k, v)
    output = v.new_empty(*q.shape[:3], v.size(-1))
    for begin in range(0, q.size(2), tile):
        rows = at_least_float32(q[:, :, begin:begin + tile])[0] * q.size(-1) ** -0.5
        n_queries = rows.size(2)
        largest = rows.new_full((*rows.shape[:3], 1), -math.inf)
        total, weighted = torch.zeros_like(largest), torch.zeros_like(largest * v[:, :, :1])
        for start in range(0, begin + n_queries, tile):
            keys, values = at_least_float32(*(x[:, :, start:start + tile] for x in (k, v)))
            scores = rows @ keys.transpose(-2, -1)                          # (B, n_heads, tile, tile)
            if start == begin:                                              # the only tile that holds later keys
                scores = scores.masked_fill(~causal_mask(n_queries, device=q.device), -math.inf)
            new = torch.maximum(largest, scores.amax(-1, keepdim=True))
            weights, shrink = (scores - new).exp(), (largest - new).exp()
            total = total * shrink + weights.sum(-1, keepdim=True)
            weighted, largest = weighted * shrink + weights @ values, new
        output[:, :, begin:begin + n_queries] = weighted / total
    return output


# --- linear --------------------------------------------------------------------------------------------------

def log_phi(x: Tensor) -> Tensor:
    """The logarithm of ``elu(x) + 1`` (Katharopoulos et al. 2020, eq. 7), which itself is 0 in float32 from -104 on."""
    return torch.where(x > 0, x.clamp(min=0).log1p(), x)


def linear(q: Tensor, k: Tensor, v: Tensor, chunk: int = 64) -> Tensor:
    """Weights ``phi(q) . phi(k)`` for ``exp(q . k)``: the work grows with n (Katharopoulos et al. 2020, eq. 9-12).

    A small matrix within a chunk; one ``(d, d)`` sum for all chunks before it. Summed in float32 at least. Keys further
    than a factor ``e^60`` apart in a feature have no common scale; then a chunk is one position.
    """
    at_least(1, chunk=chunk)
    _check(q, k, v)
    if q.size(2) == 0:
        return torch.zeros_like(v)
    if (log_phi(k.amax(2)) - log_phi(k.amin(2)) > 60).any():
        chunk = 1

    def parts() -> Iterator[Tensor]:
        state = None
        for part in zip(*(x.split(chunk, dim=2) for x in (q, k, v)), strict=True):
            new, state = _linear_chunk(state, *part)
            yield new

    return _in_turn(parts(), q.size(2))


def _linear_chunk(state: tuple[Tensor, Tensor] | None, q: Tensor, k: Tensor, v: Tensor):
    """A part's output; as state the sums of ``phi(k) v^T`` and ``phi(k)``, and the largest's logarithm (eq. 16-20)."""
    dtype, (q, k, v) = v.dtype, at_least_float32(q, k, v)
    q, k, v = log_phi(q), log_phi(k), F.pad(v, (0, 1), value=1.0)           # a column of ones: the denominator
    largest = k.detach().amax(2, keepdim=True)                              # (B, n_heads, 1, d)
    if state is None:
        total = q.new_zeros(*q.shape[:2], q.size(-1), v.size(-1))           # (B, n_heads, d, d_v + 1)
    else:
        largest = torch.maximum(state[1], largest)
        total = state[0] * (state[1] - largest).exp().transpose(-2, -1)
    rows = (q - q.detach().amax(-1, keepdim=True)) + (largest - largest.amax(-1, keepdim=True))
    rows, keys = (rows - rows.detach().amax(-1, keepdim=True)).exp(), (k - largest).exp()  # keys lose what queries gain
    sums = rows @ total + (rows @ keys.transpose(-2, -1)).tril() @ v
    return (sums[..., :-1] / sums[..., -1:]).to(dtype), (total + keys.transpose(-2, -1) @ v, largest)


# --- relative positions --------------------------------------------------------------------------------------

def relative_shift(x: Tensor) -> Tensor:
    """From scores by distance to scores by key, without a loop (Dai et al. 2019, appendix B).

    Args:
        x: ``(..., T, K)``; slot p of a query holds the score of distance ``K - 1 - p``. The queries are the last T of
            K positions.

    Returns:
        ``(..., T, K)`` with that score under its key. Later keys hold leftovers, which the causal mask must hide.
    """
    *rest, T, K = x.shape
    return F.pad(x, (1, 0)).reshape(*rest, K + 1, T)[..., 1:, :].reshape(x.shape)


class RelativeAttention(nn.Module):
    """Causal attention that knows distances, not places (Dai et al. 2019, section 3.3).

    ``heads`` are a `MultiHeadAttention`, of which the projections are used.
    """

    def __init__(self, d_model: int, n_heads: int, bias: bool = True, dropout: float = 0.0):
        super().__init__()
        self.heads = MultiHeadAttention(d_model, n_heads, dropout, bias=bias)
        self.W_r = nn.Linear(d_model, d_model, bias=False)
        self.u, self.v = (nn.Parameter(torch.zeros(n_heads, 1, d_model // n_heads)) for _ in range(2))

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        """Queries from ``x (B, T, d_model)``, keys and values from ``memory (B, M, d_model)`` and ``x``."""
        heads = self.heads
        k, v = heads.project_keys(torch.cat([memory, x], dim=1))            # (B, n_heads, K, d_k), K = M + T
        K = k.size(2)
        r = heads.split(self.W_r(sinusoidal(K, x.size(-1)).flip(0).to(x)[None]))       # distances K - 1, …, 0
        q, k, r = at_least_float32(heads.project_query(x), k, r)                     # q (B, n_heads, T, d_k)
        scores = (q + self.u) @ k.transpose(-2, -1) + relative_shift((q + self.v) @ r.transpose(-2, -1))
        weights = masked_softmax(scores * q.size(-1) ** -0.5, causal_mask(x.size(1), K, x.device))
        return heads.output(heads.dropout(weights.to(v.dtype)) @ v)
