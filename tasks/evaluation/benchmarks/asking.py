"""Asks a checkpoint a benchmark's tasks: prompts cut to the window, texts read chunk by chunk, or conversations held.

Middle truncation is QwenLong's: of the whole prompt, before the chat template, ids[:L//2] + ids[-L//2:], without a mark
(github.com/Tongyi-Zhiwen/QwenLong-L1, eval/utils/openai_api.py; LongBench's pred.py). Theirs decode the ids that are
left and encode them again, which changes their number; here the ids themselves go to the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np
from typing_extensions import TypeIs

from tasks.errors import ParameterError
from tasks.evaluation.benchmarks.base import Benchmark, Conversational, Task
from tasks.evaluation.benchmarks.conversation import Conversations
from tasks.evaluation.benchmarks.interactive import Interactive, Model
from tasks.evaluation.benchmarks.replies import Said
from tasks.evaluation.benchmarks.results import Way
from tasks.generation.base import Generator, Sampling
from tasks.memory.agent import AgentRun, open_question, run_agent
from tasks.params import BenchmarkParams, MemoryParams, Params
from tasks.tokenization import ChatTokenizer
from tasks.truncation import middle_truncate

AnyBenchmark = Benchmark[Any] | Interactive[Any]


@dataclass(frozen=True)
class Candidate:
    """A loaded checkpoint; its hash tells replies of another training of the same name apart."""

    name: str
    sha256: str
    generator: Generator
    tokenizer: ChatTokenizer


@dataclass(frozen=True)
class Exam:
    """How tasks are asked. `sampling.samples` replies to each; `judge` names who scores them."""

    way: Way
    window: int
    sampling: Sampling
    memory: MemoryParams
    seed: int
    judge: str | None


@dataclass(frozen=True)
class _Prompt:
    """What a model is given, and how many tokens it would be whole."""

    ids: Sequence[int]
    whole: int


def exam_of(params: Params, limits: BenchmarkParams) -> Exam:
    """Temperature and top-p are those of the training, as in the paper."""
    sampling = params.rl.sampling
    return Exam(
        way=limits.way,
        window=limits.max_input_tokens,
        sampling=Sampling(sampling.temperature, sampling.top_p, limits.max_output_tokens, limits.samples),
        memory=params.memory,
        seed=params.seed,
        judge=str(params.judge.model) if params.judge else None,
    )


def check_room(candidate: Candidate, exam: Exam, positions: object) -> None:
    """Refuse a window that, with the chat template and a reply, exceeds the model's positions.

    Raises:
        ParameterError: by how much, and what to change.
    """
    need = exam.window + len(candidate.tokenizer.wrap(())) + exam.sampling.max_new_tokens
    if exam.way == "truncation" and isinstance(positions, int) and need > positions:
        raise ParameterError(
            f"{candidate.name} has {positions} positions, and evaluation.benchmarks.max_input_tokens = {exam.window} "
            f"with the template and {exam.sampling.max_new_tokens} tokens of reply takes {need}; lower one of the two"
        )


def ask(benchmark: AnyBenchmark, tasks: Sequence[Task], candidate: Candidate, exam: Exam) -> list[list[Said]]:
    """All samples of each task. A task's replies by truncation do not depend on what is asked with it.

    The agent leaves alone what has no text to read: that is asked as it is.

    Raises:
        InputError: the memory agent's turns do not hold a question.
    """
    if is_interactive(benchmark):
        return _played(benchmark, tasks, candidate, exam)
    if exam.way == "agent" and any(task.context for task in tasks):
        return _read_by_agent(tasks, candidate, exam)
    return _cut(benchmark, tasks, candidate, exam)


def _cut(benchmark: Benchmark[Any], tasks: Sequence[Task], candidate: Candidate, exam: Exam) -> list[list[Said]]:
    prompts = [_prompt(benchmark, task, candidate.tokenizer, exam.window) for task in tasks]
    seeds = [seed_of(exam, task.id) for task in tasks]
    groups = candidate.generator.generate([prompt.ids for prompt in prompts], exam.sampling, seeds)
    return [
        [
            Said(
                text=completion.text,
                finish=completion.finish,
                input_tokens=prompt.whole,
                output_tokens=len(completion.token_ids),
                cut=prompt.whole > len(prompt.ids),
            )
            for completion in group
        ]
        for prompt, group in zip(prompts, groups, strict=True)
    ]


def _prompt(benchmark: Benchmark[Any], task: Task, tokenizer: ChatTokenizer, window: int) -> _Prompt:
    """A conversation that does not fit is cut as one text: its turns could not be told apart."""
    if has_turns(benchmark):
        turns = Conversations(tokenizer).ids(benchmark.turns(task))
        if len(turns) <= len(tokenizer.wrap(())) + window:
            return _Prompt(turns, len(turns))
    ids = tokenizer.encode(benchmark.prompt(task))
    return _Prompt(tokenizer.wrap(middle_truncate(ids, window)), len(tokenizer.wrap(ids)))


def _read_by_agent(tasks: Sequence[Task], candidate: Candidate, exam: Exam) -> list[list[Said]]:
    """Samples of a task are trajectories of their own, all read at once."""
    samples = exam.sampling.samples
    runs = run_agent(
        candidate.generator,
        candidate.tokenizer,
        [(task.context,) for task in tasks for _ in range(samples)],
        [open_question(task.id, task.question, task.instruction) for task in tasks for _ in range(samples)],
        exam.memory,
        exam.sampling,
        seed_of(exam, tasks[0].id),
    )
    lengths = [candidate.tokenizer.count(task.context) for task in tasks]
    return [
        [_told(run, length) for run in runs[index * samples : (index + 1) * samples]]
        for index, length in enumerate(lengths)
    ]


def _told(run: AgentRun, length: int) -> Said:
    sampled = sum(len(turn.response_ids) for turn in run.turns)
    return Said(text=run.reply, finish=run.finish, input_tokens=length, output_tokens=sampled, cut=False)


def _played(benchmark: Interactive[Any], tasks: Sequence[Task], candidate: Candidate, exam: Exam) -> list[list[Said]]:
    one = replace(exam.sampling, samples=1)
    model = Model(candidate.generator, Conversations(candidate.tokenizer), one, exam.window)
    rounds = [
        benchmark.play(tasks, model, seed_of(exam, f"sample {sample}")) for sample in range(exam.sampling.samples)
    ]
    return [
        [
            Said(
                text=played.attempt.reply,
                finish=played.attempt.finish,
                input_tokens=played.input_tokens,
                output_tokens=played.output_tokens,
                cut=False,
            )
            for played in samples
        ]
        for samples in zip(*rounds, strict=True)
    ]


def way_of(benchmark: AnyBenchmark, exam: Exam) -> Way:
    """How a benchmark is read: conversations never by the agent."""
    return "truncation" if is_interactive(benchmark) else exam.way


def is_interactive(benchmark: AnyBenchmark) -> TypeIs[Interactive[Any]]:
    """Whether its tasks take several turns."""
    return hasattr(benchmark, "play")


def has_turns(benchmark: Benchmark[Any]) -> TypeIs[Conversational[Any]]:
    """Whether its prompts are whole conversations."""
    return hasattr(benchmark, "turns")


def seed_of(exam: Exam, name: str) -> int:
    """A seed for everything that is drawn for a name."""
    return int(np.random.SeedSequence([exam.seed, crc32(name.encode())]).generate_state(1)[0])
