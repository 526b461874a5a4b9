"""The script behind lesson 04's order of norms: what it trains, and what is stored."""

import importlib
import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from course_utils.claims.stored import EXPERIMENTS, stored
from course_utils.data import train_test
from course_utils.training import trapezoid

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("norm_order")


@pytest.mark.slow
def test_a_run_says_what_came_out(monkeypatch):
    monkeypatch.setattr(script, "train_test", lambda *_, seed: train_test(4000, 40, seed=seed))
    run = script.train("post-LN", 50, 6e-3, steps=20, seed=0)
    assert 4 < run["loss"] < 8
    assert 0 <= run["bleu"] < 20
    assert len(run["curve"]) == 2


def test_both_orders_are_trained_alike(monkeypatch):
    """Nothing weakens one of them on the way from its setting to `fit`."""
    given = []

    def fit(model, batches, steps, *, lr, schedule, label, **rest):
        order = [batch.target.tolist() for batch in batches]
        given.append((model.config.pre_norm, steps, lr, schedule.func, schedule.keywords,
                      (replace(model.config, pre_norm=True), rest, order)))
        return SimpleNamespace(loss=[1.0] * steps)

    monkeypatch.setattr(script, "fit", fit)
    monkeypatch.setattr(script, "train_test", lambda *_, seed: train_test(200, 2, seed=seed))
    for setting in script.SETTINGS:
        script.train(*setting, steps=20, seed=0)
    assert [call[:-1] for call in given] == [(order == "pre-LN", 20, rate, trapezoid, {"warmup": warmup})
                                             for order, warmup, rate in script.SETTINGS]
    alike = [call[-1] for call in given]
    assert alike == alike[:1] * len(given)
    assert len(alike[0][-1]) > 1
    pre, post = ({setting[1:] for setting in script.SETTINGS if setting[0] == order} for order in ("pre-LN", "post-LN"))
    assert pre < post                                      # the rival has every setting, and one more


def test_each_setting_is_trained_at_all_seeds(tmp_path, monkeypatch):
    monkeypatch.setattr(script, "train", lambda *setting: {"trained": setting})
    script.main(["--steps", "20", "--seeds", "0", "1", "--out", str(tmp_path / "norms.json")])
    written = json.loads((tmp_path / "norms.json").read_text())
    assert written["command"] == "python experiments/norm_order.py --steps 20 --seeds 0 1"
    assert written["results"]["steps"] == 20
    assert [(row["order"], row["warmup"], row["rate"]) for row in written["results"]["rows"]] == list(script.SETTINGS)
    for row, setting in zip(written["results"]["rows"], script.SETTINGS, strict=True):
        assert row["runs"] == [{"trained": [*setting, 20, seed]} for seed in (0, 1)]


def test_what_is_stored_is_what_the_script_says():
    kept = stored("norm_order")
    assert [(row["order"], row["warmup"], row["rate"]) for row in kept.results["rows"]] == list(script.SETTINGS)
    for row in kept.results["rows"]:
        assert len(row["runs"]) == len(kept.seeds) == 5
        assert {len(run["curve"]) for run in row["runs"]} == {kept.results["steps"] // 10}
