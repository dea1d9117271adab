"""More inputs of the kinds TB-01, TB-03, SQL-01 and SQL-03."""

import pytest

from tasks.corpus.columns import table_rows
from tasks.corpus.formats.delimited import read_table
from tasks.errors import UnsafeQueryError
from tasks.records import Document
from tasks.synthesis.tables import Drop, LockedTable, Row, read_rows


def table_of(*counts: tuple[str, int | None]) -> LockedTable:
    return LockedTable([Row(name, "m", count, "d") for name, count in counts])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("csv", "column"),
    [
        ("v\n+49\n+33\n", ("+49", "+33")),  # calling codes
        ("v\n1e5\n2\n", ("1e5", "2")),
        ("v\n0x10\n16\n", ("0x10", "16")),
        ("v\n1_000\n2\n", ("1_000", "2")),
        ("v\nNaN\nInfinity\n", ("NaN", "Infinity")),
        ("v\nNA\nnull\n", ("NA", "null")),
        ("v\n2021-05-01\n2021-06-01\n", ("2021-05-01", "2021-06-01")),
        ("v\n١٢\n3\n", ("١٢", "3")),  # other digits are not computed with
        ("v\n007\n100\n", ("007", "100")),
        ("v\ntrue\nfalse\n", ("true", "false")),
        ("v\n12345678901234567890\n1\n", (12345678901234567890, 1)),
        ("n,v\na,9007199254740993\nb,\n", (9007199254740993, None)),  # 2⁵³ + 1 beside a missing cell
    ],
)
def test_tb03_a_cell_keeps_every_digit_or_stays_text(csv: str, column: tuple[object, ...]) -> None:
    assert read_table(csv)[-1].values == column


@pytest.mark.parametrize(
    ("csv", "sql", "gold"),
    [
        ("item;amt\na;1000\nb;900\n", "SELECT max(count) FROM facts", "1000"),
        ('item\tamt\na\t"1,000,000"\nb\t999999\n', "SELECT country FROM facts ORDER BY count DESC LIMIT 1", "a"),
        ('item,amt\na,"12,345"\nb,"2,000"\nc,\n', "SELECT sum(count) FROM facts", "14345"),
        ('item,amt\na,"12,345"\nb,"2,000"\nc,\n', "SELECT count(*) FROM facts", "2"),  # a missing cell is no 0
    ],
)
def test_tb01_separated_thousands_are_numbers_in_sql(csv: str, sql: str, gold: str) -> None:
    text = "\n".join(table_rows(read_table(csv)))
    document = Document(id="t", title="t", text=text, kind="table", cluster="t", split="train", source="t.csv")
    assert LockedTable(read_rows([document]).rows).gold(sql) == gold


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_blob('/etc/hostname')",
        "SELECT * FROM parquet_scan('x.parquet')",
        "SELECT * FROM read_json_auto('x.json')",
        "SELECT * FROM (COPY facts TO 'x')",
        "SELECT (SELECT content FROM read_text('/etc/hostname'))",
        "SELECT * FROM facts WHERE country IN (SELECT file FROM glob('/*'))",
        "DETACH facts",
        "RESET lock_configuration",
        "USE other",
        "CREATE MACRO f(x) AS x",
        "VACUUM",
        "CHECKPOINT",
        "SELECT 1 FROM facts; SELECT 2 FROM facts",
        "DELETE FROM facts",
        "UPDATE facts SET count = 0",
        'SELECT * FROM "facts.csv"',
        "SELECT count INTO OUTFILE 'x' FROM facts",
    ],
)
def test_sql01_only_the_table_is_read(sql: str) -> None:
    table = table_of(("a", 1))
    with pytest.raises(UnsafeQueryError):
        table.query(sql)
    assert table.query("SELECT sum(count) FROM facts") == [(1,)]


@pytest.mark.parametrize(
    ("counts", "sql", "gold"),
    [
        ([("a", 9), ("b", 5), ("c", 5)], "SELECT country FROM facts ORDER BY count DESC LIMIT 1", "a"),
        ([("a", 9), ("b", 5), ("c", 5)], "SELECT country FROM facts ORDER BY count LIMIT 1", Drop.NOT_UNIQUE),
        ([("a", None), ("b", None)], "SELECT max(count) FROM facts", Drop.EMPTY),
        ([("a", None), ("b", 0)], "SELECT min(count) FROM facts", "0"),
        ([("a", None), ("b", 3)], "SELECT count(count) FROM facts", "1"),
        ([("a", None), ("b", 3)], "SELECT count FROM facts WHERE country = 'a'", Drop.MISSING),
        ([("a", 3)], "SELECT count(*) FROM facts WHERE count > 5", "0"),  # a count of nothing is 0, not missing
        ([("a", 7), ("b", 2)], "SELECT max(count) / min(count) FROM facts", "3.5"),
        ([("a", 1), ("a", 4), ("b", 5)], "SELECT country FROM facts GROUP BY country ORDER BY sum(count) DESC LIMIT 1",
         Drop.NOT_UNIQUE),
    ],
)  # fmt: skip
def test_sql03_only_one_known_value_is_gold(counts: list[tuple[str, int | None]], sql: str, gold: str | Drop) -> None:
    assert table_of(*counts).gold(sql) == gold


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT country FROM facts LIMIT 1",
        "SELECT max(country) FROM (SELECT country FROM facts ORDER BY count DESC LIMIT 1)",
        "SELECT sum(count) FROM (SELECT count FROM facts ORDER BY count DESC LIMIT 2)",
    ],
)
def test_a_cut_that_could_hide_a_tie_gives_no_gold(sql: str) -> None:
    assert table_of(("a", 5), ("b", 5), ("c", 1)).gold(sql) is Drop.NOT_UNIQUE
