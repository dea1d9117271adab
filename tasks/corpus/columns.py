"""Cells as text become typed columns, and counts become rows of a report. No digit is lost on the way."""

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from tasks.corpus.grammar import row
from tasks.corpus.styles import MOST_DIGITS, NumberStyle, Style, style_of
from tasks.errors import InputError

Cell = str | int | Decimal | dt.date | None
Kind = Literal["text", "integer", "decimal", "date", "month"]
_MEASURE = re.compile(r"[a-z][a-z ]*")
_HEADER_UNIT = re.compile(r"\((?P<round>[^()]+)\)\s*$|\[(?P<square>[^\[\]]+)\]\s*$|\s(?P<sign>[%€$£¥])\s*$")


@dataclass(frozen=True)
class Column:
    """A typed column. Numbers are exact, an empty cell is None, months are "2023-05", all else is text as written.

    `unit` is what all its cells or else its heading say; `remark` says why it stayed text although it may be more.
    """

    name: str
    kind: Kind
    values: tuple[Cell, ...]
    unit: str = ""
    remark: str = ""


def typed_columns(lines: Sequence[Sequence[str]], grouped: bool) -> list[Column]:
    """Give each column a type only if no digit is lost. The first line is the header.

    `grouped`: where the column itself does not decide, "1,234" is a thousand and "1.234" a fraction; otherwise such
    a column stays text. "00501" and "NA" always do.

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
    return [typed_column(name, values, grouped) for name, values in zip(header, cells, strict=True)]


def typed_column(name: str, cells: Sequence[str], grouped: bool) -> Column:
    """One column of its own; blank cells are None."""
    texts = [cell.strip() or None for cell in cells]
    verdict = style_of([text for text in texts if text is not None], grouped)
    if verdict.style is None:
        return Column(name, "text", tuple(texts), remark=verdict.remark)
    return read_column(name, texts, verdict.style)


def read_column(name: str, texts: Sequence[str | None], style: Style) -> Column:
    """A column in a known style; what the style does not read is None."""
    values = [None if text is None else style.read(text) for text in texts]
    unit = style.unit if isinstance(style, NumberStyle) else ""
    kinds = {type(value) for value in values if value is not None}
    if Decimal in kinds:
        decimals = tuple(Decimal(value) if isinstance(value, int) else value for value in values)
        if decimal_places(decimals) + whole_digits(decimals) > MOST_DIGITS:
            return Column(name, "text", tuple(texts), remark=f"its numbers need more than {MOST_DIGITS} digits")
        return Column(name, "decimal", decimals, unit or header_unit(name))
    if int in kinds:
        return Column(name, "integer", tuple(values), unit or header_unit(name))
    return Column(name, "month" if str in kinds else "date", tuple(values))


def decimal_places(values: Iterable[Cell]) -> int:
    """The most digits after the point that a value has."""
    return max((-int(value.as_tuple().exponent) for value in values if isinstance(value, Decimal)), default=0)


def whole_digits(values: Iterable[Cell]) -> int:
    """The most digits before the point that a value has."""
    return max((value.adjusted() + 1 for value in values if isinstance(value, Decimal)), default=0)


def header_unit(name: str) -> str:
    """The unit that ends a heading: "Area (sq km)", "Sales [EUR]", "Share %"."""
    match = _HEADER_UNIT.search(name)
    return next((part.strip() for part in match.groups() if part), "") if match else ""


def table_rows(columns: list[Column]) -> list[str]:
    """Render the integer columns of a table as report rows, named by the first text column, else the first.

    Left out: columns with a unit, missing cells, negative numbers, and names or headings that a row cannot hold.
    Without any row the file is read as plain text.
    """
    naming = next((column for column in columns if column.kind == "text"), columns[0])
    measures = [one for one in columns if one.kind == "integer" and not one.unit and one is not naming]
    rendered = []
    for column in measures:
        measure = " ".join(column.name.lower().replace("_", " ").split())
        if not _MEASURE.fullmatch(measure):
            continue
        for name, value in zip(naming.values, column.values, strict=True):
            if name is not None and isinstance(value, int) and value >= 0 and not set(str(name)) & set("|\n"):
                rendered.append(row(str(name), measure, value))
    return rendered
