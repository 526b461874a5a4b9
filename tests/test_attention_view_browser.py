"""The attention view in a real browser: exported pages, JupyterLab and Notebook, all without a network."""

import io
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request

import matplotlib
import nbformat
import numpy as np
import pytest
from nbconvert import HTMLExporter
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image

from course_utils.widgets import AttentionView, strip_widget_state
from course_utils.widgets.base import javascript, stylesheet

ROWS = ["l'", "accord", "signé"]
COLUMNS = ["the", "agreement", "was", "signed"]
# two layers, two heads; all entries of a head differ, and one is too weak for a line
WEIGHTS = np.random.default_rng(16).dirichlet(np.ones(4), size=(2, 2, 3))
CIVIDIS = (np.array(matplotlib.colormaps["cividis"].colors) * 255).round().astype(int)


def view(**changes):
    return AttentionView(**{"weights": WEIGHTS, "rows": ROWS, "columns": COLUMNS, "cell": (1, 1), **changes})


def colours(weights):
    return CIVIDIS[np.minimum((weights * 256).astype(int), 255)]


@pytest.fixture
def show(browser_page, tmp_path):
    """Put HTML (or widgets) on a page of its own; give the page. At the end nothing may have gone wrong."""

    def _show(*parts, page=browser_page):
        file = tmp_path / "page.html"
        body = "\n".join(part.to_html() if isinstance(part, AttentionView) else part for part in parts)
        file.write_text(f"<!doctype html><meta charset=utf-8><body>{body}", encoding="utf-8")
        page.goto(file.as_uri())
        page.mouse.move(1, 1)  # the first event of all has no movement
        return page

    yield _show
    assert browser_page.script_errors == []
    assert browser_page.outside_requests == []


def over(page, row, column, board=".av-board", shape=(3, 4)):
    """Move the pointer to the middle of a cell."""
    box = page.locator(board).first.bounding_box()
    x = box["x"] + (column + 0.5) * box["width"] / shape[1]
    y = box["y"] + (row + 0.5) * box["height"] / shape[0]
    page.mouse.move(x, y)
    return x, y


def readout(page):
    return page.locator(".av-readout").first.inner_text()


def pixels(page):
    """The drawn matrix, one pixel a weight: ``[rows, columns, 3]``."""
    flat, height, width = page.locator(".av-cells").first.evaluate(
        "c => [[...c.getContext('2d').getImageData(0, 0, c.width, c.height).data], c.height, c.width]"
    )
    return np.array(flat).reshape(height, width, 4)[..., :3]


# --- the matrix ---


def test_drawn_matrix_is_the_tensor(show):
    page = show(view(layer=1, head=1))
    np.testing.assert_allclose(pixels(page), colours(WEIGHTS[1, 1]), atol=3)
    page.keyboard.press("Tab")
    page.locator(".av-stage").press("[")
    np.testing.assert_allclose(pixels(page), colours(WEIGHTS[1, 0]), atol=3)


def test_cells_are_where_the_tokens_are(show):
    """A lone weight, looked at on the screen: in the row of its query and below its key."""
    weights = np.eye(4)[[2, 0, 0]]
    page = show(view(weights=weights, cell=(2, 3)))
    # what lies under the middle of the row of token i and the column of token j
    found = np.zeros((3, 4))
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    for i, row in enumerate(page.locator(".av-token.av-query").all()):
        for j, column in enumerate(page.locator(".av-token.av-key").all()):
            across, up = row.bounding_box(), column.bounding_box()
            y = across["y"] + across["height"] / 2
            x = up["x"] + 8  # a slanted token begins over its column
            red, _, blue = image.getpixel((round(x), round(y)))
            found[i, j] = red > blue
    np.testing.assert_array_equal(found, weights)


def test_hover_reads_the_cell(show):
    page = show(view())
    over(page, 2, 3)
    assert readout(page).startswith(f"signé → signed  {WEIGHTS[0, 0, 2, 3]:.3f}")
    value = page.locator(".av-readout").get_attribute("data-value")
    assert float(value) == pytest.approx(WEIGHTS[0, 0, 2, 3], abs=1e-5)
    assert page.locator(".av-token.is-current").all_inner_texts() == ["signé", "signed"]
    assert page.locator(".av-stage").get_attribute("aria-label") == f"3 queries, 4 keys. {readout(page)}"


def test_hover_on_a_token_finds_its_strongest_partner(show):
    page = show(view())
    page.locator(".av-token.av-query").nth(2).hover()
    assert COLUMNS[WEIGHTS[0, 0, 2].argmax()] in readout(page)
    page.locator(".av-token.av-key").nth(0).hover()
    assert readout(page).startswith(ROWS[WEIGHTS[0, 0, :, 0].argmax()] + " → the")


def test_a_move_without_movement_selects_nothing(show):
    """Some browsers send one when the page scrolls below a resting pointer."""
    page = show(view())
    send = """(board, movementX) => {
      const { left, top } = board.getBoundingClientRect();
      board.dispatchEvent(new PointerEvent("pointermove", { clientX: left + 5, clientY: top + 5, movementX }));
    }"""
    page.locator(".av-board").evaluate(send, 0)
    assert "row 1, column 1" in readout(page)
    page.locator(".av-board").evaluate(send, 1)
    assert "row 0, column 0" in readout(page)


def test_keys(show):
    page = show("<script>let heard = []; document.onkeydown = (e) => heard.push(e.key)</script>", view())
    stage = page.locator(".av-stage")
    stage.focus()
    steps = [
        ("ArrowDown", (2, 1)), ("ArrowDown", (2, 1)), ("ArrowRight", (2, 2)), ("End", (2, 3)), ("ArrowRight", (2, 3)),
        ("ArrowUp", (1, 3)), ("Home", (1, 0)), ("ArrowLeft", (1, 0)),
    ]  # fmt: skip
    for key, (row, column) in steps:
        page.keyboard.press(key)
        assert f"row {row}, column {column}" in readout(page), key
    choosers = page.locator("select")
    for key, layer, head in [("]", 0, 1), ("]", 0, 0), ("[", 0, 1), ("}", 1, 1), ("{", 0, 1)]:
        page.keyboard.press(key)
        assert [choosers.nth(k).input_value() for k in (0, 1)] == [str(layer), str(head)]
        assert f"{WEIGHTS[layer, head, 1, 0]:.3f}" in readout(page)
    page.keyboard.press("v")
    assert page.locator(".av-links").count() == 1
    page.keyboard.press("n")  # means nothing here, and must not turn a slide
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body")
    assert page.evaluate("heard") == []


def test_focus_is_seen_and_every_control_is_reached(show):
    page = show(view())
    reached = []
    for _ in range(5):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.tagName"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineWidth") == "3px"
        assert page.evaluate("document.activeElement.dataset.lmSuppressShortcuts") == "true"
    assert reached == ["BUTTON", "BUTTON", "SELECT", "SELECT", "DIV"]


def test_choosers_only_where_there_is_a_choice(show):
    page = show(view(weights=WEIGHTS[0, 0]), view(weights=WEIGHTS[0]), view())
    roots = page.locator(".attention-view")
    assert [roots.nth(k).locator("select").count() for k in range(3)] == [0, 1, 2]
    roots.nth(2).locator("select").first.select_option("1")
    assert f"{WEIGHTS[1, 0, 1, 1]:.3f}" in roots.nth(2).locator(".av-readout").inner_text()


# --- links and alignment ---


def test_links_are_as_wide_as_their_weights(show):
    page = show(view(view="links"))
    widths = page.locator(".av-other-links path").evaluate_all(
        "paths => paths.map(p => [...p.dataset.pair.split(' ').map(Number), Number(p.getAttribute('stroke-width'))])"
    )
    drawn = np.zeros((3, 4))
    for row, column, width in widths:
        drawn[int(row), int(column)] = (width - 0.5) / 9
    expected = np.where(WEIGHTS[0, 0] >= 0.01, WEIGHTS[0, 0], 0)
    np.testing.assert_allclose(drawn, expected, atol=0.002)


@pytest.mark.parametrize(("side", "number"), [("query", 2), ("key", 3)])
def test_hover_on_a_token_shows_its_links(show, side, number):
    page = show(view(view="links"))
    page.locator(f".av-token.av-{side}").nth(number).hover()
    ends = page.locator(".av-link.is-of-row, .av-link.is-of-column").evaluate_all(
        "paths => paths.map(p => p.dataset.pair.split(' ').map(Number))"
    )
    axis = 0 if side == "query" else 1
    partners = WEIGHTS[0, 0].take(number, axis=axis)
    assert {pair[axis] for pair in ends} == {number}
    assert {pair[1 - axis] for pair in ends} == set(np.flatnonzero(partners >= 0.01).tolist())
    assert page.locator(".av-token.is-current").count() == 2


def test_alignment_is_drawn_on_top_and_explained(show):
    page = show(view(alignment=[(0, 0), (2, 3)], cell=(2, 3)))
    page.get_by_text("true alignment").wait_for()
    boxes = [m.bounding_box() for m in page.locator(".av-aligned .av-outline").all()]
    board = page.locator(".av-board").bounding_box()
    cells = {(int((b["y"] - board["y"] + 20) // 40), int((b["x"] - board["x"] + 20) // 40)) for b in boxes}
    assert cells == {(0, 0), (2, 3)}
    assert "true link" in readout(page)
    page.get_by_role("button", name="Links").click()
    assert page.locator(".av-aligned-links .av-true-link").count() == 2
    page.get_by_text("true alignment").wait_for()
    page.locator(".av-stage").press("ArrowLeft")
    assert "true link" not in readout(page)


# --- tokens are data ---

STRANGE = [
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "\"quotes'&amp;", "", "  ", "שלום", "👩‍👩‍👧",
    "x" * 60, "$x^2$", "\u2028",
]  # fmt: skip
SHOWN = [*STRANGE[:3], "∅", "␣␣", *STRANGE[5:9], "␣"]


@pytest.mark.parametrize("kind", ["matrix", "links"])
def test_strange_tokens_are_text(show, browser_page, kind):
    alarms = []
    browser_page.on("dialog", lambda dialog: (alarms.append(dialog.message), dialog.dismiss()))
    weights = np.full((10, 10), 0.1)
    page = show(AttentionView(weights, STRANGE, view=kind, title=STRANGE[1], cell=(0, 1)))
    for side in ("query", "key"):
        tokens = page.locator(f".av-token.av-{side}")
        assert tokens.all_text_contents() == SHOWN
        assert tokens.nth(7).get_attribute("title") == "x" * 60
        assert tokens.nth(7).evaluate("e => e.scrollWidth > e.clientWidth && e.clientWidth <= 120")
        assert tokens.nth(3).get_attribute("title") == "empty token"
    assert page.locator(".attention-view :is(img, script)").count() == 0
    assert readout(page).startswith(f"{STRANGE[0]} → {STRANGE[1]}")
    page.locator(".av-token.av-query").nth(7).hover()
    assert "x" * 60 in readout(page)
    assert alarms == []


# --- where it lives ---


def test_several_views_on_a_page_are_strangers(show):
    page = show(view(), view(), view(head=1, title="other"))
    readouts = page.locator(".av-readout")
    assert readouts.count() == 3
    page.locator(".av-stage").nth(1).press("ArrowUp")
    texts = readouts.all_inner_texts()
    assert ["row 0" in text for text in texts] == [False, True, False]
    assert page.evaluate("[typeof AttentionView, typeof CIVIDIS, typeof element]") == ["undefined"] * 3


def test_hidden_and_scaled_as_in_a_slide_show(show):
    page = show('<section style="display: none; transform: scale(0.6); transform-origin: 0 0">', view(), "</section>")
    page.evaluate("document.querySelector('section').style.display = 'block'")
    assert page.locator(".av-board").bounding_box()["width"] == pytest.approx(4 * 40 * 0.6)
    over(page, 2, 0)
    assert "row 2, column 0" in readout(page)


@pytest.mark.parametrize(("rows", "columns", "kind"), [(14, 14, "matrix"), (14, 14, "links"), (12, 20, "matrix")])
def test_fits_a_slide(show, rows, columns, kind):
    tokens = [f"européen{k}" for k in range(20)]
    page = show(AttentionView(np.full((rows, columns), 1 / columns), tokens[:rows], tokens[:columns], view=kind))
    box = page.locator(".attention-view").bounding_box()
    assert box["height"] <= 480
    assert box["width"] <= 900
    stage = page.locator(".av-stage")
    assert stage.evaluate("e => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight")


def test_without_scripts_there_is_a_picture(show, open_page):
    page = show(view(), page=open_page(java_script_enabled=False))
    picture = page.locator("img")
    assert picture.bounding_box()["width"] > 100
    assert "3 queries by 4 keys" in picture.get_attribute("alt")


def test_nbconvert_page_is_interactive(show):
    cell = new_code_cell("view", outputs=[new_output("display_data", data=view()._repr_mimebundle_()[0])])
    notebook = strip_widget_state(new_notebook(cells=[cell]))
    body, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook)
    page = show(body)
    over(page, 2, 3)
    assert readout(page).startswith("signé → signed")


def test_512_by_512_answers_within_50_ms(show):
    weights = np.random.default_rng(0).dirichlet(np.full(512, 0.05), size=512)
    page = show(AttentionView(weights, [f"token{k}" for k in range(512)]))
    over(page, 100, 200, shape=(512, 512))
    assert readout(page).startswith("token100 → token200")
    measure = """async (path) => {
      const target = document.querySelector(path), box = target.getBoundingClientRect(), times = [];
      for (let k = 1; k <= 15; k++) {
        const start = performance.now();
        const place = { clientX: box.left + 30 * k + 0.5, clientY: box.top + 20 * k + 0.5, movementX: 1 };
        target.dispatchEvent(new PointerEvent("pointermove", { ...place, bubbles: true }));
        document.body.getBoundingClientRect();  // lay the page out now
        times.push(performance.now() - start);
      }
      return times.sort((a, b) => a - b);
    }"""
    times = page.evaluate(measure, ".av-board")
    print(f"hover on 512 x 512: median {times[7]:.1f} ms, slowest {times[-1]:.1f} ms")
    assert "token300 → token450" in readout(page)
    assert times[7] < 50


# --- the JavaScript by itself ---

RAW = {"_content": {"shape": [1, 1, 1, 2], "top": 1, "rows": ["q"], "columns": ["a", "b"], "alignment": []}}
RAW["_content"]["weights"] = {"peak": 1, "uint16": "AAD//w=="}  # 0 and 1
RAW |= {"cell": [0, 0], "layer": 0, "head": 0, "view": "matrix", "title": ""}


@pytest.fixture
def mounted(show):
    """A page with one view that can be reached as ``shown``; what it tells is kept in ``told``."""
    page = show(f"<style>{stylesheet('attention_view')}</style><main></main>")
    page.add_script_tag(content=f"""{javascript("attention_view")}
      var told = [], state = {json.dumps(RAW)};
      var shown = new AttentionView(document.querySelector("main"), state, (changes) => told.push(changes));""")
    return page


def test_update_draws_in_place_and_tells_nothing(mounted):
    assert readout(mounted).startswith("q → a  0.000")
    mounted.evaluate("shown.update({...state, cell: [0, 1], view: 'links'})")
    assert readout(mounted).startswith("q → b  1.000")
    assert mounted.locator(".av-links").count() == 1
    mounted.evaluate("""shown.update({...state, _content: {...state._content, rows: ["new"],
                        weights: {peak: 0.5, uint16: "//8AAA=="}}})""")
    assert readout(mounted).startswith("new → a  0.500")
    mounted.evaluate("shown.update({...state, cell: null})")
    assert readout(mounted) == "nothing selected"
    assert mounted.locator(".attention-view").count() == 1
    assert mounted.evaluate("told") == []
    mounted.locator(".av-stage").press("ArrowRight")
    assert mounted.evaluate("told") == [{"cell": [0, 1]}]


def test_destroy_frees_the_page(mounted):
    mounted.evaluate("nodes = [...document.querySelectorAll('.attention-view, .attention-view *')]; shown.destroy()")
    assert mounted.locator("main").inner_html() == ""
    mounted.evaluate("""for (const node of nodes) {
      for (const key of ["ArrowRight", "]", "v"]) node.dispatchEvent(new KeyboardEvent("keydown", {key}));
      for (const type of ["pointerdown", "click", "change"]) node.dispatchEvent(new PointerEvent(type));
    }""")
    assert mounted.evaluate("told") == []


# --- JupyterLab and Notebook ---

LIVE_CELLS = [
    "import numpy as np\n"
    "from course_utils.widgets import AttentionView\n"
    "weights = np.random.default_rng(16).dirichlet(np.ones(4), size=(2, 2, 3))\n"
    "view = AttentionView(weights, ['l\\'', 'accord', 'signé'], ['the', 'agreement', 'was', 'signed'], cell=(1, 1))\n"
    "moves = []\n"
    "view.observe(lambda change: moves.append(change.new), 'cell')\n"
    "view",
    "print(view.cell, view.head, view.view, len(moves) > 0)",
    "view.cell, view.head = (0, 1), 0",
    "view.weights = weights[:, ::-1]",
]


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory):
    """A Jupyter server over a folder of its own: ``(address, folder, notary)``."""
    home = tmp_path_factory.mktemp("jupyter")
    folder = home / "notebooks"
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    names = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR", "LAB_SETTINGS_DIR", "LAB_WORKSPACES_DIR")
    places = {f"JUPYTER{'' if name.startswith('LAB') else '_'}{name}": str(home / name) for name in names}
    labconfig = home / "CONFIG_DIR" / "labconfig"
    labconfig.mkdir(parents=True)
    (labconfig / "default_setting_overrides.json").write_text(json.dumps({
        "@jupyterlab/notebook-extension:tracker": {"autoStartDefaultKernel": True},
        "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
        "@jupyterlab/apputils-extension:themes": {"theme": "JupyterLab Dark"},
        "@jupyterlab/lsp-extension:plugin": {"activate": "off"},
    }))  # fmt: skip
    log = (home / "log").open("w")
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root", "--ip=127.0.0.1"]
    command += [f"--port={port}", "--ServerApp.port_retries=0", "--IdentityProvider.token="]
    command += [f"--ServerApp.root_dir={folder}"]
    environment = {**os.environ, **places, "IPYTHONDIR": str(home / "ipython")}
    server = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=home)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            if server.poll() is not None:
                break
            try:
                urllib.request.urlopen(f"{address}/api", timeout=5).close()
                break
            except OSError:
                time.sleep(0.25)
        else:
            pytest.fail(f"the Jupyter server did not answer:\n{(home / 'log').read_text()[-2000:]}")
        assert server.poll() is None, (home / "log").read_text()[-2000:]
        yield address, folder, NotebookNotary(data_dir=str(home / "DATA_DIR"))
    finally:
        server.terminate()
        server.wait(30)
        log.close()


def save(folder, name, cells, notary=None):
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = nbformat.from_dict(strip_widget_state(new_notebook(cells=cells, metadata=metadata)))
    nbformat.write(notebook, folder / name)
    if notary:
        notary.sign(nbformat.read(folder / name, 4))


def run(page, number):
    """Run the cell of this number and wait until it has been run."""
    cell = page.locator(".jp-CodeCell").nth(number)
    started = cell.locator(".jp-InputPrompt", has_text=re.compile(r"\[[*\d]"))
    for _ in range(20):  # a front end that is still starting may not listen to the first key
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
        page.wait_for_timeout(500)
        if started.count():
            break
    cell.locator(".jp-InputPrompt", has_text=f"[{number + 1}]").wait_for(timeout=30_000)
    return cell


@pytest.mark.parametrize("app", ["lab/tree", "notebooks"])
def test_live(jupyter, browser_page, app):
    address, folder, _ = jupyter
    name = f"live-{app[:3]}.ipynb"
    save(folder, name, [new_code_cell(source) for source in LIVE_CELLS])
    page = browser_page
    page.goto(f"{address}/{app}/{name}")
    page.mouse.move(1, 1)
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for(timeout=60_000)
    own_errors = list(page.script_errors)  # Notebook 7.6 reports some of its own while it starts
    run(page, 0)
    page.locator(".attention-view").wait_for(timeout=30_000)
    assert page.locator(".attention-view").count() == 1  # the live view, not the copy as well

    over(page, 2, 3)
    assert readout(page).startswith(f"signé → signed  {WEIGHTS[0, 0, 2, 3]:.3f}")
    page.locator(".av-stage").focus()
    for key in ("ArrowLeft", "ArrowUp", "]", "v"):
        page.keyboard.press(key)
    assert "row 1, column 2" in readout(page)
    assert page.locator(".jp-CodeCell").count() == 4  # no key has reached the notebook
    told = run(page, 1).locator(".jp-OutputArea-output")
    assert told.inner_text().strip() == "(1, 2) 1 links True"

    run(page, 2)
    page.locator(".av-where", has_text="row 0, column 1").wait_for()
    assert page.locator(".av-readout").get_attribute("data-value") == str(float(np.float32(WEIGHTS[0, 0, 0, 1])))
    run(page, 3)
    page.locator(".av-value", has_text=f"{WEIGHTS[0, 1, 0, 1]:.3f}").wait_for()
    assert page.outside_requests == []
    assert page.script_errors == own_errors


@pytest.mark.parametrize("trusted", [True, False])
def test_reopened_without_running(jupyter, browser_page, trusted):
    address, folder, notary = jupyter
    output = new_output("execute_result", data=view()._repr_mimebundle_()[0], execution_count=1)
    name = f"reopened-{trusted}.ipynb"
    save(folder, name, [new_code_cell("view", outputs=[output], execution_count=1)], notary if trusted else None)
    page = browser_page
    page.goto(f"{address}/lab/tree/{name}")
    page.mouse.move(1, 1)
    area = page.locator(".jp-OutputArea-output")
    area.wait_for(timeout=60_000)
    if trusted:
        page.locator(".attention-view").wait_for()
        over(page, 2, 3)
        assert readout(page).startswith("signé → signed")
    else:
        assert area.locator("img").bounding_box()["width"] > 100
        assert page.locator(".attention-view").count() == 0
    assert "Loading widget" not in area.inner_text()
    assert page.outside_requests == []
    assert page.script_errors == []
