"""More inputs of the kinds AC-01, AC-03, AC-05, AC-07, AC-09, EV-01 and JD-02, and NULL beside 0 (SQL-03)."""

import time

import pytest

from tasks.records import AnswerKind, Domain, Finish, Question, Verdict
from tasks.rewards.rules import check, extract_answer


def asked(kind: AnswerKind, *gold: str, text: str = "What?", options: tuple[str, ...] = ()) -> Question:
    return Question(
        id="q", domain=Domain.READING_COMPREHENSION, question=text, gold=gold, answer_kind=kind, options=options,
        document_ids=("d",), split="train", generator="self_play", difficulty=1, provenance={}, seed=0,
    )  # fmt: skip


def right(reply: str, question: Question, finish: Finish = Finish.FINISHED) -> bool:
    return check(reply, finish, question) is Verdict.CORRECT


@pytest.mark.parametrize(
    "reply",
    [
        r"\boxed{2^{2^{2^{2^{2^{2}}}}}}",
        r"\boxed{(10^{10^{10}})!}",
        r"\boxed{" + "(" * 3000 + "7" + ")" * 3000 + "}",
        r"\boxed{" * 2000 + "7" + "}" * 2000,
        "The answer is " + "9," * 20_000 + "7.",
        "Answer: 7e+999999",
        "the answer is " * 5000,
    ],
)
def test_ac01_no_answer_costs_time(reply: str) -> None:
    started = time.monotonic()
    assert not right(reply, asked(AnswerKind.NUMBER, "8"))
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("gold", ["An", "The", "a", "—", "?!", "  "])
@pytest.mark.parametrize("reply", ["The answer is Rome.", "Rome", "", "The answer is .", "the"])
def test_ac03_a_gold_of_articles_or_signs_pays_nobody_else(gold: str, reply: str) -> None:
    same = reply.strip(" .").lower() == gold.strip().lower() != ""
    assert right(reply, asked(AnswerKind.TEXT, gold)) is same


@pytest.mark.parametrize(
    ("gold", "reply", "text", "paid"),
    [
        ("5%", "0.05", "What share?", True),
        ("5%", "5", "What share?", False),  # asked for a share, 5 is 500 %
        ("0.5%", "0.5", "How many percent?", True),
        ("0.5%", "0.005", "How many percent?", False),
        ("150%", "1.5", "What ratio?", True),
        ("12.5%", "12.5 %", "What share?", True),
        ("1e-12", "2e-12", "What?", False),
        ("1e-12", "0", "What?", False),
        ("0.000001", "0.0000010001", "What?", True),  # within 0.15 %
        ("1000000", "1000001", "What?", False),  # integers exactly
    ],
)
def test_ac05_ac07_scales_and_small_numbers(gold: str, reply: str, text: str, paid: bool) -> None:
    assert right(f"The answer is {reply}.", asked(AnswerKind.NUMBER, gold, text=text)) is paid


@pytest.mark.parametrize(
    ("reply", "finish", "paid"),
    [
        ("<think>The answer is 7.", Finish.TRUNCATED, False),
        ("<think>The answer is 7.</think>", Finish.FINISHED, False),  # thought, never said
        ("<think>a</think><think>The answer is 7.", Finish.FINISHED, False),
        ("<think>The answer is 9.</think>The answer is 7.", Finish.FINISHED, True),
        ("The answer is 9.</think>The answer is 7. For", Finish.TRUNCATED, True),
        ("The answer is 9.</think>The answer is 7.", Finish.TRUNCATED, False),  # may have been about to become 7.5
    ],
)
def test_ac09_only_what_follows_the_reasoning_counts(reply: str, finish: Finish, paid: bool) -> None:
    assert right(reply, asked(AnswerKind.NUMBER, "7"), finish) is paid


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("After elimination, the answer is option (D).", "D"),
        ("The answer is C, not B.", "C"),
        ("The answer is [Ｃ].", "C"),
        ("Answer: A\nThat is a city.", "A"),
        ("A city on a river.", None),
        ("All of the above", None),
        ("<think>The answer is B.</think>", None),
    ],
)
def test_ev01_one_letter_or_none(reply: str, letter: str | None) -> None:
    options = ("Rome", "Oslo", "Bern", "Lima")
    paid = [gold for gold in "ABCD" if right(reply, asked(AnswerKind.LETTER, gold, options=options))]
    assert paid == ([letter] if letter else [])


@pytest.mark.parametrize("reply", ["…", "Sure!", "Let me think.", "答案", "Reasoning:", "###", "\n", "\u200b", "N/A"])
def test_jd02_openers_state_no_answer(reply: str) -> None:
    assert extract_answer(reply, Finish.FINISHED) is None
    for question in (asked(AnswerKind.NUMBER, "42"), asked(AnswerKind.TEXT, "Rome"), asked(AnswerKind.LIST, "4", "2")):
        assert check(reply, Finish.FINISHED, question) is Verdict.WRONG


@pytest.mark.parametrize("reply", ["null", "None", "NULL", "nothing", "unknown", "-", ""])
def test_sql03_a_missing_value_is_no_zero(reply: str) -> None:
    assert not right(f"The answer is {reply}.", asked(AnswerKind.NUMBER, "0"))
    assert not right("The answer is 0.", asked(AnswerKind.NUMBER, reply))
