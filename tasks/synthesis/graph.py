"""The cross-document knowledge graph: triples with their evidence, and paths that really need every hop.

QwenLong-L1.5 §3.2. A triple is read by pattern; nodes are entities with their aliases merged; an edge carries
the document that states it. rustworkx, because it is typed and stays fast when a corpus grows.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import rustworkx as rx

from tasks.corpus.grammar import CAPITAL_OF, statements
from tasks.records import Document
from tasks.synthesis.names import key, mentions

TRIPLE_KINDS = ("encyclopaedia", "text")
MAX_NAME_WORDS = 6  # longer "names" are clauses that look like facts
ATTEMPTS_PER_PATH = 300  # step cap of the sampler


@dataclass(frozen=True)
class Triple:
    """A stated fact and its evidence, walked from `source` to `target`.

    `inverse` facts are walked value → subject: "Paris is the capital of France." leads from Paris to France.
    """

    relation: str
    source: str
    target: str
    inverse: bool
    document_id: str
    sentence: str

    @property
    def fact(self) -> tuple[str, str]:
        """Relation and subject, under which documents that also state the fact are found."""
        return self.relation, key(self.target if self.inverse else self.source)


Path = tuple[Triple, ...]
Sampler = Callable[["KnowledgeGraph", str, int, random.Random], Path | None]


def extract_triples(documents: Sequence[Document]) -> list[Triple]:
    """Read the fact sentences of encyclopaedia and text documents.

    Only a capital can be asked for from its value, so other inverse statements are turned round.
    """
    triples: dict[Triple, None] = {}
    for document in documents:
        if document.kind not in TRIPLE_KINDS:
            continue
        for stated in statements(document.text):
            inverse = stated.inverse and stated.relation == CAPITAL_OF.name
            ends = (stated.value, stated.subject) if inverse else (stated.subject, stated.value)
            if all(len(end.split()) <= MAX_NAME_WORDS for end in (*ends, stated.relation)):
                triples[Triple(stated.relation, *ends, inverse, document.id, stated.sentence)] = None
    return list(triples)


class AnswerBook:
    """How many answers the documents give to each one-fact question, whichever way round they state it."""

    def __init__(self, triples: Sequence[Triple]) -> None:
        """Collect the answers of both directions."""
        self._answers: dict[tuple[str, bool, str], set[str]] = {}
        for triple in triples:
            ends = key(triple.source), key(triple.target)
            self._answers.setdefault((triple.relation, triple.inverse, ends[0]), set()).add(ends[1])
            self._answers.setdefault((triple.relation, not triple.inverse, ends[1]), set()).add(ends[0])

    def unique(self, triple: Triple) -> bool:
        """Whether the hop has exactly one answer in this corpus."""
        return len(self._answers[triple.relation, triple.inverse, key(triple.source)]) == 1


class KnowledgeGraph:
    """A directed multigraph over entity keys; every edge is a triple."""

    def __init__(self, triples: Sequence[Triple], texts: Mapping[str, str]) -> None:
        """Build from triples and the text of every document of the split, by id."""
        names = dict.fromkeys(key(end) for triple in triples for end in (triple.source, triple.target))
        self.graph: rx.PyDiGraph[str, Triple] = rx.PyDiGraph()
        self._index = dict(zip(names, self.graph.add_nodes_from(list(names)), strict=True))
        for triple in triples:
            self.graph.add_edge(self._index[key(triple.source)], self._index[key(triple.target)], triple)
        self.book = AnswerBook(triples)
        self._texts = texts
        self._mentioned: dict[str, frozenset[str]] = {}

    @classmethod
    def of(cls, documents: Sequence[Document]) -> "KnowledgeGraph":
        """The graph over the documents of one split."""
        return cls(extract_triples(documents), {document.id: document.text for document in documents})

    def starts(self) -> list[str]:
        """Entities that something is known about, sorted."""
        return sorted(name for name, index in self._index.items() if self.graph.out_degree(index))

    def leaving(self, node: str) -> list[Triple]:
        """The triples that start at an entity; none for an unknown one."""
        index = self._index.get(node)
        return [] if index is None else [triple for _, _, triple in self.graph.out_edges(index)]

    def arriving(self, node: str) -> list[Triple]:
        """The triples that end at an entity."""
        return [triple for _, _, triple in self.graph.in_edges(self._index[node])]

    def linked(self, start: str, end: str) -> bool:
        """Whether an edge leads from `start` to `end`."""
        return self.graph.has_edge(self._index[start], self._index[end])

    def mentioning(self, name: str) -> frozenset[str]:
        """Ids of all documents, of any kind, that mention the name."""
        if name not in self._mentioned:
            found = frozenset(document for document, text in self._texts.items() if mentions(text, name))
            self._mentioned[name] = found
        return self._mentioned[name]


@dataclass(frozen=True)
class GraphReport:
    """What a graph offers; `reason` says why it has no multi-hop question, empty when it may have some."""

    nodes: int
    edges: int
    components: int
    joints: int  # entities where one document's fact continues in another document
    reason: str


def report(graph: KnowledgeGraph) -> GraphReport:
    """Count what can be walked."""
    plain = graph.graph
    joints = sum(_is_joint(graph, node) for node in plain.nodes())
    reason = "" if joints else "no cross-document edge: no fact continues in another document"
    components = len(rx.weakly_connected_components(plain))
    return GraphReport(plain.num_nodes(), plain.num_edges(), components, joints, reason)


def _is_joint(graph: KnowledgeGraph, node: str) -> bool:
    arriving = {triple.document_id for triple in graph.arriving(node)}
    return any(arriving - {triple.document_id} for triple in graph.leaving(node))


def walk_path(graph: KnowledgeGraph, start: str, hops: int, rng: random.Random) -> Path | None:
    """A random walk that never returns to an entity; None when it is trapped before `hops` hops."""
    path: list[Triple] = []
    visited = {key(start)}
    while len(path) < hops:
        here = key(path[-1].target) if path else key(start)
        onward = [triple for triple in graph.leaving(here) if key(triple.target) not in visited]
        if not onward:
            return None
        path.append(rng.choice(onward))
        visited.add(key(path[-1].target))
    return tuple(path)


def bfs_path(graph: KnowledgeGraph, start: str, hops: int, rng: random.Random) -> Path | None:
    """A path to a random entity that is exactly `hops` hops away, found breadth first, or None."""
    reached: dict[str, Path] = {key(start): ()}
    frontier = [key(start)]
    for _ in range(hops):
        found: dict[str, Path] = {}
        for node in frontier:
            onward = graph.leaving(node)
            for triple in rng.sample(onward, len(onward)):
                if key(triple.target) not in reached:
                    found.setdefault(key(triple.target), (*reached[node], triple))
        reached.update(found)
        frontier = list(found)
    return reached[rng.choice(frontier)] if frontier else None


SAMPLERS: tuple[Sampler, ...] = (walk_path, bfs_path)


def sample_paths(graph: KnowledgeGraph, hops: int, wanted: int, rng: random.Random) -> Iterator[Path]:
    """Yield distinct simple paths, walks and breadth-first ones in turn, up to the step cap of `wanted`.

    The caller stops when it has enough; an empty graph yields nothing.
    """
    starts = graph.starts()
    seen: set[Path] = set()
    for attempt in range(wanted * ATTEMPTS_PER_PATH if starts else 0):
        path = SAMPLERS[attempt % len(SAMPLERS)](graph, rng.choice(starts), hops, rng)
        if path is not None and path not in seen:
            seen.add(path)
            yield path


def faults(graph: KnowledgeGraph, path: Path) -> list[str]:
    """Why a path is no honest multi-hop question; empty when every hop is needed and has one answer.

    An inverse capital names the start by a description: it may share its document with the next hop.
    """
    nodes = [key(path[0].source), *(key(triple.target) for triple in path)]
    first_hop = 1 if path[0].inverse and len(path) > 2 else 0
    found = Counter[str]()
    found["a hop has several answers"] = sum(not graph.book.unique(triple) for triple in path)
    found["an edge shortens the path"] = sum(
        graph.linked(nodes[early], nodes[late]) for early in range(len(nodes)) for late in range(early + 2, len(nodes))
    )
    found["consecutive hops share a document"] = sum(
        one.document_id == next_.document_id for one, next_ in pairwise(path[first_hop:])
    )
    found["one document mentions start and answer"] = len(
        graph.mentioning(path[0].source) & graph.mentioning(path[-1].target)
    )
    found["only a start can be described by its capital"] = sum(triple.inverse for triple in path[1:])
    return [reason for reason, number in found.items() if number]
