"""Random inputs that several lessons' exercises need: sizes that differ, so that swapped axes cannot hide."""

import torch
from torch import Tensor


def sizes(rng: torch.Generator, n: int) -> list[int]:
    """`n` different sizes from 2 to 7 (`n` is at most 6)."""
    return (torch.randperm(6, generator=rng)[:n] + 2).tolist()


def randn(rng: torch.Generator, *shape: int) -> Tensor:
    """Standard normal numbers."""
    return torch.randn(shape, generator=rng)
