"""Two translators side by side: lesson 02's recurrent models, without and with attention, which run in the page."""

from .base import STATIC
from .translator import FIRST, SentenceWidget

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

    Args:
        text: the sentence, at most 2,000 characters; what follows the 100th word is not read. Words that the models do
            not know become ``<unk>``; a full stop is added where none is. Default: that of Bahdanau et al. 2015,
            figure 3.
        title: a line above the view. Default: none.

    Attributes:
        text, title: two-way; set them from Python, or observe them.

    Raises:
        traitlets.TraitError: for a text that is too long.
    """

    _widget = "TwoTranslators"
    _files = "two_translators"
    _does = "two recurrent models, without and with attention, that translate English to French"

    def __init__(self, text: str = FIRST, title: str = ""):
        super().__init__(_content={"file": WEIGHTS.read_bytes()}, text=text, title=title)
