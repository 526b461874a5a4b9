"""Assignments as nbgrader and otter-grader themselves release and grade them; for the extra `grade`."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from students import secret_lines, text

from course_utils import cli
from course_utils.course import course_root
from course_utils.exercises import EXERCISES
from course_utils.exercises.engine import code
from course_utils.publish.notebooks import read, write

pytestmark = pytest.mark.slow
pytest.importorskip("nbgrader", reason="needs the extra grade")
pytest.importorskip("otter", reason="needs the extra grade")

NAME = "06_efficient_attention"                        # its second exercise calls two functions of the lesson
ASKED = re.compile(r'^(\w+) = check\("\1"\)$', re.MULTILINE)
STUDENTS = {"full": 2, "part": 1, "none": 0}           # how many of the two exercises each solves


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    assert cli.main(["release", str(folder), "06"]) == cli.EXIT_OK
    return folder


def run(folder: Path, program: str, *words: object) -> None:
    """One of the packages' commands, as it stands beside this Python."""
    command = [str(Path(sys.executable).parent / program), *map(str, words)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def answered(student: Path, solved: int, target: Path) -> None:
    """A student's file with so many exercises solved, the first ones."""
    notebook = read(student)
    asked = [cell for cell in notebook.cells if cell.cell_type == "code" and ASKED.search(cell.source)]
    assert len(asked) == 2
    for cell in asked[:solved]:
        name = ASKED.search(cell.source)[1]
        cell.source = f'{code(EXERCISES[name].solution)}\n\n{name} = check("{name}")'
    write(notebook, target)


def has_no_solution(student: Path) -> None:
    lines = {line.strip() for line in text(read(student)).splitlines()}
    assert lines & secret_lines(read(course_root() / "notebooks" / f"{NAME}.ipynb")) == set()
    assert "SOLUTION" not in student.read_text(encoding="utf-8")


def test_nbgrader_gives_full_part_and_no_marks(released):
    course = released / "nbgrader"
    run(course, "nbgrader", "generate_assignment", NAME)
    student = course / "release" / NAME / f"{NAME}.ipynb"
    has_no_solution(student)
    for who, solved in STUDENTS.items():
        answered(student, solved, course / "submitted" / who / NAME / f"{NAME}.ipynb")
    run(course, "nbgrader", "autograde", NAME, "--create")
    run(course, "nbgrader", "export")
    with (course / "grades.csv").open(encoding="utf-8") as file:
        marks = {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(file)}
    assert marks == {who: (solved, 2) for who, solved in STUDENTS.items()}


def test_otter_gives_full_part_and_no_marks(released):
    folder = released / "otter" / NAME
    run(folder, "otter", "assign", f"{NAME}.ipynb", "dist")          # runs the solutions: all tests must pass
    student = folder / "dist" / "student" / f"{NAME}.ipynb"
    has_no_solution(student)
    (tests,) = (folder / "dist" / "autograder").glob("*.zip")
    for who, solved in STUDENTS.items():
        answered(student, solved, folder / who / f"{NAME}.ipynb")
        run(folder, "otter", "run", f"{who}/{NAME}.ipynb", "-a", tests, "-o", who)
        results = json.loads((folder / who / "results.json").read_text(encoding="utf-8"))["tests"]
        marks = [(test["score"], test["max_score"]) for test in results if "score" in test]
        assert sum(mark for mark, _ in marks) == solved
        assert [most for _, most in marks] == [1, 1]
