"""What is refused alike in many places: sizes below 1, lists of nothing, a string for a list."""

from types import SimpleNamespace

import pytest
import torch

from course_utils import gpt
from course_utils.arguments import at_least, at_least_one
from course_utils.attention import AdditiveScore, GeneralScore, LocationScore
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
    with pytest.raises(ValueError, match="texts is 0; expected at least 1"):
        gpt.generate(little_gpt(), torch.ones(0, 3, dtype=torch.long), 2)
