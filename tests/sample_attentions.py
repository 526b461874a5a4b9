"""The three attentions of a small Transformer, their view, and what an exported page holds of one."""

import base64
from typing import NamedTuple

import numpy as np
import torch

from course_utils.widgets import AttentionView

SOURCE = ("the", "agreement", "was", "signed", ".")
TARGET = ("l'", "accord", "est", "signé")


def softmax(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).softmax(-1)


class Three(NamedTuple):
    encoder: torch.Tensor
    decoder: torch.Tensor
    cross: torch.Tensor


def three(layers=2, heads=3, n=4, m=5):
    causal = torch.ones(n, n, dtype=torch.bool).tril()
    scores = torch.randn(layers, heads, n, n, generator=torch.Generator().manual_seed(5))
    return Three(softmax(layers, heads, m, m, seed=1), scores.masked_fill(~causal, -torch.inf).softmax(-1),
                 softmax(layers, heads, n, m, seed=2))


def view(**changes):
    return AttentionView(**{"weights": three(), "rows": TARGET, "columns": SOURCE, "alignment": [(1, 1)],
                            "causal": True, **changes})


def computed(*parts):
    """Three attentions of two layers with three heads, and of these parts the queries and keys that explain them."""
    generator = torch.Generator().manual_seed(9)
    weights, given = {}, {"queries": {}, "keys": {}}
    for part, (n, m) in {"encoder": (5, 5), "decoder": (4, 4), "cross": (4, 5)}.items():
        queries, keys = (torch.randn(2, 3, size, 6, generator=generator) for size in (n, m))
        scores = queries @ keys.transpose(-1, -2) / 6**0.5
        seen = torch.ones(n, m, dtype=torch.bool).tril(0 if part == "decoder" else m)
        weights[part] = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        if part in parts:
            given["queries"][part], given["keys"][part] = queries, keys
    return {"weights": weights, **given}


def sent_weights(state):
    """The weights of an exported page ``[layers, heads, T_q, T_k]``; a head that is not there is not a number."""
    weights = np.full(state["_content"][""]["shape"], np.nan)
    for number, head in state["_content"][""]["heads"].items():
        steps = np.frombuffer(base64.b64decode(head["weights"]["uint16"]), "<u2").reshape(weights.shape[2:])
        weights[divmod(int(number), weights.shape[1])] = steps / 65535 * head["weights"]["peak"]
    return weights
