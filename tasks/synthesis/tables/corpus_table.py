"""One table over many documents: a row an entity, every cell with the document that states it (CorpusQA §3.3)."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tasks.corpus.columns import Cell, Column, read_column
from tasks.corpus.names import key
from tasks.corpus.styles import Style, style_of
from tasks.synthesis.tables.readers import Stated

ENTITY = "entity"  # the column of names
TYPED_SHARE = 0.9  # of a column's texts that one style must read; the others are left out
LEAST_ROWS = 2  # that a column must have to be asked about
MOST_COLUMNS = 200  # the fullest ones
_NOT_ADDED = re.compile(
    r"\b(?:year|date|id|code|zip|postcode|phone|number(?! of)|no|rank|ranking|index|rate|ratio|share|percent|"
    r"percentage|average|mean|median|density|per|age|growth|score|latitude|longitude|coordinates|temperature|price)\b|%",
    re.IGNORECASE,
)
Homes = tuple[str, ...]  # ids of documents
_YEARS = range(1500, 2200)


@dataclass(frozen=True)
class CorpusTable:
    """Typed columns over the entities, and per column the documents of each cell: who states it, then who is overruled.

    A cell without a document is unknown: nobody says anything about it. One that a document leaves empty is NULL.
    """

    entities: tuple[str, ...]
    columns: Mapping[str, Column]
    homes: Mapping[str, tuple[Homes, ...]]

    @property
    def all_columns(self) -> list[Column]:
        """The columns of the SQL table, the names first."""
        return [Column(ENTITY, "text", self.entities), *self.columns.values()]

    def known(self, names: Sequence[str]) -> list[int]:
        """The rows of which all these cells are known, NULL or not."""
        return [row for row in range(len(self.entities)) if all(self.homes[name][row] for name in names)]

    def documents(self, names: Sequence[str], row: int) -> list[str]:
        """Ids of the documents that say something about these cells of a row."""
        return list(dict.fromkeys(home for name in names for home in self.homes[name][row]))

    def disputed(self, names: Sequence[str], row: int) -> bool:
        """Whether a document is overruled by a later one on one of these cells."""
        return any(len(self.homes[name][row]) > 1 for name in names)


def is_added(column: Column) -> bool:
    """Whether a sum over the column means something: counts and amounts, not years, codes, rates or percentages."""
    if (
        column.kind not in ("integer", "decimal")
        or column.unit == "%"
        or "/" in column.unit
        or _NOT_ADDED.search(column.name)
    ):
        return False
    present = [value for value in column.values if value is not None]
    return not all(value in _YEARS for value in present)


def corpus_table(stated: Iterable[Stated], rejections: Counter[str]) -> CorpusTable:
    """Merge what documents state. Types are decided by whole columns; texts of another type are left out, counted.

    Where documents disagree on a cell the latest one wins, if all of them are dated and one is the latest; otherwise
    the cell is left out, counted.
    """
    columns: dict[str, dict[str, list[Stated]]] = {}
    for cell in stated:
        if key(cell.column) and key(cell.entity):
            columns.setdefault(key(cell.column), {}).setdefault(key(cell.entity), []).append(cell)
    full = sorted((name for name in columns if len(columns[name]) >= LEAST_ROWS), key=lambda name: -len(columns[name]))
    kept = {name: columns[name] for name in full[:MOST_COLUMNS] if name != ENTITY}
    names = {entity: found[0].entity for cells in kept.values() for entity, found in reversed(cells.items())}
    order = {entity: row for row, entity in enumerate(sorted(names))}
    typed: dict[str, Column] = {}
    homes: dict[str, tuple[Homes, ...]] = {}
    for cells in kept.values():
        shown = next(iter(cells.values()))[0].column
        column, documents = _column(shown, cells, order, rejections)
        if sum(map(bool, documents)) >= LEAST_ROWS:
            typed[shown], homes[shown] = column, documents
    return CorpusTable(tuple(names[entity] for entity in order), typed, homes)


def _column(
    name: str, cells: Mapping[str, Sequence[Stated]], order: Mapping[str, int], rejections: Counter[str]
) -> tuple[Column, tuple[Homes, ...]]:
    present = [one.text for found in cells.values() for one in found if one.text is not None]
    verdict = style_of(present, grouped=True, share=TYPED_SHARE)
    if verdict.remark:
        rejections["a column can be read in several ways"] += 1
    texts: list[str | None] = [None] * len(order)
    homes: list[Homes] = [()] * len(order)
    for entity, found in cells.items():
        read = [(one, _value(one.text, verdict.style)) for one in found]
        usable = [(one, value) for one, value in read if one.text is None or value is not None]
        rejections["a cell is not of its column's type"] += len(read) - len(usable)
        chosen = _resolved(usable) if usable else []
        if chosen:
            texts[order[entity]] = chosen[0].text
            homes[order[entity]] = tuple(dict.fromkeys(one.document_id for one in chosen))
        elif usable:
            rejections["documents disagree on a cell"] += 1
    column = Column(name, "text", tuple(texts)) if verdict.style is None else read_column(name, texts, verdict.style)
    return column, tuple(homes)


def _value(text: str | None, style: Style | None) -> Cell:
    if text is None or style is None:
        return text and key(text)
    return style.read(text)


def _resolved(found: Sequence[tuple[Stated, Cell]]) -> list[Stated]:
    """One statement on which all agree, or the latest of dated ones and what it overrules; [] if there is neither.

    A document without a value does not contradict one that has it.
    """
    present = [(one, value) for one, value in found if value is not None] or found
    if len({value for _, value in present}) == 1:
        return [present[0][0]]
    latest = max((one.date for one, _ in present), default="")
    newest = [(one, value) for one, value in present if one.date == latest]
    if not all(one.date for one, _ in present) or len({value for _, value in newest}) > 1:
        return []
    return [newest[0][0], *(one for one, value in present if value != newest[0][1])]
