import json
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.artifacts import sha256_of, write_documents, write_items
from tasks.errors import CheckpointError, InputError
from tasks.lineage import main, read_lineage, resolve, write_lineage
from tasks.params import Params
from tasks.records import AnswerKind, Document, Domain, Item, Question
from tests.conftest import CHECKOUT


def item(number: int, *evidence: str) -> Item:
    question = Question(
        id=f"q{number}",
        domain=Domain.READING_COMPREHENSION,
        question="Where?",
        gold=("here",),
        answer_kind=AnswerKind.TEXT,
        document_ids=evidence,
        split="train",
        generator="tables" if number % 2 else "knowledge_graph",
        difficulty=1,
        provenance={},
        seed=0,
    )
    return Item(question=question, documents=("Here.",), document_ids=("d9",), length_bucket=128, input_tokens=20)


def checkpoint(params: Params, name: str, items: Path | None, *parents: Path) -> Path:
    folder = Path("checkpoints") / name
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_text(name)
    inputs = {"questions": items} if items else {}
    hashes = {key: sha256_of(path) for key, path in inputs.items()}
    write_lineage(
        folder,
        stage=name,
        inputs=inputs,
        input_hashes=hashes,
        params=params,
        parents=parents,
        run_id=f"run-{name}",
    )
    return folder


@pytest.fixture
def chain(scratch: Path, params: Params) -> Path:
    """base → stage1 → stage2, memory → merged: the shape of the recipe."""
    write_documents(
        Path("data/corpus/documents.parquet"),
        [
            Document(
                id=name,
                title=f"Title {name}",
                text="t",
                kind="text",
                cluster="c",
                split="train",
                source="facts",
            )
            for name in ("d1", "d2", "d3")
        ],
    )
    for name, items in {"stage1": [item(1, "d1"), item(2, "d1", "d2")], "memory": [item(3, "gone")]}.items():
        write_items(Path(f"data/curated/{name}.parquet"), items)
    base = Path("models/tiny-base")
    base.mkdir(parents=True)
    (base / "model.safetensors").write_text("base")
    stage1 = checkpoint(params, "stage1", Path("data/curated/stage1.parquet"), base)
    memory = checkpoint(params, "memory", Path("data/curated/memory.parquet"), stage1)
    return checkpoint(params, "merged", None, stage1, memory)


def shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main([str(folder)])
    return code, capsys.readouterr().out


def test_a_checkpoint_resolves_to_its_documents(chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = shown(chain, capsys)
    assert code == 0
    for part in (
        "made by merged, commit unknown, run run-merged",
        "from checkpoints/stage1",
        "from checkpoints/memory",
        "from models/tiny-base",
        "as above",
        "questions: data/curated/stage1.parquet",
        "2 questions (1 knowledge_graph, 1 tables), 2 evidence documents",
        "documents: 3",
        "d1: Title d1, train, facts (2 questions)",
        "d2: Title d2, train, facts (1 questions)",
        "gone: not in data/corpus/documents.parquet (1 questions)",
    ):
        assert part in text
    assert "d3: Title" not in text
    assert "d9" not in text  # a distractor is no source
    assert text.count("made by stage1") == 1
    assert text.count("unchanged") == 6


def test_what_changed_or_vanished_is_told(chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_items(Path("data/curated/stage1.parquet"), [item(1, "d1")])
    Path("data/curated/memory.parquet").unlink()
    code, text = shown(chain, capsys)
    assert code == 1
    assert text.count("changed since") == 1
    assert text.count("no longer here") == 1
    assert resolve(chain)[1] == [Path("data/curated/stage1.parquet")]


def test_hashes_are_those_from_before_the_run(scratch: Path, params: Params) -> None:
    parent = Path("models/base")
    parent.mkdir(parents=True)
    (parent / "w").write_text("before")
    before = sha256_of(parent)
    (parent / "w").write_text("after")
    folder = scratch / "checkpoints/x"
    folder.mkdir(parents=True)
    write_lineage(
        folder,
        stage="x",
        inputs={"start": scratch / parent},
        input_hashes={"start": before},
        params=params,
        parents=[parent],
        run_id=None,
    )
    lineage = read_lineage(folder)
    assert lineage is not None
    assert lineage.inputs["start"].path == parent  # written relative to the checkout
    assert lineage.inputs["start"].sha256 == lineage.parents[0].sha256 == before
    assert lineage.params["rl"]["group_size"] == 8
    assert "tracking" not in lineage.params


def test_a_missing_hash_is_refused(scratch: Path, params: Params) -> None:
    with pytest.raises(InputError, match="no hash was taken of the inputs start of x"):
        write_lineage(
            scratch,
            stage="x",
            inputs={"start": scratch},
            input_hashes={},
            params=params,
            parents=[],
            run_id=None,
        )
    assert not (scratch / "lineage.json").exists()


def test_the_commit_is_recorded(scratch: Path, params: Params) -> None:
    git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "-q"], check=True)
    folder = checkpoint(params, "early", None)
    assert json.loads((folder / "lineage.json").read_text())["git_commit"] is None
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    folder = checkpoint(params, "late", None)
    assert json.loads((folder / "lineage.json").read_text())["git_commit"] == head


@pytest.mark.parametrize("content", [b"", b"{", b'{"stage": "x"}', b"[]", b"\xff"])
def test_a_damaged_lineage_is_named(scratch: Path, content: bytes) -> None:
    (scratch / "lineage.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"lineage\.json is damaged"):
        read_lineage(scratch)


def test_a_base_model_has_no_lineage(scratch: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_lineage(scratch) is None
    assert shown(scratch, capsys)[0] == 0


def test_a_missing_checkpoint_is_one_line(scratch: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["checkpoints/stage9"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("CheckpointError: checkpoints/stage9 is no checkpoint folder; name one")


def test_the_command_loads_no_heavy_library() -> None:
    code = (
        "import sys\nfrom tasks.lineage import main\n"
        "try: main(['--help'])\n"
        "finally: print(sorted({'torch', 'mlflow', 'transformers'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines()[-1] == "[]"
