"""Why a check ended as it did; the verdict follows from the reason."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from tasks.records import Verdict

S = TypeVar("S")
T = TypeVar("T")


class Reason(StrEnum):
    """The outcome of one check, by name."""

    EQUAL = "equal"
    DIFFERENT = "different"
    OTHER_UNIT = "other_unit"
    AMBIGUOUS = "ambiguous"  # 03/04/2021
    SEVERAL_ANSWERS = "several_answers"  # "5 or 6", "between 5 and 6", "A or B"
    NOT_OF_KIND = "not_of_kind"  # words where a number was asked for
    NO_ANSWER = "no_answer"
    TRUNCATED = "truncated"  # reasoning that never ended, or an answer cut by the token limit
    TOO_LONG = "too_long"
    NO_GOLD = "no_gold"  # no gold answer, or one without content
    NEEDS_JUDGE = "needs_judge"  # free text that does not equal the gold answer, or code that has no test cases
    TIMED_OUT = "timed_out"  # algebra
    CHECK_FAILED = "check_failed"  # algebra ran out of memory or crashed
    PASSED = "passed"  # a program, on all its test cases
    OTHER_OUTPUT = "other_output"
    PROGRAM_FAILED = "program_failed"  # exit status or signal
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"
    QUERY_FAILED = "query_failed"  # refused, faulty, too slow, or too many rows
    SANDBOX_FAILED = "sandbox_failed"  # before the program ran

    @property
    def verdict(self) -> Verdict:
        """No verdict could be had: unscored. Everything else but equality and passed tests is wrong."""
        if self in _CORRECT:
            return Verdict.CORRECT
        return Verdict.UNSCORED if self in _UNSCORED else Verdict.WRONG


_CORRECT = frozenset({Reason.EQUAL, Reason.PASSED})
_UNSCORED = frozenset(
    {Reason.NO_GOLD, Reason.NEEDS_JUDGE, Reason.TIMED_OUT, Reason.CHECK_FAILED, Reason.SANDBOX_FAILED}
)


@dataclass(frozen=True)
class Checked:
    """The result of one check. `extracted` is the answer that was compared, None when there was none."""

    reason: Reason
    extracted: str | None = None

    @property
    def verdict(self) -> Verdict:
        return self.reason.verdict


@dataclass(frozen=True)
class Equation:
    """Two expressions whose equality only algebra can decide.

    `tolerance` is relative to the gold value; above 0 only where one of the two is a rounded decimal.
    """

    gold: str
    answer: str
    tolerance: float = 0.0


def mapped(done: "Future[S]", change: Callable[[S], T]) -> "Future[T]":
    """A future of the changed result; an error stays what it is."""
    future: Future[T] = Future()

    def pass_on(done: "Future[S]") -> None:
        try:
            future.set_result(change(done.result()))
        except Exception as error:  # raised in a callback it would be lost, and the future never done
            future.set_exception(error)

    done.add_done_callback(pass_on)
    return future
