"""JSON lines from anybody: what is wrong with one has a name, and the others are read on."""

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

LONGEST_LINE = 4 * 1024**2  # bytes


class BadLineError(Exception):
    """A line that cannot be checked: `reason` is its name, the message says what is wrong and what would be right."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def raw_lines(stream: BinaryIO, longest: int = LONGEST_LINE) -> Iterator[bytes | None]:
    """All lines; None for one of more than `longest` bytes, which is skipped without being kept."""
    while raw := stream.readline(longest + 1):
        if len(raw) > longest:
            while raw and not raw.endswith(b"\n"):
                raw = stream.readline(longest)
            yield None
        else:
            yield raw


def row_of(raw: bytes | None, longest: int = LONGEST_LINE) -> dict[str, Any]:
    """Parse one line. Decimals stay as they are written: 0.10 is not 0.1000000000000000055.

    Raises:
        BadLineError: the line is too long, not UTF-8, not JSON or no object.
    """
    if raw is None:
        raise BadLineError("line_too_long", f"longer than {longest} bytes; shorten it")
    try:
        row = json.loads(raw.decode(), parse_float=str, parse_constant=str)
    except UnicodeDecodeError as error:
        raise BadLineError("invalid_utf8", f"byte {error.start} is not UTF-8; encode the file as UTF-8") from error
    except RecursionError as error:
        raise BadLineError("nested_too_deep", "nested too deep; a line is one flat object") from error
    except ValueError as error:
        raise BadLineError("malformed_json", f"{error}; a line is one JSON object") from error
    if not isinstance(row, dict):
        raise BadLineError("malformed_json", f"a line is one JSON object, not a {type(row).__name__}")
    return row
