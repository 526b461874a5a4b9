"""The script behind lesson 05's rivals on real sentences: its parts, a run in miniature, and what is stored."""

import importlib
import sys

import pytest
import torch

from course_utils import bert
from course_utils.claims.stored import EXPERIMENTS, stored
from course_utils.data import load_reviews

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("review_rivals")

REVIEWS = [(review.text, review.label) for review in load_reviews()]


@pytest.fixture(scope="module")
def tokenizer():
    return bert.load()[1]


def newborn(tokenizer, rows):
    torch.manual_seed(0)
    known = torch.unique(tokenizer.batch([text for text, _ in rows]).ids)
    return script.Newborn(script.SMALL, known, len(tokenizer.vocab), tokenizer.ids["[UNK]"])


def test_a_piece_that_no_training_sentence_has_is_read_as_unknown(tokenizer):
    model = newborn(tokenizer, [("a dull film", 0)])
    assert model.trunk.token_embed.num_embeddings == len("[UNK] [CLS] a dull film [SEP]".split())
    with torch.inference_mode():
        found = [model(*tokenizer.batch([text])) for text in ("a dull boat", "a dull [UNK]", "a dull film")]
    torch.testing.assert_close(found[0], found[1])
    assert not torch.allclose(found[0], found[2])


def test_padding_changes_no_logit(tokenizer):
    model = newborn(tokenizer, REVIEWS[:20])
    with torch.inference_mode():
        alone = model(*tokenizer.batch(["A dull film."]))
        padded = model(*tokenizer.batch(["A dull film.", "A long and quiet film about a ferry."]))[:1]
    torch.testing.assert_close(padded, alone, atol=1e-5, rtol=1e-5)


def test_random_weights_learn_the_sentences_they_see(tokenizer):
    rows = REVIEWS[:16]
    encoded = script.encode(tokenizer, rows)
    assert script.from_random(script.SMALL, tokenizer, rows, encoded, encoded, 30, 0)["accuracy"] > 0.9


def test_the_development_sentences_choose_and_the_test_does_not(monkeypatch, tokenizer):
    """Looks at 2 rates: on the development sentences the third is best, on the test another one."""
    seen = {"development": iter([0.5, 0.6, 0.8, 0.7]), "test": iter([0.9, 0.3, 0.4])}
    monkeypatch.setattr(script, "accuracy", lambda _, which: next(seen[which]))
    monkeypatch.setattr(script, "looks", lambda *_: iter([1, 2]))
    found = script.from_random(script.SMALL, tokenizer, REVIEWS[:32], "development", "test", 1, 0)
    assert found == {"development": 0.8, "rate": script.RATES[1], "epochs": 0.5, "accuracy": 0.4}


def test_of_learners_the_best_on_the_development_sentences_is_taken():
    class Learner:
        def __init__(self, scores):
            self.scores = scores

        def fit(self, x, y):
            return self

        def score(self, x, y):
            return self.scores[x]

    scores = {"a": {"d": 0.6, "t": 0.9}, "b": {"d": 0.7, "t": 0.5}}
    learners = {name: (Learner(each), "x", "d", "t") for name, each in scores.items()}
    assert script.best_of(learners, None, None, None) == ("b", 0.5)


def test_a_run_in_miniature_is_stored(monkeypatch, tmp_path):
    monkeypatch.setattr(script, "read", lambda split: REVIEWS[:80] if split == "train" else REVIEWS[80:110])
    monkeypatch.setattr(script, "set_aside", lambda rows: (rows[30:], rows[:30]))
    monkeypatch.setattr(script, "EPOCHS", {50: 1})
    monkeypatch.setattr(script, "SAME", script.SMALL)
    script.main(["--sizes", "50", "--same", "50", "--seeds", "0", "1", "--out", str(tmp_path / "here.json")])
    first, second = stored("here", tmp_path).results["by_seed"]
    methods = {"features", "features, last layer", "counts", "random weights"}
    assert set(first["50"]) == methods | {"random weights, 6 layers"}
    assert set(second["50"]) == methods
    assert all(0 <= row["accuracy"] <= 1 for row in first["50"].values())


def test_what_is_stored_was_measured_on_the_sentences_of_fine_tuning():
    rivals, tuned = stored("review_rivals"), stored("real_reviews")
    assert rivals.seeds == tuned.seeds
    assert rivals.results["validation_sentences"] == tuned.results["validation_sentences"] == 872
    for run in rivals.results["by_seed"]:
        assert run.keys() == tuned.results["training_sentences"].keys()
