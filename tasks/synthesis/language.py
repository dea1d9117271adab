"""The language of the documents: who reads their facts and who words questions about them.

Two implementations. The closed grammar reads its own sentences and writes its own questions; a writer model reads any
text (extraction.py) and words any question (wording.py). All else is the same for both.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from tasks.corpus.grammar import (
    CAPITAL_OF,
    Relation,
    Statement,
    capital_inverse_question,
    described_by,
    described_by_capital,
    dialogue_question,
    statements,
)
from tasks.generation.chat import ChatModel
from tasks.generation.structured import Refused
from tasks.records import Document
from tasks.synthesis.extraction import extract
from tasks.synthesis.quantities import read_quantity
from tasks.synthesis.record_facts import RecordReader
from tasks.synthesis.riddles import Riddle, RiddleKind
from tasks.synthesis.triples import Path, Reading, Triple, both_ways
from tasks.synthesis.wording import word_riddles

MAX_NAME_WORDS = 6  # longer "names" are clauses that look like facts
ONLY_A_START = "only a start can be described by its capital"
JOINED_BY_NUMBER = "a number or date joins facts that have nothing to do with each other"
MODEL_KINDS: tuple[RiddleKind, ...] = ("temporal", "causal", "hypothetical", "path")


class Language(Protocol):
    """Reads facts and words questions."""

    @property
    def kinds(self) -> tuple[RiddleKind, ...]:
        """Which questions over several facts it has words for; the last makes up for what the others lack."""
        ...

    @property
    def most_clues(self) -> int:
        """How many facts may describe an entity instead of its name."""
        ...

    def read(self, documents: Iterable[Document]) -> Reading:
        """The facts that the documents state, in their order."""
        ...

    def fault(self, path: Path) -> str:
        """Why a path cannot be said, or ""."""
        ...

    def word(self, riddles: Sequence[Riddle]) -> Iterator[str | Refused]:
        """A question for each riddle, or why there is none."""
        ...


class GrammarLanguage:
    """The tiny profile's closed language: starts are named, and every hop is "the R of" the one before."""

    kinds: tuple[RiddleKind, ...] = ("path",)
    most_clues = 0

    def read(self, documents: Iterable[Document]) -> Reading:
        """Only a capital can be asked for from its value, so other inverse statements are turned round."""
        triples: dict[Triple, None] = {}
        for document in documents:
            for stated in statements(document.text):
                triple = _triple(stated, document)
                if all(len(part.split()) <= MAX_NAME_WORDS for part in (triple.source, triple.target, triple.relation)):
                    triples[triple] = None
        return Reading(list(triples))

    def fault(self, path: Path) -> str:
        """An inverse capital names a start; the language has no words for it further on."""
        return ONLY_A_START if any(triple.inverse for triple in path[1:]) else ""

    def word(self, riddles: Sequence[Riddle]) -> Iterator[str | Refused]:
        """By rule, so that nothing is refused."""
        return map(_question, riddles)


def _triple(stated: Statement, document: Document) -> Triple:
    start = document.text.index(stated.sentence, stated.start)
    place = document.id, start, start + len(stated.sentence)
    if stated.inverse and stated.relation == CAPITAL_OF.name:
        return Triple(stated.relation, stated.value, stated.subject, True, *place)
    return Triple(stated.relation, stated.subject, stated.value, False, *place)


def _question(riddle: Riddle) -> str:
    last = riddle.hops[-1]
    if riddle.kind == "dialogue":
        return dialogue_question(Relation(last.relation), last.source)
    if last.inverse:
        return capital_inverse_question(last.source)
    return Relation(last.relation).question(_described(riddle.hops[:-1], riddle.hops[0].source))


def _described(path: Path, start: str) -> str:
    """Name the end of a path by its start: "the largest neighbour of the country with the capital Paris"."""
    for triple in path:
        start = described_by_capital(start) if triple.inverse else described_by(Relation(triple.relation), start)
    return start


class ModelLanguage:
    """Whatever language the documents and the writer model share."""

    kinds = MODEL_KINDS
    most_clues = 2

    def __init__(self, model: ChatModel, seed: int) -> None:
        """The seed tells this run's requests from those of others."""
        self._model = model
        self._seed = seed

    def read(self, documents: Iterable[Document]) -> Reading:
        """Facts that the documents really state, walkable both ways: of records by their layout, the rest by the model.

        A file that is a record is read without asking; what the model finds in others adds to what their layout says.
        """
        records = RecordReader()
        told = extract(self._model, records.left(documents), self._seed)
        return Reading(both_ways([*records.triples, *told.triples]), records.rejections + told.rejections)

    def fault(self, path: Path) -> str:
        """What has the same number as something else, or the same date, has nothing to do with it."""
        return JOINED_BY_NUMBER if any(read_quantity(triple.source) for triple in path[1:]) else ""

    def word(self, riddles: Sequence[Riddle]) -> Iterator[str | Refused]:
        """The model sees no answer; what it writes is checked."""
        return word_riddles(self._model, riddles, self._seed)
