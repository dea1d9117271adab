"""What every generator path hands over: questions with ids, and how many candidates fell for which reason."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tasks.corpus.grammar import rows, statements
from tasks.corpus.names import key, remembered
from tasks.generation.structured import Refused
from tasks.records import AnswerKind, Domain, Question, Split

if TYPE_CHECKING:
    from tasks.synthesis.graph import GraphReport

GeneratorName = Literal["knowledge_graph", "tables", "self_play"]
Fact = tuple[str, str]  # relation or measure, and the key of the subject
IN_PLAIN_WORDS = "asked in plain words, the model's were refused"


@dataclass
class Harvest:
    """Questions of one domain and split, the rejected candidates by reason, and what graph they were sought in."""

    questions: list[Question] = field(default_factory=list)
    rejections: Counter[str] = field(default_factory=Counter)
    offer: "GraphReport | None" = None


@dataclass(frozen=True)
class Source:
    """What all questions of one call share."""

    domain: Domain
    generator: GeneratorName
    split: Split
    seed: int

    def question(
        self,
        text: str,
        gold: str,
        *,
        kind: AnswerKind,
        evidence: Sequence[str],
        difficulty: int,
        facts: Sequence[Fact],
        provenance: dict[str, Any],
        options: Sequence[str] = (),
    ) -> Question:
        """Build the record. Its id is a hash of what is asked of which documents.

        `facts` are what the answer rests on: documents that state one of them are no distractors.
        """
        asked = "\n".join((self.domain, self.split, text, *options, *evidence))
        return Question(
            id=f"{self.domain}-{hashlib.sha256(asked.encode()).hexdigest()[:12]}",
            domain=self.domain,
            question=text,
            gold=(gold,),
            answer_kind=kind,
            options=tuple(options),
            document_ids=tuple(evidence),
            split=self.split,
            generator=self.generator,
            difficulty=difficulty,
            provenance={**provenance, "facts": [list(fact) for fact in facts]},
            seed=self.seed,
        )


def in_plain_words(question: Question, refused: Refused) -> Question:
    """The question, marked as worded by rule, with the reason why the model's words were not taken."""
    return question.model_copy(update={"provenance": {**question.provenance, "plain_words": refused.reason}})


@remembered
def facts_of(text: str) -> frozenset[Fact]:
    """Which facts a text states, whatever their values."""
    stated = {(statement.relation, key(statement.subject)) for statement in statements(text)}
    return frozenset(stated | {(measure, key(country)) for country, measure, _ in rows(text)})


@remembered
def names_of(text: str) -> frozenset[str]:
    """Keys of the subjects and values that a text is about."""
    names = {name for statement in statements(text) for name in (statement.subject, statement.value)}
    return frozenset(map(key, names | {country for country, _, _ in rows(text)}))
