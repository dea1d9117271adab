"""The RL loop of one stage: draw questions, roll out, update, record; resumable at every step.

Blind to the algorithm (the engine's), to the rollout (full context or memory agent) and to where it reports.
"""

import hashlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tasks.params import RLParams
from tasks.records import Item
from tasks.rl.engines.base import Engine
from tasks.rl.entropy_control import Gate
from tasks.rl.episodes import Episode
from tasks.rl.sampling import DomainSampler, pooled
from tasks.rl.state import StageState, StepMetrics, load_resume, measure, save_resume, with_outcomes
from tasks.tracking import Tracker

logger = logging.getLogger(__name__)

Rollout = Callable[[Sequence[Item], int], list[Episode]]  # (items of a batch, seed) to the episodes of its groups
Report = Callable[[StepMetrics], None]


def step_seed(seed: int, name: str, step: int) -> int:
    """The seed of one step's rollouts: 63 bits, independent of every other step's."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}/{step}".encode()).digest()[:8]) >> 1


def question_key(item: Item) -> str:
    """A question on one context: the same question may return on a context of another length."""
    return f"{item.question.id}@{item.length_bucket}"


def make_sampler(items: Sequence[Item], params: RLParams, seed: int) -> DomainSampler:
    """Balance the items by domain, or draw from all of them alike where `batches` is uniform."""
    questions: dict[str, list[str]] = {}
    for item in items:
        questions.setdefault(item.question.domain.value, []).append(question_key(item))
    weights = {domain.value: weight for domain, weight in params.domain_weights.items()}
    if params.batches == "uniform":
        questions, weights = pooled(questions, weights)
    return DomainSampler(questions, weights, params.batch_prompts, seed)


def run_steps(
    name: str,
    items: Sequence[Item],
    steps: int,
    params: RLParams,
    seed: int,
    *,
    engine: Engine,
    roll_out: Rollout,
    resume: Path,
    fingerprint: str,
    tracker: Tracker,
    report: Report,
) -> StageState:
    """Train to step `steps`, from the resume point in `resume` when one fits, and return the final state."""
    sampler = make_sampler(items, params, seed)
    state = load_resume(resume, fingerprint, engine) or StageState(
        fingerprint=fingerprint, step=0, sampler=sampler.state(), gate=Gate(), metrics=(), outcomes={}
    )
    sampler.restore(state.sampler)
    by_key = {question_key(item): item for item in items}
    while state.step < steps:
        started = time.monotonic()
        state = _advance(name, state, by_key, sampler, seed, engine, roll_out)
        metrics = state.metrics[-1]
        alarm(metrics, params.unscored_alarm_share)
        tracker.log_metrics({**metrics.flat(), "seconds": time.monotonic() - started}, metrics.step)
        report(metrics)
        if state.step % params.checkpoint_every == 0 and state.step < steps:
            save_resume(resume, state, engine)
    return state


def _advance(
    name: str,
    state: StageState,
    by_key: Mapping[str, Item],
    sampler: DomainSampler,
    seed: int,
    engine: Engine,
    roll_out: Rollout,
) -> StageState:
    step = state.step + 1
    keys = sampler.next_batch()
    episodes = roll_out([by_key[key] for key in keys], step_seed(seed, name, step))
    update = engine.update(episodes, state.gate, step)
    return StageState(
        fingerprint=state.fingerprint,
        step=step,
        sampler=sampler.state(),
        gate=update.gate,
        metrics=(*state.metrics, measure(step, episodes, update)),
        outcomes=with_outcomes(state.outcomes, keys, episodes),
    )


def alarm(metrics: StepMetrics, share: float) -> None:
    """Warn when too many episodes have no verdict."""
    if metrics.unscored_share > share:
        logger.warning(
            "step %d: %.0f %% of the episodes are unscored (alarm above %.0f %%); check judge and golds",
            metrics.step,
            100 * metrics.unscored_share,
            100 * share,
        )
