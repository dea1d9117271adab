"""Facts that the layout of a text states, read without a model: fields of records and cells of tables as triples.

Only what is clear without reading is a fact: a field that several things have, whose value is a name, a number or a
date. A list whose parts each have a measure ("Spain 46.1%, Poland 22.4%") says which part has which: "partners, 46.1%"
is Spain. Other lists and clauses say nothing here.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from tasks.corpus.names import key, words
from tasks.corpus.styles import spelling
from tasks.records import Document
from tasks.synthesis.extraction import MAX_NAME_CHARACTERS, is_name
from tasks.synthesis.quantities import read_quantity
from tasks.synthesis.tables.layouts import SUMMARIES
from tasks.synthesis.tables.readers import LayoutReader, Stated
from tasks.synthesis.triples import Triple

BLOCK = 1000  # documents whose fields are compared with one another
LEAST_ENTITIES = 2  # that have a field: one that a single text has may be a sentence with a colon
RECORD_SHARE = 0.8  # of a text's signs, in lines that became facts: the rest is not worth asking a model about
NO_PARTS = SUMMARIES | {"other", "others", "none", "unknown", "unspecified"}
_LISTED = re.compile(r"[,;]\s")
_MEASURED = re.compile(r"(?P<name>[^\W\d_][^\d,;()]*?)(?:\s*\([^()]*\))?\s+(?P<measure>\d[\d.,]*\s?\D+)")


@dataclass
class RecordReader:
    """Keeps the facts of the documents that pass, and lets those go on that are more than records."""

    triples: list[Triple] = field(default_factory=list)
    rejections: Counter[str] = field(default_factory=Counter)

    def left(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The documents that layout alone does not read, in their order, drawn a block at a time."""
        waiting = iter(documents)
        while block := list(islice(waiting, BLOCK)):
            reader = LayoutReader()
            facts = _facts(reader.read([one for one in block if reader.suits(one)], self.rejections))
            self.triples += facts
            read = _signs_read(facts)
            yield from (one for one in block if read[one.id] < RECORD_SHARE * len(one.text.strip()))


def _facts(stated: Sequence[Stated]) -> list[Triple]:
    """Each fact of each document once."""
    having: dict[str, set[str]] = {}
    for cell in stated:
        having.setdefault(key(cell.column), set()).add(key(cell.entity))
    cells = Counter((cell.document_id, key(cell.entity), key(cell.column)) for cell in stated)
    lists = {key(cell.column) for cell in stated if len(measured(cell.text or "")) > 1}
    named = (
        cell
        for cell in stated
        if cells[cell.document_id, key(cell.entity), key(cell.column)] == 1  # else a row is named by more than one cell
        and len(having[key(cell.column)]) >= LEAST_ENTITIES
        and _is_about_a_thing(cell)
    )
    facts = (
        Triple(relation, cell.entity, value, False, cell.document_id, *cell.span)
        for cell in named
        for relation, value in _said(cell, in_parts=key(cell.column) in lists)
        if is_name(value) and key(value) != key(cell.entity)
    )
    return list(dict.fromkeys(facts))


def _is_about_a_thing(cell: Stated) -> bool:
    """Whether it has words for a relation, and something to relate: a row called 2021 is about nothing by itself."""
    relation = words(cell.column).strip() and len(cell.column) <= MAX_NAME_CHARACTERS
    return bool(relation) and is_name(cell.entity) and read_quantity(cell.entity) is None


def _said(cell: Stated, *, in_parts: bool) -> Iterator[tuple[str, str]]:
    """Relations and values. Where one document lists parts, one part alone is still a part: others may have it, too."""
    text = cell.text or ""
    parts = measured(text)
    if in_parts:
        yield from ((f"{cell.column}, {measure}", name) for name, measure in parts if key(name) not in NO_PARTS)
    elif parts:
        yield cell.column, parts[0][0]
    elif not _LISTED.search(text):
        yield cell.column, text.strip("\"'")


def measured(text: str) -> list[tuple[str, str]]:
    """Names and measures of a list of which every part has both; [] for anything else."""
    parts = [_MEASURED.fullmatch(part) for part in _LISTED.split(text)]
    found = [(part["name"], part["measure"]) for part in parts if part and _is_measure(part["measure"])]
    return found if len(found) == len(parts) else []


def _is_measure(text: str) -> bool:
    """A number with a unit that is known."""
    parts = spelling(text)
    return parts is not None and bool(parts.unit) and not parts.open_unit


def _signs_read(facts: Sequence[Triple]) -> Counter[str]:
    """How much of each document stands in lines that became facts."""
    read = Counter[str]()
    for document, start, end in {(fact.document_id, fact.start, fact.end) for fact in facts}:
        read[document] += end - start
    return read
