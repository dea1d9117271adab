"""SCE on hand-worked tensors, and mergekit's kernel beside our reference."""

import math

import pytest
import torch

from tasks.errors import CheckpointError
from tasks.merge.sce import agreement, calculation, merge_deltas, merge_tensor, selection


@pytest.mark.parametrize(
    ("base", "models", "select_topk", "expected"),
    [
        (
            [0, 0, 0, 0],
            [[1, 1, 1, 0], [1, 1, 0, 2]],
            0.9,
            [0, 0, 0, 2],
        ),  # MG-01: int(2 · 0.9) = 1 position left
        ([0], [[1], [-1]], 1.0, [1]),  # MG-01: a tie of signs goes to plus
        ([0, 0], [[3, 1], [-1, 1]], 1.0, [3, 1]),  # MG-01
        ([1, 1], [[1, 1], [1, 1]], 1.0, [1, 1]),  # nothing changed
        ([1, 1], [[1, 1], [1, 1]], 0.5, [1, 1]),
        ([0, 0], [[1, 0], [1, 0]], 0.9, [0, 0]),  # an update on which all agree has no variance: dropped
        ([0, 0], [[3, 0], [1, 0]], 1.0, [2.8, 0]),  # weights 4.5/5 and 0.5/5: 0.9 · 3 + 0.1 · 1
        ([10, 10], [[9, 10], [7, 10]], 1.0, [7.2, 10]),  # the same around another base, downwards
    ],
)
def test_reference(base: list[float], models: list[list[float]], select_topk: float, expected: list[float]) -> None:
    merged = merge_tensor(
        torch.tensor(base, dtype=torch.float32),
        [torch.tensor(model, dtype=torch.float32) for model in models],
        select_topk,
    )
    torch.testing.assert_close(merged, torch.tensor(expected, dtype=torch.float32))


@pytest.mark.parametrize("select_topk", [0.5, 1.0])
def test_one_task_vector_is_refused(select_topk: float) -> None:
    """MG-01: the merge would silently give back the base or the expert."""
    with pytest.raises(CheckpointError, match="at least 2"):
        merge_tensor(torch.zeros(2), [torch.tensor([1.0, -2.0])], select_topk)


def test_selection_counts_only_positions_that_differ() -> None:
    deltas_MN = torch.tensor([[1.0, 2.0, 3.0, 5.0, 5.0], [1.0, 1.0, 1.0, 1.0, 5.0]])
    assert selection(deltas_MN, 0.67).tolist() == [False, False, True, True, False]  # int(3 · 0.67) = 2
    assert selection(deltas_MN, 0.3).tolist() == [False] * 5  # int(3 · 0.3) = 0
    assert selection(deltas_MN, 1.0).tolist() == [True] * 5


def test_agreement_leaves_out_zeros_and_the_minority() -> None:
    selected_MN = torch.tensor([[2.0, 0.0, -3.0], [-1.0, 0.0, 1.0]])
    assert agreement(selected_MN).tolist() == [[True, False, True], [False, False, False]]


def test_calculation_knows_both_weightings() -> None:
    calculated = calculation(torch.tensor([[4e-4, 0.0], [1e-4, 0.0]]))  # mean squares 8e-8 and 0.5e-8
    assert calculated.energies == pytest.approx((8e-8, 0.5e-8))
    assert calculated.weights == pytest.approx((16 / 17, 1 / 17))
    assert calculated.mergekit_weights == (0.5, 0.5)
    assert calculated.falls_back


def test_calculation_above_the_threshold() -> None:
    calculated = calculation(torch.tensor([[4.0, 0.0], [1.0, 0.0]]))
    assert calculated.weights == calculated.mergekit_weights == pytest.approx((16 / 17, 1 / 17))
    assert not calculated.falls_back


def test_calculation_without_any_change_is_uniform_and_no_fallback() -> None:
    calculated = calculation(torch.zeros(3, 4))
    assert calculated.weights == pytest.approx((1 / 3,) * 3)
    assert not calculated.falls_back


def test_small_deltas_keep_their_proportions() -> None:
    """At RL's delta sizes the result is the large-delta result, scaled."""
    large_MN = torch.tensor([[4.0, -8.0, 2.0], [1.0, 3.0, 0.0]])
    merged_N, _ = merge_deltas(large_MN, 1.0)
    small_N, calculated = merge_deltas(large_MN * 2.0**-20, 1.0)
    assert calculated.falls_back
    torch.testing.assert_close(small_N * 2.0**20, merged_N, rtol=0, atol=0)
    assert not math.isclose(float(merged_N[0]), 2.5)  # what a uniform average would give
