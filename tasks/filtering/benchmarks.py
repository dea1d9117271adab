"""Evaluation sets that training must not contain: every text in json, jsonl and parquet files of any form."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from tasks.artifacts import stream_rows
from tasks.errors import InputError


def benchmark_texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Every string of every file under `folder`, with the file's name; jsonl and parquet a few rows at a time.

    Raises:
        InputError: the folder is missing or holds no such file, or one is not what its name says.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in _READERS)
    if not files:
        raise InputError(
            f"filtering.benchmarks = {folder} holds no {', '.join(_READERS)} file; put evaluation sets there or set "
            "it to null"
        )
    for path in files:
        name = path.relative_to(folder).as_posix()
        try:
            yield from ((text, name) for value in _READERS[path.suffix](path) for text in _strings(value))
        except (ValueError, OSError) as error:  # pyarrow's errors and those of json and utf-8 are ValueErrors
            raise InputError(f"{path} cannot be read as {path.suffix} ({error}); mend or remove it") from error


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)


def _json(path: Path) -> Iterator[object]:
    yield json.loads(path.read_text("utf-8"))


def _jsonl(path: Path) -> Iterator[object]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())


def _parquet(path: Path) -> Iterator[object]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        yield from stream_rows(file)


_READERS: dict[str, Callable[[Path], Iterator[object]]] = {".json": _json, ".jsonl": _jsonl, ".parquet": _parquet}
