"""Prompting a language model: the answer is the most probable next token."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..arguments import at_least_one
from ..models import evaluating
from ..transformer import Cache
from .model import GPT


def next_tokens(model: GPT, tokenizer, questions: Sequence[str], before: str = "",
                among: Sequence[str] | None = None) -> Tensor:
    """The most probable token after each of some texts: ids ``(n,)``.

    Padding stands on the right, where no earlier position sees it.

    Args:
        model, tokenizer: as `load` gives them; the model is set to evaluation mode for the call.
        questions: the texts, at least one.
        before: a common prefix of them all, read once.
        among: if given, only the first tokens of these texts are compared, and the result is their indices.

    Raises:
        ValueError: if there is no question, ``among`` is empty, or a text of either has no token.
        TypeError: if the questions are one string.
    """
    at_least_one(questions=questions)
    if among is not None:
        at_least_one(among=among)
        among = [ids[0] for ids in _encoded(tokenizer, among, "text of among")]
    encoded, best = _encoded(tokenizer, questions, "question"), []
    with evaluating(model):
        caches = model(torch.tensor([tokenizer.encode(before).ids]), at=torch.tensor([-1])).caches if before else ()
        for start in range(0, len(encoded), 16):
            part = encoded[start:start + 16]
            longest, ends = max(map(len, part)), torch.tensor([len(ids) - 1 for ids in part])
            past = tuple(Cache(*(x.expand(len(part), -1, -1, -1) for x in cache)) for cache in caches)
            ids = torch.tensor([ids + [0] * (longest - len(ids)) for ids in part])                   # (n, longest)
            logits = model(ids, past, at=ends).logits[:, 0]                                          # (n, vocab_size)
            best.append((logits if among is None else logits[:, among]).argmax(dim=-1))
    return torch.cat(best)


def _encoded(tokenizer, texts: Sequence[str], what: str) -> list[list[int]]:
    encoded = [tokenizer.encode(text).ids for text in texts]
    if [] in encoded:
        raise ValueError(f"{what} {encoded.index([])} has no token; expected a text of at least one.")
    return encoded


def question(what: str, word: str, mark: str = "") -> str:
    """A question in SmolLM2's chat form, and the first words of its answer; ``mark`` stands around the word."""
    return (f"<|im_start|>user\nWhat is the {what} {word}?<|im_end|>\n<|im_start|>assistant\n"
            f"The {what} {mark}{word}{mark} is{mark and ' ' + mark}")


def zero_shot(model: GPT, tokenizer, pairs: Sequence[tuple[str, str]], what: str) -> float:
    """Accuracy of a `question` per pair, without examples; with and without quotation marks, the better one."""
    at_least_one(pairs=pairs)
    shares = []
    for blank, mark in ((" ", ""), ("", '"')):
        tokens = next_tokens(model, tokenizer, [question(what, word, mark) for word, _ in pairs])
        wanted = torch.tensor([tokenizer.encode(blank + answer).ids[0] for _, answer in pairs])
        shares.append((tokens == wanted).float().mean().item())
    return max(shares)
