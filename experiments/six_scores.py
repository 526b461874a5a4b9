"""Does it matter how one scores? Lesson 02's six score functions in the same model, trained alike.

``python experiments/six_scores.py`` trains each on the lesson's sentences of up to 26 words and writes BLEU, the
alignment error rate and how far apart the scores of a row are to ``six_scores.json``; scaled dot also after as many
steps again.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from course_utils import setup
from course_utils.attention import SCORES, AttentionRecord
from course_utils.claims.stored import store
from course_utils.data import Vocab, token_batches, train_test
from course_utils.data.grammar import Pair
from course_utils.data.text import encode_pairs
from course_utils.decoding import attention_records, translate
from course_utils.metrics import alignment_error_rate, bleu
from course_utils.seq2seq import Seq2Seq
from course_utils.training import fit

HERE = Path(__file__).resolve().parent
STEPS, WIDTH, RATE, LONGEST = 560, 112, 8e-3, 26


class Sentences(NamedTuple):
    """What the models are trained and tested on."""

    train_ids: list[tuple[Tensor, Tensor]]
    test: list[Pair]
    vocabs: tuple[Vocab, Vocab]

    @classmethod
    def of(cls, seed: int) -> "Sentences":
        """The lesson's sentences of this seed, those of up to 26 words."""
        setup(seed)
        pairs, test = train_test(20_000, 420, seed=seed)
        vocabs = Vocab(pair.source for pair in pairs), Vocab(pair.target for pair in pairs)
        ids = encode_pairs(pairs, *vocabs)
        return cls([both for both, pair in zip(ids, pairs, strict=True) if len(pair.source) <= LONGEST],
                   [pair for pair in test if len(pair.source) <= LONGEST], vocabs)

    def untrained(self, score: str, query: str, seed: int) -> Seq2Seq:
        """The model that all of them start as."""
        torch.manual_seed(seed)
        return Seq2Seq(*map(len, self.vocabs), attention=score, d_model=WIDTH, query=query, cell="lstm")

    def train(self, model: nn.Module, steps: int, seed: int, label: str) -> None:
        """In batches of 600 tokens, in an order of this seed."""
        fit(model, token_batches(self.train_ids, tokens=600, seed=seed), steps, lr=RATE, label=label, live=False)

    def records(self, model: nn.Module, n: int | None = None) -> list[AttentionRecord]:
        """Of the first ``n`` test sentences."""
        return attention_records(model, self.test[:n], *self.vocabs)

    def tested(self, model: nn.Module) -> dict[str, float]:
        """BLEU and the alignment error rate on the test sentences."""
        translations = translate(model, [pair.source for pair in self.test], *self.vocabs)
        return {"bleu": round(bleu(translations, [pair.target for pair in self.test]), 1),
                "aer": round(alignment_error_rate(self.records(model)), 3)}


def spread(records: Sequence[AttentionRecord]) -> float:
    """Standard deviation of the scores in a row, the mean over all rows."""
    rows = [record.weights.clamp_min(1e-12).log().std(dim=-1) for record in records]
    return round(float(torch.cat(rows).mean()), 4)


def measure(score: str, steps: int, seed: int) -> dict:
    """One training: before, after, and for scaled dot after twice the steps."""
    sentences = Sentences.of(seed)
    model = sentences.untrained(score, "current", seed)
    row = {"spread_before": spread(sentences.records(model, 100))}
    sentences.train(model, steps, seed, f"{score}, seed {seed}")
    row |= sentences.tested(model) | {"spread_after": spread(sentences.records(model, 100))}
    if score == "scaled_dot":
        sentences.train(model, steps, seed + 1, f"{score}, seed {seed}, as many steps again")
        row["twice_the_steps"] = sentences.tested(model)
    print(score, seed, row, flush=True)
    return row


def main(arguments: list[str] | None = None) -> None:
    """All scores at all seeds; what is there is stored after each score."""
    parser = argparse.ArgumentParser(description="Six score functions, trained alike; writes six_scores.json.")
    parser.add_argument("--steps", type=int, default=STEPS, help="(default: %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="(default: 0 1 2 3 4)")
    parser.add_argument("--out", default="six_scores.json", help="file beside this script (default: %(default)s)")
    options = parser.parse_args(arguments)
    command = f"python experiments/six_scores.py --steps {options.steps} --seeds {' '.join(map(str, options.seeds))}"
    runs: dict[str, list[dict]] = {}
    for score in SCORES:
        runs[score] = [measure(score, options.steps, seed) for seed in options.seeds]
        store(HERE / options.out, command, options.seeds, {"steps": options.steps, "scores": runs})


if __name__ == "__main__":
    main()
