"""mergekit through our adapter: equal to the reference, expert by expert, above and below its fallback."""

from pathlib import Path

import pytest
import torch
import yaml
from mergekit.config import MergeConfiguration
from mergekit.merge_methods import get as merge_method
from mergekit.merge_methods.base import TensorGroup
from torch import Tensor

from tasks.errors import CheckpointError
from tasks.merge.mergekit import (
    config_yaml,
    join_experts,
    merge_config,
    merge_tensors,
    scale_for,
    split_experts,
)
from tasks.merge.sce import Calculation, merge_tensor

EXPERTS = "model.layers.0.mlp.experts"


def models_around(base: dict[str, Tensor], sizes: tuple[float, ...]) -> list[dict[str, Tensor]]:
    random = torch.Generator().manual_seed(1)
    return [
        {name: tensor + size * torch.randn(tensor.shape, generator=random) for name, tensor in base.items()}
        for size in sizes
    ]


def random_base() -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(0)
    return {
        "a.weight": torch.randn(20, 30, generator=random),
        "norm.weight": torch.randn(30, generator=random),
        f"{EXPERTS}.gate_up_proj": torch.randn(3, 8, 6, generator=random),
        f"{EXPERTS}.down_proj": torch.randn(3, 6, 4, generator=random),
    }


@pytest.mark.parametrize("size", [1e-1, 1e-5])
@pytest.mark.parametrize("select_topk", [0.9, 1.0])
def test_equals_the_reference(size: float, select_topk: float) -> None:
    base = random_base()
    models = models_around(base, (4 * size, size))
    merged = merge_tensors(base, models, select_topk)
    split_base, split_models = split_experts(base), [split_experts(model) for model in models]
    assert merged.keys() == split_base.keys()
    for name, item in merged.items():
        reference = merge_tensor(split_base[name], [model[name] for model in split_models], select_topk)
        torch.testing.assert_close(item.tensor, reference, rtol=0, atol=1e-7)
        assert item.calculation.falls_back == (size < 1e-3)
        assert item.moved > 0


def test_mergekit_alone_averages_small_deltas() -> None:
    """The reason for rescaling, shown on mergekit itself: 0.5 / 0.5 where 16/17 and 1/17 belong."""
    base = torch.zeros(2)
    models = [torch.tensor([4e-4, 0.0]), torch.tensor([1e-4, 0.0])]
    (merged,) = merge_tensors({"x": base}, [{"x": model} for model in models], 1.0).values()
    assert float(merged.tensor[0]) == pytest.approx(4e-4 * 16 / 17 + 1e-4 / 17, abs=1e-10)
    assert merged.calculation.mergekit_weights == (0.5, 0.5)
    assert float(plain_mergekit(base, models)[0]) == pytest.approx(2.5e-4, abs=1e-10)


def plain_mergekit(base: Tensor, models: list[Tensor]) -> Tensor:
    group = TensorGroup.from_tensors([base, *models], base_index=0)
    return merge_method("sce").merge_group(group, int8_mask=False, select_topk=1.0)


def test_experts_are_merged_one_by_one() -> None:
    """Only expert 0 changed: over fused experts its weights would be the same, its selection another."""
    base = {f"{EXPERTS}.down_proj": torch.zeros(2, 1, 2)}
    first = {f"{EXPERTS}.down_proj": torch.tensor([[[3.0, 0.0]], [[0.0, 1.0]]])}
    second = {f"{EXPERTS}.down_proj": torch.tensor([[[1.0, 0.0]], [[0.0, 3.0]]])}
    joined = join_experts(
        {name: item.tensor for name, item in merge_tensors(base, [first, second], 1.0).items()}, like=base
    )
    expected = torch.tensor([[[2.8, 0.0]], [[0.0, 2.8]]])  # fused: equal energies, both 2
    torch.testing.assert_close(joined[f"{EXPERTS}.down_proj"], expected)


def test_splitting_experts_is_undone() -> None:
    base = random_base()
    split = split_experts(base)
    assert len(split) == 2 + 3 * 3
    assert split[f"{EXPERTS}.gate_up_proj.2.up"].tolist() == base[f"{EXPERTS}.gate_up_proj"][2, 4:].tolist()
    joined = join_experts(split, like=base)
    assert joined.keys() == base.keys()
    assert all(torch.equal(joined[name], base[name]) for name in base)


@pytest.mark.parametrize("total", [1e-14, 9.9e-7, 1.0, 3.999, 4.0, 1e6])
def test_scale_brings_the_energy_near_one(total: float) -> None:
    scale = scale_for(Calculation((total / 2, total / 2), (0.5, 0.5), (0.5, 0.5)))
    assert 1.0 <= scale**2 * total < 4.0
    assert torch.frexp(torch.tensor(scale)).mantissa == 0.5  # a power of two


def test_scale_without_any_change() -> None:
    assert scale_for(Calculation((0.0, 0.0), (0.5, 0.5), (0.5, 0.5))) == 1.0


def test_config_is_mergekits_yaml() -> None:
    text = config_yaml(merge_config(Path("base"), [Path("one"), Path("two")], 0.9))
    assert yaml.safe_load(text)["models"] == [{"model": "one"}, {"model": "two"}]
    parsed = MergeConfiguration.model_validate(yaml.safe_load(text))
    assert (parsed.merge_method, parsed.dtype, parsed.parameters) == ("sce", "float32", {"select_topk": 0.9})


@pytest.mark.parametrize(
    ("models", "complaint"),
    [
        ([{"x": torch.ones(2)}], "at least 2"),
        ([{"x": torch.ones(2)}, {"y": torch.ones(2)}], "not in all models"),
        ([{"x": torch.ones(2)}, {"x": torch.ones(3)}], "shapes"),
        ([{"x": torch.ones(2)}, {"x": torch.tensor([1.0, torch.nan])}], "not finite"),
        ([{"x": torch.ones(2)}, {"x": torch.tensor([1.0, torch.inf])}], "not finite"),
    ],
)
def test_models_that_do_not_fit(models: list[dict[str, Tensor]], complaint: str) -> None:
    with pytest.raises(CheckpointError, match=complaint):
        merge_tensors({"x": torch.zeros(2)}, models, 0.9)
