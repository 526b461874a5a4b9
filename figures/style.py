"""The drawings' visual language: a card, boxes, arrows and text, in pixels, written as SVG.

A drawing is a matplotlib axes whose unit is the pixel, with ``(0, 0)`` at the top left. Text becomes outlines, so a
figure looks the same on every machine; its words are kept as comments in the file and as the alternative text.
"""

import re
from html import escape
from io import StringIO

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Ellipse, FancyArrowPatch, FancyBboxPatch, Polygon
from matplotlib.textpath import text_to_path

from course_utils.plotting import GOOD, INK, PAPER

BAND = "#F3F4F6"
"""Background of a region: a step, a panel, a column."""
RULE = "#A3A9B5"
"""Lines in the background."""
SHOWN = 900
"""Width in pixels at which a figure is normally seen."""
SMALLEST = 13
"""Smallest type, in pixels at that width. Subscripts are 0.7 of their line, so formulas need 20."""

RC = {
    "svg.fonttype": "path",
    "svg.hashsalt": "attention-course",
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "stix",
    "path.simplify": False,
    "figure.constrained_layout.use": False,
}


def tint(color: str, amount: float = 0.14) -> str:
    """Mix ``amount`` (0 to 1) of a colour into paper."""
    return to_hex([1 - amount * (1 - part) for part in to_rgb(color)])


def card(height: int, width: int = 960) -> Axes:
    """An empty figure: a white card with round corners, on nothing. Its unit is the pixel, y grows downwards."""
    with rc_context(RC):
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
        figure.patch.set_visible(False)
        axes.set_axis_off()
    box(axes, width / 2, height / 2, width, height, fill=PAPER, edge="none", corner=14)
    return axes


def _add(axes: Axes, patch):
    axes.add_artist(patch)
    patch.set_clip_path(None)
    patch.set_clip_on(False)


def text(axes: Axes, x: float, y: float, words: str, size: float = 16, color: str = INK, weight: str = "normal",
         align: str = "center", slant: str = "normal", code: bool = False):
    """Write ``words`` (``$...$`` is mathtext) with the middle of its letters at ``y``; names of code in code's type."""
    with rc_context(RC | {"font.family": "DejaVu Sans Mono"} if code else RC):
        axes.text(x, y + 0.35 * size, words, fontsize=size, color=color, weight=weight, ha=align, va="baseline",
                  style=slant)


def text_width(words: str, size: float = 16, weight: str = "normal") -> float:
    """Width of ``words`` in pixels."""
    font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    return text_to_path.get_text_width_height_descent(words, font, False)[0]


def box(axes: Axes, x: float, y: float, width: float, height: float, color: str = INK, label: str = "",
        size: float = 16, fill: str | None = None, edge: str | None = None, text_color: str | None = None,
        line: float = 1.8, dashed: bool = False, corner: float = 7, weight: str = "normal"):
    """A rounded box around ``(x, y)``, filled with a tint of its colour, with a label."""
    _add(axes, FancyBboxPatch(
        (x - width / 2, y - height / 2), width, height, boxstyle=f"round,pad=0,rounding_size={corner}",
        facecolor=tint(color) if fill is None else fill, edgecolor=color if edge is None else edge, linewidth=line,
        linestyle=(0, (4, 3)) if dashed else "solid"))
    if label:
        text(axes, x, y, label, size, text_color or INK, weight)


def disc(axes: Axes, x: float, y: float, label: str, color: str = INK, radius: float = 14, size: float = 18,
         fill: str = PAPER, text_color: str | None = None, weight: str = "normal"):
    """A circle: an operation, or the number of a step."""
    _add(axes, Ellipse((x, y), 2 * radius, 2 * radius, facecolor=fill, edgecolor=color, linewidth=1.8))
    text(axes, x, y, label, size, text_color or color, weight)


def step(axes: Axes, x: float, y: float, number: int, title: str, color: str = INK):
    """A numbered heading, centred on ``x``."""
    width = text_width(title, 17, "bold")
    left = x - (width + 32) / 2
    disc(axes, left + 12, y, str(number), color, radius=12, size=15, fill=color, text_color=PAPER, weight="bold")
    text(axes, left + 32, y, title, 17, INK, "bold", align="left")


def arrow(axes: Axes, start: tuple, end: tuple, color: str = INK, line: float = 1.8, bend: float = 0.0,
          dashed: bool = False, head: bool = True, alpha: float = 1.0):
    """An arrow (or, without a head, a line); ``bend`` curves it, to either side by sign."""
    _add(axes, FancyArrowPatch(
        start, end, arrowstyle=f"-|>,head_length={5 + 2 * line},head_width={2.4 + 1.1 * line}" if head else "-",
        connectionstyle=f"arc3,rad={bend}", mutation_scale=1, shrinkA=0, shrinkB=0, color=color, linewidth=line,
        linestyle=(0, (4, 3)) if dashed else "solid", joinstyle="miter", capstyle="butt", alpha=alpha))


def path(axes: Axes, *points: tuple, color: str = INK, line: float = 1.8, dashed: bool = False, head: bool = True):
    """A line with corners through ``points``; the arrow's head sits on the last."""
    _add(axes, Polygon(points[:-1] if head else points, closed=False, fill=False, edgecolor=color, linewidth=line,
                       linestyle=(0, (4, 3)) if dashed else "solid", joinstyle="round"))
    if head:
        arrow(axes, points[-2], points[-1], color, line, dashed=dashed)


def dashes(axes: Axes, *points: tuple, color: str, line: float = 1.8):
    """A dashed path whose head is whole."""
    (x, y), (end_x, end_y) = points[-2:]
    part = min(1, 13 / ((end_x - x) ** 2 + (end_y - y) ** 2) ** 0.5)
    neck = (end_x - part * (end_x - x), end_y - part * (end_y - y))
    path(axes, *points[:-1], neck, color=color, line=line, dashed=True, head=False)
    arrow(axes, neck, points[-1], color, line)


def area(axes: Axes, *points: tuple, fill: str = BAND):
    """A filled shape without an outline."""
    _add(axes, Polygon(points, closed=True, facecolor=fill, edgecolor="none"))


def grid(axes: Axes, left: float, top: float, values, color: str, cell: tuple = (16, 16), frame: float = 1.8):
    """A matrix as cells, each tinted by its value from 0 to 1."""
    rows, columns = len(values), len(values[0])
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            x, y = left + j * cell[0], top + i * cell[1]
            area(axes, (x, y), (x + cell[0], y), (x + cell[0], y + cell[1]), (x, y + cell[1]),
                 fill=tint(color, round(0.06 + 0.62 * float(value), 2)))
    box(axes, left + columns * cell[0] / 2, top + rows * cell[1] / 2, columns * cell[0], rows * cell[1], color,
        fill="none", corner=2, line=frame)


def checks(axes: Axes, left: float, top: float, mask, cell: float = 36):
    """A mask: a filled cell with a check mark is ``True``, an empty one ``False``."""
    for i, row in enumerate(mask):
        for j, may in enumerate(row):
            x, y = left + (j + 0.5) * cell, top + (i + 0.5) * cell
            box(axes, x, y, cell - 3, cell - 3, fill=tint(GOOD, 0.75) if may else BAND, edge=GOOD if may else RULE,
                corner=3, line=1.2)
            if may:
                text(axes, x, y, "✓", 17, PAPER, "bold")


def svg(axes: Axes, name: str, alt: str) -> str:
    """The drawing as SVG with its alternative text; ``alt``'s first sentence is the title.

    The same drawing gives the same bytes: no date, no random ids, coordinates rounded to a thousandth of a pixel.
    """
    out = StringIO()
    with rc_context(RC):
        axes.figure.savefig(out, format="svg", dpi=72, metadata={"Date": None})
    width, height = (round(72 * inches) for inches in axes.figure.get_size_inches())
    body = out.getvalue().partition("</metadata>")[2].strip()
    body = re.sub(r"-?\d+\.\d{4,}", lambda number: f"{float(number[0]):.3f}".rstrip("0").rstrip("."), body)
    body = re.sub(r"scale\(0\.016\)", "scale(0.015625)", body)            # a glyph's unit, 1/64, keeps its digits
    body = re.sub(r"[ \t]+$", "", body, flags=re.MULTILINE)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="{width}" '
            f'height="{height}" viewBox="0 0 {width} {height}" role="img" '
            f'aria-labelledby="title-{name} desc-{name}">\n'
            f' <title id="title-{name}">{escape(alt.split(". ")[0].rstrip("."))}</title>\n'
            f' <desc id="desc-{name}">{escape(alt)}</desc>\n {body}\n')
