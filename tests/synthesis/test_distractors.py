import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.corpus.grammar import CALLING_CODE, CURRENCY, LARGEST_NEIGHBOUR
from tasks.corpus.library import Library
from tasks.errors import InputError
from tasks.prompts import answer_prompt
from tasks.records import AnswerKind, Document, Domain, Question
from tasks.synthesis import distractors
from tasks.synthesis.distractors import FULL, extend

from .examples import document, reported


def words(text: str) -> int:
    return len(text.split())


def free(name: str, text: str) -> Document:
    return document(name, text, "text")


def money(name: str, cluster: str = "c") -> Document:
    return document(f"money of {name}", CURRENCY.sentence(name, f"{name}X"), cluster=cluster)


def asked(text: str, gold: str, evidence: str = "evidence", *, facts: list[tuple[str, str]], **others: Any) -> Question:
    known: dict[str, Any] = {
        "id": "q",
        "domain": Domain.READING_COMPREHENSION,
        "question": text,
        "gold": (gold,),
        "answer_kind": AnswerKind.TEXT,
        "document_ids": (evidence,),
        "split": "train",
        "generator": "knowledge_graph",
        "difficulty": 1,
        "provenance": {"kind": "triple", "facts": [list(fact) for fact in facts]},
        "seed": 0,
    }
    return Question(**known | others)


def about(name: str) -> Question:
    return asked(CURRENCY.question(name), f"{name}X", f"money of {name}", facts=[("currency", name.casefold())])


def hop(source: str, relation: str, target: str) -> dict[str, str]:
    return {"source": source, "relation": relation, "target": target}


def chosen(question: Question, *documents: Document) -> set[str]:
    """The distractors where there is room for all."""
    context = extend(question, Library.of(documents), 9999, words, random.Random(0))
    assert set(question.document_ids) <= set(context) and len(set(context)) == len(context)
    return set(context) - set(question.document_ids)


def test_evidence_comes_with_near_documents_first() -> None:
    documents = [
        money("Chad"),
        money("Peru", cluster="far"),
        money("Mali"),
        document("talk", f"Ana: {CALLING_CODE.sentence('Mali', '223')}", "dialogue", cluster="far"),
        document("other split", CURRENCY.sentence("Togo", "XOF"), split="test"),
    ]
    question, library = about("Chad"), Library.of(documents)
    rendered = words(answer_prompt([documents[0].text] * 2, question.question))
    assert set(extend(question, library, rendered, words, random.Random(0))) == {"money of Chad", "money of Mali"}
    orders = {extend(question, library, 999, words, random.Random(seed)) for seed in range(20)}
    assert {frozenset(order) for order in orders} == {
        frozenset({"money of Chad", "money of Mali", "money of Peru", "talk"})
    }
    assert len({order.index("money of Chad") for order in orders}) == 4


def test_documents_that_also_answer_or_contradict_are_left_out() -> None:
    again = document("again", CURRENCY.sentence("CHAD", "EUR"), "text")
    assert chosen(about("Chad"), money("Chad"), again, money("Mali")) == {"money of Mali"}


def test_another_dialogue_about_the_same_country_is_left_out() -> None:
    first = document("one", f"Ana: {CALLING_CODE.sentence('Chad', '1')}", "dialogue")
    second = document("two", f"Ben: {CALLING_CODE.sentence('Chad', '2')}", "dialogue")
    question = asked("In the dialogue, what is it?", "1", "one", facts=[("calling code", "chad")])
    assert chosen(question, first, second) == set()


def test_a_report_with_a_row_that_is_asked_for_is_left_out() -> None:
    reports = [reported("r1", "m", A=1, B=2), reported("r2", "m", A=1, C=5), reported("r3", "m", D=1)]
    question = asked("What is the total number of m of A and B?", "3", "r1", facts=[("m", "a"), ("m", "b")])
    assert chosen(question, *reports, reported("r4", "n", A=7)) == {"r3", "r4"}


def test_a_document_that_names_both_ends_of_a_path_is_left_out() -> None:
    path = [document("a", LARGEST_NEIGHBOUR.sentence("Chad", "Mali")), document("b", CURRENCY.sentence("Mali", "XOF"))]
    hops = [hop("Chad", "largest neighbour", "Mali"), hop("Mali", "currency", "XOF")]
    facts = [["largest neighbour", "chad"], ["currency", "mali"]]
    question = asked("What is it?", "XOF", facts=[], domain=Domain.MULTI_HOP, document_ids=("a", "b"))
    question = question.model_copy(update={"provenance": {"kind": "path", "facts": facts, "hops": hops}})
    both = document("both", "Chad once paid with XOF coins", "dialogue")
    half = document("half", "Mali once paid with XOF coins", "dialogue")  # closed: it states no fact
    free_half = free("free half", "Mali once paid with XOF coins")
    assert chosen(question, *path, both, half, free_half, money("Peru")) == {"half", "money of Peru"}


OTHERS = [free(f"other {number}", f"In town {number} a mill was built of stone.") for number in range(60)]
MILL = free("evidence", "The Rossi mill was built of stone by Ada Bruni.")


def test_free_text_that_mentions_the_answer_and_what_is_asked_about_is_left_out() -> None:
    question = asked("Who built the Rossi mill?", "Ada Bruni", facts=[("builder", "rossi mill")])
    answering = free("answering", "Visitors of the Rossi mill like the work of ADA BRUNI.")
    near = [free("no answer", "The Rossi mill burnt."), free("no name", "Ada Bruni was born in Lucca.")]
    closed = document("closed", "The age of Ada Bruni is 3. The Rossi mill stands.", "encyclopaedia")  # facts are read
    assert chosen(question, MILL, answering, *near, closed, *OTHERS) == {
        "no answer",
        "no name",
        "closed",
        *(one.id for one in OTHERS),
    }


def test_an_answer_that_many_documents_mention_does_not_excuse_one() -> None:
    question = asked("Was the Rossi mill of stone?", "stone", facts=[("material", "rossi mill")])
    unsaid = free("unsaid", "The Rossi mill burnt.")  # "stone" stands everywhere: that it is not here says little
    assert "unsaid" not in chosen(question, MILL, unsaid, *OTHERS)


def test_names_come_from_the_question_where_no_fact_is_recorded() -> None:
    question = asked("Who built the Rossi's mill?", "Ada Bruni", facts=[])
    answering = free("answering", "Ada Bruni and the Rossi mill.")
    assert chosen(question, MILL, answering, *OTHERS) == {one.id for one in OTHERS}
    nameless = asked("who built it?", "Ada Bruni", facts=[])
    assert chosen(nameless, MILL, free("answering", "Ada Bruni built."), *OTHERS) == {one.id for one in OTHERS}


def test_a_letter_stands_for_its_option() -> None:
    question = asked(
        "Who built the Rossi mill?", "B", facts=[], answer_kind=AnswerKind.LETTER, options=("Eva Dini", "Ada Bruni")
    )
    wrong, right = free("wrong", "Eva Dini saw the Rossi mill."), free("right", "Ada Bruni saw the Rossi mill.")
    assert chosen(question, MILL, wrong, right, *OTHERS) == {"wrong", *(one.id for one in OTHERS)}


def test_documents_that_share_no_word_fill_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distractors, "FIRST_FETCH", 2)
    question = asked("Who built the Rossi mill?", "Ada Bruni", facts=[])
    strangers = [free(f"s{number}", f"x{number} " * 10) for number in range(5)]
    assert chosen(question, MILL, *strangers, *OTHERS) == {one.id for one in (*strangers, *OTHERS)}
    library = Library.of([MILL, *strangers, *OTHERS])
    first = [extend(question, library, 60, words, random.Random(seed)) for seed in (1, 1, 2)]
    assert first[0] == first[1] != first[2]
    assert not {one.id for one in strangers} & set(first[0])


def test_a_full_context_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return words(text)

    documents = [free(f"d{number}", f"mill {'word ' * 50}{number}") for number in range(500)]
    question = asked("Who built the Rossi mill?", "Ada Bruni", facts=[])
    extend(question, Library.of([MILL, *documents]), 160, count, random.Random(0))
    assert len(counted) < 2 * FULL


def test_the_subject_of_a_fact_that_is_the_answer_is_not_what_is_asked_about() -> None:
    question = asked("Which mill did Ada Bruni build?", "Rossi mill", facts=[("builder", "rossi mill")])
    near = free("near", "The Rossi mill burnt.")
    answering = free("answering", "Ada Bruni made the Rossi mill.")
    assert chosen(question, MILL, near, answering, *OTHERS) == {"near", *(one.id for one in OTHERS)}


def test_evidence_that_does_not_fit_or_is_unknown_is_an_error() -> None:
    with pytest.raises(InputError, match=r"needs \d+ tokens, more than the 3 allowed"):
        extend(about("Chad"), Library.of([money("Chad")]), 3, words, random.Random(0))
    with pytest.raises(InputError, match="unknown documents money of Chad"):
        extend(about("Chad"), Library.of([]), 99, words, random.Random(0))


MONEY = Library.of(money(f"N{number}") for number in range(60))


@settings(max_examples=30)
@given(st.integers(20, 400), st.integers(0, 9))
def test_contexts_fill_the_bucket_without_exceeding_it(bucket: int, seed: int) -> None:
    question = about("N7")
    ids = extend(question, MONEY, bucket, words, random.Random(seed))
    length = words(answer_prompt([MONEY[one].text for one in ids], question.question))
    assert bucket - 9 < length <= bucket  # one more document takes 9 words
    assert len(set(ids)) == len(ids)
    assert "money of N7" in ids


@pytest.mark.parametrize("bucket", [300, 700, 1500])
def test_longer_numbers_of_later_documents_are_paid_for(bucket: int) -> None:
    question = about("N7")
    ids = extend(question, MONEY, bucket, len, random.Random(0))  # a token per character
    assert bucket - 60 < len(answer_prompt([MONEY[one].text for one in ids], question.question)) <= bucket
