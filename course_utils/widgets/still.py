"""The still picture of an attention matrix: small, without a script, for places where scripts do not run."""

import io
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from ..plotting import KEY, MUTED, PAPER, QUERY

LONGEST = 130  # pixels; a longer token is cut
ROOM_FOR_TEXT = 15  # pixels between two tokens; with less, the axes are not labelled


def _font(size: int) -> ImageFont.FreeTypeFont:
    # matplotlib brings this font, so that the picture is the same on every machine
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    return ImageFont.truetype(folder / "DejaVuSans.ttf", size, layout_engine=ImageFont.Layout.BASIC)


def _label(text: str, colour: str, font: ImageFont.FreeTypeFont) -> Image.Image:
    """One token as a picture of its own size."""
    text = text.replace("\n", "⏎") or "∅"
    while len(text) > 1 and font.getlength(text) > LONGEST:
        text = text.removesuffix("…")[:-1] + "…"
    picture = Image.new("RGB", (int(font.getlength(text)) + 2, 18), PAPER)
    ImageDraw.Draw(picture).text((1, 9), text, fill=colour, font=font, anchor="lm")
    return picture


def matrix_picture(weights: np.ndarray, rows, columns, top: float, alignment=()) -> bytes:
    """Draw weights ``[T_q, T_k]`` with their tokens, the colours running from 0 to ``top``.

    Returns:
        A PNG of a few kilobytes (palette colours).
    """
    n_rows, n_columns = weights.shape
    pitch = max(1, min(26, 620 // max(n_rows, n_columns)))
    if max(n_rows, n_columns) <= 40:
        pitch = max(pitch, ROOM_FOR_TEXT)
    font = _font(13)
    labelled = pitch >= ROOM_FOR_TEXT
    left_labels = [_label(token, QUERY, font) for token in rows] if labelled else []
    top_labels = [_label(token, KEY, font).rotate(90, expand=True) for token in columns] if labelled else []
    left = max((label.width for label in left_labels), default=0) + 8
    above = max((label.height for label in top_labels), default=0) + 8

    scale = np.array(matplotlib.colormaps["cividis"].colors) * 255
    shades = np.clip(weights / top * 256, 0, 255).astype(int)
    cells = Image.fromarray(scale.round().astype(np.uint8)[shades])
    cells = cells.resize((n_columns * pitch, n_rows * pitch), Image.Resampling.NEAREST)

    end = "1" if top == 1 else f"{top:.3f}"
    note = f"weight: dark 0, bright {end}" + (" · outlined: true alignment" if alignment and labelled else "")
    small = _font(11)
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
    file = io.BytesIO()
    picture.quantize(64, dither=Image.Dither.NONE).save(file, "png", optimize=True)
    return file.getvalue()
