"""What was sampled in a step, as one parquet file: `step-00001.parquet`, a row a turn."""

from collections.abc import Sequence
from pathlib import Path

from tasks.artifacts import write_parquet
from tasks.records import Question
from tasks.rl.episodes import Episode
from tasks.tokenization import ChatTokenizer


def write_rollouts(
    folder: str, step: int, episodes: Sequence[Episode], questions: Sequence[Question], tokenizer: ChatTokenizer
) -> None:
    """Write the step's episodes; `questions[g]` is that of group g. A rerun of the step replaces the file."""
    import pyarrow as pa

    rows = [
        {
            "step": step,
            "question_id": questions[episode.group].id,
            "domain": episode.domain.value,
            "gold": questions[episode.group].gold,
            "episode": number,
            "turn": place,
            "prompt": tokenizer.decode(turn.prompt_ids),
            "reply": tokenizer.decode(turn.response_ids),
            "finish": turn.finish.value,
            "verdict": episode.verdict.value,
            "reward": episode.reward,
        }
        for number, episode in enumerate(episodes)
        for place, turn in enumerate(episode.turns)
    ]
    write_parquet(Path(folder) / f"step-{step:05d}.parquet", pa.Table.from_pylist(rows))
