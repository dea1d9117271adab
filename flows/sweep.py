"""Flow runs whose process was killed: Prefect shows them running for ever; the next run marks them crashed.

Each flow run of ours carries a tag with its host, process id and that process's start time. A run whose
process on this host is gone has crashed; runs of other hosts are left alone. Between the kill and the next
start nothing notices.
"""

import socket
from uuid import UUID

import psutil
from prefect import get_run_logger
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.runtime import flow_run
from prefect.states import Crashed

PREFIX = "process:"
_RUNNING = [StateType.RUNNING]


def process_tag() -> str:
    """Tag that identifies this process: host, process id and start time (ids are used again)."""
    process = psutil.Process()
    return f"{PREFIX}{socket.gethostname()}:{process.pid}:{process.create_time():.0f}"


def sweep_dead_runs() -> None:
    """Tag this flow run with its process, and mark runs of dead processes of this host as crashed."""
    own = UUID(flow_run.get_id())
    with get_client(sync_client=True) as client:
        client.update_flow_run(own, tags=[*flow_run.get_tags(), process_tag()])
        running = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=_RUNNING)))
        for candidate in client.read_flow_runs(flow_run_filter=running):
            if any(is_dead(tag) for tag in candidate.tags):
                _mark_crashed(client, candidate)


def is_dead(tag: str) -> bool:
    """Whether the tag names a process of this host that no longer exists."""
    if not tag.startswith(PREFIX):
        return False
    host, pid, started = tag.removeprefix(PREFIX).rsplit(":", 2)
    if host != socket.gethostname():
        return False
    try:
        return f"{psutil.Process(int(pid)).create_time():.0f}" != started
    except psutil.NoSuchProcess:
        return True


def _mark_crashed(client: SyncPrefectClient, dead: FlowRun) -> None:
    get_run_logger().warning("run %s (%s) lost its process; it is marked as crashed", dead.name, dead.id)
    state: State[None] = Crashed(message="its process is gone, found at the start of a later run")
    tasks = client.read_task_runs(
        flow_run_filter=FlowRunFilter(id={"any_": [dead.id]}),
        task_run_filter=TaskRunFilter(state=TaskRunFilterState(type=TaskRunFilterStateType(any_=_RUNNING))),
    )
    for task_run in tasks:
        client.set_task_run_state(task_run.id, state, force=True)
    client.set_flow_run_state(dead.id, state, force=True)
