"""Negative-gradient clipping (QwenLong-L1.5 §4.3, Eq. 8–10): uncertain wrong steps are not punished.

With `side: low` it is the certain ones, as the paper tried for comparison (Figure 10).

Axes: B sequences (replies), T reply tokens, padded; `mask_BT` is True on real reply tokens.
"""

import torch
from torch import Tensor

from tasks.params import AbsoluteClipping, Clipping, NoClipping, QuantileClipping


def kept_tokens(advantages_B: Tensor, entropies_BT: Tensor, mask_BT: Tensor, clipping: Clipping) -> Tensor:
    """Which tokens keep their gradient, as a (B, T) bool; False wherever `mask_BT` is.

    Of sequences with a negative advantage, tokens (or whole sequences, by their mean token entropy) whose
    entropy in nats is strictly above the threshold (below it on the low side) lose theirs; all others keep it.
    A quantile threshold is taken over exactly the tokens (or sequences) with a negative advantage in this batch,
    so q = 1 (0 on the low side) clips nothing. The advantage itself is never touched: the objective carries A_i
    with its sign (a slip in one description says |A_i|).
    """
    if isinstance(clipping, NoClipping):
        return mask_BT.clone()
    if clipping.level == "token":
        negative_BT = mask_BT & (advantages_B < 0)[:, None]
        return mask_BT & ~(negative_BT & _beyond(entropies_BT, entropies_BT[negative_BT], clipping))
    means_B = sequence_means(entropies_BT, mask_BT)
    negative_B = (advantages_B < 0) & mask_BT.any(1)
    clipped_B = negative_B & _beyond(means_B, means_B[negative_B], clipping)
    return mask_BT & ~clipped_B[:, None]


def sequence_means(x_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Mean over the real tokens of each sequence, as (B,); 0 for a sequence without any."""
    return x_BT.masked_fill(~mask_BT, 0.0).sum(1) / mask_BT.sum(1).clamp(min=1)


def _beyond(entropies: Tensor, negatives: Tensor, clipping: AbsoluteClipping | QuantileClipping) -> Tensor:
    """Where the entropy is on the clipped side of the threshold; nowhere without negatives."""
    if not len(negatives):
        return torch.zeros_like(entropies, dtype=torch.bool)
    if isinstance(clipping, AbsoluteClipping):
        threshold = clipping.threshold
    else:
        threshold = float(torch.quantile(negatives, clipping.quantile))
    return entropies > threshold if clipping.side == "high" else entropies < threshold
