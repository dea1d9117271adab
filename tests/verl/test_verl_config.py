"""Every RL stage of every shipped profile as verl's own configuration, and the values that carry the recipe."""

import importlib.util
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tasks.errors import ParameterError, PipelineError
from tasks.params import RL_STAGES, Params, load_params
from tasks.rl.engines.verl.config import (
    RunIds,
    RunPaths,
    check_model,
    compose,
    config_name,
    overrides,
    row_lengths,
)
from tasks.rl.schedule import BETAS
from tests.conftest import CHECKOUT

if TYPE_CHECKING:
    from omegaconf import DictConfig

PROFILES = tuple(sorted(path.stem for path in (CHECKOUT / "infra/profiles").glob("*.yaml")))
ON_CPUS = ("smollm2", "tiny")
ON_GPUS = tuple(profile for profile in PROFILES if profile not in ON_CPUS)
ON_FSDP = tuple(profile for profile in ON_GPUS if profile != "qwen3-30b-a3b")
EVERYWHERE = [(profile, stage) for profile in PROFILES for stage in RL_STAGES]
PATHS = RunPaths(Path("data/curated/stage1.parquet"), Path("models/start"), Path(".work/rl-stage1/resume"))
IDS = RunIds("fingerprint", "run", "sqlite:///mlflow.db")
WINDOW_ROWS = (122880 - 16384, 20480)  # an update's prompt; the answer is longer than a memory and a plan
LENGTHS = {  # prompt, response
    **{(profile, "stage1"): (32768, 12288) for profile in ON_GPUS},
    **{(profile, "stage2"): (61440, 20480) for profile in ON_GPUS},
    **{(profile, stage): (122880, 51200) for profile in ON_GPUS for stage in ("stage3", "stage4")},
    **{(profile, "memory"): WINDOW_ROWS for profile in ON_GPUS},
    ("smollm2", "stage1"): (768, 32),
    ("smollm2", "stage2"): (896, 32),
    ("smollm2", "stage3"): (1024, 32),
    ("smollm2", "stage4"): (1024, 32),
    ("smollm2", "memory"): (1024 - 224, 224 + 33 + 1),
    ("tiny", "stage1"): (128, 48),
    ("tiny", "stage2"): (256, 56),
    ("tiny", "stage3"): (512, 64),
    ("tiny", "stage4"): (512, 64),
    ("tiny", "memory"): (512 - 56, 56 + 33 + 1),  # memory and plan, at most 33 tokens of tags, the end token
}

needs_verl = pytest.mark.skipif(
    importlib.util.find_spec("verl") is None, reason="verl is not installed: pip install 'posttrain-flows[verl]'"
)


@cache
def profile_of(name: str) -> Params:
    return load_params(CHECKOUT / f"infra/profiles/{name}.yaml", ("rl.engine=verl",))


def changed(profile: str, *settings: str) -> Params:
    return load_params(CHECKOUT / f"infra/profiles/{profile}.yaml", ("rl.engine=verl", *settings))


@cache
def composed(profile: str, stage: str = "stage3") -> "DictConfig":
    params = profile_of(profile)
    return compose(config_name(params), overrides(stage, params, PATHS, IDS))


def compose_stage(params: Params, stage: str = "stage3", paths: RunPaths = PATHS) -> "DictConfig":
    return compose(config_name(params), overrides(stage, params, paths, IDS))


def actor_of(config: "DictConfig") -> Any:
    """What verl's workers make of the actor section."""
    from verl.utils.config import omega_conf_to_dataclass

    return omega_conf_to_dataclass(config.actor_rollout_ref.actor)


def rows_shared_by(config: "DictConfig") -> int:
    """By what verl multiplies its limit of tokens per GPU: its engines' `sp_size`."""
    engine = actor_of(config).engine
    return int(engine.context_parallel_size if engine.strategy == "megatron" else engine.ulysses_sequence_parallel_size)


# ── all stages of all profiles ──


@needs_verl
@pytest.mark.parametrize(("profile", "stage"), EVERYWHERE)
def test_verl_takes_every_stage_of_every_profile(profile: str, stage: str) -> None:
    config, limits = composed(profile, stage), profile_of(profile).rl.limits(stage)
    prompt, response = LENGTHS[profile, stage]
    rollout = config.actor_rollout_ref.rollout
    assert (config.data.max_prompt_length, config.data.max_response_length) == (prompt, response)
    assert (rollout.prompt_length, rollout.response_length) == (prompt, response)
    assert rollout.max_model_len == prompt + response
    assert rollout.enable_chunked_prefill
    assert config.trainer.total_training_steps == config.trainer.total_epochs == limits.steps
    agent = "memory_agent" if stage == "memory" else "full_context"
    assert rollout.agent.default_agent_loop == config.data.agent == agent
    assert config.trainer.experiment_name == f"rl-{stage}" and config.recipe.name == stage


@needs_verl
@pytest.mark.parametrize(("profile", "stage"), EVERYWHERE)
def test_the_longest_row_fits_into_a_micro_batch(profile: str, stage: str) -> None:
    config = composed(profile, stage)
    actor, rollout = config.actor_rollout_ref.actor, config.actor_rollout_ref.rollout
    cluster = profile_of(profile).cluster
    assert actor.use_dynamic_bsz and rollout.log_prob_use_dynamic_bsz
    limit = actor.ppo_max_token_len_per_gpu * rows_shared_by(config)
    assert limit == cluster.tokens_per_gpu * cluster.backend.model_parallel
    assert limit >= rollout.max_model_len
    assert rollout.log_prob_max_token_len_per_gpu == actor.ppo_max_token_len_per_gpu


@needs_verl
@pytest.mark.parametrize("profile", PROFILES)
def test_one_step_a_batch_without_kl_reference_and_critic(profile: str) -> None:
    from verl.trainer.ppo.utils import need_critic, need_reference_policy

    config, rl = composed(profile), profile_of(profile).rl
    actor = config.actor_rollout_ref.actor
    assert actor.ppo_mini_batch_size == config.data.train_batch_size == rl.batch_prompts
    assert actor.ppo_epochs == 1
    assert config.actor_rollout_ref.rollout.n == rl.group_size
    assert (actor.use_kl_loss, config.algorithm.use_kl_in_reward, actor.entropy_coeff) == (False, False, 0)
    assert not need_reference_policy(config) and not need_critic(config)
    assert (actor.policy_loss.loss_mode, actor.loss_agg_mode) == ("recipe", "token-mean")
    assert config.algorithm.adv_estimator == "grpo"


@needs_verl
@pytest.mark.parametrize("profile", PROFILES)
def test_the_optimiser_is_the_local_engines(profile: str) -> None:
    rl, config = profile_of(profile).rl, composed(profile)
    optim = actor_of(config).optim
    assert (optim.lr, optim.weight_decay, optim.clip_grad) == (rl.learning_rate, 0.0, rl.max_gradient_norm)
    assert tuple(optim.betas) == BETAS == (0.9, 0.98)
    assert optim.optimizer.lower() in {"adam", "adamw"}


@needs_verl
@pytest.mark.parametrize("profile", PROFILES)
def test_rollouts_sample_as_the_recipe_says_and_keep_their_log_probabilities(profile: str) -> None:
    rollout, params = composed(profile).actor_rollout_ref.rollout, profile_of(profile)
    assert (rollout.temperature, rollout.top_p, rollout.top_k) == (0.7, 0.95, -1)
    assert rollout.calculate_log_probs and rollout.mode == "async"
    assert rollout.tensor_model_parallel_size == params.cluster.rollout_tensor_parallel
    assert rollout.name == ("local" if profile in ON_CPUS else "vllm")


@needs_verl
@pytest.mark.parametrize("profile", PROFILES)
def test_checkpoints_resume_and_are_exported_unrounded(profile: str) -> None:
    config = composed(profile)
    checkpoint, trainer = config.actor_rollout_ref.actor.checkpoint, config.trainer
    assert list(checkpoint.save_contents) == ["model", "optimizer", "extra", "hf_model"]
    assert list(checkpoint.load_contents) == ["model", "optimizer", "extra"]
    assert (trainer.resume_mode, trainer.save_freq) == ("auto", profile_of(profile).rl.checkpoint_every)
    assert trainer.max_actor_ckpt_to_keep >= 2
    assert trainer.checkpoint_callback_class is None


@needs_verl
@pytest.mark.parametrize("profile", PROFILES)
def test_the_trainer_is_ours_prints_and_never_validates(profile: str) -> None:
    trainer = composed(profile).trainer
    assert trainer.use_v1 and trainer.v1.trainer_mode == "recipe" and dict(trainer.v1.recipe) == {}
    assert list(trainer.logger) == []
    assert (trainer.val_before_train, trainer.test_freq) == (False, -1)
    cluster = profile_of(profile).cluster
    assert trainer.nnodes * trainer.n_gpus_per_node == cluster.world_size


@needs_verl
@pytest.mark.parametrize("profile", PROFILES)
def test_paths_do_not_depend_on_the_folder_of_the_process(profile: str) -> None:
    config = composed(profile)
    here = Path.cwd()
    assert config.data.train_files == str(here / PATHS.data)
    assert config.actor_rollout_ref.model.path == str(here / PATHS.model)
    assert config.trainer.default_local_dir == str(here / PATHS.work)
    assert config.trainer.rollout_data_dir == str(here / ".work/rl-stage1/rollouts")


# ── each backend ──


@needs_verl
def test_the_cpu_computes_in_fp32_and_in_one_process_of_each_kind() -> None:
    config = composed("tiny")
    model, actor = config.actor_rollout_ref.model, config.actor_rollout_ref.actor
    assert (config.trainer.device, config.trainer.nnodes, config.trainer.n_gpus_per_node) == ("cpu", 1, 1)
    assert model.override_config.attn_implementation == "sdpa"
    assert not model.use_remove_padding and not model.enable_gradient_checkpointing
    assert actor.strategy == "fsdp2" and actor.fsdp_config.model_dtype == "fp32"
    assert set(actor.fsdp_config.mixed_precision.values()) == {"fp32"}
    assert not actor.use_torch_compile and not actor.fsdp_config.use_torch_compile
    assert config.transfer_queue.backend.SimpleStorage.num_data_storage_units == 1
    assert config.reward.num_workers == config.actor_rollout_ref.rollout.agent.num_workers == 1


@needs_verl
@pytest.mark.parametrize("profile", ON_FSDP)
def test_fsdp_keeps_fp32_weights_and_splits_long_rows(profile: str) -> None:
    config, backend = composed(profile), profile_of(profile).cluster.backend
    engine = actor_of(config).engine
    assert (engine.strategy, engine.model_dtype, engine.mixed_precision) == ("fsdp2", "fp32", None)  # bf16 compute
    assert engine.ulysses_sequence_parallel_size == backend.model_parallel == 8
    assert (engine.param_offload, engine.optimizer_offload) == (backend.offload, backend.offload)
    assert engine.entropy_from_logits_with_chunking
    model = config.actor_rollout_ref.model
    assert model.use_remove_padding and model.enable_gradient_checkpointing
    assert "attn_implementation" not in model.override_config
    assert config.trainer.device == "cuda"


@needs_verl
def test_megatron_spreads_experts_and_computes_layers_again() -> None:
    config = composed("qwen3-30b-a3b")
    actor = actor_of(config)
    engine, optim = actor.engine, actor.optim
    sizes = (
        engine.tensor_model_parallel_size,
        engine.pipeline_model_parallel_size,
        engine.context_parallel_size,
        engine.expert_model_parallel_size,
        engine.expert_tensor_parallel_size,
    )
    assert sizes == (4, 1, 4, 8, 1)
    assert engine.param_offload and engine.optimizer_offload and engine.use_mbridge and not engine.vanilla_mbridge
    transformer = engine.override_transformer_config
    assert (transformer["recompute_granularity"], transformer["recompute_method"]) == ("full", "uniform")
    assert transformer["recompute_num_layers"] == 1
    assert actor.entropy_from_logits_with_chunking
    passed_on = optim.override_optimizer_config
    assert (passed_on["adam_beta1"], passed_on["adam_beta2"]) == BETAS
    assert (optim.lr_warmup_init, optim.lr_decay_style) == (0.0, "constant")


@needs_verl
def test_a_bucket_adds_the_upload() -> None:
    params = changed("qwen3-4b", "cluster.checkpoint_uri=s3://bucket/runs")
    assert compose_stage(params).trainer.checkpoint_callback_class == ("tasks.rl.engines.verl.upload.CheckpointUpload")


# ── the keys ──


@needs_verl
@pytest.mark.parametrize("profile", PROFILES)
def test_only_new_keys_have_a_plus(profile: str) -> None:
    from hydra import compose as compose_config
    from hydra import initialize_config_module

    params = profile_of(profile)
    with initialize_config_module("verl.trainer.config", version_base=None):
        theirs = compose_config(config_name(params))
    keys = [override.partition("=")[0] for override in overrides("stage1", params, PATHS, IDS)]
    assert [key for key in keys if _exists(theirs, key.removeprefix("+")) == key.startswith("+")] == []
    assert len({key.removeprefix("+") for key in keys}) == len(keys)


def _exists(config: "DictConfig", key: str) -> bool:
    from omegaconf import OmegaConf

    section, _, leaf = key.rpartition(".")
    known = OmegaConf.select(config, section)
    return known is not None and leaf in list(known)


@needs_verl
@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ("trainer.save_frq=3", "save_frq"),
        ("actor_rollout_ref.actor.ppo_mini_batchsize=3", "ppo_mini_batchsize"),
        ("+actor_rollout_ref.actor.fsdp_config.mixed_precison={}", "mixed_precison"),
        ("actor_rollout_ref.actor.loss_agg_mode=mean", "loss_agg_mode"),
        ("data.train_batch_size=[", "no viable alternative at input '[' See"),
    ],
)
def test_verls_refusal_is_one_of_our_errors(wrong: str, named: str) -> None:
    right = overrides("stage1", profile_of("tiny"), PATHS, IDS)
    with pytest.raises(ParameterError, match=re.escape(named)) as refused:
        compose("ppo_trainer", [*right, wrong])
    assert "verl refuses" in str(refused.value) and "change the rl or the cluster section" in str(refused.value)


# ── what travels in the configuration ──


@needs_verl
@pytest.mark.parametrize("profile", PROFILES)
def test_our_parameters_come_back_equal(profile: str) -> None:
    recipe = composed(profile).recipe
    assert Params.model_validate_json(recipe.params) == profile_of(profile)
    assert (recipe.fingerprint, recipe.run_id, recipe.tracking_uri) == ("fingerprint", "run", "sqlite:///mlflow.db")


@needs_verl
def test_awkward_texts_survive_byte_for_byte_even_resolved() -> None:
    from omegaconf import OmegaConf

    awkward = "it's \"q\" {a: [b], ${HOME}} \\' \\ $5 ünï 中 #=,\n\ttab"
    params = profile_of("tiny")
    params = params.model_copy(
        update={"corpus": params.corpus.model_copy(update={"folder": awkward}), "profile": awkward + "\\"}
    )
    config = compose_stage(params)
    written = config.recipe.params
    assert json.loads(written)["profile"] == awkward + "\\"
    OmegaConf.resolve(config)
    assert config.recipe.params == written
    assert Params.model_validate_json(config.recipe.params) == params


@needs_verl
@given(st.text(st.characters(exclude_categories=["Cs"])))
@example("null")
@example("True")
@example("1e-6")
@example("\\'")
@example("a\\")
@example("x'\\\\")
@example("?")
@example("???")
@example(" ")
def test_any_text_is_text_again(text: str) -> None:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from omegaconf import OmegaConf

    ids = RunIds(text, "run", "uri")
    if "${" in text or text == "???":
        with pytest.raises(ParameterError, match="rename it"):
            overrides("stage1", profile_of("tiny"), PATHS, ids)
        return
    (override,) = [
        override
        for override in overrides("stage1", profile_of("tiny"), PATHS, ids)
        if override.startswith("+recipe.fingerprint=")
    ]
    value = OverridesParser.create().parse_override(override).value()
    assert OmegaConf.create({"value": value}).value == text


@needs_verl
def test_awkward_folders_are_found_again(tmp_path: Path) -> None:
    folder = tmp_path / "it's a {folder}, [really] = $1 #é"
    paths = RunPaths(folder / "data.parquet", folder / "model", folder / "work")
    config = compose_stage(profile_of("tiny"), paths=paths)
    assert config.data.train_files == str(paths.data)
    assert config.trainer.default_local_dir == str(paths.work)


# ── bad input ──


def test_a_cluster_job_sees_in_the_overrides_that_it_runs_on_a_cpu() -> None:
    from tasks.rl.engines.verl.job import ON_CPU

    assert ON_CPU in overrides("stage1", profile_of("tiny"), PATHS, IDS)
    assert ON_CPU not in overrides("stage1", profile_of("qwen3-4b"), PATHS, IDS)


def test_a_folder_that_verl_would_fill_in_is_refused() -> None:
    paths = RunPaths(Path("/data/${USER}/x.parquet"), PATHS.model, PATHS.work)
    with pytest.raises(ParameterError, match=r"x\.parquet.*\$\{.*rename it"):
        overrides("stage1", profile_of("tiny"), paths, IDS)


def test_a_turn_that_no_micro_batch_holds_is_refused() -> None:
    params = changed("qwen3-30b-a3b", "memory.window=400000")
    with pytest.raises(ParameterError) as refused:
        overrides("memory", params, PATHS, IDS)
    message = str(refused.value)
    assert "tokens_per_gpu = 16384 on 16 GPUs" in message
    assert "383616 + 20480 tokens" in message and "raise it" in message
    overrides("stage3", params, PATHS, IDS)  # whose rows are short enough


def test_a_missing_extra_names_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hydra", None)
    monkeypatch.setitem(sys.modules, "verl", None)
    with pytest.raises(PipelineError, match=re.escape("pip install 'posttrain-flows[verl]'")):
        compose("ppo_trainer", [])


def test_overrides_are_built_without_torch_and_verl() -> None:
    program = (
        "import sys; from pathlib import Path; from tasks.params import load_params\n"
        "from tasks.rl.engines.verl.config import RunIds, RunPaths, overrides\n"
        "paths = RunPaths(Path('a'), Path('b'), Path('c'))\n"
        "print(len(overrides('memory', load_params(), paths, RunIds('f', 'r', 'u'))))\n"
        "print({'torch', 'verl', 'hydra'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    count, loaded = done.stdout.split("\n", 1)
    assert int(count) > 40 and loaded.strip() == "set()"


# ── the bound of a memory turn ──


def test_a_memory_turns_bound_ignores_the_documents_length() -> None:
    longer = changed("qwen3-30b-a3b", "rl.stages.memory.max_input_tokens=4000000", "cluster.tokens_per_gpu=300000")
    assert row_lengths("memory", longer) == row_lengths("memory", profile_of("qwen3-30b-a3b"))


def test_a_memory_turns_bound_holds_for_the_real_tokenizer() -> None:
    """The longest update turn that the agent admits, and the longest answer, with the tiny model's tokenizer."""
    from tasks.memory.agent import UPDATE_FRAME
    from tasks.tokenization import ChatTokenizer

    tokenizer, params = ChatTokenizer.load(CHECKOUT / "models/tiny-base"), profile_of("tiny")
    memory, bound = params.memory, row_lengths("memory", params)
    update = memory.memory_tokens + memory.plan_tokens + len(tokenizer.encode_reply(UPDATE_FRAME)) + 1
    assert memory.window - update <= bound.prompt
    assert update <= bound.response and params.rl.limits("memory").max_output_tokens <= bound.response


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (None, "does not exist"),
        ({"max_position_embeddings": 100}, r"max_position_embeddings = 100.*176 tokens"),
        ({"num_attention_heads": 3, "num_key_value_heads": 3}, r"sequence_parallel = 2 does not divide the model's 3"),
        ({"model_type": "gpt2"}, "no config of a Qwen3 model"),
    ],
)
def test_a_model_that_the_stage_does_not_fit_is_refused_before_anything_starts(tmp_path, change, complaint):
    cluster = "cluster.backend={type: fsdp2, sequence_parallel: 2, offload: false}"
    params = load_params(CHECKOUT / "params.yaml", ("cluster.gpus_per_node=2", cluster))
    if change is not None:
        model = json.loads((CHECKOUT / "models/tiny-base/config.json").read_text("utf-8"))
        (tmp_path / "config.json").write_text(json.dumps({**model, **change}), "utf-8")
    with pytest.raises(PipelineError, match=complaint):
        check_model("stage1", params, tmp_path)
