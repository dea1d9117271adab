"""FRAMES: texts from one release, reasoning types from the other, and the judge's vital facts."""

import shutil
from pathlib import Path

import pytest

from tasks.errors import InputError
from tasks.evaluation.benchmarks.base import Attempt, Score
from tasks.evaluation.benchmarks.frames import FRAMES
from tasks.generation.chat import Unanswered
from tasks.records import Finish
from tasks.rewards.judge import Judge
from tests.evaluation.benchmarks.judges import judge_that

FIXTURE = Path(__file__).parent / "fixtures/frames"
HYMN = list(FRAMES.read(FIXTURE))[1]


def scored(reply: str, judge: Judge | None = None, finish: Finish = Finish.FINISHED) -> Score:
    (score,) = FRAMES.score([Attempt(HYMN, reply, finish)], judge)
    return score


def test_tasks_and_prompt() -> None:
    first, second = FRAMES.read(FIXTURE)
    assert first.subset == "Numerical reasoning | Temporal reasoning"
    assert second.subset == "", "test.tsv does not know it"
    assert first.context == "First_lighthouse\nIt was lit in 1747.\nLast_lighthouse\nIt was lit in 1859."
    assert FRAMES.prompt(second).endswith(
        "</text>\n\nWho wrote the hymn of the town where the Vik bridge stands?\n\n"
        'Format your response as follows: "Therefore, the answer is (insert answer here)".'
    )


def test_texts_are_needed(tmp_path: Path) -> None:
    shutil.copy(FIXTURE / "test.tsv", tmp_path)
    with pytest.raises(InputError, match=r"holds no test\.jsonl"):
        list(FRAMES.read(tmp_path))


def test_the_judge_decides() -> None:
    judge, requests = judge_that(
        lambda prompt: "Verdict: CORRECT" if "wrote it in 1901" in prompt else "Verdict: FALSE"
    )
    score = scored("Therefore, the answer is Clara Holm, who wrote it in 1901.", judge)
    assert (score.official, score.robust) == (1.0, 1.0)
    assert "vital facts" in requests[0].prompt
    assert scored("Therefore, the answer is Clara Holm.", judge).official == 0.0


@pytest.mark.parametrize("reply", ["", "<think>Clara Holm, in 1901</think>", "."])
def test_nothing_is_wrong_unasked(reply: str) -> None:
    judge, requests = judge_that(lambda _: "Verdict: CORRECT")
    score = scored(reply, judge)
    assert (score.official, score.robust, score.answered) == (0.0, 0.0, False)
    assert not requests


def test_a_cut_reply_is_wrong_unasked() -> None:
    judge, requests = judge_that(lambda _: "Verdict: CORRECT")
    assert scored("<think>Clara Holm", judge, Finish.TRUNCATED).official == 0.0
    assert not requests


def test_without_a_judge_equality_still_counts() -> None:
    score = scored("Therefore, the answer is Clara Holm, in 1901.")
    assert (score.official, score.robust) == (None, 1.0)
    score = scored("Therefore, the answer is Clara Holm.")
    assert (score.official, score.robust, score.answered) == (None, None, True)


def test_an_outage_and_a_judge_without_verdict_are_unscored() -> None:
    for reply in (Unanswered("refused"), "Well."):
        judge, _ = judge_that(lambda _, reply=reply: reply)
        assert scored("Therefore, the answer is Clara Holm.", judge).official is None
