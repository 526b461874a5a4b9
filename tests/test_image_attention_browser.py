"""The image attention in a real browser: exported pages, a deck, JupyterLab and Notebook; no network."""

import re

import numpy as np
import pytest
from browser import (
    DARK,
    HEARD,
    assert_prints,
    destroyed,
    milliseconds,
    mounted,
    only_the_remote_control_turns,
    open_live,
    open_slides,
    press,
    run,
    serious,
)

from course_utils.widgets import ImageAttention

RNG = np.random.default_rng(4)
GREY = RNG.random((6, 8))
SELF = RNG.dirichlet(np.full(48, 0.1), size=(2, 4, 48))       # layers, heads, queries, keys
WORDS = ["a", "</script><img src=x onerror=alert(1)>", "שלום", "👩‍🔬"]
CAPTION = RNG.dirichlet(np.ones(6), size=4)                   # queries, keys
COLOUR = RNG.random((40, 60, 3))


def pixels(**changes):
    return ImageAttention(**{"image": GREY, "weights": SELF, **changes})


def caption(**changes):
    return ImageAttention(**{"image": COLOUR, "weights": CAPTION, "rows": WORDS, **changes})


def agrees(page, twin):
    """Whether the page shows the tensor."""
    query, key = twin.cell
    weights = twin.weights[twin.layer, twin.head, query].astype(float)
    readout = page.locator(".ia-readout").first
    if weights.shape != twin.weights.shape[3:] or twin.weights[:, :, 0, 0].size > 1:
        assert readout.inner_text().startswith(f"layer {twin.layer}, head {twin.head}: ")
    assert readout.locator(".ia-asking").inner_text() == (twin.rows[query] if twin.rows else twin._place(query))
    assert readout.locator(".ia-looking").inner_text() == twin._place(key)
    assert float(readout.locator("b").inner_text()) == pytest.approx(weights[key], abs=6e-3 if twin.rows else 6e-5)
    np.testing.assert_allclose(areas(page, len(weights)), weights / weights.max(), atol=0.006)
    columns = twin.grid[1]
    for name, place in [("key", key)] + [("query", query)] * (not twin.rows):
        for frame in page.locator(f".ia-frame.ia-{name}").all():
            at = [float(part) for part in re.findall(r"[\d.]+", frame.get_attribute("transform"))]
            side = frame.locator("rect").first.evaluate("""({ x, y, width, height }) => [
              2 * x.baseVal.value + width.baseVal.value, 2 * y.baseVal.value + height.baseVal.value]""")
            assert [round(a / b) for a, b in zip(at, side, strict=True)] == [place % columns, place // columns]


def areas(page, keys):
    """Of the squares on the page, in shares of a full patch; those too small to be drawn are 0."""
    found = page.locator(".ia-squares").first.evaluate("""(path) => {
      const board = path.ownerSVGElement.querySelector("image");
      const [width, height] = [board.width.baseVal.value, board.height.baseVal.value];
      return [...path.getAttribute("d").matchAll(/M([\\d.]+),([\\d.]+)h([\\d.]+)v([\\d.]+)/g)].map((m) => {
        const [x, y, w, h] = m.slice(1).map(Number);
        return [(x + w / 2) / width, (y + h / 2) / height, (w * h) / (width * height)];
      });
    }""")
    columns = {48: 8, 6: 3}[keys]
    shares = np.zeros(keys)
    for x, y, area in found:
        shares[int(y * keys / columns) * columns + int(x * columns)] = area * keys / 0.92**2
    return shares


def middle(page, board, row, column, twin):
    """Where a patch is on the screen."""
    box = page.locator(f".ia-{board} .ia-picture").first.bounding_box()
    down, across = twin.grid
    return box["x"] + (column + 0.5) * box["width"] / across, box["y"] + (row + 0.5) * box["height"] / down


# --- what is drawn ---


@pytest.mark.parametrize("twin", [
    pixels(layer=1, head=2, cell=(30, 7)), pixels(), caption(), caption(cell=(3, 5)), pixels(weights=0.9 * SELF)])
def test_the_page_shows_the_tensor(show, twin):
    page = show(twin)
    agrees(page, twin)
    rest = "Elsewhere, not on the picture: 0.1000." in page.locator(".ia-readout").inner_text()
    assert rest == (twin.weights.sum() < 0.95 * twin.weights[..., 0].size)
    assert page.script_errors == []


def test_sixteen_bits_of_a_peaked_row_lose_nothing(show):
    """784 small weights, each off by up to half a step, would add up to a share that is nowhere."""
    scores = 4 * np.random.default_rng(1).normal(size=(784, 784))
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    page = show(ImageAttention(np.zeros((28, 28)), weights / weights.sum(axis=1, keepdims=True)))
    assert "Elsewhere" not in page.locator(".ia-readout").inner_text()


def test_a_query_that_looks_at_nothing_says_so(show):
    weights = SELF.copy()
    weights[0, 0, 28] = 0
    page = show(pixels(weights=weights, cell=(28, 0)))
    says = page.locator(".ia-readout").inner_text()
    assert says == "layer 0, head 0: row 3, column 4 looks at nothing in the picture."
    assert page.locator(".ia-squares").get_attribute("d") == ""


def test_pixels_and_patches_have_their_names(show):
    page = show(pixels(), pixels(image=np.zeros((60, 80))))
    heads = page.locator(".ia-side:first-child > .ia-asking").all_inner_texts()
    assert heads == ["which pixel asks: click it", "which patch asks: click it"]


def test_what_a_word_frames_stands_in_one_outline(show):
    framed = np.array([[0, 1, 1, 0, 1, 0], 6 * [0], 6 * [1], 6 * [0]], bool)
    page = show(caption(framed=framed, asks="moved to"))
    assert page.locator(".ia-side:first-child > .ia-asking").inner_text() == "moved to"
    for word, sides in ((0, 8), (1, 0), (2, 10)):
        page.locator(".ia-word").nth(word).click()
        assert page.locator(".ia-framed").get_attribute("d").count("M") == sides


def test_the_chosen_patch_leaves_the_outline_seen(show):
    page = show(caption(framed=np.ones((4, 6), bool)), caption())
    inset, half = page.locator(".ia-key rect").first.evaluate("""(rect) => {
      const outline = document.querySelector(".ia-framed");
      const widths = [rect, outline].map((mark) => parseFloat(getComputedStyle(mark).strokeWidth));
      return [rect.x.baseVal.value, (widths[0] + widths[1]) / 2];
    }""")
    assert inset > half
    assert page.locator(".ia-outlined").all_inner_texts() == ["outlined in green: what the word names"]


def test_what_a_word_says_shows_while_it_is_chosen(show):
    page = show(caption(rows=["its own", "two → eight", "six → six", "end"]))
    words = page.locator(".ia-word")
    assert words.all_inner_texts() == ["its own", "two", "six", "end"]
    words.nth(1).click()
    assert words.all_inner_texts() == ["its own", "two → eight", "six", "end"]
    words.nth(2).click()
    assert words.all_inner_texts() == ["its own", "two", "six → six", "end"]


def test_the_small_pictures_are_those_of_the_heads(show):
    twin = pixels(cell=(20, 0))
    page = show(twin)
    tiles = page.locator(".ia-tile")
    assert tiles.count() == 8
    found = tiles.evaluate_all("""(tiles) => tiles.map((tile) => {
      const { data } = tile.getContext("2d").getImageData(0, 0, tile.width, tile.height);
      return [tile.height, tile.width, ...data.filter((_, k) => k % 4 === 1)];
    })""")
    for (height, width, *greens), weights in zip(found, twin.weights[:, :, 20].reshape(8, 48), strict=True):
        assert (height, width) == (6, 8)
        assert np.argmax(greens) == weights.argmax()
    assert tiles.evaluate_all("tiles => tiles.map(t => t.classList.contains('is-current'))") == [True] + [False] * 7
    assert show(caption()).locator(".ia-tile").count() == 0


def test_a_coarse_picture_keeps_its_pixels_and_its_shape(show):
    page = show(pixels(), caption())
    rendering = page.locator(".ia-picture").evaluate_all("nodes => nodes.map(n => getComputedStyle(n).imageRendering)")
    assert rendering == ["pixelated", "pixelated", "pixelated"]
    assert show(pixels(image=np.zeros((300, 400)), grid=(6, 8))).locator(".ia-picture").first.evaluate(
        "n => getComputedStyle(n).imageRendering") == "auto"
    box = page.locator(".ia-looks .ia-picture").first.bounding_box()
    assert box["width"] / box["height"] == pytest.approx(4 / 3, rel=0.01)


# --- mouse and keys ---


def test_a_press_asks_and_a_hover_reads_off(show):
    twin = pixels()
    page = show(twin)
    page.mouse.move(*middle(page, "asks", 1, 1, twin))
    page.mouse.move(*middle(page, "asks", 1, 2, twin))
    agrees(page, twin)                                        # nobody has asked yet
    page.mouse.click(*middle(page, "asks", 2, 5, twin))
    twin.cell = 21, int(twin.weights[0, 0, 21].argmax())
    agrees(page, twin)
    page.mouse.move(*middle(page, "looks", 4, 3, twin))
    page.mouse.move(*middle(page, "looks", 5, 3, twin))
    twin.cell = 21, 43
    agrees(page, twin)
    page.locator(".ia-tile").nth(6).click()
    twin.layer, twin.head, twin.cell = 1, 2, (21, int(twin.weights[1, 2, 21].argmax()))
    agrees(page, twin)


def test_a_word_is_clicked(show):
    twin = caption()
    page = show(twin)
    page.locator(".ia-word").nth(1).click()
    twin.cell = 1, int(CAPTION[1].argmax())
    agrees(page, twin)
    assert page.locator(".ia-word.is-current").all_inner_texts() == [WORDS[1]]


def test_keys(show):
    twin = pixels(cell=(0, 9))
    page = show(HEARD, twin)

    def turn(cell):
        twin.cell = cell
        agrees(page, twin)

    page.locator(".ia-looks").focus()
    for key, at in [("ArrowDown", 17), ("ArrowRight", 18), ("ArrowUp", 10), ("ArrowUp", 2), ("ArrowUp", 2),
                    ("ArrowLeft", 1), ("Home", 0), ("ArrowLeft", 0), ("End", 47), ("ArrowDown", 47)]:
        page.keyboard.press(key)
        turn((0, at))
        assert page.locator(".ia-looks").get_attribute("aria-label") == page.locator(".ia-readout").inner_text()
    page.locator(".ia-asks").focus()
    for key, query in [("ArrowDown", 8), ("ArrowRight", 9), ("End", 47), ("Home", 0)]:
        page.keyboard.press(key)
        turn((query, int(twin.weights[0, 0, query].argmax())))
    for key, layer, head in [("]", 0, 1), ("}", 1, 1), ("}", 1, 1), ("[", 1, 0), ("[", 1, 0), ("{", 0, 0)]:
        page.keyboard.press(key)
        twin.layer, twin.head = layer, head
        turn((0, int(twin.weights[layer, head, 0].argmax())))
    page.keyboard.press("n")  # means nothing here, and must not turn a slide
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body")
    assert page.evaluate("heard") == []


def test_keys_go_from_word_to_word(show):
    twin = caption()
    page = show(twin)
    page.locator(".ia-words").focus()
    for key, query in [("ArrowRight", 1), ("ArrowDown", 2), ("End", 3), ("ArrowRight", 3), ("ArrowUp", 2), ("Home", 0)]:
        page.keyboard.press(key)
        twin.cell = query, int(CAPTION[query].argmax())
        agrees(page, twin)


def test_what_has_the_focus_is_seen(show):
    page = show(pixels())
    for name in ("who asks", "what it looks at"):
        page.keyboard.press("Tab")
        assert page.evaluate("""[document.activeElement.getAttribute("aria-roledescription"),
          getComputedStyle(document.activeElement).outlineWidth]""") == [name, "3px"]


# --- sizes and places ---


@pytest.mark.parametrize("twin", [pixels(title="A picture"), caption(title="A caption"),
                                  pixels(image=np.zeros((8, 6)), title="high"),
                                  pixels(weights=np.broadcast_to(SELF[:1, :1], (12, 12, 48, 48)), title="many")])
def test_it_fits_a_slide(show, twin):
    page = show(twin)
    box = page.locator(".image-attention").bounding_box()
    assert box["width"] <= 1100
    assert box["height"] <= 520
    small = "nodes => Math.min(...nodes.map(node => parseFloat(getComputedStyle(node).fontSize)))"
    assert page.locator(".image-attention :not(.is-hint, canvas)").evaluate_all(small) >= 16
    assert page.locator(".ia-stage").last.bounding_box()["width"] > 200


def test_on_a_narrow_page_nothing_is_lost(show, open_page):
    page = show(pixels(), page=open_page(viewport={"width": 420, "height": 1200}))
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    agrees(page, pixels())


def test_scaled_as_in_a_slide_show(show):
    twin = pixels()
    page = show('<section style="transform: scale(0.6); transform-origin: 0 0">', twin, "</section>")
    page.mouse.click(*middle(page, "asks", 3, 6, twin))
    assert page.locator(".ia-readout .ia-asking").inner_text() == "row 3, column 6"


def test_words_are_text(show):
    page = show(caption(title=WORDS[1]))
    assert page.locator(".ia-word").all_inner_texts() == WORDS
    assert page.locator(".is-title").inner_text() == WORDS[1]
    assert page.locator(".image-attention img").count() == 0


def test_without_scripts_there_is_a_picture(show, open_page):
    page = show(pixels(), page=open_page(java_script_enabled=False))
    assert page.locator("img").bounding_box()["width"] > 500
    assert "a picture of 6 by 8 pixels" in page.locator("img").get_attribute("alt")


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_serious(show, dark):
    page = show("<title>A</title>", DARK * dark, "<main><h1>A</h1>", pixels(title="A"), caption(), "</main>")
    page.emulate_media(color_scheme="dark" if dark else "light")
    assert serious(page, "main") == []


def test_in_print_the_squares_stay(show):
    page = show(pixels())
    page.emulate_media(media="print")
    assert page.locator(".ia-squares").is_visible()
    assert page.locator(".is-hint").is_hidden()
    agrees(page, pixels())


def test_update_draws_in_place_and_tells_nothing(show):
    twin = pixels(cell=(5, 6))
    page = mounted(show, "ImageAttention", "image_attention", twin._export_state())
    page.evaluate("field = document.querySelector('.ia-looks'); shown.update({...state, head: 3, cell: [7, 40]})")
    twin.head, twin.cell = 3, (7, 40)
    agrees(page, twin)
    assert page.evaluate("field.isConnected")
    assert page.evaluate("told") == []
    page.locator(".ia-looks").press("ArrowLeft")
    page.locator(".ia-looks").press("[")
    best = int(SELF[0, 2, 7].argmax())
    assert page.evaluate("told") == [{"cell": [7, 39]}, {"layer": 0, "head": 2, "cell": [7, best]}]
    twin = pixels(weights=SELF[::-1])
    page.locator(".ia-looks").focus()
    page.evaluate("content => shown.update({...shown.state, _content: content})", twin._export_state()["_content"])
    assert page.evaluate("document.activeElement.classList.contains('ia-looks')")
    twin.head, twin.cell = 2, (7, best)
    agrees(page, twin)
    assert destroyed(page, ["ArrowRight", "Home", "]"]) == []


@pytest.mark.slow
def test_half_a_million_weights_answer_within_50_ms(show):
    weights = np.random.default_rng(0).dirichlet(np.ones(196), size=(1, 12, 196))
    page = show(ImageAttention(np.zeros((224, 224, 3)), weights))
    times = milliseconds(page, press(".ia-asks", "k % 2 ? 'ArrowRight' : 'ArrowDown'"))
    print(f"196 patches, 12 heads: {times:.1f} ms")
    assert times < 50


def test_in_a_deck_only_the_remote_control_turns_the_page(browser_page, tmp_path):
    open_slides(browser_page, tmp_path, pixels(title="A picture"), caption())
    controls = [(1, ".ia-asks"), (2, ".ia-words")]
    only_the_remote_control_turns(browser_page, controls,
                                  ("ArrowRight", "ArrowLeft", "]", "Space", "n", "ArrowRight", "Home"))


# --- JupyterLab and Notebook ---

LIVE_CELLS = [
    "import numpy as np\n"
    "from course_utils.widgets import ImageAttention\n"
    "generator = np.random.default_rng(4)\n"
    "image, weights = generator.random((6, 8)), generator.dirichlet(np.full(48, 0.1), size=(2, 4, 48))\n"
    "view = ImageAttention(image, weights)\n"
    "moves = []\n"
    "view.observe(lambda change: moves.append(change.new), 'cell')\n"
    "display(view)",
    "print(view.layer, view.head, view.cell, moves[-1])",
    "view.head, view.cell = 3, (11, 30)",
]


def test_live(jupyter, lab):
    page = lab
    own_errors = open_live(page, jupyter, "lab/tree", "pictures.ipynb", LIVE_CELLS)
    run(page, 0, shows=".image-attention")
    assert page.locator(".image-attention").count() == 1  # the live view, not the copy as well
    page.locator(".ia-asks").focus()
    for key in ("Home", "ArrowDown", "]", "}", "a", "b"):  # a and b would add cells
        page.keyboard.press(key)
    page.locator(".ia-looks").focus()
    page.keyboard.press("End")
    assert page.locator(".jp-CodeCell").count() == 3
    assert_prints(page, 1, "1 1 (8, 47) (8, 47)")
    run(page, 2)
    page.locator(".ia-readout", has_text="row 3, column 6").wait_for()
    agrees(page, pixels(layer=1, head=3, cell=(11, 30)))
    assert page.outside_requests == []
    assert page.script_errors == own_errors
