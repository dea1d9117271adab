"""The cross-document knowledge graph: entities merged over documents, facts with their evidence, paths along them.

QwenLong-L1.5 §3.2. Its memory grows with the facts: texts stay in the library, columns of numbers are what is walked.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import rustworkx as rx

from tasks.synthesis.clustering import Clusters, relation_form
from tasks.synthesis.paths import CROWDED, TOGETHER, Bools, Edges, Groups, Ints, PathSampler
from tasks.synthesis.quantities import BARE, read_quantity
from tasks.synthesis.triples import Notes, Path, Triple

TRIPLE_KINDS = ("encyclopaedia", "text")
COMPONENTS_SHOWN = 5
NAMES_KEPT = 4096  # whose documents are remembered
RELATIONS_KEPT = 4096  # of which is remembered whether they tell dates
AMBIGUOUS = "a hop has several answers"
MET_TWICE = "the path meets an entity twice"
APART = "no cross-document edge: no fact continues in another document"


class KnowledgeGraph:
    """A directed multigraph over entities. An edge is a triple, by its number in `triples`; entities are numbers too.

    `askable_E` says which edges have exactly one answer in these documents, whichever way round they are stated.
    """

    def __init__(
        self,
        triples: Sequence[Triple],
        notes: Notes,
        mentioning: Callable[[str], frozenset[str]],
        min_documents: int,
    ) -> None:
        """Build from triples, notes on their documents, and what finds the documents that mention a name."""
        self.triples = triples
        self.clusters = notes.clusters
        names = {end for triple in triples for end in (triple.source, triple.target)}
        self._names = Clusters(names, notes.introduced)
        self._entities: dict[str, int] = {}
        self._relations: dict[str, int] = {}
        self._aliases: list[dict[str, None]] = []
        self._mentioning = lru_cache(maxsize=NAMES_KEPT)(mentioning)
        self._tells_dates = lru_cache(maxsize=RELATIONS_KEPT)(self._has_no_bare_number)
        self._min_documents = min_documents
        subjects, objects, relations = self._read_columns()
        self.relation_E = relations
        self.inverse_E = np.array([triple.inverse for triple in triples], bool)
        source_E, target_E = np.where(self.inverse_E, (objects, subjects), (subjects, objects))
        self.askable_E = _askable(subjects, objects, relations, self.inverse_E, len(self._relations))
        documents = {name: place for place, name in enumerate(dict.fromkeys(one.document_id for one in triples))}
        document_E = np.array([documents[triple.document_id] for triple in triples], np.int64)
        self.edges = Edges(source_E, target_E, document_E, self.askable_E, len(self._entities))
        self.by_subject, self.by_object = Groups(subjects, self.edges.nodes), Groups(objects, self.edges.nodes)
        self.by_source = Groups(source_E, self.edges.nodes)
        self.by_relation = Groups(relations, len(self._relations))
        self.subject_E, self.object_E = subjects, objects
        self.sampler = PathSampler(self.edges, min_documents)

    def _read_columns(self) -> tuple[Ints, Ints, Ints]:
        """Subject, object and relation of every triple, as numbers."""
        added, form = cache(self._added), cache(relation_form)
        columns = np.empty((3, len(self.triples)), np.int64)
        for edge, triple in enumerate(self.triples):
            relation = self._relations.setdefault(form(triple.relation), len(self._relations))
            columns[:, edge] = added(triple.subject), added(triple.object), relation
        return columns[0], columns[1], columns[2]

    def _added(self, name: str) -> int:
        entity = self._entities.setdefault(self._names.of(name), len(self._entities))
        if entity == len(self._aliases):
            self._aliases.append({})
        self._aliases[entity].setdefault(name)
        return entity

    def entity(self, name: str) -> int | None:
        """The entity with this name, or None."""
        return self._entities.get(self._names.of(name))

    def aliases(self, entity: int) -> tuple[str, ...]:
        """All names under which the documents state facts of an entity."""
        return tuple(self._aliases[entity])

    def mentioning(self, entity: int) -> frozenset[str]:
        """Ids of all documents, of any kind, that mention an entity by one of its names."""
        return frozenset[str]().union(*map(self._mentioning, self.aliases(entity)))

    def together(self, one: int, other: int) -> bool:
        """Whether a document mentions two entities."""
        return bool(self.mentioning(one) & self.mentioning(other))

    def tells_dates(self, relation: int) -> bool:
        """Whether a year among a relation's values is one: beside other bare numbers, 1734 is a number as well."""
        return self._tells_dates(relation)

    def _has_no_bare_number(self, relation: int) -> bool:
        objects = (read_quantity(self.triples[edge].object) for edge in self.by_relation.of(relation).tolist())
        return not any(value and value.unit == BARE for value in objects)

    def along(self, edges: Sequence[int]) -> Path:
        """The triples of some edges."""
        return tuple(self.triples[edge] for edge in edges)

    def nodes(self, edges: Sequence[int]) -> list[int]:
        """The entities of a path, from start to answer."""
        return [int(self.edges.source_E[edges[0]]), *(int(self.edges.target_E[edge]) for edge in edges)]

    def faults(self, edges: Sequence[int]) -> list[str]:
        """Why a path is no honest multi-hop question; empty when every hop is needed and has one answer."""
        nodes = self.nodes(edges)
        found = [AMBIGUOUS] if not self.askable_E[list(edges)].all() else []
        found += [MET_TWICE] if len(set(nodes)) < len(nodes) else []
        found += self.sampler.faults(tuple(edges))
        found += [CROWDED] if covered(self._stating(edges), self._min_documents - 1) else []
        found += [TOGETHER] if self.together(nodes[0], nodes[-1]) else []
        return list(dict.fromkeys(found))

    def edges_of(self, path: Path) -> list[int]:
        """The edges of a path that was recorded.

        Raises:
            KeyError: a triple of it is not in this graph.
        """
        found = []
        for triple in path:
            entity = self.entity(triple.source)
            edges = [] if entity is None else self.by_source.of(entity).tolist()
            found.append({self.triples[edge]: edge for edge in edges}[triple])
        return found

    def _stating(self, edges: Sequence[int]) -> list[set[int]]:
        """For each hop, all documents that state its fact."""
        facts = []
        for edge in edges:
            same = self.by_subject.of(int(self.subject_E[edge]))
            same = same[(self.relation_E[same] == self.relation_E[edge]) & (self.object_E[same] == self.object_E[edge])]
            facts.append(set(self.edges.document_E[same].tolist()))
        return facts


def _askable(subject_E: Ints, object_E: Ints, relation_E: Ints, inverse_E: Bools, relations: int) -> Bools:
    """Edges with one answer: one object of the subject, or on the way back one subject of the object."""
    forward = _has_one(subject_E * relations + relation_E, object_E)
    backward = _has_one(object_E * relations + relation_E, subject_E)
    return np.asarray(np.where(inverse_E, backward, forward) & (subject_E != object_E))


def _has_one(asked_E: Ints, answer_E: Ints) -> Bools:
    """Whether what is asked has one distinct answer over all edges."""
    if not len(asked_E):
        return np.zeros(0, bool)
    _, group_E = np.unique(asked_E, return_inverse=True)
    width = int(answer_E.max()) + 1
    return np.asarray(np.bincount(np.unique(group_E * width + answer_E) // width)[group_E] == 1)


def covered(stating: Sequence[set[int]], documents: int) -> bool:
    """Whether so few documents state all the facts. A document that states one of them only stands for all such."""
    if not stating or documents < 1:
        return not stating
    counted = Counter(document for documents_of_fact in stating for document in documents_of_fact)
    useful = [one for one in stating[0] if counted[one] > 1] or list(stating[0])[:1]
    return any(covered([fact for fact in stating[1:] if one not in fact], documents - 1) for one in useful)


@dataclass(frozen=True)
class Component:
    """A part of the graph that nothing joins with the rest; `joints` as in `GraphReport`."""

    entities: int
    facts: int
    documents: int
    joints: int


@dataclass(frozen=True)
class GraphReport:
    """What a graph offers; `reason` says why it has no multi-hop question, empty when it may have some."""

    entities: int
    facts: int
    askable: int  # facts with one answer
    documents: int
    components: int
    joints: int  # entities where one document's fact continues in another document
    largest: tuple[Component, ...]
    reason: str


def report(graph: KnowledgeGraph) -> GraphReport:
    """Count what can be walked."""
    edges = graph.edges
    joint_N = _joints(edges)
    plain: rx.PyGraph[None, None] = rx.PyGraph()
    plain.add_nodes_from([None] * edges.nodes)
    plain.add_edges_from_no_data(list(zip(edges.source_E.tolist(), edges.target_E.tolist(), strict=True)))
    parts = sorted(rx.connected_components(plain), key=len, reverse=True)
    return GraphReport(
        edges.nodes,
        len(graph.triples),
        int(graph.askable_E.sum()),
        len(np.unique(edges.document_E)),
        len(parts),
        int(joint_N.sum()),
        tuple(_component(edges, joint_N, np.array(sorted(part))) for part in parts[:COMPONENTS_SHOWN]),
        "" if joint_N.any() else APART,
    )


def _component(edges: Edges, joint_N: Bools, nodes: Ints) -> Component:
    inside = np.isin(edges.source_E, nodes)
    documents = len(np.unique(edges.document_E[inside]))
    return Component(len(nodes), int(inside.sum()), documents, int(joint_N[nodes].sum()))


def _joints(edges: Edges) -> Bools:
    """Entities with an edge in and an edge out that two documents state."""
    bounds = []
    for ends in (edges.target_E, edges.source_E):
        first, last = np.full(edges.nodes, np.iinfo(np.int64).max), np.full(edges.nodes, -1)
        np.minimum.at(first, ends, edges.document_E)
        np.maximum.at(last, ends, edges.document_E)
        bounds += [first, last]
    both = (bounds[1] >= 0) & (bounds[3] >= 0)
    return np.asarray(both & (np.minimum(bounds[0], bounds[2]) < np.maximum(bounds[1], bounds[3])))
