"""What a rollout hands to the trainer: episodes made of turns. The trainer sees nothing else of a rollout.

A full-context rollout gives one turn an episode; the memory agent gives one turn a chunk and a final one
(a trajectory). Every episode of a group answers the same question.
"""

from dataclasses import dataclass, field

from tasks.records import Domain, Finish, Verdict


@dataclass(frozen=True)
class Turn:
    """One prompt and the sampled reply to it; the end token belongs to the reply when it is finished."""

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    finish: Finish
    logprobs: tuple[float, ...] = field(default=(), compare=False)  # as sampled; empty where not known


@dataclass(frozen=True)
class Episode:
    """All turns that led to one verdict. `group` numbers the question within the batch.

    `reward` is None exactly when the verdict is unscored: such an episode counts in no statistic and gets no
    gradient. `lenient` (tasks/rewards/lenient.py) is logged beside it and decides nothing.
    """

    group: int
    domain: Domain
    turns: tuple[Turn, ...]
    verdict: Verdict
    reward: float | None
    lenient: float | None = None

    def __post_init__(self) -> None:
        if not self.turns:
            raise ValueError(f"episode of group {self.group} has no turns; a rollout gives at least the final answer")
        if (self.reward is None) != (self.verdict is Verdict.UNSCORED):
            raise ValueError(
                f"verdict {self.verdict} with reward {self.reward}: a reward is None exactly when unscored; "
                "take it from reward_of(verdict)"
            )
