"""Riddles about time: which of two dated events was first or last, or how many years lie between them.

Dates are intervals. Only events whose order is certain at the precision of the documents are compared.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tasks.records import AnswerKind
from tasks.synthesis.makers import NOT_DESCRIBED, Maker, shown
from tasks.synthesis.obfuscation import Description
from tasks.synthesis.paths import CROWDED
from tasks.synthesis.quantities import Quantity, read_date
from tasks.synthesis.riddles import Riddle

NO_DATES = "no two facts of one relation are dated"
SAME_TIME = "the two dates may be the same"

Event = tuple[int, Quantity]  # edge and date


def temporal_riddles(maker: Maker, attempts: int) -> Iterator[Riddle]:
    """Draw pairs of dated facts of one relation about entities that can be described."""
    events = dated_events(maker)
    if not events:
        maker.counted[NO_DATES] += 1
        return
    for _ in range(attempts):
        first, last = sorted(maker.rng.sample(maker.rng.choice(events), 2), key=lambda event: event[1].low)
        if first[1].overlaps(last[1]):
            maker.counted[SAME_TIME] += 1
        else:
            yield from _riddle(maker, first, last)


def dated_events(maker: Maker) -> list[list[Event]]:
    """Facts with one answer and one date, those of a relation together, where there are two or more of it.

    A fact that several documents date has the most precise of their dates, and none if two of them differ.
    """
    graph = maker.graph
    stated: dict[tuple[int, int], list[Event]] = {}
    for edge in np.flatnonzero(graph.askable_E & ~graph.inverse_E).tolist():
        triple, relation = graph.triples[edge], int(graph.relation_E[edge])
        when = read_date(triple.date or (triple.object if graph.tells_dates(relation) else ""))
        if when is not None:
            stated.setdefault((relation, int(graph.subject_E[edge])), []).append((edge, when))
    events: dict[int, list[Event]] = {}
    for (relation, _), dates in stated.items():
        if all(one.overlaps(other) for _, one in dates for _, other in dates):
            events.setdefault(relation, []).append(min(dates, key=lambda event: event[1].high - event[1].low))
    return [found for found in events.values() if len(found) > 1]


def _riddle(maker: Maker, first: Event, last: Event) -> Iterator[Riddle]:
    """One riddle on two events in their order, or none."""
    graph, edges = maker.graph, (first[0], last[0])
    subjects = [int(graph.subject_E[edge]) for edge in edges]
    hidden = [*subjects, *(int(graph.object_E[edge]) for edge in edges)]
    clues = [maker.describer.describe(subject, hidden) for subject in subjects]
    if clues[0] is None or clues[1] is None:
        maker.counted[NOT_DESCRIBED] += 1
        return
    hops = graph.along(edges)
    if hops[0].document_id == hops[1].document_id or not maker.spread([hops, *map(maker.facts, (clues[0], clues[1]))]):
        maker.counted[CROWDED] += 1
        return
    order = _order(maker, first, last, (clues[0], clues[1]))
    years = first[1].year, last[1].year
    if years[0] is not None and years[1] is not None and years[0] < years[1] and maker.rng.random() < 0.5:
        asks = "how many years lie between the years in which the last line happened to [1] and to [2]"
        yield replace(order, asks=asks, gold=str(years[1] - years[0]), answer_kind=AnswerKind.NUMBER)
    else:
        yield order


def _order(maker: Maker, first: Event, last: Event, clues: tuple[Description, Description]) -> Riddle:
    """Ask which entity came first, or which last."""
    graph, early = maker.graph, maker.rng.random() < 0.5
    described = [(first[0], clues[0]), (last[0], clues[1])]
    told = maker.rng.sample(described, 2)
    lines = [
        line
        for number, (edge, found) in enumerate(told, 1)
        for line in maker.lines(found, int(graph.subject_E[edge]), f"[{number}]")
    ]
    asked, other = (first[0], last[0]) if early else (last[0], first[0])
    relation = graph.triples[asked].relation
    return Riddle(
        kind=maker.kind,
        hops=graph.along((other, asked)),
        lines=(*lines, ("[1] and likewise [2]", relation, "something, at a time to be found out")),
        asks=f"to which of [1] and [2] the last line happened {'earlier' if early else 'later'}",
        keep=(*shown(clues[0]), *shown(clues[1])),
        hide=maker.names(int(end) for edge in (asked, other) for end in (graph.subject_E[edge], graph.object_E[edge])),
        gold=graph.triples[asked].source,
        clues=maker.facts((*clues[0], *clues[1])),
    )
