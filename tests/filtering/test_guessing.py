"""Guess baselines by hand."""

import pytest

from tasks.filtering.guessing import answer_shares, guess_rate
from tasks.records import AnswerKind, Domain
from tests.filtering.builders import item, question


def test_multiple_choice_is_one_in_the_options() -> None:
    asked = question(gold=("B",), kind=AnswerKind.LETTER, options=("Rome", "Oslo", "Bern"))
    assert guess_rate(item(asked)) == pytest.approx(1 / 3)


def test_text_is_the_share_of_the_same_place_in_sentences() -> None:
    documents = (
        "The capital of France is Paris. The capital of Norway is Oslo.",
        "Lima is the capital of Peru. The currency of Peru is sol. The capital of France is Paris.",
    )
    assert guess_rate(item(question(), documents=documents)) == pytest.approx(2 / 4)


def test_numbers_of_a_table() -> None:
    table = "Yearly report:\n| Chad | languages | 3 |\n| Mali | languages | 5 |\n| Mali | provinces | 3 |"
    asked = question(gold=("5",), kind=AnswerKind.NUMBER)
    assert guess_rate(item(asked, documents=(table,))) == pytest.approx(1 / 2)
    both = question(gold=("3",), kind=AnswerKind.NUMBER)  # a place of its own in each measure
    assert guess_rate(item(both, documents=(table,))) == pytest.approx(2 / 3)


def test_a_sum_is_not_in_the_documents() -> None:
    asked = question(gold=("8",), kind=AnswerKind.NUMBER)
    assert guess_rate(item(asked, documents=("| Chad | languages | 3 |\n| Mali | languages | 5 |",))) == 0.0


@pytest.mark.parametrize(
    ("gold", "kind", "text", "rate"),
    [
        (("Ada Byron",), AnswerKind.TEXT, "Then Ada Byron met Charles Babbage and Mary Shelley.", 1 / 3),
        (("red",), AnswerKind.TEXT, "red or blue", 1 / 3),
        (("7",), AnswerKind.NUMBER, "It cost 7 in 1990, 7 in 1991.", 2 / 4),
        (("7",), AnswerKind.NUMBER, "", 0.0),
    ],
)
def test_any_text_without_fact_sentences(gold: tuple[str, ...], kind: AnswerKind, text: str, rate: float) -> None:
    assert guess_rate(item(question(gold=gold, kind=kind), documents=(text,))) == pytest.approx(rate)


def test_lists_of_no_or_several_elements_are_not_guessed() -> None:
    for gold in ((), ("Paris", "Oslo")):
        assert guess_rate(item(question(gold=gold, kind=AnswerKind.LIST))) == 0.0


def test_answer_shares_leave_the_question_itself_out() -> None:
    def numeric(name: str, gold: str) -> object:
        return question(name, domain=Domain.CORPUS_NUMERIC, gold=(gold,), kind=AnswerKind.NUMBER)

    asked = [numeric("a", "2"), numeric("b", "2"), numeric("c", "3"), question("alone")]
    letter = question("letter", gold=("A",), kind=AnswerKind.LETTER)
    assert answer_shares([*asked, letter]) == {"a": 0.5, "b": 0.5, "c": 0.0, "alone": 0.0}  # type: ignore[list-item]
