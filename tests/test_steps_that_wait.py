"""The script behind lesson 04's words per second: what it counts, and what it compares."""

import importlib
import sys

import pytest
import torch
from torch import nn

from course_utils.claims.stored import EXPERIMENTS, stored

sys.path.insert(0, str(EXPERIMENTS))
steps = importlib.import_module("steps_that_wait")


def test_products_are_counted_on_the_longest_path_only():
    x, w = torch.randn(3, 3, requires_grad=True), torch.randn(3, 3, requires_grad=True)
    assert steps.waits((x @ w).sum()) == 1
    assert steps.waits((x @ w @ w + x @ w).sum()) == 2                 # side by side is not one after the other
    assert steps.waits((nn.Linear(3, 3)(x @ w) * 2).sum()) == 2


@pytest.fixture
def short(monkeypatch):
    """Batches of 64 tokens."""
    monkeypatch.setattr(steps, "TOKENS", 64)


def test_an_lstm_waits_for_every_word_and_a_transformer_for_its_layers(short):
    def counted(n_layers, length):
        return steps.counted(steps.stacks(n_layers, length))
    shallow, longer, deeper = counted(2, 8), counted(2, 32), counted(4, 8)
    assert shallow["Transformer"] == longer["Transformer"] == deeper["Transformer"] / 2
    assert longer["LSTM"] == 4 * shallow["LSTM"] == 2 * 32
    assert deeper["LSTM"] == 2 * shallow["LSTM"]


def test_stacks_have_as_many_parameters(short):
    deep, cell = steps.Stack(2), nn.LSTM(steps.D_LSTM, steps.D_LSTM, 2)
    ours, theirs = (sum(weights.numel() for weights in model.parameters()) for model in (deep, cell))
    assert ours == pytest.approx(theirs, rel=0.01)


def test_no_position_of_a_stack_sees_the_next():
    x = torch.randn(1, 6, steps.D_MODEL, requires_grad=True)
    steps.Stack(2)(x)[:, 2].sum().backward()
    assert x.grad[:, 3:].abs().max() == 0 < x.grad[:, 2].abs().max()


def test_a_ratio_is_the_median_of_the_rounds_own(monkeypatch, short):
    """The machine gets slower from round to round; the first is always twice as fast, two threads are no faster."""
    times = iter([2, 2, 4, 4, 1, 1, 2, 2, 10, 10, 20, 20, 3, 3, 6, 6])
    monkeypatch.setattr(steps, "seconds", lambda work, threads: next(times))
    found = steps.compare(steps.stacks(2, 8), rounds=3)
    assert found["ratio"] == {"1": 2, "2": 2}
    assert found["Transformer"]["gain_of_threads"] == 1
    assert found["LSTM"]["tokens_per_second"]["1"] == round(64 / 6)


def test_the_stored_cases_are_those_of_the_script():
    results = stored("steps_that_wait").results
    assert list(results["translators"]) == [str(length) for length in steps.LENGTHS]
    assert list(results["stacks"]) == [str(n) for n in steps.LAYERS]
    assert all(list(row) == [str(length) for length in steps.STACK_LENGTHS] for row in results["stacks"].values())
