"""Which code, parameters, data and MLflow runs made a set of figures."""

import hashlib
import json
import os
import platform
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.artifacts import sha256_of
from tasks.evaluation.scores import Provenance
from tasks.lineage import read_lineage
from tasks.params import Params, TrackingParams
from tasks.tracking import PIPELINE_TAG, flatten, git_commit

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

LIBRARIES = ("torch", "transformers", "mergekit", "duckdb", "prefect", "dvc", "mlflow")
COMMIT_TAG = "mlflow.source.git.commit"
LATEST = 20  # finished runs of a stage that are compared with its file


@dataclass(frozen=True)
class Origin:
    """A file behind a section: the stage that writes it, its hash, and the MLflow run that wrote these very bytes.

    A run of None: the store holds none. `data` are hashes of what that run read, by name.
    """

    stage: str
    path: Path
    sha256: str
    run_id: str | None
    pipeline: str | None
    git_commit: str | None
    data: Mapping[str, str]


@dataclass(frozen=True)
class Made:
    """A checkpoint as its lineage.json tells; everything is None, or empty, for a model that no stage made."""

    checkpoint: str
    run_id: str | None
    git_commit: str | None
    params_sha256: str | None
    inputs: Mapping[str, str]


def provenance(params: Params) -> Provenance:
    """Commit of the checkout, hash of the parameters, versions of the libraries that matter."""
    return Provenance(
        git_commit=git_commit(),
        params_sha256=params_hash(params.model_dump(mode="json", exclude={"tracking"})),
        python=platform.python_version(),
        versions={name: found for name in LIBRARIES if (found := _version(name))},
    )


def params_hash(tree: Mapping[str, Any]) -> str:
    """Hash of parameters without their tracking section. A pipeline run without a name is called after its start."""
    return hashlib.sha256(json.dumps(flatten(tree), sort_keys=True).encode()).hexdigest()


def made(folder: Path, checkpoint: str) -> Made:
    """What a checkpoint's lineage.json says.

    Raises:
        CheckpointError: there is no such folder, or its lineage is damaged.
    """
    lineage = read_lineage(folder)
    if lineage is None:
        return Made(checkpoint, None, None, None, {})
    inputs = {source.path.as_posix(): source.sha256 for source in (*lineage.parents, *lineage.inputs.values())}
    return Made(checkpoint, lineage.run_id, lineage.git_commit, params_hash(lineage.params), inputs)


def origins(files: Mapping[Path, str], tracking: TrackingParams) -> tuple[Origin, ...]:
    """Where each file came from, given the stage that writes it. An unreachable store leaves runs unknown."""
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    try:
        client = MlflowClient(tracking_uri=tracking.uri)
        experiment = client.get_experiment_by_name(tracking.experiment)
        writers = {
            path: _writer(client, experiment.experiment_id, stage, path) if experiment else None
            for path, stage in files.items()
        }
    except (MlflowException, OSError):
        writers = {}
    return tuple(_origin(stage, path, writers.get(path)) for path, stage in files.items())


def _writer(client: "MlflowClient", experiment: str, stage: str, path: Path) -> "Run | None":
    """The latest finished run of a stage whose artifact has the file's bytes."""
    query = f"attributes.run_name = '{stage}' and attributes.status = 'FINISHED'"
    runs = client.search_runs([experiment], query, max_results=LATEST, order_by=["attributes.start_time DESC"])
    return next((run for run in runs if _holds(client, run, path)), None)


def _holds(client: "MlflowClient", run: "Run", path: Path) -> bool:
    from mlflow.exceptions import MlflowException

    with tempfile.TemporaryDirectory() as folder:
        try:
            copy = client.download_artifacts(run.info.run_id, path.name, folder)
        except (MlflowException, OSError):  # this run has no such artifact, or lost it
            return False
        return Path(copy).read_bytes() == path.read_bytes()


def _origin(stage: str, path: Path, run: "Run | None") -> Origin:
    tags = run.data.tags if run else {}
    return Origin(
        stage=stage,
        path=path,
        sha256=sha256_of(path),
        run_id=str(run.info.run_id) if run else None,
        pipeline=tags.get(PIPELINE_TAG),
        git_commit=tags.get(COMMIT_TAG),
        data=dict(_tagged(tags.items())),
    )


def _tagged(tags: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    return ((name.removeprefix("sha256."), value) for name, value in sorted(tags) if name.startswith("sha256."))


def without_password(uri: str) -> str:
    """A store's address without user and password."""
    return re.sub(r"://[^@/\s]*@", "://***@", uri)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
