"""Doubles for the memory agent: whitespace words as tokens, a generator that keeps how it was called."""

from collections.abc import Sequence

from tasks.generation.base import Completion, Sampling
from tasks.generation.scripted import ScriptedGenerator
from tasks.params import MemoryParams
from tasks.records import AnswerKind, Domain, Question

PARAMS = MemoryParams(chunk_tokens=4, memory_tokens=3, plan_tokens=2, window=200)
SAMPLING = Sampling(temperature=1.0, top_p=1.0, max_new_tokens=7)


class WordTokenizer:
    """Whitespace words as tokens, numbered as they come; a prompt is framed by ids 0 and 1."""

    def __init__(self) -> None:
        self.words: list[str] = ["<user>", "<assistant>"]

    def encode(self, text: str) -> list[int]:
        for word in text.split():
            if word not in self.words:
                self.words.append(word)
        return [self.words.index(word) for word in text.split()]

    encode_reply = encode

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self.words[token] for token in ids)

    def count(self, text: str) -> int:
        return len(text.split())

    def prompt_ids(self, content: str) -> list[int]:
        return [0, *self.encode(content), 1]

    def prompt_length(self, content: str) -> int:
        return self.count(content) + 2


class RecordingGenerator(ScriptedGenerator):
    """Also keeps the sampling and the seed of every call."""

    def __init__(self, replies: Sequence[str | Completion]) -> None:
        super().__init__(replies)
        self.calls: list[tuple[int, Sampling, int]] = []

    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling, seed: int) -> list[list[Completion]]:
        self.calls.append((len(prompts), sampling, seed))
        return super().generate(prompts, sampling, seed)


def question(text: str = "who?", options: tuple[str, ...] = ()) -> Question:
    return Question(
        id="q",
        domain=Domain.MULTI_HOP,
        question=text,
        gold=("Ann",),
        answer_kind=AnswerKind.TEXT,
        options=options,
        document_ids=("d",),
        split="train",
        generator="knowledge_graph",
        difficulty=1,
        provenance={},
        seed=0,
    )


def update(memory: str, plan: str) -> str:
    return f"<memory> {memory} </memory> <plan> {plan} </plan>"
