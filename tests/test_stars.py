"""Sentences in which a single word decides."""

from course_utils.data.stars import ASIDES, STARS, star_sentences


def test_the_word_that_decides_stands_where_it_is_said_to_and_no_other_does():
    opinions = {word: stars for stars, words in enumerate(STARS) for word in words}
    sentences, stars, places = star_sentences(300, seed=1)
    for sentence, label, place in zip(sentences, stars.tolist(), places.tolist(), strict=True):
        assert len(sentence) == 16
        assert [(i, opinions[word]) for i, word in enumerate(sentence) if word in opinions] == [(place, label)]
    assert set(stars.tolist()) == set(range(5))
    assert set(places.tolist()) == {3, 7, 11, 15}


def test_every_clause_has_four_words():
    assert {len(clause.split()) for clause in ASIDES} == {4}


def test_sentences_come_again_with_their_seed():
    assert star_sentences(5, 1)[0] == star_sentences(5, 1)[0] != star_sentences(5, 2)[0]
