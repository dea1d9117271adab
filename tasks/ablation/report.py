"""Compare all cells that are done: reports/ablation.md, reports/ablation.html, and the cells' places in MLflow."""

from pathlib import Path

from tasks.ablation.cells import CELLS, read_cells
from tasks.ablation.ladder import ladder
from tasks.ablation.results import results_of
from tasks.artifacts import stage_lock, write_text
from tasks.cli import stage_command
from tasks.params import Params
from tasks.tracking import stage_run

MARKDOWN = Path("reports/ablation.md")
HTML = Path("reports/ablation.html")


def run(params: Params) -> None:
    """The ablation's last stage."""
    from mlflow import MlflowClient

    from tasks.ablation import charts  # matplotlib: not for --help
    from tasks.ablation.pages import html_page, markdown_page
    from tasks.ablation.tracking import place_cells

    variants = ladder(params.rl)
    with stage_lock("ablation-report"), stage_run("ablation-report", params) as tracker:
        cells = read_cells(CELLS, list(variants))
        results = results_of(cells, variants, params.evaluation.bootstrap_resamples, params.seed)
        pictures = (charts.scores(results), charts.differences(results), charts.training(cells, results))
        page = markdown_page(results, params.evaluation.samples)
        write_text(MARKDOWN, page)
        write_text(HTML, html_page(results, params.evaluation.samples, pictures))
        tracker.log_summary({f"average/{row.variant.name}": sum(row.means) / len(row.means) for row in results.rows})
        tracker.log_artifact(MARKDOWN)
        tracker.log_artifact(HTML)
        if tracker.run_id is not None:
            place_cells(MlflowClient(tracking_uri=params.tracking.uri), tracker.run_id, cells)
    print(page)


if __name__ == "__main__":
    stage_command(__doc__ or "", None, run)
