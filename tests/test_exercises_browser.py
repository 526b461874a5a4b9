"""A student writes an answer in JupyterLab, sees the card, and a later cell runs it."""

from browser import open_live, run

from course_utils.exercises.engine import code
from course_utils.exercises.lesson_02 import masked_softmax

START = "import math\nimport torch\nfrom course_utils.exercises import check, your_parts"
STUB = """def masked_softmax(scores, mask):
    raise NotImplementedError("your turn")

masked_softmax = check("masked_softmax")"""
LATER = 'print("attended by", masked_softmax.__module__)\nyour_parts("masked_softmax")'
WRONG = STUB.replace('raise NotImplementedError("your turn")', "return scores.softmax(dim=-1)")
RIGHT = f'{code(masked_softmax)}\nmasked_softmax = check("masked_softmax")'


def test_an_answer_is_judged_and_runs_on(jupyter, lab):
    """Run as it came, then with a wrong answer, then with a right one; each time the later cell tells who ran."""
    open_live(lab, jupyter, "lab/tree", "exercise.ipynb", [START, STUB, LATER])
    run(lab, 0)

    def write_and_run(answer):
        if answer:
            lab.locator(".jp-CodeCell .cm-content").nth(1).click()
            lab.keyboard.press("Control+A")
            lab.keyboard.insert_text(answer)
        run(lab, 1)
        run(lab, 2)
        outputs = lab.locator(".jp-CodeCell").locator(".jp-OutputArea")
        return outputs.nth(1), outputs.nth(2)

    for answer, card, parts, module in (
            ("", "not written yet", "0 of 1 parts", "course_utils.exercises.lesson_02"),
            (WRONG, "Why: The mask is ignored", "0 of 1 parts", "course_utils.exercises.lesson_02"),
            (RIGHT, "Yours runs from here on", "1 of 1 parts", "__main__")):
        judged, later = write_and_run(answer)
        judged.get_by_text(card).wait_for()
        later.get_by_text(parts).wait_for()
        later.get_by_text(f"attended by {module}").wait_for()
        assert judged.locator("pre", has_text="Traceback").count() == 0
