"""Lesson 04's verdict and its test set: how often would other captions have put the LSTM ahead after eight epochs?

``COURSE_DATA=folder python experiments/rivals_resampled.py`` trains one Transformer of ``rivals_longer.py`` and one
LSTM of ``rivals_deeper.py`` again, from the same seed, and lets both translate the test set. sacrebleu's paired
bootstrap (Koehn 2004) then draws the sentences again, a thousand times. ``rivals_resampled.json`` has the scores and
the p-value. ``--model`` only trains one; what was written is kept in ``--folder`` until the other one is there, too.
"""

import argparse
import json
import tempfile
from functools import partial
from pathlib import Path

import torch
from rivals_deeper import NAME, SETTINGS, STEPS, Deeper
from rivals_longer import WARMUP
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
from translation_rivals import MODELS, Captions, train

from course_utils.claims.stored import store, stored
from course_utils.decoding import translate
from course_utils.training import trapezoid

OUT, COMMAND, SEED, SAMPLES = Path(__file__).with_suffix(".json"), "python experiments/rivals_resampled.py", 1, 1000
TRANSFORMER = "Transformer"


def settings(name: str) -> tuple[tuple[float, float], int, dict]:
    """Rate and dropout, steps, and the function that makes the model."""
    if name == NAME:
        rate, dropout, _ = SETTINGS[0]
        return (rate, dropout), STEPS, {NAME: Deeper}
    run = stored("rivals_longer", OUT.parent).results["models"][name]["final"][0]
    return (run["rate"], run["dropout"]), run["steps"], MODELS


def written(captions: Captions, name: str) -> list[str]:
    """Train one; what it makes of the test set's sentences."""
    setting, steps, models = settings(name)
    model, _ = train(captions, name, setting, SEED, steps, partial(trapezoid, warmup=WARMUP), models)
    return [" ".join(words) for words in translate(model, [source for source, _ in captions.test], *captions.vocabs)]


def compare(translations: dict[str, list[str]], references: list[str], samples: int = SAMPLES) -> dict:
    """BLEU of each, its 95 % interval, and how likely a difference as large is if the two are equally good."""
    systems = list(translations.items())
    _, scores = PairedTest(systems, {"BLEU": BLEU(tokenize="none", force=True)}, [references], "bs", samples)()
    found = dict(zip(translations, scores["BLEU"], strict=True))
    intervals = {name: {"bleu": round(row.score, 2), "half_interval": round(float(row.ci), 2)}
                 for name, row in found.items()}
    return intervals | {"p": round(float(scores["BLEU"][-1].p_value), 4)}


def main(arguments: list[str] | None = None) -> None:
    """Train what the folder lacks, and compare when both are there."""
    names = [TRANSFORMER, NAME]
    parser = argparse.ArgumentParser(description="A paired bootstrap; writes rivals_resampled.json.")
    parser.add_argument("--model", choices=names, nargs="+", default=names, help="(default: both)")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()),
                        help="for what was written, outside the course (default: %(default)s)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    captions = Captions()
    kept = {name: options.folder / f"written_by_{name.split()[0]}.json" for name in names}
    for name in options.model:
        if not kept[name].is_file():
            kept[name].write_text(json.dumps(written(captions, name)), encoding="utf-8")
    if all(file.is_file() for file in kept.values()):
        found = compare({name: json.loads(file.read_text(encoding="utf-8")) for name, file in kept.items()},
                        [" ".join(reference) for _, reference in captions.test])
        print(found)
        store(OUT, COMMAND, [SEED], {"samples": SAMPLES, "sentences": len(captions.test)} | found)


if __name__ == "__main__":
    main()
