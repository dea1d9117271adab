from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpus.columns import table_rows
from tasks.corpus.formats.delimited import read_table
from tasks.errors import UnsafeQueryError
from tasks.synthesis import tables
from tasks.synthesis.tables import Drop, LockedTable, Row, numeric_questions, read_rows

from .examples import document, reported


def table_of(*counts: tuple[str, int | None]) -> LockedTable:
    return LockedTable([Row(name, "m", count, "d") for name, count in counts])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT content FROM read_text('notes/secret.txt')",
        "SELECT * FROM 'secrets.csv'",
        "SELECT * FROM read_csv('secrets.csv')",
        "SELECT * FROM glob('*')",
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
        "INSERT INTO facts VALUES ('a', 'm', 1, 'd')",
        "CREATE TABLE other AS SELECT * FROM facts",
        "SELECT getenv('HOME')",
        "SELECT current_setting('threads')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM main.facts",
        "SELECT * FROM other",
        "WITH RECURSIVE r AS (SELECT 1) SELECT * FROM r",
        "SELECT count FROM facts UNION SELECT 1",
        "SELECT * FROM facts, range(1000000000)",
        "SELECT * FROM facts WHERE count = $1",
        "SELECT sleep(10)",
        "EXPLAIN SELECT 1",
        "",
        "SELECT",
        "not sql",
        "(" * 5000,
        "SELECT 1 -- " + "x" * 20_000,
    ],
)
def test_only_a_plain_select_over_the_table_runs(sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secrets.csv").write_text("a\n1\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnsafeQueryError):
        table_of(("a", 1)).query(sql)
    assert [path.name for path in tmp_path.iterdir()] == ["secrets.csv"]


@pytest.mark.parametrize("sql", ["SELECT * FROM read_text('x')", "SET threads = 4", "COPY (SELECT 1) TO 'out.csv'"])
def test_the_database_itself_is_locked_too(sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnsafeQueryError, match="failed"):
        table_of(("a", 1))._run(sql)
    assert list(tmp_path.iterdir()) == []


def test_plain_selects_run() -> None:
    table = table_of(("a", 5), ("b", 2))
    assert table.query("SELECT sum(count) FROM facts") == [(7,)]
    assert table.query("SELECT country FROM facts WHERE count > 2 AND NOT country = 'b'") == [("a",)]
    assert table.query("SELECT f.country FROM facts AS f JOIN facts AS g ON f.count < g.count") == [("b",)]


def test_row_and_time_limits_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(*((f"n{index}", index) for index in range(120)))
    monkeypatch.setattr(tables, "ROW_LIMIT", 100)
    with pytest.raises(UnsafeQueryError, match="more than 100 rows"):
        table.query("SELECT * FROM facts")
    monkeypatch.setattr(tables, "SECONDS_LIMIT", 0.2)
    many = ", ".join(f"facts AS t{index}" for index in range(8))
    with pytest.raises(UnsafeQueryError, match="failed"):
        table.query(f"SELECT sum(t0.count * t7.count) FROM {many}")
    assert table.query("SELECT max(count) FROM facts") == [(119,)]


@pytest.mark.parametrize(
    ("counts", "sql", "gold"),
    [
        (
            [("a", 5), ("b", 5), ("c", 1)],
            "SELECT country FROM facts ORDER BY count DESC LIMIT 1",
            Drop.NOT_UNIQUE,
        ),
        ([("a", 5), ("b", 4)], "SELECT country FROM facts ORDER BY count DESC LIMIT 1", "a"),
        ([("a", 5), ("b", 4)], "SELECT country AS c FROM facts ORDER BY count LIMIT 1", "b"),
        ([("a", 1)], "SELECT sum(count) FROM facts WHERE count > 5", Drop.EMPTY),
        ([("a", 1)], "SELECT country FROM facts WHERE count > 5", Drop.EMPTY),
        ([], "SELECT sum(count) FROM facts", Drop.EMPTY),
        ([("a", 1), ("b", None), ("c", 3)], "SELECT avg(count) FROM facts", "2.0"),
        ([("a", None), ("b", 2)], "SELECT country FROM facts ORDER BY count LIMIT 1", "b"),
        ([("a", None)], "SELECT count FROM facts", Drop.MISSING),
        ([("a", 0)], "SELECT count FROM facts", "0"),
        ([("a", 1)], "SELECT 1 / 2 FROM facts", "0.5"),
        ([("a", 1), ("b", 1)], "SELECT country FROM facts", Drop.NOT_UNIQUE),
        ([("a", 1)], "SELECT country, count FROM facts", Drop.NOT_UNIQUE),
    ],
)
def test_a_result_is_gold_only_if_it_is_one_known_value(
    counts: list[tuple[str, int | None]], sql: str, gold: str | Drop
) -> None:
    assert table_of(*counts).gold(sql) == gold


def test_a_csv_with_thousands_separators_is_summed_as_numbers() -> None:
    lines = table_rows(read_table('item,amt\na,"1,234"\nb,"2,500"\nc,"900"\n'))
    reading = read_rows([document("t", "\n".join(lines), "table")])
    table = LockedTable(reading.rows)
    assert table.gold("SELECT max(count) FROM facts WHERE measure = 'amt'") == "2500"
    assert table.gold("SELECT sum(count) FROM facts WHERE measure = 'amt'") == "4634"
    assert table.gold("SELECT country FROM facts WHERE measure = 'amt' ORDER BY count DESC LIMIT 1") == "b"


def test_cells_on_which_documents_disagree_are_left_out() -> None:
    documents = [reported("r1", "m", A=1, B=2), reported("r2", "m", B=3, C=4), reported("r3", "m", A=1)]
    reading = read_rows([*documents, document("talk", "| D | m | 9 |", "dialogue")])
    assert [(row.country, row.count, row.document_id) for row in reading.rows] == [
        ("A", 1, "r1"),
        ("C", 4, "r2"),
    ]
    assert reading.conflicts == 1


def _names(text: str) -> tuple[str, ...]:
    return tuple(sorted(text.rpartition(" of ")[2].rstrip("?").replace(" and ", ", ").split(", ")))


def test_numeric_questions_ask_what_their_sql_computes() -> None:
    documents = [reported("r1", "bridges", A=3, B=5, C=3), reported("r2", "bridges", D=7, E=1)]
    harvest = numeric_questions(documents, "train", 500, 0)
    by_text = {question.question: question for question in harvest.questions}
    assert len(by_text) == len(harvest.questions)
    golds = {_names(text): question for text, question in by_text.items() if "total" in text}
    assert {names: question.gold for names, question in golds.items()} == {
        ("A", "B"): ("8",), ("A", "C"): ("6",), ("A", "D"): ("10",), ("A", "E"): ("4",), ("B", "C"): ("8",),
        ("B", "D"): ("12",), ("B", "E"): ("6",), ("C", "D"): ("10",), ("C", "E"): ("4",), ("D", "E"): ("8",),
    }  # fmt: skip
    assert set(golds["A", "D"].document_ids) == {"r1", "r2"}
    assert harvest.rejections["all numbers are equal"] > 0
    assert not any(text.endswith(("of A and C?", "of C and A?")) and "highest" in text for text in by_text)


def test_too_few_rows_give_no_question() -> None:
    assert numeric_questions([], "train", 5, 0).questions == []
    assert numeric_questions([reported("r", "m", A=1)], "train", 5, 0).questions == []


@given(st.dictionaries(st.text("aA'\"; -%_", min_size=1).map(str.strip).filter(bool), st.integers(0, 99), min_size=2))
def test_names_are_data_in_sql(counts: dict[str, int]) -> None:
    table = LockedTable([Row(name, "m'--", count, "d") for name, count in counts.items()])
    names = list(counts)[:2]
    sql = tables.TEMPLATES[0].sql("m'--", names)
    assert table.gold(sql) == str(sum(counts[name] for name in names))
