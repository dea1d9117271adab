"""The Prefect task on real DVC pipelines in miniature: results, failures, locks, and who dies with whom."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import yaml
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName
from prefect.settings import PREFECT_API_URL
from prefect.testing.utilities import prefect_test_harness

from flows import stage as stage_module
from flows.artifacts import metric_rows, stage_outputs
from flows.checkout import Run, open_run
from flows.locks import LockTrouble, is_readable, lock_trouble
from flows.request import PipelineRequest, stage_names
from flows.stage import StageFailedError, reproduce
from flows.sweep import PREFIX, is_dead, process_tag, sweep_dead_runs
from tasks.errors import InputError, StageBusyError

ROOT = Path(__file__).parents[1]
STAGES = {
    "first": {
        "cmd": "python work.py first",
        "deps": ["work.py"],
        "params": ["seed"],
        "outs": ["data/first.txt"],
        "metrics": [{"metrics/first.json": {"cache": False}}],
    },
    "failing": {"cmd": "python work.py failing", "deps": ["data/first.txt"], "outs": ["data/failing.txt"]},
    "slow": {"cmd": "exec python work.py slow", "outs": ["data/slow.txt"]},
    "many": {"foreach": ["a", "b"], "do": {"cmd": "echo ${item} > ${item}.txt", "outs": ["${item}.txt"]}},
}
WORK = """
import json, os, pathlib, sys, time
name = sys.argv[1]
for folder in ("data", "metrics"):
    pathlib.Path(folder).mkdir(exist_ok=True)
if name == "failing":
    print("about to fail")
    sys.exit("the reason")
if name == "slow":
    from tasks.artifacts import stage_lock
    with stage_lock("slow"):
        pathlib.Path("slow.pid").write_text(str(os.getpid()))
        time.sleep(100)
print("pipeline run", os.environ["POSTTRAIN_PIPELINE_RUN"])
pathlib.Path("data/first.txt").write_text(name)
pathlib.Path("metrics/first.json").write_text(json.dumps({"score": {"a": 0.25}, "curve": [1, 2]}))
"""


@pytest.fixture(scope="module", autouse=True)
def prefect_server() -> Iterator[None]:
    with prefect_test_harness(server_startup_timeout=120):
        yield


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git checkout with a DVC pipeline of four stages; the current folder during the test."""
    (tmp_path / "work.py").write_text(WORK, "utf-8")
    (tmp_path / "dvc.yaml").write_text(yaml.safe_dump({"stages": STAGES}, sort_keys=False), "utf-8")
    (tmp_path / ".gitignore").write_text(
        "/data/\n/metrics/\n/.work/\n/.dvc/tmp/\n/.dvc/cache/\n*.txt\n*.pid\n", "utf-8"
    )
    (tmp_path / ".dvc").mkdir()
    for name in ("params.yaml", ".dvc/config", ".dvcignore"):
        shutil.copy(ROOT / name, tmp_path / name)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


@flow
def bring_up_to_date(stages: list[str], run: Run) -> None:
    for stage in stages:
        reproduce(stage, run)


def reproduced(pipeline: Path, *stages: str, force: bool = False, wanted: tuple[str, ...] = ()) -> None:
    run = Run(name="run-7", folder=pipeline, stages=wanted, force=force)
    bring_up_to_date(list(stages), run)


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


# ── one stage ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_stage_runs_once_and_its_log_and_metrics_are_shown(pipeline, caplog):
    reproduced(pipeline, "first")
    assert (pipeline / "data/first.txt").read_text() == "first"
    assert "pipeline run run-7" in caplog.messages
    assert not any("git add" in message for message in caplog.messages)
    caplog.clear()
    reproduced(pipeline, "first")
    assert "pipeline run run-7" not in caplog.messages
    caplog.clear()
    reproduced(pipeline, "first", force=True)
    assert "pipeline run run-7" in caplog.messages
    with get_client(sync_client=True) as client:
        (table,) = [artifact for artifact in client.read_artifacts() if artifact.key == "metrics-first"][:1]
    assert json.loads(str(table.data)) == [{"metric": "score.a", "value": "0.25"}]


def test_a_stage_that_was_not_asked_for_does_not_run(pipeline):
    reproduced(pipeline, "first", wanted=("many@a",))
    assert not (pipeline / "data/first.txt").exists()


def test_a_failure_stops_the_flow_and_shows_the_last_lines(pipeline):
    with pytest.raises(StageFailedError) as failure:
        reproduced(pipeline, "first", "failing", "many@a")
    assert "stage failing failed" in str(failure.value)
    assert "about to fail" in str(failure.value)
    assert "the reason" in str(failure.value)
    assert not (pipeline / "a.txt").exists()


def test_an_unknown_stage_is_a_failure_not_a_lock(pipeline):
    with pytest.raises(StageFailedError, match="nonsense"):
        reproduced(pipeline, "nonsense")


def test_nested_metrics_become_rows_and_curves_are_left_out():
    rows = list(metric_rows({"a": {"b": 1, "c": 0.123456}, "d": None, "e": [1, 2], "f": "x"}))
    assert [(row.metric, row.value) for row in rows] == [
        ("a.b", "1"),
        ("a.c", "0.1235"),
        ("d", "None"),
        ("f", "x"),
    ]
    assert list(metric_rows({})) == []


def test_outputs_of_a_stage_without_record_are_none(pipeline):
    reproduced(pipeline, "many@b")
    assert stage_outputs("many@b", pipeline) == [Path("b.txt")]
    assert stage_outputs("first", pipeline) == []


# ── locks (case OP-01) ─────────────────────────────────────────────────────────────────────────────────


def test_commands_started_at_once_all_finish(pipeline):
    @flow
    def at_once() -> None:
        run = Run(name="r", folder=pipeline)
        futures = [reproduce.submit(stage, run) for stage in ("first", "many@a", "many@b") * 2]
        for future in futures:
            future.result()

    at_once()
    recorded = yaml.safe_load((pipeline / "dvc.lock").read_text())["stages"]
    assert recorded.keys() == {"first", "many@a", "many@b"}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b'{"read": 3}', b'{"other": {}}', b"\xff\x00"])
def test_torn_and_foreign_locks_are_told_from_whole_ones(tmp_path, content):
    (tmp_path / "rwlock").write_bytes(content)
    assert not is_readable(tmp_path / "rwlock")


@pytest.mark.parametrize("content", [b"", b"\xff\x00"])
def test_an_unreadable_lock_is_explained_and_repaired_when_no_dvc_lives(pipeline, caplog, content):
    lock = pipeline / ".dvc/tmp/rwlock"
    lock.parent.mkdir(parents=True)
    lock.write_bytes(content)
    reproduced(pipeline, "many@a")
    assert (pipeline / "a.txt").exists()
    assert any("was unreadable" in message for message in caplog.messages)


@pytest.mark.parametrize("content", [b"{}", b'{"read": {}, "write": {}}'])
def test_a_whole_lock_is_left_alone(tmp_path, content):
    (tmp_path / "rwlock").write_bytes(content)
    assert is_readable(tmp_path / "rwlock")
    assert is_readable(tmp_path / "absent")


def test_an_unreadable_lock_stays_while_a_dvc_lives(pipeline, monkeypatch):
    lock = pipeline / ".dvc/tmp/rwlock"
    lock.parent.mkdir(parents=True)
    lock.write_bytes(b"")
    monkeypatch.setattr(stage_module, "WAITS", (0,))
    code = "import time; time.sleep(60)"
    other = subprocess.Popen([sys.executable, "-c", code, "dvc"], cwd=pipeline)
    try:
        with pytest.raises(StageBusyError):
            reproduced(pipeline, "many@a")
        assert lock.exists()
    finally:
        other.kill()
        other.wait()


def test_a_held_stage_is_tried_again_and_then_given_up(pipeline, monkeypatch, caplog):
    holder = {"pid": os.getpid(), "cmd": "dvc repro many@a"}
    lock = pipeline / ".dvc/tmp/rwlock"
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps({"write": {str(pipeline / "a.txt"): holder}, "read": {}}))
    monkeypatch.setattr(stage_module, "WAITS", (0, 0))
    with pytest.raises(StageBusyError, match="still held"):
        reproduced(pipeline, "many@a")
    assert sum("trying again" in message for message in caplog.messages) == 2


def test_a_stage_starts_when_the_other_command_lets_go(pipeline, monkeypatch):
    holder = {"pid": os.getpid(), "cmd": "dvc repro many@a"}
    lock = pipeline / ".dvc/tmp/rwlock"
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps({"write": {str(pipeline / "a.txt"): holder}, "read": {}}))

    def then_let_go(folder: Path, lines: list[str]) -> LockTrouble:
        trouble = lock_trouble(folder, lines)
        lock.write_text("{}")
        return trouble

    monkeypatch.setattr(stage_module, "lock_trouble", then_let_go)
    monkeypatch.setattr(stage_module, "WAITS", (0, 0))
    reproduced(pipeline, "many@a")
    assert (pipeline / "a.txt").exists()


def test_only_dvc_itself_can_complain_about_locks(tmp_path):
    busy = "ERROR: failed to reproduce 'a': '/x' is busy, it is being blocked by:"
    assert lock_trouble(tmp_path, [busy]) is LockTrouble.BUSY
    assert lock_trouble(tmp_path, ["the printer is busy, it is being blocked by: paper"]) is LockTrouble.NONE
    assert lock_trouble(tmp_path, []) is LockTrouble.NONE


# ── life and death ─────────────────────────────────────────────────────────────────────────────────────


def child_of(pipeline: Path, script: str) -> tuple[subprocess.Popen[str], psutil.Process]:
    """Start a group leader with a child of its own that would outlive it; return both."""
    process = subprocess.Popen(["bash", "-c", script], start_new_session=True, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, psutil.Process(int(process.stdout.readline()))


@pytest.mark.parametrize("script", ["sleep 99 & echo $!; kill -9 $$", "sleep 99 & echo $!; wait"])
def test_what_a_killed_or_cancelled_command_leaves_behind_is_ended(pipeline, script):
    process, orphan = child_of(pipeline, script)
    stage_module._end_group(process)
    assert eventually(lambda: not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh"])  # bash runs a lone command in its own place, dash forks
def test_a_killed_flow_takes_its_stage_along_and_is_marked_crashed_later(pipeline, shell):
    script = pipeline / "killed_flow.py"
    name = f"killed-under-{Path(shell).name}"
    script.write_text(
        "from pathlib import Path\n"
        "from prefect import flow\n"
        "from flows.checkout import Run\n"
        "from flows.stage import reproduce\n"
        "from flows.sweep import sweep_dead_runs\n"
        f"@flow(flow_run_name={name!r})\n"
        "def killed():\n"
        "    sweep_dead_runs()\n"
        "    reproduce('slow', Run(name='r', folder=Path.cwd()))\n"
        "killed()\n",
        "utf-8",
    )
    environment = {**os.environ, "PREFECT_API_URL": str(PREFECT_API_URL.value()), "SHELL": shell}
    process = subprocess.Popen([sys.executable, str(script)], cwd=pipeline, env=environment)
    pid_file = pipeline / "slow.pid"
    assert eventually(lambda: pid_file.exists() and pid_file.read_text() != "")
    stage = psutil.Process(int(pid_file.read_text()))
    process.kill()
    process.wait()
    assert eventually(lambda: not stage.is_running() or stage.status() == psutil.STATUS_ZOMBIE)

    @flow
    def next_start() -> None:
        sweep_dead_runs()

    named = FlowRunFilter(name=FlowRunFilterName(any_=[name]))
    with get_client(sync_client=True) as client:
        assert [run.state_name for run in client.read_flow_runs(flow_run_filter=named)] == ["Running"]
        next_start()
        assert [run.state_name for run in client.read_flow_runs(flow_run_filter=named)] == ["Crashed"]


def test_only_dead_processes_of_this_host_are_dead():
    own = process_tag()
    host, pid, started = own.removeprefix(PREFIX).rsplit(":", 2)
    assert not is_dead(own)
    assert is_dead(f"{PREFIX}{host}:{pid}:{int(started) - 100}")  # the id belongs to another process now
    assert not is_dead(f"{PREFIX}elsewhere:{pid}:{int(started) - 100}")
    assert not is_dead("nightly")


# ── requests ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_in_place_uses_the_checkout(pipeline):
    run = open_run(PipelineRequest(force=True), "name")
    assert run == Run(name="name", folder=pipeline, force=True)


def test_a_run_with_overrides_uses_a_copy_that_shares_the_cache(pipeline, caplog):
    reproduced(pipeline, "first")
    before = (pipeline / "params.yaml").read_bytes()
    caplog.clear()
    run = open_run(PipelineRequest(overrides=("rl.group_size=4",)), "other")
    bring_up_to_date(["first"], run)
    assert run.folder == pipeline / ".work/runs/other"
    assert (pipeline / "params.yaml").read_bytes() == before
    params = yaml.safe_load((run.folder / "params.yaml").read_text())
    assert params["rl"]["group_size"] == 4
    assert params["tracking"]["uri"] == f"sqlite:///{pipeline}/mlflow.db"
    assert (run.folder / "data/first.txt").read_text() == "first"
    assert "pipeline run other" not in caplog.messages, "an unchanged stage is restored from the cache"
    assert (run.folder / "metrics/first.json").is_file()
    with pytest.raises(InputError, match="exists"):
        open_run(PipelineRequest(overrides=("rl.group_size=4",)), "other")


def test_a_changed_parameter_makes_the_copy_run_the_stage(pipeline, caplog):
    reproduced(pipeline, "first")
    bring_up_to_date(["first"], open_run(PipelineRequest(overrides=("seed=3",)), "changed"))
    assert "pipeline run changed" in caplog.messages


def test_a_copy_shares_what_a_writer_has_answered_and_finds_what_git_ignores(pipeline):
    (pipeline / "models/fetched").mkdir(parents=True)
    (pipeline / ".gitignore").write_text("/models/fetched/\n/.work/\n")
    (pipeline / "models/fetched/config.json").write_text("{}")
    overrides = ("base_model=models/fetched", "corpus.folder='s3://bucket/texts/'")
    run = open_run(PipelineRequest(overrides=overrides), "other")
    params = yaml.safe_load((run.folder / "params.yaml").read_text())
    assert params["base_model"] == str(pipeline / "models/fetched")
    assert params["corpus"]["folder"] == "s3://bucket/texts/"
    (run.folder / ".work/writer/replies.sqlite").write_text("answered")
    assert (pipeline / ".work/writer/replies.sqlite").read_text() == "answered"


def test_a_copy_needs_a_git_checkout(pipeline):
    shutil.rmtree(pipeline / ".git")
    with pytest.raises(InputError, match="git"):
        open_run(PipelineRequest(overrides=("seed=3",)), "x")


def test_stage_names_are_expanded(pipeline):
    assert stage_names(pipeline / "dvc.yaml") == ("first", "failing", "slow", "many@a", "many@b")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"stages": ("nope",)}, "known: first"),
        ({"overrides": ("rl.grup=3",)}, "group_size"),
        ({"overrides": ("rl.group_size=1",)}, "group_size"),
        ({"params": Path("absent.yaml")}, "absent.yaml"),
        ({"profile": "tiny"}, "profile"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused(pipeline, fields, reason):
    with pytest.raises(ValueError, match=reason):
        PipelineRequest.model_validate(fields)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--help"], 0), (["--set", "rl.nope=1"], 2), (["--stage", "nope"], 2), (["--params", "nope"], 2)],
)
def test_help_and_refusals_come_before_prefect_is_imported(arguments, code):
    check = (
        "import runpy, sys\n"
        f"sys.argv = ['x', *{arguments!r}]\n"
        "try: runpy.run_module('flows.post_training', run_name='__main__')\n"
        f"except SystemExit as stopped: assert stopped.code == {code}, stopped.code\n"
        "assert not {'prefect', 'dvc', 'torch', 'mlflow'} & sys.modules.keys()\n"
    )
    done = subprocess.run([sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == (1 if code else 0)
