"""What solvers' answers say about a proposed question: how many reach its answer, and whether it is to be believed."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tasks.generation.chat import Unanswered
from tasks.records import Question, Verdict
from tasks.rewards.normalise import normalise
from tasks.rewards.rules import is_same
from tasks.synthesis.players import Answer

PREFERRED_RATE = 0.5  # SPELL: the best question is solved half of the time,
PREFERENCE_WIDTH = 0.5 / 3  # and its worth falls off like a Gaussian of this width
UNGROUNDED_RATE = 0.1  # SPELL: solved as often as this without documents, a question does not need them

Judge = Callable[[Sequence[tuple[Question, str]]], Iterator[Verdict]]


@dataclass(frozen=True)
class Votes:
    """Answers to one question: how many were asked for, got a verdict, agree; and the most frequent other answer's."""

    cast: int = 0
    scored: int = 0
    agreeing: int = 0
    rivals: int = 0

    @property
    def rate(self) -> float:
        """Solve rate among the answers with a verdict; 0 without any."""
        return self.agreeing / self.scored if self.scored else 0.0

    def fault(self, least_rate: float) -> str:
        """Why they do not verify the question, or "". Who gave no answer does not agree."""
        if 2 * self.scored <= self.cast:
            return "too few solvers answer"
        if self.agreeing == 0 or self.agreeing < least_rate * self.cast:
            return "too few solvers agree"
        return "solvers agree on another answer" if self.rivals > self.agreeing else ""

    def blind_fault(self) -> str:
        """Why votes without documents speak against the question, or ""; nobody asked, nothing said."""
        if self.cast and not self.scored:
            return "too few solvers answer"
        return "answered without documents" if self.rate >= UNGROUNDED_RATE else ""


def worth(solve_rate: float) -> float:
    """SPELL's reward of a proposer: exp(−(p − ½)² / 2σ²) with σ = 0.5/3, and 0 for what everyone solves."""
    if solve_rate == 1.0:
        return 0.0
    return math.exp(-((solve_rate - PREFERRED_RATE) ** 2) / (2 * PREFERENCE_WIDTH**2))


def count_votes(questions: Sequence[Question], answers: Sequence[Answer], judge: Judge) -> list[Votes]:
    """Votes of each question; `answers` holds the same number for each, one question after the other.

    A verdict is max(rule, judge): the judge is asked once about every answer with content that the rule refuses.
    """
    each = len(answers) // len(questions) if questions else 1
    asked = [question for question in questions for _ in range(each)]
    verdicts = [_rule(question, answer) for question, answer in zip(asked, answers, strict=True)]
    doubts: dict[tuple[str, Answer], tuple[Question, str]] = {
        (question.id, answer): (question, answer)
        for question, answer, verdict in zip(asked, answers, verdicts, strict=True)
        if verdict is Verdict.WRONG and isinstance(answer, str) and normalise(answer)
    }
    judged = dict(zip(doubts, judge(list(doubts.values())), strict=True))
    votes = [
        (answer, judged.get((question.id, answer), verdict))
        for question, answer, verdict in zip(asked, answers, verdicts, strict=True)
    ]
    return [_counted(votes[start : start + each]) for start in range(0, len(votes), each)]


def _rule(question: Question, answer: Answer) -> Verdict:
    if isinstance(answer, Unanswered):
        return Verdict.UNSCORED
    return Verdict.CORRECT if answer and is_same(answer, question) else Verdict.WRONG


def _counted(votes: Sequence[tuple[Answer, Verdict]]) -> Votes:
    verdicts = Counter(verdict for _, verdict in votes)
    others = Counter(
        normalise(answer) for answer, verdict in votes if isinstance(answer, str) and verdict is Verdict.WRONG
    )
    del others[""]  # silence is no answer
    return Votes(
        cast=len(votes),
        scored=verdicts[Verdict.CORRECT] + verdicts[Verdict.WRONG],
        agreeing=verdicts[Verdict.CORRECT],
        rivals=max(others.values(), default=0),
    )
