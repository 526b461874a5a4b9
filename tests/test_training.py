"""One training loop: what it learns, what it records and how it stops."""

import inspect
import math
from functools import partial

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState, PartialState
from torch import nn
from torch.utils.data import DataLoader

from course_utils import plotting, training
from course_utils.data.text import BOS, EOS, PAD, Batch, token_batches
from course_utils.seq2seq import Seq2Seq
from course_utils.training import fit, inverse_sqrt, sequence_loss, trapezoid

VOCAB = 8
POINTS = torch.randn(4, 10, 3, generator=torch.Generator().manual_seed(0))    # four batches of ten points
SLOPE = torch.tensor([1.0, -2.0, 0.5])


@pytest.fixture(autouse=True)
def one_thread_as_in_a_notebook():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def reversed_sentences(n=40, seed=0):
    """Encoded pairs of 2 to 4 words; the target is the source read backwards."""
    generator = torch.Generator().manual_seed(seed)
    words = [torch.randint(4, VOCAB, (2 + i % 3,), generator=generator).tolist() for i in range(n)]
    return [(torch.tensor([*w, EOS]), torch.tensor([BOS, *w[::-1], EOS])) for w in words]


def make_line(seed=0):
    torch.manual_seed(seed)
    return nn.Linear(3, 1, bias=False)


def line_loss(model, points):
    return (model(points).squeeze(-1) - points @ SLOPE).square().mean(), len(points)


def moved(model, seed=0):
    """How far each weight of a line is from where it started."""
    return (model.weight - make_line(seed).weight).detach().abs()


def test_defaults_of_fit_are_what_the_notebooks_trained_with():
    """Another learning rate, or gradients cut shorter, would still learn in the tests below, and other numbers."""
    defaults = {name: one.default for name, one in inspect.signature(fit).parameters.items()
                if one.default is not one.empty}
    assert defaults == {"lr": 2e-3, "loss": sequence_loss, "schedule": trapezoid, "label": "training", "live": True,
                        "unit": "token"}
    assert training.CLIP == 1.0
    assert [one.default for one in inspect.signature(trapezoid).parameters.values()][2:] == [50, 0.5]
    assert inspect.signature(inverse_sqrt).parameters["warmup"].default == 50


# --- learning ------------------------------------------------------------------------------------------------------

def test_it_learns_to_read_backwards():
    torch.manual_seed(0)
    model = Seq2Seq(VOCAB, VOCAB, 16, 32, attention="dot")
    history = fit(model, token_batches(reversed_sentences(), 120), steps=100, lr=1e-2)
    assert len(history.loss) == len(history.grad_norm) == 100
    assert history.loss[0] == pytest.approx(torch.tensor(VOCAB).log().item(), rel=0.1)
    assert sum(history.loss[-10:]) / 10 < 0.3 * history.loss[0]
    assert not history.interrupted
    assert history.seconds > 0


def test_the_same_seed_gives_the_same_history():
    def run(seed):
        torch.manual_seed(seed)
        model = Seq2Seq(VOCAB, VOCAB, 8, 8, attention="additive", dropout=0.2)
        history = fit(model, token_batches(reversed_sentences(), 60, seed=seed), steps=12)
        return history.loss, history.grad_norm, history.tokens

    assert run(1) == run(1)
    assert run(1)[0] != run(2)[0]


@pytest.mark.parametrize("steps", [3, 4, 10])
def test_the_budget_is_in_steps_however_many_batches_there_are(steps):
    """Of four batches: fewer than all, all, and round and round."""
    seen = []

    def loss(model, points):
        seen.append(points[0, 0].item())
        return line_loss(model, points)

    assert len(fit(make_line(), POINTS, steps=steps, loss=loss).loss) == steps
    assert seen == [POINTS[i % 4, 0, 0].item() for i in range(steps)]


def test_training_goes_on_with_another_order_in_every_epoch():
    """A loader of batches of tokens is started again, not replayed."""
    epochs, examples = [[], []], reversed_sentences(30)
    n_batches = len(list(token_batches(examples, 30)))

    def loss(model, batch):
        epochs[sum(map(len, epochs)) // n_batches].append(batch.source.tolist())
        return sequence_loss(model, batch)

    fit(Seq2Seq(VOCAB, VOCAB, 4, 4), token_batches(examples, 30), steps=2 * n_batches, loss=loss)
    first, second = epochs
    assert first != second
    assert sum(map(len, first)) == sum(map(len, second)) == 30


@pytest.mark.parametrize("training", [True, False])
def test_dropout_is_on_while_training_and_off_afterwards(training):
    modes = []

    def loss(model, points):
        modes.append(model.training)
        return line_loss(model, points)

    model = make_line().train(training)
    fit(model, POINTS, steps=2, loss=loss)
    assert modes == [True, True]
    assert not model.training
    assert all(weight.grad is None for weight in model.parameters())


def test_batches_of_any_kind_go_to_the_accelerators_device(monkeypatch):
    """`accelerate` moves what a DataLoader gives, not what a list holds."""
    sent = []
    monkeypatch.setattr(training, "send_to_device", lambda batch, device: sent.append((batch, device)) or batch)
    batches = [POINTS[0], POINTS[1]]
    fit(make_line(), batches, steps=2, loss=line_loss)
    assert [(batch is given, device.type) for (batch, device), given in zip(sent, batches, strict=True)] == [
        (True, "cpu")] * 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("kind", [lambda points: DataLoader(points, batch_size=None), list])
def test_a_model_comes_back_from_the_accelerator(kind, monkeypatch):
    monkeypatch.delenv("ACCELERATE_USE_CPU", raising=False)     # `setup` sets it
    PartialState._reset_state()
    AcceleratorState._reset_state()
    devices = []

    def loss(model, points):
        devices.append(points.device.type)
        return line_loss(model, points)

    model = make_line()
    fit(model, kind(POINTS), steps=2, loss=loss)
    assert devices == ["cuda", "cuda"]
    assert model.weight.device.type == "cpu"


def test_batches_that_processes_cannot_share_are_refused(monkeypatch):
    monkeypatch.setattr(training.Accelerator, "num_processes", 2)
    with pytest.raises(ValueError, match="2 processes would all train on the same batches: .* batches is a Tensor"):
        fit(make_line(), POINTS, steps=2, loss=line_loss)


# --- learning rate and clipping ------------------------------------------------------------------------------------

def test_trapezoid_starts_low_holds_and_comes_down():
    assert trapezoid(0, 1000) == pytest.approx(1 / 50)
    assert trapezoid(24, 1000) == pytest.approx(0.5)
    assert [trapezoid(step, 1000) for step in (49, 50, 499, 500)] == [1, 1, 1, 1]
    assert trapezoid(750, 1000) == pytest.approx(0.5)
    assert trapezoid(999, 1000) == pytest.approx(1 / 500)
    assert trapezoid(2, 1000, warmup=4, decay=0.1) == 0.75
    assert trapezoid(950, 1000, warmup=4, decay=0.1) == 0.5


@pytest.mark.parametrize("schedule", [trapezoid, inverse_sqrt])
def test_a_short_run_warms_up_for_a_quarter_of_it(schedule):
    assert [schedule(step, 20) for step in (0, 3, 4)] == pytest.approx([0.2, 0.8, 1])


def test_inverse_sqrt_goes_up_to_one_and_halves_when_the_steps_are_four_times_as_many():
    assert inverse_sqrt(0, 1000) == pytest.approx(1 / 50)
    assert inverse_sqrt(24, 1000) == pytest.approx(0.5)
    assert inverse_sqrt(49, 1000) == 1
    assert inverse_sqrt(199, 1000) == pytest.approx(0.5)
    assert inverse_sqrt(799, 1000) == pytest.approx(0.25)
    assert inverse_sqrt(2, 1000, warmup=4) == 0.75
    assert inverse_sqrt(15, 1000, warmup=4) == 0.5
    factors = [inverse_sqrt(step, 1000) for step in range(1000)]
    assert factors[:50] == sorted(factors[:50])
    assert factors[49:] == sorted(factors[49:], reverse=True)


def test_inverse_sqrt_is_the_schedule_of_the_paper():
    """Equation 3 of Vaswani et al. 2017, with steps counted from one, for the base model."""
    d_model, warmup, steps = 512, 4000, 100_000
    peak = (d_model * warmup) ** -0.5
    for step in (1, 100, 3999, 4000, 4001, 50_000, 100_000):
        rate = d_model ** -0.5 * min(step ** -0.5, step * warmup ** -1.5)
        assert peak * inverse_sqrt(step - 1, steps, warmup) == pytest.approx(rate)


@pytest.mark.parametrize("steps", [1, 2, 10, 60])
@pytest.mark.parametrize("schedule", [trapezoid, inverse_sqrt])
def test_the_schedule_of_a_short_run_stays_between_zero_and_one(schedule, steps):
    factors = [schedule(step, steps) for step in range(steps)]
    assert all(0 < factor <= 1 for factor in factors)
    assert max(factors) == 1


@pytest.mark.parametrize("schedule", [trapezoid, inverse_sqrt])
def test_without_a_warm_up_the_first_step_is_the_longest(schedule):
    assert schedule(0, 1000, warmup=0) == 1


def test_the_schedule_is_what_the_learning_rate_follows():
    """Adam's first steps have the length of the learning rate, whatever the gradient."""
    asked = []

    def schedule(step, steps):
        asked.append((step, steps))
        return [0.5, 0.0, 0.0][step]

    model = make_line()
    fit(model, POINTS, steps=3, loss=line_loss, lr=1e-3, schedule=schedule)
    assert asked == [(0, 3), (1, 3), (2, 3)]
    torch.testing.assert_close(moved(model), torch.full((1, 3), 0.5e-3), rtol=1e-3, atol=0)


def test_the_optimizer_is_adam_with_the_betas_of_the_transformer(monkeypatch):
    """Three gradients, by the formulas of Kingma & Ba 2015 (algorithm 1), with 0.9 and 0.98."""
    monkeypatch.setattr(training, "CLIP", 1e9)
    gradients = torch.tensor([[1.0, -2.0, 0.5], [-3.0, 1.0, 4.0], [0.2, 5.0, -1.0]])
    model, weight = make_line(), make_line().weight.detach()
    fit(model, gradients, steps=3, lr=0.01, loss=lambda model, gradient: ((model.weight * gradient).sum(), 1),
        schedule=lambda *_: 1.0)
    m = v = 0
    for t, gradient in enumerate(gradients, start=1):
        m, v = 0.9 * m + 0.1 * gradient, 0.98 * v + 0.02 * gradient.square()
        weight = weight - 0.01 * m / (1 - 0.9 ** t) / (v / (1 - 0.98 ** t)).sqrt()
    torch.testing.assert_close(model.weight.detach(), weight)


def test_long_gradients_are_scaled_down_and_recorded_as_they_were(monkeypatch):
    """Below Adam's epsilon of 1e-8 the length of a gradient matters: a clip to 1e-10 all but stops training."""
    free, clipped = make_line(), make_line()
    monkeypatch.setattr(training, "CLIP", 1e9)
    one = fit(free, POINTS, steps=1, loss=line_loss, schedule=lambda *_: 1.0)
    monkeypatch.setattr(training, "CLIP", 1e-10)
    two = fit(clipped, POINTS, steps=1, loss=line_loss, schedule=lambda *_: 1.0)
    assert moved(clipped).max() < 0.02 * moved(free).min()
    assert one.grad_norm == two.grad_norm
    assert one.grad_norm[0] > 0.1


def test_every_step_has_its_own_gradient():
    """The same points three times, at rate zero: the same gradient three times, not their sum."""
    history = fit(make_line(), POINTS[:1], steps=3, loss=line_loss, schedule=lambda *_: 0.0)
    assert history.grad_norm == [history.grad_norm[0]] * 3


# --- loss and tokens -----------------------------------------------------------------------------------------------

def batch_of(*targets):
    width = max(map(len, targets))
    target = torch.tensor([[*t, *[PAD] * (width - len(t))] for t in targets])
    return Batch(torch.full((len(targets), 2), EOS), target)


class Bigrams(nn.Module):
    """Logits of the next word from a table."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(VOCAB, VOCAB, generator=torch.Generator().manual_seed(0)))

    def forward(self, source, target, need_weights):
        assert not need_weights
        return self.table[target], None


def test_a_batch_of_another_kind_is_refused_in_words():
    with pytest.raises(TypeError, match="a batch is a tuple without a target; expected a data.text.Batch"):
        sequence_loss(Bigrams(), (torch.ones(2, 3), torch.ones(2)))


def test_the_loss_is_the_mean_surprise_of_the_next_words():
    model = Bigrams()
    log_p = model.table.log_softmax(-1)
    loss, words = sequence_loss(model, batch_of([BOS, 5, 6, EOS], [BOS, 7, EOS]))
    by_hand = -(log_p[BOS, 5] + log_p[5, 6] + log_p[6, EOS] + log_p[BOS, 7] + log_p[7, EOS]) / 5
    assert words == 5
    torch.testing.assert_close(loss, by_hand)


@pytest.mark.parametrize("ids", [[BOS], [BOS, PAD, PAD]])
def test_a_batch_without_a_next_word_is_refused(ids):
    with pytest.raises(ValueError, match=r"target has shape \(1, \d\) and no word to predict"):
        sequence_loss(Bigrams(), batch_of(ids))


def test_label_smoothing_gives_every_word_a_small_share():
    """Szegedy et al. 2016, section 7: the target is (1 - e) one-hot + e / V, and the loss its cross-entropy."""
    model = Bigrams()
    log_p = model.table.log_softmax(-1)
    target = 0.9 * torch.eye(VOCAB)[[5, 6, EOS, 7, EOS]] + 0.1 / VOCAB
    by_hand = -(target * log_p[[BOS, 5, 6, BOS, 7]]).sum() / 5
    loss, words = sequence_loss(model, batch_of([BOS, 5, 6, EOS], [BOS, 7, EOS]), label_smoothing=0.1)
    assert words == 5
    torch.testing.assert_close(loss, by_hand)


def test_with_label_smoothing_the_best_model_is_not_sure():
    """One word always follows the other; the loss is lowest where it has 1 - e + e / V of the probability."""
    model, batch = Bigrams(), batch_of([BOS, 5, EOS])
    smoothed = partial(sequence_loss, label_smoothing=0.2)
    history = fit(model, [batch], steps=400, lr=0.2, loss=smoothed)
    p = model.table.softmax(-1)[[BOS, 5], [5, EOS]].detach()
    torch.testing.assert_close(p, torch.full((2,), 0.8 + 0.2 / VOCAB), atol=1e-3, rtol=0)
    assert history.loss[-1] == pytest.approx(smoothed(model, batch)[0].item(), abs=1e-4)
    assert history.loss[-1] > 0.5                                  # the entropy of the smoothed target


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_padding_is_neither_learned_nor_counted(label_smoothing):
    model, long = Bigrams(), [BOS, 4, 5, 6, 7, 6, 5, EOS]
    alone, n_alone = sequence_loss(model, batch_of([BOS, 5, EOS]), label_smoothing)
    both, n_both = sequence_loss(model, batch_of([BOS, 5, EOS], long), label_smoothing)
    rest, n_rest = sequence_loss(model, batch_of(long), label_smoothing)
    assert (n_alone, n_rest, n_both) == (2, 7, 9)
    torch.testing.assert_close(both, (2 * alone + 7 * rest) / 9)
    model.zero_grad()
    both.backward()
    assert not model.table.grad[PAD].any()


def test_a_history_counts_words_without_padding():
    history = fit(Bigrams(), [batch_of([BOS, 5, EOS], [BOS, 4, 5, 6, EOS]), batch_of([BOS, 5, 6, EOS])], steps=3)
    assert history.tokens == 6 + 3 + 6


# --- when it goes wrong --------------------------------------------------------------------------------------------

def test_a_schedule_that_is_no_number_is_named():
    with pytest.raises(ValueError, match=r"schedule\(4, 5\) is nan; expected a finite factor on lr"):
        fit(make_line(), POINTS, steps=5, loss=line_loss, schedule=lambda step, steps: torch.nan if step == 4 else 1.0)


def test_weights_that_overflow_in_the_last_step_are_no_success():
    def line_or_leap(step, steps):
        return 1e38 if step == 4 else 1.0

    with pytest.raises(FloatingPointError, match="after step 5 of 5 not all weights are finite"):
        fit(make_line(), POINTS, steps=5, loss=line_loss, lr=100.0, schedule=line_or_leap)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_loss_that_is_no_number_stops_the_run_and_says_where(bad):
    calls = []

    def loss(model, points):
        value, n = line_loss(model, points)
        calls.append(1)
        return (value * bad if len(calls) == 3 else value), n

    model = make_line()
    with pytest.raises(FloatingPointError, match=rf"the loss is {bad} at step 2; .* learning rate below 0.01"):
        fit(model, POINTS, steps=5, loss=loss, lr=0.01)
    assert model.weight.isfinite().all(), "the bad step was taken"
    assert not model.training


@pytest.mark.parametrize(("wrong", "given"), [
    (lambda mean: mean.item(), r"\d+\.\d+, a float"), (lambda mean: None, "None, a NoneType"),
    (lambda mean: mean.detach(), r"a tensor of shape \(\) with requires_grad=False"),
    (lambda mean: mean.expand(3), r"a tensor of shape \(3,\) with requires_grad=True"),
    (lambda mean: mean.view(1), r"a tensor of shape \(1,\) with")])
def test_a_loss_that_is_not_one_number_with_a_gradient_is_refused_and_the_weights_stay(wrong, given):
    def loss(model, batch):
        mean, n = line_loss(model, batch)
        return wrong(mean), n

    model = make_line()
    with pytest.raises(TypeError, match=rf"the mean loss is {given}.*; expected a tensor with one number, of shape \("):
        fit(model, [torch.ones(2, 3)], 2, loss=loss)
    assert not moved(model).any()


@pytest.mark.parametrize(("returned", "given"), [
    (lambda mean: mean, r"tensor\(\d"), (lambda mean: torch.stack([mean, mean]), r"tensor\(\["),
    (lambda mean: (mean,), r"\(tensor\("), (lambda mean: (mean, 1, 2), r"\(tensor\("), (lambda mean: None, "None")])
def test_a_loss_that_is_not_two_things_is_refused_and_the_weights_stay(returned, given):
    model = make_line()
    with pytest.raises(TypeError, match=f"loss returned {given}.*; expected two things: return mean_loss, n_words"):
        fit(model, [torch.ones(2, 3)], 2, loss=lambda *inputs: returned(line_loss(*inputs)[0]))
    assert not moved(model).any()
    assert not model.training


def test_a_budget_may_be_a_whole_number_of_numpy():
    assert len(fit(make_line(), POINTS, steps=np.int64(3), loss=line_loss).loss) == 3


@pytest.mark.parametrize(("wrong", "message"), [
    ({"steps": 0}, "steps is 0; expected at least 1"), ({"steps": -1}, "steps is -1; expected at least 1"),
    ({"steps": 2.5}, r"steps is 2\.5; expected a whole number"), ({"steps": True}, "steps is True; expected a whole"),
    ({"lr": math.nan}, "lr=nan; expected a finite number above"),
    ({"lr": -0.1}, r"lr=-0\.1; expected"), ({"lr": None}, "lr is None, a NoneType; expected a number"),
    ({"lr": "2e-3"}, "lr is '2e-3', a str; expe"), ({"lr": math.inf}, "lr=inf; expected"),
    ({"lr": 0.0}, r"lr=0\.0; expected")])
def test_a_budget_or_a_rate_that_is_none_is_refused_and_the_weights_stay(wrong, message):
    model = make_line()
    before = model.weight.detach().clone()
    with pytest.raises((ValueError, TypeError), match=message):
        fit(model, POINTS, **{"steps": 3, "loss": line_loss, **wrong})
    assert torch.equal(model.weight, before)


@pytest.mark.parametrize("model", [nn.Identity(), nn.Linear(1, 1).requires_grad_(False)])
def test_a_model_with_nothing_to_train_is_refused(model):
    with pytest.raises(ValueError, match=f"the model .{type(model).__name__}. has no parameters that can be trained"):
        fit(model, POINTS, steps=3, loss=line_loss)


def test_a_gradient_that_is_no_number_stops_the_run_before_the_step():
    """The loss is finite where the root's slope is not."""
    model = make_line()

    def loss(model, points):
        return (model.weight - model.weight.detach()).abs().sum().sqrt(), 1

    before = model.weight.detach().clone()
    with pytest.raises(FloatingPointError, match=r"gradient's length is (nan|inf) at step 0; this step changed no"):
        fit(model, POINTS, steps=3, loss=loss)
    assert torch.equal(model.weight, before)


def test_an_interrupt_keeps_what_was_learned(capsys):
    kept = []

    def loss(model, points):
        if len(kept) == 3:
            raise KeyboardInterrupt
        kept.append(line_loss(model, points)[0].item())
        return line_loss(model, points)

    model = make_line()
    history = fit(model, POINTS, steps=10, loss=loss)
    assert history.interrupted
    assert history.loss == kept
    assert len(history.grad_norm) == 3
    assert history.tokens == 30
    assert history.seconds > 0
    assert moved(model).min() > 0
    assert not model.training
    assert "stopped by hand after 3 of 10 steps" in capsys.readouterr().out


def test_an_interrupt_in_the_middle_of_a_step_leaves_no_half_entry(monkeypatch):
    step, steps = torch.optim.Adam.step, []

    def interrupted_step(self, *args, **kwargs):
        steps.append(1)
        if len(steps) == 3:
            raise KeyboardInterrupt
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.Adam, "step", interrupted_step)
    history = fit(make_line(), POINTS, steps=10, loss=line_loss)
    assert history.interrupted
    assert len(history.loss) == len(history.grad_norm) == 2


def test_training_can_go_on_after_an_interrupt():
    def interrupt(model, points):
        raise KeyboardInterrupt

    model = make_line()
    assert fit(model, POINTS, steps=5, loss=interrupt).loss == []
    history = fit(model, POINTS, steps=50, loss=line_loss, lr=0.1)
    assert history.loss[-1] < 0.1 * history.loss[0]


def test_no_batches_are_an_error_not_an_endless_loop():
    model = make_line()
    with pytest.raises(ValueError, match="no batches to train on"):
        fit(model, [], steps=5, loss=line_loss)
    assert not model.training


# --- the curve -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("notebook", "live", "drawn"), [(False, True, 0), (True, False, 0), (True, True, 1)])
def test_a_curve_is_drawn_in_a_notebook_only(monkeypatch, notebook, live, drawn):
    shown = []
    monkeypatch.setattr(plotting, "in_notebook", lambda: notebook)
    monkeypatch.setattr(plotting, "display", lambda *args, **kwargs: shown.append(args))
    fit(make_line(), POINTS, steps=3, loss=line_loss, live=live)
    assert len(shown) == drawn
