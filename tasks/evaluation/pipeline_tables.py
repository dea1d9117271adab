"""The report's tables of what made the checkpoints: training, data, the merge, contamination, and where it is kept."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from tasks.evaluation.benchmarks.results import BenchmarkScores
from tasks.evaluation.overlap import Overlap
from tasks.evaluation.provenance import Made, Origin, without_password
from tasks.evaluation.scores import Evaluation, Provenance
from tasks.evaluation.sources import Balance, Curves, SelfPlay
from tasks.evaluation.tables import NOTHING, Entry, Grid, points, words
from tasks.filtering.funnel import Funnel, Outcome, Stage, stages
from tasks.filtering.funnel import cells as funnel_cells
from tasks.merge.metrics import MergeMetrics
from tasks.params import FilteringParams, Params, TrackingParams
from tasks.records import Split

LEVELS = "▁▂▃▄▅▆▇█"
SPARKLINE_WIDTH = 16
HASH = 12  # digits of a content hash that are shown
FEEDS = {  # metrics file → what it shows; the others hold training curves
    "synthesize-self_play": "rounds",
    "verify": "funnel, contamination",
    "balance": "balancing",
    "merge": "weights",
    "evaluation": "held-out scores",
    "benchmarks": "benchmarks",
}
LEAKS = (Outcome.UNKNOWN_DOCUMENT, Outcome.OTHER_SPLIT, Outcome.CONTAMINATED)


def training(curves: Mapping[str, Curves]) -> Grid:
    """Each RL stage in a line: where its curves began and ended."""
    header = ("stage", "steps", "reward", "entropy", "reply tokens", "cut off", "gate on")
    return Grid(header, tuple(_training_row(stage, curve) for stage, curve in curves.items()))


def _training_row(stage: str, curve: Curves) -> tuple[Entry, ...]:
    steps = curve.steps
    return (
        Entry(stage),
        Entry(str(len(steps))),
        _course([step.reward for step in steps], 3),
        _course([step.entropy for step in steps], 3),
        _course([step.response_length for step in steps], 1),
        _course([step.truncated_share for step in steps], 3),
        Entry(f"{sum(step.gate for step in steps)} of {len(steps)}"),
    )


def _course(values: Sequence[float | None], digits: int) -> Entry:
    known = [value for value in values if value is not None]
    if not known:
        return Entry(NOTHING)
    tenth = max(1, len(known) // 10)
    first, last = sum(known[:tenth]) / tenth, sum(known[-tenth:]) / tenth
    return Entry(f"{first:.{digits}f} → {last:.{digits}f}", sparkline(known))


def sparkline(values: Sequence[float]) -> str:
    """A curve in characters; flat curves stay at the bottom."""
    low, high = min(values), max(values)
    width = min(SPARKLINE_WIDTH, len(values))
    edges = [len(values) * part // width for part in range(width + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
    span = (high - low) or 1.0
    return "".join(LEVELS[min(len(LEVELS) - 1, int((mean - low) / span * len(LEVELS)))] for mean in means)


def funnel(result: Funnel, split: Split) -> Grid:
    """What remained of a split's questions after each check of verification, by generator and domain."""
    return stage_grid(stages(result.rows, split))


def training_stages(result: Funnel, balanced: Balance) -> list[Stage]:
    """Training questions from synthesis through every check that dropped any to balancing."""
    steps = stages(result.rows, "train")
    domains = {domain: sum(counts) for domain, counts in balanced.after.items()}
    left = sum(domains.values())
    return [*steps, Stage("balanced", steps[-1].remaining - left, left, balanced.generators, domains)]


def stage_grid(steps: Sequence[Stage]) -> Grid:
    """Stages of the funnel as rows."""
    header, *rows = funnel_cells(steps)
    return Grid(tuple(header), tuple(tuple(map(Entry, row)) for row in rows))


def balance(result: Balance) -> Grid:
    """Training items per domain and pass-rate bin, before and after balancing."""
    bins = max(len(counts) for counts in result.before.values())
    ranges = [f"pass rate {100 * n // bins}–{100 * (n + 1) // bins} %" for n in range(bins)]
    rows = [
        (
            Entry(words(domain)),
            *(
                Entry(f"{before} → {after}")
                for before, after in zip(counts, result.after.get(domain, [0] * bins), strict=True)
            ),
            Entry(f"{sum(result.after.get(domain, []))} of {sum(counts)}"),
        )
        for domain, counts in result.before.items()
    ]
    return Grid(("domain", *ranges, "kept"), tuple(rows))


def merge_weights(metrics: MergeMetrics) -> Grid:
    """Effective weights, averaged over parameters: as merged, and as mergekit alone would have."""
    header = ("model", "weight used", "mergekit alone")
    rows = zip(metrics.models, metrics.mean_weights, metrics.mean_mergekit_weights, strict=True)
    return Grid(
        header,
        tuple((Entry(name), Entry(f"{used:.3f}"), Entry(f"{alone:.3f}")) for name, used, alone in rows),
    )


def rounds(played: SelfPlay) -> Grid:
    """What became of each round of self-play."""
    header = ("round", "proposed", "well-formed", "verified", "solved, of well-formed", "solved, of verified")
    rows = (
        (
            *(Entry(str(count)) for count in (one.round, one.proposed, one.well_formed, one.verified)),
            *(Entry(f"{points(rate)} %") for rate in (one.mean_solve_rate, one.mean_verified_rate)),
        )
        for one in played.rounds
    )
    return Grid(header, tuple(rows))


def method(evaluation: Evaluation, benchmarks: BenchmarkScores | None, params: Params) -> Grid:
    """What a reader needs to compare these figures with others' (the list of Kimi k1.5, arXiv 2501.12599)."""
    first, last = evaluation.checkpoints[0], evaluation.checkpoints[-1]
    whole = last.cell(None, None)
    actual = f"{whole.response_tokens:.1f} on average, {last.longest_reply} the longest" if whole else NOTHING
    rows = {
        "chain of thought": f"{points(last.thinking_share)} % of {last.checkpoint}'s sampled replies think before they "
        f"answer, {points(first.thinking_share)} % of {first.checkpoint}'s",
        "output tokens, at most": str(params.rl.stages["stage4"].max_output_tokens),
        f"output tokens, actual ({last.checkpoint})": actual,
        "tokens generated, all checkpoints": f"{sum(each.generated_tokens for each in evaluation.checkpoints):,}",
        "input": f"{evaluation.window} tokens; of longer ones the middle of the documents is left out "
        f"({points(last.cut_share)} % of the held-out prompts)",
        "tools": "none; the memory agent reads chunk by chunk and has no other means",
        "sampling": f"temperature {evaluation.temperature:g}, top-p {evaluation.top_p:g}, {evaluation.samples} samples "
        f"an item; seed {params.seed}",
        "judge": f"{params.judge.model}, where the rules say no" if params.judge else "none: the rules alone",
        "benchmarks": _benchmark_versions(benchmarks),
    }
    return _pairs("what", "how", rows)


def _benchmark_versions(benchmarks: BenchmarkScores | None) -> str:
    if benchmarks is None:
        return "none were asked"
    limits = f"{benchmarks.window} tokens in, {benchmarks.max_output_tokens} out, judge {benchmarks.judge or 'none'}"
    return "; ".join([limits, *(f"{name}: {source}" for name, source in sorted(benchmarks.sources.items()))])


def contamination(result: Funnel, found: Overlap, filtering: FilteringParams) -> Grid:
    """What verification compared and dropped, and what the stored training and test files share."""
    dropped = {outcome: sum(row.count for row in result.rows if row.outcome is outcome) for outcome in LEAKS}
    sets = filtering.benchmarks.as_posix() if filtering.benchmarks else "none given (filtering.benchmarks)"
    rows = {
        "compared by verification": f"runs of {filtering.contamination_ngram} words, answers included",
        "with": f"our development and test questions; benchmark folder: {sets}",
        **{f"dropped: {words(outcome)}": str(count) for outcome, count in dropped.items()},
        **{f"of these in {name}": str(count) for name, count in result.contamination.items()},
        "then checked": f"{found.train_items} training items with {found.train_documents} documents against "
        f"{found.test_items} test items with {found.test_documents}",
        "documents in both, by id": str(found.document_ids),
        "documents in both, by text": str(found.document_texts),
        f"training questions that share {found.ngram} words with a test question": str(found.questions),
    }
    return _pairs("what", "found", rows)


def origins(found: Sequence[Origin]) -> Grid:
    """The file behind each section, and the MLflow run that wrote it."""
    header = ("stage", "file", "MLflow run", "git commit", "data the run read")
    rows = (
        (
            Entry(one.stage, FEEDS.get(one.path.stem, "training curves")),
            Entry(one.path.as_posix(), f"sha256 {short(one.sha256)}"),
            Entry(one.run_id or "none in the store has this file", f"pipeline {one.pipeline}" if one.pipeline else ""),
            Entry(short(one.git_commit)),
            Entry(", ".join(f"{name} {short(digest)}" for name, digest in one.data.items()) or NOTHING),
        )
        for one in found
    )
    return Grid(header, tuple(rows), prose=True)


def checkpoints(found: Sequence[Made]) -> Grid:
    """What each checkpoint's lineage.json says."""
    header = ("checkpoint", "MLflow run", "git commit", "parameters", "made from")
    rows = (
        (
            Entry(one.checkpoint),
            Entry(one.run_id or NOTHING),
            Entry(short(one.git_commit)),
            Entry(short(one.params_sha256)),
            Entry(", ".join(f"{path} {short(digest)}" for path, digest in one.inputs.items()) or "given"),
        )
        for one in found
    )
    return Grid(header, tuple(rows), prose=True)


def provenance(made: Provenance, data: Mapping[Path, str], tracking: TrackingParams) -> Grid:
    """Commit, parameters, data and versions of the evaluation, and where its runs are kept."""
    rows = {
        "MLflow": f"{without_password(tracking.uri)}, experiment {tracking.experiment}",
        "git commit": made.git_commit or "none",
        "parameters": made.params_sha256,
        **{path.as_posix(): digest for path, digest in data.items()},
        "python": made.python,
        **made.versions,
    }
    return _pairs("evaluation", "value", rows)


def short(digest: str | None) -> str:
    """The first digits of a hash."""
    return digest[:HASH] if digest else NOTHING


def _pairs(what: str, value: str, rows: Mapping[str, str]) -> Grid:
    return Grid((what, value), tuple((Entry(name), Entry(text)) for name, text in rows.items()), prose=True)
