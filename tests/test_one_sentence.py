"""The script behind lesson 04's timed step: equal models, on batches of one sentence and of several."""

import importlib
import sys

import pytest

from course_utils.claims.stored import EXPERIMENTS, stored
from course_utils.seq2seq import Seq2Seq
from course_utils.transformer import Transformer

sys.path.insert(0, str(EXPERIMENTS))
script, steps_that_wait = map(importlib.import_module, ("one_sentence", "steps_that_wait"))


def test_both_have_as_many_parameters():
    lstm, transformer = (make() for make in script.MODELS.values())
    assert (type(lstm), type(transformer)) == (Seq2Seq, Transformer)
    sizes = [sum(weights.numel() for weights in model.parameters()) for model in (lstm, transformer)]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.005)


def test_a_step_is_a_loss_of_every_word(monkeypatch):
    seen = {}

    def loss(model, batch):
        seen[type(model).__name__] = batch.source.shape, batch.target.shape
        return [len(seen)]

    monkeypatch.setattr(script, "sequence_loss", loss)
    assert [work() for work in script.steps(3, 7).values()] == [1, 2]
    assert seen == dict.fromkeys(("Seq2Seq", "Transformer"), ((3, 7), (3, 8)))


def test_a_ratio_is_the_median_of_the_rounds_own(monkeypatch):
    """The machine gets slower from round to round; the first round does not count."""
    times = iter([9, 1, 4, 2, 10, 1, 30, 10])
    monkeypatch.setattr(steps_that_wait, "seconds", lambda work, threads: next(times))
    assert script.compare({"a": None, "b": None}, rounds=3) == {"a": 10, "b": 2, "ratio": 3}


def test_the_stored_cases_are_those_of_the_script(monkeypatch, tmp_path):
    results = stored("one_sentence").results
    monkeypatch.setattr(script, "steps", lambda sentences, length: (sentences, length))
    monkeypatch.setattr(script, "compare", lambda case, rounds: [*case, rounds])
    script.main(["--rounds", "2", "--out", str(tmp_path / "here.json")])
    cases = stored("here", tmp_path).results
    assert (cases["length"]["160"], cases["sentences"]["64"]) == ([1, 160, 2], [64, 80, 2])
    assert all([*results[kind]] == [*cases[kind]] for kind in ("length", "sentences"))
