"""The records that travel between stages: parsed once at the edge, frozen, unknown fields refused."""

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Split = Literal["train", "development", "test"]
DocumentKind = Literal["encyclopaedia", "report", "dialogue", "text", "table"]


class Domain(StrEnum):
    """The five question types of QwenLong-L1.5 (§4.2), the paper's "tasks"."""

    MULTIPLE_CHOICE = "multiple_choice"
    MULTI_HOP = "multi_hop"
    READING_COMPREHENSION = "reading_comprehension"
    DIALOGUE_MEMORY = "dialogue_memory"
    CORPUS_NUMERIC = "corpus_numeric"


class AnswerKind(StrEnum):
    """How an answer is compared with the gold answer (tasks/rewards/rules.py)."""

    LETTER = "letter"  # multiple choice
    NUMBER = "number"
    QUANTITY = "quantity"  # a number whose unit must be stated
    PERCENT = "percent"
    DATE = "date"  # or a period
    LIST = "list"  # in any order, repetitions count
    ORDERED_LIST = "ordered_list"
    SET = "set"  # in any order, repetitions do not count
    TEXT = "text"
    YES_NO = "yes_no"
    CODE = "code"
    FREE_TEXT = "free_text"


class Verdict(StrEnum):
    """What a check of one answer can end in. Unscored is not wrong: it is masked and counted."""

    CORRECT = "correct"
    WRONG = "wrong"
    UNSCORED = "unscored"


class Finish(StrEnum):
    """Why a completion ended."""

    FINISHED = "finished"
    TRUNCATED = "truncated"


class Record(BaseModel):
    """Base of all records: immutable, extra fields are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Document(Record):
    """One source document. `cluster` groups documents that must share a split (a region, a folder, near-duplicates)."""

    id: str
    title: str
    text: str
    kind: DocumentKind
    cluster: str
    split: Split
    source: str


class Question(Record):
    """A synthesised question with its gold answer, before verification.

    `instruction` says in what form to answer (q_inst of QwenLong-L1.5 §4.4; "" for a model that was taught the form).
    `gold` holds one string for letter, number and text answers and any number (zero included) for lists.
    `document_ids` are the evidence documents; `provenance` says how the answer is known (path, SQL or dialogue).
    """

    id: str
    domain: Domain
    question: str
    instruction: str = ""
    gold: tuple[str, ...]
    answer_kind: AnswerKind
    options: tuple[str, ...] = ()
    document_ids: tuple[str, ...]
    split: Split
    generator: Literal["knowledge_graph", "tables", "self_play"]
    difficulty: int
    provenance: dict[str, Any]
    seed: int


class Trials(Record):
    """A model's answers to one question: how many were drawn, how many of these got a verdict, how many were right."""

    correct: int = 0
    scored: int = 0
    drawn: int = 0

    @property
    def rate(self) -> float | None:
        """Pass rate in 0..1 of the scored answers; None when nothing was scored."""
        return self.correct / self.scored if self.scored else None

    def __add__(self, other: "Trials") -> "Trials":
        return Trials(
            correct=self.correct + other.correct, scored=self.scored + other.scored, drawn=self.drawn + other.drawn
        )


UNTRIED = Trials()


class Item(Record):
    """A question on its extended context: what is verified, stored, trained on and evaluated.

    `documents` are the full texts in prompt order, evidence and distractors mixed; `length_bucket` is the input
    limit (tokens) the context was extended for; `input_tokens` counts the whole rendered prompt. `trials` are the
    base model's answers so far; `pass_rate` is their share of right ones once all were drawn.
    """

    question: Question
    documents: tuple[str, ...]
    document_ids: tuple[str, ...]
    length_bucket: int
    input_tokens: int
    checks: tuple[str, ...] = ()
    trials: Trials = UNTRIED
    pass_rate: float | None = None
