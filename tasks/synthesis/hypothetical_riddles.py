"""Riddles about what is not so: one fact gets another value, and the graph says what would follow.

A fact A → B goes on to B → C. If A's value had been B′, which documents say goes on to C′ ≠ C, the answer is C′:
whoever overlooks the supposition answers C.
"""

from collections.abc import Iterator

import numpy as np

from tasks.synthesis.graph import KnowledgeGraph
from tasks.synthesis.makers import NOT_DESCRIBED, Maker, shown
from tasks.synthesis.paths import CROWDED, TOGETHER
from tasks.synthesis.riddles import Riddle
from tasks.synthesis.triples import Path

NO_OTHER_VALUE = "no other value of the relation goes on as this one does"


def hypothetical_riddles(maker: Maker, attempts: int) -> Iterator[Riddle]:
    """Draw facts, and other values of their relation that go on in the same way."""
    facts = np.flatnonzero(maker.graph.askable_E & ~maker.graph.inverse_E).tolist()
    for _ in range(attempts if facts else 0):
        fact = maker.rng.choice(facts)
        other = maker.rng.choice(maker.graph.by_relation.of(int(maker.graph.relation_E[fact])).tolist())
        consequence = _consequence(maker, fact, int(maker.graph.object_E[other]))
        if consequence is None:
            maker.counted[NO_OTHER_VALUE] += 1
        else:
            yield from _riddle(maker, fact, consequence)


def _consequence(maker: Maker, fact: int, instead: int) -> int | None:
    """A fact about the other value, of a relation in which the real value has another answer; None without one."""
    graph = maker.graph
    start, real = int(graph.subject_E[fact]), int(graph.object_E[fact])
    if instead in {start, real}:
        return None
    answers = _answers(graph, real)
    found = [
        edge
        for relation, edge in _answers(graph, instead).items()
        if relation in answers and graph.object_E[edge] not in {start, real, instead, graph.object_E[answers[relation]]}
    ]
    return maker.rng.choice(found) if found else None


def _answers(graph: KnowledgeGraph, entity: int) -> dict[int, int]:
    """The facts about an entity that have one answer, by relation."""
    edges = graph.by_subject.of(entity)
    edges = edges[graph.askable_E[edges] & ~graph.inverse_E[edges]]
    return dict(zip(graph.relation_E[edges].tolist(), edges.tolist(), strict=True))


def _riddle(maker: Maker, fact: int, consequence: int) -> Iterator[Riddle]:
    """One riddle, or none where the other value cannot be described or documents are too few or say too much."""
    graph = maker.graph
    start, real = int(graph.subject_E[fact]), int(graph.object_E[fact])
    instead, answer = int(graph.subject_E[consequence]), int(graph.object_E[consequence])
    clues = maker.describer.describe(instead, [real, instead, answer], answer)
    hops = graph.along((fact, consequence))
    if clues is None:
        maker.counted[NOT_DESCRIBED] += 1
    elif _crowded(maker, hops, maker.facts(clues)):
        maker.counted[CROWDED] += 1
    elif graph.together(start, answer):
        maker.counted[TOGETHER] += 1
    else:
        name, (given, wanted) = hops[0].source, (hop.relation for hop in hops)
        yield Riddle(
            kind=maker.kind,
            hops=hops,
            lines=((name, given, "[1]"), *maker.lines(clues, instead, "[2]"), ("[2]", wanted, "[3]")),
            asks=f'what [3] would be, supposing that "{name} | {given} | [2]" held instead of the first line; ask it '
            f"as {name}'s, through that supposition",
            keep=(name, *shown(clues)),
            hide=maker.names([real, instead, answer]),
            gold=hops[1].target,
            clues=maker.facts(clues),
        )


def _crowded(maker: Maker, hops: Path, clues: Path) -> bool:
    """Whether one document both describes the other value and says what follows from it, or documents are too few."""
    return any(clue.document_id == hops[1].document_id for clue in clues) or not maker.spread([hops, clues])
