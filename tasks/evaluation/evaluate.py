"""Score every checkpoint on held-out documents: metrics/evaluation.json and data/evaluation/*.parquet.

Each model is loaded once and answers the test items greedily and k times at the training's temperature and
top-p; some then read documents many times longer than the window, by memory agent and by middle truncation. Public
benchmarks follow where `evaluation.benchmarks` names some: metrics/benchmarks.json, as tasks/evaluation/benchmark.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tasks.artifacts import read_items, stage_lock, write_items, write_json
from tasks.checkpoints import check_checkpoint
from tasks.cli import stage_command
from tasks.corpus.library import Library
from tasks.errors import InputError
from tasks.evaluation.answering import Prompt, Reader, answer, prompt_of, read_long
from tasks.evaluation.benchmarks.asking import exam_of
from tasks.evaluation.benchmarks.running import Planned, check_judge, examine, plan
from tasks.evaluation.benchmarks.summary import summarise as summarise_benchmarks
from tasks.evaluation.benchmarks.summary import tracked as tracked_benchmarks
from tasks.evaluation.files import BENCHMARKS, LONG_ITEMS, METRICS, REPLIES, TEST_ITEMS, write_replies
from tasks.evaluation.long_documents import long_items, long_questions
from tasks.evaluation.provenance import provenance
from tasks.evaluation.scores import Evaluation, Reply
from tasks.evaluation.scoring import Bootstrap, compare, key_of, score_checkpoint, score_long, table_of
from tasks.filtering.guessing import guess_rate
from tasks.params import Params
from tasks.progress import meter
from tasks.rewards.judge import Judge
from tasks.rewards.opening import open_judge
from tasks.rewards.rules import require_means
from tasks.tokenization import ChatTokenizer
from tasks.tracking import Tracker, stage_run

BASE = "base"
TRAINED = ("stage1", "stage2", "stage3", "memory", "merged", "stage4")
READS_LONG = (BASE, "memory", "stage4")  # before, the expert, and what merging and stage 4 kept of it
CHECKPOINTS = Path("checkpoints")
COUNTED = 1024  # texts whose tokens stay counted
DOCUMENTS = Path("data/corpus/documents.parquet")


@dataclass(frozen=True)
class HeldOut:
    """What is asked: the test items, the long contexts, and the lengths that the corpus could not fill."""

    prompts: tuple[Prompt, ...]
    long: tuple[Prompt, ...]
    too_long: tuple[int, ...]


def run(params: Params) -> None:
    """The evaluation stage."""
    folders = {BASE: params.base_model, **{name: CHECKPOINTS / name for name in TRAINED}}
    with stage_lock("evaluate"), stage_run("evaluate", params) as tracker:
        for folder in folders.values():
            check_checkpoint(folder)
        planned = plan(params.evaluation.benchmarks.names, params.evaluation.benchmarks.folder)
        tracker.log_dataset(TEST_ITEMS, "test")
        held_out = read_held_out(params, ChatTokenizer.load(params.base_model))
        judge = open_judge(params, "evaluate")
        check_judge(judge, planned)
        replies = answer_all(folders, held_out, planned, judge, params)
        evaluation = summarise(held_out, replies, params)
        write_replies(REPLIES, replies)
        write_items(LONG_ITEMS, [prompt.item for prompt in held_out.long])
        write_json(METRICS, evaluation)
        tracker.log_summary(tracked(evaluation))
        tracker.log_artifact(METRICS)
        if judge is not None:
            tracker.log_metrics({f"judge/{name}": count for name, count in judge.counts().items()}, step=0)
        if planned:
            publish_benchmarks(tuple(folders), tracker, params)
    print(f"{len(held_out.prompts)} held-out items and {len(folders)} checkpoints scored: {METRICS}")


def read_held_out(params: Params, tokenizer: ChatTokenizer) -> HeldOut:
    """Read the test items and build the long contexts from test documents alone.

    Raises:
        InputError: there is no test item.
    """
    items = read_items(TEST_ITEMS)
    if not items:
        raise InputError(f"{TEST_ITEMS} holds no item; raise synthesis.test_questions_per_domain or corpus.test_share")
    require_means(item.question for item in items)
    library = Library.open(DOCUMENTS)
    questions = long_questions(items, params.evaluation.long_questions)
    window, length = params.memory.window, lru_cache(COUNTED)(tokenizer.prompt_length)
    long = {
        tokens: long_items(questions, library, tokens, length, params.seed)
        for tokens in (multiple * window for multiple in params.evaluation.long_multiples)
    }
    return HeldOut(
        prompts=tuple(prompt_of(item, window, tokenizer) for item in items),
        long=tuple(prompt_of(item, window, tokenizer) for filled in long.values() for item in filled),
        too_long=tuple(tokens for tokens, filled in long.items() if not filled),
    )


def answer_all(
    folders: Mapping[str, Path], held_out: HeldOut, planned: Sequence[Planned], judge: Judge | None, params: Params
) -> list[Reply]:
    """Load one checkpoint after the other and let it answer everything; replies to benchmarks go to their files."""
    from tasks.generation.models import open_generator  # torch: not for --help

    long_readers = [name for name in folders if name in READS_LONG]
    total = 2 * len(folders) * len(held_out.prompts) + 2 * len(long_readers) * len(held_out.long)
    total += len(folders) * sum(one.tasks for one in planned)
    exam = exam_of(params, params.evaluation.benchmarks)
    replies: list[Reply] = []
    with meter("evaluate", total) as progress:
        for name, folder in folders.items():
            generator = open_generator(folder, params.execution, params.threads)
            tokenizer = ChatTokenizer.load(folder)
            reader = Reader(name, generator, tokenizer, params, progress, judge)
            replies += answer(reader, held_out.prompts, "greedy", reader.greedy)
            replies += answer(reader, held_out.prompts, "sampled", reader.sampled)
            if name in long_readers:
                replies += answer(reader, held_out.long, "truncation", reader.greedy)
                replies += read_long(reader, held_out.long)
            examine(folder, name, generator, planned, exam, judge, progress)
    return replies


def summarise(held_out: HeldOut, replies: Sequence[Reply], params: Params) -> Evaluation:
    """Scores of all checkpoints that replied."""
    items = [prompt.item for prompt in held_out.prompts]
    long = [prompt.item for prompt in held_out.long]
    guesses = {key_of(item): guess_rate(item) for item in [*items, *long]}
    table, long_table = table_of(items, replies, guesses), table_of(long, replies, guesses)
    bootstrap = Bootstrap(params.evaluation.bootstrap_resamples, params.seed)
    present = list(dict.fromkeys(reply.checkpoint for reply in replies))
    return Evaluation(
        samples=params.evaluation.samples,
        temperature=params.rl.sampling.temperature,
        top_p=params.rl.sampling.top_p,
        window=params.memory.window,
        checkpoints=tuple(score_checkpoint(table, name, BASE, bootstrap) for name in present),
        long=tuple(row for name in present if name in READS_LONG for row in score_long(long_table, name, bootstrap)),
        too_long=held_out.too_long,
        comparisons=compare(table, present, bootstrap),
        provenance=provenance(params),
    )


def publish_benchmarks(checkpoints: Sequence[str], tracker: Tracker, params: Params) -> None:
    """Write and track the figures of all benchmarks; those of the command stand beside them."""
    exam = exam_of(params, params.evaluation.benchmarks)
    scores = summarise_benchmarks(exam, params, checkpoints)
    write_json(BENCHMARKS, scores)
    tracker.log_summary(tracked_benchmarks(scores, checkpoints))
    tracker.log_artifact(BENCHMARKS)


def tracked(evaluation: Evaluation) -> dict[str, float]:
    """The figures that MLflow shows: avg@k by checkpoint and length, and the memory agent."""
    figures = {
        f"average/{scores.checkpoint}/{cell.context_tokens or 'all'}": cell.average
        for scores in evaluation.checkpoints
        for cell in scores.cells
        if cell.domain is None
    }
    for row in evaluation.long:
        if row.domain is None:
            figures[f"agent/{row.checkpoint}/{row.context_tokens}"] = row.agent
            figures[f"truncation/{row.checkpoint}/{row.context_tokens}"] = row.truncation
    return {name: value for name, value in figures.items() if value is not None}


if __name__ == "__main__":
    stage_command(__doc__.splitlines()[0], None, run)
