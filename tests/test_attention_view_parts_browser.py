"""The attention view with three attentions in a real browser: an exported page, a deck, JupyterLab; no network."""

import re
from pathlib import Path

import numpy as np
import pytest
from browser import (
    DARK,
    OUTSIDE,
    assert_prints,
    colours,
    destroyed,
    links,
    mounted,
    open_live,
    open_slides,
    pixels,
    readout,
    run,
    serious,
    tiles,
)
from sample_attentions import SOURCE, TARGET, computed, outputs, three, view

from course_utils.widgets import AttentionView, attention_view

TOKENS = {"encoder": (SOURCE, SOURCE), "decoder": (TARGET, TARGET), "cross": (TARGET, SOURCE)}


def weights(part, layer=0, head=0):
    return getattr(three(), part)[layer, head].numpy()


def shown(page):
    """The part that is pressed, and the tokens on both sides."""
    pressed = page.get_by_role("group", name="Attention", exact=True).locator("[aria-pressed=true]").inner_text()
    sides = (tuple(page.locator(f".av-token.av-{side}").all_inner_texts()) for side in ("query", "key"))
    return pressed.lower(), *sides


def drawn(page):
    """The matrix as colours; a masked cell is not a number."""
    flat, height, width = page.locator(".av-cells").first.evaluate(
        "c => [[...c.getContext('2d').getImageData(0, 0, c.width, c.height).data], c.height, c.width]")
    cells = np.array(flat, dtype=float).reshape(height, width, 4)
    return np.where(cells[..., 3:] == 255, cells[..., :3], np.nan)


def expected(part, layer=0, head=0):
    hidden = np.triu(np.ones((4, 4), bool), 1) if part == "decoder" else np.zeros(weights(part).shape, bool)
    return np.where(hidden[..., None], np.nan, colours(weights(part, layer, head)))


def test_buttons_switch_tensor_and_tokens(show):
    page = show(view())
    for name in ("Decoder", "Encoder", "Cross"):
        page.get_by_role("button", name=name).click()
        part = name.lower()
        assert shown(page) == (part, *TOKENS[part])
        np.testing.assert_allclose(drawn(page), expected(part), atol=3)
        assert page.get_by_role("button", name=name).evaluate("e => e === document.activeElement")
        assert page.get_by_text("true alignment").count() == (part == "cross")
        assert page.get_by_text("masked", exact=True).count() == (part == "decoder")


def test_keys_switch_and_keep_the_focus(show):
    page = show("<script>let heard = []; document.onkeydown = (e) => heard.push(e.key)</script>", view())
    stage = page.locator(".av-stage")
    stage.focus()
    for part in ("encoder", "decoder", "cross", "encoder"):
        page.keyboard.press("p")
        assert shown(page) == (part, *TOKENS[part])
        assert stage.evaluate("e => e === document.activeElement")
        sides = {"encoder": "5 source queries, 5 source keys", "decoder": "4 target queries, 4 target keys",
                 "cross": "4 target queries, 5 source keys"}
        assert stage.get_attribute("aria-label").startswith(sides[part])
    page.keyboard.press("]")
    np.testing.assert_allclose(drawn(page), expected("encoder", head=1), atol=3)
    page.keyboard.press("End")
    assert "column 4" in readout(page)
    assert page.evaluate("heard") == []


def test_the_query_stays_and_reads_its_strongest_key(show):
    page = show(view(cell=(2, 0)))
    page.locator(".av-stage").press("p")
    page.locator(".av-stage").press("p")
    page.locator(".av-stage").press("p")  # through the encoder, whose queries are others
    twin = view(cell=(2, 0))
    for twin.part in ("encoder", "decoder", "cross"):
        pass
    assert f"row {twin.cell[0]}, column {twin.cell[1]}" in readout(page)
    page.locator(".av-token.av-query").nth(1).hover()
    page.get_by_role("button", name="Decoder").click()
    key = weights("decoder")[1].argmax()
    assert readout(page).startswith(f"accord → {TARGET[key]}  {weights('decoder')[1, key]:.4f}")
    assert f"row 1, column {key}" in readout(page)


def test_rows_stay_where_they_are(show):
    """A query that is looked at in two parts must not move."""
    target, source = [f"w{k}" for k in range(12)], [f"source{k}" for k in range(40)]
    page = show(AttentionView(outputs(three(n=12, m=40)), target, source))
    places = []
    for part in ("Cross", "Decoder"):
        page.get_by_role("button", name=part, exact=True).click()
        for kind in ("Matrix", "Links"):
            page.get_by_role("button", name=kind).click()
            places.append([token.bounding_box()["y"] for token in page.locator(".av-token.av-query").all()])
    assert places[0] == places[2]
    assert places[1] == places[3]


def test_masked_cells_say_so(show):
    page = show(view(part="decoder"))
    page.locator(".av-stage").focus()
    for key in ("ArrowUp", "ArrowUp", "ArrowUp", "Home", "ArrowRight"):
        page.keyboard.press(key)
    assert readout(page).startswith("l' → accord  0.0000")
    assert "masked" in readout(page)
    page.keyboard.press("ArrowDown")
    assert "masked" not in readout(page)


def number(text):
    return float(text.replace("−", "-"))


def test_neuron_of_a_part(show):
    """As the translator has it, whose parts all have queries and keys."""
    given = computed()
    contents = {part: AttentionView(**one)._export_state()["_content"][""] for part, one in given.items()}
    state = view(layer=1, head=2, cell=(2, 1))._export_state() | {"_content": contents, "view": "neuron"}
    page = mounted(show, "AttentionView", "attention_view", state)
    page.evaluate("heard = []; document.onkeydown = (e) => heard.push(e.key); 0")
    for part in ("cross", "decoder"):
        page.get_by_role("button", name=part.title()).click()
        page.locator(".av-asking .av-word").nth(2).hover()
        page.locator(".av-answers .av-word").nth(1).hover()
        query, keys = given[part]["queries"][1, 2, 2], given[part]["keys"][1, 2]
        numbers = page.locator(".av-answers .av-number").all_inner_texts()
        scores, weights = keys @ query / 6**0.5, given[part]["weights"][1, 2, 2]
        seen = 3 if part == "decoder" else 5
        assert numbers[::2][seen:] == ["masked"] * (len(keys) - seen)
        np.testing.assert_allclose([number(text) for text in numbers[::2][:seen]], scores[:seen], atol=1e-4)
        np.testing.assert_allclose([number(text) for text in numbers[1::2]], weights, atol=1e-4)
        assert page.locator(".av-asking .av-word").all_inner_texts() == list(TOKENS[part][0])
        assert page.locator(".av-answers .av-word").all_inner_texts() == list(TOKENS[part][1])
        page.locator(".av-stage").press(".")
        said = [number(text) for text in re.findall(r"[−\d.]+", page.locator(".av-one").inner_text())]
        expected = [1, query[1], keys[1, 1], query[1] * keys[1, 1]]
        np.testing.assert_allclose(said, expected, atol=1e-4)
    assert page.evaluate("heard") == []


def strong(part):
    """What two heads draw as links."""
    return {(head, *map(int, pair)) for head in (0, 2) for pair in np.argwhere(weights(part, 0, head) >= 0.01)}


def test_links_and_grid_of_a_part(show):
    page = show(view(part="decoder", view="links", heads=[0, 2]))
    assert links(page) == strong("decoder")
    page.locator(".av-stage").press("p")
    assert page.locator(".av-aligned-links .av-true-link").count() == 1
    assert links(page) == strong("cross")
    page.get_by_role("button", name="Grid").click()
    for part in ("encoder", "cross"):
        page.get_by_role("button", name=part.title()).click()
        for name, picture in tiles(page).items():
            np.testing.assert_allclose(picture, colours(weights(part, int(name[6]), int(name[-1]))), atol=3)
    page.get_by_role("button", name="Decoder").click()
    transparent = page.locator(".av-thumbnail").first.evaluate(
        "c => [...c.getContext('2d').getImageData(0, 0, 4, 4).data].filter((_, k) => k % 4 === 3 && !_).length")
    assert transparent == 6
    page.get_by_role("img", name="layer 1, head 2").click()
    np.testing.assert_allclose(drawn(page), expected("decoder", 1, 2), atol=3)


def test_what_is_cut_says_so_for_each_part(show, monkeypatch):
    monkeypatch.setattr(attention_view, "EXPORTED_AT_MOST", 3 * 60)
    page = show(view())
    assert "holds 3 of 6 heads" in page.get_by_role("note").inner_text()
    page.get_by_role("button", name="Encoder").click()
    assert "holds 2 of 6 heads" in page.get_by_role("note").inner_text()
    np.testing.assert_allclose(pixels(page), colours(weights("encoder")), atol=3)
    options = page.get_by_label("head").locator("option").evaluate_all("all => all.map(o => o.disabled)")
    assert options == [False, False, True]
    page.get_by_role("button", name="Cross").click()
    page.locator(".av-stage").press("[")
    assert page.get_by_label("head").input_value() == "2"
    page.get_by_role("button", name="Encoder").click()  # which has no head 2 in this page
    assert page.get_by_label("head").input_value() == "0"
    np.testing.assert_allclose(pixels(page), colours(weights("encoder")), atol=3)


def test_one_attention_has_no_switch(show):
    page = show(AttentionView(three().encoder, SOURCE))
    assert page.get_by_role("group", name="Attention", exact=True).count() == 0
    page.locator(".av-stage").press("p")
    np.testing.assert_allclose(pixels(page), colours(weights("encoder")), atol=3)
    assert "part" not in page.locator(".av-hint").inner_text()


@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_axe_finds_nothing_serious(show, part):
    page = show("<title>three</title>", DARK, "<main><h1>three</h1>", view(part=part, title="Three"), "</main>")
    for kind in ("Matrix", "Links", "Grid"):
        page.get_by_role("button", name=kind).click()
        assert serious(page, ".attention-view") == []


def test_fits_a_slide_in_every_part_and_view(show):
    target, source = [f"européenne{k}" for k in range(15)], [f"economic{k}" for k in range(14)]
    shown = AttentionView(outputs(three(n=15, m=14)), target, source, [(0, 0)], title="Three attentions", causal=True)
    page = show('<div class="reveal">', shown, "</div>")
    heights = set()
    for part in ("Encoder", "Decoder", "Cross"):
        page.get_by_role("button", name=part).click()
        box = page.locator(".attention-view").bounding_box()
        assert box["width"] <= 1152
        heights.add(box["height"])
    assert len(heights) == 1
    assert heights.pop() <= 520


def test_in_a_deck_keys_stay_in_the_view(browser_page, tmp_path):
    target, source = [f"européenne{k}" for k in range(15)], [f"economic{k}" for k in range(14)]
    open_slides(browser_page, tmp_path, AttentionView(outputs(three(n=15, m=14)), target, source, alignment=[(0, 0)]))
    browser_page.evaluate("Reveal.slide(1)")
    browser_page.locator(".av-stage").focus()
    for _ in range(3):
        browser_page.keyboard.press("p")
        assert browser_page.evaluate(OUTSIDE) == []
    assert browser_page.evaluate("Reveal.getIndices().h") == 1
    assert browser_page.script_errors == []
    assert browser_page.outside_requests == []


def test_update_draws_in_place_and_tells_nothing(show):
    page = mounted(show, "AttentionView", "attention_view", view()._export_state())
    page.evaluate("stage = document.querySelector('.av-stage')")
    page.evaluate("shown.update({...state, part: 'encoder', cell: [4, 4]})")
    assert shown(page)[0] == "encoder"
    assert "row 4, column 4" in readout(page)
    page.evaluate("shown.update({...state, part: 'decoder', cell: [4, 4], layer: 7})")  # what does not exist is coming
    assert readout(page) == "nothing selected"
    assert page.evaluate("stage.isConnected")
    assert page.evaluate("told") == []
    page.get_by_role("button", name="Cross").click()
    assert page.evaluate("told") == [{"part": "cross", "layer": 0, "head": 0, "heads": [],
                                      "cell": list(view()._content["cross"]["cell"])}]
    assert destroyed(page, ["p", "ArrowRight"]) == []


LIVE_CELLS = [
    "from sample_attentions import three, view\n"
    "view = view(cell=(1, 1))\n"
    "parts = []\n"
    "view.observe(lambda change: parts.append(change.new), 'part')\n"
    "view",
    "print(view.part, view.cell, view.layer, view.head, parts)",
    "view.part, view.cell = 'encoder', (4, 3)",
]


def test_live(jupyter, lab):
    page = lab
    cells = [f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n{LIVE_CELLS[0]}", *LIVE_CELLS[1:]]
    own_errors = open_live(page, jupyter, "lab/tree", "three.ipynb", cells)
    run(page, 0, shows=".attention-view")
    page.locator(".av-stage").focus()
    for key in ("}", "p", "p"):
        page.keyboard.press(key)
        page.wait_for_timeout(500)
    assert shown(page)[0] == "decoder"
    row, column = view()._content["decoder"]["cell"]
    page.locator(".av-value", has_text=f"{weights('decoder', 1)[row, column]:.4f}").wait_for()
    np.testing.assert_allclose(drawn(page), expected("decoder", 1), atol=3)  # layer 1 came from the kernel
    assert_prints(page, 1, f"decoder ({row}, {column}) 1 0 ['encoder', 'decoder']")
    run(page, 2)
    page.locator(".av-where", has_text="row 4, column 3").wait_for()
    page.locator(".av-value", has_text=f"{weights('encoder', 1)[4, 3]:.4f}").wait_for()
    assert shown(page) == ("encoder", SOURCE, SOURCE)
    assert page.outside_requests == []
    assert page.script_errors == own_errors
