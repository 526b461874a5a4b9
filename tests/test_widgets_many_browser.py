"""All widgets, and many in one page: they stay fluid, a closed one is freed, texts are data, paper has everything.

Exported pages, JupyterLab and a live slide show, all without a network.
"""

import json
import os
import re
import zlib
from importlib.util import find_spec

import nbformat
import numpy as np
import pytest
from browser import STRANGE, assert_prints, assert_quiet, milliseconds, open_live, run
from sample_steps import numbers
from sample_tree import tree
from sample_widgets import MAKE, every_widget, make
from synthetic import code, lesson, text

from course_utils.publish import pages
from course_utils.widgets import AttentionView
from course_utils.widgets.base import javascript, stylesheet

FRAME = 16.7  # milliseconds, at 60 frames a second


def views(count, tokens=64):
    """Attention views of one layer with twelve heads, each of other weights."""
    for seed in range(count):
        weights = np.random.default_rng(seed).dirichlet(np.full(tokens, 0.05), size=(12, tokens))
        yield AttentionView(weights, [f"token{k}" for k in range(tokens)])


@pytest.mark.slow
def test_ten_views_answer_within_a_frame(show):
    page = show(*views(10), *(numbers() for _ in range(10)))
    assert page.locator(".attention-view").count() == page.locator(".step-through").count() == 10
    hover = """(k) => {
      const board = document.querySelectorAll(".av-board")[k % 10], box = board.getBoundingClientRect();
      const place = { clientX: box.left + 9 * k + 0.5, clientY: box.top + 7 * k + 0.5, movementX: 1 };
      board.dispatchEvent(new PointerEvent("pointermove", { ...place, bubbles: true }));
    }"""
    step = """(k) => document.querySelectorAll(".st-stage")[k % 10]
      .dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }))"""
    times = {"hover": milliseconds(page, hover), "step": milliseconds(page, step)}
    print(", ".join(f"{name} {time:.1f} ms" for name, time in times.items()))
    assert len(set(page.locator(".av-readout").all_inner_texts())) == 10  # each has moved, to its own place
    assert max(times.values()) < FRAME


LIFE = """(times) => {
  const listeners = new Set();
  const model = {
    get: (name) => state[name], set: () => {}, save_changes: () => {}, send: () => {},
    on: (event, answer) => listeners.add(answer), off: (event, answer) => listeners.delete(answer),
  };
  const host = liveHost(Widget, Object.keys(state)), place = document.querySelector("main");
  window.roots = [];
  window.closers = Array.from({ length: times }, () => {
    const el = place.appendChild(document.createElement("div"));
    const close = host.render({ model, el });
    roots.push(new WeakRef(el.firstChild));
    return () => { close(); el.remove(); };
  });
  window.heard = () => listeners.size;
}"""


@every_widget
def test_a_closed_widget_is_freed(show, name):
    widget = make(name)
    page = show(f"<style>{stylesheet(widget._files)}</style><main></main>")
    state = json.dumps(widget._export_state())
    page.add_script_tag(content=f"{javascript(widget._files)}\nvar state = {state}, Widget = {name};")
    page.evaluate(LIFE, 5)
    collect = page.context.new_cdp_session(page)

    def alive():
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        collect.send("HeapProfiler.collectGarbage")
        return page.evaluate("roots.filter((root) => root.deref()).length")

    for control in page.locator(".course-widget").first.locator("[tabindex='0'], input").all():  # it has been used
        control.press("ArrowRight")
    assert (alive(), page.evaluate("heard() > 0")) == (5, True)
    page.evaluate("document.activeElement.blur(); while (closers.length > 1) closers.shift()()")
    assert alive() == 1
    page.evaluate("closers.pop()()")
    assert (alive(), page.evaluate("heard()")) == (0, 0)
    assert page.locator("main").inner_html() == ""


LIVE_CELLS = [
    "import numpy as np\n"
    "from course_utils.widgets import AttentionView\n"
    "views = [AttentionView(np.eye(8)[::-1], list('abcdefgh'), title=str(k)) for k in range(10)]\n"
    "display(*views)",
    "views[3].close()\nviews[4].head = 0\nviews[4].cell = (0, 0)",
]


def test_live_a_closed_view_leaves_and_the_others_stay(jupyter, lab):
    page = lab
    own_errors = open_live(page, jupyter, "lab/tree", "many.ipynb", LIVE_CELLS)
    run(page, 0, shows=".attention-view", nth=9)
    run(page, 1)
    page.locator(".av-where", has_text="row 0, column 0").wait_for()
    page.wait_for_function("document.querySelectorAll('.attention-view').length === 9")
    titles = page.locator(".is-title").all_inner_texts()
    assert titles == [str(k) for k in range(10) if k != 3]
    assert page.outside_requests == []
    assert page.script_errors == own_errors


# --- texts are data ---


@every_widget
def test_strange_texts_are_text(show, name):
    page = show(*(make(name, STRANGE, title=title) for title in STRANGE[:2]))
    for widget in page.locator(".course-widget").all():
        for control in widget.locator("[tabindex='0'], input").all():  # what is chosen is said once more
            if control.is_visible():
                control.press("ArrowRight")
    heard = page.locator(".course-widget:not(.course-widget *)").evaluate_all("""(widgets) => widgets.map((widget) => {
      const nodes = [...widget.querySelectorAll("*")];
      return [widget.textContent, ...nodes.map((node) => node.value || node.title || "")].join("\\n");
    })""")
    assert page.locator(".is-title").all_text_contents() == list(STRANGE[:2])
    if name not in ("MaskExplorer", "PositionExplorer"):  # they have no words
        for text in STRANGE:
            expected = text.replace("`", "") if name == "Quiz" else text  # there they say: this is code
            assert all(expected in one for one in heard), text
    assert page.locator(".course-widget :is(script, img[src='x'])").count() == 0
    assert page.script_errors == []


# --- on paper ---

# what must be seen, which buttons say something there, and a colour that is only a background, as in a PDF
PRINTED = {
    "Ask": ([".ak-text", ".ak-said", ".ak-label", ".ak-bar i", ".ak-share"], [], "#0e7490"),
    "DecodingTree": ([".dt-readout", ".dt-node", ".dt-edge", ".dt-sentence", ".dt-legend"],
                     ["cat down", "the x y", "sat z", "sat"], "#fff3cd"),
    "MaskExplorer": ([".me-board", "select", ".me-says", ".me-counts", ".me-bar i", ".me-readout"], [], "#0e7490"),
    "PositionExplorer": ([".pe-about", ".pe-readout", ".pe-cells", ".pe-overlay"], ["Sinusoidal"], "#1f2430"),
    "Quiz": (["legend", ".qz-text"], [], None),
    "SoftmaxLab": ([".sl-formula", ".sl-key", ".sl-lane i", ".sl-weight", ".sl-bar i", ".sl-meter"], [], "#0e7490"),
    "Translator": ([".tr-text", ".tr-words", ".tr-chose", ".tr-bar i", ".tr-share", ".tr-truth", ".av-cells"],
                   "l' l' l' l' l' l' l' étudiant . <eos>".split(), "#4b5563"),
    "TwoTranslators": ([".tr-text", ".tr-words", ".tt-count", ".tt-length", ".tr-truth", "[lang=en]"],
                       "les lois ne signent pas les lois .".split(), "#ffb054"),
}


@pytest.mark.parametrize("name", PRINTED)
def test_paper_has_what_the_screen_shows_and_no_controls(show, name):
    parts, said, colour = PRINTED[name]
    page = show(make(name, title="A title"))
    page.emulate_media(media="print")
    for part in [".is-title", *parts]:
        found = page.locator(part).all()
        assert found
        assert all(one.evaluate("e => e.getClientRects().length > 0 && e.checkVisibility({visibilityProperty: true})")
                   for one in found), part
    buttons = [button for button in page.locator("button").all() if button.is_visible()]
    assert len(buttons) == len(said)
    assert all(word in button.inner_text() for word, button in zip(said, buttons, strict=True))
    assert not page.locator(".is-hint").is_visible()
    if colour:  # a browser leaves backgrounds out, where they are not asked for
        inks = re.findall(rb"([\d.]+) ([\d.]+) ([\d.]+) rg", b"".join(streams(page.pdf())))
        shades = {tuple(round(255 * float(part)) for part in ink) for ink in inks}
        assert tuple(int(colour[k:k + 2], 16) for k in (1, 3, 5)) in shades


def streams(pdf):
    """What is drawn on the pages of a PDF."""
    for packed in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        try:
            yield zlib.decompress(packed)
        except zlib.error:  # a font, a picture
            continue


# --- where they live ---


def test_an_exported_page_has_one_of_each(browser_page, tmp_path):
    notebook = lesson(tmp_path)
    notebook.cells = [code("-", name, data={"text/html": make(name, title=name).to_html()}) for name in MAKE]
    (tmp_path / "page.html").write_text(pages.page(notebook, tmp_path), encoding="utf-8")
    browser_page.goto((tmp_path / "page.html").as_uri())
    browser_page.locator(".course-widget").nth(len(MAKE) - 1).wait_for()
    assert browser_page.locator(".course-widget .is-title").all_inner_texts() == list(MAKE)
    assert browser_page.locator("[data-still]").count() == 0
    boxes = [widget.bounding_box() for widget in browser_page.locator(".course-widget").all()]
    assert all(box["width"] > 300 and box["height"] > 100 for box in boxes)
    assert browser_page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert_quiet(browser_page)


@pytest.mark.skipif(not (os.environ.get("CI") or find_spec("jupyterlab_rise")), reason="needs the extra live")
def test_in_a_live_slide_show_keys_move_in_the_widget(jupyter, browser_page):
    """In jupyterlab-rise, with the metadata of the course's notebooks: without them it would ask for fonts."""
    page, (address, folder, _) = browser_page, jupyter
    notebook = lesson(folder / "slides")
    notebook.metadata = {"kernelspec": notebook.metadata.kernelspec, "rise": {"scroll": True, "theme": "white"}}
    source = f"from course_utils.widgets import DecodingTree\nview = DecodingTree({tree()!r}, step=1)\nview"
    notebook.cells = [text("slide", "## Before"), code("slide", source), code("slide", "print(view.step, view.path)")]
    nbformat.write(notebook, folder / "rise.ipynb")
    page.goto(f"{address}/rise/rise.ipynb")
    page.locator("section.present h2", has_text="Before").first.wait_for()
    page.wait_for_function("location.hash")  # the slides can be turned
    page.keyboard.press("Space")
    page.locator("section.present .jp-CodeCell").first.wait_for()
    own_errors = set(page.script_errors)  # of RISE, while it starts
    run(page, 0, shows=".decoding-tree")
    assert page.locator(".decoding-tree").count() == 1  # the live view, not the copy as well
    where = page.evaluate("location.hash")
    page.locator(".dt-stage").focus()
    for key in ("ArrowRight", "ArrowDown", "Space", "n", "ArrowUp", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    assert page.locator(".dt-count").inner_text() == "step 2 of 4"
    assert page.locator(".dt-path").inner_text() == "<bos> b x"
    assert page.evaluate("location.hash") == where
    page.keyboard.press("PageDown")  # a presenter's remote control
    page.locator("section.present .jp-CodeCell", has_text="print").first.wait_for()
    assert page.evaluate("location.hash") != where
    assert_prints(page, 1, "2 ('b', 'x')")
    assert page.outside_requests == []
    assert set(page.script_errors) <= own_errors
