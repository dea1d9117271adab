"""A generator that speaks from a script: the public test double of the seam in tasks/generation/base.py."""

from collections.abc import Sequence

from tasks.generation.base import Completion, Sampling
from tasks.records import Finish


class ScriptedGenerator:
    """Gives the next scripted reply for every completion asked for, prompt by prompt, sample by sample.

    A reply is a text (finished; its token ids are its UTF-8 bytes) or a whole `Completion`. `prompts` keeps
    every prompt seen, in order, so that a test can look at what was asked.
    """

    def __init__(self, replies: Sequence[str | Completion]) -> None:
        self._replies = [_as_completion(reply) for reply in replies]
        self._next = 0
        self.prompts: list[tuple[int, ...]] = []

    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling, seed: int) -> list[list[Completion]]:
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


def _as_completion(reply: str | Completion) -> Completion:
    if isinstance(reply, Completion):
        return reply
    return Completion(tuple(reply.encode()), reply, Finish.FINISHED)
