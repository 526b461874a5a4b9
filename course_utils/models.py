"""What models share: embeddings, first weights, teacher forcing, evaluation mode."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Embedding(nn.Embedding):
    """``nn.Embedding`` that says which ids have no vector (on a CPU; a GPU stops with CUDA's own words)."""

    def forward(self, ids: Tensor) -> Tensor:
        """Ids of any shape to ``(…, embedding_dim)``; ids below 0 or beyond the last are an ``IndexError``."""
        try:
            return super().forward(ids)
        except IndexError:
            last = self.num_embeddings - 1
            raise IndexError(f"the ids {tuple(ids.shape)} go from {ids.min()} to {ids.max()}, but there are vectors "
                             f"for 0 to {last}. Encode with the vocabulary that the model was made for, or make the "
                             "model with the vocabulary's size.") from None


def init_embedding(table: nn.Embedding) -> None:
    """Draw vectors that, times ``sqrt(d_model)`` as a Transformer reads them, have numbers of variance 1."""
    nn.init.normal_(table.weight, std=table.embedding_dim ** -0.5)


def init_weights(model: nn.Module) -> None:
    """Draw a model's matrices from a normal distribution of deviation 0.02, as in BERT's code; biases 0."""
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


def of_each(f: Callable[[Tensor], Tensor], kept):
    """``f`` of each tensor in a memory or a state: a tensor, or tuples of them, named or nested."""
    if not isinstance(kept, tuple):
        return f(kept)
    parts = [of_each(f, part) for part in kept]
    return type(kept)(*parts) if hasattr(kept, "_fields") else tuple(parts)


class EncoderDecoder(nn.Module):
    """What all encoder-decoders share; a subclass has ``encode(source)`` and ``decode(target, state, memory,
    need_weights)``, see `seq2seq.Seq2Seq`."""

    def reorder(self, kept, index: Tensor):
        """Rows ``index (n,)`` of the memory or of a state, in that order; some several times, or not at all."""
        return of_each(lambda x: x.index_select(0, index), kept)

    def forward(self, source: Tensor, target: Tensor, need_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        """Teacher forcing: logits for the word after each word of ``target (B, T_q)``; and the weights."""
        memory, state = self.encode(source)
        logits, weights, _ = self.decode(target, state, memory, need_weights)
        return logits, weights


def device_of(model: nn.Module) -> torch.device:
    """The device of the model's parameters."""
    return next(model.parameters()).device


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """No dropout and no gradients inside the block; afterwards every submodule is back in its former mode."""
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, was_training in modes:
            part.training = was_training
