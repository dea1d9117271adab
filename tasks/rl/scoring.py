"""From finished rollouts to episodes: the verdict, the reward and the lenient score of each."""

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.records import Finish, Question
from tasks.rewards.judge import Judge
from tasks.rewards.judging.verdicts import Attempt, verdicts_of
from tasks.rewards.lenient import lenient_score
from tasks.rewards.rules import reward_of
from tasks.rl.episodes import Episode, Turn


@dataclass(frozen=True)
class Rollout:
    """A question's turns and the reply that the last of them gave."""

    group: int
    question: Question
    turns: tuple[Turn, ...]
    reply: str
    finish: Finish


def score(rollouts: Sequence[Rollout], judge: Judge | None) -> list[Episode]:
    """Episodes in order. What the rule leaves open is asked of the judge together; its outage is no verdict."""
    attempts = [Attempt(rollout.question, rollout.reply, rollout.finish) for rollout in rollouts]
    return [
        Episode(
            group=rollout.group,
            domain=rollout.question.domain,
            turns=rollout.turns,
            verdict=verdict,
            reward=reward_of(verdict),
            lenient=lenient_score(rollout.reply, rollout.finish, rollout.question),
        )
        for rollout, verdict in zip(rollouts, verdicts_of(attempts, judge), strict=True)
    ]
