"""Small tables for the tests of corpus-level questions."""

from collections import Counter
from collections.abc import Sequence

from tasks.corpus.columns import Cell, Column, typed_column
from tasks.synthesis.tables.corpus_table import ENTITY, CorpusTable, corpus_table
from tasks.synthesis.tables.engine import LockedTable
from tasks.synthesis.tables.readers import Stated


def locked(*counts: tuple[str, int | None]) -> LockedTable:
    """A table of names and their numbers in the column `count`."""
    names = tuple(name for name, _ in counts)
    return LockedTable(
        [Column(ENTITY, "text", names), Column("count", "integer", tuple(number for _, number in counts))]
    )


def column(name: str, *cells: str) -> Column:
    return typed_column(name, cells, grouped=True)


def values(name: str, *cells: Cell) -> Column:
    return Column(name, "integer", cells)


def merged(stated: Sequence[Stated]) -> tuple[CorpusTable, Counter[str]]:
    rejections = Counter[str]()
    return corpus_table(stated, rejections), +rejections
