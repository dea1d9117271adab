"""Contextual robustness: a question must be solvable on its extended context (QwenLong-L1.5 §3.4)."""

from math import comb


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """Unbiased estimate of the chance that at least one of k samples is right: 1 − C(n−c, k) / C(n, k).

    Source: Chen et al. 2021, Eq. 1. Without a right answer it is 0 whatever k is.

    Raises:
        ValueError: the counts are impossible, or k exceeds the samples (no unbiased estimate exists).
    """
    if not 0 <= correct <= samples or samples < 1 or k < 1:
        raise ValueError(f"{correct} right of {samples} samples, k = {k}: need 0 ≤ right ≤ samples and k ≥ 1")
    if correct == 0:
        return 0.0
    if samples < k:
        raise ValueError(f"pass@{k} needs at least {k} samples, not {samples}; draw more or lower k")
    return 1 - comb(samples - correct, k) / comb(samples, k)


def samples_wanted(correct: int, drawn: int, samples: int) -> int:
    """How many answers to draw next: none after a right one, else as many as there are, 1, 1, 2, 4, … up to all.

    Little is drawn where little decides, and a question that is never right takes few calls.
    """
    return 0 if correct else min(max(1, drawn), samples - drawn)
