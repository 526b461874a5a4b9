"""The translator's model in NumPy: what Python says about a translation that the page makes in JavaScript."""

import json
import math
from pathlib import Path

import numpy as np

BOS, EOS = 1, 2


class TranslatorFile:
    """What `experiments/translator.py` writes for a page.

    Attributes:
        tensors: the weights, by name; ``about`` what else is said of them.
        source, target: the words of both vocabularies; ``ids`` those of the source with their numbers.
        pairs: sentences that are not in the training data: words, words of the translation, true links.
    """

    def __init__(self, path: Path):
        from safetensors import safe_open  # the other widgets do without

        with safe_open(path, "np") as file:
            self.tensors = {name: file.get_tensor(name).astype(np.float32) for name in file.keys()}  # noqa: SIM118
            self.about = about = json.loads(file.metadata()["about"])
        self.source, self.target = about["source"], about["target"]
        self.ids = {word: i for i, word in enumerate(self.source)}
        self.pairs = [([self.source[i] for i in source], [self.target[i] for i in target], tuple(map(tuple, links)))
                      for source, target, links in about["pairs"]]

    def encoded(self, words: list[str]) -> list[int]:
        """Ids of the source's words; of one that it does not know, that of ``<unk>``."""
        return [self.ids.get(word, self.ids["<unk>"]) for word in words]


class TranslatorModel(TranslatorFile):
    """A Transformer as `course_utils.transformer` builds it, with LayerNorm before each sublayer; it only reads.

    Attributes:
        head: layer and head of the cross-attention that aligns best.
    """

    def __init__(self, path: Path):
        super().__init__(path)
        about = self.about
        self.n_heads, self.n_layers, self.head = about["n_heads"], about["n_layers"], tuple(about["head"])

    def translate(self, source: list[int], most: int) -> tuple[list[int], np.ndarray]:
        """Always the most probable word: at most so many ids, and the cross-attention's weights of all of them.

        The weights are ``[layers, heads, T_q, T_k]``; the source is without EOS, which is added.
        """
        memory, ids = self.read([*source, EOS]), []
        while len(ids) < most and (not ids or ids[-1] != EOS):
            logits, weights = self.write([BOS, *ids], memory)
            ids.append(int(logits[-1].argmax()))
        return ids, weights

    def read(self, ids: list[int]) -> np.ndarray:
        """The encoder: ``(T_k, d_model)``."""
        x = self._embed("source_embed", ids)
        for i in range(self.n_layers):
            name = f"encoder.layers.{i}"
            normed = self._norm(f"{name}.norm_1", x)
            x = x + self._attend(f"{name}.self_attention", normed, normed)[0]
            x = x + self._feed_forward(name, self._norm(f"{name}.norm_2", x))
        return self._norm("encoder.norm", x)

    def write(self, ids: list[int], memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The decoder: logits ``(T_q, vocab)``, and the cross-attention's weights."""
        x, all_weights = self._embed("target_embed", ids), []
        for i in range(self.n_layers):
            name = f"decoder.layers.{i}"
            normed = self._norm(f"{name}.norm_1", x)
            x = x + self._attend(f"{name}.self_attention", normed, normed, causal=True)[0]
            attended, weights = self._attend(f"{name}.cross_attention", self._norm(f"{name}.norm_2", x), memory)
            x = x + attended
            x = x + self._feed_forward(name, self._norm(f"{name}.norm_3", x))
            all_weights.append(weights)
        return self._norm("decoder.norm", x) @ self.tensors["target_embed.weight"].T, np.stack(all_weights)

    def _embed(self, table: str, ids: list[int]) -> np.ndarray:
        vectors = self.tensors[f"{table}.weight"][ids]
        n, width = vectors.shape
        angles = np.arange(n)[:, None] / 10_000 ** (np.arange(0, width, 2) / width)
        waves = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(n, width)
        return vectors * math.sqrt(width) + waves.astype(np.float32)

    def _linear(self, name: str, x: np.ndarray) -> np.ndarray:
        return x @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]

    def _norm(self, name: str, x: np.ndarray) -> np.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred ** 2).mean(axis=-1, keepdims=True) + 1e-5)
        return scaled * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"]

    def _feed_forward(self, name: str, x: np.ndarray) -> np.ndarray:
        return self._linear(f"{name}.feed_forward.2", np.maximum(0, self._linear(f"{name}.feed_forward.0", x)))

    def _attend(self, name: str, x: np.ndarray, keys: np.ndarray, causal: bool = False):
        """Queries from ``x``, keys and values from ``keys``: the output, and weights ``(n_heads, T_q, T_k)``."""
        q, k, v = (self._linear(f"{name}.{part}", of).reshape(len(of), self.n_heads, -1).swapaxes(0, 1)
                   for part, of in (("W_q", x), ("W_k", keys), ("W_v", keys)))
        scores = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[-1])
        if causal:
            scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        return self._linear(f"{name}.W_o", (weights @ v).swapaxes(0, 1).reshape(x.shape)), weights
