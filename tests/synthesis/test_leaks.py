import pytest

from tasks.records import AnswerKind, Domain, Question
from tasks.synthesis.leaks import ASKED_BEFORE, GIVEN_AWAY, STATED_BY_ANOTHER, STATES_ANOTHER, LeakGuard
from tasks.synthesis.questions import Source
from tasks.synthesis.riddles import Riddle

from .graphs import fact

SOURCE = Source(Domain.MULTI_HOP, "knowledge_graph", "train", 0)


def ask(guard: LeakGuard, text: str, start: str, answer: str, options: tuple[str, ...] = (), scope: str = "") -> str:
    kind = AnswerKind.LETTER if options else AnswerKind.TEXT
    gold = "ABCD"[options.index(answer)] if options else answer
    hops = (fact(start, "r", answer, "d"),)
    riddle = Riddle("path", hops, (), "", (start,), (), gold, kind, options=options, scope=scope)
    return guard.refuse(_question(text, gold, kind, options), riddle)


def _question(text: str, gold: str, kind: AnswerKind, options: tuple[str, ...]) -> Question:
    return SOURCE.question(
        text, gold, kind=kind, evidence=["d"], difficulty=1, facts=[], provenance={"kind": "path"}, options=options
    )


def test_a_question_that_says_its_answer_is_refused_but_its_options_may() -> None:
    assert ask(LeakGuard(), "Is Paris the capital of France?", "France", "Paris") == GIVEN_AWAY
    assert ask(LeakGuard(), "What is the capital of France?", "France", "Paris", ("Rome", "Paris", "Ulm", "Bonn")) == ""


def test_a_question_is_asked_once_in_its_scope() -> None:
    guard = LeakGuard(taken=["Taken?"])
    assert ask(guard, "Taken?", "A", "X") == ASKED_BEFORE
    assert ask(guard, "New?", "A", "X") == ""
    assert ask(guard, "New?", "B", "Y") == ASKED_BEFORE
    assert ask(guard, "New?", "B", "Y", scope="another talk") == ""


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_question_whose_words_or_options_answer_another_is_refused_whichever_comes_first(
    order: tuple[int, int],
) -> None:
    pair = [
        ("What is the capital of France?", "France", "Paris", ()),
        ("Who painted Paris, the pride of France?", "Paris", "Monet", ()),
    ]
    guard = LeakGuard()
    assert ask(guard, *pair[order[0]]) == ""
    assert ask(guard, *pair[order[1]]) == (STATES_ANOTHER if order[1] else STATED_BY_ANOTHER)


def test_options_leak_too_and_whole_words_count() -> None:
    guard = LeakGuard()
    assert ask(guard, "Which river runs through Niger?", "Niger", "Benue") == ""
    assert ask(guard, "Which of these is in Nigeria?", "Nigeria", "Lagos", ("Benue", "Lagos", "Oslo", "Bonn")) == ""
    assert ask(guard, "Which is not in Niger?", "Niger", "Oslo", ("Benue", "Lagos", "Oslo", "Bonn")) == STATES_ANOTHER


def test_refused_questions_are_forgotten() -> None:
    guard = LeakGuard()
    assert ask(guard, "Is it Paris, France?", "France", "Paris") == GIVEN_AWAY
    assert ask(guard, "What is the capital of France?", "France", "Paris") == ""
