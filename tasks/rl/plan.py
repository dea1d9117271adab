"""`python -m tasks.rl.plan`: what each RL stage needs on a GPU cluster, before anyone pays for one.

The formulas and their sources are in tasks/rl/sizing.py. Hours are those of steps whose every row is at its limit, so
real steps are shorter; the speeds are pre-training's, so no step is faster than that. Neither starts nor loads a model.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.cli import one_line_errors
from tasks.errors import ParameterError

if TYPE_CHECKING:
    from tasks.params import Params
    from tasks.rl.sizing import Activations, Architecture, Rollout, Row, Seconds, States, Work

USUAL_GPUS_PER_NODE = 8  # for a profile that trains on the CPU
LARGEST_GROWTH = 16  # how many times more GPUs are tried as a remedy
NAMED_REMEDIES = 4


def main(argv: Sequence[str] | None = None) -> None:
    """Print the plan.

    Raises:
        SystemExit: 2 after a one-line error: a stage does not fit (with what would), or the parameters are wrong.
    """
    options = _parser().parse_args(argv)
    with one_line_errors():
        run(Request(options.profile, tuple(options.overrides), options.gpus, options.gpu_memory))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tasks.rl.plan",
        description="Say what memory and time each RL stage needs on GPUs, and refuse what cannot fit.",
    )
    parser.add_argument("--profile", "--params", type=Path, default=Path("params.yaml"), metavar="FILE")
    parser.add_argument("--gpus", type=int, metavar="N", help="GPUs in all (the profile's nodes × gpus_per_node)")
    parser.add_argument("--gpu-memory", type=float, default=80.0, metavar="GIB", help="of one GPU (80)")
    parser.add_argument(
        "--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="override one parameter"
    )
    return parser


@dataclass(frozen=True)
class Request:
    """What was asked on the command line; a remedy is the same request with something changed."""

    profile: Path
    overrides: tuple[str, ...]
    gpus: int | None
    gpu_memory: float  # GiB

    def load(self) -> "Params":
        """The parameters with verl as the engine on this many GPUs: whole nodes of the profile's size.

        Raises:
            ParameterError: the GPUs are no whole number of nodes, or the parameters do not divide among them.
        """
        from tasks.params import load_params

        return load_params(self.profile, (*self.overrides, *self._nodes(), "rl.engine=verl"))

    def _nodes(self) -> tuple[str, ...]:
        from tasks.params import load_params

        if self.gpus is None:
            return ()
        if self.gpus < 1:
            raise ParameterError(f"--gpus {self.gpus}: training needs at least 1")
        node = min(self.gpus, load_params(self.profile).cluster.gpus_per_node or USUAL_GPUS_PER_NODE)
        if self.gpus % node:
            fewer = self.gpus // node * node
            raise ParameterError(
                f"--gpus {self.gpus} is no whole number of nodes with {node} GPUs: take {fewer} or {fewer + node}, "
                "or set cluster.gpus_per_node in the profile"
            )
        return (f"cluster.nodes={self.gpus // node}", f"cluster.gpus_per_node={node}")


@dataclass(frozen=True)
class StagePlan:
    """One RL stage on one GPU: bytes of training and of rollouts, and a step's work and time."""

    name: str
    longest: int  # row, tokens
    micro_batch: int  # tokens, of all GPUs that share a row
    states: "States"
    activations: "Activations"
    rollout: "Rollout"
    together: int  # longest rows that fit into a replica's cache
    work: "Work"
    operations: float
    seconds: "Seconds"
    steps: int

    @property
    def training(self) -> dict[str, float]:
        """Bytes by part."""
        return {
            "weights": self.states.weights,
            "gradients": self.states.gradients,
            "optimiser": self.states.optimiser,
            "gathered layers": self.states.gathered,
            "checkpointed inputs": self.activations.checkpoints,
            "one layer's activations": self.activations.layer,
            "logits": self.activations.logits,
        }

    @property
    def training_total(self) -> float:
        return sum(self.training.values())


def run(request: Request) -> None:
    """Print the table; then refuse if any stage does not fit."""
    from tasks.rl.sizing import read_architecture

    if not (math.isfinite(request.gpu_memory) and request.gpu_memory > 0):
        raise ParameterError(f"--gpu-memory {request.gpu_memory} must be a number of GiB above 0")
    params = request.load()
    if params.cluster.gpus_per_node == 0:
        raise ParameterError(f"{request.profile} trains on the CPU (cluster.gpus_per_node = 0); say --gpus N")
    architecture, source = read_architecture(params.base_model)
    _check_divides(params, architecture)
    plans = plan_stages(params, architecture, request.gpu_memory)
    for line in _report(params, architecture, source, request.gpu_memory, plans):
        print(line)
    misfits = [misfit for plan in plans for misfit in misfits_of(plan, params, request.gpu_memory)]
    if misfits:
        sys.stdout.flush()
        raise ParameterError(f"{misfits[0]}{_others(misfits)}; {_advice(request, architecture)}")


def _others(misfits: Sequence[str]) -> str:
    return f" (and {len(misfits) - 1} more)" if len(misfits) > 1 else ""


def _check_divides(params: "Params", architecture: "Architecture") -> None:
    from tasks.rl.sizing import indivisible

    problem = indivisible(architecture, params.cluster)
    if problem:
        raise ParameterError(f"cluster.{problem}; choose a divisor of it")


def plan_stages(params: "Params", architecture: "Architecture", gpu_memory: float) -> list[StagePlan]:
    """Every RL stage of the parameters on their cluster, with `gpu_memory` GiB a GPU."""
    from tasks.params import RL_STAGES

    return [_plan_stage(name, params, architecture, gpu_memory) for name in RL_STAGES]


def _plan_stage(name: str, params: "Params", architecture: "Architecture", gpu_memory: float) -> StagePlan:
    from tasks.rl import sizing
    from tasks.rl.engines.verl.config import row_lengths

    cluster, rl = params.cluster, params.rl
    longest = row_lengths(name, params).row
    work = sizing.Work(turns_of(name, params), rl.batch_prompts * rl.group_size)
    rows = work.trajectories * len(work.turns) // cluster.data_parallel
    micro_batch = min(rows * longest, cluster.tokens_per_gpu * cluster.backend.model_parallel)
    rollout = sizing.rollout(architecture, cluster, gpu_memory * sizing.GIB)
    seconds = sizing.step_seconds(architecture, cluster, work, rollout.cache_tokens)
    return StagePlan(
        name=name,
        longest=longest,
        micro_batch=micro_batch,
        states=sizing.training_states(architecture, cluster),
        activations=sizing.activations(architecture, cluster, micro_batch),
        rollout=rollout,
        together=rollout.cache_tokens // longest,
        work=work,
        operations=sizing.step_operations(architecture, work).total,
        seconds=seconds,
        steps=rl.limits(name).steps,
    )


def turns_of(name: str, params: "Params") -> tuple["Row", ...]:
    """A trajectory's calls of the model at their limits: one, or the memory agent's updates and its answer."""
    from tasks.rl.sizing import Row

    limits, memory = params.rl.limits(name), params.memory
    if name != "memory":
        return (Row(limits.max_input_tokens, limits.max_output_tokens),)
    state = memory.memory_tokens + memory.plan_tokens
    chunks = math.ceil(limits.max_input_tokens / memory.chunk_tokens)
    return (*[Row(memory.chunk_tokens + state, state)] * chunks, Row(memory.memory_tokens, limits.max_output_tokens))


def misfits_of(plan: StagePlan, params: "Params", gpu_memory: float) -> Iterator[str]:
    """Each phase of the stage that needs more than the GPU has, in words."""
    from tasks.rl.sizing import GIB, RESERVED

    usable = gpu_memory * GIB - RESERVED
    sampling = plan.rollout.trainer + params.cluster.rollout_memory_share * gpu_memory * GIB
    largest = max(plan.training, key=lambda part: plan.training[part])
    for phase, need in (
        (f"training (most of it: {largest})", plan.training_total),
        ("sampling beside the trainer", sampling),
        ("the hand-over of weights to vLLM", plan.rollout.sync),
    ):
        if need > usable:
            yield f"{plan.name} needs {_gib(need)} GiB a GPU for {phase} and has {_gib(usable)}"
    if plan.together < 1:
        yield (
            f"{plan.name}: vLLM's cache holds {plan.rollout.cache_tokens:,} tokens and the longest row has "
            f"{plan.longest:,}"
        )


def _advice(request: Request, architecture: "Architecture") -> str:
    """Changes that make every stage fit: single ones, or else pairs; of the same settings the first values only."""
    changes = list(_changes(request))
    for size in (1, 2):
        found: dict[tuple[str, ...], str] = {}
        for chosen in combinations(changes, size):
            text = " ".join(chosen)
            settings = tuple(word.partition("=")[0] for word in text.split(" ") if not word.isdigit())
            if len(found) < NAMED_REMEDIES and settings not in found and _fits(_changed(request, chosen), architecture):
                found[settings] = text
        if found:
            return "what would fit: " + ", or ".join(found.values())
    return f"no one or two changes up to {LARGEST_GROWTH} times the GPUs make it fit: take GPUs with more memory"


def _changes(request: Request) -> Iterator[str]:
    """Settings to try, as they are typed: what costs nothing first, more GPUs last."""
    params = request.load()
    cluster = params.cluster
    if not cluster.backend.offload:
        yield "--set cluster.backend.offload=true"
    yield from _micro_batch(params, 1)
    for key, value in vars(cluster.backend).items():
        if isinstance(value, int) and not isinstance(value, bool):
            yield f"--set cluster.backend.{key}={2 * value}"
            if key != "expert_parallel":  # more GPUs share a row, so each takes less of it
                yield from (f"--set cluster.backend.{key}={2 * value} {change}" for change in _micro_batch(params, 2))
    yield f"--set cluster.rollout_tensor_parallel={2 * cluster.rollout_tensor_parallel}"
    for share in (0.5, 0.6, 0.7, 0.8, 0.9):
        yield f"--set cluster.rollout_memory_share={share}"
    growth = 2
    while growth <= LARGEST_GROWTH:
        yield f"--gpus {growth * cluster.world_size}"
        growth *= 2


def _micro_batch(params: "Params", times: int) -> Iterator[str]:
    """The least that holds the longest row when `times` as many GPUs share it, if less than now."""
    from tasks.params import RL_STAGES
    from tasks.rl.engines.verl.config import row_lengths

    stages = [params.rl.limits(name) for name in RL_STAGES]
    longest = max(stage.max_input_tokens + stage.max_output_tokens for stage in stages)
    longest = max(longest, *(row_lengths(name, params).row for name in RL_STAGES))
    least = math.ceil(longest / (times * params.cluster.backend.model_parallel))
    if least < params.cluster.tokens_per_gpu:
        yield f"--set cluster.tokens_per_gpu={least}"


def _changed(request: Request, changes: Sequence[str]) -> Request:
    overrides, gpus = request.overrides, request.gpus
    words = " ".join(changes).split(" ")
    for option, value in zip(words[::2], words[1::2], strict=True):
        if option == "--gpus":
            gpus = int(value)
        else:
            overrides = (*overrides, value)
    return Request(request.profile, overrides, gpus, request.gpu_memory)


def _fits(request: Request, architecture: "Architecture") -> bool:
    """Whether the parameters are possible and every stage fits."""
    try:
        params = request.load()
        _check_divides(params, architecture)
    except ParameterError:
        return False
    plans = plan_stages(params, architecture, request.gpu_memory)
    return not any(True for plan in plans for _ in misfits_of(plan, params, request.gpu_memory))


def _report(
    params: "Params", architecture: "Architecture", source: str, gpu_memory: float, plans: Sequence[StagePlan]
) -> Iterator[str]:
    from tasks.rl.sizing import GIB, RESERVED, h100

    cluster, speed = params.cluster, h100(architecture)
    sizes = ", ".join(f"{key} {value}" for key, value in vars(cluster.backend).items() if key != "type")
    yield (
        f"{params.base_model.name}: {architecture.parameters / 1e9:.1f} B parameters, "
        f"{architecture.active_parameters / 1e9:.1f} B active ({source})"
    )
    yield (
        f"GPUs: {cluster.world_size} ({cluster.nodes} × {cluster.gpus_per_node}) of {gpu_memory:g} GiB; "
        f"{cluster.backend.type}: {sizes}"
    )
    yield ""
    yield from _table(plans)
    yield ""
    yield f"Usable are {_gib(gpu_memory * GIB - RESERVED)} GiB: {_gib(RESERVED)} are kept for CUDA, NCCL and gaps."
    yield "Memory is that of a full micro-batch; hours are of steps whose every row is at its limit."
    yield (
        f"Speed assumed: H100 SXM, {speed.operations / 1e12:.0f}e12 operations/s (reached: {speed.weights_share:.0%} "
        f"by weights, {speed.scores_share:.0%} by"
    )
    yield (
        f"attention) and {speed.bandwidth / 1e12:.2f}e12 bytes/s ({speed.bandwidth_share:.0%} in decoding). "
        "Sources: tasks/rl/sizing.py."
    )


def _table(plans: Sequence[StagePlan]) -> Iterator[str]:
    yield f"{'':34}" + "".join(f"{plan.name:>10}" for plan in plans)
    yield _line("longest row, tokens", [f"{plan.longest:,}" for plan in plans])
    yield _line("micro-batch, tokens", [f"{plan.micro_batch:,}" for plan in plans])
    yield "training, GiB a GPU"
    for part in plans[0].training:
        yield _line(f"  {part}", [_gib(plan.training[part]) for plan in plans])
    yield _line("  total", [_gib(plan.training_total) for plan in plans])
    yield "rollouts, GiB a GPU"
    yield _line("  trainer, if not offloaded", [_gib(plan.rollout.trainer) for plan in plans])
    yield _line("  vLLM's weights", [_gib(plan.rollout.weights) for plan in plans])
    yield _line("  vLLM's KV cache", [_gib(plan.rollout.cache) for plan in plans])
    yield _line("  longest rows a replica caches", [f"{plan.together}" for plan in plans])
    yield _line("  at the hand-over of weights", [_gib(plan.rollout.sync) for plan in plans])
    yield "a step"
    yield _line("  tokens, millions", [_number(plan.work.tokens / 1e6) for plan in plans])
    yield _line("  one forward pass, 1e15 operations", [_number(plan.operations / 1e15) for plan in plans])
    yield _line("  hours sampling", [_hours(plan.seconds.rollout) for plan in plans])
    yield _line("  hours scoring", [_hours(plan.seconds.scoring) for plan in plans])
    yield _line("  hours updating", [_hours(plan.seconds.update) for plan in plans])
    yield _line("  hours", [_hours(plan.seconds.total) for plan in plans])
    yield _line("steps", [f"{plan.steps}" for plan in plans])
    yield _line("hours of the stage", [_hours(plan.steps * plan.seconds.total) for plan in plans])


def _line(name: str, cells: Sequence[str]) -> str:
    return f"{name:34}" + "".join(f"{cell:>10}" for cell in cells)


def _gib(size: float) -> str:
    gib = size / 2**30
    return f"{gib:.2g}" if 0 < gib < 0.05 else f"{gib:.1f}"


def _hours(seconds: float) -> str:
    return _number(seconds / 3600)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
