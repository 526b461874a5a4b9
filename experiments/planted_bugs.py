"""Lesson 04: its model with each of two planted bugs, and without one (B).

``python experiments/planted_bugs.py`` trains the three at every seed, for the lesson's steps, and writes to
``planted_bugs.json`` the loss and BLEU on the lesson's test set, also when its sources have more padding than their
batches need. The code is the lesson's own, read from the notebook.
"""

import argparse
import ast
import json
import os
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.nn.functional as F

from course_utils.claims.stored import store
from course_utils.data.text import PAD
from course_utils.metrics import bleu
from course_utils.training import fit

HERE = Path(__file__).resolve().parent
LESSON = HERE.parent / "notebooks" / "04_transformer.ipynb"
STEPS = 1000
PADS = (50, 100, 200)
"""How many pads more than the batch needs."""
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
    sources, references = ([getattr(pair, side) for pair in lesson_04["test"]] for side in ("source", "target"))

    def score(more_pads: int) -> float:
        def encoder(source: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return model.encoder(F.pad(source, (0, more_pads), value=PAD))
        padded = SimpleNamespace(encoder=encoder, decoder=model.decoder)
        written = [words for i in range(0, len(sources), 60) for words in translate(padded, sources[i:i + 60])]
        return round(bleu(written, references), 1)

    return {"seed": seed, "loss": [round(sum(log.loss[i:i + 10]) / len(log.loss[i:i + 10]), 3)
                                   for i in range(0, len(log.loss), 10)],
            "bleu": score(0), "padded": {str(n): score(n) for n in PADS}}


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
            print(name, *(runs[-1][what] for what in ("seed", "bleu", "padded")), runs[-1]["loss"][-1], flush=True)
            store(options.out, command, options.seeds, results)


if __name__ == "__main__":
    main()
