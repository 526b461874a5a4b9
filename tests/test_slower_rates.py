"""The script behind lesson 01's lower learning rates: what it trains, and what is stored."""

import importlib
import json
import sys

from course_utils.claims.stored import EXPERIMENTS, stored

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("slower_rates")


class Lesson:
    """Lesson 01 without training: a model is its width and its rate."""

    def __init__(self, seed):
        assert seed == 0

    def trained(self, width, steps, rate):
        assert steps == 3000
        return width, rate

    def validation_loss(self, model):
        return model[1]

    def bleu_by_length(self, model):
        return {"all": model[0]}


def test_each_width_is_trained_at_each_rate_and_the_command_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(script, "Lesson", Lesson)
    script.main(["--widths", "8", "16", "--rates", "0.2", "0.1", "--out", str(tmp_path / "rates.json")])
    written = json.loads((tmp_path / "rates.json").read_text())
    assert written["command"] == "python experiments/slower_rates.py --widths 8 16 --rates 0.2 0.1 --steps 3000"
    assert written["results"]["by_width_and_rate"]["16"] == {
        "0.2": {"validation_loss": 0.2, "bleu": {"all": 16}}, "0.1": {"validation_loss": 0.1, "bleu": {"all": 16}}}


def test_what_is_stored_has_the_groups_that_the_first_search_has():
    rows, first = stored("slower_rates").results["by_width_and_rate"], stored("bottleneck").results["bleu"]
    for width, by_rate in rows.items():
        for run in by_rate.values():
            assert run["bleu"].keys() == first[width]["3000"][0].keys()
