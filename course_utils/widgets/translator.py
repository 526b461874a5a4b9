"""The translator: lesson 04's Transformer, trained, which runs in the page itself."""

import base64
import html

import traitlets

from .base import STATIC, CourseWidget, check_text

WEIGHTS = STATIC / "translator.safetensors"
FIRST = "the agreement on the european economic area was signed in august 1992 ."
LONGEST = 2000  # characters of a text
MOST_WRITTEN = 120  # words, as in sentence.js


class SentenceWidget(CourseWidget):
    """What translates a text in the page: its file of weights, the text, a title. Python does not run the models."""

    _names = ("_content", "text", "title")
    _does: str

    _content = traitlets.Dict().tag(sync=True)  # the file of weights, which the page reads
    text = traitlets.Unicode("").tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)

    @traitlets.validate("text")
    def _text_is_short(self, proposal):
        return check_text(proposal["value"], LONGEST)

    def __repr__(self) -> str:
        return f"{self._widget}({self.text!r})"

    def _export_state(self) -> dict:
        file = base64.b64encode(self._content["file"]).decode("ascii")
        return super()._export_state() | {"_content": {"file": file}}

    def _still_html(self) -> str:
        return f"<p>{html.escape(self._in_words())}</p>"

    def _in_words(self) -> str:
        return f"{self._lead}{self._does} where scripts run. Sentence: {self.text or 'none'}"


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
        view.step = 3                           # three words of the translation written

    Args:
        text: the sentence, at most 2,000 characters; what follows the 100th word is not read. Words that it does
            not know become ``<unk>``; a full stop is added where none is. Default: that of Bahdanau et al. 2015,
            figure 3.
        step: how many words of the translation are written at first. Default: all, at most 120.
        title: a line above the view. Default: none.

    Attributes:
        text, step, title: two-way; set them from Python, or observe them. A step beyond the last word is the last.

    Raises:
        traitlets.TraitError: for a text that is too long, or a step below 0.
    """

    _widget = "Translator"
    _files = "translator"
    _names = ("_content", "text", "step", "title")
    _does = "a Transformer that translates English to French"

    step = traitlets.Int(MOST_WRITTEN).tag(sync=True)

    def __init__(self, text: str = FIRST, step: int = MOST_WRITTEN, title: str = ""):
        super().__init__(_content={"file": WEIGHTS.read_bytes()}, text=text, step=step, title=title)

    @traitlets.validate("step")
    def _step_exists(self, proposal):
        if proposal["value"] < 0:
            raise traitlets.TraitError(f"step is {proposal['value']}; expected the number of words written, from 0.")
        return proposal["value"]
