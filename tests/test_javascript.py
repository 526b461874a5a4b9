"""The JavaScript of widgets, pages and decks, without a browser: linted, its functions tested, with node."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from sample_translator import model, recurrent, sentences, translations

from course_utils import widgets
from course_utils.publish.exporting import TEMPLATES
from course_utils.widgets import translator, two_translators
from course_utils.widgets.base import CourseWidget, javascript

JS = Path(__file__).parent / "js"


def node(file, folder, **environment):
    """Run a file of tests; skipped where node, or for the linter its package, is missing; in CI they must be there."""
    node = shutil.which("node")
    if node is None or (file == "lint.test.js" and not (JS / "node_modules").is_dir()):
        missing = "node 20 or newer is missing" if node is None else "eslint is missing: `npm ci --prefix tests/js`"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    named = [getattr(widgets, name) for name in widgets.__all__]
    classes = [one for one in named if isinstance(one, type) and issubclass(one, CourseWidget)]
    files = sorted({one._files for one in classes})
    assert len(files) == 12
    pages = {path.name: path.read_text(encoding="utf-8") for path in TEMPLATES.parent.glob("**/*.js")}
    sources = {name: javascript(name) for name in files} | pages
    (folder / "widgets.json").write_text(json.dumps(sources), encoding="utf-8")
    environment = {name: str(value) for name, value in environment.items()}
    done = subprocess.run([node, "--test", file], cwd=JS, capture_output=True, text=True, timeout=120,
                          env=os.environ | {"WIDGETS": str(folder / "widgets.json")} | environment)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("file", ["lint.test.js", "functions.test.js"])
def test_javascript(file, tmp_path):
    node(file, tmp_path)


def test_the_translator_says_what_pytorch_says(tmp_path):
    says_what_pytorch_says("translator.test.js", tmp_path, translator.WEIGHTS, model())


@pytest.mark.parametrize("name", ["without", "with"])
def test_the_two_translators_say_what_pytorch_says(tmp_path, name):
    says_what_pytorch_says("two_translators.test.js", tmp_path, two_translators.WEIGHTS, recurrent(name), NAME=name)


def says_what_pytorch_says(file, folder, weights, writer, **environment):
    found = translations(sentences(120), writer)
    (folder / "cases.json").write_text(json.dumps([
        {"source": source, "target": target, "weights": [] if weights is None else weights.flatten().tolist()}
        for source, target, _, weights in found]))
    (folder / "logits").write_bytes(torch.cat([logits for _, _, logits, _ in found]).numpy().astype("<f4").tobytes())
    said = node(file, folder, TRANSLATOR=weights, TRANSLATIONS=folder / "cases.json", LOGITS=folder / "logits",
                **environment)
    assert "120 sentences" in said
    print(next(line for line in said.splitlines() if "120 sentences" in line))
