"""The funnel of verification: how many questions went in, which fell where and why, what remained after each check."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, get_args

from tasks.records import Domain, Item, Question, Split

if TYPE_CHECKING:
    from rich.table import Table

SPLITS: tuple[Split, ...] = get_args(Split)


class Outcome(StrEnum):
    """What can become of a question, in the order of the checks."""

    UNKNOWN_DOCUMENT = "unknown_document"
    OTHER_SPLIT = "document_of_another_split"
    ANSWER_TOO_LONG = "answer_too_long"
    NEAR_DUPLICATE = "near_duplicate"
    CONTAMINATED = "in_an_evaluation_set"
    GUESSABLE = "guessed_without_reading"
    EVIDENCE_TOO_LONG = "evidence_too_long"
    UNGROUNDED = "answered_without_documents"
    NOT_ROBUST = "never_right_on_extended_context"
    UNSCORED = "no_verdict_to_be_had"
    KEPT = "kept"


@dataclass(frozen=True)
class Fate:
    """One question's outcome; `detail` names what it repeats, or the evaluation set that holds it."""

    question: Question
    outcome: Outcome
    detail: str = ""


@dataclass(frozen=True)
class FunnelRow:
    """So many questions of a split, domain and generator had this outcome."""

    split: Split
    domain: Domain
    generator: str
    outcome: Outcome
    count: int


@dataclass(frozen=True)
class LengthRow:
    """So many kept items of a split have a length bucket."""

    split: Split
    length_bucket: int
    items: int


@dataclass(frozen=True)
class Funnel:
    """metrics/verify.json. `samples` are the answers drawn by each check, `contamination` the hits of each set."""

    questions: int
    kept: int
    rows: tuple[FunnelRow, ...]
    lengths: tuple[LengthRow, ...]
    samples: dict[str, int]
    contamination: dict[str, int]


@dataclass(frozen=True)
class Stage:
    """What a check left: `dropped` fell in it, `remaining` went on, by generator and by domain."""

    name: str
    dropped: int
    remaining: int
    generators: dict[str, int]
    domains: dict[Domain, int]


class Tally:
    """Counts fates and kept items as they come, so that none need stay in memory."""

    def __init__(self) -> None:
        self._fates: Counter[tuple[Split, Domain, str, Outcome]] = Counter()
        self._lengths: Counter[tuple[Split, int]] = Counter()
        self._samples: Counter[str] = Counter()
        self._contamination: Counter[str] = Counter()

    def add(self, fate: Fate) -> None:
        """Count what became of a question."""
        question = fate.question
        self._fates[question.split, question.domain, question.generator, fate.outcome] += 1
        if fate.outcome is Outcome.CONTAMINATED:
            self._contamination[fate.detail] += 1

    def add_item(self, item: Item) -> None:
        """Count a kept item's length."""
        self._lengths[item.question.split, item.length_bucket] += 1

    def add_samples(self, check: str, number: int) -> None:
        """Count answers that a check drew."""
        self._samples[check] += number

    def number(self, split: Split, domain: Domain, outcome: Outcome | None = None) -> int:
        """Questions of a split and domain, with that outcome or with any."""
        return sum(
            count
            for (its_split, its_domain, _, its_outcome), count in self._fates.items()
            if (its_split, its_domain) == (split, domain) and outcome in (None, its_outcome)
        )

    def funnel(self) -> Funnel:
        """All counts, in the order of splits, domains and checks."""
        rows = [FunnelRow(*key, count) for key, count in self._fates.items()]
        lengths = [LengthRow(*key, count) for key, count in self._lengths.items()]
        return Funnel(
            questions=self._fates.total(),
            kept=sum(row.count for row in rows if row.outcome is Outcome.KEPT),
            rows=tuple(sorted(rows, key=_place)),
            lengths=tuple(sorted(lengths, key=lambda row: (SPLITS.index(row.split), row.length_bucket))),
            samples=dict(self._samples),
            contamination=dict(sorted(self._contamination.items())),
        )


def _place(row: FunnelRow) -> tuple[int, int, str, int]:
    split, domain, outcome = SPLITS.index(row.split), [*Domain].index(row.domain), [*Outcome].index(row.outcome)
    return split, domain, row.generator, outcome


def stages(rows: Sequence[FunnelRow], split: Split) -> list[Stage]:
    """What remains of a split's questions after each check that dropped any; the first line is all of them."""
    left = [row for row in rows if row.split == split]
    found = [_stage("synthesised", 0, left)]
    for outcome in Outcome:
        dropped = sum(row.count for row in left if row.outcome is outcome)
        if dropped and outcome is not Outcome.KEPT:
            left = [row for row in left if row.outcome is not outcome]
            found.append(_stage(outcome.value, dropped, left))
    return found


def _stage(name: str, dropped: int, left: Sequence[FunnelRow]) -> Stage:
    return Stage(
        name=name,
        dropped=dropped,
        remaining=sum(row.count for row in left),
        generators=_sums(left, lambda row: row.generator),
        domains={Domain(name): count for name, count in _sums(left, lambda row: row.domain).items()},
    )


def _sums(rows: Iterable[FunnelRow], name: Callable[[FunnelRow], str]) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for row in rows:
        sums[name(row)] += row.count
    return dict(sums)


def cells(found: Sequence[Stage]) -> list[list[str]]:
    """Stages as a table of texts, the header first: dropped, remaining, and the rest by generator and domain."""
    generators = sorted(found[0].generators)
    domains = [domain for domain in Domain if domain in found[0].domains]
    header = ["after", "dropped", "remain", *generators, *domains]
    rows = [
        [
            stage.name,
            f"−{stage.dropped}" if stage.dropped else "",
            str(stage.remaining),
            *(str(stage.generators.get(name, 0)) for name in generators),
            *(str(stage.domains.get(domain, 0)) for domain in domains),
        ]
        for stage in found
    ]
    return [[text.replace("_", " ") for text in row] for row in (header, *rows)]


def table(found: Sequence[Stage], title: str) -> "Table":
    """The funnel for a terminal."""
    from rich.table import Table

    header, *rows = cells(found)
    shown = Table(title=title, title_justify="left")
    for position, name in enumerate(header):
        shown.add_column(name, justify="right" if position else "left")
    for row in rows:
        shown.add_row(*row)
    return shown


def markdown(found: Sequence[Stage]) -> str:
    """The funnel in Markdown."""
    header, *rows = cells(found)
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
