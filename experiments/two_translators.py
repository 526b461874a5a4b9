"""The two recurrent translators that `widgets.TwoTranslators` runs in a page: lesson 02's, three quarters as wide.

``python experiments/two_translators.py`` trains the model without attention and that with attention on lesson 02's
data, in its batches and with its rates, for six thousand steps each (about ten minutes); measures both; and writes two
files: ``course_utils/widgets/static/two_translators.safetensors`` (weights in 16 bits, vocabularies, sentences that
neither has seen in training) and ``two_translators.json`` (BLEU by length and the alignment error rate, of these
weights). That with attention asks with its current state, as in section 6: its weights stand at the words they belong
to, while those of section 4 often stand one beside.
"""

import argparse
from pathlib import Path

import torch
from translator import in_16_bits, lesson, measure, write

from course_utils import setup
from course_utils.claims.stored import store
from course_utils.data import token_batches
from course_utils.data.text import encode_pairs
from course_utils.decoding import attention_records
from course_utils.metrics import alignment_error_rate
from course_utils.seq2seq import Seq2Seq
from course_utils.training import fit
from course_utils.widgets.base import STATIC

STEPS = 6000
WIDTHS = {"d_embed": 48, "d_model": 96}         # lesson 02's 64 and 128 would be a file of more than a megabyte
RATES = {"without": 8e-3, "with": 6e-3}         # as in the lesson
WEIGHTS = STATIC / "two_translators.safetensors"


def train(attention: bool, steps: int, data: tuple, seed: int = 0) -> Seq2Seq:
    """One of the two; weights rounded to 16 bits. ``data`` is as `translator.lesson` gives it."""
    pairs, _, source, target = data
    torch.manual_seed(seed)
    model = Seq2Seq(len(source), len(target), **WIDTHS, attention="additive" if attention else None, query="current")
    batches = token_batches(encode_pairs(pairs, source, target), tokens=800, seed=seed)
    name = "with" if attention else "without"
    fit(model, batches, steps, lr=RATES[name], label=f"{name} attention", live=False)
    return in_16_bits(model)


def main(arguments: list[str] | None = None) -> None:
    """Train, measure, write."""
    parser = argparse.ArgumentParser(description="Train the two models that widgets.TwoTranslators runs in a page.")
    parser.add_argument("--steps", type=int, default=STEPS, help="updates of each (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"), help="default: %(default)s")
    parser.add_argument("--weights", type=Path, default=WEIGHTS, help="default: %(default)s")
    options = parser.parse_args(arguments)
    setup(0)
    data = _, test, source, target = lesson()
    models = {"without": train(False, options.steps, data), "with": train(True, options.steps, data)}
    results = {name: measure(model, source, target, test) for name, model in models.items()}
    records = attention_records(models["with"], test, source, target)
    results["with"]["alignment_error_rate"] = round(alignment_error_rate(records), 3)
    kept = store(options.out, f"python experiments/two_translators.py --steps {options.steps}", [0],
                 {"steps": options.steps} | results)
    write(options.weights, ((f"{name}.{part}", values) for name, model in models.items()
                            for part, values in model.named_parameters()), source, target, test, made=str(kept))
    print(results)


if __name__ == "__main__":
    main()
