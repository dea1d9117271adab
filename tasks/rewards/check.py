"""Check answers given as JSON lines: `python -m tasks.rewards.check FILE`, or on standard input.

Each line {"prediction": …, "gold": …, "kind": …} gives one line {"verdict", "extracted", "reason"}, in order and at
once. A line that cannot be checked is unscored, with a named reason and an "error"; the others go on, and the command
ends with 1. Progress goes to standard error.
"""

import argparse
import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, BinaryIO

from tasks.cli import one_line_errors
from tasks.errors import InputError
from tasks.rewards.lines import BadLineError, raw_lines, row_of

if TYPE_CHECKING:
    from tasks.records import Finish
    from tasks.rewards.reasons import Checked
    from tasks.rewards.rules import Gold

PROGRESS_S = 10.0
EXIT_BAD_LINES = 1
_FIELDS = {
    "id": "copied to the result",
    "prediction": "the reply; its last \\boxed{} or \"the answer is\" counts, else the whole of it",
    "gold": "the gold answer; for lists a JSON list. A number may have its tolerance: \"9.81 ± 0.02\", \"9.81 ± 1%\".\n"
    "             For code a list of tests: {\"stdin\": \"2 3\", \"stdout\": \"5\"} or \"assert add(2, 3) == 5\"",
    "kind": "letter, number, quantity, percent, date, list, ordered_list, set, text, yes_no, code or free_text",
    "question": "optional; may say a unit, \"in percent\" or DD/MM/YYYY",
    "options": "optional; the options of a letter question",
    "finish": "optional; finished (default) or truncated",
}  # fmt: skip
_NEEDED = ("prediction", "gold", "kind")
_HALF = re.compile("[\ud800-\udfff]")
Line = tuple[int, str | int | None, "Future[Checked] | BadLineError"]


def main(argv: Sequence[str] | None = None) -> None:
    """Check the lines of a file or of standard input."""
    listed = "\n".join(f"  {name:<10} {meaning}" for name, meaning in _FIELDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m tasks.rewards.check",
        description="Check answers given as JSON lines; writes verdict (correct, wrong, unscored), extracted, reason.",
        epilog=f"fields of a line:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", nargs="?", type=Path, help="JSON lines; standard input without it")
    options = parser.parse_args(argv)
    with one_line_errors():
        if options.file is None:
            bad = _run(sys.stdin.buffer)
        else:
            if not options.file.is_file():
                raise InputError(f"{options.file} is no file; give a file of JSON lines, or none for standard input")
            with options.file.open("rb") as stream:
                bad = _run(stream)
    if bad:
        raise SystemExit(EXIT_BAD_LINES)


def _run(stream: BinaryIO) -> int:
    """Write a result per line as soon as it and all before it are there; return the number of bad lines."""
    from tasks.rewards.rules import IN_FLIGHT

    lines: Queue[Line | Exception | None] = Queue(IN_FLIGHT)
    Thread(target=_read_into, args=(stream, lines), daemon=True).start()
    count, bad, shown = 0, 0, time.monotonic()
    try:
        while line := lines.get():
            if isinstance(line, Exception):
                raise line
            result = _result(*line)
            count, bad = count + 1, bad + ("error" in result)
            sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")
            if lines.empty():
                sys.stdout.flush()
            if time.monotonic() - shown > PROGRESS_S:
                shown = time.monotonic()
                print(f"{count} checked, {bad} of them bad lines", file=sys.stderr, flush=True)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough; Python would complain once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if bad:
        print(f"{bad} of {count} lines could not be checked; each result says why", file=sys.stderr)
    return bad


def _read_into(stream: BinaryIO, lines: "Queue[Line | Exception | None]") -> None:
    """Start the checks of all lines. The queue ends with None, or with the error that ended the reading."""
    try:
        _submit_all(stream, lines)
    except Exception as error:
        lines.put(error)
    lines.put(None)


def _submit_all(stream: BinaryIO, lines: "Queue[Line | Exception | None]") -> None:
    from tasks.rewards.rules import submit

    for number, raw in enumerate(raw_lines(stream), 1):
        if raw is not None and not raw.strip():
            continue
        name: str | int | None = None
        try:
            row = row_of(raw)
            name = row.get("id")
            lines.put((number, name, submit(*_asked(row))))
        except BadLineError as error:
            lines.put((number, name, error))


def _asked(row: dict[str, Any]) -> "tuple[str, Finish, Gold]":
    from tasks.records import AnswerKind, Finish
    from tasks.rewards.rules import Gold

    for field in _NEEDED:
        if row.get(field) is None:
            raise BadLineError(f"missing_{field}", f"{field} is missing or null; every line needs {', '.join(_NEEDED)}")
    unknown = sorted(set(row) - set(_FIELDS))
    if unknown:
        raise BadLineError("unknown_field", f"unknown field {unknown[0]!r}; known: {', '.join(_FIELDS)}")
    kind = _member(AnswerKind, row["kind"], "kind")
    texts = _cases(row["gold"]) if kind is AnswerKind.CODE else _texts(row["gold"], "gold")
    gold = Gold(texts, kind, _text(row.get("question", ""), "question"), _options(row))
    return _text(row["prediction"], "prediction"), _member(Finish, row.get("finish", "finished"), "finish"), gold


def _member(kinds: Any, value: object, field: str) -> Any:
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return kinds(value)
    raise BadLineError(f"unknown_{field}", f"{field} is {str(value)[:40]!r}; it must be one of {', '.join(kinds)}")


def _options(row: dict[str, Any]) -> tuple[str, ...]:
    return _texts(row["options"], "options") if row.get("options") else ()


def _cases(value: object) -> tuple[str, ...]:
    """Test cases as a stored question has them: texts. Here they may be objects, too."""
    items = value if isinstance(value, list) else [value]
    for item in items:
        if isinstance(item, dict) and (set(item) != {"stdin", "stdout"} or set(map(type, item.values())) != {str}):
            raise BadLineError("bad_gold", f"gold has a case {str(item)[:40]!r}; it must have texts stdin and stdout")
    return _texts([json.dumps(item) if isinstance(item, dict) else item for item in items], "gold")


def _texts(value: object, field: str) -> tuple[str, ...]:
    return tuple(_text(item, field) for item in (value if isinstance(value, list) else [value]))


def _text(value: object, field: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str):
        raise BadLineError(f"bad_{field}", f"{field} holds a {type(value).__name__}; it must be text or a number")
    if _HALF.search(value):
        raise BadLineError("invalid_utf8", f"{field} holds half a character (a lone surrogate); repair its encoding")
    return value


def _result(number: int, name: str | int | None, outcome: "Future[Checked] | BadLineError") -> dict[str, Any]:
    copied = {} if name is None else {"id": name}
    if isinstance(outcome, BadLineError):
        error = f"line {number}: {outcome}"
        return {**copied, "verdict": "unscored", "extracted": None, "reason": outcome.reason, "error": error}
    checked = outcome.result()
    return {**copied, "verdict": checked.verdict, "extracted": checked.extracted, "reason": checked.reason}


if __name__ == "__main__":
    main()
