"""The seam to models that read and write text: a prompt in, a reply or the reason why there is none out."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pydantic import BaseModel

from tasks.generation.base import Sampling
from tasks.records import Finish


@dataclass(frozen=True)
class Request:
    """One turn of a user. `sampling.samples` is 1; `seed` tells repeated requests apart.

    `schema` asks for JSON of that form; where the model can be held to it while it samples, it is. The prompt says
    what belongs into the fields.
    """

    prompt: str
    sampling: Sampling
    seed: int = 0
    schema: type[BaseModel] | None = None


@dataclass(frozen=True)
class Reply:
    """What the model wrote, and why it ended."""

    text: str
    finish: Finish


@dataclass(frozen=True)
class Unanswered:
    """No reply could be had. Nothing is known about the question: this is not a wrong answer."""

    reason: str


class ChatModel(Protocol):
    """Answers requests, each on its own."""

    @property
    def context_tokens(self) -> int:
        """The most that prompt and reply may have together."""
        ...

    @property
    def max_output_tokens(self) -> int:
        """The most that a reply may have."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a text, or an upper estimate where the tokenizer is not known."""
        ...

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply | Unanswered]:
        """Answer in order, drawing requests as it goes, so that a long stream needs little memory."""
        ...


@runtime_checkable
class Announcing(Protocol):
    """A model whose replies arrive in another order than they are given back in."""

    def announce(self, listener: Callable[[Request, Reply], None]) -> None:
        """Tell `listener` of every reply as it arrives, from whatever thread."""
        ...


@runtime_checkable
class Metered(Protocol):
    """A model that knows what it cost."""

    def counts(self) -> Mapping[str, float]:
        """Named totals, ready to be logged."""
        ...
