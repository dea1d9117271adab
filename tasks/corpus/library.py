"""The documents as a library on disk: fetched when asked for, found by their words. Nothing is held in memory.

One SQLite file holds the documents and, for each split, an FTS5 index over the normalised words of titles and texts
(tasks/corpus/names.py). Its tokenizer splits them at their spaces only, so that a phrase found in the index is exactly
what `mentions` finds in the text; and what is near in one split does not depend on the others.
"""

import fcntl
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Self, get_args

from tasks.artifacts import WORK, atomic_file, sha256_of, stream_documents
from tasks.corpus.names import words
from tasks.errors import InputError
from tasks.records import Document, DocumentKind, Split

SPLITS: tuple[Split, ...] = get_args(Split)
FOLDER = WORK / "library"
MAX_TERMS = 32  # of a query, the rarest
MAX_POSTINGS = 20_000  # documents that a query's terms may have together: a bound on its time in a large library
COLUMNS = ("id", "title", "kind", "cluster", "split", "source")

_TABLES = """
CREATE TABLE documents (number INTEGER PRIMARY KEY, id TEXT UNIQUE, title, kind, cluster, split, source);
CREATE TABLE texts (number INTEGER PRIMARY KEY, text);
"""
_INDEX = """
CREATE VIRTUAL TABLE words_{0} USING fts5(title, text, content='', tokenize="ascii tokenchars '_'");
CREATE VIRTUAL TABLE vocabulary_{0} USING fts5vocab(words_{0}, row);
"""
_FREQUENCIES = """
INSERT INTO words_{0}(words_{0}) VALUES ('optimize');
CREATE TABLE frequencies_{0} (term PRIMARY KEY, documents) WITHOUT ROWID;
INSERT INTO frequencies_{0} SELECT term, doc FROM vocabulary_{0};
"""


@dataclass(frozen=True)
class Label:
    """What distractors are compared by before their text is fetched."""

    kind: DocumentKind
    cluster: str


class Library(Mapping[str, Document]):
    """Documents by id, in the order they were written. Many processes may read one; it can be sent to another."""

    def __init__(self, connection: sqlite3.Connection, files: tuple[Path, Path] | None = None) -> None:
        self._connection = connection
        self._files = files  # index and parquet file, of one that was opened
        self._ids: dict[Split, tuple[str, ...]] = {}

    @classmethod
    def open(cls, parquet: Path) -> Self:
        """Open the library of a file that `document_writer` wrote; its index is built once.

        Raises:
            InputError: the file is missing, unreadable, or names a document twice.
        """
        index = FOLDER / f"{sha256_of(parquet)}.sqlite"
        return cls._read(index, parquet)

    @classmethod
    def _read(cls, index: Path, parquet: Path) -> Self:
        _ensure(index, parquet)
        connection = sqlite3.connect(f"{index.absolute().as_uri()}?immutable=1", uri=True, check_same_thread=False)
        return cls(connection, (index.absolute(), parquet.absolute()))

    @classmethod
    def of(cls, documents: Iterable[Document]) -> Self:
        """A library in memory, for tests and small things."""
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        _fill(connection, documents)
        return cls(connection)

    def __reduce__(self) -> tuple[Callable[[Path, Path], Self], tuple[Path, Path]]:
        """Another process opens the same files; on another machine the index is built again."""
        if self._files is None:
            raise TypeError("a library in memory cannot be sent to another process; write its documents and open them")
        return type(self)._read, self._files

    def __getitem__(self, name: str) -> Document:
        for document in self._documents("WHERE id = ?", (name,)):
            return document
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for (name,) in self._connection.execute("SELECT id FROM documents ORDER BY number"))

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM documents").fetchone()[0])

    def __contains__(self, name: object) -> bool:
        return self._connection.execute("SELECT 1 FROM documents WHERE id = ?", (name,)).fetchone() is not None

    def label(self, name: str) -> Label:
        """Kind and cluster of a document, without its text.

        Raises:
            KeyError: there is no such document.
        """
        row = self._connection.execute("SELECT kind, cluster FROM documents WHERE id = ?", (name,)).fetchone()
        if row is None:
            raise KeyError(name)
        return Label(*row)

    def ids(self, split: Split) -> tuple[str, ...]:
        """The ids of a split, in order."""
        if split not in self._ids:
            found = self._connection.execute("SELECT id FROM documents WHERE split = ? ORDER BY number", (split,))
            self._ids[split] = tuple(name for (name,) in found)
        return self._ids[split]

    def stream(self, split: Split | None = None) -> Iterator[Document]:
        """All documents, or those of a split, one after the other."""
        if split is None:
            return self._documents("ORDER BY number", ())
        return self._documents("WHERE split = ? ORDER BY number", (split,))

    def nearest(self, text: str, split: Split, number: int) -> list[str]:
        """Ids of the documents of a split that share telling words with `text`: BM25, best first, ties by id.

        A long text is asked for by its rarest words. Without a word that the split knows nothing is near.
        """
        terms = self._telling(text, split)
        if not terms:
            return []
        found = self._connection.execute(
            f"SELECT id FROM words_{split} JOIN documents ON number = words_{split}.rowid "  # noqa: S608  a Split
            f"WHERE words_{split} MATCH ? ORDER BY bm25(words_{split}), id LIMIT ?",
            (" OR ".join(map(_quoted, terms)), number),
        )
        return [name for (name,) in found]

    def mentioning(self, name: str, split: Split) -> frozenset[str]:
        """Ids of the documents of a split whose text mentions the name as `names.mentions` says."""
        phrase = words(name).strip()
        if not phrase:
            return frozenset()
        found = self._connection.execute(
            f"SELECT id FROM words_{split} JOIN documents ON number = words_{split}.rowid "  # noqa: S608  a Split
            f"WHERE words_{split} MATCH ?",
            (f"text : {_quoted(phrase)}",),
        )
        return frozenset(name for (name,) in found)

    def _documents(self, condition: str, values: tuple[str, ...]) -> Iterator[Document]:
        found = self._connection.execute(
            f"SELECT {', '.join(COLUMNS)}, text FROM documents JOIN texts USING (number) {condition}",  # noqa: S608
            values,
        )
        for row in found:
            yield Document(**dict(zip((*COLUMNS, "text"), row, strict=True)))

    def _telling(self, text: str, split: Split) -> list[str]:
        """The rarest words of a text that the split knows, as many as the bounds allow, one at least."""
        asked = "SELECT documents FROM frequencies_{} WHERE term = ?".format(split)  # noqa: S608, UP032  a Split
        known = []
        for term in sorted(set(words(text).split())):
            row = self._connection.execute(asked, (term,)).fetchone()
            if row is not None:
                known.append((int(row[0]), term))
        chosen: list[str] = []
        postings = 0
        for frequency, term in sorted(known)[:MAX_TERMS]:
            postings += frequency
            if chosen and postings > MAX_POSTINGS:
                break
            chosen.append(term)
        return chosen


def _quoted(term: str) -> str:
    """A string in FTS5's language: no word is an operator then."""
    return f'"{term}"'  # normalised words hold no quotes


def _ensure(index: Path, parquet: Path) -> None:
    """Build the index unless it is there; who comes while another builds it waits."""
    index.parent.mkdir(parents=True, exist_ok=True)
    with (index.parent / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if index.exists():
            return
        with atomic_file(index) as temporary, closing(sqlite3.connect(temporary)) as connection:
            connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")  # renamed when whole
            _fill(connection, stream_documents(parquet))


def _fill(connection: sqlite3.Connection, documents: Iterable[Document]) -> None:
    connection.executescript(_TABLES + "".join(_INDEX.format(split) for split in SPLITS))
    for number, document in enumerate(documents):
        about = (getattr(document, column) for column in COLUMNS)
        try:
            connection.execute("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)", (number, *about))
        except sqlite3.IntegrityError as error:
            raise InputError(f"two documents have the id {document.id!r}; run ingest again") from error
        connection.execute("INSERT INTO texts VALUES (?, ?)", (number, document.text))
        connection.execute(
            f"INSERT INTO words_{document.split} (rowid, title, text) VALUES (?, ?, ?)",  # noqa: S608  a Split
            (number, words(document.title), words(document.text)),
        )
    connection.executescript("".join(_FREQUENCIES.format(split) for split in SPLITS))
    connection.commit()
