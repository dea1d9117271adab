"""Typed answers: each public failure becomes a test of its whole kind, with hand-worked expectations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.records import AnswerKind, Domain, Finish, Question, Verdict
from tasks.rewards.numbers import parse_number, same_number
from tasks.rewards.reasons import Checked, Reason
from tasks.rewards.rules import Gold, check, examine, extract_answer, reward_of

FINISHED, TRUNCATED = Finish.FINISHED, Finish.TRUNCATED


def question(kind: AnswerKind, *gold: str, text: str = "What?", options: tuple[str, ...] = ()) -> Question:
    return Question(
        id="q",
        domain=Domain.READING_COMPREHENSION,
        question=text,
        gold=gold,
        answer_kind=kind,
        options=options,
        document_ids=("d",),
        split="train",
        generator="self_play",
        difficulty=1,
        provenance={},
        seed=0,
    )


def is_right(reply: str, asked: Question, finish: Finish = FINISHED) -> bool:
    return check(reply, finish, asked) is Verdict.CORRECT


def number(gold: str, text: str = "What?") -> Question:
    return question(AnswerKind.NUMBER, gold, text=text)


def letter(gold: str) -> Question:
    return question(AnswerKind.LETTER, gold, options=("Rome", "Oslo", "Bern", "Lima"))


def short(gold: str) -> Question:
    return question(AnswerKind.TEXT, gold)


def several(*gold: str) -> Question:
    return question(AnswerKind.LIST, *gold)


class TestExtraction:
    @pytest.mark.parametrize(
        ("reply", "answer"),
        [
            ("The answer is Paris.", "Paris"),
            ("<think> The answer is Rome. </think> The answer is Paris .", "Paris"),
            ("THE ANSWER IS: Paris!", "Paris"),
            ("The answer is Rome. No: the answer is Oslo.", "Oslo"),
            ("**Answer:** 42", "42"),
            ("Final answer: 42\nThat is all.", "42"),
            ("The answer is St. Louis. It lies on a river.", "St. Louis"),
            ("The answer is No. Nobody came.", "No"),
            ("The answer is U.S. dollar.", "U.S. dollar"),
            (r"The answer is \boxed{5} km.", "5"),
            (r"\boxed{5}. On reflection the answer is 6.", "6"),
            (r"The answer is 6. On reflection \boxed{5}", "5"),
            (r"\boxed{\text{Paris}}", "Paris"),
            (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
            ("The answer to the question is 7.", "7"),
            ("The answer isn't known.", None),
            ("The answer is .", None),
            (r"\boxed{}", None),
            (r"Answer: \boxed{4", None),
            (r"\boxed{3} and then \boxed{4", None),
            ("I like Paris.", None),
            ("", None),
        ],
    )
    def test_last_statement_wins(self, reply: str, answer: str | None) -> None:
        assert extract_answer(reply, FINISHED) == answer

    @pytest.mark.parametrize(
        ("reply", "answer"),
        [
            ("<think> maybe the answer is 7. So", None),
            ("<think> a </think> The answer is 12", None),  # was about to become 123
            ("<think> a </think> The answer is 12. Because", "12"),
            (r"<think> a </think> \boxed{12}", "12"),
            ("prefilled reasoning, the answer is 7. But", None),
        ],
    )
    def test_a_cut_reply_needs_a_closed_answer(self, reply: str, answer: str | None) -> None:
        assert extract_answer(reply, TRUNCATED) == answer

    @given(st.text(alphabet=r"\boxed{}<>/thinkansweris:. $12,ABC", max_size=80), st.sampled_from(Finish))
    def test_never_fails_and_never_gives_an_empty_answer(self, reply: str, finish: Finish) -> None:
        answer = extract_answer(reply, finish)
        assert answer is None or answer.strip()
        for asked in (number("1"), letter("A"), short("a"), several("1", "2"), several()):
            assert check(reply, finish, asked) in (Verdict.CORRECT, Verdict.WRONG)


class TestReasoning:
    """AC-09: an answer inside unfinished or discarded reasoning is not paid."""

    @pytest.mark.parametrize(
        ("gold", "reply", "finish", "right"),
        [
            ("7", r"<think> maybe \boxed{7}", TRUNCATED, False),
            ("7", r"<think> maybe \boxed{7}", FINISHED, False),
            ("7", r"<think>\boxed{9}</think> \boxed{7}", FINISHED, True),
            ("9", r"<think>\boxed{9}</think> \boxed{7}", FINISHED, False),
            ("7", r"reasoning without opening tag</think> \boxed{7}", FINISHED, True),
            ("7", r"the text says </think> twice </think> \boxed{7}", FINISHED, True),
            ("7", "<think> a </think> The answer is 7. <think> or 8", FINISHED, True),
        ],
    )
    def test_number(self, gold: str, reply: str, finish: Finish, right: bool) -> None:
        assert is_right(reply, number(gold), finish) is right

    def test_truncated_is_wrong_not_unscored(self) -> None:
        assert check("<think> hm", TRUNCATED, short("Paris")) is Verdict.WRONG


class TestBoxes:
    """AC-02: nested braces, retractions, adjacent boxes, unclosed and empty boxes."""

    @pytest.mark.parametrize(
        ("asked", "reply", "right"),
        [
            (number("1/2"), r"First I get \boxed{2}. Wait, \boxed{\frac{1}{2}}", True),
            (number("1/2"), r"\boxed{\frac{1}{2}}", True),
            (number("4"), r"Answer: \boxed{4", False),
            (several("3", "5"), r"\boxed{3}, \boxed{5}", True),
            (several("3", "5"), r"$\boxed{5}$ and $\boxed{3}$", True),
            (several("3", "5"), r"First \boxed{3}. Wait, \boxed{5}", False),
            (number("0"), r"\boxed{}", False),
            (several(), r"\boxed{}", False),
            (number("2"), r"First I get \boxed{2}. Wait, \boxed{3}", False),
            (number("3"), r"\boxed{2}, \boxed{3}", False),  # two answers to a question for one
        ],
    )
    def test_box(self, asked: Question, reply: str, right: bool) -> None:
        assert is_right(reply, asked) is right


class TestLetter:
    """EV-01, the robust column, and more of its kind. Options are A to D."""

    @pytest.mark.parametrize(
        ("reply", "chosen"),
        [
            ("The correct answer is (A)? No, that is refuted. The correct answer is (C).", "C"),
            ("The correct answer is Definitely (B)", "B"),
            ("The correct answer is: (B)", "B"),
            ("the correct answer is (b)", "B"),
            ("The correct answer is （Ｂ）", "B"),
            (r"The correct answer is $\boxed{B}$", "B"),
            ("Answer seems to be A.", "A"),
            ("I would pick B — a safe choice.", "B"),
            ("ANSWER: None of the above", None),
            ("<think>The correct answer is (D)</think> The correct answer is (B)", "B"),
            ("The answer is (A)? No, (C).", "C"),
            ("The answer is A. Wait, no: it is D.", "D"),
            ("The answer is not A but B.", "B"),
            ("The answer is B, because A is too far south.", "B"),
            ("The answer is B. (A) is too far south.", "B"),
            ("The answer is A or B.", None),
            ("The answer is (A) and (B).", None),
            ("The answer is E.", None),
            ("The answer is (A). Then again, the answer is (E).", None),
            ("**B**", "B"),
            ("b", "B"),
            ("b) Oslo", "B"),
            (r"\boxed{\text{C}}", "C"),
            (r"\boxed{C", None),
            ("(A) is wrong, so D", "D"),
            ("Definitely. A safe choice.", None),
            ("A", "A"),
            ("I", None),
            ("Oslo", None),
            ("", None),
        ],
    )
    def test_choice(self, reply: str, chosen: str | None) -> None:
        paid = [gold for gold in "ABCD" if is_right(reply, letter(gold))]
        assert paid == ([chosen] if chosen else [])

    def test_cut_letter_is_no_choice(self) -> None:
        assert not is_right("<think> a </think> The answer is B", letter("B"), TRUNCATED)
        assert is_right("<think> a </think> The answer is (B)", letter("B"), TRUNCATED)

    @given(st.text(max_size=60))
    def test_at_most_one_letter_is_paid(self, reply: str) -> None:
        assert sum(is_right(reply, letter(gold)) for gold in "ABCD") <= 1


class TestNumber:
    @pytest.mark.parametrize(
        ("gold", "answer", "text", "right"),
        [
            # AC-05: percent and fraction, converted by the scale that the question asks for
            ("28%", "28%", "What share?", True),
            ("28%", "0.28", "What share?", True),
            ("28%", "28", "What share, in percent?", True),
            ("0.28", "28%", "What share?", True),
            ("28", "0.28", "What share, in percent?", False),
            ("28", "28 percent", "What share, in percent?", True),
            ("1.015", "101.5%", "What ratio?", True),
            ("28%", "28 percentage points", "What percent change?", False),
            ("28%", "2800%", "What share?", False),
            # AC-07: tiny numbers
            (r"$\frac{1}{2^{99}}$", r"$\frac{1}{2^{98}}$", "What?", False),
            (r"$\frac{1}{2^{99}}$", r"\frac{1}{2^{99}}", "What?", True),
            ("0.0000001", "0.0000002", "What?", False),
            (r"$\frac{1}{2004!}$", r"$\frac{1}{2006!}$", "What?", False),
            ("0.0000001", "1e-7", "What?", True),
            ("0.0000001", r"1 \times 10^{-7}", "What?", True),
            ("0", "0.0000001", "What?", False),
            ("0.0", "0", "What?", True),
            # integers exactly, rounded numbers within 0.15 %
            ("1998", "1999", "Which year?", False),
            ("1998", "1998.0", "Which year?", True),
            ("12.34", "12.35", "What?", True),
            ("12.34", "12.36", "What?", False),
            ("1/3", "0.333", "What?", True),
            ("1/3", "0.33", "What?", False),
            # spellings
            ("1234567", "1,234,567", "What?", True),
            ("1234567", "1 234 567", "What?", True),
            ("1234567", "12,34,567", "What?", True),
            ("1.5", "1½", "What?", True),
            ("100", "10²", "What?", True),
            ("102", "10²", "What?", False),
            ("-5", "−5", "What?", True),
            ("-5", "5", "What?", False),
            ("5", "+5", "What?", True),
            ("5", "٥", "What?", True),
            ("0.5", ".5", "What?", True),
            ("5000000", "5 million", "What?", True),
            ("5", "5 million", "What?", False),
            ("5", "(5)", "What?", True),
            # units must occur in the gold answer or the question
            ("5", "5 kilometres", "How many kilometres?", True),
            ("5", "5 metres", "How many kilometres?", False),
            ("5 km", "5", "How far?", True),
            ("5 km", "5 m", "How far?", False),
            ("$5", "$5.00", "What?", True),
            ("$5", "€5", "What?", False),
            # no numbers, or more than one
            ("5", "5 or 6", "Is it 5 or 6?", False),
            ("5", "5-7", "What?", False),
            ("5", "", "What?", False),
            ("5", "inf", "What?", False),
            ("5", "nan", "What?", False),
            ("5", "1/0", "What?", False),
            ("5", "05.5.5", "What?", False),
        ],
    )
    def test_equality(self, gold: str, answer: str, text: str, right: bool) -> None:
        assert same_number(answer, gold, text) is right

    @pytest.mark.parametrize(
        "answer",
        [
            r"\frac{3^{\left(3^{\left(3^{\left(3^3\right)}\right)} - 2\right)} - 3}{8}",
            r"7^{\left(7^{\left(7^7\right)}\right)} - 1",
            "9^9^9^9",
            "1e999999999",
            "10^{999999999}",
            "100!!!!",
            "9" * 5000,
            "__import__('os').getpid()",
        ],
    )
    def test_ac01_the_grammar_evaluates_nothing(self, answer: str) -> None:
        assert not same_number(answer, "7", "What?")

    @given(st.integers(-(10**12), 10**12))
    def test_every_integer_equals_itself_with_separators_and_no_neighbour(self, value: int) -> None:
        assert is_right(f"The answer is {value:,}.", number(str(value)))
        assert not is_right(f"The answer is {value + 1}.", number(str(value)))

    @given(st.text(alphabet="0123456789.,/eE+-%^{} ()\\frac$×x millionpercent", max_size=40))
    def test_parser_never_fails(self, text: str) -> None:
        parsed = parse_number(text)
        assert parsed is None or parsed.value.denominator > 0


class TestText:
    @pytest.mark.parametrize(
        ("gold", "answer", "right"),
        [
            # AC-03: no normal form matches everything
            ("A", "B", False),
            ("A", "A", True),
            ("The", "anything", False),
            ("A", "", False),
            ("The Beatles", "beatles", True),
            ("!!!", "!!!", False),
            ("!!!", "", False),
            # equality, never containment, in either direction
            ("Paris", "Paris, France", False),
            ("Paris, France", "Paris", False),
            ("Niger", "Nigeria", False),
            # signs and separators of numbers keep their meaning
            ("3.5", "35", False),
            ("-5", "5", False),
            ("2021-05", "202105", False),
            ("Vitamin A", "Vitamin", False),
            ("C#", "C", False),
            # spellings
            ("Côte d'Ivoire", "côte d’ivoire", True),
            ("Guinea-Bissau", "Guinea Bissau", True),
            ("ｆｕｌｌ width", "full width", True),
            ("the  euro", "Euro", True),
        ],
    )
    def test_equality(self, gold: str, answer: str, right: bool) -> None:
        assert is_right(f"The answer is {answer}.", short(gold)) is right

    def test_a_bare_reply_counts_only_as_a_whole(self) -> None:
        assert is_right("Paris", short("Paris"))
        assert not is_right("Paris it is", short("Paris"))
        assert not is_right("Paris", short("Paris"), TRUNCATED)

    @given(st.text(max_size=30))
    def test_empty_normal_forms_match_nothing(self, answer: str) -> None:
        assert not is_right(answer, short("..."))


class TestList:
    @pytest.mark.parametrize(
        ("gold", "answer", "right"),
        [
            (("3", "5"), "5, 3", True),
            (("3", "5"), "3 and 5", True),
            (("3", "5", "5"), "5, 3 and 5", True),
            (("3", "5", "5"), "5, 3", False),
            (("3", "5"), "3, 5, 5", False),
            (("1,200", "5"), "1,200, 5", True),
            (("1200", "5"), "1,200; 5", True),
            (("Trinidad and Tobago", "Cuba", "Haiti"), "Trinidad and Tobago, Cuba and Haiti", True),
            (("Trinidad and Tobago",), "Trinidad and Tobago", True),
            (("Oslo, Norway", "Rome, Italy"), '["Rome, Italy", "Oslo, Norway"]', True),
            (("Paris",), "[Paris]", True),
            (("Paris",), "none", False),
            ((), "none", True),
            ((), "[]", True),
            ((), "", False),
            ((), "Paris", False),
            (("Paris", "Rome"), "", False),
        ],
    )
    def test_multisets(self, gold: tuple[str, ...], answer: str, right: bool) -> None:
        assert is_right(f"The answer is {answer}.", several(*gold)) is right

    @pytest.mark.parametrize(
        ("gold", "answer", "right"),
        [
            (("3", "5"), "3, 5", (True, True, True)),
            (("3", "5"), "5, 3", (True, False, True)),
            (("3", "5"), "5, 3, 3", (False, False, True)),
            (("3", "5", "5"), "3, 5", (False, False, True)),
            (("3", "5", "5"), "3; 5; 5.0", (True, True, True)),
            (("3", "5"), "3", (False, False, False)),
            (("3", "5"), "3, 5, 7", (False, False, False)),
            (("10.0", "10.02", "9.99"), "10.02, 9.99, 10.0", (True, False, True)),
            # 10.01 fits both, 9.99 only the first: a greedy choice would fail
            (("10.0", "10.02"), "10.01, 9.99", (True, False, True)),
            (("R&D", "Sales"), "Sales and R&D", (True, False, True)),
            (("Paris", "Rome"), "- Paris; 2) Rome", (True, True, True)),
            (("5 km", "1/2"), "0.5, 5000 m", (True, False, True)),
            ((), "none", (True, True, True)),
        ],
    )
    def test_orders(self, gold: tuple[str, ...], answer: str, right: tuple[bool, bool, bool]) -> None:
        kinds = (AnswerKind.LIST, AnswerKind.ORDERED_LIST, AnswerKind.SET)
        assert tuple(is_right(f"The answer is {answer}.", question(kind, *gold)) for kind in kinds) == right

    def test_long_lists_take_no_time(self) -> None:
        gold = tuple(str(number) for number in range(3000))
        assert is_right(r"\boxed{" + "; ".join(reversed(gold)) + "}", several(*gold))
        assert not is_right(r"\boxed{" + "; ".join((*gold[1:], "x")) + "}", several(*gold))


class TestOtherKinds:
    @pytest.mark.parametrize(
        ("kind", "gold", "reply", "reason"),
        [
            ("yes_no", "yes", "Yes, because it is.", "equal"),
            ("yes_no", "no", "The answer is no.", "equal"),
            ("yes_no", "yes", "The answer is true.", "equal"),
            ("yes_no", "no", "答案是否。", "equal"),
            ("yes_no", "yes", "The answer is no.", "different"),
            ("yes_no", "yes", "The answer is yes and no.", "several_answers"),
            ("yes_no", "yes", "The answer is yes, but also no.", "several_answers"),
            ("yes_no", "yes", "The answer is yesterday.", "not_of_kind"),
            ("yes_no", "yes", "yes yesterday", "no_answer"),
            ("yes_no", "maybe", "The answer is maybe.", "no_gold"),
            ("percent", "28", "The answer is 28.", "equal"),
            ("percent", "28", "The answer is 28%.", "equal"),
            ("percent", "28", "The answer is 0.28.", "different"),
            ("percent", "28%", "The answer is 0.28.", "equal"),
            ("percent", "28%", "The answer is 28.", "different"),
            ("quantity", "5 km", "The answer is 5 km.", "equal"),
            ("quantity", "5 km", "The answer is 5000 m.", "equal"),
            ("quantity", "5 km", "The answer is 5.", "other_unit"),
            ("quantity", "5 km", "The answer is 5 kg.", "other_unit"),
            ("free_text", "The river floods.", "The answer is: the river floods!", "equal"),
            ("free_text", "The river floods.", "The answer is that it rains.", "needs_judge"),
            ("free_text", "The river floods.", "It rains.", "no_answer"),  # states nothing: no judge is asked (JD-02)
            ("free_text", "The river floods.", "The river floods.", "equal"),
            ("code", "print(1)", "Here:\n```python\nprint(1)  \n```\nDone.", "equal"),
            ("code", "print(1)", "```\nprint(2)\n```\n```\nprint(1)\n```", "equal"),
            ("code", "print(1)", "```python\nprint(2)\n```", "needs_judge"),
            ("code", "print(1)", "```python\nprint(1)", "no_answer"),  # a fence that never closes
            ("code", "if x:\n  y", "```\nif x:\n    y\n```", "needs_judge"),  # indentation means something
            ("text", "Paris", "The answer is Paris or Rome.", "different"),
            ("text", "Paris", "<think> Paris", "truncated"),
            ("text", "...", "The answer is ...", "no_gold"),
            ("number", "7", r"Answer: \boxed{7", "no_answer"),
            ("number", "7", r"\boxed{\boxed{7}}", "equal"),
            ("number", "7", "答案：七。", "equal"),
            ("number", "7", "最终答案是 7。因为……", "equal"),
            ("number", "7", "Answer：７", "equal"),
            ("number", "7", "The answer is 7 or 8.", "several_answers"),
            ("number", "7", "The answer is between 6 and 8.", "several_answers"),
            ("number", "7", "The answer is seven dwarfs.", "other_unit"),
            ("number", "7", "The answer is many.", "not_of_kind"),
            ("number", "7", "The answer is " + "9" * 20_000 + ".", "too_long"),
            ("number", "15", "The answer is 12 + 3.", "several_answers"),  # not worked out
            ("letter", "B", "The answer is C.", "different"),
            ("letter", "B", "The answer is A or B.", "no_answer"),
            ("letter", "", "The answer is B.", "no_gold"),
        ],
    )
    def test_reason(self, kind: str, gold: str, reply: str, reason: str) -> None:
        assert examine(reply, FINISHED, Gold((gold,), AnswerKind(kind))).reason == reason

    def test_a_whole_reply_is_extracted_when_it_is_compared(self) -> None:
        assert examine("41", FINISHED, number("42")) == Checked(Reason.DIFFERENT, "41")
        assert examine("who knows", FINISHED, number("42")) == Checked(Reason.NO_ANSWER, None)

    def test_every_reason_has_one_verdict(self) -> None:
        verdicts = {reason: reason.verdict for reason in Reason}
        assert [reason for reason, verdict in verdicts.items() if verdict is Verdict.CORRECT] == [
            Reason.EQUAL,
            Reason.PASSED,
        ]
        unscored = {reason for reason, verdict in verdicts.items() if verdict is Verdict.UNSCORED}
        failed = {Reason.TIMED_OUT, Reason.CHECK_FAILED, Reason.SANDBOX_FAILED}
        assert unscored == {Reason.NO_GOLD, Reason.NEEDS_JUDGE, *failed}

    def test_a_cut_answer_is_truncated(self) -> None:
        assert examine("<think> a </think> The answer is 12", TRUNCATED, number("12")).reason is Reason.TRUNCATED


class TestContentFree:
    """JD-02: openers and punctuation state no answer, whatever the kind."""

    @pytest.mark.parametrize(
        "reply",
        [
            ":",
            ".",
            "Thought process:",
            "Let's solve this step by step.",
            "Solution",
            "解",
            "かいせつ",
            " ",
            "**",
        ],
    )
    def test_no_answer_no_reward(self, reply: str) -> None:
        assert extract_answer(reply, FINISHED) is None
        for asked in (number("42"), letter("A"), short("42"), several("4", "2"), several()):
            assert check(reply, FINISHED, asked) is Verdict.WRONG


def test_rewards_of_the_three_verdicts() -> None:
    assert [reward_of(verdict) for verdict in Verdict] == [1.0, 0.0, None]


def test_a_question_without_gold_is_unscored() -> None:
    assert check("The answer is 4.", FINISHED, question(AnswerKind.NUMBER)) is Verdict.UNSCORED
