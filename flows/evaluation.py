"""Evaluation: every checkpoint on held-out documents, and the report."""

from prefect import flow

from flows.checkout import Run
from flows.stage import reproduce


@flow(name="evaluation")
def evaluation(run: Run) -> None:
    """Score by domain and length, then draw the curves."""
    reproduce("evaluate", run)
    reproduce("report", run)
