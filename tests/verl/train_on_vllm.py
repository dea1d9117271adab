"""The stage command with verl's own vLLM rollout in the place of our CPU server: `python train_on_vllm.py stage1`.

All else is the product's: trainer, agent loops, FSDP2 worker, CPU platform.
"""

from unittest.mock import patch

from tasks.rl import train
from tasks.rl.engines.verl import config

ROLLOUT = "actor_rollout_ref.rollout"
ON_VLLM = [
    f"{ROLLOUT}.name=vllm",
    # Log-probabilities after the temperature, as the trainer takes them; vLLM's own default is before it. These are
    # also after the cut to top-p and renormalised, which the trainer's are not: the test samples with top-p 1.
    f"{ROLLOUT}.logprobs_mode=processed_logprobs",
    f"{ROLLOUT}.dtype=float32",
    f"{ROLLOUT}.load_format=dummy",  # random numbers: whatever vLLM knows, the trainer has sent
    f"{ROLLOUT}.enforce_eager=true",
    f"{ROLLOUT}.free_cache_engine=false",  # a CPU's memory is not given back between steps
    f"+{ROLLOUT}.enable_sleep_mode=false",
    f"{ROLLOUT}.max_num_seqs=16",
    f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes=64",  # of shared memory
    f"+{ROLLOUT}.engine_kwargs.vllm.worker_extension_cls=tests.verl.vllm_cpu.PlainWeights",
]

overrides = config.overrides


def overrides_with_vllm(*arguments: object) -> list[str]:
    """The product's overrides, then ours, which win."""
    return [*overrides(*arguments), *ON_VLLM]


if __name__ == "__main__":
    with patch.object(config, "overrides", overrides_with_vllm):
        train.main()
