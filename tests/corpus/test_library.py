import multiprocessing
import pickle
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.artifacts import WORK, sha256_of, write_documents
from tasks.corpus import library as module
from tasks.corpus.library import MAX_TERMS, Label, Library
from tasks.corpus.names import mentions
from tasks.errors import InputError
from tasks.records import Document, Split


def document(name: str, text: str, split: Split = "train", title: str = "") -> Document:
    return Document(id=name, title=title, text=text, kind="text", cluster=f"of {name}", split=split, source="test")


RIVERS = [
    document("nile", "The Nile flows through Egypt and Sudan."),
    document("niger", "The Niger flows through Mali."),
    document("nigeria", "Nigeria lies at the sea.", title="Rivers of Mali"),
    document("rhine", "The Rhine flows through Basel.", "test"),
]


def test_it_is_a_mapping_in_the_order_of_writing() -> None:
    library = Library.of(RIVERS)
    assert list(library) == ["nile", "niger", "nigeria", "rhine"]
    assert len(library) == 4
    assert library["niger"] == RIVERS[1]
    assert "niger" in library and "Niger" not in library and 3 not in library
    assert list(library.stream()) == RIVERS == list(library.values())
    assert list(library.stream("test")) == [RIVERS[3]]
    assert library.ids("train") == ("nile", "niger", "nigeria") and library.ids("development") == ()
    assert library.label("nile") == Label("text", "of nile")
    for absent in (library.__getitem__, library.label):
        with pytest.raises(KeyError):
            absent("danube")


def test_an_empty_library_holds_nothing() -> None:
    library = Library.of([])
    assert (len(library), list(library), library.nearest("a", "train", 3)) == (0, [], [])
    assert library.mentioning("a", "train") == frozenset()


def test_names_are_found_as_whole_words_of_the_text() -> None:
    library = Library.of(RIVERS)
    assert library.mentioning("Niger", "train") == {"niger"}
    assert library.mentioning("MALI", "train") == {"niger"}  # not in the title
    assert library.mentioning("flows through", "train") == {"nile", "niger"}
    assert library.mentioning("flows through", "test") == {"rhine"}
    assert library.mentioning("through flows", "train") == frozenset()


@pytest.mark.parametrize("name", ["", " ", "...", '"', "\ud800", "\0", "()"])
def test_a_name_without_words_is_mentioned_nowhere(name: str) -> None:
    assert Library.of(RIVERS).mentioning(name, "train") == frozenset()
    assert Library.of(RIVERS).nearest(name, "train", 9) == []


@pytest.mark.parametrize(
    "name", ["AND", "or", "NOT", "NEAR", 'a" OR "b', "text:a", "a*", "^a", "a-b", "{a}", "NEAR(a b)"]
)
def test_no_word_is_a_command_of_the_index(name: str) -> None:
    library = Library.of([document("hit", f"So {name} it is."), document("miss", "Neither of them.")])
    assert library.mentioning(name, "train") == {"hit"}
    assert library.nearest(name, "train", 1) == ["hit"]


texts = st.text(st.sampled_from("aAbBßéÉｅ_1² .-'\"東京ก\u0301\u1e9e"), max_size=12)


@settings(max_examples=40)
@given(st.lists(texts, min_size=1, max_size=5), texts)
def test_the_index_says_what_mentions_says(written: list[str], name: str) -> None:
    documents = [document(str(number), text) for number, text in enumerate(written)]
    wanted = {one.id for one in documents if mentions(one.text, name)}
    assert Library.of(documents).mentioning(name, "train") == wanted


def test_the_nearest_share_the_rarest_words() -> None:
    documents = [document(str(number), f"the river number{number} the") for number in range(20)]
    documents += [document("both", "number3 number4"), document("elsewhere", "number3", "test")]
    library = Library.of(documents)
    assert library.nearest("The NUMBER3, and number4!", "train", 9)[:3] == ["both", "3", "4"]
    assert library.nearest("unheard of", "train", 9) == []
    assert library.nearest("the river", "train", 3) == ["0", "1", "10"]  # ties by id
    assert library.nearest("number3", "test", 9) == ["elsewhere"]


def test_titles_count_for_what_is_near() -> None:
    assert Library.of(RIVERS).nearest("Mali rivers", "train", 9) == ["nigeria", "niger"]


def test_a_query_is_cut_to_its_rarest_words(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [document(f"d{number}", f"common word{number}") for number in range(2 * MAX_TERMS)]
    library = Library.of(documents)
    everything = " ".join(one.text for one in documents) * 50
    assert len(library.nearest(everything, "train", 999)) == MAX_TERMS
    monkeypatch.setattr(module, "MAX_POSTINGS", 3)
    assert len(library.nearest(everything, "train", 999)) == 3
    assert len(library.nearest("common", "train", 999)) == 2 * MAX_TERMS  # one word is always asked for


def test_the_index_is_built_once_for_what_a_file_holds(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_documents(Path("a.parquet"), RIVERS)
    library = Library.open(Path("a.parquet"))
    assert list(library.values()) == RIVERS
    assert library.nearest("Niger", "train", 1) == ["niger"]
    (index,) = (WORK / "library").glob("*.sqlite")
    assert index.stem == sha256_of(Path("a.parquet"))
    monkeypatch.setattr(module, "_fill", None)
    assert list(Library.open(Path("a.parquet"))) == list(library)


def _near(library: Library) -> list[str]:
    return library.nearest("Niger", "train", 1)


def test_it_travels_to_another_process(scratch: Path) -> None:
    write_documents(Path("a.parquet"), RIVERS)
    library = Library.open(Path("a.parquet"))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_near, (library,)) == ["niger"]
    for index in (WORK / "library").glob("*.sqlite"):
        index.unlink()  # as on another machine
    assert _near(pickle.loads(pickle.dumps(library))) == ["niger"]
    with pytest.raises(TypeError, match="write its documents and open them"):
        pickle.dumps(Library.of(RIVERS))


def test_it_cannot_be_written_to(scratch: Path) -> None:
    write_documents(Path("a.parquet"), RIVERS)
    with pytest.raises(sqlite3.OperationalError):
        Library.open(Path("a.parquet"))._connection.execute("DELETE FROM documents")


def test_a_failed_build_leaves_nothing(scratch: Path) -> None:
    write_documents(Path("a.parquet"), [RIVERS[0], RIVERS[0]])
    with pytest.raises(InputError, match="two documents have the id 'nile'"):
        Library.open(Path("a.parquet"))
    assert [path.name for path in (WORK / "library").iterdir()] == ["lock"]
    with pytest.raises(InputError, match="does not exist"):
        Library.open(Path("absent.parquet"))
