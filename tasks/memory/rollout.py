"""Memory trajectories for the trainer: G readings of each item's documents, judged by their final answers."""

from collections.abc import Sequence

from tasks.generation.base import Generator, Sampling
from tasks.memory.agent import AgentRun, run_agent
from tasks.params import MemoryParams
from tasks.records import Item
from tasks.rewards.rules import check, reward_of
from tasks.rl.episodes import Episode
from tasks.tokenization import ChatTokenizer


def roll_out(
    generator: Generator,
    tokenizer: ChatTokenizer,
    items: Sequence[Item],
    group_size: int,
    params: MemoryParams,
    sampling: Sampling,
    seed: int,
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
    return [
        _episode(index // group_size, item, run) for index, (item, run) in enumerate(zip(repeated, runs, strict=True))
    ]


def _episode(group: int, item: Item, run: AgentRun) -> Episode:
    verdict = check(run.reply, run.finish, item.question)
    return Episode(
        group=group,
        domain=item.question.domain,
        turns=run.turns,
        verdict=verdict,
        reward=reward_of(verdict),
    )
