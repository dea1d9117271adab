from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.generation.chat import Unanswered
from tasks.records import AnswerKind, Domain, Question, Verdict
from tasks.synthesis.players import Answer
from tasks.synthesis.questions import Source
from tasks.synthesis.voting import Judge, Votes, count_votes, worth

SILENT = Unanswered("the server is down")


def question(gold: str = "Ostrelle", text: str = "Where?") -> Question:
    source = Source(Domain.READING_COMPREHENSION, "self_play", "train", 0)
    return source.question(
        text, gold, kind=AnswerKind.TEXT, evidence=["d"], difficulty=1, facts=[], provenance={"kind": "self-play"}
    )


def judging(verdict: Verdict, seen: list[str] | None = None) -> Judge:
    def judge(doubts: Sequence[tuple[Question, str]]) -> Iterator[Verdict]:
        for _, answer in doubts:
            if seen is not None:
                seen.append(answer)
            yield verdict

    return judge


def test_rule_and_judge_together_decide_and_each_doubt_is_judged_once() -> None:
    seen: list[str] = []
    answers: list[Answer] = ["ostrelle", "in Ostrelle town", "in Ostrelle town", "", " . ", SILENT]
    (votes,) = count_votes([question()], answers, judging(Verdict.CORRECT, seen))
    assert votes == Votes(cast=6, scored=5, agreeing=3, rivals=0)
    assert seen == ["in Ostrelle town"]  # neither silence nor a bare dot reaches the judge
    assert votes.rate == 3 / 5


def test_an_answer_is_judged_for_each_question_that_it_is_given_to() -> None:
    seen: list[str] = []
    both = [question(text="Where?"), question(gold="Velden", text="Where else?")]
    votes = count_votes(both, ["Dunrigg", "Ostrelle", "Dunrigg", "Dunrigg"], judging(Verdict.WRONG, seen))
    assert votes == [Votes(2, 2, 1, 1), Votes(2, 2, 0, 2)]
    assert seen == ["Dunrigg", "Dunrigg"]


@pytest.mark.parametrize(
    ("votes", "least", "problem"),
    [
        (Votes(4, 4, 3, 1), 0.51, ""),
        (Votes(4, 4, 2, 1), 0.51, "too few solvers agree"),
        (Votes(4, 4, 4, 0), 1.0, ""),
        (Votes(4, 3, 3, 0), 1.0, "too few solvers agree"),  # who does not answer does not agree
        (Votes(8, 8, 1, 1), 0.01, ""),  # a tie with scattered answers: hard, not wrong
        (Votes(8, 8, 1, 2), 0.01, "solvers agree on another answer"),
        (Votes(8, 8, 0, 1), 0.01, "too few solvers agree"),
        (Votes(4, 2, 2, 0), 0.01, "too few solvers answer"),
        (Votes(4, 0, 0, 0), 0.01, "too few solvers answer"),
        (Votes(), 0.01, "too few solvers answer"),
    ],
)
def test_what_verifies(votes: Votes, least: float, problem: str) -> None:
    assert votes.fault(least) == problem


@pytest.mark.parametrize(
    ("votes", "problem"),
    [
        (Votes(), ""),
        (Votes(8, 8, 0, 3), ""),
        (Votes(20, 20, 1, 0), ""),  # 0.05
        (Votes(10, 10, 1, 0), "answered without documents"),  # 0.1
        (Votes(8, 0, 0, 0), "too few solvers answer"),
    ],
)
def test_what_needs_its_documents(votes: Votes, problem: str) -> None:
    assert votes.blind_fault() == problem


def test_worth_by_hand() -> None:
    assert worth(0.5) == 1.0
    assert worth(1.0) == 0.0
    assert worth(0.25) == worth(0.75) == pytest.approx(0.32465, abs=1e-5)  # exp(−9/8)
    assert worth(0.0) == pytest.approx(0.01111, abs=1e-5)  # exp(−9/2)


def test_no_questions_no_votes() -> None:
    assert count_votes([], [], judging(Verdict.CORRECT)) == []


@given(st.lists(st.sampled_from(["Ostrelle", "Velden", "", SILENT]), min_size=1, max_size=12))
def test_counts_add_up(answers: list[Answer]) -> None:
    (votes,) = count_votes([question()], answers, judging(Verdict.WRONG))
    right: Callable[[Answer], int] = answers.count
    assert votes.cast == len(answers)
    assert (votes.agreeing, votes.rivals) == (right("Ostrelle"), right("Velden"))
    assert votes.cast - votes.scored == right(SILENT)
    assert 0 <= votes.rate <= 1
