"""Lesson 00's check, checked: wrong answers as tired students give them, right ones in other styles than ours."""

import math

import torch
import torch.nn.functional as F
from seeded_answers import Answers, right, wrong

from course_utils.exercises.lesson_00 import LESSON_00


class TestAnswers(Answers):
    lesson = LESSON_00


@wrong("softmax", "taken from all scores is not the largest")
def smallest_taken_off(scores):
    e = torch.exp(scores - min(scores))
    return e / e.sum()


@wrong("softmax", "Divide by their sum")
def not_divided(scores):
    return math.e ** scores


@wrong("softmax", "the root of their squares")
def normalised(scores):
    return F.normalize((scores - scores.max()).exp(), dim=0)


@wrong("softmax", "logarithms of the weights")
def logarithms(scores):
    return scores - torch.logsumexp(scores, 0)


@wrong("softmax", "The base is 2")
def base_two(scores):
    e = 2.0 ** (scores - scores.max())
    return e / e.sum()


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
