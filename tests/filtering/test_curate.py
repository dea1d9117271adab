"""Curation as a stage, with a model that answers by rule."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tasks.artifacts import read_items, write_documents, write_items
from tasks.errors import InputError
from tasks.filtering import curate
from tasks.generation.local import LocalGenerator
from tasks.params import Params, load_params
from tasks.records import Document, Item
from tasks.tracking import NullTracker
from tests.filtering.builders import RuleGenerator, WordTokenizer, document, item, question

OVERRIDES = (
    "rl.domain_weights={reading_comprehension: 1.0}",
    "rl.stages.stage2.questions=10",
    "rl.stages.stage4.questions=30",
    "rl.stages.memory.questions=4",
    "rl.stages.memory.max_input_tokens=200",
    "memory.chunk_tokens=40",
)


@contextmanager
def _no_tracking(name: str, params: Params) -> Iterator[NullTracker]:
    yield NullTracker()


@pytest.fixture
def params(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Params:
    monkeypatch.setattr(curate, "stage_run", _no_tracking)
    monkeypatch.setattr(curate, "check_checkpoint", lambda folder: None)
    monkeypatch.setattr(curate, "ChatTokenizer", Tokenizer)
    return load_params(overrides=OVERRIDES)


class Tokenizer(WordTokenizer):
    """What the memory agent needs besides."""

    def count(self, text: str) -> int:
        return len(text.split())

    def encode(self, text: str) -> list[int]:
        return [0] * self.count(text)

    def encode_reply(self, text: str) -> list[int]:
        return self.encode(text)


def answers(prompt: str, sample: int) -> str:
    """Easy questions always, hard ones never, the rest in every second sample."""
    right = "Easy" in prompt or ("Hard" not in prompt and sample % 2 == 0)
    return "The answer is Paris." if right else "The answer is Oslo."


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that models were loaded from."""
    folders: list[Path] = []

    def load(folder: Path) -> RuleGenerator:
        folders.append(folder)
        return RuleGenerator(answers)

    monkeypatch.setattr(LocalGenerator, "load", load)
    return folders


def pool(kind: str, number: int, tokens: int) -> list[Item]:
    return [
        item(question(f"{kind}-{tokens}-{index}", text=f"{kind} question {index}?"), tokens=tokens)
        for index in range(number)
    ]


def curated(name: str) -> list[Item]:
    return read_items(curate.CURATED / f"{name}.parquet")


class TestFullContext:
    def test_stage2_takes_its_own_length_and_hard_earlier_ones(self, params: Params, loaded: list[Path]) -> None:
        items = pool("Some", 9, 200) + pool("Easy", 5, 200)
        items += pool("Hard", 5, 100) + pool("Easy", 5, 100) + pool("Some", 5, 400)
        write_items(curate.BALANCED, items)
        curate.run("stage2", params)
        chosen = Counter((one.question.id.split("-")[0], one.input_tokens) for one in curated("stage2"))
        assert chosen == {("Some", 200): 7, ("Hard", 100): 3}
        assert {one.pass_rate for one in curated("stage2")} == {0.5, 0.0}
        assert loaded == [Path("checkpoints/stage1")]
        metrics = json.loads(Path("metrics/curate-stage2.json").read_text())
        assert (metrics["fresh"], metrics["earlier"], metrics["asked"], metrics["chosen"]) == (14, 10, 10, 10)
        assert [(row["reason"], row["count"], row["mean_reward"]) for row in metrics["rows"]] == [
            ("informative", 7, 0.5),
            ("retrospective", 3, 0.0),
        ]

    def test_stage1_starts_from_the_base_model(self, params: Params, loaded: list[Path]) -> None:
        write_items(curate.BALANCED, pool("Some", 3, 100) + pool("Some", 3, 200))
        curate.run("stage1", params)
        assert loaded == [params.base_model]
        assert {one.input_tokens for one in curated("stage1")} == {100}

    def test_stage4_takes_all_lengths_from_the_merged_model(self, params: Params, loaded: list[Path]) -> None:
        write_items(curate.BALANCED, pool("Some", 3, 100) + pool("Some", 3, 200) + pool("Some", 3, 512))
        curate.run("stage4", params)
        assert loaded == [Path("checkpoints/merged")]
        assert Counter(one.input_tokens for one in curated("stage4")) == {100: 3, 200: 3, 512: 3}

    def test_same_seed_same_bytes(self, params: Params, loaded: list[Path]) -> None:
        write_items(curate.BALANCED, pool("Some", 30, 200))
        curate.run("stage2", params)
        first = (curate.CURATED / "stage2.parquet").read_bytes()
        curate.run("stage2", params)
        assert (curate.CURATED / "stage2.parquet").read_bytes() == first

    def test_a_domain_without_items(self, params: Params, loaded: list[Path]) -> None:
        write_items(curate.BALANCED, pool("Some", 3, 400))
        with pytest.raises(InputError, match="stage2: domain reading_comprehension has no item among 0"):
            curate.run("stage2", params)
        assert not curate.CURATED.exists()
        assert loaded == []  # before anything is asked


class TestMemory:
    def documents(self) -> list[Document]:
        train = [document(f"train{number}", f"Nothing of note in town {number} today.") for number in range(60)]
        test = [document(f"test{number}", f"Other news of city {number}.", split="test") for number in range(60)]
        return [document("d", "The capital of France is Paris."), *train, *test]

    def test_contexts_grow_beyond_the_window(self, params: Params, loaded: list[Path]) -> None:
        write_documents(curate.DOCUMENTS, self.documents())
        write_items(curate.BALANCED, pool("Some", 20, 100))
        curate.run("memory", params)
        chosen = curated("memory")
        assert (len(chosen), loaded) == (4, [Path("checkpoints/stage3")])
        for one in chosen:
            assert 150 < one.input_tokens <= one.length_bucket == 200
            assert "d" in one.document_ids
            assert not any(name.startswith("test") for name in one.document_ids)
        assert json.loads(Path("metrics/curate-memory.json").read_text())["fresh"] == 6  # 1.5 · 4 candidates
