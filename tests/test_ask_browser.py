"""Ask in a real browser: exported pages, a deck, JupyterLab and Notebook; no network."""

import pytest
from browser import (
    DARK,
    HEARD,
    SMALLEST_CONTRAST,
    assert_prints,
    contrasts,
    destroyed,
    mounted,
    only_the_remote_control_turns,
    open_live,
    open_slides,
    run,
    serious,
)

from course_utils.widgets import Ask
from course_utils.widgets.ask import ANSWER, OTHERS

MANY = [(f"word{k}", 0.5 ** (k + 1)) for k in range(12)]
STRANGE = ["<script>alert()</script>", "</script><img src=x onerror=alert(1)>", "\"quote'&amp;", "", "שלום", "😀\u0301"]


def fill(text):
    """Words that depend on the text; the second most probable comes first."""
    dogs = 0.6 if "dog" in text else 0.2
    return [("cat", 0.7 - dogs), ("barks", dogs), ("cow", 0.0004)]


def ask(**changes):
    return Ask(**{"answer": fill, "text": ["the cat [MASK] .", "the dog [MASK] ."], **changes})


def bars(page):
    """What the bars say: ``[(label, probability)]``."""
    return page.locator(".ak-bars li").evaluate_all(
        "rows => rows.map(row => ['.ak-label', '.ak-share'].map(part => row.querySelector(part).textContent))"
    )


def said(page):
    return page.locator(".ak-said").inner_text()


CATS = [["cat", "0.5000"], ["barks", "0.2000"], ["cow", "0.0004"], ["all others", "0.2996"]]
DOGS = [["barks", "0.6000"], ["cat", "0.1000"], ["cow", "0.0004"], ["all others", "0.2996"]]


# --- without a kernel ---


def test_the_last_answers_are_shown(show):
    page = show(ask(text="the cat [MASK] .", title="Masks", label="sentence"))
    assert bars(page) == CATS
    assert said(page) == "most probable: cat 0.5000"
    assert page.locator(".is-title").inner_text() == "Masks"
    field = page.get_by_role("textbox", name="sentence")
    assert field.input_value() == "the cat [MASK] ."
    assert not field.is_editable()
    assert page.locator(".is-hint").inner_text() == "Typing needs the running notebook."
    assert page.locator(".ask button").count() == 0
    drawn = page.locator(".ak-bar").evaluate_all("""bars => bars.map((bar) => [
      getComputedStyle(bar.firstChild).backgroundColor,
      bar.firstChild.getBoundingClientRect().width / bar.getBoundingClientRect().width])""")
    rgb = ["rgb({}, {}, {})".format(*bytes.fromhex(colour[1:])) for colour in (ANSWER, OTHERS)]
    assert [colour for colour, _ in drawn] == [rgb[0]] * 3 + [rgb[1]]
    assert [share for _, share in drawn] == pytest.approx([0.5, 0.2, 0.0004, 0.2996], abs=0.003)


def test_prepared_texts_answer_by_pointer_and_keys(show):
    page = show(HEARD, ask())
    field, buttons = page.get_by_role("textbox"), page.locator(".ask button")
    assert buttons.all_inner_texts() == ["the cat [MASK] .", "the dog [MASK] ."]
    assert page.locator(".is-hint").inner_text() == "Choose a text. Typing another one needs the running notebook."
    buttons.nth(1).click()
    assert (field.input_value(), bars(page), said(page)) == ("the dog [MASK] .", DOGS, "most probable: barks 0.6000")
    assert buttons.evaluate_all("b => b.map(x => x.getAttribute('aria-pressed'))") == ["false", "true"]
    page.keyboard.press("Shift+Tab")
    for key in ("Enter", "n", "ArrowRight", "Space"):
        page.keyboard.press(key)
    assert (field.input_value(), bars(page)) == ("the cat [MASK] .", CATS)
    field.press("x")  # read only
    field.press("Enter")
    assert (field.input_value(), bars(page)) == ("the cat [MASK] .", CATS)
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body")
    assert page.evaluate("heard") == []


def test_a_text_typed_last_can_be_chosen_again(show):
    view = ask()
    view.set_state({"text": "my dog [MASK] !"})
    page = show(view)
    assert bars(page) == DOGS
    page.get_by_role("button", name="the cat [MASK] .").click()
    assert bars(page) == CATS
    page.get_by_role("button", name="my dog [MASK] !").click()
    assert bars(page) == DOGS


def test_a_message_is_shown_where_answers_would_be(show):
    view = Ask(lambda text: fill(text) if text else 1 / 0, "cat")
    view.set_state({"text": ""})
    page = show(view)
    assert said(page) == "ZeroDivisionError: division by zero"
    assert page.locator(".is-error").count() == 1
    assert bars(page) == []
    assert said(show(Ask(lambda text: [], "cat"))) == "no answer"


def test_focus_is_seen_and_every_control_is_reached(show):
    page = show(ask())
    reached = []
    for _ in range(3):
        page.keyboard.press("Tab")
        name, outline = page.evaluate("""[document.activeElement.textContent || document.activeElement.type,
                                          getComputedStyle(document.activeElement).outlineWidth]""")
        assert outline == "3px"
        reached.append(name)
    assert reached == ["text", "the cat [MASK] .", "the dog [MASK] ."]


def test_a_screen_reader_hears_names_and_values(show):
    heard = show(ask(title="Masks")).locator(".ask").aria_snapshot()
    for line in ('group "Masks"', 'textbox "text"', 'list "texts to choose from"',
                 'button "the cat [MASK] ." [pressed]', 'status: "most probable: cat 0.5000"', 'list "answers"',
                 "listitem: cat 0.5000", "listitem: all others 0.2996"):
        assert line in heard, heard


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_serious_and_the_paper_stays_light(show, dark):
    page = show("<title>ask</title>", DARK * dark, "<main><h1>ask</h1>", ask(title="Masks"), "</main>")
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.get_by_role("button").nth(1).click()
    assert serious(page, ".ask") == []
    found = contrasts(page, ".ask")
    assert len(found) > 8
    assert [c for c in found if c[0] < SMALLEST_CONTRAST] == []
    assert all(light > 150 for c in found for light in map(float, c[2][4:-1].split(",")))


def test_axe_finds_nothing_serious_in_a_message(show):
    view = Ask(lambda text: fill(text) if text else 1 / 0, "cat")
    view.set_state({"text": ""})
    page = show("<title>ask</title><main><h1>ask</h1>", view, "</main>")
    assert serious(page, ".ask") == []
    assert [c for c in contrasts(page, ".ask") if c[0] < SMALLEST_CONTRAST] == []


def test_it_fits_a_slide_and_keeps_its_size(show):
    view = Ask(lambda text: MANY[: 12 - len(text)], ["a", "b" * 9, "c " * 100], title="Masks")
    page = show(view)
    box = page.locator(".ask").bounding_box()
    assert len(bars(page)) == 9
    assert box["width"] <= 1100
    assert box["height"] <= 520
    page.get_by_role("button").nth(1).click()
    assert len(bars(page)) == 4
    assert page.locator(".ask").bounding_box() == box
    page.get_by_role("button").nth(2).click()
    assert said(page) == "no answer"
    assert page.locator(".ask").bounding_box() == box


def test_on_a_narrow_page_nothing_is_lost(show, open_page):
    long = Ask(lambda text: [("x" * 200, 0.5), ("a long answer " * 9, 0.25)], ["y" * 300, "b"], title="Masks")
    page = show(long, page=open_page(viewport={"width": 420, "height": 900}))
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    assert page.locator(".ask").evaluate("e => e.scrollWidth <= e.clientWidth")
    labels = page.locator(".ak-label")
    assert labels.nth(1).get_attribute("title") == "a long answer " * 9
    assert all(labels.nth(k).bounding_box()["height"] < 45 for k in range(2))
    shares = [page.locator(".ak-share").nth(k).bounding_box()["x"] for k in range(3)]
    assert max(shares) == min(shares) < 400


def test_strange_texts_are_text(show):
    view = Ask(lambda text: [(label, 0.1) for label in STRANGE], STRANGE, label=STRANGE[0], title=STRANGE[1])
    page = show(view)
    labels = [text or "∅" for text in STRANGE]
    assert [label for label, _ in bars(page)] == [*labels, "all others"]
    assert page.locator(".ask button").all_text_contents() == labels
    for k, text in enumerate(STRANGE):
        page.locator(".ask button").nth(k).click()
        assert page.get_by_role("textbox").input_value() == text
    assert page.locator(".ask :is(img, script)").count() == 0
    assert page.script_errors == []


def test_without_scripts_and_on_paper(show, open_page):
    page = show(ask(), page=open_page(java_script_enabled=False))
    assert page.locator("img").bounding_box()["width"] > 300
    assert "cat: 0.500" in page.locator("img").get_attribute("alt")
    page = show(ask())
    page.emulate_media(media="print")
    assert not page.get_by_role("button").first.is_visible()
    assert page.locator(".ak-share").first.is_visible()


def test_hidden_at_first_and_scaled_as_in_a_slide_show(show):
    page = show('<section style="display: none; zoom: 1.3">', ask(), "</section>")
    page.evaluate("document.querySelector('section').style.display = 'block'")
    assert page.locator(".ask").bounding_box()["height"] > 200
    assert page.locator(".ask").evaluate("e => e.scrollWidth <= e.clientWidth")


def test_in_a_deck_only_the_remote_control_turns_the_page(browser_page, tmp_path):
    page = browser_page
    open_slides(page, tmp_path, ask(title="Masks"), ask(text="the cat [MASK] ."))
    only_the_remote_control_turns(page, [(1, ".ask button"), (2, ".ask input")],
                                  ("ArrowRight", "ArrowLeft", "2", "Space", "n", "Enter", "Home"))


# --- as in a running notebook, without one ---

ASK = "() => {}"  # that there is somebody to ask is what a running notebook tells


def reply(text, *answers, error=""):
    return {"text": text, "answers": [list(pair) for pair in answers], "others": 0, "error": error}


def state():
    return {"_prepared": [reply("b", ("kept", 1))], "_reply": reply("a", ("one", 1)), "text": "a", "label": "text",
            "title": ""}


def still(show):
    """The widget on a page whose clock stands: a key follows another at once, however slow the machine is."""
    page = mounted(show, "Ask", "ask", state(), ASK)
    page.clock.install()
    page.clock.pause_at("2100-01-01")
    return page


def test_typing_asks_after_a_pause_and_at_once_with_enter(show):
    page = still(show)
    field = page.get_by_role("textbox")
    field.press("End")
    page.keyboard.type("b")
    page.clock.run_for(290)
    page.keyboard.type("c")
    page.clock.run_for(290)
    assert page.evaluate("told") == []
    assert page.locator(".is-waiting").count() == 1
    page.clock.run_for(20)
    assert page.evaluate("told") == [{"text": "abc"}]
    page.keyboard.type("d")
    page.keyboard.press("Enter")
    assert page.evaluate("told") == [{"text": "abc"}, {"text": "abcd"}]
    page.clock.run_for(1000)  # the pause after that key has been answered already
    assert page.evaluate("told.length") == 2
    page.keyboard.type("e")
    page.get_by_role("button").click()  # another text drops what was typed
    page.clock.run_for(1000)
    assert page.evaluate("told.slice(2)") == [{"text": "b"}]
    assert field.input_value() == "b"
    field.press("x")
    page.get_by_role("button").click()  # back to the same text
    page.clock.run_for(1000)
    assert page.evaluate("told.slice(3)") == [{"text": "b"}]
    assert field.input_value() == "b"


def test_a_late_answer_is_not_shown_for_a_newer_text(show):
    page = still(show)
    field = page.get_by_role("textbox")
    for text in ("first", "second"):
        field.fill(text)
        field.press("Enter")
        assert (said(page), bars(page)) == ("asking …", [["one", "1.0000"]])
        assert page.locator(".ak-bars").get_attribute("aria-busy") == "true"
    arrives = "(reply) => shown.update({...shown.state, _reply: reply})"
    page.evaluate(arrives, reply("first", ("late", 1)))
    assert (said(page), bars(page)) == ("asking …", [["one", "1.0000"]])
    page.evaluate(arrives, reply("second", ("two", 0.5)))
    assert (said(page), bars(page)) == ("most probable: two 0.5000", [["two", "0.5000"]])
    assert page.locator(".ak-bars").get_attribute("aria-busy") == "false"
    assert page.locator(".is-waiting").count() == 0
    assert page.evaluate("told") == [{"text": "first"}, {"text": "second"}]


def test_an_answer_that_comes_while_the_reader_types_leaves_the_field_alone(show):
    page = still(show)
    field = page.get_by_role("textbox")
    field.fill("first")
    field.press("Enter")
    field.press("Home")
    page.keyboard.type("my ")
    page.evaluate("(reply) => shown.update({...shown.state, _reply: reply})", reply("first", ("one", 1)))
    page.keyboard.type("very ")
    assert field.input_value() == "my very first"
    page.clock.run_for(400)
    assert page.evaluate("told") == [{"text": "first"}, {"text": "my very first"}]


def test_live_a_prepared_text_is_asked_again(show):
    """A kept answer may be older than the model."""
    page = mounted(show, "Ask", "ask", state(), ASK)
    page.get_by_role("button", name="b").click()
    assert said(page) == "asking …"
    page.evaluate("(reply) => shown.update({...shown.state, _reply: reply})", reply("b", ("new", 1)))
    assert bars(page) == [["new", "1.0000"]]


def test_a_typed_text_that_is_taken_back_needs_no_answer(show):
    page = still(show)
    field = page.get_by_role("textbox")
    field.press("End")
    page.keyboard.type("x")
    page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    assert (said(page), page.locator(".is-waiting").count()) == ("most probable: one 1.0000", 0)


def test_update_draws_in_place_and_tells_nothing(show):
    page = still(show)
    page.evaluate("field = document.querySelector('.ak-text')")
    page.evaluate("(reply) => shown.update({...state, text: reply.text, _reply: reply})",
                  reply("two\r\nlines", error="ValueError: no"))
    assert page.get_by_role("textbox").input_value() == "two lines"
    assert (said(page), bars(page)) == ("ValueError: no", [])
    assert page.evaluate("field.isConnected")
    page.evaluate("shown.update({...state, label: 'question', title: 'Ask'})")
    assert page.get_by_role("textbox", name="question").input_value() == "a"
    assert (said(page), bars(page)) == ("most probable: one 1.0000", [["one", "1.0000"]])
    assert page.evaluate("told") == []
    page.get_by_role("textbox").fill("unsent")
    assert destroyed(page, ["Enter", "a"]) == []
    page.clock.run_for(400)
    assert page.evaluate("told") == []


# --- JupyterLab and Notebook ---

LIVE_CELLS = [
    "import time\n"
    "from course_utils.widgets import Ask\n"
    "asked, heard = [], []\n"
    "def fill(text):\n"
    "    asked.append(text)\n"
    "    time.sleep(2 * ('slow' in text))\n"
    "    return [('length', 1 / len(text)), ('rest', 1 - 1 / len(text))]\n"
    "view = Ask(fill, ['ab', '1234'], label='question')\n"
    "view.observe(lambda change: heard.append(change.new), 'answers')\n"
    "view",
    "print(view.text, view.answers, heard[-1] == view.answers, asked[-1])",
    "view.text = 'from Python 5678'",
]


def test_live(jupyter, lab):
    page = lab
    own_errors = open_live(page, jupyter, "lab/tree", "ask.ipynb", LIVE_CELLS)
    run(page, 0, shows=".ask")
    assert page.locator(".ask").count() == 1  # not the copy as well
    assert bars(page) == [["length", "0.5000"], ["rest", "0.5000"]]

    field = page.get_by_role("textbox", name="question")
    field.press("End")
    page.keyboard.type("bx a dd")  # a, b, x and dd would change the notebook's cells
    page.locator(".ak-said", has_text="rest 0.8889").wait_for()
    assert bars(page) == [["rest", "0.8889"], ["length", "0.1111"]]
    assert page.locator(".jp-CodeCell").count() == 3
    assert_prints(page, 1, "abbx a dd [('rest', 0.8888888888888888), ('length', 0.1111111111111111)] True abbx a dd")

    field.fill("")
    page.locator(".ak-said", has_text="ZeroDivisionError: division by zero").wait_for()
    assert (field.input_value(), bars(page)) == ("", [])

    field.fill("slow one")  # two seconds
    field.press("Enter")
    page.locator(".ak-said", has_text="asking").wait_for()
    page.wait_for_timeout(500)
    field.fill("new")
    field.press("Enter")
    page.evaluate("""seen = []; new MutationObserver(() => seen.push(document.querySelector(".ak-said").textContent))
      .observe(document.querySelector(".ak-said"), { childList: true, characterData: true, subtree: true })""")
    page.locator(".ak-said", has_text="rest 0.6667").wait_for()
    assert {text for text in page.evaluate("seen")} <= {"asking …", "most probable: rest 0.6667"}

    page.get_by_role("button", name="1234").click()
    page.locator(".ak-said", has_text="rest 0.7500").wait_for()
    assert field.input_value() == "1234"
    run(page, 2)
    page.locator(".ak-said", has_text="rest 0.9375").wait_for()
    assert field.input_value() == "from Python 5678"
    assert page.outside_requests == []
    assert page.script_errors == own_errors
