"""The base model's final exam and its model card.

New worlds of shuffled facts, at the lengths of the RL stages: what the model can do, what guessing would give, and
what choosing to quote the evidence first is worth.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from tasks.base_model.worlds import NEIGHBOURHOOD, Problem, World, make_problem, make_world, world_of
from tasks.corpus.countries import load_countries, vocabulary
from tasks.generation.base import Completion, Generator, Sampling
from tasks.prompts import answer_prompt, join_documents
from tasks.records import Domain, Finish
from tasks.rewards.extraction import extract_answer
from tasks.tokenization import ChatTokenizer

LENGTHS = (128, 256, 512)
QUESTIONS = 40  # per domain and length
SAMPLES = 4
SEED = 2026
QUESTION_TOKENS = 30  # room kept for the question


@dataclass(frozen=True)
class Mark:
    """One cell of the exam, shares in 0..1; `quoting` and `direct` are None when no reply was of that kind."""

    domain: Domain
    length: int
    guess: float
    greedy: float
    sampled: float
    quoting: float | None
    direct: float | None


@dataclass(frozen=True)
class Exercise:
    """A question on a world, as shown."""

    world: World
    problem: Problem
    prompt: str


def examine(generator: Generator, tokenizer: ChatTokenizer) -> list[Mark]:
    """Answer new questions of every domain at every length, greedily and sampled as in training."""
    marks = []
    for length in LENGTHS:
        rng = random.Random(f"{SEED}:{length}")
        for domain in Domain:
            exercises = [draw_exercise(domain, length, tokenizer, rng) for _ in range(QUESTIONS)]
            prompts = [tokenizer.prompt_ids(exercise.prompt) for exercise in exercises]
            greedy = generator.generate(prompts, Sampling(0.0, 1.0, 64), SEED)
            sampled = generator.generate(prompts, Sampling(0.7, 0.95, 64, SAMPLES), SEED)
            marks.append(_mark(domain, length, exercises, greedy, sampled))
    return marks


def draw_exercise(domain: Domain, length: int, tokenizer: ChatTokenizer, rng: random.Random) -> Exercise:
    """A question whose documents fill the length as far as whole documents do."""
    countries = load_countries()
    pools, regions = vocabulary(countries), sorted({country.region for country in countries})
    while True:
        drawn = make_world(pools, regions, length // 20, rng)
        documents: list[str] = []
        for text in drawn.documents:
            if tokenizer.count(join_documents([*documents, text])) > length - QUESTION_TOKENS:
                break
            documents.append(text)
        world = world_of(documents, pools)
        problem = make_problem(world, domain, rng)
        if problem is not None:
            return Exercise(world, problem, answer_prompt(documents, problem.question, problem.options))


def guesses(exercises: Sequence[Exercise]) -> float:
    """Expected share right of the best blind guess.

    A random option; the most common number of the exam; else a random stated value of the answer's kind.
    """
    domain = exercises[0].problem.domain
    if domain is Domain.MULTIPLE_CHOICE:
        return 1 / len(exercises[0].problem.options)
    if domain is Domain.CORPUS_NUMERIC:
        answers = Counter(exercise.problem.answer for exercise in exercises)
        return answers.most_common(1)[0][1] / len(exercises)
    return fmean(_candidate_share(exercise) for exercise in exercises)


def _candidate_share(exercise: Exercise) -> float:
    kind = exercise.problem.evidence[-1].key[0]
    kinds = NEIGHBOURHOOD if kind in NEIGHBOURHOOD else (kind,)
    values = [fact.value for key, fact in exercise.world.facts.items() if key[0] in kinds]
    return values.count(exercise.problem.answer) / len(values)


def _mark(
    domain: Domain,
    length: int,
    exercises: Sequence[Exercise],
    greedy: Sequence[Sequence[Completion]],
    sampled: Sequence[Sequence[Completion]],
) -> Mark:
    replies = [
        (completion, _right(completion, exercise.problem))
        for exercise, completions in zip(exercises, sampled, strict=True)
        for completion in completions
    ]
    quoting = [right for completion, right in replies if "<think>" in completion.text]
    direct = [right for completion, right in replies if "<think>" not in completion.text]
    return Mark(
        domain,
        length,
        guess=guesses(exercises),
        greedy=fmean(_right(group[0], exercise.problem) for exercise, group in zip(exercises, greedy, strict=True)),
        sampled=fmean(right for _, right in replies),
        quoting=fmean(quoting) if quoting else None,
        direct=fmean(direct) if direct else None,
    )


def _right(completion: Completion, problem: Problem) -> bool:
    answer = extract_answer(completion.text, completion.finish)
    return completion.finish is Finish.FINISHED and answer == problem.answer


def model_card(marks: Sequence[Mark], log: Sequence[Mapping[str, float]]) -> str:
    """The folder's README.md."""
    rows = "\n".join(
        f"| {mark.domain} | {mark.length} | {_percent(mark.guess)} | {_percent(mark.greedy)} "
        f"| {_percent(mark.sampled)} | {_percent(mark.direct)} | {_percent(mark.quoting)} |"
        for mark in marks
    )
    return f"""---
license: apache-2.0
library_name: transformers
pipeline_tag: text-generation
---
# tiny-base

The base model of the tiny profile: a Qwen3 of two layers (hidden size 128, two heads of 64, 0.49 M parameters) with a
closed vocabulary of words and characters, trained from scratch on worlds of shuffled country facts: it has to read, it
cannot remember. It answers questions directly or after quoting its evidence in think tags, updates a memory and a
plan, proposes questions and judges answers. It saw documents of at most 128 tokens; longer ones, and the choice
between both ways of answering, are left to reinforcement learning.

Made by `python -m tasks.base_model.pretrain` (seed 0, one thread, fp32): {int(log[-1]["step"])} updates of about 3,000
tokens, a number fixed before the run (docs/log.md compares it with an earlier base of 8,000). `training_log.jsonl`
is its log, `curve.png` its curve (`cpu_seconds` restarts where the run was resumed).

![next-token accuracy on each kind of lesson](curve.png)

## Exam

{QUESTIONS} questions a cell on new shuffled worlds (`python -m tasks.base_model.pretrain --card`), in percent.
*Guess*: the best blind guess (a random option, the most common number, a random stated value of the right kind).
*Sampled*: mean of {SAMPLES} replies at temperature 0.7, top-p 0.95; *direct* and *quoting* are the same replies,
split by whether they quote evidence first.

| domain | context | guess | greedy | sampled | direct | quoting |
|---|---:|---:|---:|---:|---:|---:|
{rows}
"""


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f}"


def draw_curve(log: Sequence[Mapping[str, float]]) -> bytes:
    """Next-token accuracy on the learned tokens of every kind of lesson, as PNG."""
    import io

    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    for name in sorted({key for entry in log for key in entry if key.startswith("accuracy/")}):
        points = [(entry["step"], entry[name]) for entry in log if name in entry]
        axes.plot(*zip(*points, strict=True), label=name.removeprefix("accuracy/"))
    axes.set(xlabel="update", ylabel="next-token accuracy", ylim=(0, 1))
    axes.grid(alpha=0.3)
    axes.legend(ncols=2, fontsize=8)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    return buffer.getvalue()
