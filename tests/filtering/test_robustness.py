"""pass@k by hand; VF-01: without a right answer it is 0, whatever n and k."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.filtering.robustness import pass_at_k, samples_wanted


@pytest.mark.parametrize(
    ("samples", "correct", "k", "value"),
    [(2, 0, 5, 0.0), (8, 0, 8, 0.0), (8, 1, 8, 1.0), (8, 1, 1, 1 / 8), (4, 2, 2, 5 / 6), (4, 4, 1, 1.0)],
)
def test_estimate(samples: int, correct: int, k: int, value: float) -> None:
    assert pass_at_k(samples, correct, k) == pytest.approx(value)


@pytest.mark.parametrize(("samples", "correct", "k"), [(2, 1, 5), (0, 0, 1), (2, 3, 1), (2, -1, 1), (2, 1, 0)])
def test_impossible_counts(samples: int, correct: int, k: int) -> None:
    with pytest.raises(ValueError, match=r"right of|needs at least"):
        pass_at_k(samples, correct, k)


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_equals_the_share_of_subsets_with_a_right_answer(counts: tuple[int, int, int]) -> None:
    samples, correct, k = counts
    subsets = list(combinations([True] * correct + [False] * (samples - correct), k))
    assert pass_at_k(samples, correct, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


@pytest.mark.parametrize(
    ("correct", "drawn", "samples", "wanted"),
    [(0, 0, 8, 1), (0, 1, 8, 1), (0, 2, 8, 2), (0, 4, 8, 4), (0, 8, 8, 0), (1, 1, 8, 0), (0, 2, 3, 1), (0, 0, 1, 1)],
)
def test_samples_double_until_one_is_right(correct: int, drawn: int, samples: int, wanted: int) -> None:
    assert samples_wanted(correct, drawn, samples) == wanted
