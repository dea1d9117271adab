"""What a user may ask of the ablation: the options of `python -m flows.ablation`. Imports neither Prefect nor DVC."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tasks.ablation.ladder import ladder, overrides
from tasks.cli import one_line_errors
from tasks.errors import ParameterError, PipelineError
from tasks.params import load_params

SEEDS = (0, 1, 2)
PARALLEL = 2
PARAMS = Path("params.yaml")


class AblationRequest(BaseModel):
    """Which cells: every variant, or those named, with every seed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seeds: tuple[int, ...] = Field(SEEDS, description="Seeds of training, at least one")
    variants: tuple[str, ...] = Field((), description="Only these variants; none means all")
    overrides: tuple[str, ...] = Field((), description="key.sub=value for all cells and what they start from")
    parallel: int = Field(PARALLEL, ge=1, description="Cells at a time, one thread each")

    @model_validator(mode="after")
    def possible(self) -> Self:
        """Refuse unknown variants and impossible parameters before any work."""
        try:
            self.cells()
        except PipelineError as error:
            raise ValueError(str(error)) from error
        return self

    def cells(self) -> list[tuple[str, int]]:
        """Variant and seed of every cell asked for, seed by seed: what a kill leaves is whole ladders.

        Raises:
            ParameterError: a variant is unknown, a seed impossible, or there is none.
        """
        variants = ladder(load_params(PARAMS, self.overrides).rl)
        unknown = [name for name in self.variants if name not in variants]
        if unknown:
            raise ParameterError(f"unknown variant {', '.join(unknown)}; known: {', '.join(variants)}")
        names = [name for name in variants if name in (self.variants or variants)]
        cells = [(name, seed) for seed in dict.fromkeys(self.seeds) for name in names]
        if not cells:
            raise ParameterError("no seed was given; name at least one")
        for name, seed in cells:
            load_params(PARAMS, (*self.overrides, *overrides(variants, name, seed)))
        return cells


def parse_ablation(arguments: Sequence[str] | None = None) -> AblationRequest:
    """Read the command line; a request that cannot be met ends it with one line on stderr and code 2."""
    options = _parser().parse_args(arguments)
    fields = {
        "seeds": tuple(options.seed or SEEDS),
        "variants": tuple(options.variant),
        "overrides": tuple(options.set),
        "parallel": options.parallel,
    }
    with one_line_errors():
        AblationRequest.model_construct(**fields).cells()
    return AblationRequest.model_validate(fields)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m flows.ablation",
        description="Train the variants of the RL recipe from one start, each with several seeds, and compare them.",
        epilog="Cells that are done are not done again; what the checkout's code or parameters change starts anew.",
    )
    add = parser.add_argument
    add("--seed", type=int, action="append", default=[], metavar="N", help="a seed (repeatable; 0, 1 and 2)")
    add("--variant", action="append", default=[], metavar="NAME", help="only this variant (repeatable)")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="override a parameter everywhere (repeatable)")
    add("--parallel", type=_positive, default=PARALLEL, metavar="N", help=f"cells at a time ({PARALLEL})")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is below 1")
    return number
