"""MLflow's view of the ablation: one parent, below it a run a cell, tagged with variant and seed.

A cell's run is the pipeline run of its stages (tasks/tracking.py), made when the first of them starts; what it lacks is
its place. A cell that DVC restored from its cache ran no stage and gets its run here.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tasks.ablation.cells import Cell, cell_name
from tasks.ablation.results import figures_of
from tasks.tracking import PARENT_TAG, PIPELINE_TAG

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run


def place_cells(client: "MlflowClient", run_id: str, cells: Sequence[Cell]) -> None:
    """Put the cells' runs below the parent of `run_id`, the report's own run."""
    report = client.get_run(run_id)
    for cell in cells:
        name = f"{report.data.tags[PIPELINE_TAG]}/{cell_name(cell.variant, cell.seed)}"
        cell_run = _found(client, report, name) or _made(client, report, name, cell)
        tags = {"variant": cell.variant, "seed": str(cell.seed), PARENT_TAG: report.data.tags[PARENT_TAG]}
        for key, value in tags.items():
            client.set_tag(cell_run, key, value)


def _found(client: "MlflowClient", report: "Run", name: str) -> str | None:
    runs = client.search_runs([report.info.experiment_id], f"tags.`{PIPELINE_TAG}.parent` = '{name}'", max_results=1)
    return str(runs[0].info.run_id) if runs else None


def _made(client: "MlflowClient", report: "Run", name: str, cell: Cell) -> str:
    tags = {f"{PIPELINE_TAG}.parent": name}
    run_id = str(client.create_run(report.info.experiment_id, run_name=name, tags=tags).info.run_id)
    for metric, value in figures_of(cell.scores).items():
        client.log_metric(run_id, metric, value)
    client.set_terminated(run_id)
    return run_id
