"""Where a stage's resume points lie in S3, and how they come back: CHECKPOINT_URI/STAGE/FINGERPRINT/global_step_N."""

import logging
import re
from pathlib import Path

from tasks.artifacts import write_text
from tasks.errors import CheckpointError
from tasks.params import Params

LATEST = "latest_checkpointed_iteration.txt"  # verl resumes from the step that it names
FINGERPRINT_DIGITS = 12
RANK_FILE = re.compile(r"model_world_size_(\d+)_rank_(\d+)\.pt")  # FSDP: a file a process

logger = logging.getLogger(__name__)


def stage_uri(params: Params, name: str, fingerprint: str) -> str:
    """The stage's folder for what its fingerprint stands for; only with `cluster.checkpoint_uri`."""
    root = params.cluster.checkpoint_uri
    assert root is not None, "verl's configuration names the callback only with cluster.checkpoint_uri"
    return f"{root.rstrip('/')}/{name}/{fingerprint[:FINGERPRINT_DIGITS]}"


def restore(uri: str, resume: Path) -> int | None:
    """Bring the newest whole resume point back into an empty `resume` folder, and have verl continue from it.

    A folder in which verl has saved a step keeps its own: it is as new. Returns the step, None when there is nothing.

    Raises:
        CheckpointError: there are copies, but none is what was uploaded.
        PipelineError: S3 refused or could not be reached.
    """
    from tasks.s3 import download_latest

    if (resume / LATEST).exists():
        return None
    name = download_latest(uri, resume, step_of)
    if name is None:
        return None
    step = step_of(name)
    write_text(resume / LATEST, str(step))
    logger.warning("resuming from step %s of %s", step, uri)
    return step


def step_of(name: str) -> int | None:
    """The step in verl's folder name; None for any other name."""
    match = re.fullmatch(r"global_step_(\d+)", name)
    return int(match[1]) if match else None


def check_ranks(checkpoint: Path) -> None:
    """Every training process's file must be there: those on other machines' own disks are not.

    Raises:
        CheckpointError: some processes saved elsewhere.
    """
    for folder in {file.parent for file in checkpoint.rglob("model_world_size_*_rank_*.pt")}:
        found = {match.groups() for file in folder.iterdir() if (match := RANK_FILE.fullmatch(file.name))}
        for size in {int(size) for size, _ in found}:
            ranks = {int(rank) for of, rank in found if int(of) == size}
            if len(ranks) < size:
                raise CheckpointError(
                    f"{folder} holds the files of {len(ranks)} of {size} processes; a cluster needs the checkout on a "
                    "file system that all its machines share"
                )
