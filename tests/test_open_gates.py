"""The script behind lesson 02's open gates: what it opens, and what is stored."""

import importlib
import sys

import torch

from course_utils.claims.stored import EXPERIMENTS, stored
from course_utils.seq2seq import Seq2Seq

sys.path.insert(0, str(EXPERIMENTS))
script = importlib.import_module("open_gates")


class Lesson:
    """Lesson 02's data in small; it keeps the model that is scored."""

    seed, vocabs, train_ids = 3, ("abcdefg", "abcdefgh"), [(torch.tensor([5, 6]), torch.tensor([1, 5, 2]))] * 8

    def bleu_by_length(self, model: Seq2Seq) -> dict[str, float]:
        self.model = model
        return {"short": 1.0, "long": 0.5, "all": 0.7}


def test_only_the_update_gates_of_both_readers_are_opened(monkeypatch):
    monkeypatch.setattr(script, "fit", lambda *arguments, **settings: None)
    models = []
    for gate in (0.0, 2.0):
        assert script.by_length(gate, lesson := Lesson(), steps=850) == {"short": 1.0, "long": 0.5}
        models.append(lesson.model.state_dict())
    size = lesson.model.encoder.rnn.hidden_size
    for name, before in models[0].items():
        opened = torch.zeros_like(before)
        if name in ("encoder.rnn.bias_ih_l0", "encoder.rnn.bias_ih_l0_reverse"):
            opened[size:2 * size] = 2.0                                # PyTorch's order: reset, update, new
        torch.testing.assert_close(models[1][name], before + opened)


def test_what_is_stored_has_both_biases_at_three_seeds():
    measured = stored("open_gates")
    rows = measured.results["bleu_by_gate_bias"]
    assert list(rows) == ["0", "2"]
    assert [len(runs) for runs in rows.values()] == [len(measured.seeds)] * 2 == [3, 3]
    assert all(row.keys() == rows["0"][0].keys() for runs in rows.values() for row in runs)
