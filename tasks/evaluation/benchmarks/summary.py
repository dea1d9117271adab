"""All replies that lie there as figures side by side: metrics/benchmarks.json."""

from collections.abc import Sequence

from tasks.errors import InputError
from tasks.evaluation.benchmarks.asking import Exam
from tasks.evaluation.benchmarks.cells import Bootstrap, Scored, cells_of, scored
from tasks.evaluation.benchmarks.replies import RESULTS, read_run
from tasks.evaluation.benchmarks.results import BenchmarkRun, BenchmarkScores
from tasks.evaluation.files import BENCHMARKS
from tasks.evaluation.provenance import provenance
from tasks.params import Params


def summarise(exam: Exam, params: Params, order: Sequence[str] = ()) -> BenchmarkScores:
    """Figures of every run that was asked and judged in the way of `exam`; other ones cannot stand beside them.

    Checkpoints come in the given order, then in that of the summary before, then by name. The first is the base.

    Raises:
        InputError: a file of replies is damaged.
    """
    runs = [run for run in _runs() if _comparable(run.run, exam)]
    ranks = {name: rank for rank, name in enumerate(dict.fromkeys([*order, *_earlier()]))}
    runs.sort(key=lambda run: (run.run.benchmark, run.run.way, ranks.get(run.run.checkpoint, len(ranks))))
    evaluation = params.evaluation
    return BenchmarkScores(
        cells=tuple(cells_of(runs, Bootstrap(evaluation.bootstrap_resamples, params.seed))),
        sources={run.run.benchmark: run.run.source for run in runs},
        window=exam.window,
        max_output_tokens=exam.sampling.max_new_tokens,
        temperature=exam.sampling.temperature,
        top_p=exam.sampling.top_p,
        judge=exam.judge,
        provenance=provenance(params),
    )


def tracked(scores: BenchmarkScores, checkpoints: Sequence[str]) -> dict[str, float]:
    """The figures that MLflow shows of these checkpoints."""
    figures: dict[str, float] = {}
    for cell in scores.cells:
        if cell.checkpoint in checkpoints:
            place = f"{cell.benchmark}/{cell.way}/{cell.checkpoint}/{cell.subset or 'all'}"
            figures |= {f"official/{place}": cell.official, f"robust/{place}": cell.robust}
            if cell.subset is None:
                figures[f"truncated/{place}"] = cell.truncated_share
                figures[f"unanswered/{place}"] = cell.unanswered_share
                figures[f"unscored/{place}"] = cell.unscored_share
    return figures


def _runs() -> list[Scored]:
    return [scored(*read_run(path)) for path in sorted(RESULTS.glob("*.parquet"))]


def _comparable(run: BenchmarkRun, exam: Exam) -> bool:
    sampling = exam.sampling
    return (run.window, run.max_output_tokens, run.temperature, run.top_p, run.judge) == (
        exam.window, sampling.max_new_tokens, sampling.temperature, sampling.top_p, exam.judge
    )  # fmt: skip


def _earlier() -> list[str]:
    """Checkpoints as the summary before has them."""
    if not BENCHMARKS.is_file():
        return []
    try:
        scores = BenchmarkScores.model_validate_json(BENCHMARKS.read_bytes())
    except ValueError as error:
        raise InputError(f"{BENCHMARKS} is damaged ({error}); remove it") from error
    return [cell.checkpoint for cell in scores.cells]
