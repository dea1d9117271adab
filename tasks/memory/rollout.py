"""Memory trajectories for the trainer: G readings of each item's documents, judged by their final answers."""

from collections.abc import Sequence

from tasks.generation.base import Generator, Sampling
from tasks.memory.agent import run_agent
from tasks.params import MemoryParams
from tasks.records import Item
from tasks.rewards.judge import Judge
from tasks.rl.episodes import Episode
from tasks.rl.scoring import Rollout, score
from tasks.tokenization import ChatTokenizer


def roll_out(
    generator: Generator,
    tokenizer: ChatTokenizer,
    items: Sequence[Item],
    group_size: int,
    params: MemoryParams,
    sampling: Sampling,
    seed: int,
    judge: Judge | None = None,
) -> list[Episode]:
    """Sample `group_size` trajectories per item; episodes `[p·G, (p+1)·G)` are group p, those of item p.

    The final answer's reward belongs to the whole trajectory: one episode holds every turn, with the token
    ids as sampled (QwenLong-L1.5 §4.4, trajectory-level GRPO).
    """
    repeated = [item for item in items for _ in range(group_size)]
    runs = run_agent(
        generator,
        tokenizer,
        [item.documents for item in repeated],
        [item.question for item in repeated],
        params,
        sampling,
        seed,
    )
    rollouts = [
        Rollout(index // group_size, item.question, run.turns, run.reply, run.finish)
        for index, (item, run) in enumerate(zip(repeated, runs, strict=True))
    ]
    return score(rollouts, judge)
