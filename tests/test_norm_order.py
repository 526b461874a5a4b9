"""The script behind lesson 04's order of norms: what it trains, and what is stored."""

import importlib
import json
import sys

from course_utils.claims.stored import EXPERIMENTS, stored

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("norm_order")


def test_each_order_is_trained_without_and_with_warm_up_at_its_best_rate(tmp_path, monkeypatch):
    trained = []

    def train(order, warmup, lr, steps, seed):
        trained.append((order, warmup, lr, seed))
        return [float(order == "no norm") + abs(lr - 2e-3) + seed + (warmup == 0)] * steps

    monkeypatch.setattr(script, "train", train)
    script.main(["--steps", "20", "--seeds", "0", "1", "--out", str(tmp_path / "norms.json")])
    written = json.loads((tmp_path / "norms.json").read_text())
    assert written["command"] == "python experiments/norm_order.py --steps 20 --seeds 0 1"
    assert list(written["results"]["orders"]) == ["pre-LN", "post-LN", "no norm"]
    for order, rows in written["results"]["orders"].items():
        for warmup, row in rows.items():
            assert row["rate"] == 0.002
            assert row["loss"] == [(order == "no norm") + (warmup == "0") + seed for seed in (0, 1)]
            assert [len(curve) for curve in row["curves"]] == [2, 2]
            ran = [setting for name, *setting in trained if name == order and str(setting[0]) == warmup]
            assert ran == [[int(warmup), lr, 0] for lr in script.RATES] + [[int(warmup), 0.002, 1]]


def test_what_is_stored_is_what_the_script_says():
    kept = stored("norm_order")
    for rows in kept.results["orders"].values():
        for row in rows.values():
            assert len(row["loss"]) == len(row["curves"]) == len(kept.seeds) == 5
            best = min(row["loss_at_rate"], key=row["loss_at_rate"].get)
            assert (float(best), row["loss_at_rate"][best]) == (row["rate"], row["loss"][0])
