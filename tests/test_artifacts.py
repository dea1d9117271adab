import errno
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks import artifacts
from tasks.artifacts import (
    atomic_folder,
    document_writer,
    item_writer,
    read_documents,
    read_items,
    read_questions,
    sha256_of,
    stage_lock,
    stream_documents,
    stream_items,
    write_bytes,
    write_documents,
    write_items,
    write_json,
    write_questions,
    write_text,
)
from tasks.errors import InputError, StageBusyError
from tasks.prompts import answer_prompt
from tasks.records import AnswerKind, Document, Domain, Item, Question
from tests.conftest import CHECKOUT

DOCUMENT = Document(
    id="d1",
    title="Ghana",
    text="Accra é",
    kind="report",
    cluster="Africa",
    split="train",
    source="countryinfo",
)
QUESTION = Question(
    id="q1",
    domain=Domain.MULTI_HOP,
    question="What is the capital of Ghana?",
    gold=("Accra",),
    answer_kind=AnswerKind.TEXT,
    document_ids=("d1",),
    split="train",
    generator="knowledge_graph",
    difficulty=2,
    provenance={"path": [["Ghana", "capital", "Accra"]], "scores": {"a": 0.5}},
    seed=7,
)
ITEM = Item(
    question=QUESTION,
    documents=("Accra is the capital.", "Other."),
    document_ids=("d1", "d9"),
    length_bucket=128,
    input_tokens=31,
)

# ── atomic writes ──


def hidden(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir() if entry.name.startswith(".")]


def test_a_write_makes_its_folder_and_leaves_nothing_else(tmp_path: Path) -> None:
    write_text(tmp_path / "a/b/c.txt", "é\n")
    assert (tmp_path / "a/b/c.txt").read_bytes() == b"\xc3\xa9\n"
    assert hidden(tmp_path / "a/b") == []


def test_json_of_records_and_what_json_lacks(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Score:
        mean: float
        where: Path

    write_json(tmp_path / "x.json", {"score": Score(math.nan, Path("a/b")), "item": DOCUMENT, 1: (math.inf, 0.5)})
    read = json.loads((tmp_path / "x.json").read_text("utf-8"))
    assert read == {
        "score": {"mean": None, "where": "a/b"},
        "item": DOCUMENT.model_dump(),
        "1": [None, 0.5],
    }


@pytest.mark.parametrize(
    "failure",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        RuntimeError("I/O error: No space left on device (os error 28)"),  # what safetensors says
    ],
)
def test_a_full_disk_is_an_input_error_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    target = tmp_path / "x.txt"
    write_text(target, "old")

    def full(descriptor: int) -> None:
        raise failure

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"no space left to write .*x\.txt"):
        write_text(target, "new")
    assert target.read_text() == "old"
    assert hidden(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_really_full_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "_temporary_beside", lambda path: path.parent / "full")
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(InputError, match="no space left"):
        write_bytes(tmp_path / "x", b"1")
    assert not (tmp_path / "x").exists()


def test_another_error_passes_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.txt").mkdir()
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path / "x.txt", "new")
    assert hidden(tmp_path) == []


def test_the_leavings_of_a_killed_writer_are_swept(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    (tmp_path / f".x.{int(ended.stdout)}.tmp").mkdir()
    alive = tmp_path / f".x.{os.getppid()}.tmp"
    alive.write_text("another writer's")
    other = tmp_path / ".x.notes.tmp"
    other.write_text("the user's")
    write_text(tmp_path / "x", "new")
    assert sorted(hidden(tmp_path)) == sorted([alive.name, other.name])


def test_a_killed_writer_leaves_the_old_content(tmp_path: Path) -> None:
    target = tmp_path / "x"
    write_text(target, "old")
    code = (
        "import os, pathlib, signal; from tasks import artifacts; "
        "os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL); "
        f"artifacts.write_text(pathlib.Path({str(target)!r}), 'new')"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, check=False).returncode == -signal.SIGKILL
    assert target.read_text() == "old"
    assert len(hidden(tmp_path)) == 1
    write_text(target, "newer")
    assert hidden(tmp_path) == []


def test_a_folder_takes_the_place_of_another_whole(tmp_path: Path) -> None:
    target = tmp_path / "checkpoint"
    for content in ("first", "second"):
        with atomic_folder(target) as folder:
            (folder / f"{content}.txt").write_text(content)
            (folder / "deep").mkdir()
            (folder / "deep/same.txt").write_text(content)
            assert not (target / f"{content}.txt").exists()
        assert sorted(entry.name for entry in target.iterdir()) == ["deep", f"{content}.txt"]
        assert hidden(tmp_path) == []


def test_without_an_exchange_a_folder_is_replaced_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "_exchanged", lambda left, right: False)
    test_a_folder_takes_the_place_of_another_whole(tmp_path)


def test_a_folder_whose_maker_fails_changes_nothing(tmp_path: Path) -> None:
    target = tmp_path / "checkpoint"
    with atomic_folder(target) as folder:
        (folder / "a").write_text("old")

    def fail() -> None:
        with atomic_folder(target) as folder:
            (folder / "b").write_text("new")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(InputError, match="no space left"):
        fail()
    assert [entry.name for entry in target.iterdir()] == ["a"]
    assert hidden(tmp_path) == []


# ── hashes ──


def test_the_hash_of_a_file_is_plain_sha256(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert sha256_of(tmp_path / "x") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "a").write_text("2"),
        lambda folder: (folder / "a").rename(folder / "c"),
        lambda folder: (folder / "new").write_text(""),
        lambda folder: (folder / "sub/b").rename(folder / "b"),
        lambda folder: (folder / "a").unlink(),
    ],
)
def test_the_hash_of_a_folder_covers_names_places_and_contents(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "sub/b").write_text("b")
        (tmp_path / name / "a").write_text("1")
    assert sha256_of(tmp_path / "one") == sha256_of(tmp_path / "two")
    change(tmp_path / "two")
    assert sha256_of(tmp_path / "one") != sha256_of(tmp_path / "two")


def test_nothing_has_no_hash(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        sha256_of(tmp_path / "x")


# ── parquet ──

text = st.text(max_size=12)
texts = st.lists(text, max_size=3).map(tuple)
numbers = st.integers(-(2**62), 2**62)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    kind = draw(st.sampled_from(AnswerKind))
    gold = draw(texts) if kind is AnswerKind.LIST else (draw(text),)
    return Question(
        id=draw(text),
        domain=draw(st.sampled_from(Domain)),
        question=draw(text),
        gold=gold,
        answer_kind=kind,
        options=draw(texts),
        document_ids=draw(texts),
        split=draw(st.sampled_from(["train", "development", "test"])),
        generator=draw(st.sampled_from(["knowledge_graph", "tables", "self_play"])),
        difficulty=draw(numbers),
        provenance=draw(st.dictionaries(text, json_values, max_size=3)),
        seed=draw(numbers),
    )


items = st.builds(
    Item,
    question=questions(),
    documents=texts,
    document_ids=texts,
    length_bucket=numbers,
    input_tokens=numbers,
    checks=texts,
    pass_rate=st.none() | st.floats(0, 1),
)
quick = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


@quick
@given(written=st.lists(items, max_size=4))
def test_items_come_back_exactly(tmp_path: Path, written: list[Item]) -> None:
    write_items(tmp_path / "x.parquet", written)
    assert read_items(tmp_path / "x.parquet") == written


@quick
@given(written=st.lists(questions(), max_size=4))
def test_questions_come_back_exactly(tmp_path: Path, written: list[Question]) -> None:
    write_questions(tmp_path / "x.parquet", written)
    assert read_questions(tmp_path / "x.parquet") == written


def test_documents_come_back_exactly(tmp_path: Path) -> None:
    for written in ([], [DOCUMENT, DOCUMENT.model_copy(update={"id": "d2", "split": "test"})]):
        write_documents(tmp_path / "x.parquet", written)
        assert read_documents(tmp_path / "x.parquet") == written


def test_streams_hold_a_row_group_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "ROW_GROUP_CHARACTERS", 3 * len(DOCUMENT.text))
    monkeypatch.setattr(artifacts, "ROWS_AT_A_TIME", 2)
    written = [DOCUMENT.model_copy(update={"id": f"d{number}"}) for number in range(8)]
    with document_writer(tmp_path / "x.parquet") as writer:
        writer.write(written[:2])
        writer.write(iter(written[2:]))
        assert writer.written == 8
    file = pq.ParquetFile(tmp_path / "x.parquet")
    assert [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)] == [3, 3, 2]
    stream = stream_documents(tmp_path / "x.parquet")
    assert [next(stream), *stream] == written


def test_reading_a_large_file_takes_no_more_memory_than_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyarrow keeps what it read of a file that is read as a whole."""
    monkeypatch.setattr(artifacts, "ROW_GROUP_ROWS", 1)
    size = 2**18
    texts = (DOCUMENT.model_copy(update={"id": f"d{number}", "text": f"{number:0{size}}"}) for number in range(64))
    write_documents(tmp_path / "x.parquet", texts)
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in stream_documents(tmp_path / "x.parquet")]
    assert len(held) == 64
    assert 0 < max(held) < 16 * size


def test_the_rows_of_a_group_are_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "ROW_GROUP_ROWS", 2)
    with item_writer(tmp_path / "x.parquet") as writer:
        writer.write([ITEM] * 5)
    assert pq.ParquetFile(tmp_path / "x.parquet").num_row_groups == 3
    assert list(stream_items(tmp_path / "x.parquet")) == [ITEM] * 5
    rows = pq.read_table(tmp_path / "x.parquet").to_pylist()
    assert [row["extra_info"]["index"] for row in rows] == [0, 1, 2, 3, 4]


def test_a_writer_that_fails_changes_nothing(tmp_path: Path) -> None:
    write_documents(tmp_path / "x.parquet", [DOCUMENT])

    def fail() -> None:
        with document_writer(tmp_path / "x.parquet") as writer:
            writer.write([])
            writer.flush()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert read_documents(tmp_path / "x.parquet") == [DOCUMENT]
    assert hidden(tmp_path) == []


def test_the_same_items_give_the_same_bytes(tmp_path: Path) -> None:
    write_items(tmp_path / "a.parquet", [ITEM])
    write_items(tmp_path / "b.parquet", [ITEM])
    assert sha256_of(tmp_path / "a.parquet") == sha256_of(tmp_path / "b.parquet")


def test_the_schema_is_verls(tmp_path: Path) -> None:
    several = QUESTION.model_copy(update={"answer_kind": AnswerKind.LIST, "gold": ("Accra", "Lomé")})
    none = QUESTION.model_copy(update={"answer_kind": AnswerKind.LIST, "gold": ()})
    kept = [ITEM, *(ITEM.model_copy(update={"question": question}) for question in (several, none))]
    write_items(tmp_path / "x.parquet", kept)
    rows = pq.read_table(tmp_path / "x.parquet").to_pylist()
    assert list(rows[0]) == ["data_source", "prompt", "ability", "reward_model", "extra_info"]
    assert rows[0]["data_source"] == "multi_hop"
    assert rows[0]["prompt"] == [{"role": "user", "content": answer_prompt(ITEM.documents, QUESTION.question)}]
    assert [row["reward_model"] for row in rows] == [
        {"style": "rule", "ground_truth": "Accra"},
        {"style": "rule", "ground_truth": '["Accra", "Lomé"]'},
        {"style": "rule", "ground_truth": "[]"},
    ]
    assert [row["extra_info"]["index"] for row in rows] == [0, 1, 2]
    assert json.loads(rows[0]["extra_info"]["provenance"]) == QUESTION.provenance
    assert rows[0]["extra_info"]["evidence_ids"] == ["d1"]


def test_items_load_with_datasets(tmp_path: Path) -> None:
    from datasets import load_dataset

    write_items(tmp_path / "x.parquet", [ITEM])
    loaded = load_dataset("parquet", data_files=str(tmp_path / "x.parquet"), cache_dir=str(tmp_path), split="train")
    assert loaded[0]["reward_model"] == {"style": "rule", "ground_truth": "Accra"}
    assert loaded[0]["extra_info"]["documents"] == list(ITEM.documents)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"gold": ()}, "0 gold answers"),
        ({"gold": ("a", "b")}, "2 gold answers"),
        ({"provenance": {"path": ("a",)}}, "use lists"),
        ({"provenance": {1: "a"}}, "strings as keys"),
        ({"provenance": {"x": math.nan}}, "not JSON"),
        ({"provenance": {"x": Path("a")}}, "not JSON"),
    ],
)
def test_what_could_not_come_back_is_refused(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    item = ITEM.model_copy(update={"question": QUESTION.model_copy(update=change)})
    with pytest.raises(InputError, match=named):
        write_items(tmp_path / "x.parquet", [item])
    assert list(tmp_path.iterdir()) == []


READERS: list[Callable[[Path], Any]] = [read_items, read_questions, read_documents]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("content", [b"", b"PAR1 and then nothing", b"id,title\n"])
def test_an_unreadable_file_is_named(tmp_path: Path, read: Callable[[Path], Any], content: bytes) -> None:
    path = tmp_path / "x.parquet"
    with pytest.raises(InputError, match=r"x\.parquet does not exist"):
        read(path)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"x\.parquet is not a readable parquet file"):
        read(path)


def rewrite(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    rows = pq.read_table(path).to_pylist()
    for row in rows:
        change(row)
    pq.write_table(pa.Table.from_pylist(rows), path)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda row: row.pop("reward_model"), "lacks the column reward_model"),
        (lambda row: row["reward_model"].pop("ground_truth"), r"lacks the column reward_model\.ground_truth"),
        (lambda row: row["extra_info"].pop("evidence_ids"), r"lacks the column extra_info\.evidence_ids"),
        (lambda row: row.update(extra_info="text"), "the column extra_info is string"),
        (lambda row: row.update(data_source="poetry"), "row 0, column domain: .*'poetry'"),
        (lambda row: row["extra_info"].update(split="exam"), "row 0, column split"),
        (lambda row: row["extra_info"].update(answer_kind="smell"), "row 0 .*smell"),
        (lambda row: row["extra_info"].update(provenance="{"), "row 0 cannot be read"),
        (lambda row: row["extra_info"].update(provenance=None), "row 0 cannot be read"),
    ],
)
def test_a_wrong_column_is_named(tmp_path: Path, change: Callable[[dict[str, Any]], Any], named: str) -> None:
    path = tmp_path / "x.parquet"
    write_items(path, [ITEM])
    rewrite(path, change)
    with pytest.raises(InputError, match=named) as caught:
        read_items(path)
    assert str(path) in str(caught.value)


def test_a_foreign_column_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    write_items(path, [ITEM])
    rewrite(path, lambda row: row.update(note="mine"))
    assert read_items(path) == [ITEM]


# ── one holder a stage ──

HOLDER = """
import sys, time
from tasks.artifacts import stage_lock
with stage_lock("train"):
    print("held", flush=True)
    time.sleep(60)
    print("woke", flush=True)
"""
PARENT = f"""
import os, subprocess, sys, time
os.environ["DVC_STAGE"] = "train"
child = subprocess.Popen([sys.executable, "-c", {HOLDER!r}])
print(child.pid, flush=True)
time.sleep(60)
"""


def start(code: str, folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, stdout=subprocess.PIPE, text=True, env=environment
    )


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_second_holder_is_refused_and_a_killed_one_frees_the_lock(scratch: Path) -> None:
    with start(HOLDER, scratch) as first:
        assert read_line(first) == "held"
        with pytest.raises(StageBusyError, match=f"stage train is being run by process {first.pid};"):
            stage_lock("train").__enter__()
        with stage_lock("other"):
            pass
        first.send_signal(signal.SIGKILL)
        first.wait()
    with stage_lock("train") as folder:
        assert folder == Path(".work/train")
        assert (folder / "lock").read_text() == str(os.getpid())


def test_the_lock_is_free_after_an_error(scratch: Path) -> None:
    for _ in range(2):
        with pytest.raises(KeyError), stage_lock("train"):
            raise KeyError


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process die with its parent")
def test_a_stage_dies_with_its_parent(scratch: Path) -> None:
    with start(PARENT, scratch) as parent:
        child = int(read_line(parent))
        assert read_line(parent) == "held"  # the child shares its parent's output
        parent.send_signal(signal.SIGKILL)
        assert parent.stdout is not None
        assert parent.stdout.read() == ""  # ends when the child, the last writer, is gone
    deadline = time.monotonic() + 30
    while Path(f"/proc/{child}/cmdline").exists() and Path(f"/proc/{child}/cmdline").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with stage_lock("train"):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process die with its parent")
def test_a_parent_that_died_before_the_request_counts_too(scratch: Path) -> None:
    code = (
        "import os; from tasks.artifacts import die_with_parent; "
        "parents = iter([4242, 1]); os.getppid = lambda: next(parents); die_with_parent(); print('alive')"
    )
    with start(code, scratch) as process:
        assert read_line(process) == ""
        assert process.wait() == -signal.SIGKILL
