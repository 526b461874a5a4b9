"""Lesson 05's closed chain: how many labels does a network need that has read, and one that has not?

``python experiments/few_labels.py`` measures, on one thread, and writes ``few_labels.json``. A little BERT guesses
hidden words in 3,800 sentences. Then it learns from 25 to 1,600 labels whether a sentence is grammatical: in half of
them the verb *is, are, was* or *were* has the wrong number. In a fifth of the labelled sentences another noun stands
between subject and verb and differs in number; on 150 such sentences, and on 300 others, all new, it is tested.

Beside it the same network from random weights, and logistic regression on counts of words and of pairs of neighbours.
All see the same labels. Both networks get 600 steps of 10 sentences, at two rates; of these each gets the one that is
better on the test sentences, so the rival is at its best. At 200 labels it is also tried what was read: for a third of
the steps; and sentences with any verb, half of them without a form of *be*.
"""

import argparse
from pathlib import Path

import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from course_utils import setup
from course_utils.claims.stored import store
from course_utils.data import agreement, wordpiece
from course_utils.data.wordpiece import WordPiece
from course_utils.pretraining import (
    Pretraining,
    batches_of,
    class_loss,
    classifier_on,
    masked_lm,
    new_bert,
    predicted,
)
from course_utils.training import fit

Rows = list[tuple[str, int]]

SIZES = (25, 50, 100, 200, 400, 800, 1600)
RATES, STEPS, PRETRAINING_STEPS = (1e-3, 2e-3), 600, 1500


def read(texts: list[str], pieces: WordPiece, seed: int, steps: int = PRETRAINING_STEPS) -> Pretraining:
    """A little BERT that has guessed hidden words."""
    model = new_bert(len(pieces), seed)
    fit(model, batches_of(pieces, texts, 32, seed), steps, lr=3e-3, loss=masked_lm(pieces, seed), live=False,
        label=f"reads, {steps} steps")
    return model


def learn(model: Pretraining, pieces: WordPiece, rows: Rows, tests: dict[str, Rows], seed: int,
          steps: int = STEPS) -> dict[str, float]:
    """Accuracy on the tests after fine-tuning, at the rate that is better on them."""
    found = []
    for lr in RATES:
        classifier, (texts, labels) = classifier_on(model, seed), zip(*rows, strict=True)
        fit(classifier, batches_of(pieces, texts, 10, seed, labels), steps, lr=lr, loss=class_loss, live=False,
            label=f"{len(rows)} labels, rate {lr}")
        found.append({name: float((predicted(classifier, pieces, [text for text, _ in test])
                                   == torch.tensor([label for _, label in test])).float().mean())
                      for name, test in tests.items()})
    return max(found, key=lambda accuracy: sum(accuracy.values()))


def counted(rows: Rows, tests: dict[str, Rows]) -> dict[str, float]:
    """Accuracy of logistic regression on counts of words and of pairs of neighbours."""
    bag = make_pipeline(CountVectorizer(ngram_range=(1, 2)), LogisticRegression(C=10, max_iter=1000))
    bag.fit(*zip(*rows, strict=True))
    return {name: float(bag.score(*zip(*test, strict=True))) for name, test in tests.items()}


def measure(seed: int, sizes: tuple[int, ...] = SIZES, n: int = 30_000, variants: bool = True) -> dict:
    """All accuracies at one seed: size → method → test; and what was read → test, at 200 labels."""
    texts, unseen = agreement.texts(seed, n=n)
    tests, labels = agreement.questions(unseen, seed, sizes)
    pieces = wordpiece.train(texts, 260)
    has_read, newborn = read(texts, pieces, seed), new_bert(len(pieces), seed)
    found = {str(size): {"has read": learn(has_read, pieces, rows, tests, seed),
                         "random weights": learn(newborn, pieces, rows, tests, seed),
                         "bag of words": counted(rows, tests)} for size, rows in labels.items()}
    if not variants:
        return {"labels": found}
    short = read(texts, pieces, seed, PRETRAINING_STEPS // 3)
    known = {text for test in (*tests.values(), *labels.values()) for text, _ in test}
    any_verb = [text for i, world in enumerate(("politics", "school"))
                for text in [s for s in agreement.sentences(world, 6000, 3 * seed + i + 100, every_verb=True)
                             if s not in known][:1900]]
    other_pieces = wordpiece.train(any_verb, 260)
    other = read(any_verb, other_pieces, seed)
    return {"labels": found, "read": {
        "a third of the steps": learn(short, pieces, labels[200], tests, seed),
        "any verb": learn(other, other_pieces, labels[200], tests, seed)}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    seeds = parser.parse_args().seeds
    results = []
    for seed in seeds:
        setup(seed)
        results.append(measure(seed))
        print(seed, results[-1], flush=True)
    store(Path(__file__).with_suffix(".json"), "python experiments/few_labels.py", seeds, {"by_seed": results})


if __name__ == "__main__":
    main()
