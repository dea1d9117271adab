"""AEPO: masking negative samples while the policy's entropy is too high (QwenLong-L1.5 §4.3, Eq. 11).

Axes: B sequences (replies), T reply tokens (padded) or flat tokens, V vocabulary. Entropies are in nats, over
the full vocabulary, of the policy at the sampling temperature.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from tasks.errors import DivergedError
from tasks.params import EntropyControlParams
from tasks.rl.clipping import sequence_means

CHUNK_TOKENS = 1024  # tokens whose full distribution is in memory at once


def token_entropies(logits_TV: Tensor, chunk_tokens: int = CHUNK_TOKENS) -> Tensor:
    """Entropy of softmax(logits) per token, as (T,) in fp32, with finite gradients.

    A logit of −inf is an impossible token and adds nothing. Works in chunks (recomputed in the backward
    pass), so the extra memory is O(chunk_tokens × V), not O(T × V).
    """
    chunks = [
        checkpoint(_entropies, chunk, use_reentrant=False) if chunk.requires_grad else _entropies(chunk)
        for chunk in logits_TV.split(chunk_tokens)
    ]
    return torch.cat(chunks) if chunks else logits_TV.new_zeros(0, dtype=torch.float32)


def _entropies(logits_TV: Tensor) -> Tensor:
    logprobs_TV = logits_TV.float().log_softmax(-1)
    possible_TV = logprobs_TV.masked_fill(logprobs_TV == -math.inf, 0.0)  # 0 · log 0 = 0
    return -(logprobs_TV.exp() * possible_TV).sum(-1)


def batch_entropy(entropies_BT: Tensor, mask_BT: Tensor) -> float:
    """Eq. 11: the mean over sequences of the mean over their tokens, in nats.

    Long replies weigh no more than short ones. Sequences without tokens do not count; NaN when none has any.
    """
    filled_B = mask_BT.any(1)
    return float(sequence_means(entropies_BT, mask_BT)[filled_B].mean())


@dataclass(frozen=True)
class Gate:
    """Whether negative samples are masked now: a switch with hysteresis, off at the first step."""

    on: bool = False

    def update(self, entropy: float, control: EntropyControlParams) -> "Gate":
        """On above `high`, off below `low`, unchanged between them.

        Raises:
            DivergedError: the entropy is NaN or infinite. It compares false with both thresholds, so keeping
                the state would freeze the controller, and only a broken policy has such an entropy: going on
                would train on it.
        """
        if not math.isfinite(entropy):
            raise DivergedError(
                f"the batch entropy is {entropy}; it must be finite, so weights or logits are not: "
                "lower rl.learning_rate and run the stage again"
            )
        if entropy > control.high:
            return Gate(on=True)
        if entropy < control.low:
            return Gate(on=False)
        return self


def kept_sequences(gate: Gate, advantages_B: Tensor, rewards_B: Tensor) -> Tensor:
    """Which sequences train, as a (B,) bool: all while the gate is off, else those better than their group
    and right.

    The result can be empty; the caller then skips the update and counts it. Unscored rewards are NaN and not
    kept.
    """
    if not gate.on:
        return torch.ones_like(advantages_B, dtype=torch.bool)
    return (advantages_B > 0) & (rewards_B > 0)
