"""The checks, checked: wrong answers in the way tired students err, and right ones in other styles than ours."""

import ast
import math
import re

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
from torch import nn

from course_utils.exercises import EXERCISES, WrongAnswer, _Card, check, same_output
from course_utils.exercises.engine import close
from course_utils.exercises.lesson_02 import LESSON_02

LESSON = LESSON_02


# --- context_vector ------------------------------------------------------------------------------------------

@wrong("context_vector", "softmax is missing")
def cv_no_softmax(scores, values):
    context = torch.zeros(values.shape[1])
    for j in range(len(scores)):
        context = context + scores[j] * values[j]
    return context


@wrong("context_vector", "divided by their sum, without exp")
def cv_plain_normalised(scores, values):
    weights = scores / torch.sum(scores)
    return torch.einsum("k,kd->d", weights, values)


@wrong("context_vector", "weights do not sum to one")
def cv_only_exp(scores, values):
    return torch.sum(torch.exp(scores).unsqueeze(1) * values, dim=0)


@wrong("context_vector", "These are the weights")
def cv_returns_weights(scores, values):
    e = torch.exp(scores - scores.max())
    weights = e / e.sum()
    context = weights @ values  # noqa: F841
    return weights


@wrong("context_vector", "not summed yet")
def cv_not_summed(scores, values):
    return F.softmax(scores, dim=0).unsqueeze(-1) * values


@wrong("context_vector", "summed over the wrong axis")
def cv_sum_axis(scores, values):
    return torch.sum(F.softmax(scores, dim=0).unsqueeze(-1) * values, dim=-1)


@wrong("context_vector", "softmax ran over an axis of length one")
def cv_softmax_of_column(scores, values):
    weights = torch.softmax(scores.reshape(-1, 1), dim=1)
    return (weights * values).sum(dim=0)


@wrong("context_vector", "use softmax, not argmax")
def cv_hard(scores, values):
    return values[torch.argmax(scores).item()]


@wrong("context_vector", "gradient is cut: no gradient reaches `scores`")
def cv_rebuilt_weights(scores, values):
    weights = torch.tensor([math.exp(s.item()) for s in scores])
    return (weights / weights.sum()) @ values


@wrong("context_vector", "ndarray; expected a Tensor")
def cv_numpy(scores, values):
    e = np.exp(scores.numpy())
    return (e / e.sum()) @ values.numpy()


@wrong("context_vector", "`scores` was changed")
def cv_writes_into_scores(scores, values):
    scores -= scores.max()
    e = scores.exp()
    return (e / e.sum()) @ values


@wrong("context_vector", "torch.float64; expected torch.float32")
def cv_double(scores, values):
    return scores.double().softmax(0) @ values.double()


@wrong("context_vector", "(T_k,) times (T_k, d_v) do not line up; use weights @ values")
def cv_star(scores, values):
    return (F.softmax(scores, dim=0) * values).sum(dim=0)


@wrong("context_vector", "(T_k,) times (T_k, d_v) do not line up; use weights @ values")
def cv_star_values_first(scores, values):
    return torch.sum(values * F.softmax(scores, dim=0), 0)


@wrong("context_vector", "the row of weights stands on the left: weights @ values")
def cv_matrix_first(scores, values):
    return torch.matmul(values, F.softmax(scores, dim=0))


@wrong("context_vector", "return only the context")
def cv_with_weights(scores, values):
    weights = F.softmax(scores, dim=0)
    return weights @ values, weights


@right("context_vector")
def cv_loop(scores, values):
    e = [torch.exp(s) for s in scores]
    total = sum(e)
    context = torch.zeros(values.shape[1])
    for weight, value in zip(e, values, strict=True):
        context += weight / total * value
    return context


@right("context_vector")
def cv_einsum(scores, values):
    return torch.einsum("k,kd->d", F.softmax(scores, dim=0), values)


@right("context_vector")
def cv_transposed_product(scores, values):
    return values.T @ torch.softmax(scores, 0)


# --- hard_alignment ------------------------------------------------------------------------------------------

@wrong("hard_alignment", "in each column: a link for every source word")
def ha_by_column(weights):
    best = torch.max(weights, dim=0).indices
    return {(int(best[j]), j) for j in range(weights.shape[1])}


@wrong("hard_alignment", "wrong way round")
def ha_swapped(weights):
    links = set()
    for i, row in enumerate(weights):
        links.add((row.argmax().item(), i))
    return links


@wrong("hard_alignment", "count from one")
def ha_one_based(weights):
    return {(i, int(row.argmax()) + 1) for i, row in enumerate(weights, start=1)}


@wrong("hard_alignment", "argmin")
def ha_sorted_wrong(weights):
    return {(i, row.argsort()[0].item()) for i, row in enumerate(weights)}


@wrong("hard_alignment", "a list; expected a set")
def ha_list(weights):
    return [(i, int(row.argmax())) for i, row in enumerate(weights)]


@wrong("hard_alignment", "expected plain ints")
def ha_tensors(weights):
    return {(i, row.argmax()) for i, row in enumerate(weights)}


@wrong("hard_alignment", "columns alone")
def ha_columns(weights):
    return {int(row.argmax()) for row in weights}


@wrong("hard_alignment", "above one half")
def ha_threshold(weights):
    T_q, T_k = weights.shape
    return {(i, j) for i in range(T_q) for j in range(T_k) if weights[i, j] >= 0.5}


@wrong("hard_alignment", "largest weight of the whole matrix")
def ha_one_link(weights):
    return {tuple((weights == weights.max()).nonzero()[0].tolist())}


@wrong("hard_alignment", "Tensor; expected a set")
def ha_argmax_tensor(weights):
    return weights.argmax(-1)


@wrong("hard_alignment", "that is the largest of the whole matrix; take it for each row: dim=1")
def ha_no_dim(weights):
    return {(i, j) for i, j in enumerate(torch.argmax(weights).tolist())}


@wrong("hard_alignment", "that is the largest of the whole matrix; take it for each row: dim=1")
def ha_no_dim_tensor(weights):
    return {(i, j.item()) for i, j in enumerate(torch.argmax(weights))}


@wrong("hard_alignment", "that is the largest of the whole matrix; take it for each row: dim=1")
def ha_no_dim_every_row(weights):
    links = set()
    for i in range(len(weights)):
        links.add((i, weights.argmax().item()))
    return links


@wrong("hard_alignment", "that is the largest of the whole matrix; take it for each row: dim=1")
def ha_no_dim_returned(weights):
    return torch.argmax(weights)


@right("hard_alignment")
def ha_loops(weights):
    links = set()
    for i in range(weights.shape[0]):
        best = 0
        for j in range(weights.shape[1]):
            if weights[i, j] > weights[i, best]:
                best = j
        links.add((i, best))
    return links


@right("hard_alignment")
def ha_zip(weights):
    return set(zip(range(len(weights)), weights.topk(1, dim=1).indices.flatten().tolist(), strict=True))


# --- masked_softmax ------------------------------------------------------------------------------------------

@wrong("masked_softmax", "over the wrong axis")
def ms_axis_queries(scores, mask):
    return torch.softmax(torch.where(mask, scores, torch.tensor(float("-inf"))), dim=1)


@wrong("masked_softmax", "over the wrong axis")
def ms_axis_queries_then_zeroed(scores, mask):
    weights = scores.masked_fill(mask == 0, float("-inf")).softmax(1)
    weights[weights.isnan()] = 0
    return weights


@wrong("masked_softmax", "mask is ignored")
def ms_discarded_result(scores, mask):
    scores.masked_fill(~mask, -math.inf)  # the trap: without underscore the result is lost
    return scores.softmax(-1)


@wrong("masked_softmax", "mask is inverted")
def ms_inverted(scores, mask):
    return F.softmax(scores.masked_fill(mask, -torch.inf), dim=2)


@wrong("masked_softmax", "applied after the softmax")
def ms_multiplied_after(scores, mask):
    weights = F.softmax(scores, dim=-1)
    return torch.where(mask, weights, torch.zeros_like(weights))


@wrong("masked_softmax", "masked keys still get weight")
def ms_multiplied_before(scores, mask):
    return F.softmax(scores * mask.float(), dim=-1)


@wrong("masked_softmax", "large finite number")
def ms_1e9(scores, mask):
    return F.softmax(scores + (1.0 - mask.float()) * -1e9, dim=-1)


@wrong("masked_softmax", "large finite number")
def ms_1e4_and_zeros(scores, mask):
    weights = scores.masked_fill(~mask, -10000).softmax(-1)
    return weights * mask.any(-1, keepdim=True)


@wrong("masked_softmax", "large finite number")
def ms_1e9_and_zeros_not_half(scores, mask):
    weights = scores.masked_fill(~mask, -1e9).softmax(-1)
    return weights.masked_fill(~mask, 0)


@wrong("masked_softmax", "softmax is 0 / 0 = NaN")
def ms_nan_rows(scores, mask):
    neg = torch.full_like(scores, -torch.inf)
    return torch.where(mask, scores, neg).softmax(dim=-1)


@wrong("masked_softmax", "equal weights: they were made finite before the softmax; set them to 0 after it, too")
def ms_finite_before_only(scores, mask):
    scores = torch.where(mask, scores, -torch.inf)
    scores = torch.where(mask.any(dim=-1, keepdim=True), scores, 0.0)
    return F.softmax(scores, dim=-1)


@wrong("masked_softmax", "equal weights: they were made finite before the softmax; set them to 0 after it, too")
def ms_lowest(scores, mask):
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)


@wrong("masked_softmax", "0 times inf is NaN")
def ms_times_inf(scores, mask):
    return ((1 - mask.int()) * float("-inf") + scores).softmax(-1)


@wrong("masked_softmax", "over- or underflows")
def ms_bare_exp(scores, mask):
    e = torch.exp(scores) * mask
    total = e.sum(dim=-1, keepdim=True)
    return e / total.masked_fill(total == 0, 1)


@wrong("masked_softmax", "took part in the softmax")
def ms_renormalised(scores, mask):
    weights = F.softmax(scores, -1) * mask
    total = weights.sum(-1, keepdim=True)
    return torch.where(total > 0, weights / total.clamp(min=1e-30), torch.zeros_like(weights))


@wrong("masked_softmax", "`scores` was changed")
def ms_in_place(scores, mask):
    scores.masked_fill_(~mask, -math.inf)
    return scores.softmax(-1).nan_to_num(0.0)


@wrong("masked_softmax", "gradient is cut: no gradient reaches `scores`")
def ms_detached(scores, mask):
    return scores.detach().masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(0.0)


@wrong("masked_softmax", "gradient is wrong")
def ms_partly_detached(scores, mask):
    e = (scores - scores.masked_fill(~mask, -math.inf).amax(-1, keepdim=True).clamp(min=-1e6)).exp().where(mask, 0)
    return e / e.sum(-1, keepdim=True).clamp(min=1e-9).detach()


@wrong("masked_softmax", "when each query has its own mask (B, T_q, T_k)")
def ms_only_first_mask_row(scores, mask):
    return scores.masked_fill(~mask[:, :1], -math.inf).softmax(-1).nan_to_num(0.0)


@wrong("masked_softmax", "torch.float32; expected torch.float16")
def ms_always_float(scores, mask):
    return scores.float().masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(0.0)


@wrong("masked_softmax", "two axes are swapped")
def ms_transposed(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(-1).transpose(1, 2)


@right("masked_softmax")
def ms_nan_to_num(scores, mask):
    return scores.masked_fill(~mask, float("-inf")).softmax(dim=-1).nan_to_num(0.0)


@right("masked_softmax")
def ms_lowest_then_zero(scores, mask):
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)
    return weights * mask


@right("masked_softmax")
def ms_by_hand(scores, mask):
    top = scores.masked_fill(~mask, -math.inf).amax(-1, keepdim=True)
    e = (scores - top.masked_fill(top == -math.inf, 0)).where(mask, -math.inf).exp()
    total = e.sum(-1, keepdim=True)
    return e / total.where(total > 0, 1)


@right("masked_softmax")
def ms_row_by_row(scores, mask):
    mask = mask.expand_as(scores)
    weights = torch.zeros_like(scores)
    for b in range(scores.shape[0]):
        for i in range(scores.shape[1]):
            if mask[b, i].any():
                weights[b, i, mask[b, i]] = scores[b, i, mask[b, i]].softmax(0)
    return weights


@right("masked_softmax")
def ms_on_own_copy(scores, mask):
    scores = scores.clone()
    scores[~mask.expand_as(scores)] = -math.inf
    return scores.softmax(-1).nan_to_num(0)


# --- additive_score ------------------------------------------------------------------------------------------

@wrong("additive_score", "tanh is missing")
def as_linear(query, keys, W_q, W_k, v):
    hidden = F.linear(query, W_q)[:, :, None] + F.linear(keys, W_k)[:, None]
    return torch.einsum("bqkh,h->bqk", hidden, v)


@wrong("additive_score", "after the product with v")
def as_tanh_outside(query, keys, W_q, W_k, v):
    hidden = F.linear(query, W_q)[:, :, None] + F.linear(keys, W_k)[:, None]
    return torch.tanh((hidden * v).sum(-1))


@wrong("additive_score", "of query and key apart")
def as_tanh_apart(query, keys, W_q, W_k, v):
    q, k = torch.tanh(F.linear(query, W_q)), torch.tanh(F.linear(keys, W_k))
    return (q[:, :, None] + k[:, None]) @ v


@wrong("additive_score", "uses relu")
def as_relu(query, keys, W_q, W_k, v):
    return F.relu(F.linear(query, W_q)[:, :, None] + F.linear(keys, W_k)[:, None]) @ v


@wrong("additive_score", "v is not used")
def as_no_v(query, keys, W_q, W_k, v):
    return torch.tanh(F.linear(query, W_q)[:, :, None] + F.linear(keys, W_k)[:, None]).sum(dim=3)


@wrong("additive_score", "not summed")
def as_v_not_summed(query, keys, W_q, W_k, v):
    return v * torch.tanh(F.linear(query, W_q)[:, :, None] + F.linear(keys, W_k)[:, None])


@wrong("additive_score", "Queries and keys have changed places")
def as_swapped_axes(query, keys, W_q, W_k, v):
    return torch.tanh(F.linear(query, W_q)[:, None] + F.linear(keys, W_k)[:, :, None]) @ v


@wrong("additive_score", "lined up instead of crossed")
def as_no_broadcast(query, keys, W_q, W_k, v):
    return torch.tanh(F.linear(query, W_q) + F.linear(keys, W_k)) @ v


@wrong("additive_score", "lined up instead of crossed")
def as_same_axis(query, keys, W_q, W_k, v):
    return torch.tanh(F.linear(query, W_q).unsqueeze(1) + F.linear(keys, W_k).unsqueeze(1)) @ v


@wrong("additive_score", "not transposed")
def as_not_transposed(query, keys, W_q, W_k, v):
    q = query @ W_q
    k = keys @ W_k
    return torch.tanh(q[:, :, None] + k[:, None]) @ v


@wrong("additive_score", "weights already")
def as_softmaxed(query, keys, W_q, W_k, v):
    return F.softmax(torch.tanh(F.linear(query, W_q)[:, :, None] + F.linear(keys, W_k)[:, None]) @ v, dim=-1)


@wrong("additive_score", "The query is not used")
def as_keys_twice(query, keys, W_q, W_k, v):
    k = F.linear(keys, W_k)
    return torch.stack([torch.tanh(k) @ v for _ in range(query.shape[1])], dim=1)


@wrong("additive_score", "as in a dot product")
def as_dot(query, keys, W_q, W_k, v):
    return torch.bmm(F.linear(query, W_q), F.linear(keys, W_k).transpose(1, 2))


@wrong("additive_score", "squeeze() without a dimension")
def as_squeeze(query, keys, W_q, W_k, v):
    hidden = torch.tanh(F.linear(query, W_q)[:, :, None] + F.linear(keys, W_k)[:, None])
    return (hidden @ v[:, None]).squeeze()


@wrong("additive_score", "v is a vector: … @ v, or .squeeze(-1)")
def as_v_as_column(query, keys, W_q, W_k, v):
    return torch.tanh(F.linear(query, W_q)[:, :, None] + F.linear(keys, W_k)[:, None]) @ v[:, None]


@wrong("additive_score", "no gradient reaches `W_q`")
def as_weights_as_data(query, keys, W_q, W_k, v):
    return torch.tanh(F.linear(query, W_q.data)[:, :, None] + F.linear(keys, W_k.data)[:, None]) @ v


@right("additive_score")
def as_loops(query, keys, W_q, W_k, v):
    scores = torch.zeros(query.shape[0], query.shape[1], keys.shape[1])
    for b in range(query.shape[0]):
        for i in range(query.shape[1]):
            for j in range(keys.shape[1]):
                scores[b, i, j] = v @ torch.tanh(W_q @ query[b, i] + W_k @ keys[b, j])
    return scores


@right("additive_score")
def as_einsum(query, keys, W_q, W_k, v):
    q = torch.einsum("bqi,hi->bqh", query, W_q)
    k = torch.einsum("bki,hi->bkh", keys, W_k)
    return torch.einsum("bqkh,h->bqk", torch.tanh(q[:, :, None] + k[:, None]), v)


@right("additive_score")
def as_sum(query, keys, W_q, W_k, v):
    hidden = F.linear(query, W_q).unsqueeze(2) + F.linear(keys, W_k).unsqueeze(1)
    hidden.tanh_()
    return (hidden * v).sum(dim=-1)


# --- scaled_dot_attention ------------------------------------------------------------------------------------

def softmax_of(scores, mask, fill=-torch.inf):
    return F.softmax(torch.where(mask, scores, fill), dim=-1).nan_to_num(0.0)


@wrong("scaled_dot_attention", "scale is missing")
def sd_unscaled(query, keys, values, mask):
    weights = softmax_of(torch.bmm(query, keys.transpose(1, 2)), mask)
    return torch.bmm(weights, values), weights


@wrong("scaled_dot_attention", "divided by d.")
def sd_divided_by_d(query, keys, values, mask):
    weights = softmax_of(torch.einsum("bqd,bkd->bqk", query, keys) / query.shape[-1], mask)
    return weights @ values, weights


@wrong("scaled_dot_attention", "number of keys")
def sd_scaled_by_length(query, keys, values, mask):
    weights = softmax_of(query @ keys.mT / keys.shape[1] ** 0.5, mask)
    return weights @ values, weights


@wrong("scaled_dot_attention", "mask is ignored")
def sd_no_mask(query, keys, values, mask):
    weights = (query @ keys.mT / query.shape[-1] ** 0.5).softmax(2)
    return weights @ values, weights


@wrong("scaled_dot_attention", "mask is inverted")
def sd_inverted(query, keys, values, mask):
    scores = query @ keys.mT / query.shape[-1] ** 0.5
    weights = torch.where(mask, -torch.inf, scores).softmax(2)
    return weights @ values, weights


@wrong("scaled_dot_attention", "applied after the softmax")
def sd_masked_after(query, keys, values, mask):
    weights = (query @ keys.mT / query.shape[-1] ** 0.5).softmax(-1).masked_fill(~mask, 0)
    return weights @ values, weights


@wrong("scaled_dot_attention", "over the wrong axis")
def sd_axis(query, keys, values, mask):
    scores = (query @ keys.mT / query.shape[-1] ** 0.5).masked_fill(~mask, float("-inf"))
    weights = torch.nan_to_num(torch.softmax(scores, dim=1))
    return weights @ values, weights


@wrong("scaled_dot_attention", "order of the results")
def sd_order(query, keys, values, mask):
    weights = softmax_of(query @ keys.mT / query.shape[-1] ** 0.5, mask)
    return weights, weights @ values


@wrong("scaled_dot_attention", "returns one Tensor; expected 2: return context, weights")
def sd_context_only(query, keys, values, mask):
    return softmax_of(query @ keys.mT / query.shape[-1] ** 0.5, mask) @ values


@wrong("scaled_dot_attention", "keys are summed instead of the values")
def sd_keys_as_values(query, keys, values, mask):
    weights = softmax_of(query @ keys.mT / query.shape[-1] ** 0.5, mask)
    return weights @ keys, weights


@wrong("scaled_dot_attention", "second result holds the scores")
def sd_returns_scores(query, keys, values, mask):
    scores = query @ keys.mT / query.shape[-1] ** 0.5
    return softmax_of(scores, mask) @ values, scores


@wrong("scaled_dot_attention", "last two axes swapped before the product")
def sd_no_transpose(query, keys, values, mask):
    weights = softmax_of(query @ keys / query.shape[-1] ** 0.5, mask)
    return weights @ values, weights


@wrong("scaled_dot_attention", "softmax is 0 / 0 = NaN")
def sd_nan_rows(query, keys, values, mask):
    weights = (query @ keys.mT / query.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf).softmax(-1)
    return weights @ values, weights


@wrong("scaled_dot_attention", "set them to 0 after it, too")
def sd_1e9(query, keys, values, mask):
    weights = (query @ keys.mT / query.shape[-1] ** 0.5).masked_fill(mask == 0, -1e9).softmax(-1)
    return weights @ values, weights


@wrong("scaled_dot_attention", "large finite number")
def sd_1e9_and_zeros(query, keys, values, mask):
    weights = (query @ keys.mT / query.shape[-1] ** 0.5).masked_fill(mask == 0, -1e9).softmax(-1)
    weights = weights.masked_fill(mask == 0, 0)
    return weights @ values, weights


@wrong("scaled_dot_attention", "set them to 0 after it, too")
def sd_finite_before_only(query, keys, values, mask):
    scores = (query @ keys.mT / query.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
    weights = torch.where(mask.any(-1, keepdim=True), scores, 0).softmax(-1)
    return weights @ values, weights


@wrong("scaled_dot_attention", "divide the scores, not the weights")
def sd_scaled_late(query, keys, values, mask):
    weights = softmax_of(query @ keys.mT, mask) / query.shape[-1] ** 0.5
    return weights @ values, weights


@wrong("scaled_dot_attention", "divide the scores, not the weights")
def sd_scaled_context(query, keys, values, mask):
    weights = softmax_of(query @ keys.mT, mask)
    return weights @ values / query.shape[-1] ** 0.5, weights


@wrong("scaled_dot_attention", "took part in the softmax")
def sd_renormalised(query, keys, values, mask):
    weights = (query @ keys.mT / query.shape[-1] ** 0.5).softmax(-1) * mask
    weights = weights / weights.sum(-1, keepdim=True)
    return weights @ values, weights


@wrong("scaled_dot_attention", "no gradient reaches `query`")
def sd_detached(query, keys, values, mask):
    weights = softmax_of(query @ keys.mT / query.shape[-1] ** 0.5, mask).detach()
    return weights @ values, weights


@wrong("scaled_dot_attention", "`query` was changed")
def sd_scales_query_in_place(query, keys, values, mask):
    query /= query.shape[-1] ** 0.5
    weights = softmax_of(query @ keys.mT, mask)
    return weights @ values, weights


@right("scaled_dot_attention")
def sd_scaled_query(query, keys, values, mask):
    weights = softmax_of(torch.bmm(query / math.sqrt(query.shape[-1]), keys.transpose(1, 2)), mask)
    return torch.bmm(weights, values), weights


@right("scaled_dot_attention")
def sd_einsum(query, keys, values, mask):
    scores = torch.einsum("bqd,bkd->bqk", query, keys) * keys.shape[-1] ** -0.5
    weights = softmax_of(scores, mask)
    return [torch.einsum("bqk,bkd->bqd", weights, values), weights]


@right("scaled_dot_attention")
def sd_sentence_by_sentence(query, keys, values, mask):
    contexts, all_weights = [], []
    for q, k, v, m in zip(query, keys, values, mask, strict=True):
        weights = softmax_of(q @ k.T / q.shape[1] ** 0.5, m)
        contexts.append(weights @ v)
        all_weights.append(weights)
    return torch.stack(contexts), torch.stack(all_weights)


# --- alignment_error_rate ------------------------------------------------------------------------------------

@wrong("alignment_error_rate", "factor 2 is missing")
def aer_no_two(predicted, true):
    hits = sum(link in true for link in predicted)
    return 1 - hits / (len(predicted) + len(true))


@wrong("alignment_error_rate", "1 minus it")
def aer_agreement(predicted, true):
    return 2 * len(predicted.intersection(true)) / (len(predicted) + len(true))


@wrong("alignment_error_rate", "1 - precision")
def aer_precision(predicted, true):
    return 1 - sum(link in true for link in predicted) / max(len(predicted), 1)


@wrong("alignment_error_rate", "1 - recall")
def aer_recall(predicted, true):
    return len(true - predicted) / len(true)


@wrong("alignment_error_rate", "(the union)")
def aer_jaccard(predicted, true):
    return len(predicted ^ true) / len(predicted | true)


@wrong("alignment_error_rate", "parentheses around |A| + |S|")
def aer_no_parentheses(predicted, true):
    shared = predicted & true
    return 1 - 2*len(shared)/len(predicted)+len(true)


@wrong("alignment_error_rate", "parentheses around |A| + |S|")
def aer_no_parentheses_below(predicted, true):
    agreement = 2 * len(predicted & true) / len(predicted) + len(true)
    return 1 - agreement


@wrong("alignment_error_rate", "percentage")
def aer_percent(predicted, true):
    return 100 * len(predicted ^ true) / (len(predicted) + len(true))


@wrong("alignment_error_rate", "number of wrong links")
def aer_count(predicted, true):
    return float(len(predicted - true) + len(true - predicted))


@wrong("alignment_error_rate", "They agree: the rate is 0.0")
def aer_both_empty(predicted, true):
    return 1 - 2 * len(predicted & true) / (len(predicted) + len(true))


@wrong("alignment_error_rate", "the rate is 0.0")
def aer_empty_is_all_wrong(predicted, true):
    if not predicted and not true:
        return 1.0
    return 1 - 2 * len(predicted & true) / (len(predicted) + len(true))


@wrong("alignment_error_rate", "`predicted` was changed")
def aer_in_place(predicted, true):
    n_links = len(predicted) + len(true)
    predicted &= true
    return 1 - 2 * len(predicted) / n_links if n_links else 0.0


@wrong("alignment_error_rate", "a str; expected a float")
def aer_text(predicted, true):
    return f"{len(predicted ^ true) / (len(predicted) + len(true)):.2f}"


@right("alignment_error_rate")
def aer_symmetric_difference(predicted, true):
    return len(predicted ^ true) / max(len(predicted) + len(true), 1)


@right("alignment_error_rate")
def aer_counting(predicted, true):
    if not predicted and not true:
        return 0
    shared = 0
    for link in predicted:
        if link in true:
            shared += 1
    return 1.0 - (shared + shared) / (len(predicted) + len(true))


@right("alignment_error_rate")
def aer_from_f_score(predicted, true):
    if not predicted | true:
        return 0.0
    shared = len(predicted & true)
    if shared == 0:
        return 1.0
    precision, recall = shared / len(predicted), shared / len(true)
    return 1 - 2 * precision * recall / (precision + recall)


# --- local_mask ----------------------------------------------------------------------------------------------

@wrong("local_mask", "<= rather than <")
def lm_strict(centres, n_keys, window):
    return torch.stack([(torch.arange(n_keys) - c).abs() < window for c in centres])


@wrong("local_mask", "last key of the window is missing")
def lm_range(centres, n_keys, window):
    mask = torch.zeros(len(centres), n_keys, dtype=torch.bool)
    for i, c in enumerate(centres.tolist()):
        for j in range(c - window, c + window):
            mask[i, j] = True
    return mask


@wrong("local_mask", "mask is inverted")
def lm_inverted(centres, n_keys, window):
    return (centres[:, None] - torch.arange(n_keys)[None, :]).abs() > window


@wrong("local_mask", "distance has a sign")
def lm_signed(centres, n_keys, window):
    return centres[:, None] - torch.arange(n_keys)[None, :] <= window


@wrong("local_mask", "axes are swapped")
def lm_transposed(centres, n_keys, window):
    return (centres[None, :] - torch.arange(n_keys)[:, None]).abs() <= window


@wrong("local_mask", "half as wide")
def lm_half(centres, n_keys, window):
    return (centres[:, None] - torch.arange(n_keys)).abs() * 2 <= window


@wrong("local_mask", "negative start")
def lm_negative_slice(centres, n_keys, window):
    mask = torch.zeros(len(centres), n_keys, dtype=torch.bool)
    for i, c in enumerate(centres):
        mask[i, c - window:c + window + 1] = True
    return mask


@wrong("local_mask", "wraps around")
def lm_wrapping(centres, n_keys, window):
    mask = torch.zeros(len(centres), n_keys, dtype=torch.bool)
    for i, c in enumerate(centres.tolist()):
        for step in range(-window, window + 1):
            mask[i, (c + step) % n_keys] = True
    return mask


@wrong("local_mask", "give the centres an axis of their own: centres.unsqueeze(1)")
def lm_no_axis(centres, n_keys, window):
    return torch.abs(centres - torch.arange(n_keys)) <= window


@wrong("local_mask", "give the centres an axis of their own: centres.unsqueeze(1)")
def lm_no_axis_between(centres, n_keys, window):
    j = torch.arange(n_keys)
    return (j >= centres - window) & (j <= centres + window)


@wrong("local_mask", "positions count from zero")
def lm_from_one(centres, n_keys, window):
    return (centres[:, None] - torch.arange(1, n_keys + 1)).abs() <= window


@wrong("local_mask", "positions count from zero")
def lm_from_one_too_short(centres, n_keys, window):
    return (centres[:, None] - torch.arange(1, n_keys)).abs() <= window


@wrong("local_mask", "row number is used as the centre")
def lm_diagonal(centres, n_keys, window):
    rows = torch.arange(centres.shape[0])
    return (rows[:, None] - torch.arange(n_keys)).abs() <= window


@wrong("local_mask", "torch.float32; expected torch.bool")
def lm_float(centres, n_keys, window):
    return ((centres[:, None] - torch.arange(n_keys)).abs() <= window).float()


@right("local_mask")
def lm_loops(centres, n_keys, window):
    return torch.tensor([[abs(j - c) <= window for j in range(n_keys)] for c in centres.tolist()])


@right("local_mask")
def lm_between(centres, n_keys, window):
    j, c = torch.arange(n_keys), centres[:, None]
    return (j >= c - window) & (j <= c + window)


@right("local_mask")
def lm_clamped_slice(centres, n_keys, window):
    mask = torch.zeros(len(centres), n_keys).bool()
    for i, c in enumerate(centres.tolist()):
        mask[i, max(c - window, 0):c + window + 1] = True
    return mask


# --- the tests -----------------------------------------------------------------------------------------------

def test_references_keep_their_formulas():
    """The references themselves, on numbers that can be checked by hand."""
    reference = {name: exercise.reference for name, exercise in EXERCISES.items()}
    eye = torch.eye(3)
    torch.testing.assert_close(reference["context_vector"](torch.tensor([13.0, 9, 9]), eye),
                               torch.tensor([0.9647, 0.0177, 0.0177]), atol=1e-4, rtol=0)
    assert reference["hard_alignment"](torch.tensor([[0.1, 0.9, 0.0], [0.5, 0.3, 0.2]])) == {(0, 1), (1, 0)}
    mask = torch.tensor([[[True, True, False]], [[False, False, False]]])
    assert reference["masked_softmax"](torch.zeros(2, 1, 3), mask).tolist() == [[[0.5, 0.5, 0]], [[0, 0, 0]]]
    one, two = torch.ones(1, 1, 1), torch.full((1, 2, 1), 2.0)
    scores = reference["additive_score"](one, two, torch.full((1, 1), 3.0), torch.full((1, 1), -1.0), torch.ones(1))
    torch.testing.assert_close(scores, torch.full((1, 1, 2), math.tanh(1)))
    keys = torch.tensor([[[2.0, 0, 0, 0], [0, 2, 0, 0]]])
    context, weights = reference["scaled_dot_attention"](keys[:, :1], keys, eye[None, :2], torch.ones(1, 1, 2) > 0)
    first = math.exp(2) / (math.exp(2) + 1)  # scores 4 and 0, over sqrt(4)
    torch.testing.assert_close(weights, torch.tensor([[[first, 1 - first]]]))
    torch.testing.assert_close(context, torch.tensor([[[first, 1 - first, 0]]]))
    assert reference["alignment_error_rate"]({(0, 0), (1, 1)}, {(0, 0), (1, 2)}) == 0.5
    assert reference["local_mask"](torch.tensor([0, 2]), 4, 1).tolist() == [[True, True, False, False],
                                                                            [False, True, True, True]]


def not_implemented(scores, values):
    """A docstring, and nothing yet."""
    raise NotImplementedError("your turn")


@pytest.mark.parametrize("stub", [not_implemented, lambda scores, values: None, lambda scores, values: ...])
def test_a_stub_is_told_so_and_does_not_stop_the_notebook(stub, capsys):
    check("context_vector", {"context_vector": stub})
    assert "context_vector: not written yet" in capsys.readouterr().out


def test_a_stub_that_is_called_is_named(capsys):
    def masked_softmax(scores, mask):
        raise NotImplementedError("your turn")

    def helper(query, keys):
        raise NotImplementedError

    def scaled_dot_attention(query, keys, values, mask):
        return masked_softmax(query @ keys.mT, mask) @ values

    check("scaled_dot_attention", locals())
    check("scaled_dot_attention", {"scaled_dot_attention": lambda q, k, v, m: helper(q, k)})
    assert capsys.readouterr().out.splitlines() == [
        "… scaled_dot_attention calls masked_softmax, which is not written yet. Write that first "
        "(or use attention.masked_softmax).",
        "… scaled_dot_attention calls helper, which is not written yet. Write that first."]


def test_an_operation_that_torch_has_not_implemented_is_not_a_stub():
    with pytest.raises(WrongAnswer, match="raised NotImplementedError.*not implemented for 'Bool'"):
        check("masked_softmax", {"masked_softmax": lambda scores, mask: mask.softmax(-1)})


@pytest.mark.parametrize(("exercise", "function"), [("hard_alignment", ha_zip), ("local_mask", lm_between)])
def test_exact_results_have_no_largest_difference(exercise, function, capsys):
    check(exercise, {exercise: function})
    assert "difference" not in capsys.readouterr().out


def test_missing_name_and_misspelling():
    with pytest.raises(WrongAnswer, match="Did you run the cell that defines it"):
        check("context_vector", {})
    with pytest.raises(WrongAnswer, match="There is a `contex_vector`: is that a misspelling"):
        check("context_vector", {"contex_vector": cv_loop})


def test_not_a_function():
    with pytest.raises(WrongAnswer, match=r"is a Tensor, not a function.*def context_vector\(scores, values\)"):
        check("context_vector", {"context_vector": torch.ones(3)})


@pytest.mark.parametrize("function", [lambda scores: scores, lambda values, scores: scores,
                                      lambda scores, values, mask: scores])
def test_wrong_signature_shows_both(function):
    with pytest.raises(WrongAnswer, match=r"signature context_vector\(.*expected context_vector\(scores, values\)"):
        check("context_vector", {"context_vector": function})


def test_renamed_and_extra_optional_parameters_are_fine(capsys):
    check("context_vector", {"context_vector": lambda s, v, dim=0: s.softmax(dim) @ v})
    assert "right" in capsys.readouterr().out


def test_an_exception_is_shown_with_shapes_and_chained():
    def context_vector(scores, values):
        return scores.softmax(0) @ values.nonsense
    with pytest.raises(WrongAnswer, match=r"(?s)raised AttributeError.*Inputs: scores \(\d,\), values \(\d, \d\)") as e:
        check("context_vector", {"context_vector": context_vector})
    assert isinstance(e.value.__cause__, AttributeError)
    shown = "".join(e.value._render_traceback_())
    assert "values.nonsense" in shown
    assert "engine.py" not in shown


def test_an_unknown_fault_still_says_where():
    with pytest.raises(WrongAnswer, match=r"largest difference is [\d.]+, at context\[\d\]: \S+ instead of"):
        check("context_vector", {"context_vector": lambda s, v: s.softmax(0) @ v + 0.1})


def test_shape_message_has_both_shapes_and_the_axes():
    with pytest.raises(WrongAnswer, match=r"weights is \(4, 5, 7\); expected \(B, T_q, T_k\) = \(4, 7, 5\)"):
        check("masked_softmax", {"masked_softmax": ms_transposed})


def test_the_namespace_is_that_of_the_caller(capsys):
    caller = {"check": check, "context_vector": cv_loop}
    exec("check('context_vector')", caller)
    assert "right" in capsys.readouterr().out


def test_unknown_exercise():
    there = "softmax, pad_batch, .*, context_vector"
    with pytest.raises(ValueError, match=f"no exercise is called 'nonsense'; there are {there}"):
        check("nonsense")


def test_inputs_make_swapped_axes_visible():
    """Every axis of every ordinary input differs from the others in at least one of the inputs."""
    for exercise in EXERCISES.values():
        make = next(iter(exercise.cases.values()))
        for seed in range(5):
            for name, argument in zip(exercise.parameters, make(torch.Generator().manual_seed(seed)), strict=True):
                square = exercise.name == "multi_head" and name.startswith("W_")  # (d_model, d_model)
                if isinstance(argument, torch.Tensor) and not square:
                    axes = [size for size in argument.shape if size > 1]
                    assert len(axes) == len(set(axes))


def test_checks_leave_the_random_state_alone():
    before = torch.get_rng_state()
    check("masked_softmax", {"masked_softmax": ms_by_hand})
    same_output(torch.sin, torch.sin, lambda: torch.randn(3))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(("missing", "extra", "message"), [
    (1, {(12, 1), (2, 90)}, r"lacks \{\(0, \d\)\} and has \{\(2, 90\), \(12, 1\)\} too much"),
    (0, {(9, j) for j in range(5, 15)}, r"has \{\(9, 5\), \(9, 6\), \(9, 7\), \(9, 8\), …\} too much"),
    (0, {(0, 99), 3}, r"lacks nothing and has \{3, \(0, 99\)\} too much"),
])
def test_sets_are_shown_as_sets_in_order(missing, extra, message):
    def hard_alignment(weights):
        return set(sorted(EXERCISES["hard_alignment"].reference(weights))[missing:]) | extra

    with pytest.raises(WrongAnswer, match=message):
        check("hard_alignment", locals())


def test_inputs_that_are_sets_are_shown_as_sets():
    links = r"\{\(\d+, \d+\)(, \(\d+, \d+\))*\}"
    with pytest.raises(WrongAnswer, match=rf"Inputs: predicted = {links}, true = {links}\.") as error:
        check("alignment_error_rate", {"alignment_error_rate": lambda predicted, true: 2.0})
    for shown in re.findall(r"\{(.*?)\}", str(error.value)):
        assert list(ast.literal_eval(shown)) == sorted(ast.literal_eval(shown))
    with pytest.raises(WrongAnswer, match=r"Inputs: predicted = set\(\), true = \{"):
        check("alignment_error_rate", {"alignment_error_rate": lambda predicted, true: (
            EXERCISES["alignment_error_rate"].reference(predicted, true) if predicted else 0.5)})


def test_a_card_shows_names_as_code_and_everything_else_as_text():
    card = _Card("does <b> end with `return`, or `a < b`?", "…", "#6B7280")
    assert repr(card) == "… does <b> end with `return`, or `a < b`?"
    html = card._repr_html_()
    assert "does &lt;b&gt; end with <code>return</code>, or <code>a &lt; b</code>?" in html
    assert "`" not in html


# --- same_output ---------------------------------------------------------------------------------------------

def test_same_output_of_functions_and_modules(capsys):
    layer = nn.Linear(3, 2)
    same_output(layer, lambda x: x @ layer.weight.T + layer.bias, torch.randn(4, 3))
    same_output(lambda x: (x, x.sum()), lambda x: [x + 1e-7, x.sum()], torch.ones(2, dtype=torch.float64))
    same_output(torch.add, lambda a, b: b + a, lambda: (torch.randn(2, 3), torch.randn(3)))
    out = capsys.readouterr().out
    assert "Same output: (4, 2) float32, largest difference below 1e-5." in out
    assert "Same output on 5 random inputs: (2, 3) float32" in out


@pytest.mark.parametrize(("mine", "message"), [
    (lambda x: x.T, r"mine returns \(3, 2\) float32, the reference \(2, 3\) float32"),
    (lambda x: x.double(), "float64"),
    (lambda x: (x, x), r"mine returns \[\(2, 3\) float32, \(2, 3\) float32\]"),
    (lambda x: x + torch.eye(3)[1:] / 2, r"largest difference is 0.5, at output\[0, 1\]; allowed is 1e-05"),
    (lambda x: x / 0 * 0, "largest difference is inf"),
])
def test_different_output_is_refused(mine, message):
    with pytest.raises(WrongAnswer, match=message):
        same_output(mine, lambda x: x, torch.arange(6.0).reshape(2, 3))


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(("mine", "reference", "where"), [
    ([1.0, NAN], [1.0, 2.0], r"\[1\]"), ([1.0, 2.0], [NAN, 2.0], r"\[0\]"), ([NAN, 2.0], [NAN, 2.0], r"\[0\]"),
    ([1.0, INF], [1.0, 2.0], r"\[1\]"), ([1.0, INF], [1.0, -INF], r"\[1\]"),
])
def test_nan_is_not_the_same_output_not_even_as_nan(mine, reference, where):
    """Two functions that both give NaN have not been shown to agree."""
    with pytest.raises(WrongAnswer, match=rf"largest difference is inf, at output{where}.*NaN or infinite"):
        same_output(lambda: torch.tensor(mine), lambda: torch.tensor(reference))


def test_masked_scores_are_the_same_output(capsys):
    scores = torch.tensor([0.5, -INF])
    same_output(lambda: scores + 1e-7, scores.clone)
    assert "largest difference below 1e-5" in capsys.readouterr().out


def test_a_random_difference_is_found():
    with pytest.raises(WrongAnswer, match=r"at output\[1\]\[0\]"):
        same_output(lambda a: (a, a), lambda a: (a, a.where(a < 0.5, 0)), lambda: torch.randn(1))


def test_random_inputs_are_five_and_different():
    seen = []
    same_output(lambda x: seen.append(x) or x, lambda x: x, lambda: torch.randn(2))
    assert len({tuple(x.tolist()) for x in seen}) == 5


@pytest.mark.parametrize(("dtype", "same", "other"), [
    (torch.float32, 1e-6, 1e-4), (torch.float64, 1e-6, 1e-4), (torch.float16, 1e-3, 0.1), (torch.int64, 0, 1)])
def test_close_allows_rounding_and_no_more(dtype, same, other):
    for number in (0, 1):
        reference = torch.tensor([number], dtype=dtype)
        assert close(reference + same, reference)
        assert not close(reference + other, reference)


@pytest.mark.parametrize("of_values", [lambda v: (v + v.detach()) / 2, lambda v: 2 * v - v.detach(),
                                       lambda v: v + 0.001 * (v - v.detach())])
def test_right_values_with_a_wrong_gradient_are_refused(of_values):
    with pytest.raises(WrongAnswer, match="what flows back to `values` is not the function's gradient"):
        check("context_vector", {"context_vector": lambda scores, values: scores.softmax(0) @ of_values(values)})


def test_close_tells_types_apart():
    assert close(torch.tensor([math.nan]), torch.tensor([math.nan]))
    assert not close(torch.tensor([1, 2]), torch.tensor([1.0, 2.0]))
    assert not close(ValueError("a"), ValueError("b"))
    assert not close([1, 2], {1, 2})
