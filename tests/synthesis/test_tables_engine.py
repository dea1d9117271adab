import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.corpus.columns import Column
from tasks.errors import UnsafeQueryError
from tasks.synthesis.tables import engine
from tasks.synthesis.tables.engine import Drop, LockedTable, quoted

from .tables import column, locked

REFUSED = [
    "SELECT content FROM read_text('notes/secret.txt')",
    "SELECT * FROM 'secrets.csv'",
    "SELECT * FROM read_csv('secrets.csv')",
    "SELECT * FROM glob('*')",
    "WITH a AS (SELECT * FROM read_text('secrets.csv')) SELECT * FROM a",
    "WITH a AS (SELECT * FROM other) SELECT * FROM a",
    "COPY (SELECT 1) TO 'out.csv'",
    "COPY facts TO 'out.csv'",
    "EXPORT DATABASE 'out'",
    "ATTACH 'other.db' AS o",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access=true",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "SELECT 1; DROP TABLE facts",
    "DROP TABLE facts",
    "INSERT INTO facts VALUES ('a', 1)",
    "CREATE TABLE other AS SELECT * FROM facts",
    "SELECT getenv('HOME')",
    "SELECT current_setting('threads')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM main.facts",
    "SELECT * FROM other",
    "WITH RECURSIVE r AS (SELECT 1) SELECT * FROM r",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
    "SELECT count FROM facts UNION SELECT 1",
    "SELECT * FROM (SELECT 1 UNION ALL SELECT 2)",
    "SELECT * FROM (VALUES (1))",
    "SELECT * FROM facts, range(1000000000)",
    "SELECT unnest([1, 2])",
    "SELECT repeat('x', 1000000000) FROM facts",
    "SELECT * FROM facts WHERE count = $1",
    "SELECT * FROM facts LIMIT (SELECT max(count) FROM facts)",
    "SELECT count FROM facts LIMIT 50%",
    "SELECT CAST(entity AS JSON) FROM facts",
    "SELECT CAST(entity AS INTEGER[]) FROM facts",
    "SELECT sleep(10)",
    "EXPLAIN SELECT 1",
    "SUMMARIZE facts",
    "DESCRIBE facts",
    "FROM facts PIVOT (sum(count) FOR entity IN ('a'))",
    "",
    "SELECT",
    "not sql",
    "(" * 5000,
    "SELECT " + "(SELECT " * 900 + "1" + ")" * 900,
    "SELECT " + "+".join("1" * 4000),
    "SELECT 1 -- " + "x" * 20_000,
]


@pytest.mark.parametrize("sql", REFUSED)
def test_only_a_plain_select_over_the_table_runs(sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secrets.csv").write_text("a\n1\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnsafeQueryError):
        locked(("a", 1)).query(sql)
    assert [path.name for path in tmp_path.iterdir()] == ["secrets.csv"]


@pytest.mark.parametrize("sql", ["SELECT * FROM read_text('x')", "SET threads = 4", "COPY (SELECT 1) TO 'out.csv'"])
def test_the_database_itself_is_locked_too(sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnsafeQueryError, match="failed"):
        locked(("a", 1))._run(sql)
    assert list(tmp_path.iterdir()) == []


_PIECES = (
    *"SELECT FROM WHERE WITH AS facts other count entity * ( ) , ; ' \" 1 0 - + / = < NULL UNION ALL ORDER BY".split(),
    *"LIMIT GROUP HAVING OVER JOIN ON CASE WHEN THEN END CAST DATE sum( max( read_text( range( COPY TO SET".split(),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=12).map(" ".join) | st.text(max_size=40))
def test_any_text_runs_or_is_refused_and_the_table_stays_as_it_is(sql: str) -> None:
    for statement in (sql, f"SELECT {sql}", f"SELECT count FROM facts WHERE {sql}"):
        try:
            TABLE.result(statement)
        except UnsafeQueryError:
            continue
    assert TABLE.query("SELECT entity, count FROM facts") == [("a", 5), ("b", None)]


TABLE = locked(("a", 5), ("b", None))


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT sum(count) FROM facts", [(7,)]),
        ("SELECT entity FROM facts WHERE count > 2 AND NOT entity = 'b'", [("a",)]),
        ("SELECT f.entity FROM facts AS f JOIN facts AS g ON f.count < g.count", [("b",)]),
        ("WITH big AS (SELECT entity FROM facts WHERE count > 2) SELECT count(*) FROM big", [(1,)]),
        ("SELECT entity FROM facts WHERE count = (SELECT max(count) FROM facts)", [("a",)]),
        ("SELECT round(100.0 * sum(count) FILTER (WHERE entity = 'a') / sum(count), 2) FROM facts", [(71.43,)]),
        ("SELECT count(DISTINCT lower(entity)) FROM facts", [(2,)]),
        ("SELECT CAST(sum(count) AS DOUBLE) / nullif(count(*), 0) FROM facts", [(3.5,)]),
        ("SELECT count / 0 FROM facts WHERE entity = 'a'", [(None,)]),
    ],
)
def test_what_models_write_runs(sql: str, rows: list[tuple[object, ...]]) -> None:
    assert locked(("a", 5), ("b", 2)).query(sql) == rows


def test_row_and_time_limits_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    table = locked(*((f"n{index}", index) for index in range(120)))
    monkeypatch.setattr(engine, "ROW_LIMIT", 100)
    with pytest.raises(UnsafeQueryError, match="more than 100 rows"):
        table.query("SELECT * FROM facts")
    monkeypatch.setattr(engine, "SECONDS_LIMIT", 0.2)
    many = ", ".join(f"facts AS t{index}" for index in range(8))
    with pytest.raises(UnsafeQueryError, match="failed"):
        table.query(f"SELECT sum(t0.count * t7.count) FROM {many}")
    with pytest.raises(UnsafeQueryError, match="failed"):
        table.query(f"WITH a AS (SELECT t0.count FROM {many} ORDER BY 1) SELECT count(*) FROM a, a AS b, a AS c")
    assert table.query("SELECT max(count) FROM facts") == [(119,)]


def test_a_query_that_needs_too_much_memory_is_stopped() -> None:
    table = locked(*((f"{index} {'x' * 2000}", index) for index in range(400)))
    with pytest.raises(UnsafeQueryError, match="failed"):
        table.query("SELECT count(DISTINCT upper(a.entity)), a.count, b.count, c.count FROM facts a, facts b, facts c "
                    "GROUP BY 2, 3, 4 ORDER BY 1")  # fmt: skip
    assert table.query("SELECT count(*) FROM facts") == [(400,)]


def test_every_kind_of_column_keeps_its_values() -> None:
    columns = [
        column("id", str(2**100), "-5", ""),
        column("ratio", "0.10", "-3.25", ""),
        column("day", "2024-02-29", "1999-12-31", ""),
        column("month", "2024-02", "1999-12", ""),
        column("text", "NA", "007", ""),
    ]
    rows = LockedTable(columns).query("SELECT * FROM facts")
    assert rows == [
        (2**100, Decimal("0.10"), dt.date(2024, 2, 29), "2024-02", "NA"),
        (-5, Decimal("-3.25"), dt.date(1999, 12, 31), "1999-12", "007"),
        (None, None, None, None, None),
    ]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.text("aA'\"; -%_\\[]()", min_size=1), min_size=1, max_size=4, unique_by=str.casefold))
def test_column_names_are_data(names: list[str]) -> None:
    table = LockedTable([Column(name, "integer", (number,)) for number, name in enumerate(names)])
    for number, name in enumerate(names):
        assert table.query(f"SELECT {quoted(name)} FROM facts") == [(number,)]


@pytest.mark.parametrize(
    ("counts", "sql", "result"),
    [
        ([("a", 5), ("b", 5), ("c", 1)], "SELECT entity FROM facts ORDER BY count DESC LIMIT 1", Drop.NOT_UNIQUE),
        ([("a", 5), ("b", 4)], "SELECT entity FROM facts ORDER BY count DESC LIMIT 1", [("a",)]),
        ([("a", 5), ("b", 4)], "SELECT entity AS c FROM facts ORDER BY count LIMIT 1", [("b",)]),
        ([("a", 5), ("b", 4), ("c", 4)], "SELECT entity FROM facts ORDER BY count DESC LIMIT 2", Drop.NOT_UNIQUE),
        ([("a", 5), ("b", 4), ("c", 3)], "SELECT entity FROM facts ORDER BY count DESC LIMIT 2", [("a",), ("b",)]),
        ([("a", 1), ("b", 1)], "SELECT entity FROM facts LIMIT 1", Drop.NOT_UNIQUE),
        ([("a", 1)], "SELECT sum(count) FROM facts WHERE count > 5", Drop.EMPTY),
        ([("a", 1)], "SELECT entity FROM facts WHERE count > 5", []),
        ([("a", None), ("b", 2)], "SELECT entity FROM facts ORDER BY count LIMIT 1", [("b",)]),
        ([("a", None)], "SELECT count FROM facts", [(None,)]),
    ],
)
def test_a_cut_through_a_tie_has_no_result(
    counts: list[tuple[str, int | None]], sql: str, result: list[tuple[object, ...]] | Drop
) -> None:
    assert locked(*counts).result(sql) == result
