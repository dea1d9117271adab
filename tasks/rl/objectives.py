"""The policy gradient at token level (QwenLong-L1.5 §4.3; DAPO's token mean), purely on-policy.

Axes: B sequences (replies), T reply tokens (padded) or flat tokens, V vocabulary, D hidden size.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from tasks.rl.entropy_control import CHUNK_TOKENS, token_entropies


def response_mask(tokens_BT: Tensor, lengths_B: Tensor, end_id: int) -> Tensor:
    """True on the real tokens of each reply, as (B, T): by position, up to and including the first end token.

    By id would go wrong where padding and end token are the same id: the model would never learn to stop.
    """
    within_BT = torch.arange(tokens_BT.shape[1]) < lengths_B[:, None]
    ends_BT = (tokens_BT == end_id).long()
    ends_before_BT = ends_BT.cumsum(1) - ends_BT
    return within_BT & (ends_before_BT == 0)


def score_tokens(
    hidden_TD: Tensor, head: Callable[[Tensor], Tensor], tokens_T: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """Log-probability of each token and entropy of its distribution, as (T,) and (T,); the entropy has no
    gradient.

    Both are of the policy that samples at `temperature`: log_softmax(logits / temperature) over the **full**
    vocabulary. The top-p cut of sampling is ignored, as trainers do: its set changes with the weights, and
    the gradient of a renormalised set would forbid the model to ever raise what lies outside.
    """
    scores = [
        _score_chunk(head(hidden), tokens, temperature)
        for hidden, tokens in zip(hidden_TD.split(CHUNK_TOKENS), tokens_T.split(CHUNK_TOKENS), strict=True)
    ]
    return torch.cat([score[0] for score in scores]), torch.cat([score[1] for score in scores])


def _score_chunk(logits_TV: Tensor, tokens_T: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    scaled_TV = logits_TV.float() / temperature
    chosen_T = scaled_TV.gather(1, tokens_T[:, None])[:, 0]
    return chosen_T - scaled_TV.logsumexp(-1), token_entropies(scaled_TV.detach())


def policy_loss(logprobs_BT: Tensor, advantages_BT: Tensor, kept_BT: Tensor, batch_tokens: float) -> Tensor:
    """−Σ A_i · log π(token) over the kept tokens / `batch_tokens`; a scalar. `advantages_BT` may be (B, 1).

    `batch_tokens` counts all reply tokens of the whole batch, clipped and masked ones included, so the losses
    of any split into micro-batches add up to the same value and gradient. On-policy with one update a batch
    the importance ratio is 1 and its gradient is that of the log-probability, so no ratio appears. A_i keeps
    its sign.
    """
    if batch_tokens < 1:
        raise ValueError(f"batch_tokens = {batch_tokens}; a batch without reply tokens has no loss: skip the update")
    return -(advantages_BT * logprobs_BT).masked_fill(~kept_BT, 0.0).sum() / batch_tokens
