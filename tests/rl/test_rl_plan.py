"""The planner: hand-worked sizes, published figures of Qwen3-30B-A3B and Qwen3-4B, refusals with remedies that hold."""

import json
import math
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, Qwen3Config, Qwen3MoeConfig

from tasks.errors import CheckpointError
from tasks.params import ClusterParams, MegatronParams, Params, load_params
from tasks.rl import plan, sizing
from tasks.rl.sizing import PUBLISHED, Architecture, Operations, Row, Work
from tests.conftest import CHECKOUT

PROFILES = CHECKOUT / "infra/profiles"
LARGE = PROFILES / "qwen3-30b-a3b.yaml"
ON_GPUS = sorted(path for path in PROFILES.glob("*.yaml") if load_params(path).cluster.gpus_per_node)
QWEN3_30B, QWEN3_4B = PUBLISHED["qwen3-30b-a3b"][0], PUBLISHED["qwen3-4b"][0]

DENSE = Architecture(
    layers=2, hidden=4, heads=2, kv_heads=1, head_dim=2, intermediate=8, experts=1, active_experts=1, vocabulary=10,
    tied=True,
)  # fmt: skip
SPARSE = replace(DENSE, experts=4, active_experts=2, tied=False)


def cluster(gpus: int = 4, **changes: Any) -> ClusterParams:
    """FSDP2 without sequence parallelism, unless changed."""
    backend = {"type": "fsdp2", "sequence_parallel": 1, "offload": False}
    usual: dict[str, Any] = {
        "address": None, "nodes": 1, "gpus_per_node": gpus, "backend": backend, "rollout_tensor_parallel": 1,
        "rollout_memory_share": 0.5, "tokens_per_gpu": 100, "checkpoint_uri": None,
    }  # fmt: skip
    return ClusterParams.model_validate({**usual, **changes})


def megatron(tensor: int, pipeline: int, context: int, expert: int, offload: bool = False) -> MegatronParams:
    return MegatronParams(
        type="megatron",
        tensor_parallel=tensor,
        pipeline_parallel=pipeline,
        context_parallel=context,
        expert_parallel=expert,
        offload=offload,
    )


class TestPublishedFigures:
    def test_parameters_of_qwen3_30b_a3b(self) -> None:
        """Model card: 30.5B in total, 3.3B activated, 29.9B non-embedding; model.safetensors.index.json: total_size
        61,064,245,248 in bf16."""
        assert QWEN3_30B.parameters * sizing.BF16 == 61_064_245_248
        assert round(QWEN3_30B.parameters / 1e9, 1) == 30.5
        assert QWEN3_30B.active_parameters == 3_353_032_704
        assert round((QWEN3_30B.parameters - 2 * QWEN3_30B.embedding) / 1e9, 1) == 29.9

    def test_parameters_of_qwen3_4b(self) -> None:
        """Model card: 4.0B, 3.6B non-embedding; the embedding counts once."""
        assert round(QWEN3_4B.parameters / 1e9, 1) == 4.0
        assert round((QWEN3_4B.parameters - QWEN3_4B.embedding) / 1e9, 1) == 3.6
        assert QWEN3_4B.active_parameters == QWEN3_4B.parameters

    def test_cache_of_a_token(self) -> None:
        """2 · 48 layers · 4 heads · 128 · 2 bytes, and 2 · 36 · 8 · 128 · 2."""
        assert sizing.kv_bytes(QWEN3_30B) == 98_304
        assert sizing.kv_bytes(QWEN3_4B) == 147_456

    @pytest.mark.parametrize(("tokens", "operations"), [(5275, 121e12), (28_934, 666e12), (23_766, 547e12)])
    def test_operations_of_training(self, tokens: int, operations: float) -> None:
        """NVIDIA's Megatron-Bridge performance summary, 25.11, Qwen3_30B_a3B at 4,096 tokens a row: tokens and model
        operations a second and GPU (H100, GB300, GB200). Model operations are three forward passes."""
        forward = sizing.forward_operations(QWEN3_30B, 4096)
        assert 3 * forward.total / 4096 == pytest.approx(operations / tokens, rel=0.01)

    @pytest.mark.parametrize(("architecture", "config"), [
        (QWEN3_30B, Qwen3MoeConfig(
            vocab_size=151_936, hidden_size=2048, num_hidden_layers=48, num_attention_heads=32, num_key_value_heads=4,
            head_dim=128, moe_intermediate_size=768, num_experts=128, num_experts_per_tok=8, tie_word_embeddings=False,
        )),
        (QWEN3_4B, Qwen3Config(
            vocab_size=151_936, hidden_size=2560, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8,
            head_dim=128, intermediate_size=9728, tie_word_embeddings=True,
        )),
    ])  # fmt: skip
    def test_parameters_are_those_of_the_model(self, architecture: Architecture, config: Any) -> None:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
        assert sum(parameter.numel() for parameter in model.parameters()) == architecture.parameters

    def test_megatrons_bytes_a_parameter(self) -> None:
        """Megatron-Core's guide: 6 + 12/d with d data-parallel GPUs (the final norm's 4 parameters not counted)."""
        states = sizing.megatron_states(DENSE, megatron(1, 1, 1, 1), world=4)
        assert states.weights + states.gradients + states.optimiser == (6 + 12 / 4) * (DENSE.parameters - DENSE.hidden)


class TestSizes:
    def test_parameters(self) -> None:
        """Attention 4·(2·4 + 2·2), SwiGLU 3·4·8, norms 2·4 + 2·2; a router of 4·4."""
        assert (DENSE.attention, DENSE.expert, DENSE.router, DENSE.block) == (48, 96, 0, 156)
        assert DENSE.parameters == DENSE.active_parameters == 2 * 156 + 4 + 40
        assert SPARSE.block == 48 + 16 + 4 * 96 + 12
        assert SPARSE.parameters == 2 * 460 + 4 + 80
        assert SPARSE.active_parameters == SPARSE.parameters - 2 * 2 * 96

    def test_fsdp_shards_all_but_the_gathered_layer(self) -> None:
        states = sizing.fsdp_states(DENSE, world=4)
        assert (states.weights, states.gradients, states.optimiser) == (356, 356, 712)
        assert states.gathered == 2 * 2 * 40 + 10 * 156

    def test_megatron_spreads_the_experts(self) -> None:
        """TP 2, EP 2, 4 GPUs. Held: (2·76 + 2·40) / 2 = 116 and 2·384 / 2 = 384; d is 2 for both."""
        states = sizing.megatron_states(SPARSE, megatron(2, 1, 1, 2), world=4)
        assert (states.weights, states.gradients, states.gathered) == (2 * 500, 4 * 500, 0)
        assert states.optimiser == 12 * (116 / 2 + 384 / 2)

    def test_a_pipeline_stage_has_its_layers_and_one_embedding(self) -> None:
        states = sizing.megatron_states(SPARSE, megatron(1, 2, 1, 1), world=2)
        assert states.weights == 2 * (460 + 40)
        assert states.optimiser == 12 * 500

    def test_elements_of_a_layer(self) -> None:
        """9·4 + 6·4 + 5·2, and 6·8, or for two experts 4·8 + 5·4 each; a wide expert's own peak counts instead."""
        assert sizing.layer_elements(DENSE) == 70 + 48
        assert sizing.layer_elements(SPARSE) == 70 + 2 * 52
        assert sizing.layer_elements(replace(SPARSE, intermediate=80)) == 70 + 2 * 480

    def test_activations_under_ulysses(self) -> None:
        """A row of 60 on 2 GPUs: 30 tokens each; 2 bytes · 4 · 2 layers; 8 bytes a word and fp32 entropies."""
        backend = {"type": "fsdp2", "sequence_parallel": 2, "offload": False}
        sizes = sizing.activations(DENSE, cluster(backend=backend), tokens=60)
        assert (sizes.checkpoints, sizes.layer) == (30 * 16, 30 * 2 * 118)
        assert sizes.logits == 30 * 10 * (8 + 12)

    def test_activations_under_megatron(self) -> None:
        """TP 2 · CP 2: 15 tokens each, inputs gathered over TP, logits 12 bytes a word."""
        sizes = sizing.activations(DENSE, cluster(backend=megatron(2, 1, 2, 1)), tokens=60)
        assert (sizes.checkpoints, sizes.layer, sizes.logits) == (15 * 16, 15 * 2 * (118 + 8), 15 * 120)

    def test_a_pipeline_holds_as_many_inputs_as_it_has_stages(self) -> None:
        """Half of the layers, of two micro-batches."""
        assert sizing.activations(DENSE, cluster(backend=megatron(1, 2, 1, 1)), tokens=60).checkpoints == 60 * 16

    def test_the_entropy_of_a_short_row_is_one_chunk(self) -> None:
        one, two = (sizing.activations(DENSE, cluster(), tokens).logits for tokens in (2048, 4096))
        assert two - one == 8 * 2048 * 10

    @pytest.mark.parametrize(("offload", "trainer"), [(True, 0), (False, 356 + 712)])
    def test_rollouts_beside_the_trainer(self, offload: bool, trainer: float) -> None:
        """Half of 5 GiB less 2 GiB and 712 bytes of weights; 2·2·2·2 = 16 bytes a token; a 2 GiB bucket."""
        backend = {"type": "fsdp2", "sequence_parallel": 1, "offload": offload}
        sizes = sizing.rollout(DENSE, cluster(backend=backend), memory=5 * sizing.GIB)
        assert (sizes.trainer, sizes.weights) == (trainer, 712)
        assert sizes.cache_tokens == (sizing.GIB // 2 - 712) // 16
        assert sizes.sync == max(trainer, 356) + 712 + 2 * sizing.GIB

    def test_more_gpus_than_cached_heads_repeat_them(self) -> None:
        """Two GPUs halve the weights and leave a token's one head whole on each."""
        one, two = (sizing.rollout(DENSE, cluster(rollout_tensor_parallel=parts), 5 * sizing.GIB) for parts in (1, 2))
        assert two.weights == one.weights / 2
        assert two.cache_tokens == (sizing.GIB // 2 - 356) // 16

    def test_no_room_for_a_cache(self) -> None:
        sizes = sizing.rollout(DENSE, cluster(), memory=sizing.GIB)
        assert sizes.cache < 0
        assert sizes.cache_tokens == 0


class TestTime:
    def test_operations(self) -> None:
        """2·3·(2·(48 + 96) + 40) and 2·3²·4·2; two of four experts."""
        assert sizing.forward_operations(DENSE, 3) == Operations(1968, 144)
        assert sizing.forward_operations(SPARSE, 3).weights == 2 * 3 * (2 * (48 + 16 + 192) + 40)
        assert sizing.update_operations(Operations(1968, 144)) == Operations(4 * 1968, 4.5 * 144)

    def test_attention_grows_with_the_square(self) -> None:
        short, long = (sizing.forward_operations(QWEN3_30B, length) for length in (1000, 2000))
        assert (long.weights, long.scores) == (2 * short.weights, 4 * short.scores)

    def test_scoring_and_update_of_one_row(self) -> None:
        work = Work((Row(2, 1),), trajectories=1)
        seconds = sizing.step_seconds(DENSE, cluster(gpus=1), work, cache_tokens=100)
        assert seconds.scoring == pytest.approx((1968 + 144) / (0.38 * 989e12))
        assert seconds.update == pytest.approx((4 * 1968 + 4.5 * 144) / (0.38 * 989e12))

    def test_sampling_of_one_row(self) -> None:
        """The prompt once; then 4 tokens that each read 712 bytes of weights and a cache of 2 + 4/2 tokens."""
        work = Work((Row(2, 4),), trajectories=1)
        seconds = sizing.step_seconds(DENSE, cluster(gpus=1), work, cache_tokens=100)
        prompt = sizing.forward_operations(DENSE, 2).total / (0.38 * 989e12)
        assert seconds.rollout == pytest.approx(prompt + 4 * (712 + 4 * 16) / (0.5 * 3.35e12))

    def test_a_small_cache_samples_in_waves(self) -> None:
        """Five rows of 6 tokens in a cache of 12: two together, three waves."""
        assert sizing.rows_at_once(Row(2, 4), 5, cache_tokens=12) == 2
        work = Work((Row(2, 4),), trajectories=5)
        seconds = sizing.step_seconds(DENSE, cluster(gpus=1), work, cache_tokens=12)
        prompts = 5 * sizing.forward_operations(DENSE, 2).total / (0.38 * 989e12)
        assert seconds.rollout == pytest.approx(prompts + 3 * 4 * (712 + 2 * 4 * 16) / (0.5 * 3.35e12))

    def test_few_rows_touch_few_experts(self) -> None:
        """One token picks two of four: half of the experts' 2·4·96 weights stay unread."""
        work = Work((Row(1, 1),), trajectories=1)
        seconds = sizing.step_seconds(SPARSE, cluster(gpus=1), work, cache_tokens=100)
        forward = sizing.forward_operations(SPARSE, 1)
        prompt = (forward.weights / 0.12 + forward.scores / 0.38) / 989e12
        read = 2 * (SPARSE.parameters - 384) + 1.5 * 16
        assert seconds.rollout == pytest.approx(prompt + read / (0.5 * 3.35e12))

    @pytest.mark.parametrize(("rows", "cache", "together"), [(1, 0, 1), (5, 0, 1), (1000, 10**9, 256), (3, 10**9, 3)])
    def test_rows_at_once(self, rows: int, cache: int, together: int) -> None:
        assert sizing.rows_at_once(Row(2, 4), rows, cache) == together

    def test_twice_the_gpus_halve_training(self) -> None:
        work = Work((Row(100, 20),), trajectories=64)
        one, two = (sizing.step_seconds(QWEN3_30B, cluster(gpus), work, 10**6) for gpus in (4, 8))
        assert two.update == one.update / 2
        assert two.scoring == one.scoring / 2
        assert two.rollout < one.rollout


class TestStages:
    @pytest.fixture
    def large(self) -> Params:
        return load_params(LARGE)

    def test_a_full_context_stage_is_one_turn(self, large: Params) -> None:
        assert plan.turns_of("stage1", large) == (Row(32_768, 12_288),)

    def test_memory_reads_chunk_by_chunk(self, large: Params) -> None:
        """131,072 tokens in chunks of 32,768, each with memory and plan of 16,384; the answer sees the memory."""
        turns = plan.turns_of("memory", large)
        assert turns == (*[Row(49_152, 16_384)] * 4, Row(15_360, 20_480))
        assert Work(turns, 1024).tokens == 1024 * (4 * 65_536 + 35_840)

    def test_a_begun_chunk_is_a_turn(self, large: Params) -> None:
        memory = large.memory.model_copy(update={"chunk_tokens": 131_071})
        assert len(plan.turns_of("memory", large.model_copy(update={"memory": memory}))) == 3

    def test_qwen3_30b_a3b_on_its_cluster(self, large: Params) -> None:
        """TP 4 · CP 4 · EP 8 on 32 GPUs: 0.385e9 common and 3.62e9 routed parameters a GPU; a micro-batch is full."""
        stage = plan.plan_stages(large, QWEN3_30B, 80.0)[2]
        assert (stage.name, stage.longest, stage.micro_batch) == ("stage3", 174_080, 16 * 16_384)
        assert stage.training["weights"] == pytest.approx(2 * (0.3853e9 + 28.991e9 / 8), rel=1e-3)
        assert stage.training["optimiser"] == pytest.approx(12 * (0.3853e9 / 8 + 28.991e9 / 8 / 4), rel=1e-3)
        assert stage.training["logits"] == 16_384 * 151_936 * 12
        assert stage.training_total == sum(stage.training.values())

    def test_a_small_batch_does_not_fill_a_micro_batch(self, params: Params) -> None:
        """15 prompts · 8 samples on one GPU: 120 rows of 176 tokens are more than 16,384; one of 8 samples is not."""
        gpu = params.model_copy(update={"cluster": cluster(gpus=1, tokens_per_gpu=16_384)})
        assert plan.plan_stages(gpu, DENSE, 80.0)[0].micro_batch == 16_384
        few = gpu.model_copy(update={"rl": gpu.rl.model_copy(update={"batch_prompts": 1})})
        assert plan.plan_stages(few, DENSE, 80.0)[0].micro_batch == 8 * 176


CONFIG: dict[str, Any] = {
    "model_type": "qwen3_moe", "num_hidden_layers": 2, "hidden_size": 4, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 2, "moe_intermediate_size": 8, "num_local_experts": 4,
    "num_experts_per_tok": 2, "vocab_size": 10, "tie_word_embeddings": False,
}  # fmt: skip


class TestArchitectureFiles:
    def read(self, folder: Path, **changes: Any) -> Architecture:
        (folder / "config.json").write_text(json.dumps({**CONFIG, **changes}), "utf-8")
        return sizing.read_architecture(folder)[0]

    def test_both_names_of_the_experts(self, tmp_path: Path) -> None:
        assert self.read(tmp_path) == SPARSE
        assert self.read(tmp_path, num_experts=8).experts == 8

    def test_a_file_wins_over_the_name(self, tmp_path: Path) -> None:
        folder = tmp_path / "Qwen3-30B-A3B-Thinking-2507"
        assert sizing.read_architecture(folder) == PUBLISHED["qwen3-30b-a3b"]
        folder.mkdir()
        assert self.read(folder) == SPARSE

    def test_the_committed_base(self) -> None:
        architecture, source = sizing.read_architecture(CHECKOUT / "models/tiny-base")
        assert architecture.parameters == 487_168
        assert source.endswith("models/tiny-base/config.json")

    @pytest.mark.parametrize("changes", [
        {"model_type": "llama"}, {"hidden_size": "4"}, {"num_hidden_layers": 0}, {"mlp_only_layers": [0]},
        {"decoder_sparse_step": 2}, {"num_local_experts": None}, {"vocab_size": None},
    ])  # fmt: skip
    def test_another_architecture_is_refused(self, tmp_path: Path, changes: dict[str, Any]) -> None:
        with pytest.raises(CheckpointError, match=r"config\.json is no config of a Qwen3 model"):
            self.read(tmp_path, **changes)

    @pytest.mark.parametrize("text", ["", "{", "[]", "{}", "\x00"])
    def test_a_broken_file_is_refused(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "config.json").write_text(text, "utf-8")
        with pytest.raises(CheckpointError, match="fetch it again"):
            sizing.read_architecture(tmp_path)

    def test_an_unknown_name_without_a_file_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(CheckpointError, match=r"known: qwen3-30b-a3b, qwen3-4b\); put the model's config.json"):
            sizing.read_architecture(tmp_path / "my-model")


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of a refused plan."""
    with pytest.raises(SystemExit) as end:
        plan.main(arguments)
    error = capsys.readouterr().err
    assert end.value.code == 2
    assert error.count("\n") == 1
    return error


class TestCommand:
    @pytest.fixture(autouse=True)
    def _in_the_checkout(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(CHECKOUT)

    @pytest.mark.parametrize("profile", ON_GPUS, ids=lambda path: path.stem)
    def test_every_shipped_profile_fits_its_cluster(self, profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
        plan.main(["--profile", str(profile)])
        lines = capsys.readouterr().out.splitlines()
        assert next(line for line in lines if "stage1" in line).split() == list(plan_names())
        total = next(line for line in lines if line.startswith("  total")).split()[1:]
        assert all(0.0 < float(gib) <= 76.0 for gib in total)
        assert all(len(line) < 120 for line in lines[3:])

    def test_other_gpus_than_the_profiles(self, capsys: pytest.CaptureFixture[str]) -> None:
        plan.main(["--params", str(LARGE), "--gpus", "64", "--gpu-memory", "141"])
        assert "GPUs: 64 (8 × 8) of 141 GiB; megatron: tensor_parallel 4" in capsys.readouterr().out

    def test_a_laptop_profile_on_one_gpu(self, capsys: pytest.CaptureFixture[str]) -> None:
        plan.main(["--profile", str(PROFILES / "tiny.yaml"), "--gpus", "1", "--gpu-memory", "24"])
        assert "GPUs: 1 (1 × 1) of 24 GiB; fsdp2" in capsys.readouterr().out

    @pytest.mark.parametrize(("arguments", "misfit"), [
        (("--gpus", "16"), "stage1 needs 79.6 GiB a GPU for training (most of it: logits) and has 76.0 (and 4 more)"),
        (("--set", "cluster.backend.offload=false"), "for sampling beside the trainer"),
        (("--set", "cluster.rollout_memory_share=0.25"), "stage3: vLLM's cache holds 165,254 tokens and the longest"),
        (("--set", "cluster.rollout_memory_share=0.97"), "for sampling beside the trainer"),
        (("--gpu-memory", "48"), "for training"),
        (("--set", "cluster.rollout_tensor_parallel=1"), "vLLM's cache holds 0 tokens"),
    ])  # fmt: skip
    def test_what_cannot_fit_is_refused_with_what_would(
        self, arguments: tuple[str, ...], misfit: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        error = refusal(capsys, "--profile", str(LARGE), *arguments)
        assert misfit in error
        for remedy in error.partition("what would fit: ")[2].strip().split(", or "):
            plan.main(["--profile", str(LARGE), *arguments, *shlex.split(remedy)])  # exits if it does not fit

    def test_what_nothing_could_make_fit(self, capsys: pytest.CaptureFixture[str]) -> None:
        error = refusal(capsys, "--profile", str(LARGE), "--gpu-memory", "5")
        assert "and has 1.0" in error
        assert error.endswith("no one or two changes up to 16 times the GPUs make it fit: take GPUs with more memory\n")

    @pytest.mark.parametrize(("arguments", "message"), [
        (("--gpus", "12"), "--gpus 12 is no whole number of nodes with 8 GPUs: take 8 or 16"),
        (("--gpus", "0"), "--gpus 0: training needs at least 1"),
        (("--gpus", "-8"), "--gpus -8: training needs at least 1"),
        (("--gpus", "8"), "is not divisible by the backend's parallel sizes = 16"),
        (("--gpu-memory", "nan"), "--gpu-memory nan must be a number of GiB above 0"),
        (("--gpu-memory", "inf"), "--gpu-memory inf must be"),
        (("--gpu-memory", "0"), "--gpu-memory 0.0 must be"),
        (("--set", "cluster.nodes=x"), "cluster.nodes = 'x'"),
        (("--set", "base_model=models/none"), "models/none/config.json does not exist"),
        (("--profile", "none.yaml"), "none.yaml does not exist"),
        (("--profile", "infra/profiles/tiny.yaml"), "trains on the CPU (cluster.gpus_per_node = 0); say --gpus N"),
        (("--set", "cluster.tokens_per_gpu=10000"), "cannot hold the longest row"),
        (("--set", "cluster.backend.tensor_parallel=8"), "tensor_parallel = 8 does not divide the model's 4; choose"),
        (("--set", "cluster.backend.expert_parallel=3"), "expert_parallel = 3"),
        (("--gpus", "128", "--set", "cluster.rollout_tensor_parallel=64"), "does not divide the model's 32"),
    ])  # fmt: skip
    def test_impossible_requests(
        self, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert message in refusal(capsys, "--profile", str(LARGE), *arguments)

    @pytest.mark.parametrize(("parts", "problem"), [
        ({"tensor": 3, "pipeline": 1, "context": 1, "expert": 1}, "backend.tensor_parallel = 3"),
        ({"tensor": 1, "pipeline": 5, "context": 1, "expert": 1}, "backend.pipeline_parallel = 5"),
        ({"tensor": 1, "pipeline": 1, "context": 1, "expert": 3}, "backend.expert_parallel = 3"),
        ({"tensor": 4, "pipeline": 3, "context": 5, "expert": 4}, None),
    ])  # fmt: skip
    def test_sizes_that_do_not_divide_the_model(self, parts: dict[str, Any], problem: str | None) -> None:
        found = sizing.indivisible(QWEN3_30B, cluster(gpus=60, backend=megatron(**parts)))
        assert (found or "").startswith(problem or "")
        assert (found is None) == (problem is None)

    def test_neither_help_nor_a_plan_loads_torch(self) -> None:
        code = f"""
import sys
from tasks.rl.plan import main
main(["--profile", {str(LARGE)!r}])
print(sorted({{"torch", "mlflow", "transformers", "verl", "ray"}} & set(sys.modules)))
"""
        answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert answer.stdout.splitlines()[-1] == "[]"
        usage = [sys.executable, "-X", "importtime", "-m", "tasks.rl.plan", "--help"]
        answer = subprocess.run(usage, capture_output=True, text=True, check=True)
        assert answer.stdout.startswith("usage: python -m tasks.rl.plan")
        assert "pydantic" not in answer.stderr


def plan_names() -> tuple[str, ...]:
    return "stage1", "stage2", "stage3", "memory", "stage4"


def test_numbers_are_finite(params: Params) -> None:
    for stage in plan.plan_stages(params.model_copy(update={"cluster": cluster(gpus=1)}), DENSE, 80.0):
        assert all(math.isfinite(size) for size in (*stage.training.values(), stage.seconds.total))
