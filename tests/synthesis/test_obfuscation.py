import random

import pytest

from tasks.synthesis.graph import KnowledgeGraph
from tasks.synthesis.makers import shown
from tasks.synthesis.obfuscation import Describer, Description
from tasks.synthesis.triples import Triple

from .graphs import fact, graph_from


def described(
    triples: list[Triple], name: str, hidden: tuple[str, ...] = (), answer: str = "", most: int = 2
) -> Description | None:
    graph = graph_from(triples)
    entities = [graph.entity(one) for one in hidden]
    return Describer(graph, most, random.Random(0)).describe(
        _known(graph, name), [one for one in entities if one is not None], _known(graph, answer) if answer else None
    )


def _known(graph: KnowledgeGraph, name: str) -> int:
    entity = graph.entity(name)
    assert entity is not None
    return entity


FOUNDED = [fact("Acme", "was founded in", "1947", "d1"), fact("Bolt", "was founded in", "1962", "d2")]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([], "the 20th century"),
        ([("Bolt", "1962")], "the 1940s"),
        ([("Bolt", "1941")], "the late 1940s"),
        ([("Bolt", "1948")], "1947"),  # every period fits both
        ([("Bolt", "1947")], None),  # even the year does
        ([("Bolt", "the late war")], "the 20th century"),  # no date: cannot match
        ([("Bolt", "March 1947")], None),  # may be the same
    ],
)
def test_a_year_becomes_the_vaguest_period_that_fits_one_entity(
    others: list[tuple[str, str]], expected: str | None
) -> None:
    triples = [FOUNDED[0], *(fact(name, "was founded in", value, name) for name, value in others)]
    found = described(triples, "Acme")
    assert (found and shown(found)) == (expected and (expected,))


def test_numbers_become_ranges_and_institutions_their_facts() -> None:
    people = [fact("Ulm", "has", "126,300 people", "d1"), fact("Bonn", "has", "331,000 people", "d2")]
    found = described(people, "Ulm")
    assert found is not None and shown(found) == ("between 100,000 and 200,000 people",)
    run = described([fact("Acme", "is run by", "Ann Lee", "d1"), fact("Bolt", "is run by", "Bob", "d2")], "Acme")
    assert run is not None and shown(run) == ("Ann Lee",)
    founder = described([fact("Ann Lee", "founded", "Acme", "d1")], "Acme")  # the entity is the object
    assert founder is not None and shown(founder) == ("Ann Lee",)


def test_two_facts_together_may_fit_one_entity() -> None:
    triples = [
        fact("Acme", "is based in", "Ulm", "d1"),
        fact("Acme", "makes", "anvils", "d2"),
        fact("Bolt", "is based in", "Ulm", "d3"),
        fact("Cork", "makes", "anvils", "d4"),
    ]
    found = described(triples, "Acme")
    assert found is not None and sorted(shown(found)) == ["Ulm", "anvils"]
    assert described(triples, "Acme", most=1) is None
    assert described(triples, "Acme", most=0) is None


def test_a_description_tells_nothing_that_is_hidden() -> None:
    triples = [
        fact("Acme", "is run by", "Ann Lee", "d1"),
        fact("Acme", "has the plant", "Ann Lee Works", "d2"),
        fact("Acme", "is based in", "Ulm", "d3"),
        fact("Ulm", "honours", "Zed", "d4"),
    ]
    found = described(triples, "Acme", hidden=("Ann Lee",))
    assert found is not None and shown(found) == ("Ulm",)
    assert described(triples, "Acme", hidden=("Ann Lee",), answer="Zed") is None  # d4 links Ulm with the answer


def test_an_entity_without_facts_of_its_own_keeps_its_name() -> None:
    assert described(FOUNDED, "1947", hidden=("Acme",)) is None


def test_a_date_at_the_start_is_said_as_vaguely_as_it_leads_to_one_entity() -> None:
    back = [fact(one.target, one.relation, one.source, one.document_id, inverse=True) for one in FOUNDED]
    describer = Describer(graph_from(back), 2, random.Random(0))
    assert [describer.vaguest(edge) for edge in range(2)] == ["the 1940s", "the 1960s"]
    assert Describer(graph_from(back), 0, random.Random(0)).vaguest(0) == "1947"
    forward = Describer(graph_from([fact("1947", "saw", "Acme", "d")]), 2, random.Random(0))
    assert forward.vaguest(0) == "1947"


def test_a_number_that_looks_like_a_year_has_no_century() -> None:
    staff = [fact("Acme", "Staff", "1734", "d1"), fact("Bolt", "Staff", "230", "d2")]
    found = described(staff, "Acme")
    assert found is not None and shown(found) == ("1734",)
    years = described([staff[0], fact("Bolt", "Staff", "1951", "d2")], "Acme")  # nothing speaks against years
    assert years is not None and shown(years) == ("the 18th century",)
