"""Files that stages exchange: atomic writes, content hashes, parquet in verl's schema, one lock a stage.

Atomic: the bytes go to a temporary file in the target's folder, are flushed to disk, and take the target's
name in one rename. A reader sees the old content or the new one; a killed writer leaves at most a hidden
`.NAME.PID.tmp`, which the next writer of that name sweeps away.
"""

import ctypes
import dataclasses
import errno
import fcntl
import glob
import hashlib
import json
import math
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from tasks.errors import InputError, StageBusyError
from tasks.prompts import question_prompt
from tasks.records import AnswerKind, Document, Item, Question, Trials

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

WORK = Path(".work")  # resume state and locks: outside what DVC deletes before it reruns a stage
ABILITY = "long-context reasoning"  # verl's `ability` column
DVC_VARIABLE = "DVC_STAGE"  # DVC sets it for the command of a stage
PR_SET_PDEATHSIG = 1  # linux/prctl.h
AT_FDCWD = -100  # linux/fcntl.h
RENAME_EXCHANGE = 2  # linux/fs.h
ROW_GROUP_CHARACTERS = 2**21  # what a writer holds in memory, and a reader decodes at once
ROW_GROUP_ROWS = 2**14
ROWS_AT_A_TIME = 64  # what a reader holds
FULL = (os.strerror(errno.ENOSPC), "database or disk is full")  # in words of libraries; the second is SQLite's

ASKED = ("id", "split", "question", "instruction", "options", "answer_kind", "generator", "seed", "difficulty")
LISTS = (AnswerKind.LIST, AnswerKind.ORDERED_LIST, AnswerKind.SET)

Row = dict[str, Any]
R = TypeVar("R", bound=BaseModel)


# ── atomic writes ──


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` to `path` atomically, making its folder if needed.

    Raises:
        InputError: the disk is full; `path` is as it was before.
    """
    with atomic_file(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, value: object) -> None:
    """Write readable JSON atomically. Records and dataclasses become objects, NaN and infinity null."""
    text = json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def write_parquet(path: Path, table: "pa.Table") -> None:
    """Write an Arrow table atomically. The same table gives the same bytes."""
    import pyarrow.parquet as pq

    with atomic_file(path) as temporary:
        pq.write_table(table, temporary)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `path`, whole, when the block ends without error."""
    with _space_for(path):
        temporary = _temporary_beside(path)
        temporary.mkdir()
        try:
            yield temporary
            for entry in [*temporary.rglob("*"), temporary]:
                _flush(entry)
            _take_place(temporary, path)
            _flush(path.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(mode="json"))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return str(value) if isinstance(value, Path) else value


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a free path for a file that takes the name `path` when the block ends without error."""
    with _space_for(path):
        temporary = _temporary_beside(path)
        try:
            yield temporary
            _flush(temporary)
            os.replace(temporary, path)
            _flush(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def _space_for(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # safetensors and torch raise types of their own
        if not _is_no_space(error):
            raise
        raise InputError(f"no space left to write {path}, which is unchanged: free some space, run again") from error


def _is_no_space(error: Exception) -> bool:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return any(words in str(error) for words in FULL)


def _temporary_beside(path: Path) -> Path:
    """A free hidden name in the folder of `path`. Removes what killed writers of the same name left there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        writer = left.name.removeprefix(f".{path.name}.").removesuffix(".tmp")
        if writer.isdecimal() and not _alive(int(writer)):
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
    return path.parent / f".{path.name}.{os.getpid()}.tmp"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _flush(path: Path) -> None:
    """Force a file or folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _take_place(new: Path, path: Path) -> None:
    """Rename folder `new` to `path`. A folder already there ends up under the name of `new`."""
    if not path.exists():
        os.rename(new, path)
    elif not _exchanged(new, path):  # other systems: two renames, a kill between them leaves `path` missing
        aside = path.with_name(f".{path.name}.old.{os.getpid()}.tmp")
        os.rename(path, aside)
        os.rename(new, path)
        os.rename(aside, new)


def _exchanged(left: Path, right: Path) -> bool:
    """Swap two names in one step, where the system can (Linux)."""
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "renameat2"):
        return False
    return bool(libc.renameat2(AT_FDCWD, os.fsencode(left), AT_FDCWD, os.fsencode(right), RENAME_EXCHANGE) == 0)


# ── hashes ──


def sha256_of(path: Path) -> str:
    """The content hash of a file, or of a folder: over its sorted relative file names and their contents.

    Raises:
        InputError: `path` does not exist.
    """
    if path.is_dir():
        digest = hashlib.sha256()
        for file in sorted(entry for entry in path.rglob("*") if entry.is_file()):
            name = file.relative_to(path).as_posix()
            digest.update(f"{len(name)}:{name}:{sha256_of(file)}".encode())
        return digest.hexdigest()
    if not path.is_file():
        raise InputError(f"{path} does not exist; run the stage that makes it")
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# ── parquet ──


class RecordWriter(Generic[R]):
    """Appends records to a file that appears whole, or not at all."""

    def __init__(self, file: "pq.ParquetWriter", to_row: Callable[[int, R], Row], size: Callable[[R], int]) -> None:
        self._file = file
        self._to_row = to_row
        self._size = size
        self._rows: list[Row] = []
        self._characters = 0
        self.written = 0  # records so far

    def write(self, records: Iterable[R]) -> None:
        """Append records, drawing them one by one: at most one row group is in memory."""
        for record in records:
            self._rows.append(self._to_row(self.written, record))
            self._characters += self._size(record)
            self.written += 1
            if self._characters >= ROW_GROUP_CHARACTERS or len(self._rows) == ROW_GROUP_ROWS:
                self.flush()

    def flush(self) -> None:
        """End the row group."""
        import pyarrow as pa

        if not self._rows:
            return
        self._file.write_table(pa.Table.from_pylist(self._rows, schema=self._file.schema))
        self._rows, self._characters = [], 0


@contextmanager
def document_writer(path: Path) -> Iterator[RecordWriter[Document]]:
    """Write documents as they come, one row each, columns as in `Document`."""
    with _writer(path, _document_schema(), _document_row, lambda document: len(document.text)) as writer:
        yield writer


@contextmanager
def item_writer(path: Path) -> Iterator[RecordWriter[Item]]:
    """Write items as they come, in verl's schema, one row each.

    `prompt` is the answer prompt as one user message, `reward_model.ground_truth` the gold answer (for list
    answers a JSON list), `extra_info` everything else of the `Item`: reading gives it back exactly.

    Raises:
        InputError: an answer that is no list has not exactly one gold string, or provenance is not JSON.
    """
    with _writer(path, _item_schema(), _item_row, lambda item: 2 * sum(map(len, item.documents))) as writer:
        yield writer


def write_documents(path: Path, documents: Iterable[Document]) -> None:
    """All of `document_writer` in one call."""
    with document_writer(path) as writer:
        writer.write(documents)


def write_items(path: Path, items: Iterable[Item]) -> None:
    """All of `item_writer` in one call."""
    with item_writer(path) as writer:
        writer.write(items)


def write_questions(path: Path, questions: Iterable[Question]) -> None:
    """Write questions, one row each, columns as in `Question`; `provenance` is a JSON string."""
    with _writer(path, _question_schema(), _question_row, lambda question: len(question.question)) as writer:
        writer.write(questions)


def stream_rows(file: "pq.ParquetFile", columns: Sequence[str] | None = None) -> Iterator[Row]:
    """The rows of any parquet file, of which one row group at most is in memory."""
    for group in range(file.num_row_groups):  # asked for all groups, pyarrow keeps those that were read
        for batch in file.iter_batches(ROWS_AT_A_TIME, row_groups=[group], columns=columns):
            yield from batch.to_pylist()


def stream_documents(path: Path) -> Iterator[Document]:
    """Read what `document_writer` wrote, a few rows at a time.

    Raises:
        InputError: the file is missing, unreadable or lacks a column; while reading: it holds a wrong value.
    """
    return _stream_rows(path, _document_schema(), Document.model_validate)


def stream_items(path: Path) -> Iterator[Item]:
    """Read what `item_writer` wrote; as `stream_documents`."""
    return _stream_rows(path, _item_schema(), _item_of)


def read_documents(path: Path) -> list[Document]:
    """All of `stream_documents` in memory."""
    return list(stream_documents(path))


def read_items(path: Path) -> list[Item]:
    """All of `stream_items` in memory."""
    return list(stream_items(path))


def read_questions(path: Path) -> list[Question]:
    """Read what `write_questions` wrote; errors as in `stream_documents`."""
    return list(_stream_rows(path, _question_schema(), _question_of))


def _document_schema() -> "pa.Schema":
    import pyarrow as pa

    return pa.schema([pa.field(name, pa.string(), nullable=False) for name in Document.model_fields])


def _question_schema() -> "pa.Schema":
    import pyarrow as pa

    text, texts, number = pa.string(), pa.list_(pa.string()), pa.int64()
    kinds = {"gold": texts, "options": texts, "document_ids": texts, "difficulty": number, "seed": number}
    return pa.schema([pa.field(name, kinds.get(name, text), nullable=False) for name in Question.model_fields])


def _item_schema() -> "pa.Schema":
    import pyarrow as pa

    text, texts, number = pa.string(), pa.list_(pa.string()), pa.int64()
    extra = {
        "index": number,
        "split": text,
        "id": text,
        "question": text,
        "instruction": text,
        "options": texts,
        "answer_kind": text,
        "documents": texts,
        "document_ids": texts,
        "evidence_ids": texts,
        "generator": text,
        "provenance": text,
        "seed": number,
        "difficulty": number,
        "length_bucket": number,
        "input_tokens": number,
        "checks": texts,
        "trials": pa.struct(dict.fromkeys(Trials.model_fields, number)),
        "pass_rate": pa.float64(),
    }
    return pa.schema(
        {
            "data_source": text,
            "prompt": pa.list_(pa.struct({"role": text, "content": text})),
            "ability": text,
            "reward_model": pa.struct({"style": text, "ground_truth": text}),
            "extra_info": pa.struct(extra),
        }
    )


def _document_row(_: int, document: Document) -> Row:
    return document.model_dump(mode="json")


def _question_row(_: int, question: Question) -> Row:
    return {**question.model_dump(mode="json"), "provenance": _provenance(question)}


def _question_of(row: Row) -> Question:
    return Question.model_validate({**row, "provenance": json.loads(row["provenance"])})


def _item_row(index: int, item: Item) -> Row:
    question = item.question
    content = question_prompt(item.documents, question)
    return {
        "data_source": question.domain.value,
        "prompt": [{"role": "user", "content": content}],
        "ability": ABILITY,
        "reward_model": {"style": "rule", "ground_truth": _ground_truth(question)},
        "extra_info": {
            "index": index,
            **question.model_dump(mode="json", include=set(ASKED)),
            "evidence_ids": question.document_ids,
            "provenance": _provenance(question),
            **item.model_dump(mode="json", exclude={"question"}),
        },
    }


def _item_of(row: Row) -> Item:
    extra = dict(row["extra_info"])
    question = Question(
        **{name: extra.pop(name) for name in ASKED},
        domain=row["data_source"],
        gold=_gold(row["reward_model"]["ground_truth"], AnswerKind(row["extra_info"]["answer_kind"])),
        document_ids=extra.pop("evidence_ids"),
        provenance=json.loads(extra.pop("provenance")),
    )
    extra.pop("index")
    return Item(question=question, **extra)


def _ground_truth(question: Question) -> str:
    if question.answer_kind in LISTS:
        return json.dumps(question.gold, ensure_ascii=False)
    if len(question.gold) != 1:
        raise InputError(
            f"question {question.id} has {len(question.gold)} gold answers; "
            f"a {question.answer_kind} answer needs exactly one, only lists may have another number"
        )
    return question.gold[0]


def _gold(ground_truth: str, kind: AnswerKind) -> tuple[str, ...]:
    return tuple(json.loads(ground_truth)) if kind in LISTS else (ground_truth,)


def _provenance(question: Question) -> str:
    try:
        text = json.dumps(question.provenance, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"question {question.id}: its provenance is not JSON: {error}") from error
    if json.loads(text) != question.provenance:
        raise InputError(f"question {question.id}: provenance changes in JSON; use lists, and strings as keys")
    return text


@contextmanager
def _writer(
    path: Path, schema: "pa.Schema", to_row: Callable[[int, R], Row], size: Callable[[R], int]
) -> Iterator[RecordWriter[R]]:
    """`size` estimates a record in characters."""
    import pyarrow.parquet as pq

    with atomic_file(path) as temporary, pq.ParquetWriter(temporary, schema) as file:
        writer = RecordWriter(file, to_row, size)
        yield writer
        writer.flush()


def _stream_rows(path: Path, schema: "pa.Schema", parse: Callable[[Row], R]) -> Iterator[R]:
    """Open and check at once, parse while reading."""
    import pyarrow.parquet as pq

    if not path.is_file():
        raise InputError(f"{path} does not exist; run the stage that makes it")
    with _readable(path):
        file = pq.ParquetFile(path)
    for field in schema:
        _check_column(path, field, file.schema_arrow)

    def rows() -> Iterator[R]:
        with file, _readable(path):
            for number, row in enumerate(stream_rows(file, schema.names)):
                yield _parsed(row, number, path, parse)

    return rows()


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} is not a readable parquet file ({error}); remove it and run its stage") from error


def _parsed(row: Row, number: int, path: Path, parse: Callable[[Row], R]) -> R:
    try:
        return parse(row)
    except ValidationError as error:
        problem = error.errors()[0]
        column = ".".join(str(part) for part in problem["loc"])
        raise InputError(
            f"{path}, row {number}, column {column}: {problem['msg']} (got {problem['input']!r})"
        ) from error
    except (ValueError, TypeError) as error:
        raise InputError(f"{path}, row {number} cannot be read: {error}") from error


def _check_column(path: Path, field: "pa.Field", found: "pa.Schema | pa.StructType", parent: str = "") -> None:
    import pyarrow as pa

    name = f"{parent}{field.name}"
    if found.get_field_index(field.name) < 0:
        raise InputError(f"{path} lacks the column {name}; it was not written by this version: run its stage again")
    kind = found.field(field.name).type
    if pa.types.is_struct(field.type):
        if not pa.types.is_struct(kind):
            raise InputError(f"{path}: the column {name} is {kind}, not {field.type}; run its stage again")
        for inner in field.type:
            _check_column(path, inner, kind, f"{name}.")


# ── one holder a stage ──


@contextmanager
def stage_lock(name: str) -> Iterator[Path]:
    """Hold the lock of one stage, yield its folder `.work/<name>`, and, under DVC, die if DVC dies.

    The kernel frees the lock however the process ends. The lock's file stays: removing it would let two
    processes hold two files of one name.

    Raises:
        StageBusyError: another live process holds it; the message names its pid.
    """
    if DVC_VARIABLE in os.environ:  # started by hand, it may go on after its shell has ended
        die_with_parent()
    folder = WORK / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise StageBusyError(
                f"stage {name} is being run by process {file.read() or 'unknown'}; wait for it or stop it"
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield folder


def die_with_parent() -> None:
    """Have Linux kill this process when its parent ends; elsewhere only the lock refuses a second writer.

    A killed `dvc` or flow otherwise leaves its stage running as an orphan beside the rerun's. SIGKILL:
    a library may catch or ignore SIGTERM, and nothing needs cleaning up, since every write is atomic and the
    resume state survives a kill anywhere. "Parent" is the thread that started us: start in one that waits. A shell
    between DVC and us would be the parent instead: commands in dvc.yaml begin with `exec`.
    """
    if not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the request: no signal will come
        os.kill(os.getpid(), signal.SIGKILL)
