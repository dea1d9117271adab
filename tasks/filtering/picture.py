"""A picture of the questions: alike ones lie near each other, coloured by domain, dropped ones marked.

UMAP of TF-IDF (McInnes et al. 2018), as Figure 7 of QwenLong-L1.5 shows its training data. Distances between far groups
mean nothing. The same questions and seed give the same picture.
"""

import random
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.artifacts import atomic_file
from tasks.filtering.funnel import Fate, Outcome
from tasks.records import Domain

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes

MOST = 5000  # questions drawn; of more a sample
NEIGHBOURS, SPREAD = 50, 0.5  # questions from templates crowd on few points: look wide, push apart
FEWEST = 100  # different questions: among fewer, neighbourhoods say little
DOMAIN_COLOURS = dict(zip(Domain, ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b"), strict=True))


@dataclass(frozen=True)
class Map:
    """Where each text lies (N, 2), and how that was found."""

    positions: "np.ndarray[Any, Any]"
    method: str


def draw_questions(path: Path, fates: Sequence[Fate], seed: int) -> str:
    """Write the picture as PNG and return what it shows."""
    shown = fates if len(fates) <= MOST else random.Random(seed).sample(fates, MOST)
    found = positions([fate.question.question for fate in shown], seed)
    title = f"{len(shown)} of {len(fates)} questions: {found.method}"
    _draw(path, shown, found, title)
    return f"{path}: {title}"


def positions(texts: Sequence[str], seed: int) -> Map:
    """Lay texts out in two dimensions by their words.

    Fewer than `FEWEST` different texts are laid out by their principal components, texts without a word at the origin.
    """
    import numpy as np

    if not any(text.split() for text in texts):
        return Map(np.zeros((len(texts), 2)), "nothing to lay out, the questions have no words")
    from sklearn.feature_extraction.text import TfidfVectorizer

    weights = TfidfVectorizer(analyzer=lambda text: text.casefold().split()).fit_transform(texts)
    different = len(set(texts))
    if different < FEWEST:
        return Map(_principal(weights.toarray()), f"principal components of TF-IDF, {different} are too few for UMAP")
    import umap  # numba compiles for seconds: only here

    mapper = umap.UMAP(n_neighbors=NEIGHBOURS, min_dist=SPREAD, metric="cosine", random_state=seed, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # where its spectral start fails, a random one from the seed does
        return Map(mapper.fit_transform(weights), "UMAP of TF-IDF")


def _principal(rows: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """The first two principal components of each row; zeros where there is no variation left."""
    import numpy as np

    left, scales, _ = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    components = (left * scales)[:, :2]
    return np.pad(components, ((0, 0), (0, 2 - components.shape[1])))


def _draw(path: Path, fates: Sequence[Fate], found: Map, title: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 6.4), layout="constrained")
    axes = figure.subplots()
    for domain, colour in DOMAIN_COLOURS.items():
        _scatter(axes, fates, found, domain, colour)
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_color("#cbd5e1")
    if fates:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)
    with atomic_file(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110, metadata={"Software": None})


def _scatter(axes: "Axes", fates: Sequence[Fate], found: Map, domain: Domain, colour: str) -> None:
    """One domain: kept questions as dots, dropped ones as crosses in the same colour."""
    for kept in (True, False):
        places = [
            place
            for place, fate in enumerate(fates)
            if fate.question.domain is domain and (fate.outcome is Outcome.KEPT) is kept
        ]
        if not places:
            continue
        points = found.positions[places]
        name = f"{domain.replace('_', ' ')}, {'kept' if kept else 'dropped'} ({len(places)})"
        style: dict[str, Any] = {"s": 9, "alpha": 0.55, "linewidths": 0} if kept else {"s": 34, "marker": "x"}
        axes.scatter(points[:, 0], points[:, 1], color=colour, label=name, zorder=2 if kept else 3, **style)
