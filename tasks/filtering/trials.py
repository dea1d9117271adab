"""Asking a model: n samples of each question, and how many were right."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tasks.generation.base import Generator, Sampling
from tasks.params import Params
from tasks.prompts import answer_prompt
from tasks.records import Item, Question, Verdict
from tasks.rewards.rules import check
from tasks.tokenization import ChatTokenizer

PROMPTS_PER_CALL = 64


@dataclass(frozen=True)
class Trials:
    """Right answers among the samples that got a verdict; unscored ones are in neither number."""

    correct: int = 0
    scored: int = 0

    @property
    def rate(self) -> float | None:
        """Pass rate in 0..1; None when nothing was scored."""
        return self.correct / self.scored if self.scored else None


@dataclass(frozen=True)
class Examiner:
    """A model that is asked. `advance` hears how many more prompts are done."""

    generator: Generator
    tokenizer: ChatTokenizer
    advance: Callable[[int], None]

    def ask(self, prompts: Sequence[str], questions: Sequence[Question], sampling: Sampling, seed: str) -> list[Trials]:
        """Sample every prompt and check the replies against its question."""
        trials: list[Trials] = []
        for start in range(0, len(prompts), PROMPTS_PER_CALL):
            chunk = slice(start, start + PROMPTS_PER_CALL)
            ids = [self.tokenizer.prompt_ids(prompt) for prompt in prompts[chunk]]
            groups = self.generator.generate(ids, sampling, seed_of(f"{seed}/{start}"))
            for question, group in zip(questions[chunk], groups, strict=True):
                trials.append(tally(check(reply.text, reply.finish, question) for reply in group))
            self.advance(len(ids))
        return trials

    def ask_items(self, items: Sequence[Item], sampling: Sampling, seed: str) -> list[Trials]:
        """Sample items on their full contexts."""
        prompts = [answer_prompt(item.documents, item.question.question, item.question.options) for item in items]
        return self.ask(prompts, [item.question for item in items], sampling, seed)


def tally(verdicts: Iterable[Verdict]) -> Trials:
    """Count verdicts."""
    scored = [verdict for verdict in verdicts if verdict is not Verdict.UNSCORED]
    return Trials(sum(verdict is Verdict.CORRECT for verdict in scored), len(scored))


def sampling_of(params: Params, output_tokens: int, samples: int) -> Sampling:
    """Sampling as the training samples, so that a pass rate means what the trainer will see."""
    return Sampling(params.rl.sampling.temperature, params.rl.sampling.top_p, output_tokens, samples)


def seed_of(name: str) -> int:
    """A seed of its own for every named draw: sums of seeds and counters would repeat between rounds."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1
