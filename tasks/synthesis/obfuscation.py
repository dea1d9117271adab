"""Entities described instead of named: by other facts about them, with dates and numbers made vaguer.

A description must match exactly one entity of the graph. A date that the documents give vaguely matches whatever it
may mean, so that doubt makes a description ambiguous, never wrong.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from tasks.corpus.names import mentions
from tasks.synthesis.graph import KnowledgeGraph
from tasks.synthesis.quantities import DATE, Quantity, read_quantity, vaguer
from tasks.synthesis.riddles import Line

FACTS_TRIED = 12  # of an entity
RELATIONS_KEPT = 256  # whose values are remembered as quantities


@dataclass(frozen=True)
class Clue:
    """A fact about the described entity; `shown` is its other end, as it is said. `matches` are all it fits."""

    edge: int
    shown: str
    matches: frozenset[int]
    vague: bool = False

    def line(self, graph: KnowledgeGraph, entity: int, name: str) -> Line:
        """The fact with the entity's stand-in and what is shown in the places of the ends."""
        relation = graph.triples[self.edge].relation
        about = graph.subject_E[self.edge] == entity
        return (name, relation, self.shown) if about else (self.shown, relation, name)


Description = tuple[Clue, ...]


class Describer:
    """Finds descriptions of entities by their facts."""

    def __init__(self, graph: KnowledgeGraph, most_clues: int, rng: random.Random) -> None:
        """At most `most_clues` facts describe an entity; 0 finds none."""
        self._graph = graph
        self._most = most_clues
        self._rng = rng
        self._values = lru_cache(maxsize=RELATIONS_KEPT)(self._read_values)

    def describe(self, entity: int, hidden: Sequence[int], answer: int | None = None) -> Description | None:
        """The vaguest description of the fewest facts that fits this entity alone, or None.

        It tells nothing of the `hidden` entities, nor of what a document mentions together with the answer.
        """
        clues = [clue for clue in self._clues(entity, hidden) if not self._tells(clue, hidden, answer)]
        exact = [clue for clue in clues if not clue.vague and read_quantity(clue.shown) is not None]
        vague = [clue for clue in clues if clue not in exact]
        several = (found for number in range(1, self._most + 1) for found in combinations(vague, number))
        single = ((clue,) for clue in exact[: self._most])
        return next(filter(_fits_one, chain(several, single)), None)

    def vaguest(self, edge: int) -> str:
        """A way to say the source of an edge: a date or number as vaguely as it still leads to the target alone."""
        graph, source = self._graph, self._graph.triples[edge].source
        relation = int(graph.relation_E[edge])
        ways = self._vaguer(relation, source) if self._most and graph.inverse_E[edge] else iter(())
        target = frozenset({int(graph.edges.target_E[edge])})
        return next((shown for shown, quantity in ways if self._within(relation, quantity) == target), source)

    def _clues(self, entity: int, hidden: Sequence[int]) -> Iterator[Clue]:
        """Clues from some facts of an entity, the vaguest ways to say each first."""
        graph, kept = self._graph, {entity, *hidden}
        edges = [*graph.by_subject.of(entity).tolist(), *graph.by_object.of(entity).tolist()]
        facts = {(graph.subject_E[e], graph.relation_E[e], graph.object_E[e]): e for e in edges}
        found = []
        for edge in self._rng.sample(sorted(facts.values()), min(FACTS_TRIED, len(facts))):
            other = int(graph.object_E[edge] if graph.subject_E[edge] == entity else graph.subject_E[edge])
            if other not in kept:
                found += list(enumerate(self._ways(edge, entity)))
        yield from (clue for _, clue in sorted(found, key=lambda way: way[0]))

    def _ways(self, edge: int, entity: int) -> Iterator[Clue]:
        graph = self._graph
        triple, relation = graph.triples[edge], int(graph.relation_E[edge])
        if graph.subject_E[edge] == entity:
            for shown, quantity in self._vaguer(relation, triple.object):
                yield Clue(edge, shown, self._within(relation, quantity), vague=True)
            same, ends = graph.by_object.of(int(graph.object_E[edge])), graph.subject_E
            exact = read_quantity(triple.object)
            matches = self._within(relation, exact) if exact else frozenset[int]()
        else:
            same, ends = graph.by_subject.of(int(graph.subject_E[edge])), graph.object_E
            matches = frozenset()
        same = same[graph.relation_E[same] == relation]
        shown = triple.object if graph.subject_E[edge] == entity else triple.subject
        yield Clue(edge, shown, matches | frozenset(ends[same].tolist()))

    def _vaguer(self, relation: int, text: str) -> Iterator[tuple[str, Quantity]]:
        """Vaguer ways to say a value, none for a number that looks like a year."""
        quantity = read_quantity(text)
        if quantity and (quantity.unit != DATE or self._graph.tells_dates(relation)):
            yield from vaguer(text)

    def _within(self, relation: int, quantity: Quantity) -> frozenset[int]:
        """Subjects of a relation whose value may lie within a quantity."""
        values = self._values(relation).get(quantity.unit)
        if values is None:
            return frozenset()
        low, high, subjects = values
        return frozenset(subjects[(low <= quantity.high) & (high >= quantity.low)].astype(int).tolist())

    def _read_values(self, relation: int) -> dict[str, NDArray[np.float64]]:
        """For each unit, three rows: the lowest and highest a value may be, and its subject."""
        found: dict[str, list[tuple[float, float, int]]] = {}
        for edge in self._graph.by_relation.of(relation).tolist():
            value = read_quantity(self._graph.triples[edge].object)
            if value is not None:
                found.setdefault(value.unit, []).append((value.low, value.high, int(self._graph.subject_E[edge])))
        return {unit: np.array(rows).T for unit, rows in found.items()}

    def _tells(self, clue: Clue, hidden: Sequence[int], answer: int | None) -> bool:
        """Whether the words of a clue name what is hidden, or a document links its other end with the answer."""
        graph = self._graph
        said = f"{clue.shown}\n{graph.triples[clue.edge].relation}"
        if any(mentions(said, name) for entity in hidden for name in graph.aliases(entity)):
            return True
        other = graph.entity(clue.shown)
        return answer is not None and other is not None and graph.together(other, answer)


def _fits_one(clues: Description) -> bool:
    return len(frozenset.intersection(*(clue.matches for clue in clues))) == 1
