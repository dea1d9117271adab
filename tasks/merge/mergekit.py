"""SCE by mergekit, so that its calculate step works on small deltas and on single experts.

mergekit averages uniformly when the mean squares of the deltas sum to less than 1e-6, as those of an RL run
at a small learning rate do. SCE depends on the deltas alone, tensor by tensor, and scaling all deltas of a
tensor scales its result. So mergekit gets zeros as the base and s·δ as the models, s a power of two per
tensor (exact in fp32) that brings the sum near 1; the merged delta divided by s is added to the base. Where
mergekit would not have fallen back, the result is the same to the bit.

mergekit's by-name merge is used: it sees tensors as they are stored, one per expert and tied ones once.
"""

import contextlib
import io
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import yaml
from mergekit.graph import Executor
from mergekit.options import MergeOptions
from mergekit.scripts.merge_raw_pytorch import RawPyTorchMergeConfig, plan_flat_merge
from safetensors.torch import load_file, save_file
from torch import Tensor

from tasks.errors import CheckpointError
from tasks.merge.sce import Calculation, calculation, selection

GATE_UP = "experts.gate_up_proj"  # transformers 5 holds all experts of a layer in one tensor: E × 2I × H
DOWN = "experts.down_proj"  # E × H × I


@dataclass(frozen=True)
class MergedTensor:
    """One merged tensor (one expert's projection when experts were stored fused) and how it was weighted."""

    tensor: Tensor
    calculation: Calculation
    scale: float
    moved: int  # positions where the merged delta is not 0


def merge_config(base_model: Path, models: Sequence[Path], select_topk: float) -> RawPyTorchMergeConfig:
    """The merge as mergekit describes it."""
    return RawPyTorchMergeConfig.model_validate(
        {
            "merge_method": "sce",
            "base_model": str(base_model),
            "models": [{"model": str(model)} for model in models],
            "parameters": {"select_topk": select_topk},
            "dtype": "float32",
        }
    )


def config_yaml(config: RawPyTorchMergeConfig) -> str:
    """The same as mergekit's YAML."""
    return yaml.safe_dump(config.model_dump(exclude_none=True, mode="json"), sort_keys=False)


def merge_tensors(
    base: Mapping[str, Tensor], models: Sequence[Mapping[str, Tensor]], select_topk: float
) -> dict[str, MergedTensor]:
    """Merge tensors that all inputs hold under the same names, expert by expert. Results are fp32.

    Raises:
        CheckpointError: fewer than two models, a tensor that is missing, of another shape or not finite.
    """
    if len(models) < 2:
        raise CheckpointError(f"SCE got {len(models)} task vector(s), it needs at least 2; give another model")
    bases = split_experts(base)
    deltas = task_vectors(bases, [split_experts(model) for model in models])
    calculations = {name: _calculate(delta, select_topk) for name, delta in deltas.items()}
    scales = {name: scale_for(calculated) for name, calculated in calculations.items()}
    scaled = {name: delta * scales[name] for name, delta in deltas.items()}
    merged = _run_mergekit(scaled, select_topk)
    return {
        name: MergedTensor(
            tensor=bases[name].float() + merged[name] / scales[name],
            calculation=calculations[name],
            scale=scales[name],
            moved=int(torch.count_nonzero(merged[name])),
        )
        for name in bases
    }


def task_vectors(base: Mapping[str, Tensor], models: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Differences from the base in fp32, stacked over models along axis 0."""
    for model in models:
        if different := sorted(base.keys() ^ model.keys()):
            raise CheckpointError(f"{different[0]} is not in all models; merge descendants of the base only")
    stacked = {}
    for name, tensor in base.items():
        shapes = {tuple(tensor.shape), *(tuple(model[name].shape) for model in models)}
        if len(shapes) > 1:
            raise CheckpointError(f"{name} has the shapes {sorted(shapes)}; merge models of one architecture only")
        stacked[name] = torch.stack([model[name].float() - tensor.float() for model in models])
        if not stacked[name].isfinite().all():
            raise CheckpointError(f"{name} holds values that are not finite; train that checkpoint again")
    return stacked


def scale_for(calculated: Calculation) -> float:
    """The power of two that brings the sum of energies into [1, 4); 1 if all selected deltas are 0."""
    total = sum(calculated.energies)
    return 2.0 ** -math.floor(math.log2(total) / 2) if total > 0 else 1.0


def split_experts(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Replace fused expert tensors by one entry per expert and projection."""
    split: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if name.endswith(GATE_UP):
            for expert, matrix in enumerate(tensor):
                gate, up = matrix.chunk(2)
                split |= {f"{name}.{expert}.gate": gate, f"{name}.{expert}.up": up}
        elif name.endswith(DOWN):
            split |= {f"{name}.{expert}": matrix for expert, matrix in enumerate(tensor)}
        else:
            split[name] = tensor
    return split


def join_experts(split: Mapping[str, Tensor], like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Undo `split_experts`; `like` tells the names and shapes."""
    joined = {}
    for name, tensor in like.items():
        if name.endswith(GATE_UP):
            halves = [[split[f"{name}.{expert}.{half}"] for half in ("gate", "up")] for expert in range(len(tensor))]
            joined[name] = torch.stack([torch.cat(pair) for pair in halves])
        elif name.endswith(DOWN):
            joined[name] = torch.stack([split[f"{name}.{expert}"] for expert in range(len(tensor))])
        else:
            joined[name] = split[name]
    return joined


def _calculate(deltas: Tensor, select_topk: float) -> Calculation:
    deltas_MN = deltas.flatten(start_dim=1)
    return calculation(deltas_MN * selection(deltas_MN, select_topk))


def _run_mergekit(deltas: Mapping[str, Tensor], select_topk: float) -> dict[str, Tensor]:
    models = len(next(iter(deltas.values())))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        base_path, *model_paths = [folder / f"{number}.safetensors" for number in range(models + 1)]
        save_file({name: torch.zeros_like(delta[0]) for name, delta in deltas.items()}, base_path)
        for model, path in enumerate(model_paths):
            save_file({name: delta[model].contiguous() for name, delta in deltas.items()}, path)
        config = merge_config(base_path, model_paths, select_topk)
        options = MergeOptions(copy_tokenizer=False, write_model_card=False, out_shard_size=0)
        with contextlib.redirect_stderr(io.StringIO()):  # its progress bars cannot be switched off
            Executor(plan_flat_merge(config, str(folder / "merged"), False, False, options)).execute()
        return {
            name: tensor
            for path in (folder / "merged").glob("*.safetensors")
            for name, tensor in load_file(path).items()
        }
