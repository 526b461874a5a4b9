"""Lesson 03's checks, checked: wrong answers as tired students give them, right ones in other styles than ours."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from seeded_answers import Answers, right, wrong
from torch import nn

from course_utils.exercises import EXERCISES
from course_utils.exercises.lesson_03 import LESSON_03


class TestAnswers(Answers):
    lesson = LESSON_03


def attend(x, W_q, W_k, W_v, scale, dim):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    weights = (q @ k.T / scale).softmax(dim)
    return weights @ v, weights


wrong("self_attention", "The softmax runs over the wrong axis",
      lambda x, W_q, W_k, W_v: attend(x, W_q, W_k, W_v, math.sqrt(W_q.shape[1]), 0))
wrong("self_attention", "nor by a root of the width of x",
      lambda x, W_q, W_k, W_v: attend(x, W_q, W_k, W_v, math.sqrt(x.shape[1]), 1))
wrong("self_attention", "The scale is missing", lambda x, W_q, W_k, W_v: attend(x, W_q, W_k, W_v, 1, 1))


@wrong("self_attention", "expected (T, d_v) = (4, ")
def sa_values_not_projected(x, W_q, W_k, W_v):
    weights = F.softmax((x @ W_q) @ (x @ W_k).T / math.sqrt(W_k.shape[1]), dim=1)
    return weights @ x, weights


wrong("self_attention", "it returns one Tensor; expected 2: return output, weights",
      lambda x, W_q, W_k, W_v: F.scaled_dot_product_attention(x @ W_q, x @ W_k, x @ W_v))


@wrong("self_attention", "Wrong order: return output, weights")
def sa_order(x, W_q, W_k, W_v):
    weights = F.softmax((x @ W_q) @ (x @ W_k).T / math.sqrt(W_k.shape[1]), dim=1)
    return weights, weights @ (x @ W_v)


@wrong("self_attention", "gradient is cut: no gradient reaches `x`")
@torch.no_grad()
def sa_no_grad(x, W_q, W_k, W_v):
    weights = F.softmax((x @ W_q) @ (x @ W_k).T / math.sqrt(W_k.shape[1]), dim=1)
    return weights @ (x @ W_v), weights


@wrong("self_attention", "what flows back to `x` is not the function's gradient")
def sa_detached_weights(x, W_q, W_k, W_v):
    weights = F.softmax((x @ W_q) @ (x @ W_k).T / math.sqrt(W_k.shape[1]), dim=1).detach()
    return weights @ (x @ W_v), weights


@wrong("self_attention", "`W_q` was changed")
def sa_scales_in_place(x, W_q, W_k, W_v):
    W_q /= math.sqrt(W_q.shape[1])
    weights = F.softmax((x @ W_q) @ (x @ W_k).T, dim=1)
    return weights @ (x @ W_v), weights


@wrong("self_attention", "wrong where scores are large")
def sa_raw_exp(x, W_q, W_k, W_v):
    e = torch.exp((x @ W_q) @ (x @ W_k).T / math.sqrt(W_k.shape[1]))
    weights = e / e.sum(dim=1, keepdim=True)
    return weights @ (x @ W_v), weights


@right("self_attention")
def sa_loops(x, W_q, W_k, W_v):
    outputs, rows = [], []
    for i in range(len(x)):
        scores = torch.stack([(x[i] @ W_q).dot(x[j] @ W_k) for j in range(len(x))])
        rows.append(torch.softmax(scores / W_q.shape[1] ** 0.5, 0))
        outputs.append(sum(rows[-1][j] * (x[j] @ W_v) for j in range(len(x))))
    return torch.stack(outputs), torch.stack(rows)


@right("self_attention")
def sa_library(x, W_q, W_k, W_v):
    q, k = F.linear(x, W_q.T), F.linear(x, W_k.T)
    weights = F.scaled_dot_product_attention(q, k, torch.eye(len(x)))
    return torch.einsum("ij,jd,de->ie", weights, x, W_v), weights


@wrong("causal_mask", "wrong with 130 positions")
def cm_small_integers(n):
    positions = torch.arange(n).to(torch.int8)
    return positions <= positions.unsqueeze(1)


wrong("causal_mask", "mask is inverted", lambda n: torch.triu(torch.ones(n, n), diagonal=1).bool())
wrong("causal_mask", "mask is torch.int64; expected torch.bool",
      lambda n: torch.tensor([[int(j <= i) for j in range(n)] for i in range(n)]))
wrong("causal_mask", "a mask to be added to the scores", lambda n: nn.Transformer.generate_square_subsequent_mask(n))
wrong("causal_mask", "mask is (1, 5, 5); expected (n, n) = (5, 5). It has 3 axes instead of 2.",
      lambda n: torch.tril(torch.ones(1, n, n)) == 1)
wrong("causal_mask", "a list; expected a Tensor", lambda n: [[j <= i for j in range(n)] for i in range(n)])
wrong("causal_mask", "wrong with a single position (n = 1)", lambda n: torch.tril(torch.ones(1, n, n)).bool().squeeze())


@right("causal_mask")
def cm_compares(n):
    i, j = torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")
    return j <= i


right("causal_mask", lambda n: nn.Transformer.generate_square_subsequent_mask(n) == 0)
right("causal_mask", lambda n: torch.eye(n).cumsum(0).T.flip(0, 1).bool().T.flip(0, 1))


def changes_nothing_before(layer, x, places, to=torch.randn_like, own=0):
    before = layer(x)
    for t in places:
        changed = x.clone()
        changed[t] = to(x[t])
        if not torch.allclose(layer(changed)[:t + own], before[:t + own], atol=1e-5):
            return False
    return True


wrong("is_causal", "only some positions are changed", lambda layer, x: changes_nothing_before(layer, x, [len(x) - 1]))
wrong("is_causal", "output t may change", lambda layer, x: changes_nothing_before(layer, x, range(len(x)), own=1))
wrong("is_causal", "is undone by a layer norm",
      lambda layer, x: changes_nothing_before(layer, x, range(len(x)), to=lambda word: word + 1))


wrong("is_causal", "wrong when the attention has no mask", lambda attention, x: attention(x).shape == x.shape)


@wrong("is_causal", "times a weight of 0 it is NaN")
def ic_nan(attention, x):
    for t in range(1, len(x)):
        changed = x.clone()
        changed[t] = math.nan
        if attention(changed)[:t].isnan().any():
            return False
    return True


@wrong("is_causal", "lets no query see its own position")
def ic_wants_the_diagonal(attention, x):
    out = attention(x)
    for t in range(len(x)):
        changed = x.clone()
        changed[t] += 1
        moved = (attention(changed) - out).abs().amax(1) > 1e-5
        if moved[:t].any() or not moved[t]:
            return False
    return True


@wrong("is_causal", "Words that only change places leave a sum as it is")
def ic_swapped_words(layer, x):
    before = layer(x)
    for t in range(1, len(x) - 1):
        changed = x.clone()
        changed[[t, t + 1]] = x[[t + 1, t]]
        if not torch.allclose(layer(changed)[:t], before[:t], atol=1e-5):
            return False
    return True


@wrong("is_causal", "`x` was changed")
def ic_writes_into_x(attention, x):
    out = attention(x)
    for t in range(len(x)):
        changed = x
        changed[t] += 1
        if not torch.allclose(attention(changed)[:t], out[:t], atol=1e-6):
            return False
    return True


@wrong("is_causal", "only some positions are changed")
def ic_tensor(attention, x):
    changed = torch.cat([x[:-1], x[-1:] + 1])
    return (attention(changed)[:-1] == attention(x)[:-1]).all()


@wrong("is_causal", "Return True only after the loop")
def ic_returns_in_the_loop(layer, x):
    """No further than t = 0, before which there is no output."""
    return torch.allclose(layer(torch.cat([torch.randn_like(x[:1]), x[1:]]))[:0], layer(x)[:0], atol=1e-5)


@right("is_causal")
def ic_all_later_at_once(attention, x):
    for t in range(1, len(x)):
        changed = torch.cat([x[:t], torch.randn(len(x) - t, x.shape[1])])
        if not torch.allclose(attention(changed)[:t], attention(x)[:t], rtol=1e-4, atol=1e-5):
            return False
    return True


@right("is_causal")
def ic_prefixes(attention, x):
    whole = attention(x)
    return all(torch.allclose(attention(x[:t]), whole[:t], atol=1e-5) for t in range(len(x)))


@right("is_causal")
def ic_prefixes_from_the_longest(attention, x):
    part = attention(x)
    while len(part) > 1:
        part, before = attention(x[:len(part) - 1]), part[:-1]
        if (part - before).abs().max() > 1e-5:
            return False
    return True


@right("is_causal")
def ic_jacobian(attention, x):
    jacobian = torch.autograd.functional.jacobian(attention, x)              # (T, d, T, d)
    moved = jacobian.abs().amax(dim=(1, 3))
    return bool((moved.triu(1) < 1e-5).all())


@right("is_causal")
def ic_far_away(attention, x):
    before, leaks = attention(x), 0
    for t in range(len(x)):
        changed = x.clone()
        changed[t] = 1000.0
        leaks += ((attention(changed)[:t] - before[:t]).abs() > 1e-4).sum().item()
    return leaks == 0


@wrong("is_causal", "Adding the same to all numbers of x[t] is undone by a layer norm")
def ic_small_steps(attention, x):
    before = attention(x)
    moved = torch.stack([(attention(x + 0.1 * F.one_hot(torch.tensor(t), len(x))[:, None]) - before).abs().amax(1)
                         for t in range(len(x))])
    return not (moved.tril(-1) > 1e-5).any().item()


@wrong("is_causal", "wrong when the attention layer-norms its output, and has no mask")
def ic_means(attention, x):
    for t in range(1, len(x)):
        changed = x.clone()
        changed[t] = torch.randn(x.shape[1], generator=torch.Generator().manual_seed(t))
        if not torch.isclose(attention(changed)[:t].mean(), attention(x)[:t].mean(), atol=1e-5):
            return False
    return True


@wrong("is_causal", "Copy x anew for every t")
def ic_copies_once(attention, x):
    out, changed = attention(x), x.clone()
    for t in range(len(x)):
        changed[t] = torch.randn(x.shape[1])
        if not torch.allclose(attention(changed)[:t], out[:t], atol=1e-5):
            return False
    return True


def test_planted_attentions_are_what_they_are_called():
    """Those of the table that are causal, and those that are not, told by their gradients."""
    exercise = EXERCISES["is_causal"]
    for make in exercise.cases.values():
        for seed in range(5):
            attention, x = make(torch.Generator().manual_seed(seed))
            assert ic_jacobian(attention, x) == exercise.solution(attention, x) == ("is causal" in repr(attention))


def test_planted_attentions_take_any_number_of_positions():
    for make in EXERCISES["is_causal"].cases.values():
        attention, x = make(torch.Generator().manual_seed(0))
        for T in range(len(x)):
            assert attention(x[:T]).shape == x[:T].shape


def test_the_message_says_which_attention_was_judged_wrongly():
    verdict = EXERCISES["is_causal"].judge(lambda attention, x: True)
    assert "Inputs: layer = an attention that has no mask, x (" in verdict.text
    assert "0x" not in verdict.text


wrong("split_heads", "cuts the numbers in the order in which they lie",
      lambda x, n_heads: x.view(len(x), n_heads, x.size(1), -1))
wrong("split_heads", "every n_heads-th number",
      lambda x, n_heads: torch.stack([x[..., h::n_heads] for h in range(n_heads)], dim=1))


@wrong("split_heads", "Head h gets part h")
def sh_loop_forgets_h(x, n_heads):
    d_k = x.shape[-1] // n_heads
    return torch.stack([x[:, :, :d_k] for h in range(n_heads)], dim=1)


@wrong("split_heads", "It raised TypeError")
def sh_true_division(x, n_heads):
    B, T, d_model = x.shape
    return x.view(B, T, n_heads, d_model / n_heads).transpose(1, 2)


wrong("split_heads", "wrong with one head", lambda x, n_heads: x.unflatten(-1, (n_heads, -1)).transpose(1, 2).squeeze())
wrong("split_heads", "wrong with one sentence of one word",
      lambda x, n_heads: x.unflatten(-1, (n_heads, -1)).transpose(1, 2).squeeze(0))
wrong("split_heads", "gradient is cut",
      lambda x, n_heads: torch.tensor(np.stack(np.split(x.detach().numpy(), n_heads, axis=-1), axis=1)))
right("split_heads", lambda x, n_heads: torch.stack(x.chunk(n_heads, dim=-1), dim=1))
right("split_heads", lambda x, n_heads: x.view(*x.shape[:2], n_heads, -1).permute(0, 2, 1, 3).contiguous())


@right("split_heads")
def sh_other_way_round(x, n_heads):
    B, T, d_model = x.shape
    return x.transpose(1, 2).reshape(B, n_heads, d_model // n_heads, T).transpose(2, 3)


def sh_word_by_word(x, n_heads):
    return torch.stack([torch.stack([word.view(n_heads, -1) for word in sentence], dim=1) for sentence in x])


def test_a_loop_over_words_is_right_but_slow():
    verdict = EXERCISES["split_heads"].judge(sh_word_by_word)
    assert verdict.kind == "slow"
    assert "times as slow as it can be" in verdict.text


# --- multi_head ----------------------------------------------------------------------------------------------

def heads_of(x, W, n_heads):
    return (x @ W).view(x.shape[0], x.shape[1], n_heads, -1).transpose(1, 2)


def side_by_side(z):
    B, n_heads, T, d_k = z.shape
    return z.transpose(1, 2).reshape(B, T, n_heads * d_k)


@wrong("multi_head", "weights is (4, 7, 7); expected (B, n_heads, T, T)")
def mh_averaged(x, W_q, W_k, W_v, W_o, n_heads, mask):
    return nn.functional.multi_head_attention_forward(
        *[x.transpose(0, 1)] * 3, x.shape[-1], n_heads, torch.cat([W_q.T, W_k.T, W_v.T]), None, None, None, False, 0.0,
        W_o.T, None, attn_mask=~mask.expand(len(x), n_heads, x.shape[1], x.shape[1]).flatten(0, 1),
    )[0].transpose(0, 1), mh_library(x, W_q, W_k, W_v, W_o, n_heads, mask)[1].mean(dim=1)


@wrong("multi_head", "it returns one Tensor; expected 2: return output, weights")
def mh_output_only(x, W_q, W_k, W_v, W_o, n_heads, mask):
    q, k, v = (heads_of(x, W, n_heads) for W in (W_q, W_k, W_v))
    return side_by_side(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)) @ W_o


@wrong("multi_head", "and with a huge score all of it")
def mh_divided_again(x, W_q, W_k, W_v, W_o, n_heads, mask):
    q, k, v = ((x @ W).unflatten(-1, (n_heads, -1)).transpose(1, 2) for W in (W_q, W_k, W_v))
    weights = (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1) * mask
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-9)
    return (weights @ v).transpose(1, 2).flatten(-2) @ W_o, weights


@wrong("multi_head", "`mask` was changed")
def mh_turns_the_mask(x, W_q, W_k, W_v, W_o, n_heads, mask):
    q, k, v = (heads_of(x, W, n_heads) for W in (W_q, W_k, W_v))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(mask.logical_not_(), -math.inf).softmax(-1)
    return side_by_side(weights @ v) @ W_o, weights


@wrong("multi_head", "wrong when each head has its own mask")
def mh_one_mask_for_all(x, W_q, W_k, W_v, W_o, n_heads, mask):
    while mask.dim() < 4:
        mask = mask.unsqueeze(0)
    return mh_library(x, W_q, W_k, W_v, W_o, n_heads, mask[:, :1])


@wrong("multi_head", "what flows back to `x` is not the function's gradient")
def mh_weights_without_gradient(x, W_q, W_k, W_v, W_o, n_heads, mask):
    with torch.no_grad():
        _, weights = mh_library(x, W_q, W_k, W_v, W_o, n_heads, mask)
    return side_by_side(weights @ heads_of(x, W_v, n_heads)) @ W_o, weights


@wrong("multi_head", "masked_softmax gives it zeros")
def mh_where(x, W_q, W_k, W_v, W_o, n_heads, mask, fill=-torch.inf):
    q, k, v = (heads_of(x, W, n_heads) for W in (W_q, W_k, W_v))
    weights = torch.where(mask, q @ k.mT / math.sqrt(q.shape[-1]), fill).softmax(-1)
    return side_by_side(weights @ v) @ W_o, weights


wrong("multi_head", "masked_softmax gives it zeros", lambda *arguments: mh_where(*arguments, fill=-20.0))


@wrong("multi_head", "wrong when a query may attend to nothing")
def mh_adds_minus_100(x, W_q, W_k, W_v, W_o, n_heads, mask):
    q, k, v = (heads_of(x, W, n_heads) for W in (W_q, W_k, W_v))
    weights = (q @ k.mT / math.sqrt(q.shape[-1]) - 100.0 * ~mask).softmax(-1)
    return side_by_side(weights @ v) @ W_o, weights


@right("multi_head")
def mh_library(x, W_q, W_k, W_v, W_o, n_heads, mask):
    q, k, v = (heads_of(x, W, n_heads) for W in (W_q, W_k, W_v))
    places = torch.eye(x.shape[1]).expand(len(x), n_heads, -1, -1)
    weights = F.scaled_dot_product_attention(q, k, places, attn_mask=mask)
    return side_by_side(weights @ v) @ W_o, weights


@right("multi_head")
def mh_head_by_head(x, W_q, W_k, W_v, W_o, n_heads, mask):
    B, T, d_model = x.shape
    d_k, output, heads = d_model // n_heads, 0, []
    mask = mask.expand(B, n_heads, T, T)
    for h in range(n_heads):
        part = slice(h * d_k, (h + 1) * d_k)
        scores = (x @ W_q[:, part]) @ (x @ W_k[:, part]).transpose(1, 2) / d_k ** 0.5
        heads.append(torch.where(mask[:, h], scores, -torch.inf).softmax(-1).nan_to_num())
        output = output + heads[-1] @ (x @ W_v[:, part]) @ W_o[part]
    return output, torch.stack(heads, dim=1)


@right("multi_head")
def mh_einsum(x, W_q, W_k, W_v, W_o, n_heads, mask):
    q, k, v = ((x @ W).unflatten(2, (n_heads, -1)) for W in (W_q, W_k, W_v))
    scores = torch.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5
    weights = (scores + torch.zeros(mask.shape).masked_fill(~mask, -1e9)).softmax(-1) * mask
    return torch.einsum("bhij,bjhd->bihd", weights, v).flatten(2) @ W_o, weights


# --- sinusoidal ----------------------------------------------------------------------------------------------

def filled_in(n, d_model, angle, even=math.sin, odd=math.cos):
    """The table cell by cell, from a function of position and column."""
    return torch.tensor([[(odd if j % 2 else even)(angle(t, j)) for j in range(d_model)] for t in range(n)])


@wrong("sinusoidal", "One half of the columns is sin and the other cos")
def si_halves(n, d_model):
    speeds = torch.exp(-math.log(10000) * torch.arange(d_model // 2) / (d_model // 2))
    angles = torch.outer(torch.arange(n), speeds)
    return torch.cat([torch.sin(angles), torch.cos(angles)], dim=1)


@wrong("sinusoidal", "do not multiply by 2 again")
def si_double_rate(n, d_model):
    table, i = torch.zeros(n, d_model), torch.arange(0, d_model, 2)
    angles = torch.arange(n)[:, None] / 10000 ** (2 * i / d_model)
    table[:, 0::2], table[:, 1::2] = torch.sin(angles), torch.cos(angles)
    return table


wrong("sinusoidal", "// would round that exponent down to 0",
      lambda n, d_model: filled_in(n, d_model, lambda t, j: t / 10000 ** (j // 2 * 2 // d_model)))


@wrong("sinusoidal", "table is torch.float64; expected torch.float32")
def si_numpy(n, d_model):
    angles = np.arange(n)[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
    return torch.from_numpy(np.stack([np.sin(angles), np.cos(angles)], -1).reshape(n, d_model))


wrong("sinusoidal", "two axes are swapped",
      lambda n, d_model: filled_in(n, d_model, lambda t, j: t / 10000 ** (j // 2 * 2 / d_model)).T)


@wrong("sinusoidal", "They hold cos of the same angles")
def si_no_cos(n, d_model):
    table = torch.zeros(n, d_model)
    table[:, ::2] = torch.sin(torch.arange(n)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model))
    return table


@right("sinusoidal")
def si_cells(n, d_model):
    return filled_in(n, d_model, lambda t, j: t / 10000 ** (j // 2 * 2 / d_model))


@right("sinusoidal")
def si_exp(n, d_model):
    table = torch.empty(n, d_model)
    speeds = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    angles = torch.arange(n).unsqueeze(1) * speeds
    table[:, 0::2], table[:, 1::2] = torch.sin(angles), torch.cos(angles)
    return table


# --- rotary --------------------------------------------------------------------------------------------------

def cos_and_sin(x, first=0, base=10000.0):
    T, d = x.shape
    angles = torch.outer(torch.arange(first, T + first).float(), base ** (-torch.arange(0, d, 2) / d))
    return angles.cos(), angles.sin()


@wrong("rotary", "paired with number i of the right half")
def ro_rotate_half(x):
    cos, sin = (part.repeat(1, 2) for part in cos_and_sin(x))
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-b, a], dim=-1) * sin


@wrong("rotary", "the other way round")
def ro_clockwise(x):
    cos, sin = cos_and_sin(x)
    pairs = torch.view_as_complex(x.reshape(len(x), -1, 2)) * torch.complex(cos, -sin)
    return torch.view_as_real(pairs).flatten(1)


@wrong("rotary", "Keep the old one until both are done")
def ro_overwritten(x):
    cos, sin = cos_and_sin(x)
    out = x.clone()
    out[:, 0::2] = out[:, 0::2] * cos - out[:, 1::2] * sin
    out[:, 1::2] = out[:, 0::2] * sin + out[:, 1::2] * cos
    return out


@wrong("rotary", "`x` was changed")
def ro_in_place(x):
    cos, sin = cos_and_sin(x)
    a, b = x[:, 0::2].clone(), x[:, 1::2].clone()
    x[:, 0::2] = a * cos - b * sin
    x[:, 1::2] = a * sin + b * cos
    return x


wrong("rotary", "The sinusoidal table is added", lambda x: x + si_cells(*x.shape))
wrong("rotary", "gradient is cut: no gradient reaches `x`", lambda x: ro_loop(x.detach()))


@wrong("rotary", "Wrong shape")
def ro_pairs_left_open(x):
    cos, sin = cos_and_sin(x)
    a, b = x[:, 0::2], x[:, 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=2)


@right("rotary")
def ro_loop(x):
    rows = []
    for t in range(len(x)):
        row = []
        for i in range(x.shape[1] // 2):
            angle = t / 10000 ** (2 * i / x.shape[1])
            rotation = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
            row.append(rotation @ x[t, 2 * i:2 * i + 2])
        rows.append(torch.cat(row))
    return torch.stack(rows)


@right("rotary")
def ro_complex(x):
    cos, sin = cos_and_sin(x)
    pairs = torch.view_as_complex(x.reshape(len(x), -1, 2)) * torch.complex(cos, sin)
    return torch.view_as_real(pairs).flatten(1)


@right("rotary")
def ro_repeated(x):
    cos, sin = (part.repeat_interleave(2, dim=1) for part in cos_and_sin(x))
    partner = torch.stack([-x[:, 1::2], x[:, 0::2]], dim=-1).reshape(x.shape)
    return x * cos + partner * sin
