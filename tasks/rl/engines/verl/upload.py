"""verl's checkpoint callback: each resume point is copied to S3 before training goes on."""

import logging
from pathlib import Path
from typing import Any

from verl.trainer.ppo.checkpoint_callback import CheckpointCallback

from tasks.errors import CheckpointError
from tasks.rl.engines.verl.recipe import Recipe
from tasks.rl.engines.verl.remote import check_ranks, stage_uri
from tasks.s3 import upload_folder

logger = logging.getLogger(__name__)


class CheckpointUpload(CheckpointCallback):  # type: ignore[misc, unused-ignore]
    """Chosen by `trainer.checkpoint_callback_class`. An error ends the training: it must not go on unsaved."""

    def on_save(
        self, trainer: Any, global_step: int, checkpoint_dir: str, async_save: bool = False, **context: Any
    ) -> None:
        """Called on the trainer's process once the resume point is on disk.

        Raises:
            CheckpointError: the folder is incomplete or still being written.
            PipelineError: S3 refused or could not be reached.
        """
        del trainer, context
        recipe = Recipe.of(self.config)
        folder, uri = Path(checkpoint_dir), stage_uri(recipe.params, recipe.name, recipe.fingerprint)
        if async_save:
            raise CheckpointError(f"{folder} is still being written; set actor.checkpoint.async_save to false")
        check_ranks(folder)
        upload_folder(folder, f"{uri}/{folder.name}")
        logger.warning("step %d is copied to %s", global_step, uri)
