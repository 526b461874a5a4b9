"""One claim: what a paper found, what we measured, and the condition under which we say that it holds."""

import math
import os
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from html import escape

from IPython.display import display

from ..course import KEEP_GOING, seed_asked_for
from ..widgets.colours import BAD, GOOD, MUTED
from . import accepted, condition, seeds
from .condition import Terms
from .stored import Stored

MIME = "application/vnd.attention-course.claim+json"
LABELLED = ("published", "shown", "measured")       # dicts of a claim that are lists of pairs in its record
_BARE = "margin:0;padding:0;float:none;width:auto"          # of a list in a card, against the styles of pages


class ClaimDoesNotHold(AssertionError):  # noqa: N818 (a verdict, not an error of the program)
    """The measurement contradicts what the notebook says about it."""


@dataclass(frozen=True)
class Claim:
    """What `claim` registers; a notebook shows it as a card. `record` is its form in a saved notebook."""

    id: str
    says: str
    source: str
    published: dict[str, str]
    shown: dict[str, str]
    """Label to what we measured, as the card shows it."""
    measured: dict[str, float]
    """The numbers among it, in full precision."""
    percentages: tuple[str, ...]
    """The labels of those that their format shows as percentages."""
    terms: Terms
    stored: str = ""
    """Where stored measurements come from, else empty."""
    seed: int = 0
    """Of the run that measured."""

    @property
    def holds(self) -> bool:
        """Whether the condition is true of what was measured."""
        return condition.holds(self.terms.condition, self.measured)

    @property
    def verdict(self) -> str:
        """*holds*, *does not hold*, or, when `expected` is false, *does not hold at this scale*."""
        if self.holds:
            return "holds" if self.terms.expected else "holds, against expectation"
        return "does not hold" if self.terms.expected else "does not hold at this scale"

    @property
    def trials(self) -> seeds.Tried:
        """Those in the record, and this run; without this run for what is not repeated: an identity, or stored."""
        found = seeds.tried(self.id, self.terms.condition, accepted.made_by(self.id))
        repeated = self.terms.kind == "experiment" and not self.stored
        return found.including(self.seed, self.holds) if repeated else found

    @property
    def failed_at(self) -> list[int]:
        """The seeds at which it did not come out as expected, or was not reached."""
        return self.trials.failed(self.terms.expected)

    @property
    def tried(self) -> str:
        """At how many seeds it held; empty for what is not repeated."""
        return str(self.trials) if self.trials.seeds else ""

    @classmethod
    def from_record(cls, record: Mapping) -> "Claim":
        """The claim that was saved as `record`.

        Raises:
            KeyError: if something is missing in it; its argument names all that is.
        """
        ours, terms = ([field.name for field in fields(kind) if field.name != "terms"] for kind in (cls, Terms))
        if missing := [name for name in ours + terms if name not in record]:
            raise KeyError(", ".join(missing))
        given = {name: dict(record[name]) if name in LABELLED else record[name] for name in ours}
        given["measured"] = {label: float(value) for label, value in given["measured"].items()}
        given["percentages"] = tuple(given["percentages"])
        return cls(**given, terms=Terms(**{name: record[name] for name in terms}))

    def record(self) -> dict:
        """The claim and its measurements as JSON. Numbers that JSON does not know are text: ``"nan"``, ``"inf"``.

        Labels and values are lists of pairs: a notebook's file sorts the keys of a dict.
        """
        flat = {**asdict(self), **asdict(self.terms), "percentages": list(self.percentages)}
        del flat["terms"]
        flat["measured"] = {label: value if math.isfinite(value) else str(value)
                            for label, value in self.measured.items()}
        return flat | {name: [list(pair) for pair in flat[name].items()] for name in LABELLED}

    def __str__(self) -> str:
        rival = f"  rival:     {self.terms.rival}\n" if self.terms.rival else ""
        facts = "; ".join(filter(None, [self.terms.kind, self.tried, self.stored]))
        return (f"[{self.id}] {self.says}\n  published: {plain(self.published)} ({self.source})\n"
                f"  measured:  {plain(self.shown)}\n{rival}"
                f"  condition: holds when {condition.in_words(self.terms.condition, self.percentages)}\n"
                f"  verdict:   {self.verdict} ({facts})")

    __repr__ = __str__

    def html(self) -> str:
        """The card."""
        return (f'<div style="border-left:6px solid {colour(self)};padding:.2em .9em;margin:.3em 0;max-width:48em;'
                'color:inherit;line-height:1.3">'
                f'<div><b>{escape(self.says)}</b> <code style="white-space:nowrap">{escape(self.id)}</code></div>'
                f"{columns(self)}{conclusion(self)}</div>")

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {"text/plain": str(self), "text/html": self.html(), MIME: self.record()}


def claim(id: str, says: str, source: str, published, measured: Mapping, holds: str, kind: str = "experiment",
          rival: str = "", stored: Stored | Sequence[Stored] | None = None, expected: bool = True) -> None:
    """Show a claim as a card, and stop the notebook if it does not turn out as expected.

    Args:
        id: lesson and name, for example ``"02.bleu-by-length"``; unique in the course.
        says: the claim in one sentence.
        source: who published it and where, for example ``"Bahdanau et al. 2015, fig. 2"``.
        published: their number: a short string, or a dict of label to value.
        measured: ours: label to a number, to ``(number, format)`` such as ``(0.961, "{:.0%}")``, or to text, which is
            shown and cannot be compared. Numbers without a format show three digits.
        holds: the condition, a comparison of measured numbers as text, for example
            ``'"BLEU, with" >= 80 and "BLEU, without" <= 25'`` (see `condition`).
        kind: ``"experiment"``, or ``"identity"`` for what only a bug can break.
        rival: in a comparison: what the other side was given, for example
            ``"no attention: same encoder, steps and batches"``.
        stored: the stored measurement that the numbers come from, or several.
        expected: `False` registers a claim that does *not* hold at this scale. The card says so,
            and the cell then fails if the claim suddenly does hold.

    Raises:
        ClaimDoesNotHold: if the condition's truth differs from `expected`, after the card is shown (not where the
            environment variable ``COURSE_KEEP_GOING`` is set).
        TypeError, ValueError: if an argument has another form, or the condition compares what was not measured.
    """
    if not re.fullmatch(r"[0-9]{2}\.[a-z0-9]+(-[a-z0-9]+)*", id):
        raise ValueError(f"claim id {id!r}; expected the lesson's two digits, a dot and words joined by "
                         "hyphens, for example '02.bleu-by-length'.")
    terms = Terms(holds, kind, rival, expected)
    if not isinstance(measured, Mapping) or not measured:
        raise TypeError(f"{id}: measured is {measured!r}; expected a dict of label to number, because the condition "
                        "names what it compares.")
    rows = {str(label): _measured(id, str(label), value) for label, value in measured.items()}
    shown = {label: words for label, (words, _, _) in rows.items()}
    numbers = {label: number for label, (_, number, _) in rows.items() if number is not None}
    percentages = tuple(label for label, (_, _, form) in rows.items() if form and _in_percent(form))
    condition.check(holds, numbers, shown)
    sources = [stored] if isinstance(stored, Stored) else stored or ()
    card = Claim(id, says, source, labelled(published), shown, numbers, percentages, terms,
                 "; ".join(map(str, sources)), seed_asked_for() or 0)
    display(card)
    if card.holds != expected and not os.environ.get(KEEP_GOING):
        todo = ("Change the experiment, or register the claim with expected=False and teach that."
                if expected else "Remove expected=False, and the text that says it does not hold.")
        raise ClaimDoesNotHold(f"{id} {card.verdict}: {says} Measured: {plain(shown)}. It holds when "
                               f"{condition.in_words(holds, percentages)}. {todo}")


def _measured(id: str, label: str, value) -> tuple[str, float | None, str | None]:
    """What the card shows; the number, if it is one; and its format, if it has one."""
    form = None
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], str):
        value, form = value
    number = _single(value)
    if isinstance(number, int | float) and not isinstance(number, bool):
        return (_short(number) if form is None else form.format(number)), number, form
    if isinstance(number, str) and form is None:
        return number, None, None
    raise TypeError(f"{id}: measured {label!r} is {value!r}, a {type(value).__name__}; expected a number, "
                    "(number, format) such as (0.961, '{:.0%}'), or text. Of a truth give the number it rests on.")


def _in_percent(form: str) -> bool:
    """Whether a format such as ``"{:.0%}"`` multiplies by 100; a percent sign that only stands behind it does not."""
    return any((spec or "").endswith("%") for _, _, spec, _ in string.Formatter().parse(form))


def _single(value):
    """The Python number in a tensor, an array or a NumPy number that holds one."""
    return value.item() if getattr(value, "shape", None) == () else value


def _short(number: float) -> str:
    """Three digits, or all in front of the point."""
    return f"{number:,}" if isinstance(number, int) else f"{number:,.0f}" if abs(number) >= 999.5 else f"{number:.3g}"


def labelled(values) -> dict[str, str]:
    """What was published, as a card shows it: label to words; without labels the one label is empty."""
    values = values if isinstance(values, Mapping) else {"": values}
    values = {str(label): _single(value) for label, value in values.items()}
    return {label: _short(value) if isinstance(value, float) else str(value) for label, value in values.items()}


def plain(values: Mapping[str, str]) -> str:
    """Labels and values on one line."""
    return "; ".join(f"{label}: {value}" if label else value for label, value in values.items())


def columns(card: Claim) -> str:
    """The middle of a card: what the paper found, and what we measured."""
    paper = f'{_list(card.published)}<div style="margin-top:.2em"><i>{escape(card.source)}</i></div>'
    return ('<div style="display:flex;flex-wrap:wrap;gap:.4em 2em;margin:.3em 0">'
            f'{_column("the paper", paper)}{_column("here", _list(card.shown))}</div>')


def conclusion(card: Claim) -> str:
    """The lower part of a card: condition, rival, verdict, kind, seeds."""
    words = condition.in_words(card.terms.condition, card.percentages, lambda label: f"<i>{escape(label)}</i>", escape)
    rival = f"<div>rival: {escape(card.terms.rival)}</div>" if card.terms.rival else ""
    stored = f"<div>▣ {escape(card.stored)}</div>" if card.stored else ""
    facts = " · ".join(map(escape, filter(None, [card.terms.kind, card.tried])))
    return (f'<div>holds when {words}</div><div style="font-size:.85em;margin:.2em 0">{rival}{stored}</div>'
            f'<div>{badge(colour(card), card.verdict)} <span style="font-size:.85em">{facts}</span></div>')


def colour(card: Claim) -> str:
    """Green for *holds*, grey for an expected *does not hold*, red for a surprise."""
    if card.holds != card.terms.expected:
        return BAD
    return GOOD if card.holds else MUTED


def badge(paper: str, words: str) -> str:
    """A mark and the words in white on a verdict's colour, on one line."""
    mark = {GOOD: "✓", MUTED: "–", BAD: "✗"}[paper]
    return (f'<span style="background:{paper};color:#FFFFFF;display:inline-block;padding:.1em .5em;'
            f'border-radius:.3em;white-space:nowrap">{mark}<span> {escape(words)}</span></span>')


def _column(head: str, body: str) -> str:
    """Half of a card; where there is no room for two halves, they stand one below the other."""
    return (f'<div style="flex:1 1 17em;min-width:0"><div style="border-bottom:1px solid {MUTED};margin-bottom:.2em">'
            f'{head}</div>{body}</div>')


def _list(values: Mapping[str, str]) -> str:
    """Label on the left, value on the right; a value that finds no room beside its label stands below it."""
    rows = ""
    for label, value in values.items():
        label = f'<dt style="{_BARE};font-weight:normal;flex:1 1 9em">{escape(label)}</dt>' if label else ""
        rows += ('<div style="display:flex;flex-wrap:wrap;column-gap:1em;margin:0 0 .1em">'
                 f'{label}<dd style="{_BARE};font-weight:bold">{escape(value)}</dd></div>')
    return f'<dl style="{_BARE}">{rows}</dl>'
