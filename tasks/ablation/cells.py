"""What the ablation measures: one cell a variant and seed, in `cells/<variant>/seed<k>/`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from tasks.errors import InputError
from tasks.records import Record

CELLS = Path("cells")
SCORES, TRAINING = "scores.json", "training.json"


class QuestionScore(Record):
    """avg@k of one question on one context; None where every reply went unscored."""

    question_id: str
    context_tokens: int
    average: float | None


class CellScores(Record):
    """What the trained checkpoint makes of the held-out items. Lengths in tokens, shares in 0..1."""

    questions: tuple[QuestionScore, ...]
    response_tokens: float
    truncated_share: float
    unscored_share: float


class Step(BaseModel):
    """The figures of an RL step that are drawn."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    reward: float | None
    entropy: float
    response_length: float
    kept_share: float
    gate: bool


class Training(BaseModel):
    """metrics/rl-stage1.json of a cell."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    skipped: int
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Cell:
    """One trained and examined checkpoint."""

    variant: str
    seed: int
    scores: CellScores
    training: Training


def cell_name(variant: str, seed: int) -> str:
    """Where a cell lies below `cells/`; also the name of its experiment and of its MLflow run."""
    return f"{variant}/seed{seed}"


def read_cells(folder: Path, variants: Sequence[str]) -> list[Cell]:
    """All cells that are done, in the order of the variants, then of the seeds.

    Raises:
        InputError: there is none, a file cannot be read, or two cells answered different questions.
    """
    cells = [
        _read(variant, path)
        for variant in variants
        for path in sorted((folder / variant).glob("seed*"), key=lambda path: int(path.name.removeprefix("seed")))
    ]
    if not cells:
        raise InputError(f"{folder} holds no cell of {', '.join(variants)}; run python -m flows.ablation")
    for cell in cells:
        if asked(cell) != asked(cells[0]):
            raise InputError(
                f"{cell.variant}, seed {cell.seed} answered other questions than {cells[0].variant}, seed "
                f"{cells[0].seed}; scores of different questions do not compare: remove {folder}, run again"
            )
    return cells


def asked(cell: Cell) -> list[tuple[str, int]]:
    """The questions and their contexts, in order."""
    return [(question.question_id, question.context_tokens) for question in cell.scores.questions]


def _read(variant: str, path: Path) -> Cell:
    try:
        scores = CellScores.model_validate_json((path / SCORES).read_bytes())
        training = Training.model_validate_json((path / TRAINING).read_bytes())
    except (OSError, ValidationError) as error:
        raise InputError(f"{path} is no whole cell ({error}); remove it and run python -m flows.ablation") from error
    return Cell(variant, int(path.name.removeprefix("seed")), scores, training)
