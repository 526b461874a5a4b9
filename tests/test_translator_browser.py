"""The translator in a real browser: exported pages, a deck, JupyterLab; no network."""

import pytest
from browser import (
    DARK,
    HEARD,
    OUTSIDE,
    SMALLEST_CONTRAST,
    alone,
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
from sample_translator import on_a_phone, same_as_pytorch, sentences, translations, typed

from course_utils.data import EXAMPLE
from course_utils.widgets import Translator

SHORT = "the man slept ."  # l' homme a dormi . <eos>


@pytest.fixture
def still(browser_page):
    """The page of a reader who wants no motion: all words stand there at once."""
    browser_page.emulate_media(reduced_motion="reduce")
    return browser_page


def words(page):
    """The words that are written."""
    return page.locator(".tr-word.is-written").all_inner_texts()


def candidates(page):
    return page.locator(".tr-candidates li").evaluate_all(
        "rows => rows.map(row => ['.tr-candidate', '.tr-share'].map(part => row.querySelector(part).textContent))")


def said(page):
    return page.locator(".tr-said").inner_text()


# --- the model ---


def test_it_says_what_pytorch_says(show):
    page = mounted(show, "Translator", "translator", Translator(SHORT)._export_state())
    same_as_pytorch(page, "shown.model", translations(sentences(60)))


@pytest.mark.slow
def test_twenty_words_take_less_than_a_tenth_of_a_second(show):
    alone()
    text = next(words for words in sentences(200) if len(words) == 20)
    page = mounted(show, "Translator", "translator", Translator(SHORT)._export_state())
    times = page.evaluate("""(text) => [...Array(15).keys()].map(() => {
      shown.update({ ...state, text: "" });
      const start = performance.now();
      shown.update({ ...state, text });
      document.body.getBoundingClientRect();
      const drawn = performance.now();
      shown.model.translate(text.split(" ").map((word) => shown.ids.get(word)), 120);
      return [drawn - start, performance.now() - drawn];
    })""", " ".join(text))
    drawn, computed = (min(column) for column in zip(*times, strict=True))
    print(f"20 words: {computed:.0f} ms, with everything drawn {drawn:.0f} ms")
    assert drawn < 100


# --- what is shown ---


def test_the_famous_sentence_is_there_at_once(show):
    page = show(Translator(title="Ours"))
    assert page.locator(".is-title").inner_text() == "Ours"
    assert words(page) == [*EXAMPLE.target, "<eos>"]
    assert said(page) == ""
    assert page.locator(".av-readout").inner_text().startswith("zone → area")
    assert page.locator(".tr-chose").inner_text() == "candidates for word 5"
    assert [word for word, _ in candidates(page)][0] == "zone"
    assert page.locator(".tr-truth p").all_inner_texts()[0] == "True translation: the same words."
    assert page.locator(".av-halo").count() == len(EXAMPLE.links) + 1  # one in the legend
    rate = page.locator(".tr-rate").inner_text()
    assert rate.startswith("Alignment error rate: 0.")
    page.locator(".attention-view select").nth(1).select_option("3")
    assert page.locator(".tr-rate").inner_text() != rate


def test_all_three_attentions_in_all_views(show):
    page = show(Translator(SHORT))
    shapes = {"Encoder": (5, 5), "Decoder": (6, 6), "Cross": (6, 5)}
    for part, (rows, columns) in shapes.items():
        page.get_by_role("button", name=part, exact=True).click()
        page.get_by_role("button", name="Matrix", exact=True).click()
        assert page.locator(".av-cells").evaluate("c => [c.height, c.width]") == [rows, columns]
        for view in ("Links", "Grid", "Neuron"):
            page.get_by_role("button", name=view, exact=True).click()
            assert page.locator(".attention-view").get_attribute("data-view") == view.lower()


def test_steps_by_keys_and_by_words(show):
    page = show(HEARD, Translator(SHORT))
    page.locator(".tr-stepping input").focus()
    page.keyboard.press("Home")
    assert words(page) == []
    assert page.locator(".tr-chose").inner_text() == "Nothing is written yet."
    for key in ("ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert words(page) == ["l'", "homme"]
    assert page.locator(".tr-count").inner_text() == "word 2 of 6"
    assert page.locator(".av-readout").inner_text().startswith("homme → man")
    shares = [float(share) for _, share in candidates(page)]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1, abs=0.01)
    page.keyboard.press("ArrowLeft")
    assert words(page) == ["l'"]
    page.keyboard.press("End")
    assert words(page)[-1] == "<eos>"
    page.locator(".tr-word", has_text="dormi").click()  # look again at a word that is written
    assert len(words(page)) == 6
    assert page.locator(".tr-word[aria-current]").inner_text() == "dormi"
    assert candidates(page)[0][0] == "dormi"
    page.locator(".av-stage").press("ArrowUp")
    assert page.locator(".tr-word[aria-current]").inner_text() == "a"
    page.keyboard.press("Escape")
    assert page.evaluate("heard") == []


def test_a_row_that_is_not_written_yet_takes_the_step_along(show):
    page = show(Translator(SHORT, step=2))
    assert words(page) == ["l'", "homme"]
    for _ in range(8):
        page.locator(".av-stage").press("ArrowDown")
    assert len(words(page)) == 6


def test_words_come_one_by_one(show):
    page = show(Translator(SHORT))
    page.clock.install()
    page.clock.pause_at("2100-01-01")
    typed(page, "the queen slept .")
    assert words(page) == []
    page.clock.run_for(200)
    assert words(page) == ["la"]
    page.clock.run_for(2000)
    assert words(page) == ["la", "reine", "a", "dormi", ".", "<eos>"]
    typed(page, "the child slept .")
    page.locator(".tr-stepping input").press("ArrowRight")  # who steps stops it
    page.clock.run_for(2000)
    assert words(page) == ["l'"]


# --- what is typed ---


def test_a_word_is_completed_from_the_lexicon(show, still):
    page = show(Translator(""), page=still)
    field = page.get_by_role("combobox", name="English sentence")
    field.type("the uni")
    options = page.locator(".tr-offers").get_by_role("option")
    assert options.all_inner_texts() == ["universities", "university"]
    assert field.get_attribute("aria-expanded") == "true"
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert field.input_value() == "the university "
    field.type("sle")
    options.get_by_text("slept").click()
    assert field.input_value() == "the university slept "
    assert options.count() == 0
    page.keyboard.press("Enter")
    assert words(page) == ["l'", "université", "a", "dormi", ".", "<eos>"]
    field.type("s")
    page.keyboard.press("Tab")
    assert not page.locator(".tr-offers").is_visible()


def test_a_sentence_is_chosen(show, still):
    page = show(Translator(""), page=still)
    picker = page.get_by_role("combobox", name="a sentence with a known translation")
    assert picker.locator("option").count() == 301
    assert picker.locator("optgroup").evaluate_all("groups => groups.slice(0, 3).map(g => g.label)") == [
        "Bahdanau et al. 2015, figure 3", "4 words", "5 to 9 words"]
    picker.select_option("0")
    assert words(page) == [*EXAMPLE.target, "<eos>"]
    assert page.get_by_role("combobox", name="English sentence").input_value() == " ".join(EXAMPLE.source)


@pytest.mark.parametrize(("text", "message"), [
    ("", "Type an English sentence, or choose one. It knows 131 words"),
    ("The dog and the cat slept.", "It has never read dog, cat: to it, these are <unk>."),
    ("the man saw " * 20, "61 words: in training no sentence had more than 40, so do not trust what comes."),
    ("the " * 150, "Of these it reads the first 100."),
])
def test_it_says_what_it_can_do(show, still, text, message):
    page = show(Translator(), page=still)
    typed(page, text)
    assert message in said(page)
    assert page.locator(".tr-below").is_visible() == bool(text)
    typed(page, SHORT)
    assert words(page)[-2:] == [".", "<eos>"]
    assert said(page) == ""


@pytest.mark.parametrize(("name", "wrote", "why"), [
    ("new word", "les étudiants lisent les étudiants .", "“the students read the students”"),
    ("odd order", "la maison voit la vieille reine .", "“the house sees the old queen”"),
    ("too long", "la vieille reine voit la maison et les médecins lisent une lettre et les enfants dorment près de l' "
                 "hôpital et il visite un petit pays et le gouvernement a signé l' accord et un livre et ils "
                 "travaillent .", "“a man wrote” and “were not seen” are gone"),
])
def test_it_fails_where_it_says_so(show, still, name, wrote, why):
    page = show(Translator(), page=still)
    page.locator(".tr-failures button", has_text=name).click()
    assert words(page) == [*wrote.split(), "<eos>"]
    assert why in said(page)


def test_a_press_selects_what_stands_there_and_the_next_one_does_not(show, still):
    page = show(Translator(SHORT), page=still)
    field = page.get_by_role("combobox", name="English sentence")
    field.click()
    page.keyboard.type("he slept")
    assert field.input_value() == "he slept"
    field.click(position={"x": 12, "y": 12})
    page.keyboard.type("x")
    assert field.input_value() == "xhe slept"


def test_on_a_phone_the_answer_is_brought_into_view(show, open_page):
    page = show('<meta name="viewport" content="width=device-width, initial-scale=1"><p style="height: 600px">',
                Translator(), page=open_page(viewport={"width": 390, "height": 844}, reduced_motion="reduce"))
    typed(page, "the dog slept .")
    for place in (".tr-said", ".tr-words"):
        box = page.locator(place).bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 844


def test_a_translation_that_is_not_the_true_one_has_no_alignment(show, still):
    page = show(Translator(), page=still)
    wrong = page.evaluate_handle("0")
    picker = page.get_by_role("combobox", name="a sentence with a known translation")
    for k in range(300, 0, -1):
        picker.select_option(str(k - 1))
        if "its alignment does not fit" in page.locator(".tr-truth").inner_text():
            wrong = k
            break
    assert isinstance(wrong, int), "it translates all of them without a mistake"
    assert page.locator(".tr-rate").count() == 0
    assert page.locator(".av-alignment-key").count() == 0


# --- for everyone ---


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_serious_and_the_paper_stays_light(show, dark):
    view = Translator("the dog slept .", title="T")
    page = show("<title>t</title>", DARK * dark, "<main><h1>t</h1>", view, "</main>")
    page.emulate_media(color_scheme="dark" if dark else "light")
    assert serious(page, ".translator") == []
    page.get_by_role("combobox", name="English sentence").fill("the m")
    assert serious(page, ".translator") == []
    found = contrasts(page, ".translator")
    assert [c for c in found if c[0] < SMALLEST_CONTRAST and c[0] > 1.0] == []
    assert all(light > 20 for c in found for light in map(float, c[2][4:-1].split(",")[:3]))


def test_a_screen_reader_hears_names_and_values(show):
    heard = show(Translator(SHORT, title="T")).locator(".translator").aria_snapshot()
    for line in ('group "T"', 'combobox "English sentence"', 'list "translation"', "listitem", 'button "homme"',
                 'slider "words written"', 'application "6 target queries, 5 source keys'):
        assert line in heard, heard


@pytest.mark.parametrize("text", [SHORT, " ".join(EXAMPLE.source), "the man saw " * 20])
def test_on_a_phone_nothing_is_lost(show, open_page, text):
    on_a_phone(show, open_page, Translator(text), ".translator")


def test_without_scripts(show, open_page):
    page = show(Translator(SHORT), page=open_page(java_script_enabled=False))
    assert f"translates English to French where scripts run. Sentence: {SHORT}" in page.locator("body").inner_text()


def test_in_a_deck_it_fits_and_only_the_remote_control_turns(browser_page, tmp_path):
    open_slides(browser_page, tmp_path, Translator(title="T"), Translator(SHORT))
    only_the_remote_control_turns(browser_page, [(1, ".tr-stepping input"), (2, ".tr-text")],
                                  ("ArrowRight", "ArrowLeft", "2", "n", "Home"))


LONG = "the old queen sees the house and the doctors read a letter and " * 4 + "the students work ."


def test_on_a_slide_the_map_is_whole_and_its_words_can_be_read(still, tmp_path):
    open_slides(still, tmp_path, Translator())
    still.evaluate("Reveal.slide(1)")
    label, board, stage = still.evaluate("""[
      parseFloat(getComputedStyle(document.querySelector(".av-token")).fontSize)
        * document.querySelector(".translator").style.zoom,
      document.querySelector(".av-board").getBoundingClientRect().height,
      document.querySelector(".av-stage").getBoundingClientRect().height]""")
    assert label >= 18
    assert board >= 330
    for text in (" ".join(EXAMPLE.source), SHORT, "the cat sat on the mat .", LONG):
        typed(still, text)
        assert still.evaluate(OUTSIDE) == []
        assert still.locator(".av-stage").evaluate(
            "s => s.scrollHeight <= s.clientHeight && s.scrollWidth <= s.clientWidth"), text
        assert still.locator(".av-stage").bounding_box()["height"] <= stage + 1


def test_what_was_drawn_before_the_slides_began_takes_their_room(show):
    page = show(Translator())
    size = "parseFloat(getComputedStyle(document.querySelector('.av-token')).fontSize)"
    assert page.evaluate(size) < 20
    page.evaluate("document.body.classList.add('reveal')")
    page.wait_for_function(f"{size} === 20")
    page.evaluate("document.body.classList.remove('reveal')")
    page.wait_for_function(f"{size} < 20")


def test_update_draws_in_place_and_tells_nothing(show):
    page = mounted(show, "Translator", "translator", Translator(SHORT)._export_state())
    page.evaluate("field = document.querySelector('.tr-text')")
    page.evaluate("shown.update({...state, text: 'the queen\\nslept', step: 2})")
    assert page.locator(".tr-text").input_value() == "the queen slept"
    assert words(page) == ["la", "reine"]
    assert page.evaluate("field.isConnected")
    page.evaluate("shown.update({...state, text: '', step: 2})")
    assert words(page) == []
    page.evaluate("shown.update({...state, title: 'new'})")
    assert page.locator(".is-title").inner_text() == "new"
    assert len(words(page)) == 6
    assert page.locator(".attention-view").count() == 1
    assert page.evaluate("told") == []
    page.locator(".tr-stepping input").press("ArrowLeft")
    assert page.evaluate("told") == [{"step": 5}]
    typed(page, "the man slept")
    page.wait_for_timeout(30)
    assert destroyed(page, ["Enter", "ArrowLeft"]) == []
    page.wait_for_timeout(400)
    assert page.evaluate("told") == []


# --- JupyterLab ---

LIVE_CELLS = [
    "from course_utils.widgets import Translator\nview = Translator()\nview",
    "print(view.text, view.step)",
    "view.text, view.step = 'the queen slept .', 2",
]


def test_live(jupyter, lab):
    page = lab
    page.emulate_media(reduced_motion="reduce")
    own_errors = open_live(page, jupyter, "lab/tree", "translator.ipynb", LIVE_CELLS)
    run(page, 0, shows=".translator")
    assert words(page) == [*EXAMPLE.target, "<eos>"]
    typed(page, SHORT)
    page.locator(".tr-stepping input").press("ArrowLeft")
    assert words(page) == ["l'", "homme", "a", "dormi", "."]
    assert_prints(page, 1, f"{SHORT} 5")
    run(page, 2)
    page.locator(".tr-word.is-written", has_text="reine").wait_for()
    assert words(page) == ["la", "reine"]
    page.emulate_media(reduced_motion="null")
    assert page.outside_requests == []
    assert page.script_errors == own_errors
