"""Lesson 01's wide vectors at lower learning rates: were they only trained too fast?

The stored run of ``bottleneck.py`` chose each width's rate after 300 steps. ``python experiments/slower_rates.py``
trains its three widest models from seed 0 for the whole 3,000 steps at half and at a quarter of that rate. It writes
``slower_rates.json``: the loss on the validation pairs and BLEU by length, after every training (25 minutes in all).
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from bottleneck import Lesson

from course_utils.claims.stored import store


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, test, and store after every model."""
    parser = argparse.ArgumentParser(description="Wide vectors at lower learning rates; writes slower_rates.json.")
    parser.add_argument("--widths", type=int, nargs="+", default=[128, 256, 512])
    parser.add_argument("--rates", type=float, nargs="+", default=[4e-3, 2e-3])
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args(arguments)
    lesson = Lesson(0)
    done: dict[str, dict] = {}
    for rate in options.rates:
        for width in options.widths:
            model = lesson.trained(width, options.steps, rate)
            done.setdefault(str(width), {})[f"{rate:g}"] = {
                "validation_loss": round(lesson.validation_loss(model), 4), "bleu": lesson.bleu_by_length(model)}
            trained = [f"{lr:g}" for lr in options.rates if any(f"{lr:g}" in runs for runs in done.values())]
            command = (f"python experiments/slower_rates.py --widths {' '.join(done)} --rates {' '.join(trained)} "
                       f"--steps {options.steps}")
            store(options.out, command, [0], {"by_width_and_rate": done})


if __name__ == "__main__":
    main()
