"""Progress of a long stage: a bar with the time left in a terminal, a plain line per tenth elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Meter(Protocol):
    """What the work tells about itself."""

    def advance(self, steps: int, label: str) -> None:
        """So many more steps are done."""

    def show(self, label: str) -> None:
        """What is being done now."""


class _Bar:
    def __init__(self, progress: Progress, title: str, total: int) -> None:
        self._progress = progress
        self._title = title
        self._task = progress.add_task(title, total=total)

    def advance(self, steps: int, label: str) -> None:
        self._progress.update(self._task, advance=steps, description=f"{self._title}: {label}")

    def show(self, label: str) -> None:
        self._progress.update(self._task, description=f"{self._title}: {label}")


class _Lines:
    def __init__(self, title: str, total: int) -> None:
        self._title = title
        self._total = total
        self._done = 0

    def advance(self, steps: int, label: str) -> None:
        before = self._done * 10 // self._total
        self._done += steps
        if self._done * 10 // self._total > before:
            print(f"{self._title}: {self._done} of {self._total} ({label})", flush=True)

    def show(self, label: str) -> None:
        """A label alone is not worth a line."""


@contextmanager
def meter(title: str, total: int) -> Iterator[Meter]:
    """Show the progress of `total` steps while the block runs."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(title, total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        yield _Bar(progress, title, total)
