"""Every number of the pipeline: typed, frozen, loaded once, refused when impossible. Imports no torch.

`params.yaml` is the active profile; `infra/profiles/` holds others. Units: lengths in tokens, shares in 0..1.
"""

import difflib
from collections.abc import Hashable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from tasks.errors import ParameterError
from tasks.records import Domain


def _no_boolean(value: object) -> object:
    """Pydantic would read `true` as 1."""
    if isinstance(value, bool):
        raise ValueError("is true or false; write a number")
    return value


Number = Annotated[float, BeforeValidator(_no_boolean)]  # "2e-6" is text to YAML and a number here
Share = Annotated[Number, Field(ge=0.0, le=1.0)]
Whole = Annotated[int, Field(ge=0, strict=True)]
Positive = Annotated[int, Field(ge=1, strict=True)]
Seed = Annotated[int, Field(ge=0, lt=2**32, strict=True)]
Text = Annotated[str, Field(min_length=1)]
RL_STAGES = ("stage1", "stage2", "stage3", "memory", "stage4")


class Section(BaseModel):
    """Base of all sections: immutable; an unknown key, an infinity or a NaN is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class CorpusParams(Section):
    """Which documents are read and how they are split. `folder` adds a folder, a glob or an `s3://` prefix."""

    countries: bool
    folder: Text | None
    development_share: Share
    test_share: Share

    @model_validator(mode="after")
    def leaves_training(self) -> Self:
        held_out = self.development_share + self.test_share
        if held_out >= 1.0:
            raise ValueError(
                f"development_share + test_share = {held_out} leaves nothing to train on; lower one of them"
            )
        return self


class GrammarWriter(Section):
    """No model: facts are read, and questions worded, in the tiny profile's closed language."""

    type: Literal["grammar"]


class _ModelWriter(Section):
    """What all models have."""

    context_tokens: Positive  # prompt and reply together
    max_output_tokens: Positive  # of one reply

    @model_validator(mode="after")
    def leaves_room(self) -> Self:
        if 2 * self.max_output_tokens > self.context_tokens:
            raise ValueError(
                f"max_output_tokens = {self.max_output_tokens} takes more than half of context_tokens = "
                f"{self.context_tokens}; lower it, the prompt needs room"
            )
        return self


class EndpointWriter(_ModelWriter):
    """A server that speaks OpenAI's protocol; its key is read from the environment variable `key_variable`."""

    type: Literal["openai"]
    base_url: Annotated[str, Field(pattern=r"^https?://[^@\s]+$")]
    model: Text
    key_variable: Text
    concurrency: Positive  # requests at a time
    attempts: Positive  # of one request, before it counts as unanswered
    timeout_seconds: Annotated[Number, Field(gt=0.0)]  # of one attempt
    input_price: Annotated[Number, Field(ge=0.0)]  # of a million tokens
    output_price: Annotated[Number, Field(ge=0.0)]
    budget: Annotated[Number, Field(gt=0.0)] | None  # the most all stages may spend, in the prices' currency


class LocalWriter(_ModelWriter):
    """A model on this machine: a HF folder, or a GGUF file for transformers."""

    type: Literal["transformers", "vllm"]
    model: Path


Writer = Annotated[GrammarWriter | EndpointWriter | LocalWriter, Field(discriminator="type")]


class EndpointJudge(EndpointWriter):
    """A judge behind a server. `concurrency` and `budget` are those of each process that judges: of every agent-loop
    worker with verl.
    """

    alarm_share: Share  # of its answers that may go unscored without a warning


class VllmJudge(LocalWriter):
    """A judge in the process that scores."""

    type: Literal["vllm"]
    alarm_share: Share


JudgeModel = Annotated[EndpointJudge | VllmJudge, Field(discriminator="type")]


class SynthesisParams(Section):
    """Who writes, how many questions each path asks for per split, and how hard."""

    writer: Writer
    questions_per_domain: Positive  # training split
    test_questions_per_domain: Positive  # per length bucket
    max_hops: Annotated[Positive, Field(ge=2, le=10)]
    min_documents: Annotated[Positive, Field(ge=2)]  # over which a path is spread
    schema_votes: Positive  # readings of a document's fields, of which a majority must agree
    self_play_rounds: Positive
    history_size: Positive  # SPELL keeps 3
    solver_votes: Positive  # SPELL asks 8 verifiers

    @model_validator(mode="after")
    def paths_reach(self) -> Self:
        if self.min_documents > self.max_hops:
            raise ValueError(
                f"min_documents = {self.min_documents} exceeds max_hops = {self.max_hops}: each hop is stated by one "
                "document; lower it or raise max_hops"
            )
        return self


class FilteringParams(Section):
    """Verification and balance (QwenLong-L1.5 §3.4, §4.2)."""

    grounding_samples: Positive
    robustness_samples: Positive
    near_duplicate_similarity: Share
    max_answer_tokens: Positive  # SPELL: 40
    contamination_ngram: Annotated[Positive, Field(ge=4)]  # words
    benchmarks: Path | None  # a folder of evaluation sets that training must not contain
    pass_rate_bins: Positive


class SamplingParams(Section):
    """Rollout sampling (QwenLong-L1.5 §4.1: 0.7, 0.95)."""

    temperature: Annotated[Number, Field(gt=0.0)]
    top_p: Annotated[Number, Field(gt=0.0, le=1.0)]


class NoClipping(Section):
    """Keep the negative gradient of every token."""

    type: Literal["none"]


class AbsoluteClipping(Section):
    """Drop negative gradients whose entropy (nats) is beyond `threshold` (QwenLong-L1.5 Eq. 8–10).

    `side` high drops above it, as the paper does in the end; low, which it also tried, below.
    """

    type: Literal["absolute"]
    level: Literal["token", "sequence"]
    side: Literal["high", "low"] = "high"
    threshold: Annotated[Number, Field(gt=0.0)]


class QuantileClipping(Section):
    """Drop negative gradients whose entropy is beyond the batch quantile of negative tokens or sequences.

    `side` high drops above it; low below.
    """

    type: Literal["quantile"]
    level: Literal["token", "sequence"]
    side: Literal["high", "low"] = "high"
    quantile: Share


Clipping = Annotated[NoClipping | AbsoluteClipping | QuantileClipping, Field(discriminator="type")]


class EntropyControlParams(Section):
    """AEPO's hysteresis thresholds in nats (QwenLong-L1.5 Eq. 11 and Fig. 11)."""

    low: Annotated[Number, Field(ge=0.0)]
    high: Annotated[Number, Field(gt=0.0)]

    @model_validator(mode="after")
    def ordered(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low = {self.low} must be below high = {self.high}; lower it or raise high")
        return self


class StageParams(Section):
    """One RL stage: its limits in tokens and its number of updates."""

    max_input_tokens: Positive
    max_output_tokens: Positive
    steps: Positive
    questions: Positive  # how many curated questions the stage draws from


class MemoryParams(Section):
    """The memory agent (QwenLong-L1.5 §4.4): chunk by chunk, a memory and a plan."""

    chunk_tokens: Positive
    memory_tokens: Positive
    plan_tokens: Positive
    window: Positive

    @model_validator(mode="after")
    def fits(self) -> Self:
        need = self.chunk_tokens + 2 * self.memory_tokens + 2 * self.plan_tokens
        if need > self.window:
            raise ValueError(
                f"chunk_tokens + 2·memory_tokens + 2·plan_tokens = {need} exceeds window = {self.window} "
                "(old and new memory and plan share it with the chunk); shrink the chunk or the memory"
            )
        return self


class RLParams(Section):
    """The trainer (QwenLong-L1.5 §4): one update per batch, purely on-policy, no KL."""

    engine: Literal["local", "verl"]
    group_size: Annotated[Positive, Field(ge=2)]  # G
    batch_prompts: Positive
    learning_rate: Annotated[Number, Field(gt=0.0)]
    warmup_steps: Whole
    max_gradient_norm: Annotated[Number, Field(gt=0.0)]
    sampling: SamplingParams
    batches: Literal["balanced", "uniform"]  # questions by domain_weights, or all alike
    advantage: Literal["domain", "group", "mean_only"]
    clipping: Clipping
    entropy_control: EntropyControlParams | None
    domain_weights: dict[Domain, Annotated[Number, Field(ge=0.0)]]
    checkpoint_every: Positive  # steps between resume points
    unscored_alarm_share: Share
    stages: dict[Literal["stage1", "stage2", "stage3", "memory", "stage4"], StageParams]

    def limits(self, name: str) -> StageParams:
        """The stage's own lengths and steps."""
        return {str(stage): limits for stage, limits in self.stages.items()}[name]

    def advantage_of(self, name: str) -> Literal["domain", "group", "mean_only"]:
        """The memory branch compares the trajectories of one question (QwenLong-L1.5 §4.4)."""
        return "group" if name == "memory" else self.advantage

    @model_validator(mode="after")
    def whole(self) -> Self:
        missing = [name for name in RL_STAGES if name not in self.stages]
        if missing:
            raise ValueError(f"stages lacks {', '.join(missing)}; every RL stage needs its limits")
        if not any(self.domain_weights.values()):
            raise ValueError("domain_weights are all 0; give at least one domain a positive weight")
        lengths = [self.stages[name].max_input_tokens for name in ("stage1", "stage2", "stage3")]
        if lengths != sorted(lengths):
            raise ValueError(f"max_input_tokens of stages 1–3 are {lengths}; they must not shrink")
        return self


class FsdpParams(Section):
    """Sharded data parallelism; Ulysses splits each sequence over `sequence_parallel` GPUs."""

    type: Literal["fsdp2"]
    sequence_parallel: Positive
    offload: bool  # keep weights and optimiser in host memory while the GPU samples

    @property
    def model_parallel(self) -> int:
        """GPUs that share one row."""
        return self.sequence_parallel


class MegatronParams(Section):
    """Megatron-Core's dimensions: GPUs that share a layer, the layers, a sequence, the experts."""

    type: Literal["megatron"]
    tensor_parallel: Positive
    pipeline_parallel: Positive
    context_parallel: Positive
    expert_parallel: Positive
    offload: bool  # keep weights and optimiser in host memory while the GPU samples

    @property
    def model_parallel(self) -> int:
        """GPUs that share one row; experts are spread over the data-parallel GPUs as well."""
        return self.tensor_parallel * self.pipeline_parallel * self.context_parallel


Backend = Annotated[FsdpParams | MegatronParams, Field(discriminator="type")]


class ClusterParams(Section):
    """Where verl runs. It decides how fast a stage trains, not what it learns."""

    address: Text | None  # Ray's dashboard, http://HOST:8265; null starts Ray on this machine
    nodes: Positive
    gpus_per_node: Whole  # 0: this machine's CPU
    backend: Backend
    rollout_tensor_parallel: Positive
    rollout_memory_share: Annotated[Number, Field(gt=0.0, lt=1.0)]  # of a GPU, for vLLM's weights and cache
    tokens_per_gpu: Positive  # of one micro-batch
    checkpoint_uri: Annotated[str, Field(pattern=r"^s3://[^/]+/.+")] | None  # resume points are copied there

    @property
    def world_size(self) -> int:
        """Training processes: one a GPU, or a single one on the CPU."""
        return self.nodes * max(1, self.gpus_per_node)

    @property
    def data_parallel(self) -> int:
        """Groups of GPUs that each hold rows of their own."""
        return self.world_size // self.backend.model_parallel

    @model_validator(mode="after")
    def divides(self) -> Self:
        for name, parts in (
            ("the backend's parallel sizes", self.backend.model_parallel),
            ("rollout_tensor_parallel", self.rollout_tensor_parallel),
        ):
            if self.world_size % parts:
                raise ValueError(
                    f"nodes × gpus_per_node = {self.world_size} is not divisible by {name} = {parts}; change either"
                )
        if isinstance(self.backend, MegatronParams) and self._experts_left_over(self.backend):
            raise ValueError(
                f"backend.expert_parallel = {self.backend.expert_parallel} must divide the {self.data_parallel} "
                "data-parallel groups times tensor_parallel × context_parallel; lower it"
            )
        if self.gpus_per_node == 0 and (self.nodes > 1 or self.backend.type != "fsdp2"):
            raise ValueError("gpus_per_node = 0 runs one process on the CPU: set nodes to 1 and backend.type to fsdp2")
        return self

    def _experts_left_over(self, backend: MegatronParams) -> int:
        return (self.world_size // backend.pipeline_parallel) % backend.expert_parallel


class LocalExecution(Section):
    """One process on this machine."""

    type: Literal["local"]
    sampler: Literal["torch", "transformers", "vllm"]  # torch: ours, for Qwen3 on CPUs


class RayExecution(Section):
    """Ray Data: the same work in `workers` processes, with the same rows."""

    type: Literal["ray"]
    sampler: Literal["torch", "transformers", "vllm"]
    address: Text | None  # HOST:6379 of a running cluster; null starts Ray on this machine
    workers: Positive
    gpus_per_worker: Whole


Execution = Annotated[LocalExecution | RayExecution, Field(discriminator="type")]


class CurateParams(Section):
    """Difficulty-aware retrospective sampling between stages (QwenLong-L1.5 §4.2; QwenLong-L1 §3.2)."""

    samples: Positive  # rollouts per question under the next stage's limits
    retrospective_share: Share  # of a stage's questions drawn from shorter, still hard ones


class MergeParams(Section):
    """SCE merge of the stage-3 model and the memory expert (QwenLong-L1.5 §4.4; unpublished numbers)."""

    select_topk: Annotated[Number, Field(gt=0.0, le=1.0)]


class BenchmarkParams(Section):
    """Public benchmarks (docs/benchmarks.md): which of them `evaluate` scores, and how every command asks them."""

    names: tuple[Text, ...]  # empty: none
    folder: Path  # holds a folder of official files for each
    way: Literal["truncation", "agent"]  # how an input is read that is longer than the window
    max_input_tokens: Positive  # of a prompt before the chat template; the middle of a longer one is cut
    max_output_tokens: Positive
    samples: Positive


class EvaluationParams(Section):
    """Held-out evaluation."""

    samples: Positive  # k of avg@k
    long_multiples: Annotated[
        tuple[Positive, ...], Field(min_length=1)
    ]  # document length in windows for the memory agent
    long_questions: Positive
    bootstrap_resamples: Positive
    benchmarks: BenchmarkParams


class TrackingParams(Section):
    """Where MLflow keeps runs; a relative sqlite path lies in the checkout."""

    uri: Text
    experiment: Text

    @model_validator(mode="after")
    def keeps_secrets(self) -> Self:
        server = self.uri.partition("://")[2].partition("/")[0]
        if self.uri.startswith(("http://", "https://")) and "@" in server:
            raise ValueError(
                "uri holds a user or password, which would appear in logs and job lists; set MLFLOW_TRACKING_USERNAME "
                "and MLFLOW_TRACKING_PASSWORD in the environment instead"
            )
        return self


class Params(Section):
    """The whole parameter file."""

    profile: Text
    seed: Seed
    threads: Positive
    base_model: Path
    execution: Execution
    corpus: CorpusParams
    synthesis: SynthesisParams
    filtering: FilteringParams
    judge: JudgeModel | None  # asked where the rule says no; null: the rule alone
    rl: RLParams
    curate: CurateParams
    memory: MemoryParams
    merge: MergeParams
    evaluation: EvaluationParams
    cluster: ClusterParams
    tracking: TrackingParams

    @model_validator(mode="after")
    def serves_the_judge(self) -> Self:
        many = {"rl.engine = verl": self.rl.engine == "verl", "execution.type = ray": self.execution.type == "ray"}
        reason = next((name for name, holds in many.items() if holds), None)
        if reason and isinstance(self.judge, VllmJudge):
            raise ValueError(
                f"judge.type = vllm loads the judge into every process that scores, which {reason} has many of; "
                "serve it (vllm serve) and name the server with type: openai"
            )
        return self

    @model_validator(mode="after")
    def fits_the_cluster(self) -> Self:
        if self.rl.engine != "verl":
            return self
        rows, groups = self.rl.batch_prompts * self.rl.group_size, self.cluster.data_parallel
        if rows % groups:
            raise ValueError(
                f"rl.batch_prompts × rl.group_size = {rows} rows do not divide among the {groups} data-parallel groups "
                "of the cluster section; change the batch or the cluster"
            )
        longest = max(  # the memory agent's rows are turns, which do not grow with the document
            limits.max_input_tokens + limits.max_output_tokens
            for stage, limits in self.rl.stages.items()
            if stage != "memory"
        )
        split = self.cluster.backend.model_parallel
        if self.cluster.tokens_per_gpu * split < longest:
            raise ValueError(
                f"cluster.tokens_per_gpu = {self.cluster.tokens_per_gpu} on {split} GPUs a row cannot hold the longest "
                f"row of rl.stages ({longest} tokens); raise it, or the backend's parallel sizes"
            )
        return self


def load_params(path: Path = Path("params.yaml"), overrides: tuple[str, ...] = ()) -> Params:
    """Read a parameter file and apply `key.sub=value` overrides (values in YAML).

    Raises:
        ParameterError: the file is missing or not YAML, a key is unknown, a value mistyped or impossible.
    """
    tree = _read_tree(path)
    for override in overrides:
        _apply(tree, override)
    try:
        return Params.model_validate(tree)
    except ValidationError as error:
        raise ParameterError(f"{path}: " + "; ".join(_explained(problem) for problem in error.errors())) from error


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML's plain types; a key given twice is an error instead of a silent win of the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = [key for number, key in enumerate(keys) if key in keys[:number]]
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"{twice[0]!r} is given twice", node.start_mark)
        return super().construct_mapping(node, deep)


def _read_tree(path: Path) -> dict[str, Any]:
    try:
        tree: Any = yaml.load(path.read_text("utf-8"), _UniqueKeyLoader)  # noqa: S506  a SafeLoader
    except FileNotFoundError as error:
        raise ParameterError(f"{path} does not exist; run from the checkout or pass --params FILE") from error
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path} is not readable YAML: {error}") from error
    if not isinstance(tree, dict):
        raise ParameterError(f"{path} holds {type(tree).__name__}, not a mapping of sections")
    return tree


def _explained(problem: ErrorDetails) -> str:
    """Name the key, its value, the rule, and for an unknown key the most similar known one."""
    key = ".".join(str(part) for part in problem["loc"])
    rule = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "missing":
        return f"{key} is missing; add it (infra/profiles/ holds complete files)"
    if isinstance(problem["input"], dict):  # the rule is about a whole section, or the file, and names the values
        return f"{key}: {rule}" if key else rule
    if problem["type"] != "extra_forbidden":
        return f"{key} = {problem['input']!r}: {rule}"
    name = str(problem["loc"][-1])
    known = {field for section in Section.__subclasses__() for field in section.model_fields} - {name}
    close = difflib.get_close_matches(name, known, n=1)
    return f"{key} is no parameter here; " + (f"did you mean {close[0]}?" if close else "remove it")


def _apply(tree: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    if not separator or not key:
        raise ParameterError(f"--set {override!r} is not of the form key.sub=value")
    *parents, leaf = key.split(".")
    node = tree
    for part in parents:
        child = node.get(part)
        if not isinstance(child, dict):
            raise ParameterError(f"--set {override!r}: {part!r} is no section; known here: {', '.join(node)}")
        node = child
    if leaf not in node:
        raise ParameterError(f"--set {override!r}: unknown key {leaf!r}; known here: {', '.join(node)}")
    try:
        node[leaf] = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ParameterError(f"--set {override!r}: the value is not YAML: {error}") from error
