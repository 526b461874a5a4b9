"""From a trained model to words: decoding, and reading off what a model attended to.

A model offers ``encode(source) -> memory, state`` and ``decode(target, state, memory) -> logits, weights, state``.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from .data.text import BOS, EOS, Vocab, collate, encode_pairs


def device_of(model: nn.Module) -> torch.device:
    """Where the model's parameters live."""
    return next(model.parameters()).device


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """No dropout and no gradients inside the block; afterwards the model is in the mode it was in."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)


def greedy(model: nn.Module, source: Tensor, max_len: int = 60) -> tuple[Tensor, Tensor | None]:
    """Take the most probable word at every step until all sentences have ended.

    Args:
        model: with ``encode`` and ``decode`` as above; set to evaluation mode for the call.
        source: ids ``(B, T_k)``.
        max_len: longest output in tokens.

    Returns:
        ids ``(B, T_q)`` (after EOS they mean nothing; ``Vocab.decode`` stops there), weights ``(B, T_q, T_k)`` or
        ``None``.

    Raises:
        ValueError: if ``max_len`` is below 1.
    """
    if max_len < 1:
        raise ValueError(f"max_len={max_len}; expected at least 1.")
    device = device_of(model)
    source = source.to(device)
    words, all_weights = [], []
    with evaluating(model):
        memory, state = model.encode(source)
        word = torch.full((source.size(0), 1), BOS, device=device)
        done = torch.zeros(source.size(0), dtype=torch.bool, device=device)
        while not done.all() and len(words) < max_len:
            logits, weights, state = model.decode(word, state, memory)
            word = logits[:, -1:].argmax(dim=-1)                   # (B, 1)
            done |= word.squeeze(1) == EOS
            words.append(word)
            all_weights.append(weights)
    weights = None if all_weights[0] is None else torch.cat(all_weights, dim=1).cpu()
    return torch.cat(words, dim=1).cpu(), weights


def by_length(sentences: Sequence[Sequence[str]], batch_size: int) -> Iterator[list[int]]:
    """Indices of the sentences, ``batch_size`` at a time, similar lengths together: little padding."""
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    for start in range(0, len(order), batch_size):
        yield order[start:start + batch_size]


def translate(model: nn.Module, sentences: Sequence[Sequence[str]], source_vocab: Vocab, target_vocab: Vocab,
              max_len: int = 60, batch_size: int = 100) -> list[list[str]]:
    """Greedy translations of tokenised sentences, in their order."""
    translations: list[list[str]] = [[] for _ in sentences]
    for chosen in by_length(sentences, batch_size):
        batch = collate(encode_pairs([(sentences[i], []) for i in chosen], source_vocab, target_vocab))
        ids, _ = greedy(model, batch.source, max_len)
        for i, row in zip(chosen, ids.tolist(), strict=True):
            translations[i] = target_vocab.decode(row)
    return translations


def attention_matrices(model: nn.Module, pairs: Sequence, source_vocab: Vocab, target_vocab: Vocab,
                       batch_size: int = 100) -> list[Tensor]:
    """What the model looks at while it is made to write the reference (*forced* decoding).

    Args:
        model: a model with attention.
        pairs: sentence pairs (first two fields: source and target tokens).
        source_vocab, target_vocab: their vocabularies.
        batch_size: sentences at a time.

    Returns:
        For each pair the weights ``(len(target), len(source) + 1)``; the last column is the end symbol of the source.

    Raises:
        ValueError: if the model has no attention.
    """
    matrices: list[Tensor] = [torch.empty(0)] * len(pairs)
    for chosen in by_length([source for source, *_ in pairs], batch_size):
        batch = collate(encode_pairs([pairs[i] for i in chosen], source_vocab, target_vocab))
        with evaluating(model):
            _, weights = model(batch.source.to(device_of(model)), batch.target[:, :-1].to(device_of(model)))
        if weights is None:
            raise ValueError("this model has no attention, so there are no weights to read.")
        for i, matrix in zip(chosen, weights.cpu(), strict=True):
            matrices[i] = matrix[:len(pairs[i][1]), :len(pairs[i][0]) + 1]
    return matrices
