"""Colours that mean different things stay apart for readers with every kind of colour vision.

Colour vision without one kind of cone is simulated as in Machado, Oliveira and Fernandes, "A physiologically-based
model for simulation of color vision deficiency", IEEE TVCG 15(6), 2009: the matrices for severity 1, on linear RGB.
Distances are those of CIELAB (1976), in which 2.3 is just noticeable side by side (Mahy et al. 1994).
"""

import re
from itertools import combinations

import matplotlib
import numpy as np
import pytest

from course_utils.plotting import BAD, GOOD, KEY, LINES, MARKERS, QUERY, VALUE
from course_utils.widgets import ask, mask_explorer
from course_utils.widgets.base import STATIC

VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
# thin lines and words, apart from each other, need several times what is just noticeable side by side
SMALLEST = 15
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
                [0.0193339, 0.1191920, 0.9503041]])
WHITE = XYZ.sum(axis=1)


def lab(colour, vision="normal"):
    """CIELAB of an sRGB colour, ``#rrggbb`` or three numbers from 0 to 1, as such a reader sees it."""
    if isinstance(colour, str):
        colour = [int(colour[k:k + 2], 16) / 255 for k in (1, 3, 5)]
    colour = np.asarray(colour)
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    x, y, z = XYZ @ np.clip(np.asarray(VISION[vision]) @ linear, 0, 1) / WHITE
    f = [np.cbrt(t) if t > (6 / 29) ** 3 else t / (3 * (6 / 29) ** 2) + 4 / 29 for t in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(one, other, vision="normal"):
    return float(np.linalg.norm(lab(one, vision) - lab(other, vision)))


def test_known_colours():
    np.testing.assert_allclose(lab("#ffffff"), [100, 0, 0], atol=0.01)
    np.testing.assert_allclose(lab("#ff0000"), [53.24, 80.09, 67.20], atol=0.02)
    # red and green of the same lightness: far apart, but not for those who lack a cone for either
    assert distance("#c03a2b", "#1e8449") > 80
    assert distance("#a07000", "#b06000", "deuteranopia") < distance("#a07000", "#b06000")
    for matrix in VISION.values():
        np.testing.assert_allclose(np.sum(matrix, axis=1), 1, atol=1e-5)  # grey stays grey


def heads():
    """The colours of several heads drawn together, from the JavaScript."""
    code = (STATIC / "attention_view_links.js").read_text(encoding="utf-8")
    return re.findall("#[0-9a-f]{6}", re.search(r"HEAD_COLOURS = \[(.*?)\]", code)[1])


def paths():
    """The colours of paths in the decoding tree: best, greedy, sampled, and of other edges in the beam."""
    style = (STATIC / "decoding_tree.css").read_text(encoding="utf-8")
    named = re.findall("--(?:good|greedy|sampled): (#[0-9a-f]{6});", style)
    return *named, re.search(r"\.is-kept \.dt-line \{ stroke: (#\w+)", style)[1]


MEANINGS = {
    "query, key, value": (QUERY, KEY, VALUE),
    "good and bad": (GOOD, BAD),
    "six heads": tuple(heads()),
    "decoding tree: best, greedy, sampled, others": paths(),
    "links of a query, of a key, and others": (QUERY, KEY, "#4b5563"),
    "ask: an answer, all others": (ask.ANSWER, ask.OTHERS),
    "mask: seen, unseen, path": (mask_explorer.SEEN, mask_explorer.UNSEEN, mask_explorer.HOP),
}


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("name", MEANINGS)
def test_meanings_stay_apart(name, vision):
    near = {pair: distance(*pair, vision) for pair in combinations(MEANINGS[name], 2)}
    assert min(near.values()) >= SMALLEST, min(near, key=near.get)


@pytest.mark.parametrize("vision", VISION)
def test_a_larger_weight_is_a_lighter_colour(vision):
    lightness = [lab(colour, vision)[0] for colour in matplotlib.colormaps["cividis"].colors]
    assert (np.diff(lightness) > -0.05).all()
    assert lightness[-1] - lightness[0] > 60


def test_lines_of_a_plot_have_different_markers():
    """Six colours cannot all stay apart for everybody; markers and names at their ends do."""
    assert len(set(MARKERS)) == len(MARKERS) >= len(LINES)
