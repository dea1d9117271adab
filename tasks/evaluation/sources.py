"""Everything the report tells about, read from metrics/ and data/ and parsed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from tasks.artifacts import read_items, sha256_of, stream_items
from tasks.errors import InputError
from tasks.evaluation.benchmarks.results import BenchmarkScores
from tasks.evaluation.files import BENCHMARKS, METRICS, PICTURE, REPLIES, TEST_ITEMS, TRAIN_ITEMS, read_replies
from tasks.evaluation.overlap import Overlap, overlap
from tasks.evaluation.provenance import Made, Origin, made, origins
from tasks.evaluation.scores import Evaluation, Reply
from tasks.filtering.funnel import Funnel
from tasks.merge.metrics import MergeMetrics
from tasks.params import RL_STAGES, Params
from tasks.records import Domain, Item

FOLDER = Path("metrics")
CHECKPOINTS = Path("checkpoints")
SELF_PLAY = FOLDER / "synthesize-self_play.json"
VERIFY, BALANCE, MERGE = FOLDER / "verify.json", FOLDER / "balance.json", FOLDER / "merge.json"
R = TypeVar("R")


class Step(BaseModel):
    """The figures of one RL step that are drawn. A reward is None where nothing was scored.

    `reward` is the strict training reward; `lenient_score` the one that evaluation would give, where it was measured.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    step: int
    reward: float | None
    lenient_score: float | None = None
    domain_rewards: dict[Domain, float | None]
    entropy: float | None
    gate: bool
    kept_share: float | None
    response_length: float | None
    truncated_share: float | None
    gradient_norm: float | None


class Curves(BaseModel):
    """metrics/rl-<stage>.json."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    steps: tuple[Step, ...]


class Balance(BaseModel):
    """metrics/balance.json: training items per domain and pass-rate bin, from hardest to easiest; kept ones per
    generator.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    before: dict[Domain, list[int]]
    after: dict[Domain, list[int]]
    generators: dict[str, int]


class Round(BaseModel):
    """One round of self-play on training documents: solvers fail more often where questions are harder."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    round: int
    proposed: int
    well_formed: int
    verified: int
    mean_solve_rate: float | None
    mean_verified_rate: float | None


class SelfPlay(BaseModel):
    """metrics/synthesize-self_play.json."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    rounds: tuple[Round, ...]


@dataclass(frozen=True)
class Example:
    """A held-out item with the greedy reply of every checkpoint."""

    item: Item
    replies: tuple[Reply, ...]


@dataclass(frozen=True)
class Sources:
    """The report's input. `benchmarks` is None where none were asked; `data` are hashes of the data compared."""

    evaluation: Evaluation
    benchmarks: BenchmarkScores | None
    curves: Mapping[str, Curves]
    self_play: SelfPlay
    funnel: Funnel
    balance: Balance
    picture: bytes
    merge: MergeMetrics
    overlap: Overlap
    examples: tuple[Example, ...]
    checkpoints: tuple[Made, ...]
    origins: tuple[Origin, ...]
    data: Mapping[Path, str]


def read_sources(params: Params) -> Sources:
    """Read all metrics of a finished run.

    Raises:
        InputError: one is missing or unreadable.
        CheckpointError: a checkpoint's lineage is missing or damaged.
    """
    evaluation = _read(METRICS, Evaluation)
    test = read_items(TEST_ITEMS)
    return Sources(
        evaluation=evaluation,
        benchmarks=_read(BENCHMARKS, BenchmarkScores) if BENCHMARKS.is_file() else None,
        curves={stage: _read(path, Curves) for stage, path in _curve_files().items()},
        self_play=_read(SELF_PLAY, SelfPlay),
        funnel=_read(VERIFY, Funnel),
        balance=_read(BALANCE, Balance),
        picture=_bytes(PICTURE),
        merge=_read(MERGE, MergeMetrics),
        overlap=overlap(stream_items(TRAIN_ITEMS), test, params.filtering.contamination_ngram),
        examples=choose_examples(test, read_replies(REPLIES)),
        checkpoints=tuple(_made(scores.checkpoint, params) for scores in evaluation.checkpoints),
        origins=origins(_stage_files(), params.tracking),
        data={path: sha256_of(path) for path in (TRAIN_ITEMS, TEST_ITEMS, REPLIES)},
    )


def _curve_files() -> dict[str, Path]:
    return {stage: FOLDER / f"rl-{stage}.json" for stage in RL_STAGES}


def _stage_files() -> dict[Path, str]:
    """The files that are shown, and the stage that writes each, as its MLflow runs are called."""
    files = {
        SELF_PLAY: "synthesize-self_play",
        VERIFY: "verify",
        BALANCE: "balance",
        **{path: f"rl-{stage}" for stage, path in _curve_files().items()},
        MERGE: "merge",
        METRICS: "evaluate",
    }
    return {**files, BENCHMARKS: "evaluate"} if BENCHMARKS.is_file() else files


def _made(checkpoint: str, params: Params) -> Made:
    return made(params.base_model if checkpoint == "base" else CHECKPOINTS / checkpoint, checkpoint)


def choose_examples(items: list[Item], replies: list[Reply]) -> tuple[Example, ...]:
    """One item a domain, the first by id of the longest context: chosen before looking at replies."""
    longest = max(item.length_bucket for item in items)
    chosen: dict[Domain, Item] = {}
    for item in sorted(items, key=lambda item: item.question.id):
        if item.length_bucket == longest:
            chosen.setdefault(item.question.domain, item)
    return tuple(
        Example(item, tuple(reply for reply in replies if _is_greedy_reply(reply, item)))
        for _, item in sorted(chosen.items())
    )


def _is_greedy_reply(reply: Reply, item: Item) -> bool:
    return (
        reply.mode == "greedy" and reply.question_id == item.question.id and reply.context_tokens == item.length_bucket
    )


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist; run the stage that writes it first") from error


def _read(path: Path, kind: type[R]) -> R:
    try:
        return TypeAdapter(kind).validate_json(_bytes(path))
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise InputError(f"{path}: {where}: {problem['msg']}; run the stage that writes it again") from error
