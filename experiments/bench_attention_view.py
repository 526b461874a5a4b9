"""The attention view beside BertViz's head view and CircuitsVis's attention heads: size and speed of their pages.

    pip install bertviz circuitsvis        # in an environment of their own; what is missing is left out
    python experiments/bench_attention_view.py [--cdn FOLDER]

Writes ``bench_attention_view.json``, from which ``tables.py`` makes a table: the page's megabytes; seconds until it is
painted; milliseconds from pointing at a token, and from choosing another head, to the next painted frame (a frame is
16 ms; the median of nine, or of as many as ten seconds hold). The weights are random softmaxes of the same seed.
BertViz asks a server for three libraries: without a network, give a folder that holds ``require.min.js``,
``d3.min.js`` and ``jquery.min.js``. Tensors above two million weights are given to the attention view alone, because
the pages of the others would be hundreds of megabytes; its page then holds the heads of one layer, and says so.
"""

import argparse
import tempfile
from pathlib import Path

import torch
from playwright.sync_api import Error, sync_playwright

from course_utils.claims.stored import store
from course_utils.doctor import find_browser
from course_utils.widgets import AttentionView

CASES = ((6, 12, 32), (12, 12, 64), (1, 12, 256), (12, 12, 512))
OTHERS_AT_MOST = 2_000_000
PATIENCE = 180  # seconds until a page counts as not painted


def attention_view(weights, tokens):
    return AttentionView(weights, tokens).to_html()


def bertviz(weights, tokens):
    from bertviz import head_view

    return head_view([layer[None] for layer in weights], tokens, html_action="return").data


def circuitsvis(weights, tokens):
    from circuitsvis.attention import attention_heads

    return attention_heads(tokens=tokens, attention=weights.flatten(0, 1)).local_src


# what is there when the page is painted, and functions of a number that point at a token and choose a head
TOOLS = {
    "AttentionView": (attention_view, "document.querySelector('.attention-view .av-value')", """(k) => {
        const board = document.querySelector(".av-board"), box = board.getBoundingClientRect();
        const place = { clientX: box.left + box.width * k / 10, clientY: box.top + box.height * k / 12, movementX: 1 };
        board.dispatchEvent(new PointerEvent("pointermove", { ...place, bubbles: true }));
      }""", """() => document.querySelector(".av-stage")
        .dispatchEvent(new KeyboardEvent("keydown", { key: "]", bubbles: true }))"""),
    "BertViz": (bertviz, "document.querySelector('#attention line, #attention path')", """(k) =>
        document.querySelectorAll("#left > g > g")[k].dispatchEvent(new MouseEvent("mouseover", { bubbles: true }))""",
        """(k) => [...document.querySelectorAll("svg > g")].at(-1).querySelectorAll("rect")[k]
        .dispatchEvent(new MouseEvent("click", { bubbles: true }))"""),
    "CircuitsVis": (circuitsvis, "document.querySelector('canvas')", """(k) => {
        const board = [...document.querySelectorAll("canvas")].at(-1), box = board.getBoundingClientRect();
        const place = { clientX: box.left + box.width * k / 10, clientY: box.top + box.height * k / 12 };
        board.dispatchEvent(new MouseEvent("mousemove", { ...place, bubbles: true }));
      }""", """(k) => document.querySelectorAll("h4")[k].dispatchEvent(new MouseEvent("click", { bubbles: true }))"""),
}

# performance.now() counts from the moment at which the page was asked for
NOTE_FIRST_PAINT = """
  const look = () => requestAnimationFrame(() => {
    if (%s) setTimeout(() => { window.firstPaint = performance.now(); });
    else look();
  });
  look();
"""
MEDIAN = """async () => {
  const act = %s, times = [];
  const end = performance.now() + 10000;
  for (let k = 1; k <= 9 && performance.now() < end; k++) {
    const start = performance.now();
    act(k);
    await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
    times.push(performance.now() - start);
  }
  return times.sort((a, b) => a - b)[times.length >> 1];
}"""


def measure(browser, file: Path, painted: str, hover: str, head: str, cdn: Path | None) -> dict:
    """Size and times of a page; ``failed`` says why there are no times."""
    row = {"megabytes": file.stat().st_size / 1e6}
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    if cdn:
        context.route("https://cdnjs.cloudflare.com/**", lambda route: route.fulfill(
            path=cdn / route.request.url.rsplit("/")[-1], content_type="text/javascript"))
    page = context.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    page.add_init_script(NOTE_FIRST_PAINT % painted)
    try:
        page.goto(file.as_uri(), wait_until="commit")
        page.wait_for_function("window.firstPaint", polling=100)
        page.wait_for_load_state()
        return {**row, "seconds": page.evaluate("firstPaint") / 1000, "hover": page.evaluate(MEDIAN % hover),
                "head": page.evaluate(MEDIAN % head)}
    except Error as error:
        return {**row, "failed": str(error).splitlines()[0]}
    finally:
        context.close()


def main(arguments: list[str] | None = None) -> None:
    """Measure all pages, and store it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cdn", type=Path, help="a folder with the libraries that BertViz asks for")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"), help="default: %(default)s")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    results: dict[str, dict] = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"])
        for case in CASES:
            weights = (2 * torch.randn(*case, case[-1], generator=torch.Generator().manual_seed(0))).softmax(-1)
            tokens = [f"token{k}" for k in range(case[-1])]
            rows = results[" × ".join(map(str, case))] = {}
            for name, (make, painted, hover, head) in TOOLS.items():
                if make is not attention_view and weights.numel() > OTHERS_AT_MOST:
                    continue
                try:
                    text = make(weights, tokens)
                except ImportError as missing:
                    print(f"{name}, not measured: {missing}")
                    continue
                file = Path(folder) / "page.html"
                file.write_text(f"<!doctype html><meta charset=utf-8><body>{text}", encoding="utf-8")
                rows[name] = measure(browser, file, painted, hover, head, given.cdn)
                print(case, name, rows[name], flush=True)
    store(given.out, "python experiments/bench_attention_view.py", [0], results)


if __name__ == "__main__":
    main()
