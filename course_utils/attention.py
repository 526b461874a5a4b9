"""Attention: a softmax that respects a mask, the weighted sum, six score functions, several heads, and positions.

Shapes: ``query (B, T_q, d_query)``, ``keys (B, T_k, d_key)``, ``values (B, T_k, d_value)``, ``scores`` and ``weights
(B, T_q, T_k)``; with several heads ``(B, n_heads, T_q, T_k)``. Masks are boolean and ``True`` means *may attend*. With
more keys than queries (a cache), the queries are the last positions. Two axes of a mask are always ``(T_q, T_k)``: a
padding mask is ``(B, 1, T_k)``, because ``(B, T_k)`` of as many sentences as queries cannot be told from them.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .arguments import at_least, check_share


class AttentionRecord(NamedTuple):
    """What a model attended to, and between which words: one object from the model to the picture.

    Made by `decoding.attention_records`; ``AttentionView(record)``, ``attention_heatmap(record)``,
    `metrics.hard_alignment` and `metrics.alignment_error_rate` take it.
    """

    weights: Tensor
    """``(…, T_q, T_k)``; of a Transformer with layers and heads in front."""
    rows: list[str]
    """The ``T_q`` words that were written."""
    columns: list[str]
    """The ``T_k`` words that were read, as they were given, with ``<eos>`` where the model read one."""
    alignment: Collection[tuple[int, int]] = ()
    """True links ``(row, column)``, if they are known."""
    n_words: int | None = None
    """How many columns, from the first, are words of the sentence: those after can have no link. ``None``: all."""

    def with_weights(self, weights: Tensor) -> "AttentionRecord":
        """The same words with other weights, such as those of one head: ``it.with_weights(it.weights[1, 0])``."""
        return self._replace(weights=weights)

    def to_json(self) -> dict:
        """As a stored measurement keeps it, the weights to four digits; ``AttentionRecord.from_json`` reads it back."""
        weights = self.weights.double().mul(10_000).round().div(10_000).tolist()
        return {**self._asdict(), "weights": weights, "alignment": sorted(map(list, self.alignment))}

    @classmethod
    def from_json(cls, kept: Mapping) -> "AttentionRecord":
        """The record that `to_json` wrote."""
        return cls(**{**kept, "weights": torch.tensor(kept["weights"]), "alignment": {*map(tuple, kept["alignment"])}})


def check_mask(mask: Tensor, shape: Sequence[int]) -> None:
    """Refuse a mask that is not boolean (TypeError) or does not fit scores ``(B, …, T_q, T_k)`` (ValueError).

    Only the shape is looked at, see the beginning of this file.
    """
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        given = f"has dtype {mask.dtype}" if isinstance(mask, Tensor) else f"is a {type(mask).__name__}"
        raise TypeError(f"mask {given}; expected torch.bool with True = may attend. "
                        "Build it by a comparison, e.g. mask = (source != PAD).unsqueeze(1), which is (B, 1, T_k).")
    if not _broadcasts(mask.shape, shape):
        raise ValueError(f"mask has shape {tuple(mask.shape)}, scores have {tuple(shape)}; expected (T_q, T_k), or "
                         "(B, 1 or T_q, T_k), one axis more with heads. A padding mask (B, T_k) needs an axis for the "
                         "queries: mask.unsqueeze(1).")


def _broadcasts(given: Sequence[int], shape: Sequence[int]) -> bool:
    sizes = zip(reversed(given), reversed(shape), strict=False)
    return 1 <= len(given) <= len(shape) and all(size in (1, wanted) for size, wanted in sizes)


def check_bias(bias: Tensor, shape: Sequence[int]) -> None:
    """Refuse a bias without numbers (TypeError) or that does not fit scores ``(B, n_heads, T_q, T_k)`` (ValueError)."""
    if not isinstance(bias, Tensor):
        raise TypeError(f"bias is a {type(bias).__name__}; expected a tensor that is added to the scores. So that the "
                        "linear maps add no vectors: MultiHeadAttention(…, bias=False).")
    if bias.dtype == torch.bool:
        raise TypeError("bias has dtype torch.bool; expected numbers, added to the scores. A mask goes to mask.")
    if not _broadcasts(bias.shape, shape):
        raise ValueError(f"bias has shape {tuple(bias.shape)}, scores have {tuple(shape)}; expected four axes that "
                         "broadcast to (B, n_heads, T_q, T_k), or the last of them: alibi(n_heads, T).")


def check_values(keys: Tensor, values: Tensor) -> None:
    """A ``ValueError`` unless there is a value for each key: ``(B, …, T_k, d)``, alike in all axes but the last."""
    if keys.shape[:-1] != values.shape[:-1]:
        raise ValueError(f"keys are {tuple(keys.shape)}, values {tuple(values.shape)}; expected a value for each key, "
                         "with the same B and T_k.")


def at_least_float32(*tensors: Tensor) -> list[Tensor]:
    """In float32 at least: float16 ends at 65,504, which a dot product reaches before it is scaled."""
    return [x.to(torch.promote_types(x.dtype, torch.float32)) for x in tensors]


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Turn scores into weights that sum to one over the last axis (the keys).

    Args:
        scores: ``(..., T_q, T_k)``, any floating type; finite where may be attended.
        mask: boolean, broadcastable to ``scores``; ``True`` = may attend. ``None``: every key may be attended.

    Returns:
        Weights shaped like ``scores``. A row in which no key may be attended is zeros (not NaN), its gradient zero.

    Raises:
        TypeError: if the mask is not boolean (a 0/1 mask could mean either thing).
        ValueError: if it does not broadcast to the scores, see `check_mask`.
    """
    if mask is None:
        return scores.softmax(dim=-1)
    check_mask(mask, scores.shape)
    empty = ~mask.any(dim=-1, keepdim=True)
    instead = torch.where(empty, 0.0, -math.inf).to(scores)                 # (..., T_q or 1, 1)
    return torch.where(mask, scores, instead).softmax(dim=-1).masked_fill(empty, 0.0)


def attend(query: Tensor, keys: Tensor, values: Tensor, score: Callable[[Tensor, Tensor], Tensor],
           mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Score, softmax, weighted sum: attention in one line (Bahdanau et al. 2015, eq. 5-6).

    ``score(query, keys) -> (B, T_q, T_k)`` may be any function, for example a module of this file. The mask is
    broadcast to ``(B, T_q, T_k)``. Returns ``context (B, T_q, d_value)`` and ``weights (B, T_q, T_k)``.
    """
    check_values(keys, values)
    weights = masked_softmax(score(query, keys), mask)
    return weights @ values, weights


def scaled_scores(query: Tensor, keys: Tensor) -> Tensor:
    """``q . k / sqrt(d)`` (Vaswani et al. 2017, eq. 1): ``(…, T_q, T_k)``, in float32 at least."""
    query, keys = at_least_float32(query, keys)
    return query @ keys.transpose(-2, -1) * query.size(-1) ** -0.5


class Score(nn.Module):
    """A score function in two parts: a decoder calls `project_keys` once per sentence, `compare` once per query."""

    def project_keys(self, keys: Tensor) -> Tensor:
        """The part that depends on the keys alone (by default the keys themselves)."""
        return keys

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores ``(B, T_q, T_k)`` of queries against projected keys: by default their dot products."""
        return query @ keys.transpose(-2, -1)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores ``(B, T_q, T_k)`` of queries against keys."""
        return self.compare(query, self.project_keys(keys))


class AdditiveScore(Score):
    """``v . tanh(W_q q + W_k k)``: a network with one hidden layer (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, d_query: int, d_key: int, d_hidden: int = 64):
        super().__init__()
        at_least(1, d_query=d_query, d_key=d_key, d_hidden=d_hidden)
        self.W_q = nn.Linear(d_query, d_hidden)
        self.W_k = nn.Linear(d_key, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def project_keys(self, keys: Tensor) -> Tensor:
        """``W_k k``: ``(B, T_k, d_hidden)``."""
        return self.W_k(keys)

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        """Every query meets every key in a ``(B, T_q, T_k, d_hidden)`` tensor: the price of this score."""
        hidden = torch.tanh(self.W_q(query).unsqueeze(-2) + keys.unsqueeze(-3))
        return self.v(hidden).squeeze(-1)


class DotScore(Score):
    """``q . k``: no parameters, equal widths (Luong et al. 2015, eq. 8, *dot*)."""

    def __init__(self, d_query: int, d_key: int):
        super().__init__()
        if d_query != d_key:
            raise ValueError(f"a dot product needs equal widths, got d_query={d_query} and d_key={d_key}; "
                             "GeneralScore puts a matrix between them.")


class ScaledDotScore(DotScore):
    """``q . k / sqrt(d)`` (Vaswani et al. 2017, eq. 1)."""

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        """The dot product, brought back to the variance of one of its terms."""
        return scaled_scores(query, keys).to(query.dtype)


class GeneralScore(Score):
    """``q . W k``: a learned bilinear form (Luong et al. 2015, eq. 8, *general*)."""

    def __init__(self, d_query: int, d_key: int):
        super().__init__()
        at_least(1, d_query=d_query, d_key=d_key)
        self.W = nn.Linear(d_key, d_query, bias=False)

    def project_keys(self, keys: Tensor) -> Tensor:
        """``W k``: ``(B, T_k, d_query)``."""
        return self.W(keys)


class CosineScore(Score):
    """``g cos(q, k)`` with a learned sharpness ``g``, 10 at first (content addressing, Graves et al. 2014, eq. 5-6)."""

    def __init__(self, d_query: int, d_key: int):
        super().__init__()
        if d_query != d_key:
            raise ValueError(f"a cosine needs equal widths, got d_query={d_query} and d_key={d_key}.")
        self.sharpness = nn.Parameter(torch.tensor(10.0))

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        """Without ``g`` the scores stay in [-1, 1] and the softmax can never be sharp."""
        eps = max(1e-12, torch.finfo(query.dtype).tiny ** 0.5)      # 0.008 in float16: 1 / eps is in the gradient
        query, keys = (F.normalize(x, dim=-1, eps=eps).to(query.dtype) for x in at_least_float32(query, keys))
        return super().compare(self.sharpness * query, keys)


class LocationScore(Score):
    """``W q``: one score a position, made from the query alone (Luong et al. 2015, eq. 9, *location*)."""

    def __init__(self, d_query: int, d_key: int, max_len: int = 64):
        super().__init__()
        at_least(1, d_query=d_query, max_len=max_len)
        self.W = nn.Linear(d_query, max_len)

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        """The keys are counted, never read."""
        n_keys, max_len = keys.size(-2), self.W.out_features
        if n_keys > max_len:
            raise ValueError(f"{n_keys} keys, but this score has {max_len} positions. In a Seq2Seq, before training: "
                             f"model.decoder.score = LocationScore(d_model, d_model, max_len={n_keys}).")
        return self.W(query)[..., :n_keys]


SCORES = {"additive": AdditiveScore, "dot": DotScore, "general": GeneralScore, "location": LocationScore,
          "cosine": CosineScore, "scaled_dot": ScaledDotScore}


# --- several heads -------------------------------------------------------------------------------------------

def causal_mask(n_queries: int, n_keys: int | None = None, device=None) -> Tensor:
    """Nobody looks ahead: boolean ``(T_q, T_k)``, in which a query may attend to keys up to its own position.

    By default as many keys as queries. With more (a cache), the last query sees the last key; fewer are a
    ``ValueError``, because the first queries would see nothing.
    """
    at_least(0, n_queries=n_queries)
    n_keys = n_queries if n_keys is None else n_keys
    if n_keys < n_queries:
        raise ValueError(f"{n_queries} queries and {n_keys} keys: the first {n_queries - n_keys} would see nothing. "
                         "Give at least as many keys as queries.")
    return torch.ones(n_queries, n_keys, dtype=torch.bool, device=device).tril(n_keys - n_queries)


class MultiHeadAttention(nn.Module):
    """Several attentions side by side, each in its own part of the width (Vaswani et al. 2017, section 3.2.2).

    Args:
        d_model: width of query, keys, values and output.
        n_heads: how many heads share it, at least 1; each gets ``d_k = d_model / n_heads``.
        dropout: share of the weights that is set to zero in training; by default none.
        rotary: rotate queries and keys by their positions, see `rotary`; by default positions are not known.
        base: of the rotation, see `rotary`.
        n_kv_heads: how many heads the keys and the values have; by default as many. Fewer: each serves
            ``n_heads / n_kv_heads`` queries (grouped queries, Ainslie et al. 2023), and a cache is as much smaller.
        bias: whether the four linear maps add a vector.

    Raises:
        ValueError: if the heads do not divide the width, the key-value heads not the heads, or rotary would leave a
            number without a partner.
    """

    def __init__(self, d_model: int, n_heads: int, dropout: float = 0.0, rotary: bool = False, base: float = 10_000.0,
                 n_kv_heads: int | None = None, bias: bool = True):
        super().__init__()
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        at_least(1, d_model=d_model, n_heads=n_heads, n_kv_heads=n_kv_heads)
        check_share(dropout=dropout)
        if d_model % n_heads:
            raise ValueError(f"d_model={d_model} does not divide into n_heads={n_heads} equal parts; "
                             "choose a d_model that is a multiple of n_heads.")
        if n_heads % n_kv_heads:
            raise ValueError(f"n_heads={n_heads} queries do not divide into n_kv_heads={n_kv_heads} equal groups; "
                             "choose an n_kv_heads that divides n_heads.")
        if rotary and d_model // n_heads % 2:
            raise ValueError(f"rotary turns pairs, but a head has d_model / n_heads = {d_model // n_heads} numbers; "
                             "choose an even width.")
        self.d_model, self.n_heads, self.rotary, self.base = d_model, n_heads, rotary, base
        self.group, self.d_k = n_heads // n_kv_heads, d_model // n_heads
        self.W_q = nn.Linear(d_model, d_model, bias)
        self.W_k, self.W_v = (nn.Linear(d_model, n_kv_heads * self.d_k, bias) for _ in range(2))
        self.W_o = nn.Linear(d_model, d_model, bias)
        self.dropout = nn.Dropout(dropout)

    def split(self, x: Tensor) -> Tensor:
        """``(B, T, n_heads * d_k)`` to ``(B, n_heads, T, d_k)``: head h gets the h-th part of the width."""
        if x.dim() != 3:
            raise ValueError(f"given {tuple(x.shape)}; expected (B, T, d_model). For one sentence: x.unsqueeze(0).")
        return x.unflatten(-1, (-1, self.d_k)).transpose(1, 2)

    def join(self, x: Tensor) -> Tensor:
        """``(B, n_heads, T, d_k)`` to ``(B, T, d_model)``: the heads' outputs side by side again."""
        return x.transpose(1, 2).flatten(-2)

    def project_keys(self, keys: Tensor, values: Tensor | None = None, start: int = 0) -> tuple[Tensor, Tensor]:
        """``k`` and ``v (B, n_kv_heads, T_k, d_k)``: what does not depend on the query, and what a cache keeps.

        The first key stands at position ``start``; with rotary positions ``k`` is rotated.
        """
        values = keys if values is None else values
        self._check_width(keys=keys, values=values)
        return self._rotated(self.W_k(keys), start), self.split(self.W_v(values))

    def project_query(self, query: Tensor, start: int = 0) -> Tensor:
        """``q (B, n_heads, T_q, d_k)``, the first at position ``start``; with rotary positions rotated."""
        self._check_width(query=query)
        return self._rotated(self.W_q(query), start)

    def _rotated(self, x: Tensor, start: int) -> Tensor:
        x = self.split(x)
        return rotary(x, start, self.base) if self.rotary else x

    def output(self, mixed: Tensor) -> Tensor:
        """``(B, T_q, d_model)`` from what the heads have read, ``(B, n_heads, T_q, d_k)``.

        With another kernel: ``heads.output(kernel(heads.project_query(x), *heads.project_keys(x)))``.
        """
        return self.W_o(self.join(mixed))

    def _check_width(self, **given: Tensor) -> None:
        for name, x in given.items():
            if x.size(-1) != self.d_model:
                raise ValueError(f"{name} has shape {tuple(x.shape)}; expected (B, T, d_model) with "
                                 f"d_model={self.d_model}.")

    def forward(self, query: Tensor, keys: Tensor | None = None, values: Tensor | None = None,
                mask: Tensor | None = None, bias: Tensor | None = None, need_weights: bool = True):
        """Project, split, attend, join, project.

        Args:
            query: ``(B, T_q, d_model)``.
            keys: ``(B, T_k, d_model)``; by default the query (self-attention).
            values: ``(B, T_k, d_model)``; by default the keys.
            mask: boolean, ``True`` = may attend: ``(T_q, T_k)``, ``(B, 1 or T_q, T_k)``, which holds for all heads, or
                four axes that broadcast to ``(B, n_heads, T_q, T_k)``.
            bias: added to the scores before the softmax, finite, broadcastable to ``(B, n_heads, T_q, T_k)``, e.g.
                `alibi`.
            need_weights: by default, as in ``nn.MultiheadAttention``; a model returns them, which are many, only if
                asked. Without them PyTorch's kernel attends, which never stores them.

        Returns:
            ``output (B, T_q, d_model)`` and ``weights (B, n_heads, T_q, T_k)`` as they are before dropout, or ``None``.
        """
        self._check_width(query=query)
        k, v = self.project_keys(query if keys is None else keys, values)
        return self.attend(query, k, v, mask, bias, need_weights)

    def attend(self, query: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None,
               bias: Tensor | None = None, need_weights: bool = True, is_causal: bool = False):
        """`forward` on keys and values that `project_keys` has made before; the last query stands at the last key.

        ``is_causal``: instead of a mask, a query may attend to keys up to its own position.
        """
        q = self.project_query(query, start=k.size(2) - query.size(1))
        check_values(k, v)                                                 # PyTorch's kernel would not notice
        if len(q) != len(k) and 1 not in (len(q), len(k)):
            raise ValueError(f"query has B={len(q)}, keys have B={len(k)}; expected as many sentences, or one.")
        if is_causal and mask is not None:
            raise ValueError("given a mask and is_causal; expected one of them: mask & causal_mask(T_q, T_k) is both.")
        if is_causal and (need_weights or bias is not None or q.size(2) != k.size(2)):
            mask, is_causal = causal_mask(q.size(2), k.size(2), q.device), False
        B, *T = max(len(q), len(k)), q.size(2), k.size(2)
        if bias is not None:
            check_bias(bias, (B, self.n_heads, *T))
        if mask is not None:
            check_mask(mask, (B, *T) if getattr(mask, "ndim", 0) == 3 else (B, self.n_heads, *T))
            mask = mask.unsqueeze(1) if mask.dim() == 3 else mask          # (B, 1, T_q, T_k)
        mixed, weights = (self._by_weights(q, k, v, mask, bias) if need_weights
                          else (self._by_kernel(q, k, v, mask, bias, is_causal), None))
        return self.output(mixed), weights

    def _by_weights(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None):
        """What the heads read, ``(B, n_heads, T_q, d_k)``, and their weights."""
        if self.group > 1:
            k, v = (x.repeat_interleave(self.group, dim=1) for x in (k, v))        # (B, n_heads, T_k, d_k)
        scores = scaled_scores(q, k)                                       # (B, n_heads, T_q, T_k)
        weights = masked_softmax(scores if bias is None else scores + bias.to(scores), mask).to(q.dtype)
        return self.dropout(weights) @ v, weights

    def _by_kernel(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None, is_causal: bool):
        """The same without weights, by PyTorch's kernel. Told ``is_causal`` it needs no mask, and does half the work.
        """
        if bias is not None:
            mask = bias.to(q) if mask is None else bias.to(q).masked_fill(~mask, -math.inf)
        dropout = self.dropout.p if self.training else 0.0
        return F.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal, enable_gqa=self.group > 1)


# --- positions -----------------------------------------------------------------------------------------------

def _angles(start: int, n: int, d: int, base: float = 10_000.0) -> Tensor:
    """``(n, d / 2)``: position / base^(2i/d) for pair i, in float64, in which far positions stay exact."""
    at_least(0, n=n)
    if d % 2:
        raise ValueError(f"the width is {d}, but sine and cosine come in pairs; choose an even width.")
    frequencies = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    return torch.arange(start, start + n, dtype=torch.float64).outer(frequencies)


@lru_cache(maxsize=16)
@torch.inference_mode(False)                               # what is kept may meet a gradient later
def _turns(start: int, n: int, d: int, base: float, dtype: torch.dtype, device) -> tuple[Tensor, Tensor]:
    """Cosine and sine of `_angles`: the same in all layers of a model, so they are computed once."""
    angles = _angles(start, n, d, base)
    return angles.cos().to(device, dtype), angles.sin().to(device, dtype)


def sinusoidal(n: int, d_model: int) -> Tensor:
    """Positions as waves ``(n, d_model)``, to be added to the embeddings (Vaswani et al. 2017, section 3.5).

    ``sin(position / 10000^(2i/d_model))`` in column 2i, the cosine in column 2i + 1; an odd d_model is a ValueError.
    """
    angles = _angles(0, n, d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).float()


def rotary(x: Tensor, start: int = 0, base: float = 10_000.0) -> Tensor:
    """Rotate the pairs ``(x[2i], x[2i + 1])`` by ``position / base^(2i/d)`` (Su et al. 2021, section 3.2.2).

    Applied to queries and keys: their dot product then depends on the distance of two positions, not on the places.

    Args:
        x: ``(..., T, d)``.
        start: position of the first row; not 0 if earlier rows are in a cache.
        base: the larger, the slower the slowest pair turns. Models for long texts take 100,000 and more.

    Returns:
        A tensor like x. An odd d is a ValueError, whole numbers are a TypeError.
    """
    if not x.is_floating_point():
        raise TypeError(f"x is {x.dtype}; expected floating-point numbers: x.float().")
    cos, sin = _turns(start, x.size(-2), x.size(-1), base, x.dtype, x.device)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


def alibi(n_heads: int, n: int) -> Tensor:
    """A bias of the scores of ``n`` positions: the further away, the lower (Press et al. 2022, section 3).

    ``(n_heads, n, n)`` with ``-slope * |distance|``; the slope of head h = 1, 2, … is ``2^(-8h / n_heads)``. The
    paper's bias only looks back; this one is symmetric, for attention without a causal mask.
    """
    at_least(1, n_heads=n_heads)
    at_least(0, n=n)
    slopes = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
    distance = torch.arange(n) - torch.arange(n).unsqueeze(1)
    return slopes.view(-1, 1, 1) * -distance.abs()
