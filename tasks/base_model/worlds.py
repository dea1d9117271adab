"""Small worlds of shuffled facts: documents in which reading is the only way to know an answer.

Every world gives its countries random capitals, currencies and so on, so nothing can be learnt by heart.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks.corpus import render
from tasks.corpus.countries import Country
from tasks.corpus.grammar import (
    MAX_COUNT,
    MEASURES,
    RELATIONS,
    capital_inverse_question,
    described_by,
    described_by_capital,
    dialogue_question,
    highest_question,
    row,
    rows,
    statements,
    total_question,
)
from tasks.records import Domain

NEIGHBOURHOOD = ("largest neighbour", "smallest neighbour")
CAPITAL_TO_COUNTRY = "country with the capital"


@dataclass(frozen=True)
class Fact:
    """A stated fact: `key` is (relation or measure, subject), `statement` the sentence or row as written."""

    key: tuple[str, str]
    value: str
    statement: str

    @property
    def wanted(self) -> str:
        """How a plan names the fact while it is missing."""
        return f"find the {self.key[0]} of {self.key[1]}."


@dataclass(frozen=True)
class World:
    """Documents and what they state; on conflict (a corrected dialogue) the last statement counts."""

    documents: tuple[str, ...]
    facts: Mapping[tuple[str, str], Fact]
    pools: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Problem:
    """A question about a world, the facts that answer it in order, and the answer."""

    domain: Domain
    question: str
    evidence: tuple[Fact, ...]
    conclusion: str  # what a reasoned reply adds after quoting the evidence
    answer: str
    options: tuple[str, ...] = ()


def make_world(pools: Mapping[str, Sequence[str]], regions: Sequence[str], size: int, rng: random.Random) -> World:
    """A world of about `size` documents from shuffled facts."""
    countries = _shuffled_countries(pools, regions, max(2, size), rng)
    documents = []
    for position in range(size):
        kind = rng.choice(("geography", "geography", "society", "report", "dialogue"))
        documents.append(_document(kind, position, countries, pools, rng))
    return world_of([text for text in dict.fromkeys(documents) if text], pools)


def world_of(documents: Sequence[str], pools: Mapping[str, Sequence[str]]) -> World:
    """The world that these documents state."""
    return World(tuple(documents), _facts(documents), pools)


def _shuffled_countries(
    pools: Mapping[str, Sequence[str]], regions: Sequence[str], number: int, rng: random.Random
) -> list[Country]:
    names = rng.sample(pools["country"], number)
    capitals, demonyms, codes = (rng.sample(pools[pool], number) for pool in ("capital", "demonym", "calling code"))
    countries = []
    for name, capital, demonym, code in zip(names, capitals, demonyms, codes, strict=True):
        near = [other for other in names if other != name] if rng.random() < 0.8 else pools["country"]
        counts = tuple((measure, rng.randint(1, MAX_COUNT)) for measure in MEASURES)
        neighbours = rng.choice(near), rng.choice(near)
        countries.append(
            Country(
                name,
                rng.choice(regions),
                capital,
                rng.choice(pools["currency"]),
                demonym,
                *neighbours,
                code,
                counts,
            )
        )
    return countries


def _document(
    kind: str,
    position: int,
    countries: Sequence[Country],
    pools: Mapping[str, Sequence[str]],
    rng: random.Random,
) -> str:
    if kind == "geography":
        return render.geography_entry(countries[position], rng)
    if kind == "society":
        return render.society_entry(countries[position], rng)
    several = rng.sample(countries, min(len(countries), rng.randint(2, render.ROWS_PER_REPORT)))
    if kind == "report":
        return render.report(several[0].region, rng.choice(MEASURES), several)
    return render.dialogue(several[: render.FACTS_PER_DIALOGUE], pools["calling code"], rng)


def _facts(documents: Sequence[str]) -> dict[tuple[str, str], Fact]:
    facts = {}
    for text in documents:
        for found in statements(text):
            key = (CAPITAL_TO_COUNTRY, found.value) if found.inverse else (found.relation, found.subject)
            sentence = found.sentence[0].upper() + found.sentence[1:]
            facts[key] = Fact(key, found.subject if found.inverse else found.value, sentence)
        for country, measure, count in rows(text):
            facts[measure, country] = Fact((measure, country), str(count), row(country, measure, count))
    return facts


def make_problem(world: World, domain: Domain, rng: random.Random) -> Problem | None:
    """A question of a domain, or None when the world states nothing to ask."""
    makers = {
        Domain.READING_COMPREHENSION: _reading,
        Domain.MULTIPLE_CHOICE: _choice,
        Domain.MULTI_HOP: _hops,
        Domain.DIALOGUE_MEMORY: _dialogue,
        Domain.CORPUS_NUMERIC: _numeric,
    }
    return makers[domain](world, rng)


def _is_reading(fact: Fact) -> bool:
    return fact.key[0] not in (*MEASURES, "calling code")


def _ask(fact: Fact) -> str:
    relation, subject = fact.key
    if relation == CAPITAL_TO_COUNTRY:
        return capital_inverse_question(subject)
    return RELATIONS[relation].question(subject)


def _reading(world: World, rng: random.Random) -> Problem | None:
    facts = [fact for fact in world.facts.values() if _is_reading(fact)]
    if not facts:
        return None
    fact = rng.choice(facts)
    return Problem(Domain.READING_COMPREHENSION, _ask(fact), (fact,), "", fact.value)


def _choice(world: World, rng: random.Random) -> Problem | None:
    asked = _reading(world, rng)
    if asked is None:
        return None
    (fact,) = asked.evidence
    kind = fact.key[0]
    pool = "country" if kind in (*NEIGHBOURHOOD, CAPITAL_TO_COUNTRY) else kind
    stated = [other.value for other in world.facts.values() if other.key[0] == kind]
    others = [value for value in dict.fromkeys(stated) if value != fact.value]
    rng.shuffle(others)
    spare = [value for value in rng.sample(world.pools[pool], 6) if value != fact.value and value not in others]
    options = [fact.value, *(others[:2] + spare)[:3]]
    rng.shuffle(options)
    letter = "ABCD"[options.index(fact.value)]
    conclusion = f"{fact.value} ({letter})."
    return Problem(Domain.MULTIPLE_CHOICE, asked.question, (fact,), conclusion, letter, tuple(options))


def _hops(world: World, rng: random.Random) -> Problem | None:
    chains = [
        (first, second)
        for first in world.facts.values()
        if first.key[0] in (*NEIGHBOURHOOD, CAPITAL_TO_COUNTRY)
        for second in world.facts.values()
        if second.key[1] == first.value and _is_reading(second) and second.value != first.key[1]
        if second.key[0] != CAPITAL_TO_COUNTRY
    ]
    if not chains:
        return None
    chain = list(rng.choice(chains))
    longer = [link for link in chains if link[0] == chain[-1]]
    if longer and rng.random() < 0.3:
        chain.append(rng.choice(longer)[1])
    description = chain[0].key[1]
    for fact in chain[:-1]:
        relation = fact.key[0]
        description = (
            described_by_capital(description)
            if relation == CAPITAL_TO_COUNTRY
            else described_by(RELATIONS[relation], description)
        )
    question = RELATIONS[chain[-1].key[0]].question(description)
    return Problem(Domain.MULTI_HOP, question, tuple(chain), "", chain[-1].value)


def _dialogue(world: World, rng: random.Random) -> Problem | None:
    facts = [fact for fact in world.facts.values() if fact.key[0] == "calling code"]
    if not facts:
        return None
    fact = rng.choice(facts)
    question = dialogue_question(RELATIONS["calling code"], fact.key[1])
    return Problem(Domain.DIALOGUE_MEMORY, question, (fact,), "", fact.value)


def _numeric(world: World, rng: random.Random) -> Problem | None:
    by_measure = {measure: [fact for fact in world.facts.values() if fact.key[0] == measure] for measure in MEASURES}
    usable = [measure for measure, facts in by_measure.items() if len(facts) >= 2]
    if not usable:
        return None
    measure = rng.choice(usable)
    if rng.random() < 0.5:
        evidence = rng.sample(by_measure[measure], 2)
        counts = [int(fact.value) for fact in evidence]
        total = str(sum(counts))
        question = total_question(measure, [fact.key[1] for fact in evidence])
        return Problem(Domain.CORPUS_NUMERIC, question, tuple(evidence), f"{counts[0]} + {counts[1]} = {total}.", total)
    evidence = rng.sample(by_measure[measure], min(len(by_measure[measure]), rng.choice((2, 2, 3))))
    highest = str(max(int(fact.value) for fact in evidence))
    question = highest_question(measure, [fact.key[1] for fact in evidence])
    return Problem(Domain.CORPUS_NUMERIC, question, tuple(evidence), "", highest)
