"""Choose the questions of an RL stage by a re-roll under its limits: data/curated/<name>.parquet.

Difficulty-aware retrospective sampling (QwenLong-L1.5 §4.2, QwenLong-L1 §3.2). The checkpoint that the stage
starts from answers the balanced training items under the stage's input and output limits; the measured rates
decide. Stage k takes items longer than stage k−1's limit, and earlier ones that are still hard re-enter.
Stage 4 takes all lengths at once, so nothing is earlier. The memory stage first extends the contexts to its
own length, far beyond the window, and the re-roll is the memory agent's.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Literal

from tasks.artifacts import read_items, stage_lock, write_items, write_json
from tasks.checkpoints import check_checkpoint
from tasks.cli import stage_command
from tasks.corpus.library import Library
from tasks.errors import InputError
from tasks.filtering.retrospective import Choice, Reason, Rerolled, in_turn, select
from tasks.filtering.trials import PROMPTS_PER_CALL, Examiner, Trials, sampling_of, seed_of, tally
from tasks.params import RL_STAGES, Params, StageParams
from tasks.progress import meter
from tasks.prompts import question_prompt
from tasks.records import Domain, Item
from tasks.rewards.opening import open_judge
from tasks.rewards.rules import require_means
from tasks.synthesis.distractors import extend
from tasks.tokenization import ChatTokenizer
from tasks.tracking import stage_run

StageName = Literal["stage1", "stage2", "stage3", "memory", "stage4"]
BALANCED = Path("data/balanced/train.parquet")
DOCUMENTS = Path("data/corpus/documents.parquet")
CURATED = Path("data/curated")
CHECKPOINTS = Path("checkpoints")
START = {
    "stage2": "stage1",
    "stage3": "stage2",
    "memory": "stage3",
    "stage4": "merged",
}  # stage1: the base model
GROWING: tuple[StageName, ...] = ("stage1", "stage2", "stage3")
COUNTED = 1024  # texts whose tokens stay counted
MEMORY_POOL = 1.5  # candidates per memory question: a trajectory costs as many generations as it has chunks


@dataclass(frozen=True)
class Pool:
    """What a stage may choose from."""

    fresh: tuple[Item, ...]
    earlier: tuple[Item, ...]


@dataclass(frozen=True)
class Rolls:
    """The pool as measured; `unscored` items had no verdict and are left out."""

    fresh: tuple[Rerolled, ...]
    earlier: tuple[Rerolled, ...]
    unscored: int


@dataclass(frozen=True)
class CurationRow:
    """So many items of a domain were chosen for this reason, with this mean reward in the re-roll."""

    domain: Domain
    reason: Reason
    count: int
    mean_reward: float


@dataclass(frozen=True)
class Curation:
    """metrics/curate-<name>.json. `asked` may exceed `chosen` when the pools are too small."""

    stage: str
    checkpoint: str
    fresh: int
    earlier: int
    unscored: int
    asked: int
    chosen: int
    rows: tuple[CurationRow, ...]


def run(name: StageName, params: Params) -> None:
    """The curation stage of one RL stage."""
    with stage_lock(f"curate-{name}"), stage_run(f"curate-{name}", params) as tracker:
        checkpoint = CHECKPOINTS / START[name] if name in START else params.base_model
        check_checkpoint(checkpoint)
        tokenizer = ChatTokenizer.load(checkpoint)
        items = read_items(BALANCED)
        tracker.log_dataset(BALANCED, "balanced-train")
        require_means(item.question for item in items)
        pool = pool_of(name, items, params, tokenizer)
        check_domains(name, pool, [item.question.domain for item in (*pool.fresh, *pool.earlier)], params)
        rolls = reroll(name, pool, params, checkpoint, tokenizer)
        choices = choose(name, rolls, params)
        result = summarise(name, checkpoint, rolls, choices, params.rl.stages[name].questions)
        write_items(CURATED / f"{name}.parquet", [_with_rate(choice) for choice in choices])
        metrics = Path(f"metrics/curate-{name}.json")
        write_json(metrics, result)
        tracker.log_metrics({f"{row.domain}/{row.reason}": row.count for row in result.rows}, step=0)
        tracker.log_artifact(metrics)
    print(f"{len(choices)} of {result.asked} questions chosen for {name}: {CURATED / name}.parquet")


def pool_of(name: StageName, items: Sequence[Item], params: Params, tokenizer: ChatTokenizer) -> Pool:
    """The items that fit the stage, by length."""
    limit = params.rl.stages[name].max_input_tokens
    if name == "memory":
        library = Library.open(DOCUMENTS)
        return Pool(tuple(lengthen(items, library, params, tokenizer.prompt_length)), ())
    lower = 0 if name == "stage4" else _shorter_limit(limit, params)
    return Pool(
        fresh=tuple(item for item in items if lower < item.input_tokens <= limit),
        earlier=tuple(item for item in items if item.input_tokens <= lower),
    )


def lengthen(items: Sequence[Item], library: Library, params: Params, count: Callable[[str], int]) -> list[Item]:
    """Memory candidates: questions of every domain in turn, on contexts of the memory stage's length."""
    stage = params.rl.stages["memory"]
    shuffled = random.Random(f"{params.seed}/curate/memory").sample(items, len(items))
    chosen = in_turn(shuffled, int(stage.questions * MEMORY_POOL), lambda item: item.question.domain)
    counted = lru_cache(maxsize=COUNTED)(count)
    return [_lengthened(item, library, stage.max_input_tokens, params.seed, counted) for item in chosen]


def reroll(name: StageName, pool: Pool, params: Params, checkpoint: Path, tokenizer: ChatTokenizer) -> Rolls:
    """Mean reward of every item of the pool under the stage's limits."""
    from tasks.generation.models import open_generator  # torch takes seconds to import: not for --help

    generator = open_generator(checkpoint, params.execution, params.threads)
    items = [*pool.fresh, *pool.earlier]
    with meter(f"curate {name}", max(1, len(items))) as progress:
        judge = open_judge(params, f"curate-{name}")
        examiner = Examiner(generator, tokenizer, lambda done: progress.advance(done, "items"), judge)
        if name == "memory":
            trials = reroll_memory(items, examiner, params)
        else:
            trials = reroll_items(items, examiner, params.rl.stages[name], params, f"{params.seed}/curate/{name}")
    return rolls_of(pool, trials)


def rolls_of(pool: Pool, trials: Sequence[Trials]) -> Rolls:
    """Pair the pool, fresh items first, with its trials."""
    items = [*pool.fresh, *pool.earlier]
    rolled = [
        None if trial.rate is None else Rerolled(item, trial.rate, trial.scored)
        for item, trial in zip(items, trials, strict=True)
    ]
    fresh, earlier = rolled[: len(pool.fresh)], rolled[len(pool.fresh) :]
    return Rolls(
        fresh=tuple(roll for roll in fresh if roll is not None),
        earlier=tuple(roll for roll in earlier if roll is not None),
        unscored=rolled.count(None),
    )


def reroll_items(
    items: Sequence[Item], examiner: Examiner, stage: StageParams, params: Params, seed: str
) -> list[Trials]:
    """Re-roll on the full context."""
    return examiner.ask_items(items, sampling_of(params, stage.max_output_tokens, params.curate.samples), seed)


def reroll_memory(items: Sequence[Item], examiner: Examiner, params: Params) -> list[Trials]:
    """Re-roll by whole trajectories of the memory agent."""
    from tasks.memory.rollout import roll_out

    samples = params.curate.samples
    sampling = sampling_of(params, params.rl.stages["memory"].max_output_tokens, 1)
    trials: list[Trials] = []
    for start in range(0, len(items), PROMPTS_PER_CALL):
        chunk = items[start : start + PROMPTS_PER_CALL]
        seed = seed_of(f"{params.seed}/curate/memory/{start}")
        episodes = roll_out(
            examiner.generator, examiner.tokenizer, chunk, samples, params.memory, sampling, seed, examiner.judge
        )
        verdicts = [episode.verdict for episode in episodes]
        trials += [tally(verdicts[place : place + samples]) for place in range(0, len(verdicts), samples)]
        examiner.advance(len(chunk))
    return trials


def choose(name: StageName, rolls: Rolls, params: Params) -> list[Choice]:
    """Select the stage's questions.

    Raises:
        InputError: a domain that the trainer draws from gets none.
    """
    asked = params.rl.stages[name].questions
    seed = f"{params.seed}/curate/{name}"
    choices = select(rolls.fresh, rolls.earlier, asked, params.curate.retrospective_share, seed)
    check_domains(name, rolls, [choice.rerolled.item.question.domain for choice in choices], params)
    return choices


def check_domains(name: StageName, pool: Pool | Rolls, found: Collection[Domain], params: Params) -> None:
    """Refuse a stage that would train on fewer domains than its weights name.

    Raises:
        InputError: a weighted domain is not among those found.
    """
    for domain, weight in params.rl.domain_weights.items():
        if weight > 0 and domain not in found:
            raise InputError(
                f"{name}: domain {domain} has no item among {len(pool.fresh)} of the stage's length and "
                f"{len(pool.earlier)} earlier ones; raise synthesis.questions_per_domain or "
                f"rl.stages.{name}.max_input_tokens, or set rl.domain_weights.{domain} to 0; "
                "metrics/verify.json says what verification dropped"
            )


def summarise(name: StageName, checkpoint: Path, rolls: Rolls, choices: Sequence[Choice], asked: int) -> Curation:
    """Counts and mean rewards by domain and reason."""
    means: dict[tuple[Domain, Reason], list[float]] = defaultdict(list)
    for choice in choices:
        means[choice.rerolled.item.question.domain, choice.reason].append(choice.rerolled.mean)
    keys = [(domain, reason) for domain in Domain for reason in Reason if means[domain, reason]]
    return Curation(
        stage=name,
        checkpoint=checkpoint.as_posix(),
        fresh=len(rolls.fresh),
        earlier=len(rolls.earlier),
        unscored=rolls.unscored,
        asked=asked,
        chosen=len(choices),
        rows=tuple(CurationRow(*key, len(means[key]), fmean(means[key])) for key in keys),
    )


def _shorter_limit(limit: int, params: Params) -> int:
    """The longest input limit of stages 1–3 below `limit`; 0 for the first."""
    limits = [params.rl.stages[stage].max_input_tokens for stage in GROWING]
    return max((other for other in limits if other < limit), default=0)


def _lengthened(item: Item, library: Library, limit: int, seed: int, count: Callable[[str], int]) -> Item:
    question = item.question
    ids = extend(question, library, limit, count, random.Random(f"{seed}/lengthen/{question.id}"))
    texts = tuple(library[name].text for name in ids)
    length = count(question_prompt(texts, question))
    changes = {"documents": texts, "document_ids": ids, "length_bucket": limit, "input_tokens": length}
    return item.model_copy(update=changes)


def _with_rate(choice: Choice) -> Item:
    return choice.rerolled.item.model_copy(update={"pass_rate": choice.rerolled.mean})


if __name__ == "__main__":
    stage_command(__doc__ or "", RL_STAGES, run)
