"""The mask explorer: which query may see which key, what it costs, and how many layers lead from one to another."""

import math
from itertools import pairwise

import numpy as np
import traitlets
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .base import CourseWidget, check_cell
from .colours import INK, KEY, PAPER, QUERY, TEAL
from .still import paper

LENGTHS = (4, 64)
BYTES = 4  # a score is a float32
SEEN, UNSEEN, HOP = TEAL, "#E8EBEF", "#FFE08A"

# Which keys k a query q may see, with length n, window w and stride s. The same table is in mask_explorer.js.
PATTERNS = {
    "full": lambda q, k, n, w, s: q + k >= 0,
    "causal": lambda q, k, n, w, s: k <= q,
    "padding": lambda q, k, n, w, s: (q >= 0) & (k < max(1, n - w)),
    "sliding window": lambda q, k, n, w, s: abs(q - k) <= w,
    "strided": lambda q, k, n, w, s: (k <= q) & ((q - k <= w) | ((q - k) % s == 0)),
    "fixed": lambda q, k, n, w, s: (k <= q) & ((q // s == k // s) | (k % s >= s - w)),
    "dilated": lambda q, k, n, w, s: (abs(q - k) <= w * s) & ((q - k) % s == 0),
    "global tokens": lambda q, k, n, w, s: (abs(q - k) <= w) | (q < s) | (k < s),
    "block recurrence": lambda q, k, n, w, s: (k <= q) & (q // s - k // s <= 1),
}


def mask_pattern(pattern: str, length: int, window: int, stride: int) -> np.ndarray:
    """Who may see whom, boolean ``(length, length)``, ``True`` = may attend; names and sizes as in `MaskExplorer`."""
    q, k = np.ogrid[:length, :length]
    return PATTERNS[pattern](q, k, length, window, stride)


class MaskExplorer(CourseWidget):
    """Which query (row) may see which key (column), how many pairs that is, and how far apart two positions are.

    Click a cell, or use the keys: arrows move, Home and End go to the first and last key, Escape leaves. If the
    query cannot see the key, the fewest layers that carry it there are drawn as a path. Python sees the same, and can
    set it::

        view = MaskExplorer("sliding window", length=32, window=2)
        view                                    # the last line of a cell shows it
        view.mask.sum()                         # 154 of 1024 pairs
        view.cell = (31, 0)                     # query 31, key 0
        len(view.path) - 1                      # 16 layers

    A saved or exported notebook does the same without a kernel.

    The patterns, by name; ``w`` is the window and ``s`` the stride, and positions count from 0:

    - ``full``: every key.
    - ``causal``: the keys up to the query.
    - ``padding``: every key but the last ``w``, which are padding (at least one key is not).
    - ``sliding window``: ``w`` keys on either side (Beltagy et al. 2020, section 3.1).
    - ``strided``: the ``w`` keys before the query, and every ``s``-th before it (Child et al. 2019, section 4.3; there
      ``w`` is ``s``).
    - ``fixed``: the keys before the query in its block of ``s``, and the last ``w`` of every earlier block (the same).
    - ``dilated``: ``w`` keys on either side, ``s`` apart (Beltagy et al. 2020, section 3.1).
    - ``global tokens``: a sliding window, and ``s`` tokens at the start that see all and are seen by all (the same).
    - ``block recurrence``: the keys before the query in its block of ``s`` and in the block before that one (Dai et
      al. 2019, section 3.2).

    Args:
        pattern: one of the names above.
        length: how many positions, 4 to 64.
        window: ``w``, 0 to 64. A pattern without it ignores it.
        stride: ``s``, 1 to 64. A pattern without it ignores it.
        causal: whether keys after the query are hidden, whatever the pattern. Default: no.
        cell: the pair ``(query, key)`` selected first. Default: the last query and the first key.
        title: a line above the explorer. Default: none.

    Attributes:
        pattern, length, window, stride, causal, cell, title: two-way; set them from Python, or observe them. Where
            a smaller ``length`` leaves out the selected query or key, the last one is selected.
        mask: boolean array ``(length, length)``; ``True`` = may attend (read only).
        path: the selected query, the positions on the shortest way, and the selected key; each sees the next.
            ``None`` if no number of layers leads there. Residual connections are not counted (read only).

    Raises:
        traitlets.TraitError: for a pattern, length, window, stride or cell that does not exist.
    """

    _widget = "MaskExplorer"
    _files = "mask_explorer"
    _names = ("pattern", "length", "window", "stride", "causal", "cell", "title")

    pattern = traitlets.Unicode("causal").tag(sync=True)
    length = traitlets.Int(16).tag(sync=True)
    window = traitlets.Int(3).tag(sync=True)
    stride = traitlets.Int(4).tag(sync=True)
    causal = traitlets.Bool(False).tag(sync=True)
    cell = traitlets.Tuple(traitlets.Int(), traitlets.Int(), default_value=(3, 0)).tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)

    def __init__(self, pattern: str = "causal", length: int = 16, window: int = 3, stride: int = 4,
                 causal: bool = False, cell: tuple[int, int] | None = None, title: str = ""):
        super().__init__(pattern=pattern, length=length, window=window, stride=stride, causal=causal, title=title)
        self.cell = (self.length - 1, 0) if cell is None else cell

    @property
    def mask(self) -> np.ndarray:
        """Who may see whom, ``True`` = may attend."""
        seen = mask_pattern(self.pattern, self.length, self.window, self.stride)
        return np.tril(seen) if self.causal else seen

    @property
    def path(self) -> tuple[int, ...] | None:
        """The shortest way from the selected query to the selected key."""
        return _path(self.mask, *self.cell)

    @traitlets.validate("pattern")
    def _pattern_exists(self, proposal):
        if proposal["value"] not in PATTERNS:
            raise traitlets.TraitError(f"pattern is {proposal['value']!r}; expected one of {', '.join(PATTERNS)}.")
        return proposal["value"]

    @traitlets.validate("length", "window", "stride")
    def _number_is_possible(self, proposal):
        name, value = proposal["trait"].name, proposal["value"]
        least = {"length": LENGTHS[0], "window": 0, "stride": 1}[name]
        if not least <= value <= LENGTHS[1]:
            raise traitlets.TraitError(f"{name} is {value}; expected {least} to {LENGTHS[1]}.")
        return value

    @traitlets.validate("cell")
    def _cell_exists(self, proposal):
        return check_cell(proposal["value"], (self.length, self.length))

    @traitlets.observe("length")
    def _cell_is_inside(self, _):
        self.cell = tuple(min(index, self.length - 1) for index in self.cell)

    def __repr__(self) -> str:
        return (f"MaskExplorer({self.pattern!r}, length={self.length}, window={self.window}, stride={self.stride}"
                f"{', causal=True' * self.causal})")

    def figure(self) -> Figure:
        """The mask as a matplotlib figure for print, with the selected pair and the path between the two."""
        figure = paper(5.6, 5.2)
        axes = figure.add_subplot()
        axes.imshow(self.mask, cmap=ListedColormap([UNSEEN, SEEN]), vmin=0, vmax=1)
        edges = np.arange(self.length + 1) - 0.5
        axes.set_xticks(edges, minor=True)
        axes.set_yticks(edges, minor=True)
        axes.grid(which="minor", color=PAPER, linewidth=0.8)
        axes.tick_params(which="both", length=0)
        axes.xaxis.set_label_position("top")
        axes.xaxis.tick_top()
        axes.set_xlabel("key position", color=KEY)
        axes.set_ylabel("query position", color=QUERY)
        for query, key in pairwise(self.path or ()):
            axes.add_patch(Rectangle((key - 0.5, query - 0.5), 1, 1, facecolor=HOP, edgecolor=INK))
        query, key = self.cell
        axes.add_patch(Rectangle((key - 0.5, query - 0.5), 1, 1, fill=False, edgecolor=INK, linewidth=2.5))
        figure.supxlabel(self._pairs(), fontsize=10, color=INK)
        return figure

    def _pairs(self) -> str:
        pairs, all_pairs = int(self.mask.sum()), self.length**2
        return (f"{pairs} of {all_pairs} pairs ({math.floor(100 * pairs / all_pairs + 0.5)}%), "
                f"{BYTES * pairs} of {BYTES * all_pairs} bytes of scores")

    def _in_words(self) -> str:
        query, key = self.cell
        layers = len(self.path) - 1 if self.path else "no number of"
        way = f": {' ← '.join(map(str, self.path))}" if self.path else ""
        pattern = f"{self.pattern}{', causal' * self.causal}"
        return (f"{self._lead}mask {pattern}, length {self.length}, window {self.window}, stride {self.stride}: "
                f"{self._pairs()}.\nQuery {query} is reached by key {key} in {layers} "
                f"layer{'s' * (layers != 1)}{way}.")


def _path(mask: np.ndarray, query: int, key: int) -> tuple[int, ...] | None:
    """The shortest way of at least one step on which every position may attend to the next; ``None`` if none is."""
    came: dict[int, int] = {}  # position: from where it was reached first
    frontier = [query]
    while frontier and key not in came:
        reached = []
        for at in frontier:
            for position in np.flatnonzero(mask[at]).tolist():
                if position not in came:
                    came[position] = at
                    reached.append(position)
        frontier = reached
    if key not in came:
        return None
    path = [came[key], key]
    while path[0] != query:
        path.insert(0, came[path[0]])
    return tuple(path)
