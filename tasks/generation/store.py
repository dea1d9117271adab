"""Small sqlite files that outlive a kill: what was answered, and what it cost."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.errors import InputError

WAIT_SECONDS = 30.0  # for another connection's write


def open_store(path: Path, table: str) -> sqlite3.Connection:
    """A connection that any thread may use, one at a time; each statement is committed as it ends.

    With a write-ahead log a commit is one append, and survives the end of the process, however it ends.

    Args:
        path: made where it is missing.
        table: the CREATE TABLE statement of what it holds.

    Raises:
        InputError: the file is no sqlite database, or cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with usable(path):
        store = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        store.execute("PRAGMA journal_mode = WAL")
        store.execute("PRAGMA synchronous = NORMAL")
        store.execute(table)
    return store


@contextmanager
def usable(path: Path) -> Iterator[None]:
    """Errors of sqlite as one that names the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise InputError(f"{path} cannot be read or written ({error}); free some space, or move it away") from error
