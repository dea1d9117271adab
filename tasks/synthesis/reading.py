"""The facts of a split, read from its documents one after the other and joined to a graph."""

from collections import Counter
from functools import partial

from tasks.corpus.library import Library
from tasks.records import Split
from tasks.synthesis.graph import TRIPLE_KINDS, KnowledgeGraph
from tasks.synthesis.language import Language
from tasks.synthesis.triples import Notes


def read_graph(
    library: Library, split: Split, language: Language, min_documents: int
) -> tuple[KnowledgeGraph, Counter[str]]:
    """The graph over a split's encyclopaedia and text documents, and what was read there but is no fact, by reason."""
    notes = Notes()
    documents = (document for document in library.stream(split) if document.kind in TRIPLE_KINDS)
    reading = language.read(notes.taking(documents))
    mentioning = partial(library.mentioning, split=split)
    return KnowledgeGraph(reading.triples, notes, mentioning, min_documents), reading.rejections
