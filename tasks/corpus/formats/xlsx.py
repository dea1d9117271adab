"""Excel workbooks: each sheet is a table with its merged cells filled and its formulas' stored values."""

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.corpus.formats.archives import check_archive
from tasks.corpus.formats.base import Extract, Part, grid
from tasks.corpus.formats.cells import cell_text
from tasks.errors import InputError

MAX_CELLS = 20_000_000  # a sheet's claimed size, of which most may be empty


@dataclass(frozen=True)
class Sheet:
    """The lines of a sheet, and how many formulas have no stored value."""

    name: str
    lines: list[tuple[str, ...]]
    missing: int


def read_xlsx(path: Path) -> Extract:
    """One part; each sheet with cells is a block.

    Raises:
        InputError: it is no workbook, unpacks to too much, or all its sheets are empty.
    """
    check_archive(path, "xl/workbook.xml")
    sheets = list(_sheets(path))
    blocks = tuple(grid(sheet.lines) for sheet in sheets if sheet.lines)
    if not blocks:
        raise InputError("empty")
    return Extract((Part(blocks),), remarks=tuple(_remarks(sheets)))


def _remarks(sheets: list[Sheet]) -> Iterator[str]:
    for sheet in sheets:
        if sheet.missing:
            yield f"sheet {sheet.name!r}: {sheet.missing} formula(s) without a stored value; open and save it in Excel"


def _sheets(path: Path) -> Iterator[Sheet]:
    from openpyxl import load_workbook

    values = load_workbook(path, data_only=True)
    formulas = load_workbook(path) if _has_formulas(path) else None
    for sheet in values.worksheets:
        rows, columns = sheet.max_row, sheet.max_column
        if rows * columns > MAX_CELLS:
            raise InputError(f"sheet {sheet.title!r} spans {rows} × {columns} cells; remove the stray ones")
        lines = [[_text(cell) for cell in line] for line in sheet.iter_rows()]
        for merged in sheet.merged_cells.ranges:
            text = lines[merged.min_row - 1][merged.min_col - 1]
            for line in lines[merged.min_row - 1 : merged.max_row]:
                line[merged.min_col - 1 : merged.max_col] = [text] * (merged.max_col - merged.min_col + 1)
        missing = _missing(sheet, formulas[sheet.title]) if formulas is not None else 0
        yield Sheet(sheet.title, [tuple(line) for line in lines if any(line)], missing)


def _has_formulas(path: Path) -> bool:
    """Only then is the workbook worth reading twice."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.startswith("xl/worksheets/")]
        return any(re.search(rb"<(\w+:)?f[ >/]", archive.read(name)) for name in names)


def _missing(values: Any, formulas: Any) -> int:
    """How many formulas have no stored value."""
    written = [cell for line in formulas.iter_rows() for cell in line if cell.data_type == "f"]
    return sum(values[cell.coordinate].value is None for cell in written)


def _text(cell: Any) -> str:
    """A number as shown where its format only adds leading zeros: 501 as "00000" is the code 00501."""
    text = cell_text(cell.value)
    zeros = str(cell.number_format)
    if isinstance(cell.value, int) and cell.value >= 0 and len(zeros) > 1 and not zeros.strip("0"):
        return text.zfill(len(zeros))
    return text
