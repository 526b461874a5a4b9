"""The little BERT, its classifier and their batches."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from course_utils import bert
from course_utils.data import wordpiece
from course_utils.pretraining import (
    LITTLE,
    batches_of,
    class_loss,
    classifier_on,
    copy_trunk,
    held_out,
    in_order,
    masked_lm,
    masker,
    new_bert,
    predicted,
)
from course_utils.training import fit

SENTENCES = [f"the {noun} is {kind} ." for noun in ("queen", "law", "city", "letter") for kind in ("new", "old", "red")]
LONGER = replace(LITTLE, max_len=80)


@pytest.fixture(scope="module")
def pieces():
    return wordpiece.train(SENTENCES, 80)


def test_special_pieces_are_never_masked_and_words_are(pieces):
    ids, mask, _ = pieces.batch([SENTENCES[0], "the queen"])
    special = torch.isin(ids, torch.tensor([pieces.ids[p] for p in ("[PAD]", "[CLS]", "[SEP]")]))
    asked = torch.zeros_like(mask)
    for seed in range(60):
        _, targets = masker(pieces)(ids, torch.Generator().manual_seed(seed))
        asked |= targets != -100
    assert not asked[special].any()
    assert asked[~special].all()


def test_a_short_text_always_has_something_to_guess(pieces):
    model, loss = new_bert(len(pieces), seed=0), masked_lm(pieces, seed=0)
    batch, = batches_of(pieces, ["queen"], 1, seed=0)
    for _ in range(20):                                                     # a piece is masked in 15 of 100
        mean, count = loss(model, batch)
        assert mean.isfinite()
        assert count >= 1
    nothing = pieces.batch([""])[0]
    with pytest.raises(ValueError, match="no piece that can be masked"):
        masker(pieces)(nothing, torch.Generator().manual_seed(0))


@pytest.mark.parametrize("use", [
    lambda pieces, texts: batches_of(pieces, texts, 2, seed=0),
    lambda pieces, texts: held_out(new_bert(len(pieces), seed=0), pieces, texts),
    lambda pieces, texts: predicted(classifier_on(new_bert(len(pieces), seed=0), seed=0), pieces, texts)])
def test_no_text_and_one_string_are_refused(pieces, use):
    with pytest.raises(ValueError, match="texts is empty"):
        use(pieces, [])
    with pytest.raises(TypeError, match="texts is one string, 'the queen'"):
        use(pieces, "the queen")


@pytest.mark.parametrize("use", [
    lambda pieces, texts, **limit: batches_of(pieces, texts, 2, seed=0, **limit),
    lambda pieces, texts, **limit: held_out(new_bert(len(pieces), 0, LONGER), pieces, texts, **limit),
    lambda pieces, texts, **limit: predicted(classifier_on(new_bert(len(pieces), 0, LONGER), 0), pieces, texts,
                                             **limit)])
def test_a_text_that_is_too_long_is_named_and_not_cut(pieces, use):
    many = " ".join(["queen"] * 70)
    with pytest.raises(ValueError, match=r"'queen queen .* has 72 pieces with \[CLS\] and \[SEP\]; expected at most "
                                         r"max_len=64\. Cut it"):
        use(pieces, ["the queen", many, "a law"])
    with pytest.raises(ValueError, match="has 73 pieces"):
        use(pieces, [(many[:240], many[240:])])
    use(pieces, ["the queen", many, "a law"], max_len=72)


def test_batches_hold_every_text_once_with_its_label(pieces):
    labels = [i % 2 for i in range(len(SENTENCES))]
    batches = batches_of(pieces, SENTENCES, 5, seed=0, labels=labels)
    read = [(" ".join(pieces.vocab[i] for i in row[keep].tolist()[1:-1]), int(label))
            for batch in batches for row, keep, label in zip(batch.ids, batch.mask, batch.labels, strict=True)]
    assert sorted(read) == sorted((" ".join(pieces.tokenize(s)), y) for s, y in zip(SENTENCES, labels, strict=True))


def test_pairs_have_two_segments(pieces):
    batch, = batches_of(pieces, [("the queen", "is old ."), ("a law", "is new .")], 2, seed=0)
    assert set(batch.segments[batch.mask].tolist()) == {0, 1}


def test_a_text_may_have_a_second_one_and_its_neighbours_none(pieces):
    texts = ["the queen", ("a law", "is new ."), "the city is old .", ("the letter", "is red .")]
    wanted = {(text if isinstance(text, str) else text[0]): pieces.encode(*([text] if isinstance(text, str) else text))
              for text in texts}
    for order in (texts, texts[::-1]):
        batch, = batches_of(pieces, order, 4, seed=0)
        rows = [tuple(part[keep].tolist() for part in (ids, segments))
                for ids, segments, keep in zip(batch.ids, batch.segments, batch.mask, strict=True)]
        assert sorted(rows) == sorted(wanted.values())
        classifier = classifier_on(new_bert(len(pieces), seed=0), seed=0)
        assert predicted(classifier, pieces, order).tolist() == [
            int(predicted(classifier, pieces, [text])) for text in order]


def test_batches_are_of_similar_length_and_in_random_order(pieces):
    texts = [" ".join(["queen"] * n) for n in range(1, 41)]

    def lengths(seed):
        return [batch.mask.sum(dim=1).tolist() for batch in batches_of(pieces, texts, 4, seed)]

    assert all(max(batch) - min(batch) == 3 for batch in lengths(0))
    assert lengths(0) == lengths(0)
    assert sorted(lengths(0)) == sorted(lengths(1))
    assert len({str(order) for order in (lengths(0), lengths(1), sorted(lengths(0)))}) == 3


def test_it_learns_to_guess(pieces):
    model = new_bert(len(pieces), seed=0)
    before, _ = held_out(model, pieces, SENTENCES)
    fit(model, batches_of(pieces, SENTENCES, 12, seed=0), 60, lr=3e-3, loss=masked_lm(pieces, 0), live=False)
    assert held_out(model, pieces, SENTENCES)[0] < before - 1
    assert held_out(model, pieces, SENTENCES) == held_out(model, pieces, SENTENCES)             # the same masks


def test_a_classifier_learns_on_a_copy(pieces):
    model, labels = new_bert(len(pieces), seed=0), [int("old" in s) for s in SENTENCES]
    kept = {name: weight.clone() for name, weight in model.state_dict().items()}
    classifier = classifier_on(model, seed=0)
    fit(classifier, batches_of(pieces, SENTENCES, 4, 0, labels), 60, lr=3e-3, loss=class_loss, live=False)
    assert predicted(classifier, pieces, SENTENCES).tolist() == labels
    assert all(torch.equal(kept[name], weight) for name, weight in model.state_dict().items())


def test_what_is_measured_has_no_dropout(pieces):
    """And afterwards the model learns on, if it did."""
    model = new_bert(len(pieces), seed=0, config=replace(LITTLE, dropout=0.5))
    classifier = classifier_on(model, seed=0)
    with torch.no_grad():
        classifier.head.weight.mul_(100)
    learning = held_out(model.train(), pieces, SENTENCES), predicted(classifier.train(), pieces, SENTENCES * 8)
    assert model.training
    assert classifier.training
    assert learning[0] == held_out(model.eval(), pieces, SENTENCES)
    assert torch.equal(learning[1], predicted(classifier.eval(), pieces, SENTENCES * 8))


def test_the_same_seed_gives_the_same_first_weights(pieces):
    heads = [classifier_on(new_bert(len(pieces), seed), seed).head.weight for seed in (1, 1, 2)]
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])


def test_a_copied_trunk_computes_the_same_and_freezes_what_it_is_told():
    original = bert.Bert(30, LITTLE)
    trunk = copy_trunk(original, n_frozen=1)
    ids = torch.randint(5, 30, (2, 6))
    torch.testing.assert_close(trunk(ids, None).x, original(ids, None).x)
    trains = {name for name, p in trunk.named_parameters() if p.requires_grad}
    assert not any(name.startswith(("token", "position", "segment", "layers.0")) for name in trains)
    assert {name.split(".")[0] for name in trains} == {"layers", "norm", "pooler"}
    assert all(p.requires_grad for p in original.parameters())


def test_every_epoch_has_every_row_once_in_another_order():
    rows = [SimpleNamespace(text="word " * n) for n in range(37)]
    batches = in_order(rows, epochs=2, seed=0)
    assert len(batches) == 6
    halves = [[row for batch in half for row in batch] for half in (batches[:3], batches[3:])]
    assert all(sorted(map(id, half)) == sorted(map(id, rows)) for half in halves)
    assert halves[0] != halves[1]
