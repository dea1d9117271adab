"""The memory branch (QwenLong-L1.5 §4.4): from stage 3, an expert that reads chunk by chunk."""

from prefect import flow

from flows.checkout import Run
from flows.stage import reproduce


@flow(name="memory-branch")
def memory_branch(run: Run) -> None:
    """Choose documents longer than a chunk and train on whole reading trajectories."""
    reproduce("curate@memory", run)
    reproduce("rl@memory", run)
