"""The script behind the README's section on real data: its tokens, its choice of sentences, and a run in miniature."""

import importlib
import sys

import pytest
import torch

from course_utils.attention import AttentionRecord
from course_utils.claims.stored import EXPERIMENTS, stored
from course_utils.metrics import hard_alignment

sys.path.insert(0, str(EXPERIMENTS))
real_captions = importlib.import_module("real_captions")

ENGLISH = "A man's dog runs in the big green park."
FRENCH = "Le chien d’un homme court dans l'herbe verte."


@pytest.mark.parametrize(("text", "language", "words"), [
    (ENGLISH, "en", "a man 's dog runs in the big green park ."),
    (FRENCH, "fr", "le chien d' un homme court dans l' herbe verte ."),
    ("Aujourd'hui, «qu'il» a 2 T-shirts !", "fr", "aujourd'hui , « qu' il » a 2 t-shirts !"),
])
def test_words_are_lower_case_and_punctuation_and_elisions_stand_alone(text, language, words):
    assert real_captions.tokenise(text, language) == words.split()


def test_inversions_count_neighbours_that_change_order():
    assert real_captions.inversions([(0, 0), (1, 1), (2, 2)]) == 0
    assert real_captions.inversions([(0, 0), (1, 2), (2, 1), (3, 3)]) == 1         # an adjective behind its noun
    assert real_captions.inversions([(3, 0), (0, 3), (1, 2), (2, 1)]) == 3         # given in any order


def test_candidates_are_right_translations_with_the_most_inversions_first():
    words = list("abcdef")
    straight, crossed = torch.eye(6, 7), torch.eye(6, 7)[[0, 2, 1, 3, 4, 4]]
    sources, references = [words, words, words, words[:5]], [words, words, words, words[:5]]
    hypotheses = [words, words[::-1], words, words[:5]]                        # the second is wrong, the last is short
    records = [AttentionRecord(weights, rows, [*source, "<eos>"], n_words=len(source)) for weights, rows, source in
               zip([straight, crossed, crossed, straight[:5, :6]], hypotheses, sources, strict=True)]
    assert real_captions.candidates(sources, hypotheses, references, records) == [(1, 2, 2), (0, 0, 0)]


@pytest.mark.slow
def test_a_run_in_miniature_stores(monkeypatch, tmp_path):
    pairs = [(ENGLISH, FRENCH), ("A dog runs in the park.", "Un chien court dans le parc.")] * 4
    monkeypatch.setattr(real_captions, "load_multi30k", lambda *_: pairs)
    monkeypatch.setattr(real_captions, "SHOWN", (0, 1, 2))
    real_captions.main(["--steps", "2", "--out", str(tmp_path)])
    measured = stored("real_captions", tmp_path)
    assert measured.seeds == [0]
    assert [row["steps"] for row in measured.results["models"].values()] == [2, 2]
    assert set(measured.results["models"]) == set(real_captions.MODELS)
    shown = AttentionRecord.from_json(measured.results["attention"][1])
    assert shown.weights.shape == (len(shown.rows), len(shown.columns))
    assert shown.n_words == len(shown.columns) - 1                           # without <eos>
    assert [file.name for file in tmp_path.iterdir()] == ["real_captions.json"]


def test_what_was_stored_is_a_record_as_it_was_read():
    for kept in stored("real_captions").results["attention"]:
        record = AttentionRecord.from_json(kept)
        assert record.to_json() == kept
        assert all(column < record.columns.index("<eos>") for _, column in hard_alignment(record))
