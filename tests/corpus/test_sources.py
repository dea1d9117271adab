import os
from pathlib import Path

import pytest

from tasks.corpus.sources import entries
from tasks.errors import InputError, ParameterError
from tests.corpus.files import read_all


def files(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"text of {name}")
    return root


def names(source: Path | str) -> list[str]:
    return [entry.name for entry in entries(str(source))]


def test_a_folder_is_listed_in_the_order_of_its_names(tmp_path: Path) -> None:
    files(tmp_path, "b.txt", "a/z.md", "a/b/c.txt", ".hidden/x.txt", "a.txt")
    assert names(tmp_path) == [".hidden/x.txt", "a/b/c.txt", "a/z.md", "a.txt", "b.txt"]


def test_what_is_not_the_projects_own_is_named_once(tmp_path: Path) -> None:
    files(tmp_path, "src/main.py", ".git/config", "web/node_modules/x/index.js", "src/__pycache__/main.pyc")
    left_out = {entry.name: entry.refusal for entry in entries(str(tmp_path)) if entry.refusal}
    assert left_out == {
        ".git": "version control's own files",
        "src/__pycache__": "installed or generated, not written",
        "web/node_modules": "installed or generated, not written",
    }
    reading, kept = read_all(tmp_path)
    assert [file.path for file in kept] == ["src/main.py"]
    assert {skipped.path for skipped in reading.skipped} == set(left_out)


def test_links_pipes_and_odd_names_have_a_reason_or_are_read(tmp_path: Path) -> None:
    files(tmp_path, "a.txt", "folder/b.txt")
    (tmp_path / "broken.txt").symlink_to("absent")
    (tmp_path / "linked").symlink_to("folder")
    os.mkfifo(tmp_path / "pipe.txt")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt")).write_text("odd")
    assert {entry.name: entry.refusal for entry in entries(str(tmp_path))} == {
        "a.txt": "",
        "broken.txt": "cannot be read: No such file or directory",
        "caf\\xe9.txt": "",
        "folder/b.txt": "",
        "linked": "a link to a folder",
        "pipe.txt": "neither file nor folder",
    }
    assert [file.path for file in read_all(tmp_path)[1]] == ["a.txt", "caf\\xe9.txt", "folder/b.txt"]


def test_a_glob_names_files_below_its_first_wildcard(tmp_path: Path) -> None:
    files(tmp_path, "x/a.txt", "x/b.md", "y/a.txt", "y/z/a.txt")
    assert names(tmp_path / "*/a.txt") == ["x/a.txt", "y/a.txt"]
    assert names(tmp_path / "y/**/*.txt") == ["a.txt", "z/a.txt"]
    assert names(tmp_path / "x/[ab].*") == ["a.txt", "b.md"]
    with pytest.raises(InputError, match="matches no file"):
        names(tmp_path / "*.pdf")
    files(tmp_path, "odd[1]/a.txt")
    assert names(tmp_path / "odd[1]") == ["a.txt"]  # a folder of that very name


def test_no_place_in_s3_is_a_parameter_error() -> None:
    with pytest.raises(ParameterError, match="write s3://BUCKET/PREFIX"):
        names("s3://")
