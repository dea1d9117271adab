import pytest

from tasks.corpus.formats.records import written_out
from tasks.generation.scripted import ScriptedChat
from tasks.records import Document
from tasks.synthesis.language import ModelLanguage
from tasks.synthesis.record_facts import RecordReader, measured
from tasks.synthesis.triples import Triple

from .examples import document


def record(name: str, fields: dict[str, object], source: str = "") -> Document:
    return document(name, written_out({name: fields}), "text").model_copy(update={"source": source or name})


def country(name: str, capital: str, area: str, partners: str) -> Document:
    return record(name, {"Capital": capital, "Area": area, "Trade > partners": partners})


LANDS = [
    country("Chad", "N'Djamena", "1,284,000 sq km", "US 58.5%, India 13.3%, China 10.1% (2014)"),
    country("Mali", "Bamako (since 1908)", "1,240,192 sq km", "China 13.1%"),
    country("Oman", "Muscat", "309,500 sq km", "China 43.9%, others 6%, UAE 4.1% (2014)"),
]


def read(documents: list[Document]) -> tuple[list[Triple], list[Document]]:
    reader = RecordReader()
    left = list(reader.left(documents))
    return reader.triples, left


def told(triples: list[Triple]) -> set[tuple[str, str, str]]:
    return {(one.source, one.relation, one.target) for one in triples}


def test_fields_are_facts_with_their_line_as_evidence() -> None:
    triples, left = read(LANDS)
    assert left == []  # nothing of them is worth asking a model about
    assert ("Mali", "Capital", "Bamako") in told(triples)
    assert ("Oman", "Area", "309,500 sq km") in told(triples)
    texts = {one.id: one.text for one in LANDS}
    for triple in triples:
        line = texts[triple.document_id][triple.start : triple.end]
        assert "\n" not in line and triple.source in line and triple.target in line
        assert triple.relation.partition(", ")[0] in line


def test_parts_of_a_list_are_told_apart_by_their_measures() -> None:
    """Without measures "partners" has many answers; and who lists China alone is not the only one that has it."""
    triples, _ = read(LANDS)
    assert {one for one in told(triples) if "partners" in one[1]} == {
        ("Chad", "Trade > partners, 58.5%", "US"),
        ("Chad", "Trade > partners, 13.3%", "India"),
        ("Chad", "Trade > partners, 10.1%", "China"),
        ("Mali", "Trade > partners, 13.1%", "China"),
        ("Oman", "Trade > partners, 43.9%", "China"),
        ("Oman", "Trade > partners, 4.1%", "UAE"),
    }


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Spain 46.1%, Poland 22.4%", [("Spain", "46.1%"), ("Poland", "22.4%")]),
        ("Greece 472 km; Turkey 1,223 km", [("Greece", "472 km"), ("Turkey", "1,223 km")]),
        ("Bulgarian (official) 76.8%, Roma 3.8%", [("Bulgarian", "76.8%"), ("Roma", "3.8%")]),
        ("Musala 2,925 m", [("Musala", "2,925 m")]),
        ("Spain 46.1%, Poland", []),  # whose share is not said
        ("gold, iron ore", []),
        ("3 March 1878", []),
        ("March 1878", []),  # a year is no measure
        ("Room 12", []),
        ("7,186,893", []),
        ("", []),
    ],
)
def test_a_measured_list_has_names_and_measures_throughout(text: str, parts: list[tuple[str, str]]) -> None:
    assert measured(text) == parts


def test_what_is_no_clear_fact_is_left_alone() -> None:
    documents = [
        record("Ulm", {"River": "Danube, Blau", "Motto": "it", "Mayor": "Ann Lee", "Only here": "x", "Twin": "Ulm"}),
        record("Bonn", {"River": "Rhine", "Motto": "it", "Mayor": "Bo Fox", "Twin": "Oxford"}),
    ]
    triples, _ = read(documents)
    assert told(triples) == {
        ("Ulm", "Mayor", "Ann Lee"),
        ("Bonn", "River", "Rhine"),
        ("Bonn", "Mayor", "Bo Fox"),
        ("Bonn", "Twin", "Oxford"),
    }


def test_rows_that_their_names_do_not_tell_apart_state_nothing() -> None:
    table = "Firm | Year | Sales\nAcme | 2021 | 5\nAcme | 2022 | 7\nBolt | 2022 | 9"
    years = "Year | Sales\n2021 | 5\n2022 | 7\n2023 | 9"
    triples, left = read([document("a", table, "text"), document("b", years, "text")])
    assert told(triples) == {("Bolt", "Sales", "9"), ("Bolt", "Year", "2022")}
    assert [one.id for one in left] == ["a", "b"]


def test_prose_goes_on_to_the_model_and_records_do_not() -> None:
    prose = document("prose", "Chad has deserts. Its rivers: few. They run dry.", "text")
    assert read([prose]) == ([], [prose])
    assert read([]) == ([], [])
    chat = ScriptedChat(['{"facts": []}'], context_tokens=2048, max_output_tokens=256)
    reading = ModelLanguage(chat, 0).read([*LANDS, prose])
    assert len(chat.requests) == 1 and "deserts" in chat.requests[0].prompt
    assert ("Muscat", "Capital", "Oman") in told(reading.triples)  # and back
