"""Files are read in a process of their own, so that a bad one costs at most a bounded time and memory.

What a library does on a file made to harm it (an endless loop, memory without end, a crash) ends that process; the
file is listed with the reason, and the next one gets a new process.
"""

import multiprocessing
import resource
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Self

from tasks.corpus.formats.base import Extract
from tasks.errors import InputError, PipelineError

SECONDS = 300.0  # for a file
MEMORY_BYTES = 4 * 2**30  # of address space, for the process
STARTUP_SECONDS = 300.0
TOO_MUCH_MEMORY = "needs too much memory to read"
LONGEST_MESSAGE = 200  # characters of a library's own words


@dataclass(frozen=True)
class Refused:
    """Why a file was not read."""

    reason: str


@dataclass(frozen=True)
class Lacking:
    """A library that is not installed: no property of the file, so it ends the run."""

    library: str


class IsolatedReader:
    """Reads files by the ending of their names; a context, since its process must end with it."""

    def __init__(self, seconds: float = SECONDS, memory_bytes: int = MEMORY_BYTES) -> None:
        self._seconds = seconds
        self._memory_bytes = memory_bytes
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def read(self, path: Path, name: str) -> Extract:
        """Read `path` as the format of `name`.

        Raises:
            InputError: it cannot be read, or not within the bounds.
            PipelineError: a library is missing.
        """
        answer = self._ask(path, name)
        if isinstance(answer, Refused):
            raise InputError(answer.reason)
        if isinstance(answer, Lacking):
            raise PipelineError(f"reading {name} needs {answer.library}; run pip install 'posttrain-flows'")
        return answer

    def _ask(self, path: Path, name: str) -> Extract | Refused | Lacking:
        connection = self._connection or self._start()
        try:
            connection.send((path, name))
            if connection.poll(self._seconds):
                answer: Extract | Refused | Lacking = connection.recv()
                return answer
        except (EOFError, ConnectionError):
            return Refused(f"its reader crashed (exit {self._stop()})")
        self._stop()
        return Refused(f"took longer than {self._seconds:g} seconds to read")

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")  # a fork would inherit locks and open sockets
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._memory_bytes), daemon=True)
        process.start()
        theirs.close()
        try:
            if not ours.poll(STARTUP_SECONDS):
                raise EOFError
            ours.recv()
        except EOFError as error:
            raise PipelineError("the process that reads files did not start; the messages above say why") from error
        self._process, self._connection = process, ours
        return ours

    def _stop(self) -> int | None:
        """End the process and return its exit code."""
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if connection is not None:
            connection.close()
        if process is None:
            return None
        process.join(1.0)  # a closed connection ends it
        process.kill()
        process.join()
        return process.exitcode


def _serve(connection: Connection, memory_bytes: int) -> None:
    from tasks.artifacts import die_with_parent

    die_with_parent()
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    connection.send(None)
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            path, name = connection.recv()
            answer = attempt(path, name)
            try:
                connection.send(answer)
            except MemoryError:
                connection.send(Refused(TOO_MUCH_MEMORY))


def attempt(path: Path, name: str) -> Extract | Refused | Lacking:
    """Read a file; whatever a library raises on it is a reason. Only here: elsewhere errors propagate."""
    from tasks.corpus.formats.registry import reader_of

    try:
        return reader_of(name)(path)
    except ImportError as error:
        return Lacking(error.name or str(error))
    except Exception as error:
        return Refused(_reason(error))


def _reason(error: Exception) -> str:
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, MemoryError):
        return TOO_MUCH_MEMORY
    if isinstance(error, RecursionError):
        return "nested too deeply to read"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    return f"broken or unusual file: {type(error).__name__}: {' '.join(str(error).split())[:LONGEST_MESSAGE]}"
