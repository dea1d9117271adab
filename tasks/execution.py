"""Where work is done: in this process, or in many on Ray. The same results in the same order either way.

Ray Data runs the workers as a pool of actors and hands the results back in the order of the tasks. It wants to own its
input, and ours is drawn from an iterator of this process as results come back; a queue carries the tasks over, one row
each, so that never more than a few per worker are in flight.
"""

import os
import socket
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tasks.errors import PipelineError
from tasks.params import Execution, RayExecution

if TYPE_CHECKING:
    from ray.util.queue import Queue

T = TypeVar("T")
U = TypeVar("U")
Inbox = deque[bytes]  # pickled results that have come and were not taken
IN_FLIGHT = 4  # tasks per worker: one at work, one waiting, the rest behind a slow one whose turn it is
STORE_BYTES = 256 * 2**20  # Ray's shared memory on this machine; it holds only what is in flight
SECONDS_TO_ANSWER = 10.0
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DATA_DISABLE_PROGRESS_BARS": "1"}


def run_batches(make_worker: Callable[[], Callable[[T], U]], tasks: Iterable[T], execution: Execution) -> Iterator[U]:
    """Give each task to a worker and yield the results, one a task, in order.

    Lazy: tasks are drawn, in the caller's thread, as results are taken. A process makes its worker at its first task.
    An error of a worker is raised here as it was there, with the worker's traceback as a note.

    Args:
        make_worker: for Ray a `functools.partial` of something importable; models are loaded in here, not before.
        tasks: for Ray each must survive pickling, like the results.
        execution: `ray` without an address starts Ray on this machine; it ends with this process.

    Raises:
        PipelineError: Ray is not installed, or no cluster answers at the address.
    """
    workers = Workers(make_worker, execution)
    try:
        yield from workers.run(tasks)
    finally:
        workers.close()


class Workers(Generic[T, U]):
    """Workers that outlive a stream of tasks, so that a model is loaded once for many.

    Streams may be open side by side, and one may draw its tasks from the results of another.
    """

    def __init__(self, make_worker: Callable[[], Callable[[T], U]], execution: Execution) -> None:
        """As for `run_batches`."""
        self._make_worker = make_worker
        self._execution = execution
        self._here = _Worker(make_worker)
        self._flow: _Flow | None = None

    def run(self, tasks: Iterable[T]) -> Iterator[U]:
        """As `run_batches`; the workers stay."""
        if isinstance(self._execution, RayExecution):
            yield from self._on_ray(iter(tasks), self._execution)
        else:
            yield from map(self._here, tasks)

    def close(self) -> None:
        """End the workers on Ray, with all streams. What is no longer referred to ends by itself."""
        if self._flow:
            self._flow.close()
            self._flow = None

    def _on_ray(self, tasks: Iterator[T], execution: RayExecution) -> Iterator[U]:
        first = list(islice(tasks, IN_FLIGHT * execution.workers))
        if not first:
            return
        flow = self._flow = self._flow or _Flow(self._make_worker, execution)
        inbox: Inbox = deque()
        waiting = flow.hand_over(first, inbox)
        while waiting:
            yield flow.result(inbox)
            waiting += flow.hand_over(list(islice(tasks, 1)), inbox) - 1


class _Worker(Generic[T, U]):
    """A worker that is made at its first task: where there is none, no model is loaded."""

    def __init__(self, make_worker: Callable[[], Callable[[T], U]]) -> None:
        self._make_worker = make_worker
        self._work: Callable[[T], U] | None = None

    def __call__(self, task: T) -> U:
        if self._work is None:
            self._work = self._make_worker()
        return self._work(task)


class _RowWorker:
    """What an actor runs: a row of one pickled task becomes a row of one pickled result or error."""

    def __init__(self, make_worker: Callable[[], Callable[[Any], Any]]) -> None:
        self._worker = _Worker(make_worker)

    def __call__(self, row: dict[str, Any]) -> dict[str, list[bytes]]:
        from ray import cloudpickle

        try:
            result = self._worker(cloudpickle.loads(row["task"][0]))
            return {"result": [cloudpickle.dumps((result, None))]}
        except Exception as error:  # re-raised by the process that asked
            return {"result": [_pickled(error)]}


def _pickled(error: Exception) -> bytes:
    from ray import cloudpickle

    if not isinstance(error, PipelineError):  # those are written for users
        error.add_note(f"in a worker on Ray:\n{''.join(traceback.format_exception(error))}")
    try:
        dumped: bytes = cloudpickle.dumps((None, error))
        cloudpickle.loads(dumped)  # some errors pickle and cannot be read back
    except Exception:
        return bytes(cloudpickle.dumps((None, RuntimeError("".join(traceback.format_exception(error))))))
    return dumped


class _Flow:
    """The queue into the workers on Ray, and the rows that come out: each into the inbox of its stream."""

    def __init__(self, make_worker: Callable[[], Callable[[Any], Any]], execution: RayExecution) -> None:
        _connect(execution)
        from ray.util.queue import Queue

        self._queue = Queue(actor_options={"num_cpus": 0})
        self._rows = _rows(make_worker, self._queue, execution)
        self._owed: deque[Inbox] = deque()  # whose the next rows are

    def hand_over(self, tasks: Sequence[Any], inbox: Inbox) -> int:
        """How many tasks that were."""
        from ray import cloudpickle

        self._queue.put_nowait_batch([cloudpickle.dumps(task) for task in tasks])
        self._owed.extend([inbox] * len(tasks))
        return len(tasks)

    def result(self, inbox: Inbox) -> Any:
        """The stream's next in order; the worker's error, where it had one, is raised."""
        from ray import cloudpickle

        while not inbox:
            self._owed.popleft().append(next(self._rows)["result"][0])
        result, error = cloudpickle.loads(inbox.popleft())
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        """End the actors."""
        self._rows.close()
        self._queue.shutdown(force=True)


def _rows(
    make_worker: Callable[[], Callable[[Any], Any]], queue: "Queue", execution: RayExecution
) -> Generator[dict[str, Any]]:
    """The results as Ray Data yields them."""
    import ray.data

    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.target_max_block_size = 1  # a row is a block of its own, and travels on at once
    context.enable_progress_bars = False
    fed = ray.data.read_datasource(_feed(queue), override_num_blocks=1, num_cpus=0)
    done = fed.map_batches(
        _RowWorker,
        fn_constructor_args=(make_worker,),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=execution.workers),
        num_cpus=1,
        num_gpus=execution.gpus_per_worker,
    )
    yield from done.iter_batches(batch_size=1, prefetch_batches=0)


def _feed(queue: "Queue") -> Any:
    """A source of Ray Data that reads the queue until it is stopped."""
    import pyarrow as pa
    from ray.data import Datasource, ReadTask
    from ray.data.block import BlockMetadata

    def read() -> Iterator[pa.Table]:
        while True:
            yield pa.table({"task": [queue.get()]})

    class Feed(Datasource):  # type: ignore[misc]  # Ray ships no types
        """One reader, since a queue has one order."""

        def estimate_inmemory_data_size(self) -> None:
            return None

        def get_read_tasks(self, *_: object, **__: object) -> list[Any]:
            unknown = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
            return [ReadTask(read, unknown)]

    return Feed()


def _connect(execution: RayExecution) -> None:
    """Join the cluster, or start Ray here; once a process, since that takes seconds."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise PipelineError('execution: ray needs Ray; run pip install "posttrain-flows[ray]"') from error
    if ray.is_initialized():
        return
    quiet = {"log_to_driver": False, "configure_logging": False, "logging_level": "ERROR"}
    if execution.address is None:
        ray.init(num_cpus=execution.workers, object_store_memory=STORE_BYTES, include_dashboard=False, **quiet)
        return
    try:
        _knock(execution.address)
        ray.init(address=execution.address, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        raise PipelineError(
            f"no Ray cluster answers at execution.address = {execution.address} ({error}); start one with "
            "`ray start --head` and give HOST:PORT, or set it to null"
        ) from error


def _knock(address: str) -> None:
    """Ray itself tries for minutes, and then ends the process."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=SECONDS_TO_ANSWER):
        pass
