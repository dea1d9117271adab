"""What verl's processes know of ours: it travels in verl's config, section `recipe`."""

import socket
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.params import Params
from tasks.rewards.judge import Judge
from tasks.rewards.opening import open_judge_in
from tasks.tokenization import ChatTokenizer

if TYPE_CHECKING:
    from omegaconf import DictConfig

_opener = ThreadPoolExecutor(1, thread_name_prefix="judge")


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
def judge_of(text: str, resume: str) -> "Future[Judge | None]":
    """The judge of parameters in JSON; opened once a process, whose episodes all get it, or the error that there was.

    Its memory lies beside the resume points, one a machine: sqlite's log must not be shared over a network.
    """
    folder = Path(resume).parent / "judge" / socket.gethostname()
    return _opener.submit(open_judge_in, folder, params_of(text))


@cache
def tokenizer_of(folder: str) -> ChatTokenizer:
    """The model's tokenizer; loaded once a process."""
    return ChatTokenizer.load(Path(folder))
