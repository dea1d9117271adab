import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpus.columns import Column, table_rows, typed_column
from tasks.corpus.formats.cells import cell_text
from tasks.corpus.styles import style_of


def typed(*cells: str, grouped: bool = True) -> Column:
    return typed_column("n", cells, grouped)


@pytest.mark.parametrize(
    ("cells", "kind", "values", "unit"),
    [
        (("1,234", "2,500", "900"), "integer", (1234, 2500, 900), ""),
        (("1.234.567", "2.500"), "integer", (1234567, 2500), ""),  # no number has two decimal points
        (("1.234,5", "2.500"), "decimal", (Decimal("1234.5"), Decimal(2500)), ""),
        (("1,50", "2,25"), "decimal", (Decimal("1.50"), Decimal("2.25")), ""),
        (("1,234", "2,5"), "decimal", (Decimal("1.234"), Decimal("2.5")), ""),  # thousands have three digits
        (("1 234", "5\u202f000", "6\u00a0000,5"), "decimal", (Decimal(1234), Decimal(5000), Decimal("6000.5")), ""),
        (("1'234", "1’000’000"), "integer", (1234, 1000000), ""),
        (("12,34,567", "1,00,000", "5"), "integer", (1234567, 100000, 5), ""),
        (("(1,234)", "500"), "integer", (-1234, 500), ""),
        (("($5.50)", "$3"), "decimal", (Decimal("-5.50"), Decimal(3)), "$"),
        (("5-", "−3", "4"), "integer", (-5, -3, 4), ""),
        (("5%", "7.5 %"), "decimal", (Decimal(5), Decimal("7.5")), "%"),
        (("11% of GDP", "9.5% of GDP"), "decimal", (Decimal(11), Decimal("9.5")), "% of GDP"),
        (("$5", "-$1,000.50"), "decimal", (Decimal(5), Decimal("-1000.50")), "$"),
        (("EUR 5", "EUR 1,000"), "integer", (5, 1000), "EUR"),
        (("5 km", "7 km"), "integer", (5, 7), "km"),
        (("1 year", "12 years"), "integer", (1, 12), "years"),
        (("8.4 births/1,000 population", "3 births/1,000 population"), "decimal", (Decimal("8.4"), Decimal(3)),
         "births/1,000 population"),
        (("585.2 billion kWh", "3 million kWh"), "integer", (585_200_000_000, 3_000_000), "kWh"),
        (("1.5e3", "2.0E-05"), "decimal", (Decimal(1500), Decimal("0.000020")), ""),
        (("2021-05-01", "2020-02-29"), "date", (dt.date(2021, 5, 1), dt.date(2020, 2, 29)), ""),
        (("01.02.2023",), "date", (dt.date(2023, 2, 1),), ""),
        (("01/02/2023", "13/02/2023"), "date", (dt.date(2023, 2, 1), dt.date(2023, 2, 13)), ""),
        (("01/02/2023", "02/13/2023"), "date", (dt.date(2023, 1, 2), dt.date(2023, 2, 13)), ""),
        (("05/05/2023", "06/06/2023"), "date", (dt.date(2023, 5, 5), dt.date(2023, 6, 6)), ""),  # either way
        (("January 3, 2023", "Sept. 4, 2023"), "date", (dt.date(2023, 1, 3), dt.date(2023, 9, 4)), ""),
        (("3 may 2020", "4 May 2020"), "date", (dt.date(2020, 5, 3), dt.date(2020, 5, 4)), ""),
        (("2023-05", "2024-11"), "month", ("2023-05", "2024-11"), ""),
        (("May 2023", "November 2024"), "month", ("2023-05", "2024-11"), ""),
    ],
)  # fmt: skip
def test_the_whole_column_decides_how_it_is_read(
    cells: tuple[str, ...], kind: str, values: tuple[object, ...], unit: str
) -> None:
    column = typed(*cells)
    assert (column.kind, column.values, column.unit) == (kind, values, unit)


@pytest.mark.parametrize(
    "cells",
    [
        ("5 km", "6 m"),  # two units
        ("5%", "6"),
        ("$5", "€6"),
        ("$5", "US$6"),
        ("1st", "2nd"),
        ("3 May", "4 May"),
        ("2 of 5", "3 of 5"),
        ("555-1234", "555-3333"),
        ("1-2", "3-4"),
        ("192.168.1.1", "10.0.0.1"),
        ("10:30", "11:30"),
        ("(5", "6"),
        ("-(5)", "6"),
        ("-5-", "6"),
        ("12a", "13a"),
        ("1,23",),  # one cell is no evidence for a decimal comma
        ("5 bananas",),  # nor for a unit that nobody knows
        ("31.02.2023", "01.02.2023"),  # no such day
        ("01/13/2023", "13/01/2023"),  # neither order reads both
        ("01/02/23", "03/04/23"),
        ("1e5", "2"),
        ("00501", "1"),
        ("NA", "1"),
        ("-", "1"),
        ("9" * 38, "1"),
        ("9" * 30, "0." + "1" * 20),  # together more digits than a DECIMAL has
        ("1.5e-300", "1"),
    ],
)
def test_what_is_not_clear_stays_text(cells: tuple[str, ...]) -> None:
    column = typed(*cells)
    assert (column.kind, column.values) == ("text", cells)


@pytest.mark.parametrize(
    ("cells", "grouped"),
    [
        (("1,234", "2,500"), False),
        (("1.234", "2.500"), False),
        (("1,234", "1.234"), True),  # both marks before three digits
        (("01/02/2023", "03/04/2023"), True),
    ],
)
def test_an_ambiguous_column_says_so(cells: tuple[str, ...], grouped: bool) -> None:
    column = typed(*cells, grouped=grouped)
    assert column.kind == "text"
    assert column.remark == f"{cells[0]!r} can be read in 2 ways and no other cell decides; kept as text"


def test_blank_cells_are_missing_and_decide_nothing() -> None:
    assert typed("", " ", "5").values == (None, None, 5)
    assert typed("", "").values == (None, None)
    assert typed().kind == "text"


def test_a_style_may_leave_out_a_few_texts() -> None:
    texts = ["5 km", "7 km", "none", "9 km", "1 km"]
    assert style_of(texts, grouped=True).style is None
    style = style_of(texts, grouped=True, share=0.8).style
    assert style is not None and [style.read(text) for text in texts] == [5, 7, None, 9, 1]


@pytest.mark.parametrize(
    ("name", "unit"), [("Area (sq km)", "sq km"), ("Sales [EUR]", "EUR"), ("Share %", "%"), ("Area", ""), ("(x) y", "")]
)
def test_a_heading_may_say_the_unit(name: str, unit: str) -> None:
    assert typed_column(name, ["5", "6"], grouped=True).unit == unit


def test_rows_hold_no_units() -> None:
    columns = [typed_column("city", ["Ulm", "Bonn"], True), typed_column("area", ["5 km²", "7 km²"], True)]
    assert table_rows(columns) == []


_PLAIN = st.integers(-(10**36), 10**36)


@given(st.lists(_PLAIN, min_size=1))
def test_integers_survive_as_text_in_every_grouping(values: list[int]) -> None:
    assert typed(*map(str, values)).values == tuple(values)
    assert typed(*(f"{value:,}" for value in values)).values == tuple(values)
    several = (*values, 1_234_567)
    for mark in ".' ":
        assert typed(*(f"{value:,}".replace(",", mark) for value in several)).values == several
    assert typed(*(f"({-value:,})" if value < 0 else f"{value:,}" for value in values)).values == tuple(values)


@given(st.lists(st.decimals(-(10**15), 10**15, places=4), min_size=1))
def test_decimals_survive_as_text(values: list[Decimal]) -> None:
    texts = [cell_text(value) for value in values]
    assert typed(*texts).values == tuple(values)
    assert typed(*(f"{text} %" for text in texts)).values == tuple(values)
    commas = [text.replace(".", ",") for text in texts]
    assert typed(*commas, "0,5").values == (*values, Decimal("0.5"))


@given(st.lists(st.dates(), min_size=1))
def test_dates_survive_as_text(days: list[dt.date]) -> None:
    assert typed(*map(cell_text, days)).values == tuple(days)
    assert typed(*(f"{day.day}.{day.month}.{day.year:04}" for day in days)).values == tuple(days)
    assert typed(*(f"{day.day}/{day.month}/{day.year:04}" for day in days), "31/12/2000").values[:-1] == tuple(days)


@given(
    st.lists(st.text(max_size=30) | st.from_regex(r"[(]?-?[$€]?[0-9.,' /:-]{1,12}(?:%| km|kg)?[)]?", fullmatch=True))
)
def test_no_text_is_an_error_and_what_is_typed_keeps_its_digits(cells: list[str]) -> None:
    column = typed(*cells)
    for cell, value in zip(cells, column.values, strict=True):
        if column.kind == "text":
            assert value == (cell.strip() or None)
        elif column.kind == "integer" and value is not None:
            digits = "".join(filter(str.isdecimal, cell))
            assert str(value).lstrip("-") == digits
        elif column.kind == "decimal" and value is not None:
            assert str(value).lstrip("-").replace(".", "") == "".join(filter(str.isdecimal, cell))
