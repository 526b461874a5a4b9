"""Lesson 01's question, with patience: is the vector too small, or was the model only trained for a minute?

``python experiments/bottleneck.py`` trains the lesson's encoder-decoder without attention at four widths from several
seeds, and three of the widths for other numbers of steps from the first seed, on one thread. It writes
``bottleneck.json`` after every training (an hour in all): each training, and BLEU by sentence length, which the lessons
draw. The learning rate of each width is the best, on validation pairs that are neither training nor test pairs, after
the whole training. (The stored file is older: its rates are the best on the test pairs after 300 steps.)
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from course_utils import setup
from course_utils.claims.stored import store
from course_utils.data import Vocab, token_batches
from course_utils.data.grammar import Pair, corpus, train_test
from course_utils.data.text import encode_pairs
from course_utils.decoding import evaluating, translate
from course_utils.metrics import bleu, by_group, length_groups
from course_utils.seq2seq import Seq2Seq
from course_utils.training import fit, sequence_loss

HERE = Path(__file__).resolve().parent
RATES = (1.6e-2, 8e-3, 4e-3, 2e-3, 1e-3)
OTHER_STEPS = {128: (600, 20_000), 256: (600,), 512: (600,)}    # width: steps, from the first seed only


class Lesson:
    """Lesson 01's data for one seed."""

    def __init__(self, seed: int):
        self.seed = setup(seed)
        self.train, self.test = train_test(20_000, 420, seed=seed)
        validation = corpus(420, 1_000_000 + seed, lengths="uniform", exclude=self.train + self.test)
        self.vocabs = [Vocab([getattr(pair, side) for pair in self.train]) for side in ("source", "target")]
        self.train_ids, self.validation_ids = (encode_pairs(pairs, *self.vocabs) for pairs in (self.train, validation))

    def trained(self, width: int, steps: int, lr: float) -> Seq2Seq:
        """One encoder-decoder without attention, as the lesson makes it but for its width."""
        torch.manual_seed(self.seed)
        model = Seq2Seq(*map(len, self.vocabs), attention=None, bidirectional=False, d_model=width)
        fit(model, token_batches(self.train_ids, tokens=700, seed=self.seed), steps=steps, lr=lr,
            label=f"width {width}, {steps} steps, rate {lr:g}, seed {self.seed}", live=False)
        return model

    def validation_loss(self, model: Seq2Seq) -> float:
        """Mean loss per target token of the validation pairs."""
        with evaluating(model):
            losses = [sequence_loss(model, batch) for batch in token_batches(self.validation_ids, tokens=2000, seed=0)]
        return float(sum(loss * n for loss, n in losses) / sum(n for _, n in losses))

    def bleu_by_length(self, model: Seq2Seq, pairs: Sequence[Pair] | None = None) -> dict[str, float]:
        """BLEU by the number of source words, and of all; by default of the test sentences."""
        pairs = self.test if pairs is None else pairs
        references = [pair.target for pair in pairs]
        hypotheses = translate(model, [pair.source for pair in pairs], *self.vocabs)
        by_length = by_group(bleu, length_groups(pairs), hypotheses, references)
        return {name: round(score, 1) for name, score in (by_length | {"all": bleu(hypotheses, references)}).items()}


def search(lesson: Lesson, width: int, steps: int, highest: float, keep: Callable) -> float:
    """The rate with the lowest loss on the validation pairs, lowered until it rises; ``keep`` gets every result."""
    best, lowest = highest, float("inf")
    for lr in (rate for rate in RATES if rate <= highest):
        loss = test(lesson, width, steps, lr, keep)
        if loss > lowest:
            break
        best, lowest = lr, loss
    return best


def test(lesson: Lesson, width: int, steps: int, lr: float, keep: Callable) -> float:
    """Train and test one model; ``keep`` gets its measurements. Returns the loss on the validation pairs."""
    started = time.process_time()
    model = lesson.trained(width, steps, lr)
    seconds = round(time.process_time() - started)
    loss = round(lesson.validation_loss(model), 4)
    keep({"width": width, "steps": steps, "seed": lesson.seed, "rate": lr, "validation_loss": loss,
          "bleu": lesson.bleu_by_length(model), "cpu_seconds": seconds})
    return loss


def bleu_of(runs: Sequence[dict]) -> dict[str, dict[str, list[dict[str, float]]]]:
    """What the lessons draw: width to steps, in order, to BLEU by length of each seed, at the best rate."""
    best: dict[tuple[int, int, int], dict] = {}
    for run in runs:
        case = run["width"], run["steps"], run["seed"]
        if case not in best or run["validation_loss"] < best[case]["validation_loss"]:
            best[case] = run
    found: dict[str, dict[str, list]] = {}
    for width, steps, seed in sorted(best, key=lambda case: case[:2]):
        found.setdefault(str(width), {}).setdefault(str(steps), []).append(best[width, steps, seed]["bleu"])
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Search the rates, train, test, and store after every model."""
    parser = argparse.ArgumentParser(description="Widths and steps of an encoder-decoder; writes bottleneck.json.")
    parser.add_argument("--widths", type=int, nargs="+", default=[64, 128, 256, 512])
    parser.add_argument("--steps", type=int, default=3000, help="updates at which the widths are compared")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=HERE / "bottleneck.json")
    options = parser.parse_args(arguments)
    command = "python experiments/bottleneck.py" + "".join(
        f" --{name} {' '.join(map(str, given if isinstance(given, list) else [given]))}"
        for name in ("widths", "steps", "seeds") if (given := getattr(options, name)) != parser.get_default(name))
    results = {"chosen_rates": {}, "runs": [], "bleu": {}}

    def keep(run: dict) -> None:
        results["runs"].append(run)
        results["bleu"] = bleu_of(results["runs"])
        store(options.out, command, options.seeds, results)

    lessons = [Lesson(seed) for seed in options.seeds]
    rate = RATES[0]
    for width in sorted(options.widths):                    # the wider, the lower: start from the narrower one's rate
        results["chosen_rates"][str(width)] = rate = search(lessons[0], width, options.steps, rate, keep)
    runs = [(lesson, width, options.steps) for lesson in lessons[1:] for width in options.widths]
    runs += [(lessons[0], width, steps) for width in options.widths for steps in OTHER_STEPS.get(width, ())]
    for lesson, width, steps in runs:
        test(lesson, width, steps, results["chosen_rates"][str(width)], keep)


if __name__ == "__main__":
    main()
