"""Balance as a stage, with a model that answers by dice, and its folder as `datasets` sees it."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tasks.artifacts import read_items, sha256_of, write_documents, write_items
from tasks.errors import InputError
from tasks.filtering import balance, examination
from tasks.filtering.examination import robustness_exam
from tasks.filtering.trials import Examiner
from tasks.generation import models
from tasks.params import Params, load_params
from tasks.records import Domain, Item, Split, Trials
from tasks.tracking import NullTracker
from tests.filtering.builders import DiceGenerator, WordTokenizer, document, item, question


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> DiceGenerator:
    dice = DiceGenerator()
    monkeypatch.setattr(models, "open_generator", lambda folder, execution, threads: dice)
    monkeypatch.setattr(balance, "check_checkpoint", lambda folder: None)
    monkeypatch.setattr(examination, "ChatTokenizer", WordTokenizer)
    return dice


@pytest.fixture
def tracker(monkeypatch: pytest.MonkeyPatch) -> NullTracker:
    kept = NullTracker()

    @contextmanager
    def stage_run(name: str, params: Params) -> Iterator[NullTracker]:
        yield kept

    monkeypatch.setattr(balance, "stage_run", stage_run)
    return kept


@pytest.fixture
def params(scratch: Path, tracker: NullTracker) -> Params:
    return load_params()


def stored(name: str, split: Split = "train", drawn: int = 0, domain: Domain = Domain.MULTI_HOP) -> Item:
    asked = item(question(name, text=f"Where is {name}?", split=split, domain=domain))
    return asked.model_copy(update={"trials": Trials(scored=drawn, drawn=drawn), "checks": ("grounding",)})


def store(train: list[Item], test: int = 3, development: int = 0) -> None:
    write_documents(balance.DOCUMENTS, [document("d", "The capital of France is Paris.")])
    write_items(balance.VERIFIED / "train.parquet", train)
    write_items(balance.VERIFIED / "test.parquet", [stored(f"t{number}", "test") for number in range(test)])
    held = [stored(f"d{number}", "development") for number in range(development)]
    write_items(balance.VERIFIED / "development.parquet", held)


def card() -> tuple[dict[str, object], str]:
    _, front, text = (balance.BALANCED / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(front), text


def test_answers_are_completed_from_where_they_stopped(params: Params, generator: DiceGenerator) -> None:
    """Two of eight were drawn before: six are drawn now, the same six as in a full draw."""
    full = Examiner(DiceGenerator(), WordTokenizer(), lambda _: None)  # type: ignore[arg-type]
    fresh = [stored(f"place {number}") for number in range(20)]
    whole = full.examine([robustness_exam(one, params, lambda trials: 8 - trials.drawn) for one in fresh])
    first = full.examine([robustness_exam(one, params, lambda trials: 2 - trials.drawn) for one in fresh])
    store([one.model_copy(update={"trials": before}) for one, before in zip(fresh, first, strict=True)])
    measured = balance.measure(params)
    assert [one.trials for one in measured] == whole
    assert generator.drawn == 20 * 6


def test_equal_counts_with_rates_of_all_answers(params: Params, generator: DiceGenerator, tracker: NullTracker) -> None:
    store([stored(f"place {number}") for number in range(80)])
    balance.run(params)
    kept = read_items(balance.BALANCED / "train.parquet")
    metrics = json.loads(balance.METRICS.read_text())
    before, after = metrics["before"]["multi_hop"], metrics["after"]["multi_hop"]
    level = -(-80 // sum(map(bool, before)))
    assert after == [min(count, level) for count in before]
    assert sum(before) == 80 > sum(after) == len(kept)
    assert metrics["generators"] == {"knowledge_graph": len(kept)}
    assert {one.trials.drawn for one in kept} == {8}
    assert all(one.pass_rate == one.trials.correct / 8 for one in kept)
    assert Counter(min(3, int(4 * (one.pass_rate or 0))) for one in kept) == Counter(
        {level: count for level, count in enumerate(after) if count}
    )
    assert tracker.datasets == {"verified": balance.VERIFIED}
    assert tracker.artifacts == [balance.METRICS, balance.BALANCED / "README.md"]


def test_held_out_splits_lie_beside_as_they_were(params: Params, generator: DiceGenerator) -> None:
    store([stored("a")], test=3, development=2)
    balance.run(params)
    for split in ("development", "test"):
        name = f"{split}.parquet"
        assert sha256_of(balance.BALANCED / name) == sha256_of(balance.VERIFIED / name)
    assert read_items(balance.BALANCED / "train.parquet")[0].question.id == "a"


def test_the_card_says_what_is_there(params: Params, generator: DiceGenerator) -> None:
    store([stored("a"), stored("b", domain=Domain.CORPUS_NUMERIC)], test=3)
    balance.run(params)
    front, text = card()
    assert front["size_categories"] == ["n<1K"]
    assert front["configs"] == [
        {
            "config_name": "default",
            "data_files": [
                {"split": "train", "path": "train.parquet"},
                {"split": "test", "path": "test.parquet"},
            ],
        }
    ]
    assert "| split | domain | ≤ 128 tokens | items |" in text
    assert "| train | multi_hop | 1 | 1 |" in text
    assert "| train | all | 2 | 2 |" in text
    assert "| test | all | 3 | 3 |" in text
    assert "* test: 1 documents" in text  # the source's name
    assert sha256_of(balance.BALANCED / "test.parquet") in text
    assert "* train: grounding" in text


def test_datasets_opens_the_folder(
    params: Params, generator: DiceGenerator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Offline, with its splits; an empty split is not announced, since `datasets` would refuse the whole folder."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    store([stored("a"), stored("b")], test=3, development=0)
    balance.run(params)
    loaded = datasets.load_dataset(str(balance.BALANCED), cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in loaded.items()} == {"train": 2, "test": 3}
    row = loaded["train"][0]
    assert row["prompt"][0]["role"] == "user"
    assert row["extra_info"]["trials"]["drawn"] == 8
    assert row["reward_model"] == {"style": "rule", "ground_truth": "Paris"}


def test_without_verified_items(params: Params, generator: DiceGenerator) -> None:
    with pytest.raises(InputError, match="does not exist; run the stage that makes it"):
        balance.run(params)
