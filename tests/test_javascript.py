"""The widgets' JavaScript without a browser: it is linted, and its pure functions are tested, in tests/js with node."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from course_utils import widgets
from course_utils.widgets.base import CourseWidget, javascript

JS = Path(__file__).parent / "js"


@pytest.mark.parametrize("file", ["lint.test.js", "functions.test.js"])
def test_javascript(file, tmp_path):
    """Skipped where node, or for the linter its package, is missing; in CI they must be there."""
    node = shutil.which("node")
    if node is None or (file == "lint.test.js" and not (JS / "node_modules").is_dir()):
        missing = "node 20 or newer is missing" if node is None else "eslint is missing: `npm ci --prefix tests/js`"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    classes = [one for one in vars(widgets).values() if isinstance(one, type) and issubclass(one, CourseWidget)]
    files = sorted({one._files for one in classes})
    assert len(files) == 10
    (tmp_path / "widgets.json").write_text(json.dumps({name: javascript(name) for name in files}), encoding="utf-8")
    done = subprocess.run([node, "--test", file], cwd=JS, env=os.environ | {"WIDGETS": str(tmp_path / "widgets.json")},
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
