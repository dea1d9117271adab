"""Small records, and a model that answers by a rule: for the tests of filtering."""

import random
from collections import Counter
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

    def count(self, text: str) -> int:
        return len(text.split())

    def prompt_ids(self, content: str) -> list[int]:
        return list(content.encode())

    def prompt_length(self, content: str) -> int:
        return len(content.split())


class RuleGenerator:
    """Answers every prompt by a rule of its text and the number of the sample; keeps prompts and seeds.

    Samples of one prompt are numbered on from call to call.
    """

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.prompts: list[str] = []
        self.seeds: list[int] = []
        self.samplings: list[Sampling] = []
        self.drawn: Counter[str] = Counter()

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, seed: int | Sequence[int]
    ) -> list[list[Completion]]:
        texts = [bytes(prompt).decode() for prompt in prompts]
        self.prompts += texts
        self.seeds += [seed] if isinstance(seed, int) else seed
        self.samplings.append(sampling)
        return [self._samples(text, sampling.samples) for text in texts]

    def _samples(self, text: str, number: int) -> list[Completion]:
        first = self.drawn[text]
        self.drawn[text] += number
        return [Completion((1,), self._rule(text, first + sample), Finish.FINISHED) for sample in range(number)]


class DiceGenerator:
    """Says Paris or Oslo as the seed has it: the answers of a prompt depend on its seed alone."""

    def __init__(self) -> None:
        self.drawn = 0

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, seed: Sequence[int]
    ) -> list[list[Completion]]:
        self.drawn += len(prompts) * sampling.samples
        return [self._throws(own, sampling.samples) for own in seed]

    def _throws(self, seed: int, number: int) -> list[Completion]:
        dice = random.Random(seed)
        cities = (dice.choice(("Paris", "Oslo", "Oslo", "Oslo")) for _ in range(number))
        return [Completion((1,), f"The answer is {city}.", Finish.FINISHED) for city in cities]
