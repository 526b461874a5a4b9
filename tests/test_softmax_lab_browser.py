"""The softmax lab in a real browser: exported pages, a deck; with the mask explorer in JupyterLab and Notebook.

All without a network.
"""

import numpy as np
import pytest
from browser import (
    DARK,
    HEARD,
    assert_prints,
    destroyed,
    mounted,
    only_the_remote_control_turns,
    open_live,
    open_slides,
    run,
    serious,
)

from course_utils.widgets import MaskExplorer, SoftmaxLab

WORDS = ["the", "animal", "street", "tired"]
SCORES = [1.2, 0.5, -0.5, 2.1]


def lab(**changes):
    return SoftmaxLab(**{"scores": SCORES, "labels": WORDS, **changes})


def said(page):
    """The numbers on the page: scores, what goes into the softmax, weights."""
    return [[float(number.replace("−", "-")) for number in page.locator(f".sl-{name}").all_inner_texts()]
            for name in ("score", "input", "weight")]


def agrees(page, twin):
    """Whether the page says what Python computes."""
    scores, inputs, weights = said(page)
    np.testing.assert_allclose(scores, twin.scores, atol=0.0051)
    np.testing.assert_allclose(inputs, twin.inputs, atol=0.0051)
    np.testing.assert_allclose(weights, twin.weights, atol=0.00006)
    assert page.locator(".sl-entropy b").inner_text().startswith(f"{twin.entropy:.2f} bits of ")
    assert f"{2**twin.entropy:.1f} of {len(scores)} keys" in page.locator(".sl-entropy").inner_text()
    assert float(page.locator(".sl-gradient b").inner_text()) == pytest.approx(twin.gradient, abs=0.00006)


# --- what is drawn ---


@pytest.mark.parametrize("given", [{}, {"width": 64}, {"width": 64, "scaled": True}, {"temperature": 0.5, "width": 4}])
def test_the_page_says_what_python_computes(show, given):
    page = show(lab(**given, title="Softmax"))
    agrees(page, lab(**given))
    assert page.locator(".is-title").inner_text() == "Softmax"
    assert page.locator(".sl-key").all_inner_texts() == WORDS
    widths = page.locator(".sl-table .sl-bar").evaluate_all(
        "bars => bars.map(bar => bar.firstChild.getBoundingClientRect().width / bar.getBoundingClientRect().width)")
    np.testing.assert_allclose(widths, lab(**given).weights, atol=0.005)


def test_javascript_and_python_agree_to_the_last_digits(show):
    page = mounted(show, "SoftmaxLab", "softmax_lab", lab()._export_state())
    generator = np.random.default_rng(3)
    for size in (1, 2, 5, 10):
        for width, temperature, scaled in [(1, 1.0, False), (64, 0.3, False), (1024, 1.0, True), (1024, 0.1, False)]:
            twin = SoftmaxLab(generator.normal(size=size) * 2, width=width, temperature=temperature, scaled=scaled)
            found = page.evaluate("state => soften(state)", twin._export_state())
            for name, number in found.items():
                np.testing.assert_allclose(number, getattr(twin, name), rtol=1e-9, atol=1e-13, err_msg=name)


def test_a_bar_ends_where_its_handle_is(show):
    """A press there must leave the score where it is."""
    page = show(lab(scores=[4.0, -4.0, 1.0, -2.0]))
    for k, score in enumerate([4, -4, 1, -2]):
        track, bar = (page.locator(f".sl-{name}").nth(k).bounding_box() for name in ("track", "lane i"))
        middle, half = track["x"] + track["width"] / 2, (track["width"] - 18) / 2
        assert min(bar["x"], bar["x"] + bar["width"], key=lambda x: abs(x - middle)) == pytest.approx(middle, abs=1)
        assert max(bar["x"], bar["x"] + bar["width"], key=lambda x: abs(x - middle)) == pytest.approx(
            middle + half * score / 4, abs=1)
        page.mouse.move(middle + half * score / 4, track["y"] + track["height"] / 2)  # take the handle, leave it there
        page.mouse.down()
        page.mouse.up()
        assert said(page)[0][k] == pytest.approx(score, abs=0.051)


# --- mouse and keys ---


def test_a_bar_is_dragged(show):
    page, twin = show(lab(width=16)), lab(width=16)
    track = page.locator(".sl-track").nth(2).bounding_box()
    middle, half = track["x"] + track["width"] / 2, (track["width"] - 18) / 2
    y = track["y"] + track["height"] / 2
    page.mouse.move(middle - half / 8, y)  # at -0.5
    page.mouse.down()
    for share in (0.1, 0.3, 0.75):
        page.mouse.move(middle + half * share, y)
    page.mouse.up()
    assert said(page)[0] == [1.2, 0.5, pytest.approx(3, abs=0.11), 2.1]
    twin.scores = said(page)[0]
    agrees(page, twin)


def test_a_click_beside_the_controls_keeps_the_keys_in(show):
    page = show(HEARD, lab())
    page.locator(".sl-formula").click()
    page.keyboard.press("ArrowRight")  # would turn the slide
    assert page.evaluate("heard") == []
    assert page.evaluate("document.activeElement.matches('.softmax-lab')")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("heard") == ["ArrowRight"]


def test_keys(show):
    page, twin = show(HEARD, lab()), lab()
    score = page.get_by_role("slider", name="score of street")
    score.focus()
    for key, value in [("ArrowRight", -0.4), ("ArrowUp", -0.3), ("ArrowLeft", -0.4), ("ArrowDown", -0.5),
                       ("End", 4.0), ("ArrowRight", 4.0), ("Home", -4.0)]:
        page.keyboard.press(key)
        twin.scores = [1.2, 0.5, value, 2.1]
        agrees(page, twin)
        assert score.get_attribute("aria-valuetext").startswith(f"{value:.2f}".replace("-", "−"))
    page.get_by_role("slider", name="width d").focus()
    for key, twin.width in [("ArrowRight", 2), ("ArrowRight", 4), ("End", 1024), ("ArrowLeft", 512)]:
        page.keyboard.press(key)
        agrees(page, twin)
    page.get_by_role("checkbox", name="divide by √d").focus()
    page.keyboard.press("Space")
    twin.scaled = True
    agrees(page, twin)
    page.get_by_role("slider", name="temperature").focus()
    for key, twin.temperature in [("ArrowRight", 1.3), ("End", 10.0), ("Home", 0.1)]:
        page.keyboard.press(key)
        agrees(page, twin)
    assert page.locator(".sl-formula").inner_text() == "Into the softmax goes score × √512 ÷ √512 ÷ 0.1 = score × 10."
    page.keyboard.press("n")  # means nothing here, and must not turn a slide
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body")
    assert page.evaluate("heard") == []


def test_focus_is_seen_and_every_control_is_reached(show):
    page = show(lab())
    reached = []
    for _ in range(7):
        page.keyboard.press("Tab")
        name, outline = page.evaluate("""[document.activeElement.getAttribute("aria-label")
          || document.activeElement.type, getComputedStyle(document.activeElement).outlineWidth]""")
        assert outline == "3px"
        reached.append(name)
    assert reached == ["width d", "checkbox", "temperature", *(f"score of {word}" for word in WORDS)]


def test_a_screen_reader_hears_names_and_values(show):
    heard = show(lab(title="A lab")).locator(".softmax-lab").aria_snapshot()
    for line in ('group "A lab"', 'slider "width d"', 'checkbox "divide by √d"', 'slider "temperature"',
                 'slider "score of tired"', "status:"):
        assert line in heard, heard


# --- sizes, places, strange labels ---


@pytest.mark.parametrize("keys", [2, 6, 10])
def test_the_lab_has_one_size_that_fits_a_slide(show, keys):
    page = show(SoftmaxLab([0.5] * keys, title="A lab"))
    box = page.locator(".softmax-lab").bounding_box()
    assert box["width"] <= 1100
    assert box["height"] <= 520
    page.get_by_role("slider", name="width d").press("End")
    page.get_by_role("slider").last.press("Home")
    assert page.locator(".softmax-lab").bounding_box() == box
    assert page.locator(".sl-scroll").evaluate("e => e.scrollWidth <= e.clientWidth")
    small = "nodes => Math.min(...nodes.map(node => parseFloat(getComputedStyle(node).fontSize)))"
    assert page.locator(".softmax-lab :not(input)").evaluate_all(small) >= 16


def test_on_a_narrow_page_nothing_is_lost(show, open_page):
    page = show(lab(width=1024), page=open_page(viewport={"width": 420, "height": 900}))
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    assert page.locator(".sl-scroll").evaluate("e => e.scrollWidth <= e.clientWidth")
    agrees(page, lab(width=1024))


STRANGE = ["<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "", "x" * 80]


def test_strange_labels_are_text(show):
    page = show(lab(labels=STRANGE, title=STRANGE[1]))
    assert page.locator(".sl-key").all_text_contents() == [*STRANGE[:2], "∅", STRANGE[3]]
    assert page.locator(".softmax-lab :is(img, script)").count() == 0
    assert page.script_errors == []


def test_without_scripts_there_is_a_picture(show, open_page):
    page = show(lab(), page=open_page(java_script_enabled=False))
    assert page.locator("img").bounding_box()["width"] > 300
    assert "tired: score 2.10" in page.locator("img").get_attribute("alt")


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_serious(show, dark):
    shown = lab(width=64, title="A lab")
    page = show("<title>softmax</title>", DARK * dark, "<main><h1>softmax</h1>", shown, "</main>")
    page.emulate_media(color_scheme="dark" if dark else "light")
    assert serious(page, ".softmax-lab") == []


def test_update_draws_in_place_and_tells_nothing(show):
    page = mounted(show, "SoftmaxLab", "softmax_lab", lab()._export_state())
    page.evaluate("field = document.querySelector('.sl-track input'); shown.update({...state, scores: [1, 2, 9, 4]})")
    assert said(page)[0] == [1, 2, 9, 4]
    assert page.evaluate("field.isConnected && field.max") == "16"
    assert page.evaluate("told") == []
    page.get_by_role("slider", name="score of the").press("ArrowRight")
    page.get_by_role("slider", name="width d").press("ArrowRight")
    page.get_by_role("checkbox").check()
    page.get_by_role("slider", name="temperature").press("End")
    assert page.evaluate("told") == [{"scores": [1.1, 2, 9, 4]}, {"width": 2}, {"scaled": True}, {"temperature": 10}]
    page.evaluate("shown.update({...state, labels: ['a', 'b', 'c', 'd']})")
    assert page.locator(".sl-key").all_inner_texts() == ["a", "b", "c", "d"]
    assert destroyed(page, ["ArrowRight", "Home"]) == []


def test_in_a_deck_only_the_remote_control_turns_the_page(browser_page, tmp_path):
    open_slides(browser_page, tmp_path, lab(title="A lab"), MaskExplorer("fixed", title="Who may see whom?"))
    controls = [(1, ".sl-track input"), (2, ".me-stage")]
    only_the_remote_control_turns(browser_page, controls,
                                  ("ArrowRight", "ArrowLeft", "2", "Space", "n", "ArrowRight", "Home"))


# --- JupyterLab and Notebook, with the mask explorer ---

LIVE_CELLS = [
    "from course_utils.widgets import MaskExplorer, SoftmaxLab\n"
    f"lab = SoftmaxLab({SCORES}, {WORDS})\n"
    "view = MaskExplorer('sliding window')\n"
    "moves = []\n"
    "view.observe(lambda change: moves.append(change.new), 'cell')\n"
    "display(lab, view)",
    "print(lab.scores, lab.width, lab.scaled, view.pattern, view.window, view.cell, moves[-1])",
    "lab.scores, lab.temperature = [0, 0, 3, 0], 2\nview.pattern, view.length, view.cell = 'causal', 8, (5, 5)",
]


def test_both_live(jupyter, lab):
    page = lab
    own_errors = open_live(page, jupyter, "lab/tree", "lab.ipynb", LIVE_CELLS)
    run(page, 0, shows=".mask-explorer")
    assert page.locator(".softmax-lab").count() == page.locator(".mask-explorer").count() == 1  # not the copies as well

    page.get_by_role("slider", name="score of the").press("ArrowRight")
    page.get_by_role("slider", name="width d").press("End")
    page.get_by_role("checkbox", name="divide by √d").check()
    page.keyboard.press("a")  # would add a cell, if it reached the notebook
    page.get_by_role("combobox", name="pattern").select_option("dilated")
    page.get_by_role("slider", name="window").press("ArrowRight")
    page.locator(".me-stage").press("ArrowUp")
    page.locator(".me-stage").press("ArrowRight")
    assert page.locator(".jp-CodeCell").count() == 3
    assert_prints(page, 1, "[1.3, 0.5, -0.5, 2.1] 1024 True dilated 4 (14, 1) (14, 1)")

    run(page, 2)
    page.locator(".sl-formula", has_text="÷ 2 =").wait_for()
    agrees(page, SoftmaxLab([0, 0, 3, 0], width=1024, scaled=True, temperature=2))
    page.locator(".me-readout", has_text="query 5 sees key 5").wait_for()
    assert "36 of 64 (56 %)" in page.locator(".me-counts").inner_text()
    assert page.outside_requests == []
    assert page.script_errors == own_errors
