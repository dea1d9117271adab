"""The stage command: what it refuses, what it writes, and the memory branch on the same trainer."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from tasks.artifacts import stage_lock, write_items
from tasks.errors import CheckpointError, InputError
from tasks.params import RL_STAGES
from tasks.records import Domain, Finish, Verdict
from tasks.rl.engines.base import Update
from tasks.rl.entropy_control import Gate
from tasks.rl.episodes import Episode, Turn
from tasks.rl.loop import step_seed
from tasks.rl.state import Outcome, measure, with_outcomes
from tasks.rl.train import NAMES, PARENTS, parent_of, read_training_items, train_stage
from tasks.tracking import NullTracker
from tests.rl.tiny import run_stage1, tiny_items, tiny_params, write_world

ROOT = Path(__file__).parents[2]
UPDATE = Update(entropy=0.5, gate=Gate(on=True), kept_share=0.25, gradient_norm=2.0, learning_rate=1e-4, skipped=False)


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_world(tmp_path)
    return tmp_path


def make_episode(group, domain, verdict, *turns, lenient=None):
    reward = {Verdict.CORRECT: 1.0, Verdict.WRONG: 0.0}.get(verdict)
    turns = tuple(Turn((2,), (3,) * n, finish) for n, finish in turns)
    return Episode(group, domain, turns, verdict, reward, lenient)


def test_a_step_is_measured_by_hand():
    done, cut = Finish.FINISHED, Finish.TRUNCATED
    episodes = [
        make_episode(0, Domain.MULTI_HOP, Verdict.CORRECT, (4, done), (2, cut), lenient=1.0),
        make_episode(0, Domain.MULTI_HOP, Verdict.UNSCORED, (3, cut), lenient=0.0),
        make_episode(1, Domain.DIALOGUE_MEMORY, Verdict.WRONG, (7, done), lenient=1.0),
        make_episode(2, Domain.CORPUS_NUMERIC, Verdict.UNSCORED, (4, done)),
    ]
    metrics = measure(3, episodes, UPDATE).flat()
    assert metrics == {
        "reward": 0.5, "reward/multi_hop": 1.0, "reward/dialogue_memory": 0.0, "lenient_score": pytest.approx(2 / 3),
        "entropy": 0.5, "gate": 1.0, "kept_share": 0.25, "response_length": 4.0, "truncated_share": 0.4,
        "gradient_norm": 2.0, "unscored_share": 0.5, "learning_rate": 1e-4, "skipped": 0.0,
    }  # fmt: skip
    outcomes = with_outcomes({"b": Outcome(count=1, total=1.0)}, ["a", "b", "c"], episodes)
    assert outcomes == {"a": Outcome(count=1, total=1.0), "b": Outcome(count=2, total=1.0)}


def test_the_checkpoint_is_whole_and_the_curves_are_logged_step_by_step(world):
    tracker = NullTracker()
    run_stage1(tracker)
    model = AutoModelForCausalLM.from_pretrained("checkpoints/stage1")
    assert sum(p.numel() for p in model.parameters()) > 10_000
    names = {path.name for path in Path("checkpoints/stage1").iterdir()}
    assert {"model.safetensors", "tokenizer.json", "README.md", "lineage.json", "config.json"} <= names
    lineage = json.loads(Path("checkpoints/stage1/lineage.json").read_text())
    assert lineage["stage"] == "rl-stage1" and set(lineage["inputs"]) == {"data", "model"}
    assert [step for step, _ in tracker.steps] == [1, 2, 3, 4, 5]
    expected = {"reward", "reward/multi_hop", "entropy", "gate", "kept_share", "gradient_norm", "seconds"}
    assert expected <= tracker.steps[0][1].keys()
    assert tracker.artifacts == [Path("metrics/rl-stage1.json")]
    assert tracker.datasets == {
        "curated-stage1": Path("data/curated/stage1.parquet"),
        "checkpoint-stage1": Path("checkpoints/stage1"),
    }


def test_the_memory_branch_trains_through_the_same_loop(world):
    (world / "checkpoints").mkdir()
    (world / "checkpoints/stage3").symlink_to(world / "base")
    write_items(world / "data/curated/memory.parquet", tiny_items())
    params = tiny_params(
        "rl.stages.memory={max_input_tokens: 128, max_output_tokens: 6, steps: 2, questions: 8}",
        "memory={chunk_tokens: 8, memory_tokens: 4, plan_tokens: 3, window: 64}",
    )
    tracker = NullTracker()
    with stage_lock("rl-memory") as work:
        train_stage("memory", params, read_training_items("memory"), work, tracker)
    assert [step for step, _ in tracker.steps] == [1, 2]
    assert Path("checkpoints/memory/model.safetensors").is_file()


def test_test_items_never_train(world):
    held_out = tiny_items(2)[0].model_copy(
        update={"question": tiny_items(1)[0].question.model_copy(update={"split": "test"})}
    )
    write_items(world / "data/curated/stage1.parquet", [tiny_items(2)[1], held_out])
    with pytest.raises(InputError, match="1 questions that are not of the training split"):
        read_training_items("stage1")


def test_an_empty_or_missing_question_set_is_refused(world):
    write_items(world / "data/curated/stage1.parquet", [])
    with pytest.raises(InputError, match="holds no questions"):
        read_training_items("stage1")
    with pytest.raises(InputError):
        read_training_items("stage2")


def test_a_missing_model_is_refused_before_anything_is_written(world):
    with pytest.raises((CheckpointError, InputError), match="none"):
        run_stage1(NullTracker(), "base_model=none")
    assert not Path("checkpoints").exists() and not Path("metrics").exists()


def test_a_prompt_over_the_limit_ends_the_stage_with_nothing_written(world):
    with pytest.raises(InputError, match="the stage takes 5"):
        run_stage1(
            NullTracker(),
            "rl.stages.stage1={max_input_tokens: 5, max_output_tokens: 6, steps: 5, questions: 8}",
        )
    assert not Path("checkpoints").exists() and not Path("metrics").exists()


def test_many_unscored_episodes_raise_the_alarm(world, monkeypatch, caplog):
    monkeypatch.setattr("tasks.rl.scoring.verdicts_of", lambda attempts, _: [Verdict.UNSCORED for _ in attempts])
    with caplog.at_level(logging.WARNING):
        run_stage1(NullTracker())
    assert "100 % of the episodes are unscored (alarm above 5 %)" in caplog.text
    assert json.loads(Path("metrics/rl-stage1.json").read_text())["skipped"] == 5


def test_stages_start_from_the_recipes_checkpoints():
    params = tiny_params()
    assert set(NAMES) == set(RL_STAGES)
    assert parent_of("stage1", params) == Path("base")
    assert {name: str(parent_of(name, params)) for name in PARENTS} == {
        "stage2": "checkpoints/stage1", "stage3": "checkpoints/stage2", "memory": "checkpoints/stage3",
        "stage4": "checkpoints/merged",
    }  # fmt: skip


def test_seeds_differ_by_step_stage_and_seed():
    seeds = {step_seed(seed, name, step) for seed in (0, 1) for name in ("a", "b") for step in range(50)}
    assert len(seeds) == 200 and all(0 <= seed < 2**63 for seed in seeds)
    torch.Generator().manual_seed(max(seeds))


def test_the_command_refuses_before_any_heavy_import():
    script = (
        "import sys; from tasks.rl import train; sys.argv = ['train', *sys.argv[1:]]\n"
        "try: train.main()\n"
        "finally: print(sorted({'torch', 'transformers', 'mlflow'} & set(sys.modules)))"
    )
    for arguments, message in (
        (["stage9"], "known: stage1, stage2"),
        (["stage1", "--set", "rl.x=1"], "unknown key 'x'"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2 and message in done.stderr and done.stdout == "[]\n"
