"""What scoring benchmarks produces: one row per reply, and figures made of them (metrics/benchmarks.json)."""

from typing import Literal

from tasks.evaluation.scores import Interval, Provenance
from tasks.records import Finish, Record

Way = Literal["truncation", "agent"]  # how an input longer than the window is read


class BenchmarkRun(Record):
    """One checkpoint on one benchmark: who was asked what, and how. Kept with the replies.

    `source` is the data with its revision and content hash; the last five fields must be equal where figures stand side
    by side. `window` is the most tokens of a prompt before the chat template.
    """

    benchmark: str
    checkpoint: str
    way: Way
    checkpoint_sha256: str
    source: str
    samples: int
    window: int
    max_output_tokens: int
    temperature: float
    top_p: float
    judge: str | None


class BenchmarkReply(Record):
    """One reply of one checkpoint to one task. `cut` says whether middle truncation shortened the prompt.

    `official` and `robust` are scores in 0..1, None where unscored. Tokens are actual ones: of the whole input, and of
    all that was sampled (every turn of the agent).
    """

    benchmark: str
    checkpoint: str
    way: Way
    task_id: str
    subset: str
    sample: int
    official: float | None
    robust: float | None
    answered: bool
    finish: Finish
    input_tokens: int
    output_tokens: int
    cut: bool
    text: str


class BenchmarkCell(Record):
    """A checkpoint on one subset of a benchmark, or on all of it (None). Shares and scores are in 0..1.

    The denominator is fixed: what failed, or went unscored, is 0. `official` and `robust` are avg@k, `first` is pass@1
    (the first sample), `best` the best of N samples by an oracle; these two are robust scores. `gain` compares robust
    averages with the first checkpoint of the run on the same tasks.
    """

    benchmark: str
    checkpoint: str
    way: Way
    subset: str | None
    tasks: int
    samples: int
    official: float
    robust: float
    first: float
    best: float
    unscored_share: float
    unanswered_share: float
    truncated_share: float
    cut_share: float
    output_tokens: float
    gain: Interval | None


class BenchmarkScores(Record):
    """metrics/benchmarks.json. `sources` names the data behind each benchmark, with its revision and its hash."""

    cells: tuple[BenchmarkCell, ...]
    sources: dict[str, str]
    window: int
    max_output_tokens: int
    temperature: float
    top_p: float
    judge: str | None
    provenance: Provenance
