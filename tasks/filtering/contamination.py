"""Held-out means held out: no document, cluster or text of one split serves another."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from tasks.errors import InputError
from tasks.records import Document, Question
from tasks.rewards.normalise import normalise


class Leak(StrEnum):
    """Why a question must not be used in its split."""

    UNKNOWN_DOCUMENT = "unknown_document"
    OTHER_SPLIT = "document_of_another_split"


def check_splits(documents: Iterable[Document]) -> None:
    """Refuse a corpus in which a cluster, or a text, is in two splits.

    Raises:
        InputError: names the two documents and the remedy.
    """
    seen: dict[tuple[str, str], Document] = {}
    for document in documents:
        for what, value in (("cluster", document.cluster), ("text", normalise(document.text))):
            first = seen.setdefault((what, value), document)
            if first.split != document.split:
                raise InputError(
                    f"documents {first.id!r} ({first.split}) and {document.id!r} ({document.split}) have the "
                    f"same {what}; a {what} belongs to one split: run python -m tasks.corpus.ingest again"
                )


def leak_of(question: Question, documents: Mapping[str, Document]) -> Leak | None:
    """How a question's evidence breaks the split; None when all of it exists in the question's own split."""
    found = [documents.get(identifier) for identifier in question.document_ids]
    if any(document is None for document in found):
        return Leak.UNKNOWN_DOCUMENT
    if any(document is not None and document.split != question.split for document in found):
        return Leak.OTHER_SPLIT
    return None
