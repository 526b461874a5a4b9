"""Lesson 04 on the large lexicon: what a minute of one core teaches a small Transformer, each pair seen about once.

``python experiments/large_lexicon.py`` trains lesson 04's model on 45,000 pairs of 385 English and 618 French words and
prints, for each seed, BLEU on 420 unseen pairs by length, and the processor seconds. The number of pairs and steps was
chosen on other pairs of the grammar: 20,000 pairs seen twice are four points worse.
"""

import time

import torch

from course_utils import setup
from course_utils.data import Vocab, token_batches, train_test
from course_utils.data.text import encode_pairs
from course_utils.decoding import translate
from course_utils.metrics import bleu, by_group, length_groups
from course_utils.training import fit
from course_utils.transformer import Transformer

N_PAIRS, STEPS, LR, TOKENS = 45_000, 2200, 6e-3, 500


def measure(seed: int) -> tuple[float, dict[str, float], float]:
    """BLEU of all 420 test pairs and by length, and the seconds of training."""
    setup(seed)
    train, test = train_test(N_PAIRS, 420, seed, lexicon="full")
    english, french = Vocab([pair.source for pair in train]), Vocab([pair.target for pair in train])
    batches = token_batches(encode_pairs(train, english, french), tokens=TOKENS, seed=seed)
    torch.manual_seed(seed)
    model = Transformer(len(english), len(french))
    started = time.process_time()
    fit(model, batches, STEPS, lr=LR, live=False)
    seconds = time.process_time() - started
    words, right = translate(model, [pair.source for pair in test], english, french), [pair.target for pair in test]
    return bleu(words, right), by_group(bleu, length_groups(test), words, right), seconds


if __name__ == "__main__":
    for seed in (0, 1, 2):
        score, by_length, seconds = measure(seed)
        print(f"seed {seed}: BLEU {score:.1f} in {seconds:.0f} CPU seconds;",
              ", ".join(f"{length} words {value:.1f}" for length, value in by_length.items()), flush=True)
