"""Attention: six score functions, a softmax that respects a mask, and the weighted sum.

Shapes, everywhere: ``query (B, T_q, d_query)``, ``keys (B, T_k, d_key)``, ``values (B, T_k, d_value)``,
``scores`` and ``weights (B, T_q, T_k)``. Masks are boolean and ``True`` means *may attend*.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Turn scores into weights that sum to one over the last axis (the keys).

    Args:
        scores: ``(..., T_q, T_k)``, any floating type.
        mask: boolean, broadcastable to ``scores``; ``True`` = may attend. ``None``: every key may be attended.

    Returns:
        Weights shaped like ``scores``. A row in which no key may be attended has no distribution over keys:
        it comes back as zeros (not NaN), and its gradient is zero.

    Raises:
        TypeError: if the mask is not boolean (a 0/1 mask could mean either thing).
    """
    if mask is None:
        return scores.softmax(dim=-1)
    if mask.dtype != torch.bool:
        raise TypeError(f"mask has dtype {mask.dtype}; expected torch.bool with True = may attend. "
                        "Build it by a comparison, e.g. mask = source != PAD.")
    empty = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -math.inf).masked_fill(empty, 0.0)
    return scores.softmax(dim=-1).masked_fill(empty, 0.0)


def attend(query: Tensor, keys: Tensor, values: Tensor, score, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Score, softmax, weighted sum: attention in one line (Bahdanau et al. 2015, eq. 5-6).

    Args:
        query: ``(B, T_q, d_query)``.
        keys: ``(B, T_k, d_key)``.
        values: ``(B, T_k, d_value)``.
        score: any ``score(query, keys) -> (B, T_q, T_k)``, for example a module of this file.
        mask: boolean, broadcastable to ``(B, T_q, T_k)``; ``True`` = may attend.

    Returns:
        ``context (B, T_q, d_value)`` and ``weights (B, T_q, T_k)``.
    """
    weights = masked_softmax(score(query, keys), mask)
    return weights @ values, weights


class Score(nn.Module):
    """A score function in two parts: what is computed once a sentence, and what once a query.

    ``score(query, keys)`` does both. A decoder that asks one query after another calls ``project_keys`` once
    and ``compare`` at every step.
    """

    def project_keys(self, keys: Tensor) -> Tensor:
        """What can be computed from the keys alone (by default nothing)."""
        return keys

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores ``(B, T_q, T_k)`` of queries against projected keys."""
        raise NotImplementedError

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores ``(B, T_q, T_k)`` of queries against keys."""
        return self.compare(query, self.project_keys(keys))


class AdditiveScore(Score):
    """``v . tanh(W_q q + W_k k)``: a network with one hidden layer (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, d_query: int, d_key: int, d_hidden: int = 64):
        super().__init__()
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

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        """``(B, T_q, d) @ (B, d, T_k)``."""
        return query @ keys.transpose(-2, -1)


class ScaledDotScore(DotScore):
    """``q . k / sqrt(d)`` (Vaswani et al. 2017, eq. 1)."""

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        """The dot product, brought back to the variance of one of its terms."""
        return super().compare(query, keys) / math.sqrt(query.size(-1))


class GeneralScore(Score):
    """``q . W k``: a learned bilinear form (Luong et al. 2015, eq. 8, *general*)."""

    def __init__(self, d_query: int, d_key: int):
        super().__init__()
        self.W = nn.Linear(d_key, d_query, bias=False)

    def project_keys(self, keys: Tensor) -> Tensor:
        """``W k``: ``(B, T_k, d_query)``."""
        return self.W(keys)

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        """``(B, T_q, d_query) @ (B, d_query, T_k)``."""
        return query @ keys.transpose(-2, -1)


class CosineScore(Score):
    """``g cos(q, k)`` with a learned sharpness ``g`` (content-based addressing, Graves et al. 2014, eq. 5-6)."""

    def __init__(self, d_query: int, d_key: int, sharpness: float = 10.0):
        super().__init__()
        if d_query != d_key:
            raise ValueError(f"a cosine needs equal widths, got d_query={d_query} and d_key={d_key}.")
        self.sharpness = nn.Parameter(torch.tensor(sharpness))

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        """Without ``g`` the scores stay in [-1, 1] and the softmax can never be sharp."""
        eps = max(1e-12, torch.finfo(query.dtype).tiny)        # 1e-12 alone is zero in float16
        query, keys = F.normalize(query, dim=-1, eps=eps), F.normalize(keys, dim=-1, eps=eps)
        return self.sharpness * query @ keys.transpose(-2, -1)


class LocationScore(Score):
    """``W q``: one score a position, made from the query alone (Luong et al. 2015, eq. 9, *location*)."""

    def __init__(self, d_query: int, d_key: int, max_len: int = 64):
        super().__init__()
        self.W = nn.Linear(d_query, max_len)

    def compare(self, query: Tensor, keys: Tensor) -> Tensor:
        """The keys are counted, never read."""
        n_keys, max_len = keys.size(-2), self.W.out_features
        if n_keys > max_len:
            raise ValueError(f"{n_keys} keys, but this score has {max_len} positions; make it with max_len={n_keys}. "
                             "In a Seq2Seq, before training: "
                             f"model.decoder.score = LocationScore(d_model, d_model, max_len={n_keys}).")
        return self.W(query)[..., :n_keys]


SCORES = {"additive": AdditiveScore, "dot": DotScore, "general": GeneralScore, "location": LocationScore,
          "cosine": CosineScore, "scaled_dot": ScaledDotScore}
