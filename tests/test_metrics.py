"""Scores of translations and alignments, held against numbers worked out by hand."""

import math
from collections import namedtuple

import pytest
import torch

from course_utils.attention import AttentionRecord
from course_utils.metrics import (
    aligned_words_found,
    alignment_error_rate,
    bleu,
    by_group,
    hard_alignment,
    length_groups,
    phenomenon_groups,
    sign_test,
)

Sentence = namedtuple("Sentence", "source target phenomena")


def words(*sentences):
    return [sentence.split() for sentence in sentences]


# --- translations --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("sides", [("the man slept", ["the", "man"]), (["the", "man"], "the man slept")])
def test_a_sentence_is_a_list_of_words(sides):
    """A string would be read letter by letter, and its BLEU would be too high."""
    hypothesis, reference = sides
    with pytest.raises(TypeError, match=r"expected a list of words, e\.g\. sentence\.split\(\)"):
        bleu([hypothesis], [reference])


def test_bleu_of_a_perfect_and_of_a_hopeless_translation():
    reference = words("the cat sat on the mat", "it slept for a while")
    assert bleu(reference, reference) == pytest.approx(100)
    assert bleu(words("a b c d e f", "u v w x y"), reference) == 0


def test_bleu_by_hand():
    """One wrong last word of six: precisions 5/6, 4/5, 3/4 and 2/3, whose product is 1/3."""
    score = bleu(words("the cat sat on the mat"), words("the cat sat on the rug"))
    assert score == pytest.approx(100 * (1 / 3) ** 0.25)


def test_bleu_punishes_what_is_too_short():
    """Five of six words, all right: only the brevity penalty exp(1 - 6/5) is left."""
    assert bleu(words("the cat sat on the"), words("the cat sat on the mat")) == pytest.approx(100 * math.exp(-0.2))


def test_bleu_counts_over_the_corpus_and_does_not_average_sentences():
    hypotheses = words("the cat sat on the mat", "a b c d")
    references = words("the cat sat on the rug", "a b c d")
    pooled = (9 / 10 * 7 / 8 * 5 / 6 * 3 / 4) ** 0.25
    assert bleu(hypotheses, references) == pytest.approx(100 * pooled)
    assert bleu(hypotheses, references) != pytest.approx(50 * ((1 / 3) ** 0.25 + 1))


def test_bleu_takes_the_tokens_as_they_are():
    """Nothing is split or lowercased again: of four tokens one differs each time."""
    assert bleu([list("ABCDE")], [list("abcde")]) < 1
    for token in ("mat.", "Mat"):
        assert bleu([["on", "the", "red", "mat", token]], [["on", "the", "red", "mat", "."]]) < 99
        assert bleu([["on", "the", "red", token]], [["on", "the", "red", token]]) == pytest.approx(100)
    assert bleu([["a", "b", "c", "d."]], [["a", "b", "c", "d", "."]]) < 90


def test_bleu_takes_a_token_with_a_blank_as_one():
    """Three of four tokens are right, in a row; of its two stretches of three one is; none of four."""
    reference = [["a", "b", "c", "d", "e"]]
    assert bleu([["a b", "c", "d", "e"]], reference) == pytest.approx(
        100 * math.exp(1 - 5 / 4) * (3 / 4 * 2 / 3 * 1 / 2 * 1 / 2) ** 0.25)          # 0 of 1 is smoothed to 1 of 2
    assert bleu([["x", "a b", "c", "d", "e"]], [["x", "a b", "c", "d", "e"]]) == pytest.approx(100)


@pytest.mark.parametrize(("n", "m"), [(2, 1), (1, 2), (0, 0)])
def test_as_many_hypotheses_as_references_and_at_least_one(n, m):
    with pytest.raises(ValueError, match=f"{n} hypotheses and {m} references; expected the same number"):
        bleu(words("a") * n, words("a") * m)


# --- alignments ----------------------------------------------------------------------------------------------------

def record(weights, columns, alignment=()):
    n_words = len(columns) - ("<eos>" in columns)
    return AttentionRecord(weights, ["x", "y", "z"][:len(weights)], list(columns), alignment, n_words)


def test_each_target_word_is_linked_to_its_largest_weight():
    weights = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.1, 0.7], [0.1, 0.8, 0.1]])
    assert hard_alignment(record(weights, "abc")) == {(0, 0), (1, 2), (2, 1)}


def test_a_word_that_looks_at_the_end_symbol_is_not_linked():
    weights = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.1, 0.7], [0.1, 0.8, 0.1]])
    assert hard_alignment(record(weights, ["a", "b", "<eos>"])) == {(0, 0), (2, 1)}
    assert hard_alignment(record(torch.tensor([[0.1, 0.9]]), ["a", "<eos>"])) == set()


def test_a_word_that_may_look_nowhere_is_not_linked():
    assert hard_alignment(record(torch.tensor([[0.0, 0.0], [0.4, 0.6]]), "ab")) == {(1, 1)}


def test_what_is_no_word_is_known_by_its_place_whatever_it_is_called():
    weights = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.1, 0.7]])
    assert hard_alignment(AttentionRecord(weights, ["x", "y"], ["<eos>", "b", "</s>"], n_words=2)) == {(0, 0)}


@pytest.mark.parametrize(("weights", "message"), [
    (torch.tensor([[0.5, torch.nan]]), "weights are NaN"), (torch.ones(2, 1, 2), r"shape \(2, 1, 2\), .* choose one")])
def test_an_alignment_of_weights_that_have_no_largest_is_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        hard_alignment(AttentionRecord(weights, ["x"], ["a", "b"]))


def test_the_error_rate_of_records_is_that_of_their_links():
    weights = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.1, 0.7]])
    records = [record(weights, "abc", {(0, 0), (1, 1)}), record(weights, ["a", "b", "<eos>"], {(0, 0)})]
    assert alignment_error_rate(records) == pytest.approx(1 - 2 * 2 / 6)
    assert alignment_error_rate(records, [{(0, 0), (1, 2)}, {(0, 0)}]) == 0


def test_records_without_true_links_are_not_scored():
    weights = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.1, 0.7]])
    unknown = [record(weights, "abc"), record(weights, "abc")]
    with pytest.raises(ValueError, match="no record has a true link"):
        alignment_error_rate(unknown)
    assert alignment_error_rate([*unknown, record(weights, "abc", {(0, 0)})]) < 1


def test_a_source_that_is_one_string_has_no_words_to_count():
    with pytest.raises(TypeError, match="one string, 'a dog sat'"):
        length_groups([("a dog sat", "un chien")])


def test_alignment_error_rate_by_hand():
    """Three links found, four true, two in common: 1 - 4/7."""
    found, true = {(0, 0), (1, 1), (2, 3)}, {(0, 0), (1, 2), (2, 3), (3, 3)}
    assert alignment_error_rate([found], [true]) == pytest.approx(3 / 7)
    assert alignment_error_rate([found], [found]) == alignment_error_rate([set()], [set()]) == 0
    assert alignment_error_rate([found], [{(5, 5)}]) == 1
    assert alignment_error_rate([{(1, 0)}], [{(0, 1)}]) == 1, "(target, source) is not (source, target)"


def test_alignment_error_rate_counts_over_the_corpus():
    """Links of both sentences together, 1 - 2 * 3 / 8; the mean of the sentences would be 3/14."""
    found = [{(0, 0), (1, 1), (2, 3)}, [(0, 0)]]
    true = [[(0, 0), (1, 2), (2, 3), (3, 3)], {(0, 0)}]
    assert alignment_error_rate(found, true) == pytest.approx(1 / 3)


def test_a_link_given_twice_counts_once():
    assert alignment_error_rate([[(0, 0), (0, 0)]], [((0, 0), (1, 1))]) == pytest.approx(1 / 3)


def test_alignments_that_cannot_be_compared_are_told():
    record = AttentionRecord(torch.eye(2), ["a", "b"], ["c", "d"])
    for predicted, true, message in [([{(0, 0)}], [], "1 predicted alignments and 0 true ones; expected as many"),
                                     ([record], iter([]), "1 predicted alignments and 0 true ones"),
                                     ([{(0, 0)}], None, "predicted is links, true is None; expected a list of rec"),
                                     (record, None, "predicted is one record; expected a list of records")]:
        with pytest.raises((TypeError, ValueError), match=message):
            alignment_error_rate(predicted, true)


# --- groups --------------------------------------------------------------------------------------------------------

def test_groups_of_source_lengths():
    pairs = [("a " * n).split() for n in (4, 9, 10, 40, 7, 41, 3)]
    assert length_groups([(source, ["x"] * 12) for source in pairs]) == {"4-9": [0, 1, 4], "10-14": [2], "35-40": [3]}
    assert length_groups([(["a"], []), (["a"] * 3, [])], buckets=((1, 2), (3, 5))) == {"1-2": [0], "3-5": [1]}


def test_groups_of_phenomena_overlap():
    pairs = [Sentence((), (), frozenset(p)) for p in (["passive", "of"], [], ["of"])]
    assert phenomenon_groups(pairs) == {"of": [0, 2], "passive": [0]}


def test_words_found_by_source_position():
    """`not` has two target words; found is what stands in the translation in the reference's order."""
    pair = namedtuple("Pair", "source target links")("not old old .".split(), "ne vieux pas .".split(),
                                                      ((0, 0), (1, 1), (2, 0), (3, 3)))
    found = [aligned_words_found([pair], [said.split()]) for said in ("ne vieux pas .", "vieux", "ne pas .")]
    assert [values[:2] for values in found] == [[100, 100], [0, 100], [100, 0]]
    assert all(len(values) == 3 and math.isnan(values[2]) for values in found)
    assert aligned_words_found([pair, pair], [("ne", "vieux"), ("ne",)])[:2] == [50, 50]
    with pytest.raises(ValueError, match="sources of 1, 4 words; expected one length"):
        aligned_words_found([pair, pair._replace(source=["."])], [(), ()])


def test_a_metric_for_each_group():
    hypotheses, references = words("a", "b", "c", "d"), words("a", "x", "c", "x")
    groups = {"first": [0], "even": [1, 3], "most": [0, 1, 2]}
    scores = by_group(lambda a, b: sum(map(list.__eq__, a, b)) / len(a), groups, hypotheses, references)
    assert scores == pytest.approx({"first": 1, "even": 0, "most": 2 / 3})
    assert list(scores) == list(groups)


def test_a_group_is_measured_whole():
    """Each pair of a large group counts, the last one, too."""
    groups = {"all": [*range(200)], "backwards": [*range(199, -1, -1)]}
    assert by_group(lambda *columns: columns, groups, range(200), range(200, 400)) == {
        "all": ([*range(200)], [*range(200, 400)]),
        "backwards": ([*range(199, -1, -1)], [*range(399, 199, -1)])}


def test_sign_test_counts_what_only_one_gets_right():
    one, other = [True] * 9 + [False] + [True] * 5, [False] * 9 + [True] + [True] * 5
    assert sign_test(one, other) == (9, 1, pytest.approx(22 / 1024))
    assert sign_test([True, False], [True, False]) == (0, 0, 1.0)
    with pytest.raises(ValueError, match="1 examples and 2; expected as many"):
        sign_test([True], [True, False])
