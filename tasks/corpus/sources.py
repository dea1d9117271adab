"""Where documents come from: a folder, a glob, or a prefix in S3. Files are listed one by one, none is opened here."""

import glob
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks import s3
from tasks.errors import InputError, ParameterError, PipelineError

S3 = "s3://"
LEFT_OUT = {  # folders whose files are not the project's own
    **dict.fromkeys((".git", ".hg", ".svn"), "version control's own files"),
    **dict.fromkeys(("__pycache__", "node_modules", ".venv", "venv", ".tox"), "installed or generated, not written"),
}
ONE_OBJECT = {
    "404",
    "NoSuchKey",
    "403",
    "AccessDenied",
    "InvalidObjectState",
}  # S3's answers that fault an object alone
REMEDY = "name a folder, a glob or an s3:// prefix"


@dataclass(frozen=True)
class Entry:
    """A file: its name below the source, its size in bytes, and how to get it while it is read.

    `refusal`: why it cannot be a document, or empty. `local` raises InputError where the file cannot be had.
    """

    name: str
    size: int
    local: Callable[[], AbstractContextManager[Path]]
    refusal: str = ""


def entries(source: str) -> Iterator[Entry]:
    """List a source in the order of its names.

    Raises:
        InputError: the folder is missing or unreadable, or a glob matches no file.
        PipelineError: S3 refused or could not be reached.
    """
    if source.startswith(S3):
        return _objects(source)
    if glob.has_magic(source) and not Path(source).exists():
        return _matches(source)
    return _folder(Path(source))


def _folder(folder: Path) -> Iterator[Entry]:
    try:
        os.listdir(folder)
    except FileNotFoundError as error:
        raise InputError(f"corpus.folder = {folder} does not exist; {REMEDY}") from error
    except OSError as error:
        raise InputError(f"corpus.folder = {folder} cannot be read ({error.strerror}); {REMEDY}") from error
    for path in _walk(folder):
        yield _entry(path, path.relative_to(folder))


def _walk(folder: Path) -> Iterator[Path]:
    """Files, links to folders, and folders that are left out or cannot be listed, in the order of their names."""
    try:
        names = sorted(os.listdir(folder), key=_printable)
    except OSError:
        yield folder
        return
    for name in names:
        path = folder / name
        if os.path.isdir(path) and not path.is_symlink() and name not in LEFT_OUT:
            yield from _walk(path)
        else:
            yield path


def _entry(path: Path, name: Path) -> Entry:
    try:
        size = path.stat().st_size
        refusal = _refusal(path)
    except OSError as error:
        size, refusal = 0, f"cannot be read: {error.strerror}"
    return Entry(_printable(name.as_posix()), size, lambda: nullcontext(path), refusal)


def _refusal(path: Path) -> str:
    if path.is_dir():
        if path.is_symlink():
            return "a link to a folder"
        return LEFT_OUT.get(path.name, "a folder that cannot be listed")
    return "" if path.is_file() else "neither file nor folder"


def _printable(name: str) -> str:
    """Names need not be UTF-8; what is not becomes "\\xNN"."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _matches(pattern: str) -> Iterator[Entry]:
    root = _root(pattern)
    found = {str(Path(match)) for match in glob.iglob(pattern, recursive=True) if not Path(match).is_dir()}
    if not found:
        raise InputError(f"corpus.folder = {pattern} matches no file; {REMEDY}")
    for path in map(Path, sorted(found, key=lambda name: Path(name).parts)):
        yield _entry(path, path.relative_to(root))


def _root(pattern: str) -> Path:
    """The folders before the first one with a wildcard."""
    parts = Path(pattern).parts
    fixed = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    return Path(*parts[:fixed])


def _objects(uri: str) -> Iterator[Entry]:
    """Objects of a prefix; each lies in a temporary file only while it is read."""
    match = re.fullmatch(r"s3://([^/]+)(?:/(.*))?", uri)
    if match is None:
        raise ParameterError(f"corpus.folder = {uri!r} is no place in S3; write s3://BUCKET/PREFIX")
    bucket, prefix = match[1], match[2] or ""
    with s3.explained(uri):
        client = s3.connect()
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            for found in page.get("Contents", []):
                if not found["Key"].endswith("/"):  # a folder's mark
                    yield _object(client, bucket, prefix, found)


def _object(client: Any, bucket: str, prefix: str, found: dict[str, Any]) -> Entry:
    key = found["Key"]
    name = key[prefix.rfind("/") + 1 :]  # distinct whether the prefix ends a folder's name or within one
    return Entry(name, found["Size"], lambda: _downloaded(client, bucket, key))


@contextmanager
def _downloaded(client: Any, bucket: str, key: str) -> Iterator[Path]:
    from botocore.exceptions import ClientError

    with tempfile.TemporaryDirectory(prefix="corpus-") as folder:
        path = Path(folder) / "object"
        try:
            with s3.explained(f"{S3}{bucket}/{key}"):
                client.download_file(bucket, key, str(path), Config=s3.transfer_options())
        except PipelineError as error:
            cause = error.__cause__
            if isinstance(cause, ClientError) and s3.error_code(cause) in ONE_OBJECT:
                raise InputError(str(error)) from error
            raise
        yield path
