"""What the tests of widgets in a browser share; the fixtures are in conftest.py."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import axe_playwright_python
import matplotlib
import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import TimeoutError as NotYet
from synthetic import code, lesson, text

from course_utils.publish.slides import deck
from course_utils.widgets import strip_widget_state
from course_utils.widgets.base import javascript, stylesheet

# Between a kernel and its client. Of two kernels that start at once, in two workers, both may find the same port free;
# the later then dies. Files have a kernel's own name. (Windows has no such files.)
TRANSPORT = "tcp" if os.name == "nt" else "ipc"
# a page that hears which keys a widget lets through
HEARD = "<script>let heard = []; document.onkeydown = (e) => heard.push(e.key)</script>"
DARK = '<meta name="color-scheme" content="dark"><style>body { background: #111; color: #eee }</style>'
SMALLEST_CONTRAST = 4.5  # WCAG 2.1, level AA, for text of ordinary size
# tokens, titles and texts that a page could take for markup, or take apart; each has one line
STRANGE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "<!--<script>",
    "'single' \"double\" `back`",
    "&lt;b&gt; $x^2$",
    "שלום עולם",  # from right to left
    "👩\u200d🔬👨\u200d👩\u200d👧",  # two emoji of several, joined
    "e\u0301 n\u0303o",  # accents of their own
)


# --- one widget by itself ---


def mounted(show, name, files, state, ask="undefined"):
    """A page with one widget that can be reached as ``shown``; what it tells is kept in ``told``."""
    page = show(f"<style>{stylesheet(files)}</style><main></main>")
    page.add_script_tag(content=f"""{javascript(files)}
      var told = [], asked = [], state = {json.dumps(state)};
      var shown = new {name}(document.querySelector("main"), state, (changes) => told.push(changes), {ask});""")
    return page


def destroyed(page, keys):
    """Destroy ``shown``; its old nodes must be gone, and what they still tell is returned."""
    page.evaluate("nodes = [...document.querySelectorAll('main *')]; shown.destroy(); told = []")
    assert page.locator("main").inner_html() == ""
    page.evaluate("""(keys) => {
      for (const node of nodes) {
        for (const key of keys) node.dispatchEvent(new KeyboardEvent("keydown", { key }));
        for (const type of ["input", "change", "click", "pointerdown"]) node.dispatchEvent(new PointerEvent(type));
      }
    }""", keys)
    return page.evaluate("told")


def alone():
    """Skip a test that measures time beside other workers."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("measures time, so it runs alone: pytest -n 0 -m slow")


def milliseconds(page, act):
    """The shortest of fifteen times, in order, that the JavaScript ``act(k)`` takes until the page is laid out.

    The shortest, because the machine may be busy with something else.
    """
    alone()
    times = page.evaluate("""(act) => [...Array(15).keys()].map((k) => {
      const start = performance.now();
      window.act(k + 1);
      document.body.getBoundingClientRect();  // lay the page out now
      return performance.now() - start;
    })""".replace("window.act", f"({act})"))
    return min(times)


def press(selector, key):
    """JavaScript that presses a key on an element, for `milliseconds`; ``key`` is an expression of ``k``."""
    return f"""(k) => document.querySelector("{selector}")
      .dispatchEvent(new KeyboardEvent("keydown", {{ key: {key}, bubbles: true }}))"""


# --- the attention view ---

CIVIDIS = (np.array(matplotlib.colormaps["cividis"].colors) * 255).round().astype(int)


def colours(weights):
    return CIVIDIS[np.minimum((weights * 256).astype(int), 255)]


def readout(page):
    return page.locator(".av-readout").first.inner_text()


def pixels(page):
    """The drawn matrix, one pixel a weight: ``[rows, columns, 3]``."""
    flat, height, width = page.locator(".av-cells").first.evaluate(
        "c => [[...c.getContext('2d').getImageData(0, 0, c.width, c.height).data], c.height, c.width]"
    )
    return np.array(flat).reshape(height, width, 4)[..., :3]


def links(page):
    """The drawn lines: ``{(head or None, row, column)}``, without those drawn again for the selected cell."""
    drawn = page.locator(".av-other-links path").evaluate_all("ps => ps.map(p => [p.dataset.head, p.dataset.pair])")
    return {(None if head is None else int(head), *map(int, pair.split())) for head, pair in drawn}


def tiles(page):
    """The thumbnails, ``{name: [rows, columns, 3]}``."""
    found = page.locator(".av-tile").evaluate_all("""tiles => tiles.map((tile) => {
      const canvas = tile.firstChild;
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return [tile.getAttribute("aria-label"), [...data], canvas.height];
    })""")
    return {name: np.array(flat).reshape(height, -1, 4)[..., :3] for name, flat, height in found}


# --- for everyone ---


def serious(page, selector, without=()):
    """What axe-core finds that is serious or critical, without some of its rules."""
    page.add_script_tag(path=Path(axe_playwright_python.__file__).parent / "axe.min.js")
    # axe would fetch style sheets, which a page from a disk may not; its other rules take half of the time
    found = page.evaluate("""async ([selector, without]) => {
      const runOnly = axe._audit.rules.filter(({ id, impact, enabled, tags }) => enabled && !without.includes(id)
        && !tags.includes("experimental") && ["serious", "critical"].includes(impact)).map(({ id }) => id);
      return (await axe.run(selector, { preload: false, runOnly, resultTypes: ["violations"] })).violations;
    }""", [selector, list(without)])
    return [(rule["id"], rule["nodes"][0]["html"]) for rule in found if rule["impact"] in ("serious", "critical")]


def contrasts(page, selector):
    """Of every element with text: ``[contrast with its paper, text, paper]`` (WCAG 2.1); without disabled
    buttons, text that is transparent, and what stands beside a drawn formula for screen readers only.
    """
    return page.locator(selector).evaluate("""(root) => {
      const light = (colour) => {
        const [r, g, b] = colour.match(/[\\d.]+/g).map((c) => c / 255)
          .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const paper = (node) => {
        const colour = getComputedStyle(node).backgroundColor;
        return colour === "rgba(0, 0, 0, 0)" ? paper(node.parentElement) : colour;
      };
      const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      return [...root.querySelectorAll("*")]
        .filter((node) => [...node.childNodes, ...(node.matches("[type=text]") ? [{ nodeType: 3, data: "x" }] : [])]
          .some((child) => child.nodeType === 3 && child.data.trim()))
        .filter((node) => !node.closest("[aria-disabled=true], mjx-assistive-mml"))
        .filter((node) => getComputedStyle(node).color !== "rgba(0, 0, 0, 0)")
        .map((node) => {
          const style = getComputedStyle(node);
          const ink = node.matches("text") ? style.fill : style.color;
          return [ratio(light(ink), light(paper(node))), node.textContent, paper(node)];
        });
    }""")


# --- slides ---

# What lies outside the slide's 1280 x 720 points, or is cut off by a box that should not scroll. The attention view
# may scroll inside itself. This looks at what is on the screen and shares nothing with the deck's own fitting.
OUTSIDE = """() => {
  const slide = Reveal.getCurrentSlide(), found = [];
  const say = (e, why) => {
    found.push(`${why}: <${e.tagName.toLowerCase()}> ${(e.innerText || e.alt || "").slice(0, 60)}`);
  };
  const measure = (e, box) => {
    if (!box.width || !box.height) return;
    if (box.bottom > 721) say(e, `ends ${Math.round(box.bottom - 720)} too low`);
    if (box.right > 1281) say(e, `ends ${Math.round(box.right - 1280)} too far right`);
    if (box.top < -1 || box.left < -1) say(e, "starts outside");
  };
  const look = (e) => {
    if (e.matches("aside.notes, mjx-assistive-mml, script, style")) return;
    const style = getComputedStyle(e);
    measure(e, e.getBoundingClientRect());
    for (const node of e.childNodes) {
      if (node.nodeType !== Node.TEXT_NODE || !node.data.trim()) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      measure(e, range.getBoundingClientRect());
    }
    if (e.matches(".course-widget")) return;
    if (style.overflowX !== "visible" || style.overflowY !== "visible") {
      if (e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1) say(e, "is cut off");
      return;
    }
    for (const child of e.children) look(child);
  };
  for (const child of slide.children) look(child);
  return found;
}"""

# What stands where the slide's number is: text and pictures, also inside a widget.
ON_THE_NUMBER = """() => {
  const texts = (root) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), found = [];
    while (walker.nextNode()) {
      const node = walker.currentNode;
      if (node.data.trim() && !node.parentElement.closest("aside.notes, mjx-assistive-mml, script, style")) {
        const range = document.createRange();
        range.selectNodeContents(node);
        found.push(...[...range.getClientRects()].map((box) => [box, node.data.trim()]));
      }
    }
    return found;
  };
  const slide = Reveal.getCurrentSlide(), number = texts(document.querySelector(".slide-number"));
  const drawn = [...slide.querySelectorAll(".highlight, img, canvas, svg")]
    .map((e) => [e.getBoundingClientRect(), `<${e.tagName.toLowerCase()}>`]);
  return [...texts(slide), ...drawn].filter(([box]) => box.width && box.height && number.some(([place]) =>
    box.bottom > place.top && box.top < place.bottom && box.left < place.right && box.right > place.left))
    .map(([, what]) => `stands on the slide's number: ${what.slice(0, 60)}`);
}"""


def open_deck(browser_page, html: str, folder: Path) -> None:
    """Open a deck from a file, as an instructor does, and wait until it is laid out."""
    file = folder / "deck.html"
    file.write_text(html, encoding="utf-8")
    browser_page.goto(file.as_uri())
    browser_page.wait_for_function("window.deckReady")


def assert_quiet(browser_page) -> None:
    assert browser_page.script_errors == []
    assert browser_page.outside_requests == []


def open_slides(page, folder, *widgets, tags=()):
    """Open a deck: a slide before, one for each widget, one after. Slide number 1 is the first widget; tags: its."""
    notebook = lesson(folder)
    notebook.cells = [text("slide", "## Before")]
    for widget in widgets:
        notebook.cells += [text("slide", "## One"), code("-", "w", *tags, data={"text/html": widget.to_html()})]
    notebook.cells.append(text("slide", "## After"))
    open_deck(page, deck(notebook, folder), folder)


def only_the_remote_control_turns(page, controls, keys):
    """In an open deck: of each slide's control ``(number, selector)`` the keys stay inside, and PageDown turns."""
    where = "Reveal.getIndices().h"
    for number, control in controls:
        page.evaluate(f"Reveal.slide({number})")
        assert page.evaluate(OUTSIDE) == []
        page.locator("section.present").last.locator(control).first.focus()
        for key in keys:
            page.keyboard.press(key)
        assert page.evaluate(where) == number
        page.keyboard.press("PageDown")
        assert page.evaluate(where) == number + 1
    assert page.script_errors == []
    assert page.outside_requests == []


# --- JupyterLab and Notebook ---


@contextmanager
def jupyter_server(home, *module, **places):
    """A Jupyter server, ``python -m`` with its options, that keeps what is its own in ``home``: its address. What else
    is to be in the environment: ``places``. It ends no kernel: one that is only slow would seem idle, too.

    Its kernels talk through files (``TRANSPORT``), whose paths have to be short.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    places |= {f"JUPYTER_{name}_DIR": str(home / name) for name in ("CONFIG", "DATA")}
    places |= {"IPYTHONDIR": str(home / "ipython"), "JUPYTER_RUNTIME_DIR": tempfile.mkdtemp(prefix="course-test-")}
    command = [sys.executable, "-m", *module, "--no-browser", f"--port={port}", "--ServerApp.port_retries=0",
               "--IdentityProvider.token=", f"--KernelManager.transport={TRANSPORT}"]
    log = home / "log"
    with log.open("w") as file:
        server = subprocess.Popen(command, stdout=file, stderr=file, env={**os.environ, **places}, cwd=home)
    try:
        for _ in range(480):
            assert server.poll() is None, log.read_text()[-2000:]
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api", timeout=5).close()
                break
            except OSError:
                time.sleep(0.25)
        else:
            raise TimeoutError(log.read_text()[-2000:])
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:  # a kernel does not answer
            server.kill()
            server.wait()
        shutil.rmtree(places["JUPYTER_RUNTIME_DIR"], ignore_errors=True)  # a kernel may still remove its own


def end_kernels(page):
    """Those of the server that the page has visited."""
    if page.url.startswith("http"):
        page.evaluate("""async () => {
            const headers = { "X-XSRFToken": document.cookie.match(/_xsrf=([^;]+)/)[1] };
            for (const { id } of await (await fetch("/api/sessions")).json()) {
                const { status } = await fetch(`/api/sessions/${id}`, { method: "DELETE", headers });
                if (status !== 204) throw new Error(`session ${id} goes on: ${status}`);
            }
        }""")


# the kernel answers; what the page shows of it says "idle" from the start
READY = "window.jupyterapp?.shell.currentWidget?.sessionContext?.kernelDisplayStatus === 'idle'"


def save(folder, name, cells, notary=None):
    """Write a notebook, without widget state as the course does; signed, if there is a notary."""
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = nbformat.from_dict(strip_widget_state(new_notebook(cells=cells, metadata=metadata)))
    nbformat.write(notebook, folder / name)
    if notary:
        notary.sign(nbformat.read(folder / name, 4))


def visit(page, jupyter, app, name):
    """Open a notebook of the server's folder; in JupyterLab, if the page shows it already, else from the address;
    without ``reset``, JupyterLab would open those of earlier tests, too.
    """
    if app == "lab/tree" and "/lab" in page.url:
        page.evaluate("""async (path) => {
          await jupyterapp.commands.execute("docmanager:open", { path, factory: "Notebook" });
        }""", name)
    else:
        page.goto(f"{jupyter[0]}/{app}/{name}{'?reset' if app.startswith('lab') else ''}")
    page.mouse.move(1, 1)  # the first event of all has no movement


def close_notebooks(page):
    """Those that JupyterLab shows, unsaved, and their kernels."""
    page.evaluate("""async () => {
      for (const shown of [...jupyterapp.shell.widgets("main")].filter(({ context }) => context)) {
        await shown.context.sessionContext.shutdown();
        shown.context.model.dirty = false;
        shown.dispose();
      }
    }""")


def open_live(page, jupyter, app, name, sources):
    """Open a new notebook with these cells and wait for its kernel; returns errors that are not the widgets' own."""
    save(jupyter[1], name, [new_code_cell(source) for source in sources])
    visit(page, jupyter, app, name)
    page.wait_for_function(READY)
    return list(page.script_errors)  # Notebook 7.6 reports some of its own while it starts


def run(page, number, shows=None, nth=0):
    """Run the cell of this number and wait until it has been run, and until the widget that it shows is there."""
    cell = page.locator(".jp-CodeCell").nth(number)

    def send():
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+Enter")

    for _ in range(6):  # a front end that is still starting may not listen to the first key
        send()
        try:
            cell.locator(".jp-InputPrompt", has_text=re.compile(r"\[[*\d]")).wait_for(timeout=5000)
            break
        except NotYet:
            continue
    done = cell.locator(".jp-InputPrompt", has_text=re.compile(r"\[\d+\]"))
    try:
        done.wait_for()
    except NotYet:  # a request that is sent while the kernel is still connecting can be lost: send it once more
        send()
        done.wait_for()
    if shows:
        try:
            page.locator(shows).nth(nth).wait_for()
        except NotYet:  # run before the front end's widget manager had met the kernel: such a view never comes
            send()
            page.locator(shows).nth(nth).wait_for()
    return cell


def assert_prints(page, number, expected):
    """The cell of this number prints this: run again, at most five times, as long as a change still waits in the page
    (a front end keeps back what a widget says until a busy kernel has answered)."""
    for _ in range(5):
        printed = run(page, number).locator(".jp-OutputArea-output").inner_text().strip()
        if printed == expected:
            break
        page.wait_for_timeout(500)
    assert printed == expected

