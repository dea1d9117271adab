"""Scores of variants and their differences, with intervals over questions and over seeds.

Axes: S seeds, Q questions, R resamples. A score is avg@k in 0..1, NaN where unscored. Two sources of chance are kept
apart: which questions were asked (paired bootstrap), and how training went (seeds; few, so Student's t).
"""

import math
from dataclasses import dataclass

import numpy as np

from tasks.evaluation.metrics import Floats, Integers, stratified_mean

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Bounds:
    """An interval."""

    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Difference:
    """Model − base. `questions` and `seeds` at 95 % each; the `all_` ones hold for all comparisons together
    (Bonferroni). Over seeds None: fewer than two.
    """

    mean: float
    per_seed: tuple[float, ...]
    questions: Bounds
    all_questions: Bounds
    seeds: Bounds | None
    all_seeds: Bounds | None


def seed_means(scores_SQ: Floats, strata_Q: Integers) -> tuple[float, ...]:
    """Each seed's mean of the strata's means; NaN for a seed whose replies all went unscored."""
    means = (stratified_mean(scores_Q, strata_Q) for scores_Q in scores_SQ)
    return tuple(math.nan if mean is None else mean for mean in means)


def difference(
    model_SQ: Floats, base_SQ: Floats, strata_Q: Integers, comparisons: int, resamples: int, rng: np.random.Generator
) -> Difference | None:
    """Compare two variants, trained with the same seeds and asked the same questions.

    Over questions: each question's difference, averaged over seeds, is resampled within its stratum; the trained
    checkpoints stay fixed. Over seeds: the t interval of the per-seed differences; the questions stay fixed. A question
    unscored in either variant is left out for that seed. None without any common question.
    """
    differences_SQ = model_SQ - base_SQ
    per_seed = seed_means(differences_SQ, strata_Q)
    means_Q = _means(differences_SQ)
    mean = stratified_mean(means_Q, strata_Q)
    if mean is None:
        return None
    means_R = _resampled(means_Q, strata_Q, resamples, rng)
    strict = 1 - (1 - CONFIDENCE) / comparisons
    return Difference(
        mean=mean,
        per_seed=per_seed,
        questions=_percentiles(means_R, CONFIDENCE),
        all_questions=_percentiles(means_R, strict),
        seeds=student(per_seed, CONFIDENCE),
        all_seeds=student(per_seed, strict),
    )


def student(values: tuple[float, ...], confidence: float) -> Bounds | None:
    """Student's t interval of the mean; NaN values do not count, None for fewer than two. Equal values: width 0."""
    from scipy.special import stdtrit  # the quantile of Student's t; scipy.stats takes seconds to import

    known = [value for value in values if math.isfinite(value)]
    if len(known) < 2:
        return None
    quantile = float(stdtrit(len(known) - 1, (1 + confidence) / 2))
    reach = quantile * spread(tuple(known)) / math.sqrt(len(known))
    mean = math.fsum(known) / len(known)
    return Bounds(mean - reach, mean + reach)


def spread(values: tuple[float, ...]) -> float:
    """Unbiased standard deviation; 0 for fewer than two values."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _means(values_SQ: Floats) -> Floats:
    """Mean over seeds of each question's finite values; NaN where there is none."""
    finite_SQ = np.isfinite(values_SQ)
    counts_Q = finite_SQ.sum(axis=0)
    sums_Q = np.where(finite_SQ, values_SQ, 0.0).sum(axis=0)
    return np.where(counts_Q > 0, sums_Q / np.maximum(counts_Q, 1), np.nan)


def _resampled(values_Q: Floats, strata_Q: Integers, resamples: int, rng: np.random.Generator) -> Floats:
    finite_Q = np.isfinite(values_Q)
    strata = [values_Q[finite_Q & (strata_Q == stratum)] for stratum in np.unique(strata_Q[finite_Q])]
    drawn = [values[rng.integers(len(values), size=(resamples, len(values)))].mean(axis=1) for values in strata]
    means_R: Floats = np.mean(drawn, axis=0)
    return means_R


def _percentiles(means_R: Floats, confidence: float) -> Bounds:
    low, high = np.quantile(means_R, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Bounds(float(low), float(high))
