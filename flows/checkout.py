"""Where a pipeline run works: in the checkout itself, or in a copy of it when its parameters differ.

A copy (.work/runs/NAME) holds the checkout's files, tracked and new, with the run's own params.yaml. It
shares the DVC cache, so that unchanged stages are restored instead of run, the MLflow store, so that runs can be
compared, and what a writer model has answered, so that it is not asked twice.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from flows.request import PipelineRequest
from tasks.errors import InputError
from tasks.params import load_params

RUNS = Path(".work/runs")
ANSWERED = Path(".work/writer")  # as tasks/synthesis/synthesize.py names it
SQLITE = "sqlite:///"


class Run(BaseModel):
    """A pipeline run: its name (MLflow's parent run carries it), its folder, and what was asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    folder: Path
    stages: tuple[str, ...] = ()
    force: bool = False

    def wants(self, stage: str) -> bool:
        """Whether the stage was asked for; a request that names none wants all."""
        return not self.stages or stage in self.stages


def open_run(request: PipelineRequest, name: str) -> Run:
    """Return where the request runs; a request with parameters of its own gets a copy of the checkout.

    Raises:
        InputError: the copy exists already or the checkout is no git repository.
    """
    here = Path.cwd()
    folder = here if request.in_place else copy_checkout(here, here / RUNS / name)
    if not request.in_place:
        _write_params(request, here, folder)
    return Run(name=name, folder=folder, stages=request.stages, force=request.force)


def copy_checkout(source: Path, target: Path) -> Path:
    """Copy the files git knows or would add, and let DVC in the copy use the cache of the source."""
    if target.exists():
        raise InputError(f"{target} exists; remove it or choose another run name")
    for name in _files(source):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / name, target / name)
    cache = _command(source, sys.executable, "-m", "dvc", "cache", "dir").strip()
    settings = f"[core]\n    no_scm = true\n[cache]\n    dir = {source / cache}\n"
    (target / ".dvc" / "config.local").write_text(settings, "utf-8")
    _share(source / ANSWERED, target / ANSWERED)
    return target


def _share(folder: Path, link: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(folder)


def _write_params(request: PipelineRequest, here: Path, folder: Path) -> None:
    tree: dict[str, Any] = load_params(request.params, request.overrides).model_dump(mode="json")
    uri = tree["tracking"]["uri"]
    if uri.startswith(SQLITE):
        tree["tracking"]["uri"] = SQLITE + str(here / uri.removeprefix(SQLITE))
    documents = tree["corpus"]["folder"]
    if documents is not None and "://" not in documents:
        tree["corpus"]["folder"] = str(here / documents)
    for section, key in (
        (tree, "base_model"),
        (tree["synthesis"]["writer"], "model"),
        (tree["filtering"], "benchmarks"),
    ):
        _point_back(section, key, here, folder)
    (folder / "params.yaml").write_text(yaml.safe_dump(tree, sort_keys=False), "utf-8")


def _point_back(section: dict[str, Any], key: str, here: Path, folder: Path) -> None:
    """What git ignores, such as a fetched model, is not in the copy: its parameters name where it lies."""
    place = section.get(key)
    if place and (here / place).exists() and not (folder / place).exists():
        section[key] = str(here / place)


def _files(source: Path) -> list[str]:
    listed = _command(source, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = [name for name in listed.split("\0") if (source / name).is_file() and name]
    if not names:
        raise InputError(f"{source} holds no file that git would track; run overrides from a checkout")
    return names


def _command(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(
            f"{' '.join(command)} failed in {folder}: {done.stderr.strip()}; "
            "a run with parameters of its own needs a git checkout with DVC"
        )
    return done.stdout
