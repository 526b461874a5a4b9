"""The script behind lesson 02's location trained longer: what it trains, and what is stored."""

import importlib
import sys

import torch

from course_utils.attention import AdditiveScore, LocationScore
from course_utils.claims.stored import EXPERIMENTS, stored
from course_utils.data.grammar import EXAMPLE
from course_utils.seq2seq import LuongDecoder

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("location")


class Lesson:
    """Lesson 02's data in small: one sentence is too long for section 7."""

    seed, vocabs = 3, ("abcdefg", "abcdefgh")
    train = [EXAMPLE._replace(source=("a",) * length) for length in (5, 26, 27)]
    train_ids = [(torch.full((length + 1,), 5), torch.tensor([1, 5, 2])) for length in (5, 26, 27)]


def test_both_are_luongs_decoder_and_only_the_score_differs(monkeypatch):
    given = []
    monkeypatch.setattr(script, "fit",
                        lambda model, batches, steps, **settings: given.append((batches, steps, settings)))
    models = [script.trained(score, Lesson(), 1120) for score in ("additive", "location")]
    assert all(type(model.decoder) is LuongDecoder for model in models)
    assert [type(model.decoder.score) for model in models] == [AdditiveScore, LocationScore]
    for name, weights in models[0].encoder.state_dict().items():
        torch.testing.assert_close(models[1].encoder.state_dict()[name], weights)
    for batches, steps, settings in given:
        assert (steps, settings["lr"]) == (1120, 8e-3)
        assert max(batch.source.size(1) for batch in batches) <= 27           # 26 words and <eos>


def test_what_is_stored_has_both_scores_at_five_seeds():
    measured = stored("location")
    results = measured.results
    assert measured.seeds == [0, 1, 2, 3, 4]
    assert results["steps"] == 1120
    assert [len(results[score]) for score in ("additive", "location")] == [5, 5]
    assert max(run["AER"] for run in results["additive"]) < min(run["AER"] for run in results["location"])
