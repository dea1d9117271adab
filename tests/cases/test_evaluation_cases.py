"""More inputs of the kind EV-01 through LongBench v2, and JD-02 through benchmarks that ask a judge."""

from typing import Any

import pytest

from tasks.evaluation.benchmarks.base import Attempt, Benchmark, Score, Task
from tasks.evaluation.benchmarks.corpusqa import CORPUSQA, CorpusTask
from tasks.evaluation.benchmarks.frames import FRAMES
from tasks.evaluation.benchmarks.longbench_v1 import LONGBENCH_V1
from tasks.evaluation.benchmarks.longbench_v2 import LONGBENCH_V2, official_letter
from tasks.records import Finish
from tests.evaluation.benchmarks.judges import judge_that


def letters(reply: str) -> tuple[str | None, str | None]:
    """What the official and the robust parser of LongBench v2 find."""
    robust = [letter for letter in "ABCD" if scored(LONGBENCH_V2, letter, reply).robust]
    return official_letter(reply), robust[0] if robust else None


def scored(benchmark: Benchmark[Any], gold: str, reply: str, finish: Finish = Finish.FINISHED) -> Score:
    (score,) = benchmark.score([Attempt(Task(id="t", context="c", question="q", gold=(gold,)), reply, finish)], None)
    return score


@pytest.mark.parametrize(
    ("reply", "official", "robust"),
    [
        ("The correct answer is (A)? No, that is refuted. The correct answer is (C).", "A", "C"),
        ("The correct answer is Definitely (B)", "D", "B"),
        ("The correct answer is: (B)", None, "B"),
        ("the correct answer is (b)", None, "B"),
        ("The correct answer is （Ｂ）", None, "B"),
        (r"The correct answer is $\boxed{B}$", None, "B"),
        ("Answer seems to be A.", None, "A"),
        ("I would pick B — a safe choice.", None, "B"),
        ("ANSWER: None of the above", None, None),
        ("<think>The correct answer is (D)</think> The correct answer is (B)", "D", "B"),
        ("**The correct answer is (C)**", "C", "C"),
        ("The correct answer is not (A) but (B).", None, "B"),
        ("The correct answer is Clearly option (B).", "C", "B"),
        ("The correct answer is either (A) or (B).", None, None),
        ("The correct answer is (E).", None, None),
        ("The correct answer is (BC).", None, None),
        ("The correct answer is [B]", None, "B"),
        ("The correct answer is\n(B)", None, "B"),
        ("", None, None),
    ],
)
def test_ev01_letters(reply: str, official: str | None, robust: str | None) -> None:
    assert letters(reply) == (official, robust)


def test_ev01_both_numbers_stand_under_their_own_names() -> None:
    score = scored(LONGBENCH_V2, "C", "The correct answer is (A)? No, that is refuted. The correct answer is (C).")
    assert (score.official, score.robust) == (0.0, 1.0)


NOTHING = [
    ":",
    ".",
    "Thought process:",
    "Let's solve this problem step by step.",
    "Solution",
    "解",
    "かいせつ",
    " ",
    "**",
    "",
]


@pytest.mark.parametrize("benchmark", [FRAMES, LONGBENCH_V1, CORPUSQA], ids=lambda benchmark: benchmark.name)
@pytest.mark.parametrize("reply", [*NOTHING, *(f"<think>It is 42.</think>{text}" for text in NOTHING)])
def test_jd02_saying_nothing_pays_nothing_and_asks_no_judge(benchmark: Benchmark[Any], reply: str) -> None:
    judge, requests = judge_that(lambda _: "Verdict: CORRECT [[YES]]")
    task = CorpusTask(id="t", context="c", tail="", question="How many?", gold=("42",))
    (score,) = benchmark.score([Attempt(task, reply, Finish.FINISHED)], judge)
    assert (score.official, score.robust, score.answered) == (0.0, 0.0, False)
    assert not requests
