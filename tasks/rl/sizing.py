"""What an RL stage needs on GPUs, as formulas: bytes per GPU, tokens, floating-point operations, seconds.

Bytes are of one GPU and lengths are in tokens, unless said otherwise. h is the hidden size, L the layers, V the
vocabulary, W the GPUs, t a GPU's tokens of one micro-batch. Trains in bf16 with fp32 weights for the optimiser, every
layer computed again in the backward pass, AdamW, flash attention, rollouts by vLLM in bf16: what
tasks/rl/engines/verl/config.py asks verl for. Imports no torch.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.errors import CheckpointError
from tasks.params import Backend, ClusterParams, FsdpParams, MegatronParams

GIB = 2**30
BF16, FP32 = 2, 4  # bytes
RESERVED = 4 * GIB  # ours: CUDA's context, NCCL's buffers, what the allocator cannot hand out
VLLM_WORKING = 2 * GIB  # ours: vLLM's activations and CUDA graphs
SYNC_BUCKET = 2 * GIB  # verl's update_weights_bucket_megabytes = 2048
MAX_SEQUENCES = 256  # verl's rollout.max_num_seqs
ENTROPY_CHUNK = 2048  # verl's entropy_from_logits_chunk_size
MODEL_TYPES = ("qwen3", "qwen3_moe")


@dataclass(frozen=True)
class Architecture:
    """A Qwen3 decoder. A dense MLP is one expert that every token takes."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int  # of one expert
    experts: int
    active_experts: int
    vocabulary: int
    tied: bool  # input and output embeddings are one matrix

    @property
    def query_size(self) -> int:
        return self.heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Of keys or of values."""
        return self.kv_heads * self.head_dim

    @property
    def attention(self) -> int:
        """Parameters of a layer's four projections: query, key, value, output."""
        return self.hidden * (2 * self.query_size + 2 * self.kv_size)

    @property
    def router(self) -> int:
        """Parameters of a layer's router; a dense layer has none."""
        return self.hidden * self.experts if self.experts > 1 else 0

    @property
    def expert(self) -> int:
        """Parameters of one SwiGLU expert: gate, up, down."""
        return 3 * self.hidden * self.intermediate

    @property
    def block(self) -> int:
        """Parameters of a layer: two norms over h, one each over a query's and a key's head."""
        norms = 2 * self.hidden + 2 * self.head_dim
        return self.attention + self.router + self.experts * self.expert + norms

    @property
    def embedding(self) -> int:
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        return self.layers * self.block + self.hidden + self.embedding * (1 if self.tied else 2)

    @property
    def active_parameters(self) -> int:
        """Parameters that serve one token, embeddings included."""
        return self.parameters - self.layers * (self.experts - self.active_experts) * self.expert


_QWEN3_30B_A3B = Architecture(
    layers=48, hidden=2048, heads=32, kv_heads=4, head_dim=128, intermediate=768, experts=128, active_experts=8,
    vocabulary=151_936, tied=False,
)  # fmt: skip
_QWEN3_4B = Architecture(
    layers=36, hidden=2560, heads=32, kv_heads=8, head_dim=128, intermediate=9728, experts=1, active_experts=1,
    vocabulary=151_936, tied=True,
)  # fmt: skip
PUBLISHED: Mapping[str, tuple[Architecture, str]] = {  # by the beginning of the model folder's name, with the source
    "qwen3-30b-a3b": (_QWEN3_30B_A3B, "huggingface.co/Qwen/Qwen3-30B-A3B-Thinking-2507, config.json"),
    "qwen3-4b": (_QWEN3_4B, "huggingface.co/Qwen/Qwen3-4B-Thinking-2507, config.json"),
}


def read_architecture(folder: Path) -> tuple[Architecture, str]:
    """The architecture of a model folder and where it comes from: its config.json, else the published one by name.

    Raises:
        CheckpointError: config.json is unreadable or of another family; or there is none and the name is unknown.
    """
    path = folder / "config.json"
    if path.is_file():
        try:
            return _parsed(json.loads(path.read_text("utf-8"))), str(path)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path} is no config of a Qwen3 model: {error!r}; fetch it again") from error
    for name, known in PUBLISHED.items():
        if folder.name.lower().startswith(name):
            return known
    raise CheckpointError(
        f"{path} does not exist, and no published model is named {folder.name!r} (known: {', '.join(PUBLISHED)}); "
        "put the model's config.json there"
    )


def _parsed(config: Mapping[str, Any]) -> Architecture:
    """From transformers' keys; version 5 writes num_local_experts for num_experts."""
    if config["model_type"] not in MODEL_TYPES:
        raise ValueError(f"model_type {config['model_type']!r} is none of {', '.join(MODEL_TYPES)}")
    sparse = config["model_type"] == "qwen3_moe"
    if sparse and (config.get("mlp_only_layers") or config.get("decoder_sparse_step", 1) != 1):
        raise ValueError("it mixes dense and sparse layers")
    architecture = Architecture(
        layers=config["num_hidden_layers"],
        hidden=config["hidden_size"],
        heads=config["num_attention_heads"],
        kv_heads=config["num_key_value_heads"],
        head_dim=config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"],
        intermediate=config["moe_intermediate_size" if sparse else "intermediate_size"],
        experts=config.get("num_experts") or config["num_local_experts"] if sparse else 1,
        active_experts=config["num_experts_per_tok"] if sparse else 1,
        vocabulary=config["vocab_size"],
        tied=config["tie_word_embeddings"],
    )
    sizes = [value for value in vars(architecture).values() if not isinstance(value, bool)]
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise ValueError(f"its sizes must be whole numbers above 0: {architecture}")
    return architecture


@dataclass(frozen=True)
class States:
    """Bytes of what lives through a training step on one GPU."""

    weights: float
    gradients: float
    optimiser: float  # both moments; with Megatron the fp32 weights as well
    gathered: float  # layers that FSDP2 holds whole while they compute


def training_states(architecture: Architecture, cluster: ClusterParams) -> States:
    """Weights, gradients and optimiser under the cluster's backend."""
    if isinstance(cluster.backend, FsdpParams):
        return fsdp_states(architecture, cluster.world_size)
    return megatron_states(architecture, cluster.backend, cluster.world_size)


def fsdp_states(architecture: Architecture, world: int) -> States:
    """FSDP2 over all W GPUs: fp32 weights, gradients and two moments, 16 bytes a parameter / W (ZeRO stage 3,
    arXiv 1910.02054 §3.1).

    Gathered, as PyTorch's fully_shard documents it: the root (embeddings) stays whole in bf16 with its gradient; of
    the layers, one is computing and one prefetched in bf16, and one's gradient waits in bf16 and in fp32 for its
    reduction. FSDP2 has no expert parallelism: a gathered layer holds every expert.
    """
    share = architecture.parameters / world
    root = architecture.embedding * (1 if architecture.tied else 2)
    gathered = 2 * BF16 * root + (3 * BF16 + FP32) * architecture.block
    return States(FP32 * share, FP32 * share, 2 * FP32 * share, gathered)


def megatron_states(architecture: Architecture, backend: MegatronParams, world: int) -> States:
    """Megatron-Core with its distributed optimiser: 6 + 12/d bytes a parameter held (bf16 weights, fp32 gradients,
    and fp32 weights and two moments over d data-parallel GPUs; Megatron-Core's guide, "Distributed Optimizer").

    A GPU holds its pipeline stage's layers: attention / tensor parallel and experts / expert parallel (an expert is
    not split further). d is W / (TP·PP) for the former, W / (EP·PP) for the experts. Norms and routers, which every
    tensor-parallel GPU holds whole, count as split: below 0.1 %. The stage with most embeddings decides.
    """
    tensor, pipeline, expert = backend.tensor_parallel, backend.pipeline_parallel, backend.expert_parallel
    layers = math.ceil(architecture.layers / pipeline)
    routed = architecture.experts * architecture.expert if architecture.experts > 1 else 0
    embeddings = 1 if architecture.tied or pipeline > 1 else 2
    common = (layers * (architecture.block - routed) + embeddings * architecture.embedding) / tensor
    held = common + layers * routed / expert
    kept = common * tensor * pipeline / world + layers * routed / expert * expert * pipeline / world
    return States(BF16 * held, FP32 * held, 3 * FP32 * kept, 0.0)


@dataclass(frozen=True)
class Activations:
    """Bytes of what a micro-batch needs on one GPU beside the states."""

    checkpoints: float  # the input of every layer
    layer: float  # all that one layer keeps while its backward pass runs
    logits: float


def layer_elements(architecture: Architecture) -> int:
    """Numbers a token that one layer holds at the peak of its backward pass: what it kept and the gradients.

    By the sizes of the tensors, as Korthikanti et al. (arXiv 2205.05198 §4.1) count, without their score matrix
    (flash attention): 9 hidden (two norms, two residuals), 6 query, 5 key-value sizes, and of the MLP 6 intermediate
    sizes (gate, up, activation, product, two gradients). Tokens that are sent to experts are copied: 4 intermediate
    and 5 hidden sizes an active expert. The multiples are measured, with transformers 5.10 in bf16
    (benchmarks/plan_check.py); fused kernels keep less.
    """
    mlp = 6 * architecture.intermediate
    if architecture.experts > 1:
        mlp = max(mlp, 4 * architecture.intermediate + 5 * architecture.hidden)
    attention = 9 * architecture.hidden + 6 * architecture.query_size + 5 * architecture.kv_size
    return attention + architecture.active_experts * mlp


def checkpoint_bytes(architecture: Architecture, tokens: float, width: int = BF16) -> float:
    """Inputs of all layers, all that full recomputation keeps: `width`·h·L a token (arXiv 2205.05198 §5)."""
    return float(width * architecture.hidden * architecture.layers * tokens)


def activations(architecture: Architecture, cluster: ClusterParams, tokens: int) -> Activations:
    """Of one micro-batch with `tokens` in all, which `backend.model_parallel` GPUs share.

    FSDP2: Ulysses splits tokens into t = tokens / SP (or, within attention, the heads). Logits: bf16 before and after
    the temperature and the gradient of each, 8 bytes a token and word, and one chunk's entropy in fp32 three times
    (verl 0.9.1, workers/engine/fsdp).
    Megatron: tensor parallelism splits between the layers by tokens as well (sequence parallelism, verl's default), so
    t = tokens / (TP·CP); inside, a layer gathers its input, and its gradient, over TP. A pipeline's first stage holds
    the inputs of PP micro-batches. Logits are split by words over TP: in bf16 with a copy, the entropy's softmax, and
    the loss in fp32 with its bf16 gradient, 12 bytes a token and word (verl 0.9.1, workers/engine/megatron).
    Experts are taken to get equally many tokens.
    """
    backend, words = cluster.backend, architecture.vocabulary
    if isinstance(backend, FsdpParams):
        share = tokens / backend.sequence_parallel
        logits = 8 * share * words + 3 * FP32 * min(ENTROPY_CHUNK, share) * words
        layer = BF16 * layer_elements(architecture) * share
        return Activations(checkpoint_bytes(architecture, share), layer, logits)
    share = tokens / (backend.tensor_parallel * backend.context_parallel)
    gathered = 2 * architecture.hidden * (backend.tensor_parallel - 1)
    layer = BF16 * (layer_elements(architecture) + gathered) * share
    stage = math.ceil(architecture.layers / backend.pipeline_parallel) / architecture.layers
    in_flight = stage * backend.pipeline_parallel
    return Activations(in_flight * checkpoint_bytes(architecture, share), layer, 12 * share * words)


def kv_bytes(architecture: Architecture, width: int = BF16) -> int:
    """Of a token's keys and values in all layers: 2 · L · KV heads · head size · `width` (vLLM, arXiv 2309.06180)."""
    return 2 * architecture.layers * architecture.kv_size * width


@dataclass(frozen=True)
class Rollout:
    """Bytes of sampling on one GPU, and what a replica (`rollout_tensor_parallel` GPUs) can hold of the rows."""

    trainer: float  # what the trainer leaves on the GPU meanwhile
    weights: float
    cache: float  # negative when there is no room at all
    cache_tokens: int  # of a replica
    sync: float  # at the hand-over: the trainer's weights, vLLM's and one bucket


def rollout(architecture: Architecture, cluster: ClusterParams, memory: float) -> Rollout:
    """vLLM's share of a GPU less its weights and working memory is the cache (vLLM's docs, gpu_memory_utilization).

    Tensor parallelism splits weights and KV heads; with more GPUs than KV heads, heads repeat. With offload the
    trainer leaves nothing; without, weights and optimiser stay, with Megatron its gradient buffers too (verl 0.9.1).
    """
    parts = cluster.rollout_tensor_parallel
    states = training_states(architecture, cluster)
    kept = states.gradients if isinstance(cluster.backend, MegatronParams) else 0.0
    trainer = 0.0 if cluster.backend.offload else states.weights + states.optimiser + kept
    weights = BF16 * architecture.parameters / parts
    cache = cluster.rollout_memory_share * memory - weights - VLLM_WORKING
    token = kv_bytes(architecture) / architecture.kv_heads * math.ceil(architecture.kv_heads / parts)
    sync = max(trainer, states.weights) + weights + SYNC_BUCKET
    return Rollout(trainer, weights, cache, max(0, int(cache / token)), sync)


@dataclass(frozen=True)
class Row:
    """One call of the model and one training row: a prompt and its reply, in tokens."""

    prompt: int
    reply: int

    @property
    def length(self) -> int:
        return self.prompt + self.reply


@dataclass(frozen=True)
class Work:
    """A step's rows at their limits: `trajectories`, each through `turns` one after the other."""

    turns: tuple[Row, ...]
    trajectories: int

    @property
    def tokens(self) -> int:
        return self.trajectories * sum(turn.length for turn in self.turns)


@dataclass(frozen=True)
class Operations:
    """Floating-point operations, those of weights and those of attention's scores."""

    weights: float
    scores: float

    def __add__(self, other: "Operations") -> "Operations":
        return Operations(self.weights + other.weights, self.scores + other.scores)

    def times(self, weights: float, scores: float) -> "Operations":
        return Operations(weights * self.weights, scores * self.scores)

    @property
    def total(self) -> float:
        return self.weights + self.scores


def forward_operations(architecture: Architecture, length: int) -> Operations:
    """One forward pass over a row: 2 a token and active weight (arXiv 2001.08361 §2.1), the output embedding
    included and the input's look-up not; scores and their sum over values, causal: 2 · length² · query size a layer
    (FlashAttention's benchmark, 4 · length² · heads · head size / 2).
    """
    weights = architecture.attention + architecture.router + architecture.active_experts * architecture.expert
    matrices = architecture.layers * weights + architecture.embedding
    return Operations(2.0 * length * matrices, 2.0 * length**2 * architecture.query_size * architecture.layers)


def update_operations(forward: Operations) -> Operations:
    """A step's training from one forward pass's: forward, again in the backward pass, and backward itself, which
    takes 2 forwards by weights (arXiv 2001.08361) and 2.5 by flash attention (arXiv 2307.08691): 4 and 4.5.
    """
    return forward.times(4.0, 4.5)


@dataclass(frozen=True)
class Speed:
    """What a GPU does in a second, and the share of it that is reached."""

    operations: float
    bandwidth: float  # bytes
    weights_share: float
    scores_share: float
    bandwidth_share: float

    def seconds(self, operations: Operations) -> float:
        """On one GPU."""
        weights, scores = operations.weights / self.weights_share, operations.scores / self.scores_share
        return (weights + scores) / self.operations


def h100(architecture: Architecture) -> Speed:
    """NVIDIA's H100 SXM: 989e12 dense bf16 operations, 3.35e12 bytes (data sheet).

    Shares: dense and scores 0.38, Llama 3's at 131,072 tokens a row (arXiv 2407.21783 Table 4: 380e12 a GPU); sparse
    weights 0.12, NVIDIA's for Qwen3-30B-A3B (Megatron-Bridge's performance summary, 16 H100: 121e12). Both are of
    pre-training, which an RL trainer hardly beats. Bandwidth 0.5 in decoding: assumed.
    """
    return Speed(989e12, 3.35e12, 0.12 if architecture.experts > 1 else 0.38, 0.38, 0.5)


@dataclass(frozen=True)
class Seconds:
    """A step's parts, at the limits: sampling, entropy under the sampling policy, update."""

    rollout: float
    scoring: float
    update: float

    @property
    def total(self) -> float:
        return self.rollout + self.scoring + self.update


def step_operations(architecture: Architecture, work: Work) -> Operations:
    """Scoring (one forward pass) and update of all rows; sampling's are the forward pass once more."""
    forward = Operations(0.0, 0.0)
    for turn in work.turns:
        forward += forward_operations(architecture, turn.length)
    return forward.times(work.trajectories, work.trajectories)


def step_seconds(architecture: Architecture, cluster: ClusterParams, work: Work, cache_tokens: int) -> Seconds:
    """All rows at their limits, spread evenly; without rewards, checkpoints, hand-over and communication, which the
    shares of `h100` contain as far as pre-training has it."""
    speed, world = h100(architecture), cluster.world_size
    forward = step_operations(architecture, work)
    sampling = sum(_turn_seconds(architecture, cluster, turn, work.trajectories, cache_tokens) for turn in work.turns)
    return Seconds(sampling, speed.seconds(forward) / world, speed.seconds(update_operations(forward)) / world)


def rows_at_once(turn: Row, rows: int, cache_tokens: int) -> int:
    """Rows that a replica samples together: all of its own, unless cache or vLLM's limit is smaller; at least one."""
    return max(1, min(rows, MAX_SEQUENCES, cache_tokens // turn.length))


def _turn_seconds(
    architecture: Architecture, cluster: ClusterParams, turn: Row, trajectories: int, cache_tokens: int
) -> float:
    """Prompts at the speed of a forward pass, each sample's its own (verl spreads a group over the replicas), then
    replies token by token: each reads the weights that its rows touch, once, and every row's cache, half of the reply
    in it on average. Of E experts, rows that each pick k touch the share 1 − (1 − k/E)^rows.
    """
    speed, parts = h100(architecture), cluster.rollout_tensor_parallel
    replicas = cluster.world_size // parts
    rows = math.ceil(trajectories / replicas)
    together = rows_at_once(turn, rows, cache_tokens)
    prompts = rows * speed.seconds(forward_operations(architecture, turn.prompt)) / parts
    touched = 1.0 - (1.0 - architecture.active_experts / architecture.experts) ** together
    unused = (1.0 - touched) * architecture.layers * architecture.experts * architecture.expert
    read = BF16 * (architecture.parameters - unused)
    read += together * (turn.prompt + turn.reply / 2) * kv_bytes(architecture)
    token = read / (speed.bandwidth * speed.bandwidth_share) / parts
    return prompts + math.ceil(rows / together) * turn.reply * token


def indivisible(architecture: Architecture, cluster: ClusterParams) -> str | None:
    """What in the architecture the cluster's parallel sizes do not divide, in words; None when all is well."""
    for name, size, parts in _divisions(architecture, cluster.backend, cluster.rollout_tensor_parallel):
        if size % parts:
            return f"{name} = {parts} does not divide the model's {size}"
    return None


def _divisions(architecture: Architecture, backend: Backend, rollout_parts: int) -> list[tuple[str, int, int]]:
    heads = architecture.heads
    rollouts = ("rollout_tensor_parallel", heads, rollout_parts)
    if isinstance(backend, FsdpParams):
        return [rollouts, ("backend.sequence_parallel", heads, backend.sequence_parallel)]
    return [
        rollouts,
        ("backend.tensor_parallel", architecture.kv_heads, backend.tensor_parallel),
        ("backend.pipeline_parallel", architecture.layers, backend.pipeline_parallel),
        ("backend.expert_parallel", architecture.experts, backend.expert_parallel),
    ]
