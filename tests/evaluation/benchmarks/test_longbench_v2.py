"""LongBench v2: its file, its prompt letter for letter, and both parsers."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import InputError
from tasks.evaluation.benchmarks.base import Attempt, Score, Task
from tasks.evaluation.benchmarks.longbench_v2 import LONGBENCH_V2, official_letter
from tasks.records import Finish

FIXTURE = Path(__file__).parent / "fixtures/longbench_v2"


def scored(reply: str, gold: str = "B", finish: Finish = Finish.FINISHED) -> Score:
    task = Task(id="t", context="c", question="q", gold=(gold,))
    (score,) = LONGBENCH_V2.score([Attempt(task, reply, finish)], None)
    return score


def test_tasks_and_prompt() -> None:
    tasks = list(LONGBENCH_V2.read(FIXTURE))
    assert [task.id for task in tasks] == ["66f0a1", "66f0a2", "66f0a3"]
    assert [task.gold for task in tasks] == [("B",), ("C",), ("D",)]
    assert tasks[1].subset == "hard | long | Multi-Document QA"
    assert LONGBENCH_V2.prompt(tasks[0]) == (
        "Please read the following text and answer the question below.\n\n"
        "<text>\nThe clerk came in late. {He} moved the lamp to the window and left.\n</text>\n\n"
        "What is the correct answer to this question: Who moved the lamp?\n"
        "Choices:\n(A) The baker\n(B) The clerk\n(C) Nobody\n(D) The cat\n\n"
        'Format your response as follows: "The correct answer is (insert answer here)".'
    )


@pytest.mark.parametrize(
    ("reply", "official", "robust"),
    [
        ("The correct answer is (B).", 1, 1),
        ("**The correct answer is (B)**", 1, 1),
        ("The correct answer is B", 1, 1),
        ("The correct answer is A. Wait, no: The correct answer is (B).", 1, 1),  # parentheses first
        ("The correct answer is (A). Wait, no: The correct answer is (B).", 0, 1),
        ("the correct answer is (b)", 0, 1),
        ("The correct answer is Because", 1, 0),  # the official parser reads the first letter
        ("The answer is (B).", 0, 1),
        ("", 0, 0),
        ("The correct answer is (E)", 0, 0),
    ],
)
def test_scores(reply: str, official: float, robust: float) -> None:
    score = scored(reply)
    assert (score.official, score.robust) == (official, robust)


def test_reasoning_that_never_ended_states_nothing() -> None:
    score = scored("<think>The correct answer is (B)", finish=Finish.TRUNCATED)
    assert (score.official, score.robust, score.answered) == (1.0, 0.0, False)


@given(st.text())
def test_the_official_parser_finds_letters_or_nothing(text: str) -> None:
    assert official_letter(text) in {None, "A", "B", "C", "D"}


def test_another_release_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text('[{"_id": "1", "context": "c", "question": "q"}]')
    with pytest.raises(InputError, match=r"data.json, row 1 has no 'choice_A'"):
        list(LONGBENCH_V2.read(tmp_path))
    (tmp_path / "data.json").unlink()
    with pytest.raises(InputError, match=r"holds no data\.json"):
        list(LONGBENCH_V2.read(tmp_path))
