"""Domain-balanced batches (QwenLong-L1.5 §4.2): exact shares over time, no question starved, resumable
anywhere.
"""

import hashlib
import json
import random
import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction

from tasks.errors import InputError
from tasks.records import Record

POOL = "all"  # the one domain of `pooled`


class StreamState(Record):
    """Where one domain stands: its current order of question ids, the next place in it, and how often it
    began anew.
    """

    order: tuple[str, ...]
    cursor: int
    epoch: int


class SamplerState(Record):
    """Everything a sampler remembers. Shuffles derive from (seed, domain, epoch), so no generator state is
    needed.
    """

    fingerprint: str
    seed: int
    step: int
    drawn: dict[str, int]
    streams: dict[str, StreamState]


def pooled(
    questions: Mapping[str, Sequence[str]], weights: Mapping[str, float]
) -> tuple[dict[str, list[str]], dict[str, float]]:
    """All questions of weighted domains as one domain: batches then have the pool's shares, as in plain GRPO."""
    everything = [name for domain, weight in weights.items() if weight for name in questions.get(domain, ())]
    return {POOL: everything}, {POOL: 1.0}


def fingerprint_of(questions: Mapping[str, Sequence[str]], weights: Mapping[str, float]) -> str:
    """Hash of the question ids by domain, in order, and of the weights."""
    tree = [[domain, weights.get(domain, 0.0), list(ids)] for domain, ids in sorted(questions.items())]
    return hashlib.sha256(json.dumps(tree).encode()).hexdigest()


class DomainSampler:
    """Draws batches of question ids, `batch_size` a step, each domain in proportion to its weight.

    Places are given one by one to the domain furthest behind its exact share of all steps so far (ties in the
    order of `weights`), so shares are exact whenever they can be and the remainder rotates. Within a domain
    every question is drawn once before any is drawn again; a batch may straddle two permutations. A weighted
    domain without questions is skipped with one warning and its share goes to the others.
    """

    def __init__(
        self, questions: Mapping[str, Sequence[str]], weights: Mapping[str, float], batch_size: int, seed: int
    ) -> None:
        """Start at the beginning.

        Raises:
            InputError: no weighted domain has a question, or an id occurs twice.
        """
        self._questions = {domain: tuple(questions.get(domain, ())) for domain, weight in weights.items() if weight}
        _check_unique(self._questions)
        if empty := [domain for domain, ids in self._questions.items() if not ids]:
            warnings.warn(f"no questions for {', '.join(empty)}: skipped, the other domains fill in", stacklevel=2)
        filled = [domain for domain, ids in self._questions.items() if ids]
        if not filled:
            raise InputError(f"no question in any weighted domain ({', '.join(weights)}); curate more questions")
        exact = {domain: Fraction(str(weights[domain])) for domain in filled}
        self._shares = {domain: weight / sum(exact.values()) for domain, weight in exact.items()}
        self._batch_size = batch_size
        self._fingerprint = fingerprint_of(questions, weights)
        self._seed = seed
        self._step = 0
        self._drawn = dict.fromkeys(filled, 0)
        self._streams = {domain: self._shuffled(domain, 0) for domain in filled}

    def next_batch(self) -> tuple[str, ...]:
        """The next `batch_size` ids, domain by domain."""
        self._step += 1
        counts = self._counts()
        return tuple(self._draw(domain) for domain, count in counts.items() for _ in range(count))

    def state(self) -> SamplerState:
        """What `restore` needs to go on exactly here; JSON by `model_dump_json`."""
        return SamplerState(
            fingerprint=self._fingerprint,
            seed=self._seed,
            step=self._step,
            drawn={str(domain): count for domain, count in self._drawn.items()},
            streams={str(domain): stream for domain, stream in self._streams.items()},
        )

    def restore(self, state: SamplerState) -> None:
        """Go on where `state` was taken.

        Raises:
            InputError: the state belongs to other questions, weights or another seed.
        """
        if (state.fingerprint, state.seed) != (self._fingerprint, self._seed):
            raise InputError(
                f"the saved sampler is of data {state.fingerprint[:12]} and seed {state.seed}, this one of "
                f"{self._fingerprint[:12]} and seed {self._seed}; they must be equal: start the stage anew"
            )
        self._step = state.step
        self._drawn = {domain: state.drawn[str(domain)] for domain in self._drawn}
        self._streams = {domain: state.streams[str(domain)] for domain in self._streams}

    def _counts(self) -> dict[str, int]:
        behind = {d: self._step * self._batch_size * share - self._drawn[d] for d, share in self._shares.items()}
        counts = dict.fromkeys(behind, 0)
        for _ in range(self._batch_size):
            domain = max(behind, key=lambda d: behind[d])
            behind[domain] -= 1
            counts[domain] += 1
        return counts

    def _draw(self, domain: str) -> str:
        stream = self._streams[domain]
        if stream.cursor == len(stream.order):
            stream = self._shuffled(domain, stream.epoch + 1)
        self._streams[domain] = StreamState(order=stream.order, cursor=stream.cursor + 1, epoch=stream.epoch)
        self._drawn[domain] += 1
        return stream.order[stream.cursor]

    def _shuffled(self, domain: str, epoch: int) -> StreamState:
        order = list(self._questions[domain])
        random.Random(f"{self._seed}/{domain}/{epoch}").shuffle(order)
        return StreamState(order=tuple(order), cursor=0, epoch=epoch)


def _check_unique(questions: Mapping[str, Sequence[str]]) -> None:
    seen: set[str] = set()
    for domain, ids in questions.items():
        for name in ids:
            if name in seen:
                raise InputError(f"question {name!r} of {domain} occurs twice; ids must be unique: curate again")
            seen.add(name)
