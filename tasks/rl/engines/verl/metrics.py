"""verl's own figures under names of ours: one table. What the local engine also measures comes from its code."""

from collections.abc import Mapping

NAMES = {
    "actor/pg_loss": "verl/loss",
    "actor/ppo_kl": "verl/policy_drift",
    "training/rollout_actor_probs_pearson_corr": "verl/rollout_correlation",
    "training/rollout_probs_diff_max": "verl/rollout_difference_max",
    "training/rollout_probs_diff_mean": "verl/rollout_difference_mean",
    "prompt_length/mean": "verl/prompt_length",
    "perf/throughput": "verl/tokens_per_second",
    "actor/mfu": "verl/utilisation",
    "timing_s/step": "seconds",
    "timing_s/gen": "seconds/rollout",
    "timing_s/old_log_prob": "seconds/score",
    "timing_s/adv": "seconds/advantage",
    "timing_s/update_actor": "seconds/update",
    "timing_s/update_weights": "seconds/weights",
    "timing_s/save_checkpoint": "seconds/checkpoint",
}


def translate(metrics: Mapping[str, object]) -> dict[str, float]:
    """The named figures of one step; those that verl did not measure are left out."""
    found = ((ours, metrics.get(theirs)) for theirs, ours in NAMES.items())
    return {name: float(value) for name, value in found if isinstance(value, int | float)}
