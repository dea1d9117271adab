"""The scripts behind `make real-input`: what they write is fixed, readable where it should be, refused where not."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from infra.real_input.factbook import COUNTRIES, REGION, plain, profiles, write_sample
from infra.real_input.figures import figures
from infra.real_input.office import accounting, organisations, write_folder
from tasks.corpus.readers import SourceFile, read_folder
from tasks.params import load_params
from tests.conftest import CHECKOUT

SCRIPT = CHECKOUT / "infra/real_input/run.sh"


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_office_folder_is_the_same_every_time(tmp_path: Path) -> None:
    for name in "ab":
        write_folder(tmp_path / name)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_the_office_folder_is_read_and_its_bad_files_are_listed(tmp_path: Path) -> None:
    written = write_folder(tmp_path)
    seen: dict[str, str] = {}

    def keep(source: SourceFile) -> str | None:
        original = seen.setdefault(source.text, source.path)
        return None if original == source.path else original

    reading = read_folder(tmp_path, keep)
    assert {skipped.path: skipped.reason.split(":")[0].split(" (")[0] for skipped in reading.skipped} == {
        "archive/broken.docx": "broken archive",
        "archive/memory-dump.txt": "binary data",
        "archive/nothing-yet.txt": "empty",
        "archive/slides.pptx": "not a format that is read",
        "profiles/tamarin-bay-salt-company.md": "duplicate of archive/copy-of-a-profile.md",
    }
    assert len(reading.skipped) + reading.kept == len(written)
    assert set(reading.formats) == {".csv", ".docx", ".html", ".md", ".pdf", ".txt", ".xlsx"}
    assert (dict(reading.encodings)["cp1252"], dict(reading.dialects)) == (1, {"semicolon": 1})


def test_every_organisation_has_another_as_supplier() -> None:
    everyone = organisations()
    assert {one.supplier for one in everyone} == {one.name for one in everyone}
    assert all(one.supplier != one.name for one in everyone)
    assert [accounting(amount) for amount in (1234, -1234, 0)] == ["1,234", "(1,234)", "0"]


def country(name: str | None) -> dict[str, object]:
    short = {"text": name} if name else {}
    return {
        "Introduction": {"Background": {"text": "not chosen"}},
        "Geography": {"Area": {"total": {"text": None}}},
        "Government": {"Country name": {"conventional short form": short}, "Capital": {"name": {"text": "Town"}}},
        "Economy": {"Unemployment rate": {"text": "9% (2014) ++ 8% (2013)", "note": {"text": "not chosen"}}},
    }


def package(folder: Path, names: list[str | None]) -> Path:
    for region in (REGION, "elsewhere"):
        (folder / region).mkdir(parents=True)
    for number, name in enumerate(names):
        (folder / f"{REGION}/{number:02}.json").write_text(json.dumps(country(name)), "utf-8")
    (folder / "elsewhere/00.json").write_text(json.dumps(country("Far")), "utf-8")
    return folder


def test_a_profile_keeps_its_chosen_fields_under_its_countrys_name(tmp_path: Path) -> None:
    names: list[str | None] = [f"Land {number} (an island)" for number in range(COUNTRIES + 6)]
    source = package(tmp_path / "package", [*names, None, "none"])
    first = write_sample(source, tmp_path / "a")
    assert first == write_sample(source, tmp_path / "b")
    assert len(first) == COUNTRIES
    assert json.loads((tmp_path / f"a/{first[0].lower().replace(' ', '-')}.json").read_text("utf-8")) == {
        first[0]: {
            "Government": {"Capital": {"name": "Town"}},
            "Economy": {"Unemployment rate": "9% (2014)"},
        }
    }


def test_too_few_countries_are_refused(tmp_path: Path) -> None:
    source = package(tmp_path / "package", ["Land", None, "none"])
    assert [name for name, _ in profiles(source)] == ["Land"]
    with pytest.raises(SystemExit, match="holds 1 country profiles"):
        write_sample(source, tmp_path / "a")


@pytest.mark.parametrize(
    ("tree", "left"),
    [
        ({"text": "x"}, "x"),
        ({"text": None}, None),
        ({}, None),
        (None, None),
        ({"text": " ++ x"}, "x"),
        ({"text": "x ++ y", "note": {"text": "z"}}, "x"),
    ],
)
def test_factbook_texts_become_plain(tree: object, left: object) -> None:
    assert plain(tree) == left


def test_figures_show_what_finished_and_what_did_not(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics"
    metrics.mkdir()
    rows = [
        {"split": "train", "domain": "multi_hop", "generator": "knowledge_graph", "outcome": "kept", "count": 2},
        {"split": "train", "domain": "multi_hop", "generator": "tables", "outcome": "kept", "count": 1},
        {"split": "test", "domain": "multi_hop", "generator": "tables", "outcome": "near_duplicate", "count": 3},
    ]
    (metrics / "verify.json").write_text(json.dumps({"rows": rows}), "utf-8")
    (metrics / "ingest.json").write_text(json.dumps({"documents": {"train": 4}, "files_read": {}}), "utf-8")
    lines = list(figures(tmp_path))
    assert "ingest, documents: train 4\n" in lines
    assert "ingest, files read: none\n" in lines
    assert "synthesize-tables: did not finish\n" in lines
    assert "| split | domain | kept | near duplicate |" in lines
    assert "| train | multi hop | 3 | 0 |" in lines
    assert "| test | multi hop | 0 | 3 |" in lines


def test_the_command_names_modules_and_files_that_exist() -> None:
    text = SCRIPT.read_text("utf-8")
    subprocess.run(["bash", "-n", SCRIPT], check=True)
    for module in re.findall(r"stage \S+ (tasks(?:\.\w+)+)", text):
        assert (CHECKOUT / f"{module.replace('.', '/')}.py").is_file(), module
    for path in re.findall(r"infra/[\w/]+\.(?:py|yaml)", text):
        assert (CHECKOUT / path).is_file(), path


def test_the_profile_asks_its_base_model_on_a_cpu_and_weighs_what_documents_hold() -> None:
    profile = load_params(CHECKOUT / "infra/profiles/smollm2.yaml")
    assert profile.synthesis.writer.type == profile.execution.sampler == "transformers"
    assert profile.synthesis.writer.model == profile.base_model
    assert profile.rl.domain_weights["dialogue_memory"] == 0.0
    assert profile.synthesis.writer.context_tokens <= 8192
