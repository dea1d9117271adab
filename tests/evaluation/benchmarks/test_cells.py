"""Figures of replies, by hand: a fixed denominator, subsets, and gains over the first checkpoint."""

import pytest

from tasks.evaluation.benchmarks.cells import Bootstrap, Scored, cells_of, scored
from tasks.evaluation.benchmarks.results import BenchmarkReply, BenchmarkRun
from tasks.records import Finish

RUN = BenchmarkRun(
    benchmark="b", checkpoint="base", way="truncation", checkpoint_sha256="0", source="s", samples=2, window=8,
    max_output_tokens=4, temperature=0.7, top_p=0.95, judge=None,
)  # fmt: skip
BOOTSTRAP = Bootstrap(200, seed=0)


def reply(
    name: str, sample: int, official: float | None, robust: float | None, subset: str = "", finish: str = "finished"
) -> BenchmarkReply:
    return BenchmarkReply(
        benchmark="b", checkpoint="base", way="truncation", task_id=name, subset=subset, sample=sample,
        official=official, robust=robust, answered=robust is not None, finish=Finish(finish), input_tokens=9,
        output_tokens=4 + sample, cut=name == "a", text="",
    )  # fmt: skip


def run(checkpoint: str, *replies: BenchmarkReply) -> Scored:
    return scored(RUN.model_copy(update={"checkpoint": checkpoint}), replies)


BASE = run(
    "base",
    reply("a", 0, 1.0, 1.0, "easy | short"),
    reply("a", 1, 0.0, 1.0, "easy | short"),
    reply("b", 0, None, None, "hard | short"),
    reply("b", 1, 0.5, 1.0, "hard | short", Finish.TRUNCATED),
)


def test_cells_by_hand() -> None:
    whole, easy, hard, short = cells_of([BASE], BOOTSTRAP)
    assert [cell.subset for cell in (whole, easy, hard, short)] == [None, "easy", "hard", "short"]
    assert (whole.tasks, whole.samples) == (2, 2)
    assert whole.official == pytest.approx((0.5 + 0.25) / 2)
    assert whole.robust == pytest.approx((1.0 + 0.5) / 2), "unscored is 0 in a fixed denominator"
    assert (whole.first, whole.best) == (0.5, 1.0)
    assert (whole.unscored_share, whole.unanswered_share, whole.truncated_share) == (0.25, 0.25, 0.25)
    assert (whole.cut_share, whole.output_tokens) == (0.5, 4.5)
    assert whole.gain is None
    assert (easy.tasks, easy.robust, hard.robust, short.tasks) == (1, 1.0, 0.5, 2)


def test_gains_over_the_first() -> None:
    better = run("better", *(reply(name, sample, 1.0, 1.0) for name in "ab" for sample in range(2)))
    cells = cells_of([BASE, better], BOOTSTRAP)
    (gain,) = [cell.gain for cell in cells if cell.checkpoint == "better"]
    assert gain is not None
    assert (gain.difference, gain.low, gain.high, gain.questions) == (0.25, 0.0, 0.5, 2)


def test_equal_checkpoints_gain_nothing() -> None:
    *_, cell = cells_of([BASE, run("twin", *(row for group in BASE.groups.values() for row in group))], BOOTSTRAP)
    assert cell.gain is not None
    assert (cell.gain.difference, cell.gain.low, cell.gain.high) == (0.0, 0.0, 0.0)


def test_checkpoints_without_a_common_task_are_not_compared() -> None:
    cells = cells_of([BASE, run("other", reply("z", 0, 1.0, 1.0))], BOOTSTRAP)
    assert cells[-1].gain is None


def test_ways_and_benchmarks_have_a_first_each() -> None:
    agent = scored(RUN.model_copy(update={"checkpoint": "late", "way": "agent"}), [reply("a", 0, 0.0, 0.0)])
    assert [cell.gain for cell in cells_of([BASE, agent], BOOTSTRAP) if cell.way == "agent"] == [None]
