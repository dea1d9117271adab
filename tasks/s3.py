"""Folders in S3: a copy counts once its marker is there, and the marker is written last.

Objects of a folder lie under its URI by their relative names; the marker beside them names each file with its size and
SHA-256. A copy that broke off has no marker, and one whose objects were changed since fails its hashes: neither is
taken for whole. Credentials, region and AWS_ENDPOINT_URL come from the environment, retries are botocore's.
"""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Self

from pydantic import BaseModel, ValidationError

from tasks.artifacts import atomic_folder, sha256_of
from tasks.errors import CheckpointError, InputError, ParameterError, PipelineError

MARKER = "WHOLE.json"
PART_BYTES = 64 * 2**20  # S3 allows 10,000 parts: files of up to 640 GB
THREADS = 8  # parts at once
CONNECT_SECONDS = 10.0  # an attempt; botocore's own are 60, and it makes five
REMEDIES = {
    "NoSuchBucket": "create the bucket",
    "AccessDenied": "allow these keys to list, read, write and delete there",
    "InvalidAccessKeyId": "correct AWS_ACCESS_KEY_ID",
    "SignatureDoesNotMatch": "correct AWS_SECRET_ACCESS_KEY",
    "403": "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what they may do there",
    "NoCredentialsError": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "PartialCredentialsError": "set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
}
OTHERWISE = "check AWS_ENDPOINT_URL and the network, then run the same command again"

logger = logging.getLogger(__name__)


class FileEntry(BaseModel):
    """A file of a copied folder."""

    size: int  # bytes
    sha256: str


class Marker(BaseModel):
    """All files of a copied folder by their relative names."""

    files: dict[str, FileEntry]


@dataclass(frozen=True)
class Location:
    """A folder in a bucket; `prefix` has no slash at its end."""

    bucket: str
    prefix: str

    @classmethod
    def parse(cls, uri: str) -> Self:
        """Read s3://BUCKET/PREFIX.

        Raises:
            ParameterError: it is no such URI.
        """
        match = re.fullmatch(r"s3://([^/]+)/(.*[^/])/*", uri)
        if match is None:
            raise ParameterError(f"{uri!r} is no folder in S3; write s3://BUCKET/PREFIX")
        return cls(*match.groups())

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}"

    def key(self, name: str) -> str:
        """The key of a file in the folder."""
        return f"{self.prefix}/{name}"


def upload_folder(folder: Path, uri: str) -> None:
    """Copy all files of `folder` to `uri`, the marker last. A copy that was there is replaced, and not whole meanwhile.

    Raises:
        InputError: the folder has no files.
        PipelineError: S3 refused or could not be reached; `uri` holds no whole copy.
    """
    location = Location.parse(uri)
    files = {file.relative_to(folder).as_posix(): file for file in sorted(folder.rglob("*")) if file.is_file()}
    if not files:
        raise InputError(f"{folder} has no files to copy to {uri}; is the path right?")
    with explained(uri):
        client = connect()
        client.delete_object(Bucket=location.bucket, Key=location.key(MARKER))
        for name, file in files.items():
            client.upload_file(str(file), location.bucket, location.key(name), Config=transfer_options())
        marker = Marker(files={name: _entry(file) for name, file in files.items()})
        client.put_object(
            Bucket=location.bucket, Key=location.key(MARKER), Body=marker.model_dump_json(indent=2).encode()
        )


def remove(uri: str) -> None:
    """Remove everything under `uri`, markers first: what a kill leaves of it is never taken for whole.

    Raises:
        PipelineError: S3 refused or could not be reached.
    """
    location = Location.parse(uri)
    with explained(uri):
        client = connect()
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=location.bucket, Prefix=f"{location.prefix}/")
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
        for key in sorted(keys, key=lambda key: not key.endswith(f"/{MARKER}")):
            client.delete_object(Bucket=location.bucket, Key=key)


def download_latest(uri: str, folder: Path, wanted: Callable[[str], int | None]) -> str | None:
    """Restore the newest whole folder under `uri` into `folder`, under its own name, whole or not at all.

    `wanted` gives a folder's number by its name, None for one that is not meant; the highest number is the newest. A
    folder that fails its hashes is passed over with a warning. Returns the name, None when there is no whole one.

    Raises:
        CheckpointError: folders claim to be whole and none is.
        PipelineError: S3 refused or could not be reached.
    """
    location = Location.parse(uri)
    broken = []
    with explained(uri):
        client = connect()
        for name in _newest_first(_folders(client, location), wanted):
            source = Location(location.bucket, location.key(name))
            try:
                if _restore(client, source, folder / name):
                    return name
            except CheckpointError as error:
                logger.warning("%s; trying the one before it", error)
                broken.append(str(source))
    if broken:
        raise CheckpointError(f"{', '.join(broken)} changed since they were copied; remove them to start anew")
    return None


def _newest_first(names: list[str], wanted: Callable[[str], int | None]) -> list[str]:
    numbers = {name: number for name in names if (number := wanted(name)) is not None}
    return sorted(numbers, key=lambda name: numbers[name], reverse=True)


def _folders(client: Any, location: Location) -> list[str]:
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=location.bucket, Prefix=f"{location.prefix}/", Delimiter="/"
    )
    return [PurePosixPath(found["Prefix"]).name for page in pages for found in page.get("CommonPrefixes", [])]


def _restore(client: Any, source: Location, folder: Path) -> bool:
    """Whether there was a whole copy to restore."""
    marker = _read_marker(client, source)
    if marker is None:
        return False
    with atomic_folder(folder) as temporary:
        for name, entry in marker.files.items():
            _download(client, source, name, temporary / name)
            if _entry(temporary / name) != entry:
                raise CheckpointError(f"{source}/{name} is not the file that was uploaded")
    return True


def _read_marker(client: Any, source: Location) -> Marker | None:
    from botocore.exceptions import ClientError

    try:
        body = client.get_object(Bucket=source.bucket, Key=source.key(MARKER))["Body"].read()
        marker = Marker.model_validate_json(body)
    except ClientError as error:
        if error_code(error) in ("NoSuchKey", "404"):
            return None
        raise
    except ValidationError as error:
        raise CheckpointError(f"{source}/{MARKER} is no marker of ours") from error
    outside = [name for name in marker.files if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts]
    if outside:
        raise CheckpointError(f"{source}/{MARKER} names a file outside its folder: {outside[0]}")
    return marker


def _download(client: Any, source: Location, name: str, file: Path) -> None:
    from botocore.exceptions import ClientError

    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        client.download_file(source.bucket, source.key(name), str(file), Config=transfer_options())
    except ClientError as error:
        if error_code(error) in ("NoSuchKey", "404"):
            raise CheckpointError(f"{source}/{name} is missing") from error
        raise


def _entry(file: Path) -> FileEntry:
    return FileEntry(size=file.stat().st_size, sha256=sha256_of(file))


def connect() -> Any:
    """A client of the environment's endpoint. botocore retries what may pass: throttling, broken connections, 5xx."""
    import boto3
    from botocore.config import Config

    return boto3.Session().client("s3", config=Config(connect_timeout=CONNECT_SECONDS))


def transfer_options() -> Any:
    """Parts of large files, some at a time."""
    from boto3.s3.transfer import TransferConfig

    return TransferConfig(multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES, max_concurrency=THREADS)


@contextmanager
def explained(uri: str) -> Iterator[None]:
    """What boto3 raises, as one error with the URI and a remedy. Its messages hold no secrets."""
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (Boto3Error, BotoCoreError, ClientError) as error:
        cause = error.__context__ if isinstance(error, Boto3Error) and error.__context__ else error
        raise PipelineError(f"{uri}: {cause}; {REMEDIES.get(error_code(cause), OTHERWISE)}") from error


def error_code(error: BaseException) -> str:
    """S3's own code where it answered, else the name of the exception."""
    response = getattr(error, "response", None)
    return str(response["Error"]["Code"]) if response else type(error).__name__
