"""The tokenizer view: byte-pair encoding or WordPiece on a typed text, step by step."""

import io
from collections.abc import Iterable, Sequence
from itertools import pairwise
from os.path import commonprefix
from string import ascii_lowercase, digits

import traitlets
from PIL import Image, ImageDraw

from .base import CourseWidget, check_text
from .colours import INK, MUTED, PAPER
from .still import _font

END = "</w>"  # joined to the last character of a word
LONGEST = 400  # characters; the picture has no room for more


class TokenizerView(CourseWidget):
    """Byte-pair encoding or WordPiece on a text that can be typed over, step by step.

    Words are split into characters, the last of which carries the end mark ``</w>``, shown as ``·``. Then, of all
    pairs of neighbours that were learnt, the one learnt first is merged, until no pair is left (Sennrich et al.
    2016, section 3.2). Type a word; drag the slider, use the buttons, or the keys: left and right are one step,
    Home and End the first and the last, Escape leaves. Python sees the text and the step, and can set them::

        view = TokenizerView("lowest lower", merges)
        view                                    # the last line of a cell shows it
        view.pieces                             # ("low", "est</w>", "low", "er</w>")
        view.step = 0                           # back to the characters
        view.text = "newest"                    # another text, all merges done

        TokenizerView.wordpiece("unaffable", vocabulary)

    A saved or exported notebook does the same without a kernel.

    Args:
        text: the text shown first, at most 400 characters. Words are what stands between blanks.
        merges: pairs ``(left, right)`` in the order learnt. A merge at the end of a word has the mark:
            ``("es", "t</w>")``.
        step: how many merges are done at first. Default: all, because a view should show its point at once.
        title: a line above the view. Default: none.

    Attributes:
        text, step, title: two-way; set them from Python, or observe them. A new text goes to its last step. One
            step is one merge at every place where its pair stands.
        merges: tuple of pairs (read only). Of WordPiece: none.
        vocabulary: as given to ``wordpiece`` (read only). Of BPE: ``None``.
        pieces: what is shown, with end marks, or those taken so far, with ``##`` (read only).

    Raises:
        ValueError: for merges that are not pairs of texts without blanks, that repeat, or that have the end mark
            anywhere but at the end; for a vocabulary that is no `WordPiece`.
        traitlets.TraitError: for a text that is too long, or a step that the text does not have.

    A character that is in no merge stays as it is. A tokenizer with a fixed alphabet would write ``<unk>``.
    """

    _widget = "TokenizerView"
    _files = "tokenizer_view"
    _names = ("_content", "text", "step", "title")

    _content = traitlets.Dict().tag(sync=True)  # merges, one per line, "left right", as in a merges.txt; or pieces
    text = traitlets.Unicode("").tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)
    _goes_to_the_end = False  # whether a new text takes the step along; not where both are given

    def __init__(self, text: str, merges: Iterable[tuple[str, str]], step: int | None = None, title: str = ""):
        self._start(_Merging(merges), text, step, title)

    @classmethod
    def wordpiece(cls, text: str, vocabulary, step: int | None = None, title: str = ""):
        """WordPiece on a text, one piece after the other, as BERT cuts it.

        The text is cut into words (`course_utils.data.wordpiece.split_words`). A step takes the longest piece of the
        vocabulary that begins the rest of the word; the beginnings that are longer, and no piece, are shown. A piece
        inside a word begins with ``##``. A word that cannot be cut to its end is one step, to ``[UNK]`` (Wu et al.
        2016, section 4.1)::

            model, tokenizer = bert.load()
            view = TokenizerView.wordpiece("unaffable", tokenizer)
            view.pieces                             # tuple(tokenizer.tokenize("unaffable"))

        An exported notebook holds the whole vocabulary: of BERT, 130 kB.

        Args:
            text: as above.
            vocabulary: a `course_utils.data.wordpiece.WordPiece`.
            step: how many pieces are taken at first. Default: all.
            title: as above.
        """
        view = cls.__new__(cls)
        view._start(_Cutting(vocabulary), text, step, title)
        return view

    def _start(self, way, text: str, step: int | None, title: str) -> None:
        self._way = way
        if step is None and isinstance(text, str) and len(text) <= LONGEST:  # otherwise refused below
            step = way.steps(text)
        super().__init__(_content=way.content, text=text, title=title, step=step or 0)
        self._goes_to_the_end = True

    @property
    def merges(self) -> tuple[tuple[str, str], ...]:
        """The merges, in the order learnt."""
        return self._way.merges

    @property
    def vocabulary(self):
        """The `WordPiece` whose pieces are taken."""
        return self._way.vocabulary

    @property
    def pieces(self) -> tuple[str, ...]:
        """The pieces after ``step`` merges, the last piece of a word with ``</w>``; or the pieces taken so far."""
        return tuple(piece for word in self._way.words(self.text, self.step) for piece in word)

    def _steps(self) -> int:
        return self._way.steps(self.text)

    @traitlets.validate("text")
    def _text_is_short(self, proposal):
        return check_text(proposal["value"], LONGEST)

    @traitlets.validate("step")
    def _step_exists(self, proposal):
        steps = self._steps()
        if not 0 <= proposal["value"] <= steps:
            counted = f"0 to {steps} {self._way.noun}s"
            raise traitlets.TraitError(f"step is {proposal['value']}, but {self.text!r:.60} has {counted}.")
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
        return f"TokenizerView({self.text!r}, {self._way!r}, step={self.step})"

    def _still(self) -> bytes:
        return _picture(self._way.rows(self.text, self.step), self._way.mark)

    def _in_words(self) -> str:
        words = self._way.words(self.text, self.step)
        return "\n".join([
            f"{self._lead}{_count(len(words), 'word')} in {_count(sum(map(len, words)), 'piece')} after {self.step} of "
            f"{_count(self._steps(), self._way.noun)} ({self._way.mark}):",
            "   ".join(" ".join(map(_shown, word)) for word in words),
            *self._way.said(self.text, self.step),
        ])


class _Merging:
    """Byte-pair encoding: a step is a merge."""

    noun, mark, vocabulary = "merge", "· is the end of a word", None

    def __init__(self, merges: Iterable[tuple[str, str]]):
        self._lines = _checked(merges)
        self.content = {"kind": "bpe", "merges": self._lines}

    def __repr__(self) -> str:
        return f"merges={len(self.merges)}"

    @property
    def merges(self) -> tuple[tuple[str, str], ...]:
        return tuple(tuple(line.split(" ")) for line in self._lines.splitlines())

    def steps(self, text: str) -> int:
        return len(_segment(text, self._lines)[1])

    def words(self, text: str, step: int) -> list[list[str]]:
        return _segment(text, self._lines, step)[0]

    def said(self, text: str, step: int) -> list[str]:
        merges, lines = self.merges, []
        for number in _segment(text, self._lines, step)[1]:
            left, right = map(_shown, merges[number])
            lines.append(f"merge {number + 1} of {len(merges)}: {left} + {right} → {_shown(''.join(merges[number]))}")
        return lines

    def rows(self, text: str, step: int) -> list[tuple[str, list[list[str]]]]:
        rows = [("characters", self.words(text, 0)), (f"after {_count(step, 'merge')}", self.words(text, step))]
        return rows if step else rows[:1]


class _Cutting:
    """WordPiece: a step takes a piece, the longest that begins the rest."""

    noun, mark, merges = "step", "## is inside a word", ()

    def __init__(self, vocabulary):
        if not all(hasattr(vocabulary, name) for name in ("vocab", "lowercase", "tokenize")):
            raise ValueError(f"vocabulary is of the type {type(vocabulary).__name__}; expected a WordPiece, as "
                             "bert.load() or wordpiece.train(…) return one; WordPiece(pieces) makes one of a list.")
        self.vocabulary = vocabulary
        packed = _packed(vocabulary.vocab)
        self.content = {"kind": "wordpiece", "pieces": packed, "lowercase": vocabulary.lowercase}

    def __repr__(self) -> str:
        return f"vocabulary={len(self.vocabulary.vocab)}"

    def steps(self, text: str) -> int:
        return len(self.vocabulary.tokenize(text))

    def words(self, text: str, step: int) -> list[list[str]]:
        words: list[list[str]] = []
        for piece in self.vocabulary.tokenize(text)[:step]:
            if piece.startswith("##") and words:  # no word begins so: a # is a word of its own
                words[-1].append(piece)
            else:
                words.append([piece])
        return words

    def said(self, text: str, step: int) -> list[str]:
        return []  # the pieces say it

    def rows(self, text: str, step: int) -> list[tuple[str, list[list[str]]]]:
        return [(f"after {_count(step, 'step')}", self.words(text, step))]


def _packed(vocab: Iterable[str]) -> str:
    """The pieces as they travel: sorted, and of each how many letters it shares with the one before, then the others.

    That number is one digit in base 36. A piece with a blank is left out: it is in no word.
    """
    packed, before = [], ""
    for piece in sorted({piece for piece in vocab if piece.split() == [piece]}):
        shared = min(len(commonprefix((before, piece))), 35)
        packed.append(f"{(digits + ascii_lowercase)[shared]}{piece[shared:]}")
        before = piece
    return " ".join(packed)


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
    """The merges as they travel, one per line, if nothing is wrong."""
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


def _picture(rows: list[tuple[str, list[list[str]]]], mark: str = "") -> bytes:
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
    draw.text((4, y - 6), mark, fill=MUTED, font=small)
    file = io.BytesIO()
    picture.quantize(32, dither=Image.Dither.NONE).save(file, "png", optimize=True)
    return file.getvalue()
