import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks import tracking
from tasks.errors import ParameterError
from tasks.params import Params, load_params
from tasks.tracking import NullTracker, flatten, safe_name, safe_names, stage_run
from tests.conftest import CHECKOUT

Client = Any  # MLflow ships types, but takes seconds to import


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with its schema made once: it takes seconds."""
    from mlflow import MlflowClient

    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    MlflowClient(tracking_uri=f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def client(template: Path, scratch: Path) -> Client:
    from mlflow import MlflowClient

    (scratch / "mlflow.db").write_bytes(template.read_bytes())
    return MlflowClient(tracking_uri=f"sqlite:///{scratch}/mlflow.db")


def load(*overrides: str) -> Params:
    """Parameters with a store of this test's own: MLflow caches stores by address, even a relative one."""
    return load_params(overrides=(f"tracking.uri=sqlite:///{Path.cwd()}/mlflow.db", *overrides))


@pytest.fixture
def params(scratch: Path) -> Params:
    return load()


def runs(client: Client, experiment: str = "posttrain-flows") -> dict[str, Any]:
    """The runs by name; names are unique in these tests."""
    found = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
    assert len({run.info.run_name for run in found}) == len(found)
    return {run.info.run_name: run for run in found}


# ── values ──


def test_parameters_are_flattened() -> None:
    assert flatten({"a": {"b": 1, "c": [4, 8]}, "d": None, "e": "text", "f": 2e-6}) == {
        "a.b": "1",
        "a.c": "[4, 8]",
        "d": "null",
        "e": "text",
        "f": "2e-06",
    }


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("reward%", "reward_"),
        ("reward/multi_hop", "reward/multi_hop"),
        ("../../etc", "etc"),
        ("/a//b/", "a/b"),
        ("π", "_"),
        ("a:b", "a_b"),
        ("", "unnamed"),
        ("x" * 400, "x" * 250),
    ],
)
def test_names_become_acceptable(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_names_that_coincide_stay_apart() -> None:
    assert safe_names({"reward%": 1, "reward&": 2, "reward_": 3}) == {
        "reward%": "reward_",
        "reward&": "reward__2",
        "reward_": "reward__3",
    }


@given(st.lists(st.text(max_size=300), unique=True, max_size=8))
def test_mlflow_accepts_every_safe_name_and_none_is_lost(names: list[str]) -> None:
    from mlflow.utils.validation import _validate_metric_name, _validate_param_name

    safe = safe_names(dict.fromkeys(names))
    assert len(set(safe.values())) == len(names)
    for name in safe.values():
        _validate_metric_name(name)
        _validate_param_name(name)


def test_the_double_counts_and_keeps_like_the_real_one() -> None:
    tracker = NullTracker()
    tracker.log_metrics({"a": 1, "b": math.nan, "c": -math.inf}, step=3)
    tracker.log_params({"x": 1})
    tracker.log_params({"x": 2, "y": 3})
    assert tracker.steps == [(3, {"a": 1.0})]
    assert tracker.non_finite == 2
    assert tracker.params == {"x": 1, "y": 3}


# ── runs ──


def test_a_stage_is_a_child_of_its_pipeline_run(
    client: Client, params: Params, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("ingest", "rl@stage1"):
        with stage_run(name, params, {"engine": "local"}) as tracker:
            tracker.log_metrics({"reward": 0.5}, step=0)
    found = runs(client)
    (parent,) = [run for run in found.values() if "mlflow.parentRunId" not in run.data.tags]
    assert parent.info.run_name.startswith("params-")
    assert parent.info.status == "FINISHED"
    for name in ("ingest", "rl@stage1"):
        child = found[name]
        assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert child.data.tags["engine"] == "local"
        assert child.data.params["rl.group_size"] == "8"
        assert child.info.status == "FINISHED"
    assert capfd.readouterr() == ("", "")


def test_a_flow_names_its_pipeline_run(client: Client, params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    for flow, stage in (("swift'otter", "a"), ("swift'otter", "b"), ("calm-heron", "c")):
        monkeypatch.setenv("POSTTRAIN_PIPELINE_RUN", flow)
        with stage_run(stage, params):
            pass
    found = runs(client)
    parents = {name: found[name].data.tags["mlflow.parentRunId"] for name in "abc"}
    assert parents["a"] == parents["b"] == found["swift'otter"].info.run_id
    assert parents["c"] == found["calm-heron"].info.run_id


def test_other_parameters_are_another_pipeline_run(client: Client) -> None:
    for name, override in (("a", "seed=1"), ("b", "seed=2"), ("c", "tracking.experiment=posttrain-flows")):
        with stage_run(name, load(override)):
            pass
    with stage_run("d", load()):
        pass
    found = runs(client)
    parents = {name: found[name].data.tags["mlflow.parentRunId"] for name in "abcd"}
    assert len({parents["a"], parents["b"], parents["c"]}) == 3
    assert parents["c"] == parents["d"]  # where runs are kept makes no other pipeline


def fail(name: str, params: Params, error: BaseException, step: int) -> str:
    try:
        with stage_run(name, params) as tracker:
            tracker.log_metrics({"reward": float(step)}, step)
            raise error
    except type(error):
        assert tracker.run_id is not None
        return tracker.run_id


def test_a_failed_stage_continues_its_run_by_id(client: Client, params: Params) -> None:
    first = fail("rl@stage1", params, ValueError(), step=0)
    assert client.get_run(first).info.status == "FAILED"
    assert fail("rl@stage1", params, KeyboardInterrupt(), step=1) == first
    assert client.get_run(first).info.status == "KILLED"
    with stage_run("rl@stage1", params) as tracker:
        assert client.get_run(first).info.status == "RUNNING"
        tracker.log_metrics({"reward": 2.0}, step=2)
    assert tracker.run_id == first
    assert [(point.step, point.value) for point in client.get_metric_history(first, "reward")] == [
        (0, 0.0),
        (1, 1.0),
        (2, 2.0),
    ]
    with stage_run("rl@stage1", params) as tracker:  # a finished stage that runs again is a new run
        assert tracker.run_id != first


def test_other_parameters_or_another_store_start_a_new_run(client: Client, params: Params) -> None:
    first = fail("a", params, ValueError(), step=0)
    second = fail("a", load("seed=5"), ValueError(), step=0)
    assert second != first
    Path(".work/a/run_id").write_text("0" * 32 + " " + Path(".work/a/run_id").read_text().split()[1])
    with stage_run("a", load("seed=5")) as tracker:
        assert tracker.run_id not in (first, second)


def test_values_that_are_not_finite_are_counted_not_written(client: Client, params: Params) -> None:
    with stage_run("a", params) as tracker:
        tracker.log_metrics({"loss": math.nan, "ratio": math.inf, "kl": -math.inf, "reward%": 1}, step=0)
        tracker.log_metrics({"loss": 0.5}, step=1)
    assert tracker.non_finite == 3
    metrics = client.get_run(tracker.run_id).data.metrics
    assert metrics == {"loss": 0.5, "reward_": 1.0, "non_finite": 3.0}
    experiment = client.get_experiment_by_name("posttrain-flows").experiment_id
    best = client.search_runs([experiment], "metrics.kl < 0.1")
    assert best == []


def test_one_step_is_one_write(client: Client, params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    with stage_run("a", params) as tracker:
        calls: list[int] = []
        assert isinstance(tracker, tracking.MlflowTracker)
        monkeypatch.setattr(tracker.client, "log_batch", lambda run_id, metrics: calls.append(len(metrics)))
        tracker.log_metrics({f"m{number}": number for number in range(40)}, step=0)
    assert calls == [40]


def test_a_parameter_keeps_its_first_value_and_the_change_is_a_tag(client: Client, params: Params) -> None:
    with stage_run("a", params) as tracker:
        tracker.log_params({"lr": "1e-06", "same": 1})
        tracker.log_params({"lr": "2e-06", "same": 1, "new": 2})
    run = client.get_run(tracker.run_id)
    assert (run.data.params["lr"], run.data.params["same"], run.data.params["new"]) == ("1e-06", "1", "2")
    assert {key: value for key, value in run.data.tags.items() if key.startswith("changed.")} == {"changed.lr": "2e-06"}


def test_a_long_parameter_is_kept_whole(client: Client, params: Params, tmp_path: Path) -> None:
    from mlflow.artifacts import download_artifacts

    long = "é" * 9000
    with stage_run("a", params) as tracker:
        tracker.log_params({"prompt%": long, "edge": "x" * 500})
        tracker.log_params({"prompt%": long})
    run = client.get_run(tracker.run_id)
    assert run.data.params["edge"] == "x" * 500
    assert run.data.params["prompt_"].endswith("length:9000")
    assert not any(key.startswith("changed.") for key in run.data.tags)
    path = download_artifacts(artifact_uri=f"{run.info.artifact_uri}/params/prompt_.txt", dst_path=str(tmp_path))
    assert Path(path).read_text("utf-8") == long


def test_datasets_carry_their_hash_and_artifacts_are_copied(client: Client, params: Params, scratch: Path) -> None:
    (scratch / "train.parquet").write_bytes(b"abc")
    (scratch / "checkpoint").mkdir()
    (scratch / "checkpoint/weights").write_bytes(b"1")
    with stage_run("a", params) as tracker:
        tracker.log_dataset(Path("train.parquet"), "train set")
        tracker.log_dataset(Path("checkpoint"), "parent")
        tracker.log_artifact(Path("train.parquet"))
        tracker.log_artifact(Path("checkpoint"))
    run = client.get_run(tracker.run_id)
    sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert run.data.tags["sha256.train set"] == sha256
    inputs = {entry.dataset.name: entry.dataset for entry in run.inputs.dataset_inputs}
    assert inputs["train set"].digest == sha256[:32]
    assert json.loads(inputs["train set"].source) == {"uri": "train.parquet"}
    assert sorted(entry.path for entry in client.list_artifacts(tracker.run_id)) == [
        "checkpoint",
        "train.parquet",
    ]
    assert [entry.path for entry in client.list_artifacts(tracker.run_id, "checkpoint")] == ["checkpoint/weights"]


def test_a_failing_store_does_not_end_the_stage(
    client: Client, params: Params, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from mlflow.exceptions import MlflowException

    def locked(*_: object, **__: object) -> None:
        raise MlflowException("database is locked")

    with stage_run("a", params) as tracker:
        assert isinstance(tracker, tracking.MlflowTracker)
        for name in ("log_batch", "log_artifact", "log_inputs", "set_terminated"):
            monkeypatch.setattr(tracker.client, name, locked)
        tracker.log_metrics({"a": 1.0}, step=0)
        tracker.log_artifact(Path("params.yaml"))
        tracker.log_dataset(Path("params.yaml"), "p")
    assert "database is locked" in caplog.text


def test_where_runs_are_kept_is_no_parameter(client: Client, params: Params) -> None:
    with stage_run("a", params) as tracker:
        pass
    assert not any(key.startswith("tracking") for key in client.get_run(tracker.run_id).data.params)


@pytest.mark.parametrize(
    "uri",
    [
        "ftp://someone:secret@nowhere/x",
        "sqlite:////proc/no/such/folder/mlflow.db",
        "http://127.0.0.1:9",
    ],
)
def test_a_store_that_cannot_be_used_is_named(scratch: Path, monkeypatch: pytest.MonkeyPatch, uri: str) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with (
        pytest.raises(ParameterError, match=r"tracking\.uri = .* cannot be used") as caught,
        stage_run("a", load_params(overrides=(f"tracking.uri={uri}",))),
    ):
        pass
    assert "secret" not in str(caught.value)


# Forked once MLflow is imported (it takes seconds), so that all eight really arrive together.
EIGHT_STARTS = """
import multiprocessing, sys
import mlflow
from tasks.params import load_params
from tasks.tracking import stage_run

def work(name):
    with stage_run(name, load_params()) as tracker:
        for step in range(3):
            tracker.log_metrics({"reward": step}, step)

context = multiprocessing.get_context("fork")
workers = [context.Process(target=work, args=(f"stage{number}",)) for number in range(8)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
sys.exit(any(worker.exitcode for worker in workers))
"""


def test_many_processes_start_on_a_new_store_at_once(scratch: Path) -> None:
    """Each makes its run; schema, experiment and parent are made once."""
    from mlflow import MlflowClient

    answer = subprocess.run(
        [sys.executable, "-c", EIGHT_STARTS],
        cwd=scratch,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.stdout, answer.stderr, answer.returncode) == ("", "", 0)
    client = MlflowClient(tracking_uri=f"sqlite:///{scratch}/mlflow.db")
    assert sorted(entry.name for entry in client.search_experiments()) == ["Default", "posttrain-flows"]
    found = runs(client)
    children = [run for name, run in found.items() if name.startswith("stage")]
    assert len(children) == 8
    assert len({run.data.tags["mlflow.parentRunId"] for run in children}) == 1
    assert len(found) == 9
    assert all(run.data.metrics == {"reward": 2.0} for run in children)


def test_a_summary_reaches_the_stage_and_its_pipeline(
    client: Client, params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(tracking.PIPELINE_VARIABLE, "whole")
    with stage_run("evaluate", params) as tracker:
        tracker.log_summary({"average/stage4/all": 0.8, "broken": math.nan})
    found = runs(client)
    for name in ("whole", "evaluate"):
        assert found[name].data.metrics == {"average/stage4/all": 0.8, "non_finite": 1.0}
