"""The notebooks run from top to bottom on a store with two small pipelines."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
import yaml

from tasks.artifacts import write_json
from tasks.evaluation.scores import Cell, CheckpointScores, Evaluation, Interval, Provenance
from tasks.params import load_params
from tasks.records import Domain
from tasks.tracking import PIPELINE_VARIABLE, stage_run
from tests.conftest import CHECKOUT

NOTEBOOKS = sorted(CHECKOUT.glob("notebooks/*.ipynb"))
SCORES = {"base": (0.5, None), "stage4": (0.75, Interval(difference=0.25, low=0.125, high=0.375, questions=8))}


def cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


def executed(path: Path) -> dict[str, Any]:
    """Run all code cells in one namespace and return it, with the last cell's last value as `shown`."""
    *first, last = ["".join(cell["source"]) for cell in cells(path)]
    *lines, expression = last.splitlines()
    namespace: dict[str, Any] = {}
    for source in [*first, "\n".join([*lines, f"shown = {expression}"])]:
        exec(compile(source, path.name, "exec"), namespace)
    return namespace


def evaluation() -> Evaluation:
    """Base and stage 4 on one length, the same scores in every domain."""
    sides = [(domain, tokens) for domain in (None, *Domain) for tokens in (None, 128)]

    def scores(name: str) -> CheckpointScores:
        average, gain = SCORES[name]
        figures = {
            **dict.fromkeys(("greedy", "first", "average", "majority"), average),
            **dict.fromkeys(("truncated_share", "unanswered_share", "unscored_share"), 0.0),
            **{"questions": 8, "guess": 0.25, "pass_at_k": 1.0, "gain": gain, "response_tokens": 9.0},
        }
        found = tuple(Cell(domain=domain, context_tokens=tokens, **figures) for domain, tokens in sides)
        return CheckpointScores(
            checkpoint=name, cells=found, longest_reply=9, generated_tokens=90, thinking_share=0.0, cut_share=0.0
        )

    return Evaluation(
        samples=4,
        temperature=0.7,
        top_p=0.95,
        window=512,
        checkpoints=tuple(scores(name) for name in SCORES),
        long=(),
        too_long=(),
        comparisons=(),
        provenance=Provenance(git_commit=None, params_sha256="0", python="3.11", versions={}),
    )


@pytest.fixture
def _quiet_globals() -> Iterator[None]:
    """Undo what a notebook sets for its process: how figures look, and which store MLflow speaks to."""
    import matplotlib.pyplot as plt
    import mlflow

    before = mlflow.get_tracking_uri()
    with mpl.rc_context():
        plt.switch_backend("Agg")
        yield
        plt.close("all")
    mlflow.set_tracking_uri(before)


@pytest.fixture
def checkout(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two pipelines of another learning rate: `first` ran two RL stages, `second` one of them."""
    tree = yaml.safe_load((scratch / "params.yaml").read_text("utf-8"))
    tree["tracking"]["uri"] = f"sqlite:///{scratch}/mlflow.db"
    (scratch / "params.yaml").write_text(yaml.safe_dump(tree), "utf-8")
    for pipeline, rate, stages in (("first", "1e-4", ("stage1", "memory")), ("second", "2e-4", ("stage1",))):
        monkeypatch.setenv(PIPELINE_VARIABLE, pipeline)
        for stage in stages:
            with stage_run(f"rl-{stage}", load_params(overrides=(f"rl.learning_rate={rate}",))) as tracker:
                for step in (1, 2, 3):
                    reward = {"reward": step / 4, "reward/multi_hop": step / 4}
                    tracker.log_metrics({**reward, "entropy": 1 / step}, step)
    for folder in (scratch, scratch / ".work/runs/second"):
        write_json(folder / "metrics/evaluation.json", evaluation())
    return scratch


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_outputs(path: Path) -> None:
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells(path))


@pytest.mark.usefixtures("_quiet_globals")
def test_runs_are_compared(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.pyplot as plt

    (checkout / "notebooks").mkdir()
    monkeypatch.chdir(checkout / "notebooks")  # where Jupyter starts a notebook's kernel
    namespace = executed(CHECKOUT / "notebooks/compare_runs.ipynb")

    assert list(namespace["names"][namespace["chosen"]]) == ["second", "first"]
    assert namespace["differing"] == ["params.rl.learning_rate"]
    assert namespace["shown"].loc[("128 tokens", "second"), "stage4"] == "75.0 (+25.0 [12.5, 37.5])"
    assert namespace["shown"].loc[("multi hop", "this checkout"), "base"] == "50.0"

    both, domains = (plt.figure(number) for number in plt.get_fignums())
    reward, memory, entropy, _ = both.axes
    assert [axes.get_title("left") for axes in both.axes[:2]] == ["stage1", "memory"]
    assert list(reward.lines[0].get_ydata()) == [0.25, 0.5, 0.75]
    assert list(entropy.lines[0].get_ydata()) == [1, 1 / 2, 1 / 3]
    assert [len(line.get_xdata()) for line in memory.lines] == [0, 0, 3, 3], "`second` did not run the memory stage"
    assert [axes.get_ylabel() for axes in domains.axes] == ["second", "", "first", ""]
    assert list(domains.axes[0].lines[1].get_ydata()) == [0.5, 0.5, 0.5]
