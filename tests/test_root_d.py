"""The script behind *Why √d?*: the notebook's layer, all trained alike, and the rate chosen apart from the test."""

import importlib
import inspect
import json
import sys

import pytest
import torch

from course_utils.claims.stored import EXPERIMENTS, stored

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("root_d")
NOTEBOOK = EXPERIMENTS.parent / "notebooks" / "further" / "03_scale.ipynb"


@pytest.mark.parametrize("name", ["pairs_and_question", "Lookup", "answer_loss", "accuracy"])
def test_the_notebook_trains_the_same(name):
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert any(inspect.getsource(getattr(script, name)).strip() in "".join(cell["source"]) for cell in cells)


@pytest.mark.parametrize("d", script.RATES)
def test_all_ways_are_trained_alike(d, monkeypatch):
    """But for the division and the first W_q and W_k."""
    given = []

    def fit(model, batches, steps, *, lr, loss, label, live):
        one = torch.eye(d)[None]
        weights = model.attend(one, 2 * one, one, torch.ones(1, 1, d) > 0)[1].log()
        rest = dict(model.state_dict())
        first = rest.pop("W_q.weight"), rest.pop("W_k.weight")
        given.append((float(weights[0, 0, 0] - weights[0, 0, 1]), first,
                      (steps, lr, loss, [batch[0].tolist() for batch in batches],
                       {name: value.tolist() for name, value in rest.items()})))

    monkeypatch.setattr(script, "fit", fit)
    for way in script.WAYS:
        script.train(d, way, 1e-3, 20, seed=0)
    (divided, first, alike), (undivided, same, other), (smaller, less, third) = given
    assert alike == other == third
    assert len(alike[3]) == script.STEPS
    assert (divided, undivided, smaller) == pytest.approx((2 / d ** 0.5, 2, 2), rel=1e-4)
    for matrix, equal, small in zip(first, same, less, strict=True):
        assert torch.equal(matrix, equal)
        torch.testing.assert_close(small, matrix * d ** -0.25)


def test_the_rate_is_chosen_on_other_questions_than_the_test(tmp_path, monkeypatch):
    """The second rate is best where rates are chosen, the last one on the test."""
    def train(d, way, lr, steps, seed):
        place = script.RATES[d].index(lr)
        return 0.9 if place == 1 else 0.5, place + 10 * seed

    monkeypatch.setattr(script, "train", train)
    script.main(["--steps", "20", "--seeds", "0", "1", "--out", str(tmp_path / "root.json")])
    written = json.loads((tmp_path / "root.json").read_text())
    assert written["command"] == "python experiments/root_d.py --steps 20 --seeds 0 1"
    rows = written["results"]["rows"]
    assert [(row["d"], row["way"]) for row in rows] == [(d, way) for d in script.RATES for way in script.WAYS]
    for row in rows:
        assert [run["rate"] for run in row["runs"]] == [script.RATES[row["d"]][1]] * 2
        assert [run["accuracy"] for run in row["runs"]] == [1, 11]


def test_what_is_stored_is_what_the_script_says():
    kept = stored("root_d")
    assert kept.results["steps"] == script.STEPS
    assert [(row["d"], row["way"]) for row in kept.results["rows"]] == [(d, way) for d in script.RATES
                                                                       for way in script.WAYS]
    for row in kept.results["rows"]:
        assert len(row["runs"]) == len(kept.seeds) == 5
        for run in row["runs"]:
            assert list(run["chosen_on"]) == [str(rate) for rate in script.RATES[row["d"]]]
            assert run["chosen_on"][str(run["rate"])] == max(run["chosen_on"].values())
            assert run["accuracy"] == run["accuracy_at_rate"][str(run["rate"])]
