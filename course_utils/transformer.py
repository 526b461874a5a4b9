"""The Transformer of Vaswani et al. 2017: an encoder that reads, a decoder that writes, both built from attention.

Shapes: ``source (B, T_k)`` and ``target (B, T_q)`` are ids, ``x (B, T, d_model)``, ``logits (B, T_q, vocab)``. Masks
are boolean and ``True`` means *may attend*. Attention weights of a layer are ``(B, n_heads, T_q, T_k)``, of a stack of
layers ``(B, n_layers, n_heads, T_q, T_k)``; they are large, and made only where they are returned: a model's are those
of the cross-attention.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .arguments import at_least, check_ids, check_length, check_share, check_source, check_target
from .attention import MultiHeadAttention, sinusoidal
from .data.text import PAD
from .models import Embedding, EncoderDecoder, init_embedding


class FeedForward(nn.Sequential):
    """Two linear maps and the activation between them, the same at every position (section 3.3, eq. 2)."""

    def __init__(self, config: "Config"):
        super().__init__(nn.Linear(config.d_model, config.d_ff, config.bias), config.activation(),
                         nn.Linear(config.d_ff, config.d_model, config.bias))


@dataclass(frozen=True)
class Config:
    """The sizes and parts of a Transformer, by default the course's miniature; the paper's are `BASE` and `BIG`."""

    d_model: int = 64
    """Width of everything between the layers."""
    n_heads: int = 2
    n_layers: int = 2
    """In the encoder, and as many in the decoder."""
    d_ff: int = 256
    """Width inside the feed-forward networks."""
    dropout: float = 0.0
    """On the attention weights, on what each sublayer adds, and on the embeddings."""
    pre_norm: bool = True
    """LayerNorm before each sublayer (GPT-2; Xiong et al. 2020 compare); ``False``: after each sum, as in the paper."""
    max_len: int = 512
    """Longest sequence, in tokens."""
    activation: type[nn.Module] = nn.ReLU
    """Inside a `FeedForward`; BERT's is ``nn.GELU``."""
    norm_eps: float = 1e-5
    """What each norm adds to the variance: PyTorch's default; BERT's is 1e-12."""
    bias: bool = True
    """Whether attention and feed-forward networks add vectors; LLaMA's do not."""
    norm: Callable[[int, float], nn.Module] = nn.LayerNorm
    """Made of width and epsilon; today ``nn.RMSNorm`` (Zhang and Sennrich 2019)."""
    feed_forward: Callable[["Config"], nn.Module] = FeedForward
    """Made of this configuration; today `gpt.SwiGLU`."""

    def __post_init__(self):
        sizes = {name: getattr(self, name) for name in ("d_model", "n_heads", "n_layers", "d_ff", "max_len")}
        at_least(1, **sizes)
        check_share(dropout=self.dropout)

    def new_norm(self) -> nn.Module:
        """A norm of vectors ``(…, d_model)``."""
        return self.norm(self.d_model, self.norm_eps)

    def last_norm(self) -> nn.Module:
        """What follows the last layer: with ``pre_norm`` a norm, since the residual sum has had none."""
        return self.new_norm() if self.pre_norm else nn.Identity()


BASE = Config(d_model=512, n_heads=8, n_layers=6, d_ff=2048, dropout=0.1, pre_norm=False)
BIG = Config(d_model=1024, n_heads=16, n_layers=6, d_ff=4096, dropout=0.3, pre_norm=False)


class Layer(nn.Module):
    """What all layers share: how a sublayer stands on the residual path."""

    def __init__(self, config: Config):
        super().__init__()
        self.dropout, self.pre_norm = nn.Dropout(config.dropout), config.pre_norm

    def residual(self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor | tuple]):
        """``x + sublayer(norm(x))``, or in the paper's order ``norm(x + sublayer(x))`` (section 3.1); dropout on what
        is added. What a sublayer returns besides its output comes after ``x``: attention's weights, a cache."""
        returned = sublayer(norm(x) if self.pre_norm else x)
        added, *more = returned if isinstance(returned, tuple) else (returned,)
        x = x + self.dropout(added)
        x = x if self.pre_norm else norm(x)
        return (x, *more) if more else x


class SelfAttentionLayer(Layer):
    """Self-attention, then a feed-forward network; a subclass says how its self-attention is called: an encoder's, a
    GPT's, a Transformer-XL's."""

    def __init__(self, config: Config, self_attention: nn.Module):
        super().__init__(config)
        self.self_attention, self.feed_forward = self_attention, config.feed_forward(config)
        self.norm_1, self.norm_2 = (config.new_norm() for _ in range(2))


class EncoderLayer(SelfAttentionLayer):
    """A layer in which every position sees every other one, unless a mask hides it."""

    def __init__(self, config: Config):
        super().__init__(config, MultiHeadAttention(config.d_model, config.n_heads, config.dropout, bias=config.bias))

    def forward(self, x: Tensor, mask: Tensor | None = None, need_weights: bool = False):
        """``x (B, T, d_model)`` to the same shape; and the weights, or ``None``. ``mask``: see `MultiHeadAttention`."""
        self_attention = partial(self.self_attention, mask=mask, need_weights=need_weights)
        x, weights = self.residual(x, self.norm_1, self_attention)
        x = self.residual(x, self.norm_2, self.feed_forward)
        return x, weights


class Cache(NamedTuple):
    """Projected keys and values ``(B, n_heads, T, d_k)``, kept so that the next word need not recompute them."""

    k: Tensor
    v: Tensor

    def append(self, k: Tensor, v: Tensor) -> "Cache":
        """The cache with new positions at its end; into an empty one nothing is copied."""
        if self.k.size(2) == 0:
            return Cache(k, v)
        return Cache(torch.cat([self.k, k], dim=2), torch.cat([self.v, v], dim=2))


class DecoderLayer(Layer):
    """Self-attention over what is written, cross-attention to the memory, a feed-forward network."""

    def __init__(self, config: Config):
        super().__init__(config)
        self.self_attention = MultiHeadAttention(config.d_model, config.n_heads, config.dropout, bias=config.bias)
        self.cross_attention = MultiHeadAttention(config.d_model, config.n_heads, config.dropout, bias=config.bias)
        self.feed_forward = config.feed_forward(config)
        self.norm_1, self.norm_2, self.norm_3 = (config.new_norm() for _ in range(3))

    def forward(self, x: Tensor, memory: Cache, src_mask: Tensor | None, past: Cache, need_weights: bool = False):
        """One layer of the decoder over the new positions.

        Args:
            x: ``(B, T_q, d_model)``, the new positions only.
            memory: what the cross-attention has projected from the encoder's output (`project_keys`).
            src_mask: ``(B, 1, T_k)``, ``True`` where the source has a word.
            past: the self-attention's keys and values of the positions before.
            need_weights: whether to return the weights of the cross-attention.

        Returns: ``x`` after the layer, the weights of the cross-attention (or ``None``), and the longer cache.
        """
        k, v = memory
        self_attention = partial(look_back, self.self_attention, past=past, need_weights=False)
        cross_attention = partial(self.cross_attention.attend, k=k, v=v, mask=src_mask, need_weights=need_weights)
        x, _, past = self.residual(x, self.norm_1, self_attention)
        x, weights = self.residual(x, self.norm_2, cross_attention)
        x = self.residual(x, self.norm_3, self.feed_forward)
        return x, weights, past


def look_back(attention: MultiHeadAttention, x: Tensor, past: Cache | None, need_weights: bool):
    """Causal self-attention of new positions over all: the output, the weights (or ``None``), the longer cache.

    ``x (B, T_q, d_model)`` are the new positions only; ``past`` are the keys and values of those before.
    """
    new = Cache(*attention.project_keys(x, start=0 if past is None else past.k.size(2)))   # (B, n_kv_heads, T_q, d_k)
    past = new if past is None else past.append(*new)                                  # (B, n_kv_heads, T_k, d_k)
    is_causal = x.size(1) > 1                                                          # a single query sees every key
    return *attention.attend(x, *past, need_weights=need_weights, is_causal=is_causal), past


class Encoder(nn.Module):
    """A stack of encoder layers, and with ``pre_norm`` a last norm."""

    def __init__(self, config: Config):
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.n_layers))
        self.norm = config.last_norm()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """``x (B, T, d_model)`` to the same shape."""
        for layer in self.layers:
            x, _ = layer(x, mask)
        return self.norm(x)


class Decoder(nn.Module):
    """A stack of decoder layers; all of them look at the top of the encoder."""

    def __init__(self, config: Config):
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.n_layers))
        self.norm = config.last_norm()

    def forward(self, x: Tensor, memory: tuple[Cache, ...], src_mask: Tensor | None, past: tuple[Cache, ...],
                need_weights: bool = False):
        """As `DecoderLayer`, with a tuple of caches, one per layer, and the weights of all layers."""
        weights, caches = [], []
        for layer, keys, cache in zip(self.layers, memory, past, strict=True):
            x, w, cache = layer(x, keys, src_mask, cache, need_weights)
            weights.append(w)
            caches.append(cache)
        return self.norm(x), torch.stack(weights, dim=1) if need_weights else None, tuple(caches)


class Memory(NamedTuple):
    """What the encoder leaves for the decoder."""

    caches: tuple[Cache, ...]
    """For each decoder layer, keys and values of its cross-attention: all from the top of the encoder."""
    src_mask: Tensor
    """``(B, 1, T_k)``: ``True`` where there is a word, ``False`` where there is padding."""


class Transformer(EncoderDecoder):
    """Encoder, decoder, and a softmax layer that shares its matrix with the target's embedding (section 3.4).

    Args:
        source_size, target_size: sizes of the two vocabularies. ``target_size=None``: one vocabulary and one embedding
            for both sides, as in the paper.
        config: the other sizes.
    """

    def __init__(self, source_size: int, target_size: int | None = None, config: Config = Config()):
        super().__init__()
        one_table = target_size is None
        at_least(1, source_size=source_size, target_size=source_size if one_table else target_size)
        self.config = config
        self.target_embed = Embedding(source_size if one_table else target_size, config.d_model)
        self.source_embed = self.target_embed if one_table else Embedding(source_size, config.d_model)
        for table in (self.source_embed, self.target_embed):
            init_embedding(table)
        self.register_buffer("positions", sinusoidal(config.max_len, config.d_model), persistent=False)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder, self.decoder = Encoder(config), Decoder(config)

    def embed(self, ids: Tensor, table: nn.Embedding, start: int = 0) -> Tensor:
        """``(B, T)`` to ``(B, T, d_model)``: the word's vector times ``sqrt(d_model)``, plus the wave of its position.

        The first id stands at position ``start``. Positions beyond ``max_len`` are a ``ValueError``.
        """
        end = start + ids.size(1)
        check_length(self, end, self.config.max_len)
        return self.dropout(table(ids) * math.sqrt(self.config.d_model) + self.positions[start:end])

    def encode(self, source: Tensor) -> tuple[Memory, tuple[Cache, ...]]:
        """Read ids ``(B, T_k)``; returns the `Memory` and the decoder's first state: empty caches.

        Rows without a word, or with padding before one, are a ``ValueError``.
        """
        check_ids(source=source)
        src_mask = (source != PAD).unsqueeze(1)                                        # (B, 1, T_k)
        check_source(source, src_mask.squeeze(1))
        x = self.encoder(self.embed(source, self.source_embed), src_mask)
        caches = tuple(Cache(*layer.cross_attention.project_keys(x)) for layer in self.decoder.layers)
        state = tuple(Cache(c.k[:, :, :0], c.v[:, :, :0]) for c in caches)             # (B, n_heads, 0, d_k)
        return Memory(caches, src_mask), state

    def decode(self, target: Tensor, state: tuple[Cache, ...], memory: Memory, need_weights: bool = False):
        """Logits ``(B, T_q, target_size)`` for what follows each id of ``target``, the cross-attention's weights (or
        ``None``: without them PyTorch's kernel computes it, a fifth faster), the next state. ``target`` holds the new
        words; those before are in the caches of ``state``.
        """
        check_target(target, memory.src_mask)
        x = self.embed(target, self.target_embed, start=state[0].k.size(2))
        x, weights, state = self.decoder(x, memory.caches, memory.src_mask, state, need_weights)
        return x @ self.target_embed.weight.T, weights, state
