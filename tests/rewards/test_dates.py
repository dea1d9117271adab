"""Dates and periods: one interval however it is spelled; an ambiguous one is right only if its reading is said."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rewards.dates import compare_dates, readings
from tasks.rewards.reasons import Reason

MAY_3 = (((2021, 5, 3), (2021, 5, 3)),)


@pytest.mark.parametrize(
    "text",
    [
        "2021-05-03",
        "2021/5/3",
        "2021.05.03",
        "3 May 2021",
        "03 May 2021",
        "3rd May 2021",
        "the 3rd of May, 2021",
        "May 3, 2021",
        "May 3rd 2021",
        "MAY 3 2021",
        "Monday, 3 May 2021",
        "on May 3, 2021",
        "03.05.2021",
        "2021年5月3日",
        "2021 年 5 月 3 号",
        "二〇二一年五月三日",
        "２０２１年５月３日",
    ],
)
def test_a_day(text: str) -> None:
    assert readings(text) == MAY_3


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2021", (2021, 1, 1), (2021, 12, 31)),
        ("the year 2021", (2021, 1, 1), (2021, 12, 31)),
        ("2021年", (2021, 1, 1), (2021, 12, 31)),
        ("February 2024", (2024, 2, 1), (2024, 2, 29)),
        ("Feb. 2023", (2023, 2, 1), (2023, 2, 28)),
        ("2021-05", (2021, 5, 1), (2021, 5, 31)),
        ("Q3 2021", (2021, 7, 1), (2021, 9, 30)),
        ("2021 Q3", (2021, 7, 1), (2021, 9, 30)),
        ("the third quarter of 2021", (2021, 7, 1), (2021, 9, 30)),
        ("July to September 2021", (2021, 7, 1), (2021, 9, 30)),
        ("H1 2021", (2021, 1, 1), (2021, 6, 30)),
        ("the 1990s", (1990, 1, 1), (1999, 12, 31)),
        ("1990's", (1990, 1, 1), (1999, 12, 31)),
        ("1990年代", (1990, 1, 1), (1999, 12, 31)),
        ("1990–1999", (1990, 1, 1), (1999, 12, 31)),
        ("from 1990 to 1999", (1990, 1, 1), (1999, 12, 31)),
        ("between 1990 and 1999", (1990, 1, 1), (1999, 12, 31)),
        ("the 19th century", (1801, 1, 1), (1900, 12, 31)),
        ("1st century BC", (-100, 1, 1), (-1, 12, 31)),
        ("44 BC", (-44, 1, 1), (-44, 12, 31)),
        ("15 March 44 BC", (-44, 3, 15), (-44, 3, 15)),
        ("3-5 May 2021", (2021, 5, 3), (2021, 5, 5)),
        ("30 April – 3 May 2021", (2021, 4, 30), (2021, 5, 3)),
        ("3 May", (0, 5, 3), (0, 5, 3)),
        ("29 February", (0, 2, 29), (0, 2, 29)),
    ],
)
def test_a_period(text: str, first: tuple[int, int, int], last: tuple[int, int, int]) -> None:
    assert readings(text) == ((first, last),)


@pytest.mark.parametrize(
    "text",
    ["", "soon", "2021-13", "2021-02-30", "31 April 2021", "5/3/99", "the 90s", "0", "13/13/2021", "1999 to 1990",
     "2020 or 2021", "2021-05-03-04", "x" * 1000, "early 1990s"],
)  # fmt: skip
def test_no_date(text: str) -> None:
    assert readings(text) == ()


@pytest.mark.parametrize(
    ("gold", "answer", "question", "reason"),
    [
        ("2021-05-03", "03/05/2021", "When?", Reason.AMBIGUOUS),
        ("2021-05-03", "03/05/2021", "When (DD/MM/YYYY)?", Reason.EQUAL),
        ("2021-05-03", "03/05/2021", "When (MM/DD/YYYY)?", Reason.DIFFERENT),
        ("2021-05-03", "05/03/2021", "When? Month first, please.", Reason.EQUAL),
        ("2021-05-13", "13/05/2021", "When?", Reason.EQUAL),
        ("2021-05-13", "05/13/2021", "When?", Reason.EQUAL),
        ("05/05/2021", "2021-05-05", "When?", Reason.EQUAL),
        ("03/05/2021", "3/5/2021", "When?", Reason.EQUAL),
        ("03/05/2021", "3-5-2021", "When?", Reason.AMBIGUOUS),
        ("03/05/2021", "2021-05-03", "When?", Reason.AMBIGUOUS),
        ("03/05/2021", "05/03/2021", "When?", Reason.AMBIGUOUS),
        ("2021-05", "2021-05-03", "When?", Reason.DIFFERENT),
        ("2021", "2021-2022", "When?", Reason.DIFFERENT),
        ("2021", "2020 or 2021", "When?", Reason.SEVERAL_ANSWERS),
        ("2021", "a while ago", "When?", Reason.NOT_OF_KIND),
        ("44 BC", "44 AD", "When?", Reason.DIFFERENT),
        ("early spring", "Early spring", "When?", Reason.EQUAL),
        ("early spring", "2021", "When?", Reason.DIFFERENT),
    ],
)
def test_comparison(gold: str, answer: str, question: str, reason: Reason) -> None:
    assert compare_dates(answer, gold, question) is reason


@given(st.dates(datetime.date(1000, 1, 1)), st.dates(datetime.date(1000, 1, 1)))
def test_days_are_equal_exactly_when_they_are_the_same_day(left: datetime.date, right: datetime.date) -> None:
    spellings = (right.isoformat(), right.strftime("%d %B %Y"), right.strftime("%b %d, %Y"), right.strftime("%d.%m.%Y"))
    for spelled in spellings:
        assert (compare_dates(left.isoformat(), spelled, "When?") is Reason.EQUAL) is (left == right)


@given(st.text(max_size=40) | st.text(alphabet="0123456789-/. maybctoqrhs年月日世纪", max_size=30))
def test_no_text_breaks_the_reader(text: str) -> None:
    assert len(readings(text)) <= 2
