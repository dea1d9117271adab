from decimal import Decimal
from pathlib import Path

import pytest

from tasks.corpus.readers import read_folder, read_table, table_rows
from tasks.errors import InputError


def write(folder: Path, **files: bytes) -> Path:
    for name, data in files.items():
        stem, suffix = name.rsplit("_", 1)
        path = folder / f"{stem}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


@pytest.mark.parametrize(
    ("csv", "kinds", "values"),
    [
        ("id,v\n1234567890123456789,1\n,2\n", ["integer", "integer"], [(1234567890123456789, None), (1, 2)]),
        ("code,n\n00501,1\n00601,2\n", ["text", "integer"], [("00501", "00601"), (1, 2)]),
        (
            "name,code,v\nNamibia,NA,1\nNull,None,2\n",
            ["text", "text", "integer"],
            [("Namibia", "Null"), ("NA", "None"), (1, 2)],
        ),
        ("id\n9223372036854775808\n1\n", ["integer"], [(9223372036854775808, 1)]),
        (
            'item,amt\na,"1,234"\nb,"2,500"\nc,900\n',
            ["text", "integer"],
            [("a", "b", "c"), (1234, 2500, 900)],
        ),
        ("item;amt\na;1,234\n", ["text", "text"], [("a",), ("1,234",)]),  # may be a decimal comma
        ('item,amt\na,"1,23"\n', ["text", "text"], [("a",), ("1,23",)]),
        ("a,b\nx,1.50\ny,2\n", ["text", "decimal"], [("x", "y"), (Decimal("1.50"), Decimal(2))]),
        (f"a,b\nx,{'9' * 5000}\n", ["text", "text"], [("x",), ("9" * 5000,)]),
        ("a,b\n-0,-5\n", ["integer", "integer"], [(0,), (-5,)]),
        ("a,b\nx,\n", ["text", "text"], [("x",), (None,)]),
        ("a,b\n", ["text", "text"], [(), ()]),
        ('a,b\n"two\nlines",1\n', ["text", "integer"], [("two\nlines",), (1,)]),
    ],
)
def test_columns_get_a_type_only_if_nothing_is_lost(
    csv: str, kinds: list[str], values: list[tuple[object, ...]]
) -> None:
    columns = read_table(csv)
    assert [column.kind for column in columns] == kinds
    assert [column.values for column in columns] == values


@pytest.mark.parametrize(
    ("csv", "reason"),
    [
        ("a,b\n1\n", "row 2 has 1 cells, its header 2"),
        ("a,a\n1,2\n", "distinct"),
        ("a,\n1,2\n", "non-empty"),
        ('a,b\n"1,2\n', "not a csv table"),
    ],
)
def test_broken_tables_are_refused_with_the_reason(csv: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read_table(csv)


def test_rows_are_named_by_the_first_text_column() -> None:
    columns = read_table("rate,City,Schools_open,delta,2020\n0.5,Ulm,12,-3,1\n0.1,a|b,4,1,1\n0.2,,5,1,1\n")
    assert table_rows(columns) == ["| Ulm | schools open | 12 |"]  # neither -3 nor 2020 nor a|b
    assert table_rows(read_table("year,sales\n2019,5\n2020,6\n")) == [
        "| 2019 | sales | 5 |",
        "| 2020 | sales | 6 |",
    ]
    assert table_rows(read_table("name,rate\nx,0.5\n")) == []


def test_a_folder_is_read_and_what_is_left_out_has_a_reason(tmp_path: Path) -> None:
    write(
        tmp_path,
        a_txt=b"\xef\xbb\xbfOne\r\ntwo",
        b_md=b"One\ntwo\n",
        c_txt=b"caf\xe9",
        d_txt=b"  \r\n",
        e_csv=b"name,n\nx,1\n",
        f_csv=b"name,n\nx\n",
        g_pdf=b"%PDF",
        h_txt=b"nul\0 byte",
    )
    reading = read_folder(tmp_path)
    assert [(source.path, source.text, source.rows) for source in reading.files] == [
        ("a.txt", "One\ntwo", ()),
        ("e.csv", "name,n\nx,1", ("| x | n | 1 |",)),
        ("h.txt", "nul byte", ()),
    ]
    assert {skipped.path: skipped.reason for skipped in reading.skipped} == {
        "b.md": "duplicate of a.txt",
        "c.txt": "not UTF-8 (byte 3)",
        "d.txt": "empty",
        "f.csv": "row 2 has 1 cells, its header 2",
        "g.pdf": "not a txt, md or csv file",
    }
    assert (reading.replaced, reading.removed) == (0, 1)


def test_an_unusable_folder_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_folder(tmp_path / "absent")
    with pytest.raises(InputError, match="it is empty"):
        read_folder(tmp_path)
    write(tmp_path, a_txt=b"\xff\xfe", b_txt=b"")
    with pytest.raises(InputError, match=r"a.txt: not UTF-8 \(byte 0\); b.txt: empty"):
        read_folder(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        read_folder(tmp_path / "a.txt")
