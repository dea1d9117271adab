"""DVC's locks: reading its complaints, repairing the file that a killed DVC leaves unreadable."""

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import psutil

RWLOCK = Path(".dvc/tmp/rwlock")


class LockTrouble(StrEnum):
    """What keeps a DVC command from starting."""

    NONE = "none"
    BUSY = "busy"
    BROKEN = "broken"


def lock_trouble(folder: Path, lines: Sequence[str]) -> LockTrouble:
    """Say why a DVC command failed: an unreadable lock file, a lock held elsewhere, or no lock at all.

    Of the last lines only DVC's own errors count, not what a stage prints.
    """
    if not is_readable(folder / RWLOCK):
        return LockTrouble.BROKEN
    errors = [line for line in lines if line.startswith("ERROR:")]
    if any("is busy, it is being blocked by" in line or "Unable to acquire lock" in line for line in errors):
        return LockTrouble.BUSY
    return LockTrouble.NONE


def is_readable(path: Path) -> bool:
    """Whether a read-write lock file is absent or whole: JSON of paths under "read" and "write"."""
    try:
        tree = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return True
    except ValueError:
        return False
    return isinstance(tree, dict) and all(
        side in ("read", "write") and isinstance(paths, dict) for side, paths in tree.items()
    )


def repair_lock(folder: Path) -> str:
    """Remove the unreadable read-write lock, to be called while no DVC command is alive; say what was done.

    The file lists which paths running DVC commands read and write. Empty or torn, it blocks every command for
    ever; without any running command it lists nothing of worth.
    """
    path = folder / RWLOCK
    path.unlink(missing_ok=True)
    return f"{path} was unreadable, left by a killed DVC command; no DVC runs here, so it was removed"


def dvc_processes(folder: Path) -> list[int]:
    """Process ids of live DVC commands that work in `folder`, or whose folder cannot be read."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and _is_dvc(process.info["cmdline"] or [])
        and _may_work_in(process, folder)
    ]


def _is_dvc(command: Sequence[str]) -> bool:
    return any(Path(word).name == "dvc" for word in command[:4])


def _may_work_in(process: psutil.Process, folder: Path) -> bool:
    try:
        place = Path(process.cwd())
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
    return place.is_relative_to(folder.resolve())
