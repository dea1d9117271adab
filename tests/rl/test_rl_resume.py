"""A stage killed anywhere and run again ends in the same bytes as an uninterrupted one."""

import json
import logging
import multiprocessing
import os
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from tasks.artifacts import sha256_of
from tasks.rl import state as state_module
from tasks.tracking import NullTracker
from tests.rl.tiny import run_stage1, write_world

RESUME = Path(".work/rl-stage1/resume")


@dataclass
class KillingTracker(NullTracker):
    """Kills its process, without a chance to clean up, when a step reports."""

    at_step: int = 0

    def log_metrics(self, metrics, step):
        if step == self.at_step:
            os.kill(os.getpid(), signal.SIGKILL)


def _die_at(step):
    run_stage1(KillingTracker(at_step=step))


def _die_while_saving(saves):
    """Killed inside the given save, when the new state is written but not yet in place."""
    write = state_module.write_json
    left = iter(range(saves - 1, -1, -1))

    def write_then_die(path, value):
        write(path, value)
        if next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    state_module.write_json = write_then_die
    run_stage1(NullTracker())


def killed(target, argument):
    process = multiprocessing.get_context("fork").Process(target=target, args=(argument,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def results():
    return {
        "weights": sha256_of(Path("checkpoints/stage1/model.safetensors")),
        "metrics": Path("metrics/rl-stage1.json").read_bytes(),
        "card": Path("checkpoints/stage1/README.md").read_bytes(),
    }


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with base and data, and what an uninterrupted stage makes of them."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("uninterrupted")
    before = Path.cwd()
    os.chdir(folder)
    try:
        write_world(folder)
        run_stage1(NullTracker())
        yield folder, results()
    finally:
        os.chdir(before)


@pytest.fixture
def rerun(world, tmp_path, monkeypatch):
    """A fresh folder of the same world, as the current one; and the expected results."""
    folder, expected = world
    for name in ("base", "data"):
        (tmp_path / name).symlink_to(folder / name)
    monkeypatch.chdir(tmp_path)
    return expected


def test_the_uninterrupted_run_learns_and_leaves_no_state(world):
    folder, expected = world
    metrics = json.loads(expected["metrics"])
    assert [step["step"] for step in metrics["steps"]] == [1, 2, 3, 4, 5]
    assert metrics["skipped"] < 5 and any(step["reward"] for step in metrics["steps"])
    assert sum(bool(rate) for rate in metrics["question_rewards"].values()) >= 2
    assert expected["weights"] != sha256_of(folder / "base/model.safetensors")
    assert not (folder / RESUME).exists()


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5])
def test_killed_at_a_step(rerun, step):
    killed(_die_at, step)
    assert not Path("checkpoints").exists() and not Path("metrics").exists()
    assert RESUME.exists() is (step > 2)
    run_stage1(NullTracker())
    assert results() == rerun
    assert not RESUME.exists()


def test_killed_again_and_again(rerun):
    for step in (1, 3, 4, 5, 5):
        killed(_die_at, step)
    run_stage1(NullTracker())
    assert results() == rerun


@pytest.mark.parametrize("saves", [1, 2])
def test_killed_while_saving(rerun, saves):
    killed(_die_while_saving, saves)
    assert RESUME.exists() is (saves > 1)
    run_stage1(NullTracker())
    assert results() == rerun
    assert not list(Path(".work/rl-stage1").glob(".resume*"))


def test_killed_after_the_last_step_but_before_the_end(rerun):
    run_stage1(NullTracker())
    Path("metrics/rl-stage1.json").unlink()
    run_stage1(NullTracker())
    assert results() == rerun


def test_the_continued_run_reports_only_its_own_steps(rerun):
    killed(_die_at, 4)
    tracker = NullTracker()
    run_stage1(tracker)
    assert [step for step, _ in tracker.steps] == [3, 4, 5]


@pytest.mark.parametrize("override", ["seed=1", "rl.learning_rate=0.002", "rl.stages.stage1.steps=6"])
def test_a_state_of_other_parameters_is_discarded_with_a_message(rerun, override, caplog):
    killed(_die_at, 4)
    tracker = NullTracker()
    with caplog.at_level(logging.WARNING):
        run_stage1(tracker, override)
    assert "other parameters or inputs: removed" in caplog.text
    assert tracker.steps[0][0] == 1


def test_a_state_of_other_data_is_discarded(rerun, world, caplog):
    killed(_die_at, 4)
    folder, _ = world
    Path("base").unlink()
    Path("base").mkdir()
    for file in (folder / "base").iterdir():
        Path("base", file.name).write_bytes(file.read_bytes() + (b"\n" if file.name == "config.json" else b""))
    tracker = NullTracker()
    run_stage1(tracker)
    assert tracker.steps[0][0] == 1


def test_a_state_of_another_version_is_discarded(rerun, caplog):
    killed(_die_at, 4)
    (RESUME / "state.json").write_text('{"step": 2}')
    run_stage1(NullTracker())
    assert "another version" in caplog.text
    assert results() == rerun
