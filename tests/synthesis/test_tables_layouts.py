import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpus.formats.base import grid
from tasks.corpus.formats.records import written_out
from tasks.synthesis.tables.layouts import Field, fields, unique_names


def cells(text: str) -> list[tuple[str, str, str | None]]:
    return [(field.entity, field.column, field.text) for field in fields(text)]


def test_a_cell_knows_its_line() -> None:
    text = "Some words.\n\nCity | Schools\n---|---\nUlm | 12\nBonn | 7\n\nSeat: Ulm\nFounded: 1900\nStaff: 5 (2014)"
    lines = [(cell.entity, text[slice(*cell.span)]) for cell in fields(text)]
    assert lines == [
        ("Ulm", "Ulm | 12"),
        ("Bonn", "Bonn | 7"),
        ("", "Seat: Ulm"),
        ("", "Founded: 1900"),
        ("", "Staff: 5 (2014)"),
    ]


ULM = [("Ulm", "Schools", "12"), ("Ulm", "Area (km)", "1,234"), ("Bonn", "Schools", "7"), ("Bonn", "Area (km)", None)]


@pytest.mark.parametrize(
    "text",
    [
        "City | Schools | Area (km)\nUlm | 12 | 1,234\nBonn | 7 | ",
        "| City | Schools | Area (km) |\n|------|:-------:|---:|\n| Ulm | 12 | 1,234 |\n| Bonn | 7 |  |",
        "City\tSchools\tArea (km)\nUlm\t12\t1,234\nBonn\t7\t",
        'City,Schools,Area (km)\nUlm,12,"1,234"\nBonn,7,',
        "City;Schools;Area (km)\nUlm;12;1,234\nBonn;7;",
        "Some words before.\n\nCity | Schools | Area (km)\nUlm | 12 | 1,234\nBonn | 7 | \n\nAnd after, as usual.",
        "Report 2020 | Report 2020 | Report 2020\nCity | Schools | Area (km)\nUlm | 12 | 1,234\nBonn | 7 | ",
        "City | Schools | Area (km)\nUlm | 12 | 1,234\nBonn | 7 | \nTotal | 19 | 1,234",
    ],
)
def test_a_table_is_found_in_any_layout(text: str) -> None:
    assert cells(text) == ULM


def test_aligned_columns_are_a_table() -> None:
    assert cells("City      Schools\nUlm            12\nBad Orb         7") == [
        ("Ulm", "Schools", "12"),
        ("Bad Orb", "Schools", "7"),
    ]


def test_what_the_readers_of_files_write_is_found_again() -> None:
    table = grid([("City", "Schools"), ("Ulm", "12"), ("Bonn", "7"), ("", "")])
    assert cells(table.plain) == [("Ulm", "Schools", "12"), ("Bonn", "Schools", "7")]
    record = {"Area": {"total": {"text": "357,022 sq km"}, "land": {"text": "8 km (2009)"}}, "Name": {"text": "X: y"}}
    assert cells(written_out(record)) == [
        ("", "Area > total", "357,022 sq km"),
        ("", "Area > land", "8 km"),  # without its note
        ("", "Name", "X: y"),
    ]


def test_years_are_headings_and_empty_corners_are_named_by_nothing() -> None:
    assert cells(" | 2019 | 2020\nUlm | 5 | 6\nBonn | 7 | 8")[:2] == [("Ulm", "2019", "5"), ("Ulm", "2020", "6")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "One line of prose, with commas, and 5 numbers.",
        "First, second.\nThird, fourth.\nFifth, sixth.",  # no column of values
        "Ulm | 12\nBonn | 7\nOrb | 3",  # no header
        "City | 12\nBonn | 7\nOrb | 3",
        "City | Schools\nUlm | 12",  # one row is no table
        "City | Schools\nUlm | 12 | 3\nBonn | 7",
        "-" * 100_000 + "x\n" + " " * 100_000 + "y",  # no pattern may need long for it
        "Note: 5\nElse: 6",  # too few lines to be a record
        "https://example.org: 5\nhttps://example.org: 6\nhttps://example.org: 7\n",
    ],
)
def test_what_is_no_clear_table_is_none(text: str) -> None:
    assert [cell for cell in cells(text) if "http" not in cell[1]] == []


def test_rows_that_share_a_name_are_named_by_two_columns() -> None:
    text = "Region | Quarter | Sales\nNorth | Q1 | 5\nNorth | Q2 | 7\nSouth | Q1 | 2"
    assert cells(text) == [("North Q1", "Sales", "5"), ("North Q2", "Sales", "7"), ("South Q1", "Sales", "2")]


def test_headings_are_made_unique() -> None:
    assert unique_names(["Sales", "sales ", "", "", "x" * 200]) == ["Sales", "sales (2)", "", "", ""]
    assert cells("City | n | n\nUlm | 1 | 2\nBonn | 3 | 4")[:2] == [("Ulm", "n", "1"), ("Ulm", "n (2)", "2")]


@given(st.text('ab1 |\t,;:\n-."', max_size=120))
def test_no_text_is_an_error(text: str) -> None:
    assert all(isinstance(field, Field) and field.column for field in fields(text))
