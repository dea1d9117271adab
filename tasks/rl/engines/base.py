"""The seam between the RL loop and whatever holds the policy: sample from it, update it, save it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tasks.generation.base import Generator
from tasks.rl.entropy_control import Gate
from tasks.rl.episodes import Episode


@dataclass(frozen=True)
class Update:
    """What one update did.

    `entropy` is Eq. 11's, before the update; `kept_share` the share of reply tokens that kept their gradient;
    `gradient_norm` is before clipping, 0 when skipped. An update is skipped when no token has anything to
    teach.
    """

    entropy: float
    gate: Gate
    kept_share: float
    gradient_norm: float
    learning_rate: float
    skipped: bool


class Engine(Protocol):
    """Holds the policy. One update a batch, on the samples of the current weights."""

    @property
    def generator(self) -> Generator:
        """Samples from the current policy."""
        ...

    def update(self, episodes: Sequence[Episode], gate: Gate, step: int) -> Update:
        """Change the policy once; `step` counts from 1 and sets the learning rate."""
        ...

    def save_model(self, folder: Path) -> None:
        """Write a HF folder: safetensors, config, tokenizer."""
        ...

    def save_state(self, folder: Path) -> None:
        """Write weights and optimiser, exactly."""
        ...

    def load_state(self, folder: Path) -> None:
        """Read what `save_state` wrote; updates then go on as if never interrupted."""
        ...
