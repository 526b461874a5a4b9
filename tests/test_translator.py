"""The Python side of the translator: its NumPy against PyTorch, what it says, accepts and refuses, and its file."""

import json

import numpy as np
import pytest
import torch
import traitlets
from safetensors import safe_open
from sample_translator import model, sentences, translations
from sample_widgets import exported

from course_utils.claims.stored import stored
from course_utils.data import EXAMPLE
from course_utils.data.text import BOS, EOS
from course_utils.decoding import evaluating
from course_utils.widgets import Translator
from course_utils.widgets.translator import LONGEST, MOST_WRITTEN, WEIGHTS, words_in


def test_numpy_says_what_pytorch_says():
    transformer, source, target = model()
    given = sentences(20)
    for words, (_, ids, _) in zip(given, translations(given), strict=True):
        view = Translator(" ".join(words))
        assert view.words == tuple(target.words[i] for i in ids)
        with evaluating(transformer):
            weights = transformer(torch.tensor([[*source.encode(words), EOS]]), torch.tensor([[BOS, *ids[:-1]]]))[1][0]
        np.testing.assert_allclose(view.weights, weights.numpy(), atol=1e-5)


def test_the_first_sentence_is_the_famous_one():
    view = Translator()
    assert view.text.split() == list(EXAMPLE.source)
    assert view.words == (*EXAMPLE.target, "<eos>")
    assert view.weights.shape == (2, 4, len(EXAMPLE.target) + 1, len(EXAMPLE.source) + 1)
    assert repr(view) == "Translator(13 words → 15)"
    words = view._in_words()
    assert words.startswith("the agreement on")
    assert "zone → area 0.99" in words


@pytest.mark.parametrize(("text", "words"), [
    ("The Man slept", ["the", "man", "slept", "."]),
    ("a man, a_b.", ["a", "man", ",", "a", "_", "b", "."]),
    ("  \n", []),
])
def test_words_of_a_text(text, words):
    assert words_in(text) == words


def test_unknown_words_no_words_and_many_words():
    assert Translator("the dog slept .").words[-1] == "<eos>"
    assert Translator("xyz").words
    nothing = Translator("")
    assert (nothing.words, nothing.weights.size) == ((), 0)
    assert "without a sentence" in nothing._in_words()
    assert nothing._still()[:4] == b"\x89PNG"
    assert len(words_in("the " * 300)) == 100
    assert len(Translator("the man " * 50).words) <= MOST_WRITTEN


def test_it_is_set_from_python_and_heard():
    view = Translator(step=3)
    heard = []
    view.observe(lambda change: heard.append((change.name, change.new)), ["text", "step"])
    view.set_state({"text": "the man slept .", "step": 2})
    assert heard == [("text", "the man slept ."), ("step", 2)]
    assert view.words == ("l'", "homme", "a", "dormi", ".", "<eos>")
    with pytest.raises(traitlets.TraitError, match="at most 2000"):
        view.text = "a" * (LONGEST + 1)
    with pytest.raises(traitlets.TraitError, match="step is -1"):
        view.step = -1


def test_the_page_holds_the_file():
    state = exported(Translator(title="t"))
    assert set(state) == {"_content", "text", "step", "title"}
    assert len(state["_content"]["file"]) == -(-WEIGHTS.stat().st_size // 3) * 4


def test_the_figure_has_the_words():
    texts = [text.get_text() for axes in Translator("the man slept .").figure().axes for text in
             [*axes.get_xticklabels(), *axes.get_yticklabels()]]
    assert {"man", "homme", "slept", "dormi"} <= set(texts)


def test_the_file_is_small_and_says_where_it_comes_from():
    kept = stored("translator")
    assert WEIGHTS.stat().st_size < 700_000
    with safe_open(WEIGHTS, "np") as file:
        about = json.loads(file.metadata()["about"])
        assert {file.get_tensor(name).dtype for name in file.keys()} == {np.dtype("float16")}  # noqa: SIM118
    assert about["made"] == str(kept)
    rates = np.array(kept.results["alignment_error_rate"])
    assert rates[tuple(about["head"])] == rates.min()
    assert len(about["pairs"]) >= 300
    words = [about["target"][i] for i in about["pairs"][0][1]]
    assert tuple(words) == EXAMPLE.target
    assert [tuple(link) for link in about["pairs"][0][2]] == list(EXAMPLE.links)
