"""From riddles to questions: worded in batches, checked, recorded, and all that fails counted."""

from collections.abc import Iterator, Mapping
from itertools import islice

from tasks.corpus.names import mentions
from tasks.generation.structured import UNANSWERED, Refused
from tasks.records import Document, Question
from tasks.synthesis.language import Language
from tasks.synthesis.leaks import GIVEN_AWAY, LeakGuard
from tasks.synthesis.questions import IN_PLAIN_WORDS, Harvest, Source, in_plain_words
from tasks.synthesis.riddles import Riddle
from tasks.synthesis.triples import recorded
from tasks.synthesis.wording import plain_words

WORDINGS_PER_QUESTION = 4


class Asker:
    """Fills one harvest. The guard may be shared by the harvests of a split."""

    def __init__(self, source: Source, library: Mapping[str, Document], language: Language, guard: LeakGuard) -> None:
        self.harvest = Harvest()
        self._source = source
        self._library = library
        self._language = language
        self._guard = guard

    def ask(self, riddles: Iterator[Riddle], wanted: int) -> int:
        """Add up to `wanted` questions; return how many there were.

        No more riddles are worded at a time than are missing, and no more in all than `WORDINGS_PER_QUESTION` for each
        question wanted: a writer that fails at all of them must not be paid for ever.
        """
        before = len(self.harvest.questions)
        tried = islice(filter(self._sound, riddles), WORDINGS_PER_QUESTION * wanted)
        while batch := list(islice(tried, wanted + before - len(self.harvest.questions))):
            for riddle, text in zip(batch, self._language.word(batch), strict=True):
                self._take(riddle, text)
        return len(self.harvest.questions) - before

    def _sound(self, riddle: Riddle) -> bool:
        """Whether the words that a question must have hide what it must hide."""
        said = "\n".join((*riddle.keep, *(relation for _, relation, _ in riddle.lines)))
        told = any(mentions(said, name) for name in riddle.hide)
        if told:
            self.harvest.rejections[GIVEN_AWAY] += 1
        return not told

    def _take(self, riddle: Riddle, worded: str | Refused) -> None:
        """Where the writer's words are refused, plain ones will do: a weak writer lowers fluency, not yield."""
        if not isinstance(worded, Refused):
            self._keep(riddle, self._question(riddle, worded))
            return
        plain = "" if worded.reason == UNANSWERED else plain_words(riddle)
        self.harvest.rejections[f"{IN_PLAIN_WORDS}: {worded.reason}" if plain else worded.reason] += 1
        if plain:
            self._keep(riddle, in_plain_words(self._question(riddle, plain), worded))

    def _keep(self, riddle: Riddle, question: Question) -> None:
        problem = self._guard.refuse(question, riddle)
        if problem:
            self.harvest.rejections[problem] += 1
        else:
            self.harvest.questions.append(question)

    def _question(self, riddle: Riddle, text: str) -> Question:
        texts = {triple.document_id: self._library[triple.document_id].text for triple in riddle.facts}
        record = {"hops": riddle.hops, "clues": riddle.clues}
        return self._source.question(
            text,
            riddle.gold,
            kind=riddle.answer_kind,
            evidence=list(texts),
            difficulty=len(riddle.facts),
            facts=list(dict.fromkeys(triple.fact for triple in riddle.facts)),
            provenance={
                "kind": riddle.kind,
                **{name: [recorded(one, texts[one.document_id]) for one in facts] for name, facts in record.items()},
            },
            options=riddle.options,
        )
