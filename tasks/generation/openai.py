"""A model behind an endpoint that speaks OpenAI's chat protocol: OpenAI's own, vLLM, llama.cpp, Ollama, proxies."""

import asyncio
import ipaddress
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from tasks.errors import ParameterError, PipelineError
from tasks.generation.chat import Reply, Request, Unanswered
from tasks.generation.estimate import estimated_tokens
from tasks.generation.ledger import Ledger, Tokens
from tasks.generation.schemas import served_schema, with_schema
from tasks.params import EndpointWriter
from tasks.records import Finish

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

logger = logging.getLogger(__name__)

AHEAD = 4  # windows of requests that may be drawn, so that one slow reply does not hold up the others
TEMPLATE_TOKENS = 64  # what a server's chat template adds to a prompt, at most
PAUSE_SECONDS = 120.0  # the longest Retry-After that the client follows
SHOWN = 300  # characters of a server's message
REFUSALS = 8  # requests refused before any was answered: the settings are wrong, not the requests
NO_KEY = "none"  # servers on this machine mostly ask for none, the client always sends one
HOPELESS = {  # of every further request, too
    401: "the key is not accepted: set a valid one in the environment variable {key_variable}",
    402: "the account has no credit: add some, what was answered is kept",
    404: "check {section}.base_url (mostly it ends in /v1) and {section}.model",
}
NO_CREDIT = "insufficient_quota"  # OpenAI's code for an empty account, under status 429
REFUSED_PARAMETER = (400, 422, 501)
INSTEAD = {
    "response_format": "the prompt shows the schema instead, and replies are checked as before",
    "max_tokens": "max_completion_tokens is sent instead",
}
OPTIONAL = ("response_format", "seed", "temperature", "top_p", "max_tokens")  # what some servers or models do not take


class EndpointChat:
    """A chat model over HTTP: `concurrency` requests at a time, results in order.

    The client retries on timeouts, lost connections, 408, 409, 429 and 5xx, after growing, jittered pauses or as long
    as Retry-After says; what fails `attempts` times is unanswered. What concerns every request ends the stream.

    The key is sent to the server and nowhere else: it is cut out of the server's messages.
    """

    def __init__(self, writer: EndpointWriter, ledger: Ledger, section: str = "synthesis.writer") -> None:
        """Connects only when asked. `section` is that of the parameters from which `writer` comes.

        Raises:
            ParameterError: there is no key, and the server is not on this machine.
        """
        self._writer = writer
        self._ledger = ledger
        self._section = section
        self._key = read_key(writer, section)
        self._listener: Callable[[Request, Reply], None] = _nobody
        self._not_taken: frozenset[str] = frozenset()
        self._answered = 0
        self._refused = 0
        self._places = asyncio.Semaphore(writer.concurrency)

    @property
    def context_tokens(self) -> int:
        return self._writer.context_tokens

    @property
    def max_output_tokens(self) -> int:
        return self._writer.max_output_tokens

    def count(self, text: str) -> int:
        """An upper estimate: see estimate.py."""
        return estimated_tokens(text)

    def counts(self) -> Mapping[str, float]:
        """Tokens and cost, also of earlier runs of the stage."""
        return self._ledger.counts()

    def announce(self, listener: Callable[[Request, Reply], None]) -> None:
        """Tell of replies as they arrive, from the thread of the event loop."""
        self._listener = listener

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply | Unanswered]:
        """Answer in order, drawing at most a few windows ahead.

        Raises:
            PipelineError: the budget does not suffice, or the server refuses key, model or all requests.
        """
        pending: deque[Future[Reply | Unanswered]] = deque()
        try:
            for request in requests:
                pending.append(asyncio.run_coroutine_threadsafe(self._answer(request), self._loop))
                while pending and (pending[0].done() or len(pending) >= AHEAD * self._writer.concurrency):
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        """In a thread of its own, so that requests go on while their replies are worked on here."""
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, name="endpoint", daemon=True).start()
        return loop

    @cached_property
    def _client(self) -> "AsyncOpenAI":
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        for name in ("httpx", "httpx2", "openai"):
            logging.getLogger(name).setLevel(logging.WARNING)  # a line a request says nothing
        return AsyncOpenAI(
            api_key=self._key,
            base_url=self._writer.base_url,
            timeout=self._writer.timeout_seconds,
            max_retries=self._writer.attempts - 1,
            http_client=DefaultAsyncHttpxClient(trust_env=not on_this_machine(self._writer.base_url)),
        )

    async def _answer(self, request: Request) -> Reply | Unanswered:
        async with self._places, self._ledger.reserved(self._most(request)) as spent:
            try:
                async with asyncio.timeout(self._writer.attempts * (self._writer.timeout_seconds + PAUSE_SECONDS)):
                    body = await self._send(request)
            except Exception as error:
                return Unanswered(self._reason(error))
            outcome = self._read(body, request, spent)
            if isinstance(outcome, Reply):
                self._listener(request, outcome)
            return outcome

    def _most(self, request: Request) -> Tokens:
        prompt = estimated_tokens(request.prompt) + TEMPLATE_TOKENS
        if request.schema:
            prompt += estimated_tokens(with_schema("", request.schema))
        return Tokens(prompt, request.sampling.max_new_tokens)

    async def _send(self, request: Request) -> str:
        """The body of the server's answer. What this server does not take is left out, also of later requests."""
        from openai import APIStatusError

        refusal: APIStatusError | None = None
        without = self._not_taken
        while True:
            options = self._options(request, without)
            try:
                answer = await self._client.chat.completions.with_raw_response.create(**options)
            except APIStatusError as error:
                refusal = refusal or error
                culprit = _culprit(error, options)
                if culprit is None:
                    raise refusal from None
                without |= {culprit}
                continue
            self._leave_out(without)
            return str(answer.text)

    def _options(self, request: Request, without: frozenset[str]) -> dict[str, Any]:
        sampling = request.sampling
        prompt, held = request.prompt, {}
        if request.schema and "response_format" not in without:
            form = {"name": request.schema.__name__, "strict": True, "schema": served_schema(request.schema)}
            held = {"response_format": {"type": "json_schema", "json_schema": form}}
        elif request.schema:
            prompt = with_schema(prompt, request.schema)
        options = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": request.seed,
            "max_tokens": sampling.max_new_tokens,
            **held,
        }
        limit = {"max_completion_tokens": sampling.max_new_tokens} if "max_tokens" in without else {}
        messages = [{"role": "user", "content": prompt}]
        taken = {name: value for name, value in options.items() if name not in without}
        return {"model": self._writer.model, "messages": messages, **taken, **limit}

    def _leave_out(self, without: frozenset[str]) -> None:
        for name in sorted(without - self._not_taken):
            logger.warning("%s does not take %s: %s", self._writer.base_url, name, INSTEAD.get(name, "left out"))
        self._not_taken |= without

    def _read(self, body: str, request: Request, spent: Tokens) -> Reply | Unanswered:
        try:
            answer = _Answer.model_validate_json(body)
        except ValidationError:
            return Unanswered(f"the server's answer is no chat completion: {self._shown(body)}")
        choice = answer.choices[0] if answer.choices else _Choice(message=_Message())
        text = choice.message.content
        usage = answer.usage or _Usage()
        spent.input = usage.prompt_tokens or self._most(request).input
        spent.output = usage.completion_tokens or estimated_tokens(text or "")
        self._answered += 1
        if choice.finish_reason == "content_filter":
            return Unanswered("the server's filter withheld the reply")
        if text is None:
            return Unanswered(f"the server's answer holds no text (finish_reason {choice.finish_reason})")
        return Reply(text, Finish.TRUNCATED if choice.finish_reason == "length" else Finish.FINISHED)

    def _reason(self, error: Exception) -> str:
        """Why there is no reply.

        Raises:
            PipelineError: there will be none to other requests either.
        """
        from openai import APIConnectionError, APIStatusError, APITimeoutError

        attempts, seconds = self._writer.attempts, self._writer.timeout_seconds
        if isinstance(error, APIStatusError):
            return self._refusal(error)
        if isinstance(error, (APITimeoutError, TimeoutError)):
            return f"no answer within {seconds:g} s, tried {attempts} times"
        if isinstance(error, APIConnectionError):
            return f"no connection, tried {attempts} times: {self._shown(str(error.__cause__ or error))}"
        raise error

    def _refusal(self, error: "APIStatusError") -> str:
        said = f"{self._writer.base_url} answered {error.status_code}: {self._shown(error.message)}"
        if remedy := HOPELESS.get(402 if error.code == NO_CREDIT else error.status_code):
            named = remedy.format(key_variable=self._writer.key_variable, section=self._section)
            raise PipelineError(f"{said}; {named}") from None
        if error.status_code >= 500 or error.status_code in (408, 409, 429):
            return f"{said} (tried {self._writer.attempts} times)"
        self._refused += 1
        if self._refused >= REFUSALS and not self._answered:
            raise PipelineError(f"{said}, to all of {self._refused} requests; check {self._section}") from None
        return said

    def _shown(self, message: str) -> str:
        return message.replace(self._key, "***")[:SHOWN] if self._key != NO_KEY else message[:SHOWN]


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Answer(BaseModel):
    """What we read of a chat completion; compatible servers leave out or add the rest."""

    choices: list[_Choice]
    usage: _Usage | None = None


def read_key(writer: EndpointWriter, section: str = "synthesis.writer") -> str:
    """The key from the environment, or a placeholder for a server on this machine.

    Raises:
        ParameterError: there is none, or it is no key; the message never holds it.
    """
    key = os.environ.get(writer.key_variable, "").strip()
    if not key and on_this_machine(writer.base_url):
        return NO_KEY
    if not key:
        raise ParameterError(
            f"{section}.key_variable = {writer.key_variable!r}: this environment variable is not set, and "
            f"{writer.base_url} is not on this machine; export the key, or any word if the server asks for none"
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ParameterError(f"the key in {writer.key_variable} holds characters that no key has; copy it again")
    return key


def on_this_machine(url: str) -> bool:
    """Whether the host of the URL is localhost or a loopback address."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _culprit(error: "APIStatusError", options: dict[str, Any]) -> str | None:
    """The parameter without which the server may answer; where it names none, the one that is taken least often."""
    if error.status_code not in REFUSED_PARAMETER:
        return None
    named = str(error.param).partition(".")[0]
    for name in (named, "response_format"):
        if name in OPTIONAL and name in options:
            return name
    return None


def _nobody(request: Request, reply: Reply) -> None:
    """Listens to nothing."""
