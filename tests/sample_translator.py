"""The translator's model in PyTorch, and what it says about sentences that it has not seen."""

import json

import torch
from safetensors import safe_open
from safetensors.torch import load_file

from course_utils.data import grammar
from course_utils.data.text import BOS, EOS, Vocab, collate, encode_pairs
from course_utils.decoding import batches_by_length, evaluating, greedy
from course_utils.transformer import Config, Transformer
from course_utils.widgets.translator import MOST_WRITTEN, WEIGHTS


def model():
    """The stored weights in `course_utils.transformer.Transformer`, and both vocabularies."""
    with safe_open(WEIGHTS, "np") as file:
        about = json.loads(file.metadata()["about"])
    source, target = (Vocab([]) for _ in range(2))
    for vocab, words in ((source, about["source"]), (target, about["target"])):
        vocab.words, vocab.ids = words, {word: i for i, word in enumerate(words)}
    transformer = Transformer(len(source), len(target), Config(n_heads=about["n_heads"], n_layers=about["n_layers"]))
    transformer.load_state_dict({name: value.float() for name, value in load_file(WEIGHTS).items()})
    return transformer.eval(), source, target


def sentences(n):
    """New sentences of the grammar, of all lengths."""
    return [pair.source for pair in grammar.corpus(n, seed=12345, lengths="uniform")]


def translations(given):
    """``[(ids of the source, ids of the translation, logits (T_q, vocab)), …]`` as PyTorch computes them."""
    transformer, source, target = model()
    found = {}
    with evaluating(transformer):
        for chosen in batches_by_length(given, 50):
            batch = collate(encode_pairs([(given[i], []) for i in chosen], source, target))
            for i, ids in zip(chosen, greedy(transformer, batch.source, MOST_WRITTEN, need_weights=False)[0].tolist(),
                              strict=True):
                ids = ids[:ids.index(EOS) + 1] if EOS in ids else ids
                one = torch.tensor([[*source.encode(given[i]), EOS]])
                logits, _ = transformer(one, torch.tensor([[BOS, *ids[:-1]]]), need_weights=False)
                found[i] = one[0, :-1].tolist(), ids, logits[0]
    return [found[i] for i in range(len(given))]
