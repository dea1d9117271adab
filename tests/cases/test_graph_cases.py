"""More inputs of the kinds KG-01, KG-03 and KG-04: hops that are none, and corpora with none."""

import random

import pytest

from tasks.corpus.grammar import Relation
from tasks.records import Document
from tasks.synthesis.graph import KnowledgeGraph, faults, report, sample_paths
from tasks.synthesis.names import key

Edge = tuple[str, str, str, str]  # source, relation, target, document


def graph_of(edges: list[Edge]) -> KnowledgeGraph:
    texts: dict[str, list[str]] = {}
    for source, relation, target, name in edges:
        texts.setdefault(name, []).append(Relation(relation).sentence(source, target))
    return KnowledgeGraph.of(
        [
            Document(id=name, title=name, text=" ".join(said), kind="text", cluster=name, split="train", source="t")
            for name, said in texts.items()
        ]
    )


def nodes_of(graph: KnowledgeGraph, hops: int, wanted: int = 30) -> set[tuple[str, ...]]:
    found = sample_paths(graph, hops, wanted, random.Random(0))
    return {(key(path[0].source), *(key(triple.target) for triple in path)) for path in found}


@pytest.mark.parametrize(
    ("edges", "hops", "expected"),
    [
        ([("A", "r", "A", "d1")], 1, set()),  # a loop leads nowhere
        ([("A", "r", "B", "d1"), ("B", "r", "C", "d2"), ("C", "r", "A", "d3")], 3, set()),  # a ring
        ([("A", "r", "B", "d1"), ("B", "r", "C", "d2"), ("C", "r", "A", "d3")], 2, {
            ("a", "b", "c"), ("b", "c", "a"), ("c", "a", "b"),
        }),
        ([("A", "r", "B", "d1"), ("C", "r", "D", "d2")], 2, set()),  # two islands
        ([("A", "r", "B", "d1"), ("a", "s", "B", "d2"), ("B", "t", "C", "d3")], 2, {("a", "b", "c")}),
        ([], 1, set()),
    ],
)  # fmt: skip
def test_kg03_only_simple_paths_are_found(edges: list[Edge], hops: int, expected: set[tuple[str, ...]]) -> None:
    assert nodes_of(graph_of(edges), hops) == expected


@pytest.mark.parametrize(
    ("extra", "faulty"),
    [
        ([], False),
        ([("A", "skips", "C", "d9")], True),  # a direct edge
        ([("B", "s", "D", "d9")], True),  # the second hop has two answers
        ([("A", "r", "D", "d9")], True),  # the first hop has two answers
        ([("C", "likes", "A", "d9")], True),  # one document names start and answer, whatever it says of them
        ([("B", "other", "D", "d9")], False),  # another relation is another question
    ],
)
def test_kg01_a_path_must_need_every_hop(extra: list[Edge], faulty: bool) -> None:
    graph = graph_of([("A", "r", "B", "d1"), ("B", "s", "C", "d2"), *extra])
    paths = [p for p in sample_paths(graph, 2, 50, random.Random(1)) if [t.relation for t in p] == ["r", "s"]]
    wanted = [path for path in paths if key(path[-1].target) == "c" and key(path[0].target) == "b"]
    assert len(wanted) == 1
    assert bool(faults(graph, wanted[0])) is faulty


@pytest.mark.parametrize(
    "edges",
    [
        [],
        [("A", "r", "B", "d1"), ("B", "r", "C", "d1")],  # goes on, but in the same document
        [("A", "r", "B", "d1"), ("C", "r", "D", "d2"), ("E", "r", "F", "d3")],
    ],
)
def test_kg04_no_cross_document_edge_is_a_reason_not_an_exception(edges: list[Edge]) -> None:
    found = report(graph_of(edges))
    assert found.joints == 0 and "no cross-document edge" in found.reason


def test_kg04_a_dense_multigraph_is_sampled() -> None:
    names = [f"N{number}" for number in range(40)]
    edges = [(a, r, b, f"d{a}") for a in names for b in names if a != b for r in ("r", "s")]
    graph = graph_of(edges)
    paths = []
    for path in sample_paths(graph, 5, 20, random.Random(0)):  # 40·39·38·37·36·35 · 2⁵ paths exist
        paths.append(path)
        if len(paths) == 20:
            break
    assert len({tuple(path) for path in paths}) == 20
