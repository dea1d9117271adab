"""Replies as records: JSON of a schema, asked for once more where it is not, refused after that."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from tasks.generation.chat import ChatModel, Reply, Request, Unanswered
from tasks.generation.fencing import fenced
from tasks.generation.json_text import NoObjectError, find_object
from tasks.records import Finish

T = TypeVar("T", bound=BaseModel)
PROBLEMS = 3  # named to the model; one mistake in a long list is often made throughout it


@dataclass(frozen=True)
class Refused:
    """No record could be had. `reason` is one of few, to be counted; `detail` is for whoever looks closer."""

    reason: str
    detail: str = ""


UNANSWERED = "unanswered"
TRUNCATED = "truncated"
MALFORMED = "no JSON object"
MISFIT = "not of the schema"


def ask(model: ChatModel, requests: Iterable[Request], schema: type[T]) -> Iterator[T | Refused]:
    """Records in the order of the requests, drawn as the model draws them.

    A reply that is no JSON of the schema is shown to the model with the problem, once, and only where both fit its
    context. A truncated reply is refused at once: it would be cut again. Strict: "3" is no number.
    """
    return _Exchange(model, requests, schema).records()


def read(text: str, schema: type[T]) -> T | Refused:
    """The record that a finished reply holds (see json_text.py), or why it holds none."""
    try:
        return schema.model_validate_json(find_object(text), strict=True)
    except NoObjectError as error:
        return Refused(MALFORMED, str(error))
    except ValidationError as error:
        return Refused(MISFIT, _explained(error))


def _explained(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    named = [f"{'.'.join(map(str, problem['loc'])) or 'the object'}: {problem['msg']}" for problem in problems]
    left = len(named) - PROBLEMS
    return "; ".join(named[:PROBLEMS]) + (f"; and {left} more" if left > 0 else "")


@dataclass(frozen=True)
class _Asked:
    """A request on its way; `problem` is what was wrong with the first reply, where this is the second try."""

    number: int
    request: Request
    problem: Refused | None = None


class _Exchange(Generic[T]):
    """Second tries join the stream of requests while it runs, so that nobody waits for them and none is nested.

    Records wait for earlier ones that are still out, which are never more than the model has under way.
    """

    def __init__(self, model: ChatModel, requests: Iterable[Request], schema: type[T]) -> None:
        self._model = model
        self._new = enumerate(requests)
        self._schema = schema
        self._again: deque[_Asked] = deque()
        self._out: deque[_Asked] = deque()  # drawn by the model, in the order of its replies
        self._waiting: dict[int, T | Refused] = {}

    def records(self) -> Iterator[T | Refused]:
        number = 0
        more = True
        while more:  # a second time for those that came back broken after the last request was drawn
            for reply in self._model.complete(self._draw()):
                self._take(self._out.popleft(), reply)
                while number in self._waiting:
                    yield self._waiting.pop(number)
                    number += 1
            more = bool(self._again)

    def _draw(self) -> Iterator[Request]:
        while asked := self._next():
            self._out.append(asked)
            yield asked.request

    def _next(self) -> _Asked | None:
        if self._again:
            return self._again.popleft()
        new = next(self._new, None)
        return new and _Asked(new[0], replace(new[1], schema=self._schema))

    def _take(self, asked: _Asked, reply: Reply | Unanswered) -> None:
        record = self._read(reply)
        if isinstance(record, Refused):
            second = self._second(asked, reply, record)
            if second is not None:
                self._again.append(second)
                return
            record = _both(asked.problem, record)
        self._waiting[asked.number] = record

    def _read(self, reply: Reply | Unanswered) -> T | Refused:
        if isinstance(reply, Unanswered):
            return Refused(UNANSWERED, reply.reason)
        if reply.finish is Finish.TRUNCATED:
            return Refused(TRUNCATED, f"the reply was cut after {self._model.max_output_tokens} tokens or fewer")
        return read(reply.text, self._schema)

    def _second(self, asked: _Asked, reply: Reply | Unanswered, refused: Refused) -> _Asked | None:
        if asked.problem or refused.reason not in (MALFORMED, MISFIT) or not isinstance(reply, Reply):
            return None
        prompt = _repair_prompt(asked.request.prompt, reply.text, refused.detail)
        if self._model.count(prompt) + asked.request.sampling.max_new_tokens > self._model.context_tokens:
            return None
        return _Asked(asked.number, replace(asked.request, prompt=prompt), refused)


def _both(first: Refused | None, last: Refused) -> Refused:
    """What was wrong in the end counts, but an answer that was had and broken is not unanswered."""
    if first is None:
        return last
    reason = first.reason if last.reason == UNANSWERED else last.reason
    return Refused(reason, f"{first.detail}; asked again: {last.detail}")


def _repair_prompt(prompt: str, reply: str, problem: str) -> str:
    return (
        f"{prompt}\n\nThis was your reply:\n{fenced(reply, 'reply')}\nIt cannot be used: {problem}.\n"
        "Reply again, with the corrected JSON object alone."
    )
