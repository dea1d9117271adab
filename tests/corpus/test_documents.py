"""Files cut into documents: nothing is lost, and each document says what it is about."""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpus.cutting import cut_sections
from tasks.corpus.documents import Draft, file_drafts
from tasks.corpus.ingest import read_files
from tasks.corpus.readers import Section, SourceFile
from tasks.corpus.spool import Spool
from tasks.synthesis.tables.readers import LayoutReader, ReportReader, Stated

ROWS = [f"Town {number} | {number}.5 | 2020-01-{number % 28 + 1:02}" for number in range(500)]
TABLE = Section("\n".join(["Town | Area (sq km) | Seen", *ROWS]), header=1)


def words(text: str) -> int:
    return len(text.split())


def texts(source: SourceFile, limit: int = 10_000) -> list[tuple[str, str]]:
    return [(draft.kind, draft.text) for draft in file_drafts(source, limit, words)]


def test_a_table_of_500_rows_is_cut_between_rows_and_keeps_its_header() -> None:
    cut = cut_sections([TABLE], 60, words)
    assert len(cut) > 30
    assert all(words(text) <= 60 and text.startswith("Town | Area (sq km) | Seen\n") for text in cut)
    assert [row for text in cut for row in text.split("\n")[1:]] == ROWS


def test_a_caption_over_merged_cells_is_repeated_with_the_header() -> None:
    table = Section("Sales | Sales\nCity | Number\n" + "\n".join(f"Town{n} | {n}" for n in range(9)), header=2)
    cut = cut_sections([table], 15, words)
    assert [text.split("\n")[:2] for text in cut] == [["Sales | Sales", "City | Number"]] * 3


def test_the_pieces_of_a_markdown_file_repeat_its_heading() -> None:
    paragraphs = [f"Line {number} is one. It has two sentences." for number in range(12)]
    text = "# The towns. All of them.\n\n" + "\n\n".join(paragraphs)
    cut = cut_sections([Section(text)], 30, words)
    assert len(cut) == 4
    assert all(piece.startswith("# The towns. All of them.\n\n") and words(piece) <= 30 for piece in cut)
    assert [part for piece in cut for part in piece.split("\n\n")[1:]] == paragraphs


@pytest.mark.parametrize(
    ("start", "heading"),
    [
        ("Annual Report 2023\n\n", "Annual Report 2023"),
        ("Annual Report 2023\n", "Annual Report 2023"),
        ("name: Ulm\n", "name: Ulm"),
        ("A sentence is none.\n\n", ""),
        ("a line that goes on\nin the next, ", ""),  # wrapped
        ("population: 5\n", ""),
        (f"{'long ' * 13}\n\n", ""),
        ("---\n\n", ""),
        ("\N{IDEOGRAPHIC SPACE}\n", ""),
    ],
)
def test_only_a_first_line_that_looks_like_a_heading_is_repeated(start: str, heading: str) -> None:
    body = ". ".join(f"Sentence {number} stands here" for number in range(20)) + "."
    _, *later = cut_sections([Section(start + body)], 20, words)
    assert later
    assert {piece.split("\n")[0] if "\n" in piece else "" for piece in later} == {heading}


def test_what_would_take_more_than_half_of_a_document_is_not_repeated() -> None:
    assert cut_sections([Section("One two three\n\nfour five")], 4, words) == ["One two three", "four five"]
    table = Section("a | b | c\n1 | 2 | 3\n4 | 5 | 6", header=1)
    assert cut_sections([table], 5, words) == ["a | b | c", "1 | 2 | 3", "4 | 5 | 6"]


def test_a_file_of_a_heading_alone_or_of_nothing() -> None:
    assert cut_sections([Section("Title here")], 1, words) == ["Title", "here"]
    assert cut_sections([Section("Title here")], 2, words) == ["Title here"]
    assert cut_sections([Section("")], 2, words) == []


def test_a_row_longer_than_a_document_is_cut_and_not_lost() -> None:
    table = Section("a | b\nx | 1\n" + "long " * 20 + "| 2\ny | 3", header=1)
    cut = cut_sections([table], 10, words)
    assert max(map(words, cut)) <= 10
    assert [word for text in cut for word in text.removeprefix("a | b\n").split()] == table.text.split()[3:]


def test_a_markdown_table_in_a_text_repeats_its_header_and_rule() -> None:
    rows = [f"| Town{number} | {number} |" for number in range(20)]
    text = "\n".join(["Before it.", "| City | Staff |", "|---|--:|", *rows, "After it."])
    cut = cut_sections([Section(text)], 30, words)
    assert max(map(words, cut)) <= 30
    assert [line for piece in cut for line in piece.split("\n") if line.startswith("| Town")] == rows
    assert all("| City | Staff |\n|---|--:|\n" in piece for piece in cut if "| Town" in piece)
    assert (cut[0].split("\n")[0], cut[-1].split("\n")[-1]) == ("Before it.", "After it.")


def test_a_small_table_stays_with_the_text_before_it() -> None:
    small = Section("City | Staff\nUlm | 5", header=1)
    sections = [Section("Title\n\n" + "word " * 8 + "end."), small, Section("other " * 9 + "end.")]
    first, second = cut_sections(sections, 18, words)
    assert first.endswith("end.\n\nCity | Staff\nUlm | 5")
    assert second == "Title\n\n" + "other " * 9 + "end."


def test_every_piece_of_a_record_says_its_name() -> None:
    fields = [f"Land > Field {number}: {number} km of Ulm" for number in range(12)]
    text = "\n".join(["Land > Size: 5", "Land > name > long form: none", *fields, "Land > name > short form: Ulm"])
    cut = cut_sections([Section(text)], 40, words)
    assert len(cut) > 2
    assert all(words(piece) <= 40 and piece.count("Land > name > short form: Ulm") == 1 for piece in cut)
    assert [line for piece in cut for line in piece.split("\n") if "Field" in line] == fields


LINE = st.text("abc|", min_size=1, max_size=8)
TEXTS = st.lists(st.text("ab .\n", min_size=1, max_size=40).map(str.strip).filter(bool), min_size=1, max_size=3)


@given(st.lists(LINE, min_size=2, max_size=20), st.integers(1, 25))
def test_no_row_is_lost_and_every_piece_of_a_table_fits(lines: list[str], limit: int) -> None:
    cut = cut_sections([Section("\n".join(lines), header=1)], limit, len)
    assert all(0 < len(text) <= limit for text in cut)
    header = lines[0] + "\n"
    repeated = len(header) <= limit / 2 and sum(map(len, lines)) + len(lines) - 1 > limit
    bodies = [text.removeprefix(header) if repeated else text for text in cut]
    kept = "\n".join(lines[1:] if repeated else lines)
    assert re.sub(r"\s", "", "".join(bodies)) == re.sub(r"\s", "", kept)


@given(TEXTS, st.integers(1, 25))
def test_no_sign_of_a_text_is_lost_and_every_piece_fits(parts: list[str], limit: int) -> None:
    whole = "Top\n\n" + "\n\n".join(parts)
    cut = cut_sections([Section(whole)], limit, len)
    assert all(0 < len(text) <= limit for text in cut)
    repeated = len(whole) > limit >= 2 * len("Top\n\n")
    bodies = "".join(text.removeprefix("Top\n\n") if repeated else text for text in cut)
    assert "".join(bodies.split()) == "".join((whole.removeprefix("Top") if repeated else whole).split())


def model_documents(folder: Path, limit: int) -> list[Draft]:
    """As ingest does for a writer model."""
    drafts: list[Draft] = []

    def cut(source: SourceFile) -> list[Draft]:
        drafts.extend(found := file_drafts(source, limit, words))
        return found

    with Spool.at(folder.parent / "spool") as spool:
        read_files(str(folder), spool, cut, similarity=0.9, counts=False)
    return drafts


def cells(drafts: list[Draft]) -> list[Stated]:
    documents = [draft.document("train") for draft in drafts]
    reader, rejections = LayoutReader(), Counter[str]()
    found = reader.read([document for document in documents if reader.suits(document)], rejections)
    assert not rejections
    assert not any(map(ReportReader().suits, documents))
    return found


def test_every_cell_of_two_csv_files_is_read_back(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    columns = ("Area (sq km)", "Share %", "Founded", "Note", "Staff")
    expected = set()
    for file, separator in enumerate(",;"):
        lines = [separator.join(("Town", *columns))]
        for number in range(60):
            town = f"Town {file}x{number}"
            row = (f"{number}.25", f"{number}%", f"19{number + 10}-05-17", f'"good{separator} old"', str(number))
            lines.append(separator.join((town, *row)))
            expected |= {(town, column, text.strip('"')) for column, text in zip(columns, row, strict=True)}
        (folder / f"{file}.csv").write_text("\n".join(lines) + "\n")
    drafts = model_documents(folder, 40)
    assert {draft.kind for draft in drafts} == {"text"}
    assert len(drafts) > 6
    assert max(words(draft.text) for draft in drafts) <= 40
    read = cells(drafts)
    assert {(cell.entity, cell.column, cell.text) for cell in read} == expected
    assert len(read) == len(expected)


def test_wide_sheets_html_tables_and_every_column_reach_the_reader(tmp_path: Path) -> None:
    from openpyxl import Workbook

    folder = tmp_path / "files"
    folder.mkdir()
    sheet = (book := Workbook()).active
    heads = [f"Measure {number}" for number in range(12)]
    sheet.append(["Sales 2023"])
    sheet.append(["Region", "Quarter", *heads])
    for line in range(8):
        sheet.append([f"Region {line // 2}", f"Q{line % 2 + 1}", *(line * 100 + number + 0.5 for number in range(12))])
    sheet.merge_cells("A1:N1")
    sheet.merge_cells("A3:A4")
    book.save(folder / "wide.xlsx")
    table = "".join(f"<tr><td>City {line}<td>{line}.5 km<td>{line}" for line in range(3))
    html = f"<p>Before it.</p><table><tr><th>City<th>Length<th>Schools{table}</table><p>After it.</p>"
    (folder / "page.html").write_text(html)
    drafts = model_documents(folder, 200)
    page = "Before it.\n\nCity | Length | Schools\nCity 0 | 0.5 km | 0\nCity 1 | 1.5 km | 1\nCity 2 | 2.5 km | 2"
    assert [draft.text for draft in drafts if draft.source == "page.html"] == [f"{page}\n\nAfter it."]
    found = {(cell.entity, cell.column): cell.text for cell in cells(drafts)}
    assert found["City 2", "Length"] == "2.5 km"
    assert len([entity for entity, _ in found if entity.startswith("City")]) == 6
    assert len({draft.id for draft in drafts if draft.source == "wide.xlsx"}) > 1
    assert {len(draft.text.split("\n")[0].split(" | ")) for draft in drafts if draft.source == "wide.xlsx"} == {14}
    assert found["Region 0 Q2", "Measure 11"] == "111.5"
    assert len(found) == 6 + 8 * 12


def test_rows_with_line_breaks_in_their_cells_are_a_line_each(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.csv").write_text('City,Note,Share\nUlm,"two\nlines, one",1.5\n\nBonn,none,2.5\n')
    (folder / "b.tsv").write_text("City\tNote\tShare\nUlm\t\t1.5\n\nBonn\tx\t2.5\n")
    texts_of = {draft.source: draft.text for draft in model_documents(folder, 100)}
    assert texts_of["a.csv"] == 'City,Note,Share\nUlm,"two lines, one",1.5\nBonn,none,2.5'
    assert texts_of["b.tsv"] == "City\tNote\tShare\nUlm\t\t1.5\nBonn\tx\t2.5"


def test_the_closed_language_still_gets_rows_of_counts() -> None:
    table = Section("City | Schools\nUlm | 12", ("| Ulm | schools | 12 |",), header=1)
    assert texts(SourceFile("a", (Section("Before"), table, Section("After")))) == [
        ("text", "Before"),
        ("table", "| Ulm | schools | 12 |"),
        ("text", "After"),
    ]
