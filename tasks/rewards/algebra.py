r"""Equality of mathematical expressions, decided by sympy in worker processes that can be killed.

sympy can hang on a few characters (`\boxed{9^{9^{9^9}}}`), and neither signals (main thread only) nor threads (one
C call holds the lock) stop it. So it runs in processes of its own, started as programs, neither forked nor spawned
through `multiprocessing`: that works from threads, Ray workers, daemonic pool workers and behind `asyncio.to_thread`.

A pair has `DEADLINE_S`, then its process is killed and replaced. After `QUICK_S` it gives way as soon as a new pair
waits that no worker is free for: it is tried once more when no new pair waits. So pairs that hang, however many, delay
others by `QUICK_S` each and not by `DEADLINE_S`.
"""

import atexit
import contextlib
import dataclasses
import heapq
import importlib.util
import itertools
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

from tasks.errors import InputError
from tasks.rewards.reasons import Equation, Reason

QUICK_S = 0.5
DEADLINE_S = 5.0
LOOK_S = 0.1  # how often a pair beyond `QUICK_S` looks whether it must give way
START_S = 60.0  # to import sympy, on a machine that has other work
WORKERS = 4
LONGEST_EXPRESSION = 1000  # characters
_WORKER = Path(__file__).with_name("algebra_worker.py")
_MARKS = re.compile(
    r"\\[dtc]?(?:frac|sqrt|binom)|\\(?:pi|log|ln|exp|sin|cos|tan|infty)(?![a-zA-Z])"
    r"|\^|√|π|[\d)}]!|(?<![a-zA-Z])sqrt\("
)
_OPERATORS = re.compile(
    r"[0-9a-zA-Z)}]\s*(?:[-+*/=<>]|\\(?:le|ge|cdot|times|in|cup|cap)\b)\s*[-0-9a-zA-Z(\\]|[(\[{].*,.*[)\]}]"
)
_PLAIN_ROOT = re.compile(r"(?:(?<![a-zA-Z])sqrt|√)\s*(?:\(([^()]*)\)|([0-9a-zA-Z]+))")


def is_mathematics(text: str) -> bool:
    """Whether a text has a mark of mathematics: a LaTeX function, a power, a root, a factorial.

    Sums and products of plain numbers have none: an answer of "12 + 3" has not been worked out.
    """
    return len(text) <= LONGEST_EXPRESSION and _MARKS.search(text) is not None


def is_expression(text: str) -> bool:
    """Whether a text that should be a number may be read as mathematics: also "2x + 1", "(1, 2)", "x < 3"."""
    return is_mathematics(text) or (len(text) <= LONGEST_EXPRESSION and _OPERATORS.search(text) is not None)


@dataclass(order=True)
class _Task:
    late: bool  # tried before
    number: int
    equation: Equation = field(compare=False)
    future: "Future[Reason]" = field(compare=False)


class _Process:
    """A worker: a program that forks a child, and forks another when that is killed."""

    def __init__(self) -> None:
        # -P: the folder of the program has a numbers.py, which must not hide Python's own
        command = [sys.executable, "-P", str(_WORKER)]
        self._program = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        self.child = 0  # its process id; 0 when the program is gone
        self._await_child()

    def send(self, equation: Equation, seconds: float) -> None:
        """Start to decide an equation. A dead process is found out when its answer is read."""
        request = {**dataclasses.asdict(equation), "seconds": seconds}
        assert self._program.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._program.stdin.write(json.dumps(request).encode() + b"\n")

    def answer(self, seconds: float) -> Reason:
        """The outcome, or TIMED_OUT: it is not there yet."""
        line = self._read(seconds)
        if line is None:
            return Reason.TIMED_OUT
        reply = json.loads(line or "{}")
        if "equal" in reply:
            return Reason.EQUAL if reply["equal"] else Reason.DIFFERENT
        self.child = 0 if not line else reply.get("ready", self.child)  # "ready": the child before it died
        return Reason.CHECK_FAILED

    def renew(self) -> None:
        """Kill the child, which hangs, and wait for the next."""
        self._kill_child()
        self._await_child()

    def kill(self) -> None:
        self._program.kill()
        self._kill_child()

    def clear_up(self) -> None:
        self.kill()
        self._program.wait()
        for stream in (self._program.stdin, self._program.stdout):
            if stream is not None:
                stream.close()

    def _kill_child(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self.child:
                os.kill(self.child, signal.SIGKILL)

    def _await_child(self) -> None:
        line: bytes | None = b"{}"
        while line and "ready" not in json.loads(line):  # a last answer of the child before
            line = self._read(START_S)
        self.child = json.loads(line)["ready"] if line else 0

    def _read(self, seconds: float) -> bytes | None:
        """The next line, b"" when the program is gone, None after `seconds`."""
        stream = self._program.stdout
        assert stream is not None
        poll = select.poll()  # select() refuses descriptors above 1023
        poll.register(stream, select.POLLIN)
        return stream.readline() if poll.poll(1000 * seconds) else None


class Algebra:
    """A pool of worker processes. Thread-safe; a process starts when there is work for it."""

    def __init__(self, workers: int = WORKERS, quick_s: float = QUICK_S, deadline_s: float = DEADLINE_S) -> None:
        """Both limits are wall-clock seconds of a try, without the time spent waiting for a worker.

        Raises:
            InputError: math-verify is not installed.
        """
        if importlib.util.find_spec("math_verify") is None:
            raise InputError("math-verify, which compares expressions, is not installed; install the project again")
        self._workers = workers
        self._quick_s = quick_s
        self._deadline_s = deadline_s
        self._changed = threading.Condition()
        self._tasks: list[_Task] = []
        self._numbers = itertools.count()
        self._threads = 0
        self._idle = 0
        self._processes: set[_Process] = set()
        self._closed = False

    def submit(self, equation: Equation) -> "Future[Reason]":
        """EQUAL, DIFFERENT, TOO_LONG, TIMED_OUT or CHECK_FAILED, later."""
        future: Future[Reason] = Future()
        if max(len(equation.gold), len(equation.answer)) > LONGEST_EXPRESSION:
            future.set_result(Reason.TOO_LONG)
        else:
            written = replace(equation, gold=_latex(equation.gold), answer=_latex(equation.answer))
            self._put(_Task(False, next(self._numbers), written, future))
        return future

    def close(self) -> None:
        """Kill all workers. What still waits has failed."""
        with self._changed:
            self._closed = True
            tasks, self._tasks = self._tasks, []
            for process in self._processes:
                process.kill()  # its thread clears up
            self._changed.notify_all()
        for task in tasks:
            task.future.set_result(Reason.CHECK_FAILED)

    def _put(self, task: _Task) -> None:
        with self._changed:
            if self._closed:
                task.future.set_result(Reason.CHECK_FAILED)
                return
            heapq.heappush(self._tasks, task)
            if len(self._tasks) > self._idle and self._threads < self._workers:
                self._threads += 1
                threading.Thread(target=self._serve, name="algebra", daemon=True).start()
            self._changed.notify()

    def _take(self) -> _Task | None:
        with self._changed:
            self._idle += 1
            while not self._tasks and not self._closed:
                self._changed.wait()
            self._idle -= 1
            return None if self._closed else heapq.heappop(self._tasks)

    def _serve(self) -> None:
        """One worker's thread. When no process can be started, what waits fails with that error."""
        try:
            self._work()
        except Exception as error:
            with self._changed:
                self._threads -= 1
                tasks, self._tasks = self._tasks, []
            for task in tasks:
                task.future.set_exception(error)

    def _work(self) -> None:
        process = self._start()
        while task := self._take():
            reason = self._decide(process, task)
            if reason is None:
                self._put(replace(task, late=True))
            else:
                task.future.set_result(reason)
            if reason is None or reason is Reason.TIMED_OUT:
                process.renew()
            if not process.child and not self._closed:
                self._stop(process)
                process = self._start()
        self._stop(process)

    def _decide(self, process: _Process, task: _Task) -> Reason | None:
        """The outcome; None for a task that gave way."""
        process.send(task.equation, self._deadline_s)
        end = time.monotonic() + self._deadline_s
        reason = process.answer(self._quick_s)
        while reason is Reason.TIMED_OUT and time.monotonic() < end:
            if not task.late and self._new_waits():
                return None
            reason = process.answer(LOOK_S)
        return reason

    def _new_waits(self) -> bool:
        with self._changed:
            return bool(self._tasks) and not self._tasks[0].late and self._threads == self._workers

    def _start(self) -> _Process:
        process = _Process()
        with self._changed:
            self._processes.add(process)
        return process

    def _stop(self, process: _Process) -> None:
        process.clear_up()
        with self._changed:
            self._processes.discard(process)


_POOLS: dict[int, Algebra] = {}  # by process: a forked child has the parent's objects, but none of its threads


def algebra() -> Algebra:
    """The pool of this process."""
    process = os.getpid()
    if process not in _POOLS:
        _POOLS.setdefault(process, Algebra())
    return _POOLS[process]


@atexit.register
def _close() -> None:
    if os.getpid() in _POOLS:
        _POOLS[os.getpid()].close()


def _latex(text: str) -> str:
    r"""What people type for LaTeX: sqrt(2) and √2 are \sqrt{2}, ** is ^, * is \cdot."""
    text = _PLAIN_ROOT.sub(lambda match: rf"\sqrt{{{match[1] or match[2]}}}", text.strip().strip("$"))
    return text.replace("**", "^").replace("*", r" \cdot ").replace("π", r"\pi ")
