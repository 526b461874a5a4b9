"""Ablation: a model without some of its heads, to see what they were for."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ..attention import MultiHeadAttention
from .model import GPT


def silenced(W_o: Tensor, heads: Sequence[int], d_k: int) -> Tensor:
    """``W_o (d_model, n_heads * d_k)`` to a copy in which these heads write nothing: their columns are zero."""
    W_o = W_o.clone()
    for head in heads:
        W_o[:, head * d_k:(head + 1) * d_k] = 0.0
    return W_o


def _attentions(model: GPT, heads: Sequence[tuple[int, int]]) -> list[MultiHeadAttention]:
    """The attention of each head ``(layer, head)``; a head that does not exist is a ``ValueError``."""
    for layer, head in heads:
        n_heads = model.layers[layer].self_attention.n_heads if 0 <= layer < len(model.layers) else 0
        if not 0 <= head < n_heads:
            has = f"heads 0 to {n_heads - 1} there" if n_heads else f"layers 0 to {len(model.layers) - 1}"
            raise ValueError(f"there is no head {head} in layer {layer}; expected pairs (layer, head), and this model "
                             f"has {has}.")
    return [model.layers[layer].self_attention for layer, _ in heads]


@contextmanager
def heads_off(model: GPT, heads: Sequence[tuple[int, int]],
              without: Callable[[Tensor, list[int], int], Tensor] = silenced) -> Iterator[None]:
    """Inside the block the heads ``(layer, head)`` write nothing.

    Args:
        model: of which attention's ``W_o`` changes inside the block.
        heads: pairs ``(layer, head)``, counted from 0.
        without: makes each ``W_o`` of the block; another function with the arguments of `silenced` can stand here.

    Raises:
        ValueError: if the model has no such layer or head.
    """
    attentions = {layer: attention for (layer, _), attention in zip(heads, _attentions(model, heads), strict=True)}
    kept = {layer: attention.W_o.weight.detach().clone() for layer, attention in attentions.items()}
    try:
        with torch.no_grad():
            for layer, attention in attentions.items():
                off = [head for of, head in heads if of == layer]
                attention.W_o.weight.copy_(without(kept[layer].clone(), off, attention.d_k))
        yield
    finally:
        with torch.no_grad():
            for layer, attention in attentions.items():
                attention.W_o.weight.copy_(kept[layer])


@contextmanager
def heads_at_mean(model: GPT, heads: Sequence[tuple[int, int]]) -> Iterator[None]:
    """Inside the block the heads ``(layer, head)`` write their mean: mean ablation.

    The mean is over all texts and positions that are read together, padding, too. A head that does not exist is a
    ``ValueError``, and so is to read a single position, whose mean is itself: `generate` does it.
    """
    def hook(head: int, d_k: int):
        def at_mean(W_o: nn.Module, inputs: tuple[Tensor]) -> Tensor:
            z = inputs[0].clone()                                                  # (B, T, n_heads * d_k)
            if z.shape[:2] == (1, 1):
                raise ValueError("heads_at_mean: one position is read, and its mean is itself; expected at least two. "
                                 "Read whole texts at once, without a cache.")
            own = z[..., head * d_k:(head + 1) * d_k]
            own[:] = own.mean(dim=(0, 1))
            return z
        return at_mean

    hooks = [attention.W_o.register_forward_pre_hook(hook(head, attention.d_k))
             for attention, (_, head) in zip(_attentions(model, heads), heads, strict=True)]
    try:
        yield
    finally:
        for each in hooks:
            each.remove()
