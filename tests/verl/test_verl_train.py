"""verl's real trainer on CPU, from command to checkpoint: Ray, queue, FSDP2, agent loops, rollout server, resume.

Each run is a process of its own, as a user starts it, on models/tiny-base and a handful of real items.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytest.importorskip("verl", reason="needs the verl extra: pip install 'posttrain-flows[verl]'")

from mlflow import MlflowClient

from tasks.artifacts import sha256_of, write_items
from tasks.generation.local import LocalGenerator
from tasks.rl.engines.verl.metrics import NAMES
from tests.rewards.judge_server import serving, settings
from tests.verl.items import world_items

ROOT = Path(__file__).parents[2]
SMALL = (
    "rl.engine=verl", "rl.batch_prompts=3", "rl.group_size=4", "rl.checkpoint_every=1", "rl.warmup_steps=2",
    "rl.entropy_control={low: 0.12, high: 0.16}", "memory.chunk_tokens=96",
)  # fmt: skip
LIMIT_SECONDS = 400
CANARIES = 23


def checkout(folder: Path) -> Path:
    """Parameters, model and curated questions of a stage, as they lie in a checkout."""
    shutil.copy(ROOT / "params.yaml", folder)
    (folder / "models").symlink_to(ROOT / "models")
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints/stage3").symlink_to(ROOT / "models/tiny-base")
    write_items(folder / "data/curated/stage1.parquet", world_items(ROOT / "models/tiny-base", length=128, count=9))
    write_items(folder / "data/curated/memory.parquet", world_items(ROOT / "models/tiny-base", length=256, count=6))
    return folder


def start(folder: Path, stage: str, *overrides: str) -> subprocess.Popen[str]:
    settings = [part for override in (*SMALL, *overrides) for part in ("--set", override)]
    with (folder / f"{stage}.log").open("a", encoding="utf-8") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tasks.rl.train", stage, *settings],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )


def train(folder: Path, stage: str, *overrides: str) -> None:
    process = start(folder, stage, *overrides)
    try:
        code = process.wait(LIMIT_SECONDS)
    finally:
        process.kill()
    assert code == 0, (folder / f"{stage}.log").read_text("utf-8")[-8000:]


def wait_for(file: Path, text: str) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not (file.exists() and text in file.read_text("utf-8")):
        assert time.monotonic() < deadline, file.read_text("utf-8")[-8000:]
        time.sleep(0.2)


def curves(folder: Path, run_name: str) -> dict[str, list[float]]:
    """Every metric of the stage's MLflow run, in the order of steps."""
    client = MlflowClient(tracking_uri=f"sqlite:///{folder}/mlflow.db")
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    (run,) = client.search_runs(experiments, filter_string=f"attributes.run_name = '{run_name}'")
    assert run.info.status == "FINISHED"
    names = run.data.metrics
    return {name: [point.value for point in client.get_metric_history(run.info.run_id, name)] for name in names}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which stage 1 was trained for three steps without interruption."""
    folder = checkout(tmp_path_factory.mktemp("finished"))
    train(folder, "stage1", "rl.stages.stage1.steps=3")
    return folder


def test_a_stage_reports_under_the_local_engines_names(finished):
    steps = json.loads((finished / "metrics/rl-stage1.json").read_text("utf-8"))["steps"]
    assert [step["step"] for step in steps] == [1, 2, 3]
    logged = curves(finished, "rl-stage1")
    for name in (
        "reward",
        "lenient_score",
        "entropy",
        "gate",
        "kept_share",
        "response_length",
        "gradient_norm",
        "learning_rate",
    ):
        assert logged[name] == pytest.approx([float(step[name]) for step in steps])
    for domain in ("multiple_choice", "multi_hop", "reading_comprehension"):
        assert logged[f"reward/{domain}"] == pytest.approx([step["domain_rewards"][domain] for step in steps])
    assert logged["learning_rate"] == pytest.approx([1.0e-4, 2.0e-4, 2.0e-4])


def test_rollout_and_trainer_are_one_policy(finished):
    logged = curves(finished, "rl-stage1")
    assert min(logged["verl/rollout_correlation"]) > 0.999
    assert set(logged["verl/policy_drift"]) == {0.0}


def test_every_figure_of_verls_that_we_name_is_there(finished):
    assert set(NAMES.values()) <= set(curves(finished, "rl-stage1"))


def test_the_gate_opened_and_closed_again(finished):
    steps = json.loads((finished / "metrics/rl-stage1.json").read_text("utf-8"))["steps"]
    assert {step["gate"] for step in steps} == {True, False}, [step["entropy"] for step in steps]
    for step in steps:
        if step["gate"]:
            assert step["kept_share"] < 1.0


def test_every_step_left_its_rollouts(finished):
    for step in (1, 2, 3):
        rows = pq.read_table(finished / f".work/rl-stage1/rollouts/step-{step:05d}.parquet").to_pylist()
        assert len(rows) == 3 * 4
        assert len({row["domain"] for row in rows}) == 3  # the sampler balances a batch
        assert {row["verdict"] for row in rows} <= {"correct", "wrong"}


def test_the_checkpoint_is_a_plain_folder_that_learned(finished):
    folder = finished / "checkpoints/stage1"
    assert json.loads((folder / "config.json").read_text("utf-8"))["dtype"] == "float32"
    assert (folder / "lineage.json").is_file()
    assert not (finished / ".work/rl-stage1/resume").exists()
    LocalGenerator.load(folder)
    assert sha256_of(folder / "model.safetensors") != sha256_of(ROOT / "models/tiny-base/model.safetensors")


def test_a_killed_run_ends_with_the_same_bytes(finished, tmp_path):
    folder = checkout(tmp_path)
    process = start(folder, "stage1", "rl.stages.stage1.steps=3")
    wait_for(folder / "stage1.log", "rl stage1 2/3")
    process.send_signal(signal.SIGKILL)
    process.wait()
    train(folder, "stage1", "rl.stages.stage1.steps=3")
    rollouts = [f".work/rl-stage1/rollouts/step-{step:05d}.parquet" for step in (1, 2, 3)]
    for file in ("checkpoints/stage1/model.safetensors", "metrics/rl-stage1.json", *rollouts):
        assert sha256_of(folder / file) == sha256_of(finished / file)
    resumed, whole = curves(folder, "rl-stage1"), curves(finished, "rl-stage1")
    for name in ("reward", "entropy", "gradient_norm", "reward/multi_hop"):
        assert resumed[name][-1] == whole[name][-1] and set(resumed[name]) == set(whole[name])


def test_memory_trajectories_train_with_one_update_a_batch_and_are_judged(tmp_path):
    folder = checkout(tmp_path)
    with serving() as server:
        judge = settings(server.server_port, concurrency=4).model_dump_json()
        train(folder, "memory", "rl.stages.memory.steps=2", f"judge={judge}")
    rows = pq.read_table(folder / ".work/rl-memory/rollouts/step-00001.parquet").to_pylist()
    turns = {row["episode"]: row["turn"] + 1 for row in rows}
    assert len(turns) == 3 * 4 and min(turns.values()) > 2
    logged = curves(folder, "rl-memory")
    assert len(logged["reward"]) == len(logged["lenient_score"]) == len(logged["judge/asked"]) == 2
    assert sum(logged["judge/asked"]) > 0 and sum(logged["judge/unscored"]) == 0
    assert server.served == 2 * CANARIES + sum(logged["judge/asked"]) - sum(logged["judge/cached"])  # opened twice
    assert set(logged["verl/policy_drift"]) == {0.0}
    assert min(logged["verl/rollout_correlation"]) > 0.999
