"""GUIDE.md, for those who teach: what it names exists, and says what the notebooks say."""

import re

import pytest

from course_utils import cli
from course_utils.claims import declared, seeds
from course_utils.course import course_root, is_further, numbered, with_claims
from course_utils.publish.notebooks import read

ROOT = course_root()
GUIDE = " ".join((ROOT / "GUIDE.md").read_text(encoding="utf-8").split())
PATHS = numbered(ROOT)
LESSONS = [path for path in PATHS if not is_further(path) and not path.name.startswith("00")]
FURTHER = [path for path in PATHS if is_further(path)]
SECTIONS = dict(re.findall(r"### (\d\d) · (.*?)(?= ### \d\d · | ## )", GUIDE))
every_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def text(path):
    return " ".join(" ".join(cell.source.split()) for cell in read(path).cells if cell.cell_type == "markdown")


def minutes(path):
    return int(re.search(r"(\d+) minutes", text(path))[1])


def test_every_lesson_has_its_part_and_asks_its_question():
    assert list(SECTIONS)[:len(LESSONS)] == [path.name[:2] for path in LESSONS]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in LESSONS:
        question = re.match(r".+?\?", SECTIONS[path.name[:2]])[0]
        assert re.search(rf"^\| {path.name[:2]} \|.*\| {re.escape(question)} \|", readme, re.MULTILINE)


@every_lesson
def test_a_lessons_part_says_what_its_notebook_says(path):
    part, notebook = SECTIONS[path.name[:2]], text(path)
    clock = re.search(r"\*\*Clock:\*\* (.+?\.) \*\*", notebook)[1]
    assert f"**Clock:** {clock} **Exercises:**" in part
    late = re.search(r"\*\*Late\?\*\* (.+?\(−\d+\)\.)", notebook)[1]
    assert f"**Late?** {late}" in part
    said = re.search(r"In class: exercises? (.+?)\.(?: At home: (.+?)\.)? ", notebook)
    in_class, at_home = (re.findall(r"\d", re.sub(r"\(.+?\)", "", group or "")) for group in said.groups())
    found = re.search(r"\*\*Exercises:\*\* in class (.+?)(?:; at home (.+?))?\. \*\*", part)
    assert [re.findall(r"\d", group or "") for group in found.groups()] == [in_class, at_home]
    for heading in ("**Students can** afterwards", "**Usual wrong answers**", "**Questions they ask, or you do**",
                    "**What did not come out, or only just:**", "**Further:**"):
        assert heading in part


@every_lesson
def test_a_lessons_further_notebooks_are_linked_with_their_minutes(path):
    linked = re.findall(r"\(notebooks/further/(\w+)\.ipynb\), (\d+) minutes", SECTIONS[path.name[:2]])
    assert sorted(linked) == [(one.stem, str(minutes(one))) for one in FURTHER if one.name[:2] == path.name[:2]]


def test_claims_that_failed_somewhere_are_named_and_no_others():
    claims = [claim for path in with_claims(PATHS) for claim in declared.declared(path)]
    tried = {claim.id: seeds.tried(claim.id, claim.terms.condition, claim.made_by) for claim in claims}
    failed = {claim.id for claim in claims if not claim.terms.expected
              or tried[claim.id].failed(claim.terms.expected)}
    assert set(re.findall(r"`(\d\d\.[a-z-]+)`", GUIDE)) == failed


def test_an_hour_of_further_notebooks_fits_a_class():
    titles = dict(re.findall(r"\[([^\]]+)\]\(notebooks/further/(\w+)\.ipynb\)", GUIDE))
    (row,) = re.findall(r"\| 13 weeks \| (.+?) \|", GUIDE)
    weeks = row.split(" · ")
    assert len(weeks) == 13
    of = {path.stem: path for path in FURTHER}
    for week in weeks:
        if week.startswith("*"):
            names = [name for title, name in titles.items() if title in week]
            assert 40 <= sum(minutes(of[name]) for name in names) <= 75, week
            assert not re.sub("|".join(map(re.escape, titles)), "", week).strip("*, "), week
        else:
            assert set(re.findall(r"\d\d", week)) <= {path.name[:2] for path in PATHS} | {"08"}


def test_the_shorter_courses_have_as_many_weeks_as_they_say():
    (eight,) = re.findall(r"\| 8 weeks \| (.+?) \|", GUIDE)
    (four,) = re.findall(r"\| 4 weeks \| (.+?)\. Lesson", GUIDE)
    assert (len(four.split(" · ")), len(eight.split(" · "))) == (4, 8)


def test_every_command_in_it_is_understood():
    parser = cli._parser()
    commands = set(re.findall(r"`course ([a-z][^`]*)`", GUIDE))
    assert len(commands) >= 8
    for command in commands:
        parser.parse_args(command.split())


def test_files_and_variables_in_it_exist():
    for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", GUIDE):
        assert (ROOT / link).exists(), link
    source = (ROOT / "course_utils" / "course.py").read_text(encoding="utf-8")
    assert all(f'"{name}"' in source for name in re.findall(r"COURSE_[A-Z]+", GUIDE))
