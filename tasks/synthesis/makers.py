"""What every kind of riddle needs: the graph, a way to describe entities, the rules, and counts of what fell."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tasks.corpus.names import key
from tasks.synthesis.graph import KnowledgeGraph
from tasks.synthesis.language import Language
from tasks.synthesis.obfuscation import Describer, Description
from tasks.synthesis.riddles import Line, RiddleKind
from tasks.synthesis.triples import Path

NOT_DESCRIBED = "no description fits an entity alone"


@dataclass(frozen=True)
class GraphRules:
    """How far paths go, and over how many documents at least (no more than `max_hops`: each hop has one document)."""

    max_hops: int
    min_documents: int
    seed: int

    @property
    def hops(self) -> range:
        """Path lengths, the longest first; a path shorter than `min_documents` cannot be spread over as many."""
        return range(self.max_hops, max(2, self.min_documents) - 1, -1)


@dataclass
class Maker:
    """Makes riddles of one kind over one graph."""

    graph: KnowledgeGraph
    language: Language
    rules: GraphRules
    kind: RiddleKind
    counted: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.rng = random.Random(f"{self.rules.seed} {self.kind}")
        self.describer = Describer(self.graph, self.language.most_clues, self.rng)

    def lines(self, clues: Description, entity: int, name: str) -> list[Line]:
        """The clues to an entity, in which `name` stands for it."""
        return [clue.line(self.graph, entity, name) for clue in clues]

    def facts(self, clues: Description) -> Path:
        """The triples behind clues."""
        return self.graph.along([clue.edge for clue in clues])

    def names(self, entities: Iterable[int]) -> tuple[str, ...]:
        """All names of some entities, those that are told apart only by case or width once."""
        return tuple({key(name): name for entity in entities for name in self.graph.aliases(entity)}.values())

    def spread(self, facts: Sequence[Path]) -> bool:
        """Whether facts are stated by enough documents."""
        return len({fact.document_id for path in facts for fact in path}) >= max(2, self.rules.min_documents)


def shown(clues: Description) -> tuple[str, ...]:
    """What the words must say of an entity that is described."""
    return tuple(clue.shown for clue in clues)
