"""The class on one server: what a student's folder gets, and what it never loses."""

import importlib.util
import json

import pytest

from course_utils.course import course_root

ROOT = course_root()


@pytest.fixture
def config():
    """hub/jupyterhub_config.py as a module, without JupyterHub around it."""
    spec = importlib.util.spec_from_file_location("jupyterhub_config", ROOT / "hub" / "jupyterhub_config.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_student_gets_the_notebooks_and_their_pictures_for_nobody_else_to_read(config, tmp_path):
    tmp_path.chmod(0o755)
    config.copy_course(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o700
    copied = {path.relative_to(tmp_path / config.FOLDER) for path in (tmp_path / config.FOLDER).rglob("*")
              if path.is_file()}
    expected = {path.relative_to(ROOT) for name in config.SHOWN for path in (ROOT / name).rglob("*")
                if path.suffix in (".ipynb", ".svg", ".png") and ".ipynb_checkpoints" not in path.parts}
    assert copied == expected
    assert any(path.parts[:2] == ("notebooks", "further") for path in copied)


def test_a_students_work_is_not_overwritten_and_what_is_missing_comes_back(config, tmp_path):
    config.copy_course(tmp_path)
    mine, lost = (tmp_path / config.FOLDER / "notebooks" / name
                  for name in ("00_start_here.ipynb", "02_bahdanau_attention.ipynb"))
    mine.write_text("my work")
    lost.unlink()
    config.copy_course(tmp_path)
    assert mine.read_text() == "my work"
    assert lost.read_bytes() == (ROOT / "notebooks" / lost.name).read_bytes()


def test_an_account_of_the_system_is_no_students(config, monkeypatch):
    class Root:
        name = "root"

    class Spawner:
        user = Root

    monkeypatch.setattr(config.subprocess, "run", lambda *a, **b: pytest.fail("root's folder was touched"))
    with pytest.raises(PermissionError, match="root is an account of the system"):
        config.prepare(Spawner)


def test_the_readme_says_what_was_measured():
    measured = json.loads((ROOT / "experiments" / "class_on_a_hub.json").read_text(encoding="utf-8"))["results"]
    words = " ".join((ROOT / "hub" / "README.md").read_text(encoding="utf-8").split())
    assert measured["others_files_were_read"] == {"from a cell": False, "through the web": False}
    assert f"{measured['students']} students" in words
    assert f"{max(measured['megabytes_per_student'])} MB per student" in words
    assert f"{max(measured['seconds']['to the server']):.0f} seconds" in words
