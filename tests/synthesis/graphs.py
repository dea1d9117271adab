"""Graphs for tests, from documents in the closed language or from bare edges."""

from collections.abc import Iterable
from itertools import pairwise

from tasks.corpus.library import Library
from tasks.records import Document
from tasks.synthesis.graph import KnowledgeGraph
from tasks.synthesis.language import GrammarLanguage
from tasks.synthesis.reading import read_graph
from tasks.synthesis.triples import Notes, Triple

from .examples import stated

Edge = tuple[str, str, str, str]  # source, relation, target, document


def graph_of(documents: Iterable[Document], min_documents: int = 2) -> KnowledgeGraph:
    return read_graph(Library.of(documents), "train", GrammarLanguage(), min_documents)[0]


def graph_stated(edges: list[Edge], min_documents: int = 2) -> KnowledgeGraph:
    return graph_of(stated(edges), min_documents)


def graph_from(triples: list[Triple], min_documents: int = 2) -> KnowledgeGraph:
    """A graph without texts: documents mention what their facts are about."""
    mentioned: dict[str, set[str]] = {}
    for triple in triples:
        for name in (triple.source, triple.target):
            mentioned.setdefault(name, set()).add(triple.document_id)
    notes = Notes(clusters={triple.document_id: "c" for triple in triples})
    return KnowledgeGraph(triples, notes, lambda name: frozenset(mentioned.get(name, ())), min_documents)


def fact(source: str, relation: str, target: str, document: str, date: str = "", inverse: bool = False) -> Triple:
    return Triple(relation, source, target, inverse, document, 0, 1, date)


def edges_along(graph: KnowledgeGraph, *names: str) -> list[int]:
    """The first edges that lead from name to name."""
    entities = [graph.entity(name) for name in names]
    found = []
    for start, end in pairwise(entities):
        assert start is not None
        found.append(next(int(e) for e in graph.by_source.of(start) if graph.edges.target_E[e] == end))
    return found
