"""Lesson 02 on real sentences: train on Multi30k English-French, test, and store.

``COURSE_DATA=folder python experiments/real_captions.py`` trains two models, with additive attention (Bahdanau et
al. 2015) and without, on one thread, and writes ``real_captions.json``. Without
``COURSE_DATA`` the files are downloaded.

BLEU here is of tokenised, lower-cased text (``tokenize="none"``): not to be set beside BLEU of raw text. A word seen
only once in training is unknown to the models; the references keep it, so it counts as an error.
"""

import argparse
import re
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from torch import nn

from course_utils import setup
from course_utils.claims.stored import store
from course_utils.data import Vocab, load_multi30k, token_batches
from course_utils.data.text import SPECIALS, UNK, encode_pairs
from course_utils.decoding import attention_records, translate
from course_utils.metrics import bleu, by_group, hard_alignment, length_groups
from course_utils.seq2seq import Seq2Seq
from course_utils.training import History, fit

HERE = Path(__file__).resolve().parent
WORDS = {"en": re.compile(r"'\w+|\w+(?:-\w+)*|[^\w\s]"),                 # the man's hat -> the man 's hat
         "fr": re.compile(r"aujourd'hui|\w+'|\w+(?:-\w+)*|[^\w\s]")}     # l'homme -> l' homme
BUCKETS = ((4, 9), (10, 14), (15, 19), (20, 40))
recurrent = partial(Seq2Seq, d_embed=128, d_model=256, query="previous", dropout=0.3)
# the model for two sizes of vocabulary; everything else is the same for both
MODELS = {"additive attention": partial(recurrent, attention="additive"),
          "no attention": partial(recurrent, attention=None)}
LR = 4e-3  # the peak; chosen with attention
SHOWN = (856, 633, 458)
"""Test sentences whose attention is drawn: picked by eye from the first twenty ``candidates``, translated right."""


def tokenise(text: str, language: str) -> list[str]:
    """Lower-case words and punctuation marks; an elision (``l'``, ``d'``, ``qu'``) is a word of its own."""
    return WORDS[language].findall(text.lower().replace("’", "'"))


def load(split: str) -> list[tuple[list[str], list[str]]]:
    """Tokenised English-French pairs of a split of Multi30k."""
    return [(tokenise(source, "en"), tokenise(target, "fr")) for source, target in load_multi30k("en", "fr", split)]


def train(pairs: Sequence, vocabs: Sequence[Vocab], name: str, steps: int,
          seed: int) -> tuple[nn.Module, History, float]:
    """One of ``MODELS``, trained from ``seed``; with its history and the seconds of processor time it took."""
    seed = setup(seed)
    model = MODELS[name](*map(len, vocabs))
    batches = token_batches(encode_pairs(pairs, *vocabs), tokens=1000, seed=seed)
    started = time.process_time()
    history = fit(model, batches, steps, lr=LR, label=name)
    return model, history, time.process_time() - started


def inversions(links: Sequence[tuple[int, int]]) -> int:
    """Neighbouring target words whose source words stand in the opposite order."""
    columns = [column for _, column in sorted(links)]
    return sum(after < before for before, after in zip(columns, columns[1:], strict=False))


def candidates(sources: Sequence, hypotheses: Sequence, references: Sequence, records: Sequence) -> list[tuple]:
    """Translations of 6-12 words that equal the reference, as ``(inversions, words in many-to-one links, index)``.

    Most inversions first, then most target words that share their source word with another.
    """
    found = []
    for i, (source, hypothesis, record) in enumerate(zip(sources, hypotheses, records, strict=True)):
        if 6 <= len(source) <= 12 and hypothesis == references[i]:
            links = hard_alignment(record)
            shared = sum(n for n in Counter(column for _, column in links).values() if n > 1)
            found.append((inversions(links), shared, i))
    return sorted(found, reverse=True)


def attended(model: Seq2Seq, sources: Sequence, hypotheses: Sequence, references: Sequence,
             vocabs: Sequence[Vocab]) -> list[dict]:
    """List the candidates; the weights with which the model wrote its own translation of each of ``SHOWN``."""
    records = attention_records(model, list(zip(sources, hypotheses, strict=True)), *vocabs)
    for crossed, shared, i in candidates(sources, hypotheses, references, records)[:20]:
        print(f"{i:4}: {crossed} inversions, {shared} words share a source word: {' '.join(hypotheses[i])}")
    return [records[i].to_json() for i in SHOWN]


def main(arguments: list[str] | None = None) -> None:
    """Train, test, store after each model."""
    parser = argparse.ArgumentParser(description="Train on Multi30k; write real_captions.json.")
    parser.add_argument("--steps", type=int, default=3200, help="updates of each model (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and batches (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to (default: %(default)s)")
    options = parser.parse_args(arguments)
    command = f"python experiments/real_captions.py --steps {options.steps} --seed {options.seed}"

    pairs, (sources, references) = load("train"), zip(*load("test"), strict=True)
    vocabs = [Vocab((pair[side] for pair in pairs), min_count=2) for side in (0, 1)]
    print(f"{len(pairs)} training pairs, vocabularies of {len(vocabs[0])} and {len(vocabs[1])}")
    groups = length_groups(list(zip(sources, references, strict=True)), BUCKETS)
    results = {"sentences": {group: len(chosen) for group, chosen in groups.items()}, "models": {}, "attention": []}
    for name in MODELS:
        model, history, seconds = train(pairs, vocabs, name, options.steps, options.seed)
        hypotheses = translate(model, sources, *vocabs)
        scores = by_group(bleu, groups, hypotheses, references)
        results["models"][name] = {
            "bleu": round(bleu(hypotheses, references), 2),
            "by_length": {group: round(score, 2) for group, score in scores.items()},
            "steps": len(history.loss), "cpu_seconds": round(seconds),
            "target_tokens_per_cpu_second": round(history.tokens / seconds),
            "translations_with_unknown_words": sum(SPECIALS[UNK] in hypothesis for hypothesis in hypotheses)}
        if name == "additive attention":
            results["attention"] = attended(model, sources, hypotheses, references, vocabs)
        store(options.out / "real_captions.json", command, [options.seed], results)
        print(name, results["models"][name])


if __name__ == "__main__":
    main()
