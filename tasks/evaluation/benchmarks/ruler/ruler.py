"""RULER: thirteen synthetic subtasks of retrieval, tracing, aggregation and question answering (arXiv 2404.06654).

Followed: github.com/NVIDIA/RULER at c3f5e3b, `scripts/data/synthetic` and `scripts/eval`. The files are those which its
generator writes, or ours (generate.py) for another length, tokenizer or haystack: NAME/validation.jsonl, under a folder
named after the length where there are several.

The official scorer looks for each reference in the lower-cased reply, as a substring of anything: "2" is in "12", and
reciting the whole haystack is right. It takes the share of references found, or for questions on documents whether any
is. It knows no reasoning; here the reply is what follows it. The robust one takes whole words, reads 1,234,567 as
1234567, and divides by the number of values stated where these can be told from prose (numbers, UUIDs, variables).
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from tasks.evaluation.benchmarks.base import BETWEEN_SUBSETS, Attempt, Score, Task
from tasks.evaluation.benchmarks.files import Row, files, rows
from tasks.rewards.extraction import visible
from tasks.rewards.judge import Judge

FILES = "**/validation.jsonl"
ALL_OF, ANY_OF = ("niah", "vt", "cwe", "fwe"), "qa"  # by what the name of a subtask begins with
_UNPRINTABLE = re.compile(r"[\x00-\x1f]")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_SHAPES = (  # values that prose does not hold by chance, as references and in replies
    re.compile(r"\b\d{5,}\b"),
    re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE),
    re.compile(r"\b[A-Z]{5}\b"),
)


class RulerTask(Task):
    """`context` is the haystack with what introduces it; `question` its last line with the beginning of the answer."""

    subtask: str


class Ruler:
    """The table splits by subtask and by length."""

    name: ClassVar = "ruler"
    source: ClassVar = "NVIDIA/RULER@c3f5e3b4f87f97e048793bb510a3a6b19a46bf3a"

    def read(self, folder: Path) -> Iterator[RulerTask]:
        for path in files(folder, FILES):
            place = path.parent.relative_to(folder)
            for number, row in enumerate(rows(path.parent, path.name)):
                yield _task(row, place, number)

    def prompt(self, task: RulerTask) -> str:
        return f"{task.context}\n{task.question}"

    def score(self, attempts: Sequence[Attempt[RulerTask]], judge: Judge | None) -> list[Score]:  # noqa: ARG002  no judge needed
        return [_score(attempt) for attempt in attempts]


def official_score(reply: str, references: Sequence[str], any_of: bool) -> float:
    """The share of references that are a substring of the lower-cased reply, or whether any is. In 0..1."""
    text = _UNPRINTABLE.sub("\n", reply.strip()).strip().lower()
    return _combined([reference.lower() in text for reference in references], any_of)


def robust_score(reply: str, references: Sequence[str], any_of: bool) -> float:
    """As the official score for whole words; times references over values stated if more are stated than there are."""
    text = _THOUSANDS.sub("", reply)
    found = [_stands_in(reference, text) for reference in references]
    return _combined(found, any_of) * min(1.0, len(references) / max(1, _stated(text, references)))


def _combined(found: Sequence[bool], any_of: bool) -> float:
    return float(any(found)) if any_of else sum(found) / len(found)


def _stands_in(reference: str, text: str) -> bool:
    """As a whole word: not within a longer word, number or hyphenated name."""
    return re.search(rf"(?<![\w-]){re.escape(reference)}(?![\w-])", text, re.IGNORECASE) is not None


def _stated(text: str, references: Sequence[str]) -> int:
    """Different values in a text that have the shape of all references; 0 if they have none."""
    for shape in _SHAPES:
        if all(shape.fullmatch(reference) for reference in references):
            return len({value.lower() for value in shape.findall(text)})
    return 0


def _score(attempt: Attempt[RulerTask]) -> Score:
    task = attempt.task
    any_of = task.subtask.startswith(ANY_OF)
    shown = visible(attempt.reply, attempt.finish) or ""
    return Score(
        official=official_score(attempt.reply.rpartition("</think>")[2], task.gold, any_of),
        robust=robust_score(shown, task.gold, any_of),
        answered=bool(shown.strip()),
    )


def _task(row: Row, place: Path, number: int) -> RulerTask:
    *folders, subtask = place.parts or ("",)
    if not subtask.startswith((*ALL_OF, ANY_OF)):
        raise row.error(f"lies in a folder {subtask!r}, which names no subtask of RULER")
    references = row.texts("outputs")
    if not references or not all(map(str.strip, references)):
        raise row.error(f"has no reference in 'outputs', or an empty one: {references}")
    context, _, asked = row.text("input").rpartition("\n")
    prefix = row.text("answer_prefix") if "answer_prefix" in row else ""
    return RulerTask(
        id=f"{place.as_posix()}/{number}",
        context=context,
        question=asked + prefix,
        gold=references,
        subset=BETWEEN_SUBSETS.join((subtask, *(part for part in folders if part.isdigit()))),
        subtask=subtask,
    )


RULER = Ruler()
