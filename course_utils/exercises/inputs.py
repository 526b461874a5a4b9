"""Random inputs that several lessons' exercises need: sizes that differ, so that swapped axes cannot hide."""

from collections.abc import Callable

import torch
from torch import Tensor

from ..data.text import BOS, EOS, PAD


def maker(make: Callable[..., tuple]) -> Callable[..., Callable[[torch.Generator], tuple]]:
    """A decorator: ``make(rng, …)`` is called in two steps, first with its options, then with rng for each input."""
    return lambda *options, **named: lambda rng: make(rng, *options, **named)


def sizes(rng: torch.Generator, n: int) -> list[int]:
    """`n` different sizes from 2 to 7 (`n` is at most 6)."""
    return (torch.randperm(6, generator=rng)[:n] + 2).tolist()


def number(rng: torch.Generator, low: int, high: int) -> int:
    """A whole number from `low` to `high` - 1, as `torch.randint` draws it."""
    return int(torch.randint(low, high, (), generator=rng))


def randn(rng: torch.Generator, *shape: int) -> Tensor:
    """Standard normal numbers."""
    return torch.randn(shape, generator=rng)


def targets(rng: torch.Generator, B: int | None = None) -> tuple[Tensor]:
    """Rows of BOS, words, EOS and padding, of which the last has none, the first two; a single row is a short one."""
    b, columns = sizes(rng, 2)
    B, columns = B or b, columns + 6                           # at most 7 rows, at least 8 columns
    target = torch.randint(EOS + 1, 40, (B, columns), generator=rng)
    ends = torch.randint(1, columns - 1, (B,), generator=rng)
    ends[-1], ends[0] = columns - 1, columns - 3
    target[:, 0] = BOS
    target[torch.arange(B), ends] = EOS
    return (target.masked_fill(torch.arange(columns) > ends[:, None], PAD),)
