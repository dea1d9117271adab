"""The one JSON object in what a model wrote: alone, in a fenced block, or with words around it."""

import json
import re
from collections.abc import Iterator

FENCED = re.compile(r"```[A-Za-z]*\s(.*?)```", re.DOTALL)
ATTEMPTS = 64  # starts that turn out to be no object; bounds the work on text made of braces


class NoObjectError(ValueError):
    """There is no object, more than one, or one that is not JSON; the message says which, and where."""


def find_object(text: str) -> str:
    """The text of the one JSON object of a reply, thinking before </think> left out.

    Fenced blocks go before loose text. JSON as RFC 8259 has it: no NaN, no key twice. An object inside a broken one is
    never taken for the answer. Takes linear time, and any text.

    Raises:
        NoObjectError: no object, several different ones, or a broken one.
    """
    if _is_object(text.strip()):
        return text.strip()
    answer = _without_thinking(text)
    blocks: list[str] = FENCED.findall(answer)
    found = {block.strip() for block in blocks if _is_object(block.strip())} or set(_objects(answer))
    if len(found) > 1:
        raise NoObjectError("it holds different JSON objects, and one is wanted")
    if not found:
        raise NoObjectError(_why_none(answer))
    return found.pop()


def _without_thinking(text: str) -> str:
    """A reply that begins with its JSON has not been thought about aloud: a tag in it belongs to the JSON."""
    if text.lstrip().startswith(("{", "```")):
        return text
    answer = text.rpartition("</think>")[2]
    return "" if answer.lstrip().startswith("<think>") else answer


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    tree = dict(pairs)
    if len(tree) < len(pairs):
        raise NoObjectError("a key is given twice")
    return tree


def _refuse(constant: str) -> None:
    raise NoObjectError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse)


def _decode(text: str, start: int) -> int:
    """Where the object that starts here ends."""
    try:
        return _DECODER.raw_decode(text, start)[1]
    except RecursionError:
        raise NoObjectError("its JSON is nested too deeply") from None
    except ValueError as error:  # json's own, ours above, and Python's for a number of thousands of digits
        raise NoObjectError(f"its JSON is broken: {error}") from None


def _is_object(text: str) -> bool:
    try:
        return text.startswith("{") and _decode(text, 0) == len(text)
    except NoObjectError:
        return False


def _objects(text: str) -> Iterator[str]:
    """Objects that lie in no other braces."""
    start, attempts = text.find("{"), 0
    while start >= 0 and attempts < ATTEMPTS:
        try:
            end = _decode(text, start)
            yield text[start:end]
        except NoObjectError:
            end, attempts = _closing(text, start), attempts + 1
        start = text.find("{", end)


def _closing(text: str, start: int) -> int:
    """Behind the brace that closes the one at `start`; the end of the text where none does."""
    depth = 0
    for brace in re.compile("[{}]").finditer(text, start):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return brace.end()
    return len(text)


def _why_none(text: str) -> str:
    start = text.find("{")
    if start < 0:
        return "it holds no JSON object"
    try:
        _decode(text, start)
    except NoObjectError as error:
        return str(error)
    raise AssertionError("an object that decodes would have been found")
