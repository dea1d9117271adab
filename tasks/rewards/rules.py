"""Typed answers checked by rules. Every comparison is an equality of normal forms; containment is never used.

`check` gives the verdict, `examine` also the answer that was compared and the reason, `check_many` those of a batch.
A rule can always judge a reply: no answer is a wrong answer, and so are two answers to a question for one. Unscored
are only: a question without a usable gold answer; free text, and code without test cases, that do not equal the gold
answer; expressions whose comparison failed or took too long (tasks/rewards/algebra.py); and programs for which no
sandbox could be had (tasks/rewards/code/).
"""

import string
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from tasks.records import AnswerKind, Finish, Verdict
from tasks.rewards.code.cases import Trial, judge, read_cases
from tasks.rewards.code.sandbox import require_sandbox
from tasks.rewards.dates import compare_dates
from tasks.rewards.extraction import extract_answer, extract_code, extract_letter, is_unfinished, visible
from tasks.rewards.lists import Order, same_list
from tasks.rewards.normalise import normalise
from tasks.rewards.numbers import RELATIVE_TOLERANCE, compare_numbers, parse_gold, parse_number
from tasks.rewards.reasons import Checked, Equation, Reason, mapped

__all__ = [
    "Gold",
    "check",
    "check_many",
    "check_stream",
    "examine",
    "extract_answer",
    "is_same",
    "require_means",
    "reward_of",
]

LONGEST_ANSWER = 10_000  # characters; a longer gold answer allows as long an answer
LONGEST_CODE = 65_536
IN_FLIGHT = 256  # replies read ahead of one that waits for algebra or a sandbox
_ORDERS: dict[AnswerKind, Order] = {AnswerKind.LIST: "any", AnswerKind.ORDERED_LIST: "kept", AnswerKind.SET: "set"}
_YES = frozenset("yes y yeah true correct right 是 是的 对 正确".split())
_NO = frozenset("no n nope false incorrect wrong 否 不 不是 不对 错误 错".split())
_UNSTATED = frozenset({Reason.NEEDS_JUDGE, Reason.NOT_OF_KIND})


class Asked(Protocol):
    """What a check needs to know of a question; `tasks.records.Question` is one."""

    @property
    def gold(self) -> tuple[str, ...]: ...

    @property
    def answer_kind(self) -> AnswerKind: ...

    @property
    def question(self) -> str: ...

    @property
    def options(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Gold:
    """A gold answer on its own. The text of the question may say a unit, a percentage or the order of a date."""

    gold: tuple[str, ...]
    answer_kind: AnswerKind
    question: str = ""
    options: tuple[str, ...] = ()


def check(reply: str, finish: Finish, question: Asked) -> Verdict:
    """Judge a reply against the gold answer by the question's answer kind.

    A reply that states no answer is right only if the whole of it (after its reasoning) is the gold answer. Expressions
    and programs wait for other processes, seconds at worst: in asynchronous code use `asyncio.to_thread`.
    """
    return examine(reply, finish, question).verdict


def examine(reply: str, finish: Finish, question: Asked) -> Checked:
    """As `check`, with the answer that was compared and the reason of the verdict."""
    answer, outcome = _judged(reply, finish, question)
    return Checked(_decided(outcome), answer)


def check_many(replies: Iterable[tuple[str, Finish, Asked]]) -> list[Checked]:
    """Check a batch; the results are in its order. A reply that hangs the algebra does not delay the others."""
    return list(check_stream(replies))


def check_stream(replies: Iterable[tuple[str, Finish, Asked]]) -> Iterator[Checked]:
    """As `check_many`, lazily: at most `IN_FLIGHT` replies ahead of the oldest result that is not there yet."""
    waiting: deque[Future[Checked]] = deque()
    for reply, finish, question in replies:
        waiting.append(submit(reply, finish, question))
        while waiting and (waiting[0].done() or len(waiting) > IN_FLIGHT):
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def submit(reply: str, finish: Finish, question: Asked) -> "Future[Checked]":
    """Check by rules now; what needs algebra or a sandbox is done when the future is.

    Raises:
        InputError: math-verify, which an expression needs, is not installed.
        SandboxError: a program is to be run, and this machine cannot do that safely.
    """
    answer, outcome = _judged(reply, finish, question)
    return mapped(_settled(outcome), lambda reason: Checked(reason, answer))


def require_means(questions: Iterable[Asked]) -> None:
    """Find out before expensive work starts whether all of these questions can be checked on this machine.

    Raises:
        SandboxError: one is answered by a program, and this machine cannot run programs safely.
    """
    if any(question.answer_kind is AnswerKind.CODE and read_cases(question.gold) for question in questions):
        require_sandbox()


def is_same(answer: str, question: Asked) -> bool:
    """Whether an extracted answer equals the gold answer, or passes its test cases."""
    return _decided(_compared(answer, question)).verdict is Verdict.CORRECT


def reward_of(verdict: Verdict) -> float | None:
    """1 for correct, 0 for wrong, None for unscored: that one is masked and counted, never a 0."""
    return {Verdict.CORRECT: 1.0, Verdict.WRONG: 0.0}.get(verdict)


def _decided(outcome: Reason | Equation | Trial) -> Reason:
    return outcome if isinstance(outcome, Reason) else _settled(outcome).result()


def _settled(outcome: Reason | Equation | Trial) -> "Future[Reason]":
    if isinstance(outcome, Trial):
        return judge(outcome)
    if isinstance(outcome, Equation):
        from tasks.rewards.algebra import algebra

        return algebra().submit(outcome)
    future: Future[Reason] = Future()
    future.set_result(outcome)
    return future


def _judged(reply: str, finish: Finish, question: Asked) -> tuple[str | None, Reason | Equation | Trial]:
    """The answer that counts, and what came of it."""
    if not _has_gold(question):
        return None, Reason.NO_GOLD
    if question.answer_kind is AnswerKind.LETTER:
        letter = extract_letter(reply, finish, _letters(question))
        return letter, _chosen(letter, question) if letter else _no_answer(reply, finish)
    extract = extract_code if question.answer_kind is AnswerKind.CODE else extract_answer
    answer = extract(reply, finish)
    if answer is not None:
        outcome = _compared(answer, question)
        return (None if outcome is Reason.TOO_LONG else answer), outcome
    whole = (visible(reply, finish) or "").strip() if finish is Finish.FINISHED else ""
    outcome = _compared(whole, question) if whole and "\\boxed" not in whole else Reason.NO_ANSWER
    if outcome is Reason.TOO_LONG:
        return None, outcome
    if (
        isinstance(outcome, Trial)
        or outcome in _UNSTATED
        or outcome is Reason.NO_ANSWER
        or not normalise(whole[:LONGEST_ANSWER])
    ):
        return None, _no_answer(reply, finish)
    return whole, outcome


def _no_answer(reply: str, finish: Finish) -> Reason:
    return Reason.TRUNCATED if is_unfinished(reply, finish) else Reason.NO_ANSWER


def _has_gold(question: Asked) -> bool:
    """Whether the gold answer can be matched at all: an empty normal form never may."""
    if question.answer_kind in _ORDERS:
        return all(map(normalise, question.gold))
    if question.answer_kind is AnswerKind.CODE and read_cases(question.gold):
        return True
    if len(question.gold) != 1:
        return False
    if question.answer_kind is AnswerKind.LETTER:
        return len(_gold_letter(question)) == 1
    if question.answer_kind is AnswerKind.YES_NO:
        return _yes_or_no(question.gold[0]) is not None
    return question.gold[0].strip() != "" and (
        question.answer_kind is AnswerKind.CODE or _has_content(question.gold[0])
    )


@lru_cache(maxsize=4096)
def _has_content(text: str) -> bool:
    return parse_gold(text) is not None or normalise(text) != ""


def _compared(answer: str, question: Asked) -> Reason | Equation | Trial:
    longest = LONGEST_CODE if question.answer_kind is AnswerKind.CODE else LONGEST_ANSWER
    if len(answer) > max(longest, 4 * sum(map(len, question.gold))):
        return Reason.TOO_LONG
    return _COMPARISONS[question.answer_kind](answer, question)


def _equal(same: bool) -> Reason:
    return Reason.EQUAL if same else Reason.DIFFERENT


def _letters(question: Asked) -> str:
    """The letters that are options; all letters when a question lists its options in its text."""
    return string.ascii_uppercase[: len(question.options)] if question.options else string.ascii_uppercase


def _gold_letter(question: Asked) -> str:
    return question.gold[0].strip(" ().").upper()


def _chosen(letter: str | None, question: Asked) -> Reason:
    return Reason.NO_ANSWER if letter is None else _equal(letter == _gold_letter(question))


def _same_letter(answer: str, question: Asked) -> Reason:
    return _chosen(extract_letter(f"Answer: {answer}", Finish.FINISHED, _letters(question)), question)


def _same_list(answer: str, question: Asked) -> Reason:
    return _equal(same_list(answer, question.gold, question.question, _ORDERS[question.answer_kind]))


def _same_date(answer: str, question: Asked) -> Reason:
    return compare_dates(answer, question.gold[0], question.question)


def _same_number(answer: str, question: Asked) -> Reason | Equation:
    kind, gold = question.answer_kind, question.gold[0]
    in_percent = kind is AnswerKind.PERCENT and _lacks_percent(gold)
    needs_unit = kind is AnswerKind.QUANTITY
    reason = compare_numbers(answer, gold, question.question, in_percent=in_percent, unit_needed=needs_unit)
    return _with_algebra(reason, answer, gold) if reason is not Reason.EQUAL else reason


def _with_algebra(reason: Reason, answer: str, gold: str) -> Reason | Equation:
    """An equation where one side is mathematics outside the number grammar and the other may be equal to it."""
    from tasks.rewards.algebra import is_expression, is_mathematics

    wanted, given = parse_gold(gold), parse_number(answer)
    if wanted is not None:
        needed = given is None and wanted.within is None and is_mathematics(answer)
    else:
        needed = is_expression(gold) and (given is not None or is_expression(answer))
    if not needed:
        return reason
    rounded = any("." in text for text, number in ((gold, wanted), (answer, given)) if number is not None)
    return Equation(gold, answer, float(RELATIVE_TOLERANCE) if rounded else 0.0)


def _lacks_percent(gold: str) -> bool:
    number = parse_gold(gold)
    return number is not None and not number.percent


def _is_text(answer: str, gold: str) -> bool:
    wanted = _normal_gold(gold)
    return wanted != "" and normalise(answer) == wanted


_normal_gold = lru_cache(maxsize=4096)(normalise)  # one gold answer meets many replies


def _same_text(answer: str, question: Asked) -> Reason | Equation:
    gold = question.gold[0]
    if _is_text(answer, gold):
        return Reason.EQUAL
    if "\\" in gold or "^" in gold:
        return _with_algebra(Reason.DIFFERENT, answer, gold)
    return Reason.DIFFERENT


def _same_free_text(answer: str, question: Asked) -> Reason:
    return Reason.EQUAL if _is_text(answer, question.gold[0]) else Reason.NEEDS_JUDGE


def _same_code(answer: str, question: Asked) -> Reason | Trial:
    cases = read_cases(question.gold)
    if cases:
        return Trial(answer, cases)
    return Reason.EQUAL if _code_lines(answer) == _code_lines(question.gold[0]) else Reason.NEEDS_JUDGE


def _same_yes_no(answer: str, question: Asked) -> Reason:
    given = _yes_or_no(answer)
    if given is None:
        words = set(normalise(answer).split())
        return Reason.SEVERAL_ANSWERS if words & _YES and words & _NO else Reason.NOT_OF_KIND
    return _equal(given is _yes_or_no(question.gold[0]))


def _yes_or_no(text: str) -> bool | None:
    """ "Yes" and "Yes, because it is." are yes; "yes and no", "yes, but also no" and "yesterday" are nothing."""
    first, *rest = normalise(text.replace(",", " , ").replace("，", " , ")).split() or [""]
    explained = "," in text or "，" in text or not rest
    if not explained or (first in _YES) == (first in _NO):
        return None
    return None if set(rest) & (_NO if first in _YES else _YES) else first in _YES


def _code_lines(text: str) -> list[str]:
    """Lines without trailing blanks, and without blank lines around them."""
    return [line.rstrip() for line in text.strip().splitlines()]


_COMPARISONS: dict[AnswerKind, Callable[[str, Asked], Reason | Equation | Trial]] = {
    AnswerKind.LETTER: _same_letter,
    AnswerKind.NUMBER: _same_number,
    AnswerKind.QUANTITY: _same_number,
    AnswerKind.PERCENT: _same_number,
    AnswerKind.DATE: _same_date,
    AnswerKind.LIST: _same_list,
    AnswerKind.ORDERED_LIST: _same_list,
    AnswerKind.SET: _same_list,
    AnswerKind.TEXT: _same_text,
    AnswerKind.YES_NO: _same_yes_no,
    AnswerKind.CODE: _same_code,
    AnswerKind.FREE_TEXT: _same_free_text,
}
