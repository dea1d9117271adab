"""What a stage leaves behind, shown in the Prefect UI: its metrics as a table, its report as a page."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from tasks.records import Record


class Metric(Record):
    """One row of the table."""

    metric: str
    value: str


def publish(stage: str, folder: Path) -> None:
    """Create artifacts from the stage's metrics files and reports, as dvc.lock lists them."""
    key = re.sub(r"[^a-z0-9]+", "-", stage.lower())
    for path in stage_outputs(stage, folder):
        if path.suffix == ".json" and path.parent.name == "metrics":
            rows = [row.model_dump() for row in metric_rows(json.loads((folder / path).read_text("utf-8")))]
            create_table_artifact(key=f"metrics-{key}", table=rows, description=f"{path}")
        for page in sorted((folder / path).glob("*.md")) if path.parts[0] == "reports" else ():
            create_markdown_artifact(key=f"page-{page.stem}", markdown=page.read_text("utf-8"))
        for page in sorted((folder / path).glob("*.html")) if path.parts[0] == "reports" else ():
            create_link_artifact(key=f"link-{page.stem}", link=page.resolve().as_uri(), link_text=page.name)


def stage_outputs(stage: str, folder: Path) -> list[Path]:
    """Paths of the stage's outputs as recorded in dvc.lock, where names are already expanded."""
    lock = yaml.safe_load((folder / "dvc.lock").read_text("utf-8"))
    return [Path(out["path"]) for out in lock["stages"].get(stage, {}).get("outs", [])]


def metric_rows(tree: Any, prefix: str = "") -> Iterator[Metric]:
    """Flatten nested metrics: `{"a": {"b": 1}}` becomes the row a.b = 1; lists (curves) are left out."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from metric_rows(value, f"{prefix}.{name}" if prefix else str(name))
    elif isinstance(tree, float):
        yield Metric(metric=prefix, value=f"{tree:.4g}")
    elif not isinstance(tree, list):
        yield Metric(metric=prefix, value=str(tree))
