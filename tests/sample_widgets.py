"""One small widget of each class."""

import json
import re

import numpy as np
import pytest
from sample_tree import tree

from course_utils import widgets

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
    "Translator": lambda words, title: widgets.Translator(" ".join(words), title=title),
    "TwoTranslators": lambda words, title: widgets.TwoTranslators(" ".join(words), title=title),
}
every_widget = pytest.mark.parametrize("name", MAKE)


def make(name, words=WORDS, title=""):
    """One widget of this class."""
    return MAKE[name](words, title)


def exported(widget):
    """The state that the exported page of a widget draws, read as a browser would."""
    return drawn(type(widget).__name__, widget.to_html())


def drawn(name, page):
    """The state that a page draws with the widget of this class."""
    found = re.findall(rf'^exportHost\({name}, "[\w-]+", (.*)\);$', page, re.MULTILINE)
    assert len(found) == 1, f"{len(found)} of {name} in this page"
    return json.loads(found[0])
