"""DocMath-Eval: arithmetic on financial documents, the 800 questions of test-mini (arXiv 2311.09805).

Data: the hub's yale-nlp/DocMath-Eval (its conditions must be accepted) or Tongyi-Zhiwen/docmath, one file a set,
`complong_testmini.jsonl` and so on (300, 200, 100 and 200 questions). Prompt: QwenLong-L1's, `eval/docmath.py` at
38d0806. Not verified: revisions on the hub. QwenLong-L1 trained on three quarters of these questions; a model's own
training set belongs into `filtering.benchmarks`' sight.

Official: the equality of github.com/yale-nlp/DocMath-Eval at a175c0c, `utils/evaluation_utils.py`, on the number that
follows "the answer is", as QwenLong-L1 extracts it; Yale has a GPT-3.5 extract it. That equality is lenient: any power
of ten, a factor of 100, 1,000 or 100,000, signs ignored in both, 0.15 %, equality after rounding up to three decimals;
and what it cannot read is 0, which a gold answer of 0 then equals. Nothing is evaluated here: a number is read or it is
not. Robust: this project's numbers (tasks/rewards/numbers.py), strict in sign, scale and percent.
"""

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from tasks.evaluation.benchmarks.base import Attempt, Score, Task
from tasks.evaluation.benchmarks.files import Row, files, rows
from tasks.evaluation.benchmarks.stated import FORM, prompt_of, stated
from tasks.records import AnswerKind, Verdict
from tasks.rewards.judge import Judge
from tasks.rewards.rules import Gold, check_many

TESTMINI = re.compile(r"(complong|compshort|simplong|simpshort)[_-]testmini")
TOLERANCE = 0.0015
FACTORS = ((50, 100), (500, 1_000), (50_000, 100_000))  # from which ratio on, what factor is forgiven
DECIMALS = 1_000
_STATED = re.compile(r"the answer is ([=≈`%$°£€¥]*-?[0-9.,]+)", re.IGNORECASE)
_SCALE_ASKED = re.compile(r"\bin (?:[\w$]+ )?(thousand|million|billion)", re.IGNORECASE)
_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|0[0-9]+\.[0-9]*|\.[0-9]+)")  # as Python's grammar has it


class DocMath:
    """Numeric answers; the table splits by the four sets."""

    name: ClassVar = "docmath"
    source: ClassVar = "yale-nlp/DocMath-Eval, test-mini"

    def read(self, folder: Path) -> Iterator[Task]:
        for path in files(folder, "**/*testmini*"):
            found = TESTMINI.search(path.name)
            for row in rows(path.parent, path.name):
                yield _task(found[1] if found else "", row)

    def prompt(self, task: Task) -> str:
        return prompt_of(task)

    def score(self, attempts: Sequence[Attempt[Task]], judge: Judge | None) -> list[Score]:  # noqa: ARG002  no judge needed
        return [
            Score(
                official=float(_is_officially_right(attempt)),
                robust=float(_is_right(attempt)),
                answered=stated(attempt) is not None,
            )
            for attempt in attempts
        ]


def official_number(reply: str) -> float | None:
    """The number that QwenLong-L1 extracts: the first after "the answer is", behind the reasoning; None without any.

    What is no number of Python's ("1.2.3", "007") counts as 0, as for the official code.
    """
    text = reply.rpartition("</think>")[2].translate(str.maketrans("", "", "*()"))
    found = _STATED.search(text)
    if found is None:
        return None
    digits = found[1].replace(",", "").rstrip(".").lstrip("=≈`%$°£€¥")
    return float(digits) if _NUMBER.fullmatch(digits) else 0.0


def officially_equal(answer: float, gold: float) -> bool:
    """The official equality; see the top of this file for what it forgives. What overflows is unequal."""
    try:
        return _is_close_enough(answer, gold)
    except OverflowError:
        return False


def _is_close_enough(answer: float, gold: float) -> bool:
    large, small = sorted((abs(answer), abs(gold)), reverse=True)
    if small and (power := math.log10(large / small)) == int(power):
        return True
    if any(small <= large / ratio and _close(small * factor, large) for ratio, factor in FACTORS):
        return True
    return _rounded_up(large) == _rounded_up(small) or _close(answer, gold)


def _close(answer: float, gold: float) -> bool:
    return abs(answer - gold) <= abs(gold) * TOLERANCE


def _rounded_up(number: float) -> float:
    return math.ceil(number * DECIMALS) / DECIMALS


def _is_officially_right(attempt: Attempt[Task]) -> bool:
    number = official_number(attempt.reply)
    return number is not None and officially_equal(number, float(attempt.task.gold[0]))


def _is_right(attempt: Attempt[Task]) -> bool:
    """By the rules; a question that asks "in million" may be answered with or without the word."""
    number, question = attempt.task.gold[0], attempt.task.question
    golds = [number, *(f"{number} {scale.lower()}" for scale in _SCALE_ASKED.findall(question))]
    checks = check_many((attempt.reply, attempt.finish, Gold((gold,), AnswerKind.NUMBER, question)) for gold in golds)
    return any(check.verdict is Verdict.CORRECT for check in checks)


def _written(number: float) -> str:
    """A whole number without decimals: it is compared exactly."""
    return str(int(number)) if number.is_integer() else repr(number)


def _task(name: str, row: Row) -> Task:
    return Task(
        id=row.text("question_id"),
        context="\n".join(row.texts("paragraphs")).strip(),
        question=row.text("question").strip(),
        instruction=FORM,
        gold=(_written(row.number("ground_truth")),),
        subset=name,
    )


DOCMATH = DocMath()
