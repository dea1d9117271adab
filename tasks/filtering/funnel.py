"""The funnel of verification: how many questions went in, which fell where and why."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tasks.records import Domain, Item, Question, Split

if TYPE_CHECKING:
    from rich.table import Table


class Outcome(StrEnum):
    """What can become of a question, in the order of the checks."""

    UNKNOWN_DOCUMENT = "unknown_document"
    OTHER_SPLIT = "document_of_another_split"
    NEAR_DUPLICATE = "near_duplicate"
    EVIDENCE_TOO_LONG = "evidence_too_long"
    UNGROUNDED = "answered_without_documents"
    NOT_ROBUST = "never_right_on_extended_context"
    UNSCORED = "no_verdict_to_be_had"
    KEPT = "kept"


@dataclass(frozen=True)
class Fate:
    """One question's outcome."""

    question: Question
    outcome: Outcome


@dataclass(frozen=True)
class FunnelRow:
    """So many questions of a split and domain had this outcome."""

    split: Split
    domain: Domain
    outcome: Outcome
    count: int


@dataclass(frozen=True)
class LengthRow:
    """Items of one length bucket and the base model's mean pass rate on them; None where not measured."""

    split: Split
    length_bucket: int
    items: int
    mean_pass_rate: float | None


@dataclass(frozen=True)
class Funnel:
    """metrics/verify.json."""

    questions: int
    kept: int
    rows: tuple[FunnelRow, ...]
    lengths: tuple[LengthRow, ...]


def funnel(fates: Sequence[Fate], items: Sequence[Item]) -> Funnel:
    """Count fates and summarise the kept items."""
    counts = Counter((fate.question.split, fate.question.domain, fate.outcome) for fate in fates)
    splits: tuple[Split, ...] = ("train", "development", "test")
    rows = [
        FunnelRow(split, domain, outcome, counts[split, domain, outcome])
        for split in splits
        for domain in Domain
        for outcome in Outcome
        if counts[split, domain, outcome]
    ]
    lengths = sorted({item.length_bucket for item in items})
    by_length = [_length_row(split, length, items) for split in splits for length in lengths]
    return Funnel(
        questions=len(fates),
        kept=len(items),
        rows=tuple(rows),
        lengths=tuple(row for row in by_length if row.items),
    )


def table(result: Funnel) -> "Table":
    """The funnel for a terminal: a line per split and domain, a column per outcome."""
    from rich.table import Table

    names = [outcome.replace("_", " ") for outcome in Outcome]
    shown = Table("split", "domain", *names, title="verification")
    counts = {(row.split, row.domain, row.outcome): row.count for row in result.rows}
    for split, domain in dict.fromkeys((row.split, row.domain) for row in result.rows):
        shown.add_row(split, domain, *(str(counts.get((split, domain, outcome), 0)) for outcome in Outcome))
    return shown


def _length_row(split: Split, length: int, items: Sequence[Item]) -> LengthRow:
    chosen = [item for item in items if item.question.split == split and item.length_bucket == length]
    rates = [item.pass_rate for item in chosen if item.pass_rate is not None]
    return LengthRow(split, length, len(chosen), sum(rates) / len(rates) if rates else None)
