"""Progress of a long stage: a bar with the time left in a terminal, plain lines elsewhere.

A line for each tenth, or, where nobody knows how much there is to do, for every hundred steps.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LINE_EVERY = 100  # steps, where their number is unknown


class Meter(Protocol):
    """What the work tells about itself."""

    def advance(self, steps: int, label: str) -> None:
        """So many more steps are done."""

    def show(self, label: str) -> None:
        """What is being done now."""


class _Bar:
    def __init__(self, progress: Progress, title: str, total: int | None) -> None:
        self._progress = progress
        self._title = title
        self._task = progress.add_task(title, total=total)

    def advance(self, steps: int, label: str) -> None:
        self._progress.update(self._task, advance=steps, description=f"{self._title}: {label}")

    def show(self, label: str) -> None:
        self._progress.update(self._task, description=f"{self._title}: {label}")


class _Lines:
    def __init__(self, title: str, total: int | None) -> None:
        self._title = title
        self._of = "" if total is None else f" of {total}"
        self._every = LINE_EVERY if total is None else total / 10
        self._done = 0

    def advance(self, steps: int, label: str) -> None:
        before = self._done // self._every
        self._done += steps
        if self._done // self._every > before:
            print(f"{self._title}: {self._done}{self._of} ({label})", flush=True)

    def show(self, label: str) -> None:
        """A label alone is not worth a line."""


@contextmanager
def meter(title: str, total: int | None) -> Iterator[Meter]:
    """Show the progress of `total` steps, or of an unknown number, while the block runs."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(title, total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        yield _Bar(progress, title, total)
