"""Run a handout with no exercise solved, with all solved or with all wrong: ``python tests/answered.py 02 wrong``.

Minutes a notebook, so by hand. It prints the cards' first characters, the seconds, and any cell that raised.
"""

import argparse
import re
import tempfile
from pathlib import Path

from course_utils.course import course_root
from course_utils.exercises import EXERCISES
from course_utils.exercises.engine import code, edited_code
from course_utils.publish.handouts import handout
from course_utils.publish.notebooks import CellError, execute, find, read, write

ASKED = re.compile(r'\n\n(\w+) = check\("\1"\)$')


def answer(name: str, how: str) -> str:
    """The solution's code, right or with the exercise's first known fault."""
    exercise = EXERCISES[name]
    if how == "wrong" and not exercise.known:                             # judged on symbols
        return code(exercise.solution).replace("return ", "return 2 * ", 1)
    return edited_code(exercise.solution, *(exercise.faults[0][1:] if how == "wrong" else ()))


def main() -> None:
    """Answer the handout, run it in a folder of its own, and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebook")
    parser.add_argument("how", choices=("unsolved", "solved", "wrong"))
    options = parser.parse_args()
    path, = find(options.notebook, course_root())
    student = handout(read(path), path.parent)
    for cell in student.cells:
        if cell.cell_type == "code" and (asked := ASKED.search(cell.source)) and options.how != "unsolved":
            cell.source = answer(asked[1], options.how) + asked[0][1:]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / path.name
        write(student, file)
        try:
            run = execute(file)
        except CellError as error:
            raise SystemExit(f"{path.name}, {options.how}: {error}") from None
    cards = [output["data"].get("text/plain", "") for cell in run.notebook.cells if cell.cell_type == "code"
             for output in cell.outputs if ASKED.search(cell.source) and "data" in output]
    print(f"{path.name}, {options.how}: {''.join(card[0] for card in cards)} in {run.seconds:.0f} s")


if __name__ == "__main__":
    main()
