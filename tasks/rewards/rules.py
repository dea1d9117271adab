"""Typed answers checked by rules. Every comparison is an equality of normal forms; containment is never used.

A rule can always judge a reply: no answer is a wrong answer. Only a question without a usable gold answer is
unscored. Domains with free text may add a judge (tasks/rewards/judge.py).
"""

import re
import string
from collections.abc import Sequence

from tasks.records import AnswerKind, Finish, Question, Verdict
from tasks.rewards.extraction import extract_answer, extract_letter, visible
from tasks.rewards.normalise import normalise
from tasks.rewards.numbers import parse_number, same_number

__all__ = ["check", "extract_answer", "is_same", "reward_of"]

EMPTY_LIST_WORDS = frozenset({"[]", "{}", "()", "∅", "none", "nothing", "empty", "empty list", "empty set"})
_QUOTED = re.compile(r'"([^"]*)"')
_SEPARATOR = re.compile(r",(?!\d{3}(?!\d))|\n")  # a comma before three digits separates thousands
_LAST_AND = re.compile(r"\s*\b(?:and|&)\s+")


def check(reply: str, finish: Finish, question: Question) -> Verdict:
    """Judge a reply against the gold answer by the question's answer kind.

    A reply that states no answer is right only if the whole of it (after its reasoning) is the gold answer.
    """
    if question.answer_kind is not AnswerKind.LIST and len(question.gold) != 1:
        return Verdict.UNSCORED
    if question.answer_kind is AnswerKind.LETTER:
        right = extract_letter(reply, finish, _letters(question)) == _gold_letter(question)
    else:
        answer = extract_answer(reply, finish)
        if answer is None and finish is Finish.FINISHED:
            answer = visible(reply, finish)
        right = answer is not None and is_same(answer, question)
    return Verdict.CORRECT if right else Verdict.WRONG


def is_same(answer: str, question: Question) -> bool:
    """Whether an extracted answer equals the gold answer."""
    match question.answer_kind:
        case AnswerKind.LETTER:
            letter = extract_letter(f"Answer: {answer}", Finish.FINISHED, _letters(question))
            return letter == _gold_letter(question)
        case AnswerKind.NUMBER:
            return same_number(answer, question.gold[0], question.question)
        case AnswerKind.LIST:
            return _same_list(answer, question.gold, question.question)
        case AnswerKind.TEXT:
            return _same_text(answer, question.gold[0])


def reward_of(verdict: Verdict) -> float | None:
    """1 for correct, 0 for wrong, None for unscored: that one is masked and counted, never a 0."""
    return {Verdict.CORRECT: 1.0, Verdict.WRONG: 0.0}.get(verdict)


def _letters(question: Question) -> str:
    """The letters that are options; all letters when a question lists its options in its text."""
    return string.ascii_uppercase[: len(question.options)] if question.options else string.ascii_uppercase


def _gold_letter(question: Question) -> str:
    return question.gold[0].strip(" ().").upper()


def _same_text(answer: str, gold: str) -> bool:
    wanted = normalise(gold)
    return wanted != "" and normalise(answer) == wanted


def _same_list(answer: str, gold: Sequence[str], question: str) -> bool:
    """Equality of multisets. "A, B and C" is read both as written and with its last "and" as a separator."""
    if not gold:
        return answer.strip(" .").lower() in EMPTY_LIST_WORDS
    elements = _elements(answer)
    split_last = [*elements[:-1], *_split_last_and(elements[-1])] if elements else []
    return any(_same_elements(reading, gold, question) for reading in (elements, split_last))


def _elements(answer: str) -> list[str]:
    inner = answer.strip(" .")
    if inner[:1] + inner[-1:] in ("[]", "{}", "()"):
        inner = inner[1:-1]
    quoted = _QUOTED.findall(inner)
    if quoted and not _QUOTED.sub("", inner).strip(" ,;\n"):
        return quoted
    parts = inner.split(";") if ";" in inner else _SEPARATOR.split(inner)
    return [part.strip() for part in parts if part.strip()]


def _split_last_and(element: str) -> list[str]:
    """ "and C" and "B and C" become [C] and [B, C]."""
    matches = list(_LAST_AND.finditer(element))
    if not matches:
        return [element]
    parts = (element[: matches[-1].start()], element[matches[-1].end() :])
    return [part for part in parts if part]


def _same_elements(answers: Sequence[str], gold: Sequence[str], question: str) -> bool:
    left = list(answers)
    for wanted in gold:
        found = [index for index, given in enumerate(left) if _same_element(given, wanted, question)]
        if not found:
            return False
        left.pop(found[0])
    return not left


def _same_element(answer: str, gold: str, question: str) -> bool:
    if parse_number(gold) is not None:
        return same_number(answer, gold, question)
    return _same_text(answer, gold)
