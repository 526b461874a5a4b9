"""The two recurrent translators in NumPy: what Python says about translations that the page makes in JavaScript."""

import numpy as np

from .translator_model import BOS, EOS, TranslatorFile


class RecurrentModel:
    """A `course_utils.seq2seq.Seq2Seq` of GRUs, without attention or with additive attention after the step.

    Args:
        file: the weights of both.
        name: ``"without"`` or ``"with"``.
    """

    def __init__(self, file: TranslatorFile, name: str):
        self.tensors = {key.removeprefix(f"{name}."): tensor for key, tensor in file.tensors.items()
                        if key.startswith(f"{name}.")}
        self.attends = "decoder.combine.weight" in self.tensors

    def translate(self, source: list[int], most: int) -> tuple[list[int], np.ndarray]:
        """Always the most probable word: at most so many ids, and the weights ``[T_q, T_k]``, without attention none.

        The source is without EOS, which is added.
        """
        words = self.tensors["encoder.embed.weight"][[*source, EOS]]
        forwards, backwards = self._read(words, ""), self._read(words[::-1], "_reverse")[::-1]
        states = np.concatenate([forwards, backwards], axis=1)                              # (T_k, d_model)
        summary = np.concatenate([forwards[-1], backwards[0]])
        keys = states @ self.tensors["decoder.score.W_k.weight"].T if self.attends else None
        state, ids, all_weights = np.tanh(self._linear("bridge", summary)), [], []
        while len(ids) < most and (not ids or ids[-1] != EOS):
            word = self.tensors["embed.weight"][ids[-1] if ids else BOS]
            state = self._gru("decoder.rnn", "", word if self.attends else np.concatenate([word, summary]), state)
            output = state
            if self.attends:
                hidden = np.tanh(self._linear("decoder.score.W_q", state) + keys)           # (T_k, d_model)
                scores = hidden @ self.tensors["decoder.score.v.weight"][0]
                weights = np.exp(scores - scores.max())
                all_weights.append(weights / weights.sum())
                output = np.tanh(self._linear("decoder.combine", np.concatenate([state, all_weights[-1] @ states])))
            ids.append(int(self._linear("output", output).argmax()))
        return ids, np.array(all_weights)

    def _read(self, words: np.ndarray, direction: str) -> np.ndarray:
        """All states of one of the encoder's readers: ``(T_k, d_model / 2)``."""
        states = [np.zeros(self.tensors["encoder.rnn.weight_hh_l0"].shape[1], np.float32)]
        for word in words:
            states.append(self._gru("encoder.rnn", direction, word, states[-1]))
        return np.stack(states[1:])

    def _gru(self, name: str, direction: str, x: np.ndarray, state: np.ndarray) -> np.ndarray:
        given, kept = (self.tensors[f"{name}.weight_{kind}_l0{direction}"] @ of
                       + self.tensors[f"{name}.bias_{kind}_l0{direction}"] for kind, of in (("ih", x), ("hh", state)))
        (r_x, z_x, n_x), (r_h, z_h, n_h) = np.split(given, 3), np.split(kept, 3)
        reset, update = 1 / (1 + np.exp(-r_x - r_h)), 1 / (1 + np.exp(-z_x - z_h))
        fresh = np.tanh(n_x + reset * n_h)
        return fresh + update * (state - fresh)

    def _linear(self, name: str, x: np.ndarray) -> np.ndarray:
        return self.tensors[f"{name}.weight"] @ x + self.tensors[f"{name}.bias"]
