import math

import pytest
import torch
import torch.nn.functional as F
from attention_properties import (
    KEY_PROPERTIES,
    PROPERTIES,
    Sizes,
    make_inputs,
    make_padding_mask,
    permutes_with_keys,
    reads_the_keys,
)
from torch import nn
from torch.testing import assert_close

from course_utils.attention import SCORES, DotScore, LocationScore, attend, masked_softmax
from course_utils.measuring import peak_memory

SIZES = Sizes()
NEED_EQUAL_WIDTHS = {"dot", "cosine", "scaled_dot"}


class Attention(nn.Module):
    """`attend` with a score, as one module."""

    def __init__(self, score):
        super().__init__()
        self.score = score

    def forward(self, query, keys, values, mask):
        return attend(query, keys, values, self.score, mask)


def make_attention(name, sizes=SIZES):
    torch.manual_seed(0)
    return Attention(SCORES[name](sizes.d_query, sizes.d_key))


@pytest.mark.parametrize("has_property", PROPERTIES, ids=lambda p: p.__name__)
@pytest.mark.parametrize("name", SCORES)
def test_every_score(name, has_property):
    has_property(make_attention(name), SIZES)


@pytest.mark.parametrize("has_property", KEY_PROPERTIES, ids=lambda p: p.__name__)
@pytest.mark.parametrize("name", [name for name in SCORES if name != "location"])
def test_scores_that_compare_content(name, has_property):
    has_property(make_attention(name), SIZES)


def test_location_looks_at_places_not_at_content():
    """Its weights belong to positions: reorder the keys and the context changes, the weights do not."""
    attention = make_attention("location")
    with pytest.raises(AssertionError):
        permutes_with_keys(attention, SIZES)
    with pytest.raises(AssertionError):
        reads_the_keys(attention, SIZES)
    query, keys, values = make_inputs(SIZES)
    order = torch.arange(SIZES.T_k).flip(0)
    context, weights = attention(query, keys, values, None)
    new_context, new_weights = attention(query, keys[:, order], values[:, order], None)
    assert_close(new_weights, weights)
    assert not torch.allclose(new_context, context)


@pytest.mark.parametrize("name", SCORES)
def test_widths_may_differ_where_the_score_allows_it(name):
    sizes = Sizes(d_key=8)
    if name in NEED_EQUAL_WIDTHS:
        with pytest.raises(ValueError, match="equal widths, got d_query=6 and d_key=8"):
            make_attention(name, sizes)
    else:
        context, _ = make_attention(name, sizes)(*make_inputs(sizes), make_padding_mask(sizes))
        assert context.shape == (sizes.B, sizes.T_q, sizes.d_value)


@pytest.mark.parametrize("name", SCORES)
def test_one_query_at_a_time_equals_all_at_once(name):
    """A decoder projects the keys once and compares at every step."""
    score = make_attention(name).score
    query, keys, _ = make_inputs(SIZES)
    projected = score.project_keys(keys)
    steps = [score.compare(query[:, i:i + 1], projected) for i in range(SIZES.T_q)]
    assert_close(torch.cat(steps, dim=1), score(query, keys))


@pytest.mark.parametrize("causal", [False, True])
def test_agrees_with_torch(causal):
    query, keys, values = make_inputs(SIZES, T_q=SIZES.T_k)
    mask = make_padding_mask(SIZES).expand(-1, SIZES.T_k, -1)
    if causal:
        mask = mask.tril()
    context, _ = make_attention("scaled_dot")(query, keys, values, mask)
    assert_close(context, F.scaled_dot_product_attention(query, keys, values, attn_mask=mask))


def test_scores_by_their_formulas():
    """One query, one key, every formula written out."""
    q, k = torch.tensor([3.0, 4.0]), torch.tensor([1.0, 2.0])
    scores = {name: make_attention(name, Sizes(d_query=2, d_key=2)).score for name in SCORES}
    by_hand = {
        "additive": lambda s: s.v.weight[0] @ torch.tanh(s.W_q.weight @ q + s.W_q.bias + s.W_k.weight @ k),
        "dot": lambda s: torch.tensor(11.0),
        "general": lambda s: q @ s.W.weight @ k,
        "location": lambda s: s.W.weight[0] @ q + s.W.bias[0],
        "cosine": lambda s: torch.tensor(10 * 11 / (5 * math.sqrt(5))),
        "scaled_dot": lambda s: torch.tensor(11 / math.sqrt(2)),
    }
    assert by_hand.keys() == SCORES.keys()
    for name, score in scores.items():
        assert_close(score(q.view(1, 1, 2), k.view(1, 1, 2)), by_hand[name](score).view(1, 1, 1))


def test_softmax_by_hand():
    weights = masked_softmax(torch.tensor([13.0, 9.0, 9.0]))
    assert_close(weights, torch.tensor([0.9647, 0.0177, 0.0177]), atol=1e-4, rtol=0)
    weights = masked_softmax(torch.tensor([[math.log(3), 0.0, 99.0]] * 2), torch.tensor([[True, True, False]]))
    assert_close(weights, torch.tensor([[0.75, 0.25, 0.0]] * 2))


@pytest.mark.parametrize("shape", [(5,), (1, 5), (4, 5), (3, 1, 5), (3, 4, 5), (4, 1), (3, 1, 1)])
def test_masks_of_every_broadcastable_shape(shape):
    scores = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(1))
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(2)) < 0.5
    assert mask.any()
    assert not mask.all()
    full = mask.expand(3, 4, 5)
    assert_close(masked_softmax(scores, mask), masked_softmax(scores, full.clone()))
    assert_close(masked_softmax(scores, mask).sum(-1), full.any(-1).float())


def test_softmax_leaves_its_arguments_alone():
    scores, mask = torch.randn(2, 4, 5), torch.rand(2, 4, 5) < 0.5
    copies = scores.clone(), mask.clone()
    masked_softmax(scores, mask)
    assert torch.equal(scores, copies[0])
    assert torch.equal(mask, copies[1])


@pytest.mark.parametrize("masked_score", [-1e30, 0.0, 1e30, math.inf, math.nan])
def test_no_masked_score_is_large_enough(masked_score):
    scores = torch.tensor([-30000.0, -30000.0, masked_score])
    assert masked_softmax(scores, torch.tensor([True, True, False])).tolist() == [0.5, 0.5, 0.0]


def test_an_empty_row_makes_no_nan_even_on_the_way_back():
    scores = torch.randn(2, 3, requires_grad=True)
    weights = masked_softmax(scores, torch.tensor([[True, True, False], [False, False, False]]))
    with torch.autograd.set_detect_anomaly(True):  # raises at the first NaN inside the backward pass
        weights.square().sum().backward()
    assert scores.grad[0, :2].all()
    assert not scores.grad[1].any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("score", [math.inf, -math.inf, math.nan])
def test_an_empty_row_has_no_gradient_whatever_its_scores(score, dtype):
    scores = torch.tensor([[1.0, 2.0, score], [score, 0.0, score]], dtype=dtype, requires_grad=True)
    weights = masked_softmax(scores, torch.tensor([[True, True, False], [False, False, False]]))
    with torch.autograd.set_detect_anomaly(True):
        weights.square().sum().backward()
    assert weights.dtype == dtype
    assert weights[1].tolist() == scores.grad[1].tolist() == [0, 0, 0]
    assert scores.grad[0, :2].all()
    assert scores.grad[0, 2] == 0


def test_no_score_that_counts_is_too_low():
    """What is masked is lower than the lowest number."""
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        scores = torch.tensor([torch.finfo(dtype).min, 0.0], dtype=dtype)
        assert masked_softmax(scores, torch.tensor([True, False])).tolist() == [1, 0]


@pytest.mark.parametrize("shape", [(1, 1, 64), (64, 64), (4, 64, 64)])
def test_two_matrices_are_alive_at_the_worst_moment(shape):
    scores, mask = torch.randn(4, 64, 64), torch.ones(shape, dtype=torch.bool)
    assert peak_memory(lambda: masked_softmax(scores, mask)) < 2.1 * scores.nbytes


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_a_mask_that_is_not_boolean_is_refused(dtype):
    with pytest.raises(TypeError, match="expected torch.bool with True = may attend"):
        masked_softmax(torch.zeros(1, 2), torch.ones(1, 2, dtype=dtype))


@pytest.mark.parametrize("mask", [
    torch.ones(5, 5).tril() > 0, torch.ones(5, 5).tril() - torch.ones(5, 5).tril(-2) > 0, torch.ones(5, 5) > 0,
    torch.arange(5) < torch.tensor([3, 3, 3, 4, 5])[:, None], torch.arange(5) < torch.tensor([1, 2, 0, 4, 5])[:, None],
], ids=["causal", "window", "all", "prefix", "an empty row"])
def test_masks_for_all_sentences_are_taken_with_as_many_sentences(mask):
    """(T_q, T_k), where (B, T_k) would have the same shape."""
    scores = torch.randn(5, 5, 5, generator=torch.Generator().manual_seed(0))
    assert torch.equal(masked_softmax(scores, mask), masked_softmax(scores, mask.expand(5, 5, 5)))


def test_the_scale_comes_before_float16_ends():
    """Each product is 64 * 40 * 40 = 102,400, each score 12,800."""
    query = torch.full((1, 1, 64), 40.0)
    keys = torch.stack([query[0, 0], query[0, 0] - 0.25])[None]
    score = SCORES["scaled_dot"](64, 64)
    assert_close(score(query.half(), keys.half()).float(), score(query, keys), rtol=1e-3, atol=0)


@pytest.mark.parametrize("size", [0.0, 1e-6, 1e-3, 1.0, 2e4])
def test_a_cosine_does_not_mind_how_long_a_float16_vector_is(size):
    query = torch.tensor([3.0, -1, 2, 1, 0, 2]).mul(size).half().expand(1, 2, 6).clone().requires_grad_()
    keys = make_inputs(SIZES, torch.float16)[1][:1].requires_grad_()
    score = SCORES["cosine"](6, 6).half()
    scores = score(query, keys)
    assert all(x.isfinite().all() for x in (scores, *torch.autograd.grad(scores.sum(), (query, keys))))
    if size >= 1:
        assert_close(scores.float(), score.float()(query.float(), keys.float()), rtol=1e-2, atol=1e-2)


def test_each_key_has_a_value():
    query, keys, values = make_inputs(SIZES)
    for fewer in (values[:1], values[:, :-1]):
        with pytest.raises(ValueError, match=r"keys are \(.*\), values \(.*\); expected a value for each key"):
            attend(query, keys, fewer, DotScore(SIZES.d_query, SIZES.d_query))


def test_location_refuses_more_keys_than_positions():
    query, keys, _ = make_inputs(SIZES)
    with pytest.raises(ValueError, match="5 keys, but this score has 4 positions.*max_len=5"):
        LocationScore(SIZES.d_query, SIZES.d_key, max_len=4)(query, keys)


def test_the_scale_keeps_scores_at_the_size_of_one_term():
    """Unit-variance queries and keys: dot products have variance d, scaled ones 1 (Vaswani et al. 2017, note 4)."""
    rng = torch.Generator().manual_seed(0)
    query, keys = torch.randn(1, 300, 64, generator=rng), torch.randn(1, 300, 64, generator=rng)
    assert DotScore(64, 64)(query, keys).var().item() == pytest.approx(64, rel=0.05)
    assert SCORES["scaled_dot"](64, 64)(query, keys).var().item() == pytest.approx(1, rel=0.05)
