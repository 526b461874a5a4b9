"""Lesson 07, after BERT: the exercises, their solutions and the ways in which they go wrong."""

import torch
import torch.nn.functional as F

from .engine import Exercise, each
from .inputs import number, randn, sizes


def rms_norm(x, gain, eps):
    """Every token's d numbers, x ``(B, T, d)``, divided by the root of their mean square (Zhang and Sennrich 2019)."""
    mean_square = x.pow(2).mean(dim=-1, keepdim=True)    # (B, T, 1)
    return gain * x / (mean_square + eps).sqrt()


def _norm_inputs(rng, scale=3.0, shift=1.0, eps=1e-5):
    B, T, d = sizes(rng, 3)
    return scale * randn(rng, B, T, d + 6) + shift, 1 + randn(rng, d + 6), eps


RMS_NORM = Exercise(rms_norm, {"normed": "B, T, d"}, {
    "on ordinary inputs": _norm_inputs,
    "when the numbers are small (around 0.01), so that eps counts": lambda rng: _norm_inputs(rng, 0.01, 0.0, 1e-3),
}, (
    ("The mean is subtracted. That is LayerNorm of lesson 04; RMSNorm does without.", "* x /",
     "* (x - x.mean(dim=-1, keepdim=True)) /"),
    ("Mean and variance are used: that is LayerNorm without its bias. RMSNorm subtracts no mean.",
     "x.pow(2).mean(dim=-1, keepdim=True)", "x.var(dim=-1, correction=0, keepdim=True)", "* x /",
     "* (x - x.mean(dim=-1, keepdim=True)) /"),
    *each("The mean runs over other axes, too, or over the wrong one. Take the mean over the last axis, dim=-1: each "
          "token is normed with its own d numbers.", ("dim=-1", "dim=1"), ("dim=-1", "dim=(1, 2)"), ("dim=-1", "dim=0"),
          ("dim=-1", "dim=(0, 1)")),
    ("The root is missing: divide by the root of the mean square.", ".sqrt()", ""),
    ("The squares are summed, not averaged: that makes the length 1, and the numbers small.", ".mean(", ".sum("),
    ("The numbers are not squared before the mean.", "x.pow(2)", "x.abs()"),
    ("eps is added outside the root. It belongs inside: the root of (mean square + eps).",
     "(mean_square + eps).sqrt()", "(mean_square.sqrt() + eps)"),
    ("The eps that is given is not used. Add it to the mean square, inside the root.", " + eps", ""),
    ("The gain is not used: multiply each of the d numbers by its own.", "gain * ", ""),
    ("One is added to the gain. Multiply by the gain as it is given.", "gain * x", "(1 + gain) * x"),
    ("This multiplies by the root; divide by it.", "/ (", "* ("),
), timed=lambda rng: (randn(rng, 8, 64, 256), randn(rng, 256), 1e-5))


def swiglu(x, W_gate, W_up, W_down):
    """``W_down (silu(W_gate x) * W_up x)`` of x ``(B, T, d)``; W as ``nn.Linear`` has them (Shazeer 2020, eq. 6)."""
    gate = F.silu(x @ W_gate.T)                                         # (B, T, d_ff)
    return (gate * (x @ W_up.T)) @ W_down.T                             # (B, T, d)


def _gate_inputs(rng, scale=1.0):
    B, T, d, d_ff = sizes(rng, 4)
    return scale * randn(rng, B, T, d), randn(rng, d_ff, d), randn(rng, d_ff, d), randn(rng, d, d_ff)


SWIGLU = Exercise(swiglu, {"output": "B, T, d"}, {
    "on ordinary inputs": _gate_inputs,
    "when the numbers are large (around 100)": lambda rng: _gate_inputs(rng, 100.0),
}, (
    ("silu stands on the wrong branch. It makes the gate: silu(W_gate x), and W_up x stays as it is.",
     "F.silu(x @ W_gate.T)", "x @ W_gate.T", "(x @ W_up.T)", "F.silu(x @ W_up.T)"),
    ("silu stands on both branches. Only the gate has it.", "(x @ W_up.T)", "F.silu(x @ W_up.T)"),
    ("silu comes after the product of the two branches. It makes the gate alone.",
     "F.silu(x @ W_gate.T)", "x @ W_gate.T", "(gate * (x @ W_up.T))", "F.silu(gate * (x @ W_up.T))"),
    ("silu is missing: without it the gate is linear.", "F.silu(x @ W_gate.T)", "x @ W_gate.T"),
    ("The gate is a sigmoid: that is GLU. SwiGLU has silu, z times the sigmoid of z.", "F.silu", "torch.sigmoid"),
    ("The gate is a relu: that is ReGLU. Here it is silu.", "F.silu", "F.relu"),
    ("The gate is a gelu: that is GEGLU. Here it is silu.", "F.silu", "F.gelu"),
    ("The branches are added. The gate multiplies: element-wise, gate * up.", "gate * (", "gate + ("),
    ("W_up is not used: that is a feed-forward network without a gate.", " * (x @ W_up.T)", ""),
    ("The gate is not used: x passes W_up and W_down alone.", "gate * (x @ W_up.T)", "x @ W_up.T"),
    ("A matrix stands the wrong way round. Linear layers keep (out, in), so the products are x @ W.T.",
     "x @ W_gate.T", "x @ W_gate"),
), timed=lambda rng: (randn(rng, 4, 64, 128), randn(rng, 384, 128), randn(rng, 384, 128), randn(rng, 128, 384)))


def induction_scores(weights, T):
    """Weights ``(B, n_layers, n_heads, 2T, 2T)`` to the mean ``(n_layers, n_heads)`` from T + i to i + 1."""
    again = torch.arange(T, 2 * T - 1)             # without the last: its next is T
    looked = weights[..., again, again - T + 1]    # (B, n_layers, n_heads, T - 1)
    return looked.mean(dim=(0, -1))


def _weights_inputs(rng):
    B, n_layers, n_heads, T, _ = sizes(rng, 5)
    return randn(rng, B, n_layers, n_heads, 2 * T, 2 * T).tril().softmax(-1), T


INDUCTION_SCORES = Exercise(induction_scores, {
    "scores": "n_layers, n_heads"}, {
    "on ordinary inputs": _weights_inputs,
}, (
    ("This is the weight on the same token's first time. Look one further: at what came after it.",
     "again - T + 1", "again - T"),
    ("This is the weight on the token before the first time. Look at what came after it.",
     "again - T + 1", "again - T - 1"),
    ("This is the weight on the token just before: a previous-token head, which is something else.",
     "again - T + 1", "again - 1"),
    ("Queries and keys are swapped: rows ask, columns are looked at.",
     "again, again - T + 1", "again - T + 1, again"),
    ("The first time is asked, not the second: rows from T on.", "torch.arange(T, 2 * T - 1)", "torch.arange(T - 1)",
     "again - T + 1", "again + 1"),
    ("Every pair of the two halves is averaged. Take one key per query: index with two lists of the same length.",
     "[..., again, again - T + 1]", "[..., again, :][..., again - T + 1]", "(0, -1)", "(0, -2, -1)"),
    ("The last token is in it. Its next, position T, lies in the repetition: ask for i = 0 … T - 2 only.",
     "torch.arange(T, 2 * T - 1)", "torch.arange(T, 2 * T)"),
    ("The whole diagonal is averaged. Leave out its first and its last place: ask for i = 0 … T - 2 only.",
     "torch.arange(T, 2 * T - 1)", "torch.arange(T - 1, 2 * T)"),
    *each("The weights are added up, not averaged.", ("mean(dim=(0, -1))", "sum(dim=-1).mean(dim=0)"),
          (".mean(", ".sum(")),
    ("The sum is divided by T. Only T - 1 tokens have a next one: take the mean.", "looked.mean(dim=(0, -1))",
     "looked.sum(dim=-1).mean(dim=0) / T"),
    ("The largest weight is taken. One lucky position is no habit: take the mean.",
     "mean(dim=(0, -1))", "amax(dim=(0, -1))"),
), measures=True)


def silenced(W_o, heads, d_k):
    """W_o ``(d_model, n_heads * d_k)`` to a copy in which these heads write nothing: their columns are zero."""
    W_o = W_o.clone()
    for head in heads:
        W_o[:, head * d_k:(head + 1) * d_k] = 0.0
    return W_o


def _output_inputs(rng, *heads):
    n_heads, d_k, more = sizes(rng, 3)
    n_heads = max(n_heads, 4)
    off = list(heads) or (torch.randperm(n_heads - 1, generator=rng)[:2] + 1).tolist()
    return randn(rng, n_heads * d_k + more, n_heads * d_k), off, d_k


SILENCED = Exercise(silenced, {"W_o": "d_model, n_heads * d_k"}, {
    "on ordinary inputs": _output_inputs,
    "with head 0": lambda rng: _output_inputs(rng, 0),
    "with a single head": lambda rng: _output_inputs(rng, 2),
}, (
    ("Nothing is zero: every head still writes.", "= 0.0", "= W_o[:, head * d_k:(head + 1) * d_k]"),
    ("Everything is zero. Only the columns of these heads are to be zero.", "W_o.clone()", "torch.zeros_like(W_o)"),
    ("Rows are zero. The rows of W_o are what is written, the columns what is read: a head is d_k columns.",
     "W_o[:, head * d_k:(head + 1) * d_k]", "W_o[head * d_k:(head + 1) * d_k]"),
    ("One column per head is zero. Head h has d_k columns: from h * d_k on.",
     "head * d_k:(head + 1) * d_k", "head"),
    ("The columns begin at the head's number. Head h begins at column h * d_k.",
     "head * d_k:(head + 1) * d_k", "head:head + d_k"),
    *(("The columns are taken in turns. The heads stand side by side: first d_k columns of head 0, then d_k of head 1.",
       "head * d_k:(head + 1) * d_k", f"head::{step}") for step in ("W_o.size(1) // d_k", "d_k")),
    ("The multiplication comes first: head + 1 * d_k is head + d_k. The columns end at (head + 1) * d_k.",
     "(head + 1) * d_k", "head + 1 * d_k"),
    ("These are the columns of the next head. Heads are counted from 0.",
     "head * d_k:(head + 1) * d_k", "(head + 1) * d_k:(head + 2) * d_k"),
    ("Every head from this one on is zero. The columns end at (head + 1) * d_k.",
     "head * d_k:(head + 1) * d_k", "head * d_k:"),
    *each("Only one of the heads is off. Copy W_o once, before the loop, and go through the whole list.",
          ("in heads:", "in heads[-1:]:"), ("in heads:", "in heads[:1]:")),
    ("It is the wrong way round: these heads write, the others are zero.", "return W_o", "return start - W_o",
     "W_o = W_o.clone()", "start, W_o = W_o, W_o.clone()"),
    ("These are the columns of the head before. Heads are counted from 0.",
     "head * d_k:(head + 1) * d_k", "max(head - 1, 0) * d_k:head * d_k"),
), measures=True)


def one_step(x, y, asked, rate):
    """Examples x ``(B, n, d)``, y ``(B, n)`` and a question ``(B, d)`` to the prediction after one step from w = 0."""
    w = rate * (y.unsqueeze(-1) * x).mean(dim=1)                        # (B, d)
    return (w * asked).sum(dim=-1)


def _examples(rng, B=None):
    b, n, d = sizes(rng, 3)
    B, rate = B or b, 1 + torch.rand((), generator=rng).item()
    return randn(rng, B, n, d), randn(rng, B, n), randn(rng, B, d), rate


ONE_STEP = Exercise(one_step, {"prediction": "B"}, {
    "on ordinary inputs": _examples,
    "with a single prompt (B = 1)": lambda rng: _examples(rng, 1),
}, (
    ("The products are summed over the examples, not averaged: the loss has 1/n.", "mean(dim=1)", "sum(dim=1)"),
    ("The sign is wrong: the gradient at w = 0 is -mean(y x), and a step goes against it.", "rate * (", "-rate * ("),
    ("The rate is not used.", "rate * (", "("),
    ("The factor 2 belongs to a loss without the 1/2. Here the gradient at w = 0 is -mean(y x).", "rate * (",
     "2 * rate * ("),
    ("The labels are not used: each example counts with its y.", "y.unsqueeze(-1) * x", "x"),
    ("The mean runs over the d numbers or the batch. It runs over the examples, axis 1.", "mean(dim=1)",
     "mean(dim=2).mean(dim=1, keepdim=True)"),
    ("These are the weights after the step, summed: multiply them by the question first.", "(w * asked)", "w"),
    ("The prediction is a sum over the d numbers, w . x, not their mean.", ".sum(dim=-1)", ".mean(dim=-1)"),
    ("The scores go through a softmax. A gradient step has none: each score counts as it is, times rate / n.",
     "w = rate * (y.unsqueeze(-1) * x).mean(dim=1)", "w = (x @ asked.unsqueeze(-1)).softmax(dim=1)",
     "(w * asked).sum(dim=-1)", "rate * (w.squeeze(-1) * y).sum(dim=-1)"),
))


def corrupt(words, spans, sentinels):
    """Words without their spans ``(start, length)``, a sentinel for each; and the spans, each after its sentinel."""
    source, target, end = [], [], 0
    for i, (start, length) in enumerate(spans):
        source += [*words[end:start], sentinels[i]]
        target += [sentinels[i], *words[start:start + length]]
        end = start + length
    return source + words[end:], [*target, sentinels[len(spans)]]


SENTINELS = ["<X>", "<Y>", "<Z>"]
WORDS = ("the", "old", "queen", "of", "a", "city", "was", "seen", "in", "her", "garden", "by", "two", "young", "girls")


def _spans_inputs(rng, *spans):
    return [WORDS[i] for i in torch.randperm(len(WORDS), generator=rng).tolist()], list(spans), SENTINELS


def _random_spans(rng):
    first, gap, second = torch.randint(1, 4, (3,), generator=rng).tolist()
    return _spans_inputs(rng, (first, second), (first + second + gap, first))


CORRUPT = Exercise(corrupt, {"source": "", "target": ""}, {
    "on ordinary inputs": _random_spans,
    "with a single span, or none": lambda rng: _spans_inputs(rng, *[(3, 2)] * number(rng, 0, 2)),
    "when a span begins or ends the sentence": lambda rng: _spans_inputs(rng, (0, 1), (13, 2)),
    "when words repeat": lambda rng: (["the", "old", "queen"] * 5, [(6, 2), (10, 1)], SENTINELS),
}, (
    ("The words of a span are still in the source. A sentinel stands in their place.",
     "sentinels[i]]\n        target", "sentinels[i], *words[start:start + length]]\n        target"),
    ("The target lacks its last sentinel, which says that no span follows: sentinels[len(spans)].",
     "[*target, sentinels[len(spans)]]", "target"),
    ("The words behind the last span are lost: add words[end:] to the source.", "source + words[end:]", "source"),
    ("The words before a span come from the beginning of the sentence each time: they begin where the last span ended.",
     "words[end:start]", "words[:start]"),
    ("In the target the sentinel stands behind its span. It comes first: <X>, then the words that <X> hides.",
     "[sentinels[i], *words[start:start + length]]", "[*words[start:start + length], sentinels[i]]"),
    ("The target has no sentinels between the spans: each span is announced by its own.",
     "[sentinels[i], *words[start:start + length]]", "words[start:start + length]"),
    ("Every span has the same sentinel. The first span gets sentinels[0], the second sentinels[1].",
     "[*words[end:start], sentinels[i]]", "[*words[end:start], sentinels[0]]",
     "[sentinels[i], *words[start:start + length]]", "[sentinels[0], *words[start:start + length]]"),
    ("The second number of a span is its length, not its end: words[start:start + length].",
     "target += [sentinels[i], *words[start:start + length]]", "target += [sentinels[i], *words[start:length]]",
     "end = start + length", "end = length"),
    ("In the target the length is taken for an end. A span's second number is its length: words[start:start + length].",
     "target += [sentinels[i], *words[start:start + length]]", "target += [sentinels[i], *words[start:length]]"),
    ("The last sentinel is always the third. It is the one after those that were used: sentinels[len(spans)].",
     "sentinels[len(spans)]", "sentinels[-1]"),
), reasons={
    "when words repeat":
        "A span is looked up by its first word, which may stand elsewhere, too. Its place is known: words[end:start].",
})


def factorised(ids, table, up):
    """Ids ``(B, T)``, table ``(V, e)``, up ``(e, d)`` to vectors ``(B, T, d)`` (Lan et al. 2020, section 3.1)."""
    return table[ids] @ up


def _table_inputs(rng, B=None):
    b, T, V, e, d = sizes(rng, 5)
    return torch.randint(V, (B or b, T), generator=rng), randn(rng, V, e), randn(rng, e, d)


FACTORISED = Exercise(factorised, {"x": "B, T, d"}, {
    "on ordinary inputs": _table_inputs,
    "with a single text (B = 1)": lambda rng: _table_inputs(rng, 1),
}, (
    ("The rows are normed first. Only the look-up and the product are asked for.", "table[ids]",
     "F.normalize(table[ids], dim=-1)"),
    ("The vectors are scaled. Lesson 04 multiplied by a root; here nothing is.", "table[ids] @ up",
     "table[ids] @ up * up.size(1) ** 0.5"),
    ("The ids are shifted by one: id i is row i of the table.", "table[ids]", "table[ids - 1]"),
), timed=lambda rng: (torch.randint(30_000, (8, 32), generator=rng), randn(rng, 30_000, 128), randn(rng, 128, 256)),
   why_slow="The whole table, or a one-hot matrix, is multiplied. Look up the narrow vectors first.")


def analogy(table, asked, exclude):
    """Rows ``(V, d)``, ids a, b, c ``(n, 3)`` to ids ``(n,)``: nearest to b - a + c (Mikolov et al. 2013, sec. 4)."""
    a, b, c = table[asked].unbind(dim=1)                                # (n, d) each
    scores = (b - a + c) @ table.T                                      # (n, V)
    if exclude:
        scores = scores.scatter(1, asked, float("-inf"))
    return scores.argmax(dim=1)


def _questions(rng, exclude=True, n=None):
    many, d = sizes(rng, 2)
    table = F.normalize(randn(rng, 40, d + 9), dim=-1)
    asked = torch.stack([torch.randperm(40, generator=rng)[:3] for _ in range(n or many + 3)])
    return table, asked, exclude                                       # 40, 11 to 16, 5 to 10 and 3: all differ


def _far_off(rng):
    """One question; every other row points away from where its answer should lie."""
    table, asked, exclude = _questions(rng, n=1)
    a, b, c = own = table[asked[0]]
    table = F.normalize(table - 2 * (b - a + c), dim=-1)
    table[asked[0]] = own
    return table, asked, exclude


ANALOGY = Exercise(analogy, {"answers": "n"}, {
    "on ordinary inputs": _questions,
    "when the inputs may be answers (exclude=False)": lambda rng: _questions(rng, exclude=False),
    "with a single question (n = 1), far from every answer": _far_off,
}, (
    ("The difference has the wrong sign: the step from a to b is b - a.", "b - a + c", "a - b + c"),
    *each("The step from a to b is the difference b - a, and it is made from c: b - a + c.",
          *(("b - a + c", other) for other in ("b - a - c", "b - c + a", "b + a + c"))),
    ("exclude is not used: with exclude=True none of a, b and c may be the answer.", "if exclude:", "if False:"),
    ("The inputs are excluded whatever is asked for. With exclude=False they may be answers.", "if exclude:",
     "if True:"),
    *each("Only c is excluded, or only a and b. With exclude=True none of the three may be the answer.",
          ("(1, asked,", "(1, asked[:, 2:],"), ("(1, asked,", "(1, asked[:, :2],")),
    ("The words of all questions are excluded. Each row of the scores excludes its own three.",
     "scatter(1, asked, ", "index_fill(1, asked.flatten(), "),
    ("This is the farthest word: take the largest cosine.", ".argmax(", ".argmin("),
), reasons={
    "with a single question (n = 1), far from every answer":
        "An excluded word has the score 0, which is the largest where all cosines are negative. Give it -inf.",
}, timed=lambda rng: (F.normalize(randn(rng, 5000, 64), dim=-1), torch.randint(5000, (200, 3), generator=rng), True))


def bilm_loss(ahead, back, ids):
    """Logits ``(B, T, V)`` of both readers at each word, ids ``(B, T)`` to the mean loss (Peters et al. 2018, 3.1)."""
    following = F.cross_entropy(ahead[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    previous = F.cross_entropy(back[:, 1:].flatten(0, 1), ids[:, :-1].flatten())
    return (following + previous) / 2


def _logits(rng, B=None):
    b, T, V = sizes(rng, 3)
    shape = B or b, T, V + 6
    return randn(rng, *shape), randn(rng, *shape), torch.randint(V + 6, shape[:2], generator=rng)


AHEAD = "ahead[:, t] has read the words 0 to t. It guesses word t + 1: ahead[:, :-1] with ids[:, 1:]."
BACK = "back[:, t] has read the words T - 1 to t. It guesses word t - 1: back[:, 1:] with ids[:, :-1]."
OF_AHEAD, OF_BACK = "ahead[:, :-1].flatten(0, 1), ids[:, 1:]", "back[:, 1:].flatten(0, 1), ids[:, :-1]"
COPIES, COPIES_BACK = (OF_AHEAD, "ahead.flatten(0, 1), ids"), (OF_BACK, "back.flatten(0, 1), ids")
PREVIOUS, FOLLOWING = (OF_AHEAD, OF_BACK.replace("back", "ahead")), (OF_BACK, OF_AHEAD.replace("ahead", "back"))

BILM_LOSS = Exercise(bilm_loss, {"loss": ""}, {
    "on ordinary inputs": _logits,
    "with one sentence (B = 1)": lambda rng: _logits(rng, 1),
}, (
    *each(f"A reader guesses the word that it has just read, or both do. That is copying. {AHEAD} {BACK}",
          COPIES, COPIES_BACK, (*COPIES, *COPIES_BACK)),
    (f"Both readers guess the following word. {BACK}", *FOLLOWING),
    (f"Both readers guess the previous word. {AHEAD}", *PREVIOUS),
    (f"Each reader guesses a word that it has read. {AHEAD} {BACK}", *PREVIOUS, *FOLLOWING),
    *each("Only one reader counts: take the mean of both losses.",
          *(("(following + previous) / 2", one) for one in ("following", "previous"))),
    ("The two losses are added. Take their mean: nats per guess.", " / 2", ""),
    ("cross_entropy takes logits and makes the softmax itself. Here it gets probabilities.",
     "ahead[:, :-1]", "ahead[:, :-1].softmax(-1)", "back[:, 1:]", "back[:, 1:].softmax(-1)"),
    ("The losses are summed over the words. Take the mean, as cross_entropy does.",
     "ids[:, 1:].flatten()", "ids[:, 1:].flatten(), reduction='sum'",
     "ids[:, :-1].flatten()", "ids[:, :-1].flatten(), reduction='sum'"),
), timed=lambda rng: (randn(rng, 64, 10, 370), randn(rng, 64, 10, 370), torch.randint(370, (64, 10), generator=rng)))


def accumulated(gradients, counts):
    """Gradients ``(k, n)`` of the mean losses of k parts, counts ``(k,)`` of their examples to that of all ``(n,)``."""
    return (gradients * counts.unsqueeze(1)).sum(dim=0) / counts.sum()


def _parts_inputs(rng, k=None, count=None):
    parts, n = sizes(rng, 2)
    parts = k or parts
    counts = torch.full((parts,), count) if count else torch.randint(1, 9, (parts,), generator=rng)
    return randn(rng, parts, n + 7), counts


ACCUMULATED = Exercise(accumulated, {"gradient": "n"}, {
    "on ordinary inputs": _parts_inputs,
    "when all parts are as large": lambda rng: _parts_inputs(rng, count=4),
    "with a single part": lambda rng: _parts_inputs(rng, 1),
}, (
    ("This is the plain mean: a small part counts as much as a large one. Each counts with its examples.",
     "(gradients * counts.unsqueeze(1)).sum(dim=0) / counts.sum()", "gradients.mean(dim=0)"),
    ("The gradients are added up. That is the gradient of a sum, not of the mean.",
     "(gradients * counts.unsqueeze(1)).sum(dim=0) / counts.sum()", "gradients.sum(dim=0)"),
    ("The weighted sum is not divided: divide by the number of all examples.", " / counts.sum()", ""),
    ("It is divided by the number of parts. Divide by the number of all examples.", "counts.sum()", "len(counts)"),
    ("Small parts count more than large ones: multiply by the counts, do not divide by them.",
     "(gradients * counts.unsqueeze(1)).sum(dim=0) / counts.sum()",
     "(gradients / counts.unsqueeze(1)).sum(dim=0) / (1 / counts).sum()"),
))


LESSON_07 = (RMS_NORM, SWIGLU, INDUCTION_SCORES, SILENCED, ONE_STEP, CORRUPT, FACTORISED,
             ANALOGY, BILM_LOSS, ACCUMULATED)
