"""The generated tasks: their truth is found again here from the texts alone, without the templates that made them."""

import re
from collections import Counter

import pytest

from course_utils.data import tasks
from course_utils.data.tasks import CATEGORIES, DID, SENSES, TAGS, sentence_pairs, span_questions, tagged_sentences

GENERATORS = (sentence_pairs, span_questions, tagged_sentences)
PARTS = [(False, False), (True, False), (False, True), (True, True)]
CATEGORY = {thing: category for category, parts in CATEGORIES.items() for things in parts
            for thing in things}


def texts(example):
    """All that a reader of an example sees."""
    if isinstance(example, tasks.TaggedSentence):
        return [" ".join(example.words)]
    return [text for text in example if isinstance(text, str) and " " in text]


@pytest.fixture(scope="module", params=PARTS, ids=["training", "names", "templates", "both"])
def part(request):
    """400 examples of each kind, of one of the four parts."""
    return {generator: generator(400, 3, *request.param) for generator in GENERATORS}


@pytest.mark.parametrize("generator", GENERATORS)
def test_the_seed_decides(generator):
    assert generator(50, 1) == generator(50, 1) != generator(50, 2)
    assert generator(20, 1) == generator(50, 1)[:20], "more examples begin with the same ones"
    assert len(generator(50, 1)) == 50


@pytest.mark.parametrize("generator", GENERATORS)
def test_examples_are_varied(generator):
    assert len(set(generator(400, 0))) > 350


def test_texts_are_sentences(part):
    for examples in part.values():
        for text in (text for example in examples for text in texts(example)):
            assert re.fullmatch(r"[A-Z].*[.?]", text), text
            assert not re.search(r"  |[{}|]|\b(\w+) \1\b", text.lower()), text
            assert not re.search(r"\ba [aeio]|\ban (?!hour)[^aeio]", text), text


def test_tables_share_nothing_between_training_and_unseen():
    tables = [tasks.WHO, *CATEGORIES.values(), tasks.FIRST, tasks.SECOND, tasks.DENIAL, tasks.REMARKS,
              *tasks.NAMES.values(), *tasks.THIRD.values(), *tasks.FIRST_PERSON.values(), tasks.AMBIGUOUS,
              *tasks.PLAIN.values(), tasks.SENTENCES]
    for training, unseen in tables:
        assert set(training) & set(unseen) <= {""}
        assert all(len(part) == len(set(part)) or "" in part for part in (training, unseen)), "nothing is there twice"


@pytest.mark.parametrize("generator", GENERATORS)
def test_templates_are_of_the_part_asked_for(generator):
    assert not set(generator(400, 3)) & set(generator(400, 3, unseen_templates=True))


def test_names_are_of_the_part_asked_for():
    """Also across tables: no person of the one part is a place of the other."""
    def names(tables, side):
        return {word for table in tables for word in table[side]}

    tables = [tasks.AMBIGUOUS, *tasks.PLAIN.values()]
    assert not names(tables, 0) & names(tables, 1)
    for unseen in (False, True):
        words = {word for sentence in tagged_sentences(400, 0, unseen) for word, tag in
                 zip(sentence.words, sentence.tags, strict=True) if tag}
        assert words == names(tables, unseen), "all names occur, and no others"
        passages = " ".join(question.passage for question in span_questions(400, 0, unseen))
        for slot in ("person", "institute", "city", "field"):
            assert all(name in passages for name in tasks.NAMES[slot][unseen])
            assert not any(re.search(rf"\b{name}\b", passages) for name in tasks.NAMES[slot][not unseen])


# --- pairs ---------------------------------------------------------------------------------------------------------

def read(sentence):
    """Who, did what to what, and whether it is denied, found in a sentence by its words."""
    text = " " + re.sub("[.,]", "", sentence.lower()) + " "
    found = {"who": [who for part in tasks.WHO for who in part if f" {who.lower()} " in text]}
    found["what"] = [CATEGORY.get(entry, entry) for entry in [*CATEGORY, *CATEGORIES] if f" {entry} " in text]
    found["did"] = [did for did, do in DID.items() if f" {did} " in text or f" {do} " in text]
    assert all(len(entries) <= 1 for entries in found.values()), (sentence, found)
    return {name: entries[0] for name, entries in found.items() if entries}, " not " in text or " never " in text


def test_the_second_sentence_follows_if_all_it_says_is_in_the_first(part):
    for pair in part[sentence_pairs]:
        told, _ = read(pair.first)
        asked, denied = read(pair.second)
        assert set(told) == {"who", "what", "did"}
        assert "what" in asked
        wrong = ["category" if name == "what" else name for name in asked if asked[name] != told[name]]
        assert pair.follows == (not wrong and not denied), pair
        assert [pair.kind] == (["denied"] if denied else wrong or ["same"]), pair


def test_half_of_the_pairs_follow_and_no_word_alone_tells(part):
    assert 0.42 < sum(pair.follows for pair in part[sentence_pairs]) / 400 < 0.58
    kinds = Counter(pair.kind for pair in part[sentence_pairs])
    assert set(kinds) == {"same", "category", "denied"}
    assert min(kinds.values()) > 40


# --- questions -----------------------------------------------------------------------------------------------------

def test_an_answer_is_made_of_whole_words_of_the_passage(part):
    for question in part[span_questions]:
        before, after = question.passage[:question.start], question.passage[question.end:]
        assert question.answer
        assert question.answer == question.passage[question.start:question.end]
        assert not re.search(r"\w$", before), question
        assert not re.match(r"\w", after), question


def test_an_answer_is_of_the_kind_that_is_asked_for(part):
    tables = {slot: {name for side in table for name in side} for slot, table in tasks.NAMES.items()}
    verbs = {work.split()[0] for work in tables["work"]}
    for question in part[span_questions]:
        kind, answer, first = question.kind, question.answer, question.answer.split()[0]
        right = {"person": answer in tables["person"], "institute": answer in tables["institute"],
                 "city": answer in tables["city"], "year": re.fullmatch(r"(19|20)\d\d", answer),
                 "team": any(answer == f"{field} {unit}" for field in tables["field"] for unit in tables["unit"]),
                 "work": answer in tables["work"], "topic": any(f"{verb} {answer}" in tables["work"] for verb in verbs),
                 "works": first in map(tasks.third_person, verbs) and first not in verbs}
        assert right[kind], question


def test_there_is_one_answer(part):
    """Whatever the question names stands in the passage, and nothing that begins in the same way and goes on."""
    for question in part[span_questions]:
        named = [name for slot in ("person", "institute") for side in tasks.NAMES[slot] for name in side
                 if re.search(rf"\b{name}\b", question.question)]
        for name in named:
            first = name.split()[0]
            whole = re.findall(rf"\b{name}\b", question.passage)
            assert len(whole) == len(re.findall(rf"\b{first}\b", question.passage)) >= 1, question


def test_another_person_and_a_remark_stand_in_some_passages():
    questions = span_questions(400, 0)
    people = [{name.split()[0] for name in tasks.NAMES["person"][0] if re.search(rf"\b{name}\b", q.passage)}
              for q in questions]
    assert 60 < sum(len(found) == 2 for found in people) < 160
    assert max(map(len, people)) == 2
    assert 120 < sum(any(remark in q.passage for remark in tasks.REMARKS[0]) for q in questions) < 280
    assert {q.kind for q in questions} == {"person", "institute", "city", "year", "team", "work", "works", "topic"}


@pytest.mark.parametrize(("verb", "third"), [("study", "studies"), ("teach", "teaches"), ("publish", "publishes"),
                                             ("grow", "grows"), ("write", "writes")])
def test_third_person(verb, third):
    assert tasks.third_person(verb) == third


# --- tags ----------------------------------------------------------------------------------------------------------

def test_a_tag_fits_its_word_and_its_neighbours(part):
    """A place follows ``in`` or ``near``, a person does not; and every tag is one that the word can have."""
    can = {}
    for tag, table in [*tasks.PLAIN.items(), ("PER", tasks.AMBIGUOUS), ("LOC", tasks.AMBIGUOUS)]:
        for side in table:
            for word in side:
                can.setdefault(word, set()).add(tag)
    for sentence in part[tagged_sentences]:
        for i, (word, tag, ambiguous) in enumerate(zip(*sentence, strict=True)):
            tag = TAGS[tag]
            assert (tag in can[word]) if word in can else tag == "O", sentence
            assert ambiguous == (len(can.get(word, "")) > 1), sentence
            before = sentence.words[i - 1].lower() if i else ""
            if tag != "O":
                assert (tag in ("LOC", "DATE")) if before == "in" else True, sentence
                assert tag != "PER" or before not in ("in", "near", "last"), sentence


def test_ambiguous_words_occur_with_both_tags():
    seen = {}
    for sentence in tagged_sentences(600, 0):
        for word, tag, ambiguous in zip(*sentence, strict=True):
            if ambiguous:
                seen.setdefault(word, set()).add(TAGS[tag])
    assert len(seen) == 17
    assert all(len(tags) == 2 for tags in seen.values())


# --- senses --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("word", SENSES)
def test_each_sentence_has_the_word_once_and_no_other_sentence_is_the_same(word):
    first, second = SENSES[word]
    assert len(first) == len(second) == len(set(first)) == len({*first, *second}) / 2 == 8
    for text in first + second:
        assert re.findall(r"\w+", text.lower()).count(word) == 1, text
        assert re.fullmatch(r"[A-Z].*[.?]", text), text


@pytest.mark.parametrize("make", [sentence_pairs, span_questions, tagged_sentences])
def test_numbers_below_zero_are_refused(make):
    with pytest.raises(ValueError, match="n is -1; expected at least 0"):
        make(-1)
    with pytest.raises(ValueError, match="seed is -1; expected at least 0"):
        make(1, seed=-1)
