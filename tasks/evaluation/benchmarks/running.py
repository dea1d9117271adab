"""Puts a checkpoint to benchmarks: what it has not answered yet is asked, everything is scored and written."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from tasks.artifacts import WORK, sha256_of
from tasks.checkpoints import read_config
from tasks.errors import InputError
from tasks.evaluation.benchmarks.asking import AnyBenchmark, Candidate, Exam, ask, check_room, is_interactive, way_of
from tasks.evaluation.benchmarks.base import Attempt, Task
from tasks.evaluation.benchmarks.registry import Entry, data_of, entry_of
from tasks.evaluation.benchmarks.replies import Journal, Said, write_run
from tasks.evaluation.benchmarks.results import BenchmarkReply, BenchmarkRun
from tasks.generation.base import Generator
from tasks.progress import Meter
from tasks.rewards.judge import Judge
from tasks.rewards.judging.canaries import check_canaries
from tasks.rewards.judging.purposes import EQUIVALENCE
from tasks.tokenization import ChatTokenizer

TASKS_PER_CALL = 64
CHARACTERS_PER_CALL = 2**26  # a text of 10M tokens has 40M


@dataclass(frozen=True)
class Planned:
    """A benchmark whose data was read through once: all its rows are as they should be."""

    entry: Entry
    folder: Path
    source: str
    tasks: int

    @property
    def name(self) -> str:
        return self.entry.benchmark.name


def plan(names: Sequence[str], folder: Path) -> list[Planned]:
    """Find and read the data of all benchmarks.

    Raises:
        ParameterError: there is no benchmark of a name.
        InputError: data is missing, damaged or of another release, or two tasks have one id.
    """
    places = [(entry, data_of(entry, folder)) for entry in map(entry_of, names)]
    return [Planned(entry, place, _source(entry, place), _count(entry, place)) for entry, place in places]


def _source(entry: Entry, place: Path) -> str:
    release = f", {entry.release(place)}" if entry.release else ""
    return f"{entry.benchmark.source}{release} (sha256 {sha256_of(place)[:16]})"


def check_judge(judge: Judge | None, planned: Sequence[Planned]) -> None:
    """Try the judge on canaries of all that it is to decide; say what goes unscored where there is none.

    Raises:
        UntrustedJudgeError: the judge does not answer, or not as it should.
        PipelineError: its server refuses every request.
    """
    if judge is None:
        unjudged = [one.name for one in planned if one.entry.purposes]
        if unjudged:
            print(f"without a judge, words that no rule compares go unscored in {', '.join(unjudged)}: set `judge`")
        return
    purposes = {purpose.name: purpose for one in planned for purpose in one.entry.purposes}
    for name, purpose in purposes.items():
        if name != EQUIVALENCE.name:  # tried as it was opened
            check_canaries(judge, purpose)


def examine(
    folder: Path,
    name: str,
    generator: Generator,
    planned: Sequence[Planned],
    exam: Exam,
    judge: Judge | None,
    meter: Meter,
) -> list[Path]:
    """Put the checkpoint in `folder` to all benchmarks; the files of its replies.

    Raises:
        ParameterError: the window exceeds the model's positions.
        InputError: the memory agent's turns do not hold a question.
        PipelineError: the judge's server refuses every request.
    """
    if not planned:
        return []
    candidate = Candidate(name, sha256_of(folder), generator, ChatTokenizer.load(folder))
    check_room(candidate, exam, read_config(folder).get("max_position_embeddings"))
    journal = Journal(WORK / "benchmarks" / "replies.sqlite")
    return [_score(one, candidate, exam, journal, judge, meter) for one in planned]


def _score(
    planned: Planned, candidate: Candidate, exam: Exam, journal: Journal, judge: Judge | None, meter: Meter
) -> Path:
    """Ask what has not been answered yet, score all replies and write them."""
    benchmark = planned.entry.benchmark
    run = _run(planned, candidate, exam)

    def replies() -> Iterator[BenchmarkReply]:
        for tasks in _batches(benchmark, planned.folder):
            said = _answered(benchmark, tasks, candidate, exam, journal)
            yield from _scored(benchmark, tasks, said, run, judge)
            meter.advance(len(tasks), f"{candidate.name}, {benchmark.name}")

    return write_run(run, replies())


def _run(planned: Planned, candidate: Candidate, exam: Exam) -> BenchmarkRun:
    return BenchmarkRun(
        benchmark=planned.name,
        checkpoint=candidate.name,
        way=way_of(planned.entry.benchmark, exam),
        checkpoint_sha256=candidate.sha256,
        source=planned.source,
        samples=exam.sampling.samples,
        window=exam.window,
        max_output_tokens=exam.sampling.max_new_tokens,
        temperature=exam.sampling.temperature,
        top_p=exam.sampling.top_p,
        judge=exam.judge,
    )


def _count(entry: Entry, folder: Path) -> int:
    seen: set[str] = set()
    for task in entry.benchmark.read(folder):
        if task.id in seen:
            raise InputError(f"{folder} holds task {task.id} twice; are files of two releases mixed?")
        seen.add(task.id)
    if not seen:
        raise InputError(f"{folder} holds no task; its files are empty: copy them again")
    return len(seen)


def _batches(benchmark: AnyBenchmark, folder: Path) -> Iterator[list[Task]]:
    """Tasks to be asked together: as many as keep a sampler busy, as few as fit in memory; all conversations."""
    if is_interactive(benchmark):
        yield list(benchmark.read(folder))
        return
    batch: list[Task] = []
    characters = 0
    for task in benchmark.read(folder):
        if batch and (len(batch) == TASKS_PER_CALL or characters + len(task.context) > CHARACTERS_PER_CALL):
            yield batch
            batch, characters = [], 0
        batch.append(task)
        characters += len(task.context)
    if batch:
        yield batch


def _answered(
    benchmark: AnyBenchmark,
    tasks: Sequence[Task],
    candidate: Candidate,
    exam: Exam,
    journal: Journal,
) -> list[list[Said]]:
    """All samples of each task, asking only for those that are not in the journal."""
    keys = [_key(benchmark, task, candidate, exam) for task in tasks]
    known = [journal.find(key) for key in keys]
    missing = [index for index, said in enumerate(known) if said is None]
    asked = [tasks[index] for index in missing]
    for index, said in zip(missing, ask(benchmark, asked, candidate, exam) if asked else (), strict=True):
        journal.keep(keys[index], said)
        known[index] = said
    return [said for said in known if said is not None]


def _scored(
    benchmark: AnyBenchmark,
    tasks: Sequence[Task],
    said: Sequence[Sequence[Said]],
    run: BenchmarkRun,
    judge: Judge | None,
) -> Iterator[BenchmarkReply]:
    rows = [
        (task, sample, one) for task, samples in zip(tasks, said, strict=True) for sample, one in enumerate(samples)
    ]
    scores = benchmark.score([Attempt(task, one.text, one.finish) for task, _, one in rows], judge)
    for (task, sample, one), scored in zip(rows, scores, strict=True):
        yield BenchmarkReply(
            benchmark=run.benchmark,
            checkpoint=run.checkpoint,
            way=run.way,
            task_id=task.id,
            subset=task.subset,
            sample=sample,
            **scored.model_dump(),
            **one.model_dump(),
        )


def _key(benchmark: AnyBenchmark, task: Task, candidate: Candidate, exam: Exam) -> bytes:
    """What was asked of whom: the same text in the same way. Who judges, and by what answer, does not matter."""
    way = way_of(benchmark, exam)
    asked = [benchmark.name, candidate.sha256, way, exam.window, asdict(exam.sampling), exam.seed]
    if is_interactive(benchmark):
        asked.append(task.model_dump_json())
    elif way == "agent":
        asked += [exam.memory.model_dump(), task.id, task.context, task.question, task.instruction]
    else:
        asked += [task.id, benchmark.prompt(task)]
    return sha256(json.dumps(asked).encode()).digest()
