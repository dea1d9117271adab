"""Dialogue memory: what a dialogue says last about a value that may have been corrected on the way."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tasks.corpus.grammar import Relation, Statement, dialogue_question, statements
from tasks.records import AnswerKind, Document, Domain, Split
from tasks.synthesis.names import key
from tasks.synthesis.questions import Harvest, Source


@dataclass(frozen=True)
class Thread:
    """All statements of one dialogue about one value, in order; the last one counts."""

    document_id: str
    said: tuple[Statement, ...]

    @property
    def corrected(self) -> bool:
        """Whether an earlier statement differs from the last."""
        return any(key(statement.value) != key(self.said[-1].value) for statement in self.said)


def dialogue_questions(documents: Sequence[Document], split: Split, wanted: int, seed: int) -> Harvest:
    """Ask up to `wanted` values, corrected ones first; one question per dialogue and value."""
    source = Source(Domain.DIALOGUE_MEMORY, "self_play", split, seed)
    threads = [thread for document in documents if document.kind == "dialogue" for thread in _threads(document)]
    random.Random(f"{seed} {split} dialogues").shuffle(threads)
    threads.sort(key=lambda thread: not thread.corrected)
    harvest = Harvest()
    for thread in threads[:wanted]:
        last = thread.said[-1]
        harvest.questions.append(
            source.question(
                dialogue_question(Relation(last.relation), last.subject),
                last.value,
                kind=AnswerKind.TEXT,
                evidence=[thread.document_id],
                difficulty=2 if thread.corrected else 1,
                facts=[(last.relation, key(last.subject))],
                provenance={
                    "kind": "dialogue",
                    "sentences": [statement.sentence for statement in thread.said],
                },
            )
        )
    return harvest


def _threads(document: Document) -> Iterator[Thread]:
    said: dict[tuple[str, str], list[Statement]] = {}
    for statement in statements(document.text):
        if not statement.inverse:
            said.setdefault((statement.relation, key(statement.subject)), []).append(statement)
    for about in said.values():
        yield Thread(document.id, tuple(about))
