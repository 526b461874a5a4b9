"""A small attention, step by step: four queries, five keys."""

import torch

from course_utils.widgets import StepThrough

WORDS = ["le", "chat", "a", "dormi"]
SOURCE = ["the", "cat", "slept", ".", "<eos>"]
GENERATOR = torch.Generator().manual_seed(4)
Q, K, V = torch.randn(4, 6, generator=GENERATOR), torch.randn(5, 6, generator=GENERATOR), torch.randn(
    5, 3, generator=GENERATOR)
WEIGHTS = torch.randn(2, 4, 5, generator=GENERATOR).mul(2).softmax(-1)
MASK = torch.tensor([True, True, True, True, False])


def numbers(**changes):
    return StepThrough(**{"queries": Q, "keys": K, "values": V, "rows": WORDS, "columns": SOURCE, **changes})


def writing(**changes):
    return StepThrough.decoding(**{"weights": WEIGHTS, "rows": WORDS, "columns": SOURCE, **changes})


BLIND = torch.tensor([[True] * 5, [False] * 5, [True] * 5, [False, True, False, True, True]])  # query 1 sees nothing
