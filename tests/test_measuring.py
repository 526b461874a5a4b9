"""Time and memory of a computation."""

import time

import pytest
import torch

from course_utils.measuring import best_of, longest_chain, peak_memory, products


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


def test_the_longest_chain_counts_what_waits_for_each_other():
    x = torch.ones(3, requires_grad=True)                          # its own node counts, too
    assert longest_chain(x.exp()) == 2
    assert longest_chain(x.exp() + x.exp().exp().exp()) == 5       # the longer side decides
    y = x
    for _ in range(3000):                                          # deeper than Python's stack
        y = y + 1
    assert longest_chain(y) == 3001


def test_a_tensor_without_a_graph_has_no_chain():
    with pytest.raises(ValueError, match="no graph behind"):
        longest_chain(torch.ones(3))


def test_products_of_matrices_are_counted_two_in_the_fused_attention():
    x, w = torch.ones(2, 3, 4, requires_grad=True), torch.ones(4, 5, requires_grad=True)
    made = (x @ w).exp(), x[0] @ w, torch.bmm(x, x.mT), torch.nn.Linear(4, 5)(x[0])
    assert [products(y.grad_fn) for y in made] == [0, 1, 1, 1]
    q = torch.ones(1, 2, 3, 4, requires_grad=True)
    assert products(torch.nn.functional.scaled_dot_product_attention(q, q, q).grad_fn) == 2


def test_a_recurrent_network_in_one_operation_is_refused():
    """What a CPU makes of an LSTM in float32 would count as no product at all."""
    lstm, x = torch.nn.LSTM(3, 4), torch.ones(10, 1, 3)
    with pytest.raises(ValueError, match=r"hides the steps of a recurrent network .* model\.double\(\)"):
        longest_chain(lstm(x)[0], products)
    assert longest_chain(lstm.double()(x.double())[0], products) >= 10
