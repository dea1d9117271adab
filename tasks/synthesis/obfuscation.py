"""Entities named by descriptions instead of names, so that a question must be walked hop by hop."""

from tasks.corpus.grammar import Relation, capital_inverse_question, described_by, described_by_capital
from tasks.synthesis.graph import Path, Triple


def describe(path: Path) -> str:
    """Name the end of a path by its start: "the largest neighbour of the country with the capital Paris"."""
    description = path[0].source
    for triple in path:
        if triple.inverse:
            description = described_by_capital(description)
        else:
            description = described_by(Relation(triple.relation), description)
    return description


def path_question(path: Path) -> str:
    """Ask for the end of a path of at least two hops; the question walks the chain backwards."""
    return Relation(path[-1].relation).question(describe(path[:-1]))


def fact_question(triple: Triple) -> str:
    """Ask for one fact, in the direction in which it is stated."""
    if triple.inverse:
        return capital_inverse_question(triple.source)
    return Relation(triple.relation).question(triple.source)
