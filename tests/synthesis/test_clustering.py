import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.synthesis.clustering import Clusters, entity_form, introductions, relation_form

IBM = ("IBM", "International Business Machines")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ＩＢＭ", "ibm"),
        ("U.S.", "US"),
        ("Rolls-Royce", "Rolls Royce"),
        ("São Tomé and Príncipe", "Sao Tome & Principe"),
        ("the Netherlands", "Netherlands"),
        ("The United States", "United States"),
        ("O’Brien", "O'Brien"),
        ("Acme, Inc.", "Acme Incorporated"),
        ("Acme Ltd", "ACME Limited"),
    ],
)
def test_one_entity_in_two_spellings(one: str, other: str) -> None:
    clusters = Clusters([one, other])
    assert clusters.of(one) == clusters.of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Niger", "Nigeria"),
        ("North Korea", "South Korea"),
        ("Apollo 11", "Apollo 13"),
        ("Dominica", "Dominican Republic"),
        ("Austria", "Australia"),
        ("Guinea", "Guinea-Bissau"),
        ("Henry IV", "Henry V"),
        ("1,5 km", "15 km"),
        ("-5", "5"),
        ("3.5", "35"),
        ("C", "C#"),
        ("Malé", "Male"),  # short: the accent may be all that tells them apart
        ("The Who", "who"),
        ("Walt Disney", "Walt Disney Company"),
        ("Siemens AG", "Siemens Ltd"),
        ("New York", "New York City"),
        ("John Smith", "John A. Smith"),
        ("Johansson", "Johanson"),
        ("Mercury (planet)", "Mercury"),
    ],
)
def test_two_entities_that_look_alike(one: str, other: str) -> None:
    clusters = Clusters([one, other])
    assert clusters.of(one) != clusters.of(other)


def test_a_legal_suffix_goes_only_where_the_corpus_has_one_company_of_that_name() -> None:
    assert Clusters(["Acme Inc", "Acme"]).of("Acme Inc.") == "acme"
    several = Clusters(["Acme Inc", "Acme GmbH", "Acme"])
    assert len({several.of(name) for name in ("Acme Inc", "Acme GmbH", "Acme")}) == 3
    assert Clusters(["Acme Inc"]).of("Acme Inc") == "acme inc"  # nothing to merge with


def test_an_introduced_short_name_is_its_long_one_where_that_is_certain() -> None:
    short, long = IBM
    assert Clusters(IBM, [IBM]).of(short) == Clusters(IBM, [IBM]).of(long)
    assert Clusters(IBM).of(short) != Clusters(IBM).of(long)  # nobody says so
    assert Clusters([short], [IBM]).of(short) == "ibm"  # the long one is no entity here
    both = [IBM, ("IBM", "Irish Bakers Movement")]
    assert Clusters([*IBM, "Irish Bakers Movement"], both).of(short) == "ibm"
    rival = Clusters([*IBM, "Irish Bakers Movement"], [IBM])  # another entity has these initials
    assert rival.of(short) == "ibm"
    company = Clusters([short, long, f"{long} Corp."], [IBM])
    assert len({company.of(name) for name in (short, long, f"{long} Corporation")}) == 1


def test_introductions_need_matching_capitals() -> None:
    text = (
        "She left International Business Machines (IBM) for the WHO (World Health Organization). The Foo Bar (XYZ) and "
        "the United States of America (USA) signed; the price (EUR) rose."
    )
    assert list(introductions(text)) == [
        IBM,
        ("WHO", "World Health Organization"),
        ("USA", "United States of America"),
    ]


def test_introductions_take_no_time_in_hostile_texts() -> None:
    for text in ("A-" * 20_000, "A B " * 10_000, "a" * 50_000, "(" * 50_000, "Ab of " * 10_000):
        assert list(introductions(text)) == []


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("was founded by", "is founded by", True),
        ("founded_by", "foundedBy", True),
        ("acquires", "acquired", True),
        ("language", "languages", True),
        ("was born in", "born in", True),
        ("is the capital of", "capital of", True),
        ("founded", "founded by", False),  # the other way round
        ("capital of", "capital", False),
        ("is president of", "was president of", False),
        ("largest neighbour", "smallest neighbour", False),
        ("is not part of", "is part of", False),
        ("born in", "born on", False),
    ],
)
def test_relations_in_two_wordings(one: str, other: str, same: bool) -> None:
    assert (relation_form(one) == relation_form(other)) is same


names = st.lists(
    st.sampled_from(["IBM", "International Business Machines", "the Acme", "Acme Inc.", "ACME GmbH", "Acme", "Ａcme"])
    | st.text(alphabet="abc theIN.&-'1é東 ", max_size=12),
    max_size=8,
)


@given(names, st.sampled_from([[], [IBM], [IBM, ("IBM", "Acme")]]), st.randoms())
def test_clusters_depend_on_no_order_and_are_stable(
    found: list[str], introduced: list[tuple[str, str]], rng: random.Random
) -> None:
    clusters = Clusters(found, introduced)
    again = Clusters(rng.sample(found, len(found)), rng.sample(introduced, len(introduced)))
    for name in found:
        assert clusters.of(name) == again.of(name)
        assert clusters.of(clusters.of(name)) == clusters.of(name)
        assert entity_form(entity_form(name)) == entity_form(name)
    merged = Clusters([clusters.of(name) for name in found], introduced)
    assert {merged.of(clusters.of(name)) for name in found} == {clusters.of(name) for name in found}
