"""More inputs of the kinds RL-01, RL-02, RL-04, RL-08, AE-01 and RL-06, worked by hand."""

import math

import pytest
import torch

from tasks.params import EntropyControlParams, QuantileClipping
from tasks.rl.advantage import advantages
from tasks.rl.clipping import kept_tokens
from tasks.rl.entropy_control import Gate, batch_entropy, kept_sequences, token_entropies
from tasks.rl.objectives import policy_loss, response_mask

NAN = math.nan


@pytest.mark.parametrize(
    ("rewards", "groups", "domains", "expected"),
    [
        # RL-01: two lone samples of one domain: each is its own group mean, so neither is better than anything
        ([1, 0, 1, 0], [0, 0, 1, 2], ["a", "a", "b", "b"], [0.7071, -0.7071, 0.0, 0.0]),
        # a domain whose other group was aborted: the deviation is over three samples, 1/√3
        ([1, 1, 0, NAN, NAN], [0, 0, 0, 1, 1], ["a"] * 5, [0.5774, 0.5774, -1.1547, 0.0, 0.0]),
        # a domain of one scored sample beside unscored ones has no deviation
        ([1, NAN, NAN, NAN], [0, 0, 0, 0], ["a"] * 4, [0.0, 0.0, 0.0, 0.0]),
        # equal rewards that a mean cannot hold exactly: rounding must not become an advantage
        ([0.1, 0.1, 0.1], [0, 0, 0], ["a"] * 3, [0.0, 0.0, 0.0]),
    ],
)
def test_rl01_no_advantage_without_a_deviation(
    rewards: list[float], groups: list[int], domains: list[str], expected: list[float]
) -> None:
    found = advantages(torch.tensor(rewards, dtype=torch.float32), groups, domains, "domain")
    torch.testing.assert_close(found, torch.tensor(expected), atol=1e-3, rtol=0)


@pytest.mark.parametrize("kind", ["domain", "group", "mean_only"])
@pytest.mark.parametrize("scored", [(1.0, 0.0, 0.0), (0.0, 1.0), (1.0,), ()])
def test_rl04_unscored_samples_change_nobody(kind: str, scored: tuple[float, ...]) -> None:
    alone = advantages(torch.tensor(scored), [0] * len(scored), ["a"] * len(scored), kind)  # type: ignore[arg-type]
    padded = torch.tensor([*scored, NAN, NAN])
    beside = advantages(padded, [0] * len(padded), ["a"] * len(padded), kind)  # type: ignore[arg-type]
    torch.testing.assert_close(beside[: len(scored)], alone)
    assert beside[len(scored) :].tolist() == [0.0, 0.0]


def test_rl02_three_unequal_micro_batches_add_up_to_the_whole() -> None:
    logprobs = torch.tensor([[-1.0, -2.0, 0.0], [-3.0, 0.0, 0.0], [-1.0, -1.0, -1.0]])
    kept = torch.tensor([[True, True, False], [True, False, False], [True, True, True]])
    advantage = torch.tensor([1.0, -2.0, 0.5])
    whole = policy_loss(logprobs, advantage[:, None], kept, 6)
    assert float(whole) == pytest.approx((3.0 - 6.0 + 1.5) / 6)  # not the mean of three row means
    for split in ([[0], [1], [2]], [[0, 1], [2]], [[2], [0, 1]]):
        parts = [policy_loss(logprobs[rows], advantage[rows, None], kept[rows], 6) for rows in split]
        assert float(sum(parts)) == pytest.approx(float(whole))


@pytest.mark.parametrize(
    ("reply", "length", "expected"),
    [
        ([0, 0, 0], 1, [1, 0, 0]),  # nothing but the end token: it is learned
        ([5, 0, 7, 0], 4, [1, 1, 0, 0]),  # what follows the first end never trains
        ([5, 6, 7], 3, [1, 1, 1]),  # cut by the limit: no end token, everything is real
        ([0, 0], 0, [0, 0]),
    ],
)
def test_rl08_the_end_token_may_be_the_padding(reply: list[int], length: int, expected: list[int]) -> None:
    mask = response_mask(torch.tensor([reply]), torch.tensor([length]), end_id=0)
    assert mask.int().tolist() == [expected]


@pytest.mark.parametrize(
    ("entropies", "states"),
    [
        ([0.45, 0.55, 0.45, 0.25, 0.45, 0.19, 0.45], [0, 1, 1, 1, 1, 0, 0]),  # the band keeps what was
        ([0.1, 0.3, 0.1], [0, 0, 0]),
        ([0.9, 0.5, 0.2, 0.1999], [1, 1, 1, 0]),  # a threshold itself is inside the band
    ],
)
def test_ae01_the_gate_remembers_the_last_crossing(entropies: list[float], states: list[int]) -> None:
    control, gate, seen = EntropyControlParams(low=0.2, high=0.5), Gate(), []
    for entropy in entropies:
        gate = gate.update(entropy, control)
        seen.append(int(gate.on))
    assert seen == states


@pytest.mark.parametrize(
    ("advantage", "rewards", "kept"),
    [
        ([-1.0, -1.0], [0.0, 0.0], [False, False]),  # empty: the caller skips
        ([0.0, 0.0], [1.0, 1.0], [False, False]),  # all right: nothing is better than its group
        ([0.7, -0.7, 0.0], [1.0, 1.0, NAN], [True, False, False]),
        ([0.7, -0.7], [0.0, -1.0], [False, False]),  # the best of a bad group is still wrong
    ],
)
def test_ae01_a_closed_gate_keeps_the_right_and_better(
    advantage: list[float], rewards: list[float], kept: list[bool]
) -> None:
    assert kept_sequences(Gate(on=True), torch.tensor(advantage), torch.tensor(rewards)).tolist() == kept


def test_clipping_never_touches_right_answers_however_uncertain() -> None:
    clipping = QuantileClipping(type="quantile", level="sequence", quantile=0.5)
    entropies = torch.tensor([[9.0, 9.0], [1.0, 1.0], [2.0, 2.0], [3.0, 0.0]])
    mask = torch.tensor([[True, True], [True, True], [True, True], [True, False]])
    kept = kept_tokens(torch.tensor([1.0, -1.0, -1.0, -1.0]), entropies, mask, clipping)
    assert kept.tolist() == [[True, True], [True, True], [True, True], [False, False]]  # means 1, 2, 3; median 2


@pytest.mark.parametrize(
    ("logits", "expected"),
    [
        ([0.0, 0.0, 0.0, -math.inf], math.log(3)),
        ([-math.inf, 4.0], 0.0),
        ([1e4, -1e4, 0.0], 0.0),
        ([math.log(3.0), 0.0], 0.5623),  # probabilities 3/4 and 1/4
    ],
)
def test_rl06_entropy_is_finite_with_finite_gradients(logits: list[float], expected: float) -> None:
    row = torch.tensor([logits], requires_grad=True)
    entropy = token_entropies(row).sum()
    assert entropy.item() == pytest.approx(expected, abs=1e-4)
    entropy.backward()
    assert row.grad is not None and row.grad.isfinite().all()


def test_eq11_a_long_reply_weighs_no_more_and_an_empty_one_nothing() -> None:
    entropies = torch.tensor([[1.0, 1.0, 1.0, 1.0], [3.0, 7.0, 7.0, 7.0], [5.0, 5.0, 5.0, 5.0]])
    mask = torch.tensor([[True] * 4, [True, False, False, False], [False] * 4])
    assert batch_entropy(entropies, mask) == pytest.approx(2.0)
