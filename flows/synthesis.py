"""Data synthesis (QwenLong-L1.5 §3): documents become verified, balanced questions."""

from prefect import flow

from flows.checkout import Run
from flows.stage import reproduce


@flow(name="synthesis")
def synthesis(run: Run) -> None:
    """Three ways to write questions, one set of checks, equal counts of every difficulty.

    The paths run one after the other, so that a cancelled flow has one process to end.
    """
    reproduce("ingest", run)
    reproduce("synthesize@knowledge_graph", run)
    reproduce("synthesize@tables", run)
    reproduce("synthesize@self_play", run)
    reproduce("verify", run)
    reproduce("balance", run)
