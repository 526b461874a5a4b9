"""The two recurrent translators in a real browser: exported pages, a deck, JupyterLab; no network."""

import pytest
from browser import (
    DARK,
    HEARD,
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
from sample_translator import on_a_phone, recurrent, same_as_pytorch, sentences, translations, typed

from course_utils.data import EXAMPLE
from course_utils.widgets import TwoTranslators

SHORT = "the man slept ."
LONG = max(sentences(60), key=len)


def words(page, name):
    """The words of one translation."""
    return page.get_by_role("list", name=f"translation {name} attention", exact=True).locator("li").all_inner_texts()


def english(page):
    """The words of the sentence, as they are shaded."""
    return page.get_by_role("list", name="English sentence, word by word").locator("li").all_inner_texts()


def slider(page):
    return page.get_by_role("slider", name="words in the sentence")


@pytest.mark.parametrize("name", ["without", "with"])
def test_it_says_what_pytorch_says(show, name):
    page = mounted(show, "TwoTranslators", "two_translators", TwoTranslators(SHORT)._export_state())
    same_as_pytorch(page, f"shown.models[{['without', 'with'].index(name)}]",
                    translations(sentences(60), recurrent(name)))


@pytest.mark.slow
def test_twenty_words_take_less_than_a_tenth_of_a_second(show):
    alone()
    text = next(words for words in sentences(200) if len(words) == 20)
    page = mounted(show, "TwoTranslators", "two_translators", TwoTranslators(SHORT)._export_state())
    times = page.evaluate("""(text) => [...Array(15).keys()].map(() => {
      shown.update({ ...state, text: "" });
      const start = performance.now();
      shown.update({ ...state, text });
      document.body.getBoundingClientRect();
      return performance.now() - start;
    })""", " ".join(text))
    print(f"20 words, both models, everything drawn: {min(times):.0f} ms")
    assert min(times) < 100


def test_the_famous_sentence_is_there_at_once(show):
    page = show(TwoTranslators(title="Ours"))
    assert page.locator(".is-title").inner_text() == "Ours"
    assert words(page, "with") == list(EXAMPLE.target)
    counts = page.locator(".tt-count").all_inner_texts()
    assert counts[1] == f"{len(EXAMPLE.target)} of {len(EXAMPLE.target)} words right"
    assert english(page) == [*EXAMPLE.source, "<eos>"]
    assert " ".join(EXAMPLE.target) in page.locator(".tr-truth").inner_text()


def test_the_slider_makes_the_sentence_longer(show):
    page = show(HEARD, TwoTranslators(SHORT))
    assert slider(page).get_attribute("aria-valuetext") == "4 words"
    assert page.locator("del").count() == 0
    slider(page).press("End")
    length = int(slider(page).get_attribute("aria-valuetext").split()[0])
    assert length >= 38
    assert len(page.get_by_role("combobox", name="English sentence").input_value().split()) == length
    lost, kept = (int(count.split()[0]) for count in page.locator(".tt-count").all_inner_texts())
    assert lost < kept
    assert page.locator("[aria-label='without attention'] del").count() > 0
    slider(page).press("ArrowLeft")
    assert int(slider(page).get_attribute("aria-valuetext").split()[0]) == length - 1
    assert page.evaluate("heard") == []


def test_a_word_is_looked_at(show):
    page = show(TwoTranslators(SHORT))
    page.get_by_role("button", name="dormi").click()
    said = page.get_by_role("status").filter(has_text="looks at")
    assert said.inner_text().startswith("dormi looks at slept ")
    assert page.locator(".tr-word[aria-current]").inner_text() == "dormi"
    weights = {word.inner_text(): float(word.evaluate("word => word.style.getPropertyValue('--weight')"))
               for word in page.locator("[lang=en] .tr-word").all()}
    assert max(weights, key=weights.get) == "slept"
    assert sum(weights.values()) == pytest.approx(1, abs=1e-3)
    page.get_by_role("button", name="homme").hover()
    assert said.inner_text().startswith("homme looks at man ")
    page.keyboard.press("Tab")                                                 # the keyboard goes on from "dormi"
    assert page.locator(".tr-word[aria-current]").inner_text() == "."


def test_it_opens_on_a_word_that_only_attention_got_right(show):
    text = "the university of a hospital sells an old school ."
    page = show(TwoTranslators(text))
    looked_at = page.locator(".tr-word[aria-current]")
    assert page.locator("[aria-label='without attention'] del").all_inner_texts() == ["vieil"]
    assert looked_at.inner_text() == "vieille"
    typed(page, text.replace("hospital", "dog"))                               # no truth known: where the two differ
    lost, kept = words(page, "without"), words(page, "with")
    assert looked_at.inner_text() == next(k for w, k in zip(lost, kept, strict=False) if w != k)
    typed(page, SHORT)                                                         # both right
    assert looked_at.inner_text() == "l'"


@pytest.mark.parametrize(("text", "message"), [
    ("", "Type an English sentence, or choose one. It knows 131 words"),
    ("The dog and the cat slept.", "It has never read dog, cat: to it, these are <unk>."),
    ("the man saw " * 20, "61 words: in training no sentence had more than 40, so do not trust what comes."),
])
def test_it_says_what_it_can_do(show, text, message):
    page = show(TwoTranslators())
    typed(page, text)
    assert message in page.locator(".tr-said").inner_text()
    assert page.locator(".tr-below").is_visible() == bool(text)
    if text:
        assert "no true translation is known" in page.locator(".tr-truth").inner_text()
        # who is right is not known: what differs is not drawn as a mistake
        assert all("wavy" not in word.evaluate("word => getComputedStyle(word).textDecoration")
                   for word in page.locator("del").all())
        assert page.locator(".tt-count").all_inner_texts() == ["", ""]
    page.get_by_role("combobox", name="a sentence with a known translation").select_option("0")
    assert words(page, "with") == list(EXAMPLE.target)


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_serious_and_the_paper_stays_light(show, dark):
    view = TwoTranslators(" ".join(LONG), title="T")
    page = show("<title>t</title>", DARK * dark, "<main><h1>t</h1>", view, "</main>")
    page.emulate_media(color_scheme="dark" if dark else "light")
    assert serious(page, ".two-translators") == []
    found = contrasts(page, ".two-translators")
    assert [c for c in found if c[0] < SMALLEST_CONTRAST and c[0] > 1.0] == []


def test_a_screen_reader_hears_names_and_values(show):
    page = show(TwoTranslators(title="T"))
    slider(page).press("End")
    heard = page.locator(".two-translators").aria_snapshot()
    for line in ('group "T"', 'combobox "English sentence"', 'slider "words in the sentence 4', "words right",
                 'list "translation without attention"', 'list "translation with attention"', "deletion"):
        assert line in heard, heard


@pytest.mark.parametrize("text", [SHORT, " ".join(LONG), "the man saw " * 20])
def test_on_a_phone_nothing_is_lost(show, open_page, text):
    on_a_phone(show, open_page, TwoTranslators(text), ".two-translators")


def test_in_a_deck_only_the_remote_control_turns(browser_page, tmp_path):
    open_slides(browser_page, tmp_path, TwoTranslators(title="T"), TwoTranslators(SHORT))
    only_the_remote_control_turns(browser_page, [(1, ".tt-length input"), (2, ".tr-text")],
                                  ("ArrowRight", "ArrowLeft", "2", "n", "Home"))


def test_a_sentence_of_any_length_is_read_on_a_slide_from_the_last_row(browser_page, tmp_path):
    page = browser_page
    page.set_viewport_size({"width": 1280, "height": 720})
    open_slides(page, tmp_path, TwoTranslators(SHORT), tags=("hide-input",))
    page.evaluate("Reveal.slide(1)")
    for length in (4, 10, 18, 26, 34, 40):
        slider(page).evaluate("(e, at) => { e.value = at; e.dispatchEvent(new Event('input')); }", length - 4)
        assert len(english(page)) == length + 1
        assert page.locator(".two-translators").bounding_box()["height"] <= 600
        for part in page.locator(".two-translators .tr-words").all():
            cut = part.evaluate("e => e.scrollHeight - e.clientHeight")
            assert part.evaluate("e => parseFloat(getComputedStyle(e).fontSize)") >= 24, length
            assert cut <= 0, length


def test_update_draws_in_place_and_tells_nothing(show):
    page = mounted(show, "TwoTranslators", "two_translators", TwoTranslators(SHORT)._export_state())
    page.evaluate("shown.update({...state, text: 'the queen\\nslept'})")
    assert words(page, "with") == ["la", "reine", "a", "dormi", "."]
    page.evaluate("shown.update({...state, title: 'new'})")
    assert page.locator("[lang=en]").count() == 1
    assert page.evaluate("told") == []
    typed(page, "the man slept")
    assert page.evaluate("told") == [{"text": "the man slept"}]
    assert destroyed(page, ["Enter", "ArrowLeft"]) == []


LIVE_CELLS = [
    "from course_utils.widgets import TwoTranslators\nview = TwoTranslators()\nview",
    "print(view.text)",
    "view.text = 'the queen slept .'",
]


def test_live(jupyter, lab):
    page = lab
    own_errors = open_live(page, jupyter, "lab/tree", "two_translators.ipynb", LIVE_CELLS)
    run(page, 0, shows=".two-translators")
    typed(page, SHORT)
    assert words(page, "with") == ["l'", "homme", "a", "dormi", "."]
    assert_prints(page, 1, SHORT)
    run(page, 2)
    page.locator(".tr-word", has_text="reine").first.wait_for()
    assert page.outside_requests == []
    assert page.script_errors == own_errors
