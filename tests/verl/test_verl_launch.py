"""A stage on a Ray of its own and as a job of a real Ray cluster, with commands of the test's instead of training."""

import asyncio
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import pytest

from tasks.rl.engines.verl.launch import _files_of_ray

pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("verl", "ray")), reason="needs pip install 'posttrain-flows[verl]'"
)

CHECKOUT = Path(__file__).parents[2]
PATIENCE_SECONDS = 120.0  # for what takes seconds


def until(condition: Callable[[], bool], what: str, process: "subprocess.Popen[bytes] | None" = None) -> None:
    """Wait; at once in vain when the process that should bring it about has ended."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        assert process is None or process.poll() is None, f"ended without {what}"
        time.sleep(0.1)


def start(arguments: list[str], log: Path, **variables: str) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONUNBUFFERED": "1", **variables}
    with log.open("wb") as output:
        return subprocess.Popen(arguments, env=environment, stdout=output, stderr=subprocess.STDOUT)


def ended(process: "subprocess.Popen[bytes]") -> int:
    return process.wait(PATIENCE_SECONDS)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# ── a Ray of its own ──

LOCAL = """
import os, sys, time
import ray
from omegaconf import OmegaConf
from tasks.cli import one_line_errors
from tasks.errors import DivergedError, PipelineError
from tasks.rl.engines.verl import launch

@ray.remote(max_retries=0)
def work(way):
    if way == "wait":
        print("worker", os.getpid(), flush=True)
        time.sleep(600)
    if way == "diverge":
        raise DivergedError("entropy is NaN")
    if way == "bug":
        raise ValueError("a bug")
    os._exit(1)

@ray.remote(max_retries=0)
def between(way):
    ray.get(work.remote(way))

def fail(way):
    try:
        with launch._one_error():
            ray.get(between.remote(way))
    except PipelineError as error:
        print(f"{way}: {type(error).__name__}: {error}", flush=True)

def train(config):
    if sys.argv[2] == "wait":
        ray.get(work.remote("wait"))
    for way in ("bug", "die"):
        fail(way)
    ray.get(between.remote("diverge"))

launch._train = train
launch.OURS = "json"  # only the start is on trial
sizes = {"num_cpus": 4, "include_dashboard": False, "object_store_memory": 100_000_000, "runtime_env": None}
trainer = {"device": "cuda", "default_local_dir": sys.argv[1], "checkpoint_callback_class": None}
config = {"trainer": trainer, "ray_kwargs": {"ray_init": sizes}}
with one_line_errors():
    launch.run_here(OmegaConf.create(config))
"""


def start_local(way: str, tmp_path: Path, log: Path) -> "subprocess.Popen[bytes]":
    home = tmp_path / "home"
    home.mkdir()
    script = tmp_path / "local.py"
    script.write_text(LOCAL)
    return start([sys.executable, str(script), str(tmp_path), way], log, HOME=str(home))


def test_what_fails_in_a_worker_is_one_error_of_its_kind_and_nothing_stays(tmp_path: Path) -> None:
    log = tmp_path / "log"
    _files_of_ray(tmp_path).mkdir()  # what a killed run left
    assert ended(start_local("fail", tmp_path, log)) == 2
    lines = log.read_text().splitlines()
    assert lines[-1] == "DivergedError: entropy is NaN"
    assert "bug: PipelineError: verl failed: ValueError: a bug" in lines
    assert any(line.startswith("die: PipelineError: verl failed: WorkerCrashedError: ") for line in lines)
    assert any("raise ValueError" in line for line in lines)  # the traceback of what is no user's error
    assert not _files_of_ray(tmp_path).exists()
    assert not list((tmp_path / "home").iterdir())


def test_workers_end_with_a_killed_stage(tmp_path: Path) -> None:
    log = tmp_path / "log"
    stage = start_local("wait", tmp_path, log)
    until(lambda: "worker " in log.read_text(), "the worker's line", stage)
    worker = int(log.read_text().split("worker ")[1].split()[0])
    stage.kill()
    ended(stage)
    until(lambda: not running(worker), "the end of the worker")
    shutil.rmtree(_files_of_ray(tmp_path))  # the next run of the stage would do it


def running(pid: int) -> bool:
    """A zombie has ended; nobody has asked how."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(") ")[2][0] != "Z"


# ── a job of a cluster ──

CLIENT = """
import sys
from pathlib import Path
from tasks.cli import one_line_errors
from tasks.rl.engines.verl.submit import StageJob, run_on_ray
address, fingerprint, folder, *arguments = sys.argv[1:]
with one_line_errors():
    run_on_ray(address, StageJob("stage1", fingerprint, Path(folder), arguments), (sys.executable, "-c"))
"""
WAIT = """
import pathlib, time
print("started")
while not pathlib.Path({flag!r}).exists():
    time.sleep(0.1)
print("over")
"""


class Cluster:
    """A head node with its dashboard, in a folder and on ports of its own, and clients of it."""

    def __init__(self, folder: Path) -> None:
        self.token = secrets.token_hex(32)
        self.dashboard = free_port()
        self.address = f"http://127.0.0.1:{self.dashboard}"
        ports = {
            name: free_port()
            for name in (
                "port",
                "dashboard-agent-listen-port",
                "dashboard-agent-grpc-port",
                "runtime-env-agent-port",
                "metrics-export-port",
                "ray-client-server-port",
            )
        }
        self.variables = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token, "RAY_USAGE_STATS_ENABLED": "0"}
        ray = "from ray.scripts.scripts import main; main()"
        self.process = start(
            [
                *(sys.executable, "-c", ray, "start", "--head", "--block", "--num-cpus=2", f"--temp-dir={folder}"),
                *("--object-store-memory=100000000", "--node-ip-address=127.0.0.1", "--dashboard-host=127.0.0.1"),
                *(f"--{name}={port}" for name, port in ports.items()),
                f"--dashboard-port={self.dashboard}",
            ],
            folder / "log",
            **self.variables,
        )

    def answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.dashboard)) == 0

    def client(self, folder: Path, code: str, fingerprint: str = "f") -> "tuple[subprocess.Popen[bytes], Path]":
        log = folder / f"log-{secrets.token_hex(4)}"
        client = [sys.executable, "-c", CLIENT, self.address, fingerprint, str(folder), code]
        return start(client, log, **self.variables), log


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = Path(f"/tmp/posttrain-test-{secrets.token_hex(4)}")  # short: Ray's sockets have at most 107 characters
    folder.mkdir()
    head = Cluster(folder)
    try:
        until(head.answers, "the dashboard", head.process)
        yield head
    finally:
        head.process.terminate()  # it ends its processes
        ended(head.process)
        shutil.rmtree(folder)


def test_a_failed_job_fails_the_stage_with_its_error_and_a_rerun_is_a_new_job(cluster: Cluster, tmp_path: Path) -> None:
    client, log = cluster.client(tmp_path, "import sys; print('step 1'); sys.exit('DivergedError: entropy is NaN')")
    assert ended(client) == 2
    first = log.read_text().splitlines()
    assert "step 1" in first
    assert first[-1].startswith("DivergedError: entropy is NaN (job rl-stage1-")
    assert first[-1].endswith("-1)")

    client, log = cluster.client(tmp_path, "import os; print('from', os.getcwd(), os.environ['PYTHONPATH'])")
    assert ended(client) == 0
    assert f"from {Path.cwd()} {Path.cwd()}" in log.read_text().splitlines()
    assert "-2 is submitted" in log.read_text()


def test_a_command_after_a_kill_follows_the_job_that_it_had_started(cluster: Cluster, tmp_path: Path) -> None:
    code = WAIT.format(flag=str(tmp_path / "flag"))
    client, log = cluster.client(tmp_path, code)
    until(lambda: "\nstarted" in log.read_text(), "the job's first line", client)
    client.kill()
    ended(client)

    busy, busy_log = cluster.client(tmp_path, code, fingerprint="other parameters")
    assert ended(busy) == 2
    assert busy_log.read_text().splitlines()[-1].startswith("StageBusyError: job rl-stage1-")

    client, log = cluster.client(tmp_path, code)
    until(lambda: "\nstarted" in log.read_text(), "the log from its beginning", client)
    (tmp_path / "flag").touch()
    assert ended(client) == 0
    assert "-1, which is running" in log.read_text()
    assert log.read_text().splitlines().count("over") == 1


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_stopping_the_stage_stops_its_job(cluster: Cluster, tmp_path: Path, how: signal.Signals) -> None:
    trace = tmp_path / "pid"
    client, log = cluster.client(tmp_path, f"import os, time\nopen({str(trace)!r}, 'w').write(str(os.getpid()))\n"
                                           "print('started')\ntime.sleep(600)")  # fmt: skip
    until(lambda: "\nstarted" in log.read_text(), "the job's first line", client)
    client.send_signal(how)
    assert ended(client) == 130
    assert "stage1: stopping job rl-stage1-" in log.read_text()
    assert not running(int(trace.read_text()))


def test_an_address_where_nothing_listens_is_refused(tmp_path: Path) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    assert_refused(address, tmp_path, "Connection refused")


def test_a_server_that_is_not_ray_is_refused(tmp_path: Path) -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *arguments: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Other)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        assert_refused(f"http://127.0.0.1:{server.server_port}", tmp_path, "")
    finally:
        server.shutdown()
        server.server_close()


def test_a_wrong_token_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    assert_refused(cluster.address, tmp_path, "uthenticat", RAY_AUTH_MODE="token", RAY_AUTH_TOKEN="0" * 64)


def assert_refused(address: str, folder: Path, reason: str, **variables: str) -> None:
    log = folder / "log"
    assert ended(start([sys.executable, "-c", CLIENT, address, "f", str(folder), "0"], log, **variables)) == 2
    [line] = log.read_text().splitlines()
    assert line.startswith(f"ParameterError: cluster.address = {address!r}: no Ray dashboard answers there")
    assert reason in line


# ── the log ──


class FlakyClient:
    """Each connection gives the log from its first line; the first one breaks."""

    def __init__(self) -> None:
        self.connections = 0

    async def tail_job_logs(self, job_id: str) -> AsyncIterator[str]:
        self.connections += 1
        yield "one\n"
        if self.connections == 1:
            yield "tw"
            raise RuntimeError("the connection broke")
        yield "two\nthree\n"


def test_a_broken_connection_repeats_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    from tasks.rl.engines.verl.submit import _Log

    log = _Log(FlakyClient(), "job")  # type: ignore[arg-type]
    with pytest.raises(RuntimeError):
        asyncio.run(log.follow())
    asyncio.run(log.follow())
    assert capsys.readouterr().out == "one\ntwo\nthree\n"


def test_a_job_is_known_by_stage_fingerprint_and_folder(tmp_path: Path) -> None:
    from tasks.rl.engines.verl.submit import StageJob

    job = StageJob("stage1", "f", tmp_path, ["a"])
    assert job.prefix == StageJob("stage1", "f", tmp_path, ["b"]).prefix
    others = [StageJob("stage2", "f", tmp_path, []), StageJob("stage1", "g", tmp_path, []),
              StageJob("stage1", "f", tmp_path / "b", [])]  # fmt: skip
    assert job.prefix not in {other.prefix for other in others}
