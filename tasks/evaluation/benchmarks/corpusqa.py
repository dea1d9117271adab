"""CorpusQA: what all documents of a corpus say together, at 128K, 1M, 4M and 10M tokens, 329 questions each.

Followed: github.com/Tongyi-Zhiwen/CorpusQA at f5b5764, `src/infer.py` (the prompt is in the data), `src/eval.py` and
appendix C of its paper. Data: the hub's Tongyi-Zhiwen/CorpusQA, JSON lines of id, prompt, question and answer. Not
verified: the names of its files; the length is taken from "set1" to "set4" in a name, the domain from the id.

Official: a judge at temperature 0 sees what follows the first "The answer is:", else the whole reply, and must write
[[YES]] and not [[NO]]. Ours has other words (tasks/rewards/judging/purposes.py) and sees the last stated answer.
Robust: the rules of tasks/rewards for numbers, percentages and lists, which no judge overrules, and the judge for
words. An empty list is a legitimate answer.
"""

import ast
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from tasks.evaluation.benchmarks.base import BETWEEN_SUBSETS, Attempt, Score, Task
from tasks.evaluation.benchmarks.files import Row, files, rows
from tasks.evaluation.benchmarks.stated import claim_of, judged, stated
from tasks.records import AnswerKind
from tasks.rewards.judge import Judge
from tasks.rewards.judging.purposes import CORPUS_QA
from tasks.rewards.judging.verdicts import Attempt as Answer
from tasks.rewards.judging.verdicts import verdicts_of
from tasks.rewards.numbers import parse_gold
from tasks.rewards.rules import Gold, reward_of

LENGTHS = {"1": "128K", "2": "1M", "3": "4M", "4": "10M"}
DOMAINS = ("financial_zh", "financial_en", "education_en", "real_estate_en")
QUESTION, REQUIREMENTS = "# Question:", "# Output requirements:"
_SET = re.compile(r"set_?([1-4])", re.IGNORECASE)


class CorpusTask(Task):
    """`context` and `tail` joined are the official prompt: the documents, then question and requirements."""

    tail: str


class CorpusQA:
    """Filters, rankings and sums over hundreds of documents; the table splits by length and domain."""

    name: ClassVar = "corpusqa"
    source: ClassVar = "Tongyi-Zhiwen/CorpusQA"

    def read(self, folder: Path) -> Iterator[CorpusTask]:
        for path in files(folder, "**/*.jsonl"):
            found = _SET.search(path.name)
            for row in rows(path.parent, path.name):
                yield _task(LENGTHS[found[1]] if found else "", row)

    def prompt(self, task: CorpusTask) -> str:
        return task.context + task.tail

    def score(self, attempts: Sequence[Attempt[CorpusTask]], judge: Judge | None) -> list[Score]:
        official = judged([claim_of(attempt, CORPUS_QA) for attempt in attempts], judge)
        answers = (Answer(_gold(attempt.task), attempt.reply, attempt.finish) for attempt in attempts)
        return [
            Score(official=verdict, robust=reward_of(robust), answered=stated(attempt) is not None)
            for attempt, verdict, robust in zip(attempts, official, verdicts_of(answers, judge), strict=True)
        ]


def _task(length: str, row: Row) -> CorpusTask:
    content = "\n\n".join(message.text("content") for message in row.rows("prompt"))
    documents, mark, rest = content.rpartition(QUESTION)
    _, requirements, form = rest.partition(REQUIREMENTS)
    name = row.text("id")
    domain = next((domain for domain in DOMAINS if name.startswith(domain)), "")
    return CorpusTask(
        id=f"{length}/{name}" if length else name,
        context=documents if mark else content,
        tail=mark + rest if mark else "",
        question=row.text("question").strip(),
        instruction=(requirements + form).strip(),
        gold=(_written(row.value("answer")),),
        subset=BETWEEN_SUBSETS.join(part for part in (length, domain) if part),
    )


def _written(answer: object) -> str:
    """An answer as text; the data may hold lists and numbers as JSON or spelled."""
    return answer.strip() if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _gold(task: Task) -> Gold:
    """The kind of an answer shows in how it is written."""
    text = task.gold[0]
    if (members := _members(text)) is not None:
        return Gold(members, AnswerKind.SET, task.question)
    number = parse_gold(text)
    if number is None:
        return Gold((text.strip('"'),), AnswerKind.FREE_TEXT, task.question)
    return Gold((text,), AnswerKind.PERCENT if number.percent else AnswerKind.NUMBER, task.question)


def _members(text: str) -> tuple[str, ...] | None:
    """The members of a list in JSON or Python; None for anything else."""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        listed = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return tuple(str(member) for member in listed)


CORPUSQA = CorpusQA()
