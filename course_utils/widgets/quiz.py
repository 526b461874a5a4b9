"""The quiz: questions with a few choices, and an explanation for every choice."""

import html
import re
from collections.abc import Sequence
from typing import NamedTuple

import traitlets

from .base import CourseWidget, check_index

MOST_CHOICES = 9  # a choice is a key, 1 to 9
MARKS = {True: "✓", False: "✗"}


class Question(NamedTuple):
    """One question of a quiz. Texts are plain; `` `code` `` in backticks is shown as code.

    Attributes:
        asks: the question.
        choices: two to nine choices ``(text, explanation, right)``, of which exactly one is right.
    """

    asks: str
    choices: Sequence[tuple[str, str, bool]]


class Quiz(CourseWidget):
    """Multiple choice, one question at a time; a choice is explained as soon as it is taken. Nothing is stored.

    Click, or use the keys: left and right change the question, 1 to 9 or up and down choose, Escape leaves::

        Quiz([
            Question("What does `softmax` return?", [
                ("Scores.", "No. Scores go in.", False),
                ("Weights that sum to one.", "Right. Each is positive.", True),
            ]),
        ])

    Where scripts do not run, the questions stand below each other, and every choice opens its explanation.

    Args:
        questions: the questions, at least one.
        question: the question shown first, from 0.
        title: a line above the quiz. Default: none.

    Attributes:
        question, title: two-way; set them from Python, or observe them. What was chosen stays on the page.
        questions: as given, a tuple of ``Question`` (read only).

    Raises:
        ValueError: for no questions, or one that has not two to nine choices, not exactly one right choice, the same
            choice twice, an empty text or something else than texts.
        traitlets.TraitError: for a question that does not exist.
    """

    _widget = "Quiz"
    _files = "quiz"
    _names = ("_questions", "question", "title")

    _questions = traitlets.List().tag(sync=True)
    question = traitlets.Int(0).tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)

    def __init__(self, questions: Sequence[Question], question: int = 0, title: str = ""):
        super().__init__(_questions=_checked(questions), question=question, title=title)

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions."""
        return tuple(Question(asks, [tuple(choice) for choice in choices]) for asks, choices in self._questions)

    @traitlets.validate("question")
    def _question_exists(self, proposal):
        return check_index("question", proposal["value"], len(self._questions))

    def __repr__(self) -> str:
        return f"Quiz(questions={len(self._questions)})"

    def _still_html(self) -> str:
        parts = [f"<p><strong>{html.escape(self.title)}</strong></p>"] if self.title else []
        for number, (asks, choices) in enumerate(self._questions, 1):
            parts.append(f"<p><strong>{number}. {_with_code(asks)}</strong></p>")
            parts += [
                f"<details><summary>{_with_code(text)}</summary><p>{MARKS[right]} {_with_code(why)}</p></details>"
                for text, why, right in choices
            ]
        return "\n".join(parts)

    def _in_words(self) -> str:
        lines, answers = [self.title] if self.title else [], ["", "Answers"]
        for number, (asks, choices) in enumerate(self._questions, 1):
            lines.append(f"{number}. {asks}")
            for letter, (text, why, right) in zip("abcdefghi", choices, strict=False):
                lines.append(f"   {letter}) {text}")
                answers.append(f"{number}{letter} {MARKS[right]} {why}")
        return "\n".join(lines + answers)


def _with_code(text: str) -> str:
    """HTML of a text: `` `code` `` as an element, everything else as data."""
    parts = re.split(r"`([^`]+)`", text)  # what stood in backticks is at the odd places
    return "".join(f"<code>{html.escape(part)}</code>" if k % 2 else html.escape(part) for k, part in enumerate(parts))


def _checked(questions) -> list:
    """The questions as they travel, ``[[asks, [[text, explanation, right], …]], …]``, if nothing is wrong."""
    questions = list(questions)
    if not questions:
        raise ValueError("questions is empty; give at least one Question(asks, choices).")
    return [_checked_question(number, question) for number, question in enumerate(questions)]


def _checked_question(number: int, question) -> list:
    if not isinstance(question, Question):
        raise ValueError(f"question {number} is {question!r:.80}; expected Question(asks, choices).")
    asks, choices = question
    if not isinstance(asks, str) or not asks.strip():
        raise ValueError(f"question {number} asks {asks!r:.80}; expected a text.")
    where = f"question {number} ({asks!r:.60})"
    choices = [choices] if isinstance(choices, str) else list(choices)
    if not 2 <= len(choices) <= MOST_CHOICES:
        raise ValueError(f"{where} has {len(choices)} choices; expected a list of two to {MOST_CHOICES}.")
    for k, choice in enumerate(choices):
        kinds = [type(part) for part in choice] if isinstance(choice, Sequence) else None
        if kinds != [str, str, bool] or not (choice[0].strip() and choice[1].strip()):
            raise ValueError(f"{where}: choice {k} is {choice!r:.80}; expected (text, explanation, right), two texts "
                             "that are not empty and True or False.")
    right = [k for k, choice in enumerate(choices) if choice[2]]
    if len(right) != 1:
        said = f"choices {', '.join(map(str, right))} are" if right else "no choice is"
        raise ValueError(f"{where}: {said} right; expected exactly one with True.")
    texts = [choice[0] for choice in choices]
    twice = next((text for text in texts if texts.count(text) > 1), None)
    if twice is not None:
        raise ValueError(f"{where}: the choice {twice!r} stands there twice; every choice needs its own text.")
    return [asks, [list(choice) for choice in choices]]
