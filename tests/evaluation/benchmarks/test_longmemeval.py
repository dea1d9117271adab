"""LongMemEval: the official history and prompt, a judge per type of question, and which release was read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.errors import InputError
from tasks.evaluation.benchmarks import longmemeval
from tasks.evaluation.benchmarks.base import Attempt, Score
from tasks.evaluation.benchmarks.longmemeval import LONGMEMEVAL, LongMemEvalTask, release_of
from tasks.generation.chat import Unanswered
from tasks.records import Finish
from tasks.rewards.judging.purposes import (
    MEMORY_ABSTENTION,
    MEMORY_FACT,
    MEMORY_TIME,
    MEMORY_UPDATE,
    Purpose,
)
from tests.evaluation.benchmarks.judges import judge_that

FIXTURE = Path(__file__).parent / "fixtures/longmemeval"
FILE = FIXTURE / "longmemeval_oracle.json"


def task(name: str) -> LongMemEvalTask:
    return next(task for task in LONGMEMEVAL.read(FIXTURE) if task.id == name)


def score(name: str, reply: str, decides: Callable[[str], str | Unanswered], finish: Finish = Finish.FINISHED) -> Score:
    judge, _ = judge_that(decides)
    (scored,) = LONGMEMEVAL.score([Attempt(task(name), reply, finish)], judge)
    return scored


def test_types_and_answers() -> None:
    tasks = list(LONGMEMEVAL.read(FIXTURE))
    assert [task.subset for task in tasks] == [
        "single-session-user",
        "temporal-reasoning",
        "multi-session | abstention",
        "knowledge-update",
    ]
    assert tasks[1].gold == ("18",)  # a number in the file
    assert tasks[0].question == "How long is my commute? (asked on 2023/06/01 (Thu) 09:00)"


def test_the_prompt_is_the_official_one() -> None:
    prompt = LONGMEMEVAL.prompt(task("a1"))
    assert prompt.startswith(
        "I will give you several history chats between you and a user. Please answer the question based on the "
        "relevant chat history. Answer the question step by step: first extract all the relevant information, and then "
        "reason over the information to get the answer.\n\n\nHistory Chats:\n\n\n### Session 1:\n"
        "Session Date: 2023/05/02 (Tue) 18:00\nSession Content:\n\n"
        '[{"role": "user", "content": "I planted basil in the blue pot."}, '
    )
    assert prompt.endswith(
        "\n\nCurrent Date: 2023/06/01 (Thu) 09:00\nQuestion: How long is my commute?\nAnswer (step by step):"
    )


def test_sessions_are_by_date_and_do_not_mark_the_answer() -> None:
    context = task("a1").context
    assert context.index("2023/05/02") < context.index("2023/05/20")
    assert "has_answer" in FILE.read_text("utf-8") and "has_answer" not in context
    assert "Basil likes {sun}." in LONGMEMEVAL.prompt(task("a1"))


@pytest.mark.parametrize(
    ("name", "purpose"),
    [("a1", MEMORY_FACT), ("a2", MEMORY_TIME), ("a3_abs", MEMORY_ABSTENTION), ("a4", MEMORY_UPDATE)],
)
def test_the_judge_is_asked_by_type(name: str, purpose: Purpose) -> None:
    judge, requests = judge_that(lambda prompt: "Verdict: YES")
    attempt = Attempt(task(name), "<think>Hm.</think>As far as I know, so.", Finish.FINISHED)
    assert LONGMEMEVAL.score([attempt], judge) == [Score(official=1.0, robust=1.0, answered=True)]
    (request,) = requests
    assert purpose.task in request.prompt and purpose.reference in request.prompt
    assert attempt.task.question in request.prompt and attempt.task.gold[0] in request.prompt
    assert "As far as I know, so." in request.prompt and "Hm." not in request.prompt


@pytest.mark.parametrize(
    ("said", "verdict"),
    [("Verdict: YES", 1.0), ("Verdict: NO", 0.0), ("No, it says yesterday.", None), ("", None)],
)
def test_a_verdict_is_parsed_not_searched(said: str, verdict: float | None) -> None:
    assert score("a2", "It stayed three weeks.", lambda prompt: said) == Score(
        official=verdict, robust=verdict, answered=True
    )


def test_an_outage_is_unscored_but_what_the_rule_finds_equal_is_right() -> None:
    down = lambda prompt: Unanswered("down")  # noqa: E731
    assert score("a4", "By the window.", down) == Score(official=None, robust=None, answered=True)
    assert score("a4", "The answer is in the green pot.", down) == Score(official=None, robust=1.0, answered=True)
    assert LONGMEMEVAL.score([Attempt(task("a4"), "By the window.", Finish.FINISHED)], None) == [
        Score(official=None, robust=None, answered=True)
    ]


@pytest.mark.parametrize(
    ("reply", "finish", "answered"),
    [
        ("", Finish.FINISHED, False),
        ("<think>In the green pot.", Finish.TRUNCATED, False),
        (":", Finish.FINISHED, True),
    ],
)
def test_nothing_said_is_wrong_and_reaches_no_judge(reply: str, finish: Finish, answered: bool) -> None:
    judge, requests = judge_that(lambda prompt: "Verdict: YES")
    scored = LONGMEMEVAL.score([Attempt(task("a4"), reply, finish)], judge)
    assert scored == [Score(official=0.0, robust=0.0, answered=answered)] and not requests


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"question_type": "gossip"}, "gossip"),
        ({"haystack_dates": ["2023/05/02 (Tue) 18:00"]}, "1 dates and not as many sessions"),
        ({"haystack_sessions": [["hello"], []]}, "no list of objects"),
        ({"haystack_sessions": [[{"role": "user"}], []]}, "has no 'content'"),
        ({"answer": None}, "has no 'answer'"),
        ({"answer": True}, "no string"),
    ],
)
def test_another_release_is_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    row = json.loads(FILE.read_text("utf-8"))[0] | changes
    (tmp_path / FILE.name).write_text(json.dumps([row]), "utf-8")
    with pytest.raises(InputError, match=said):
        list(LONGMEMEVAL.read(tmp_path))


def test_releases_are_told_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert release_of(FIXTURE).startswith("unknown: longmemeval_oracle.json, SHA-256 ")
    digest = release_of(FIXTURE).rpartition(" ")[2]
    monkeypatch.setattr(longmemeval, "RELEASES", {digest: "ours"})
    (tmp_path / "longmemeval_s_cleaned.json").write_bytes(FILE.read_bytes())  # under another's name
    assert release_of(tmp_path) == "ours"


def test_two_releases_in_one_folder_are_refused(tmp_path: Path) -> None:
    for name in ("longmemeval_oracle.json", "longmemeval_s_cleaned.json"):
        (tmp_path / name).write_bytes(FILE.read_bytes())
    with pytest.raises(InputError, match="keep one release"):
        LONGMEMEVAL.read(tmp_path)
