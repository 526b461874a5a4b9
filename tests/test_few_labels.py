"""The script behind lesson 05's closed chain: a run in miniature, and what is stored."""

import importlib
import sys

import pytest

from course_utils.claims.stored import EXPERIMENTS, stored

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("few_labels")


def test_a_run_in_miniature(monkeypatch):
    for trains in (script.read, script.learn):
        monkeypatch.setattr(trains, "__defaults__", (2,))       # steps
    found = script.measure(0, sizes=(25,), n=20_000, variants=False)["labels"]["25"]
    assert set(found) == {"has read", "random weights", "bag of words"}
    assert all(set(accuracy) == {"hard", "others"} and all(0 <= a <= 1 for a in accuracy.values())
               for accuracy in found.values())


@pytest.mark.parametrize("size", ["200", "400"])
def test_what_is_stored_has_five_seeds_and_all_methods(size):
    runs = stored("few_labels").results["by_seed"]
    assert len(runs) == 5
    assert all(set(run["labels"][size]) == {"has read", "random weights", "bag of words"} for run in runs)
    assert all(set(run["read"]) == {"a third of the steps", "any verb"} for run in runs)
