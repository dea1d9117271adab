"""What ingest has read so far, on disk: a corpus may be larger than memory."""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import astuple
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from tasks.corpus.documents import Draft
from tasks.corpus.readers import SourceFile
from tasks.errors import InputError
from tasks.records import Document, Split
from tasks.rewards.normalise import normalise

Counts = Mapping[str, int]

_TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE sources (number INTEGER PRIMARY KEY, path, digest UNIQUE, text);
CREATE TABLE drafts (id UNIQUE, title, text, kind, cluster, source, digest UNIQUE);
CREATE INDEX members ON drafts (cluster, kind);
"""


class Spool:
    """The user's files as read, and the documents that were cut from them, without a split yet."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.executescript(_TABLES)
        self.sources = 0

    @classmethod
    @contextmanager
    def at(cls, path: Path) -> Iterator["Spool"]:
        """A new spool; its file is removed at the end. One that a killed run left is written over."""
        path.unlink(missing_ok=True)
        try:
            with closing(sqlite3.connect(path)) as connection:
                yield cls(connection)
        finally:
            path.unlink(missing_ok=True)

    def keep(self, source: SourceFile) -> str | None:
        """Keep a file, or return the path of the one kept before that has the same text."""
        digest = hashlib.sha256(source.text.encode()).digest()
        found = self._connection.execute("SELECT path FROM sources WHERE digest = ?", (digest,)).fetchone()
        if found is not None:
            return str(found[0])
        row = (self.sources, source.path, digest, source.text)
        self._connection.execute("INSERT INTO sources VALUES (?, ?, ?, ?)", row)
        self.sources += 1
        return None

    def path(self, number: int) -> str:
        """Where a kept file, counted from 0, was read."""
        return self._of_source("path", number)

    def text(self, number: int) -> str:
        """The text of a kept file."""
        return self._of_source("text", number)

    def _of_source(self, column: str, number: int) -> str:
        asked = f"SELECT {column} FROM sources WHERE number = ?"  # noqa: S608  "path" or "text"
        return str(self._connection.execute(asked, (number,)).fetchone()[0])

    def add(self, drafts: Iterable[Draft]) -> int:
        """Keep documents but those whose text another one has; return how many these were.

        Different files share passages (a disclaimer, a letterhead). One text in two splits would be a leak, and
        joining the splits of all files that share one would leave nothing apart.

        Raises:
            InputError: one of that id is there.
        """
        repeated = 0
        for draft in drafts:
            digest = hashlib.sha256(normalise(draft.text).encode()).digest()
            if self._connection.execute("SELECT 1 FROM drafts WHERE digest = ?", (digest,)).fetchone():
                repeated += 1
                continue
            try:
                self._connection.execute("INSERT INTO drafts VALUES (?, ?, ?, ?, ?, ?, ?)", (*astuple(draft), digest))
            except sqlite3.IntegrityError as error:
                raise InputError(f"two documents would have the id {draft.id!r}; rename {draft.source}") from error
        return repeated

    def merge(self, cluster: str, into: str) -> None:
        """Move all documents of a cluster to another."""
        self._connection.execute("UPDATE drafts SET cluster = ? WHERE cluster = ?", (into, cluster))

    def counts(self) -> dict[str, Counts]:
        """Cluster → kind, in the order they came → number of documents. Clusters that count alike share a mapping."""
        counted = self._connection.execute(
            "SELECT cluster, kind, count(*) FROM drafts GROUP BY cluster, kind ORDER BY cluster, min(rowid)"
        )
        shared: dict[tuple[tuple[str, int], ...], Counts] = {}
        found: dict[str, Counts] = {}
        for cluster, rows in groupby(counted, key=itemgetter(0)):
            kinds = tuple((kind, number) for _, kind, number in rows)
            found[cluster] = shared.setdefault(kinds, dict(kinds))
        return found

    def documents(self, splits: Mapping[str, Split]) -> Iterator[Document]:
        """All documents in the order of their ids, each with the split of its cluster."""
        rows = self._connection.execute("SELECT id, title, text, kind, cluster, source FROM drafts ORDER BY id")
        for row in rows:
            draft = Draft(*row)
            yield draft.document(splits[draft.cluster])
