"""Prefect, MLflow and the recipe as a form to fill in, on this machine only: `python -m flows.serve`.

Three children: a Prefect server, the MLflow UI, and a runner that starts what is asked for in the Prefect UI.
Each leads a process group of its own and writes its log to .work/serve. They end together: on Ctrl-C, when
one of them ends, or when this process is killed. Imports neither Prefect nor MLflow, so that `--help` and
refusals are instant.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from flows.request import PipelineRequest
from tasks.cli import one_line_errors
from tasks.errors import PipelineError
from tasks.params import load_params

HOST = "127.0.0.1"
PREFECT_PORT = 4200
MLFLOW_PORT = 5000
DEPLOYMENT = "local"
LOGS = Path(".work/serve")
RUNS_PAGE = "#/experiments?workflowType=machine_learning"  # MLflow opens for prompts and traces otherwise
CHILD = Path(__file__).with_name("child.py")
START_SECONDS = 180  # the first start makes two databases, on a machine that may be busy
GRACE_SECONDS = 45  # the runner cancels its runs, which end their stages
ORPHAN_SECONDS = 15  # a stage has 10 to end
LAST_LINES = 15
QUIET = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_CLI_COLORS": "false",
    "DO_NOT_TRACK": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # a process of its own, for features not used here
    "PYTHONUNBUFFERED": "1",
}


class ServeError(PipelineError):
    """A port is taken, or a server did not start or ended."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until Ctrl-C; what a user can cause ends it with one line on stderr and code 2."""
    options = _parser().parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with one_line_errors():
        try:
            with _served(options.prefect_port, options.mlflow_port) as children:
                _wait_for_an_end(children)
        except KeyboardInterrupt:
            print("stopped")


def serve_flow(parent: int) -> None:
    """Offer the recipe as a deployment and run what is asked for, one run at a time. Runs in the runner.

    `parent` is the process that started it: one that dies while this is loading can no longer be asked for.
    """
    from prefect.types.entrypoint import EntrypointType

    from flows.post_training import post_training

    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    post_training.serve(
        name=DEPLOYMENT,
        parameters={"request": PipelineRequest().model_dump(mode="json")},
        limit=1,  # runs in place share the checkout
        print_starting_message=False,
        entrypoint_type=EntrypointType.MODULE_PATH,
    )


@contextmanager
def _served(prefect_port: int, mlflow_port: int) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Start the children and print where they are; they end, the runner first, when the block does."""
    store = load_params().tracking.uri
    prefect_port, mlflow_port = _free(prefect_port, "--prefect-port"), _free(mlflow_port, "--mlflow-port")
    prefect = f"http://{HOST}:{prefect_port}"
    environment = {
        **os.environ,
        **QUIET,
        "PREFECT_API_URL": f"{prefect}/api",
        "PREFECT_UI_URL": prefect,
        "PREFECT_SERVER_UI_API_URL": f"{prefect}/api",  # without it the UI in the browser calls port 4200
    }
    print("starting Prefect and MLflow …", flush=True)
    children: dict[str, subprocess.Popen[bytes]] = {}
    with ExitStack() as stack:

        def start(name: str, *command: str) -> None:
            children[name] = stack.enter_context(_child(name, command, environment))

        start("prefect", "-m", "prefect", "server", "start", "--host", HOST, "--port", str(prefect_port))
        if not store.startswith("http"):
            options = ["--host", HOST, "--port", str(mlflow_port), "--workers", "1"]
            start("mlflow", "-m", "mlflow", "ui", "--backend-store-uri", store, *options)
            _wait_until(lambda: _get(mlflow_port, "/health") is not None, children)
        _wait_until(lambda: _get(prefect_port, "/api/health") is not None, children)
        start("runner", "-c", f"from flows.serve import serve_flow; serve_flow({os.getpid()})")
        _wait_until(lambda: _deployment(prefect_port) is not None, children)
        form = f"{prefect}/deployments/deployment/{_deployment(prefect_port)}"
        print(f"Prefect   {prefect}")
        print(f"new run   {form}/run")
        runs = f"http://{HOST}:{mlflow_port}/{RUNS_PAGE}"
        print(f"MLflow    {runs if 'mlflow' in children else 'tracking.uri of params.yaml'}")
        print(f"logs      {LOGS}\nCtrl-C stops all of it.", flush=True)
        yield children


# ── children ──


@contextmanager
def _child(name: str, command: Sequence[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process in a group of its own that ends with the block or with this process."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with (LOGS / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(CHILD), str(os.getpid()), sys.executable, *command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask the leader, which ends its own children in order; kill what is left of the group."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an impatient Ctrl-C would leave the others half stopped
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _end_with(parent: int) -> None:
    """Watch the process that started the runner. When it was killed, the server is gone as well, and a runner
    that cannot report the end of its runs would wait for ever: end its group, runs included.
    """
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(0, signal.SIGTERM)
    time.sleep(ORPHAN_SECONDS)
    os.killpg(0, signal.SIGKILL)


def _wait_for_an_end(children: Mapping[str, subprocess.Popen[bytes]]) -> None:
    while True:
        _check(children)
        time.sleep(0.5)


def _wait_until(ready: Callable[[], bool], children: Mapping[str, subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        _check(children)
        if time.monotonic() > deadline:
            raise ServeError(f"no answer from {', '.join(children)} in {START_SECONDS} s; see the logs in {LOGS}")
        time.sleep(0.2)


def _check(children: Mapping[str, subprocess.Popen[bytes]]) -> None:
    """Show the last lines of a child that has ended.

    Raises:
        ServeError: one has.
    """
    for name, process in children.items():
        if process.poll() is not None:
            log = LOGS / f"{name}.log"
            last = log.read_text("utf-8", errors="replace").splitlines()[-LAST_LINES:]
            print(*last, sep="\n", file=sys.stderr)
            raise ServeError(f"{name} has ended with code {process.returncode}; its log is {log}")


# ── the network ──


def _free(port: int, option: str) -> int:
    """Return the port, or any free one for 0.

    Raises:
        ServeError: another process listens on it.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that ended do not count
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise ServeError(
                f"port {port} cannot be used ({error.strerror}); stop what uses it, or choose another: "
                f'make serve ARGS="{option} {port + 1}" (0 takes any free one)'
            ) from error
        return int(probe.getsockname()[1])


def _get(port: int, path: str) -> bytes | None:
    """The answer to a request on this machine, None unless it is good."""
    connection = HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.read() if answer.status == 200 else None
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


def _deployment(port: int) -> str | None:
    """The deployment's id while a runner polls for it, or did within the last minute (Prefect's READY)."""
    answer = _get(port, f"/api/deployments/name/post-training/{DEPLOYMENT}")
    found = json.loads(answer) if answer else {}
    return str(found["id"]) if found.get("status") == "READY" else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m flows.serve",
        description="Start Prefect and MLflow on this machine and offer the recipe as a form; Ctrl-C stops all.",
    )
    add = parser.add_argument
    add("--prefect-port", type=int, default=PREFECT_PORT, metavar="PORT", help=f"{PREFECT_PORT}; 0: any free one")
    add("--mlflow-port", type=int, default=MLFLOW_PORT, metavar="PORT", help=f"{MLFLOW_PORT}; 0: any free one")
    return parser


if __name__ == "__main__":
    main()
