"""More inputs of the kinds KG-01, KG-03 and KG-04: hops that are none, and corpora with none."""

from collections import Counter

import numpy as np
import pytest

from tasks.corpus.grammar import Relation
from tasks.corpus.library import Library
from tasks.corpus.names import key
from tasks.records import Document, Domain
from tasks.synthesis.graph import APART, KnowledgeGraph, report
from tasks.synthesis.knowledge_graph import knowledge_graph_questions
from tasks.synthesis.language import GrammarLanguage
from tasks.synthesis.makers import GraphRules
from tasks.synthesis.paths import SHORTENED, Edges, PathSampler
from tasks.synthesis.reading import read_graph

Edge = tuple[str, str, str, str]  # source, relation, target, document


def library_of(edges: list[Edge]) -> Library:
    texts: dict[str, list[str]] = {}
    for source, relation, target, name in edges:
        texts.setdefault(name, []).append(Relation(relation).sentence(source, target))
    return Library.of(
        Document(id=name, title=name, text=" ".join(said), kind="text", cluster=name, split="train", source="t")
        for name, said in texts.items()
    )


def graph_of(edges: list[Edge]) -> KnowledgeGraph:
    return read_graph(library_of(edges), "train", GrammarLanguage(), min_documents=2)[0]


def nodes_of(graph: KnowledgeGraph, hops: int) -> set[tuple[str, ...]]:
    found = map(graph.along, graph.sampler.sample(hops, 30, 0, Counter()))
    return {(key(path[0].source), *(key(triple.target) for triple in path)) for path in found}


RING = [("A", "r", "B", "d1"), ("B", "r", "C", "d2"), ("C", "r", "D", "d3"), ("D", "r", "A", "d4")]


@pytest.mark.parametrize(
    ("edges", "hops", "expected"),
    [
        ([("A", "r", "B", "d1"), ("B", "r", "B", "d2")], 2, set()),  # a loop leads nowhere
        ([("A", "r", "B", "d1"), ("B", "r", "A", "d2"), ("B", "s", "C", "d3")], 3, set()),  # a cycle
        ([("A", "r", "A", "d1")], 1, set()),
        (RING, 4, set()),
        (RING, 2, {("a", "b", "c"), ("b", "c", "d"), ("c", "d", "a"), ("d", "a", "b")}),
        ([("A", "r", "B", "d1"), ("C", "r", "D", "d2")], 2, set()),  # two islands
        ([("A", "r", "B", "d1"), ("a", "s", "B", "d2"), ("B", "t", "C", "d3")], 2, {("a", "b", "c")}),  # parallel
        ([], 1, set()),
        ([], 2, set()),
    ],
)
def test_kg03_only_simple_paths_are_found(edges: list[Edge], hops: int, expected: set[tuple[str, ...]]) -> None:
    assert nodes_of(graph_of(edges), hops) == expected


@pytest.mark.parametrize(
    ("extra", "faulty"),
    [
        ([], False),
        ([("A", "skips", "C", "d9")], True),  # a direct edge
        ([("C", "skips", "A", "d9")], True),  # it can be read the other way round
        ([("B", "s", "D", "d9")], True),  # the second hop has two answers
        ([("A", "r", "D", "d9")], True),  # the first hop has two answers
        ([("A", "r", "B", "d2")], True),  # one document tells both hops
        ([("A", "t", "X", "d9"), ("Y", "t", "C", "d9")], True),  # one document names start and answer
        ([("B", "other", "D", "d9")], False),  # another relation is another question
    ],
)
def test_kg01_a_path_must_need_every_hop(extra: list[Edge], faulty: bool) -> None:
    graph = graph_of([("A", "r", "B", "d1"), ("B", "s", "C", "d2"), *extra])
    assert bool(graph.faults([0, 1])) is faulty
    assert (("a", "b", "c") in nodes_of(graph, 2)) is (not faulty) or extra == [("A", "r", "B", "d2")]


@pytest.mark.parametrize(
    ("edges", "components"),
    [
        ([], 0),
        ([("A", "r", "B", "d1"), ("B", "r", "C", "d1")], 1),  # goes on, but in the same document
        ([("A", "r", "B", "d1"), ("C", "r", "D", "d2"), ("E", "r", "F", "d3")], 3),
    ],
)
def test_kg04_no_cross_document_edge_is_a_reason_not_an_exception(edges: list[Edge], components: int) -> None:
    offer = report(graph_of(edges))
    assert (offer.joints, offer.reason, offer.components, len(offer.largest)) == (0, APART, components, components)
    harvests = knowledge_graph_questions(library_of(edges), "train", 5, GraphRules(3, 2, 0), GrammarLanguage())
    harvest = harvests[Domain.MULTI_HOP]
    assert (harvest.questions, harvest.offer) == ([], offer)
    assert APART in harvest.rejections


def dense(pairs: list[tuple[int, int]], nodes: int) -> PathSampler:
    source, target = np.array(pairs, np.int64).T
    return PathSampler(Edges(source, target, np.arange(len(pairs)), source != target, nodes), 5)


def test_kg04_a_complete_graph_is_sampled_not_enumerated() -> None:
    complete = dense([(a, b) for a in range(60) for b in range(60) if a != b], 60)  # 60·59·58·57·56·55 paths
    walks = complete.walk(np.arange(60), 5, np.random.default_rng(0))
    assert len({tuple(nodes) for nodes in np.stack(walks.nodes).T.tolist()}) == 60
    rejections = Counter[str]()
    assert list(complete.sample(5, 20, 0, rejections)) == []  # everything is linked with everything
    assert rejections[SHORTENED] > 1000


def test_kg04_a_dense_graph_gives_what_is_wanted() -> None:
    layers = [(60 * layer + a, 60 * layer + 60 + b) for layer in range(5) for a in range(60) for b in range(60)]
    found = dense(layers, 360).sample(5, 20, 0, Counter())  # 60⁶ paths
    assert len({next(found) for _ in range(20)}) == 20
