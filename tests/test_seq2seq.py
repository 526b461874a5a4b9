"""Recurrent encoder-decoders: every combination keeps the promises that the notebooks build on."""

import re
from itertools import product

import pytest
import torch
from torch.testing import assert_close

from course_utils.attention import SCORES
from course_utils.data.text import BOS, EOS, PAD
from course_utils.seq2seq import Seq2Seq

SOURCE_SIZE, TARGET_SIZE, D_EMBED, D_MODEL = 11, 13, 6, 8
B, T_K, T_Q = 3, 5, 4

DECODERS = [(None, "previous"), *product(SCORES, ("previous", "current"))]
ALL = [(*decoder, cell, bidirectional)
       for decoder in DECODERS for cell in ("gru", "lstm") for bidirectional in (True, False)]
every_model = pytest.mark.parametrize(
    "config", ALL, ids=[f"{a}-{q}-{c}-{'bi' if bi else 'uni'}" for a, q, c, bi in ALL])
every_attention = pytest.mark.parametrize("config", [(a, q, "gru", True) for a, q in DECODERS if a],
                                          ids=[f"{a}-{q}" for a, q in DECODERS if a])


def make_model(config, dropout=0.0, seed=0):
    """A small model in double precision, so that equal means equal."""
    attention, query, cell, bidirectional = config
    torch.manual_seed(seed)
    return Seq2Seq(SOURCE_SIZE, TARGET_SIZE, D_EMBED, D_MODEL, attention, query, cell, bidirectional, dropout).double()


def make_inputs(lengths=(T_K,) * B, seed=1):
    """Sources of the given lengths (end symbol and padding included in T_k) and targets of T_q words."""
    generator = torch.Generator().manual_seed(seed)
    source = torch.randint(4, SOURCE_SIZE, (len(lengths), max(lengths)), generator=generator)
    for row, length in zip(source, lengths, strict=True):
        row[length - 1], row[length:] = EOS, PAD
    target = torch.randint(4, TARGET_SIZE, (len(lengths), T_Q), generator=generator)
    target[:, 0] = BOS
    return source, target


def with_word(ids, column):
    """The same ids with another word in one column."""
    changed = ids.clone()
    changed[:, column] = torch.where(ids[:, column] == 4, 5, 4)
    return changed


def differs(a, b):
    """Whether two tensors differ by more than rounding."""
    return not torch.allclose(a, b, rtol=0, atol=1e-9)


# --- every model ---------------------------------------------------------------------------------------------------

@every_model
def test_shapes(config):
    model, (source, target) = make_model(config), make_inputs()
    logits, weights = model(source, target)
    assert logits.shape == (B, T_Q, TARGET_SIZE)
    if config[0] is None:
        assert weights is None
    else:
        assert weights.shape == (B, T_Q, T_K)
    memory, _ = model.encode(source)
    assert memory.states.shape == (B, T_K, D_MODEL)
    assert memory.keys.shape[:2] == (B, T_K)
    assert memory.summary.shape == (B, D_MODEL)
    assert memory.src_mask.shape == (B, 1, T_K)
    assert memory.src_mask.dtype == torch.bool


@every_model
def test_padding_changes_nothing(config):
    model, (source, target) = make_model(config), make_inputs()
    padded = torch.nn.functional.pad(source, (0, 3), value=PAD)
    (logits, weights), (new_logits, new_weights) = model(source, target), model(padded, target)
    assert_close(new_logits, logits)
    if weights is not None:
        assert_close(new_weights[..., :T_K], weights)


@every_model
def test_a_batch_of_two_lengths_equals_each_alone(config):
    """The shorter sentence stands first: nothing depends on sorted lengths."""
    model, (source, target) = make_model(config), make_inputs(lengths=(3, 6, 4))
    logits, weights = model(source, target)
    for i, length in enumerate((3, 6, 4)):
        alone, weights_alone = model(source[i:i + 1, :length], target[i:i + 1])
        assert_close(logits[i:i + 1], alone)
        if weights is not None:
            assert_close(weights[i:i + 1, :, :length], weights_alone)


@every_model
def test_step_by_step_equals_teacher_forcing(config):
    model, (source, target) = make_model(config), make_inputs(lengths=(3, 5, 4))
    logits, weights = model(source, target)
    memory, state = model.encode(source)
    steps = []
    for t in range(T_Q):
        *step, state = model.decode(target[:, t:t + 1], state, memory)
        steps.append(step)
    assert_close(torch.cat([step[0] for step in steps], dim=1), logits)
    if weights is not None:
        assert_close(torch.cat([step[1] for step in steps], dim=1), weights)


@every_model
def test_no_word_sees_a_later_one(config):
    model, (source, target) = make_model(config), make_inputs()
    logits, _ = model(source, target)
    for t in range(T_Q):
        changed, _ = model(source, with_word(target, t))
        assert_close(changed[:, :t], logits[:, :t])
        for later in range(t, T_Q):                # the word itself and all that follow do notice
            assert differs(changed[:, later], logits[:, later])


@every_model
def test_every_parameter_gets_a_gradient(config):
    """One step is enough; a parameter without a gradient would also stop training in several processes."""
    model, (source, target) = make_model(config), make_inputs()
    model(source, target[:, :1])[0].square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


@every_model
def test_the_decoder_learns_through_its_first_state(config):
    model, (source, _) = make_model(config), make_inputs()
    memory, state = model.encode(source)
    first = state[0] if config[2] == "lstm" else state
    gradient, = torch.autograd.grad(first.sum(), memory.summary)
    assert gradient.any()


def test_an_lstms_first_state_is_the_summarys_and_its_first_cell_is_zero():
    model, (source, _) = make_model(("additive", "previous", "lstm", True)), make_inputs()
    memory, (state, cell) = model.encode(source)
    assert_close(state, model.bridge(memory.summary).tanh())
    assert torch.equal(cell, torch.zeros_like(state))


@every_model
def test_the_seed_decides_the_model(config):
    source, target = make_inputs()
    logits, _ = make_model(config, seed=3)(source, target)
    assert torch.equal(make_model(config, seed=3)(source, target)[0], logits)
    assert differs(make_model(config, seed=4)(source, target)[0], logits)


# --- attention -----------------------------------------------------------------------------------------------------

@every_attention
def test_weights_are_a_distribution_over_the_words(config):
    lengths = (3, 6, 4)
    model, (source, target) = make_model(config), make_inputs(lengths=lengths)
    _, weights = model(source, target)
    assert_close(weights.sum(-1), torch.ones(len(lengths), T_Q, dtype=torch.float64))
    for row, length in zip(weights, lengths, strict=True):
        assert (row[:, :length] > 0).all()
        assert not row[:, length:].any()


@every_attention
def test_the_query_is_the_state_that_was_asked_for(config):
    """Weights of step t depend on the word put in at step t only where the query is the *current* state."""
    model, (source, target) = make_model(config), make_inputs()
    _, weights = model(source, target)
    _, changed = model(source, with_word(target, 1))
    assert_close(changed[:, 0], weights[:, 0])
    assert differs(changed[:, 1], weights[:, 1]) == (config[1] == "current")
    assert differs(changed[:, 2], weights[:, 2])


@every_attention
def test_keys_decide_the_weights_except_with_location(config):
    model, (source, target) = make_model(config), make_inputs()
    memory, state = model.encode(source)
    _, weights, _ = model.decode(target[:, :1], state, memory)
    _, changed, _ = model.decode(target[:, :1], state, memory._replace(keys=memory.keys.flip(1)))
    assert differs(changed, weights) == (config[0] != "location")


@every_attention
def test_values_decide_the_output_not_the_weights(config):
    model, (source, target) = make_model(config), make_inputs()
    memory, state = model.encode(source)
    logits, weights, _ = model.decode(target[:, :1], state, memory)
    other = memory._replace(states=memory.states + 1, summary=memory.summary + 1)
    new_logits, new_weights, _ = model.decode(target[:, :1], state, other)
    assert torch.equal(new_weights, weights)
    assert differs(new_logits, logits)


@every_attention
def test_the_encoder_learns_through_keys_and_values(config):
    model, (source, target) = make_model(config), make_inputs()
    memory, state = model.encode(source)
    keys, states = memory.keys.detach().requires_grad_(), memory.states.detach().requires_grad_()
    logits, _, _ = model.decode(target[:, :1], state, memory._replace(keys=keys, states=states))
    to_keys, to_states = torch.autograd.grad(logits.square().sum(), [keys, states], allow_unused=True)
    assert to_states.any()
    assert (to_keys is not None) == (config[0] != "location")
    assert to_keys is None or to_keys.any()


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_without_attention_the_summary_is_all_there_is_and_is_read_at_every_step(cell):
    model, (source, target) = make_model((None, "previous", cell, True)), make_inputs()
    memory, state = model.encode(source)
    logits, _, state_1 = model.decode(target[:, :2], state, memory)
    blind, _, _ = model.decode(target[:, :2], state, memory._replace(states=memory.states * 0, keys=memory.keys * 0))
    assert torch.equal(blind, logits)
    step, _, _ = model.decode(target[:, 2:3], state_1, memory)
    other, _, _ = model.decode(target[:, 2:3], state_1, memory._replace(summary=memory.summary + 1))
    assert differs(other, step)


def test_one_step_by_its_formulas():
    """Bahdanau et al. 2015, appendix A.2.2: s_0 = tanh(W h), look with s_0, step. Luong et al. 2015, eq. 5: step, look
    with the new state h, tanh(W [h; c])."""
    source, target = make_inputs(lengths=(T_K,))
    for query in ("previous", "current"):
        model = make_model(("dot", query, "gru", True))
        with torch.no_grad():
            for parameter in model.parameters():                           # far from zero, where tanh is no line
                parameter.mul_(3)
        states = model.encoder(source)[0][0]                                                            # (T_k, d)
        word = model.embed(target[0, 0])
        s_0 = torch.tanh(model.bridge(torch.cat([states[-1, :D_MODEL // 2], states[0, D_MODEL // 2:]])))
        if query == "previous":
            weights = (states @ s_0).softmax(0)
            s_1 = model.decoder.cell(torch.cat([word, weights @ states])[None], s_0[None])[0]
            output = torch.tanh(model.decoder.combine(torch.cat([s_1, weights @ states, word])))
        else:
            s_1 = model.decoder.rnn(word[None], s_0[None])[0][0]
            weights = (states @ s_1).softmax(0)
            output = torch.tanh(model.decoder.combine(torch.cat([s_1, weights @ states])))
        logits, by_model = model(source, target[:, :1])
        assert_close(by_model[0, 0], weights)
        assert_close(logits[0, 0], model.output(output))


# --- encoder -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_first_state_knows_the_last_word_only_if_both_directions_are_read(cell, bidirectional):
    model, (source, _) = make_model((None, "previous", cell, bidirectional)), make_inputs()
    states = model.encode(source)[0].states
    last_changed = model.encode(with_word(source, 3))[0].states
    assert differs(last_changed[:, 0], states[:, 0]) == bidirectional
    assert differs(model.encode(with_word(source, 0))[0].states[:, -1], states[:, -1])


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_summary_is_where_each_direction_ended(cell, bidirectional):
    """Forwards it ends at the last word (not at the padding), backwards at the first one."""
    lengths = (3, 5, 4)
    model, (source, _) = make_model((None, "previous", cell, bidirectional)), make_inputs(lengths)
    memory, _ = model.encode(source)
    for i, length in enumerate(lengths):
        end = memory.states[i, length - 1]
        if bidirectional:
            end = torch.cat([end[:D_MODEL // 2], memory.states[i, 0, D_MODEL // 2:]])
        assert_close(memory.summary[i], end)
    assert memory.src_mask[:, 0].sum(-1).tolist() == list(lengths)


@pytest.mark.parametrize("query", ["previous", "current"])
def test_location_reads_longer_sources_once_its_score_is_replaced_as_the_error_says(query):
    model, (source, target) = make_model(("location", query, "gru", True)), make_inputs(lengths=(70, 3))
    with pytest.raises(ValueError, match="70 keys, but this score has 64 positions") as error:
        model(source, target)
    advice = re.search(r"before training: (model\.decoder\.score = .*)\.$", str(error.value))[1]
    exec(advice, {"model": model, "LocationScore": SCORES["location"], "d_model": D_MODEL})
    model.double()
    assert model(source, target)[1].shape == (2, T_Q, 70)


# --- the rest ------------------------------------------------------------------------------------------------------

def test_dropout_is_random_in_training_only():
    model, (source, target) = make_model(("dot", "current", "gru", True), dropout=0.5), make_inputs()
    assert differs(model(source, target)[0], model(source, target)[0])
    model.eval()
    assert torch.equal(model(source, target)[0], model(source, target)[0])


@pytest.mark.parametrize("config", [(None, "previous", "gru", True), ("dot", "current", "lstm", True)])
def test_dropout_is_on_both_word_vectors_and_before_the_softmax_layer(config):
    """If everything is dropped, neither side's words are read, and of the last layer only the bias is left."""
    model, (source, target) = make_model(config, dropout=1.0), make_inputs()
    memory, state = model.encode(source)
    assert torch.equal(model.encode(with_word(source, 0))[0].states, memory.states)
    logits, _, last = model.decode(target, state, memory)
    assert_close(model.decode(with_word(target, 1), state, memory)[2], last)
    assert_close(logits, model.output.bias.expand_as(logits))


@pytest.mark.parametrize(("argument", "known"), [
    ("attention", ["None", *map(repr, SCORES)]), ("query", ["'previous'", "'current'"]), ("cell", ["'gru'", "'lstm'"])])
def test_an_unknown_name_is_answered_with_the_known_ones(argument, known):
    with pytest.raises(ValueError, match=f"{argument}='bahdanau' is not known; choose one of") as error:
        Seq2Seq(SOURCE_SIZE, TARGET_SIZE, **{argument: "bahdanau"})
    for name in known:
        assert name in str(error.value)


def test_an_odd_width_cannot_be_shared_between_two_directions():
    with pytest.raises(ValueError, match="d_model=7 cannot be shared between two directions; take an even number"):
        Seq2Seq(SOURCE_SIZE, TARGET_SIZE, D_EMBED, 7)
    source, target = make_inputs()
    model = Seq2Seq(SOURCE_SIZE, TARGET_SIZE, D_EMBED, 7, attention="dot", bidirectional=False)
    assert model(source, target)[0].shape == (B, T_Q, TARGET_SIZE)
