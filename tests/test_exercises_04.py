"""Lesson 04's checks, checked: wrong answers as tired students give them, right ones in other styles than ours."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sample_models import shaken, torch_twin
from seeded_answers import Answers, cells, right, wrong
from torch import nn

from course_utils import attention
from course_utils.data.text import BOS, EOS
from course_utils.exercises import EXERCISES
from course_utils.exercises.lesson_04 import LESSON_04
from course_utils.exercises.symbolic import Parts
from course_utils.transformer import Config, DecoderLayer, EncoderLayer


class TestAnswers(Answers):
    lesson = LESSON_04


# --- layer_norm ----------------------------------------------------------------------------------------------

@wrong("layer_norm", "statistics run over time")
def ln_time(x, gain, bias, eps):
    mean, std = x.mean(dim=1, keepdim=True), x.std(dim=1, keepdim=True)
    return gain * (x - mean) / (std + eps) + bias


@wrong("layer_norm", "that is BatchNorm")
def ln_batch_norm(x, gain, bias, eps):
    return F.batch_norm(x.mT, None, None, gain, bias, training=True, eps=eps).mT


@wrong("layer_norm", "The eps that is given is not used")
def ln_no_eps(x, gain, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    return gain * centred / centred.pow(2).mean(-1, keepdim=True).sqrt() + bias


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


@wrong("layer_norm", "normed is a numpy.ndarray; expected a Tensor")
def ln_numpy(x, gain, bias, eps):
    x = x.numpy()
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gain.numpy() + bias.numpy()


@wrong("layer_norm", "The mean of the squares minus the square of the mean")
def ln_of_squares(x, gain, bias, eps):
    mean, squares = x.mean(-1, keepdim=True), (x * x).mean(-1, keepdim=True)
    return gain * (x - mean) / torch.sqrt(squares - mean ** 2 + eps) + bias


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


@wrong("smoothed_targets", "Words get the whole smoothing")
def st_not_shared(ids, vocab_size, smoothing):
    return torch.eye(vocab_size)[ids] * (1 - smoothing) + smoothing


@wrong("smoothed_targets", "are swapped")
def st_swapped(ids, vocab_size, smoothing):
    return torch.lerp(torch.full((vocab_size,), 1 / vocab_size), torch.eye(vocab_size)[ids], smoothing)


@wrong("smoothed_targets", "torch.float64; expected torch.float32")
def st_double(ids, vocab_size, smoothing):
    return torch.from_numpy(np.eye(vocab_size)[ids.numpy()] * (1 - smoothing) + smoothing / vocab_size)


@wrong("smoothed_targets", "got no share of it back")
def st_scatter(ids, vocab_size, smoothing):
    targets = torch.full((*ids.shape, vocab_size), smoothing / vocab_size)
    return targets.scatter_(2, ids[:, :, None], 1 - smoothing)


@wrong("smoothed_targets", "which cannot hold a share")
def st_long(ids, vocab_size, smoothing):
    targets = F.one_hot(ids, vocab_size)
    targets[targets == 1] = 1 - smoothing + smoothing / vocab_size
    targets[targets == 0] = smoothing / vocab_size
    return targets


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


# --- decoder_layer -------------------------------------------------------------------------------------------

@wrong("decoder_layer", "Why: cross_attention is called before self_attention, which comes first.")
def dl_source_first(layer, x, memory, mask, src_mask):
    x = x + layer.cross_attention(layer.norm_1(x), memory, src_mask)
    h = layer.norm_2(x)
    x = x + layer.self_attention(h, h, mask)
    return x + layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "self_attention is called before norm_1, which comes first; norms after the sums are post-LN.")
def dl_post_norm(layer, x, memory, mask, src_mask):
    x = layer.norm_1(x + layer.self_attention(x, x, mask))
    x = layer.norm_2(x + layer.cross_attention(x, memory, src_mask))
    return layer.norm_3(x + layer.feed_forward(x))


@wrong("decoder_layer", "Why: the line with `cross_attention` lost its `x +`.\n")
def dl_one_residual_lost(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x = x + layer.self_attention(h, h, mask)
    x = layer.cross_attention(layer.norm_2(x), memory, src_mask)
    return x + layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "the line with `self_attention` lost its `x +`, the line with `cross_attention` lost its `x +`")
def dl_two_residuals_lost(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x = layer.cross_attention(layer.norm_2(layer.self_attention(h, h, mask)), memory, src_mask)
    return x + layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "Why: cross_attention is never called, norm_2 is never called.")
def dl_of_a_gpt(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x = x + layer.self_attention(h, h, mask)
    return x + layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "Why: norm_1 takes what self_attention returned, and belongs in front of it")
def dl_norm_of_the_branch(layer, x, memory, mask, src_mask):
    x = x + layer.norm_1(layer.self_attention(x, x, mask))
    x = x + layer.norm_2(layer.cross_attention(x, memory, src_mask))
    return x + layer.norm_3(layer.feed_forward(x))


@wrong("decoder_layer", "norm_2 gets x as it came in, not what the part before made of it")
def dl_side_by_side(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    written = layer.self_attention(h, h, mask)
    return x + written + layer.cross_attention(layer.norm_2(x), memory, src_mask) + layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "Why: cross_attention was given `memory` as its query: who asks? cross_attention was given "
                        "`norm_2(")
def dl_source_asks(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x = x + layer.self_attention(h, h, mask)
    x = x + layer.cross_attention(memory, layer.norm_2(x), src_mask)
    return x + layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "Why: cross_attention was given `mask` as its mask: who is hidden?")
def dl_causal_twice(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x = x + layer.self_attention(h, h, mask)
    x = x + layer.cross_attention(layer.norm_2(x), memory, mask)
    return x + layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "self_attention was given `src_mask` as its mask: who is hidden? cross_attention was given "
                        "`mask`")
def dl_masks_swapped(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x = x + layer.self_attention(h, h, src_mask)
    x = x + layer.cross_attention(layer.norm_2(x), memory, mask)
    return x + layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "self_attention was given `x` as its keys, and `norm_1(x)` as its query. Both are")
def dl_keys_without_norm(layer, x, memory, mask, src_mask):
    x = x + layer.self_attention(layer.norm_1(x), x, mask)
    x = x + layer.cross_attention(layer.norm_2(x), memory, src_mask)
    return x + layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "self_attention was given `x` as its query, and `norm_1(x)` as its keys. Both are")
def dl_query_without_norm(layer, x, memory, mask, src_mask):
    x = x + layer.self_attention(x, layer.norm_1(x), mask)
    x = x + layer.cross_attention(layer.norm_2(x), memory, src_mask)
    return x + layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "Why: self_attention was given `memory` as its keys: who answers?")
def dl_reads_the_source_twice(layer, x, memory, mask, src_mask):
    x = x + layer.self_attention(layer.norm_1(x), memory, mask)
    x = x + layer.cross_attention(layer.norm_2(x), memory, src_mask)
    return x + layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "cross_attention is called with 2 arguments; expected 3: query, keys, mask.")
def dl_without_a_mask(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x = x + layer.self_attention(h, h, mask)
    x = x + layer.cross_attention(layer.norm_2(x), memory)
    return x + layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "Why: cross_attention was given `norm_3` as its mask: who is hidden?")
def dl_norm_as_mask(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x = x + layer.self_attention(h, h, mask)
    x = x + layer.cross_attention(layer.norm_2(x), memory, layer.norm_3)
    return x + layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "Why: cross_attention was given `None` as its mask: who is hidden?")
def dl_padding_seen(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x = x + layer.self_attention(h, h, mask)
    x = x + layer.cross_attention(layer.norm_2(x), memory, None)
    return x + layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "cross_attention was given `norm_2(memory)` as its keys. `memory` goes in as it is.")
def dl_memory_normed(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x = x + layer.self_attention(h, h, mask)
    x = x + layer.cross_attention(layer.norm_2(x), layer.norm_2(memory), src_mask)
    return x + layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "`x` was changed")
def dl_in_place(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x += layer.self_attention(h, h, mask)
    x += layer.cross_attention(layer.norm_2(x), memory, src_mask)
    return x + layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "Why: norm_3 is called twice.")
def dl_norm_twice(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x = x + layer.self_attention(h, h, mask)
    x = x + layer.cross_attention(layer.norm_2(x), memory, src_mask)
    return layer.norm_3(x + layer.feed_forward(layer.norm_3(x)))


@wrong("decoder_layer", "Why: nothing is added: a residual connection is x + F(x).")
def dl_no_residual(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x = layer.self_attention(h, h, mask)
    x = layer.cross_attention(layer.norm_2(x), memory, src_mask)
    return layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "Why: x itself is missing from the sum: a residual adds it as it was before the norm.")
def dl_overwrites_x(layer, x, memory, mask, src_mask):
    x = layer.norm_1(x)
    x = x + layer.self_attention(x, x, mask)
    x = layer.norm_2(x)
    x = x + layer.cross_attention(x, memory, src_mask)
    x = layer.norm_3(x)
    return x + layer.feed_forward(x)


@wrong("decoder_layer", "Why: norm_3 takes what feed_forward returned, and belongs in front of it.")
def dl_norm_after(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x = x + layer.self_attention(h, h, mask)
    x = x + layer.cross_attention(layer.norm_2(x), memory, src_mask)
    return x + layer.norm_3(layer.feed_forward(x))


@wrong("decoder_layer", "Why: the last sum adds x as it came in, not what the part before made of it.")
def dl_adds_the_old_x(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    h = x + layer.self_attention(h, h, mask)
    h = h + layer.cross_attention(layer.norm_2(h), memory, src_mask)
    return x + layer.feed_forward(layer.norm_3(h))


@wrong("decoder_layer", "wrong on ordinary inputs.\nWhy: the line with `feed_forward` lost its `x +`.\n")
def dl_last_lost(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x = x + layer.self_attention(h, h, mask)
    x = x + layer.cross_attention(layer.norm_2(x), memory, src_mask)
    return layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "Write x = x + …")
def dl_into_a_sum(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x = x + layer.self_attention(h, h, mask)
    x = x + layer.cross_attention(layer.norm_2(x), memory, src_mask)
    x += layer.feed_forward(layer.norm_3(x))
    return x


@wrong("decoder_layer", "what flows back to `x` is not the function's gradient")
def dl_detached_way(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x = x.detach() + layer.self_attention(h, h, mask)
    x = x + layer.cross_attention(layer.norm_2(x), memory, src_mask)
    return x + layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "Why: what norm_1 returned is not used, what self_attention returned is not used.")
def dl_unused(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    attended = x + layer.self_attention(h, h, mask)
    x = x + layer.cross_attention(layer.norm_2(x), memory, src_mask)
    return x + layer.feed_forward(layer.norm_3(x)) if attended is not None else x


@wrong("decoder_layer", "self_attention is called with 4 arguments; expected 3: query, keys, mask.")
def dl_four_given(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    return x + layer.self_attention(h, h, h, mask)


@wrong("decoder_layer", "On symbols: TypeError: it takes a part of `self_attention(norm_1(x))`, by [ ]. All of it is")
def dl_first_of_two(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x = x + layer.self_attention(h, h, mask)[0]
    x = x + layer.cross_attention(layer.norm_2(x), memory, src_mask)
    return x + layer.feed_forward(layer.norm_3(x))


@wrong("decoder_layer", "On symbols: TypeError: stack is none of the parts")
def dl_stacked(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    return torch.stack([x, layer.self_attention(h, h, mask), layer.feed_forward(layer.norm_3(x))]).sum(0)


@wrong("decoder_layer", "Why: The layer has the parts. Write `layer.` before each: layer.norm_1(x).")
def dl_parts_without_their_layer(layer, x, memory, mask, src_mask):
    h = norm_1(x)  # noqa: F821
    x = x + self_attention(h, h, mask)  # noqa: F821
    x = x + cross_attention(norm_2(x), memory, src_mask)  # noqa: F821
    return x + feed_forward(norm_3(x))  # noqa: F821


@wrong("decoder_layer", "Why: Is a part's name misspelled? The layer has self_attention, cross_attention,")
def dl_misspelled(layer, x, memory, mask, src_mask):
    h = layer.norm1(x)
    x = x + layer.self_attention(h, h, mask)
    x = x + layer.cross_attention(layer.norm2(x), memory, src_mask)
    return x + layer.feed_forward(layer.norm3(x))


@wrong("decoder_layer", "the sum grows and grows")
def dl_runs_away(layer, x, memory, mask, src_mask):
    for _ in range(100):
        h = layer.norm_1(x)
        x = x + layer.self_attention(h, h, mask)
    return x


@right("decoder_layer")
def dl_sums(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    x = sum([x, layer.self_attention(query=h, keys=h, mask=mask)])
    x = torch.stack([x, layer.cross_attention(layer.norm_2(x), memory, src_mask)]).sum(0)
    return torch.add(layer.feed_forward(layer.norm_3(x)), x)


@right("decoder_layer")
def dl_named(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    written = layer.self_attention(h, keys=h, mask=mask) + x
    read = torch.add(written, layer.cross_attention(query=layer.norm_2(written), keys=memory, mask=src_mask))
    return sum([read, layer.feed_forward(layer.norm_3(read))])


@right("decoder_layer")
def dl_loop(layer, x, memory, mask, src_mask):
    parts = ((lambda h: layer.self_attention(h, h, mask), layer.norm_1),
             (lambda h: layer.cross_attention(h, memory, src_mask), layer.norm_2), (layer.feed_forward, layer.norm_3))
    for part, norm in parts:
        x = part(norm(x)) + x
    return x


@wrong("decoder_layer", "Why: a line adds to x as it came in, not to what the line before made of it.")
def dl_each_from_the_start(layer, x, memory, mask, src_mask):
    h = layer.norm_1(x)
    h = x + layer.self_attention(h, h, mask)
    h = x + layer.cross_attention(layer.norm_2(h), memory, src_mask)
    return x + layer.feed_forward(layer.norm_3(h))


def test_a_norm_that_is_called_twice_is_right_and_it_is_said():
    def decoder_layer(layer, x, memory, mask, src_mask):
        x = x + layer.self_attention(layer.norm_1(x), layer.norm_1(x), mask)
        x = x + layer.cross_attention(layer.norm_2(x), memory, src_mask)
        return x + layer.feed_forward(layer.norm_3(x))

    verdict = EXERCISES["decoder_layer"].judge(decoder_layer)
    assert verdict.kind == "right"
    assert "norm_1 is called twice" in verdict.text


# --- moves ---------------------------------------------------------------------------------------------------

@right("moves")
def mv_random_word(run, x, t):
    changed = torch.cat([x[:t], torch.randn_like(x[t:t + 1]), x[t + 1:]])
    return ~torch.isclose(run(changed), run(x), atol=1e-5).all(dim=-1)


@right("moves")
def mv_in_a_loop(run, x, t):
    """Without the word: a vector of zeros in its place."""
    changed = x.clone()
    changed[t] = 0
    return torch.tensor([not torch.allclose(new, old, atol=1e-5)
                         for new, old in zip(run(changed), run(x), strict=True)])


def answered(change=torch.neg, found=lambda new, old: (new - old).abs().amax(dim=-1) > 1e-4):
    """An answer with another change, or another comparison."""
    def moves(run, x, t):
        changed = x.clone()
        changed[t] = change(x[t])
        return found(run(changed), run(x))
    return moves


@pytest.mark.parametrize(("answer", "why"), [
    (answered(lambda word: word + 3), "A LayerNorm undoes x[t] + 1"),
    (answered(lambda word: word * 10), "A LayerNorm undoes x[t] + 1"),
    (answered(found=lambda new, old: (new != old).any(dim=-1)), "rounding is no move"),
    (answered(found=lambda new, old: (new.sum(-1) - old.sum(-1)).abs() > 1e-4), "An output moves if any of its d"),
    (answered(found=lambda new, old: ((new - old).abs() > 1e-4).any()), "It has 0 axes instead of 1"),
    (answered(found=lambda new, old: ((new - old).abs() > 1e-4).any(dim=0)), "Wrong shape"),
])
def test_a_change_or_a_comparison_that_is_wrong(answer, why):
    verdict = EXERCISES["moves"].judge(answer)
    assert verdict.kind == "wrong"
    assert why in verdict.text


@wrong("moves", "`x` was changed")
def mv_writes_into_x(run, x, t):
    before = run(x)
    x[t] = -x[t]
    return (run(x) - before).abs().amax(dim=-1) > 1e-4


@wrong("moves", "Other words were changed as well")
def mv_all_words(run, x, t):
    return (run(-x) - run(x)).abs().amax(dim=-1) > 1e-4


def test_an_output_moves_when_it_sees_the_word():
    """In each condition the layer's own table says the answer, and a right one does not depend on the threshold."""
    exercise = EXERCISES["moves"]
    for condition, make in exercise.cases.items():
        for seed in range(50):
            run, x, t = make(torch.Generator().manual_seed(seed))
            assert torch.equal(exercise.solution(run, x, t), run.sees[:, t]), condition


# --- write ---------------------------------------------------------------------------------------------------

@right("write")
def w_grown_tensor(source, encoder, decoder, max_words):
    memory, src_mask = encoder(source)
    words = torch.tensor([[BOS]])
    for _ in range(max_words):
        logits = decoder(words, memory, src_mask)
        words = torch.cat([words, logits[:, -1:].argmax(dim=-1)], dim=1)
        if words[0, -1] == EOS:
            break
    return words[0, 1:].tolist()


@right("write")
def w_in_a_function(source, encoder, decoder, max_words):
    seen = encoder(source)

    def rest(words):
        word = decoder(torch.tensor(words)[None], *seen)[0, -1].argmax().item()
        return [word] if word == EOS or len(words) == max_words else [word, *rest([*words, word])]
    return rest([BOS])


@wrong("write", "The decoder is given the last word only")
def w_as_a_recurrent_network(source, encoder, decoder, max_words):
    memory, src_mask = encoder(source)
    word, words = BOS, []
    while word != EOS and len(words) < max_words:
        word = int(decoder(torch.tensor([[word]]), memory, src_mask)[0, -1].argmax())
        words.append(word)
    return words


@wrong("write", "One word too few")
def w_for(source, encoder, decoder, max_words):
    memory, src_mask = encoder(source)
    words = [BOS]
    for _ in range(1, max_words):
        words.append(int(decoder(torch.tensor([words]), memory, src_mask)[0, -1].argmax()))
        if words[-1] == EOS:
            break
    return words[1:]


def w(condition=lambda words, max_words: words[-1] != EOS and len(words) <= max_words,
      reads=lambda words: torch.tensor([words]), chooses=lambda logits: int(logits[0, -1].argmax()),
      returns=lambda words: words[1:]):
    """An answer with something else in one place."""
    def write(source, encoder, decoder, max_words):
        memory, src_mask = encoder(source)
        words = [BOS]
        while condition(words, max_words):
            words.append(chooses(decoder(reads(words), memory, src_mask)))
        return returns(words)
    return write


@pytest.mark.parametrize(("answer", "why"), [
    (w(chooses=lambda logits: int(logits[0, 0].argmax())), "Every run takes the prediction of the first position"),
    (w(chooses=lambda logits: logits[0, -1].argmax()), "`words` holds tensors"),
    (w(chooses=lambda logits: int(logits.argmax())), "the largest number of *all* positions"),
    (w(reads=lambda words: torch.tensor([words[-1:]])), "The decoder is given the last word only"),
    (w(reads=lambda words: torch.tensor(words)), "decoder takes words (1, T_q), a batch of one sentence"),
    (w(condition=lambda words, max_words: len(words) <= max_words), "It goes on after <eos>"),
    (w(condition=lambda words, max_words: words[-1] != EOS), "Only <eos> ends the loop"),
    (w(condition=lambda words, max_words: True), "the loop does not stop"),
    (w(condition=lambda words, max_words: words[-1] != EOS and len(words) < max_words), "One word too few"),
    (w(returns=lambda words: words), "<bos> was given, not written"),
    (w(returns=lambda words: words[1:-1]), "The last word is missing"),
])
def test_a_loop_that_is_wrong(answer, why):
    verdict = EXERCISES["write"].judge(answer)
    assert verdict.kind == "wrong"
    assert why in verdict.text


def test_cases_of_write_end_where_they_say():
    ends = []
    for make in EXERCISES["write"].cases.values():
        source, encoder, decoder, max_words = make(torch.Generator().manual_seed(1))
        words = EXERCISES["write"].solution(source, encoder, decoder, max_words)
        assert EOS not in words[:-1]
        ends.append((words[-1] == EOS, len(words) == max_words))
    assert ends == [(True, False), (True, True), (False, True)]


# --- decode_step ---------------------------------------------------------------------------------------------

def look(q, k, v, mask=None):
    """Attention over a batch, by PyTorch."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@wrong("decode_step", "Of several new words, each is to see")
def ds_no_mask_by_torch(q, k, v, past_k, past_v):
    k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
    return look(q, k, v), k, v


@wrong("decode_step", "Wrong order: return output, k, v")
def ds_order(q, k, v, past_k, past_v):
    k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
    return k, v, look(q, k, v, attention.causal_mask(q.shape[2], k.shape[2]))


@wrong("decode_step", "wrong with the first word of all, when the cache is empty (T = 0).\nOf n things")
def ds_asks_the_last_for_its_width(q, k, v, past_k, past_v):
    scale = math.sqrt(len(past_k[0, 0, -1]))
    k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
    return (q @ k.mT / scale).softmax(-1) @ v, k, v


@wrong("decode_step", "gradient is cut: no gradient reaches `past_k`")
def ds_detached_cache(q, k, v, past_k, past_v):
    k, v = torch.cat([past_k.detach(), k], 2), torch.cat([past_v.detach(), v], 2)
    return look(q, k, v), k, v


@wrong("decode_step", "`past_k` was changed")
def ds_in_place(q, k, v, past_k, past_v):
    scale = math.sqrt(past_k.shape[3])
    past_k /= scale
    k, v = torch.cat([past_k, k / scale], 2), torch.cat([past_v, v], 2)
    return (q @ k.mT).softmax(-1) @ v, k * scale, v


@wrong("decode_step", "The scale is wrong")
def ds_no_scale(q, k, v, past_k, past_v):
    k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
    return F.scaled_dot_product_attention(q, k, v, scale=1.0), k, v


@right("decode_step")
def ds_by_torch(q, k, v, past_k, past_v):
    n, T = q.shape[2], past_k.shape[2]
    k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
    return look(q, k, v, torch.ones(n, T + n).tril(T).bool()), k, v


@right("decode_step")
def ds_word_by_word(q, k, v, past_k, past_v):
    outputs = []
    for word, key, value in zip(q.unbind(2), k.unbind(2), v.unbind(2), strict=True):
        past_k = torch.cat([past_k, key[:, :, None]], dim=2)
        past_v = torch.cat([past_v, value[:, :, None]], dim=2)
        weights = torch.einsum("bhd,bhtd->bht", word, past_k).div(word.shape[-1] ** 0.5).softmax(-1)
        outputs.append((weights[..., None] * past_v).sum(2))
    return torch.stack(outputs, dim=2), past_k, past_v


@right("decode_step")
def ds_preallocated(q, k, v, past_k, past_v):
    n, T = q.shape[2], past_k.shape[2]
    keys, values = F.pad(past_k, (0, 0, 0, n)), F.pad(past_v, (0, 0, 0, n))
    keys[:, :, T:], values[:, :, T:] = k, v
    scores = q @ keys.transpose(2, 3) / math.sqrt(q.shape[3])
    later = torch.arange(T + n) > torch.arange(T, T + n)[:, None]
    return scores.masked_fill(later, -math.inf).softmax(3) @ values, keys, values


# --- effective_words -----------------------------------------------------------------------------------------

@wrong("effective_words", "0 times log 0 is NaN")
def ew_plain(weights):
    return torch.exp(-torch.sum(weights * torch.log(weights), dim=2))


@wrong("effective_words", "This is the entropy in nats")
def ew_entropy(weights):
    return torch.special.entr(weights).sum(-1)


@wrong("effective_words", "The sum runs over the wrong axis")
def ew_over_queries(weights):
    return torch.special.entr(weights).sum(1).exp()


@right("effective_words")
def ew_entr(weights):
    return torch.special.entr(weights).sum(-1).exp()


@right("effective_words")
def ew_base_two(weights):
    return 2 ** -torch.xlogy(weights, weights).div(math.log(2)).sum(-1)


# --- layer_parameters ----------------------------------------------------------------------------------------

@wrong("layer_parameters", "The biases are missing")
def lp_matrices(d_model, d_ff, decoder):
    matrices = 4 * (1 + decoder) * d_model ** 2 + 2 * d_model * d_ff
    return matrices + 2 * d_model * (3 if decoder else 2)


@wrong("layer_parameters", "An attention has four matrices")
def lp_without_w_o(d_model, d_ff, decoder):
    attention = 3 * d_model * (d_model + 1)
    return (1 + decoder) * attention + (d_model + 1) * d_ff + (d_ff + 1) * d_model + 2 * d_model * (2 + decoder)


@right("layer_parameters")
def lp_counted(d_model, d_ff, decoder):
    linear = [(d_model, d_model)] * (8 if decoder else 4) + [(d_model, d_ff), (d_ff, d_model)]
    return sum(a * b + b for a, b in linear) + 2 * d_model * (3 if decoder else 2)


@right("layer_parameters")
def lp_of_the_module(d_model, d_ff, decoder):
    kind = nn.TransformerDecoderLayer if decoder else nn.TransformerEncoderLayer
    with torch.device("meta"):
        return sum(p.numel() for p in kind(d_model, 8, d_ff).parameters())


# --- combined_gradient ---------------------------------------------------------------------------------------

@wrong("combined_gradient", "Every process counts the same")
def cg_mean(gradients, n_tokens):
    return gradients.sum(0) / len(gradients)


@wrong("combined_gradient", "The sum is not divided by the number of all tokens")
def cg_sum_over_tokens(gradients, n_tokens):
    return (gradients * n_tokens[:, None]).sum(0)


@wrong("combined_gradient", "They are those of mean losses, divided already")
def cg_divided(gradients, n_tokens):
    return sum(gradient / n for gradient, n in zip(gradients, n_tokens, strict=True))


@right("combined_gradient")
def cg_product(gradients, n_tokens):
    return n_tokens @ gradients / n_tokens.sum()


@right("combined_gradient")
def cg_with_numbers(gradients, n_tokens):
    return sum(gradient * n for gradient, n in zip(gradients, n_tokens.tolist(), strict=True)) / int(n_tokens.sum())


@right("combined_gradient")
def cg_loop(gradients, n_tokens):
    total = torch.zeros_like(gradients[0])
    for gradient, n in zip(gradients, n_tokens, strict=True):
        total = total + gradient * n
    return total / sum(n_tokens)


# --- the solutions -------------------------------------------------------------------------------------------

SOLUTION = {exercise.name: exercise.solution for exercise in LESSON_04}


def test_solutions_keep_their_formulas():
    """The solutions, on numbers that can be checked by hand."""
    normed = SOLUTION["layer_norm"](torch.tensor([[[1.0, 3.0]]]), torch.tensor([2.0, 3.0]), torch.tensor([10.0, 20.0]),
                                     0.0)
    assert normed.tolist() == [[[8.0, 23.0]]]                   # mean 2, standard deviation 1
    targets = SOLUTION["smoothed_targets"](torch.tensor([[2, 0]]), 4, 0.2)
    torch.testing.assert_close(targets, torch.tensor([[[0.05, 0.05, 0.85, 0.05], [0.85, 0.05, 0.05, 0.05]]]))
    add, x, memory = (lambda query, keys, mask: query + keys), torch.tensor(3.0), 5
    norms = [lambda x, n=n: x + n for n in (1, 10, 100)]                                    # "norms" that add
    layer = Parts(self_attention=add, cross_attention=add, feed_forward=torch.square,
                  **{f"norm_{i}": norm for i, norm in enumerate(norms, start=1)})
    assert SOLUTION["decoder_layer"](layer, x, memory, None, None) == 37 + 137 ** 2     # 11, 37


def test_smoothed_targets_are_those_of_the_librarys_loss():
    torch.manual_seed(0)
    ids, logits = torch.randint(0, 9, (3, 5)), torch.randn(3, 5, 9)
    by_hand = -(SOLUTION["smoothed_targets"](ids, 9, 0.1) * logits.log_softmax(-1)).sum(-1).mean()
    torch.testing.assert_close(by_hand, F.cross_entropy(logits.flatten(0, 1), ids.flatten(), label_smoothing=0.1))


def test_the_notebooks_encoder_layer_is_torchs():
    """What students read instead of writing it."""
    shown = {"nn": nn, "MultiHeadAttention": attention.MultiHeadAttention}
    for source in cells():
        if source.startswith(("class Attention(", "class EncoderLayer(")):
            exec(source, shown)
    torch.manual_seed(0)
    layer, x = shaken(shown["EncoderLayer"](8, 2, 16)), torch.randn(2, 5, 8)
    theirs = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=True)
    theirs.self_attn = torch_twin(layer.attention)
    theirs.linear1, _, theirs.linear2 = layer.feed_forward
    theirs.norm1, theirs.norm2 = layer.norm_1, layer.norm_2
    mask = torch.arange(5).expand(2, -1) < torch.tensor([[5], [3]])
    torch.testing.assert_close(layer(x, mask.unsqueeze(1)), theirs(x, src_key_padding_mask=~mask))


def test_the_decoder_layer_is_torchs():
    torch.manual_seed(0)
    theirs = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=True)
    for norm in (theirs.norm1, theirs.norm2, theirs.norm3):
        nn.init.normal_(norm.weight)
    x, memory = torch.randn(2, 5, 8), torch.randn(2, 3, 8)
    layer = Parts(self_attention=lambda query, keys, mask: theirs.self_attn(query, keys, keys, attn_mask=~mask)[0],
                  cross_attention=lambda query, keys, mask: theirs.multihead_attn(query, keys, keys)[0],
                  feed_forward=lambda h: theirs.linear2(theirs.linear1(h).relu()),
                  norm_1=theirs.norm1, norm_2=theirs.norm2, norm_3=theirs.norm3)
    mine = SOLUTION["decoder_layer"](layer, x, memory, attention.causal_mask(5), None)
    torch.testing.assert_close(mine, theirs(x, memory, tgt_mask=~attention.causal_mask(5)))


def test_steps_with_a_cache_are_the_whole_sentence_at_once():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 2, 6, 4)
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    past_k, past_v, outputs = torch.empty(2, 2, 0, 4), torch.empty(2, 2, 0, 4), []
    for n in (1, 1, 3, 1):
        new = slice(past_k.size(2), past_k.size(2) + n)
        output, past_k, past_v = SOLUTION["decode_step"](q[:, :, new], k[:, :, new], v[:, :, new], past_k, past_v)
        outputs.append(output)
    torch.testing.assert_close(torch.cat(outputs, 2), whole)
    torch.testing.assert_close(past_k, k)
    torch.testing.assert_close(past_v, v)


@pytest.mark.parametrize("decoder", [False, True])
def test_the_formula_counts_the_courses_layers(decoder):
    layer = (DecoderLayer if decoder else EncoderLayer)(Config(d_model=24, n_heads=2, d_ff=56))
    assert SOLUTION["layer_parameters"](24, 56, decoder) == sum(p.numel() for p in layer.parameters())


def test_rows_of_weights_are_spread_among_as_many_words_as_they_should():
    weights = torch.tensor([[[0.25, 0.25, 0.25, 0.25], [0, 1, 0, 0], [0.5, 0, 0.5, 0]]])
    torch.testing.assert_close(SOLUTION["effective_words"](weights), torch.tensor([[4.0, 1.0, 2.0]]))


def test_gradients_weighed_by_tokens_are_that_of_all_tokens():
    torch.manual_seed(0)
    theta, x = torch.randn(3, requires_grad=True), torch.randn(10, 3)
    whole, *parts = (torch.autograd.grad((rows @ theta).square().mean(), theta)[0] for rows in (x, x[:2], x[2:]))
    mine = SOLUTION["combined_gradient"](torch.stack(parts), torch.tensor([2.0, 8.0]))
    torch.testing.assert_close(mine, whole)


def test_functions_among_the_inputs_are_named():
    named = "layer = a layer with self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3, x ("
    assert named in EXERCISES["decoder_layer"].judge(dl_in_place).text
