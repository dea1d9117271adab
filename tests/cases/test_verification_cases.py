"""More inputs of the kind VF-01: a filter removes, guessing explains some right answers, pass@k of nothing is 0."""

import pytest

from tasks.filtering.grounding import Grounding, drop_threshold, judge_grounding
from tasks.filtering.robustness import pass_at_k


@pytest.mark.parametrize(
    ("samples", "correct", "k", "value"),
    [(5, 0, 5, 0.0), (1, 0, 9, 0.0), (5, 1, 5, 1.0), (5, 1, 1, 0.2), (4, 2, 2, 5 / 6), (3, 3, 1, 1.0)],
)
def test_vf01_pass_at_k(samples: int, correct: int, k: int, value: float) -> None:
    assert pass_at_k(samples, correct, k) == pytest.approx(value)


@pytest.mark.parametrize(
    ("samples", "chance", "threshold"),
    [
        (8, 0.25, 6),  # four options: P(X ≥ 5) = 2.7 %, P(X ≥ 6) = 0.4 %
        (8, 0.5, 8),  # two options: P(X = 8) = 0.39 %
        (4, 0.5, 5),  # even four of four are luck (6 %): never dropped
        (8, 0.0, 1),  # what cannot be guessed is known at the first right answer
        (8, 1.0, 9),  # one candidate only: right answers show nothing
        (16, 0.25, 9),  # P(X ≥ 8) = 2.7 %, P(X ≥ 9) = 0.75 %
    ],
)
def test_vf01_only_more_than_luck_drops(samples: int, chance: float, threshold: int) -> None:
    assert drop_threshold(samples, chance) == threshold
    assert judge_grounding(threshold - 1, samples, samples, chance) is Grounding.GROUNDED
    if threshold <= samples:
        assert judge_grounding(threshold, samples, samples, chance) is Grounding.UNGROUNDED


def test_vf01_early_stopping_waits_until_the_rest_cannot_matter() -> None:
    assert judge_grounding(5, 7, 8, 0.25) is Grounding.UNDECIDED
    assert judge_grounding(4, 7, 8, 0.25) is Grounding.GROUNDED
    assert judge_grounding(6, 6, 8, 0.25) is Grounding.UNGROUNDED
