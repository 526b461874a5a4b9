"""The quiz and the tokenizer view in a real browser: exported pages, a deck, JupyterLab and Notebook, no network."""

import random
import unicodedata

import pytest
from browser import (
    DARK,
    HEARD,
    OUTSIDE,
    SMALLEST_CONTRAST,
    assert_prints,
    contrasts,
    destroyed,
    milliseconds,
    mounted,
    open_live,
    open_slides,
    press,
    run,
    save,
    serious,
    visit,
)
from browser import STRANGE as STRANGE_TEXTS
from nbformat.v4 import new_code_cell, new_output

from course_utils import bert
from course_utils.data.wordpiece import SPECIALS, WordPiece
from course_utils.widgets import Question, Quiz, TokenizerView
from course_utils.widgets.tokenizer_view import END, _segment

MERGES = (("l", "o"), ("lo", "w"), ("e", "r</w>"), ("e", "s"), ("es", "t</w>"), ("low", "er</w>"))
SUM = Question("What does `softmax` return?", [
    ("Scores.", "No. Scores go in.", False),
    ("Weights that sum to one.", "Right. Each is positive, and a number added to all scores changes nothing.", True),
    ("A mask.", "No. " + "A mask is given to it. " * 12, False),
])
MASK = Question("Where does the mask work?", [("Before the softmax.", "Right.", True), ("After it.", "No.", False)])
LAST = Question("Who asks?", [("The key.", "No.", False), ("The query.", "Right.", True)])


def quiz(**changes):
    return Quiz(**{"questions": [SUM, MASK, LAST], **changes})


# --- the quiz ---


def seen(page):
    """What can be seen of the quiz: question, choices, marked choices, explanation."""
    return page.locator(".quiz").first.evaluate("""(quiz) => {
      const texts = (path) => [...quiz.querySelectorAll(path)]
        .filter((node) => getComputedStyle(node).visibility === "visible").map((node) => node.textContent);
      return [texts("legend"), texts(".qz-text"), texts(".qz-choice .qz-mark"), texts(".qz-why")];
    }""")


def test_a_question_shows_its_choices_and_no_explanation(show):
    page = show(quiz(title="Attention"))
    choices = ["Scores.", "Weights that sum to one.", "A mask."]
    assert seen(page) == [["What does softmax return?"], choices, [], []]
    assert page.locator(".is-title").inner_text() == "Attention"
    assert page.get_by_text("question 1 of 3").is_visible()
    assert page.locator("input:checked").count() == 0
    assert page.locator("code").first.text_content() == "softmax"


def test_a_choice_is_explained_and_can_be_changed(show):
    page = show(quiz())
    page.locator(".qz-choice").nth(0).click()
    assert seen(page)[2:] == [["✗"], ["✗ No. Scores go in."]]
    page.get_by_text("Weights that sum to one.").click()
    assert seen(page)[2:] == [["✓"], [f"✓ {SUM.choices[1][1]}"]]
    colours = page.locator(".qz-choice").evaluate_all("nodes => nodes.map(n => getComputedStyle(n).borderTopColor)")
    assert colours[1] == "rgb(27, 127, 92)"
    assert colours[0] == colours[2] != colours[1]


def test_a_click_gives_the_quiz_the_keys(show):
    page = show(HEARD, quiz())
    page.locator(".is-hint").click()
    page.keyboard.press("ArrowRight")
    assert seen(page)[0] == [MASK.asks.replace("`", "")]
    page.keyboard.press("ArrowLeft")
    page.get_by_text("Weights").first.click()
    assert page.evaluate("document.activeElement.type") == "radio"
    page.keyboard.press("ArrowRight")
    assert seen(page)[0] == [MASK.asks.replace("`", "")]
    assert page.evaluate("heard") == []


def test_keys_of_the_quiz(show):
    page = show(HEARD, quiz())
    page.get_by_role("radio").first.focus()
    focused = "document.activeElement.parentNode.textContent"
    for key, choice, mark in [("2", "Weights", "✓"), ("ArrowDown", "A mask", "✗"), ("ArrowUp", "Weights", "✓"),
                              ("1", "Scores", "✗"), ("9", "Scores", "✗")]:
        page.keyboard.press(key)
        assert seen(page)[2] == [mark], key
        assert choice in page.locator("label:has(:checked)").inner_text()
        assert choice in page.evaluate(focused)
    for key, asks in [("ArrowLeft", SUM), ("ArrowRight", MASK), ("ArrowRight", LAST), ("ArrowRight", LAST),
                      ("ArrowLeft", MASK)]:
        page.keyboard.press(key)
        assert seen(page)[0] == [asks.asks.replace("`", "")], key
    assert "Before the softmax." in page.evaluate(focused)
    page.keyboard.press("Space")
    assert seen(page)[3] == ["✓ Right."]
    page.keyboard.press("ArrowLeft")
    assert seen(page)[2:] == [["✗"], ["✗ No. Scores go in."]]  # what was chosen is still chosen
    assert "Scores." in page.evaluate(focused)
    send = "document.querySelector('.quiz form').dispatchEvent(new SubmitEvent('submit', { cancelable: true }))"
    assert page.evaluate(send) is False  # in some browsers Enter would send the form, and so leave the page
    page.keyboard.press("n")  # means nothing here, and must not turn a slide
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body")
    assert page.evaluate("heard") == []


def test_buttons_turn_and_stop_at_the_ends(show):
    page = show(quiz())
    back, following = (page.get_by_role("button", name=f"{name} question") for name in ("previous", "next"))
    assert [b.get_attribute("aria-disabled") for b in (back, following)] == ["true", "false"]
    back.click(force=True)
    assert seen(page)[0] == ["What does softmax return?"]
    for _ in range(3):
        following.click(force=True)
    assert page.get_by_text("question 3 of 3").is_visible()
    assert [b.get_attribute("aria-disabled") for b in (back, following)] == ["false", "true"]
    page.keyboard.press("2")  # also where no choice has the focus
    assert seen(page)[3] == ["✓ Right."]


def test_one_question_needs_no_buttons(show):
    page = show(quiz(questions=[SUM]))
    assert page.locator(".quiz button").count() == 0
    assert "question" not in page.locator(".is-hint").inner_text()


def test_a_screen_reader_hears_question_choices_and_explanation(show):
    page = show(quiz())
    page.get_by_role("radio", name="Scores.").check()
    tree = page.locator(".quiz").aria_snapshot()
    for line in (
        'group "Quiz"', 'radiogroup "What does softmax return?"', 'radio "1 Scores. wrong" [checked]', "status:",
        'img "wrong"', "No. Scores go in.", 'button "next question"',
    ):
        assert line.replace("1 ", "") in tree.replace("1 ", ""), tree
    for hidden in ("Where does the mask work?", "Each is positive", "The query."):
        assert hidden not in tree


def test_focus_is_seen_and_every_control_is_reached(show):
    page = show(quiz(), TokenizerView("lower", MERGES))
    reached = []
    for _ in range(10):
        page.keyboard.press("Tab")
        kind, outline = page.evaluate("""[document.activeElement.type || document.activeElement.className,
                                          getComputedStyle(document.activeElement).outlineWidth]""")
        assert outline == "3px"
        reached.append(kind)
    buttons = ["button"] * 2
    assert reached == [*buttons, "radio", "text", *buttons, "range", *buttons, "tv-stage"]


def test_the_quiz_has_one_size_that_fits_a_slide(show):
    page = show(quiz())
    box = page.locator(".quiz").bounding_box()
    assert box["width"] <= 1100
    assert box["height"] <= 520
    for number in (3, 2, 1):
        page.locator(".quiz").get_by_role("radio").first.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press(str(number))
        assert page.locator(".quiz").bounding_box() == box
    lowest = "nodes => Math.max(...nodes.map(n => n.getBoundingClientRect().bottom))"
    assert page.locator(".qz-question, .qz-why, .qz-choice").evaluate_all(lowest) < box["y"] + box["height"]


def test_two_quizzes_on_a_page_are_strangers(show):
    page = show(quiz(), quiz(), quiz(question=2))
    roots = page.locator(".quiz")
    roots.nth(0).get_by_role("radio").nth(0).check()
    roots.nth(1).get_by_role("radio").nth(1).check()
    assert [roots.nth(k).locator("input:checked").count() for k in range(3)] == [1, 1, 0]
    assert roots.nth(2).get_by_text("question 3 of 3").is_visible()
    assert page.evaluate("[typeof Quiz, typeof CourseWidget]") == ["undefined"] * 2


STRANGE = ["<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "\"quotes'&amp;`<b>`", "`", "שלום"]


def test_strange_texts_are_text(show):
    choices = [(text, STRANGE[1 - k], k == 1) for k, text in enumerate(STRANGE)]
    page = show(quiz(questions=[Question(STRANGE[1], choices)], title=STRANGE[0]))
    page.keyboard.press("Tab")
    page.keyboard.press("1")
    asks, texts, _, whys = seen(page)
    assert (asks, whys) == ([STRANGE[1]], [f"✗ {STRANGE[1]}"])
    assert texts == [text.replace("`<b>`", "<b>") for text in STRANGE]
    assert page.locator(".quiz :is(img, script, b)").count() == 0
    assert page.locator(".quiz code").all_text_contents() == ["<b>", "<b>"]
    assert page.script_errors == []


def test_without_scripts_choices_unfold(show, open_page):
    page = show(quiz(title="Attention"), page=open_page(java_script_enabled=False))
    assert page.locator("details").count() == 7
    why = page.get_by_text("✗ No. Scores go in.")
    assert not why.is_visible()
    page.locator("summary", has_text="Scores.").click()
    assert why.is_visible()
    assert page.locator("strong").all_inner_texts()[:2] == ["Attention", "1. What does softmax return?"]


def test_paper_gets_all_questions_and_no_answer(show):
    page = show(quiz())
    page.emulate_media(media="print")
    assert seen(page)[0] == [q.asks.replace("`", "") for q in (SUM, MASK, LAST)]
    assert seen(page)[2:] == [[], []]


QUIZ = {"_questions": [[q.asks, [list(c) for c in q.choices]] for q in (SUM, MASK)], "question": 0, "title": ""}


def test_the_quiz_tells_where_it_is_and_nothing_else(show):
    page = mounted(show, "Quiz", "quiz", QUIZ)
    page.get_by_role("radio").nth(1).check()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("told") == [{"question": 1}]
    page.evaluate("told = []; shown.update({...state, question: 0})")
    assert seen(page)[2] == ["✓"]
    assert page.evaluate("told") == []
    assert page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]
    page.evaluate("shown.update({...state, _questions: state._questions.slice(1)})")
    assert seen(page)[:3] == [["Where does the mask work?"], ["Before the softmax.", "After it."], []]
    assert destroyed(page, ["ArrowRight", "1"]) == []


# --- the tokenizer view ---


def pieces(page):
    """The pieces on the screen, word by word, written as in Python."""
    words = page.locator(".tv-word").evaluate_all(
        "words => words.map(word => [...word.querySelectorAll('.tv-piece')].map(piece => piece.textContent))"
    )
    return [[piece.removesuffix("·") + END * piece.endswith("·") for piece in word] for word in words]


def readout(page):
    return page.locator(".tv-readout").first.inner_text()


def test_the_last_step_is_shown_with_its_merge(show):
    page = show(TokenizerView("lower slowest", MERGES, title="Pieces"))
    assert pieces(page) == [["lower</w>"], ["s", "low", "est</w>"]]
    assert readout(page) == "4 pieces. Merge 6 of 6: low + er· → lower·. No learnt pair is left."
    assert page.locator(".is-merged").all_text_contents() == ["lower·"]
    assert page.locator(".is-merged .tv-half").all_text_contents() == ["low", "er·"]
    assert page.get_by_text("step 6 of 6").is_visible()
    assert page.locator(".tv-used li").all_inner_texts() == [
        "1 l + o", "2 lo + w", "3 e + r·", "4 e + s", "5 es + t·", "6 low + er·",
    ]
    assert page.locator(".tv-end").first.get_attribute("title") == "end of a word, written </w>"


def test_keys_and_buttons_step_as_python_does(show):
    view = TokenizerView("lower slowest", MERGES)
    page = show(HEARD, view)
    stage = page.locator(".tv-stage")
    stage.focus()
    for key, step in [("ArrowRight", 6), ("ArrowLeft", 5), ("Home", 0), ("ArrowLeft", 0), ("ArrowRight", 1),
                      ("End", 6)]:
        page.keyboard.press(key)
        view.step = step
        assert [piece for word in pieces(page) for piece in word] == list(view.pieces), key
        assert page.locator(".tv-count").inner_text() == f"step {step} of 6"
    page.get_by_role("slider").focus()
    for key, step in [("ArrowLeft", 5), ("ArrowDown", 4), ("Home", 0), ("ArrowUp", 1)]:
        page.keyboard.press(key)
        assert page.locator(".tv-count").inner_text() == f"step {step} of 6", key
        assert page.get_by_role("slider").input_value() == str(step)
    for name, step in [("all merges", 6), ("one merge back", 5), ("characters", 0), ("next merge", 1)]:
        page.get_by_role("button", name=name).click()
        assert page.locator(".tv-count").inner_text() == f"step {step} of 6", name
    assert readout(page) == "10 pieces. Merge 1 of 6: l + o → lo at 2 places."
    page.locator(".tv-used button").nth(2).click()
    assert readout(page).startswith("7 pieces. Merge 3 of 6: e + r· → er·.")
    assert page.locator(".tv-used .is-done").count() == 3
    assert page.locator("[aria-current=step]").inner_text() == "3 e + r·"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body")
    assert page.evaluate("heard") == []


def test_typing_shows_the_pieces_at_once(show):
    page = show(HEARD, TokenizerView("low", MERGES, step=0))
    field = page.get_by_role("textbox", name="text to split")
    field.press("End")
    page.keyboard.type("est x")
    assert pieces(page) == [["low", "est</w>"], ["x</w>"]]
    assert page.locator(".tv-count").inner_text() == "step 4 of 4"
    page.keyboard.press("ArrowLeft")  # moves in the text, not through the steps
    page.keyboard.type("no ")
    assert field.input_value() == "lowest no x"
    assert page.locator(".tv-count").inner_text() == "step 4 of 4"
    field.fill("xyz")
    assert readout(page) == "3 pieces. No two neighbours here were learnt as a pair."
    field.fill("")
    assert (pieces(page), readout(page)) == ([], "0 pieces")
    field.fill("y" * 500)
    assert len(field.input_value()) == 400
    assert page.evaluate("heard") == []


def cases():
    """Texts with merges: learnt by no corpus, with pieces made in two ways; blanks, accents, emoji, empty texts."""
    shuffled = random.Random(1)
    blanks = [" ", "\t", "\n", "\u00a0", "\u2003", "\u2028", "\x1c", "\x85", "\ufeff", "\u200b"]
    letters = ["a", "b", "é", "\u0301", "😀", "ש", "<"]
    for _ in range(150):
        known, merges = [*letters, "a</w>", "😀</w>"], []
        while len(merges) < 30:
            left = shuffled.choice([piece for piece in known if not piece.endswith(END)])
            right = shuffled.choice(known)
            if len(left + right) < 12 and (left, right) not in merges:
                merges.append((left, right))
                known.append(left + right)
        shuffled.shuffle(merges)
        parts = [piece.removesuffix(END) for piece in known] + 2 * blanks
        yield "".join(shuffled.choices(parts, k=shuffled.randrange(20))), merges


def test_javascript_and_python_take_the_same_steps(show):
    page = mounted(show, "TokenizerView", "tokenizer_view", TokenizerView("", [])._export_state())
    ask = """([text, lines]) => {
      const ranks = new Map(lines.map((line, rank) => [line, rank])), { used } = segment(text, ranks), found = [];
      for (let step = 0; step <= used.length; step++) {
        found.push(segment(text, ranks, step).words.map((word) => word.map((piece) => piece.text)));
      }
      return [used.map(({ rank }) => rank), found];
    }"""
    steps = 0
    for words, merges in cases():
        lines = [" ".join(pair) for pair in merges]
        used, found = page.evaluate(ask, [words, lines])
        assert used == _segment(words, "\n".join(lines))[1]
        assert found == [_segment(words, "\n".join(lines), step)[0] for step in range(len(used) + 1)]
        steps += len(used)
    assert steps > 500


def test_strange_pieces_are_seen_and_are_text(show):
    text = "<img src=x onerror=alert(1)> e\u0301 a\u200db שלום </w>"
    merges = [("<", "i"), ("<i", "m")]
    page = show(TokenizerView(text, merges, title="<b>bold</b>"))
    shown = pieces(page)
    assert shown[0] == ["<im", "g</w>"]
    assert shown[3:5] == [["e", "◌\u0301</w>"], ["a", "U+200D", "b</w>"]]
    assert shown[6] == ["<", "/", "w", "></w>"]
    assert page.locator(".tokenizer-view :is(img, script)").count() == 0
    right_to_left = page.locator(".tv-word").nth(5)
    boxes = [piece.bounding_box()["x"] for piece in right_to_left.locator(".tv-piece").all()]
    assert boxes == sorted(boxes, reverse=True)
    page.get_by_role("textbox").fill("<img src=y onerror=alert(2)>")
    assert page.locator(".tokenizer-view img").count() == 0
    assert page.script_errors == []


# --- WordPiece ---

PIECES = WordPiece([*SPECIALS, "low", "lo", "l", "##w", "##e", "##er", "##est", "e", "un", "x"])


def tried(page):
    """The beginnings that the step has tried: those that are too long, and the piece."""
    return [page.locator(f".tv-tried.{name}").all_text_contents() for name in ("is-too-long", "is-taken")]


def test_a_step_takes_the_longest_piece_that_begins_the_rest(show):
    view = TokenizerView.wordpiece("Lowest unlo", PIECES, title="WordPiece")
    page = show(HEARD, view)
    assert pieces(page) == [["low", "##est"], ["[UNK]"]]
    assert readout(page) == "3 pieces. No piece begins ##lo, so all of unlo becomes [UNK]."
    assert tried(page) == [["##lo", "##l"], ["[UNK]"]]
    page.locator(".tv-stage").focus()
    for key, step, rest, said, longer in [
        ("Home", 0, ["lowest", "unlo"], "0 pieces. The words are whole. Nothing is taken yet.", []),
        ("ArrowRight", 1, ["##est", "unlo"],
         "1 piece. The longest piece that begins lowest is low: 3 longer beginnings are no piece.",
         ["lowest", "lowes", "lowe"]),
        ("ArrowRight", 2, ["unlo"], "2 pieces. ##est is a piece as it is.", []),
        ("ArrowRight", 3, [], "3 pieces. No piece begins ##lo, so all of unlo becomes [UNK].", ["##lo", "##l"]),
        ("ArrowRight", 3, [], "3 pieces. No piece begins ##lo, so all of unlo becomes [UNK].", ["##lo", "##l"]),
        ("ArrowLeft", 2, ["unlo"], "2 pieces. ##est is a piece as it is.", []),
        ("End", 3, [], "3 pieces. No piece begins ##lo, so all of unlo becomes [UNK].", ["##lo", "##l"]),
    ]:
        page.keyboard.press(key)
        view.step = step
        assert [piece for word in pieces(page) for piece in word] == list(view.pieces), key
        assert page.locator(".tv-rest").all_text_contents() == rest
        assert readout(page) == said
        assert tried(page)[0] == longer
        assert page.locator(".tv-count").inner_text() == f"step {step} of 3"
        assert page.locator(".tv-piece.is-merged").all_text_contents() == list(view.pieces[-1:])
    for name, step in [("words", 0), ("next piece", 1), ("all pieces", 3), ("one piece back", 2)]:
        page.get_by_role("button", name=name).click()
        assert page.locator(".tv-count").inner_text() == f"step {step} of 3", name
    assert page.get_by_role("slider", name="pieces taken").get_attribute("aria-valuetext") == "2 of 3"
    assert "## inside a word" in page.locator(".is-hint").inner_text()
    page.keyboard.press("Escape")
    assert page.evaluate("heard") == []


def test_typing_cuts_without_a_kernel(show):
    page = show(HEARD, TokenizerView.wordpiece("", PIECES))
    assert readout(page) == "0 pieces"
    field = page.get_by_role("textbox", name="text to split")
    field.press("End")
    page.keyboard.type("LÓWest [MASK]x")
    assert pieces(page) == [["low", "##est"], ["[MASK]"], ["x"]]
    assert page.locator(".tv-count").inner_text() == "step 4 of 4"
    field.fill("l" * 101)
    assert readout(page) == "1 piece. A word of more than 100 letters becomes [UNK]."
    assert page.evaluate("heard") == []


def random_texts(vocab):
    """Texts of pieces, in part torn or put together anew, of blanks, marks and letters that are in no piece."""
    shuffled = random.Random(2)
    odd = ["☃", "É", "é", "e\u0301", "ß", "İ", "ΑΣ", "\u00ad", "\u200d", "\ufffd", "東京", "שלום", "👩\u200d🔬", "한국",
           "[MASK]", "[UNK]", "[sep]", "#", "$", "`", "«", "¿", "\t", "\n", "\u00a0", "\u3000", "\x85", "x" * 101]
    for _ in range(400):
        parts = []
        for _ in range(shuffled.randrange(1, 12)):
            piece = shuffled.choice(vocab).removeprefix("##")
            parts.append(shuffled.choice([piece, piece.title(), piece[1:], shuffled.choice(odd), " ", " "]))
        yield "".join(parts)[:400]
    letters = [chr(k) for first, last in [(32, 0x24f), (0x300, 0x530), (0x5d0, 0x5ea), (0x600, 0x700), (0x900, 0x97f),
                                          (0x1e00, 0x2070), (0x3040, 0x30ff)] for k in range(first, last)]
    letters = [letter for letter in letters if unicodedata.category(letter) != "Cn"]
    for _ in range(400):
        yield "".join(shuffled.choices(letters, k=12))


@pytest.mark.parametrize("lowercase", [True, False])
def test_javascript_cuts_as_python_does(show, lowercase):
    vocab = bert.load()[1].vocab
    tokenizer = WordPiece(vocab, lowercase=lowercase)
    page = mounted(show, "TokenizerView", "tokenizer_view", TokenizerView.wordpiece("", tokenizer)._export_state())
    texts = list(random_texts(vocab))
    found = page.evaluate("""(texts) => texts.map((text) => {
      const count = shown.way.read(text);
      return shown.way.steps.map(({ piece }) => piece).slice(0, count);
    })""", texts)
    for text, cut in zip(texts, found, strict=True):
        assert cut == tokenizer.tokenize(text), text
    assert sum("[UNK]" in cut for cut in found) > 50
    assert sum(any(piece.startswith("##") for piece in cut) for cut in found) > 100


@pytest.mark.parametrize("way", ["bpe", "wordpiece"])
def test_strange_texts_are_text_in_both_ways(show, way):
    parts = sorted({part for text in STRANGE_TEXTS for part in text.lower().split()})
    known = WordPiece([*SPECIALS, *parts, *{f"##{letter}" for part in parts for letter in part}, *set("".join(parts))])
    make = {"bpe": lambda text: TokenizerView(text, [("<", "s"), ("<s", "c")], title=STRANGE_TEXTS[1]),
            "wordpiece": lambda text: TokenizerView.wordpiece(text, known, title=STRANGE_TEXTS[1])}[way]
    page = show(make(""))
    field = page.get_by_role("textbox")
    assert page.locator(".is-title").text_content() == STRANGE_TEXTS[1]
    for text in STRANGE_TEXTS:
        field.fill(text)
        view = make(text)
        shown = page.locator(".tv-piece").all_text_contents()
        assert len(shown) == len(view.pieces)
        plain = [piece.replace("◌", "").replace("·", END) for piece in shown]
        assert [piece for piece in plain if "U+" not in piece] == [
            piece for piece, mark in zip(view.pieces, plain, strict=True) if "U+" not in mark]
        page.locator(".tv-stage").press("Home")
    assert page.locator(".tokenizer-view :is(img, script)").count() == 0
    assert page.script_errors == []


def test_wordpiece_for_everyone(show):
    view = TokenizerView.wordpiece("lowestest", PIECES)
    page = show("<title>pieces</title>", DARK, "<main><h1>pieces</h1>", view, "</main>")
    page.emulate_media(color_scheme="dark")
    assert pieces(page) == [["low", "##est", "##est"]]
    page.get_by_role("button", name="one piece back").click()
    assert serious(page, ".tokenizer-view") == []
    found = contrasts(page, ".tokenizer-view")
    assert len(found) > 10
    assert [c for c in found if c[0] < SMALLEST_CONTRAST] == []
    tree = page.locator(".tokenizer-view").aria_snapshot()
    for line in ('slider "pieces taken": "2"', 'group "2 pieces: low ##est"', 'button "next piece"',
                 'list "beginnings of the rest, the longest first"'):
        assert line in tree, tree
    box = page.locator(".tokenizer-view").bounding_box()
    assert box["height"] <= 520
    page.get_by_role("textbox").fill("the slowest newcomer lows wildly " * 12)
    assert page.locator(".tokenizer-view").bounding_box() == box


@pytest.mark.slow
def test_wordpiece_answers_within_a_frame(show):
    page = mounted(show, "TokenizerView", "tokenizer_view", TokenizerView.wordpiece("a" * 400, PIECES)._export_state())
    page.evaluate("shown.update({...state, text: 'lowest '.repeat(57), step: 114})")
    assert milliseconds(page, press(".tv-stage", "k % 2 ? 'ArrowLeft' : 'ArrowRight'")) < 16


def test_a_screen_reader_hears_pieces_and_step(show):
    page = show(TokenizerView("lower", MERGES, step=3))
    tree = page.locator(".tokenizer-view").aria_snapshot()
    for line in ('group "Tokenizer view"', 'textbox "text to split"', "text: lower", 'button "3 e + r·"',
                 'slider "merges done": "3"', "status:",
                 'group "2 pieces: low er·"', 'list "merges that the text uses"', 'button "next merge"'):
        assert line in tree, tree
    assert page.get_by_role("slider").get_attribute("aria-valuetext") == "3 of 4"


def test_the_tokenizer_view_has_one_size_that_fits_a_slide(show):
    page = show(TokenizerView("lowest slower newest", MERGES))
    box = page.locator(".tokenizer-view").bounding_box()
    assert box["width"] <= 1100
    assert box["height"] <= 520
    stage = page.locator(".tv-stage")
    assert stage.evaluate("e => e.scrollHeight <= e.clientHeight")
    stage.press("Home")
    assert page.locator(".tokenizer-view").bounding_box() == box
    page.get_by_role("textbox").fill("the slowest newcomer lows wildly " * 12)
    assert page.locator(".tokenizer-view").bounding_box() == box
    assert stage.evaluate("e => e.scrollHeight > e.clientHeight + 1")


def test_without_scripts_there_is_a_picture(show, open_page):
    page = show(TokenizerView("lowest", MERGES), page=open_page(java_script_enabled=False))
    picture = page.locator("img")
    assert picture.bounding_box()["width"] > 100
    assert picture.get_attribute("alt").splitlines()[1] == "low est·"


def test_update_draws_in_place_and_tells_nothing(show):
    state = TokenizerView("low", MERGES, step=1)._export_state()
    page = mounted(show, "TokenizerView", "tokenizer_view", state)
    assert pieces(page) == [["lo", "w</w>"]]
    page.evaluate("field = document.querySelector('.tv-text'); shown.update({...state, text: 'lower', step: 3})")
    assert pieces(page) == [["low", "er</w>"]]
    assert page.get_by_role("textbox").input_value() == "lower"
    page.evaluate("shown.update({...state, text: 'l', step: 3})")  # a new text may come before its step
    assert (pieces(page), page.locator(".tv-count").inner_text()) == ([["l</w>"]], "step 0 of 0")
    assert page.evaluate("field.isConnected")
    page.evaluate("shown.update({...state, text: 'low', step: 1, _content: {kind: 'bpe', merges: 'o w</w>'}})")
    assert pieces(page) == [["l", "ow</w>"]]
    assert page.evaluate("told") == []
    page.get_by_role("textbox").fill("ow low")
    assert page.evaluate("told") == [{"text": "ow low", "step": 1}]
    page.evaluate("state => shown.update(state)", TokenizerView.wordpiece("lower", PIECES)._export_state())
    assert pieces(page) == [["low", "##er"]]
    page.get_by_role("textbox").fill("lowerer x")
    assert page.evaluate("told")[1:] == [{"text": "lowerer x", "step": 4}]
    assert destroyed(page, ["ArrowLeft", "Home"]) == []


# --- where they live ---


def widgets():
    return {"quiz": quiz(), "tokenizer-view": TokenizerView("lowest slower", MERGES)}


@pytest.mark.parametrize("name", ["quiz", "tokenizer-view"])
def test_a_dark_page_does_not_darken_the_paper(show, name):
    page = show(DARK, widgets()[name])
    page.emulate_media(color_scheme="dark")
    if name == "quiz":
        page.get_by_role("radio").first.check()
    found = contrasts(page, f".{name}")
    assert len(found) > 8
    assert [c for c in found if c[0] < SMALLEST_CONTRAST] == []
    assert all(light > 150 for c in found for light in map(float, c[2][4:-1].split(",")))


@pytest.mark.parametrize("name", ["quiz", "tokenizer-view"])
def test_axe_finds_nothing_serious(show, name):
    page = show("<title>widgets</title><main><h1>widgets</h1>", widgets()[name], "</main>")
    assert serious(page, f".{name}") == []
    if name == "quiz":
        page.get_by_role("radio").first.check()
        assert serious(page, f".{name}") == []


@pytest.mark.parametrize("name", ["quiz", "tokenizer-view"])
def test_hidden_at_first_and_scaled_as_in_a_slide_show(show, name):
    page = show('<section style="display: none; zoom: 1.3">', widgets()[name], "</section>")
    page.evaluate("document.querySelector('section').style.display = 'block'")
    box = page.locator(f".{name}").bounding_box()
    assert box["height"] > 200
    assert page.locator(f".{name}").evaluate("e => e.scrollWidth <= e.clientWidth")


def test_in_a_deck_only_the_remote_control_turns_the_page(browser_page, tmp_path):
    open_slides(browser_page, tmp_path, *widgets().values())
    where = "Reveal.getIndices().h"
    for number, control in ((1, ".quiz input"), (2, ".tv-text")):
        browser_page.evaluate(f"Reveal.slide({number})")
        assert browser_page.evaluate(OUTSIDE) == []
        browser_page.locator(control).first.focus()
        for key in ("ArrowRight", "ArrowLeft", "2", "Space", "n", "ArrowRight", "Home"):
            browser_page.keyboard.press(key)
        assert browser_page.evaluate(where) == number
        if number == 2:
            browser_page.locator(control).fill("the slowest newcomer lows wildly " * 12)
        assert browser_page.evaluate(OUTSIDE) == []
        browser_page.keyboard.press("PageDown")
        assert browser_page.evaluate(where) == number + 1
    assert browser_page.script_errors == []
    assert browser_page.outside_requests == []


LIVE_CELLS = [
    "from course_utils.widgets import Question, Quiz, TokenizerView\n"
    f"quiz = Quiz([Question(*q) for q in {[tuple(q) for q in (SUM, MASK)]!r}])\n"
    f"view = TokenizerView('low', {MERGES!r})\n"
    "steps = []\n"
    "view.observe(lambda change: steps.append(change.new), 'step')\n"
    "display(quiz, view)",
    "print(quiz.question, view.text, view.step, view.pieces, steps[-1])",
    "quiz.question = 0\nview.text = 'lower low'",
    "view.step = 0",
]


@pytest.mark.parametrize("app", ["lab/tree", "notebooks"])
def test_live(jupyter, lab, browser_page, app):
    page = lab if app == "lab/tree" else browser_page
    own_errors = open_live(page, jupyter, app, f"two-{app[:3]}.ipynb", LIVE_CELLS)
    run(page, 0, shows=".tokenizer-view")
    assert page.locator(".quiz").count() == page.locator(".tokenizer-view").count() == 1  # not the copies as well

    page.locator(".quiz").get_by_role("radio").first.focus()
    for key in ("2", "ArrowRight", "1"):
        page.keyboard.press(key)
    assert seen(page)[3] == ["✓ Right."]
    field = page.get_by_role("textbox", name="text to split")
    field.press("End")
    page.keyboard.type("est a b")  # a and b would add cells, if they reached the notebook
    page.locator(".tv-stage").press("ArrowLeft")
    assert pieces(page) == [["low", "es", "t</w>"], ["a</w>"], ["b</w>"]]
    assert page.locator(".jp-CodeCell").count() == 4
    assert_prints(page, 1, "1 lowest a b 3 ('low', 'es', 't</w>', 'a</w>', 'b</w>') 3")

    run(page, 2)
    page.locator(".tv-count", has_text="step 4 of 4").wait_for()
    assert pieces(page) == [["lower</w>"], ["lo", "w</w>"]]
    assert field.input_value() == "lower low"
    assert seen(page)[2] == ["✓"]  # the first question, as it was left
    run(page, 3)
    page.locator(".tv-count", has_text="step 0 of 4").wait_for()
    assert page.outside_requests == []
    assert page.script_errors == own_errors


def test_reopened_untrusted_the_quiz_unfolds(jupyter, lab):
    page = lab
    outputs = [new_output("display_data", data=widget._repr_mimebundle_()[0]) for widget in widgets().values()]
    save(jupyter[1], "untrusted.ipynb", [new_code_cell("quiz", outputs=outputs)])
    visit(page, jupyter, "lab/tree", "untrusted.ipynb")
    page.locator("summary", has_text="Scores.").click()
    assert page.get_by_text("✗ No. Scores go in.").is_visible()
    assert page.locator(".jp-OutputArea-output img").bounding_box()["width"] > 100
    assert page.locator(".quiz, .tokenizer-view").count() == 0
    assert page.outside_requests == []
