"""Checks that many modules share: each message says what was given, what was expected, and what to do."""

from collections.abc import Collection
from numbers import Integral, Real

import torch
from torch import Tensor, nn


def at_least(least: int, **sizes: int) -> None:
    """A ``ValueError`` that names the first size below ``least``; a ``TypeError`` if it is not a whole number."""
    for name, size in sizes.items():
        if not isinstance(size, Integral) or isinstance(size, bool):
            raise TypeError(f"{name} is {size!r}; expected a whole number, at least {least}.")
        if size < least:
            raise ValueError(f"{name} is {size}; expected at least {least}.")


def check_number(**numbers: float) -> None:
    """A ``TypeError`` that names the first that is not a number."""
    for name, number in numbers.items():
        if not isinstance(number, Real) or isinstance(number, bool):
            raise TypeError(f"{name} is {number!r:.40}, a {type(number).__name__}; expected a number, such as 0.1.")


def check_share(**shares: float) -> None:
    """A ``ValueError`` that names the first that is not from 0 to 1; a ``TypeError`` if it is not a number."""
    check_number(**shares)
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise ValueError(f"{name} is {share}; expected a share from 0 to 1.")


def at_least_one(**lists: Collection) -> None:
    """A ``ValueError`` that names the first empty list; a ``TypeError`` if it is a string."""
    for name, given in lists.items():
        if isinstance(given, str):
            raise TypeError(f"{name} is one string, {given!r:.60}; expected a list of strings: [{name}].")
        if len(given) == 0:
            raise ValueError(f"{name} is empty; expected a list with at least one item.")


def check_ids(**ids: Tensor) -> None:
    """A ``ValueError`` that names the first ids that are not ``(B, T)``; a ``TypeError`` if they are not a tensor of
    whole numbers."""
    for name, given in ids.items():
        if not isinstance(given, Tensor):
            raise TypeError(f"{name} is a {type(given).__name__}; expected a tensor of ids (B, T), such as "
                            "torch.tensor([[4, 5, 2]]). For sentences of several lengths: data.text.collate.")
        if given.is_floating_point() or given.dtype == torch.bool:
            raise TypeError(f"{name} has dtype {given.dtype}; expected ids, whole numbers: {name}.long().")
        if given.dim() != 2:
            raise ValueError(f"{name} has shape {tuple(given.shape)}; expected ids (B, T). For one sentence: "
                             f"{name}.unsqueeze(0).")


def check_length(model: nn.Module, length: int, max_len: int, shorten: str = "the sequence") -> None:
    """A ``ValueError`` if a model is given more positions than it has; ``shorten``: what, or how."""
    if length > max_len:
        raise ValueError(f"{length} positions, but this {type(model).__name__} has max_len={max_len}. Shorten "
                         f"{shorten}, or make the model with a larger max_len.")


def check_source(source: Tensor, is_word: Tensor) -> Tensor:
    """How many words each row of ``source (B, T_k)`` has, on the CPU; ``is_word``: where there is no padding.

    Raises:
        ValueError: if there is no row, one holds no word (says which), or padding stands before a word.
    """
    if len(source) == 0:
        raise ValueError(f"source has shape {tuple(source.shape)}; expected ids (B, T_k) of one sentence or more.")
    lengths = is_word.sum(dim=1).cpu()
    if not lengths.all():
        rows = (lengths == 0).nonzero().flatten().tolist()
        raise ValueError(f"source {tuple(source.shape)} has nothing but padding in rows {rows}; expected at least "
                         "one id that is not PAD. End each sentence with EOS (data.text.encode_pairs does), or "
                         "leave these rows out.")
    if (is_word[:, 1:] & ~is_word[:, :-1]).any():
        raise ValueError("source has padding before a word; padding stands at the end of a row. To reverse "
                         "sentences, turn each round before they are padded.")
    return lengths


def check_target(target: Tensor, src_mask: Tensor) -> None:
    """A ``ValueError`` if ``target (B, T_q)`` is empty or has another number of rows than the source (a single row
    would be broadcast)."""
    check_ids(target=target)
    if len(target) != len(src_mask):
        raise ValueError(f"target has {len(target)} rows, source {len(src_mask)}; expected as many.")
    if target.size(1) == 0:
        raise ValueError("target has no id; expected at least one, <bos>.")


def no_nan(logits: Tensor) -> None:
    """A ``FloatingPointError`` if one of a model's logits is NaN."""
    if logits.isnan().any():
        raise FloatingPointError("the model's logits are NaN. Was its training stopped because the loss was no number? "
                                 "Make the model anew and train it at a lower learning rate.")
