"""Control for the gain of the RL stages: the same compute spent on more supervised training.

`python benchmarks/supervised_control.py --cpu-seconds 400` continues the base model's own lessons (same mix, lengths
and answer styles) at the RL learning rate for that long, then scores it on the held-out items of the last run,
beside the base model. Needs data/verified/test.parquet and data/corpus (run `make run` first).
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from tasks.base_model import pretrain
from tasks.base_model.lessons import School
from tasks.corpus.countries import load_countries, vocabulary
from tasks.evaluation.answering import Reader, answer
from tasks.evaluation.evaluate import read_held_out
from tasks.evaluation.scores import Reply
from tasks.generation.local import LocalGenerator, load_model
from tasks.params import Params, load_params
from tasks.progress import meter
from tasks.records import Verdict
from tasks.tokenization import ChatTokenizer


def continue_lessons(params: Params, cpu_seconds: float) -> LocalGenerator:
    """The base model after `cpu_seconds` more of its own lessons."""
    tokenizer = ChatTokenizer.load(params.base_model)
    model = load_model(params.base_model).train()
    countries = load_countries()
    regions = sorted({country.region for country in countries})
    school = School(tokenizer, vocabulary(countries), regions, 128, 256, reasoned_share=0.4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.98), weight_decay=0.0)
    step, started = pretrain.STEPS, time.process_time()
    while time.process_time() - started < cpu_seconds:
        step += 1
        _, lessons = pretrain.lesson_batch(school, params.seed, step)
        pretrain.train_step(model, optimizer, lessons, params.rl.learning_rate)
    print(f"{step - pretrain.STEPS} more updates")
    return LocalGenerator(model.eval(), tokenizer)


def accuracies(replies: Sequence[Reply]) -> str:
    """Sampled accuracy in percent by context length, and over all."""
    lengths = sorted({reply.context_tokens for reply in replies})
    shares = [_percent([reply for reply in replies if reply.context_tokens == length]) for length in lengths]
    listed = ", ".join(f"{length}: {share:.1f}" for length, share in zip(lengths, shares, strict=True))
    return f"{listed}; mean over lengths: {sum(shares) / len(shares):.1f}"


def _percent(replies: Sequence[Reply]) -> float:
    return 100 * sum(reply.verdict is Verdict.CORRECT for reply in replies) / len(replies)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu-seconds", type=float, required=True)
    parser.add_argument("--params", type=Path, default=Path("params.yaml"))
    arguments = parser.parse_args()
    params = load_params(arguments.params)
    torch.set_num_threads(params.threads)
    tokenizer = ChatTokenizer.load(params.base_model)
    prompts = read_held_out(params, tokenizer).prompts
    generators = {
        "base": LocalGenerator.load(params.base_model),
        "supervised": continue_lessons(params, arguments.cpu_seconds),
    }
    for name, generator in generators.items():
        with meter(name, len(prompts)) as progress:
            reader = Reader(name, generator, tokenizer, params, progress)
            print(name, accuracies(answer(reader, prompts, "sampled", reader.sampled)))


if __name__ == "__main__":
    main()
