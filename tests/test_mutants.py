"""Each fault of mutants.py can be put where it belongs, so that none of them rots."""

import json

import pytest
from mutants import MUTANTS, ROOT, changed


@pytest.mark.parametrize(("file", "old", "new", "tests"), [mutant[1:] for mutant in MUTANTS],
                         ids=[mutant[0] for mutant in MUTANTS])
def test_a_mutant_changes_one_place_and_names_its_tests(file, old, new, tests):
    mutant, found = changed(ROOT / file, old, new)
    assert found == 1, f"{old!r} stands {found} times in {file}: write the mutant anew"
    assert mutant != (ROOT / file).read_text(encoding="utf-8")
    assert (ROOT / f"tests/test_{tests}.py").is_file()


def test_mutants_have_names_of_their_own():
    names = [name for name, *_ in MUTANTS]
    assert len(names) == len(set(names))


def test_of_a_notebook_only_its_code_is_changed(tmp_path):
    book = {"cells": [{"cell_type": "markdown", "source": ["x <= 1\n"]},
                      {"cell_type": "code", "source": ["a\n", "x <= 1"], "outputs": [{"text": "x <= 1"}]}]}
    (tmp_path / "a.ipynb").write_text(json.dumps(book))
    mutant, found = changed(tmp_path / "a.ipynb", "a\nx <= 1", "a\nx <= 2")
    assert found == 1
    book["cells"][1]["source"] = ["a\n", "x <= 2"]
    assert json.loads(mutant) == book
