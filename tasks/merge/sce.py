"""SCE merging of one tensor: select, calculate, erase (arXiv 2408.07990; QwenLong-L1.5 §4.4).

The plain reference against which mergekit's output is tested. Axes: M task vectors (models), N positions of
the flattened tensor. Everything is fp32.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.errors import CheckpointError

FALLBACK_BELOW = 1e-6  # mergekit averages uniformly when the mean squares sum to less
SMALLEST_DIVISOR = 1e-6  # mergekit clamps the sum of the weights that survive the sign vote


@dataclass(frozen=True)
class Calculation:
    """The calculate step of one tensor.

    `energies` are the mean squares of the selected deltas per model, `weights` the same normalised to 1,
    `mergekit_weights` what mergekit uses on unscaled deltas: uniform when the energies sum to less than 1e-6.
    """

    energies: tuple[float, ...]
    weights: tuple[float, ...]
    mergekit_weights: tuple[float, ...]

    @property
    def falls_back(self) -> bool:
        """Whether mergekit's threshold would replace different weights by an average."""
        return self.weights != self.mergekit_weights


def selection(deltas_MN: Tensor, select_topk: float) -> Tensor:
    """Boolean mask over N: the share `select_topk` of the differing positions where the models differ most.

    Ranked by population variance over M. Positions on which all models agree have variance 0 and are never
    selected when `select_topk` < 1, so an update that every model makes is dropped; at 1 everything is kept.
    """
    if select_topk >= 1:
        return torch.ones_like(deltas_MN[0], dtype=torch.bool)
    variance_N = deltas_MN.var(dim=0, unbiased=False)
    count = int(torch.count_nonzero(variance_N) * select_topk)
    mask_N = torch.zeros_like(variance_N, dtype=torch.bool)
    mask_N[variance_N.topk(count).indices] = True
    return mask_N


def calculation(selected_MN: Tensor) -> Calculation:
    """Weights in proportion to each model's mean square over all N positions; uniform if nothing changed."""
    energies_M = selected_MN.square().mean(dim=1)
    total = energies_M.sum()
    uniform_M = torch.full_like(energies_M, 1 / len(energies_M))
    weights_M = energies_M / total if total > 0 else uniform_M
    mergekit_M = weights_M if total >= FALLBACK_BELOW else uniform_M
    return Calculation(tuple(energies_M.tolist()), tuple(weights_M.tolist()), tuple(mergekit_M.tolist()))


def agreement(selected_MN: Tensor) -> Tensor:
    """Boolean mask over M and N: entries whose sign is that of the sum over models; a tie votes plus."""
    majority_N = torch.where(selected_MN.sum(dim=0) >= 0, 1.0, -1.0)
    return selected_MN.sign() == majority_N


def merge_deltas(deltas_MN: Tensor, select_topk: float) -> tuple[Tensor, Calculation]:
    """Merged delta over N and how it was weighted: Σ w·δ / Σ w over the entries that agree in sign.

    Raises:
        CheckpointError: fewer than two task vectors. The variance over one is 0 everywhere, so the merge
            would silently give back the base (`select_topk` < 1) or the model itself (1).
    """
    if len(deltas_MN) < 2:
        raise CheckpointError(f"SCE got {len(deltas_MN)} task vector(s), it needs at least 2; give another model")
    selected_MN = deltas_MN * selection(deltas_MN, select_topk)
    calculated = calculation(selected_MN)
    weights_MN = torch.tensor(calculated.weights).unsqueeze(1) * agreement(selected_MN)
    merged_N = (selected_MN * weights_MN).sum(dim=0) / weights_MN.sum(dim=0).clamp(min=SMALLEST_DIVISOR)
    return merged_N, calculated


def merge_tensor(base: Tensor, models: list[Tensor], select_topk: float) -> Tensor:
    """Reference SCE of one tensor of any shape."""
    deltas_MN = torch.stack([model.float() - base.float() for model in models]).flatten(start_dim=1)
    merged_N, _ = merge_deltas(deltas_MN, select_topk)
    return base.float() + merged_N.view_as(base)
