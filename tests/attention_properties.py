"""What every attention function of the course must satisfy, whatever its score.

A function under test is called ``attention(query, keys, values, mask) -> (context, weights)`` with the shapes of
`course_utils.attention`; it may be a module. Wrap one that has another signature. Use:

    @pytest.mark.parametrize("has_property", PROPERTIES, ids=lambda p: p.__name__)
    def test_my_attention(has_property):
        has_property(my_attention, Sizes(d_query=8, d_key=8, d_value=8))

`KEY_PROPERTIES` hold in addition for attention that compares queries with the keys' content.
"""

import copy
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close


@dataclass(frozen=True)
class Sizes:
    """Axis sizes, all different, so that swapped axes cannot hide; self-attention wants equal widths."""

    B: int = 3
    T_q: int = 4
    T_k: int = 5
    d_query: int = 6
    d_key: int = 6
    d_value: int = 7


def make_inputs(sizes: Sizes, dtype=torch.float32, seed: int = 0, T_q: int | None = None) -> list[Tensor]:
    """Query, keys, values."""
    rng = torch.Generator().manual_seed(seed)
    shapes = ((T_q or sizes.T_q, sizes.d_query), (sizes.T_k, sizes.d_key), (sizes.T_k, sizes.d_value))
    return [torch.randn(sizes.B, *shape, generator=rng).to(dtype) for shape in shapes]


def make_padding_mask(sizes: Sizes) -> Tensor:
    """``(B, 1, T_k)``: sentences of T_k, T_k - 1, … keys, at least one."""
    lengths = torch.tensor([max(sizes.T_k - b, 1) for b in range(sizes.B)])
    return torch.arange(sizes.T_k) < lengths[:, None, None]


def cast(attention, dtype):
    """A copy of a module in another type; a plain function has no parameters to convert."""
    return copy.deepcopy(attention).to(dtype) if isinstance(attention, nn.Module) else attention


# --- properties ----------------------------------------------------------------------------------------------

def rows_sum_to_one(attention, sizes: Sizes) -> None:
    query, keys, values = make_inputs(sizes)
    for mask in (None, make_padding_mask(sizes)):
        context, weights = attention(query, keys, values, mask)
        assert context.shape[:2] == query.shape[:2]
        assert weights.shape == (sizes.B, sizes.T_q, sizes.T_k)
        assert (weights >= 0).all()
        assert_close(weights.sum(-1), torch.ones(sizes.B, sizes.T_q))
        if mask is not None:
            assert not weights[~mask.expand_as(weights)].any()


def context_is_a_function_of_values(attention, sizes: Sizes) -> None:
    """Not constant: without this, attention that returns zeros would pass the invariances below."""
    query, keys, values = make_inputs(sizes)
    first, _ = attention(query, keys, values, None)
    second, _ = attention(query, keys, values.roll(1, dims=-1) + 1, None)
    assert ((first - second).abs().amax(dim=(1, 2)) > 1e-3).all()


def is_causal(attention, sizes: Sizes) -> None:
    """With a triangular mask, position i does not change when later keys and values do."""
    query, keys, values = make_inputs(sizes, T_q=sizes.T_k)
    mask = torch.ones(sizes.T_k, sizes.T_k, dtype=torch.bool).tril()
    before, _ = attention(query, keys, values, mask)
    for i in range(sizes.T_k - 1):
        later_keys, later_values = keys.clone(), values.clone()
        later_keys[:, i + 1:] += 3
        later_values[:, i + 1:] -= 5
        after, _ = attention(query, later_keys, later_values, mask)
        assert_close(after[:, :i + 1], before[:, :i + 1])
        assert not torch.allclose(after[:, i + 1:], before[:, i + 1:])


def ignores_padding(attention, sizes: Sizes) -> None:
    """Whatever stands in padded keys and values changes nothing, and neither does leaving them out."""
    query, keys, values = make_inputs(sizes)
    mask = make_padding_mask(sizes)
    padded = ~mask.transpose(1, 2)
    before, weights = attention(query, keys, values, mask)
    for garbage in (0.0, 7.0, -1e4, 1e12):
        after, _ = attention(query, keys.masked_fill(padded, garbage), values.masked_fill(padded, garbage), mask)
        assert_close(after, before)
    for b, length in enumerate(mask.sum(-1).flatten().tolist()):
        one = slice(b, b + 1)
        short, short_weights = attention(query[one], keys[one, :length], values[one, :length], None)
        assert_close(short, before[one])
        assert_close(short_weights, weights[one, :, :length])


def permutes_with_queries(attention, sizes: Sizes) -> None:
    """Queries do not see each other: reorder them and the rows are reordered."""
    query, keys, values = make_inputs(sizes)
    order = torch.arange(sizes.T_q).roll(1)
    context, weights = attention(query, keys, values, make_padding_mask(sizes))
    new_context, new_weights = attention(query[:, order], keys, values, make_padding_mask(sizes))
    assert_close(new_context, context[:, order])
    assert_close(new_weights, weights[:, order])


def zeros_where_nothing_may_be_attended(attention, sizes: Sizes) -> None:
    """A fully masked row has zero weights; no gradient is infinite or NaN, also for padding of zeros."""
    query, keys, values = make_inputs(sizes)
    mask = make_padding_mask(sizes).expand(-1, sizes.T_q, -1).clone()
    mask[0] = False
    mask[1, 0] = False
    keys[1] = 0
    leaves = [x.requires_grad_() for x in (query, keys, values)]
    context, weights = attention(*leaves, mask)
    assert not weights[0].any()
    assert not weights[1, 0].any()
    assert weights[1, 1:].any()
    assert context.isfinite().all()
    parameters = list(attention.parameters()) if isinstance(attention, nn.Module) else []
    gradients = torch.autograd.grad(context.square().sum() + weights.square().sum(), leaves + parameters,
                                    allow_unused=True)
    assert all(gradient.isfinite().all() for gradient in gradients if gradient is not None)
    assert not gradients[2][0].any()


def leaves_arguments_alone(attention, sizes: Sizes) -> None:
    arguments = (*make_inputs(sizes), make_padding_mask(sizes))
    copies = [argument.clone() for argument in arguments]
    attention(*arguments)
    assert all(map(torch.equal, arguments, copies))


def has_right_gradients(attention, sizes: Sizes) -> None:
    """Against finite differences along random directions, in float64."""
    arguments = [x.requires_grad_() for x in make_inputs(sizes, torch.float64)]
    exact, mask = cast(attention, torch.float64), make_padding_mask(sizes)
    assert torch.autograd.gradcheck(lambda *x: exact(*x, mask), arguments, fast_mode=True)


def works_in_half_precision(attention, sizes: Sizes) -> None:
    """float16 and bfloat16 are finite and near float32, with padding of zeros and with a fully masked row."""
    for dtype, tolerance in ((torch.float16, 1e-2), (torch.bfloat16, 6e-2)):
        inputs = make_inputs(sizes, dtype)
        mask = make_padding_mask(sizes)
        inputs[1] = inputs[1].masked_fill(~mask.transpose(1, 2), 0)
        mask[0] = False
        half = cast(attention, dtype)
        leaves = [x.requires_grad_() for x in inputs]
        results = half(*leaves, mask)
        expected = cast(half, torch.float32)(*(x.detach().float() for x in inputs), mask)
        for mine, right in zip(results, expected, strict=True):
            assert mine.dtype == dtype
            assert mine.isfinite().all()
            assert_close(mine.float(), right, atol=tolerance, rtol=tolerance)
        gradients = torch.autograd.grad(results[0].sum(), leaves, allow_unused=True)
        assert all(gradient.isfinite().all() for gradient in gradients if gradient is not None)


def keeps_sentences_apart(attention, sizes: Sizes) -> None:
    """Reorder the batch and the results are reordered; a batch of one, and of none, is a batch."""
    query, keys, values = make_inputs(sizes)
    mask = make_padding_mask(sizes)
    results = attention(query, keys, values, mask)
    for some in (torch.arange(sizes.B).roll(1), torch.tensor([1]), torch.tensor([], dtype=torch.long)):
        found = attention(query[some], keys[some], values[some], mask[some])
        assert_close(found, tuple(result[some] for result in results))


def reads_any_layout(attention, sizes: Sizes) -> None:
    """Whatever order the numbers have in memory."""
    arguments = (*make_inputs(sizes), make_padding_mask(sizes))
    turned = [x.permute(2, 1, 0).contiguous().permute(2, 1, 0) for x in arguments]
    assert not turned[0].is_contiguous()
    assert_close(attention(*turned), attention(*arguments))


def refuses_masks_that_do_not_fit(attention, sizes: Sizes) -> None:
    """Above all a padding mask (B, T_k) without an axis for the queries."""
    query, keys, values = make_inputs(sizes)
    padding = make_padding_mask(sizes)
    with pytest.raises(ValueError, match=r"mask has shape \(3, 5\).*\(B, T_k\) needs an axis .*mask.unsqueeze\(1\)"):
        attention(query, keys, values, padding.squeeze(1))
    attention(query, keys, values, padding)
    for shape in ((sizes.B, sizes.T_k), (sizes.T_k, sizes.T_q), (sizes.B, 1, sizes.T_q), (sizes.B + 1, 1, sizes.T_k),
                  (1, 1, 1, 1, sizes.T_k)):
        with pytest.raises(ValueError, match=r"mask has shape .* expected \(T_q, T_k\)"):
            attention(query, keys, values, torch.ones(shape, dtype=torch.bool))


def permutes_with_keys(attention, sizes: Sizes) -> None:
    """Keys are a set: reorder them with their values and mask, and the context stays."""
    query, keys, values = make_inputs(sizes)
    mask, order = make_padding_mask(sizes), torch.arange(sizes.T_k).flip(0)
    context, weights = attention(query, keys, values, mask)
    new_context, new_weights = attention(query, keys[:, order], values[:, order], mask[..., order])
    assert_close(new_context, context)
    assert_close(new_weights, weights[..., order])


def reads_the_keys(attention, sizes: Sizes) -> None:
    query, keys, values = make_inputs(sizes)
    _, weights = attention(query, keys, values, None)
    _, others = attention(query, keys.roll(1, dims=1), values, None)
    assert not torch.allclose(weights, others, atol=1e-3)


def reads_the_query(attention, sizes: Sizes) -> None:
    query, keys, values = make_inputs(sizes)
    _, weights = attention(query, keys, values, None)
    assert not torch.allclose(weights[:, :1], weights[:, 1:], atol=1e-3)


def reads_two_axes_as_queries_and_keys(attention, sizes: Sizes) -> None:
    """Whatever stands in the mask, and with as many sentences as queries; here it looks like padding."""
    query, keys, values = make_inputs(replace(sizes, T_q=sizes.B))
    mask = torch.ones(sizes.B, sizes.T_k, dtype=torch.bool).tril(1).flip(0)
    for given, expected in zip(attention(query, keys, values, mask), attention(query, keys, values, mask.unsqueeze(0)),
                               strict=True):
        assert_close(given, expected)


PROPERTIES = (rows_sum_to_one, context_is_a_function_of_values, is_causal, ignores_padding, permutes_with_queries,
              zeros_where_nothing_may_be_attended, leaves_arguments_alone, has_right_gradients,
              works_in_half_precision, reads_the_query, keeps_sentences_apart, reads_any_layout,
              refuses_masks_that_do_not_fit, reads_two_axes_as_queries_and_keys)
KEY_PROPERTIES = (permutes_with_keys, reads_the_keys)
