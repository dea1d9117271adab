"""Multi-hop questions: sampled paths whose every hop is needed, asked backwards."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from tasks.records import AnswerKind, Document, Domain, Question, Split
from tasks.synthesis.graph import KnowledgeGraph, Path, Triple, faults, report, sample_paths
from tasks.synthesis.obfuscation import path_question
from tasks.synthesis.questions import Harvest, Source


def multi_hop_questions(documents: Sequence[Document], split: Split, wanted: int, max_hops: int, seed: int) -> Harvest:
    """Sample up to `wanted` questions of 2 to `max_hops` hops; each further hop halves the share.

    Lengths that the graph cannot fill are made up by shorter ones.
    """
    graph = KnowledgeGraph.of(documents)
    source = Source(Domain.MULTI_HOP, "knowledge_graph", split, seed)
    offer = report(graph)
    harvest = Harvest(rejections=Counter({offer.reason: offer.edges} if offer.reason else {}))
    for hops in range(max_hops, 1, -1):
        missing = wanted - len(harvest.questions)
        paths = sample_paths(graph, hops, missing, random.Random(f"{seed} {split} {hops}"))
        _ask(graph, source, paths, round(missing * _share(hops)), harvest)
    return harvest


def _share(hops: int) -> float:
    """The share of paths of `hops` hops among those of 2 to `hops`."""
    weight: float = 0.5 ** (hops - 1)
    return weight / (1 - weight)


def _ask(graph: KnowledgeGraph, source: Source, paths: Iterator[Path], wanted: int, harvest: Harvest) -> None:
    """Add `wanted` questions, or as many as the paths give."""
    asked = {question.question for question in harvest.questions}
    while wanted and (path := next(paths, None)):
        problems = faults(graph, path)
        harvest.rejections.update(problems)
        text = path_question(path)
        if not problems and text not in asked:
            asked.add(text)
            harvest.questions.append(_question(source, path, text))
            wanted -= 1


def _question(source: Source, path: Path, text: str) -> Question:
    return source.question(
        text,
        path[-1].target,
        kind=AnswerKind.TEXT,
        evidence=list(dict.fromkeys(triple.document_id for triple in path)),
        difficulty=len(path),
        facts=[triple.fact for triple in path],
        provenance={"kind": "path", "hops": [asdict(triple) for triple in path]},
    )


def path_of(provenance: dict[str, Any]) -> Path:
    """Rebuild the path that a question's provenance records."""
    return tuple(Triple(**hop) for hop in provenance["hops"])
