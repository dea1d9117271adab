"""What early stops save in verification: answers drawn and CPU-seconds, beside drawing all, with the same decisions.

`PYTHONPATH=. python benchmarks/early_stop.py --questions 384` takes questions of the last run (data/synthesized and
data/corpus) through both checks that ask the base model (tasks/filtering/examination.py), twice: until decided, and
all answers at once, the cheapest way to draw them. Both draw from the same seeds: the decisions must agree, question by
question. The last line is what balance adds: it completes the answers of the kept training items. Answers are counted,
CPU-seconds measured in this process.
"""

import argparse
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tasks.artifacts import read_questions
from tasks.corpus.library import Library
from tasks.filtering.contamination import survey
from tasks.filtering.examination import (
    Assignment,
    Examined,
    batches,
    extended_to,
    ground,
    open_examiner,
    robustness_exam,
    until_complete,
    withstand,
)
from tasks.filtering.guessing import answer_shares
from tasks.filtering.lengths import buckets
from tasks.filtering.screening import screen
from tasks.filtering.trials import Exam, Examiner
from tasks.params import Params, load_params
from tasks.records import Trials

DOCUMENTS = Path("data/corpus/documents.parquet")
SYNTHESIZED = Path("data/synthesized")
Checked = list[tuple[Examined, float]]  # with the share of other questions that have its answer


@dataclass
class Counting:
    """An examiner that counts answers and CPU-seconds; with `samples` it draws so many for every exam it asks."""

    examiner: Examiner
    samples: int | None = None
    answers: int = 0
    seconds: float = 0.0

    def examine(self, exams: Sequence[Exam]) -> list[Trials]:
        """Sit the exams."""
        started = time.process_time()
        trials = self.examiner.examine([self._changed(exam) for exam in exams])
        self.seconds += time.process_time() - started
        self.answers += sum(after.drawn - exam.trials.drawn for exam, after in zip(exams, trials, strict=True))
        return trials

    def _changed(self, exam: Exam) -> Exam:
        if self.samples is None:
            return exam
        every = self.samples
        return replace(exam, wanted=lambda trials: every - trials.drawn)


@dataclass
class Run:
    """Both checks over all questions."""

    grounding: Counting
    robustness: Counting
    examined: list[Examined] = field(default_factory=list)


def extended(params: Params, number: int) -> Checked:
    """A sample of the screened questions on their contexts, lengths in turn, those of one length together."""
    questions = [one for path in sorted(SYNTHESIZED.glob("*.parquet")) for one in read_questions(path)]
    library = Library.open(DOCUMENTS)
    examiner = open_examiner(params)
    left, _ = screen(questions, survey(library.stream()), params.filtering, examiner.tokenizer.count)
    shares = answer_shares(left)
    chosen = random.Random(params.seed).sample(left, min(number, len(left)))
    limits = list(buckets(params))
    count = lru_cache(None)(examiner.tokenizer.prompt_length)
    assigned = [
        Assignment(one, limits[place % len(limits)], shares.get(one.id, 0.0)) for place, one in enumerate(chosen)
    ]
    assigned.sort(key=lambda one: one.limit)
    return [(extended_to(one, library, count, params), one.answer_share) for one in assigned]


def check(pool: Checked, params: Params, grounding: Counting, robustness: Counting) -> Run:
    """Grounding, and robustness of what it left."""
    run = Run(grounding, robustness)
    for batch in batches(pool):
        grounded = ground([one for one, _ in batch], [share for _, share in batch], params, grounding)
        run.examined += withstand(grounded, params, robustness)
    return run


def complete(examined: Sequence[Examined], params: Params, examiner: Examiner) -> Counting:
    """What balance draws for the kept training items."""
    counting = Counting(examiner)
    items = [one.item for one in examined if one.item and one.question.split == "train"]
    for batch in batches(items):
        counting.examine([robustness_exam(item, params, until_complete(params)) for item in batch])
    return counting


def show(early: Run, full: Run, added: Counting) -> None:
    """The table, and whether the decisions agree."""
    table = Table("check", "until decided", "all at once", "fewer answers")
    for name in ("grounding", "robustness"):
        counts = [getattr(early, name), getattr(full, name)]
        shown = [f"{one.answers} answers, {one.seconds:.1f} CPU-s" for one in counts]
        table.add_row(name, *shown, f"{counts[1].answers / counts[0].answers:.2f} ×")
    totals = [run.grounding.answers + run.robustness.answers for run in (early, full)]
    seconds = [run.grounding.seconds + run.robustness.seconds for run in (early, full)]
    shown = [f"{total} answers, {spent:.1f} CPU-s" for total, spent in zip(totals, seconds, strict=True)]
    table.add_row("both", *shown, f"{totals[1] / totals[0]:.2f} ×")
    table.add_row("balance", f"{added.answers} answers, {added.seconds:.1f} CPU-s")
    Console(width=100).print(table)
    pairs = list(zip(early.examined, full.examined, strict=True))
    print(f"{sum(one.outcome is other.outcome for one, other in pairs)} of {len(pairs)} decisions agree")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=384)
    parser.add_argument("--params", type=Path, default=Path("params.yaml"))
    arguments = parser.parse_args()
    params = load_params(arguments.params)
    examiner = open_examiner(params)
    pool = extended(params, arguments.questions)
    early = check(pool, params, Counting(examiner), Counting(examiner))
    samples = params.filtering
    counts = Counting(examiner, samples.grounding_samples), Counting(examiner, samples.robustness_samples)
    show(early, check(pool, params, *counts), complete(early.examined, params, examiner))


if __name__ == "__main__":
    main()
