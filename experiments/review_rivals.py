"""Lesson 05 on SST-2: the rivals of fine-tuning, each with its own settings.

``COURSE_DATA=folder python experiments/review_rivals.py`` measures, on one thread, on the sentences that
`real_reviews.py` trains on, and writes ``review_rivals.json``. Fine-tuning's settings were chosen on 1,500 further
sentences; here those sentences choose for its rivals, too, and for each size and seed anew: the layer and ``C`` of
frozen features, the kind of counts, and, for a Transformer from random weights, the learning rate and when to stop.

That Transformer has 2 layers and is 128 wide, and its head reads the mean of all pieces. The network that was
pre-trained, 6 layers and 384 wide, from random weights, is tried at 200 sentences and one seed: it is slow. Rates and
longest trainings are those of a first run at seed 0, in which 1e-3 was ahead of 3e-4 (for 6 layers it was the other way
round) and eight and six epochs of 1,000 and 2,000 sentences were too few.
"""

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from real_reviews import MAX_LEN, Rows, batches, chunks, features, read, set_aside, subset
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from course_utils import bert, setup
from course_utils.claims.stored import store
from course_utils.data.wordpiece import WordPiece

EPOCHS = {50: 30, 200: 15, 1000: 16, 2000: 12}             # at most: the development sentences say when to stop
RATES, LOOKS, WARMUP = (1e-3, 2e-3), 8, 20
SMALL = replace(bert.BASE, d_model=128, n_heads=4, n_layers=2, d_ff=256, dropout=0.0)
SAME = replace(bert.BASE, d_model=384, n_heads=12, n_layers=6, d_ff=1536, dropout=0.0)
SAME_RATES, SAME_EPOCHS = (3e-4,), 20
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1)
COUNTS = {f"{kind}, {n} word{'s' * (n > 1)}{name}": (kind, n, value)
          for kind, values in {"logistic regression": (0.1, 1, 10), "naive Bayes": (1,)}.items()
          for n in (1, 2) for value in values for name in [f", C={value:g}" if kind[0] == "l" else ""]}


class Newborn(nn.Module):
    """A BERT with random weights for the pieces of the training sentences; its head, a linear layer, reads their mean.

    A piece that no training sentence has is read as ``[UNK]``. Weights begin with the original's deviation times
    ``sqrt(768 / d_model)``, as in `pretraining.new_bert`.
    """

    def __init__(self, config, known: Tensor, vocab_size: int, unknown: int):
        super().__init__()
        known = torch.cat([torch.tensor([unknown]), known[known != unknown]])
        table = torch.zeros(vocab_size, dtype=torch.long)
        table[known] = torch.arange(len(known))
        self.register_buffer("table", table)
        self.trunk, self.head = bert.Bert(len(known), config), nn.Linear(config.d_model, 2)
        for weight in self.trunk.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.02 * math.sqrt(768 / config.d_model))

    def forward(self, ids: Tensor, mask: Tensor, segments: Tensor) -> Tensor:
        """``(B, T)`` each -> logits ``(B, 2)``."""
        x, there = self.trunk(self.table[ids], mask, segments).x, mask.unsqueeze(-1)
        return self.head((x * there).sum(dim=1) / there.sum(dim=1))


def encode(tokenizer: WordPiece, rows: Rows) -> list[tuple[tuple[Tensor, ...], Tensor]]:
    """Batches of rows, of similar length."""
    groups = chunks([len(text) for text, _ in rows], 64)
    return [(tokenizer.batch([rows[i][0] for i in group], max_len=MAX_LEN), torch.tensor([rows[i][1] for i in group]))
            for group in groups]


@torch.inference_mode()
def accuracy(model: nn.Module, encoded: Sequence[tuple[tuple[Tensor, ...], Tensor]]) -> float:
    """The share of rows whose label has the higher logit."""
    right = [model(*texts).argmax(dim=-1) == labels for texts, labels in encoded]
    return float(torch.cat(right).float().mean())


def looks(model: nn.Module, todo: list, rate: float, n_looks: int) -> Iterator[int]:
    """Train with Adam, warm-up and then a constant rate; stop for a look `n_looks` times. Yields the step."""
    optimizer = torch.optim.Adam(model.parameters(), rate, betas=(0.9, 0.98), fused=True)
    stops = {round(len(todo) * (i + 1) / n_looks) for i in range(n_looks)}
    for step, (texts, labels) in enumerate(todo, start=1):
        optimizer.param_groups[0]["lr"] = rate * min(1, step / WARMUP)
        optimizer.zero_grad()
        F.cross_entropy(model(*texts), labels).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step in stops:
            yield step


def from_random(config, tokenizer: WordPiece, rows: Rows, development: list, test: list, epochs: int, seed: int,
                rates: Sequence[float] = RATES, n_looks: int = LOOKS) -> dict:
    """Rate, step and accuracies where the development sentences are best."""
    todo, best = batches(rows, tokenizer, epochs, seed), {"development": 0.0}
    known = torch.unique(torch.cat([texts[0].flatten() for texts, _ in todo]))
    for rate in rates:
        torch.manual_seed(seed)
        model = Newborn(config, known, len(tokenizer.vocab), tokenizer.ids["[UNK]"])
        for step in looks(model, todo, rate, n_looks):
            if (found := accuracy(model, development)) > best["development"]:
                best = {"development": found, "rate": rate, "epochs": round(epochs * step / len(todo), 2),
                        "accuracy": round(accuracy(model, test), 4)}
    return best | {"development": round(best["development"], 4)}


def counting(kind: str, n_words: int, value: float):
    """A learner on counts of words, or of words and pairs of neighbours."""
    learner = LogisticRegression(C=value, max_iter=1000) if kind[0] == "l" else MultinomialNB(alpha=value)
    return make_pipeline(CountVectorizer(ngram_range=(1, n_words)), learner)


def best_of(learners: dict, train: tuple, development: tuple, test: tuple) -> tuple[str, float]:
    """Which of the learners is best on the development sentences, and its accuracy on the test.

    `learners`: name -> (learner, inputs to train on, to develop on, to test on); the others are labels.
    """
    scored = {name: learner.fit(x, train).score(x_dev, development)
              for name, (learner, x, x_dev, _) in learners.items()}
    best = max(scored, key=scored.get)
    learner, *_, x = learners[best]
    return best, float(learner.score(x, test))


class Part:
    """Sentences as texts, labels, batches and vectors of all layers."""

    def __init__(self, model: bert.Bert, tokenizer: WordPiece, rows: Rows):
        self.texts, self.labels = [text for text, _ in rows], np.array([label for _, label in rows])
        self.encoded, self.mean = encode(tokenizer, rows), features(model, tokenizer, self.texts)[1]


def measure(rows: Rows, development: Part, test: Part, sizes: Sequence[int], seed: int, same: Sequence[int]) -> dict:
    """Size -> method -> accuracy and what was chosen."""
    seed = setup(seed)
    model, tokenizer = bert.load()
    rows, found = subset(rows, max(sizes), seed), {}
    train = Part(model, tokenizer, rows)
    for n in sizes:
        y = train.labels[:n], development.labels, test.labels
        layers = {f"layer {layer}, C={C:g}": (
            make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=1000)),
            train.mean[:n, layer], development.mean[:, layer], test.mean[:, layer])
            for layer in range(train.mean.shape[1]) for C in PENALTIES}
        last = {name: learner for name, learner in layers.items() if name.startswith(f"layer {len(model.layers)}")}
        counts = {name: (counting(*how), train.texts[:n], development.texts, test.texts)
                  for name, how in COUNTS.items()}
        row = {}
        for method, learners in (("features", layers), ("features, last layer", last), ("counts", counts)):
            chosen, right = best_of(learners, *y)
            row[method] = {"chosen": chosen, "accuracy": round(right, 4)}
        row["random weights"] = from_random(SMALL, tokenizer, rows[:n], development.encoded, test.encoded, EPOCHS[n],
                                            seed)
        if n in same:
            row["random weights, 6 layers"] = from_random(SAME, tokenizer, rows[:n], development.encoded[::4],
                                                          test.encoded, SAME_EPOCHS, seed, SAME_RATES, n_looks=5)
        found[str(n)] = row
        print(f"seed {seed}, {n} sentences:", row, flush=True)
    return found


def main(arguments: list[str] | None = None) -> None:
    """Measure at every seed and store."""
    parser = argparse.ArgumentParser(description="The rivals of fine-tuning on SST-2, each with its own settings.")
    parser.add_argument("--sizes", type=int, nargs="+", choices=EPOCHS, default=list(EPOCHS), help="training sentences")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="default: 0 1 2")
    parser.add_argument("--same", type=int, nargs="*", default=[200],
                        help="sizes at which 6 layers are tried, too, at the first seed (default: 200)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"), help="default: %(default)s")
    options = parser.parse_args(arguments)
    rows, development = set_aside(read("train"))
    test = read("val")
    model, tokenizer = bert.load()
    parts = Part(model, tokenizer, development), Part(model, tokenizer, test)
    found = [measure(rows, *parts, options.sizes, seed, options.same if seed == options.seeds[0] else ())
             for seed in options.seeds]
    store(options.out, "python experiments/review_rivals.py", options.seeds,
          {"development_sentences": len(development), "validation_sentences": len(test), "by_seed": found})


if __name__ == "__main__":
    main()
