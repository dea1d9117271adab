"""What all generators of RULER share: a sample as its file has it, and a puzzle, which is a sample of any size."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

LONG = 4096  # tokens from which on the official settings are the harder ones


class Counter(Protocol):
    """Counts tokens; `tasks.tokenization.ChatTokenizer` does."""

    def count(self, text: str) -> int: ...

    def prompt_length(self, content: str) -> int: ...


@dataclass(frozen=True)
class Sample:
    """`input` asks, `answer_prefix` begins the answer, `outputs` are the references."""

    input: str
    answer_prefix: str
    outputs: tuple[str, ...]

    @property
    def prompt(self) -> str:
        """What the model is given (official: `template + answer_prefix`)."""
        return self.input + self.answer_prefix


@dataclass(frozen=True)
class Puzzle:
    """One question whose haystack can have any size from `smallest` on; the same size gives the same sample."""

    smallest: int
    at: Callable[[int], Sample]


@dataclass(frozen=True)
class Places:
    """Where needles go into a haystack, as shares of it, ascending: with its size, the places move, never the order."""

    shares: tuple[float, ...]

    @classmethod
    def draw(cls, needles: int, rng: random.Random) -> "Places":
        """One place a needle."""
        return cls(tuple(sorted(rng.random() for _ in range(needles))))

    def insert(self, needles: Sequence[str], haystack: Sequence[str]) -> list[str]:
        """The haystack with the needles between its pieces, in the order given."""
        merged = list(haystack)
        for done, (needle, share) in enumerate(zip(needles, self.shares, strict=True)):
            merged.insert(int(share * (len(haystack) + 1)) + done, needle)
        return merged


def largest_size(length: Callable[[int], int], limit: int, smallest: int, guess: int) -> int:
    """A size that fits while the next one does not: length(size) <= limit < length(size + 1).

    The smallest size must fit. `length` grows about linearly, so a few measurements suffice; where it does not, halving
    the bracket does.
    """
    low, low_length = smallest, length(smallest)
    origin = low_length
    size = max(guess, low + 1)
    while (measured := length(size)) <= limit:
        low, low_length = size, measured
        per_unit = (measured - origin) / (size - smallest)
        size += max(1, min(size, int((limit - measured) / per_unit) if per_unit > 0 else size))
    high, high_length, halve = size, measured, False
    while high - low > 1:
        step = (high - low) // 2 if halve else int((high - low) * (limit - low_length) / (high_length - low_length))
        size = low + min(max(step, 1), high - low - 1)
        measured, width = length(size), high - low
        if measured <= limit:
            low, low_length = size, measured
        else:
            high, high_length = size, measured
        halve = not halve and high - low > width // 2
    return low


def cycled(pieces: Sequence[str], count: int) -> list[str]:
    """The first `count` pieces, from the beginning again after the last."""
    whole, rest = divmod(count, len(pieces))
    return [*pieces] * whole + [*pieces[:rest]]


def distinct(draw: Callable[[], str], count: int, taken: Sequence[str] = ()) -> list[str]:
    """`count` different draws, none of them taken already."""
    found: dict[str, None] = {}
    while len(found) < count:
        text = draw()
        if text not in taken:
            found[text] = None
    return list(found)
