"""From replies to figures: a cell per checkpoint, benchmark, way of reading and subset.

Axes: N tasks, K samples of each. The denominator is fixed: a reply that went unscored is 0.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.evaluation.benchmarks.base import BETWEEN_SUBSETS
from tasks.evaluation.benchmarks.results import BenchmarkCell, BenchmarkReply, BenchmarkRun
from tasks.evaluation.metrics import paired_bootstrap, share
from tasks.evaluation.scores import Interval
from tasks.records import Finish

Group = Sequence[BenchmarkReply]  # the samples of a task, in order


@dataclass(frozen=True)
class Bootstrap:
    """How intervals are drawn; each from the same seed, so that none depends on another."""

    resamples: int
    seed: int


@dataclass(frozen=True)
class Scored:
    """A run and its replies, by task."""

    run: BenchmarkRun
    groups: Mapping[str, Group]

    def of(self, subset: str | None) -> Mapping[str, Group]:
        """Tasks of a subset; None takes all."""
        return {name: group for name, group in self.groups.items() if subset in (None, *_subsets(group))}

    def subsets(self) -> list[str | None]:
        """The whole, then all subsets by name."""
        return [None, *sorted({subset for group in self.groups.values() for subset in _subsets(group)})]


def scored(run: BenchmarkRun, replies: Sequence[BenchmarkReply]) -> Scored:
    """Sort replies under their tasks."""
    groups: dict[str, list[BenchmarkReply]] = defaultdict(list)
    for reply in replies:
        groups[reply.task_id].append(reply)
    return Scored(run, groups)


def cells_of(runs: Sequence[Scored], bootstrap: Bootstrap) -> list[BenchmarkCell]:
    """All cells. The first run of a benchmark and way is what the others of it are compared with."""
    first: dict[tuple[str, str], Scored] = {}
    cells = []
    for run in runs:
        base = first.setdefault((run.run.benchmark, run.run.way), run)
        cells += [_cell(run, base, subset, bootstrap) for subset in run.subsets()]
    return cells


def _cell(run: Scored, base: Scored, subset: str | None, bootstrap: Bootstrap) -> BenchmarkCell:
    groups = run.of(subset)
    replies = [reply for group in groups.values() for reply in group]
    return BenchmarkCell(
        benchmark=run.run.benchmark,
        checkpoint=run.run.checkpoint,
        way=run.run.way,
        subset=subset,
        tasks=len(groups),
        samples=run.run.samples,
        official=_mean([_mean([reply.official or 0.0 for reply in group]) for group in groups.values()]),
        robust=_mean(_averages(groups)),
        first=_mean([group[0].robust or 0.0 for group in groups.values()]),
        best=_mean([max(reply.robust or 0.0 for reply in group) for group in groups.values()]),
        unscored_share=share([reply.official is None or reply.robust is None for reply in replies]),
        unanswered_share=share([not reply.answered for reply in replies]),
        truncated_share=share([reply.finish is Finish.TRUNCATED for reply in replies]),
        cut_share=share([reply.cut for reply in replies]),
        output_tokens=_mean([reply.output_tokens for reply in replies]),
        gain=None if run is base else _gain(base.of(subset), groups, bootstrap),
    )


def _gain(base: Mapping[str, Group], groups: Mapping[str, Group], bootstrap: Bootstrap) -> Interval | None:
    """Over the tasks of both; None where they share none."""
    shared = [name for name in groups if name in base]
    base_N, model_N = (np.array(_averages({name: table[name] for name in shared})) for table in (base, groups))
    strata_N = np.zeros(len(shared), dtype=np.int64)
    return paired_bootstrap(base_N, model_N, strata_N, bootstrap.resamples, np.random.default_rng(bootstrap.seed))


def _averages(groups: Mapping[str, Group]) -> list[float]:
    """avg@k of each task by the robust score."""
    return [_mean([reply.robust or 0.0 for reply in group]) for group in groups.values()]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _subsets(group: Group) -> list[str]:
    return [part for part in group[0].subset.split(BETWEEN_SUBSETS) if part]
