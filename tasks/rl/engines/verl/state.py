"""Our state in verl's checkpoints: it takes the place of the data loader's, in `global_step_N/data.pt`."""

import logging
import shutil
from pathlib import Path

import torch

from tasks.errors import CheckpointError, InputError
from tasks.rl.engines.verl.remote import LATEST
from tasks.rl.entropy_control import Gate
from tasks.rl.sampling import DomainSampler
from tasks.rl.state import Outcome, StageState, StepMetrics

STATE_FILE = "data.pt"
logger = logging.getLogger(__name__)


class KeptState:
    """Holds the state of a stage where verl expects a data loader, and moves the sampler along with it."""

    def __init__(self, fingerprint: str, sampler: DomainSampler) -> None:
        self._sampler = sampler
        self.state = StageState(
            fingerprint=fingerprint, step=0, sampler=sampler.state(), gate=Gate(), metrics=(), outcomes={}
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
        return {"state": self.state.model_dump_json()}

    def load_state_dict(self, kept: dict[str, str]) -> None:
        """What verl found.

        Raises:
            InputError: it belongs to other parameters or data.
        """
        state = StageState.model_validate_json(kept["state"])
        if state.fingerprint != self.state.fingerprint:
            raise InputError("the checkpoint belongs to other parameters or data; remove it to start anew")
        self._sampler.restore(state.sampler)
        self.state = state


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
    kept = torch.load(checkpoint / STATE_FILE, weights_only=True)
    return StageState.model_validate_json(kept["state"])


def discard_foreign(folder: Path, fingerprint: str) -> None:
    """Remove checkpoints of other parameters or data: verl would continue them."""
    if (folder / LATEST).is_file() and read_state(latest_step(folder)).fingerprint != fingerprint:
        logger.warning("the checkpoints in %s belong to other parameters or inputs: removed", folder)
        shutil.rmtree(folder)
