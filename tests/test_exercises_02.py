"""Lesson 02's checks, checked: wrong answers as tired students give them, right ones in other styles than ours."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from seeded_answers import Answers, right, wrong

from course_utils.course import course_root
from course_utils.exercises import EXERCISES
from course_utils.exercises.lesson_02 import LESSON_02
from course_utils.publish.notebooks import read


class TestAnswers(Answers):
    lesson = LESSON_02
    slips = (
        ("context_vector", "when the scores are large", ("scores.softmax", "scores.clamp(-50, 50).softmax")),
        ("context_vector", "when the values are single numbers", ("@ values", "@ values.squeeze()")),
        ("hard_alignment", "when the only source word has", (".tolist())", ".tolist()) if weights.any() else ()")),
        ("masked_softmax", "when some scores are exactly 0", (
            "(~mask, -math.inf)", "(~mask | (scores == 0), -math.inf)")),
        ("additive_score", "when the sums are large", (
            "return ", "e = torch.exp(2 * (query.unsqueeze(2) + keys.unsqueeze(1)))\n    return ",
            "torch.tanh(query.unsqueeze(2) + keys.unsqueeze(1))", "((e - 1) / (e + 1))")),
        ("alignment_error_rate", "when rows and columns", (
            "len(predicted & true)", "len({*map(frozenset, predicted)} & {*map(frozenset, true)})")),
        ("local_mask", "when the sentence is long", ("distance.abs()", "distance.to(torch.int8).abs()")),
    )


wrong("context_vector", "expected (d_v) = (7,)",
      lambda scores, values: torch.sum(F.softmax(scores, dim=0).unsqueeze(-1) * values, dim=-1))


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


wrong("context_vector", "torch.float64; expected torch.float32",
      lambda scores, values: scores.double().softmax(0) @ values.double())
wrong("context_vector", "do not line up", lambda scores, values: (F.softmax(scores, dim=0) * values).sum(dim=0))


@wrong("context_vector", "return only the context")
def cv_with_weights(scores, values):
    weights = F.softmax(scores, dim=0)
    return weights @ values, weights


@right("context_vector")
def cv_loop(scores, values):
    e = [torch.exp(s - max(scores)) for s in scores]
    total = sum(e)
    context = torch.zeros(values.shape[1])
    for weight, value in zip(e, values, strict=True):
        context += weight / total * value
    return context


right("context_vector", lambda scores, values: torch.einsum("k,kd->d", F.softmax(scores, dim=0), values))
right("context_vector", lambda scores, values: values.T @ torch.softmax(scores, 0))


wrong("hard_alignment", "a list; expected a set",
      lambda weights: [(i, int(row.argmax())) for i, row in enumerate(weights)])
wrong("hard_alignment", "expected plain ints", lambda weights: {(i, row.argmax()) for i, row in enumerate(weights)})
wrong("hard_alignment", "Tensor; expected a set", lambda weights: weights.argmax(-1))
wrong("hard_alignment", "iteration over a 0-d tensor",
      lambda weights: {(i, j.item()) for i, j in enumerate(torch.argmax(weights))})


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


right("hard_alignment",
      lambda weights: set(zip(range(len(weights)), weights.topk(1, dim=1).indices.flatten().tolist(), strict=True)))


wrong("masked_softmax", "over the wrong axis",
      lambda scores, mask: torch.softmax(torch.where(mask, scores, torch.tensor(float("-inf"))), dim=1))


@wrong("masked_softmax", "over the wrong axis")
def ms_axis_queries_then_zeroed(scores, mask):
    weights = scores.masked_fill(mask == 0, float("-inf")).softmax(1)
    weights[weights.isnan()] = 0
    return weights


@wrong("masked_softmax", "mask is ignored")
def ms_discarded_result(scores, mask):
    scores.masked_fill(~mask, -math.inf)  # the trap: without underscore the result is lost
    return scores.softmax(-1)


wrong("masked_softmax", "mask is inverted", lambda scores, mask: F.softmax(scores.masked_fill(mask, -torch.inf), dim=2))
wrong("masked_softmax", "masked keys still get weight", lambda scores, mask: F.softmax(scores * mask.float(), dim=-1))


@wrong("masked_softmax", "large finite number")
def ms_1e4_and_zeros(scores, mask):
    weights = scores.masked_fill(~mask, -10000).softmax(-1)
    return weights * mask.any(-1, keepdim=True)


wrong("masked_softmax", "0 times inf is NaN",
      lambda scores, mask: ((1 - mask.int()) * float("-inf") + scores).softmax(-1))


@wrong("masked_softmax", "over- or underflows")
def ms_bare_exp(scores, mask):
    e = torch.exp(scores) * mask
    total = e.sum(dim=-1, keepdim=True)
    return e / total.masked_fill(total == 0, 1)


@wrong("masked_softmax", "`scores` was changed")
def ms_in_place(scores, mask):
    scores.masked_fill_(~mask, -math.inf)
    return scores.softmax(-1).nan_to_num(0.0)


wrong("masked_softmax", "gradient is cut: no gradient reaches `scores`",
      lambda scores, mask: scores.detach().masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(0.0))


@wrong("masked_softmax", "gradient is wrong")
def ms_partly_detached(scores, mask):
    e = (scores - scores.masked_fill(~mask, -math.inf).amax(-1, keepdim=True).clamp(min=-1e6)).exp().where(mask, 0)
    return e / e.sum(-1, keepdim=True).clamp(min=1e-9).detach()


wrong("masked_softmax", "when each query has its own mask (B, T_q, T_k)",
      lambda scores, mask: scores.masked_fill(~mask[:, :1], -math.inf).softmax(-1).nan_to_num(0.0))
wrong("masked_softmax", "torch.float32; expected torch.float16",
      lambda scores, mask: scores.float().masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(0.0))
wrong("masked_softmax", "two axes are swapped",
      lambda scores, mask: scores.masked_fill(~mask, -math.inf).softmax(-1).transpose(1, 2))
right("masked_softmax", lambda scores, mask: scores.masked_fill(~mask, float("-inf")).softmax(dim=-1).nan_to_num(0.0))


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
    for row in np.ndindex(*scores.shape[:-1]):
        if mask[row].any():
            weights[row][mask[row]] = scores[row][mask[row]].softmax(0)
    return weights


@right("masked_softmax")
def ms_on_own_copy(scores, mask):
    scores = scores.clone()
    scores[~mask.expand_as(scores)] = -math.inf
    return scores.softmax(-1).nan_to_num(0)


wrong("additive_score", "with the new axis at the same place",
      lambda query, keys, v: torch.tanh(query.unsqueeze(1) + keys.unsqueeze(1)) @ v)
wrong("additive_score", "with the new axis at the same place",
      lambda query, keys, v: torch.tanh(query.unsqueeze(2) + keys.unsqueeze(2)) @ v)
wrong("additive_score", "`query` makes no difference",
      lambda query, keys, v: torch.tanh(keys + keys).matmul(v)[:, None].expand(-1, query.shape[1], -1))
wrong("additive_score", "One of length one is left over",
      lambda query, keys, v: torch.tanh(query[:, :, None] + keys[:, None]) @ v[:, None])
wrong("additive_score", "Why: The keys stand in the rows", lambda query, keys, v:
      torch.tanh(query.unsqueeze(1) + keys.unsqueeze(2)) @ v)
wrong("additive_score", "v is inside the tanh",
      lambda query, keys, v: torch.tanh((query[:, :, None] + keys[:, None]) * v).sum(-1))
wrong("additive_score", "no gradient reaches `keys`",
      lambda query, keys, v: torch.tanh(query[:, :, None] + torch.tensor(keys.detach().numpy())[:, None]) @ v)


@right("additive_score")
def as_loops(query, keys, v):
    scores = torch.zeros(query.shape[0], query.shape[1], keys.shape[1])
    for b, i, j in np.ndindex(*scores.shape):
        scores[b, i, j] = v @ torch.tanh(query[b, i] + keys[b, j])
    return scores


right("additive_score",
      lambda query, keys, v: torch.einsum("bqkh,h->bqk", torch.tanh(query[:, :, None] + keys[:, None]), v))


@right("additive_score")
def as_sum(query, keys, v):
    hidden = query.unsqueeze(2) + keys.unsqueeze(1)
    hidden.tanh_()
    return (hidden * v).sum(dim=-1)


# --- scaled_dot_attention ------------------------------------------------------------------------------------

def softmax_of(scores, mask, fill=-torch.inf):
    return F.softmax(torch.where(mask, scores, fill), dim=-1).nan_to_num(0.0)


@wrong("scaled_dot_attention", "Wrong order: return context, weights")
def sd_order(query, keys, values, mask):
    weights = softmax_of(query @ keys.mT / query.shape[-1] ** 0.5, mask)
    return weights, weights @ values


wrong("scaled_dot_attention", "returns one Tensor; expected 2: return context, weights",
      lambda query, keys, values, mask: softmax_of(query @ keys.mT / query.shape[-1] ** 0.5, mask) @ values)


@wrong("scaled_dot_attention", "do not line up")
def sd_no_transpose(query, keys, values, mask):
    weights = softmax_of(query @ keys / query.shape[-1] ** 0.5, mask)
    return weights @ values, weights


@wrong("scaled_dot_attention", ".T reverses all of them")
def sd_reversed_keys(query, keys, values, mask):
    weights = softmax_of(query @ keys.T / query.shape[-1] ** 0.5, mask)
    return weights @ values, weights


@wrong("scaled_dot_attention", "NaN")
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


@wrong("alignment_error_rate", "factor 2 is missing")
def aer_no_two(predicted, true):
    hits = sum(link in true for link in predicted)
    return 1 - hits / (len(predicted) + len(true))


wrong("alignment_error_rate", "1 minus it",
      lambda predicted, true: 2 * len(predicted.intersection(true)) / (len(predicted) + len(true)))
wrong("alignment_error_rate", "1 - precision",
      lambda predicted, true: 1 - sum(link in true for link in predicted) / max(len(predicted), 1))
wrong("alignment_error_rate", "1 - recall", lambda predicted, true: len(true - predicted) / len(true))
wrong("alignment_error_rate", "(the union)", lambda predicted, true: len(predicted ^ true) / len(predicted | true))


@wrong("alignment_error_rate", "parentheses around |A| + |S|")
def aer_no_parentheses(predicted, true):
    shared = predicted & true
    return 1 - 2*len(shared)/len(predicted)+len(true)


@wrong("alignment_error_rate", "parentheses around |A| + |S|")
def aer_no_parentheses_below(predicted, true):
    agreement = 2 * len(predicted & true) / len(predicted) + len(true)
    return 1 - agreement


wrong("alignment_error_rate", "percentage",
      lambda predicted, true: 100 * len(predicted ^ true) / (len(predicted) + len(true)))
wrong("alignment_error_rate", "rate is 12; expected 0.6",
      lambda predicted, true: float(len(predicted - true) + len(true - predicted)))


@wrong("alignment_error_rate", "`predicted` was changed")
def aer_in_place(predicted, true):
    n_links = len(predicted) + len(true)
    predicted &= true
    return 1 - 2 * len(predicted) / n_links if n_links else 0.0


wrong("alignment_error_rate", "a str; expected a float",
      lambda predicted, true: f"{len(predicted ^ true) / (len(predicted) + len(true)):.2f}")
right("alignment_error_rate", lambda predicted, true: len(predicted ^ true) / max(len(predicted) + len(true), 1))


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


@wrong("local_mask", "last key of the window is missing")
def lm_range(centres, n_keys, window):
    mask = torch.zeros(len(centres), n_keys, dtype=torch.bool)
    for i, c in enumerate(centres.tolist()):
        for j in range(c - window, c + window):
            mask[i, j] = True
    return mask


wrong("local_mask", "(4, 19); expected",
      lambda centres, n_keys, window: (centres[:, None] - torch.arange(1, n_keys)).abs() <= window)
wrong("local_mask", "torch.float32; expected torch.bool",
      lambda centres, n_keys, window: ((centres[:, None] - torch.arange(n_keys)).abs() <= window).float())
right("local_mask", lambda centres, n_keys, window: (
    torch.tensor([[abs(j - c) <= window for j in range(n_keys)] for c in centres.tolist()])))


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


# --- the solutions, on numbers that can be checked by hand ------------------------------------------------------

def test_solutions_keep_their_formulas():
    solution = {name: exercise.solution for name, exercise in EXERCISES.items()}
    eye = torch.eye(3)
    torch.testing.assert_close(solution["context_vector"](torch.tensor([13.0, 9, 9]), eye),
                               torch.tensor([0.9647, 0.0177, 0.0177]), atol=1e-4, rtol=0)
    assert solution["hard_alignment"](torch.tensor([[0.1, 0.9, 0.0], [0.5, 0.3, 0.2]])) == {(0, 1), (1, 0)}
    mask = torch.tensor([[[True, True, False]], [[False, False, False]]])
    assert solution["masked_softmax"](torch.zeros(2, 1, 3), mask).tolist() == [[[0.5, 0.5, 0]], [[0, 0, 0]]]
    one, two = torch.ones(1, 1, 1), torch.full((1, 2, 1), 2.0)
    scores = solution["additive_score"](one, -two, torch.full((1,), 3.0))
    torch.testing.assert_close(scores, torch.full((1, 1, 2), -3 * math.tanh(1)))
    keys = torch.tensor([[[2.0, 0, 0, 0], [0, 2, 0, 0]]])
    context, weights = solution["scaled_dot_attention"](keys[:, :1], keys, eye[None, :2], torch.ones(1, 1, 2) > 0)
    first = math.exp(2) / (math.exp(2) + 1)  # scores 4 and 0, over sqrt(4)
    torch.testing.assert_close(weights, torch.tensor([[[first, 1 - first]]]))
    torch.testing.assert_close(context, torch.tensor([[[first, 1 - first, 0]]]))
    assert solution["alignment_error_rate"]({(0, 0), (1, 1)}, {(0, 0), (1, 2)}) == 0.5
    assert solution["local_mask"](torch.tensor([0, 2]), 4, 1).tolist() == [[True, True, False, False],
                                                                            [False, True, True, True]]


# --- exercise 5: a word that is hidden -----------------------------------------------------------------------

@pytest.fixture
def hide_word():
    notebook = read(course_root() / "notebooks" / "02_bahdanau_attention.ipynb")
    (source,) = (cell.source for cell in notebook.cells if "def hide_word" in cell.source)
    weights = {"zone": (["the", "area", "<eos>"], [0.25, 0.75, 0.0]), "lois": (["laws", ".", "<eos>"], [0.3, 0.7, 0.0])}
    seen = {at: SimpleNamespace(columns=columns, weights=torch.tensor([of])) for at, (columns, of) in weights.items()}
    known = {"torch": torch, "location": -3.0, "probes": [SimpleNamespace(target=(at,)) for at in weights],
             "looked_at": lambda model, pair: seen[pair.target[0]],
             "encode_pairs": lambda pairs, english, french: pairs, "collate": lambda pairs: pairs,
             "english": None, "french": None,
             "log_probs": lambda model, batch, hide: (torch.tensor([[model * (1.0 + hide.sum())]]), None)}
    exec(source, known)
    return known["hide_word"]


def test_hide_word_says_what_is_read_and_what_hiding_costs_in_its_own_sentence(hide_word, capsys):
    hide_word("zone")
    hide_word("zone", "area", "the")
    hide_word("lois", "laws", model=-1.0)
    assert capsys.readouterr().out.splitlines() == ["location: zone reads the 0.25, area 0.75",
                                                    "location: zone without area (weight 0.75): costs 3.00 nats",
                                                    "location: zone without the (weight 0.25): costs 3.00 nats",
                                                    "additive: lois without laws (weight 0.30): costs 1.00 nats"]


@pytest.mark.parametrize(("given", "says"), [
    (("zone", "aera"), "'aera' is none of these: the, area, <eos>\n"),
    (("zone", "zone"), "'zone' is none of these: the, area, <eos>\n"),
    (("lois", 3), "3 is none of these: laws, ., <eos>\n"),
    (("area",), "'area' is in neither sentence:\nzone\nlois\n"),
])
def test_hide_word_says_in_a_line_which_words_there_are(hide_word, capsys, given, says):
    hide_word(*given)
    assert capsys.readouterr().out == says
