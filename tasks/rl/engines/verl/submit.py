"""Run an RL stage as a job of a Ray cluster: submit or find it, follow its log, stop it on Ctrl-C, take its result.

The cluster sees the checkout under the same path (a shared file system): the job reads its data and writes its resume
points there. Who the job is follows from the stage, its fingerprint and its folder, and the cluster knows which of its
jobs run: so a command that is started again after it was killed finds the job it had started, and no file says which.
"""

import asyncio
import hashlib
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.errors import ParameterError, PipelineError, StageBusyError

if TYPE_CHECKING:
    from ray.dashboard.modules.job.pydantic_models import JobDetails
    from ray.job_submission import JobSubmissionClient

COMMAND = ("python", "-m", "tasks.rl.engines.verl.job")
ANSWER_SECONDS = 10.0  # for an address to answer at all
POLL_SECONDS = 1.0
PATIENCE = 300  # polls that may fail in a row before we give up on the cluster; its job goes on
STOP_POLLS = 60  # Ray kills a job within seconds if it does not end by itself


@dataclass(frozen=True)
class StageJob:
    """An RL stage as a job. `folder` is the stage's work folder: two jobs must not write there at once."""

    name: str
    fingerprint: str
    folder: Path
    arguments: Sequence[str]

    @property
    def prefix(self) -> str:
        """What the ids of all attempts at this job begin with; not those of another checkout's."""
        identity = f"{self.fingerprint} {self.folder.resolve()}"
        return f"rl-{self.name}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}-"

    @property
    def metadata(self) -> dict[str, str]:
        """What the cluster keeps with the job; it finds the jobs of a folder by it."""
        return {"stage": self.name, "fingerprint": self.fingerprint, "folder": str(self.folder.resolve())}


def run_on_ray(address: str, job: StageJob, command: Sequence[str] = COMMAND) -> None:
    """Train on the cluster at `address` until the job ends. SIGTERM and Ctrl-C stop the job.

    Raises:
        ParameterError: nothing that is Ray answers at `address`.
        StageBusyError: a job with other parameters or data is training in the stage's folder.
        PipelineError: the job failed or was stopped, or the cluster cannot be reached any more.
    """
    client = connect(address)
    with _terminable():
        try:
            job_id = _find_or_submit(client, job, command)
            _follow(client, job_id)
        except KeyboardInterrupt:
            _stop(client, job)
            raise
    _raise_unless_succeeded(client, job_id)


def connect(address: str) -> "JobSubmissionClient":
    """A client of Ray's Jobs API.

    Raises:
        ParameterError: nothing that is Ray answers at `address`.
    """
    import requests
    from ray.exceptions import RayError
    from ray.job_submission import JobSubmissionClient

    try:
        requests.get(f"{address}/api/version", timeout=ANSWER_SECONDS)  # Ray's own client would wait for minutes
        return JobSubmissionClient(address)
    except (requests.RequestException, RayError, OSError, RuntimeError, ValueError, KeyError) as error:
        raise ParameterError(
            f"cluster.address = {address!r}: no Ray dashboard answers there ({error}); start the cluster, correct the "
            "address (http://HOST:8265), or set it to null to train on this machine"
        ) from error


# ── submitting and finding ──


def _find_or_submit(client: "JobSubmissionClient", job: StageJob, command: Sequence[str]) -> str:
    jobs = client.list_jobs()
    running = _running_in(job.folder, jobs)
    if running is None:
        return _submit(client, job, command, attempt=1 + sum(_is_attempt(job, known) for known in jobs))
    if not _is_attempt(job, running):
        raise StageBusyError(
            f"job {running.submission_id} of the cluster is training {job.name} in {job.folder} with other parameters "
            f"or data; wait for it, or stop it: ray job stop --address {client.get_address()} {running.submission_id}"
        )
    print(f"{job.name}: following job {running.submission_id}, which is {running.status.lower()}", flush=True)
    return str(running.submission_id)


def _running_in(folder: Path, jobs: Sequence["JobDetails"]) -> "JobDetails | None":
    own = [known for known in jobs if (known.metadata or {}).get("folder") == str(folder.resolve())]
    return next((known for known in own if not known.status.is_terminal()), None)


def _is_attempt(job: StageJob, known: "JobDetails") -> bool:
    return (known.submission_id or "").startswith(job.prefix)


def _submit(client: "JobSubmissionClient", job: StageJob, command: Sequence[str], attempt: int) -> str:
    checkout = str(Path.cwd())
    try:
        job_id = client.submit_job(
            entrypoint=f"cd {shlex.quote(checkout)} && exec {shlex.join([*command, *job.arguments])}",
            submission_id=f"{job.prefix}{attempt}",
            metadata=job.metadata,
            runtime_env={"env_vars": {"PYTHONPATH": checkout, "PYTHONUNBUFFERED": "1"}},  # no secrets: Ray shows them
            entrypoint_num_cpus=1,  # on a node with room: a cluster's head often has none
        )
    except RuntimeError as error:
        raise PipelineError(f"{job.name}: the cluster takes no job: {error}") from error
    print(f"{job.name}: job {job_id} is submitted to {client.get_address()}", flush=True)
    return str(job_id)


# ── following ──


class _Log:
    """Prints a job's log once. A new connection gets it from its first line again."""

    def __init__(self, client: "JobSubmissionClient", job_id: str) -> None:
        self._client = client
        self._job_id = job_id
        self._printed = 0  # characters

    async def follow(self) -> None:
        """Print until the job ends or the connection does."""
        received = 0
        async for text in self._client.tail_job_logs(self._job_id):
            sys.stdout.write(text[max(0, self._printed - received) :])
            sys.stdout.flush()
            received += len(text)
            self._printed = max(self._printed, received)


def _follow(client: "JobSubmissionClient", job_id: str) -> None:
    """Print the log until the job has ended, over as many connections as it takes.

    Raises:
        PipelineError: the cluster did not answer for `PATIENCE` polls; the job may go on.
    """
    import aiohttp

    log, failures = _Log(client, job_id), 0
    while True:
        try:
            asyncio.run(log.follow())
            if client.get_job_status(job_id).is_terminal():
                return
            failures = 0
        except (aiohttp.ClientError, OSError, RuntimeError) as error:
            failures += 1
            if failures == PATIENCE:
                raise PipelineError(
                    f"the cluster no longer answers ({error}); job {job_id} may go on there: run the same command to "
                    "follow it again"
                ) from error
        time.sleep(POLL_SECONDS)


def _raise_unless_succeeded(client: "JobSubmissionClient", job_id: str) -> None:
    """The last line of a failed job's log is its error: one of ours keeps its type."""
    info = client.get_job_info(job_id)
    if info.status == "SUCCEEDED":
        return
    if info.status == "STOPPED":
        raise PipelineError(f"job {job_id} was stopped on the cluster; run the same command to continue")
    lines = [line for line in (info.message or "").splitlines() if line.strip()] or ["without a message"]
    name, _, message = lines[-1].partition(": ")
    ours: list[type[PipelineError]] = [PipelineError, *PipelineError.__subclasses__()]
    for kind in ours:
        if kind.__name__ == name:
            raise kind(f"{message} (job {job_id})")
    raise PipelineError(f"job {job_id} failed: {lines[-1]}; its whole log: ray job logs {job_id}")


# ── stopping ──


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM as Ctrl-C, so that whoever stops the stage stops its job too."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(client: "JobSubmissionClient", job: StageJob) -> None:
    """Stop the job and wait until it has: the next attempt must not find it writing."""
    for _ in range(STOP_POLLS):
        running = _running_in(job.folder, client.list_jobs())
        if running is None or not _is_attempt(job, running):
            return
        print(f"{job.name}: stopping job {running.submission_id}", file=sys.stderr, flush=True)
        client.stop_job(str(running.submission_id))
        time.sleep(POLL_SECONDS)
