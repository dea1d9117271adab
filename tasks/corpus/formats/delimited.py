"""csv and tsv: the dialect is detected, all cells stay text."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tasks.corpus.columns import Column, typed_columns
from tasks.corpus.formats.base import Extract, Grid, Part
from tasks.corpus.formats.decoding import decode_file
from tasks.errors import InputError

DELIMITERS = ",;\t|"
SAMPLE_LINES = 200
LONGEST_CELL = 2**24  # characters; Python's own limit is 131,072
_DECLARED = re.compile(r"sep=([^\w\s]|\t)\n")  # Excel's first line
NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


@dataclass(frozen=True)
class Dialect:
    """How cells are separated and quoted. `escape`: a backslash protects a quote, else a second quote does."""

    delimiter: str
    quote: str = '"'
    escape: bool = False

    def __str__(self) -> str:
        return " ".join(
            [
                NAMES.get(self.delimiter, self.delimiter),
                *(["single quotes"] if self.quote == "'" else []),
                *(["backslashes"] if self.escape else []),
            ]
        )

    def lines(self, text: str) -> Iterator[list[str]]:
        """The cells of each line.

        Raises:
            csv.Error: while reading, where the text is not in this dialect.
        """
        csv.field_size_limit(LONGEST_CELL)
        return csv.reader(
            io.StringIO(text, newline=""),
            delimiter=self.delimiter,
            quotechar=self.quote,
            doublequote=not self.escape,
            escapechar="\\" if self.escape else None,
            strict=True,
        )


def read_delimited(path: Path) -> Extract:
    """One part that is a table.

    Raises:
        InputError: no dialect fits.
    """
    decoded = decode_file(path)
    text, dialect = _detect(decoded.text)
    return Extract(
        (Part((_grid(text, dialect),)),),
        encoding=decoded.encoding,
        dialect=str(dialect),
        remarks=decoded.remarks,
        replaced=decoded.replaced,
        removed=decoded.removed,
        breaks=decoded.breaks,
    )


def read_table(text: str) -> list[Column]:
    """Read a csv text as typed columns.

    Raises:
        InputError: no dialect fits, the header is not one, or a row has too many or too few cells.
    """
    table = _grid(*_detect(text))
    return typed_columns(table.lines, table.grouped)


def _grid(text: str, dialect: Dialect) -> Grid:
    try:
        lines = tuple(tuple(line) for line in dialect.lines(text) if line)
    except csv.Error as error:
        raise InputError(f"not a csv table: {error}") from error
    # where semicolons separate, "1,234" may mean a decimal comma
    return Grid(lines, text, grouped=dialect.delimiter != ";", strict=True)


def _detect(text: str) -> tuple[str, Dialect]:
    """The text without a line that only declares the delimiter, and the dialect in which its lines agree best."""
    declared = _DECLARED.match(text)
    body = text[declared.end() :] if declared else text
    delimiters = declared[1] if declared else DELIMITERS
    dialects = [Dialect(delimiter, quote, escape) for quote, escape in _quotes(body) for delimiter in delimiters]
    return body, max(dialects, key=lambda dialect: _agreement(body, dialect))


def _quotes(text: str) -> list[tuple[str, bool]]:
    quotes = [('"', False)]
    if '\\"' in text:
        quotes.append(('"', True))
    if re.match(r"'[^'\n]*'[^\w\s']", text):
        quotes.append(("'", False))
    return quotes


def _agreement(text: str, dialect: Dialect) -> tuple[bool, bool, int]:
    """Whether the first lines can be read and have one width, above one; and how wide the header is."""
    lines: list[list[str]] = []
    whole = True
    try:
        lines.extend(line for line in islice(dialect.lines(text), SAMPLE_LINES) if line)
    except csv.Error:
        whole = False
    widths = {len(line) for line in lines}
    return whole and len(widths) == 1 and widths != {1}, whole, len(lines[0]) if lines else 0
