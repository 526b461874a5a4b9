import json
import math
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from course_utils.claims import (
    MIME,
    ClaimDoesNotHold,
    accepted,
    card,
    claim,
    collect,
    condition,
    ledger,
    seeds,
    table,
)
from course_utils.claims.seeds import Trial
from course_utils.claims.stored import Stored
from course_utils.course import KEEP_GOING, CourseError

ROW = {"id": "02.bleu-by-length", "says": "BLEU stays.", "source": "Bahdanau et al. 2015, fig. 2",
       "published": "26.8", "measured": {"with": 93.456, "share": (0.961, "{:.0%}"), "how": "by hand"},
       "holds": '"with" >= 80 and "share" > 0.5'}
MADE_BY = "0123456789ab"


@pytest.fixture(autouse=True)
def no_record(monkeypatch, tmp_path):
    """No seed was tried; returns where the record would be."""
    monkeypatch.delenv(KEEP_GOING, raising=False)
    monkeypatch.setattr(seeds, "RECORD", tmp_path / "claims_at_seeds.json")
    monkeypatch.setattr(accepted, "made_by", {ROW["id"]: MADE_BY}.get)
    return tmp_path / "claims_at_seeds.json"


@pytest.fixture
def shown(monkeypatch):
    """What a notebook would show, as mime bundles."""
    bundles = []
    monkeypatch.setattr(card, "display", lambda card: bundles.append(card._repr_mimebundle_()))
    return bundles


def notebook(path, bundles):
    """An executed notebook with one output per bundle."""
    cells = [{"cell_type": "markdown", "source": "text"},
             {"cell_type": "code", "source": "", "outputs": [{"output_type": "stream", "text": "x"}]}]
    cells += [{"cell_type": "code", "source": "", "outputs": [{"output_type": "display_data", "data": bundle}]}
              for bundle in bundles]
    path.write_text(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}))
    return path


# --- conditions -----------------------------------------------------------------------------------------------------

NUMBERS = {"a": 3.0, "b, with": 2.0, "it's": 0.5, "zero": 0.0, "nan": math.nan, "inf": math.inf}


@pytest.mark.parametrize(("text", "truth"), [
    ('"a" > 2', True), ('"a" > 3', False), ('"a" >= 3', True), ('"a" < 3', False), ('"a" <= 3', True),
    ('"a" == 3', True), ('"a" != 3', False), ('"a" >= 2 and "b, with" >= 3', False), ('"a" > 1 and "a" > 2', True),
    ('2 < "a" < 4', True), ('2 < "a" < 3', False), ('"a" - "b, with" >= 1', True), ('"a" + "b, with" > 5', False),
    ('"a" <= 1.5 * "b, with"', True), ('"a" / "b, with" >= 1.6', False), ('abs("b, with" - "a") <= 1', True),
    ('-"a" <= -3', True), ('min("a", "b, with", 9) >= 2', True), ('max("a", "b, with") <= 2', False),
    ("\"it's\" < 1", True), ('"inf" > 1e9', True), ('("a" > 1 and "a" > 2) and "a" > 4', False),
    ('"nan" > 1', False), ('"nan" <= 1', False), ('"nan" != 1', False), ('max("a", "nan") >= 1', False),
    ('min("nan", "a") < 9', False), ('"a" / "zero" != 1', False), ('"inf" - 2 * "inf" != 1', False),
])
def test_a_condition_is_evaluated(text, truth):
    shown = dict.fromkeys(NUMBERS, "")
    condition.check(text, NUMBERS, shown)
    assert condition.holds(text, NUMBERS) is truth


@pytest.mark.parametrize("text", [
    '"a" == "b"', '"a" != 0.37', '"a" == 2 * "b" + 0.37', 'abs("a" - "b") <= 0.001', 'abs("a" / "b" - 1.37) < 0.01',
    'abs("a" - 2 * "b") > 1e-6', '"a" / "b" >= 1e6', 'max("a", 5) >= 5.5', '"a" * "a" <= 1e9', 'abs("a") <= 0'])
def test_a_condition_may_be_narrow(text):
    assert condition.labels_of(text) <= {"a", "b"}


@pytest.mark.parametrize(("text", "says"), [
    (True, "the condition is True, a bool; expected text"),
    ("True", "True is not a comparison"),
    ('"a" > 1 or "a" < 2', "is not a comparison. Join comparisons by 'and'"),
    ('not "a" > 1', "is not a comparison"),
    ('"a"', "'a' is not a comparison"),
    ('"a" > 1 and True', "True is not a comparison"),
    ('"a" >', "is not an expression"),
    ("1 < 2", "1 < 2 in the condition '1 < 2' compares nothing that was measured"),
    ('0 < 1 < "a"', "0 < 1 in .* compares nothing that was measured"),
    ('"a" == "a"', "'a' == 'a' in the condition .* is True in each of 300 draws"),
    ('"a" > 1 and max("a", 1) <= max("a", 1)', "is True in each of 300 draws"),
    ('"a" < "a"', "is False in each of 300 draws"),
    ('"a" - "a" <= 0', "is True in each of 300 draws"),
    ('abs("a") >= 0', "is True in each of 300 draws"),
    ('0 <= abs("a") <= 1', "0 <= abs.'a'. in the condition .* is True in each of 300 draws"),
    ('"b" > 2 and max("a", 5) >= 3', "is True in each of 300 draws"),
    ('max("a", 5) < 3', "is False in each of 300 draws"),
    ('"a" * "a" != -1', "is True in each of 300 draws"),
    ('1 / "a" == 0', "is False in each of 300 draws"),                  # the sign changes where nothing is zero
    ('"a" > True', "True is not understood"),
    ('"a" in "b"', "does not compare numbers"),
    ('"a" is 3', "does not compare numbers"),
    ('a > 3', "a is not understood"),
    ('"a" ** 2 > 3', r"'a' \*\* 2 is not understood"),
    ('float("a") > 3', r"float\('a'\) is not understood"),
    ('max("a") > 3', r"max\('a'\) is not understood"),
    ('abs("a", 1) > 3', "is not understood"),
    ('f"a" > 3', "is not understood"),
    ('__import__("os").system("true") > "a"', "is not understood"),
    ('"c" > 3', "names 'c', which is not measured; measured are: 'a'. Use one of them, or measure it"),
    ('"text" > 3', r"compares 'text', which is the text 'by hand'. Give the number, or \(number, format\)"),
])
def test_another_condition_is_refused_with_a_reason(text, says):
    with pytest.raises((ValueError, TypeError), match=says):
        condition.check(text, {"a": 3.0}, {"a": "3", "text": "by hand"})


@pytest.mark.parametrize(("text", "words"), [
    ('"30-40 words, with" >= 80 and "30-40 words, without" <= 25',
     "“30-40 words, with” ≥ 80 and “30-40 words, without” ≤ 25"),
    ('"share" >= 0.8', "“share” ≥ 80%"),
    ('"share" >= 0.985', "“share” ≥ 98.5%"),
    ('"share" >= "other" + 0.03', "“share” ≥ “other” + 3%"),
    ('"share" >= 3 * "other"', "“share” ≥ 3 × “other”"),
    ('"share" > "a" - 0.5', "“share” > “a” − 0.5"),
    ('abs("a" / 65 - 1) <= 1e-5', "|“a” / 65 − 1| ≤ 1e-5"),
    ('("a" - 1) / 2 < 1_874', "(“a” − 1) / 2 < 1,874"),
    ('"a" - ("b" - 1) != -1', "“a” − (“b” − 1) ≠ −1"),
    ('min("a", "b") == max(1, "a")', "smallest of (“a”; “b”) = largest of (1; “a”)"),
    ('0.9 <= "a" < 1.1', "0.9 ≤ “a” < 1.1"),
])
def test_a_condition_in_words(text, words):
    assert condition.in_words(text, ("share", "other")) == words


@pytest.mark.parametrize(("bleu", "words"), [
    ((96.1, "{:.1f}%"), "“BLEU” ≥ 80"), ((96.1, "{}%"), "“BLEU” ≥ 80"), ((0.961, "{:.1%}"), "“BLEU” ≥ 8000%"),
    ((0.961, "{:+.0%} of it"), "“BLEU” ≥ 8000%"),
])
def test_a_threshold_is_in_percent_where_the_format_is(shown, monkeypatch, bleu, words):
    monkeypatch.setenv(KEEP_GOING, "1")
    claim(**{**ROW, "measured": {"BLEU": bleu}, "holds": '"BLEU" >= 80'})
    assert f"holds when {words}\n" in shown[0]["text/plain"]
    assert f"holds when {words}\n" in str(card.Claim.from_record(shown[0][MIME]))
    assert f"| {words} |" in str(table([card.Claim.from_record(shown[0][MIME])]))


# --- one claim ------------------------------------------------------------------------------------------------------


def test_a_claim_that_holds_shows_a_card(shown):
    assert claim(**ROW, rival="no attention: the same steps") is None
    [bundle] = shown
    assert bundle["text/plain"].splitlines() == [
        "[02.bleu-by-length] BLEU stays.", "  published: 26.8 (Bahdanau et al. 2015, fig. 2)",
        "  measured:  with: 93.5; share: 96%; how: by hand", "  rival:     no attention: the same steps",
        "  condition: holds when “with” ≥ 80 and “share” > 50%",
        "  verdict:   holds (experiment; not yet tried at other seeds)"]
    for words in ("✓<span> holds</span>", "holds when <i>with</i> ≥ 80 and <i>share</i> &gt; 50%",
                  "no attention: the same steps", ">experiment · not yet tried at other seeds<"):
        assert words in bundle["text/html"]
    assert "<script" not in bundle["text/html"]
    record = json.loads(json.dumps(bundle[MIME], allow_nan=False))
    assert record == bundle[MIME]
    assert record["measured"] == [["with", 93.456], ["share", 0.961]]       # in full precision
    assert record["condition"] == ROW["holds"]
    assert card.Claim.from_record(record).record() == record
    assert not {"holds", "verdict"} & record.keys(), "what follows from the rest is not saved beside it"


@pytest.mark.parametrize(("value", "words"), [
    (1234.5, "1,234"), (999.4, "999"), (999.6, "1,000"), (93.456, "93.5"), (0.0012345, "0.00123"), (0.0, "0"),
    (12, "12"), (109_482_240, "109,482,240"), (np.float32(0.5), "0.5"), (torch.tensor(2.0), "2"), (np.int64(3), "3"),
    ((0.961, "{:.0%}"), "96%"), ((torch.tensor(7), "{} of 9"), "7 of 9"), (math.nan, "nan"), (-math.inf, "-inf"),
])
def test_numbers_as_a_reader_sees_them(shown, value, words):
    claim(**{**ROW, "measured": {"x": value, "y": 1.0}, "holds": '"y" == 1'})
    record = json.loads(json.dumps(shown[0][MIME], allow_nan=False))
    assert dict(record["shown"])["x"] == words
    number = value[0] if isinstance(value, tuple) else value
    assert card.Claim.from_record(record).measured["x"] == pytest.approx(float(number), rel=0, nan_ok=True)


@pytest.mark.parametrize("value", [None, True, np.ones(2), torch.ones(2), [1.0], (1.0, 2.0), ("a", "{}")])
def test_what_is_no_number_is_refused(shown, value):
    with pytest.raises(TypeError, match="02.bleu-by-length: measured 'x' is .*expected a number"):
        claim(**{**ROW, "measured": {"x": value, "y": 1.0}, "holds": '"y" == 1'})
    assert shown == []


@pytest.mark.parametrize(("changed", "error", "says"), [
    ({"id": "bleu"}, ValueError, "expected the lesson's two digits"),
    ({"id": "2.bleu"}, ValueError, "expected the lesson's two digits"),
    ({"id": "02.BLEU by length"}, ValueError, "expected the lesson's two digits"),
    ({"id": "02.bleu-"}, ValueError, "expected the lesson's two digits"),
    ({"id": "٠٢.bleu"}, ValueError, "expected the lesson's two digits"),            # digits, but not ours
    ({"kind": "fact"}, ValueError, "kind 'fact'; expected 'experiment', or 'identity'"),
    ({"expected": 1}, TypeError, "expected is 1, a int; expected True or False"),
    ({"measured": 93.4}, TypeError, "measured is 93.4; expected a dict of label to number"),
    ({"measured": {}}, TypeError, "measured is {}; expected a dict of label to number"),
    ({"holds": True}, TypeError, "the condition is True"),
    ({"holds": '"without" < 2'}, ValueError, "names 'without', which is not measured"),
])
def test_another_form_is_refused(shown, changed, error, says):
    with pytest.raises(error, match=says):
        claim(**{**ROW, **changed})
    assert shown == []


@pytest.mark.parametrize(("holds", "expected", "verdict", "todo"), [
    ('"with" < 80', True, "does not hold", "Change the experiment"),
    ('"with" > 80', False, "holds, against expectation", "Remove expected=False"),
])
def test_a_surprise_raises_after_the_card(shown, monkeypatch, holds, expected, verdict, todo):
    with pytest.raises(ClaimDoesNotHold,
                       match=f"02.bleu-by-length {verdict}: BLEU.*with: 93.5.*holds when “with” . 80. {todo}"):
        claim(**{**ROW, "holds": holds}, expected=expected)
    assert card.Claim.from_record(shown[0][MIME]).verdict == verdict
    monkeypatch.setenv(KEEP_GOING, "1")
    claim(**{**ROW, "holds": holds}, expected=expected)
    assert card.Claim.from_record(shown[1][MIME]).verdict == verdict


def test_an_honest_negative_result_is_a_row(shown):
    claim(**{**ROW, "holds": '"with" < 80'}, expected=False)
    assert card.Claim.from_record(shown[0][MIME]).verdict == "does not hold at this scale"
    assert "–<span> does not hold at this scale</span>" in shown[0]["text/html"]


def test_a_stored_measurement_is_marked(shown):
    first = Stored("python experiments/x.py", [0, 1], "abc1234", "a machine", "2026-11-23", {})
    second = Stored("python experiments/y.py", [2], "abc1235", "a machine", "2026-11-24", {})
    claim(**ROW, stored=first)
    assert "▣ stored measurement of 2026-11-23 (seeds 0, 1; a machine; version abc1234)" in shown[0]["text/html"]
    claim(**ROW, stored=[first, second])
    assert f"{first}; {second}" in shown[1]["text/html"]
    assert "tried" not in shown[0]["text/plain"]


def test_text_is_text_not_markup(shown):
    claim(**{**ROW, "says": "<script>alert(1)</script> & more", "measured": {"<b>": 1, "t": "<u>"},
             "holds": '"<b>" < 2'}, rival="<em>")
    parser, tags = HTMLParser(), []
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)
    parser.feed(shown[0]["text/html"])
    assert set(tags) == {"div", "code", "b", "i", "span", "dl", "dt", "dd"}
    assert tags.count("b") == 1
    assert tags.count("i") == 2                     # the source, and the label in the condition
    parser.feed(table([card.Claim.from_record(shown[0][MIME])])._repr_html_())
    assert not {"u", "em"} & set(tags)


def test_whether_a_condition_says_anything_is_examined_once(shown, monkeypatch):
    """It takes hundreds of sampled numbers, and the ledger reads each condition many times."""
    examined, one = [], condition._always
    monkeypatch.setattr(condition, "_always", lambda *link: examined.append(link) or one(*link))
    holds = '"with" > 80.125 and "share" > 0.5'
    for _ in range(2):
        claim(**{**ROW, "holds": holds})
        str(table([card.Claim.from_record(shown[0][MIME])]))
    assert len(examined) == 2                       # both comparisons


# --- the record of seeds --------------------------------------------------------------------------------------------


def trial(holds, stopped=""):
    return Trial(holds, {"with": 93.4} if not stopped else {}, "abc1234", "a machine", "2026-11-23", stopped)


@pytest.mark.parametrize(("trials", "words", "short"), [
    ({}, "not yet tried at other seeds", ""),
    ({0: trial(False)}, "not yet tried at other seeds", ""),                # this run is at seed 0, and counts
    ({1: trial(True)}, "held at 2 of 2 seeds", "2 of 2"),
    ({0: trial(False), 1: trial(True)}, "held at 2 of 2 seeds", "2 of 2"),
    ({3: trial(False), 4: trial(True)}, "held at 2 of 3 seeds (not at 3)", "2 of 3"),
    ({1: trial(False), 2: trial(False), 3: trial(False, "NameError")},
     "held at 1 of 4 seeds (not at 1 and 2; not reached at 3)", "1 of 4"),
])
def test_the_card_says_at_how_many_seeds(shown, trials, words, short):
    if trials:
        seeds.add(ROW["id"], ROW["holds"], MADE_BY, trials)
    claim(**ROW)
    assert f"holds (experiment; {words})" in shown[0]["text/plain"]
    assert f"experiment · {words}<" in shown[0]["text/html"]
    rows = table([card.Claim.from_record(shown[0][MIME])])
    assert f"| {words} |" in str(rows)
    assert f"<td>{short}</td>" in rows._repr_html_()
    assert seeds.read().get(ROW["id"], seeds.Tried("", "")).seeds == trials


def test_a_record_under_another_condition_does_not_count(shown):
    seeds.add(ROW["id"], '"with" >= 70', MADE_BY, {0: trial(True)})
    claim(**ROW)
    assert "not yet tried" in shown[0]["text/plain"]
    seeds.add(ROW["id"], ROW["holds"], MADE_BY, {1: trial(True)})
    assert list(seeds.read()[ROW["id"]].seeds) == [1]          # what was tried under the other one is dropped
    seeds.add(ROW["id"], ROW["holds"], MADE_BY, {0: trial(False)})
    assert list(seeds.read()[ROW["id"]].seeds) == [0, 1]
    claim(**ROW)
    assert "held at 2 of 2 seeds" in shown[1]["text/plain"]          # this run is at seed 0, and counts
    seeds.add(ROW["id"], ROW["holds"], MADE_BY, {2: trial(False)})
    claim(**ROW)
    assert "held at 2 of 3 seeds (not at 2)" in shown[2]["text/plain"]


def test_a_record_of_other_code_does_not_count(shown):
    for made_by, words in (("another code", "not yet tried"), (MADE_BY, "held at 2 of 2 seeds")):
        seeds.add(ROW["id"], ROW["holds"], made_by, {1: trial(True)})
        claim(**ROW)
        assert words in shown[-1]["text/plain"]
        assert seeds.read()[ROW["id"]] == seeds.Tried(ROW["holds"], made_by, {1: trial(True)})
    seeds.add(ROW["id"], ROW["holds"], "another code", {2: trial(True)})
    assert list(seeds.read()[ROW["id"]].seeds) == [2]


def test_an_identity_is_not_tried_unless_somebody_did(shown):
    claim(**ROW, kind="identity")
    seeds.add(ROW["id"], ROW["holds"], MADE_BY, {0: trial(True), 1: trial(True)})
    claim(**ROW, kind="identity")
    assert [bundle["text/plain"].splitlines()[-1] for bundle in shown] == [
        "  verdict:   holds (identity)", "  verdict:   holds (identity; held at 2 of 2 seeds)"]


@pytest.mark.parametrize("broken", ["{", "[]", '{"02.a": {"condition": "x"}}', '{"02.a": 3}',
                                    '{"02.a": {"condition": "x", "seeds": {}}}'])
def test_a_broken_record_is_named(no_record, broken):
    no_record.write_text(broken)
    with pytest.raises(CourseError, match="claims_at_seeds.json is not a record of claims at seeds .*Delete it"):
        seeds.read()


# --- the ledger -----------------------------------------------------------------------------------------------------


def test_collect_keeps_order(shown, tmp_path):
    claim(**ROW)
    claim(**{**ROW, "id": "02.aer"})
    first, second = notebook(tmp_path / "02_b.ipynb", shown[:1]), notebook(tmp_path / "03_a.ipynb", shown[1:])
    assert [(found.id, found.verdict) for found in collect([first, str(second)])] == [
        ("02.bleu-by-length", "holds"), ("02.aer", "holds")]


def test_a_file_that_sorts_keys_keeps_the_order_of_the_cell(shown, tmp_path):
    claim(**{**ROW, "published": {"z": "1", "a": "2"}, "measured": {"with": 93.4, "a, other": 2.0, "share": 0.9}})
    path = notebook(tmp_path / "02_a.ipynb", shown)
    path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True))
    [found] = collect([path])
    assert str(found) == shown[0]["text/plain"]
    assert "z: 1; a: 2 | with: 93.4; a, other: 2; share: 0.9 |" in str(table([found]))


def test_collect_says_what_is_wrong(shown, tmp_path):
    claim(**ROW)
    one, two = notebook(tmp_path / "02_a.ipynb", shown), notebook(tmp_path / "03_b.ipynb", shown)
    with pytest.raises(ValueError, match=r"02.bleu-by-length occurs twice: in 02_a.ipynb and in 03_b.ipynb"):
        collect([one, two])
    with pytest.raises(ValueError, match=r"04_c.ipynb shows no claim. Execute it \(course run 04\)"):
        collect([notebook(tmp_path / "04_c.ipynb", [])])
    with pytest.raises(ValueError, match="no notebook to read claims from: the list of paths is empty"):
        collect([])
    old = {name: value for name, value in shown[0][MIME].items() if name not in ("condition", "kind")}
    with pytest.raises(ValueError, match=r"claim '02.bleu-by-length' was saved without condition, kind.*course run 02"):
        collect([notebook(tmp_path / "02_d.ipynb", [{MIME: old}])])


def test_the_ledger_of_the_course_does_not_depend_on_the_folder(shown, tmp_path, monkeypatch):
    claim(**ROW)
    monkeypatch.setattr(ledger, "LESSONS", tmp_path / "notebooks")
    monkeypatch.chdir(tmp_path.parent)
    with pytest.raises(ValueError, match="no notebook to read claims from: in .*notebooks there is no lesson"):
        collect()
    seeds.add(ROW["id"], ROW["holds"], MADE_BY, {0: trial(True), 1: trial(False)})
    (tmp_path / "notebooks").mkdir()
    notebook(tmp_path / "notebooks" / "02_a.ipynb", shown)
    [found] = collect()
    assert (found.tried, found.failed_at) == ("held at 1 of 2 seeds (not at 1)", [1])


@pytest.mark.parametrize("text", ["{}", "[]", "{", '{"cells": [1]}', '{"cells": [{"outputs": [{"data": 3}]}]}'])
def test_a_broken_notebook_is_named(tmp_path, text):
    (tmp_path / "02_a.ipynb").write_text(text)
    with pytest.raises(ValueError, match="02_a.ipynb is not readable as a notebook"):
        collect([tmp_path / "02_a.ipynb"])


def test_a_failed_claim_is_collected_too(shown, tmp_path):
    with pytest.raises(ClaimDoesNotHold):
        claim(**{**ROW, "holds": '"with" < 1'})
    assert collect([notebook(tmp_path / "02.ipynb", shown)])[0].verdict == "does not hold"


def test_table(shown, tmp_path):
    claim(**{**ROW, "says": "a | b < c"})
    rows = table(collect([notebook(tmp_path / "02.ipynb", shown)]))
    assert str(rows).splitlines() == [
        "| claim | source | published | measured here | holds when | seeds | verdict |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| 02.bleu-by-length (experiment): a \\| b < c | Bahdanau et al. 2015, fig. 2 | 26.8 | "
        "with: 93.5; share: 96%; how: by hand | “with” ≥ 80 and “share” > 50% | not yet tried at other seeds | holds |"]
    html = rows._repr_html_()
    assert "a | b &lt; c" in html
    assert html.count("<tr") == 2
    assert "✓<span> holds</span>" in html


def test_in_a_real_kernel(tmp_path):
    """Executed by Jupyter: the card is in the file before the error, and can be collected."""
    import nbformat
    from nbclient import NotebookClient
    code = "from course_utils.claims import claim\nclaim('02.x', 'It holds.', 'A 2015', '1', {'a': 2.0}, '\"a\" > 3')"
    stub = ("from course_utils.exercises import check\n"
            "def context_vector(scores, values):\n    return values.oops\ncheck('context_vector')")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code), nbformat.v4.new_code_cell(stub)])
    NotebookClient(book, allow_errors=True, kernel_name="python3", timeout=60).execute()
    nbformat.write(book, tmp_path / "02.ipynb")
    assert collect([tmp_path / "02.ipynb"])[0].verdict == "does not hold"
    card, error = book.cells[0].outputs
    assert "text/html" in card["data"]
    assert error["ename"] == "ClaimDoesNotHold"
    card, _ = book.cells[1].outputs                                    # the second is the function handed back
    assert "✗ context_vector: It raised AttributeError" in card["data"]["text/plain"]
    assert "values.oops" in card["data"]["text/html"]
    assert "engine.py" not in card["data"]["text/html"]


def test_a_trial_that_was_never_reached_has_failed_whatever_was_expected():
    stopped = Trial(False, {}, "", "", "", stopped="cell 12 raised")
    tried = seeds.Tried("x", "y", seeds={0: Trial(True, {}, "", "", ""), 1: Trial(False, {}, "", "", ""), 2: stopped})
    assert tried.failed(expected=True) == [1, 2]
    assert tried.failed(expected=False) == [0, 2]
