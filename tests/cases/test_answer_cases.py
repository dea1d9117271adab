"""More inputs of the kinds AC-01, AC-03, AC-05, AC-07, AC-09, EV-01 and JD-02, and NULL beside 0 (SQL-03)."""

import time

import pytest

from tasks.records import AnswerKind, Domain, Finish, Question, Verdict
from tasks.rewards.reasons import Reason
from tasks.rewards.rules import Gold, check, examine, extract_answer


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
        r"\boxed{2 + 2 + 2 + 2 + 2}",
        r"\boxed{" + "9^" * 2000 + "9}",
        r"\boxed{" + r"\frac{1}{" * 1000 + "7" + "}" * 1000 + "}",
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


@pytest.mark.parametrize(
    ("kind", "gold", "reply", "extracted", "reason"),
    [
        ("number", ("1/2",), r"First I get \boxed{2}. Wait, \boxed{\frac{1}{2}}", r"\frac{1}{2}", Reason.EQUAL),
        ("number", ("4",), r"Answer: \boxed{4", None, Reason.NO_ANSWER),
        ("number", ("0",), r"\boxed{}", None, Reason.NO_ANSWER),
        ("number", ("2",), r"First I get \boxed{2}. Wait, \boxed{3}", "3", Reason.DIFFERENT),
        ("ordered_list", ("3", "5"), r"\boxed{3}, \boxed{5}", "3, 5", Reason.EQUAL),
        ("ordered_list", ("5", "3"), r"\boxed{3}, \boxed{5}", "3, 5", Reason.DIFFERENT),
        ("quantity", ("5 km",), r"\boxed{5\,\text{km}}", "5km", Reason.EQUAL),
        ("date", ("May 2021",), r"\boxed{2021} or rather \boxed{\text{May } 2021}", "May  2021", Reason.EQUAL),
        ("yes_no", ("no",), r"\boxed{\text{yes}}. Hmm, \boxed{\text{no}}", "no", Reason.EQUAL),
        ("text", ("Paris",), r"\boxed{Rome}, \boxed{Paris}", "Rome, Paris", Reason.DIFFERENT),
        ("number", ("7",), r"\boxed{\boxed{\boxed{7}}}", "7", Reason.EQUAL),
    ],
)
def test_ac02_the_last_whole_box_counts(
    kind: str, gold: tuple[str, ...], reply: str, extracted: str | None, reason: Reason
) -> None:
    found = examine(reply, Finish.FINISHED, Gold(gold, AnswerKind(kind)))
    assert (found.extracted, found.reason) == (extracted, reason)


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


@pytest.mark.parametrize("kind", AnswerKind)
@pytest.mark.parametrize("reply", [r"<think> maybe \boxed{7}", "<think>a</think><think>The answer is 7."])
def test_ac09_unfinished_reasoning_is_truncated_whatever_the_kind(kind: AnswerKind, reply: str) -> None:
    gold = Gold(({"yes_no": "yes", "letter": "A"}.get(kind, "7"),), kind)
    for finish in Finish:
        assert examine(reply, finish, gold).reason is Reason.TRUNCATED


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("<think>\n```\nprint(7)\n```", Reason.TRUNCATED),
        ("<think>\n```\nprint(7)\n```\n</think>", Reason.NO_ANSWER),
        ("```\nprint(9)\n```\nWait:\n```\nprint(7)\n```", Reason.PASSED),  # AC-02: the last counts
        ("```\nprint(7)\n```\nWait:\n```\nprint(9)\n```", Reason.OTHER_OUTPUT),
        ("```\nprint(7)\n```\nor\n```\nprint(", Reason.NO_ANSWER),  # AC-02: the last is open
        ("```\n\n```", Reason.NO_ANSWER),  # AC-03: an empty answer passes nothing
        ("```\nprint('the')\n```", Reason.OTHER_OUTPUT),
        ("```\nprint(7.0)\n```", Reason.OTHER_OUTPUT),  # AC-07: exactly
    ],
)
def test_ac02_ac03_ac07_ac09_hold_for_programs(reply: str, reason: Reason) -> None:
    gold = Gold(('{"stdin": "", "stdout": "7"}',), AnswerKind.CODE)
    assert examine(reply, Finish.FINISHED, gold).reason is reason


@pytest.mark.parametrize(
    ("kind", "gold", "reply"),
    [
        ("number", "5", "5 or 6"),
        ("number", "5", "either 5 or 6"),
        ("number", "5", "between 5 and 6"),
        ("number", "5", "5, maybe 6"),
        ("number", "5", "5-6"),
        ("quantity", "5 km", "5 km or 6 km"),
        ("percent", "5%", "5% to 6%"),
        ("date", "2021", "2021 or 2022"),
        ("date", "2021", "2021-2022"),
        ("text", "Rome", "Rome or Oslo"),
        ("yes_no", "yes", "yes or no"),
        ("letter", "A", "A or B"),
        ("list", "5", "5 or 6"),
        ("set", "5", "5, 6"),
    ],
)
def test_hedging_is_wrong(kind: str, gold: str, reply: str) -> None:
    assert examine(f"The answer is {reply}.", Finish.FINISHED, Gold((gold,), AnswerKind(kind))).verdict is Verdict.WRONG


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
    for kind in (AnswerKind.FREE_TEXT, AnswerKind.CODE):  # wrong, not "needs a judge"
        assert examine(reply, Finish.FINISHED, asked(kind, "42")).reason is Reason.NO_ANSWER


@pytest.mark.parametrize("reply", ["null", "None", "NULL", "nothing", "unknown", "-", ""])
def test_sql03_a_missing_value_is_no_zero(reply: str) -> None:
    assert not right(f"The answer is {reply}.", asked(AnswerKind.NUMBER, "0"))
    assert not right("The answer is 0.", asked(AnswerKind.NUMBER, reply))
