"""MLflow runs of stages: one parent run a pipeline run, one child run a stage, one batched write a step.

Who is the parent. A pipeline run has a name: the environment's POSTTRAIN_PIPELINE_RUN, which a flow sets to
any text of its own, or else `params-<hash>`: stages run by `dvc repro` alone, or by hand, belong together
when they share their parameters. The parent run carries that name as a tag; whichever stage comes first makes
it. So flows need not import MLflow, and no state lies outside the store.

What is continued. A stage that was killed or failed leaves its run's id in `.work/<stage>/run_id`; the next
start with the same parameters continues that run, found by id (names repeat). MLflow takes seconds to import:
on use only.
"""

import fcntl
import hashlib
import json
import logging
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tasks.artifacts import WORK, sha256_of, write_text
from tasks.errors import ParameterError
from tasks.params import Params

if TYPE_CHECKING:
    from mlflow import MlflowClient

PIPELINE_VARIABLE = "POSTTRAIN_PIPELINE_RUN"
PIPELINE_TAG = "posttrain.pipeline"
PARENT_TAG = "mlflow.parentRunId"
LONGEST_PARAM = 500  # characters; MLflow cuts at 6,000 without a word, its UI shows some hundreds
LONGEST_NAME = 250  # characters of a metric or parameter name
PARAMS_PER_BATCH = 100  # the store's limit
logger = logging.getLogger(__name__)


class Tracker(Protocol):
    """Where a stage reports what it measures. A failed report is a warning, never the end of a stage."""

    run_id: str | None
    non_finite: int  # values that were NaN or infinite and therefore not written

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Write one step in one batch; NaN and infinity are left out and counted (metric `non_finite`)."""

    def log_summary(self, metrics: Mapping[str, float]) -> None:
        """Write figures that speak for the whole pipeline: to this run and to its parent, where runs compare."""

    def log_params(self, params: Mapping[str, object]) -> None:
        """Write parameters. A value already there stays; another one becomes the tag `changed.<name>`."""

    def log_artifact(self, path: Path) -> None:
        """Keep a copy of a file or folder with the run."""

    def log_dataset(self, path: Path, name: str) -> None:
        """Record a file or folder as input `name`; the tag `sha256.<name>` holds its whole content hash."""


@dataclass
class NullTracker:
    """The test double: keeps what was reported in memory."""

    run_id: str | None = None
    non_finite: int = 0
    steps: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    params: dict[str, object] = field(default_factory=dict)
    artifacts: list[Path] = field(default_factory=list)
    datasets: dict[str, Path] = field(default_factory=dict)

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        finite, dropped = split_finite(metrics)
        self.non_finite += dropped
        self.steps.append((step, finite))

    def log_summary(self, metrics: Mapping[str, float]) -> None:
        self.log_metrics(metrics, step=0)

    def log_params(self, params: Mapping[str, object]) -> None:
        self.params = {**params, **self.params}

    def log_artifact(self, path: Path) -> None:
        self.artifacts.append(path)

    def log_dataset(self, path: Path, name: str) -> None:
        self.datasets[name] = path


@dataclass
class MlflowTracker:
    """Reports to one run of an MLflow store."""

    client: "MlflowClient"
    run_id: str | None
    non_finite: int = 0

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        from mlflow.entities import Metric

        finite, dropped = split_finite(metrics)
        self.non_finite += dropped
        if dropped:
            finite["non_finite"] = float(dropped)
        now = int(time.time() * 1000)
        names = safe_names(finite)
        batch = [Metric(names[name], value, now, step) for name, value in finite.items()]
        self._report(lambda run_id: self.client.log_batch(run_id, metrics=batch))

    def log_summary(self, metrics: Mapping[str, float]) -> None:
        self.log_metrics(metrics, step=0)
        self._report(lambda run_id: self._parent_of(run_id).log_metrics(metrics, step=0))

    def _parent_of(self, run_id: str) -> "MlflowTracker":
        return MlflowTracker(self.client, self.client.get_run(run_id).data.tags[PARENT_TAG])

    def log_params(self, params: Mapping[str, object]) -> None:
        self._report(lambda run_id: _log_params(self.client, run_id, params))

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set or replace tags."""
        from mlflow.entities import RunTag

        batch = [RunTag(key, value) for key, value in tags.items()]
        self._report(lambda run_id: self.client.log_batch(run_id, tags=batch))

    def log_artifact(self, path: Path) -> None:
        log = self.client.log_artifacts if path.is_dir() else self.client.log_artifact
        target = path.name if path.is_dir() else None
        self._report(lambda run_id: log(run_id, str(path), target))

    def log_dataset(self, path: Path, name: str) -> None:
        from mlflow.entities import Dataset, DatasetInput, InputTag

        digest = sha256_of(path)
        source = json.dumps({"uri": path.as_posix()})
        dataset = Dataset(name, digest[:32], "local", source)  # MLflow takes 36 characters of digest
        entry = DatasetInput(dataset, [InputTag("mlflow.data.context", name)])
        self._report(lambda run_id: self.client.log_inputs(run_id, [entry]))
        self.set_tags({f"sha256.{safe_name(name)}": digest})

    def _report(self, send: Callable[[str], object]) -> None:
        from mlflow.exceptions import MlflowException

        if self.run_id is None:
            return
        try:
            send(self.run_id)
        except (MlflowException, OSError) as error:
            logger.warning("MLflow took no report for run %s, the stage goes on: %s", self.run_id, error)


@contextmanager
def stage_run(name: str, params: Params, tags: Mapping[str, str] | None = None) -> Iterator[Tracker]:
    """Open the run of stage `name`, or continue an unfinished one; close it when the block ends.

    Raises:
        ParameterError: the store named by `tracking.uri` cannot be used.
    """
    flat = flatten(params.model_dump(mode="json", exclude={"tracking"}))
    pipeline = os.environ.get(PIPELINE_VARIABLE) or f"params-{_hash_of(flat)[:12]}"
    client, run_id, parent = _open_run(params, name, pipeline, flat)
    marker = WORK / name / "run_id"
    write_text(marker, f"{run_id} {_hash_of(flat)}")
    tracker = MlflowTracker(client, run_id)
    tracker.set_tags({PARENT_TAG: parent, PIPELINE_TAG: pipeline, **_source_tags(), **(tags or {})})
    tracker.log_params(flat)
    status = "FAILED"
    try:
        yield tracker
        status = "FINISHED"
        marker.unlink(missing_ok=True)
    except KeyboardInterrupt:
        status = "KILLED"
        raise
    finally:
        _close(client, (run_id, parent), status)


def attach(uri: str, run_id: str) -> Tracker:
    """Report to a run that another process opened and will close.

    Raises:
        ParameterError: the store, or the run in it, cannot be reached from here.
    """
    _quieten()
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    try:
        client = MlflowClient(tracking_uri=uri)
        client.get_run(run_id)
    except (MlflowException, OSError) as error:
        reason = _redacted(str(error)).splitlines()[0]
        raise ParameterError(
            f"tracking.uri = {_redacted(uri)!r}: run {run_id} cannot be reached ({reason}); training without its "
            "curves would be lost work: name a store that every machine of the cluster reaches, http://HOST:5000"
        ) from error
    return MlflowTracker(client, run_id)


# ── values ──


def split_finite(metrics: Mapping[str, float]) -> tuple[dict[str, float], int]:
    """Return the finite values as floats, and how many were not finite."""
    values = {name: float(value) for name, value in metrics.items()}
    finite = {name: value for name, value in values.items() if math.isfinite(value)}
    return finite, len(values) - len(finite)


def safe_name(name: str) -> str:
    """Rewrite a name so that MLflow accepts it: letters, digits and `_-. /`, no empty or dotted path part."""
    parts = re.sub(r"[^\w\-. /]", "_", name, flags=re.ASCII).split("/")
    kept = [part.strip() for part in parts if part.strip(" .")]
    return "/".join(kept)[:LONGEST_NAME].rstrip("/") or "unnamed"


def safe_names(names: Mapping[str, object]) -> dict[str, str]:
    """Map each name to a safe one; names that would coincide are told apart by a number."""
    taken: dict[str, str] = {}
    for name in names:
        safe = safe_name(name)
        number = 2
        while safe in taken.values():
            safe = f"{safe_name(name)[: LONGEST_NAME - 8]}_{number}"
            number += 1
        taken[name] = safe
    return taken


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """`{"rl": {"group_size": 8}}` becomes `{"rl.group_size": "8"}`; lists stay JSON."""
    flat: dict[str, str] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value if isinstance(value, str) else json.dumps(value)
    return flat


def _hash_of(flat: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(flat, sort_keys=True).encode()).hexdigest()


# ── the store ──


def _open_run(params: Params, name: str, pipeline: str, flat: Mapping[str, str]) -> tuple["MlflowClient", str, str]:
    """Return the client, the stage's run and its parent.

    One process at a time: parallel first starts would race to make the schema and the experiment.
    """
    _quieten()
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    uri, experiment_name = params.tracking.uri, params.tracking.experiment
    try:
        with _locked(uri):
            client = MlflowClient(tracking_uri=uri)
            found = client.get_experiment_by_name(experiment_name)
            experiment = found.experiment_id if found else client.create_experiment(experiment_name)
            parent = _parent_run(client, experiment, pipeline, flat)
            return (
                client,
                _unfinished_run(client, name, flat) or _new_run(client, experiment, name, {}),
                parent,
            )
    except (MlflowException, OSError, ImportError) as error:
        raise ParameterError(
            f"tracking.uri = {_redacted(uri)!r}, tracking.experiment = {experiment_name!r} cannot be used: "
            f"{_redacted(str(error))}; name a reachable server or a writable file as in sqlite:///mlflow.db"
        ) from error


def _redacted(text: str) -> str:
    """Hide user and password of a URL."""
    return re.sub(r"://[^@/\s]*@", "://***@", text)


def _quieten() -> None:
    """No run links, migration logs or telemetry; an unreachable server is an error within a minute."""
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
    for name in ("alembic", "mlflow"):  # the variable counts only before MLflow's first import
        logging.getLogger(name).setLevel(logging.WARNING)


@contextmanager
def _locked(uri: str) -> Iterator[None]:
    """Wait for the store's lock: beside a sqlite file, otherwise in the working folder."""
    database = uri.removeprefix("sqlite:///").partition("?")[0] if uri.startswith("sqlite:///") else ""
    path = Path(f"{database}.lock") if database else WORK / "tracking.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _parent_run(client: "MlflowClient", experiment: str, pipeline: str, flat: Mapping[str, str]) -> str:
    quoted = pipeline.replace("'", "_")
    found = client.search_runs([experiment], f"tags.`{PIPELINE_TAG}.parent` = '{quoted}'", max_results=1)
    if found:
        run_id = str(found[0].info.run_id)
        client.update_run(run_id, status="RUNNING")
        return run_id
    run_id = _new_run(client, experiment, pipeline, {f"{PIPELINE_TAG}.parent": quoted, **_source_tags()})
    _log_params(client, run_id, flat)
    return run_id


def _new_run(client: "MlflowClient", experiment: str, name: str, tags: Mapping[str, str]) -> str:
    return str(client.create_run(experiment, tags=dict(tags), run_name=name).info.run_id)


def _unfinished_run(client: "MlflowClient", name: str, flat: Mapping[str, str]) -> str | None:
    from mlflow.exceptions import MlflowException

    marker = WORK / name / "run_id"
    if not marker.is_file():
        return None
    run_id, _, parameters = marker.read_text("utf-8").partition(" ")
    if parameters != _hash_of(flat):
        return None
    try:
        client.update_run(run_id, status="RUNNING")
    except MlflowException:  # the store was removed or exchanged since
        return None
    return run_id


def _log_params(client: "MlflowClient", run_id: str, params: Mapping[str, object]) -> None:
    from mlflow.entities import Param

    present = client.get_run(run_id).data.params
    names = safe_names(params)
    fresh = []
    for name, value in params.items():
        text = _short_value(client, run_id, names[name], str(value))
        if names[name] not in present:
            fresh.append(Param(names[name], text))
        elif present[names[name]] != text:
            client.set_tag(run_id, f"changed.{names[name]}"[:LONGEST_NAME], text)
    for start in range(0, len(fresh), PARAMS_PER_BATCH):
        client.log_batch(run_id, params=fresh[start : start + PARAMS_PER_BATCH])


def _short_value(client: "MlflowClient", run_id: str, name: str, text: str) -> str:
    """Return the text; a long one goes whole into an artifact, and its hash and length stand for it."""
    if len(text) <= LONGEST_PARAM:
        return text
    client.log_text(run_id, text, f"params/{name}.txt")
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()} length:{len(text)}"


def _source_tags() -> dict[str, str]:
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
    tags = {"mlflow.source.name": _redacted(command)[:LONGEST_PARAM]}
    commit = git_commit()
    return {**tags, "mlflow.source.git.commit": commit} if commit else tags


def _close(client: "MlflowClient", runs: tuple[str, ...], status: str) -> None:
    """End the stage's run; the parent takes the state and end time of the stage that ended last."""
    from mlflow.exceptions import MlflowException

    for run_id in runs:
        try:
            client.set_terminated(run_id, status)
        except (MlflowException, OSError) as error:
            logger.warning("MLflow could not close run %s: %s", run_id, error)


def git_commit() -> str | None:
    """The checkout's commit, or None outside a repository or before the first commit."""
    command = ["git", "rev-parse", "--verify", "-q", "HEAD"]
    try:
        answer = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return answer.stdout.strip() or None
