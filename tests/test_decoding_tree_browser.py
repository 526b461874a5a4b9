"""The decoding tree in a real browser: exported pages, a deck, JupyterLab and Notebook, all without a network."""

import math

import pytest
from browser import (
    DARK,
    HEARD,
    OUTSIDE,
    SMALLEST_CONTRAST,
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
from nbformat.v4 import new_code_cell, new_output
from sample_tree import NODES, tree

from course_utils.widgets import DecodingTree, PositionExplorer

LOG_P = [node["log_prob"] for node in tree()["nodes"]]
SCORE = [node["score"] for node in tree()["nodes"]]


def signed(value):
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def seen(page, path=".dt-node", attribute="node"):
    """Which of these can be seen: the numbers of their nodes."""
    return page.locator(".decoding-tree").first.evaluate("""(root, path) => [...root.querySelectorAll(path)]
      .filter((node) => getComputedStyle(node).visibility === "visible").map((node) => Number(node.dataset.node))
      .sort((a, b) => a - b)""", path)


def selected(page):
    return int(page.locator(".dt-readout").first.get_attribute("data-node"))


def box(page, node):
    return page.locator(f".dt-node[data-node='{node}']").first.bounding_box()


def bushy(steps, beam, word="européenne"):
    """A tree of so many steps: ``beam`` kept and two pruned nodes in each."""
    nodes = [{"parent": None, "word": "<bos>", "kept": True}]
    parents = [0]
    for step in range(1, steps + 1):
        new = []
        for k in range(beam + 2):
            nodes.append({"parent": parents[k % len(parents)], "word": f"{word}{k}", "kept": k < beam, "step": step})
            new += [len(nodes) - 1] * (k < beam)
        parents = new
    for i, node in enumerate(nodes):
        node |= {"id": i, "log_prob": -0.37 * i, "score": -0.2 * i, "finished": False, "greedy": i == 1}
    nodes[0]["step"] = 0
    return {"nodes": nodes, "best": parents[0]}


# --- what is drawn ---


def test_all_of_the_tree_is_shown_first_with_its_numbers(show):
    page = show(DecodingTree(tree(), title="A tree"))
    assert seen(page) == list(range(14))
    assert page.locator(".is-title").inner_text() == "A tree"
    assert page.locator(".dt-count").inner_text() == "step 4 of 4"
    for i, (parent, word, p, _) in enumerate(NODES):
        said = page.locator(f".dt-node[data-node='{i}']")
        assert said.locator(".dt-word").inner_text() == word
        if parent is not None:
            assert said.locator(".dt-numbers").inner_text() == f"{round(100 * p)}% {signed(LOG_P[i])}"


def test_a_press_on_the_frame_gives_it_the_keys(show):
    """In a slide the keys would otherwise go to the next slide."""
    page = show(DecodingTree(tree(), step=1, title="A tree"))
    for part in (".is-title", ".dt-legend"):
        page.locator(part).click()
        assert page.locator(".dt-stage").evaluate("(stage) => document.activeElement === stage")
        page.keyboard.press("Escape")
    page.locator(".is-title").click()
    page.keyboard.press("ArrowRight")
    assert page.locator(".dt-count").inner_text() == "step 2 of 4"


def test_a_press_between_the_nodes_gives_it_the_keys(show):
    page = show(HEARD, DecodingTree(tree(), step=1))
    stage = page.locator(".dt-stage").bounding_box()
    for x, y in ((stage["width"] - 5, 5), (stage["width"] / 2, stage["height"] - 3), (250, stage["height"] - 20)):
        page.evaluate("document.activeElement.blur()")
        page.mouse.click(stage["x"] + x, stage["y"] + y)
        page.keyboard.press("ArrowRight")
        assert page.locator(".dt-count").inner_text() == "step 2 of 4"
        page.keyboard.press("ArrowLeft")
    assert page.evaluate("heard") == []


@pytest.mark.parametrize("given", [
    {}, {"n1": {"log_prob": -0.0001}, "n2": {"log_prob": -10.31}, "n4": {"log_prob": -10.3101}},
    {"n1": {"word": "gypsy gypsy gypsy"}}])
def test_a_node_holds_its_word_and_its_numbers(show, given):
    page = show(DecodingTree(tree(**given)))
    for node in page.locator(".dt-node").all():
        outer = node.bounding_box()
        parts = [part.evaluate("""e => {
            const range = document.createRange();
            range.selectNodeContents(e);
            const { left, right, top, bottom } = range.getBoundingClientRect();
            return { left, right, top, bottom };
        }""") for part in node.locator(".dt-numbers").all()]
        word = node.locator(".dt-word").bounding_box()
        for inner in parts:
            assert outer["x"] + 2 <= inner["left"]
            assert inner["right"] <= outer["x"] + outer["width"] - 2
            assert inner["bottom"] <= outer["y"] + outer["height"]
            numbers = node.locator(".dt-numbers").bounding_box()
            assert word["y"] + word["height"] <= numbers["y"] + 0.5  # descenders stay above the numbers
    assert page.locator(".dt-word").first.evaluate("e => e.scrollHeight <= e.clientHeight")


@pytest.mark.parametrize(("given", "signs"), [(tree(), [False] * 4), (bushy(30, 12), [False, True, False, True])],
                         ids=["all of it", "more to the right and below"])
def test_signs_say_where_there_is_more(show, given, signs):
    page = show(DecodingTree(given))
    seen_signs = "signs => signs.map((sign) => getComputedStyle(sign).display !== 'none')"
    page.wait_for_timeout(100)  # a resize is observed in the next frame
    assert page.locator(".dt-more").evaluate_all(seen_signs) == signs
    page.locator(".dt-stage").evaluate("e => e.scrollTo(1e6, 1e6)")
    page.wait_for_timeout(100)
    assert page.locator(".dt-more").evaluate_all(seen_signs) == [signs[1], False, signs[3], False]


@pytest.mark.parametrize("name", ["decoding-tree", "position-explorer"])
def test_in_a_narrow_place_its_right_edge_is_seen(show, name):
    shown = DecodingTree(bushy(9, 4)) if name == "decoding-tree" else PositionExplorer(length=16, d_model=8)
    page = show('<div id="place" style="width: 700px; overflow: hidden">', shown, "</div>")
    place, widget = page.locator("#place").bounding_box(), page.locator(f".{name}").bounding_box()
    assert widget["x"] + widget["width"] <= place["x"] + place["width"]


def test_columns_are_steps_and_the_likeliest_is_on_top(show):
    page = show(DecodingTree(tree()))
    boxes = [box(page, i) for i in range(14)]
    steps = [node["step"] for node in tree()["nodes"]]
    across = sorted({b["x"] for b in boxes})
    assert [across.index(b["x"]) for b in boxes] == steps
    for column in ([1, 2, 3], [4, 5, 6, 7, 8], [9, 10, 11], [12, 13]):
        heights = [boxes[i]["y"] for i in column]
        assert heights == sorted(set(heights))
    for a in range(14):  # no two nodes lie on each other
        for b in range(a):
            assert abs(boxes[a]["x"] - boxes[b]["x"]) >= boxes[a]["width"] or \
                abs(boxes[a]["y"] - boxes[b]["y"]) >= boxes[a]["height"]


def test_an_edge_runs_from_parent_to_child_as_wide_as_its_probability(show):
    page = show(DecodingTree(tree()))
    lines = page.locator(".dt-edge .dt-line").evaluate_all("""(paths) => paths.map((path) => {
      const at = (length) => path.getPointAtLength(length).matrixTransform(path.getScreenCTM());
      const [a, b] = [at(0), at(path.getTotalLength())];
      return [Number(path.parentNode.dataset.node), Number(path.getAttribute("stroke-width")), a.x, a.y, b.x, b.y];
    })""")
    assert sorted(line[0] for line in lines) == list(range(1, 14))
    for node, width, *ends in lines:
        parent, _, p, _ = NODES[node]
        assert (width - 1) / 5 == pytest.approx(p, abs=0.01)
        a, b = box(page, parent), box(page, node)
        wanted = [a["x"] + a["width"], a["y"] + a["height"] / 2, b["x"], b["y"] + b["height"] / 2]
        assert ends == pytest.approx(wanted, abs=0.6)


def test_kept_pruned_ended_greedy_sampled_and_best_look_different(show):
    page = show(DecodingTree(tree(), node=5))
    style = {i: page.locator(f".dt-node[data-node='{i}']").evaluate(
        "e => { const s = getComputedStyle(e); return [s.borderTopStyle, s.boxShadow, s.borderTopColor]; }")
        for i in range(14)}
    marks = [marks for *_, marks in NODES]
    assert [style[i][0] for i in range(14)] == ["solid" if "k" in m else "dashed" for m in marks]
    assert [style[i][1] != "none" for i in range(14)] == ["f" in m for m in marks]
    assert [i for i in range(14) if style[i][2] == "rgb(27, 127, 92)"] == [0, 2, 4, 9]
    greedy = [i for i, m in enumerate(marks) if "g" in m and i]
    assert seen(page, ".dt-node:has(.dt-greedy)") == greedy == seen(page, ".dt-edge:has(.dt-greedy-line)")
    sampled = [i for i, m in enumerate(marks) if m.strip("kfg") and i]
    assert seen(page, ".dt-edge:has(.dt-sampled-line)") == sampled
    assert page.locator(".dt-sampled-line").first.evaluate("e => getComputedStyle(e).strokeDasharray") == "0px, 5px"
    assert page.locator(".dt-greedy-line").first.evaluate("e => getComputedStyle(e).strokeDasharray") != "none"
    badges = page.locator(".dt-node .dt-sampled").all_inner_texts()
    assert badges == [f"×{m.strip('kfg')}" for m in marks[1:] if m.strip("kfg")]
    legend = page.locator(".dt-legend").inner_text()
    assert all(word in legend for word in ("in the beam", "pruned", "ended", "greedy", "sampled"))
    assert page.locator(".dt-node.is-current").get_attribute("data-node") == "5"
    assert seen(page, ".dt-node.is-on-path") == [0, 1, 5]


@pytest.mark.parametrize(("sampling", "said"), [
    ({"temperature": 0.8, "top_k": 5}, "sampled: temperature 0.8, top-k 5"), ({"top_p": 0.9}, "sampled: top-p 0.9"),
    ({}, "sampled"), (None, "sampled")])
def test_the_legend_says_how_samples_were_drawn(show, sampling, said):
    page = show(DecodingTree(tree() | {"sampling": sampling}))
    assert page.locator(".dt-legend .dt-sample").last.inner_text().split("×2")[1].strip() == said
    nodes = [node | {"sampled": 0} for node in tree()["nodes"]]
    page = show(DecodingTree({"nodes": nodes, "best": 9, "sampling": sampling}))
    assert "sampled" not in page.locator(".dt-legend").inner_text()


def test_the_legend_names_only_what_is_there(show):
    nodes = [node | {"greedy": False, "sampled": 0} for node in tree()["nodes"]]
    legend = show(DecodingTree({"nodes": nodes, "best": 9})).locator(".dt-legend").inner_text()
    assert "greedy" not in legend
    assert "sampled" not in legend


def test_readout_explains_the_numbers(show):
    page = show(DecodingTree(tree()))
    page.locator(".dt-node[data-node='5']").hover()
    assert page.locator(".dt-path").text_content() == "<bos> a x"
    log_p, score = signed(LOG_P[5]), signed(SCORE[5])
    assert page.locator(".dt-facts").inner_text() == (
        f"p = 0.4000 · log p = {signed(LOG_P[1])} + log 0.4000 = {log_p} · score = {log_p} / 1.17 = {score} · "
        "in the beam · greedy")
    assert page.locator(".dt-stage").get_attribute("aria-label").startswith("step 4 of 4. <bos> a x. p = 0.400")
    page.locator(".dt-node[data-node='11']").hover()
    assert page.locator(".dt-facts").inner_text().endswith("not in the beam · in 1 sample")
    page.locator(".dt-node[data-node='0']").hover()
    assert page.locator(".dt-facts").inner_text() == "the start: nothing is written yet"


def test_outputs_are_listed_by_score_when_they_are_complete(show):
    page = show(DecodingTree(tree()))
    rows = page.locator(".dt-output")
    assert [int(row.get_attribute("data-node")) for row in rows.all()] == [9, 12, 11, 8]
    assert rows.locator(".dt-sentence").all_inner_texts() == ["b x", "a x y", "c z", "c"]
    assert rows.locator(".dt-marks").all_inner_texts() == [
        "★ best", "greedy", "sampled ×1", "sampled ×1"]
    assert rows.first.locator(".dt-score").inner_text() == f"{signed(SCORE[9])} = {signed(LOG_P[9])} / 1.33"
    page.get_by_role("button", name="a x y").click()
    assert selected(page) == 12
    assert [row.get_attribute("aria-pressed") for row in rows.all()] == ["false", "true", "false", "false"]
    page.locator(".dt-stage").press("Home")
    shown = []
    for _ in range(4):
        page.keyboard.press("ArrowRight")
        shown.append(seen(page, ".dt-output"))
    assert shown == [[], [8], [8, 9, 11], [8, 9, 11, 12]]


# --- keys and buttons ---


def test_keys(show):
    page = show("<script>let heard = []; document.onkeydown = (e) => heard.push(e.key)</script>", DecodingTree(tree()))
    page.locator(".dt-stage").focus()
    for key, step, node in [
        ("Home", 0, 0), ("ArrowLeft", 0, 0), ("ArrowRight", 1, 1), ("ArrowDown", 1, 2), ("ArrowDown", 1, 3),
        ("ArrowDown", 1, 3), ("ArrowUp", 1, 2), ("ArrowRight", 2, 4), ("ArrowUp", 2, 4), ("ArrowRight", 3, 9),
        ("ArrowRight", 4, 9), ("ArrowDown", 4, 10), ("ArrowRight", 4, 10), ("ArrowLeft", 3, 9), ("End", 4, 9),
    ]:
        page.keyboard.press(key)
        assert page.locator(".dt-count").inner_text() == f"step {step} of 4", key
        assert selected(page) == node, key
        assert seen(page) == [i for i, n in enumerate(tree()["nodes"]) if n["step"] <= step], key
        assert seen(page, ".dt-edge") == seen(page)
        assert (page.locator(".dt-node.is-best").count() > 0) == (step == 4), key  # named only at the end
    page.keyboard.press("n")  # means nothing here, and must not turn a slide
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body")
    assert page.evaluate("heard") == []


def test_buttons_step_and_keep_the_focus_at_the_ends(show):
    page = show(DecodingTree(tree(), step=1))
    for name, step in [("next step", 2), ("to the end", 4), ("next step", 4), ("a step back", 3), ("to the start", 0),
                       ("a step back", 0)]:
        button = page.get_by_role("button", name=name)
        button.click(force=True)
        assert page.locator(".dt-count").inner_text() == f"step {step} of 4", name
        assert button.evaluate("e => e === document.activeElement")
    disabled = page.locator(".dt-bar button").evaluate_all("b => b.map(e => e.getAttribute('aria-disabled'))")
    assert disabled == ["true", "true", "false", "false"]
    page.keyboard.press("ArrowRight")  # keys also work from a button
    assert page.locator(".dt-count").inner_text() == "step 1 of 4"


def test_focus_is_seen_and_every_control_is_reached(show):
    page = show(DecodingTree(tree()))
    reached = []
    for _ in range(9):
        page.keyboard.press("Tab")
        name, outline = page.evaluate("""[document.activeElement.getAttribute("aria-label")?.slice(0, 11)
          || document.activeElement.dataset.node, getComputedStyle(document.activeElement).outlineWidth]""")
        assert outline == "3px"
        reached.append(name)
    assert reached == ["to the star", "a step back", "next step", "to the end", "step 4 of 4", "9", "12", "11", "8"]
    page.keyboard.press("Enter")
    assert selected(page) == 8


def test_hidden_nodes_are_neither_pointed_at_nor_focused(show):
    page = show(DecodingTree(tree(), step=1))
    place = box(page, 12)
    page.mouse.move(place["x"] + 20, place["y"] + 10)
    page.mouse.move(place["x"] + 30, place["y"] + 12)
    assert selected(page) == 1
    for _ in range(6):
        page.keyboard.press("Tab")
    assert page.evaluate("!document.activeElement.classList.contains('dt-output')")


def test_a_screen_reader_hears_title_buttons_and_the_selected_node(show):
    page = show(DecodingTree(tree(), step=2, title="A tree"))
    heard = page.locator(".decoding-tree").aria_snapshot()
    for line in ('group "A tree"', 'button "next step"', "status:", 'application "step 2 of 4. <bos> b x. p = 0.900'):
        assert line in heard, heard


# --- sizes ---


@pytest.mark.parametrize(("steps", "beam"), [(9, 4), (12, 5), (5, 8), (1, 2)])
def test_fits_a_slide(show, steps, beam):
    page = show(DecodingTree(bushy(steps, beam), title="she protected a house ."))
    size = page.locator(".decoding-tree").bounding_box()
    assert size["width"] <= 1100
    assert size["height"] <= 520
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if steps <= 9 and beam <= 4:
        stage = page.locator(".dt-stage")
        assert stage.evaluate("e => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight")


def test_a_long_word_gets_smaller_type_before_it_is_cut(show):
    page = show(DecodingTree(bushy(9, 3, word="universités")))
    assert page.locator(".dt-word").evaluate_all("all => all.every((e) => e.scrollWidth <= e.clientWidth)")


@pytest.mark.parametrize("given", [tree(), bushy(14, 3), bushy(2, 2)], ids=["small", "long", "short"])
def test_the_size_stays_while_the_tree_grows(show, given):
    page = show(DecodingTree(given))
    size = page.locator(".decoding-tree").bounding_box()
    page.locator(".dt-stage").focus()
    for key in ("Home", *["ArrowRight"] * 14, "ArrowDown"):
        page.keyboard.press(key)
        assert page.locator(".decoding-tree").bounding_box() == size


def test_what_is_selected_by_key_is_scrolled_to(show):
    page = show(DecodingTree(bushy(30, 12)))
    stage = page.locator(".dt-stage")

    def inside():
        outer, inner = stage.bounding_box(), box(page, selected(page))
        return outer["x"] <= inner["x"] <= outer["x"] + outer["width"] - inner["width"] and \
            outer["y"] <= inner["y"] <= outer["y"] + outer["height"] - inner["height"]

    stage.focus()
    for key in ("End", "ArrowLeft", *["ArrowDown"] * 13, "Home", *["ArrowRight"] * 15):
        page.keyboard.press(key)
        assert inside(), key
    assert page.evaluate("[scrollX, scrollY]") == [0, 0]


def test_of_a_long_path_the_end_is_seen(show):
    page = show(DecodingTree(bushy(14, 2)))
    said = page.locator(".dt-path")
    assert said.text_content().startswith("…")
    assert said.text_content().endswith("européenne0 européenne0")
    assert said.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_hidden_at_first_and_scaled_as_in_a_slide_show(show):
    page = show('<section style="display: none; transform: scale(0.6); transform-origin: 0 0">',
                DecodingTree(bushy(20, 4)), "</section>")
    page.evaluate("document.querySelector('section').style.display = 'block'")
    assert page.locator(".dt-stage").evaluate("e => e.scrollLeft") == 0
    page.locator(".dt-node[data-node='3']").hover()
    assert selected(page) == 3


# --- words are data ---

STRANGE = ["<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "", "שלום", "x" * 60, "$x^2$"]


def test_strange_words_are_text(show):
    words = {f"n{i}": {"word": word} for i, word in enumerate(STRANGE, start=1)}
    page = show(DecodingTree(tree(**words), title=STRANGE[1], node=5))
    shown = page.locator(".dt-word").all_text_contents()
    assert shown[1:7] == [*STRANGE[:2], "∅", *STRANGE[3:]]
    assert page.locator(".dt-node[data-node='5'] .dt-word").get_attribute("title") == "x" * 60
    assert page.locator(".dt-node[data-node='5']").evaluate("e => e.scrollWidth <= e.clientWidth + 20")
    assert page.locator(".dt-path").text_content() == f"<bos> {STRANGE[0]} {'x' * 60}"
    assert page.locator(".decoding-tree :is(img, script)").count() == 0
    assert page.script_errors == []


# --- light and dark ---


def test_every_text_can_be_read_in_a_dark_page(show):
    page = show(DARK, DecodingTree(tree(), node=8, title="A tree"))
    page.emulate_media(color_scheme="dark")
    found = contrasts(page, ".decoding-tree")
    assert len(found) > 40
    assert [c for c in found if c[0] < SMALLEST_CONTRAST] == []
    assert page.locator(".decoding-tree").evaluate("e => getComputedStyle(e).backgroundColor") == "rgb(255, 255, 255)"


# --- where it lives ---


def test_several_trees_on_a_page_are_strangers(show):
    page = show(DecodingTree(tree()), DecodingTree(tree()), DecodingTree(tree(), step=1))
    page.locator(".dt-stage").nth(1).press("Home")
    assert page.locator(".dt-count").all_inner_texts() == ["step 4 of 4", "step 0 of 4", "step 1 of 4"]
    assert page.evaluate("[typeof DecodingTree, typeof CourseWidget]") == ["undefined"] * 2


def test_without_scripts_there_is_a_picture(show, open_page):
    page = show(DecodingTree(tree()), page=open_page(java_script_enabled=False))
    picture = page.locator("img")
    assert picture.bounding_box()["width"] > 300
    assert "b x <eos> · best" in picture.get_attribute("alt")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("step", [1, 4])
def test_axe_finds_nothing_serious(show, step, dark):
    shown = DecodingTree(tree() | {"sampling": {"top_k": 5}}, step=step, title="A tree")
    page = show("<title>tree</title>", DARK * dark, "<main><h1>tree</h1>", shown, "</main>")
    page.emulate_media(color_scheme="dark" if dark else "light")
    assert serious(page, ".decoding-tree") == []


def test_on_paper_everything_is_seen(show):
    page = show(DecodingTree(bushy(3, 9)))
    page.emulate_media(media="print")
    for part in (".dt-stage", ".dt-outputs"):
        assert page.locator(part).evaluate("e => e.scrollHeight <= e.clientHeight")


def test_in_a_deck_keys_stay_in_the_tree(browser_page, tmp_path):
    open_slides(browser_page, tmp_path, DecodingTree(bushy(9, 4)))
    browser_page.evaluate("Reveal.slide(1)")
    assert browser_page.evaluate(OUTSIDE) == []
    browser_page.locator(".dt-stage").focus()
    for key in ("Home", "ArrowRight", "ArrowRight", "Space", "n", "ArrowDown"):
        browser_page.keyboard.press(key)
    assert browser_page.locator(".dt-count").inner_text() == "step 2 of 9"
    assert browser_page.evaluate("Reveal.getIndices().h") == 1
    browser_page.keyboard.press("PageDown")
    assert browser_page.evaluate("Reveal.getIndices().h") == 2
    assert browser_page.script_errors == []
    assert browser_page.outside_requests == []


def test_the_javascript_by_itself(show):
    page = mounted(show, "DecodingTree", "decoding_tree", DecodingTree(tree())._export_state())
    page.evaluate("shown.update({...state, step: 2, node: 5})")
    assert (selected(page), page.locator(".dt-count").inner_text()) == (5, "step 2 of 4")
    page.evaluate("""shown.update({...state, step: 1, node: 1,
      _content: {nodes: state._content.nodes.slice(0, 3).map((n) => ({...n, word: "new"})), best: 1}})""")
    assert page.locator(".dt-word").all_inner_texts() == ["new"] * 3
    assert page.locator(".decoding-tree").count() == 1
    assert page.evaluate("told") == []
    page.locator(".dt-stage").press("ArrowLeft")
    page.locator(".dt-stage").press("ArrowRight")
    page.locator(".dt-stage").press("ArrowDown")
    assert page.evaluate("told") == [{"step": 0, "node": 0}, {"step": 1, "node": 1}, {"step": 1, "node": 2}]
    assert destroyed(page, ["ArrowRight", "ArrowDown"]) == []


@pytest.mark.slow
def test_a_large_tree_answers_within_50_ms(show):
    page = show(DecodingTree(bushy(40, 10)))
    both = f"(k) => {{ ({press('.dt-stage', repr('Home'))})(k); ({press('.dt-stage', repr('End'))})(k); }}"
    there_and_back = milliseconds(page, both)
    print(f"two steps with {len(bushy(40, 10)['nodes'])} nodes: {there_and_back:.1f} ms")
    assert there_and_back < 100


LIVE_CELLS = [
    "from course_utils.widgets import DecodingTree\n"
    f"view = DecodingTree({tree()!r})\n"
    "moves = []\n"
    "view.observe(lambda change: moves.append(change.new), 'step')\n"
    "view",
    "print(view.step, view.node, view.path, moves)",
    "view.step = 1",
]


def test_live(jupyter, lab):
    page = lab
    own_errors = open_live(page, jupyter, "lab/tree", "tree.ipynb", LIVE_CELLS)
    run(page, 0, shows=".decoding-tree")
    assert page.locator(".decoding-tree").count() == 1  # the live view, not the copy as well

    page.locator(".dt-stage").focus()
    for key in ("ArrowLeft", "ArrowLeft", "ArrowDown", "a", "b"):  # a and b would add cells
        page.keyboard.press(key)
    assert selected(page) == 5
    page.get_by_role("button", name="next step").click()
    page.get_by_role("button", name="a step back").click()
    page.keyboard.press("ArrowDown")
    assert page.locator(".jp-CodeCell").count() == 3
    told = run(page, 1).locator(".jp-OutputArea-output")
    assert told.inner_text().strip().startswith("2 5 ('a', 'x') [")

    run(page, 2)
    page.locator(".dt-count", has_text="step 1 of 4").wait_for()
    assert selected(page) == 1
    assert page.outside_requests == []
    assert page.script_errors == own_errors


def test_reopened_without_running(jupyter, lab):
    page = lab
    _, folder, notary = jupyter
    output = new_output("execute_result", data=DecodingTree(tree())._repr_mimebundle_()[0], execution_count=1)
    cells = [new_code_cell("view", outputs=[output], execution_count=1)]
    save(folder, "reopened-tree.ipynb", cells, notary)
    visit(page, jupyter, "lab/tree", "reopened-tree.ipynb")
    page.locator(".decoding-tree").wait_for()
    page.locator(".dt-stage").press("Home")
    assert page.locator(".dt-count").inner_text() == "step 0 of 4"
    assert page.outside_requests == []
    assert page.script_errors == []


def test_the_tree_here_has_probabilities():
    """Else the widths above would say little."""
    for i, (parent, _, p, _) in enumerate(NODES):
        assert parent is None or math.isclose(math.exp(LOG_P[i] - LOG_P[parent]), p)
        assert sum(share for other, _, share, _ in NODES if other == i) <= 1.0001
