"""Verify the questions and give each its extended context: data/verified/ and metrics/verify.json.

QwenLong-L1.5 §3.4. In this order, the cheap checks first: evidence within the question's split,
near-duplicates, a context of a dealt length, knowledge grounding, contextual robustness. The extended context
is what is stored.

Only training questions are tested for robustness. Dropping held-out questions that the base model never
solves would raise its score and lower every gain: the evaluation would be biased by the model it measures.
Held-out questions get the checks that no model's reading ability enters: splits, duplicates, and knowledge
without documents.

Robustness draws all its samples although one right answer decides: the pass rates feed the difficulty bins,
and a rate taken at the first success would be biased. Grounding needs only the decision and stops when it is
final.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import get_args

from tasks.artifacts import read_documents, read_questions, stage_lock, write_items, write_json
from tasks.checkpoints import check_checkpoint
from tasks.cli import stage_command
from tasks.errors import InputError
from tasks.filtering.contamination import check_splits, leak_of
from tasks.filtering.deduplication import near_duplicates
from tasks.filtering.funnel import Fate, Outcome, funnel, table
from tasks.filtering.grounding import Grounding, judge_grounding
from tasks.filtering.guessing import answer_shares, guess_rate
from tasks.filtering.lengths import bucket_of, buckets, deal
from tasks.filtering.robustness import pass_at_k
from tasks.filtering.trials import Examiner, Trials, sampling_of
from tasks.params import Params
from tasks.progress import meter
from tasks.prompts import answer_prompt
from tasks.records import Document, Domain, Item, Question, Split
from tasks.synthesis.distractors import extend
from tasks.tokenization import ChatTokenizer
from tasks.tracking import stage_run

DOCUMENTS = Path("data/corpus/documents.parquet")
SYNTHESIZED = Path("data/synthesized")
VERIFIED = Path("data/verified")
METRICS = Path("metrics/verify.json")
GROUNDING_ROUND = 4  # samples between two looks at the decision
CHECKED = ("splits", "near_duplicates", "grounding")

Count = Callable[[str], int]


@dataclass(frozen=True)
class Sieved:
    """What passed a check, and the fates of the rest."""

    items: tuple[Item, ...]
    dropped: tuple[Fate, ...]


def run(params: Params) -> None:
    """The verification stage."""
    with stage_lock("verify"), stage_run("verify", params) as tracker:
        check_checkpoint(params.base_model)
        documents = {document.id: document for document in read_documents(DOCUMENTS)}
        check_splits(documents.values())
        questions = read_synthesized(SYNTHESIZED)
        tokenizer = ChatTokenizer.load(params.base_model)
        kept, dropped = screen(questions, documents, params.filtering.near_duplicate_similarity)
        extended = extend_all(kept, documents, params, tokenizer.prompt_length)
        grounded, robust = examine(extended.items, params, tokenizer)
        fates = [*dropped, *extended.dropped, *grounded.dropped, *robust.dropped]
        fates += [Fate(item.question, Outcome.KEPT) for item in robust.items]
        check_domains(fates, params)
        for split in get_args(Split):
            items = [item for item in robust.items if item.question.split == split]
            write_items(VERIFIED / f"{split}.parquet", items)
        result = funnel(fates, robust.items)
        write_json(METRICS, result)
        counts = {f"{row.split}/{row.domain}/{row.outcome}": row.count for row in result.rows}
        tracker.log_metrics(counts, step=0)
        tracker.log_artifact(METRICS)
    from rich.console import Console

    Console().print(table(result))


def read_synthesized(folder: Path) -> list[Question]:
    """All questions of all generators, sorted by id so that nothing depends on the order of files.

    Raises:
        InputError: there is none.
    """
    questions = [question for path in sorted(folder.glob("*.parquet")) for question in read_questions(path)]
    if not questions:
        raise InputError(f"{folder} holds no question; run python -m tasks.synthesis.synthesize first")
    return sorted(questions, key=lambda question: question.id)


def screen(
    questions: Sequence[Question], documents: Mapping[str, Document], similarity: float
) -> tuple[list[Question], list[Fate]]:
    """Drop questions whose evidence leaves their split, then near-duplicates within a split."""
    leaks = {question.id: leak_of(question, documents) for question in questions}
    dropped = [Fate(question, Outcome(leak)) for question in questions if (leak := leaks[question.id])]
    sound = [question for question in questions if leaks[question.id] is None]
    repeats = {
        name
        for split in get_args(Split)
        for name in near_duplicates([one for one in sound if one.split == split], similarity)
    }
    dropped += [Fate(question, Outcome.NEAR_DUPLICATE) for question in sound if question.id in repeats]
    return [question for question in sound if question.id not in repeats], dropped


def extend_all(
    questions: Sequence[Question], documents: Mapping[str, Document], params: Params, count: Count
) -> Sieved:
    """Give every question a context of a dealt length; lengths are even per split and domain."""
    limits = list(buckets(params))
    counted = lru_cache(maxsize=None)(count)
    items: list[Item] = []
    dropped: list[Fate] = []
    for (split, domain), group in _groups(questions).items():
        random.Random(f"{params.seed}/deal/{split}/{domain}").shuffle(group)
        shortest = [counted(_prompt(question, documents, question.document_ids)) for question in group]
        for question, limit in zip(group, deal(shortest, limits), strict=True):
            item = limit and _extended(question, documents, limit, counted, params)
            if item:
                items.append(item)
            else:
                dropped.append(Fate(question, Outcome.EVIDENCE_TOO_LONG))
    return Sieved(tuple(items), tuple(dropped))


def examine(items: Sequence[Item], params: Params, tokenizer: ChatTokenizer) -> tuple[Sieved, Sieved]:
    """Both checks that need the base model."""
    import torch  # seconds to import: not for --help

    from tasks.generation.local import LocalGenerator

    torch.set_num_threads(params.threads)
    generator = LocalGenerator.load(params.base_model)
    rounds = -(-params.filtering.grounding_samples // GROUNDING_ROUND)
    with meter("verify: grounding, at most", max(1, rounds * len(items))) as progress:
        examiner = Examiner(generator, tokenizer, lambda prompts: progress.advance(prompts, "prompts"))
        grounded = ground(items, params, examiner)
    with meter("verify: robustness", max(1, len(grounded.items))) as progress:
        examiner = Examiner(generator, tokenizer, lambda prompts: progress.advance(prompts, "prompts"))
        return grounded, withstand(grounded.items, params, examiner)


def ground(items: Sequence[Item], params: Params, examiner: Examiner) -> Sieved:
    """Drop questions that the model answers without documents more often than guessing explains."""
    shares = answer_shares([item.question for item in items])
    chances = [max(guess_rate(item), shares.get(item.question.id, 0.0)) for item in items]
    samples = params.filtering.grounding_samples
    correct = [0] * len(items)
    verdicts = [Grounding.UNDECIDED] * len(items)
    for drawn in range(0, samples, GROUNDING_ROUND):
        size = min(GROUNDING_ROUND, samples - drawn)
        open_ = [index for index, verdict in enumerate(verdicts) if verdict is Grounding.UNDECIDED]
        asked = [items[index].question for index in open_]
        prompts = [answer_prompt((), question.question, question.options) for question in asked]
        sampling = sampling_of(params, max(buckets(params).values()), size)
        trials = examiner.ask(prompts, asked, sampling, f"{params.seed}/grounding/{drawn}")
        for index, trial in zip(open_, trials, strict=True):
            correct[index] += trial.correct
            verdicts[index] = judge_grounding(correct[index], drawn + size, samples, chances[index])
    grounded = {True: Outcome.KEPT, False: Outcome.UNGROUNDED}
    return _sieve(items, [grounded[verdict is Grounding.GROUNDED] for verdict in verdicts])


def withstand(items: Sequence[Item], params: Params, examiner: Examiner) -> Sieved:
    """Measure the pass rate of training items on their contexts and drop those with pass@k = 0."""
    trials: dict[str, Trials] = {}
    for limit, output in buckets(params).items():
        asked = [item for item in items if item.length_bucket == limit and item.question.split == "train"]
        sampling = sampling_of(params, output, params.filtering.robustness_samples)
        found = examiner.ask_items(asked, sampling, f"{params.seed}/robustness/{limit}")
        trials.update({item.question.id: trial for item, trial in zip(asked, found, strict=True)})
    measured = [_with_rate(item, trials.get(item.question.id)) for item in items]
    return _sieve(measured, [_robustness(trials.get(item.question.id)) for item in items])


def check_domains(fates: Sequence[Fate], params: Params) -> None:
    """Refuse a corpus too small to fill one training batch of a domain, or to test it.

    Raises:
        InputError: names the domain, the count and the remedy.
    """
    weights = params.rl.domain_weights
    for domain in (domain for domain in Domain if weights.get(domain, 0.0) > 0):
        quota = ceil(params.rl.batch_prompts * weights[domain] / sum(weights.values()))
        for split, need in (("train", quota), ("test", 1)):
            asked = [fate for fate in fates if (fate.question.split, fate.question.domain) == (split, domain)]
            kept = sum(fate.outcome is Outcome.KEPT for fate in asked)
            if kept < need:
                raise InputError(
                    f"domain {domain} has {kept} verified {split} questions of {len(asked)} synthesised and "
                    f"needs {need}; add documents to the corpus (corpus.folder), raise "
                    f"synthesis.questions_per_domain, or set rl.domain_weights.{domain} to 0"
                )


def _groups(questions: Sequence[Question]) -> dict[tuple[Split, Domain], list[Question]]:
    groups: dict[tuple[Split, Domain], list[Question]] = {}
    for question in questions:
        groups.setdefault((question.split, question.domain), []).append(question)
    return groups


def _extended(
    question: Question, documents: Mapping[str, Document], limit: int, count: Count, params: Params
) -> Item | None:
    """The item on its context. Its bucket is the smallest that holds it: a small corpus cannot fill all."""
    rng = random.Random(f"{params.seed}/extend/{question.id}")
    ids = extend(question, documents, limit, count, rng)
    length = count(_prompt(question, documents, ids))
    bucket = bucket_of(length, list(buckets(params)))
    if bucket is None:
        return None
    return Item(
        question=question,
        documents=tuple(documents[name].text for name in ids),
        document_ids=tuple(ids),
        length_bucket=bucket,
        input_tokens=length,
        checks=CHECKED,
    )


def _prompt(question: Question, documents: Mapping[str, Document], ids: Sequence[str]) -> str:
    return answer_prompt([documents[name].text for name in ids], question.question, question.options)


def _robustness(trials: Trials | None) -> Outcome:
    """The outcome of a training item's trials; held-out items have none and stay."""
    if trials is None:
        return Outcome.KEPT
    if trials.scored == 0:
        return Outcome.UNSCORED
    solvable = pass_at_k(trials.scored, trials.correct, k=trials.scored) > 0
    return Outcome.KEPT if solvable else Outcome.NOT_ROBUST


def _with_rate(item: Item, trials: Trials | None) -> Item:
    if trials is None:
        return item
    return item.model_copy(update={"pass_rate": trials.rate, "checks": (*item.checks, "robustness")})


def _sieve(items: Sequence[Item], outcomes: Sequence[Outcome]) -> Sieved:
    pairs = list(zip(items, outcomes, strict=True))
    return Sieved(
        tuple(item for item, outcome in pairs if outcome is Outcome.KEPT),
        tuple(Fate(item.question, outcome) for item, outcome in pairs if outcome is not Outcome.KEPT),
    )


if __name__ == "__main__":
    stage_command(__doc__ or "", None, run)
