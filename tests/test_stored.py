"""Stored measurements: written in one step, read back whole, and saying what it takes to repeat them."""

import json
import re
import subprocess
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from course_utils.claims import stored as module
from course_utils.claims.stored import EXPERIMENTS, store, stored

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


def is_absolute(word: str) -> bool:
    """Whether a word is a place on one machine."""
    return PurePosixPath(word).is_absolute() or PureWindowsPath(word).is_absolute() or str(Path.home()) in word
