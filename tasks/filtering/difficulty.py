"""Balance by difficulty: uniform bins of the pass rate, equal counts from each (QwenLong-L1.5 §4.2)."""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence

from tasks.records import Domain, Item

ROUNDING = 1e-9  # 0.29 · 100 is 28.999… in floating point


def bin_of(pass_rate: float, bins: int) -> int:
    """Index of the bin [i/bins, (i+1)/bins) that holds a pass rate; 1 belongs to the last bin."""
    if not 0.0 <= pass_rate <= 1.0:
        raise ValueError(f"pass rate {pass_rate} is not in 0..1")
    return min(int(pass_rate * bins + ROUNDING), bins - 1)


def histogram(items: Sequence[Item], bins: int) -> dict[Domain, list[int]]:
    """Items per domain and bin, domains in the order of the enum; items without a pass rate do not count."""
    counts = Counter(
        (item.question.domain, bin_of(item.pass_rate, bins)) for item in items if item.pass_rate is not None
    )
    present = [domain for domain in Domain if any(found == domain for found, _ in counts)]
    return {domain: [counts[domain, level] for level in range(bins)] for domain in present}


def balance(items: Sequence[Item], bins: int, seed: int) -> list[Item]:
    """Take an equal count from every populated bin of a domain, at random; the order of `items` is kept.

    The count is the bin's fair share, the domain's items over its populated bins (rounded up). A bin that
    holds fewer gives all it has: cutting all bins to the emptiest one would throw away most of a small pool
    for one item. Deterministic in the items, their order and the seed.
    """
    members: dict[tuple[Domain, int], list[int]] = defaultdict(list)
    for index, item in enumerate(items):
        if item.pass_rate is not None:
            members[item.question.domain, bin_of(item.pass_rate, bins)].append(index)
    kept: set[int] = set()
    for domain in Domain:
        populated = {level: members[domain, level] for level in range(bins) if (domain, level) in members}
        total = sum(map(len, populated.values()))
        for level, indices in populated.items():
            share = min(len(indices), -(-total // len(populated)))
            kept.update(random.Random(f"{seed}/balance/{domain}/{level}").sample(indices, share))
    return [items[index] for index in sorted(kept)]
