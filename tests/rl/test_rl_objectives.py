"""The mask, the loss and its denominator, by hand (cases RL-02, RL-08, the sign of AE-01)."""

import pytest
import torch

from tasks.rl.entropy_control import CHUNK_TOKENS
from tasks.rl.objectives import policy_loss, response_mask, score_tokens


@pytest.mark.parametrize(
    ("reply", "length", "expected"),
    [
        ([5, 6, 0, 0, 0], 5, [1, 1, 1, 0, 0]),  # end and pad are both 0: the end itself is real
        ([5, 6, 0, 0, 0], 2, [1, 1, 0, 0, 0]),  # cut before any end: the zeros are padding
        ([0, 0, 0, 0, 0], 5, [1, 0, 0, 0, 0]),
        ([5, 0, 7, 0, 7], 5, [1, 1, 0, 0, 0]),
        ([5, 6, 7, 8, 9], 5, [1, 1, 1, 1, 1]),
        ([0, 0, 0, 0, 0], 0, [0, 0, 0, 0, 0]),
    ],
)
def test_the_mask_goes_by_position(reply, length, expected):
    mask = response_mask(torch.tensor([reply]), torch.tensor([length]), end_id=0)
    assert mask.int().tolist() == [expected]


def loss(token_losses, batch_tokens, advantage=-1.0):
    logprobs = torch.tensor([token_losses])
    return float(policy_loss(logprobs, torch.tensor([[advantage]]), torch.ones_like(logprobs).bool(), batch_tokens))


@pytest.mark.parametrize("splits", [[[1.0, 1] + [0.0] * 8], [[1.0, 1, 0, 0, 0], [0.0] * 5], [[1.0, 1], [0.0] * 8]])
def test_the_loss_does_not_depend_on_the_split(splits):
    assert sum(loss(part, batch_tokens=10) for part in splits) == pytest.approx(0.2, abs=1e-6)


def test_the_loss_by_hand():
    """−(2·(−1) + 2·(−3) − 0.5·(−4)) / 6 = 1; clipped tokens leave the sum but not the denominator."""
    logprobs = torch.tensor([[-1.0, -3.0, -5.0], [-4.0, -9.0, -9.0]])
    kept = torch.tensor([[1, 1, 0], [1, 0, 0]]).bool()
    assert float(policy_loss(logprobs, torch.tensor([[2.0], [-0.5]]), kept, 6)) == pytest.approx(1.0)


def test_nothing_kept_is_a_zero_loss_with_zero_gradient_even_beside_infinities():
    logprobs = torch.tensor([[-torch.inf, -1.0]], requires_grad=True)
    value = policy_loss(logprobs, torch.tensor([[1.0]]), torch.zeros(1, 2).bool(), 2)
    value.backward()
    assert value.item() == 0.0 and logprobs.grad.tolist() == [[0.0, 0.0]]


def test_a_batch_without_tokens_is_refused():
    with pytest.raises(ValueError, match="skip the update"):
        policy_loss(torch.zeros(1, 0), torch.ones(1, 1), torch.zeros(1, 0).bool(), 0)


@pytest.mark.parametrize(("advantage", "rises"), [(-1.0, False), (1.0, True)])
def test_the_sign_of_the_advantage_decides(advantage, rises):
    logits = torch.zeros(1, 3, requires_grad=True)
    before = logits.log_softmax(-1)[:, :1]
    policy_loss(before, torch.tensor([[advantage]]), torch.ones(1, 1).bool(), 1).backward()
    after = (logits - 0.1 * logits.grad).log_softmax(-1)[0, 0]
    assert (float(after) > float(before)) is rises


def test_scores_are_of_the_policy_at_the_sampling_temperature():
    hidden = torch.tensor([[2.0, 1.0], [0.0, 3.0]])
    logprobs, entropies = score_tokens(hidden, lambda x: x, torch.tensor([0, 0]), temperature=0.5)
    expected = (hidden / 0.5).log_softmax(-1)
    torch.testing.assert_close(logprobs, expected[:, 0])
    torch.testing.assert_close(entropies, -(expected.exp() * expected).sum(-1))


def test_scores_over_several_chunks_equal_one():
    hidden = torch.randn(2 * CHUNK_TOKENS + 3, 4, requires_grad=True)
    tokens = torch.randint(0, 4, (len(hidden),))
    logprobs, entropies = score_tokens(hidden, lambda x: x, tokens, 1.0)
    expected = hidden.log_softmax(-1).gather(1, tokens[:, None])[:, 0]
    torch.testing.assert_close(logprobs, expected)
    assert logprobs.requires_grad and not entropies.requires_grad
