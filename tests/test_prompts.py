"""Prompts and the parsers of replies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.prompts import (
    MemoryState,
    Proposal,
    answer_prompt,
    parse_proposal,
    parse_update,
    parse_verdict,
)
from tasks.records import Verdict


def test_an_answer_prompt_numbers_documents_and_letters_options() -> None:
    assert answer_prompt(["One.", "Two."], "Which?", ["x", "y"]) == (
        "Document 1: One.\nDocument 2: Two.\nQuestion: Which? Options: x (A), y (B)."
    )
    assert answer_prompt([], "Which?") == "Question: Which?"


def test_the_last_update_of_a_reply_counts() -> None:
    text = "<memory> a </memory> <plan> b </plan> again <memory> c </memory> <plan> </plan>"
    assert parse_update(text) == MemoryState("c", "read")


@pytest.mark.parametrize("text", ["", "<memory> a", "<memory> </memory> <plan> b </plan>", "<plan> b </plan>"])
def test_a_broken_update_is_none(text: str) -> None:
    assert parse_update(text) is None


def test_a_proposal_is_read() -> None:
    expected = Proposal("What is the capital of Chad?", "N'Djamena")
    assert parse_proposal("Question: What is the capital of Chad? Answer: N'Djamena.") == expected
    assert parse_proposal("Question : What is the capital of Chad? Answer : N'Djamena.") == expected
    assert parse_proposal("Question: no mark Answer: x") is None


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("INCORRECT", Verdict.WRONG),
        ("CORRECT", Verdict.CORRECT),
        ('{"match": "false"}', Verdict.WRONG),
        ('{"match": false}', Verdict.WRONG),
        ('{"match": true}', Verdict.CORRECT),
        ('{"reason": "no verdict given"}', Verdict.UNSCORED),
        ('{"match": "perhaps"}', Verdict.UNSCORED),
        ("", Verdict.UNSCORED),
        ("[1]", Verdict.UNSCORED),
        ("true", Verdict.UNSCORED),
        ("It first looks CORRECT, but the unit differs. Final verdict: INCORRECT", Verdict.WRONG),
        ("The phrasing is not incorrect. Verdict: CORRECT", Verdict.CORRECT),
        ("Verdict: not correct", Verdict.WRONG),
        ("incorrectly formatted", Verdict.UNSCORED),
    ],
)
def test_a_judge_reply_is_read_with_three_outcomes(text: str, verdict: Verdict) -> None:
    assert parse_verdict(text) is verdict


@given(st.text(max_size=200))
def test_parsers_never_raise(text: str) -> None:
    parse_update(text)
    parse_proposal(text)
    assert parse_verdict(text) in Verdict
