"""Questions over several facts of several documents: along a path, about cause, about time, and about what is not so.

QwenLong-L1.5 §3.2 names these four kinds. Every answer follows from the graph alone.
"""

from collections.abc import Iterator

from tasks.synthesis.asking import Asker
from tasks.synthesis.graph import KnowledgeGraph, report
from tasks.synthesis.hypothetical_riddles import hypothetical_riddles
from tasks.synthesis.language import Language
from tasks.synthesis.makers import GraphRules, Maker
from tasks.synthesis.path_riddles import causes, path_riddles
from tasks.synthesis.paths import Bools
from tasks.synthesis.riddles import Riddle
from tasks.synthesis.temporal_riddles import temporal_riddles

DRAWS_PER_QUESTION = 40  # of events and suppositions, most of which need a look into the library
NO_CAUSE = "causal: no fact with one answer tells a cause"


def ask_multi_hop(graph: KnowledgeGraph, language: Language, asker: Asker, wanted: int, rules: GraphRules) -> None:
    """Fill a harvest with up to `wanted` questions, equal shares of the kinds that the language has words for.

    What one kind lacks the next ones make up for. The harvest says what the graph offers and why candidates fell.
    """
    offer = asker.harvest.offer = report(graph)
    if offer.reason:
        asker.harvest.rejections[offer.reason] += offer.facts
        return
    missing = wanted
    for left, kind in zip(range(len(language.kinds), 0, -1), language.kinds, strict=True):
        missing -= _fill(Maker(graph, language, rules, kind), asker, round(missing / left))


def _fill(maker: Maker, asker: Asker, wanted: int) -> int:
    """Add up to `wanted` questions of the maker's kind; return how many there were."""
    match maker.kind:
        case "temporal":
            return _asked(maker, asker, temporal_riddles(maker, wanted * DRAWS_PER_QUESTION), wanted, "")
        case "hypothetical":
            return _asked(maker, asker, hypothetical_riddles(maker, wanted * DRAWS_PER_QUESTION), wanted, "")
        case "causal":
            ending_E = causes(maker)
            if ending_E.any():
                return _fill_with_paths(maker, asker, wanted, ending_E)
            asker.harvest.rejections[NO_CAUSE] += 1
            return 0
        case _:
            return _fill_with_paths(maker, asker, wanted, None)


def _fill_with_paths(maker: Maker, asker: Asker, wanted: int, ending_E: Bools | None) -> int:
    """Each further hop halves the share; lengths that the graph cannot fill are made up by shorter ones."""
    missing = wanted
    for hops in maker.rules.hops:
        share = round(missing * _share(1 + hops - maker.rules.hops[-1]))
        missing -= _asked(maker, asker, path_riddles(maker, hops, share, ending_E), share, f", {hops} hops")
    return wanted - missing


def _share(place: int) -> float:
    """The share of the `place`-th shortest paths among those that are not longer."""
    weight: float = 0.5**place
    return weight / (1 - weight)


def _asked(maker: Maker, asker: Asker, riddles: Iterator[Riddle], wanted: int, detail: str) -> int:
    """Add questions and count what fell, by kind and path length."""
    number = asker.ask(riddles, wanted)
    for reason, count in (+maker.counted).items():
        asker.harvest.rejections[f"{maker.kind}{detail}: {reason}"] += count
    maker.counted.clear()
    return number
