"""Where replies to benchmarks lie: each as it comes, so that nothing is asked twice, and all of a run as its result."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.artifacts import RecordWriter, atomic_file
from tasks.errors import InputError
from tasks.evaluation.benchmarks.results import BenchmarkReply, BenchmarkRun
from tasks.generation.store import open_store, usable
from tasks.records import Finish, Record

if TYPE_CHECKING:
    import pyarrow as pa

RESULTS = Path("data/benchmarks")
TABLE = "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, samples TEXT)"
RUN = b"run"  # key of a file's metadata


class Said(Record):
    """A whole reply and what it cost; `cut` as in `BenchmarkReply`."""

    text: str
    finish: Finish
    input_tokens: int
    output_tokens: int
    cut: bool


class Journal:
    """All samples of a task by a key that says what was asked of whom."""

    def __init__(self, path: Path) -> None:
        """Opened, or made.

        Raises:
            InputError: the file is no database, or cannot be written.
        """
        self._path = path
        self._store = open_store(path, TABLE)

    def find(self, key: bytes) -> list[Said] | None:
        """What was said; None where it has not been asked."""
        with usable(self._path):
            row = self._store.execute("SELECT samples FROM replies WHERE key = ?", (key,)).fetchone()
        return [Said.model_validate(said) for said in json.loads(row[0])] if row else None

    def keep(self, key: bytes, samples: Sequence[Said]) -> None:
        """Survives the end of the process, however it ends."""
        text = json.dumps([said.model_dump(mode="json") for said in samples])
        with usable(self._path):
            self._store.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, text))


def path_of(run: BenchmarkRun) -> Path:
    """The file of a run's replies. A later run of the same checkpoint and benchmark takes its place."""
    return RESULTS / f"{run.checkpoint}-{run.benchmark}-{run.way}.parquet"


def write_run(run: BenchmarkRun, replies: Iterable[BenchmarkReply]) -> Path:
    """Write replies as they come, one row each, columns as in `BenchmarkReply`, and the run beside them."""
    import pyarrow.parquet as pq

    path, schema = path_of(run), _schema().with_metadata({RUN: run.model_dump_json()})
    with atomic_file(path) as temporary, pq.ParquetWriter(temporary, schema) as file:
        writer = RecordWriter[BenchmarkReply](file, lambda _, reply: reply.model_dump(mode="json"), _size)
        writer.write(replies)
        writer.flush()
    return path


def read_run(path: Path) -> tuple[BenchmarkRun, list[BenchmarkReply]]:
    """What `write_run` wrote, without the texts.

    Raises:
        InputError: it is no such file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=[name for name in BenchmarkReply.model_fields if name != "text"])
        run = BenchmarkRun.model_validate_json((table.schema.metadata or {})[RUN])
        return run, [BenchmarkReply.model_validate({**row, "text": ""}) for row in table.to_pylist()]
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise InputError(f"{path} holds no replies to a benchmark ({error}); remove it") from error


def _size(reply: BenchmarkReply) -> int:
    return len(reply.text)


def _schema() -> "pa.Schema":
    import pyarrow as pa

    types = {"sample": pa.int64(), "official": pa.float64(), "robust": pa.float64(), "answered": pa.bool_()}
    types |= {"input_tokens": pa.int64(), "output_tokens": pa.int64(), "cut": pa.bool_()}
    return pa.schema([(name, types.get(name, pa.string())) for name in BenchmarkReply.model_fields])
