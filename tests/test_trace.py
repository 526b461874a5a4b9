"""One sentence pair from the grammar to an exported page, each step from what the step before gave; none goes back."""

import html

import torch

from course_utils.data.grammar import corpus
from course_utils.data.text import EOS, PAD, Vocab, collate, encode_pairs, token_batches
from course_utils.decoding import attention_records, translate
from course_utils.metrics import alignment_error_rate, bleu, hard_alignment
from course_utils.plotting import attention_heatmap
from course_utils.seq2seq import Seq2Seq
from course_utils.training import fit
from course_utils.widgets import AttentionView


def test_a_sentence_pair_on_its_way_from_the_grammar_to_a_page():
    pairs = corpus(40, seed=0, max_len=9)                                   # English, French, true links
    english, french = Vocab(pair.source for pair in pairs), Vocab(pair.target for pair in pairs)
    examples = encode_pairs(pairs, english, french)                         # ids, each sentence with its end

    batch = collate(examples[:2])                                           # (2, T_k), (2, T_q + 1), padded
    assert english.decode(batch.source[0]) == list(pairs[0].source)
    assert set(batch.source[batch.source != PAD][-1:].tolist()) <= {EOS}

    torch.manual_seed(0)
    model = Seq2Seq(len(english), len(french), d_embed=16, d_model=32, attention="additive", query="current")
    history = fit(model, token_batches(examples, tokens=200), steps=60, lr=1e-2, live=False)
    assert history.loss[-1] < history.loss[0]

    written = translate(model, [pairs[0].source], english, french)          # words again
    assert 0 <= bleu(written, [pairs[0].target]) <= 100

    record, = attention_records(model, [pairs[0]], english, french)         # weights, rows, columns, true links
    assert record.rows == list(pairs[0].target)
    assert record.columns == [*pairs[0].source, "<eos>"]
    assert set(record.alignment) == set(pairs[0].links)

    assert all(column < len(pairs[0].source) for _, column in hard_alignment(record))
    assert 0 <= alignment_error_rate([record]) <= 1
    assert attention_heatmap(record).axes[0].images                         # for print

    view = AttentionView(record)                                            # for the screen
    assert view.weights.shape == (1, 1, *record.weights.shape)
    page = view.to_html()                                                   # for a page without a kernel
    assert "<script>" in page
    assert all(html.escape(word, quote=True) in page for word in record.rows)
