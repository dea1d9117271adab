"""Models that speak from a script: the public test doubles of the seams in base.py and chat.py of this folder."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from tasks.generation.base import Completion, Sampling
from tasks.generation.chat import Reply, Request, Unanswered
from tasks.records import Finish

Line = str | Reply | Unanswered


class ScriptedGenerator:
    """Gives the next scripted reply for every completion asked for, prompt by prompt, sample by sample.

    A reply is a text (finished; its token ids are its UTF-8 bytes) or a whole `Completion`. `prompts` keeps
    every prompt seen, in order, so that a test can look at what was asked.
    """

    def __init__(self, replies: Sequence[str | Completion]) -> None:
        self._replies = [_as_completion(reply) for reply in replies]
        self._next = 0
        self.prompts: list[tuple[int, ...]] = []

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, seed: int | Sequence[int]
    ) -> list[list[Completion]]:
        """Return `sampling.samples` scripted completions per prompt; the seed changes nothing."""
        del seed  # the script decides
        self.prompts.extend(tuple(prompt) for prompt in prompts)
        return [[self._pop() for _ in range(sampling.samples)] for _ in prompts]

    def _pop(self) -> Completion:
        if self._next == len(self._replies):
            raise IndexError(f"the script holds {len(self._replies)} replies and one more was asked for; add replies")
        reply = self._replies[self._next]
        self._next += 1
        return reply


class ScriptedChat:
    """Answers each request with the next line of a script, or with what a function says to it.

    A line is a text (finished), a whole `Reply`, or `Unanswered`. `requests` keeps every request, in order.
    """

    def __init__(
        self,
        replies: Sequence[Line] | Callable[[Request], Line],
        context_tokens: int = 4096,
        max_output_tokens: int = 256,
    ) -> None:
        self._replies = replies
        self.context_tokens = context_tokens
        self.max_output_tokens = max_output_tokens
        self.requests: list[Request] = []

    def count(self, text: str) -> int:
        """Words between spaces."""
        return len(text.split())

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply | Unanswered]:
        """One line a request, drawn one at a time."""
        for request in requests:
            self.requests.append(request)
            line = self._line(request)
            yield Reply(line, Finish.FINISHED) if isinstance(line, str) else line

    def _line(self, request: Request) -> Line:
        if callable(self._replies):
            return self._replies(request)
        number = len(self.requests)
        if number > len(self._replies):
            raise IndexError(f"the script holds {len(self._replies)} replies and one more was asked for; add replies")
        return self._replies[number - 1]


def _as_completion(reply: str | Completion) -> Completion:
    if isinstance(reply, Completion):
        return reply
    return Completion(tuple(reply.encode()), reply, Finish.FINISHED)
