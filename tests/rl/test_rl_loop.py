"""The loop carries sampler, gate and outcomes from step to step and over a resume."""

import pytest

from tasks.generation.scripted import ScriptedGenerator
from tasks.records import Finish, Verdict
from tasks.rl.engines.base import Update
from tasks.rl.entropy_control import Gate
from tasks.rl.episodes import Episode, Turn
from tasks.rl.loop import run_steps
from tasks.tracking import NullTracker
from tests.rl.tiny import tiny_items, tiny_params


class ScriptedEngine:
    """Switches the gate at every update and remembers what it was given."""

    def __init__(self):
        self.generator = ScriptedGenerator([])
        self.seen = []
        self.loaded = False

    def update(self, episodes, gate, step):
        self.seen.append((step, gate.on))
        return Update(0.5, Gate(not gate.on), 1.0, 1.0, 1e-3, skipped=False)

    def save_model(self, folder):
        raise AssertionError("the loop saves no model")

    def save_state(self, folder):
        (folder / "weights").write_text("here")

    def load_state(self, folder):
        self.loaded = (folder / "weights").read_text() == "here"


@pytest.fixture
def run(tmp_path):
    def run(steps, drawn, fingerprint="f"):
        engine, tracker = ScriptedEngine(), NullTracker()

        def roll_out(items, seed):
            drawn.append((tuple(item.question.id for item in items), seed))
            turn = Turn((2,), (3, 1), Finish.FINISHED)
            return [
                Episode(group, item.question.domain, (turn,), Verdict.CORRECT, 1.0) for group, item in enumerate(items)
            ]

        state = run_steps(
            "stage1",
            tiny_items(),
            steps,
            tiny_params().rl,
            seed=3,
            engine=engine,
            roll_out=roll_out,
            resume=tmp_path / "resume",
            fingerprint=fingerprint,
            tracker=tracker,
            report=lambda metrics: None,
        )
        return state, engine

    return run


def test_the_gate_of_a_step_is_the_last_steps(run):
    state, engine = run(4, [])
    assert engine.seen == [(1, False), (2, True), (3, False), (4, True)]
    assert not state.gate.on and state.step == 4


def test_a_resumed_loop_goes_on_with_gate_questions_seeds_and_outcomes(run, tmp_path):
    """Steps 1 to 4 leave the point of step 2; a loop to step 6 continues there."""
    first, second = [], []
    run(4, first)
    assert (tmp_path / "resume/state.json").is_file()
    state, engine = run(6, second)
    assert engine.loaded
    assert engine.seen == [(3, False), (4, True), (5, False), (6, True)]
    assert second[:2] == first[2:]
    assert [metrics.step for metrics in state.metrics] == [1, 2, 3, 4, 5, 6]
    assert sum(outcome.count for outcome in state.outcomes.values()) == 24
    assert len({seed for _, seed in first + second}) == 6


def test_every_question_is_drawn_once_an_epoch(run):
    drawn = []
    run(2, drawn)
    assert sorted(name for names, _ in drawn for name in names) == sorted(f"q{n}" for n in range(8))


def test_a_point_of_another_fingerprint_is_not_continued(run, tmp_path):
    run(4, [])
    _, engine = run(4, [], fingerprint="other")
    assert not engine.loaded and engine.seen[0] == (1, False)
