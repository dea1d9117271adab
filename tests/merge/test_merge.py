"""Whole folders: MG-02 (all but the weights is stage 3's), shards, mixture of experts, the stage."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from tasks.checkpoints import check_checkpoint
from tasks.errors import CheckpointError
from tasks.lineage import read_lineage
from tasks.merge import merge as stage
from tasks.merge.metrics import MergeMetrics
from tasks.merge.sce import merge_tensor
from tasks.params import Params, load_params
from tasks.tracking import NullTracker

WORDS = ["<pad>", "<end>", "question", "answer", "is"]
COMMON = {
    "vocab_size": 8,  # padded: more rows than words
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "tie_word_embeddings": True,
    "eos_token_id": 1,
    "pad_token_id": 0,
}
TEMPLATE = "{% for message in messages %}question {{ message.content }} {% endfor %}answer"


def write_checkpoints(folder: Path, model: torch.nn.Module) -> list[Path]:
    """A base and two descendants, the second of which moved a quarter as far, with RL's tiny steps."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=word_tokenizer(), eos_token="<end>", pad_token="<pad>", chat_template=TEMPLATE
    )
    start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    folders = []
    for name, size in (("base", 0.0), ("stage3", 4e-5), ("memory", 1e-5)):
        moved = {key: tensor + size * torch.randn_like(tensor) for key, tensor in start.items()}
        model.load_state_dict(moved | {"lm_head.weight": moved["model.embed_tokens.weight"]})
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
        folders.append(folder / name)
    return folders


def word_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="is"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


@pytest.fixture
def dense(tmp_path: Path) -> list[Path]:
    torch.manual_seed(0)
    return write_checkpoints(tmp_path, Qwen3ForCausalLM(Qwen3Config(**COMMON)))


@pytest.fixture
def mixture(tmp_path: Path) -> list[Path]:
    torch.manual_seed(0)
    config = Qwen3MoeConfig(**COMMON, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8)
    return write_checkpoints(tmp_path, Qwen3MoeForCausalLM(config))


def merge(folders: list[Path], output: Path) -> MergeMetrics:
    output.mkdir()
    return stage.merge_checkpoints(folders[0], folders[1:], output, 0.9)


def assert_equals_reference(folders: list[Path], merged: dict[str, torch.Tensor]) -> None:
    base, *models = [load_file(folder / "model.safetensors") for folder in folders]
    assert merged.keys() == base.keys()
    for name, tensor in merged.items():
        reference = merge_tensor(base[name], [model[name] for model in models], 0.9)
        torch.testing.assert_close(tensor, reference, rtol=0, atol=1e-7)
        assert not torch.equal(tensor, base[name])


def test_everything_but_the_weights_is_stage_3s(dense: list[Path], tmp_path: Path) -> None:
    (dense[1] / "lineage.json").write_text("{}")
    merge(dense, tmp_path / "merged")
    names = {path.name for path in (tmp_path / "merged").iterdir()}
    assert names == {path.name for path in dense[1].iterdir()} - {"lineage.json"} | {"mergekit_config.yml"}
    for name in names - {"model.safetensors", "mergekit_config.yml"}:
        assert (tmp_path / "merged" / name).read_bytes() == (dense[1] / name).read_bytes()
    assert {"generation_config.json", "tokenizer.json", "chat_template.jinja"} <= names


def test_dense_equals_the_reference_and_stays_tied(dense: list[Path], tmp_path: Path) -> None:
    metrics = merge(dense, tmp_path / "merged")
    check_checkpoint(tmp_path / "merged")
    merged = load_file(tmp_path / "merged" / "model.safetensors")
    assert_equals_reference(dense, merged)
    assert "lm_head.weight" not in merged
    assert merged["model.embed_tokens.weight"].shape[0] == 8
    model = Qwen3ForCausalLM.from_pretrained(tmp_path / "merged")
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert metrics.fallback_tensors == len(metrics.tensors) == len(merged)
    assert metrics.mean_mergekit_weights == pytest.approx((0.5, 0.5))
    assert metrics.mean_weights == pytest.approx((16 / 17, 1 / 17), abs=0.05)
    assert 0.8 < metrics.moved_share <= 0.9


def test_experts_are_merged_one_by_one(mixture: list[Path], tmp_path: Path) -> None:
    metrics = merge(mixture, tmp_path / "merged")
    merged = load_file(tmp_path / "merged" / "model.safetensors")
    assert "model.layers.0.mlp.experts.3.down_proj.weight" in merged
    assert_equals_reference(mixture, merged)
    assert {tensor.name for tensor in metrics.tensors} == merged.keys()
    model = Qwen3MoeForCausalLM.from_pretrained(tmp_path / "merged")
    replies = model.generate(torch.tensor([[2, 3]]), max_new_tokens=2, do_sample=False)
    assert replies.shape[1] <= 4


def test_fused_experts_give_the_same(mixture: list[Path], tmp_path: Path) -> None:
    """A checkpoint that stores experts fused merges as one that stores them singly."""
    merge(mixture, tmp_path / "merged")
    fused_folders = []
    for folder in mixture:
        fused = tmp_path / f"fused-{folder.name}"
        shutil.copytree(folder, fused)
        state = Qwen3MoeForCausalLM.from_pretrained(folder).state_dict()
        state.pop("lm_head.weight")
        save_file({name: tensor.contiguous() for name, tensor in state.items()}, fused / "model.safetensors")
        fused_folders.append(fused)
    merge(fused_folders, tmp_path / "merged-fused")
    single = Qwen3MoeForCausalLM.from_pretrained(tmp_path / "merged").state_dict()
    stored = load_file(tmp_path / "merged-fused" / "model.safetensors")
    assert stored["model.layers.0.mlp.experts.gate_up_proj"].shape == (4, 16, 16)
    assert all(torch.equal(tensor, single[name]) for name, tensor in stored.items())


def test_shards_keep_their_layout(dense: list[Path], tmp_path: Path) -> None:
    """Stage 3 in shards, the others in one file; the merge has stage 3's shards and index."""
    merge(dense, tmp_path / "merged")
    weights = load_file(dense[1] / "model.safetensors")
    (dense[1] / "model.safetensors").unlink()
    names = sorted(weights)
    weight_map = {name: f"s{position % 2}.safetensors" for position, name in enumerate(names)}
    for shard in ("s0.safetensors", "s1.safetensors"):
        save_file({name: weights[name] for name in names if weight_map[name] == shard}, dense[1] / shard)
    (dense[1] / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    merge(dense, tmp_path / "sharded")
    check_checkpoint(tmp_path / "sharded")
    whole = load_file(tmp_path / "merged" / "model.safetensors")
    shards = load_file(tmp_path / "sharded" / "s0.safetensors") | load_file(tmp_path / "sharded" / "s1.safetensors")
    assert shards.keys() == whole.keys()
    assert all(torch.equal(shards[name], whole[name]) for name in whole)


def test_models_with_other_tensors_are_refused(dense: list[Path], tmp_path: Path) -> None:
    weights = load_file(dense[2] / "model.safetensors")
    weights.pop("model.norm.weight")
    save_file(weights, dense[2] / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"model\.norm\.weight is in only one"):
        merge(dense, tmp_path / "merged")


@pytest.fixture
def params(dense: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Params:
    """A checkout with the merge's inputs in place, and the tracker replaced by its double."""
    loaded = load_params().model_copy(update={"base_model": Path("models/base")})
    checkout = tmp_path / "checkout"
    for source, target in zip(dense, ("models/base", "checkpoints/stage3", "checkpoints/memory"), strict=True):
        shutil.copytree(source, checkout / target)
    monkeypatch.chdir(checkout)
    monkeypatch.setattr(stage, "stage_run", lambda *_: null_run())
    return loaded


class null_run:
    def __enter__(self) -> NullTracker:
        return NullTracker(run_id="run")

    def __exit__(self, *error: object) -> None: ...


def test_stage(params: Params, capsys: pytest.CaptureFixture[str]) -> None:
    stage.run(params)
    check_checkpoint(stage.MERGED)
    metrics = MergeMetrics.model_validate_json(stage.METRICS.read_text())
    assert metrics.models == ("checkpoints/stage3", "checkpoints/memory")
    lineage = read_lineage(stage.MERGED)
    assert lineage is not None
    assert [parent.path for parent in lineage.parents] == [stage.STAGE3, stage.MEMORY]
    assert lineage.run_id == "run"
    assert "rescaled" in (stage.MERGED / "README.md").read_text()
    assert "mergekit alone: 0.500" in capsys.readouterr().out


def test_stage_refuses_a_stale_shard_and_writes_nothing(params: Params) -> None:
    save_file({"x": torch.zeros(1)}, stage.MEMORY / "old.safetensors")
    with pytest.raises(CheckpointError, match=r"old\.safetensors"):
        stage.run(params)
    assert not stage.MERGED.exists()
    assert not stage.METRICS.exists()
