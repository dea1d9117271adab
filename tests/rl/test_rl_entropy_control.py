"""Entropy by hand, the two-threshold switch, and what it lets through (cases AE-01, RL-06)."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.errors import PipelineError
from tasks.params import EntropyControlParams
from tasks.rl.entropy_control import Gate, batch_entropy, kept_sequences, token_entropies

INF = math.inf
CONTROL = EntropyControlParams(low=0.2, high=0.5)


@pytest.mark.parametrize(
    ("logits", "expected"),
    [
        ([1.0, 2.0, -INF], 0.5822),
        ([0.0, 0.0, -INF], 0.6931),
        ([0.0, -INF, -INF], 0.0),
        ([0.0, 0.0, 0.0, 0.0], math.log(4)),
        ([1e30, 0.0], 0.0),
    ],
)
def test_entropy_by_hand_with_finite_gradients(logits, expected):
    logits_TV = torch.tensor([logits], requires_grad=True)
    entropy = token_entropies(logits_TV)
    assert entropy.item() == pytest.approx(expected, abs=1e-4)
    entropy.sum().backward()
    assert bool(logits_TV.grad.isfinite().all())


def test_half_precision_extremes():
    logits = torch.tensor([[65504.0, -65504.0]], dtype=torch.float16)
    assert token_entropies(logits).tolist() == [0.0]


def test_the_gradient_is_that_of_the_definition():
    logits = torch.randn(5, 7, dtype=torch.float32, requires_grad=True)
    token_entropies(logits, chunk_tokens=2).sum().backward()
    chunked = logits.grad.clone()
    logits.grad = None
    p = logits.softmax(-1)
    (-(p * p.log()).sum()).backward()
    torch.testing.assert_close(chunked, logits.grad, atol=1e-5, rtol=1e-5)


def test_chunks_bound_what_is_computed_at_once(monkeypatch):
    """The largest block that any softmax sees is one chunk, forward and backward."""
    seen = []
    softmax = torch.Tensor.log_softmax
    monkeypatch.setattr(torch.Tensor, "log_softmax", lambda x, dim: seen.append(x.shape[0]) or softmax(x, dim))
    logits = torch.randn(50, 11, requires_grad=True)
    token_entropies(logits, chunk_tokens=8).sum().backward()
    assert max(seen) == 8 and sum(seen) == 100


def test_no_tokens():
    assert token_entropies(torch.zeros(0, 5)).shape == (0,)


def test_eq_11_is_a_mean_of_sequence_means():
    entropies = torch.tensor([[1.0, 9.0, 9.0], [0.2, 0.4, 0.6], [9.0, 9.0, 9.0]])
    mask = torch.tensor([[1, 0, 0], [1, 1, 1], [0, 0, 0]]).bool()
    assert batch_entropy(entropies, mask) == pytest.approx((1.0 + 0.4) / 2)  # the token mean would be 0.55
    assert math.isnan(batch_entropy(entropies, torch.zeros_like(mask)))


def test_the_gate_has_memory():
    gate, states = Gate(), []
    for entropy in (0.3, 0.6, 0.4, 0.15, 0.3):
        gate = gate.update(entropy, CONTROL)
        states.append(gate.on)
    assert states == [False, True, True, False, False]


@pytest.mark.parametrize("on", [False, True])
def test_at_a_threshold_nothing_changes(on):
    assert Gate(on).update(0.5, CONTROL) == Gate(on)
    assert Gate(on).update(0.2, CONTROL) == Gate(on)


@pytest.mark.parametrize("entropy", [math.nan, INF, -INF])
@pytest.mark.parametrize("on", [False, True])
def test_an_entropy_that_is_no_number_ends_the_run(on, entropy):
    with pytest.raises(PipelineError, match="must be finite"):
        Gate(on).update(entropy, CONTROL)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), max_size=30))
def test_the_gate_is_what_the_last_crossing_made_it(entropies):
    gate = Gate()
    for entropy in entropies:
        gate = gate.update(entropy, CONTROL)
    crossings = [entropy > CONTROL.high for entropy in entropies if not 0.2 <= entropy <= 0.5]
    assert gate.on == (crossings[-1] if crossings else False)


def test_an_open_gate_keeps_all_and_a_shut_one_the_right_and_better():
    advantages = torch.tensor([0.5, 0.4, 0.3, 0.2, 0.1, -1, -1, -1, 0.0, 0.2])
    rewards = torch.tensor([1.0, 1, 1, 1, 1, 0, 0, 0, math.nan, 0.0])
    assert kept_sequences(Gate(), advantages, rewards).all()
    assert kept_sequences(Gate(on=True), advantages, rewards).tolist() == [True] * 5 + [False] * 5
    assert not kept_sequences(Gate(on=True), -advantages.abs(), rewards).any()
