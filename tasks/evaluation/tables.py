"""The report's tables, independent of where they are shown: terminal, Markdown or HTML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tasks.evaluation.scores import CheckpointScores, Evaluation, Interval, Provenance
from tasks.evaluation.sources import Balance, Curves
from tasks.filtering.funnel import Funnel, Stage, cells, stages
from tasks.merge.metrics import MergeMetrics
from tasks.records import Domain, Split

LEVELS = "▁▂▃▄▅▆▇█"
SPARKLINE_WIDTH = 16
NOTHING = "–"


@dataclass(frozen=True)
class Entry:
    """One cell: what is read first, and what explains it."""

    value: str
    detail: str = ""

    def plain(self) -> str:
        """Both in a line."""
        return f"{self.value} ({self.detail})" if self.detail else self.value


@dataclass(frozen=True)
class Grid:
    """A table. The first column names the row."""

    header: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]


def points(share: float | None) -> str:
    """A share as percentage points with one decimal."""
    return NOTHING if share is None else f"{100 * share:.1f}"


def gain(interval: Interval | None) -> str:
    """A difference in points with its interval."""
    if interval is None:
        return ""
    text = f"{100 * interval.difference:+.1f} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
    return text.replace("-", "−")


def words(name: str) -> str:
    """A machine name for people."""
    return name.replace("_", " ")


def by_length(evaluation: Evaluation) -> Grid:
    """avg@k per checkpoint and length, all domains; the last column is the mean over lengths."""
    columns = [(None, tokens) for tokens in (*evaluation.lengths, None)]
    header = ("checkpoint", *(f"{tokens} tokens" for tokens in evaluation.lengths), "mean of lengths")
    return _score_grid(evaluation, header, columns)


def by_domain(evaluation: Evaluation) -> Grid:
    """avg@k per checkpoint and domain, mean over lengths."""
    header = ("checkpoint", *(words(domain) for domain in Domain))
    return _score_grid(evaluation, header, [(domain, None) for domain in Domain])


def by_domain_and_length(evaluation: Evaluation, domain: Domain) -> Grid:
    """avg@k of one domain per checkpoint and length."""
    header = ("checkpoint", *(f"{tokens} tokens" for tokens in evaluation.lengths), "mean of lengths")
    return _score_grid(evaluation, header, [(domain, tokens) for tokens in (*evaluation.lengths, None)])


def _score_grid(
    evaluation: Evaluation, header: tuple[str, ...], columns: Sequence[tuple[Domain | None, int | None]]
) -> Grid:
    first = evaluation.checkpoints[0]
    guesses = [first.cell(*column) for column in columns]
    guess_row = (Entry("guessing"), *(Entry(points(cell.guess if cell else None)) for cell in guesses))
    return Grid(header, (guess_row, *(_score_row(scores, columns) for scores in evaluation.checkpoints)))


def _score_row(scores: CheckpointScores, columns: Sequence[tuple[Domain | None, int | None]]) -> tuple[Entry, ...]:
    cells = [scores.cell(*column) for column in columns]
    entries = (Entry(points(cell.average), gain(cell.gain)) if cell else Entry(NOTHING) for cell in cells)
    return (Entry(scores.checkpoint), *entries)


def replies(evaluation: Evaluation) -> Grid:
    """How the replies of each checkpoint look."""
    accuracies = ("greedy", f"avg@{evaluation.samples}", f"pass@{evaluation.samples}")
    shapes = ("reply tokens", "cut off", "no answer found", "unscored", "prompt truncated")
    header = ("checkpoint", *accuracies, *shapes)
    return Grid(header, tuple(_reply_row(scores) for scores in evaluation.checkpoints))


def _reply_row(scores: CheckpointScores) -> tuple[Entry, ...]:
    whole = scores.cell(None, None)
    accuracies = (whole.greedy, whole.average, whole.pass_at_k) if whole else (None, None, None)
    shares = (scores.truncated_share, scores.unextractable_share, scores.unscored_share, scores.cut_share)
    return (
        Entry(scores.checkpoint),
        *(Entry(points(accuracy)) for accuracy in accuracies),
        Entry(f"{scores.response_tokens:.1f}"),
        *(Entry(f"{points(value)} %") for value in shares),
    )


def long_documents(evaluation: Evaluation) -> Grid:
    """Memory agent and middle truncation, all domains."""
    header = (
        "checkpoint",
        "context",
        "questions",
        "memory agent",
        "middle truncation",
        "guessing",
        "evidence cut",
    )
    rows = [
        (
            Entry(row.checkpoint),
            Entry(f"{row.context_tokens} tokens", f"{row.context_tokens / evaluation.window:g} × the window"),
            Entry(str(row.questions)),
            Entry(points(row.agent), gain(row.gain)),
            Entry(points(row.truncation)),
            Entry(points(row.guess)),
            Entry(f"{points(row.evidence_cut_share)} %"),
        )
        for row in evaluation.long
        if row.domain is None
    ]
    return Grid(header, tuple(rows))


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
    return _stages(stages(result.rows, split))


def training_funnel(result: Funnel, balanced: Balance) -> Grid:
    """The same for training questions, balancing at the end."""
    steps = stages(result.rows, "train")
    domains = {domain: sum(counts) for domain, counts in balanced.after.items()}
    left = sum(domains.values())
    return _stages([*steps, Stage("balanced", steps[-1].remaining - left, left, balanced.generators, domains)])


def _stages(steps: Sequence[Stage]) -> Grid:
    header, *rows = cells(steps)
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


def provenance(made: Provenance) -> Grid:
    """Commit, parameters and versions."""
    rows = {
        "git commit": made.git_commit or "none",
        "parameters (sha256)": made.params_sha256,
        "python": made.python,
        **made.versions,
    }
    return Grid(("what", "value"), tuple((Entry(name), Entry(value)) for name, value in rows.items()))


def headlines(evaluation: Evaluation) -> tuple[tuple[str, str, str], ...]:
    """The figures that matter: where, how much, what it is."""
    last = evaluation.checkpoints[-1]
    longest = evaluation.lengths[-1]
    found = [
        ("all lengths", last.cell(None, None), f"base → {last.checkpoint}, mean of lengths, points"),
        (f"{longest} tokens", last.cell(None, longest), f"base → {last.checkpoint}, longest context, points"),
    ]
    figures = [(where, gain(cell.gain), text) for where, cell, text in found if cell and cell.gain]
    agents = [row for row in evaluation.long if row.domain is None and row.checkpoint == last.checkpoint]
    if agents:
        row = max(agents, key=lambda row: row.context_tokens)
        where = f"{row.context_tokens / evaluation.window:g} × the window"
        figures.append((where, gain(row.gain), "memory agent over middle truncation, points"))
    return tuple(figures)
