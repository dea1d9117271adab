"""Episodes become rows: one advantage a trajectory, copied to its turns; broken episodes are refused."""

import math

import pytest

from tasks.records import Domain, Finish, Verdict
from tasks.rl.batch import collate
from tasks.rl.episodes import Episode, Turn

END = 1
VERDICTS = {1.0: Verdict.CORRECT, 0.0: Verdict.WRONG, None: Verdict.UNSCORED}


def episode(group, reward, *replies, domain=Domain.MULTI_HOP):
    turns = tuple(Turn((7, group), tuple(reply), Finish.FINISHED) for reply in replies)
    return Episode(group, domain, turns, VERDICTS[reward], reward)


def test_the_advantage_is_taken_per_trajectory_and_copied_to_its_turns():
    """Rewards 1, 0, 0 over trajectories of 3, 1 and 2 turns: mean 1/3, not the turns' 1/2."""
    batch = collate(
        [episode(0, 1.0, [5, 1], [5, 1], [6, 1]), episode(0, 0.0, [8, 1]), episode(0, 0.0, [9, 9, 1], [1])],
        "mean_only",
        END,
    )
    assert batch.advantages_B.tolist() == pytest.approx([2 / 3] * 3 + [-1 / 3] * 3)
    assert batch.rewards_B.tolist() == [1, 1, 1, 0, 0, 0]
    assert batch.lengths == [2, 2, 2, 2, 3, 1]
    assert batch.tokens_BT.tolist()[-2:] == [[9, 9, 1], [1, 0, 0]]
    assert batch.prompts == ((7, 0),) * 6


def test_unscored_rows_carry_nan_and_no_advantage():
    batch = collate([episode(0, 1.0, [5, 1]), episode(0, None, [5, 1]), episode(0, 0.0, [4, 1])], "domain", END)
    assert batch.advantages_B.tolist() == pytest.approx([0.7071, 0.0, -0.7071], abs=1e-4)
    assert math.isnan(batch.rewards_B[1])


def test_tokens_behind_the_first_end_are_dropped():
    batch = collate([episode(0, 1.0, [5, 1, 6, 1])], "domain", END)
    assert batch.mask_BT.int().tolist() == [[1, 1, 0, 0]]
    assert batch.lengths == [2]


def test_domains_are_normalised_apart():
    batch = collate(
        [episode(g, r, [1], domain=d) for g, r, d in (
            (0, 1.0, Domain.MULTI_HOP), (0, 0.0, Domain.MULTI_HOP), (1, 1.0, Domain.DIALOGUE_MEMORY),
        )],
        "domain",
        END,
    )  # fmt: skip
    assert batch.advantages_B.tolist() == pytest.approx([0.7071, -0.7071, 0.0], abs=1e-4)


def test_an_episode_needs_turns_and_a_reward_that_fits_its_verdict():
    with pytest.raises(ValueError, match="no turns"):
        Episode(0, Domain.MULTI_HOP, (), Verdict.WRONG, 0.0)
    for verdict, reward in ((Verdict.UNSCORED, 0.0), (Verdict.WRONG, None)):
        with pytest.raises(ValueError, match="None exactly when unscored"):
            Episode(0, Domain.MULTI_HOP, (Turn((1,), (1,), Finish.FINISHED),), verdict, reward)
