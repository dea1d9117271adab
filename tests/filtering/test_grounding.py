"""VF-01: guessing must not delete good questions, knowledge must."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.filtering.grounding import Grounding, binomial_tail, drop_threshold, judge_grounding


@pytest.mark.parametrize(
    ("samples", "correct", "chance", "tail"),
    [(8, 1, 0.25, 1 - 0.75**8), (8, 0, 0.25, 1.0), (2, 2, 0.5, 0.25), (8, 9, 0.25, 0.0), (4, 1, 0.0, 0.0)],
)
def test_binomial_tail(samples: int, correct: int, chance: float, tail: float) -> None:
    assert binomial_tail(samples, correct, chance) == pytest.approx(tail)


def test_dropping_at_any_right_answer_would_drop_nine_of_ten() -> None:
    assert binomial_tail(8, 1, 0.25) == pytest.approx(0.9, abs=0.001)


@pytest.mark.parametrize(
    ("samples", "chance", "threshold"),
    [
        (8, 0.25, 6),  # P(≥6) = 0.0042, P(≥5) = 0.027
        (8, 0.5, 8),  # P(8) = 0.0039
        (8, 0.0, 1),
        (1, 0.25, 2),  # one sample proves nothing
        (4, 0.5, 5),
        (8, 1.0, 9),
    ],
)
def test_threshold(samples: int, chance: float, threshold: int) -> None:
    assert drop_threshold(samples, chance) == threshold


@pytest.mark.parametrize(
    ("correct", "drawn", "verdict"),
    [
        (6, 8, Grounding.UNGROUNDED),
        (5, 8, Grounding.GROUNDED),
        (1, 4, Grounding.GROUNDED),  # four more right ones give 5
        (2, 4, Grounding.UNDECIDED),
        (6, 6, Grounding.UNGROUNDED),
        (0, 0, Grounding.UNDECIDED),
    ],
)
def test_four_options_eight_samples(correct: int, drawn: int, verdict: Grounding) -> None:
    assert judge_grounding(correct, drawn, samples=8, chance=0.25) is verdict


@given(st.lists(st.booleans(), min_size=1, max_size=10), st.sampled_from([0.0, 0.05, 0.25, 0.5, 0.9]))
def test_stopping_early_never_changes_the_decision(answers: list[bool], chance: float) -> None:
    samples = len(answers)
    verdicts = [judge_grounding(sum(answers[:drawn]), drawn, samples, chance) for drawn in range(samples + 1)]
    assert verdicts[-1] is not Grounding.UNDECIDED
    assert {verdict for verdict in verdicts if verdict is not Grounding.UNDECIDED} == {verdicts[-1]}
