"""VF-01: guessing must not delete good questions, knowledge must."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.filtering.grounding import (
    Grounding,
    binomial_tail,
    drop_threshold,
    judge_grounding,
    samples_wanted,
)


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


@pytest.mark.parametrize(
    ("correct", "drawn", "chance", "wanted"),
    [
        (0, 0, 0.25, 3),  # six right ones decide, or three wrong ones
        (1, 3, 0.25, 1),  # five more right ones, or one wrong one
        (3, 3, 0.25, 3),  # three more right ones, or three wrong ones
        (0, 3, 0.25, 0),
        (6, 6, 0.25, 0),
        (0, 0, 0.01, 2),  # two right ones, or seven wrong ones
        (1, 2, 0.01, 2),  # a right one, or six wrong ones: as many as there are
        (0, 0, 0.0, 1),  # a right one, or eight wrong ones
        (0, 4, 0.0, 4),
        (0, 0, 1.0, 0),  # decided before the first
    ],
)
def test_no_sample_is_wanted_that_cannot_decide(correct: int, drawn: int, chance: float, wanted: int) -> None:
    assert samples_wanted(correct, drawn, 8, chance) == wanted


@given(st.lists(st.booleans(), min_size=1, max_size=10), st.sampled_from([0.0, 0.01, 0.05, 0.25, 0.5, 0.9, 1.0]))
def test_what_is_wanted_ends_with_the_decision_of_all(answers: list[bool], chance: float) -> None:
    samples, drawn = len(answers), 0
    while wanted := samples_wanted(sum(answers[:drawn]), drawn, samples, chance):
        drawn += wanted
    assert drawn <= samples
    final = judge_grounding(sum(answers), samples, samples, chance)
    assert judge_grounding(sum(answers[:drawn]), drawn, samples, chance) is final
