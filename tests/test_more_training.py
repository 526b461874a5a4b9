"""The script behind lesson 01's longer training: what its classifiers and gradients measure, and what is stored."""

import importlib
import sys

import pytest
import torch
import torch.nn.functional as F

from course_utils.claims.stored import EXPERIMENTS, stored
from course_utils.exercises import EXERCISES
from course_utils.seq2seq import Seq2Seq

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("more_training")


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Seq2Seq(12, 13, attention=None, bidirectional=False, d_model=6)


@pytest.fixture
def ids():
    ids = torch.randint(4, 12, (80, 36), generator=torch.Generator().manual_seed(0))
    ids[:, -1] = 2
    return ids


def test_the_lessons_probe_is_the_one_that_students_write(model, ids):
    x, labels = model.encoder(ids)[1].detach(), ids[:, 3]
    ones = F.pad(x, (0, 1), value=1.0)
    expected = EXERCISES["probe"].solution(ones[:60], F.one_hot(labels[:60]).float(), ones[60:])
    assert torch.equal(script.least_squares(x[:60], labels[:60], x[60:]), expected)


def test_logistic_regression_reads_what_is_there_in_a_simple_form(monkeypatch):
    monkeypatch.setattr(script, "N_CHOOSE", 20)
    labels = torch.randint(0, 3, (120,), generator=torch.Generator().manual_seed(0))
    x = F.one_hot(labels).float() + 5
    assert torch.equal(script.logistic(x[:80], labels[:80], x[80:]), labels[80:])


def test_the_last_word_reaches_an_untrained_vector_most_and_little_comes_from_far(model, ids, monkeypatch):
    monkeypatch.setattr(script, "N_FIT", 60)
    found = script.shares(model, ids)
    assert len(found) == 34
    assert sum(found) == pytest.approx(100, abs=1)
    assert found[-1] == max(found)
    assert 0 < script.through_34_steps(model, ids) < 1e-4


def test_what_is_stored_has_the_runs_and_what_the_lesson_draws():
    results, widths = stored("more_training").results, stored("bottleneck").results["bleu"]
    runs = results["runs"]
    assert [(run["width"], run["steps"], run["rate"]) for run in runs] == list(script.RUNS[:len(runs)])
    assert all(run["bleu"].keys() == widths["128"]["3000"][0].keys() for run in runs)
    for run in (results["untrained"], *runs[:2]):
        assert [len(curve) for curve in run["read, 15 words"].values()] == [14, 14]
        assert len(run["share of the gradient, 15 words"]) == 14
    assert [len(pair["source"].split()) for pair in runs[0]["translations"]] == [6, 30]
