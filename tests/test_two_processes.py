"""The script behind lesson 04's two loss curves, in miniature."""

import importlib
import sys

import pytest

from course_utils.claims.stored import EXPERIMENTS, stored

sys.path.insert(0, str(EXPERIMENTS))
two_processes = importlib.import_module("two_processes")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def curves(tmp_path_factory):
    """What the script writes in five steps."""
    folder = tmp_path_factory.mktemp("curves")
    two_processes.main(["--steps", "5", "--out", str(folder / "curves.json")])
    return stored("curves", folder).results


def test_two_processes_give_the_losses_of_one(curves):
    """The same batches, cut in half: what differs is the order of the sums."""
    assert len(curves["1"]) == 5
    assert curves["1"][-1] < curves["1"][0] - 0.5
    assert curves["2"] == pytest.approx(curves["1"], abs=1e-9)


def test_the_committed_curves_begin_where_the_script_begins(curves):
    """The learning rate follows the step alone, so that five steps are the first of 150."""
    committed = stored("two_processes").results
    assert len(committed["1"]) == len(committed["2"]) == 150
    assert committed["2"] == pytest.approx(committed["1"], abs=1e-9)
    assert committed["1"][:5] == pytest.approx(curves["1"], abs=1e-6)
