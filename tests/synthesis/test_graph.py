import pickle
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.corpus.grammar import CAPITAL, CAPITAL_OF, CURRENCY, LARGEST_NEIGHBOUR
from tasks.corpus.library import Library
from tasks.synthesis.graph import AMBIGUOUS, APART, MET_TWICE, KnowledgeGraph, covered, report
from tasks.synthesis.language import ONLY_A_START, GrammarLanguage
from tasks.synthesis.paths import CROWDED, SHORTENED, TOGETHER
from tasks.synthesis.triples import Triple, path_of, recorded

from .examples import document, stated
from .graphs import edges_along, fact, graph_from, graph_of, graph_stated

FRANCE = [
    document("france", f"{CAPITAL_OF.sentence('France', 'Paris')} {LARGEST_NEIGHBOUR.sentence('France', 'Spain')}"),
    document("spain", CURRENCY.sentence("Spain", "EUR")),
    document("money", CURRENCY.sentence("France", "FRF")),
]


def paths(graph: KnowledgeGraph, hops: int, wanted: int = 20) -> list[tuple[int, ...]]:
    return list(graph.sampler.sample(hops, wanted, 0, Counter()))


def test_triples_carry_their_evidence_and_direction() -> None:
    read = GrammarLanguage().read
    capital, neighbour, *_ = read(FRANCE).triples
    assert capital == Triple("capital", "Paris", "France", True, "france", 0, 31)
    assert recorded(capital, FRANCE[0].text)["sentence"] == "Paris is the capital of France."
    assert (neighbour.source, neighbour.target, neighbour.inverse) == ("France", "Spain", False)
    assert FRANCE[0].text[neighbour.start : neighbour.end] == LARGEST_NEIGHBOUR.sentence("France", "Spain")
    (turned,) = read([document("d", "Eve is the mayor of Rome.")]).triples
    assert (turned.source, turned.target, turned.inverse) == ("Rome", "Eve", False)
    assert read([document("d", "The rest of the story is much too long to be told here.")]).triples == []
    assert read([]).triples == []


def test_dialogues_are_not_part_of_the_graph() -> None:
    assert graph_of([document("d", CAPITAL.sentence("France", "Paris"), "dialogue")]).triples == []


def test_aliases_are_one_entity_over_all_documents() -> None:
    graph = graph_stated([("a", "r", "New  York", "one"), ("new york", "s", "the Bronx Zoo", "two")])
    assert edges_along(graph, "A", "new york", "Bronx Zoo") == [0, 1]
    introduced = [
        document("one", "The employer of Ann is IBM.", "text"),
        document("two", "The founder of International Business Machines is Ray. So much for it.", "text"),
        document("three", "She left International Business Machines (IBM) early.", "text"),
    ]
    assert edges_along(graph_of(introduced), "Ann", "International Business Machines", "Ray") == [0, 1]
    assert graph_of(introduced[:2]).entity("IBM") != graph_of(introduced[:2]).entity("International Business Machines")


def test_a_path_with_a_short_cut_or_an_ambiguous_hop_is_refused() -> None:
    edges = [
        ("A", "founded", "B", "doc1"),
        ("B", "located in", "C", "doc2"),
        ("A", "based in", "C", "doc1"),
        ("B", "located in", "D", "doc3"),
    ]
    graph = graph_stated(edges)
    assert graph.faults(edges_along(graph, "A", "B", "C")) == [AMBIGUOUS, SHORTENED, TOGETHER]
    honest = graph_stated(edges[:2])
    assert honest.faults(edges_along(honest, "A", "B", "C")) == []


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (fact("C", "likes", "A", "d9"), SHORTENED),  # the other way round, too
        (fact("C", "likes", "X", "d1"), TOGETHER),
        (fact("A", "r", "B", "d2"), CROWDED),  # the first hop is also told where the second is
    ],
)
def test_what_one_more_fact_spoils(extra: Triple, reason: str) -> None:
    graph = graph_from([fact("A", "r", "B", "d1"), fact("B", "s", "C", "d2"), extra])
    assert reason in graph.faults([0, 1])


def test_a_path_that_returns_is_refused() -> None:
    graph = graph_from([fact("A", "r", "B", "d1"), fact("B", "s", "A", "d2")])
    assert MET_TWICE in graph.faults([0, 1])


def test_a_document_of_any_kind_that_names_both_ends_spoils_a_path() -> None:
    edges = [("A", "r", "B", "doc1"), ("B", "s", "C", "doc2")]
    spoiled = graph_of([*stated(edges), document("talk", "A met C.", "dialogue")])
    assert spoiled.faults([0, 1]) == [TOGETHER]
    apart = graph_of([*stated(edges), document("talk", "Anna met Chloe, A left.", "dialogue")])
    assert apart.faults([0, 1]) == []


def test_hops_in_too_few_documents_are_refused_but_a_description_of_the_start_may_share() -> None:
    graph = graph_of(FRANCE)
    assert graph.faults(edges_along(graph, "Paris", "France", "Spain", "EUR")) == []
    assert CROWDED in graph.faults(edges_along(graph, "Paris", "France", "Spain"))
    assert CROWDED in graph_of(FRANCE, 3).faults(edges_along(graph, "Paris", "France", "Spain", "EUR"))


@pytest.mark.parametrize(
    ("stating", "documents", "expected"),
    [
        ([{1}, {2}], 1, False),
        ([{1}, {1, 2}], 1, True),
        ([{1, 2}, {2, 3}, {3, 4}], 1, False),
        ([{1, 2}, {2, 3}, {3, 4}], 2, True),
        ([{1}, {2}, {3}], 2, False),
        ([set(range(999)), set(range(999, 1998)), {5000}], 2, False),  # told often, but never together
        ([], 0, True),
        ([{1}], 0, False),
    ],
)
def test_whether_few_documents_tell_all_hops(stating: list[set[int]], documents: int, expected: bool) -> None:
    assert covered(stating, documents) is expected


def test_an_inverse_capital_is_ambiguous_even_if_the_other_country_states_it_directly() -> None:
    documents = [document("j", CAPITAL_OF.sentence("Jamaica", "Kingston"))]
    assert graph_of(documents).askable_E.tolist() == [True]
    documents.append(document("n", CAPITAL.sentence("Norfolk Island", "Kingston")))
    assert graph_of(documents).askable_E.tolist() == [False, True]


def test_the_closed_language_describes_only_a_start_by_its_capital() -> None:
    graph = graph_of(FRANCE)
    fault = GrammarLanguage().fault
    assert fault(graph.along(edges_along(graph, "Paris", "France", "Spain"))) == ""
    assert fault((fact("A", "r", "Paris", "d"), graph.triples[0])) == ONLY_A_START


def test_a_report_counts_what_can_be_walked_and_says_why_nothing_can() -> None:
    apart = report(graph_stated([(f"A{n}", "r", f"B{n}", f"d{n}") for n in range(3)]))
    assert (apart.entities, apart.facts, apart.askable, apart.documents, apart.components) == (6, 3, 3, 3, 3)
    assert (apart.joints, apart.reason) == (0, APART)
    assert [(one.entities, one.facts, one.documents, one.joints) for one in apart.largest] == [(2, 1, 1, 0)] * 3
    joined = report(graph_of(FRANCE))
    assert (joined.reason, joined.components) == ("", 1)
    assert (joined.largest[0].entities, joined.largest[0].documents, joined.joints) == (5, 3, 2)
    empty = report(graph_from([]))
    assert (empty.entities, empty.components, empty.largest, empty.reason) == (0, 0, (), APART)


def test_memory_grows_with_facts_not_with_text() -> None:
    said, filler = CURRENCY.sentence("Chad", "XAF"), "Nothing is said here. " * 2000
    graph = graph_of([document("d", f"{filler}{said} {filler}")])
    (triple,) = graph.triples
    assert triple.end - triple.start == len(said)
    assert len(pickle.dumps((graph.triples, graph.edges, graph.clusters))) < 2000


def test_a_recorded_path_is_found_again() -> None:
    graph = graph_of(FRANCE)
    edges = edges_along(graph, "Paris", "France", "Spain", "EUR")
    library = Library.of(FRANCE)
    hops = [recorded(one, library[one.document_id].text) for one in graph.along(edges)]
    assert graph.edges_of(path_of({"hops": hops})) == edges
    with pytest.raises(KeyError):
        graph.edges_of((fact("Paris", "r", "Rome", "d"),))


nodes = st.sampled_from("ABCDE")
edges = st.lists(
    st.tuples(nodes, st.sampled_from("rs"), nodes, st.sampled_from(["d1", "d2", "d3"]), st.booleans()), max_size=12
)


@settings(max_examples=60)
@given(edges, st.integers(1, 4), st.integers(1, 3))
def test_sampled_paths_pass_every_check_done_by_hand(
    stated_edges: list[tuple[str, str, str, str, bool]], hops: int, least: int
) -> None:
    triples = [fact(a, r, b, d, inverse=inverse) for a, r, b, d, inverse in stated_edges]
    graph = graph_from(triples, least)
    found = paths(graph, hops, wanted=1)
    assert len(set(found)) == len(found)
    linked = {frozenset((one.source, one.target)) for one in triples}
    for path in map(graph.along, found):
        met = [path[0].source, *(hop.target for hop in path)]
        assert [hop.source for hop in path] == met[:-1]
        assert len(set(met)) == hops + 1
        assert len({hop.document_id for hop in path}) >= least
        assert not any(frozenset((met[i], met[j])) in linked for j in range(hops + 1) for i in range(j - 1))
        ends = [{t.document_id for t in triples if name in {t.source, t.target}} for name in (met[0], met[-1])]
        assert not ends[0] & ends[1]
        for hop in path:
            answers = {(t.object if not hop.inverse else t.subject) for t in triples if _asks_the_same(t, hop)}
            assert answers == {hop.target}


def _asks_the_same(one: Triple, other: Triple) -> bool:
    given = (one.object, other.source) if other.inverse else (one.subject, other.source)
    return one.relation == other.relation and given[0] == given[1]
