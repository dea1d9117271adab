"""Train the tiny profile's base model from scratch: `python -m tasks.base_model.pretrain`.

A Qwen3 of two layers learns, on worlds of shuffled facts, to read short documents and to play every role of the
recipe. The stopping rule is a fixed number of steps. Batches depend on (seed, step) alone, so a killed run continues
from its last checkpoint to the same weights. Longer contexts and the choice between direct and reasoned answers are
left to reinforcement learning.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.artifacts import atomic_folder, stage_lock, write_bytes, write_json, write_text
from tasks.base_model.exam import draw_curve, examine, model_card
from tasks.base_model.lessons import (
    Lesson,
    School,
    answer_lesson,
    copy_lesson,
    final_lesson,
    judge_lesson,
    memory_lesson,
    propose_lesson,
    recall_lesson,
    restate_lesson,
)
from tasks.base_model.vocabulary import CONTROL, build_tokenizer
from tasks.corpus.countries import load_countries, vocabulary
from tasks.errors import PipelineError
from tasks.tokenization import ChatTokenizer

if TYPE_CHECKING:
    import torch
    from transformers import Qwen3ForCausalLM

HIDDEN, LAYERS, HEADS, HEAD_DIM = 128, 2, 2, 64
ROPE_BASE = 10_000.0
STEPS = 14_000  # the stopping rule, fixed before the run (docs/log.md)
INDUCTION_STEPS = 1_500
LEARNING_RATE, WARMUP_STEPS, DECAY_FROM = 1.0e-3, 100, 0.6  # linear decay to 5 % after 60 % of the steps
SAVE_EVERY, LOG_EVERY = 500, 100
FIRST_MIX = {"recall": 0.25, "copy": 0.20, "restate_short": 0.30, "answer": 0.25}
FIRST_WORDS = 6  # recall forms sooner over every sixth word of the vocabulary
MAIN_MIX = {
    "recall": 0.04,
    "restate": 0.16,
    "answer": 0.45,
    "memory": 0.18,
    "final": 0.05,
    "propose": 0.08,
    "judge": 0.04,
}
LOG = "training_log.jsonl"  # beside the weights, one entry a line
WORK = Path(".work/pretrain")


@dataclass
class Progress:
    """What a run carries besides weights: the step and the log so far."""

    step: int
    log: list[dict[str, float]]


def lesson_batch(school: School, seed: int, step: int) -> tuple[str, list[Lesson]]:
    """The batch of a step, a function of (seed, step) alone. Every batch holds about 3,000 tokens."""
    rng = random.Random(f"{seed}:{step}")
    mix = FIRST_MIX if step <= INDUCTION_STEPS else MAIN_MIX
    kind = rng.choices(list(mix), list(mix.values()))[0]
    words = range(len(CONTROL), len(school.tokenizer), FIRST_WORDS if step <= INDUCTION_STEPS else 1)
    makers = {
        "recall": lambda: recall_lesson(words, 64, rng),
        "copy": lambda: copy_lesson(words, 64, rng),
        "restate_short": lambda: restate_lesson(school, rng.choice((1, 2)), 96, rng),
        "restate": lambda: restate_lesson(school, rng.choice((2, 3, 4)), 192, rng),
        "answer": lambda: answer_lesson(school, rng),
        "memory": lambda: memory_lesson(school, rng),
        "final": lambda: final_lesson(school, rng),
        "propose": lambda: propose_lesson(school, rng),
        "judge": lambda: judge_lesson(school, rng),
    }
    sizes = {"recall": 32, "copy": 32, "restate_short": 28, "restate": 15}
    return kind, [makers[kind]() for _ in range(sizes.get(kind, 12))]


def learning_rate(step: int) -> float:
    """Constant after a warm-up, then linear decay."""
    left = (STEPS - step) / (STEPS * (1 - DECAY_FROM))
    return LEARNING_RATE * min(1.0, step / WARMUP_STEPS, max(0.05, left))


def build_model(vocabulary_size: int, pad_id: int, end_id: int) -> "Qwen3ForCausalLM":
    """A fresh Qwen3 whose first layer starts as previous-token heads.

    Head h attends h + 1 places back: a constant embedding component meets rotary phases turned by that offset.
    Values pass through (output ∝ valueᵀ, orthogonal, about as large as the embeddings) and queries match equal keys.
    With this start, and recall drilled on every sixth word first, recall over random words forms within 800 steps;
    neither was tried alone at the same learning rate (docs/log.md).
    """
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=vocabulary_size,
            hidden_size=HIDDEN,
            intermediate_size=2 * HIDDEN,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            num_key_value_heads=HEADS,
            head_dim=HEAD_DIM,
            max_position_embeddings=8192,
            tie_word_embeddings=True,
            rope_parameters={"rope_type": "default", "rope_theta": ROPE_BASE},
            pad_token_id=pad_id,
            eos_token_id=end_id,
            bos_token_id=None,
        )
    )
    frequencies = ROPE_BASE ** (-torch.arange(HEAD_DIM // 2) / (HEAD_DIM // 2))
    with torch.no_grad():
        for layer in model.model.layers:
            attention = layer.self_attn
            orthogonal = torch.linalg.qr(torch.randn(HIDDEN, HIDDEN))[0]
            attention.v_proj.weight.copy_(orthogonal)
            attention.o_proj.weight.copy_(0.04 * orthogonal.T)
            attention.q_proj.weight.normal_(std=HIDDEN**-0.5)
            attention.k_proj.weight.copy_(attention.q_proj.weight)
        model.model.embed_tokens.weight[:, 0] = 0.04
        first = model.model.layers[0].self_attn
        for head in range(HEADS):
            rows, turn = slice(head * HEAD_DIM, (head + 1) * HEAD_DIM), frequencies * (head + 1)
            for projection in (first.q_proj.weight, first.k_proj.weight):
                projection[rows] *= 0.3
            first.q_proj.weight[rows, 0] = 2 * torch.cat([turn.cos(), -turn.sin()])
            first.k_proj.weight[rows, 0] = 2 * torch.cat([torch.ones_like(turn), torch.zeros_like(turn)])
    return model


def train_step(
    model: "Qwen3ForCausalLM", optimizer: "torch.optim.Optimizer", lessons: Sequence[Lesson], rate: float
) -> tuple[float, float]:
    """One update on the learned tokens; returns mean loss (nats) and next-token accuracy."""
    import torch

    ids_BT = torch.tensor([ids for ids, _ in lessons])
    learned_BT = torch.tensor([learned for _, learned in lessons])[:, 1:]
    hidden_BTH = model.model(input_ids=ids_BT[:, :-1], use_cache=False).last_hidden_state
    logits_NV = model.lm_head(hidden_BTH[learned_BT])
    targets_N = ids_BT[:, 1:][learned_BT]
    loss = torch.nn.functional.cross_entropy(logits_NV, targets_N)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    optimizer.zero_grad()
    return loss.item(), (logits_NV.argmax(-1) == targets_N).float().mean().item()


def pretrain(output: Path, seed: int, stop_after: int = STEPS) -> None:
    """Train to the stopping rule (or `stop_after`, for tests) and write the model folder."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    countries = load_countries()
    tokenizer = ChatTokenizer(build_tokenizer(countries))
    school = School(
        tokenizer,
        vocabulary(countries),
        sorted({country.region for country in countries}),
        document_tokens=128,
        sequence_tokens=256,
        reasoned_share=0.4,
    )
    model = build_model(len(tokenizer), tokenizer.pad_id, tokenizer.end_id)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.01)
    progress = _restore(model, optimizer, seed)
    window: dict[str, list[tuple[float, float]]] = {}
    started = time.process_time()
    while progress.step < stop_after:
        progress.step += 1
        kind, lessons = lesson_batch(school, seed, progress.step)
        window.setdefault(kind, []).append(train_step(model, optimizer, lessons, learning_rate(progress.step)))
        if progress.step % LOG_EVERY == 0:
            progress.log.append(_summary(progress.step, window, time.process_time() - started))
            window = {}
            print(json.dumps(progress.log[-1]), flush=True)
        if progress.step % SAVE_EVERY == 0:
            _save(model, optimizer, progress, seed)
    _write_model(output, model, tokenizer, progress)


def _summary(step: int, window: Mapping[str, Sequence[tuple[float, float]]], seconds: float) -> dict[str, float]:
    entry: dict[str, float] = {"step": step, "cpu_seconds": round(seconds, 1)}
    for kind, results in sorted(window.items()):
        entry[f"loss/{kind}"] = round(sum(loss for loss, _ in results) / len(results), 4)
        entry[f"accuracy/{kind}"] = round(sum(accuracy for _, accuracy in results) / len(results), 4)
    return entry


def _save(model: "Qwen3ForCausalLM", optimizer: "torch.optim.Optimizer", progress: Progress, seed: int) -> None:
    import torch

    with atomic_folder(WORK / "checkpoint") as folder:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, folder / "state.pt")
        write_json(folder / "progress.json", {"step": progress.step, "log": progress.log, "seed": seed})


def _restore(model: "Qwen3ForCausalLM", optimizer: "torch.optim.Optimizer", seed: int) -> Progress:
    import torch

    folder = WORK / "checkpoint"
    if not folder.is_dir():
        return Progress(0, [])
    kept = json.loads((folder / "progress.json").read_text("utf-8"))
    if kept["seed"] != seed:
        raise PipelineError(f"{folder} belongs to seed {kept['seed']}, not {seed}; remove it to start afresh")
    state = torch.load(folder / "state.pt", weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return Progress(kept["step"], kept["log"])


def _write_model(output: Path, model: "Qwen3ForCausalLM", tokenizer: ChatTokenizer, progress: Progress) -> None:
    with atomic_folder(output) as folder:
        model.save_pretrained(folder)
        tokenizer.save(folder)
        write_text(folder / LOG, "".join(json.dumps(entry) + "\n" for entry in progress.log))


def write_card(folder: Path) -> None:
    """Examine the model in `folder`; write its README.md and curve.png."""
    import torch

    from tasks.generation.local import LocalGenerator

    torch.set_num_threads(1)
    tokenizer = ChatTokenizer.load(folder)
    log = [json.loads(line) for line in (folder / LOG).read_text("utf-8").splitlines()]
    write_text(folder / "README.md", model_card(examine(LocalGenerator.load(folder), tokenizer), log))
    write_bytes(folder / "curve.png", draw_curve(log))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="Train the tiny base model from scratch (fixed steps, resumable).")
    parser.add_argument("--output", type=Path, default=Path("models/tiny-base"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--card", action="store_true", help="only examine the model again and write its card")
    arguments = parser.parse_args()
    try:
        with stage_lock("pretrain"):
            if not arguments.card:
                pretrain(arguments.output, arguments.seed)
            write_card(arguments.output)
    except PipelineError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
