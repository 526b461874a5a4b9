"""The position explorer: how a model is told where a word stands, and what two positions have to do with each other."""


import numpy as np
import traitlets
from matplotlib.figure import Figure

from .base import CourseWidget, check_cell, float32
from .colours import INK, KEY, PAPER, QUERY
from .still import paper
from .tensors import as_array

NAMES = {"sinusoidal": "product", "learned": "product", "rotary": "product", "alibi": "bias"}
LONGEST = 512  # positions; a longer matrix has more cells than the screen has pixels
WIDEST = 1024  # dimensions
HEADS, HEAD = 8, 4  # of ALiBi's heads the one whose bias is shown, counted from 1


class PositionExplorer(CourseWidget):
    """Position encodings side by side: the encoding, the product of every two positions, the product by distance.

    Point at a pair in the matrix or at a distance in the plot, or use the keys: up and down move the query, left and
    right the key, ``[`` and ``]`` both together, so that their distance stays, Home and End the key to the ends,
    Escape leaves. Python sees the same, and can set it::

        view = PositionExplorer("sinusoidal", length=64, d_model=64)
        view                                    # the last line of a cell shows it
        view.cell = (30, 38)                    # another pair at the same distance
        view.kind = "rotary"
        view.products[30, 38]

    A saved or exported notebook does the same without a kernel.

    The encodings, with ``θ_c = 10000^(-2c/d_model)``:

    - ``sinusoidal``: sin(pos · θ_c) in column 2c, cos(pos · θ_c) in column 2c + 1; the product is the dot product of
      two rows (Vaswani et al. 2017, section 3.5).
    - ``learned``: the rows given as ``learned``, and their dot products.
    - ``rotary``: the encoding is cos(pos · θ_c), one column per pair of dimensions; the product is that of a query and
      a key of ones, rotated to their positions, divided by what it is without rotation (Su et al. 2021, section 3.2).
    - ``alibi``: the encoding is the bias by distance, one column per head; the product is the bias, -slope · distance,
      of head 4 of 8, whose slope is 1/16 (Press et al. 2022; here also for keys after the query).

    Args:
        kind: what is shown first.
        length: how many positions, 2 to 512. Default: 64, or as many as ``learned`` has.
        d_model: how many dimensions, even, 2 to 1024. Default: 64, or as many as ``learned`` has.
        learned: ``[length, d_model]``, a tensor or array; without it there is no kind ``learned``.
        cell: the positions ``(query, key)`` selected first. Default: (20, 28), less where that is too far.
        title: a line above the view. Default: none.

    Attributes:
        kind, cell, title: two-way; set them from Python, or observe them.
        length, d_model: the sizes (read only).
        learned: float32 ``[length, d_model]``, or ``None`` (read only).
        encoding: what is drawn on the left, ``[length, columns]`` (read only).
        products: the product of every two positions, ``[length, length]``, one row per query (read only).

    Raises:
        ValueError: for sizes that do not work or are not those of ``learned``, or a ``learned`` that is no matrix.
        traitlets.TraitError: for a kind or a position that does not exist.
    """

    _widget = "PositionExplorer"
    _files = "position_explorer"
    _names = ("_sizes", "_learned", "kind", "cell", "title")

    _sizes = traitlets.Tuple(traitlets.Int(), traitlets.Int()).tag(sync=True)  # length, d_model
    _learned = traitlets.Bytes().tag(sync=True)  # float32, or nothing
    kind = traitlets.Unicode("sinusoidal").tag(sync=True)
    cell = traitlets.Tuple(traitlets.Int(), traitlets.Int()).tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)

    def __init__(self, kind: str = "sinusoidal", length: int | None = None, d_model: int | None = None,
                 learned=None, cell: tuple[int, int] | None = None, title: str = ""):
        values, length, d_model = _checked(learned, length, d_model)
        cell = (min(20, length // 3), min(28, length // 2)) if cell is None else cell
        super().__init__(_sizes=(length, d_model), _learned=values.tobytes(), kind=kind, cell=cell, title=title)

    @property
    def length(self) -> int:
        """How many positions."""
        return self._sizes[0]

    @property
    def d_model(self) -> int:
        """How many dimensions."""
        return self._sizes[1]

    @property
    def learned(self) -> np.ndarray | None:
        """The learned matrix, ``[length, d_model]``."""
        return np.frombuffer(self._learned, "<f4").reshape(self._sizes) if self._learned else None

    @property
    def encoding(self) -> np.ndarray:
        """``[length, columns]``: one row per position; for ``alibi`` a row a distance."""
        return _encoding(self.kind, *self._sizes, self._learned)

    @property
    def products(self) -> np.ndarray:
        """``[length, length]``: one row per query, a column a key."""
        return _products(self.kind, *self._sizes, self._learned)

    @traitlets.validate("kind")
    def _kind_exists(self, proposal):
        kind = proposal["value"]
        if kind not in NAMES:
            raise traitlets.TraitError(f"kind is {kind!r}; expected one of {', '.join(NAMES)}.")
        if kind == "learned" and not self._learned:
            raise traitlets.TraitError("kind is 'learned', but there is no matrix; give one as learned=.")
        return kind

    @traitlets.validate("cell")
    def _cell_exists(self, proposal):
        return check_cell(proposal["value"], (self.length, self.length))

    def __repr__(self) -> str:
        return f"PositionExplorer({self.kind!r}, length={self.length}, d_model={self.d_model}, cell={self.cell})"

    def figure(self) -> Figure:
        """What is shown, as a matplotlib figure for print."""
        return _figure(self.kind, self.encoding, self.products, *self.cell)

    def _export_state(self) -> dict:
        state = super()._export_state()
        return state | {"_learned": float32(np.frombuffer(self._learned, "<f4"))}

    def _in_words(self) -> str:
        (query, key), table = self.cell, self.products
        by_distance = ", ".join(f"{k - query:+d}: {table[query, k]:.2f}" for k in range(self.length)
                                if abs(k - query) in (0, 1, 2, 4, 8, 16, 32, 64))
        return (f"{self._lead}{self.kind} positions, {self.length} positions, {self.d_model} dimensions. "
                f"Query {query}, key {key}, {abs(key - query)} apart: {NAMES[self.kind]} {table[query, key]:.4f}.\n"
                f"{NAMES[self.kind]} of query {query} by distance: {by_distance}")


def _checked(learned, length: int | None, d_model: int | None) -> tuple[np.ndarray, int, int]:
    """The learned matrix as float32 (empty, if there is none), and the sizes, if nothing is wrong."""
    values = np.zeros((0, 0), "<f4") if learned is None else as_array("learned", learned)
    if learned is not None:
        if values.ndim != 2:
            raise ValueError(f"learned has {values.ndim} axes, shape {values.shape}; expected [length, d_model].")
        for name, given, has in zip(("length", "d_model"), (length, d_model), values.shape, strict=True):
            if given is not None and given != has:
                raise ValueError(f"{name} is {given}, but learned has shape {values.shape}; make {name} {has}, or give "
                                 "another learned.")
        if not np.isfinite(values).all():
            raise ValueError("learned holds nan or infinite numbers; expected finite ones.")
        length, d_model = values.shape
    length, d_model = (64 if size is None else size for size in (length, d_model))
    if not 2 <= length <= LONGEST:
        raise ValueError(f"length is {length}; expected 2 to {LONGEST} positions.")
    if not 2 <= d_model <= WIDEST or d_model % 2:
        raise ValueError(f"d_model is {d_model}; expected an even number from 2 to {WIDEST}: dimensions come in pairs.")
    return values, int(length), int(d_model)


def _angles(length: int, d_model: int) -> np.ndarray:
    """``[length, d_model / 2]``: position times frequency."""
    return np.arange(length)[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)


def _encoding(kind: str, length: int, d_model: int, learned: bytes = b"") -> np.ndarray:
    """What is drawn on the left, ``[length, columns]``; the same as ``encodingOf`` in position_explorer.js."""
    if kind == "learned":
        return np.frombuffer(learned, "<f4").reshape(length, d_model).astype(np.float64)
    if kind == "alibi":
        return -np.arange(length)[:, None] * 2.0 ** (-8 * np.arange(1, HEADS + 1) / HEADS)
    angles = _angles(length, d_model)
    if kind == "rotary":
        return np.cos(angles)
    return np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(length, d_model)


def _products(kind: str, length: int, d_model: int, learned: bytes = b"") -> np.ndarray:
    """The product of every two positions, ``[length, length]``; the same as ``productsOf`` in position_explorer.js."""
    if kind == "alibi":
        position = np.arange(length)
        return -np.abs(position[:, None] - position) * 2.0 ** (-8 * HEAD / HEADS)
    if kind == "rotary":  # the pair (1, 1), turned by an angle: its product with itself, turned by another
        angles = _angles(length, d_model)
        turned = np.concatenate([np.cos(angles) - np.sin(angles), np.sin(angles) + np.cos(angles)], axis=1)
        return turned @ turned.T / d_model
    rows = _encoding(kind, length, d_model, learned)
    return rows @ rows.T


def _figure(kind: str, left: np.ndarray, table: np.ndarray, query: int, key: int) -> Figure:
    length, columns = left.shape
    figure = paper(11, 3.6)
    picture, matrix, plot = figure.subplots(1, 3)
    distance = np.arange(length)
    for axes, values, names in ((picture, left, ("head" if kind == "alibi" else "column",
                                                 "distance" if kind == "alibi" else "position")),
                                (matrix, table, ("key", "query"))):
        drawn = axes.imshow(values, aspect="auto", cmap="cividis", interpolation="nearest",
                            extent=(-0.5, values.shape[1] - 0.5, length - 0.5, -0.5))
        figure.colorbar(drawn, ax=axes, shrink=0.8)
        axes.set(xlabel=names[0], ylabel=names[1])
    if kind == "alibi":
        picture.set_xticks(range(HEADS), range(1, HEADS + 1))
        rows = ((abs(key - query), INK),)
    else:
        rows = ((query, QUERY), (key, KEY))
    for row, color in rows:
        picture.axhline(row, color=PAPER, linewidth=5)
        picture.axhline(row, color=color, linewidth=3, linestyle="--" if color == KEY else "-")
    matrix.axhline(query, color=QUERY, linewidth=2.5)
    matrix.axvline(key, color=KEY, linewidth=2.5, linestyle="--")
    matrix.plot([key], [query], "s", color=PAPER, markeredgecolor=INK, markersize=8)
    every = np.arange(1 - length, length)
    low, high = zip(*((line.min(), line.max()) for line in map(table.diagonal, every)), strict=True)
    plot.fill_between(every, low, high, color="#C9CED6", edgecolor="#A3A9B5")
    plot.plot(distance - query, table[query], color=QUERY)
    plot.plot([key - query], [table[query, key]], "s", color=PAPER, markeredgecolor=INK, markersize=8)
    plot.set(xlabel="distance: key − query", ylabel=NAMES[kind])
    plot.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{kind}: query {query}, key {key}, {NAMES[kind]} {table[query, key]:.4f}", fontsize=11)
    return figure
