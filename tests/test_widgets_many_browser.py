"""Many widgets in one page: they stay fluid, and one that is closed is freed."""

import json

import numpy as np
import pytest
from browser import milliseconds, open_live, run
from test_step_through import numbers

from course_utils.widgets import AttentionView
from course_utils.widgets.base import javascript, stylesheet

FRAME = 16.7  # milliseconds, at 60 frames a second


def views(count, tokens=64):
    """Attention views of one layer with twelve heads, each of other weights."""
    for seed in range(count):
        weights = np.random.default_rng(seed).dirichlet(np.full(tokens, 0.05), size=(12, tokens))
        yield AttentionView(weights, [f"token{k}" for k in range(tokens)])


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


@pytest.mark.parametrize(("name", "files", "make"), [
    ("AttentionView", "attention_view", lambda: next(views(1))), ("StepThrough", "step_through", numbers),
])  # fmt: skip
def test_a_closed_view_is_freed(show, name, files, make):
    page = show(f"<style>{stylesheet(files)}</style><main></main>")
    state = json.dumps(make()._export_state())
    page.add_script_tag(content=f"{javascript(files)}\nvar state = {state}, Widget = {name};")
    page.evaluate(LIFE, 5)
    collect = page.context.new_cdp_session(page)

    def alive():
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        collect.send("HeapProfiler.collectGarbage")
        return page.evaluate("roots.filter((root) => root.deref()).length")

    page.locator(".course-widget [role=application]").first.press("ArrowRight")  # it has been used
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


def test_live_a_closed_view_leaves_and_the_others_stay(jupyter, browser_page):
    page = browser_page
    own_errors = open_live(page, jupyter, "lab/tree", "many.ipynb", LIVE_CELLS)
    run(page, 0)
    page.locator(".attention-view").nth(9).wait_for(timeout=90_000)
    run(page, 1)
    page.locator(".av-where", has_text="row 0, column 0").wait_for()
    page.wait_for_function("document.querySelectorAll('.attention-view').length === 9")
    titles = page.locator(".is-title").all_inner_texts()
    assert titles == [str(k) for k in range(10) if k != 3]
    assert page.outside_requests == []
    assert page.script_errors == own_errors
