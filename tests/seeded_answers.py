"""Seeded answers to the exercises, and the tests that they go through.

A lesson's test module seeds answers with ``wrong`` and ``right``, which decorate a function or are given a lambda, and
gets the tests by a class: ``class TestAnswers(Answers)`` with its exercises as ``lesson``.
"""

from collections import defaultdict
from functools import cache
from pathlib import Path

import nbformat
import pytest

from course_utils.exercises import EXERCISES
from course_utils.exercises.engine import code, edited

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
WRONG, RIGHT = defaultdict(list), defaultdict(list)  # by the module that seeds them


def _seeded(answers, answer, *given):
    """Keep an answer for the tests of the module in which it is written; a lambda is known by its line."""
    def register(function):
        name = function.__name__ if function.__name__ != "<lambda>" else f"line{function.__code__.co_firstlineno}"
        answers[function.__module__].append(pytest.param((*given, function), id=f"{given[0]}-{name}"))
        return function
    return register(answer) if answer else register


def wrong(exercise, phrase, answer=None):
    """Seed a wrong answer, decorated or given; the message must contain the phrase."""
    return _seeded(WRONG, answer, exercise, phrase)


def right(exercise, answer=None):
    """Seed a right answer in another style than ours, decorated or given."""
    return _seeded(RIGHT, answer, exercise)


@cache
def cells() -> list[str]:
    """The sources of all notebooks' cells."""
    return [cell.source for path in NOTEBOOKS.rglob("*.ipynb") for cell in nbformat.read(path, 4).cells]


class Answers:
    """The tests of a lesson's exercises and of the answers that are seeded in its module."""

    lesson: tuple = ()
    slips: tuple = ()  # (exercise, condition, edits): right on ordinary inputs, but wrong …

    def pytest_generate_tests(self, metafunc):
        """Give each test below the answers of the class's module, and its exercises."""
        module = metafunc.module.__name__
        answers = {"wrong_answer": WRONG[module], "right_answer": RIGHT[module], "slip": self.slips,
                   "lesson_exercise": [pytest.param(exercise, id=exercise.name) for exercise in self.lesson]}
        for name in answers.keys() & set(metafunc.fixturenames):
            metafunc.parametrize(name, answers[name])

    def test_wrong_answer_is_rejected_with_its_fault(self, wrong_answer):
        exercise, phrase, function = wrong_answer
        verdict = EXERCISES[exercise].judge(function)
        assert verdict.kind == "wrong"
        assert phrase in verdict.text

    def test_a_slip_that_only_a_special_case_shows(self, slip):
        exercise, condition, edits = slip
        text = EXERCISES[exercise].judge(edited(EXERCISES[exercise].solution, *edits)).text
        assert text.startswith(f"{exercise}: Right on ordinary inputs, but wrong {condition}")

    def test_right_answer_in_another_style_passes(self, right_answer):
        exercise, function = right_answer
        verdict = EXERCISES[exercise].judge(function)
        assert verdict.kind in ("right", "slow"), verdict.text

    def test_every_fault_is_caught_and_named_as_itself(self, lesson_exercise):
        for why, wrong in lesson_exercise.known:
            verdict = lesson_exercise.judge(wrong)
            assert verdict.kind == "wrong", why
            assert "NameError" not in verdict.text, why
            assert f".\nWhy: {why}\n" in verdict.text, (why, verdict.text)

    def test_a_dozen_reasons_at_most_and_twenty_edits_or_special_cases(self, lesson_exercise):
        sentences = {*lesson_exercise.reasons.values()}
        assert len(sentences | {why for why, *_ in lesson_exercise.faults}) <= 12
        assert len(sentences) + len(lesson_exercise.faults) <= 20
        exceptions = {"IndexError", "NameError", "AttributeError"}
        assert lesson_exercise.reasons.keys() <= {*[*lesson_exercise.cases][1:]} | exceptions

    def test_the_solution_is_right(self, lesson_exercise):
        assert lesson_exercise.judge(edited(lesson_exercise.solution)).kind == "right"

    def test_every_exercise_has_its_seeded_answers(self, lesson_exercise):
        for seeded, least in ((WRONG, 2), (RIGHT, 2)):
            named = [param.values[0][0] for params in seeded.values() for param in params]
            assert named.count(lesson_exercise.name) >= least

    def test_the_notebook_shows_the_solution(self, lesson_exercise):
        name = lesson_exercise.name
        shown = [source for source in cells() if f'check("{name}", solution=True)' in source]
        assert shown == [f'# Solution\n{code(lesson_exercise.solution)}\n{name} = check("{name}", solution=True)']
        assert any(source.endswith(f'\n\n{name} = check("{name}")') for source in cells())
