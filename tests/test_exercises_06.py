"""Lesson 06's checks, checked: wrong answers as tired students give them, right ones in other styles than ours."""

import math
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from seeded_answers import Answers, right, wrong

from course_utils import efficient
from course_utils.exercises import EXERCISES
from course_utils.exercises.lesson_06 import LESSON_06, _Made, near, two_blocks
from course_utils.widgets.mask_explorer import PATTERNS


class TestAnswers(Answers):
    lesson = LESSON_06
SOLUTION = {exercise.name: exercise.solution for exercise in LESSON_06}


# --- window_by_blocks ----------------------------------------------------------------------------------------

def blocks_of(x, w):
    B, n_heads, n, d = x.shape
    return x.reshape(B, n_heads, n // w, w, d)


def with_previous(x, w):
    blocks = blocks_of(x, w)
    previous = torch.cat([torch.zeros_like(blocks[:, :, :1]), blocks[:, :, :-1]], dim=2)
    return torch.cat([previous, blocks], dim=3)


def by_blocks(q, k, v, w, mask, scale=None):
    """As in the solution; the mask is (window, 2 window), and the first block is right."""
    scores = blocks_of(q, w) @ with_previous(k, w).mT / (scale or math.sqrt(q.shape[-1]))
    scores = scores.masked_fill(~mask, -math.inf)
    scores[:, :, 0, :, :w] = -math.inf
    return (scores.softmax(-1) @ with_previous(v, w)).reshape(q.shape)


def band(w):
    return torch.ones(w, 2 * w).tril(w).triu().bool()


@wrong("window_by_blocks", "its own block only")
def wb_own_block(q, k, v, window):
    q, k, v = (blocks_of(x, window) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).flatten(2, 3)


@wrong("window_by_blocks", "the axes do not line up")
def wb_keys_not_in_blocks(q, k, v, window):
    scores = blocks_of(q, window) @ k.mT / math.sqrt(q.shape[-1])
    return (scores.masked_fill(~band(window), -math.inf).softmax(-1) @ with_previous(v, window)).flatten(2, 3)


@wrong("window_by_blocks", "nothing is saved")
def wb_blocks_against_all_keys(q, k, v, window):
    keys, out = torch.arange(k.shape[2]), []
    for start in range(0, q.shape[2], window):
        rows = torch.arange(start, start + window)[:, None]
        mask = (keys <= rows) & (keys >= rows - window)
        out.append(F.scaled_dot_product_attention(q[:, :, start:start + window], k, v, attn_mask=mask))
    return torch.cat(out, dim=2)


@wrong("window_by_blocks", "The weights of a query sum to one over its keys")
def wb_no_softmax(q, k, v, window):
    scores = blocks_of(q, window) @ with_previous(k, window).mT / math.sqrt(q.shape[-1])
    mask = band(window).repeat(scores.shape[2], 1, 1)
    mask[0, :, :window] = False
    return (scores.masked_fill(~mask, -math.inf) @ with_previous(v, window)).flatten(2, 3)


@wrong("window_by_blocks", "The weights of a query sum to one over its keys")
def wb_softmax_over_the_blocks(q, k, v, window):
    scores = blocks_of(q, window) @ with_previous(k, window).mT / math.sqrt(q.shape[-1])
    mask = band(window).repeat(scores.shape[2], 1, 1)
    mask[0, :, :window] = False
    return (scores.masked_fill(~mask, -math.inf).softmax(2) @ with_previous(v, window)).flatten(2, 3)


@wrong("window_by_blocks", "The weights of a query sum to one over its keys")
def wb_one_sum_for_all(q, k, v, window):
    scores = blocks_of(q, window) @ with_previous(k, window).mT / math.sqrt(q.shape[-1])
    mask = band(window).repeat(scores.shape[2], 1, 1)
    mask[0, :, :window] = False
    p = (scores.masked_fill(~mask, -math.inf) - scores.max()).exp()
    return (p / p.sum() @ with_previous(v, window)).flatten(2, 3)


def in_window(q, k, v, window, root=None, softmax=None, keys=two_blocks):
    """By the notebook's own two functions, with one step that may be another."""
    hidden = ~near(q.shape[-2], window)
    scores = blocks_of(q, window) @ keys(k, window).mT / math.sqrt(root or q.shape[-1])
    weights = softmax(scores, hidden) if softmax else scores.masked_fill(hidden, -math.inf).softmax(-1)
    return (weights @ two_blocks(v, window)).flatten(-3, -2)


@wrong("window_by_blocks", "masked after the softmax")
def wb_mask_times_the_weights(q, k, v, window):
    return in_window(q, k, v, window, softmax=lambda scores, hidden: scores.softmax(-1) * ~hidden)


@wrong("window_by_blocks", "masked after the softmax")
def wb_mask_fills_the_weights(q, k, v, window):
    return in_window(q, k, v, window, softmax=lambda scores, hidden: scores.softmax(-1).masked_fill(hidden, 0))


@wrong("window_by_blocks", "or another root")
def wb_root_of_the_window(q, k, v, window):
    return in_window(q, k, v, window, root=window)


@wrong("window_by_blocks", "or another root")
def wb_no_root(q, k, v, window):
    return in_window(q, k, v, window, root=1)


@wrong("window_by_blocks", "the keys *and* the values of both")
def wb_keys_of_own_block(q, k, v, window):
    return in_window(q, k, v, window, keys=blocks_of)


@wrong("window_by_blocks", "`k` was changed")
def wb_in_place(q, k, v, window):
    k /= math.sqrt(q.shape[-1])
    return by_blocks(q, k, v, window, band(window), scale=1.0)


@wrong("window_by_blocks", "no gradient reaches `q`")
def wb_no_grad(q, k, v, window):
    with torch.no_grad():
        return by_blocks(q, k, v, window, band(window))


@wrong("window_by_blocks", "the keys *and* the values of both")
def wb_values_of_own_block(q, k, v, window):
    scores = blocks_of(q, window) @ with_previous(k, window).mT / math.sqrt(q.shape[-1])
    mask = band(window).repeat(scores.shape[2], 1, 1)
    mask[0, :, :window] = False
    return (scores.masked_fill(~mask, -math.inf).softmax(-1) @ blocks_of(v, window)).flatten(2, 3)


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


def wb_query_by_query(q, k, v, window):
    rows = []
    for t in range(q.shape[2]):
        seen = slice(max(0, t - window), t + 1)
        scores = k[:, :, seen] @ q[:, :, t, :, None] / math.sqrt(q.shape[-1])
        rows.append((scores.softmax(2) * v[:, :, seen]).sum(2))
    return torch.stack(rows, 2)


def wb_unfold(q, k, v, window):
    k, v = (F.pad(x, (0, 0, window, 0)).unfold(2, window + 1, 1) for x in (k, v))      # (B, n_heads, n, d, window + 1)
    scores = torch.einsum("bhnd,bhndw->bhnw", q, k) / math.sqrt(q.shape[-1])
    exists = torch.arange(q.shape[2])[:, None] + torch.arange(window + 1) >= window
    return torch.einsum("bhnw,bhndw->bhnd", scores.masked_fill(~exists, -math.inf).softmax(-1), v)


@pytest.mark.parametrize("function", [wb_query_by_query, wb_unfold])
def test_a_window_query_by_query_is_right_but_slow(function):
    assert EXERCISES["window_by_blocks"].judge(function).kind == "slow"


# --- slots_to_keys -------------------------------------------------------------------------------------------


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


@wrong("slots_to_keys", "does not hold the column of zeros")
def sk_wrong_view(scores):
    T, K = scores.shape
    return F.pad(scores, (1, 0)).view(K, T)[1:].view(T, K)


@wrong("slots_to_keys", "wrong when the scores are a transposed tensor")
def sk_storage(scores):
    T, K = scores.shape
    return scores.as_strided((T, K), (K - 1, 1), T - 1)


@wrong("slots_to_keys", "no gradient reaches `scores`")
def sk_numpy(scores):
    rows = scores.detach().numpy()
    return torch.from_numpy(np.stack([np.roll(row, t + 1 - len(rows)) for t, row in enumerate(rows)]))


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


@wrong("remember", "or stays as long as it was")
def re_constant(memory, segment, mem_len):
    return torch.cat([memory, segment], 1)[:, segment.shape[1]:].detach()


@wrong("remember", "-0 is 0")
def re_minus_zero(memory, segment, mem_len):
    return torch.cat([memory, segment], dim=1)[:, -mem_len:].detach()


@wrong("remember", "The memory is not detached")
def re_detached_too_early(memory, segment, mem_len):
    both = torch.cat([memory.detach(), segment], dim=1)
    return both[:, max(0, both.shape[1] - mem_len):]


@wrong("remember", "is True), when there is no old one yet")
def re_first_as_it_is(memory, segment, mem_len):
    both = torch.cat([memory.detach(), segment.detach() if memory.size(1) else segment], 1)
    return both[:, max(both.size(1) - mem_len, 0):]


@wrong("remember", "when the segment carries a gradient")
def re_numpy(memory, segment, mem_len):
    both = np.concatenate([memory.numpy(), segment.numpy()], axis=1)
    return torch.from_numpy(both[:, max(0, both.shape[1] - mem_len):])


@wrong("remember", "The argument `segment` was cut off")
def re_detached_in_place(memory, segment, mem_len):
    segment.detach_()
    both = torch.cat([memory.detach(), segment], dim=1)
    return both[:, max(0, both.shape[1] - mem_len):]


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


@wrong("online_update", "Or m was overwritten")
def ou_overwritten(m, s, o, scores, v):
    m = torch.maximum(m, scores.max(-1, keepdim=True).values)
    p = (scores - safe(m)).exp()
    a = (m - safe(m)).exp()
    return m, a * s + p.sum(-1, keepdim=True), a * o + p @ v


@right("online_update")
def ou_large_negative(m, s, o, scores, v):
    m = m.masked_fill(m == -math.inf, -1e9)
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    a, p = (m - new).exp(), (scores - new).exp()
    return new, a * s + p.sum(-1, keepdim=True), a * o + p @ v


@right("online_update")
def ou_mended_too_early(m, s, o, scores, v):
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    a, p = ((x - new).nan_to_num(neginf=-math.inf).exp() for x in (m, scores))
    return new, a * s + p.sum(-1, keepdim=True), a * o + p @ v


@wrong("online_update", "s or o, or both, are not rescaled")
def ou_o_not_rescaled(m, s, o, scores, v):
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    p = (scores - new).exp()
    return new, s * (m - new).exp() + p.sum(-1, keepdim=True), o + p @ v


@wrong("online_update", "s or o, or both, are not rescaled")
def ou_s_not_rescaled(m, s, o, scores, v):
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    p = (scores - new).exp()
    return new, s + p.sum(-1, keepdim=True), o * (m - new).exp() + p @ v


@wrong("online_update", "o stays a sum until the last tile")
def ou_divided_in_each_tile(m, s, o, scores, v):
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    a, p = (m - new).exp(), (scores - new).exp()
    s = a * s + p.sum(-1, keepdim=True)
    return new, s, (a * o + p @ v) / s


@wrong("online_update", "The values are multiplied by the raw scores")
def ou_raw_scores(m, s, o, scores, v):
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    a = (m - new).exp()
    return new, s * a + (scores - new).exp().sum(-1, keepdim=True), o * a + scores @ v


@wrong("online_update", "The running maximum is left out of the sums")
def ou_no_maximum(m, s, o, scores, v):
    p = scores.exp()
    return torch.maximum(m, scores.amax(-1, keepdim=True)), s + p.sum(-1, keepdim=True), o + p @ v


@wrong("online_update", "The running maximum is left out of the sums")
def ou_old_maximum_stays(m, s, o, scores, v):
    p = torch.exp(scores)
    return m, s + p.sum(1, keepdim=True), o + p @ v


@wrong("online_update", "The tile's maximum is to be a tensor (T, 1)")
def ou_maximum_lost_axis(m, s, o, scores, v):
    new = torch.maximum(m, scores.amax(-1))
    a, p = (m - new).exp(), (scores - new).exp()
    return new, a * s + p.sum(-1, keepdim=True), a * o + p @ v


@wrong("online_update", "m is the larger of the old maximum and the tile's, for each query")
def ou_one_maximum_for_all(m, s, o, scores, v):
    new = torch.max(m.max(), scores.max()).expand_as(m)
    a, p = (m - new).exp(), (scores - new).exp()
    return new, a * s + p.sum(-1, keepdim=True), a * o + p @ v


@wrong("online_update", "Each query has its own sum of p")
def ou_sum_over_queries(m, s, o, scores, v):
    new = torch.maximum(m, scores.amax(-1, keepdim=True))
    a, p = (m - new).exp(), (scores - new).exp()
    return new, a * s + p.sum(0, keepdim=True), a * o + p @ v


@wrong("online_update", "max() need one answer, not one per number")
def ou_pythons_max(m, s, o, scores, v):
    new = max(m, scores.amax(-1, keepdim=True))
    return new, s * (m - new).exp(), o


@wrong("online_update", "The tile's maximum is to be a tensor (T, 1)")
def ou_pair(m, s, o, scores, v):
    new = torch.maximum(m, scores.max(-1, keepdim=True))
    return new, s * (m - new).exp(), o


@wrong("online_update", "`m` was changed")
def ou_in_place(m, s, o, scores, v):
    old = m.clone()
    torch.maximum(m, scores.amax(-1, keepdim=True), out=m)
    a, p = (old - safe(m)).exp(), (scores - safe(m)).exp()
    return m, a * s + p.sum(-1, keepdim=True), a * o + p @ v


def ou_query_by_query(m, s, o, scores, v):
    rows = [SOLUTION["online_update"](*(x[i:i + 1] for x in (m, s, o, scores)), v) for i in range(len(m))]
    return tuple(torch.cat(parts) for parts in zip(*rows, strict=True))


def test_a_tile_query_by_query_is_right_but_slow():
    assert EXERCISES["online_update"].judge(ou_query_by_query).kind == "slow"


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


@wrong("choose", "The layers are not used")
def ch_entry_by_entry(masks, layers):
    good = {name: mask.sum() for name, mask in masks.items() if (mask.float() ** layers)[-1].all()}
    return min(good, key=good.get)


@wrong("choose", "One layer too few or too many")
def ch_one_too_many(masks, layers):
    best = None
    for name, mask in masks.items():
        seen = mask.float()
        for _ in range(layers):
            seen = (seen @ mask.float() > 0).float()
        if seen[-1].all() and (best is None or mask.sum() < masks[best].sum()):
            best = name
    return best


@wrong("choose", "No pattern passes your test")
def ch_all_to_all(masks, layers):
    good = {name: mask.sum() for name, mask in masks.items()
            if (torch.linalg.matrix_power(mask.float(), layers) > 0).all()}
    return list(good)[0]


@wrong("choose", "wrong where 2^65 ways lead from each key to the query")
def ch_whole_numbers(masks, layers):
    ways = {name: mask.long() for name, mask in masks.items()}
    for name, mask in masks.items():
        for _ in range(layers - 1):
            ways[name] = ways[name] @ mask.long()
    return min((name for name in masks if ways[name][-1].all()), key=lambda name: masks[name].sum())


@wrong("choose", "Are the pairs of the power counted?")
def ch_pairs_of_the_power(masks, layers):
    ways = {name: torch.linalg.matrix_power(mask.double(), layers) for name, mask in masks.items()}
    return min((name for name in masks if ways[name][-1].all()), key=lambda name: (ways[name] > 0).sum())


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


@wrong("grouped_query", "as if the second head's came after the first one's")
def gq_masked_too_early(q, k, v):
    groups = q.reshape(len(q), k.shape[1], -1, q.shape[-1])
    T, T_k = groups.shape[2], k.shape[2]
    mask = torch.ones(T, T_k).tril(T_k - q.shape[2]).bool()
    return F.scaled_dot_product_attention(groups, k, v, attn_mask=mask).view(q.shape)


@wrong("grouped_query", "The queries are the *last* T of T_k positions")
def gq_is_causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


@wrong("grouped_query", "k and v are copied for every head")
def gq_broadcasts(q, k, v):
    q = q.unflatten(1, (k.shape[1], -1))                        # (B, n_kv_heads, group, T, d)
    return heads(q, k[:, :, None], v[:, :, None]).flatten(1, 2)


@wrong("grouped_query", "`q` was changed")
def gq_in_place(q, k, v):
    q /= math.sqrt(q.shape[-1])
    return gq_kv_loop(q, k, v)


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


# --- cache_bytes ---------------------------------------------------------------------------------------------

@wrong("cache_bytes", "A key *and* a value are kept")
def cb_keys_alone(tokens, full, local, window, n_kv_heads, d_head, bytes_per_number=2):
    kept = full * tokens + local * min(tokens, window)
    return kept * n_kv_heads * d_head * bytes_per_number


@wrong("cache_bytes", "While the text is shorter than the window")
def cb_always_a_window(tokens, full, local, window, n_kv_heads, d_head, bytes_per_number=2):
    return 2 * bytes_per_number * n_kv_heads * d_head * (full * tokens + local * window)


@wrong("cache_bytes", "The local layers keep every token here")
def cb_all_layers_full(tokens, full, local, window, n_kv_heads, d_head, bytes_per_number=2):
    return 2 * (full + local) * n_kv_heads * d_head * bytes_per_number * tokens


@wrong("cache_bytes", "These are numbers, or bytes of 2-byte numbers")
def cb_two_bytes(tokens, full, local, window, n_kv_heads, d_head, bytes_per_number=2):
    return 4 * n_kv_heads * d_head * (full * tokens + local * min(window, tokens))


@wrong("cache_bytes", "These are the bytes per token")
def cb_per_token(tokens, full, local, window, n_kv_heads, d_head, bytes_per_number=2):
    return 2 * (full + local) * n_kv_heads * d_head * bytes_per_number


@wrong("cache_bytes", "expected an int")
def cb_tensor(tokens, full, local, window, n_kv_heads, d_head, bytes_per_number=2):
    kept = torch.tensor([tokens] * full + [min(tokens, window)] * local).sum()
    return 2 * kept * n_kv_heads * d_head * bytes_per_number


@right("cache_bytes")
def cb_layer_by_layer(tokens, full, local, window, n_kv_heads, d_head, bytes_per_number=2):
    layers = [tokens] * full + [tokens if tokens < window else window] * local
    return sum(2 * n_kv_heads * d_head * bytes_per_number * kept for kept in layers)


@right("cache_bytes")
def cb_shares(tokens, full, local, window, n_kv_heads, d_head, bytes_per_number=2):
    one = 2 * n_kv_heads * d_head * bytes_per_number
    return tokens * one * full + (window if tokens >= window else tokens) * one * local


def test_a_published_models_cache_by_hand():
    """Gemma 3 12B at 131,072 tokens: 8 full layers, 40 with 1,024 tokens; Llama 2 7B: 2 GiB at 4,096 tokens."""
    of = SOLUTION["cache_bytes"]
    assert of(131_072, 8, 40, 1024, 8, 256) == 8 * 2**30 + 40 * 8 * 2**20
    assert of(4096, 32, 0, 0, 32, 128) == 2 * 2**30


# --- the solutions -------------------------------------------------------------------------------------------

def test_solutions_keep_their_formulas():
    """On values that can be checked by hand."""
    scores = torch.tensor([[11, 12, 13, 14], [21, 22, 23, 24], [31, 32, 33, 34]])
    assert SOLUTION["slots_to_keys"](scores).tolist() == [[13, 14, 0, 21], [22, 23, 24, 0], [31, 32, 33, 34]]
    memory, segment = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[[3.0], [4.0], [5.0]]])
    kept = [SOLUTION["remember"](memory, segment, n).flatten().tolist() for n in (0, 2, 4, 9)]
    assert kept == [[], [4, 5], [2, 3, 4, 5], [1, 2, 3, 4, 5]]
    m, s, o = (torch.tensor([[x]]) for x in (0.0, 1.0, 10.0))
    scores, v = torch.tensor([[math.log(3.0)]]), torch.tensor([[20.0]])
    m, s, o = SOLUTION["online_update"](m, s, o, scores, v)
    torch.testing.assert_close(torch.cat([m.exp(), s, o, o / s], 1), torch.tensor([[3.0, 4 / 3, 70 / 3, 17.5]]))


def test_the_window_is_that_of_the_mask_explorer():
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, 24, 6) for _ in range(3))
    i, j = np.ogrid[:24, :24]
    for window in (1, 4, 24):
        seen = PATTERNS["sliding window"](i, j, 24, window, 1) & (j <= i)
        expected = F.scaled_dot_product_attention(q, k, v, attn_mask=torch.from_numpy(seen))
        torch.testing.assert_close(SOLUTION["window_by_blocks"](q, k, v, window), expected)


def test_the_solutions_are_the_courses():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 20, 6) for _ in range(3))
    for window in (1, 4, 5, 20):
        torch.testing.assert_close(SOLUTION["window_by_blocks"](q, k, v, window),
                                   efficient.sliding_window(q, k, v, window))
    torch.testing.assert_close(SOLUTION["grouped_query"](q, k, v), efficient.sdpa(q, k, v))
    scores = torch.randn(5, 9)
    torch.testing.assert_close(SOLUTION["slots_to_keys"](scores).tril(4), efficient.relative_shift(scores).tril(4))


def test_tile_by_tile_is_all_at_once():
    torch.manual_seed(0)
    scores, v = 30 * torch.randn(7, 20), torch.randn(20, 3)
    scores = scores.masked_fill(torch.ones(7, 20).triu(1) > 0, -math.inf)           # whole tiles are masked
    m, s, o = torch.full((7, 1), -math.inf), torch.zeros(7, 1), torch.zeros(7, 3)
    for tile in torch.arange(20).split(4):                                          # the first has a key for all
        m, s, o = SOLUTION["online_update"](m, s, o, scores[:, tile], v[tile])
    torch.testing.assert_close(o / s, scores.softmax(-1) @ v)


def test_what_is_made_is_counted():
    """A view makes no numbers, nor does writing into a tensor; a copy does."""
    x = torch.ones(4, 6)
    for step, made in ((lambda: x.T[1:].unflatten(0, (-1, 1)), 0), (lambda: x.mul_(2), 0), (lambda: x[x > 1], 48),
                       (lambda: x.T.reshape(24), 24), (lambda: torch.ones(3, 3).tril(), 18)):
        with _Made() as counted:
            step()
        assert counted.n == made


# --- what the checks say -------------------------------------------------------------------------------------

def test_the_numbers_made_are_told():
    text = EXERCISES["window_by_blocks"].judge(wb_blocks_against_all_keys).text
    assert re.search(r"it makes [\d,]{9,} numbers on the way; at most 1,048,576 are allowed here", text)


def test_a_long_input_that_is_too_long_is_told():
    def grouped_query(q, k, v):
        if k.size(-2) > 100:
            raise MemoryError("too much")
        return gq_kv_loop(q, k, v)

    text = EXERCISES["grouped_query"].judge(grouped_query).text
    assert "it raised MemoryError on a longer input: too much" in text


def test_an_error_shows_the_students_line():
    """Also where the check looks at a part of the result only."""
    def slots_to_keys(scores):
        return scores.nonsense

    verdict = EXERCISES["slots_to_keys"].judge(slots_to_keys)
    assert "raised AttributeError" in verdict.text
    assert "scores.nonsense" in verdict.trace
    assert "lesson_06.py" not in verdict.trace


def test_patterns_among_the_inputs_are_named():
    text = EXERCISES["choose"].judge(ch_entry_by_entry).text
    assert re.search(r"masks = \{'.*': …, '.*': …\}, \d\d positions each, layers = \d", text)


def test_without_gradients_a_memory_that_is_not_detached_is_found():
    with torch.no_grad():
        verdict = EXERCISES["remember"].judge(re_detached_too_early)
    assert "The memory is not detached" in verdict.text
