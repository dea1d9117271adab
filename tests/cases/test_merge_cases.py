"""More inputs of the kinds MG-01, MG-02 and MG-04."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from tasks.checkpoints import check_checkpoint
from tasks.errors import CheckpointError
from tasks.merge.mergekit import merge_tensors
from tasks.merge.sce import merge_deltas


@pytest.mark.parametrize(
    ("deltas", "select_topk", "expected", "weights"),
    [
        # energies 2 and 8: weights 0.2 and 0.8; the signs disagree at position 1, where the larger sum wins
        ([[2.0, 0.0], [4.0, 0.0]], 1.0, [3.6, 0.0], (0.2, 0.8)),
        ([[1.0, 1.0], [-3.0, 1.0]], 1.0, [-3.0, 1.0], (1 / 6, 5 / 6)),
        # one expert did not move: it has no weight and does not dilute the other
        ([[0.0, 0.0], [2.0, -2.0]], 1.0, [2.0, -2.0], (0.0, 1.0)),
        # nothing moved at all
        ([[0.0, 0.0], [0.0, 0.0]], 0.5, [0.0, 0.0], (0.5, 0.5)),
        # three experts, one outvoted: energies 1, 1, 1
        ([[1.0], [1.0], [-1.0]], 1.0, [1.0], (1 / 3, 1 / 3, 1 / 3)),
    ],
)
def test_mg01_by_hand(
    deltas: list[list[float]], select_topk: float, expected: list[float], weights: tuple[float, ...]
) -> None:
    merged, calculated = merge_deltas(torch.tensor(deltas), select_topk)
    torch.testing.assert_close(merged, torch.tensor(expected))
    assert calculated.weights == pytest.approx(weights)


@pytest.mark.parametrize("size", [1e-3, 1e-5, 1e-9])
def test_mg01_small_deltas_keep_their_weights_in_mergekit(size: float) -> None:
    """Below mean squares of 1e-6 mergekit alone would average uniformly and give 1.5 · size."""
    base = {"x": torch.zeros(4)}
    models = [{"x": torch.full((4,), size)}, {"x": torch.full((4,), 2 * size)}]
    merged = merge_tensors(base, models, 1.0)["x"]
    torch.testing.assert_close(merged.tensor, torch.full((4,), 1.8 * size), rtol=1e-5, atol=0)  # 0.2 · 1 + 0.8 · 2
    assert merged.moved == 4


@pytest.mark.parametrize(
    ("base", "models"),
    [
        ({"x": torch.zeros(2)}, [{"x": torch.ones(2)}, {"x": torch.tensor([1.0, float("nan")])}]),
        ({"x": torch.zeros(2)}, [{"x": torch.ones(2)}, {"x": torch.ones(3)}]),
        ({"x": torch.zeros(2)}, [{"x": torch.ones(2)}, {"y": torch.ones(2)}]),
        ({"x": torch.zeros(2)}, []),
    ],
)
def test_mg01_what_cannot_be_merged_is_refused(
    base: dict[str, torch.Tensor], models: list[dict[str, torch.Tensor]]
) -> None:
    with pytest.raises(CheckpointError):
        merge_tensors(base, models, 1.0)


def checkpoint(folder: Path, tensors: dict[str, torch.Tensor], **config: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"vocab_size": 4, "tie_word_embeddings": True, **config}))
    save_file(tensors, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize(
    ("tensors", "config", "reason"),
    [
        ({"model.embed_tokens.weight": torch.zeros(3, 2)}, {}, "3 rows"),  # trimmed padding rows
        (
            {"model.embed_tokens.weight": torch.zeros(4, 2), "lm_head.weight": torch.zeros(5, 2)},
            {"tie_word_embeddings": False},
            "5 rows",
        ),
        ({"model.embed_tokens.weight": torch.zeros(4, 2)}, {"tie_word_embeddings": False}, "no lm_head"),
    ],
)
def test_mg02_vocabulary_and_embeddings_agree(
    tmp_path: Path, tensors: dict[str, torch.Tensor], config: dict[str, object], reason: str
) -> None:
    with pytest.raises(CheckpointError, match=reason):
        check_checkpoint(checkpoint(tmp_path / "m", tensors, **config))


@pytest.mark.parametrize("left", ["model-00001-of-00002.safetensors", "old.safetensors", "adapter_model.safetensors"])
def test_mg04_a_left_over_shard_is_refused(tmp_path: Path, left: str) -> None:
    folder = checkpoint(tmp_path / "m", {"model.embed_tokens.weight": torch.zeros(4, 2)})
    check_checkpoint(folder)
    save_file({"x": torch.zeros(1)}, folder / left)
    with pytest.raises(CheckpointError, match="does not belong"):
        check_checkpoint(folder)


@pytest.mark.parametrize("cut", [1, 7, 8, 40])
def test_mg04_a_cut_shard_is_refused(tmp_path: Path, cut: int) -> None:
    folder = checkpoint(tmp_path / "m", {"model.embed_tokens.weight": torch.zeros(4, 2)})
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:-cut] if cut < 40 else b"")
    with pytest.raises(CheckpointError, match="not a whole safetensors file"):
        check_checkpoint(folder)
