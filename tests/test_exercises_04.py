"""Lesson 04's checks, checked: wrong answers as tired students give them, right ones in other styles than ours."""

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
from torch import nn

from course_utils import attention
from course_utils.data.text import BOS, EOS, PAD
from course_utils.exercises import EXERCISES, WrongAnswer, check
from course_utils.exercises.lesson_04 import LESSON_04
from course_utils.transformer import Config, EncoderLayer

LESSON = LESSON_04


# --- layer_norm ----------------------------------------------------------------------------------------------

@wrong("layer_norm", "statistics run over the batch")
def ln_batch(x, gain, bias, eps):
    mean, var = x.mean(0), x.var(0, unbiased=False)
    return (x - mean) / torch.sqrt(var + eps) * gain + bias


@wrong("layer_norm", "statistics run over time")
def ln_time(x, gain, bias, eps):
    mean, std = x.mean(dim=1, keepdim=True), x.std(dim=1, keepdim=True)
    return gain * (x - mean) / (std + eps) + bias


@wrong("layer_norm", "over all words of a sentence at once")
def ln_sentence(x, gain, bias, eps):
    flat = x.flatten(1)
    z = (flat - flat.mean(1, keepdim=True)) / (flat.var(1, keepdim=True, correction=0) + eps) ** 0.5
    return z.view_as(x) * gain + bias


@wrong("layer_norm", "That is BatchNorm")
def ln_batch_norm(x, gain, bias, eps):
    return F.batch_norm(x.mT, None, None, gain, bias, training=True, eps=eps).mT


@wrong("layer_norm", "one mean and one variance for all numbers")
def ln_everything(x, gain, bias, eps):
    return gain * (x - x.mean()) / torch.sqrt(x.var() + eps) + bias


@wrong("layer_norm", "LayerNorm divides by d")
def ln_unbiased(x, gain, bias, eps):
    return gain * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps) + bias


@wrong("layer_norm", "outside the root")
def ln_eps_outside(x, gain, bias, eps):
    return gain * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True, correction=0) + eps) + bias


@wrong("layer_norm", "eps is forgotten")
def ln_no_eps(x, gain, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    return gain * centred / centred.pow(2).mean(-1, keepdim=True).sqrt() + bias


@wrong("layer_norm", "Use the one that is given")
def ln_default_eps(x, gain, bias, eps):
    return F.layer_norm(x, (x.shape[-1],), gain, bias)


@wrong("layer_norm", "Divide by its root")
def ln_variance(x, gain, bias, eps):
    mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
    return (x - mean) / (var + eps) * gain + bias


@wrong("layer_norm", "gain and bias are forgotten")
def ln_plain(x, gain, bias, eps):
    return F.layer_norm(x, x.shape[2:], eps=eps)


@wrong("layer_norm", "gain and bias are swapped")
def ln_swapped(x, gain, bias, eps):
    return F.layer_norm(x, x.shape[2:], bias, gain, eps)


@wrong("layer_norm", "This is RMSNorm")
def ln_rms(x, gain, bias, eps):
    return F.rms_norm(x, x.shape[-1:], gain, eps) + bias


@wrong("layer_norm", "Keep it: keepdim=True")
def ln_lost_axis(x, gain, bias, eps):
    mean, var = x.mean(-1), x.var(-1, correction=0)
    return gain * (x - mean) / torch.sqrt(var + eps) + bias


@wrong("layer_norm", "`x` was changed")
def ln_in_place(x, gain, bias, eps):
    x -= x.mean(-1, keepdim=True)
    return gain * x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() + bias


@wrong("layer_norm", "what flows back to `x` is not the function's gradient")
def ln_statistics_detached(x, gain, bias, eps):
    with torch.no_grad():
        mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
    return gain * (x - mean) / (var + eps).sqrt() + bias


@wrong("layer_norm", "normed is a ndarray; expected a Tensor")
def ln_numpy(x, gain, bias, eps):
    x = x.numpy()
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gain.numpy() + bias.numpy()


@right("layer_norm")
def ln_loops(x, gain, bias, eps):
    rows = []
    for word in x.flatten(0, 1):
        mean = sum(word) / len(word)
        var = sum((number - mean) ** 2 for number in word) / len(word)
        rows.append((word - mean) / (var + eps) ** 0.5 * gain + bias)
    return torch.stack(rows).view(x.shape)


@right("layer_norm")
def ln_module(x, gain, bias, eps):
    return torch.func.functional_call(nn.LayerNorm(x.shape[-1], eps), {"weight": gain, "bias": bias}, x)


@right("layer_norm")
def ln_var_mean(x, gain, bias, eps):
    var, mean = torch.var_mean(x, dim=2, correction=0, keepdim=True)
    return torch.addcmul(bias, gain, (x - mean) * torch.rsqrt(var + eps))


# --- smoothed_targets ----------------------------------------------------------------------------------------

@wrong("smoothed_targets", "goes to the wrong words only")
def st_szegedy_without_the_right_one(ids, vocab_size, smoothing):
    targets = torch.full((*ids.shape, vocab_size), smoothing / (vocab_size - 1))
    return targets.scatter(-1, ids.unsqueeze(-1), 1 - smoothing)


@wrong("smoothed_targets", "got no share of it back")
def st_scatter(ids, vocab_size, smoothing):
    targets = torch.full((*ids.shape, vocab_size), smoothing / vocab_size)
    return targets.scatter_(2, ids[:, :, None], 1 - smoothing)


@wrong("smoothed_targets", "The smoothing is added to a full one")
def st_above_one(ids, vocab_size, smoothing):
    return F.one_hot(ids, vocab_size) + smoothing / vocab_size


@wrong("smoothed_targets", "Every word gets the whole smoothing")
def st_not_shared(ids, vocab_size, smoothing):
    return torch.eye(vocab_size)[ids] * (1 - smoothing) + smoothing


@wrong("smoothed_targets", "given to nobody")
def st_only_lowered(ids, vocab_size, smoothing):
    return F.one_hot(ids, vocab_size) * (1 - smoothing)


@wrong("smoothed_targets", "the smoothing is not used")
def st_one_hot(ids, vocab_size, smoothing):
    return F.one_hot(ids, vocab_size).to(torch.float32)


@wrong("smoothed_targets", "are swapped")
def st_swapped(ids, vocab_size, smoothing):
    return torch.lerp(torch.full((vocab_size,), 1 / vocab_size), torch.eye(vocab_size)[ids], smoothing)


@wrong("smoothed_targets", "The vocabulary is the last axis")
def st_transposed(ids, vocab_size, smoothing):
    hot = F.one_hot(ids, vocab_size).permute(0, 2, 1)
    return hot * (1 - smoothing) + smoothing / vocab_size


@wrong("smoothed_targets", "Batch and time have become one axis")
def st_flat(ids, vocab_size, smoothing):
    return torch.eye(vocab_size)[ids.reshape(-1)] * (1 - smoothing) + smoothing / vocab_size


@wrong("smoothed_targets", "torch.float64; expected torch.float32")
def st_double(ids, vocab_size, smoothing):
    return torch.from_numpy(np.eye(vocab_size)[ids.numpy()] * (1 - smoothing) + smoothing / vocab_size)


@wrong("smoothed_targets", "was not told the size of the vocabulary")
def st_largest_id(ids, vocab_size, smoothing):
    hot = F.one_hot(ids).float()
    return (1 - smoothing) * hot + smoothing / vocab_size


@wrong("smoothed_targets", "which cannot hold a share")
def st_long(ids, vocab_size, smoothing):
    targets = F.one_hot(ids, vocab_size)
    targets[targets == 1] = 1 - smoothing + smoothing / vocab_size
    targets[targets == 0] = smoothing / vocab_size
    return targets


@wrong("smoothed_targets", "The smoothing is shared by the T words")
def st_shared_by_time(ids, vocab_size, smoothing):
    hot = F.one_hot(ids, vocab_size)
    return (1 - smoothing) * hot + smoothing / hot.shape[1]


@right("smoothed_targets")
def st_two_numbers(ids, vocab_size, smoothing):
    rest = smoothing / vocab_size
    right_one = torch.arange(vocab_size) == ids[..., None]
    return torch.where(right_one, 1 - smoothing + rest, rest)


@right("smoothed_targets")
def st_loops(ids, vocab_size, smoothing):
    targets = torch.zeros(*ids.shape, vocab_size) + smoothing / vocab_size
    for b in range(len(ids)):
        for t, word in enumerate(ids[b]):
            targets[b, t, word] += 1 - smoothing
    return targets


@right("smoothed_targets")
def st_lerp(ids, vocab_size, smoothing):
    return torch.lerp(torch.eye(vocab_size), torch.full((vocab_size, vocab_size), 1 / vocab_size), smoothing)[ids]


# --- encoder_layer -------------------------------------------------------------------------------------------

@wrong("encoder_layer", "The norms come first, but pre_norm is False here")
def el_turned_round(x, attention, feed_forward, norm_1, norm_2, pre_norm):
    if pre_norm:
        x = norm_1(x + attention(x))
        return norm_2(x + feed_forward(x))
    x = x + attention(norm_1(x))
    return x + feed_forward(norm_2(x))


@wrong("encoder_layer", "attention has no residual")
def el_attention_without_residual(x, attention, feed_forward, norm_1, norm_2, pre_norm):
    x = attention(norm_1(x)) if pre_norm else norm_1(attention(x))
    return x + feed_forward(norm_2(x)) if pre_norm else norm_2(x + feed_forward(x))


@wrong("encoder_layer", "feed_forward has no residual")
def el_feed_forward_without_residual(x, attention, feed_forward, norm_1, norm_2, pre_norm):
    if not pre_norm:
        x = norm_1(x + attention(x))
        return norm_2(x + feed_forward(x))
    x = x + attention(norm_1(x))
    return feed_forward(norm_2(x))


@wrong("encoder_layer", "norm_1 is used twice, norm_2 never")
def el_one_norm(x, attention, feed_forward, norm_1, norm_2, pre_norm):
    for sublayer in (attention, feed_forward):
        x = x + sublayer(norm_1(x)) if pre_norm else norm_1(x + sublayer(x))
    return x


@wrong("encoder_layer", "norm_2 is forgotten")
def el_forgets_the_second(x, attention, feed_forward, norm_1, norm_2, pre_norm):
    if pre_norm:
        x = x + attention(norm_1(x))
        return x + feed_forward(norm_2(x))
    x = norm_1(x + attention(x))
    return x + feed_forward(x)


@wrong("encoder_layer", "pre_norm is not used")
def el_always_post(x, attention, feed_forward, norm_1, norm_2, pre_norm):
    x = norm_1(torch.add(x, attention(x)))
    return norm_2(torch.add(x, feed_forward(x)))


@wrong("encoder_layer", "Twice: the normed x goes around the sublayer")
def el_overwrites_x(x, attention, feed_forward, norm_1, norm_2, pre_norm):
    for sublayer, norm in ((attention, norm_1), (feed_forward, norm_2)):
        if pre_norm:
            x = norm(x)
        x = x + sublayer(x)
        if not pre_norm:
            x = norm(x)
    return x


@wrong("encoder_layer", "Around attention: the normed x goes around the sublayer")
def el_overwrites_x_once(x, attention, feed_forward, norm_1, norm_2, pre_norm):
    if pre_norm:
        x = norm_1(x)
        x = x + attention(x)
        return x + feed_forward(norm_2(x))
    x = norm_1(x + attention(x))
    return norm_2(x + feed_forward(x))


@wrong("encoder_layer", "first x becomes the new sum")
def el_reads_the_old_x(x, attention, feed_forward, norm_1, norm_2, pre_norm):
    if pre_norm:
        h = x + attention(norm_1(x))
        return h + feed_forward(norm_2(x))
    h = norm_1(x + attention(x))
    return norm_2(h + feed_forward(h))


@wrong("encoder_layer", "The second residual goes around both sublayers")
def el_long_way(x, attention, feed_forward, norm_1, norm_2, pre_norm):
    if pre_norm:
        attended = x + attention(norm_1(x))
        return x + feed_forward(norm_2(attended))
    attended = norm_1(x + attention(x))
    return norm_2(x + feed_forward(attended))


@wrong("encoder_layer", "Each norm gets what its sublayer returned. With pre_norm=False it gets the sum")
def el_norm_of_the_output(x, attention, feed_forward, norm_1, norm_2, pre_norm):
    x = x + norm_1(attention(x))
    return x + norm_2(feed_forward(x))


@wrong("encoder_layer", "feed_forward comes before attention")
def el_order(x, attention, feed_forward, norm_1, norm_2, pre_norm):
    for sublayer, norm in ((feed_forward, norm_1), (attention, norm_2)):
        x = x + sublayer(norm(x)) if pre_norm else norm(x + sublayer(x))
    return x


@wrong("encoder_layer", "The last sum is normed as well")
def el_last_norm(x, attention, feed_forward, norm_1, norm_2, pre_norm):
    if pre_norm:
        x = x + attention(norm_1(x))
        x = x + feed_forward(norm_2(x))
    else:
        x = norm_1(x + attention(x))
        x = x + feed_forward(x)
    return norm_2(x)


@wrong("encoder_layer", "`x` was changed")
def el_in_place(x, attention, feed_forward, norm_1, norm_2, pre_norm):
    for sublayer, norm in ((attention, norm_1), (feed_forward, norm_2)):
        x += sublayer(norm(x) if pre_norm else x)
        x = x if pre_norm else norm(x)
    return x


@wrong("encoder_layer", "what flows back to `x` is not the function's gradient")
def el_detached_way(x, attention, feed_forward, norm_1, norm_2, pre_norm):
    for sublayer, norm in ((attention, norm_1), (feed_forward, norm_2)):
        x = x.detach() + sublayer(norm(x)) if pre_norm else norm(x.detach() + sublayer(x))
    return x


@right("encoder_layer")
def el_loop(x, attention, feed_forward, norm_1, norm_2, pre_norm):
    for sublayer, norm in ((attention, norm_1), (feed_forward, norm_2)):
        x = x + sublayer(norm(x)) if pre_norm else norm(x + sublayer(x))
    return x


@right("encoder_layer")
def el_one_line_each(x, attention, feed_forward, norm_1, norm_2, pre_norm):
    before_1, after_1 = (norm_1, lambda y: y) if pre_norm else (lambda y: y, norm_1)
    before_2, after_2 = (norm_2, nn.Identity()) if pre_norm else (nn.Identity(), norm_2)
    around = after_1(x + attention(before_1(x)))
    return after_2(feed_forward(before_2(around)) + around)


@right("encoder_layer")
def el_named(x, attention, feed_forward, norm_1, norm_2, pre_norm):
    if pre_norm:
        attended = attention(norm_1(x)) + x
        return attended + feed_forward(norm_2(attended))
    attended = norm_1(attention(x) + x)
    return norm_2(torch.stack([attended, feed_forward(attended)]).sum(0))


# --- decoder_inputs ------------------------------------------------------------------------------------------

def mask_of(inputs):
    T = inputs.shape[1]
    return (inputs != PAD)[:, None, :] & torch.tril(torch.ones(T, T)).bool()


@wrong("decoder_inputs", "Both are the same: the decoder would be asked to copy what it reads. The labels")
def di_copies(target):
    inputs = target[:, :-1]
    return inputs, inputs, mask_of(inputs)


@wrong("decoder_inputs", "The padding needs an axis for the queries")
def di_padding_without_an_axis(target):
    inputs, labels = target[:, :-1], target[:, 1:]
    return inputs, labels, (inputs != PAD) & torch.ones(inputs.size(1), inputs.size(1)).tril().bool()


@wrong("decoder_inputs", "The padding needs an axis for the queries")
def di_padding_without_an_axis_after(target):
    inputs, labels = target[:, :-1], target[:, 1:]
    return inputs, labels, torch.ones(inputs.size(1), inputs.size(1)).tril().bool() & inputs.ne(PAD)


@wrong("decoder_inputs", "The two are swapped")
def di_swapped(target):
    inputs, labels = target[:, 1:], target[:, :-1]
    return inputs, labels, mask_of(inputs)


@wrong("decoder_inputs", "two words ahead")
def di_two_ahead(target):
    inputs, labels = target[:, :-2], target[:, 2:]
    return inputs, labels, mask_of(inputs)


@wrong("decoder_inputs", "The decoder has to learn when to say EOS")
def di_eos_dropped(target):
    labels = target[:, 1:].clone()
    labels[labels == EOS] = PAD
    return target[:, :-1], labels, mask_of(target[:, :-1])


@wrong("decoder_inputs", "BOS and EOS are cut off both")
def di_words_only(target):
    words = target[:, 1:-1]
    return words, words, mask_of(words)


@wrong("decoder_inputs", "axis 0 is the batch")
def di_wrong_axis(target):
    return target[:-1], target[1:], mask_of(target[:-1])


@wrong("decoder_inputs", "EOS is taken out of the inputs")
def di_eos_not_read(target):
    inputs = torch.where(target == EOS, PAD, target)[:, :-1]
    return inputs, target[:, 1:], mask_of(inputs)


@wrong("decoder_inputs", "replaced by -100")
def di_minus_100(target):
    labels = target[:, 1:].masked_fill(target[:, 1:] == PAD, -100)
    return target[:, :-1], labels, mask_of(target[:, :-1])


@wrong("decoder_inputs", "The mask is inverted")
def di_inverted(target):
    inputs = target[:, :-1]
    T = inputs.shape[1]
    ahead = torch.triu(torch.ones(T, T), diagonal=1).bool()
    return inputs, target[:, 1:], ahead | (inputs == PAD)[:, None]


@wrong("decoder_inputs", "The padding part is inverted")
def di_padding_inverted(target):
    inputs = target[:, :-1]
    return inputs, target[:, 1:], (inputs == PAD).unsqueeze(1) & attention.causal_mask(inputs.size(1))


@wrong("decoder_inputs", "The mask is causal, but padding is seen")
def di_causal_only(target):
    inputs = target[:, :-1]
    B, T = inputs.shape
    return inputs, target[:, 1:], attention.causal_mask(T).repeat(B, 1, 1)


@wrong("decoder_inputs", "so it cannot know where a sentence ends")
def di_causal_for_all(target):
    return target[:, :-1], target[:, 1:], attention.causal_mask(target.size(1) - 1)


@wrong("decoder_inputs", "but the future is seen")
def di_padding_only(target):
    inputs = target[:, :-1]
    return inputs, target[:, 1:], (inputs != PAD)[:, None, :]


@wrong("decoder_inputs", "One of the two is enough here")
def di_or(target):
    inputs = target[:, :-1]
    return inputs, target[:, 1:], (inputs != PAD)[:, None] + attention.causal_mask(inputs.size(1))


@wrong("decoder_inputs", "a query sees the input after its own")
def di_looks_ahead(target):
    inputs = target[:, :-1]
    i, j = torch.arange(inputs.size(1))[:, None], torch.arange(inputs.size(1))
    return inputs, target[:, 1:], (j <= i + 1) & (inputs != PAD)[:, None]


@wrong("decoder_inputs", "a query does not see its own place")
def di_not_itself(target):
    inputs = target[:, :-1]
    i, j = torch.arange(inputs.size(1))[:, None], torch.arange(inputs.size(1))
    return inputs, target[:, 1:], (j < i) & (inputs != PAD)[:, None]


@wrong("decoder_inputs", "Rows of padding are empty")
def di_padded_rows(target):
    inputs = target[:, :-1]
    return inputs, target[:, 1:], (inputs != PAD)[:, :, None] & attention.causal_mask(inputs.size(1))


@wrong("decoder_inputs", "Rows of padding are empty")
def di_padded_rows_and_columns(target):
    inputs = target[:, :-1]
    words = (inputs != PAD).float()
    return inputs, target[:, 1:], torch.einsum("bi,bj->bij", words, words).tril() == 1


@wrong("decoder_inputs", "made from the labels")
def di_mask_of_the_labels(target):
    return target[:, :-1], target[:, 1:], mask_of(target[:, 1:])


@wrong("decoder_inputs", "The mask was made from the whole target")
def di_mask_of_the_target(target):
    return target[:, :-1], target[:, 1:], mask_of(target)


@wrong("decoder_inputs", "numbers, which could mean either thing")
def di_numbers(target):
    return target[:, :-1], target[:, 1:], mask_of(target[:, :-1]).float()


@wrong("decoder_inputs", "it returns 2 things; expected 3: return inputs, labels, mask")
def di_no_mask(target):
    return target[:, :-1], target[:, 1:]


@wrong("decoder_inputs", "`target` was changed")
def di_in_place(target):
    mask = mask_of(target[:, :-1])
    inputs = target[:, :-1].clone()
    target[:, -1] = EOS
    return inputs, target[:, 1:], mask


@wrong("decoder_inputs", "wrong with one sentence (B = 1)")
def di_squeeze(target):
    return target[:, :-1], target[:, 1:], mask_of(target[:, :-1]).squeeze(0)


@right("decoder_inputs")
def di_cells(target):
    B, T = target.shape[0], target.shape[1] - 1
    inputs, labels = target[:, :T], target[:, -T:]
    mask = torch.zeros(B, T, T, dtype=torch.bool)
    for b in range(B):
        for i in range(T):
            for j in range(i + 1):
                mask[b, i, j] = inputs[b, j].item() != PAD
    return inputs, labels, mask


@right("decoder_inputs")
def di_comparison(target):
    inputs, labels = target.split([target.shape[1] - 1, 1], dim=1)[0], target[:, 1:].clone()
    places = torch.arange(inputs.shape[1])
    lengths = (inputs != PAD).sum(1)
    return inputs, labels, (places <= places[:, None]) & (places < lengths[:, None, None])


@right("decoder_inputs")
def di_lower_triangle(target):
    inputs = target[:, :-1]
    words = inputs.ne(PAD).unsqueeze(1).expand(-1, inputs.size(1), -1)
    return inputs, target[:, 1:], words.tril()


# --- keeps_promises ------------------------------------------------------------------------------------------

def random_numbers(word):
    """The same in every run."""
    return torch.randn(word.shape, generator=torch.Generator().manual_seed(0))


def changed(states, i, to=random_numbers):
    states = states.clone()
    states[i] = to(states[i])
    return states


def sees_ahead(layer, x, memory, src_mask, positions=None, to=random_numbers, atol=1e-5,
               compared=lambda out, t: out[:t]):
    out = layer(x, memory, src_mask)
    for t in range(len(x)) if positions is None else positions:
        other = layer(changed(x, t, to), memory, src_mask)
        if not torch.allclose(compared(other, t), compared(out, t), atol=atol):
            return True
    return False


def reads_all(layer, x, memory, src_mask, words=None):
    out = layer(x, memory, src_mask)
    for j in src_mask.nonzero().flatten() if words is None else words:
        if torch.isclose(layer(x, changed(memory, j), src_mask), out, atol=1e-5).all(dim=1).any():
            return False
    return True


def reads_padding(layer, x, memory, src_mask, places=None):
    out = layer(x, memory, src_mask)
    for j in (~src_mask).nonzero().flatten() if places is None else places:
        if not torch.allclose(layer(x, changed(memory, j), src_mask), out, atol=1e-5):
            return True
    return False


@wrong("keeps_promises", "causal is a Tensor; expected a bool. bool(...) makes one")
def kp_tensors(layer, x, memory, src_mask):
    out = layer(x, memory, src_mask)
    return (out == out).all(), (out == out).all(), (out == out).all()


@wrong("keeps_promises", "by numbers, not by shapes")
def kp_shapes(layer, x, memory, src_mask):
    right_shape = layer(x, memory, src_mask).shape == x.shape
    return right_shape, right_shape, right_shape


@wrong("keeps_promises", "The change is one that a LayerNorm takes out again")
def kp_plus_one(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    return not sees_ahead(*given, to=lambda word: word + 1), reads_all(*given), not reads_padding(*given)


@wrong("keeps_promises", "The change is one that a LayerNorm takes out again")
def kp_twice(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    return not sees_ahead(*given, to=lambda word: 2 * word, atol=1e-4), reads_all(*given), not reads_padding(*given)


@wrong("keeps_promises", "NaN is no way to change a word")
def kp_nan(layer, x, memory, src_mask):
    out = layer(x, memory, src_mask)
    later, padding = x.clone(), memory.clone()
    later[-1], padding[~src_mask] = math.nan, math.nan
    causal = torch.allclose(layer(later, memory, src_mask)[:-1], out[:-1], atol=1e-5)
    ignores = torch.allclose(layer(x, padding, src_mask), out, atol=1e-5)
    return causal, reads_all(layer, x, memory, src_mask), ignores


@wrong("keeps_promises", "output t may change")
def kp_whole_output(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    return not sees_ahead(*given, compared=lambda out, t: out), reads_all(*given), not reads_padding(*given)


@wrong("keeps_promises", "copy x anew for every t")
def kp_copies_once(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    out, other, causal = layer(*given[1:]), x.clone(), True
    for t in range(len(x)):
        other[t] = random_numbers(x[t])
        causal = causal and torch.allclose(layer(other, memory, src_mask)[:t], out[:t], atol=1e-5)
    return causal, reads_all(*given), not reads_padding(*given)


@wrong("keeps_promises", "A leak from a later word was not seen")
def kp_last_position_only(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    return not sees_ahead(*given, positions=[len(x) - 1]), reads_all(*given), not reads_padding(*given)


@wrong("keeps_promises", "A leak from a later word was not seen")
def kp_not_the_last(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    return not sees_ahead(*given, positions=range(len(x) - 1)), reads_all(*given), not reads_padding(*given)


@wrong("keeps_promises", "Every one of the T_q outputs has to read the memory")
def kp_some_output(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    out = layer(*given[1:])
    reads = not any(torch.allclose(layer(x, changed(memory, j), src_mask), out, atol=1e-5)
                    for j in torch.where(src_mask)[0])
    return not sees_ahead(*given), reads, not reads_padding(*given)


@wrong("keeps_promises", "Not every word of the memory was put to the test")
def kp_first_word(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    return not sees_ahead(*given), reads_all(*given, words=[0]), not reads_padding(*given)


@wrong("keeps_promises", "Not every word of the memory was put to the test")
def kp_all_words_at_once(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    return not sees_ahead(*given), reads_all(*given, words=[src_mask]), not reads_padding(*given)


@wrong("keeps_promises", "the padding was asked to be read as well")
def kp_padding_read_too(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    return not sees_ahead(*given), reads_all(*given, words=range(len(memory))), not reads_padding(*given)


@wrong("keeps_promises", "Every layer is said to read the memory")
def kp_never_asks_the_memory(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    reads = torch.isfinite(layer(*given[1:])).all().item()
    return not sees_ahead(*given), reads, not reads_padding(*given)


@wrong("keeps_promises", "reads_memory is turned round")
def kp_turned_round(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    out = layer(*given[1:])
    reads = all(torch.allclose(layer(x, changed(memory, j), src_mask), out) for j in range(int(src_mask.sum())))
    return not sees_ahead(*given), reads, not reads_padding(*given)


@wrong("keeps_promises", "Not all padding was put to the test")
def kp_first_padding(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    return not sees_ahead(*given), reads_all(*given), not reads_padding(*given, places=[int(src_mask.sum())])


@wrong("keeps_promises", "Words and padding are mixed up")
def kp_inverted_mask(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    return (not sees_ahead(*given), reads_all(*given, words=(~src_mask).nonzero().flatten()),
            not reads_padding(*given, places=src_mask.nonzero().flatten()))


@wrong("keeps_promises", "Their order is (causal, reads_memory, ignores_padding)")
def kp_order(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    return not sees_ahead(*given), not reads_padding(*given), reads_all(*given)


@wrong("keeps_promises", "rounding breaks no promise")
def kp_exact(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    out = layer(*given[1:])
    causal = all(torch.equal(layer(changed(x, t, torch.neg), memory, src_mask)[:t], out[:t]) for t in range(len(x)))
    ignores = all(torch.equal(layer(x, changed(memory, j, torch.neg), src_mask), out)
                  for j in (~src_mask).nonzero().flatten())
    return causal, reads_all(*given), ignores


@wrong("keeps_promises", "causal is a Tensor; expected a bool")
def kp_tensor(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    after, before = layer(changed(x, -1), memory, src_mask), layer(*given[1:])
    return ((after - before)[:-1].abs() < 1e-4).all(), reads_all(*given), not reads_padding(*given)


@wrong("keeps_promises", "`memory` was changed")
def kp_writes_into_the_memory(layer, x, memory, src_mask):
    out = layer(x, memory, src_mask)
    causal = not sees_ahead(layer, x, memory, src_mask)
    for j in range(len(memory)):
        memory[j] = 0
    return causal, not torch.allclose(layer(x, memory, src_mask), out), True


@right("keeps_promises")
def kp_helpers(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    return not sees_ahead(*given), reads_all(*given), not reads_padding(*given)


@right("keeps_promises")
def kp_later_and_padding_at_once(layer, x, memory, src_mask):
    given = layer, x, memory, src_mask
    out = layer(*given[1:])
    causal = all(torch.allclose(layer(torch.cat([x[:t], torch.zeros_like(x[t:])]), memory, src_mask)[:t], out[:t],
                                atol=1e-5) for t in range(1, len(x)))
    padding = torch.where(src_mask[:, None], memory, 100.0)
    return causal, reads_all(*given), torch.allclose(layer(x, padding, src_mask), out, atol=1e-5)


def kp_jacobian(layer, x, memory, src_mask):
    by_x, by_memory = (jacobian.abs().amax(dim=(1, 3)) for jacobian in torch.autograd.functional.jacobian(
        lambda x, memory: layer(x, memory, src_mask), (x, memory)))
    return ((by_x.triu(1) < 1e-5).all().item(), (by_memory[:, src_mask] > 1e-5).all().item(),
            (by_memory[:, ~src_mask] < 1e-5).all().item())


PLANTED = [(True, True, True)] * 3 + [(False, True, True)] * 4 + [(True, False, True)] * 3 + [(True, True, False)] * 3


def test_planted_layers_are_what_they_are_called():
    """Each broken layer breaks one promise, told by its gradients; the rest of the table is right."""
    exercise = EXERCISES["keeps_promises"]
    for make, kept in zip(exercise.cases.values(), PLANTED, strict=True):
        for seed in range(5):
            given = make(torch.Generator().manual_seed(seed))
            assert kp_jacobian(*given) == exercise.reference(*given) == kept


@pytest.mark.parametrize("change", [torch.neg, torch.zeros_like, random_numbers])
def test_planted_layers_break_and_keep_their_promises_clearly(change):
    """Nobody's tolerance decides: what has to be seen is far away from what is rounding."""
    for make, (causal, reads_memory, ignores_padding) in zip(EXERCISES["keeps_promises"].cases.values(), PLANTED,
                                                             strict=True):
        for seed in range(5):
            layer, x, memory, src_mask = make(torch.Generator().manual_seed(seed))
            out = layer(x, memory, src_mask)
            ahead = max((layer(changed(x, t, change), memory, src_mask) - out)[:t].abs().max()
                        for t in range(1, len(x)))
            by_memory = torch.stack([(layer(x, changed(memory, j, change), src_mask) - out).abs().amax(1)
                                     for j in range(len(memory))])                              # (T_k, T_q)
            words, padding = by_memory[src_mask].min(), by_memory[~src_mask].max()
            assert ahead < 1e-5 if causal else ahead > 1e-3
            assert words > 1e-3 if reads_memory else words < 1e-5
            assert padding < 1e-5 if ignores_padding else padding > 1e-3


@pytest.mark.parametrize("change", [lambda word: word + 1, lambda word: 2 * word])
def test_a_shift_or_a_scaling_is_taken_out_by_a_layer_norm(change):
    """Why `BLIND` is in the table: neither shows that a pre-LN layer looks ahead."""
    make = EXERCISES["keeps_promises"].cases["when the layer has no causal mask"]
    for seed in range(5):
        given = make(torch.Generator().manual_seed(seed))
        assert sees_ahead(*given)
        assert not sees_ahead(*given, to=change, atol=1e-4)


def test_the_message_says_which_layer_was_judged_wrongly():
    with pytest.raises(WrongAnswer, match="Inputs: layer = one whose norms take mean and variance over") as caught:
        check("keeps_promises", {"keeps_promises": kp_shapes})
    assert "0x" not in str(caught.value)


# --- decode_step ---------------------------------------------------------------------------------------------

def look(q, k, v, mask=None):
    """Attention over a batch, by PyTorch."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@wrong("decode_step", "the new word sees only itself")
def ds_no_cache(x, past_k, past_v, W_q, W_k, W_v):
    k, v = x @ W_k, x @ W_v
    return look(x @ W_q, k, v), k, v


@wrong("decode_step", "The cache comes back as it was")
def ds_not_kept(x, past_k, past_v, W_q, W_k, W_v):
    k, v = torch.cat([past_k, x @ W_k], 1), torch.cat([past_v, x @ W_v], 1)
    return look(x @ W_q, k, v), past_k, past_v


@wrong("decode_step", "The new word does not see itself, and it is not in the cache")
def ds_only_the_past(x, past_k, past_v, W_q, W_k, W_v):
    return look(x @ W_q, past_k, past_v), past_k, past_v


@wrong("decode_step", "no mask may hide the newest")
def ds_newest_hidden(x, past_k, past_v, W_q, W_k, W_v):
    k, v = torch.cat([past_k, x @ W_k], 1), torch.cat([past_v, x @ W_v], 1)
    mask = torch.arange(k.shape[1]) < past_k.shape[1]
    return look(x @ W_q, k, v, mask), k, v


@wrong("decode_step", "all words before are forgotten")
def ds_only_the_new(x, past_k, past_v, W_q, W_k, W_v):
    k, v = x @ W_k, x @ W_v
    return look(x @ W_q, torch.cat([past_k, k], 1), torch.cat([past_v, v], 1)), k, v


@wrong("decode_step", "stand in front")
def ds_in_front(x, past_k, past_v, W_q, W_k, W_v):
    k, v = torch.cat([x @ W_k, past_k], 1), torch.cat([x @ W_v, past_v], 1)
    return look(x @ W_q, k, v), k, v


@wrong("decode_step", "The query went into the cache")
def ds_query_cached(x, past_k, past_v, W_q, W_k, W_v):
    q = x @ W_q
    k, v = torch.cat([past_k, q], 1), torch.cat([past_v, x @ W_v], 1)
    return look(q, k, v), k, v


@wrong("decode_step", "take the place of the last word's")
def ds_overwrites(x, past_k, past_v, W_q, W_k, W_v):
    k, v = past_k.clone(), past_v.clone()
    k[:, -1:], v[:, -1:] = x @ W_k, x @ W_v
    return look(x @ W_q, k, v), k, v


@wrong("decode_step", "Project them first")
def ds_words_cached(x, past_k, past_v, W_q, W_k, W_v):
    k, v = torch.cat([past_k, x], dim=1), torch.cat([past_v, x], dim=1)
    return look(x @ W_q, k, v), k, v


@wrong("decode_step", "projected once more")
def ds_projected_twice(x, past_k, past_v, W_q, W_k, W_v):
    k, v = torch.cat([past_k @ W_k, x @ W_k], 1), torch.cat([past_v @ W_v, x @ W_v], 1)
    return look(x @ W_q, k, v), k, v


@wrong("decode_step", "appended along the batch")
def ds_along_the_batch(x, past_k, past_v, W_q, W_k, W_v):
    k, v = torch.cat([past_k, x @ W_k]), torch.cat([past_v, x @ W_v])
    return look(x @ W_q, k, v), k, v


@wrong("decode_step", "so that the new word sees only that one")
def ds_mask_from_the_left(x, past_k, past_v, W_q, W_k, W_v):
    k, v = torch.cat([past_k, x @ W_k], 1), torch.cat([past_v, x @ W_v], 1)
    return F.scaled_dot_product_attention(x @ W_q, k, v, is_causal=True), k, v


@wrong("decode_step", "The scale is missing")
def ds_no_scale(x, past_k, past_v, W_q, W_k, W_v):
    k, v = torch.cat([past_k, x @ W_k], 1), torch.cat([past_v, x @ W_v], 1)
    return F.scaled_dot_product_attention(x @ W_q, k, v, scale=1.0), k, v


@wrong("decode_step", "wrong when several new words come at once.\nWrong values")
def ds_no_mask(x, past_k, past_v, W_q, W_k, W_v):
    k, v = torch.cat([past_k, x @ W_k], 1), torch.cat([past_v, x @ W_v], 1)
    return (x @ W_q @ k.mT / math.sqrt(k.shape[-1])).softmax(-1) @ v, k, v


@wrong("decode_step", "Of several new words, the earlier see the later")
def ds_no_mask_by_torch(x, past_k, past_v, W_q, W_k, W_v):
    k, v = torch.cat([past_k, x @ W_k], 1), torch.cat([past_v, x @ W_v], 1)
    return look(x @ W_q, k, v), k, v


@wrong("decode_step", "The order of the results is (output, k, v)")
def ds_order(x, past_k, past_v, W_q, W_k, W_v):
    k, v = torch.cat([past_k, x @ W_k], 1), torch.cat([past_v, x @ W_v], 1)
    return k, v, look(x @ W_q, k, v, attention.causal_mask(x.shape[1], k.shape[1]))


@wrong("decode_step", "it returns one Tensor; expected 3: return output, k, v")
def ds_output_only(x, past_k, past_v, W_q, W_k, W_v):
    return look(x @ W_q, torch.cat([past_k, x @ W_k], 1), torch.cat([past_v, x @ W_v], 1))


@wrong("decode_step", "wrong with the first word of all, when the cache is empty (T = 0).\nIt raised IndexError")
def ds_asks_the_last_for_its_width(x, past_k, past_v, W_q, W_k, W_v):
    k = torch.cat([past_k, x @ W_k], 1) / math.sqrt(len(past_k[0, -1]))
    v = torch.cat([past_v, x @ W_v], 1)
    return (x @ W_q @ k.mT).softmax(-1) @ v, k * math.sqrt(k.shape[-1]), v


@wrong("decode_step", "gradient is cut: no gradient reaches `past_k`")
def ds_detached_cache(x, past_k, past_v, W_q, W_k, W_v):
    k, v = torch.cat([past_k.detach(), x @ W_k], 1), torch.cat([past_v.detach(), x @ W_v], 1)
    return look(x @ W_q, k, v), k, v


@wrong("decode_step", "`past_k` was changed")
def ds_in_place(x, past_k, past_v, W_q, W_k, W_v):
    scale = math.sqrt(past_k.shape[2])
    past_k /= scale
    k, v = torch.cat([past_k, x @ W_k / scale], 1), torch.cat([past_v, x @ W_v], 1)
    return (x @ W_q @ k.mT).softmax(-1) @ v, k * scale, v


@right("decode_step")
def ds_by_torch(x, past_k, past_v, W_q, W_k, W_v):
    n, T = x.shape[1], past_k.shape[1]
    k, v = torch.cat([past_k, x @ W_k], 1), torch.cat([past_v, x @ W_v], 1)
    return look(x @ W_q, k, v, torch.ones(n, T + n).tril(T).bool()), k, v


@right("decode_step")
def ds_word_by_word(x, past_k, past_v, W_q, W_k, W_v):
    k, v, outputs = past_k, past_v, []
    for word in x.unbind(1):
        k = torch.cat([k, (word @ W_k)[:, None]], dim=1)
        v = torch.cat([v, (word @ W_v)[:, None]], dim=1)
        weights = torch.einsum("bd,btd->bt", word @ W_q, k).div(k.shape[-1] ** 0.5).softmax(-1)
        outputs.append((weights[..., None] * v).sum(1))
    return torch.stack(outputs, dim=1), k, v


@right("decode_step")
def ds_preallocated(x, past_k, past_v, W_q, W_k, W_v):
    n, T = x.shape[1], past_k.shape[1]
    k, v = F.pad(past_k, (0, 0, 0, n)), F.pad(past_v, (0, 0, 0, n))
    k[:, T:], v[:, T:] = x @ W_k, x @ W_v
    scores = x @ W_q @ k.transpose(1, 2) / math.sqrt(W_k.shape[1])
    later = torch.arange(T + n) > torch.arange(T, T + n)[:, None]
    return scores.masked_fill(later, -math.inf).softmax(2) @ v, k, v


# --- sentence_vector -----------------------------------------------------------------------------------------

@wrong("sentence_vector", "The number of words lost an axis")
def sv_without_keepdim(states, mask):
    return (states * mask.unsqueeze(-1)).sum(dim=1) / mask.sum(dim=1).sqrt()


@wrong("sentence_vector", "This is the mean: the sum is divided by the number of words")
def sv_mean(states, mask):
    weights = mask / mask.sum(1, keepdim=True)
    return torch.einsum("bt,btd->bd", weights, states)


@wrong("sentence_vector", "This is the sum alone")
def sv_sum(states, mask):
    return torch.sum(states.masked_fill(~mask[..., None], 0), dim=1)


@wrong("sentence_vector", "The sum is divided by the root of T")
def sv_root_of_padded_length(states, mask):
    return (states * mask[..., None]).sum(1) / states.shape[1] ** 0.5


@wrong("sentence_vector", "Padding is added up, too")
def sv_padding_counted(states, mask):
    return states.sum(1) / mask.sum(1, keepdim=True) ** 0.5


@wrong("sentence_vector", "Padding is added up, too. First make its states zero: states * mask.unsqueeze(-1). And")
def sv_no_mask(states, mask):
    return states.sum(dim=1) / math.sqrt(states.size(1))


@wrong("sentence_vector", "the mean over all places")
def sv_mean_of_everything(states, mask):
    return states.mean(1)


@wrong("sentence_vector", "This is the largest number of each feature. Add")
def sv_max(states, mask):
    return torch.where(mask[..., None], states, -1e9).max(dim=1).values


@wrong("sentence_vector", "This is the first word's state")
def sv_cls(states, mask):
    return states[:, 0, :]


@wrong("sentence_vector", "the padding is added up and counted")
def sv_inverted(states, mask):
    padding = (~mask).float()
    return (states * padding[..., None]).sum(1) / padding.sum(1, keepdim=True).sqrt()


@wrong("sentence_vector", "in the whole batch")
def sv_root_of_the_batch(states, mask):
    return (states * mask[..., None]).sum(1) / math.sqrt(mask.sum())


@wrong("sentence_vector", "Give the mask an axis for the features")
def sv_no_axis(states, mask):
    return (states * mask).sum(1) / mask.sum(1).sqrt()


@wrong("sentence_vector", "puts the words of all sentences into one list")
def sv_boolean_index(states, mask):
    words = states[mask]
    return words.sum(0) / math.sqrt(len(words))


@wrong("sentence_vector", "brought to length 1")
def sv_unit(states, mask):
    total = (states * mask[..., None]).sum(1)
    return total / total.norm(dim=1, keepdim=True)


@wrong("sentence_vector", "by the root of the width")
def sv_root_of_width(states, mask):
    return (states * mask[..., None]).sum(1) / math.sqrt(states.shape[-1])


@wrong("sentence_vector", "Padding may stand in front")
def sv_slices(states, mask):
    return torch.stack([row[:n].sum(0) / math.sqrt(n) for row, n in zip(states, mask.sum(1).tolist(), strict=True)])


@wrong("sentence_vector", "`states` was changed")
def sv_in_place(states, mask):
    states[~mask] = 0
    return states.sum(1) / mask.sum(1, keepdim=True).sqrt()


@wrong("sentence_vector", "gradient is cut: no gradient reaches `states`")
def sv_list(states, mask):
    return torch.tensor([[sum(number for number, word in zip(column, row, strict=True) if word) / sum(row) ** 0.5
                          for column in zip(*state, strict=True)]
                         for state, row in zip(states.tolist(), mask.tolist(), strict=True)])


@right("sentence_vector")
def sv_loop(states, mask):
    return torch.stack([row[words].sum(0) / len(row[words]) ** 0.5 for row, words in zip(states, mask, strict=True)])


@right("sentence_vector")
def sv_product(states, mask):
    weights = mask / mask.sum(1, keepdim=True).sqrt()
    return (weights[:, None] @ states)[:, 0]


@right("sentence_vector")
def sv_mean_times_root(states, mask):
    n = mask.sum(-1, keepdim=True)
    return states.where(mask[..., None], 0).sum(1) / n * n ** 0.5


# --- the references ------------------------------------------------------------------------------------------

REFERENCE = {exercise.name: exercise.reference for exercise in LESSON}


def test_references_keep_their_formulas():
    """The references themselves, on numbers that can be checked by hand."""
    normed = REFERENCE["layer_norm"](torch.tensor([[[1.0, 3.0]]]), torch.tensor([2.0, 3.0]), torch.tensor([10.0, 20.0]),
                                     0.0)
    assert normed.tolist() == [[[8.0, 23.0]]]                   # mean 2, standard deviation 1
    targets = REFERENCE["smoothed_targets"](torch.tensor([[2, 0]]), 4, 0.2)
    torch.testing.assert_close(targets, torch.tensor([[[0.05, 0.05, 0.85, 0.05], [0.85, 0.05, 0.05, 0.05]]]))
    parts = (lambda x: 2 * x), torch.square, (lambda x: x + 1), (lambda x: x + 10)      # 2x, x^2; "norms" that add
    assert REFERENCE["encoder_layer"](torch.tensor(3.0), *parts, False) == 10 + 10 ** 2 + 10
    assert REFERENCE["encoder_layer"](torch.tensor(3.0), *parts, True) == 11 + 21 ** 2
    inputs, labels, mask = REFERENCE["decoder_inputs"](torch.tensor([[BOS, 5, 6, EOS], [BOS, EOS, PAD, PAD]]))
    assert (inputs.tolist(), labels.tolist()) == ([[BOS, 5, 6], [BOS, EOS, PAD]], [[5, 6, EOS], [EOS, PAD, PAD]])
    assert mask.int().tolist() == [[[1, 0, 0], [1, 1, 0], [1, 1, 1]], [[1, 0, 0], [1, 1, 0], [1, 1, 0]]]
    states, words = torch.arange(8.0).view(1, 4, 2), torch.tensor([[True, True, True, True]])
    assert REFERENCE["sentence_vector"](states, words).tolist() == [[6.0, 8.0]]


def test_smoothed_targets_are_those_of_the_librarys_loss():
    torch.manual_seed(0)
    ids, logits = torch.randint(0, 9, (3, 5)), torch.randn(3, 5, 9)
    by_hand = -(REFERENCE["smoothed_targets"](ids, 9, 0.1) * logits.log_softmax(-1)).sum(-1).mean()
    torch.testing.assert_close(by_hand, F.cross_entropy(logits.flatten(0, 1), ids.flatten(), label_smoothing=0.1))


@pytest.mark.parametrize("pre_norm", [False, True])
def test_the_encoder_layer_is_the_courses(pre_norm):
    torch.manual_seed(0)
    layer = EncoderLayer(Config(d_model=8, n_heads=2, d_ff=16, pre_norm=pre_norm))
    for norm in (layer.norm_1, layer.norm_2):
        nn.init.normal_(norm.weight)
    x = torch.randn(2, 5, 8)
    mine = REFERENCE["encoder_layer"](x, lambda x: layer.self_attention(x)[0], layer.feed_forward, layer.norm_1,
                                      layer.norm_2, pre_norm)
    torch.testing.assert_close(mine, layer(x)[0])


def test_steps_with_a_cache_are_the_whole_sentence_at_once():
    torch.manual_seed(0)
    x, W_q, W_k, W_v = torch.randn(2, 6, 5), torch.randn(5, 4), torch.randn(5, 4), torch.randn(5, 3)
    whole = F.scaled_dot_product_attention(x @ W_q, x @ W_k, x @ W_v, is_causal=True)
    k, v, outputs = torch.empty(2, 0, 4), torch.empty(2, 0, 3), []
    for n in (1, 1, 3, 1):
        output, k, v = REFERENCE["decode_step"](x[:, k.size(1):k.size(1) + n], k, v, W_q, W_k, W_v)
        outputs.append(output)
    torch.testing.assert_close(torch.cat(outputs, 1), whole)
    torch.testing.assert_close(k, x @ W_k)
    torch.testing.assert_close(v, x @ W_v)


def test_functions_among_the_inputs_are_named():
    named = "attention = self-attention, feed_forward = a feed-forward network, norm_1 = a LayerNorm, norm_2 = a Layer"
    with pytest.raises(WrongAnswer, match=named):
        check("encoder_layer", {"encoder_layer": el_order})
