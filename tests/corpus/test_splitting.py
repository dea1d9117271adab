import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpus.splitting import SPLITS, deal_clusters
from tasks.errors import InputError
from tasks.records import Split

SHARES: dict[Split, float] = {"train": 0.6, "development": 0.1, "test": 0.3}


def test_shares_are_met_per_kind() -> None:
    counts = {f"c{index}": {"report": 2, "dialogue": 1} for index in range(10)}
    deal = deal_clusters(counts, SHARES, seed=0)
    assert [list(deal.values()).count(split) for split in ("train", "development", "test")] == [6, 1, 3]


def test_every_split_gets_every_kind_when_it_can() -> None:
    counts = {f"big{index}": {"report": 5} for index in range(4)}
    counts |= {f"small{index}": {"dialogue": 1} for index in range(3)}
    deal = deal_clusters(counts, SHARES, seed=0)
    assert {deal[f"small{index}"] for index in range(3)} == set(SPLITS)


def test_seeds_decide() -> None:
    counts = {f"c{index}": {"report": 1 + index} for index in range(12)}
    assert deal_clusters(counts, SHARES, 1) == deal_clusters(dict(reversed(counts.items())), SHARES, 1)
    assert len({tuple(deal_clusters(counts, SHARES, seed).items()) for seed in range(5)}) > 1


def test_too_few_clusters_are_an_error_unless_the_share_is_zero() -> None:
    with pytest.raises(InputError, match=r"1 separate source\(s\) leave nothing for development, test"):
        deal_clusters({"only": {"text": 40}}, SHARES, 0)
    alone: dict[Split, float] = {"train": 1.0, "development": 0.0, "test": 0.0}
    assert deal_clusters({"only": {"text": 40}}, alone, 0) == {"only": "train"}


@given(st.dictionaries(st.text(min_size=1), st.integers(1, 30), min_size=3), st.integers(0, 5))
def test_every_cluster_is_dealt_once(sizes: dict[str, int], seed: int) -> None:
    deal = deal_clusters({name: {"text": size} for name, size in sizes.items()}, SHARES, seed)
    assert sorted(deal) == sorted(sizes)
    assert set(deal.values()) == set(SPLITS)
