"""The script behind lesson 04's two loss curves, in miniature."""

import importlib
import json
import sys
from pathlib import Path

import pytest

FIGURES = Path(__file__).resolve().parents[1] / "experiments"
sys.path.insert(0, str(FIGURES))
two_processes = importlib.import_module("two_processes")


@pytest.fixture(scope="module")
def curves(tmp_path_factory):
    """What the script writes in eight steps."""
    path = tmp_path_factory.mktemp("curves") / "curves.json"
    two_processes.main(["--steps", "8", "--out", str(path)])
    return json.loads(path.read_text())


def test_two_processes_give_the_losses_of_one(curves):
    """The same batches, cut in half: what differs is the order of the sums."""
    assert len(curves["1"]) == 8
    assert curves["1"][-1] < curves["1"][0] - 0.5
    assert curves["2"] == pytest.approx(curves["1"], abs=1e-4)


def test_the_committed_curves_begin_where_the_script_begins(curves):
    """The learning rate follows the step alone, so that eight steps are the first of 150."""
    committed = json.loads((FIGURES / "two_processes.json").read_text())
    assert len(committed["1"]) == len(committed["2"]) == 150
    assert committed["2"] == pytest.approx(committed["1"], abs=0.01)
    assert committed["1"][:8] == pytest.approx(curves["1"], abs=1e-3)
