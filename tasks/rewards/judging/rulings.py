"""How a judge's reply states its verdict. What is not stated in the agreed form is unparsed; nothing is guessed."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, StrictBool, StrictStr, ValidationError

from tasks.generation.json_text import NoObjectError, find_object

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# Possessive (*+): linear time on any reply. No quote before the colon: JSON has a way of its own.
_GAP = r"[\s*_]*+(?:\bis\b)?[\s*_]*+[:=-]?[\s*_`\"'(\[]*+"
_OPEN = r"[\s*_`\"'(\[>#-]*+"
_WRAP = r"[\s*_`\"'.,:!)\]-]*+"


class Ruling(StrEnum):
    """What one reply of a judge says."""

    CORRECT = "correct"
    INCORRECT = "incorrect"
    UNPARSED = "unparsed"


class Form(Protocol[T_co]):
    """An agreement with the judge: what it is asked to write, and how that is read."""

    @property
    def unparsed(self) -> T_co:
        """What a reply means that does not keep to the form."""
        ...

    @property
    def request(self) -> str:
        """The last sentence of the prompt."""
        ...

    def read(self, reply: str) -> T_co:
        """What a finished reply says; thinking before </think> does not count."""
        ...


@dataclass(frozen=True)
class Words(Generic[T]):
    """The reply ends in "Verdict: WORD", or is the word alone, or a JSON object with the field "verdict" or "match".

    Only the end counts: reasoning names both words, and quotes what the answer claims about itself.
    """

    meanings: Mapping[str, T]  # in capitals
    shown: tuple[str, ...]  # those that the judge is told of
    unparsed: T

    @property
    def request(self) -> str:
        """Thinking is allowed, the last line is not free."""
        lines = " or ".join(f'"Verdict: {word}"' for word in self.shown)
        return f"Keep your reasoning short and end with a line of its own that says {lines}."

    def read(self, reply: str) -> T:
        """The meaning of the word at the end."""
        said = _said(reply)
        match = self._end.search(said) or self._alone.fullmatch(said)
        word = match[1] if match else _json_verdict(said)
        return self.meanings.get(word.upper(), self.unparsed)

    @cached_property
    def _end(self) -> re.Pattern[str]:
        return re.compile(rf"\bverdict{_GAP}\b({self._any})\b{_WRAP}\Z", re.IGNORECASE)

    @cached_property
    def _alone(self) -> re.Pattern[str]:
        return re.compile(rf"{_OPEN}({self._any})\b{_WRAP}", re.IGNORECASE)

    @property
    def _any(self) -> str:
        return "|".join(map(re.escape, self.meanings))


@dataclass(frozen=True)
class Marks(Generic[T]):
    """One of the marks stands in the reply, as often as it likes, and no other does."""

    meanings: Mapping[str, T]  # in capitals
    unparsed: T

    @property
    def request(self) -> str:
        """Official scorers search the whole reply."""
        return f"End with {' or '.join(self.meanings)}, and write neither of them anywhere else."

    def read(self, reply: str) -> T:
        """The meaning of the only mark."""
        said = _said(reply).upper()
        found = [meaning for mark, meaning in self.meanings.items() if mark in said]
        return found[0] if len(found) == 1 else self.unparsed


class _Verdict(BaseModel):
    """A verdict in JSON; models tuned as judges write what they were tuned on. Both fields at once are none."""

    model_config = ConfigDict(extra="ignore")
    verdict: StrictBool | StrictStr | None = None
    match: StrictBool | StrictStr | None = None


def _said(reply: str) -> str:
    """The reply after its thinking, full-width letters and colons in ASCII."""
    return unicodedata.normalize("NFKC", reply).rpartition("</think>")[2].partition("<think>")[0].strip()


def _json_verdict(said: str) -> str:
    """The word in a reply that is a JSON object and nothing else, or ""."""
    bare = said.removeprefix("```json").strip("`").strip()
    try:
        record = _Verdict.model_validate_json(bare) if find_object(bare) == bare else _Verdict()
    except (NoObjectError, ValidationError):
        return ""
    values = [value for value in (record.verdict, record.match) if value is not None]
    return str(values[0]).strip() if len(values) == 1 else ""
