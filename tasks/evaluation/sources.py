"""Everything the report tells about, read from metrics/ and data/ and parsed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from tasks.artifacts import read_items
from tasks.errors import InputError
from tasks.evaluation.files import METRICS, PICTURE, REPLIES, TEST_ITEMS, read_replies
from tasks.evaluation.scores import Evaluation, Reply
from tasks.filtering.funnel import Funnel
from tasks.merge.metrics import MergeMetrics
from tasks.params import RL_STAGES
from tasks.records import Domain, Item

FOLDER = Path("metrics")
R = TypeVar("R")


class Step(BaseModel):
    """The figures of one RL step that are drawn. A reward is None where nothing was scored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    step: int
    reward: float | None
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


@dataclass(frozen=True)
class Example:
    """A held-out item with the greedy reply of every checkpoint."""

    item: Item
    replies: tuple[Reply, ...]


@dataclass(frozen=True)
class Sources:
    """The report's input."""

    evaluation: Evaluation
    curves: Mapping[str, Curves]
    funnel: Funnel
    balance: Balance
    picture: bytes
    merge: MergeMetrics
    examples: tuple[Example, ...]


def read_sources() -> Sources:
    """Read all metrics of a finished run.

    Raises:
        InputError: one is missing or unreadable.
    """
    return Sources(
        evaluation=_read(METRICS, Evaluation),
        curves={stage: _read(FOLDER / f"rl-{stage}.json", Curves) for stage in RL_STAGES},
        funnel=_read(FOLDER / "verify.json", Funnel),
        balance=_read(FOLDER / "balance.json", Balance),
        picture=_bytes(PICTURE),
        merge=_read(FOLDER / "merge.json", MergeMetrics),
        examples=choose_examples(read_items(TEST_ITEMS), read_replies(REPLIES)),
    )


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
