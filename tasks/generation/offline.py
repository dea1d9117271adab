"""Chat models made of a sampler on this machine: text in, token ids between, text out."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from pydantic import BaseModel

from tasks.errors import InputError
from tasks.generation.base import Completion, Sampling
from tasks.generation.chat import Reply, Request, Unanswered
from tasks.generation.seeds import derived
from tasks.tokenization import ChatTokenizer


@dataclass(frozen=True)
class TokenRequest:
    """A request in token ids: the whole rendered prompt, with its own sampling (`samples` is 1), seed and schema."""

    prompt: tuple[int, ...]
    sampling: Sampling
    seed: int
    schema: type[BaseModel] | None = None


class Sampler(Protocol):
    """Samples requests that differ in everything, in whatever order suits it."""

    def sample(self, requests: Sequence[TokenRequest]) -> list[Completion]:
        """One completion a request, in order; each depends on its request alone, not on what shares its batch."""
        ...


def sample_groups(
    sampler: Sampler, prompts: Sequence[Sequence[int]], sampling: Sampling, seed: int | Sequence[int]
) -> list[list[Completion]]:
    """What `Generator.generate` promises, by a sampler: `sampling.samples` completions per prompt, in order."""
    one = replace(sampling, samples=1)
    origins = (
        [(seed, number) for number in range(len(prompts))] if isinstance(seed, int) else [(own, 0) for own in seed]
    )
    flat = sampler.sample(
        [
            TokenRequest(tuple(prompt), one, derived(*origin, sample))
            for prompt, origin in zip(prompts, origins, strict=True)
            for sample in range(sampling.samples)
        ]
    )
    return [flat[n : n + sampling.samples] for n in range(0, len(flat), sampling.samples)]


def check_fits(requests: Sequence[TokenRequest], limit: int | None) -> None:
    """Refuse what a model cannot take; `limit` is of tokens, prompt and reply together.

    Raises:
        InputError: a prompt is empty, or with its reply exceeds the limit.
    """
    for request in requests:
        length, new = len(request.prompt), request.sampling.max_new_tokens
        if not length:
            raise InputError("a prompt is empty; it needs at least one token")
        if limit is not None and length + new > limit:
            raise InputError(
                f"a prompt has {length} tokens and may get {new} more; the model has {limit} positions: "
                "shorten the prompt or the reply"
            )


class OfflineChat:
    """A sampler and a chat template as a chat model. Markers written in a prompt's text stay text."""

    def __init__(
        self, sampler: Sampler, tokenizer: ChatTokenizer, context_tokens: int, max_output_tokens: int, batch: int
    ) -> None:
        """`batch` requests are sampled together; it is what a kill costs."""
        self._sampler = sampler
        self._tokenizer = tokenizer
        self.context_tokens = context_tokens
        self.max_output_tokens = max_output_tokens
        self._batch = batch

    def count(self, text: str) -> int:
        """Exactly, without the chat template."""
        return self._tokenizer.count(text)

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply | Unanswered]:
        """Answer in order, batch by batch."""
        coming = iter(requests)
        while batch := list(islice(coming, self._batch)):
            yield from self.answer(batch)

    def answer(self, requests: Sequence[Request]) -> list[Reply | Unanswered]:
        """One batch. A prompt that does not fit the context with its reply is unanswered."""
        asked = [self._in_tokens(request) for request in requests]
        completions = iter(self._sampler.sample([request for request in asked if isinstance(request, TokenRequest)]))
        return [request if isinstance(request, Unanswered) else _reply(next(completions)) for request in asked]

    def _in_tokens(self, request: Request) -> TokenRequest | Unanswered:
        prompt = tuple(self._tokenizer.prompt_ids(request.prompt))
        new = request.sampling.max_new_tokens
        if len(prompt) + new > self.context_tokens:
            return Unanswered(
                f"a prompt of {len(prompt)} tokens and a reply of {new} exceed context_tokens = {self.context_tokens}"
            )
        return TokenRequest(prompt, request.sampling, request.seed, request.schema)


def _reply(completion: Completion) -> Reply:
    return Reply(completion.text, completion.finish)
