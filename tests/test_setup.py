"""``course_utils.setup``: one seed everywhere, one thread, one style."""

import random

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, PartialState

from course_utils import setup
from course_utils.plotting import INK, use_course_style


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    """No COURSE_SEED to begin with; threads, style and random numbers put back afterwards."""
    monkeypatch.delenv("COURSE_SEED", raising=False)
    threads, states = torch.get_num_threads(), (random.getstate(), np.random.get_state(), torch.get_rng_state())
    with plt.rc_context():
        yield
    torch.set_num_threads(threads)
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.set_rng_state(states[2])


def numbers(seed):
    """The seed in force and the first number of each generator after ``setup(seed)``."""
    return setup(seed), random.random(), float(np.random.rand()), torch.rand(1).item()


def test_every_generator_follows_the_seed():
    first, second, other = numbers(1), numbers(1), numbers(2)
    assert first == second
    for a, b in zip(first, other, strict=True):
        assert a != b


def test_a_seed_below_zero_is_a_seed_of_its_own():
    for a, b in zip(numbers(-1), numbers(1), strict=True):
        assert a != b


def test_without_an_argument_the_seed_is_zero():
    assert setup() == 0
    drawn = torch.rand(1).item()
    assert numbers(0)[3] == drawn


@pytest.mark.parametrize("given", ["7", " 7 "])
def test_the_environment_overrides_the_notebook(monkeypatch, given):
    expected = numbers(7)
    monkeypatch.setenv("COURSE_SEED", given)
    assert numbers(1) == expected
    assert expected[0] == 7


@pytest.mark.parametrize("given", ["", "  "])
def test_an_empty_variable_counts_as_not_set(monkeypatch, given):
    monkeypatch.setenv("COURSE_SEED", given)
    assert setup(3) == 3


@pytest.mark.parametrize("given", ["one", "1.5"])
def test_a_seed_that_is_no_whole_number_is_refused(monkeypatch, given):
    monkeypatch.setenv("COURSE_SEED", given)
    with pytest.raises(ValueError, match=f"COURSE_SEED is '{given}'; expected a whole number such as 1"):
        setup()


@pytest.mark.parametrize("seed", [-1, 2**32 + 5])
def test_seeds_that_numpy_alone_would_refuse(seed):
    assert numbers(seed) == numbers(seed)
    assert setup(seed) == seed


def test_one_thread_because_sums_depend_on_their_number():
    torch.set_num_threads(2)
    setup()
    assert torch.get_num_threads() == 1


def test_models_stay_on_the_cpu_where_there_is_a_card(monkeypatch):
    monkeypatch.delenv("ACCELERATE_USE_CPU", raising=False)
    monkeypatch.setattr(PartialState, "default_device", property(lambda state: torch.device("meta")))

    def device():
        AcceleratorState._reset_state(reset_partial_state=True)
        return Accelerator().device.type

    assert device() == "meta"
    setup()
    assert device() == "cpu"


def test_the_course_style_is_in_force():
    plt.rcdefaults()
    setup()
    style = dict(plt.rcParams)
    assert style["image.cmap"] == "cividis"
    assert INK in style["axes.prop_cycle"].by_key()["color"]
    plt.rcdefaults()
    use_course_style()
    assert dict(plt.rcParams) == style
