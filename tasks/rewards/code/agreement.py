"""Which generated test cases count, and which problems are kept (Kimi k1.5, arXiv 2501.12599, section 2.1 and 2.3.2).

There is no reference answer: a case's expected output is what enough reference submissions print. Axes: S submissions,
C cases.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

SUBMISSIONS = 10
AGREEING = 7  # of them, for a case to count
PASSING = 9  # of them, on all cases that count, for the problem to be kept


@dataclass(frozen=True)
class Agreed:
    """A case that counts: its place among the inputs, the output, and how many submissions print it."""

    place: int
    output: str
    votes: int


def agreed_cases(outputs_SC: Sequence[Sequence[str | None]], agreeing: int = AGREEING) -> list[Agreed]:
    """The cases on which at least `agreeing` submissions print the same.

    None is a run without an output (it failed, or took too long): it agrees with nothing, not even with another. Needs
    `agreeing` above half of the submissions, or two outputs could both win.
    """
    cases = []
    for place, outputs_S in enumerate(zip(*outputs_SC, strict=True)):
        counts = Counter(output for output in outputs_S if output is not None)
        output, votes = counts.most_common(1)[0] if counts else ("", 0)
        if votes >= agreeing:
            cases.append(Agreed(place, output, votes))
    return cases


def passing(outputs_SC: Sequence[Sequence[str | None]], cases: Sequence[Agreed]) -> int:
    """How many submissions pass all of these cases; without a case none does."""
    passed = [all(outputs_C[case.place] == case.output for case in cases) for outputs_C in outputs_SC]
    return sum(passed) if cases else 0
