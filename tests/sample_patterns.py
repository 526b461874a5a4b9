"""Patterns of efficient attention, each with the mask that it stands for."""

from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.efficient import (
    columns,
    dense,
    dilated,
    fixed,
    linear,
    log_phi,
    longformer,
    own_block,
    sdpa,
    sliding_window,
    strided,
    summaries,
    tiled,
)


def heads(first: Tensor, second: Tensor, n_heads: int = 4) -> Tensor:
    """One mask for the first half of the heads, one for the second: ``(n_heads, n, n)``."""
    return torch.stack([first] * (n_heads // 2) + [second] * (n_heads // 2))


def full_matrix(q, k, v, mask):
    """PyTorch's; a query that may see nothing gets zeros there, too."""
    return F.scaled_dot_product_attention(q, k, v, mask)


def linear_reference(q, k, v, mask):
    weights = (log_phi(q).exp() @ log_phi(k).exp().transpose(-1, -2)) * mask
    return weights / weights.sum(-1, keepdim=True) @ v


@dataclass(frozen=True)
class Pattern:
    """A function, and the mask it stands for: ``mask(q, k, w, s, c)`` of positions, window, stride, summary."""

    function: object
    mask: object
    causal: bool = True
    reference: object = full_matrix


PATTERNS = {
    "dense": Pattern(lambda w, s, c: dense, lambda q, k, w, s, c: k <= q),
    "sdpa": Pattern(lambda w, s, c: sdpa, lambda q, k, w, s, c: k <= q),
    "sliding window": Pattern(lambda w, s, c: partial(sliding_window, window=w),
                              lambda q, k, w, s, c: (k <= q) & (q - k <= w)),
    "window on both sides": Pattern(lambda w, s, c: partial(longformer, window=w, n_global=0),
                                    lambda q, k, w, s, c: abs(q - k) <= w, causal=False),
    "longformer": Pattern(lambda w, s, c: partial(longformer, window=w, n_global=s),
                          lambda q, k, w, s, c: (abs(q - k) <= w) | (q < s) | (k < s), causal=False),
    "dilated": Pattern(lambda w, s, c: partial(dilated, window=w, dilation=s),
                       lambda q, k, w, s, c: (k <= q) & (q - k <= w * s) & ((q - k) % s == 0)),
    "columns": Pattern(lambda w, s, c: partial(columns, stride=s),
                       lambda q, k, w, s, c: (k <= q) & ((q - k) % s == 0)),
    "own block": Pattern(lambda w, s, c: partial(own_block, stride=s),
                         lambda q, k, w, s, c: (k <= q) & (q // s == k // s)),
    "summaries": Pattern(lambda w, s, c: partial(summaries, stride=s, c=c),
                         lambda q, k, w, s, c: (k <= q) & (k % s >= s - c)),
    "strided": Pattern(lambda w, s, c: partial(strided, stride=s),
                       lambda q, k, w, s, c: heads((k <= q) & (q - k <= s), (k <= q) & ((q - k) % s == 0))),
    "fixed": Pattern(lambda w, s, c: partial(fixed, stride=s, c=c),
                     lambda q, k, w, s, c: heads((k <= q) & (q // s == k // s), (k <= q) & (k % s >= s - c))),
    "tiled": Pattern(lambda w, s, c: partial(tiled, tile=s), lambda q, k, w, s, c: k <= q),
    "linear": Pattern(lambda w, s, c: partial(linear, chunk=s), lambda q, k, w, s, c: k <= q,
                      reference=linear_reference),
}
CAUSAL = [name for name, pattern in PATTERNS.items() if pattern.causal]
SIZES = dict(w=3, s=4, c=2)
