"""From cells to rows: a variant's scores, its step over its predecessor, and its gain over the naive start."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from tasks.ablation.cells import Cell, CellScores, Step
from tasks.ablation.ladder import Variant
from tasks.ablation.statistics import Difference, difference, seed_means
from tasks.evaluation.metrics import Floats, Integers, stratified_mean

TENTH = 10  # training figures are of the last tenth of the steps


@dataclass(frozen=True)
class Comparison:
    """A variant against another; `difference` is None where no seed of both is done or no question is scored."""

    variant: Variant
    base: Variant
    difference: Difference | None


@dataclass(frozen=True)
class Row:
    """A variant's cells. Scores are avg@k, the mean of lengths or of one length; lengths in tokens."""

    variant: Variant
    seeds: tuple[int, ...]
    means: tuple[float, ...]
    by_length: Mapping[int, tuple[float, ...]]
    response_tokens: float
    truncated_share: float
    unscored_share: float
    skipped: float
    kept_share: float
    gate_share: float
    first_entropy: float
    last_entropy: float
    last_reward: float


@dataclass(frozen=True)
class Results:
    """Everything the page shows. `questions` counts held-out items."""

    rows: tuple[Row, ...]
    comparisons: tuple[Comparison, ...]
    questions: int
    steps: int


def figures_of(scores: CellScores) -> dict[str, float]:
    """What DVC's experiment table and MLflow show of a cell; a length without any scored reply is left out."""
    scores_Q, lengths_Q = _scores_Q(scores), _lengths_Q(scores)
    chosen = {"all": np.full(len(lengths_Q), True), **{str(n): lengths_Q == n for n in np.unique(lengths_Q)}}
    means = {name: stratified_mean(scores_Q[at_Q], lengths_Q[at_Q]) for name, at_Q in chosen.items()}
    return {
        **{f"average/{name}": mean for name, mean in means.items() if mean is not None},
        "response_tokens": scores.response_tokens,
        "truncated_share": scores.truncated_share,
        "unscored_share": scores.unscored_share,
    }


def results_of(cells: Sequence[Cell], variants: Mapping[str, Variant], resamples: int, seed: int) -> Results:
    """Rows of the variants that have cells, and all comparisons between them."""
    by_variant = {name: [cell for cell in cells if cell.variant == name] for name in variants}
    present = {name: found for name, found in by_variant.items() if found}
    pairs = [(name, base) for name, base in compared(variants) if name in present and base in present]
    return Results(
        rows=tuple(_row(variants[name], found) for name, found in present.items()),
        comparisons=tuple(
            Comparison(
                variants[name],
                variants[base],
                _difference(present[name], present[base], len(pairs), resamples, np.random.default_rng(seed)),
            )
            for name, base in pairs
        ),
        questions=len(cells[0].scores.questions),
        steps=len(cells[0].training.steps),
    )


def compared(variants: Mapping[str, Variant]) -> list[tuple[str, str]]:
    """Pairs of a variant and what it is compared with: its predecessor, then the naive start; none twice."""
    steps = [(variant.name, variant.predecessor) for variant in variants.values() if variant.predecessor is not None]
    naive = [variant.name for variant in variants.values() if variant.predecessor is None]
    gains = [(name, start) for name in variants for start in naive if name != start]
    return list(dict.fromkeys([*steps, *gains]))


def _difference(
    model: Sequence[Cell], base: Sequence[Cell], comparisons: int, resamples: int, rng: np.random.Generator
) -> Difference | None:
    seeds = [cell.seed for cell in model if any(cell.seed == other.seed for other in base)]
    if not seeds:
        return None
    model_SQ, base_SQ = (
        np.array([_scores_Q(cell.scores) for seed in seeds for cell in cells if cell.seed == seed])
        for cells in (model, base)
    )
    return difference(model_SQ, base_SQ, _lengths_Q(model[0].scores), comparisons, resamples, rng)


def _row(variant: Variant, cells: Sequence[Cell]) -> Row:
    scores_SQ, lengths_Q = np.array([_scores_Q(cell.scores) for cell in cells]), _lengths_Q(cells[0].scores)
    return Row(
        variant=variant,
        seeds=tuple(cell.seed for cell in cells),
        means=seed_means(scores_SQ, lengths_Q),
        by_length={
            int(length): seed_means(scores_SQ[:, lengths_Q == length], lengths_Q[lengths_Q == length])
            for length in np.unique(lengths_Q)
        },
        response_tokens=fmean(cell.scores.response_tokens for cell in cells),
        truncated_share=fmean(cell.scores.truncated_share for cell in cells),
        unscored_share=fmean(cell.scores.unscored_share for cell in cells),
        skipped=fmean(cell.training.skipped for cell in cells),
        kept_share=fmean(step.kept_share for cell in cells for step in cell.training.steps),
        gate_share=fmean(step.gate for cell in cells for step in cell.training.steps),
        first_entropy=fmean(step.entropy for cell in cells for step in cell.training.steps[:1]),
        last_entropy=fmean(step.entropy for cell in cells for step in _last(cell)),
        last_reward=_known_mean([step.reward for cell in cells for step in _last(cell)]),
    )


def _last(cell: Cell) -> Sequence[Step]:
    steps = cell.training.steps
    return steps[-max(1, len(steps) // TENTH) :]


def _known_mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return fmean(known) if known else math.nan


def _scores_Q(scores: CellScores) -> Floats:
    averages = [math.nan if question.average is None else question.average for question in scores.questions]
    return np.array(averages, dtype=np.float64)


def _lengths_Q(scores: CellScores) -> Integers:
    return np.array([question.context_tokens for question in scores.questions], dtype=np.int64)
