"""Still pictures of attention: small, without a script, for places where scripts do not run."""

import io
import warnings
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image, ImageDraw, ImageFont

from .colours import BAD, KEY, MUTED, PAPER, QUERY, cividis
from .tensors import as_array, checked, unpacked

LONGEST = 130  # pixels; a longer token is cut
MOST_LETTERS = 40  # of a word beside a plot
GREY = (201, 205, 212)  # padding
LIGHT = (241, 242, 245)  # masked
ROOM_FOR_TEXT = 15  # pixels between two tokens; with less, the axes are not labelled


def _font(size: int) -> ImageFont.FreeTypeFont:
    # matplotlib brings this font, so that the picture is the same on every machine
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    return ImageFont.truetype(folder / "DejaVuSans.ttf", size, layout_engine=ImageFont.Layout.BASIC)


def _cut(word: str) -> str:
    """A word for an axis, cut if it is very long."""
    return word if len(word) <= MOST_LETTERS else word[:MOST_LETTERS - 1] + "…"


def _label(text: str, colour: str, font: ImageFont.FreeTypeFont) -> Image.Image:
    """One token as a picture, as large as its text."""
    text = text[:LONGEST].replace("\n", "⏎") or "∅"  # no letter is narrower than a pixel
    while len(text) > 1 and font.getlength(text) > LONGEST:
        text = text.removesuffix("…")[:-1] + "…"
    picture = Image.new("RGB", (int(font.getlength(text)) + 2, 18), PAPER)
    ImageDraw.Draw(picture).text((1, 9), text, fill=colour, font=font, anchor="lm")
    return picture


def png(picture: Image.Image) -> bytes:
    """The picture as a small PNG, in palette colours."""
    file = io.BytesIO()
    picture.quantize(64, dither=Image.Dither.NONE).save(file, "png", optimize=True)
    return file.getvalue()


def attention_heatmap(weights, rows: Sequence[str] | None = None, columns: Sequence[str] | None = None,
                      alignment: Collection[tuple[int, int]] | None = None, axes: Axes | None = None,
                      label: str = "weight") -> Figure:
    """An attention matrix as a picture; the printed sibling of `AttentionView`.

    Args:
        weights: ``(T_q, T_k)``, 0 to 1; or a record that holds all four, as for `AttentionView`.
        rows: the ``T_q`` words that ask.
        columns: the ``T_k`` words that are looked at. Default: the rows.
        alignment: true links ``(row, column)``, drawn as outlines. Default: the record's own, or none.
        axes: where to draw; by default a new figure.
        label: what the colours mean, written beside their scale.

    Raises:
        ValueError: if the words do not fit the shape; if weights are negative or not finite.
    """
    weights, rows, columns, alignment = unpacked(weights, rows, columns, alignment)
    columns = rows if columns is None else columns
    weights = as_array("weights", weights)
    if weights.shape != (len(rows), len(columns)):
        heads = " Of several heads choose one: it.with_weights(it.weights[layer, head])." if weights.ndim > 2 else ""
        raise ValueError(f"weights have shape {tuple(weights.shape)}, but there are {len(rows)} rows and "
                         f"{len(columns)} columns of words.{heads}")
    checked(weights[None, None])
    if axes is None:
        import matplotlib.pyplot as plt  # slow, and nothing else here needs it

        _, axes = plt.subplots(figsize=(1.6 + 0.42 * len(columns), 1.6 + 0.36 * len(rows)))
    picture = axes.imshow(weights, vmin=0, vmax=1, aspect="auto", cmap="cividis")
    axes.grid(False)
    rows, columns = ([_cut(str(word)) for word in words] for words in (rows, columns))
    axes.set_xticks(range(len(columns)), columns, rotation=60, ha="left", rotation_mode="anchor", color=KEY)
    axes.set_yticks(range(len(rows)), rows, color=QUERY)
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    for row, column in () if alignment is None else alignment:
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor="white", linewidth=3))
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=BAD, linewidth=1.5))
    axes.figure.colorbar(picture, ax=axes, label=label, shrink=0.8)
    return axes.figure


def paper(width: float, height: float, layout: str = "constrained") -> Figure:
    """An empty figure, in inches; pyplot does not know of it, so that a notebook does not show it twice."""
    figure = Figure(figsize=(width, height), dpi=100, layout=layout, facecolor=PAPER)
    FigureCanvasAgg(figure)
    return figure


def figure_picture(draw: Callable[[], Figure]) -> bytes:
    """The figure that ``draw`` makes as a small PNG, the same whatever style the notebook has set.

    A letter that the font does not have becomes a box, without a warning.
    """
    file = io.BytesIO()
    with matplotlib.style.context("default"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        draw().savefig(file, dpi=100)
    return png(Image.open(file).convert("RGB"))


def matrix_picture(weights: np.ndarray, rows, columns, top: float, alignment=(), padding=((), ()),
                   causal: bool = False) -> bytes:
    """Draw weights ``[T_q, T_k]`` with their tokens, the colours running from 0 to ``top``.

    Args:
        weights: the weights of one head.
        rows: the query tokens.
        columns: the key tokens.
        top: the end of the colour scale.
        alignment: true links ``(row, column)``, outlined.
        padding: the rows and the columns that are padding, drawn in grey.
        causal: whether keys after the query are masked; they are drawn nearly white.

    Returns:
        A PNG of a few kilobytes (palette colours).
    """
    n_rows, n_columns = weights.shape
    pitch = max(1, min(26, 620 // max(n_rows, n_columns)))
    if max(n_rows, n_columns) <= 40:
        pitch = max(pitch, ROOM_FOR_TEXT)
    labelled = pitch >= ROOM_FOR_TEXT
    left_labels, top_labels = _axis_labels(rows, columns, padding) if labelled else ([], [])
    left = max((label.width for label in left_labels), default=0) + 8
    above = max((label.height for label in top_labels), default=0) + 8
    cells = Image.fromarray(_shades(weights / top, padding, causal))
    cells = cells.resize((n_columns * pitch, n_rows * pitch), Image.Resampling.NEAREST)
    note, small = _legend(top, bool(alignment) and labelled, any(padding), causal), _font(11)
    width = left + max(cells.width, int(small.getlength(note))) + 8
    picture = Image.new("RGB", (width, above + cells.height + 26), PAPER)
    picture.paste(cells, (left, above))
    for i, label in enumerate(left_labels):
        picture.paste(label, (left - 5 - label.width, above + i * pitch + (pitch - label.height) // 2))
    for j, label in enumerate(top_labels):
        picture.paste(label, (left + j * pitch + (pitch - label.width) // 2, above - 4 - label.height))
    draw = ImageDraw.Draw(picture)
    for i, j in alignment if labelled else ():
        x, y = left + j * pitch, above + i * pitch
        draw.rectangle((x + 1, y + 1, x + pitch - 2, y + pitch - 2), outline="black")
        draw.rectangle((x + 2, y + 2, x + pitch - 3, y + pitch - 3), outline="white", width=2)
    draw.text((left, above + cells.height + 6), note, fill=MUTED, font=small)
    return png(picture)


def _axis_labels(rows, columns, padding) -> tuple[list[Image.Image], list[Image.Image]]:
    """The tokens as pictures, those of the columns turned; padding in grey."""
    font = _font(13)
    left, top = ([_label(token, MUTED if k in marked else colour, font) for k, token in enumerate(tokens)]
                 for tokens, marked, colour in zip((rows, columns), padding, (QUERY, KEY), strict=True))
    return left, [label.rotate(90, expand=True) for label in top]


def _shades(shares: np.ndarray, padding, causal: bool) -> np.ndarray:
    """A pixel for each weight, given as a share of the largest: ``[T_q, T_k, 3]``."""
    shades = cividis()[np.clip(shares * 256, 0, 255).astype(int)]
    if causal:
        shades[np.triu_indices(len(shares), 1, shares.shape[1])] = LIGHT
    shades[list(padding[0])] = shades[:, list(padding[1])] = GREY
    return shades


def _legend(top: float, outlined: bool, padded: bool, causal: bool) -> str:
    """What the colours mean."""
    return (f"weight: dark 0, bright {'1' if top == 1 else f'{top:.4f}'}"
            + (" · outlined: true alignment" if outlined else "") + (" · grey: padding" if padded else "")
            + (" · white: masked" if causal else ""))


def grid_picture(thumbnails: np.ndarray, hidden: np.ndarray) -> bytes:
    """Draw every head, ``[layers, heads, rows, columns]`` as positions in the colour scale, one row per layer.

    Args:
        thumbnails: the small pictures.
        hidden: ``[rows, columns]``, true where a pixel is padding, drawn in grey.

    Returns:
        A PNG (palette colours).
    """
    layers, heads = thumbnails.shape[:2]
    side = max(16, min(96, 560 // layers, 760 // heads))
    pitch, left, above = side + 4, 34, 22
    picture = Image.new("RGB", (left + heads * pitch, above + layers * pitch + 22), PAPER)
    draw, small = ImageDraw.Draw(picture), _font(11)
    for layer, head in np.ndindex(layers, heads):
        shades = cividis()[thumbnails[layer, head]]
        shades[hidden] = GREY
        tile = Image.fromarray(shades).resize((side, side), Image.Resampling.NEAREST)
        picture.paste(tile, (left + head * pitch, above + layer * pitch))
    for layer in range(layers):
        draw.text((left - 6, above + layer * pitch + side // 2), str(layer), fill=MUTED, font=small, anchor="rm")
    for head in range(heads):
        draw.text((left + head * pitch + side // 2, above - 4), str(head), fill=MUTED, font=small, anchor="ms")
    note = "every layer (row) and head (column)" + (" · grey: padding" if hidden.any() else "")
    draw.text((left, above + layers * pitch + 4), note, fill=MUTED, font=small)
    return png(picture)
