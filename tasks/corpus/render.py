"""Country facts as plain documents: encyclopaedia entries, yearly reports with tables, dialogues with corrections."""

import random
from collections.abc import Sequence

from tasks.corpus.countries import Country
from tasks.corpus.grammar import (
    CALLING_CODE,
    CAPITAL,
    CAPITAL_OF,
    CURRENCY,
    DEMONYM,
    LARGEST_NEIGHBOUR,
    SMALLEST_NEIGHBOUR,
    SPEAKERS,
    row,
)

ROWS_PER_REPORT = 4
FACTS_PER_DIALOGUE = 3


def geography_entry(country: Country, rng: random.Random) -> str:
    """Capital, stated in one or both directions, and neighbours, in any order."""
    values = country.values()
    sentences = [
        relation.sentence(country.name, values[relation.name])
        for relation in (LARGEST_NEIGHBOUR, SMALLEST_NEIGHBOUR)
        if relation.name in values
    ]
    both_ways = [
        CAPITAL.sentence(country.name, country.capital),
        CAPITAL_OF.sentence(country.name, country.capital),
    ]
    sentences += rng.choice([both_ways, both_ways[:1], both_ways[1:]])
    rng.shuffle(sentences)
    return " ".join(sentences)


def society_entry(country: Country, rng: random.Random) -> str:
    """Currency and demonym, in any order; empty when the source lacks both."""
    values = country.values()
    known = [relation for relation in (CURRENCY, DEMONYM) if relation.name in values]
    sentences = [relation.sentence(country.name, values[relation.name]) for relation in known]
    rng.shuffle(sentences)
    return " ".join(sentences)


def report(region: str, measure: str, countries: Sequence[Country]) -> str:
    """A yearly report: a heading and one table row per country that has the measure."""
    rows = [row(country.name, measure, dict(country.counts)[measure]) for country in countries]
    return "\n".join([f"Yearly report on {region}:", *rows])


def dialogue(countries: Sequence[Country], wrong_codes: Sequence[str], rng: random.Random) -> str:
    """Speakers state calling codes; some statements are wrong and are corrected later in the dialogue.

    The last statement about a country is the true one.
    """
    first, second = rng.sample(SPEAKERS, 2)
    opening, corrections = [], []
    for country in countries:
        if rng.random() < 0.6:
            wrong = rng.choice([code for code in wrong_codes if code != country.calling_code])
            opening.append(f"{first}: {CALLING_CODE.sentence(country.name, wrong)}")
            corrected = CALLING_CODE.sentence(country.name, country.calling_code)
            corrections.append(f"{second}: No, {corrected[0].lower()}{corrected[1:]}")
        else:
            opening.append(f"{first}: {CALLING_CODE.sentence(country.name, country.calling_code)}")
    rng.shuffle(opening)
    rng.shuffle(corrections)
    return "\n".join(opening + corrections)
