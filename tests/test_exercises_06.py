"""Lesson 06's checks, checked: wrong answers as tired students give them, right ones in other styles than ours."""

import math

import numpy as np
import pytest
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

from course_utils import efficient
from course_utils.exercises import WrongAnswer, check
from course_utils.exercises.lesson_06 import LESSON_06, _Made
from course_utils.widgets.mask_explorer import PATTERNS

LESSON = LESSON_06
REFERENCE = {exercise.name: exercise.reference for exercise in LESSON}


# --- count_pairs ---------------------------------------------------------------------------------------------

@wrong("count_pairs", "The first queries have fewer keys")
def cp_all_full(n, window):
    return n * (window + 1)


@wrong("count_pairs", "its own not among them")
def cp_product(n, window):
    return window * n


@wrong("count_pairs", "The query's own key is not counted")
def cp_without_own(n, window):
    return sum(min(t, window) for t in range(n))


@wrong("count_pairs", "Only the n - window full windows")
def cp_full_windows(n, window):
    return len(range(window, n)) * (window + 1)


@wrong("count_pairs", "one step too small")
def cp_small_triangle(n, window):
    missing = sum(range(window))
    return n * (window + 1) - missing


@wrong("count_pairs", "open to both sides")
def cp_both_sides(n, window):
    return sum(len(range(max(0, t - window), min(n, t + window + 1))) for t in range(n))


@wrong("count_pairs", "The window counts the query's own key here")
def cp_own_in_window(n, window):
    return sum(len(range(max(0, t - window + 1), t + 1)) for t in range(n))


@wrong("count_pairs", "the window is not used")
def cp_causal(n, window):
    return sum(t + 1 for t in range(n))


@wrong("count_pairs", "These are all pairs")
def cp_square(n, window):
    return n ** 2


@wrong("count_pairs", "The window may be wider than the text")
def cp_wide(n, window):
    corner = sum(range(1, window + 1))
    return n * (window + 1) - corner


@wrong("count_pairs", "The window may be wider than the text")
def cp_two_parts(n, window):
    return sum(t + 1 for t in range(window)) + (n - window) * (window + 1)


@wrong("count_pairs", "A division with / makes a float")
def cp_float(n, window):
    w = min(window, n - 1)
    return (w + 1) * (n - w / 2)


@wrong("count_pairs", "The count is a tensor")
def cp_tensor(n, window):
    return (torch.arange(n).clamp(max=window) + 1).sum()


@wrong("count_pairs", "You built the whole n x n matrix")
def cp_matrix(n, window):
    distance = torch.arange(n)[:, None] - torch.arange(n)
    return ((distance >= 0) & (distance <= window)).sum().item()


@wrong("count_pairs", "You built the whole n x n matrix")
def cp_rows_of_a_matrix(n, window):
    keys = torch.arange(n)
    return sum(int(((keys <= t) & (keys >= t - window)).sum()) for t in range(n))


@right("count_pairs")
def cp_sum(n, window):
    return sum(min(t, window) + 1 for t in range(n))


@right("count_pairs")
def cp_arange(n, window):
    return int(torch.arange(1, n + 1).clamp(max=window + 1).sum())


@right("count_pairs")
def cp_by_distance(n, window):
    return sum(n - distance for distance in range(min(window + 1, n)))


# --- window_by_blocks ----------------------------------------------------------------------------------------

def blocks_of(x, w):
    B, n_heads, n, d = x.shape
    return x.reshape(B, n_heads, n // w, w, d)


def with_previous(x, w):
    blocks = blocks_of(x, w)
    previous = torch.cat([torch.zeros_like(blocks[:, :, :1]), blocks[:, :, :-1]], dim=2)
    return torch.cat([previous, blocks], dim=3)


def by_blocks(q, k, v, w, mask, scale=None, dim=-1):
    """As in the solution; the mask is (window, 2 window), and the first block is right."""
    scores = blocks_of(q, w) @ with_previous(k, w).mT / (scale or math.sqrt(q.shape[-1]))
    scores = scores.masked_fill(~mask, -math.inf)
    scores[:, :, 0, :, :w] = -math.inf
    return (scores.softmax(dim) @ with_previous(v, w)).reshape(q.shape)


def band(w):
    return torch.ones(w, 2 * w).tril(w).triu().bool()


@wrong("window_by_blocks", "The block before is forgotten")
def wb_own_block(q, k, v, window):
    q, k, v = (blocks_of(x, window) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).flatten(2, 3)


@wrong("window_by_blocks", "The mask goes by blocks")
def wb_whole_block_before(q, k, v, window):
    mask = torch.ones(window, 2 * window).tril(window).bool()
    return by_blocks(q, k, v, window, mask)


@wrong("window_by_blocks", "There is no mask")
def wb_no_mask(q, k, v, window):
    return by_blocks(q, k, v, window, torch.ones(window, 2 * window).bool())


@wrong("window_by_blocks", "The future is seen")
def wb_future(q, k, v, window):
    return by_blocks(q, k, v, window, torch.ones(window, 2 * window).triu().bool())


@wrong("window_by_blocks", "the farthest key is missing")
def wb_off_by_one(q, k, v, window):
    return by_blocks(q, k, v, window, torch.ones(window, 2 * window).tril(window).triu(1).bool())


@wrong("window_by_blocks", "a key too many")
def wb_one_too_many(q, k, v, window):
    return by_blocks(q, k, v, window, torch.ones(window, 2 * window).tril(window).triu(-1).bool())


@wrong("window_by_blocks", "The query does not see its own key")
def wb_without_own(q, k, v, window):
    return by_blocks(q, k, v, window, torch.ones(window, 2 * window).tril(window - 1).triu().bool())


@wrong("window_by_blocks", "attends to the zeros of the padding")
def wb_zeros_seen(q, k, v, window):
    scores = blocks_of(q, window) @ with_previous(k, window).mT / q.shape[-1] ** 0.5
    weights = scores.masked_fill(~band(window), -math.inf).softmax(-1)
    return (weights @ with_previous(v, window)).flatten(2, 3)


@wrong("window_by_blocks", "roll goes around the end")
def wb_roll(q, k, v, window):
    q, k, v = (blocks_of(x, window) for x in (q, k, v))
    k, v = (torch.cat([x.roll(1, dims=2), x], dim=3) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=band(window)).flatten(2, 3)


@wrong("window_by_blocks", "Each block got the block *after* it")
def wb_next(q, k, v, window):
    def pairs(x):
        blocks = blocks_of(x, window)
        return torch.cat([torch.cat([blocks[:, :, 1:], torch.zeros_like(blocks[:, :, :1])], 2), blocks], 3)
    scores = blocks_of(q, window) @ pairs(k).mT / q.shape[-1] ** 0.5
    weights = scores.masked_fill(~band(window), -math.inf).softmax(-1)
    return (weights @ pairs(v)).flatten(2, 3)


@wrong("window_by_blocks", "The scale is missing")
def wb_no_scale(q, k, v, window):
    return by_blocks(q, k, v, window, band(window), scale=1.0)


@wrong("window_by_blocks", "The scale is its root")
def wb_scale_d(q, k, v, window):
    return by_blocks(q, k, v, window, band(window), scale=q.shape[-1])


@wrong("window_by_blocks", "The softmax runs over the wrong axis")
def wb_wrong_axis(q, k, v, window):
    return by_blocks(q, k, v, window, band(window), dim=-2)


@wrong("window_by_blocks", "The blocks are not joined again")
def wb_five_axes(q, k, v, window):
    return by_blocks(q, k, v, window, band(window)).unflatten(2, (-1, window))


@wrong("window_by_blocks", "The positions of a block are not neighbours")
def wb_interleaved(q, k, v, window):
    n = q.shape[2] // window
    q, k, v = (x.reshape(*x.shape[:2], window, n, -1).transpose(2, 3).flatten(2, 3) for x in (q, k, v))
    return by_blocks(q, k, v, window, band(window))


@wrong("window_by_blocks", "The window is not used")
def wb_causal(q, k, v, window):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@wrong("window_by_blocks", "open to both sides")
def wb_both_sides(q, k, v, window):
    n = q.shape[2]
    mask = torch.ones(n, n).tril(window).triu(-window).bool()
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@wrong("window_by_blocks", "nothing is saved")
def wb_dense(q, k, v, window):
    n = q.shape[2]
    mask = torch.ones(n, n).tril().triu(-window).bool()
    return (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~mask, -math.inf).softmax(-1) @ v


@wrong("window_by_blocks", "nothing is saved")
def wb_blocks_against_all_keys(q, k, v, window):
    keys, out = torch.arange(k.shape[2]), []
    for start in range(0, q.shape[2], window):
        rows = torch.arange(start, start + window)[:, None]
        mask = (keys <= rows) & (keys >= rows - window)
        out.append(F.scaled_dot_product_attention(q[:, :, start:start + window], k, v, attn_mask=mask))
    return torch.cat(out, dim=2)


@wrong("window_by_blocks", "`k` was changed")
def wb_in_place(q, k, v, window):
    k /= math.sqrt(q.shape[-1])
    return by_blocks(q, k, v, window, band(window), scale=1.0)


@wrong("window_by_blocks", "no gradient reaches `q`")
def wb_no_grad(q, k, v, window):
    with torch.no_grad():
        return by_blocks(q, k, v, window, band(window))


@right("window_by_blocks")
def wb_solution(q, k, v, window):
    return by_blocks(q, k, v, window, band(window))


@right("window_by_blocks")
def wb_loop_over_blocks(q, k, v, window):
    out = []
    for start in range(0, q.shape[2], window):
        first = max(0, start - window)
        block = slice(start, start + window)
        rows, keys = torch.arange(start, start + window)[:, None], torch.arange(first, start + window)
        mask = (keys <= rows) & (keys >= rows - window)
        out.append(F.scaled_dot_product_attention(
            q[:, :, block], k[:, :, first:start + window], v[:, :, first:start + window], attn_mask=mask))
    return torch.cat(out, dim=2)


@right("window_by_blocks")
def wb_query_by_query(q, k, v, window):
    rows = []
    for t in range(q.shape[2]):
        seen = slice(max(0, t - window), t + 1)
        scores = k[:, :, seen] @ q[:, :, t, :, None] / math.sqrt(q.shape[-1])
        rows.append((scores.softmax(2) * v[:, :, seen]).sum(2))
    return torch.stack(rows, 2)


@right("window_by_blocks")
def wb_unfold(q, k, v, window):
    k, v = (F.pad(x, (0, 0, window, 0)).unfold(2, window + 1, 1) for x in (k, v))      # (B, n_heads, n, d, window + 1)
    scores = torch.einsum("bhnd,bhndw->bhnw", q, k) / math.sqrt(q.shape[-1])
    exists = torch.arange(q.shape[2])[:, None] + torch.arange(window + 1) >= window
    return torch.einsum("bhnw,bhndw->bhnd", scores.masked_fill(~exists, -math.inf).softmax(-1), v)


# --- slots_to_keys -------------------------------------------------------------------------------------------

@wrong("slots_to_keys", "The scores come back by slot, as they were")
def sk_nothing(scores):
    return scores.clone()


@wrong("slots_to_keys", "The rows move to the right")
def sk_right(scores):
    T = len(scores)
    return torch.stack([scores[t].roll(T - 1 - t) for t in range(T)])


@wrong("slots_to_keys", "The first row stays and the last moves most")
def sk_by_t(scores):
    return torch.stack([row.roll(-t) for t, row in enumerate(scores)])


@wrong("slots_to_keys", "Every row moves one too far")
def sk_one_too_far(scores):
    return torch.stack([row.roll(t - len(scores)) for t, row in enumerate(scores)])


@wrong("slots_to_keys", "All rows move by the same")
def sk_all_the_same(scores):
    return scores.roll(1 - len(scores), dims=1)


@wrong("slots_to_keys", "The queries are taken as the first T of the K positions")
def sk_no_memory(scores):
    T, K = scores.shape
    slot = K - 1 - (torch.arange(T)[:, None] - torch.arange(K))
    return scores.gather(1, slot % K)


@wrong("slots_to_keys", "The slots are read the wrong way round")
def sk_slot_is_distance(scores):
    T, K = scores.shape
    distance = torch.arange(K - T, K)[:, None] - torch.arange(K)
    return scores.gather(1, distance.clamp(min=0))


@wrong("slots_to_keys", "The column of zeros stands on the right")
def sk_pad_right(scores):
    T, K = scores.shape
    padded = torch.cat([scores, torch.zeros(T, 1)], dim=1)
    return padded.view(K + 1, T)[1:].view(T, K)


@wrong("slots_to_keys", "The last row of the view was dropped")
def sk_drops_the_last(scores):
    T, K = scores.shape
    return F.pad(scores, (1, 0)).view(K + 1, T)[:-1].view(T, K)


@wrong("slots_to_keys", "Rows and columns are swapped by a transpose")
def sk_transposed(scores):
    return F.pad(scores, (1, 0)).T[1:].reshape(scores.shape)


@wrong("slots_to_keys", "The last step is missing")
def sk_not_viewed_again(scores):
    T, K = scores.shape
    return F.pad(scores, (1, 0)).reshape(K + 1, T)[1:]


@wrong("slots_to_keys", "The first row of the view is still there")
def sk_row_kept(scores):
    T, K = scores.shape
    return torch.cat([torch.zeros(T, 1), scores], 1).view(K + 1, T)


@wrong("slots_to_keys", "does not hold the column of zeros")
def sk_wrong_view(scores):
    T, K = scores.shape
    return F.pad(scores, (1, 0)).view(K, T)[1:].view(T, K)


@wrong("slots_to_keys", "no gradient reaches `scores`")
def sk_numpy(scores):
    rows = scores.detach().numpy()
    return torch.from_numpy(np.stack([np.roll(row, t + 1 - len(rows)) for t, row in enumerate(rows)]))


@right("slots_to_keys")
def sk_trick(scores):
    T, K = scores.shape
    padded = torch.cat([torch.zeros(T, 1), scores], dim=1)
    return padded.view(K + 1, T)[1:].view(T, K)


@right("slots_to_keys")
def sk_loop(scores):
    T, K = scores.shape
    by_key = torch.full((T, K), math.nan)                     # ahead of the query may stand anything
    for t in range(T):
        for j in range(K - T + t + 1):
            by_key[t, j] = scores[t, K - 1 - (K - T + t - j)]
    return by_key


@right("slots_to_keys")
def sk_gather(scores):
    T, K = scores.shape
    slot = torch.arange(K) + torch.arange(T - 1, -1, -1)[:, None]
    return scores.gather(1, slot.clamp(max=K - 1))


@right("slots_to_keys")
def sk_roll(scores):
    return torch.stack([row.roll(t + 1 - len(scores)) for t, row in enumerate(scores)])


# --- remember ------------------------------------------------------------------------------------------------

@wrong("remember", "The old memory is forgotten")
def re_segment_only(memory, segment, mem_len):
    return segment[:, -mem_len:].detach()


@wrong("remember", "Only the old memory is kept")
def re_memory_only(memory, segment, mem_len):
    return memory[:, -mem_len:].detach()


@wrong("remember", "Nothing is forgotten")
def re_grows(memory, segment, mem_len):
    return torch.cat([memory, segment], 1).detach()


@wrong("remember", "The *first* mem_len positions are kept")
def re_first(memory, segment, mem_len):
    return torch.cat([memory, segment], 1)[:, :mem_len].detach()


@wrong("remember", "The segment stands before the memory")
def re_swapped(memory, segment, mem_len):
    both = torch.cat([segment, memory], 1)
    return both[:, -mem_len:].detach() if mem_len else both[:, :0]


@wrong("remember", "mem_len positions of the memory are kept *and* the whole segment")
def re_and_segment(memory, segment, mem_len):
    return torch.cat([memory[:, -mem_len:], segment], dim=1).detach()


@wrong("remember", "The new memory is as long as the old one")
def re_constant(memory, segment, mem_len):
    return torch.cat([memory, segment], 1)[:, segment.shape[1]:].detach()


@wrong("remember", "-0 is 0")
def re_minus_zero(memory, segment, mem_len):
    return torch.cat([memory, segment], dim=1)[:, -mem_len:].detach()


@wrong("remember", "counts from the end. At least 0")
def re_negative(memory, segment, mem_len):
    both = torch.cat([memory, segment], dim=1)
    return both[:, both.shape[1] - mem_len:].data


@wrong("remember", "Zeros fill the memory")
def re_filled(memory, segment, mem_len):
    empty = memory.new_zeros(len(memory), mem_len, memory.shape[2])
    both = torch.cat([empty, memory, segment], dim=1)
    return both[:, both.shape[1] - mem_len:].detach()


@wrong("remember", "The memory is not detached")
def re_not_detached(memory, segment, mem_len):
    both = torch.cat([memory, segment], dim=1)
    return both[:, max(0, both.shape[1] - mem_len):]


@wrong("remember", "The memory is not detached")
def re_detached_too_early(memory, segment, mem_len):
    both = torch.cat([memory.detach(), segment], dim=1)
    return both[:, max(0, both.shape[1] - mem_len):]


@wrong("remember", "The two are joined along the batch")
def re_batch(memory, segment, mem_len):
    return torch.cat([memory, segment])[:, -mem_len:].detach()


@wrong("remember", "The last numbers of each vector are kept")
def re_width(memory, segment, mem_len):
    return torch.cat([memory, segment], 1)[..., -mem_len:].detach()


@wrong("remember", "when the segment carries a gradient")
def re_numpy(memory, segment, mem_len):
    both = np.concatenate([memory.numpy(), segment.numpy()], axis=1)
    return torch.from_numpy(both[:, max(0, both.shape[1] - mem_len):])


@right("remember")
def re_no_grad(memory, segment, mem_len):
    with torch.no_grad():
        both = torch.cat([memory, segment], dim=1)
        return both[:, max(both.shape[1] - mem_len, 0):]


@right("remember")
def re_split(memory, segment, mem_len):
    if mem_len == 0:
        return memory[:, :0]
    return torch.cat([memory, segment], dim=1)[:, -mem_len:].detach()


@right("remember")
def re_narrow(memory, segment, mem_len):
    both = torch.cat((memory.detach(), segment.detach()), 1)
    n = min(mem_len, both.size(1))
    return both.narrow(1, both.size(1) - n, n)


# --- online_update -------------------------------------------------------------------------------------------

def safe(m):
    return torch.where(m == -math.inf, 0, m)


@wrong("online_update", "The old sums are added as they are")
def ou_overwritten(m, s, o, scores, v):
    m = torch.maximum(m, scores.max(-1, keepdim=True).values)
    p = (scores - safe(m)).exp()
    a = (m - safe(m)).exp()
    return m, a * s + p.sum(-1, keepdim=True), a * o + p @ v


@wrong("online_update", "o is not rescaled")
def ou_o_forgotten(m, s, o, scores, v):
    new = torch.maximum(m, scores.max(-1, keepdim=True).values)
    p = (scores - safe(new)).exp()
    return new, s * (m - safe(new)).exp() + p.sum(-1, keepdim=True), o + p @ v


@wrong("online_update", "s is not rescaled")
def ou_s_forgotten(m, s, o, scores, v):
    new = torch.maximum(m, scores.max(-1, keepdim=True).values)
    p = (scores - safe(new)).exp()
    return new, s + p.sum(-1, keepdim=True), o * (m - safe(new)).exp() + p @ v


@wrong("online_update", "The rescaling is turned round")
def ou_turned_round(m, s, o, scores, v):
    new = torch.maximum(m, scores.max(-1, keepdim=True).values)
    a, p = (safe(new) - m).exp(), (scores - safe(new)).exp()
    return new, a * s + p.sum(-1, keepdim=True), a * o + p @ v


@wrong("online_update", "The old maximum is forgotten")
def ou_tile_max(m, s, o, scores, v):
    new = scores.amax(-1, keepdim=True)
    a, p = (m - new).exp(), (scores - new).exp()
    return new, a * s + p.sum(-1, keepdim=True), a * o + p @ v


@wrong("online_update", "p is made with the tile's own maximum")
def ou_two_maxima(m, s, o, scores, v):
    tile_max = scores.amax(-1, keepdim=True)
    new = torch.maximum(m, tile_max)
    a, p = (m - new).exp(), (scores - tile_max).exp()
    return new, a * s + p.sum(-1, keepdim=True), a * o + p @ v


@wrong("online_update", "exp(scores) without a maximum")
def ou_no_maximum(m, s, o, scores, v):
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    a, p = (m - new).exp(), scores.exp()
    return new, a * s + p.sum(-1, keepdim=True), a * o + p @ v


@wrong("online_update", "One maximum for all queries")
def ou_one_maximum(m, s, o, scores, v):
    new = torch.maximum(m, scores.max())
    a, p = (m - new).exp(), (scores - new).exp()
    return new, a * s + p.sum(-1, keepdim=True), a * o + p @ v


@wrong("online_update", "o is divided by s already")
def ou_divided(m, s, o, scores, v):
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    a, p = (m - new).exp(), (scores - new).exp()
    s = a * s + p.sum(-1, keepdim=True)
    return new, s, (a * o + p @ v) / s


@wrong("online_update", "a softmax over this tile alone")
def ou_softmax(m, s, o, scores, v):
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    a, p = (m - new).exp(), (scores - new).exp()
    return new, a * s + p.sum(-1, keepdim=True), a * o + scores.softmax(-1) @ v


@wrong("online_update", "s and o are those of this tile only")
def ou_this_tile(m, s, o, scores, v):
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    p = (scores - new).exp()
    return new, p.sum(-1, keepdim=True), p @ v


@wrong("online_update", "The order of the results is (m, s, o)")
def ou_order(m, s, o, scores, v):
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    a, p = (m - new).exp(), (scores - new).exp()
    return a * o + p @ v, new, a * s + p.sum(-1, keepdim=True)


@wrong("online_update", "The sum lost an axis")
def ou_lost_axis(m, s, o, scores, v):
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    a, p = (m - new).exp(), (scores - new).exp()
    return new, a * s + p.sum(-1), a * o + p @ v


@wrong("online_update", "-inf - (-inf) is NaN")
def ou_nan(m, s, o, scores, v):
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    a, p = (m - new).exp(), (scores - new).exp()
    return new, a * s + p.sum(-1, keepdim=True), a * o + p @ v


@wrong("online_update", "A large negative number stands in for -inf")
def ou_large_negative(m, s, o, scores, v):
    m = m.masked_fill(m == -math.inf, -1e9)
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    a, p = (m - new).exp(), (scores - new).exp()
    return new, a * s + p.sum(-1, keepdim=True), a * o + p @ v


@wrong("online_update", "m becomes 0 where a query has seen nothing")
def ou_zero(m, s, o, scores, v):
    new = safe(torch.maximum(m, scores.amax(-1, keepdim=True)))
    a, p = (m - new).exp(), (scores - new).exp()
    return new, a * s + p.sum(-1, keepdim=True), a * o + p @ v


@wrong("online_update", "exp(NaN) was mended to 1")
def ou_mended_too_early(m, s, o, scores, v):
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    a, p = ((x - new).nan_to_num(neginf=-math.inf).exp() for x in (m, scores))
    return new, a * s + p.sum(-1, keepdim=True), a * o + p @ v


@wrong("online_update", "`m` was changed")
def ou_in_place(m, s, o, scores, v):
    old = m.clone()
    torch.maximum(m, scores.amax(-1, keepdim=True), out=m)
    a, p = (old - safe(m)).exp(), (scores - safe(m)).exp()
    return m, a * s + p.sum(-1, keepdim=True), a * o + p @ v


@right("online_update")
def ou_where(m, s, o, scores, v):
    new = torch.maximum(m, scores.max(dim=-1, keepdim=True).values)
    a, p = torch.exp(m - safe(new)), torch.exp(scores - safe(new))
    return new, a * s + p.sum(dim=-1, keepdim=True), a * o + p @ v


@right("online_update")
def ou_mended(m, s, o, scores, v):
    new = torch.cat([m, scores], 1).amax(1, keepdim=True)
    a, p = ((x - new).exp().nan_to_num(0.0) for x in (m, scores))
    return [new, a * s + p.sum(1, keepdim=True), a * o + p @ v]


@right("online_update")
def ou_row_by_row(m, s, o, scores, v):
    rows = []
    for m_t, s_t, o_t, row in zip(m, s, o, scores, strict=True):
        new = max(m_t, row.max())
        if new > -math.inf:
            s_t = s_t * (m_t - new).exp() + (row - new).exp().sum()
            o_t = o_t * (m_t - new).exp() + ((row - new).exp()[:, None] * v).sum(0)
        rows.append((new.view(1), s_t, o_t))
    return tuple(torch.stack(column) for column in zip(*rows, strict=True))


# --- choose --------------------------------------------------------------------------------------------------

def reached(mask, layers):
    return torch.linalg.matrix_power(mask.float(), layers)[-1]


@wrong("choose", "does not carry everything to the last position")
def ch_cheapest(masks, layers):
    return min(masks, key=lambda name: masks[name].sum().item())


@wrong("choose", "This one has the most pairs")
def ch_most(masks, layers):
    return max((name for name in masks if reached(masks[name], layers).all()), key=lambda name: masks[name].sum())


@wrong("choose", "Only the first position is looked at")
def ch_first_key(masks, layers):
    good = {name: mask.sum() for name, mask in masks.items() if reached(mask, layers)[0] > 0}
    return min(good, key=good.get)


@wrong("choose", "The layers are not used")
def ch_one_layer(masks, layers):
    good = {name: mask.sum() for name, mask in masks.items() if mask[-1].all()}
    return min(good, key=good.get)


@wrong("choose", "The layers are not used")
def ch_entry_by_entry(masks, layers):
    good = {name: mask.sum() for name, mask in masks.items() if (mask.float() ** layers)[-1].all()}
    return min(good, key=good.get)


@wrong("choose", "One layer too many was counted")
def ch_one_too_many(masks, layers):
    best = None
    for name, mask in masks.items():
        seen = mask.float()
        for _ in range(layers):
            seen = (seen @ mask.float() > 0).float()
        if seen[-1].all() and (best is None or mask.sum() < masks[best].sum()):
            best = name
    return best


@wrong("choose", "The first column was looked at")
def ch_column(masks, layers):
    good = {name: mask.sum() for name, mask in masks.items()
            if torch.linalg.matrix_power(mask.float(), layers)[:, 0].all()}
    return min(good, key=good.get)


@wrong("choose", "No pattern passes your test")
def ch_all_to_all(masks, layers):
    good = {name: mask.sum() for name, mask in masks.items()
            if (torch.linalg.matrix_power(mask.float(), layers) > 0).all()}
    return list(good)[0]


@wrong("choose", "This is the first one that reaches")
def ch_first(masks, layers):
    for name, mask in masks.items():
        if reached(mask, layers).all():
            return name
    return None


@wrong("choose", "the one that needs the fewest layers")
def ch_fewest_layers(masks, layers):
    for n in range(1, layers + 1):
        for name, mask in masks.items():
            if reached(mask, n).all():
                return name
    return None


@wrong("choose", "The number of pairs comes back")
def ch_count(masks, layers):
    return min(mask.sum().item() for mask in masks.values() if reached(mask, layers).all())


@wrong("choose", "The mask itself comes back")
def ch_mask(masks, layers):
    return min((mask for mask in masks.values() if reached(mask, layers).all()), key=torch.sum)


@wrong("choose", "Booleans cannot be multiplied as matrices")
def ch_booleans(masks, layers):
    for mask in masks.values():
        seen = mask
        for _ in range(layers - 1):
            seen = seen @ mask
    return seen


@right("choose")
def ch_dict(masks, layers):
    good = {name: mask.sum().item() for name, mask in masks.items() if reached(mask, layers).all()}
    return min(good, key=good.get)


@right("choose")
def ch_row(masks, layers):
    best, fewest = None, math.inf
    for name, mask in masks.items():
        seen = mask[-1]
        for _ in range(layers - 1):
            seen = mask[seen].any(0)                        # what is seen by those that are seen
        if seen.all() and mask.sum() < fewest:
            best, fewest = name, mask.sum()
    return best


@right("choose")
def ch_sorted(masks, layers):
    for name in sorted(masks, key=lambda name: masks[name].sum()):
        seen = torch.eye(len(masks[name]))
        for _ in range(layers):
            seen = ((seen @ masks[name].float()) > 0).float()
        if seen[-1].bool().all():
            return name
    return None


# --- grouped_query -------------------------------------------------------------------------------------------

def future(T, T_k):
    return torch.ones(T, T_k, dtype=torch.bool).triu(T_k - T + 1)


def heads(q, k, v, hidden=None):
    """Every head has its own keys and values here."""
    hidden = future(q.shape[-2], k.shape[-2]) if hidden is None else hidden
    return (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(hidden, -math.inf).softmax(-1) @ v


@wrong("grouped_query", "dealt out in turn")
def gq_repeat(q, k, v):
    times = q.shape[1] // k.shape[1]
    return heads(q, k.repeat(1, times, 1, 1), v.repeat(1, times, 1, 1))


@wrong("grouped_query", "All heads read the first kv head")
def gq_first(q, k, v):
    return heads(q, k[:, :1], v[:, :1])


@wrong("grouped_query", "All heads read the mean of the kv heads")
def gq_mean(q, k, v):
    return heads(q, k.mean(1, keepdim=True), v.mean(1, keepdim=True))


@wrong("grouped_query", "The mask is missing")
def gq_no_mask(q, k, v):
    groups = q.reshape(len(q), k.shape[1], -1, q.shape[-1])
    return F.scaled_dot_product_attention(groups, k, v).view(q.shape)


@wrong("grouped_query", "as if the second head's came after the first one's")
def gq_masked_too_early(q, k, v):
    groups = q.reshape(len(q), k.shape[1], -1, q.shape[-1])
    T, T_k = groups.shape[2], k.shape[2]
    mask = torch.ones(T, T_k).tril(T_k - q.shape[2]).bool()
    return F.scaled_dot_product_attention(groups, k, v, attn_mask=mask).view(q.shape)


@wrong("grouped_query", "a query does not see its own key")
def gq_without_own(q, k, v):
    times = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)
    return heads(q, k, v, torch.ones(q.shape[2], k.shape[2]).triu(k.shape[2] - q.shape[2]).bool())


@wrong("grouped_query", "The scale is missing")
def gq_no_scale(q, k, v):
    times = q.shape[1] // k.shape[1]
    return heads(q * math.sqrt(q.shape[-1]), k.repeat_interleave(times, 1), v.repeat_interleave(times, 1))


@wrong("grouped_query", "The softmax runs over the wrong axis")
def gq_wrong_axis(q, k, v):
    times = q.shape[1] // k.shape[1]
    scores = q @ k.repeat_interleave(times, dim=1).mT / q.shape[-1] ** 0.5
    weights = scores.masked_fill(future(*scores.shape[-2:]), -math.inf).softmax(dim=-2)
    return weights @ v.repeat_interleave(times, dim=1)


@wrong("grouped_query", "The groups are still apart")
def gq_five_axes(q, k, v):
    q = q.unflatten(1, (k.shape[1], -1))
    return heads(q, k[:, :, None], v[:, :, None])


@wrong("grouped_query", "The heads do not line up")
def gq_as_always(q, k, v):
    return heads(q, k, v)


@wrong("grouped_query", "The queries are the *last* T of T_k positions")
def gq_is_causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


@wrong("grouped_query", "k and v are copied for every head")
def gq_copies(q, k, v):
    times = q.shape[1] // k.shape[1]
    return heads(q, k.repeat_interleave(times, 1), v.repeat_interleave(times, 1))


@wrong("grouped_query", "k and v are copied for every head")
def gq_broadcasts(q, k, v):
    q = q.unflatten(1, (k.shape[1], -1))                        # (B, n_kv_heads, group, T, d)
    return heads(q, k[:, :, None], v[:, :, None]).flatten(1, 2)


@wrong("grouped_query", "`q` was changed")
def gq_in_place(q, k, v):
    q /= math.sqrt(q.shape[-1])
    return gq_kv_loop(q, k, v)


@right("grouped_query")
def gq_side_by_side(q, k, v):
    B, n_heads, T, d = q.shape
    n_kv, T_k = k.shape[1:3]
    scores = (q.reshape(B, n_kv, -1, d) @ k.mT / math.sqrt(d)).view(B, n_heads, T, T_k)
    weights = scores.masked_fill(future(T, T_k), -math.inf).softmax(-1)
    return (weights.view(B, n_kv, -1, T_k) @ v).view(B, n_heads, T, d)


@right("grouped_query")
def gq_kv_loop(q, k, v):
    times = q.shape[1] // k.shape[1]
    return torch.stack([heads(q[:, h], k[:, h // times], v[:, h // times]) for h in range(q.shape[1])], dim=1)


@right("grouped_query")
def gq_einsum(q, k, v):
    groups = q.unflatten(1, (k.shape[1], -1))
    scores = torch.einsum("bgrtd,bgsd->bgrts", groups, k) / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(future(q.shape[2], k.shape[2]), -math.inf).softmax(-1)
    return torch.einsum("bgrts,bgsd->bgrtd", weights, v).flatten(1, 2)


@right("grouped_query")
def gq_library(q, k, v):
    mask = ~future(q.shape[2], k.shape[2])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


# --- the references ------------------------------------------------------------------------------------------

def test_references_keep_their_formulas():
    """The references themselves, on values that can be checked by hand."""
    assert [REFERENCE["count_pairs"](*sizes) for sizes in ((4, 1), (4, 0), (4, 9), (1, 3))] == [7, 4, 10, 1]
    scores = torch.tensor([[11, 12, 13, 14], [21, 22, 23, 24], [31, 32, 33, 34]])
    assert REFERENCE["slots_to_keys"](scores).tolist() == [[13, 14, 0, 0], [22, 23, 24, 0], [31, 32, 33, 34]]
    memory, segment = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[[3.0], [4.0], [5.0]]])
    kept = [REFERENCE["remember"](memory, segment, n).flatten().tolist() for n in (0, 2, 4, 9)]
    assert kept == [[], [4, 5], [2, 3, 4, 5], [1, 2, 3, 4, 5]]
    m, s, o = (torch.tensor([[x]]) for x in (0.0, 1.0, 10.0))
    scores, v = torch.tensor([[math.log(3.0)]]), torch.tensor([[20.0]])
    m, s, o = REFERENCE["online_update"](m, s, o, scores, v)
    torch.testing.assert_close(torch.cat([m.exp(), s, o, o / s], 1), torch.tensor([[3.0, 4 / 3, 70 / 3, 17.5]]))


def test_the_window_is_that_of_the_mask_explorer():
    q, k = np.ogrid[:23, :23]
    for window in (0, 1, 5, 30):
        seen = PATTERNS["sliding window"](q, k, 23, window, 1) & (k <= q)
        assert REFERENCE["count_pairs"](23, window) == seen.sum()


def test_the_references_are_the_courses():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 20, 6) for _ in range(3))
    for window in (1, 4, 5, 20):
        torch.testing.assert_close(REFERENCE["window_by_blocks"](q, k, v, window),
                                   efficient.sliding_window(q, k, v, window))
    torch.testing.assert_close(REFERENCE["grouped_query"](q, k, v), efficient.sdpa(q, k, v))
    scores = torch.randn(5, 9)
    torch.testing.assert_close(REFERENCE["slots_to_keys"](scores), efficient.relative_shift(scores).tril(4))


def test_tile_by_tile_is_all_at_once():
    torch.manual_seed(0)
    scores, v = 30 * torch.randn(7, 20), torch.randn(20, 3)
    scores = scores.masked_fill(torch.ones(7, 20).triu(1) > 0, -math.inf)           # whole tiles are masked
    m, s, o = torch.full((7, 1), -math.inf), torch.zeros(7, 1), torch.zeros(7, 3)
    for tile in reversed(torch.arange(20).split(4)):                                # the masked ones first
        m, s, o = REFERENCE["online_update"](m, s, o, scores[:, tile], v[tile])
    torch.testing.assert_close(o / s, scores.softmax(-1) @ v)


@pytest.mark.parametrize("kv_heads", [1, 2, 6])
def test_grouped_queries_are_the_librarys(kv_heads):
    torch.manual_seed(0)
    q, (k, v) = torch.randn(2, 6, 5, 4), torch.randn(2, 2, kv_heads, 5, 4)
    torch.testing.assert_close(REFERENCE["grouped_query"](q, k, v),
                               F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))


def test_what_is_made_is_counted():
    """A view makes no numbers, nor does writing into a tensor; a copy does."""
    x = torch.ones(4, 6)
    for step, made in ((lambda: x.T[1:].unflatten(0, (-1, 1)), 0), (lambda: x.mul_(2), 0), (lambda: x[x > 1], 48),
                       (lambda: x.T.reshape(24), 24), (lambda: torch.ones(3, 3).tril(), 18)):
        with _Made() as counted:
            step()
        assert counted.n == made


# --- what the checks say -------------------------------------------------------------------------------------

def stub(*arguments):
    raise NotImplementedError("your turn")


@pytest.mark.parametrize("name", REFERENCE)
def test_a_stub_is_told_so(name, capsys):
    source = f"def {name}({', '.join(LESSON[list(REFERENCE).index(name)].parameters)}):\n    raise NotImplementedError"
    exec(source, namespace := {})
    check(name, namespace)
    assert f"… {name}: not written yet" in capsys.readouterr().out
    exec(source.replace("raise NotImplementedError", "stub()"), namespace := {"stub": stub})
    check(name, namespace)
    assert f"… {name} calls stub, which is not written yet" in capsys.readouterr().out


def test_the_numbers_made_are_told():
    with pytest.raises(WrongAnswer, match=r"it makes [\d,]{9,} numbers on the way; at most 1,048,576 are allowed here"):
        check("window_by_blocks", {"window_by_blocks": wb_dense})


def test_a_long_input_that_is_too_long_is_told():
    def count_pairs(n, window):
        if torch.utils._python_dispatch._get_current_dispatch_mode():
            raise MemoryError("too much")
        return cp_sum(n, window)

    with pytest.raises(WrongAnswer, match="it raised MemoryError on a longer input: too much"):
        check("count_pairs", locals())


def test_an_error_shows_the_students_line():
    """Also where the check looks at a part of the result only."""
    def slots_to_keys(scores):
        return scores.nonsense

    with pytest.raises(WrongAnswer, match="raised AttributeError") as error:
        check("slots_to_keys", locals())
    shown = "".join(error.value._render_traceback_())
    assert "scores.nonsense" in shown
    assert "lesson_06.py" not in shown
    with pytest.raises(WrongAnswer, match="is a Tensor, not a function"):
        check("slots_to_keys", {"slots_to_keys": torch.ones(3)})
    with pytest.raises(WrongAnswer, match=r"signature slots_to_keys\(scores, T\); expected slots_to_keys\(scores\)"):
        check("slots_to_keys", {"slots_to_keys": lambda scores, T: scores})


def test_patterns_among_the_inputs_are_named():
    with pytest.raises(WrongAnswer, match=r"masks = \{'.*': …, '.*': …\}, \d\d positions each, layers = \d"):
        check("choose", {"choose": ch_cheapest})
