"""The variants of the ablation: each differs from its predecessor by one parameter.

naive ─ balanced ─ domain ─┬─ token_high, token_low, sequence_low
                           ├─ sequence_high ─ recipe
                           └─ aepo

QwenLong-L1.5, Tables 3–5. The paper puts each way of clipping, and AEPO, on plain GRPO; here they stand on the steps
before, so that the way from the naive start leads to the recipe as shipped.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tasks.errors import ParameterError
from tasks.params import EntropyControlParams, QuantileClipping, RLParams

NAIVE = {"rl.batches": "uniform", "rl.advantage": "group", "rl.clipping": {"type": "none"}, "rl.entropy_control": None}


@dataclass(frozen=True)
class Variant:
    """`predecessor` with `parameter` set to `value`; the naive start has no predecessor and differs by nothing."""

    name: str
    label: str
    predecessor: str | None
    parameter: str = ""
    value: object = None


def ladder(rl: RLParams) -> dict[str, Variant]:
    """All variants by name, predecessors first. Thresholds are those of the parameters; the low side mirrors them.

    Raises:
        ParameterError: the parameters hold no quantile to clip at, or no entropy thresholds.
    """
    if not isinstance(rl.clipping, QuantileClipping):
        raise ParameterError(
            f"rl.clipping.type = {rl.clipping.type}: the ablation clips the same share at either side and level, which "
            "takes a quantile; set {type: quantile, level: sequence, quantile: 0.8}"
        )
    if rl.entropy_control is None:
        raise ParameterError("rl.entropy_control = null: the ablation needs AEPO's thresholds; set {low: …, high: …}")
    return {variant.name: variant for variant in _variants(rl.clipping.quantile, rl.entropy_control)}


def _variants(quantile: float, control: EntropyControlParams) -> tuple[Variant, ...]:
    def clipped(level: str, side: str) -> dict[str, object]:
        threshold = quantile if side == "high" else round(1 - quantile, 9)
        return {"type": "quantile", "level": level, "side": side, "quantile": threshold}

    thresholds = control.model_dump()
    return (
        Variant("naive", "naive GRPO", None),
        Variant("balanced", "+ task-balanced batches", "naive", "rl.batches", "balanced"),
        Variant("domain", "+ domain std", "balanced", "rl.advantage", "domain"),
        *(
            Variant(f"{level}_{side}", f"+ clip {level}, {side} entropy", "domain", "rl.clipping", clipped(level, side))
            for level in ("token", "sequence")
            for side in ("high", "low")
        ),
        Variant("aepo", "+ AEPO", "domain", "rl.entropy_control", thresholds),
        Variant("recipe", "+ both: the recipe", "sequence_high", "rl.entropy_control", thresholds),
    )


def settings(variants: Mapping[str, Variant], name: str) -> dict[str, object]:
    """Every parameter that the ladder touches, with the variant's value."""
    variant = variants[name]
    if variant.predecessor is None:
        return dict(NAIVE)
    return {**settings(variants, variant.predecessor), variant.parameter: variant.value}


def overrides(variants: Mapping[str, Variant], name: str, seed: int) -> tuple[str, ...]:
    """`key=value` of a cell: its variant's settings and its seed."""
    values = {**settings(variants, name), "seed": seed}
    return tuple(f"{key}={json.dumps(value)}" for key, value in values.items())
