"""max(rule, judge): the rule decides what it can, the judge is asked about the rest (QwenLong-L1.5 §4.1)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from tasks.records import AnswerKind, Finish, Verdict
from tasks.rewards.judge import WINDOW, Judge
from tasks.rewards.judging.purposes import Claim, claim_of
from tasks.rewards.numbers import parse_gold, parse_number
from tasks.rewards.reasons import Reason
from tasks.rewards.rules import Asked, check_stream, extract_answer

OPEN = frozenset({Reason.NOT_OF_KIND, Reason.NEEDS_JUDGE, Reason.TIMED_OUT, Reason.CHECK_FAILED})  # not decided
WORDED = frozenset({AnswerKind.TEXT, AnswerKind.LIST, AnswerKind.ORDERED_LIST, AnswerKind.SET})  # in other words, too
RULED = frozenset({AnswerKind.LETTER, AnswerKind.CODE})  # code is run, not read


@dataclass(frozen=True)
class Attempt:
    """A reply to a question, and why it ended."""

    question: Asked
    reply: str
    finish: Finish


def verdict_of(question: Asked, reply: str, finish: Finish, judge: Judge | None) -> Verdict:
    """The verdict on one reply; see `verdicts_of`."""
    return next(verdicts_of([Attempt(question, reply, finish)], judge))


def verdicts_of(attempts: Iterable[Attempt], judge: Judge | None) -> Iterator[Verdict]:
    """Verdicts in order, drawing a window of attempts at a time. Without a judge they are the rule's.

    What the rule finds equal is correct. What states no answer, or several, is wrong, and so is another letter, number
    or date: a judge takes 1,205 for 1,250. The judge is asked about other words, and about what the rule could not
    compare; where it gives no verdict there is none, for the answer may have been right.
    """
    coming = iter(attempts)
    while window := list(islice(coming, WINDOW)):
        yield from _verdicts(window, judge)


def _verdicts(attempts: Sequence[Attempt], judge: Judge | None) -> Iterator[Verdict]:
    checks = list(check_stream((attempt.reply, attempt.finish, attempt.question) for attempt in attempts))
    if judge is None:
        yield from (check.verdict for check in checks)
        return
    doubts = [_doubt(attempt, check.reason) for attempt, check in zip(attempts, checks, strict=True)]
    judged = judge.judge(claim for claim in doubts if claim)
    for attempt, check, claim in zip(attempts, checks, doubts, strict=True):
        yield _watched(next(judged), attempt, judge) if claim else check.verdict


def _doubt(attempt: Attempt, reason: Reason) -> Claim | None:
    """What the judge is to be asked about a checked reply: only ever a stated answer, not a whole reply."""
    question, kind = attempt.question, attempt.question.answer_kind
    if kind in RULED or not (reason in OPEN or (reason is Reason.DIFFERENT and kind in WORDED)):
        return None
    answer = extract_answer(attempt.reply, attempt.finish)
    return None if answer is None or _are_numbers(answer, question.gold) else claim_of(question, answer)


def _are_numbers(answer: str, gold: Sequence[str]) -> bool:
    """Whether arithmetic has compared them, or could have."""
    return len(gold) == 1 and parse_number(answer) is not None and parse_gold(gold[0]) is not None


def _watched(verdict: Verdict, attempt: Attempt, judge: Judge) -> Verdict:
    """Count approval of a reply that states no answer. Above 0, a policy is paid for saying nothing."""
    if verdict is Verdict.CORRECT and extract_answer(attempt.reply, attempt.finish) is None:
        judge.tally.add("approved_without_answer")
    return verdict
