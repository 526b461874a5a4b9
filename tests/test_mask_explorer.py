"""The Python side of the mask explorer: the masks, the ways through them, what it refuses and what it leaves behind."""

import base64
import io
import re

import numpy as np
import pytest
import traitlets
from PIL import Image
from sample_widgets import exported

from course_utils.widgets import MaskExplorer
from course_utils.widgets.base import _lean, javascript, stylesheet
from course_utils.widgets.mask_explorer import PATTERNS

LIVE = "application/vnd.jupyter.widget-view+json"


# --- masks ---

DRAWN = {  # length 8, window 1, stride 3, drawn by hand
    "full": "######## " * 8,
    "causal": "#....... ##...... ###..... ####.... #####... ######.. #######. ########",
    "padding": "#######. " * 8,
    "sliding window": "##...... ###..... .###.... ..###... ...###.. ....###. .....### ......##",
    "strided": "#....... ##...... .##..... #.##.... .#.##... ..#.##.. #..#.##. .#..#.##",
    "fixed": "#....... ##...... ###..... ..##.... ..###... ..####.. ..#..##. ..#..###",
    "dilated": "#..#.... .#..#... ..#..#.. #..#..#. .#..#..# ..#..#.. ...#..#. ....#..#",
    "global tokens": "######## ######## ######## #####... ######.. ###.###. ###..### ###...##",
    "block recurrence": "#....... ##...... ###..... ####.... #####... ######.. ...####. ...#####",
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_masks_are_those_drawn_by_hand(pattern):
    mask = MaskExplorer(pattern, length=8, window=1, stride=3).mask
    assert (mask.shape, mask.dtype) == ((8, 8), bool)
    assert ["".join(".#"[seen] for seen in row) for row in mask.tolist()] == DRAWN[pattern].split()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_causal_hides_the_keys_after_the_query(pattern):
    view = MaskExplorer(pattern, length=8, window=1, stride=3, causal=True)
    rows = [row[:q + 1] + "." * (7 - q) for q, row in enumerate(DRAWN[pattern].split())]
    assert ["".join(".#"[seen] for seen in row) for row in view.mask.tolist()] == rows
    assert repr(view).endswith("stride=3, causal=True)")
    assert f"mask {pattern}, causal, length 8" in view._in_words()
    assert exported(view)["causal"] is True


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("length", "window", "stride"), [(4, 0, 1), (9, 64, 64), (64, 3, 7), (4, 4, 2)])
def test_every_query_sees_something_at_every_size(pattern, length, window, stride):
    mask = MaskExplorer(pattern, length, window, stride).mask
    assert mask.shape == (length, length)
    assert mask.any(axis=1).all()
    if pattern in ("causal", "strided", "fixed", "block recurrence"):
        assert not np.triu(mask, 1).any()


# --- ways ---


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("window", "stride"), [(0, 3), (2, 3), (3, 4)])
def test_the_path_is_a_shortest_one(pattern, window, stride):
    """Against powers of the mask: after L layers a query has heard of the keys in the L-th power."""
    view = MaskExplorer(pattern, length=10, window=window, stride=stride)
    fewest, power = np.zeros((10, 10), int), np.eye(10, dtype=int)
    for layers in range(1, 11):
        power = (power @ view.mask > 0).astype(int)
        fewest[(power > 0) & (fewest == 0)] = layers
    for cell in np.ndindex(10, 10):
        view.cell = cell
        path = view.path
        assert (len(path) - 1 if path else 0) == fewest[cell]
        if path:
            assert (path[0], path[-1]) == cell
            assert all(view.mask[a, b] for a, b in zip(path, path[1:], strict=False))


def test_the_docstring_is_right():
    view = MaskExplorer("sliding window", length=32, window=2)
    view.cell = (31, 0)
    assert (view.mask.sum(), view.mask.size, len(view.path) - 1) == (154, 1024, 16)


# --- traits ---


def test_the_last_query_and_the_first_key_are_selected_first():
    view = MaskExplorer()
    assert (view.pattern, view.length, view.window, view.stride, view.title) == ("causal", 16, 3, 4, "")
    assert (view.cell, view.path) == ((15, 0), (15, 0))
    assert repr(view) == "MaskExplorer('causal', length=16, window=3, stride=4)"


def test_a_pair_is_selected_from_the_start():
    assert MaskExplorer("strided", 20, cell=(3, 19)).cell == (3, 19)


def test_traits_are_two_way_and_the_cell_stays_inside():
    view, seen = MaskExplorer(length=20), []
    view.observe(lambda change: seen.append((change.name, change.new)), ["pattern", "length", "cell"])
    view.pattern = "full"
    view.length = 8
    assert view.cell == (7, 0)
    view.set_state({"cell": [11, 3], "length": 12})  # as the front end sends it, whatever comes first
    assert (view.length, view.cell) == (12, (11, 3))
    assert ("pattern", "full") in seen
    assert ("cell", (7, 0)) in seen
    assert ("cell", (11, 3)) in seen


@pytest.mark.parametrize(("name", "value", "message"), [
    ("pattern", "random", "pattern is 'random'; expected one of full, causal, padding, sliding window"),
    ("length", 3, "length is 3; expected 4 to 64"), ("length", 65, "length is 65"),
    ("window", -1, "window is -1; expected 0 to 64"), ("window", 65, "window is 65"),
    ("stride", 0, "stride is 0; expected 1 to 64"), ("stride", 65, "stride is 65"),
    ("cell", (16, 0), r"cell\[0\] \(query\) is 16, but there are 16: 0 to 15"),
    ("cell", (0, -1), r"cell\[1\] \(key\) is -1"),
])
def test_values_that_do_not_exist(name, value, message):
    view = MaskExplorer()
    with pytest.raises(traitlets.TraitError, match=message):
        view.set_trait(name, value)
    assert (view.pattern, view.length, view.cell) == ("causal", 16, (15, 0))
    with pytest.raises(traitlets.TraitError, match=message):
        MaskExplorer(**{name: value})


# --- what an output holds ---


def test_output_has_a_live_view_and_what_lasts():
    view = MaskExplorer("sliding window", title="near")
    data, _ = view._repr_mimebundle_()
    assert data[LIVE]["model_id"] == view.model_id
    assert data["text/plain"].splitlines() == [
        "near: mask sliding window, length 16, window 3, stride 4: 100 of 256 pairs (39%), 400 of 1024 bytes of "
        "scores.",
        "Query 15 is reached by key 0 in 5 layers: 15 ← 12 ← 9 ← 6 ← 3 ← 0.",
    ]
    assert exported(view) == {"pattern": "sliding window", "length": 16, "window": 3, "stride": 4,
                              "causal": False, "cell": [15, 0], "title": "near"}
    assert view.to_html() == MaskExplorer("sliding window", title="near").to_html() != MaskExplorer().to_html()


def test_half_a_percent_is_rounded_up_as_in_the_page():
    assert "8 of 64 pairs (13%)" in MaskExplorer("sliding window", length=8, window=0)._in_words()


def test_in_words_one_layer_and_none():
    assert MaskExplorer()._in_words().endswith("Query 15 is reached by key 0 in 1 layer: 15 ← 0.")
    assert MaskExplorer("dilated")._in_words().endswith("Query 15 is reached by key 0 in no number of layers.")


def test_a_title_cannot_leave_its_place():
    html = MaskExplorer(title="</script><img src=x onerror=alert(1)>").to_html()
    assert html.count("</script>") == 1
    assert "<img src=x" not in html


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_still_picture_shows_the_mask(pattern):
    view = MaskExplorer(pattern, length=12)
    picture = re.search(r'src="data:image/png;base64,([^"]*)"', view.to_html())[1]
    pixels = np.array(Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")).astype(int)
    box = view.figure()
    box.canvas.draw()
    axes = box.axes[0]
    found = np.zeros((12, 12), bool)
    for query, key in np.ndindex(12, 12):
        x, y = axes.transData.transform((key, query))
        red, _, blue = pixels[round(pixels.shape[0] - y), round(x)]
        found[query, key] = red < 100 or (red > 200 and blue < 180)  # teal, or a yellow hop
    np.testing.assert_array_equal(found, view.mask)


def test_sizes():
    assert len(_lean(javascript("mask_explorer"))) + len(_lean(stylesheet("mask_explorer"))) < 30_000
    assert len(MaskExplorer("strided", length=64)._still()) < 20_000
