"""The report's pictures, as SVG text. The same figures give the same bytes."""

import io
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasks.evaluation.scores import Evaluation
from tasks.evaluation.sources import Curves, Step
from tasks.filtering.picture import DOMAIN_COLOURS
from tasks.merge.metrics import MergeMetrics
from tasks.params import EntropyControlParams

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "report",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#94a3b8",
    "axes.labelcolor": "#475569",
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#e2e8f0",
    "xtick.color": "#475569",
    "ytick.color": "#475569",
    "legend.frameon": False,
    "legend.fontsize": 9,
}
CHECKPOINT_COLOURS = {
    "base": "#94a3b8",
    "stage1": "#93c5fd",
    "stage2": "#3b82f6",
    "stage3": "#1d4ed8",
    "memory": "#d97706",
    "merged": "#9333ea",
    "stage4": "#0f172a",
}
INK, FAINT, ALARM = "#1d4ed8", "#bfdbfe", "#dc2626"
SMOOTHING = 9  # steps of the running mean
MOST_TENSORS = 40


def accuracy_by_length(evaluation: Evaluation) -> str:
    """avg@k over context length, a line per checkpoint, guessing dotted."""
    lengths = evaluation.lengths
    positions = range(len(lengths))

    def draw(axes: Axes) -> None:
        for scores in evaluation.checkpoints:
            cells = [scores.cell(None, tokens) for tokens in lengths]
            values = [math.nan if not cell or cell.average is None else 100 * cell.average for cell in cells]
            colour = CHECKPOINT_COLOURS.get(scores.checkpoint, INK)
            axes.plot(positions, values, marker="o", markersize=4, color=colour, label=scores.checkpoint)
        cells = [evaluation.checkpoints[0].cell(None, tokens) for tokens in lengths]
        guesses = [100 * cell.guess if cell else math.nan for cell in cells]
        axes.plot(positions, guesses, linestyle=":", color="#64748b", label="guessing")
        axes.set_xticks(positions, [str(tokens) for tokens in lengths])
        axes.set(xlabel="context, tokens", ylabel=f"avg@{evaluation.samples}, %", ylim=(0, 100))
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    return _figure([draw], columns=1, size=(7.6, 3.6))


def training_curves(curves: Mapping[str, Curves], control: EntropyControlParams | None) -> str:
    """Reward, reward per domain, entropy with the gate, reply length, cut-off replies and gradient norm."""
    drawings = [
        _curve(curves, "reward", lambda step: step.reward),
        lambda axes: _domain_rewards(axes, curves),
        lambda axes: _entropy(axes, curves, control),
        _curve(curves, "reply length, tokens", lambda step: step.response_length),
        _curve(curves, "share of replies cut off", lambda step: step.truncated_share),
        _curve(curves, "gradient norm", lambda step: step.gradient_norm),
    ]
    return _figure(drawings, columns=2, size=(11.0, 9.6))


def long_documents(evaluation: Evaluation) -> str:
    """The memory agent beside middle truncation for each checkpoint and context length."""
    rows = [row for row in evaluation.long if row.domain is None]

    def draw(axes: Axes) -> None:
        for offset, label, colour, values in (
            (-0.18, "memory agent", "#d97706", [row.agent for row in rows]),
            (0.18, "middle truncation", "#94a3b8", [row.truncation for row in rows]),
        ):
            heights = [0.0 if value is None else 100 * value for value in values]
            bars = axes.bar([x + offset for x in range(len(rows))], heights, 0.34, color=colour, label=label)
            axes.bar_label(bars, fmt="%.0f", padding=2, fontsize=9, color="#475569")
        for x, row in enumerate(rows):
            axes.hlines(100 * row.guess, x - 0.4, x + 0.4, colors="#475569", linestyles=":")
        names = [f"{row.checkpoint}\n{row.context_tokens / evaluation.window:g} × window" for row in rows]
        axes.set_xticks(range(len(rows)), names)
        axes.set(ylabel="greedy accuracy, %", ylim=(0, 105))
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title="dotted: guessing")

    return _figure([draw], columns=1, size=(9.6, 3.4))


def merge_weights(metrics: MergeMetrics) -> str:
    """Weight of the second model in the largest tensors: used, and by mergekit alone."""
    largest = sorted(metrics.tensors, key=lambda tensor: -tensor.parameters)[:MOST_TENSORS]
    shown = sorted(largest, key=metrics.tensors.index, reverse=True)
    rows = range(len(shown))
    name = Path(metrics.models[1]).name

    def draw(axes: Axes) -> None:
        used = [tensor.weights[1] for tensor in shown]
        alone = [tensor.mergekit_weights[1] for tensor in shown]
        axes.hlines(rows, used, alone, color="#cbd5e1", zorder=1)
        axes.scatter(alone, rows, color="white", edgecolors="#64748b", label="mergekit alone", zorder=2)
        axes.scatter(used, rows, color="#9333ea", label="used", zorder=3)
        axes.set_yticks(rows, [tensor.name.removeprefix("model.") for tensor in shown], fontsize=8)
        axes.set(xlabel=f"weight of {name}", xlim=(-0.02, 1.02))
        axes.grid(visible=False)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    return _figure([draw], columns=1, size=(9.6, 1.0 + 0.19 * len(shown)))


def _curve(curves: Mapping[str, Curves], title: str, value: Callable[[Step], float | None]) -> Callable[[Axes], None]:
    def draw(axes: Axes) -> None:
        for stage, curve in enumerate(curves.values()):
            values = [value(step) for step in curve.steps]
            _thin_line(axes, stage, values)
            _thick_line(axes, stage, values, INK)
        _stages(axes, curves, title)

    return draw


def _domain_rewards(axes: Axes, curves: Mapping[str, Curves]) -> None:
    for domain, colour in DOMAIN_COLOURS.items():
        for stage, curve in enumerate(curves.values()):
            _thick_line(axes, stage, [step.domain_rewards.get(domain) for step in curve.steps], colour)
        axes.plot([], [], color=colour, label=domain.replace("_", " "))
    _stages(axes, curves, f"reward by domain (mean of {SMOOTHING} steps)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)


def _entropy(axes: Axes, curves: Mapping[str, Curves], control: EntropyControlParams | None) -> None:
    for stage, curve in enumerate(curves.values()):
        values = [step.entropy for step in curve.steps]
        _thin_line(axes, stage, values)
        _thick_line(axes, stage, values, INK)
        for number, step in enumerate(curve.steps):
            if step.gate:
                left = stage + number / len(curve.steps)
                axes.axvspan(left, left + 1 / len(curve.steps), color="#fee2e2", linewidth=0, zorder=0)
    if control:
        for threshold, name in ((control.high, "gate on above"), (control.low, "gate off below")):
            axes.axhline(threshold, color=ALARM, linestyle="--", linewidth=0.8)
            axes.annotate(f"{name} {threshold:g}", (0, threshold), color=ALARM, fontsize=8, va="bottom")
    _stages(axes, curves, "entropy, nats (red: gate on, negatives masked)")


def _thin_line(axes: Axes, stage: int, values: Sequence[float | None]) -> None:
    known = [math.nan if value is None else value for value in values]
    axes.plot(_positions(stage, len(values)), known, color=FAINT, linewidth=0.8)


def _thick_line(axes: Axes, stage: int, values: Sequence[float | None], colour: str) -> None:
    means = running_mean(values, SMOOTHING)
    axes.plot(_positions(stage, len(values)), means, color=colour, linewidth=1.6)


def _positions(stage: int, steps: int) -> list[float]:
    """Every stage is one wide, whatever its number of steps."""
    return [stage + (step + 0.5) / steps for step in range(steps)]


def running_mean(values: Sequence[float | None], width: int) -> list[float]:
    """Centred mean over `width` steps, fewer at the ends; gaps are skipped, NaN where there is nothing."""
    means = []
    for centre in range(len(values)):
        near = values[max(0, centre - width // 2) : centre + width // 2 + 1]
        known = [value for value in near if value is not None]
        means.append(sum(known) / len(known) if known else math.nan)
    return means


def _stages(axes: Axes, curves: Mapping[str, Curves], title: str) -> None:
    """Borders and names of the stages along the step axis."""
    for border in range(1, len(curves)):
        axes.axvline(border, color="#cbd5e1", linewidth=0.8)
    names = [f"{name}\n{len(curve.steps)} steps" for name, curve in curves.items()]
    axes.set_xticks([stage + 0.5 for stage in range(len(curves))], names, fontsize=9)
    axes.tick_params(axis="x", length=0)
    axes.set_title(title)
    axes.set_xlim(0, len(curves))


def _figure(drawings: Sequence[Callable[[Axes], None]], columns: int, size: tuple[float, float]) -> str:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(math.ceil(len(drawings) / columns), columns, squeeze=False)
        for axes, draw in zip(grid.flat, drawings, strict=True):
            draw(axes)
        output = io.StringIO()
        figure.savefig(output, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = output.getvalue()
    return text[text.index("<svg") :]
