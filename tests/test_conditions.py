"""What the notebooks claim is what was accepted: sources and outputs are held against conditions.json."""

import ast
import builtins
import json
import re
from collections.abc import Iterator, Set
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import pytest

from course_utils.claims import MIME, accepted, card, claim, collect, condition, declared, seeds
from course_utils.claims.accepted import accept, changes, kept
from course_utils.claims.declared import rows
from course_utils.course import KEEP_GOING, CourseError, course_root, numbered, with_claims

NOTEBOOKS = with_claims(numbered(course_root()))


def sources(path: Path) -> dict[str, dict]:
    return rows(declared.declared(path))


def on_card(one: card.Claim) -> dict:
    """Of what is kept of a claim, what its card shows."""
    return {"says": one.says, "source": one.source, **asdict(one.terms)}


def saved(path: Path, accepted: dict[str, dict]) -> list[str]:
    """How the claims that a notebook shows differ from those it declares and from what was accepted."""
    shown = collect([path])
    cards = {one.id: on_card(one) for one in shown}
    problems = changes({id: {name: accepted[id].get(name) for name in cards.get(id, accepted[id])}
                        for id in sources(path) if id in accepted}, cards)
    written = {one.id: one for one in declared.declared(path)}
    for one in shown:
        problems += other_words(one, written[one.id]) if one.id in written else []
        wanted = accepted.get(one.id, cards[one.id])["condition"]
        if not condition.labels_of(wanted) <= one.measured.keys():
            problems.append(f"{one.id} has not measured all that {wanted} compares")
        elif condition.holds(wanted, one.measured) != one.terms.expected:
            problems.append(f"{one.id}: {wanted} is {not one.terms.expected} of {one.measured}; "
                            f"{one.terms.expected} is expected")
    return problems


def other_words(one: card.Claim, source: declared.Declared) -> list[str]:
    """How what a card says was published, and its labels, differ from the source, as far as that is written out."""
    with suppress(ValueError):
        published = card.labelled(ast.literal_eval(source.published))
        if published != one.published:
            return [f"{one.id} shows as published {one.published}; its source says {published}"]
    patterns = [label for label, *_ in entries(source.measured, frozenset())]
    return ([f"{one.id} shows {label!r}, which its source does not measure" for label in one.shown
             if not any(re.fullmatch(known, label) for known in patterns)]
            + [f"{one.id} shows no label like {known}, which its source measures" for known in patterns
               if not any(re.fullmatch(known, label) for label in one.shown)])


def cards(path: Path) -> list[str]:
    """The cards whose text is not that of their record, with today's record of seeds."""
    outputs = [output["data"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
               for output in cell.get("outputs", ()) if MIME in output.get("data", {})]
    made = [(card.Claim.from_record(data[MIME]), "".join(data["text/plain"])) for data in outputs]
    return [f"saved:\n{text}\nnow:\n{one}" for one, text in made if text != str(one)]


def test_conditions_are_those_that_were_accepted():
    now = rows(claim for path in NOTEBOOKS for claim in declared.declared(path))
    changed = changes(kept(), now)
    assert not changed, "\n".join([*changed, "If this is meant: course claims --accept, and say why in the commit."])


def test_every_trial_at_seeds_says_by_which_code_it_was_made():
    """Of a claim that is there; trials by another code than today's stay in the record, and do not count."""
    record = seeds.read()
    assert record.keys() <= kept().keys()
    assert [id for id, row in record.items() if not re.fullmatch("[0-9a-f]{12}", row.made_by)] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_notebooks_show_keeps_the_accepted_conditions(path):
    problems = saved(path, kept())
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cards_say_what_is_on_record(path):
    stale = cards(path)
    assert not stale, "\n\n".join([*stale, f"Execute the notebook again: course run {path.name[:2]}"])


def written_out(path: Path) -> list[str]:
    """What can be seen in a claim's source alone: labels that are not there, numbers that were typed in."""
    constants, problems = named_constants(path), []
    for one in declared.declared(path):
        try:
            rows = list(entries(one.measured, constants))
        except ValueError as problem:
            problems.append(f"{one.id}: {problem}")
            continue
        for label in sorted(condition.labels_of(one.terms.condition)):
            found = ([row for row in rows if row[0] == re.escape(label)]
                     or [row for row in rows if re.fullmatch(row[0], label)])
            numbers = [(value.elts[0] if isinstance(value, ast.Tuple) else value, known) for _, value, known in found]
            what = [f"{ast.unparse(number)} in the source" for number, known in numbers if typed_in(number, known)]
            problems += [f"{one.id} compares {label!r}, which is {words}"
                         for words in (what if found else ["not measured"])]
    return problems


def entries(node: ast.expr, constants: Set[str]) -> Iterator[tuple[str, ast.expr, Set[str]]]:
    """Of a dict's source: a pattern for each label, the source of its value, and the names that stand for constants."""
    match node:
        case ast.Dict():
            for key, value in zip(node.keys, node.values, strict=True):
                yield from [(pattern(key), value, constants)] if key else entries(value, constants)
        case ast.DictComp():
            for loop in node.generators:
                targets = {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
                constants = constants | targets if typed_in(loop.iter, constants) else constants - targets
            yield pattern(node.key), node.value, constants
        case ast.BinOp(op=ast.BitOr()):
            yield from entries(node.left, constants)
            yield from entries(node.right, constants)
        case _:
            raise ValueError(f"measured is {ast.unparse(node)} in the source; write it out as a dict, a comprehension "
                             "of one, or such joined by |, so that what it compares can be seen.")


def pattern(key: ast.expr) -> str:
    """A pattern for the labels that a key's source gives."""
    parts = key.values if isinstance(key, ast.JoinedStr) else [key]
    return "".join(re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*" for part in parts)


def typed_in(node: ast.expr, constants: Set[str]) -> bool:
    """Whether a value is made of numbers in the source alone."""
    return all(part.id in constants or hasattr(builtins, part.id) for part in ast.walk(node)
               if isinstance(part, ast.Name))


def named_constants(path: Path) -> set[str]:
    """The names that a notebook gives to numbers typed in, and to nothing else; what can be filled later is none."""
    code = [re.sub(r"(?m)^\s*[%!].*$", "pass", "".join(cell["source"]))
            for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    nodes = [node for source in code for node in ast.walk(ast.parse(source))]
    values: dict[str, list[ast.expr | None]] = {}
    for node in nodes:
        targets = node.targets if isinstance(node, ast.Assign) else []
        names = [part for target in targets for part in ast.walk(target)
                 if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
        fills = names and any(isinstance(part, ast.List | ast.Set | ast.Dict) for part in ast.walk(node.value))
        for name in names:
            name.told = True
            values.setdefault(name.id, []).append(None if fills else node.value)
    others = {node.id for node in nodes
              if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not hasattr(node, "told")}
    found: set[str] = set()
    while more := {name for name, given in values.items() if name not in found | others
                   and all(value is not None and typed_in(value, found) for value in given)}:
        found |= more
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_labels_are_there_and_no_number_is_typed_in(path):
    assert written_out(path) == []


# --- five claims, broken in more than five ways ---------------------------------------------------------------------

CELL = '''claim("02.{name}", "It stays.", source="A 2015", published="1",
      measured={{"with": 93.5 * one, "without": 12.5 * one}},
      holds='"with" >= 80 and "without" <= 25', rival="the same steps")'''


@pytest.fixture
def lesson(tmp_path, monkeypatch):
    """An executed notebook with five claims that hold; its terms are accepted."""
    monkeypatch.setattr(accepted, "FILE", tmp_path / "conditions.json")
    monkeypatch.setattr(seeds, "RECORD", tmp_path / "claims_at_seeds.json")
    path = tmp_path / "02_lesson.ipynb"
    write(path, [CELL.format(name=name) for name in "abcde"], monkeypatch)
    assert accept(sources(path)) == [f"02.{name} is new; it holds when \"with\" >= 80 and \"without\" <= 25"
                                     for name in "abcde"]
    assert accept(sources(path)) == saved(path, kept()) == cards(path) == written_out(path) == []
    return path


def write(path, cells, monkeypatch, run=None):
    """A notebook with these cells, and the outputs of these or other cells."""
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}
    for source, executed in zip(cells, run or cells, strict=True):
        outputs = []
        monkeypatch.setattr(card, "display", lambda shown, outputs=outputs: outputs.append(
            {"output_type": "display_data", "metadata": {}, "data": shown._repr_mimebundle_()}))
        monkeypatch.setenv(KEEP_GOING, "1")
        exec(executed, {"claim": claim, "one": 1.0})
        book["cells"].append({"cell_type": "code", "source": source.splitlines(keepends=True), "outputs": outputs})
    path.write_text(json.dumps(book), encoding="utf-8")


def edit(path, name, old, new):
    """Change a cell's source by hand; the outputs stay."""
    text = path.read_text(encoding="utf-8")
    book = json.loads(text)
    (cell,) = [cell for cell in book["cells"] if f'"02.{name}"' in "".join(cell["source"])]
    source = "".join(cell["source"])
    assert old in source
    cell["source"] = source.replace(old, new).splitlines(keepends=True)
    path.write_text(json.dumps(book), encoding="utf-8")


@pytest.mark.parametrize(("name", "old", "new", "says"), [
    ("a", ">= 80", ">= 70", "02.a, condition:\n  was \"with\" >= 80 and \"without\" <= 25\n"
                            "  now \"with\" >= 70 and \"without\" <= 25"),
    ("b", ' and "without" <= 25', "", "02.b, condition:\n  was \"with\" >= 80 and \"without\" <= 25\n"
                                      "  now \"with\" >= 80"),
    ("c", '"with" >= 80 and "without" <= 25', '"with" - "without" <= 1', "  now \"with\" - \"without\" <= 1"),
    ("d", "rival=", 'expected=False, rival=', "02.d, expected:\n  was True\n  now False"),
    ("e", "rival=", 'kind="identity", rival=', "02.e, kind:\n  was experiment\n  now identity"),
    ("a", ">= 80", "> 80", "now \"with\" > 80"),
    ("b", "the same steps", "half the steps", "02.b, rival:\n  was the same steps\n  now half the steps"),
    ("c", "It stays.", "It rises.", "02.c, says:\n  was It stays.\n  now It rises."),
    ("d", "A 2015", "B 2017", "02.d, source:\n  was A 2015\n  now B 2017"),
])
def test_a_changed_claim_is_seen_with_its_old_and_new_terms(lesson, monkeypatch, name, old, new, says):
    edit(lesson, name, old, new)
    changed = "\n".join(changes(kept(), sources(lesson)))
    assert says in changed
    assert changed.count("02.") == 1
    # also where the notebook was executed with the changed cell
    cells = ["".join(cell["source"]) for cell in json.loads(lesson.read_text())["cells"]]
    write(lesson, cells, monkeypatch)
    assert says in "\n".join(saved(lesson, kept()))


@pytest.mark.parametrize(("old", "new"), [
    ("93.5 * one", "max(93.5 * one, 12.5 * one)"), ("12.5 * one", '(12.5 * one, "{:.0f}")'),
    ('"without": ', '"without attention": '), ('"with": ', '"seen": 1.0 * one, "with": '),
])
def test_another_thing_measured_under_the_same_words_is_seen(lesson, old, new):
    edit(lesson, "a", old, new)
    was = "{'with': 93.5 * one, 'without': 12.5 * one}"
    now = ast.unparse(ast.parse(was.replace("'", '"').replace(old, new)))
    assert changes(kept(), sources(lesson)) == [f"02.a, measured:\n  was {was}\n  now {now}"]
    assert accept(sources(lesson)) == [f"02.a, measured:\n  was {was}\n  now {now}"]
    assert accept(sources(lesson)) == changes(kept(), sources(lesson)) == []


@pytest.mark.parametrize("new", ["'2'", "{'BLEU': 2.5}"])
def test_another_published_number_is_seen(lesson, new):
    edit(lesson, "a", 'published="1"', f"published={new}")
    assert changes(kept(), sources(lesson)) == [f"02.a, published:\n  was '1'\n  now {new}"]
    assert saved(lesson, kept()) == ["02.a shows as published {'': '1'}; its source says "
                                     f"{card.labelled(ast.literal_eval(new))}"]


@pytest.mark.parametrize(("old", "new", "says"), [
    ('"with": ', '"seen": 1.0 * one, "with": ', ["02.a shows no label like seen, which its source measures"]),
    ('"without": 12.5', '"without it": 12.5', ["02.a shows 'without', which its source does not measure",
                                               "02.a shows no label like without\\ it, which its source measures"]),
    ('{"with": 93.5 * one, "without": 12.5 * one}', '{f"wit{end}": x * one for end, x in [("h", 9), ("hout", 1)]}', []),
])
def test_a_card_with_other_labels_than_its_source_is_seen(lesson, old, new, says):
    edit(lesson, "a", old, new)
    assert saved(lesson, kept()) == says


def test_the_file_is_read_once_and_anew_when_it_has_changed(lesson, monkeypatch):
    read, one = [], accepted.read_json
    monkeypatch.setattr(accepted, "read_json", lambda path: read.append(path) or one(path))
    rows = sources(lesson)
    for digest in ("0123456789ab", "ba9876543210"):            # as many letters, a moment later
        accept({id: row | {"made_by": digest} for id, row in rows.items()})
        read.clear()
        assert [accepted.made_by(id) for id in ("02.a", "02.b", "02.a", "02.none")] == [digest, digest, digest, ""]
        assert len(read) == 1


def test_a_file_from_before_a_field_was_kept_is_written_anew(lesson):
    before = json.loads(accepted.FILE.read_text())
    accepted.FILE.write_text(json.dumps({id: {"condition": row["condition"]} for id, row in before.items()}))
    assert "02.a, says:\n  was not kept\n  now It stays." in accept(sources(lesson))
    assert json.loads(accepted.FILE.read_text()) == before
    accepted.FILE.write_text("<<<<<<< HEAD")
    with pytest.raises(CourseError, match=r"conditions.json is not readable as JSON .* Restore it \(git restore\)"):
        accept(sources(lesson))


BEHIND = """\
from course_utils.training import fit
seed = 0

def loss(model, x):
    return rate * (model - x)
# %%
rate = 3  # of both
# %%
model, rival = make(seed), make(seed)
# %%
log = fit(model, loss, steps=300)
# %%
log = fit(rival, loss, steps=300)
# %%
def score(one):
    return one.score()

found = {name: score(one) for name, one in (("ours", model), ("rival", rival))}
# %%
print(found, seed)
# %%
figure = plot(found)
figure.show()
# %%
found["ours"] = round(found["ours"], 3)
found.pop("other", None)
# %%
claim("02.a", "We win.", source="A 2015", published="1", measured={name: one for name, one in found.items()},
      holds='"ours" > "rival"', rival="the same steps")"""


def digest(tmp_path, *edits) -> str:
    source = BEHIND
    for old, new in edits:
        assert source.count(old) == 1
        source = source.replace(old, new)
    path = tmp_path / "02_lesson.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": [cell]} for cell in source.split("# %%\n")]}))
    return sources(path)["02.a"]["made_by"]


@pytest.mark.parametrize("edit", [
    ("fit(rival, loss, steps=300)", "fit(rival, loss, steps=30)"), ("rate = 3", "rate = 4"), ("seed = 0", "seed = 1"),
    ("model - x", "model + x"), ("one.score()", "2 * one.score()"), (", 3)", ", 2)"), ('"other"', '"rival"'),
    ('("ours", model)', '("ours", rival)'), ("log = fit(rival, loss, steps=300)", "pass"),
])
def test_a_change_in_what_makes_a_claims_numbers_is_seen(tmp_path, edit):
    assert digest(tmp_path) != digest(tmp_path, edit)


SCORE = "def score(one):\n    return one.score()"


@pytest.mark.parametrize(("one", "other"), [
    ("def score(one):\n    for n in range(9):\n        one.learn()\n        one.rest()\n    return one.score()",
     "def score(one):\n    for n in range(9):\n        one.learn()\n    one.rest()\n    return one.score()"),
    (f"import torch\n@torch.no_grad()\n{SCORE}", f"import torch\n@torch.enable_grad()\n{SCORE}")],
    ids=["out of a loop", "under another decorator"])
def test_the_same_words_in_another_block_are_seen(tmp_path, one, other):
    assert digest(tmp_path, (SCORE, one)) != digest(tmp_path, (SCORE, other))


@pytest.mark.parametrize(("weaker", "seen"), [("steps = 30  # fewer", True), ("steps = 300  # as many", False)])
def test_a_rival_made_weaker_in_a_stored_measurements_script_is_seen(tmp_path, monkeypatch, weaker, seen):
    monkeypatch.setattr(declared, "EXPERIMENTS", tmp_path)
    (tmp_path / "race.json").write_text(json.dumps({"command": "python experiments/run.py --part race"}))
    edit = ("found = {", 'found = stored("race").results or {'), ("rival=", "stored=0, rival=")
    digests = []
    for code in ("steps = 300", weaker):
        (tmp_path / "run.py").write_text(code)
        digests.append(digest(tmp_path, *edit))
    assert (digests[0] != digests[1]) == seen


@pytest.mark.parametrize(("edit", "seen"), [
    (("n_layers=2", "n_layers=1"), True), (("batch[1:]", "batch[:-1]"), True), (("seed = 3", "seed = 4"), True),
    (("print(1)", "print(2)"), False), (("def other(): pass", "def other(): print()"), False)])
def test_a_notebook_that_a_stored_measurements_script_executes_is_seen(tmp_path, monkeypatch, edit, seen):
    monkeypatch.setattr(declared, "EXPERIMENTS", tmp_path / "experiments")
    for folder in ("experiments", "notebooks"):
        (tmp_path / folder).mkdir()
    (tmp_path / "experiments" / "race.json").write_text(json.dumps({"command": "python experiments/run.py"}))
    (tmp_path / "experiments" / "run.py").write_text('names = run("04_x.ipynb")\nnames["train"](names["Model"]())')
    stored = ("found = {", 'found = stored("race").results or {'), ("rival=", "stored=0, rival=")
    digests = []
    for old, new in (("", ""), edit):
        cells = ["seed = 3\ndef draw(): return seed", "class Model:\n    def __init__(self, n_layers=2): draw()",
                 "def train(model, batch):\n    return batch[1:]", "print(1)", "def other(): pass"]
        cells = [{"cell_type": "code", "source": [cell.replace(old, new)]} for cell in cells]
        (tmp_path / "notebooks" / "04_x.ipynb").write_text(json.dumps({"cells": cells}))
        digests.append(digest(tmp_path, *stored))
    assert (digests[0] != digests[1]) == seen


@pytest.mark.parametrize("training", [
    "for one in (model, rival): fit(one, loss, steps=300)", "fit(model=rival, steps=300)",
    "import course_utils.training as training\nlog = training.fit(rival, steps=300)",
    "log = fit(loss, rival, steps=300)", "logs = [fit(one, 300) for one in (model, rival)]",
    "def step():\n    rival.loss().backward()\nfor n in range(300):\n    step()",
    "def step():\n    for n in range(300): rival.learn()\nstep()",
    "with quiet():\n    rival.learn(300)", "train(what=rival, steps=300)",
    "for n in range(300):\n    rate.step(rival)", "print(fit(rival, steps=300))", "_ = rival.learn(300)",
])
def test_a_rival_trained_otherwise_is_seen_however_it_is_written(tmp_path, training):
    written = ("log = fit(rival, loss, steps=300)", training)
    other = (written[0], training.replace("300", "30").replace(".backward()", ""))
    assert digest(tmp_path, written) != digest(tmp_path, other)


def test_a_function_that_a_loop_calls_and_the_last_seed_are_seen(tmp_path):
    """Of 08's painting: without what step() does, nothing is trained."""
    assert digest(tmp_path, ("model - x", "model + x")) != digest(tmp_path)
    seeded = ("seed = 0", "import torch\nseed = 0\ntorch.manual_seed(1)")
    assert digest(tmp_path, seeded) != digest(tmp_path, (seeded[0], seeded[1].replace("(1)", "(2)")))
    step = ("log = fit(rival, loss, steps=300)", "def step():\n    rival.learn()\nfor n in range(3):\n    step()")
    assert digest(tmp_path, step) != digest(tmp_path, (step[0], step[1].replace("rival.learn()", "pass")))


def test_the_body_of_an_exercise_is_seen(tmp_path):
    plain = "def score(one):\n    return one.score()"
    exercise = (plain, f'{plain}\nscore = check("score")')
    assert digest(tmp_path, exercise) != digest(tmp_path, (exercise[0], exercise[1].replace("one.", "2 * one.")))


@pytest.mark.parametrize("edit", [
    ("  # of both", ""), ("print(found, seed)", "print(found)"), ("plot(found)", "draw(found)"),
    ("rate = 3", "rate  =  3"), ("import fit", "import fit, sequence_loss"),
    ("name: score(one) for name, one", "name: score(one)\n for name, one"),
])
def test_a_change_beside_a_claims_numbers_is_none(tmp_path, edit):
    assert digest(tmp_path) == digest(tmp_path, edit)


def test_a_deleted_claim_is_seen(lesson):
    book = json.loads(lesson.read_text())
    lesson.write_text(json.dumps({**book, "cells": book["cells"][1:]}))
    assert changes(kept(), sources(lesson)) == ['02.a is gone; it held when "with" >= 80 and "without" <= 25']


def test_a_claim_that_is_no_longer_shown_is_seen(lesson):
    book = json.loads(lesson.read_text())
    book["cells"][1]["outputs"] = []
    lesson.write_text(json.dumps(book))
    assert saved(lesson, kept()) == ['02.b is gone; it held when "with" >= 80 and "without" <= 25']


@pytest.mark.parametrize(("change", "says"), [
    ({"measured": [["with", 60.0], ["without", 12.5]]}, "02.c: \"with\" >= 80 and \"without\" <= 25 is False of"),
    ({"measured": [["with", 93.5]], "condition": '"with" >= 80'}, "02.c has not measured all that"),
    ({"condition": '"with" >= 50'}, "02.c, condition:"),
])
def test_a_changed_output_is_seen(lesson, change, says):
    book = json.loads(lesson.read_text())
    book["cells"][2]["outputs"][0]["data"][MIME] |= change
    lesson.write_text(json.dumps(book))
    assert says in "\n".join(saved(lesson, kept()))


def test_a_card_from_before_the_record_is_seen(lesson):
    seeds.add("02.d", '"with" >= 80 and "without" <= 25', accepted.made_by("02.d"),
              {1: seeds.Trial(True, {}, "abc1234", "a machine", "2026-11-23")})
    (stale,) = cards(lesson)
    assert "not yet tried" in stale
    assert "held at 2 of 2 seeds" in stale


@pytest.mark.parametrize(("old", "new", "says"), [
    ("""holds='"with" >= 80 and "without" <= 25'""", "holds=True", "the condition is True"),
    ("""holds='"with" >= 80 and "without" <= 25'""", "holds=best", "write id, says, source, holds, kind, rival and"),
    ("""holds='"with" >= 80 and "without" <= 25'""", "holds='1 < 2'", "compares nothing that was measured"),
    ("rival=", 'kind="fact", rival=', "claim 02.a: kind 'fact'; expected 'experiment', or 'identity'"),
    ("rival=", "expected=1, rival=", "claim 02.a: expected is 1, a int; expected True or False"),
    ('rival="the same steps"', "rival=None", "claim 02.a: rival is None, a NoneType; expected text"),
    ('"02.a"', '"02.b"', "claim 02.b is declared twice"),
])
def test_a_claim_that_cannot_be_kept_is_refused(lesson, old, new, says):
    edit(lesson, "a", old, new)
    with pytest.raises(CourseError, match=re.escape(says)):
        sources(lesson)


@pytest.mark.parametrize(("old", "new", "says"), [
    ("93.5 * one", "93.5", "02.a compares 'with', which is 93.5 in the source"),
    ("93.5 * one", '(93.5, "{:.0f}")', "02.a compares 'with', which is 93.5 in the source"),
    ('"without": 12.5 * one', '"other": 12.5 * one', "02.a compares 'without', which is not measured"),
])
def test_a_number_that_was_typed_in_is_seen(lesson, old, new, says):
    edit(lesson, "a", old, new)
    assert written_out(lesson) == [says]


MEASURED = '{"with": 93.5 * one, "without": 12.5 * one}'


@pytest.mark.parametrize(("measured", "before", "says"), [
    ('{"with": BEST, "without": 12.5 * one}', "BEST = 93.5", ["02.a compares 'with', which is BEST in the source"]),
    ('{"with": (A + B, "{:.1f}"), "without": 12.5 * one}', "A = 90\nB = A / 9",
     ["02.a compares 'with', which is A + B in the source"]),
    ('{name: {"with": 93.5, "without": 12.5}[name] for name in ("with", "without")}', "",
     [f"02.a compares {name!r}, which is {{'with': 93.5, 'without': 12.5}}[name] in the source"
      for name in ("with", "without")]),
    ('{"with": 93.5 * one} | {f"with{end}": x for end, x in [("out", 12.5)]}', "",
     ["02.a compares 'without', which is x in the source"]),
    ('{**{"with": 93.5}, "without": 12.5 * one}', "", ["02.a compares 'with', which is 93.5 in the source"]),
    ('{f"wiht{end}": x * one for end, x in [("", 93.5), ("out", 12.5)]}', "",
     ["02.a compares 'with', which is not measured", "02.a compares 'without', which is not measured"]),
    ("rows", f"rows = {MEASURED}", ["02.a: measured is rows in the source; write it out as a dict, a comprehension of "
                                    "one, or such joined by |, so that what it compares can be seen."]),
    ('{"with": best, "without": 12.5 * one}', "best = 93.5\nbest = best * one", []),
    ('{"with": row["best"], "without": 12.5 * one}', "row = {}\nrow['best'] = 93.5 * one", []),
    ('{f"with{end}": x * one for end, x in [("", 93.5), ("out", 12.5)]}', "", []),
    ('{f"with{end}": BEST for end, BEST in zip(("", "out"), {"with": one}.items())}', "BEST = 93.5", []),
])
def test_constants_comprehensions_and_unions_are_looked_through(lesson, measured, before, says):
    edit(lesson, "a", MEASURED, measured)
    edit(lesson, "a", 'claim("02.a"', f'{before}\nclaim("02.a"')
    assert written_out(lesson) == says


def test_the_file_is_readable_and_in_order():
    text = accepted.FILE.read_text(encoding="utf-8")
    found = json.loads(text)
    assert list(found) == sorted(found)
    for row in found.values():
        assert list(row) == ["says", "source", "published", "measured", "made_by", "condition", "kind", "rival",
                             "expected"]
    lines = text.splitlines()
    assert len(lines) == sum(len(row) + 2 for row in found.values()) + 2, "one line a field"
