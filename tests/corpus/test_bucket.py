"""Documents from a real S3 server."""

from pathlib import Path
from typing import Any

import pytest

from tasks.corpus import readers, sources
from tasks.corpus.sources import entries
from tasks.errors import InputError, PipelineError
from tests.corpus.files import pdf_bytes, read_all
from tests.test_s3 import BUCKET, Server, root, server  # noqa: F401 fixtures


@pytest.fixture
def bucket(server: Server, root: str) -> Any:  # noqa: F811
    client = server.client

    def put(name: str, data: bytes) -> None:
        client.put_object(Bucket=BUCKET, Key=f"{root.removeprefix(f's3://{BUCKET}/')}/{name}", Body=data)

    return put


def test_a_prefix_is_read_object_by_object(
    bucket: Any,
    root: str,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bucket("a/one.txt", b"One")
    bucket("b.pdf", pdf_bytes(["The capital of France is Paris."]))
    bucket("c.csv", b"name,n\nx,1\n")
    bucket("d.zip", b"PK")
    bucket("e.md", b"")
    bucket("f.txt", b"x" * 5000)
    bucket("ü x+.txt", b"Odd")
    monkeypatch.setattr(readers, "MAX_BYTES", 4096)
    monkeypatch.setattr(sources.tempfile, "tempdir", str(tmp_path))
    reading, files = read_all(f"{root}/")
    assert [(file.path, file.text) for file in files] == [
        ("a/one.txt", "One"),
        ("b.pdf", "The capital of France is Paris."),
        ("c.csv", "name,n\nx,1"),
        ("ü x+.txt", "Odd"),
    ]
    assert {skipped.path: skipped.reason for skipped in reading.skipped} == {
        "d.zip": "not a format that is read: .zip",
        "e.md": "empty",
        "f.txt": "5,000 bytes; at most 4,096 are read: split it",
    }
    assert list(tmp_path.glob("corpus-*")) == []  # no copy outlives its reading


def test_a_prefix_is_a_folder_or_the_begin_of_names(bucket: Any, root: str) -> None:  # noqa: F811
    for name in ("part-1/a.txt", "part-2/a.txt", "other/a.txt"):
        bucket(name, b"x")
    assert [entry.name for entry in entries(f"{root}/part-")] == ["part-1/a.txt", "part-2/a.txt"]
    assert [entry.name for entry in entries(f"{root}/part-1/")] == ["a.txt"]
    assert [entry.name for entry in entries(f"{root}/part-1")] == ["part-1/a.txt"]


def test_an_object_that_went_away_is_listed(bucket: Any, root: str, server: Server) -> None:  # noqa: F811
    bucket("a.txt", b"One")
    bucket("b.txt", b"Two")
    listed = entries(root)
    first = next(listed)
    prefix = root.removeprefix(f"s3://{BUCKET}/")
    server.client.delete_object(Bucket=BUCKET, Key=f"{prefix}/a.txt")
    with pytest.raises(InputError, match=r"a\.txt"), first.local():
        pass
    with next(listed).local() as path:
        assert path.read_bytes() == b"Two"


def test_what_concerns_the_whole_bucket_ends_the_run(root: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    with pytest.raises(PipelineError, match="create the bucket"):
        read_all("s3://no-such-bucket/x")
    with pytest.raises(InputError, match="it is empty"):
        read_all(f"{root}/nothing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(PipelineError, match="correct AWS_SECRET_ACCESS_KEY"):
        read_all(root)
