"""Balance by difficulty and domain: uniform bins of the pass rate, equal counts from each (QwenLong-L1.5 §4.2)."""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

from tasks.records import Domain, Trials

ROUNDING = 1e-9  # 0.29 · 100 is 28.999… in floating point
LARGEST = 2  # the most that a domain may hold, in median domains


@dataclass(frozen=True)
class Measured:
    """What balancing needs to know of an item, without its documents: many fit into memory."""

    id: str
    domain: Domain
    generator: str
    trials: Trials

    @property
    def pass_rate(self) -> float | None:
        """The base model's; None where no answer got a verdict."""
        return self.trials.rate


def bin_of(pass_rate: float, bins: int) -> int:
    """Index of the bin [i/bins, (i+1)/bins) that holds a pass rate; 1 belongs to the last bin."""
    if not 0.0 <= pass_rate <= 1.0:
        raise ValueError(f"pass rate {pass_rate} is not in 0..1")
    return min(int(pass_rate * bins + ROUNDING), bins - 1)


def histogram(items: Sequence[Measured], bins: int) -> dict[Domain, list[int]]:
    """Items per domain and bin, domains in the order of the enum; items without a pass rate do not count."""
    counts = Counter((item.domain, bin_of(item.pass_rate, bins)) for item in items if item.pass_rate is not None)
    present = [domain for domain in Domain if any(found == domain for found, _ in counts)]
    return {domain: [counts[domain, level] for level in range(bins)] for domain in present}


def balance(items: Sequence[Measured], bins: int, seed: int) -> list[Measured]:
    """Take an equal count from every populated bin of a domain, at random; the order of `items` is kept.

    The count is the bin's fair share, the domain's items over its populated bins (rounded up). A bin that
    holds fewer gives all it has: cutting all bins to the emptiest one would throw away most of a small pool
    for one item. So do domains, with one bound: none gives more than twice what the median domain does (the lower
    one of an even number), and gives that in equal counts as well. Deterministic in the items, their order and the
    seed.
    """
    members: dict[tuple[Domain, int], list[int]] = defaultdict(list)
    for index, item in enumerate(items):
        if item.pass_rate is not None:
            members[item.domain, bin_of(item.pass_rate, bins)].append(index)
    kept: set[int] = set()
    for domain, quotas in _quotas(histogram(items, bins)).items():
        for level, quota in enumerate(quotas):
            kept.update(random.Random(f"{seed}/balance/{domain}/{level}").sample(members[domain, level], quota))
    return [items[index] for index in sorted(kept)]


def _quotas(sizes: Mapping[Domain, Sequence[int]]) -> dict[Domain, list[int]]:
    """How many each bin of each domain gives."""
    shares = {domain: _level(counts, -(-sum(counts) // sum(map(bool, counts)))) for domain, counts in sizes.items()}
    if not shares:
        return {}
    most = LARGEST * median_low([sum(counts) for counts in shares.values()])
    return {domain: _capped(counts, most) for domain, counts in shares.items()}


def _level(counts: Sequence[int], height: int) -> list[int]:
    """No bin above `height`."""
    return [min(count, height) for count in counts]


def _capped(counts: Sequence[int], most: int) -> list[int]:
    """The highest level at which all bins together give at most `most`."""
    height = max(counts)
    while sum(_level(counts, height)) > most:
        height -= 1
    return _level(counts, height)
