import math

import numpy as np
import pytest

from tasks.evaluation.metrics import (
    SCORE,
    average_at_k,
    holm,
    majority,
    mcnemar,
    paired_bootstrap,
    pass_at_k,
    pass_at_k_of,
    share,
    stratified_mean,
)
from tasks.records import Verdict

NAN = math.nan


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def whole(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def interval(base: np.ndarray, model: np.ndarray, strata: np.ndarray, resamples: int = 2000):
    return paired_bootstrap(base, model, strata, resamples, np.random.default_rng(0))


def test_unscored_is_neither_right_nor_wrong() -> None:
    assert SCORE[Verdict.CORRECT] == 1.0
    assert SCORE[Verdict.WRONG] == 0.0
    assert math.isnan(SCORE[Verdict.UNSCORED])


def test_average_at_k_leaves_out_unscored_samples() -> None:
    scores_NK = np.array([[1, 0, 0, 0], [1, NAN, NAN, 0], [NAN, NAN, NAN, NAN], [1, 1, 1, NAN]])
    np.testing.assert_array_equal(average_at_k(scores_NK), [0.25, 0.5, NAN, 1.0])


@pytest.mark.parametrize(
    ("samples", "correct", "k", "expected"),
    [
        (4, 1, 1, 0.25),
        (4, 1, 2, 0.5),  # 1 − C(3,2)/C(4,2) = 1 − 3/6
        (4, 2, 2, 5 / 6),  # 1 − C(2,2)/C(4,2)
        (5, 2, 3, 0.9),  # 1 − C(3,3)/C(5,3)
        (4, 4, 4, 1.0),
        (4, 3, 2, 1.0),
        (2, 0, 5, 0.0),  # VF-01: no correct sample is never a pass, however large k is
        (8, 0, 8, 0.0),  # VF-01
        (2, 1, 5, 1.0),
        (0, 0, 1, 0.0),
    ],
)
def test_pass_at_k(samples: int, correct: int, k: int, expected: float) -> None:
    assert pass_at_k(samples, correct, k) == pytest.approx(expected)


def test_pass_at_k_of_scored_samples() -> None:
    scores_NK = np.array([[1, 0, 0, 0], [0, 0, 0, 0], [NAN, 0, 0, 0], [NAN] * 4, [1, NAN, NAN, NAN]])
    np.testing.assert_array_equal(pass_at_k_of(scores_NK, 4), [1, 0, 0, NAN, 1])
    np.testing.assert_allclose(pass_at_k_of(scores_NK, 2), [0.5, 0, 0, NAN, 1])


def test_lengths_count_the_same_however_many_questions_each_has() -> None:
    assert stratified_mean(floats(1, 1, 1, 0), whole(128, 128, 128, 512)) == 0.5
    assert stratified_mean(floats(1, NAN, 0, NAN), whole(128, 128, 512, 1024)) == 0.5
    assert stratified_mean(floats(NAN, NAN), whole(1, 2)) is None
    assert stratified_mean(floats(), whole()) is None


def test_bootstrap_pairs_questions() -> None:
    """Questions differ much, the models equally on each: unpaired it would be wide, paired it is a point."""
    base = floats(0, 0.25, 0.5, 0.75)
    found = interval(base, base + 0.25, whole(0, 0, 0, 0))
    assert found is not None
    assert (found.difference, found.low, found.high, found.questions) == (0.25, 0.25, 0.25, 4)


def test_bootstrap_of_two_questions_by_hand() -> None:
    """Differences 0 and 1: a resample's mean is 0, ½ or 1 with ¼, ½, ¼."""
    found = interval(floats(0, 0), floats(0, 1), whole(0, 0))
    assert found is not None
    assert (found.difference, found.low, found.high) == (0.5, 0.0, 1.0)


def test_bootstrap_width_is_that_of_the_normal_approximation() -> None:
    model = floats(*([1.0] * 60 + [0.0] * 40))
    found = interval(np.zeros(100), model, np.zeros(100, dtype=np.int64), 4000)
    assert found is not None
    half = 1.96 * math.sqrt(0.6 * 0.4 / 100)
    assert found.low == pytest.approx(0.6 - half, abs=0.011)
    assert found.high == pytest.approx(0.6 + half, abs=0.011)


def test_bootstrap_stays_within_strata() -> None:
    """All of one stratum rose, none of the other: no resample can change the mean of ½."""
    found = interval(floats(0, 0, 0, 0, 0), floats(1, 1, 0, 0, 0), whole(1, 1, 2, 2, 2))
    assert found is not None
    assert (found.difference, found.low, found.high) == (0.5, 0.5, 0.5)


def test_bootstrap_leaves_out_what_either_model_has_no_score_for() -> None:
    found = interval(floats(NAN, 0, 0), floats(1, NAN, 1), whole(0, 0, 0))
    assert found is not None
    assert (found.difference, found.questions) == (1.0, 1)
    assert interval(floats(NAN), floats(1), whole(0)) is None
    assert interval(floats(), floats(), whole()) is None


def test_bootstrap_repeats() -> None:
    base, model, strata = floats(0, 1, 0, 1, 0), floats(1, 1, 0, 0, 1), whole(0, 0, 1, 1, 1)
    assert interval(base, model, strata) == interval(base, model, strata)


@pytest.mark.parametrize(
    ("answers", "scores", "expected"),
    [
        (["a", "b", "b"], [1, 0, 0], 0.0),
        (["a", "a", "b"], [1, 1, 0], 1.0),
        (["a", "b"], [1, 0], 0.5),  # a tie: either is taken as often
        (["a", "b", "b", "c", "c"], [1, 0, 0, 1, 1], 0.5),
        (["a", None, None, None], [1, 0, 0, 0], 1.0),  # who states nothing has no vote
        ([None, None], [0, 0], 0.0),
        (["a", "a", "b"], [NAN, 1, 0], 1.0),  # one verdict for an answer is enough
        (["a", "b"], [NAN, 0], 0.0),
        (["a"], [1], 1.0),
    ],
)
def test_majority(answers: list[str | None], scores: list[float], expected: float) -> None:
    assert majority(answers, scores) == expected


@pytest.mark.parametrize(
    ("answers", "scores"), [([], []), ([None], [NAN]), (["a", "a", "b"], [NAN, NAN, 1]), (["a"], [NAN])]
)
def test_majority_without_a_verdict(answers: list[str | None], scores: list[float]) -> None:
    assert math.isnan(majority(answers, scores))


@pytest.mark.parametrize(
    ("only_first", "only_second", "expected"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),  # 2 · ½, one question says nothing
        (0, 5, 0.0625),  # 2 / 2⁵
        (1, 5, 0.21875),  # 2 · (1 + 6) / 2⁶
        (2, 8, 0.109375),  # 2 · (1 + 10 + 45) / 2¹⁰
        (3, 3, 1.0),  # 2 · (1 + 6 + 15 + 20) / 64 is above 1
        (6, 16, 2 * (1 + 22 + 231 + 1540 + 7315 + 26334 + 74613) / 2**22),
    ],
)
def test_mcnemar_by_hand(only_first: int, only_second: int, expected: float) -> None:
    assert mcnemar(only_first, only_second) == pytest.approx(expected, rel=1e-12)
    assert mcnemar(only_second, only_first) == mcnemar(only_first, only_second)


def test_mcnemar_of_many_questions_does_not_overflow() -> None:
    assert 0.0 < mcnemar(900, 1100) < 1e-4
    assert mcnemar(0, 5000) == 0.0


def test_holm_by_hand() -> None:
    """Sorted 0.01, 0.02, 0.03, 0.04 take 4, 3, 2 and 1 times, and never fall below the one before."""
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([0.2]) == [0.2]
    assert holm([]) == []


def test_share() -> None:
    assert share([True, False, False, True]) == 0.5
    assert share([]) == 0.0
