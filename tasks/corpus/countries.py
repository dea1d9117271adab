"""Country facts from the countryinfo package, cleaned into small typed records."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from tasks.corpus.grammar import MAX_COUNT


@dataclass(frozen=True)
class Country:
    """What the documents say of one country. Empty strings and absent counts are facts the source lacks."""

    name: str
    region: str
    capital: str
    currency: str
    demonym: str
    largest_neighbour: str  # by area
    smallest_neighbour: str  # by area; empty when there is only one
    calling_code: str
    counts: tuple[tuple[str, int], ...]  # (measure, count) with 1 ≤ count ≤ MAX_COUNT

    def values(self) -> dict[str, str]:
        """Relation name → value, without the ones that are missing."""
        pairs = {
            "capital": self.capital,
            "currency": self.currency,
            "demonym": self.demonym,
            "largest neighbour": self.largest_neighbour,
            "smallest neighbour": self.smallest_neighbour,
            "calling code": self.calling_code,
        }
        return {relation: value for relation, value in pairs.items() if value}


def load_countries() -> list[Country]:
    """All countries whose facts can be read without doubt, sorted by name."""
    folder = resources.files("countryinfo") / "data"
    raw = [json.loads(entry.read_text("utf-8")) for entry in folder.iterdir() if entry.name.endswith(".json")]
    usable = {record["ISO"]["alpha3"]: record for record in raw if _usable(record)}
    return sorted((_country(record, usable) for record in usable.values()), key=lambda country: country.name)


def _usable(record: dict[str, Any]) -> bool:
    """Keep records with a plain name, one capital, a region and an ISO code."""
    name, capital = record.get("name"), record.get("capital")
    return (
        _plain(name)
        and _plain(capital)
        and name != capital
        and bool(record.get("subregion"))
        and bool(record.get("area"))
        and bool(record.get("ISO", {}).get("alpha3"))
    )


def _plain(name: object) -> bool:
    return isinstance(name, str) and bool(name) and name.isascii() and not set(name) & set("(),.|:")


def _country(record: dict[str, Any], usable: dict[str, dict[str, Any]]) -> Country:
    neighbours = sorted(
        (usable[code] for code in record.get("borders") or [] if code in usable),
        key=lambda other: float(other["area"]),
    )
    codes = [code for code in record.get("callingCodes") or [] if str(code).isdigit()]
    currencies = [code for code in record.get("currencies") or [] if isinstance(code, str) and len(code) == 3]
    demonym = record.get("demonym") or ""
    counts = {
        "neighbours": len(record.get("borders") or []),
        "provinces": len(record.get("provinces") or []),
        "languages": len(record.get("languages") or []),
    }
    return Country(
        name=record["name"],
        region=record["subregion"],
        capital=record["capital"],
        currency=currencies[0] if currencies else "",
        demonym=demonym if _plain(demonym) else "",
        largest_neighbour=neighbours[-1]["name"] if neighbours else "",
        smallest_neighbour=neighbours[0]["name"] if len(neighbours) > 1 else "",
        calling_code=str(codes[0]) if codes else "",
        counts=tuple((measure, count) for measure, count in counts.items() if 1 <= count <= MAX_COUNT),
    )


def vocabulary(countries: Sequence[Country]) -> dict[str, list[str]]:
    """Relation name → sorted distinct values, and "country" → names: the pools that guesses and shuffles draw from."""
    pools: dict[str, set[str]] = {"country": {country.name for country in countries}}
    for country in countries:
        for relation, value in country.values().items():
            pools.setdefault(relation, set()).add(value)
    return {relation: sorted(values) for relation, values in pools.items()}
