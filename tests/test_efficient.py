"""Efficient attention: every function against the dense masked reference, and what must hold for all of them."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from attention_properties import KEY_PROPERTIES, PROPERTIES, Sizes
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_models import with_random_numbers
from sample_patterns import CAUSAL, PATTERNS, SIZES
from torch import Tensor
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from course_utils.attention import sinusoidal
from course_utils.efficient import (
    RelativeAttention,
    columns,
    dense,
    dilated,
    linear,
    log_phi,
    longformer,
    own_block,
    relative_shift,
    sdpa,
    sliding_window,
    strided,
    summaries,
    tiled,
)
from course_utils.measuring import peak_memory

every = pytest.mark.parametrize("name", PATTERNS)
each_causal = pytest.mark.parametrize("name", CAUSAL)


def inputs(n: int, B: int = 2, d: int = 8, d_v: int = 6, dtype=torch.float32, seed: int = 0) -> list[Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return [torch.randn(B, 4, n, width, generator=rng).to(dtype) for width in (d, d, d_v)]


def mask_of(name: str, n: int, **sizes) -> Tensor:
    q, k = torch.arange(n)[:, None], torch.arange(n)
    return PATTERNS[name].mask(q, k, *sizes.values())


@every
@settings(max_examples=25, deadline=None, derandomize=True)
@given(n=st.integers(1, 70), B=st.integers(1, 2), d=st.integers(1, 9), w=st.integers(0, 20), s=st.integers(1, 12),
       c=st.integers(1, 12))
def test_the_pattern_is_its_mask_over_the_full_matrix(name, n, B, d, w, s, c):
    sizes = dict(w=w, s=s, c=min(c, s))
    q, k, v = inputs(n, B, d)
    right = PATTERNS[name].reference(q, k, v, mask_of(name, n, **sizes))
    assert_close(PATTERNS[name].function(**sizes)(q, k, v), right, atol=1e-5, rtol=1e-5)


@each_causal
def test_no_query_sees_a_later_key(name):
    f, (q, k, v) = PATTERNS[name].function(**SIZES), inputs(21)
    before = f(q, k, v)
    for i in range(20):
        later = [x.clone() for x in (q, k, v)]
        for x in later:
            x[:, :, i + 1:] += 3
        after = f(*later)
        assert_close(after[:, :, :i + 1], before[:, :, :i + 1])
        assert not torch.allclose(after[:, :, i + 1:], before[:, :, i + 1:])


@each_causal
def test_what_follows_does_not_matter_whatever_it_is(name):
    """Padding on the right: a shorter sequence has the same outputs, however large the numbers after it."""
    f, (q, k, v) = PATTERNS[name].function(**SIZES), inputs(21)
    short = f(*(x[:, :, :13] for x in (q, k, v)))
    padded = [torch.cat([x[:, :, :13], torch.full_like(x[:, :, 13:], 1e4)], dim=2) for x in (q, k, v)]
    assert_close(f(*padded)[:, :, :13], short)


@every
def test_weights_sum_to_one_or_there_is_nothing_to_see(name):
    q, k, v = inputs(21)
    n_seen = mask_of(name, 21, **SIZES).sum(-1)                            # (n) or (n_heads, n)
    sums = PATTERNS[name].function(**SIZES)(q, k, torch.ones_like(v))
    assert_close(sums, (n_seen > 0).float()[..., None].expand_as(sums))


@every
def test_gradients_are_those_of_the_reference(name):
    gradients = []
    for f in (PATTERNS[name].function(**SIZES), partial(PATTERNS[name].reference, mask=mask_of(name, 21, **SIZES))):
        leaves = [x.requires_grad_() for x in inputs(21, dtype=torch.float64)]
        gradients.append(torch.autograd.grad(f(*leaves).sin().sum(), leaves))
    for mine, right in zip(*gradients, strict=True):
        assert_close(mine, right)


@every
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float16, 1e-2), (torch.bfloat16, 6e-2)])
def test_half_precision_is_near(name, dtype, tolerance):
    f, half = PATTERNS[name].function(**SIZES), inputs(21, dtype=dtype)
    mine = f(*half)
    assert mine.dtype == dtype
    assert_close(mine.float(), f(*(x.float() for x in half)), atol=tolerance, rtol=tolerance)


@every
def test_arguments_are_left_alone(name):
    arguments = inputs(21)
    copies = [x.clone() for x in arguments]
    PATTERNS[name].function(**SIZES)(*arguments)
    assert all(map(torch.equal, arguments, copies))


# --- the work that is saved ----------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["sliding window", "longformer", "dilated", "own block", "linear"])
def test_memory_grows_with_the_length_and_not_with_its_square(name):
    f, peaks = PATTERNS[name].function(w=16, s=16, c=4), []
    for n in (1024, 8192):
        q, k, v = inputs(n, B=1)
        with torch.no_grad():
            peaks.append(peak_memory(partial(f, q, k, v)))
    assert peaks[1] < 10 * peaks[0]                                        # the square would be 64


def test_dense_holds_two_matrices_and_no_third():
    q, k, v = inputs(1024, B=1)
    assert peak_memory(partial(dense, q, k, v)) < 2.3 * 4 * q.size(1) * 1024**2     # the mask and the output are small


def test_a_query_without_a_key_spoils_no_gradient():
    q, k, v = (x.requires_grad_() for x in inputs(8, B=1))
    mask = torch.ones(8, 8, dtype=torch.bool)
    mask[3] = False
    y = dense(q, k, v, mask)
    y.sum().backward()
    assert not y[:, :, 3].any()
    assert not q.grad[:, :, 3].any()
    assert all(x.grad.isfinite().all() for x in (q, k, v))


def test_the_full_matrix_grows_with_the_square():
    peaks = [peak_memory(partial(dense, *inputs(n, B=1))) for n in (256, 1024)]
    assert peaks[1] > 15 * peaks[0]


@pytest.mark.parametrize("f", [partial(sliding_window, window=64), linear], ids=["sliding_window", "linear"])
def test_beside_the_output_nothing_grows_with_the_length(f):
    """No copy of queries, keys and values, and no joined parts."""
    peaks = []
    for n in (4096, 16_384):
        q, k, v = inputs(n, B=1, d_v=8)
        with torch.no_grad():
            peaks.append(peak_memory(partial(f, q, k, v)) - v.nbytes)
    assert peaks[0] == peaks[1] < v.nbytes / 2


@pytest.mark.parametrize("n", [1, 63, 64, 65, 80, 1088, 1100, 2500])
def test_a_window_is_the_same_with_a_gradient_and_in_turn(n):
    """Lengths that end within a block, with one, and with the 1,024 queries that go at a time."""
    x = inputs(n, B=1)
    in_turn = sliding_window(*x, 64)
    with_gradient = sliding_window(*(y.requires_grad_() for y in x), 64)
    assert with_gradient.requires_grad
    assert_close(in_turn, with_gradient.detach())


def test_values_must_fit():
    q, k, v = inputs(8, B=1)
    with pytest.raises(ValueError, match="8 keys and 5 values; expected as many"):
        tiled(q, k, v[:, :, :5])


def test_tiles_need_the_same_memory_for_any_length_beside_the_output():
    beside = []
    for n in (512, 2048):
        q, k, v = inputs(n)
        with torch.no_grad():
            beside.append(peak_memory(partial(tiled, q, k, v)) - v.nbytes)
    assert beside[0] == beside[1]


@pytest.mark.parametrize("n", [1024, 4096])
def test_sdpa_holds_one_tile_per_thread_inside(n):
    """What `peak_memory` does not see; lesson 06 says it: the scores of 256 queries with 512 keys, their m, s and o."""
    now, peak, (q, k, v) = 0, 0, (torch.randn(1, 1, n, 64) for _ in range(3))
    with torch.profiler.profile(profile_memory=True) as profile:
        output = sdpa(q, k, v)
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    seen = output.nbytes + 4 * n                                            # the output, and one number per query
    assert peak - seen == torch.get_num_threads() * 4 * (256 * 512 + 2 * 256 + 256 * 64)


@pytest.mark.parametrize(("name", "share"), [("columns", 0.05), ("summaries", 0.2), ("strided", 0.05), ("fixed", 0.12),
                                             ("sliding window", 0.06), ("own block", 0.05)])
def test_the_matrix_is_never_made(name, share):
    """Beside it: a mask of n x m c, the output, copies of q, k, v."""
    n, (q, k, v) = 4096, inputs(4096, B=1)
    with torch.no_grad():
        peak = peak_memory(partial(PATTERNS[name].function(w=64, s=64, c=4), q, k, v))
    assert peak < share * 4 * 4 * n * n


def test_windows_compute_the_scores_that_they_say():
    """Blocks of a quarter of the window: the window's keys, and its own block's, for each query."""
    q, k, v = inputs(512, B=1)                                              # 4 heads
    a_score = 2 * q.size(-1) + 2 * v.size(-1)
    for f, scores in ((partial(sliding_window, window=128), 128 * 128 + (512 - 128) * (128 + 32)),
                      (partial(longformer, window=128, n_global=8), 8 * 512 + 512 * (8 + 2 * 128 + 32))):
        with FlopCounterMode(display=False) as counter:
            f(q, k, v)
        assert counter.get_total_flops() == 4 * scores * a_score


def test_tiles_above_the_diagonal_are_not_computed():
    q, k, v = inputs(64, B=1)
    operations = []
    for f in (partial(tiled, tile=8), dense):
        with FlopCounterMode(display=False) as counter:
            f(q, k, v)
        operations.append(counter.get_total_flops())
    assert operations[0] == operations[1] * 36 / 64                        # 1 + 2 + … + 8 of 8 x 8 tiles


@pytest.mark.parametrize("shift", [-20, 20])
def test_linear_survives_large_numbers(shift):
    q, k, v = inputs(21)
    for f in (linear, partial(linear, chunk=1)):
        right = f(*(x.double() + s for x, s in zip((q, k, v), (shift, shift, 0), strict=True)))
        assert_close(f(q + shift, k + shift, v).double(), right, atol=1e-5, rtol=1e-5)


def test_long_sums_are_not_in_half_precision():
    q, k, v = inputs(2000, B=1, dtype=torch.bfloat16)
    right = linear(q.float(), k.float(), v.float())
    assert_close(linear(q, k, v).float(), right, atol=1e-2, rtol=1e-2)
    steps = linear(q, k, v, chunk=1)
    assert steps.dtype == torch.bfloat16
    assert_close(steps.float(), right, atol=1e-2, rtol=1e-2)


def test_sums_over_many_tiles_are_not_in_half_precision():
    q = torch.zeros(1, 1, 128, 8, dtype=torch.float16)
    v = torch.full_like(q, 1000.0)                                          # the sum of 66 is too much for float16
    assert_close(tiled(q, q, v, tile=4), v)


@pytest.mark.parametrize("sign", [-1, 1])
def test_tiles_survive_large_scores(sign):
    q, v = torch.full((1, 1, 21, 8), 20.0), inputs(21, B=1)[2][:, :1]
    assert_close(tiled(q, sign * q, v, tile=4), dense(q, sign * q, v), atol=1e-5, rtol=1e-5)


def test_phi_is_elu_plus_one():
    x = torch.tensor([-3.0, -1.0, 0.0, 0.5, 4.0])
    assert_close(log_phi(x).exp(), F.elu(x) + 1)
    extreme = torch.tensor([-200.0, 100.0], requires_grad=True)
    log_phi(extreme).sum().backward()
    assert_close(extreme.grad, torch.tensor([1, 1 / 101]))                 # and not 0 times infinity


def log_reference(q, k, v):
    """Linear attention in float64, where nothing is rounded to zero: all products by their logarithms."""
    q, k, v = (x.double() for x in (q, k, v))
    logits = (log_phi(q).unsqueeze(3) + log_phi(k).unsqueeze(2)).logsumexp(-1)             # (B, n_heads, n, n)
    later = torch.ones(q.size(2), q.size(2), dtype=torch.bool).triu(1)
    return logits.masked_fill(later, -torch.inf).softmax(-1) @ v


TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 3e-2}


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(shifts=st.tuples(*[st.sampled_from([-1000, -200, -104, -60, -52, 0, 200, 60_000])] * 2),
       scale=st.sampled_from([0.1, 1, 30, 1000]), n=st.integers(1, 40), chunk=st.integers(1, 50))
def test_linear_is_right_however_small_or_large_its_features(dtype, shifts, scale, n, chunk):
    q, k, v = inputs(n, B=1)
    q, k = (x * scale + shift for x, shift in zip((q, k), shifts, strict=True))
    leaves = [x.to(dtype).requires_grad_() for x in (q, k, v)]
    right = log_reference(*leaves)
    for f in (partial(linear, chunk=chunk), partial(linear, chunk=1)):
        mine = f(*leaves)
        assert mine.dtype == dtype
        assert_close(mine.double(), right, atol=TOLERANCES[dtype], rtol=TOLERANCES[dtype])
        assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(mine.sum(), leaves))


@pytest.mark.parametrize("chunk", [1, 5, 64])
def test_the_gradient_of_linear_does_not_notice_the_scale(chunk):
    leaves = [x.requires_grad_() for x in inputs(21, dtype=torch.float64)]
    for shift in (-200, 0):
        shifted = [leaves[0] + shift, leaves[1] + shift, leaves[2]]
        mine, right = (torch.autograd.grad(f(*shifted).sin().sum(), leaves) for f in (
            partial(linear, chunk=chunk), log_reference))
        assert_close(mine, right)


def test_a_narrow_window_with_global_tokens_is_small_and_without_them_no_key_is_copied():
    q, k, v = inputs(4096, B=1)
    with torch.no_grad():
        wide = torch.randn(3, 1, 4, 4096, 32)
        assert peak_memory(lambda: longformer(*wide, 256, 0)) < 0.7 * peak_memory(
            lambda: longformer(*wide, 256, 1))
        assert peak_memory(lambda: longformer(q, k, v, 4, 64)) < 0.2 * 4 * 4 * 4096**2


@every
@pytest.mark.parametrize("shape", [(2, 4, 0), (0, 4, 21), (2, 0, 21), (0, 0, 0)], ids=str)
def test_nothing_is_possible(name, shape):
    """No positions, no sentences, no heads."""
    q, k, v = (torch.zeros(*shape, width, requires_grad=True) for width in (8, 8, 6))
    output = PATTERNS[name].function(**SIZES)(q, k, v)
    assert output.shape == (*shape, 6)
    (output.sum() + v.sum()).backward()


@every
def test_any_layout_is_read_and_sentences_and_heads_stay_apart(name):
    f, (q, k, v) = PATTERNS[name].function(**SIZES), inputs(21)
    right = f(q, k, v)
    assert_close(f(*(x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0) for x in (q, k, v))), right)
    assert_close(f(*(x.flip(0) for x in (q, k, v))), right.flip(0))
    for b in range(2):
        assert_close(f(*(x[b:b + 1] for x in (q, k, v))), right[b:b + 1])
    if name not in ("strided", "fixed"):                                   # whose heads differ
        assert_close(f(*(x.flip(1) for x in (q, k, v))), right.flip(1))


@every
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_large_scores_in_half_precision_are_those_of_float64(name, dtype):
    """Up to 64 * 40 * 40 before the scale, which float16 does not hold."""
    q, _, v = inputs(21, d=64, dtype=dtype)
    leaves = [x.requires_grad_() for x in (q.sign() * 40, q.sign() * 40, v)]
    f = PATTERNS[name].function(**SIZES)
    mine, right = f(*leaves), f(*(x.double() for x in leaves))
    assert_close(mine.double(), right, atol=3e-2, rtol=3e-2)
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(mine.sum(), leaves))


@pytest.mark.parametrize("has_property", PROPERTIES + KEY_PROPERTIES, ids=lambda p: p.__name__)
def test_the_full_matrix_has_the_properties_of_all_attention(has_property):
    """Its weights are what it makes of values that name the keys."""
    def attention(query, keys, values, mask):
        mask = query.new_ones(keys.size(1), dtype=torch.bool) if mask is None else mask
        mask = mask.unsqueeze(1) if mask.dim() == 3 else mask
        names = torch.eye(keys.size(1), dtype=values.dtype).expand(len(keys), -1, -1)
        return tuple(dense(*(x.unsqueeze(1) for x in (query, keys, v)), mask).squeeze(1) for v in (values, names))

    has_property(attention, Sizes())


def test_a_window_wider_than_the_text_costs_no_more_than_the_text():
    q, k, v = inputs(64)
    assert peak_memory(lambda: longformer(q, k, v, 4000, 2)) < 3 * peak_memory(lambda: longformer(q, k, v, 64, 2))
    assert_close(longformer(q, k, v, 4000, 2), dense(q, k, v, torch.ones(64, 64, dtype=torch.bool)))


# --- Transformer-XL ------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("T", "K"), [(1, 1), (1, 5), (3, 5), (5, 5)])
def test_the_shift_is_the_loop(T, K):
    x = torch.randn(2, 3, T, K)
    shifted = relative_shift(x)
    for i in range(T):
        for j in range(K - T + i + 1):
            distance = K - T + i - j
            assert_close(shifted[..., i, j], x[..., i, K - 1 - distance])


def test_relative_attention_is_finite_where_scores_leave_float16():
    attention, x = RelativeAttention(64, 1).half(), torch.full((1, 3, 64), 100.0).half()
    with torch.no_grad():
        for weight in (attention.heads.W_q.weight, attention.heads.W_k.weight):
            weight.copy_(torch.eye(64))                                    # q . k = 640,000, and 80,000 when scaled
        output = attention(x, x[:, :0])
    assert output.dtype == torch.float16
    assert output.isfinite().all()


def test_relative_attention_by_its_formula():
    """Dai et al. 2019, section 3.3: the four terms, one pair at a time."""
    attention = with_random_numbers(RelativeAttention(8, 2))
    x, memory = torch.randn(1, 3, 8).double(), torch.randn(1, 2, 8).double()
    seen = torch.cat([memory, x], dim=1)
    heads = attention.heads
    q, k, v = (heads.split(W(y)) for W, y in ((heads.W_q, x), (heads.W_k, seen), (heads.W_v, seen)))
    r = heads.split(attention.W_r(sinusoidal(5, 8).double()[None]))        # r[distance]
    scores = torch.full((1, 2, 3, 5), -torch.inf).double()
    for h in range(2):
        for i in range(3):
            for j in range(2 + i + 1):
                content = (q[0, h, i] + attention.u[h, 0]) @ k[0, h, j]
                place = (q[0, h, i] + attention.v[h, 0]) @ r[0, h, 2 + i - j]
                scores[0, h, i, j] = (content + place) / 2                 # sqrt(d_k) = 2
    right = heads.W_o(heads.join(scores.softmax(-1) @ v))
    assert_close(attention(x, memory), right)


def test_relative_attention_offers_no_ordinary_attention():
    """It has heads and is none: called by another name it must not attend without distances."""
    assert not hasattr(RelativeAttention(8, 2), "attend")


# --- bad input -----------------------------------------------------------------------------------------------

EVERY = [pattern.function(**SIZES) for pattern in PATTERNS.values()]


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: sliding_window(*x, -1), "window is -1"),
    (lambda x: longformer(*x, 2, -1), "n_global is -1; expected at least 0"),
    (lambda x: columns(*x, 0), "stride is 0; expected at least 1"),
    (lambda x: own_block(*x, 0), "stride is 0"),
    (lambda x: dilated(*x, 2, 0), "dilation is 0"),
    (lambda x: summaries(*x, 4, 5), "c is 5, but a block has stride=4"),
    (lambda x: strided(*(t[:, :3] for t in x), 4), "two patterns share the heads, but there are 3"),
    (lambda x: tiled(*x, tile=0), "tile is 0"),
    (lambda x: linear(*x, chunk=0), "chunk is 0"),
    (lambda x: dense(*x, mask=torch.ones(21, 21)), "expected torch.bool"),
    *((lambda x, f=f: f(*(t[0] for t in x)), r"expected \(B, n_heads, n, d\)") for f in EVERY),
    *((lambda x, f=f: f(x[0][:1], *x[1:]), "the same B and n_heads for all") for f in EVERY),
    *((lambda x, f=f: f(*x[:2], x[2][:, :2]), "the same B and n_heads for all") for f in EVERY),
    *((lambda x, f=f: f(x[0][..., :3], *x[1:]), "the same d for q and k") for f in EVERY),
    *((lambda x, f=f: f(x[0][..., :0], x[1][..., :0], x[2]), "d is 0; expected at least 1") for f in EVERY),
    *((lambda x, f=f: f(*(t.long() for t in x)), "torch.int64; expected one floating type") for f in EVERY),
    *((lambda x, f=f: f(*x[:2], x[2].half()), "torch.float16; expected one floating type") for f in EVERY),
    *((lambda x, f=f: f(x[0][:, :, -3:], *x[1:]), "3 queries and 21 keys; expected as many") for f in (
        sdpa, tiled, linear, *(PATTERNS[name].function(**SIZES) for name in (
            "sliding window", "window on both sides", "longformer", "dilated", "columns", "own block", "summaries")))),
    *((lambda x, f=f: f(*x[:2], x[2][:, :, :3]), "21 keys and 3 values; expected as many") for f in (
        sdpa, tiled, linear, *(PATTERNS[name].function(**SIZES) for name in (
            "sliding window", "window on both sides", "longformer", "dilated", "columns", "own block", "summaries")))),
])
def test_bad_input_is_told(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(inputs(21))
