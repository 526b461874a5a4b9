"""Sentences whose verb agrees, or not: no answer leaks, and the kinds are what their names say."""

import random

import pytest

from course_utils.data import agreement
from course_utils.data.agreement import HARD, ONE_NOUN, OTHER, SAME


@pytest.fixture(scope="module")
def texts():
    return agreement.texts(seed=0)


@pytest.mark.parametrize(("sentence", "kind"), [
    ("the minister is new .", ONE_NOUN),
    ("a student of the doctor was old .", SAME),
    ("the students of the minister are old .", HARD["p"]),
    ("the student of the ministers is old .", HARD["s"]),
])
def test_a_sentence_is_of_its_kind(sentence, kind):
    words, at, found = agreement.find_verb(sentence)
    assert found == kind
    assert words[at] in OTHER


@pytest.mark.parametrize("sentence", ["a student of the ministers is old .", "the queen signed the law .",
                                      "the minister writes that the law is new ."])
def test_a_sentence_that_gives_itself_away_or_has_another_verb_is_left_out(sentence):
    assert agreement.find_verb(sentence) is None


def test_what_is_tested_was_neither_read_nor_labelled(texts):
    read, unseen = texts
    tests, labels = agreement.questions(unseen, 0, (25, 100))
    tested = {frozenset(s.split()) - set(OTHER) for rows in tests.values() for s, _ in rows}
    assert not set(read) & set(unseen)
    asked = {s for rows in tests.values() for s, _ in rows}
    assert not asked & {s for rows in labels.values() for s, _ in rows}
    assert len(tested) > 100
    assert {n: len(rows) for n, rows in labels.items()} == {25: 25, 100: 100}


def test_about_half_is_wrong_and_only_the_verbs_number(texts):
    items = agreement.by_kind(texts[1])[ONE_NOUN][:400]
    rows = agreement.judged(items, random.Random(0))
    assert 150 < sum(label for _, label in rows) < 250
    for (words, at), (sentence, label) in zip(items, rows, strict=True):
        changed = [(a, b) for a, b in zip(words, sentence.split(), strict=True) if a != b]
        assert changed == ([] if label else [(words[at], OTHER[words[at]])])


def test_the_neighbour_misleads_in_hard_sentences_only(texts):
    read, unseen = texts
    kinds = agreement.by_kind(unseen)
    assert agreement.by_neighbour(read, kinds[ONE_NOUN]) > 0.9
    assert all(agreement.by_neighbour(read, kinds[kind]) < 0.2 for kind in HARD.values())


def test_a_neighbour_that_saw_both_forms_as_often_is_wrong():
    """Never, or once each: it does not tell."""
    seen = ["the laws are new .", "the laws is new .", "the queen is old ."]
    asked = [(["the", noun, verb, "old", "."], 2)
             for noun, verb in (("laws", "are"), ("city", "is"), ("queen", "is"), ("queen", "are"))]
    assert [agreement.by_neighbour(seen, [item]) for item in asked] == [0, 0, 1, 0]
    assert agreement.by_neighbour(seen, asked) == 1 / 4


def test_too_few_sentences_are_an_error(texts):
    with pytest.raises(ValueError, match=r"too few sentences for \[100000\] labels: \d+ hard and"):
        agreement.questions(texts[1], 0, (100_000,))


def test_sentences_without_be_come_only_when_asked_for():
    some, every = (agreement.sentences("school", 400, 0, every_verb) for every_verb in (False, True))
    assert all(OTHER.keys() & set(s.split()) for s in some)
    assert not all(OTHER.keys() & set(s.split()) for s in every)
