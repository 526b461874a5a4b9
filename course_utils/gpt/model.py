"""The model: lesson 04's decoder layer without cross-attention, as of 2018 or as it is today; and writing with it.

Shapes: ``ids (B, T)``, ``x (B, T, d_model)``, ``logits (B, T, vocab_size)`` for what follows each id. Masks are not
needed: position t attends to positions up to t.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..arguments import at_least, check_ids, check_length, check_number, no_nan
from ..attention import MultiHeadAttention
from ..decoding import sample_token
from ..models import Embedding, evaluating, init_weights
from ..transformer import Cache, SelfAttentionLayer, look_back
from ..transformer import Config as TransformerConfig


class SwiGLU(nn.Module):
    """A feed-forward network with a gate: ``W_down (silu(W_gate x) * W_up x)`` (Shazeer 2020, eq. 6).

    Another ``config.activation`` than the default is a ``ValueError``.
    """

    def __init__(self, config: "Config"):
        super().__init__()
        if config.activation is not TransformerConfig.activation:
            raise ValueError(f"config has activation={config.activation.__name__}, but a SwiGLU's is SiLU; leave "
                             "activation at its default, or give feed_forward=FeedForward.")
        self.W_gate, self.W_up = (nn.Linear(config.d_model, config.d_ff, bias=config.bias) for _ in range(2))
        self.W_down = nn.Linear(config.d_ff, config.d_model, bias=config.bias)

    def forward(self, x: Tensor) -> Tensor:
        """``(…, d_model)`` to the same shape."""
        return self.W_down(F.silu(self.W_gate(x)) * self.W_up(x))


@dataclass(frozen=True)
class Config(TransformerConfig):
    """The sizes and parts of a GPT, with `transformer.Config`'s defaults; `llama_config` makes today's choices."""

    rotary: bool = False
    """Whether positions are rotations of queries and keys; else a learned vector for each position is added."""
    base: float = 10_000.0
    """Of the rotation, see `attention.rotary`."""
    n_kv_heads: int | None = None
    """Heads of keys and values, see `MultiHeadAttention`; by default as many as queries have."""


def llama_config(**sizes) -> Config:
    """A `Config` with RMSNorm, SwiGLU, rotary positions and no bias; ``sizes`` name the rest."""
    return Config(**{"norm": nn.RMSNorm, "feed_forward": SwiGLU, "rotary": True, "bias": False} | sizes)


class GPTLayer(SelfAttentionLayer):
    """A layer in which no position sees a later one."""

    def __init__(self, config: Config):
        super().__init__(config, MultiHeadAttention(config.d_model, config.n_heads, config.dropout, config.rotary,
                                                    config.base, config.n_kv_heads, config.bias))

    def forward(self, x: Tensor, past: Cache | None = None, need_weights: bool = False):
        """``x (B, T, d_model)`` of the new positions to the same shape; the weights, or ``None``; the longer cache."""
        self_attention = partial(look_back, self.self_attention, past=past, need_weights=need_weights)
        x, weights, past = self.residual(x, self.norm_1, self_attention)
        x = self.residual(x, self.norm_2, self.feed_forward)
        return x, weights, past


class GPTOutput(NamedTuple):
    """What a `GPT` returns."""

    logits: Tensor
    """``(B, T, vocab_size)``: for what follows each id."""
    weights: Tensor | None
    """``(B, n_layers, n_heads, T, T_past + T)``, or ``None``."""
    caches: tuple[Cache, ...]
    """Keys and values of all positions so far, one per layer: the ``past`` of the next call."""


class GPT(nn.Module):
    """Embedding, layers, and logits by the embedding's matrix (Radford et al. 2018, 2019).

    Args:
        vocab_size: how many tokens there are.
        config: the other sizes; GPT-2 and later norm before each sublayer, GPT after each sum.

    Raises:
        ValueError: if a size is below 1.
        TypeError: for another Transformer's configuration.
    """

    def __init__(self, vocab_size: int, config: Config = Config()):
        super().__init__()
        at_least(1, vocab_size=vocab_size)
        if not isinstance(config, Config):
            raise TypeError(f"config is a {type(config).__module__}.{type(config).__name__}; expected a gpt.Config, "
                            "which says what a GPT needs besides.")
        self.config = config
        self.embed = Embedding(vocab_size, config.d_model)
        self.positions = None if config.rotary else nn.Embedding(config.max_len, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(GPTLayer(config) for _ in range(config.n_layers))
        self.norm = config.last_norm()
        init_weights(self)

    def forward(self, ids: Tensor, past: tuple[Cache, ...] | None = None, need_weights: bool = False,
                at: Tensor | None = None) -> GPTOutput:
        """Read ``ids (B, T)``, which follow what ``past`` remembers (``None`` or ``()``: nothing).

        More than ``max_len`` positions are a ``ValueError``.

        ``at (B,)``: logits at this position of each text only, ``(B, 1, vocab_size)``; with a large vocabulary they
        take most of the memory.
        """
        check_ids(ids=ids)
        start = past[0].k.size(2) if past else 0
        end = start + ids.size(1)
        check_length(self, end, self.config.max_len)
        x = self.embed(ids)
        if self.positions is not None:
            x = x + self.positions.weight[start:end]
        x, weights, caches = self.dropout(x), [], []
        for layer, cache in zip(self.layers, past or [None] * len(self.layers), strict=True):
            x, w, cache = layer(x, cache, need_weights)
            weights.append(w)
            caches.append(cache)
        if at is not None:
            x = x[torch.arange(len(x)), at].unsqueeze(1)                           # (B, 1, d_model)
        logits = self.norm(x) @ self.embed.weight.T
        return GPTOutput(logits, torch.stack(weights, dim=1) if need_weights else None, tuple(caches))


def generate(model: GPT, ids: Tensor, n_new: int, temperature: float = 0.0, top_k: int | None = None,
             top_p: float | None = None, generator: torch.Generator | None = None) -> Tensor:
    """Continue texts token by token; thanks to the cache each is read once.

    Args:
        model: set to evaluation mode for the call.
        ids: the prompt ``(B, T)``, all of the same length.
        n_new: how many tokens to write.
        temperature: the logits are divided by it; 0 takes the most probable token.
        top_k, top_p: leave unlikely tokens out, see `decoding.truncate`.
        generator: of the random numbers.

    Returns:
        The new ids ``(B, n_new)``, without the prompt.

    Raises:
        ValueError: if ``n_new`` is below 1, ``temperature`` negative, ``top_k`` or ``top_p`` out of range or given at
            temperature 0, there is no prompt or an empty one, or the text is too long.
        TypeError: if ``temperature`` is not a number.
        FloatingPointError: if the model's logits are NaN.
    """
    check_ids(ids=ids)
    at_least(1, n_new=n_new, texts=ids.size(0), prompt=ids.size(1))
    check_number(temperature=temperature)
    if not temperature >= 0:
        raise ValueError(f"temperature={temperature}; expected a number from 0 (the most probable token) upwards.")
    if temperature == 0 and (top_k, top_p) != (None, None):
        raise ValueError(f"top_k={top_k}, top_p={top_p} with temperature 0, which takes the most probable token and "
                         "draws none. Leave them out, or give a temperature, such as 1.0.")
    last = torch.full((ids.size(0),), -1)                                                  # (B,): the newest position
    new, past = [], None
    with evaluating(model):
        for _ in range(n_new):
            reading = model(ids, past, at=last)
            logits, past = reading.logits[:, -1].float(), reading.caches               # (B, vocab_size)
            no_nan(logits)
            if temperature == 0:
                ids = logits.argmax(dim=-1, keepdim=True)                              # (B, 1)
            else:
                ids = sample_token(logits, temperature, top_k, top_p, generator)
            new.append(ids)
    return torch.cat(new, dim=1)
