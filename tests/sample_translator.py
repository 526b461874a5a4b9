"""The translators' models in PyTorch, and what they say about sentences that they have not seen."""

import json

import torch
from safetensors import safe_open
from safetensors.torch import load_file

from course_utils.data import grammar
from course_utils.data.text import BOS, EOS, Vocab, encode_sources
from course_utils.decoding import batches_by_length, greedy
from course_utils.models import evaluating
from course_utils.seq2seq import Seq2Seq
from course_utils.transformer import Config, Transformer
from course_utils.widgets import two_translators
from course_utils.widgets.translator import MOST_WRITTEN, WEIGHTS


def vocabularies(path):
    """What the file says of its model, and both vocabularies."""
    with safe_open(path, "np") as file:
        about = json.loads(file.metadata()["about"])
    source, target = (Vocab([]) for _ in range(2))
    for vocab, words in ((source, about["source"]), (target, about["target"])):
        vocab.words, vocab.ids = words, {word: i for i, word in enumerate(words)}
    return about, source, target


def model():
    """The stored weights in `course_utils.transformer.Transformer`, and both vocabularies."""
    about, source, target = vocabularies(WEIGHTS)
    transformer = Transformer(len(source), len(target), Config(n_heads=about["n_heads"], n_layers=about["n_layers"]))
    transformer.load_state_dict({name: value.float() for name, value in load_file(WEIGHTS).items()})
    return transformer.eval(), source, target


def recurrent(name):
    """Those of one of `TwoTranslators`, "without" or "with", in `course_utils.seq2seq.Seq2Seq`."""
    _, source, target = vocabularies(two_translators.WEIGHTS)
    weights = {key.removeprefix(f"{name}."): value.float() for key, value in load_file(two_translators.WEIGHTS).items()
               if key.startswith(f"{name}.")}
    d_embed, d_model = weights["embed.weight"].size(1), weights["bridge.weight"].size(0)
    seq2seq = Seq2Seq(len(source), len(target), d_embed, d_model, "additive" if name == "with" else None, "current")
    seq2seq.load_state_dict(weights)
    return seq2seq.eval(), source, target


def sentences(n):
    """New sentences of the grammar, of all lengths."""
    return [pair.source for pair in grammar.corpus(n, seed=12345, lengths="uniform")]


def translations(given, translator=None):
    """What PyTorch computes of each: ids of the source and of the translation, logits ``(T_q, vocab)``, weights.

    ``translator`` is a model and its vocabularies; default: the Transformer.
    """
    writer, source, target = translator or model()
    found = {}
    with evaluating(writer):
        for chosen in batches_by_length(given, 50):
            read = encode_sources([given[i] for i in chosen], source)
            for i, ids in zip(chosen, greedy(writer, read, MOST_WRITTEN)[0].tolist(), strict=True):
                ids = ids[:ids.index(EOS) + 1] if EOS in ids else ids
                one = torch.tensor([[*source.encode(given[i]), EOS]])
                logits, weights = writer(one, torch.tensor([[BOS, *ids[:-1]]]), need_weights=True)
                found[i] = one[0, :-1].tolist(), ids, logits[0], None if weights is None else weights[0]
    return [found[i] for i in range(len(given))]


# --- in a page ---


def typed(page, text):
    """Type a sentence into the widget and confirm it."""
    page.get_by_role("combobox", name="English sentence").fill(text)
    page.keyboard.press("Enter")


def same_as_pytorch(page, in_the_page, found):
    """The model that is ``in_the_page`` writes the words of `translations`; one sentence has the same logits."""
    theirs = page.evaluate(f"(all) => all.map((ids) => {in_the_page}.translate(ids, 120).ids)",
                           [ids for ids, *_ in found])
    assert theirs == [ids for _, ids, *_ in found]
    source, _, logits, _ = found[6]
    ours = page.evaluate(f"(ids) => {in_the_page}.translate(ids, 120).logits.map((row) => [...row])", source)
    assert abs(logits.numpy() - ours).max() < 1e-3


def on_a_phone(show, open_page, view, root):
    """Show the widget at 390 px: nothing of it stands outside."""
    page = show('<meta name="viewport" content="width=device-width, initial-scale=1">', view,
                page=open_page(viewport={"width": 390, "height": 844}))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    sides = page.locator(root).evaluate("""(root) => [...root.querySelectorAll("button, input, select")]
      .filter((e) => e.checkVisibility() && !e.closest(".av-stage")).map((e) => e.getBoundingClientRect().right)""")
    assert max(sides) <= 380
