"""The three attentions of a small Transformer, their view, and what an exported page holds of one."""

import base64
from types import SimpleNamespace
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


def outputs(weights):
    """What an encoder-decoder of transformers returns, as far as it is read."""
    return SimpleNamespace(**{f"{part}_attentions": one for part, one in weights._asdict().items()})


def view(**changes):
    return AttentionView(**{"weights": outputs(three()), "rows": TARGET, "columns": SOURCE, "alignment": [(1, 1)],
                            "causal": True, **changes})


def computed():
    """What shows each of three attentions of two layers with three heads alone, the queries and keys included."""
    generator = torch.Generator().manual_seed(9)
    given = {}
    for part, rows, columns in (("encoder", SOURCE, SOURCE), ("decoder", TARGET, TARGET), ("cross", TARGET, SOURCE)):
        queries, keys = (torch.randn(2, 3, len(side), 6, generator=generator) for side in (rows, columns))
        scores = queries @ keys.transpose(-1, -2) / 6**0.5
        if part == "decoder":
            scores = scores.masked_fill(~torch.ones(4, 4, dtype=torch.bool).tril(), -torch.inf)
        given[part] = {"weights": scores.softmax(-1), "rows": rows, "columns": columns, "queries": queries,
                       "keys": keys, "causal": part == "decoder"}
    return given


def sent_weights(state):
    """The weights of an exported page ``[layers, heads, T_q, T_k]``; a head that is not there is not a number."""
    weights = np.full(state["_content"][""]["shape"], np.nan)
    for number, head in state["_content"][""]["heads"].items():
        steps = np.frombuffer(base64.b64decode(head["weights"]["uint16"]), "<u2").reshape(weights.shape[2:])
        weights[divmod(int(number), weights.shape[1])] = steps / 65535 * head["weights"]["peak"]
    return weights
