"""Lesson 08, beyond text: the exercises, their solutions and the ways in which they go wrong."""

import torch

from .engine import Exercise, each
from .inputs import randn, sizes


def regions(features):
    """A CNN's features ``(B, C, H, W)`` as a sentence of regions ``(B, H * W, C)``, row after row (Xu et al. 2015)."""
    return features.flatten(2).transpose(1, 2)


def _features(rng, B=None):
    b, C, H, W = sizes(rng, 4)
    return (randn(rng, B or b, C, H, W),)


REGIONS = Exercise(regions, {"keys": "B, n_regions, C"}, {
    "on ordinary inputs": _features,
    "with a single picture (B = 1)": lambda rng: _features(rng, 1),
}, (
    ("The shape is right, but the numbers are mixed up: a reshape alone cuts across the channels. Move the channels to "
     "the end first, or flatten and then transpose.", "transpose(1, 2)",
     "reshape(len(features), -1, features.size(1))"),
    ("The regions go column after column. Row after row: H is the slower of the two.", "features.flatten(2)",
     "features.transpose(2, 3).flatten(2)"),
    ("The regions' order is reversed.", "transpose(1, 2)", "transpose(1, 2).flip(1)"),
))


def patches(images, size):
    """Images ``(B, H, W)`` as sentences of squares ``(B, n, size²)``, row after row (Dosovitskiy et al. 2021)."""
    B, H, W = images.shape
    rows = images.reshape(B, H // size, size, W // size, size)          # (B, row, y, column, x)
    return rows.transpose(2, 3).reshape(B, -1, size * size)


def _images(rng, size=None):
    B, h, w, n = sizes(rng, 4)
    size = n if size is None else size
    return randn(rng, B, h * size, w * size), size


PATCHES = Exercise(patches, {"patches": "B, n, size * size"}, {
    "on ordinary inputs": _images,
    "when a patch is one pixel": lambda rng: _images(rng, 1),
}, (
    ("The shape is right, but a patch holds pixels of one line: y and the column must change places before the last "
     "reshape.", ".transpose(2, 3)", ""),
    ("Rows and columns are swapped: the patches go column after column.", "transpose(2, 3)", "permute(0, 3, 1, 2, 4)"),
    ("Within a patch x and y are swapped: its pixels go row after row, too.", "transpose(2, 3)",
     "permute(0, 1, 3, 4, 2)"),
    ("H and W are swapped in the first reshape.", "H // size, size, W // size, size",
     "W // size, size, H // size, size"),
    ("size is taken for the number of patches in a row. It is the side of a patch, in pixels.",
     "H // size, size, W // size, size", "size, H // size, size, W // size"),
))


def rollout(weights):
    """Weights ``(n_layers, n_heads, T, T)`` to ``(T, T)``: through all layers, residuals counted as half (Abnar and
    Zuidema 2020)."""
    T = weights.size(-1)
    seen = torch.eye(T)
    for layer in weights.mean(dim=1):                                   # (T, T)
        seen = (0.5 * layer + 0.5 * torch.eye(T)) @ seen
    return seen


def _layers(rng, n_layers=None):
    n, n_heads, T = sizes(rng, 3)
    return (randn(rng, n_layers or n, n_heads, T, T).softmax(-1),)


ROLLOUT = Exercise(rollout, {"seen": "T, T"}, {
    "on ordinary inputs": _layers,
    "with a single layer": lambda rng: _layers(rng, 1),
}, (
    ("The product is in the wrong order: a later layer stands on the left, layer @ seen.",
     "(0.5 * layer + 0.5 * torch.eye(T)) @ seen", "seen @ (0.5 * layer + 0.5 * torch.eye(T))"),
    ("The residual connection is missing: half of what a layer passes on never went through its attention.",
     "(0.5 * layer + 0.5 * torch.eye(T))", "layer"),
    ("The identity is added, but the rows now sum to 2: take half of each.", "(0.5 * layer + 0.5 * torch.eye(T))",
     "(layer + torch.eye(T))"),
    ("Only the attention is halved: the identity needs its half, too.", "0.5 * torch.eye(T)", "torch.eye(T)"),
    ("The product is element-wise. Composition is a matrix product: @.", "@ seen", "* seen"),
    ("The layers are added up. What passes through both is their matrix product.", "@ seen", "+ seen"),
    ("Only the last layer is used.", "@ seen", "@ torch.eye(T)"),
    ("The layers are averaged, and the heads multiplied: average over heads, axis 1.", "weights.mean(dim=1)",
     "weights.mean(dim=0)"),
    ("The heads are summed, not averaged.", "mean(dim=1)", "sum(dim=1)"),
    ("The largest head is taken, not the mean: the rows no longer sum to 1.", "mean(dim=1)", "amax(dim=1)"),
    ("The weights are transposed: rows ask, columns are looked at.", "0.5 * layer +", "0.5 * layer.T +"),
), measures=True)


def adversary(weights, moved, answer, new_answer, allowed):
    """Weights ``(B, T)``, answers ``(B, C)`` to a loss ``(B,)``: move the attention, keep the answer (after Jain and
    Wallace 2019, section 4.2.2)."""
    distance = (moved - weights).abs().sum(dim=-1) / 2                  # total variation, 0 to 1
    change = (new_answer - answer).abs().sum(dim=-1) / 2
    return -distance + 100 * (change - allowed).clamp(min=0)


def _attack(rng, allowed=0.1):
    B, T, C, _ = sizes(rng, 4)
    weights, moved = (randn(rng, B, T).softmax(-1) for _ in range(2))
    answer, new_answer = (randn(rng, B, C).softmax(-1) for _ in range(2))
    return weights, moved, answer, new_answer, allowed


ADVERSARY = Exercise(adversary, {"loss": "B"}, {
    "on ordinary inputs": _attack,
    "when the answer may change freely (allowed = 1)": lambda rng: _attack(rng, 1.0),
}, (
    *each("The sign is wrong: a loss is made small, and here the distance is to grow.", ("-distance", "distance"),
          ("-distance + 100", "distance - 100")),
    ("The answer is not held: without the second term the attention may go anywhere.",
     " + 100 * (change - allowed).clamp(min=0)", ""),
    ("The penalty becomes a reward below the limit: only what exceeds `allowed` counts, clamp(min=0).",
     ".clamp(min=0)", ""),
    ("The penalty has the wrong sign: it rewards an answer that changes.", "+ 100", "- 100"),
    ("`allowed` is not used: a small change is free.", "(change - allowed)", "change"),
    *each("A half is missing, or both halves are missing: the sum of absolute differences counts every share twice.",
          ("weights).abs().sum(dim=-1) / 2", "weights).abs().sum(dim=-1)"),
          ("weights).abs().sum(dim=-1) / 2", "weights).abs().sum(dim=-1)",
           "- answer).abs().sum(dim=-1) / 2", "- answer).abs().sum(dim=-1)"),
          ("- answer).abs().sum(dim=-1) / 2", "- answer).abs().sum(dim=-1)")),
    ("The mean over the keys is taken: it gets smaller the longer the sentence is. Take the sum.",
     "(moved - weights).abs().sum", "(moved - weights).abs().mean"),
    ("Without absolute values the differences sum to 0, because both rows sum to 1.", "(moved - weights).abs()",
     "(moved - weights)"),
    ("The factor 100 is missing.", "100 * ", ""),
    ("The squares are summed. Total variation has absolute values.", "(moved - weights).abs()",
     "(moved - weights).square()"),
))


def move_gaze(weights, source, target):
    """Weights ``(B, T)``, boolean source and target ``(B, T)``: what lay on the source lies evenly on the target."""
    taken = (weights * source).sum(dim=-1, keepdim=True)    # (B, 1)
    even = target / target.sum(dim=-1, keepdim=True)        # (B, T)
    return weights * ~source + taken * even


def _gaze(rng, shared="none"):
    """Masks that differ from row to row, in place and in number; source and target share a region, all, or none."""
    B, n = sizes(rng, 2)
    rank = torch.rand(B, 5 * n, generator=rng).argsort(dim=1).argsort(dim=1)
    row = torch.arange(B).unsqueeze(1)
    first, last = 2 + row % 3, 5 + row % 3 + row % 2            # 2 to 4 regions in the source, 3 or 4 in the target
    source, target = rank < first + (shared == "one"), (rank >= first) & (rank < last)
    return randn(rng, B, 5 * n).softmax(-1), source, source if shared == "all" else target


MOVE_GAZE = Exercise(move_gaze, {"moved": "B, T"}, {
    "on ordinary inputs": _gaze,
    "when source and target are the same": lambda rng: _gaze(rng, "all"),
    "when source and target share a region": lambda rng: _gaze(rng, "one"),
}, (
    ("What lay on the source is still there, so the rows sum to more than 1. Take it away: weights * ~source.",
     "weights * ~source", "weights"),
    ("What was taken from the source is put nowhere: the rows sum to less than 1.", " + taken * even", ""),
    ("Each region of the target gets all that was taken. Divide by the number of regions in the target.",
     " / target.sum(dim=-1, keepdim=True)", ""),
    *each("Each row of the batch has its own source and target: sum over the last axis, dim=-1, and use the masks of "
          "all rows.",
          ("weights * source", "weights * source[:1]", "target / target.sum", "target[:1] / target[:1].sum", "~source",
           "~source[:1]"), ("(weights * source).sum(dim=-1, keepdim=True)", "(weights * source).sum()"),
          ("target.sum(dim=-1, keepdim=True)", "target.sum()")),
    ("The row is divided by its sum, which changes what was to stay. Divide the target by its sum instead.",
     " / target.sum(dim=-1, keepdim=True)", "", "weights * ~source + taken * even",
     "(weights * ~source + taken * even) / (weights * ~source + taken * even).sum(dim=-1, keepdim=True)"),
    *each("The target gets too much. Only what lay on the source moves; the rest stays where it is.",
          ("weights * ~source + taken * even", "even"), ("taken * even", "even")),
    ("Source and target are swapped.", "weights * source", "weights * target", "target / target.sum",
     "source / source.sum", "~source", "~target"),
    ("The target's own attention is lost: add to what it had.", "weights * ~source", "weights * ~(source | target)"),
    ("Even means the same for each region of the target, not in proportion to what it had.",
     "target / target.sum(dim=-1, keepdim=True)", "weights * target / (weights * target).sum(dim=-1, keepdim=True)"),
    ("What was taken is divided by the number of regions in the source. Divide it by that of the target.",
     "target / target.sum", "target / source.sum"),
), reasons=dict.fromkeys(("when source and target are the same", "when source and target share a region"), (
    "Source and target may overlap. What lay on a shared region is taken like the rest; then the region gets its "
    "part of what was taken.")), measures=True)


def auc(scores, same):
    """Scores ``(n,)``, boolean same ``(n,)``: how often one of the same scores higher than another; ties count half."""
    difference = scores[same].unsqueeze(1) - scores[~same]              # (n_same, n_other)
    return ((difference > 0).float() + 0.5 * (difference == 0).float()).mean()


def _scores(rng, ties=False):
    n = 6 + 2 * sizes(rng, 1)[0]
    scores, same = randn(rng, n), torch.arange(n) % 3 == 0
    scores = scores + 0.5 * same
    return scores.round() if ties else scores, same


AUC = Exercise(auc, {"area": ""}, {
    "on ordinary inputs": _scores,
    "when scores are equal": lambda rng: _scores(rng, ties=True),
}, (
    ("The order is turned round: the same should have the higher score.", "difference > 0", "difference < 0"),
    ("Ties do not count at all. Each counts half.", " + 0.5 * (difference == 0).float()", ""),
    ("Ties count whole. Each counts half.", "0.5 * (difference", "(difference"),
    ("The differences are averaged: AUC counts how many are above 0.",
     "((difference > 0).float() + 0.5 * (difference == 0).float()).mean()", "difference.mean()"),
    ("The pairs are counted, not their share: take the mean.", ".mean()", ".sum()"),
    ("Each of the same is compared with the mean of the others. Compare it with each.", "scores[~same]",
     "scores[~same].mean()"),
    ("The same are compared with all scores. The others of a pair are those that are not the same, ~same.",
     "scores[~same]", "scores"),
))


def reinforce(log_p_answer, log_p_region, baseline):
    """A loss ``(B,)`` whose gradient is REINFORCE's, for regions that were drawn (Xu et al. 2015, eq. 11 and 12)."""
    reward = log_p_answer.detach() - baseline                           # how much better than usual
    return -(log_p_answer + reward * log_p_region)


def _drawn(rng, baseline=-0.7):
    B = sizes(rng, 1)[0]
    return (*(randn(rng, 2, B).abs().neg().requires_grad_()), baseline)


REINFORCE = Exercise(reinforce, {"loss": "B"}, {
    "on ordinary inputs": _drawn,
    "without a baseline (0)": lambda rng: _drawn(rng, 0.0),
}, (
    ("The reward is a number here, not a path for the gradient: detach it.", ".detach()", ""),
    ("The sign is wrong: a loss is made small, and a good answer is to become more probable.", "return -(", "return ("),
    ("The answer's own term is missing: what answers must learn, too.", "log_p_answer + reward", "reward"),
    ("The region's term is missing: where to look is never learned.", " + reward * log_p_region", ""),
    ("The baseline is not used: the reward is how much better than usual it was.", " - baseline", ""),
    ("The baseline is added. Subtract it.", "- baseline", "+ baseline"),
    ("The reward multiplies the answer's term, too.", "(log_p_answer + reward * log_p_region)",
     "reward * (log_p_answer + log_p_region)"),
    ("The reward is added to the region's logarithm. It multiplies it.", "reward * log_p_region",
     "reward + log_p_region"),
    ("The region's term has the wrong sign: a good answer is to make its region more probable, too.",
     "+ reward * log_p_region", "- reward * log_p_region"),
    ("The region's probability stands in place of its logarithm.", "reward * log_p_region",
     "reward * log_p_region.exp()"),
))


def hinge(real_scores, fake_scores):
    """A discriminator's scores ``(B,)`` of real and of painted pictures to its loss (Zhang et al. 2019, eq. 4)."""
    return (1 - real_scores).clamp(min=0).mean() + (1 + fake_scores).clamp(min=0).mean()


def _judged(rng, far=1.0):
    B = sizes(rng, 1)[0]
    return far + randn(rng, B), -far + randn(rng, B)


HINGE = Exercise(hinge, {"loss": ""}, {
    "on ordinary inputs": _judged,
    "when all pictures are beyond the margin": lambda rng: _judged(rng, 9.0),
}, (
    ("Nothing is cut at 0: a picture that is far on its right side would be pushed further. clamp(min=0) leaves it "
     "alone.", "(1 - real_scores).clamp(min=0)", "(1 - real_scores)", "(1 + fake_scores).clamp(min=0)",
     "(1 + fake_scores)"),
    *each("A sign is wrong, or both: a real picture is to score above 1, a painted one below -1.",
          ("1 + fake_scores", "1 - fake_scores"), ("1 - real_scores", "1 + real_scores"),
          ("1 - real_scores", "1 + real_scores", "1 + fake_scores", "1 - fake_scores")),
    ("The margin is missing: a score just above 0 is not enough, it is to reach 1.", "1 - real_scores", "-real_scores",
     "1 + fake_scores", "fake_scores"),
    ("The mean is taken before the cut: each picture has its own margin.", "(1 - real_scores).clamp(min=0).mean()",
     "(1 - real_scores).mean().clamp(min=0)", "(1 + fake_scores).clamp(min=0).mean()",
     "(1 + fake_scores).mean().clamp(min=0)"),
    *each("One kind of picture is left out.", (" + (1 + fake_scores).clamp(min=0).mean()", ""),
          ("(1 - real_scores).clamp(min=0).mean() + ", "")),
    ("The losses are summed over the pictures. Take the mean of each kind.", "(1 - real_scores).clamp(min=0).mean()",
     "(1 - real_scores).clamp(min=0).sum()", "(1 + fake_scores).clamp(min=0).mean()",
     "(1 + fake_scores).clamp(min=0).sum()"),
    ("The two means are averaged. Add them.", "clamp(min=0).mean() + (1 + fake_scores).clamp(min=0).mean()",
     "clamp(min=0).mean() / 2 + (1 + fake_scores).clamp(min=0).mean() / 2"),
    ("The whole loss has the wrong sign: it is made small.", "return (1", "return -(1", "+ (1 + fake", "- (1 + fake"),
    ("It is cut from above: clamp(min=0) keeps what is above 0.", "(1 - real_scores).clamp(min=0)",
     "(1 - real_scores).clamp(max=0)", "(1 + fake_scores).clamp(min=0)", "(1 + fake_scores).clamp(max=0)"),
))


def attend_pixels(queries, keys, values):
    """Queries and keys ``(B, d, H, W)``, values ``(B, C, H, W)`` to what each pixel saw ``(B, C, H, W)``, and weights
    ``(B, H * W, H * W)`` (Zhang et al. 2019, eq. 1 and 2)."""
    q, k, v = (part.flatten(2).transpose(1, 2) for part in (queries, keys, values))      # (B, H * W, …)
    weights = (q @ k.transpose(1, 2)).softmax(dim=-1)
    return (weights @ v).transpose(1, 2).reshape(values.shape), weights


def _maps(rng, B=None, d=None):
    b, n, C, H, W = sizes(rng, 5)
    shape = B or b, d or n, H, W
    return randn(rng, *shape), randn(rng, *shape), randn(rng, shape[0], C, H, W)


ATTEND_PIXELS = Exercise(attend_pixels, {"seen": "B, C, H, W", "weights": "B, H * W, H * W"}, {
    "on ordinary inputs": _maps,
    "with a single picture (B = 1)": lambda rng: _maps(rng, B=1),
    "with one number per query (d = 1)": lambda rng: _maps(rng, d=1),
}, (
    ("The shape is right, but the result is mixed up: pixels stand before channels. Move the channels back before the "
     "reshape.", "(weights @ v).transpose(1, 2)", "(weights @ v)"),
    ("Queries, keys and values are mixed up: a reshape alone cuts across the channels. Flatten, then transpose.",
     "part.flatten(2).transpose(1, 2)", "part.reshape(len(part), -1, part.size(1))"),
    ("The softmax runs over the queries. Each pixel's weights over the keys, the last axis, sum to 1.",
     "softmax(dim=-1)", "softmax(dim=1)"),
    ("Queries and keys are swapped: rows ask, columns are looked at.", "q @ k.transpose(1, 2)",
     "k @ q.transpose(1, 2)"),
    ("The weights are transposed when they meet the values: row i says what pixel i looks at.", "(weights @ v)",
     "(weights.transpose(1, 2) @ v)"),
    ("There is no softmax: scores are no weights.", ".softmax(dim=-1)", ""),
    ("The scores are divided by √d. Lesson 03 does so; the formula above does not.", "q @ k.transpose(1, 2)",
     "q @ k.transpose(1, 2) / q.size(-1) ** 0.5"),
    ("The values are returned as they came: mix them with the weights.", "(weights @ v).transpose(1, 2)",
     "v.transpose(1, 2)"),
), timed=lambda rng: (randn(rng, 64, 4, 8, 8), randn(rng, 64, 4, 8, 8), randn(rng, 64, 32, 8, 8)))


LESSON_08 = (REGIONS, PATCHES, ROLLOUT, ADVERSARY, MOVE_GAZE, AUC, REINFORCE, HINGE, ATTEND_PIXELS)
