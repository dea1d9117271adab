"""Our parameters in verl's words: the Hydra overrides of one RL stage, and the configuration they make.

A table a concern; keys are those of verl's `ppo_trainer` and `ppo_megatron_trainer`, and a `+` marks a key that verl's
own files do not have. Of verl's defaults only those that the recipe rests on are repeated. Imports no torch.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.errors import CheckpointError, ParameterError, PipelineError
from tasks.generation.openai import on_this_machine
from tasks.memory.agent import UPDATE_FRAME
from tasks.params import EndpointJudge, FsdpParams, MegatronParams, Params, RLParams
from tasks.rl.schedule import BETAS
from tasks.rl.sizing import indivisible, read_architecture

if TYPE_CHECKING:
    from omegaconf import DictConfig

Value = str | int | float | bool | Sequence[str | float] | Mapping[str, str]
Settings = dict[str, Value]

DATASET = "pkg://tasks.rl.engines.verl.dataset"
UPLOAD = "tasks.rl.engines.verl.upload.CheckpointUpload"
KEPT_CHECKPOINTS = 2  # verl deletes the older one before it names the newer one the latest
FP32 = {"param_dtype": "fp32", "reduce_dtype": "fp32", "buffer_dtype": "fp32"}
NO_WORD = {"true", "false", "null", "nan", "inf"}  # what Hydra reads as something else than text


@dataclass(frozen=True)
class RunPaths:
    """The curated parquet, the starting HF folder, and the folder of verl's resume points."""

    data: Path
    model: Path
    work: Path

    @property
    def rollouts(self) -> Path:
        """Where each step's samples go: beside the resume points, which a finished stage removes."""
        return self.work.absolute().parent / "rollouts"


@dataclass(frozen=True)
class RunIds:
    """What a resumed run must have in common with the run it continues, and the MLflow run that both write to."""

    fingerprint: str
    run_id: str
    tracking_uri: str


@dataclass(frozen=True)
class RowLengths:
    """Upper bounds of one training row, in tokens."""

    prompt: int
    response: int

    @property
    def row(self) -> int:
        """The longest row."""
        return self.prompt + self.response


def config_name(params: Params) -> str:
    """verl's configuration for the backend."""
    return "ppo_megatron_trainer" if isinstance(params.cluster.backend, MegatronParams) else "ppo_trainer"


def row_lengths(name: str, params: Params) -> RowLengths:
    """Bounds for a stage's rows; for the memory agent, whose rows are turns, they do not depend on the document.

    An update turn fits into the window together with its reply, and that reply has room for a whole memory, a whole
    plan, their tags and the end token (tasks/memory/agent.py refuses questions for which this does not hold). So no
    prompt is longer than the window without memory and plan, the final turn's prompt least of all: it has no chunk.
    A reply is an update or the answer. Without a tokenizer at hand the tags count a token a character, which they
    never exceed; a tokenizer's own count would save some 20 tokens of 100,000.
    """
    limits = params.rl.limits(name)
    if name != "memory":
        return RowLengths(limits.max_input_tokens, limits.max_output_tokens)
    memory = params.memory
    state = memory.memory_tokens + memory.plan_tokens
    return RowLengths(memory.window - state, max(state + len(UPDATE_FRAME) + 1, limits.max_output_tokens))


def check_model(name: str, params: Params, folder: Path) -> None:
    """Refuse a model that a row does not fit into, or that the cluster cannot share out; verl would say it late.

    Raises:
        CheckpointError: there is no config.json of a Qwen3 model, or the model is too small for the stage.
        ParameterError: a parallel size does not divide the model.
    """
    file = folder / "config.json"
    if not file.is_file():
        raise CheckpointError(f"{file} does not exist; train or fetch the model of this folder first")
    architecture, _ = read_architecture(folder)
    if problem := indivisible(architecture, params.cluster):
        raise ParameterError(f"cluster.{problem} in {file}; change the cluster section")
    row = row_lengths(name, params).row
    positions = json.loads(file.read_text("utf-8")).get("max_position_embeddings", row)
    if positions < row:
        raise CheckpointError(
            f"{file}: max_position_embeddings = {positions}, but a row of {name} has up to {row} tokens; "
            "lower the stage's lengths or extend the model's positions"
        )


def check_reach(params: Params) -> None:
    """Refuse a judge on this machine's loopback where other machines score.

    Raises:
        ParameterError: their agent loops would ask themselves.
    """
    judge, nodes = params.judge, params.cluster.nodes
    if isinstance(judge, EndpointJudge) and nodes > 1 and on_this_machine(judge.base_url):
        raise ParameterError(
            f"judge.base_url = {judge.base_url} is another place on each of the cluster.nodes = {nodes} machines that "
            "score; name a host that all of them reach"
        )


def overrides(name: str, params: Params, paths: RunPaths, ids: RunIds) -> list[str]:
    """The Hydra overrides of RL stage `name`; `compose` and verl's command line take them as they are.

    Raises:
        ParameterError: a micro-batch cannot hold the stage's longest row, or a text means something to OmegaConf.
    """
    lengths = row_lengths(name, params)
    _check_micro_batch(name, params, lengths)
    settings = {
        **_algorithm(),
        **_data(name, params, paths, lengths),
        **_model(params, paths),
        **_actor(params.rl),
        **_optimiser(params),
        **_backend(params),
        **_micro_batches(params),
        **_rollout(name, params, lengths),
        **_trainer(name, params, paths),
        **_processes(params),
        **_recipe(name, params, ids),
    }
    return [f"{key}={_written(value)}" for key, value in settings.items()]


def compose(name: str, overrides: Sequence[str]) -> "DictConfig":
    """verl's configuration `name` with the overrides, checked by verl's own rules.

    Raises:
        PipelineError: verl is not installed.
        ParameterError: verl does not know a key or refuses a value.
    """
    try:
        import verl.trainer.config
        from hydra import compose as compose_config
        from hydra import initialize_config_dir
        from hydra.errors import HydraException
        from omegaconf.errors import OmegaConfBaseException
    except ModuleNotFoundError as error:
        raise PipelineError(
            f"rl.engine = 'verl' needs the package {error.name}, which is not installed: "
            "pip install 'posttrain-flows[verl]'"
        ) from error
    try:
        with initialize_config_dir(str(Path(verl.trainer.config.__file__).parent), version_base=None):
            config = compose_config(name, list(overrides))
        _validate(config)
    except (HydraException, OmegaConfBaseException, AssertionError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ParameterError(f"verl refuses its {name}: {reason}; change the rl or the cluster section") from error
    return config


def _validate(config: "DictConfig") -> None:
    """verl's own checks, without the line that it prints."""
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import validate_config

    with redirect_stdout(StringIO()):
        validate_config(config, need_reference_policy(config), need_critic(config))


def _on_cpu(params: Params) -> bool:
    return params.cluster.gpus_per_node == 0


def _agent(name: str) -> str:
    return "memory_agent" if name == "memory" else "full_context"


def _check_micro_batch(name: str, params: Params, lengths: RowLengths) -> None:
    split = params.cluster.backend.model_parallel
    if params.cluster.tokens_per_gpu * split < lengths.row:
        raise ParameterError(
            f"cluster.tokens_per_gpu = {params.cluster.tokens_per_gpu} on {split} GPUs a row cannot hold a row of "
            f"{name} ({lengths.prompt} + {lengths.response} tokens); raise it, or the backend's parallel sizes"
        )


def _algorithm() -> Settings:
    """GRPO's shape of data; our trainer replaces its numbers. No KL, so no reference policy; no critic."""
    return {
        "algorithm.adv_estimator": "grpo",
        "algorithm.use_kl_in_reward": False,
        "critic.enable": False,
    }


def _data(name: str, params: Params, paths: RunPaths, lengths: RowLengths) -> Settings:
    """Our trainer builds the dataset and draws from it."""
    return {
        "data.train_files": str(paths.data.absolute()),
        "data.custom_cls.path": DATASET,
        "data.custom_cls.name": "ItemDataset",
        "+data.agent": _agent(name),
        "data.train_batch_size": params.rl.batch_prompts,
        "data.max_prompt_length": lengths.prompt,
        "data.max_response_length": lengths.response,
    }


def _model(params: Params, paths: RunPaths) -> Settings:
    common: Settings = {
        "actor_rollout_ref.model.path": str(paths.model.absolute()),
        "actor_rollout_ref.model.use_remove_padding": not _on_cpu(params),  # packs rows; on GPUs with flash attention
        "actor_rollout_ref.model.enable_gradient_checkpointing": not _on_cpu(params),
    }
    if _on_cpu(params):
        common["+actor_rollout_ref.model.override_config.attn_implementation"] = "sdpa"
    return common


def _actor(rl: RLParams) -> Settings:
    """One step a batch on the whole batch's tokens. Entropies come with the old log-probabilities.

    Each resume point has a HF model beside it, since verl's merger of shards would round it to bf16.
    """
    return {
        "actor_rollout_ref.actor.ppo_mini_batch_size": rl.batch_prompts,
        "actor_rollout_ref.actor.ppo_epochs": 1,
        "actor_rollout_ref.actor.policy_loss.loss_mode": "recipe",
        "actor_rollout_ref.actor.loss_agg_mode": "token-mean",
        "actor_rollout_ref.actor.use_kl_loss": False,
        "actor_rollout_ref.actor.entropy_coeff": 0,
        "actor_rollout_ref.actor.checkpoint.save_contents": ["model", "optimizer", "extra", "hf_model"],
        "actor_rollout_ref.actor.checkpoint.load_contents": ["model", "optimizer", "extra"],
    }


def _optimiser(params: Params) -> Settings:
    """The local engine's AdamW. The rate of a step comes with its batch (tasks/rl/schedule.py)."""
    settings: Settings = {
        "lr": params.rl.learning_rate,
        "weight_decay": 0.0,
        "betas": BETAS,
        "clip_grad": params.rl.max_gradient_norm,
    }
    if isinstance(params.cluster.backend, MegatronParams):  # verl does not hand `betas` on to Megatron
        settings["+override_optimizer_config.adam_beta1"], settings["+override_optimizer_config.adam_beta2"] = BETAS
    return _under("actor_rollout_ref.actor.optim", settings)


def _backend(params: Params) -> Settings:
    backend = params.cluster.backend
    if isinstance(backend, MegatronParams):
        return _megatron(backend)
    return {**_fsdp(backend), **(_fsdp_on_cpu() if _on_cpu(params) else _fsdp_on_gpu())}


def _fsdp(backend: FsdpParams) -> Settings:
    """verl's FSDP2 keeps fp32 weights and computes in bf16."""
    return {
        "actor_rollout_ref.actor.strategy": "fsdp2",
        "actor_rollout_ref.actor.ulysses_sequence_parallel_size": backend.sequence_parallel,
        "actor_rollout_ref.actor.fsdp_config.param_offload": backend.offload,
        "actor_rollout_ref.actor.fsdp_config.optimizer_offload": backend.offload,
    }


def _fsdp_on_gpu() -> Settings:
    """A long row's logits are some GB: their entropy goes chunk by chunk."""
    return {"actor_rollout_ref.actor.entropy_from_logits_with_chunking": True}


def _fsdp_on_cpu() -> Settings:
    return {
        "actor_rollout_ref.actor.use_torch_compile": False,
        "actor_rollout_ref.actor.fsdp_config.use_torch_compile": False,
        "+actor_rollout_ref.actor.fsdp_config.mixed_precision": FP32,
    }


def _megatron(backend: MegatronParams) -> Settings:
    """Each layer is computed again in the backward pass, as FSDP2's gradient checkpointing does."""
    settings: Settings = {
        "tensor_model_parallel_size": backend.tensor_parallel,
        "pipeline_model_parallel_size": backend.pipeline_parallel,
        "context_parallel_size": backend.context_parallel,
        "expert_model_parallel_size": backend.expert_parallel,
        "expert_tensor_parallel_size": 1,  # null would split each expert as well
        "param_offload": backend.offload,
        "optimizer_offload": backend.offload,
        "override_transformer_config.recompute_granularity": "full",
        "override_transformer_config.recompute_method": "uniform",
        "override_transformer_config.recompute_num_layers": 1,
    }
    return {
        "actor_rollout_ref.actor.entropy_from_logits_with_chunking": True,
        **_under("actor_rollout_ref.actor.megatron", settings),
    }


def _micro_batches(params: Params) -> Settings:
    """As many rows as fit into `tokens_per_gpu` on the GPUs that share them: any number of rows divides.

    verl multiplies its limit by the sequence or the context parallel size alone.
    """
    backend = params.cluster.backend
    known = backend.context_parallel if isinstance(backend, MegatronParams) else backend.sequence_parallel
    limit = params.cluster.tokens_per_gpu * backend.model_parallel // known
    return {
        "actor_rollout_ref.actor.use_dynamic_bsz": True,
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": limit,
        "actor_rollout_ref.rollout.log_prob_use_dynamic_bsz": True,
        "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu": limit,
    }


def _rollout(name: str, params: Params, lengths: RowLengths) -> Settings:
    sampling = params.rl.sampling
    settings: Settings = {
        "name": "local" if _on_cpu(params) else "vllm",
        "n": params.rl.group_size,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": params.seed,
        "calculate_log_probs": True,
        "max_model_len": lengths.row,
        "enable_chunked_prefill": True,
        "tensor_model_parallel_size": params.cluster.rollout_tensor_parallel,
        "gpu_memory_utilization": params.cluster.rollout_memory_share,
        "agent.default_agent_loop": _agent(name),
    }
    if _on_cpu(params):
        settings["agent.num_workers"] = 1
    return _under("actor_rollout_ref.rollout", settings)


def _trainer(name: str, params: Params, paths: RunPaths) -> Settings:
    """Our trainer writes the metrics and evaluation is a stage of its own: verl prints, and never validates."""
    steps, cluster = params.rl.limits(name).steps, params.cluster
    settings: Settings = {
        "trainer.use_v1": True,
        "trainer.v1.trainer_mode": "recipe",
        "+trainer.v1.recipe": {},
        "trainer.logger": [],
        "trainer.project_name": params.tracking.experiment,
        "trainer.experiment_name": f"rl-{name}",
        "trainer.nnodes": cluster.nodes,
        "trainer.n_gpus_per_node": max(1, cluster.gpus_per_node),
        "trainer.total_training_steps": steps,
        "trainer.total_epochs": steps,  # no bound: an epoch has at least one step
        "trainer.val_before_train": False,
        "trainer.test_freq": -1,
        "trainer.save_freq": params.rl.checkpoint_every,
        "trainer.resume_mode": "auto",
        "trainer.default_local_dir": str(paths.work.absolute()),
        "trainer.rollout_data_dir": str(paths.rollouts),
        "trainer.max_actor_ckpt_to_keep": KEPT_CHECKPOINTS,
    }
    if cluster.checkpoint_uri is not None:
        settings["trainer.checkpoint_callback_class"] = UPLOAD
    if _on_cpu(params):
        settings["trainer.device"] = "cpu"
    return settings


def _processes(params: Params) -> Settings:
    """Our agent loops bring the rewards along. On few cores verl deadlocks with more than one storage process.

    What Ray on this machine is started with: places for verl's helpers rather than cores, and one logical GPU.
    """
    settings: Settings = {"reward.num_workers": 1}
    if not _on_cpu(params):
        return settings
    return {
        **settings,
        "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
        "ray_kwargs.ray_init.num_cpus": 8,
        "+ray_kwargs.ray_init.num_gpus": 1,
        "+ray_kwargs.ray_init.include_dashboard": False,
        "+ray_kwargs.ray_init.object_store_memory": 500_000_000,
    }


def _recipe(name: str, params: Params, ids: RunIds) -> Settings:
    """What our own code in verl's processes reads."""
    return {
        "+recipe.name": name,
        "+recipe.params": params_json(params),
        "+recipe.fingerprint": ids.fingerprint,
        "+recipe.run_id": ids.run_id,
        "+recipe.tracking_uri": ids.tracking_uri,
    }


def params_json(params: Params) -> str:
    """The parameters as JSON without a `$`, which OmegaConf would read as the start of an interpolation."""
    return params.model_dump_json().replace("$", "\\u0024")


def _written(value: Value) -> str:
    """A value in Hydra's override grammar."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join(_written(item) for item in value) + "]"
    return repr(value)


def _quoted(text: str) -> str:
    """A plain word as it is, other text in single quotes, where a backslash is itself unless a quote follows."""
    if "${" in text or text == "???":
        raise ParameterError(
            f"{text!r} is no text to verl's configuration: it fills in '${{' and refuses '???'; rename it"
        )
    if re.fullmatch("[A-Za-z][A-Za-z0-9_]*", text) and text.lower() not in NO_WORD:
        return text
    doubled = re.sub(r"(\\+)(?='|\Z)", r"\1\1", text)
    return "'" + doubled.replace("'", "\\'") + "'"


def _under(section: str, settings: Settings) -> Settings:
    """The keys of one of verl's sections in full; a `+` goes to the front."""
    return {
        f"+{section}.{key[1:]}" if key.startswith("+") else f"{section}.{key}": value for key, value in settings.items()
    }
