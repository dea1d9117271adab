"""FRAMES: 824 questions that need 2 to 15 Wikipedia articles each (arXiv 2409.12941).

The official data, the hub's google/frames-benchmark at 2383b44 (`test.tsv`: Prompt, Answer, reasoning_types), links to
articles that have changed since. QwenLong's release, Tongyi-Zhiwen/frames (`test.jsonl`), adds their texts
(`wiki_items` of title and text) and is what is read; where `test.tsv` lies beside it, it gives the reasoning types.
Prompt: QwenLong-L1's, `eval/frames.py` at 38d0806. Not verified: the revision of QwenLong's release.

The official autorater is a judge that asks whether the answer has the meaning and the vital facts of the reference; its
prompt is in the paper only, and ours has other words (tasks/rewards/judging/purposes.py). QwenLong reports the larger
of a judge and of containment in either direction, which pays for "the"; that is not computed. The robust score is the
larger of equality by rule and the judge.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from tasks.evaluation.benchmarks.base import Attempt, Score, Task
from tasks.evaluation.benchmarks.files import Row, rows
from tasks.evaluation.benchmarks.stated import FORM, claim_of, judged, prompt_of, stated
from tasks.records import AnswerKind, Verdict
from tasks.rewards.judge import Judge
from tasks.rewards.judging.purposes import VITAL_FACTS
from tasks.rewards.rules import Gold, check_many

TEXTS, QUESTIONS = "test.jsonl", "test.tsv"


class Frames:
    """Multi-hop questions on whole articles."""

    name: ClassVar = "frames"
    source: ClassVar = "Tongyi-Zhiwen/frames; google/frames-benchmark@2383b440f3de33d9c003f089fb66f6677436d696"

    def read(self, folder: Path) -> Iterator[Task]:
        types = _reasoning_types(folder)
        for number, row in enumerate(rows(folder, TEXTS)):
            yield _task(number, row, types)

    def prompt(self, task: Task) -> str:
        return prompt_of(task)

    def score(self, attempts: Sequence[Attempt[Task]], judge: Judge | None) -> list[Score]:
        verdicts = judged([claim_of(attempt, VITAL_FACTS) for attempt in attempts], judge)
        checks = check_many((attempt.reply, attempt.finish, _gold(attempt.task)) for attempt in attempts)
        return [
            Score(
                official=verdict,
                robust=1.0 if check.verdict is Verdict.CORRECT else verdict,
                answered=stated(attempt) is not None,
            )
            for attempt, verdict, check in zip(attempts, verdicts, checks, strict=True)
        ]


def _reasoning_types(folder: Path) -> dict[str, str]:
    """Types by question; several are joined as subsets are ("Numerical reasoning | Tabular reasoning")."""
    if not (folder / QUESTIONS).is_file():
        return {}
    return {row.text("Prompt").strip(): row.text("reasoning_types").strip() for row in rows(folder, QUESTIONS)}


def _task(number: int, row: Row, types: dict[str, str]) -> Task:
    pages = row.rows("wiki_items")
    question = row.text("Prompt").strip()
    return Task(
        id=str(number),
        context="\n".join(f"{page.text('title')}\n{page.text('text')}" for page in pages).strip(),
        question=question,
        instruction=FORM,
        gold=(row.text("Answer").strip(),),
        subset=types.get(question, ""),
    )


def _gold(task: Task) -> Gold:
    return Gold(task.gold, AnswerKind.FREE_TEXT, task.question)


FRAMES = Frames()
