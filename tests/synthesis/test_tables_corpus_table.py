import datetime as dt

import pytest

from tasks.synthesis.tables.corpus_table import is_added
from tasks.synthesis.tables.readers import Stated

from .tables import column, merged


def test_cells_of_many_documents_become_one_table_with_their_documents() -> None:
    table, rejections = merged(
        [
            Stated("Chad", "Area", "1,284,000 km²", "d1"),
            Stated("chad ", "area", "1,284,000 km²", "d2"),  # the same again
            Stated("Mali", "Area", "5 km²", "d1"),
            Stated("Peru", "Area", None, "d3"),
            Stated("Chad", "Founded", "1960-08-11", "d4"),
            Stated("Mali", "Founded", "1960-09-22", "d4"),
            Stated("Oman", "Alone", "1", "d5"),  # a column of one row is not asked about
        ]
    )
    assert rejections == {}
    assert table.entities == ("Chad", "Mali", "Peru")
    assert table.columns["Area"].values == (1284000, 5, None) and table.columns["Area"].unit == "km²"
    assert table.columns["Founded"].values == (dt.date(1960, 8, 11), dt.date(1960, 9, 22), None)
    assert table.homes == {"Area": (("d1",), ("d1",), ("d3",)), "Founded": (("d4",), ("d4",), ())}
    assert table.known(["Area"]) == [0, 1, 2]  # NULL is known
    assert table.known(["Area", "Founded"]) == [0, 1]
    assert table.documents(["Area", "Founded"], 0) == ["d1", "d4"]


@pytest.mark.parametrize(
    ("found", "value", "homes"),
    [
        ([("5", "d1", ""), ("5.0", "d2", "")], 5, ("d1",)),  # equal as values
        ([("5", "d1", ""), ("6", "d2", "")], None, ()),
        ([("5", "d1", "2020"), ("6", "d2", "2021-05")], 6, ("d2", "d1")),  # the overruled document belongs to it
        ([("5", "d1", "2020"), ("6", "d2", "")], None, ()),  # not all are dated
        ([("5", "d1", "2021"), ("6", "d2", "2021")], None, ()),
        ([("5", "d1", "2020"), ("6", "d2", "2021"), ("6", "d3", "2021")], 6, ("d2", "d1")),
        ([(None, "d1", ""), ("6", "d2", "")], 6, ("d2",)),  # saying nothing is no contradiction
        ([(None, "d1", ""), (None, "d2", "")], None, ("d1",)),
    ],
)
def test_on_conflict_the_latest_document_wins_or_none(
    found: list[tuple[str | None, str, str]], value: int | None, homes: tuple[str, ...]
) -> None:
    others = [Stated("B", "m", "1.5", "d9"), Stated("C", "m", "2", "d9")]
    table, rejections = merged([*(Stated("A", "m", *one) for one in found), *others])
    row = table.entities.index("A")
    assert (table.columns["m"].values[row], table.homes["m"][row]) == (value, homes)
    assert table.disputed(["m"], row) is (len(homes) == 2)
    assert rejections == ({} if homes else {"documents disagree on a cell": 1})


def test_a_few_texts_of_another_type_are_left_out_and_counted() -> None:
    stated = [Stated(f"n{index}", "m", f"{index} km", "d") for index in range(10)]
    table, rejections = merged([*stated, Stated("x", "m", "landlocked", "d")])
    assert table.columns["m"].kind == "integer"
    assert table.homes["m"][table.entities.index("x")] == ()
    assert rejections == {"a cell is not of its column's type": 1}
    mixed, _ = merged([*stated, *(Stated(f"o{index}", "m", f"{index} ha", "d") for index in range(5))])
    assert mixed.columns["m"].kind == "text"  # two units


def test_an_ambiguous_column_stays_text_and_is_counted() -> None:
    table, rejections = merged([Stated("a", "day", "01/02/2023", "d"), Stated("b", "day", "02/03/2023", "d")])
    assert table.columns["day"].kind == "text"
    assert rejections == {"a column can be read in several ways": 1}


def test_nothing_makes_an_empty_table() -> None:
    table, rejections = merged([])
    assert (table.entities, dict(table.columns), rejections) == ((), {}, {})
    assert merged([Stated("", "m", "1", "d"), Stated("a", " ", "1", "d")])[0].entities == ()


@pytest.mark.parametrize(
    ("name", "cells", "added"),
    [
        ("Population", ("5", "7"), True),
        ("Sales (EUR)", ("5", "7.5"), True),
        ("Year", ("5", "7"), False),
        ("Founded", ("1960", "2001"), False),  # years by their values
        ("Birth rate", ("5", "7"), False),
        ("Customer ID", ("5", "7"), False),
        ("Forest", ("5%", "7%"), False),
        ("Deaths", ("5 deaths/1,000", "7 deaths/1,000"), False),
        ("City", ("Ulm", "Bonn"), False),
    ],
)
def test_only_amounts_are_added_up(name: str, cells: tuple[str, ...], added: bool) -> None:
    assert is_added(column(name, *cells)) is added
