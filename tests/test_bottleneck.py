"""The script behind lesson 01's widths and steps: what it writes, the lessons that draw it can read."""

import importlib
import json
import sys

import pytest

from course_utils.claims.stored import EXPERIMENTS, stored

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("bottleneck")
NOTEBOOKS = EXPERIMENTS.parent / "notebooks"


class Lesson:
    """Lesson 01 without training: a model is its width, its steps and its rate. The best rate is 0.004."""

    def __init__(self, seed):
        self.seed = seed

    def trained(self, width, steps, rate):
        return width, steps, rate

    def validation_loss(self, model):
        return abs(model[2] - 4e-3)

    def bleu_by_length(self, model):
        width, steps, rate = model
        return {name: width + steps / 1000 + 100 * self.seed + 10_000 * (rate != 4e-3) for name in ("15-19", "35-40")}


@pytest.fixture
def repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(script, "Lesson", Lesson)
    script.main(["--out", str(tmp_path / "bottleneck.json")])
    return stored("bottleneck", tmp_path)


def source(lesson, begins):
    cells = json.loads(next(NOTEBOOKS.glob(f"{lesson}_*.ipynb")).read_text(encoding="utf-8"))["cells"]
    (found,) = (text for cell in cells if (text := "".join(cell["source"])).startswith(begins))
    return found


def test_bleu_is_that_of_the_best_rate_by_width_steps_and_seed(repeated):
    assert repeated.results["chosen_rates"] == dict.fromkeys(("64", "128", "256", "512"), 4e-3)
    bleu = repeated.results["bleu"]
    assert {width: list(by_steps) for width, by_steps in bleu.items()} == {
        "64": ["3000"], "128": ["600", "3000", "20000"], "256": ["600", "3000"], "512": ["600", "3000"]}
    assert [run["35-40"] for run in bleu["128"]["3000"]] == [131, 231, 331]
    assert [run["35-40"] for run in bleu["256"]["600"]] == [256.6]


def test_lesson_01_draws_a_repeated_measurement_in_the_order_of_its_steps(repeated):
    names = {"budgets": repeated, "stored": stored, "more": stored("more_training"), "print": lambda text: None}
    exec(source("01", "# stored, in three files"), names)
    steps = {width: list(runs) for width, runs in names["curves"].items()}
    assert steps["128"] == steps["256"] == [600, 3000, 20_000]
    assert steps.get("512", [600, 3000]) == [600, 3000]
    assert names["curves"]["128"][600]["35-40"] == 128.6


def test_lesson_02_finds_what_it_draws_in_a_repeated_measurement(repeated):
    assert 'stored("bottleneck").results["bleu"]["128"]["20000"]' in source("02", "# plot; stored: lesson 01's model")
    for steps in ("3000", "20000"):
        assert repeated.results["bleu"]["128"][steps][0]["35-40"] == 128 + int(steps) / 1000
