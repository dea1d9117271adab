"""Sentences and rows are read back as they were written."""

from hypothesis import given
from hypothesis import strategies as st

from tasks.corpus.grammar import (
    CAPITAL,
    CAPITAL_OF,
    MEASURES,
    RELATIONS,
    row,
    rows,
    statements,
    total_question,
)

names = st.from_regex(r"[A-Z][a-z]{1,8}( [A-Z][a-z]{1,8})?", fullmatch=True)


@given(names, names, st.sampled_from(sorted(RELATIONS)))
def test_a_direct_sentence_is_read_back(subject: str, value: str, name: str) -> None:
    sentence = RELATIONS[name].sentence(subject, value)
    (found,) = statements(f"{sentence} Something else.")
    assert (found.relation, found.subject, found.value, found.inverse) == (name, subject, value, False)
    assert found.sentence == sentence


@given(names, names)
def test_an_inverse_sentence_is_read_back(subject: str, value: str) -> None:
    (found,) = statements(CAPITAL_OF.sentence(subject, value))
    assert (found.relation, found.subject, found.value, found.inverse) == ("capital", subject, value, True)


def test_statements_come_in_the_order_of_the_text() -> None:
    text = "Paris is the capital of France. The capital of Peru is Lima. Rome is the capital of Italy."
    assert [(found.value, found.inverse) for found in statements(text)] == [
        ("Paris", True), ("Lima", False), ("Rome", True),
    ]  # fmt: skip


def test_a_correction_in_a_dialogue_is_a_statement() -> None:
    text = "Ana: The calling code of Chad is 12.\nBen: No, the calling code of Chad is 235."
    assert [found.value for found in statements(text)] == ["12", "235"]


def test_a_statement_does_not_reach_over_sentences_or_rows() -> None:
    assert list(statements("The capital of France. It is Paris.")) == []
    assert list(statements("The capital of\nFrance is Paris.")) == []
    assert list(statements("")) == []


@given(names, st.sampled_from(MEASURES), st.integers(0, 10**9))
def test_a_row_is_read_back(country: str, measure: str, count: int) -> None:
    text = f"Yearly report on X:\n{row(country, measure, count)}\n{row('Chad', measure, 3)}"
    assert list(rows(text)) == [(country, measure, count), ("Chad", measure, 3)]


def test_a_question_lists_its_countries() -> None:
    expected = "What is the total number of languages of Chad, Mali and Niger?"
    assert total_question("languages", ["Chad", "Mali", "Niger"]) == expected


def test_both_directions_state_one_fact() -> None:
    assert CAPITAL.sentence("France", "Paris") == "The capital of France is Paris."
    assert CAPITAL_OF.sentence("France", "Paris") == "Paris is the capital of France."
