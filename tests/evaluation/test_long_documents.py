from tasks.corpus.library import Library
from tasks.evaluation.long_documents import long_items, long_questions
from tasks.records import Document, Domain
from tests.evaluation.conftest import ItemFactory


def document(number: int, words: int = 10) -> Document:
    return Document(
        id=f"d{number}",
        title=f"Title {number}",
        text=" ".join(f"w{number}" for _ in range(words)),
        kind="text",
        cluster=f"c{number}",
        split="test",
        source="test",
    )


def words(text: str) -> int:
    return len(text.split())


def test_single_evidence_questions_domains_in_turn_each_once(item: ItemFactory) -> None:
    reading, dialogue, hop = Domain.READING_COMPREHENSION, Domain.DIALOGUE_MEMORY, Domain.MULTI_HOP
    items = [
        item("r1", reading, 128),
        item("r1", reading, 512),
        item("r2", reading),
        item("r3", reading),
        item("h1", hop, evidence=("d0", "d1")),
        item("d1", dialogue),
    ]
    assert [question.id for question in long_questions(items, 3)] == ["d1", "r1", "r2"]
    assert [question.id for question in long_questions(items, 9)] == ["d1", "r1", "r2", "r3"]
    assert long_questions([items[4]], 9) == []


def test_contexts_are_filled_with_the_evidence_inside(item: ItemFactory) -> None:
    documents = Library.of(map(document, range(30)))
    (long,) = long_items([item().question], documents, 200, words, seed=0)
    assert "d0" in long.document_ids
    assert len(set(long.document_ids)) == len(long.document_ids)
    assert long.documents == tuple(documents[name].text for name in long.document_ids)
    assert long.length_bucket == 200
    assert 180 <= long.input_tokens <= 200


def test_the_same_seed_gives_the_same_contexts(item: ItemFactory) -> None:
    documents = Library.of(map(document, range(30)))
    first, again = (long_items([item().question], documents, 200, words, seed=0) for _ in range(2))
    assert first == again


def test_a_corpus_too_short_gives_no_contexts(item: ItemFactory) -> None:
    documents = Library.of(map(document, range(10)))
    assert long_items([item().question], documents, 200, words, seed=0) == []
    assert long_items([], documents, 200, words, seed=0) == []
