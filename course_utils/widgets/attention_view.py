"""The attention view: weights as a matrix or as links, to be pointed at, stepped through and read from Python."""

import warnings
from collections.abc import Iterable, Sequence

import numpy as np
import torch
import traitlets

from .base import CourseWidget, javascript, quantised, stylesheet
from .still import matrix_picture

AXES = ("layer", "head", "row (query)", "column (key)")


class AttentionView(CourseWidget):
    """Attention weights between tokens: a matrix or links, for one layer and head at a time.

    Point at a cell or a token, or use the keys: arrows, Home and End move; ``[`` and ``]`` change the head, ``{``
    and ``}`` the layer; ``v`` changes the view; Escape leaves. Python sees what is selected, and can select::

        view = AttentionView(weights, rows=target, columns=source, alignment=pair.links)
        view                                    # the last line of a cell shows it
        view.cell                               # (4, 6): the row and column last pointed at
        view.cell = (0, 1)                      # moves the selection on the screen
        view.observe(print, "cell")             # called at every move

    In a saved or exported notebook the view stays interactive without a kernel, with weights of 16 bits (off by
    at most 7.6e-6); live, they are exact float32.

    Args:
        weights: ``[T_q, T_k]``, ``[heads, T_q, T_k]`` or ``[layers, heads, T_q, T_k]``: a tensor (any device and
            floating type), an array or nested lists. Not negative, finite; a row is a softmax over the keys and
            sums to one, or is all zero (fully masked).
        rows: the ``T_q`` query (target) tokens.
        columns: the ``T_k`` key (source) tokens. Default: the rows (self-attention).
        alignment: true links as pairs ``(row, column)``, zero-based, drawn on top. Default: none.
        layer: the layer shown first, from 0.
        head: the head shown first, from 0.
        cell: the pair ``(row, column)`` selected first. Default: of each row's strongest key, the strongest off
            the diagonal, because a view should show something at once.
        view: ``"matrix"`` or ``"links"``.
        title: a line above the view. Default: none.

    Attributes:
        cell, layer, head, view, title: two-way; set them from Python, or observe them. ``cell`` may be ``None``.
        weights: float32 array ``[layers, heads, T_q, T_k]``; assign other weights with the same tokens to draw
            them in place, or call ``set_weights`` to change the tokens too.
        rows, columns, alignment: as given (tuples); change them with ``set_weights``.

    Raises:
        ValueError: for weights that are not finite, negative, empty or of the wrong number of axes; for tokens
            that do not fit an axis; for an alignment outside the matrix.
        traitlets.TraitError: for a cell, layer, head or view that does not exist.

    Warns:
        UserWarning: once, if a row sums neither to one nor to zero.
    """

    _widget = "AttentionView"
    _files = "attention_view"
    _names = ("_content", "cell", "layer", "head", "view", "title")
    _esm = javascript(_files) + f"\nexport default liveHost({_widget}, {list(_names)!r});\n"
    _css = stylesheet(_files)

    # shape, float32 bytes, end of the colour scale, tokens and alignment: one trait, so that they change together
    _content = traitlets.Dict().tag(sync=True)
    cell = traitlets.Tuple(traitlets.Int(), traitlets.Int(), allow_none=True, default_value=None).tag(sync=True)
    layer = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    view = traitlets.Enum(("matrix", "links"), "matrix").tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self,
        weights,
        rows: Sequence[str],
        columns: Sequence[str] | None = None,
        alignment: Iterable[tuple[int, int]] | None = None,
        layer: int = 0,
        head: int = 0,
        cell: tuple[int, int] | None = None,
        view: str = "matrix",
        title: str = "",
    ):
        content = _content(weights, rows, columns, alignment)
        _check_index("layer", layer, content["shape"][0])
        _check_index("head", head, content["shape"][1])
        if cell is None:
            cell = _telling_cell(_array(content)[layer, head])
        super().__init__(_content=content, layer=layer, head=head, cell=cell, view=view, title=title)

    def set_weights(self, weights, rows=None, columns=None, alignment=None) -> None:
        """Show other weights in the same place.

        Args:
            weights: as for the constructor.
            rows: default: the present ones.
            columns: default: the present ones if ``rows`` is not given either, otherwise the rows.
            alignment: default: the present one if the tokens stay, otherwise none.

        The selection stays where it is if that place still exists; otherwise the layer or head goes back to 0,
        and the cell to the one that a new view would choose.
        """
        if rows is None:
            rows = self.rows
            columns = self.columns if columns is None else columns
            if alignment is None and tuple(columns) == self.columns:
                alignment = self.alignment
        content = _content(weights, rows, columns, alignment)
        layers, heads, n_rows, n_columns = content["shape"]
        layer = self.layer if self.layer < layers else 0
        head = self.head if self.head < heads else 0
        cell = self.cell
        if cell and not (cell[0] < n_rows and cell[1] < n_columns):
            cell = _telling_cell(_array(content)[layer, head])
        with self.hold_sync(), self.hold_trait_notifications():
            self._content = content
            self.layer, self.head, self.cell = layer, head, cell

    @property
    def weights(self) -> np.ndarray:
        """The weights, float32 ``[layers, heads, T_q, T_k]``, read-only; assign to replace them."""
        return _array(self._content)

    @weights.setter
    def weights(self, weights) -> None:
        self.set_weights(weights)

    @property
    def rows(self) -> tuple[str, ...]:
        """The query tokens."""
        return tuple(self._content["rows"])

    @property
    def columns(self) -> tuple[str, ...]:
        """The key tokens."""
        return tuple(self._content["columns"])

    @property
    def alignment(self) -> tuple[tuple[int, int], ...]:
        """The true links, pairs ``(row, column)``."""
        return tuple(map(tuple, self._content["alignment"]))

    @traitlets.validate("layer")
    def _layer_exists(self, proposal):
        return _check_index("layer", proposal["value"], self._content["shape"][0])

    @traitlets.validate("head")
    def _head_exists(self, proposal):
        return _check_index("head", proposal["value"], self._content["shape"][1])

    @traitlets.validate("cell")
    def _cell_exists(self, proposal):
        if proposal["value"] is not None:
            for axis, index in zip(("row", "column"), proposal["value"], strict=True):
                _check_index(axis, index, self._content["shape"][2 if axis == "row" else 3])
        return proposal["value"]

    def __repr__(self) -> str:
        sizes = zip(("layers", "heads", "queries", "keys"), self._content["shape"], strict=True)
        return f"AttentionView({', '.join(f'{name}={size}' for name, size in sizes)})"

    def _export_state(self) -> dict:
        content = {**self._content, "weights": quantised(self.weights)}
        return {name: getattr(self, name) for name in self._names} | {"_content": content}

    def _still(self) -> bytes:
        shown = self.weights[self.layer, self.head]
        return matrix_picture(shown, self.rows, self.columns, self._content["top"], self.alignment)

    def _in_words(self) -> str:
        layers, heads, n_rows, n_columns = self._content["shape"]
        where = f"layer {self.layer}, head {self.head}, " if layers * heads > 1 else ""
        title = f"{self.title}: " if self.title else ""
        lines = [f"{title}attention weights, {where}{n_rows} queries by {n_columns} keys. Largest in each row:"]
        for token, row in list(zip(self.rows, self.weights[self.layer, self.head], strict=True))[:40]:
            lines.append(f"{token} → {self.columns[row.argmax()]} {row.max():.3f}")
        return "\n".join(lines + ["…"] * (n_rows > 40))


def _array(content: dict) -> np.ndarray:
    return np.frombuffer(content["weights"], dtype="<f4").reshape(content["shape"])


def _content(weights, rows, columns, alignment) -> dict:
    """Check everything that describes one tensor, and put it into the form in which it travels."""
    weights = _as_weights(weights)
    rows = [str(token) for token in rows]
    columns = rows if columns is None else [str(token) for token in columns]
    for name, axis, tokens in (("rows", 2, rows), ("columns", 3, columns)):
        if len(tokens) != weights.shape[axis]:
            said = f"{len(tokens)} tokens in {name}"
            if name == "columns" and columns is rows:
                said = f"columns are the {len(rows)} tokens in rows (no columns were given)"
            raise ValueError(
                f"{said}, but the weights have {weights.shape[axis]} {AXES[axis]}s: shape {weights.shape} is "
                f"[layers, heads, T_q, T_k]. Rows are queries (target), columns are keys (source)."
            )
    links = sorted((int(i), int(j)) for i, j in (() if alignment is None else alignment))
    for i, j in links:
        if not (0 <= i < len(rows) and 0 <= j < len(columns)):
            raise ValueError(
                f"alignment has ({i}, {j}), outside {len(rows)} rows and {len(columns)} columns. "
                "Links are (row, column) = (target position, source position), from 0."
            )
    _warn_of_odd_rows(weights)
    largest = float(weights.max())
    return {
        "shape": list(weights.shape),
        "weights": weights.tobytes(),
        # one colour scale for all layers and heads; 0 to 1, unless that would leave all of them dark
        "top": 1.0 if largest >= 0.5 or largest == 0 else largest,
        "rows": rows,
        "columns": columns,
        "alignment": [list(link) for link in links],
    }


def _as_weights(weights) -> np.ndarray:
    """Float32 ``[layers, heads, T_q, T_k]`` of what was given, checked."""
    if isinstance(weights, torch.Tensor):
        weights = weights.detach().to("cpu", torch.float32).numpy()
    try:
        weights = np.array(weights, dtype="<f4", order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(f"weights cannot be read as an array of numbers: {error}") from None
    if not 2 <= weights.ndim <= 4:
        raise ValueError(
            f"weights have {weights.ndim} axes, shape {weights.shape}; expected [T_q, T_k], [heads, T_q, T_k] or "
            "[layers, heads, T_q, T_k]. Of a batch, choose one example."
        )
    weights = weights.reshape((1,) * (4 - weights.ndim) + weights.shape)
    for axis, size in zip(AXES, weights.shape, strict=True):
        if size == 0:
            raise ValueError(f"weights have no {axis}: shape {weights.shape}. There is nothing to show.")
    _reject(weights, ~np.isfinite(weights), "expected finite numbers; is a row fully masked before the softmax?")
    _reject(weights, weights < 0, "expected weights from 0 to 1: give what the softmax returns, not the scores.")
    return weights


def _warn_of_odd_rows(weights: np.ndarray) -> None:
    sums = weights.sum(axis=-1, dtype=np.float64)
    # bfloat16 keeps 8 bits, so a row of such weights may be off by some thousandths
    odd = np.argwhere((np.abs(sums - 1) > 0.02) & (sums != 0))
    if len(odd):
        layer, head, row = odd[0]
        message = f"{len(odd)} of {sums.size} rows do not sum to one: row {row} (layer {layer}, head {head}) sums to "
        message += f"{sums[layer, head, row]:.3g}. Is the softmax over the keys, the last axis?"
        warnings.warn(message, stacklevel=4)  # the line that called AttentionView


def _reject(weights: np.ndarray, bad: np.ndarray, advice: str) -> None:
    if bad.any():
        place = tuple(int(k) for k in np.argwhere(bad)[0])
        spoken = ", ".join(f"{axis} {k}" for axis, k in zip(AXES, place, strict=True))
        raise ValueError(f"weights are {weights[place]} at {spoken} ({bad.sum()} such values); {advice}")


def _check_index(axis: str, index: int, size: int) -> int:
    if not 0 <= index < size:
        raise traitlets.TraitError(f"{axis} is {index}, but there are {size}: 0 to {size - 1}.")
    return index


def _telling_cell(weights: np.ndarray) -> tuple[int, int]:
    """Of each row's strongest key, the strongest off the diagonal; on it, if all are there."""
    keys = weights.argmax(axis=1)
    best = weights.max(axis=1)
    moved = keys != np.arange(len(keys))
    row = int(np.where(moved, best, -1).argmax() if moved.any() else best.argmax())
    return row, int(keys[row])
