"""Attention weights from wherever they come, checked and put into one shape: ``[layers, heads, T_q, T_k]``."""

import math
import operator
import warnings
from collections.abc import Iterable, Sequence

import numpy as np

PARTS = ("encoder", "decoder", "cross")  # the three attentions of an encoder and a decoder
AXES = ("layer", "head", "row (query)", "column (key)")
NO_ATTENTION = 'Load a transformers model with attn_implementation="eager", and call it with output_attentions=True.'


def unpacked(weights, rows, columns, alignment) -> tuple:
    """The four arguments as given, or the attributes of these names if ``weights`` is a record of them.

    Raises:
        ValueError: if there are no rows; if a record came with rows or columns.
    """
    if all(hasattr(weights, name) for name in ("weights", "rows", "columns", "alignment")):
        if rows is not None or columns is not None:
            raise ValueError("the record has rows and columns of its own; give either the record or its parts.")
        alignment = weights.alignment if alignment is None else alignment
        return weights.weights, weights.rows, weights.columns, alignment
    if rows is None:
        raise ValueError("rows are missing: the tokens that the weights belong to, one for each query.")
    return weights, rows, columns, alignment


def read_parts(outputs) -> dict | None:
    """The three attentions that an encoder-decoder of ``transformers`` returned, in order; ``None`` for other models.

    Raises:
        ValueError: if it returned none.
    """
    if not hasattr(outputs, "encoder_attentions"):
        return None
    parts = {part: getattr(outputs, f"{part}_attentions") for part in PARTS}
    for part, weights in parts.items():
        if weights is None:
            raise ValueError(f"the output's {part}_attentions are None. {NO_ATTENTION}")
    return parts


def read_weights(weights) -> np.ndarray:
    """The weights as checked float32 ``[layers, heads, T_q, T_k]``.

    Args:
        weights: ``[T_q, T_k]``, ``[heads, T_q, T_k]``, ``[layers, heads, T_q, T_k]`` or, as the course's Transformer
            returns them, ``[1, layers, heads, T_q, T_k]``; or a sequence with one ``[1, heads, T_q, T_k]`` a layer,
            as ``transformers`` models return; or what they return, with such ``attentions``.

    Raises:
        ValueError: for weights that cannot be read so, or are empty, negative or not finite.
    """
    weights = getattr(weights, "attentions", weights)
    if weights is None:
        raise ValueError(f"weights are None. {NO_ATTENTION}")
    if isinstance(weights, list) and not weights:
        raise ValueError("weights are an empty list; expected [T_q, T_k], or one tensor [1, heads, T_q, T_k] a layer.")
    if isinstance(weights, (list, tuple)) and any(layer is None or isinstance(layer, tuple) for layer in weights):
        raise ValueError(_no_tensor(weights))
    if isinstance(weights, tuple) and not weights:
        raise ValueError(f"weights are an empty tuple: the model returned no attention. {NO_ATTENTION}")
    if isinstance(weights, (list, tuple)) and all(hasattr(layer, "shape") for layer in weights):
        weights = [as_array("weights", layer) for layer in weights]
        shapes = [layer.shape for layer in weights]
        for number, shape in enumerate(shapes):
            if shape != shapes[0]:
                raise ValueError(f"weights[{number}] has shape {shape}, weights[0] has {shapes[0]}: they cannot be "
                                 "shown together.")
        if weights[0].ndim == 4:  # one tensor a layer, each with a batch axis
            return checked(np.stack([_example(layer, "[layer[:1] for layer in weights]") for layer in weights]))
    weights = as_array("weights", weights)
    if not 2 <= weights.ndim <= 5:
        raise ValueError(f"weights have {weights.ndim} axes, shape {weights.shape}; expected [T_q, T_k], [heads, T_q, "
                         "T_k], [layers, heads, T_q, T_k] or [1, layers, heads, T_q, T_k].")
    if weights.ndim == 5:
        weights = _example(weights, "weights[0]")
    return checked(weights.reshape((1,) * (4 - weights.ndim) + weights.shape))


def as_array(name: str, values) -> np.ndarray:
    """A float32 copy of a tensor (any device and floating type), an array or nested lists.

    Raises:
        ValueError: for what is not an array of real numbers, a sparse tensor, or a masked array that hides a value.
    """
    if getattr(values, "is_sparse", False) or "sparse" in str(getattr(values, "layout", "")):
        raise ValueError(f"{name} are a sparse tensor; give {name}.to_dense().")
    if np.ma.is_masked(values):
        raise ValueError(f"{name} are a masked array with {np.ma.count_masked(values)} hidden values, which have no "
                         f"number to show; fill them first: {name}.filled(0).")
    if hasattr(values, "detach"):  # a tensor of torch, which need not be installed; NumPy has no bfloat16
        values = values.detach().cpu().float().numpy()
    try:
        return np.array(values, dtype="<f4", order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as an array of numbers: {error}") from None


def _no_tensor(weights) -> str:
    number, layer = next((k, layer) for k, layer in enumerate(weights) if layer is None or isinstance(layer, tuple))
    if layer is None:
        return f"weights[{number}] is None: this layer has no attention weights. {NO_ATTENTION}"
    return f"weights[{number}] is a tuple: generate() returns one tuple of layers a step. Choose a step: weights[0]."


def _example(weights: np.ndarray, first: str) -> np.ndarray:
    """The only example of a batch; several are an error that says how to choose the first."""
    if len(weights) != 1:
        raise ValueError(f"the batch axis of the weights has {len(weights)} examples, shape {weights.shape}; 1 can be "
                         f"shown. Choose it; the first is {first}.")
    return weights[0]


def checked(weights: np.ndarray) -> np.ndarray:
    """The weights ``[layers, heads, T_q, T_k]``; a ValueError if they are empty, negative or not finite."""
    for axis, size in zip(AXES, weights.shape, strict=True):
        if size == 0:
            raise ValueError(f"weights have no {axis}: shape {weights.shape}. There is nothing to show.")
    _reject(weights, ~np.isfinite(weights), "expected finite numbers; is a row fully masked before the softmax?")
    _reject(weights, weights < 0, "expected weights from 0 to 1: give what the softmax returns, not the scores.")
    return weights


def _reject(weights: np.ndarray, bad: np.ndarray, advice: str) -> None:
    if bad.any():
        place = tuple(int(k) for k in np.argwhere(bad)[0])
        spoken = ", ".join(f"{axis} {k}" for axis, k in zip(AXES, place, strict=True))
        raise ValueError(f"weights are {weights[place]} at {spoken} ({bad.sum()} such values); {advice}")


def warn_of_odd_rows(weights: np.ndarray, stacklevel: int) -> None:
    """Warn once if rows sum neither to one nor to zero; ``stacklevel`` counts from the caller."""
    sums = weights.sum(axis=-1, dtype=np.float64)
    # bfloat16 keeps 8 bits, so a row of such weights may be off by some thousandths
    odd = np.argwhere((np.abs(sums - 1) > 0.02) & (sums != 0))
    if len(odd):
        layer, head, row = odd[0]
        message = f"{len(odd)} of {sums.size} rows do not sum to one: row {row} (layer {layer}, head {head}) sums to "
        message += f"{sums[layer, head, row]:.3g}. Is the softmax over the keys, the last axis?"
        warnings.warn(message, stacklevel=stacklevel + 1)


def read_tokens(weights: np.ndarray, rows, columns, names=("rows", "columns")) -> tuple[list[str], list[str]]:
    """The tokens of both axes; without columns, the rows are both. ``names``: what the caller calls the two.

    Raises:
        ValueError: if they do not fit the weights.
    """
    rows = list_of_tokens(names[0], rows)
    shared = columns is None
    columns = rows if shared else list_of_tokens(names[1], columns)
    for name, axis, tokens in ((names[0], 2, rows), (names[1], 3, columns)):
        if len(tokens) != weights.shape[axis]:
            said = f"{len(tokens)} tokens in {name}"
            if axis == 3 and shared:
                said = f"columns are the {len(rows)} tokens in rows (no columns were given)"
            raise ValueError(f"{said}, but the weights have {weights.shape[axis]} {AXES[axis]}s: shape "
                             f"{weights.shape} is [layers, heads, T_q, T_k]. Rows are queries (target), columns are "
                             "keys (source).")
    return rows, columns


def list_of_tokens(name: str, tokens) -> list[str]:
    """The tokens as strings; ``name``: what the caller calls them."""
    if isinstance(tokens, str) or not isinstance(tokens, Iterable):
        raise ValueError(f"{name} are {tokens!r:.40}; expected a list of tokens, such as ['the', 'cat'].")
    return [str(token) for token in tokens]


def read_links(alignment, rows: Sequence[str], columns: Sequence[str]) -> list[list[int]]:
    """True links ``[row, column]``, in order."""
    links = []
    for link in () if alignment is None else alignment:
        try:
            i, j = map(operator.index, link)
        except (TypeError, ValueError):
            raise ValueError(f"alignment has {link!r:.60}; expected pairs of whole numbers, (row, column) = (target "
                             "position, source position), from 0.") from None
        links.append((i, j))
    links.sort()
    for i, j in links:
        if not (0 <= i < len(rows) and 0 <= j < len(columns)):
            raise ValueError(f"alignment has ({i}, {j}), outside {len(rows)} rows and {len(columns)} columns. "
                             "Links are (row, column) = (target position, source position), from 0.")
    return [list(link) for link in links]


def must_not_look_ahead(weights: np.ndarray) -> None:
    """A ValueError if weights that are said to be causal are not square, or a query looks at a key after it."""
    if weights.shape[2] != weights.shape[3]:
        raise ValueError(f"causal=True, but there are {weights.shape[2]} queries and {weights.shape[3]} keys, shape "
                         f"{weights.shape}; expected self-attention, with as many keys as queries.")
    _reject(weights, np.triu(weights, 1) > 0, "causal=True says that nobody looks at later keys. Is that a mask's? "
                                              "Otherwise leave causal out.")


def read_queries_and_keys(weights: np.ndarray, queries, keys) -> tuple[np.ndarray, np.ndarray] | None:
    """Float32 ``[layers, heads, T_q, d]`` and ``[layers, heads, T_k, d]``, or ``None`` if neither is given.

    Raises:
        ValueError: if only one is given, an axis does not fit, or the softmax of their products, divided by the
            root of ``d``, over the keys whose weight is not zero, is not what the weights are (by more than 0.02).
    """
    if queries is None and keys is None:
        return None
    if queries is None or keys is None:
        raise ValueError("queries and keys belong together: give both, or neither.")
    pair = []
    for name, values, size in (("queries", queries, weights.shape[2]), ("keys", keys, weights.shape[3])):
        values = as_array(name, values)
        if 2 <= values.ndim <= 4:
            values = values.reshape((1,) * (4 - values.ndim) + values.shape)
        if values.ndim != 4:
            raise ValueError(f"{name} have {values.ndim} axes, shape {values.shape}; expected [layers, heads, T, d].")
        wanted = (*weights.shape[:2], size)
        for axis, had, need in zip(("layers", "heads", "tokens"), values.shape, wanted, strict=False):
            if had != need:
                raise ValueError(f"{name} have {had} {axis}, the weights have {need}: shapes {values.shape} and "
                                 f"{weights.shape}.")
        if not np.isfinite(values).all():
            raise ValueError(f"{name} are not all finite numbers.")
        pair.append(values)
    if pair[0].shape[3] != pair[1].shape[3]:
        raise ValueError(f"queries have d = {pair[0].shape[3]}, keys have d = {pair[1].shape[3]}: their product needs "
                         "the same.")
    _must_explain(weights, *pair)
    return pair[0], pair[1]


def _must_explain(weights: np.ndarray, queries: np.ndarray, keys: np.ndarray) -> None:
    for layer, head in np.ndindex(weights.shape[:2]):
        shown = weights[layer, head]
        scores = queries[layer, head].astype(np.float64) @ keys[layer, head].T / math.sqrt(queries.shape[3])
        scores[shown == 0] = -np.inf
        open_rows = np.isfinite(scores).any(axis=1)  # others are fully masked
        share = np.zeros_like(scores)
        share[open_rows] = np.exp(scores[open_rows] - scores[open_rows].max(axis=1, keepdims=True))
        share[open_rows] /= share[open_rows].sum(axis=1, keepdims=True)
        row, column = np.unravel_index(np.abs(share - shown).argmax(), shown.shape)
        if abs(share[row, column] - shown[row, column]) > 0.02:
            raise ValueError(f"queries and keys do not give these weights: at layer {layer}, head {head}, row {row}, "
                             f"column {column} softmax(q·k/√d) is {share[row, column]:.3f}, the weight is "
                             f"{shown[row, column]:.3f}. Give them as they meet, after the split into heads and any "
                             "rotation; a bias cannot be shown.")


def thumbnails(weights: np.ndarray, top: float, size: int) -> np.ndarray:
    """Every head as a small picture, uint8 ``[layers, heads, ≤ size, ≤ size]``: positions in the colour scale.

    A pixel is the largest of the weights it stands for, so that a thin diagonal stays.
    """
    for axis in (2, 3):
        length = weights.shape[axis]
        pixels = min(size, length)
        weights = np.maximum.reduceat(weights, np.arange(pixels) * length // pixels, axis=axis)
    return np.minimum(weights / top * 256, 255).astype(np.uint8)
