"""Language models: a decoder without an encoder, with any attention, and Transformer-XL.

Shapes: ``ids (B, T)``, states ``x (B, T, d_model)``, ``logits (B, T, vocab_size)`` for what follows each id.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from .arguments import at_least, check_ids, check_length
from .attention import MultiHeadAttention
from .efficient import RelativeAttention, sdpa
from .models import Embedding, init_embedding
from .transformer import Config, SelfAttentionLayer


class _Layer(SelfAttentionLayer):
    def forward(self, x: Tensor, *memory: Tensor) -> tuple[Tensor, Tensor]:
        """``x (B, T, d_model)`` after the layer, and what its attention has read of it."""
        x, read = self.residual(x, self.norm_1, lambda h: (self.self_attention(h, *memory), h))
        x = self.residual(x, self.norm_2, self.feed_forward)
        return x, read


class _LanguageModel(nn.Module):
    """Embedding, layers, and logits by the embedding's matrix."""

    def __init__(self, vocab_size: int, config: Config, attention: Callable[[], nn.Module]):
        super().__init__()
        at_least(1, vocab_size=vocab_size)
        self.max_len = config.max_len
        self.embed = Embedding(vocab_size, config.d_model)
        init_embedding(self.embed)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(_Layer(config, attention()) for _ in range(config.n_layers))
        self.norm = config.last_norm()

    def embed_ids(self, ids: Tensor) -> Tensor:
        """``(B, T)`` to ``(B, T, d_model)``; more than ``max_len`` ids are a ``ValueError``."""
        check_ids(ids=ids)
        check_length(self, ids.size(1), self.max_len)
        return self.embed(ids) * math.sqrt(self.embed.embedding_dim)

    def logits(self, x: Tensor) -> Tensor:
        """``(B, T, d_model)`` to ``(B, T, vocab_size)``."""
        return self.norm(x) @ self.embed.weight.T


class TransformerXL(_LanguageModel):
    """A language model that reads segment by segment and remembers what its layers read before (Dai et al. 2019).

    Args:
        vocab_size, config: the sizes; ``max_len`` is that of a segment, since distances have no end.
        mem_len: how many positions are remembered; an attribute, which may be changed for evaluation. 0: none.
    """

    def __init__(self, vocab_size: int, config: Config, mem_len: int):
        super().__init__(vocab_size, config, lambda: RelativeAttention(config.d_model, config.n_heads, config.bias,
                                                                       config.dropout))
        self.mem_len = mem_len

    def forward(self, ids: Tensor, memories: list[Tensor] | None = None) -> tuple[Tensor, list[Tensor]]:
        """Logits ``(B, T, vocab_size)`` of a segment ``ids (B, T)``, and the memories for the next one.

        ``memories``: for each layer ``(B, M, d_model)``, without gradient; ``None`` before the first segment. Others
        are a ``ValueError``, and so are a ``mem_len`` below 0 and a segment of more than ``max_len`` ids.
        """
        at_least(0, mem_len=self.mem_len)
        sizes = None if memories is None else [len(memory) for memory in memories]
        if sizes not in (None, [len(ids)] * len(self.layers)):
            raise ValueError(f"memories of {sizes} sequences, layer by layer; expected "
                             f"{len(self.layers)} layers of {len(ids)}. Begin another batch with memories=None.")
        x, new = self.dropout(self.embed_ids(ids)), []
        for layer, memory in zip(self.layers, memories or [x[:, :0]] * len(self.layers), strict=True):
            x, read = layer(x, memory)
            read = torch.cat([memory, read], dim=1).detach()
            new.append(read[:, max(0, read.size(1) - self.mem_len):])
        return self.logits(x), new


class _Heads(nn.Module):
    """Self-attention by any function of ``q, k, v``, between the projections of a `MultiHeadAttention`."""

    def __init__(self, config: Config, function: Callable[[Tensor, Tensor, Tensor], Tensor]):
        super().__init__()
        self.heads = MultiHeadAttention(config.d_model, config.n_heads, bias=config.bias)
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        """``(B, n, d_model)`` to the same shape."""
        heads = self.heads
        return heads.output(self.function(heads.project_query(x), *heads.project_keys(x)))


class CausalLM(_LanguageModel):
    """A decoder without an encoder, with any attention of `efficient` (as in Child et al. 2019, section 5).

    Args:
        vocab_size, config: the sizes; there is no dropout on the attention weights, which ``attention`` does not give.
        attention: ``(q, k, v) -> output``, causal, for example ``partial(strided, stride=8)``.
        positions: a module that makes ``(n, d_model)`` of ``arange(n)``; by default a learned vector for each of
            ``config.max_len`` positions.
    """

    def __init__(self, vocab_size: int, config: Config, attention: Callable = sdpa, positions: nn.Module | None = None):
        super().__init__(vocab_size, config, lambda: _Heads(config, attention))
        self.positions = nn.Embedding(config.max_len, config.d_model) if positions is None else positions

    def forward(self, ids: Tensor) -> Tensor:
        """Logits ``(B, n, vocab_size)``."""
        x = self.dropout(self.embed_ids(ids) + self.positions(torch.arange(ids.size(1), device=ids.device)))
        for layer in self.layers:
            x, _ = layer(x)
        return self.logits(x)
