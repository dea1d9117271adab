"""The roles of self-play, whoever plays them: what a proposer and a solver are asked, and what they answer."""

import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from tasks.generation.chat import Unanswered
from tasks.prompts import Proposal
from tasks.records import Document, DocumentKind, Question, Verdict
from tasks.synthesis.questions import Fact

Answer = str | Unanswered  # "" is a reply that states no answer


@dataclass(frozen=True)
class Round:
    """One round of the game, `number` counted from 0."""

    number: int
    of: int

    @property
    def joined_share(self) -> float:
        """How much of a table's documents takes part: half at first, all in the last round."""
        return 1.0 if self.of == 1 else 0.5 + 0.5 * self.number / (self.of - 1)


@dataclass(frozen=True)
class Ask:
    """What a proposer is asked for: `number` questions of a kind about documents, unlike those of the history."""

    documents: tuple[Document, ...]
    history: tuple[Question, ...]
    turn: Round
    kind: str
    number: int


@dataclass(frozen=True)
class Try:
    """A question for a solver and the texts of documents; without any it answers from what it knows."""

    documents: tuple[str, ...]
    question: str


class Players(Protocol):
    """Proposer, solver and verifier. Replies come in the order of what was asked for, and may be drawn lazily."""

    @property
    def kinds(self) -> Collection[DocumentKind]:
        """Kinds of document that they can read."""
        ...

    @property
    def prompt_tokens(self) -> int:
        """The most that a prompt may have."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a text, or an upper estimate."""
        ...

    def document_tokens(self, text: str) -> int:
        """Tokens that a document takes in a prompt."""
        ...

    def solver_tokens(self, attempt: Try) -> int:
        """Tokens of a solver's whole prompt."""
        ...

    def question_kinds(self, turn: Round) -> Sequence[str]:
        """What kinds of question are asked for in a round, in rotation."""
        ...

    def least_rate(self, turn: Round) -> float:
        """The share of solvers whose agreement verifies a proposal of this round."""
        ...

    def facts(self, text: str) -> Collection[Fact]:
        """What a document is known to state: others that state it are no distractors."""
        ...

    def propose(self, asks: Sequence[Ask], seed: str) -> Iterator[Sequence[Proposal | None]]:
        """`number` proposals an ask; None is one that could not be read."""
        ...

    def fault(self, proposal: Proposal, ask: Ask) -> str:
        """What the game's own rules do not see in a readable proposal, or ""."""
        ...

    def solve(self, attempts: Iterable[Try], seed: str) -> Iterator[Answer]:
        """Answer questions, each on its own."""
        ...

    def judge(self, doubts: Sequence[tuple[Question, str]], seed: str) -> Iterator[Verdict]:
        """Whether answers mean what the gold answers mean."""
        ...


def number_of(seed: str) -> int:
    """A named seed as the number that samplers take."""
    return random.Random(seed).getrandbits(31)
