"""Full-context reinforcement learning (QwenLong-L1.5 §4): curate questions for a stage, train on them."""

from prefect import flow

from flows.checkout import Run
from flows.stage import reproduce


@flow(name="full-context-rl")
def full_context_rl(run: Run) -> None:
    """Stages 1–3: the context grows; each stage picks its questions by how the stage before answers them."""
    for stage in ("stage1", "stage2", "stage3"):
        reproduce(f"curate@{stage}", run)
        reproduce(f"rl@{stage}", run)


@flow(name="fusion-rl")
def fusion_rl(run: Run) -> None:
    """Stage 4: full-context training of the merged model."""
    reproduce("curate@stage4", run)
    reproduce("rl@stage4", run)
