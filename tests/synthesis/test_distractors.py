import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpus.grammar import CALLING_CODE, CURRENCY, LARGEST_NEIGHBOUR
from tasks.errors import InputError
from tasks.prompts import answer_prompt
from tasks.records import Document, Question
from tasks.synthesis.dialogues import dialogue_questions
from tasks.synthesis.distractors import extend
from tasks.synthesis.facts import reading_questions
from tasks.synthesis.multi_hop import multi_hop_questions
from tasks.synthesis.tables import numeric_questions

from .examples import document, reported


def words(text: str) -> int:
    return len(text.split())


def by_id(*documents: Document) -> dict[str, Document]:
    return {one.id: one for one in documents}


def money(name: str, cluster: str = "c") -> Document:
    return document(f"money of {name}", CURRENCY.sentence(name, f"{name}X"), cluster=cluster)


def about(documents: dict[str, Document], subject: str) -> Question:
    questions = reading_questions([*documents.values()], "train", 99, 0).questions
    return next(question for question in questions if question.question.endswith(f" {subject}?"))


def test_evidence_comes_with_near_documents_first() -> None:
    documents = by_id(
        money("Chad"),
        money("Peru", cluster="far"),
        money("Mali"),
        document("talk", f"Ana: {CALLING_CODE.sentence('Mali', '223')}", "dialogue", cluster="far"),
        document("other split", CURRENCY.sentence("Togo", "XOF"), split="test"),
    )
    question = about(documents, "Chad")
    rendered = words(answer_prompt([documents["money of Chad"].text] * 2, question.question))
    assert set(extend(question, documents, rendered, words, random.Random(0))) == {
        "money of Chad",
        "money of Mali",
    }
    everything = extend(question, documents, 999, words, random.Random(0))
    assert set(everything) == {"money of Chad", "money of Mali", "money of Peru", "talk"}
    orders = {extend(question, documents, 999, words, random.Random(seed)) for seed in range(20)}
    assert len({order.index("money of Chad") for order in orders}) == 4


def test_documents_that_also_answer_or_contradict_are_left_out() -> None:
    documents = by_id(
        money("Chad"),
        document("again", CURRENCY.sentence("CHAD", "EUR"), "text", split="train"),
        money("Mali"),
    )
    question = about({"money of Chad": documents["money of Chad"]}, "Chad")
    assert set(extend(question, documents, 999, words, random.Random(0))) == {
        "money of Chad",
        "money of Mali",
    }


def test_another_dialogue_about_the_same_country_is_left_out() -> None:
    first = document("one", f"Ana: {CALLING_CODE.sentence('Chad', '1')}", "dialogue")
    second = document("two", f"Ben: {CALLING_CODE.sentence('Chad', '2')}", "dialogue")
    (question,) = dialogue_questions([first], "train", 9, 0).questions
    assert extend(question, by_id(first, second), 999, words, random.Random(0)) == ("one",)


def test_a_report_with_a_row_that_is_asked_for_is_left_out() -> None:
    asked = reported("r1", "m", A=1, B=2)
    other = [reported("r2", "m", A=1, C=5), reported("r3", "m", D=1), reported("r4", "n", A=7)]
    question = numeric_questions([asked], "train", 1, 0).questions[0]
    assert set(extend(question, by_id(asked, *other), 999, words, random.Random(0))) == {"r1", "r3", "r4"}


def test_a_document_that_names_both_ends_of_a_path_is_left_out() -> None:
    path = [
        document("a", LARGEST_NEIGHBOUR.sentence("Chad", "Mali")),
        document("b", CURRENCY.sentence("Mali", "XOF")),
    ]
    (question,) = multi_hop_questions(path, "train", 1, 2, 0).questions
    both = document("both", "Chad once paid with XOF coins", "dialogue")
    assert set(extend(question, by_id(*path, both, money("Peru")), 999, words, random.Random(0))) == {
        "a",
        "b",
        "money of Peru",
    }


def test_evidence_that_does_not_fit_or_is_unknown_is_an_error() -> None:
    documents = by_id(money("Chad"))
    question = about(documents, "Chad")
    with pytest.raises(InputError, match=r"needs \d+ tokens, more than the 3 allowed"):
        extend(question, documents, 3, words, random.Random(0))
    with pytest.raises(InputError, match="unknown documents money of Chad"):
        extend(question, {}, 99, words, random.Random(0))


@given(st.integers(20, 400), st.integers(0, 9))
def test_contexts_fill_the_bucket_without_exceeding_it(bucket: int, seed: int) -> None:
    documents = by_id(*(money(f"N{number}") for number in range(60)))
    question = about(documents, "N7")
    ids = extend(question, documents, bucket, words, random.Random(seed))
    length = words(answer_prompt([documents[one].text for one in ids], question.question))
    assert bucket - 9 < length <= bucket  # one more document takes 9 words
    assert len(set(ids)) == len(ids)
    assert "money of N7" in ids


@pytest.mark.parametrize("bucket", [300, 700, 1500])
def test_longer_numbers_of_later_documents_are_paid_for(bucket: int) -> None:
    documents = by_id(*(money(f"N{number}") for number in range(60)))
    question = about(documents, "N7")
    ids = extend(question, documents, bucket, len, random.Random(0))  # a token per character
    assert bucket - 60 < len(answer_prompt([documents[one].text for one in ids], question.question)) <= bucket
