"""DVC experiments that start from one commit: a checkout of their own, a clone a cell, one experiment each.

The start is a copy of the checkout (flows/checkout.py) made a git repository whose only commit holds code, parameters
and dvc.lock: the baseline of all experiments, `dvc exp show` there lists them. A cell is a clone of it with its own
params.yaml; it is reproduced stage by stage, saved with `dvc exp save`, and its experiment is pushed to the start.
docs/decisions/0017-ablations.md says why `dvc exp run` is not used.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from flows.checkout import RUNS, Run, open_run
from flows.request import PipelineRequest
from tasks.errors import InputError
from tasks.params import load_params

DECIDES = ("dvc.yaml", "params.yaml", "documents", "infra/ablation", "models", "tasks")  # a cell's result
IDENTITY = ("-c", "user.name=ablation", "-c", "user.email=ablation@localhost", "-c", "commit.gpgsign=false")
FIGURES = "metrics/ablation.json"  # what `dvc exp show` lists of a cell
CLONES = Path(".work/cells")


@dataclass(frozen=True)
class Start:
    """Where all cells begin. `name` is also that of MLflow's parent run."""

    name: str
    folder: Path

    def run(self) -> Run:
        """The start as a place where stages run."""
        return Run(name=self.name, folder=self.folder)

    @property
    def frozen(self) -> bool:
        """Whether the baseline of the experiments is committed."""
        return _output(self.folder, "git", "rev-list", "--all", "--count").strip() != "0"

    @property
    def results(self) -> Path:
        """What finished cells leave behind."""
        return self.folder / "cells"

    def result(self, cell: str) -> Path:
        """It exists exactly when the cell is done."""
        return self.results / cell


def start_name(overrides: Sequence[str]) -> str:
    """A name by content: other code, parameters or documents are another start."""
    digest = hashlib.sha256("\0".join(overrides).encode())
    listed = _output(Path.cwd(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *DECIDES)
    for name in sorted(listed.split("\0")):
        if name and Path(name).is_file():
            digest.update(f"\0{name}\0".encode() + hashlib.sha256(Path(name).read_bytes()).digest())
    return f"ablation-{digest.hexdigest()[:10]}"


def open_start(overrides: Sequence[str], stages: Path) -> Start:
    """The start of this checkout's content, made when it does not exist; a half-made one is made again.

    Its pipeline is the checkout's, with the stages of the file `stages` in place of `evaluate` and `report`, which want
    the whole recipe.
    """
    name = start_name(overrides)
    folder = (Path.cwd() / RUNS / name).resolve()
    if not (folder / ".git/HEAD").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        seed = f"seed={load_params(overrides=tuple(overrides)).seed}"  # without an override there would be no copy
        open_run(PipelineRequest(overrides=(*overrides, seed)), name)
        _add_stages(folder, stages)
        _ignore_results(folder)
        config = folder / ".dvc/config.local"
        config.write_text(config.read_text("utf-8").replace("[core]\n    no_scm = true\n", ""), "utf-8")
        _output(folder, "git", "init", "--quiet")
    return Start(name, folder)


def freeze(start: Start) -> None:
    """Commit the start with its dvc.lock: the baseline."""
    _output(start.folder, "git", "add", "--all")
    _output(start.folder, "git", *IDENTITY, "commit", "--quiet", "--message", "Start of the ablation")


def open_cell(start: Start, cell: str, overrides: Sequence[str], data: Sequence[Path]) -> Run:
    """A clone of the start with the cell's parameters and the `data` its stages read; one that is there goes on."""
    folder = start.folder / CLONES / cell
    if not folder.is_dir():
        half = folder.with_name(f".{folder.name}")
        shutil.rmtree(half, ignore_errors=True)
        half.parent.mkdir(parents=True, exist_ok=True)
        _output(start.folder, "git", "clone", "--quiet", str(start.folder), str(half))
        for path in (Path(".dvc/config.local"), *data):
            (half / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(start.folder / path, half / path)
        tree = load_params(start.folder / "params.yaml", tuple(overrides)).model_dump(mode="json")
        (half / "params.yaml").write_text(yaml.safe_dump(tree, sort_keys=False), "utf-8")
        half.rename(folder)
    return Run(name=f"{start.name}/{cell}", folder=folder)


def save_cell(start: Start, cell: str, run: Run, stages: Sequence[str], results: Mapping[Path, str]) -> None:
    """Save the experiment, hand it to the start, keep the result files there under new names, drop the clone."""
    name = cell.replace("/", "-")
    command = (sys.executable, "-m", "dvc", "exp", "save", "--force", "--name", name, "--include-untracked", FIGURES)
    _output(run.folder, *command, *stages)  # without stages DVC wants the inputs of all
    reference = _output(run.folder, "git", "for-each-ref", "--format=%(refname)", "refs/exps").split()
    (saved,) = [line for line in reference if line.endswith(f"/{name}")]
    _output(run.folder, "git", "push", "--quiet", "--force", "origin", saved)
    result = start.result(cell)
    half = result.with_name(f".{result.name}")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    for path, kept in results.items():
        shutil.copy2(run.folder / path, half / kept)
    half.rename(result)
    shutil.rmtree(run.folder)


def _add_stages(folder: Path, stages: Path) -> None:
    pipeline = yaml.safe_load((folder / "dvc.yaml").read_text("utf-8"))
    added = yaml.safe_load((folder / stages).read_text("utf-8"))["stages"]
    kept = {name: body for name, body in pipeline["stages"].items() if name not in ("evaluate", "report")}
    tree = {**pipeline, "stages": {**kept, **added}}
    (folder / "dvc.yaml").write_text(yaml.safe_dump(tree, sort_keys=False), "utf-8")


def _ignore_results(folder: Path) -> None:
    """As in the checkout, but for the figures that experiments are compared by, and `cells/`, which DVC follows."""
    path = folder / ".gitignore"
    lines = [line for line in path.read_text("utf-8").splitlines() if line != "/metrics/"]
    path.write_text("\n".join([*lines, "/metrics/*", f"!/{FIGURES}", "/cells/", ""]), "utf-8")


def _output(folder: Path, *command: str) -> str:
    """What a command of git or DVC prints.

    Raises:
        InputError: it failed; its message is in the error.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"{' '.join(command)} failed in {folder}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
