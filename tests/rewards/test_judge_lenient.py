"""The lenient score, by hand: containment in whole words, and what it must not fall for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.records import AnswerKind, Finish
from tasks.rewards.lenient import lenient_score
from tasks.rewards.rules import Gold

DONE, CUT = Finish.FINISHED, Finish.TRUNCATED
TEXT = AnswerKind.TEXT


def score(reply: str, *gold: str, kind: AnswerKind = TEXT, finish: Finish = DONE) -> float | None:
    return lenient_score(reply, finish, Gold(gold, kind))


@pytest.mark.parametrize(
    ("reply", "gold", "expected"),
    [
        ("The answer is the old town of Bergen, in Norway.", "Bergen", 1.0),
        ("The answer is Bergen.", "the Bergen", 1.0),
        ("The answer is 'Oslo'", "Bergen", 0.0),
        ("The answer is New York City", "new york", 1.0),
        ("The answer is New City of York", "new york", 0.0),  # its words, but not together
        ("The answer is Bergenhus", "Bergen", 0.0),  # a part of a word
        ("The answer is 13.5", "3.5", 0.0),
        ("The answer is 3.5 km", "3", 0.0),
        ("The answer is about $1,250 in all", "1250", 1.0),
        ("The answer is 1250", "$1,250", 1.0),
        ("The answer is -5", "5", 0.0),
        (r"So it is \boxed{\text{Bergen, Norway}}", "Bergen", 1.0),
        ("答案是位于北京市", "北京", 1.0),  # scripts without spaces
        ("答案是南京", "北京", 0.0),
    ],
)
def test_the_gold_answer_stands_in_the_answer(reply: str, gold: str, expected: float) -> None:
    assert score(reply, gold) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("By the sea, in Bergen of course", 1.0),  # states no answer: all that is shown counts
        ("<think>Bergen?</think> By the sea.", 0.0),
        ("<think>Oslo?</think> Bergen it is", 1.0),
        ("<think>It must be Bergen", 0.0),
        ("Bergen. The answer is Oslo.", 0.0),  # states one: nothing else counts
        ("", 0.0),
    ],
)
def test_where_it_is_looked_for(reply: str, expected: float) -> None:
    assert score(reply, "Bergen") == expected


def test_a_cut_reply_is_read_after_its_reasoning_only() -> None:
    assert score("I think of Bergen and", "Bergen", finish=CUT) == 0.0
    assert score("<think>Oslo</think>I say Bergen and", "Bergen", finish=CUT) == 1.0


@pytest.mark.parametrize("reply", ["5 or 6", "6 or 5", "5, or 6 men", "北京或南京"])
def test_hedging_is_no_answer(reply: str) -> None:
    gold = "北京" if "北" in reply else "5"
    assert score(f"The answer is {reply}", gold) == 0.0


def test_or_is_no_hedging_elsewhere() -> None:
    assert score("The answer is Bergen, for better or worse", "Bergen") == 1.0
    assert score("The answer is do or die", "do or die") == 1.0
    assert score("The answer is 6 or 5, so 5", "5") == 1.0  # decided after all


@pytest.mark.parametrize("gold", [(), ("",), ("...",), (" ",), ("Bergen", "?!")])
def test_what_has_no_words_would_stand_everywhere(gold: tuple[str, ...]) -> None:
    assert score("The answer is Bergen", *gold) is None


def test_all_of_a_list_must_be_there() -> None:
    assert score("The answer is Oslo, Bergen and Moss", "Bergen", "Oslo", kind=AnswerKind.SET) == 1.0
    assert score("The answer is Oslo", "Bergen", "Oslo", kind=AnswerKind.LIST) == 0.0
    assert score("The answer is []", kind=AnswerKind.LIST) is None


def test_letters_and_code_are_no_words() -> None:
    assert score("A good question. The answer is (B)", "A", kind=AnswerKind.LETTER) == 0.0
    assert score("The answer is (A)", "A", kind=AnswerKind.LETTER) == 1.0
    assert score("print(1)", "print(1)", kind=AnswerKind.CODE) is None


@given(st.text(), st.text(), st.sampled_from(sorted(AnswerKind)), st.sampled_from(sorted(Finish)))
def test_never_an_error(reply: str, gold: str, kind: AnswerKind, finish: Finish) -> None:
    assert score(reply, gold, kind=kind, finish=finish) in (0.0, 1.0, None)


def test_a_long_reply_counts_by_its_end() -> None:
    assert score("Bergen " + "x " * 100_000, "Bergen") == 0.0
    assert score("x " * 100_000 + "Bergen", "Bergen") == 1.0
