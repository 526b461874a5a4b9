"""Lesson 05's checks, checked: wrong answers as tired students give them, right ones in other styles than ours."""

import math
import random
import re
import string
import warnings
from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from seeded_answers import Answers, right, wrong

from course_utils.data.wordpiece import SPECIALS, WordPiece
from course_utils.exercises import EXERCISES
from course_utils.exercises.engine import edited
from course_utils.exercises.lesson_05 import LESSON_05


class TestAnswers(Answers):
    lesson = LESSON_05
    slips = (
        ("pair_input", "when the second text is empty", ('[*b, "[SEP]"]', '[*b, "[SEP]"] if b else []')),
        ("pair_input", "when the texts are long", ("first, second", "a, b = a[:128], b[:128]\n    first, second")),
        ("split_word", "with long pieces", ("range(len(word),", "range(min(len(word), start + 10),")),
        ("mean_pool", "when numbers of the states are 0", (
            "mask.sum(dim=1, keepdim=True)", "(states * mask.unsqueeze(-1) != 0).sum(dim=1)")),
        ("best_span", "when all logits are far below zero", ("-math.inf", "-100.0")),
        ("scalar_mix", "with one sentence", (".sum(dim=1)", ".sum(dim=1).squeeze()")),
    )
SOLUTION = {exercise.name: exercise.solution for exercise in LESSON_05}


@wrong("pair_input", "segments is [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]; expected [0, 0, 0, 0, 0, 0, 1,")
def pi_zeros(a, b):
    pieces = ["[CLS]", *a, "[SEP]", *b, "[SEP]"]
    return pieces, [0] * len(pieces)


@wrong("pair_input", "when a piece stands in both texts.\nWhy: ")
def pi_by_the_piece(a, b):
    pieces = ["[CLS]", *a, "[SEP]", *b, "[SEP]"]
    segments = [int(piece in b) for piece in pieces]
    segments[-1] = 1
    return pieces, segments


@wrong("pair_input", "`a` was changed")
def pi_in_place(a, b):
    a.insert(0, "[CLS]")
    a.append("[SEP]")
    return a + b + ["[SEP]"], [0] * len(a) + [1] * (len(b) + 1)


@wrong("pair_input", "segments is a Tensor; expected a list")
def pi_tensor(a, b):
    pieces, segments = SOLUTION["pair_input"](a, b)
    return pieces, torch.tensor(segments)


@wrong("pair_input", "Why: The segment is looked up by the piece")
def pi_by_the_first_sep(a, b):
    pieces = f"[CLS] {' '.join(a)} [SEP] {' '.join(b)} [SEP]".split()
    return pieces, [int(i > pieces.index("[SEP]")) for i in range(len(pieces))]


@right("pair_input")
def pi_grown(a, b):
    pieces, segments = ["[CLS]"], [0] * (len(a) + 2)
    pieces += a + ["[SEP]"] + b + ["[SEP]"]
    return pieces, segments + [1] * (len(pieces) - len(segments))


@right("pair_input")
def pi_loop(a, b):
    pieces, segments = ["[CLS]"], [0]
    for number, text in enumerate((a, b)):
        for piece in text:
            pieces.append(piece)
            segments.append(number)
        pieces.append("[SEP]")
        segments.append(number)
    return pieces, segments


def test_a_tuple_for_a_list_gets_no_arbitrary_reason():
    verdict = EXERCISES["pair_input"].judge(lambda a, b: tuple(map(tuple, SOLUTION["pair_input"](a, b))))
    assert "pieces is a tuple; expected a list" in verdict.text
    assert "Why" not in verdict.text


@wrong("split_word", "It raised EndlessLoopError: after 20,000 look-ups")
def sw_endless(word, vocab):
    pieces, start = [], 0
    while start < len(word):
        end = len(word)
        while end > start and ("##" if start else "") + word[start:end] not in vocab:
            end -= 1
        pieces.append(("##" if start else "") + word[start:end])
        start = end
    return pieces


@wrong("split_word", "It raised EndlessLoopError")
def sw_endless_over_the_vocabulary(word, vocab):
    pieces = []
    while word:
        fits = [p for p in vocab if (p.startswith("##") and word.startswith(p[2:]) if pieces else word.startswith(p))]
        if fits:
            pieces.append(max(fits, key=len))
            word = word[len(pieces[-1].removeprefix("##")):]
    return pieces


wrong("split_word", "wrong in capital letters", lambda word, vocab: SOLUTION["split_word"](word.lower(), vocab))


@wrong("split_word", "It raised RecursionError")
def sw_recursion(word, vocab, mark=""):
    end = next((end for end in range(len(word), 0, -1) if mark + word[:end] in vocab), 0)
    return [mark + word[:end], *sw_recursion(word[end:], vocab, "##")]


@wrong("split_word", "`vocab` was changed")
def sw_removes(word, vocab):
    pieces = SOLUTION["split_word"](word, set(vocab))
    vocab.discard(pieces[0])
    return pieces


@right("split_word")
def sw_over_the_vocabulary(word, vocab):
    rest, pieces = word, []
    while rest:
        fits = [p for p in vocab if (("##" + rest).startswith(p) and p[:2] == "##" and len(p) > 2 if pieces
                                     else rest.startswith(p))]
        if not fits:
            return ["[UNK]"]
        pieces.append(max(fits, key=len))
        rest = rest[len(pieces[-1].removeprefix("##")):]
    return pieces


@right("split_word")
def sw_recursive(word, vocab, mark=""):
    if not word:
        return []
    for n in range(len(word), 0, -1):
        if mark + word[:n] in vocab:
            rest = sw_recursive(word[n:], vocab, "##")
            return ["[UNK]"] if rest == ["[UNK]"] else [mark + word[:n], *rest]
    return ["[UNK]"]


def test_split_word_is_what_the_courses_tokenizer_does():
    rng = random.Random(0)
    seen = set()
    for _ in range(300):
        vocab = {mark + "".join(rng.choices("abc", k=rng.randint(1, 3))) for mark in ("", "##") for _ in range(6)}
        word = "".join(rng.choices("abc", k=rng.randint(1, 7)))
        pieces = SOLUTION["split_word"](word, vocab)
        assert pieces == WordPiece([*SPECIALS, *vocab]).cut(word)
        seen.add(min(len(pieces), 3) if pieces != ["[UNK]"] else 0)
    assert seen == {0, 1, 2, 3}


# --- mask_tokens ---------------------------------------------------------------------------------------------

def uniform(ids, generator):
    return torch.rand(ids.shape, generator=generator)


def replaced(ids, asked, mask_id, vocab_size, generator):
    """What a right answer does with the asked places."""
    lot = uniform(ids, generator)
    inputs = ids.clone()
    inputs[asked & (lot < 0.8)] = mask_id
    random_ids = torch.randint(0, vocab_size, ids.shape, generator=generator)
    return torch.where(asked & (lot > 0.9), random_ids, inputs)


@wrong("mask_tokens", "Why: Each place is asked")
def mt_targets_everywhere(ids, can_mask, mask_id, vocab_size, generator, share=0.15):
    asked = (torch.rand(ids.shape, generator=generator) < share) & can_mask
    lot = torch.rand(ids.shape, generator=generator)
    other = torch.randint(vocab_size, ids.shape, generator=generator)
    inputs = torch.where(asked & (lot < 0.8), mask_id, ids)
    return torch.where(asked & (lot >= 0.9), other, inputs), ids


@wrong("mask_tokens", "Why: can_mask is not used")
def mt_padding_too(ids, can_mask, mask_id, vocab_size, generator, share=0.15):
    return SOLUTION["mask_tokens"](ids, torch.ones_like(can_mask), mask_id, vocab_size, generator, share)


@wrong("mask_tokens", "of the special pieces and the padding")
def mt_only_padding_spared(ids, can_mask, mask_id, vocab_size, generator, share=0.15):
    asked = (uniform(ids, generator) < share) & (ids != 0)
    return replaced(ids, asked, mask_id, vocab_size, generator), ids.masked_fill(~asked, -100)


@wrong("mask_tokens", "or one random number decides twice: what is below 0.15 is below 0.8, too")
def mt_one_draw(ids, can_mask, mask_id, vocab_size, generator, share=0.15):
    lot = uniform(ids, generator)
    asked = (lot < share) & can_mask
    inputs = torch.where(asked & (lot < 0.8), mask_id, ids)
    inputs = torch.where(asked & (lot > 0.9), torch.randint(vocab_size, ids.shape, generator=generator), inputs)
    return inputs, torch.where(asked, ids, -100)


@wrong("mask_tokens", "The targets are the new ids")    # its draws are not the fault's
def mt_new_ids_as_targets(ids, can_mask, mask_id, vocab_size, generator, share=0.15):
    asked = (torch.rand(ids.shape, generator=generator) < share) & can_mask
    lot = torch.rand(ids.shape, generator=generator)
    other = torch.randint(vocab_size, ids.shape, generator=generator)
    inputs = torch.where(asked & (lot < 0.8), mask_id, ids)
    inputs = torch.where(asked & (lot >= 0.8) & (lot < 0.9), other, inputs)
    return inputs, inputs.masked_fill(~asked, -100)


@wrong("mask_tokens", "`ids` was changed")
def mt_in_place(ids, can_mask, mask_id, vocab_size, generator, share=0.15):
    asked = (uniform(ids, generator) < share) & can_mask
    targets = ids.masked_fill(~asked, -100)
    ids[asked] = replaced(ids, asked, mask_id, vocab_size, generator)[asked]
    return ids, targets


@wrong("mask_tokens", "of the asked places, 0.0% have the original id as their target")
def mt_targets_after_the_change(ids, can_mask, mask_id, vocab_size, generator, share=0.15):
    asked = (uniform(ids, generator) < share) & can_mask
    inputs = torch.where(asked, mask_id, ids)
    return inputs, torch.where(asked, inputs, -100)


@wrong("mask_tokens", "called with a generator of the same seed, it gives the same in 0.0% of cases")
def mt_generator_half_used(ids, can_mask, mask_id, vocab_size, generator, share=0.15):
    asked = (uniform(ids, generator) < share) & can_mask
    return replaced(ids, asked, mask_id, vocab_size, None), torch.where(asked, ids, -100)


@wrong("mask_tokens", "with a generator of another seed, it gives the same in 100.0% of cases")
def mt_own_generator(ids, can_mask, mask_id, vocab_size, generator, share=0.15):
    generator = torch.Generator().manual_seed(42)
    asked = (uniform(ids, generator) < share) & can_mask
    return replaced(ids, asked, mask_id, vocab_size, generator), torch.where(asked, ids, -100)


@wrong("mask_tokens", "of the asked places,")
def mt_one_lot_for_all(ids, can_mask, mask_id, vocab_size, generator, share=0.15):
    asked = (uniform(ids, generator) < share) & can_mask
    lot = torch.rand((), generator=generator)
    new = mask_id if lot < 0.8 else torch.randint(vocab_size, ids.shape, generator=generator) if lot < 0.9 else ids
    return torch.where(asked, new, ids), torch.where(asked, ids, -100)


@right("mask_tokens")
def mt_bernoulli(ids, can_mask, mask_id, vocab_size, generator, share=0.15):
    asked = torch.bernoulli(can_mask * share, generator=generator).bool()
    masked = asked & torch.bernoulli(torch.full(ids.shape, 0.8), generator=generator).bool()
    changed = asked & ~masked & torch.bernoulli(torch.full(ids.shape, 0.5), generator=generator).bool()
    inputs = ids.clone()
    inputs[masked] = mask_id
    inputs[changed] = torch.randint(vocab_size, (int(changed.sum()),), generator=generator)
    targets = ids.clone()
    targets[~asked] = -100
    return inputs, targets


@right("mask_tokens")
def mt_loops(ids, can_mask, mask_id, vocab_size, generator, share=0.15):
    inputs, targets = ids.tolist(), [[-100] * len(row) for row in ids]
    dice = random.Random(torch.randint(10 ** 9, (), generator=generator).item())
    for b, row in enumerate(can_mask.tolist()):
        for t, can in enumerate(row):
            if can and dice.random() < share:
                targets[b][t], lot = inputs[b][t], dice.random()
                if lot < 0.8:
                    inputs[b][t] = mask_id
                elif lot < 0.9:
                    inputs[b][t] = dice.randrange(vocab_size)
    return torch.tensor(inputs), torch.tensor(targets)


@right("mask_tokens")
def mt_one_number_cut_finely(ids, can_mask, mask_id, vocab_size, generator, share=0.15):
    """One number may decide twice, if the limits are shares of the share."""
    lot = torch.rand(ids.shape, generator=generator)
    asked = can_mask & (lot < share)
    inputs = torch.where(asked & (lot < 0.9 * share), torch.randint(5, vocab_size, ids.shape, generator=generator), ids)
    return torch.where(asked & (lot < 0.8 * share), mask_id, inputs), torch.where(asked, ids, -100)


@right("mask_tokens")
def mt_a_fixed_number_a_text(ids, can_mask, mask_id, vocab_size, generator, share=0.15):
    """As in the authors' code: so and so many places of each text, and another id than before."""
    inputs, targets = ids.clone(), torch.full_like(ids, -100)
    for b in range(len(ids)):
        places = can_mask[b].nonzero().flatten()
        for t in places[torch.randperm(len(places), generator=generator)[:round(share * len(places))]].tolist():
            targets[b, t], lot = ids[b, t], torch.rand((), generator=generator)
            if lot < 0.9:
                other = (ids[b, t] + torch.randint(1, vocab_size, (), generator=generator)) % vocab_size
                inputs[b, t] = mask_id if lot < 0.8 else other
    return inputs, targets


@pytest.mark.parametrize(("size", "phrase"), [
    (lambda ids: ids.shape[1], "below a [MASK], in the next text, 100.0% of the asked places are [MASK]"),
    (lambda ids: (len(ids), 1), "beside a [MASK], 100.0% of the asked places are [MASK]"),
])
def test_each_place_has_a_lot_of_its_own(size, phrase):
    def shared(ids, can_mask, mask_id, vocab_size, generator, share=0.15):
        asked, lot = (uniform(ids, generator) < share) & can_mask, torch.rand(size(ids), generator=generator)
        random_ids = torch.randint(0, vocab_size, ids.shape, generator=generator)
        inputs = torch.where(asked & (lot < 0.8), mask_id, torch.where(asked & (lot > 0.9), random_ids, ids))
        return inputs, torch.where(asked, ids, -100)
    text = EXERCISES["mask_tokens"].judge(shared).text
    assert "One draw serves all places, or a whole text" in text or phrase in text


@pytest.mark.parametrize(("random_ids", "phrase"), [
    (lambda ids, V, g: torch.randint(V, ids.shape[1:], generator=g), "in one column, 100.0% are the same"),
    (lambda ids, V, g: torch.randint(V, (len(ids), 1), generator=g), "in one text, 100.0% are the same"),
    (lambda ids, V, g: 2 * torch.randint(V // 2, ids.shape, generator=g), "of the random ids, 0.0% are odd"),
])
def test_each_place_has_a_random_id_of_its_own(random_ids, phrase):
    def few(ids, can_mask, mask_id, vocab_size, generator, share=0.15):
        asked, lot = (uniform(ids, generator) < share) & can_mask, uniform(ids, generator)
        inputs = torch.where(asked & (lot > 0.9), random_ids(ids, vocab_size, generator), ids)
        return torch.where(asked & (lot < 0.8), mask_id, inputs), torch.where(asked, ids, -100)
    assert phrase in EXERCISES["mask_tokens"].judge(few).text


@pytest.mark.parametrize(("edits", "phrase"), [
    (("(torch.rand(ids.shape,", "(torch.rand(ids.size(1),"), "below an asked place, in the next text, 100.0% are"),
    (("vocab_size, ids.shape", "vocab_size, (1,)"), "100.0% are the same; expected about 0%"),
    (("torch.where(asked,", "torch.where(asked & (inputs != ids),"), "0.0% are as they were; expected about 10%"),
    (("lot < 0.8", "lot < 0.6", "lot >= 0.9", "lot >= 0.7"), "are [MASK] in inputs; expected about 80%"),
    ((") < share", ") < 0.9 * share"), "are asked (their target is not -100); expected about 15%"),
    ((" & can_mask", ""), "are asked (their target is not -100); expected 0%"),
])
def test_the_share_that_is_wrong_is_shown_with_the_right_one(edits, phrase):
    text = EXERCISES["mask_tokens"].judge(edited(SOLUTION["mask_tokens"], *edits)).text
    assert phrase in text


@wrong("mask_tokens", "The random ids are written over the [MASK]")
def mt_overlapping_where(ids, can_mask, mask_id, vocab_size, generator, share=0.15):
    asked, lot = (uniform(ids, generator) < share) & can_mask, uniform(ids, generator)
    inputs = torch.where(asked & (lot < 0.8), mask_id, ids)
    random_ids = torch.randint(vocab_size, ids.shape, generator=generator)
    return torch.where(asked & (lot < 0.9), random_ids, inputs), torch.where(asked, ids, -100)


def test_a_stub_that_would_draw_is_unwritten():
    verdict = EXERCISES["mask_tokens"].judge(lambda ids, can_mask, mask_id, vocab_size, generator, share=0.15: None)
    assert verdict.kind == "unwritten"


def test_a_forgotten_generator_leaves_the_notebooks_random_state():
    state = torch.get_rng_state()
    EXERCISES["mask_tokens"].judge(mt_generator_half_used)
    assert torch.equal(torch.get_rng_state(), state)


def test_right_masking_is_not_rejected_by_chance():
    """Forty other beginnings of the generator."""
    for n in range(1, 41):
        def shifted(ids, can_mask, mask_id, vocab_size, generator, share=0.15, n=n):
            torch.rand(n, generator=generator)
            return SOLUTION["mask_tokens"](ids, can_mask, mask_id, vocab_size, generator, share)
        assert EXERCISES["mask_tokens"].judge(shifted).kind == "right"


@wrong("mean_pool", "is not finite. Look for 0/0, log 0 or infinity")
def mp_repaired_too_late(states, mask):
    mean = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    return mean.nan_to_num()


wrong("mean_pool", "wrong with one text (B = 1).\nWrong shape",
      lambda states, mask: SOLUTION["mean_pool"](states, mask).squeeze())
wrong("mean_pool", "pooled is a list; expected a Tensor",
      lambda states, mask: [row[words].mean(0) for row, words in zip(states, mask, strict=True)])
wrong("mean_pool", "no gradient reaches `states`",
      lambda states, mask: (states.detach() * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1))


@right("mean_pool")
def mp_loop(states, mask):
    pooled = []
    for row, words in zip(states, mask, strict=True):
        pooled.append(row[words].mean(0) if words.any() else row.new_zeros(row.shape[-1]))
    return torch.stack(pooled)


@right("mean_pool")
def mp_masked_fill(states, mask):
    n = mask.float().sum(1, keepdim=True)
    return states.masked_fill(~mask.unsqueeze(2), 0).sum(1) / torch.where(n > 0, n, 1)


@right("mean_pool")
def mp_tiny_divisor(states, mask):
    """As sentence-transformers writes it."""
    expanded = mask.unsqueeze(-1).expand(states.shape).float()
    return torch.sum(states * expanded, 1) / torch.clamp(expanded.sum(1), min=1e-9)


# --- span_f1 -------------------------------------------------------------------------------------------------

def normalised(text):
    text = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def f1_of(p, t, shared):
    if not p or not t:
        return float(p == t)
    if shared == 0:
        return 0.0
    precision, recall = shared / len(p), shared / len(t)
    return 2 * precision * recall / (precision + recall)


def test_span_f1_is_squads():
    rng = random.Random(0)
    words = "the a study Deep deep Learning learning, studies! of".split()
    scores = set()
    for _ in range(300):
        prediction, truth = (" ".join(rng.choices(words, k=rng.randint(0, 4))) for _ in range(2))
        score = SOLUTION["span_f1"](prediction, truth)
        p, t = normalised(prediction), normalised(truth)
        assert score == pytest.approx(f1_of(p, t, (Counter(p) & Counter(t)).total()))
        scores.add(round(score, 2))
    assert len(scores) > 4


@wrong("span_f1", "Why: 0 is divided by 0")
def sf_zero_by_zero(prediction, truth):
    p, t = normalised(prediction), normalised(truth)
    shared = sum((Counter(p) & Counter(t)).values())
    precision, recall = shared / len(p), shared / len(t)
    return 2 * precision * recall / (precision + recall)


@wrong("span_f1", "with years and accents")
def sf_ascii_letters(prediction, truth):
    p, t = (normalised(re.sub("[^A-Za-z ]", "", text)) for text in (prediction, truth))
    return f1_of(p, t, (Counter(p) & Counter(t)).total())


@wrong("span_f1", "Punctuation stays with the words, all or a part")
def sf_some_marks(prediction, truth):
    p, t = ([w for w in re.sub("[.,:;!?\"']", "", text.lower()).split() if w not in {"a", "an", "the"}]
            for text in (prediction, truth))
    return f1_of(p, t, (Counter(p) & Counter(t)).total())


@right("span_f1")
def sf_squad(prediction, truth):
    """As in SQuAD's script (version 2.0)."""
    p, t = normalised(prediction), normalised(truth)
    return f1_of(p, t, sum((Counter(p) & Counter(t)).values()))


@right("span_f1")
def sf_loop(prediction, truth):
    cleaned = []
    for text in (prediction, truth):
        for mark in string.punctuation:
            text = text.replace(mark, "")
        cleaned.append([word for word in text.lower().split() if word not in ["the", "a", "an"]])
    p, t = cleaned
    n, left = len(p) + len(t), list(t)
    shared = 0
    for word in p:
        if word in left:
            left.remove(word)
            shared += 1
    return 2 * shared / n if n else 1


@wrong("best_span", "The two are put in order afterwards")
def bs_sorted(start, end, is_passage, max_len):
    inside = is_passage.nonzero().flatten().tolist()
    first, last = (max(inside, key=lambda place: logits[place]) for logits in (start, end))
    return (first, last) if first < last else (last, first)


@wrong("best_span", "when all logits are far below zero")
def bs_starts_at_zero(start, end, is_passage, max_len):
    best, found = 0.0, (0, 0)
    for i in range(len(start)):
        for j in range(i, min(i + max_len, len(end))):
            if is_passage[i] and is_passage[j] and start[i] + end[j] > best:
                best, found = start[i] + end[j], (i, j)
    return found


@wrong("best_span", "when the highest ends stand before the highest starts")
def bs_five_best(start, end, is_passage, max_len):
    starts, ends = (x.masked_fill(~is_passage, -math.inf).topk(5).indices.tolist() for x in (start, end))
    pairs = [(i, j) for i in starts for j in ends if i <= j < i + max_len]
    return max(pairs, key=lambda pair: start[pair[0]] + end[pair[1]], default=(0, 0))


wrong("best_span", "first is a Tensor; expected an int. int(...) makes one.", lambda start, end, is_passage, max_len: (
    tuple(torch.tensor(SOLUTION["best_span"](start, end, is_passage, max_len)))))


@right("best_span")
def bs_loops(start, end, is_passage, max_len):
    best, found = -math.inf, None
    for i in range(len(start)):
        for j in range(i, min(i + max_len, len(end))):
            if is_passage[i] and is_passage[j] and float(start[i] + end[j]) > best:
                best, found = float(start[i] + end[j]), (i, j)
    return found


@right("best_span")
def bs_triangles(start, end, is_passage, max_len):
    scores = start[:, None] + end
    allowed = torch.ones_like(scores).triu().tril(max_len - 1).bool() & is_passage & is_passage[:, None]
    best = torch.where(allowed, scores, -1e9).argmax()
    return best.item() // len(end), best.item() % len(end)


@right("best_span")
def bs_probabilities(start, end, is_passage, max_len):
    """Products of probabilities order the pairs as sums of logits do."""
    p_start, p_end = (logits.masked_fill(~is_passage, -math.inf).double().softmax(0) for logits in (start, end))
    return divmod(int((p_start[:, None] * p_end).triu().tril(max_len - 1).argmax()), len(end))


def test_a_loop_over_logits_is_judged_without_torchs_warning():
    """PyTorch warns of ``float(start[i] + end[j])`` if a gradient is asked of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert EXERCISES["best_span"].judge(bs_loops).kind == "right"


@wrong("scalar_mix", "axis of one number")
def sm_softmax_over_nothing(states, s, gamma):
    weights = s.view(-1, 1, 1).softmax(-1)
    return gamma * (weights * states).sum(1)


wrong("scalar_mix", "Why: The weights do not line up with the layers",
      lambda states, s, gamma: gamma * (states * torch.softmax(s, dim=0)[:, None]).sum(dim=1))
wrong("scalar_mix", "Why: The weights do not line up with the layers",
      lambda states, s, gamma: gamma * (s.softmax(-1) @ states))
wrong("scalar_mix", "no gradient reaches `gamma`",
      lambda states, s, gamma: gamma.item() * torch.einsum("bltd,l->btd", states, s.softmax(0)))


@right("scalar_mix")
def sm_loop(states, s, gamma):
    weights = torch.softmax(s, dim=0)
    mixed = torch.zeros_like(states[:, 0])
    for j in range(len(s)):
        mixed = mixed + weights[j] * states[:, j]
    return gamma * mixed


right("scalar_mix", lambda states, s, gamma: torch.tensordot(states, gamma * s.softmax(-1), dims=([1], [0])))


@right("scalar_mix")
def sm_by_hand(states, s, gamma):
    e = (s - s.max()).exp()
    return gamma * (states * (e / e.sum())[None, :, None, None]).sum(dim=1)


@wrong("fine_tuning_step", "Why: cross_entropy takes logits")       # what the shown first loss says
def fs_the_lessons_three_bugs(classifier, optimizer, texts, labels):
    with torch.no_grad():
        x = classifier.trunk(*texts).x
    p = classifier.head(classifier.trunk.pool(x)).softmax(dim=-1)
    loss = F.cross_entropy(p, labels)
    loss.backward()
    optimizer.step()
    return loss.item()


@wrong("fine_tuning_step", "Why: cross_entropy takes logits")
def fs_two_bugs_left(classifier, optimizer, texts, labels):
    loss = F.cross_entropy(torch.softmax(classifier(*texts), 1), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


@wrong("fine_tuning_step", "Why: The gradients of all steps so far are added up")
def fs_one_bug_left(classifier, optimizer, texts, labels):
    loss = F.cross_entropy(classifier(*texts), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


@wrong("fine_tuning_step", "After step 1 no weight of classifier.trunk.layers has moved")
def fs_only_the_head(classifier, optimizer, texts, labels):
    optimizer.zero_grad()
    loss = F.cross_entropy(classifier.head(classifier.trunk.pool(classifier.trunk(*texts).x.detach()).detach()), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


wrong("fine_tuning_step", "It raised TypeError",
      lambda classifier, optimizer, texts, labels: F.cross_entropy(classifier(texts), labels).item())


@wrong("fine_tuning_step", "After step 1 the weights are wrong")
def fs_two_steps_in_one(classifier, optimizer, texts, labels):
    loss = SOLUTION["fine_tuning_step"](classifier, optimizer, texts, labels)
    SOLUTION["fine_tuning_step"](classifier, optimizer, texts, labels)
    return loss


@right("fine_tuning_step")
def fs_zero_grad_last(classifier, optimizer, texts, labels):
    loss = F.cross_entropy(classifier(*texts), labels)
    loss.backward()
    optimizer.step()
    classifier.zero_grad()
    return float(loss.detach())


@right("fine_tuning_step")
def fs_written_out(classifier, optimizer, texts, labels):
    ids, mask, segments = texts
    logits = classifier.head(classifier.trunk.pool(classifier.trunk(ids, mask, segments).x))
    loss = -logits.log_softmax(dim=-1)[range(len(labels)), labels].mean()
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
    return loss.item()


def test_a_step_that_is_not_written_is_no_error():
    def fine_tuning_step(classifier, optimizer, texts, labels):
        raise NotImplementedError("your turn")
    assert EXERCISES["fine_tuning_step"].judge(fine_tuning_step).kind == "unwritten"


wrong("lora_linear", "Why: scale is not used", lambda x, W, b, A, B, scale: x @ W.T + b + x @ (B @ A).T)
wrong("lora_linear", "no gradient reaches `A`",
      lambda x, W, b, A, B, scale: x @ W.T + b + scale * (x @ A.detach().T @ B.T))
right("lora_linear", lambda x, W, b, A, B, scale: x @ (W + scale * B @ A).T + b)
right("lora_linear", lambda x, W, b, A, B, scale: F.linear(x, W, b) + F.linear(F.linear(x, A), scale * B))


# --- post_norm_layer -----------------------------------------------------------------------------------------

@wrong("post_norm_layer", "Why: norm_1 stands in front of attention, and belongs after the sum")
def pl_pre_norm(x, attention, feed_forward, norm_1, norm_2):
    for sublayer, norm in ((attention, norm_1), (feed_forward, norm_2)):
        x = x + sublayer(norm(x))
    return x


@wrong("post_norm_layer", "Why: norm_1 takes what attention returned, and belongs after the sum")
def pl_norms_the_branch(x, attention, feed_forward, norm_1, norm_2):
    h = x + norm_1(attention(x))
    return h + norm_2(feed_forward(h))


@wrong("post_norm_layer", "Why: the last sum adds x as it came in, not what the part before made of it.")
def pl_adds_the_old_x(x, attention, feed_forward, norm_1, norm_2):
    return norm_2(feed_forward(norm_1(attention(x) + x)) + x)


@wrong("post_norm_layer", "Why: feed_forward gets x as it came in, not what the part before made of it.")
def pl_reads_the_old_x(x, attention, feed_forward, norm_1, norm_2):
    return norm_2(norm_1(x + attention(x)) + feed_forward(x))


@wrong("post_norm_layer", "Why: norm_2 is called before norm_1, which comes first.")
def pl_norms_swapped(x, attention, feed_forward, norm_1, norm_2):
    h = norm_2(x + attention(x))
    return norm_1(h + feed_forward(h))


@wrong("post_norm_layer", "Why: what attention returned is not used, what norm_1 returned is not used.")
def pl_first_half_lost(x, attention, feed_forward, norm_1, norm_2):
    norm_1(x + attention(x))
    return norm_2(x + feed_forward(x))


@wrong("post_norm_layer", "Why: norm_1 is called twice, norm_2 is never called.")
def pl_one_norm(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(x + attention(x))
    return norm_1(x + feed_forward(x))


@right("post_norm_layer")
def pl_loop(x, attention, feed_forward, norm_1, norm_2):
    for sublayer, norm in ((attention, norm_1), (feed_forward, norm_2)):
        x = norm(x + sublayer(x))
    return x


@right("post_norm_layer")
def pl_lesson_04s(x, attention, feed_forward, norm_1, norm_2):
    attended = norm_1(attention(x) + x)
    return norm_2(sum([attended, feed_forward(attended)]))


# --- the solutions -------------------------------------------------------------------------------------------

def test_solutions_keep_their_formulas():
    """The solutions themselves, on values that can be checked by hand."""
    assert SOLUTION["pair_input"](["who", "?"], ["me"]) == (
        ["[CLS]", "who", "?", "[SEP]", "me", "[SEP]"], [0, 0, 0, 0, 1, 1])
    vocab = {"em", "e", "##bed", "##ding", "##d", "##s", "embe"}
    assert SOLUTION["split_word"]("embeddings", vocab - {"embe"}) == ["em", "##bed", "##ding", "##s"]
    assert SOLUTION["split_word"]("embeddings", vocab | {"##dd"}) == ["[UNK]"]      # embe ##dd, and then "ings"
    states = torch.tensor([[[1.0, 2.0], [3.0, 6.0], [100.0, 100.0]], [[5.0, 5.0]] * 3])
    mask = torch.tensor([[True, True, False], [False, False, False]])
    assert SOLUTION["mean_pool"](states, mask).tolist() == [[2.0, 4.0], [0.0, 0.0]]
    assert SOLUTION["span_f1"]("study the Deep Learning", "Deep learning!") == pytest.approx(0.8)
    assert SOLUTION["span_f1"]("la la la", "la la land") == pytest.approx(2 / 3)
    start, end = torch.tensor([9.0, 1.0, 5.0, 0.0, 0.0]), torch.tensor([9.0, 6.0, 0.0, 4.0, 9.0])
    passage = torch.tensor([False, True, True, True, False])
    assert SOLUTION["best_span"](start, end, passage, 2) == (2, 3)                   # 9; (1, 1) has 7
    assert SOLUTION["best_span"](start, end, passage, 1) == (1, 1)
    layers = torch.tensor([[[[1.0]], [[3.0]]]])                                       # (1, 2, 1, 1)
    mixed = SOLUTION["scalar_mix"](layers, torch.tensor([0.0, math.log(3)]), torch.tensor(2.0))
    torch.testing.assert_close(mixed, torch.tensor([[[5.0]]]))                        # 2 (1/4 + 9/4)


def test_masking_keeps_its_formula():
    ids = torch.arange(5, 505).repeat(40, 1)
    can_mask = ids > 104
    inputs, targets = SOLUTION["mask_tokens"](ids, can_mask, 4, 505, torch.Generator().manual_seed(0))
    asked = targets != -100
    assert not asked[~can_mask].any()
    assert (inputs == ids)[~asked].all()
    assert (targets == ids)[asked].all()
    assert abs(asked[can_mask].float().mean() - 0.15) < 0.02
    shares = [(inputs == 4)[asked], (inputs == ids)[asked], ((inputs != 4) & (inputs != ids))[asked]]
    for cases, share in zip(shares, (0.8, 0.1, 0.1), strict=True):
        assert abs(cases.float().mean() - share) < 0.03


def test_pair_input_is_what_the_courses_tokenizer_makes():
    tokenizer = WordPiece([*SPECIALS, "who", "is", "it", "me"])
    pieces, segments = SOLUTION["pair_input"](["who", "is", "it"], ["me"])
    ids, theirs = tokenizer.encode("who is it", "me")
    assert ([tokenizer.vocab[i] for i in ids], theirs) == (pieces, segments)


wrong("into_fake", "Why: The shared pieces moved, too", lambda ids, n_pieces, shared: ids + n_pieces)
wrong("into_fake", "Why: The pieces that stay are those in shared",
      lambda ids, n_pieces, shared: torch.where(ids < 5, ids, ids + n_pieces))


@wrong("into_fake", "`ids` was changed")
def if_in_place(ids, n_pieces, shared):
    ids[~torch.isin(ids, shared)] += n_pieces
    return ids


wrong("into_fake", "moved is a list; expected a Tensor",
      lambda ids, n_pieces, shared: SOLUTION["into_fake"](ids, n_pieces, shared).tolist())


@right("into_fake")
def if_copy(ids, n_pieces, shared):
    moved = ids.clone()
    moved[~torch.isin(ids, shared)] += n_pieces
    return moved


@right("into_fake")
def if_product(ids, n_pieces, shared):
    stays = (ids.unsqueeze(-1) == shared).any(dim=-1)
    return ids + n_pieces * ~stays


@right("into_fake")
def if_loop(ids, n_pieces, shared):
    stays = set(shared.tolist())
    return torch.tensor([[i if i in stays else i + n_pieces for i in row] for row in ids.tolist()])


wrong("nearest_words", "Why: Long vectors win", lambda english, fake: (english @ fake.T).argmax(dim=1))
wrong("nearest_words", "Why: For each *fake* word",
      lambda english, fake: F.cosine_similarity(english.unsqueeze(1), fake, dim=-1).argmax(dim=0))
wrong("nearest_words", "Why: This is the nearest by distance",
      lambda english, fake: torch.cdist(english, fake).argmin(dim=1))
right("nearest_words", lambda english, fake: F.cosine_similarity(english.unsqueeze(1), fake, dim=-1).argmax(dim=1))
right("nearest_words", lambda english, fake: torch.cdist(F.normalize(english), F.normalize(fake)).argmin(dim=1))


@right("nearest_words")
def nw_loop(english, fake):
    def cosine(a, b):
        return float(a @ b / (a.norm() * b.norm()))
    return torch.tensor([max(range(len(fake)), key=lambda j: cosine(word, fake[j])) for word in english])
