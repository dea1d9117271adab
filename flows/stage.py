"""The one task of all flows: bring one DVC stage up to date, stream its log, publish its results.

`dvc repro --single-item STAGE` decides whether there is anything to do. DVC commands wait for each other; a
lock file that a killed DVC left unreadable is repaired when no DVC is alive. The stage dies with the flow.
"""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from prefect import get_run_logger, task
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.artifacts import publish
from flows.checkout import Run
from flows.locks import LockTrouble, dvc_processes, lock_trouble, repair_lock
from tasks.errors import PipelineError, StageBusyError

CHILD = Path(__file__).with_name("child.py")
LAST_LINES = 25
WAITS = (1, 2, 4, 8, 15, 30, 60, 60, 60, 60)  # seconds between tries while DVC holds the stage elsewhere
GRACE_SECONDS = 10
HINTS = ("To track the changes", "\tgit add", "To enable auto staging", "\tdvc config", "Use `dvc push`")
PIPELINE_VARIABLE = "POSTTRAIN_PIPELINE_RUN"  # tasks/tracking.py finds the parent run by it


class StageFailedError(PipelineError):
    """A stage's command ended with an error; the message ends with the last lines it printed."""


@task(task_run_name="{stage}")
def reproduce(stage: str, run: Run) -> State[None]:
    """Bring `stage` up to date in `run.folder`; only trouble with DVC's locks is tried again.

    Raises:
        StageFailedError: the stage failed; its last lines are in the message.
        StageBusyError: another live DVC command kept the stage, or a lock, for too long.
    """
    if not run.wants(stage):
        return Completed(name="Skipped", message=f"{stage} was not asked for")
    for wait in WAITS:
        code, lines = _dvc_repro(stage, run)
        if code == 0:
            publish(stage, run.folder)
            return Completed(message=f"{stage} is up to date")
        trouble = lock_trouble(run.folder, lines)
        if trouble is LockTrouble.NONE:
            raise StageFailedError(_report(f"stage {stage} failed with exit code {code}; its last lines", lines))
        others = dvc_processes(run.folder)
        if trouble is LockTrouble.BROKEN and not others:
            get_run_logger().warning(repair_lock(run.folder))
            continue
        get_run_logger().warning("DVC's lock is held (by process %s); trying again in %d s", others, wait)
        time.sleep(wait)
    raise StageBusyError(_report(f"stage {stage} is still held by another process; end it or wait", lines))


def _report(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *lines])


def _dvc_repro(stage: str, run: Run) -> tuple[int, list[str]]:
    """Run DVC, log its output line by line; return its exit code and last lines."""
    command = [sys.executable, "-m", "dvc", "--wait-for-lock", "repro", "--single-item", stage]
    logger = get_run_logger()
    last: deque[str] = deque(maxlen=LAST_LINES)
    with _process([*command, "--force"] if run.force else command, run) as process:
        assert process.stdout is not None
        for line in process.stdout:
            text = line.rstrip()
            if text and not text.startswith(HINTS):
                last.append(text)
                logger.info("%s", text)
        return process.wait(), list(last)


@contextmanager
def _process(command: list[str], run: Run) -> Iterator[subprocess.Popen[str]]:
    """A process in a group of its own, which ends with the block, however that ends, or with this process."""
    process = subprocess.Popen(
        [sys.executable, str(CHILD), str(os.getpid()), *command],
        cwd=run.folder,
        env=_environment(run),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    try:
        yield process
    finally:
        _end_group(process)


def _environment(run: Run) -> dict[str, str]:
    """`python` in a stage's command is this interpreter; its output is not held back in a buffer."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1", PIPELINE_VARIABLE: run.name}


def _end_group(process: subprocess.Popen[str]) -> None:
    """End what is left of the group: a killed DVC leaves its stage behind, which would go on writing."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        _wait_for_group(process)
    process.wait()


def _wait_for_group(process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < deadline:
        process.poll()  # a zombie leader would keep the group alive
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
