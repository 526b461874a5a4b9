"""Colours, style and the few plots that several notebooks share."""

import base64
import io
import time
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
from IPython import get_ipython
from IPython.display import display
from matplotlib.figure import Figure

from .widgets.colours import BAD, GOOD, INK, KEY, MUTED, PAPER, QUERY, TEAL, VALUE
from .widgets.still import attention_heatmap

__all__ = [
    "BAD", "GOOD", "INK", "KEY", "LINES", "MARKERS", "MUTED", "PAPER", "QUERY", "VALUE", "LiveCurve",
    "attention_heatmap", "bars_of_runs", "in_notebook", "plot_groups", "plot_runs", "show", "smooth",
    "use_course_style",
]

LINES = (INK, GOOD, BAD, TEAL, "#8A6100", MUTED)        # not the colours of query, key and value
SMOOTHED = 25                                           # losses whose mean is a point of a smooth curve
MARKERS = ("o", "s", "^", "D", "v", "P")


def use_course_style() -> None:
    """Large type, few lines, the course's colours; called by ``setup``."""
    plt.rcParams.update({
        "figure.figsize": (8, 4.2), "figure.dpi": 100, "savefig.dpi": 100, "figure.constrained_layout.use": True,
        "font.size": 13, "axes.titlesize": 14, "axes.titleweight": "bold", "axes.titlelocation": "left",
        "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": MUTED, "axes.labelcolor": INK,
        "axes.prop_cycle": plt.cycler(color=LINES), "axes.grid": True, "axes.axisbelow": True,
        "grid.color": "#E5E7EB", "text.color": INK, "xtick.color": INK, "ytick.color": INK,
        "lines.linewidth": 2.2, "lines.markersize": 7, "legend.frameon": False, "image.cmap": "cividis",
    })


def show(figure: Figure, alt: str) -> None:
    """Display a figure as a picture with a text alternative, and close it.

    Args:
        figure: what to show.
        alt: what the picture shows, for those who do not see it.
    """
    display(_picture(figure, alt), raw=True)


def _picture(figure: Figure, alt: str) -> dict[str, str]:
    """What to display; closes the figure. HTML with a PNG inside, because JupyterLab gives a bare PNG no ``alt``."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", facecolor=PAPER)
    plt.close(figure)
    png = base64.b64encode(buffer.getvalue()).decode("ascii")
    return {"text/html": f'<img alt="{escape(alt)}" src="data:image/png;base64,{png}">', "text/plain": alt}


def in_notebook() -> bool:
    """Whether this runs in a notebook's kernel (and not in a terminal or a test)."""
    return getattr(get_ipython(), "kernel", None) is not None


def smooth(values: Sequence[float]) -> list[float]:
    """Running mean over the last ``SMOOTHED`` values."""
    sums = np.cumsum([0.0, *values])
    return [float(sums[i] - sums[max(0, i - SMOOTHED)]) / min(i, SMOOTHED) for i in range(1, len(values) + 1)]


class LiveCurve:
    """A loss curve, redrawn every three seconds, a thirtieth of the time at most; does nothing outside a notebook.

    The loss is in nats per ``unit``, on a log axis if all are above 0. ``before_first`` is called before the picture.
    """

    def __init__(self, label: str, steps: int, unit: str = "token",
                 before_first: Callable[[], None] = lambda: None):
        self.label, self.steps, self.unit, self.before_first = label, steps, unit, before_first
        self.due, self.handle = time.monotonic() + 3, None

    def update(self, loss: Sequence[float], final: bool = False) -> None:
        """Draw the losses so far if it is time to, or if these are the ``final`` ones."""
        started = time.monotonic()
        if not loss or not in_notebook() or not (final or started > self.due):
            return
        figure, axes = plt.subplots(figsize=(9, 2.8))
        axes.plot(loss, color=MUTED, alpha=0.35, linewidth=1)
        smoothed = smooth(loss)
        axes.plot(smoothed, color=VALUE)
        axes.set(title=f"{self.label}: loss {smoothed[-1]:.2f}", xlabel="step", ylabel=f"nats per {self.unit}",
                 xlim=(0, self.steps))
        if min(loss) > 0:
            axes.set(yscale="log", ylim=(min(smoothed) / 2, None))
            axes.yaxis.set(major_locator=plt.LogLocator(subs=(1, 3)), major_formatter="{x:g}", minor_formatter="")
        alt = f"Training loss of {self.label}: from {loss[0]:.2f} to {smoothed[-1]:.2f} nats per {self.unit} " \
              f"in {len(loss)} steps."
        if self.handle is None:
            self.before_first()
            self.handle = display(_picture(figure, alt), raw=True, display_id=True)
        else:
            self.handle.update(_picture(figure, alt), raw=True)
        ended = time.monotonic()
        self.due = ended + max(3, 30 * (ended - started))


def bars_of_runs(axes, rows: Mapping[str, Sequence[float]], colours: Sequence[str], form: str = "{:.0f}",
                 gap: float = 2, fontsize: int = 14) -> None:
    """Horizontal bars, a name and its runs each, from the top: their mean, a dot for each run, and ``gap`` behind the
    last dot the mean as ``form`` writes it; the defaults are those of an axis that ends near 100.
    """
    for i, ((_, runs), colour) in enumerate(zip(rows.items(), colours, strict=True)):
        mean = sum(runs) / len(runs)
        axes.barh(-i, mean, color=colour)
        axes.plot(runs, [-i] * len(runs), "o", color=INK, markersize=6)
        axes.text(max(runs) + gap, -i, form.format(mean), va="center", fontweight="bold", fontsize=fontsize)
    axes.set_yticks([-i for i in range(len(rows))], rows, fontsize=fontsize)
    axes.tick_params(axis="x", labelsize=fontsize - 2)
    axes.grid(visible=False, axis="y")


def plot_groups(results: Mapping[str, Mapping[str, float]], xlabel: str, ylabel: str,
                colours: Sequence[str] = LINES) -> Figure:
    """One line per model over groups such as sentence lengths, each labelled at its right end.

    Args:
        results: ``{model: {group: value}}``; all models over the same groups.
        xlabel, ylabel: the words on the axes, with units.
        colours: one for each model, so that it keeps its colour across plots.
    """
    if len({tuple(values) for values in results.values()}) != 1:
        raise ValueError(f"each line needs the same groups; given {[list(values) for values in results.values()]}.")
    figure, axes = plt.subplots()
    ends = []
    for (name, values), colour, marker in zip(results.items(), cycle(colours), cycle(MARKERS), strict=False):
        axes.plot(list(values), list(values.values()), marker=marker, color=colour)
        ends.append((list(values.values())[-1], 1, name, colour))
    axes.set(xlabel=xlabel, ylabel=ylabel, ylim=(0, None))
    _name_ends(axes, ends, 0.07, xycoords=("axes fraction", "data"), xytext=(8, 0))
    return figure


def _name_ends(axes, ends: Sequence[tuple], apart: float, **style) -> None:
    """A name at each line's end ``(height, place, name, colour)``, pushed up where lines end together.

    ``apart``: by how much, as a share of the axes' height.
    """
    low, high = axes.get_ylim()
    last: dict[float, float] = {}
    for height, at, name, colour in sorted(ends):
        last[at] = height = max(height, last.get(at, -np.inf) + apart * (high - low))
        axes.annotate(name, (at, height), textcoords="offset points", va="center", color=colour, fontweight="bold",
                      **style)


def plot_runs(results: Mapping[str, Mapping[int, Sequence[float]]], xlabel: str, ylabel: str,
              colours: Sequence[str] = LINES, guessing: float | None = None) -> Figure:
    """One line per method over a logarithmic axis: the mean of its runs, with a band from the lowest to the highest.

    Args:
        results: ``{method: {number: [value of each run]}}``; each line is named at its right end.
        xlabel, ylabel: the words on the axes, with units.
        colours: one for each method; fewer are taken again from the first on.
        guessing: where a dotted line is drawn.

    Raises:
        ValueError: if there is no method, one has no run, or not as many at each number.
    """
    if not results:
        raise ValueError("No method is given; expected at least one.")
    for name, runs in results.items():
        if len(counts := {len(values) for values in runs.values()}) != 1 or 0 in counts:
            raise ValueError(f"{name} has {({n: len(values) for n, values in runs.items()})} runs; expected as many at "
                             "each number, at least one.")
    figure, axes = plt.subplots(figsize=(11, 5.4))
    numbers, ends = sorted({n for runs in results.values() for n in runs}), []
    for (name, runs), colour, marker in zip(results.items(), cycle(colours), cycle(MARKERS), strict=False):
        values = np.array([*runs.values()])                                     # (numbers, runs)
        axes.plot([*runs], values.mean(axis=1), marker=marker, color=colour)
        axes.fill_between([*runs], values.min(axis=1), values.max(axis=1), color=colour, alpha=0.15, linewidth=0)
        ends.append((float(values[-1].mean()), [*runs][-1], name, colour))
    axes.set(xscale="log", xlabel=xlabel, ylabel=ylabel, xlim=(0.9 * numbers[0], 3.2 * numbers[-1]))
    _name_ends(axes, ends, 0.06, xytext=(12, 0), fontsize=17)
    axes.set_xticks(numbers, [f"{n:,}" for n in numbers])
    axes.minorticks_off()
    if guessing is not None:
        axes.axhline(guessing, color=MUTED, linestyle=":")
    return figure
