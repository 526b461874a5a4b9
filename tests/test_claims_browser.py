"""Cards and the ledger as a reader sees them."""

import re

import pytest
from browser import OUTSIDE, open_deck
from synthetic import code, lesson, text

from course_utils.claims import collect, seeds, table
from course_utils.claims.card import Claim
from course_utils.claims.condition import Terms
from course_utils.claims.seeds import Trial
from course_utils.publish.pages import page
from course_utils.publish.slides import deck

PUBLISHED = {"BLEU, all sentences, without attention": "17.8", "with": "26.8",
             "by eye": "alignments agree with intuition, inversions included"}
SHOWN = {"4-9 words": "85.1", "30-40 words, the best of three runs, both questions right": "0.96"}


@pytest.fixture(autouse=True)
def record(monkeypatch, tmp_path):
    monkeypatch.setattr(seeds, "RECORD", tmp_path / "claims_at_seeds.json")


def make(id="02.bleu-by-length", says="On a short budget BLEU stays with attention", condition='"4-9 words" >= 80',
         **given):
    return Claim(id, says, "Bahdanau et al. 2015, fig. 2", PUBLISHED, SHOWN, {"4-9 words": 85.1}, (),
                 Terms(condition, **given))


def box(page, words):
    return page.get_by_text(words, exact=True).first.bounding_box()


@pytest.mark.parametrize(("width", "size", "dark"), [(1280, 24, False), (800, 14, True), (390, 16, True)])
def test_a_card_has_no_narrow_column_and_numbers_stand_right(browser_page, width, size, dark):
    ink, paper = ("#EEEEEE", "#111111") if dark else ("#222222", "#FFFFFF")
    browser_page.set_viewport_size({"width": width, "height": 720})
    card = make(rival="no attention: the same steps", expected=False)           # the longest of all verdicts
    browser_page.set_content("<style>dt { font: italic 9px serif; float: left } dd { margin-left: 40px }</style>"
                             f'<body style="font: {size}px/1.5 sans-serif; color: {ink}; background: {paper}">'
                             + card.html())
    paper, here = box(browser_page, "the paper"), box(browser_page, "here")
    assert (here["y"] > paper["y"]) == (width == 390), "two halves, or one below the other"
    assert min(paper["width"], here["width"]) >= 15 * size
    ends = []
    for label, value in [("4-9 words", "85.1"), (list(SHOWN)[1], "0.96"), ("with", "26.8")]:
        label, value = box(browser_page, label), box(browser_page, value)
        assert abs(label["y"] - value["y"]) < 1, "a number stands beside its label"
        assert label["x"] + label["width"] <= value["x"]
        ends.append(value["x"] + value["width"])
    assert abs(ends[0] - ends[1]) < 1
    words = box(browser_page, PUBLISHED["by eye"])
    assert words["y"] > box(browser_page, "by eye")["y"]
    assert words["width"] > 0.75 * paper["width"], "long words have the whole width"
    lines = browser_page.locator("[style*='nowrap']").evaluate_all("all => all.map(e => e.getClientRects().length)")
    assert set(lines) == {1}, "the id and the verdict are never broken"
    assert box(browser_page, "rival: no attention: the same steps")["y"] > words["y"]
    colours = browser_page.locator("dt, dd, b, i").evaluate_all("all => all.map(e => getComputedStyle(e).color)")
    assert set(colours) == {"rgb(238, 238, 238)" if dark else "rgb(34, 34, 34)"}
    assert browser_page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.fixture
def ledger():
    """44 claims in four lessons; 02.claim-3 fails at a seed, 01.claim-0 does not hold at this scale."""
    seeds.add("02.claim-3", '"4-9 words" >= 80', "", {seed: Trial(seed == 0, {}, "a", "b", "c") for seed in (0, 3)})
    cards = [make(f"0{lesson}.claim-{i}", kind="identity" if i == 1 else "experiment",
                  condition='"4-9 words" >= 90' if (lesson, i) == (1, 0) else '"4-9 words" >= 80',
                  expected=(lesson, i) != (1, 0)) for lesson in range(1, 5) for i in range(11)]
    return table(cards)._repr_html_()


@pytest.fixture(scope="module")
def course():
    """Of the course's own claims: lessons, how many hold, fail at a seed and do not hold; and their ledger.

    Made before `record` takes the course's record of seeds away.
    """
    cards = collect()
    held = [card for card in cards if card.holds]
    failed = sum(bool(card.failed_at) for card in held)
    counts = [len(held) - failed, failed, len(cards) - len(held)]
    return sorted({card.id[:2] for card in cards}), counts, table(cards)._repr_html_()


def rows(page):
    return page.locator("tbody tr:visible").count()


def lessons(page):
    return page.locator(".claims-lesson:visible").count()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_ledger_of_the_course_fits_two_screens_a_line_per_lesson_with_its_counts(show, browser_page, course, width):
    browser_page.set_viewport_size({"width": width, "height": 720})
    names, counts, ledger = course
    page = show(ledger)
    assert page.evaluate("document.documentElement.scrollHeight") <= 2 * 720
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert rows(page) == 0
    lines = page.locator(".claims-lesson > summary").all_inner_texts()
    assert [line.split()[1] for line in lines] == names
    found = [sum(map(int, re.findall(rf"{outcome}: (\d+)", "\n".join(lines))))
             for outcome in ("holds", "not at every seed", "does not hold")]
    assert found == counts
    if width == 1280:
        heights = page.locator(".claims-lesson > summary").evaluate_all("all => all.map((e) => e.clientHeight)")
        assert max(heights) < 40, "one line"


@pytest.mark.parametrize("width", [1280, 390])
def test_the_ledger_is_folded_filtered_and_unfolded_by_keys(show, browser_page, ledger, width):
    browser_page.set_viewport_size({"width": width, "height": 720})
    page = show(ledger)
    assert (lessons(page), rows(page)) == (4, 0)
    page.keyboard.press("Tab")
    page.keyboard.type("02")                                                # the first list is of lessons
    assert (lessons(page), rows(page)) == (1, 11)
    assert page.get_by_text("11 of 44 claims").count() == 1
    page.get_by_label("verdict").select_option("not at every seed")
    assert rows(page) == 1
    page.get_by_label("kind").focus()
    for key in ("Tab", "Tab", "Enter"):                                     # the lesson, the row that is left
        page.keyboard.press(key)
    assert page.get_by_text("held at 1 of 2 seeds (not at 3)").is_visible()
    assert page.locator("td details[open]").get_by_text("holds when 4-9 words ≥ 80").is_visible()
    page.get_by_label("lesson").select_option("all")
    page.get_by_label("verdict").select_option("does not hold at this scale")
    assert page.locator("tbody tr:visible summary").all_inner_texts() == [
        "01.claim-0 On a short budget BLEU stays with attention"]
    page.get_by_label("verdict").select_option("all")
    assert (lessons(page), rows(page)) == (4, 0), "folded again"
    page.get_by_label("kind").select_option("identity")
    assert (lessons(page), rows(page)) == (4, 4)


def test_a_lesson_unfolds_by_keys(show, ledger):
    page = show(ledger)
    page.get_by_label("kind").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert rows(page) == 11


def test_two_ledgers_on_a_page_do_not_mix(show, ledger):
    page = show(ledger, ledger)
    page.get_by_label("kind").first.select_option("identity")
    assert page.get_by_label("kind").count() == 2
    assert rows(page) == 4
    assert page.get_by_text("44 of 44 claims").count() == 1


def test_without_scripts_lessons_and_rows_unfold(open_page, ledger):
    page = open_page(java_script_enabled=False)
    page.set_content(ledger)
    assert (lessons(page), rows(page)) == (4, 0)
    assert page.locator("select").count() == 0
    page.locator(".claims-lesson > summary").first.click()
    assert rows(page) == 11
    page.locator("td summary").first.click()
    assert page.get_by_text("Bahdanau et al. 2015, fig. 2").first.is_visible()


def test_on_a_slide_the_ledger_fits_and_its_keys_do_not_turn_the_page(browser_page, tmp_path, course):
    notebook = lesson(tmp_path)
    notebook.cells += [text("slide", "## The ledger"), code("-", "claims.table(ledger)", data={"text/html": course[2]}),
                       text("slide", "## Next")]
    open_deck(browser_page, deck(notebook, tmp_path), tmp_path)
    browser_page.evaluate("""() => {
      const at = Reveal.getIndices(document.querySelector(".claims-ledger").closest("section"));
      Reveal.slide(at.h, at.v);
    }""")
    assert browser_page.evaluate(OUTSIDE) == []
    before = browser_page.evaluate("Reveal.getIndices()")
    browser_page.get_by_label("kind").focus()
    for key in ("Tab", "Space"):
        browser_page.keyboard.press(key)
    assert rows(browser_page) > 0
    assert browser_page.evaluate("Reveal.getIndices()") == before
    browser_page.locator(".claims-lesson").evaluate_all("all => all.forEach((lesson) => { lesson.open = true; })")
    box = browser_page.locator(".claims-ledger").bounding_box()
    assert box["y"] + box["height"] < browser_page.locator(".slide-number").bounding_box()["y"], "all open: it scrolls"


def test_in_print_a_page_has_the_counts_of_each_lesson(browser_page, tmp_path, course):
    notebook = lesson(tmp_path)
    notebook.cells.append(code("skip", "claims.table(ledger)", data={"text/html": course[2]}))
    browser_page.emulate_media(media="print")
    browser_page.set_content(page(notebook, tmp_path))
    assert lessons(browser_page) == len(course[0])


def test_nothing_in_cards_and_ledger_bars_a_reader(show, browser_page, ledger):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    show(f'<html lang="en"><title>x</title><main><h1>x</h1>{make().html()}{ledger}</main>')
    found = axe.run(browser_page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
