"""The course's own reviews: balance, split, wording, and how far a bag of words gets with them."""

import re
from collections import Counter, defaultdict
from itertools import combinations

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from course_utils.data import load_reviews
from course_utils.data.reviews import PHENOMENA

TRAIN, TEST = load_reviews("train"), load_reviews("test")
ALL = TRAIN + TEST


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z']+", text.lower()))


def test_sizes_and_names():
    assert (len(TRAIN), len(TEST)) == (630, 210)
    assert Counter(review.phenomenon for review in ALL) == {
        name: 336 if name == "plain" else 72 for name in PHENOMENA}
    assert {review.label for review in ALL} == {0, 1}
    assert load_reviews() == TRAIN
    with pytest.raises(ValueError, match="no split 'val'; expected one of train, test"):
        load_reviews("val")


@pytest.mark.parametrize("part", [TRAIN, TEST], ids=["train", "test"])
@pytest.mark.parametrize("field", ["phenomenon", "film"])
def test_half_of_everything_is_positive(part, field):
    labels = defaultdict(list)
    for review in part:
        labels[getattr(review, field)].append(review.label)
    assert {name: sum(found) / len(found) for name, found in labels.items()} == dict.fromkeys(labels, 0.5)


def test_no_film_is_in_both_parts():
    assert not {review.film for review in TRAIN} & {review.film for review in TEST}


def test_sentences_are_short_and_plainly_written():
    for review in ALL:
        assert 6 <= len(review.text.split()) <= 25, review
        assert re.fullmatch(r"[A-Z][A-Za-z ,.;:?!'-]*[.?!]", review.text), review
        assert "  " not in review.text, review


def test_no_two_sentences_are_alike():
    for a, b in combinations([words(review.text) for review in ALL], 2):
        assert len(a & b) <= 0.5 * len(a | b), (a, b)


def bag_of_words(train: list, test: list) -> list[int]:
    """Labels of ``test`` by logistic regression on the words that occur (1/2 |w|^2 added to the summed loss)."""
    ids = {word: i for i, word in enumerate(sorted(set().union(*(words(review.text) for review in train))))}

    def features(reviews):
        rows = torch.zeros(len(reviews), len(ids) + 1)
        for row, review in zip(rows, reviews, strict=True):
            row[[ids[word] for word in words(review.text) if word in ids] + [-1]] = 1     # the last is the bias
        return rows

    x, y = features(train), torch.tensor([float(review.label) for review in train])
    w = torch.zeros(x.shape[1], requires_grad=True)
    optimizer = torch.optim.LBFGS([w], max_iter=100, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        total = binary_cross_entropy_with_logits(x @ w, y, reduction="sum") + w.pow(2).sum() / 2
        total.backward()
        return total

    optimizer.step(loss)
    return (features(test) @ w > 0).int().tolist()


def test_a_bag_of_words_reads_plain_sentences_and_hardly_the_others():
    # four folds by film, since 18 test sentences for each phenomenon are few
    folds = {film: i // 7 % 4 for i, film in enumerate(sorted({review.film for review in ALL}))}
    right = defaultdict(list)
    for fold in range(4):
        train = [review for review in ALL if folds[review.film] != fold]
        test = [review for review in ALL if folds[review.film] == fold]
        for review, label in zip(test, bag_of_words(train, test), strict=True):
            right[review.phenomenon].append(review.label == label)
    # distance from guessing in standard deviations of guessing; 3 is beyond chance, 2 is not
    distance = {name: (sum(found) - len(found) / 2) / (len(found) / 4) ** 0.5 for name, found in right.items()}
    print({name: f"{sum(found) / len(found):.3f}" for name, found in right.items()}, distance)
    assert distance["plain"] > 3
    assert distance["negation"] < 2
    assert distance["irony"] < 2
