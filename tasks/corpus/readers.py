"""The user's files as clean texts and tables. What cannot be read is listed with its reason."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path, PurePosixPath

from tasks.corpus.cleaning import Cleaned, clean
from tasks.corpus.columns import table_rows, typed_columns
from tasks.corpus.formats.base import Block, Extract, Grid, Part
from tasks.corpus.formats.registry import FORMATS, PREFACE, check_content, reader_of
from tasks.corpus.isolation import IsolatedReader
from tasks.corpus.sources import Entry, entries
from tasks.errors import InputError

MAX_BYTES = 256 * 2**20  # of a file
SHOWN_REASONS = 3
EMPTY = "empty"
DUPLICATE = "duplicate of "


@dataclass(frozen=True)
class Section:
    """A stretch of clean text, or a table: one line a row, below its header.

    `rows`: a table's counts in the closed language, where they were asked for. `header`: lines that head a table.
    """

    text: str
    rows: tuple[str, ...] = ()
    header: int = 0


@dataclass(frozen=True)
class SourceFile:
    """A document of the user's: a file, or one record in a file ("list.jsonl:3")."""

    path: str
    sections: tuple[Section, ...]

    @property
    def text(self) -> str:
        """All its text."""
        return "\n\n".join(section.text for section in self.sections)

    @property
    def rows(self) -> tuple[str, ...]:
        """All its rows."""
        return tuple(row for section in self.sections for row in section.rows)


@dataclass(frozen=True)
class SkippedFile:
    """A file or record that was left out, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Remark:
    """What was guessed or left out in a file that was read."""

    path: str
    remark: str


@dataclass
class FolderReading:
    """How a source was read, what was left out, and what cleaning changed (characters)."""

    kept: int = 0  # documents of the user's
    skipped: list[SkippedFile] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    formats: Counter[str] = field(default_factory=Counter)  # files read, by ending
    encodings: Counter[str] = field(default_factory=Counter)
    dialects: Counter[str] = field(default_factory=Counter)
    replaced: int = 0
    removed: int = 0
    breaks: int = 0

    @property
    def reasons(self) -> dict[str, int]:
        """How many were left out, in three kinds."""
        empty = sum(skipped.reason == EMPTY for skipped in self.skipped)
        duplicate = sum(skipped.reason.startswith(DUPLICATE) for skipped in self.skipped)
        return {"empty": empty, "duplicate": duplicate, "unreadable": len(self.skipped) - empty - duplicate}


Keep = Callable[[SourceFile], str | None]


def read_folder(folder: str | Path, keep: Keep, counts: bool = True) -> FolderReading:
    """Read all files of a folder, a glob or an s3:// prefix, one after the other in the order of their names.

    `keep` takes each, or returns the path of one it took before that has the same text. `counts`: tables of integers
    also get rows of the closed language, which has no other columns.

    Raises:
        InputError: the source is missing, unreadable, or holds nothing usable.
        PipelineError: S3 refused or could not be reached, or a library is missing.
    """
    reading = FolderReading()
    with IsolatedReader() as reader:
        for entry in entries(str(folder)):
            try:
                extract = _extract(entry, reader)
                parts = _parts(extract, entry.name, counts)
            except InputError as problem:
                reading.skipped.append(SkippedFile(entry.name, str(problem)))
                continue
            _record(reading, entry.name, extract)
            for part in parts:
                _pass_on(part, reading, keep)
    if not reading.kept:
        raise InputError(f"{folder} holds no readable text ({_reasons(reading)}); add {FORMATS} files")
    return reading


def _reasons(reading: FolderReading) -> str:
    if not reading.skipped:
        return "it is empty"
    shown = [f"{skipped.path}: {skipped.reason}" for skipped in reading.skipped[:SHOWN_REASONS]]
    more = len(reading.skipped) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _extract(entry: Entry, reader: IsolatedReader) -> Extract:
    """Read one file, unless its name, size or first bytes already say no."""
    if entry.refusal:
        raise InputError(entry.refusal)
    reader_of(entry.name)
    if entry.size == 0:
        raise InputError(EMPTY)
    if entry.size > MAX_BYTES:
        raise InputError(f"{entry.size:,} bytes; at most {MAX_BYTES:,} are read: split it")
    with entry.local() as path:
        check_content(entry.name, _start(path))
        return reader.read(path, entry.name)


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(PREFACE)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from error


@dataclass(frozen=True)
class _Draft:
    """A part after cleaning."""

    source: SourceFile
    changes: tuple[Cleaned, ...]
    remarks: tuple[str, ...]


def _parts(extract: Extract, name: str, counts: bool) -> list[_Draft]:
    """Clean all parts before any is passed on: a file is read whole or not at all."""
    return [_part(part, name, counts) for part in extract.parts]


def _part(part: Part, name: str, counts: bool) -> _Draft:
    cleaner = _Cleaner(counts)
    sections = tuple(_joined(cleaner.section(block) for block in part.blocks))
    path = f"{name}:{part.name}" if part.name else name
    return _Draft(SourceFile(path, sections), tuple(cleaner.changes), cleaner.remarks)


@dataclass
class _Cleaner:
    """Blocks become clean sections; what that changed is kept."""

    counts: bool
    changes: list[Cleaned] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)  # of tables

    @property
    def remarks(self) -> tuple[str, ...]:
        """Tables that are read as text, in one line."""
        if not self.problems:
            return ()
        return (f"{len(self.problems)} table(s) read as text, for example: {self.problems[0]}",)

    def section(self, block: Block) -> Section:
        """A table keeps its lines, and its counts if they are wanted."""
        if isinstance(block, str):
            return Section(self._clean(block))
        rows = [[clean(cell).text for cell in line] for line in block.lines]
        return Section(_table_text(self._clean(block.plain), rows), self._rows(block, rows), _header(rows))

    def _clean(self, text: str) -> str:
        cleaned = clean(text)
        self.changes.append(cleaned)
        return cleaned.text

    def _rows(self, table: Grid, rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
        if not (self.counts or table.strict):
            return ()
        try:
            columns = typed_columns(rows, table.grouped)
        except InputError as problem:
            if table.strict:
                raise
            self.problems.append(str(problem))
            return ()
        return tuple(table_rows(columns)) if self.counts else ()


def _table_text(text: str, rows: Sequence[Sequence[str]]) -> str:
    """A line a row: as written, or as csv with spaces in cells where a cell holds a line break."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) == len(rows):
        return "\n".join(lines)
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([" ".join(cell.split()) for cell in row] for row in rows)
    return written.getvalue().strip()


def _header(rows: Sequence[Sequence[str]]) -> int:
    """How many lines head a table: one, two under a caption over merged cells, none without a row below."""
    captioned = len(rows) > 2 and len(rows[0]) > 1 and len(set(rows[0])) == 1
    return 2 if captioned else int(len(rows) > 1)


def _joined(sections: Iterator[Section]) -> Iterator[Section]:
    """Neighbouring texts are one; empty ones none."""
    for table, group in groupby(sections, key=lambda section: section.header > 0):
        if table:
            yield from group
        elif text := "\n\n".join(section.text for section in group if section.text):
            yield Section(text)


def _record(reading: FolderReading, name: str, extract: Extract) -> None:
    reading.formats[PurePosixPath(name).suffix.lower() or PurePosixPath(name).name.lower()] += 1
    if extract.encoding:
        reading.encodings[extract.encoding] += 1
    if extract.dialect:
        reading.dialects[extract.dialect] += 1
    reading.remarks += [Remark(name, remark) for remark in extract.remarks]
    reading.replaced += extract.replaced
    reading.removed += extract.removed
    reading.breaks += extract.breaks


def _pass_on(draft: _Draft, reading: FolderReading, keep: Keep) -> None:
    path = draft.source.path
    original = keep(draft.source) if draft.source.text else None
    if original is not None or not draft.source.text:
        reading.skipped.append(SkippedFile(path, EMPTY if original is None else f"{DUPLICATE}{original}"))
        return
    reading.kept += 1
    reading.remarks += [Remark(path, remark) for remark in draft.remarks]
    reading.replaced += sum(change.replaced for change in draft.changes)
    reading.removed += sum(change.removed for change in draft.changes)
    reading.breaks += sum(change.breaks for change in draft.changes)
