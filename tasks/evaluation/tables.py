"""The report's tables of scores, independent of where they are shown: terminal, Markdown or HTML."""

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.evaluation.benchmarks.results import BenchmarkCell, BenchmarkScores
from tasks.evaluation.scores import Cell, CheckpointScores, Comparison, Evaluation, Interval, LongScores
from tasks.records import Domain

NOTHING = "–"


@dataclass(frozen=True)
class Entry:
    """One cell: what is read first, and what explains it; `level` in 0..1 shades a score by its height."""

    value: str
    detail: str = ""
    level: float | None = None

    def plain(self) -> str:
        """Both in a line."""
        return f"{self.value} ({self.detail})" if self.detail else self.value


@dataclass(frozen=True)
class Grid:
    """A table. The first column names the row; the others are figures, or words (`prose`)."""

    header: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    prose: bool = False


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


def recipe(evaluation: Evaluation, benchmarks: BenchmarkScores | None) -> Grid:
    """A row per checkpoint, as in Table 10 of QwenLong-L1.5: domains, their mean, the memory agent, benchmarks."""
    agents = _longest_agents(evaluation)
    columns = _benchmark_columns(benchmarks)
    long = f"agent, {agents[0].context_tokens / evaluation.window:g} × window" if agents else ""
    scores = by_domain(evaluation)
    header = (*scores.header, "all", *([long] if agents else []), *(name for name, _ in columns))
    guesses, *rows = scores.rows
    whole = evaluation.checkpoints[0].cell(None, None)
    empty = Entry(NOTHING)
    guess = (*guesses, Entry(points(whole.guess if whole else None)), *[empty] * (len(header) - len(guesses) - 1))
    return Grid(
        header,
        (
            guess,
            *(
                (
                    *row,
                    _score(scored.cell(None, None)),
                    *([_agent(agents, scored.checkpoint)] if agents else []),
                    *(_benchmark(cells, scored.checkpoint) for _, cells in columns),
                )
                for row, scored in zip(rows, evaluation.checkpoints, strict=True)
            ),
        ),
    )


def _longest_agents(evaluation: Evaluation) -> list[LongScores]:
    rows = [row for row in evaluation.long if row.domain is None]
    longest = max((row.context_tokens for row in rows), default=0)
    return [row for row in rows if row.context_tokens == longest]


def _agent(rows: Sequence[LongScores], checkpoint: str) -> Entry:
    found = (Entry(points(row.agent), level=row.agent) for row in rows if row.checkpoint == checkpoint)
    return next(found, Entry(NOTHING))


def _benchmark_columns(benchmarks: BenchmarkScores | None) -> list[tuple[str, list[BenchmarkCell]]]:
    """Whole benchmarks by name and way of reading, in order."""
    columns: dict[str, list[BenchmarkCell]] = {}
    for cell in benchmarks.cells if benchmarks else ():
        if cell.subset is None:
            columns.setdefault(_benchmark_name(cell), []).append(cell)
    return list(columns.items())


def _benchmark_name(cell: BenchmarkCell) -> str:
    return f"{cell.benchmark}, agent" if cell.way == "agent" else cell.benchmark


def _benchmark(cells: Sequence[BenchmarkCell], checkpoint: str) -> Entry:
    found = (
        Entry(points(cell.robust), gain(cell.gain), cell.robust) for cell in cells if cell.checkpoint == checkpoint
    )
    return next(found, Entry(NOTHING))


def _score_grid(
    evaluation: Evaluation, header: tuple[str, ...], columns: Sequence[tuple[Domain | None, int | None]]
) -> Grid:
    first = evaluation.checkpoints[0]
    guesses = [first.cell(*column) for column in columns]
    guess_row = (Entry("guessing"), *(Entry(points(cell.guess if cell else None)) for cell in guesses))
    return Grid(header, (guess_row, *(_score_row(scores, columns) for scores in evaluation.checkpoints)))


def _score_row(scores: CheckpointScores, columns: Sequence[tuple[Domain | None, int | None]]) -> tuple[Entry, ...]:
    return (Entry(scores.checkpoint), *(_score(scores.cell(*column)) for column in columns))


def _score(cell: Cell | None) -> Entry:
    return Entry(points(cell.average), gain(cell.gain), cell.average) if cell else Entry(NOTHING)


def comparisons(evaluation: Evaluation) -> Grid:
    """Checkpoints in pairs: avg@k by bootstrap, greedy replies by McNemar's exact test."""
    header = (
        "pair",
        f"avg@{evaluation.samples}, difference",
        "only the first right",
        "only the second right",
        "p (McNemar, exact)",
        "p (Holm)",
        "items compared",
        "unscored",
    )
    return Grid(header, tuple(_comparison(one) for one in evaluation.comparisons))


def _comparison(one: Comparison) -> tuple[Entry, ...]:
    return (
        Entry(f"{one.first} → {one.second}"),
        Entry(gain(one.gain) or NOTHING),
        Entry(str(one.only_first)),
        Entry(str(one.only_second)),
        Entry(p_value(one.p)),
        Entry(p_value(one.adjusted_p)),
        Entry(str(one.pairs)),
        Entry(str(one.unscored)),
    )


def p_value(p: float | None) -> str:
    """Three decimals; what is below them only says so."""
    if p is None:
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _ways(samples: int) -> tuple[str, ...]:
    """How one cell is scored, in the order of `_figures`."""
    return ("greedy", "pass@1", f"avg@{samples}", f"best of {samples}", f"majority of {samples}")


SHAPES = ("output tokens", "cut off, %", "unanswered, %", "unscored, %")


def _figures(cell: Cell) -> tuple[Entry, ...]:
    ways = (cell.greedy, cell.first, cell.average, cell.pass_at_k, cell.majority)
    shares = (cell.truncated_share, cell.unanswered_share, cell.unscored_share)
    return (
        *(Entry(points(way)) for way in ways),
        Entry(f"{cell.response_tokens:.1f}"),
        *(Entry(points(value)) for value in shares),
    )


def replies(evaluation: Evaluation) -> Grid:
    """How the replies of each checkpoint score and look."""
    header = ("checkpoint", *_ways(evaluation.samples), *SHAPES, "longest", "all tokens generated")
    return Grid(header, tuple(_reply_row(scores) for scores in evaluation.checkpoints))


def _reply_row(scores: CheckpointScores) -> tuple[Entry, ...]:
    whole = scores.cell(None, None)
    figures = _figures(whole) if whole else ()
    return (Entry(scores.checkpoint), *figures, Entry(str(scores.longest_reply)), Entry(f"{scores.generated_tokens:,}"))


def cells(evaluation: Evaluation, scores: CheckpointScores) -> Grid:
    """One checkpoint by domain and length."""
    header = ("domain", "tokens", "items", "guessing", *_ways(evaluation.samples), *SHAPES)
    rows = (
        (
            Entry(words(cell.domain or "all")),
            Entry(str(cell.context_tokens or "all")),
            Entry(str(cell.questions)),
            Entry(points(cell.guess)),
            *_figures(cell),
        )
        for cell in scores.cells
    )
    return Grid(header, tuple(rows))


def benchmark_cells(benchmarks: BenchmarkScores) -> Grid:
    """Every benchmark and subset by checkpoint."""
    header = (
        "benchmark",
        "checkpoint",
        "tasks",
        "official",
        "robust",
        "pass@1",
        "best of N",
        "N",
        *SHAPES,
        "prompt cut, %",
    )
    return Grid(header, tuple(_benchmark_row(cell) for cell in benchmarks.cells))


def _benchmark_row(cell: BenchmarkCell) -> tuple[Entry, ...]:
    shares = (cell.truncated_share, cell.unanswered_share, cell.unscored_share, cell.cut_share)
    return (
        Entry(_benchmark_name(cell), cell.subset or ""),
        Entry(cell.checkpoint),
        Entry(str(cell.tasks)),
        Entry(points(cell.official)),
        Entry(points(cell.robust), gain(cell.gain)),
        Entry(points(cell.first)),
        Entry(points(cell.best)),
        Entry(str(cell.samples)),
        Entry(f"{cell.output_tokens:.1f}"),
        *(Entry(points(share)) for share in shares),
    )


def benchmark_sources(benchmarks: BenchmarkScores) -> Grid:
    """Which data each benchmark was, with its revision and hash."""
    rows = ((Entry(name), Entry(source)) for name, source in sorted(benchmarks.sources.items()))
    return Grid(("benchmark", "data"), tuple(rows), prose=True)


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
    whole = [one for one in evaluation.comparisons if one.first == evaluation.checkpoints[0].checkpoint]
    if whole and whole[-1].second == last.checkpoint and whole[-1].pairs:
        one = whole[-1]
        text = f"items only {one.second} or only {one.first} gets right, greedy; McNemar p {p_value(one.p)}"
        figures.append((f"{one.pairs} items in pairs", f"{one.only_second} to {one.only_first}", text))
    return tuple(figures)
