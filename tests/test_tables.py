"""README's tables are those of the stored measurements."""

import importlib
import sys

from course_utils.claims.stored import EXPERIMENTS, Stored

sys.path.insert(0, str(EXPERIMENTS))
tables = importlib.import_module("tables")


def test_readme_has_what_is_stored():
    text = tables.README.read_text(encoding="utf-8")
    assert tables.renew(text) == text, "run python experiments/tables.py"


def test_a_table_has_means_in_percent_and_a_gap_where_nothing_was_measured():
    rows = {"50": {"accuracy": {"a": [0.5, 0.6], "b": [0.25, 0.25]}, "cpu_seconds": [1.0, 2.0]},
            "2000": {"accuracy": {"a": [0.75, 0.75]}, "cpu_seconds": [60.0, 61.2]}}
    measured = Stored("python x.py", [0, 1], "abc", "a machine", "2026-01-02", {"training_sentences": rows})
    _, _, first, second, *_ = tables.real_reviews(measured).splitlines()
    assert first == "| 50 | 55.0 | 25.0 | 2 |"
    assert second == "| 2,000 | 75.0 |  | 61 |"
