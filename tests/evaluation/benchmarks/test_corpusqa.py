"""CorpusQA: the prompt of its data, typed answers, and a judge that must mark."""

from pathlib import Path

import pytest

from tasks.evaluation.benchmarks.base import Attempt, Score
from tasks.evaluation.benchmarks.corpusqa import CORPUSQA
from tasks.records import Finish
from tasks.rewards.judge import Judge
from tests.evaluation.benchmarks.judges import judge_that

FIXTURE = Path(__file__).parent / "fixtures/corpusqa"
TASKS = {task.id: task for task in CORPUSQA.read(FIXTURE)}


def scored(name: str, reply: str, judge: Judge | None = None) -> Score:
    (score,) = CORPUSQA.score([Attempt(TASKS[name], reply, Finish.FINISHED)], judge)
    return score


def test_tasks_and_prompt() -> None:
    assert list(TASKS) == ["1M/education_en_1", "1M/education_en_2", "128K/financial_en_1", "128K/financial_en_2"]
    task = TASKS["128K/financial_en_2"]
    assert task.subset == "128K | financial_en"
    assert task.context == "# Document 1:\nAlder Inc earned 12.\n"
    assert task.question == "Which firms lost money?"
    assert task.instruction.startswith("# Output requirements:\n1.")
    assert CORPUSQA.prompt(task) == task.context + "# Question:\nWhich firms lost money?\n" + task.instruction


def test_a_prompt_of_another_form_is_kept_whole(tmp_path: Path) -> None:
    row = '{"id": "x1", "prompt": [{"role": "user", "content": "All in one."}], "question": "Q?", "answer": [1, 2]}'
    (tmp_path / "other.jsonl").write_text(row)
    (task,) = CORPUSQA.read(tmp_path)
    assert (CORPUSQA.prompt(task), task.context, task.subset, task.gold) == (
        "All in one.",
        "All in one.",
        "",
        ("[1, 2]",),
    )


@pytest.mark.parametrize(
    ("name", "reply", "robust"),
    [
        ("128K/financial_en_1", 'The answer is: ["Birch Ltd", "Alder Inc"]', 1.0),
        ("128K/financial_en_1", 'The answer is: ["Alder Inc"]', 0.0),
        ("128K/financial_en_2", "The answer is: []", 1.0),
        ("128K/financial_en_2", 'The answer is: ["Alder Inc"]', 0.0),
        ("1M/education_en_1", "The answer is: 1250.50", 1.0),
        ("1M/education_en_1", "The answer is: 1205.50", 0.0),
        ("1M/education_en_2", 'The answer is: "Holm School"', 1.0),
        ("1M/education_en_2", "The answer is: Vik School", None),  # other words need a judge
        ("1M/education_en_2", "", 0.0),
    ],
)
def test_rules(name: str, reply: str, robust: float | None) -> None:
    score = scored(name, reply)
    assert score.robust == robust
    assert score.official == (None if reply else 0.0)


@pytest.mark.parametrize(
    ("ruling", "official"),
    [("Same. [[YES]]", 1.0), ("No. [[NO]]", 0.0), ("[[YES]] or rather [[NO]]", None), ("YES", None)],
)
def test_the_judge_must_mark(ruling: str, official: float | None) -> None:
    judge, requests = judge_that(lambda _: ruling)
    assert scored("1M/education_en_1", "The answer is: 1250.5", judge).official == official
    assert requests[0].sampling.temperature == 0.0


def test_no_judge_overrules_arithmetic() -> None:
    judge, _ = judge_that(lambda prompt: "[[YES]]" if "[[YES]]" in prompt else "Verdict: CORRECT")
    score = scored("1M/education_en_1", "The answer is: 1205.50", judge)
    assert (score.official, score.robust) == (1.0, 0.0)
