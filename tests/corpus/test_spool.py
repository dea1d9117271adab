from pathlib import Path

import pytest

from tasks.corpus.documents import Draft
from tasks.corpus.readers import Section, SourceFile
from tasks.corpus.spool import Spool
from tasks.errors import InputError


def source(path: str, text: str) -> SourceFile:
    return SourceFile(path, (Section(text),))


def draft(name: str, cluster: str, kind: str = "text") -> Draft:
    return Draft(name, name, f"text {name.encode().hex()} {cluster}", kind, cluster, "s")  # type: ignore[arg-type]


def test_equal_texts_are_kept_once(tmp_path: Path) -> None:
    with Spool.at(tmp_path / "spool") as spool:
        assert [spool.keep(source(*one)) for one in (("a", "One"), ("b", "Two"), ("c", "One"))] == [None, None, "a"]
        assert (spool.path(1), spool.text(1), spool.text(0)) == ("b", "Two", "One")


def test_documents_come_in_the_order_of_their_ids_with_the_split_of_their_cluster(tmp_path: Path) -> None:
    with Spool.at(tmp_path / "spool") as spool:
        spool.add([draft("b#10", "b"), draft("é", "c"), draft("b#2", "b"), draft("Z", "a", "table"), draft("z", "a")])
        assert spool.counts() == {"a": {"table": 1, "text": 1}, "b": {"text": 2}, "c": {"text": 1}}
        spool.merge("c", into="b")
        assert spool.counts() == {"a": {"table": 1, "text": 1}, "b": {"text": 3}}
        documents = list(spool.documents({"a": "train", "b": "test"}))
    assert [one.id for one in documents] == sorted(one.id for one in documents) == ["Z", "b#10", "b#2", "z", "é"]
    assert [one.split for one in documents] == ["train", "test", "test", "train", "test"]
    assert documents[0] == draft("Z", "a", "table").document("train")


def test_a_text_that_another_document_has_is_left_out(tmp_path: Path) -> None:
    def page(name: str, text: str) -> Draft:
        return Draft(name, name, text, "text", name[0], "s")

    with Spool.at(tmp_path / "spool") as spool:
        assert spool.add([page("a#1", "Own words."), page("a#2", "The usual disclaimer.")]) == 0
        assert spool.add([page("b#1", "the usual  disclaimer"), page("b#2", "Other words.")]) == 1
        assert [one.id for one in spool.documents({"a": "train", "b": "test"})] == ["a#1", "a#2", "b#2"]


def test_two_documents_of_one_id_are_refused(tmp_path: Path) -> None:
    with Spool.at(tmp_path / "spool") as spool, pytest.raises(InputError, match="two documents would have the id 'x'"):
        spool.add([draft("x", "a"), draft("x", "b")])


def test_nothing_is_left_and_leavings_are_written_over(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("left by a killed run")

    def fail() -> None:
        with Spool.at(tmp_path / "spool") as spool:
            spool.keep(source("a", "One"))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert list(tmp_path.iterdir()) == []
