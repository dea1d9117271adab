"""A folder of txt, md and csv files as clean texts and tables. What cannot be read is listed."""

import csv
import hashlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Literal

from tasks.corpus.cleaning import clean
from tasks.corpus.grammar import row
from tasks.errors import InputError

SUFFIXES = (".txt", ".md", ".csv")
DELIMITERS = ",;\t"
SHOWN_REASONS = 3

Cell = str | int | Decimal | None
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,36})")  # longer digit strings are codes; 128 bits hold these
_GROUPED = re.compile(r"-?[1-9]\d{0,2}(,\d{3}){1,11}")
_DECIMAL = re.compile(r"-?(0|[1-9]\d*)\.\d+")
_MEASURE = re.compile(r"[a-z][a-z ]*")


@dataclass(frozen=True)
class SourceFile:
    """A readable file: its path in the folder, its clean text, and its rows if it is a table of numbers."""

    path: str
    text: str
    rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class SkippedFile:
    """A file that was left out, and why."""

    path: str
    reason: str


@dataclass
class FolderReading:
    """What a folder holds, and what cleaning changed (characters)."""

    files: list[SourceFile] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)
    replaced: int = 0
    removed: int = 0


@dataclass(frozen=True)
class Column:
    """A typed column: integers and decimals are exact, an empty cell is None, all else is text as written."""

    name: str
    kind: Literal["text", "integer", "decimal"]
    values: tuple[Cell, ...]


def read_folder(folder: Path) -> FolderReading:
    """Read all txt, md and csv files below `folder`, in the order of their paths.

    Skipped with a reason: other formats, unreadable or non-UTF-8 files, broken tables, empty and repeated
    files.

    Raises:
        InputError: the folder is missing, unreadable, or holds nothing usable.
    """
    reading = FolderReading()
    seen: dict[str, str] = {}
    for path in _paths(folder):
        name = path.relative_to(folder).as_posix()
        try:
            source = _read(path, name, reading)
            digest = hashlib.sha256(source.text.encode()).hexdigest()
            if digest in seen:
                raise InputError(f"duplicate of {seen[digest]}")
        except InputError as problem:
            reading.skipped.append(SkippedFile(name, str(problem)))
            continue
        seen[digest] = name
        reading.files.append(source)
    if not reading.files:
        raise InputError(f"{folder} holds no readable text ({_reasons(reading)}); add UTF-8 txt, md or csv files")
    return reading


def _paths(folder: Path) -> Iterator[Path]:
    try:
        list(folder.iterdir())
    except FileNotFoundError as error:
        raise InputError(f"corpus.folder = {folder} does not exist; name a folder of txt, md or csv files") from error
    except OSError as error:
        raise InputError(f"corpus.folder = {folder} cannot be read ({error.strerror}); check it") from error
    yield from sorted(path for path in folder.rglob("*") if path.is_file())


def _reasons(reading: FolderReading) -> str:
    if not reading.skipped:
        return "it is empty"
    shown = [f"{skipped.path}: {skipped.reason}" for skipped in reading.skipped[:SHOWN_REASONS]]
    more = len(reading.skipped) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _read(path: Path, name: str, reading: FolderReading) -> SourceFile:
    if path.suffix.lower() not in SUFFIXES:
        raise InputError("not a txt, md or csv file")
    try:
        cleaned = clean(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 (byte {error.start})") from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from error
    if not cleaned.text:
        raise InputError("empty")
    reading.replaced += cleaned.replaced
    reading.removed += cleaned.removed
    rows = table_rows(read_table(cleaned.text)) if path.suffix.lower() == ".csv" else []
    return SourceFile(name, cleaned.text, tuple(rows))


def read_table(text: str) -> list[Column]:
    """Read a csv text: all cells as text first, then each column gets a type only if no digit is lost.

    "1,234" is an integer where the comma does not separate cells; "00501" and "NA" stay text.

    Raises:
        InputError: no header, an empty or repeated column name, or a row with too many or too few cells.
    """
    delimiter = max(DELIMITERS, key=text.partition("\n")[0].count)
    try:
        lines = [line for line in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if line]
    except csv.Error as error:
        raise InputError(f"not a csv table: {error}") from error
    header = [name.strip() for name in lines[0]] if lines else []
    if not all(header) or len(set(header)) < max(1, len(header)):
        raise InputError(f"its header {header} needs distinct, non-empty column names")
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(header):
            raise InputError(f"row {number} has {len(line)} cells, its header {len(header)}")
    grouped = delimiter != ";"  # where semicolons separate, "1,234" may mean a decimal comma
    cells = zip(*lines[1:], strict=True) if len(lines) > 1 else [()] * len(header)
    return [_typed(name, values, grouped) for name, values in zip(header, cells, strict=True)]


def _typed(name: str, cells: tuple[str, ...], grouped: bool) -> Column:
    texts = [cell.strip() or None for cell in cells]
    present = [text for text in texts if text is not None]
    if present and all(_INTEGER.fullmatch(text) or (grouped and _GROUPED.fullmatch(text)) for text in present):
        return Column(name, "integer", tuple(None if text is None else int(text.replace(",", "")) for text in texts))
    if present and all(_DECIMAL.fullmatch(text) or _INTEGER.fullmatch(text) for text in present):
        return Column(name, "decimal", tuple(None if text is None else Decimal(text) for text in texts))
    return Column(name, "text", tuple(texts))


def table_rows(columns: list[Column]) -> list[str]:
    """Render the integer columns of a table as report rows, named by the first text column, else the first.

    Left out: missing cells, negative numbers, and names or column headings that a row cannot hold. Without
    any row the file is read as plain text.
    """
    naming = next((column for column in columns if column.kind == "text"), columns[0])
    measures = [column for column in columns if column.kind == "integer" and column is not naming]
    rendered = []
    for column in measures:
        measure = " ".join(column.name.lower().replace("_", " ").split())
        if not _MEASURE.fullmatch(measure):
            continue
        for name, value in zip(naming.values, column.values, strict=True):
            if name is not None and isinstance(value, int) and value >= 0 and not set(str(name)) & set("|\n"):
                rendered.append(row(str(name), measure, value))
    return rendered
