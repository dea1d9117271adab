"""The ablation's pictures, as SVG text. The same figures give the same bytes."""

import io
import math
from collections.abc import Callable, Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasks.ablation.cells import Cell, Step
from tasks.ablation.results import Results
from tasks.evaluation.charts import STYLE, running_mean

COLOURS = ("#64748b", "#0ea5e9", "#1d4ed8", "#d97706", "#fbbf24", "#15803d", "#86efac", "#9333ea", "#0f172a")
INK = "#1d4ed8"
SMOOTHING = 9  # steps of the running mean


def scores(results: Results) -> str:
    """A row a variant: a dot a seed, a bar at their mean."""

    def draw(axes: Axes) -> None:
        for place, row in enumerate(results.rows):
            means = [100 * mean for mean in row.means if math.isfinite(mean)]
            axes.plot(means, [place] * len(means), "o", color=INK, alpha=0.55, markersize=6)
            if means:
                axes.plot([sum(means) / len(means)], [place], "|", color=INK, markersize=22, markeredgewidth=2.5)
        _variants(axes, [row.variant.label for row in results.rows])
        axes.set_xlabel("held-out avg@k, mean of lengths, %; a dot a seed, the bar their mean")

    return _figure([draw], (10.0, 0.5 * len(results.rows) + 1.2))


def differences(results: Results) -> str:
    """Each comparison's difference: thick over questions, thin over seeds, both at 95 % for one comparison."""

    def draw(axes: Axes) -> None:
        for place, comparison in enumerate(results.comparisons):
            if (found := comparison.difference) is None:
                continue
            for bounds, width, alpha in ((found.seeds, 1.2, 0.6), (found.questions, 4.5, 0.35)):
                if bounds is not None:
                    ends = [100 * bounds.low, 100 * bounds.high]
                    axes.plot(ends, [place, place], color=INK, linewidth=width, alpha=alpha, solid_capstyle="butt")
            axes.plot([100 * found.mean], [place], "o", color=INK, markersize=6)
        axes.axvline(0, color="#94a3b8", linewidth=1)
        _variants(axes, [f"{one.variant.label}\nagainst {one.base.label}" for one in results.comparisons])
        axes.set_xlabel("difference in points; thick: 95 % over questions, thin: 95 % over seeds")

    return _figure([draw], (10.0, 0.55 * len(results.comparisons) + 1.2))


def training(cells: Sequence[Cell], results: Results) -> str:
    """Reward, entropy and reply length over the steps, a line a variant, the mean over its seeds."""
    values: dict[str, Callable[[Step], float | None]] = {
        "reward": lambda step: step.reward,
        "entropy, nats": lambda step: step.entropy,
        "reply length, tokens": lambda step: step.response_length,
    }
    drawings = [_curves(cells, results, title, value) for title, value in values.items()]
    return _figure(drawings, (13.0, 4.2))


def _curves(
    cells: Sequence[Cell], results: Results, title: str, value: Callable[[Step], float | None]
) -> Callable[[Axes], None]:
    def draw(axes: Axes) -> None:
        for row, colour in zip(results.rows, COLOURS, strict=False):
            own = [cell.training.steps for cell in cells if cell.variant == row.variant.name]
            means = [_mean([value(step) for step in steps]) for steps in zip(*own, strict=False)]
            axes.plot(running_mean(means, SMOOTHING), color=colour, linewidth=1.6, label=row.variant.label)
        axes.set_title(f"{title}, mean of {SMOOTHING} steps")
        axes.set_xlabel("step")
        if title == "reward":
            axes.legend(loc="lower right", fontsize=7)

    return draw


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _variants(axes: Axes, labels: Sequence[str]) -> None:
    """One row a label, the first on top."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.grid(axis="x")
    axes.grid(visible=False, axis="y")


def _figure(drawings: Sequence[Callable[[Axes], None]], size: tuple[float, float]) -> str:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        for axes, draw in zip(figure.subplots(1, len(drawings), squeeze=False).flat, drawings, strict=True):
            draw(axes)
        output = io.StringIO()
        figure.savefig(output, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = output.getvalue()
    return text[text.index("<svg") :]
