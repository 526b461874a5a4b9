"""What a check writes down, if asked to, and what an instructor sees of a class."""

import json

import pytest
import torch

from course_utils import cli
from course_utils.exercises import EXERCISES, check
from course_utils.exercises.engine import edited
from course_utils.exercises.progress import FILE

FAULT = EXERCISES["causal_mask"].faults[0]


@pytest.fixture
def student(tmp_path, monkeypatch):
    """Work as a student: `student("ada", functions)` checks `causal_mask` with each of them in a folder of hers."""
    def works(name, *functions):
        folder = tmp_path / "class" / name / "notebooks"
        folder.mkdir(parents=True, exist_ok=True)
        monkeypatch.chdir(folder)
        for function in functions:
            check("causal_mask", {"causal_mask": function})
        return folder / FILE
    return works


@pytest.fixture
def on(monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", "on")


def wrong():
    return edited(EXERCISES["causal_mask"].solution, *FAULT[1:])


def right():
    return edited(EXERCISES["causal_mask"].solution)


def test_by_default_nothing_is_written(student):
    assert not student("ada", wrong(), right()).exists()


def test_a_line_has_what_was_tried_and_what_was_said_and_no_name(student, on):
    def causal_mask(n):
        return None

    lines = [json.loads(line) for line in student("ada", causal_mask, wrong()).read_text("utf-8").splitlines()]
    assert [set(line) for line in lines] == [{"when", "exercise", "verdict", "fault", "said", "tried"}] * 2
    assert [line["verdict"] for line in lines] == ["unwritten", "wrong"]
    assert "return None" in lines[0]["tried"]
    assert [line["fault"] for line in lines] == ["", FAULT[0]]
    assert FAULT[0] in lines[1]["said"]
    assert "ada" not in json.dumps(lines)


def test_the_courses_own_answer_is_not_a_try(student, on):
    path = student("ada")
    check("causal_mask", {"causal_mask": right()}, solution=True)
    assert not path.exists()


def test_a_folder_that_cannot_be_written_to_stops_nothing(student, on):
    path = student("ada")
    path.mkdir()
    check("causal_mask", {"causal_mask": right()})


def test_a_class_is_summed_up(student, on, capsys, tmp_path):
    student("ada", wrong(), right())
    student("bob", wrong(), wrong(), lambda n: 1 / 0)
    student("cem", lambda n: None)                     # the stub as it is given: no try
    capsys.readouterr()
    assert cli.main(["progress", str(tmp_path / "class")]) == cli.EXIT_OK
    assert capsys.readouterr().out == (
        "causal_mask: solved by 1 of 2 who tried\n"
        "  stuck (3 wrong answers or more): bob\n"
        f"  2 × {FAULT[0]}\n"
        "  1 × It raised ZeroDivisionError\n")


def test_nobody_tried(student, on, capsys, tmp_path):
    student("ada", lambda n: None)
    capsys.readouterr()
    assert cli.main(["progress", str(tmp_path / "class")]) == cli.EXIT_OK
    assert capsys.readouterr().out == "causal_mask: solved by 0 of 0 who tried\n"


def test_no_records_and_broken_ones_are_named(student, on, capsys, tmp_path):
    assert cli.main(["progress", str(tmp_path)]) == cli.EXIT_FAILED
    assert f"no {FILE} in {tmp_path} or below" in capsys.readouterr().err
    student("ada").write_text("{")
    assert cli.main(["progress", str(tmp_path)]) == cli.EXIT_FAILED
    assert "line 1, is not what a check writes" in capsys.readouterr().err


@pytest.mark.parametrize(("answer", "fault"), [
    (lambda n: torch.ones(n, n, n, dtype=torch.bool), "Wrong shape"),
    (lambda n: torch.ones(n, n), "Wrong dtype"),
    (lambda n: 1 / 0, "It raised ZeroDivisionError"),
    (lambda n: torch.ones(2, 3) @ torch.ones(n + 9, 1), "These shapes do not line up"),
    (lambda n: torch.ones(n, n, dtype=torch.bool).tril() if n > 1 else torch.zeros(1, 1, dtype=torch.bool),
     "Right on ordinary inputs, but wrong with a single position (n = 1)"),
    (lambda m, n: None, "causal_mask has the signature causal_mask(m, n)"),
])
def test_a_fault_is_how_the_verdict_begins_where_none_is_known(answer, fault):
    assert EXERCISES["causal_mask"].judge(answer).fault == fault
