"""The ledger: all claims of the course, read back from executed notebooks."""

import json
from collections.abc import Iterable
from html import escape
from pathlib import Path

from ..course import numbered, with_claims
from ..widgets.colours import BAD
from . import condition
from .card import MIME, Claim, badge, colour, columns, conclusion, plain
from .stored import EXPERIMENTS

HERE = Path(__file__).parent
LESSONS = EXPERIMENTS.parent / "notebooks"


def collect(paths: Iterable[str | Path] | None = None) -> list[Claim]:
    """Read the claims back from executed notebooks.

    Args:
        paths: ``.ipynb`` files, in the order of the ledger; default: the course's lessons and their further notebooks,
            as they are saved.

    Raises:
        ValueError: if there is no notebook, one is broken or shows no claim, a condition compares what its claim did
            not measure, or an id occurs twice.
    """
    claims: list[Claim] = []
    notebooks: dict[str, str] = {}
    lessons = with_claims(numbered(LESSONS.parent))
    for path in map(Path, lessons if paths is None else paths):
        for card in _cards(path):
            condition.check(card.terms.condition, card.measured, card.shown)
            if card.id in notebooks:
                raise ValueError(f"claim {card.id} occurs twice: in {notebooks[card.id]} and in {path.name}. "
                                 "Give one of them another id.")
            notebooks[card.id] = path.name
            claims.append(card)
    if not claims:
        where = f"in {LESSONS} there is no lesson" if paths is None else "the list of paths is empty"
        raise ValueError(f"no notebook to read claims from: {where}. Give the lessons' files, such as "
                         "notebooks/02_bahdanau_attention.ipynb.")
    return claims


def _cards(path: Path) -> list[Claim]:
    """The claims whose records a notebook's outputs hold."""
    again = f"Execute it (course run {path.name[:2]})"
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        found = [output["data"][MIME] for cell in cells for output in cell.get("outputs", ())
                 if MIME in output.get("data", {})]
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise ValueError(f"{path.name} is not readable as a notebook ({problem!r}). "
                         "Restore it (git restore).") from None
    if not found:
        raise ValueError(f"{path.name} shows no claim. {again}, or leave it out of the list if it has none.")
    cards = []
    for record in found:
        try:
            cards.append(Claim.from_record(record))
        except KeyError as missing:
            raise ValueError(f"{path.name}: claim {record.get('id')!r} was saved without {missing.args[0]}, by an "
                             f"older version of the course. {again}.") from None
    return cards


class Table:
    """The ledger: in HTML a line per lesson, which unfolds and can be filtered; as text, a table in Markdown."""

    heads = ("claim", "source", "published", "measured here", "holds when", "seeds", "verdict")

    def __init__(self, cards: Iterable[Claim]):
        self.cards = list(cards)

    def __str__(self) -> str:
        rows = [(f"{card.id} ({card.terms.kind}): {card.says}", card.source, plain(card.published), plain(card.shown),
                 condition.in_words(card.terms.condition, card.percentages), card.tried, card.verdict)
                for card in self.cards]
        return "\n".join("| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in line) + " |"
                         for line in [self.heads, ("---",) * len(self.heads), *rows])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        style, script = (HERE.joinpath(f"ledger.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
        lessons = sorted({card.id[:2] for card in self.cards})
        body = "".join(_lesson(name, [card for card in self.cards if card.id[:2] == name]) for name in lessons)
        # JupyterLab leaves the keys to what is inside
        return (f'<div class="claims-ledger" data-lm-suppress-shortcuts="true"><style>{style}</style>{body}'
                f"<script>{script}</script></div>")


def table(claims: Iterable[Claim]) -> Table:
    """The ledger as something to display; the claims come from `collect`."""
    return Table(claims)


def _outcome(card: Claim) -> str:
    """How the claim came out here and, if it holds here, at the other seeds."""
    return "does not hold" if not card.holds else "not at every seed" if card.failed_at else "holds"


def _lesson(name: str, cards: list[Claim]) -> str:
    """A line with the counts of a lesson; unfolded, it shows the lesson's claims."""
    counts = ""
    for outcome in ("holds", "not at every seed", "does not hold"):
        found = [card for card in cards if _outcome(card) == outcome]
        worst = BAD if BAD in map(colour, found) else colour(found[0]) if found else ""
        counts += f" <span>{badge(worst, f'{outcome}: {len(found)}') if found else ''}</span>"
    head = "".join(f'<th scope="col">{cell}</th>' for cell in ("verdict", "claim", "kind", "seeds"))
    return (f'<details class="claims-lesson"><summary><b>Lesson {name}</b>{counts}</summary>'
            f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(map(_row, cards))}</tbody></table></details>")


def _row(card: Claim) -> str:
    """A line of a lesson's table; unfolded, it shows the whole card."""
    verdicts = [card.verdict, "not at every seed"] if card.failed_at else [card.verdict]
    kind = card.terms.kind
    return (f'<tr data-lesson="{card.id[:2]}" data-kind="{kind}" data-verdict="{escape("; ".join(verdicts))}">'
            f"<td>{badge(colour(card), 'holds' if card.holds else 'does not hold')}</td>"
            f"<td><details><summary><code>{escape(card.id)}</code> {escape(card.says)}</summary>"
            f"{columns(card)}{conclusion(card)}</details></td>"
            f"<td>{kind}</td><td>{card.trials.short}</td></tr>")
