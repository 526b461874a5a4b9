"""The script behind the interval of lesson 04's bet: which models it trains, and what its bootstrap says."""

import importlib
import json
import random
import sys
from types import SimpleNamespace

import pytest

from course_utils.claims.stored import EXPERIMENTS, stored

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("rivals_resampled")


def test_the_models_are_those_of_the_bet():
    longer = stored("rivals_longer").results["models"][script.TRANSFORMER]["final"]
    (rate, dropout), steps, models = script.settings(script.TRANSFORMER)
    assert {(rate, dropout, steps)} == {(run["rate"], run["dropout"], run["steps"]) for run in longer}
    assert script.TRANSFORMER in models
    (rate, dropout), steps, models = script.settings(script.NAME)
    deeper = stored("rivals_deeper").results["runs"]
    assert (rate, dropout, script.SEED, steps) in {(run["rate"], run["dropout"], run["seed"], run["steps"])
                                                   for run in deeper}
    assert models == {script.NAME: script.Deeper}


@pytest.mark.parametrize(("wrong", "is_clear"), [(0.7, True), (0.2, False)])
def test_a_difference_is_told_from_chance(wrong, is_clear):
    """Each system spoils some of eighty sentences: ours a fifth, theirs as many or more."""
    draw = random.Random(0)
    references = [" ".join(draw.choices("abcdefgh", k=8)) for _ in range(80)]
    ours, theirs = ([f"{words[:7]} z z z z" if draw.random() < share else words for words in references]
                    for share in (0.2, wrong))
    found = script.compare({"ours": ours, "theirs": theirs}, references, samples=200)
    assert (found["ours"]["bleu"] > found["theirs"]["bleu"] + 10) == is_clear
    assert (found["p"] < 0.05) == is_clear
    assert found["ours"]["half_interval"] > 0


def test_what_one_model_wrote_waits_for_the_other(monkeypatch, tmp_path):
    calls, stores = [], []
    captions = SimpleNamespace(test=[(["je"], ["I"])])
    monkeypatch.setattr(script, "Captions", lambda: captions)
    monkeypatch.setattr(script, "written", lambda captions, name: calls.append(name) or ["I"])
    monkeypatch.setattr(script, "compare", lambda both, references: {"both": [*both], "references": references})
    monkeypatch.setattr(script, "store", lambda *given: stores.append(given))
    script.main(["--model", script.TRANSFORMER, "--folder", str(tmp_path)])
    assert (calls, stores) == ([script.TRANSFORMER], [])
    script.main(["--folder", str(tmp_path)])
    assert calls == [script.TRANSFORMER, script.NAME]
    assert stores[0][3] == {"samples": 1000, "sentences": 1, "both": calls, "references": ["I"]}
    assert {json.loads(file.read_text())[0] for file in tmp_path.iterdir()} == {"I"}


def test_the_stored_scores_are_about_those_of_the_bet():
    """The same seed on another machine ends within rounding's reach."""
    results = stored("rivals_resampled").results
    longer, deeper = stored("rivals_longer").results["models"], stored("rivals_deeper").results["runs"]
    then = {script.TRANSFORMER: longer[script.TRANSFORMER]["final"][0]["bleu"], script.NAME: deeper[1]["bleu"]}
    assert {name: results[name]["bleu"] for name in then} == pytest.approx(then, abs=1)
    assert results["samples"] == script.SAMPLES
