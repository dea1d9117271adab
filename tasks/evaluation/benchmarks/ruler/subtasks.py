"""RULER's subtasks by name, with the official settings (scripts/synthetic.yaml), as puzzles of any size."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks.evaluation.benchmarks.ruler.asking import HOTPOT, OWN, SQUAD, Questions, asking_puzzle
from tasks.evaluation.benchmarks.ruler.counting import common_puzzle, frequent_puzzle
from tasks.evaluation.benchmarks.ruler.needles import Needles, needles_puzzle
from tasks.evaluation.benchmarks.ruler.samples import Puzzle
from tasks.evaluation.benchmarks.ruler.tracing import tracing_puzzle

NEEDLES: Mapping[str, Needles] = {
    "niah_single_1": Needles("noise"),
    "niah_single_2": Needles("essay"),
    "niah_single_3": Needles("essay", value_kind="uuids"),
    "niah_multikey_1": Needles("essay", keys=4),
    "niah_multikey_2": Needles("needle"),
    "niah_multikey_3": Needles("needle", key_kind="uuids", value_kind="uuids"),
    "niah_multivalue": Needles("essay", values=4),
    "niah_multiquery": Needles("essay", queries=4),
}
TRACING, COMMON, FREQUENT = "vt", "cwe", "fwe"
WITHOUT_FILES = (*NEEDLES, TRACING, COMMON, FREQUENT)
REPLY_TOKENS: Mapping[str, int] = {  # which the limit leaves room for; a reasoning model takes more
    **dict.fromkeys(NEEDLES, 128),
    TRACING: 30,
    COMMON: 120,
    FREQUENT: 50,
    **dict.fromkeys((SQUAD, HOTPOT, OWN), 32),
}


@dataclass(frozen=True)
class Material:
    """What puzzles are made of: the essay's words in order, single words for lists, and questions on documents."""

    essay: Sequence[str]
    words: Sequence[str]
    questions: Mapping[str, Questions]


def puzzle_of(name: str, index: int, material: Material, limit: int, rng: random.Random) -> Puzzle:
    """The index-th puzzle of a subtask for a limit in tokens. The same `rng` state gives the same puzzle."""
    if name in NEEDLES:
        return needles_puzzle(NEEDLES[name], material.essay, rng)
    if name in material.questions:
        return asking_puzzle(material.questions[name], index, rng)
    if name == TRACING:
        return tracing_puzzle(rng)
    if name == COMMON:
        return common_puzzle(material.words, limit, rng)
    return frequent_puzzle(limit - REPLY_TOKENS[FREQUENT], rng)
