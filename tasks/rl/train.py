"""Train one RL stage: `python -m tasks.rl.train {stage1,stage2,stage3,memory,stage4}`.

Reads data/curated/<name>.parquet and the checkpoint before it; writes checkpoints/<name>/ and
metrics/rl-<name>.json.
"""

import logging
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.cli import stage_command
from tasks.errors import ParameterError

if TYPE_CHECKING:
    from tasks.params import Params, StageParams
    from tasks.records import Item
    from tasks.rl.engines.base import Engine
    from tasks.rl.episodes import Episode
    from tasks.rl.loop import Report, Rollout
    from tasks.rl.state import StageState, StepMetrics
    from tasks.tokenization import ChatTokenizer
    from tasks.tracking import Tracker

CHECKPOINTS = Path("checkpoints")
PARENTS = {"stage2": "stage1", "stage3": "stage2", "memory": "stage3", "stage4": "merged"}
NAMES = ("stage1", *PARENTS)


def train(name: str, params: "Params") -> None:
    """Run or continue the stage, in its lock and its MLflow run."""
    from tasks.artifacts import stage_lock
    from tasks.tracking import stage_run

    if params.rl.engine != "local":
        raise ParameterError(
            f"rl.engine = {params.rl.engine!r}: this release trains with 'local' alone; set rl.engine to local"
        )
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    with stage_lock(f"rl-{name}") as work:
        items = read_training_items(name)
        with stage_run(f"rl-{name}", params, {"stage": name}) as tracker:
            train_stage(name, params, items, work, tracker)


def train_stage(name: str, params: "Params", items: Sequence["Item"], work: Path, tracker: "Tracker") -> None:
    """Train on `items` and write checkpoint and metrics, each whole or not at all."""
    import torch

    from tasks.artifacts import sha256_of
    from tasks.rl.loop import run_steps
    from tasks.rl.state import fingerprint_of

    torch.set_num_threads(params.threads)
    inputs = {"data": data_of(name), "model": parent_of(name, params)}
    hashes = {kind: sha256_of(path) for kind, path in inputs.items()}
    engine, tokenizer = _load_engine(name, params)
    tracker.log_dataset(inputs["data"], f"curated-{name}")
    limits, memory = limits_of(name, params), params.memory if name == "memory" else None
    with step_display(f"rl {name}", limits.steps) as report:
        state = run_steps(
            name, items, limits.steps, params.rl, params.seed,
            engine=engine,
            roll_out=make_rollout(name, params, engine, tokenizer),
            resume=work / "resume",
            fingerprint=fingerprint_of(name, params, limits, memory, hashes),
            tracker=tracker,
            report=report,
        )  # fmt: skip
    _write_checkpoint(name, params, engine, state, inputs, hashes, tracker)
    tracker.log_dataset(CHECKPOINTS / name, f"checkpoint-{name}")
    _write_metrics(name, state, tracker)
    shutil.rmtree(work / "resume", ignore_errors=True)


def parent_of(name: str, params: "Params") -> Path:
    """The checkpoint a stage starts from."""
    return CHECKPOINTS / PARENTS[name] if name in PARENTS else params.base_model


def limits_of(name: str, params: "Params") -> "StageParams":
    """The stage's own lengths and steps."""
    return {str(stage): limits for stage, limits in params.rl.stages.items()}[name]


def data_of(name: str) -> Path:
    """The stage's curated questions."""
    return Path("data/curated") / f"{name}.parquet"


def read_training_items(name: str) -> list["Item"]:
    """The curated items; a held-out document among them ends the stage.

    Raises:
        InputError: no items, or one that is not of the training split.
    """
    from tasks.artifacts import read_items
    from tasks.errors import InputError

    path = data_of(name)
    items = read_items(path)
    if not items:
        raise InputError(f"{path} holds no questions; curate the stage again with more of them")
    held_out = [item.question.id for item in items if item.question.split != "train"]
    if held_out:
        raise InputError(
            f"{path} holds {len(held_out)} questions that are not of the training split (first: "
            f"{held_out[0]}); held-out documents never serve training: curate again"
        )
    return items


def make_rollout(name: str, params: "Params", engine: "Engine", tokenizer: "ChatTokenizer") -> "Rollout":
    """Full context for all stages but the memory branch."""
    from tasks.generation.base import Sampling
    from tasks.memory.rollout import roll_out as roll_out_memory
    from tasks.rl.rollout import roll_out

    rl, limits = params.rl, limits_of(name, params)
    sampling = Sampling(rl.sampling.temperature, rl.sampling.top_p, limits.max_output_tokens, rl.group_size)

    def full_context(items: Sequence["Item"], seed: int) -> list["Episode"]:
        return roll_out(engine.generator, tokenizer, items, limits.max_input_tokens, sampling, seed)

    def memory(items: Sequence["Item"], seed: int) -> list["Episode"]:
        return roll_out_memory(engine.generator, tokenizer, items, rl.group_size, params.memory, sampling, seed)

    return memory if name == "memory" else full_context


def _load_engine(name: str, params: "Params") -> tuple["Engine", "ChatTokenizer"]:
    from tasks.generation.local import load_model
    from tasks.rl.engines.local import LocalEngine
    from tasks.tokenization import ChatTokenizer

    folder = parent_of(name, params)
    tokenizer = ChatTokenizer.load(folder)
    advantage = "group" if name == "memory" else params.rl.advantage  # QwenLong-L1.5 §4.4: trajectories, group std
    return LocalEngine(load_model(folder), tokenizer, params.rl, advantage), tokenizer


@contextmanager
def step_display(title: str, steps: int) -> Iterator["Report"]:
    """A progress bar in a terminal, a plain line a step elsewhere."""
    if not sys.stdout.isatty():
        yield lambda metrics: print(f"{title} {metrics.step}/{steps} {_summary(metrics)}", flush=True)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        "[bold]{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        "{task.fields[now]}",
    )
    with Progress(*(TextColumn(c) if isinstance(c, str) else c for c in columns)) as progress:
        task = progress.add_task(title, total=steps, now="")
        yield lambda metrics: progress.update(task, completed=metrics.step, now=_summary(metrics))


def _summary(metrics: "StepMetrics") -> str:
    reward = "none" if metrics.reward is None else f"{metrics.reward:.3f}"
    gate = " gate on" if metrics.gate else ""
    return f"reward {reward} entropy {metrics.entropy:.3f} length {metrics.response_length:.1f}{gate}"


def _write_checkpoint(
    name: str,
    params: "Params",
    engine: "Engine",
    state: "StageState",
    inputs: Mapping[str, Path],
    hashes: Mapping[str, str],
    tracker: "Tracker",
) -> None:
    from tasks.artifacts import atomic_folder, write_text
    from tasks.lineage import write_lineage
    from tasks.rl.card import model_card

    parent, limits = inputs["model"], limits_of(name, params)
    with atomic_folder(CHECKPOINTS / name) as folder:
        engine.save_model(folder)
        write_text(folder / "README.md", model_card(name, parent, params, limits, state.metrics))
        write_lineage(
            folder,
            stage=f"rl-{name}",
            inputs=inputs,
            input_hashes=hashes,
            params=params,
            parents=[parent],
            run_id=tracker.run_id,
        )


def _write_metrics(name: str, state: "StageState", tracker: "Tracker") -> None:
    """Curves and each question's mean reward. No times: the same run gives the same bytes."""
    from tasks.artifacts import write_json

    path = Path("metrics") / f"rl-{name}.json"
    questions = {key: outcome.total / outcome.count for key, outcome in sorted(state.outcomes.items())}
    skipped = sum(step.skipped for step in state.metrics)
    write_json(path, {"stage": name, "skipped": skipped, "steps": state.metrics, "question_rewards": questions})
    tracker.log_artifact(path)


def main() -> None:
    """The command."""
    stage_command("Train one RL stage on its curated questions.", NAMES, train)


if __name__ == "__main__":
    main()
