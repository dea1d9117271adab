"""Which cells a question is about: first the documents, then rows that these documents state."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tasks.corpus.columns import Column
from tasks.synthesis.tables.corpus_table import CorpusTable
from tasks.synthesis.tables.templates import Choice, Template

Fits = Callable[[Sequence[str]], bool]  # whether the texts of these documents fit a context together


@dataclass(frozen=True)
class Chosen:
    """A choice of cells and the documents that state them."""

    choice: Choice
    documents: tuple[str, ...]


@dataclass(frozen=True)
class _View:
    """The rows in which some columns are known, with the documents that state these cells."""

    documents: Mapping[int, tuple[str, ...]]

    @cached_property
    def rows(self) -> list[int]:
        return list(self.documents)

    @cached_property
    def by_document(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for row, documents in self.documents.items():
            for document in documents:
                found.setdefault(document, []).append(row)
        return found

    def within(self, documents: frozenset[str]) -> list[int]:
        """The rows that these documents state alone."""
        near = sorted({row for document in documents for row in self.by_document.get(document, ())})
        return [row for row in near if documents.issuperset(self.documents[row])]


class Chooser:
    """Chooses at random; what was looked up once in the table is kept."""

    def __init__(self, table: CorpusTable, fits: Fits, rng: random.Random) -> None:
        self._table = table
        self._fits = fits
        self._rng = rng
        self._views: dict[tuple[str, ...], _View] = {}
        everywhere = {home for homes in table.homes.values() for cell in homes for home in cell}
        self._several = len(everywhere) > 1

    def choose(self, template: Template) -> Chosen | None:
        """Cells for a template, from as many documents as it needs (if there are several); None if that failed."""
        columns = self._columns(template)
        view = self._view(tuple(column.name for column in columns))
        if not columns or len(view.rows) < template.rows[0]:
            return None
        number = self._rng.randint(*template.rows)
        first = self._rng.choice(view.rows)
        near = [row for row in view.within(self._homes(view, first, number, template.documents[1])) if row != first]
        rows = [first, *self._rng.sample(near, min(len(near), number - 1))]
        documents = tuple(dict.fromkeys(home for row in rows for home in view.documents[row]))
        few = self._several and len(documents) < template.documents[0]
        if len(rows) < template.rows[0] or few or not self._fits(documents):
            return None
        return Chosen(self._choice(columns, rows), documents)

    def _homes(self, view: _View, first: int, number: int, most: int) -> frozenset[str]:
        """The documents of the first row and of other random ones, as long as they fit."""
        homes = frozenset(view.documents[first])
        for row in self._rng.choices(view.rows, k=number - 1):
            wider = homes | set(view.documents[row])
            if len(wider) <= most and self._fits(sorted(wider)):
                homes = wider
        return homes

    def _columns(self, template: Template) -> tuple[Column, ...]:
        """Different random columns, the fuller the likelier; () where there is none for a need."""
        chosen: list[Column] = []
        for need in template.needs:
            suitable = [one for one in self._table.columns.values() if need.admits(one) and one not in chosen]
            if not suitable:
                return ()
            weights = [len(self._view((column.name,)).rows) for column in suitable]
            chosen += self._rng.choices(suitable, weights)
        return tuple(chosen)

    def _view(self, names: tuple[str, ...]) -> _View:
        if names not in self._views:
            rows = self._table.known(names) if names else []
            self._views[names] = _View({row: tuple(self._table.documents(names, row)) for row in rows})
        return self._views[names]

    def _choice(self, columns: Sequence[Column], rows: Sequence[int]) -> Choice:
        cut = tuple(replace(column, values=tuple(column.values[row] for row in rows)) for column in columns)
        disputed = any(self._table.disputed([column.name for column in columns], row) for row in rows)
        return Choice(tuple(self._table.entities[row] for row in rows), cut, self._rng, disputed)
