"""CPU-seconds of one GRPO step, ours beside TRL's GRPOTrainer: `python benchmarks/grpo_step.py`.

Both get the same random model (the tiny profile's architecture, so that no reply ends early), the same
prompts of the same length, sampling, reward, optimiser and one update a batch, on one thread. TRL comes with
the extra `bench`. Printed: medians over steps of process CPU time, split into generation, forward and the
rest (backward, optimiser).
"""

import argparse
import os
import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    PreTrainedTokenizerFast,
    Qwen3Config,
    TrainerCallback,
)

from tasks.generation.base import Sampling
from tasks.params import load_params
from tasks.records import Domain, Verdict
from tasks.rl.engines.local import LocalEngine
from tasks.rl.entropy_control import Gate
from tasks.rl.episodes import Episode, Turn
from tasks.tokenization import ChatTokenizer

PARTS = ("generation", "forward", "update")
TEMPLATE = "{{ messages[0]['content'] }}"
TARGET = 4.0


@dataclass
class Stopwatch:
    """CPU-seconds by part, step by step. A part's time is what its wrapped calls took; the step holds all."""

    steps: list[dict[str, float]] = field(default_factory=list)
    parts: dict[str, float] = field(default_factory=dict)
    started: float = 0.0

    def begin(self) -> None:
        self.parts, self.started = dict.fromkeys(PARTS, 0.0), time.process_time()

    def end(self) -> None:
        whole = time.process_time() - self.started
        self.steps.append({**self.parts, "update": whole - sum(self.parts.values()), "step": whole})

    def wrap(self, owner: Any, method: str, part: str) -> None:
        """Count the time of `owner.method` under a part."""
        call: Callable[..., Any] = getattr(owner, method)

        def timed(*args: Any, **kwargs: Any) -> Any:
            begun = time.process_time()
            result = call(*args, **kwargs)
            self.parts[part] = self.parts.get(part, 0.0) + time.process_time() - begun
            return result

        setattr(owner, method, timed)

    def medians(self) -> dict[str, float]:
        """Without the first step, which warms up."""
        return {part: statistics.median(step[part] for step in self.steps[1:]) for part in (*PARTS, "step")}


def build_model() -> Any:
    """Random weights; the committed base's architecture when it is there."""
    torch.manual_seed(0)
    base = Path("models/tiny-base")
    config = AutoConfig.from_pretrained(base) if (base / "config.json").is_file() else Qwen3Config(
        vocab_size=1000, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, head_dim=64, max_position_embeddings=4096, tie_word_embeddings=True,
        pad_token_id=0, eos_token_id=1, bos_token_id=None,
    )  # fmt: skip
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="sdpa").eval()


def build_tokenizer(vocabulary: int) -> PreTrainedTokenizerFast:
    """One word a token: `w7` is 7."""
    words = {f"w{number}": number for number in range(vocabulary)}
    inner = Tokenizer(models.WordLevel(words, "w0"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"pad_token": "w0", "eos_token": "w1", "unk_token": "w0"}
    fast = PreTrainedTokenizerFast(tokenizer_object=inner, **special)
    fast.chat_template = TEMPLATE
    return fast


def reward(reply: Sequence[int]) -> float:
    """Right for half of all replies, the same for both trainers."""
    return float(sum(reply) % 2)


def run_ours(prompts: Sequence[Sequence[int]], options: argparse.Namespace) -> Stopwatch:
    """Our local engine and generator."""
    watch, model = Stopwatch(), build_model()
    params = load_params(Path("params.yaml"), ("rl.entropy_control=null", "rl.clipping={type: none}")).rl
    engine = LocalEngine(model, ChatTokenizer(build_tokenizer(model.config.vocab_size)), params, "group")
    watch.wrap(engine.generator, "generate", "generation")
    watch.wrap(engine, "_score_all", "forward")
    sampling = Sampling(params.sampling.temperature, params.sampling.top_p, options.new_tokens, options.group)
    for step in range(options.steps + 1):
        watch.begin()
        batch = prompts[step * options.prompts : (step + 1) * options.prompts]
        replies = engine.generator.generate(batch, sampling, seed=step)
        episodes = []
        for group, (prompt, completions) in enumerate(zip(batch, replies, strict=True)):
            for completion in completions:
                right = reward(completion.token_ids)
                turn = Turn(tuple(prompt), completion.token_ids, completion.finish)
                verdict = Verdict.CORRECT if right else Verdict.WRONG
                episodes.append(Episode(group, Domain.MULTI_HOP, (turn,), verdict, right))
        engine.update(episodes, Gate(), step + 1)
        watch.end()
    return watch


def run_trl(prompts: Sequence[Sequence[int]], options: argparse.Namespace) -> Stopwatch:
    """TRL\'s GRPOTrainer, which generates with transformers."""
    from datasets import Dataset
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    watch, model, params = Stopwatch(), build_model(), load_params(Path("params.yaml")).rl

    def rewards(completion_ids: Sequence[Sequence[int]], **_: Any) -> list[float | None]:
        return [reward(ids) for ids in completion_ids]

    class Timer(TrainerCallback):
        def on_step_begin(self, *_args: Any, **_kwargs: Any) -> None:
            watch.begin()

        def on_step_end(self, *_args: Any, **_kwargs: Any) -> None:
            watch.end()

    with tempfile.TemporaryDirectory() as folder:
        config = GRPOConfig(
            output_dir=folder, use_cpu=True, bf16=False, report_to=[], save_strategy="no",
            logging_strategy="no", disable_tqdm=True, max_steps=options.steps + 1,
            per_device_train_batch_size=options.prompts * options.group, num_generations=options.group,
            max_completion_length=options.new_tokens, beta=0.0, num_iterations=1,
            temperature=params.sampling.temperature, top_p=params.sampling.top_p, top_k=0, loss_type="dapo",
            learning_rate=params.learning_rate, lr_scheduler_type="constant", gradient_checkpointing=False,
            shuffle_dataset=False, max_grad_norm=params.max_gradient_norm,
        )  # fmt: skip
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=rewards,
            args=config,
            train_dataset=Dataset.from_dict({"prompt": [" ".join(f"w{t}" for t in p) for p in prompts]}),
            processing_class=build_tokenizer(model.config.vocab_size),
            callbacks=[Timer()],
        )
        watch.wrap(trainer, "_generate", "generation")
        watch.wrap(trainer, "compute_loss", "forward")
        trainer.train()
    return watch


def main() -> None:
    """Run both and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=4, help="prompts a step")
    parser.add_argument("--group", type=int, default=8, help="samples a prompt (G)")
    parser.add_argument("--prompt-tokens", type=int, default=512)
    parser.add_argument("--new-tokens", type=int, default=32)
    parser.add_argument("--steps", type=int, default=5, help="measured steps, after one that warms up")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rng = random.Random(0)
    vocabulary = build_model().config.vocab_size
    count = options.prompts * (options.steps + 1)
    prompts = [[rng.randrange(2, vocabulary) for _ in range(options.prompt_tokens)] for _ in range(count)]
    ours, trl = run_ours(prompts, options).medians(), run_trl(prompts, options).medians()
    lengths = f"{options.prompt_tokens} + {options.new_tokens} tokens"
    print(f"{options.prompts} prompts × {options.group} samples, {lengths}")
    print("median CPU-seconds a step     ours      TRL    ratio")
    for part in (*PARTS, "step"):
        print(f"{part:24}{ours[part]:10.3f}{trl[part]:9.3f}{trl[part] / ours[part]:8.1f}×")
    print(f"target: at least {TARGET:.0f}× for the whole step")


if __name__ == "__main__":
    main()
