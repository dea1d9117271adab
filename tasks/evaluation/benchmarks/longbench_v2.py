"""LongBench v2: 503 questions with four choices, from 8K to 2M words (arXiv 2412.15204).

Followed: github.com/THUDM/LongBench at 2e00731, `pred.py` (zero-shot, no chain of thought asked for), `result.py` and
`prompts/0shot.txt`; data: the hub's THUDM/LongBench-v2 (now zai-org), `data.json`.

The official scorer takes the first "The correct answer is (X)" of the whole reply, reasoning included, asterisks
removed; else the first without parentheses, so that "is Definitely (B)" is D. No match is wrong. The robust one reads
what the reply settles on after its reasoning (tasks/rewards/extraction.py). Not verified: whether the paper's figures
are of replies with or without their reasoning.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from tasks.evaluation.benchmarks.base import BETWEEN_SUBSETS, Attempt, Score, Task
from tasks.evaluation.benchmarks.files import Row, rows
from tasks.rewards.extraction import extract_letter
from tasks.rewards.judge import Judge

LETTERS = "ABCD"
FORM = 'Format your response as follows: "The correct answer is (insert answer here)".'
PROMPT = (
    "Please read the following text and answer the question below.\n\n<text>\n{context}\n</text>\n\n"
    "What is the correct answer to this question: {question}\n{choices}"
)
_IN_PARENTHESES = re.compile(r"The correct answer is \(([A-D])\)")
_BARE = re.compile(r"The correct answer is ([A-D])")


class LongBenchV2:
    """Multiple choice; the table splits by difficulty, length and domain."""

    name: ClassVar = "longbench_v2"
    source: ClassVar = "THUDM/LongBench-v2@2b48e494f2c7a2f0af81aae178e05c7e1dde0fe9"

    def read(self, folder: Path) -> Iterator[Task]:
        return map(_task, rows(folder, "data.json"))

    def prompt(self, task: Task) -> str:
        return PROMPT.format(context=task.context, question=task.question, choices=task.instruction)

    def score(self, attempts: Sequence[Attempt[Task]], judge: Judge | None) -> list[Score]:  # noqa: ARG002  no judge needed
        return [_score(attempt) for attempt in attempts]


def official_letter(reply: str) -> str | None:
    """The letter that the official parser finds."""
    text = reply.replace("*", "")
    found = _IN_PARENTHESES.search(text) or _BARE.search(text)
    return found[1] if found else None


def _task(row: Row) -> Task:
    choices = "\n".join(f"({letter}) {row.text(f'choice_{letter}').strip()}" for letter in LETTERS)
    gold = row.text("answer")
    if gold not in LETTERS or len(gold) != 1:
        raise row.error(f"has 'answer' = {gold!r}, which is none of A to D")
    return Task(
        id=row.text("_id"),
        context=row.text("context").strip(),
        question=row.text("question").strip(),
        instruction=f"Choices:\n{choices}\n\n{FORM}",
        gold=(gold,),
        subset=BETWEEN_SUBSETS.join(row.text(field) for field in ("difficulty", "length", "domain")),
    )


def _score(attempt: Attempt[Task]) -> Score:
    gold = attempt.task.gold[0]
    letter = extract_letter(attempt.reply, attempt.finish, LETTERS)
    return Score(
        official=float(official_letter(attempt.reply) == gold),
        robust=float(letter == gold),
        answered=letter is not None,
    )


LONGBENCH_V2 = LongBenchV2()
