"""The command on a tiny random model, checkpoint after checkpoint, and benchmarks within the evaluate stage."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tasks import tracking
from tasks.evaluation import benchmark, evaluate
from tasks.evaluation.benchmarks.replies import RESULTS
from tasks.evaluation.benchmarks.results import BenchmarkScores
from tasks.evaluation.files import BENCHMARKS
from tasks.params import Params
from tasks.tracking import NullTracker
from tests.evaluation.test_evaluate import checkout, small

__all__ = ["checkout", "small"]  # fixtures

DATA = Path(__file__).parent / "benchmarks/fixtures"
LIMITS = [
    f"--set=evaluation.benchmarks.{key}={value}"
    for key, value in {"max_input_tokens": 40, "max_output_tokens": 3, "samples": 2}.items()
]


@pytest.fixture
def tracker(scratch: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> NullTracker:
    tracker = NullTracker()
    for name in ("base", "stage4"):
        shutil.copytree(model_folder, scratch / "checkpoints" / name)

    @contextmanager
    def stage_run(*_: object) -> Iterator[NullTracker]:
        yield tracker

    monkeypatch.setattr(tracking, "stage_run", stage_run)
    return tracker


def scores() -> BenchmarkScores:
    return BenchmarkScores.model_validate_json(BENCHMARKS.read_text())


def test_checkpoints_side_by_side(tracker: NullTracker, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("stage4", "base"):
        benchmark.main([f"checkpoints/{name}", "longbench_v2", "docmath", "--data", str(DATA), *LIMITS])
    found = scores()
    cells = {(cell.benchmark, cell.checkpoint): cell for cell in found.cells if cell.subset is None}
    assert list(cells) == [
        ("docmath", "stage4"), ("docmath", "base"), ("longbench_v2", "stage4"), ("longbench_v2", "base"),
    ]  # fmt: skip
    assert [cells["longbench_v2", name].tasks for name in ("stage4", "base")] == [3, 3]
    assert cells["longbench_v2", "base"].cut_share == 1.0
    gain = cells["docmath", "base"].gain
    assert gain is not None and gain.difference == 0.0, "the same weights and seeds"
    assert cells["docmath", "stage4"].gain is None, "who came first is the base"
    assert {cell.subset for cell in found.cells if cell.benchmark == "docmath"} >= {"complong", "simpshort"}
    assert (found.window, found.max_output_tokens, found.temperature, found.judge) == (40, 3, 0.7, None)
    assert found.sources["docmath"].startswith("yale-nlp/DocMath-Eval, test-mini (sha256 ")
    assert {"official/docmath/truncation/base/all", "unscored/longbench_v2/truncation/base/all"} <= tracker.steps[1][
        1
    ].keys()
    assert BENCHMARKS in tracker.artifacts
    assert "docmath (truncation): official 0.00, robust 0.00, avg@2 of 4 tasks, +0.0 points" in capsys.readouterr().out


def test_a_second_run_changes_no_byte_and_other_limits_stand_alone(tracker: NullTracker) -> None:
    command = ["checkpoints/base", "docmath", "--data", str(DATA), *LIMITS]
    benchmark.main(command)
    first = BENCHMARKS.read_bytes(), (RESULTS / "base-docmath-truncation.parquet").read_bytes()
    benchmark.main(command)
    assert (BENCHMARKS.read_bytes(), (RESULTS / "base-docmath-truncation.parquet").read_bytes()) == first
    benchmark.main(
        [
            "checkpoints/stage4",
            "docmath",
            "--data",
            str(DATA),
            *LIMITS,
            "--set=evaluation.benchmarks.max_input_tokens=50",
        ]
    )
    assert {cell.checkpoint for cell in scores().cells} == {"stage4"}, "another window cannot stand beside it"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["checkpoints/base"], "ParameterError: no benchmark is named"),
        (["checkpoints/base", "nonsense"], "ParameterError: there is no benchmark 'nonsense'"),
        (["checkpoints/none", "docmath"], "CheckpointError: checkpoints/none"),
        (
            ["checkpoints/base", "docmath", "--data", "nowhere"],
            "InputError: nowhere/docmath does not exist, and the hub gave nothing",
        ),
        (["checkpoints/base", "docmath", "--set=evaluation.benchmarks.samples=0"], "ParameterError"),
    ],
)
def test_errors_are_one_line(
    tracker: NullTracker, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        benchmark.main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert not tracker.steps


def test_the_stage_scores_named_benchmarks_for_every_checkpoint(
    checkout: NullTracker, small: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate, "TRAINED", ("stage1", "stage4"))
    monkeypatch.setattr(evaluate, "READS_LONG", ())
    limits = small.evaluation.benchmarks.model_copy(
        update={"names": ("docmath",), "folder": DATA, "max_input_tokens": 40, "max_output_tokens": 3, "samples": 1}
    )
    params = small.model_copy(update={"evaluation": small.evaluation.model_copy(update={"benchmarks": limits})})
    evaluate.run(params)
    whole = [cell for cell in scores().cells if cell.subset is None]
    assert [cell.checkpoint for cell in whole] == [evaluate.BASE, *evaluate.TRAINED]
    assert [cell.gain is None for cell in whole] == [True, False, False]
    assert any("robust/docmath/truncation/stage4/all" in figures for _, figures in checkout.steps)
    assert BENCHMARKS in checkout.artifacts
    assert json.loads(BENCHMARKS.read_text())["judge"] is None
