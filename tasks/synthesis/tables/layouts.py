"""Tables and "key: value" lines found in a plain text. No model: what is no clear table is none.

Tables are runs of lines that one separator cuts into equally many cells: bars (also Markdown), tabs, commas or
semicolons (csv), or at least two spaces. Their first line must be a header.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from tasks.corpus.columns import typed_column
from tasks.corpus.names import key

LEAST_LINES = 3  # of a table: a header and two rows
LEAST_FIELDS = 3  # "key: value" lines that make a record of a text
LONGEST_NAME = 80  # characters of a heading or of what a row is about
LONGEST_VALUE = 200  # characters; longer ones are prose
SUMMARIES = frozenset("total totals sum subtotal average mean median overall all".split()) | {
    "grand total",
    "sub total",
}
_FIELD = re.compile(r"(?P<key>[^\W\d_][^:\n|]{0,150}?)\s*: +(?P<value>\S.*)")
_NOTE = re.compile(r"(?P<value>.*\S)\s+\((?P<note>[^()]*)\)")
_YEAR = re.compile(r"(1[5-9]|20|21)\d\d")
_GENERIC = ("text", "value")  # names of leaves that say nothing

Span = tuple[int, int]


@dataclass(frozen=True)
class Field:
    """One cell: what it is about ("" where that is the whole text), its column, and its text; None is an empty cell.

    `span` is the line where it stands, as the places of its first sign and of the one after its last.
    """

    entity: str
    column: str
    text: str | None
    span: Span = field(default=(0, 0), compare=False)


def fields(text: str) -> list[Field]:
    """All cells of all tables in a text, then its "key: value" lines."""
    lines = text.split("\n")
    ends = accumulate(len(line) + 1 for line in lines)
    spans = [(end - len(line) - 1, end - 1) for line, end in zip(lines, ends, strict=True)]
    found: list[Field] = []
    left: list[tuple[str, Span]] = []
    start = 0
    while start < len(lines):
        block = _block(lines, start)
        step = len(block) or 1
        cells = _table_fields(block, spans[start : start + step]) if block else []
        found += cells
        left += [] if cells else zip(lines[start : start + step], spans[start : start + step], strict=True)
        start += step
    return found + _line_fields(left)


def _block(lines: Sequence[str], start: int) -> list[list[str]]:
    """The longest table that begins at a line, as cells, or []. A rule between header and rows keeps its place."""
    return max((_run(lines, start, separator) for separator in "|\t,; "), key=len)


def _run(lines: Sequence[str], start: int, separator: str) -> list[list[str]]:
    rows: list[list[str]] = []
    for line in lines[start:]:
        if rows and _is_rule(line):
            rows.append([])
            continue
        cells = _cells(line, separator)
        if len(cells) < 2 or (rows and len(cells) != len(rows[0])):
            break
        rows.append(cells)
    while rows and not rows[-1]:
        rows.pop()
    return rows if sum(map(bool, rows)) >= LEAST_LINES else []


def _is_rule(line: str) -> bool:
    """Whether a line of signs only parts a header from its rows."""
    return not line.strip(" \t|:+=-") and ("--" in line or ("-" in line and "|" in line))


def _cells(line: str, separator: str) -> list[str]:
    """The cells of one line; a separator that does not occur in it makes one cell."""
    if separator == " ":
        return [cell.strip() for cell in re.split(r"\s{2,}", line.strip())]
    if separator == "|" and re.fullmatch(r"\s*\|.*\|\s*", line):
        line = line.strip()[1:-1]
    if separator in ",;\t":
        try:
            return [cell.strip() for cell in next(csv.reader([line], delimiter=separator, strict=True), [])]
        except csv.Error:
            return []
    return [cell.strip() for cell in line.split(separator)]


def _table_fields(block: Sequence[Sequence[str]], spans: Sequence[Span]) -> list[Field]:
    """The cells of a table by row name and column; [] without a clear header, or without a column of numbers or dates.

    A row is named by its first text column, or by the first two where names repeat. Rows of totals are left out.
    """
    rows, places = zip(*((row, span) for row, span in zip(block, spans, strict=True) if row), strict=True)
    if len(set(rows[0])) == 1:  # a caption over merged cells
        rows, places = rows[1:], places[1:]
    if len(rows) < LEAST_LINES:
        return []
    header, body = unique_names(rows[0]), rows[1:]
    columns = [
        typed_column(name, cells, grouped=True) for name, cells in zip(header, zip(*body, strict=True), strict=True)
    ]
    texts = [index for index, column in enumerate(columns) if column.kind == "text" and any(column.values)]
    if len(texts) == len(columns) or not _is_header(rows[0], [column.kind != "text" for column in columns], block):
        return []
    naming = texts[:1] or [0]
    if len({row[naming[0]] for row in body}) < len(body):
        naming = texts[:2]
    return [
        Field(name, header[index], cell or None, span)
        for row, span in zip(body, places[1:], strict=True)
        if all(row[index] for index in naming) and _is_name(name := " ".join(row[index] for index in naming))
        for index, cell in enumerate(row)
        if index not in naming and header[index]
    ]


def _is_header(first: Sequence[str], typed: Sequence[bool], block: Sequence[Sequence[str]]) -> bool:
    """Ruled off, or of words where the rows have values; years in ascending order are headings too."""
    if len(block) > 1 and not block[1]:
        return True
    over_values = [cell for cell, value in zip(first, typed, strict=True) if value]
    years = [cell for cell in over_values if _YEAR.fullmatch(cell)]
    wordy = all(cell in years or typed_column("", [cell], grouped=True).kind == "text" for cell in over_values)
    return wordy and years in (sorted(set(years)), sorted(set(years), reverse=True)) and all(over_values)


def _is_name(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and key(name).strip(" :") not in SUMMARIES


def unique_names(names: Sequence[str]) -> list[str]:
    """Say the second "Sales" as "Sales (2)"; empty names stay empty, and too long ones become it."""
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        shown = " ".join(name.split()) if len(name) <= LONGEST_NAME else ""
        seen[key(shown)] = number = seen.get(key(shown), 0) + 1
        unique.append(f"{shown} ({number})" if shown and number > 1 else shown)
    return unique


def _line_fields(lines: Sequence[tuple[str, Span]]) -> list[Field]:
    """The "key: value" lines of a text that is a record, without notes such as "(2014 est.)" behind the values."""
    matches = [(match, span) for line, span in lines if (match := _FIELD.fullmatch(line.strip()))]
    if len(matches) < LEAST_FIELDS:
        return []
    pairs = [(match["key"].strip(), match["value"].strip()) for match, _ in matches]
    return [
        Field("", name, without_note(value), span)
        for (name, value), (_, span) in zip(_shorter(pairs), matches, strict=True)
        if len(name) <= LONGEST_NAME and len(value) <= LONGEST_VALUE
    ]


def without_note(value: str) -> str:
    """A value without the remark in parentheses behind it."""
    match = _NOTE.fullmatch(value)
    return match["value"] if match else value


def _shorter(pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Paths without a last step that all paths have in common ("… > text")."""
    ends = {name.rpartition(" > ")[2] for name, _ in pairs}
    for name, value in pairs:
        shorter = name.rpartition(" > ")[0] if len(ends) == 1 and ends < set(_GENERIC) else name
        yield shorter or name, value
