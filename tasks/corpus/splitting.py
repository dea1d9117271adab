"""Which documents train, tune and test. Clusters are dealt out whole: no region or file is in two splits."""

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from tasks.errors import InputError
from tasks.records import Split

SPLITS: tuple[Split, ...] = get_args(Split)
CLUSTER = "cluster"  # counted as a kind of its own, so that no split hangs on one huge cluster
DEALS = 100  # seeded attempts of which the best balanced one is kept
CLUSTERS_DEALT = 200_000  # in all attempts together: very many clusters balance themselves

Counts = Mapping[str, Mapping[str, int]]


def deal_clusters(counts: Counts, shares: Mapping[Split, float], seed: int) -> dict[str, Split]:
    """Give each cluster a split such that every document kind comes close to the shares.

    Args:
        counts: cluster → document kind → number of documents.
        shares: share of the documents per split; they sum to 1.
        seed: equal seeds give equal splits.

    Raises:
        InputError: a split that should hold documents stays without, as there are too few clusters.
    """
    rng = random.Random(seed)
    order = sorted(counts)
    kinds = _with_cluster(counts)
    best: dict[str, Split] = {}
    least = math.inf
    for _ in range(max(1, min(DEALS, CLUSTERS_DEALT // max(1, len(order))))):
        rng.shuffle(order)
        deal = _deal(order, kinds, shares)
        imbalance = _imbalance(deal, kinds, shares)
        if imbalance < least:
            best, least = deal, imbalance
    empty = [split for split in SPLITS if shares[split] > 0 and split not in best.values()]
    if empty:
        raise InputError(
            f"{len(counts)} separate source(s) leave nothing for {', '.join(empty)}; add files "
            "(near-duplicates count as one), switch corpus.countries on, or set the share to 0"
        )
    return dict(sorted(best.items()))


def _with_cluster(counts: Counts) -> Counts:
    """Count each cluster as one of a kind of its own. Those that count alike share a mapping: there may be many."""
    shared: dict[tuple[tuple[str, int], ...], Mapping[str, int]] = {}
    return {
        cluster: shared.setdefault(tuple(kinds.items()), {**kinds, CLUSTER: 1}) for cluster, kinds in counts.items()
    }


def _deal(order: Sequence[str], counts: Counts, shares: Mapping[Split, float]) -> dict[str, Split]:
    """Give each cluster, in turn, to the split that lacks most of its kinds."""
    totals = _totals(counts.values())
    left = Counter(kind for cluster in order for kind in counts[cluster])  # clusters that hold the kind
    missing = {(split, kind): shares[split] for split in SPLITS for kind in totals}
    deal: dict[str, Split] = {}
    for cluster in order:
        kinds = counts[cluster]
        lacks = {split: sum(missing[split, kind] for kind in kinds) for split in SPLITS}
        deal[cluster] = max(_eligible(kinds, left, missing, shares), key=lacks.__getitem__)
        left.subtract(kinds.keys())
        for kind, number in kinds.items():
            missing[deal[cluster], kind] -= number / totals[kind]
    return deal


def _eligible(
    kinds: Mapping[str, int],
    left: Mapping[str, int],
    missing: Mapping[tuple[Split, str], float],
    shares: Mapping[Split, float],
) -> list[Split]:
    """The splits that may take a cluster: those still without one of its kinds, when that kind runs out."""
    eligible = [split for split in SPLITS if shares[split] > 0]
    for kind in kinds:
        without = [split for split in eligible if missing[split, kind] == shares[split]]
        if without and len(without) >= left[kind]:
            eligible = without
    return eligible


def _totals(several: Iterable[Mapping[str, int]]) -> Counter[str]:
    totals = Counter[str]()
    for kinds in several:
        totals.update(kinds)
    return totals


def _imbalance(deal: Mapping[str, Split], counts: Counts, shares: Mapping[Split, float]) -> float:
    """Sum over splits and kinds of |held − wanted share|; a kind that a split lacks costs one more."""
    totals = _totals(counts.values())
    cost = 0.0
    for split in SPLITS:
        held = _totals(counts[cluster] for cluster, given in deal.items() if given == split)
        for kind, total in totals.items():
            cost += abs(held[kind] / total - shares[split]) + (shares[split] > 0 and held[kind] == 0)
    return cost
