"""What all widgets have in common, without a browser: how they are made, and that a closed one is freed."""

import gc
import inspect
import json
import weakref

import numpy as np
import pytest
from sample_widgets import MAKE, every_widget, make

from course_utils import widgets
from course_utils.widgets import (
    Ask,
    AttentionView,
    DecodingTree,
    ImageAttention,
    MaskExplorer,
    PositionExplorer,
    Question,
    Quiz,
    SoftmaxLab,
    StepThrough,
    TokenizerView,
    Translator,
    TwoTranslators,
)
from course_utils.widgets.base import CourseWidget


def test_no_widget_is_forgotten():
    public = [getattr(widgets, name) for name in widgets.__all__]
    classes = [one for one in public if isinstance(one, type) and issubclass(one, CourseWidget)]
    assert sorted(one.__name__ for one in classes) == sorted(MAKE)


@every_widget
def test_arguments_are_what_is_shown_then_what_is_selected_then_the_title(name):
    cls = getattr(widgets, name)
    parameters = inspect.signature(cls).parameters
    by_position = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert "title" in parameters
    assert by_position[-1] == "title" or "title" not in by_position
    public = {trait for trait in cls._names if not trait.startswith("_")}
    assert public <= set(parameters), "what can be selected by a reader can be selected from the start"


@every_widget
def test_a_title_is_a_line_above_and_is_told(name):
    widget = make(name, title="A title")
    assert widget.title == "A title"
    assert widget._repr_mimebundle_()[0]["text/plain"].startswith("A title")
    seen = []
    widget.observe(lambda change: seen.append(change.new), "title")
    widget.set_state({"title": "another"})  # as the front end sends it
    assert seen == ["another"]


@every_widget
def test_a_still_picture_is_found_in_the_html_of_its_own_class_only(name):
    widget = make(name)
    page, has_one = f"<p>before</p>{widget.to_html()}", widget._still_html().startswith("<img")
    found = {other: png for other in MAKE if (png := getattr(widgets, other).still_in(page))}
    assert found == ({name: widget._still()} if has_one else {})


@every_widget
def test_a_closed_widget_is_freed(name):
    widget = make(name)
    widget._repr_mimebundle_()  # it has been shown
    alive = weakref.ref(widget)
    widget.close()
    del widget
    gc.collect()
    assert alive() is None


SURROGATE = "half of \ud83d an emoji"  # what a byte-level tokenizer may cut; UTF-8 cannot say it


@pytest.mark.parametrize("make", [
    lambda text: AttentionView(np.eye(2), [text, "b"], title=text),
    lambda text: StepThrough(np.eye(2), np.eye(2), np.eye(2), [text, "b"], title=text),
    lambda text: StepThrough.decoding(np.eye(2), [text, "b"], ["a", text]),
    lambda text: SoftmaxLab([1.0, 2.0], [text, "b"], title=text),
    lambda text: MaskExplorer(title=text),
    lambda text: PositionExplorer(title=text),
    lambda text: TokenizerView(text, [("a", "b")], title=text),
    lambda text: Translator(text, title=text),
    lambda text: TwoTranslators(text, title=text),
    lambda text: Quiz([Question(text, [(text, text, True), ("b", "c", False)])], title=text),
    lambda text: Ask(lambda asked: [(text, 1.0)], text, title=text),
    lambda text: ImageAttention(np.zeros((2, 2)), np.eye(4), title=text),
    lambda text: DecodingTree({"best": 0, "nodes": [
        {"id": 0, "parent": None, "word": text, "log_prob": 0.0, "score": 0.0, "step": 0, "kept": True,
         "finished": True, "greedy": True}]}, title=text),
])
def test_a_lone_surrogate_is_shown_as_a_sign(make):
    widget = make(SURROGATE)
    shown = widget._repr_mimebundle_()[0]
    assert "half of \ufffd an emoji" in shown["text/html"]
    json.dumps(shown, ensure_ascii=False).encode()
    json.dumps(widget.get_state(), ensure_ascii=False, default=lambda _: "").encode()
