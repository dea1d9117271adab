"""Test cases of a program, and what makes its output right.

A gold answer of kind code is a list of cases, each a text:

    {"stdin": "2 3\\n", "stdout": "5\\n"}      a JSON object: what the program reads and what it must print
    assert add(2, 3) == 5                     a Python assertion: a call, and a literal it must be equal to

Outputs are compared here, outside the sandbox, line by line: blanks at the end of a line and of the output do not
count, everything else does (0.30 is not 0.3). The value of a call is the last line that the program prints.
"""

import ast
import json
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache

from tasks.rewards.code.pool import pool
from tasks.rewards.code.runner import canonical
from tasks.rewards.code.sandbox import Ended, Given, Run
from tasks.rewards.reasons import Reason, mapped

_REASONS = {
    Ended.FAILED: Reason.PROGRAM_FAILED,
    Ended.TIMED_OUT: Reason.TIME_LIMIT,
    Ended.OUT_OF_MEMORY: Reason.MEMORY_LIMIT,
    Ended.OUTPUT_LIMIT: Reason.OUTPUT_LIMIT,
    Ended.SANDBOX_FAILED: Reason.SANDBOX_FAILED,
}


@dataclass(frozen=True)
class Case:
    """One case. With a `call`, `expected` is the canonical text of its value."""

    stdin: str
    expected: str
    call: str = ""

    @property
    def given(self) -> Given:
        """What the sandbox may know of it."""
        return Given(self.stdin, self.call)

    def accepts(self, output: str) -> bool:
        """Whether an output is the expected one."""
        found = lines_of(output)
        return found[-1:] == [self.expected] if self.call else found == lines_of(self.expected)


@dataclass(frozen=True)
class Trial:
    """A program and the cases it must pass."""

    program: str
    cases: tuple[Case, ...]


def lines_of(output: str) -> list[str]:
    """The lines that count in a comparison; nothing printed has none."""
    return [line.rstrip() for line in output.rstrip().split("\n")] if output.strip() else []


@lru_cache(maxsize=256)  # one gold answer meets many replies
def read_cases(gold: tuple[str, ...]) -> tuple[Case, ...] | None:
    """The cases of a gold answer; None if it is no list of cases, or if a program that prints nothing would pass."""
    cases = tuple(case for text in gold if (case := _read_case(text)) is not None)
    return cases if len(cases) == len(gold) and any(lines_of(case.expected) for case in cases) else None


def judge(trial: Trial) -> "Future[Reason]":
    """PASSED, or why the first case that failed did.

    Raises:
        SandboxError: this machine cannot run programs safely.
    """

    def read(place: int, run: Run) -> Reason:
        return reason_of(trial.cases[place], run)

    inputs = [case.given for case in trial.cases]
    runs = pool().submit(trial.program, inputs, read, lambda reasons: reasons[-1] is Reason.PASSED)
    return mapped(runs, lambda reasons: reasons[-1])


def reason_of(case: Case, run: Run) -> Reason:
    """What came of one run."""
    if run.ended is Ended.FINISHED:
        return Reason.PASSED if case.accepts(run.output) else Reason.OTHER_OUTPUT
    return _REASONS[run.ended]


def _read_case(text: str) -> Case | None:
    if text.lstrip().startswith("assert"):
        return _read_assertion(text)
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if (
        not isinstance(row, dict)
        or set(row) != {"stdin", "stdout"}
        or not all(isinstance(v, str) for v in row.values())
    ):
        return None
    return Case(row["stdin"], row["stdout"])


def _read_assertion(text: str) -> Case | None:
    try:
        (statement,) = ast.parse(text.strip()).body
        match statement:
            case ast.Assert(test=ast.Compare(left=ast.Call() as call, ops=[ast.Eq()], comparators=[value])):
                return Case("", canonical(ast.literal_eval(value)), ast.unparse(call))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return None
