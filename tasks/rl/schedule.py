"""The optimiser's numbers, for both engines. The rate is constant after a linear warm-up, counted in steps, skipped
ones included.
"""

from tasks.params import RLParams

BETAS = (0.9, 0.98)  # a stage has some tens of updates: a slower second moment would still be warming up


def learning_rate(step: int, params: RLParams) -> float:
    """Rate of step 1, 2, …; the first step already has 1/warmup_steps of it."""
    return params.learning_rate * min(1.0, step / max(1, params.warmup_steps))
