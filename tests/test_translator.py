"""The Python side of the translator: what it says, accepts and refuses, and its file."""

import json

import numpy as np
import pytest
import traitlets
from safetensors import safe_open
from sample_widgets import exported

from course_utils.claims.stored import stored
from course_utils.data import EXAMPLE
from course_utils.widgets import Translator
from course_utils.widgets.translator import FIRST, LONGEST, WEIGHTS


def test_the_first_sentence_is_the_famous_one():
    view = Translator()
    assert view.text.split() == list(EXAMPLE.source)
    assert repr(view) == f"Translator('{FIRST}')"
    assert view.text in view._in_words()


def test_without_scripts_it_says_what_it_would_do():
    html = Translator("<b>", title="A & B").to_html()
    still = html[html.index("<div data-still"):html.index("<script>")]
    assert "A &amp; B: a Transformer that translates" in still
    assert "Sentence: &lt;b&gt;</p>" in still
    assert Translator("")._in_words().endswith("Sentence: none")


def test_it_is_set_from_python_and_heard():
    view = Translator(step=3)
    heard = []
    view.observe(lambda change: heard.append((change.name, change.new)), ["text", "step"])
    view.set_state({"text": "the man slept .", "step": 2})
    assert heard == [("text", "the man slept ."), ("step", 2)]
    with pytest.raises(traitlets.TraitError, match="at most 2000"):
        view.text = "a" * (LONGEST + 1)
    with pytest.raises(traitlets.TraitError, match="step is -1"):
        view.step = -1


def test_the_page_holds_the_file():
    state = exported(Translator(title="t"))
    assert set(state) == {"_content", "text", "step", "title"}
    assert len(state["_content"]["file"]) == -(-WEIGHTS.stat().st_size // 3) * 4


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
