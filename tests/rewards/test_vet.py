"""Generated cases and the rules of Kimi k1.5: 7 of 10 for a case, 9 of 10 for a problem."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.records import AnswerKind
from tasks.rewards.code import vetting
from tasks.rewards.code.agreement import Agreed, agreed_cases, passing
from tasks.rewards.code.sandbox import require_sandbox
from tasks.rewards.code.vet import main
from tasks.rewards.rules import Gold, is_same
from tests.conftest import CHECKOUT

ADD = "a, b = map(int, input().split())\nprint(a + b)  # {}"
GENERATOR = "import random\nrandom.seed(int(input()))\nprint(random.randrange(9), random.randrange(9))"


def submissions(*programs: tuple[str, int]) -> list[str]:
    return [program.format(number) for program, count in programs for number in range(count)]


class TestAgreement:
    @pytest.mark.parametrize(
        ("outputs", "votes"),
        [
            (["5"] * 10, 10),
            (["5"] * 7 + ["6"] * 3, 7),
            (["5"] * 6 + ["6"] * 4, None),
            (["5"] * 7 + [None] * 3, 7),
            (["5"] * 3 + [None] * 7, None),  # runs that failed agree on nothing
            ([None] * 10, None),
            ([""] * 10, 10),
        ],
    )
    def test_seven_of_ten(self, outputs: list[str | None], votes: int | None) -> None:
        output = outputs[0] or ""
        expected = [] if votes is None else [Agreed(0, output, votes)]
        assert agreed_cases([[one] for one in outputs]) == expected

    def test_places_are_those_of_the_inputs(self) -> None:
        rows: list[list[str | None]] = [["1", str(number), "3"] for number in range(10)]
        assert agreed_cases(rows) == [Agreed(0, "1", 10), Agreed(2, "3", 10)]

    def test_who_passes_passes_every_case_that_counts(self) -> None:
        rows: list[list[str | None]] = [["1", "2"]] * 8
        rows += [["1", "9"], [None, "2"]]
        cases = agreed_cases(rows)
        assert [case.votes for case in cases] == [9, 9]
        assert passing(rows, cases) == 8

    def test_degenerate(self) -> None:
        assert agreed_cases([]) == agreed_cases([[]] * 10) == []
        assert passing([["1"]] * 10, []) == 0  # no case, nobody has passed anything

    @given(st.lists(st.lists(st.sampled_from(["1", "2", None]), min_size=3, max_size=3), min_size=10, max_size=10))
    def test_passing_never_exceeds_the_votes_of_a_case(self, rows: list[list[str | None]]) -> None:
        cases = agreed_cases(rows)
        assert all(case.votes >= 7 for case in cases)
        assert passing(rows, cases) <= min((case.votes for case in cases), default=0)


def vetted(tmp_path: Path, capsys: pytest.CaptureFixture[str], *lines: bytes | dict[str, Any]) -> list[dict[str, Any]]:
    file = tmp_path / "problems.jsonl"
    file.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
    with contextlib.suppress(SystemExit):
        main([str(file)])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_problem_from_its_generator_to_a_gold_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert vetting.CASES == 50
    monkeypatch.setattr(vetting, "CASES", 8)
    wrong = "a, b = map(int, input().split())\nprint(a - b)"
    line = {"problem": "sum", "generator": GENERATOR, "submissions": submissions((ADD, 9), (wrong, 1))}
    (result,) = vetted(tmp_path, capsys, line)
    assert (result["outcome"], result["passing"]) == ("kept", 9)
    assert 4 < len(result["cases"]) <= 8  # seeds 0 to 7, each input once
    assert set(result["votes"]) <= {9, 10}
    gold = Gold(tuple(map(json.dumps, result["cases"])), AnswerKind.CODE)
    assert is_same(ADD, gold) and not is_same(wrong, gold)


@pytest.mark.parametrize(
    ("inputs", "programs", "expected"),
    [
        (["1 2"], submissions((ADD, 9)), {"outcome": "too_few_submissions"}),
        (["1 2"], [ADD] * 10, {"outcome": "too_few_submissions"}),  # the same one ten times
        ([], submissions((ADD, 10)), {"outcome": "no_inputs"}),
        (["1 2"], submissions((ADD, 6), ("print(0)  # {}", 4)), {"outcome": "no_case_agreed"}),
        (["1 2"], submissions(("1 / 0  # {}", 10)), {"outcome": "no_case_agreed"}),
        (["1 2"], submissions(("# {}", 10)), {"outcome": "says_nothing"}),
        (["1 2", "0 0"], submissions((ADD, 8), ("print(3)  # {}", 2)), {"outcome": "too_few_pass", "passing": 8}),
    ],
)
def test_why_a_problem_is_dropped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], inputs: list[str], programs: list[str], expected: dict[str, Any]
) -> None:
    found = vetted(tmp_path, capsys, {"problem": "p", "inputs": inputs, "submissions": programs})
    assert found == [{"problem": "p", **expected}]


def test_a_generator_that_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vetting, "CASES", 2)
    lines = [
        {"problem": "p", "generator": generator, "submissions": submissions((ADD, 10))}
        for generator in ("1 / 0", "import cyaron", "print()", "")
    ]
    assert [result["outcome"] for result in vetted(tmp_path, capsys, *lines)] == ["no_inputs"] * 4


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        (b"{bad", "malformed_json"),
        (b'{"problem": "\xff"}', "invalid_utf8"),
        (b"[" * 200_000, "nested_too_deep"),
        ({"problem": "p", "inputs": ["1"]}, "bad_field"),
        ({"problem": "p", "submissions": ["1"]}, "bad_field"),
        ({"problem": "p", "inputs": ["1"], "generator": "1", "submissions": []}, "bad_field"),
        ({"problem": "p", "inputs": ["1"], "submissions": [1]}, "bad_field"),
        ({"problem": "p", "inputs": ["1"], "submissions": [], "colour": "red"}, "bad_field"),
    ],
)
def test_a_bad_line_is_named_and_the_rest_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: bytes | dict[str, Any], outcome: str
) -> None:
    good = {"problem": "p", "inputs": [], "submissions": []}
    results = vetted(tmp_path, capsys, good, line, b"", good)
    assert [result["outcome"] for result in results] == ["too_few_submissions", outcome, "too_few_submissions"]
    assert results[1]["error"].startswith("line 2: ")


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for text, code in (("{\n", 1), (None, 2)):
        file = tmp_path / "bad.jsonl"
        file.unlink(missing_ok=True)
        if text:
            file.write_text(text)
        with pytest.raises(SystemExit) as end:
            main([str(file)])
        assert end.value.code == code
    file.write_text("{}\n")
    monkeypatch.setenv("PATH", "")
    require_sandbox.cache_clear()
    with pytest.raises(SystemExit) as end:
        main([str(file)])
    assert end.value.code == 2
    assert "SandboxError" in capsys.readouterr().err
    require_sandbox.cache_clear()


def test_help_is_light() -> None:
    probe = "import sys, runpy; sys.argv = ['x', '--help']\n"
    probe += "try: runpy.run_module('tasks.rewards.code.vet', run_name='__main__')\n"
    probe += "except SystemExit: print(sorted({'pydantic', 'sympy', 'torch', 'rich'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", probe], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("usage: ") and answer.stdout.splitlines()[-1] == "[]"
