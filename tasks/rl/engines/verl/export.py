"""A checkpoint of verl's as a plain HF folder, in full precision.

verl's own merger rounds weights to bfloat16: changes of 2e-6 would be lost. So verl saves a HF model with each
checkpoint (`hf_model` in its contents), and that is taken, with its precision written into the config.
"""

import json
import shutil
from pathlib import Path

from tasks.artifacts import write_json
from tasks.errors import CheckpointError
from tasks.tokenization import ChatTokenizer

FOLDERS = (Path("actor/huggingface"), Path("actor/model/huggingface"))  # FSDP's, Megatron's


def save_model(checkpoint: Path, parent: Path, folder: Path) -> None:
    """Write the weights of `checkpoint` into `folder`, with config and tokenizer of `parent`, whose shape they have.

    Raises:
        CheckpointError: verl saved no HF model there.
    """
    weights = [file for place in FOLDERS for file in sorted((checkpoint / place).glob("*.safetensors*"))]
    if not weights:
        raise CheckpointError(f"{checkpoint} holds no safetensors below actor/; the checkpoint cannot be exported")
    for file in weights:
        shutil.copy(file, folder / file.name)
    config = json.loads((parent / "config.json").read_text("utf-8"))
    write_json(folder / "config.json", {**config, "dtype": _dtype_of(weights[0])})
    generation = parent / "generation_config.json"
    if generation.is_file():
        shutil.copy(generation, folder / generation.name)
    ChatTokenizer.load(parent).save(folder)


def _dtype_of(file: Path) -> str:
    """torch's name of the precision; verl's own config says bfloat16 even where the weights are not."""
    from safetensors import safe_open

    with safe_open(file, framework="pt") as tensors:
        return str(tensors.get_tensor(next(iter(tensors.keys()))).dtype).removeprefix("torch.")
