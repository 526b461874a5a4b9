"""The Python side of the two recurrent translators: what they say and refuse, and their file."""

import json

import numpy as np
import pytest
import traitlets
from safetensors import safe_open
from sample_widgets import exported

from course_utils.claims.stored import stored
from course_utils.widgets import TwoTranslators
from course_utils.widgets.two_translators import WEIGHTS


def test_what_it_says_without_scripts():
    assert TwoTranslators("the man slept .", title="T")._in_words() == (
        "T: two recurrent models, without and with attention, that translate English to French where scripts run. "
        "Sentence: the man slept .")
    with pytest.raises(traitlets.TraitError, match="at most 2000"):
        TwoTranslators("a" * 2001)


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
