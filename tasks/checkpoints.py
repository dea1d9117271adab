"""Is a checkpoint folder whole? Read from the headers alone: no weights, no torch.

A checkpoint is an HF folder: config.json beside model.safetensors, or beside shards and their index.
"""

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.errors import CheckpointError

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
INPUT_EMBEDDING = "model.embed_tokens.weight"
OUTPUT_EMBEDDING = "lm_head.weight"
REMEDY = "write the checkpoint again into an empty folder"


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies on disk, and its shape."""

    shard: str
    shape: tuple[int, ...]


def check_checkpoint(folder: Path) -> None:
    """Refuse a folder whose weights would load wrongly or not at all.

    Raises:
        CheckpointError: no folder, no config, missing, stale, cut or unindexed shards, or a vocabulary
            that does not fit the embeddings.
    """
    config = read_config(folder)
    tensors = stored_tensors(folder)
    vocabulary = config.get("vocab_size")
    for name in (INPUT_EMBEDDING, OUTPUT_EMBEDDING):
        if name in tensors and tensors[name].shape[0] != vocabulary:
            raise CheckpointError(
                f"{folder}: {name} has {tensors[name].shape[0]} rows but config.json says "
                f"vocab_size = {vocabulary}; they must be equal: {REMEDY}"
            )
    tied = bool(config.get("tie_word_embeddings"))
    if INPUT_EMBEDDING in tensors and OUTPUT_EMBEDDING not in tensors and not tied:
        raise CheckpointError(
            f"{folder}: no {OUTPUT_EMBEDDING} although config.json does not tie the embeddings; {REMEDY}"
        )


def read_config(folder: Path) -> dict[str, Any]:
    """config.json of a checkpoint folder."""
    if not folder.is_dir():
        raise CheckpointError(f"{folder} does not exist; run the stage that writes it first")
    return _read_json(folder / "config.json")


def stored_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Every tensor of a checkpoint by name, shard by shard; the shards must be exactly the indexed ones."""
    on_disk = {path.name for path in folder.glob("*.safetensors")}
    weight_map = _weight_map(folder, on_disk)
    expected = set(weight_map.values()) if weight_map is not None else {SINGLE_FILE}
    if missing := sorted(expected - on_disk):
        raise CheckpointError(f"{folder}: {', '.join(missing)} is missing; {REMEDY}")
    if stale := sorted(on_disk - expected):
        raise CheckpointError(f"{folder}: {', '.join(stale)} does not belong to this checkpoint; {REMEDY}")
    tensors = {name: tensor for shard in sorted(expected) for name, tensor in _read_header(folder / shard).items()}
    if weight_map is not None:
        _check_index(folder, weight_map, tensors)
    return tensors


def _weight_map(folder: Path, on_disk: set[str]) -> dict[str, str] | None:
    if (folder / INDEX_FILE).exists():
        weight_map = _read_json(folder / INDEX_FILE).get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            raise CheckpointError(f"{folder / INDEX_FILE} holds no weight_map; {REMEDY}")
        return weight_map
    if not on_disk:
        raise CheckpointError(f"{folder} holds no safetensors weights (pickled ones are never loaded); {REMEDY}")
    return None


def _check_index(folder: Path, weight_map: dict[str, str], tensors: dict[str, StoredTensor]) -> None:
    stored = {name: tensor.shard for name, tensor in tensors.items()}
    names = sorted(weight_map.keys() | stored.keys())
    wrong = [name for name in names if weight_map.get(name) != stored.get(name)]
    if wrong:
        raise CheckpointError(
            f"{folder}: {len(wrong)} tensors are not where {INDEX_FILE} says (first: {wrong[0]}); {REMEDY}"
        )


def _read_header(path: Path) -> dict[str, StoredTensor]:
    """A safetensors header: 8 bytes of length (little endian), JSON, then data up to the end of the file."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > path.stat().st_size:
                raise ValueError(f"header of {length} bytes in a file of {path.stat().st_size}")
            header: dict[str, Any] = json.loads(file.read(length))
        header.pop("__metadata__", None)
        end = 8 + length + max((entry["data_offsets"][1] for entry in header.values()), default=0)
        if end != path.stat().st_size:
            raise ValueError(f"data should end at byte {end}, the file has {path.stat().st_size}")
        return {name: StoredTensor(path.name, tuple(entry["shape"])) for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError, struct.error, OSError) as error:
        raise CheckpointError(f"{path} is not a whole safetensors file ({error}); {REMEDY}") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        tree = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read ({error}); {REMEDY}") from error
    if not isinstance(tree, dict):
        raise CheckpointError(f"{path} holds {type(tree).__name__}, not a mapping; {REMEDY}")
    return tree
