"""The script behind lesson 05's table on real sentences: its parts and a run in miniature."""

import importlib
import sys

import numpy as np
import pytest
import torch

from course_utils import bert
from course_utils.claims.stored import EXPERIMENTS, stored
from course_utils.data import load_reviews
from course_utils.training import fit

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("real_reviews")

REVIEWS = [(review.text, review.label) for review in load_reviews()]


@pytest.fixture(scope="module")
def trunk():
    return bert.load()


def test_subsets_are_nested_and_differ_by_seed():
    assert script.subset(REVIEWS, 50, 1) == script.subset(REVIEWS, 200, 1)[:50]
    assert script.subset(REVIEWS, 50, 1) != script.subset(REVIEWS, 50, 2)
    assert len(set(script.subset(REVIEWS, 200, 1))) == 200


def test_development_sentences_are_the_same_ones_always_and_never_trained_on():
    rows = [(f"sentence {i}", i % 2) for i in range(2000)]
    pool, development = script.set_aside(rows)
    assert len(development) == 1500
    assert sorted(pool + development) == sorted(rows)
    assert script.set_aside(rows) == (pool, development)
    assert sum(label for _, label in development) not in (0, 1500)


def test_words_are_joined_as_people_write_them(monkeypatch):
    monkeypatch.setattr(script, "load_sst2", lambda split: [("it wo n't `` do '' and is n't `so '", 0)])
    assert script.read("train") == [("it won't \" do \" and isn't 'so '", 0)]


def test_chunks_hold_every_index_once_and_go_by_length():
    lengths = [5, 1, 4, 2, 3]
    assert script.chunks(lengths, 2) == [[1, 3], [4, 2], [0]]


def test_features_are_those_of_each_sentence_alone(trunk):
    model, tokenizer = trunk
    texts = ["A dull film.", "Not for a second is this long and quiet film about a ferry boring.", "Bravo!"]
    cls, mean = script.features(model, tokenizer, texts)
    assert cls.shape == mean.shape == (3, 7, 384)
    for i, text in enumerate(texts):
        with torch.inference_mode():
            states = model(*tokenizer.batch([text]), need_states=True).states[0]       # (7, T, 384), no padding
        np.testing.assert_allclose(cls[i], states[:, 0], atol=1e-5)
        np.testing.assert_allclose(mean[i], states.mean(dim=1), atol=1e-5)


def test_the_layer_is_the_one_that_knows_the_label():
    rng = np.random.default_rng(0)
    vectors, labels = rng.normal(size=(60, 4, 8)).astype("float32"), np.arange(60) % 2
    vectors[:, 2, 0] = 3 * labels
    assert script.choose_layer(vectors, labels) == 2


def test_every_epoch_has_every_sentence_once():
    rows = REVIEWS[:40]
    made = script.batches(rows, bert.load()[1], 2, 0)
    assert [len(labels) for _, labels in made[:3]].count(script.BATCH) == 2
    assert sum(len(labels) for _, labels in made) == 80
    assert sum(int(labels.sum()) for _, labels in made) == 2 * sum(label for _, label in rows)


def test_the_frozen_part_reads_each_sentence_once_and_changes_no_logit(trunk):
    model, tokenizer = trunk
    classifier = script.Classifier(model)
    torch.nn.init.normal_(classifier.head.weight, std=0.1)
    read = []
    made = script.batches(REVIEWS[:40], tokenizer, 3, 0, lambda *e: read.append(len(e[0])) or classifier.lower(*e))
    assert sum(read) == 40
    assert [len(labels) for _, labels in made].count(script.BATCH) == 6
    with torch.no_grad():
        for (*encoded, known), _ in made[:3]:
            torch.testing.assert_close(classifier(*encoded, known), classifier(*encoded), atol=0, rtol=0)
            whole, there = classifier.trunk(*encoded).x, encoded[1].unsqueeze(-1)
            mean = (whole * there).sum(dim=1) / there.sum(dim=1)
            torch.testing.assert_close(classifier(*encoded, known), script.FACTOR * classifier.head(mean))


def test_a_classifier_learns_and_leaves_its_trunk_as_it_was(trunk):
    model, tokenizer = trunk
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    rows = REVIEWS[:16]
    torch.manual_seed(0)
    classifier = script.Classifier(model)
    todo = script.batches(rows, tokenizer, 30, 0)
    log = fit(classifier, todo, len(todo), lr=script.LR, loss=script.loss, schedule=script.SCHEDULE, live=False)
    assert log.loss[-1] < 0.7 * log.loss[0]
    assert script.accuracy(classifier, tokenizer, rows) > 0.9
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert torch.equal(classifier.trunk.token_embed.weight, model.token_embed.weight)
    same = [torch.equal(ours.feed_forward[0].weight, theirs.feed_forward[0].weight)
            for ours, theirs in zip(classifier.trunk.layers, model.layers, strict=True)]
    assert same == [True, True, False, False, False, False]                            # FROZEN = 2


def test_padding_changes_no_logit(trunk):
    model, tokenizer = trunk
    classifier = script.Classifier(model).eval()
    torch.nn.init.normal_(classifier.head.weight, std=0.1)
    with torch.no_grad():
        alone = classifier(*tokenizer.batch(["Bravo!"]))
        padded = classifier(*tokenizer.batch(["Bravo!", "A long and quiet film about a ferry."]))[:1]
    torch.testing.assert_close(padded, alone, atol=1e-4, rtol=1e-4)


def test_the_head_begins_the_same_for_every_sentence(trunk):
    model, tokenizer = trunk
    with torch.inference_mode():
        logits = script.Classifier(model)(*tokenizer.batch(["Bravo!", "Boring."]))
    assert torch.equal(logits[0], logits[1])


def test_random_weights_are_not_those_of_the_trunk(trunk):
    model, _ = trunk
    newborn = script.Classifier(model, pretrained=False)
    assert not torch.equal(newborn.trunk.token_embed.weight, model.token_embed.weight)
    assert all(weight.requires_grad for weight in newborn.parameters())


def test_a_run_in_miniature_is_stored(monkeypatch, tmp_path):
    monkeypatch.setattr(script, "load_sst2", lambda split: REVIEWS[:80] if split == "train" else REVIEWS[80:110])
    monkeypatch.setattr(script, "EPOCHS", {50: 1})
    monkeypatch.setattr(script, "DEVELOPMENT", 30)
    script.main(["--sizes", "50", "--seeds", "0", "1", "--out", str(tmp_path / "here.json")])
    measured = stored("here", tmp_path)
    assert measured.seeds == [0, 1]
    row = measured.results["training_sentences"]["50"]
    assert {len(scores) for scores in row["accuracy"].values()} == {2}
    assert set(row["accuracy"]) == set(script.METHODS)
    assert row["epochs"] == 1


@pytest.mark.parametrize(("options", "asked"), [([], REVIEWS[80:110]), (["--develop"], None)])
def test_only_develop_measures_on_development_sentences(monkeypatch, options, asked, tmp_path):
    seen = []
    monkeypatch.setattr(script, "load_sst2", lambda split: REVIEWS[:80] if split == "train" else REVIEWS[80:110])
    monkeypatch.setattr(script, "DEVELOPMENT", 30)
    monkeypatch.setattr(script, "measure", lambda rows, test, *_: seen.append((rows, test)) or ({}, {50: 0}, {50: 0.0}))
    script.main(["--sizes", "50", "--seeds", "0", "--out", str(tmp_path / "here.json"), *options])
    pool, development = script.set_aside(REVIEWS[:80])
    assert seen == [(pool, asked or development)]


def test_each_size_is_fine_tuned_on_its_own_sentences(monkeypatch):
    asked = []
    monkeypatch.setattr(script, "features", lambda model, tokenizer, texts: (np.ones((len(texts), 2, 2)),) * 2)
    monkeypatch.setattr(script, "fine_tune", lambda _, tokenizer, rows, epochs, seed: (asked.append((rows, epochs)), 0))
    monkeypatch.setattr(script, "accuracy", lambda *_: 0.5)
    rows = [(f"{i % 2} {i}", i % 2) for i in range(260)]
    script.measure(rows, rows[:20], [50, 200], 0)
    assert [(len(given), epochs) for given, epochs in asked] == [(50, 10), (200, 5)]
    assert asked[1][0][:50] == asked[0][0]


def test_epochs_have_different_orders(trunk):
    made = script.batches([(f"a film {i}", i % 2) for i in range(64)], trunk[1], epochs=3, seed=0)
    first, second, third = ([labels.data_ptr() for _, labels in made[start:start + 4]] for start in (0, 4, 8))
    assert sorted(first) == sorted(second) == sorted(third)
    assert not first == second == third


def test_a_feature_may_have_any_size():
    """Layers differ in size; the regression's penalty must not prefer the large ones."""
    x = np.random.default_rng(0).normal(size=(60, 3))
    y = (x[:, 0] > 0).astype(int)
    found, scaled = (script.regression().fit(given, y).predict_proba(given) for given in (x, x * [1000, 1, 0.001]))
    np.testing.assert_allclose(found, scaled, atol=1e-6)


def test_each_column_of_the_table_is_what_its_name_says(monkeypatch):
    """Vectors that know the label in the mean of layer 2 only."""
    rows = [(str(i % 2), i % 2) for i in range(60)]

    def features(model, tokenizer, texts):
        cls, mean = np.random.default_rng(len(texts)).normal(size=(2, len(texts), 7, 4)).astype("float32")
        mean[:, 2, 0] = 9 * np.array([int(text) for text in texts])
        return cls, mean

    monkeypatch.setattr(script, "features", features)
    monkeypatch.setattr(script, "fine_tune", lambda *_, pretrained=True: (pretrained, 0.0))
    monkeypatch.setattr(script, "accuracy", lambda tuned, *_: 0.9 if tuned else 0.1)
    monkeypatch.setattr(script, "bag_of_words", lambda *_: 0.2)
    found, layers, _ = script.measure(rows, rows[:40], [50], 0, newborn=[50])
    assert layers == {50: 2}
    assert found["mean, chosen layer", 50] == 1
    assert max(found["[CLS], last layer", 50], found["mean, last layer", 50]) < 0.8
    assert [found[name, 50] for name in ("bag of words", "fine-tuned", "random weights")] == [0.2, 0.9, 0.1]
