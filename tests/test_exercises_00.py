"""Lesson 00's check, checked: wrong answers as tired students give them, right ones in other styles than ours."""

import math

import torch
import torch.nn.functional as F
from seeded_answers import (  # noqa: F401 (the tests, and what gives them this module's answers)
    pytest_generate_tests,
    right,
    test_every_exercise_has_its_seeded_answers,
    test_every_known_fault_is_named_as_itself,
    test_right_answer_in_another_style_passes,
    test_wrong_answer_is_rejected_with_its_fault,
    wrong,
)

from course_utils.exercises.lesson_00 import LESSON_00

LESSON = LESSON_00


@wrong("softmax", "Take the largest score from all scores first")
def overflows(scores):
    e = torch.exp(scores)
    return e / torch.sum(e, dim=-1, keepdim=True)


@wrong("softmax", "taken from all scores is not the largest")
def mean_taken_off(scores):
    e = torch.exp(scores - scores.mean())
    return e / e.sum()


@wrong("softmax", "taken from all scores is not the largest")
def smallest_taken_off(scores):
    e = torch.exp(scores - min(scores))
    return e / e.sum()


@wrong("softmax", "taken away above the fraction line only")
def shifted_above(scores):
    return torch.exp(scores - scores.max()) / torch.exp(scores).sum()


@wrong("softmax", "taken away below the fraction line only")
def shifted_below(scores):
    return torch.exp(scores) / torch.exp(scores - scores.amax()).sum()


@wrong("softmax", "Divide by the sum of exp(score)")
def over_the_sum_of_scores(scores):
    return torch.exp(scores) / torch.sum(scores)


@wrong("softmax", "Subtract it")
def divided_by_the_largest(scores):
    e = torch.exp(scores / scores.max())
    return e / e.sum()


@wrong("softmax", "divide each exp(score) by the sum")
def not_divided(scores):
    return math.e ** scores


@wrong("softmax", "exp() is missing")
def no_exp(scores):
    return scores / sum(scores)


@wrong("softmax", "divided by the largest one")
def by_the_largest(scores):
    e = torch.exp(scores - scores.max())
    return e / e.max()


@wrong("softmax", "root of the sum of squares")
def normalised(scores):
    return F.normalize((scores - scores.max()).exp(), dim=0)


@wrong("softmax", "the largest score gets the smallest weight")
def upside_down(scores):
    e = torch.exp(scores.min() - scores)
    return e / e.sum()


@wrong("softmax", "logarithms of the weights")
def logarithms(scores):
    return scores - torch.logsumexp(scores, 0)


@wrong("softmax", "The base is 2")
def base_two(scores):
    e = 2.0 ** (scores - scores.max())
    return e / e.sum()


@wrong("softmax", "gives each a share")
def hard(scores):
    return (scores == scores.max()).float()


@wrong("softmax", "This is a sigmoid")
def sigmoid(scores):
    return 1 / (1 + torch.exp(-scores))


@right("softmax")
def with_the_largest_taken_off(scores):
    e = torch.exp(scores - scores.max())
    return e / e.sum()


@right("softmax")
def through_logarithms(scores):
    return torch.exp(scores - torch.logsumexp(scores, dim=0))


@right("softmax")
def one_by_one(scores):
    e = [torch.exp(s - max(scores)) for s in scores]
    return torch.stack([one / sum(e) for one in e])
