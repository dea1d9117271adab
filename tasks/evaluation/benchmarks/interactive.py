"""What a benchmark of several turns states: it plays its tasks against a checkpoint, many conversations in step."""

from collections.abc import Generator as Coroutine
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypeVar
from zlib import crc32

import numpy as np

from tasks.evaluation.benchmarks.base import Attempt, Score, Task
from tasks.evaluation.benchmarks.conversation import Conversations, Message
from tasks.generation.base import Completion, Generator, Sampling
from tasks.rewards.judge import Judge

T = TypeVar("T", bound=Task)
R = TypeVar("R")

PROMPTS_PER_CALL = 64

# Yields what was said so far, is sent the model's next reply (None: the conversation no longer fits its window) and
# returns what came of it.
Dialogue = Coroutine[Sequence[Message], Completion | None, R]


@dataclass(frozen=True)
class Model:
    """A checkpoint that talks. `window` is the longest prompt in tokens; `sampling` is for one reply, of one sample."""

    generator: Generator
    conversations: Conversations
    sampling: Sampling
    window: int


@dataclass(frozen=True)
class Played(Generic[T]):
    """An attempt, with the tokens of its last prompt (all that was said before) and of everything it sampled."""

    attempt: Attempt[T]
    input_tokens: int
    output_tokens: int


class Interactive(Protocol[T]):
    """A benchmark whose tasks take several turns. `read` and `score` are those of `base.Benchmark`."""

    name: ClassVar[str]
    source: ClassVar[str]

    def read(self, folder: Path) -> Iterator[T]: ...

    def play(self, tasks: Sequence[T], model: Model, seed: int) -> list[Played[T]]:
        """One attempt at every task, in order; the same seed gives the same. For k samples, play k times."""
        ...

    def score(self, attempts: Sequence[Attempt[T]], judge: Judge | None) -> list[Score]: ...


@dataclass(frozen=True)
class Held(Generic[R]):
    """What a dialogue returned, and its tokens: of the last prompt, and of all replies."""

    result: R
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class _Open(Generic[R]):
    """A dialogue on its way."""

    name: str
    dialogue: Dialogue[R]
    messages: Sequence[Message] = ()
    step: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


def hold(dialogues: Mapping[str, Dialogue[R]], model: Model, seed: int) -> dict[str, Held[R]]:
    """Hold all dialogues at once, a reply of each in turn. A dialogue's name and step seed its replies.

    So a dialogue goes the same way whatever others are held beside it.
    """
    held: dict[str, Held[R]] = {}
    replies: Iterable[tuple[_Open[R], Completion | None]] = [
        (_Open(name, dialogue), None) for name, dialogue in dialogues.items()
    ]
    while True:
        running: list[_Open[R]] = []
        for state, completion in replies:
            try:
                running.append(replace(state, messages=state.dialogue.send(completion), step=state.step + 1))
            except StopIteration as end:
                held[state.name] = Held(end.value, state.input_tokens, state.output_tokens)
        if not running:
            return held
        replies = _replies(running, model, seed)


def _replies(running: Sequence[_Open[R]], model: Model, seed: int) -> Iterator[tuple[_Open[R], Completion | None]]:
    for start in range(0, len(running), PROMPTS_PER_CALL):
        batch = running[start : start + PROMPTS_PER_CALL]
        prompts = [model.conversations.ids(state.messages) for state in batch]
        fitting = [index for index, ids in enumerate(prompts) if len(ids) <= model.window]
        seeds = [_seed(seed, batch[index]) for index in fitting]
        groups = (
            model.generator.generate([prompts[index] for index in fitting], model.sampling, seeds) if fitting else []
        )
        said = {index: completions[0] for index, completions in zip(fitting, groups, strict=True)}
        for index, state in enumerate(batch):
            yield _counted(state, len(prompts[index]), said.get(index)), said.get(index)


def _counted(state: _Open[R], prompt: int, completion: Completion | None) -> _Open[R]:
    sampled = len(completion.token_ids) if completion else 0
    return replace(state, input_tokens=prompt, output_tokens=state.output_tokens + sampled)


def _seed(seed: int, state: _Open[R]) -> int:
    return int(np.random.SeedSequence([seed, crc32(state.name.encode()), state.step]).generate_state(1)[0])
