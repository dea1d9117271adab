"""Sandboxed checks per second: `PYTHONPATH=. python benchmarks/sandbox.py`.

A check is one run of a small program (two numbers in, their sum out) on one case. It is timed in the sandbox, with all
cases of a program in one sandbox (as rewards do) and with one case each, one and two at once; beside a plain subprocess
without any protection, and beside the start of Python alone, which dominates both. Then a batch in which 16 programs
hang: the time until each of the others is judged.

CPU time is that of this process and of everything it started, bubblewrap included. For its sake the sandboxes of the
table are left to end by themselves (the kernel forgets what processes of a killed namespace used), and bubblewrap's
orphans are adopted.
"""

import argparse
import contextlib
import ctypes
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

from tasks.rewards.code.pool import Pool
from tasks.rewards.code.sandbox import Ended, Given, Limits, Run, Sandbox, require_sandbox

HUNG = 16
CASES = 50
PR_SET_CHILD_SUBREAPER = 36
PROGRAM = "a, b = map(int, input().split())\nprint(a + b)"
SPINS, SLEEPS = "while True: pass", "import time; time.sleep(600)"
PYTHON = [str(Path(sys.executable).resolve()), "-P", "-s", "-S", "-c"]  # as in the sandbox
Times = list[float]


def cpu_s() -> float:
    """CPU seconds so far, of this process and of all its descendants, once they have ended."""
    with contextlib.suppress(ChildProcessError):  # none is left
        while True:
            os.waitpid(-1, 0)
    return sum(os.times()[:4])


class CountedSandbox(Sandbox):
    """A sandbox whose processes end by themselves, and are counted."""

    def close(self) -> None:
        """Say that no case follows."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()
        super().close()


def timed(once: Callable[[int], object], count: int, at_once: int) -> Times:
    """Milliseconds of each call."""

    def call(number: int) -> float:
        started = time.perf_counter()
        once(number)
        return 1000 * (time.perf_counter() - started)

    with ThreadPoolExecutor(at_once) as threads:
        return list(threads.map(call, range(count)))


def start_python(_: int) -> None:
    """Python, and nothing else."""
    subprocess.run([*PYTHON, "pass"], check=True)


def plain(number: int) -> None:
    """A case without protection."""
    ended = subprocess.run([*PYTHON, PROGRAM], input=f"{number} 2\n", capture_output=True, text=True, check=True)
    assert ended.stdout == f"{number + 2}\n"


def sandboxed(count: int, at_once: int, cases: int) -> Times:
    """Milliseconds of each case, from the end of the one before or the submission of its program."""
    pool = Pool(at_once, quick_s=math.inf)
    programs = max(1, count // cases)
    ends: list[list[float]] = [[] for _ in range(programs)]

    def submitted(place: int) -> None:
        def read(number: int, run: Run) -> None:
            assert run.output == f"{number + 2}\n", run
            ends[place].append(time.perf_counter())

        ends[place].append(time.perf_counter())
        pool.submit(PROGRAM, [Given(f"{number} 2\n") for number in range(cases)], read).result()

    with ThreadPoolExecutor(at_once) as threads:
        list(threads.map(submitted, range(programs)))
    return [1000 * (right - left) for one in ends for left, right in pairwise(one)]


def row(name: str, measure: Callable[[], Times]) -> str:
    """A line of the table."""
    cpu, started = cpu_s(), time.perf_counter()
    times = measure()
    rate = len(times) / (time.perf_counter() - started)
    cpu_rate = len(times) / (cpu_s() - cpu)
    cuts = statistics.quantiles(times, n=100)
    return f"{name:<44}{rate:>10.1f}{cpu_rate:>12.1f}{cuts[49]:>10.1f}{cuts[98]:>10.1f}"


def under_hung_programs(others: int, at_once: int) -> str:
    """`HUNG` programs that hang, first in the batch, half of them busy: when are the others judged?"""
    pool = Pool(at_once, Limits(wall_s=10.0))
    started = time.perf_counter()
    ends: list[float] = []

    def read(_: int, run: Run) -> Ended:
        if run.ended is Ended.FINISHED:
            ends.append(time.perf_counter() - started)
        return run.ended

    programs: Sequence[str] = [SPINS, SLEEPS] * (HUNG // 2) + [PROGRAM] * others
    futures = [pool.submit(program, [Given("1 2\n")], read) for program in programs]
    outcomes = [future.result()[0] for future in futures]
    assert outcomes == [Ended.TIMED_OUT] * HUNG + [Ended.FINISHED] * others, outcomes
    return (
        f"{HUNG} of {len(programs)} programs hang, {at_once} at once: half of the others are judged after "
        f"{statistics.median(ends):.1f} s, all after {max(ends):.1f} s, the batch after "
        f"{time.perf_counter() - started:.1f} s"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checks", type=int, default=200, help="checks per row (200)")
    count = parser.parse_args().checks
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    require_sandbox()
    print(f"{'':<44}{'checks/s':>10}{'per CPU-s':>12}{'p50 ms':>10}{'p99 ms':>10}")
    with patch("tasks.rewards.code.pool.Sandbox", CountedSandbox):
        table(count)
    print(under_hung_programs(count // 4, 2))


def table(count: int) -> None:
    """Print the rows, one and two checks at once."""
    for at_once in (1, 2):
        for name, once in (("start of Python alone", start_python), ("plain subprocess", plain)):
            print(row(f"{name}, {at_once} at once", lambda: timed(once, count, at_once)), flush=True)  # noqa: B023
        for cases in (1, CASES):
            name = f"sandbox of {cases} case{'s' * (cases > 1)}, {at_once} at once"
            print(row(name, lambda: sandboxed(count, at_once, cases)), flush=True)  # noqa: B023


if __name__ == "__main__":
    main()
