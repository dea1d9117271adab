"""Where a checkpoint comes from: written beside it by the stage that made it, resolved back to the documents.

`python -m tasks.lineage checkpoints/stage4` prints checkpoint → parents → curated data → documents, and says
of every file that still exists whether its content is what the stage read. It exits with 1 when one changed.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from tasks.artifacts import read_items, sha256_of, stream_documents, write_json
from tasks.cli import one_line_errors
from tasks.errors import CheckpointError, InputError
from tasks.params import Params
from tasks.records import Document, Item
from tasks.tracking import git_commit

if TYPE_CHECKING:
    from rich.tree import Tree

FILE = "lineage.json"
DOCUMENTS = Path("data/corpus/documents.parquet")


class Source(BaseModel):
    """A file or folder a stage read: its path in the checkout and its content hash before the run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Path
    sha256: str


class Lineage(BaseModel):
    """What `lineage.json` holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    parents: tuple[Source, ...]
    inputs: dict[str, Source]
    params: dict[str, Any]
    git_commit: str | None
    run_id: str | None


def write_lineage(
    folder: Path,
    *,
    stage: str,
    inputs: Mapping[str, Path],
    input_hashes: Mapping[str, str],
    params: Params,
    parents: Sequence[Path],
    run_id: str | None,
) -> None:
    """Write `lineage.json` into a checkpoint folder.

    `input_hashes` holds the content hash of each input, by the same names, taken before the run: afterwards a
    file may already be another. A parent that is also an input takes the hash from there.

    Raises:
        InputError: an input has no hash.
    """
    missing = sorted(set(inputs) - set(input_hashes))
    if missing:
        raise InputError(f"no hash was taken of the inputs {', '.join(missing)} of {stage}; take it before the run")
    sources = {name: Source(path=_in_checkout(path), sha256=input_hashes[name]) for name, path in inputs.items()}
    lineage = Lineage(
        stage=stage,
        parents=tuple(_parent(path, sources) for path in parents),
        inputs=sources,
        params=params.model_dump(mode="json", exclude={"tracking"}),  # a store's address may hold a password
        git_commit=git_commit(),
        run_id=run_id,
    )
    write_json(folder / FILE, lineage)


def read_lineage(folder: Path) -> Lineage | None:
    """Read a checkpoint's lineage; None for a model that no stage made, the base.

    Raises:
        CheckpointError: there is no such folder, or its lineage.json is damaged.
    """
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is no checkpoint folder; name one such as checkpoints/stage4")
    file = folder / FILE
    if not file.is_file():
        return None
    try:
        return Lineage.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise CheckpointError(f"{file} is damaged: {error.errors()[0]['msg']}; run its stage again") from error


@dataclass
class _Trace:
    """What resolving has met so far."""

    seen: set[Path] = field(default_factory=set)
    changed: list[Path] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)


def resolve(checkpoint: Path) -> tuple["Tree", list[Path]]:
    """Return the tree of everything a checkpoint was made from, and the paths whose content changed since."""
    from rich.tree import Tree

    trace = _Trace()
    root = Tree(f"[bold]{checkpoint}[/]")
    _add_checkpoint(root, checkpoint, trace)
    _add_documents(root, trace.items)
    return root, trace.changed


def _add_checkpoint(branch: "Tree", folder: Path, trace: _Trace) -> None:
    if folder in trace.seen:
        branch.add("[dim]as above[/]")
        return
    trace.seen.add(folder)
    lineage = read_lineage(folder) if folder.is_dir() else None
    if lineage is None:
        branch.add("no lineage.json: no stage of this pipeline made it")
        return
    branch.add(f"made by {lineage.stage}, commit {lineage.git_commit or 'unknown'}, run {lineage.run_id or 'none'}")
    parents = {parent.path for parent in lineage.parents}
    for name, source in lineage.inputs.items():
        if source.path not in parents:
            _add_data(branch.add(f"{name}: {_described(source, trace)}"), source.path, trace)
    for parent in lineage.parents:
        _add_checkpoint(branch.add(f"from {_described(parent, trace)}"), parent.path, trace)


def _described(source: Source, trace: _Trace) -> str:
    text = f"[bold]{source.path}[/] [dim]{source.sha256[:12]}[/]"
    if not source.path.exists():
        return f"{text} [yellow]no longer here[/]"
    if sha256_of(source.path) == source.sha256:
        return f"{text} [green]unchanged[/]"
    if source.path not in trace.changed:
        trace.changed.append(source.path)
    return f"{text} [red]changed since[/]"


def _add_data(branch: "Tree", path: Path, trace: _Trace) -> None:
    if path.suffix != ".parquet" or not path.is_file():
        return
    try:
        items = read_items(path)
    except InputError:  # another table
        return
    makers = Counter(item.question.generator for item in items)
    counts = ", ".join(f"{count} {maker}" for maker, count in sorted(makers.items()))
    branch.add(f"{len(items)} questions ({counts}), {len(_uses(items))} evidence documents")
    trace.items.extend(items)


def _uses(items: Sequence[Item]) -> Counter[str]:
    """How many different questions each evidence document answers."""
    questions = {item.question.id: item.question for item in items}
    return Counter(document for question in questions.values() for document in question.document_ids)


def _add_documents(root: "Tree", items: Sequence[Item]) -> None:
    uses = _uses(items)
    known = _documents(uses)
    branch = root.add(f"[bold]documents[/]: {len(uses)}")
    for identifier, count in sorted(uses.items()):
        document = known.get(identifier)
        what = f"{document.title}, {document.split}, {document.source}" if document else f"not in {DOCUMENTS}"
        branch.add(f"{identifier}: {what} [dim]({count} questions)[/]")


def _documents(names: Collection[str]) -> dict[str, Document]:
    """Those of these ids that are in the corpus now."""
    found = stream_documents(DOCUMENTS) if DOCUMENTS.is_file() else ()
    return {document.id: document for document in found if document.id in names}


def _parent(path: Path, inputs: Mapping[str, Source]) -> Source:
    place = _in_checkout(path)
    known = [source for source in inputs.values() if source.path == place]
    return known[0] if known else Source(path=place, sha256=sha256_of(path))


def _in_checkout(path: Path) -> Path:
    """A path that means the same on another machine, where there is one."""
    absolute = path.resolve()
    return absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else absolute


def main(argv: Sequence[str] | None = None) -> int:
    """Print a checkpoint's tree. Returns 1 when the content of something in it changed since."""
    parser = argparse.ArgumentParser(
        prog="python -m tasks.lineage",
        description="Resolve a checkpoint back to the documents of its questions.",
    )
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT", help="a folder such as checkpoints/stage4")
    options = parser.parse_args(argv)
    with one_line_errors():
        from rich.console import Console

        read_lineage(options.checkpoint)
        tree, changed = resolve(options.checkpoint)
        Console(soft_wrap=True).print(tree)
        if changed:
            print(f"changed since: {', '.join(str(path) for path in changed)}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
