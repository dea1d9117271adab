"""Corpus-level questions: documents are read into one table, questions are drawn from it, their SQL gives the answers.

QwenLong-L1.5 §3.2, CorpusQA §3.2–3.5. A large library is read block by block, so that memory stays bounded: a question
is about documents of one block.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from tasks.corpus.library import Library
from tasks.corpus.names import key
from tasks.errors import UnsafeQueryError
from tasks.generation.structured import Refused
from tasks.records import Document, Domain, Finish, Question, Split, Verdict
from tasks.rewards.rules import check
from tasks.synthesis.questions import IN_PLAIN_WORDS, Harvest, Source, in_plain_words
from tasks.synthesis.tables.answers import gold
from tasks.synthesis.tables.choosing import Chooser, Chosen
from tasks.synthesis.tables.corpus_table import CorpusTable, corpus_table
from tasks.synthesis.tables.engine import LockedTable
from tasks.synthesis.tables.readers import Reader
from tasks.synthesis.tables.templates import Template
from tasks.synthesis.tables.wording import Asked, Put, Wording

BLOCK = 1000  # documents that make one table, at most
BLOCK_CHARACTERS = 50_000_000  # of its texts, on average at most
ATTEMPTS_PER_QUESTION = 30
NO_TABLE = "no column could be read from a block of documents"
NO_ROOM = "no question fits a table: too few rows, no numbers or dates, or its documents are too long together"


@dataclass(frozen=True)
class Language:
    """What is asked, and in which words."""

    templates: Sequence[Template]
    wording: Wording


@dataclass(frozen=True)
class Rules:
    """`evidence_tokens` is the most that the documents of a question may have together, as `count` says."""

    evidence_tokens: int
    count: Callable[[str], int]
    seed: int


def corpus_questions(
    library: Library, split: Split, wanted: int, rules: Rules, reader: Reader, language: Language
) -> Harvest:
    """Ask up to `wanted` questions about the tables in the documents of a split, the templates in turn.

    All blocks of documents give equally many, as far as they can.
    """
    harvest = Harvest()
    suitable = filter(reader.suits, library.stream(split))
    for number, size in enumerate(sizes := _block_sizes(reader, library, split)):
        block = list(islice(suitable, size))
        quota = -(-(wanted - len(harvest.questions)) // (len(sizes) - number))
        table = corpus_table(reader.read(block, harvest.rejections), harvest.rejections)
        session = _Session(table, block, Source(Domain.CORPUS_NUMERIC, "tables", split, rules.seed), rules, language)
        harvest.questions += session.ask(quota, f"{rules.seed} {split} tables {number}", harvest.rejections)
    return harvest


def _block_sizes(reader: Reader, library: Library, split: Split) -> list[int]:
    """How many documents make each block; equal to within one."""
    documents = characters = 0
    for document in library.stream(split):
        if reader.suits(document):
            documents += 1
            characters += len(document.text)
    blocks = max(-(-documents // BLOCK), -(-characters // BLOCK_CHARACTERS))
    return [len(range(number, documents, blocks)) for number in range(min(blocks, documents))]


class _Session:
    """Asks about one table."""

    def __init__(
        self, table: CorpusTable, block: Sequence[Document], source: Source, rules: Rules, language: Language
    ) -> None:
        self._table = table
        self._locked = LockedTable(table.all_columns)
        self._texts = {document.id: document.text for document in block}
        self._source = source
        self._rules = rules
        self._language = language
        self._tokens = lru_cache(maxsize=BLOCK)(lambda name: rules.count(self._texts[name]))

    def ask(self, wanted: int, seed: str, rejections: Counter[str]) -> list[Question]:
        """Up to `wanted` questions; the seed decides which."""
        questions: list[Question] = []
        asked = self._asked(wanted, random.Random(seed), rejections)
        while batch := list(islice(asked, wanted - len(questions))):  # a model is not asked about more than is wanted
            for put in self._language.wording.put(batch, self._locked):
                questions += self._taken(put, rejections)
        return questions

    def _taken(self, put: Put | Refused, rejections: Counter[str]) -> list[Question]:
        """The question, if it will do; counts what was refused of it."""
        question = None if isinstance(put, Refused) else self._question(put)
        if isinstance(put, Refused):
            rejections[put.reason] += 1
        elif question is None:
            rejections["the reward does not know the gold answer when it sees it"] += 1
        elif put.refused:
            rejections[f"{IN_PLAIN_WORDS}: {put.refused.reason}"] += 1
            question = in_plain_words(question, put.refused)
        return [question] if question else []

    def _asked(self, wanted: int, rng: random.Random, rejections: Counter[str]) -> Iterator[Asked]:
        """Questions with answers, each about other cells."""
        chooser = Chooser(self._table, self._fits, rng)
        seen: set[tuple[str, tuple[str, ...], frozenset[str]]] = set()
        for attempt in range(wanted * ATTEMPTS_PER_QUESTION if self._table.columns else 0):
            template = self._language.templates[attempt % len(self._language.templates)]
            chosen = chooser.choose(template)
            if chosen is None or (cells := _cells(template, chosen)) in seen:
                continue
            seen.add(cells)
            answered = self._answered(template, chosen)
            if isinstance(answered, str):
                rejections[answered] += 1
            else:
                yield answered
        if not seen:
            rejections[NO_ROOM if self._table.columns else NO_TABLE] += 1

    def _answered(self, template: Template, chosen: Chosen) -> Asked | str:
        """The question and its answer, or why there is none."""
        draft = template.draft(chosen.choice)
        if draft is None:
            return "the chosen rows have too few different values"
        try:
            answer = gold(self._locked.result(draft.sql), draft.form)
        except UnsafeQueryError:
            return "the query fails"
        return Asked(template, chosen, draft, answer) if isinstance(answer, tuple) else answer.value

    def _fits(self, documents: Sequence[str]) -> bool:
        return sum(map(self._tokens, documents)) <= self._rules.evidence_tokens

    def _question(self, put: Put) -> Question | None:
        """The record; None where the reward would refuse its own gold answer, as for names with commas in a list."""
        choice, draft = put.asked.chosen.choice, put.asked.draft
        sql = {"sql": draft.sql} | ({"model_sql": put.sql} if put.sql else {})
        question = self._source.question(
            put.text,
            "",
            kind=draft.form.kind,
            evidence=put.asked.chosen.documents,
            difficulty=put.asked.template.difficulty,
            facts=[(key(column.name), key(entity)) for column in choice.columns for entity in choice.entities],
            provenance={"kind": "sql", "template": put.asked.template.name, "form": draft.form.value, **sql},
        ).model_copy(update={"gold": put.asked.gold})
        reply = f"The answer is {', '.join(question.gold) or '[]'}."
        return question if check(reply, Finish.FINISHED, question) is Verdict.CORRECT else None


def _cells(template: Template, chosen: Chosen) -> tuple[str, tuple[str, ...], frozenset[str]]:
    columns = tuple(column.name for column in chosen.choice.columns)
    return template.name, columns, frozenset(chosen.choice.entities)
