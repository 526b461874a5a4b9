"""The script behind lesson 04's *Would the loss have told?*: three models of the notebook's own code, trained alike."""

import importlib
import sys
from types import SimpleNamespace

import pytest
import torch

from course_utils import data
from course_utils.claims.stored import EXPERIMENTS, stored
from course_utils.data import train_test

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("planted_bugs")
PARTS = {"A": {"NormA"}, "B": set(), "C": {"AttentionC"}}


@pytest.fixture
def few_sentences(monkeypatch):
    monkeypatch.setattr(data, "train_test", lambda *_, seed: train_test(300, 70, seed=seed))
    monkeypatch.setenv("COURSE_SEED", "0")


@pytest.fixture
def trained(few_sentences, monkeypatch, tmp_path):
    """What each of the three was trained with, and what was stored of it."""
    given, kept = {}, []

    def fit(model, batches, *, label, **settings):
        weights = [parameter.sum().item() for parameter in model.parameters()]
        parts = {type(part).__name__ for layer in model.decoder.layers for part in layer.modules()}
        order = [batch.target.tolist() for batch, _ in zip(batches, range(3), strict=False)]
        given[label] = parts, weights, order, {**settings, "loss": settings["loss"].__name__}
        return SimpleNamespace(loss=[2.0, 1.0] * 10)

    monkeypatch.setattr(script, "fit", fit)
    lesson = script.lesson

    def few(seed):
        names = lesson(seed)
        return names | {"translate": lambda model, sources: [["oui"] for _ in sources]}

    monkeypatch.setattr(script, "lesson", few)
    monkeypatch.setattr(script, "store", lambda path, command, seeds, results: kept.append((command, results)))
    script.main(["--seeds", "1", "--out", str(tmp_path / "here.json")])
    return given, kept[-1]


def test_the_three_differ_in_their_part_only(trained):
    given, (command, results) = trained
    assert list(given) == [f"{name}, seed 1" for name in PARTS]
    (_, *first), *others = given.values()
    assert all(other == first for _, *other in others)
    for (parts, *_), planted in zip(given.values(), PARTS.values(), strict=True):
        assert {part for part in parts if part in {"NormA", "AttentionC"}} == planted
    assert first[-1] == {"steps": script.STEPS, "lr": 6e-3, "loss": "loss", "live": False}
    assert command == "python experiments/planted_bugs.py --steps 1000 --seeds 1"
    assert results["models"]["A"] == [{"seed": 1, "loss": [1.5, 1.5], "bleu": 0.0,
                                        "short": {"sentences": 10, "alone": 0.0, "beside": 0.0, "changed": 0}}]


def test_only_the_axis_of_the_norm_differs(few_sentences):
    """A's norm gives LayerNorm's result where there is only one position and as many features as positions."""
    names = script.lesson(0)
    torch.manual_seed(0)
    norm = names["nn"].LayerNorm(5)
    torch.nn.init.normal_(norm.weight)
    x = torch.randn(1, 5, 5)
    plain = torch.nn.functional.layer_norm(x.mT, (5,)).mT
    norm.__class__ = names["NormA"]
    torch.testing.assert_close(norm(x), plain * norm.weight + norm.bias)


def test_a_translation_that_depends_on_its_neighbours_is_counted(few_sentences):
    test = script.lesson(0)["test"]
    short = [pair for pair in test if 4 <= len(pair.source) <= 9]
    assert len(short) > 3
    given = []

    def translate(sentences):                                   # right, but for two sentences that are not alone
        given.append(sentences)
        right = [next(pair.target for pair in test if pair.source == source) for source in sentences]
        return right if len(sentences) == 1 else [["non"], ["non"], *right[2:]]

    measured = script.neighbours(translate, test)
    assert measured.pop("beside") < measured.pop("alone") == 100
    assert measured == {"sentences": len(short), "changed": 2}
    *alone, (*beside, longest) = given
    assert [sentence for one in alone for sentence in one] == beside == [pair.source for pair in short]
    assert len(longest) == max(len(pair.source) for pair in test)


def test_the_stored_runs_are_those_of_the_script():
    measured = stored("planted_bugs")
    assert measured.results["steps"] == script.STEPS
    assert list(measured.results["models"]) == [*PARTS]
    for runs in measured.results["models"].values():
        assert [run["seed"] for run in runs] == list(measured.seeds) == [0, 1, 2, 3, 4]
        assert all(len(run["loss"]) == script.STEPS / 10 for run in runs)
        assert all(run["short"]["sentences"] == 60 for run in runs)
