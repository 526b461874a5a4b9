"""Greedy decoding, translating many sentences, and reading off what a model attended to."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.testing import assert_close

from course_utils.data.text import BOS, EOS, PAD, Vocab, collate, encode_pairs
from course_utils.decoding import attention_matrices, greedy, translate
from course_utils.seq2seq import Seq2Seq

SENTENCES = [s.split() for s in ("a b c d e", "b", "c d", "e a d c b a b", "", "d d d", "a e")]
VOCAB = Vocab([list("abcde")])
PAIRS = [(source, target) for source, target in zip(SENTENCES, SENTENCES[::-1], strict=True) if source and target]


class Copier(nn.Module):
    """Writes what it read, end symbol included, by looking at one word after the other; counts its steps."""

    def __init__(self):
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(1))
        self.steps, self.modes = 0, []

    def encode(self, source):
        return source, 0

    def decode(self, target, state, memory):
        self.steps += 1
        self.modes.append(self.training)
        place = min(state, memory.size(1) - 1)
        weights = F.one_hot(torch.full((memory.size(0), 1), place), memory.size(1)).float()
        return F.one_hot(memory[:, place:place + 1], len(VOCAB)) + self.anchor, weights, state + 1


def make_model(attention="additive", query="previous", dropout=0.0):
    torch.manual_seed(0)
    return Seq2Seq(len(VOCAB), len(VOCAB), 8, 8, attention=attention, query=query, dropout=dropout)


def sources(sentences=SENTENCES):
    return collate(encode_pairs([(s, []) for s in sentences], VOCAB, VOCAB)).source


# --- greedy --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("attention", "query"), [
    (None, "previous"), ("additive", "previous"), ("general", "current")])
def test_greedy_takes_the_most_probable_next_word_again_and_again(attention, query):
    """By hand: read everything written so far again, and append the best next word."""
    model = make_model(attention, query)
    for parameter in model.parameters():                      # else a fresh model repeats one word
        nn.init.normal_(parameter)
    ids, weights = greedy(model, sources(), max_len=6)
    written = set()
    for i, sentence in enumerate(SENTENCES):
        source, prefix = sources([sentence]), [BOS]
        for _ in range(6):
            logits, by_hand = model(source, torch.tensor([prefix]))
            prefix.append(int(logits[0, -1].argmax()))
            if prefix[-1] == EOS:
                break
        written.update(prefix)
        n = len(prefix) - 1
        assert ids[i, :n].tolist() == prefix[1:]
        if attention:
            assert_close(weights[i, :n, :source.size(1)], by_hand[0])
        else:
            assert weights is None
    assert len(written) > 2


def test_greedy_stops_when_the_last_sentence_has_ended():
    model = Copier()
    ids, weights = greedy(model, sources(), max_len=60)
    assert model.steps == 8                                                 # seven words and the end symbol
    assert ids.shape == (len(SENTENCES), 8)
    assert weights.shape == (len(SENTENCES), 8, 8)
    assert [VOCAB.decode(row) for row in ids] == SENTENCES
    assert_close(weights[3], torch.eye(8))


@pytest.mark.parametrize("max_len", [1, 3])
def test_greedy_stops_at_the_longest_length_allowed(max_len):
    model = Copier()
    ids, weights = greedy(model, sources(), max_len)
    assert model.steps == ids.size(1) == weights.size(1) == max_len
    assert VOCAB.decode(ids[0]) == SENTENCES[0][:max_len]


@pytest.mark.parametrize("training", [True, False])
def test_greedy_decodes_without_dropout_and_leaves_the_mode_as_it_was(training):
    model = Copier().train(training)
    greedy(model, sources())
    assert not any(model.modes)
    assert model.training == training
    model = make_model(dropout=0.5).train(training)
    (ids, weights), (again, weights_again) = greedy(model, sources()), greedy(model, sources())
    assert torch.equal(ids, again)
    assert torch.equal(weights, weights_again)
    assert model.training == model.encoder.training == training


def test_greedy_keeps_no_graph():
    _, weights = greedy(make_model(), sources(), max_len=2)
    assert not weights.requires_grad


# --- translate -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_translations_come_in_the_order_of_the_sentences(batch_size):
    assert translate(Copier(), SENTENCES, VOCAB, VOCAB, batch_size=batch_size) == SENTENCES


def test_translations_are_written_in_the_words_of_the_target():
    capitals = Vocab([list("ABCDE")])
    assert translate(Copier(), SENTENCES, VOCAB, capitals) == [[w.upper() for w in s] for s in SENTENCES]


def test_translations_are_no_longer_than_asked_and_unknown_words_are_read():
    assert translate(Copier(), [list("abcde"), ["z", "a"]], VOCAB, VOCAB, max_len=3) == [list("abc"), ["<unk>", "a"]]


def test_no_sentences_have_no_translations():
    assert translate(Copier(), [], VOCAB, VOCAB) == []


# --- attention matrices --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("batch_size", [2, 100])
@pytest.mark.parametrize("query", ["previous", "current"])
def test_matrices_are_the_weights_while_the_reference_is_written(query, batch_size):
    """One row for each target word, one column for each source word and one for the end symbol."""
    model = make_model("general", query)
    matrices = attention_matrices(model, PAIRS, VOCAB, VOCAB, batch_size=batch_size)
    assert len(matrices) == len(PAIRS)
    for (source, target), matrix in zip(PAIRS, matrices, strict=True):
        assert matrix.shape == (len(target), len(source) + 1)
        assert_close(matrix.sum(-1), torch.ones(len(target)))
        _, alone = model(torch.tensor([[*VOCAB.encode(source), EOS]]), torch.tensor([[BOS, *VOCAB.encode(target)]]))
        assert_close(matrix, alone[0, :len(target)])
        assert not matrix.requires_grad


@pytest.mark.parametrize("training", [True, False])
def test_matrices_are_read_without_dropout_and_leave_the_mode_as_it_was(training):
    model = make_model(dropout=0.5).train(training)
    first, second = (attention_matrices(model, PAIRS, VOCAB, VOCAB) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert model.training == training


def test_a_model_without_attention_has_no_matrices():
    with pytest.raises(ValueError, match="no attention, so there are no weights to read"):
        attention_matrices(make_model(None), PAIRS, VOCAB, VOCAB)


def test_the_sources_here_are_padded():
    """Else the tests above would say nothing about mixed lengths."""
    assert (sources() == PAD).any()
