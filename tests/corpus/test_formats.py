import csv
import datetime as dt
import io
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from tasks.corpus.formats.base import Extract, Grid
from tasks.corpus.formats.cells import cell_text
from tasks.corpus.formats.decoding import MARKS, decode_file
from tasks.corpus.formats.delimited import Dialect, _detect
from tasks.corpus.formats.html import _CHARSET
from tasks.corpus.formats.records import written_out
from tasks.corpus.formats.registry import READERS, check_content, reader_of
from tasks.corpus.isolation import Lacking, Refused, attempt
from tasks.errors import InputError
from tests.corpus.files import encrypted_pdf, pdf_bytes, zip_bytes


def extract(folder: Path, name: str, data: bytes) -> Extract:
    path = folder / "file"
    path.write_bytes(data)
    return reader_of(name)(path)


def texts(found: Extract) -> list[str]:
    return [block if isinstance(block, str) else block.plain for part in found.parts for block in part.blocks]


def table(found: Extract) -> Grid:
    [grid] = [block for part in found.parts for block in part.blocks if isinstance(block, Grid)]
    return grid


# ── encodings


@pytest.mark.parametrize(
    ("text", "encoding", "read_as"),
    [
        ("Größe", "latin-1", "cp1252"),
        ("Le café est fermé à cause de l’été – désolé.", "cp1252", "cp1252"),
        ("Столица Франции это Париж. Население растёт.", "cp1251", "cp1251"),
        ("Столица Франции это Париж. Население растёт.", "koi8-r", "koi8_r"),
        ("日本の首都は東京です。人口は多いです。", "shift_jis", "cp932"),
        ("The capital is Paris.", "utf-16-le", "utf-16-le"),
        ("The capital is Paris.", "utf-16-be", "utf-16-be"),
    ],
)
def test_an_encoding_without_a_mark_is_guessed_and_said(tmp_path: Path, text: str, encoding: str, read_as: str) -> None:
    found = extract(tmp_path, "a.txt", text.encode(encoding))
    assert (texts(found), found.encoding, found.remarks) == ([text], read_as, (f"encoding guessed: {read_as}",))


@pytest.mark.parametrize(("mark", "encoding"), MARKS)
def test_a_byte_order_mark_decides(tmp_path: Path, mark: bytes, encoding: str) -> None:
    wide = {"utf-8-sig": "utf-8"}.get(encoding, f"{encoding}-{'le' if mark[0] == 0xFF else 'be'}")
    found = extract(tmp_path, "a.md", mark + "Größe".encode(wide))
    assert (texts(found), found.encoding, found.remarks) == (["Größe"], encoding.removesuffix("-sig"), ())
    with pytest.raises(InputError, match="not UTF-"):
        extract(tmp_path, "a.md", mark + b"\xff\xd8\xff")


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1).filter(str.strip))
def test_utf8_is_never_guessed(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "utf8"
    path.write_bytes(text.encode())
    decoded = decode_file(path)
    assert (decoded.text, decoded.encoding, decoded.guessed) == (text.removeprefix("\ufeff").strip(), "utf-8", False)


def test_data_that_is_no_text_has_a_reason(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="binary data"):
        extract(tmp_path, "a.txt", b"ab" + bytes(range(32)) * 9)
    with pytest.raises(InputError, match=r"^empty$"):
        extract(tmp_path, "a.txt", b"\0\0 \r\n")
    assert texts(extract(tmp_path, "a.py", b"a\0b\r\nc")) == ["ab\nc"]


def test_a_page_may_declare_its_encoding(tmp_path: Path) -> None:
    page = '<meta charset="windows-1251"><p>Париж</p>'.encode("cp1251")
    found = extract(tmp_path, "a.html", page)
    assert (texts(found), found.encoding, found.remarks) == (["Париж"], "cp1251", ())
    for wrong in ("ascii", "iso-8859-1", "no-such"):
        assert texts(extract(tmp_path, "a.html", f'<meta charset="{wrong}"><p>Größe</p>'.encode())) == ["Größe"]
    western = '<meta charset="iso-8859-1"><p>“Größe”</p>'.encode("cp1252")
    assert texts(extract(tmp_path, "a.html", western)) == ["“Größe”"]
    seven_bits = '<meta charset="iso-2022-jp"><p>東京</p>'.encode("iso-2022-jp")
    assert texts(extract(tmp_path, "a.html", seven_bits)) == ["東京"]
    assert _CHARSET.search(b'<meta http-equiv="x" content="text/html; charset=koi8-r">')


# ── csv and tsv


@pytest.mark.parametrize(
    ("text", "dialect", "lines"),
    [
        ("a,b\n1,2\n", "comma", [["a", "b"], ["1", "2"]]),
        ('name;"x, y, z"\na;1\n', "semicolon", [["name", "x, y, z"], ["a", "1"]]),
        ("a|b\n1|2\n", "bar", [["a", "b"], ["1", "2"]]),
        ("a\tb\n1,5\t2\n", "tab", [["a", "b"], ["1,5", "2"]]),
        ("sep=;\na,x;b\n1;2\n", "semicolon", [["a,x", "b"], ["1", "2"]]),
        ("'a','b'\n'it, is','2'\n", "comma single quotes", [["a", "b"], ["it, is", "2"]]),
        ('a,b\n"he said \\"no, no\\"",2\n', "comma backslashes", [["a", "b"], ['he said "no, no"', "2"]]),
        ("only\none\n", "comma", [["only"], ["one"]]),
    ],
)
def test_the_dialect_is_the_one_in_which_lines_agree(
    tmp_path: Path, text: str, dialect: str, lines: list[list[str]]
) -> None:
    found = extract(tmp_path, "a.csv", text.encode())
    assert (found.dialect, [list(line) for line in table(found).lines]) == (dialect, lines)


CELLS = st.text(st.sampled_from('ab1;,|\t"\n '), max_size=5).map(lambda cell: f"x{cell}x")


@given(st.sampled_from(",;\t|"), st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=2, max_size=6))
def test_what_csv_writes_is_read_back(delimiter: str, lines: list[list[str]]) -> None:
    target = io.StringIO()
    csv.writer(target, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(lines)
    text, dialect = _detect(target.getvalue())
    assert dialect == Dialect(delimiter)
    assert list(dialect.lines(text)) == lines


# ── html


def test_a_page_is_read_as_it_is_seen(tmp_path: Path) -> None:
    page = b"""<!DOCTYPE html><html><head><title>A  page</title><style>p {}</style></head><body>
    <script>var x = 1;</script><h1>Head</h1><p>One <b>bold</b>
    word&nbsp;&amp; more</p><ul><li>first</li><li>second</li></ul><!-- hidden -->
    <table><tr><th>City</th><th>Schools</th></tr><tr><td>Ulm</td><td>12</td></tr></table><p>End</p></body></html>"""
    found = extract(tmp_path, "a.html", page)
    title, before, grid, after = found.parts[0].blocks
    assert (title, after) == ("A page", "End")
    assert before == "Head\n\nOne bold word & more\n\nfirst\n\nsecond"
    assert isinstance(grid, Grid)
    assert grid.lines == (("City", "Schools"), ("Ulm", "12"))


def test_spans_repeat_their_cell_and_layouts_are_text(tmp_path: Path) -> None:
    spans = b"""<table><tr><th>Region<th>Quarter<th colspan=2>Sales</tr><tr><td rowspan="2">North<td>Q1<td>5<td>6</tr>
    <tr><td>Q2<td>7<td>8</tr><tr><td>South<td>Q1<td>2<td>3</tr></table>"""
    assert table(extract(tmp_path, "a.htm", spans)).lines == (
        ("Region", "Quarter", "Sales", "Sales"),
        ("North", "Q1", "5", "6"),
        ("North", "Q2", "7", "8"),
        ("South", "Q1", "2", "3"),
    )
    layout = b"<table><tr><td><p>Left</p></td></tr><tr><td>Right</td></tr></table>"
    assert texts(extract(tmp_path, "a.htm", layout)) == ["Left\n\nRight"]
    with pytest.raises(InputError, match="no text"):
        extract(tmp_path, "a.htm", b"<script>x</script>")


def test_a_page_nested_deeply_is_read_or_has_a_reason(tmp_path: Path) -> None:
    assert texts(extract(tmp_path, "a.html", b"top" + b"<div>" * 1500 + b"deep")) == ["top\n\ndeep"]
    with pytest.raises(InputError, match="nested too deeply"):
        extract(tmp_path, "a.html", b"top" + b"<div>" * 50_000 + b"deep")


# ── pdf


def test_pdf_pages_are_read_and_empty_ones_said(tmp_path: Path) -> None:
    found = extract(tmp_path, "a.pdf", pdf_bytes(["The capital of France is Paris.", "", "Second."]))
    assert texts(found) == ["The capital of France is Paris.\n\nSecond."]
    assert found.remarks == ("1 of 3 pages hold no text, first page 2",)


def test_pdf_without_text_or_with_a_password_has_a_reason(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no text on its 2 page\(s\): scanned"):
        extract(tmp_path, "a.pdf", pdf_bytes(["", ""]))
    encrypted_pdf(tmp_path / "b.pdf", "secret")
    with pytest.raises(InputError, match="encrypted PDF"):
        reader_of("b.pdf")(tmp_path / "b.pdf")
    encrypted_pdf(tmp_path / "c.pdf", "")
    assert texts(reader_of("c.pdf")(tmp_path / "c.pdf")) == ["The capital of France is Paris."]


# ── office


def test_word_keeps_the_order_and_fills_merged_cells(tmp_path: Path) -> None:
    from docx import Document

    document = Document()
    document.add_heading("Head")
    document.add_paragraph("Before")
    grid = document.add_table(3, 2)
    for index, text in enumerate(("Region", "Sales", "North", "5", "", "7")):
        grid.cell(index // 2, index % 2).text = text
    grid.cell(1, 0).merge(grid.cell(2, 0))
    document.add_paragraph("After")
    document.save(str(tmp_path / "a.docx"))
    found = reader_of("a.docx")(tmp_path / "a.docx")
    assert texts(found) == ["Head", "Before", "Region | Sales\nNorth | 5\nNorth | 7", "After"]


def test_excel_fills_merged_cells_and_no_others(tmp_path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    for line in (
        ["Region", "Quarter", "Sales"],
        ["North", "Q1", 5],
        [None, "Q2", 7],
        ["South", "Q1", 2],
        [None, "Q2", 1],
    ):
        sheet.append(line)
    sheet.merge_cells("A2:A3")
    book.save(tmp_path / "a.xlsx")
    assert [line[0] for line in table(reader_of("a.xlsx")(tmp_path / "a.xlsx")).lines] == [
        "Region", "North", "North", "South", "",
    ]  # fmt: skip


def test_excel_cells_keep_what_is_shown(tmp_path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    sheet.append(["code", "when", "rate", "yes", "big", "sum"])
    sheet.append([501, dt.datetime(2021, 5, 1), 0.1, True, 123456789012345, "=B1+1"])
    sheet["A2"].number_format = "00000"
    book.create_sheet("blank")
    book.save(tmp_path / "a.xlsx")
    found = reader_of("a.xlsx")(tmp_path / "a.xlsx")
    assert table(found).lines == (
        ("code", "when", "rate", "yes", "big", "sum"),
        ("00501", "2021-05-01", "0.1", "true", "123456789012345", ""),
    )
    assert found.remarks == ("sheet 'Sheet': 1 formula(s) without a stored value; open and save it in Excel",)
    Workbook().save(tmp_path / "b.xlsx")
    with pytest.raises(InputError, match=r"^empty$"):
        reader_of("b.xlsx")(tmp_path / "b.xlsx")


def test_archives_that_are_no_office_file_have_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.docx", "a.xlsx"):
        with pytest.raises(InputError, match="lacks"):
            extract(tmp_path, name, zip_bytes(other=b"x"))
        with pytest.raises(InputError, match="broken archive"):
            extract(tmp_path, name, zip_bytes(other=b"x" * 999)[:60])
    monkeypatch.setattr("tasks.corpus.formats.archives.MAX_UNPACKED", 1000)
    with pytest.raises(InputError, match="unpacks to 2,000 bytes"):
        extract(tmp_path, "a.docx", zip_bytes(**{"word/document.xml": b"x" * 2000}))


# ── json, jsonl, parquet


def test_json_numbers_keep_their_digits(tmp_path: Path) -> None:
    records = b'[{"id": 12345678901234567890, "v": 1.50, "n": null}, {"id": 7, "v": 1e5, "extra": "x"}]'
    assert table(extract(tmp_path, "a.json", records)).lines == (
        ("id", "v", "n", "extra"),
        ("12345678901234567890", "1.50", "", ""),
        ("7", "1e5", "", "x"),
    )


def test_records_with_a_text_are_documents(tmp_path: Path) -> None:
    lines = b'{"id": 1, "text": "One"}\nnot json\n{"id": 2, "text": "Two"}\n[3]\n'
    found = extract(tmp_path, "a.jsonl", lines)
    assert [(part.name, part.blocks) for part in found.parts] == [("1", ("One",)), ("2", ("Two",))]
    assert found.remarks == ("2 of 4 lines are no JSON object, first line 2",)
    with pytest.raises(InputError, match="no line"):
        extract(tmp_path, "a.jsonl", b"x\ny")


def test_nested_json_is_written_out(tmp_path: Path) -> None:
    nested = {
        "Geography": {"Area": {"total": "652,230 sq km", "rank": 42}},
        "langs": ["Dari", "Pashto"],
        "l": [{"a": 1}],
    }
    expected = "Geography > Area > total: 652,230 sq km\nGeography > Area > rank: 42\nlangs: Dari; Pashto\nl > 1 > a: 1"
    assert texts(extract(tmp_path, "a.json", json.dumps(nested).encode())) == [expected]
    assert len(extract(tmp_path, "a.json", json.dumps([nested, nested]).encode()).parts) == 2
    with pytest.raises(InputError, match="repeats a name"):
        extract(tmp_path, "a.json", b'{"a": 1, "a": 2}')
    with pytest.raises(InputError, match="not JSON"):
        extract(tmp_path, "a.json", b"{")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_every_json_value_can_be_written_out(value: object) -> None:
    leaves = json.dumps(value, ensure_ascii=False)
    assert all(digits in written_out(value) for digits in leaves.split() if digits.isdecimal())


def test_parquet_tables_and_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(
        pa.table({"name": ["a", None], "n": [2**62, None], "d": [Decimal("1.50"), None], "f": [0.1, 5.0]}), path
    )
    assert table(reader_of("a.parquet")(path)).lines == (
        ("name", "n", "d", "f"),
        ("a", str(2**62), "1.50", "0.1"),
        ("", "", "", "5.0"),
    )
    parquet.write_table(pa.table({"id": [1, 2], "content": ["One", "Two"]}), path)
    assert texts(reader_of("a.parquet")(path)) == ["One", "Two"]
    parquet.write_table(pa.table({"id": pa.array([], pa.int64())}), path)
    with pytest.raises(InputError, match=r"^empty$"):
        reader_of("a.parquet")(path)
    with pytest.raises(InputError, match="broken parquet"):
        extract(tmp_path, "a.parquet", b"PAR1 and no more")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (False, "false"),
        (0.1, "0.1"),
        (1e-7, "0.0000001"),
        (1e300, "1E+300"),
        (float("nan"), "NaN"),
        (Decimal("1E+2"), "100"),
        (dt.date(2021, 5, 1), "2021-05-01"),
        (dt.datetime(2021, 5, 1, 12, 30), "2021-05-01T12:30:00"),
        (b"xyz", "(3 bytes)"),
        ([1, "é"], '[1, "é"]'),
    ],
)
def test_values_become_cells(value: object, text: str) -> None:
    assert cell_text(value) == text


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_cells_lose_no_digit(number: float) -> None:
    assert type(number)(cell_text(number)) == number


# ── all


@pytest.mark.parametrize(
    ("name", "start", "reason"),
    [
        ("a.txt", b"%PDF-1.4", "named .txt but is a PDF"),
        ("a.pdf", b"PK\x03\x04", "named .pdf but is a zip archive"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "encrypted or old Office file"),
        ("a.xlsx", b"<html>", "named .xlsx but does not begin like one"),
        ("a.csv", b"\x1f\x8b\x08", "gzip"),
        ("Makefile", b"\x7fELF", "named without ending but is a program"),
    ],
)
def test_a_wrong_ending_has_a_reason(name: str, start: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        check_content(name, start)


def test_a_right_ending_passes() -> None:
    for name, start in (
        ("a.pdf", b"junk\n%PDF-1.7"),
        ("A.DOCX", b"PK\x03\x04"),
        ("a.csv", b"a,b"),
        ("a.parquet", b"PAR1"),
    ):
        check_content(name, start)


@given(st.sampled_from(sorted({".txt", *READERS} - {".py"})), st.binary(max_size=200))
def test_whatever_bytes_come_there_is_text_or_a_reason(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(data)
    answer = attempt(path, f"any{suffix}")
    assert not isinstance(answer, Lacking)
    assert answer.reason if isinstance(answer, Refused) else answer.parts
