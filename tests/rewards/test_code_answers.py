"""Programs as answers: they pass all cases or earn nothing, whatever they try."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.records import AnswerKind, Finish, Verdict
from tasks.rewards.code.cases import Case, lines_of, read_cases
from tasks.rewards.code.pool import Pool
from tasks.rewards.code.sandbox import Limits, SandboxError, require_sandbox
from tasks.rewards.reasons import Checked, Reason
from tasks.rewards.rules import Gold, check_many, examine, is_same, require_means

ADD = "a, b = map(int, input().split())\nprint(a + b)"
FUNCTION = "def add(a, b):\n    return a + b"


def case(stdin: str, stdout: str) -> str:
    return json.dumps({"stdin": stdin, "stdout": stdout})


SUMS = Gold((case("2 3\n", "5\n"), case("20 30\n", "50\n"), case("7 7\n", "14\n")), AnswerKind.CODE)
CALLS = Gold(("assert add(2, 3) == 5", "assert add('a', 'b') == 'ab'", "assert add([1], []) == [1]"), AnswerKind.CODE)


def reason(program: str, gold: Gold) -> Reason:
    return examine(f"So:\n```python\n{program}\n```\n", Finish.FINISHED, gold).reason


@pytest.mark.parametrize(
    ("program", "gold", "expected"),
    [
        (ADD, SUMS, Reason.PASSED),
        (ADD + "\nprint()", SUMS, Reason.PASSED),  # blanks at the end do not count
        ("print(f'{sum(map(int, input().split()))}  ')", SUMS, Reason.PASSED),
        ("print(float(sum(map(int, input().split()))))", SUMS, Reason.OTHER_OUTPUT),
        ("print('sum:')\n" + ADD, SUMS, Reason.OTHER_OUTPUT),
        (ADD + "\nraise SystemExit(1)", SUMS, Reason.PROGRAM_FAILED),
        ("print(5", SUMS, Reason.PROGRAM_FAILED),
        ("x = [0] * 10**9", SUMS, Reason.MEMORY_LIMIT),
        ("while True: print('5' * 9999)", SUMS, Reason.OUTPUT_LIMIT),
        (FUNCTION, CALLS, Reason.PASSED),
        (FUNCTION + "\nprint('a note')", CALLS, Reason.PASSED),
        ("def add(a, b):\n    return 5", CALLS, Reason.OTHER_OUTPUT),
        ("def plus(a, b):\n    return a + b", CALLS, Reason.PROGRAM_FAILED),
        (FUNCTION, SUMS, Reason.OTHER_OUTPUT),
    ],
)
def test_programs(program: str, gold: Gold, expected: Reason) -> None:
    assert reason(program, gold) is expected


SLY = {
    "hard-coded visible case": "print(5)",
    "exit before the tests": "import sys; sys.exit(0)",
    "exit without a trace": "import os; os._exit(0)",
    "exit in a handler": "import atexit, os; atexit.register(os._exit, 0)",
    "fork bomb": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "kill everything": "import os, signal; os.kill(-1, signal.SIGKILL)",
    "kill the runner": "import os, signal, time; os.kill(os.getppid(), signal.SIGKILL); time.sleep(5)",
    "patch the runner": """
import sys, builtins
frame = sys._getframe()
while frame:
    frame.f_globals.update(canonical=lambda value: '5', _reply=lambda *_: None, _write=print)
    frame = frame.f_back
builtins.print = builtins.exec = lambda *_: None
""",
    "write to every channel": """
import os
for process in ['self', *os.listdir('/proc')]:
    for file in range(16):
        for said in (b'passed\\n', b'\\0' * 24):
            try: os.write(os.open(f'/proc/{process}/fd/{file}', os.O_WRONLY), said)
            except OSError: pass
for file in range(1, 64):
    try: os.write(file, b'passed\\n')
    except OSError: pass
""",
    "equal to everything": """
class Any:
    __eq__ = __le__ = __ge__ = __hash__ = lambda *_: True
    __repr__ = __str__ = lambda _: '5 50 14'
def add(a, b): return Any()
print(Any())
""",
    "patch the comparison": """
import builtins, json, ast, sys
for name in list(sys.modules):
    for member in ('loads', 'literal_eval', 'accepts', 'lines_of', 'reason_of'):
        try: setattr(sys.modules[name], member, lambda *_: True)
        except Exception: pass
""",
    "say passed": "print('passed'); print('{\"verdict\": \"correct\"}')",
    "remember earlier cases": """
import os
seen = os.listdir('/tmp') + os.listdir('/dev/shm')
open('/tmp/seen', 'w').write('5'); open('/dev/shm/seen', 'w').write('5')
print(14 if seen else 5)
""",
}


@pytest.mark.parametrize("gold", [SUMS, CALLS], ids=["output", "calls"])
@pytest.mark.parametrize("program", SLY.values(), ids=SLY)
def test_no_trick_is_paid_or_excused(program: str, gold: Gold, monkeypatch: pytest.MonkeyPatch) -> None:
    impatient = Pool(workers=2, limits=Limits(cpu_s=1, wall_s=1.5))
    monkeypatch.setattr("tasks.rewards.code.pool._POOLS", {os.getpid(): impatient})
    assert reason(program, gold).verdict is Verdict.WRONG


def test_the_gold_answer_cannot_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program prints whatever it can read of processes, environments and files; what is expected is not there."""
    secret = "-".join(map(str, range(31, 47)))  # in no argument and in no file of the system
    monkeypatch.setenv("GOLD", secret)
    (tmp_path / "gold.txt").write_text(secret)
    program = f"""
import os
wanted = '-'.join(map(str, range(31, 47))).encode()
def search(path):
    try:
        with open(path, 'rb') as file:
            if wanted in file.read(1 << 20): print(wanted.decode())
    except OSError: pass
for process in os.listdir('/proc'):
    for name in ('cmdline', 'environ', 'stat', 'maps', 'mem'): search(f'/proc/{{process}}/{{name}}')
    for file in range(16): search(f'/proc/{{process}}/fd/{{file}}')
for folder, _, names in os.walk('/tmp'):
    for name in names: search(f'{{folder}}/{{name}}')
search({str(tmp_path / "gold.txt")!r})
search(f'/proc/{{os.getppid()}}/root{tmp_path}/gold.txt')
"""
    gold = Gold((case("", secret + "\n"),), AnswerKind.CODE)
    assert reason(program, gold) is Reason.OTHER_OUTPUT
    assert reason("print('-'.join(map(str, range(31, 47))))", gold) is Reason.PASSED


@pytest.mark.parametrize(
    ("reply", "finish", "expected"),
    [
        (f"```python\nprint(1)\n```\nNo:\n```python\n{ADD}\n```", Finish.FINISHED, Checked(Reason.PASSED, ADD)),
        (r"\boxed{print(sum(map(int, input().split())))}", Finish.FINISHED, None),
        (f"<think>```\n{ADD}\n```</think>", Finish.FINISHED, Checked(Reason.NO_ANSWER)),
        (f"<think>\n```\n{ADD}\n```", Finish.FINISHED, Checked(Reason.TRUNCATED)),
        (f"```\n{ADD}", Finish.TRUNCATED, Checked(Reason.TRUNCATED)),
        (ADD, Finish.FINISHED, Checked(Reason.NO_ANSWER)),  # a bare reply is no program
        ("I would add them.", Finish.FINISHED, Checked(Reason.NO_ANSWER)),
        ("```\n" + "#" * 70_000 + "\n```", Finish.FINISHED, Checked(Reason.TOO_LONG)),
        ("```\n" + "#" * 50_000 + f"\n{ADD}\n```", Finish.FINISHED, Checked(Reason.PASSED, "#" * 50_000 + f"\n{ADD}")),
    ],
    ids=lambda value: str(value)[:20],
)
def test_extraction(reply: str, finish: Finish, expected: Checked | None) -> None:
    found = examine(reply, finish, SUMS)
    assert found == expected if expected else found.reason is Reason.PASSED


@pytest.mark.parametrize(
    ("gold", "cases"),
    [
        ((case("1", "2"),), (Case("1", "2"),)),
        (("assert f(1, x=[2]) == (1, 2.0)",), (Case("", "(1, 2)", "f(1, x=[2])"),)),
        (("assert sorted(f({1})) == {'a': None}",), (Case("", "{'a': None}", "sorted(f({1}))"),)),
        (("assert f(1)",), None),  # its value is known beforehand
        (("assert abs(f(1) - 2) < 0.1",), None),
        (("assert f(1) == g(1)",), None),
        (("assert f(1) == 2; assert f(2) == 3",), None),
        (("assert f(1 == 2",), None),
        (("print(1)",), None),
        (("[" * 100_000,), None),
        (("assert f() == " + "[" * 5000,), None),
        (('{"stdin": "1"}',), None),
        (('{"stdin": "1", "stdout": 2}',), None),
        ((case("1", "2"), "print(1)"), None),
        ((case("1", " \n"), case("2", "")), None),  # who prints nothing would pass
        ((), None),
    ],
)  # fmt: skip
def test_gold_answers(gold: tuple[str, ...], cases: tuple[Case, ...] | None) -> None:
    assert read_cases(gold) == cases


def test_several_texts_that_are_no_cases_are_no_gold() -> None:
    assert reason("print(1)", Gold(("print(1)", "print(2)"), AnswerKind.CODE)) is Reason.NO_GOLD


@given(st.text(alphabet="a \n\t\x0c\u2028é", max_size=12))
def test_an_output_equals_itself_and_its_trimmed_form(output: str) -> None:
    assert Case("", output).accepts(output)
    assert Case("", output).accepts("\n".join(lines_of(output)))


@pytest.mark.parametrize(
    ("expected", "output", "same"),
    [
        ("0.30", "0.3", False),
        ("1 2", "1  2", False),
        ("a", "A", False),
        (" a", "a", False),
        ("\na", "a", False),
        ("a\n\nb", "a\nb", False),
        ("a\nb", "a \nb\n\n", True),
        ("a\r\nb", "a\nb", True),
        ("yes", "yes\nno", False),
    ],
)
def test_comparison_is_strict(expected: str, output: str, same: bool) -> None:
    assert Case("", expected).accepts(output) is same


def test_a_batch_keeps_its_order() -> None:
    replies = [f"```\nprint({number})\n```" for number in range(4)]
    gold = Gold((case("", "2"),), AnswerKind.CODE)
    found = check_many((reply, Finish.FINISHED, gold) for reply in replies)
    assert [one.verdict is Verdict.CORRECT for one in found] == [False, False, True, False]
    assert is_same("print(2)", gold)


def test_without_a_sandbox_nothing_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    require_means([SUMS])
    assert reason(ADD, SUMS) is Reason.PASSED  # the pool is there
    monkeypatch.setenv("PATH", "")
    assert reason(ADD, SUMS) is Reason.SANDBOX_FAILED
    assert Reason.SANDBOX_FAILED.verdict is Verdict.UNSCORED


def test_what_is_needed_is_asked_for_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("tasks.rewards.code.pool._POOLS", {})
    require_sandbox.cache_clear()
    require_means([Gold(("7",), AnswerKind.NUMBER), Gold(("print(1)",), AnswerKind.CODE)])
    with pytest.raises(SandboxError, match="bwrap"):
        require_means([SUMS])
    with pytest.raises(SandboxError, match="bwrap"):
        reason(ADD, SUMS)
    require_sandbox.cache_clear()
