"""Which code, parameters and libraries made a set of figures."""

import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version

from tasks.evaluation.scores import Provenance
from tasks.params import Params
from tasks.tracking import git_commit

LIBRARIES = ("torch", "transformers", "mergekit", "duckdb", "prefect", "dvc", "mlflow")


def provenance(params: Params) -> Provenance:
    """Commit of the checkout, hash of the parameters, versions of the libraries that matter."""
    return Provenance(
        git_commit=git_commit(),
        params_sha256=hashlib.sha256(params.model_dump_json().encode()).hexdigest(),
        python=platform.python_version(),
        versions={name: found for name in LIBRARIES if (found := _version(name))},
    )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
