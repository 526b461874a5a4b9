"""Lesson 04: its model with each of two planted bugs, and without one (B).

``python experiments/planted_bugs.py`` trains the three at every seed, for the lesson's steps, and writes to
``planted_bugs.json`` the loss, BLEU on the lesson's test set, and what becomes of its shortest sentences, translated
one by one and in a batch with the longest. The code is the lesson's own, read from the notebook.
"""

import argparse
import ast
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from course_utils.claims.stored import store
from course_utils.metrics import bleu, length_groups
from course_utils.training import fit

HERE = Path(__file__).resolve().parent
LESSON = HERE.parent / "notebooks" / "04_transformer.ipynb"
STEPS = 1000
DATA = {"seed", "train", "test", "english", "french", "train_ids", "sizes", "batches", "replaced"}


def lesson(seed: int) -> dict:
    """What the lesson's cells define, and its data at this seed; nothing is trained, checked or drawn."""
    os.environ["COURSE_SEED"] = str(seed)
    names = {}
    for cell in json.loads(LESSON.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            tree.body = [line for line in tree.body if isinstance(line, ast.Import | ast.ImportFrom | ast.FunctionDef |
                                                                  ast.ClassDef) or DATA & set(assigned(line))]
            exec(compile(tree, LESSON.name, "exec"), names)
    return names


def assigned(line: ast.stmt) -> list[str]:
    """The names that an assignment outside of functions gives a value to."""
    targets = line.targets if isinstance(line, ast.Assign) else []
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]


def train(name: str, lesson_04: dict, steps: int) -> dict:
    """One of the three, of the lesson at one seed."""
    seed, translate = lesson_04["seed"], lesson_04["translate"]
    torch.manual_seed(seed)
    model = lesson_04["MyTransformer"](*lesson_04["sizes"])
    for layer in model.decoder.layers:
        lesson_04["plant"](name, layer)
    log = fit(model, lesson_04["batches"](), steps=steps, lr=6e-3, loss=lesson_04["loss"], live=False,
              label=f"{name}, seed {seed}")
    test = lesson_04["test"]
    batches = [test[i:i + 60] for i in range(0, len(test), 60)]
    written = [words for batch in batches for words in translate(model, [pair.source for pair in batch])]
    return {"seed": seed, "loss": [round(sum(log.loss[i:i + 10]) / len(log.loss[i:i + 10]), 3)
                                   for i in range(0, len(log.loss), 10)],
            "bleu": round(bleu(written, [pair.target for pair in test]), 1),
            "short": neighbours(partial(translate, model), test)}


def neighbours(translate: Callable[[list], list], test: list) -> dict:
    """Of the sentences in the first group of lengths: BLEU alone and beside the longest, and how many change."""
    short = [test[i] for i in next(iter(length_groups(test).values()))]
    longest = max((pair.source for pair in test), key=len)
    alone = [translate([pair.source])[0] for pair in short]
    *beside, _ = translate([pair.source for pair in short] + [longest])
    references = [pair.target for pair in short]
    return {"sentences": len(short), "alone": round(bleu(alone, references), 1),
            "beside": round(bleu(beside, references), 1),
            "changed": sum(a != b for a, b in zip(alone, beside, strict=True))}


def main(arguments: list[str] | None = None) -> None:
    """Train the three at each seed, and store after each training."""
    parser = argparse.ArgumentParser(description="Lesson 04's model with planted bugs; writes planted_bugs.json.")
    parser.add_argument("--steps", type=int, default=STEPS, help="(default: %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="(default: 0 1 2 3 4)")
    parser.add_argument("--out", type=Path, default=HERE / "planted_bugs.json", help="(default: beside this script)")
    options = parser.parse_args(arguments)
    command = (f"python experiments/planted_bugs.py --steps {options.steps} "
               f"--seeds {' '.join(map(str, options.seeds))}")
    results = {"steps": options.steps, "models": {name: [] for name in "ABC"}}
    for seed in options.seeds:
        lesson_04 = lesson(seed)
        for name, runs in results["models"].items():
            runs.append(train(name, lesson_04, options.steps))
            print(name, *(runs[-1][what] for what in ("seed", "bleu", "short")), runs[-1]["loss"][-1], flush=True)
            store(options.out, command, options.seeds, results)


if __name__ == "__main__":
    main()
