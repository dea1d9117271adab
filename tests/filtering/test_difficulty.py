"""Bins, equal counts and the bound of a domain, by hand."""

import pytest

from tasks.filtering.difficulty import Measured, balance, bin_of, histogram
from tasks.records import Domain, Trials


def pool(rates: list[float | None], domain: Domain = Domain.MULTI_HOP) -> list[Measured]:
    """Rates in eighths; None is never scored."""
    return [
        Measured(
            id=f"{domain}-{number}",
            domain=domain,
            generator="knowledge_graph",
            trials=Trials(correct=int(8 * (rate or 0)), scored=0 if rate is None else 8, drawn=8),
        )
        for number, rate in enumerate(rates)
    ]


@pytest.mark.parametrize(
    ("rate", "bins", "index"),
    [(0.0, 4, 0), (0.125, 4, 0), (0.25, 4, 1), (0.75, 4, 3), (1.0, 4, 3), (0.29, 100, 29), (0.5, 1, 0)],
)
def test_bin_of(rate: float, bins: int, index: int) -> None:
    assert bin_of(rate, bins) == index


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_bin_of_no_rate(rate: float) -> None:
    with pytest.raises(ValueError, match="not in"):
        bin_of(rate, 4)


def test_equal_counts_from_each_bin() -> None:
    items = pool([0.125] * 2 + [0.375] * 2 + [0.625] * 2 + [1.0] * 2)
    assert balance(items, 4, seed=0) == items
    crowded = pool([0.125] * 10 + [1.0] * 6)  # two populated bins of 16 items: 8 each
    assert histogram(balance(crowded, 4, seed=0), 4) == {Domain.MULTI_HOP: [8, 0, 0, 6]}


def test_domains_do_not_mix_and_order_is_kept() -> None:
    items = pool([0.125] * 9 + [1.0]) + pool([0.625] * 3, Domain.DIALOGUE_MEMORY)
    kept = balance(items, 4, seed=0)
    assert histogram(kept, 4) == {Domain.MULTI_HOP: [5, 0, 0, 1], Domain.DIALOGUE_MEMORY: [0, 0, 3, 0]}
    assert [items.index(chosen) for chosen in kept] == sorted(items.index(chosen) for chosen in kept)


def test_no_domain_gives_more_than_twice_the_median() -> None:
    """Shares of 3, 10 and 60: the median is 10, so the large domain gives 20, level over its bins."""
    items = pool([0.5] * 3) + pool([0.5] * 10, Domain.MULTIPLE_CHOICE)
    items += pool([0.125] * 40 + [0.5] * 5 + [1.0] * 40, Domain.CORPUS_NUMERIC)
    kept = histogram(balance(items, 4, seed=0), 4)
    assert kept == {
        Domain.MULTIPLE_CHOICE: [0, 0, 10, 0],
        Domain.MULTI_HOP: [0, 0, 3, 0],
        Domain.CORPUS_NUMERIC: [7, 0, 5, 7],  # a level of 8 would give 21
    }


def test_of_two_domains_the_smaller_one_is_the_median() -> None:
    items = pool([0.5] * 4) + pool([0.5] * 100, Domain.MULTIPLE_CHOICE)
    assert histogram(balance(items, 4, seed=0), 4)[Domain.MULTIPLE_CHOICE] == [0, 0, 8, 0]
    alone = pool([0.5] * 100)
    assert balance(alone, 4, seed=0) == alone


def test_deterministic_in_the_seed() -> None:
    items = pool([0.125] * 30 + [1.0] * 2)
    assert balance(items, 4, seed=1) == balance(items, 4, seed=1)
    assert balance(items, 4, seed=1) != balance(items, 4, seed=2)


def test_items_without_a_rate_are_left_out() -> None:
    assert balance(pool([None, 0.5]), 4, seed=0) == pool([None, 0.5])[1:]
    assert balance(pool([None]), 4, seed=0) == []
    assert balance([], 4, seed=0) == []
    assert histogram([], 4) == {}
