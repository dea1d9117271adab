"""MG-04 and MG-02: a folder whose weights would load wrongly is refused before any work."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from tasks.checkpoints import check_checkpoint, stored_tensors
from tasks.errors import CheckpointError

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"


def write_config(folder: Path, **values: Any) -> None:
    config = {"vocab_size": 4, "tie_word_embeddings": True, **values}
    (folder / "config.json").write_text(json.dumps(config))


@pytest.fixture
def single(tmp_path: Path) -> Path:
    write_config(tmp_path)
    save_file({EMBEDDING: torch.zeros(4, 2)}, tmp_path / "model.safetensors")
    return tmp_path


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    write_config(tmp_path)
    save_file({EMBEDDING: torch.zeros(4, 2)}, tmp_path / "s1.safetensors")
    save_file({"x": torch.zeros(3)}, tmp_path / "s2.safetensors")
    write_index(tmp_path, {EMBEDDING: "s1.safetensors", "x": "s2.safetensors"})
    return tmp_path


def write_index(folder: Path, weight_map: object) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def test_whole_checkpoints_pass(single: Path) -> None:
    check_checkpoint(single)
    assert stored_tensors(single)[EMBEDDING].shape == (4, 2)


def test_whole_shards_pass(sharded: Path) -> None:
    check_checkpoint(sharded)
    assert {name: tensor.shard for name, tensor in stored_tensors(sharded).items()} == {
        EMBEDDING: "s1.safetensors",
        "x": "s2.safetensors",
    }


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="does not exist"):
        check_checkpoint(tmp_path / "nowhere")


def test_missing_shard(sharded: Path) -> None:
    (sharded / "s2.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"s2\.safetensors is missing"):
        check_checkpoint(sharded)


@pytest.mark.parametrize("name", ["s3_old.safetensors", "model.safetensors"])
def test_stale_shard_beside_an_index(sharded: Path, name: str) -> None:
    save_file({"x": torch.zeros(3)}, sharded / name)
    with pytest.raises(CheckpointError, match=f"{name} does not belong"):
        check_checkpoint(sharded)


def test_both_faults_of_the_case(sharded: Path) -> None:
    (sharded / "s2.safetensors").rename(sharded / "s3_old.safetensors")
    with pytest.raises(CheckpointError, match=r"s2\.safetensors is missing"):
        check_checkpoint(sharded)


def test_shards_without_their_index(sharded: Path) -> None:
    (sharded / "model.safetensors.index.json").unlink()
    with pytest.raises(CheckpointError, match=r"model\.safetensors is missing"):
        check_checkpoint(sharded)


def test_old_shard_beside_a_single_file(single: Path) -> None:
    save_file({"x": torch.zeros(3)}, single / "model-00001-of-00002.safetensors")
    with pytest.raises(CheckpointError, match="00001-of-00002"):
        check_checkpoint(single)


def test_tensor_in_another_shard_than_indexed(sharded: Path) -> None:
    write_index(sharded, {EMBEDDING: "s2.safetensors", "x": "s1.safetensors"})
    with pytest.raises(CheckpointError, match="2 tensors are not where"):
        check_checkpoint(sharded)


def test_tensor_that_the_index_does_not_know(sharded: Path) -> None:
    save_file({"x": torch.zeros(3), "y": torch.zeros(1)}, sharded / "s2.safetensors")
    with pytest.raises(CheckpointError, match="first: y"):
        check_checkpoint(sharded)


@pytest.mark.parametrize("weight_map", [None, {}, ["x"]])
def test_index_without_a_map(sharded: Path, weight_map: object) -> None:
    write_index(sharded, weight_map)
    with pytest.raises(CheckpointError, match="weight_map"):
        check_checkpoint(sharded)


@pytest.mark.parametrize("keep", [0, 4, 20, -1])
def test_cut_file(single: Path, keep: int) -> None:
    file = single / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match="not a whole safetensors file"):
        check_checkpoint(single)


def test_file_with_a_tail(single: Path) -> None:
    with (single / "model.safetensors").open("ab") as file:
        file.write(b"x")
    with pytest.raises(CheckpointError, match="should end at byte"):
        check_checkpoint(single)


def test_only_pickled_weights(tmp_path: Path) -> None:
    write_config(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(CheckpointError, match="never loaded"):
        check_checkpoint(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_broken_config(single: Path, text: str) -> None:
    (single / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        check_checkpoint(single)


def test_vocabulary_cut_to_the_tokenizer(single: Path) -> None:
    """MG-02: config.json keeps the padded size, the embedding does not."""
    write_config(single, vocab_size=5)
    with pytest.raises(CheckpointError, match="vocab_size = 5"):
        check_checkpoint(single)


def test_output_embedding_of_another_size(single: Path) -> None:
    save_file({EMBEDDING: torch.zeros(4, 2), HEAD: torch.zeros(3, 2)}, single / "model.safetensors")
    with pytest.raises(CheckpointError, match="lm_head"):
        check_checkpoint(single)


def test_untied_without_output_embedding(single: Path) -> None:
    write_config(single, tie_word_embeddings=False)
    with pytest.raises(CheckpointError, match="does not tie"):
        check_checkpoint(single)
