"""Lesson 00, start here: one exercise, to learn how checks talk."""

import torch

from .engine import Exercise, each
from .inputs import randn, sizes


def softmax(scores):
    """Scores ``(n,)`` of any size to weights ``(n,)``: all positive, sum 1."""
    e = torch.exp(scores - scores.max())                    # the largest is exp(0) = 1
    return e / e.sum()


def _scores(shift=0.0, above=0.0):
    return lambda rng: (2 * randn(rng, n := sizes(rng, 1)[0]) + shift + above * (torch.arange(n) == n // 2),)


EXP = "torch.exp(scores - scores.max())"

SOFTMAX = Exercise(softmax, {"weights": "n"}, {
    "on ordinary inputs": _scores(),
    "where scores are near 1,000": _scores(shift=1000.0),
    "where scores are near -1,000": _scores(shift=-1000.0),
    "where one score is 1,000 above the others": _scores(above=1000.0),
}, (
    ("exp() of a large number is infinite, and of a small one 0; the quotient is then NaN. Take the largest score from "
     "all scores first: every exp() becomes smaller by the same factor, so the weights stay the same.",
     " - scores.max()", ""),
    ("What is taken from all scores is not the largest (but their mean, or the smallest?); exp() of the largest can "
     "then still be infinite. Take the largest.", "max()", "mean()"),
    ("The largest score is taken away on one side of the fraction line only. Take it away in both places, or the "
     "weights do not sum to 1.", "e.sum()", "torch.exp(scores).sum()"),
    *each("exp(score) is not divided by the sum of all exp(score), but by something else (by nothing, their largest, "
          "the sum of the scores, the root of their squares?). Divide by their sum: the weights sum to 1.",
          (EXP, "torch.exp(scores)", " / e.sum()", ""), ("sum", "norm")),
    ("The sum is there, but exp() is missing: a negative score would get a negative weight.", EXP, "scores"),
    ("The sign is wrong: the largest score gets the smallest weight.", EXP, "torch.exp(-scores)"),
    ("These are the logarithms of the weights.", "e / e.sum()", "scores - scores.logsumexp(0)"),
    ("The base is 2. Use exp(), whose base is e.", "torch.exp(", "torch.exp2("),
    ("The scores are divided by the largest. Subtract it: exp(a - b) is exp(a) / exp(b).", "s - s", "s / s"),
    ("Only the largest score gets a weight. Softmax gives each a share.", EXP, "(scores == scores.max()).float()"),
    ("This is a sigmoid: each score for itself. The weights of a softmax share a sum of 1.", "e / e.sum()",
     "scores.sigmoid()"),
))

LESSON_00 = (SOFTMAX,)
