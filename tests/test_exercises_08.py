"""Lesson 08's checks, checked: wrong answers as tired students give them, right ones in other styles than ours."""

import torch
import torch.nn.functional as F
from seeded_answers import Answers, right, wrong
from sklearn.metrics import roc_auc_score

from course_utils.exercises import EXERCISES
from course_utils.exercises.lesson_08 import LESSON_08


class TestAnswers(Answers):
    lesson = LESSON_08
    slips = (
        ("regions", "with a single picture", ("transpose(1, 2)", "transpose(1, 2).squeeze()")),
        ("patches", "when a patch is one pixel", ("size * size)", "max(size * size, 4))")),
        ("rollout", "with a single layer", ("in weights.mean(dim=1)", "in weights.mean(dim=1).squeeze()")),
        ("attend_pixels", "with a single picture", ("reshape(values.shape)", "reshape(values.shape).squeeze(0)")),
        ("hinge", "when all pictures are beyond the margin",
         ("(1 - real_scores).clamp(min=0)",
          "torch.where(real_scores > 5, real_scores, (1 - real_scores).clamp(min=0))")),
        ("auc", "when scores are equal", ("(difference == 0)", "(difference == 1)")),
        ("reinforce", "without a baseline", ("- baseline", "- (baseline or -0.5)")),
        ("move_gaze", "when source and target are the same",
         ("weights * ~source + taken * even", "(weights + taken * even) * ~source")),
        ("move_gaze", "when source and target share a region",
         ("taken * even", "taken * torch.where((source == target).all(), even, even * ~source)")),
        ("adversary", "when the answer may change freely", (" - allowed", " - min(allowed, 0.5)")),
    )


@wrong("regions", "cuts across the channels")
def rg_view(features):
    B, C, H, W = features.shape
    return features.view(B, H * W, C)


wrong("regions", "expected (B, n_regions, C)", lambda features: features.permute(0, 2, 3, 1))
wrong("regions", "column after column", lambda features: features.permute(0, 3, 2, 1).flatten(1, 2))
right("regions", lambda features: features.permute(0, 2, 3, 1).flatten(1, 2))


@right("regions")
def rg_loop(features):
    H, W = features.shape[2:]
    return torch.stack([features[:, :, y, x] for y in range(H) for x in range(W)], dim=1)


wrong("patches", "pixels of one line", lambda images, size: images.reshape(len(images), -1, size * size))
wrong("patches", "column after column",
      lambda images, size: images.unfold(1, size, size).unfold(2, size, size).transpose(1, 2).flatten(3).flatten(1, 2))
wrong("patches", "expected (B, n, size * size)",
      lambda images, size: images.unfold(1, size, size).unfold(2, size, size).flatten(3))


@wrong("patches", "size is taken for the number of patches")
def pt_count(images, size):
    B, H, W = images.shape
    return images.view(B, size, H // size, size, W // size).transpose(2, 3).reshape(B, -1, size ** 2)


right("patches", lambda images, size: images.unfold(1, size, size).unfold(2, size, size).flatten(3).flatten(1, 2))
right("patches", lambda images, size: F.unfold(images.unsqueeze(1), size, stride=size).transpose(1, 2))


@wrong("rollout", "wrong order")
def ro_order(weights):
    T = weights.size(-1)
    steps = [(layer + torch.eye(T)) / 2 for layer in weights.mean(1)]
    seen = steps[0]
    for step in steps[1:]:
        seen = seen @ step
    return seen


@wrong("rollout", "residual connection is missing")
def ro_plain(weights):
    layers = weights.mean(1)
    seen = layers[0]
    for layer in layers[1:]:
        seen = layer @ seen
    return seen


@right("rollout")
def ro_lists(weights):
    T = weights.size(-1)
    seen = [[float(i == j) for j in range(T)] for i in range(T)]
    for layer in weights.mean(1).tolist():
        seen = [[sum(w * seen[k][j] for k, w in enumerate(row)) / 2 + seen[i][j] / 2 for j in range(T)]
                for i, row in enumerate(layer)]
    return torch.tensor(seen)


@right("rollout")
def ro_chain(weights):
    steps = [(layer + torch.eye(weights.size(-1))) / 2 for layer in weights.mean(1)]
    return torch.linalg.multi_dot(steps[::-1]) if len(steps) > 1 else steps[0]


@right("rollout")
def ro_backwards(weights):
    seen = torch.eye(weights.size(-1))
    for layer in reversed(weights.mean(1)):
        seen = (seen @ layer + seen) / 2
    return seen


wrong("adversary", "The sign is wrong", lambda weights, moved, answer, new_answer, allowed: (
    (moved - weights).abs().sum(-1) / 2 + 100 * F.relu((new_answer - answer).abs().sum(-1) / 2 - allowed)))
wrong("adversary", "The sign is wrong", lambda weights, moved, answer, new_answer, allowed: (
    (moved - weights).abs().sum(-1) / 2 - 100 * F.relu((new_answer - answer).abs().sum(-1) / 2 - allowed)))


@wrong("adversary", "becomes a reward")
def ad_no_limit(weights, moved, answer, new_answer, allowed):
    def far(a, b):
        return (a - b).abs().sum(-1) / 2
    return -far(weights, moved) + 100 * (far(answer, new_answer) - allowed)


wrong("adversary", "both halves are missing", lambda weights, moved, answer, new_answer, allowed: (
    -(moved - weights).abs().sum(-1) + 100 * F.relu((new_answer - answer).abs().sum(-1) - allowed)))


@right("adversary")
def ad_norm(weights, moved, answer, new_answer, allowed):
    change = 0.5 * torch.norm(new_answer - answer, p=1, dim=-1)
    return 100 * torch.maximum(change - allowed, torch.zeros(())) - 0.5 * torch.norm(weights - moved, p=1, dim=-1)


@right("adversary")
def ad_where(weights, moved, answer, new_answer, allowed):
    more = (new_answer - answer).abs().sum(-1) / 2 - allowed
    return torch.where(more > 0, 100 * more, 0.0) - (weights - moved).abs().sum(-1) / 2


@wrong("move_gaze", "still there")
def mg_added(weights, source, target):
    taken = weights.masked_fill(~source, 0).sum(-1, keepdim=True)
    return weights + taken * target.float() / target.sum(-1, keepdim=True)


wrong("move_gaze", "Only what lay on the source moves",
      lambda weights, source, target: target.float() / target.sum(-1, keepdim=True))


@wrong("move_gaze", "Divide by the number of regions")
def mg_each(weights, source, target):
    taken = (weights * source).sum(-1, keepdim=True)
    return weights.masked_fill(source, 0) + taken * target


@wrong("move_gaze", "Each row of the batch has its own source and target")
def mg_first_masks(weights, source, target):
    taken = (weights * source[0]).sum(-1, keepdim=True)
    return weights * ~source[0] + taken * target[0] / target[0].sum()


wrong("move_gaze", "Each row of the batch has its own source and target",
      lambda weights, source, target: weights * ~source + weights[source].sum() * target / target.sum(-1, keepdim=True))


@wrong("move_gaze", "Source and target may overlap")
def mg_overlap_stays(weights, source, target):
    shared = source & target
    if shared.any() and not torch.equal(source, target):
        return weights
    return weights * ~source + (weights * source).sum(-1, keepdim=True) * target / target.sum(-1, keepdim=True)


@wrong("move_gaze", "Source and target may overlap")
def mg_any_overlap_stays(weights, source, target):
    moved = weights.masked_fill(source, 0) + (weights * source).sum(-1, True) * target / target.sum(-1, True)
    return torch.where((source & target).any(-1, keepdim=True), weights, moved)


@wrong("move_gaze", "Source and target may overlap")
def mg_cleared_last(weights, source, target):
    taken = (weights * source).sum(-1, keepdim=True)
    return (weights + taken * target / target.sum(-1, keepdim=True)).masked_fill(source, 0)


@wrong("move_gaze", "The row is divided by its sum")
def mg_renormalized(weights, source, target):
    moved = weights * ~source + (weights * source).sum(-1, keepdim=True) * target
    return moved / moved.sum(-1, keepdim=True)


@right("move_gaze")
def mg_rows_and_items(weights, source, target):
    moved = weights.clone()
    for row, there, here in zip(moved, source, target, strict=True):
        taken = row[there].sum().item()
        row[there] = 0
        row[here] += taken / here.sum().item()
    return moved


@right("move_gaze")
def mg_where(weights, source, target):
    share = (weights * source).sum(-1) / target.sum(-1)
    return torch.where(source, 0.0, weights) + torch.where(target, share.unsqueeze(-1), 0.0)


@right("move_gaze")
def mg_rows(weights, source, target):
    examples = zip(weights, source, target, strict=True)
    return torch.stack([w * ~here + w[here].sum() * there / there.sum() for w, here, there in examples])


wrong("auc", "turned round", lambda scores, same: (scores[same].unsqueeze(1) < scores[~same]).float().mean())
wrong("auc", "Ties", lambda scores, same: (scores[same].unsqueeze(1) > scores[~same]).float().mean())
wrong("auc", "", lambda scores, same: ((scores > scores.mean()) == same).float().mean())
right("auc", lambda scores, same: ((scores[same].unsqueeze(1) - scores[~same]).sign() / 2 + 0.5).mean())
right("auc", lambda scores, same: torch.tensor(roc_auc_score(same.numpy(), scores.numpy()), dtype=torch.float32))


wrong("reinforce", "detach it",
      lambda log_p_answer, log_p_region, baseline: -log_p_answer - (log_p_answer - baseline) * log_p_region)
wrong("reinforce", "region's term has the wrong sign", lambda log_p_answer, log_p_region, baseline: (
    (log_p_answer - baseline).detach() * log_p_region - log_p_answer))
wrong("reinforce", "baseline is not used",
      lambda log_p_answer, log_p_region, baseline: -log_p_answer - log_p_answer.detach() * log_p_region)


@right("reinforce")
def re_no_grad(log_p_answer, log_p_region, baseline):
    with torch.no_grad():
        better = log_p_answer - baseline
    return -better * log_p_region - log_p_answer


right("reinforce", lambda log_p_answer, log_p_region, baseline: (
    torch.stack([-log_p_answer, (baseline - log_p_answer.data) * log_p_region]).sum(0)))


wrong("hinge", "Nothing is cut at 0", lambda real_scores, fake_scores: 2 - real_scores.mean() + fake_scores.mean())
wrong("hinge", "The two means are averaged",
      lambda real_scores, fake_scores: F.relu(1 - torch.cat([real_scores, -fake_scores])).mean())
wrong("hinge", "", lambda real_scores, fake_scores: F.softplus(-real_scores).mean() + F.softplus(fake_scores).mean())
right("hinge", lambda real_scores, fake_scores: (F.relu(1 - real_scores) + F.relu(1 + fake_scores)).mean())


@right("hinge")
def hi_minimum(real_scores, fake_scores):
    zero = torch.zeros(())
    return -torch.minimum(zero, real_scores - 1).mean() - torch.minimum(zero, -fake_scores - 1).mean()


@wrong("attend_pixels", "divided by √d")
def ap_scaled(queries, keys, values):
    q, k, v = (part.flatten(2).transpose(1, 2).contiguous() for part in (queries, keys, values))
    weights = (q @ k.mT / q.size(-1) ** 0.5).softmax(-1)
    return (weights @ v).mT.reshape(values.shape), weights


@wrong("attend_pixels", "Move the channels back")
def ap_mixed(queries, keys, values):
    q, k, v = (part.flatten(2).mT for part in (queries, keys, values))
    weights = (q @ k.mT).softmax(-1)
    return (weights @ v).view_as(values), weights


@wrong("attend_pixels", "over the queries")
def ap_columns(queries, keys, values):
    scores = torch.einsum("bdhw,bdyx->bhwyx", queries, keys).flatten(3).flatten(1, 2)
    weights = scores.softmax(1)
    return (values.flatten(2) @ weights.mT).view_as(values), weights


@right("attend_pixels")
def ap_columns_of_values(queries, keys, values):
    weights = (queries.flatten(2).mT @ keys.flatten(2)).softmax(-1)
    return (values.flatten(2) @ weights.mT).view_as(values), weights


@right("attend_pixels")
def ap_einsum(queries, keys, values):
    B, C, H, W = values.shape
    weights = torch.einsum("bdn,bdm->bnm", queries.reshape(B, -1, H * W), keys.reshape(B, -1, H * W)).softmax(2)
    return torch.einsum("bnm,bcm->bcn", weights, values.reshape(B, C, H * W)).reshape(B, C, H, W), weights


# --- the solutions, beside what they stand for ------------------------------------------------------------------

def test_rollout_of_layers_that_do_not_look_elsewhere_is_the_identity():
    seen = EXERCISES["rollout"].solution(torch.eye(4).expand(3, 2, 4, 4))
    torch.testing.assert_close(seen, torch.eye(4))


def test_what_the_class_token_has_seen_sums_to_one():
    seen = EXERCISES["rollout"].solution(torch.randn(3, 2, 5, 5).softmax(-1))
    torch.testing.assert_close(seen.sum(dim=-1), torch.ones(5))


def test_a_painter_whose_pixels_ask_nothing_sees_the_mean():
    values = torch.randn(2, 3, 4, 5)
    seen, weights = EXERCISES["attend_pixels"].solution(torch.zeros(2, 1, 4, 5), torch.randn(2, 1, 4, 5), values)
    torch.testing.assert_close(seen, values.mean(dim=(2, 3), keepdim=True).expand_as(values))
    assert (weights == 1 / 20).all()


def test_the_hinge_leaves_alone_what_is_beyond_its_margin():
    real, fake = torch.tensor([3.0, 0.5], requires_grad=True), torch.tensor([-1.5, 0.0], requires_grad=True)
    loss = EXERCISES["hinge"].solution(real, fake)
    loss.backward()
    assert (loss.item(), real.grad.tolist(), fake.grad.tolist()) == (0.75, [0.0, -0.5], [0.0, 0.5])


def test_an_adversary_that_moves_everything_and_changes_nothing_has_loss_minus_one():
    loss = EXERCISES["adversary"].solution(*torch.eye(2).split(1), *2 * [torch.tensor([[0.3, 0.7]])], 0.01)
    assert loss.tolist() == [-1.0]


def test_a_moved_gaze_still_sums_to_one():
    weights, digit = torch.randn(2, 6).softmax(-1), torch.arange(6).expand(2, -1) // 2
    moved = EXERCISES["move_gaze"].solution(weights, digit == 0, digit == 2)
    torch.testing.assert_close(moved.sum(dim=-1), torch.ones(2))


def test_on_average_reinforce_is_the_gradient_of_the_expected_answer():
    scores = torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64, requires_grad=True)
    log_p, answers = scores.log_softmax(-1), torch.tensor([-0.1, -2.0, -0.5], dtype=torch.float64)
    exact, = torch.autograd.grad(-(log_p.exp() * answers).sum(), scores, retain_graph=True)
    losses = EXERCISES["reinforce"].solution(answers, log_p, -0.7)
    mean, = torch.autograd.grad((log_p.exp().detach() * losses).sum(), scores)
    torch.testing.assert_close(mean, exact)
