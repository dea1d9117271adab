"""Merging (QwenLong-L1.5 §4.4): one model from the stage-3 model and the memory expert."""

from prefect import flow

from flows.checkout import Run
from flows.stage import reproduce


@flow(name="merging")
def merging(run: Run) -> None:
    """SCE merge over the base model, by mergekit."""
    reproduce("merge", run)
