"""Facts that documents state, with where they state them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tasks.corpus.names import key
from tasks.records import Document
from tasks.synthesis.clustering import introductions, relation_form

ONE_SUBJECT_SHARE = 0.9  # of a relation's values: a birthplace that only one person has here has others elsewhere


@dataclass(frozen=True, slots=True)
class Triple:
    """A stated fact, walked from `source` to `target`.

    `inverse` facts are walked value → subject: "Paris is the capital of France." leads from Paris to France. The
    evidence is `text[start:end]` of the document; `date` is the ISO date of what the fact tells, "" without one.
    """

    relation: str
    source: str
    target: str
    inverse: bool
    document_id: str
    start: int
    end: int
    date: str = ""

    @property
    def subject(self) -> str:
        """What the fact is about."""
        return self.target if self.inverse else self.source

    @property
    def object(self) -> str:
        """What it says of the subject."""
        return self.source if self.inverse else self.target

    @property
    def fact(self) -> tuple[str, str]:
        """Relation and subject, under which documents that also state the fact are found."""
        return self.relation, key(self.subject)


Path = tuple[Triple, ...]


@dataclass
class Reading:
    """What was read in some documents, and what was not taken for a fact, by reason."""

    triples: list[Triple] = field(default_factory=list)
    rejections: Counter[str] = field(default_factory=Counter)


@dataclass
class Notes:
    """What is kept of documents that are not: the short names they introduce, and the cluster of each by its id."""

    introduced: set[tuple[str, str]] = field(default_factory=set)
    clusters: dict[str, str] = field(default_factory=dict)

    def taking(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Pass documents on, noting what is to be kept of each."""
        for document in documents:
            self.introduced.update(introductions(document.text))
            self.clusters[document.id] = document.cluster
            yield document


def both_ways(triples: Iterable[Triple]) -> list[Triple]:
    """Add the way back, from value to subject, of relations whose values nearly all have one subject."""
    triples = list(triples)
    subjects: dict[str, dict[str, set[str]]] = {}
    for triple in triples:
        values = subjects.setdefault(relation_form(triple.relation), {})
        values.setdefault(key(triple.object), set()).add(key(triple.subject))
    telling = {
        relation
        for relation, values in subjects.items()
        if sum(len(found) == 1 for found in values.values()) >= ONE_SUBJECT_SHARE * len(values)
    }
    back = (
        replace(triple, source=triple.target, target=triple.source, inverse=True)
        for triple in triples
        if relation_form(triple.relation) in telling
    )
    return [*triples, *back]


def recorded(triple: Triple, text: str) -> dict[str, Any]:
    """A triple for a question's provenance, with the words of its document that state it."""
    return {**asdict(triple), "sentence": text[triple.start : triple.end]}


def path_of(provenance: dict[str, Any]) -> Path:
    """Rebuild the path that a question's provenance records."""
    return tuple(_triple(hop) for hop in provenance["hops"])


def _triple(hop: dict[str, Any]) -> Triple:
    return Triple(**{name: value for name, value in hop.items() if name != "sentence"})
