"""The translator: lesson 04's Transformer, trained, which runs in the page itself."""

import base64
import re
from functools import cache

import numpy as np
import traitlets
from matplotlib.figure import Figure

from .base import STATIC, CourseWidget, javascript, stylesheet
from .still import attention_heatmap, matrix_picture, paper
from .translator_model import TranslatorModel

WEIGHTS = STATIC / "translator.safetensors"
LONGEST = 2000  # characters of a text
MOST_READ, MOST_WRITTEN = 100, 120  # words, as in translator.js


class SentenceWidget(CourseWidget):
    """What translates a text in the page: its file of weights, the text, a title."""

    _names = ("_content", "text", "title")

    _content = traitlets.Dict().tag(sync=True)  # the file of weights, which the page reads
    text = traitlets.Unicode("").tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)

    @traitlets.validate("text")
    def _text_is_short(self, proposal):
        if len(proposal["value"]) > LONGEST:
            raise traitlets.TraitError(f"text has {len(proposal['value'])} characters; the translator takes at most "
                                       f"{LONGEST}. Give a part of it.")
        return proposal["value"]

    def _export_state(self) -> dict:
        file = base64.b64encode(self._content["file"]).decode("ascii")
        return {name: getattr(self, name) for name in self._names} | {"_content": {"file": file}}


class Translator(SentenceWidget):
    """A Transformer that translates what is typed, English to French, word by word, and shows what it looks at.

    The model is lesson 04's, trained by ``python experiments/translator.py``; it runs in the page, without a kernel
    and without a network. Type a sentence of its 131 words (the arrow down chooses one that it offers, Enter
    translates) or choose one of 300 that it has not seen in training, whose true translation and alignment are known.
    Left and right write one word less or more, Home and End none or all; the candidates for the word looked at stand
    below with their probabilities, and all three attentions in an `AttentionView`, with its keys. Python sees the
    sentence and the step, and can set them::

        view = Translator("the minister signed the important agreement .")
        view                                    # the last line of a cell shows it
        view.words                              # ("le", "ministre", "a", "signé", …, "<eos>")
        view.step = 3                           # three of them written

    Args:
        text: the sentence, at most 2,000 characters; what follows the 100th word is not read. Words that it does
            not know become ``<unk>``; a full stop is added where none is. Default: that of Bahdanau et al. 2015,
            figure 3.
        step: how many words of the translation are written at first. Default: all.
        title: a line above the view. Default: none.

    Attributes:
        text, step, title: two-way; set them from Python, or observe them. A step beyond the last word is the last.
        words: the translation, at most 120 words; ends in ``<eos>`` if it comes to an end (read only).
        weights: of the cross-attention, ``[layers, heads, words, words of the source and <eos>]`` (read only).

    Raises:
        traitlets.TraitError: for a text that is too long, or a step below 0.
    """

    _widget = "Translator"
    _files = "translator"
    _names = ("_content", "text", "step", "title")
    _esm = javascript(_files) + f"\nexport default liveHost({_widget}, {list(_names)!r});\n"
    _css = stylesheet(_files)

    step = traitlets.Int(MOST_WRITTEN).tag(sync=True)

    def __init__(self, text: str | None = None, step: int = MOST_WRITTEN, title: str = ""):
        text = " ".join(_model().pairs[0][0]) if text is None else text
        super().__init__(_content={"file": WEIGHTS.read_bytes()}, text=text, step=step, title=title)

    @traitlets.validate("step")
    def _step_exists(self, proposal):
        if proposal["value"] < 0:
            raise traitlets.TraitError(f"step is {proposal['value']}; expected the number of words written, from 0.")
        return proposal["value"]

    @property
    def words(self) -> tuple[str, ...]:
        """The translation."""
        return _translated(self.text)[0]

    @property
    def weights(self) -> np.ndarray:
        """Of the cross-attention."""
        return _translated(self.text)[1]

    def __repr__(self) -> str:
        return f"Translator({len(words_in(self.text))} words → {len(self.words)})"

    def _head(self) -> tuple[np.ndarray, list[str], list[str], tuple]:
        """The matrix of the head that aligns best, its words, and the true alignment if these words are the true ones.
        """
        source, (layer, head) = words_in(self.text), _model().head
        known = [links for english, french, links in _model().pairs
                 if (english, [*french, "<eos>"]) == (source, list(self.words))]
        return self.weights[layer, head], list(self.words), [*source, "<eos>"], known[0] if known else ()

    def figure(self) -> Figure:
        """The translation against the sentence, as the head that aligns best sees it, for print."""
        weights, rows, columns, links = self._head()
        figure = paper(np.clip(1.6 + 0.42 * len(columns), 4, 12), min(10, 2 + 0.36 * len(rows)))
        attention_heatmap(weights, rows, columns, links, figure.add_subplot())
        return figure

    def _still(self) -> bytes:
        weights, rows, columns, links = self._head() if self.words else (np.zeros((1, 1)), ["<eos>"], ["<eos>"], ())
        return matrix_picture(weights, rows, columns, 1.0, links)

    def _in_words(self) -> str:
        title = f"{self.title}: " if self.title else ""
        if not self.words:
            return f"{title}a translator, English to French, without a sentence"
        weights, rows, columns, _ = self._head()
        lines = [f"{title}{' '.join(columns[:-1])} → {' '.join(rows)}", "Each word, and the word it looks at most:"]
        return "\n".join(lines + [f"{word} → {columns[row.argmax()]} {row.max():.4f}"
                                  for word, row in zip(rows, weights, strict=True)])


@cache
def _model() -> TranslatorModel:
    return TranslatorModel(WEIGHTS)


@cache
def _translated(text: str) -> tuple[tuple[str, ...], np.ndarray]:
    """The words written for a text, and the weights of the cross-attention."""
    model, words = _model(), words_in(text)
    if not words:
        return (), np.zeros((0, 0, 0, 1))
    ids, weights = model.translate(model.encoded(words), MOST_WRITTEN)
    return tuple(model.target[i] for i in ids), weights


def words_in(text: str) -> list[str]:
    """The words of a text, as in training: lower case, marks by themselves, a full stop at the end."""
    words = re.findall(r"[^\W_]+|[^\w\s]|_", text.lower())
    return [*words, *["."] * bool(words and words[-1] != ".")][:MOST_READ]
