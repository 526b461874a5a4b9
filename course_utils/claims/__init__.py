"""Claims: what a paper found, what our miniature finds, and the condition under which we say that it holds.

A notebook registers each claim where it is shown; `collect` reads them back from executed notebooks,
and `table` sets them as one ledger.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

from IPython.display import display

from ..plotting import BAD, GOOD, MUTED

MIME = "application/vnd.attention-course.claim+json"
_ITEM = "margin:0;padding:0;float:none;width:auto"          # of a list in a card, against the styles of pages


class ClaimDoesNotHold(AssertionError):  # noqa: N818 (a verdict, not an error of the program)
    """The measurement contradicts what the notebook says about it."""


@dataclass(frozen=True)
class Claim:
    """One row of the ledger; a notebook shows it as a card."""

    id: str
    says: str
    source: str
    published: dict[str, str]
    measured: dict[str, str]
    holds: bool
    expected: bool = True

    @property
    def verdict(self) -> str:
        """*holds*, *does not hold*, or, when `expected` is false, *does not hold at this scale*."""
        if self.holds:
            return "holds" if self.expected else "holds, against expectation"
        return "does not hold" if self.expected else "does not hold at this scale"

    def __str__(self) -> str:
        return (f"[{self.id}] {self.says}\n  published: {_plain(self.published)} ({self.source})\n"
                f"  measured:  {_plain(self.measured)}\n  verdict:   {self.verdict}")

    __repr__ = __str__

    def _html(self) -> str:
        colour = _colour(self.holds, self.expected)
        paper = f'{_list(self.published)}<div style="margin-top:.3em"><i>{escape(self.source)}</i></div>'
        return (f'<div style="border-left:6px solid {colour};padding:.4em .9em;margin:.5em 0;max-width:44em;'
                'color:inherit">'
                f'<div><b>{escape(self.says)}</b> <code style="white-space:nowrap">{escape(self.id)}</code></div>'
                '<div style="display:flex;flex-wrap:wrap;gap:.5em 2em;margin:.5em 0">'
                f'{_column("the paper", paper)}{_column("here", _list(self.measured))}</div>'
                f'{_badge(self.verdict, colour)}</div>')

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {"text/plain": str(self), "text/html": self._html(),
                MIME: {**asdict(self), "verdict": self.verdict}}


def claim(id: str, says: str, source: str, published, measured, holds, expected: bool = True) -> None:
    """Show a claim as a card, and stop the notebook if it does not turn out as expected.

    Args:
        id: lesson and name, for example ``"02.bleu-by-length"``; unique in the course.
        says: the claim in one sentence.
        source: who published it and where, for example ``"Bahdanau et al. 2015, fig. 2"``.
        published: their number: a short string, or a dict of label to value. Floats show three digits.
        measured: ours, in the same form.
        holds: the condition, a bool (also NumPy's or torch's).
        expected: `False` registers a claim that does *not* hold at this scale. The card says so,
            and the cell then fails if the claim suddenly does hold.

    Raises:
        ClaimDoesNotHold: if `holds` differs from `expected`, after the card is shown.
        TypeError: if `holds` or `expected` is not a bool.
        ValueError: if the id has another form.
    """
    if not re.fullmatch(r"\d\d\.[a-z0-9]+(-[a-z0-9]+)*", id):
        raise ValueError(f"claim id {id!r}; expected the lesson's two digits, a dot and words joined by "
                         "hyphens, for example '02.bleu-by-length'.")
    card = Claim(id, says, source, _labelled(published), _labelled(measured), _truth("holds", holds),
                 _truth("expected", expected))
    display(card)
    if card.holds != card.expected:
        todo = ("Change the experiment, or register the claim with expected=False and teach that."
                if expected else "Remove expected=False, and the text that says it does not hold.")
        raise ClaimDoesNotHold(f"{id} {card.verdict}: {says} Measured: {_plain(card.measured)}. {todo}")


def collect(paths: Iterable[str | Path]) -> list[dict]:
    """Read the claims back from executed notebooks.

    Args:
        paths: ``.ipynb`` files, in the order of the ledger.

    Returns:
        One dict a claim: the fields of `Claim`, ``verdict`` and ``notebook`` (the file's name).

    Raises:
        ValueError: if a notebook shows no claim, or an id occurs twice.
    """
    rows: list[dict] = []
    for path in map(Path, paths):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
        found = [output["data"][MIME] for output in outputs if MIME in output.get("data", {})]
        if not found:
            raise ValueError(f"{path.name} shows no claim. Execute it (course run {path.name[:2]}), "
                             "or leave it out of the list if it has none.")
        rows += [{**row, "notebook": path.name} for row in found]
    first: dict[str, str] = {}
    for row in rows:
        if row["id"] in first:
            raise ValueError(f"claim {row['id']} occurs twice: in {first[row['id']]} and in {row['notebook']}. "
                             "Give one of them another id.")
        first[row["id"]] = row["notebook"]
    return rows


class Table:
    """Rows of the ledger, shown as an HTML table and, as text, in Markdown."""

    heads = ("claim", "source", "published", "measured here", "verdict")

    def __init__(self, rows: Iterable[Mapping]):
        self.rows = list(rows)

    def _cells(self, row: Mapping) -> tuple[str, ...]:
        return (f"{row['id']}: {row['says']}", row["source"], _plain(row["published"]),
                _plain(row["measured"]), row["verdict"])

    def __str__(self) -> str:
        lines = [self.heads, ("---",) * len(self.heads), *map(self._cells, self.rows)]
        return "\n".join("| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in line) + " |"
                         for line in lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        left = 'style="text-align:left;vertical-align:top"'
        body = ""
        for row in self.rows:
            *cells, verdict = self._cells(row)
            cells = [*map(escape, cells), _badge(verdict, _colour(row["holds"], row["expected"]))]
            body += "<tr>" + "".join(f"<td {left}>{cell}</td>" for cell in cells) + "</tr>"
        head = "".join(f'<th scope="col" {left}>{cell}</th>' for cell in self.heads)
        return f'<table style="color:inherit"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def table(rows: Iterable[Mapping]) -> Table:
    """The ledger as something to display; `rows` come from `collect`."""
    return Table(rows)


def _truth(name: str, value) -> bool:
    single = value.item() if getattr(value, "shape", None) == () else value
    if not isinstance(single, bool):
        raise TypeError(f"{name} is {value!r}, a {type(value).__name__}; expected True or False. "
                        "Write the condition as a comparison, for example bleu >= 80.")
    return single


def _labelled(values) -> dict[str, str]:
    values = values if isinstance(values, Mapping) else {"": values}
    return {str(label): _short(value) for label, value in values.items()}


def _short(value) -> str:
    value = value.item() if getattr(value, "shape", None) == () else value
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _plain(values: Mapping[str, str]) -> str:
    return "; ".join(f"{label}: {value}" if label else value for label, value in values.items())


def _column(head: str, body: str) -> str:
    """Half of a card; where there is no room for two halves, they stand one below the other."""
    return (f'<div style="flex:1 1 16em"><div style="border-bottom:1px solid {MUTED};margin-bottom:.3em">{head}</div>'
            f'{body}</div>')


def _list(values: Mapping[str, str]) -> str:
    """Labels on the left, values in a column on the right; a value without a label has the whole width."""
    rows = ""
    for label, value in values.items():
        rows += f'<dt style="{_ITEM};font-weight:normal">{escape(label)}</dt>' if label else ""
        span = "" if label else ";grid-column:1 / -1"
        rows += f'<dd style="{_ITEM};font-weight:bold{span}">{escape(value)}</dd>'
    return f'<dl style="display:grid;grid-template-columns:fit-content(70%) 1fr;gap:.1em 1em;margin:0">{rows}</dl>'


def _colour(holds: bool, expected: bool) -> str:
    if holds != expected:
        return BAD
    return GOOD if holds else MUTED


def _badge(verdict: str, colour: str) -> str:
    mark = {GOOD: "✓", MUTED: "–", BAD: "✗"}[colour]
    return (f'<span style="background:{colour};color:#FFFFFF;display:inline-block;padding:.1em .5em;'
            f'border-radius:.3em">{mark} {escape(verdict)}</span>')
