"""The Python side of Ask: when a function is called, what is kept of its answers, what is refused."""

import base64
import io
import re

import numpy as np
import pytest
import torch
import traitlets
from PIL import Image
from sample_widgets import exported

from course_utils.widgets import Ask, strip_widget_state
from course_utils.widgets.ask import ANSWER, _message

LIVE = "application/vnd.jupyter.widget-view+json"
WORDS = {"cat": 0.25, "dog": 0.5, "bird": 0.0625, "cow": 0.125}


def fill(text):
    """Words in no order; a word in the text is not given."""
    if "[MASK]" not in text:
        raise LookupError(f"no [MASK] in {text!r}")
    return [(word, p) for word, p in WORDS.items() if word not in text.split()]


# --- answers ---


def test_the_most_probable_come_first_and_the_rest_is_one_number():
    view = Ask(fill, "a [MASK]", n=2)
    assert view.answers == [("dog", 0.5), ("cat", 0.25)]
    assert view._reply["others"] == 0.25
    assert Ask(fill, "a [MASK]").answers == [("dog", 0.5), ("cat", 0.25), ("cow", 0.125), ("bird", 0.0625)]
    assert repr(view) == "Ask('a [MASK]', answers=2)"


@pytest.mark.parametrize(("given", "others"), [
    ([0.9, 0.1], 0), ([0.9, 0.0996], 0), ([0.9, 0.0994], 0.0006), ([0.25, 0.25], 0.5), ([0.75, 0.75], 0), ([], 0),
])
def test_what_is_left_over(given, others):
    reply = Ask(lambda text: [(str(k), p) for k, p in enumerate(given)], "a")._reply
    assert reply["others"] == pytest.approx(others, abs=1e-12)


def test_equal_probabilities_keep_their_order():
    assert [label for label, _ in Ask(lambda _: [(x, 0.25) for x in "dbca"], "").answers] == list("dbca")


def test_any_pairs_and_any_kind_of_number():
    probabilities = torch.tensor([0.75, 0.25])
    for answers in (
        list(zip("ab", probabilities, strict=True)), zip("ab", probabilities.numpy(), strict=True),
        (pair for pair in [["a", 0.75], ("b", np.float64(0.25))]), [("b", 0.25), ("a", probabilities[0])],
    ):
        found = Ask(lambda _, answers=answers: answers, "x").answers
        assert found == [("a", 0.75), ("b", 0.25)]
        assert {type(p) for _, p in found} == {float}
    assert Ask(lambda _: [("a", np.float32(1) + np.finfo(np.float32).eps)], "x").answers == [("a", 1.0)]


# --- texts, from both sides ---


def test_another_text_is_asked_once_and_observers_hear_it():
    asked, heard = [], []
    view = Ask(lambda text: asked.append(text) or fill(text), "a [MASK]")
    names = ["text", "answers"]
    view.observe(lambda change: heard.append((change.name, change.new, view.text, view.answers[0])), names)
    view.text = "a dog and a [MASK]"
    rest = [("cat", 0.25), ("cow", 0.125), ("bird", 0.0625)]
    assert view.answers == rest
    assert sorted(heard) == [("answers", rest, view.text, rest[0]), ("text", view.text, view.text, rest[0])]
    view.text = view.text
    assert asked == ["a [MASK]", "a dog and a [MASK]"]


def test_the_page_is_told_text_and_reply_together(monkeypatch):
    view, sent = Ask(fill, "a [MASK]"), []
    monkeypatch.setattr(view, "send_state", lambda key=None: sent.append((key, getattr(view, key))))
    view.text = "my [MASK]"
    assert [key for key, _ in sent] == ["text", "_reply"]
    assert sent[1][1]["text"] == "my [MASK]"
    del sent[:]
    view.set_state({"text": "dog [MASK]"})
    assert ("_reply", view._reply) in sent
    assert (view.text, view._reply["text"], view.answers[0][0]) == ("dog [MASK]", "dog [MASK]", "cat")


@pytest.mark.parametrize("slow_fails", [False, True])
def test_a_late_answer_is_not_shown_for_a_newer_text(slow_fails):
    """While one text is being answered, another is set."""
    def slow(text):
        if text == "slow":
            view.text = "quick"
            if slow_fails:
                raise ValueError("too late")
        return [(f"answer to {text}", 1.0)]

    view, heard = Ask(slow, "first"), []
    view.observe(lambda change: heard.append(change.new[0][0]), "answers")
    view.set_state({"text": "slow"})
    assert (view.text, view.answers, view._reply["error"]) == ("quick", [("answer to quick", 1.0)], "")
    assert heard == ["answer to quick"]


def test_an_observer_may_set_the_text():
    view = Ask(lambda text: [(text, 1.0)], "a")
    view.observe(lambda change: setattr(view, "text", "c") if change.new == "b" else None, "text")
    view.text = "b"
    assert (view.text, view.answers) == ("c", [("c", 1.0)])


def test_an_exception_of_a_typed_text_is_a_message_and_the_next_text_works():
    view = Ask(fill, "a [MASK]")
    view.set_state({"text": "a mask"})
    assert (view.text, view.answers) == ("a mask", [])
    assert view._reply["error"] == "LookupError: no [MASK] in 'a mask'"
    assert view._in_words() == "text: a mask\n   LookupError: no [MASK] in 'a mask'"
    view.set_state({"text": "[MASK]"})
    assert (view.answers[0], view._reply["error"]) == (("dog", 0.5), "")


def test_an_exception_of_a_text_from_python_is_raised_and_shown():
    with pytest.raises(LookupError, match="no .MASK. in 'a'"):
        Ask(fill, "a")
    with pytest.raises(LookupError, match="no .MASK. in 'b'"):
        Ask(fill, ["[MASK]", "b"])
    view = Ask(fill, "a [MASK]")
    with pytest.raises(LookupError, match="no .MASK. in 'c'") as raised:
        view.text = "c"
    assert raised.traceback[-1].name == "fill"
    assert (view.text, view.answers, view._reply["error"]) == ("c", [], "LookupError: no [MASK] in 'c'")
    view.text = "[MASK]"
    assert view.answers[0] == ("dog", 0.5)


def test_an_interrupted_answer_is_a_message():
    def interrupted(text):
        if text:
            raise KeyboardInterrupt
        return []

    view = Ask(interrupted, "")
    view.set_state({"text": "x"})
    assert view._reply["error"] == "KeyboardInterrupt"


def test_a_long_message_is_cut():
    assert _message(ValueError("x" * 5000)) == "ValueError: " + "x" * 388 + " …"


def test_several_texts_are_answered_at_once():
    asked = []
    view = Ask(lambda text: asked.append(text) or fill(text), ["a [MASK]", "dog [MASK]"])
    assert asked == ["a [MASK]", "dog [MASK]"]
    assert (view.text, view.answers[0][0]) == ("a [MASK]", "dog")
    assert [(reply["text"], reply["answers"][0][0]) for reply in exported(view)["_prepared"]] == [
        ("a [MASK]", "dog"), ("dog [MASK]", "cat"),
    ]
    view.text = "[MASK] !"  # the last text can be chosen again in an export
    assert [reply["text"] for reply in exported(view)["_prepared"]] == ["a [MASK]", "dog [MASK]", "[MASK] !"]
    assert len(view._prepared) == 2
    single = Ask(fill, "a [MASK]")
    single.text = "[MASK]"
    assert exported(single)["_prepared"] == []


# --- refused ---


@pytest.mark.parametrize(("returned", "message"), [
    (None, r"answer\('a'\) returned None; expected pairs \(label, probability\), such as"),
    (0.5, r"answer\('a'\) returned 0.5; expected pairs"),
    ("cat", r"answer\('a'\) returned 'cat'; expected pairs"),
    ({"cat": 0.5}, r"answer\('a'\) returned {'cat': 0.5}; expected pairs"),
    (["cat"], r"returned 'cat' at place 0; expected pairs"),
    (["no"], r"returned 'no' at place 0; expected pairs"),
    ([("a", 0.5), ("b",)], r"returned \('b',\) at place 1; expected pairs"),
    ([(0.5, "a")], r"returned \(0.5, 'a'\) at place 0"),
    ([("a", 1.01)], r"answer\('a'\) gives 'a' the probability 1.01; expected a number from 0 to 1"),
    ([("a", -0.1)], r"the probability -0.1; expected"),
    ([("a", float("nan"))], r"the probability nan; expected a number from 0 to 1. Of scores, take the softmax."),
    ([("a", float("inf"))], r"the probability inf; expected"),
    ([("a", "0.5")], r"the probability '0.5'; expected"),
    ([("a", None)], r"the probability None; expected"),
    ([("a", [0.5])], r"the probability \[0.5\]; expected"),
    ([("a", torch.tensor([0.5, 0.5]))], r"the probability tensor"),
])
def test_bad_answers_say_what_is_wrong(returned, message):
    with pytest.raises(ValueError, match=message):
        Ask(lambda text: returned, "a")
    view = Ask(lambda text: returned if text == "a" else [], "")
    view.set_state({"text": "a"})
    assert re.match("ValueError: .*" + message, view._reply["error"])


@pytest.mark.parametrize(("given", "message"), [
    ({"answer": "fill"}, "answer is 'fill'; expected a function that takes a text"),
    ({"n": 0}, "n is 0; expected how many answers to show, 1 to 12"),
    ({"n": 13}, "n is 13"),
    ({"n": 2.0}, "n is 2.0"),
    ({"text": []}, r"text is \[\]; expected a text, or a list of texts"),
    ({"text": 7}, "text is 7; expected a text"),
    ({"text": ["[MASK]", 7]}, r"text is \['.MASK.', 7\]; expected"),
])
def test_bad_arguments_say_what_is_wrong(given, message):
    with pytest.raises(ValueError, match=message):
        Ask(**{"answer": fill, "text": "[MASK]", **given})


def test_traits_refuse_what_they_are_not():
    view = Ask(fill, "[MASK]")
    with pytest.raises(traitlets.TraitError, match="read-only"):
        view.answers = []
    with pytest.raises(traitlets.TraitError, match="'text' trait"):
        view.text = 7
    assert view.answers[0] == ("dog", 0.5)


# --- what an output holds ---


def test_output_has_a_live_view_and_what_lasts():
    view = Ask(fill, ["a [MASK]", "dog [MASK]"], label="sentence", n=2, title="Masks")
    data, metadata = view._repr_mimebundle_()
    assert data[LIVE]["model_id"] == view.model_id
    assert data["text/html"] == view.to_html()
    assert data["text/plain"].splitlines() == [
        "Masks",
        "sentence: a [MASK]", "   dog: 0.5000", "   cat: 0.2500", "   all others: 0.2500",
        "sentence: dog [MASK]", "   cat: 0.2500", "   cow: 0.1250", "   all others: 0.6250",
    ]
    output = {"output_type": "display_data", "data": data, "metadata": metadata}
    strip_widget_state({"cells": [{"cell_type": "code", "outputs": [output]}], "metadata": {}})
    assert set(output["data"]) == {"text/html", "text/plain"}


def test_export_is_the_same_text_every_time_and_small():
    assert Ask(fill, "[MASK]").to_html() == Ask(fill, "[MASK]").to_html()
    assert Ask(fill, "[MASK]").to_html() != Ask(fill, "[MASK]", n=2).to_html()
    assert len(Ask(fill, "[MASK]").to_html()) < 40_000


HOSTILE = "</script><img/src=x> <!--<script> '\"&"


def test_texts_cannot_leave_their_place():
    view = Ask(lambda text: [(HOSTILE, 0.5)], [HOSTILE, "b"], label="</script><b>", title="</script><b>")
    html = view.to_html()
    assert html.count("</script>") == 1
    assert "<img/" not in html
    assert "<b>" not in html
    state = exported(view)
    assert (state["text"], state["_reply"]["answers"], state["label"]) == (HOSTILE, [[HOSTILE, 0.5]], "</script><b>")


def picture(view):
    return Image.open(io.BytesIO(base64.b64decode(re.search(r'base64,([^"]*)"', view.to_html())[1]))).convert("RGB")


def test_still_picture_has_bars_as_long_as_the_probabilities():
    image = np.asarray(picture(Ask(fill, "[MASK]"))).astype(int)
    colour = [int(ANSWER[k:k + 2], 16) for k in (1, 3, 5)]
    teal = (abs(image - colour).sum(axis=2) < 40).sum(axis=1)
    rows = [group for group in re.findall("1+", "".join(str(int(n > 8)) for n in teal)) if len(group) > 5]
    lengths = sorted((n for n in set(teal.tolist()) if (teal == n).sum() > 5 and n), reverse=True)
    assert len(rows) == len(lengths) == 4
    np.testing.assert_allclose(np.array(lengths) / lengths[0], [1, 0.5, 0.25, 0.125], atol=0.01)


@pytest.mark.parametrize("text", ["x" * 3000, "$\\frac{1}{$ 😀 שלום \n\t", ""])
def test_still_picture_of_any_text_and_label(text):
    view = Ask(lambda _: [(text, 0.5)], text)
    assert picture(view).width == 800
    empty = Ask(lambda _: [], text)
    assert empty._in_words().endswith("no answer")
    assert picture(empty).height < picture(view).height < 400
