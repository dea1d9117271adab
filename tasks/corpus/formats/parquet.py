"""Parquet: rows as records."""

from pathlib import Path

from tasks.corpus.formats.base import Extract
from tasks.corpus.formats.records import parts_of
from tasks.errors import InputError


def read_parquet(path: Path) -> Extract:
    """Rows that hold a text are documents, flat ones a table.

    Raises:
        InputError: it is broken, repeats a column name, or has no rows.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if len(set(names)) < len(names):
                raise InputError(f"its columns {names} need distinct names")
            records = [record for batch in file.iter_batches() for record in batch.to_pylist()]
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"broken parquet file: {error}") from error
    if not records:
        raise InputError("empty")
    return Extract(parts_of(records))
