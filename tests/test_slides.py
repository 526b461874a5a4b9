"""Slides and pages, looked at in a browser that cannot reach the network."""

import base64
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from browser import ON_THE_NUMBER, OUTSIDE, assert_quiet, open_deck, serious
from bs4 import BeautifulSoup
from synthetic import code, lesson, note, plot, text

from course_utils import plotting
from course_utils.course import CourseError, course_root
from course_utils.data.grammar import EXAMPLE
from course_utils.publish import exporting, slides
from course_utils.publish.exporting import packaged
from course_utils.publish.notebooks import read
from course_utils.publish.pages import page
from course_utils.publish.slides import deck
from course_utils.widgets import AttentionView, SoftmaxLab

NOTEBOOKS = sorted((course_root() / "notebooks").glob("*.ipynb"))


# All steps in one go: nobody sees what is drawn while Python looks. A widget draws itself when its slide is shown.
WALK = f"""async () => {{
  const looks = [{OUTSIDE}, {ON_THE_NUMBER}], problems = [];
  for (let steps = 0; steps < 1000; steps++) {{
    if (Reveal.getCurrentSlide().querySelector(".course-widget")) {{
      await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    }}
    const {{ h, v, f = "-" }} = Reveal.getIndices();
    for (const look of looks) {{
      problems.push(...look().map((problem) => `slide ${{h + 1}}.${{v + 1}} fragment ${{f}}: ${{problem}}`));
    }}
    if (Reveal.isLastSlide() && !Reveal.availableFragments().next) return problems;
    Reveal.next();
  }}
  throw new Error("the deck does not come to an end");
}}"""


def walk(browser_page) -> list[str]:
    """Go through every slide and fragment as the space key does; what overflows or hides the slide's number, and where.
    """
    return browser_page.evaluate(WALK)


@pytest.fixture(scope="module")
def lesson_html(tmp_path_factory):
    """The synthetic lesson's deck."""
    folder = tmp_path_factory.mktemp("lesson")
    return deck(lesson(folder), folder)


@pytest.fixture
def lesson_deck(browser_page, lesson_html, tmp_path):
    """The page with the synthetic lesson's deck open."""
    open_deck(browser_page, lesson_html, tmp_path)
    return browser_page


def test_every_slide_of_the_synthetic_lesson_fits(lesson_deck):
    assert walk(lesson_deck) == []
    assert lesson_deck.evaluate("Reveal.getTotalSlides()") == 9
    assert_quiet(lesson_deck)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_slide_of_a_committed_notebook_fits(browser_page, tmp_path, path):
    open_deck(browser_page, deck(read(path), path.parent), tmp_path)
    assert walk(browser_page) == []
    assert_quiet(browser_page)
    assert browser_page.evaluate("document.querySelectorAll('mjx-merror').length") == 0, "a formula has an error"


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (text("slide", "## Tall\n\n" + "\n".join(f"- point {i}" for i in range(30))), "too low"),
        (code("slide", "x = 1\n" * 40), "too low"),
        (code("slide", "print(row)", stdout="0.123 " * 40 + "\n"), "too far right"),
        (text("slide", "<div style='height:300px;overflow:hidden'><p style='height:400px'>cut</p></div>"), "cut off"),
    ],
    ids=["text", "code", "wide output", "hidden"],
)
def test_the_overflow_check_sees_a_slide_that_does_not_fit(browser_page, tmp_path, cell, expected):
    notebook = lesson(tmp_path)
    notebook.cells = [text("slide", "## Before"), cell, text("slide", "## After")]
    open_deck(browser_page, deck(notebook, tmp_path), tmp_path)
    problems = [problem for problem in walk(browser_page) if "slide's number" not in problem]  # it may reach that, too
    assert problems
    assert all(expected in problem for problem in problems)


def test_what_stands_on_the_number_of_a_slide_is_seen(browser_page, tmp_path):
    notebook = lesson(tmp_path)
    notebook.cells = [text("slide", "## Before"), text("slide", "<p style='position:absolute;bottom:0'>LOW</p>")]
    open_deck(browser_page, deck(notebook, tmp_path), tmp_path)
    problems = walk(browser_page)
    assert len(problems) == 1
    assert problems[0].endswith("stands on the slide's number: LOW")


def test_the_overflow_check_waits_for_fragments(browser_page, tmp_path):
    notebook = lesson(tmp_path)
    notebook.cells = [text("slide", "## Short"), code("fragment", "x = 1\n" * 40)]
    open_deck(browser_page, deck(notebook, tmp_path), tmp_path)
    assert walk(browser_page) != []


def test_what_belongs_on_slides_is_there_and_nothing_else(lesson_deck):
    html = lesson_deck.locator(".slides")
    assert "UNSEEN" not in html.evaluate("e => e.textContent")
    assert lesson_deck.locator(".jp-InputPrompt, .jp-OutputPrompt").count() == 0
    assert lesson_deck.locator("aside.notes:not(.carried)").count() == 3
    assert lesson_deck.locator(".slides mjx-container").count() == 5
    assert lesson_deck.locator(".slides mjx-merror").count() == 0
    assert lesson_deck.title() == "Does the decoder have to remember everything?"


def test_a_slide_without_notes_shows_those_before_it_in_its_section(browser_page, tmp_path):
    notebook = lesson(tmp_path)
    notebook.cells = [text("slide", "## One"), note("First."), text("subslide", "### Two"), text("fragment", "more"),
                      text("subslide", "### Three"), note("Third."), text("slide", "## Next")]
    open_deck(browser_page, deck(notebook, tmp_path), tmp_path)
    shown = browser_page.evaluate("""[...document.querySelectorAll(".slides section section")].map((slide) =>
      [...slide.querySelectorAll("aside.notes")].map((e) => e.textContent.split(/\\s+/).join(" ").trim()))""")
    assert shown == [["Speaker notes First."], ["From: One Speaker notes First."], ["Speaker notes Third."], []]
    assert browser_page.locator("aside.notes details:not([open])").count() == 0, "a folded note in the speaker view"


def test_a_printed_deck_has_one_page_a_slide_with_its_margins(browser_page, tmp_path):
    notebook = lesson(tmp_path)
    notebook.cells.append(text("slide", "## Numbers\n\n1. one\n2. two"))
    open_deck(browser_page, deck(notebook, tmp_path), tmp_path)
    n_slides = browser_page.evaluate("Reveal.getTotalSlides()")
    browser_page.goto((tmp_path / "deck.html").as_uri() + "?print-pdf")
    browser_page.wait_for_function("window.deckReady")
    browser_page.locator(".pdf-page").nth(n_slides - 1).wait_for(state="attached")
    printed = browser_page.pdf(prefer_css_page_size=True, print_background=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == n_slides
    lefts = browser_page.evaluate("""[...document.querySelectorAll(".pdf-page :is(h2, ol)")]
      .map((e) => e.getBoundingClientRect().left - e.closest(".pdf-page").getBoundingClientRect().left)""")
    assert min(lefts) >= 60


def test_the_foot_is_free_and_text_alone_grows_as_long_as_no_line_of_code_breaks(browser_page, tmp_path):
    notebook = lesson(tmp_path)
    long = "x = " + "1" * 76
    notebook.cells = [text("slide", "## Full\n\n" + "\n".join(f"- point {i}" for i in range(13))),
                      text("slide", "## Short\n\nOne line."),
                      text("slide", "## Code\n\nWords."), code("-", "x = 1\ny = 2"),
                      text("slide", "## Long code\n\nMore words."), code("-", long)]
    open_deck(browser_page, deck(notebook, tmp_path), tmp_path)
    number = browser_page.locator(".slide-number").bounding_box()
    last = browser_page.locator("li", has_text="point 12").bounding_box()
    assert last["y"] + last["height"] <= number["y"]

    def sizes(selector):
        read = "all => all.map(e => parseInt(getComputedStyle(e).fontSize))"
        return browser_page.locator(selector).evaluate_all(read)

    assert sizes("li")[0] <= 27
    assert sizes("p") == [33, 33, 30]
    assert sizes("pre") == [25, 22]
    assert browser_page.locator("pre").last.evaluate("e => e.clientHeight") < 2 * 22 * 1.42


def test_code_is_readable_from_the_back_row(lesson_deck):
    sizes = lesson_deck.evaluate(
        "[...document.querySelectorAll('.slides pre')].map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(sizes) >= 18
    assert max(sizes) <= 25


def test_a_cell_tagged_skip_is_on_the_page_and_on_no_slide(tmp_path):
    notebook = lesson(tmp_path)
    notebook.cells.append(text("subslide", "FOR THE READER", "skip"))
    assert "FOR THE READER" not in deck(notebook, tmp_path)
    assert "FOR THE READER" in page(notebook, tmp_path)


def test_what_compares_a_prediction_that_nobody_has_made_is_on_no_slide(tmp_path):
    notebook = lesson(tmp_path)
    notebook.cells += [code("-", "bet.compare(0.5)", "hide-input", stdout="COMPARED"),
                       code("-", "print()", stdout="KEPT")]
    on_slides = deck(notebook, tmp_path)
    assert "KEPT" in on_slides
    assert "COMPARED" not in on_slides


def test_a_solution_is_on_a_slide_if_its_slide_type_says_so(tmp_path):
    notebook = lesson(tmp_path)
    notebook.cells += [code("-", "# Solution SHOWN", "solution"), code("skip", "# Solution HIDDEN", "solution")]
    on_slides = deck(notebook, tmp_path)
    assert "Solution SHOWN" in on_slides
    assert "Solution HIDDEN" not in on_slides


def test_what_a_stub_says_is_on_the_page_and_not_on_a_slide(tmp_path):
    notebook = lesson(tmp_path)
    card = {"text/html": "<div>STUB</div>", "text/plain": "STUB"}
    notebook.cells += [code("subslide", "def stub(): ...", "exercise", data=card), code("-", "2", stdout="2\n"),
                       text("-", "Words of an exercise.", "exercise")]
    on_slides, on_page = deck(notebook, tmp_path), page(notebook, tmp_path)
    assert "STUB" not in on_slides
    assert "STUB" in on_page
    assert "<pre>2\n</pre>" in on_slides
    assert "Words of an exercise." in on_slides
    assert on_slides.count('<span class="nf">stub</span>') == 2


def test_tokens_are_neither_markup_nor_formulas(lesson_deck):
    assert lesson_deck.locator("pre b").count() == 0
    assert lesson_deck.locator(".attention-view").inner_text() == "weights of $x$"
    assert lesson_deck.locator(".slides pre mjx-container").count() == 0


def test_widgets_show_their_html_and_hidden_code_stays_hidden(lesson_deck):
    lesson_deck.evaluate("document.querySelector('.attention-view').closest('section').id = 'widget'")
    section = lesson_deck.locator("#widget")
    assert section.locator(".attention-view").count() == 1
    assert section.locator(".highlight").count() == 0


@pytest.mark.parametrize("make", [deck, page])
def test_a_shown_figure_keeps_its_text_alternative(browser_page, tmp_path, make):
    figure, _ = plt.subplots(figsize=(4, 2))
    notebook = lesson(tmp_path)
    notebook.cells[:0] = [code("slide", "show(figure, alt)", data=plotting._picture(figure, 'BLEU of <unk> & "the"'))]
    (tmp_path / "made.html").write_text(make(notebook, tmp_path), encoding="utf-8")
    browser_page.goto((tmp_path / "made.html").as_uri())
    assert browser_page.get_by_alt_text('BLEU of <unk> & "the"', exact=True).evaluate("e => e.naturalWidth") >= 400
    assert browser_page.get_by_text("BLEU of <unk>").count() == 0, "said twice"


def test_a_full_slide_shrinks_its_picture_and_an_empty_one_lets_it_grow(lesson_deck):
    alone, full = lesson_deck.evaluate(
        "[...document.querySelectorAll('.jp-OutputArea-output img')].map(e => [e.naturalHeight, +e.style.zoom])"
    )
    assert alone[0] == 440
    assert 1 < alone[1] <= 1.5
    assert full[1] < 1
    assert full[0] * full[1] >= 219


def test_keys_in_the_attention_view_do_not_turn_the_page(lesson_deck):
    lesson_deck.evaluate(
        "(() => { const s = document.querySelector('.attention-view').closest('section');"
        "const i = Reveal.getIndices(s); Reveal.slide(i.h, i.v); })()"
    )
    before = lesson_deck.evaluate("Reveal.getIndices()")
    lesson_deck.locator(".attention-view").focus()
    for key in ("ArrowDown", "ArrowRight", "Space"):
        lesson_deck.keyboard.press(key)
    assert lesson_deck.evaluate("Reveal.getIndices()") == before
    lesson_deck.evaluate("document.activeElement.blur()")
    lesson_deck.keyboard.press("Space")
    assert lesson_deck.evaluate("Reveal.getIndices()") != before


def test_tab_stays_in_the_slide_that_is_shown(browser_page, tmp_path):
    lab = SoftmaxLab([1.0, 2.0]).to_html()
    notebook = lesson(tmp_path)
    notebook.cells = [text("slide", "## One"), code("-", "w", data={"text/html": lab}), text("slide", "## Two"),
                      text("slide", "## Three"), code("-", "w", data={"text/html": lab})]
    open_deck(browser_page, deck(notebook, tmp_path), tmp_path)
    for number, stops in ((0, 5), (1, 0), (2, 5), (0, 5)):
        browser_page.evaluate(f"Reveal.slide({number}); document.activeElement.blur()")
        reached = set()
        for _ in range(8):
            browser_page.keyboard.press("Tab")
            reached.add(browser_page.evaluate("""() => {
              const [node, slide] = [document.activeElement, Reveal.getCurrentSlide()];
              const place = [...document.querySelectorAll("input")].indexOf(node);
              if (!node.closest(".slides")) return "outside";
              return slide.contains(node) ? `${node.tagName} ${place}` : "hidden";
            }"""))
        assert "hidden" not in reached
        assert sum(stop.startswith("INPUT") for stop in reached) == stops
    browser_page.evaluate("Reveal.toggleOverview(true)")
    browser_page.locator("h2", has_text="Two").click()
    assert browser_page.evaluate("[Reveal.isOverview(), Reveal.getIndices().h]") == [False, 1]


def test_the_real_attention_view_is_large_and_answers_a_hover(browser_page, tmp_path):
    from playwright.sync_api import expect

    view = AttentionView(np.eye(4), list("abcd"), list("efgh"))
    notebook = lesson(tmp_path)
    notebook.cells[:0] = [code("slide", "view", data={"text/html": view.to_html(), "text/plain": "view"})]
    open_deck(browser_page, deck(notebook, tmp_path), tmp_path)
    assert browser_page.evaluate("+document.querySelector('.attention-view').style.zoom") > 1.2
    corner = browser_page.locator(".attention-view canvas").first.bounding_box()
    size = min(corner["width"], corner["height"]) / 4
    browser_page.mouse.move(corner["x"] + 2.4 * size, corner["y"] + 1.4 * size)
    browser_page.mouse.move(corner["x"] + 2.5 * size, corner["y"] + 1.5 * size)
    readout = browser_page.locator(".attention-view .av-readout")
    expect(readout).to_contain_text("b")
    expect(readout).to_contain_text("g")
    assert browser_page.evaluate(OUTSIDE) == []
    assert_quiet(browser_page)


def test_the_words_of_a_map_can_be_read_from_the_back_row(browser_page, tmp_path):
    view = AttentionView(np.eye(14), EXAMPLE.target, [*EXAMPLE.source, "<eos>"], EXAMPLE.links)
    notebook = lesson(tmp_path)
    notebook.cells = [text("slide", "### A map, its true links"),
                      code("-", "view", "hide-input", data={"text/html": view.to_html()})]
    open_deck(browser_page, deck(notebook, tmp_path), tmp_path)
    zoom, size = browser_page.evaluate("""[+document.querySelector(".attention-view").style.zoom,
      parseFloat(getComputedStyle(document.querySelector(".av-token")).fontSize)]""")
    assert zoom * size >= 24
    assert browser_page.evaluate(OUTSIDE) == []


def test_speaker_view_shows_notes_and_follows(lesson_deck):
    with lesson_deck.context.expect_page() as opened:
        lesson_deck.keyboard.press("s")
    speaker = opened.value
    speaker.locator(".speaker-controls-notes .value", has_text="one vector is too small").wait_for()
    lesson_deck.keyboard.press("ArrowRight")
    # the notes of a slide are there at once, although their cell follows two fragments
    speaker.locator(".speaker-controls-notes .value", has_text="Let them guess first").wait_for()
    current = speaker.frame_locator("#current-slide iframe")
    current.locator("section.present h2", has_text="One attention step").wait_for()
    assert_quiet(lesson_deck)


def test_the_speaker_view_writes_each_formula_once(browser_page, tmp_path):
    notebook = lesson(tmp_path)
    notebook.cells = [text("slide", "## One, with $c_t$"), note("Near $1/T_k$.")]
    open_deck(browser_page, deck(notebook, tmp_path), tmp_path)
    with browser_page.context.expect_page() as opened:
        browser_page.keyboard.press("s")
    notes = opened.value.locator(".speaker-controls-notes .value")
    notes.locator("mjx-container svg").wait_for()
    spoken = notes.locator("mjx-assistive-mml")                        # for screen readers, so it stays there
    assert spoken.count() == 1
    style = spoken.evaluate("e => [getComputedStyle(e).position, getComputedStyle(e).clipPath]")
    assert style == ["absolute", "inset(50%)"]


def test_only_b_makes_a_deck_dark_and_nothing_opens_over_it(lesson_deck):
    paused = "Reveal.isPaused()"
    for key in ("?", "/", ".", ":", ";", "v"):
        lesson_deck.keyboard.press(key)
        assert not lesson_deck.evaluate(paused), key
        assert lesson_deck.locator(".reveal .overlay, .reveal .r-overlay").count() == 0, key
    for dark in (True, False):
        lesson_deck.keyboard.press("b")
        assert lesson_deck.evaluate(paused) is dark


def test_a_slide_shows_no_assert(browser_page, tmp_path):
    notebook = lesson(tmp_path)
    notebook.cells = [text("slide", "## One"), code("-", "shown = 1\nassert shown > 0"),
                      code("-", "%pip list")]
    open_deck(browser_page, deck(notebook, tmp_path), tmp_path)
    assert browser_page.locator(".highlight").all_inner_texts() == ["shown = 1\n", "%pip list\n"]


def test_the_page_has_everything_and_asks_for_nothing(browser_page, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(page(lesson(tmp_path), tmp_path), encoding="utf-8")
    browser_page.goto(file.as_uri())
    browser_page.wait_for_function("window.MathJax?.startup?.promise")
    browser_page.evaluate("MathJax.startup.promise")
    assert browser_page.locator("mjx-container").count() == 5
    assert browser_page.evaluate("[...document.images].every(i => i.naturalWidth > 0)")
    assert browser_page.get_by_alt_text("Plot drawn by: plot_bleu(by_length)").count() == 2
    assert browser_page.get_by_alt_text("Encoder and decoder, joined by one line").count() == 1
    assert browser_page.locator("details.solution:not([open]) .highlight").count() == 1
    assert browser_page.locator(".notes > * details:not([open])").count() == 3
    assert browser_page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "Loading widget" not in browser_page.content()
    assert_quiet(browser_page)


def test_contents_are_the_headings_of_text_and_nothing_that_looks_like_one(tmp_path):
    notebook = lesson(tmp_path)
    notebook.cells = [code("skip", "# a comment\nx = 1"), text("-", "```\n# a fence\n## another\n```"),
                      text("slide", "Title *of* `all`\n===\n\n## A subtitle"),
                      text("slide", "## Why $d_k < d$ & [so](a.html) on"), text("-", "Words\n---\nof a section."),
                      code("-", "view", data={"text/html": "<h2>of a widget</h2>"})]
    html = BeautifulSoup(page(notebook, tmp_path), "html.parser")
    assert html.title.get_text() == "Title of all"
    links = html.select(".contents a")
    assert [link.get_text() for link in links] == ["Why $d_k < d$ & so on", "Words"]
    assert [html.find(id=link["href"][1:]).h2.get_text() for link in links] == [link.get_text() for link in links]


@pytest.mark.parametrize("make", [deck, page])
def test_making_html_leaves_the_notebook_alone(tmp_path, make):
    notebook = lesson(tmp_path)
    before = str(notebook)
    make(notebook, tmp_path)
    assert str(notebook) == before


@pytest.mark.parametrize("make", [deck, page])
def test_folded_text_stays_folded(tmp_path, make):
    notebook = lesson(tmp_path)
    notebook.cells.append(text("subslide", "<details><summary>Because.</summary>\n\nNo, *not* so.\n\n</details>"))
    html = make(notebook, tmp_path)
    assert re.search(r"<summary>Because\.</summary>\s*<p>No, <em>not</em> so", html)


def test_pictures_are_inside_the_file(tmp_path):
    html = deck(lesson(tmp_path), tmp_path)
    assert "drawing.svg" not in html
    assert base64.b64encode((tmp_path.parent / "drawing.svg").read_bytes()).decode()[:60] in html
    assert plot()[:60] in html


def test_a_notebook_without_slides_says_so(tmp_path):
    notebook = lesson(tmp_path)
    for cell in notebook.cells:
        cell.metadata["slideshow"]["slide_type"] = "skip"
    with pytest.raises(CourseError, match="every slide type is 'skip' or 'notes'"):
        deck(notebook, tmp_path)


def test_no_script_inside_the_deck_ends_it_early(tmp_path, monkeypatch):
    for module in (exporting, slides):
        monkeypatch.setattr(module, "packaged", lambda package, ending: f"x = '{ending}</script>';")
    html = deck(lesson(tmp_path), tmp_path)
    scripts = re.findall(r"<script>x = '[^<]*/(.*?)</script>", html)
    assert scripts == [rf"{name}<\/script>';" for name in ("tex-svg-full.js", "reveal.js", "notes.js")]


def test_a_missing_package_says_what_to_type():
    with pytest.raises(CourseError, match=r"no-such-package is missing. Type: python -m pip install"):
        packaged("no-such-package", "reveal.js")


def test_on_a_phone_a_page_keeps_code_lines_and_the_size_of_pictures_and_its_scrolling_parts_have_focus(
        open_page, tmp_path):
    notebook = lesson(tmp_path)
    notebook.cells.append(code("-", "x = torch.zeros(1, 2, 3)  " + "# a long comment " * 6, stdout="0.123 " * 40))
    (tmp_path / "page.html").write_text(page(notebook, tmp_path), encoding="utf-8")
    phone = open_page(viewport={"width": 390, "height": 800})
    phone.goto((tmp_path / "page.html").as_uri())
    phone.wait_for_function("document.querySelectorAll('[tabindex]').length > 2")
    assert phone.evaluate("document.documentElement.scrollWidth") == 390
    assert phone.locator("img").first.evaluate("e => e.clientWidth") == 700
    last = phone.locator(".highlight pre").last
    assert last.evaluate("e => e.clientHeight / parseFloat(getComputedStyle(e).lineHeight)") < 1.5, "a line was broken"
    assert [rule for rule, _ in serious(phone, "body")] == []
    assert_quiet(phone)
