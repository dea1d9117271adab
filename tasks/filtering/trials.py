"""Asking a model: n samples of each question, and how many were right."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tasks.generation.base import Generator, Sampling
from tasks.params import Params
from tasks.prompts import question_prompt
from tasks.records import UNTRIED, Item, Question, Trials, Verdict
from tasks.rewards.judge import Judge
from tasks.rewards.judging.verdicts import Attempt, verdicts_of
from tasks.tokenization import ChatTokenizer

__all__ = ["Exam", "Examiner", "Trials", "sampling_of", "seed_of", "tally"]

PROMPTS_PER_CALL = 64


@dataclass(frozen=True)
class Exam:
    """A prompt that is asked until its answers decide.

    Each sample has a seed of its own, `seed` with the sample's number: it is the same whether or not others are drawn,
    so an exam may stop early, and be taken up again where it stopped.

    Attributes:
        sampling: of one sample.
        wanted: how many samples to draw next, by those so far; 0 ends the exam.
        trials: what was drawn before.
    """

    question: Question
    prompt: str
    sampling: Sampling
    seed: str
    wanted: Callable[[Trials], int]
    trials: Trials = UNTRIED


@dataclass(frozen=True)
class Examiner:
    """A model that is asked. `advance` hears how many more prompts are done.

    `judge` decides what the rule leaves open, as in the training: a pass rate means what the trainer will see.
    """

    generator: Generator
    tokenizer: ChatTokenizer
    advance: Callable[[int], None]
    judge: Judge | None = None

    def ask(self, prompts: Sequence[str], questions: Sequence[Question], sampling: Sampling, seed: str) -> list[Trials]:
        """Sample every prompt and check the replies against its question."""
        trials: list[Trials] = []
        for start in range(0, len(prompts), PROMPTS_PER_CALL):
            chunk = slice(start, start + PROMPTS_PER_CALL)
            ids = [self.tokenizer.prompt_ids(prompt) for prompt in prompts[chunk]]
            groups = self.generator.generate(ids, sampling, seed_of(f"{seed}/{start}"))
            for question, group in zip(questions[chunk], groups, strict=True):
                attempts = [Attempt(question, reply.text, reply.finish) for reply in group]
                trials.append(tally(verdicts_of(attempts, self.judge)))
            self.advance(len(ids))
        return trials

    def ask_items(self, items: Sequence[Item], sampling: Sampling, seed: str) -> list[Trials]:
        """Sample items on their full contexts."""
        prompts = [question_prompt(item.documents, item.question) for item in items]
        return self.ask(prompts, [item.question for item in items], sampling, seed)

    def examine(self, exams: Sequence[Exam]) -> list[Trials]:
        """Draw for each exam until it wants no more; all that want some share a call. Return what there is then."""
        trials = [exam.trials for exam in exams]
        prompts = [self.tokenizer.prompt_ids(exam.prompt) for exam in exams]
        while calls := _next_samples(exams, trials):
            for sampling, samples in calls.items():
                seeds = [seed_of(f"{exams[place].seed}/{number}") for place, number in samples]
                groups = self.generator.generate([prompts[place] for place, _ in samples], sampling, seeds)
                places = [place for place, _ in samples]
                attempts = [
                    Attempt(exams[place].question, reply.text, reply.finish)
                    for place, (reply,) in zip(places, groups, strict=True)
                ]
                for place, verdict in zip(places, verdicts_of(attempts, self.judge), strict=True):
                    trials[place] += tally([verdict])
        self.advance(len(exams))
        return trials


def _next_samples(exams: Sequence[Exam], trials: Sequence[Trials]) -> dict[Sampling, list[tuple[int, int]]]:
    """The samples that are wanted next (place of the exam, number of its sample), by how they are drawn."""
    found: dict[Sampling, list[tuple[int, int]]] = defaultdict(list)
    for place, (exam, so_far) in enumerate(zip(exams, trials, strict=True)):
        last = so_far.drawn + exam.wanted(so_far)
        if last > so_far.drawn:
            found[exam.sampling] += [(place, number) for number in range(so_far.drawn, last)]
    return found


def tally(verdicts: Iterable[Verdict]) -> Trials:
    """Count verdicts."""
    known = list(verdicts)
    return Trials(
        correct=known.count(Verdict.CORRECT), scored=len(known) - known.count(Verdict.UNSCORED), drawn=len(known)
    )


def sampling_of(params: Params, output_tokens: int, samples: int) -> Sampling:
    """Sampling as the training samples, so that a pass rate means what the trainer will see."""
    return Sampling(params.rl.sampling.temperature, params.rl.sampling.top_p, output_tokens, samples)


def seed_of(name: str) -> int:
    """A seed of its own for every named draw: sums of seeds and counters would repeat between rounds."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1
