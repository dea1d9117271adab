"""Choosing a stage's questions by the difficulty that a re-roll under its limits measured.

QwenLong-L1.5 §4.2 filters by difficulty under the next stage's limits; QwenLong-L1 §3.2 lets earlier hard
samples re-enter with weight 1 / mean reward.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TypeVar

from tasks.records import Domain, Item

T = TypeVar("T")


class Reason(StrEnum):
    """Why an item was chosen, best first."""

    INFORMATIVE = "informative"  # some rollouts right, some wrong: the only ones with a gradient now
    ALL_WRONG = "all_wrong"  # may come into reach while training
    ALL_RIGHT = "all_right"  # keeps what is known
    RETROSPECTIVE = "retrospective"  # from an earlier length, still hard


@dataclass(frozen=True)
class Rerolled:
    """An item with its mean reward over the re-roll's samples."""

    item: Item
    mean: float
    samples: int


@dataclass(frozen=True)
class Choice:
    """A chosen item and why it was chosen."""

    rerolled: Rerolled
    reason: Reason


def select(
    fresh: Sequence[Rerolled], earlier: Sequence[Rerolled], count: int, retrospective_share: float, seed: str
) -> list[Choice]:
    """Choose up to `count` items, domains in turn, so that a domain gets more only where others ran out.

    Earlier items that are not always right fill up to `retrospective_share` of `count`; fresh ones fill the
    rest, in the order of `Reason`. Fewer than `count` come back when the pools are too small. Deterministic.
    """
    rng = random.Random(seed)
    hard = [rerolled for rerolled in earlier if rerolled.mean < 1.0]
    weighted = weighted_order(hard, [retrospective_weight(item.mean, item.samples) for item in hard], rng)
    old = in_turn(weighted, int(Fraction(str(retrospective_share)) * count), _domain)
    shuffled = rng.sample(fresh, len(fresh))
    ranked = sorted(shuffled, key=lambda rerolled: list(Reason).index(reason_of(rerolled)))
    new = in_turn(ranked, count - len(old), _domain)
    return [Choice(rerolled, reason_of(rerolled)) for rerolled in new] + [
        Choice(rerolled, Reason.RETROSPECTIVE) for rerolled in old
    ]


def reason_of(rerolled: Rerolled) -> Reason:
    """Why a fresh item is worth choosing."""
    if rerolled.mean == 0.0:
        return Reason.ALL_WRONG
    return Reason.ALL_RIGHT if rerolled.mean == 1.0 else Reason.INFORMATIVE


def retrospective_weight(mean: float, samples: int) -> float:
    """1 / mean reward; a mean of 0 counts as half a success in `samples`, so its weight is 2 · samples.

    That is twice the weight of one success: the samples cannot tell a rate of 0 from a small one.
    """
    return 1 / max(mean, 1 / (2 * samples))


def weighted_order(items: Sequence[Rerolled], weights: Sequence[float], rng: random.Random) -> list[Rerolled]:
    """A random order in which the first n are a weighted sample of n without replacement.

    Efraimidis and Spirakis 2006: sort by u^(1/w) with u uniform in (0, 1), largest first.
    """
    keys = [rng.random() ** (1 / weight) for weight in weights]
    return [items[index] for index in sorted(range(len(items)), key=lambda index: (-keys[index], index))]


def in_turn(items: Sequence[T], count: int, group: Callable[[T], Domain]) -> list[T]:
    """The first `count` items when the groups take turns, each in its own order."""
    queues: dict[Domain, list[T]] = defaultdict(list)
    for item in items:
        queues[group(item)].append(item)
    longest = max(map(len, queues.values()), default=0)
    lanes = [queues[name] for name in sorted(queues)]
    return [lane[turn] for turn in range(longest) for lane in lanes if turn < len(lane)][: max(0, count)]


def _domain(rerolled: Rerolled) -> Domain:
    return rerolled.item.question.domain
