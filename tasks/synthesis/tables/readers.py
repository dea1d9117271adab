"""Who reads cells from documents: the closed grammar's report rows, the layout of a text, or a model (schema.py)."""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tasks.corpus.grammar import rows
from tasks.corpus.names import key, mentions, words
from tasks.corpus.styles import DATES
from tasks.records import Document
from tasks.synthesis.tables.layouts import LEAST_LINES, Field, Span, fields

DATED_LINES = 40  # at the beginning of a document, among which its date may stand
STEP = " > "  # between the keys of a path, as nested records are written out
NAME_SHARE = 0.8  # of the files in which a field that names them must stand, each with a name of its own
LONGEST_FILE_NAME = 60  # characters of a name of what a file is about
_CELL_LINE = re.compile(r"^[^\n]*?(?:[|\t;]|,(?=\S)|: \S| {2}\S)", re.MULTILINE)  # what may part cells
_NAMING = re.compile(r"\b(?:name|title|short form)\b", re.IGNORECASE)
_DATED = re.compile(r"(?:date|dated|as of|published|updated)\s*:\s*(.+)", re.IGNORECASE)
_IN_HEADING = re.compile(r"(?<!\d)((?:19|20)\d\d)(?:-(0[1-9]|1[0-2])(?:-(0[1-9]|[12]\d|3[01]))?)?(?!\d)")


@dataclass(frozen=True)
class Stated:
    """One cell that a document states; `text` None says that it has no value. `date`: ISO, of the document, or "".

    `span` is its line in the document, where the layout says so.
    """

    entity: str
    column: str
    text: str | None
    document_id: str
    date: str = ""
    span: Span = dataclasses.field(default=(0, 0), compare=False)


class Reader(Protocol):
    """Reads cells from documents; what it has to leave out is counted by reason."""

    def suits(self, document: Document) -> bool:
        """Whether a document is worth reading (CorpusQA §3.2 keeps table-rich documents). Cheap."""
        ...

    def read(self, documents: Sequence[Document], rejections: Counter[str]) -> list[Stated]:
        """All cells of these documents."""
        ...


class ReportReader:
    """The rows of reports and tables in the tiny profile's closed language."""

    def suits(self, document: Document) -> bool:
        return document.kind in ("report", "table")

    def read(self, documents: Sequence[Document], rejections: Counter[str]) -> list[Stated]:
        del rejections  # a row is a row
        return [
            Stated(country, measure, str(count), document.id)
            for document in documents
            if self.suits(document)
            for country, measure, count in rows(document.text)
        ]


class LayoutReader:
    """Tables and "key: value" lines as they stand in the text.

    Lines about a whole file are about what it names: by the first step of all its paths, or else its heading, its first
    line, or a field called name or title.
    Nearly all files must have such a name of their own, and the one said most often is taken. A document must mention
    that name, or its reader could not know whose values they are.
    """

    def suits(self, document: Document) -> bool:
        return document.kind != "dialogue" and len(_CELL_LINE.findall(document.text)) >= LEAST_LINES

    def read(self, documents: Sequence[Document], rejections: Counter[str]) -> list[Stated]:
        read = {document: _all_fields(document) for document in documents}
        names = _led_by(read)
        if names:
            read = {document: _after_name(found, names.get(document.source)) for document, found in read.items()}
        else:
            names = _file_names(read)
        stated = []
        for document, found in read.items():
            date = date_of(document)
            for one in found:
                entity = one.entity or names.get(document.source, "")
                if mentions(document.text, entity):
                    stated.append(Stated(entity, one.column, one.text, document.id, date, one.span))
                else:
                    rejections["the document of a cell does not name what it is about"] += 1
        return stated


class Readers:
    """Several readers: a file in which one finds no cell is left to the next."""

    def __init__(self, readers: Sequence[Reader]) -> None:
        """The cheapest first."""
        self._readers = readers

    def suits(self, document: Document) -> bool:
        return any(reader.suits(document) for reader in self._readers)

    def read(self, documents: Sequence[Document], rejections: Counter[str]) -> list[Stated]:
        stated: list[Stated] = []
        left = list(documents)
        for reader in self._readers:
            stated += reader.read([document for document in left if reader.suits(document)], rejections)
            read = {cell.document_id for cell in stated}
            done = {document.source for document in left if document.id in read}
            left = [document for document in left if document.source not in done]
        return stated


def _all_fields(document: Document) -> list[Field]:
    counts = [Field(country, measure, str(count)) for country, measure, count in rows(document.text)]
    return counts or fields(document.text)


def _led_by(read: Mapping[Document, Sequence[Field]]) -> dict[str, str]:
    """Source → the first step of all its paths ("Brazil > Economy > Exports"), if nearly every file has its own."""
    steps: dict[str, set[str]] = {}
    for document, found in read.items():
        for field in found:
            if not field.entity:
                first, inner, _ = field.column.partition(STEP)
                steps.setdefault(document.source, set()).add(first if inner else "")
    own = _unshared({source: first for source, (first, *others) in steps.items() if first and not others})
    return own if len(own) > 1 and len(own) >= NAME_SHARE * len(steps) else {}


def _after_name(found: Sequence[Field], name: str | None) -> list[Field]:
    """The fields of a file under the paths that other files have as well."""
    return [
        replace(field, column=field.column.partition(STEP)[2]) if name and not field.entity else field
        for field in found
    ]


def _file_names(read: Mapping[Document, Sequence[Field]]) -> dict[str, str]:
    """Source → what its lines are about; {} if nothing names the files."""
    values: dict[str, dict[str, str]] = {}
    sources = set()
    for document, found in read.items():
        about = [field for field in found if not field.entity]
        sources |= {document.source} if about else set()
        for column, name in _naming(document, about):
            values.setdefault(column, {}).setdefault(document.source, name)
    naming = [own for named in values.values() if len(own := _unshared(named)) >= NAME_SHARE * len(sources)]
    return max(naming, key=lambda own: _occurrences(own, read), default={})


def _occurrences(names: Mapping[str, str], documents: Iterable[Document]) -> int:
    """How often the documents say the names of their files: a country's more often than its capital's."""
    named = ((document.text, names.get(document.source)) for document in documents)
    return sum(words(text).count(words(name)) for text, name in named if name)


def _naming(document: Document, about: Sequence[Field]) -> Iterator[tuple[str, str]]:
    """What may name a file, by the field it stands in."""
    heading = _heading(document)
    if about and heading[:1].isalpha():
        yield "", heading
    for number, field in enumerate(about):
        named = number == 0 or _NAMING.search(field.column)
        if named and field.text and field.text[0].isalpha() and len(field.text) <= LONGEST_FILE_NAME:
            yield field.column, field.text


def _unshared(named: Mapping[str, str]) -> dict[str, str]:
    """The names that only one source has."""
    holders = Counter(map(key, named.values()))
    return {source: name for source, name in named.items() if holders[key(name)] == 1}


def _heading(document: Document) -> str:
    """The first line, if it is one."""
    line = document.text.partition("\n")[0].strip("# ")
    return "" if len(line) > LONGEST_FILE_NAME or ": " in line or line.endswith(".") else line


def date_of(document: Document) -> str:
    """The day, month or year that a document gives as its own, in a line such as "Date: 2023-05-01" or its heading."""
    for line in document.text.split("\n", DATED_LINES)[:DATED_LINES]:
        match = _DATED.fullmatch(line.strip())
        days = {str(day) for style in DATES if match and (day := style.read(match[1])) is not None}
        if len(days) == 1:
            return days.pop()
    found = {"-".join(filter(None, match.groups())) for match in _IN_HEADING.finditer(_heading(document))}
    return found.pop() if len(found) == 1 else ""
