"""What all widgets have in common, without a browser: how they are made, and that a closed one is freed."""

import gc
import inspect
import weakref

import numpy as np
import pytest
from test_decoding_tree import tree

from course_utils import widgets
from course_utils.widgets.base import CourseWidget

WORDS = ("the", "cat", "sat", "down")


def normal(*shape):
    return np.random.default_rng(0).normal(size=shape)


def weights(*shape):
    return np.random.default_rng(0).dirichlet(np.ones(shape[-1]), size=shape[:-1])


# one of each, with its own words or eight others, where it takes words
MAKE = {
    "Ask": lambda words, title: widgets.Ask(
        lambda text: [(word, 0.1) for word in words], list(words), label=words[0], title=title),
    "AttentionView": lambda words, title: widgets.AttentionView(
        weights(2, len(words), len(words)), list(words), title=title),
    "DecodingTree": lambda words, title: widgets.DecodingTree(
        tree(**{f"n{k}": {"word": word} for k, word in enumerate(words, 1)}), title=title),
    "ImageAttention": lambda words, title: widgets.ImageAttention(
        np.eye(6), weights(len(words), 9), list(words), (3, 3), title=title),
    "MaskExplorer": lambda words, title: widgets.MaskExplorer("sliding window", title=title),
    "PositionExplorer": lambda words, title: widgets.PositionExplorer(length=12, d_model=6, title=title),
    "Quiz": lambda words, title: widgets.Quiz(
        [widgets.Question(word, [(word, word, True), ("other", "No.", False)]) for word in words], title=title),
    "SoftmaxLab": lambda words, title: widgets.SoftmaxLab(np.arange(len(words)) / 4, list(words), title=title),
    "StepThrough": lambda words, title: widgets.StepThrough(*normal(3, len(words), 6), list(words), title=title),
    "TokenizerView": lambda words, title: widgets.TokenizerView(
        " ".join(words), [("t", "h"), ("a", "t</w>")], title=title),
}
every_widget = pytest.mark.parametrize("name", MAKE)


def make(name, words=WORDS, title=""):
    """One widget of this class."""
    return MAKE[name](words, title)


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
def test_a_closed_widget_is_freed(name):
    widget = make(name)
    widget._repr_mimebundle_()  # it has been shown
    alive = weakref.ref(widget)
    widget.close()
    del widget
    gc.collect()
    assert alive() is None
