"""Train one RL stage: `python -m tasks.rl.train {stage1,stage2,stage3,memory,stage4}`.

Reads data/curated/<name>.parquet and the checkpoint before it; writes checkpoints/<name>/ and
metrics/rl-<name>.json.
"""

import logging
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.cli import stage_command

if TYPE_CHECKING:
    from tasks.params import Params
    from tasks.records import Item
    from tasks.rewards.judge import Judge
    from tasks.rl.engines.base import Engine
    from tasks.rl.episodes import Episode
    from tasks.rl.loop import Report, Rollout
    from tasks.rl.state import StageState, StepMetrics
    from tasks.tokenization import ChatTokenizer
    from tasks.tracking import Tracker

    Trained = tuple[StageState, Callable[[Path], None]]  # the final state, and how to write the policy as a HF folder

CHECKPOINTS = Path("checkpoints")
PARENTS = {"stage2": "stage1", "stage3": "stage2", "memory": "stage3", "stage4": "merged"}
NAMES = ("stage1", *PARENTS)


def train(name: str, params: "Params") -> None:
    """Run or continue the stage, in its lock and its MLflow run."""
    from tasks.artifacts import stage_lock
    from tasks.rewards.rules import require_means
    from tasks.tracking import stage_run

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    with stage_lock(f"rl-{name}") as work:
        items = read_training_items(name)
        require_means(item.question for item in items)
        if params.rl.engine == "verl":
            check_verl(name, params)
        with stage_run(f"rl-{name}", params, {"stage": name}) as tracker:
            train_stage(name, params, items, work, tracker)


def train_stage(name: str, params: "Params", items: Sequence["Item"], work: Path, tracker: "Tracker") -> None:
    """Train on `items` and write checkpoint and metrics, each whole or not at all."""
    from tasks.artifacts import sha256_of
    from tasks.rl.state import fingerprint_of

    inputs = {"data": data_of(name), "model": parent_of(name, params)}
    hashes = {kind: sha256_of(path) for kind, path in inputs.items()}
    memory = params.memory if name == "memory" else None
    fingerprint = fingerprint_of(name, params, params.rl.limits(name), memory, hashes)
    tracker.log_dataset(inputs["data"], f"curated-{name}")
    train_with = _train_on_verl if params.rl.engine == "verl" else _train_here
    state, save_model = train_with(name, params, items, work / "resume", fingerprint, tracker)
    _write_checkpoint(name, params, save_model, state, inputs, hashes, tracker)
    tracker.log_dataset(CHECKPOINTS / name, f"checkpoint-{name}")
    _write_metrics(name, state, tracker)
    _forget_resume_points(name, params, fingerprint, work / "resume")


def _forget_resume_points(name: str, params: "Params", fingerprint: str, resume: Path) -> None:
    """The stage is done: a forced rerun must train, not find its end."""
    shutil.rmtree(resume, ignore_errors=True)
    if params.rl.engine == "verl" and params.cluster.checkpoint_uri is not None:
        from tasks.rl.engines.verl.remote import stage_uri
        from tasks.s3 import remove

        remove(stage_uri(params, name, fingerprint))


def _train_here(
    name: str, params: "Params", items: Sequence["Item"], resume: Path, fingerprint: str, tracker: "Tracker"
) -> "Trained":
    """The local engine: one process, on this machine's CPU."""
    import torch

    from tasks.rewards.opening import open_judge
    from tasks.rl.loop import run_steps

    judge = open_judge(params, f"rl-{name}")
    torch.set_num_threads(params.threads)
    engine, tokenizer = _load_engine(name, params)
    limits = params.rl.limits(name)
    with step_display(f"rl {name}", limits.steps) as report:
        state = run_steps(
            name, items, limits.steps, params.rl, params.seed,
            engine=engine,
            roll_out=make_rollout(name, params, engine, tokenizer, judge),
            resume=resume,
            fingerprint=fingerprint,
            tracker=tracker,
            report=_with_judge(report, judge, tracker),
        )  # fmt: skip
    return state, engine.save_model


def _with_judge(report: "Report", judge: "Judge | None", tracker: "Tracker") -> "Report":
    """Also log what the judge did in the step."""
    if judge is None:
        return report
    from tasks.rl.judge_counts import StepCounts

    counts = StepCounts()

    def report_both(metrics: "StepMetrics") -> None:
        tracker.log_metrics(counts.step([("", judge.counts())]), metrics.step)
        report(metrics)

    return report_both


def check_verl(name: str, params: "Params") -> None:
    """What would end a stage minutes later: the extra, the model, verl's own rules, the cluster's address, the judge.

    Raises:
        PipelineError: one of them, by name.
    """
    from tasks.rewards.opening import open_judge
    from tasks.rl.engines.verl.config import check_model, check_reach, compose, config_name
    from tasks.rl.engines.verl.launch import prepare_environment
    from tasks.rl.engines.verl.submit import connect

    prepare_environment("cuda" if params.cluster.gpus_per_node else "cpu")
    check_model(name, params, parent_of(name, params))
    compose(config_name(params), _verl_overrides(name, params, Path(), "", ""))
    if params.cluster.address is not None:
        connect(params.cluster.address)
    check_reach(params)
    open_judge(params, f"rl-{name}")  # each process that scores opens its own


def _train_on_verl(
    name: str, params: "Params", items: Sequence["Item"], resume: Path, fingerprint: str, tracker: "Tracker"
) -> "Trained":
    """verl: here or on a cluster. It reads the questions itself and keeps our state in its checkpoints."""
    from tasks.rl.engines.verl.config import compose, config_name
    from tasks.rl.engines.verl.export import save_model
    from tasks.rl.engines.verl.launch import run_here
    from tasks.rl.engines.verl.state import latest_step, read_state
    from tasks.rl.engines.verl.submit import StageJob, run_on_ray

    del items
    overrides = _verl_overrides(name, params, resume, fingerprint, tracker.run_id or "")
    if params.cluster.address is None:
        run_here(compose(config_name(params), overrides))
    else:
        run_on_ray(params.cluster.address, StageJob(name, fingerprint, resume, [config_name(params), *overrides]))
    last = latest_step(resume)
    return read_state(last), partial(save_model, last, parent_of(name, params))


def _verl_overrides(name: str, params: "Params", resume: Path, fingerprint: str, run_id: str) -> list[str]:
    from tasks.rl.engines.verl.config import RunIds, RunPaths, overrides

    paths = RunPaths(data=data_of(name), model=parent_of(name, params), work=resume)
    return overrides(name, params, paths, RunIds(fingerprint, run_id, params.tracking.uri))


def parent_of(name: str, params: "Params") -> Path:
    """The checkpoint a stage starts from."""
    return CHECKPOINTS / PARENTS[name] if name in PARENTS else params.base_model


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


def make_rollout(
    name: str, params: "Params", engine: "Engine", tokenizer: "ChatTokenizer", judge: "Judge | None"
) -> "Rollout":
    """Full context for all stages but the memory branch."""
    from tasks.generation.base import Sampling
    from tasks.memory.rollout import roll_out as roll_out_memory
    from tasks.rl.rollout import roll_out

    rl, limits = params.rl, params.rl.limits(name)
    sampling = Sampling(rl.sampling.temperature, rl.sampling.top_p, limits.max_output_tokens, rl.group_size)

    def full_context(items: Sequence["Item"], seed: int) -> list["Episode"]:
        return roll_out(engine.generator, tokenizer, items, limits.max_input_tokens, sampling, seed, judge)

    def memory(items: Sequence["Item"], seed: int) -> list["Episode"]:
        return roll_out_memory(engine.generator, tokenizer, items, rl.group_size, params.memory, sampling, seed, judge)

    return memory if name == "memory" else full_context


def _load_engine(name: str, params: "Params") -> tuple["Engine", "ChatTokenizer"]:
    from tasks.generation.local import load_model
    from tasks.rl.engines.local import LocalEngine
    from tasks.tokenization import ChatTokenizer

    folder = parent_of(name, params)
    tokenizer = ChatTokenizer.load(folder)
    return LocalEngine(load_model(folder), tokenizer, params.rl, params.rl.advantage_of(name)), tokenizer


@contextmanager
def step_display(title: str, steps: int) -> Iterator["Report"]:
    """A progress bar in a terminal, a plain line a step elsewhere."""
    if not sys.stdout.isatty():
        yield lambda metrics: print(f"{title} {metrics.step}/{steps} {metrics.summary()}", flush=True)
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
        yield lambda metrics: progress.update(task, completed=metrics.step, now=metrics.summary())


def _write_checkpoint(
    name: str,
    params: "Params",
    save_model: "Callable[[Path], None]",
    state: "StageState",
    inputs: Mapping[str, Path],
    hashes: Mapping[str, str],
    tracker: "Tracker",
) -> None:
    from tasks.artifacts import atomic_folder, write_text
    from tasks.lineage import write_lineage
    from tasks.rl.card import model_card

    parent, limits = inputs["model"], params.rl.limits(name)
    with atomic_folder(CHECKPOINTS / name) as folder:
        save_model(folder)
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
