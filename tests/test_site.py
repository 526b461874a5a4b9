"""The site: what is in it, that its links lead somewhere, and how it looks to a visitor without a network."""

import json
import os
import re
import subprocess
import time
import zipfile
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

import pytest
from browser import SMALLEST_CONTRAST, assert_quiet, contrasts, serious
from nbformat.v4 import new_output
from synthetic import code, lesson, text

from course_utils import cli
from course_utils.claims.card import MIME
from course_utils.course import course_root, numbered
from course_utils.publish import archive
from course_utils.publish.archive import content
from course_utils.publish.notebooks import read, write
from course_utils.publish.pages import page as html_page
from course_utils.publish.site import INSTALL, Entry, build


class Links(HTMLParser):
    """The addresses of a page, the places in it that an address may name, and its words."""

    def __init__(self, html: str):
        super().__init__()
        self.links, self.loads, self.places, self.words = [], [], set(), ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.places |= {given[name] for name in ("id", "name") if given.get(name)}
        address = given.get("href") if tag in ("a", "link") else given.get("src")
        if address is not None:
            (self.links if tag == "a" else self.loads).append(address)

    def handle_data(self, data):
        self.words += data


def broken(folder: Path) -> list[str]:
    """What is linked and is not there, and what would be loaded from elsewhere."""
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in folder.glob("*.html")}
    found = []
    for path, page in pages.items():
        found += [f"{path.name} loads {address[:80]}" for address in page.loads
                  if urlsplit(address).scheme not in ("", "data") or address.startswith("//")]
        for address in page.links + [address for address in page.loads if not address.startswith("data:")]:
            parts = urlsplit(address)
            if parts.scheme in ("http", "https", "mailto"):
                continue
            target = path.parent / unquote(parts.path) if parts.path else path
            place = unquote(parts.fragment)
            if address.startswith("/") or not target.is_file():
                found.append(f"{path.name}: {address} is not there")
            elif place and not place.startswith("/") and place not in pages[target].places:
                found.append(f"{path.name}: {address} names a place that is not there")
    return found


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A course of two lessons and a further notebook, which link to each other."""
    root = tmp_path_factory.mktemp("course")
    (root / "notebooks" / "further").mkdir(parents=True)
    (root / "figures").mkdir()
    for name, links in (("01_one", "[two](02_two.ipynb) [more](further/01_more.ipynb#place)"),
                        ("02_two", "[back](01_one.ipynb)"), ("further/01_more", "[lesson](../01_one.ipynb)")):
        path = root / "notebooks" / f"{name}.ipynb"
        notebook = lesson(path.parent)
        notebook.cells[0] = text("slide", f"# {name[:2] if name[0] == '0' else '01'} · Lesson {name}\n\n"
                                          f"## What of $x$ & {name}?\n\n{links} <a id='place'></a>")
        notebook.cells.append(text("slide", "## Élan and résumé\n\nWords."))
        for k, cell in enumerate(notebook.cells):
            cell.id = f"{path.stem}-{k}"
            if cell.cell_type == "markdown":
                cell.source = cell.source.replace("](../drawing.svg)", f"]({'../' * (1 + ('/' in name))}drawing.svg)")
        write(notebook, path)
    (root / "drawing.svg").write_text((root / "notebooks" / "drawing.svg").read_text())
    return root


@pytest.fixture(scope="module")
def site(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build(root, folder)
    return folder


def visit(page, site, name="index.html"):
    page.goto((site / name).as_uri())
    return page


# --- files ---


def test_everything_is_there_and_every_link_leads_somewhere(site):
    assert sorted(path.name for path in site.glob("*.html")) == [
        "01_more.html", "01_one.html", "01_one.slides.html", "02_two.html", "02_two.slides.html", "index.html"]
    names = sorted(path.name for path in (site / "assets").iterdir())
    assert [name for name in names if not re.fullmatch(r"[0-9a-f]{16}\.(png|svg)", name)] == [
        "headings.js", "mathjax.js", "site.css", "site.js"]
    assert len(names) == 4 + 3, "each picture once, though it is on every page and slide"
    assert broken(site) == []
    assert all(path.stat().st_size < 1_500_000 for path in site.glob("*.html")), "MathJax stands in one file"


def test_the_course_lies_beside_its_pages(site):
    with zipfile.ZipFile(site / "attention-course.zip") as taken:
        assert taken.namelist() == [f"attention-course/notebooks/{name}.ipynb" for name in (
            "01_one", "02_two", "further/01_more")]
    for name in ("index", "01_one", "01_more", "02_two"):
        page = Links((site / f"{name}.html").read_text(encoding="utf-8"))
        assert "attention-course.zip" in page.links
        assert "Get the course (1 MB)" in page.words


def test_the_archive_has_what_installs_and_runs_the_course_and_nothing_else():
    root = course_root()
    kept = {path.as_posix() for path in content(root)}
    known = set(subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True,
                               text=True, check=True).stdout.split("\n"))
    assert kept - known == set(), "what git ignores stays here"
    missing = {name for name in known - kept - {""} if not name.startswith((".", "tests/")) and name != "conftest.py"}
    assert missing == set()
    linked = re.findall(r"\]\((?!https?:)([^)#\s]+)\)", (root / "README.md").read_text(encoding="utf-8"))
    assert {name for name in linked if name.rstrip("/") not in kept} == set()


def test_the_same_files_give_the_same_archive(tmp_path):
    (tmp_path / "course" / "notebooks").mkdir(parents=True)
    for day in (1, 2):
        text = tmp_path / "course" / "README.md"
        text.write_text("The course.")
        os.utime(text, (day * 86_400 * 5000, day * 86_400 * 5000))
        archive.write(tmp_path / "course", tmp_path / f"{day}.zip")
    assert (tmp_path / "1.zip").read_bytes() == (tmp_path / "2.zip").read_bytes()


def test_the_first_page_says_what_the_readme_says_to_a_newcomer():
    readme = (course_root() / "README.md").read_text(encoding="utf-8")
    assert [line for line in INSTALL if f"\n{line}\n" not in readme] == []


def test_the_check_of_links_sees_what_is_broken(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html">b</a><a href="#x">x</a><a href="/root">r</a>'
                                     '<a href="https://example.org">e</a><img src="https://example.org/i.png"><p id=y>')
    assert [line.split(":")[-1].strip() for line in broken(tmp_path)] == [
        "//example.org/i.png", "b.html is not there", "#x names a place that is not there", "/root is not there"]


def test_pages_follow_each_other(site):
    def around(name):
        html = (site / f"{name}.html").read_text(encoding="utf-8")
        return [re.search(rf'<a href="([^"]*)" rel="{rel}"|<a rel="{rel}" href="([^"]*)"', html) for rel in
                ("prev", "next")]
    assert [[found and (found[1] or found[2]) for found in around(name)]
            for name in ("01_one", "01_more", "02_two")] == [
        [None, "02_two.html"], ["01_one.html", "02_two.html"], ["01_one.html", None]]


def test_the_ledger_is_there_where_there_are_claims(root, tmp_path):
    cells = read(course_root() / "notebooks" / "04_transformer.ipynb").cells
    record = next(output.data[MIME] for cell in cells for output in cell.get("outputs", ()) if MIME in
                  output.get("data", {}))
    (tmp_path / "notebooks").mkdir()
    notebook = lesson(tmp_path / "notebooks")
    claim = code("-", "claim()")
    claim.outputs = [new_output("display_data", data={MIME: record, "text/plain": "claim"})]
    notebook.cells.append(claim)
    write(notebook, tmp_path / "notebooks" / "04_with.ipynb")
    assert cli.main(["site", str(tmp_path / "site")], root=tmp_path) == cli.EXIT_OK
    assert record["id"] in (tmp_path / "site" / "ledger.html").read_text(encoding="utf-8")
    assert broken(tmp_path / "site") == []


def test_a_site_refuses_a_file_as_folder(root, tmp_path, capsys):
    (tmp_path / "site").touch()
    assert cli.main(["site", str(tmp_path / "site")], root=root) == cli.EXIT_FAILED
    assert "is a file; expected a folder" in capsys.readouterr().err


def test_every_notebook_says_what_the_first_page_needs():
    entries = [Entry(path) for path in numbered(course_root())]
    lessons = [entry for entry in entries if entry.slides]
    assert [entry.path.name for entry in lessons if not (entry.question and entry.drawing())] == []
    assert [entry.path.name for entry in entries if entry.number != "00" and entry.minutes is None] == []
    assert all(10 <= entry.minutes <= 90 for entry in entries if entry.minutes)


# --- in the browser ---


def test_the_first_page_translates(browser_page, site):
    page = visit(browser_page, site)
    page.emulate_media(reduced_motion="reduce")
    page.get_by_role("combobox", name="English sentence").fill("the man slept")
    page.keyboard.press("Enter")
    assert page.locator(".tr-word").all_inner_texts() == ["l'", "homme", "a", "dormi", ".", "<eos>"]
    assert page.locator(".card h3").all_inner_texts() == ["01 · Lesson 01_one", "02 · Lesson 02_two"]
    assert page.locator(".card-further a").all_inner_texts() == ["Lesson further/01_more"]
    assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
    assert_quiet(page)


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 800)])
def test_the_first_screen_shows_attention(open_page, site, width, height):
    page = visit(open_page(viewport={"width": width, "height": height}, has_touch=width == 390), site)
    assert page.locator(".av-cells").bounding_box()["y"] < height - 100
    if width == 390:
        small = page.locator(".translator :is(button, select, input)").evaluate_all(
            "all => all.filter(e => e.checkVisibility() && e.offsetHeight < 40).map(e => e.outerHTML)")
        assert small == []
        assert not page.locator(".av-hint").is_visible()


def test_a_heading_is_found_and_reached(browser_page, site):
    page = visit(browser_page, site, "02_two.html")
    field = page.get_by_role("searchbox", name="Search the course")
    field.fill("RESUME elan")
    page.wait_for_selector(".site-search li")
    found = page.locator(".site-search li")
    assert found.count() == 3
    assert "Élan and résumé" in found.first.inner_text()
    assert page.locator(".site-search [role=status]").inner_text() == "3 sections"
    assert serious(page, ".site-header") == []
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**/01_more.html#**")
    page.wait_for_function("scrollY > 200")
    field.fill("no such words")
    page.wait_for_selector(".site-search [role=status]")
    assert "neither in its heading nor in its text" in page.locator(".site-search [role=status]").inner_text()
    field.fill("tensor-soft")  # beginnings of words in the code
    page.wait_for_function("document.querySelector('.site-search li')")
    assert page.locator(".site-search li").first.inner_text().endswith("in its text")
    field.press("Escape")
    assert not page.locator(".site-search [role=status]").is_visible()
    field.fill("Lesson 02_two")
    field.press("Enter")
    page.wait_for_url("**/02_two.html")
    assert_quiet(page)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_contents_stay_in_view_and_say_where_one_is(open_page, site, width):
    page = visit(open_page(viewport={"width": width, "height": 800}), site, "01_one.html")
    page.wait_for_function("MathJax.startup.promise")
    page.evaluate("document.querySelectorAll('.jp-Cell h2')[2].scrollIntoView()")
    page.wait_for_function("document.querySelector('.contents [aria-current]')")
    contents = page.locator(".contents")
    assert 0 <= contents.bounding_box()["y"] <= 60
    here = page.locator(".contents [aria-current]").text_content()
    if width == 390:
        assert page.locator(".contents summary").inner_text() == f"Contents · {here}"
        page.locator(".contents summary").click()
        page.locator(".contents a").last.click()
        assert not page.locator(".contents ol").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert_quiet(page)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["index.html", "01_one.html"])
def test_a_page_can_be_read_in_light_and_in_dark(open_page, site, name, dark):
    screen = {"color_scheme": "dark", "viewport": {"width": 390, "height": 800}} if dark else {}
    page = visit(open_page(**screen), site, name)
    page.evaluate("window.MathJax?.startup.promise")
    assert serious(page, "body") == []
    low = [c for c in contrasts(page, "body") if 1 < c[0] < SMALLEST_CONTRAST]
    assert low == []
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (int(re.findall(r"\d+", paper)[0]) < 60) == dark
    page.emulate_media(media="print")
    assert not page.locator(".site-header").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", "paper is white"


def test_a_page_leaves_out_hidden_code_bars_and_what_is_not_written(tmp_path):
    notebook = lesson(tmp_path)
    bar = f"training: 100%|{30 * '█'}| 20/20 [00:01<00:00, loss 0.1]\n"

    def card(words):
        return {"text/html": f"<div>{words}</div>", "text/plain": f"… {words}"}

    notebook.cells = [code("-", "how_it_is_drawn()", "hide-input", stdout="what it shows\n"),
                      code("-", "fit()", stdout=f"{bar}loss 0.1 after 20\n"), code("-", "fit()", stdout=bar),
                      code("-", "stub()", "exercise", data=card("stub: not written yet.")),
                      code("-", "compare()", data=card("You predicted nothing. Measured: 5."))]
    words = Links(html_page(notebook, tmp_path)).words
    assert "what it shows" in words
    assert "how_it_is_drawn" not in words
    assert "loss 0.1 after 20" in words
    assert "training" not in words
    assert "stub()" in words
    assert "not written" not in words
    assert "Measured: 5." in words
    assert "predicted nothing" not in words


def test_a_page_is_for_a_reader_until_a_switch_shows_the_notes(open_page, tmp_path):
    notebook = lesson(tmp_path)
    table = "| part | section | minutes |\n|---|---|---|\n| 1 | One | 5 |\n"
    notebook.cells[2:2] = [text("skip", f"You can\n\n{table}\nand then."), code("skip", "import math\nfrom x import y")]
    wide = "\\qquad ".join(f"x_{{{k}}} = \\frac{{a}}{{b}}" for k in range(12))
    notebook.cells.append(text("-", f"### Wide\n\n$${wide}$$"))
    (tmp_path / "page.html").write_text(html_page(notebook, tmp_path), encoding="utf-8")
    page = visit(open_page(viewport={"width": 390, "height": 800}), tmp_path, "page.html")
    page.evaluate("MathJax.startup.promise")
    assert page.locator(".setup summary").inner_text() == "Setup"
    assert not page.get_by_text("import math").is_visible()
    formula = page.locator("mjx-container[display]").last
    assert formula.evaluate("e => e.scrollWidth > e.clientWidth && e.tabIndex === 0"), "a formula keeps its size"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    about = page.get_by_text("The point: one vector is too small")
    assert not about.is_visible()
    assert not page.get_by_text("minutes", exact=True).is_visible()
    assert page.get_by_text("and then.").is_visible()
    page.locator(".contents summary").click()
    page.get_by_label("teacher's notes").check()
    assert about.is_visible()
    assert page.get_by_text("minutes", exact=True).is_visible()
    page.locator("h3 .permalink").last.click()
    assert page.url.endswith(f"#cell-id={notebook.cells[-1].id}")
    assert_quiet(page)


def test_code_is_copied(open_page, site):
    context = {"permissions": ["clipboard-read", "clipboard-write"]}
    page = visit(open_page(**context), site, "01_one.html")
    cell = page.locator(".can-copy").first
    cell.hover()
    cell.get_by_role("button", name="copy").click()
    cell.get_by_role("button", name="copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == cell.locator(".highlight").inner_text().strip()


def test_on_paper_no_line_is_cut_and_what_is_long_may_break(open_page, tmp_path):
    notebook = lesson(tmp_path)
    told = f"training: 100%|{30 * '█'}| 20/20 [00:01<00:00, loss 0.1]\n{60 * 'number 7, '}\n"
    notebook.cells.append(code("-", "fit()", stdout=told))
    (tmp_path / "page.html").write_text(html_page(notebook, tmp_path), encoding="utf-8")
    page = visit(open_page(viewport={"width": 390, "height": 800}), tmp_path, "page.html")
    page.evaluate("MathJax.startup.promise")
    output = page.locator(".jp-RenderedText").last
    assert output.inner_text().startswith("number 7"), "a bar is for a screen that moves"
    page.wait_for_function("[...document.querySelectorAll('.jp-RenderedText')].at(-1).matches('.goes-on')")
    output.evaluate("e => { e.scrollLeft = e.scrollWidth; }")
    page.wait_for_function("![...document.querySelectorAll('.jp-RenderedText')].at(-1).matches('.goes-on')")
    page.set_viewport_size({"width": 690, "height": 900})  # a sheet between its margins
    page.emulate_media(media="print")
    assert output.evaluate("e => e.scrollWidth <= e.clientWidth")
    cell = page.locator(".jp-CodeCell").last
    assert cell.evaluate("e => getComputedStyle(e).breakInside") == "auto"
    assert cell.locator(".highlight").evaluate("e => getComputedStyle(e).breakInside") == "avoid"


def test_it_opens_from_any_path_of_a_server(browser_page, site):
    handler = partial(SimpleHTTPRequestHandler, directory=site.parent)
    handler.log_message = lambda *words: None
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        browser_page.goto(f"http://127.0.0.1:{server.server_port}/{site.name}/")
        browser_page.get_by_role("link", name="01 · Lesson 01_one").click()
        browser_page.wait_for_url("**/01_one.html")
        browser_page.wait_for_function("window.MathJax?.startup?.promise")
        assert browser_page.locator(".site-header").is_visible()
        server.shutdown()
    assert browser_page.outside_requests == []


# --- the whole course ---


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder, start = tmp_path_factory.mktemp("whole"), time.process_time()
    assert cli.main(["site", str(folder)]) == cli.EXIT_OK
    print(f"{time.process_time() - start:.0f} s of processor time")
    return folder


@pytest.mark.slow
def test_the_whole_site_has_no_broken_link(whole):
    assert broken(whole) == []
    headings = json.loads((whole / "assets" / "headings.js").read_text(encoding="utf-8")[len("const HEADINGS = "):-2])
    assert [file for file, *_ in headings] == [f"{path.stem}.html" for path in numbered(course_root())]
    assert sum(path.stat().st_size for path in whole.rglob("*") if path.is_file()) < 50e6


@pytest.mark.slow
def test_what_a_visitor_looks_for_is_found(browser_page, whole):
    page = visit(browser_page, whole)
    field = page.get_by_role("searchbox", name="Search the course")
    for words in ("positional", "multi-head", "KV cache", "dropout", "rotary", "Adam", "fine-tuning"):
        field.fill(words)
        page.wait_for_function("document.querySelector('.site-search li')")
        field.fill("qqqq")
        page.wait_for_function("!document.querySelector('.site-search li')")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index", "ledger", *(path.stem for path in numbered(course_root()))])
def test_every_page_of_the_site_is_reachable_quiet_and_fits_a_phone(open_page, whole, name):
    page = visit(open_page(color_scheme="light"), whole, f"{name}.html")
    page.evaluate("window.MathJax?.startup.promise")
    for width, scheme in ((1280, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        # the page answers a new size in the next frame, which a busy machine draws late
        page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
    assert_quiet(page)
    if not name.startswith("0") or (course_root() / "notebooks" / f"{name}.ipynb").exists():
        # a further notebook's page has the same parts as a lesson's
        page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
        assert [found for found in contrasts(page, "body") if 1 < found[0] < SMALLEST_CONTRAST] == []
        # axe takes seconds for contrasts, and for the thousands of signs of code and formulas, which are alike in the
        # small pages above
        page.evaluate("""for (const part of document.querySelectorAll(".highlight pre, mjx-container > :first-child"))
                           part.textContent = part.textContent""")
        assert serious(page, "body", without=["color-contrast"]) == []
