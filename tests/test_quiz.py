"""The Python side of the quiz: what it accepts, what it refuses and what it leaves behind."""

import re

import pytest
import traitlets
from sample_widgets import exported

from course_utils.widgets import Question, Quiz, strip_widget_state

LIVE = "application/vnd.jupyter.widget-view+json"
SUM = Question("What does `softmax` return?", [
    ("Scores.", "No. Scores go in.", False),
    ("Weights that sum to one.", "Right. Each is positive.", True),
])
MASK = Question("Where does the mask work?", (
    ("Before the softmax.", "Right: `-inf` becomes 0.", True),
    ("After it.", "No. The rows would not sum to one.", False),
    ("Nowhere.", "No.", False),
))


def folded(html):
    """What stands there without scripts: ``[(question, [(choice, explanation), …]), …]``, as HTML."""
    still = html[html.index("<div data-still") : html.index("<script>")]
    questions = re.split(r"<p><strong>(\d+\. .*?)</strong></p>", still)[1:]
    inside = r"<details><summary>(.*?)</summary><p>(.*?)</p></details>"
    return [(asks, re.findall(inside, rest)) for asks, rest in zip(questions[::2], questions[1::2], strict=True)]


def test_questions_are_kept_as_given():
    quiz = Quiz(iter([SUM, MASK]), title="Attention", question=1)
    assert [(q.asks, [tuple(c) for c in q.choices]) for q in quiz.questions] == [
        (q.asks, list(q.choices)) for q in (SUM, MASK)
    ]
    assert (quiz.title, quiz.question, repr(quiz)) == ("Attention", 1, "Quiz(questions=2)")


def test_question_is_two_way_and_observed():
    quiz, seen = Quiz([SUM, MASK]), []
    quiz.observe(lambda change: seen.append(change.new), "question")
    quiz.question = 1
    quiz.set_state({"question": 0})  # as the front end sends it
    assert seen == [1, 0]


def changed(asks=SUM.asks, choices=SUM.choices):
    return Question(asks, choices)


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ([], r"questions is empty; give at least one Question"),
        (["What?"], r"question 0 is 'What\?'; expected Question\(asks, choices\)"),
        ([SUM, ("a", [])], r"question 1 is \('a', \[\]\); expected Question"),
        ([changed(asks=" ")], r"question 0 asks ' '; expected a text"),
        ([changed(asks=7)], r"question 0 asks 7"),
        ([changed(choices=SUM.choices[1:])], r"question 0 \('What does.*has 1 choices; expected a list of two to 9"),
        ([changed(choices=[(str(k), "No.", k == 0) for k in range(10)])], r"has 10 choices"),
        ([changed(choices="yes")], r"has 1 choices; expected a list"),
        ([changed(choices=["yes", "no"])], r"choice 0 is 'yes'; expected \(text, explanation, right\)"),
        ([changed(choices=[("yes", "Right."), ("no", "No.")])], r"choice 0 is \('yes', 'Right.'\); expected"),
        ([changed(choices=[("yes", True, "Right."), ("no", False, "No.")])], r"choice 0 is \('yes', True, 'Right.'\)"),
        ([changed(choices=[("yes", "Right.", 1), ("no", "No.", 0)])], r"choice 0 is .*; expected .* True or False"),
        ([changed(choices=[SUM.choices[1], ("no", "", False)])], r"choice 1 is \('no', '', False\); .* not empty"),
        ([MASK, changed(choices=[SUM.choices[0]] * 2)], r"question 1 .*no choice is right; expected exactly one"),
        ([changed(choices=[MASK.choices[0], SUM.choices[1]])], r"choices 0, 1 are right; expected exactly one"),
        ([changed(choices=[*SUM.choices, SUM.choices[0]])], r"choice 'Scores.' stands there twice"),
    ],
)
def test_bad_questions_say_what_is_wrong(questions, message):
    with pytest.raises(ValueError, match=message):
        Quiz(questions)


@pytest.mark.parametrize("question", [2, -1])
def test_a_question_that_does_not_exist(question):
    with pytest.raises(traitlets.TraitError, match=rf"question is {question}, but there are 2: 0 to 1"):
        Quiz([SUM, MASK], question=question)
    quiz = Quiz([SUM, MASK])
    with pytest.raises(traitlets.TraitError, match=rf"question is {question}"):
        quiz.question = question
    assert quiz.question == 0


def test_output_has_a_live_view_and_what_lasts():
    quiz = Quiz([SUM, MASK])
    data, metadata = quiz._repr_mimebundle_()
    assert data[LIVE]["model_id"] == quiz.model_id
    assert data["text/html"] == quiz.to_html()
    output = {"output_type": "display_data", "data": data, "metadata": metadata}
    strip_widget_state({"cells": [{"cell_type": "code", "outputs": [output]}], "metadata": {}})
    assert set(output["data"]) == {"text/html", "text/plain"}


def test_as_text_questions_come_first_and_answers_last():
    data, _ = Quiz([SUM, MASK], title="Attention")._repr_mimebundle_()
    assert data["text/plain"].splitlines() == [
        "Attention",
        "1. What does `softmax` return?",
        "   a) Scores.",
        "   b) Weights that sum to one.",
        "2. Where does the mask work?",
        "   a) Before the softmax.",
        "   b) After it.",
        "   c) Nowhere.",
        "",
        "Answers",
        "1a ✗ No. Scores go in.",
        "1b ✓ Right. Each is positive.",
        "2a ✓ Right: `-inf` becomes 0.",
        "2b ✗ No. The rows would not sum to one.",
        "2c ✗ No.",
    ]


def test_without_scripts_every_choice_opens_its_explanation():
    html = Quiz([SUM, MASK], title="Attention").to_html()
    assert "<p><strong>Attention</strong></p>" in html
    assert folded(html) == [
        ("1. What does <code>softmax</code> return?", [
            ("Scores.", "✗ No. Scores go in."), ("Weights that sum to one.", "✓ Right. Each is positive."),
        ]),
        ("2. Where does the mask work?", [
            ("Before the softmax.", "✓ Right: <code>-inf</code> becomes 0."),
            ("After it.", "✗ No. The rows would not sum to one."), ("Nowhere.", "✗ No."),
        ]),
    ]
    assert "<img" not in html


def test_export_is_the_same_text_every_time():
    assert Quiz([SUM, MASK]).to_html() == Quiz([SUM, MASK]).to_html()
    assert Quiz([SUM, MASK]).to_html() != Quiz([SUM, MASK], question=1).to_html()
    assert len(Quiz([SUM, MASK]).to_html()) < 50_000


HOSTILE = ["</script><img src=x onerror=alert(1)>", "<!--<script>", "`</code><b>`", "'\"&\u2028\u2029"]


def test_texts_cannot_leave_their_place():
    right = (HOSTILE[0], HOSTILE[1], True)
    quiz = Quiz([Question(HOSTILE[2], [right, (HOSTILE[3], HOSTILE[0], False)])], title=HOSTILE[0])
    html = quiz.to_html()
    assert html.count("</script>") == 1
    for markup in ("<img", "<!--", "<b>"):
        assert markup not in html
    assert "\u2028" not in html.split("<script>")[1]
    assert folded(html)[0] == ("1. <code>&lt;/code&gt;&lt;b&gt;</code>", [
        ("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;", "✓ &lt;!--&lt;script&gt;"),
        ("&#x27;&quot;&amp;\u2028\u2029", "✗ &lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"),
    ])
    state = exported(quiz)
    assert state["title"] == HOSTILE[0]
    assert state["_questions"] == [[HOSTILE[2], [[*right], [HOSTILE[3], HOSTILE[0], False]]]]
