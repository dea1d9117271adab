"""Pretraining resumes to the same bytes and refuses another seed's state."""

from pathlib import Path

import pytest

from tasks.artifacts import sha256_of
from tasks.base_model import pretrain as module
from tasks.errors import PipelineError


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "SAVE_EVERY", 2)
    monkeypatch.setattr(module, "WORK", tmp_path / "work")


def test_an_interrupted_run_ends_in_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module.pretrain(tmp_path / "part", seed=1, stop_after=3)  # its last checkpoint holds step 2
    module.pretrain(tmp_path / "resumed", seed=1, stop_after=5)
    monkeypatch.setattr(module, "WORK", tmp_path / "fresh")
    module.pretrain(tmp_path / "whole", seed=1, stop_after=5)
    weights = "model.safetensors"
    assert sha256_of(tmp_path / "resumed" / weights) == sha256_of(tmp_path / "whole" / weights)
    assert sha256_of(tmp_path / "part" / weights) != sha256_of(tmp_path / "whole" / weights)


def test_state_of_another_seed_is_refused(tmp_path: Path) -> None:
    module.pretrain(tmp_path / "one", seed=1, stop_after=2)
    with pytest.raises(PipelineError, match="belongs to seed 1, not 2"):
        module.pretrain(tmp_path / "two", seed=2, stop_after=3)


def test_the_learning_rate_warms_up_and_decays() -> None:
    assert module.learning_rate(50) == pytest.approx(module.LEARNING_RATE / 2)
    assert module.learning_rate(1000) == module.LEARNING_RATE
    assert module.learning_rate(module.STEPS) == pytest.approx(0.05 * module.LEARNING_RATE)
