"""Rendered documents state the facts, and the last word of a dialogue is the true one."""

import random

import pytest

from tasks.corpus import render
from tasks.corpus.countries import Country, load_countries, vocabulary
from tasks.corpus.grammar import MAX_COUNT, rows, statements

COUNTRIES = load_countries()


def test_countries_are_many_and_well_formed() -> None:
    assert len(COUNTRIES) > 150
    assert len({country.name for country in COUNTRIES}) == len(COUNTRIES)
    for country in COUNTRIES:
        assert country.capital and country.region
        assert all(1 <= count <= MAX_COUNT for _, count in country.counts)
        assert country.name not in (country.largest_neighbour, country.smallest_neighbour)


def test_france_is_described_by_its_facts() -> None:
    (france,) = [country for country in COUNTRIES if country.name == "France"]
    assert (france.capital, france.currency, france.demonym) == ("Paris", "EUR", "French")
    assert (france.largest_neighbour, france.smallest_neighbour) == ("Spain", "Andorra")


@pytest.mark.parametrize("seed", range(5))
def test_entries_state_only_facts_of_their_country(seed: int) -> None:
    rng = random.Random(seed)
    for country in COUNTRIES:
        text = f"{render.geography_entry(country, rng)} {render.society_entry(country, rng)}"
        found = list(statements(text))
        assert {statement.subject for statement in found} == {country.name}
        assert all(country.values()[statement.relation] == statement.value for statement in found)
        assert "capital" in {statement.relation for statement in found}


@pytest.mark.parametrize("seed", range(20))
def test_the_last_statement_of_a_dialogue_is_true(seed: int) -> None:
    rng = random.Random(seed)
    some = [country for country in COUNTRIES if country.calling_code][seed : seed + 3]
    text = render.dialogue(some, vocabulary(COUNTRIES)["calling code"], rng)
    last = {statement.subject: statement.value for statement in statements(text)}
    assert last == {country.name: country.calling_code for country in some}


def test_a_report_holds_one_row_per_country() -> None:
    some = [
        Country(name, "Region", "C", "", "", "", "", "", (("languages", count),))
        for name, count in (("Chad", 2), ("Mali", 1))
    ]
    assert list(rows(render.report("Region", "languages", some))) == [
        ("Chad", "languages", 2),
        ("Mali", "languages", 1),
    ]
