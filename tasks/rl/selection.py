"""Which tokens of a batch train: the gate, then negative-gradient clipping. Both engines ask here.

Axes: B turns (rows), T reply tokens, padded.
"""

from dataclasses import dataclass

from torch import Tensor

from tasks.params import RLParams
from tasks.rl.batch import TurnBatch
from tasks.rl.clipping import kept_tokens
from tasks.rl.entropy_control import Gate, batch_entropy, kept_sequences


@dataclass(frozen=True)
class Selection:
    """`entropy` is Eq. 11's in nats, `gate` the switch after it; `kept_BT` marks tokens that keep their gradient,
    `teaching_B` rows that have any: a kept token and an advantage.
    """

    entropy: float
    gate: Gate
    kept_BT: Tensor
    kept_share: float
    teaching_B: Tensor

    @property
    def empty(self) -> bool:
        """Nothing to teach: the update is skipped."""
        return not bool(self.teaching_B.any())


def select(batch: TurnBatch, entropies_BT: Tensor, gate: Gate, params: RLParams) -> Selection:
    """Apply QwenLong-L1.5 Eq. 8–11 to a batch whose token entropies are known.

    Raises:
        DivergedError: the entropy is not finite.
    """
    entropy = batch_entropy(entropies_BT, batch.mask_BT)
    if params.entropy_control is not None:
        gate = gate.update(entropy, params.entropy_control)
    kept_BT = kept_tokens(batch.advantages_B, entropies_BT, batch.mask_BT, params.clipping)
    kept_BT &= kept_sequences(gate, batch.advantages_B, batch.rewards_B)[:, None]
    return Selection(
        entropy=entropy,
        gate=gate,
        kept_BT=kept_BT,
        kept_share=float(kept_BT.sum() / batch.mask_BT.sum()),
        teaching_B=kept_BT.any(1) & (batch.advantages_B != 0),
    )
