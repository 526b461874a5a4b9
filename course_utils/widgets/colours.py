"""The course's colours, kept here for `plotting` too, so that the widgets need nothing of the course
and no torch: someone with a model and weights of their own can use them alone.
"""

import matplotlib
import numpy as np

QUERY, KEY, VALUE = "#6A1FB8", "#B85C00", "#1F6FB2"
INK, MUTED, PAPER = "#1F2430", "#6B7280", "#FFFFFF"
GOOD, BAD, TEAL = "#1B7F5C", "#B3261E", "#0E7490"


def cividis() -> np.ndarray:
    """The 256 colours of the scale, uint8 ``(256, 3)``: red, green, blue."""
    return (np.array(matplotlib.colormaps["cividis"].colors) * 255).round().astype(np.uint8)
