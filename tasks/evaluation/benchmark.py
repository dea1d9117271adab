"""Score a checkpoint on public benchmarks: data/benchmarks/*.parquet and metrics/benchmarks.json.

What was answered before is not asked again; checkpoints scored one after the other stand side by side.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.cli import one_line_errors

if TYPE_CHECKING:
    from tasks.evaluation.benchmarks.results import BenchmarkCell
    from tasks.params import BenchmarkParams, Params

PROGRAM = "python -m tasks.evaluation.benchmark"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; what a user can cause ends it with one line on stderr and code 2."""
    options = _parser().parse_args(arguments)
    with one_line_errors():
        from tasks.params import load_params  # pydantic: not for --help

        params = load_params(options.params, tuple(options.set))
        given = {"names": tuple(options.names) or None, "folder": options.data, "way": options.way}
        update = {name: value for name, value in given.items() if value is not None}
        run(options.checkpoint, params.evaluation.benchmarks.model_copy(update=update), params)


def run(folder: Path, limits: "BenchmarkParams", params: "Params") -> None:
    """Score one checkpoint.

    Raises:
        ParameterError: no benchmark is named, or one that there is not, or the window exceeds the model.
        InputError: data is missing or of another release.
        CheckpointError: the folder holds no model.
    """
    from tasks.artifacts import stage_lock, write_json
    from tasks.checkpoints import check_checkpoint
    from tasks.errors import ParameterError
    from tasks.evaluation.benchmarks.asking import exam_of
    from tasks.evaluation.benchmarks.running import check_judge, examine, plan
    from tasks.evaluation.benchmarks.summary import summarise, tracked
    from tasks.evaluation.files import BENCHMARKS
    from tasks.generation.models import open_generator
    from tasks.progress import meter
    from tasks.rewards.opening import open_judge
    from tasks.tracking import stage_run

    if not limits.names:
        raise ParameterError(f"no benchmark is named; {PROGRAM} CHECKPOINT NAME, or set evaluation.benchmarks.names")
    check_checkpoint(folder)
    planned, exam, name = plan(limits.names, limits.folder), exam_of(params, limits), folder.resolve().name
    with stage_lock(f"benchmark-{name}"), stage_run(f"benchmark-{name}", params) as tracker:
        judge = open_judge(params, f"benchmark-{name}")
        check_judge(judge, planned)
        generator = open_generator(folder, params.execution, params.threads)
        with meter("benchmark", sum(each.tasks for each in planned)) as progress:
            written = examine(folder, name, generator, planned, exam, judge, progress)
        scores = summarise(exam, params)
        write_json(BENCHMARKS, scores)
        tracker.log_metrics(tracked(scores, [name]), step=0)
        tracker.log_artifact(BENCHMARKS)
    _show([cell for cell in scores.cells if cell.checkpoint == name and cell.benchmark in limits.names])
    print(f"figures: {BENCHMARKS}; replies: {', '.join(map(str, written))}")


def _show(cells: "Sequence[BenchmarkCell]") -> None:
    for cell in cells:
        if cell.subset is None:
            gain = f", {100 * cell.gain.difference:+.1f} points over the first checkpoint" if cell.gain else ""
            print(
                f"{cell.benchmark} ({cell.way}): official {100 * cell.official:.2f}, robust {100 * cell.robust:.2f}, "
                f"avg@{cell.samples} of {cell.tasks} tasks{gain}"
            )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROGRAM, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT", help="HF model folder")
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks (evaluation.benchmarks.names)")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="holds a folder of official files for each")
    parser.add_argument("--way", choices=("truncation", "agent"), help="how an input longer than the window is read")
    parser.add_argument("--params", type=Path, default=Path("params.yaml"), metavar="FILE", help="parameter file")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override one parameter")
    return parser


if __name__ == "__main__":
    main()
