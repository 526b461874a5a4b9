"""The tokenizer view: byte-pair encoding on a typed text, merge by merge."""

import io
from collections.abc import Iterable, Sequence
from itertools import pairwise

import traitlets
from PIL import Image, ImageDraw

from ..plotting import INK, MUTED, PAPER
from .base import CourseWidget, javascript, stylesheet
from .still import _font

END = "</w>"  # joined to the last character of a word
LONGEST = 400  # characters; the picture has no room for more


class TokenizerView(CourseWidget):
    """Byte-pair encoding on a text that can be typed over, one learnt merge after the other.

    Words are split into characters, the last of which carries the end mark ``</w>``, shown as ``·``. Then, of all
    pairs of neighbours that were learnt, the one learnt first is merged, until no pair is left (Sennrich et al.
    2016, section 3.2). Type a word; drag the slider, use the buttons, or the keys: left and right are one step,
    Home the characters, End the last merge, Escape leaves. Python sees the text and the step, and can set them::

        view = TokenizerView("lowest lower", merges)
        view                                    # the last line of a cell shows it
        view.pieces                             # ("low", "est</w>", "low", "er</w>")
        view.step = 0                           # back to the characters
        view.text = "newest"                    # another text, all merges done

    A saved or exported notebook does the same without a kernel.

    Args:
        text: the text shown first, at most 400 characters. Words are what stands between blanks.
        merges: pairs ``(left, right)`` in the order learnt. A merge at the end of a word has the mark:
            ``("es", "t</w>")``.
        title: a line above the view. Default: none.
        step: how many merges are done at first. Default: all, because a view should show its point at once.

    Attributes:
        text, step, title: two-way; set them from Python, or observe them. A new text goes to its last step. One
            step is one merge at every place where its pair stands.
        merges: tuple of pairs; assign others to see the same text with them.
        pieces: what is shown, with end marks (read only).

    Raises:
        ValueError: for merges that are not pairs of texts without blanks, that repeat, or that have the end mark
            anywhere but at the end.
        traitlets.TraitError: for a text that is too long, or a step that the text does not have.

    A character that is in no merge stays as it is. A tokenizer with a fixed alphabet would write ``<unk>``.
    """

    _widget = "TokenizerView"
    _files = "tokenizer_view"
    _names = ("_merges", "text", "step", "title")
    _esm = javascript(_files) + f"\nexport default liveHost({_widget}, {list(_names)!r});\n"
    _css = stylesheet(_files)

    _merges = traitlets.Unicode("").tag(sync=True)  # one merge a line, "left right", as in a merges.txt
    text = traitlets.Unicode("").tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)
    _goes_to_the_end = False  # whether a new text takes the step along; not where both are given

    def __init__(self, text: str, merges: Iterable[tuple[str, str]], title: str = "", step: int | None = None):
        merges = _checked(merges)
        if step is None and isinstance(text, str) and len(text) <= LONGEST:  # otherwise refused below
            step = len(_segment(text, merges)[1])
        super().__init__(_merges=merges, text=text, title=title, step=step or 0)
        self._goes_to_the_end = True

    @property
    def merges(self) -> tuple[tuple[str, str], ...]:
        """The merges, in the order learnt."""
        return tuple(tuple(line.split(" ")) for line in self._merges.splitlines())

    @merges.setter
    def merges(self, merges: Iterable[tuple[str, str]]) -> None:
        merges = _checked(merges)
        with self.hold_sync(), self.hold_trait_notifications():
            self._merges = merges
            self.step = self._steps()

    @property
    def pieces(self) -> tuple[str, ...]:
        """The pieces after ``step`` merges; the last piece of a word ends in ``</w>``."""
        words, _ = _segment(self.text, self._merges, self.step)
        return tuple(piece for word in words for piece in word)

    def _steps(self) -> int:
        return len(_segment(self.text, self._merges)[1])

    @traitlets.validate("text")
    def _text_is_short(self, proposal):
        if len(proposal["value"]) > LONGEST:
            raise traitlets.TraitError(
                f"text has {len(proposal['value'])} characters; the view shows at most {LONGEST}. Give a part of it."
            )
        return proposal["value"]

    @traitlets.validate("step")
    def _step_exists(self, proposal):
        steps = self._steps()
        if not 0 <= proposal["value"] <= steps:
            raise traitlets.TraitError(f"step is {proposal['value']}, but {self.text!r:.60} has 0 to {steps} merges.")
        return proposal["value"]

    @traitlets.observe("text")
    def _go_to_the_end(self, _):
        if self._goes_to_the_end:
            self.step = self._steps()

    def set_state(self, sync_data):
        """As in ipywidgets: take what the page sends. What was typed may come with a step chosen since."""
        self._goes_to_the_end = "step" not in sync_data
        try:
            super().set_state(sync_data)
        finally:
            self._goes_to_the_end = True

    def __repr__(self) -> str:
        return f"TokenizerView({self.text!r}, merges={len(self.merges)}, step={self.step})"

    def _export_state(self) -> dict:
        return {name: getattr(self, name) for name in self._names}

    def _still(self) -> bytes:
        before, after = (_segment(self.text, self._merges, step)[0] for step in (0, self.step))
        rows = [("characters", before), (f"after {_count(self.step, 'merge')}", after)]
        return _picture(rows if self.step else rows[:1])

    def _in_words(self) -> str:
        words, used = _segment(self.text, self._merges, self.step)
        merges = self.merges
        pieces = sum(map(len, words))
        title = f"{self.title}: " if self.title else ""
        lines = [
            f"{title}{_count(len(words), 'word')} in {_count(pieces, 'piece')} after {self.step} of "
            f"{_count(self._steps(), 'merge')} (· is the end of a word):",
            "   ".join(" ".join(map(_shown, word)) for word in words),
        ]
        for number in used:
            left, right = map(_shown, merges[number])
            lines.append(f"merge {number + 1} of {len(merges)}: {left} + {right} → {_shown(''.join(merges[number]))}")
        return "\n".join(lines)


def _segment(text: str, merges: str, steps: int | None = None) -> tuple[list[list[str]], list[int]]:
    """Do the first ``steps`` merges (default: all) on the words of a text.

    Again and again the pair learnt first is merged at its leftmost place, as in ``tokenizers``. The same merge at
    several places in succession is one step.

    Returns:
        The words as lists of pieces, and for each step the number of its merge, from 0.
    """
    ranks = {line: rank for rank, line in enumerate(merges.splitlines())}
    words = [[*word[:-1], word[-1] + END] for word in text.split()]
    used = []
    while True:
        places = [
            (ranks[f"{left} {right}"], w, i)
            for w, word in enumerate(words)
            for i, (left, right) in enumerate(pairwise(word))
            if f"{left} {right}" in ranks
        ]
        rank, w, i = min(places, default=(None, 0, 0))
        if used[-1:] != [rank]:
            if rank is None or len(used) == steps:
                return words, used
            used.append(rank)
        words[w][i : i + 2] = ["".join(words[w][i : i + 2])]


def _checked(merges: Iterable[tuple[str, str]]) -> str:
    """The merges as they travel, one a line, if nothing is wrong."""
    lines: dict[str, int] = {}
    for number, pair in enumerate(merges):
        where = f"merge {number} is {pair!r:.80}"
        texts = isinstance(pair, Sequence) and not isinstance(pair, str) and all(isinstance(part, str) for part in pair)
        if not texts or len(pair) != 2:
            raise ValueError(f"{where}; expected a pair of texts (left, right), such as ('l', 'o') or ('t', 'h{END}').")
        left, right = pair
        if not (left and right) or left.split() != [left] or right.split() != [right]:
            raise ValueError(f"{where}; expected two pieces with at least one character and no blanks.")
        if END in left or END in right.removesuffix(END) or right == END:
            raise ValueError(f"{where}; the end mark {END} is joined to the last character of the right piece.")
        line = f"{left} {right}"
        if line in lines:
            raise ValueError(f"{where}, and so was merge {lines[line]}; every pair is learnt once.")
        lines[line] = number
    return "\n".join(lines)


def _shown(piece: str) -> str:
    return piece.removesuffix(END) + "·" * piece.endswith(END)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _picture(rows: list[tuple[str, list[list[str]]]]) -> bytes:
    """Draw each row's caption and the pieces of its words as boxes, as a PNG of a few kilobytes."""
    small, font = _font(12), _font(16)
    boxes, captions, y, right = [], [], 4, 300
    for caption, words in rows:
        captions.append((y, f"{caption}: {_count(sum(map(len, words)), 'piece')}"))
        x, y = 4, y + 22
        for word in words:
            for piece in word:
                width = int(font.getlength(_shown(piece))) + 14
                if x + width > 640 and x > 4:
                    x, y = 4, y + 34
                boxes.append((x, y, width, _shown(piece)))
                right = max(right, x + width)
                x += width + 3
            x += 12
        y += 44
    picture = Image.new("RGB", (right + 6, y + 14), PAPER)
    draw = ImageDraw.Draw(picture)
    for top, caption in captions:
        draw.text((4, top), caption, fill=MUTED, font=small)
    for x, top, width, shown in boxes:
        draw.rounded_rectangle((x, top, x + width, top + 28), 5, outline=MUTED)
        draw.text((x + 7, top + 14), shown, fill=INK, font=font, anchor="lm")
    draw.text((4, y - 6), "· end of a word", fill=MUTED, font=small)
    file = io.BytesIO()
    picture.quantize(32, dither=Image.Dither.NONE).save(file, "png", optimize=True)
    return file.getvalue()
