"""The model card of an RL checkpoint. Pure text; the same run gives the same bytes."""

from collections.abc import Sequence
from pathlib import Path

from tasks.params import Params, StageParams
from tasks.rl.state import StepMetrics

WINDOW = 5  # steps averaged at either end of the curve


def model_card(name: str, parent: Path, params: Params, limits: StageParams, metrics: Sequence[StepMetrics]) -> str:
    """Markdown with the Hub's header: what it is, what it came from, how it was trained."""
    rl = params.rl
    first, last = metrics[:WINDOW], metrics[-WINDOW:]
    return f"""---
library_name: transformers
pipeline_tag: text-generation
license: apache-2.0
tags: [reinforcement-learning, long-context]
---
# {name}

The policy after RL stage `{name}` of the QwenLong-L1.5 recipe (profile `{params.profile}`),
trained from `{parent}`.
`lineage.json` beside this file resolves it to the documents its questions came from.

| | |
|---|---|
| updates | {len(metrics)}, of which {sum(step.skipped for step in metrics)} were skipped |
| batch | {rl.batch_prompts} prompts × {rl.group_size} samples |
| input / output limit | {limits.max_input_tokens} / {limits.max_output_tokens} tokens |
| learning rate | {rl.learning_rate} after {rl.warmup_steps} warm-up steps |
| sampling | temperature {rl.sampling.temperature}, top-p {rl.sampling.top_p} |
| seed | {params.seed} |
| training reward, first and last {WINDOW} steps | {_mean_reward(first)} → {_mean_reward(last)} |

The training reward is on training documents. Held-out scores are in `metrics/evaluation.json` of the run.
Meant for showing and testing the pipeline, not for use as an assistant.
"""


def _mean_reward(metrics: Sequence[StepMetrics]) -> str:
    rewards = [step.reward for step in metrics if step.reward is not None]
    return f"{sum(rewards) / len(rewards):.3f}" if rewards else "none scored"
