"""A record of what was tried, for a class that wants one: off unless ``COURSE_PROGRESS`` is ``on``. Nothing is sent."""

import inspect
import json
import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from ..course import PROGRESS, CourseError
from .engine import Verdict

FILE = "progress.jsonl"
STUCK = 3                                                  # wrong answers, and none right


def record(name: str, verdict: Verdict, function: Callable | None) -> None:
    """Add a line to ``progress.jsonl`` in the notebook's folder: when, the exercise, what was tried, what was said.

    No name of a person or a machine is in it. A folder that cannot be written to is passed over.
    """
    if os.environ.get(PROGRESS, "").lower() != "on":
        return
    try:
        tried = inspect.getsource(function)
    except (OSError, TypeError):
        tried = ""
    line = {"when": datetime.now().isoformat(timespec="seconds"), "exercise": name, "verdict": verdict.kind,
            "fault": verdict.fault, "said": verdict.text, "tried": tried}
    with suppress(OSError), Path(FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def summary(folder: Path) -> str:
    """What a class's folders say: for each exercise who has solved it, who is stuck, and its frequent mistakes.

    Args:
        folder: holds one folder for each student, in which ``progress.jsonl`` lies, at any depth.

    Raises:
        CourseError: if none does, or a line in one is not readable.
    """
    tries: dict[str, dict[str, list[tuple]]] = {}          # exercise → student → verdicts with their faults
    for path in sorted(folder.rglob(FILE)):
        student = path.relative_to(folder).parts[0]
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                line = json.loads(text)
                tries.setdefault(line["exercise"], {}).setdefault(student, []).append((line["verdict"], line["fault"]))
            except (ValueError, KeyError, TypeError):
                raise CourseError(f"{path}, line {number}, is not what a check writes. Delete the line.") from None
    if not tries:
        raise CourseError(f"no {FILE} in {folder} or below. A check writes one where {PROGRESS} is on.")
    return "\n\n".join(_of_exercise(name, students) for name, students in sorted(tries.items()))


def _of_exercise(name: str, students: dict[str, list[tuple[str, str]]]) -> str:
    students = {who: tries for who, tries in students.items() if any(kind != "unwritten" for kind, _ in tries)}
    solved = [who for who, tries in students.items() if any(kind in ("right", "slow") for kind, _ in tries)]
    wrong = {who: [fault for kind, fault in tries if kind == "wrong"] for who, tries in students.items()}
    stuck = [who for who, faults in wrong.items() if len(faults) >= STUCK and who not in solved]
    made = Counter(fault for faults in wrong.values() for fault in {*faults})
    lines = [f"{name}: solved by {len(solved)} of {len(students)} who tried"]
    if stuck:
        lines.append(f"  stuck ({STUCK} wrong answers or more): {', '.join(stuck)}")
    return "\n".join(lines + [f"  {count} × {fault}" for fault, count in made.most_common(3)])
