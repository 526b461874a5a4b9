"""The attention view: weights to be pointed at, stepped through, compared between heads, and read from Python."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import traitlets

from .base import CourseWidget, check_index, float32, javascript, quantised, stylesheet
from .still import grid_picture, matrix_picture
from .tensors import (
    read_links,
    read_padding,
    read_queries_and_keys,
    read_segments,
    read_tokens,
    read_weights,
    thumbnails,
    warn_of_odd_rows,
)

EXPORTED_AT_MOST = 4_000_000  # weights in an exported page: 8 MB, or 11 MB as text
THUMBNAIL = 48  # pixels


class AttentionView(CourseWidget):
    """Attention weights between tokens: every layer and head at a glance, or one head closely.

    Four views: ``matrix``; ``links`` between two columns of tokens, for one head or several at once; ``grid`` with
    a small picture of every head; and, if queries and keys are given, ``neuron``: how one weight is computed.

    Point at a cell or a token, or use the keys: arrows, Home and End move; ``[`` and ``]`` change the head, ``{``
    and ``}`` the layer; ``v`` changes the view; in the links, digits draw further heads; in the grid, Enter opens a
    head; Escape leaves. Python sees what is selected, and can select::

        view = AttentionView(weights, rows=target, columns=source, alignment=pair.links)
        view                                    # the last line of a cell shows it
        view.cell                               # (4, 6): the row and column last pointed at
        view.cell = (0, 1)                      # moves the selection on the screen
        view.observe(print, "cell")             # called at every move

    ``AttentionView(outputs.attentions, tokens)`` shows what a ``transformers`` model returned.

    Live, weights are exact float32, and each head is sent when it is first wanted. In a saved or exported notebook
    the view stays interactive without a kernel, with weights of 16 bits (off by at most 7.6e-6); it holds at most
    four million of them, those of the heads nearest to the one shown, and says what is left out.

    Args:
        weights: ``[T_q, T_k]``, ``[heads, T_q, T_k]`` or ``[layers, heads, T_q, T_k]``: a tensor (any device and
            floating type), an array or nested lists; or a tuple with one ``[B, heads, T_q, T_k]`` a layer. Not
            negative, finite; a row is a softmax over the keys and sums to one, or is all zero (fully masked).
        rows: the ``T_q`` query (target) tokens.
        columns: the ``T_k`` key (source) tokens. Default: the rows (self-attention).
        alignment: true links as pairs ``(row, column)``, zero-based, drawn on top. Default: none.
        layer: the layer shown first, from 0.
        head: the head shown first, from 0.
        cell: the pair ``(row, column)`` selected first. Default: of each row's strongest key, the strongest off
            the diagonal, because a view should show something at once.
        view: ``"matrix"``, ``"links"``, ``"grid"`` or ``"neuron"``.
        title: a line above the view. Default: none.
        heads: the heads drawn together in the links. Default: only ``head``.
        batch: which example, if the weights have a batch axis: the first of ``[B, T_q, T_k]`` (what the course's
            models return) and ``[B, heads, T_q, T_k]``, the second of ``[layers, B, heads, T_q, T_k]``. Default:
            no such axis; in a tuple of layers, a batch of one.
        segments: for self-attention over two sentences, 0 (A) or 1 (B) for each token, as ``token_type_ids``; then
            the links and the matrix can be limited to those from one sentence to another. Default: none.
        padding: true where a key is padding (in self-attention, the query too), the opposite of a tokenizer's
            ``attention_mask``; shown in grey. Default: the tokens called ``<pad>`` or ``[PAD]``.
        queries, keys: ``[layers, heads, T_q, d]`` and ``[layers, heads, T_k, d]``, for the neuron view; the softmax
            of their products over the root of d must be the weights. Default: none.

    Attributes:
        cell, layer, head, heads, view, title: two-way; set them from Python, or observe them. ``cell`` may be
            ``None``. ``heads`` is empty where only ``head`` is drawn, and otherwise contains it.
        between: which sentences are shown, two-way: ``"all"``, ``"AA"``, ``"AB"`` (queries of A, keys of B),
            ``"BA"`` or ``"BB"``.
        weights: float32 array ``[layers, heads, T_q, T_k]``; assign other weights with the same tokens to draw
            them in place, or call ``set_weights`` to change the tokens too.
        rows, columns, alignment: as given (tuples); change them with ``set_weights``.

    Raises:
        ValueError: for weights that are not finite, negative, empty or of the wrong number of axes; for tokens,
            segments, padding, queries or keys that do not fit an axis; for an alignment outside the matrix.
        traitlets.TraitError: for a cell, layer, head or view that does not exist.

    Warns:
        UserWarning: once, if a row sums neither to one nor to zero.
    """

    _widget = "AttentionView"
    _files = "attention_view"
    _names = ("_content", "cell", "layer", "head", "heads", "view", "between", "title")
    _esm = javascript(_files) + f"\nexport default liveHost({_widget}, {list(_names)!r});\n"
    _css = stylesheet(_files)

    # everything that describes one tensor, and what is already known of its heads: one trait, so that they change
    # together
    _content = traitlets.Dict().tag(sync=True)
    cell = traitlets.Tuple(traitlets.Int(), traitlets.Int(), allow_none=True, default_value=None).tag(sync=True)
    layer = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    heads = traitlets.List(traitlets.Int()).tag(sync=True)
    view = traitlets.Enum(("matrix", "links", "grid", "neuron"), "matrix").tag(sync=True)
    between = traitlets.Enum(("all", "AA", "AB", "BA", "BB"), "all").tag(sync=True)
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
        *,
        heads: Sequence[int] = (),
        batch: int | None = None,
        segments: Sequence[int] | None = None,
        padding: Sequence[bool] | None = None,
        queries=None,
        keys=None,
    ):
        given = (rows, columns, alignment, segments, padding, queries, keys)
        parts, content = _read(weights, batch, *given)
        check_index("layer", layer, content["shape"][0])
        head = head if not heads or head in heads else min(heads)
        check_index("head", head, content["shape"][1])
        number = layer * content["shape"][1] + head
        content |= {"edition": 0, "heads": {str(number): _bytes(parts, layer, head)}}
        if cell is None:
            cell = _telling_cell(parts["weights"][layer, head], content["padding"])
        self._parts = parts
        super().__init__(_content=content, layer=layer, head=head, cell=cell, heads=heads, view=view, title=title)
        self.on_msg(self._answer)

    def set_weights(
        self, weights, rows=None, columns=None, alignment=None, batch=None, segments=None, padding=None, queries=None,
        keys=None,
    ) -> None:  # fmt: skip
        """Show other weights in the same place.

        Args:
            weights: as for the constructor.
            rows: default: the present ones.
            columns: default: the present ones if ``rows`` is not given either, otherwise the rows.
            alignment: default: the present one if the tokens stay, otherwise none.
            batch: as for the constructor.
            segments, padding: default: the present ones if the tokens stay.
            queries, keys: as for the constructor; without them the neuron view is left.

        The selection stays where it is if that place still exists; otherwise the layer or head goes back to 0,
        and the cell to the one that a new view would choose.
        """
        if rows is None:
            rows = self.rows
            columns = self.columns if columns is None else columns
            if tuple(columns) == self.columns:
                before = self._content
                alignment = self.alignment if alignment is None else alignment
                segments = before["segments"] or None if segments is None else segments
                if padding is None:
                    padding = [column in before["padding"][1] for column in range(len(columns))]
        parts, content = _read(weights, batch, rows, columns, alignment, segments, padding, queries, keys)
        n_layers, n_heads, n_rows, n_columns = content["shape"]
        layer = self.layer if self.layer < n_layers else 0
        head = self.head if self.head < n_heads else 0
        cell = self.cell
        if cell and not (cell[0] < n_rows and cell[1] < n_columns):
            cell = _telling_cell(parts["weights"][layer, head], content["padding"])
        content |= {"edition": self._content["edition"] + 1}
        content |= {"heads": {str(layer * n_heads + head): _bytes(parts, layer, head)}}
        with self.hold_sync(), self.hold_trait_notifications():
            self._parts, self._content = parts, content
            self.layer, self.head, self.cell = layer, head, cell
            self.heads = self.heads if all(k < n_heads for k in self.heads) else []
            if not content["width"] and self.view == "neuron":
                self.view = "matrix"
            if not content["segments"]:
                self.between = "all"

    @property
    def weights(self) -> np.ndarray:
        """The weights, float32 ``[layers, heads, T_q, T_k]``, read-only; assign to replace them."""
        return self._parts["weights"]

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
        return check_index("layer", proposal["value"], self._content["shape"][0])

    @traitlets.validate("head")
    def _head_exists(self, proposal):
        return check_index("head", proposal["value"], self._content["shape"][1])

    @traitlets.validate("heads")
    def _heads_exist(self, proposal):
        heads = sorted(set(proposal["value"]))
        return [check_index("head", head, self._content["shape"][1]) for head in heads]

    @traitlets.validate("cell")
    def _cell_exists(self, proposal):
        if proposal["value"] is not None:
            for axis, index in zip(("row", "column"), proposal["value"], strict=True):
                check_index(axis, index, self._content["shape"][2 if axis == "row" else 3])
        return proposal["value"]

    @traitlets.validate("view")
    def _view_can_be_drawn(self, proposal):
        if proposal["value"] == "neuron" and not self._content["width"]:
            raise traitlets.TraitError('the view "neuron" needs queries= and keys=, which were not given.')
        return proposal["value"]

    @traitlets.validate("between")
    def _sentences_exist(self, proposal):
        if proposal["value"] != "all" and not self._content["segments"]:
            raise traitlets.TraitError(f'between="{proposal["value"]}" needs segments=, which were not given.')
        return proposal["value"]

    @traitlets.observe("heads")
    def _head_is_one_of_the_heads(self, change):
        if self.heads and self.head not in self.heads:
            self.head = self.heads[0]

    @traitlets.observe("head")
    def _another_head_alone(self, change):
        if self.heads and self.head not in self.heads:
            self.heads = []

    def _answer(self, _, asked: dict, buffers) -> None:
        """Send what the front end asks for: ``{"head": number}`` or ``{"thumbnails": true}``."""
        content = self._content
        if asked.get("edition") != content["edition"]:
            return  # asked about weights that are gone
        if "head" in asked:
            parts = _bytes(self._parts, *divmod(asked["head"], content["shape"][1]))
        else:
            parts = {"thumbnails": thumbnails(self.weights, content["top"], THUMBNAIL).tobytes()}
        self.send({**asked, "parts": list(parts)}, list(parts.values()))

    def __repr__(self) -> str:
        sizes = zip(("layers", "heads", "queries", "keys"), self._content["shape"], strict=True)
        return f"AttentionView({', '.join(f'{name}={size}' for name, size in sizes)})"

    def _export_state(self) -> dict:
        content, state = dict(self._content), {name: getattr(self, name) for name in self._names}
        n_layers, n_heads, n_rows, n_columns = content["shape"]
        parts = self._parts
        size = sum(array[0, 0].size for array in parts.values())
        near = sorted(
            range(n_layers * n_heads), key=lambda k: (abs(k // n_heads - self.layer), abs(k % n_heads - self.head), k)
        )
        room = max(1, EXPORTED_AT_MOST // size)
        kept = sorted(near[: room - room % n_heads if room > n_heads else room])  # whole layers, if there are more
        cut = []
        if len(kept) < len(near):
            cut.append(f"{len(kept)} of {len(near)} heads, the nearest to layer {self.layer}, head {self.head}")
        if size > EXPORTED_AT_MOST:
            side = math.isqrt(EXPORTED_AT_MOST)
            cut.append(f"the first {min(side, n_rows)} queries and {min(side, n_columns)} keys")
            weights = parts["weights"][:, :, :side, :side]
            n_rows, n_columns = weights.shape[2:]
            parts = {"weights": weights}
            content |= {"shape": list(weights.shape), "width": 0, "segments": content["segments"][:side]}
            content |= {"rows": content["rows"][:side], "columns": content["columns"][:side]}
            content["alignment"] = [[i, j] for i, j in content["alignment"] if i < n_rows and j < n_columns]
            content["padding"] = [[k for k in marked if k < side] for marked in content["padding"]]
            if self.cell and not (self.cell[0] < n_rows and self.cell[1] < n_columns):
                state["cell"] = None
            state["view"] = "matrix" if self.view == "neuron" else self.view
        if cut:
            content["cut"] = (
                f"This page holds {' and '.join(cut)}: {self.weights.size:,} weights are more than the "
                f"{EXPORTED_AT_MOST:,} of a page. Run the notebook to see all."
            )
        content["heads"] = {str(k): _as_text(parts, *divmod(k, n_heads)) for k in kept}
        del content["edition"]
        return state | {"_content": content}

    def _still(self) -> bytes:
        top = self._content["top"]
        if self.view == "grid":
            many = self._content["shape"][0] * self._content["shape"][1] > 36
            return grid_picture(thumbnails(self.weights, top, THUMBNAIL // 2 if many else THUMBNAIL))
        shown, padding = self.weights[self.layer, self.head], self._content["padding"]
        return matrix_picture(shown, self.rows, self.columns, top, self.alignment, padding)

    def _in_words(self) -> str:
        layers, heads, n_rows, n_columns = self._content["shape"]
        where = f"layer {self.layer}, head {self.head}, " if layers * heads > 1 else ""
        title = f"{self.title}: " if self.title else ""
        lines = [f"{title}attention weights, {where}{n_rows} queries by {n_columns} keys. Largest in each row:"]
        for token, row in list(zip(self.rows, self.weights[self.layer, self.head], strict=True))[:40]:
            lines.append(f"{token} → {self.columns[row.argmax()]} {row.max():.3f}")
        return "\n".join(lines + ["…"] * (n_rows > 40))


def _read(weights, batch, rows, columns, alignment, segments, padding, queries, keys) -> tuple[dict, dict]:
    """Check everything that describes one tensor; give the arrays, and what the front end is told at once."""
    weights = read_weights(weights, batch)
    rows, columns = read_tokens(weights, rows, columns)
    pair = read_queries_and_keys(weights, queries, keys)
    parts = {"weights": weights, **(dict(zip(("queries", "keys"), pair, strict=True)) if pair else {})}
    for array in parts.values():
        array.setflags(write=False)
    largest = float(weights.max())
    content = {
        "shape": list(weights.shape),
        # one colour scale for all layers and heads; 0 to 1, unless that would leave all of them dark
        "top": 1.0 if largest >= 0.5 or largest == 0 else largest,
        "rows": rows,
        "columns": columns,
        "alignment": read_links(alignment, rows, columns),
        "segments": read_segments(segments, rows, columns),
        "padding": read_padding(padding, rows, columns),
        "width": pair[0].shape[3] if pair else 0,  # of queries and keys
    }
    warn_of_odd_rows(weights, stacklevel=3)  # the line that called AttentionView
    return parts, content


def _bytes(parts: dict, layer: int, head: int) -> dict:
    """One head as it travels from a kernel."""
    return {name: array[layer, head].tobytes() for name, array in parts.items()}


def _as_text(parts: dict, layer: int, head: int) -> dict:
    """One head as it stands in an exported page."""
    head_parts = {name: array[layer, head] for name, array in parts.items()}
    return {name: (quantised if name == "weights" else float32)(array) for name, array in head_parts.items()}


def _telling_cell(weights: np.ndarray, padding) -> tuple[int, int]:
    """Of each row's strongest key, the strongest off the diagonal; on it, if all are there. Padding never tells."""
    weights = weights.copy()
    weights[padding[0]] = weights[:, padding[1]] = -1
    keys = weights.argmax(axis=1)
    best = weights.max(axis=1)
    moved = (keys != np.arange(len(keys))) & (best > 0)
    row = int(np.where(moved, best, -1).argmax() if moved.any() else best.argmax())
    return row, int(keys[row])
