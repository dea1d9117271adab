"""How much better than its group an episode did.

Axes: E episodes (whole trajectories, never turns). Rewards are NaN where unscored.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor

EPSILON = 1e-6  # added to the standard deviation (the recipe's published value)

Advantage = Literal["domain", "group", "mean_only"]


def advantages(rewards_E: Tensor, groups: Sequence[int], domains: Sequence[str], kind: Advantage) -> Tensor:
    """Advantage of each episode, as (E,).

    All kinds subtract the mean reward of the group. `domain` divides by the unbiased standard deviation of
    all rewards of the domain in the batch (QwenLong-L1.5 Eq. 7), `group` by that of the group (GRPO; the
    memory branch), `mean_only` by nothing. Unscored episodes enter no statistic and get 0. Where fewer than
    two scored rewards or only equal ones leave no deviation, the advantage is 0: nothing was learned about
    what is better.

    Raises:
        ValueError: a reward is infinite, or the lengths differ.
    """
    if not len(rewards_E) == len(groups) == len(domains):
        raise ValueError(f"{len(rewards_E)} rewards, {len(groups)} groups, {len(domains)} domains; lengths must agree")
    if bool(rewards_E.isinf().any()):
        raise ValueError("a reward is infinite; rewards must be finite, or NaN when unscored")
    scored_E = ~rewards_E.isnan()
    known_E = rewards_E.nan_to_num()
    centred_E = known_E - _per_key(known_E, scored_E, groups, _mean)
    if kind == "mean_only":
        return centred_E.masked_fill(~scored_E, 0.0)
    keys: Sequence[int | str] = domains if kind == "domain" else groups
    deviation_E = _per_key(known_E, scored_E, keys, _deviation)
    return (centred_E / (deviation_E + EPSILON)).masked_fill(~scored_E | (deviation_E == 0.0), 0.0)


def _per_key(
    rewards_E: Tensor, scored_E: Tensor, keys: Sequence[int | str], statistic: Callable[[Tensor], Tensor]
) -> Tensor:
    result_E = torch.zeros_like(rewards_E)
    for key in dict.fromkeys(keys):
        member_E = torch.tensor([other == key for other in keys])
        result_E[member_E] = statistic(rewards_E[member_E & scored_E])
    return result_E


def _mean(rewards: Tensor) -> Tensor:
    return rewards.mean() if len(rewards) else rewards.new_zeros(())


def _deviation(rewards: Tensor) -> Tensor:
    """Unbiased; exactly 0 for fewer than two rewards and for equal ones (rounding must not invent a
    deviation).
    """
    if len(rewards) < 2 or bool((rewards == rewards[0]).all()):
        return rewards.new_zeros(())
    return rewards.std(correction=1)
