"""Near-duplicates among planted ones, ours beside datasketch: `python benchmarks/near_duplicates.py`.

Texts of 300 words from a Zipf vocabulary; every twentieth is a copy of another with some words changed, so that their
triples of words have a Jaccard similarity of 0.9 to 1. Both get the same texts and cut them up themselves. Recall is
the share of planted pairs found together; datasketch's candidates are taken as found, ours are confirmed exactly.
datasketch runs with its own choice of bands for 0.9, and with our bands, which find as many. "Once cut up" leaves out
what turning texts into shingles costs.
"""

import argparse
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

os.environ.update(OMP_NUM_THREADS="1", RAYON_NUM_THREADS="1")

from tasks.corpus.near_duplicates import PERMUTATIONS, NearDuplicates, rows_per_band, starts_of_words

SIMILARITY = 0.9
WORDS = 300
VOCABULARY = 30_000
MOST_CHANGED = 5  # words of a copy: 15 of 298 triples, a similarity of 0.904
REPEATS = 5

Pair = tuple[int, int]
T = TypeVar("T")
Find = Callable[[list[str]], set[Pair]]
Cut = Callable[[list[str]], object]
BATCH = 60  # texts that ours cuts at a time


@dataclass(frozen=True)
class Texts:
    """Texts, and the pairs (original, copy) among them."""

    texts: list[str]
    planted: set[Pair]


def main() -> None:
    """Run all ways, interleaved, and print the table."""
    number = _number()
    made = planted(number)
    ways: dict[str, tuple[Find, Cut]] = {
        "ours": (ours, our_cut),
        "datasketch, its bands": (lambda texts: datasketch(texts, 128, None), their_cut),
        "datasketch, our bands": (lambda texts: datasketch(texts, 128, _our_bands(128)), their_cut),
        f"datasketch, {PERMUTATIONS} hashes": (lambda texts: datasketch(texts, PERMUTATIONS, _our_bands()), their_cut),
    }
    whole: dict[str, list[float]] = {name: [] for name in ways}
    cutting: dict[str, list[float]] = {name: [] for name in ways}
    recall: dict[str, float] = {}
    for _ in range(REPEATS):
        for name, (find, cut) in ways.items():
            found, seconds = timed(find, made.texts)
            whole[name].append(seconds)
            cutting[name].append(timed(cut, made.texts)[1])
            recall[name] = len(found & made.planted) / len(made.planted)
    print(
        f"{number} texts of {WORDS} words, {len(made.planted)} planted pairs; texts per CPU-second, median of {REPEATS}"
    )
    print(f"{'':24} {'recall':>7} {'from the text':>14} {'ours is':>8} {'once cut up':>13} {'ours is':>8}")
    rates = {name: (median(whole[name]), median(whole[name]) - median(cutting[name])) for name in ways}
    for name, (all_of_it, rest) in rates.items():
        faster = all_of_it / rates["ours"][0], rest / rates["ours"][1]
        print(
            f"{name:24} {recall[name]:7.3f} {number / all_of_it:14,.0f} {faster[0]:7.1f}× {number / rest:13,.0f} "
            f"{faster[1]:7.1f}×"
        )


def timed(work: Callable[[list[str]], T], texts: list[str]) -> tuple[T, float]:
    """Its result and its CPU-seconds."""
    start = time.process_time()
    result = work(texts)
    return result, time.process_time() - start


def _number() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=3000)
    number: int = parser.parse_args().texts
    return number


def planted(number: int) -> Texts:
    """Every twentieth text is a copy of the one before it."""
    rng = random.Random(0)
    vocabulary = ["".join(rng.choices("etaoinshrdlcu", k=rng.randint(2, 9))) for _ in range(VOCABULARY)]
    weights = [1.0 / rank for rank in range(1, VOCABULARY + 1)]
    texts: list[str] = []
    pairs: set[Pair] = set()
    while len(texts) < number:
        words = rng.choices(vocabulary, weights, k=WORDS)
        texts.append(" ".join(words))
        if len(texts) % 20 == 1 and len(texts) < number:
            for place in rng.sample(range(WORDS), rng.randint(0, MOST_CHANGED)):
                words[place] = "changed"
            texts.append(" ".join(words))
            pairs.add((len(texts) - 2, len(texts) - 1))
    return Texts(texts, pairs)


def ours(texts: list[str]) -> set[Pair]:
    """All pairs (first, other) of a cluster."""
    near = NearDuplicates(SIMILARITY)
    for text in texts:
        near.add(text)
    return {(first, number) for number, first in enumerate(near.clusters(texts.__getitem__)) if first != number}


def _our_bands(permutations: int = PERMUTATIONS) -> tuple[int, int]:
    rows = rows_per_band(SIMILARITY)
    return permutations // rows, rows


def our_cut(texts: list[str]) -> object:
    """The part of ours that turns texts into hashed shingles."""
    return [starts_of_words(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]


def their_cut(texts: list[str]) -> list[set[bytes]]:
    """The same for datasketch, which hashes them itself."""
    return [_triples(text) for text in texts]


def _triples(text: str) -> set[bytes]:
    words = text.casefold().split()
    return {" ".join(words[start : start + 3]).encode() for start in range(max(1, len(words) - 2))}


def datasketch(texts: list[str], permutations: int, bands: tuple[int, int] | None) -> set[Pair]:
    """All pairs (earlier, later) that share a band."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=SIMILARITY, num_perm=permutations, params=bands)
    found: set[Pair] = set()
    for number, text in enumerate(texts):
        sketch = MinHash(num_perm=permutations)
        sketch.update_batch(_triples(text))
        found.update((earlier, number) for earlier in index.query(sketch))
        index.insert(number, sketch)
    return found


if __name__ == "__main__":
    main()
