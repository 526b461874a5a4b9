"""The Python side of the two recurrent translators: their NumPy against PyTorch, what they say and refuse."""

import json

import numpy as np
import pytest
import torch
import traitlets
from safetensors import safe_open
from sample_translator import recurrent, sentences, translations
from sample_widgets import exported

from course_utils.claims.stored import stored
from course_utils.data import EXAMPLE
from course_utils.data.text import BOS, EOS
from course_utils.decoding import evaluating
from course_utils.widgets import TwoTranslators
from course_utils.widgets.two_translators import WEIGHTS


@pytest.mark.parametrize("name", ["without", "with"])
def test_numpy_says_what_pytorch_says(name):
    seq2seq, source, target = recurrent(name)
    given = sentences(20)
    for words, (_, ids, _) in zip(given, translations(given, (seq2seq, source, target)), strict=True):
        view = TwoTranslators(" ".join(words))
        assert view.words[name] == tuple(target.words[i] for i in ids)
        if name == "with":
            with evaluating(seq2seq):
                weights = seq2seq(torch.tensor([[*source.encode(words), EOS]]), torch.tensor([[BOS, *ids[:-1]]]))[1][0]
            np.testing.assert_allclose(view.weights, weights.numpy(), atol=1e-5)


def test_the_first_sentence_is_the_famous_one():
    view = TwoTranslators()
    assert view.text.split() == list(EXAMPLE.source)
    assert view.words["with"] == (*EXAMPLE.target, "<eos>")
    assert view.weights.shape == (len(EXAMPLE.target) + 1, len(EXAMPLE.source) + 1)
    assert repr(view).startswith("TwoTranslators(13 words → ")
    assert f"with attention: {' '.join(EXAMPLE.target)}" in view._in_words()
    texts = [text.get_text() for axes in view.figure().axes for text in axes.get_xticklabels()]
    assert "economic" in texts


def test_unknown_words_no_words_and_many_words():
    assert all(words for words in TwoTranslators("xyz").words.values())
    nothing = TwoTranslators("")
    assert (nothing.words, nothing.weights.size) == ({"without": (), "with": ()}, 0)
    assert "without a sentence" in nothing._in_words()
    assert nothing._still()[:4] == b"\x89PNG"
    with pytest.raises(traitlets.TraitError, match="at most 2000"):
        nothing.text = "a" * 2001


def test_the_page_holds_the_file_which_is_small_and_says_where_it_comes_from():
    state, kept = exported(TwoTranslators(title="t")), stored("two_translators")
    assert set(state) == {"_content", "text", "title"}
    assert len(state["_content"]["file"]) == -(-WEIGHTS.stat().st_size // 3) * 4
    assert WEIGHTS.stat().st_size < 700_000
    with safe_open(WEIGHTS, "np") as file:
        about = json.loads(file.metadata()["about"])
        assert {file.get_tensor(name).dtype for name in file.keys()} == {np.dtype("float16")}  # noqa: SIM118
    assert about["made"] == str(kept)
    assert len(about["pairs"]) >= 300


def test_what_was_measured_is_what_the_view_is_for():
    without, with_attention = (stored("two_translators").results[name]["by_length"] for name in ("without", "with"))
    assert min(without["4-9"], *with_attention.values()) > 90
    assert without["35-40"] < 0.6 * with_attention["35-40"]
