import datetime as dt
from decimal import Decimal

import pytest

from tasks.records import AnswerKind
from tasks.synthesis.tables.answers import Form, Unfit, gold
from tasks.synthesis.tables.engine import Drop


@pytest.mark.parametrize(
    ("values", "form", "answer"),
    [
        ([7], Form.INTEGER, ("7",)),
        ([2**100], Form.INTEGER, (str(2**100),)),
        ([7.0], Form.INTEGER, ("7",)),
        ([7.5], Form.INTEGER, Unfit.WRONG_FORM),
        (["7"], Form.INTEGER, Unfit.WRONG_FORM),
        ([True], Form.INTEGER, Unfit.WRONG_FORM),
        ([0], Form.INTEGER, ("0",)),
        ([1 / 3], Form.NUMBER, ("0.33",)),
        ([Decimal("2.345")], Form.NUMBER, ("2.35",)),  # half up
        ([-0.125], Form.NUMBER, ("-0.13",)),
        ([3], Form.NUMBER, ("3.00",)),
        ([0.0], Form.NUMBER, ("0.00",)),
        ([0.004], Form.NUMBER, Unfit.ROUNDED_AWAY),
        ([1e20], Form.NUMBER, ("100000000000000000000.00",)),
        ([12.5], Form.PERCENT, ("12.50",)),
        ([dt.date(2023, 5, 9)], Form.MONTH, ("2023-05",)),
        (["2023-05"], Form.MONTH, ("2023-05",)),
        ([5], Form.MONTH, Unfit.WRONG_FORM),
        (["Chad"], Form.STRING, ("Chad",)),
        ([5], Form.STRING, Unfit.WRONG_FORM),
        ([], Form.STRING, Drop.EMPTY),
        ([], Form.LIST, ()),  # nothing is an answer too
        (["b", "a"], Form.LIST, ("b", "a")),
        ([Decimal("1.50"), Decimal(2)], Form.LIST, ("1.5", "2")),
        ([Decimal("1E+3")], Form.LIST, ("1000",)),
        ([None, "a"], Form.LIST, Drop.MISSING),
        ([None], Form.NUMBER, Drop.MISSING),  # not 0
        (["a", "b"], Form.STRING, Drop.NOT_UNIQUE),
        (list("abcdefghijklmnopqrstu"), Form.LIST, Unfit.TOO_LONG),
    ],
)
def test_a_result_is_written_in_the_form_asked_for(values: list[object], form: Form, answer: object) -> None:
    assert gold([(value,) for value in values], form) == answer


def test_a_drop_stays_one_and_two_columns_are_no_answer() -> None:
    assert gold(Drop.NOT_UNIQUE, Form.LIST) is Drop.NOT_UNIQUE
    assert gold([("a", 1)], Form.STRING) is Drop.NOT_UNIQUE


def test_every_form_has_an_instruction_and_a_way_to_be_compared() -> None:
    assert len({form.instruction for form in Form}) == len(Form)
    assert [form.kind for form in (Form.INTEGER, Form.NUMBER, Form.PERCENT, Form.MONTH, Form.LIST, Form.STRING)] == [
        *(AnswerKind.NUMBER, AnswerKind.NUMBER, AnswerKind.PERCENT, AnswerKind.DATE, AnswerKind.LIST, AnswerKind.TEXT)
    ]
