"""Greedy decoding, beam search, sampling, translating many sentences, and reading off what a model attended to."""

import itertools
import math
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.testing import assert_close

from course_utils.beam_tree import beam_tree
from course_utils.data.text import BOS, EOS, PAD, Vocab, encode_sources
from course_utils.decoding import (
    Hypothesis,
    attention_records,
    batches_by_length,
    beam_search,
    greedy,
    length_penalty,
    sample,
    translate,
    truncate,
)
from course_utils.models import evaluating
from course_utils.seq2seq import Seq2Seq
from course_utils.transformer import Config, Transformer

SENTENCES = [s.split() for s in ("a b c d e", "b", "c d", "e a d c b a b", "", "d d d", "a e")]
VOCAB = Vocab([list("abcde")])
PAIRS = [(source, target) for source, target in zip(SENTENCES, SENTENCES[::-1], strict=True) if source and target]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Copier(nn.Module):
    """Writes what it read, end symbol included, by looking at one word after the other; counts its steps."""

    def __init__(self):
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(1))
        self.steps, self.modes = 0, []

    def encode(self, source):
        return source, 0

    def decode(self, target, state, memory, need_weights=False):
        self.steps += 1
        self.modes.append(self.training)
        place = min(state, memory.size(1) - 1)
        weights = F.one_hot(torch.full((memory.size(0), 1), place), memory.size(1)).float()
        return F.one_hot(memory[:, place:place + 1], len(VOCAB)) + self.anchor, weights, state + 1

    def reorder(self, kept, index):
        return kept if isinstance(kept, int) else kept[index]


class Table(nn.Module):
    """Next words as in a table: ``{words so far: {word: probability}}``, the same for every source.

    What is not in the table has ended. Its state is everything written so far, ``(B, t)``.
    """

    def __init__(self, table):
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(1))
        self.table = {tuple(words): nexts for words, nexts in table.items()}

    def encode(self, source):
        return source, source.new_zeros(source.size(0), 0)

    def decode(self, target, state, memory, need_weights=False):
        n, state = state.size(1), torch.cat([state, target], dim=1)
        logits = torch.full((*target.shape, len(VOCAB)), -math.inf)
        for i, ids in enumerate(state.tolist()):
            for t in range(target.size(1)):
                so_far = tuple(VOCAB.words[k] for k in ids[1:n + t + 1])
                for word, probability in self.table.get(so_far, {"<eos>": 1}).items():
                    logits[i, t, VOCAB.ids[word]] = math.log(probability)
        return logits + self.anchor, None, state

    def reorder(self, kept, index):
        return kept[index]


def make_model(attention="additive", query="previous", dropout=0.0):
    torch.manual_seed(0)
    return Seq2Seq(len(VOCAB), len(VOCAB), 8, 8, attention=attention, query=query, dropout=dropout)


# attention, query, cell; a Transformer has one kind of attention, its queries are current, and its state is caches
MODELS = [(None, "previous", "gru"), (None, "previous", "lstm"), ("additive", "previous", "gru"),
          ("additive", "previous", "lstm"), ("general", "current", "gru"), ("general", "current", "lstm"),
          ("transformer", "current", None)]
every_model = pytest.mark.parametrize(("attention", "query", "cell"), MODELS)


def random_model(attention=None, query="previous", cell="gru", vocab=VOCAB, seed=0):
    """Far from uniform, so that hypotheses differ, and with an end symbol that is likely enough to be written."""
    torch.manual_seed(seed)
    if attention == "transformer":
        model = Transformer(len(vocab), len(vocab), Config(d_model=8, n_heads=2, d_ff=16)).eval()
    else:
        model = Seq2Seq(len(vocab), len(vocab), 8, 8, attention=attention, query=query, cell=cell)
    for parameter in model.parameters():
        if attention != "transformer" or parameter.dim() > 1:              # a LayerNorm's would favour one word
            nn.init.normal_(parameter)
    return model


def forced(model, source, ids):
    """Log-probability of each of these words by teacher forcing, one sentence at a time."""
    with torch.no_grad():
        logits, _ = model(source, torch.tensor([[BOS, *ids[:-1]]]))
    return logits[0].log_softmax(dim=-1).gather(1, torch.tensor(ids).unsqueeze(1)).squeeze(1)


def to_end(row):
    """Ids up to the end symbol."""
    row = row.tolist()
    return row[:row.index(EOS) + 1] if EOS in row else row


def sources(sentences=SENTENCES):
    return encode_sources(map(list, sentences), VOCAB)


# --- greedy --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("attention", "query"), [
    (None, "previous"), ("additive", "previous"), ("general", "current"), ("transformer", "current")])
def test_greedy_takes_the_most_probable_next_word_again_and_again(attention, query):
    """By hand: read everything written so far again, and append the best next word."""
    model = random_model(attention, query)
    ids, weights = greedy(model, sources(), max_len=6, need_weights=True)
    written = set()
    for i, sentence in enumerate(SENTENCES):
        source, prefix = sources([sentence]), [BOS]
        for _ in range(6):
            logits, by_hand = model(source, torch.tensor([prefix]), need_weights=True)
            prefix.append(int(logits[0, -1].argmax()))
            if prefix[-1] == EOS:
                break
        written.update(prefix)
        n = len(prefix) - 1
        assert ids[i, :n].tolist() == prefix[1:]
        if attention:
            assert_close(weights[i, ..., :n, :source.size(1)], by_hand[0])
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


# --- beam search ---------------------------------------------------------------------------------------------------

@every_model
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_a_beam_of_one_is_greedy(attention, query, cell, alpha):
    different = set()
    for seed in range(8):
        model = random_model(attention, query, cell, seed=seed)
        ids, _ = greedy(model, sources(), max_len=8)
        found = beam_search(model, sources(), beam=1, alpha=alpha, max_len=8)
        assert [[h.ids for h in hypotheses] for hypotheses in found] == [[to_end(row)] for row in ids]
        different.update(tuple(to_end(row)) for row in ids)
    assert len(different) > 10
    assert {len(ids) for ids in different} & set(range(1, 8)), "none of them has ended by itself"


@every_model
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_a_beam_as_wide_as_the_tree_finds_what_brute_force_finds(attention, query, cell, alpha):
    vocab, max_len = Vocab([list("ab")]), 3
    model = random_model(attention, query, cell, vocab)
    source = torch.tensor([[4, 5, 4, EOS]])
    others = [i for i in range(len(vocab)) if i != EOS]
    everything = [[*words, EOS] for n in range(max_len) for words in itertools.product(others, repeat=n)]
    everything += map(list, itertools.product(others, repeat=max_len))
    by_hand = []
    for ids in everything:
        log_prob = float(forced(model, source, ids).sum())
        by_hand.append(Hypothesis(ids, log_prob, log_prob / ((5 + len(ids)) / 6) ** alpha))
    by_hand.sort(key=lambda h: -h.score)
    found = beam_search(model, source, beam=len(everything), alpha=alpha, max_len=max_len)[0]
    assert len(found) == len(everything) == 156
    assert found[0].ids == by_hand[0].ids
    assert sum(math.exp(h.log_prob) for h in found) == pytest.approx(1, abs=1e-4)       # no path twice, none missing
    assert_close([h.score for h in found], [h.score for h in by_hand], atol=1e-4, rtol=0)
    logs = {tuple(h.ids): h.log_prob for h in found}
    assert_close([logs[tuple(h.ids)] for h in by_hand], [h.log_prob for h in by_hand], atol=1e-4, rtol=0)
    if alpha == 0:
        by_greedy = to_end(greedy(model, source, max_len)[0][0])
        assert found[0].log_prob >= float(forced(model, source, by_greedy).sum()) - 1e-4


@every_model
def test_scores_are_the_sums_that_teacher_forcing_gives(attention, query, cell):
    model = random_model(attention, query, cell)
    for sentence, hypotheses in zip(SENTENCES, beam_search(model, sources(), beam=4, max_len=7), strict=True):
        assert len({tuple(h.ids) for h in hypotheses}) == 4
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        for ids, log_prob, score in hypotheses:
            assert EOS not in ids[:-1]
            assert ids[-1] == EOS or len(ids) == 7
            assert log_prob == pytest.approx(float(forced(model, sources([sentence]), ids).sum()), abs=1e-4)
            assert score == pytest.approx(log_prob / ((5 + len(ids)) / 6) ** 0.6)


@every_model
def test_a_padded_batch_is_searched_as_its_sentences_are_one_by_one(attention, query, cell):
    model = random_model(attention, query, cell)
    together = beam_search(model, sources(), beam=3, max_len=7)
    for sentence, hypotheses in zip(SENTENCES, together, strict=True):
        alone = beam_search(model, sources([sentence]), beam=3, max_len=7)[0]
        assert [h.ids for h in hypotheses] == [h.ids for h in alone]
        assert_close([h.log_prob for h in hypotheses], [h.log_prob for h in alone], atol=1e-4, rtol=0)


# "a" is likelier than "b", but what follows is not: greedy gets 0.6 * 0.4, and "b c" has 0.4 * 0.9
LOSES = Table({(): {"a": 0.6, "b": 0.4}, ("a",): {"c": 0.4, "d": 0.3, "e": 0.3}, ("b",): {"c": 0.9, "d": 0.1}})


def test_where_greedy_loses():
    source = sources(["a"])
    assert VOCAB.decode(greedy(LOSES, source)[0][0]) == ["a", "c"]
    found = beam_search(LOSES, source, beam=2, alpha=0)[0]
    assert [(VOCAB.decode(h.ids), round(math.exp(h.log_prob), 6)) for h in found] == [
        (["b", "c"], 0.36), (["a", "c"], 0.24)]


def test_who_has_ended_keeps_its_place():
    """After one word ``<eos>`` takes a place, so only one is left for "a c" and "a d"; and it stays in the result."""
    model = Table({(): {"a": 0.7, "<eos>": 0.3}, ("a",): {"c": 0.6, "d": 0.4}, ("a", "c"): {"d": 0.5, "e": 0.5}})
    found = beam_search(model, sources(["a"]), beam=2, alpha=0)[0]
    assert [VOCAB.decode(h.ids) for h in found] in ([[], ["a", "c", "d"]], [[], ["a", "c", "e"]])
    assert [round(math.exp(h.log_prob), 6) for h in found] == [0.3, 0.21]
    found = beam_search(model, sources(["a"]), beam=3, alpha=0)[0]
    assert sorted(map(VOCAB.decode, (h.ids for h in found))) in ([[], ["a", "c", "d"], ["a", "d"]],
                                                                [[], ["a", "c", "e"], ["a", "d"]])


def test_the_search_stops_when_all_have_ended():
    model = Copier()
    beam_search(model, sources(), beam=1)
    assert model.steps == 8


def test_no_more_hypotheses_than_there_are():
    found = beam_search(LOSES, sources(["a"]), beam=10)[0]
    assert sorted(round(math.exp(h.log_prob), 6) for h in found) == [0.04, 0.18, 0.18, 0.24, 0.36]


def test_the_length_penalty_by_hand():
    """Equation 14 of Wu et al. 2016: ((5 + |Y|) / 6) ** alpha."""
    assert length_penalty(7, 1.0) == 2
    assert length_penalty(13, 0.5) == pytest.approx(math.sqrt(3))
    assert length_penalty(1, 0.6) == length_penalty(50, 0.0) == 1
    with pytest.raises(ValueError, match="alpha is nan; expected a finite number"):
        length_penalty(7, math.nan)


def test_the_length_penalty_lets_a_longer_sentence_win():
    model = Table({(): {"<eos>": 0.4, "a": 0.6}, ("a",): {"b": 0.6, "c": 0.4}, ("a", "b"): {"d": 1}})
    short, long = ([EOS], math.log(0.4)), (VOCAB.encode(list("abd")) + [EOS], math.log(0.36))
    found = beam_search(model, sources(["a"]), beam=2, alpha=0)[0]
    assert [h.ids for h in found] == [short[0], long[0]]
    found = beam_search(model, sources(["a"]), beam=2, alpha=1)[0]
    assert [h.ids for h in found] == [long[0], short[0]]
    assert_close([h.score for h in found], [long[1] / (9 / 6), short[1]])         # four words with the end symbol


@pytest.mark.parametrize("max_len", [1, 3])
def test_what_max_len_cuts_off_has_no_end_symbol(max_len):
    hypotheses = beam_search(Copier(), sources([SENTENCES[0]]), beam=2, max_len=max_len)[0]
    assert VOCAB.decode(hypotheses[0].ids) == SENTENCES[0][:max_len]
    assert all(len(h.ids) == max_len for h in hypotheses)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("decode", [beam_search, sample])
def test_decoders_decode_without_dropout_and_leave_the_mode_as_it_was(decode, training):
    model = Copier().train(training)
    decode(model, sources(), max_len=9)
    assert not any(model.modes)
    assert model.training == training
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(("decode", "settings", "message"), [
    (beam_search, {"beam": 0}, "beam is 0; expected at least 1"), (beam_search, {"max_len": 0}, "max_len is 0"),
    (greedy, {"max_len": 0}, "max_len is 0; expected at least 1"), (sample, {"max_len": 0}, "max_len is 0"),
    (sample, {"temperature": 0}, "temperature=0; expected a number above 0. For the most probable .* greedy"),
    (sample, {"temperature": -1.0}, "temperature=-1.0"), (sample, {"temperature": math.nan}, "temperature=nan"),
    (sample, {"top_k": 0}, "top_k is 0; expected at least 1"), (sample, {"top_p": 0.0}, "top_p=0.0; expected a prob"),
    (sample, {"top_p": 1.5}, "top_p=1.5"), (sample, {"top_p": -0.1}, "top_p=-0.1")])
def test_settings_that_make_no_sense(decode, settings, message):
    model = make_model().train()
    with pytest.raises(ValueError, match=message):
        decode(model, sources(), **settings)
    assert model.training


@pytest.mark.parametrize("decode", [greedy, beam_search, sample])
def test_no_sentence_at_all_is_refused(decode):
    for source in (sources()[:0], sources()[0]):
        with pytest.raises(ValueError, match=r"source has shape .*; expected ids \(B, T_k\) of at least one sentence"):
            decode(make_model(), source)


@pytest.mark.parametrize("decode", [greedy, beam_search, sample])
def test_a_list_is_no_source(decode):
    with pytest.raises(TypeError, match=r"source is a list; expected a tensor of ids \(B, T_k\).* translate"):
        decode(make_model(), sources().tolist())


def test_a_temperature_is_a_number():
    with pytest.raises(TypeError, match="temperature is '1', a str; expected a number"):
        sample(make_model(), sources(), temperature="1")


def test_afterwards_each_part_is_in_the_mode_it_was_in():
    model = nn.Sequential(nn.Dropout(), nn.Dropout())
    model[1].eval()
    with evaluating(model):
        assert not any(part.training for part in model.modules())
    assert [part.training for part in (model, *model)] == [True, True, False]


# --- states --------------------------------------------------------------------------------------------------------

@every_model
def test_reordered_sentences_go_on_as_what_they_are(attention, query, cell):
    """Rows of memory and state, some twice and some not at all, are continued as alone."""
    model, source, index = random_model(attention, query, cell).eval(), sources(), torch.tensor([3, 0, 3])
    memory, state = model.encode(source)
    _, _, state = model.decode(torch.full((len(source), 2), BOS), state, memory)
    word = torch.arange(len(source)).unsqueeze(1)
    logits, _, _ = model.decode(word, state, memory)
    chosen, chosen_state = model.reorder(memory, index), model.reorder(state, index)
    assert type(chosen) is type(memory)
    assert type(chosen_state) is type(state)
    assert_close(model.decode(word[index], chosen_state, chosen)[0], logits[index])


# --- the tree of a beam search -------------------------------------------------------------------------------------

def ids_of(tree, node):
    """Ids from the root to a node."""
    ids = []
    while tree.nodes[node].parent is not None:
        ids.insert(0, VOCAB.ids[tree.nodes[node].word])
        node = tree.nodes[node].parent
    return ids


@every_model
@pytest.mark.parametrize("beam", [1, 3])
def test_the_tree_is_the_search(attention, query, cell, beam):
    for seed in range(3):
        model = random_model(attention, query, cell, seed=seed)
        source = sources([SENTENCES[0]])
        tree = beam_tree(model, source, VOCAB, beam, max_len=6)
        nodes = tree.nodes
        found = beam_search(model, source, beam, max_len=6)[0]
        ends = [node for node in nodes if node.kept and (node.finished or node.step == 6)]
        ends.sort(key=lambda node: -node.score)
        assert [ids_of(tree, node.id) for node in ends] == [h.ids for h in found]
        assert_close([(n.log_prob, n.score) for n in ends], [(h.log_prob, h.score) for h in found])
        assert tree.best == ends[0].id
        assert (nodes[0].word, nodes[0].step, nodes[0].log_prob) == ("<bos>", 0, 0.0)
        assert len({(node.parent, node.word) for node in nodes}) == len(nodes)
        for i, node in enumerate(nodes):
            ids = ids_of(tree, i)
            assert (node.id, node.step, node.finished) == (i, len(ids), ids[-1:] == [EOS])
            if i:
                assert node.parent < i
                assert node.log_prob == pytest.approx(float(forced(model, source, ids).sum()), abs=1e-4)
                assert node.score == pytest.approx(node.log_prob / length_penalty(len(ids), 0.6))
                assert node.kept <= nodes[node.parent].kept


@pytest.mark.parametrize("seed", range(6))
def test_the_tree_shows_what_just_missed_the_beam(seed):
    model, source, free = random_model(seed=seed), sources([SENTENCES[0]])[0], 3
    nodes = beam_tree(model, source, VOCAB, beam=3, max_len=5, pruned=2).nodes
    for step in range(1, 6):
        column = [node for node in nodes if node.step == step]
        kept = [node.log_prob for node in column if node.kept]
        pruned = [node.log_prob for node in column if not node.kept and not node.greedy]
        assert len(kept) == free
        assert len(pruned) <= 2
        assert max(pruned, default=-math.inf) <= min(kept, default=math.inf)
        free -= sum(node.finished for node in column if node.kept)
    bare = beam_tree(model, source, VOCAB, beam=3, max_len=5, pruned=0).nodes
    assert all(node.kept or node.greedy for node in bare)
    assert len([node for node in bare if node.kept]) == len([node for node in nodes if node.kept])
    assert len(bare) < len(nodes)


def test_no_more_is_pruned_than_asked_where_the_beam_has_few_places_left():
    model = Table({(): {"a": 0.7, "<eos>": 0.3}, ("a",): {"b": 0.4, "c": 0.3, "d": 0.2, "e": 0.1}})
    nodes = beam_tree(model, sources(["a"]), VOCAB, beam=2, pruned=1).nodes
    assert [(node.word, node.kept) for node in nodes] == [
        ("<bos>", True), ("a", True), ("<eos>", True), ("b", True), ("c", False), ("<eos>", True)]
    with pytest.raises(ValueError, match="pruned is -1; expected at least 0"):
        beam_tree(model, sources(["a"]), VOCAB, pruned=-1)


# the beam keeps "b c" and "b d" with 0.175 each; greedy decoding goes on from "a a" with 0.136
GIVES_UP = Table({(): {"a": 0.4, "b": 0.35, "c": 0.25}, ("a",): {"a": 0.34, "b": 0.33, "c": 0.33},
                  ("b",): {"c": 0.5, "d": 0.5}, ("a", "a"): {"b": 0.9, "c": 0.1}})


def test_the_greedy_path_is_in_the_tree_even_where_the_beam_gives_it_up():
    tree = beam_tree(GIVES_UP, sources(["a"]), VOCAB, beam=2, alpha=0, pruned=0)
    path = [node for node in tree.nodes if node.greedy]
    assert [(node.word, round(math.exp(node.log_prob), 4), node.kept) for node in path] == [
        ("<bos>", 1, True), ("a", 0.4, True), ("a", 0.136, False), ("b", 0.1224, False), ("<eos>", 0.1224, False)]
    assert [a.id for a in path[:-1]] == [b.parent for b in path[1:]]
    assert VOCAB.decode(ids_of(tree, tree.best)) in (["b", "c"], ["b", "d"])
    with_pruned = beam_tree(GIVES_UP, sources(["a"]), VOCAB, beam=2, alpha=0, pruned=1)
    again = [node.word for node in with_pruned.nodes if node.greedy]
    assert again == ["<bos>", "a", "a", "b", "<eos>"]                  # the pruned node is used, not made again
    assert len({(n.parent, n.word) for n in with_pruned.nodes}) == len(with_pruned.nodes)


def test_samples_are_paths_of_the_tree():
    source = sources(["a"])
    tree = beam_tree(LOSES, source, VOCAB, beam=1, pruned=0, samples=[
        torch.tensor([*VOCAB.encode(["b", "d"]), EOS, PAD, PAD]),
        [*VOCAB.encode(["b", "c"]), EOS], [*VOCAB.encode(["a", "c"]), EOS]])
    sampled = {tuple(VOCAB.words[k] for k in ids_of(tree, i)): (
        node.sampled, round(math.exp(node.log_prob), 6), node.kept) for i, node in enumerate(tree.nodes)}
    assert {words: facts for words, facts in sampled.items() if words[-1:] != ("<eos>",)} == {
        (): (3, 1, True), ("a",): (1, 0.6, True), ("a", "c"): (1, 0.24, True),
        ("b",): (2, 0.4, False), ("b", "c"): (1, 0.36, False), ("b", "d"): (1, 0.04, False)}
    assert [node.sampled for node in tree.nodes if node.finished] == [1, 1, 1]
    assert VOCAB.decode(ids_of(tree, tree.best)) == ["a", "c"]          # samples do not change the search


def test_a_tree_carries_how_its_samples_were_drawn():
    settings = {"temperature": 0.8, "top_k": 5}
    drawn = sample(LOSES, sources(["a"]), **settings, generator=torch.Generator().manual_seed(0))
    tree = beam_tree(LOSES, sources(["a"]), VOCAB, beam=1, samples=drawn, sampling=settings)
    assert tree.sampling == settings is not tree.sampling
    assert beam_tree(LOSES, sources(["a"]), VOCAB, beam=1, samples=drawn).sampling is None


@pytest.mark.parametrize("shape", [(2, 5), (1, 1, 5)])
def test_a_tree_is_of_one_sentence(shape):
    with pytest.raises(ValueError, match="draws one sentence.*Of a batch, give one row"):
        beam_tree(make_model(), torch.full(shape, 4), VOCAB)
    for settings, message in [({"beam": 0}, "beam is 0"), ({"max_len": 0}, "max_len is 0")]:
        with pytest.raises(ValueError, match=message):
            beam_tree(make_model(), sources(["a"]), VOCAB, **settings)


@pytest.mark.parametrize("words", ["abc", "abcdefg"])
def test_what_is_written_is_of_the_targets_vocabulary(words):
    other = Vocab([list(words)])
    with pytest.raises(ValueError, match=f"writes 9 words, vocab has {len(other)}; expected the target's vocabulary"):
        beam_tree(make_model(), sources(["a"]), other)
    for beam in (1, 2):
        with pytest.raises(ValueError, match=f"writes 9 words, vocab has {len(other)}; expected the target's"):
            translate(make_model(), [["a"]], VOCAB, other, beam=beam)


# --- sampling ------------------------------------------------------------------------------------------------------

def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@every_model
@pytest.mark.parametrize("settings", [{"temperature": 1e-6}, {"temperature": 1e-40}, {"temperature": 1e-46},
                                      {"top_k": 1}, {"top_p": 1e-6}])
def test_sampling_only_the_likeliest_word_is_greedy(attention, query, cell, settings):
    model = random_model(attention, query, cell)
    expected, _ = greedy(model, sources(), max_len=7)
    drawn = sample(model, sources(), **settings, generator=seeded(), max_len=7)
    assert list(map(to_end, drawn)) == list(map(to_end, expected))


def test_the_same_generator_draws_the_same():
    model = random_model()
    draws = [sample(model, sources(), generator=seeded(seed), max_len=7) for seed in (3, 3, 4)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    torch.manual_seed(5)
    before = torch.get_rng_state()
    sample(model, sources(), generator=seeded())
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_words_are_drawn_as_often_as_softmax_says(temperature):
    """Pearson's chi-square for the first word, and for the second where the first is "a"."""
    drawn = sample(LOSES, sources(["a"]).expand(3000, -1), temperature, generator=seeded(), max_len=2)
    after_a = drawn[drawn[:, 0] == VOCAB.ids["a"], 1]
    assert len(after_a) > 1000
    for words, prefix in [(drawn[:, 0], ()), (after_a, ("a",))]:
        table = LOSES.table[prefix]
        shares = torch.tensor(list(table.values())) ** (1 / temperature)     # softmax of log p / temperature
        expected = shares / shares.sum() * len(words)
        counts = torch.bincount(words, minlength=len(VOCAB))[VOCAB.encode(list(table))]
        assert counts.sum() == len(words)
        chi_square = float(((counts - expected) ** 2 / expected).sum())
        assert chi_square < 13.8, "with two degrees of freedom, 13.8 or more comes once in a thousand times"


PROBABILITIES = torch.tensor([[0.1, 0.4, 0.2, 0.3], [0.97, 0.01, 0.01, 0.01]])


@pytest.mark.parametrize(("settings", "kept"), [
    ({}, [{0, 1, 2, 3}, {0, 1, 2, 3}]), ({"top_k": 2}, [{1, 3}, None]), ({"top_k": 9}, [{0, 1, 2, 3}] * 2),
    ({"top_p": 0.4}, [{1}, {0}]), ({"top_p": 0.41}, [{1, 3}, {0}]), ({"top_p": 0.75}, [{1, 2, 3}, {0}]),
    ({"top_p": 0.95}, [{0, 1, 2, 3}, {0}]), ({"top_p": 1.0}, [{0, 1, 2, 3}] * 2),
    ({"top_k": 3, "top_p": 0.77}, [{1, 3}, {0}])])                  # of 0.9: 0.4 and 0.3 are 0.78
def test_truncate_keeps_the_likely_words_and_their_proportions(settings, kept):
    rest = truncate(PROBABILITIES, **settings)
    assert_close(rest.sum(dim=-1), torch.ones(2))
    for before, after, expected in zip(PROBABILITIES, rest, kept, strict=True):
        chosen = after.nonzero().flatten()
        if expected is None:                                                # of equals, one stays
            assert len(chosen) == 2
        else:
            assert set(chosen.tolist()) == expected
        assert_close(after[chosen], before[chosen] / before[chosen].sum())


def test_top_p_keeps_the_smallest_set_that_reaches_it():
    for seed in range(20):
        probabilities = torch.randn(50, generator=seeded(seed)).mul(2).softmax(dim=-1)
        for top_p in (0.1, 0.5, 0.9, 0.99):
            stayed = probabilities[truncate(probabilities, top_p=top_p) > 0]
            assert stayed.sum() >= top_p - 1e-6
            assert stayed.sum() - stayed.min() < top_p
            assert stayed.min() >= probabilities.sort(descending=True).values[len(stayed) - 1]


def test_only_what_truncation_leaves_is_drawn():
    model = random_model()
    source = sources([SENTENCES[0]]).expand(500, -1)
    with torch.no_grad():
        logits, _ = model(source[:1], torch.tensor([[BOS]]))
    three = set(logits[0, -1].topk(3).indices.tolist())
    assert set(sample(model, source, 5.0, top_k=3, generator=seeded(), max_len=1).flatten().tolist()) == three
    assert set(sample(model, source, 5.0, generator=seeded(), max_len=1).flatten().tolist()) > three


def test_sampling_stops_when_the_last_sentence_has_ended():
    model = Copier()
    ids = sample(model, sources(), temperature=0.01)
    assert model.steps == 8
    assert [VOCAB.decode(row) for row in ids] == SENTENCES
    assert sample(Copier(), sources(), temperature=0.01, max_len=3).shape == (len(SENTENCES), 3)


# --- translate -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("times", [1, 40])                                  # one batch, and three
def test_translations_come_in_the_order_of_the_sentences(times):
    assert translate(Copier(), times * SENTENCES, VOCAB, VOCAB) == times * SENTENCES


def test_translations_are_written_in_the_words_of_the_target():
    capitals = Vocab([list("ABCDE")])
    assert translate(Copier(), SENTENCES, VOCAB, capitals) == [[w.upper() for w in s] for s in SENTENCES]


def test_translations_are_no_longer_than_asked_and_unknown_words_are_read():
    assert translate(Copier(), [list("abcde"), ["z", "a"]], VOCAB, VOCAB, max_len=3) == [list("abc"), ["<unk>", "a"]]


def test_no_sentences_have_no_translations():
    assert translate(Copier(), [], VOCAB, VOCAB) == []


def test_weights_that_nobody_needs_are_not_made(monkeypatch):
    model, kept = random_model("transformer"), []
    ids, weights = greedy(model, sources(), max_len=6, need_weights=True)
    again, nothing = greedy(model, sources(), max_len=6)
    assert torch.equal(again, ids)
    assert weights is not None
    assert nothing is None
    monkeypatch.setattr("course_utils.decoding.greedy",
                        lambda *args, **kwargs: kept.append(greedy(*args, **kwargs)) or kept[-1])
    translate(model, SENTENCES, VOCAB, VOCAB)
    assert [weights for _, weights in kept] == [None]
    _, unasked = greedy(random_model("additive"), sources(), max_len=6)     # its words are computed from them
    assert unasked is not None


def test_translations_by_beam_search_are_its_best_hypotheses():
    model = random_model("general", "current")
    best = [VOCAB.decode(found[0].ids) for found in beam_search(model, sources(), beam=4, alpha=1.0, max_len=9)]
    assert translate(model, SENTENCES, VOCAB, VOCAB, max_len=9, beam=4, alpha=1.0) == best
    assert translate(model, SENTENCES, VOCAB, VOCAB, max_len=9) != best
    with pytest.raises(ValueError, match="beam is 0; expected at least 1"):
        translate(model, SENTENCES, VOCAB, VOCAB, beam=0)


def test_a_sentence_in_one_string_is_refused():
    with pytest.raises(TypeError, match=r"expected a list of words, e\.g\. sentence\.split\(\)"):
        translate(make_model(), ["a b"], VOCAB, VOCAB)


def records(model, source):
    """`attention_records` of sentences with a source."""
    pairs = [(VOCAB.decode(row), ["a"]) for row in source.tolist()]
    return attention_records(model, pairs, VOCAB, VOCAB)


@pytest.mark.parametrize("decode", [greedy, sample, beam_search, partial(beam_tree, vocab=VOCAB), records])
def test_logits_that_are_no_numbers_are_named(decode):
    """Not an empty sentence, not an error far away, and no weights of NaN."""
    model = make_model("additive")
    torch.nn.init.constant_(model.output.bias, math.nan)
    with pytest.raises(FloatingPointError, match="logits are NaN. Was its training stopped"):
        decode(model, sources(["a"]))


# --- attention matrices --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("times", [1, 25])                                  # one batch, and two
@pytest.mark.parametrize("query", ["previous", "current"])
def test_matrices_are_the_weights_while_the_reference_is_written(query, times):
    """One row for each target word, one column for each source word and one for the end symbol."""
    model = make_model("general", query)
    records = attention_records(model, times * PAIRS, VOCAB, VOCAB)
    for (source, target), (matrix, *words) in zip(times * PAIRS, records, strict=True):
        assert words == [target, [*source, "<eos>"], (), len(source)]
        assert matrix.shape == (len(target), len(source) + 1)
        assert_close(matrix.sum(-1), torch.ones(len(target)))
        _, alone = model(torch.tensor([[*VOCAB.encode(source), EOS]]), torch.tensor([[BOS, *VOCAB.encode(target)]]))
        assert_close(matrix, alone[0, :len(target)])
        assert not matrix.requires_grad


@pytest.mark.parametrize("pair", [PAIRS[0], (*PAIRS[0], ()), (["a"], ["b"])])
def test_one_pair_instead_of_a_list_is_refused(pair):
    with pytest.raises(TypeError, match=r"pair 0 is .*; expected two lists of words.* For one pair: \[pair\]"):
        attention_records(make_model(), pair, VOCAB, VOCAB)


@pytest.mark.parametrize("attention", ["general", "transformer"])
def test_a_record_keeps_no_memory_but_its_own(attention):
    """A slice would keep the weights of the whole batch alive."""
    for record in attention_records(random_model(attention, "current"), PAIRS, VOCAB, VOCAB):
        weights = record.weights
        assert weights.untyped_storage().nbytes() == weights.numel() * weights.element_size()


@pytest.mark.parametrize("training", [True, False])
def test_matrices_are_read_without_dropout_and_leave_the_mode_as_it_was(training):
    model = make_model(dropout=0.5).train(training)
    first, second = (attention_records(model, PAIRS, VOCAB, VOCAB) for _ in range(2))
    assert all(torch.equal(a.weights, b.weights) for a, b in zip(first, second, strict=True))
    assert model.training == training


def test_a_model_without_attention_has_no_matrices():
    with pytest.raises(ValueError, match="no attention, so there are no weights to read"):
        attention_records(make_model(None), PAIRS, VOCAB, VOCAB)


def test_sentences_of_similar_length_stand_together():
    batches = list(batches_by_length(SENTENCES, 3))
    assert sorted(i for batch in batches for i in batch) == list(range(len(SENTENCES)))
    assert [[len(SENTENCES[i]) for i in batch] for batch in batches] == [[0, 1, 2], [2, 3, 5], [7]]


@pytest.mark.parametrize("training", [True, False])
def test_an_interrupted_evaluation_leaves_the_mode_as_it_was(training):
    model = nn.Dropout().train(training)

    def interrupt():
        with evaluating(model):
            assert not model.training
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert model.training == training
    assert torch.is_grad_enabled()


def test_the_sources_here_are_padded():
    """Else the tests above would say nothing about mixed lengths."""
    assert (sources() == PAD).any()
