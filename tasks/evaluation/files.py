"""Where evaluation keeps its results, and how replies are stored."""

from collections.abc import Sequence
from pathlib import Path

from tasks.artifacts import write_parquet
from tasks.errors import InputError
from tasks.evaluation.scores import Reply

TRAIN_ITEMS = Path("data/balanced/train.parquet")  # every RL stage draws from these
TEST_ITEMS = Path("data/verified/test.parquet")
REPLIES = Path("data/evaluation/replies.parquet")
LONG_ITEMS = Path("data/evaluation/long.parquet")
PICTURE = Path("data/verified/questions.png")
METRICS = Path("metrics/evaluation.json")
BENCHMARKS = Path("metrics/benchmarks.json")


def write_replies(path: Path, replies: Sequence[Reply]) -> None:
    """One row per reply, columns as in `Reply`."""
    import pyarrow as pa

    write_parquet(path, pa.Table.from_pylist([reply.model_dump(mode="json") for reply in replies]))


def read_replies(path: Path) -> list[Reply]:
    """Read what `write_replies` wrote.

    Raises:
        InputError: there is no such file.
    """
    import pyarrow.parquet as pq

    if not path.is_file():
        raise InputError(f"{path} does not exist; run python -m tasks.evaluation.evaluate first")
    return [Reply.model_validate(row) for row in pq.read_table(path).to_pylist()]
