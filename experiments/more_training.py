"""Lesson 01 after more training: what width and steps reach together, and what a probe then reads from the vector.

``python experiments/more_training.py`` trains the lesson's encoder-decoder from seed 0, on one thread: 128 numbers as
long as the lesson (2,000 steps) and ten times as long, 256 numbers for 20,000 steps and 512 for 3,000 at the lower
learning rate, which suited 256 numbers. It writes ``more_training.json`` after every training (35 minutes
in all): BLEU by length, and for 128 numbers, untrained and trained, how often two linear classifiers read each word of
sentences of 15 words from the vector, and each word's share in the gradient of the vector.
"""

import argparse
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from bottleneck import Lesson
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from course_utils.claims.stored import store
from course_utils.data.grammar import corpus, train_test
from course_utils.data.text import encode_pairs
from course_utils.decoding import evaluating
from course_utils.exercises.lesson_01 import probe
from course_utils.seq2seq import Seq2Seq

RUNS = ((128, 2000, 8e-3), (128, 20_000, 8e-3), (256, 20_000, 4e-3), (512, 3000, 4e-3))     # width, steps, rate
PROBED = 128                                            # width
N_FIT, N_CHOOSE = 2400, 480                             # sentences for the probes, of these to choose the penalty
WEAKNESS = (0.01, 0.1, 1.0, 10.0)                # of the penalty on the weights: scikit-learn's C


def fifteen_words(lesson: Lesson) -> torch.Tensor:
    """The 3,000 sentences of 15 words with which lesson 01 probes, new to the model: ids ``(3000, 16)`` with EOS."""
    train, test = train_test(20_000, 420, seed=lesson.seed)
    pairs = corpus(3000, 1000 + lesson.seed, min_len=15, max_len=15, exclude=[*train, *test])
    return torch.stack([source for source, _ in encode_pairs(pairs, *lesson.vocabs)])


def logistic(features: torch.Tensor, labels: torch.Tensor, test_features: torch.Tensor) -> torch.Tensor:
    """Labels ``(M,)`` by logistic regression; the penalty is the best of four on a fifth of the sentences."""
    mean, deviation = features.mean(dim=0), features.std(dim=0) + 1e-6
    x, x_test = ((part - mean) / deviation for part in (features, test_features))

    def fitted(weakness: float, n: int) -> LogisticRegression:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return LogisticRegression(C=weakness, max_iter=200).fit(x[:n].numpy(), labels[:n].numpy())

    n = len(x) - N_CHOOSE
    right = {c: fitted(c, n).score(x[n:].numpy(), labels[n:].numpy()) for c in WEAKNESS}
    return torch.from_numpy(fitted(max(right, key=right.get), len(x)).predict(x_test.numpy()))


def reading(model: Seq2Seq, ids: torch.Tensor) -> dict[str, list[float]]:
    """Percent of the test sentences whose word is read from the vector, by position, by both classifiers; and each
    word's share of the gradient of the vector, in percent."""
    with evaluating(model):
        vectors = model.encoder(ids)[1]                                                     # (3000, d)
    found: dict[str, list[float]] = {"least squares": [], "logistic regression": []}
    for place in range(ids.size(1) - 2):                                                    # no full stop, no EOS
        labels, truth = ids[:N_FIT, place], ids[N_FIT:, place]
        for name, classifier in (("least squares", probe), ("logistic regression", logistic)):
            read = classifier(vectors[:N_FIT], labels, vectors[N_FIT:])
            found[name].append(round(100 * float((read == truth).float().mean()), 1))
    torch.manual_seed(0)
    x = model.encoder.embed(ids[N_FIT:]).detach().requires_grad_()                          # (600, 16, d_embed)
    last = model.encoder.rnn(x)[1][0]                                                       # (600, d)
    (gradient,) = torch.autograd.grad((last * torch.randn(last.shape)).sum(), x)
    norms = gradient.norm(dim=-1).mean(dim=0)[:-2]
    found["share of the gradient"] = [round(float(share), 1) for share in 100 * norms / norms.sum()]
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, test, probe, and store after every model."""
    parser = argparse.ArgumentParser(description="Lesson 01 after more training; writes more_training.json.")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args(arguments)
    lesson = Lesson(0)
    ids = fifteen_words(lesson)
    frequent = F.one_hot(ids[:N_FIT]).sum(dim=0).argmax(dim=-1)                             # (16,)
    torch.manual_seed(lesson.seed)
    fresh = Seq2Seq(*map(len, lesson.vocabs), attention=None, bidirectional=False, d_model=PROBED)
    guessed = 100 * (ids[N_FIT:] == frequent).float().mean(dim=0)[:-2]
    results = {"most frequent word": [round(float(value), 1) for value in guessed],
               "untrained": reading(fresh, ids), "runs": []}
    for width, steps, rate in RUNS:
        started = time.process_time()
        model = lesson.trained(width, steps, rate)
        run = {"width": width, "steps": steps, "rate": rate, "cpu_seconds": round(time.process_time() - started),
               "validation_loss": round(lesson.validation_loss(model), 4), "bleu": lesson.bleu_by_length(model)}
        results["runs"].append(run | (reading(model, ids) if width == PROBED else {}))
        store(options.out, "python experiments/more_training.py", [lesson.seed], results)


if __name__ == "__main__":
    main()
