"""verl's callback: which folder goes where, and what must not be copied. tests/test_s3.py copies for real."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tasks.errors import CheckpointError
from tasks.params import Params

pytestmark = pytest.mark.skipif(find_spec("verl") is None, reason="needs pip install 'posttrain-flows[verl]'")

UPLOAD = "tasks.rl.engines.verl.upload.CheckpointUpload"
Copies = list[tuple[Path, str]]


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> Copies:
    """What would have been copied."""
    from tasks.rl.engines.verl import upload

    calls: Copies = []
    monkeypatch.setattr(upload, "upload_folder", lambda folder, uri: calls.append((folder, uri)))
    return calls


def configuration(params: Params, folder: Path, callback: str | None) -> Any:
    """The parts of verl's configuration that matter here."""
    from omegaconf import OmegaConf

    cluster = params.cluster.model_copy(update={"checkpoint_uri": "s3://bucket/project/"})
    section = {
        "name": "stage2",
        "params": params.model_copy(update={"cluster": cluster}).model_dump_json(),
        "fingerprint": "0123456789abcdef",
        "run_id": "",
        "tracking_uri": "",
    }
    trainer = {
        "checkpoint_callback_class": callback,
        "default_local_dir": str(folder),
        "rollout_data_dir": str(folder / "rollouts"),
    }
    return OmegaConf.create({"trainer": trainer, "recipe": section})


@pytest.fixture
def on_save(params: Params, tmp_path: Path) -> Callable[..., None]:
    """The callback as verl makes it and calls it."""
    from verl.trainer.ppo.checkpoint_callback import build_checkpoint_callback

    callback = build_checkpoint_callback(configuration(params, tmp_path, UPLOAD))

    def save(folder: Path, **context: Any) -> None:
        callback.on_save(trainer=None, global_step=3, checkpoint_dir=str(folder), **context)

    return save


def test_a_resume_point_goes_to_its_stage_and_fingerprint(
    copies: Copies, on_save: Callable[..., None], tmp_path: Path
) -> None:
    folder = tmp_path / "global_step_3"
    on_save(folder, async_save=False, what_verl_may_add=1)
    assert copies == [(folder, "s3://bucket/project/stage2/0123456789ab/global_step_3")]


def test_files_of_other_machines_must_be_there(copies: Copies, on_save: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / "actor").mkdir()
    (tmp_path / "actor/model_world_size_8_rank_0.pt").touch()
    with pytest.raises(CheckpointError, match="1 of 8 processes"):
        on_save(tmp_path)
    assert not copies


def test_a_folder_that_is_being_written_is_not_copied(
    copies: Copies, on_save: Callable[..., None], tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match="still being written"):
        on_save(tmp_path, async_save=True)
    assert not copies


def test_rollouts_of_another_run_do_not_stay_beside_a_new_ones(params: Params, tmp_path: Path) -> None:
    from tasks.rl.engines.verl import launch

    (tmp_path / "rollouts").mkdir()
    (tmp_path / "rollouts/step-00050.parquet").touch()
    launch._find_resume_point(configuration(params, tmp_path, None))
    assert not (tmp_path / "rollouts").exists()


@pytest.mark.parametrize("callback", [None, UPLOAD])
def test_a_stage_looks_for_its_copies_when_it_makes_some(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, callback: str | None
) -> None:
    from tasks.rl.engines.verl import launch

    asked: list[tuple[str, Path]] = []
    monkeypatch.setattr(launch, "restore", lambda uri, resume: asked.append((uri, resume)))
    launch._find_resume_point(configuration(params, tmp_path, callback))
    assert asked == ([] if callback is None else [("s3://bucket/project/stage2/0123456789ab", tmp_path)])
