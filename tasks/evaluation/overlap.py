"""What training and test data share: documents by id and by text, questions by their words."""

from collections.abc import Iterable

from tasks.filtering.contamination import Watch, asked_and_answered, digest
from tasks.records import Item, Question, Record
from tasks.rewards.normalise import normalise


class Overlap(Record):
    """Counts of what is in both. `questions` are training questions that share a run of `ngram` words with a test
    question, answers included, or equal it; runs that more than ten training questions hold are phrases of
    templates and do not count (`tasks.filtering.contamination`).
    """

    train_items: int
    test_items: int
    train_documents: int
    test_documents: int
    ngram: int
    document_ids: int
    document_texts: int
    questions: int


def overlap(train: Iterable[Item], test: Iterable[Item], ngram: int) -> Overlap:
    """Compare what training drew from with what evaluation asks, distractors included, as stored in their files."""
    trained, tested = _Seen(train), _Seen(test)
    watch = Watch([*trained.questions.values()], {}, ngram)
    for question in tested.questions.values():
        watch.look(asked_and_answered(question), question.id)
    return Overlap(
        train_items=trained.items,
        test_items=tested.items,
        train_documents=len(trained.documents),
        test_documents=len(tested.documents),
        ngram=ngram,
        document_ids=len(trained.documents & tested.documents),
        document_texts=len(trained.texts & tested.texts),
        questions=len(watch.hits),
    )


class _Seen:
    """Ids and text digests of a file's documents, and its questions by id; texts are read past, not kept."""

    def __init__(self, items: Iterable[Item]) -> None:
        self.items = 0
        self.documents: set[str] = set()
        self.texts: set[bytes] = set()
        self.questions: dict[str, Question] = {}
        for item in items:
            self.items += 1
            new = [
                text for name, text in zip(item.document_ids, item.documents, strict=True) if name not in self.documents
            ]
            self.documents.update(item.document_ids)
            self.texts.update(digest(normalise(text)) for text in new)
            self.questions[item.question.id] = item.question
