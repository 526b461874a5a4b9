"""The mask explorer in a real browser, as an exported page without a network (live: test_softmax_lab_browser.py)."""

import numpy as np
import pytest
from browser import DARK, HEARD, destroyed, milliseconds, mounted, serious

from course_utils.widgets import MaskExplorer
from course_utils.widgets.mask_explorer import PATTERNS


def drawn(page):
    """The mask on the page, from the outline of its squares."""
    n = int(page.locator(".me-control").nth(1).locator("input").input_value())
    corners = page.locator(".me-seen").first.evaluate(
        "path => [...path.getAttribute('d').matchAll(/M([\\d.]+),([\\d.]+)/g)].map(m => [Number(m[2]), Number(m[1])])")
    mask = np.zeros((n, n), bool)
    for y, x in corners:
        mask[int(y / 400 * n), int(x / 400 * n)] = True
    return mask


def agrees(page, twin):
    """Whether the page shows what Python computes."""
    np.testing.assert_array_equal(drawn(page), twin.mask)
    pairs, every = twin.mask.sum(), twin.mask.size
    counts = page.locator(".me-counts").inner_text()
    assert f"{pairs} of {every} ({np.floor(100 * pairs / every + 0.5):.0f} %)" in counts
    assert (f"{4 * pairs} B of" if 4 * pairs < 1024 else f"{4 * pairs / 1024:.1f} KiB of") in counts
    readout = page.locator(".me-readout").inner_text()
    query, key = twin.cell
    assert readout.startswith(f"query {query} {'sees' if twin.mask[twin.cell] else 'does not see'} key {key}")
    if twin.path is None:
        assert "no number of layers" in readout
    else:
        layers = len(twin.path) - 1
        assert f"in {layers} layer{'s' * (layers != 1)}:" in readout
        assert readout.endswith(f"← {twin.path[-1]}")
    assert page.locator(".me-hop").count() == len(twin.path or (0,)) - 1


# --- what is drawn ---


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_page_shows_what_python_computes(show, pattern):
    twin = MaskExplorer(pattern, length=20, window=2, stride=5, title="A mask")
    page = show(twin)
    agrees(page, twin)
    assert page.locator(".is-title").inner_text() == "A mask"
    assert page.get_by_role("combobox").input_value() == pattern


def test_javascript_and_python_agree_for_every_pattern_and_pair(show):
    page = mounted(show, "MaskExplorer", "mask_explorer", MaskExplorer()._export_state())
    assert page.evaluate("Object.keys(PATTERNS)") == list(PATTERNS)
    for pattern in PATTERNS:
        for length, window, stride in [(4, 0, 1), (13, 3, 4), (13, 20, 50), (17, 0, 6), (64, 5, 9)]:
            twin = MaskExplorer(pattern, length, window, stride, causal=length == 17)
            np.testing.assert_array_equal(page.evaluate("state => maskOf(state)", twin._export_state()), twin.mask)
            if length > 20:
                continue
            ways = page.evaluate("""(state) => { const mask = maskOf(state);
              return mask.map((_, q) => mask.map((_, k) => pathIn(mask, q, k))); }""", twin._export_state())
            for twin.cell in np.ndindex(length, length):
                way = ways[twin.cell[0]][twin.cell[1]]
                assert (way and tuple(way)) == twin.path


def test_a_selected_pair_is_outlined_and_its_path_numbered(show):
    page = show(MaskExplorer("sliding window"))
    assert page.locator(".me-way").inner_text() == "15 ← 12 ← 9 ← 6 ← 3 ← 0"
    boxes = page.locator(".me-hop").evaluate_all(
        "hops => hops.map(hop => [hop.y, hop.x].map(place => Math.floor(place.baseVal.value / 25)))")
    assert boxes == [[15, 12], [12, 9], [9, 6], [6, 3], [3, 0]]
    assert page.locator(".me-hop + text").all_text_contents() == ["5", "4", "3", "2", "1"]
    assert page.locator(".me-cell").evaluate("e => getComputedStyle(e).strokeDasharray") != "none"


# --- mouse and keys ---


def test_a_press_chooses_and_a_hover_does_not(show):
    page, twin = show(MaskExplorer("strided")), MaskExplorer("strided")
    paper = page.locator(".me-paper").bounding_box()

    def place(q, k):
        return paper["x"] + (k + 0.5) * paper["width"] / 16, paper["y"] + (q + 0.5) * paper["height"] / 16

    page.mouse.move(*place(3, 3))
    page.mouse.move(*place(4, 3))
    agrees(page, twin)
    page.mouse.click(*place(9, 2))
    twin.cell = (9, 2)
    agrees(page, twin)
    page.mouse.down()
    page.mouse.move(*place(12, 7))
    page.mouse.up()
    page.mouse.move(*place(1, 1))
    twin.cell = (12, 7)
    agrees(page, twin)


def test_keys(show):
    page, twin = show(HEARD, MaskExplorer("sliding window")), MaskExplorer("sliding window")
    page.locator(".me-stage").focus()
    for key, cell in [("ArrowDown", (15, 0)), ("ArrowUp", (14, 0)), ("ArrowLeft", (14, 0)), ("ArrowRight", (14, 1)),
                      ("End", (14, 15)), ("Home", (14, 0))]:
        page.keyboard.press(key)
        twin.cell = cell
        agrees(page, twin)
        assert page.locator(".me-stage").get_attribute("aria-label").startswith(f"query {cell[0]} ")
    page.get_by_role("slider", name="window").focus()
    for key, twin.window in [("ArrowLeft", 2), ("ArrowRight", 3), ("Home", 0)]:
        page.keyboard.press(key)
        agrees(page, twin)
    page.get_by_role("slider", name="length").focus()
    for key, length in [("Home", 4), ("ArrowRight", 5), ("End", 64)]:
        page.keyboard.press(key)
        twin.length = length
        agrees(page, twin)
    page.get_by_role("combobox", name="pattern").select_option("fixed")
    page.get_by_role("slider", name="block").press("ArrowRight")
    twin.pattern, twin.stride = "fixed", 5
    agrees(page, twin)
    page.keyboard.press("n")  # means nothing here, and must not turn a slide
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body")
    assert page.evaluate("heard") == []


@pytest.mark.parametrize(("pattern", "controls"), [
    ("causal", ["length"]), ("padding", ["length", "padding tokens", "causal"]),
    ("dilated", ["length", "window", "gap", "causal"]), ("block recurrence", ["length", "block"])])
def test_only_what_the_pattern_uses_is_reached(show, pattern, controls):
    page = show(MaskExplorer(pattern))
    reached = []
    for _ in range(2 + len(controls)):
        page.keyboard.press("Tab")
        name, outline = page.evaluate("""[document.activeElement.getAttribute("aria-roledescription")
          || document.activeElement.labels[0].firstChild.textContent,
          getComputedStyle(document.activeElement).outlineWidth]""")
        assert outline == "3px"
        reached.append(name)
    assert reached == ["mask", "pattern", *controls]
    assert page.get_by_role("slider").count() == len(controls) - ("causal" in controls)


def test_the_box_hides_later_keys(show):
    twin = MaskExplorer("sliding window", length=12, window=2)
    page = show(twin)
    page.get_by_role("checkbox", name="causal").press("Space")
    twin.causal = True
    agrees(page, twin)
    assert page.locator(".me-says").inner_text() == "A query sees itself and 2 keys before it. Later keys are hidden."
    page.get_by_role("combobox").select_option("strided")
    assert page.get_by_role("checkbox").count() == 0
    assert not page.locator(".me-says").inner_text().endswith("Later keys are hidden.")


# --- sizes and places ---


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_explorer_has_one_size_that_fits_a_slide(show, pattern):
    page = show(MaskExplorer(title="A mask"))
    box = page.locator(".mask-explorer").bounding_box()
    assert box["width"] <= 1100
    assert box["height"] <= 520
    page.get_by_role("combobox").select_option(pattern)
    page.get_by_role("slider", name="length").press("End")
    for slider in page.get_by_role("slider").all()[1:]:
        slider.press("Home")
        slider.press("ArrowRight")
    assert page.locator(".mask-explorer").bounding_box() == box
    small = "nodes => Math.min(...nodes.map(node => parseFloat(getComputedStyle(node).fontSize)))"
    assert page.locator(".mask-explorer :not(input)").evaluate_all(small) >= 16


def test_on_a_narrow_page_nothing_is_lost(show, open_page):
    page = show(MaskExplorer("fixed"), page=open_page(viewport={"width": 420, "height": 900}))
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    agrees(page, MaskExplorer("fixed"))


def test_scaled_as_in_a_slide_show(show):
    page = show('<section style="transform: scale(0.6); transform-origin: 0 0">', MaskExplorer(), "</section>")
    paper = page.locator(".me-paper").bounding_box()
    page.mouse.click(paper["x"] + 3.5 * paper["width"] / 16, paper["y"] + 7.5 * paper["height"] / 16)
    assert page.locator(".me-readout").inner_text().startswith("query 7 sees key 3")


def test_a_strange_title_is_text(show):
    page = show(MaskExplorer(title="</script><img src=x onerror=alert(1)>"))
    assert page.locator(".is-title").inner_text() == "</script><img src=x onerror=alert(1)>"
    assert page.locator(".mask-explorer img").count() == 0


def test_without_scripts_there_is_a_picture(show, open_page):
    page = show(MaskExplorer(), page=open_page(java_script_enabled=False))
    assert page.locator("img").bounding_box()["width"] > 300
    assert "136 of 256 pairs" in page.locator("img").get_attribute("alt")


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_serious(show, dark):
    shown = MaskExplorer("fixed", title="A mask")
    page = show("<title>masks</title>", DARK * dark, "<main><h1>masks</h1>", shown, "</main>")
    page.emulate_media(color_scheme="dark" if dark else "light")
    assert serious(page, ".mask-explorer") == []


def test_update_draws_in_place_and_tells_nothing(show):
    page = mounted(show, "MaskExplorer", "mask_explorer", MaskExplorer()._export_state())
    page.evaluate("field = document.querySelector('.me-stage'); shown.update({...state, length: 8, pattern: 'full'})")
    assert "64 of 64" in page.locator(".me-counts").inner_text()
    assert page.locator(".me-readout").inner_text().startswith("query 7 sees key 0")  # the cell comes later
    assert page.evaluate("field.isConnected")
    assert page.evaluate("told") == []
    page.locator(".me-stage").press("ArrowRight")
    page.get_by_role("slider", name="length").press("ArrowRight")
    page.get_by_role("combobox").select_option("dilated")
    assert page.evaluate("told") == [{"cell": [7, 1]}, {"length": 9}, {"pattern": "dilated"}]
    assert destroyed(page, ["ArrowRight", "Home"]) == []


@pytest.mark.slow
def test_a_long_mask_answers_within_50_ms(show):
    page = show(MaskExplorer("sliding window", length=64, window=1))
    quickest = milliseconds(page, """(k) => {
      const slider = document.querySelectorAll(".me-control input")[1];
      slider.value = 1 + (k % 3);
      slider.dispatchEvent(new Event("input"));
    }""")
    print(f"window of 64 x 64: {quickest:.1f} ms")
    assert quickest < 50
