"""Inputs of the kinds TB-01, TB-03, TB-05, SQL-01 and SQL-03, from files to executed answers."""

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tasks.corpus.columns import Cell, Column
from tasks.corpus.formats.delimited import read_delimited, read_table
from tasks.corpus.formats.html import read_html
from tasks.corpus.formats.xlsx import read_xlsx
from tasks.errors import UnsafeQueryError
from tasks.records import AnswerKind, Document, Finish, Question, Verdict
from tasks.rewards.rules import check
from tasks.synthesis.tables.answers import Form, gold
from tasks.synthesis.tables.corpus_table import ENTITY, corpus_table
from tasks.synthesis.tables.engine import Drop, LockedTable
from tasks.synthesis.tables.readers import LayoutReader


def table_of(*counts: tuple[str, int | None]) -> LockedTable:
    names, numbers = zip(*counts, strict=True) if counts else ((), ())
    return LockedTable([Column(ENTITY, "text", names), Column("count", "integer", numbers)])


def read_as_document(text: str) -> LockedTable:
    """The text of a file as a document, read by its layout and merged into a table."""
    document = Document(id="t", title="t", text=text, kind="text", cluster="t", split="train", source="t")
    return LockedTable(corpus_table(LayoutReader().read([document], Counter()), Counter()).all_columns)


def csv_file(folder: Path, text: str) -> LockedTable:
    """A csv file, as its reader writes it into a document."""
    (folder / "t.csv").write_text(text)
    (block,) = read_delimited(folder / "t.csv").parts[0].blocks
    assert not isinstance(block, str)
    return read_as_document(block.plain)


def xlsx_file(folder: Path, lines: Sequence[Sequence[Any]], merged: Sequence[str] = ()) -> LockedTable:
    from openpyxl import Workbook

    book = Workbook()
    assert book.active is not None
    for line in lines:
        book.active.append(line)
    for cells in merged:
        book.active.merge_cells(cells)
    book.save(folder / "t.xlsx")
    (block,) = read_xlsx(folder / "t.xlsx").parts[0].blocks
    assert not isinstance(block, str)
    return read_as_document(block.plain)


@pytest.mark.parametrize(
    ("csv", "column"),
    [
        ("v\n+49\n+33\n", ("+49", "+33")),  # calling codes
        ("v\n1e5\n2\n", ("1e5", "2")),
        ("v\n0x10\n16\n", ("0x10", "16")),
        ("v\n1_000\n2\n", ("1_000", "2")),
        ("v\nNaN\nInfinity\n", ("NaN", "Infinity")),
        ("v\nNA\nnull\n", ("NA", "null")),
        ("v\nnan\nNone\n", ("nan", "None")),
        ("v\n2021-05-01\n2021-06-01\n", (dt.date(2021, 5, 1), dt.date(2021, 6, 1))),
        ("v\n05/06/2021\n06/05/2021\n", ("05/06/2021", "06/05/2021")),
        ("v\n١٢\n3\n", ("١٢", "3")),  # other digits are not computed with
        ("v\n007\n100\n", ("007", "100")),
        ("v\ntrue\nfalse\n", ("true", "false")),
        ("v\n12345678901234567890\n1\n", (12345678901234567890, 1)),
        ("n,v\na,9007199254740993\nb,\n", (9007199254740993, None)),  # 2⁵³ + 1 beside a missing cell
        ("n,v\na,0.1\nb,0.30000000000000000001\n", (Decimal("0.1"), Decimal("0.30000000000000000001"))),
    ],
)
def test_tb03_a_cell_keeps_every_digit_or_stays_text(csv: str, column: tuple[object, ...]) -> None:
    assert read_table(csv)[-1].values == column


@pytest.mark.parametrize(
    ("csv", "sql", "rows"),
    [
        ("k,id,v\na,1234567890123456789,1\nb,,2\n", "SELECT id FROM facts ORDER BY v",
         [(1234567890123456789,), (None,)]),
        ("k,code,n\nx,00501,1\ny,00601,2\n", "SELECT code FROM facts ORDER BY n", [("00501",), ("00601",)]),
        ("name,code,v\nNamibia,NA,1\nNull,None,2\n", "SELECT entity, code FROM facts ORDER BY v",
         [("Namibia", "NA"), ("Null", "None")]),
        ("k,id\na,9223372036854775808\nb,1\n", "SELECT id FROM facts ORDER BY id DESC", [(9223372036854775808,), (1,)]),
    ],
)  # fmt: skip
def test_tb03_codes_and_missing_cells_survive_from_file_to_sql(
    csv: str, sql: str, rows: list[tuple[Cell, ...]], tmp_path: Path
) -> None:
    assert csv_file(tmp_path, csv).query(sql) == rows


@pytest.mark.parametrize(
    ("csv", "sql", "answer"),
    [
        ('item,amt\na,"1,234"\nb,"2,500"\nc,"900"\n', "SELECT max(amt) FROM facts", "2500"),
        ('item,amt\na,"1,234"\nb,"2,500"\nc,"900"\n', "SELECT sum(amt) FROM facts", "4634"),
        ('item,amt\na,"1,234"\nb,"2,500"\nc,"900"\n', "SELECT entity FROM facts ORDER BY amt DESC LIMIT 1", "b"),
        ("item;amt\na;1000\nb;900\n", "SELECT max(amt) FROM facts", "1000"),
        ("item;amt\na;1.234,50\nb;900,00\n", "SELECT sum(amt) FROM facts", "2134.50"),
        ('item\tamt\na\t"1,000,000"\nb\t999999\n', "SELECT entity FROM facts ORDER BY amt DESC LIMIT 1", "a"),
        ('item,amt\na,"(1,234)"\nb,"2,000"\n', "SELECT sum(amt) FROM facts", "766"),
        ('item,amt\na,"12,34,567"\nb,"1,000"\n', "SELECT max(amt) FROM facts", "1234567"),
        ("item,amt\na,$12\nb,$9\n", "SELECT max(amt) FROM facts", "12"),
        ("item,amt\na,12 %\nb,9 %\n", "SELECT max(amt) FROM facts", "12"),
        ('item,amt\na,"12,345"\nb,"2,000"\nc,\n', "SELECT sum(amt) FROM facts", "14345"),
        ('item,amt\na,"12,345"\nb,"2,000"\nc,\n', "SELECT count(amt) FROM facts", "2"),  # a missing cell is no 0
    ],
)
def test_tb01_separated_thousands_are_numbers_in_sql(csv: str, sql: str, answer: str, tmp_path: Path) -> None:
    ((value,),) = csv_file(tmp_path, csv).result(sql)
    assert str(value) == answer


def test_tb05_merged_cells_count_for_each_of_their_rows(tmp_path: Path) -> None:
    lines = [["Region", "Quarter", "Sales"], ["North", "Q1", 5], [None, "Q2", 7], ["South", "Q1", 2], [None, "Q3", 9]]
    table = xlsx_file(tmp_path, lines, ["A2:A3"])
    assert table.query("SELECT sum(Sales) FROM facts WHERE entity LIKE 'North%'") == [(12,)]
    assert table.query("SELECT entity FROM facts ORDER BY Sales") == [
        ("South Q1",),
        ("North Q1",),
        ("North Q2",),
    ]  # whose Q3?


def test_tb05_captions_and_repeated_headings_over_merged_cells(tmp_path: Path) -> None:
    lines = [["Report 2020", None, None], ["City", "Sales", "Sales"], ["Ulm", 1, 2], ["Bonn", None, 4], ["Total", 1, 6]]
    table = xlsx_file(tmp_path, lines, ["A1:C1"])
    rows = [("Bonn", None, 4), ("Ulm", 1, 2)]  # the blank stays blank, and totals are no row
    assert table.query('SELECT entity, "Sales", "Sales (2)" FROM facts ORDER BY 1') == rows


def test_tb05_spans_of_a_web_page(tmp_path: Path) -> None:
    page = (
        "<table><tr><th>Region<th>City<th>Schools</tr><tr><td rowspan=2>North<td>Ulm<td>12%</tr>"
        "<tr><td>Bonn<td>7%</tr><tr><td>South<td>Hof<td>3%</tr></table>"
    )
    (tmp_path / "a.html").write_text(page)
    (block,) = read_html(tmp_path / "a.html").parts[0].blocks
    assert not isinstance(block, str)
    table = read_as_document(block.plain)
    rows = table.query("SELECT entity, Schools FROM facts ORDER BY Schools")
    assert rows == [("South Hof", 3), ("North Bonn", 7), ("North Ulm", 12)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_blob('/etc/hostname')",
        "SELECT * FROM parquet_scan('x.parquet')",
        "SELECT * FROM read_json_auto('x.json')",
        "SELECT * FROM (COPY facts TO 'x')",
        "SELECT (SELECT content FROM read_text('/etc/hostname'))",
        "WITH t AS (SELECT * FROM read_csv_auto('x')) SELECT * FROM t",
        "SELECT * FROM facts WHERE entity IN (SELECT file FROM glob('/*'))",
        "DETACH facts",
        "RESET lock_configuration",
        "USE other",
        "CREATE MACRO f(x) AS x",
        "CREATE SECRET s (TYPE s3)",
        "VACUUM",
        "CHECKPOINT",
        "SELECT 1 FROM facts; SELECT 2 FROM facts",
        "DELETE FROM facts",
        "UPDATE facts SET count = 0",
        'SELECT * FROM "facts.csv"',
        "SELECT * FROM 's3://bucket/x.parquet'",
        "SELECT count INTO OUTFILE 'x' FROM facts",
    ],
)
def test_sql01_only_the_table_is_read(sql: str) -> None:
    table = table_of(("a", 1))
    with pytest.raises(UnsafeQueryError):
        table.query(sql)
    assert table.query("SELECT sum(count) FROM facts") == [(1,)]


@pytest.mark.parametrize(
    ("counts", "sql", "form", "answer"),
    [
        ([("a", 9), ("b", 5), ("c", 5)], "SELECT entity FROM facts ORDER BY count DESC LIMIT 1", Form.STRING, ("a",)),
        ([("a", 5), ("b", 5), ("c", 1)], "SELECT entity FROM facts ORDER BY count DESC LIMIT 1", Form.STRING,
         Drop.NOT_UNIQUE),
        ([("a", 9), ("b", 5), ("c", 5)], "SELECT entity FROM facts ORDER BY count LIMIT 1", Form.STRING,
         Drop.NOT_UNIQUE),
        ([("a", 1)], "SELECT sum(count) FROM facts WHERE count > 5", Form.INTEGER, Drop.EMPTY),
        ([("a", None), ("b", None)], "SELECT max(count) FROM facts", Form.INTEGER, Drop.EMPTY),
        ([], "SELECT sum(count) FROM facts", Form.INTEGER, Drop.EMPTY),
        ([("a", 1), ("b", None), ("c", 3)], "SELECT avg(count) FROM facts", Form.NUMBER, ("2.00",)),
        ([("a", None), ("b", 0)], "SELECT min(count) FROM facts", Form.INTEGER, ("0",)),
        ([("a", None), ("b", 2)], "SELECT entity FROM facts ORDER BY count LIMIT 1", Form.STRING, ("b",)),
        ([("a", None), ("b", 3)], "SELECT count(count) FROM facts", Form.INTEGER, ("1",)),
        ([("a", None), ("b", 3)], "SELECT count FROM facts WHERE entity = 'a'", Form.INTEGER, Drop.MISSING),
        ([("a", 3)], "SELECT count(*) FROM facts WHERE count > 5", Form.INTEGER, ("0",)),  # a count of nothing is 0
        ([("a", 3)], "SELECT entity FROM facts WHERE count > 5", Form.LIST, ()),  # and a list of nothing is empty
        ([("a", 7), ("b", 2)], "SELECT max(count) / min(count) FROM facts", Form.NUMBER, ("3.50",)),
        ([("a", 1)], "SELECT 1 / 2 FROM facts", Form.NUMBER, ("0.50",)),
        ([("a", 1)], "SELECT count / 0 FROM facts", Form.NUMBER, Drop.MISSING),
        ([("a", 1), ("a", 4), ("b", 5)], "SELECT entity FROM facts GROUP BY entity ORDER BY sum(count) DESC LIMIT 1",
         Form.STRING, Drop.NOT_UNIQUE),
        ([("a", 1), ("b", 1)], "SELECT entity FROM facts", Form.STRING, Drop.NOT_UNIQUE),
    ],
)  # fmt: skip
def test_sql03_only_one_known_value_is_gold(
    counts: list[tuple[str, int | None]], sql: str, form: Form, answer: tuple[str, ...] | Drop
) -> None:
    assert gold(table_of(*counts).result(sql), form) == answer


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT entity FROM facts LIMIT 1",
        "SELECT max(entity) FROM (SELECT entity FROM facts ORDER BY count DESC LIMIT 1)",
        "SELECT sum(count) FROM (SELECT count FROM facts ORDER BY count DESC LIMIT 2)",
        "WITH t AS (SELECT entity FROM facts ORDER BY count DESC LIMIT 1) SELECT entity FROM t",
    ],
)
def test_sql03_a_cut_that_could_hide_a_tie_gives_no_gold(sql: str) -> None:
    assert table_of(("a", 5), ("b", 5), ("c", 1)).result(sql) is Drop.NOT_UNIQUE


@pytest.mark.parametrize(
    ("answer", "gold_answer", "kind", "right"),
    [
        ("[]", (), AnswerKind.LIST, True),
        ("0", (), AnswerKind.LIST, False),
        ("[]", ("0",), AnswerKind.NUMBER, False),
        ("none", ("0",), AnswerKind.NUMBER, False),
    ],
)
def test_sql03_nothing_is_not_zero(answer: str, gold_answer: tuple[str, ...], kind: AnswerKind, right: bool) -> None:
    question = Question.model_construct(
        question="Which of A and B?", gold=gold_answer, answer_kind=kind, options=(), document_ids=("d",)
    )
    verdict = check(f"The answer is {answer}.", Finish.FINISHED, question)
    assert verdict is (Verdict.CORRECT if right else Verdict.WRONG)
