"""One set of versions: pyproject.toml, the lock, conda's file, the documents and this environment agree."""

import ast
import itertools
import re
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, metadata, version

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from course_utils import doctor
from course_utils.course import course_root

ROOT = course_root()
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PINS = doctor.read_lock(ROOT / "requirements.lock")
DIRECT = [Requirement(line) for extra in ("", *doctor.EXTRAS) for line in doctor.requirements(ROOT, extra)]
PYTHONS = ["3.11", "3.12", "3.13"]
STUDENTS, TESTS = "-c requirements.lock -e .", '-c requirements.lock -e ".[live,test]"'
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
ACTION = yaml.safe_load((ROOT / ".github/actions/install/action.yml").read_text(encoding="utf-8"))


def disagreements(requirements: list[Requirement], pins: dict[str, str]) -> list[str]:
    """Direct dependencies that the lock does not pin, or pins outside their range."""
    problems = []
    for requirement in requirements:
        pin = pins.get(canonicalize_name(requirement.name))
        if pin is None:
            problems.append(f"{requirement.name} is not in the lock")
        elif pin not in requirement.specifier:
            problems.append(f"{requirement.name}=={pin} is outside {requirement.specifier}")
    return problems


def test_every_direct_dependency_is_pinned_inside_its_range():
    assert disagreements(DIRECT, PINS) == []


@pytest.mark.parametrize(
    ("line", "pins", "problem"),
    [
        ("torch>=2.6,<3", {}, "not in the lock"),
        ("torch>=2.6,<3", {"torch": "3.0.0"}, "outside"),
        ("Jupyterlab_Widgets==3.0.10", {"jupyterlab-widgets": "3.0.11"}, "outside"),
    ],
)
def test_a_disagreement_is_seen(line, pins, problem):
    assert [text for text in disagreements([Requirement(line)], pins) if problem in text]


def test_the_lock_has_one_exact_public_version_for_each_package():
    lines = [line for line in LOCK.splitlines() if line and not line.startswith("#")]
    for line in lines:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line), line
        assert Version(line.split("==")[1]).local is None, line
    assert len(PINS) == len(lines), "a package stands twice in the lock"


def test_installed_versions_are_those_of_the_lock():
    different = {}
    for name, pin in PINS.items():
        try:
            found = version(name)
        except PackageNotFoundError:
            continue  # another platform's
        if Version(found).public != Version(pin).public:
            different[name] = f"{found}, lock {pin}"
    assert different == {}
    assert [r.name for r in DIRECT if canonicalize_name(r.name) not in PINS] == []


def test_every_python_of_the_course_takes_every_pin():
    """From the first release of each: Debian 12 has 3.11.2."""
    refused = {}
    for name in PINS:
        try:
            wanted = metadata(name).get("Requires-Python") or ""
        except PackageNotFoundError:
            continue  # another platform's
        refused |= {f"{name} {python}.0": wanted for python in PYTHONS if f"{python}.0" not in SpecifierSet(wanted)}
    assert refused == {}


def test_the_linter_has_nothing_to_say():
    done = subprocess.run([sys.executable, "-m", "ruff", "check", "--output-format=concise"], cwd=ROOT,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_everyone_names_the_same_pythons():
    assert f"3.{sys.version_info.minor}" in PYTHONS
    supported = SpecifierSet(doctor.read_project(ROOT)["requires-python"])
    assert [f"3.{minor}" for minor in range(8, 20) if f"3.{minor}.5" in supported] == PYTHONS
    pyproject = doctor.tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert pyproject["tool"]["ruff"]["target-version"] == "py" + PYTHONS[0].replace(".", "")
    assert "for Python 3.11, 3.12 and 3.13:" in LOCK
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "You need Python 3.11, 3.12 or 3.13 " in readme
    assert set(re.findall(r"(?:python|py -)(3\.\d+)", readme)) <= set(PYTHONS)
    assert set(re.findall(r"python(3\.\d+)", (ROOT / ".ci/lock").read_text(encoding="utf-8"))) == set(PYTHONS)
    assert WORKFLOW["jobs"]["unit"]["strategy"]["matrix"]["python"] == PYTHONS


def test_the_extras_are_those_of_pyproject():
    """`grade` has an environment of its own, without the lock."""
    assert set(doctor.read_project(ROOT)["optional-dependencies"]) == {*doctor.EXTRAS, "grade"}


def test_students_need_neither_the_tests_packages_nor_those_of_live_slides():
    names = {canonicalize_name(Requirement(line).name) for line in doctor.requirements(ROOT)}
    tests = {canonicalize_name(Requirement(line).name) for line in doctor.requirements(ROOT, "test")}
    assert names & (tests | {"jupyterlab-rise"}) == set()
    assert not [line for line in doctor.requirements(ROOT) if line.startswith("ipywidgets") and "==" in line]


def test_conda_installs_the_lock_and_nothing_else():
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    supported = doctor.read_project(ROOT)["requires-python"]
    assert yaml.safe_load(text)["dependencies"] == [
        f"python{supported}", "pip", {"pip": ["-c requirements.lock", "-e ."]}
    ]


def test_readme_and_ci_use_the_lock_and_the_same_test_command():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("python3 -m venv")] == [
        f"python3 -m venv .venv && .venv/bin/pip install {STUDENTS} && .venv/bin/course fetch && "
        ".venv/bin/course lab",
        f"python3 -m venv .venv && .venv/bin/pip install {TESTS} && .venv/bin/course fetch && .venv/bin/pytest",
    ]
    assert [line for line in lines if line.startswith("py -3")] == [
        f"py -3.13 -m venv .venv; .venv\\Scripts\\pip install {STUDENTS}; .venv\\Scripts\\course fetch; "
        ".venv\\Scripts\\course lab",
        f"py -3.13 -m venv .venv; .venv\\Scripts\\pip install {TESTS}; .venv\\Scripts\\course fetch; "
        ".venv\\Scripts\\pytest",
    ]
    assert [line for line in lines if "conda activate" in line] == [
        "conda env create -f environment.yml && conda activate attention-course && course fetch && course lab",
        f"conda activate attention-course && pip install {TESTS} && course fetch && pytest",
    ]
    ci = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    assert f"pip install --quiet {TESTS}" in ci
    assert ci[-1] == "pytest"
    assert ci[ci.index(f"pip install --quiet {TESTS}") + 1] == "course fetch"
    assert [step["run"] for step in ACTION["runs"]["steps"][-2:]] == [f"pip install {TESTS}", "course fetch"]


def test_every_job_installs_the_same_way_and_has_a_limit():
    matrix = WORKFLOW["jobs"]["unit"]["strategy"]["matrix"]
    assert [system.split("-")[0] for system in matrix["os"]] == ["ubuntu", "macos", "windows"]
    for name, job in WORKFLOW["jobs"].items():
        assert 5 <= job["timeout-minutes"] <= 60, name
        used = [step["uses"] for step in job["steps"] if "uses" in step]
        assert [use.split("@")[0] for use in used] == ["actions/checkout", "./.github/actions/install"], name
        assert job["steps"][1]["with"]["python"] in ("3.11", "${{ matrix.python }}"), name
        assert job.get("strategy", {}).get("fail-fast", False) is False, name


def test_the_site_is_built_and_published_with_what_the_others_install():
    workflow = yaml.safe_load((ROOT / ".github/workflows/site.yml").read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    steps = [step.get("run", step.get("uses", "").split("@")[0]) for step in job["steps"]]
    assert steps == ["actions/checkout", "./.github/actions/install", "course site site", "actions/configure-pages",
                     "actions/upload-pages-artifact", "actions/deploy-pages"]
    assert job["steps"][4]["with"]["path"] == "site"
    assert workflow["permissions"] == {"contents": "read", "pages": "write", "id-token": "write"}
    assert job["timeout-minutes"] <= 60


def test_the_jobs_together_run_every_test_once():
    """By their marks and the notebooks' names; the unit tests' matrix counts once."""
    commands = [
        step["run"].replace("${{ matrix.lessons }}", lessons)
        for job in WORKFLOW["jobs"].values()
        for lessons in job.get("strategy", {}).get("matrix", {}).get("lessons", [""])
        for step in job["steps"]
        if step.get("run", "").startswith("pytest ")
    ]
    marked = [shlex.split(command)[3] for command in commands if command.startswith("pytest tests -m ")]
    for slow, browser in itertools.product((False, True), repeat=2):
        chosen = [eval(mark, {"slow": slow, "browser": browser}) for mark in marked]  # words, and, not
        assert sum(chosen) == 1, (slow, browser)
    patterns = [command.split()[1] for command in commands if command.startswith("pytest notebooks/")]
    executed = sorted(path for pattern in patterns for path in ROOT.glob(pattern))
    assert executed == sorted((ROOT / "notebooks").rglob("*.ipynb"))
    assert len(commands) == len(marked) + len(patterns)


def test_contributing_gives_a_reason_for_each_dependency():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("## Dependencies\n")[1].split("\n## ")[0]
    reasons = {}
    for names, reason in re.findall(r"^\| (`.+`) \| (.+) \|$", section, flags=re.MULTILINE):
        for name in re.findall(r"`([^`]+)`", names):
            assert canonicalize_name(name) not in reasons, f"{name} stands twice"
            reasons[canonicalize_name(name)] = reason
    graders = [Requirement(line) for line in doctor.requirements(ROOT, "grade")]
    assert set(reasons) == {canonicalize_name(requirement.name) for requirement in [*DIRECT, *graders]}
    assert all(len(reason.split()) >= 3 for reason in reasons.values())


ELSEWHERE = re.compile(r"(/(home|Users|root|tmp|work|mnt|opt|usr|var)|[A-Za-z]:|~)[/\\][\w.]|.*\bshared[/]data")
EXAMPLES = ("/home/ada/course", "C:\\Users\\ada")                         # nothing is read there


def outside_the_repository(source: str) -> list[str]:
    """What leads out of the repository in the code of a test: another folder's name, or a parent too many."""
    texts = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    named = [text for text in texts if isinstance(text, str) and ELSEWHERE.match(text) and text not in EXAMPLES]
    return named + re.findall(r"parents\[[2-9]\]|(?:\.parent\b){3}", source)


def test_no_test_reads_outside_the_repository():
    files = {ROOT / "conftest.py", *ROOT.glob("tests/*.py")} - {ROOT / "tests/test_environment.py"}    # its examples
    found = {path.name: outside_the_repository(path.read_text(encoding="utf-8")) for path in files}
    assert {name: leads for name, leads in found.items() if leads} == {}


@pytest.mark.parametrize("source", ["open('/mnt/a.txt')", "Path('../shared/data/a.txt')", "f'~/.cache/{name}'",
                                    "Path(__file__).parents[2]", "here.parent.parent.parent / 'a.txt'"])
def test_a_test_that_reads_outside_the_repository_is_seen(source):
    assert len(outside_the_repository(source)) == 1
