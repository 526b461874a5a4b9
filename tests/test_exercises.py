"""The engine of the checks: what it compares, what it says, and which function runs on."""

import ast
import math
import re
from functools import wraps

import pytest
import torch
from browser import alone
from torch import nn

from course_utils.course import PRESENTED
from course_utils.exercises import (
    EXERCISES,
    Prediction,
    Verdict,
    WrongAnswer,
    break_it,
    check,
    engine,
    same_output,
    your_parts,
)
from course_utils.exercises import _yours as yours
from course_utils.exercises.card import Card
from course_utils.exercises.compared import _apart, close
from course_utils.exercises.engine import _gradients, code, edited, result_of


@pytest.fixture(autouse=True)
def nothing_solved():
    """Each test begins as a fresh kernel does."""
    yours.clear()


def judge(name, function):
    """The verdict's kind and text."""
    verdict = EXERCISES[name].judge(function)
    return verdict.kind, verdict.text


def context_vector(scores, values):
    """Right, in another style than the solution."""
    context = torch.zeros(values.size(1))
    for weight, value in zip(scores.softmax(0), values, strict=True):
        context = context + weight * value
    return context


def not_implemented(scores, values):
    """A docstring, and nothing yet."""
    raise NotImplementedError("your turn")


# --- what check shows, and gives ----------------------------------------------------------------------------------

def test_a_right_answer_runs_on(capsys):
    assert check("context_vector", {"context_vector": context_vector}) is context_vector
    shown = capsys.readouterr().out
    assert shown.startswith("✓ context_vector: right on 5 random inputs and in 2 special cases; largest difference ")
    assert "Yours runs from here on." in shown


@pytest.mark.parametrize("stub", [not_implemented, lambda scores, values: None, lambda scores, values: ...])
def test_for_a_stub_the_solution_runs_on(stub, capsys):
    assert check("context_vector", {"context_vector": stub}) is EXERCISES["context_vector"].solution
    shown = capsys.readouterr().out
    assert "… context_vector: not written yet" in shown
    assert "The course's function runs until yours is right." in shown


def test_a_wrong_answer_stops_nothing_and_the_solution_runs_on(capsys):
    assert check("context_vector", {"context_vector": lambda s, v: s @ v}) is EXERCISES["context_vector"].solution
    shown = capsys.readouterr().out
    assert shown.startswith("✗ context_vector: wrong.\nWhy: The softmax is missing")     # what explains it, first
    assert shown.index("\nWhy: ") < shown.index("\nWrong values: ") < shown.index("\nInputs: ")
    assert "The course's function runs until yours is right." in shown


def test_a_right_but_slow_answer_is_told_so_and_the_solution_runs_on(capsys):
    def masked_softmax(scores, mask):
        rows, masks = scores.flatten(0, -2), mask.expand_as(scores).flatten(0, -2)
        weights = [row.masked_fill(~allowed, -math.inf).softmax(0) if allowed.any() else torch.zeros_like(row)
                   for row, allowed in zip(rows, masks, strict=True)]
        return torch.stack(weights).view_as(scores)

    assert check("masked_softmax", locals()) is EXERCISES["masked_softmax"].solution
    shown = capsys.readouterr().out
    assert re.match(r"✓ masked_softmax: right, but about \d+ times as slow as it can be", shown)


def test_what_is_handed_back_is_the_function_itself():
    """No wrapper: it runs at its own speed."""
    solution = edited(EXERCISES["masked_softmax"].solution)
    assert check("masked_softmax", {"masked_softmax": solution}) is solution


def test_a_solution_cell_keeps_the_students_function(capsys):
    ours = EXERCISES["context_vector"].solution
    assert check("context_vector", {"context_vector": ours}, solution=True) is ours
    check("context_vector", {"context_vector": context_vector})
    assert check("context_vector", {"context_vector": ours}, solution=True) is context_vector
    assert "Yours was right, too, and goes on running." in capsys.readouterr().out
    check("context_vector", {"context_vector": not_implemented})                    # and then undone
    assert check("context_vector", {"context_vector": ours}, solution=True) is ours
    broken = {"context_vector": lambda s, v: s @ v}                                # a solution that somebody edited
    assert check("context_vector", broken, solution=True) is ours


def test_in_live_slides_the_students_function_stands_for_the_solution_that_was_rehearsed(capsys, monkeypatch):
    monkeypatch.setenv(PRESENTED, "a lesson")
    ours, theirs = EXERCISES["context_vector"].solution, edited(context_vector)
    check("context_vector", {"context_vector": theirs})
    assert not hasattr(theirs, "stands_for")                        # before the solution's cell it is theirs alone
    assert check("context_vector", {"context_vector": ours}, solution=True) is theirs
    assert theirs.stands_for is ours
    assert "goes on running; what was rehearsed with the course's is loaded." in capsys.readouterr().out


def test_the_parts_that_were_yours_are_counted(capsys):
    check("context_vector", {"context_vector": context_vector})
    check("hard_alignment", {"hard_alignment": lambda weights: None})
    capsys.readouterr()
    your_parts("context_vector", "hard_alignment")
    assert capsys.readouterr().out == ("✓ 1 of 2 parts that ran here are your code: `context_vector`. "
                                       "The course's: `hard_alignment`.\n")
    your_parts("hard_alignment")
    assert capsys.readouterr().out == ("… 0 of 1 parts that ran here are your code. "
                                       "The course's: `hard_alignment`.\n")
    with pytest.raises(ValueError, match="no exercise is called 'nonsense'"):
        your_parts("nonsense")


def test_a_card_shows_names_as_code_and_everything_else_as_text():
    card = Card(Verdict("unwritten", "does <b> end with `return`, or `a < b`?"))
    assert repr(card) == "… does <b> end with `return`, or `a < b`?"
    html = card._repr_html_()
    assert "does &lt;b&gt; end with <code>return</code>, or <code>a &lt; b</code>?" in html
    assert "`" not in html
    stressed = Card(Verdict("wrong", "it hides *every* block: T * (K + 1), x*y*z, f(*a, *b)"))._repr_html_()
    assert "hides <em>every</em> block: T * (K + 1), x*y*z, f(*a, *b)" in stressed


def test_missing_name_and_misspelling(capsys):
    assert check("context_vector", {}) is EXERCISES["context_vector"].solution
    check("context_vector", {"contex_vector": context_vector})
    missing, misspelt = capsys.readouterr().out.split("✗ ")[1:]
    assert "Did you run the cell that defines it?" in missing
    assert "There is a `contex_vector`: is that a misspelling?" in misspelt


def test_the_namespace_is_that_of_the_caller():
    caller = {"check": check, "context_vector": context_vector}
    exec("chosen = check('context_vector')", caller)
    assert caller["chosen"] is context_vector


def test_unknown_exercise():
    there = "softmax, pad_batch, .*, context_vector"
    with pytest.raises(ValueError, match=f"no exercise is called 'nonsense'; there are {there}"):
        check("nonsense")


# --- faults as edits ----------------------------------------------------------------------------------------------

def documented(x):
    """A docstring.

    Of several lines.
    """
    total = x + 1
    return total * 2


def quoting(x, quotes='"""'):
    r'''A docstring in other quotes than """.'''
    return f"{quotes}{x}{quotes}"


def test_code_has_no_docstring():
    assert code(quoting).splitlines() == ["def quoting(x, quotes='\"\"\"'):", '    return f"{quotes}{x}{quotes}"']
    assert code(documented) == "def documented(x):\n    total = x + 1\n    return total * 2\n"
    assert code(context_vector).startswith("def context_vector(scores, values):\n    context = torch.zeros(")


def test_an_edit_makes_another_function():
    assert edited(documented, "+ 1", "- 1", "* 2", "* 3")(3) == 6
    assert documented(3) == 8
    for missing in ("+ 2", "x"):
        with pytest.raises(ValueError, match=r"occurs \d times; expected once"):
            edited(documented, missing, "y")


# --- verdicts -----------------------------------------------------------------------------------------------------

def test_a_stub_that_is_called_is_named():
    def masked_softmax(scores, mask):
        raise NotImplementedError("your turn")

    def helper(query, keys):
        raise NotImplementedError

    def scaled_dot_attention(query, keys, values, mask):
        return masked_softmax(query @ keys.mT, mask) @ values

    assert judge("scaled_dot_attention", scaled_dot_attention) == ("unwritten", (
        "scaled_dot_attention calls masked_softmax, which is not written yet. Write that first (or use "
        "attention.masked_softmax)."))
    assert judge("scaled_dot_attention", lambda q, k, v, m: helper(q, k)) == ("unwritten", (
        "scaled_dot_attention calls helper, which is not written yet. Write that first."))


def test_a_stub_in_the_middle_of_code_asks_for_its_raise_line():
    def context_vector(scores, values):
        raise NotImplementedError("your turn: write here, delete this line")
        return scores.softmax(-1) @ values

    assert judge("context_vector", context_vector) == ("unwritten", (
        "context_vector: not written yet. (If you did write it: is the `raise` line still there?)"))


WRONG_FOR = [
    ("masked_softmax", lambda scores, mask: mask.softmax(-1), "raised NotImplementedError.*not implemented for 'Bool'"),
    ("context_vector", torch.ones(3), r"is a Tensor, not a function.*def context_vector\(scores, values\)"),
    *(("context_vector", function, r"signature context_vector\(.*expected context_vector\(scores, values\)")
      for function in (lambda scores: scores, lambda values, scores: scores, lambda scores, values, mask: scores)),
    ("context_vector", lambda s, v: s.softmax(0) @ v + 0.1, r"difference is [\d.]+, at context\[\d\]: \S+ instead"),
    ("masked_softmax", lambda s, m: s.softmax(-1).mT, r"\(4, 5, 7\); expected \(B, T_q, T_k\) = \(4, 7, 5\)"),
    ("scaled_dot_attention", lambda q, k, v, m: EXERCISES["scaled_dot_attention"].solution(q, k, v, m)[::-1],
     "Wrong order: return context, weights"),
    ("context_vector", lambda s, v: (s.softmax(0) @ v)[None], "One of length one is left over"),
    ("context_vector", lambda s, v: s.softmax(0) * v,
     r"context_vector: These shapes do not line up: .*axes\.\nIt raised RuntimeError: .*\nInputs: "),
    ("context_vector", lambda s, v: s.softmax(0) @ torch.eye(*v.shape), "Why: `values` makes no difference to what"),
    ("context_vector", lambda s, v: s.detach_().softmax(0) @ v, "The argument `scores` was cut off"),
    ("alignment_error_rate", lambda a, b: str(len(a & b)), "a str; expected a float. float.* makes one"),
    ("hard_alignment", lambda w: w.argmax(1).numpy(), "is a numpy.ndarray; expected a set"),
    ("context_vector", 3, "context_vector is an int, not a function"),
    ("context_vector", lambda s, v: exit(), r"raised RuntimeError: exit\(\) ends the notebook"),
    *(("context_vector", lambda s, v, to=to: to(s.softmax(0) @ v), f"context is {kind}; expected an ordinary")
      for to, kind in [(torch.Tensor.to_sparse, "sparse_coo on cpu"), (lambda x: x.to("meta"), "strided on meta"),
                       (lambda x: torch.nested.nested_tensor([x], layout=torch.jagged), "nested on cpu")]),
    ("pad_batch", lambda s: tuple(x.to_sparse() for x in EXERCISES["pad_batch"].solution(s)), "ids is sparse_coo on"),
    ("alignment_error_rate", lambda a, b: 10 ** 400, r"cannot be compared with the solution \(OverflowError: int too"),
    *(("context_vector", lambda scores, values, of=of: scores.softmax(0) @ of(values),
       "what flows back to `values` is not the function's gradient")
      for of in (lambda v: (v + v.detach()) / 2, lambda v: 2 * v - v.detach(),
                 lambda v: v + 0.001 * (v - v.detach()))),
]


@pytest.mark.parametrize(("name", "function", "message"), WRONG_FOR)
def test_what_is_wrong_is_said(name, function, message):
    kind, text = judge(name, function)
    assert kind == "wrong"
    assert re.search(message, text, re.DOTALL), text


def test_only_what_never_makes_a_difference_is_said_to_make_none():
    """These use all arguments on ordinary inputs: one leaves the batch alone, the other takes padding for a text."""
    def masked_softmax(scores, mask):
        right = EXERCISES["masked_softmax"].solution(scores, mask)
        return right if mask.any(-1).all() else torch.zeros_like(scores)

    for name, function in (("masked_softmax", masked_softmax),
                           ("best_span", lambda s, e, p, n: (EXERCISES["best_span"].solution(s, e, p, n)[0],) * 2)):
        kind, text = judge(name, function)
        assert kind == "wrong"
        assert "makes no difference" not in text


def test_a_special_case_says_why_whatever_was_wrong_there_and_only_there():
    right = EXERCISES["alignment_error_rate"].solution
    text = judge("alignment_error_rate", lambda a, b: right(a, b) if a or b else 0.25)[1]
    assert ".\nWhy: Two empty sets have no links to divide by. They agree: the rate is 0.0.\nWrong value: " in text
    assert "Why" not in judge("alignment_error_rate", lambda a, b: right(a, b) + 0.25)[1]


def test_what_is_remembered_between_calls_is_said():
    buffer, counts = torch.zeros(9, 9, dtype=torch.int64), []

    def a_list_as_default(word, vocab, pieces=[]):  # noqa: B006 (the mistake)
        pieces.extend(EXERCISES["split_word"].solution(word, vocab))
        return pieces

    def a_tensor_again(sentences):
        ids, lengths = EXERCISES["pad_batch"].solution(sentences)
        buffer[:ids.size(0), :ids.size(1)] = ids
        return buffer[:ids.size(0), :ids.size(1)], lengths

    def a_global_name(scores, values):
        counts.append(1)
        return scores.softmax(0) @ values * len(counts)

    for name, function in (("split_word", a_list_as_default), ("pad_batch", a_tensor_again),
                           ("context_vector", a_global_name)):
        kind, text = judge(name, function)
        assert kind == "wrong"
        assert "Called twice with the same input it gives two results: something is remembered between calls" in text


@pytest.mark.parametrize(("name", "sentence"), [
    ("most_frequent_pair", "Is something done again"), ("masked_softmax", "one operation on whole tensors")])
def test_a_loop_over_tensors_is_supposed_only_where_there_are_tensors(name, sentence):
    solution = EXERCISES[name].solution
    kind, text = judge(name, lambda *arguments: [solution(*arguments) for _ in range(12)][-1])
    assert kind == "slow"
    assert sentence in text


@pytest.mark.parametrize(("times", "kind", "told"), [
    (1.2, "right", r"below 1e-5\.$"), (1.31, "right", r"; about 1\.3 times as slow as the course's\.$"),
    (4.2, "slow", "right, but about 4 times as slow as it can be")])
def test_what_takes_longer_but_not_too_long_runs_and_is_told(monkeypatch, times, kind, told):
    monkeypatch.setattr(engine, "_times_slower", lambda *_: times)
    verdict = judge("masked_softmax", EXERCISES["masked_softmax"].solution)
    assert verdict[0] == kind
    assert re.search(told, verdict[1])


def test_a_solution_cell_is_not_timed(monkeypatch, capsys):
    """Its card is an output that is compared: beside a busy program it would say that the solution is slow."""
    monkeypatch.setattr(engine, "_times_slower", lambda *_: 1.4)
    given = {"masked_softmax": EXERCISES["masked_softmax"].solution}
    check("masked_softmax", given, solution=True)
    assert "times as slow" not in capsys.readouterr().out
    check("masked_softmax", given)
    assert "about 1.4 times as slow as the course's" in capsys.readouterr().out


@pytest.mark.slow
def test_copies_of_a_solution_are_not_slow_and_many_calls_are():
    alone()
    solution = EXERCISES["masked_softmax"].solution
    assert judge("masked_softmax", lambda scores, mask: [solution(scores, mask) for _ in range(9)][-1])[0] == "slow"
    for name in ("most_frequent_pair", "additive_score", "masked_softmax"):
        assert "slow" not in judge(name, edited(EXERCISES[name].solution))[1]


def test_inputs_and_results_are_shown_as_they_are():
    assert "prediction = '" in judge("span_f1", lambda prediction, truth: 2.0)[1]
    assert "It has 1 axis instead of 2." in judge("pad_batch", lambda sentences: (torch.ones(3).long(),) * 2)[1]
    right = EXERCISES["pad_batch"].solution
    assert re.search(r"difference is 10000, at ids\[\d, \d\]: 10\d\d\d instead of \d+\.",
                     judge("pad_batch", lambda s: (right(s)[0] + 10000 * (right(s)[0] > 0), right(s)[1]))[1])


def test_long_lists_are_not_shown_whole():
    right = EXERCISES["pair_input"].solution

    def cut(a, b):
        return tuple(part[:128] for part in right(a, b))

    def one_wrong(a, b):
        pieces, segments = right(a, b)
        return pieces[:100] + ["?"] * (len(pieces) > 100) + pieces[101:], segments

    text = judge("pair_input", cut)[1]
    assert re.search(r"pieces has 128 elements; expected \d+\.\nInputs: a: a list of length \d+", text)
    assert re.search(r"pieces\[100\] is '\?'; expected '", judge("pair_input", one_wrong)[1])


def test_gradients_are_looked_at_even_without_grad():
    with torch.no_grad():
        kind, text = judge("context_vector", lambda s, v: s.detach().softmax(0) @ v)
    assert kind == "wrong"
    assert "no gradient reaches `scores`" in text


def test_a_fault_is_named_for_its_own_type_only():
    kind, text = judge("hard_alignment", lambda w: list(enumerate(w.argmax(0).tolist())))
    assert kind == "wrong"
    assert "is a list; expected a set" in text
    assert "Why" not in text


def test_an_exception_is_shown_with_shapes_and_the_students_own_lines():
    def broken(scores, values):
        return scores.softmax(0) @ values.nonsense
    verdict = EXERCISES["context_vector"].judge(broken)
    assert re.search(r"(?s)raised AttributeError.*Inputs: scores \(\d,\), values \(\d, \d\)", verdict.text)
    assert "values.nonsense" in verdict.trace
    assert "engine.py" not in verdict.trace
    assert "AttributeError" not in verdict.trace
    assert "values.nonsense" in Card(verdict)._repr_html_()


def test_exact_results_have_no_largest_difference():
    kind, text = judge("hard_alignment", lambda weights: {(i, int(row.argmax())) for i, row in enumerate(weights)})
    assert kind == "right"
    assert "difference" not in text


def test_renamed_and_extra_optional_parameters_are_fine():
    assert judge("context_vector", lambda s, v, dim=0: s.softmax(dim) @ v)[0] == "right"


def test_inputs_make_swapped_axes_visible():
    """Every axis of every ordinary input differs from the others in at least one of the inputs."""
    for exercise in EXERCISES.values():
        if exercise.name == "fine_tuning_step":                                 # its inputs make a network and texts
            continue
        make = next(iter(exercise.cases.values()))
        for seed in range(5):
            for name, argument in zip(exercise.parameters, make(torch.Generator().manual_seed(seed)), strict=True):
                square = (exercise.name == "multi_head" and name.startswith("W_")     # (d_model, d_model)
                          or (exercise.name, name) == ("decoder_layer", "mask")                    # (T_q, T_q)
                          or exercise.name in ("induction_scores", "rollout"))        # (…, T, T)
                if isinstance(argument, torch.Tensor) and not square:
                    axes = [size for size in argument.shape if size > 1]
                    assert len(axes) == len(set(axes))


def test_checks_leave_the_random_state_alone():
    before = torch.get_rng_state()
    check("masked_softmax", {"masked_softmax": edited(EXERCISES["masked_softmax"].solution)})
    same_output(torch.sin, torch.sin, lambda: torch.randn(3))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(("missing", "extra", "message"), [
    (1, {(12, 1), (2, 90)}, r"lacks \{\(0, \d\)\} and has \{\(2, 90\), \(12, 1\)\} too much"),
    (0, {(9, j) for j in range(5, 15)}, r"has \{\(9, 5\), \(9, 6\), \(9, 7\), \(9, 8\), …\} too much"),
    (0, {(0, 99), 3}, r"lacks nothing and has \{3, \(0, 99\)\} too much"),
])
def test_sets_are_shown_as_sets_in_order(missing, extra, message):
    right = EXERCISES["hard_alignment"].solution
    assert re.search(message, judge("hard_alignment", lambda weights: set(sorted(right(weights))[missing:]) | extra)[1])


def test_inputs_that_are_sets_are_shown_as_sets():
    text = judge("alignment_error_rate", lambda predicted, true: 2.0)[1]
    for shown in re.findall(r"\{(.*?)\}", text):
        assert list(ast.literal_eval(shown)) == sorted(ast.literal_eval(shown))
    right = EXERCISES["alignment_error_rate"].solution
    text = judge("alignment_error_rate", lambda predicted, true: right(predicted, true) if predicted else 0.5)[1]
    assert "Inputs: predicted = set(), true = {" in text


# --- experiments --------------------------------------------------------------------------------------------------

def test_a_prediction_is_held_against_the_measurement(capsys):
    measured = {"short": 97.25, "long": 88.0, "longer": 80.0}
    Prediction({"short": 95, "long": 40}, within=10).compare(measured)
    Prediction({"short": 95, "long": None}, within=10).compare(measured)
    Prediction({"short": None}, within=10).compare(measured)
    Prediction({"short": 2, "long": 1}, within=0).compare({"short": 1, "long": 2})
    assert capsys.readouterr().out.splitlines() == [
        "≠ 1 of 2 predictions are right within 10. Furthest off: long, predicted 40, measured 88.",
        "✓ 1 of 1 predictions are right within 10. Furthest off: short, predicted 95, measured 97.25.",
        "… You predicted nothing. Measured: short: 97.25.",
        "≠ 0 of 2 predictions are right. Furthest off: short, predicted 2, measured 1."]


def test_a_prediction_is_of_numbers_that_are_measured():
    with pytest.raises(TypeError, match="a number for each label, or None; given {'short': 'high', 'long': True}"):
        Prediction({"short": "high", "long": True}, within=10)
    with pytest.raises(ValueError, match="a finite number, or None for none yet; given {'long': nan}"):
        Prediction({"short": 1, "long": math.nan}, within=10)
    for within in (-1, math.nan):
        with pytest.raises(ValueError, match=f"within is {within}; expected how far off is still right, 0 or more"):
            Prediction({"short": 1}, within=within)
    with pytest.raises(ValueError, match=r"nothing was measured for \['long'\]; measured: \['short'\]"):
        Prediction({"long": 1.0}, within=10).compare({"short": 1.0})


def test_break_it_changes_one_piece(capsys):
    whole, broken = break_it("scaled_dot_attention", " / math.sqrt(query.size(-1))", "")
    x, mask = torch.randn(1, 3, 4), torch.ones(1, 1, 3).bool()
    torch.testing.assert_close(whole(x, x, x, mask)[1], (x @ x.mT / 2).softmax(-1))
    torch.testing.assert_close(broken(x, x, x, mask)[1], (x @ x.mT).softmax(-1))
    assert "`/ math.sqrt(query.size(-1))` is now `nothing`" in capsys.readouterr().out
    with pytest.raises(ValueError, match="expected once in\ndef scaled_dot_attention"):
        break_it("scaled_dot_attention", "cosine", "")


# --- same_output ---------------------------------------------------------------------------------------------

def test_same_output_of_functions_and_modules(capsys):
    layer = nn.Linear(3, 2)
    same_output(layer, lambda x: x @ layer.weight.T + layer.bias, torch.randn(4, 3))
    same_output(lambda x: (x, x.sum()), lambda x: [x + 1e-7, x.sum()], torch.ones(2, dtype=torch.float64))
    same_output(torch.add, lambda a, b: b + a, lambda: (torch.randn(2, 3), torch.randn(3)))
    out = capsys.readouterr().out
    assert "Same output: (4, 2) float32, largest difference below 1e-5." in out
    assert "Same output on 5 random inputs: (2, 3) float32" in out


@pytest.mark.parametrize(("mine", "message"), [
    (lambda x: x.T, r"mine returns \(3, 2\) float32, the reference \(2, 3\) float32"),
    (lambda x: x.double(), "float64"),
    (lambda x: (x, x), r"mine returns \[\(2, 3\) float32, \(2, 3\) float32\]"),
    (lambda x: x + torch.eye(3)[1:] / 2, r"largest difference is 0.5, at output\[0, 1\]; allowed is 1e-05"),
    (lambda x: x / 0 * 0, "largest difference is inf"),
])
def test_different_output_is_refused(mine, message):
    with pytest.raises(WrongAnswer, match=message):
        same_output(mine, lambda x: x, torch.arange(6.0).reshape(2, 3))


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(("mine", "reference", "where"), [
    ([1.0, NAN], [1.0, 2.0], r"\[1\]"), ([1.0, 2.0], [NAN, 2.0], r"\[0\]"), ([NAN, 2.0], [NAN, 2.0], r"\[0\]"),
    ([1.0, INF], [1.0, 2.0], r"\[1\]"), ([1.0, INF], [1.0, -INF], r"\[1\]"),
])
def test_nan_is_not_the_same_output_not_even_as_nan(mine, reference, where):
    """Two functions that both give NaN have not been shown to agree."""
    with pytest.raises(WrongAnswer, match=rf"largest difference is inf, at output{where}.*NaN or infinite"):
        same_output(lambda: torch.tensor(mine), lambda: torch.tensor(reference))


def test_masked_scores_are_the_same_output(capsys):
    scores = torch.tensor([0.5, -INF])
    same_output(lambda: scores + 1e-7, scores.clone)
    assert "largest difference below 1e-5" in capsys.readouterr().out


def test_a_random_difference_is_found():
    with pytest.raises(WrongAnswer, match=r"at output\[1\]\[0\]"):
        same_output(lambda a: (a, a), lambda a: (a, a.where(a < 0.5, 0)), lambda: torch.randn(1))


def test_random_inputs_are_five_and_different():
    seen = []
    same_output(lambda x: seen.append(x) or x, lambda x: x, lambda: torch.randn(2))
    assert len({tuple(x.tolist()) for x in seen}) == 5


@pytest.mark.parametrize(("dtype", "same", "other"), [
    (torch.float32, 1e-6, 1e-4), (torch.float64, 1e-6, 1e-4), (torch.float16, 1e-3, 0.1), (torch.int64, 0, 1)])
def test_close_allows_rounding_and_no_more(dtype, same, other):
    for number in (0, 1):
        reference = torch.tensor([number], dtype=dtype)
        assert close(reference + same, reference)
        assert not close(reference + other, reference)


def test_close_tells_types_apart():
    assert close(torch.tensor([math.nan]), torch.tensor([math.nan]))
    assert not close(torch.tensor([1, 2]), torch.tensor([1.0, 2.0]))
    assert not close(ValueError("a"), ValueError("b"))
    assert not close([1, 2], {1, 2})


@pytest.mark.parametrize(("mine", "right", "told"), [
    (-4.2768, 0.5, ("-4.277", "0.5")), (-4.27681, -4.27689, ("-4.2768", "-4.2769")),
    (20389184, 20389185, ("20389184", "20389185"))])
def test_two_numbers_that_differ_never_look_the_same(mine, right, told):
    assert _apart(mine, right) == told


def test_a_known_mistake_that_warns_is_not_the_students_to_see(recwarn):
    """A fault is run beside an answer that does not warn, for values and for gradients, some of them wrapped."""
    def turn(x):
        return x.mT

    wrong = edited(turn, "x.mT", "__import__('warnings').warn('red') or x.mT.contiguous()")
    for fault in (wrong, wraps(wrong)(lambda x: wrong(x))):
        assert result_of(fault, (torch.ones(2, 3, 4),)).shape == (2, 4, 3)
        assert _gradients(fault, (torch.ones(2, 3, 4),))[0].shape == (2, 3, 4)
    assert not recwarn.list
    assert result_of(turn, (torch.ones(2, 3, 4),)).shape == (2, 4, 3)
