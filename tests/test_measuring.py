"""Time and memory of a computation."""

import time

import torch

from course_utils.measuring import best_of, peak_memory


def test_peak_memory_counts_what_is_alive():
    x = torch.ones(1000)
    assert peak_memory(lambda: x + 1) == 4000
    assert peak_memory(lambda: (x + 1, x + 2)) == 8000
    assert peak_memory(lambda: [float((x + i).sum()) for i in range(9)]) == 4004


def test_what_was_there_before_does_not_count():
    x = torch.ones(1000)
    assert peak_memory(lambda: x.view(10, 100)) == 0
    assert peak_memory(lambda: x.add_(1)) == 0


def test_what_is_kept_for_the_backward_pass_counts():
    x = torch.ones(1000, requires_grad=True)
    without_gradient = peak_memory(lambda: x.detach().exp().exp().exp())
    assert peak_memory(lambda: x.exp().exp().exp()) == 12_000 > without_gradient


def test_best_of_is_the_fastest_of_several_calls():
    work = [3_000_000, 10, 3_000_000]
    assert best_of(lambda: sum(range(work.pop()))) < 0.01
    assert not work


def test_best_of_does_not_count_what_others_do():
    assert best_of(lambda: time.sleep(0.05)) < 0.02
