"""Data sets of benchmarks on the Hugging Face hub, at a pinned revision where one is known."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from tasks.artifacts import atomic_folder
from tasks.errors import InputError


@dataclass(frozen=True)
class HubData:
    """The named files of a data set, or all of them. Zip files are unpacked where they lie."""

    repository: str
    files: tuple[str, ...] = ()
    revision: str | None = None

    def command(self, place: Path) -> str:
        """What a user can type to get them."""
        revision = ("--revision", self.revision) if self.revision else ()
        command = ("hf", "download", "--repo-type", "dataset", "--local-dir", str(place), self.repository)
        archives = [name for name in self.files if name.endswith(".zip")]
        unpack = "".join(f" && unzip -d {place} {place / name}" for name in archives)
        return " ".join([*command, *self.files, *revision]) + unpack


def fetch(data: HubData, place: Path) -> None:
    """Bring the files to a folder that is not there yet; it appears whole or not at all.

    Raises:
        InputError: the hub is out of reach, or HF_HUB_OFFLINE forbids it; the message says how to get them.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    print(f"getting {data.repository} from the hub")
    try:
        with atomic_folder(place) as folder:
            snapshot_download(
                data.repository,
                repo_type="dataset",
                revision=data.revision,
                allow_patterns=list(data.files) or None,
                local_dir=folder,
            )
            _unpack(folder)
    except (OSError, HFValidationError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{place} does not exist, and the hub gave nothing ({reason}); get the data: {data.command(place)}"
        ) from error


def _unpack(folder: Path) -> None:
    """Leave what the official code reads: neither archives nor the hub's notes, which would enter the data's hash."""
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    for archive in folder.rglob("*.zip"):
        shutil.unpack_archive(archive, archive.parent)
        archive.unlink()
