"""Lesson 07's checks, checked: wrong answers as tired students give them, right ones in other styles than ours."""

import torch
import torch.nn.functional as F
from seeded_answers import Answers, right, wrong
from torch import nn

from course_utils.exercises import EXERCISES, engine
from course_utils.exercises.lesson_07 import LESSON_07
from course_utils.gpt import SwiGLU, llama_config


class TestAnswers(Answers):
    lesson = LESSON_07
    slips = (
        ("accumulated", "with a single part", ("/ counts.sum()", "/ counts.sum() * min(1, len(counts) - 1)")),
        ("analogy", "when the inputs may be answers", ("if exclude:", "if True:")),
        ("analogy", "with a single question", (".argmax(dim=1)", ".squeeze().argmax(dim=-1)")),
        ("bilm_loss", "with one sentence", ("(following + previous) / 2", "(following + previous) / min(2, len(ids))")),
        ("corrupt", "with a single span", ("sentinels[len(spans)]", "sentinels[2]")),
        ("corrupt", "when a span begins or ends", ("words[end:start]", "words[end:start or 1]")),
        ("corrupt", "when a span begins or ends", ("words[end:],", "(words[end:] or words[-1:]),")),
        ("factorised", "with a single text", ("table[ids] @ up", "(table[ids.squeeze(0)] @ up)")),
        ("one_step", "with a single prompt", (".sum(dim=-1)", ".sum(dim=-1).squeeze()")),
        ("rms_norm", "when the numbers are small", ("(mean_square + eps)", "(mean_square + 1e-5)")),
        ("swiglu", "when the numbers are large", (
            "F.silu(x @ W_gate.T)", "(x @ W_gate.T).sigmoid() * (x @ W_gate.T).clamp(max=60)")),
        ("silenced", "with head 0", ("in heads:", "in filter(None, heads):")),
    )


wrong("rms_norm", "That is LayerNorm", lambda x, gain, eps: (
    gain * F.layer_norm(x, x.shape[-1:], eps=eps) * (x.var(-1, correction=0, keepdim=True) + eps).sqrt() \
 / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt()))
wrong("rms_norm", "subtracts no mean", lambda x, gain, eps: F.layer_norm(x, x.shape[-1:], gain, eps=eps))
wrong("rms_norm", "not averaged", lambda x, gain, eps: gain * x / ((x * x).sum(-1, keepdim=True) + eps).sqrt())
wrong("rms_norm", "eps", lambda x, gain, eps: gain * x * torch.rsqrt((x ** 2).mean(-1, keepdim=True)))
right("rms_norm", lambda x, gain, eps: F.rms_norm(x, x.shape[-1:], gain, eps))
right("rms_norm", lambda x, gain, eps: x * torch.rsqrt((x * x).sum(-1, keepdim=True) / x.size(-1) + eps) * gain)


wrong("swiglu", "wrong branch",
      lambda x, W_gate, W_up, W_down: F.linear(F.linear(x, W_gate) * F.silu(F.linear(x, W_up)), W_down))
wrong("swiglu", "W_up is not used", lambda x, W_gate, W_up, W_down: F.linear(F.silu(F.linear(x, W_gate)), W_down))
wrong("swiglu", "(out, in)", lambda x, W_gate, W_up, W_down: (F.silu(x @ W_gate) * (x @ W_up)) @ W_down)
wrong("swiglu", "expected (B, T, d)", lambda x, W_gate, W_up, W_down: F.silu(x @ W_gate.T) * (x @ W_up.T))


@right("swiglu")
def sg_linear(x, W_gate, W_up, W_down):
    z = F.linear(x, W_gate)
    return F.linear(z * z.sigmoid() * F.linear(x, W_up), W_down)


@right("swiglu")
def sg_einsum(x, W_gate, W_up, W_down):
    gate, up = (torch.einsum("btd,fd->btf", x, W) for W in (W_gate, W_up))
    return torch.einsum("btf,df->btd", F.silu(gate) * up, W_down)


wrong("induction_scores", "expected (n_layers, n_heads)",
      lambda weights, T: weights.diagonal(1 - T, -2, -1)[..., 1:].mean((0, 2, -1)))
wrong("induction_scores", "Look one further", lambda weights, T: weights.diagonal(-T, -2, -1)[..., :-1].mean((0, -1)))
wrong("induction_scores", "expected (n_layers, n_heads)",
      lambda weights, T: weights.diagonal(1 - T, -2, -1)[..., 1:].mean(-1))
wrong("induction_scores", "lies in the repetition",
      lambda weights, T: weights[..., range(T, 2 * T), range(1, T + 1)].mean((0, 3)))
wrong("induction_scores", "previous-token head",
      lambda weights, T: weights[..., range(T, 2 * T - 1), range(T - 1, 2 * T - 2)].mean((0, 3)))
wrong("induction_scores", "whole diagonal", lambda weights, T: weights.diagonal(-(T - 1), -2, -1).mean((0, -1)))
wrong("induction_scores", "added up", lambda weights, T: weights[..., range(T, 2 * T - 1), range(1, T)].sum(-1).mean(0))


@right("induction_scores")
def in_items(weights, T):
    B, n_layers, n_heads = weights.shape[:3]
    return torch.tensor([[sum(weights[b, n, h, T + i, i + 1].item() for b in range(B) for i in range(T - 1))
                          / (B * (T - 1)) for h in range(n_heads)] for n in range(n_layers)])


right("induction_scores", lambda weights, T: weights.diagonal(1 - T, dim1=-2, dim2=-1)[..., 1:-1].mean(dim=(0, -1)))
right("induction_scores",
      lambda weights, T: torch.stack([weights[..., T + i, i + 1] for i in range(T - 1)]).mean(dim=(0, 1)))


@wrong("silenced", "One column per head is zero")
def si_one_column(W_o, heads, d_k):
    W_o = W_o.clone()
    W_o[:, heads] = 0
    return W_o


@wrong("silenced", "`W_o` was changed")
def si_in_place(W_o, heads, d_k):
    for head in heads:
        W_o[:, head * d_k:(head + 1) * d_k] = 0
    return W_o


@wrong("silenced", "a head is d_k columns")
def si_rows(W_o, heads, d_k):
    rows = torch.arange(len(W_o)) // d_k
    return W_o.masked_fill(torch.isin(rows, torch.tensor(heads)).unsqueeze(1), 0.0)


wrong("silenced", "stand side by side", lambda W_o, heads, d_k: (
    torch.stack([column * (j % (W_o.size(1) // d_k) not in heads) for j, column in enumerate(W_o.T)], dim=1)))


@wrong("silenced", "stand side by side")
def si_every_d_k(W_o, heads, d_k):
    W_o = W_o.clone()
    for head in heads:
        W_o[:, head::d_k] = 0
    return W_o


@wrong("silenced", "multiplication comes first")
def si_precedence(W_o, heads, d_k):
    W_o = W_o.clone()
    for h in heads:
        W_o[:, h*d_k:h+1*d_k] = 0
    return W_o


@wrong("silenced", "the wrong way round")
def si_others(W_o, heads, d_k):
    each = W_o.unflatten(1, (-1, d_k))
    return (each * torch.isin(torch.arange(each.size(1)), torch.tensor(heads))[:, None]).flatten(1)


@wrong("silenced", "Only one of the heads is off")
def si_copied_in_the_loop(W_o, heads, d_k):
    for head in heads:
        copy = W_o.clone()
        copy[:, head * d_k:(head + 1) * d_k] = 0
    return copy


@right("silenced")
def si_detached(W_o, heads, d_k):
    blocks = W_o.detach().clone().unflatten(1, (-1, d_k))
    blocks[:, heads] = 0
    return blocks.flatten(1)


right("silenced", lambda W_o, heads, d_k: W_o * ~torch.isin(torch.arange(W_o.size(1)) // d_k, torch.tensor(heads)))


@right("silenced")
def si_by_head(W_o, heads, d_k):
    each = W_o.clone().reshape(len(W_o), -1, d_k)
    each[:, heads] = 0
    return each.reshape(W_o.shape)


@wrong("one_step", "The sign is wrong")
def os_uphill(x, y, asked, rate):
    gradient = -torch.einsum("bn,bnd->bd", y, x) / y.size(1)
    return ((rate * gradient) * asked).sum(-1)


wrong("one_step", "not averaged", lambda x, y, asked, rate: rate * (y * (x @ asked.unsqueeze(-1)).squeeze(-1)).sum(1))
wrong("one_step", "go through a softmax",
      lambda x, y, asked, rate: rate * ((x @ asked.unsqueeze(-1)).squeeze(-1).softmax(-1) * y).sum(-1))
right("one_step", lambda x, y, asked, rate: rate * (y * (x @ asked.unsqueeze(-1)).squeeze(-1)).mean(1))
right("one_step", lambda x, y, asked, rate: rate / y.size(1) * torch.einsum("bn,bnd,bd->b", y, x, asked))


@wrong("corrupt", "lacks its last sentinel")
def co_unfinished(words, spans, sentinels):
    source, target, inside = [], [], set()
    for n, (start, length) in enumerate(spans):
        inside |= {*range(start, start + length)}
        target += [sentinels[n]] + words[start:start + length]
    for i, word in enumerate(words):
        if i not in inside:
            source.append(word)
        elif i in [start for start, _ in spans]:
            source.append(sentinels[[start for start, _ in spans].index(i)])
    return source, target


@wrong("corrupt", "its length, not its end")
def co_end(words, spans, sentinels):
    source, target, last = [], [], 0
    for i, (start, end) in enumerate(spans):
        source = source + words[last:start] + [sentinels[i]]
        target = target + [sentinels[i]] + words[start:end]
        last = end
    return source + words[last:], target + [sentinels[len(spans)]]


@wrong("corrupt", "In the target the length is taken for an end")
def co_length_in_the_target(words, spans, sentinels):
    source, target, end = [], [], 0
    for sentinel, (start, length) in zip(sentinels, spans, strict=False):
        source += [*words[end:start], sentinel]
        target += [sentinel, *words[start:length]]
        end = start + length
    return source + words[end:], [*target, sentinels[len(spans)]]


@wrong("corrupt", "looked up by its first word")
def co_looked_up(words, spans, sentinels):
    source, target = list(words), []
    for (start, length), sentinel in zip(spans, sentinels, strict=False):
        at = source.index(words[start])
        source[at:at + length] = [sentinel]
        target += [sentinel, *words[start:start + length]]
    return source, [*target, sentinels[len(spans)]]


@wrong("corrupt", "wrong with a single span, or none")
def co_last_of_the_loop(words, spans, sentinels):
    source, target, end = [], [], 0
    for i, (start, length) in enumerate(spans):
        source += words[end:start] + [sentinels[i]]
        target += [sentinels[i]] + words[start:start + length]
        end = start + length
    return source + words[end:], target + [sentinels[i + 1]]


@right("corrupt")
def co_backwards(words, spans, sentinels):
    source, target = list(words), [sentinels[len(spans)]]
    for i in reversed(range(len(spans))):
        start, length = spans[i]
        target = [sentinels[i], *words[start:start + length], *target]
        source[start:start + length] = [sentinels[i]]
    return source, target


@right("corrupt")
def co_marks(words, spans, sentinels):
    which = {start + j: i for i, (start, length) in enumerate(spans) for j in range(length)}
    source, target = [], []
    for i, word in enumerate(words):
        if i in which:
            if i == spans[which[i]][0]:
                source.append(sentinels[which[i]])
                target.append(sentinels[which[i]])
            target.append(word)
        else:
            source.append(word)
    return source, target + [sentinels[len(spans)]]


wrong("factorised", "id i is row i", lambda ids, table, up: torch.einsum("bte,ed->btd", table.roll(1, 0)[ids], up))
wrong("factorised", "expected (B, T, d)", lambda ids, table, up: F.embedding(ids, table))
right("factorised", lambda ids, table, up: F.linear(F.embedding(ids, table), up.T))
right("factorised", lambda ids, table, up: torch.stack([table.index_select(0, row) @ up for row in ids]))


@wrong("analogy", "none of a, b and c may be the answer")
def an_all_words(table, asked, exclude):
    a, b, c = asked.T
    return F.cosine_similarity((table[b] - table[a] + table[c]).unsqueeze(1), table, dim=-1).argmax(-1)


@wrong("analogy", "wrong sign")
def an_backwards(table, asked, exclude):
    answers = []
    for a, b, c in asked.tolist():
        scores = table @ (table[a] - table[b] + table[c])
        if exclude:
            scores[[a, b, c]] = -10.0
        answers.append(scores.argmax())
    return torch.stack(answers)


@wrong("analogy", "Only c is excluded")
def an_not_c(table, asked, exclude):
    wanted = table[asked[:, 1]] - table[asked[:, 0]] + table[asked[:, 2]]
    scores = wanted @ table.T
    if exclude:
        scores[torch.arange(len(asked)), asked[:, 2]] = -10.0
    return scores.argmax(1)


@wrong("analogy", "expected (n)")
def an_over_questions(table, asked, exclude):
    a, b, c = table[asked].unbind(1)
    return ((b - a + c) @ table.T).argmax(0)


@wrong("analogy", "has the score 0")
def an_excluded_by_zero(table, asked, exclude):
    a, b, c = table[asked].unbind(1)
    scores = (b - a + c) @ table.T
    if exclude:
        scores[torch.arange(len(asked)).unsqueeze(1), asked] = 0
    return scores.argmax(1)


@right("analogy")
def an_distances(table, asked, exclude):
    signs = torch.tensor([-1.0, 1.0, 1.0]).view(3, 1)
    apart = torch.cdist((signs * table[asked]).sum(1), table)
    if exclude:
        for row, words in zip(apart, asked, strict=True):
            row[words] = torch.inf
    return apart.argmin(-1)


@right("analogy")
def an_loop(table, asked, exclude):
    answers = []
    for a, b, c in asked.tolist():
        order = (table @ (table[b] - table[a] + table[c])).argsort(descending=True).tolist()
        answers.append(next(i for i in order if not exclude or i not in (a, b, c)))
    return torch.tensor(answers)


wrong("bilm_loss", "That is copying",
      lambda ahead, back, ids: (F.cross_entropy(ahead.mT, ids) + F.cross_entropy(back.mT, ids)) / 2)


@wrong("bilm_loss", "Both readers guess the following word")
def bl_same_shift(ahead, back, ids):
    guesses, wanted = torch.cat([ahead[:, :-1], back[:, :-1]]), torch.cat([ids[:, 1:]] * 2)
    return F.cross_entropy(guesses.flatten(0, 1), wanted.flatten())


wrong("bilm_loss", "Here it gets probabilities", lambda ahead, back, ids: (
    F.cross_entropy(ahead[:, :-1].softmax(-1).mT, ids[:, 1:]) / 2
    + F.cross_entropy(back[:, 1:].softmax(-1).mT, ids[:, :-1]) / 2))
wrong("bilm_loss", "Take their mean", lambda ahead, back, ids: (
    F.cross_entropy(ahead[:, :-1].mT, ids[:, 1:]) + F.cross_entropy(back[:, 1:].mT, ids[:, :-1])))


@right("bilm_loss")
def bl_one_call(ahead, back, ids):
    guesses, wanted = torch.cat([ahead[:, :-1], back[:, 1:]]), torch.cat([ids[:, 1:], ids[:, :-1]])
    return F.cross_entropy(guesses.flatten(0, 1), wanted.flatten())


@right("bilm_loss")
def bl_gathered(ahead, back, ids):
    ahead, back = (x.log_softmax(-1) for x in (ahead, back))
    right = ahead[:, :-1].gather(2, ids[:, 1:, None]).mean()
    left = back[:, 1:].gather(2, ids[:, :-1, None]).mean()
    return -(right + left) / 2


# --- the solutions, beside what they stand for ------------------------------------------------------------------

def test_solutions_are_the_parts_of_a_gpt():
    solution = {exercise.name: exercise.solution for exercise in LESSON_07}
    x, norm, network = torch.randn(2, 3, 8), nn.RMSNorm(8, 1e-3), SwiGLU(llama_config(d_model=8, d_ff=12))
    nn.init.normal_(norm.weight)
    torch.testing.assert_close(solution["rms_norm"](x, norm.weight, 1e-3), norm(x))
    W = (network.W_gate.weight, network.W_up.weight, network.W_down.weight)
    torch.testing.assert_close(solution["swiglu"](x, *W), network(x))


def test_an_induction_head_by_hand():
    T, weights = 4, torch.zeros(1, 1, 2, 8, 8)
    weights[..., 0] = 1.0                                                       # head 1 looks at the first token
    weights[:, :, 0] = torch.roll(torch.eye(8), 1 - T, dims=1)                  # head 0 at what followed last time
    scores = EXERCISES["induction_scores"].solution(weights, T)
    assert scores.tolist() == [[1.0, 0.0]]


wrong("accumulated", "plain mean", lambda gradients, counts: gradients.sum(0) / len(gradients))
wrong("accumulated", "number of parts",
      lambda gradients, counts: torch.stack([g * c for g, c in zip(gradients, counts, strict=True)]).mean(0))
right("accumulated", lambda gradients, counts: counts.float() @ gradients / counts.sum())


@right("accumulated")
def ac_loop(gradients, counts):
    total = torch.zeros(gradients.size(1))
    for gradient, count in zip(gradients, counts, strict=True):
        total += count * gradient
    return total / counts.sum()


def test_a_slow_look_up_is_told_what_it_multiplies(monkeypatch):
    monkeypatch.setattr(engine, "_times_slower", lambda *_: 60)
    verdict = EXERCISES["factorised"].judge(lambda ids, table, up: (table @ up)[ids])
    assert verdict.kind == "slow"
    assert "Look up the narrow vectors first" in verdict.text


def test_one_step_is_that_of_autograd():
    x, y, asked = torch.randn(2, 7, 3), torch.randn(2, 7), torch.randn(2, 3)
    w = torch.zeros(2, 3, requires_grad=True)
    (((x * w.unsqueeze(1)).sum(-1) - y) ** 2).mean(dim=1).div(2).sum().backward()
    stepped = -0.7 * w.grad
    torch.testing.assert_close(EXERCISES["one_step"].solution(x, y, asked, 0.7), (stepped * asked).sum(-1))


def test_corrupt_as_in_the_papers_figure():
    words = "Thank you for inviting me to your party last week .".split()
    source, target = EXERCISES["corrupt"].solution(words, [(2, 2), (8, 1)], ["<X>", "<Y>", "<Z>"])
    assert " ".join(source) == "Thank you <X> me to your party <Y> week ."
    assert " ".join(target) == "<X> for inviting <Y> last <Z>"


def test_an_analogy_by_hand():
    table = F.normalize(torch.tensor([[1.0, 0.0], [1.0, 0.2], [0.0, 1.0], [-0.1, 1.0]]), dim=-1)
    asked = torch.tensor([[0, 1, 2]])                                           # a small step from 2: to 2 itself
    solution = EXERCISES["analogy"].solution
    assert solution(table, asked, False).item() == 2
    assert solution(table, asked, True).item() == 3
