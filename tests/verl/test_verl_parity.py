"""One batch through the local engine and through verl's FSDP2 engine gives the same numbers.

All in fp32. The relative difference of two tensors is the norm of their difference over the norm of the local engine's,
each parameter by itself. Axes: B turns (rows), T reply tokens.
"""

import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from tasks.generation.local import load_model
from tasks.records import Finish
from tasks.rl.batch import TurnBatch
from tasks.rl.engines import local
from tasks.rl.engines.base import Update
from tasks.rl.engines.local import LocalEngine
from tasks.rl.entropy_control import Gate
from tasks.rl.selection import Selection
from tasks.tokenization import ChatTokenizer
from tests.conftest import CHECKOUT
from tests.rl.tiny import SPECIAL, WORDS, tiny_model, tiny_tokenizer
from tests.verl.parity import (
    BROKEN,
    END,
    RANKS,
    SOUND,
    STEPS,
    Case,
    Measured,
    captured,
    fixed_batch,
    weights_of,
)

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("verl") is None, reason="verl is not installed: pip install 'posttrain-flows[verl]'"
)

SCORE = 1e-5  # nats, of one token
RELATIVE = 1e-5
STEP_SHARE = 1e-2  # of the learning rate, for a weight; a wrong sign makes 2. Adam enlarges a small gradient's rounding
FAULT = 1e-2  # what a mistake makes at least: a thousand times the tolerance


@dataclass(frozen=True)
class Local:
    """An update of the local engine, with what it decided on the way."""

    measured: Measured
    update: Update
    batch: TurnBatch
    selection: Selection


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model, and beside it what verl measured on it."""
    folder = tmp_path_factory.mktemp("parity")
    tiny_model(vocabulary=len(SPECIAL) + len(WORDS)).save_pretrained(folder)
    tiny_tokenizer().save(folder)
    done = subprocess.run(
        [sys.executable, str(CHECKOUT / "tests/verl/parity.py"), str(folder)],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def with_verl(folder: Path, name: str, rank: int = 0) -> list[Measured]:
    return [Measured(**update) for update in torch.load(folder / f"{name}-{rank}.pt", weights_only=True)]


def with_local(folder: Path, case: Case) -> list[Local]:
    model, rl = load_model(folder), case.params.rl
    engine = LocalEngine(model, ChatTokenizer.load(folder), rl, rl.advantage_of(case.stage))
    return [update_locally(engine, model, step) for step in STEPS]


def update_locally(engine: LocalEngine, model: torch.nn.Module, step: int) -> Local:
    """All rows make one micro-batch, so that its one loss is the batch's."""
    with (
        captured(model) as adam,
        patch.object(local, "select", Watched(local.select)) as select,
        patch.object(local, "policy_loss", Watched(local.policy_loss)) as loss,
    ):
        update = engine.update(fixed_batch(), Gate(), step)
    [((batch, entropies_BT, *_), selection)] = select.calls
    [((logprobs_BT, advantages_B1, kept_BT, _), value)] = loss.calls
    measured = Measured(
        logprobs_BT=logprobs_BT.detach(),
        entropies_BT=entropies_BT,
        advantages_BT=advantages_B1 * kept_BT,
        loss=float(value.detach()),
        gradient_norm=update.gradient_norm,
        gradients=adam.gradients,
        optimiser=adam.settings,
        weights=weights_of(model),
    )
    return Local(measured, update, batch, selection)


class Watched:
    """A function that remembers what it was given and gave."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.calls: list[tuple[tuple[Any, ...], Any]] = []

    def __call__(self, *given: Any) -> Any:
        result = self._function(*given)
        self.calls.append((given, result))
        return result


def relative(theirs: Tensor | float, ours: Tensor | float) -> float:
    ours = torch.as_tensor(ours)
    return float((torch.as_tensor(theirs) - ours).norm() / ours.norm())


def largest_relative(theirs: dict[str, Tensor], ours: dict[str, Tensor]) -> float:
    assert theirs.keys() == ours.keys()
    return max(relative(theirs[name], ours[name]) for name in ours)


# ── the same ──


@pytest.fixture(scope="module", params=SOUND)
def both(request: pytest.FixtureRequest, folder: Path) -> tuple[list[Local], list[Measured]]:
    return with_local(folder, SOUND[request.param]), with_verl(folder, request.param)


def test_log_probabilities_and_entropies(both):
    ours, theirs = both[0][0].measured, both[1][0]
    torch.testing.assert_close(theirs.logprobs_BT, ours.logprobs_BT, atol=SCORE, rtol=0)
    torch.testing.assert_close(theirs.entropies_BT, ours.entropies_BT, atol=SCORE, rtol=0)


def test_advantages_with_gate_and_clipping(both):
    ours, theirs = both[0][0].measured, both[1][0]
    torch.testing.assert_close(theirs.advantages_BT, ours.advantages_BT, atol=1e-6, rtol=0)


def test_loss_and_every_gradient(both):
    ours, theirs = both[0][0].measured, both[1][0]
    assert relative(theirs.loss, ours.loss) < RELATIVE
    assert relative(theirs.gradient_norm, ours.gradient_norm) < RELATIVE
    assert largest_relative(theirs.gradients, ours.gradients) < RELATIVE
    assert all(bool(gradient.any()) for gradient in ours.gradients.values())  # each has something to compare


def test_the_optimisers_settings_and_the_rate_of_each_step(both):
    for ours, theirs in zip(*both, strict=True):
        assert theirs.optimiser == ours.measured.optimiser
        assert theirs.optimiser["lr"] == ours.update.learning_rate
    assert both[1][0].optimiser["lr"] < both[1][1].optimiser["lr"]


def test_weights_after_one_step_and_after_two(both):
    for ours, theirs in zip(*both, strict=True):
        tolerance = STEP_SHARE * ours.update.learning_rate
        for name, weight in ours.measured.weights.items():
            torch.testing.assert_close(theirs.weights[name], weight, atol=tolerance, rtol=0)


def test_on_policy_means_no_drift_at_all(both):
    assert [update.drift for update in both[1]] == [0.0, 0.0]


# ── the batch asks for it ──


def test_the_batch_has_what_can_go_wrong():
    episodes = fixed_batch()
    turns = [turn for episode in episodes for turn in episode.turns]
    domains = [episode.domain for episode in episodes]
    assert len(set(domains)) == 5
    assert 1 in {domains.count(domain) for domain in domains}
    assert sum(episode.reward is None for episode in episodes) == 1
    assert {len(episode.turns) for episode in episodes} == {1, 2, 3}
    assert len({len(turn.response_ids) for turn in turns}) > 5
    truncated = [turn for turn in turns if turn.finish is Finish.TRUNCATED]
    assert len(truncated) > 3
    assert not any(END in turn.response_ids for turn in truncated)


def test_clipping_and_gate_decide_something(folder):
    for name, case in SOUND.items():
        ours = with_local(folder, case)[0]
        negative_B = ours.batch.advantages_B < 0
        assert 0 < ours.update.kept_share < 1
        assert ours.update.gate.on == (name == "gated")
        assert bool(ours.selection.teaching_B[negative_B].any()) != ours.update.gate.on
        assert not bool(ours.selection.teaching_B.all())


def test_verl_worked_in_several_micro_batches_with_rows_of_padding(folder):
    turns = sum(len(episode.turns) for episode in fixed_batch())
    for name, case in SOUND.items():
        [first, _] = with_verl(folder, name)
        assert first.micro_batches > 1
        assert first.rows * case.ranks == -(-turns // RANKS) * RANKS > turns


def test_ranks_share_the_weights_and_have_different_numbers_of_tokens(folder):
    one, other = (with_verl(folder, "sharded", rank)[0] for rank in range(RANKS))
    assert one.held + other.held == pytest.approx(1)
    assert 0 < one.held < 1
    assert one.tokens != other.tokens  # else a mean of the ranks' own means would pass
    assert one.tokens + other.tokens == with_verl(folder, "domain")[0].tokens


# ── a mistake would show ──


def test_a_mean_of_each_micro_batch_would_show(folder):
    ours, theirs = with_local(folder, BROKEN["denominator"])[0].measured, with_verl(folder, "denominator")[0]
    assert relative(theirs.loss, ours.loss) > FAULT
    assert all(relative(theirs.gradients[name], gradient) > FAULT for name, gradient in ours.gradients.items())
    torch.testing.assert_close(theirs.advantages_BT, ours.advantages_BT, atol=1e-6, rtol=0)


def test_a_forgotten_clipping_would_show(folder):
    ours, theirs = with_local(folder, BROKEN["clipping"])[0].measured, with_verl(folder, "clipping")[0]
    assert relative(theirs.advantages_BT, ours.advantages_BT) > FAULT
    assert all(relative(theirs.gradients[name], gradient) > FAULT for name, gradient in ours.gradients.items())


def test_scores_at_another_temperature_would_show(folder):
    ours, theirs = with_local(folder, BROKEN["temperature"])[0].measured, with_verl(folder, "temperature")[0]
    assert relative(theirs.logprobs_BT, ours.logprobs_BT) > FAULT
    assert abs(theirs.drift) > FAULT


def test_a_forgotten_factor_of_data_parallelism_would_show(folder):
    ours, theirs = with_local(folder, BROKEN["factor"])[0].measured, with_verl(folder, "factor")[0]
    assert theirs.loss * RANKS == pytest.approx(ours.loss, rel=RELATIVE)
    assert theirs.gradient_norm * RANKS == pytest.approx(ours.gradient_norm, rel=RELATIVE)
    for name, gradient in ours.gradients.items():
        assert relative(theirs.gradients[name] * RANKS, gradient) < RELATIVE
