"""A small position explorer: ten positions, six dimensions."""

import numpy as np

from course_utils.widgets import PositionExplorer

LEARNED = np.random.default_rng(3).normal(size=(10, 6)).astype(np.float32)


def explorer(kind="sinusoidal", **changes):
    return PositionExplorer(kind, **{"length": 10, "d_model": 6, "cell": (2, 7), "learned": LEARNED, **changes})
