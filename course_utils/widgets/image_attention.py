"""The image attention: a word, or a pixel of the picture itself, and the region of the picture it looks at."""

import base64
import io
import warnings
from collections.abc import Sequence

import numpy as np
import traitlets
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from .base import CourseWidget, check_cell, check_index, float32, quantised
from .colours import GOOD, INK, KEY, MUTED, QUERY
from .still import paper
from .tensors import read_tokens, read_weights

MOST_PIXELS = 1024  # of a side
MOST_WEIGHTS = 1_000_000  # 2 MB in an exported page, or 2.7 MB as text
FADED = 0.55  # of the picture below the squares
SEEN_THROUGH = 0.5  # of a square's colour: the picture below it stays visible
FULL = 0.92  # side of the largest square in its patch


class ImageAttention(CourseWidget):
    """A query (a word, or a patch of the picture itself), and what it looks at in the picture.

    The weight of a patch is the area of its square; a square that fills its patch is the largest weight of the query.
    Click a word or a patch on the left to ask, point at a patch on the right to read its weight. Keys: arrows, Home
    and End move in the side that has the focus; ``[`` and ``]`` change the head, ``{`` and ``}`` the layer; Escape
    leaves. Python sees the same, and can set it::

        view = ImageAttention(image, weights)                       # self-attention: patches look at patches
        view = ImageAttention(image, weights, rows=caption_words)   # words look at patches
        view                                    # the last line of a cell shows it
        view.cell                               # (12, 35): query and key, numbered row after row
        view.cell = (0, 3)                      # moves the selection on the screen

    A saved or exported notebook does the same without a kernel.

    Args:
        image: ``(H, W)`` grey or ``(H, W, 3)`` red, green, blue, at most 1024 a side: numbers from 0 (black) to 1, or
            integers (uint8) from 0 to 255; a tensor, an array, a PIL image or nested lists.
        weights: ``[T_q, T_k]``, ``[heads, T_q, T_k]`` or ``[layers, heads, T_q, T_k]``, as for `AttentionView`, at
            most a million. The ``T_k`` keys are patches of the picture, row after row. A row may sum to less than one,
            if a key that is no patch was left out (``weights[..., 1:]`` without ``[CLS]``).
        rows: the ``T_q`` words that ask. Default: the patches themselves. What follows an arrow, as in "two → eight",
            shows only while the word is selected.
        asks: what stands above the words, if they are not what asks. Default: "which word asks: click it".
        framed: ``[T_q, T_k]``, boolean: which patches stand in a green outline while a word is selected, such as
            those that it names. Default: none.
        grid: rows and columns of patches, ``(h, w)`` with ``h * w = T_k``. Default: the pixels, if there are as many,
            and otherwise patches as high as they are wide.
        layer, head: those shown first, from 0.
        cell: the pair ``(query, key)`` selected first. Default: the first word, or the patch in the middle, and the
            key to which it gives most.
        title: a line above the pictures. Default: none.

    Attributes:
        layer, head, cell, title: two-way; set them from Python, or observe them. A reader who chooses another query
            selects the key to which it gives most.
        weights: float32 array ``[layers, heads, T_q, T_k]`` (read only).
        rows: the words, a tuple; empty if the patches ask (read only).
        grid: rows and columns of patches (read only).

    Raises:
        ValueError: for an image, weights, words or a grid that do not fit.
        traitlets.TraitError: for a layer, head or cell that does not exist.

    Warns:
        UserWarning: once, if a row sums to more than one.
    """

    _widget = "ImageAttention"
    _files = "image_attention"
    _names = ("_content", "layer", "head", "cell", "title")

    _content = traitlets.Dict().tag(sync=True)
    layer = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    cell = traitlets.Tuple(traitlets.Int(), traitlets.Int(), default_value=(0, 0)).tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)

    def __init__(self, image, weights, rows: Sequence[str] | None = None, grid: tuple[int, int] | None = None,
                 layer: int = 0, head: int = 0, cell: tuple[int, int] | None = None, title: str = "", *,
                 asks: str = "", framed=None):
        self._image, self._weights = _read_image(image), _read_few(weights)
        queries, keys = self._weights.shape[2:]
        grid = _read_grid(grid, keys, self._image.shape[:2])
        _warn_of_large_rows(self._weights)
        if rows is not None:
            rows, _ = read_tokens(self._weights, rows, [""] * keys)
        elif queries != keys:
            raise ValueError(f"weights have {queries} queries and {keys} keys, shape {self._weights.shape}; without "
                             f"rows the {keys} patches are the queries, too. Give the {queries} words as rows.")
        if cell is None:
            query = 0 if rows else grid[0] // 2 * grid[1] + grid[1] // 2
            check_index("layer", layer, self._weights.shape[0])
            check_index("head", head, self._weights.shape[1])
            cell = query, int(self._weights[layer, head, query].argmax())
        self._framed = _read_framed(framed, queries, keys)
        content = {"image": _data_url(self._image), "pixels": self._image.shape[:2], "grid": grid, "rows": rows or [],
                   "asks": asks, "framed": [np.flatnonzero(row).tolist() for row in self._framed],
                   "shape": self._weights.shape} | _sent(self._weights)
        super().__init__(_content=content, layer=layer, head=head, cell=cell, title=title)

    @property
    def weights(self) -> np.ndarray:
        """The weights, float32 ``[layers, heads, T_q, T_k]``, read-only."""
        return self._weights

    @property
    def rows(self) -> tuple[str, ...]:
        """The words that ask; none if the patches do."""
        return tuple(self._content["rows"])

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return tuple(self._content["grid"])

    @traitlets.validate("layer", "head")
    def _head_exists(self, proposal):
        name = proposal["trait"].name
        return check_index(name, proposal["value"], self._weights.shape[("layer", "head").index(name)])

    @traitlets.validate("cell")
    def _cell_exists(self, proposal):
        return check_cell(proposal["value"], self._weights.shape[2:])

    def __repr__(self) -> str:
        layers, heads, queries, _ = self._weights.shape
        return (f"ImageAttention(layers={layers}, heads={heads}, queries={queries}, grid={self.grid}, "
                f"layer={self.layer}, head={self.head}, cell={self.cell})")

    def figure(self) -> Figure:
        """The picture, and what the selected query looks at, as a matplotlib figure for print."""
        (height, width), (rows, columns) = self._image.shape[:2], self.grid
        figure = paper(8.4, 4 * min(1.5, height / width) + 0.8)
        query, key = self.cell
        asks, looks = figure.subplots(1, 2)
        faded = 1 - FADED * (1 - self._image / 255)
        for axes, picture in ((asks, self._image / 255), (looks, faded)):
            axes.imshow(picture, cmap="gray", vmin=0, vmax=1, extent=(0, columns, rows, 0), aspect="auto")
            axes.set_box_aspect(height / width)
            axes.set(xticks=[], yticks=[])
        asks.set_title(f"asks: {self._asking()}", fontsize=11, color=QUERY, parse_math=False)
        looks.set_title("looks at", fontsize=11, color=KEY)
        weights = self._weights[self.layer, self.head, query]
        for place, weight in enumerate(weights / (weights.max() or 1)):
            (y, x), side = divmod(place, columns), FULL * weight**0.5
            corner = x + 0.5 - side / 2, y + 0.5 - side / 2
            looks.add_patch(Rectangle(corner, side, side, facecolor=(KEY, SEEN_THROUGH), edgecolor=KEY, linewidth=1))
        for xs, ys in _outline(self._framed[query].reshape(rows, columns)):
            looks.plot(xs, ys, color=GOOD, linewidth=2.5, clip_on=False)
        frames = [(looks, key, INK)] + [(axes, query, QUERY) for axes in (asks, looks) if not self.rows]
        for axes, place, colour in frames:
            y, x = divmod(place, columns)
            axes.add_patch(Rectangle((x, y), 1, 1, fill=False, edgecolor=colour, linewidth=2.5, clip_on=False))
        figure.supxlabel(f"layer {self.layer}, head {self.head}. Area: weight; the largest square is "
                         f"{self._number(weights.max())}", fontsize=10, color=MUTED)
        return figure

    def _number(self, weight: float) -> str:
        """A word's weight to two decimals; among many pixels weights are small, and get four."""
        return f"{weight:.{2 if self.rows else 4}f}"

    def _place(self, index: int) -> str:
        row, column = divmod(index, self.grid[1])
        return f"row {row}, column {column}"

    def _asking(self) -> str:
        return self.rows[self.cell[0]] if self.rows else self._place(self.cell[0])

    def _export_state(self) -> dict:
        content = self._content | {"weights": quantised(self._weights), "sums": float32(_row_sums(self._weights))}
        return super()._export_state() | {"_content": content}

    def _in_words(self) -> str:
        query, key = self.cell
        weights = self._weights[self.layer, self.head, query]
        (down, across), where = self.grid, f"layer {self.layer}, head {self.head}"
        units = "pixels" if self.grid == self._image.shape[:2] else "patches"
        lines = [f"{self._lead}a picture of {down} by {across} {units}. In {where}, the query {self._asking()} gives "
                 f"{self._number(weights[key])} to {self._place(key)}, and most to:"]
        lines += [f"{self._place(int(k))}: {self._number(weights[k])}" for k in np.argsort(-weights, kind="stable")[:5]]
        return "\n".join([*lines, f"to the whole picture {self._number(weights.sum(dtype=np.float64))}"])


def _read_image(image) -> np.ndarray:
    """The picture in 8 bits, ``(H, W)`` or ``(H, W, 3)``."""
    if getattr(image, "mode", None) == "P":  # a palette's numbers are no colours
        image = image.convert("RGB")
    try:
        array = np.asarray(image.detach().cpu() if hasattr(image, "detach") else image)
        whole = array.dtype == np.uint8
        array = array.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"image cannot be read as an array of numbers: {error}") from None
    if not (array.ndim == 2 or array.ndim == 3 and array.shape[2] == 3) or not array.size:
        first = array.ndim == 3 and array.shape[0] in (1, 3)
        hint = " Channels come last here: image.permute(1, 2, 0); of one channel, image[0]." if first else ""
        raise ValueError(f"image has shape {array.shape}; expected (H, W) or (H, W, 3).{hint}")
    if max(array.shape[:2]) > MOST_PIXELS:
        raise ValueError(f"image has {array.shape[0]} by {array.shape[1]} pixels; at most {MOST_PIXELS} a side can be "
                         "shown. Make it smaller.")
    if whole:
        return array.astype(np.uint8)
    if not np.isfinite(array).all() or array.min() < 0 or array.max() > 1:
        raise ValueError(f"image has numbers from {array.min():g} to {array.max():g}; expected 0 (black) to 1, or "
                         "uint8 from 0 to 255. Divide by the largest value that a pixel can have.")
    return np.rint(array * 255).astype(np.uint8)


def _read_few(weights) -> np.ndarray:
    weights = read_weights(weights)
    if weights.size > MOST_WEIGHTS:
        raise ValueError(f"there are {weights.size:,} weights, shape {weights.shape}; at most {MOST_WEIGHTS:,} can be "
                         "shown over a picture. Choose a layer, weights[-1], or a head.")
    weights.flags.writeable = False  # a change in place could not be drawn
    return weights


def _read_framed(framed, queries: int, keys: int) -> np.ndarray:
    """Which patches are framed for each query, boolean ``[T_q, T_k]``."""
    if framed is None:
        return np.zeros((queries, keys), bool)
    framed = np.asarray(framed)
    if framed.shape != (queries, keys) or framed.dtype != bool:
        raise ValueError(f"framed is {framed.dtype} of shape {framed.shape}; expected boolean ({queries}, {keys}): "
                         "which patches are framed for each query.")
    return framed


def _outline(inside: np.ndarray) -> list[tuple]:
    """The sides of patches with a patch inside on one hand only, as ``(xs, ys)``."""
    padded = np.pad(inside, 1)
    above, left = padded[:-1, 1:-1] != padded[1:, 1:-1], padded[1:-1, :-1] != padded[1:-1, 1:]
    return [((x, x + 1), (y, y)) for y, x in np.argwhere(above)] + [((x, x), (y, y + 1)) for y, x in np.argwhere(left)]


def _row_sums(weights: np.ndarray) -> np.ndarray:
    return weights.sum(axis=-1, dtype=np.float64)


def _sent(weights: np.ndarray) -> dict[str, bytes]:
    """What goes to a live view: the weights, and the sums of their rows."""
    return {"weights": weights.tobytes(), "sums": _row_sums(weights).astype("<f4").tobytes()}


def _warn_of_large_rows(weights: np.ndarray) -> None:
    sums = _row_sums(weights)
    large = np.argwhere(sums > 1.02)
    if len(large):
        layer, head, row = large[0]
        warnings.warn(f"{len(large)} of {sums.size} rows sum to more than one: row {row} (layer {layer}, head {head}) "
                      f"sums to {sums[layer, head, row]:.3g}. Is the softmax over the keys, the last axis?",
                      stacklevel=3)


def _read_grid(grid, keys: int, pixels: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of patches."""
    height, width = pixels
    if grid is None:
        fits = [(keys // columns, columns) for columns in range(1, keys + 1) if keys % columns == 0]
        square = [(rows, columns) for rows, columns in fits if rows * width == columns * height]
        if not square:
            raise ValueError(f"weights have {keys} keys, and {keys} square patches do not fill an image of {height} by "
                             f"{width} pixels. Say how they lie: grid=(rows, columns).")
        return square[0]
    try:
        rows, columns = map(int, grid)
    except (TypeError, ValueError):
        raise ValueError(f"grid is {grid!r:.80}; expected (rows, columns) of patches, as (4, 4).") from None
    if rows < 1 or columns < 1 or rows * columns != keys:
        raise ValueError(f"grid is {rows} by {columns}, {rows * columns} patches, but the weights have {keys} keys.")
    return rows, columns


def _data_url(image: np.ndarray) -> str:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "png", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"
