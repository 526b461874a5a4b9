"""The drawings: each is what its script draws, legible, self-contained, described, and used by its notebook."""

import importlib
import re
import sys
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib import pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg

from course_utils.plotting import use_course_style

ROOT = Path(__file__).resolve().parents[1]
FIGURES, NOTEBOOKS = ROOT / "figures", ROOT / "notebooks"
sys.path.insert(0, str(FIGURES))
drawing, style = importlib.import_module("draw"), importlib.import_module("style")

ALT = drawing.alt_texts()
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
SVG = "{http://www.w3.org/2000/svg}"
XLINK = "{http://www.w3.org/1999/xlink}href"

each_figure = pytest.mark.parametrize("name", list(ALT))


def read(name):
    return (FIGURES / f"{name}.svg").read_text(encoding="utf-8")


def function_of(name):
    number, _, function = name.partition("_")
    return getattr(importlib.import_module(f"draw_{number}"), function)


def test_every_drawing_has_a_script_and_every_script_its_drawing():
    assert {file.stem for file in FIGURES.glob("*.svg")} == set(ALT), "run: python figures/draw.py"


@each_figure
def test_the_committed_drawing_is_what_the_script_draws(name):
    """Same text and shapes; coordinates may differ by a hundredth of a pixel from one processor to the next."""
    committed, drawn = read(name), drawing.draw(name)
    advice = f"run: python figures/draw.py {name}"
    assert NUMBER.sub("#", committed) == NUMBER.sub("#", drawn), advice
    pairs = zip(NUMBER.findall(committed), NUMBER.findall(drawn), strict=True)
    assert max(abs(float(a) - float(b)) for a, b in pairs) <= 0.01, advice


def test_the_style_of_the_notebooks_does_not_change_a_drawing():
    name = next(iter(ALT))
    before = drawing.draw(name)
    with plt.rc_context():
        use_course_style()
        assert drawing.draw(name) == before


@each_figure
def test_it_is_described(name):
    root = ElementTree.fromstring(read(name))
    title, description = root[0], root[1]
    assert (title.tag, description.tag) == (f"{SVG}title", f"{SVG}desc")
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert description.text == ALT[name]
    assert ALT[name].startswith(title.text)
    assert 10 <= len(title.text) <= 90
    assert len(description.text) >= 200, "say what the picture shows, not what it is called"


@each_figure
def test_it_needs_nothing_from_outside(name):
    allowed = {f"{SVG}{tag}" for tag in ("svg", "title", "desc", "g", "defs", "style", "path", "use")}
    root = ElementTree.fromstring(read(name))
    ids = {node.get("id") for node in root.iter()}
    for node in root.iter():
        assert node.tag in allowed
        for key, value in node.attrib.items():
            assert "url(" not in value
            assert "://" not in value
            if key == XLINK:
                assert value[0] == "#"
                assert value[1:] in ids
        if node.tag == f"{SVG}style":
            assert "@import" not in node.text
            assert "url(" not in node.text


@each_figure
def test_it_fits_a_slide(name):
    root = ElementTree.fromstring(read(name))
    width, height = int(root.get("width")), int(root.get("height"))
    assert root.get("viewBox") == f"0 0 {width} {height}"
    assert 900 <= width <= 1000
    assert height <= 480
    assert (FIGURES / f"{name}.svg").stat().st_size < 150_000


def type_sizes(node, scale=1.0):
    """Sizes in units of the drawing of all glyphs below ``node``; matplotlib's outlines are 100 units high."""
    factor = re.search(r"scale\(([\d.]+)", node.get("transform", ""))
    scale *= float(factor[1]) if factor else 1.0
    if node.tag == f"{SVG}use":
        yield 100 * scale
    for child in node:
        yield from type_sizes(child, scale)


@each_figure
def test_its_smallest_type_can_be_read(name):
    root = ElementTree.fromstring(read(name))
    sizes = list(type_sizes(root))
    assert len(sizes) > 20
    width = int(root.get("width"))
    assert min(sizes) * min(style.SHOWN, width) / width >= style.SMALLEST


@each_figure
def test_no_text_leaves_the_card_or_touches_another(name):
    axes = function_of(name)()
    canvas = FigureCanvasAgg(axes.figure)
    canvas.draw()
    width, height = canvas.get_width_height()
    boxes = [(text.get_text(), text.get_window_extent(canvas.get_renderer())) for text in axes.texts]
    assert boxes
    for words, place in boxes:
        assert place.x0 >= 8, words
        assert place.y0 >= 8, words
        assert place.x1 <= width - 8, words
        assert place.y1 <= height - 8, words
    for (words, place), (others, other) in combinations(boxes, 2):
        across = min(place.x1, other.x1) - max(place.x0, other.x0)
        down = min(place.y1, other.y1) - max(place.y0, other.y0)
        assert across < 1 or down < 3, f"{words!r} and {others!r} overlap"


@each_figure
def test_a_notebook_shows_it(name):
    notebooks = sorted(NOTEBOOKS.rglob(f"{name[:2]}_*.ipynb"))
    if not notebooks:
        pytest.skip(f"there is no notebook {name[:2]} yet")
    assert any(f"figures/{name}.svg" in file.read_text(encoding="utf-8") for file in notebooks)


def test_the_links_on_the_map_lie_on_its_parts():
    parts = importlib.import_module("draw_04").PARTS.values()
    root = ElementTree.fromstring(read("04_map"))
    width, height = int(root.get("width")), int(root.get("height"))
    source = (NOTEBOOKS / "04_transformer.ipynb").read_text(encoding="utf-8")
    for x, y, w, h, *label in parts:
        place = (f"left:{100 * (x - w / 2) / width:.1f}%;top:{100 * (y - h / 2) / height:.1f}%;"
                 f"width:{100 * w / width:.1f}%;height:{100 * h / height:.1f}%")
        assert place in source, label


def test_the_printed_weights_of_a_row_sum_to_one():
    printed = [float(words) for words in (text.get_text() for text in function_of("03_qkv")().texts) if words[0] == "."]
    assert len(printed) == 16
    assert [round(sum(printed[row:row + 4]), 2) for row in range(0, 16, 4)] == [1, 1, 1, 1]
