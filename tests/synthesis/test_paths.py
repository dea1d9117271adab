from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tasks.synthesis.paths import TOGETHER, TRAPPED, Edges, Groups, Pairs, PathSampler

small = st.integers(0, 40)


@given(st.lists(st.tuples(small, small), max_size=60), st.lists(st.tuples(small, small), max_size=60))
def test_pairs_are_a_set(kept: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    columns = np.array([*kept, *asked], np.int64).reshape(-1, 2).T
    pairs = Pairs(columns[0][: len(kept)], columns[1][: len(kept)], 41)
    found = pairs.contain(columns[0][len(kept) :], columns[1][len(kept) :])
    assert found.tolist() == [one in set(kept) for one in asked]


def test_groups_hold_their_members() -> None:
    groups = Groups(np.array([2, 0, 2]), 4)
    assert [groups.of(group).tolist() for group in range(4)] == [[1], [], [0, 2], []]
    members, rows = groups.expand(np.array([2, 1, 0, 2]))
    assert (members.tolist(), rows.tolist()) == ([0, 2, 1, 0, 2], [0, 0, 2, 3, 3])


def sampler(edges: list[tuple[int, int, int]], nodes: int, least: int = 1) -> PathSampler:
    source, target, document = np.array(edges, np.int64).reshape(-1, 3).T
    return PathSampler(Edges(source, target, document, source != target, nodes), least)


def sampled(of: PathSampler, hops: int, wanted: int = 5, seed: int = 0) -> tuple[list[tuple[int, ...]], Counter[str]]:
    rejections = Counter[str]()
    return list(of.sample(hops, wanted, seed, rejections)), rejections


def test_a_seed_repeats_the_sample_and_another_does_not() -> None:
    ring = sampler([(n, (n + step) % 50, 100 * n + step) for n in range(50) for step in (1, 7)], 50)
    assert sampled(ring, 4, 1) == sampled(ring, 4, 1)
    assert sampled(ring, 4, 1)[0][:9] != sampled(ring, 4, 1, seed=1)[0][:9]


def test_the_step_cap_ends_a_hopeless_search_and_says_why() -> None:
    found, rejections = sampled(sampler([(0, 1, 0), (1, 0, 1)], 2), 2)
    assert found == []
    assert rejections[TRAPPED] > 1000
    assert sampled(sampler([], 0), 2) == ([], Counter())
    assert sampled(sampler([(0, 0, 0)], 1), 1) == ([], Counter())


def test_both_ways_of_sampling_find_paths_and_only_wanted_edges_end_one() -> None:
    chain = sampler([(n, n + 1, n) for n in range(5)], 6)
    assert set(sampled(chain, 2)[0]) == {(n, n + 1) for n in range(4)}
    rng = np.random.default_rng(0)
    starts = np.arange(4)
    walks = [edge.tolist() for edge in chain.walk(starts, 2, rng).edges]
    assert set(zip(*walks, strict=True)) == {(n, n + 1) for n in range(4)}
    assert len(chain.grow(starts, 2, rng)) == 4
    last = np.arange(5) == 3
    assert set(chain.sample(2, 5, 0, Counter(), last)) == {(2, 3)}


def test_trees_reach_an_entity_by_as_few_hops_as_they_can() -> None:
    graph = sampler([(0, 1, 0), (1, 2, 1), (2, 3, 2), (0, 2, 3)], 4)
    rng = np.random.default_rng(0)
    starts = np.zeros(20, np.int64)
    assert set(graph.grow(starts, 2, rng).nodes[-1].tolist()) == {3}
    assert len(graph.grow(starts, 3, rng)) == 0


def test_hubs_do_not_hide_a_document_that_states_facts_of_both_ends() -> None:
    star = [(0, n, n) for n in range(1, 2000)]
    spoiled = sampler([*star, (1999, 2000, 5000), (2000, 2001, 1)], 2002)
    found, rejections = sampled(spoiled, 2)
    assert not any(path[-1] == 1999 and path[0] == 1998 for path in found)
    assert rejections[TOGETHER] > 0
