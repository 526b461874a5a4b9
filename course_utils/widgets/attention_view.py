"""The attention view: weights to be pointed at, stepped through, compared between heads, and read from Python."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import traitlets

from .base import CourseWidget, check_index, float32, quantised
from .still import grid_picture, matrix_picture
from .tensors import (
    must_not_look_ahead,
    read_links,
    read_parts,
    read_queries_and_keys,
    read_tokens,
    read_weights,
    thumbnails,
    unpacked,
    warn_of_odd_rows,
)

EXPORTED_AT_MOST = 4_000_000  # weights in an exported page: 8 MB, or 11 MB as text
THUMBNAIL = 48  # pixels
PADDING = ("<pad>", "[PAD]")
KINDS = {"": "attention", "encoder": "encoder self-attention", "decoder": "decoder self-attention",
         "cross": "cross-attention"}


class AttentionView(CourseWidget):
    """Attention weights between tokens: every layer and head at a glance, or one head closely.

    Four views: ``matrix``; ``links`` between two columns of tokens, for one head or several at once; ``grid`` with
    a small picture of every head; and, if queries and keys are given, ``neuron``: how one weight is computed.

    Point at a cell or a token, or use the keys: arrows, Home and End move; ``[`` and ``]`` change the head, ``{``
    and ``}`` the layer; ``v`` changes the view; in the links, up and down show all links of a query, left and right
    those of a key, and digits draw further heads; in the grid, Enter opens a head; ``p`` changes the part, if there
    are three; Escape leaves. Python sees what is selected, and can select::

        view = AttentionView(weights, rows=target, columns=source, alignment=pair.links)
        view                                    # the last line of a cell shows it
        view.cell                               # (4, 6): the row and column last pointed at
        view.cell = (0, 1)                      # moves the selection on the screen
        view.observe(print, "cell")             # called at every move

    ``AttentionView(outputs, tokens)`` shows what a ``transformers`` model returned (called with
    ``output_attentions=True``); of an encoder-decoder all three attentions are one view::

        AttentionView(outputs, rows=decoder_tokens, columns=encoder_tokens)

    Live, weights are exact float32, and each head is sent when it is first wanted, or beside one that is. In a saved
    or exported notebook the view stays interactive without a kernel, with weights of 16 bits (off by at most 7.6e-6);
    it holds at most four million of them, those of the heads nearest to the one shown, and says what is left out.

    Args:
        weights: ``[T_q, T_k]``, ``[heads, T_q, T_k]`` or ``[layers, heads, T_q, T_k]``: a tensor (any device and
            floating type), an array or nested lists; or, with a batch axis of one, ``[1, layers, heads, T_q, T_k]``
            or a tuple with one ``[1, heads, T_q, T_k]`` a layer. Not negative, finite; a row is a softmax over the
            keys and sums to one, or is all zero (fully masked).
            Or the output of a ``transformers`` model, with ``attentions``, or with ``encoder_attentions`` (rows and
            columns are the source), ``decoder_attentions`` (both are the target) and ``cross_attentions`` (rows are
            the target, columns the source).
            Or a record, an object with ``weights``, ``rows``, ``columns`` and ``alignment``, alone.
        rows: the ``T_q`` query (target) tokens. Those called ``<pad>`` or ``[PAD]`` are shown in grey.
        columns: the ``T_k`` key (source) tokens. Default: the rows (self-attention).
        alignment: true links as pairs ``(row, column)``, zero-based, drawn on top; of three attentions, on the
            cross-attention. Default: none.
        layer, head, heads, part: those shown first, as the attributes. Default: layer 0, the first of ``heads`` or 0,
            only ``head``, and of three attentions the cross-attention.
        cell: the pair ``(row, column)`` selected first. Default: of each row's strongest key, the strongest off the
            diagonal, because a view should show something at once.
        view: ``"matrix"``, ``"links"``, ``"grid"`` or ``"neuron"``.
        title: a line above the view. Default: none.
        queries, keys: ``[layers, heads, T_q, d]`` and ``[layers, heads, T_k, d]``, for the neuron view; the softmax
            of their products over the root of d must be the weights. Of one attention. Default: none.
        causal: whether a causal mask hid the keys after each query, which are then shown as masked; of three
            attentions, in the decoder's self-attention. Default: no, and a weight of zero is shown as such.
        steps: a film: the "heads" are one head at these training steps, and are called so; a slider goes through them.
            Of one attention. Default: heads are heads.

    Attributes:
        cell, layer, head, view, title: two-way; set them from Python, or observe them. ``cell`` may be ``None``.
        heads: the heads drawn together in the links, two-way; empty where only ``head`` is, which otherwise is one of
            them.
        part: which of three attentions is shown, two-way: ``"encoder"``, ``"decoder"`` or ``"cross"``; empty if there
            is one. A part with the same queries selects the same query, and its strongest key; another one the cell
            that a new view would select.
        weights: float32 array ``[layers, heads, T_q, T_k]``, of the part shown (read only).
        rows, columns, alignment: of the part shown (tuples).

    Raises:
        ValueError: for weights that are not finite, negative, empty or of the wrong number of axes; for tokens,
            queries or keys that do not fit an axis; for an alignment outside the matrix; for ``causal`` weights that
            look ahead; for a ``head`` that is none of the ``heads``.
        traitlets.TraitError: for a cell, layer, head, part or view that does not exist.

    Warns:
        UserWarning: once, if a row sums neither to one nor to zero.
    """

    _widget = "AttentionView"
    _files = "attention_view"
    _names = ("_content", "part", "cell", "layer", "head", "heads", "view", "title")

    # for each part (of one attention, the part "") everything that describes its tensor, and what is already known of
    # its heads: one trait, so that they change together
    _content = traitlets.Dict().tag(sync=True)
    part = traitlets.Unicode("").tag(sync=True)
    cell = traitlets.Tuple(traitlets.Int(), traitlets.Int(), allow_none=True, default_value=None).tag(sync=True)
    layer = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    heads = traitlets.List(traitlets.Int()).tag(sync=True)
    view = traitlets.Enum(("matrix", "links", "grid", "neuron"), "matrix").tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)

    def __init__(self, weights, rows: Sequence[str] | None = None, columns: Sequence[str] | None = None,
                 alignment: Iterable[tuple[int, int]] | None = None, layer: int = 0, head: int | None = None,
                 cell: tuple[int, int] | None = None, view: str = "matrix", title: str = "", *,
                 heads: Sequence[int] = (), part: str | None = None, queries=None, keys=None,
                 causal: bool = False, steps: Sequence[int] | None = None):
        given = _Given(*unpacked(weights, rows, columns, alignment), queries, keys, causal)
        arrays, content = _read_all(given)
        part = next(reversed(content)) if part is None else _check_part(part, content)  # of three, the cross-attention
        shape = content[part]["shape"]
        if steps is not None:
            if len(content) > 1 or len(steps) != shape[1]:
                raise ValueError(f"{len(steps)} steps, and weights {', '.join(map(str, shape))} (layers, heads, "
                                 "queries, keys); expected one step per head, of one attention.")
            content[part]["steps"] = [int(step) for step in steps]
        check_index("layer", layer, shape[0])
        if head is None:
            head = min(heads, default=0)
        elif heads and head not in heads:
            raise ValueError(f"head is {head}, but the heads drawn together are {sorted(set(heads))}; expected one of "
                             "them. Add it to heads, or leave head out.")
        check_index("head", head, shape[1])
        _first_heads(arrays, content, layer, head)
        cell = content[part]["cell"] if cell is None else cell
        self._arrays = arrays
        super().__init__(_content=content, part=part, layer=layer, head=head, cell=cell, heads=heads, view=view,
                         title=title)
        self.on_msg(self._answer)

    @property
    def _shown(self) -> dict:
        """What describes the part that is shown."""
        return self._content[self.part]

    @property
    def weights(self) -> np.ndarray:
        """The weights, float32 ``[layers, heads, T_q, T_k]``, read-only."""
        return self._arrays[self.part]["weights"]

    @property
    def rows(self) -> tuple[str, ...]:
        """The query tokens."""
        return tuple(self._shown["rows"])

    @property
    def columns(self) -> tuple[str, ...]:
        """The key tokens."""
        return tuple(self._shown["columns"])

    @property
    def alignment(self) -> tuple[tuple[int, int], ...]:
        """The true links, pairs ``(row, column)``."""
        return tuple(map(tuple, self._shown["alignment"]))

    @traitlets.validate("part")
    def _part_exists(self, proposal):
        return _check_part(proposal["value"], self._content)

    @traitlets.validate("layer")
    def _layer_exists(self, proposal):
        return check_index("layer", proposal["value"], self._shown["shape"][0])

    @traitlets.validate("head")
    def _head_exists(self, proposal):
        return check_index("head", proposal["value"], self._shown["shape"][1])

    @traitlets.validate("heads")
    def _heads_exist(self, proposal):
        heads = sorted(set(proposal["value"]))
        return [check_index("head", head, self._shown["shape"][1]) for head in heads]

    @traitlets.validate("cell")
    def _cell_exists(self, proposal):
        if proposal["value"] is not None:
            for axis, index in zip(("row", "column"), proposal["value"], strict=True):
                check_index(axis, index, self._shown["shape"][2 if axis == "row" else 3])
        return proposal["value"]

    @traitlets.validate("view")
    def _view_can_be_drawn(self, proposal):
        if proposal["value"] == "neuron" and not self._shown["width"]:
            raise traitlets.TraitError('the view "neuron" needs queries= and keys=, which were not given.')
        return proposal["value"]

    @traitlets.observe("part")
    def _another_part(self, change):
        if not (change.old and change.new):
            return  # the first one
        before, shown = self._content[change.old], self._shown
        layer, head = _there(shown, self.layer, self.head)
        row = self.cell[0] if self.cell and before["rows"] == shown["rows"] else None
        cell = shown["cell"] if row is None else (row, int(self.weights[layer, head, row].argmax()))
        heads = self.heads if all(k < shown["shape"][1] for k in self.heads) else []
        with self.hold_sync():
            self.heads, self.layer, self.head, self.cell = heads, layer, head, cell

    @traitlets.observe("heads")
    def _head_is_one_of_the_heads(self, change):
        if self.heads and self.head not in self.heads:
            self.head = self.heads[0]

    @traitlets.observe("head")
    def _another_head_alone(self, change):
        if self.heads and self.head not in self.heads:
            self.heads = []

    def _answer(self, _, message: dict, buffers) -> None:
        """Send what the front end asks for: ``{"head": number}`` or ``{"thumbnails": true}``, of a part."""
        content, arrays = self._content[message["part"]], self._arrays[message["part"]]
        if "head" in message:
            sent = _bytes(arrays, *divmod(message["head"], content["shape"][1]))
        else:
            sent = {"thumbnails": thumbnails(arrays["weights"], content["top"], THUMBNAIL).tobytes()}
        self.send({**message, "arrays": list(sent)}, list(sent.values()))

    @property
    def _where(self) -> str:
        """Which matrix is shown, in words."""
        steps = self._shown.get("steps")
        return f"layer {self.layer}, " + (f"step {steps[self.head]}" if steps else f"head {self.head}")

    def __repr__(self) -> str:
        sizes = zip(("layers", "heads", "queries", "keys"), self._shown["shape"], strict=True)
        part = [f"part={self.part!r}"] if self.part else []
        return f"AttentionView({', '.join(part + [f'{name}={size}' for name, size in sizes])})"

    def _export_state(self) -> dict:
        state = super()._export_state()
        room = EXPORTED_AT_MOST // len(self._content)
        state["_content"] = {part: self._exported(part, room) for part in self._content}
        shown = state["_content"][self.part]
        if not _is_in(self.cell, shown):
            state["cell"] = None
        if not shown["width"] and self.view == "neuron":
            state["view"] = "matrix"
        return state

    def _exported(self, part: str, room: int) -> dict:
        """One part as it stands in a page that has room for so many of its weights."""
        content, arrays = dict(self._content[part]), self._arrays[part]
        n_layers, n_heads, _, _ = content["shape"]
        all_weights = arrays["weights"].size
        size = sum(array[0, 0].size for array in arrays.values())
        layer, head = _there(content, self.layer, self.head)
        near = sorted(range(n_layers * n_heads), key=lambda k: (abs(k // n_heads - layer), abs(k % n_heads - head), k))
        kept = max(1, room // size)
        kept = sorted(near[: kept - kept % n_heads if kept > n_heads else kept])  # whole layers, if there are more
        cut = []
        if len(kept) < len(near):
            cut.append(f"{len(kept)} of {len(near)} heads, the nearest to layer {layer}, head {head}")
        if size > room:
            content, arrays = _corner(content, arrays["weights"], math.isqrt(room))
            cut.append("the first {2} queries and {3} keys".format(*content["shape"]))
        if cut:
            content["cut"] = (
                f"This page holds {' and '.join(cut)}: {all_weights:,} weights are more than the "
                f"{room:,} that it has room for. Run the notebook to see all."
            )
        content["heads"] = {str(k): _as_text(arrays, *divmod(k, n_heads)) for k in kept}
        return content

    def _still(self) -> bytes:
        content = self._shown
        if self.view == "grid":
            return grid_picture(*self._thumbnails())
        return matrix_picture(self.weights[self.layer, self.head], self.rows, self.columns, content["top"],
                              self.alignment, content["padding"], content["causal"])

    def _thumbnails(self) -> tuple[np.ndarray, np.ndarray]:
        """Every head as a small picture, and which of their pixels stand for nothing but padding."""
        content = self._shown
        size = THUMBNAIL // 2 if content["shape"][0] * content["shape"][1] > 36 else THUMBNAIL
        seen = np.ones((1, 1, *content["shape"][2:]), np.float32)
        seen[..., content["padding"][0], :] = seen[..., content["padding"][1]] = 0
        return thumbnails(self.weights, content["top"], size), thumbnails(seen, 1.0, size)[0, 0] == 0

    def _in_words(self) -> str:
        layers, heads, n_rows, n_columns = self._shown["shape"]
        where = f"{self._where}, " if layers * heads > 1 else ""
        sizes = f"{where}{n_rows} queries by {n_columns} keys"
        lines = [f"{self._lead}{KINDS[self.part]} weights, {sizes}. Largest in each row:"]
        for token, row in list(zip(self.rows, self.weights[self.layer, self.head], strict=True))[:40]:
            lines.append(f"{token} → {self.columns[row.argmax()]} {row.max():.4f}")
        if n_rows > 40:
            lines.append("…")
        return "\n".join(lines)


class _Given(NamedTuple):
    """One attention and what belongs to it, or three, as they came from the caller."""

    weights: object
    rows: Sequence[str]
    columns: Sequence[str] | None
    alignment: Iterable[tuple[int, int]] | None = None
    queries: object = None
    keys: object = None
    causal: bool = False
    names: tuple[str, str] = ("rows", "columns")  # what the caller calls the two


def _read_all(given: _Given) -> tuple[dict, dict]:
    """Check everything that describes one attention or three; give arrays and contents, a dictionary a part."""
    arrays, contents = {}, {}
    for part, one in _by_part(given).items():
        try:
            arrays[part], contents[part] = _read(one)
        except ValueError as error:
            raise ValueError(f"{part}: {error}" if part else str(error)) from None
    return arrays, contents


def _by_part(given: _Given) -> dict[str, _Given]:
    """Each of three attentions with what belongs to it; a single one is called ``""``."""
    parts = read_parts(given.weights)
    if parts is None:
        return {"": given}
    if given.columns is None:
        raise ValueError("of three attentions, rows are the target's tokens and columns the source's; no columns were "
                         "given.")
    if given.queries is not None or given.keys is not None:
        raise ValueError("queries and keys belong to one attention, but three were given; give its tensor alone.")
    source, target = (given.columns, "columns"), (given.rows, "rows")
    sides = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
    found = {}
    for part, weights in parts.items():
        (rows, columns), names = zip(*sides[part], strict=True)
        links = given.alignment if part == "cross" else None
        found[part] = _Given(weights, rows, columns, links, causal=given.causal and part == "decoder",
                             names=names)
    return found


def _read(given: _Given) -> tuple[dict, dict]:
    """Check everything that describes one tensor; give the arrays, and what the front end is told at once."""
    weights = read_weights(given.weights)
    rows, columns = read_tokens(weights, given.rows, given.columns, given.names)
    pair = read_queries_and_keys(weights, given.queries, given.keys)
    arrays = {"weights": weights, **(dict(zip(("queries", "keys"), pair, strict=True)) if pair else {})}
    for array in arrays.values():
        array.setflags(write=False)
    largest = float(weights.max())
    if given.causal:
        must_not_look_ahead(weights)
    content = {
        "shape": list(weights.shape),
        # one colour scale for all layers and heads; 0 to 1, unless that would leave all of them dark
        "top": 1.0 if largest >= 0.5 or largest == 0 else largest,
        "rows": rows,
        "columns": columns,
        "alignment": read_links(given.alignment, rows, columns),
        "padding": [[k for k, token in enumerate(tokens) if token in PADDING] for tokens in (rows, columns)],
        "causal": given.causal,
        "width": pair[0].shape[3] if pair else 0,  # of queries and keys
    }
    warn_of_odd_rows(weights, stacklevel=4)  # the line that called AttentionView
    return arrays, content


def _first_heads(arrays: dict, contents: dict, layer: int, head: int) -> None:
    """Add to every part what is sent before it is asked for: this head, or the first, and the cell to begin with."""
    for part, content in contents.items():
        i, j = _there(content, layer, head)
        content["cell"] = _telling_cell(arrays[part]["weights"][i, j], content["padding"])
        content["heads"] = {str(i * content["shape"][1] + j): _bytes(arrays[part], i, j)}


def _check_part(part: str, contents: dict) -> str:
    if part not in contents:
        there = ", ".join(contents) if len(contents) > 1 else "one attention only"
        raise traitlets.TraitError(f"part is {part!r}; this view has {there}.")
    return part


def _there(content: dict, layer: int, head: int) -> tuple[int, int]:
    """The layer and the head, each replaced by 0 if this part does not have it."""
    return tuple(index if index < size else 0 for index, size in zip((layer, head), content["shape"], strict=False))


def _is_in(cell, content: dict) -> bool:
    """Whether the part has this cell; ``None`` (no selection) is always allowed."""
    return cell is None or all(k < size for k, size in zip(cell, content["shape"][2:], strict=True))


def _corner(content: dict, weights: np.ndarray, side: int) -> tuple[dict, dict]:
    """A part and its arrays with the first ``side`` queries and keys only, and without their vectors."""
    weights = weights[:, :, :side, :side]
    content = content | {
        "shape": list(weights.shape), "width": 0,
        "rows": content["rows"][:side], "columns": content["columns"][:side],
        "alignment": [[i, j] for i, j in content["alignment"] if i < side and j < side],
        "padding": [[k for k in marked if k < side] for marked in content["padding"]]}
    return content | {"cell": content["cell"] if _is_in(content["cell"], content) else None}, {"weights": weights}


def _bytes(arrays: dict, layer: int, head: int) -> dict:
    """One head as it travels from a kernel."""
    return {name: array[layer, head].tobytes() for name, array in arrays.items()}


def _as_text(arrays: dict, layer: int, head: int) -> dict:
    """One head as it stands in an exported page."""
    of_head = {name: array[layer, head] for name, array in arrays.items()}
    return {name: (quantised if name == "weights" else float32)(array) for name, array in of_head.items()}


def _telling_cell(weights: np.ndarray, padding) -> tuple[int, int]:
    """Of each row's strongest key, the strongest off the diagonal; on it, if all are there. Padding never tells."""
    weights = weights.copy()
    weights[padding[0]] = weights[:, padding[1]] = -1
    keys = weights.argmax(axis=1)
    best = weights.max(axis=1)
    moved = (keys != np.arange(len(keys))) & (best > 0)
    row = int(np.where(moved, best, -1).argmax() if moved.any() else best.argmax())
    return row, int(keys[row])
