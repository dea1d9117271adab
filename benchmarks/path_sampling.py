"""Accepted multi-document paths per CPU-second: our sampler and networkx, on one graph under the same constraints.

    PYTHONPATH=. .venv/bin/python benchmarks/path_sampling.py [--edges 1000000] [--hops 3 4 5]

Both sides walk at random and breadth first, in the same proportion of starts, over the edges that have one answer; a
path must be simple, be stated by `--documents` documents, have no edge between entities that are not neighbours on it,
and no document that states facts of both its ends. Every path of either side is checked by a third piece of code.
Building the graph is timed apart. What networkx does in Python is written as one would write it: adjacency views,
`has_edge`, `single_source_shortest_path` with a cutoff, sets of documents. Its searches cost it most, so its walks
alone are timed as well; ours always does both.
"""

import argparse
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations, islice, pairwise
from typing import Any

import networkx as nx
import numpy as np

from tasks.synthesis.paths import ATTEMPTS_PER_PATH, LEAVES, STARTS_PER_TREE, Edges, PathSampler

RELATIONS = 40
SUBJECTS_PER_DOCUMENT = 4
FACTS_PER_DOCUMENT = 10
Path = tuple[int, ...]  # edges


def random_edges(number: int, seed: int) -> Edges:
    """Documents of ten facts about four entities; values are drawn with a long tail, like names in real texts."""
    rng = np.random.default_rng(seed)
    nodes, documents = number // 5, number // FACTS_PER_DOCUMENT
    document = np.sort(rng.integers(0, documents, number))
    subjects = rng.integers(0, nodes, (documents, SUBJECTS_PER_DOCUMENT))
    source = subjects[document, rng.integers(0, SUBJECTS_PER_DOCUMENT, number)]
    target = (nodes * rng.random(number) ** 2).astype(np.int64)
    asked = source * RELATIONS + rng.integers(0, RELATIONS, number)
    _, inverse, answers = np.unique(asked, return_inverse=True, return_counts=True)
    return Edges(source, target, document, (answers[inverse] == 1) & (source != target), nodes)


class NetworkxSampler:
    """The same task on a MultiDiGraph."""

    def __init__(self, edges: Edges, min_documents: int) -> None:
        self._min_documents = min_documents
        self._graph = nx.MultiDiGraph()
        self._askable = nx.MultiDiGraph()
        self._documents: dict[int, set[int]] = {}
        columns = (edges.source_E, edges.target_E, edges.document_E, edges.askable_E)
        for edge, (source, target, document, askable) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
            self._graph.add_edge(source, target, key=edge, document=document)
            if askable:
                self._askable.add_edge(source, target, key=edge, document=document)
            self._documents.setdefault(source, set()).add(document)
            self._documents.setdefault(target, set()).add(document)
        self._starts = [node for node, degree in self._askable.out_degree() if degree]

    def sample(self, hops: int, wanted: int, seed: int, trees: bool = True) -> Iterator[Path]:
        rng = random.Random(seed)
        seen: set[Path] = set()
        for attempt in range(wanted * ATTEMPTS_PER_PATH):
            start = rng.choice(self._starts)
            paths = [self._walk(start, hops, rng)]
            if trees and attempt % STARTS_PER_TREE == 0:
                paths += self._shortest(start, hops, rng)
            for nodes in paths:
                path = nodes and self._edges_along(nodes, rng)
                if path and path not in seen:
                    seen.add(path)
                    yield path

    def _walk(self, start: int, hops: int, rng: random.Random) -> list[int]:
        nodes = [start]
        for _ in range(hops):
            onward = [node for node in self._askable.adj[nodes[-1]] if node not in nodes]
            if not onward:
                return []
            nodes.append(rng.choice(onward))
        return nodes

    def _shortest(self, start: int, hops: int, rng: random.Random) -> list[list[int]]:
        found = nx.single_source_shortest_path(self._askable, start, cutoff=hops)
        leaves = [nodes for nodes in found.values() if len(nodes) == hops + 1]
        return rng.sample(leaves, min(LEAVES, len(leaves)))

    def _edges_along(self, nodes: list[int], rng: random.Random) -> Path | None:
        if any(self._graph.has_edge(a, b) or self._graph.has_edge(b, a) for a, b in self._apart(nodes)):
            return None
        if self._documents[nodes[0]] & self._documents[nodes[-1]]:
            return None
        edges = [rng.choice(list(self._askable[a][b].items())) for a, b in pairwise(nodes)]
        if len({data["document"] for _, data in edges}) < self._min_documents:
            return None
        return tuple(edge for edge, _ in edges)

    @staticmethod
    def _apart(nodes: list[int]) -> Iterator[tuple[int, int]]:
        return ((nodes[i], nodes[j]) for i, j in combinations(range(len(nodes)), 2) if j - i > 1)


class Checker:
    """Says whether paths meet the constraints, by sets of its own."""

    def __init__(self, edges: Edges, min_documents: int) -> None:
        columns = (edges.source_E, edges.target_E, edges.document_E, edges.askable_E)
        self._edges = list(zip(*(column.tolist() for column in columns), strict=True))
        self._pairs = {frozenset(edge[:2]) for edge in self._edges}
        self._documents: dict[int, set[int]] = {}
        for source, target, document, _ in self._edges:
            self._documents.setdefault(source, set()).add(document)
            self._documents.setdefault(target, set()).add(document)
        self._min_documents = min_documents

    def check(self, paths: list[Path], hops: int) -> None:
        """Raise AssertionError unless all paths are distinct and honest."""
        assert len(set(paths)) == len(paths)
        for path in paths:
            sources, targets, documents, askable = zip(*(self._edges[edge] for edge in path), strict=True)
            nodes = [sources[0], *targets]
            assert (len(path), list(sources), all(askable)) == (hops, nodes[:-1], True)
            assert len(set(nodes)) == hops + 1
            assert len(set(documents)) >= self._min_documents
            apart = ((nodes[i], nodes[j]) for j in range(hops + 1) for i in range(j - 1))
            assert not any(frozenset(pair) in self._pairs for pair in apart)
            assert not self._documents[nodes[0]] & self._documents[nodes[-1]]


@dataclass(frozen=True)
class Side:
    """One of the two: how long its graph took, and what it samples."""

    name: str
    build_seconds: float
    sample: Callable[[int, int, int], Iterator[Path]]  # hops, wanted, seed


def timed(build: Callable[[], Any]) -> tuple[Any, float]:
    """What a call gives, and its CPU-seconds."""
    started = time.process_time()
    made = build()
    return made, time.process_time() - started


def rates(side: Side, checker: Checker, hops: int, paths: int, rounds: int) -> list[float]:
    """Accepted paths per CPU-second, round by round, each with a seed of its own."""
    found = []
    for seed in range(rounds):
        sampled, seconds = timed(partial(list, islice(side.sample(hops, paths, seed), paths)))
        checker.check(sampled, hops)
        found.append(len(sampled) / seconds)
    return found


def main() -> None:
    """Build both, sample in turn, print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--hops", type=int, nargs="+", default=[3, 4, 5])
    parser.add_argument("--documents", type=int, default=3)
    parser.add_argument("--paths", type=int, nargs=2, default=[60_000, 3_000], help="a round, of ours and networkx")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    edges = random_edges(options.edges, seed=0)
    ours, ours_seconds = timed(lambda: PathSampler(edges, options.documents))
    theirs, their_seconds = timed(lambda: NetworkxSampler(edges, options.documents))
    sides = (
        Side("ours", ours_seconds, lambda hops, wanted, seed: ours.sample(hops, wanted, seed, Counter())),
        Side("networkx", their_seconds, theirs.sample),
        Side("networkx, walks only", their_seconds, partial(theirs.sample, trees=False)),
    )
    checker = Checker(edges, options.documents)
    print(f"{options.edges:,} edges, {edges.nodes:,} entities, {edges.askable_E.mean():.0%} of the edges askable")
    print(f"paths per CPU-second, medians of {options.rounds}; in brackets how many times as many ours gives")
    print("hops" + "".join(f"{side.name:>28}" for side in sides))
    for hops in options.hops:
        medians = [
            statistics.median(rates(side, checker, hops, paths, options.rounds))
            for side, paths in zip(sides, (options.paths[0], options.paths[1], options.paths[1]), strict=True)
        ]
        print(f"{hops:>4}" + "".join(f"{f'{one:,.0f} ({medians[0] / one:.1f})':>28}" for one in medians), flush=True)
    print("building: " + ", ".join(f"{side.name} {side.build_seconds:.1f} s" for side in sides[:2]))


if __name__ == "__main__":
    main()
