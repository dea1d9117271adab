"""A checkpoint of verl's as a plain HF folder, in full precision.

verl's own merger rounds weights to bfloat16: changes of 2e-6 would be lost. So verl saves a HF model with each
checkpoint (`hf_model` in its contents), and that is taken.
"""

import shutil
from pathlib import Path

from tasks.errors import CheckpointError
from tasks.tokenization import ChatTokenizer

FOLDER = Path("actor/huggingface")


def save_model(checkpoint: Path, parent: Path, folder: Path) -> None:
    """Write weights and config of `checkpoint`, and the tokenizer of `parent`, into `folder`.

    Raises:
        CheckpointError: verl saved no HF model there.
    """
    weights = sorted((checkpoint / FOLDER).glob("*.safetensors*"))
    if not weights:
        raise CheckpointError(f"{checkpoint / FOLDER} holds no safetensors; the checkpoint cannot be exported")
    for file in (*weights, *sorted((checkpoint / FOLDER).glob("*config.json"))):
        if file.name != "tokenizer_config.json":
            shutil.copy(file, folder / file.name)
    ChatTokenizer.load(parent).save(folder)
