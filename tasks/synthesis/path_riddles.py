"""Riddles along a path: who or what is at its end? Where the last hop tells a cause, this asks about cause."""

from collections.abc import Iterator

import numpy as np

from tasks.synthesis.clustering import relation_form
from tasks.synthesis.makers import Maker, shown
from tasks.synthesis.paths import Bools
from tasks.synthesis.riddles import Line, Riddle
from tasks.synthesis.triples import Path

CAUSAL = """cause, causes, was caused by, led to, leads to, resulted in, results in, resulted from, results from,
due to, triggered, was triggered by, brought about, gave rise to, contributed to, was due to, provoked, was provoked by,
prompted, was prompted by, enabled, prevented, was prevented by"""
CAUSES = frozenset(relation_form(relation) for relation in CAUSAL.split(","))
KEPT_NAME = "obfuscated less: the start is named, no description fits it alone"


def causes(maker: Maker) -> Bools:
    """Edges with one answer that tell a cause or an effect: those that may end a path about cause."""
    causal = [relation_form(triple.relation) in CAUSES for triple in maker.graph.triples]
    return np.array(causal, bool) & maker.graph.askable_E


def path_riddles(maker: Maker, hops: int, wanted: int, ending_E: Bools | None = None) -> Iterator[Riddle]:
    """Riddles over sampled paths of which every hop is needed; `ending_E` says which edges may end one."""
    graph, seed = maker.graph, maker.rng.getrandbits(63)
    for edges in graph.sampler.sample(hops, wanted, seed, maker.counted, ending_E):
        problem = maker.language.fault(graph.along(edges))
        problems = [problem] if problem else graph.faults(edges)
        maker.counted.update(problems)
        if not problems:
            yield _riddle(maker, edges)


def _riddle(maker: Maker, edges: tuple[int, ...]) -> Riddle:
    """Walk from the start, described where that can be, to the answer."""
    graph, path = maker.graph, maker.graph.along(edges)
    start, *onward = graph.nodes(edges)
    clues = maker.describer.describe(start, onward, onward[-1]) or ()
    said = maker.describer.vaguest(edges[0])
    maker.counted[KEPT_NAME] += not clues and said == path[0].source and maker.language.most_clues > 0
    names = ["[1]" if clues else said, *(f"[{number}]" for number in range(2, len(path) + 2))]
    return Riddle(
        kind=maker.kind,
        hops=path,
        lines=(*maker.lines(clues, start, "[1]"), *_steps(path, names)),
        asks=f"who or what is {names[-1]}",
        keep=shown(clues) or (said,),
        hide=maker.names(onward if said == path[0].source and not clues else [start, *onward]),
        gold=path[-1].target,
        clues=maker.facts(clues),
    )


def _steps(path: Path, names: list[str]) -> Iterator[Line]:
    for here, hop, onward in zip(names, path, names[1:], strict=False):
        yield (onward, hop.relation, here) if hop.inverse else (here, hop.relation, onward)
