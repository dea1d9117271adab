"""Expressions: equal when algebra says so; what hangs is killed, and nobody else waits for it."""

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tasks.records import AnswerKind, Finish, Verdict
from tasks.rewards import algebra as algebra_module
from tasks.rewards.algebra import Algebra, algebra, is_expression, is_mathematics
from tasks.rewards.reasons import Checked, Equation, Reason
from tasks.rewards.rules import Gold, check, check_many, examine, is_same, submit

POWER_TOWER = r"\boxed{\frac{3^{\left(3^{\left(3^{\left(3^3\right)}\right)} - 2\right)} - 3}{8}}"


@pytest.fixture(scope="module", autouse=True)
def pool() -> Iterator[Algebra]:
    """Every check of this file uses it, as long as it lives."""
    pool = Algebra(workers=2, quick_s=5.0, deadline_s=20.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(algebra_module._POOLS, os.getpid(), pool)
        yield pool
    pool.close()


def number(gold: str) -> Gold:
    return Gold((gold,), AnswerKind.NUMBER)


@pytest.mark.parametrize(
    ("gold", "answer", "reason"),
    [
        ("1024", "2^{10}", Reason.EQUAL),
        ("1024", "2^{11}", Reason.DIFFERENT),
        ("120", "5! \\cdot 1", Reason.EQUAL),
        (r"\sqrt{8}", r"2\sqrt{2}", Reason.EQUAL),
        (r"\sqrt{8}", "2sqrt(2)", Reason.EQUAL),
        (r"\sqrt{2}", "1.414", Reason.EQUAL),  # a rounded decimal, within 0.15 %
        (r"\sqrt{2}", "1.42", Reason.DIFFERENT),
        ("1.414", r"\sqrt{2}", Reason.EQUAL),
        (r"\frac{\pi}{2}", r"\frac{2\pi}{4}", Reason.EQUAL),
        ("2x + 1", "1 + 2x", Reason.EQUAL),
        ("(x+1)^2", "x^2 + 2x + 1", Reason.EQUAL),
        ("(x+1)^2", "x^2 + 1", Reason.DIFFERENT),
        # AC-07: exactly, however small
        (r"\frac{1}{2^{99}}", r"\frac{1}{2^{98}}", Reason.DIFFERENT),
        (r"\frac{1}{2^{99}}", "2^{-99}", Reason.EQUAL),
        (r"\frac{1}{2004!}", r"\frac{1}{2006!}", Reason.DIFFERENT),
        ("10^{400}", r"10^{400} + 1", Reason.DIFFERENT),
        (r"\sqrt{2}", r"\sqrt{2} + 10^{-30}", Reason.DIFFERENT),
        # not mathematics, or not to be evaluated
        ("7", "__import__('os').getpid()^1", Reason.DIFFERENT),
        (r"\sqrt{2}", "the root of two", Reason.NOT_OF_KIND),
        ("15", "12 + 3", Reason.SEVERAL_ANSWERS),
    ],
)
def test_equality(gold: str, answer: str, reason: Reason) -> None:
    assert examine(rf"\boxed{{{answer}}}", Finish.FINISHED, number(gold)) == Checked(reason, answer)


def test_text_that_is_mathematics() -> None:
    assert is_same("x*x", Gold(("x^2",), AnswerKind.TEXT))
    assert not is_same("x*y", Gold(("x^2",), AnswerKind.TEXT))


@pytest.mark.parametrize("text", [r"\frac{1}{x}", "2^3", "√2", "3!", r"\pi", "sqrt(2)"])
def test_marks_of_mathematics(text: str) -> None:
    assert is_mathematics(text) and is_expression(text)


@pytest.mark.parametrize("text", ["Paris", "5 km", "12 + 3", "-7", "Guinea-Bissau", "yes!", "x" * 2000 + "^2"])
def test_no_marks_of_mathematics(text: str) -> None:
    assert not is_mathematics(text)


def test_ac01_what_hangs_is_unscored_and_delays_nobody() -> None:
    """As many hang as there are workers: they give way, are tried again, and the batch keeps its order."""
    rows = [
        (POWER_TOWER, "7", Reason.TIMED_OUT),
        (r"\boxed{7^{\left(7^{\left(7^7\right)}\right)} - 1}", "7", Reason.TIMED_OUT),
        (r"\boxed{7}", "7", Reason.EQUAL),
        (r"\boxed{\frac{14}{\sqrt{4}}}", "7", Reason.EQUAL),
        (r"\boxed{2^3}", "9", Reason.DIFFERENT),
    ]
    small = Algebra(workers=2, quick_s=0.5, deadline_s=2.0)
    finished: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(algebra_module._POOLS, os.getpid(), small)
        futures = [submit(reply, Finish.FINISHED, number(gold)) for reply, gold, _ in rows]
        for row, future in enumerate(futures):
            future.add_done_callback(lambda _, row=row: finished.append(row))
        assert [future.result().reason for future in futures] == [reason for _, _, reason in rows]
    small.close()
    assert sorted(finished[-2:]) == [0, 1]  # after everybody else


def test_a_batch_is_in_order() -> None:
    rows = [(rf"\boxed{{2^{n}}}" if n % 2 else str(2**n), Finish.FINISHED, number(str(2**n))) for n in range(8)]
    assert [one.extracted for one in check_many(rows)] == [
        reply.removeprefix(r"\boxed{").rstrip("}") for reply, _, _ in rows
    ]
    assert check_many([]) == []


@pytest.mark.parametrize("program", [False, True])
def test_a_worker_that_dies_is_replaced(pool: Algebra, program: bool) -> None:
    assert is_same("2^{3}", number("8"))
    for process in list(pool._processes):
        for victim in {process.child, *([process._program.pid] if program else [])}:
            os.kill(victim, signal.SIGKILL)
    reasons = [pool.submit(Equation("8", "2^{3}")).result() for _ in range(6)]
    assert reasons[-1] is Reason.EQUAL
    assert set(reasons) <= {Reason.EQUAL, Reason.CHECK_FAILED}


def test_too_long_for_algebra(pool: Algebra) -> None:
    assert pool.submit(Equation("7", "1+" * 1000 + "1^1")).result() is Reason.TOO_LONG


def test_from_threads() -> None:
    with ThreadPoolExecutor(8) as threads:
        verdicts = list(
            threads.map(lambda n: check(rf"\boxed{{2^{{{n}}}}}", Finish.FINISHED, number(str(2**n))), range(16))
        )
    assert verdicts == [Verdict.CORRECT] * 16


def test_from_asynchronous_code() -> None:
    async def both() -> list[Verdict]:
        pairs = ((r"\boxed{2^3}", "8"), (r"\boxed{2^3}", "9"))
        calls = (asyncio.to_thread(check, reply, Finish.FINISHED, number(gold)) for reply, gold in pairs)
        return list(await asyncio.gather(*calls))

    assert asyncio.run(both()) == [Verdict.CORRECT, Verdict.WRONG]


def _in_a_forked_worker(reply: str) -> str:
    return check(reply, Finish.FINISHED, number("8")).value


def test_from_a_forked_daemonic_worker() -> None:
    """Its parent's threads are gone there, and multiprocessing would refuse it children."""
    with multiprocessing.get_context("fork").Pool(1) as workers:
        assert workers.map(_in_a_forked_worker, [r"\boxed{2^3}"]) == ["correct"]


def test_a_closed_pool_ends_its_workers_and_fails_what_waits() -> None:
    pool = Algebra(workers=1)
    assert pool.submit(Equation("8", "2^3")).result() is Reason.EQUAL
    (process,) = pool._processes
    child = process.child
    futures = [pool.submit(Equation("7", POWER_TOWER[7:-1])) for _ in range(2)]
    pool.close()
    assert process._program.wait(60) != 0
    assert [future.result(60) for future in futures] == [Reason.CHECK_FAILED] * 2
    while Path(f"/proc/{child}").exists():
        time.sleep(0.01)
    assert pool.submit(Equation("1", "2^0")).result() is Reason.CHECK_FAILED


def test_a_program_that_cannot_be_started_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/no/such/python")
    with pytest.raises(OSError, match="No such file"):
        Algebra(workers=1).submit(Equation("8", "2^3")).result(60)


def test_the_pool_of_a_process_is_one(pool: Algebra) -> None:
    assert algebra() is algebra() is pool
