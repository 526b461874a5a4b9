"""What is refused alike in many places: sizes below 1, lists of nothing, a string for a list, ids of no sentence."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from course_utils import gpt
from course_utils.arguments import at_least, at_least_one
from course_utils.attention import AdditiveScore, GeneralScore, LocationScore
from course_utils.data.text import PAD
from course_utils.decoding import greedy
from course_utils.language_models import CausalLM, TransformerXL
from course_utils.metrics import aligned_words_found, alignment_error_rate
from course_utils.seq2seq import Seq2Seq
from course_utils.transformer import Config, Transformer

TOKENIZER = SimpleNamespace(encode=lambda text: SimpleNamespace(ids=[int(letter) for letter in text]))


def little_gpt():
    torch.manual_seed(0)
    return gpt.GPT(10, gpt.Config(d_model=8, n_heads=2, n_layers=1, d_ff=8))


@pytest.mark.parametrize(("make", "name"), [
    (lambda size: Seq2Seq(size, 5), "source_size"), (lambda size: Seq2Seq(5, size), "target_size"),
    (lambda size: Seq2Seq(5, 5, d_embed=size), "d_embed"), (lambda size: Seq2Seq(5, 5, d_model=size), "d_model"),
    (lambda size: Transformer(size), "source_size"), (lambda size: Transformer(5, size), "target_size"),
    (lambda size: TransformerXL(size, Config(), 4), "vocab_size"),
    (lambda size: CausalLM(size, Config()), "vocab_size"),
    (lambda size: AdditiveScore(size, 4), "d_query"), (lambda size: AdditiveScore(4, 4, size), "d_hidden"),
    (lambda size: GeneralScore(4, size), "d_key"), (lambda size: LocationScore(4, 4, size), "max_len"),
    (lambda size: gpt.GPT(size), "vocab_size"),
])
@pytest.mark.parametrize("size", [0, -2])
def test_a_size_below_1_is_named(make, name, size):
    with pytest.raises(ValueError, match=f"{name} is {size}; expected at least 1"):
        make(size)


def test_a_size_that_is_no_whole_number_is_named():
    with pytest.raises(TypeError, match="source_size is 5.0; expected a whole number, at least 1"):
        Seq2Seq(5.0, 5)
    at_least(1, of_torch=torch.arange(2).numel())


@pytest.mark.parametrize(("ask", "name"), [
    (lambda: gpt.next_tokens(little_gpt(), TOKENIZER, []), "questions"),
    (lambda: gpt.next_tokens(little_gpt(), TOKENIZER, ["1"], among=[]), "among"),
    (lambda: gpt.zero_shot(little_gpt(), TOKENIZER, [], "capital of"), "pairs"),
    (lambda: alignment_error_rate([], []), "predicted"),
    (lambda: aligned_words_found([], []), "pairs"),
])
def test_a_list_of_nothing_is_named(ask, name):
    with pytest.raises(ValueError, match=f"{name} is empty; expected a list with at least one item"):
        ask()


def test_a_string_for_a_list_is_named():
    with pytest.raises(TypeError, match=r"questions is one string, '12'; expected a list of strings: \[questions\]"):
        gpt.next_tokens(little_gpt(), TOKENIZER, "12")
    at_least_one(questions=["12"])


def test_texts_without_a_token_are_counted():
    with pytest.raises(ValueError, match="question 17 has no token"):
        gpt.next_tokens(little_gpt(), TOKENIZER, ["1"] * 17 + [""])
    with pytest.raises(ValueError, match="text of among 1 has no token"):
        gpt.next_tokens(little_gpt(), TOKENIZER, ["1"], among=["2", ""])
    with pytest.raises(ValueError, match="texts is 0; expected at least 1"):
        gpt.generate(little_gpt(), torch.ones(0, 3, dtype=torch.long), 2)


def test_a_temperature_that_is_no_number_is_named():
    with pytest.raises(TypeError, match="temperature is '1', a str; expected a number"):
        gpt.generate(little_gpt(), torch.ones(1, 3, dtype=torch.long), 2, temperature="1")


# --- what the encoder-decoders read --------------------------------------------------------------------------------

SMALL = Config(d_model=8, n_heads=2, n_layers=1, d_ff=8)
every_translator = pytest.mark.parametrize("model", [
    Transformer(11, config=SMALL), Seq2Seq(11, 11, 4, 4), Seq2Seq(11, 11, 4, 4, "dot", "current", "lstm", False),
    Seq2Seq(11, 11, 4, 4, "additive")], ids=["Transformer", "plain", "Luong", "Bahdanau"])


def ids(*lengths, T=5):
    return torch.tensor([[4] * length + [PAD] * (T - length) for length in lengths], dtype=torch.long)


@every_translator
@pytest.mark.parametrize(("source", "message"), [
    (ids(3, 0, 4, 0), r"source \(4, 5\) has nothing but padding in rows \[1, 3\]; .*End each sentence"),
    (ids(0), r"nothing but padding in rows \[0\]"), (ids(0, 0, T=0), r"nothing but padding in rows \[0, 1\]"),
    (torch.zeros(0, 5).long(), r"source has shape \(0, 5\); expected ids \(B, T_k\) of one sentence or more"),
    (ids(3, 5, 4).flip(1), "padding before a word; .*turn each round before they are padded"),
    (ids(5)[0], r"source has shape \(5,\); expected ids \(B, T\).*: source.unsqueeze\(0\)"),
    (ids(5)[None], r"source has shape \(1, 1, 5\); expected ids \(B, T\)")])
def test_what_cannot_be_translated_is_refused(model, source, message):
    with pytest.raises(ValueError, match=message):
        model.encode(source)


@every_translator
def test_padding_is_not_translated(model):
    with pytest.raises(ValueError, match=r"source \(2, 5\) has nothing but padding in rows \[0\]"):
        greedy(model, ids(0, 3), max_len=3)


@every_translator
@pytest.mark.parametrize(("target", "message"), [
    (ids(4), "target has 1 rows, source 2; expected as many"), (ids(1, 2, 3), "target has 3 rows, source 2"),
    (ids(0, 0, T=0), "target has no id; expected at least one, <bos>"),
    (ids(4)[0], r"target has shape \(5,\); expected ids \(B, T\).*: target.unsqueeze\(0\)")])
def test_a_target_that_does_not_fit_is_refused(model, target, message):
    with pytest.raises(ValueError, match=message):
        model(ids(5, 3), target)


@every_translator
@pytest.mark.parametrize("wrong", [[[4, 5]], np.array([[4, 5]])])
def test_ids_that_are_no_tensor_are_refused(model, wrong):
    expected = rf"is a {type(wrong).__name__}; expected a tensor of ids \(B, T\), such as torch.tensor\(\[\[4, 5,"
    with pytest.raises(TypeError, match=f"source {expected}"):
        model(wrong, ids(2))
    with pytest.raises(TypeError, match=f"target {expected}"):
        model(ids(2), wrong)
