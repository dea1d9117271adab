"""Episodes as tensors: one row a turn, each with the advantage of its whole trajectory.

Axes: E episodes, B turns (rows), T reply tokens, padded.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.rl.advantage import Advantage, advantages
from tasks.rl.episodes import Episode
from tasks.rl.objectives import response_mask


@dataclass(frozen=True)
class TurnBatch:
    """What an update needs. `tokens_BT` is padded with 0, `mask_BT` marks real reply tokens, rewards may be
    NaN.
    """

    prompts: tuple[tuple[int, ...], ...]
    tokens_BT: Tensor
    mask_BT: Tensor
    advantages_B: Tensor
    rewards_B: Tensor

    @property
    def lengths(self) -> list[int]:
        """Reply tokens of each row."""
        lengths: list[int] = self.mask_BT.sum(1).tolist()
        return lengths


def collate(episodes: Sequence[Episode], kind: Advantage, end_id: int) -> TurnBatch:
    """Lay out all turns. Advantages are taken once per episode, then copied to its turns.

    After the copy they would weigh a trajectory by its number of turns. Whatever a reply holds behind its
    first end token is dropped.
    """
    rewards_E = torch.tensor([math.nan if episode.reward is None else episode.reward for episode in episodes])
    advantages_E = advantages(rewards_E, [e.group for e in episodes], [e.domain for e in episodes], kind)
    turns_E = torch.tensor([len(episode.turns) for episode in episodes])
    turns = [turn for episode in episodes for turn in episode.turns]
    lengths = [len(turn.response_ids) for turn in turns]
    tokens_BT = torch.zeros(len(turns), max(lengths, default=0), dtype=torch.long)
    for row, turn in enumerate(turns):
        tokens_BT[row, : lengths[row]] = torch.tensor(turn.response_ids)
    return TurnBatch(
        prompts=tuple(turn.prompt_ids for turn in turns),
        tokens_BT=tokens_BT,
        mask_BT=response_mask(tokens_BT, torch.tensor(lengths), end_id),
        advantages_B=advantages_E.repeat_interleave(turns_E),
        rewards_B=rewards_E.repeat_interleave(turns_E),
    )
