"""The whole recipe, `python -m flows.post_training`: documents in, a long-context reasoner out."""

import os
import sys

from flows.request import PipelineRequest, parse_request

if __name__ == "__main__":
    # Before Prefect is imported, which takes seconds: --help and refusals are instant.
    REQUEST = parse_request()
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")

from prefect import flow, tags
from prefect.runtime import flow_run

from flows.checkout import open_run
from flows.evaluation import evaluation
from flows.full_context_rl import full_context_rl, fusion_rl
from flows.memory_branch import memory_branch
from flows.merging import merging
from flows.sweep import process_tag, sweep_dead_runs
from flows.synthesis import synthesis
from tasks.errors import PipelineError


@flow(name="post-training")
def post_training(request: PipelineRequest) -> None:
    """Post-train a long-context reasoning model (QwenLong-L1.5, Figure 6).

    Questions are synthesised from documents and verified. Reinforcement learning on growing contexts makes a
    long-context reasoner; a branch of it learns to read with a memory; both are merged, trained together once
    more, and measured on documents that no stage has seen.
    """
    sweep_dead_runs()
    run = open_run(request, name=str(flow_run.get_name()))
    with tags(process_tag()):
        synthesis(run)
        full_context_rl(run)
        memory_branch(run)
        merging(run)
        fusion_rl(run)
        evaluation(run)


if __name__ == "__main__":
    try:
        post_training(REQUEST)
    except PipelineError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from error
