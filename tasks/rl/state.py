"""What an RL stage remembers between steps, and its place on disk: `.work/rl-<name>/resume/`."""

import hashlib
import json
import logging
import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from tasks.artifacts import atomic_folder, write_json
from tasks.params import MemoryParams, Params, StageParams
from tasks.records import Finish, Record
from tasks.rl.engines.base import Engine, Update
from tasks.rl.entropy_control import Gate
from tasks.rl.episodes import Episode
from tasks.rl.sampling import SamplerState

STATE_FILE = "state.json"
DECIDING = ("type", "model", "context_tokens", "max_output_tokens")  # of a judge: the rest is where and how fast
logger = logging.getLogger(__name__)


class StepMetrics(Record):
    """One step's figures. Lengths in tokens, shares in 0..1, entropy in nats; a mean over nothing is None.

    `reward` is the strict one, which the gradient sees; `lenient_score` (tasks/rewards/lenient.py) is only shown.
    """

    step: int
    reward: float | None
    lenient_score: float | None
    domain_rewards: dict[str, float | None]
    entropy: float
    gate: bool
    kept_share: float
    response_length: float
    truncated_share: float
    gradient_norm: float
    unscored_share: float
    learning_rate: float
    skipped: bool

    def flat(self) -> dict[str, float]:
        """Names and values as the tracker takes them; what is None is left out."""
        named = self.model_dump(exclude={"step", "domain_rewards"})
        named |= {f"reward/{domain}": reward for domain, reward in self.domain_rewards.items()}
        return {name: float(value) for name, value in named.items() if value is not None}

    def summary(self) -> str:
        """The step in a line."""
        reward = "none" if self.reward is None else f"{self.reward:.3f}"
        gate = " gate on" if self.gate else ""
        return f"reward {reward} entropy {self.entropy:.3f} length {self.response_length:.1f}{gate}"


class Outcome(Record):
    """A question's scored episodes so far: their number and summed reward."""

    count: int
    total: float


class StageState(Record):
    """All of a stage but weights and optimiser. Random numbers derive from (seed, name, step): no state of
    theirs.
    """

    fingerprint: str
    step: int
    sampler: SamplerState
    gate: Gate
    metrics: tuple[StepMetrics, ...]
    outcomes: dict[str, Outcome]


def measure(step: int, episodes: Sequence[Episode], update: Update) -> StepMetrics:
    """Summarise a step. Lengths and truncation are over turns, rewards over scored episodes. The lenient score has
    nothing to do with the judge: its outage leaves it whole.
    """
    turns = [turn for episode in episodes for turn in episode.turns]
    domains = sorted({episode.domain for episode in episodes})
    rewards = {domain: _mean([e.reward for e in episodes if e.domain == domain]) for domain in domains}
    return StepMetrics(
        step=step,
        reward=_mean([episode.reward for episode in episodes]),
        lenient_score=_mean([episode.lenient for episode in episodes]),
        domain_rewards={str(domain): reward for domain, reward in rewards.items()},
        entropy=update.entropy,
        gate=update.gate.on,
        kept_share=update.kept_share,
        response_length=sum(len(turn.response_ids) for turn in turns) / len(turns),
        truncated_share=sum(turn.finish is Finish.TRUNCATED for turn in turns) / len(turns),
        gradient_norm=update.gradient_norm,
        unscored_share=sum(episode.reward is None for episode in episodes) / len(episodes),
        learning_rate=update.learning_rate,
        skipped=update.skipped,
    )


def _mean(scores: Sequence[float | None]) -> float | None:
    scored = [score for score in scores if score is not None]
    return math.fsum(scored) / len(scored) if scored else None


def with_outcomes(
    outcomes: Mapping[str, Outcome], questions: Sequence[str], episodes: Sequence[Episode]
) -> dict[str, Outcome]:
    """Add a batch's scored episodes; `questions[g]` is the key of group g."""
    updated = dict(outcomes)
    for episode in episodes:
        if episode.reward is not None:
            key = questions[episode.group]
            old = updated.get(key, Outcome(count=0, total=0.0))
            updated[key] = Outcome(count=old.count + 1, total=old.total + episode.reward)
    return updated


def fingerprint_of(
    name: str,
    params: Params,
    limits: StageParams,
    memory: MemoryParams | None,
    input_hashes: Mapping[str, str],
) -> str:
    """Hash of everything that decides a stage's result: its own parameters and its inputs' contents."""
    tree = {
        "name": name,
        "seed": params.seed,
        "threads": params.threads,
        "rl": params.rl.model_dump(mode="json", exclude={"stages", "checkpoint_every", "unscored_alarm_share"}),
        "limits": limits.model_dump(mode="json"),
        "memory": memory.model_dump(mode="json") if memory else None,
        "judge": params.judge and params.judge.model_dump(mode="json", include=set(DECIDING)),
        "inputs": dict(input_hashes),
    }
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()


def save_resume(folder: Path, state: StageState, engine: Engine) -> None:
    """Replace the resume point, atomically: a kill leaves the old one or the new one."""
    with atomic_folder(folder) as temporary:
        engine.save_state(temporary)
        write_json(temporary / STATE_FILE, state)


def load_resume(folder: Path, fingerprint: str, engine: Engine) -> StageState | None:
    """Restore the engine and return the state; None, with a message, when there is none that fits.

    A state of other parameters or data is removed: continuing it would mix two runs.
    """
    file = folder / STATE_FILE
    if not file.is_file():
        return None
    try:
        state = StageState.model_validate_json(file.read_bytes())
    except ValidationError as error:
        _discard(folder, f"is of another version ({error.error_count()} fields differ)")
        return None
    if state.fingerprint != fingerprint:
        _discard(folder, "belongs to other parameters or inputs")
        return None
    engine.load_state(folder)
    logger.info("continuing after step %d from %s", state.step, folder)
    return state


def _discard(folder: Path, reason: str) -> None:
    logger.warning("the resume state in %s %s: removed, the stage starts anew", folder, reason)
    shutil.rmtree(folder)
