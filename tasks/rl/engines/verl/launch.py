"""Run verl's trainer: on this machine with a Ray of its own, or as a job of a Ray cluster.

The trainer itself runs in the calling process, not in an actor: its log is the stage's log, its errors arrive as they
were raised, and the stage ends with it. Everything else (training, rollout and storage processes) belongs to Ray.
"""

import hashlib
import os
import secrets
import shutil
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.errors import PipelineError
from tasks.rl.engines.verl.remote import LATEST, restore, stage_uri

if TYPE_CHECKING:
    from omegaconf import DictConfig

OURS = "tasks.rl.engines.verl.register"
UNUSED_ENGINES = "verl.workers.engine"  # warns of each engine that is not installed
LOCAL = "local"  # Ray's word for a cluster of this process alone


def prepare_environment(device: str) -> None:
    """Tell verl and Ray in this process, and in all that it starts, what to load. Call it before verl is imported.

    `device` is verl's `trainer.device`: "cuda", or "cpu" for the platform of tasks/rl/engines/verl/cpu.py.
    """
    os.environ.update(_worker_environment(device))
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if not sys.stdout.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")  # verl's bar; a line a step says the same
    warnings.filterwarnings("ignore", module=UNUSED_ENGINES)


def run_here(config: "DictConfig", address: str = LOCAL) -> None:
    """Train to the end of the stage, from its newest resume point, here or else in S3.

    `address`: "auto" is the cluster that this process is a job of.

    Raises:
        PipelineError: a process of Ray failed or died. What a worker raised as one of ours arrives as such.
    """
    prepare_environment(config.trainer.device)
    with _ray(config, address), _one_error():
        _train(config)


def _train(config: "DictConfig") -> None:
    """verl's own sequence, without the printing of its whole configuration."""
    import transfer_queue
    from omegaconf import OmegaConf
    from verl.trainer.ppo.v1 import AgentLoopManagerTQ, get_trainer_cls

    _find_resume_point(config)
    OmegaConf.resolve(config)
    config.transfer_queue.enable = True
    transfer_queue.init(config.transfer_queue)
    try:
        trainer = get_trainer_cls(config.trainer.v1.trainer_mode)(config=config)
        trainer.init()
        loops = AgentLoopManagerTQ.create(
            config=config,
            llm_client=trainer.get_llm_client(),
            teacher_client=trainer.get_teacher_client(),
            reward_loop_worker_handles=trainer.get_reward_handles(),
        )
        trainer.fit(loops)
    finally:
        transfer_queue.close()


def _find_resume_point(config: "DictConfig") -> None:
    """Leave verl the resume point that it may continue, a lost one from S3; without any, no rollouts of other runs."""
    from tasks.rl.engines.verl.recipe import Recipe
    from tasks.rl.engines.verl.state import find_resume_point

    folder, recipe = Path(config.trainer.default_local_dir), Recipe.of(config)
    find_resume_point(folder, recipe)
    if config.trainer.checkpoint_callback_class:
        restore(stage_uri(recipe.params, recipe.name, recipe.fingerprint), folder)
        find_resume_point(folder, recipe)
    if not (folder / LATEST).is_file():
        shutil.rmtree(config.trainer.rollout_data_dir, ignore_errors=True)


def _worker_environment(device: str) -> dict[str, str]:
    """Variables of every process of a run. verl imports `OURS` wherever it is imported itself."""
    shared = {
        "VERL_USE_EXTERNAL_MODULES": OURS,
        "TRANSFER_QUEUE_ENABLE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",  # models are folders
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "PYTHONWARNINGS": f"ignore::UserWarning:{UNUSED_ENGINES}",
    }
    if device != "cpu":
        return shared
    threads = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "TQ_NUM_THREADS": "1"}
    return {**shared, **threads, "VERL_PLATFORM": "cpu"}


@contextmanager
def _ray(config: "DictConfig", address: str) -> Iterator[None]:
    """Connect to the cluster, or start Ray on this machine and stop it; its files are removed."""
    import ray
    from verl.trainer.constants_ppo import get_ppo_ray_runtime_env

    variables = {**get_ppo_ray_runtime_env(config)["env_vars"], **_worker_environment(config.trainer.device)}
    own: AbstractContextManager[dict[str, Any]] = _own_ray(config) if address == LOCAL else nullcontext({})
    with own as options:
        ray.init(address=address, runtime_env={"env_vars": variables}, **options)
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def _own_ray(config: "DictConfig") -> Iterator[dict[str, Any]]:
    """How Ray starts on this machine: sizes from verl's `ray_kwargs`, a key of its own, files that end with it."""
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # else Ray writes one to the home folder
    sizes = {key: value for key, value in config.ray_kwargs.ray_init.items() if key != "runtime_env"}
    folder = _files_of_ray(Path(config.trainer.default_local_dir))
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
    folder.mkdir(mode=0o700)
    try:
        yield {**sizes, "_temp_dir": str(folder)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _files_of_ray(checkpoints: Path) -> Path:
    """One folder a stage, short: a socket's path has at most 107 characters, and TMPDIR may take most of them."""
    name = hashlib.sha256(str(checkpoints.resolve()).encode()).hexdigest()[:12]
    return Path("/tmp") / f"posttrain-{name}"  # noqa: S108  where Ray itself puts its files


@contextmanager
def _one_error() -> Iterator[None]:
    """Whatever failed in a process of Ray becomes one of our errors; a traceback that is no user's goes to the log."""
    from ray.exceptions import RayError

    try:
        yield
    except RayError as error:
        cause = _cause_of(error)
        if isinstance(cause, PipelineError):
            raise cause from error
        traceback.print_exception(error)
        raise PipelineError(f"verl failed: {type(cause).__name__}: {cause}") from error


def _cause_of(error: BaseException) -> BaseException:
    """What a remote call raised first; Ray wraps it once for every process it passes through."""
    from ray.exceptions import RayTaskError

    while isinstance(error, RayTaskError) and isinstance(error.cause, BaseException) and error.cause is not error:
        error = error.cause
    return error
