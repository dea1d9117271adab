"""The planner's formulas beside what torch measures on this CPU: `python benchmarks/plan_check.py`.

Three models: the committed base, and random weights in the proportions of Qwen3-4B and of Qwen3-30B-A3B at an eighth
of their width (and fewer experts, which no formula of a token depends on). Weights, AdamW's moments and KV cache must
agree exactly, operations but for the rotary angles, activations (bf16, gradient checkpointing) to 5 %. Of activations
the growth from one row length to another is compared: what does not grow is none. The multiples in `layer_elements`
were chosen on shapes like these, so this guards them against a new torch or transformers; an MLP narrower than the
hidden size needs up to a fifth more than planned. Not measured: GPU kernels, the logits' part, whose bytes come from
reading verl, and all that takes several GPUs.
"""

import argparse
import copy
import json
import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForCausalLM, DynamicCache, Qwen3Config, Qwen3MoeConfig

from tasks.rl.sizing import (
    BF16,
    FP32,
    Architecture,
    checkpoint_bytes,
    forward_operations,
    kv_bytes,
    layer_elements,
    read_architecture,
)

BASE = Path("models/tiny-base")
SHORT, LONG = 1024, 3072
TOLERANCE = 0.05
ROTARY = 0.001  # the angles, which the planner leaves out


@dataclass(frozen=True)
class Comparison:
    """One quantity, planned and measured."""

    name: str
    planned: float
    measured: float
    tolerance: float

    @property
    def error(self) -> float:
        """Relative to the measured value; positive when the plan asks for more."""
        return self.planned / self.measured - 1.0

    @property
    def agrees(self) -> bool:
        return abs(self.error) <= self.tolerance


SHARED: dict[str, Any] = {"vocab_size": 500, "num_hidden_layers": 2, "num_attention_heads": 8, "head_dim": 64}
PROPORTIONS = {
    "Qwen3-4B / 8": Qwen3Config(
        **SHARED, hidden_size=320, num_key_value_heads=2, intermediate_size=1216, tie_word_embeddings=True
    ),
    "Qwen3-30B-A3B / 8": Qwen3MoeConfig(
        **SHARED, hidden_size=256, num_key_value_heads=1, moe_intermediate_size=96, num_experts=32,
        num_experts_per_tok=8, tie_word_embeddings=False,
    ),
}  # fmt: skip


def load(name: str) -> tuple[Any, Architecture]:
    """The base, or random weights in a published model's proportions; the planner reads the same config.json."""
    if name not in PROPORTIONS:
        return AutoModelForCausalLM.from_pretrained(BASE), read_architecture(BASE)[0]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(PROPORTIONS[name].to_dict()), "utf-8")
        return AutoModelForCausalLM.from_config(PROPORTIONS[name]), read_architecture(Path(folder))[0]


def peak_bytes(work: Callable[[], None]) -> int:
    """The most bytes that were allocated at once during the work, beyond those before it."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        work()
    events = [event for event in record.profiler.kineto_results.events() if event.name() == "[memory]"]
    live = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        live += event.nbytes()
        most = max(most, live)
    return most


def activation_bytes(model: Any, length: int) -> int:
    """Peak of forward and backward over one row, from its ids to the last hidden state."""
    ids = torch.randint(0, model.config.vocab_size, (1, length))

    def work() -> None:
        model.model(input_ids=ids, use_cache=False).last_hidden_state.sum().backward()

    work()  # gradients exist from here on
    return peak_bytes(work)


def compare_activations(model: Any, architecture: Architecture) -> Comparison:
    """Bytes a token: the layers' inputs, and one layer."""
    model = model.to(torch.bfloat16).train()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    growth = activation_bytes(model, LONG) - activation_bytes(model, SHORT)
    planned = checkpoint_bytes(architecture, 1) + BF16 * layer_elements(architecture)
    return Comparison("activations, bytes a token (bf16)", planned, growth / (LONG - SHORT), TOLERANCE)


def compare_states(model: Any, architecture: Architecture) -> list[Comparison]:
    """fp32 weights and both moments."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.0)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimiser.step()
    weights = sum(parameter.nbytes for parameter in model.parameters())
    moments = sum(state[key].nbytes for state in optimiser.state.values() for key in ("exp_avg", "exp_avg_sq"))
    return [
        Comparison("weights, bytes (fp32)", FP32 * architecture.parameters, weights, 0.0),
        Comparison("AdamW's moments, bytes (fp32)", 2 * FP32 * architecture.parameters, moments, 0.0),
    ]


@torch.no_grad()
def compare_forward(model: Any, architecture: Architecture) -> list[Comparison]:
    """Operations and the cache that a row leaves. Eager code, whose every product torch counts: scores not halved."""
    model.set_attn_implementation("eager")
    if architecture.experts > 1:
        model.set_experts_implementation("eager")
    cache: Any = DynamicCache(config=model.config)
    with FlopCounterMode(display=False) as counter:
        model(torch.zeros(1, SHORT, dtype=torch.long), past_key_values=cache, use_cache=True)
    operations = forward_operations(architecture, SHORT)
    cached = sum(tensor.nbytes for layer in cache.layers for tensor in (layer.keys, layer.values))
    return [
        Comparison(
            "operations of a forward pass",
            operations.weights + 2 * operations.scores,
            counter.get_total_flops(),
            ROTARY,
        ),
        Comparison("KV cache, bytes (fp32)", kv_bytes(architecture, FP32) * SHORT, cached, 0.0),
    ]


def compare(model: Any, architecture: Architecture) -> list[Comparison]:
    """All of it on one model in fp32."""
    activations = compare_activations(copy.deepcopy(model), architecture)
    return [*compare_states(model, architecture), *compare_forward(model, architecture), activations]


def main() -> None:
    """Print the comparisons; exit with 1 if one disagrees."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    comparisons = {name: compare(*load(name)) for name in (str(BASE), *PROPORTIONS)}
    for name, rows in comparisons.items():
        print(f"{name:36}{'planned':>16}{'measured':>16}{'off by':>9}{'may':>7}")
        for row in rows:
            print(f"  {row.name:34}{row.planned:16,.0f}{row.measured:16,.0f}{row.error:+9.1%}{row.tolerance:7.1%}")
    if not all(row.agrees for rows in comparisons.values() for row in rows):
        raise SystemExit("the plan and the measurement disagree")


if __name__ == "__main__":
    main()
