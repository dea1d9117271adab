"""The report's pictures, as SVG files' text. The same figures give the same bytes."""

import io
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasks.evaluation.scores import CheckpointScores, Evaluation
from tasks.evaluation.sources import Curves, Round, SelfPlay, Step
from tasks.filtering.funnel import Stage
from tasks.filtering.picture import DOMAIN_COLOURS
from tasks.merge.metrics import MergeMetrics
from tasks.params import EntropyControlParams

PAPER, TEXT, SOFT, GRID, EDGE = "#ffffff", "#0f172a", "#475569", "#e2e8f0", "#cbd5e1"  # a page may replace
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "report",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": TEXT,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": EDGE,
    "axes.labelcolor": SOFT,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "legend.frameon": False,
    "legend.fontsize": 9,
}
INK, FAINT = "#2563eb", "#93c5fd"  # these two as well
SECOND, MUTE, ALARM = "#d97706", "#94a3b8", "#dc2626"  # read on light and on dark, as domains' colours are
SMOOTHING = 9  # steps of the running mean
MOST_TENSORS = 40


def progress(evaluation: Evaluation) -> str:
    """The recipe stage by stage: avg@k at each context length, and the gain over the base with its interval."""
    checkpoints = evaluation.checkpoints
    drawings = [lambda axes: _scores_by_length(axes, evaluation), lambda axes: _gains(axes, checkpoints)]
    return _figure(drawings, columns=2, size=(11.0, 3.9))


def _scores_by_length(axes: Axes, evaluation: Evaluation) -> None:
    shades = mpl.colormaps["viridis"]
    lengths = evaluation.lengths
    for place, tokens in enumerate(lengths):
        colour = mpl.colors.to_hex(shades(0.3 + 0.5 * place / max(1, len(lengths) - 1)))
        _line(axes, evaluation, tokens, colour, 1.4)
    _line(axes, evaluation, None, TEXT, 2.4)
    whole = evaluation.checkpoints[0].cell(None, None)
    if whole:
        axes.axhline(100 * whole.guess, color=MUTE, linestyle=":", label="guessing")
    axes.set_xticks(range(len(evaluation.checkpoints)), [each.checkpoint for each in evaluation.checkpoints])
    axes.set(ylim=(0, 100))
    axes.set_title(f"avg@{evaluation.samples} by context length, %")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=len(lengths) + 2)


def _line(axes: Axes, evaluation: Evaluation, tokens: int | None, colour: str, width: float) -> None:
    cells = [scores.cell(None, tokens) for scores in evaluation.checkpoints]
    values = [math.nan if not cell or cell.average is None else 100 * cell.average for cell in cells]
    label = "all" if tokens is None else f"{tokens} tokens"
    axes.plot(range(len(values)), values, marker="o", markersize=4, color=colour, linewidth=width, label=label)


def _gains(axes: Axes, checkpoints: Sequence[CheckpointScores]) -> None:
    cells = [(scores.checkpoint, scores.cell(None, None)) for scores in checkpoints]
    gains = [(name, cell.gain) for name, cell in cells if cell and cell.gain]
    for place, (_, gain) in enumerate(gains):
        axes.plot([100 * gain.low, 100 * gain.high], [place, place], color=INK, linewidth=2.0)
        axes.plot([100 * gain.difference], [place], "o", color=INK)
    axes.axvline(0, color=SOFT, linewidth=0.8)
    axes.set_yticks(range(len(gains)), [name for name, _ in gains])
    axes.set_ylim(len(gains) - 0.5, -0.5)
    axes.grid(axis="x")
    axes.grid(visible=False, axis="y")
    axes.set_title("gain over the base, points (95 % interval)")


def training_curves(curves: Mapping[str, Curves], control: EntropyControlParams | None) -> str:
    """Reward, reward by domain, entropy with the gate, reply length, what is cut or not trained on, gradient norm."""
    drawings = [
        lambda axes: _rewards(axes, curves),
        lambda axes: _domain_rewards(axes, curves),
        lambda axes: _entropy(axes, curves, control),
        _curve(curves, "reply length, tokens", lambda step: step.response_length),
        lambda axes: _shares(axes, curves),
        _curve(curves, "gradient norm", lambda step: step.gradient_norm),
    ]
    return _figure(drawings, columns=2, size=(11.0, 9.9))


def self_play(played: SelfPlay) -> str:
    """What became of each round's proposals, and how often solvers were right."""
    rounds = played.rounds
    return _figure([lambda axes: _proposals(axes, rounds), lambda axes: _solved(axes, rounds)], 2, (11.0, 2.8))


def _proposals(axes: Axes, rounds: Sequence[Round]) -> None:
    for offset, label, colour, counts in (
        (-0.27, "proposed", EDGE, [each.proposed for each in rounds]),
        (0.0, "well-formed", FAINT, [each.well_formed for each in rounds]),
        (0.27, "verified", INK, [each.verified for each in rounds]),
    ):
        bars = axes.bar([place + offset for place in range(len(rounds))], counts, 0.25, color=colour, label=label)
        axes.bar_label(bars, padding=2, fontsize=9, color=SOFT)
    axes.set_xticks(range(len(rounds)), [f"round {each.round}" for each in rounds])
    axes.margins(y=0.4)
    axes.set_title("questions")
    axes.legend(loc="upper right", ncols=3)


def _solved(axes: Axes, rounds: Sequence[Round]) -> None:
    for label, colour, rates in (
        ("of well-formed questions", INK, [each.mean_solve_rate for each in rounds]),
        ("of verified ones", SECOND, [each.mean_verified_rate for each in rounds]),
    ):
        values = [math.nan if rate is None else 100 * rate for rate in rates]
        axes.plot(range(len(rounds)), values, marker="o", color=colour, label=label)
    axes.set_xticks(range(len(rounds)), [f"round {each.round}" for each in rounds])
    axes.set(ylim=(0, 105))
    axes.set_title("solve rate, % (lower is harder)")
    axes.legend(loc="lower left")


def funnel(steps: Sequence[Stage]) -> str:
    """Training questions left after each check, by domain."""

    def draw(axes: Axes) -> None:
        left = [0] * len(steps)
        for domain, colour in DOMAIN_COLOURS.items():
            counts = [stage.domains.get(domain, 0) for stage in steps]
            axes.barh(range(len(steps)), counts, left=left, color=colour, label=domain.replace("_", " "), height=0.7)
            left = [before + count for before, count in zip(left, counts, strict=True)]
        for place, stage in enumerate(steps):
            text = f" {stage.remaining} (−{stage.dropped})" if stage.dropped else f" {stage.remaining}"
            axes.text(stage.remaining, place, text, va="center", fontsize=9, color=SOFT)
        axes.set_yticks(range(len(steps)), [stage.name.replace("_", " ") for stage in steps])
        axes.set_ylim(len(steps) - 0.5, -0.5)
        axes.margins(x=0.12)
        axes.grid(visible=False)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=5)

    return _figure([draw], columns=1, size=(11.0, 1.3 + 0.36 * len(steps)))


def long_documents(evaluation: Evaluation) -> str:
    """The memory agent beside middle truncation for each checkpoint and context length."""
    rows = [row for row in evaluation.long if row.domain is None]

    def draw(axes: Axes) -> None:
        for offset, label, colour, values in (
            (-0.18, "memory agent", SECOND, [row.agent for row in rows]),
            (0.18, "middle truncation", MUTE, [row.truncation for row in rows]),
        ):
            heights = [0.0 if value is None else 100 * value for value in values]
            bars = axes.bar([x + offset for x in range(len(rows))], heights, 0.34, color=colour, label=label)
            axes.bar_label(bars, fmt="%.0f", padding=2, fontsize=9, color=SOFT)
        for x, row in enumerate(rows):
            axes.hlines(100 * row.guess, x - 0.4, x + 0.4, colors=SOFT, linestyles=":")
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
        axes.hlines(rows, used, alone, color=EDGE, zorder=1)
        axes.scatter(alone, rows, color=PAPER, edgecolors=MUTE, label="mergekit alone", zorder=2)
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


def _rewards(axes: Axes, curves: Mapping[str, Curves]) -> None:
    measured = any(step.lenient_score is not None for curve in curves.values() for step in curve.steps)
    for stage, curve in enumerate(curves.values()):
        rewards = [step.reward for step in curve.steps]
        _thin_line(axes, stage, rewards)
        _thick_line(axes, stage, rewards, INK)
        if measured:
            _thick_line(axes, stage, [step.lenient_score for step in curve.steps], SECOND, "--")  # often the same
    if measured:
        axes.plot([], [], color=INK, label="strict: the reward")
        axes.plot([], [], "--", color=SECOND, label="lenient: as evaluation scores")
        axes.legend(loc="lower right")
    _stages(axes, curves, "reward")


def _shares(axes: Axes, curves: Mapping[str, Curves]) -> None:
    """Shares of replies cut off by the limit, and of tokens whose gradient was clipped or masked away."""
    for stage, curve in enumerate(curves.values()):
        clipped = [None if step.kept_share is None else 1 - step.kept_share for step in curve.steps]
        _thick_line(axes, stage, clipped, INK)
        _thick_line(axes, stage, [step.truncated_share for step in curve.steps], SECOND)
    axes.plot([], [], color=INK, label="tokens clipped or masked")
    axes.plot([], [], color=SECOND, label="replies cut off")
    axes.legend(loc="upper right")
    axes.set_ylim(bottom=0)
    _stages(axes, curves, "shares")


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
                axes.axvspan(left, left + 1 / len(curve.steps), color=ALARM, alpha=0.14, linewidth=0, zorder=0)
    if control:
        for threshold, name in ((control.high, "gate on above"), (control.low, "gate off below")):
            axes.axhline(threshold, color=ALARM, linestyle="--", linewidth=0.8)
            axes.text(len(curves), threshold, f"{name} {threshold:g}", color=ALARM, fontsize=8, va="bottom", ha="right")
    _stages(axes, curves, "entropy, nats (red: gate on, negatives masked)")


def _thin_line(axes: Axes, stage: int, values: Sequence[float | None]) -> None:
    known = [math.nan if value is None else value for value in values]
    axes.plot(_positions(stage, len(values)), known, color=FAINT, linewidth=0.8)


def _thick_line(axes: Axes, stage: int, values: Sequence[float | None], colour: str, style: str = "-") -> None:
    means = running_mean(values, SMOOTHING)
    axes.plot(_positions(stage, len(values)), means, style, color=colour, linewidth=1.6)


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
        axes.axvline(border, color=EDGE, linewidth=0.8)
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
    return output.getvalue()
