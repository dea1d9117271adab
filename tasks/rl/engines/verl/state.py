"""Our state in verl's checkpoints: it takes the place of the data loader's, in `global_step_N/data.pt`."""

import logging
import pickle
import shutil
from pathlib import Path

import torch

from tasks.errors import CheckpointError
from tasks.params import ClusterParams
from tasks.rl.engines.verl.recipe import Recipe
from tasks.rl.engines.verl.remote import LATEST
from tasks.rl.entropy_control import Gate
from tasks.rl.sampling import DomainSampler
from tasks.rl.state import Outcome, StageState, StepMetrics

STATE_FILE = "data.pt"
logger = logging.getLogger(__name__)


class KeptState:
    """Holds the state of a stage where verl expects a data loader, and moves the sampler along with it.

    Beside the state lie the MLflow run that has seen it, and the processes that saved the weights: verl's files are
    one a process, and no other number of processes can read them.
    """

    def __init__(self, recipe: Recipe, sampler: DomainSampler) -> None:
        self._sampler = sampler
        self._processes = processes_of(recipe.params.cluster)
        self.run_id = recipe.run_id
        self.state = StageState(
            fingerprint=recipe.fingerprint, step=0, sampler=sampler.state(), gate=Gate(), metrics=(), outcomes={}
        )

    def advance(self, step: int, gate: Gate, metrics: StepMetrics, outcomes: dict[str, Outcome]) -> None:
        """Remember one more step."""
        self.state = StageState(
            fingerprint=self.state.fingerprint,
            step=step,
            sampler=self._sampler.state(),
            gate=gate,
            metrics=(*self.state.metrics, metrics),
            outcomes=outcomes,
        )

    def state_dict(self) -> dict[str, str]:
        """What verl saves."""
        return {"state": self.state.model_dump_json(), "run_id": self.run_id, "processes": self._processes}

    def load_state_dict(self, kept: dict[str, str]) -> None:
        """What verl found, and `find_resume_point` has checked."""
        self.state = StageState.model_validate_json(kept["state"])
        self._sampler.restore(self.state.sampler)
        self.run_id = kept["run_id"]


def processes_of(cluster: ClusterParams) -> str:
    """Backend and number of training processes, in words."""
    return f"{cluster.world_size} of {cluster.backend.type}"


def latest_step(folder: Path) -> Path:
    """The newest whole checkpoint in a stage's folder.

    Raises:
        CheckpointError: there is none.
    """
    marker = folder / LATEST
    if not marker.is_file():
        raise CheckpointError(f"{folder} holds no {LATEST}: verl wrote no whole checkpoint; read its log above")
    return folder / f"global_step_{marker.read_text('utf-8').strip()}"


def read_state(checkpoint: Path) -> StageState:
    """The state that lies in a checkpoint of verl's."""
    return StageState.model_validate_json(_kept(checkpoint)["state"])


def find_resume_point(folder: Path, recipe: Recipe) -> None:
    """Leave in `folder` the one checkpoint that verl may continue, or nothing.

    Those of other parameters or data are removed, and so is one that a kill left unreadable, each with a warning.
    Older ones go too: after a restart verl no longer knows that it wrote them.

    Raises:
        CheckpointError: it was saved by another number of processes, or on another backend.
    """
    if not (folder / LATEST).is_file():
        return
    try:
        latest = latest_step(folder)
        kept, state = _kept(latest), read_state(latest)
    except (OSError, ValueError, KeyError, RuntimeError, pickle.UnpicklingError) as error:
        _discard(folder, f"cannot be read ({type(error).__name__})")
        return
    if state.fingerprint != recipe.fingerprint:
        _discard(folder, "belong to other parameters or inputs")
        return
    processes = processes_of(recipe.params.cluster)
    if kept["processes"] != processes:
        raise CheckpointError(
            f"{latest} was saved by {kept['processes']} and the cluster section now says {processes}; verl cannot read "
            f"it so: restore the section to continue, or remove {folder} to start the stage anew"
        )
    for other in folder.glob("global_step_*"):
        if other != latest:
            shutil.rmtree(other)


def _kept(checkpoint: Path) -> dict[str, str]:
    kept: dict[str, str] = torch.load(checkpoint / STATE_FILE, weights_only=True)
    return kept


def _discard(folder: Path, reason: str) -> None:
    logger.warning("the checkpoints in %s %s: removed, the stage starts anew", folder, reason)
    shutil.rmtree(folder)
