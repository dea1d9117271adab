"""The picture of the questions: where points lie with few, equal or no words, and that UMAP really draws."""

from pathlib import Path

import numpy as np
import pytest

from tasks.filtering.funnel import Fate, Outcome
from tasks.filtering.picture import FEWEST, MOST, draw_questions, positions
from tasks.records import Domain
from tests.filtering.builders import question


def fates(texts: list[str]) -> list[Fate]:
    domains, outcomes = list(Domain), (Outcome.KEPT, Outcome.KEPT, Outcome.NEAR_DUPLICATE)
    return [
        Fate(question(f"q{number}", text=text, domain=domains[number % 5]), outcomes[number % 3])
        for number, text in enumerate(texts)
    ]


def test_two_principal_components() -> None:
    """Three texts without a common word are the corners of an equilateral triangle of side √2."""
    found = positions(["red", "green", "blue"], seed=0)
    left = found.positions
    sides = [float(np.linalg.norm(left[a] - left[b])) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert sides == pytest.approx([2**0.5] * 3)
    assert found.method == "principal components of TF-IDF, 3 are too few for UMAP"


@pytest.mark.parametrize("texts", [[], ["one"], ["same words"] * 5, ["", " "], ["", "word"], ["a", "b"]], ids=repr)
def test_few_points(texts: list[str], tmp_path: Path) -> None:
    found = positions(texts, seed=0)
    assert found.positions.shape == (len(texts), 2)
    assert np.isfinite(found.positions).all()
    draw_questions(tmp_path / "few.png", fates(texts), seed=0)
    assert (tmp_path / "few.png").read_bytes().startswith(b"\x89PNG")


def test_without_words_it_says_so() -> None:
    assert "no words" in positions(["", " "], seed=0).method


def test_umap_and_a_sample_of_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one call of UMAP; numba compiles for some seconds."""
    monkeypatch.setattr("tasks.filtering.picture.MOST", FEWEST)
    texts = [f"how many w{number % 50} and v{number // 50} are there" for number in range(FEWEST + 5)]
    remark = draw_questions(tmp_path / "many.png", fates(texts), seed=0)
    assert remark.endswith(f"{FEWEST} of {FEWEST + 5} questions: UMAP of TF-IDF")
    assert MOST > FEWEST
