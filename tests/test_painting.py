"""The script behind lesson 08's painting with attention: its parts, what is stored, and the notebook beside it."""

import importlib
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

from course_utils.claims.stored import EXPERIMENTS, stored
from course_utils.course import course_root
from course_utils.exercises import EXERCISES
from course_utils.publish.notebooks import read
from course_utils.vision import Labelled

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("painting")

NOTEBOOK = course_root() / "notebooks" / "further" / "08_painting_with_attention.ipynb"


@pytest.fixture(scope="module")
def lesson() -> dict:
    """The classes that the notebook writes out."""
    known = {"torch": torch, "nn": nn, "F": F, "spectral_norm": spectral_norm,
             "attend_pixels": EXERCISES["attend_pixels"].solution}
    for cell in read(NOTEBOOK).cells:
        if cell.cell_type == "code" and cell.source.startswith("class "):
            exec(cell.source, known)
    return known


def test_the_notebook_trains_what_was_measured(lesson):
    noise, digits, images = torch.randn(3, 32), torch.tensor([0, 5, 9]), torch.rand(3, 8, 8)
    for name, arguments in (("Generator", (noise, digits)), ("Discriminator", (images, digits))):
        results = []
        for make in (lesson[name], lambda name=name: getattr(script, name)(script.PixelAttention)):
            torch.manual_seed(0)
            net = make()
            for part in net.modules():
                if hasattr(part, "gamma"):
                    nn.init.constant_(part.gamma, 0.5)
            results.append(net.eval()(*arguments))
        torch.testing.assert_close(*results)


def test_both_ways_have_as_many_weights():
    sizes = [sum(weights.numel() for weights in script.Generator(layer).parameters())
             for layer in script.LAYERS.values()]
    assert max(sizes) / min(sizes) < 1.01


def test_the_distance_is_that_of_the_matrix_root():
    def root(matrix):
        values, vectors = torch.linalg.eigh(matrix)
        return vectors * values.sqrt() @ vectors.T

    a, b = torch.randn(50, 4).double(), 1 + 2 * torch.randn(60, 4).double()
    cov_a, cov_b = a.T.cov(), b.T.cov()
    middle = root(root(cov_a) @ cov_b @ root(cov_a))
    expected = (a.mean(0) - b.mean(0)).square().sum() + (cov_a + cov_b - 2 * middle).trace()
    assert script.frechet(a, b) == pytest.approx(expected.item())
    assert script.frechet(a, a) == pytest.approx(0, abs=1e-9)


def test_a_few_steps_train_score_and_take_away():
    rng = torch.Generator().manual_seed(0)
    data = Labelled(torch.rand(40, 8, 8, generator=rng), torch.arange(40) % 10)
    judge = nn.Sequential(nn.Flatten(), nn.Linear(64, 6), nn.Linear(6, 10))
    G, gammas = script.train(script.PixelAttention, data, 3, seed=0)
    assert len(gammas) == 3
    assert gammas[-1] != 0
    trained = script.score(judge, script.painted(G, data), data)
    blind = script.without_looking(G, judge, data)
    assert trained.keys() == blind["gamma 0"].keys() == {"read as asked", "distance", "spread"}


def test_what_is_stored_has_both_ways_at_five_seeds():
    measured = stored("painting")
    for name in script.LAYERS:
        runs = measured.results[name]
        assert len(runs) == len(measured.seeds) == 5
        assert all(len(run["pictures"]) == 10 and {*map(len, run["pictures"])} == {64} for run in runs)
    assert all({"all pixels alike", "gamma 0"} <= run.keys() for run in measured.results["attention"])
