"""What a run of data synthesis came to, as Markdown: files, documents, questions, rejections, the funnel.

`python infra/real_input/figures.py FOLDER` reads FOLDER/metrics; a stage that did not finish has no figures.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

STAGES = {
    "ingest": ("files_read", "files_left_out", "documents"),
    "synthesize-knowledge_graph": ("questions", "rejections"),
    "synthesize-tables": ("questions", "rejections"),
    "synthesize-self_play": ("questions", "rejections", "rounds"),
    "balance": ("before", "after"),
}


def figures(folder: Path) -> Iterator[str]:
    """Lines of Markdown."""
    yield f"### {folder.name}\n"
    for stage, keys in STAGES.items():
        if stage == "balance":
            yield from funnel(folder / "metrics/verify.json")
        path = folder / f"metrics/{stage}.json"
        if not path.exists():
            yield f"{stage}: did not finish\n"
            continue
        metrics = json.loads(path.read_text("utf-8"))
        for key in keys:
            counted = ", ".join(f"{name} {count}" for name, count in leaves(metrics.get(key, {})))
            yield f"{stage}, {key.replace('_', ' ')}: {counted or 'none'}\n"


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """A nested value as pairs of a path and what stands there."""
    if isinstance(tree, Mapping):
        for key, inner in tree.items():
            yield from leaves(inner, f"{path}/{key}" if path else str(key))
    elif isinstance(tree, list) and any(isinstance(inner, Mapping) for inner in tree):
        for number, inner in enumerate(tree, 1):
            yield from leaves(inner, f"{path}/{number}" if path else str(number))
    else:
        yield path, tree


def funnel(path: Path) -> Iterator[str]:
    """A table with a row a split and domain and a column an outcome."""
    if not path.exists():
        yield "verify: did not finish\n"
        return
    rows = json.loads(path.read_text("utf-8"))["rows"]
    outcomes = list(dict.fromkeys(row["outcome"] for row in rows))
    counts = Counter[tuple[str, str, str]]()
    for row in rows:
        counts[row["split"], row["domain"], row["outcome"]] += row["count"]
    yield "| split | domain | " + " | ".join(name.replace("_", " ") for name in outcomes) + " |"
    yield "|---|---|" + "---:|" * len(outcomes)
    for split, domain in dict.fromkeys((row["split"], row["domain"]) for row in rows):
        shown = " | ".join(str(counts[split, domain, outcome]) for outcome in outcomes)
        yield f"| {split} | {domain.replace('_', ' ')} | {shown} |"
    yield ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    print("\n".join(figures(parser.parse_args().folder)))
