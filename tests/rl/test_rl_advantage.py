"""Eq. 7 by hand, and every way in which a statistic can be missing (cases RL-01, RL-04)."""

import math

import pytest
import torch

from tasks.rl.advantage import advantages

NAN = math.nan


def compute(rewards, groups, domains, kind="domain"):
    return advantages(torch.tensor(rewards), groups, domains, kind).tolist()


def test_domain_deviation_by_hand_and_a_lone_sample_gets_nothing():
    result = compute([1.0, 0, 1, 0, 1], list("ppppq"), ["qa"] * 4 + ["mc"])
    assert result == pytest.approx([0.866, -0.866, 0.866, -0.866, 0.0], abs=1e-3)


def test_group_mean_but_domain_deviation():
    """Groups (1, 0) and (1, 1) of one domain: means 0.5 and 1; rewards 1, 0, 1, 1 deviate by 0.5."""
    result = compute([1.0, 0, 1, 1], [0, 0, 1, 1], ["a"] * 4)
    assert result == pytest.approx([1.0, -1.0, 0.0, 0.0], abs=1e-5)


def test_group_and_mean_only():
    rewards, groups = [1.0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 1, 1]
    assert compute(rewards, groups, ["a"] * 6, "mean_only") == [0.75, -0.25, -0.25, -0.25, 0.5, -0.5]
    expected = [1.5, -0.5, -0.5, -0.5, 0.7071, -0.7071]  # deviations 0.5 and 0.7071
    assert compute(rewards, groups, ["a"] * 6, "group") == pytest.approx(expected, abs=1e-4)


def test_unscored_is_masked_and_not_wrong():
    result = compute([1.0, 0, NAN, 0], [0] * 4, ["a"] * 4, "mean_only")
    assert result == pytest.approx([2 / 3, -1 / 3, 0.0, -1 / 3])
    normalised = compute([1.0, 0, NAN, 0], [0] * 4, ["a"] * 4)
    assert normalised == pytest.approx([1.1547, -0.57735, 0.0, -0.57735], abs=1e-4)


@pytest.mark.parametrize("kind", ["domain", "group", "mean_only"])
@pytest.mark.parametrize(
    "rewards",
    [[NAN, NAN, NAN, 1.0], [NAN] * 4, [0.1, 0.1, 0.1, 0.1], [0.3, NAN, 0.3, NAN]],
    ids=["one scored", "none scored", "all equal", "equal where scored"],
)
def test_without_a_deviation_nothing_is_learned(kind, rewards):
    assert compute(rewards, [0] * 4, ["a"] * 4, kind) == pytest.approx([0.0] * 4, abs=1e-6)


@pytest.mark.parametrize("kind", ["domain", "group", "mean_only"])
def test_small_and_empty_batches(kind):
    assert compute([], [], [], kind) == []
    assert compute([1.0], [0], ["a"], kind) == [0.0]
    assert max(map(abs, compute([1.0, 1, 0], [0, 1, 2], ["a", "a", "b"], kind))) == 0.0


def test_an_unscored_neighbour_changes_nobody():
    alone = compute([1.0, 0, 0], [0, 0, 0], ["a"] * 3)
    beside = compute([1.0, 0, 0, NAN], [0, 0, 0, 1], ["a"] * 4)
    assert beside[:3] == alone and beside[3] == 0.0


def test_infinite_rewards_and_unequal_lengths_are_refused():
    with pytest.raises(ValueError, match="infinite"):
        compute([1.0, math.inf], [0, 0], ["a", "a"])
    with pytest.raises(ValueError, match="lengths must agree"):
        compute([1.0], [0, 0], ["a"])
