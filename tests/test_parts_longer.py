"""The script behind lesson 04's ablations in the long run: what it trains, and that it goes on where it stopped."""

import importlib
import json
import sys

import pytest

from course_utils.claims.stored import EXPERIMENTS, stored

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("parts_longer")


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """The trainings that the script asks for, none of which takes place."""
    asked = []

    def train(captions, part, layers, rate, steps, warmup, seed):
        assert (steps, warmup) == (4144, 300)
        asked.append((part, layers, rate, seed))
        return {"layers": layers, "rate": rate, "seed": seed, "bleu": 1.0}

    monkeypatch.setattr(script, "Captions", lambda: None)
    monkeypatch.setattr(script, "train", train)
    monkeypatch.setattr(script, "OUT", tmp_path / "longer.json")
    monkeypatch.setattr(script, "SETTINGS", {"no norm": [(2, 2e-3, 1), (2, 1e-3, 2)], "no positions": [(3, 2e-3, 1)]})
    return asked


def test_first_seeds_first_and_none_twice(trained):
    script.main()
    assert trained == [("no norm", 2, 2e-3, 0), ("no norm", 2, 1e-3, 0), ("no positions", 3, 2e-3, 0),
                       ("no norm", 2, 1e-3, 1)]
    script.main()
    assert len(trained) == 4


def test_started_again_it_goes_on(trained):
    script.main()
    everything = json.loads(script.OUT.read_text())
    everything["results"]["runs"].pop(1)
    script.OUT.write_text(json.dumps(everything))
    script.main()
    assert trained[4:] == [("no norm", 2, 1e-3, 0)]
    runs = stored("longer", script.OUT.parent).results["runs"]
    assert [(run["part"], run["seed"]) for run in runs] == [("no norm", 0), ("no positions", 0), ("no norm", 1),
                                                            ("no norm", 0)]
    assert all(run["version"] and run["date"] for run in runs)


def test_what_is_stored_is_what_the_script_would_train():
    kept = stored("parts_longer").results
    assert (kept["steps"], kept["warmup"]) == (script.STEPS, script.WARMUP)
    wanted = {(part, layers, rate, seed) for part, settings in script.SETTINGS.items()
              for layers, rate, n_seeds in settings for seed in range(n_seeds)}
    assert {(run["part"], run["layers"], run["rate"], run["seed"]) for run in kept["runs"]} == wanted
