"""Dialogue memory: what a dialogue says last about a value that may have been corrected on the way."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tasks.corpus.library import Library
from tasks.corpus.names import key
from tasks.records import Domain, Split
from tasks.synthesis.asking import Asker
from tasks.synthesis.clustering import entity_form, relation_form
from tasks.synthesis.language import Language
from tasks.synthesis.leaks import LeakGuard
from tasks.synthesis.questions import Harvest, Source
from tasks.synthesis.riddles import Riddle
from tasks.synthesis.triples import Path, Triple


@dataclass(frozen=True)
class Thread:
    """All statements of one dialogue about one value, in order; the last one counts."""

    said: Path

    @property
    def corrected(self) -> Path:
        """Earlier statements that differ from the last."""
        return tuple(one for one in self.said if entity_form(one.object) != entity_form(self.said[-1].object))

    def riddle(self) -> Riddle:
        """Ask for the last word."""
        last = self.said[-1]
        return Riddle(
            kind="dialogue",
            hops=(last,),
            lines=((last.subject, last.relation, "[1]"),),
            asks="who or what is [1] in the end, according to the dialogue, in which it may have been corrected",
            keep=(last.subject,),
            hide=tuple(one.object for one in self.said),
            gold=last.object,
            clues=self.corrected,
            scope=last.document_id,
        )


def dialogue_questions(library: Library, split: Split, wanted: int, seed: int, language: Language) -> Harvest:
    """Ask up to `wanted` values, corrected ones first; one question per dialogue and value."""
    asker = Asker(Source(Domain.DIALOGUE_MEMORY, "self_play", split, seed), library, language, LeakGuard())
    reading = language.read(document for document in library.stream(split) if document.kind == "dialogue")
    asker.harvest.rejections.update(reading.rejections)
    found = list(threads(reading.triples))
    random.Random(f"{seed} {split} dialogues").shuffle(found)
    found.sort(key=lambda thread: not thread.corrected)
    asker.ask((thread.riddle() for thread in found), wanted)
    return asker.harvest


def threads(triples: Iterable[Triple]) -> Iterator[Thread]:
    """What each dialogue says about each value, in the order in which it says it."""
    said: dict[tuple[str, str, str], list[Triple]] = {}
    for triple in sorted(triples, key=lambda one: (one.document_id, one.start)):
        if not triple.inverse:
            about = triple.document_id, relation_form(triple.relation), key(triple.subject)
            said.setdefault(about, []).append(triple)
    yield from (Thread(tuple(statements)) for statements in said.values())
