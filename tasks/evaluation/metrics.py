"""Accuracy, avg@k, pass@k, majority votes, paired bootstrap intervals, and McNemar's test with Holm's correction.

Axes: N questions, K samples per question, R resamples. A score is 1 or 0; NaN where the reply went unscored,
which is left out of every mean, never counted as wrong.
"""

import math
from collections import defaultdict
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


def majority(answers: Sequence[str | None], scores: Sequence[float]) -> float:
    """Score of the answer that most samples of a question state (Wang et al. 2023, arXiv 2203.11171).

    Who states none (None) has no vote. Of tied answers each is taken as often: their mean. An answer unscored in
    every sample leaves the tie. Without any vote it is 0, without any score NaN.
    """
    ballots: dict[str, list[float]] = defaultdict(list)
    for answer, score in zip(answers, scores, strict=True):
        if answer is not None:
            ballots[answer].append(score)
    if not ballots:
        return 0.0 if any(map(math.isfinite, scores)) else math.nan
    most = max(map(len, ballots.values()))
    winners = [_first_finite(scored) for scored in ballots.values() if len(scored) == most]
    known = [score for score in winners if math.isfinite(score)]
    return math.fsum(known) / len(known) if known else math.nan


def _first_finite(values: Sequence[float]) -> float:
    return next((value for value in values if math.isfinite(value)), math.nan)


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


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided exact p of McNemar's test: are questions that just one of two models gets right split evenly?

    min(1, 2·P(X ≤ min)) for X ~ Binomial(only_first + only_second, ½) (McNemar 1947; exact, so right for few
    questions, too). Questions that both or neither get right do not enter. Without discordant questions p is 1.
    """
    discordant = only_first + only_second
    tail = sum(math.comb(discordant, count) for count in range(min(only_first, only_second) + 1))
    return min(1.0, 2 * tail / (1 << discordant))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values after Holm's step-down correction (1979), in the order given: the family-wise error stays below α.

    The smallest of m is taken m times, the next m − 1 times, none below the one before; 1 at most.
    """
    adjusted = [0.0] * len(p_values)
    floor = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        floor = max(floor, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = floor
    return adjusted


def share(flags: Sequence[bool]) -> float:
    """Share of true flags; 0 of none."""
    return sum(flags) / len(flags) if flags else 0.0


def _strata(values_N: Floats, strata_N: Integers) -> list[Floats]:
    finite_N = np.isfinite(values_N)
    return [values_N[finite_N & (strata_N == stratum)] for stratum in np.unique(strata_N[finite_N])]
