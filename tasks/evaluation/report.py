"""Write reports/report.md and reports/report.html from the metrics of a run, and show the scores."""

from pathlib import Path
from typing import TYPE_CHECKING

from tasks.artifacts import stage_lock, write_bytes, write_text
from tasks.cli import stage_command
from tasks.evaluation import files, tables
from tasks.evaluation.sources import Sources, read_sources
from tasks.evaluation.tables import Entry, Grid
from tasks.params import Params
from tasks.tracking import stage_run

if TYPE_CHECKING:
    from rich.table import Table

MARKDOWN = Path("reports/report.md")
HTML = Path("reports/report.html")
PICTURE = HTML.with_name(files.PICTURE.name)  # beside the Markdown, which links it
LOG_WIDTH = 120  # characters, where the output is no terminal


def run(params: Params) -> None:
    """The report stage."""
    from tasks.evaluation.pages import html_page, markdown_page  # matplotlib: not for --help

    with stage_lock("report"), stage_run("report", params) as tracker:
        sources = read_sources()
        write_text(HTML, html_page(sources, params))
        write_text(MARKDOWN, markdown_page(sources, params))
        write_bytes(PICTURE, sources.picture)
        tracker.log_artifact(HTML)
        tracker.log_artifact(MARKDOWN)
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
    console.print(f"MLflow   mlflow ui --backend-store-uri {params.tracking.uri}")
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
