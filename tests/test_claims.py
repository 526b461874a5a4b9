import json
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from course_utils import claims
from course_utils.claims import MIME, ClaimDoesNotHold, claim, collect, table

ROW = {"id": "02.bleu-by-length", "says": "BLEU stays.", "source": "Bahdanau et al. 2015, fig. 2",
       "published": "26.8", "measured": {"with": 93.456, "without": "11"}}


@pytest.fixture
def shown(monkeypatch):
    """What a notebook would show, as mime bundles."""
    bundles = []
    monkeypatch.setattr(claims, "display", lambda card: bundles.append(card._repr_mimebundle_()))
    return bundles


def notebook(path, bundles):
    """An executed notebook with one output a bundle."""
    cells = [{"cell_type": "markdown", "source": "text"},
             {"cell_type": "code", "source": "", "outputs": [{"output_type": "stream", "text": "x"}]}]
    cells += [{"cell_type": "code", "source": "", "outputs": [{"output_type": "display_data", "data": bundle}]}
              for bundle in bundles]
    path.write_text(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}))
    return path


def test_a_claim_that_holds_shows_a_card(shown):
    assert claim(**ROW, holds=True) is None
    [bundle] = shown
    assert bundle["text/plain"].splitlines() == [
        "[02.bleu-by-length] BLEU stays.", "  published: 26.8 (Bahdanau et al. 2015, fig. 2)",
        "  measured:  with: 93.5; without: 11", "  verdict:   holds"]
    assert "✓ holds" in bundle["text/html"]
    assert "<script" not in bundle["text/html"]
    assert bundle[MIME]["measured"] == {"with": "93.5", "without": "11"}
    assert json.loads(json.dumps(bundle[MIME])) == bundle[MIME]


@pytest.mark.parametrize(("holds", "expected", "verdict", "todo"), [
    (False, True, "does not hold", "Change the experiment"),
    (True, False, "holds, against expectation", "Remove expected=False"),
])
def test_a_surprise_raises_after_the_card(shown, holds, expected, verdict, todo):
    with pytest.raises(ClaimDoesNotHold, match=f"02.bleu-by-length {verdict}: BLEU stays.*with: 93.5.*{todo}"):
        claim(**ROW, holds=holds, expected=expected)
    assert shown[0][MIME]["verdict"] == verdict


def test_an_honest_negative_result_is_a_row(shown):
    claim(**ROW, holds=False, expected=False)
    assert shown[0][MIME]["verdict"] == "does not hold at this scale"
    assert "– does not hold at this scale" in shown[0]["text/html"]


@pytest.mark.parametrize("holds", [np.float64(2) > 1, np.array(True), torch.tensor(2.0) > 1, True])
def test_bools_of_every_kind(shown, holds):
    claim(**ROW, holds=holds)
    assert shown[0][MIME]["holds"] is True


@pytest.mark.parametrize("holds", [0.9, 1, None, "yes", np.ones(2) > 0, torch.ones(2) > 0, torch.tensor(1.0)])
def test_what_is_not_a_bool_is_refused(shown, holds):
    with pytest.raises(TypeError, match="holds is .*expected True or False.*as a comparison"):
        claim(**ROW, holds=holds)
    assert shown == []


@pytest.mark.parametrize("bad", ["bleu", "2.bleu", "02.", "02.BLEU by length", "02.bleu-"])
def test_ids_have_one_form(shown, bad):
    with pytest.raises(ValueError, match="expected the lesson's two digits"):
        claim(**{**ROW, "id": bad}, holds=True)


def test_text_is_text_not_markup(shown):
    claim(**{**ROW, "says": "<script>alert(1)</script> & more", "measured": {"<b>": "<i>"}}, holds=True)
    parser, tags = HTMLParser(), []
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)
    parser.feed(shown[0]["text/html"])
    assert set(tags) == {"div", "code", "b", "i", "span", "dl", "dt", "dd"}
    assert tags.count("b") == tags.count("i") == 1


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (800, True), (320, True)])
def test_a_card_has_two_columns_with_labels_left_and_values_right(shown, browser_page, width, dark):
    published = {"BLEU, all sentences, without attention": "17.8", "with": "26.8", "by eye": "inversions included"}
    claim(**{**ROW, "published": published, "measured": {"4-9 words": 85.1, "30-40 words": 11}}, holds=True)
    ink, paper = ("#EEEEEE", "#111111") if dark else ("#222222", "#FFFFFF")
    browser_page.set_viewport_size({"width": width, "height": 720})
    browser_page.set_content("<style>dt { font: italic 9px serif; float: left } dd { margin-left: 40px }</style>"
                             f'<body style="font: 20px sans-serif; color: {ink}; background: {paper}">'
                             + shown[0]["text/html"])

    def box(words):
        return browser_page.get_by_text(words, exact=True).bounding_box()

    for labels, values in [(published, published.values()), (("4-9 words", "30-40 words"), ("85.1", "11"))]:
        labels, values = [*map(box, labels)], [*map(box, values)]
        assert len({label["x"] for label in labels}) == len({value["x"] for value in values}) == 1
        for label, value in zip(labels, values, strict=True):
            assert abs(label["y"] - value["y"]) < 1
            assert label["x"] + label["width"] <= value["x"]
    paper, here, source = box("the paper"), box("here"), box(ROW["source"])
    if width == 320:
        assert source["y"] < here["y"], "no room for two columns: one below the other"
    else:
        assert here["y"] == paper["y"]
        assert here["width"] == paper["width"]
        assert source["x"] + source["width"] <= here["x"]
    assert box(ROW["says"])["y"] < paper["y"]
    assert box("✓ holds")["y"] > max(source["y"], box("11")["y"])
    text_colours = browser_page.evaluate(
        "[...document.querySelectorAll('dt, dd, b, i')].map(e => getComputedStyle(e).color)")
    assert set(text_colours) == {"rgb(238, 238, 238)" if dark else "rgb(34, 34, 34)"}
    assert browser_page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_collect_keeps_order_and_says_where_from(shown, tmp_path):
    claim(**ROW, holds=True)
    claim(**{**ROW, "id": "02.aer"}, holds=True)
    first, second = notebook(tmp_path / "02_b.ipynb", shown[:1]), notebook(tmp_path / "03_a.ipynb", shown[1:])
    rows = collect([first, str(second)])
    assert [(row["id"], row["notebook"], row["verdict"]) for row in rows] == [
        ("02.bleu-by-length", "02_b.ipynb", "holds"), ("02.aer", "03_a.ipynb", "holds")]
    assert collect([]) == []


def test_collect_refuses_duplicates_and_empty_notebooks(shown, tmp_path):
    claim(**ROW, holds=True)
    one, two = notebook(tmp_path / "02_a.ipynb", shown), notebook(tmp_path / "03_b.ipynb", shown)
    with pytest.raises(ValueError, match=r"02.bleu-by-length occurs twice: in 02_a.ipynb and in 03_b.ipynb"):
        collect([one, two])
    with pytest.raises(ValueError, match=r"04_c.ipynb shows no claim. Execute it \(course run 04\)"):
        collect([notebook(tmp_path / "04_c.ipynb", [])])


def test_a_failed_claim_is_collected_too(shown, tmp_path):
    with pytest.raises(ClaimDoesNotHold):
        claim(**ROW, holds=False)
    assert collect([notebook(tmp_path / "02.ipynb", shown)])[0]["verdict"] == "does not hold"


def test_table(shown, tmp_path):
    claim(**{**ROW, "says": "a | b < c"}, holds=True)
    ledger = table(collect([notebook(tmp_path / "02.ipynb", shown)]))
    assert str(ledger).splitlines() == [
        "| claim | source | published | measured here | verdict |", "| --- | --- | --- | --- | --- |",
        "| 02.bleu-by-length: a \\| b < c | Bahdanau et al. 2015, fig. 2 | 26.8 | with: 93.5; without: 11 | holds |"]
    html = ledger._repr_html_()
    assert "a | b &lt; c" in html
    assert html.count("<tr>") == 2
    assert "✓ holds" in html


def test_in_a_real_kernel(tmp_path):
    """Executed by Jupyter: the card is in the file before the error, and can be collected."""
    import nbformat
    from nbclient import NotebookClient
    code = "from course_utils.claims import claim\nclaim('02.x', 'It holds.', 'A 2015', '1', {'a': 2.0}, holds=%s)"
    stub = ("from course_utils.exercises import check\n"
            "def context_vector(scores, values):\n    return values.oops\ncheck('context_vector')")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code % "False"), nbformat.v4.new_code_cell(stub)])
    NotebookClient(book, allow_errors=True, kernel_name="python3", timeout=60).execute()
    nbformat.write(book, tmp_path / "02.ipynb")
    assert collect([tmp_path / "02.ipynb"])[0]["verdict"] == "does not hold"
    card, error = book.cells[0].outputs
    assert "text/html" in card["data"]
    assert error["ename"] == "ClaimDoesNotHold"
    [error] = book.cells[1].outputs
    assert error["ename"] == "WrongAnswer"
    trace = "\n".join(error["traceback"])
    assert "values.oops" in trace
    assert "engine.py" not in trace
