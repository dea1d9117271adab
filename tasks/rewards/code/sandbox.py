"""Runs a Python program nobody trusts: bubblewrap and resource limits, output read within bounds.

The program sees the system and the interpreter read-only, an empty tmpfs and nothing else: no network, no home, no
environment, no process outside. What it should print never gets inside: output is compared by the caller, so there is
no verdict to forge. One sandbox runs one program on all its cases, each in a fresh process (tasks/rewards/code/
runner.py) after everything the case before left is killed and deleted.

An ordinary user gets a user namespace. Root gets a random unprivileged user id instead, because the kernel never limits
the number of root's processes. Started by `subprocess`, so it works from threads, asynchronous code and Ray workers.
"""

import os
import secrets
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Self

from tasks.errors import PipelineError
from tasks.rewards.code.runner import READY

START_S = 60.0  # to start, on a machine that has other work
LOOK_S = 0.1  # how often a run looks whether it is still wanted
TRIES = 2  # a sandbox that dies once may have been the machine's fault, twice it was the program's
FOLDER_BYTES = 64 * 1024**2  # of /tmp and of /dev/shm
SIGXCPU = -24
_RUNNER = Path(__file__).with_name("runner.py")
_BYTES = 8
_HEADER = 3 * _BYTES
_ERRORS_BYTES = 2000
_NAMESPACES = ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
_REMEDY = (
    "install bubblewrap 0.6 or later (apt-get install bubblewrap) and allow user namespaces: sysctl "
    "kernel.apparmor_restrict_unprivileged_userns=0, kernel.unprivileged_userns_clone=1 and user.max_user_namespaces, "
    "in a container --cap-add SYS_ADMIN and no seccomp or AppArmor profile that forbids them"
)


class SandboxError(PipelineError):
    """Programs cannot be run safely on this machine."""


class Ended(StrEnum):
    """How one run of a program ended. `SANDBOX_FAILED` says nothing about the program, everything else does."""

    FINISHED = "finished"  # with exit status 0
    FAILED = "failed"  # with another exit status, or a signal (negative)
    TIMED_OUT = "timed_out"  # CPU or wall-clock time
    OUT_OF_MEMORY = "out_of_memory"
    OUTPUT_LIMIT = "output_limit"
    SANDBOX_FAILED = "sandbox_failed"


@dataclass(frozen=True)
class Limits:
    """What a program may use in one run. Memory is of each process; with `processes` it bounds their sum."""

    cpu_s: int = 5  # of each process
    wall_s: float = 15.0
    memory: int = 512 * 1024**2  # bytes of address space
    processes: int = 16  # and threads; two are the sandbox's own
    file_bytes: int = 4 * 1024**2  # of each file, standard output included


@dataclass(frozen=True)
class Given:
    """The input of one run: standard input, or an expression to evaluate when the program has ended."""

    stdin: str = ""
    call: str = ""


@dataclass(frozen=True)
class Run:
    """One run: how it ended, its exit status, its whole output and the end of its error output."""

    ended: Ended
    status: int = 0
    output: str = ""
    errors: str = ""


class _DiedError(Exception):
    """The sandbox is gone, or talks nonsense."""


class NotWantedError(Exception):
    """The caller called the run off."""


class Sandbox:
    """The sandbox of one program. It starts with the first run; close it, or use it in a `with`."""

    def __init__(self, program: str, limits: Limits) -> None:
        self._program = program.encode(errors="replace")
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def run(self, given: Given, unwanted: Callable[[], bool] = lambda: False) -> Run:
        """Run the program once.

        Raises:
            NotWantedError: `unwanted` became true; the sandbox is closed and may be used again.
        """
        for _ in range(TRIES):
            try:
                self._start()
            except SandboxError as error:
                return Run(Ended.SANDBOX_FAILED, errors=str(error))
            try:
                return self._ask(given, unwanted)
            except _DiedError:
                self.close()
            except TimeoutError:
                self.close()
                return Run(Ended.TIMED_OUT)
            except NotWantedError:
                self.close()
                raise
        return Run(Ended.FAILED, errors="the program ended the sandbox around it")

    def close(self) -> None:
        """Kill every process inside."""
        if self._process is None:
            return
        process, self._process = self._process, None
        process.kill()  # the kernel kills the namespace with its first process
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()

    def _start(self) -> None:
        if self._process is not None:
            return
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(
                _command(self._limits), stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
            )
            os.set_blocking(_number(self._process.stdin), False)
            end = time.monotonic() + START_S
            if self._read(len(READY), end) != READY:
                raise _DiedError
            self._write(_framed(self._program), end)
        except (OSError, _DiedError) as error:
            reason = self._last_words() or str(error) or "no reason given"
            self.close()
            raise SandboxError(f"bubblewrap started no sandbox ({reason}); {_REMEDY}") from error

    def _last_words(self) -> str:
        if self._process is None or self._process.stderr is None:
            return ""
        self._process.kill()
        return " ".join(self._process.stderr.read(_ERRORS_BYTES).decode(errors="replace").split())

    def _ask(self, given: Given, unwanted: Callable[[], bool]) -> Run:
        end = time.monotonic() + self._limits.wall_s
        self._write(_framed(given.stdin.encode(errors="replace")) + _framed(given.call.encode()), end, unwanted)
        header = self._read(_HEADER, end, unwanted)
        status, output, errors = (
            int.from_bytes(header[start : start + _BYTES], "big", signed=True) for start in range(0, _HEADER, _BYTES)
        )
        if not (0 <= output <= self._limits.file_bytes and 0 <= errors <= _ERRORS_BYTES):
            raise _DiedError
        texts = self._read(output + errors, end, unwanted)
        return self._run(status, texts[:output], texts[output:].decode(errors="replace"))

    def _run(self, status: int, output: bytes, errors: str) -> Run:
        if len(output) == self._limits.file_bytes:
            return Run(Ended.OUTPUT_LIMIT, status, errors=errors)
        ended = Ended.FINISHED if status == 0 else Ended.FAILED
        if status == SIGXCPU:
            ended = Ended.TIMED_OUT
        elif status and errors.rstrip().rpartition("\n")[2].startswith("MemoryError"):
            ended = Ended.OUT_OF_MEMORY
        return Run(ended, status, output.decode(errors="replace"), errors)

    def _write(self, data: bytes, end: float, unwanted: Callable[[], bool] = lambda: False) -> None:
        assert self._process is not None
        file, view = _number(self._process.stdin), memoryview(data)
        while view:
            _wait(file, select.POLLOUT, end, unwanted)
            try:
                view = view[os.write(file, view[:65536]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise _DiedError from error

    def _read(self, count: int, end: float, unwanted: Callable[[], bool] = lambda: False) -> bytes:
        assert self._process is not None
        file, parts = _number(self._process.stdout), []
        while count:
            _wait(file, select.POLLIN, end, unwanted)
            part = os.read(file, min(count, 1 << 20))
            if not part:
                raise _DiedError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


@lru_cache(maxsize=1)
def require_sandbox() -> None:
    """Run a program once, to know before expensive work starts whether programs can be run.

    Raises:
        SandboxError: they cannot; the message says why and what to do.
    """
    with Sandbox("import json; print(json.loads(input()))", Limits()) as sandbox:
        run = sandbox.run(Given('"ready"'))
    if run.ended is not Ended.FINISHED or run.output.strip() != "ready":
        raise SandboxError(run.errors or f"a trial program ended as {run.ended.value} ({run.status}); {_REMEDY}")


def _wait(file: int, event: int, end: float, unwanted: Callable[[], bool]) -> None:
    """Wait until a pipe is ready.

    Raises:
        TimeoutError: it was not by `end`.
    """
    poll = select.poll()  # select() refuses descriptors above 1023
    poll.register(file, event)
    while not poll.poll(1000 * LOOK_S):
        if time.monotonic() > end:
            raise TimeoutError
        if unwanted():
            raise NotWantedError


def _command(limits: Limits) -> list[str]:
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise SandboxError(f"programs are run by bubblewrap, and there is no bwrap on the PATH; {_REMEDY}")
    python, prefix = _interpreter()
    uid = _private_uid() if os.geteuid() == 0 else 0
    rights = ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if uid else ["--unshare-user"]
    numbers = (uid, limits.memory, limits.processes, limits.cpu_s, limits.file_bytes)
    return [
        *(bwrap, *_NAMESPACES, *rights, "--new-session", "--die-with-parent", "--hostname", "sandbox"),
        *_system(),
        *_readable(prefix),
        *("--ro-bind", str(_RUNNER), "/runner.py", "--proc", "/proc", "--dev", "/dev"),
        *_folder("/tmp"),  # noqa: S108
        *_folder("/dev/shm"),  # noqa: S108
        *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp", "--clearenv"),  # noqa: S108
        *("--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/tmp", "--setenv", "LANG", "C.UTF-8"),  # noqa: S108
        *("--setenv", "PYTHONHASHSEED", "0"),  # a set printed in its order gives the same output every time
        *("--", str(python), "-P", "-s", "-S", "/runner.py", *map(str, numbers)),
    ]


def _folder(path: str) -> tuple[str, ...]:
    return ("--perms", "1777", "--size", str(FOLDER_BYTES), "--tmpfs", path)


@lru_cache(maxsize=1)
def _system() -> tuple[str, ...]:
    """/usr, and beside it what distributions link into it."""
    parts = ["--ro-bind", "/usr", "/usr"]
    for path in map(Path, ("/bin", "/lib", "/lib32", "/lib64", "/sbin")):
        if path.is_symlink():
            parts += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            parts += ["--ro-bind", str(path), str(path)]
    return tuple(parts)


def _readable(prefix: Path) -> list[str]:
    """The interpreter at its own path. Its parents, which may be a closed home, are empty and open to all inside."""
    if prefix.is_relative_to("/usr"):
        return []
    parents = [part for path in list(prefix.parents)[-2::-1] for part in ("--perms", "0755", "--dir", str(path))]
    return [*parents, "--ro-bind", str(prefix), str(prefix)]


@lru_cache(maxsize=1)
def _interpreter() -> tuple[Path, Path]:
    """This Python without its virtual environment, and the folder it is installed in."""
    prefix = Path(sys.base_prefix).resolve()
    return prefix / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}", prefix


def _private_uid() -> int:
    """A random user id from the middle of those that exist here: in a container there may be few."""
    first, _, count = map(int, Path("/proc/self/uid_map").read_text().splitlines()[0].split())
    return first + count // 2 + secrets.randbelow(max(1, count // 4))


def _framed(data: bytes) -> bytes:
    return len(data).to_bytes(_BYTES, "big") + data


def _number(stream: object) -> int:
    assert hasattr(stream, "fileno")
    number: int = stream.fileno()
    return number
