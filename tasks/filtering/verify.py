"""Verify the questions and give each its extended context: data/verified/ and metrics/verify.json.

QwenLong-L1.5 §3.4. In this order, the cheap checks first. Of all questions at once: evidence within the question's
split, answer length, near-duplicates, evaluation sets, answers that can be guessed. Then question by question, in
batches on one machine or many: a context of a dealt length, knowledge grounding, contextual robustness. The extended
context is what is stored. Documents are read from disk when needed, and items are written as they come.

Only training questions are tested for robustness. Dropping held-out questions that the base model never
solves would raise its score and lower every gain: the evaluation would be biased by the model it measures.
Held-out questions get the checks that no model's reading ability enters: splits, duplicates, and knowledge
without documents.

Both checks that ask the model stop as soon as the decision is final. A pass rate taken then would be biased: balance
draws the rest of the kept items' answers.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path

from tasks.artifacts import RecordWriter, item_writer, read_questions, stage_lock, write_json, write_parquet, write_text
from tasks.checkpoints import check_checkpoint
from tasks.cli import stage_command
from tasks.corpus.library import Library
from tasks.errors import InputError
from tasks.execution import run_batches
from tasks.filtering.contamination import survey
from tasks.filtering.examination import Assignment, EvidenceLengths, Examined, Verifier, batches
from tasks.filtering.funnel import SPLITS, Fate, Funnel, Outcome, Tally, markdown, stages, table
from tasks.filtering.guessing import answer_shares
from tasks.filtering.lengths import buckets, deal
from tasks.filtering.screening import screen
from tasks.params import Params
from tasks.progress import meter
from tasks.records import Domain, Item, Question, Split
from tasks.rewards.rules import require_means
from tasks.tokenization import ChatTokenizer
from tasks.tracking import Tracker, stage_run

DOCUMENTS = Path("data/corpus/documents.parquet")
SYNTHESIZED = Path("data/synthesized")
VERIFIED = Path("data/verified")
FATES = VERIFIED / "fates.parquet"
FUNNEL = VERIFIED / "funnel.md"
PICTURE = VERIFIED / "questions.png"
METRICS = Path("metrics/verify.json")
REMEDY = "Add documents (corpus.folder), raise synthesis.questions_per_domain, take a stronger writer or base model"


@dataclass(frozen=True)
class Dealt:
    """Questions with a length for each, and the fates of those that fit none."""

    assignments: tuple[Assignment, ...]
    dropped: tuple[Fate, ...]


def run(params: Params) -> None:
    """The verification stage."""
    with stage_lock("verify"), stage_run("verify", params) as tracker:
        check_checkpoint(params.base_model)
        library = Library.open(DOCUMENTS)
        questions = read_synthesized(SYNTHESIZED)
        tracker.log_dataset(SYNTHESIZED, "synthesized")
        require_means(questions)
        count = ChatTokenizer.load(params.base_model).count
        left, screened = screen(questions, survey(library.stream()), params.filtering, count)
        dealt = assign(left, library, params)
        fates, tally = [*screened, *dealt.dropped], Tally()
        examine(dealt.assignments, fates, tally, library, params)
        report(tally.funnel(), fates, params.seed, tracker)
        for line in shortages(tally, params):
            print(line)
        if not any(tally.number("train", domain, Outcome.KEPT) for domain in Domain):
            raise InputError(f"no training question is left; {METRICS} says where they went. {REMEDY}")


def read_synthesized(folder: Path) -> list[Question]:
    """All questions of all generators, sorted by id so that nothing depends on the order of files.

    Raises:
        InputError: there is none.
    """
    questions = [question for path in sorted(folder.glob("*.parquet")) for question in read_questions(path)]
    if not questions:
        raise InputError(
            f"{folder} holds no question; metrics/synthesize-*.json say why, or that synthesize has not run yet"
        )
    return sorted(questions, key=lambda question: question.id)


def assign(questions: Sequence[Question], library: Library, params: Params) -> Dealt:
    """Deal the lengths, evenly per split and domain; those of one length follow one another, which samples best."""
    lengths = run_batches(
        partial(EvidenceLengths, params, library), batches(questions, params.execution), params.execution
    )
    shortest = dict(zip((one.id for one in questions), (each for batch in lengths for each in batch), strict=True))
    shares = answer_shares(questions)
    assignments: list[Assignment] = []
    dropped: list[Fate] = []
    for (split, domain), group in _groups(questions).items():
        random.Random(f"{params.seed}/deal/{split}/{domain}").shuffle(group)
        limits = deal([shortest[question.id] for question in group], list(buckets(params)))
        for question, limit in zip(group, limits, strict=True):
            if limit is None:
                dropped.append(Fate(question, Outcome.EVIDENCE_TOO_LONG))
            else:
                assignments.append(Assignment(question, limit, shares.get(question.id, 0.0)))
    return Dealt(tuple(sorted(assignments, key=lambda assigned: assigned.limit)), tuple(dropped))


def examine(
    assignments: Sequence[Assignment], fates: list[Fate], tally: Tally, library: Library, params: Params
) -> None:
    """Examine all, write what is kept, and add every fate to `fates` and `tally`."""
    for fate in fates:
        tally.add(fate)
    with ExitStack() as stack, meter("verify", max(1, len(assignments))) as progress:
        writers = {split: stack.enter_context(item_writer(VERIFIED / f"{split}.parquet")) for split in SPLITS}
        results = run_batches(
            partial(Verifier, params, library), batches(assignments, params.execution), params.execution
        )
        for batch in results:
            for examined in batch:
                record(examined, tally, writers)
            fates += [examined.fate for examined in batch]
            progress.advance(len(batch), "questions")


def record(examined: Examined, tally: Tally, writers: Mapping[Split, RecordWriter[Item]]) -> None:
    """Count a question, and write its item if it is kept."""
    tally.add(examined.fate)
    tally.add_samples("grounding", examined.grounding.drawn)
    tally.add_samples("robustness", examined.robustness.drawn)
    if examined.item:
        tally.add_item(examined.item)
        writers[examined.question.split].write([examined.item])


def shortages(tally: Tally, params: Params) -> Iterator[str]:
    """A line for each domain with too few questions for one training batch, or none to test.

    The others are worth keeping all the same: curation refuses a domain without any before it is trained on.
    """
    weights = params.rl.domain_weights
    needs: tuple[tuple[Split, int], ...]
    for domain in (domain for domain in Domain if weights.get(domain, 0.0) > 0):
        quota = ceil(params.rl.batch_prompts * weights[domain] / sum(weights.values()))
        needs = (("train", quota), ("test", 1))
        for split, need in needs:
            kept = tally.number(split, domain, Outcome.KEPT)
            if kept < need:
                yield (
                    f"domain {domain} has {kept} verified {split} questions of {tally.number(split, domain)} "
                    f"synthesised and needs {need}. {REMEDY}, or set rl.domain_weights.{domain} to 0"
                )


def write_fates(path: Path, fates: Sequence[Fate]) -> None:
    """A row for every question: what became of it, and why."""
    import pyarrow as pa

    rows = [
        {
            **fate.question.model_dump(mode="json", include={"id", "split", "domain", "generator", "question"}),
            "outcome": fate.outcome.value,
            "detail": fate.detail,
        }
        for fate in fates
    ]
    write_parquet(path, pa.Table.from_pylist(rows))


def report(result: Funnel, fates: Sequence[Fate], seed: int, tracker: Tracker) -> None:
    """What became of the questions, one by one and as a funnel: in files, in the terminal and in MLflow."""
    from rich.console import Console

    from tasks.filtering.picture import draw_questions

    write_fates(FATES, fates)
    write_json(METRICS, result)
    found = {split: stages(result.rows, split) for split in SPLITS}
    write_text(FUNNEL, "\n".join(f"## {split}\n\n{markdown(steps)}" for split, steps in found.items()))
    remark = draw_questions(PICTURE, fates, seed)
    tracker.log_metrics(figures(result), step=0)
    for path in (METRICS, FUNNEL, PICTURE):
        tracker.log_artifact(path)
    console = Console()
    for split, steps in found.items():
        console.print(table(steps, f"{split} questions"))
    console.print(remark)


def figures(result: Funnel) -> dict[str, float]:
    """The counts for MLflow: of every outcome, and of the training questions that remain after each check."""
    counts: Counter[str] = Counter()
    for row in result.rows:
        counts[f"{row.split}/{row.domain}/{row.outcome}"] += row.count
    for number, stage in enumerate(stages(result.rows, "train")):
        counts[f"funnel/{number}_{stage.name}"] = stage.remaining
        counts.update({f"funnel/{number}_{stage.name}/{name}": left for name, left in stage.generators.items()})
    counts.update({f"samples/{check}": number for check, number in result.samples.items()})
    return dict(counts)


def _groups(questions: Sequence[Question]) -> dict[tuple[Split, Domain], list[Question]]:
    groups: dict[tuple[Split, Domain], list[Question]] = {}
    for question in questions:
        groups.setdefault((question.split, question.domain), []).append(question)
    return groups


if __name__ == "__main__":
    stage_command(__doc__ or "", None, run)
