"""Two translators side by side: lesson 02's recurrent models, without and with attention, which run in the page."""

from functools import cache

import numpy as np
from matplotlib.figure import Figure

from .base import STATIC, javascript, stylesheet
from .still import attention_heatmap, matrix_picture, paper
from .translator import MOST_WRITTEN, SentenceWidget, words_in
from .translator_model import TranslatorFile
from .two_translators_model import RecurrentModel

WEIGHTS = STATIC / "two_translators.safetensors"


class TwoTranslators(SentenceWidget):
    """One sentence, two recurrent models: what is lost without attention, and what is looked at with it.

    Both are lesson 02's, three quarters as wide, trained by ``python experiments/two_translators.py``; they run in the
    page, without a kernel and without a network. Type a sentence of their 131 words (the arrow down chooses one that is
    offered, Enter translates), choose one of 300 that neither has seen in training, or move the slider to a shorter or
    longer one. Words that are not those of the true translation are marked and counted; where none is known, those in
    which the two differ are marked. A word of the translation with attention shows what the model looked at when it
    wrote it: the English words, as bright as their weights::

        view = TwoTranslators("the minister signed the important agreement .")
        view                                    # the last line of a cell shows it
        view.words["without"]                   # ("le", "ministre", "a", "signé", …, "<eos>")

    Args:
        text: the sentence, at most 2,000 characters; what follows the 100th word is not read. Words that the models do
            not know become ``<unk>``; a full stop is added where none is. Default: that of Bahdanau et al. 2015,
            figure 3.
        title: a line above the view. Default: none.

    Attributes:
        text, title: two-way; set them from Python, or observe them.
        words: both translations, ``"without"`` and ``"with"`` attention, at most 120 words each; one that comes to an
            end ends in ``<eos>`` (read only).
        weights: of the attention, ``[words, words of the source and <eos>]`` (read only).

    Raises:
        traitlets.TraitError: for a text that is too long.
    """

    _widget = "TwoTranslators"
    _files = "two_translators"
    _esm = javascript(_files) + f"\nexport default liveHost({_widget}, {list(SentenceWidget._names)!r});\n"
    _css = stylesheet(_files)

    def __init__(self, text: str | None = None, title: str = ""):
        text = " ".join(_file().pairs[0][0]) if text is None else text
        super().__init__(_content={"file": WEIGHTS.read_bytes()}, text=text, title=title)

    @property
    def words(self) -> dict[str, tuple[str, ...]]:
        """Both translations."""
        return _translated(self.text)[0]

    @property
    def weights(self) -> np.ndarray:
        """Of the attention."""
        return _translated(self.text)[1]

    def __repr__(self) -> str:
        without, with_attention = map(len, self.words.values())
        return f"TwoTranslators({len(words_in(self.text))} words → {without} and {with_attention})"

    def figure(self) -> Figure:
        """The translation with attention against the sentence, for print."""
        rows, columns = self.words["with"], [*words_in(self.text), "<eos>"]
        figure = paper(np.clip(1.6 + 0.42 * len(columns), 4, 12), min(10, 2 + 0.36 * len(rows)))
        attention_heatmap(self.weights, rows, columns, (), figure.add_subplot())
        return figure

    def _still(self) -> bytes:
        rows, columns = self.words["with"] or ("<eos>",), [*words_in(self.text), "<eos>"]
        return matrix_picture(self.weights if self.weights.size else np.zeros((1, 1)), rows, columns, 1.0)

    def _in_words(self) -> str:
        title = f"{self.title}: " if self.title else ""
        if not self.words["with"]:
            return f"{title}two translators, English to French, without a sentence"
        return "\n".join([f"{title}{' '.join(words_in(self.text))}",
                          *(f"{name} attention: {' '.join(words)}" for name, words in self.words.items())])


@cache
def _file() -> TranslatorFile:
    return TranslatorFile(WEIGHTS)


@cache
def _models() -> dict[str, RecurrentModel]:
    return {name: RecurrentModel(_file(), name) for name in ("without", "with")}


@cache
def _translated(text: str) -> tuple[dict[str, tuple[str, ...]], np.ndarray]:
    """The words that each model writes for a text, and the attention's weights."""
    file, words = _file(), words_in(text)
    if not words:
        return {name: () for name in _models()}, np.zeros((0, 1))
    written = {name: model.translate(file.encoded(words), MOST_WRITTEN) for name, model in _models().items()}
    return {name: tuple(file.target[i] for i in ids) for name, (ids, _) in written.items()}, written["with"][1]
