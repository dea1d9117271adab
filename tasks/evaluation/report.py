"""Write reports/report.html, report.md and their pictures from the metrics of a run, and show the scores."""

from pathlib import Path
from typing import TYPE_CHECKING

from tasks.artifacts import stage_lock, write_bytes
from tasks.cli import stage_command
from tasks.evaluation import tables
from tasks.evaluation.provenance import without_password
from tasks.evaluation.sources import Sources, read_sources
from tasks.evaluation.tables import Entry, Grid
from tasks.params import Params
from tasks.tracking import stage_run

if TYPE_CHECKING:
    from rich.table import Table

FOLDER = Path("reports")
HTML, MARKDOWN = FOLDER / "report.html", FOLDER / "report.md"
LOG_WIDTH = 120  # characters, where the output is no terminal


def run(params: Params) -> None:
    """The report stage."""
    from tasks.evaluation.pages import html_page, markdown_page
    from tasks.evaluation.sections import compose  # matplotlib: not for --help

    with stage_lock("report"), stage_run("report", params) as tracker:
        sources = read_sources(params)
        report = compose(sources, params)
        pages = {HTML: html_page(report), MARKDOWN: markdown_page(report)}
        pictures = {FOLDER / picture.file: picture.content for picture in report.pictures}
        for path, content in {**pages, **pictures}.items():
            write_bytes(path, content if isinstance(content, bytes) else content.encode("utf-8"))
            tracker.log_artifact(path)
    show(sources, params)


def show(sources: Sources, params: Params) -> None:
    """Print the scores and where to look."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console = Console(width=LOG_WIDTH)
    evaluation = sources.evaluation
    console.print(_terminal_table(tables.by_length(evaluation), f"held-out avg@{evaluation.samples}, %"))
    console.print(_terminal_table(tables.long_documents(evaluation), f"longer than {evaluation.window} tokens, %"))
    console.print(f"report   {HTML} (curves, examples), {MARKDOWN}")
    console.print(f"MLflow   mlflow ui --backend-store-uri {without_password(params.tracking.uri)}")
    console.print("Prefect  prefect server start, then http://127.0.0.1:4200")


def _terminal_table(grid: Grid, title: str) -> "Table":
    from rich.table import Table

    shown = Table(title=title, title_justify="left")
    for position, name in enumerate(grid.header):
        shown.add_column(name, justify="right" if position else "left")
    for row in grid.rows:
        shown.add_row(*(_terminal_entry(entry) for entry in row))
    return shown


def _terminal_entry(entry: Entry) -> str:
    from rich.markup import escape

    return f"{entry.value}\n[dim]{escape(entry.detail)}[/]" if entry.detail else entry.value


if __name__ == "__main__":
    stage_command(__doc__ or "", None, run)
