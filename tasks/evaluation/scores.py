"""What an evaluation produces: one row per reply, and the scores made of them (metrics/evaluation.json)."""

from typing import Literal

from tasks.records import Domain, Finish, Record, Verdict

Mode = Literal["greedy", "sampled", "agent", "truncation"]


class Reply(Record):
    """One reply of one checkpoint to one question on one context.

    `context_tokens` is the length bucket of the context; `cut` says whether its middle was left out of the
    prompt, `evidence_cut` whether that hit an evidence document; `extracted` whether the reply states an
    answer.
    """

    checkpoint: str
    mode: Mode
    question_id: str
    domain: Domain
    context_tokens: int
    sample: int
    verdict: Verdict
    finish: Finish
    extracted: bool
    response_tokens: int
    cut: bool
    evidence_cut: bool
    text: str


class Interval(Record):
    """A difference of two models on the same questions, with its 95 % bootstrap interval. Shares in −1..1."""

    difference: float
    low: float
    high: float
    questions: int


class Cell(Record):
    """Scores over the questions of one domain and length, or of all (None). Over all lengths: the mean of
    lengths.

    `greedy` is of one greedy reply; the rest is of `samples` sampled ones: `first` is pass@1, the first sample;
    `average` avg@k; `pass_at_k` best-of-k by an oracle; `majority` the answer that most samples state. `guess` is
    the expected score of the best answer without reading. A score is None where every reply went unscored, which
    counts nowhere as wrong. `gain` compares avg@k with the base model. Lengths (tokens) and shares are plain means
    over sampled replies; unanswered ones state no answer.
    """

    domain: Domain | None
    context_tokens: int | None
    questions: int
    guess: float
    greedy: float | None
    first: float | None
    average: float | None
    pass_at_k: float | None
    majority: float | None
    gain: Interval | None
    response_tokens: float
    truncated_share: float
    unanswered_share: float
    unscored_share: float


class CheckpointScores(Record):
    """One checkpoint on the held-out items.

    `longest_reply` (tokens), `thinking_share` (replies that close a block of thinking) and `cut_share` (prompts
    without their middle) are over sampled replies; `generated_tokens` are all that evaluation sampled, greedily and
    by the memory agent, too.
    """

    checkpoint: str
    cells: tuple[Cell, ...]
    longest_reply: int
    generated_tokens: int
    thinking_share: float
    cut_share: float

    def cell(self, domain: Domain | None, context_tokens: int | None) -> Cell | None:
        """The cell of a domain and a length; None for a side means all of it."""
        found = (cell for cell in self.cells if (cell.domain, cell.context_tokens) == (domain, context_tokens))
        return next(found, None)


class Comparison(Record):
    """Two checkpoints on the same items: greedy replies by McNemar's exact test, sampled ones by `gain`.

    `only_first` and `only_second` count the items that just one of them gets right, of `pairs` that both have a
    verdict for; `unscored` items have none from one of them and are left out. `adjusted_p` is p after Holm's
    correction over all comparisons of the evaluation. Without pairs there is no p.
    """

    first: str
    second: str
    pairs: int
    only_first: int
    only_second: int
    unscored: int
    p: float | None
    adjusted_p: float | None
    gain: Interval | None  # of avg@k, second − first


class LongScores(Record):
    """Contexts longer than the window: memory agent and middle truncation, greedy, on the same questions."""

    checkpoint: str
    domain: Domain | None
    context_tokens: int
    questions: int
    guess: float
    agent: float | None
    truncation: float | None
    evidence_cut_share: float
    gain: Interval | None  # agent over truncation


class Provenance(Record):
    """Which code, parameters and libraries made the figures."""

    git_commit: str | None
    params_sha256: str
    python: str
    versions: dict[str, str]


class Evaluation(Record):
    """metrics/evaluation.json. `too_long` lists context lengths for which the test corpus is too small.

    `comparisons` pair each checkpoint with the one before it and with the first; one checkpoint alone has none.
    """

    samples: int
    temperature: float
    top_p: float
    window: int
    checkpoints: tuple[CheckpointScores, ...]
    long: tuple[LongScores, ...]
    too_long: tuple[int, ...]
    comparisons: tuple[Comparison, ...]
    provenance: Provenance

    @property
    def lengths(self) -> tuple[int, ...]:
        """Length buckets, ascending."""
        cells = (cell for scores in self.checkpoints for cell in scores.cells)
        return tuple(sorted({cell.context_tokens for cell in cells if cell.context_tokens is not None}))
