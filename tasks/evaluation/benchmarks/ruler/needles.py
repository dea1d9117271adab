"""Needle in a haystack: values hidden under keys, among noise, essays or needles of other keys (RULER, niah.py)."""

import random
import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tasks.evaluation.benchmarks.ruler.samples import Places, Puzzle, Sample, cycled, distinct
from tasks.evaluation.benchmarks.ruler.words import key

NOISE = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
NEEDLE = "One of the special magic {kind} for {key} is: {value}."
SEVERAL = (
    "Some special magic {kind} are hidden within the following text. Make sure to memorize it. I will quiz you about "
    "the {kind} afterwards.\n{context}\nWhat are all the special magic {kind} for {query} mentioned in the provided "
    "text?"
)
SEVERAL_PREFIX = " The special magic {kind} for {query} mentioned in the provided text are"
ONE = (
    "A special magic {kind} is hidden within the following text. Make sure to memorize it. I will quiz you about the "
    "{kind} afterwards.\n{context}\nWhat is the special magic {kind} for {query} mentioned in the provided text?"
)
ONE_PREFIX = " The special magic {kind} for {query} mentioned in the provided text is"

Kind = Literal["words", "numbers", "uuids"]
Pieces = Callable[[int], Sequence[str]]
_SENTENCE_END = re.compile(r"(?<=[.!?]) ")


@dataclass(frozen=True)
class Needles:
    """A subtask: what it hides, how often, and in what. `queries` is how many of the keys are asked for."""

    haystack: Literal["noise", "essay", "needle"]
    key_kind: Kind = "words"
    value_kind: Kind = "numbers"
    keys: int = 1
    values: int = 1
    queries: int = 1


def needles_puzzle(task: Needles, essay: Sequence[str], rng: random.Random) -> Puzzle:
    """A puzzle whose size counts words of the essay (repeated when it ends), lines of noise, or needles."""
    keys = distinct(lambda: _drawn(task.key_kind, rng), max(task.keys, task.queries))
    drawn = distinct(lambda: _drawn(task.value_kind, rng), len(keys) * task.values)
    values = {name: drawn[index * task.values : (index + 1) * task.values] for index, name in enumerate(keys)}
    hidden = [_needle(task, name, value) for name in keys for value in values[name]]
    rng.shuffle(hidden)
    asked = rng.sample(keys, task.queries)
    places = Places.draw(len(hidden), rng)
    pieces = _haystack(task, essay, (*keys, *drawn), random.Random(rng.getrandbits(64)))
    between = " " if task.haystack == "essay" else "\n"

    def at(size: int) -> Sample:
        return _asked(task, between.join(places.insert(hidden, pieces(size))), asked, values)

    return Puzzle(0, at)


def _haystack(task: Needles, essay: Sequence[str], taken: Sequence[str], rng: random.Random) -> Pieces:
    """Pieces of a haystack by size; a larger one begins with the smaller one."""
    if task.haystack == "essay":
        return lambda size: [part for part in _SENTENCE_END.split(" ".join(cycled(essay, size))) if part]
    if task.haystack == "noise":
        return lambda size: [NOISE] * size
    others: list[str] = []

    def needles(size: int) -> Sequence[str]:
        while len(others) < size:
            (name,) = distinct(lambda: _drawn(task.key_kind, rng), 1, taken)
            (value,) = distinct(lambda: _drawn(task.value_kind, rng), 1, taken)
            others.append(_needle(task, name, value))
        return others[:size]

    return needles


def _asked(task: Needles, context: str, asked: Sequence[str], values: dict[str, list[str]]) -> Sample:
    single = task.queries * task.values == 1
    template, prefix = (ONE, ONE_PREFIX) if single else (SEVERAL, SEVERAL_PREFIX)
    kind = task.value_kind.removesuffix("s") if single else task.value_kind
    query = ", ".join(asked[:-1]) + f", and {asked[-1]}" if len(asked) > 1 else asked[0]
    return Sample(
        input=template.format(kind=kind, context=context, query=query),
        answer_prefix=prefix.format(kind=kind, query=query),
        outputs=tuple(value for name in asked for value in values[name]),
    )


def _needle(task: Needles, name: str, value: str) -> str:
    return NEEDLE.format(kind=task.value_kind, key=name, value=value)


def _drawn(kind: Kind, rng: random.Random) -> str:
    if kind == "numbers":
        return str(rng.randint(1_000_000, 9_999_999))
    return key(rng) if kind == "words" else str(uuid.UUID(int=rng.getrandbits(128), version=4))
