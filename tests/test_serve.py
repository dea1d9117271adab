"""`make serve` in a scratch checkout: what it starts answers, and nothing of it outlives Ctrl-C."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest

from flows.serve import DEPLOYMENT, HOST, main
from tests.conftest import CHECKOUT

SECONDS = 200
ANNOUNCED = ("Prefect", "new run", "MLflow", "logs")


@pytest.fixture
def served(scratch: Path) -> Iterator[subprocess.Popen[str]]:
    """The command on free ports, with a Prefect home of its own; killed, should a test leave it running."""
    shutil.copy(CHECKOUT / "dvc.yaml", scratch)
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "flows.serve", "--prefect-port", "0", "--mlflow-port", "0"],
        cwd=scratch,
        env={**variables, "PYTHONPATH": str(CHECKOUT), "PREFECT_HOME": str(scratch / "prefect")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def handlers() -> Iterator[None]:
    """Give pytest its signal handlers back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def started(process: subprocess.Popen[str], count: int) -> list[psutil.Process]:
    """Wait for that many processes below `process`: Prefect, MLflow and MLflow's own server come first."""
    deadline = time.monotonic() + SECONDS
    while len(family := psutil.Process(process.pid).children(recursive=True)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return family


def announced(process: subprocess.Popen[str]) -> dict[str, str]:
    """Name and address, as printed, up to the last line of the announcement."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip())
        if line.startswith("Ctrl-C"):
            break
    found = {name: line.removeprefix(name).strip() for name in ANNOUNCED for line in lines if line.startswith(name)}
    assert set(found) == set(ANNOUNCED), "\n".join(lines)
    return found


def answer(url: str) -> bytes:
    with urlopen(url, timeout=30) as response:
        assert response.status == 200
        return bytes(response.read())


def ended(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=60)
    return not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def test_everything_answers_and_ends_with_ctrl_c(served):
    found = announced(served)
    prefect, mlflow = found["Prefect"], found["MLflow"]
    family = [psutil.Process(served.pid), *psutil.Process(served.pid).children(recursive=True)]
    assert len({os.getpgid(process.pid) for process in family}) == 4, "each child leads a group of its own"

    answer(f"{mlflow}/")
    assert json.loads(answer(f"{prefect}/ui-settings"))["api_url"] == f"{prefect}/api"
    deployment = json.loads(answer(f"{prefect}/api/deployments/name/post-training/{DEPLOYMENT}"))
    assert found["new run"] == f"{prefect}/deployments/deployment/{deployment['id']}/run"
    assert deployment["enforce_parameter_schema"]
    form = deployment["parameter_openapi_schema"]["definitions"]["PipelineRequest"]
    assert form["properties"].keys() == {"params", "overrides", "stages", "force"}
    assert not form["additionalProperties"]
    listening = {connection.laddr.ip for process in family for connection in process.net_connections("tcp")}
    assert listening == {HOST}

    served.send_signal(signal.SIGINT)
    assert served.wait(60) == 0
    assert ended(family)


def test_nothing_outlives_a_kill(served):
    family = started(served, 3)
    served.kill()
    served.wait()
    assert ended(family)


def test_a_child_that_ends_takes_all_along(served):
    family = started(served, 3)
    family[0].kill()
    output, _ = served.communicate(timeout=60)
    assert served.returncode == 2
    assert output.splitlines()[-1] == "ServeError: prefect has ended with code -9; its log is .work/serve/prefect.log"
    assert ended(family)


def test_a_runner_that_hangs_without_its_server_is_killed_with_its_runs(scratch):
    runner = (
        "import os, signal, subprocess, sys, time, flows.serve\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "flows.serve.ORPHAN_SECONDS = 0.1\n"
        "print(os.getpid(), subprocess.Popen(['sleep', '99']).pid, flush=True)\n"
        "time.sleep(1)\n"  # the parent is gone before anybody looks for it
        "flows.serve._end_with(int(sys.argv[1]))\n"
    )
    script = (
        "import os, subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', {runner!r}, str(os.getpid())], start_new_session=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    family = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
    parent.kill()
    parent.wait()
    assert ended(family)


@pytest.mark.parametrize("option", ["--prefect-port", "--mlflow-port"])
def test_a_taken_port_is_named_before_anything_starts(scratch, capsys, handlers, option):
    other = {"--prefect-port": "--mlflow-port", "--mlflow-port": "--prefect-port"}[option]
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit) as refusal:
            main([option, str(port), other, "0"])
    assert refusal.value.code == 2
    message = capsys.readouterr().err
    assert f"port {port} cannot be used (Address already in use)" in message
    assert f'make serve ARGS="{option} {port + 1}"' in message
    assert not Path(".work").exists()


def test_help_is_light():
    check = (
        "import runpy, sys\n"
        "sys.argv = ['x', '--help']\n"
        "try: runpy.run_module('flows.serve', run_name='__main__')\n"
        "except SystemExit as stopped: assert stopped.code == 0\n"
        "assert not {'prefect', 'dvc', 'torch', 'mlflow'} & sys.modules.keys()\n"
    )
    done = subprocess.run([sys.executable, "-c", check], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
