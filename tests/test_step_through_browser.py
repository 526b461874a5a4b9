"""StepThrough in a real browser: exported pages, a deck, JupyterLab and Notebook, all without a network."""

import re

import numpy as np
import pytest
from browser import (
    DARK,
    HEARD,
    OUTSIDE,
    SMALLEST_CONTRAST,
    STRANGE,
    assert_prints,
    colours,
    contrasts,
    destroyed,
    milliseconds,
    mounted,
    open_live,
    open_slides,
    press,
    run,
    serious,
)
from sample_steps import BLIND, MASK, SOURCE, WEIGHTS, WORDS, K, Q, V, numbers, writing

from course_utils.widgets import StepThrough

SCORES = (Q @ K.T / 6**0.5).double().numpy()
MEAN = WEIGHTS.mean(0).numpy()
STEPS = ["q · k", "mask", "softmax", "weight × value", "sum"]


def number(text):
    return -np.inf if text == "−∞" else float(text.replace("−", "-"))


def column(page, step, kind="number"):
    """What a column of the table says, and whether it can be seen."""
    cells = page.locator(f".st-cell[data-step='{step}'] .st-{kind}")
    seen = cells.evaluate_all("cells => cells.map(cell => getComputedStyle(cell).visibility === 'visible')")
    assert len(set(seen)) == 1
    return [number(text) for text in cells.all_text_contents()], seen[0]


def heights(page, index):
    """The bars of a strip, up positive, as shares of the largest of their kind."""
    d = page.locator(".st-table .is-strip-bars").nth(index).get_attribute("d")
    return [-float(height) / 11 for height in re.findall(r"v([-\d.]+)", d)]


def said(page):
    return page.locator(".st-says").inner_text(), page.locator(".st-detail").inner_text()


def now(page):
    """The step that is marked, and the count beside it."""
    tab = page.locator(".st-step[aria-current=step]")
    return tab.inner_text(), page.locator(".st-count").inner_text()


# --- one computation ---


@pytest.mark.parametrize("query", [0, 3])
def test_the_steps_show_what_python_computes(show, query):
    view = numbers(mask=MASK, query=query, title="One head")
    page = show(view)
    assert page.locator(".is-title").inner_text() == "One head"
    page.locator(".st-stage").focus()
    weights, masked = view.weights[query], np.where(MASK, SCORES[query], -np.inf)
    for step in range(5):
        assert now(page) == (f"{step + 1} {STEPS[step]}", f"query {query + 1} of 4")
        scores, _ = column(page, 0)
        np.testing.assert_allclose(scores, SCORES[query] if step == 0 else masked, atol=0.00501)
        shown, there = column(page, 2)
        assert there == (step >= 2)
        np.testing.assert_allclose(shown, weights, atol=1e-4)
        for cell, first in ((".st-cell[data-step='3']", 3), (".st-foot", 4)):
            visible = page.locator(cell).first.evaluate("e => getComputedStyle(e).visibility === 'visible'")
            assert visible == (step >= first)
        page.keyboard.press("ArrowRight")


def test_vectors_are_drawn_as_bars(show):
    """The query; for each key its vector, its value and its share of the output; the output."""
    view = numbers(query=1)
    page = show(view)
    largest = [float(array.abs().max()) for array in (Q, K, V)]
    np.testing.assert_allclose(heights(page, 0), Q[1] / largest[0], atol=0.002)
    for j in range(5):
        expected = (K[j] / largest[1], V[j] / largest[2], float(view.weights[1, j]) * V[j] / largest[2])
        for k, vector in enumerate(expected):
            np.testing.assert_allclose(heights(page, 1 + 3 * j + k), vector, atol=0.002)
    np.testing.assert_allclose(heights(page, 16), view.weights[1] @ V.double().numpy() / largest[2], atol=0.002)


def test_the_story_explains_the_strongest_key_or_the_one_pointed_at(show):
    view = numbers(mask=MASK)
    page = show(view)
    best = int(view.weights[0].argmax())
    assert said(page)[0] == "The query meets every key: multiply number by number, add up, divide by √6."
    product = f"{SCORES[0, best] * 6**0.5:.4f}, ÷ √6 = {SCORES[0, best]:.4f}".replace("-", "−")
    assert said(page)[1].startswith(f"le · {SOURCE[best]} = {Q[0, 0]:.2f} × {K[best, 0]:.2f} + ".replace("-", "−"))
    assert said(page)[1].endswith(f"+ … = {product}")
    page.locator(".st-cell[data-step='0']").nth(2 * 4).hover()
    assert said(page)[1].startswith("le · <eos> = ")
    stage = page.locator(".st-stage")
    stage.press("ArrowRight")
    hidden = f"{SCORES[0, 4]:.4f}".replace("-", "−")
    assert said(page) == ("The mask: 1 of 5 keys may not be seen; their scores become −∞.",
                          f"<eos> may not be seen: −∞ instead of {hidden}")
    page.mouse.move(1, 1)
    stage.press("ArrowDown")  # another query: its strongest key
    best = int(view.weights[1].argmax())
    assert said(page)[1].startswith(f"{SOURCE[best]} may be seen: its score stays ")
    stage.press("ArrowRight")
    power, total = np.exp(SCORES[1, best]), np.exp(SCORES[1, :4]).sum()
    written = rf"{re.escape(SOURCE[best])}: e\^(\S+) = (\S+), ÷ (\S+) \(the sum over all keys\) = (\S+)"
    assert [number(part) for part in re.fullmatch(written, said(page)[1]).groups()] == pytest.approx(
        [SCORES[1, best], power, total, view.weights[1, best]], rel=0.01)
    stage.press("ArrowRight")
    assert said(page)[1].startswith(f"{view.weights[1, best]:.4f} × value of {SOURCE[best]}")
    stage.press("ArrowRight")
    assert said(page)[0] == "The sum is the output for chat: a mixture of the values."
    assert number(said(page)[1].split(" = ")[-1]) == pytest.approx(view.weights[1] @ V[:, 0].numpy(), abs=1e-4)


def test_one_score_that_is_explained_is_right_to_four_decimals(show):
    page = show(numbers())
    page.locator(".st-stage").focus()
    best = int(numbers().weights[0].argmax())
    for _ in range(best):
        page.keyboard.press(",")
    for j in range(5):
        assert number(said(page)[1].split(" = ")[-1]) == pytest.approx(SCORES[0, j], abs=1e-4)
        page.keyboard.press(".")


def test_a_query_that_sees_nothing(show):
    page = show(numbers(mask=BLIND, query=1, step=2))
    assert said(page)[0] == "No key may be seen: all weights are zero."
    assert column(page, 2)[0] == [0] * 5
    assert page.locator(".st-word.st-key.is-masked").count() == 5
    page.locator(".st-stage").press("End")
    assert heights(page, 16) == [0, 0, 0]


def test_scores_too_large_to_be_written(show):
    page = show(numbers(queries=Q * 1e4, step=2))
    assert all(bad not in said(page)[1] for bad in ("Infinity", "NaN"))
    np.testing.assert_allclose(column(page, 2)[0], numbers(queries=Q * 1e4).weights[0], atol=1e-4)


# --- a sentence being written ---


def drawn_links(page, kind="st-now"):
    """``{(word, source word): width}`` of the links."""
    found = page.locator(f".st-lines .{kind}").evaluate_all(
        "paths => paths.map(p => [...p.dataset.pair.split(' ').map(Number), Number(p.getAttribute('stroke-width'))])")
    return {(int(row), int(column)): width for row, column, width in found}


def test_words_come_one_by_one_with_what_they_look_at(show):
    page = show(writing(probabilities=[0.9, 0.8, 0.0001, 1]))
    page.locator(".st-stage").focus()
    for word in range(4):
        for step in (0, 1):
            assert now(page) == (f"{step + 1} {('look', 'write')[step]}", f"word {word + 1} of 4")
            words = page.locator(".st-target .st-word:visible").all_inner_texts()
            assert words == (WORDS[:word + 1] if step else [*WORDS[:word], "?"])
            seen = {column: weight for column, weight in enumerate(MEAN[word]) if weight >= 0.01}
            drawn = {pair[1]: (width - 0.5) / 9 for pair, width in drawn_links(page).items()}
            assert drawn == pytest.approx(seen, abs=0.001)
            assert list(drawn_links(page, "st-then")) == [(i, MEAN[i].argmax()) for i in range(word)]
            says, detail = said(page)
            best = MEAN[word].argmax()
            assert detail.startswith(f"It look{'ed' if step else 's'} at {SOURCE[best]} {MEAN[word, best]:.4f}")
            if step:
                p = ["0.9000", "0.8000", "0.0001", "1.0000"][word]
                assert says == f"The decoder writes {WORDS[word]}, with the probability {p}."
            else:
                before = f"Written so far: {' '.join(WORDS[:word])}." if word else "Nothing is written yet."
                assert says == f"{before} Which word comes next?"
            page.keyboard.press("ArrowRight")


def test_bars_and_strips_are_the_weights(show):
    page = show(writing(query=2, step=1))
    bars = page.locator(".st-bar-up").evaluate_all("bars => bars.map(bar => bar.getBoundingClientRect().height / 74)")
    np.testing.assert_allclose(bars, MEAN[2], atol=0.01)
    written = [float(text or 0) for text in page.locator(".st-share").all_text_contents()]
    np.testing.assert_allclose(written, np.where(MEAN[2] < 0.005, 0, MEAN[2]), atol=1e-4)
    wide = "(nodes) => nodes.filter((node) => node.offsetWidth > node.closest('.st-column').offsetWidth).length"
    assert page.locator(".st-share").evaluate_all(wide) == 0
    cells = page.locator(".st-head-cell").evaluate_all("cells => cells.map(c => getComputedStyle(c).backgroundColor)")
    shown = np.array([[int(part) for part in re.findall(r"\d+", cell)] for cell in cells]).reshape(5, 2, 3)
    np.testing.assert_allclose(shown, colours(WEIGHTS[:, 2].numpy().T), atol=3)
    assert page.get_by_text("each of the heads").count() == 1
    page = show(writing(weights=WEIGHTS[0]))
    assert page.locator(".st-head-cell").count() == 0
    assert "heads" not in page.locator(".st-legend").inner_text()


def test_a_link_joins_its_two_words(show):
    page = show(writing(query=1, step=1))
    ends = page.locator(".st-lines .st-now").evaluate_all("""(paths) => paths.map((path) => {
      const at = (length) => path.getPointAtLength(length).matrixTransform(path.getScreenCTM());
      return [...path.dataset.pair.split(" ").map(Number), at(0).x, at(path.getTotalLength()).x];
    })""")
    middle = lambda word: word["x"] + word["width"] / 2  # noqa: E731
    for row, column, x, u in ends:
        assert x == pytest.approx(middle(page.locator(".st-target .st-word").nth(int(row)).bounding_box()), abs=2)
        assert u == pytest.approx(middle(page.locator(".st-column").nth(int(column)).bounding_box()), abs=2)


def test_pointing_at_a_source_word_reads_it(show):
    page = show(writing(query=1))
    page.locator(".st-column").nth(3).hover()
    assert said(page)[1] == f"It looks at . {MEAN[1, 3]:.4f}"
    page.locator(".st-stage").press("ArrowDown")
    assert not said(page)[1].startswith("It looks at . ") or MEAN[2].argmax() == 3
    page.locator(".st-target .st-word").nth(0).click()
    assert now(page)[1] == "word 1 of 4"


# --- mouse and keys ---


def test_keys_of_a_computation(show):
    page = show(HEARD, numbers())
    page.locator(".st-stage").focus()
    for key, step, query in [("ArrowRight", 1, 0), ("End", 4, 0), ("ArrowRight", 4, 0), ("ArrowDown", 4, 1),
                             ("ArrowLeft", 3, 1), ("Home", 0, 1), ("ArrowLeft", 0, 1), ("ArrowUp", 0, 0),
                             ("ArrowUp", 0, 0)]:
        page.keyboard.press(key)
        assert now(page) == (f"{step + 1} {STEPS[step]}", f"query {query + 1} of 4"), key
    page.keyboard.press("n")  # means nothing here, and must not turn a slide
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body")
    assert page.evaluate("heard") == []


def test_keys_of_a_sentence(show):
    page = show(HEARD, writing())
    page.locator(".st-stage").focus()
    for key, step, word in [("ArrowLeft", 0, 0), ("ArrowRight", 1, 0), ("ArrowRight", 0, 1), ("ArrowDown", 0, 2),
                            ("End", 1, 3), ("ArrowRight", 1, 3), ("ArrowDown", 1, 3), ("ArrowLeft", 0, 3),
                            ("ArrowLeft", 1, 2), ("ArrowUp", 1, 1), ("Home", 0, 0)]:
        page.keyboard.press(key)
        assert now(page) == (f"{step + 1} {('look', 'write')[step]}", f"word {word + 1} of 4"), key
    assert page.evaluate("heard") == []


def test_keys_explain_what_the_pointer_explains(show):
    page = show(HEARD, numbers())
    stage = page.locator(".st-stage")
    stage.focus()
    start = int(numbers().weights[0].argmax())  # without a choice, the strongest key
    for key, j in [*((",", j) for j in range(start - 1, -1, -1)), (",", 0), *((".", j) for j in (1, 2, 3, 4, 4))]:
        page.keyboard.press(key)
        assert said(page)[1].startswith(f"le · {SOURCE[j]} = ")
        assert page.locator(".st-key.is-current").all_inner_texts() == [SOURCE[j]]
        assert stage.get_attribute("aria-label").endswith(said(page)[1])
    page.keyboard.press("ArrowRight")  # the next step explains the same key
    assert said(page)[1].startswith("<eos> may be seen")
    page.keyboard.press("ArrowDown")
    assert page.locator(".st-key.is-current").all_inner_texts() == [SOURCE[numbers().weights[1].argmax()]]
    assert ", . key" in page.locator(".is-hint").inner_text()

    page = show(HEARD, writing(query=1))
    page.locator(".st-stage").focus()
    start = int(MEAN[1].argmax())
    for key, j in [*((",", j) for j in range(start - 1, -1, -1)), (",", 0), *((".", j) for j in (1, 2, 3, 4, 4))]:
        page.keyboard.press(key)
        assert said(page)[1] == f"It looks at {SOURCE[j]} {MEAN[1, j]:.4f}"
        assert page.locator(".st-column.is-current .st-word").all_inner_texts() == [SOURCE[j]]
    page.keyboard.press("ArrowRight")
    assert said(page)[1] == f"It looked at <eos> {MEAN[1, 4]:.4f}"
    page.keyboard.press("ArrowDown")
    assert page.locator(".st-column.is-current").count() == 0
    assert page.evaluate("heard") == []


def test_a_key_that_is_explained_is_scrolled_to(show):
    words = [f"w{k}" for k in range(40)]
    page = show(StepThrough(*np.random.default_rng(0).normal(size=(3, 40, 8)), words))
    page.locator(".st-stage").focus()
    for _ in range(40):
        page.keyboard.press(".")
    assert said(page)[1].startswith("w0 · w39 = ")
    room, row = (page.locator(path).bounding_box() for path in (".st-stage", ".st-word.st-key.is-current"))
    assert room["y"] <= row["y"] < row["y"] + row["height"] <= room["y"] + room["height"] + 1
    page.locator(".st-cell[data-step='0']").nth(2 * 38).hover()  # the pointer does not scroll
    top = page.locator(".st-stage").evaluate("e => e.scrollTop")
    page.locator(".st-cell[data-step='0']").nth(2 * 37).hover()
    assert page.locator(".st-stage").evaluate("e => e.scrollTop") == top


def test_buttons_step_and_keep_the_focus_at_the_ends(show):
    page = show(numbers())
    back, following = (page.get_by_role("button", name=name) for name in ("a step back", "next step"))
    assert [b.get_attribute("aria-disabled") for b in (back, following)] == ["true", "false"]
    for step in (1, 2, 3, 4):
        following.click()
        assert now(page)[0] == f"{step + 1} {STEPS[step]}"
    assert [b.get_attribute("aria-disabled") for b in (back, following)] == ["false", "true"]
    following.click(force=True)
    assert following.evaluate("e => e === document.activeElement")
    page.get_by_role("button", name="3 softmax").click()
    assert now(page)[0] == "3 softmax"
    page.locator(".st-asking .st-word").nth(2).click()
    assert now(page)[1] == "query 3 of 4"


def test_focus_is_seen_and_every_control_is_reached(show):
    page = show(numbers(), writing())
    reached = []
    for _ in range(13):
        page.keyboard.press("Tab")
        name, outline = page.evaluate("""[document.activeElement.className || document.activeElement.title,
                                          getComputedStyle(document.activeElement).outlineWidth]""")
        assert outline == "3px"
        reached.append(name.split(" ")[0])
    assert reached == ["a", *["st-step"] * 5, "next", "st-stage", "a", *["st-step"] * 2, "next", "st-stage"]


@pytest.mark.parametrize("make", [numbers, writing])
def test_a_screen_reader_hears_title_steps_and_the_story(show, make):
    page = show(make(title="Look"))
    tree = page.locator(".step-through").aria_snapshot()
    for line in ('group "Look"', 'group "Steps"', 'button "next step"', "status:", "application"):
        assert line in tree, tree
    says, detail = said(page)
    assert page.locator(".st-stage").get_attribute("aria-label").endswith(f"{says} {detail}")
    assert "step 1 of" in page.locator(".st-stage").get_attribute("aria-label")


# --- sizes, places, strange words ---


@pytest.mark.parametrize("wide", [1280, 900])
@pytest.mark.parametrize("view", [
    numbers(mask=MASK, title="One head"),
    StepThrough(*np.ones((3, 12, 64)), ["européenne", "a", "était", "économique"] * 3, title="Long"),
    writing(title="Word by word", probabilities=[0.5] * 4),
    StepThrough.decoding(np.full((8, 15, 14), 1 / 14), ["européenne", "a", "était"] * 5, ["agreement", "on"] * 7),
], ids=["numbers", "long", "words", "sentence"])
def test_it_has_one_size_that_fits_a_slide(show, open_page, view, wide):
    page = show(view, page=open_page(viewport={"width": wide, "height": 720}))
    box = page.locator(".step-through").bounding_box()
    assert box["width"] <= min(wide, 1100)
    assert box["height"] <= (530 if wide == 1280 else 560)
    stage = page.locator(".st-stage")
    for key in ("ArrowRight", "ArrowDown", "ArrowRight", "ArrowRight", "End", "ArrowUp"):
        stage.press(key)
        assert page.locator(".step-through").bounding_box() == box, key
    assert stage.evaluate("e => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight")


def test_on_a_narrow_page_it_scrolls(show, open_page):
    page = show(numbers(), writing(), page=open_page(viewport={"width": 420, "height": 900}))
    assert page.evaluate("document.documentElement.scrollWidth") <= 420


def test_hidden_at_first_and_scaled_as_in_a_slide_show(show):
    page = show('<section style="display: none; transform: scale(0.6); transform-origin: 0 0">', numbers(), writing(),
                "</section>")
    page.evaluate("document.querySelector('section').style.display = 'block'")
    page.locator(".st-cell[data-step='0']").nth(8).hover()
    assert page.locator(".st-detail").first.inner_text().startswith("le · <eos>")
    assert page.locator(".st-column").first.bounding_box()["width"] > 20


@pytest.mark.parametrize("make", [numbers, writing])
def test_strange_words_are_text(show, make):
    n, words = len(STRANGE), [*STRANGE, "", " ", "x" * 80]
    ones = np.ones((len(words), 3))
    if make is numbers:
        view = StepThrough(ones[:n], ones, ones, STRANGE, words, title=STRANGE[1], query=n - 1)
    else:
        view = StepThrough.decoding(np.full((n, n + 3), 1 / (n + 3)), STRANGE, words, [0.5] * n, n - 1, 1, STRANGE[1])
    page = show(view)
    assert page.locator(".is-title").text_content() == STRANGE[1]
    assert page.locator(".st-stage .st-word.st-key").all_text_contents() == [*STRANGE, "∅", "␣", "x" * 80]
    queries = page.locator(".st-asking .st-word" if make is numbers else ".st-target .st-word")
    assert queries.all_text_contents() == list(STRANGE)
    assert page.locator(".st-stage .st-word bdi").count() == 2 * n + 3  # each with a writing direction of its own
    stage = page.locator(".st-stage")
    stage.press("Home")
    for word in words:  # each is named by the story as it is
        stage.press("," if word == words[0] else ".")
        assert page.locator(".st-detail .st-key").text_content() == {"": "∅", " ": "␣"}.get(word, word)
    stage.press("End")
    page.emulate_media(media="print")
    assert page.locator(".step-through :is(img, script)").count() == 0
    assert page.script_errors == []


@pytest.mark.parametrize("make", [numbers, writing])
def test_without_scripts_there_is_a_picture(show, open_page, make):
    page = show(make(), page=open_page(java_script_enabled=False))
    assert page.locator("img").bounding_box()["width"] > 150
    assert "chat" in page.locator("img").get_attribute("alt") or "le" in page.locator("img").get_attribute("alt")


def test_several_on_a_page_are_strangers(show):
    page = show(numbers(), numbers(), writing())
    page.locator(".st-stage").nth(1).press("End")
    assert page.locator("[aria-current]").all_inner_texts() == ["1 q · k", "5 sum", "1 look"]
    assert page.evaluate("[typeof StepThrough, typeof CourseWidget]") == ["undefined"] * 2


# --- for everyone ---


@pytest.mark.parametrize("make", [lambda: numbers(mask=MASK, title="Look"), lambda: writing(title="Look")],
                         ids=["numbers", "words"])
@pytest.mark.parametrize("end", [False, True])
def test_axe_and_contrast_on_a_dark_page(show, make, end):
    page = show("<title>steps</title>", DARK, "<main><h1>steps</h1>", make(), "</main>")
    page.emulate_media(color_scheme="dark")
    if end:
        page.locator(".st-stage").press("End")
    assert serious(page, ".step-through") == []
    found = contrasts(page, ".step-through")
    assert len(found) > 15
    assert [c for c in found if c[0] < SMALLEST_CONTRAST] == []
    assert page.locator(".step-through").evaluate("e => getComputedStyle(e).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.slow
def test_the_largest_answers_within_50_ms(show):
    generator = np.random.default_rng(0)
    words = [f"w{k}" for k in range(40)]
    page = show(StepThrough(*generator.normal(size=(3, 40, 128)), words))
    assert milliseconds(page, press(".st-stage", "k % 2 ? 'ArrowDown' : 'ArrowRight'")) < 50
    page = show(StepThrough.decoding(generator.dirichlet(np.ones(40), size=(16, 40)), words, words))
    assert milliseconds(page, press(".st-stage", "'ArrowRight'")) < 50


# --- where it lives ---


def test_in_a_deck_keys_stay_in_the_widget(browser_page, tmp_path):
    open_slides(browser_page, tmp_path, numbers(title="One head"), writing(title="Word by word"))
    for slide in (1, 2):
        browser_page.evaluate(f"Reveal.slide({slide})")
        stage = browser_page.locator(".st-stage").nth(slide - 1)
        stage.focus()
        for key in ("ArrowRight", "ArrowDown", "Space", "n", "End"):
            browser_page.keyboard.press(key)
            assert browser_page.evaluate(OUTSIDE) == []
        assert browser_page.evaluate("Reveal.getIndices().h") == slide
        browser_page.keyboard.press("PageDown")
        assert browser_page.evaluate("Reveal.getIndices().h") == slide + 1
    assert browser_page.script_errors == []
    assert browser_page.outside_requests == []


def test_update_draws_in_place_and_tells_nothing(show):
    page = mounted(show, "StepThrough", "step_through", numbers()._export_state())
    page.evaluate("stage = document.querySelector('.st-stage'); shown.update({...state, query: 2, step: 3})")
    assert now(page) == ("4 weight × value", "query 3 of 4")
    assert page.evaluate("stage.isConnected")
    assert page.evaluate("told") == []
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "Home"):
        page.locator(".st-stage").press(key)
    assert page.evaluate("told") == [{"step": 4}, {"query": 3}, {"step": 0}]  # what changes, and nothing else
    page.evaluate("shown.update({...state, title: 'new'})")
    assert page.locator(".is-title").inner_text() == "new"
    assert destroyed(page, ["ArrowRight", "ArrowDown"]) == []


def test_links_stay_while_the_word_is_the_same(show):
    """New ones would appear again, and so move, at every step."""
    page = show(writing())
    link = page.locator(".st-now").first.element_handle()
    page.locator(".st-stage").press("ArrowRight")
    assert now(page)[0] == "2 write"
    assert link.evaluate("link => link.isConnected")
    page.locator(".st-stage").press("ArrowRight")
    assert not link.evaluate("link => link.isConnected")


def test_what_changes_moves_unless_the_reader_wants_no_motion(show):
    for make in (numbers, writing):
        page = show(make(mask=MASK) if make is numbers else make())
        # in one task, so that no time passes
        moves = """(key) => {
          document.querySelector(".st-stage").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
          return document.getAnimations().map((a) => a.effect.getTiming().duration);
        }"""
        for motion, still in (("reduce", True), ("no-preference", False)):
            page.emulate_media(reduced_motion=motion)
            found = [time for _ in range(3) for time in page.evaluate(moves, "ArrowRight")]
            assert (found == []) == still
            assert max(found, default=0) <= 400
            page.keyboard.press("Home")
            page.locator(".st-stage").press("Home")
            page.evaluate("document.getAnimations().forEach((a) => a.finish())")
    page.emulate_media(media="print")
    assert page.evaluate(moves, "ArrowRight") == []


def test_paper_shows_all_steps_of_the_query(show):
    generator = np.random.default_rng(0)
    for view in (numbers(mask=MASK), StepThrough(*generator.normal(size=(3, 30, 8)), list("abcdefghijklmno") * 2)):
        page = show(view)
        page.emulate_media(media="print")
        assert page.locator(".st-step").evaluate_all(
            "tabs => tabs.map((tab) => tab.checkVisibility() && tab.textContent)") == [
            f"{k + 1} {name}" for k, name in enumerate(STEPS)]
        unseen = page.locator(".st-table").evaluate("""(table) => [...table.querySelectorAll("*")]
          .filter((e) => getComputedStyle(e).visibility === "hidden").length""")
        assert unseen == 0
        assert column(page, 2) == ([pytest.approx(weight, abs=1e-4) for weight in view.weights[0]], True)
        stage = page.locator(".st-stage")
        assert stage.evaluate("e => e.scrollHeight <= e.clientHeight")
        flat = page.locator(".st-table :is(.st-bar-room i, .is-strip-bars)").evaluate_all(
            "bars => bars.filter((bar) => getComputedStyle(bar).transform !== 'none').length")
        assert flat == 0
    page = show(numbers(mask=MASK))
    page.emulate_media(media="print")  # at the first step, the mask is to be seen all the same
    struck = page.locator(".st-table > .st-word").evaluate_all(
        "words => words.map((word) => getComputedStyle(word).textDecorationLine)")
    assert struck == ["none"] * 4 + ["line-through"]
    page.emulate_media(media="screen")
    assert not column(page, 2)[1]


def test_paper_shows_all_words_of_the_sentence(show):
    page = show(writing(probabilities=[0.9, 0.8, 0.0001, 1]))
    words = page.locator(".st-all li")
    assert not words.first.is_visible()
    page.emulate_media(media="print")
    assert words.first.is_visible()
    best = MEAN[1].argmax()
    says = f"The decoder writes chat, with the probability 0.8000. It looked at {SOURCE[best]} {MEAN[1, best]:.4f}"
    assert words.nth(1).inner_text().startswith(says)
    assert words.count() == 4


LIVE_CELLS = [
    "import numpy as np\n"
    "from course_utils.widgets import StepThrough\n"
    "generator = np.random.default_rng(2)\n"
    "view = StepThrough(*generator.normal(size=(3, 4, 8)), list('abcd'))\n"
    "words = StepThrough.decoding(generator.dirichlet(np.ones(4), size=4), list('abcd'), list('wxyz'))\n"
    "moves = []\n"
    "view.observe(lambda change: moves.append(change.new), 'step')\n"
    "display(view, words)",
    "print(view.query, view.step, moves[-1], words.query, words.step)",
    "view.query, view.step, words.query = 3, 2, 1",
    "print(view.weights[3].round(4).tolist())",
]


def test_live(jupyter, lab):
    page = lab
    own_errors = open_live(page, jupyter, "lab/tree", "steps.ipynb", LIVE_CELLS)
    run(page, 0, shows=".step-through", nth=1)
    assert page.locator(".step-through").count() == 2  # the live views, not the copies as well
    page.locator(".st-stage").first.focus()
    for key in ("ArrowRight", "ArrowDown", "End", "a", "b"):  # a and b would add cells
        page.keyboard.press(key)
    page.locator(".st-stage").nth(1).focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert page.locator(".jp-CodeCell").count() == 4
    assert_prints(page, 1, "1 4 4 1 1")
    run(page, 2)
    page.locator(".st-count", has_text="query 4 of 4").wait_for()
    shown = page.locator(".step-through").first.locator(".st-cell[data-step='2'] .st-number")
    read = lambda texts: [float(text) for text in texts]  # noqa: E731
    told = run(page, 3).locator(".jp-OutputArea-output").inner_text()
    before = read(shown.all_inner_texts())
    assert before == pytest.approx(read(told.strip("[]\n ").split(",")), abs=1e-4)
    assert page.locator(".st-count").first.inner_text() == "query 4 of 4"
    assert page.outside_requests == []
    assert page.script_errors == own_errors
