"""Held-out means held out: no document, cluster, text or question of an evaluation set serves training.

Questions are compared as GPT-3 compared its training data (Brown et al. 2020, appendix C): two texts that share a run
of n words overlap, except where the run is a phrase that many questions are made of.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tasks.errors import InputError
from tasks.records import AnswerKind, Document, Question, Split
from tasks.rewards.normalise import normalise

COMMON = 10  # training questions with the same run of words: it is a template's, not a question's (GPT-3: documents)


class Leak(StrEnum):
    """Why a question must not be used in its split."""

    UNKNOWN_DOCUMENT = "unknown_document"
    OTHER_SPLIT = "document_of_another_split"


@dataclass(frozen=True)
class Survey:
    """What the checks need to know of all documents: their splits, and whose text a digest is."""

    splits: Mapping[str, Split]
    texts: Mapping[bytes, str]


def survey(documents: Iterable[Document]) -> Survey:
    """Read the documents once, refusing a corpus in which a cluster, or a text, is in two splits.

    Raises:
        InputError: names the two documents and the remedy.
    """
    splits: dict[str, Split] = {}
    clusters: dict[str, str] = {}
    texts: dict[bytes, str] = {}
    for document in documents:
        splits[document.id] = document.split
        for what, first in (
            ("cluster", clusters.setdefault(document.cluster, document.id)),
            ("text", texts.setdefault(digest(normalise(document.text)), document.id)),
        ):
            if splits[first] != document.split:
                raise InputError(
                    f"documents {first!r} ({splits[first]}) and {document.id!r} ({document.split}) have the "
                    f"same {what}; a {what} belongs to one split: run python -m tasks.corpus.ingest again"
                )
    return Survey(splits, texts)


def leak_of(question: Question, splits: Mapping[str, Split]) -> Leak | None:
    """How a question's evidence breaks the split; None when all of it exists in the question's own split."""
    found = {splits.get(identifier) for identifier in question.document_ids}
    if None in found:
        return Leak.UNKNOWN_DOCUMENT
    return None if found <= {question.split} else Leak.OTHER_SPLIT


class Watch:
    """Finds training questions, and their documents, in evaluation sets that are read past it.

    Only what is watched for is held in memory, so that the sets may be of any size. A question of fewer words than
    `ngram`, answer included, is found where an evaluation text equals it, with its answer or without.

    Args:
        questions: the training questions.
        texts: digests of the documents' texts, as in `Survey`.
        ngram: words of a run that two texts must share.
    """

    def __init__(self, questions: Sequence[Question], texts: Mapping[bytes, str], ngram: int) -> None:
        self._ngram = ngram
        self._texts = texts
        self._runs: dict[bytes, list[str]] = defaultdict(list)
        self._readers: dict[str, list[str]] = defaultdict(list)
        self.hits: dict[str, str] = {}
        for question in questions:
            for name in question.document_ids:
                self._readers[name].append(question.id)
            for run in self._watched(question):
                self._runs[run].append(question.id)
        self._runs = {run: names for run, names in self._runs.items() if len(names) <= COMMON}

    def look(self, text: str, source: str) -> None:
        """Read a text of an evaluation set: `hits` maps the questions found there to the first such set."""
        words = normalise(text).split()
        if not words:
            return
        whole = digest(" ".join(words))
        found = [name for run in {whole, *_runs(words, self._ngram)} for name in self._runs.get(run, ())]
        if whole in self._texts:
            found += self._readers[self._texts[whole]]
        for name in found:
            self.hits.setdefault(name, source)

    def _watched(self, question: Question) -> set[bytes]:
        words = normalise(asked_and_answered(question)).split()
        if len(words) >= self._ngram:
            return set(_runs(words, self._ngram))
        texts = {" ".join(words), normalise(question.question)} - {""}
        return {digest(text) for text in texts}


def asked_and_answered(question: Question) -> str:
    """A question and its answer as one text; the answer of multiple choice is the option's."""
    return f"{question.question} {' '.join(answer_texts(question))}"


def answer_texts(question: Question) -> tuple[str, ...]:
    """The gold answer in words: for a letter, its option."""
    if question.answer_kind is AnswerKind.LETTER and question.options:
        return (question.options[ord(question.gold[0]) - ord("A")],)
    return question.gold


def digest(text: str) -> bytes:
    """16 bytes that stand for a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _runs(words: Sequence[str], length: int) -> Iterator[bytes]:
    return (digest(" ".join(words[start : start + length])) for start in range(len(words) - length + 1))
