"""Generate test cases and keep the problems they can judge: `python -m tasks.rewards.code.vet FILE`.

Each line {"problem", "generator" or "inputs", "submissions"} gives one line: {"problem", "outcome": "kept", "cases":
[{"stdin", "stdout"}], "votes", "passing"}, or another outcome that says why the problem is dropped. The cases are a
gold answer of kind code (tasks/rewards/code/cases.py). Generators and submissions run in the sandbox. A line that
cannot be read is dropped with an "error", and the command ends with 1.

The rules are those of Kimi k1.5: see tasks/rewards/code/agreement.py.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tasks.cli import one_line_errors
from tasks.errors import InputError
from tasks.rewards.lines import BadLineError, raw_lines, row_of

if TYPE_CHECKING:
    from tasks.rewards.code.vetting import Problem

LONGEST_LINE = 64 * 1024**2  # bytes; inputs may be long
EXIT_BAD_LINES = 1
_FIELDS = """fields of a line:
  problem      its id or text, copied to the result
  generator    a program that reads a seed (0, 1, …) and prints one input; or
  inputs       the inputs themselves
  submissions  at least 10 programs said to be right; the first 10 different ones are run"""


def main(argv: Sequence[str] | None = None) -> None:
    """Vet the problems of a file."""
    parser = argparse.ArgumentParser(
        prog="python -m tasks.rewards.code.vet",
        description="Generate test cases for programming problems, and keep the problems on which submissions agree.",
        epilog=_FIELDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, help="JSON lines")
    options = parser.parse_args(argv)
    with one_line_errors():
        if not options.file.is_file():
            raise InputError(f"{options.file} is no file; give a file of JSON lines")
        from tasks.rewards.code.sandbox import require_sandbox

        require_sandbox()
        with options.file.open("rb") as stream:
            outcomes = _run(stream)
    counted = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()) or "no problems"
    print(counted, file=sys.stderr)
    if outcomes["bad_line"]:
        raise SystemExit(EXIT_BAD_LINES)


def _run(stream: BinaryIO) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    for result in _results(stream):
        outcomes["bad_line" if "error" in result else result["outcome"]] += 1
        print(json.dumps(result, ensure_ascii=False), flush=True)
    return outcomes


def _results(stream: BinaryIO) -> Iterator[dict[str, Any]]:
    from tasks.rewards.code.vetting import vetted

    for number, raw in enumerate(raw_lines(stream, LONGEST_LINE), 1):
        if raw is not None and not raw.strip():
            continue
        try:
            yield vetted(_problem(raw)).model_dump(exclude_none=True)
        except BadLineError as error:
            yield {"problem": None, "outcome": error.reason, "error": f"line {number}: {error}"}


def _problem(raw: bytes | None) -> "Problem":
    from pydantic import ValidationError

    from tasks.rewards.code.vetting import Problem

    try:
        return Problem.model_validate(row_of(raw, LONGEST_LINE))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "line"
        raise BadLineError("bad_field", f"{field}: {first['msg']}") from error


if __name__ == "__main__":
    main()
