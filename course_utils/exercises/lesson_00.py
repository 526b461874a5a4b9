"""Lesson 00, start here: one exercise, to learn how checks talk."""

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.exercises.engine import Exercise
from course_utils.exercises.inputs import randn, sizes


def softmax(scores: Tensor) -> Tensor:
    """scores (n,): numbers of any size
    -> weights (n,): all positive, sum 1; exp(score) divided by the sum of all exp(score)
    """
    return scores.softmax(dim=0)


def _scores(rng, shift=0.0):
    return (2 * randn(rng, *sizes(rng, 1)) + shift,)


def _one_far_above(rng):
    scores, = _scores(rng)
    scores[0] += 1000
    return (scores,)


SOFTMAX = Exercise(softmax, {"weights": "n"}, {
    "on ordinary inputs": _scores,
    "where scores are near 1,000": lambda rng: _scores(rng, 1000.0),
    "where scores are near -1,000": lambda rng: _scores(rng, -1000.0),
    "where one score is 1,000 above the others": _one_far_above,
}, (
    ("exp() of a large number is infinite, and of a small one 0; the quotient is then NaN. Take the largest score from "
     "all scores first: every exp() becomes smaller by the same factor, so the weights stay the same.",
     lambda s: s.exp() / s.exp().sum()),
    ("What is taken from all scores is not the largest (but their mean, or the smallest?); exp() of the largest can "
     "then still be infinite. Take the largest.", lambda s: (s - s.mean()).exp() / (s - s.mean()).exp().sum()),
    ("The largest score is taken away above the fraction line only. Take it away in both places, or the weights do not "
     "sum to 1.", lambda s: (s - s.max()).exp() / s.exp().sum()),
    ("The largest score is taken away below the fraction line only. Take it away in both places, or the weights do not "
     "sum to 1.", lambda s: s.exp() / (s - s.max()).exp().sum()),
    ("These are not yet weights: divide each exp(score) by the sum of all of them.", torch.exp),
    ("The sum is there, but exp() is missing: a negative score would get a negative weight.", lambda s: s / s.sum()),
    ("Each exp(score) is divided by the largest one. Divide by their sum.", lambda s: (s - s.max()).exp()),
    ("Each exp(score) is divided by the root of the sum of squares. Divide by the sum: the weights, not their squares, "
     "sum to 1.", lambda s: (s - s.max()).exp() / (s - s.max()).exp().norm()),
    ("The sign is wrong: the largest score gets the smallest weight.", lambda s: (-s).softmax(0)),
    ("These are the logarithms of the weights.", lambda s: s.log_softmax(0)),
    ("The base is 2. Use exp(), whose base is e.", lambda s: (s * torch.tensor(2.0).log()).softmax(0)),
    ("The sum is that of the scores. Divide by the sum of exp(score).", lambda s: s.exp() / s.sum()),
    ("The scores are divided by the largest. Subtract it: exp(a - b) is exp(a) / exp(b).",
     lambda s: (s / s.max()).softmax(0)),
    ("Only the largest score gets a weight. Softmax gives each a share.",
     lambda s: F.one_hot(s.argmax(), len(s)).to(s)),
    ("This is a sigmoid: each score for itself. The weights of a softmax share a sum of 1.", torch.sigmoid),
))

LESSON_00 = (SOFTMAX,)
