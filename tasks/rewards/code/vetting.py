"""One programming problem: inputs from a generator, outputs of its submissions, and what comes of them."""

from collections.abc import Sequence
from concurrent.futures import Future
from enum import StrEnum
from typing import Self

from pydantic import model_validator

from tasks.records import Record
from tasks.rewards.code.agreement import PASSING, SUBMISSIONS, agreed_cases, passing
from tasks.rewards.code.cases import lines_of
from tasks.rewards.code.pool import pool
from tasks.rewards.code.sandbox import Ended, Given, Run

CASES = 50  # generated per problem (Kimi k1.5, section 2.3.2)
PATIENCE = 3  # runs of one program that may time out; after that it has no further output
Output = str | Ended


class Outcome(StrEnum):
    """Why a problem is kept or dropped."""

    KEPT = "kept"
    TOO_FEW_SUBMISSIONS = "too_few_submissions"  # different ones
    NO_INPUTS = "no_inputs"  # the generator failed on every seed, or printed nothing
    NO_CASE_AGREED = "no_case_agreed"
    SAYS_NOTHING = "says_nothing"  # whatever the input, nothing is to be printed
    TOO_FEW_PASS = "too_few_pass"  # noqa: S105
    SANDBOX_FAILED = "sandbox_failed"  # nothing is known about the problem


class Problem(Record):
    """A line of input: inputs, or a program that prints the input of a seed, and programs said to be right."""

    problem: str
    generator: str | None = None
    inputs: tuple[str, ...] | None = None
    submissions: tuple[str, ...]

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.generator is None) == (self.inputs is None):
            raise ValueError("a problem has a generator or inputs, and not both")
        return self


class StoredCase(Record):
    """A case of a gold answer, as tasks/rewards/code/cases.py reads it."""

    stdin: str
    stdout: str


class Vetted(Record):
    """A line of the result. Of a dropped problem only the counts that were reached."""

    problem: str
    outcome: Outcome
    cases: tuple[StoredCase, ...] | None = None
    votes: tuple[int, ...] | None = None  # submissions that agree, by case
    passing: int | None = None  # submissions that pass all cases


def vetted(problem: Problem) -> Vetted:
    """Generate inputs, run the submissions on them, and apply the rules.

    Raises:
        SandboxError: this machine cannot run programs safely.
    """
    submissions = list(dict.fromkeys(problem.submissions))[:SUBMISSIONS]
    if len(submissions) < SUBMISSIONS:
        return Vetted(problem=problem.problem, outcome=Outcome.TOO_FEW_SUBMISSIONS)
    printed = list(problem.inputs or ()) if problem.generator is None else _generated(problem.generator)
    inputs = _distinct(printed)
    rows = [row.result() for row in [_outputs(program, inputs) for program in submissions]]
    if any(output is Ended.SANDBOX_FAILED for row in [printed, *rows] for output in row):
        return Vetted(problem=problem.problem, outcome=Outcome.SANDBOX_FAILED)
    if not inputs:
        return Vetted(problem=problem.problem, outcome=Outcome.NO_INPUTS)
    return _decided(problem.problem, inputs, [_texts(row, len(inputs)) for row in rows])


def _decided(name: str, inputs: Sequence[str], outputs_SC: Sequence[Sequence[str | None]]) -> Vetted:
    agreed = agreed_cases(outputs_SC)
    if not agreed:
        return Vetted(problem=name, outcome=Outcome.NO_CASE_AGREED)
    if not any(case.output for case in agreed):
        return Vetted(problem=name, outcome=Outcome.SAYS_NOTHING)
    passed = passing(outputs_SC, agreed)
    if passed < PASSING:
        return Vetted(problem=name, outcome=Outcome.TOO_FEW_PASS, passing=passed)
    cases = tuple(StoredCase(stdin=inputs[case.place], stdout=case.output) for case in agreed)
    votes = tuple(case.votes for case in agreed)
    return Vetted(problem=name, outcome=Outcome.KEPT, cases=cases, votes=votes, passing=passed)


def _generated(generator: str) -> list[Output]:
    """What the generator prints for the seeds from 0."""

    def read(_: int, run: Run) -> Output:
        return run.output if run.ended is Ended.FINISHED else run.ended

    seeds = [Given(f"{seed}\n") for seed in range(CASES)]
    return pool().submit(generator, seeds, read, _patient).result()


def _distinct(printed: Sequence[Output]) -> tuple[str, ...]:
    """Each input once; neither blank ones nor runs that failed."""
    texts = _texts(printed, len(printed))
    return tuple(dict.fromkeys(text for text in texts if text is not None and text.strip()))


def _outputs(program: str, inputs: Sequence[str]) -> "Future[list[Output]]":
    def read(_: int, run: Run) -> Output:
        return "\n".join(lines_of(run.output)) if run.ended is Ended.FINISHED else run.ended

    return pool().submit(program, [Given(text) for text in inputs], read, _patient)


def _patient(outputs: Sequence[Output]) -> bool:
    return sum(output is Ended.TIMED_OUT for output in outputs) < PATIENCE  # not count(): a program may print that


def _texts(outputs: Sequence[Output], count: int) -> list[str | None]:
    """Outputs of the runs that finished, else None; None too for runs that were given up."""
    texts = [None if isinstance(output, Ended) else output for output in outputs]
    return texts + [None] * (count - len(texts))
