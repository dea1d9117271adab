"""Knowledge grounding: without its documents a question must not be answerable (QwenLong-L1.5 §3.4).

One lucky guess proves no knowledge. A question is dropped only when its right answers without documents are
more than guessing explains: dropping at any right answer of 8 would delete 90 % of good four-option
questions.
"""

from enum import StrEnum
from math import comb

SIGNIFICANCE = 0.01  # chance that a pure guesser's question is dropped


class Grounding(StrEnum):
    """What the samples drawn so far allow to say."""

    GROUNDED = "grounded"
    UNGROUNDED = "ungrounded"
    UNDECIDED = "undecided"


def binomial_tail(samples: int, correct: int, chance: float) -> float:
    """P(X ≥ correct) for X ~ Binomial(samples, chance)."""
    return sum(
        comb(samples, hits) * chance**hits * (1 - chance) ** (samples - hits)
        for hits in range(max(0, correct), samples + 1)
    )


def drop_threshold(samples: int, chance: float) -> int:
    """Smallest number of right answers whose tail probability under guessing is at most `SIGNIFICANCE`.

    Chance 0 gives 1. `samples + 1` when even all right could be luck: too few samples ever to drop.
    """
    return next(
        correct
        for correct in range(1, samples + 2)
        if correct > samples or binomial_tail(samples, correct, chance) <= SIGNIFICANCE
    )


def judge_grounding(correct: int, drawn: int, samples: int, chance: float) -> Grounding:
    """The verdict after `drawn` of at most `samples` answers without documents.

    It is final as soon as the answers still to come cannot change it, so stopping early never alters a
    decision.
    """
    threshold = drop_threshold(samples, chance)
    if correct >= threshold:
        return Grounding.UNGROUNDED
    if correct + (samples - drawn) < threshold:
        return Grounding.GROUNDED
    return Grounding.UNDECIDED


def samples_wanted(correct: int, drawn: int, samples: int, chance: float) -> int:
    """How many answers to draw next: the fewest that can make the decision final, 0 once it is.

    So none is drawn in vain. Where a single right answer decides, that would be one at a time, mostly in vain: then as
    many as there are, up to the wrong ones that decide.
    """
    if judge_grounding(correct, drawn, samples, chance) is not Grounding.UNDECIDED:
        return 0
    right = drop_threshold(samples, chance) - correct
    wrong = samples - drawn - right + 1
    return min(wrong, max(1, drawn)) if right == 1 else min(wrong, right)
