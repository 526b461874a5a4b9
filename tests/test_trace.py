"""One sentence pair from the grammar to an exported page, each step from what the step before gave; none goes back.

The pair has what a step back would lose: a word that the vocabulary does not know, and a token with a blank in it.
"""

import numpy as np
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from sample_attentions import sent_weights
from sample_widgets import drawn

from course_utils.data.grammar import corpus
from course_utils.data.text import EOS, PAD, UNK, Vocab, collate, encode_pairs, token_batches
from course_utils.decoding import attention_records, translate
from course_utils.metrics import alignment_error_rate, bleu, hard_alignment
from course_utils.plotting import attention_heatmap
from course_utils.publish.pages import page
from course_utils.seq2seq import Seq2Seq
from course_utils.training import fit
from course_utils.widgets import AttentionView


def test_a_sentence_pair_on_its_way_from_the_grammar_to_a_page(tmp_path):
    first, *others = corpus(40, seed=0, max_len=9)                          # English, French, true links
    first = first._replace(source=("New York", *first.source[1:]), target=("la ville", *first.target[1:]))
    pairs = [first, *others]
    english, french = Vocab(pair.source for pair in pairs), Vocab(pair.target for pair in pairs)
    examples = encode_pairs(pairs, english, french)                         # ids, each sentence with its end

    torch.manual_seed(0)
    model = Seq2Seq(len(english), len(french), d_embed=16, d_model=32, attention="additive", query="current")
    history = fit(model, token_batches(examples, tokens=200), steps=60, lr=1e-2, live=False)
    assert history.loss[-1] < history.loss[0]

    pair = first._replace(source=(first.source[0], "quokka", *first.source[2:]),
                          target=(first.target[0], "quokka", *first.target[2:]))
    ids = encode_pairs([pair, others[0]], english, french)
    batch = collate(ids)                                                    # (2, T_k), (2, T_q + 1), padded
    real = batch.source[0] != PAD
    assert batch.source[0][real].tolist() == [*english.encode(pair.source), EOS]
    assert len(batch.source[0][real]) == len(pair.source) + 1
    assert batch.source[0, :2].tolist() == [english.ids["New York"], UNK]

    written = translate(model, [pair.source], english, french)              # words again
    assert 0 <= bleu(written, [pair.target]) <= 100

    record, = attention_records(model, [pair], english, french)             # weights, rows, columns, true links
    assert record.rows == list(pair.target)
    assert record.columns == [*pair.source, "<eos>"]
    assert set(record.alignment) == set(pair.links)
    _, weights = model(ids[0][0].unsqueeze(0), ids[0][1][:-1].unsqueeze(0))
    torch.testing.assert_close(record.weights, weights.detach()[0, :len(pair.target)])

    assert all(column < len(pair.source) for _, column in hard_alignment(record))
    assert 0 <= alignment_error_rate([record]) <= 1
    assert attention_heatmap(record).axes[0].images                         # for print

    output = new_output("display_data", data={"text/html": AttentionView(record).to_html()})        # for the screen
    lesson = new_notebook(cells=[new_markdown_cell("# A lesson"), new_code_cell("AttentionView(record)",
                                                                                outputs=[output])])
    state = drawn("AttentionView", page(lesson, tmp_path))                  # for a page without a kernel
    content = state["_content"][""]
    assert content["rows"] == list(pair.target)
    assert content["columns"] == [*pair.source, "<eos>"]
    assert sorted(map(tuple, content["alignment"])) == sorted(pair.links)
    assert len(pair.links) > 0
    np.testing.assert_allclose(sent_weights(state)[0, 0], record.weights.numpy(), rtol=0, atol=7.7e-6)
