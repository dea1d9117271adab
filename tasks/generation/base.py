"""The seam between whoever needs text and whatever samples it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tasks.records import Finish


@dataclass(frozen=True)
class Sampling:
    """How to sample. `temperature` 0 is greedy; `top_p` keeps the smallest set of tokens with at least that mass."""

    temperature: float
    top_p: float
    max_new_tokens: int
    samples: int = 1


@dataclass(frozen=True)
class Completion:
    """One sampled reply: ids without the prompt (the end token included when finished) and their decoded text.

    `logprobs` are those of its tokens under the sampling policy, log_softmax(logits / temperature) before any top-p
    cut, or empty where the sampler does not say. They round differently in other batches, so they are not compared.
    """

    token_ids: tuple[int, ...]
    text: str
    finish: Finish
    logprobs: tuple[float, ...] = field(default=(), compare=False)


class Generator(Protocol):
    """Samples replies to prompts that are already token ids (see tasks/tokenization.py)."""

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, seed: int | Sequence[int]
    ) -> list[list[Completion]]:
        """Return `sampling.samples` completions per prompt, in order; the same seed gives the same bytes.

        With a seed for each prompt its completions are those of a call of its own: whatever else is asked for.
        """
        ...
