"""The official files of a benchmark as rows: JSON, JSON lines, parquet, CSV and TSV, with errors that name the place.

A row is read field by field, each with the type it must have, so that a file of another release is refused where it
differs and not scored wrongly.
"""

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.artifacts import stream_rows
from tasks.errors import InputError

HOW_TO_GET = "docs/benchmarks.md says how to get it"
LONGEST_FIELD = 2**31 - 1  # of a CSV; Python's own limit of 128 K characters is shorter than a context

Fields = Mapping[str, object]


@dataclass(frozen=True)
class Row:
    """One record of an official file. `place` is its file and number, for errors."""

    fields: Fields
    place: str

    def __contains__(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.fields.get(name) is not None

    def value(self, name: str) -> object:
        """Any value of a field.

        Raises:
            InputError: the field is missing or null.
        """
        if name not in self:
            raise self.error(f"has no {name!r}, only {', '.join(map(repr, self.fields))}")
        return self.fields[name]

    def text(self, name: str) -> str:
        """A field that is a string; errors as in `value`."""
        value = self.value(name)
        if not isinstance(value, str):
            raise self.error(f"has {name!r} = {_short(value)}, which is no string")
        return value

    def number(self, name: str) -> float:
        """A field that is a finite number, or spells one (as in CSV); errors as in `value`."""
        value = self.value(name)
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            with suppress(ValueError, OverflowError):
                if math.isfinite(number := float(value)):
                    return number
        raise self.error(f"has {name!r} = {_short(value)}, which is no number")

    def texts(self, name: str) -> tuple[str, ...]:
        """A field that is a list of strings; errors as in `value`."""
        value = self.value(name)
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise self.error(f"has {name!r} = {_short(value)}, which is no list of strings")
        return tuple(value)

    def rows(self, name: str) -> "list[Row]":
        """A field that is a list of objects; errors as in `value`."""
        value = self.value(name)
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise self.error(f"has {name!r} = {_short(value)}, which is no list of objects")
        return [Row(entry, f"{self.place}, {name}[{index}]") for index, entry in enumerate(value)]

    def error(self, what: str) -> InputError:
        """An error about this row, which names its place and the remedy."""
        return InputError(f"{self.place} {what}; is it another release? {HOW_TO_GET}")


def rows(folder: Path, pattern: str) -> Iterator[Row]:
    """The rows of all files in `folder` that match a glob pattern, by file name, then in order.

    Blank lines are skipped. A .json file is one list of objects, or, as some releases have it, an object a line.

    Raises:
        InputError: no file matches, one is of another kind, is damaged, or holds what is no object.
    """
    for path in files(folder, pattern):
        read = _READERS.get(path.suffix)
        if read is None:
            raise InputError(f"{path} is of an unknown kind; known: {', '.join(_READERS)}. {HOW_TO_GET}")
        number = 0
        try:
            for number, fields in enumerate(read(path), 1):
                if not isinstance(fields, dict):
                    raise InputError(f"{path}, row {number} is {_short(fields)} and no object; {HOW_TO_GET}")
                yield Row(fields, f"{path}, row {number}")
        except (ValueError, OSError, csv.Error) as error:  # json's, unicode's and Arrow's errors are ValueErrors
            raise InputError(f"{path} is damaged after row {number} ({error}); copy it again") from error


def files(folder: Path, pattern: str) -> list[Path]:
    """Files that match a glob pattern, by name.

    Raises:
        InputError: there is none.
    """
    found = sorted(path for path in folder.glob(pattern) if path.is_file())
    if not found:
        raise InputError(f"{folder} holds no {pattern}; {HOW_TO_GET}")
    return found


def _json(path: Path) -> Iterator[object]:
    with path.open(encoding="utf-8") as file:
        first = file.read(1)
        while first.isspace():
            first = file.read(1)
        file.seek(0)
        if first == "[":
            yield from json.load(file)
        else:
            yield from _lines(path)


def _lines(path: Path) -> Iterator[object]:
    with path.open(encoding="utf-8") as file:  # not splitlines: U+2028 may stand in a string
        yield from (json.loads(line) for line in file if line.strip())


def _parquet(path: Path) -> Iterator[object]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        yield from stream_rows(file)


def _separated(separator: str) -> Callable[[Path], Iterator[object]]:
    def read(path: Path) -> Iterator[object]:
        csv.field_size_limit(LONGEST_FIELD)
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from csv.DictReader(file, delimiter=separator, strict=True)

    return read


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


_READERS: Mapping[str, Callable[[Path], Iterator[object]]] = {
    ".json": _json,
    ".jsonl": _lines,
    ".parquet": _parquet,
    ".csv": _separated(","),
    ".tsv": _separated("\t"),
}
