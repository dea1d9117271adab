"""The checks that need the base model, question by question: what a worker does with a batch.

A batch is examined on its own, and every question draws from seeds of its own: who does it changes nothing.
"""

import random
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from tasks.artifacts import WORK
from tasks.corpus.library import Library
from tasks.filtering import grounding, robustness
from tasks.filtering.difficulty import Measured
from tasks.filtering.funnel import Fate, Outcome
from tasks.filtering.grounding import Grounding
from tasks.filtering.guessing import guess_rate
from tasks.filtering.lengths import bucket_of, buckets, remembered
from tasks.filtering.trials import Exam, Examiner, sampling_of
from tasks.params import Execution, Params
from tasks.prompts import question_prompt
from tasks.records import UNTRIED, Item, Question, Trials
from tasks.rewards.opening import open_judge_in
from tasks.synthesis.distractors import extend
from tasks.tokenization import ChatTokenizer

# Questions: enough to sample together, few enough to hold with their documents, and to see that it goes on.
BATCH = {"torch": 128, "transformers": 8, "vllm": 128}
CHECKED = ("splits", "answer_length", "near_duplicates", "contamination", "guessing", "grounding")
T = TypeVar("T")


@dataclass(frozen=True)
class Assignment:
    """A question, the length it was dealt, and the share of the other questions that have its answer."""

    question: Question
    limit: int
    answer_share: float


@dataclass(frozen=True)
class Examined:
    """What became of a question: its item as far as it came, and the answers that each check drew."""

    question: Question
    outcome: Outcome
    item: Item | None = None
    grounding: Trials = UNTRIED
    robustness: Trials = UNTRIED

    @property
    def fate(self) -> Fate:
        """The outcome alone."""
        return Fate(self.question, self.outcome)


def batches(things: Iterable[T], execution: Execution) -> Iterator[tuple[T, ...]]:
    """Fixed batches in order, as the sampler likes them; the last one is shorter."""
    left = iter(things)
    while batch := tuple(islice(left, BATCH[execution.sampler])):
        yield batch


class EvidenceLengths:
    """A worker that counts the tokens of prompts with the evidence alone."""

    def __init__(self, params: Params, library: Library) -> None:
        self._count = remembered(ChatTokenizer.load(params.base_model).prompt_length)
        self._library = library

    def __call__(self, questions: Sequence[Question]) -> list[int]:
        return [self._count(render(one, self._library, one.document_ids)) for one in questions]


class Verifier:
    """A worker that extends contexts and asks the base model, without the documents and with them."""

    def __init__(self, params: Params, library: Library) -> None:
        self._params = params
        self._library = library
        self._examiner = open_examiner(params)
        self._count = remembered(self._examiner.tokenizer.prompt_length)

    def __call__(self, batch: Sequence[Assignment]) -> list[Examined]:
        shares = [one.answer_share for one in batch]
        extended = [extended_to(one, self._library, self._count, self._params) for one in batch]
        return withstand(ground(extended, shares, self._params, self._examiner), self._params, self._examiner)


class Completer:
    """A worker that draws the answers which an early decision left out."""

    def __init__(self, params: Params) -> None:
        self._params = params
        self._examiner = open_examiner(params)

    def __call__(self, items: Sequence[Item]) -> list[Measured]:
        exams = [robustness_exam(item, self._params, until_complete(self._params)) for item in items]
        pairs = zip(items, self._examiner.examine(exams), strict=True)
        return [Measured(one.question.id, one.question.domain, one.question.generator, drawn) for one, drawn in pairs]


def open_examiner(params: Params) -> Examiner:
    """The base model, ready to be asked; workers of one machine share the judge's memory."""
    from tasks.generation.models import open_generator  # torch: not for --help

    generator = open_generator(params.base_model, params.execution, params.threads)
    judge = open_judge_in((WORK / "examination" / socket.gethostname() / "judge").absolute(), params)
    return Examiner(generator, ChatTokenizer.load(params.base_model), lambda _: None, judge)


def extended_to(assigned: Assignment, library: Library, count: Callable[[str], int], params: Params) -> Examined:
    """The item on its context. Its bucket is the smallest that holds it: a small corpus cannot fill all."""
    question = assigned.question
    rng = random.Random(f"{params.seed}/extend/{question.id}")
    ids = extend(question, library, assigned.limit, count, rng)
    length = count(render(question, library, ids))
    bucket = bucket_of(length, list(buckets(params)))
    if bucket is None:
        return Examined(question, Outcome.EVIDENCE_TOO_LONG)
    texts = tuple(library[name].text for name in ids)
    item = Item(question=question, documents=texts, document_ids=ids, length_bucket=bucket, input_tokens=length)
    return Examined(question, Outcome.KEPT, item)


def ground(examined: Sequence[Examined], shares: Sequence[float], params: Params, examiner: Examiner) -> list[Examined]:
    """Drop questions that the model answers without documents more often than guessing explains."""
    asked = [(place, one.item) for place, one in enumerate(examined) if one.item]
    chances = [max(guess_rate(item), shares[place]) for place, item in asked]
    exams = [_grounding_exam(item.question, chance, params) for (_, item), chance in zip(asked, chances, strict=True)]
    results = list(examined)
    for (place, item), chance, trials in zip(asked, chances, examiner.examine(exams), strict=True):
        verdict = grounding.judge_grounding(trials.correct, trials.drawn, params.filtering.grounding_samples, chance)
        grounded = verdict is Grounding.GROUNDED
        outcome = Outcome.KEPT if grounded else Outcome.UNGROUNDED
        checked = item.model_copy(update={"checks": CHECKED})
        results[place] = replace(results[place], outcome=outcome, item=checked if grounded else None, grounding=trials)
    return results


def withstand(examined: Sequence[Examined], params: Params, examiner: Examiner) -> list[Examined]:
    """Drop training items that the model never answers on their contexts: pass@k = 0.

    One right answer decides, and no more are drawn. Held-out items are not asked.
    """
    asked = [(place, one.item) for place, one in enumerate(examined) if one.item and one.question.split == "train"]
    exams = [robustness_exam(item, params, until_right(params)) for _, item in asked]
    results = list(examined)
    for (place, item), trials in zip(asked, examiner.examine(exams), strict=True):
        outcome = robustness_outcome(trials)
        checked = item.model_copy(update={"checks": (*item.checks, "robustness"), "trials": trials})
        kept = checked if outcome is Outcome.KEPT else None
        results[place] = replace(results[place], outcome=outcome, item=kept, robustness=trials)
    return results


def robustness_exam(item: Item, params: Params, wanted: Callable[[Trials], int]) -> Exam:
    """The item on its context, from where its trials stopped."""
    question = item.question
    return Exam(
        question=question,
        prompt=question_prompt(item.documents, question),
        sampling=sampling_of(params, buckets(params)[item.length_bucket], 1),
        seed=f"{params.seed}/robustness/{question.id}",
        wanted=wanted,
        trials=item.trials,
    )


def until_right(params: Params) -> Callable[[Trials], int]:
    """Robustness: one right answer decides."""
    samples = params.filtering.robustness_samples
    return lambda trials: robustness.samples_wanted(trials.correct, trials.drawn, samples)


def until_complete(params: Params) -> Callable[[Trials], int]:
    """The pass rate: all answers."""
    return lambda trials: params.filtering.robustness_samples - trials.drawn


def robustness_outcome(trials: Trials) -> Outcome:
    """Kept once right; where no answer got a verdict nothing is known."""
    if trials.scored == 0:
        return Outcome.UNSCORED
    solvable = robustness.pass_at_k(trials.scored, trials.correct, k=trials.scored) > 0
    return Outcome.KEPT if solvable else Outcome.NOT_ROBUST


def render(question: Question, library: Library, ids: Sequence[str]) -> str:
    """The prompt of a question on these documents."""
    return question_prompt([library[name].text for name in ids], question)


def _grounding_exam(question: Question, chance: float, params: Params) -> Exam:
    samples = params.filtering.grounding_samples
    return Exam(
        question=question,
        prompt=question_prompt((), question),
        sampling=sampling_of(params, max(buckets(params).values()), 1),
        seed=f"{params.seed}/grounding/{question.id}",
        wanted=lambda trials: grounding.samples_wanted(trials.correct, trials.drawn, samples, chance),
    )
