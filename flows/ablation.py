"""The ablation of the RL recipe, `python -m flows.ablation`: what each part of it is worth, over seeds."""

import os
import sys

from flows.ablation_request import AblationRequest, parse_ablation

if __name__ == "__main__":
    # Before Prefect is imported, which takes seconds: --help and refusals are instant.
    REQUEST = parse_ablation()
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")

import shutil
from pathlib import Path

from prefect import flow, tags, task
from prefect.futures import wait
from prefect.task_runners import ThreadPoolTaskRunner

from flows.experiments import Start, freeze, open_cell, open_start, save_cell
from flows.stage import reproduce
from flows.sweep import process_tag, sweep_dead_runs
from flows.synthesis import synthesis
from tasks.ablation.cells import SCORES, TRAINING, cell_name
from tasks.ablation.ladder import ladder, overrides
from tasks.errors import PipelineError
from tasks.params import load_params

STAGES = Path("infra/ablation/stages.yaml")
CELL_STAGES = ("rl@stage1", "ablation")
READ = (Path("data/curated/stage1.parquet"), Path("data/verified/test.parquet"))  # by every cell
RESULTS = {Path("data/ablation.json"): SCORES, Path("metrics/rl-stage1.json"): TRAINING}
REPORTS = Path("reports")  # in the start
PAGES = Path("ablation")  # in the checkout, whose reports/ is another stage's
SHOW = "dvc exp show --only-changed --drop '.*' --keep 'Experiment|average|seed|rl.(batch|adv|clip|entropy)'"


@flow(name="ablation")
def ablation(request: AblationRequest) -> None:
    """Naive GRPO, and one by one what QwenLong-L1.5 §4.2–4.3 adds to it.

    All cells, a variant and a seed each, train RL stage 1 from the same base model on the same curated questions and
    answer the same held-out ones. Cells that are done are not done again; one that was killed goes on.
    """
    sweep_dead_runs()
    with tags(process_tag()):
        start = open_start(request.overrides, STAGES)
        make_start(start)
        failed = run_cells(start, request)
        if start.results.is_dir():
            report(start)
    if failed:
        raise PipelineError(f"{len(failed)} cells failed ({', '.join(failed)}); the report is of the others, if any")


def make_start(start: Start) -> None:
    """What all cells have in common: questions curated with the base model, and those held out."""
    if not start.frozen:
        synthesis(start.run())
        reproduce("curate@stage1", start.run())
        freeze(start)


def run_cells(start: Start, request: AblationRequest) -> list[str]:
    """Run the cells that are not done yet, some at a time; return the names of those that failed."""
    variants = ladder(load_params(start.folder / "params.yaml").rl)
    names = {cell_name(variant, seed): (variant, seed) for variant, seed in request.cells()}
    missing = [name for name in names if not start.result(name).is_dir()]
    cells = {name: {"cell": name, "start": start, "settings": overrides(variants, *names[name])} for name in missing}
    with ThreadPoolTaskRunner[None](max_workers=request.parallel) as runner:
        futures = {name: runner.submit(run_cell, parameters) for name, parameters in cells.items()}
        wait(list(futures.values()))
    return [name for name, future in futures.items() if not future.state.is_completed()]


def report(start: Start) -> None:
    """Compare the cells that are done, and bring the pages into the checkout."""
    reproduce("ablation-report", start.run())
    PAGES.mkdir(exist_ok=True)
    for page in sorted((start.folder / REPORTS).iterdir()):
        shutil.copy2(page, PAGES / page.name)
    print(f"{PAGES / 'ablation.md'}, {PAGES / 'ablation.html'}; in {start.folder}: {SHOW}")


@task(task_run_name="{cell}")
def run_cell(cell: str, start: Start, settings: tuple[str, ...]) -> None:
    """Train, score, and keep the experiment."""
    run = open_cell(start, cell, settings, READ)
    for stage in CELL_STAGES:
        reproduce(stage, run)
    save_cell(start, cell, run, CELL_STAGES, RESULTS)


if __name__ == "__main__":
    try:
        ablation(REQUEST)
    except PipelineError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from error
