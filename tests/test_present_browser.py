"""Live slides: `course present` in the browser, as it is projected."""

import json
import os
import re
import shutil
from importlib.util import find_spec

import pytest
from browser import end_kernels, jupyter_server

from course_utils import cli
from course_utils.course import PRESENTED, course_root, is_further, numbered
from course_utils.publish.notebooks import read, slide_type
from course_utils.publish.presenting import prepare

HERE = os.environ.get("CI") or find_spec("jupyterlab_rise")
pytestmark = pytest.mark.skipif(not HERE, reason="needs the extra live")
LESSONS = [path for path in numbered(course_root()) if not is_further(path)]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """`course present 00`: its address, and the folder that it serves."""
    home = tmp_path_factory.mktemp("present")
    command = ["course_utils.cli", "present", "00"]
    with jupyter_server(home, *command, TMPDIR=str(home)) as address:
        yield address, next(home.glob(f"*/{LESSONS[0].name}")).parent


def prepared(folder, path):
    """A lesson in the server's folder, with its kernel and trusted, as its own `course present` would have it."""
    kernel = folder / "jupyter" / "kernels" / "python3" / "kernel.json"
    if not kernel.exists() or json.loads(kernel.read_text("utf-8"))["env"][PRESENTED] != str(folder / path.name):
        shutil.rmtree(folder / "jupyter")
        copy = prepare(read(path), path, folder)
        (signatures,) = folder.parent.glob("course-*/signatures.db")
        cli._trust([copy], {"db_file": str(signatures), "secret_file": str(signatures.with_name("secret"))})


@pytest.fixture
def present(browser_page, server):
    """A function that opens a lesson's live slides, with ``runs`` until its kernel is there, else with Jupyter's own
    kernel; it gives their page, which asks for nothing outside.
    """
    page = browser_page

    def present(name, runs=False):
        address, folder = server
        path = next(path for path in LESSONS if path.name.startswith(name))
        prepared(folder, path)
        if not runs:
            shutil.rmtree(folder / "jupyter" / "kernels")                      # Jupyter's own imports nothing
        end_kernels(page)
        page.goto(f"{address}/rise/{path.name}")
        page.locator(".reveal .slides section.present").first.wait_for()
        slides = sum(slide_type(cell) == "slide" for cell in read(path).cells)
        page.wait_for_function("n => document.querySelectorAll('.reveal .slides > section').length === n", arg=slides)
        settle(page, 1000)
        assert [box for box in page.locator(".jp-InputPlaceholder").all() if box.is_visible()] == [], name
        title = page.locator("section.present h1").first
        assert int(title.evaluate("e => parseInt(getComputedStyle(e).fontSize)")) >= 40, name
        if runs:
            page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for(state="attached")
        return page

    yield present
    assert page.outside_requests == []
    end_kernels(page)


def settle(page, milliseconds=550):
    """RISE selects a cell 450 ms after it has turned to a slide: a later timer of the page itself ends later."""
    page.evaluate("milliseconds => new Promise(done => setTimeout(done, milliseconds))", milliseconds)


def jump(page, slide):
    """To a slide by its name, as a link of the slides' overview does."""
    page.evaluate("slide => { location.hash = `#/${slide}` }", slide)
    page.locator(f"#{slide}.present").wait_for()
    settle(page)


def to_slide(page, number):
    """Forward to the slide of this number, from 0, whatever fragments and slides below it has."""
    for _ in range(90):
        if page.url.split("#/slide-")[-1].split("-")[0] == str(number):
            return
        before = page.evaluate("location.hash")
        page.keyboard.press("ArrowRight")
        page.wait_for_function("before => location.hash !== before", arg=before)
    raise AssertionError(page.url)


def test_code_runs_on_a_slide_after_what_stands_above_it(present):
    page = present("00", runs=True)
    to_slide(page, 1)
    assert "#/slide-1-0" in page.url
    page.keyboard.press("ArrowLeft")                           # a step back is one, too
    page.wait_for_function("location.hash.startsWith('#/slide-0')")
    to_slide(page, 2)                                          # over the imports, which are on no slide
    page.keyboard.press("Space")
    cell = page.locator(".jp-CodeCell").filter(has_text="scores = torch.tensor").first
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("\n__import__('time').sleep(2); print('sum', round(weights.sum().item(), 3))")
    page.evaluate("""() => {
      new MutationObserver(() => { window.seenRunning ||= document.body.classList.contains("course-runs") })
        .observe(document.body, { attributeFilter: ["class"] });
    }""")                                                      # a busy browser may look only after the two seconds
    page.keyboard.press("Shift+Enter")
    page.wait_for_function("window.seenRunning")
    cell.locator(".jp-OutputArea", has_text="sum 1.0").wait_for(timeout=120_000)
    page.locator("body:not(.course-runs)").wait_for()
    assert "Traceback" not in cell.inner_text()
    size = page.evaluate("document.querySelector('section.present .jp-MarkdownOutput p') && getComputedStyle("
                         "document.querySelector('section.present .jp-MarkdownOutput p')).fontSize")
    assert int(re.match(r"\d+", size)[0]) >= 24
    assert [box for box in page.locator(".jp-InputPlaceholder").all() if box.is_visible()] == []
    here = page.evaluate("location.hash")
    assert re.match(r"#/slide-2-\d+/\d", here)                            # a cell that has run stays in sight
    with page.expect_popup() as popup:
        page.keyboard.press("t")
    notes = popup.value.locator(".speaker-controls-notes")                 # a window of its own, with a clock
    notes.get_by_text("Speaker notes").first.wait_for()
    popup.value.wait_for_function("document.getElementById('formulas')?.textContent.includes('mjx')")
    for copy in popup.value.frames[1:]:                                    # its slides load, and begin at the title
        copy.locator(".reveal .slides section.present").first.wait_for()
    settle(page, 2500)
    assert page.evaluate("location.hash") == here                          # with the fragment that is shown
    assert "<details" not in notes.inner_text()
    assert "**" not in notes.inner_text()
    assert notes.get_by_text("Speaker notes").count() == 1
    column = popup.value.locator("#speaker-controls")                      # read without scrolling
    assert column.evaluate("column => column.scrollHeight <= column.clientHeight")
    popup.value.keyboard.press("ArrowLeft")                                # there, a key turns the slides
    page.wait_for_function("here => location.hash !== here", arg=here)
    popup.value.close()
    shown = page.locator(".reveal section section.present", has_text="Move it").locator(
        ".jp-CodeCell:not(.reveal-skip)").first
    for _ in range(6):
        if shown.count():
            break
        page.keyboard.press("Space")
        settle(page)
    shown.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    lab = shown.locator(".softmax-lab").first
    lab.wait_for()
    lab.locator("input").first.focus()                                     # then out of it, as its hint says
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement !== document.body")       # keys go to the slides again


def test_arrows_go_a_step_at_a_time_and_a_jump_leaves_code_to_run(present):
    page = present("06", runs=True)
    steps = ["1-0", "1-0/0", "1-1", "1-1/0", "2-0", "2-0/0", "2-0/1", "2-1"]
    for step in steps:                                              # fragments and slides below, none left out
        page.keyboard.press("ArrowRight")
        page.wait_for_function("step => location.hash === `#/slide-${step}`", arg=step)
        settle(page)
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("location.hash === '#/slide-2-0/1'")
    assert re.fullmatch(r"\d+ */ *\d+", page.locator(".slide-number").inner_text().strip())
    dark, cells = "!!document.querySelector('.reveal.paused')", page.locator(".jp-Cell").count()
    for key in ("?", "/", ".", "a", "x", "v", "b", "b"):                   # only b, and it adds no cell
        page.keyboard.press(key)
        settle(page, 300)
        assert page.evaluate(dark) is (key == "b" and not page.evaluate("window.wasDark ?? false")), key
        page.evaluate(f"window.wasDark = {dark}")
    assert page.locator(".jp-Dialog, .reveal .overlay").count() == 0
    assert page.locator(".jp-Cell").count() == cells
    jump(page, "slide-3-0")                                                # a picture, no code: nothing runs
    page.keyboard.press("Shift+Enter")
    settle(page)
    assert page.url.endswith("#/slide-3-0")
    jump(page, "slide-3-2")
    stub = page.locator("section.present section.present .jp-CodeCell:not(.reveal-skip)").first
    stub.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("  # ?/.b;:v")                                      # in a cell they are signs
    settle(page, 300)
    assert "# ?/.b;:v" in stub.inner_text()
    assert not page.evaluate(dark)
    assert page.locator(".jp-Dialog, .reveal .overlay").count() == 0
    page.keyboard.press("Shift+Enter")
    card = page.locator("section.present section.present .jp-OutputArea", has_text="not written yet")
    card.wait_for(timeout=120_000)
    assert "#/slide-3-2" in page.url


def test_a_long_sentence_of_the_two_translators_ends_where_the_slide_does(present):
    page = present("02")
    view = page.locator("section section .two-translators").last
    jump(page, view.evaluate("view => view.closest('section').id"))
    view.locator(".tt-length input").press("End")
    words = view.locator("[lang=en] .tr-word")
    assert words.count() > 38
    assert words.first.evaluate("word => parseFloat(getComputedStyle(word).fontSize)") >= 24
    assert view.bounding_box()["y"] + view.bounding_box()["height"] <= 700


def test_a_slides_pictures_take_the_space_and_end_where_the_screen_does(present):
    page = present("03", runs=True)
    plots = page.locator(".reveal section section:has(.jp-Cell:not(.reveal-skip) .jp-OutputArea-output > img)")
    slides = plots.evaluate_all("found => found.map(slide => slide.id)")
    assert len(slides) >= 6
    for slide in slides:
        jump(page, slide)
        plot = page.locator(f"#{slide} .jp-Cell:not(.reveal-skip) .jp-OutputArea-output > img").first.bounding_box()
        assert plot["height"] > 300
        assert plot["x"] + plot["width"] <= 1280
        assert abs(plot["x"] + plot["width"] / 2 - 640) < 20, slide
        shape = page.locator(f"#{slide} .jp-OutputArea-output > img").first.evaluate(
            "e => [getComputedStyle(e).objectFit, getComputedStyle(e).objectPosition]")
        assert shape == ["contain", "50% 50%"]
        assert plot["y"] + plot["height"] <= 705, slide
        assert plot["width"] > 1000 or plot["height"] > 420, slide
        assert page.locator(".reveal .slide-number").bounding_box()["y"] > 680
    page.evaluate("""document.querySelector('section.present > section.present').insertAdjacentHTML('beforeend',
                     '<div class="below" style="height: 430px">what stands below</div>')""")
    settle(page, 300)
    plot = page.locator(f"#{slide} .jp-Cell:not(.reveal-skip) .jp-OutputArea-output > img").first.bounding_box()
    assert page.locator(".below").bounding_box()["y"] >= plot["y"] + plot["height"] - 1  # pushed down, not covered
    page.evaluate("document.querySelector('.below').remove()")
    grown = []
    for slide in page.locator(".reveal section section:has(.jp-Cell:not(.reveal-skip) .course-widget)").all():
        name = slide.get_attribute("id")
        jump(page, name)
        widgets = [widget for widget in slide.locator(".course-widget").all() if widget.is_visible()]
        if len(widgets) == 1:
            zoom, box = float(widgets[0].evaluate("widget => widget.style.zoom")), widgets[0].bounding_box()
            assert zoom == 0.85 or box["y"] + box["height"] <= 705, name
            assert box["x"] + box["width"] <= 1280, name
            assert abs(box["x"] + box["width"] / 2 - 640) < 40, name
            grown.append(zoom)
    assert max(grown) > 1.2
    assert not page.get_by_text("Click to add a cell").first.is_visible()
    solution = page.locator(".reveal section section:has(.jp-CodeCell:has-text('# Solution'))").first
    name = solution.get_attribute("id")
    jump(page, name)
    page.keyboard.press("Shift+Enter")
    page.locator(f"#{name} .jp-OutputArea-output:has-text('✓')").last.wait_for(timeout=120_000)
    settle(page)
    assert page.url.endswith(f"#/{name}")                                  # the slide that runs stays
    jump(page, slides[0])
    page.evaluate("""new MutationObserver(() => {
                         window.kept ??= document.querySelector('.course-before > img')?.alt;
                     }).observe(document.body, { childList: true, subtree: true })""")
    picture = page.locator(f"#{slides[0]} .jp-OutputArea-output > img").first
    before = picture.get_attribute("alt")
    page.keyboard.press("Shift+Enter")                                     # its picture stays until the new one
    page.wait_for_function("before => window.kept === before", arg=before, timeout=120_000)
    page.locator(".course-before").wait_for(state="detached", timeout=120_000)
    picture.wait_for()
    number = page.locator(".reveal .slide-number")
    jump(page, "slide-0-0")
    assert number.evaluate("e => getComputedStyle(e).opacity") == "1"
    page.evaluate("""document.querySelector('.reveal section.present > section.present')
                     .insertAdjacentHTML('beforeend', '<div class="jp-OutputArea-output">'
                                         + '<div style="height: 700px">a long card</div></div>')""")
    page.locator("body.course-full").wait_for()
    settle(page)
    assert number.evaluate("e => getComputedStyle(e).opacity") == "0"      # no number stands on a result
    size = page.locator(".reveal .jp-MarkdownOutput table").first.evaluate("e => getComputedStyle(e).fontSize")
    assert int(size.removesuffix("px")) >= 22


@pytest.mark.slow
def test_every_lesson_opens_as_live_slides(present):
    """The tests above open the others."""
    for path in LESSONS:
        if path.name[:2] not in {"00", "02", "03", "06"}:
            present(path.name[:2])
