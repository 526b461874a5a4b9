"""README's pictures: ``python figures/screenshots.py`` takes them from what the course makes, in Chromium.

An attention view, a check that says why, a slide. Needs the extra ``test`` and Chromium or Chrome.
"""

import io
import math
import sys
import tempfile
from pathlib import Path

import torch
from PIL import Image
from playwright.sync_api import Page, sync_playwright
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from course_utils.course import course_root
from course_utils.doctor import find_browser
from course_utils.exercises import EXERCISES
from course_utils.exercises.card import Card
from course_utils.publish.notebooks import read
from course_utils.publish.slides import deck
from course_utils.widgets import Translator

HERE = Path(__file__).parent
LESSON, SLIDE = "04_transformer", "The LSTM's chain grows, the Transformer's does not"
WRONG = '''def masked_softmax(scores, mask):
    weights = scores.softmax(dim=-1)
    return weights * mask'''


def attention_view() -> str:
    """The famous sentence, as the translator's Transformer sees it."""
    return Translator().to_html() + "<style>.translator .attention-view { border: 0; padding: 14px }</style>"


def check() -> str:
    """An answer with a usual mistake, and the card that it gets."""
    scope = {"torch": torch, "math": math}
    exec(compile(WRONG, "answer", "exec"), scope)
    card = Card(EXERCISES["masked_softmax"].judge(scope["masked_softmax"]),
                "The course's function runs until yours is right.")
    code = highlight(WRONG + '\n\nmasked_softmax = check("masked_softmax")', PythonLexer(), HtmlFormatter(nowrap=True))
    return f'<div class="highlight"><pre>{code}</pre></div><div class="card">{card._repr_html_()}</div>'


def taken(page: Page, file: Path, body: str, selector: str) -> bytes:
    """A screenshot of one element of a page."""
    style = (HERE.parent / "course_utils/publish/templates/shared/content.css").read_text(encoding="utf-8")
    style += "#shown { display: inline-block; padding: 14px; max-width: 860px }"
    style += ".card { margin-top: 10px; font-size: 16px; line-height: 1.5 }"
    file.write_text(f"<!doctype html><meta charset=utf-8><style>{style}</style><div id=shown>{body}</div>",
                    encoding="utf-8")
    page.goto(file.as_uri())
    page.evaluate("document.fonts.ready")
    return page.locator(selector).screenshot()


def slide(page: Page, file: Path) -> bytes:
    """A slide of a lesson, as it is projected."""
    path = course_root() / "notebooks" / f"{LESSON}.ipynb"
    file.write_text(deck(read(path), path.parent), encoding="utf-8")
    page.goto(file.as_uri())
    page.wait_for_function("window.deckReady", timeout=60_000)
    found = page.evaluate("""(title) => {
      const slide = [...document.querySelectorAll(".slides section section")]
        .find((one) => one.querySelector("h1, h2, h3")?.textContent.trim() === title);
      const { h, v } = slide ? Reveal.getIndices(slide) : {};
      if (slide) Reveal.slide(h, v, 99);
      return Boolean(slide);
    }""", SLIDE)
    if not found:
        sys.exit(f"{path.name} has no slide {SLIDE!r}; choose another one")
    page.wait_for_timeout(300)
    return page.screenshot()


def save(name: str, png: bytes, width: int) -> None:
    """Write a picture in 256 colours, at most so wide."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    if picture.width > width:
        picture = picture.resize((width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS)
    path = HERE / f"readme_{name}.png"
    picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)
    print(path.name, picture.size, f"{path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    """Take all three."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": 1280, "height": 720}, device_scale_factor=1.5).new_page()
        file = Path(folder) / "page.html"
        save("attention", taken(page, file, attention_view(), ".attention-view"), 1000)
        save("check", taken(page, file, check(), "#shown"), 1000)
        save("slide", slide(page, file), 1200)
        browser.close()


if __name__ == "__main__":
    main()
