import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpus.grammar import CAPITAL, CAPITAL_OF, CURRENCY, LARGEST_NEIGHBOUR
from tasks.synthesis.graph import (
    AnswerBook,
    KnowledgeGraph,
    Path,
    Triple,
    bfs_path,
    extract_triples,
    faults,
    report,
    sample_paths,
    walk_path,
)
from tasks.synthesis.multi_hop import multi_hop_questions, path_of
from tasks.synthesis.names import key
from tasks.synthesis.obfuscation import describe, fact_question, path_question

from .examples import document, stated

FRANCE = [
    document("france", f"{CAPITAL_OF.sentence('France', 'Paris')} {LARGEST_NEIGHBOUR.sentence('France', 'Spain')}"),
    document("spain", CURRENCY.sentence("Spain", "EUR")),
    document("money", CURRENCY.sentence("France", "FRF")),
]


def path_along(graph: KnowledgeGraph, *nodes: str) -> Path:
    hops = []
    for start, end in pairwise(nodes):
        hops.append(next(triple for triple in graph.leaving(key(start)) if key(triple.target) == key(end)))
    return tuple(hops)


def paths(graph: KnowledgeGraph, hops: int, wanted: int = 20) -> list[Path]:
    return list(sample_paths(graph, hops, wanted, random.Random(0)))


def test_triples_carry_their_evidence_and_direction() -> None:
    capital, neighbour, *_ = extract_triples(FRANCE)
    assert capital == Triple("capital", "Paris", "France", True, "france", "Paris is the capital of France.")
    assert (neighbour.source, neighbour.target, neighbour.inverse) == ("France", "Spain", False)
    (turned,) = extract_triples([document("d", "Eve is the mayor of Rome.")])
    assert (turned.source, turned.target, turned.inverse) == ("Rome", "Eve", False)
    assert extract_triples([document("d", CAPITAL.sentence("France", "Paris"), "dialogue")]) == []
    assert extract_triples([document("d", "The rest of the story is much too long to be told here.")]) == []


def test_aliases_are_one_entity() -> None:
    graph = KnowledgeGraph.of(stated([("a", "r", "New  York", "one"), ("new york", "s", "c", "two")]))
    assert [triple.target for triple in path_along(graph, "A", "new york", "C")] == ["New  York", "c"]


def test_a_path_with_a_short_cut_or_an_ambiguous_hop_is_refused() -> None:
    edges = [
        ("A", "founded", "B", "doc1"),
        ("B", "located in", "C", "doc2"),
        ("A", "based in", "C", "doc1"),
        ("B", "located in", "D", "doc3"),
    ]
    graph = KnowledgeGraph.of(stated(edges))
    assert faults(graph, path_along(graph, "A", "B", "C")) == [
        "a hop has several answers",
        "an edge shortens the path",
        "one document mentions start and answer",
    ]
    honest = KnowledgeGraph.of(stated(edges[:2]))
    assert faults(honest, path_along(honest, "A", "B", "C")) == []


def test_a_document_of_any_kind_that_names_both_ends_spoils_a_path() -> None:
    edges = [("A", "r", "B", "doc1"), ("B", "s", "C", "doc2")]
    spoiled = KnowledgeGraph.of([*stated(edges), document("talk", "A met C.", "dialogue")])
    assert faults(spoiled, path_along(spoiled, "A", "B", "C")) == ["one document mentions start and answer"]
    apart = KnowledgeGraph.of([*stated(edges), document("talk", "Anna met Chloe, A left.", "dialogue")])
    assert faults(apart, path_along(apart, "A", "B", "C")) == []


def test_hops_in_one_document_are_refused_but_a_description_of_the_start_may_share() -> None:
    together = KnowledgeGraph.of(stated([("A", "r", "B", "doc1"), ("B", "s", "C", "doc1")]))
    assert "consecutive hops share a document" in faults(together, path_along(together, "A", "B", "C"))
    graph = KnowledgeGraph.of(FRANCE)
    assert faults(graph, path_along(graph, "Paris", "France", "Spain", "EUR")) == []
    assert "consecutive hops share a document" in faults(graph, path_along(graph, "Paris", "France", "Spain"))


def test_an_inverse_capital_is_ambiguous_even_if_the_other_country_states_it_directly() -> None:
    documents = [document("j", CAPITAL_OF.sentence("Jamaica", "Kingston"))]
    (triple,) = extract_triples(documents)
    assert AnswerBook([triple]).unique(triple)
    documents.append(document("n", CAPITAL.sentence("Norfolk Island", "Kingston")))
    assert not AnswerBook(extract_triples(documents)).unique(triple)


@pytest.mark.parametrize(
    ("edges", "start", "hops"),
    [
        ([("A", "r", "B", "d1"), ("B", "r", "B", "d2")], "A", 2),
        ([("A", "r", "B", "d1"), ("B", "r", "A", "d2"), ("B", "s", "C", "d3")], "A", 3),
        ([], "A", 2),
    ],
)
def test_loops_and_cycles_are_no_hops(edges: list[tuple[str, str, str, str]], start: str, hops: int) -> None:
    graph = KnowledgeGraph.of(stated(edges))
    assert walk_path(graph, start, hops, random.Random(0)) is None
    assert bfs_path(graph, start, hops, random.Random(0)) is None
    assert paths(graph, hops) == []


def test_breadth_first_paths_are_shortest() -> None:
    edges = [("A", "r", "B", "d1"), ("B", "r", "C", "d2"), ("C", "r", "D", "d3"), ("A", "s", "C", "d4")]
    graph = KnowledgeGraph.of(stated(edges))
    found = {bfs_path(graph, "A", 2, random.Random(seed)) for seed in range(20)}
    assert found == {path_along(graph, "A", "C", "D")}
    assert bfs_path(graph, "A", 3, random.Random(0)) is None


def test_without_a_fact_that_goes_on_elsewhere_the_report_says_why() -> None:
    graph = KnowledgeGraph.of(stated([(f"A{n}", "r", f"B{n}", f"d{n}") for n in range(3)]))
    offer = report(graph)
    assert (offer.nodes, offer.edges, offer.components, offer.joints) == (6, 3, 3, 0)
    assert "no cross-document edge" in offer.reason
    harvest = multi_hop_questions(stated([("A", "r", "B", "d")]), "train", 5, 3, 0)
    assert harvest.questions == []
    assert harvest.rejections == {offer.reason: 1}
    assert report(KnowledgeGraph.of(FRANCE)).reason == ""


def test_dense_graphs_are_sampled_not_enumerated() -> None:
    names = [f"N{index}" for index in range(60)]
    triples = [Triple(f"r{a}{b}", a, b, False, f"d{a}", "") for a in names for b in names if a != b]
    sampler = sample_paths(KnowledgeGraph(triples, {}), 5, 20, random.Random(0))
    found = [next(sampler) for _ in range(20)]
    assert len(set(found)) == 20
    assert all(len({key(path[0].source), *(key(hop.target) for hop in path)}) == 6 for path in found)


nodes = st.sampled_from("ABCDE")


@given(st.lists(st.tuples(nodes, st.sampled_from(["r", "s"]), nodes, st.sampled_from(["d1", "d2", "d3"])), max_size=12))
def test_sampled_paths_are_simple_connected_and_distinct(edges: list[tuple[str, str, str, str]]) -> None:
    graph = KnowledgeGraph.of(stated(edges))
    found = paths(graph, 3, wanted=1)
    assert len(set(found)) == len(found)
    for path in found:
        visited = [path[0].source, *(hop.target for hop in path)]
        assert len({key(name) for name in visited}) == 4
        assert all(one.target == other.source for one, other in pairwise(path))


def test_questions_walk_the_chain_backwards() -> None:
    graph = KnowledgeGraph.of(FRANCE)
    path = path_along(graph, "Paris", "France", "Spain", "EUR")
    assert path_question(path) == (
        "What is the currency of the largest neighbour of the country with the capital Paris?"
    )
    assert describe(path[1:2]) == "the largest neighbour of France"
    assert fact_question(path[0]) == "Which country has the capital Paris?"
    assert fact_question(path[2]) == "What is the currency of Spain?"


def test_multi_hop_questions_record_a_path_that_can_be_walked_again() -> None:
    documents = stated(
        [(f"X{n}", "guide", f"Y{n}", f"one{n}") for n in range(8)]
        + [(f"Y{n}", "home", f"Z{n}", f"two{n}") for n in range(8)]
        + [(f"Z{n}", "river", f"W{n}", f"three{n}") for n in range(4)]
    )
    harvest = multi_hop_questions(documents, "train", 9, 3, 0)
    assert sorted(question.difficulty for question in harvest.questions) == [2] * 6 + [3] * 3
    graph = KnowledgeGraph.of(documents)
    for question in harvest.questions:
        path = path_of(question.provenance)
        assert faults(graph, path) == []
        assert question.gold == (path[-1].target,)
        assert question.document_ids == tuple(hop.document_id for hop in path)
    again = multi_hop_questions(documents, "train", 9, 3, 0)
    assert again.questions == harvest.questions
    everything = multi_hop_questions(documents, "train", 100, 3, 0).questions
    assert sorted(question.difficulty for question in everything) == [2] * 12 + [3] * 4
