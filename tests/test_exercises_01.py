"""Lesson 01's checks, checked: wrong answers as tired students give them, right ones in other styles than ours."""

import math
import re
from collections import Counter, defaultdict

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from seeded_answers import Answers, right, wrong
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from course_utils.exercises import EXERCISES
from course_utils.exercises.compared import close
from course_utils.exercises.lesson_01 import LESSON_01
from course_utils.metrics import bleu


class TestAnswers(Answers):
    lesson = LESSON_01
    slips = (
        ("pad_batch", "with a single sentence", ("torch.tensor(sentence)", "torch.tensor(sentence).short()")),
        ("pad_batch", "with a single sentence", (
            "    lengths =", "    sentences = [sentence[:64] for sentence in sentences]\n    lengths =")),
        ("pad_batch", "when a sentence stands there twice", (
            "    lengths =", "    sentences = [*map(list, dict.fromkeys(map(tuple, sentences)))]\n    lengths =")),
        ("most_frequent_pair", "when a word is written with a capital", ("(symbols)", "(map(str.lower, symbols))")),
        ("beam_step", "when the scores are low", (
            "scores.unsqueeze(1) + log_probs", "(scores.unsqueeze(1) + log_probs).clamp(min=-1e3)")),
        ("bleu_by_length", "when a sentence fits no bucket, or two", (
            "if low <=", "if low == next((a for a, b in buckets if a <= len(source) <= b), 0) and low <=")),
        ("bleu_by_length", "when the hypotheses of a bucket are empty", ("<= high]", "<= high and hypotheses[i]]")),
        ("probe", "with one test row", (".argmax(dim=1)", ".argmax(dim=1).squeeze()")),
        ("sampled_loss", "when every word is a candidate", ("targets))", "targets), ignore_index=0)")),
    )


# --- pad_batch -----------------------------------------------------------------------------------------------

def lengths_of(sentences):
    return torch.tensor([len(s) for s in sentences])


def rows(sentences):
    return [torch.tensor(s) for s in sentences]


@wrong("pad_batch", "padding stands in front")
def pb_front(sentences):
    T = max(len(s) for s in sentences)
    return torch.tensor([[0] * (T - len(s)) + s for s in sentences]), lengths_of(sentences)


@wrong("pad_batch", "The padding is not PAD = 0")
def pb_ones(sentences):
    ids = torch.ones(len(sentences), max(map(len, sentences)), dtype=torch.long)
    for b, s in enumerate(sentences):
        ids[b, :len(s)] = torch.tensor(s)
    return ids, lengths_of(sentences)


wrong("pad_batch", "it returns one Tensor; expected 2: return ids, lengths",
      lambda sentences: pad_sequence(rows(sentences), batch_first=True))


@wrong("pad_batch", "not the numbers of words")
def pb_lengths_after(sentences):
    ids = pad_sequence(rows(sentences), batch_first=True)
    return ids, torch.tensor([len(row) for row in ids])


@wrong("pad_batch", "`sentences` was changed")
def pb_sorts_in_place(sentences):
    order = list(sentences)
    sentences.sort(key=len)
    return pad_sequence(rows(order), batch_first=True), lengths_of(order)


wrong("pad_batch", "with a single sentence",
      lambda sentences: (pad_sequence(rows(sentences), batch_first=True).squeeze(), lengths_of(sentences)))


@right("pad_batch")
def pb_library(sentences):
    return pad_sequence(rows(sentences), batch_first=True), lengths_of(sentences)


@right("pad_batch")
def pb_zeros(sentences):
    lengths = [len(s) for s in sentences]
    ids = torch.zeros(len(sentences), max(lengths), dtype=torch.long)
    for b, s in enumerate(sentences):
        for t, word in enumerate(s):
            ids[b, t] = word
    return ids, torch.LongTensor(lengths)


@right("pad_batch")
def pb_counts_words(sentences):
    T = max(len(s) for s in sentences)
    ids = torch.stack([F.pad(torch.tensor(s), (0, T - len(s))) for s in sentences])
    return ids, (ids != 0).sum(dim=1)


@right("pad_batch")
def pb_numpy(sentences):
    ids = np.zeros((len(sentences), max(map(len, sentences))), dtype=np.int64)
    for b, s in enumerate(sentences):
        ids[b, :len(s)] = s
    return torch.from_numpy(ids), lengths_of(sentences)


# --- most_frequent_pair --------------------------------------------------------------------------------------

def counted(words, weigh=True):
    counts = {}
    for word, n in words.items():
        for i in range(len(word) - 1):
            pair = word[i], word[i + 1]
            counts[pair] = counts.get(pair, 0) + (n if weigh else 1)
    return counts


@wrong("most_frequent_pair", "counted once, as in a set")
def mf_set(words):
    counts = defaultdict(int)
    for word, n in words.items():
        for pair in set(zip(word, word[1:], strict=False)):
            counts[pair] += n
    return sorted(counts, key=lambda pair: (-counts[pair], pair))[0]


@wrong("most_frequent_pair", "Of equally frequent pairs")
def mf_tie_last(words):
    counts = counted(words)
    return sorted(counts, key=lambda pair: (counts[pair], pair))[-1]


@wrong("most_frequent_pair", "rarest pair")
def mf_rarest(words):
    counts = counted(words)
    return sorted(counts, key=counts.get)[0]


@wrong("most_frequent_pair", "when two pairs join to the same text")
def mf_text_keys(words):
    counts, pairs = Counter(), {}
    for word, n in words.items():
        for a, b in zip(word, word[1:], strict=False):
            counts[a + b] += n
            pairs[a + b] = a, b
    return min((-n, pairs[text]) for text, n in counts.items())[1]


@wrong("most_frequent_pair", "a a a has (a, a) twice")
def mf_skips_overlaps(words):
    counts = Counter()
    for word, n in words.items():
        i = 0
        while i < len(word) - 1:
            counts[word[i:i + 2]] += n
            i += 2 if word[i:i + 2] == word[i + 1:i + 3] else 1
    return min(counts, key=lambda pair: (-counts[pair], pair))


@wrong("most_frequent_pair", "`words` was changed")
def mf_merges(words):
    counts = counted(words)
    best = min(counts, key=lambda pair: (-counts[pair], pair))
    words[best] = words.pop(next(iter(words)))
    return best


@right("most_frequent_pair")
def mf_sorted_first(words):
    counts = Counter()
    for word, n in words.items():
        counts.update({pair: 0 for pair in zip(word, word[1:], strict=False)})
        for pair in zip(word, word[1:], strict=False):
            counts[pair] += n
    return max(sorted(counts), key=counts.get)


@right("most_frequent_pair")
def mf_repeated(words):
    pairs = [(a, b) for word, n in words.items() for a, b in zip(word[:-1], word[1:], strict=True) for _ in range(n)]
    most = max(map(pairs.count, set(pairs)))
    return min(pair for pair in set(pairs) if pairs.count(pair) == most)


@right("most_frequent_pair")
def mf_dict(words):
    counts = counted(words)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[0][0]


@wrong("gate_bias", "The losses are added up")
def gb_linear(fraction, steps):
    gate = 1 - (1 - fraction) / steps
    return math.log(gate) - math.log(1 - gate)


wrong("gate_bias", "This is the gate, not its bias", lambda fraction, steps: math.exp(math.log(fraction) / steps))
wrong("gate_bias", "The sign is wrong", lambda fraction, steps: math.log(fraction ** (-1 / steps) - 1))
right("gate_bias", lambda fraction, steps: -math.log(math.expm1(-math.log(fraction) / steps)))


@right("gate_bias")
def gb_logit(fraction, steps):
    gate = torch.tensor(fraction, dtype=torch.double) ** (1 / steps)
    return float(torch.logit(gate))


# --- gru_step ------------------------------------------------------------------------------------------------

def thirds(x, h, W_x, W_h, b_x, b_h):
    return (F.linear(x, W_x, b_x).chunk(3, dim=1), F.linear(h, W_h, b_h).chunk(3, dim=1))


@wrong("gru_step", "update gate is the wrong way round")
def gs_z_swapped(x, h, W_x, W_h, b_x, b_h):
    (i_r, i_z, i_n), (h_r, h_z, h_n) = thirds(x, h, W_x, W_h, b_x, b_h)
    r, z = torch.sigmoid(i_r + h_r), torch.sigmoid(i_z + h_z)
    return h + z * (torch.tanh(i_n + r * h_n) - h)


@wrong("gru_step", "before the matrix product, W_hn (r * h), as in Cho et al. 2014")
def gs_cho(x, h, W_x, W_h, b_x, b_h):
    d = h.shape[1]
    r = torch.sigmoid(x @ W_x[:d].T + b_x[:d] + h @ W_h[:d].T + b_h[:d])
    z = torch.sigmoid(x @ W_x[d:2 * d].T + b_x[d:2 * d] + h @ W_h[d:2 * d].T + b_h[d:2 * d])
    n = torch.tanh(x @ W_x[2 * d:].T + b_x[2 * d:] + (r * h) @ W_h[2 * d:].T + b_h[2 * d:])
    return (1 - z) * n + z * h


@wrong("gru_step", "all of it, and no more")
def gs_hidden_bias_outside(x, h, W_x, W_h, b_x, b_h):
    i_r, i_z, i_n = (x @ W_x.T + b_x + b_h).chunk(3, 1)
    h_r, h_z, h_n = (h @ W_h.T).chunk(3, 1)
    r, z = (i_r + h_r).sigmoid(), (i_z + h_z).sigmoid()
    return (1 - z) * (i_n + r * h_n).tanh() + z * h


@wrong("gru_step", "`h` was changed")
def gs_in_place(x, h, W_x, W_h, b_x, b_h):
    (i_r, i_z, i_n), (h_r, h_z, h_n) = thirds(x, h, W_x, W_h, b_x, b_h)
    r, z = torch.sigmoid(i_r + h_r), torch.sigmoid(i_z + h_z)
    h *= z
    h += (1 - z) * torch.tanh(i_n + r * h_n)
    return h


wrong("gru_step", "gradient is cut: no gradient reaches `h`",
      lambda x, h, W_x, W_h, b_x, b_h: nn_gru(x, h.detach(), W_x, W_h, b_x, b_h))
wrong("gru_step", "with one sentence (B = 1)",
      lambda x, h, W_x, W_h, b_x, b_h: nn_gru(x, h, W_x, W_h, b_x, b_h).squeeze())


@right("gru_step")
def nn_gru(x, h, W_x, W_h, b_x, b_h):
    return torch.gru_cell(x, h, W_x, W_h, b_x, b_h)


@right("gru_step")
def gs_slices(x, h, W_x, W_h, b_x, b_h):
    d = h.size(1)
    r = torch.sigmoid(x @ W_x[:d].T + b_x[:d] + h @ W_h[:d].T + b_h[:d])
    z = torch.sigmoid(x @ W_x[d:2 * d].T + b_x[d:2 * d] + h @ W_h[d:2 * d].T + b_h[d:2 * d])
    n = torch.tanh(x @ W_x[2 * d:].T + b_x[2 * d:] + r * (h @ W_h[2 * d:].T + b_h[2 * d:]))
    return (1 - z) * n + z * h


@right("gru_step")
def gs_lerp(x, h, W_x, W_h, b_x, b_h):
    (i_r, i_z, i_n), (h_r, h_z, h_n) = thirds(x, h, W_x, W_h, b_x, b_h)
    n = torch.tanh(i_n + torch.sigmoid(i_r + h_r) * h_n)
    return n.lerp(h, torch.sigmoid(i_z + h_z))


def test_the_gru_step_is_pytorchs():
    cell = nn.GRUCell(3, 5)
    x, h = torch.randn(4, 3), torch.randn(4, 5)
    mine = EXERCISES["gru_step"].solution(x, h, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    torch.testing.assert_close(mine, cell(x, h))


wrong("shift", "Both are the same", lambda target: (target, target))
wrong("shift", "Both are the same", lambda target: (target[:, :-1], target[:, :-1]))
wrong("shift", "has to learn when to stop", lambda target: (target[:, :-1], target[:, 1:-1]))
wrong("shift", "has to learn when to stop", lambda target: (target[:, :-2], target[:, 1:-1]))
wrong("shift", "EOS is taken out of the inputs by its value",
      lambda target: (torch.where(target == 2, 0, target)[:, :-1], target[:, 1:]))


@wrong("shift", "decoder has to learn when to stop")
def sh_no_eos_label(target):
    labels = target[:, 1:].clone()
    labels[labels == 2] = 0
    return target[:, :-1], labels


@wrong("shift", "`target` was changed")
def sh_writes(target):
    inputs = target[:, :-1]
    inputs[inputs == 2] = 0
    return inputs, target[:, 1:]


wrong("shift", "the largest difference is", lambda target: (target[:, :-1], target[:, 1:].clamp(min=3)))
wrong("shift", "One of the two is not cut", lambda target: (target.clone(), target[:, 1:]))
wrong("shift", "One of the two is not cut", lambda target: (target[:, :-1], target.clone()))
wrong("shift", "One of the two is not cut",
      lambda target: (target, torch.cat([target[:, 1:], torch.zeros_like(target[:, :1])], dim=1)))
wrong("shift", "BOS or EOS is cut off", lambda target: (target[:, 1:-1], target[:, 2:]))


@right("shift")
def sh_narrow(target):
    T = target.size(1) - 1
    return target.narrow(1, 0, T), target.narrow(1, 1, T)


@right("shift")
def sh_lists(target):
    sentences = target.tolist()
    return torch.tensor([s[:-1] for s in sentences]), torch.tensor([s[1:] for s in sentences])


@wrong("beam_step", "chosen for each hypothesis apart")
def bs_greedy_each(log_probs, scores, beam):
    words = log_probs.argmax(1)
    return scores + log_probs.max(1).values, torch.arange(len(scores)), words


@wrong("beam_step", "words = index % V")
def bs_divided_by_beam(log_probs, scores, beam):
    best, flat = (log_probs + scores[:, None]).flatten().topk(beam)
    return best, flat // beam, flat % beam


@wrong("beam_step", "`log_probs` was changed")
def bs_in_place(log_probs, scores, beam):
    log_probs += scores[:, None]
    best, flat = log_probs.flatten().topk(beam)
    return best, flat // log_probs.shape[1], flat % log_probs.shape[1]


@wrong("beam_step", "at the first step (K = 1)")
def bs_k_places(log_probs, scores, beam):
    best, flat = (log_probs + scores[:, None]).flatten().topk(len(scores))
    return best, flat // log_probs.shape[1], flat % log_probs.shape[1]


@right("beam_step")
def bs_python(log_probs, scores, beam):
    found = [(scores[k].item() + log_probs[k, v].item(), k, v)
             for k in range(log_probs.shape[0]) for v in range(log_probs.shape[1])]
    best, parents, words = zip(*sorted(found, reverse=True)[:beam], strict=True)
    return torch.tensor(best), torch.tensor(parents), torch.tensor(words)


@right("beam_step")
def bs_unravel(log_probs, scores, beam):
    total = log_probs + scores[:, None]
    best, flat = total.flatten().sort(descending=True)
    parents, words = torch.unravel_index(flat[:beam], total.shape)
    return best[:beam], parents, words


@right("beam_step")
def bs_topk_twice(log_probs, scores, beam):
    """The best of each hypothesis first, then the best of those: the same, and less to sort."""
    best, words = (log_probs + scores.view(-1, 1)).topk(min(beam, log_probs.size(1)), dim=1)
    best, flat = best.flatten().topk(beam)
    return best, flat.div(words.size(1), rounding_mode="floor"), words.flatten()[flat]


# --- bleu_by_length ------------------------------------------------------------------------------------------

def by_length(sources, hypotheses, references, buckets, lengths, score=bleu):
    result = {}
    for low, high in buckets:
        inside = [i for i, words in enumerate(lengths) if low <= len(words) <= high]
        if inside:
            result[low, high] = score([hypotheses[i] for i in inside], [references[i] for i in inside])
    return result


wrong("bleu_by_length", "mean of the sentences' BLEU", lambda sources, hypotheses, references, buckets: (
    by_length(sources, hypotheses, references, buckets, sources,
              lambda hs, rs: float(np.mean([bleu([h], [r]) for h, r in zip(hs, rs, strict=True)])))))


@wrong("bleu_by_length", "Right on ordinary inputs, but wrong when a bucket is empty")
def bl_empty_nan(sources, hypotheses, references, buckets):
    found = by_length(sources, hypotheses, references, buckets, sources)
    return {bucket: found.get(bucket, math.nan) for bucket in buckets}


@wrong("bleu_by_length", "put into the last one")
def bl_too_long(sources, hypotheses, references, buckets):
    chosen = {}
    for source, hypothesis, reference in zip(sources, hypotheses, references, strict=True):
        for low, high in buckets:
            if low <= len(source) <= high or ((low, high) == buckets[-1] and len(source) > high):
                chosen.setdefault((low, high), []).append((hypothesis, reference))
    return {bucket: bleu(*zip(*pairs, strict=True)) for bucket, pairs in chosen.items()}


@wrong("bleu_by_length", "The words are changed")
def bl_lower_case(sources, hypotheses, references, buckets):
    hypotheses, references = ([" ".join(s).lower().split() for s in side] for side in (hypotheses, references))
    return by_length(sources, hypotheses, references, buckets, sources)


@wrong("bleu_by_length", "Wrong value: scores[(2, 4)] is")
def bl_own_tokeniser(sources, hypotheses, references, buckets):
    hypotheses, references = ([re.findall(r"\w+|[^\w\s]", " ".join(s)) for s in side]
                              for side in (hypotheses, references))
    return by_length(sources, hypotheses, references, buckets, sources)


@wrong("bleu_by_length", "`buckets` was changed")
def bl_removes(sources, hypotheses, references, buckets):
    for bucket in list(buckets):
        if not any(bucket[0] <= len(source) <= bucket[1] for source in sources):
            buckets.remove(bucket)
    return by_length(sources, hypotheses, references, buckets, sources)


@right("bleu_by_length")
def bl_pairs(sources, hypotheses, references, buckets):
    chosen = defaultdict(list)
    for source, *pair in zip(sources, hypotheses, references, strict=True):
        for low, high in buckets:
            if low <= len(source) < high + 1:
                chosen[low, high].append(pair)
    return {bucket: bleu(*zip(*pairs, strict=True)) for bucket, pairs in chosen.items()}


@right("bleu_by_length")
def bl_try(sources, hypotheses, references, buckets):
    result = {}
    for low, high in buckets:
        keep = [low <= len(source) <= high for source in sources]
        try:
            result[low, high] = bleu([h for h, k in zip(hypotheses, keep, strict=True) if k],
                                     [r for r, k in zip(references, keep, strict=True) if k])
        except ValueError:
            continue
    return result


# --- sampled_loss --------------------------------------------------------------------------------------------

def numbered(targets, candidates):
    return (candidates == targets[:, None]).int().argmax(dim=1)


wrong("sampled_loss", "All rows of weight are multiplied",
      lambda hidden, targets, weight, candidates: F.nll_loss((hidden @ weight.T).log_softmax(-1), targets))
wrong("sampled_loss", "loss is (4,); expected ()", lambda hidden, targets, weight, candidates: (
    F.cross_entropy(hidden @ weight[candidates].T, numbered(targets, candidates), reduction="none")))


@wrong("sampled_loss", "gradient is cut: no gradient reaches `weight`")
def sl_detached_weight(hidden, targets, weight, candidates):
    rows = weight.detach()[candidates]
    return F.cross_entropy(hidden @ rows.T, numbered(targets, candidates))


@wrong("sampled_loss", "as in negative sampling")
def sl_negative_sampling(hidden, targets, weight, candidates):
    scores = hidden @ weight[candidates].T
    sign = torch.where(candidates == targets[:, None], 1.0, -1.0)
    return -F.logsigmoid(sign * scores).sum(dim=1).mean()


@wrong("sampled_loss", "exp() overflows")
def sl_raw_exp(hidden, targets, weight, candidates):
    e = torch.exp(hidden @ weight[candidates].T)
    target = e[torch.arange(len(targets)), numbered(targets, candidates)]
    return -torch.log(target / e.sum(1)).mean()


@right("sampled_loss")
def sl_dictionary(hidden, targets, weight, candidates):
    column = {word: i for i, word in enumerate(candidates.tolist())}
    return F.cross_entropy(hidden @ weight[candidates].T, torch.tensor([column[t] for t in targets.tolist()]))


@wrong("sampled_loss", "All rows of weight are multiplied")
def sl_masked_full(hidden, targets, weight, candidates):
    """Only the candidates compete, but all scores are computed, so nothing is saved."""
    others = torch.ones(len(weight), dtype=torch.bool)
    others[candidates] = False
    return F.cross_entropy((hidden @ weight.T).masked_fill(others, -math.inf), targets)


@right("sampled_loss")
def sl_by_hand(hidden, targets, weight, candidates):
    target = (hidden * weight[targets]).sum(-1)
    return (torch.logsumexp(hidden @ weight[candidates].T, dim=-1) - target).mean()


# --- probe ---------------------------------------------------------------------------------------------------

def pinv_fit(X, Y):
    return torch.linalg.pinv(X) @ Y


@wrong("probe", "Go along each row: argmax(dim=1)")
def pr_argmax_of_columns(X, Y, X_test):
    return (X_test @ torch.linalg.lstsq(X, Y).solution).argmax(dim=0)


@wrong("probe", "The prediction is the column of the largest")
def pr_scores(X, Y, X_test):
    return X_test @ torch.linalg.lstsq(X, Y).solution


@wrong("probe", "A are the vectors, B the one-hot rows")
def pr_lstsq_of_words(X, Y, X_test):
    return (X_test @ torch.linalg.lstsq(Y, X).solution).argmax(dim=1)


@wrong("probe", "The column of ones is dropped")
def pr_no_bias_normal_equations(X, Y, X_test):
    A = X[:, :-1]
    return (X_test[:, :-1] @ torch.linalg.solve(A.T @ A, A.T @ Y)).argmax(dim=1)


@wrong("probe", "return only the columns")
def pr_max_pair(X, Y, X_test):
    scores = X_test @ pinv_fit(X, Y)
    return scores.max(dim=1).values, scores.argmax(dim=1)


wrong("probe", "The columns' numbers are fitted",
      lambda X, Y, X_test: (X_test @ pinv_fit(X, Y.argmax(dim=1).float())).round().long())
wrong("probe", "a large penalty on the weights",
      lambda X, Y, X_test: (X_test @ torch.linalg.inv(X.T @ X + 0.1 * torch.eye(X.shape[1])) @ X.T @ Y).argmax(dim=1))
wrong("probe", "The map is fitted the wrong way round", lambda X, Y, X_test: (X_test @ pinv_fit(Y, X).T).argmax(dim=1))


@wrong("probe", "not to be transposed")
def pr_transposed(X, Y, X_test):
    W = torch.linalg.lstsq(X, Y).solution
    return (X_test @ W.T).argmax(dim=-1)


@right("probe")
def pr_ridge(X, Y, X_test):
    W = torch.linalg.solve(X.T @ X + 0.01 * torch.eye(X.shape[1]), X.T @ Y)
    return (X_test @ W).argmax(dim=1)


right("probe",
      lambda X, Y, X_test: (X_test @ torch.linalg.lstsq(X, Y, driver="gelsd").solution).softmax(dim=1).argmax(dim=1))


@right("probe")
def pr_plus_minus_one(X, Y, X_test):
    there = Y.sum(dim=0) > 0
    scores = (X_test @ pinv_fit(X, 2 * Y - 1)).masked_fill(~there, -torch.inf)
    return scores.argmax(dim=1)


right("probe", lambda X, Y, X_test: (
    torch.from_numpy((X_test.numpy() @ np.linalg.lstsq(X.numpy(), Y.numpy(), rcond=None)[0]).argmax(axis=1))))


# --- the solutions -------------------------------------------------------------------------------------------

def test_solutions_keep_their_formulas():
    """The solutions themselves, on numbers that can be checked by hand."""
    solution = {exercise.name: exercise.solution for exercise in LESSON_01}
    ids, lengths = solution["pad_batch"]([[5, 6], [7], [8, 9, 4]])
    assert (ids.tolist(), lengths.tolist()) == ([[5, 6, 0], [7, 0, 0], [8, 9, 4]], [2, 1, 3])
    assert solution["most_frequent_pair"]({("l", "o", "w·"): 5, ("l", "o", "t·"): 2, ("n", "o", "w·"): 2}
                                           ) == ("l", "o")  # 7, as often as (o, w·)
    inputs, labels = solution["shift"](torch.tensor([[1, 5, 6, 2], [1, 7, 2, 0]]))
    assert (inputs.tolist(), labels.tolist()) == ([[1, 5, 6], [1, 7, 2]], [[5, 6, 2], [7, 2, 0]])
    probabilities = torch.tensor([[0.5, 0.3, 0.2], [0.9, 0.1, 0.0]])
    scores, parents, words = solution["beam_step"](probabilities.log(), torch.tensor([0.6, 0.4]).log(), 3)
    torch.testing.assert_close(scores.exp(), torch.tensor([0.36, 0.3, 0.18]))
    assert (parents.tolist(), words.tolist()) == ([1, 0, 0], [0, 0, 1])
    short, long = list("abcd"), list("abcdefgh")
    assert solution["bleu_by_length"]([short, long], [short, list("ijklmnop")], [short, long], [(1, 4), (5, 7), (8, 9)]
                                       ) == {(1, 4): pytest.approx(100), (8, 9): bleu([list("ijklmnop")], [long])}
    loss = solution["sampled_loss"](torch.ones(1, 1), torch.tensor([4]), torch.tensor([[9.0], [9], [0], [9], [1]]),
                                     torch.tensor([2, 4]))
    torch.testing.assert_close(loss, torch.tensor(math.log(1 + math.exp(-1))))
    X, Y = torch.tensor([[1.0, 1], [2, 1], [4, 1], [5, 1]]), torch.tensor([[0.0, 1], [0, 1], [1, 0], [1, 0]])
    assert solution["probe"](X, Y, torch.tensor([[2.9, 1], [3.1, 1]])).tolist() == [1, 0]


def test_the_sampled_loss_costs_the_candidates_only():
    """Rows of the weight that are no candidates get no gradient."""
    for seed in range(3):
        make = EXERCISES["sampled_loss"].cases["on ordinary inputs"]
        hidden, targets, weight, candidates = make(torch.Generator().manual_seed(seed))
        weight.requires_grad_()
        EXERCISES["sampled_loss"].solution(hidden, targets, weight, candidates).backward()
        assert weight.grad.abs().sum(1).nonzero().squeeze(1).tolist() == candidates.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_the_probes_tests_are_decided_clearly(seed):
    """Another way to fit must not be refused for a row on the border: a small penalty changes nothing."""
    for condition, make in EXERCISES["probe"].cases.items():
        X, Y, X_test = make(torch.Generator().manual_seed(seed))
        assert torch.equal(pr_ridge(X, Y, X_test), EXERCISES["probe"].solution(X, Y, X_test))
        assert len(X_test) >= (1 if "M = 1" in condition else 30)


@pytest.mark.parametrize(("name", "function"), [("pad_batch", pb_library), ("most_frequent_pair", mf_dict),
                                                ("bleu_by_length", bl_pairs)])
def test_results_of_whole_numbers_and_texts_have_no_largest_difference(name, function):
    assert "difference" not in EXERCISES[name].judge(function).text


def test_an_answer_too_slow_for_the_lesson_is_right_and_slow():
    def pad_batch(sentences):
        lengths = torch.tensor([len(sentence) for sentence in sentences])
        ids = torch.zeros(len(sentences), int(lengths.max()), dtype=torch.long)
        for row, sentence in enumerate(sentences):
            for column, word in enumerate(sentence):
                ids[row, column] = word
        return ids, lengths

    assert EXERCISES["most_frequent_pair"].judge(mf_repeated).kind == "slow"
    assert "times as slow" in EXERCISES["pad_batch"].judge(pad_batch).text


@pytest.mark.parametrize(("name", "function", "message"), [
    ("pad_batch", pb_front, r"Inputs: sentences = \[\[\d+(, \d+)*\](, \[\d+(, \d+)*\])+\]\."),
    ("most_frequent_pair", mf_rarest,
     r"pair is \('.', '.·?'\); expected \('.', '.·?'\)\.\nInputs: words = \{\('"),
    ("bleu_by_length", lambda s, h, r, b: dict.fromkeys(b, 50.0),
     r"scores\[\(2, 4\)\] is 50; expected [\d.]+\.\nInputs: sources: 19 lists of length \d+(, \d+){18}, hyp.*, "
     r"buckets = \[\(2, 4\), \(5, 7\), \(8, 10\)\]"),
    ("bleu_by_length", lambda s, h, r, b: dict.fromkeys(b, "50"),
     r"Wrong type: scores\[\(2, 4\)\] is a str; expected a float")])
def test_the_verdict_shows_inputs_as_they_are_or_by_their_lengths(name, function, message):
    assert re.search(message, EXERCISES[name].judge(function).text)


def test_dicts_are_close_if_their_values_are():
    assert close({"a": 1.0, "b": 2.0}, {"b": 2.0 + 1e-7, "a": 1.0})
    assert not close({"a": 1.0}, {"a": 1.1})
    assert not close({"a": 1.0, "b": 2.0}, {"a": 1.0})
    assert not close([1.0], {"a": 1.0})
