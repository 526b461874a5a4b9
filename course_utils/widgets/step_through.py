"""StepThrough: one attention computation, or the writing of one sentence, a step at a time."""

from collections.abc import Sequence

import numpy as np
import traitlets
from matplotlib.figure import Figure

from .base import CourseWidget, check_index, float32, quantised
from .colours import INK, KEY, MUTED, QUERY, VALUE
from .still import figure_picture, matrix_picture, paper
from .tensors import as_array, list_of_tokens, read_tokens, read_weights, warn_of_odd_rows

STEPS = {"attention": ("scores", "mask", "softmax", "weigh", "sum"), "decoding": ("look", "write")}
MOST_TOKENS = 40  # rows that can be followed by eye
WIDEST = 128  # numbers of a vector: thinner bars cannot be told apart


class StepThrough(CourseWidget):
    """One attention computation on its own numbers, in five steps; or a sentence being written, word by word.

    Left and right (or the buttons) go through the steps, Home and End to the first and the last; up and down choose
    the query; pointing at a key, or ``,`` and ``.``, explain its numbers; Escape leaves. Python sees the same, and can
    set it::

        view = StepThrough(q, k, v, words, mask=causal_mask(len(words)), query=3)
        view                                    # the last line of a cell shows it
        view.step = 2                           # 0 scores, 1 mask, 2 softmax, 3 weight x value, 4 their sum
        view.weights[view.query]                # what this query gives to every key

        StepThrough.decoding(weights, target_words, source_words, probabilities)

    A saved or exported notebook does the same without a kernel.

    Args:
        queries: ``(T_q, d_k)``, one head of one sentence: a tensor, an array or nested lists.
        keys: ``(T_k, d_k)``.
        values: ``(T_k, d_v)``.
        rows: the ``T_q`` query tokens.
        columns: the ``T_k`` key tokens. Default: the rows (self-attention).
        mask: boolean, broadcastable to ``(T_q, T_k)``; true = may attend. Default: every key may be attended.
        query: the query shown first, from 0.
        step: the step shown first, from 0.
        title: a line above the view. Default: none.

    Attributes:
        query, step, title: two-way; set them from Python, or observe them.
        rows, columns: as given (tuples).
        weights: ``(T_q, T_k)``, the softmax of the scores over the keys (Vaswani et al. 2017, equation 1); of a
            sentence being written the mean of its heads (read only).

    Raises:
        ValueError: for arrays, tokens or a mask that do not fit, more than 40 tokens a side or 128 numbers a vector.
        traitlets.TraitError: for a query or step that does not exist.
    """

    _widget = "StepThrough"
    _files = "step_through"
    _names = ("_content", "query", "step", "title")

    _content = traitlets.Dict().tag(sync=True)
    query = traitlets.Int(0).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)

    def __init__(self, queries, keys, values, rows: Sequence[str], columns: Sequence[str] | None = None, mask=None,
                 query: int = 0, step: int = 0, title: str = ""):
        self._start(*_read_attention(queries, keys, values, rows, columns, mask), query, step, title)

    @classmethod
    def decoding(cls, weights, rows: Sequence[str], columns: Sequence[str],
                 probabilities: Sequence[float] | None = None, query: int = 0, step: int = 0, title: str = ""):
        """A sentence being written: each word, and what the model looked at in the source to write it.

        A word has two steps, 0: where it looks, 1: the word itself. Left and right go through the whole sentence,
        up and down from word to word.

        Args:
            weights: the cross-attention, ``(T_q, T_k)`` or ``(heads, T_q, T_k)``; its heads are shown one below the
                other, and their mean as links.
            rows: the ``T_q`` words written.
            columns: the ``T_k`` words of the source.
            probabilities: ``(T_q,)``, of each written word. Default: not shown.
            query, step, title: as above.
        """
        view = cls.__new__(cls)
        view._start(*_read_decoding(weights, rows, columns, probabilities), query, step, title)
        return view

    def _start(self, arrays: dict, content: dict, query: int, step: int, title: str) -> None:
        self._arrays = arrays
        super().__init__(_content=content, query=query, step=step, title=title)

    @property
    def rows(self) -> tuple[str, ...]:
        """The query tokens."""
        return tuple(self._content["rows"])

    @property
    def columns(self) -> tuple[str, ...]:
        """The key tokens."""
        return tuple(self._content["columns"])

    @property
    def weights(self) -> np.ndarray:
        """What each query gives to each key, ``(T_q, T_k)``."""
        if self._content["kind"] == "decoding":
            return self._arrays["weights"].mean(axis=0, dtype=np.float64)
        scores = np.where(self._content["mask"], self._scores(), -np.inf)
        highest = scores.max(axis=1, keepdims=True)
        powers = np.exp(scores - np.where(np.isfinite(highest), highest, 0))
        return powers / np.maximum(powers.sum(axis=1, keepdims=True), 1e-300)  # fully masked: zeros, not nan

    def _scores(self) -> np.ndarray:
        queries, keys = (self._arrays[name].astype(np.float64) for name in ("queries", "keys"))
        return queries @ keys.T / np.sqrt(queries.shape[1])

    @traitlets.validate("query")
    def _query_exists(self, proposal):
        return check_index("query", proposal["value"], len(self._content["rows"]))

    @traitlets.validate("step")
    def _step_exists(self, proposal):
        return check_index("step", proposal["value"], len(STEPS[self._content["kind"]]))

    def __repr__(self) -> str:
        kind, sizes = self._content["kind"], f"queries={len(self.rows)}, keys={len(self.columns)}"
        return f"StepThrough({kind}, {sizes}, query={self.query}, step={STEPS[kind][self.step]})"

    def _computation(self) -> Figure:
        """All steps of the query, side by side."""
        seen = np.array(self._content["mask"][self.query], bool)
        scores, weights = self._scores()[self.query], self.weights[self.query]
        figure = paper(10.5, 1.8 + 0.36 * len(seen))
        left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 1.4))
        keys = range(len(seen))
        bars = left.barh(keys, np.where(seen, scores, 0), color=MUTED, height=0.6)
        left.bar_label(bars, [f"{score:.4f}" if open_ else "masked" for score, open_ in zip(scores, seen, strict=True)],
                       padding=3, fontsize=9)
        left.axvline(0, color=INK, linewidth=0.8)
        left.set_xlabel("q·k ÷ √d")
        left.set_yticks(keys, self.columns, color=KEY, parse_math=False)
        middle.bar_label(middle.barh(keys, weights, color=INK, height=0.6), fmt="%.4f", padding=3, fontsize=9)
        middle.set(xlabel="weight", xlim=(0, 1.3), xticks=(0, 0.5, 1), yticks=[])
        left.margins(x=0.35)
        # a row a key: its share of the output as bars up and down; below them their sum
        shares = weights[:, None] * self._arrays["values"]
        heights = np.vstack([shares, shares.sum(axis=0)])
        places = np.repeat([*keys, len(seen) + 0.5], heights.shape[1])
        right.bar(np.tile(range(heights.shape[1]), len(heights)), -0.45 * heights.ravel() / (abs(heights).max() or 1),
                  bottom=places, color=VALUE, width=0.7)
        right.hlines([*keys, len(seen) + 0.5], -0.5, heights.shape[1] - 0.5, color=MUTED, linewidth=0.6)
        right.set_yticks([len(seen) + 0.5], ["output"], color=VALUE)
        right.set(xlabel="weight × value, and their sum", xticks=[])
        for axes in (left, middle, right):
            axes.set_ylim(len(seen) + 1, -0.5)
            axes.spines[["top", "right"]].set_visible(False)
        figure.suptitle(f"query: {self.rows[self.query]}", color=QUERY, fontsize=11, parse_math=False)
        return figure

    def _export_state(self) -> dict:
        arrays = {name: (quantised if name == "weights" else float32)(array) for name, array in self._arrays.items()}
        return super()._export_state() | {"_content": self._content | {"arrays": arrays}}

    def _still(self) -> bytes:
        if self._content["kind"] == "decoding":
            return matrix_picture(self.weights, self.rows, self.columns, 1.0)
        return figure_picture(self._computation)

    def _in_words(self) -> str:
        if self._content["kind"] == "decoding":
            lines = [f"{self._lead}{len(self.rows)} words written, and what each looked at most in the source:"]
            shares = self._content["probabilities"] or [None] * len(self.rows)
            for word, row, p in zip(self.rows, self.weights, shares, strict=True):
                p = "" if p is None else f" (p {p:.4f})"
                lines.append(f"{word}{p} ← {self.columns[row.argmax()]} {row.max():.4f}")
            return "\n".join(lines)
        seen, scores = self._content["mask"][self.query], self._scores()[self.query]
        d = self._arrays["queries"].shape[1]
        lines = [f"{self._lead}attention of the query {self.rows[self.query]} to {len(self.columns)} keys, d = {d}:"]
        for key, open_, score, weight in zip(self.columns, seen, scores, self.weights[self.query], strict=True):
            lines.append(f"{key}: score {f'{score:.4f}' if open_ else 'masked'}, weight {weight:.4f}")
        output = self.weights[self.query] @ self._arrays["values"]
        numbers = ", ".join(f"{number:.4f}" for number in output[:8]) + ", …" * (len(output) > 8)
        return "\n".join([*lines, f"output: {numbers}"])


def _read_attention(queries, keys, values, rows, columns, mask) -> tuple[dict, dict]:
    """The arrays of a computation, and the content that the page draws."""
    arrays = _read_vectors(queries, keys, values)
    rows = list_of_tokens("rows", rows)
    given = columns is not None
    columns = list_of_tokens("columns", columns) if given else rows
    for name, tokens, vectors in (("rows", rows, "queries"), ("columns", columns, "keys")):
        if len(tokens) != len(arrays[vectors]):
            said = name if name == "rows" or given else "rows, which are the columns too (no columns were given)"
            raise ValueError(f"there are {len(arrays[vectors])} {vectors}, shape {arrays[vectors].shape}, and "
                             f"{len(tokens)} tokens in {said}: each of the {vectors} needs one token.")
    _few(rows, columns)
    mask = _read_mask(mask, (len(rows), len(columns)))
    return arrays, {"kind": "attention", "rows": rows, "columns": columns, "mask": mask.astype(int).tolist(),
                    "arrays": _sent(arrays)}


def _read_decoding(weights, rows, columns, probabilities) -> tuple[dict, dict]:
    """The same of a sentence being written. It is called by a method, whose caller a warning names."""
    weights = read_weights(weights)
    if len(weights) != 1:
        raise ValueError(f"weights have {len(weights)} layers, shape {weights.shape}; one can be shown. Choose it: "
                         "weights[-1].")
    rows, columns = _few(*read_tokens(weights, rows, columns))
    warn_of_odd_rows(weights, stacklevel=3)
    if probabilities is not None:
        probabilities = as_array("probabilities", probabilities).astype(float)
        if probabilities.shape != (len(rows),) or not ((probabilities >= 0) & (probabilities <= 1)).all():
            raise ValueError(f"probabilities have shape {probabilities.shape}, {probabilities.tolist()}; expected "
                             f"{len(rows)} from 0 to 1, one for each row.")
        probabilities = probabilities.tolist()
    arrays = {"weights": weights[0]}
    return arrays, {"kind": "decoding", "rows": rows, "columns": columns, "heads": weights.shape[1],
                    "probabilities": probabilities, "arrays": _sent(arrays)}


def _sent(arrays: dict[str, np.ndarray]) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in arrays.items()}


def _read_vectors(queries, keys, values) -> dict[str, np.ndarray]:
    arrays = {"queries": queries, "keys": keys, "values": values}
    for name, given in arrays.items():
        array = arrays[name] = as_array(name, given)
        if array.ndim == 2 and not array.size:
            raise ValueError(f"{name} have shape {array.shape}, [T, d], and are empty; there is nothing to show.")
        if array.ndim != 2:
            raise ValueError(f"{name} have {array.ndim} axes, shape {array.shape}; expected [T, d]. Of several heads, "
                             f"choose one: {name}[0, 0].")
        if array.shape[1] > WIDEST:
            raise ValueError(f"{name} have d = {array.shape[1]} numbers a vector; at most {WIDEST} can be shown.")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} are not all finite numbers.")
    queries, keys, values = arrays.values()
    if queries.shape[1] != keys.shape[1]:
        raise ValueError(f"queries have d = {queries.shape[1]}, keys have d = {keys.shape[1]}: their product needs the "
                         "same.")
    if len(keys) != len(values):
        raise ValueError(f"there are {len(keys)} keys and {len(values)} values: each key needs one value.")
    return arrays


def _read_mask(mask, shape: tuple[int, int]) -> np.ndarray:
    """Boolean ``(T_q, T_k)``."""
    mask = np.ones(shape, bool) if mask is None else np.asarray(mask)
    if mask.dtype != bool:
        raise ValueError(f"mask has dtype {mask.dtype}; expected booleans, true = may attend, as of causal_mask.")
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(f"mask has shape {mask.shape}; it does not broadcast to {shape}, queries by keys.") from None


def _few(rows: list[str], columns: list[str]) -> tuple[list[str], list[str]]:
    for name, tokens in (("rows", rows), ("columns", columns)):
        if len(tokens) > MOST_TOKENS:
            raise ValueError(f"there are {len(tokens)} tokens in {name}; at most {MOST_TOKENS} can be followed by eye. "
                             "Give a shorter sentence.")
    return rows, columns
