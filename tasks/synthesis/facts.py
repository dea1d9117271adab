"""One-fact questions from triples: reading comprehension, and multiple choice among values of one type.

Both take the facts in one seeded order, from opposite ends, so that they share a fact as late as can be.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from tasks.corpus.grammar import LETTERS
from tasks.corpus.library import Library
from tasks.corpus.names import mentions
from tasks.records import AnswerKind, Domain, Split
from tasks.synthesis.asking import Asker
from tasks.synthesis.graph import KnowledgeGraph
from tasks.synthesis.language import Language
from tasks.synthesis.leaks import LeakGuard
from tasks.synthesis.quantities import read_quantity
from tasks.synthesis.questions import Harvest, Source
from tasks.synthesis.reading import read_graph
from tasks.synthesis.riddles import Riddle

SEVERAL = "the fact has several answers"
FEW_OPTIONS = "fewer than four options"
VALUES_TRIED = 60  # as wrong options, from the answer's cluster and from all


def reading_questions(
    library: Library, split: Split, wanted: int, seed: int, language: Language, taken: frozenset[str] = frozenset()
) -> Harvest:
    """Ask up to `wanted` single facts in words that are not in `taken`."""
    graph, unread = read_graph(library, split, language, min_documents=1)
    source = Source(Domain.READING_COMPREHENSION, "self_play", split, seed)
    asker = Asker(source, library, language, LeakGuard(taken))
    asker.harvest.rejections.update(unread)
    edges = single_facts(graph, f"{seed} {split}", asker.harvest.rejections)
    asker.ask((fact_riddle(graph, edge) for edge in edges), wanted)
    return asker.harvest


def single_facts(graph: KnowledgeGraph, seed: str, rejections: Counter[str]) -> list[int]:
    """Edges with one answer, one for each question, in seeded order; counts the others."""
    kept: dict[tuple[int, bool, int], int] = {}
    for edge in random.Random(f"{seed} facts").sample(range(len(graph.triples)), len(graph.triples)):
        if graph.askable_E[edge]:
            asked = int(graph.relation_E[edge]), bool(graph.inverse_E[edge]), int(graph.edges.source_E[edge])
            kept.setdefault(asked, edge)
        else:
            rejections[SEVERAL] += 1
    return list(kept.values())


def fact_riddle(graph: KnowledgeGraph, edge: int) -> Riddle:
    """Ask for one fact, in the direction in which it is walked."""
    triple = graph.triples[edge]
    ends = ("[1]", triple.source) if triple.inverse else (triple.source, "[1]")
    return Riddle(
        kind="triple",
        hops=(triple,),
        lines=((ends[0], triple.relation, ends[1]),),
        asks="who or what is [1]",
        keep=(triple.source,),
        hide=graph.aliases(int(graph.edges.target_E[edge])),
        gold=triple.target,
    )


def choice_riddles(graph: KnowledgeGraph, seed: str, rejections: Counter[str]) -> Iterator[Riddle]:
    """Single facts with four options; the position of the right one is uniform."""
    rng = random.Random(f"{seed} options")
    pool = ValuePool(graph)
    for edge in reversed(single_facts(graph, seed, rejections)):
        wrong = pool.wrong_options(edge, len(LETTERS) - 1, rng)
        if len(wrong) < len(LETTERS) - 1:
            rejections[FEW_OPTIONS] += 1
            continue
        place = rng.randrange(len(LETTERS))
        options = (*wrong[:place], graph.triples[edge].target, *wrong[place:])
        riddle = fact_riddle(graph, edge)
        yield replace(riddle, gold=LETTERS[place], answer_kind=AnswerKind.LETTER, options=options)


class ValuePool:
    """The values of each relation, by the cluster of documents in which they are stated."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self._edges: dict[tuple[int, bool, str | None], list[int]] = {}
        for edge in range(len(graph.triples)):
            for cluster in (self._cluster(edge), None):
                self._edges.setdefault(self._type(edge, cluster), []).append(edge)

    def _cluster(self, edge: int) -> str:
        return self._graph.clusters[self._graph.triples[edge].document_id]

    def _type(self, edge: int, cluster: str | None) -> tuple[int, bool, str | None]:
        return int(self._graph.relation_E[edge]), bool(self._graph.inverse_E[edge]), cluster

    def wrong_options(self, edge: int, number: int, rng: random.Random) -> list[str]:
        """Up to `number` other values of the same type, those stated in the same cluster first. None is also right."""
        graph, chosen = self._graph, [self._graph.triples[edge].target]
        for other in self._drawn(edge, rng):
            value = graph.triples[other].target
            if graph.edges.target_E[other] != graph.edges.source_E[edge] and all(
                _distinct(value, one) for one in chosen
            ):
                chosen.append(value)
            if len(chosen) > number:
                break
        return chosen[1:]

    def _drawn(self, edge: int, rng: random.Random) -> Iterator[int]:
        """Random edges of the same relation and direction, from the same cluster and then from all."""
        for cluster in (self._cluster(edge), None):
            pool = self._edges[self._type(edge, cluster)]
            yield from rng.sample(pool, min(VALUES_TRIED, len(pool)))


def _distinct(one: str, other: str) -> bool:
    """Whether two values are of one type, and neither can be right where the other is."""
    quantities = read_quantity(one), read_quantity(other)
    if quantities[0] and quantities[1]:
        return quantities[0].unit == quantities[1].unit and not quantities[0].overlaps(quantities[1])
    return quantities == (None, None) and not mentions(one, other) and not mentions(other, one)
