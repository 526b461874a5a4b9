"""Lesson 01 after more training: what width and steps reach together, and what a probe then reads from the vector.

``python experiments/more_training.py`` trains the lesson's encoder-decoder from seed 0, on one thread: 128 numbers as
long as the lesson (2,000 steps) and ten times as long, 256 numbers for 20,000 steps and 512 for 3,000 at the lower
learning rate, which suited 256 numbers. It writes ``more_training.json`` after every training (35 minutes in all): BLEU
by length. For 128 numbers, untrained and trained, also how often linear classifiers read each word of sentences of 15
and of 35 words from the vector, each word's share in the gradient of the vector, and the fraction of a gradient that
passes 34 steps; trained, also BLEU by length of sentences *seen in training*, how often the decoder writes the French
words aligned with each word of the probe's sentences, and two translations. ``--only 0 1`` repeats the first two
trainings and keeps the stored rest; each row has the version that measured it.
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
from torch import Tensor

from course_utils.claims.stored import store, stored, version
from course_utils.data.grammar import Pair, corpus
from course_utils.data.text import encode_pairs
from course_utils.decoding import evaluating, translate
from course_utils.metrics import aligned_words_found, length_groups
from course_utils.seq2seq import Seq2Seq

RUNS = ((128, 2000, 8e-3), (128, 20_000, 8e-3), (256, 20_000, 4e-3), (512, 3000, 4e-3))     # width, steps, rate
PROBED = 128                                            # width
N_FIT, N_CHOOSE = 2400, 480                             # sentences for the probes, of these to choose the penalty
WEAKNESS = (0.1, 1.0, 10.0)                             # of the penalty on the weights: scikit-learn's C
N_SEEN = 60                                             # training sentences of each length, as many as test sentences


def sentences(lesson: Lesson, words: int) -> list[Pair]:
    """3,000 pairs whose sources have one length, new to the model (of 15 words: the lesson's)."""
    return corpus(3000, 1000 + lesson.seed, min_len=words, max_len=words, exclude=lesson.train + lesson.test)


def ids_of(lesson: Lesson, pairs: list[Pair]) -> Tensor:
    """Sources of one length as ids ``(N, words + 1)``."""
    return torch.stack([source for source, _ in encode_pairs(pairs, *lesson.vocabs)])


def bleu_of_seen(lesson: Lesson, model: Seq2Seq) -> dict[str, float]:
    """BLEU by length of the first training sentences of each length, and of all of these."""
    groups = length_groups(lesson.train).values()
    return lesson.bleu_by_length(model, [lesson.train[i] for chosen in groups for i in chosen[:N_SEEN]])


def least_squares(features: Tensor, labels: Tensor, test_features: Tensor) -> Tensor:
    """Labels ``(M,)`` by the lesson's probe: a linear map with a bias, fitted to the one-hot labels."""
    x, x_test = (F.pad(part, (0, 1), value=1.0) for part in (features, test_features))      # (N, d + 1)
    weights = torch.linalg.lstsq(x, F.one_hot(labels).float(), driver="gelsd").solution
    return (x_test @ weights).argmax(dim=1)


def logistic(features: Tensor, labels: Tensor, test_features: Tensor) -> Tensor:
    """Labels ``(M,)`` by logistic regression; the penalty is the best of three on a fifth of the sentences."""
    mean, deviation = features.mean(dim=0), features.std(dim=0) + 1e-6
    x, x_test = ((part - mean) / deviation for part in (features, test_features))

    def fitted(weakness: float, n: int) -> LogisticRegression:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return LogisticRegression(C=weakness, max_iter=200).fit(x[:n].numpy(), labels[:n].numpy())

    n = len(x) - N_CHOOSE
    right = {c: fitted(c, n).score(x[n:].numpy(), labels[n:].numpy()) for c in WEAKNESS}
    return torch.from_numpy(fitted(max(right, key=right.get), len(x)).predict(x_test.numpy()))


def most_frequent(features: Tensor, labels: Tensor, test_features: Tensor) -> Tensor:
    """The label that a guess without a look at the vector takes, ``(M,)``."""
    return labels.mode().values.expand(len(test_features))


def read_correctly(model: Seq2Seq, ids: Tensor, classifier) -> list[float]:
    """Percent of the test sentences whose word is read from the vector, by position, without the full stop."""
    with evaluating(model):
        vectors = model.encoder(ids)[1]                                                     # (3000, d)
    found = []
    for place in range(ids.size(1) - 2):                                                    # no full stop, no EOS
        read = classifier(vectors[:N_FIT], ids[:N_FIT, place], vectors[N_FIT:])
        found.append(round(100 * float((read == ids[N_FIT:, place]).float().mean()), 1))
    return found


def shares(model: Seq2Seq, ids: Tensor) -> list[float]:
    """Each word's share of the gradient of the vector, in percent, without the full stop."""
    torch.manual_seed(0)
    x = model.encoder.embed(ids[N_FIT:]).detach().requires_grad_()                          # (600, T, d_embed)
    last = model.encoder.rnn(x)[1][0]                                                       # (600, d)
    (gradient,) = torch.autograd.grad((last * torch.randn(last.shape)).sum(), x)
    norms = gradient.norm(dim=-1).mean(dim=0)[:-2]
    return [round(float(share), 1) for share in 100 * norms / norms.sum()]


def through_34_steps(model: Seq2Seq, ids: Tensor) -> float:
    """Gradient of a random loss at the 35th state, at the first state, as a fraction of that at the 35th."""
    torch.manual_seed(0)
    h = first = torch.zeros(N_FIT, model.encoder.rnn.hidden_size, requires_grad=True)
    for t, x in enumerate(model.encoder.embed(ids[:N_FIT, :35]).detach().unbind(dim=1)):
        h = torch.gru_cell(x, h, *model.encoder.rnn.parameters())
        first = h if t == 0 else first
    norms = [g.norm(dim=-1).mean() for g in torch.autograd.grad((h * torch.randn(h.shape)).sum(), (first, h))]
    return float(f"{norms[0] / norms[1]:.2g}")


def inside(model: Seq2Seq, short: Tensor, long: Tensor) -> dict:
    """What one model's vector shows."""
    return {"read, 15 words": {"least squares": read_correctly(model, short, least_squares),
                               "logistic regression": read_correctly(model, short, logistic)},
            "read, 35 words": {"least squares": read_correctly(model, long, least_squares)},
            "share of the gradient, 15 words": shares(model, short),
            "share of the gradient, 35 words": shares(model, long),
            "gradient through 34 steps": through_34_steps(model, long)}


def translations(lesson: Lesson, model: Seq2Seq) -> list[dict[str, str]]:
    """The first test sentences of 6 and of 30 words, their references and the model's translations."""
    pairs = [next(pair for pair in lesson.test if len(pair.source) == words) for words in (6, 30)]
    written = translate(model, [pair.source for pair in pairs], *lesson.vocabs)
    return [{"source": " ".join(pair.source), "reference": " ".join(pair.target), "translation": " ".join(words)}
            for pair, words in zip(pairs, written, strict=True)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, test, probe, and store after every model."""
    parser = argparse.ArgumentParser(description="Lesson 01 after more training; writes more_training.json.")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    parser.add_argument("--only", type=int, nargs="+", default=range(len(RUNS)), help="trainings to repeat, from 0")
    options = parser.parse_args(arguments)
    kept = {} if len(options.only) == len(RUNS) else stored(options.out.stem, options.out.parent).results
    lesson = Lesson(0)
    probed = sentences(lesson, 15)
    short, long = (ids_of(lesson, pairs) for pairs in (probed, sentences(lesson, 35)))
    torch.manual_seed(lesson.seed)
    fresh = Seq2Seq(*map(len, lesson.vocabs), attention=None, bidirectional=False, d_model=PROBED)
    results = {f"most frequent word, {len(ids[0]) - 1} words": read_correctly(fresh, ids, most_frequent)
               for ids in (short, long)} | {"untrained": inside(fresh, short, long), "runs": kept.get("runs", [])}
    for row, (width, steps, rate) in enumerate(RUNS):
        if row not in options.only:
            continue
        started = time.process_time()
        model = lesson.trained(width, steps, rate)
        run = {"width": width, "steps": steps, "rate": rate, "version": version(),
               "cpu_seconds": round(time.process_time() - started),
               "validation_loss": round(lesson.validation_loss(model), 4), "bleu": lesson.bleu_by_length(model)}
        if width == PROBED:
            said = translate(model, [pair.source for pair in probed[N_FIT:]], *lesson.vocabs)
            run |= {"bleu, training sentences": bleu_of_seen(lesson, model),
                    "written, 15 words": [round(share, 1) for share in aligned_words_found(probed[N_FIT:], said)]}
            run |= inside(model, short, long) | {"translations": translations(lesson, model)}
        results["runs"][row:row + 1] = [run]
        store(options.out, "python experiments/more_training.py", [lesson.seed], results)


if __name__ == "__main__":
    main()
