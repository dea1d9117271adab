"""Why a check ended as it did; the verdict follows from the reason."""

from dataclasses import dataclass
from enum import StrEnum

from tasks.records import Verdict


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
    NEEDS_JUDGE = "needs_judge"  # free text or code that does not equal the gold answer
    TIMED_OUT = "timed_out"
    CHECK_FAILED = "check_failed"  # algebra ran out of memory or crashed

    @property
    def verdict(self) -> Verdict:
        """No verdict could be had: unscored. Everything else but equality is wrong."""
        if self is Reason.EQUAL:
            return Verdict.CORRECT
        return Verdict.UNSCORED if self in _UNSCORED else Verdict.WRONG


_UNSCORED = frozenset({Reason.NO_GOLD, Reason.NEEDS_JUDGE, Reason.TIMED_OUT, Reason.CHECK_FAILED})


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
