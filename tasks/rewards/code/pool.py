"""Runs many programs, a few at a time, each in a sandbox of its own; a hung one delays nobody.

As in tasks/rewards/algebra.py, a program that has run for `QUICK_S` gives way to a new one that waits for a place, and
goes on with the case it was at when no new one waits. So programs that hang, however many, delay others by `QUICK_S`
each and not by their limit of time.
"""

import heapq
import itertools
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tasks.rewards.code.sandbox import Given, Limits, NotWantedError, Run, Sandbox, require_sandbox

QUICK_S = 1.0
T = TypeVar("T")


@dataclass(order=True)
class _Job(Generic[T]):
    late: bool  # gave way before
    number: int
    program: str = field(compare=False)
    inputs: Sequence[Given] = field(compare=False)
    read: Callable[[int, Run], T] = field(compare=False)
    goes_on: Callable[[list[T]], bool] = field(compare=False)
    future: "Future[list[T]]" = field(compare=False)
    results: list[T] = field(default_factory=list, compare=False)

    @property
    def done(self) -> bool:
        return len(self.results) == len(self.inputs) or (bool(self.results) and not self.goes_on(self.results))


class Pool:
    """Threads that run programs. Thread-safe; a thread starts when there is work for it."""

    def __init__(self, workers: int, limits: Limits | None = None, quick_s: float = QUICK_S) -> None:
        """At most `workers` programs run at once.

        Raises:
            SandboxError: this machine cannot run programs safely.
        """
        require_sandbox()
        self._workers = workers
        self._limits = limits or Limits()
        self._quick_s = quick_s
        self._changed = threading.Condition()
        self._jobs: list[_Job[Any]] = []
        self._numbers = itertools.count()
        self._threads = 0
        self._idle = 0

    def submit(
        self,
        program: str,
        inputs: Sequence[Given],
        read: Callable[[int, Run], T],
        goes_on: Callable[[list[T]], bool] = lambda _: True,
    ) -> "Future[list[T]]":
        """Run a program on its inputs in their order; of each run only `read(place, run)` is kept.

        It ends early when `goes_on`, given the results so far, is false.
        """
        future: Future[list[T]] = Future()
        if inputs:
            self._put(_Job(False, next(self._numbers), program, inputs, read, goes_on, future))
        else:
            future.set_result([])
        return future

    def _put(self, job: _Job[Any]) -> None:
        with self._changed:
            heapq.heappush(self._jobs, job)
            if len(self._jobs) > self._idle and self._threads < self._workers:
                self._threads += 1
                threading.Thread(target=self._serve, name="sandbox", daemon=True).start()
            self._changed.notify()

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while not self._jobs:
                    self._changed.wait()
                self._idle -= 1
                job = heapq.heappop(self._jobs)
            try:
                self._work(job)
            except NotWantedError:
                job.late = True
                self._put(job)
            except Exception as error:
                job.future.set_exception(error)
            else:
                job.future.set_result(job.results)

    def _work(self, job: _Job[Any]) -> None:
        quick_end = time.monotonic() + self._quick_s
        with Sandbox(job.program, self._limits) as sandbox:
            while not job.done:
                place = len(job.results)
                run = sandbox.run(job.inputs[place], lambda: self._gives_way(job, quick_end))
                job.results.append(job.read(place, run))

    def _gives_way(self, job: _Job[Any], quick_end: float) -> bool:
        if job.late or time.monotonic() < quick_end:
            return False
        with self._changed:
            return bool(self._jobs) and not self._jobs[0].late and self._threads == self._workers


_POOLS: dict[int, Pool] = {}  # by process: a forked child has the parent's objects, but none of its threads


def pool() -> Pool:
    """The pool of this process: as many programs at once as it may use cores.

    Raises:
        SandboxError: this machine cannot run programs safely.
    """
    process = os.getpid()
    if process not in _POOLS:
        _POOLS.setdefault(process, Pool(len(os.sched_getaffinity(0))))
    return _POOLS[process]
