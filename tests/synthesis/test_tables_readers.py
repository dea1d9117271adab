from collections import Counter
from collections.abc import Sequence

import pytest

from tasks.records import Document
from tasks.synthesis.tables.readers import LayoutReader, Readers, ReportReader, Stated, date_of

from .examples import document, reported


def of_file(source: str, number: int, text: str) -> Document:
    return document(f"{source}#{number}", text, "text").model_copy(update={"source": source})


def test_reports_are_read_row_by_row() -> None:
    reader = ReportReader()
    talk = document("talk", "| D | m | 9 |", "dialogue")
    assert [reader.suits(one) for one in (reported("r", "m", A=1), talk)] == [True, False]
    assert reader.read([reported("r", "m", A=1, B=2), talk], Counter()) == [
        Stated("A", "m", "1", "r"),
        Stated("B", "m", "2", "r"),
    ]


def test_lines_about_a_file_are_about_what_it_names_and_only_where_it_is_named() -> None:
    rejections = Counter[str]()
    documents = [
        of_file("ch.json", 1, "Capital > name: Ndjamena\nCountry > name: Chad\nCountry > long: Republic of Chad"),
        of_file("ch.json", 2, "Area: 5 km\nPeople: 7\nWater: 1 km of Chad"),
        of_file("ch.json", 3, "Roads: 5\nRails: 7\nPorts: 1"),  # of whom?
        of_file("ma.json", 1, "Capital > name: Bamako\nCountry > name: Mali\nArea: 9 km\nPeople: 3\nMotto: Mali!"),
    ]
    assert all(map(LayoutReader().suits, documents[1:]))
    stated = LayoutReader().read(documents, rejections)
    assert Stated("Chad", "Area", "5 km", "ch.json#2") in stated
    assert Stated("Mali", "People", "3", "ma.json#1") in stated
    assert {one.entity for one in stated} == {"Chad", "Mali"}
    assert rejections == {"the document of a cell does not name what it is about": 3}


def test_a_heading_names_a_file() -> None:
    texts = ("# Ulm\n\nArea: 5\nPeople: 7\nRoads: 1", "# Bonn\n\nArea: 6\nPeople: 8\nRoads: 2")
    stated = LayoutReader().read([of_file(f"{n}.md", 1, text) for n, text in enumerate(texts)], Counter())
    assert [(one.entity, one.text) for one in stated if one.column == "Area"] == [("Ulm", "5"), ("Bonn", "6")]


def led(source: str, number: int, name: str, *lines: str) -> Document:
    return of_file(source, number, "\n".join(f"{name} > {line}" for line in lines))


def test_the_first_step_of_all_paths_names_a_file_and_is_no_part_of_its_columns() -> None:
    documents = [
        led("ch.json", 1, "Chad", "Land > Area: 5 km", "Land > Water: 1 km", "People: 7"),
        led("ch.json", 2, "Chad", "Roads: 5", "Rails: 7", "Ports: 1"),
        led("ma.json", 1, "Mali", "Land > Area: 9 km", "Land > Water: 2 km", "People: 3"),
    ]
    rejections = Counter[str]()
    stated = LayoutReader().read(documents, rejections)
    assert Stated("Chad", "Land > Area", "5 km", "ch.json#1") in stated
    assert Stated("Chad", "Ports", "1", "ch.json#2") in stated
    assert {(one.entity, one.text) for one in stated if one.column == "People"} == {("Chad", "7"), ("Mali", "3")}
    assert len(stated) == 9 and not rejections


def test_a_first_step_that_files_share_is_a_section_and_no_name() -> None:
    documents = [led(f"{n}", 1, "Land", f"Area: {n} km", f"Water: {n} km", f"Sand: {n} km") for n in (1, 2)]
    rejections = Counter[str]()
    assert LayoutReader().read(documents, rejections) == []
    assert sum(rejections.values()) == 6
    lonely = LayoutReader().read([led("ch.json", 1, "Chad", "Area: 5", "Water: 1", "People: 7")], Counter())
    assert "Chad" not in {one.entity for one in lonely}, "one file cannot tell a name from a section"


def test_files_without_names_of_their_own_say_nothing() -> None:
    rejections = Counter[str]()
    text = "Name: none\nArea: 5\nPeople: 7"
    assert LayoutReader().read([of_file("a", 1, text), of_file("b", 1, text)], rejections) == []
    assert sum(rejections.values()) == 6
    assert LayoutReader().read([], rejections) == []


class Marked:
    """Reads one cell from every document that has a mark."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.seen: list[str] = []

    def suits(self, document: Document) -> bool:
        return "no" not in document.text

    def read(self, documents: Sequence[Document], rejections: Counter[str]) -> list[Stated]:
        self.seen += [document.id for document in documents]
        return [Stated("x", "m", "1", document.id) for document in documents if self.mark in document.text]


def test_what_one_reader_finds_nothing_in_is_left_to_the_next() -> None:
    first, second = Marked("a"), Marked("b")
    documents = [of_file("f", 1, "a"), of_file("f", 2, "b"), of_file("g", 1, "b"), of_file("h", 1, "no")]
    both = Readers([first, second])
    assert [cell.document_id for cell in both.read(documents, Counter())] == ["f#1", "g#1"]
    assert (first.seen, second.seen) == (["f#1", "f#2", "g#1"], ["g#1"])
    assert [both.suits(one) for one in documents] == [True, True, True, False]


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("Report\nDate: 3 May 2020\nmore", "2020-05-03"),
        ("As of: 2020-05", "2020-05"),
        ("Date: 01/02/2020", ""),  # two days
        ("Annual report 2021\n\n2019 was worse", "2021"),
        ("Report 2021-06, part 3", "2021-06"),
        ("From 2020 to 2021", ""),
        ("No 120210", ""),
        ("", ""),
    ],
)
def test_documents_may_say_their_date(text: str, date: str) -> None:
    assert date_of(document("d", text)) == date
