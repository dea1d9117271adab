import os
import signal
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from tasks.corpus import isolation
from tasks.corpus.formats import registry
from tasks.corpus.isolation import IsolatedReader, Lacking, Refused, attempt
from tasks.errors import InputError, PipelineError
from tests.corpus.files import pdf_bytes


def test_files_are_read_in_another_process_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("One")
    (tmp_path / "b").write_bytes(pdf_bytes(["Two"]))
    with IsolatedReader() as reader:
        assert reader.read(tmp_path / "a", "a.txt").parts[0].blocks == ("One",)
        first = reader._process
        assert first is not None and first.pid != os.getpid()
        with pytest.raises(InputError, match="broken or unusual file"):
            reader.read(tmp_path / "a", "a.pdf")
        assert reader.read(tmp_path / "b", "b.pdf").parts[0].blocks == ("Two",)
        assert reader._process is first
    assert not first.is_alive()


def test_a_file_without_end_costs_its_time_and_no_more(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "endless")  # reading it waits for a writer that never comes
    (tmp_path / "a").write_text("One")
    with IsolatedReader(seconds=1.0) as reader:
        with pytest.raises(InputError, match="took longer than 1 seconds"):
            reader.read(tmp_path / "endless", "endless.txt")
        reader._seconds = isolation.SECONDS
        assert reader.read(tmp_path / "a", "a.txt").parts[0].blocks == ("One",)


def test_a_crash_of_the_reader_is_a_reason(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "endless")
    (tmp_path / "a").write_text("One")
    with IsolatedReader() as reader:
        reader.read(tmp_path / "a", "a.txt")
        assert reader._process is not None and reader._process.pid is not None
        os.kill(reader._process.pid, signal.SIGSEGV)
        with pytest.raises(InputError, match=r"its reader crashed \(exit -11\)"):
            reader.read(tmp_path / "endless", "endless.txt")
        assert reader.read(tmp_path / "a", "a.txt").parts[0].blocks == ("One",)


def test_memory_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "big.json").write_text("[" + "[]," * 8_000_000 + "[]]")
    (tmp_path / "a").write_text("One")
    with IsolatedReader(memory_bytes=600 * 2**20) as reader:
        with pytest.raises(InputError, match=r"needs too much memory|crashed"):
            reader.read(tmp_path / "big.json", "big.json")
        assert reader.read(tmp_path / "a", "a.txt").parts[0].blocks == ("One",)


def test_every_failure_of_a_library_is_a_reason_but_its_absence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(error: Exception) -> None:
        def read(path: Path) -> None:
            raise error

        monkeypatch.setitem(registry.READERS, ".x", read)  # type: ignore[arg-type]

    for error, reason in (
        (InputError("why"), "why"),
        (MemoryError(), "needs too much memory to read"),
        (RecursionError(), "nested too deeply to read"),
        (PermissionError(13, "Permission denied"), "cannot be read: Permission denied"),
        (KeyError("x\ny"), "broken or unusual file: KeyError: 'x\\ny'"),
    ):
        failing(error)
        assert attempt(tmp_path, "a.x") == Refused(reason)
    failing(ModuleNotFoundError(name="pypdf"))
    assert attempt(tmp_path, "a.x") == Lacking("pypdf")
    reader = IsolatedReader()
    monkeypatch.setattr(reader, "_ask", attempt)
    with pytest.raises(PipelineError, match=r"reading a\.x needs pypdf; run pip install"):
        reader.read(tmp_path, "a.x")


def test_the_process_ends_with_an_error_in_the_run(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("One")
    reader = IsolatedReader()

    def interrupted() -> None:
        with reader:
            reader.read(tmp_path / "a", "a.txt")
            processes.append(reader._process)
            raise KeyboardInterrupt

    processes: list[BaseProcess | None] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert processes[0] is not None and not processes[0].is_alive()
