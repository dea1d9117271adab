"""verl's rows as episodes again. A row is a turn; its key is `STEP-PLACE_SESSION_TURN`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from tasks.errors import PipelineError
from tasks.params import RLParams
from tasks.records import Domain, Finish, Verdict
from tasks.rewards.rules import reward_of
from tasks.rl.episodes import Episode, Turn
from tasks.rl.judge_counts import Totals

CAUSE = "the cause stands in the log above, at 'Error in _run_prompt'"


@dataclass(frozen=True)
class Row:
    """One turn as it lies in verl's queue; `entropies` are those of its reply tokens in nats."""

    key: str
    prompt: tuple[int, ...]
    reply: tuple[int, ...]
    entropies: Tensor
    finish: Finish
    verdict: Verdict
    domain: Domain
    lenient: float | None
    judge: Totals  # of the process that scored the episode, so far

    @classmethod
    def of(
        cls, key: str, prompt: Tensor, reply: Tensor, entropies: Tensor, extra: dict[str, Any], domain: str
    ) -> "Row":
        """Parse what the agent loop wrote."""
        return cls(
            key=key,
            prompt=tuple(prompt.tolist()),
            reply=tuple(reply.tolist()),
            entropies=entropies,
            finish=Finish(extra["finish"]),
            verdict=Verdict(extra["verdict"]),
            domain=Domain(domain),
            lenient=extra["lenient"],
            judge=tuple(extra["judge"]),
        )

    @property
    def place(self) -> tuple[int, int, int]:
        """Question in the batch, sample of it, turn of that."""
        return place_of(self.key)


def place_of(key: str) -> tuple[int, int, int]:
    """(question in the batch, sample, turn) of a row's key; padding sorts last."""
    uid, session, turn = key.rsplit("_", 2)
    _, dash, place = uid.partition("-")
    return (int(place) if dash else 2**31, int(session), int(turn))


def ordered(keys: Sequence[str]) -> list[int]:
    """The order in which the rows belong: by question, sample, turn."""
    return sorted(range(len(keys)), key=lambda number: place_of(keys[number]))


def episodes_of(rows: Sequence[Row], params: RLParams) -> tuple[Episode, ...]:
    """Episodes of ordered rows: their turns follow one another as the rows do.

    Raises:
        PipelineError: an episode is missing, because its rollout failed: verl would train on the others.
    """
    turns: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        turns.setdefault(row.place[:2], []).append(row)
    expected = params.batch_prompts * params.group_size
    if len(turns) != expected:
        raise PipelineError(f"{expected - len(turns)} of {expected} episodes failed; {CAUSE}")
    return tuple(_episode(place, own) for (place, _), own in turns.items())


def _episode(place: int, rows: Sequence[Row]) -> Episode:
    verdict = rows[-1].verdict
    return Episode(
        group=place,
        domain=rows[0].domain,
        turns=tuple(Turn(row.prompt, row.reply, row.finish) for row in rows),
        verdict=verdict,
        reward=reward_of(verdict),
        lenient=rows[-1].lenient,
    )
