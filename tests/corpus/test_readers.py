from decimal import Decimal
from pathlib import Path

import pytest

from tasks.corpus.columns import table_rows
from tasks.corpus.documents import file_drafts
from tasks.corpus.formats.delimited import read_table
from tasks.corpus.readers import Remark, Section
from tasks.errors import InputError
from tests.corpus.files import read_all


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
        g_pdf=b"%PDF-",
        h_txt=b"nul\0 byte",
        i_docx=b"%PDF-",
        j_xyz=b"x",
        k_txt=b"",
        l_py=b"def f():\r\n    return 1\r\n",
        m_tsv=b"a\tb\nx\t1,000\n",
    )
    reading, files = read_all(tmp_path)
    assert [(source.path, source.text, source.rows) for source in files] == [
        ("a.txt", "One\ntwo", ()),
        ("c.txt", "café", ()),
        ("e.csv", "name,n\nx,1", ("| x | n | 1 |",)),
        ("h.txt", "nul byte", ()),
        ("l.py", "def f():\n    return 1", ()),
        ("m.tsv", "a\tb\nx\t1,000", ("| x | b | 1000 |",)),
    ]
    broken = [skipped for skipped in reading.skipped if skipped.path == "g.pdf"]
    assert broken[0].reason.startswith("broken or unusual file: ")
    reading.skipped.remove(broken[0])
    assert {skipped.path: skipped.reason for skipped in reading.skipped} == {
        "b.md": "duplicate of a.txt",
        "d.txt": "empty",
        "f.csv": "row 2 has 1 cells, its header 2",
        "i.docx": "named .docx but is a PDF",
        "j.xyz": "not a format that is read: .xyz",
        "k.txt": "empty",
    }
    assert (reading.replaced, reading.removed) == (0, 1)
    assert reading.reasons == {"empty": 2, "duplicate": 1, "unreadable": 3}
    assert reading.encodings == {"utf-8": 6, "cp1252": 1}  # a duplicate was read too
    assert reading.dialects == {"comma": 1, "tab": 1}
    assert reading.remarks == [Remark("c.txt", "encoding guessed: cp1252")]


def test_records_are_documents_and_duplicates_among_them_are_listed(tmp_path: Path) -> None:
    write(tmp_path, a_jsonl=b'{"text": "One"}\n{"text": "  "}\n{"text": "One\\u0000"}\n{"text": "Two"}\n')
    reading, files = read_all(tmp_path)
    assert [(source.path, source.text) for source in files] == [("a.jsonl:1", "One"), ("a.jsonl:4", "Two")]
    assert [(skipped.path, skipped.reason) for skipped in reading.skipped] == [
        ("a.jsonl:2", "empty"),
        ("a.jsonl:3", "duplicate of a.jsonl:1"),
    ]


def test_tables_in_a_document_are_counts_or_text(tmp_path: Path) -> None:
    counts = "<table><tr><th>City<th>Schools</tr><tr><td>Ulm<td>12</tr></table>"
    odd = "<table><tr><th>City<th>City</tr><tr><td>Bonn<td>Ulm</tr></table>"
    write(tmp_path, a_html=f"<p>Before</p>{counts}<p>Between</p>{odd}<p>After</p>".encode())
    reading, files = read_all(tmp_path)
    assert files[0].sections == (
        Section("Before"),
        Section("City | Schools\nUlm | 12", ("| Ulm | schools | 12 |",), header=1),
        Section("Between"),
        Section("City | City\nBonn | Ulm", header=1),
        Section("After"),
    )
    assert [(draft.kind, draft.text) for draft in file_drafts(files[0], 100, len)] == [
        ("text", "Before"),
        ("table", "| Ulm | schools | 12 |"),
        ("text", "Between\n\nCity | City\nBonn | Ulm\n\nAfter"),
    ]
    assert reading.remarks == [
        Remark(
            "a.html",
            "1 table(s) read as text, for example: its header ['City', 'City'] needs distinct, non-empty column names",
        )
    ]


def test_merged_cells_count_for_each_of_their_rows(tmp_path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    for line in (
        ["Region", "Quarter", "Sales"],
        ["North", "Q1", 5],
        [None, "Q2", 7],
        ["South", "Q1", 2],
        [None, "Q2", 9],
    ):
        sheet.append(line)
    sheet.merge_cells("A2:A3")
    book.save(tmp_path / "a.xlsx")
    rows = read_all(tmp_path)[1][0].rows
    assert rows == ("| North | sales | 5 |", "| North | sales | 7 |", "| South | sales | 2 |")  # the blank stays blank


def test_an_unusable_folder_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_all(tmp_path / "absent")
    with pytest.raises(InputError, match="it is empty"):
        read_all(tmp_path)
    write(tmp_path, a_txt=b"\xff\xfea", b_txt=b"")
    with pytest.raises(InputError, match=r"a.txt: not UTF-16 \(byte 2\); b.txt: empty"):
        read_all(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        read_all(tmp_path / "a.txt")


def test_line_breaks_of_other_systems_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\r\nthree")
    (tmp_path / "b.csv").write_bytes(b"Name;Colour\r\nUlm;red\r\nBonn;blue\r\n")
    (tmp_path / "c.md").write_bytes(b"one\ntwo")
    reading, _ = read_all(tmp_path)
    assert reading.breaks == 2 + 3
