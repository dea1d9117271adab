import json
from collections import Counter
from collections.abc import Sequence

import pytest

from tasks.generation.base import Sampling
from tasks.generation.chat import Request, Unanswered
from tasks.generation.scripted import Line, ScriptedChat
from tasks.records import Document
from tasks.synthesis.tables.readers import Stated
from tasks.synthesis.tables.schema import ProposedColumn, ProposedSchema, SchemaReader, agreed_schema

from .examples import document

SAMPLING = Sampling(0.7, 0.95, 256)
TEXTS = {
    "Acme": "In 2021 Acme earned $1,200 with 12 people in Ulm.",
    "Bolt": "Bolt, of Bonn, made $3,400 in 2021. It has 34 people.",
    "Cord": "Cord had 5 people in 2021 and says nothing of 1 or 2 other things.",
}
TRUE = {"Acme": ("$1,200", "12"), "Bolt": ("$3,400", "34"), "Cord": (None, "5")}
PROPOSAL = {
    "subject": "company",
    "columns": [{"name": "Revenue", "type": "number", "unit": "$"}, {"name": "People", "type": "number", "unit": ""}],
}


def documents() -> list[Document]:
    return [document(name, text, "text") for name, text in TEXTS.items()]


def reading(name: str, *cells: str | None) -> str:
    return json.dumps({"name": name} | {f"c{number}": cell for number, cell in enumerate(cells, 1)})


def reader(readings: Sequence[Line], votes: int = 3) -> SchemaReader:
    """Proposals that agree, then these readings: `votes` of a document, and so on."""
    return SchemaReader(ScriptedChat([json.dumps(PROPOSAL)] * votes + list(readings)), votes, SAMPLING, 7)


def agreeing(votes: int = 3) -> list[Line]:
    return [reading(name, *cells) for name, cells in TRUE.items() for _ in range(votes)]


def test_documents_are_read_by_an_agreed_schema() -> None:
    rejections = Counter[str]()
    stated = reader(agreeing()).read(documents(), rejections)
    assert +rejections == {}
    assert stated == [
        Stated("Acme", "Revenue", "$1,200", "Acme"),
        Stated("Acme", "People", "12", "Acme"),
        Stated("Bolt", "Revenue", "$3,400", "Bolt"),
        Stated("Bolt", "People", "34", "Bolt"),
        Stated("Cord", "Revenue", None, "Cord"),  # agreed to be missing
        Stated("Cord", "People", "5", "Cord"),
    ]


@pytest.mark.parametrize(
    ("votes", "kept"),
    [
        ([("$1,200", "12"), ("$1,200", "12"), ("$9", "12")], True),
        ([("$1200", "12"), ("$1,200", "12"), ("$9", "12")], True),  # equal as values
        ([("$1,200", "12"), ("$12", "12"), ("$9", "12")], False),
        ([("$1,200", "12"), ("$1,200", "9"), ("$1,200", None)], False),  # one cell without consensus is enough
        ([("$1,200", "12"), (None, "12"), (None, "12")], True),  # missing by majority
        ([("$7", "12"), ("$7", "12"), ("$7", "12")], False),  # agreed, but not in the document
    ],
)
def test_a_document_counts_only_if_every_cell_has_a_majority(
    votes: list[tuple[str | None, str | None]], kept: bool
) -> None:
    rejections = Counter[str]()
    readings = [reading("Acme", *cells) for cells in votes] + agreeing()[3:]
    stated = reader(readings).read(documents(), rejections)
    assert ("Acme" in {one.entity for one in stated}) is kept
    assert sum((+rejections).values()) == (0 if kept else 1)


def test_a_refused_reading_is_no_vote() -> None:
    rejections = Counter[str]()
    lost: list[Line] = [Unanswered("timeout"), Unanswered("timeout"), reading("Acme", "$1,200", "12")]
    stated = reader([*lost, *agreeing()[3:]]).read(documents(), rejections)
    assert {one.entity for one in stated} == {"Bolt", "Cord"}
    assert +rejections == {"a reading is unusable: unanswered": 2, "the readings of a document do not agree": 1}


def proposal(*names: str, subject: str = "company") -> ProposedSchema:
    columns = [ProposedColumn(name=name, type="number", unit="") for name in names]
    return ProposedSchema(subject=subject, columns=columns)


def test_columns_stay_on_a_majority_of_all_proposals() -> None:
    schema = agreed_schema([proposal("Revenue", "People"), proposal("revenue ", "Seat"), proposal("Debt", "Debt")], 3)
    assert schema is not None and [column.name for column in schema.columns] == ["Revenue"]
    assert agreed_schema([proposal("Debt", "Debt")], 3) is None  # said twice by one
    assert agreed_schema([proposal("Revenue")] * 2, 4) is None  # two of four are no majority
    assert agreed_schema([], 3) is None


def test_without_a_schema_nothing_is_read() -> None:
    rejections = Counter[str]()
    model = ScriptedChat(lambda _: Unanswered("down"))
    assert SchemaReader(model, 3, SAMPLING, 0).read(documents(), rejections) == []
    assert len(model.requests) == 3
    assert +rejections == {"a proposed schema is unusable": 3, "the proposed schemas share no column": 1}
    assert SchemaReader(model, 3, SAMPLING, 0).read([], rejections) == []


def test_votes_differ_by_seed_and_documents_are_fenced() -> None:
    model = ScriptedChat([json.dumps(PROPOSAL)] * 3 + agreeing())
    SchemaReader(model, 3, SAMPLING, 7).read(documents(), Counter())
    assert [request.seed for request in model.requests] == [7, 8, 9] * 4
    assert all(request.prompt.startswith("<document") for request in model.requests)


def test_long_documents_and_those_without_numbers_are_not_worth_reading() -> None:
    one = reader([])
    assert [one.suits(document("d", text, "text")) for text in ("1 2 3 4 5", "few 1", "1 " * 5000)] == [
        True,
        False,
        False,
    ]
    rejections = Counter[str]()

    def reply(request: Request) -> str:
        return json.dumps(PROPOSAL) if "columns" in request.schema.model_fields else agreeing()[0]  # type: ignore

    found = SchemaReader(ScriptedChat(reply), 1, SAMPLING, 0).read(
        [documents()[0], document("long", "1 " * 5000, "text")], rejections
    )
    assert {cell.document_id for cell in found} == {"Acme"}
    assert rejections["a document is too long for the model that reads it"] == 1
