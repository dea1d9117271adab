"""A question before it has words: what holds, what is asked, the answer, and what the words must keep or hide."""

from dataclasses import dataclass
from typing import Literal

from tasks.records import AnswerKind
from tasks.synthesis.triples import Path

RiddleKind = Literal["triple", "dialogue", "path", "causal", "temporal", "hypothetical"]
Line = tuple[str, str, str]  # subject, relation, object; "[1]" stands for an entity that is not named


@dataclass(frozen=True)
class Riddle:
    """`hops` lead to the answer, `clues` describe entities that `lines` leave unnamed.

    The gold answer comes from the graph. Whoever words the question sees only `lines` and `asks`, which hold neither
    the answer nor any entity on the way.
    """

    kind: RiddleKind
    hops: Path
    lines: tuple[Line, ...]
    asks: str
    keep: tuple[str, ...]  # what the words must say: names and descriptions to start from
    hide: tuple[str, ...]  # names of the answer and of the entities on the way
    gold: str
    answer_kind: AnswerKind = AnswerKind.TEXT
    clues: Path = ()
    scope: str = ""  # the document of which it is asked, where the same words ask another one for something else
    options: tuple[str, ...] = ()

    @property
    def facts(self) -> Path:
        """All facts that the answer rests on."""
        return (*self.hops, *self.clues)

    @property
    def answer(self) -> str:
        """The answer in words, also where `gold` is the letter of an option."""
        return self.hops[-1].target if self.answer_kind is AnswerKind.LETTER else self.gold
