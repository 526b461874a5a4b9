"""Stored measurements: written in one step, read back whole, and saying what it takes to repeat them."""

import ast
import json
import re
import subprocess
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from course_utils.claims import collect, declared
from course_utils.claims import stored as module
from course_utils.claims.code_behind import behind, statements
from course_utils.claims.stored import EXPERIMENTS, store, stored
from course_utils.course import course_root, numbered, with_claims

RESULTS = {"bleu": {"with": 45.7, "without": 27.4}, "rows": ["été", "<eos>"], "steps": 3200}


def test_what_is_stored_is_read_back(tmp_path):
    written = store(tmp_path / "here.json", "python experiments/here.py --seeds 0 1", (0, 1), RESULTS)
    read = stored("here", tmp_path)
    assert read == written
    assert read.results == RESULTS
    assert read.seeds == [0, 1]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", read.date)
    assert re.search(r", \d+ cores, torch \d+\.\d+", read.machine)
    assert [file.name for file in tmp_path.iterdir()] == ["here.json"]            # nothing half-written is left


def test_a_failed_write_leaves_the_old_file(tmp_path):
    store(tmp_path / "here.json", "python experiments/here.py", [0], RESULTS)
    with pytest.raises(TypeError):
        store(tmp_path / "here.json", "python experiments/here.py", [0], {"not for JSON": object()})
    assert stored("here", tmp_path).results == RESULTS


def test_its_origin_is_shown_and_is_text(tmp_path):
    one = store(tmp_path / "one.json", "python experiments/one.py < in", [3], {})
    assert all(part in str(one) for part in (one.date, "seed 3;", one.machine, one.version, one.command))
    assert "seeds 0, 2;" in str(store(tmp_path / "two.json", "python experiments/two.py", [0, 2], {}))
    assert "one.py &lt; in" in one._repr_html_()


def test_a_missing_file_lists_those_there_are(tmp_path):
    store(tmp_path / "reviews.json", "python experiments/reviews.py", [0], {})
    store(tmp_path / "captions.json", "python experiments/captions.py", [0], {})
    with pytest.raises(ValueError, match=r"no stored measurement 'caption' in .*; there is: captions, reviews\."):
        stored("caption", tmp_path)
    with pytest.raises(ValueError, match="there is: none"):
        stored("captions", tmp_path / "empty")


@pytest.mark.parametrize("text", ["{", "[]", "3", "{}", '{"command": "x"}', "\udcff"])
def test_a_broken_file_says_how_to_make_it_again(text, tmp_path):
    (tmp_path / "here.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=r"is not a stored measurement .* experiments/here\.py"):
        stored("here", tmp_path)


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone with one commit, in which the measurement would run."""
    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True,
                       capture_output=True)
    for name in ("course_utils/a.py", "experiments/b.py", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1\n")
    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    monkeypatch.setattr(module, "EXPERIMENTS", tmp_path / "experiments")
    return tmp_path


def test_the_version_is_the_commit(clone):
    assert re.fullmatch("[0-9a-f]{7,}", module.version())
    (clone / "README.md").write_text("2\n")                                       # changes no measurement
    assert re.fullmatch("[0-9a-f]{7,}", module.version())


@pytest.mark.parametrize("name", ["course_utils/a.py", "experiments/b.py"])
def test_a_version_with_changes_ends_in_a_plus(name, clone):
    (clone / name).write_text("2\n")
    assert re.fullmatch(r"[0-9a-f]{7,}\+", module.version())


def test_outside_a_clone_the_version_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "EXPERIMENTS", tmp_path / "experiments")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert module.version() == "unknown"


# --- those that are committed ------------------------------------------------------------------------------------

COMMITTED = [path for path in sorted(EXPERIMENTS.glob("*.json")) if path.stem != "claims_at_seeds"]


def strings(value) -> list[str]:
    """Every string in a JSON value, keys too."""
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in strings(part)]
    if isinstance(value, list):
        return [text for part in value for text in strings(part)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.name)
def test_a_committed_measurement_can_be_repeated(path):
    measured = stored(path.stem)
    script = re.fullmatch(r"python (experiments/\w+\.py)( .*)?", measured.command)
    assert script, measured.command
    assert (EXPERIMENTS.parent / script[1]).is_file()
    assert re.fullmatch("[0-9a-f]{7,}", measured.version), "measured with files that were not committed"
    words = [word for text in strings(json.loads(path.read_text(encoding="utf-8"))) for word in text.split()]
    assert [word for word in words if len(word) > 1 and is_absolute(word)] == []


FROM_FILES = [one for path in with_claims(numbered(course_root())) for one in declared.declared(path) if one.stored]


def read_again(one: declared.Declared) -> dict[str, float]:
    """What a claim measures, by the statements behind it that train nothing: its numbers as the files have them now."""
    made = [pair for number, source in declared.code_cells(one.notebook) if number <= one.cell
            for pair in zip(statements(source), ast.parse(source).body, strict=True)]
    needed = {id(statement) for statement in behind(one.measured, [statement for statement, _ in made])
              if "fit(" not in statement.text}
    nodes = [node for statement, node in made
             if isinstance(node, ast.Import | ast.ImportFrom) or id(statement) in needed]
    names = {}
    exec(compile(ast.Module(nodes, []), one.id, "exec"), names)
    measured = eval(compile(ast.Expression(one.measured), one.id, "eval"), names)
    return {label: float(value[0] if isinstance(value, tuple) else value) for label, value in measured.items()}


@pytest.mark.parametrize("one", FROM_FILES, ids=lambda one: one.id)
def test_a_card_shows_the_numbers_that_are_stored(one):
    card, = (card for card in collect([one.notebook]) if card.id == one.id)
    assert card.measured == pytest.approx(read_again(one)), f"run {one.notebook.name} again"


def test_a_file_that_was_measured_anew_is_seen(monkeypatch):
    """With other numbers in the file the test above fails."""
    one, = (one for one in FROM_FILES if one.id == "04.two-processes")
    before = read_again(one)
    old = stored("two_processes")
    monkeypatch.setattr(module, "stored", lambda name: old)
    assert read_again(one) == before
    old.results["1"][-1] += 1
    assert read_again(one) != before


def is_absolute(word: str) -> bool:
    """Whether a word is a place on one machine."""
    at_home = re.search(rf"{re.escape(str(Path.home()))}(?![\w-])", word)              # /root, and not a/root_d.py
    return PurePosixPath(word).is_absolute() or PureWindowsPath(word).is_absolute() or bool(at_home)
