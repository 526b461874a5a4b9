"""The position explorer in a real browser: exported pages, a deck, JupyterLab and Notebook, all without a network."""

from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from browser import (
    CIVIDIS,
    DARK,
    OUTSIDE,
    SMALLEST_CONTRAST,
    assert_prints,
    contrasts,
    destroyed,
    milliseconds,
    mounted,
    open_live,
    open_slides,
    press,
    run,
    serious,
)
from sample_positions import LEARNED, explorer

from course_utils.widgets import PositionExplorer
from course_utils.widgets.base import javascript

KINDS = ["sinusoidal", "learned", "rotary", "alibi"]


def cell(page):
    return tuple(map(int, page.locator(".pe-readout").first.get_attribute("data-cell").split(",")))


def readout(page):
    return page.locator(".pe-readout").first.inner_text()


def number(value):
    """Four decimals as JavaScript rounds them: of two that are equally near, the larger."""
    rounded = Decimal(float(value)).quantize(Decimal("0.0001"), ROUND_HALF_UP)
    return f"{rounded:.4f}".replace("-0.0000", "0.0000").replace("-", "−")


def pixels(page, panel):
    """A picture, one pixel a number: ``[rows, columns, 3]``."""
    flat, height, width = page.locator(f".pe-{panel} .pe-cells").evaluate(
        "c => [[...c.getContext('2d').getImageData(0, 0, c.width, c.height).data], c.height, c.width]")
    return np.array(flat).reshape(height, width, 4)[..., :3]


def colours(values):
    low, high = values.min(), values.max()
    return CIVIDIS[np.minimum((values - low) / (high - low) * 256, 255).astype(int)]


# --- what is drawn ---


@pytest.mark.parametrize("kind", KINDS)
def test_javascript_computes_what_python_does(show, kind):
    page = show("<main></main>")
    page.add_script_tag(content=javascript("position_explorer"))
    for view in (explorer(kind), *([] if kind == "learned" else [PositionExplorer(kind, 40, 32, cell=(0, 1))])):
        given = [kind, view.length, view.d_model, LEARNED.astype(float).ravel().tolist()]
        found = page.evaluate("(given) => [[...encodingOf(...given).values], [...productsOf(...given)]]", given)
        np.testing.assert_allclose(np.reshape(found[0], view.encoding.shape), view.encoding, atol=1e-9)
        np.testing.assert_allclose(np.reshape(found[1], view.products.shape), view.products, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_pictures_are_the_matrices_and_the_curve_is_the_query_s_row(show, kind):
    view = explorer(kind, title="Where?")
    page = show(view)
    np.testing.assert_allclose(pixels(page, "encoding"), colours(view.encoding), atol=4)
    np.testing.assert_allclose(pixels(page, "matrix"), colours(view.products), atol=4)
    name = "bias" if kind == "alibi" else "product"
    assert readout(page) == (f"query 2 · key 7 · 5 apart · {name} {number(view.products[2, 7])} · "
                             f"query 2 with itself {number(view.products[2, 2])}")
    assert page.locator(".is-title").inner_text() == "Where?"
    assert page.locator("[aria-pressed=true]").get_attribute("data-kind") == kind

    points = page.locator(".pe-line").get_attribute("d")[1:].split("L")
    x, y = np.array([[float(part) for part in point.split(",")] for point in points]).T
    assert len(x) == 10
    np.testing.assert_allclose(np.diff(x), np.diff(x)[0], atol=0.03)
    row = view.products[2]
    low, high = row.argmin(), row.argmax()
    scale = (y[low] - y[high]) / (row[high] - row[low])        # pixels a unit, upwards
    assert scale > 0
    np.testing.assert_allclose(y[low] - y, (row - row[low]) * scale, atol=0.03)
    dot = page.locator(".pe-dot")
    assert [float(dot.get_attribute(name)) for name in ("cx", "cy")] == pytest.approx([x[7], y[7]], abs=0.02)
    said = page.locator(".pe-plot .pe-under").inner_text()
    assert said == ("grey: all queries, they differ" if kind == "learned" else "the same curve for every query")


def test_without_a_matrix_there_is_no_button_for_learned(show):
    page = show(PositionExplorer(), explorer())
    kinds = [page.locator(".position-explorer").nth(k).locator(".pe-kinds button").all_inner_texts() for k in (0, 1)]
    assert kinds == [["Sinusoidal", "Rotary", "ALiBi"], ["Sinusoidal", "Learned", "Rotary", "ALiBi"]]


def test_marks_lie_where_the_positions_are(show):
    page = show(explorer())
    for panel, mark, position in (("encoding", "query", 2), ("encoding", "key", 7), ("matrix", "query", 2)):
        board = page.locator(f".pe-{panel} .pe-board").bounding_box()
        box = page.locator(f".pe-{panel} rect.pe-{mark}").bounding_box()
        middle = box["y"] + box["height"] / 2 - board["y"]
        assert middle == pytest.approx((position + 0.5) * board["height"] / 10, abs=1)
        assert page.locator(f".pe-{panel} text.pe-{mark}").text_content() == f"{mark[0]} {position}"
    board = page.locator(".pe-matrix .pe-board").bounding_box()
    box = page.locator(".pe-matrix rect.pe-key").bounding_box()
    assert box["x"] + box["width"] / 2 - board["x"] == pytest.approx(7.5 * board["width"] / 10, abs=1)
    page.get_by_role("button", name="ALiBi").click()           # the row is the distance, the column the head
    assert page.locator(".pe-encoding text.pe-both").all_text_contents() == ["5", "4"]
    assert page.locator(".pe-about").inner_text() == "10 positions, head 4 of 8, slope 1/16"


# --- pointer, keys, buttons ---


def test_pointing_chooses_a_pair_or_a_distance(show):
    view = explorer("rotary")
    page = show(view)
    box = page.locator(".pe-matrix .pe-board").bounding_box()
    page.mouse.move(box["x"] + 3.5 * box["width"] / 10, box["y"] + 8.5 * box["height"] / 10)
    assert cell(page) == (8, 3)
    assert f"product {number(view.products[8, 3])} " in readout(page)
    box = page.locator(".pe-plot .pe-board").bounding_box()
    for distance, key in ((-6, 2), (1, 9), (5, 9), (-9, 0)):
        page.mouse.move(box["x"] + (distance + 9.5) * box["width"] / 19, box["y"] + 40)
        assert cell(page) == (8, key)


def test_keys(show):
    page = show("<script>let heard = []; document.onkeydown = (e) => heard.push(e.key)</script>", explorer())
    page.locator(".pe-stage").focus()
    for key, chosen in [
        ("ArrowUp", (1, 7)), ("ArrowRight", (1, 8)), ("]", (2, 9)), ("]", (2, 9)), ("ArrowRight", (2, 9)),
        ("ArrowLeft", (2, 8)), ("[", (1, 7)), ("[", (0, 6)), ("[", (0, 6)), ("ArrowUp", (0, 6)),
        ("ArrowDown", (1, 6)), ("Home", (1, 0)), ("End", (1, 9)),
    ]:
        page.keyboard.press(key)
        assert cell(page) == chosen, key
    page.keyboard.press("n")  # means nothing here, and must not turn a slide
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body")
    assert page.evaluate("heard") == []


def test_focus_is_seen_every_control_is_reached_and_kinds_are_chosen(show):
    view = explorer()
    page = show(view)
    reached = []
    for _ in range(5):
        page.keyboard.press("Tab")
        name, outline = page.evaluate("""[document.activeElement.dataset.kind || document.activeElement.className,
                                          getComputedStyle(document.activeElement).outlineWidth]""")
        assert outline == "3px"
        reached.append(name)
    assert reached == [*KINDS, "pe-stage"]
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    view.kind = "alibi"
    np.testing.assert_allclose(pixels(page, "matrix"), colours(view.products), atol=4)
    page.keyboard.press("ArrowLeft")  # keys also work from a button
    assert cell(page) == (2, 6)
    pressed = page.locator(".pe-kinds button").evaluate_all("b => b.map((e) => e.getAttribute('aria-pressed'))")
    assert pressed == ["false", "false", "false", "true"]


def test_a_screen_reader_hears_title_kinds_and_the_pair(show):
    page = show(explorer("rotary", title="Where?"))
    heard = page.locator(".position-explorer").aria_snapshot()
    for line in ('group "Where?"', 'group "kind of encoding"', 'button "Rotary" [pressed]', "status: query 2",
                 'application "Rotary. query 2 · key 7 · 5 apart'):
        assert line in heard, heard


# --- for everyone ---


@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing_serious(show, kind):
    page = show("<title>positions</title><main><h1>positions</h1>", explorer(kind, title="Where?"), "</main>")
    assert serious(page, ".position-explorer") == []


def test_the_paper_stays_light_and_every_text_can_be_read(show):
    page = show(DARK, explorer(title="Where?"))
    page.emulate_media(color_scheme="dark")
    found = contrasts(page, ".position-explorer")
    assert len(found) > 20
    assert [c for c in found if c[0] < SMALLEST_CONTRAST] == []
    paper = page.locator(".position-explorer").evaluate("e => getComputedStyle(e).backgroundColor")
    assert paper == "rgb(255, 255, 255)"


@pytest.mark.parametrize(("length", "ends"), [(2, (0, 1)), (64, (0, 63)), (512, (511, 511)), (512, (0, 511))])
def test_fits_a_slide_and_keeps_its_size(show, length, ends):
    learned = np.random.default_rng(0).normal(size=(length, 4)) * 1e-2
    page = show(explorer(length=length, d_model=4, cell=ends, learned=learned, title="Where is a word?"))
    root = page.locator(".position-explorer")
    size = root.bounding_box()
    assert size["width"] <= 1100
    assert size["height"] <= 520
    assert page.locator(".pe-stage").evaluate("e => e.scrollWidth <= e.clientWidth")
    inside = page.evaluate("""() => {
      const outer = document.querySelector(".pe-stage").getBoundingClientRect();
      return [...document.querySelectorAll(".position-explorer text, .pe-caption, .pe-under")].every((node) => {
        const box = node.getBoundingClientRect();
        return box.left >= outer.left && box.right <= outer.right && box.bottom <= outer.bottom;
      });
    }""")
    assert inside
    for kind in page.locator(".pe-kinds button").all():
        kind.click()
        assert root.bounding_box() == size
    sizes = root.locator("text, button, span, div:not(.is-hint)").evaluate_all(
        "nodes => nodes.map((node) => parseFloat(getComputedStyle(node).fontSize))")
    assert min(sizes) >= 16


def test_on_a_narrow_page_it_stands_below_each_other(show):
    page = show(explorer())
    page.set_viewport_size({"width": 420, "height": 900})
    lefts = page.locator(".pe-board").evaluate_all("boards => boards.map((b) => b.getBoundingClientRect().top)")
    assert lefts == sorted(set(lefts))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hidden_at_first_and_scaled_as_in_a_slide_show(show):
    hidden = '<section style="display: none; transform: scale(0.6); transform-origin: 0 0">'
    page = show(hidden, explorer(), "</section>")
    page.evaluate("document.querySelector('section').style.display = 'block'")
    box = page.locator(".pe-matrix .pe-board").bounding_box()
    page.mouse.move(box["x"] + 0.05 * box["width"], box["y"] + 0.95 * box["height"])
    assert cell(page) == (9, 0)


def test_a_strange_title_is_text(show):
    page = show(explorer(title="</script><img src=x onerror=alert(1)>"))
    assert page.locator(".is-title").text_content() == "</script><img src=x onerror=alert(1)>"
    assert page.locator(".position-explorer :is(img, script)").count() == 0
    assert page.script_errors == []


def test_several_on_a_page_are_strangers(show):
    page = show(explorer(), explorer(), explorer("alibi"))
    page.locator(".pe-stage").nth(1).press("End")
    cells = page.locator(".pe-readout").evaluate_all("nodes => nodes.map((node) => node.dataset.cell)")
    assert cells == ["2,7", "2,9", "2,7"]
    assert page.evaluate("[typeof PositionExplorer, typeof CourseWidget]") == ["undefined"] * 2


def test_without_scripts_there_is_a_picture(show, open_page):
    page = show(explorer(), page=open_page(java_script_enabled=False))
    picture = page.locator("img")
    assert picture.bounding_box()["width"] > 300
    assert "Query 2, key 7, 5 apart" in picture.get_attribute("alt")


@pytest.mark.slow
def test_the_largest_answers_a_key_within_50_ms(show):
    learned = np.random.default_rng(0).normal(size=(512, 8))
    page = show(explorer("learned", length=512, d_model=8, learned=learned, cell=(100, 200)))
    assert milliseconds(page, press(".pe-stage", "k % 2 ? 'ArrowDown' : 'ArrowUp'")) < 50


# --- where it lives ---


def test_in_a_deck_keys_stay_in_the_explorer(browser_page, tmp_path):
    open_slides(browser_page, tmp_path, explorer(title="Where?"))
    browser_page.evaluate("Reveal.slide(1)")
    assert browser_page.evaluate(OUTSIDE) == []
    browser_page.locator(".pe-stage").focus()
    for key in ("ArrowRight", "ArrowDown", "Space", "n", "]"):
        browser_page.keyboard.press(key)
    assert cell(browser_page) == (4, 9)
    assert browser_page.evaluate("Reveal.getIndices().h") == 1
    browser_page.keyboard.press("PageDown")
    assert browser_page.evaluate("Reveal.getIndices().h") == 2
    assert browser_page.script_errors == []
    assert browser_page.outside_requests == []


def test_the_javascript_by_itself(show):
    page = mounted(show, "PositionExplorer", "position_explorer", explorer()._export_state())
    page.evaluate("board = document.querySelector('.pe-board'); shown.update({...state, kind: 'rotary', cell: [0, 4]})")
    assert cell(page) == (0, 4)
    np.testing.assert_allclose(pixels(page, "matrix"), colours(explorer("rotary").products), atol=4)
    assert page.evaluate("board.isConnected")
    page.evaluate("shown.update({...state, _sizes: [4, 2], _learned: {float32: ''}, cell: [3, 0]})")
    assert pixels(page, "matrix").shape == (4, 4, 3)
    assert page.locator(".position-explorer").count() == 1
    assert page.evaluate("told") == []
    page.locator(".pe-stage").press("ArrowRight")
    page.get_by_role("button", name="ALiBi").click()
    assert page.evaluate("told") == [{"cell": [3, 1]}, {"kind": "alibi"}]
    assert destroyed(page, ["ArrowRight", "["]) == []


LIVE_CELLS = [
    "import numpy as np\n"
    "from course_utils.widgets import PositionExplorer\n"
    "learned = np.random.default_rng(3).normal(size=(10, 6))\n"
    "view = PositionExplorer(cell=(2, 7), learned=learned)\n"
    "moves = []\n"
    "view.observe(lambda change: moves.append(change.new), 'cell')\n"
    "display(view, PositionExplorer('alibi', length=12))",
    "print(view.kind, view.cell, moves[-1])",
    "view.kind, view.cell = 'learned', (9, 0)",
]


def test_live(jupyter, lab):
    page = lab
    own_errors = open_live(page, jupyter, "lab/tree", "positions.ipynb", LIVE_CELLS)
    run(page, 0, shows=".position-explorer", nth=1)
    assert page.locator(".position-explorer").count() == 2  # the live views, not the copies as well
    assert page.locator(".position-explorer").nth(1).locator(".pe-kinds button").count() == 3

    page.locator(".pe-stage").first.focus()
    for key in ("ArrowUp", "ArrowRight", "a", "b", "]"):  # a and b would add cells
        page.keyboard.press(key)
    page.get_by_role("button", name="Rotary").first.click()
    assert cell(page) == (2, 9)
    assert page.locator(".jp-CodeCell").count() == 3
    assert_prints(page, 1, "rotary (2, 9) (2, 9)")

    run(page, 2)
    page.locator(".pe-readout[data-cell='9,0']").wait_for()
    learned = LEARNED.astype(float)
    assert f"product {number(learned[9] @ learned[0])} " in readout(page)
    np.testing.assert_allclose(pixels(page.locator(".position-explorer").first, "encoding"), colours(learned), atol=4)
    assert page.outside_requests == []
    assert page.script_errors == own_errors
