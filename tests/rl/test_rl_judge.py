"""A stage whose judge dies in its middle and comes back: unscored and masked, counted, alarmed, and on it goes."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path

import pytest

from tasks.artifacts import stage_lock, write_items
from tasks.errors import UntrustedJudgeError
from tasks.generation.base import Sampling
from tasks.generation.scripted import ScriptedChat, ScriptedGenerator
from tasks.records import Item, Verdict
from tasks.rewards.judge import Judge
from tasks.rl.judge_counts import StepCounts
from tasks.rl.rollout import roll_out
from tasks.rl.state import fingerprint_of
from tasks.rl.train import data_of, read_training_items, train_stage
from tasks.tracking import NullTracker
from tests.rewards.judge_server import Server, serving, settings
from tests.rewards.judges import approving
from tests.rl.tiny import guessing_model, tiny_items, tiny_params, tiny_tokenizer


@dataclass
class Watching(NullTracker):
    """Fails the server after step `dies`, and mends it after step `back`."""

    server: Server | None = None
    dies: int = 0
    back: int = 0

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        super().log_metrics(metrics, step)
        if "reward" in metrics or "entropy" in metrics:
            assert self.server
            self.server.healthy = 0 if self.dies <= step < self.back else 10**9

    def of(self, name: str) -> list[float]:
        return [metrics[name] for _, metrics in self.steps if name in metrics]


def different_items(count: int) -> list[Item]:
    """No two questions are the same to the judge."""
    return [
        item.model_copy(update={"question": item.question.model_copy(update={"question": f"what is red {number} ?"})})
        for number, item in enumerate(tiny_items(count))
    ]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    tokenizer = tiny_tokenizer()
    guessing_model(tokenizer, "The answer is {}").save_pretrained("base")
    tokenizer.save(Path("base"))
    write_items(data_of("stage1"), different_items(20))
    return tmp_path


def run(tracker: Watching) -> None:
    assert tracker.server
    params = tiny_params().model_copy(update={"judge": settings(tracker.server.server_port, concurrency=4)})
    with stage_lock("rl-stage1") as work:
        train_stage("stage1", params, read_training_items("stage1"), work, tracker)


def test_an_outage_in_the_middle_of_a_stage(world: Path, caplog: pytest.LogCaptureFixture) -> None:
    with serving() as server, caplog.at_level(logging.WARNING):
        tracker = Watching(server=server, dies=2, back=4)
        run(tracker)
    unscored = tracker.of("unscored_share")
    assert [share > 0 for share in unscored] == [False, False, True, True, False]
    assert tracker.of("judge/unscored") == [16 * share for share in unscored]
    assert all(asked > 0 for asked in tracker.of("judge/asked"))
    right = [reward * 16 * (1 - share) for reward, share in zip(tracker.of("reward"), unscored, strict=True)]
    assert right == pytest.approx([round(number) for number in right])  # a mean over the scored ones: no 0 for the rest
    lenient = [score * 16 for score in tracker.of("lenient_score")]  # of all episodes: no judge has a part in it
    assert lenient == [round(number) for number in lenient] and lenient[2] > 0
    said = [record.getMessage() for record in caplog.records]
    assert any(message.startswith("step 3:") and "unscored (alarm above 5 %)" in message for message in said)
    assert not any(message.startswith(("step 2:", "step 5:")) for message in said)
    assert any("the judge left" in message and "503" in message for message in said)
    steps = json.loads((world / "metrics/rl-stage1.json").read_text("utf-8"))["steps"]
    assert [step["unscored_share"] for step in steps] == unscored


def test_a_judge_that_is_out_of_reach_at_the_start_ends_the_stage(world: Path) -> None:
    with serving() as server:
        server.healthy = 0
        with pytest.raises(UntrustedJudgeError, match="check that its server answers"):
            run(Watching(server=server))
    assert not (world / "checkpoints").exists()


def test_the_rewards_are_the_larger_of_rule_and_judge_and_all_are_asked_together() -> None:
    tokenizer, items = tiny_tokenizer(), tiny_items(2)  # gold: red, green
    replies = ["The answer is red.", "The answer is crimson.", "The answer is a.", "no idea"]
    judge = Judge(ScriptedChat(approving), 1.0)
    episodes = roll_out(ScriptedGenerator(replies), tokenizer, items, 64, Sampling(0.7, 0.95, 8, 2), 0, judge)
    C, W = Verdict.CORRECT, Verdict.WRONG
    assert [episode.verdict for episode in episodes] == [C, C, C, W]
    assert [episode.lenient for episode in episodes] == [1.0, 0.0, 0.0, 0.0]
    assert judge.counts()["asked"] == 2


def test_a_steps_counts_are_what_the_totals_grew_by() -> None:
    counts = StepCounts()
    assert counts.step([]) == {}
    assert counts.step([("a", {"asked": 2}), ("b", {"asked": 1}), ("a", {"asked": 5})]) == {"judge/asked": 6}
    assert counts.step([("a", {"asked": 4}), ("b", {"asked": 1})]) == {"judge/asked": 0}  # an older total came late
    assert counts.step([("c", {"asked": 3}), ("a", {"asked": 7})]) == {"judge/asked": 5}  # b died, c took its place
    assert counts.step([("a", {})]) == {}


def test_another_judge_is_another_stage_and_another_place_is_not() -> None:
    params = tiny_params()

    def fingerprint(**changes: object) -> str:
        judge = settings(1).model_copy(update=changes)
        judged = params.model_copy(update={"judge": judge})
        return fingerprint_of("stage1", judged, params.rl.limits("stage1"), None, {})

    assert fingerprint() == fingerprint(base_url="http://other/v1", concurrency=9, attempts=2, alarm_share=0.5)
    assert fingerprint() != fingerprint(model="larger")
    assert fingerprint() != fingerprint_of("stage1", params, params.rl.limits("stage1"), None, {})
