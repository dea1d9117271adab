"""Simple paths over many documents, sampled by random walks and breadth first, a batch at a time.

The graph lies in compressed sparse rows; a batch of paths takes each hop together, in numpy. Nothing is enumerated: a
dense graph costs as much as a sparse one.

Axes: E edges, N nodes, B paths of a batch. A batch of paths is a list of H + 1 node vectors and one of H edge vectors.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ATTEMPTS_PER_PATH = 300  # step cap of the sampler
SMALLEST_BATCH, LARGEST_BATCH = 256, 16_384  # starts; a batch is twice the one before
TRIES = 4  # of a walker to find an entity that it has not seen
STARTS_PER_TREE = 16  # starts of a batch for each one that grows a tree
FAN = 4  # edges followed from an entity, breadth first
WIDTH = 8  # entities of a tree that go on from each level
LEAVES = 4  # paths taken from a tree

TRAPPED = "no way on to an entity that the path has not met"
SHORTENED = "an edge shortens the path"
CROWDED = "fewer documents than wanted"
TOGETHER = "one document mentions start and answer"


@dataclass(frozen=True)
class Edges:
    """A directed multigraph as columns. `askable` edges have one answer, and only they are walked."""

    source_E: Ints
    target_E: Ints
    document_E: Ints
    askable_E: Bools
    nodes: int


class Groups:
    """Which members belong to each group: compressed sparse rows."""

    def __init__(self, group_M: Ints, groups: int, member_M: Ints | None = None) -> None:
        """Collect the positions of a column, or what `member_M` holds there, by the column's values."""
        order = np.argsort(group_M, kind="stable")
        self.members = order if member_M is None else member_M[order]
        self.offsets = np.concatenate([[0], np.cumsum(np.bincount(group_M, minlength=groups))])

    def of(self, group: int) -> Ints:
        """The members of one group."""
        return self.members[self.offsets[group] : self.offsets[group + 1]]

    def sizes(self, groups: Ints) -> Ints:
        """How many members each of some groups has."""
        return np.asarray(self.offsets[groups + 1] - self.offsets[groups])

    def expand(self, groups: Ints) -> tuple[Ints, Ints]:
        """All members of each of some groups, and for each member the position of its group."""
        sizes = self.sizes(groups)
        rows = np.repeat(np.arange(len(groups)), sizes)
        return self.members[self.offsets[groups][rows] + _within(rows)], rows


class Pairs:
    """A set of pairs of small numbers, asked for many at once.

    Most pairs asked for are not in it. A hash table of one byte a slot, the mark of the pair that lies there, says so
    in one look; what it lets through is searched.
    """

    _SEVERAL = np.uint8(255)  # no mark: more than one pair in a slot

    def __init__(self, first_M: Ints, second_M: Ints, width: int) -> None:
        """Keep the pairs; all second numbers are below `width`."""
        self._width = width
        self._keys = np.unique(first_M * width + second_M)
        bits = max(8, len(self._keys).bit_length() + 3)
        self._shift = np.uint64(64 - bits)
        self._marks = np.zeros(1 << bits, np.uint8)
        slots, marks = self._hashed(self._keys)
        self._marks[slots] = marks
        self._marks[slots[self._marks[slots] != marks]] = self._SEVERAL

    def contain(self, first_B: Ints, second_B: Ints) -> Bools:
        """Which pairs are in the set."""
        keys = first_B * self._width + second_B
        slots, marks = self._hashed(keys)
        found = self._marks[slots]
        (likely,) = ((found == marks) | (found == self._SEVERAL)).nonzero()
        places = np.searchsorted(self._keys, keys[likely])
        contained = np.zeros(len(keys), bool)
        contained[likely] = self._keys[np.minimum(places, len(self._keys) - 1)] == keys[likely]
        return contained

    def _hashed(self, keys: Ints) -> tuple[Ints, NDArray[np.uint8]]:
        """Slot and mark (1 to 128) of each pair: Fibonacci hashing."""
        hashed = keys.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        marks = ((hashed >> np.uint64(8)).astype(np.uint8) & np.uint8(127)) + np.uint8(1)
        return (hashed >> self._shift).view(np.int64), marks


@dataclass
class Batch:
    """Paths that grow hop by hop; `nodes` has one vector more than `edges`."""

    nodes: list[Ints]
    edges: list[Ints]

    def __len__(self) -> int:
        return len(self.nodes[0])

    def only(self, kept: Bools | Ints) -> "Batch":
        """Some of the paths."""
        return Batch([node[kept] for node in self.nodes], [edge[kept] for edge in self.edges])

    def followed(self, edges: Ints, nodes: Ints) -> "Batch":
        """The same paths, one hop longer."""
        return Batch([*self.nodes, nodes], [*self.edges, edges])


class PathSampler:
    """Samples paths of which every hop is needed, and counts the others by reason."""

    def __init__(self, edges: Edges, min_documents: int) -> None:
        """Index the edges. A path's hops must be stated by `min_documents` documents or more."""
        self._edges = edges
        self._min_documents = min_documents
        (walked,) = edges.askable_E.nonzero()
        self._onward = Groups(edges.source_E[walked], edges.nodes, walked)
        ends = np.minimum(edges.source_E, edges.target_E), np.maximum(edges.source_E, edges.target_E)
        self._linked = Pairs(*ends, edges.nodes)
        documents = int(edges.document_E.max(initial=-1)) + 1
        mentioned = np.concatenate([edges.source_E, edges.target_E]), np.tile(edges.document_E, 2)
        self._mentions = Pairs(*mentioned, documents)
        codes = np.unique(mentioned[0] * documents + mentioned[1]) if documents else mentioned[0]
        self._documents = Groups(codes // max(documents, 1), edges.nodes, codes % max(documents, 1))
        self.starts = np.unique(edges.source_E[walked])
        self._checks = ((CROWDED, self._crowded), (SHORTENED, self._shortened), (TOGETHER, self._together))

    def sample(
        self, hops: int, wanted: int, seed: int, rejections: Counter[str], last_E: Bools | None = None
    ) -> Iterator[tuple[int, ...]]:
        """Yield distinct paths as their edges, from walks and trees in turn, up to the step cap of `wanted`.

        The caller stops when it has enough; an empty graph yields nothing. `last_E` says which edges may end a path.
        """
        rng = np.random.default_rng(seed)
        seen: set[tuple[int, ...]] = set()
        attempts, size = wanted * ATTEMPTS_PER_PATH if len(self.starts) else 0, SMALLEST_BATCH
        while attempts > 0:
            attempts -= size
            starts = rng.choice(self.starts, size)
            walks, trees = self.walk(starts, hops, rng), self.grow(starts[::STARTS_PER_TREE], hops, rng)
            rejections[TRAPPED] += size - len(walks)
            for batch in (walks, trees):
                ending = batch if last_E is None else batch.only(last_E[batch.edges[-1]])
                for path in zip(*(edge.tolist() for edge in self._needed(ending, rejections).edges), strict=True):
                    if path not in seen:
                        seen.add(path)
                        yield path
            size = min(2 * size, LARGEST_BATCH)

    def faults(self, path: tuple[int, ...]) -> list[str]:
        """Why one path is refused; empty when it is not."""
        edges = [np.array([edge]) for edge in path]
        nodes = [self._edges.source_E[edges[0]], *(self._edges.target_E[edge] for edge in edges)]
        return [reason for reason, refused in self._checks if refused(Batch(nodes, edges)).any()]

    def walk(self, starts: Ints, hops: int, rng: np.random.Generator) -> Batch:
        """Random walks that never return to an entity; those without a way on end early and are left out."""
        batch = Batch([starts], [])
        for _ in range(hops):
            edges, fresh = self._step(batch, rng)
            batch = batch.only(fresh).followed(edges[fresh], self._edges.target_E[edges[fresh]])
        return batch

    def _step(self, batch: Batch, rng: np.random.Generator) -> tuple[Ints, Bools]:
        """One random edge on for each walker, and whether it leads to an entity that is new to the path."""
        here = batch.nodes[-1]
        first, degree = self._onward.offsets[here], self._onward.sizes(here)
        edges, fresh = np.zeros(len(here), np.int64), np.zeros(len(here), bool)
        (waiting,) = degree.nonzero()
        for _ in range(TRIES):
            if not len(waiting):
                break
            steps = (rng.random(len(waiting)) * degree[waiting]).astype(np.int64)
            edges[waiting] = self._onward.members[first[waiting] + steps]
            targets = self._edges.target_E[edges[waiting]]
            new = np.logical_and.reduce([node[waiting] != targets for node in batch.nodes])
            fresh[waiting] = new
            waiting = waiting[~new]
        return edges, fresh

    def grow(self, starts: Ints, hops: int, rng: np.random.Generator) -> Batch:
        """Trees of bounded width, breadth first: an entity is reached by as few hops as the tree knows."""
        trees = np.arange(len(starts))
        batch, seen = Batch([starts], []), trees * self._edges.nodes + starts
        for hop in range(hops):
            edges, rows = self._fan(batch.nodes[-1], rng)
            shuffled = rng.permutation(len(edges))
            edges, rows = edges[shuffled], rows[shuffled]
            reached = trees[rows] * self._edges.nodes + self._edges.target_E[edges]
            reached, places = np.unique(reached, return_index=True)
            new = ~np.isin(reached, seen, assume_unique=True)
            seen = np.concatenate([seen, reached[new]])
            places = places[new]
            places = places[_thinned(trees[rows[places]], LEAVES if hop == hops - 1 else WIDTH, rng)]
            trees = trees[rows[places]]
            batch = batch.only(rows[places]).followed(edges[places], self._edges.target_E[edges[places]])
        return batch

    def _fan(self, nodes: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Edges on from each entity, all of them or `FAN` drawn ones, and for each the position of its entity."""
        first, degree = self._onward.offsets[nodes], self._onward.sizes(nodes)
        rows = np.repeat(np.arange(len(nodes)), np.minimum(degree, FAN))
        within = _within(rows)
        drawn = (rng.random(len(rows)) * degree[rows]).astype(np.int64)
        return self._onward.members[first[rows] + np.where(degree[rows] > FAN, drawn, within)], rows

    def _needed(self, batch: Batch, rejections: Counter[str]) -> Batch:
        """The paths without a fault; one with several is counted under the first."""
        for reason, refused in self._checks:
            faulty = refused(batch)
            rejections[reason] += int(faulty.sum())
            batch = batch.only(~faulty)
        return batch

    def _crowded(self, batch: Batch) -> Bools:
        """Whether the documents that state the hops are too few."""
        documents_HB = np.sort(np.stack([self._edges.document_E[edge] for edge in batch.edges]), axis=0)
        return np.asarray(1 + (np.diff(documents_HB, axis=0) != 0).sum(0) < self._min_documents)

    def _shortened(self, batch: Batch) -> Bools:
        """Whether an edge, either way round, joins two entities that are not neighbours on the path."""
        found = np.zeros(len(batch), bool)
        for late in range(2, len(batch.nodes)):
            for early in range(late - 1):
                one, other = batch.nodes[early], batch.nodes[late]
                found |= self._linked.contain(np.minimum(one, other), np.maximum(one, other))
        return found

    def _together(self, batch: Batch) -> Bools:
        """Whether a document states facts of both start and answer."""
        start, answer = batch.nodes[0], batch.nodes[-1]
        swap = self._documents.sizes(answer) < self._documents.sizes(start)
        fewer, more = np.where(swap, answer, start), np.where(swap, start, answer)
        documents, rows = self._documents.expand(fewer)
        found = np.zeros(len(batch), bool)
        found[rows[self._mentions.contain(more[rows], documents)]] = True
        return found


def _thinned(trees: Ints, most: int, rng: np.random.Generator) -> Ints:
    """Positions of at most `most` random members of each tree; `trees` is sorted, and so are their trees."""
    order = np.argsort(trees + rng.random(len(trees)))
    return order[_within(trees) < most]


def _within(groups: Ints) -> Ints:
    """The number of each member within its group, from 0; groups stand together."""
    places = np.arange(len(groups))
    first = np.ones(len(groups), bool)
    first[1:] = groups[1:] != groups[:-1]
    return places - np.maximum.accumulate(np.where(first, places, 0))
