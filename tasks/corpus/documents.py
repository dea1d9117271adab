"""Documents before they have a split: rendered from country facts, and cut from the user's files."""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tasks.corpus import render
from tasks.corpus.cleaning import pieces
from tasks.corpus.countries import Country
from tasks.corpus.cutting import cut_sections
from tasks.corpus.grammar import MEASURES
from tasks.corpus.readers import Section, SourceFile
from tasks.records import Document, DocumentKind, Split

DIALOGUES_PER_COUNTRY = 2  # each with other companions and other mistakes, ending on the same truth
COUNTRY_SOURCE = "countryinfo"


@dataclass(frozen=True)
class Draft:
    """A document whose split is not yet known; fields as in `Document`."""

    id: str
    title: str
    text: str
    kind: DocumentKind
    cluster: str
    source: str

    def document(self, split: Split) -> Document:
        """The finished record."""
        return Document(
            id=self.id,
            title=self.title,
            text=self.text,
            kind=self.kind,
            cluster=self.cluster,
            split=split,
            source=self.source,
        )


def country_drafts(countries: Sequence[Country], seed: int) -> list[Draft]:
    """Entries, reports and dialogues about all countries, region by region; a region is a cluster."""
    drafts: list[Draft] = []
    for region, members in groupby(sorted(countries, key=_by_region), key=lambda country: country.region):
        drafts += _region_drafts(region, list(members), random.Random(f"{seed} {region}"))
    return drafts


def _by_region(country: Country) -> tuple[str, str]:
    return country.region, country.name


def _region_drafts(region: str, countries: Sequence[Country], rng: random.Random) -> Iterator[Draft]:
    for country in countries:
        for topic, write in (("geography", render.geography_entry), ("society", render.society_entry)):
            text = write(country, rng)
            if text:
                yield _draft(f"{country.name} {topic}", text, "encyclopaedia", region)
    for measure in MEASURES:
        measured = [country for country in countries if measure in dict(country.counts)]
        for number, part in enumerate(_even_parts(measured, render.ROWS_PER_REPORT), 1):
            text = render.report(region, measure, part)
            yield _draft(f"{region} {measure} {number}", text, "report", region)
    callable_countries = [country for country in countries if country.calling_code]
    codes = sorted({country.calling_code for country in callable_countries})
    for turn in range(1, DIALOGUES_PER_COUNTRY + 1):
        order = rng.sample(callable_countries, len(callable_countries))
        for number, part in enumerate(_even_parts(order, render.FACTS_PER_DIALOGUE), 1):
            yield _draft(f"{region} dialogue {turn}-{number}", render.dialogue(part, codes, rng), "dialogue", region)


def _draft(title: str, text: str, kind: DocumentKind, region: str) -> Draft:
    return Draft(_slug(title), title, text, kind, _slug(region), COUNTRY_SOURCE)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _even_parts(members: Sequence[Country], most: int) -> Iterator[Sequence[Country]]:
    """Cut into the fewest parts of at most `most`, as equal in size as can be."""
    number = -(-len(members) // most)
    for part in range(number):
        yield members[part * len(members) // number : (part + 1) * len(members) // number]


def file_drafts(source: SourceFile, limit: int, count: Callable[[str], int]) -> list[Draft]:
    """A file as documents of at most `limit` tokens, a cluster.

    Rows of counts are documents of their own; everything else is cut so that each document says what it is about.
    """
    return [
        Draft(f"{source.path}#{number}", f"{source.path}, part {number}", text, kind, source.path, source.path)
        for number, (kind, text) in enumerate(_kinds_and_texts(source.sections, limit, count), 1)
    ]


def _kinds_and_texts(
    sections: Sequence[Section], limit: int, count: Callable[[str], int]
) -> Iterator[tuple[DocumentKind, str]]:
    for counted, group in groupby(sections, key=lambda section: bool(section.rows)):
        if not counted:
            yield from (("text", text) for text in cut_sections(tuple(group), limit, count))
            continue
        for section in group:
            yield from (("table", text) for text in pieces("\n".join(section.rows), limit, count))
