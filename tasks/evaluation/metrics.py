"""Accuracy, avg@k, pass@k and paired bootstrap intervals.

Axes: N questions, K samples per question, R resamples. A score is 1 or 0; NaN where the reply went unscored,
which is left out of every mean, never counted as wrong.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.evaluation.scores import Interval
from tasks.records import Verdict

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
CONFIDENCE = 0.95
SCORE = {Verdict.CORRECT: 1.0, Verdict.WRONG: 0.0, Verdict.UNSCORED: math.nan}


def average_at_k(scores_NK: Floats) -> Floats:
    """Mean over the scored samples of each question; NaN for a question without any."""
    scored_NK = np.isfinite(scores_NK)
    counts_N = scored_NK.sum(axis=1)
    sums_N = np.where(scored_NK, scores_NK, 0.0).sum(axis=1)
    return np.where(counts_N > 0, sums_N / np.maximum(counts_N, 1), np.nan)


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """Probability that k of the samples, drawn without replacement, contain a correct one: 1 − C(n−c, k) /
    C(n, k).

    Unbiased (Chen et al. 2021, arXiv 2107.03374, Eq. 1). Without a correct sample it is 0, even if k > n;
    with fewer than k wrong ones it is 1.
    """
    if correct == 0:
        return 0.0
    if samples - correct < k:
        return 1.0
    return 1.0 - math.comb(samples - correct, k) / math.comb(samples, k)


def pass_at_k_of(scores_NK: Floats, k: int) -> Floats:
    """pass@k of each question over its scored samples; NaN for a question without any."""
    counts_N = np.isfinite(scores_NK).sum(axis=1)
    correct_N = np.nansum(scores_NK, axis=1)
    pairs = zip(counts_N, correct_N, strict=True)
    return np.array([pass_at_k(int(n), int(c), k) if n else np.nan for n, c in pairs], dtype=np.float64)


def stratified_mean(values_N: Floats, strata_N: Integers) -> float | None:
    """Mean of the strata's means, each counting the same; NaN values and empty strata do not count."""
    means = [float(values.mean()) for values in _strata(values_N, strata_N)]
    return math.fsum(means) / len(means) if means else None


def paired_bootstrap(
    base_N: Floats, model_N: Floats, strata_N: Integers, resamples: int, rng: np.random.Generator
) -> Interval | None:
    """Difference model − base of the stratified means, with its percentile interval.

    Questions are resampled with replacement within each stratum; a question brings both models' scores. A
    question unscored by either model is left out; without any question there is no interval. One question, or
    equal differences everywhere, gives an interval of width 0.
    """
    differences = _strata(model_N - base_N, strata_N)
    if not differences:
        return None
    means_R = np.zeros(resamples)
    for values in differences:
        drawn_RN = rng.integers(len(values), size=(resamples, len(values)))
        means_R += values[drawn_RN].mean(axis=1) / len(differences)
    low, high = np.quantile(means_R, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(
        difference=math.fsum(float(values.mean()) for values in differences) / len(differences),
        low=float(low),
        high=float(high),
        questions=sum(len(values) for values in differences),
    )


def share(flags: Sequence[bool]) -> float:
    """Share of true flags; 0 of none."""
    return sum(flags) / len(flags) if flags else 0.0


def _strata(values_N: Floats, strata_N: Integers) -> list[Floats]:
    finite_N = np.isfinite(values_N)
    return [values_N[finite_N & (strata_N == stratum)] for stratum in np.unique(strata_N[finite_N])]
