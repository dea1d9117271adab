"""Small records, and a model that answers by a rule: for the tests of filtering."""

from collections.abc import Callable, Sequence
from pathlib import Path

from tasks.generation.base import Completion, Sampling
from tasks.records import AnswerKind, Document, Domain, Finish, Item, Question, Split

Rule = Callable[[str, int], str]  # (prompt text, sample) → reply


def question(
    name: str = "q",
    *,
    domain: Domain = Domain.READING_COMPREHENSION,
    text: str = "What is the capital of France?",
    gold: tuple[str, ...] = ("Paris",),
    kind: AnswerKind = AnswerKind.TEXT,
    options: tuple[str, ...] = (),
    documents: tuple[str, ...] = ("d",),
    split: Split = "train",
) -> Question:
    return Question(
        id=name,
        domain=domain,
        question=text,
        gold=gold,
        answer_kind=kind,
        options=options,
        document_ids=documents,
        split=split,
        generator="knowledge_graph",
        difficulty=1,
        provenance={"facts": [["capital", "france"]], "hops": [{"source": "France", "target": "Paris"}]},
        seed=0,
    )


def item(
    asked: Question,
    *,
    documents: tuple[str, ...] = ("The capital of France is Paris.",),
    tokens: int = 100,
    pass_rate: float | None = None,
) -> Item:
    return Item(
        question=asked,
        documents=documents,
        document_ids=tuple(f"d{number}" for number in range(len(documents))),
        length_bucket=128,
        input_tokens=tokens,
        pass_rate=pass_rate,
    )


def document(name: str, text: str, *, split: Split = "train", cluster: str | None = None) -> Document:
    return Document(
        id=name,
        title=name,
        text=text,
        kind="encyclopaedia",
        cluster=cluster or name,
        split=split,
        source="test",
    )


class WordTokenizer:
    """Ids are bytes, so that a generator can read the prompt; lengths are counted in words."""

    @classmethod
    def load(cls, folder: Path) -> "WordTokenizer":
        return cls()

    def prompt_ids(self, content: str) -> list[int]:
        return list(content.encode())

    def prompt_length(self, content: str) -> int:
        return len(content.split())


class RuleGenerator:
    """Answers every prompt by a rule of its text and the number of the sample; keeps prompts and seeds."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.prompts: list[str] = []
        self.seeds: list[int] = []
        self.samplings: list[Sampling] = []

    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling, seed: int) -> list[list[Completion]]:
        texts = [bytes(prompt).decode() for prompt in prompts]
        self.prompts += texts
        self.seeds.append(seed)
        self.samplings.append(sampling)
        return [
            [Completion((1,), self._rule(text, sample), Finish.FINISHED) for sample in range(sampling.samples)]
            for text in texts
        ]
