"""json and jsonl. Numbers keep the digits they are written with."""

import json
from pathlib import Path

from tasks.corpus.formats.base import Extract, Part
from tasks.corpus.formats.decoding import Decoded, decode_file
from tasks.corpus.formats.records import Record, parts_of, written_out
from tasks.errors import InputError


def read_json(path: Path) -> Extract:
    """A list of objects is read as records, anything else is written out.

    Raises:
        InputError: it is no JSON, or an object repeats a name.
    """
    decoded = decode_file(path)
    try:
        value = _loads(decoded.text)
    except ValueError as error:
        raise InputError(f"not JSON: {error}") from error
    if isinstance(value, list) and value and all(isinstance(record, dict) for record in value):
        return _extract(parts_of(value), decoded)
    return _extract((Part((written_out(value),)),), decoded)


def read_jsonl(path: Path) -> Extract:
    """Lines that are no object are left out with a remark.

    Raises:
        InputError: no line is one.
    """
    decoded = decode_file(path)
    lines = [(number, line) for number, line in enumerate(decoded.text.split("\n"), 1) if line.strip()]
    records: list[Record] = []
    bad: list[int] = []
    for number, line in lines:
        try:
            value = _loads(line)
        except ValueError:
            value = None
        if isinstance(value, dict):
            records.append(value)
        else:
            bad.append(number)
    if not records:
        raise InputError("no line is a JSON object")
    remark = (f"{len(bad)} of {len(lines)} lines are no JSON object, first line {bad[0]}",) if bad else ()
    return _extract(parts_of(records), decoded, remark)


def _extract(parts: tuple[Part, ...], decoded: Decoded, remarks: tuple[str, ...] = ()) -> Extract:
    return Extract(
        parts,
        encoding=decoded.encoding,
        remarks=decoded.remarks + remarks,
        replaced=decoded.replaced,
        removed=decoded.removed,
        breaks=decoded.breaks,
    )


def _loads(text: str) -> object:
    return json.loads(text, parse_int=str, parse_float=str, parse_constant=str, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, object]]) -> Record:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object repeats a name")
    return found
