"""Lesson 02: is location still ahead of the additive score in Luong's decoder when both are trained twice as long?

``python experiments/location.py`` trains the lesson's two models of section 7 (the current state asks; sentences of up
to 26 words) for 1,120 steps, the lesson's being 560, and writes ``location.json``: BLEU and the alignment error rate.
"""

import argparse
from pathlib import Path

import torch
from bottleneck import Lesson

from course_utils.claims.stored import store
from course_utils.data import token_batches
from course_utils.decoding import attention_records, translate
from course_utils.metrics import alignment_error_rate, bleu
from course_utils.seq2seq import Seq2Seq
from course_utils.training import fit


def trained(score: str, lesson: Lesson, steps: int) -> Seq2Seq:
    """Luong's decoder with this score, as the lesson trains it but for the steps."""
    torch.manual_seed(lesson.seed)
    model = Seq2Seq(*map(len, lesson.vocabs), attention=score, d_model=112, query="current", cell="lstm")
    short = [ids for ids, pair in zip(lesson.train_ids, lesson.train, strict=True) if len(pair.source) <= 26]
    batches = token_batches(short, tokens=600, seed=lesson.seed)
    fit(model, batches, steps, lr=8e-3, label=f"{score}, seed {lesson.seed}", live=False)
    return model


def measured(model: Seq2Seq, lesson: Lesson) -> dict[str, float]:
    """BLEU and alignment error rate on the test sentences of up to 26 words."""
    pairs = [pair for pair in lesson.test if len(pair.source) <= 26]
    hypotheses = translate(model, [pair.source for pair in pairs], *lesson.vocabs)
    return {"BLEU": round(bleu(hypotheses, [pair.target for pair in pairs]), 1),
            "AER": round(alignment_error_rate(attention_records(model, pairs, *lesson.vocabs)), 3)}


def main(arguments: list[str] | None = None) -> None:
    """Measure and store after each training."""
    parser = argparse.ArgumentParser(description="Location and the additive score in Luong's decoder, trained longer.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="(default: 0 to 4)")
    parser.add_argument("--steps", type=int, default=1120, help="updates (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"), help="default: %(default)s")
    options = parser.parse_args(arguments)
    found: dict[str, list[dict[str, float]]] = {"additive": [], "location": []}
    for k, seed in enumerate(options.seeds, 1):
        lesson = Lesson(seed)
        for score, runs in found.items():
            runs.append(measured(trained(score, lesson, options.steps), lesson))
            print(score, seed, runs[-1], flush=True)
        seeds = options.seeds[:k]
        command = f"python experiments/location.py --seeds {' '.join(map(str, seeds))} --steps {options.steps}"
        store(options.out, command, seeds, {"steps": options.steps} | found)


if __name__ == "__main__":
    main()
