"""One-fact questions from triples: reading comprehension, and multiple choice among values of one type.

Both take the facts in one seeded order, from opposite ends, so that they share a fact as late as can be.
"""

import random
from collections.abc import Sequence
from dataclasses import asdict

from tasks.corpus.grammar import LETTERS
from tasks.records import AnswerKind, Document, Domain, Split
from tasks.synthesis.graph import AnswerBook, Triple, extract_triples
from tasks.synthesis.names import key, mentions
from tasks.synthesis.obfuscation import fact_question
from tasks.synthesis.questions import Harvest, Source


def reading_questions(
    documents: Sequence[Document], split: Split, wanted: int, seed: int, taken: frozenset[str] = frozenset()
) -> Harvest:
    """Ask up to `wanted` single facts whose question is not in `taken`."""
    source = Source(Domain.READING_COMPREHENSION, "self_play", split, seed)
    harvest = Harvest()
    for triple in _askable(documents, source, harvest):
        if len(harvest.questions) == wanted:
            break
        text = fact_question(triple)
        if text in taken:
            continue
        harvest.questions.append(
            source.question(
                text,
                triple.target,
                kind=AnswerKind.TEXT,
                evidence=[triple.document_id],
                difficulty=1,
                facts=[triple.fact],
                provenance={"kind": "triple", "hops": [asdict(triple)]},
            )
        )
    return harvest


def choice_questions(documents: Sequence[Document], split: Split, wanted: int, seed: int) -> Harvest:
    """Ask up to `wanted` single facts with four options; the position of the right one is uniform."""
    source = Source(Domain.MULTIPLE_CHOICE, "knowledge_graph", split, seed)
    rng = random.Random(f"{seed} {split} options")
    pool = _ValuePool(documents, extract_triples(documents))
    harvest = Harvest()
    for triple in reversed(_askable(documents, source, harvest)):
        if len(harvest.questions) == wanted:
            break
        wrong = pool.wrong_options(triple, len(LETTERS) - 1, rng)
        if len(wrong) < len(LETTERS) - 1:
            harvest.rejections["fewer than four options"] += 1
            continue
        place = rng.randrange(len(LETTERS))
        options = [*wrong[:place], triple.target, *wrong[place:]]
        harvest.questions.append(
            source.question(
                fact_question(triple),
                LETTERS[place],
                kind=AnswerKind.LETTER,
                evidence=[triple.document_id],
                difficulty=1,
                facts=[triple.fact],
                provenance={"kind": "triple", "hops": [asdict(triple)]},
                options=options,
            )
        )
    return harvest


def _askable(documents: Sequence[Document], source: Source, harvest: Harvest) -> list[Triple]:
    """Triples with one answer, one per question, in seeded order; counts the others."""
    triples = extract_triples(documents)
    book = AnswerBook(triples)
    kept: dict[str, Triple] = {}
    for triple in random.Random(f"{source.seed} {source.split} facts").sample(triples, len(triples)):
        text = fact_question(triple)
        if not book.unique(triple):
            harvest.rejections["the fact has several answers"] += 1
        elif mentions(text, triple.target):
            harvest.rejections["the question gives its answer away"] += 1
        else:
            kept.setdefault(text, triple)
    return list(kept.values())


class _ValuePool:
    """The values of each relation, with the clusters in which they are stated."""

    def __init__(self, documents: Sequence[Document], triples: Sequence[Triple]) -> None:
        self._cluster = {document.id: document.cluster for document in documents}
        self._triples: dict[tuple[str, bool], list[Triple]] = {}
        for triple in triples:
            self._triples.setdefault((triple.relation, triple.inverse), []).append(triple)

    def wrong_options(self, triple: Triple, number: int, rng: random.Random) -> list[str]:
        """Up to `number` other values of the same type, those stated in the same cluster first."""
        others = self._triples[triple.relation, triple.inverse]
        cluster = self._cluster[triple.document_id]
        shuffled = rng.sample(others, len(others))
        nearest = sorted(shuffled, key=lambda other: self._cluster[other.document_id] != cluster)
        values = {key(other.target): other.target for other in reversed(nearest)}
        for known in (triple.target, triple.source):
            values.pop(key(known), None)
        return list(values.values())[::-1][:number]
