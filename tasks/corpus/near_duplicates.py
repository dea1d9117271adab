"""Clusters of near-duplicates among many texts: MinHash proposes pairs, the exact similarity decides.

Two texts are near-duplicates when the Jaccard similarity of their triples of words is high. Minhashes are taken of
something close to it that costs a tenth: the eight bytes from the start of each word on. Per text about 120 bytes are
held, never the text: the keys of its bands (Leskovec, Rajaraman, Ullman: Mining of Massive Datasets, §3.4) and one byte
of each minhash (Li and König, b-bit minwise hashing), which tell most chance meetings in a band without the text.

Axes: N texts, P minhash functions, B bands of R minhashes, W words, S shingles, M members of a band's bucket.
"""

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.uint64]
Places = NDArray[np.int64]
Pair = tuple[int, int]

PERMUTATIONS = 48  # bands of many lengths use them all
MISSED = 1e-3  # the most likely share of pairs of just the wanted similarity that bands miss
SLACK = 0.175  # how far an estimate may lie below the wanted similarity: four standard errors
BATCH_CHARACTERS = 2**17  # hashed together: arrays that fit a processor's cache
PAIRS_AT_ONCE = 16  # confirmed together
_PAD = bytes(8)  # so that eight bytes can be read from every place, and none of the next text
_MASKS = np.array([2 ** (8 * width) - 1 for width in range(9)], np.uint64)
_LOWER = np.uint64(0x2020202020202020)  # makes capitals small; the few signs that it mixes up only propose pairs
_SPACE = 32  # bytes up to it are white space
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: its products spread
_WEIGHTS = _ODD ** np.arange(1, PERMUTATIONS + 1, dtype=np.uint64)  # of the minhashes of a band
_HALF, _TOP_BYTE = np.uint64(32), np.uint64(56)


class NearDuplicates:
    """Takes texts one by one, then says which belong together."""

    def __init__(self, similarity: float) -> None:
        self._similarity = similarity
        self._rows = rows_per_band(similarity)
        self._waiting: list[str] = []
        self._characters = 0
        self._keys_NB: list[Numbers] = []
        self._bytes_NP: list[NDArray[np.uint8]] = []

    def add(self, text: str) -> None:
        """Take the next text; they are numbered from 0."""
        self._waiting.append(text)
        self._characters += len(text)
        if self._characters >= BATCH_CHARACTERS:
            self._hash()

    def clusters(self, text: Callable[[int], str]) -> list[int]:
        """The cluster of each text, named by its first member: texts similar directly or through others.

        `text` gives a text again, by its number.
        """
        self._hash()
        if not self._keys_NB:
            return []
        bytes_NP = np.concatenate(self._bytes_NP)
        cluster_N = np.arange(len(bytes_NP))
        for keys_N in np.concatenate(self._keys_NB).T:
            likely = _likely(keys_N, cluster_N, bytes_NP, self._similarity - SLACK)
            for left, right in _similar(likely, text, self._similarity):
                first, second = sorted((cluster_N[left], cluster_N[right]))
                cluster_N[cluster_N == second] = first
        return [int(first) for first in cluster_N]

    def _hash(self) -> None:
        from rensa import RMinHash

        if not self._waiting:
            return
        hashes, ends_N = starts_of_words(self._waiting)
        offsets = np.concatenate(([0], ends_N)).astype(np.uint64)
        matrix = RMinHash.digest_matrix_from_flat_token_hashes(hashes, offsets, PERMUTATIONS, 0)
        digests_NP = np.array(matrix.to_rows(), np.uint64)
        bands = PERMUTATIONS // self._rows
        rows_NBR = digests_NP[:, : bands * self._rows].reshape(-1, bands, self._rows)
        self._keys_NB.append(_spread(rows_NBR @ _WEIGHTS[: self._rows]))
        self._bytes_NP.append((digests_NP * _ODD >> _TOP_BYTE).astype(np.uint8))
        self._waiting, self._characters = [], 0


def rows_per_band(similarity: float) -> int:
    """The longest bands, for the fewest chance meetings, that miss a pair of that similarity with at most `MISSED`.

    A band of r minhashes is shared with probability s^r; with P // r bands a pair is missed with (1 − s^r)^(P // r).
    """
    missed = {rows: (1.0 - similarity**rows) ** (PERMUTATIONS // rows) for rows in range(1, PERMUTATIONS + 1)}
    return max((rows for rows, share in missed.items() if share <= MISSED), default=1)


def starts_of_words(texts: list[str]) -> tuple[Numbers, Places]:
    """Hashes of the eight bytes from each word's start on, text after text, and where each text's end.

    A text without words counts as one empty word: such texts are alike.
    """
    parts = [text.encode().strip() for text in texts]
    data, ends_N = _joined(parts)
    data = data.replace(b"\n", b" ").replace(b"\t", b" ").replace(b"\r", b" ")
    starts = _after_spaces(data)
    if np.any(np.diff(starts) == 1):
        data, ends_N = _joined([b" ".join(part.split()) for part in parts])
        starts = _after_spaces(data)
    eights = _eights(data)[starts]
    eights |= _LOWER
    return _spread(eights), np.searchsorted(starts, ends_N)


def _after_spaces(data: bytes) -> Places:
    return np.flatnonzero(np.frombuffer(data, np.uint8) == _SPACE) + 1


def triples(texts: list[str]) -> list[Numbers]:
    """Hashes of the distinct triples of words of each text, sorted. Words are what ASCII white space separates.

    Case makes no difference. A text of one or two words has one shingle, a text without words none.
    """
    data, ends_N = _joined([text.casefold().encode() for text in texts])
    inside = np.frombuffer(data, np.uint8) > _SPACE
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1  # each text begins and ends with white space
    starts_W, stops_W = edges[::2], edges[1::2]
    words_W = _word_hashes(data, starts_W, stops_W)
    return [_distinct(_of_three(words)) for words in np.split(words_W, np.searchsorted(starts_W, ends_N[:-1]))]


def _of_three(words_W: Numbers) -> Numbers:
    if len(words_W) > 2:
        return _combined(words_W[:-2], words_W[1:-1], words_W[2:])
    return _combined(*(words_W[place : place + 1] for place in range(len(words_W)))) if len(words_W) else words_W


def _distinct(hashes_S: Numbers) -> Numbers:
    """Sorted; numpy's own way takes thrice the time."""
    ranked = np.sort(hashes_S)
    return np.concatenate((ranked[:1], ranked[1:][ranked[1:] != ranked[:-1]]))


def _joined(parts: list[bytes]) -> tuple[bytes, Places]:
    """All texts in one, each behind a space, and where each ends."""
    data = b" " + (_PAD + b" ").join(parts) + _PAD
    return data, np.cumsum([len(part) + 1 + len(_PAD) for part in parts])


def _eights(data: bytes) -> Numbers:
    """The eight bytes from each place on."""
    return np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))


def _word_hashes(data: bytes, starts_W: Places, stops_W: Places) -> Numbers:
    """Eight bytes at a time, as many times as the longest word needs."""
    eights = _eights(data)
    widths_W = stops_W - starts_W
    hashes_W = _combined(eights[starts_W] & _MASKS[np.minimum(widths_W, 8)])
    done = 8
    while len(longer := np.flatnonzero(widths_W > done)):
        eight = eights[starts_W[longer] + done] & _MASKS[np.minimum(widths_W[longer] - done, 8)]
        hashes_W[longer] = _combined(hashes_W[longer], eight)
        done += 8
    return hashes_W


def _combined(first: Numbers, *others: Numbers) -> Numbers:
    """One number for what stands side by side; its bits depend on all of theirs, and on their order."""
    state = _spread(first.copy())
    for other in others:
        state ^= other
        _spread(state)
    return state


def _spread(hashes: Numbers) -> Numbers:
    """In place, which takes a fifth of the time of new arrays: every bit comes to depend on those below it."""
    hashes *= _ODD
    hashes ^= hashes >> _HALF
    return hashes


def _likely(keys_N: Numbers, cluster_N: Places, bytes_NP: NDArray[np.uint8], least: float) -> Iterator[Pair]:
    """Pairs that share a key, are not of one cluster yet, and whose minhashes say that they may be similar."""
    order_N = np.argsort(keys_N, kind="stable")
    ranked_N = keys_N[order_N]
    shared = ranked_N[1:] == ranked_N[:-1]
    apart = shared & (cluster_N[order_N[1:]] != cluster_N[order_N[:-1]])
    keys = np.unique(ranked_N[1:][apart])
    starts, stops = np.searchsorted(ranked_N, keys, "left"), np.searchsorted(ranked_N, keys, "right")
    for start, stop in zip(starts, stops, strict=True):
        yield from _likely_of_bucket(order_N[start:stop], cluster_N, bytes_NP, least)


def _likely_of_bucket(
    members_M: Places, cluster_N: Places, bytes_NP: NDArray[np.uint8], least: float
) -> Iterator[Pair]:
    for place in range(1, len(members_M)):
        member = members_M[place]
        others = members_M[:place][cluster_N[members_M[:place]] != cluster_N[member]]
        estimates = (bytes_NP[others] == bytes_NP[member]).mean(axis=1)
        for other in others[estimates >= least]:
            if cluster_N[other] != cluster_N[member]:  # a pair before this one may have joined them
                yield int(other), int(member)


def _similar(pairs: Iterator[Pair], text: Callable[[int], str], similarity: float) -> Iterator[Pair]:
    """The pairs that are near-duplicates. Several are confirmed at once, which takes a third of the time."""
    while some := list(islice(pairs, PAIRS_AT_ONCE)):
        numbers = sorted({number for pair in some for number in pair})
        known = dict(zip(numbers, triples([text(number) for number in numbers]), strict=True))
        yield from (pair for pair in some if _jaccard(known[pair[0]], known[pair[1]]) >= similarity)


def _jaccard(left: Numbers, right: Numbers) -> float:
    both = np.sort(np.concatenate((left, right)))
    shared = int(np.count_nonzero(both[1:] == both[:-1]))
    return shared / (len(both) - shared) if len(both) else 1.0
