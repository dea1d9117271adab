"""LongBench v1, the five English question answering sets of QwenLong's evaluations, 200 questions each (2308.14508).

Data: `data.zip` of the hub's THUDM/LongBench at f72191f (now zai-org), unpacked: `narrativeqa.jsonl` and so on. Prompt:
QwenLong-L1's, `eval/2wikimqa.py` and its siblings at 38d0806, the same for all sets; LongBench's own prompts forbid an
explanation, which a reasoning model gives.

Official: the F1 of tokens of LongBench's `metrics.py` and `eval.py` at 2e00731, the best of all gold answers, here of
the stated answer, as QwenLong-L1 computes it. Robust: a gold answer stands in the stated one, in whole words and not
beside "or", or else a judge finds them equivalent. QwenLong's score, too, is the larger of containment and judge, but
it looks for substrings in either direction, which pays for "the", and for the first gold answer alone. The Chinese sets
need a word segmenter and are not part of the paper's table: left out.
"""

import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from tasks.evaluation.benchmarks.base import Attempt, Score, Task
from tasks.evaluation.benchmarks.files import Row, rows
from tasks.evaluation.benchmarks.stated import FORM, claim_of, judged, prompt_of, shown, stated
from tasks.records import AnswerKind
from tasks.rewards.judge import Judge
from tasks.rewards.judging.purposes import EQUIVALENCE
from tasks.rewards.lenient import lenient_score
from tasks.rewards.rules import Gold

SETS = ("narrativeqa", "qasper", "hotpotqa", "2wikimqa", "musique")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class LongBenchV1:
    """Short answers on one or several documents; the table splits by set."""

    name: ClassVar = "longbench_v1"
    source: ClassVar = "THUDM/LongBench@f72191f71cd6fcd0da8a54f0915078efda579449"

    def read(self, folder: Path) -> Iterator[Task]:
        for name in SETS:
            for row in rows(folder, f"**/{name}.jsonl"):
                yield _task(name, row)

    def prompt(self, task: Task) -> str:
        return prompt_of(task)

    def score(self, attempts: Sequence[Attempt[Task]], judge: Judge | None) -> list[Score]:
        contained = [_contains_gold(attempt) for attempt in attempts]
        claims = [
            None if found else claim_of(attempt, EQUIVALENCE)
            for found, attempt in zip(contained, attempts, strict=True)
        ]
        return [
            Score(
                official=official_f1(stated(attempt) or shown(attempt), attempt.task.gold),
                robust=1.0 if found else verdict,
                answered=stated(attempt) is not None,
            )
            for attempt, found, verdict in zip(attempts, contained, judged(claims, judge), strict=True)
        ]


def official_f1(answer: str, gold: Sequence[str]) -> float:
    """F1 of the bags of words, lower-case, without ASCII punctuation and articles; the best of the gold answers."""
    return max((_f1(_words(answer), _words(each)) for each in gold), default=0.0)


def _contains_gold(attempt: Attempt[Task]) -> bool:
    if stated(attempt) is None:
        return False
    golds = (Gold((gold,), AnswerKind.TEXT) for gold in attempt.task.gold)
    return any(lenient_score(attempt.reply, attempt.finish, gold) == 1.0 for gold in golds)


def _f1(answer: Sequence[str], gold: Sequence[str]) -> float:
    same = sum((Counter(answer) & Counter(gold)).values())
    return 2 * same / (len(answer) + len(gold)) if same else 0.0


def _words(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def _task(name: str, row: Row) -> Task:
    return Task(
        id=f"{name}/{row.text('_id')}",
        context=row.text("context").strip(),
        question=row.text("input").strip(),
        instruction=FORM,
        gold=row.texts("answers"),
        subset=name,
    )


LONGBENCH_V1 = LongBenchV1()
