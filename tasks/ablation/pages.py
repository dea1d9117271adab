"""The ablation as Markdown and as one HTML file without anything from outside."""

import math
from collections.abc import Sequence
from html import escape

from tasks.ablation.results import Comparison, Results, Row
from tasks.ablation.statistics import Bounds, spread
from tasks.evaluation.pages import CSS, html_table, markdown_table
from tasks.evaluation.tables import Entry, Grid

TITLE = "Ablation of the RL recipe"
NOTHING = "–"
MARGINS = "± is the standard deviation over seeds; in small print or brackets, each seed's score."
VERDICTS = (
    "Two sources of chance are kept apart. Over questions: a paired bootstrap of the questions, the trained "
    "checkpoints fixed; it says whether these checkpoints would differ on other questions. Over seeds: Student's t of "
    "the per-seed differences, the questions fixed; it says whether training again would show the difference. Both at "
    "95 % for one comparison, and in small print or brackets at the level at which all comparisons hold together "
    "(Bonferroni). The verdict uses the latter: better or worse when both exclude 0, these checkpoints when only "
    "the one over questions does, not told apart otherwise. Not told apart does not mean equal."
)


def markdown_page(results: Results, samples: int) -> str:
    """Tables and how to read them."""
    return "\n\n".join(
        [
            f"# {TITLE}",
            subtitle(results, samples),
            "## Scores",
            MARGINS,
            markdown_table(scores(results)),
            "## Differences, in points",
            VERDICTS,
            markdown_table(differences(results)),
            "## Training",
            markdown_table(training(results)),
            "Pictures: [ablation.html](ablation.html).\n",
        ]
    )


def html_page(results: Results, samples: int, pictures: Sequence[str]) -> str:
    """The same with pictures."""
    sections = (
        ("Scores", MARGINS, html_table(scores(results))),
        ("Differences, in points", VERDICTS, html_table(differences(results))),
        ("Training", "", html_table(training(results))),
    )
    body = "".join(
        f"<section><h2>{escape(title)}</h2><p>{escape(text)}</p>{table}{picture}</section>\n"
        for (title, text, table), picture in zip(sections, pictures, strict=True)
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{TITLE}</title><style>{CSS}</style></head>\n<body><main><h1>{TITLE}</h1>"
        f"<p>{escape(subtitle(results, samples))}</p>\n{body}</main></body></html>\n"
    )


def subtitle(results: Results, samples: int) -> str:
    """What was done, in two sentences."""
    seeds = sorted({seed for row in results.rows for seed in row.seeds})
    return (
        f"RL stage 1 from the same base model on the same curated questions, {results.steps} steps, seeds "
        f"{', '.join(map(str, seeds))} (sampling and order of the questions). avg@{samples} in percent on "
        f"{results.questions} held-out items; each variant differs from the one it is compared with first by one "
        "parameter."
    )


def scores(results: Results) -> Grid:
    """Held-out scores per variant."""
    lengths = sorted({length for row in results.rows for length in row.by_length})
    header = ("variant", "mean of lengths", *(f"{length} tokens" for length in lengths), "reply tokens", "cut off")
    return Grid(header, tuple(_scores(row, lengths) for row in results.rows))


def _scores(row: Row, lengths: Sequence[int]) -> tuple[Entry, ...]:
    return (
        Entry(row.variant.label),
        _over_seeds(row.means),
        *(_over_seeds(row.by_length[length]) for length in lengths),
        Entry(f"{row.response_tokens:.1f}"),
        Entry(f"{100 * row.truncated_share:.1f} %"),
    )


def _over_seeds(means: tuple[float, ...]) -> Entry:
    known = tuple(mean for mean in means if math.isfinite(mean))
    if not known:
        return Entry(NOTHING)
    average = f"{100 * math.fsum(known) / len(known):.1f}"
    if len(known) == 1:
        return Entry(average)
    return Entry(f"{average} ± {100 * spread(known):.1f}", ", ".join(f"{100 * mean:.1f}" for mean in known))


def differences(results: Results) -> Grid:
    """Every comparison with both intervals."""
    header = ("variant", "against", "difference", "over questions", "over seeds", "verdict")
    return Grid(header, tuple(_difference(comparison) for comparison in results.comparisons))


def _difference(comparison: Comparison) -> tuple[Entry, ...]:
    found = comparison.difference
    names = (Entry(comparison.variant.label), Entry(comparison.base.label))
    if found is None:
        return (*names, *(Entry(NOTHING) for _ in range(4)))
    return (
        *names,
        Entry(_signed(found.mean), ", ".join(map(_signed, found.per_seed))),
        Entry(_interval(found.questions), _interval(found.all_questions)),
        Entry(_interval(found.seeds), _interval(found.all_seeds)) if found.seeds else Entry(NOTHING),
        Entry(verdict(comparison)),
    )


def verdict(comparison: Comparison) -> str:
    """What the two intervals that hold for all comparisons together say."""
    found = comparison.difference
    if found is None or not found.all_questions.excludes_zero:
        return "not told apart"
    if found.all_seeds is None or not found.all_seeds.excludes_zero:
        return "these checkpoints"
    return "better" if found.mean > 0 else "worse"


def _signed(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−")


def _interval(bounds: Bounds | None) -> str:
    return f"[{100 * bounds.low:.1f}, {100 * bounds.high:.1f}]".replace("-", "−") if bounds else NOTHING


def training(results: Results) -> Grid:
    """What training looked like, means over seeds; the end is the last tenth of the steps."""
    header = ("variant", "reward, end", "entropy", "tokens that train", "gate on", "updates skipped", "unscored")
    return Grid(header, tuple(_training(row) for row in results.rows))


def _training(row: Row) -> tuple[Entry, ...]:
    return (
        Entry(row.variant.label),
        Entry(f"{row.last_reward:.3f}"),
        Entry(f"{row.first_entropy:.3f} → {row.last_entropy:.3f}"),
        Entry(f"{100 * row.kept_share:.0f} %"),
        Entry(f"{100 * row.gate_share:.0f} %"),
        Entry(f"{row.skipped:.1f}"),
        Entry(f"{100 * row.unscored_share:.1f} %"),
    )
