"""Data from the hub: whole and as the official code reads it, or not at all. The hub itself is played."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from tasks.errors import InputError
from tasks.evaluation.benchmarks.hub import HubData, fetch
from tasks.evaluation.benchmarks.registry import ENTRIES, data_of, entry_of

DATA = HubData("owner/name", ("data.zip", "notes.txt"), "0123abc")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., object]], None]:
    """Put something else in the hub's place."""
    return lambda answer: monkeypatch.setattr(huggingface_hub, "snapshot_download", answer)


def test_archives_are_unpacked_and_the_hubs_notes_left_out(tmp_path: Path, hub: Any) -> None:
    asked: list[tuple[object, ...]] = []

    def answer(repository: str, **options: Any) -> None:
        asked.append((repository, options["repo_type"], options["revision"], options["allow_patterns"]))
        (options["local_dir"] / ".cache").mkdir()
        (options["local_dir"] / "notes.txt").write_text("n")
        with zipfile.ZipFile(options["local_dir"] / "data.zip", "w") as archive:
            archive.writestr("data/a.jsonl", "{}")
            archive.writestr("../outside.txt", "no")

    hub(answer)
    fetch(DATA, tmp_path / "sets" / "one")
    assert asked == [("owner/name", "dataset", "0123abc", ["data.zip", "notes.txt"])]
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"sets/one/notes.txt", "sets/one/data/a.jsonl"}


def test_what_broke_off_leaves_nothing_and_says_how_to_go_on(tmp_path: Path, hub: Any) -> None:
    def answer(repository: str, **options: Any) -> None:
        del repository
        (options["local_dir"] / "half.json").write_text("[")
        raise ConnectionError("the line is dead")

    hub(answer)
    place = tmp_path / "one"
    command = (
        rf"hf download --repo-type dataset --local-dir {place} owner/name data.zip notes.txt --revision 0123abc "
        rf"&& unzip -d {place} {place}/data.zip"
    )
    with pytest.raises(InputError, match=rf"gave nothing \(the line is dead\); get the data: {command}"):
        fetch(DATA, place)
    assert list(tmp_path.iterdir()) == []


def test_offline_every_benchmark_says_how_to_get_it(tmp_path: Path) -> None:
    for entry in ENTRIES:
        with pytest.raises(InputError, match=r"does not exist.* get the data: .*" + str(tmp_path)):
            data_of(entry, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_left_alone(tmp_path: Path, hub: Any) -> None:
    hub(lambda *_, **__: pytest.fail("the hub was asked"))
    (tmp_path / "docmath").mkdir()
    assert data_of(entry_of("docmath"), tmp_path) == tmp_path / "docmath"
