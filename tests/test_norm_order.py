"""The script behind lesson 04's order of norms: what it trains, and what is stored."""

import importlib
import json
import sys

from course_utils.claims.stored import EXPERIMENTS, stored

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("norm_order")


def test_each_order_is_trained_at_its_best_setting(tmp_path, monkeypatch):
    trained = []

    def train(order, warmup, lr, steps, seed):
        trained.append((order, warmup, lr, seed))
        return [float(order == "no norm") + abs(lr - 2e-3) + seed + (warmup == 0)] * steps

    monkeypatch.setattr(script, "train", train)
    script.main(["--steps", "20", "--seeds", "0", "1", "--out", str(tmp_path / "norms.json")])
    written = json.loads((tmp_path / "norms.json").read_text())
    assert written["command"] == "python experiments/norm_order.py --steps 20 --seeds 0 1"
    for order, row in written["results"]["orders"].items():
        assert (row["warmup"], row["rate"]) == (40, 0.002)
        assert row["loss"] == [(order == "no norm") + seed for seed in (0, 1)]
        assert [len(curve) for curve in row["curves"]] == [2, 2]
        assert [setting for name, *setting in trained if name == order][-1] == [40, 0.002, 1]
        assert len(row["tried"]) == 6


def test_what_is_stored_is_what_the_script_says():
    kept = stored("norm_order")
    for row in kept.results["orders"].values():
        assert len(row["loss"]) == len(row["curves"]) == len(kept.seeds) == 5
        best = min(row["tried"], key=lambda tried: tried["loss"])
        assert (best["warmup"], best["rate"], best["loss"]) == (row["warmup"], row["rate"], row["loss"][0])
