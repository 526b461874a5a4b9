"""The Python side of the position explorer: its numbers against loops, what it refuses, what an output holds."""

import base64
import io
import math

import numpy as np
import pytest
import torch
import traitlets
from PIL import Image
from sample_positions import LEARNED, explorer
from sample_widgets import exported

from course_utils.widgets import PositionExplorer
from course_utils.widgets.base import _lean, javascript, stylesheet

LIVE = "application/vnd.jupyter.widget-view+json"


# --- the numbers ---


def angle(position, column, d_model):
    return position / 10000 ** (2 * (column // 2) / d_model)


def test_sinusoidal_is_the_paper_s_formula():
    view = explorer()
    assert view.encoding.shape == (10, 6)
    for position in range(10):
        for column in range(6):
            wave = math.cos if column % 2 else math.sin
            assert view.encoding[position, column] == pytest.approx(wave(angle(position, column, 6)), abs=1e-12)
    for query in range(10):
        for key in range(10):
            cosines = sum(math.cos(angle(query - key, column, 6)) for column in (0, 2, 4))
            assert view.products[query, key] == pytest.approx(cosines, abs=1e-12)


def test_learned_rows_are_as_given():
    view = explorer("learned")
    np.testing.assert_array_equal(view.encoding, LEARNED)
    rows = LEARNED.astype(np.float64)
    np.testing.assert_allclose(view.products, [[sum(a * b) for b in rows] for a in rows], atol=1e-12)


def turned(position, d_model):
    """A vector of ones, each pair turned by its angle, as complex numbers."""
    return [(1 + 1j) * complex(math.cos(a), math.sin(a))
            for a in (angle(position, column, d_model) for column in range(0, d_model, 2))]


def test_rotary_turns_ones_and_looks_at_the_distance_only():
    view = explorer("rotary")
    assert view.encoding.shape == (10, 3)
    for position in range(10):
        for pair in range(3):
            assert view.encoding[position, pair] == pytest.approx(math.cos(angle(position, 2 * pair, 6)), abs=1e-12)
    for query in range(10):
        for key in range(10):
            pairs = zip(turned(query, 6), turned(key, 6), strict=True)
            product = sum(a.real * b.real + a.imag * b.imag for a, b in pairs) / 6
            assert view.products[query, key] == pytest.approx(product, abs=1e-12)
    np.testing.assert_allclose(np.diagonal(view.products), 1, atol=1e-12)


def test_alibi_falls_with_the_distance():
    view = explorer("alibi")
    assert view.encoding.shape == (10, 8)
    for distance in range(10):
        for head in range(1, 9):
            assert view.encoding[distance, head - 1] == -distance / 2**head
    for query in range(10):
        for key in range(10):
            assert view.products[query, key] == -abs(query - key) / 16


@pytest.mark.parametrize("kind", ["sinusoidal", "rotary", "alibi"])
def test_only_the_distance_counts(kind):
    table = explorer(kind).products
    for distance in range(-9, 10):
        line = table.diagonal(distance)
        assert np.ptp(line) < 1e-12


def test_of_learned_rows_the_place_counts_too():
    assert np.ptp(explorer("learned").products.diagonal(3)) > 0.1


# --- what is chosen ---


def test_what_is_shown_first():
    view = PositionExplorer()
    assert (view.kind, view.length, view.d_model, view.cell, view.title) == ("sinusoidal", 64, 64, (20, 28), "")
    assert repr(view) == "PositionExplorer('sinusoidal', length=64, d_model=64, cell=(20, 28))"
    assert PositionExplorer(length=2).cell == (0, 1)
    assert PositionExplorer(length=40).cell == (13, 20)


def test_sizes_come_from_the_learned_matrix():
    view = PositionExplorer("learned", learned=torch.ones(30, 8, dtype=torch.bfloat16, requires_grad=True))
    assert (view.length, view.d_model, view.cell) == (30, 8, (10, 15))
    assert (view.products == 8).all()


def test_kind_and_cell_are_two_way():
    view, seen = explorer(), []
    view.observe(lambda change: seen.append((change.name, change.new)), ["kind", "cell"])
    view.cell = (9, 0)
    view.kind = "alibi"
    assert view.products[view.cell] == -9 / 16
    view.set_state({"cell": [1, 2], "kind": "rotary"})
    assert (view.kind, view.cell) == ("rotary", (1, 2))
    assert seen[:2] == [("cell", (9, 0)), ("kind", "alibi")]
    assert sorted(seen[2:]) == [("cell", (1, 2)), ("kind", "rotary")]


def test_the_caller_keeps_the_matrix():
    mine = LEARNED.copy()
    view = explorer("learned", learned=mine)
    mine[:] = 0
    np.testing.assert_array_equal(view.encoding, LEARNED)


# --- refused ---


@pytest.mark.parametrize(("given", "message"), [
    ({"length": 1}, "length is 1; expected 2 to 512"), ({"length": 513}, "length is 513"),
    ({"d_model": 7}, "d_model is 7; expected an even number from 2 to 1024"), ({"d_model": 0}, "d_model is 0"),
    ({"d_model": 1026}, "d_model is 1026"),
    ({"learned": LEARNED[0]}, r"learned has 1 axes, shape \(6,\); expected \[length, d_model\]"),
    ({"learned": LEARNED, "length": 12}, r"length is 12, but learned has shape \(10, 6\); make length 10, or give"),
    ({"learned": LEARNED, "d_model": 4}, r"d_model is 4, but learned has shape \(10, 6\); make d_model 6"),
    ({"learned": LEARNED * np.nan}, "learned holds nan"), ({"learned": "matrix"}, "learned cannot be read"),
    ({"learned": LEARNED[:, :5]}, "d_model is 5")])
def test_bad_sizes_say_what_is_wrong(given, message):
    with pytest.raises(ValueError, match=message):
        PositionExplorer(**given)


@pytest.mark.parametrize(("changes", "message"), [
    ({"kind": "relative"}, "kind is 'relative'; expected one of sinusoidal, learned, rotary, alibi"),
    ({"kind": "learned", "learned": None}, "kind is 'learned', but there is no matrix; give one as learned="),
    ({"cell": (10, 0)}, r"cell\[0\] \(query\) is 10, but there are 10: 0 to 9"),
    ({"cell": (0, -1)}, r"cell\[1\] \(key\) is -1, but there are 10")])
def test_what_does_not_exist(changes, message):
    with pytest.raises(traitlets.TraitError, match=message):
        explorer(**changes)
    view = explorer(learned=changes.get("learned", LEARNED))
    with pytest.raises(traitlets.TraitError, match=message):
        view.set_trait(*next(iter(changes.items())))
    assert (view.kind, view.cell) == ("sinusoidal", (2, 7))


# --- what an output holds ---


def test_export_holds_what_is_shown():
    state = exported(explorer("rotary", title="Where?"))
    assert (state["kind"], state["cell"], state["title"], state["_sizes"]) == ("rotary", [2, 7], "Where?", [10, 6])
    sent = np.frombuffer(base64.b64decode(state["_learned"]["float32"]), "<f4").reshape(10, 6)
    np.testing.assert_array_equal(sent, LEARNED)
    assert explorer().to_html() == explorer().to_html() != explorer(cell=(2, 8)).to_html()
    assert exported(PositionExplorer())["_learned"] == {"float32": ""}


def test_in_words():
    data, _ = explorer("alibi", title="Where?")._repr_mimebundle_()
    assert LIVE in data
    assert data["text/plain"].split("\n") == [
        "Where?: alibi positions, 10 positions, 6 dimensions. Query 2, key 7, 5 apart: bias -0.3125.",
        "bias of query 2 by distance: -2: -0.12, -1: -0.06, +0: 0.00, +1: -0.06, +2: -0.12, +4: -0.25"]


def test_a_title_cannot_leave_its_place():
    text = explorer(title="</script><img src=x onerror=alert(1)>").to_html()
    assert text.count("</script>") == 1
    assert "<img src=x" not in text


@pytest.mark.parametrize("kind", ["sinusoidal", "learned", "rotary", "alibi"])
def test_the_still_picture_and_the_figure_show_the_kind(kind):
    view = explorer(kind)
    picture = Image.open(io.BytesIO(view._still())).convert("RGB")
    assert picture.width > 800
    assert len(view._still()) < 30_000
    axes = view.figure().axes
    np.testing.assert_array_equal(axes[0].images[0].get_array(), view.encoding)
    np.testing.assert_array_equal(axes[1].images[0].get_array(), view.products)
    x, y = next(line for line in axes[2].lines if len(line.get_xdata()) == 10).get_data()
    np.testing.assert_array_equal(x, np.arange(10) - 2)
    np.testing.assert_array_equal(y, view.products[2])
    other = Image.open(io.BytesIO(explorer(kind, cell=(8, 1))._still())).convert("RGB")
    assert picture.tobytes() != other.tobytes()


def test_sizes():
    assert len(_lean(javascript("position_explorer"))) + len(_lean(stylesheet("position_explorer"))) < 30_000
