"""LongBench v1: five sets, token F1 by hand, and a gold answer that stands in the stated one."""

from pathlib import Path

import pytest

from tasks.evaluation.benchmarks.base import Attempt, Score
from tasks.evaluation.benchmarks.longbench_v1 import LONGBENCH_V1, official_f1
from tasks.generation.chat import Unanswered
from tasks.records import Finish
from tasks.rewards.judge import Judge
from tests.evaluation.benchmarks.judges import judge_that

FIXTURE = Path(__file__).parent / "fixtures/longbench_v1"
TASKS = {task.id: task for task in LONGBENCH_V1.read(FIXTURE)}


def scored(name: str, reply: str, judge: Judge | None = None) -> Score:
    (score,) = LONGBENCH_V1.score([Attempt(TASKS[name], reply, Finish.FINISHED)], judge)
    return score


def test_tasks_and_prompt() -> None:
    assert list(TASKS) == ["narrativeqa/n1", "qasper/q1", "hotpotqa/h1", "2wikimqa/w1", "musique/m1"]
    assert TASKS["musique/m1"].gold == ("Jon Lie", "Lie")
    assert TASKS["musique/m1"].subset == "musique"
    assert LONGBENCH_V1.prompt(TASKS["qasper/q1"]) == (
        "Please read the following text and answer the question below.\n\n<text>\nWe use three layers.\n</text>\n\n"
        "How many layers are used?\n\n"
        'Format your response as follows: "Therefore, the answer is (insert answer here)".'
    )


@pytest.mark.parametrize(
    ("answer", "gold", "f1"),
    [
        ("The old keeper", ("the old keeper",), 1.0),
        ("an old man", ("The old keeper", "man"), 2 / 3),  # "old man" against "man": 1/2 and 1/1
        ("old old keeper", ("old keeper",), 0.8),  # counts of words: 2 of 3, 2 of 2
        ("Jon Lie's.", ("Jon Lie",), 0.5),  # "lies" is another word
        ("keeper", (), 0.0),
        ("", ("",), 0.0),
        ("the", ("a",), 0.0),
    ],
)
def test_official_f1(answer: str, gold: tuple[str, ...], f1: float) -> None:
    assert official_f1(answer, gold) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("reply", "robust"),
    [
        ("Therefore, the answer is Jon Lie.", 1.0),
        ("Therefore, the answer is the miller Jon Lie, who came from Moss.", 1.0),
        ("Therefore, the answer is Lie.", 1.0),  # another gold answer
        ("Therefore, the answer is L.", None),  # a part of the gold answer: QwenLong's would pay
        ("Therefore, the answer is the.", None),
        ("Therefore, the answer is Belief.", None),  # "lie" within a word
        ("Therefore, the answer is Jon Lie or Aron Vik.", None),
        ("<think>Therefore, the answer is Jon Lie.</think>", 0.0),
        ("", 0.0),
    ],
)
def test_containment_without_a_judge(reply: str, robust: float | None) -> None:
    assert scored("musique/m1", reply).robust == robust


def test_the_judge_is_asked_about_other_words_only() -> None:
    judge, requests = judge_that(lambda prompt: "Verdict: CORRECT" if "elderly" in prompt else "Verdict: INCORRECT")
    assert scored("narrativeqa/n1", "Therefore, the answer is an elderly fellow.", judge).robust == 1.0
    assert scored("narrativeqa/n1", "Therefore, the answer is a boy.", judge).robust == 0.0
    assert scored("narrativeqa/n1", "Therefore, the answer is an old man.", judge).robust == 1.0
    assert len(requests) == 2


def test_an_outage_is_unscored() -> None:
    judge, _ = judge_that(lambda _: Unanswered("refused"))
    score = scored("narrativeqa/n1", "Therefore, the answer is a boy.", judge)
    assert (score.official, score.robust, score.answered) == (0.0, None, True)
