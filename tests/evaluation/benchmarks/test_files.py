"""Official files of every kind, and what is said about bad ones."""

import contextlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import InputError
from tasks.evaluation.benchmarks.files import Row, rows

ROWS = [{"id": "1", "text": "a\u2028b"}, {"id": "2", "text": ""}]


def write(folder: Path, kind: str) -> None:
    lines = "\n\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS)
    texts = {
        "list.json": json.dumps(ROWS),
        "lines.json": lines,
        "lines.jsonl": lines,
        "table.csv": "\ufeffid,text\n1,a\u2028b\n2,\n",
        "table.tsv": "id\ttext\n1\ta\u2028b\n2\t\n",
    }
    if kind == "table.parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), folder / kind)
    else:
        (folder / kind).write_text(texts[kind], encoding="utf-8")


@pytest.mark.parametrize("kind", ["list.json", "lines.json", "lines.jsonl", "table.csv", "table.tsv", "table.parquet"])
def test_every_kind_gives_the_same_rows(tmp_path: Path, kind: str) -> None:
    write(tmp_path, kind)
    assert [(row.text("id"), row.text("text")) for row in rows(tmp_path, "*")] == [("1", "a\u2028b"), ("2", "")]


def test_files_by_name_and_long_fields(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("id,text\n2," + "x" * 200_000 + "\n")
    (tmp_path / "a.jsonl").write_text('{"id": "1", "text": "y"}')
    assert [(row.text("id"), len(row.text("text"))) for row in rows(tmp_path, "*")] == [("1", 1), ("2", 200_000)]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.jsonl", b'{"id": 1}\n{"id"', "a.jsonl is damaged after row 1"),
        ("a.jsonl", b"[1]", r"a.jsonl, row 1 is \[1\] and no object"),
        ("a.json", b"[1, 2]", "a.json, row 1 is 1 and no object"),
        ("a.jsonl", b'{"id": "\xff"}', "damaged after row 0"),
        ("a.parquet", b"PAR1", "a.parquet is damaged"),
        ("a.csv", b'id\n"open', "damaged"),
        ("a.zip", b"PK", "of an unknown kind"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=message):
        list(rows(tmp_path, "*"))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no \*\.jsonl; docs/benchmarks.md"):
        list(rows(tmp_path, "*.jsonl"))
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "empty.json").touch()
    assert list(rows(tmp_path, "*")) == []


def test_fields_have_types() -> None:
    row = Row(
        {
            "text": "t",
            "number": "1.5",
            "list": ["a"],
            "objects": [{"x": "y"}],
            "flag": True,
            "null": None,
            "nan": "nan",
        },
        "f, row 1",
    )
    assert (row.text("text"), row.number("number"), row.texts("list")) == ("t", 1.5, ("a",))
    assert row.rows("objects")[0].text("x") == "y"
    assert "null" not in row
    for read, name, message in [
        (row.text, "list", r"f, row 1 has 'list' = \['a'\], which is no string"),
        (row.text, "null", "has no 'null', only 'text', 'number'"),
        (row.number, "flag", "which is no number"),
        (row.number, "text", "which is no number"),
        (row.number, "nan", "which is no number"),
        (row.texts, "objects", "which is no list of strings"),
        (row.rows, "list", "which is no list of objects"),
    ]:
        with pytest.raises(InputError, match=message):
            read(name)


@given(st.binary(max_size=60))
def test_any_bytes_give_rows_or_an_input_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("any")
    for name in ("a.jsonl", "a.json", "a.csv"):
        (folder / name).write_bytes(data)
        with contextlib.suppress(InputError):
            assert all(isinstance(row, Row) for row in rows(folder, name))
