"""A model folder that would load wrongly is one clear error, never random weights."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tasks.errors import CheckpointError, DivergedError
from tasks.generation.local import load_model, sample_tokens
from tasks.tokenization import ChatTokenizer
from tests.conftest import CHECKOUT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CHECKOUT / "models/tiny-base", tmp_path / "model"))


def edit_config(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


def drop_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.1.self_attn.q_proj.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def add_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors["model.layers.1.self_attn.extra.weight"] = torch.zeros(2)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


BREAKS: dict[str, Callable[[Path], None]] = {
    "a layer more": lambda folder: edit_config(folder, num_hidden_layers=3, layer_types=["full_attention"] * 3),
    "a layer less": lambda folder: edit_config(folder, num_hidden_layers=1, layer_types=["full_attention"]),
    "another shape": lambda folder: edit_config(folder, intermediate_size=512),
    "unknown architecture": lambda folder: edit_config(folder, model_type="nothing"),
    "a tensor missing": drop_tensor,
    "a tensor too many": add_tensor,
}


@pytest.mark.parametrize("name", BREAKS)
def test_weights_that_do_not_fit_the_config_are_refused(name: str, folder: Path) -> None:
    BREAKS[name](folder)
    with pytest.raises(CheckpointError) as caught:
        load_model(folder)
    assert "\n" not in str(caught.value)


def test_the_whole_model_loads(folder: Path) -> None:
    assert load_model(folder).config.num_hidden_layers == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer.json", "{}"),
        ("tokenizer.json", '{"version": "1.0", "model'),
        ("tokenizer_config.json", None),
        ("config.json", "{broken"),
        ("chat_template.jinja", "{% for message in messages %}"),
        ("chat_template.jinja", "constant"),
    ],
)
def test_a_broken_tokenizer_is_one_line(name: str, content: str | None, folder: Path) -> None:
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content)
    with pytest.raises(CheckpointError) as caught:
        ChatTokenizer.load(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_logits_that_are_not_finite_stop_the_rollout(broken: float, temperature: float) -> None:
    logits = torch.tensor([[0.0, 1.0], [0.0, broken]])
    with pytest.raises(DivergedError):
        sample_tokens(logits, temperature, 0.95, torch.tensor([0.5, 0.5]))


def test_impossible_tokens_are_allowed() -> None:
    logits = torch.tensor([[float("-inf"), 1.0]])
    assert sample_tokens(logits, 0.7, 0.95, torch.tensor([0.5])).tolist() == [1]
