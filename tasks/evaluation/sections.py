"""What the report says, section by section, as values: how they look in HTML and Markdown is `pages`' affair."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tasks.evaluation import charts, pipeline_tables, tables, wording
from tasks.evaluation.files import PICTURE
from tasks.evaluation.sources import Example, Sources
from tasks.evaluation.tables import Grid, words
from tasks.params import Params
from tasks.records import Domain, Split

HELD_OUT: tuple[Split, ...] = ("development", "test")


@dataclass(frozen=True)
class Picture:
    """A picture: the file it is also kept in (SVG text, or PNG bytes), and what it shows."""

    file: str
    alt: str
    content: str | bytes


@dataclass(frozen=True)
class Fold:
    """A table that is shown on demand."""

    title: str
    grid: Grid


Block = Grid | Picture | Fold | Example


@dataclass(frozen=True)
class Section:
    """A heading, how to read what follows, and what follows."""

    title: str
    text: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Report:
    """The whole report. `headlines` are (where, figure, what it is)."""

    title: str
    subtitle: str
    headlines: tuple[tuple[str, str, str], ...]
    sections: tuple[Section, ...]

    @property
    def pictures(self) -> Iterator[Picture]:
        """All pictures, in order."""
        return (block for section in self.sections for block in section.blocks if isinstance(block, Picture))


def compose(sources: Sources, params: Params) -> Report:
    """Draw and fill everything. The same sources and parameters give the same report."""
    makers: tuple[Callable[[Sources, Params], Section | None], ...] = (
        _recipe, _lengths, _pairs, _replies, _benchmarks, _long, _training, _self_play, _funnel, _contamination, _merge,
        _examples, _origins,
    )  # fmt: skip
    return Report(
        title=wording.title(params),
        subtitle=wording.subtitle(sources.evaluation),
        headlines=tables.headlines(sources.evaluation),
        sections=tuple(section for make in makers if (section := make(sources, params))),
    )


def _recipe(sources: Sources, _: Params) -> Section:
    evaluation = sources.evaluation
    alt = "Scores by checkpoint and context length, and gains over the base with their intervals"
    return Section(
        "The recipe, checkpoint by checkpoint",
        wording.scores(evaluation),
        (
            tables.recipe(evaluation, sources.benchmarks),
            Picture("progress.svg", alt, charts.progress(evaluation)),
        ),
    )


def _lengths(sources: Sources, _: Params) -> Section:
    evaluation = sources.evaluation
    folds = (Fold(f"{words(domain)} by length", tables.by_domain_and_length(evaluation, domain)) for domain in Domain)
    return Section("By context length", "", (tables.by_length(evaluation), *folds))


def _pairs(sources: Sources, _: Params) -> Section | None:
    if not sources.evaluation.comparisons:
        return None
    return Section(
        "Checkpoints in pairs",
        wording.comparisons(sources.evaluation),
        (tables.comparisons(sources.evaluation),),
    )


def _replies(sources: Sources, params: Params) -> Section:
    evaluation = sources.evaluation
    folds = (
        Fold(f"{scores.checkpoint} by domain and length", tables.cells(evaluation, scores))
        for scores in evaluation.checkpoints
    )
    return Section(
        "How it was measured",
        wording.replies(evaluation),
        (
            pipeline_tables.method(evaluation, sources.benchmarks, params),
            tables.replies(evaluation),
            *folds,
        ),
    )


def _benchmarks(sources: Sources, _: Params) -> Section | None:
    found = sources.benchmarks
    if found is None:
        return None
    return Section(
        "Benchmarks", wording.benchmarks(found), (tables.benchmark_cells(found), tables.benchmark_sources(found))
    )


def _long(sources: Sources, _: Params) -> Section:
    evaluation = sources.evaluation
    alt = "Memory agent beside middle truncation, by checkpoint and context length"
    pictures = (Picture("long_documents.svg", alt, charts.long_documents(evaluation)),) if evaluation.long else ()
    return Section(
        "Documents longer than the window",
        wording.long_documents(evaluation),
        (tables.long_documents(evaluation), *pictures),
    )


def _training(sources: Sources, params: Params) -> Section:
    alt = "Reward, reward by domain, entropy with the gate, reply length, shares clipped and cut off, gradient norm"
    return Section(
        "Reinforcement learning",
        wording.TRAINING,
        (
            Picture("training.svg", alt, charts.training_curves(sources.curves, params.rl.entropy_control)),
            pipeline_tables.training(sources.curves),
        ),
    )


def _self_play(sources: Sources, _: Params) -> Section | None:
    played = sources.self_play
    if not played.rounds:
        return None
    alt = "Questions proposed, well-formed and verified in each round of self-play, and how many of them were solved"
    return Section(
        "Self-play, round by round",
        wording.SELF_PLAY,
        (Picture("self_play.svg", alt, charts.self_play(played)), pipeline_tables.rounds(played)),
    )


def _funnel(sources: Sources, _: Params) -> Section:
    steps = pipeline_tables.training_stages(sources.funnel, sources.balance)
    held_out = (Fold(f"{split} questions", pipeline_tables.funnel(sources.funnel, split)) for split in HELD_OUT)
    return Section(
        "Where the questions went",
        wording.funnel(sources.funnel),
        (
            Picture("funnel.svg", "Training questions left after each check, by domain", charts.funnel(steps)),
            pipeline_tables.stage_grid(steps),
            *held_out,
            pipeline_tables.balance(sources.balance),
            Picture(PICTURE.name, "All questions by domain, kept and dropped", sources.picture),
        ),
    )


def _contamination(sources: Sources, params: Params) -> Section:
    grid = pipeline_tables.contamination(sources.funnel, sources.overlap, params.filtering)
    return Section("Contamination", wording.contamination(sources.benchmarks, params), (grid,))


def _merge(sources: Sources, _: Params) -> Section:
    alt = "Weight of the second model in each of the largest tensors, as used and by mergekit alone"
    return Section(
        "The merge",
        wording.merge(sources.merge),
        (pipeline_tables.merge_weights(sources.merge), Picture("merge.svg", alt, charts.merge_weights(sources.merge))),
    )


def _examples(sources: Sources, _: Params) -> Section:
    return Section("Examples", wording.EXAMPLES, sources.examples)


def _origins(sources: Sources, params: Params) -> Section:
    return Section(
        "Where the figures are from",
        wording.ORIGINS,
        (
            pipeline_tables.origins(sources.origins),
            pipeline_tables.checkpoints(sources.checkpoints),
            pipeline_tables.provenance(sources.evaluation.provenance, sources.data, params.tracking),
        ),
    )
