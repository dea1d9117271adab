import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tasks.artifacts import read_documents
from tasks.base_model.vocabulary import build_tokenizer
from tasks.corpus import ingest
from tasks.corpus.countries import load_countries
from tasks.corpus.documents import DIALOGUES_PER_COUNTRY, country_drafts
from tasks.corpus.grammar import rows, statements
from tasks.corpus.render import FACTS_PER_DIALOGUE, ROWS_PER_REPORT
from tasks.corpus.spool import Spool
from tasks.errors import InputError
from tasks.params import Params, load_params
from tasks.records import Document
from tasks.tokenization import ChatTokenizer
from tests.corpus.files import pdf_bytes

DOCUMENTS_OF_SEED_0 = "6d18c07c62b60eca8c530eddfd502842e0dfa82f96b1c0afee8aa27df3a447e1"
SPLITS = ("train", "development", "test")


def params_of(scratch: Path, *overrides: str) -> Params:
    return load_params(scratch / "params.yaml", (f"tracking.uri=sqlite:///{scratch}/runs.db", *overrides))


def collect(params: Params) -> tuple[list[Document], dict[str, Any]]:
    """What the stage writes."""
    with Spool.at(Path("spool")) as spool:
        splits, metrics = ingest.collect(params, spool)
        return list(spool.documents(splits)), metrics


@pytest.fixture
def tokenizer_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    ChatTokenizer(build_tokenizer(load_countries())).save(folder)
    return folder


def test_country_documents_state_the_facts_and_nothing_else() -> None:
    countries = {country.name: country for country in load_countries()}
    drafts = country_drafts(list(countries.values()), seed=0)
    for draft in drafts:
        for country, measure, count in rows(draft.text):
            assert dict(countries[country].counts)[measure] == count
        last = {(said.relation, said.subject): said.value for said in statements(draft.text)}
        for (relation, subject), value in last.items():
            assert countries[subject].values()[relation] == value
    assert len({draft.id for draft in drafts}) == len(drafts)
    assert max(len(list(rows(draft.text))) for draft in drafts) == ROWS_PER_REPORT


def test_a_dialogue_never_repeats_a_country_and_sizes_are_bounded() -> None:
    drafts = [draft for draft in country_drafts(load_countries(), seed=3) if draft.kind == "dialogue"]
    subjects = [{said.subject for said in statements(draft.text)} for draft in drafts]
    assert max(map(len, subjects)) == FACTS_PER_DIALOGUE
    told = Counter(subject for group in subjects for subject in group)
    assert set(told.values()) == {DIALOGUES_PER_COUNTRY}


def test_the_split_keeps_regions_whole_and_shares_true(scratch: Path) -> None:
    documents, metrics = collect(params_of(scratch))
    splits = {document.cluster: document.split for document in documents}
    assert all(document.split == splits[document.cluster] for document in documents)
    for kind in ("encyclopaedia", "report", "dialogue"):
        held = Counter(document.split for document in documents if document.kind == kind)
        assert 0.25 < held["test"] / held.total() < 0.35
        assert 0.05 < held["development"] / held.total() < 0.16
    assert sum(metrics["documents"].values()) == len(documents)


def test_the_command_writes_documents_and_metrics(scratch: Path) -> None:
    params = params_of(scratch)
    ingest.run(params)
    first = (scratch / ingest.DOCUMENTS).read_bytes()
    ingest.run(params)
    assert (scratch / ingest.DOCUMENTS).read_bytes() == first
    documents = read_documents(ingest.DOCUMENTS)
    assert json.loads(ingest.METRICS.read_text())["documents"] == Counter(one.split for one in documents)


def test_a_folder_becomes_documents_that_leave_room_for_a_question(scratch: Path, tokenizer_folder: Path) -> None:
    folder = scratch / "mine"
    folder.mkdir()
    for number in range(6):
        sentences = [f"The mayor of Town{number}x{part} is Person{number}x{part}." for part in range(30)]
        (folder / f"text{number}.txt").write_text("\n\n".join(sentences))
    (folder / "schools.csv").write_text("town,schools\n" + "\n".join(f"Town{n},{n}" for n in range(40)))
    (folder / "latin1.txt").write_bytes(b"caf\xe9")
    (folder / "scan.pdf").write_bytes(pdf_bytes(["", ""]))
    params = params_of(scratch, "corpus.countries=false", f"corpus.folder={folder}", f"base_model={tokenizer_folder}")
    documents, metrics = collect(params)
    count = ChatTokenizer.load(tokenizer_folder).count
    assert max(count(document.text) for document in documents) <= params.rl.stages["stage1"].max_input_tokens // 2
    assert {document.split for document in documents} == set(SPLITS)
    assert {document.kind for document in documents} == {"text", "table"}
    for source in ("text3.txt", "schools.csv"):
        assert len({document.split for document in documents if document.source == source}) == 1
    table = "\n".join(document.text for document in documents if document.kind == "table")
    assert sorted(rows(table), key=lambda row: row[2]) == [(f"Town{n}", "schools", n) for n in range(40)]
    assert [skipped.path for skipped in metrics["skipped_files"]] == ["scan.pdf"]
    assert metrics["files_read"] == {".csv": 1, ".txt": 7}
    assert metrics["files_left_out"] == {"empty": 0, "duplicate": 0, "unreadable": 1}
    assert metrics["encodings"] == {"cp1252": 1, "utf-8": 7}
    assert [remark.path for remark in metrics["remarks"]] == ["latin1.txt"]


def test_a_writer_model_gets_tables_with_all_their_columns(scratch: Path, tokenizer_folder: Path) -> None:
    folder = scratch / "mine"
    folder.mkdir()
    for number in range(6):
        (folder / f"{number}.csv").write_text(f"town,schools,share\nTown{number},{number},0.{number}5\n")
    writer = "synthesis.writer={type: transformers, model: m, context_tokens: 512, max_output_tokens: 64}"
    source = ("corpus.countries=false", f"corpus.folder={folder}", f"base_model={tokenizer_folder}")
    documents, _ = collect(params_of(scratch, *source, writer))
    assert [(one.kind, one.text) for one in documents if one.source == "3.csv"] == [
        ("text", "town,schools,share\nTown3,3,0.35")
    ]
    documents, _ = collect(params_of(scratch, *source))
    assert [(one.kind, one.text) for one in documents if one.source == "3.csv"] == [
        ("table", "| Town3 | schools | 3 |")
    ]


def test_the_documents_of_the_committed_figures_stay_byte_for_byte(scratch: Path) -> None:
    documents, _ = collect(params_of(scratch, "seed=0"))
    written = "\n".join(document.model_dump_json() for document in documents)
    assert hashlib.sha256(written.encode()).hexdigest() == DOCUMENTS_OF_SEED_0


def test_no_source_at_all_is_an_error(scratch: Path) -> None:
    with pytest.raises(InputError, match="switch one on"):
        collect(params_of(scratch, "corpus.countries=false"))


def test_nothing_is_written_when_the_folder_cannot_be_used(scratch: Path, tokenizer_folder: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        ingest.run(params_of(scratch, "corpus.folder=absent", f"base_model={tokenizer_folder}"))
    assert not (scratch / ingest.DOCUMENTS).exists()
