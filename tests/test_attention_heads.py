"""Several heads, the causal mask and positions: what must hold whatever the weights are."""

import math

import pytest
import torch
import torch.nn.functional as F
from attention_properties import (
    KEY_PROPERTIES,
    PROPERTIES,
    Sizes,
    has_right_gradients,
    is_causal,
    leaves_arguments_alone,
    make_inputs,
    make_padding_mask,
    permutes_with_keys,
    reads_the_keys,
    reads_the_query,
    rows_sum_to_one,
    works_in_half_precision,
    zeros_where_nothing_may_be_attended,
)
from sample_models import torch_twin
from torch import nn
from torch.testing import assert_close

from course_utils.attention import MultiHeadAttention, alibi, causal_mask, rotary, sinusoidal
from course_utils.measuring import peak_memory

SIZES = Sizes(d_query=8, d_key=8, d_value=8)
KNOWS_POSITIONS = (rows_sum_to_one, is_causal, zeros_where_nothing_may_be_attended, leaves_arguments_alone,
                   has_right_gradients, works_in_half_precision, reads_the_query, reads_the_keys)


@pytest.fixture(autouse=True)
def _same_weights_in_every_run():
    torch.manual_seed(0)


class OneHeadShown(nn.Module):
    """A multi-head attention with the signature of the shared properties; of the weights, one head's."""

    def __init__(self, n_heads, head, biased=False, **options):
        super().__init__()
        self.attention = MultiHeadAttention(8, n_heads, **options)
        self.head, self.biased = head, biased

    def forward(self, query, keys, values, mask):
        bias = alibi(self.attention.n_heads, keys.size(1))[:, -query.size(1):] if self.biased else None
        output, weights = self.attention(query, keys, values, mask, bias)
        return output, weights[:, self.head]


@pytest.mark.parametrize("has_property", PROPERTIES + KEY_PROPERTIES, ids=lambda p: p.__name__)
@pytest.mark.parametrize(("n_heads", "head"), [(1, 0), (2, 1), (4, 0), (4, 3), (8, 5)])
def test_every_head(n_heads, head, has_property):
    has_property(OneHeadShown(n_heads, head), SIZES)


@pytest.mark.parametrize("has_property", KNOWS_POSITIONS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("options", [{"rotary": True}, {"biased": True}], ids=str)
def test_heads_that_know_positions(options, has_property):
    has_property(OneHeadShown(2, 1, **options), SIZES)


@pytest.mark.parametrize("options", [{"rotary": True}, {"biased": True}], ids=str)
def test_with_positions_the_order_matters(options):
    with pytest.raises(AssertionError):
        permutes_with_keys(OneHeadShown(2, 1, **options), SIZES)


def self_attention_inputs(T=5, seed=0):
    return torch.randn(3, T, 8, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("options", [{}, {"rotary": True}, {"biased": True}], ids=str)
def test_self_attention_ignores_padding(options):
    attention, x = OneHeadShown(2, 0, **options), self_attention_inputs()
    lengths = [5, 3, 1]
    mask = torch.arange(5) < torch.tensor(lengths)[:, None, None]
    before = attention(x, x, x, mask)[0]
    for garbage in (0.0, 7.0, -1e4):
        changed = x.masked_fill(~mask.transpose(1, 2), garbage)
        after = attention(changed, changed, changed, mask)[0]
        for b, length in enumerate(lengths):
            assert_close(after[b, :length], before[b, :length])
    for b, length in enumerate(lengths):
        short = x[b:b + 1, :length]
        assert_close(attention(short, short, short, None)[0][0], before[b, :length])


def test_self_attention_without_positions_is_permutation_equivariant():
    attention, x = MultiHeadAttention(8, 2), self_attention_inputs()
    order = torch.tensor([3, 0, 4, 1, 2])
    output, weights = attention(x)
    new_output, new_weights = attention(x[:, order])
    assert_close(new_output, output[:, order])
    assert_close(new_weights, weights[:, :, order][..., order])


@pytest.mark.parametrize("rotary", [False, True])
def test_a_causal_self_attention_does_not_look_ahead(rotary):
    """All of the input changes from t on, the query too."""
    attention, x = MultiHeadAttention(8, 2, rotary=rotary), self_attention_inputs()
    before = attention(x, mask=causal_mask(5))[0]
    for t in range(1, 5):
        changed = x.clone()
        changed[:, t:] += 3
        after = attention(changed, mask=causal_mask(5))[0]
        assert_close(after[:, :t], before[:, :t])
        assert not torch.allclose(after[:, t:], before[:, t:], atol=1e-3)


# --- agreement with PyTorch ----------------------------------------------------------------------------------

@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n_heads", [1, 2, 4, 8])
def test_agrees_with_torch(n_heads, causal):
    """True is *may attend* here, and *may not* in nn.MultiheadAttention."""
    ours = MultiHeadAttention(8, n_heads)
    query, keys, values = make_inputs(SIZES, T_q=5)
    padding = make_padding_mask(SIZES)
    mask = padding & causal_mask(5) if causal else padding
    output, weights = ours(query, keys, values, mask)
    forbidden = {"key_padding_mask": ~padding.squeeze(1), "attn_mask": ~causal_mask(5) if causal else None}
    expected = torch_twin(ours)(query, keys, values, average_attn_weights=False, **forbidden)
    assert_close(output, expected[0], atol=1e-6, rtol=0)
    assert_close(weights, expected[1], atol=1e-6, rtol=0)


def test_its_gradients_agree_with_torch():
    ours, x = MultiHeadAttention(8, 2), self_attention_inputs()
    twin = torch_twin(ours)
    ours(x, mask=causal_mask(5))[0].square().sum().backward()
    twin(x, x, x, attn_mask=~causal_mask(5))[0].square().sum().backward()
    assert_close(torch.cat([W.weight.grad for W in (ours.W_q, ours.W_k, ours.W_v)]), twin.in_proj_weight.grad,
                 atol=1e-5, rtol=1e-5)
    assert_close(ours.W_o.weight.grad, twin.out_proj.weight.grad, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("bias", [None, alibi(4, 5)[:, -4:]], ids=["plain", "alibi"])
def test_agrees_with_scaled_dot_product_attention(bias):
    ours = MultiHeadAttention(8, 4)
    query, keys, values = make_inputs(SIZES)
    mask = causal_mask(4, 5)
    q, k, v = (ours.split(W(x)) for W, x in ((ours.W_q, query), (ours.W_k, keys), (ours.W_v, values)))
    added = torch.zeros(4, 4, 5) if bias is None else bias
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=added.masked_fill(~mask, -math.inf))
    assert_close(ours(query, keys, values, mask, bias)[0], ours.W_o(ours.join(expected)))


# --- the module ----------------------------------------------------------------------------------------------

def test_keys_default_to_the_query_and_values_to_the_keys():
    attention = MultiHeadAttention(8, 2)
    query, keys, _ = make_inputs(SIZES)
    assert torch.equal(attention(query)[0], attention(query, query, query)[0])
    assert torch.equal(attention(query, keys)[0], attention(query, keys, keys)[0])


def test_split_gives_head_h_the_hth_part_of_the_width_and_join_undoes_it():
    attention, x = MultiHeadAttention(8, 4), self_attention_inputs()
    heads = attention.split(x)
    assert heads.shape == (3, 4, 5, 2)
    for h in range(4):
        assert torch.equal(heads[:, h], x[..., 2 * h:2 * h + 2])
    assert torch.equal(attention.join(heads), x)


@pytest.mark.parametrize("shape", [(5, 5), (3, 1, 5), (3, 5, 5), (3, 1, 1, 5), (3, 1, 5, 5), (1, 2, 5, 5),
                                   (3, 2, 5, 5)])
def test_masks_of_every_shape(shape):
    attention, x = MultiHeadAttention(8, 2), self_attention_inputs()
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(2)) < 0.6
    full = (mask.unsqueeze(1) if mask.dim() == 3 else mask).expand(3, 2, 5, 5)
    weights = attention(x, mask=mask)[1]
    assert torch.equal(weights > 0, full)
    assert_close(weights.sum(-1), full.any(-1).float())


def test_a_bias_is_added_to_the_scores():
    attention, x = MultiHeadAttention(8, 2), self_attention_inputs()
    bias = torch.zeros(2, 5, 5)
    bias[1, :, 3] = 100.0
    weights = attention(x, bias=bias)[1]
    assert_close(weights[:, 0], attention(x)[1][:, 0])
    assert_close(weights[:, 1], F.one_hot(torch.tensor(3), 5).float().expand(3, 5, 5))


def test_a_fully_masked_query_gets_the_bias_of_the_last_projection_only():
    attention, x = MultiHeadAttention(8, 2), self_attention_inputs()
    mask = causal_mask(5)
    mask[2] = False
    output, weights = attention(x, mask=mask)
    assert not weights[:, :, 2].any()
    assert_close(output[:, 2], attention.W_o.bias.expand(3, 8))


def test_dropout_acts_in_training_only_and_on_the_weights_only():
    attention, x = MultiHeadAttention(8, 2, dropout=0.5), self_attention_inputs()
    trained, weights = attention(x)
    attention.eval()
    expected, expected_weights = attention(x)
    assert not torch.allclose(trained, expected, atol=1e-3)
    assert_close(weights, expected_weights)
    assert torch.equal(attention(x)[0], expected)


# --- without the weights: PyTorch's kernel -------------------------------------------------------------------

def every_bias():
    """None, one for each head, and one for each sentence and query."""
    rng = torch.Generator().manual_seed(3)
    return {"no_bias": None, "alibi": alibi(2, 5), "heads": torch.randn(2, 5, 5, generator=rng),
            "sentences": torch.randn(3, 1, 5, 5, generator=rng)}


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("bias", every_bias().values(), ids=every_bias())
@pytest.mark.parametrize("shape", [None, (5, 5), (3, 1, 5), (3, 5, 5), (3, 1, 1, 5), (1, 2, 5, 5), (3, 2, 5, 5)])
def test_without_weights_the_output_and_its_gradient_are_the_same(shape, bias, rotary):
    """Some queries may attend to nothing."""
    attention, x = MultiHeadAttention(8, 2, rotary=rotary), self_attention_inputs().requires_grad_()
    mask = None
    if shape is not None:
        mask = torch.rand(shape, generator=torch.Generator().manual_seed(2)) < 0.5
        mask[..., 0, :] = False
    outputs = {need: attention(x, mask=mask, bias=bias, need_weights=need) for need in (True, False)}
    assert outputs[False][1] is None
    assert_close(outputs[False][0], outputs[True][0], atol=1e-6, rtol=1e-5)
    first, second = (torch.autograd.grad(output.square().sum(), (x, *attention.parameters()), retain_graph=True)
                     for output, _ in outputs.values())
    assert_close(first, second, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("bias", every_bias().values(), ids=every_bias())
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("mask", [torch.ones(5, 5), torch.ones(3, 1, 5, dtype=torch.int64),
                                  torch.zeros(3, 1, 1, 5)], ids=["ones", "integers", "added"])
def test_masks_that_are_not_boolean_are_refused(mask, need_weights, bias):
    """The kernel would add numbers to the scores, and so take 1 and 0 for something else."""
    attention, x = MultiHeadAttention(8, 2), self_attention_inputs()
    with pytest.raises(TypeError, match=f"mask has dtype {mask.dtype}; expected torch.bool with True"):
        attention(x, mask=mask, bias=bias, need_weights=need_weights)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(("bias", "message"), [
    (torch.zeros(4, 4), r"bias has shape \(4, 4\), scores have \(3, 2, 5, 5\); expected four axes"),
    (alibi(3, 5), r"bias has shape \(3, 5, 5\), scores have \(3, 2, 5, 5\)"),
    (torch.zeros(1, 3, 2, 5, 5), r"bias has shape \(1, 3, 2, 5, 5\)"),
    (True, "bias is a bool; expected a tensor .* add no vectors: MultiHeadAttention.*bias=False"),
    (causal_mask(5), r"bias has dtype torch\.bool; expected numbers, .* goes to mask")],
    ids=["keys", "heads", "axes", "a_switch", "a_mask"])
def test_a_bias_that_cannot_be_added_is_refused(bias, message, need_weights):
    attention, x = MultiHeadAttention(8, 2), self_attention_inputs()
    with pytest.raises((TypeError, ValueError), match=message):
        attention(x, bias=bias, need_weights=need_weights)


def test_without_weights_dropout_acts_in_training_only():
    attention, x = MultiHeadAttention(8, 2, dropout=0.5), self_attention_inputs()
    first, second = (attention(x, need_weights=False)[0] for _ in range(2))
    assert not torch.allclose(first, second, atol=1e-3)
    attention.eval()
    expected, _ = attention(x)
    assert torch.equal(attention(x, need_weights=False)[0], attention(x, need_weights=False)[0])
    assert_close(attention(x, need_weights=False)[0], expected)


def test_both_ways_drop_the_same_share_of_the_weights():
    """One value, always 1: the mean over many draws is 1 on both paths, the spread that of weights kept or doubled."""
    attention = MultiHeadAttention(8, 2, dropout=0.5)
    x = torch.ones(2000, 4, 8)
    with torch.no_grad():
        for W in (attention.W_v, attention.W_o):
            W.weight.copy_(torch.eye(8))
            W.bias.zero_()
        for need_weights in (True, False):
            output, _ = attention(x, need_weights=need_weights)
            assert output.mean().item() == pytest.approx(1, abs=0.02)
            assert output.std().item() == pytest.approx(0.5, abs=0.02)             # four weights of 1/4: 0 or 1/2


def test_a_model_with_rotary_positions_can_be_trained_after_inference():
    """The turns are kept from one call to the next."""
    attention, x = MultiHeadAttention(8, 2, rotary=True), torch.randn(1, 23, 8)
    with torch.inference_mode():
        expected = attention(x)[0]
    output, _ = attention(x)
    output.sum().backward()
    assert_close(output, expected)
    assert attention.W_q.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("options", [{}, {"rotary": True}], ids=str)
def test_projected_keys_can_be_kept(options, need_weights):
    """`forward` is `project_keys` and then `attend`; keys projected piece by piece are the same."""
    attention, (query, keys, values) = MultiHeadAttention(8, 2, **options), make_inputs(SIZES)
    bias, mask = alibi(2, 5)[:, -4:], causal_mask(4, 5)
    k, v = attention.project_keys(keys, values)
    assert k.shape == v.shape == (3, 2, 5, 4)
    plain = attention.split(attention.W_k(keys))
    assert_close(k, rotary(plain) if attention.rotary else plain)
    assert_close(v, attention.split(attention.W_v(values)))
    expected = attention(query, keys, values, mask, bias, need_weights)
    copies = k.clone(), v.clone()
    found = attention.attend(query, k, v, mask, bias, need_weights)
    assert torch.equal(found[0], expected[0])
    assert found[1] is expected[1] is None or torch.equal(found[1], expected[1])
    assert torch.equal(k, copies[0])                                               # a cache stays as it is
    assert torch.equal(v, copies[1])
    pieces = [attention.project_keys(keys[:, i:j], values[:, i:j], start=i) for i, j in ((0, 2), (2, 5))]
    k, v = (torch.cat(parts, dim=2) for parts in zip(*pieces, strict=True))
    assert_close(attention.attend(query, k, v, mask, bias, need_weights)[0], expected[0])


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("n_queries", [1, 3, 5])
def test_is_causal_is_the_causal_mask(n_queries, rotary, biased, need_weights):
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(8, 2, rotary=rotary), torch.randn(3, 5, 8)
    bias = alibi(2, 5)[:, -n_queries:] if biased else None
    query, keys = x[:, 5 - n_queries:], attention.project_keys(x)
    expected = attention.attend(query, *keys, causal_mask(n_queries, 5), bias, need_weights)
    found = attention.attend(query, *keys, None, bias, need_weights, is_causal=True)
    assert_close(found[0], expected[0])
    assert found[1] is expected[1] is None or torch.equal(found[1], expected[1])


def test_a_mask_and_is_causal_are_refused():
    attention, x = MultiHeadAttention(8, 2), torch.randn(3, 5, 8)
    with pytest.raises(ValueError, match="given a mask and is_causal; expected one of them"):
        attention.attend(x, *attention.project_keys(x), causal_mask(5), is_causal=True)


def test_causal_attention_by_the_kernel_stores_no_mask():
    attention, x = MultiHeadAttention(8, 2), torch.randn(1, 4000, 8)
    with torch.no_grad():
        keys = attention.project_keys(x)
        used = peak_memory(lambda: attention.attend(x, *keys, need_weights=False, is_causal=True))
    assert used < 4000 * 4000


@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_grouped_queries_are_full_heads_with_repeated_keys(n_kv_heads):
    torch.manual_seed(0)
    grouped = MultiHeadAttention(24, 6, n_kv_heads=n_kv_heads, rotary=True)
    full = MultiHeadAttention(24, 6, rotary=True)
    state = grouped.state_dict()
    for name in ("W_k.weight", "W_k.bias", "W_v.weight", "W_v.bias"):
        heads = state[name].unflatten(0, (n_kv_heads, 4))
        state[name] = heads.repeat_interleave(6 // n_kv_heads, dim=0).flatten(0, 1)
    full.load_state_dict(state)
    x = torch.randn(2, 7, 24)
    for need_weights in (True, False):
        assert_close(grouped(x, need_weights=need_weights)[0], full(x, need_weights=need_weights)[0])
    assert grouped.project_keys(x)[0].shape == (2, n_kv_heads, 7, 4)                    # what a cache keeps


def test_keys_that_queries_share_are_not_copied_where_no_weights_are_needed():
    attention, query = MultiHeadAttention(64, 8, n_kv_heads=1), torch.randn(1, 1, 64)
    k, v = torch.randn(2, 1, 1, 4000, 8)
    with torch.no_grad():
        assert_close(attention.attend(query, k, v, need_weights=False)[0], attention.attend(query, k, v)[0])
        assert peak_memory(lambda: attention.attend(query, k, v, need_weights=False)) < k.nbytes


@pytest.mark.parametrize(("widths", "message"), [
    ((6, 8, 8), r"query has shape \(2, 3, 6\); expected \(B, T, d_model\) with d_model=8"),
    ((8, 6, 8), r"keys has shape \(2, 3, 6\)"), ((8, 8, 6), r"values has shape \(2, 3, 6\)")])
def test_an_input_of_another_width_is_named(widths, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(8, 2)(*(torch.zeros(2, 3, width) for width in widths))


def test_self_attention_calls_its_input_the_query():
    with pytest.raises(ValueError, match=r"query has shape \(2, 3, 6\); expected"):
        MultiHeadAttention(8, 2)(torch.zeros(2, 3, 6))


@pytest.mark.parametrize(("options", "message"), [
    ({"d_model": 10, "n_heads": 4}, "d_model=10 does not divide into n_heads=4 equal parts; choose"),
    ({"d_model": 8, "n_heads": 0}, "n_heads is 0; expected at least 1"),
    ({"d_model": 8, "n_heads": -2}, "n_heads is -2; expected at least 1"),
    ({"d_model": 0, "n_heads": 1}, "d_model is 0; expected at least 1"),
    ({"d_model": 12, "n_heads": 4, "rotary": True}, "d_model / n_heads = 3 numbers; choose an even width"),
])
def test_widths_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(**options)


@pytest.mark.parametrize("options", [{"rotary": False}, {"rotary": True}, {"biased": True}], ids=str)
def test_one_query_at_a_time_with_a_cache_equals_all_at_once(options):
    """The new query is the last position: mask, rotation and bias all agree about that."""
    attention, x = OneHeadShown(2, 0, **options), self_attention_inputs()
    together = attention(x, x, x, causal_mask(5))[0]
    steps = [attention(x[:, t:t + 1], x[:, :t + 1], x[:, :t + 1], causal_mask(1, t + 1))[0] for t in range(5)]
    assert_close(torch.cat(steps, dim=1), together)


@pytest.mark.parametrize("large", [40.0, 400.0, 4000.0])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_in_half_precision_large_scores_are_the_same_with_and_without_weights(dtype, large):
    """Products up to 64 * 4000 * 4000: more than float16 holds before the scale, and after it."""
    attention = MultiHeadAttention(64, 1)
    with torch.no_grad():
        for W in (attention.W_q, attention.W_k, attention.W_v, attention.W_o):
            W.weight.copy_(torch.eye(64))
            W.bias.zero_()
    x = torch.randn(2, 3, 64, generator=torch.Generator().manual_seed(0)).sign() * large
    values = torch.randn(2, 3, 64, generator=torch.Generator().manual_seed(1))
    half, (x, values) = attention.to(dtype), (x.to(dtype), values.to(dtype))
    output, weights = half(x, x, values, causal_mask(3))
    assert output.dtype == weights.dtype == dtype
    assert_close(output, half(x, x, values, causal_mask(3), need_weights=False)[0], atol=1e-2, rtol=1e-2)
    assert_close(weights[:, 0], torch.eye(3, dtype=dtype).expand(2, 3, 3))


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("shape", [(), (3, 5), (4, 3, 1, 5), (3, 3, 1, 5), (2, 1, 5), (1, 2, 4, 4), (5, 4)])
def test_masks_that_do_not_fit_are_refused_on_both_ways(shape, need_weights):
    attention, (query, keys, values) = MultiHeadAttention(8, 2), make_inputs(SIZES)
    with pytest.raises(ValueError, match=rf"mask has shape \({', '.join(map(str, shape))}\), scores have"):
        attention(query, keys, values, torch.ones(shape, dtype=torch.bool), need_weights=need_weights)


@pytest.mark.parametrize("mask", [[[True] * 5] * 5, torch.ones(5, 5, dtype=torch.bool).numpy()], ids=["list", "NumPy"])
@pytest.mark.parametrize("need_weights", [True, False])
def test_masks_that_are_no_tensors_are_refused(mask, need_weights):
    with pytest.raises(TypeError, match="mask .*; expected torch.bool"):
        MultiHeadAttention(8, 2)(self_attention_inputs(), mask=mask, need_weights=need_weights)


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_value_for_each_key(need_weights):
    """PyTorch's kernel reads on behind the values."""
    x = self_attention_inputs()
    for values in (x[:, :3], x[:1]):
        with pytest.raises(ValueError, match=r"keys are .*, values .*; expected a value for each key"):
            MultiHeadAttention(8, 2)(x, x, values, need_weights=need_weights)


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_query_for_each_sentence(need_weights):
    x = self_attention_inputs()
    attention = MultiHeadAttention(8, 2).eval()
    with pytest.raises(ValueError, match=rf"query has B=5, keys have B={len(x)}; expected as many sentences, or one"):
        attention(x[[0] * 5], x, need_weights=need_weights)
    one = attention(x[:1], x, need_weights=need_weights)[0]
    assert_close(one, attention(x[:1].expand_as(x), x, need_weights=need_weights)[0])


@pytest.mark.parametrize(("dropout", "error"), [("0.1", TypeError), (None, TypeError), (1.5, ValueError)])
def test_dropout_is_a_share(dropout, error):
    with pytest.raises(error, match="dropout is .*; expected a"):
        MultiHeadAttention(8, 2, dropout=dropout)


@pytest.mark.parametrize(("make", "name"), [(lambda: causal_mask(-1), "n_queries"), (lambda: alibi(2, -1), "n"),
                                            (lambda: sinusoidal(-1, 8), "n")])
def test_fewer_positions_than_none_are_refused(make, name):
    with pytest.raises(ValueError, match=f"{name} is -1; expected at least 0"):
        make()


@pytest.mark.parametrize("n", [2.5, math.nan, "3"])
def test_sizes_are_whole_numbers(n):
    with pytest.raises(TypeError, match=f"n_queries is {n!r}; expected a whole number, at least 0"):
        causal_mask(n)


@pytest.mark.parametrize("rotary", [False, True])
def test_another_kernel_goes_between_the_projections(rotary):
    heads, x = MultiHeadAttention(8, 2, rotary=rotary), self_attention_inputs()
    expected, _ = heads(x)
    mixed = F.scaled_dot_product_attention(heads.project_query(x), *heads.project_keys(x))
    torch.testing.assert_close(heads.output(mixed), expected)


def test_a_sentence_without_a_batch_is_refused():
    with pytest.raises(ValueError, match=r"given \(5, 8\); expected \(B, T, d_model\)\. .*x\.unsqueeze\(0\)"):
        MultiHeadAttention(8, 2)(self_attention_inputs()[0])


# --- the causal mask -----------------------------------------------------------------------------------------

def test_causal_mask_by_hand():
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert causal_mask(2, 4).tolist() == [[True, True, True, False], [True, True, True, True]]
    assert causal_mask(1, 3).tolist() == [[True, True, True]]


def test_fewer_keys_than_queries_are_refused():
    with pytest.raises(ValueError, match="5 queries and 3 keys: the first 2 would see nothing"):
        causal_mask(5, 3)


@pytest.mark.parametrize("n_heads", [0, -2])
def test_no_heads_have_no_bias(n_heads):
    with pytest.raises(ValueError, match=f"n_heads is {n_heads}; expected at least 1"):
        alibi(n_heads, 5)


def test_a_mask_is_made_where_it_is_wanted():
    assert causal_mask(3, device="meta").is_meta


# --- positions -----------------------------------------------------------------------------------------------

def test_sinusoidal_by_its_formula():
    table = sinusoidal(7, 6)
    assert table.dtype == torch.float32
    for position in range(7):
        for i in range(3):
            angle = position / 10000 ** (2 * i / 6)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_products_of_sinusoidal_positions_depend_on_the_distance_only():
    products = sinusoidal(40, 16) @ sinusoidal(40, 16).T
    for distance in range(40):
        along = products.diagonal(distance)
        assert_close(along, along[:1].expand_as(along), atol=1e-5, rtol=0)
    assert_close(products.diagonal(), torch.full((40,), 8.0))
    assert products.argmax(dim=1).tolist() == list(range(40))


@pytest.mark.parametrize("make", [lambda: sinusoidal(4, 5), lambda: rotary(torch.ones(4, 5))])
def test_odd_widths_are_refused(make):
    with pytest.raises(ValueError, match="the width is 5, but sine and cosine come in pairs; choose an even width"):
        make()


def test_rotary_by_complex_numbers():
    """A pair is a complex number, and turning it a multiplication by exp(i angle)."""
    x = torch.randn(2, 3, 7, 6, generator=torch.Generator().manual_seed(0))
    angles = torch.arange(7)[:, None] / 10000 ** (torch.arange(0, 6, 2) / 6)
    turned = torch.view_as_complex(x.unflatten(-1, (3, 2))) * torch.exp(1j * angles)
    assert_close(rotary(x), torch.view_as_real(turned).flatten(-2))


def test_rotary_turns_and_does_not_stretch():
    x = torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    assert_close(rotary(x).norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(rotary(x)[0], x[0])
    assert not torch.allclose(rotary(x)[1:], x[1:], atol=1e-2)


def test_rotary_scores_depend_on_the_distance_only():
    rng = torch.Generator().manual_seed(0)
    q, k = torch.randn(8, generator=rng).expand(30, 8), torch.randn(8, generator=rng).expand(30, 8)
    scores = rotary(q) @ rotary(k).T
    assert_close(scores[1:, 1:], scores[:-1, :-1])
    assert not torch.allclose(scores[0], scores[0, :1].expand(30), atol=0.1)
    assert not torch.allclose(scores, scores.T, atol=0.1)                  # the order of the two matters
    assert_close(rotary(q, start=100_000) @ rotary(k, start=100_000).T, scores, atol=1e-5, rtol=1e-5)


def test_rotary_may_start_later():
    x = torch.randn(2, 9, 4, generator=torch.Generator().manual_seed(0))
    assert_close(rotary(x[:, 6:], start=6), rotary(x)[:, 6:])


def test_a_shift_of_all_positions_changes_nothing_in_rotary_attention():
    """Three positions more in front, which nobody may attend to."""
    attention, x = MultiHeadAttention(8, 2, rotary=True), self_attention_inputs()
    longer = torch.cat([torch.ones(3, 3, 8), x], dim=1)
    assert_close(attention(longer, mask=torch.arange(8) >= 3)[0][:, 3:], attention(x)[0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_rotary_keeps_the_type_and_its_argument(dtype):
    x = torch.randn(3, 300, 8, generator=torch.Generator().manual_seed(0)).to(dtype)
    copy = x.clone()
    turned = rotary(x)
    assert turned.dtype == dtype
    assert torch.equal(x, copy)
    tolerance = 8 * torch.finfo(dtype).eps
    assert_close(turned.double(), rotary(x.double()), atol=tolerance, rtol=tolerance)  # also at position 299


def test_rotary_turns_no_whole_numbers():
    with pytest.raises(TypeError, match=r"x is torch.int64; expected floating-point numbers: x.float\(\)"):
        rotary(torch.ones(3, 4, dtype=torch.long))


def test_rotary_has_right_gradients():
    x = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(rotary, x)


def test_alibi_by_hand():
    bias = alibi(2, 3)
    assert_close(bias[0], -torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]) / 16)
    assert_close(bias[1], bias[0] / 16)
    assert_close(alibi(8, 2)[:, 0, 1], -(0.5 ** torch.arange(1.0, 9.0)))   # the paper's slopes for eight heads


def test_alibi_is_symmetric_and_never_positive():
    bias = alibi(4, 6)
    assert bias.shape == (4, 6, 6)
    assert torch.equal(bias, bias.mT)
    assert not bias.diagonal(dim1=1, dim2=2).any()
    assert (bias.diff(dim=-1)[:, 0] < 0).all()
