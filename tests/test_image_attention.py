"""The Python side of the image attention: pictures, weights and grids, what it refuses and what it leaves behind."""

import base64
import io
import json
import warnings

import numpy as np
import pytest
import torch
import traitlets
from PIL import Image
from sample_widgets import exported

from course_utils.widgets import ImageAttention
from course_utils.widgets.base import _lean, javascript, stylesheet

LIVE = "application/vnd.jupyter.widget-view+json"
GREY = np.linspace(0, 1, 16).reshape(4, 4)
RNG = np.random.default_rng(0)
SELF = RNG.dirichlet(np.ones(16), size=(2, 3, 16))            # layers, heads, queries, keys
WORDS = ["a", "<b>cat</b>", "sits"]
CAPTION = RNG.dirichlet(np.ones(6), size=3)                   # queries, keys
COLOUR = RNG.random((40, 60, 3))


def picture(view):
    """The image as it travels."""
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(view._content["image"].split(",")[1]))))


# --- what is given ---


def test_pixels_ask_and_the_one_in_the_middle_is_selected_with_its_strongest_key():
    view = ImageAttention(GREY, SELF, layer=1, head=2)
    assert (view.grid, view.rows, view.layer, view.head) == ((4, 4), (), 1, 2)
    assert view.cell == (10, SELF[1, 2, 10].argmax())
    assert repr(view) == ("ImageAttention(layers=2, heads=3, queries=16, grid=(4, 4), layer=1, head=2, "
                          f"cell={view.cell})")


def test_words_ask_about_patches():
    view = ImageAttention(COLOUR, CAPTION, WORDS, title="A caption")
    assert (view.grid, view.rows, view.title) == ((2, 3), tuple(WORDS), "A caption")
    assert view.cell == (0, CAPTION[0].argmax())
    assert view.weights.shape == (1, 1, 3, 6)


@pytest.mark.parametrize("given", [
    GREY, torch.tensor(GREY), torch.tensor(GREY, dtype=torch.float16), GREY.tolist(),
    np.rint(GREY * 255).astype("uint8"), Image.fromarray(np.rint(GREY * 255).astype("uint8")),
    torch.tensor(GREY).requires_grad_()])
def test_a_picture_may_come_from_anywhere(given):
    sent = picture(ImageAttention(given, SELF))
    np.testing.assert_allclose(sent, GREY * 255, atol=0.6)
    assert sent.dtype == np.uint8


def test_a_coloured_picture_travels_as_it_is():
    np.testing.assert_allclose(picture(ImageAttention(COLOUR, CAPTION, WORDS)), COLOUR * 255, atol=0.51)


def test_a_picture_with_a_palette_keeps_its_colours():
    flag = Image.new("P", (4, 4), color=1)
    flag.putpalette([0, 0, 0, 200, 30, 40])
    assert np.unique(picture(ImageAttention(flag, SELF)).reshape(-1, 3), axis=0).tolist() == [[200, 30, 40]]


@pytest.mark.parametrize(("image", "weights", "options", "grid"), [
    (GREY, SELF, {}, (4, 4)), (np.zeros((2, 8)), SELF, {}, (2, 8)), (np.zeros((8, 8)), SELF, {}, (4, 4)),
    (np.zeros((10, 40)), SELF, {}, (2, 8)), (np.zeros((10, 40)), SELF, {"grid": (4, 4)}, (4, 4)),
    (np.zeros((5, 7)), SELF, {"grid": (1, 16)}, (1, 16)), (np.zeros((3, 3)), [[1.0]], {}, (1, 1))])
def test_patches_are_pixels_or_squares_or_what_is_said(image, weights, options, grid):
    assert ImageAttention(image, weights, **options).grid == grid


def test_a_batch_of_one_and_layers_are_read_as_by_the_attention_view():
    np.testing.assert_allclose(ImageAttention(GREY, torch.tensor(SELF)[None]).weights, SELF, rtol=1e-6)
    layers = tuple(torch.tensor(layer)[None] for layer in SELF)
    np.testing.assert_allclose(ImageAttention(GREY, layers).weights, SELF, rtol=1e-6)


def test_a_key_that_is_no_patch_may_be_left_out():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        view = ImageAttention(GREY, 0.5 * SELF)
    assert "to the whole picture 0.5000" in view._in_words()


def test_rows_above_one_are_warned_of():
    with pytest.warns(UserWarning, match=r"96 of 96 rows .* one: row 0 \(layer 0, head 0\) sums to 1.05.*last axis"):
        ImageAttention(GREY, 1.05 * SELF)


@pytest.mark.parametrize(("image", "weights", "options", "message"), [
    (np.zeros((3, 4, 4)), SELF, {}, r"shape \(3, 4, 4\); expected \(H, W\) or \(H, W, 3\). Channels come last here"),
    (np.zeros(16), SELF, {}, r"image has shape \(16,\); expected"),
    (np.zeros((0, 4)), SELF, {}, r"image has shape \(0, 4\)"),
    (np.zeros((1025, 4)), SELF, {}, "1025 by 4 pixels; at most 1024 a side"),
    (GREY * 255, SELF, {}, "numbers from 0 to 255; expected 0 \\(black\\) to 1, or uint8"),
    (GREY - 1, SELF, {}, "numbers from -1 to 0"), (GREY * np.nan, SELF, {}, "numbers from nan to nan"),
    (COLOUR, CAPTION, {"rows": WORDS, "framed": [True] * 6}, r"framed is bool of shape .6,.; expected boolean .3, 6."),
    (COLOUR, CAPTION, {"rows": WORDS, "framed": CAPTION}, "framed is float64 of shape"),
    ("cat.png", SELF, {}, "image cannot be read as an array of numbers"),
    (GREY, SELF[..., :15], {"rows": "x" * 16}, "15 square patches do not fill an image of 4 by 4 pixels.*grid="),
    (GREY, SELF, {"grid": (4, 5)}, "grid is 4 by 5, 20 patches, but the weights have 16 keys"),
    (GREY, SELF, {"grid": (-4, -4)}, "grid is -4 by -4"),
    (GREY, SELF, {"grid": 4}, "grid is 4; expected .rows, columns."),
    (GREY, SELF, {"grid": (4, 2, 2)}, "grid is .4, 2, 2.; expected .rows, columns."),
    (GREY, SELF[:, :, :3], {}, "3 queries and 16 keys, .* Give the 3 words as rows"),
    (GREY, SELF[:, :, :3], {"rows": ["a", "b"]}, "2 tokens in rows, but the weights have 3 row"),
    (GREY, -SELF, {}, "expected weights from 0 to 1"), (GREY, SELF[0, 0, 0], {}, "weights have 1 axes"),
    (GREY, np.ones((2, 40, 16, 1024)) / 1024, {"rows": "x" * 16}, "1,310,720 weights.*at most 1,000,000")])
def test_what_does_not_fit_is_refused(image, weights, options, message):
    with pytest.raises(ValueError, match=message):
        ImageAttention(image, weights, **options)


@pytest.mark.parametrize(("name", "value", "message"), [
    ("layer", 2, "layer is 2, but there are 2: 0 to 1"), ("head", -1, "head is -1, but there are 3"),
    ("cell", (16, 0), r"cell\[0\] \(query\) is 16, but there are 16"), ("cell", (0, 16), r"cell\[1\] \(key\) is 16")])
def test_a_selection_that_does_not_exist_is_refused(name, value, message):
    view = ImageAttention(GREY, SELF)
    before = getattr(view, name)
    with pytest.raises(traitlets.TraitError, match=message):
        setattr(view, name, value)
    assert getattr(view, name) == before
    with pytest.raises(traitlets.TraitError, match=message):
        ImageAttention(GREY, SELF, **{name: value})


# --- traits ---


def test_traits_are_two_way():
    view, seen = ImageAttention(GREY, SELF), []
    view.observe(lambda change: seen.append((change.name, change.new)), ["layer", "head", "cell", "title"])
    view.layer, view.head, view.cell, view.title = 1, 2, (3, 4), "new"
    view.set_state({"cell": [5, 6], "head": 0})
    assert (view.cell, view.head) == ((5, 6), 0)
    assert seen == [("layer", 1), ("head", 2), ("cell", (3, 4)), ("title", "new"), ("cell", (5, 6)), ("head", 0)]


def test_the_weights_travel_and_cannot_be_changed():
    view = ImageAttention(GREY, torch.tensor(SELF[::-1].copy()))
    np.testing.assert_allclose(view.weights, SELF[::-1], rtol=1e-6)
    np.testing.assert_array_equal(np.frombuffer(view._content["weights"], "<f4"), view.weights.ravel())
    np.testing.assert_allclose(np.frombuffer(view._content["sums"], "<f4"), 1, atol=1e-6)
    with pytest.raises(ValueError, match="read-only"):
        view.weights[0] = 0


# --- what is left behind ---


def test_the_export_holds_the_weights_in_16_bits():
    state = exported(ImageAttention(GREY, SELF, cell=(1, 2), title="t"))
    sent = state["_content"]["weights"]
    values = np.frombuffer(base64.b64decode(sent["uint16"]), "<u2") / 65535 * sent["peak"]
    np.testing.assert_allclose(values, SELF.ravel(), atol=8e-6)
    assert (state["cell"], state["title"], state["_content"]["grid"]) == ([1, 2], "t", [4, 4])
    assert state["_content"]["shape"] == [2, 3, 16, 16]


def test_the_bundle_is_live_still_and_text():
    view = ImageAttention(COLOUR, CAPTION, WORDS, title="A caption")
    data, _ = view._repr_mimebundle_()
    assert set(data) >= {LIVE, "text/html", "text/plain"}
    assert data["text/plain"] == view._in_words()
    assert data["text/html"] == ImageAttention(COLOUR, CAPTION, WORDS, title="A caption").to_html()
    assert "&lt;b&gt;" not in data["text/html"].split("<script>")[0]  # the first word asks
    assert "<b>cat" not in data["text/html"]
    still = Image.open(io.BytesIO(view._still()))
    assert still.width > 500
    view.cell = (1, 0)
    assert view._still() != ImageAttention(COLOUR, CAPTION, WORDS)._still()


def test_in_words():
    view = ImageAttention(COLOUR, [[0.5, 0.1, 0, 0, 0.1, 0.3], *CAPTION[1:]], WORDS, cell=(0, 5), title="A caption")
    assert view._in_words() == (
        "A caption: a picture of 2 by 3 patches. In layer 0, head 0, the query a gives 0.30 to row 1, column 2, and "
        "most to:\nrow 0, column 0: 0.50\nrow 1, column 2: 0.30\nrow 0, column 1: 0.10\nrow 1, column 1: 0.10\n"
        "row 0, column 2: 0.00\nto the whole picture 1.00")


def test_the_figure_draws_every_weight_as_an_area():
    view = ImageAttention(GREY, SELF, cell=(5, 6))
    asks, looks = view.figure().axes
    squares = [patch for patch in looks.patches if patch.get_fill()]
    areas = np.array([patch.get_width() * patch.get_height() for patch in squares])
    np.testing.assert_allclose(areas, 0.92**2 * SELF[0, 0, 5] / SELF[0, 0, 5].max(), rtol=1e-5)
    frames = [patch.get_xy() for patch in looks.patches if not patch.get_fill()]
    assert frames == [(2, 1), (1, 1)]                              # key 6, query 5
    assert [patch.get_xy() for patch in asks.patches] == [(1, 1)]
    words = ImageAttention(COLOUR, CAPTION, ["$x^", "b", "c"]).figure()
    words.draw_without_rendering()
    assert words.axes[0].get_title() == "asks: $x^"
    assert not words.axes[0].patches


def test_a_row_of_zeros_is_drawn():
    weights = SELF.copy()
    weights[:, :, 10] = 0
    view = ImageAttention(GREY, weights)
    assert "to the whole picture 0.0000" in view._in_words()
    view.figure().draw_without_rendering()


def test_the_export_carries_no_comments_or_blank_lines():
    html = ImageAttention(GREY, SELF).to_html()
    assert _lean(javascript("image_attention")) in html
    assert json.dumps(_lean(stylesheet("image_attention"))) in html


def test_framed_patches_stand_in_one_outline():
    framed = np.array([[0, 1, 1, 0, 1, 0], 6 * [0], 6 * [1]], bool)
    view = ImageAttention(COLOUR, CAPTION, WORDS, framed=framed, asks="moved to")
    assert (view._content["framed"], view._content["asks"]) == ([[1, 2, 4], [], list(range(6))], "moved to")
    for query, sides in enumerate((8, 0, 10)):
        view.cell = (query, 0)
        assert len(view.figure().axes[1].lines) == sides
