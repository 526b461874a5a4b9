"""One set of versions: pyproject.toml, the lock, conda's file, the documents and this environment agree."""

import re
import sys
from importlib.metadata import PackageNotFoundError, version

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from course_utils import doctor
from course_utils.publish.notebooks import course_root

ROOT = course_root()
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PINS = doctor.read_lock(ROOT / "requirements.lock")
DIRECT = doctor.requirements(ROOT) + doctor.requirements(ROOT, "dev")
INSTALL = '-c requirements.lock -e ".[dev]"'


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


def test_everyone_names_the_same_python():
    wanted = ".".join(map(str, doctor.PYTHON))
    assert sys.version_info[:2] == doctor.PYTHON
    pyproject = doctor.tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    supported = SpecifierSet(pyproject["project"]["requires-python"])
    assert [minor for minor in range(8, 20) if f"3.{minor}.5" in supported] == [doctor.PYTHON[1]]
    assert pyproject["tool"]["ruff"]["target-version"] == "py" + wanted.replace(".", "")
    assert f"for Python {wanted}:" in LOCK
    assert f"- python={wanted}\n" in (ROOT / "environment.yml").read_text(encoding="utf-8")
    for name in ("README.md", ".ci/run", ".ci/lock"):
        named = re.findall(r"(?:python|py -)(3\.\d+)", (ROOT / name).read_text(encoding="utf-8"))
        assert set(named) == {wanted}, name


def test_conda_installs_the_lock_and_nothing_else():
    text = (ROOT / "environment.yml").read_text(encoding="utf-8").split("dependencies:\n")[1]
    items = [line.strip()[2:] for line in text.splitlines() if line.strip().startswith("- ")]
    assert items == ["python=3.11", "pip", "pip:", "-c requirements.lock", "-e .[dev]"]


def test_readme_and_ci_use_the_lock_and_the_same_test_command():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    posix = [line for line in readme.splitlines() if line.startswith("python3.11 -m venv")]
    start = f"python3.11 -m venv .venv && .venv/bin/pip install {INSTALL} && .venv/bin/"
    assert posix == [f"{start}course lab", f"{start}pytest"]
    windows = [line for line in readme.splitlines() if line.startswith("py -3.11 -m venv")]
    start = f"py -3.11 -m venv .venv; .venv\\Scripts\\pip install {INSTALL}; .venv\\Scripts\\"
    assert windows == [f"{start}course lab", f"{start}pytest"]
    ci = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    assert f"pip install --quiet {INSTALL}" in ci
    assert ci[-1] == "pytest"


def test_contributing_gives_a_reason_for_each_dependency():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("## Dependencies\n")[1].split("\n## ")[0]
    reasons = {}
    for names, reason in re.findall(r"^\| (`.+`) \| (.+) \|$", section, flags=re.MULTILINE):
        for name in re.findall(r"`([^`]+)`", names):
            assert canonicalize_name(name) not in reasons, f"{name} stands twice"
            reasons[canonicalize_name(name)] = reason
    assert set(reasons) == {canonicalize_name(requirement.name) for requirement in DIRECT}
    assert all(len(reason.split()) >= 3 for reason in reasons.values())
