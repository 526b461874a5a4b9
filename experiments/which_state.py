"""Which state asks? Bahdanau's and Luong's decoder, each with the previous and with the current state as the query.

``python experiments/which_state.py`` trains the four on the sentences of ``six_scores.py``, with the additive score,
and writes BLEU, the alignment error rate and where the wrong links point to ``which_state.json``.
"""

import argparse
from pathlib import Path

import torch
from six_scores import STEPS, WIDTH, Sentences

from course_utils.attention import AdditiveScore
from course_utils.claims.stored import store
from course_utils.metrics import hard_alignment
from course_utils.seq2seq import BahdanauDecoder, LuongDecoder, run

HERE = Path(__file__).resolve().parent


class LuongPrevious(LuongDecoder):
    def forward(self, embedded, state, memory):
        states, last = run(self.rnn, embedded, state)                       # (B, T_q, d)
        earlier = torch.cat([state[0].unsqueeze(1), states[:, :-1]], dim=1)
        context, weights = self.look(earlier, memory)
        return torch.tanh(self.combine(torch.cat([states, context], dim=-1))), weights, last


class BahdanauCurrent(BahdanauDecoder):
    def forward(self, embedded, state, memory):
        *state, read = state if len(state) == 3 else (*state, torch.zeros_like(state[0]))
        outputs, weights = [], []
        for word in embedded.unbind(dim=1):                                 # (B, d_embed)
            state = self.cell(torch.cat([word, read], dim=-1), tuple(state))
            context, row = self.look(state[0].unsqueeze(1), memory)         # the current state asks
            read = context.squeeze(1)                                       # for the next step, too
            outputs.append(torch.cat([state[0], read, word], dim=-1))
            weights.append(row)
        outputs = torch.tanh(self.combine(torch.stack(outputs, dim=1)))
        return outputs, torch.cat(weights, dim=1), (*state, read)


KINDS = {("Luong's", "previous"): LuongPrevious, ("Luong's", "current"): LuongDecoder,
         ("Bahdanau's", "previous"): BahdanauDecoder, ("Bahdanau's", "current"): BahdanauCurrent}
"""Whose decoder, and which state asks."""


def wrong_links(guess, pair):
    """Wrong links: at neither neighbour's source, the previous word's, the next's, both."""
    rows = range(-1, len(pair.target) + 1)
    sources_of = {row: {c for r, c in pair.links if r == row} for row in rows}
    wrong = [(row, column) for row, column in guess if column not in sources_of[row]]
    kinds = [(c in sources_of[r - 1]) + 2 * (c in sources_of[r + 1]) for r, c in wrong]
    return torch.tensor([kinds.count(kind) for kind in range(4)])


def measure(of: str, asks: str, steps: int, seed: int) -> dict:
    """One training: BLEU, the alignment error rate, and how many wrong links point where."""
    sentences = Sentences.of(seed)
    model = sentences.untrained("additive", "current" if of == "Luong's" else "previous", seed)
    decoder = KINDS[of, asks](64, WIDTH, "lstm", AdditiveScore(WIDTH, WIDTH))
    decoder.load_state_dict(model.decoder.state_dict())                     # the same first weights
    model.decoder = decoder
    sentences.train(model, steps, seed, f"{of} decoder, {asks} state, seed {seed}")
    wrong = sum(map(wrong_links, map(hard_alignment, sentences.records(model)), sentences.test))
    row = sentences.tested(model) | {"wrong_links": dict(zip(("elsewhere", "previous", "next", "both"), wrong.tolist(),
                                                             strict=True))}
    print(of, asks, seed, row, flush=True)
    return row


def main(arguments: list[str] | None = None) -> None:
    """All four at all seeds; what is there is stored after each of them."""
    parser = argparse.ArgumentParser(description="Two decoders, two queries; writes which_state.json.")
    parser.add_argument("--steps", type=int, default=STEPS, help="(default: %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="(default: 0 1 2 3 4)")
    parser.add_argument("--out", default="which_state.json", help="file beside this script (default: %(default)s)")
    options = parser.parse_args(arguments)
    command = f"python experiments/which_state.py --steps {options.steps} --seeds {' '.join(map(str, options.seeds))}"
    rows = []
    for of, asks in KINDS:
        runs = [measure(of, asks, options.steps, seed) for seed in options.seeds]
        rows.append({"decoder": of, "asks": asks, "runs": runs})
        store(HERE / options.out, command, options.seeds, {"steps": options.steps, "rows": rows})


if __name__ == "__main__":
    main()
