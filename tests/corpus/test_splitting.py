from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpus.documents import file_drafts
from tasks.corpus.ingest import read_files
from tasks.corpus.splitting import SPLITS, deal_clusters
from tasks.corpus.spool import Spool
from tasks.errors import InputError
from tasks.filtering.contamination import survey
from tasks.records import Split

SHARES: dict[Split, float] = {"train": 0.6, "development": 0.1, "test": 0.3}


def test_shares_are_met_per_kind() -> None:
    counts = {f"c{index}": {"report": 2, "dialogue": 1} for index in range(10)}
    deal = deal_clusters(counts, SHARES, seed=0)
    assert [list(deal.values()).count(split) for split in ("train", "development", "test")] == [6, 1, 3]


def test_every_split_gets_every_kind_when_it_can() -> None:
    counts = {f"big{index}": {"report": 5} for index in range(4)}
    counts |= {f"small{index}": {"dialogue": 1} for index in range(3)}
    deal = deal_clusters(counts, SHARES, seed=0)
    assert {deal[f"small{index}"] for index in range(3)} == set(SPLITS)


def test_seeds_decide() -> None:
    counts = {f"c{index}": {"report": 1 + index} for index in range(12)}
    assert deal_clusters(counts, SHARES, 1) == deal_clusters(dict(reversed(counts.items())), SHARES, 1)
    assert len({tuple(deal_clusters(counts, SHARES, seed).items()) for seed in range(5)}) > 1


def test_too_few_clusters_are_an_error_unless_the_share_is_zero() -> None:
    with pytest.raises(InputError, match=r"1 separate source\(s\) leave nothing for development, test"):
        deal_clusters({"only": {"text": 40}}, SHARES, 0)
    alone: dict[Split, float] = {"train": 1.0, "development": 0.0, "test": 0.0}
    assert deal_clusters({"only": {"text": 40}}, alone, 0) == {"only": "train"}


@given(st.dictionaries(st.text(min_size=1), st.integers(1, 30), min_size=3), st.integers(0, 5))
def test_every_cluster_is_dealt_once(sizes: dict[str, int], seed: int) -> None:
    deal = deal_clusters({name: {"text": size} for name, size in sizes.items()}, SHARES, seed)
    assert sorted(deal) == sorted(sizes)
    assert set(deal.values()) == set(SPLITS)


def test_files_that_are_nearly_copies_are_dealt_together(tmp_path: Path) -> None:
    """Through others, too: "c" is like "b", and "b" like "a"."""
    (tmp_path / "mine").mkdir()
    words = [f"word{number}" for number in range(200)]
    texts = {"a": words, "b": [*words, "more"], "c": [*words, "more", "still"], "d": words[::-1]}
    for name, text in texts.items():
        (tmp_path / "mine" / f"{name}.txt").write_text(" ".join(text))
    with Spool.at(tmp_path / "spool") as spool:
        read_files(str(tmp_path / "mine"), spool, lambda source: file_drafts(source, 400, len), similarity=0.9)
        split: dict[str, Split] = {"a.txt": "train", "d.txt": "test"}  # no other cluster is left
        dealt = {(document.source, document.split) for document in spool.documents(split)}
    assert dealt == {("a.txt", "train"), ("b.txt", "train"), ("c.txt", "train"), ("d.txt", "test")}


def test_a_passage_that_many_files_share_is_one_document_and_leaks_into_no_other_split(tmp_path: Path) -> None:
    """Reports end on the same disclaimer: it says nothing of any, and must not join all their splits either."""
    (tmp_path / "mine").mkdir()
    for report in range(6):
        own = "\n\n".join(f"Report {report} says {report}{number} of matter {number}." for number in range(20))
        (tmp_path / "mine" / f"{report}.txt").write_text(f"{own}\n\n{'No warranty is given. ' * 20}")
    with Spool.at(tmp_path / "spool") as spool:
        cut = partial(file_drafts, limit=120, count=len)
        reading = read_files(str(tmp_path / "mine"), spool, cut, similarity=0.9)
        splits: dict[str, Split] = {f"{report}.txt": "test" if report % 2 else "train" for report in range(6)}
        documents = list(spool.documents(splits))
    survey(documents)  # refuses a text in two splits
    assert sum("warranty" in document.text and document.source != "0.txt" for document in documents) == 0
    assert {document.source for document in documents} == set(splits)
    assert [remark.path for remark in reading.remarks] == [
        f"{report}.txt" for report in range(6)
    ]  # the first repeats itself
    assert "another document has word for word" in reading.remarks[0].remark
