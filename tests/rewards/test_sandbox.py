"""What a program in the sandbox may do, how its runs end, and that nobody waits for one that hangs."""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tasks.rewards.code.pool import Pool, pool
from tasks.rewards.code.runner import canonical
from tasks.rewards.code.sandbox import Ended, Given, Limits, Run, Sandbox, SandboxError, require_sandbox
from tests.conftest import CHECKOUT

SHORT = Limits(wall_s=1.5)
LITTLE = Limits(cpu_s=1, wall_s=60)
SLEEP = "import time; time.sleep(60)"


def run(program: str, *given: Given, limits: Limits | None = None) -> list[Run]:
    with Sandbox(program, limits or Limits()) as sandbox:
        return [sandbox.run(one) for one in given or (Given(),)]


@pytest.fixture
def unprobed() -> Iterator[None]:
    """Nothing is known about the machine yet; nor after the test."""
    require_sandbox.cache_clear()
    yield
    require_sandbox.cache_clear()


@pytest.mark.parametrize(
    ("program", "ended", "status"),
    [
        ("print(2)", Ended.FINISHED, 0),
        ("import sys; sys.exit()", Ended.FINISHED, 0),
        ("exit(3)", Ended.FAILED, 3),
        ("raise SystemExit('no')", Ended.FAILED, 1),
        ("import os; os._exit = print", Ended.FINISHED, 0),
        ("import sys; sys.stdout.close()", Ended.FAILED, 120),
        ("import threading; threading.Thread(target=print, args=('late',)).start()", Ended.FINISHED, 0),
        ("1 / 0", Ended.FAILED, 1),
        ("1 +", Ended.FAILED, 1),
        ("import os; os.kill(os.getpid(), 11)", Ended.FAILED, -11),
        ("while True: pass", Ended.TIMED_OUT, -24),
        (SLEEP, Ended.TIMED_OUT, 0),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", Ended.TIMED_OUT, 0),
        ("x = 'a' * 10**9", Ended.OUT_OF_MEMORY, 1),
        ("while True: print('a' * 1000)", Ended.OUTPUT_LIMIT, 120),
        ("import os; os.kill(-1, 9)", Ended.FAILED, 0),
        ("import os\nwhile True: os.fork()", Ended.FAILED, 1),
    ],
)
def test_how_a_run_ends(program: str, ended: Ended, status: int) -> None:
    (found,) = run(program, limits=SHORT if "SIGSTOP" in program or "sleep" in program else LITTLE)
    assert (found.ended, found.status) == (ended, status)


def test_runs_are_those_of_a_fresh_python() -> None:
    program = "import sys, atexit; atexit.register(print, 'bye'); print(__name__, sys.argv, input(), sys.stdin.read())"
    first, second = run(program, Given("é\nb"), Given("1\n"))
    assert first.output == "__main__ ['main.py'] é b\nbye\n"
    assert second.output == "__main__ ['main.py'] 1 \nbye\n"


def test_errors_are_reported() -> None:
    (found,) = run("import sys; print('so far'); print('x' * 9000, file=sys.stderr); [][0]")
    assert found.output == "so far\n"
    assert found.errors.endswith("IndexError: list index out of range\n") and len(found.errors) == 2000


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        (True, 1),
        ({1: 2.0, "a": [1]}, {"a": [1.0], 1: 2}),
        ({3, 1, 2}, frozenset({1, 2, 3})),
        ([(1, "a")], [(1.0, "a")]),
    ],
)
def test_equal_values_have_equal_texts(left: object, right: object) -> None:
    assert left == right and canonical(left) == canonical(right)


@pytest.mark.parametrize(
    ("left", "right"), [(1, "1"), ([1], (1,)), (0.1, 0.2), ([1, 2], [2, 1]), (None, 0), ({1}, [1])]
)
def test_different_values_have_different_texts(left: object, right: object) -> None:
    assert left != right and canonical(left) != canonical(right)


def test_a_call_is_evaluated_after_the_program() -> None:
    (found,) = run("def f(x): print('noise', end=''); return {x: (x, 1.0)}", Given(call="f('a')"))
    assert found.output == "noise\n{'a': ('a', 1)}\n"


def test_nothing_of_this_machine_is_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOLD", "in the environment")
    (tmp_path / "gold").write_text("in a file")
    program = f"""
import os, socket
print(sorted(os.environ), os.path.exists({str(tmp_path)!r}), os.path.exists({str(CHECKOUT)!r}), os.listdir('/tmp'))
print([os.path.exists(path) for path in ('/etc', '/var', '/work', '/run', '/sys')])
print(len([name for name in os.listdir('/proc') if name.isdigit()]))
for path in ('/x', '/dev/x', '/usr/x', '/runner.py'):
    try: open(path, 'w')
    except OSError as error: print(error.strerror)
try: socket.create_connection(('127.0.0.1', 80))
except OSError as error: print('no network')
print([line.split()[1] for line in open('/proc/self/status') if line.startswith(('CapEff', 'CapAmb', 'NoNewPrivs'))])
"""
    (found,) = run(program)
    assert found.output.splitlines() == [
        "['HOME', 'LANG', 'PATH', 'PWD', 'PYTHONHASHSEED'] False False []",
        "[False, False, False, False, False]",
        "3",  # bubblewrap, the runner, the program
        *["Read-only file system"] * 4,
        "no network",
        "['0000000000000000', '0000000000000000', '1']",
    ]


def test_an_ordinary_user_gets_a_user_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (found,) = run("print(open('/proc/self/uid_map').read().split()[2])")
    assert found.output == "1\n"


def test_the_number_of_processes_is_limited_for_every_user() -> None:
    forks = "import os, time\nn = 0\ntry:\n  while os.fork(): n += 1\n  time.sleep(9)\nexcept OSError: print(n)"
    (found,) = run(forks)
    if os.geteuid() == 0:
        assert int(found.output) < Limits().processes
    assert found.ended is Ended.FINISHED


def test_memory_on_tmpfs_is_limited() -> None:
    program = "for n in range(99):\n    with open(str(n), 'w') as f: f.write('a' * 3 * 2**20)"
    (found,) = run(program)
    assert found.ended is Ended.FAILED and "No space left" in found.errors
    (found,) = run("open('big', 'w').write('a' * 2**23)")
    assert found.ended is Ended.FAILED and "File too large" in found.errors


def test_a_case_leaves_nothing_to_the_next() -> None:
    program = """
import os, time
print(sorted(os.listdir('/tmp') + os.listdir('/dev/shm')), len([n for n in os.listdir('/proc') if n.isdigit()]))
os.makedirs('a/b'); open('a/b/c', 'w').close(); os.symlink('/usr', 'd'); open('/dev/shm/e', 'w').close()
if os.fork() == 0: time.sleep(60)
"""
    first, second, third = run(program, Given(), Given(), Given())
    assert {first.output, second.output, third.output} == {"[] 3\n"}


def test_leftovers_that_cannot_be_deleted_cost_the_next_case_nothing() -> None:
    program = "import os; print(os.listdir()); os.mkdir('a'); open('a/b', 'w').close(); os.chmod('a', 0)"
    assert [found.output for found in run(program, Given(), Given())] == ["[]\n", "[]\n"]


def test_a_forged_report_is_the_programs_own_output_or_its_end() -> None:
    program = """
import os
for process in os.listdir('/proc'):
    for file in range(16):
        try: os.write(os.open(f'/proc/{process}/fd/{file}', os.O_WRONLY), b'\\0' * 24)
        except OSError: pass
"""
    for found in run(program, Given(), Given()):
        assert found.output.strip("\0") == ""


def test_a_killed_caller_leaves_no_process() -> None:
    program = "from tasks.rewards.code.sandbox import *\n"
    program += f"sandbox = Sandbox('import os; os.fork(); os.setsid(); {SLEEP}', Limits())\n"
    program += "sandbox._start(); print(sandbox._process.pid, flush=True); sandbox.run(Given())"
    with subprocess.Popen([sys.executable, "-c", program], cwd=CHECKOUT, stdout=subprocess.PIPE) as caller:
        assert caller.stdout is not None
        first = int(caller.stdout.readline())
        _await(lambda: len(_descendants(first)) == 5)  # bubblewrap twice, the runner, the program and its child
        family = _descendants(first)
        caller.send_signal(signal.SIGKILL)
    _await(lambda: not any(_lives(process) for process in family))


def _await(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def _descendants(process: int) -> list[int]:
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [process, *(found for child in children for found in _descendants(int(child)))]


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _outputs(pool: Pool, program: str, *inputs: str) -> list[str]:
    return pool.submit(program, [Given(text) for text in inputs], lambda _, run: run.output).result()


def test_from_threads_and_asynchronous_code() -> None:
    def double(number: int) -> list[str]:
        return _outputs(pool(), "print(2 * int(input()))", str(number))

    async def both() -> list[list[str]]:
        return list(await asyncio.gather(*(asyncio.to_thread(double, number) for number in range(2))))

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(double, range(4))) == [[f"{2 * number}\n"] for number in range(4)]
    assert asyncio.run(both()) == [["0\n"], ["2\n"]]


def _in_a_forked_worker(text: str) -> list[str]:
    return _outputs(pool(), "print(input())", text)


def test_from_a_forked_daemonic_worker() -> None:
    assert _outputs(pool(), "print(input())", "here") == ["here\n"]
    with multiprocessing.get_context("fork").Pool(1) as workers:
        assert workers.map(_in_a_forked_worker, ["there"]) == [["there\n"]]


def test_the_pool_runs_in_order_and_stops_when_told() -> None:
    running = Pool(workers=2)
    inputs = [Given(str(number)) for number in range(9)]
    runs = running.submit("print(input())", inputs, lambda n, run: (n, run.output), lambda found: len(found) < 3)
    seen = runs.result()
    assert seen == [(0, "0\n"), (1, "1\n"), (2, "2\n")]
    assert running.submit("print(1)", [], lambda n, run: run).result() == []


def test_hung_programs_delay_nobody() -> None:
    running = Pool(workers=1, limits=Limits(wall_s=5), quick_s=0.3)
    hung = [running.submit(SLEEP, [Given()], lambda _, run: run.ended) for _ in range(3)]
    assert _outputs(running, "print(1)", "") == ["1\n"]
    assert not any(future.done() for future in hung)


def test_who_gave_way_goes_on_where_it_was() -> None:
    running = Pool(workers=1, quick_s=0.1)
    slow = running.submit(
        "import time; n = int(input()); time.sleep(n); print(n)",
        [Given("0"), Given("1"), Given("0")],
        lambda _, run: run.output,
    )
    time.sleep(0.2)
    others = [running.submit("print('quick')", [Given()], lambda _, run: run.output) for _ in range(2)]
    assert slow.result() == ["0\n", "1\n", "0\n"]
    assert [future.result() for future in others] == [["quick\n"]] * 2


def test_an_error_of_the_reader_is_the_futures() -> None:
    with pytest.raises(ZeroDivisionError):
        pool().submit("", [Given()], lambda n, _: 1 / n).result()


def test_without_bubblewrap(monkeypatch: pytest.MonkeyPatch, unprobed: None) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SandboxError, match=r"no bwrap on the PATH; install bubblewrap .*apt-get"):
        require_sandbox()
    with pytest.raises(SandboxError):
        Pool(workers=1)
    assert run("print(1)")[0].ended is Ended.SANDBOX_FAILED


@pytest.mark.parametrize("script", ["echo 'bwrap: No permissions' >&2; exit 1", "exec cat", "kill -9 $$"])
def test_where_user_namespaces_are_forbidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unprobed: None, script: str
) -> None:
    (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr("tasks.rewards.code.sandbox.START_S", 0.2)
    with pytest.raises(SandboxError, match=r"started no sandbox .*user_namespaces"):
        require_sandbox()
