"""Small documents for the tests of this folder."""

from tasks.corpus.grammar import Relation, row
from tasks.records import Document, DocumentKind, Split


def document(
    name: str, text: str, kind: DocumentKind = "encyclopaedia", cluster: str = "c", split: Split = "train"
) -> Document:
    return Document(id=name, title=name, text=text, kind=kind, cluster=cluster, split=split, source="test")


def stated(edges: list[tuple[str, str, str, str]]) -> list[Document]:
    """Documents that state (source, relation, target, document) edges."""
    texts: dict[str, list[str]] = {}
    for source, relation, target, name in edges:
        texts.setdefault(name, []).append(Relation(relation).sentence(source, target))
    return [document(name, " ".join(sentences)) for name, sentences in texts.items()]


def reported(name: str, measure: str, **counts: int) -> Document:
    lines = [row(country, measure, count) for country, count in counts.items()]
    return document(name, "\n".join(lines), "report")
