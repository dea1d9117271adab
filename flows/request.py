"""What a user may ask of a run: the form in the Prefect UI, the options of `python -m flows.post_training`.

Imports neither Prefect nor DVC, so that `--help` and refusals are instant.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from tasks.cli import one_line_errors
from tasks.errors import InputError, PipelineError
from tasks.params import load_params


class PipelineRequest(BaseModel):
    """One run of the pipeline. With nothing changed: the whole recipe on params.yaml, stale stages only."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    params: Path = Field(Path("params.yaml"), description="Parameter file; another one runs in a copy")
    overrides: tuple[str, ...] = Field((), description="key.sub=value; any makes the run use a copy")
    stages: tuple[str, ...] = Field((), description="Only these DVC stages; none means all")
    force: bool = Field(False, description="Run stages even when nothing they depend on has changed")

    @model_validator(mode="after")
    def possible(self) -> Self:
        """Refuse unknown stages and impossible parameters before any work."""
        try:
            load_params(self.params, self.overrides)
            _check_stages(self.stages)
        except PipelineError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def in_place(self) -> bool:
        """Whether the run works on the checkout's own params.yaml."""
        return not self.overrides and self.params == Path("params.yaml")


def stage_names(path: Path) -> tuple[str, ...]:
    """Names of all stages of a dvc.yaml, `stage@key` for each key of a foreach.

    Raises:
        InputError: the file is missing or holds no stages.
    """
    try:
        tree = yaml.safe_load(path.read_text("utf-8"))
        stages: Mapping[str, Any] = tree["stages"]
    except (OSError, KeyError, TypeError, yaml.YAMLError) as error:
        raise InputError(f"{path} holds no stages ({error}); run from the checkout") from error
    return tuple(name for stage, body in stages.items() for name in _expanded(stage, body))


def parse_request(arguments: Sequence[str] | None = None) -> PipelineRequest:
    """Read the command line; a request that cannot be met ends it with one line on stderr and code 2."""
    options = _parser().parse_args(arguments)
    with one_line_errors():
        load_params(options.params, tuple(options.set))
        _check_stages(options.stage)
    return PipelineRequest(
        params=options.params, overrides=tuple(options.set), stages=tuple(options.stage), force=options.force
    )


def _check_stages(stages: Sequence[str]) -> None:
    known = stage_names(Path("dvc.yaml")) if stages else ()
    unknown = [stage for stage in stages if stage not in known]
    if unknown:
        raise InputError(f"unknown stage {', '.join(unknown)}; known: {', '.join(known)}")


def _expanded(stage: str, body: Mapping[str, Any]) -> list[str]:
    return [f"{stage}@{key}" for key in body["foreach"]] if "foreach" in body else [stage]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m flows.post_training",
        description="Run the whole recipe: documents in, a long-context reasoner with a managed memory out.",
        epilog="Stages that are up to date are skipped. With --set or --params the run uses .work/runs/NAME.",
    )
    add = parser.add_argument
    add("--params", type=Path, default=Path("params.yaml"), metavar="FILE", help="parameter file")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="override a parameter (repeatable)")
    add("--stage", action="append", default=[], metavar="STAGE", help="only this stage (repeatable)")
    add("--force", action="store_true", help="run stages even when they are up to date")
    return parser
