"""Ask: a text that can be typed over, and what a model answers."""

import textwrap
from collections.abc import Callable, Iterable, Sequence

import traitlets
from matplotlib.figure import Figure

from .base import CourseWidget
from .colours import INK, TEAL
from .still import paper

MOST = 12  # bars that fit a slide
LEAST = 0.0005  # what is left over and smaller would be read as zero
LONGEST = 400  # characters of a message
ROUNDING = 1e-6  # a probability in single precision may be this much above 1
ANSWER, OTHERS = TEAL, "#9AA1AD"


class Ask(CourseWidget):
    """A text field, and under it what a model answers: the most probable answers as bars.

    The text goes to Python when Enter is pressed or typing pauses; ``answer`` is called with it, and the bars change.
    Python sees the text and the answers, and can set the text::

        def fill(text):                         # list of (word, probability)
            ...

        view = Ask(fill, "the black [MASK] sleeps .")
        view                                    # the last line of a cell shows it
        view.answers[0]                         # ("cat", 0.62)
        view.text = "the [MASK] is asleep ."    # asks again

    Typing needs a kernel. A saved or exported notebook shows the last text with its answers. Where several texts are
    given, each has a button, and their answers are kept, so that those buttons work without a kernel, too::

        Ask(fill, ["the black [MASK] sleeps .", "the cat [MASK] ."])

    Args:
        answer: ``answer(text)`` gives pairs ``(label, probability)`` in any order. They exclude each other: what they
            lack to 1 is shown as "all others".
        text: the text shown first, or a list of texts, of which the first is shown. ``answer`` is called for each.
        label: what the field is called, such as "question".
        n: how many answers are shown, 1 to 12. Default 8: they fit a slide with room for a code cell.
        title: a line above the view. Default: none.

    Attributes:
        text, label, title: two-way; set them from Python, or observe them.
        answers: the ``n`` most probable answers to ``text``, ``[(label, probability), …]``, the most probable first
            (read only; it can be observed).

    Raises:
        ValueError: for an ``answer`` that is not a function, or gives anything but pairs of a text and a number from
            0 to 1; for an ``n`` that is not a number from 1 to 12, or no text.

    What ``answer`` raises is raised where Python has set the text. Where the text was typed, it is shown in the
    widget; the text stays, and the next one is asked as if nothing had happened.
    """

    _widget = "Ask"
    _files = "ask"
    _names = ("_prepared", "_reply", "text", "label", "title")

    # a reply: {text, answers: [[label, probability], …], others: probability, error: a message, or empty}
    _prepared = traitlets.List().tag(sync=True)  # replies to the texts of a list
    _reply = traitlets.Dict().tag(sync=True)  # to `text`
    text = traitlets.Unicode("").tag(sync=True)
    label = traitlets.Unicode("text").tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)
    answers = traitlets.List(read_only=True)
    _typed = False  # whether a text comes from the page

    def __init__(self, answer: Callable[[str], Iterable[tuple[str, float]]], text: str | Sequence[str],
                 label: str = "text", n: int = 8, title: str = ""):
        if not callable(answer):
            raise ValueError(f"answer is {answer!r:.80}; expected a function that takes a text and gives pairs "
                             "(label, probability).")
        if not isinstance(n, int) or not 1 <= n <= MOST:
            raise ValueError(f"n is {n!r}; expected how many answers to show, 1 to {MOST}.")
        texts = text if isinstance(text, Sequence) and not isinstance(text, str) else [text]
        if not texts or not all(isinstance(one, str) for one in texts):
            raise ValueError(f"text is {text!r:.80}; expected a text, or a list of texts that can be chosen.")
        self._answer, self._n = answer, n
        replies = [self._ask(one) for one in texts]
        super().__init__(_prepared=[] if isinstance(text, str) else replies, _reply=replies[0], text=texts[0],
                         label=label, title=title)

    def _ask(self, text: str) -> dict:
        """What the model answers to a text, as it travels."""
        answers = _checked(self._answer(text), text)[: self._n]
        others = 1 - sum(probability for _, probability in answers) if answers else 0.0
        return {"text": text, "answers": answers, "others": others if others > LEAST else 0.0, "error": ""}

    @traitlets.observe("text")
    def _ask_again(self, _):
        text = self.text
        if self._reply["text"] == text:  # the first one
            return
        raised = None
        try:
            reply = self._ask(text)
        except (Exception, KeyboardInterrupt) as error:  # an interrupted kernel has no answer either
            reply, raised = {"text": text, "answers": [], "others": 0.0, "error": _message(error)}, error
        if text == self.text:  # otherwise a newer text has been answered since
            self._reply = reply
        if raised and not self._typed:
            raise raised

    @traitlets.observe("_reply")
    def _read_off(self, _):
        self.set_trait("answers", [tuple(pair) for pair in self._reply["answers"]])

    def set_state(self, sync_data):
        """As in ipywidgets: take what the page sends."""
        self._typed = True
        try:
            super().set_state(sync_data)
        finally:
            self._typed = False

    def __repr__(self) -> str:
        return f"Ask({self.text!r:.60}, answers={len(self.answers)})"

    def figure(self) -> Figure:
        """The answers as bars under the text, as a matplotlib figure for print."""
        rows = list(self.answers)
        if self._reply["others"]:
            rows.append(("all others", self._reply["others"]))
        lines = textwrap.wrap(f"{self.label}: {self.text}", 80, max_lines=6)
        lines += textwrap.wrap(_nothing(self._reply), 80)
        figure = paper(8, 0.2 * len(lines) + (0.6 + 0.34 * len(rows) if rows else 0.2))
        figure.suptitle("\n".join(lines), x=0.02, ha="left", fontsize=11, color=INK, parse_math=False)
        if rows:
            axes = figure.subplots()
            colours = [ANSWER] * len(self.answers) + [OTHERS]
            bars = axes.barh(range(len(rows)), [share for _, share in rows], color=colours[: len(rows)], height=0.7)
            axes.bar_label(bars, fmt="%.4f", padding=3, fontsize=10)
            axes.set(xlim=(0, 1.12), xticks=[0, 0.5, 1], xlabel="probability")
            names = [label if len(label) <= 32 else f"{label[:31]}…" for label, _ in rows]
            axes.set_yticks(range(len(rows)), names, color=INK, parse_math=False)
            axes.invert_yaxis()
            axes.spines[["top", "right"]].set_visible(False)
        return figure

    def _export_state(self) -> dict:
        state = super()._export_state()
        if self._prepared and all(reply["text"] != self.text for reply in self._prepared):
            state["_prepared"] = [*self._prepared, self._reply]  # so that the last text can be chosen again
        return state

    def _in_words(self) -> str:
        others = [reply for reply in self._prepared if reply["text"] != self.text]
        lines = [self.title] if self.title else []
        for reply in [self._reply, *others]:
            lines.append(f"{self.label}: {reply['text']}")
            if nothing := _nothing(reply):
                lines.append(f"   {nothing}")
            lines += [f"   {name}: {probability:.4f}" for name, probability in reply["answers"]]
            if reply["others"]:
                lines.append(f"   all others: {reply['others']:.4f}")
        return "\n".join(lines)


def _checked(answers, text: str) -> list[list]:
    """The answers to a text as lists ``[label, probability]``, the most probable first, if nothing is wrong."""
    where = f"answer({text!r:.60})"
    expected = "expected pairs (label, probability), such as [('cat', 0.7), ('dog', 0.2)]"
    if isinstance(answers, str | dict) or not isinstance(answers, Iterable):
        raise ValueError(f"{where} returned {answers!r:.80}; {expected}.")
    found = []
    for k, pair in enumerate(answers):
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2 or not isinstance(pair[0], str):
            raise ValueError(f"{where} returned {pair!r:.80} at place {k}; {expected}.")
        label, probability = pair
        try:
            probability = float("nan" if isinstance(probability, str) else probability)  # also a tensor's one number
        except (TypeError, ValueError):
            probability = float("nan")
        if not 0 <= probability <= 1 + ROUNDING:  # nor is NaN
            raise ValueError(f"{where} gives {label!r:.40} the probability {pair[1]!r:.40}; expected a number from 0 "
                             "to 1. Of scores, take the softmax.")
        found.append([label, min(probability, 1.0)])
    return sorted(found, key=lambda pair: -pair[1])


def _message(error: BaseException) -> str:
    """The type and the text of an exception, without where it came from."""
    message = f"{type(error).__name__}: {error}".removesuffix(": ")
    return message if len(message) <= LONGEST else f"{message[:LONGEST]} …"


def _nothing(reply: dict) -> str:
    """Why a reply has no answers; empty if it has some."""
    return "" if reply["answers"] else reply["error"] or "no answer"
