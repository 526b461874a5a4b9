"""Faults that the fast tests catch: each is put into a copy of the course, and the tests named beside it must fail.

    python tests/mutants.py                  # all of them, about five minutes on a quiet core
    python tests/mutants.py padding cache    # those whose names hold one of these words

A mutant is a name, a file, a text that stands there exactly once (in a notebook: in the source of its code), what is
put in its place, and the test file. Who survives is named; test_mutants.py holds the texts against the files. Linux and
macOS: each mutant is a fork of this process, which has loaded PyTorch and the like already.
"""

import importlib
import io
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FAST = "not browser and not notebook and not slow"

ATTENTION = "course_utils/attention.py"
DECODING = "course_utils/decoding.py"
EFFICIENT = "course_utils/efficient.py"
METRICS = "course_utils/metrics.py"
SEQ2SEQ = "course_utils/seq2seq.py"
TEXT = "course_utils/data/text.py"
TRAINING = "course_utils/training.py"
TRANSFORMER = "course_utils/transformer.py"
VIEW = "course_utils/widgets/attention_view.py"
WORDPIECE = "course_utils/data/wordpiece.py"

MUTANTS = [
    # --- attention ---
    ("mask forgotten", ATTENTION, "torch.where(mask, scores, instead)", "torch.where(empty, 0.0, scores)", "attention"),
    ("mask turned around", ATTENTION, "torch.where(mask, scores, instead)", "torch.where(~mask, scores, instead)",
     "attention"),
    ("softmax over the queries", ATTENTION, ".softmax(dim=-1).masked_fill(empty, 0.0)",
     ".softmax(dim=-2).masked_fill(empty, 0.0)", "attention"),
    ("a fully masked row is uniform", ATTENTION, ".softmax(dim=-1).masked_fill(empty, 0.0)", ".softmax(dim=-1)",
     "attention"),
    ("the scores of an empty row are kept", ATTENTION, "torch.where(mask, scores, instead)",
     "scores.masked_fill(~(mask | empty), -math.inf)", "attention"),
    *((f"scale forgotten ({tests})", ATTENTION, "keys.transpose(-2, -1) * query.size(-1) ** -0.5",
       "keys.transpose(-2, -1)", tests) for tests in ("attention", "attention_heads")),
    ("no tanh in the additive score", ATTENTION, "torch.tanh(self.W_q(query).unsqueeze(-2) + keys.unsqueeze(-3))",
     "self.W_q(query).unsqueeze(-2) + keys.unsqueeze(-3)", "attention"),
    ("sharpness of the cosine forgotten", ATTENTION, "compare(self.sharpness * query,", "compare(query,",
     "attention"),
    ("causal mask off by one", ATTENTION, ".tril(n_keys - n_queries)", ".tril(n_keys - n_queries + 1)",
     "attention_heads"),
    ("causal mask forgets the cached keys", ATTENTION, ".tril(n_keys - n_queries)", ".tril()", "attention_heads"),
    ("heads joined in another order", ATTENTION, "return x.transpose(1, 2).flatten(-2)",
     "return x.transpose(1, 2).transpose(-2, -1).flatten(-2)", "attention_heads"),
    ("values by the keys' matrix", ATTENTION, "self.split(self.W_v(values", "self.split(self.W_k(values",
     "attention_heads"),
    ("no dropout on the weights", ATTENTION, "return self.dropout(weights) @ v", "return weights @ v",
     "attention_heads"),
    ("sine and cosine exchanged", ATTENTION, "torch.stack([angles.sin(), angles.cos()], dim=-1)",
     "torch.stack([angles.cos(), angles.sin()], dim=-1)", "attention_heads"),
    ("rotary starts at 0 behind a cache", ATTENTION, "self.project_query(query, start=k.size(2) - query.size(1))",
     "self.project_query(query)", "attention_heads"),
    ("a cache starts anew", TRANSFORMER, "attention.project_keys(x, start=0 if past is None else past.k.size(2))",
     "attention.project_keys(x)", "gpt"),
    ("is_causal forgotten by the kernel", ATTENTION, "mask, dropout, is_causal,", "mask, dropout, False,",
     "attention_heads"),
    ("alibi's slopes shifted", ATTENTION, "torch.arange(1, n_heads + 1) / n_heads", "torch.arange(n_heads) / n_heads",
     "attention_heads"),
    # --- models ---
    ("padding is attended to (Transformer)", TRANSFORMER, "src_mask = (source != PAD).unsqueeze(1)",
     "src_mask = (source >= PAD).unsqueeze(1)", "transformer"),
    ("cache position off", TRANSFORMER, "start=state[0].k.size(2))", "start=0)", "transformer"),
    ("cached values in another order", TRANSFORMER, "torch.cat([self.v, v], dim=2)", "torch.cat([v, self.v], dim=2)",
     "transformer"),
    ("embeddings not scaled", TRANSFORMER, "table(ids) * math.sqrt(self.config.d_model) +", "table(ids) +",
     "transformer"),
    ("padding is attended to (Seq2Seq)", SEQ2SEQ, "memory = Memory(states, keys, summary, (source != PAD)",
     "memory = Memory(states, keys, summary, (source >= PAD)", "seq2seq"),
    ("an LSTM's first cell is not zero", SEQ2SEQ, "torch.zeros_like(state)", "torch.ones_like(state)", "seq2seq"),
    ("padding is read by the encoder", SEQ2SEQ, "pack_padded_sequence(embedded, lengths,",
     "pack_padded_sequence(embedded, torch.full_like(lengths, source.size(1)),", "seq2seq"),
    ("the last encoder state of one direction only", SEQ2SEQ, "torch.cat(list(hidden(last)), dim=-1)",
     "torch.cat([hidden(last)[0]] * len(hidden(last)), dim=-1)", "seq2seq"),
    ("segments forgotten", "course_utils/bert.py", "self.token_embed(ids) + segment +", "self.token_embed(ids) +",
     "bert"),
    ("one segment for both texts", WORDPIECE, "[0] * len(first) + [1] * len(rest)", "[0] * (len(first) + len(rest))",
     "wordpiece"),
    ("the shortest piece first", WORDPIECE, "range(len(word), start, -1)", "range(start + 1, len(word) + 1)",
     "wordpiece"),
    # --- efficient attention ---
    ("the window is one too narrow", EFFICIENT, "(distance >= 0) & (distance <= window)",
     "(distance >= 0) & (distance < window)", "efficient"),
    ("tiles see later keys", EFFICIENT, "if start == begin:", "if start > begin:", "efficient"),
    # --- training ---
    ("padding counted in the loss", TRAINING, "ignore_index=PAD,", "ignore_index=-100,", "training"),
    ("padding counted as words", TRAINING, "n_words = int((words != PAD).sum())", "n_words = words.numel()",
     "training"),
    ("label smoothing forgotten", TRAINING, "label_smoothing=label_smoothing)", "label_smoothing=0.0)", "training"),
    ("the answer is in the input", TRAINING, "model(batch.source, batch.target[:, :-1],",
     "model(batch.source, batch.target[:, 1:],", "training"),
    ("no schedule", TRAINING, 'group["lr"] = lr * factor', 'group["lr"] = lr', "training"),
    ("gradients pile up", TRAINING, "            optimizer.zero_grad()\n", "", "training"),
    ("no decay", TRAINING, "return min(1.0, _up(step, steps, warmup), down)",
     "return min(1.0, _up(step, steps, warmup))", "training"),
    ("every epoch in one order", TEXT, "self.seed + 100_003 * self.epoch", "self.seed", "text"),
    ("no end symbol on the source", TEXT, "torch.tensor([*source_vocab.encode(source), EOS])",
     "torch.tensor(source_vocab.encode(source))", "text"),
    ("words behind the end", TEXT, "if i == EOS:\n                break\n",
     "if i == EOS:\n                continue\n", "text"),
    # --- decoding and metrics ---
    ("beam keeps what has ended", DECODING, "log_prob.masked_fill(word == EOS, -math.inf).unsqueeze(-1) + steps",
     "log_prob.unsqueeze(-1) + steps", "decoding"),
    ("no length penalty", DECODING, "total / length_penalty(length, alpha)", "total", "decoding"),
    ("top-p loses the word that reaches p", DECODING, "ordered.masked_fill(before >= top_p, 0.0)",
     "ordered.masked_fill(ordered.cumsum(dim=-1) > top_p, 0.0)", "decoding"),
    ("temperature multiplies", DECODING, "logits.amax(dim=-1, keepdim=True)) / temperature",
     "logits.amax(dim=-1, keepdim=True)) * temperature", "decoding"),
    ("BLEU cuts words again", METRICS, "ids[token] for token in sentence", "token for token in sentence", "metrics"),
    ("error rate counts links once", METRICS, "1 - 2 * hits / total", "1 - hits / total", "metrics"),
    ("a group without its later pairs", METRICS, "for i in chosen]", "for i in chosen[:3]]", "metrics"),
    ("alignment of the columns", METRICS, "weights.argmax(dim=-1)", "weights.argmax(dim=-2)", "metrics"),
    # --- from the grammar to a page ---
    ("words come back from their ids", DECODING, "rows, columns = list(pairs[i][1]), [*pairs[i][0], SPECIALS[EOS]]",
     "rows, columns = (vocab.decode([*vocab.encode(side), EOS]) + end for vocab, side, end in "
     "[(target_vocab, pairs[i][1], []), (source_vocab, pairs[i][0], [SPECIALS[EOS]])])", "trace"),
    ("tokens are joined and split again", TEXT, "for word in words_of(words)]",
     'for word in " ".join(words_of(words)).split()]', "trace"),
    ("rows are joined and split again", DECODING, "rows, columns = list(pairs[i][1]),",
     'rows, columns = " ".join(pairs[i][1]).split(),', "trace"),
    ("true links are dropped in the view", VIEW, '"alignment": read_links(given.alignment, rows, columns)',
     '"alignment": []', "trace"),
    ("hidden code is shown", "course_utils/publish/exporting.py", '"remove_source": True', '"remove_source": False',
     "site"),
    ("a page shows a finished bar", "course_utils/publish/pages.py", 'BAR.sub("", output.text)', "output.text", "site"),
    ("a rehearsal outlives the code", "course_utils/kernel/rehearsal.py", ".encode() + path.read_bytes())",
     ".encode())", "rehearsal"),
    # --- claims ---
    ("a threshold is weakened", "notebooks/02_bahdanau_attention.ipynb", 'current state asks" <= 0.15',
     'current state asks" <= 0.5', "conditions"),
    ("a clause is dropped", "notebooks/02_bahdanau_attention.ipynb", ' and "location, AER" >= 0.35', "",
     "conditions"),
    ("a comparison is turned around", "notebooks/03_self_attention.ipynb", 'causal, 2 heads" <= 1e-5',
     'causal, 2 heads" >= 0', "conditions"),
    ("a condition that is always true", "notebooks/03_self_attention.ipynb",
     '"one head, both right, best of five runs" <= 0.2', '"one head, both right, best of five runs" >= 0',
     "conditions"),
    ("a sentence claims more", "notebooks/02_bahdanau_attention.ipynb", "Soft alignments agree with the true ones when",
     "Soft alignments align perfectly when", "conditions"),
    ("another thing is measured", "notebooks/02_bahdanau_attention.ipynb",
     '"AER, additive, current state asks": aer["additive"]', '"AER, additive, current state asks": min(aer.values())',
     "conditions"),
    *((f"the model of a stored measurement: {name}", "notebooks/04_transformer.ipynb", old, new, "conditions")
      for name, old, new in (
          ("one layer", "n_layers=2, d_model=64, n_heads=4", "n_layers=1, d_model=64, n_heads=4"),
          ("labels not shifted", ":-1], batch.target[:, 1:]", ":-1], batch.target[:, :-1]"),
          ("no root of d", "q @ k.mT / math.sqrt(self.d_k)", "q @ k.mT"),
          ("six words", "words.size(1) <= 60 and", "words.size(1) <= 6 and"))),
    ("one comparison is enough for a claim", "course_utils/claims/condition.py", "return all(_truth(",
     "return any(_truth(", "claims"),
    ("a condition holds for NaN", "course_utils/claims/condition.py", "return not any(map(math.isnan, sides)) and ",
     "return any(map(math.isnan, sides)) or ", "claims"),
    ("a comparison of nothing measured", "course_utils/claims/condition.py",
     "if not _labels(left) | _labels(right):", "if False:", "claims"),
]


def run(copy: Path, tests: list[str], expected: int) -> None:
    """In a process of its own: exit with pytest's code for the fast tests of these files; say what was not expected."""
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy)
    sys.path[:0] = [str(copy), str(copy / "tests")]
    said, code = io.StringIO(), None
    try:
        with redirect_stdout(said), redirect_stderr(said):
            # pytest would rather rewrite the plugins that this process has loaded already
            code = pytest.main(["-x", "-q", "-n0", "-p", "no:cacheprovider", "-m", FAST,
                                "-W", "ignore::pytest.PytestAssertRewriteWarning", *tests])
    except Exception:
        traceback.print_exc()
    finally:
        if code != expected:
            print(said.getvalue()[-2000:])
        # an exception would end with 1, as a failed test does
        os._exit(pytest.ExitCode.INTERNAL_ERROR if code is None else code)


def passes(copy: Path, tests: list[str], expected: int = pytest.ExitCode.TESTS_FAILED) -> bool | None:
    """Whether these tests of the copy pass; ``None`` if they could not be run. What is not expected is printed."""
    process = multiprocessing.get_context("fork").Process(target=run, args=(copy, tests, expected))
    process.start()
    process.join()
    return {pytest.ExitCode.TESTS_FAILED: False, pytest.ExitCode.OK: True}.get(process.exitcode)


def changed(file: Path, old: str, new: str) -> tuple[str, int]:
    """The file's text with ``new`` for ``old``, and how often ``old`` stands there; of a notebook, in its code."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".ipynb":
        return text.replace(old, new), text.count(old)
    notebook, found = json.loads(text), 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            found += source.count(old)
            cell["source"] = source.replace(old, new).splitlines(keepends=True)
    return json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n", found


def outcome(copy: Path, file: str, old: str, new: str, tests: list[str]) -> str:
    """``dies``, ``survives``, or what is wrong with the mutant."""
    place = copy / file
    mutant, found = changed(place, old, new)
    if found != 1:
        return f"its text stands {found} times in {file}: write it anew"
    original = place.read_text(encoding="utf-8")
    place.write_text(mutant, encoding="utf-8")
    said = {False: "dies", True: "survives", None: "the tests could not be run"}[passes(copy, tests)]
    place.write_text(original, encoding="utf-8")
    return said


def main(words: list[str]) -> int:
    """Try the mutants whose names hold one of the words, or all; 1 if one does not die."""
    for slow in ("torch", "accelerate", "matplotlib.pyplot", "sacrebleu", "transformers"):
        importlib.import_module(slow)   # once, before the forks
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.dont_write_bytecode = True      # a mutant of the same size and second would run as its predecessor
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant[0] for word in words)]
    alive = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "course")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__"))
        subprocess.run(["git", "init", "--quiet", copy], check=True)    # a test asks git what belongs to the course
        files = sorted({f"tests/test_{tests}.py" for *_, tests in chosen})
        if not passes(copy, files, pytest.ExitCode.OK):
            print("without a mutant these must pass, and do not:", *files)
            return 1
        for name, file, old, new, tests in chosen:
            said = outcome(copy, file, old, new, [f"tests/test_{tests}.py"])
            print(f"{said:10} {name}", flush=True)
            if said != "dies":
                alive.append(name)
    print("all die" if not alive else f"{len(alive)} did not die: {', '.join(alive)}")
    return bool(alive)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
