"""Cells as text become typed columns, and counts become rows of a report. No digit is lost on the way."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from tasks.corpus.grammar import row
from tasks.errors import InputError

Cell = str | int | Decimal | None
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,36})")  # longer digit strings are codes; 128 bits hold these
_GROUPED = re.compile(r"-?[1-9]\d{0,2}(,\d{3}){1,11}")
_DECIMAL = re.compile(r"-?(0|[1-9]\d*)\.\d+")
_MEASURE = re.compile(r"[a-z][a-z ]*")


@dataclass(frozen=True)
class Column:
    """A typed column: integers and decimals are exact, an empty cell is None, all else is text as written."""

    name: str
    kind: Literal["text", "integer", "decimal"]
    values: tuple[Cell, ...]


def typed_columns(lines: Sequence[Sequence[str]], grouped: bool) -> list[Column]:
    """Give each column a type only if no digit is lost. The first line is the header.

    "1,234" is an integer where `grouped` says so; "00501" and "NA" stay text.

    Raises:
        InputError: no header, an empty or repeated column name, or a row with too many or too few cells.
    """
    header = [name.strip() for name in lines[0]] if lines else []
    if not all(header) or len(set(header)) < max(1, len(header)):
        raise InputError(f"its header {header} needs distinct, non-empty column names")
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(header):
            raise InputError(f"row {number} has {len(line)} cells, its header {len(header)}")
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
