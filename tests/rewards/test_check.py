"""The command: one result per line, in order, whatever stands in the lines."""

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tasks.rewards.check import main
from tests.conftest import CHECKOUT

COMMAND = [sys.executable, "-m", "tasks.rewards.check"]


def checked(tmp_path: Path, capsys: pytest.CaptureFixture[str], *lines: bytes | dict[str, Any]) -> list[dict[str, Any]]:
    file = tmp_path / "answers.jsonl"
    file.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
    with contextlib.suppress(SystemExit):
        main([str(file)])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_every_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[tuple[str, Any, str, str, str | None, str]] = [
        ("The answer is (B).", "B", "letter", "correct", "B", "equal"),
        ("The answer is 1,234.", 1234, "number", "correct", "1,234", "equal"),
        ("The answer is 0.10.", 0.1, "number", "correct", "0.10", "equal"),
        ("5000 m", "5 km", "quantity", "correct", "5000 m", "equal"),
        ("28", "28", "percent", "correct", "28", "equal"),
        ("3 May 2021", "2021-05-03", "date", "correct", "3 May 2021", "equal"),
        ("Oslo and Rome", ["Rome", "Oslo"], "list", "correct", "Oslo and Rome", "equal"),
        ("Oslo, Rome", ["Rome", "Oslo"], "ordered_list", "wrong", "Oslo, Rome", "different"),
        ("1, 2, 2", [1, 2], "set", "correct", "1, 2, 2", "equal"),
        ("none", [], "list", "correct", "none", "equal"),
        ("the Beatles", "Beatles", "text", "correct", "the Beatles", "equal"),
        ("Yes.", True, "yes_no", "correct", "Yes.", "equal"),
        ("```\nx\n```", "x", "code", "correct", "x", "equal"),
        ("```\nprint(3)\n```", {"stdin": "", "stdout": "3\n"}, "code", "correct", "print(3)", "passed"),
        ("```\nf = abs\n```", ["assert f(-2) == 2"], "code", "correct", "f = abs", "passed"),
        ("The answer is that it rains.", "It floods.", "free_text", "unscored", "that it rains", "needs_judge"),
        ("<think> 5", "5", "number", "wrong", None, "truncated"),
    ]
    lines = [{"id": place, "prediction": row[0], "gold": row[1], "kind": row[2]} for place, row in enumerate(rows)]
    expected = [
        {"id": place, "verdict": row[3], "extracted": row[4], "reason": row[5]} for place, row in enumerate(rows)
    ]
    assert checked(tmp_path, capsys, *lines) == expected


def test_the_question_says_the_scale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = {"prediction": "28", "gold": "28%", "kind": "number"}
    results = checked(tmp_path, capsys, line, {**line, "question": "What share, in percent?"})
    assert [result["verdict"] for result in results] == ["wrong", "correct"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{bad", "malformed_json"),
        (b"[1]", "malformed_json"),
        (b"nothing", "malformed_json"),
        (b'{"prediction": "a", "gold": "a", "kind": "text"} {}', "malformed_json"),
        (b"[" * 200_000, "nested_too_deep"),
        (b'{"prediction": "\xff", "gold": "a", "kind": "text"}', "invalid_utf8"),
        ({"prediction": "\ud800", "gold": "a", "kind": "text"}, "invalid_utf8"),
        ({"gold": "a", "kind": "text"}, "missing_prediction"),
        ({"prediction": "a", "kind": "text"}, "missing_gold"),
        ({"prediction": "a", "gold": None, "kind": "text"}, "missing_gold"),
        ({"prediction": "a", "gold": "a"}, "missing_kind"),
        ({"prediction": "a", "gold": "a", "kind": "smell"}, "unknown_kind"),
        ({"prediction": "a", "gold": "a", "kind": ["text"]}, "unknown_kind"),
        ({"prediction": "a", "gold": "a", "kind": "text", "finish": "stop"}, "unknown_finish"),
        ({"prediction": "a", "gold": "a", "kind": "text", "colour": "red"}, "unknown_field"),
        ({"prediction": {"a": 1}, "gold": "a", "kind": "text"}, "bad_prediction"),
        ({"prediction": "a", "gold": [["a"]], "kind": "list"}, "bad_gold"),
        ({"prediction": "a", "gold": [{"stdin": "1"}], "kind": "code"}, "bad_gold"),
        ({"prediction": "a", "gold": {"stdin": "1", "stdout": 2}, "kind": "code"}, "bad_gold"),
        ({"prediction": "a", "gold": "a", "kind": "text", "question": []}, "bad_question"),
        ({"prediction": "x" * (5 * 1024**2), "gold": "a", "kind": "text"}, "line_too_long"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_line_is_named_and_the_rest_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: bytes | dict[str, Any], reason: str
) -> None:
    good = {"prediction": "a", "gold": "a", "kind": "text"}
    results = checked(tmp_path, capsys, good, b"", line, good)
    assert [result["verdict"] for result in results] == ["correct", "unscored", "correct"]
    assert results[1]["reason"] == reason
    assert results[1]["error"].startswith("line 3: ")


def test_bad_lines_end_the_command_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text("{\n")
    with pytest.raises(SystemExit) as end:
        main([str(file)])
    assert end.value.code == 1
    assert capsys.readouterr().err == "1 of 1 lines could not be checked; each result says why\n"


@pytest.mark.parametrize(
    ("prediction", "kind", "reason"),
    [
        ("9" * 10**6, "number", "too_long"),
        ("The answer is " + "x " * 500_000, "text", "too_long"),
        ("A a I " * 170_000, "letter", "no_answer"),
        (r"\boxed{1}" * 110_000, "text", "too_long"),
        (r"\boxed{" * 140_000, "number", "no_answer"),
        ("answer to " * 100_000, "number", "too_long"),
        ("```\n" * 250_000, "code", "too_long"),
        (r"\text{" * 160_000, "text", "too_long"),
        (" " * 10**6, "free_text", "no_answer"),
    ],
    ids=lambda value: value[:12],
)
def test_a_megabyte_costs_no_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], prediction: str, kind: str, reason: str
) -> None:
    started = time.monotonic()
    (result,) = checked(tmp_path, capsys, {"prediction": prediction, "gold": "B", "kind": kind})
    assert result == {"verdict": "wrong", "extracted": None, "reason": reason}
    assert time.monotonic() - started < 20


def test_results_come_while_lines_are_still_being_written() -> None:
    process = subprocess.Popen(COMMAND, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    for gold, verdict in (("5", "correct"), ("6", "wrong")):
        process.stdin.write(json.dumps({"prediction": "5", "gold": gold, "kind": "number"}).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["verdict"] == verdict
    process.stdin.close()
    assert process.wait(60) == 0
    process.stdout.close()


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text('{"prediction": "5", "gold": "5", "kind": "number"}\n' * 20_000)
    with subprocess.Popen(
        [*COMMAND, str(file)], cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_a_missing_file_and_no_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([str(tmp_path / "none.jsonl")])
    assert end.value.code == 2
    assert "is no file" in capsys.readouterr().err
    assert checked(tmp_path, capsys, b"", b"\n") == []


def test_without_math_verify_the_command_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("tasks.rewards.algebra._POOLS", {})
    file = tmp_path / "algebra.jsonl"
    file.write_text(json.dumps({"prediction": r"\boxed{2^3}", "gold": "8", "kind": "number"}))
    with pytest.raises(SystemExit) as end:
        main([str(file)])
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("InputError: math-verify")


def test_without_a_sandbox_the_command_says_so(tmp_path: Path) -> None:
    file = tmp_path / "code.jsonl"
    file.write_text(json.dumps({"prediction": "```\nf = abs\n```", "gold": "assert f(-2) == 2", "kind": "code"}))
    command = [*COMMAND, str(file)]
    ended = subprocess.run(command, cwd=CHECKOUT, env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("SandboxError: ") and "apt-get install bubblewrap" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_help_is_light() -> None:
    probe = "import sys, runpy; sys.argv = ['x', '--help']\n"
    probe += "try: runpy.run_module('tasks.rewards.check', run_name='__main__')\n"
    probe += "except SystemExit: print(sorted({'pydantic', 'sympy', 'torch', 'rich'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", probe], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("usage: ") and answer.stdout.splitlines()[-1] == "[]"
