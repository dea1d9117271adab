"""DocMath: the official equality in all that it forgives, and the strict one beside it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.evaluation.benchmarks.base import Attempt, Score
from tasks.evaluation.benchmarks.docmath import DOCMATH, official_number, officially_equal
from tasks.records import Finish

FIXTURE = Path(__file__).parent / "fixtures/docmath"
TASKS = {task.subset: task for task in DOCMATH.read(FIXTURE)}


def scored(subset: str, reply: str) -> Score:
    (score,) = DOCMATH.score([Attempt(TASKS[subset], reply, Finish.FINISHED)], None)
    return score


def test_tasks_and_prompt() -> None:
    assert list(TASKS) == ["complong", "compshort", "simplong", "simpshort"]
    assert TASKS["compshort"].gold == ("-340",)
    assert TASKS["complong"].context == "Fees (in million)\n| first | 7.5 |\n| second | 5.0 |"
    assert "</text>\n\nWhat is the sum of both fees in million?\n\nFormat" in DOCMATH.prompt(TASKS["complong"])


@pytest.mark.parametrize(
    ("reply", "number"),
    [
        ("Therefore, the answer is 12.5.", 12.5),
        ("Therefore, the answer is **$1,250.5**.", 1250.5),
        ("Therefore, the answer is (25.37%).", 25.37),
        ("THE ANSWER IS -3", -3.0),
        ("the answer is 4. No, the answer is 5.", 4.0),
        ("<think>the answer is 4</think>the answer is 5", 5.0),
        ("the answer is .5", 0.5),
        ("the answer is 007", 0.0),  # no number of Python's: counts as 0
        ("the answer is 1.2.3", 0.0),
        ("the answer is ,", 0.0),
        ("the answer is twelve", None),
        ("12.5", None),
        ("", None),
    ],
)
def test_official_number(reply: str, number: float | None) -> None:
    assert official_number(reply) == number


@pytest.mark.parametrize(
    ("answer", "gold", "equal"),
    [
        (12.5, 12.5, True),
        (125.0, 12.5, True),  # a power of ten
        (-12.5, 12.5, True),  # signs are ignored in ratios
        (12.51, 12.5, True),  # 0.08 %
        (12.53, 12.5, False),  # 0.24 %
        (0.2537, 25.37313, True),  # a factor of 100, within 0.15 %
        (25.373, 0.0253731, True),  # of 1,000
        (1e-9, 2e-9, True),  # both round up to 0.001
        (0.0, 0.0, True),
        (0.0, 0.0004, False),
        (0.0, 7.0, False),
        (24.0, 25.37313, False),
        (float("inf"), 7.0, False),
        (1e300, 1e-300, False),
    ],
)
def test_official_equality(answer: float, gold: float, equal: bool) -> None:
    assert officially_equal(answer, gold) is equal


finite = st.floats(min_value=-1e12, max_value=1e12)


@given(finite, finite)
def test_the_official_equality_never_fails(answer: float, gold: float) -> None:
    assert officially_equal(answer, gold) in (True, False)
    assert officially_equal(gold, gold)


@pytest.mark.parametrize(
    ("subset", "reply", "official", "robust"),
    [
        ("complong", "Therefore, the answer is 12.5 million.", 1, 1),
        ("complong", "Therefore, the answer is 1.25.", 1, 0),
        ("complong", "Therefore, the answer is 12.5 thousand.", 1, 0),
        ("compshort", "Therefore, the answer is -340 million.", 1, 0),
        ("compshort", "Therefore, the answer is -340.4.", 1, 0),  # 0.12 % off a whole number
        ("compshort", "Therefore, the answer is -340.", 1, 1),
        ("compshort", "Therefore, the answer is 340.", 1, 0),
        ("simplong", "Therefore, the answer is 25.37%.", 1, 1),
        ("simpshort", "Therefore, the answer is 1.2.3.", 1, 0),  # garbage equals a gold answer of 0
        ("simpshort", "Therefore, the answer is 0.", 1, 1),
        ("simpshort", "I do not know.", 0, 0),
        ("complong", r"\boxed{12.5}", 0, 1),
    ],
)
def test_scores(subset: str, reply: str, official: float, robust: float) -> None:
    score = scored(subset, reply)
    assert (score.official, score.robust) == (official, robust)
