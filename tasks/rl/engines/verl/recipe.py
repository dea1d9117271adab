"""What verl's processes know of ours: it travels in verl's config, section `recipe`."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.params import Params
from tasks.tokenization import ChatTokenizer

if TYPE_CHECKING:
    from omegaconf import DictConfig


@dataclass(frozen=True)
class Recipe:
    """One RL stage: its name, all parameters, and the MLflow run that its figures go to."""

    name: str
    params: Params
    fingerprint: str
    run_id: str
    tracking_uri: str

    @classmethod
    def of(cls, config: "DictConfig") -> "Recipe":
        """Read the section that tasks/rl/engines/verl/config.py wrote."""
        section = config.recipe
        params = params_of(section.params)
        return cls(section.name, params, section.fingerprint, section.run_id, section.tracking_uri)


@cache
def params_of(text: str) -> Params:
    """Parameters from their JSON; parsed once a process, every rollout asks."""
    return Params.model_validate_json(text)


@cache
def tokenizer_of(folder: str) -> ChatTokenizer:
    """The model's tokenizer; loaded once a process."""
    return ChatTokenizer.load(Path(folder))
