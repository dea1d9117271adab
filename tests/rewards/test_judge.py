"""A judge that cannot be had gives no verdict; an answer without content never reaches it."""

from collections.abc import Sequence

import pytest

from tasks.generation.base import Completion, Sampling
from tasks.generation.scripted import ScriptedGenerator
from tasks.records import AnswerKind, Domain, Finish, Question, Verdict
from tasks.rewards.judge import LocalJudge, majority

C, W, U = Verdict.CORRECT, Verdict.WRONG, Verdict.UNSCORED
QUESTION = Question(
    id="q",
    domain=Domain.READING_COMPREHENSION,
    question="How many?",
    gold=("42",),
    answer_kind=AnswerKind.TEXT,
    document_ids=("d",),
    split="train",
    generator="self_play",
    difficulty=1,
    provenance={},
    seed=0,
)


class Bytes:
    """A tokenizer whose ids are bytes."""

    def prompt_ids(self, content: str) -> list[int]:
        return list(content.encode())


class Unreachable:
    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling, seed: int) -> list[list[Completion]]:
        raise ConnectionRefusedError("judge")


def judge(generator: object, votes: int) -> LocalJudge:
    return LocalJudge(generator, Bytes(), Sampling(0.7, 0.95, 16, votes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("votes", "verdict"),
    [
        ((C,), C),
        ((C, C, W), C),
        ((C, W), U),
        ((C, U, U), U),
        ((W, W, U), W),
        ((U, U), U),
        ((), U),
    ],
)
def test_majority_of_all_votes(votes: tuple[Verdict, ...], verdict: Verdict) -> None:
    assert majority(votes) is verdict


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("INCORRECT", W),
        ("CORRECT", C),
        ('{"match": "false"}', W),
        ('{"match": false}', W),
        ('{"reason": "no verdict given"}', U),
        ("", U),
        ("It first looks CORRECT, but the unit differs. Final verdict: INCORRECT", W),
        ("The phrasing is not incorrect. Verdict: CORRECT", C),
    ],
)
def test_jd01_one_vote(reply: str, verdict: Verdict) -> None:
    assert judge(ScriptedGenerator([reply]), 1).judge([QUESTION], ["forty-two"], seed=0) == [verdict]


def test_a_cut_vote_abstains() -> None:
    cut = Completion((1,), "CORRECT", Finish.TRUNCATED)
    assert judge(ScriptedGenerator([cut]), 1).judge([QUESTION], ["forty-two"], seed=0) == [U]


def test_jd02_empty_answers_are_wrong_unasked() -> None:
    generator = ScriptedGenerator(["CORRECT", "CORRECT", "INCORRECT"])
    answers = [None, ":", "", "**", "forty-two"]
    assert judge(generator, 3).judge([QUESTION] * 5, answers, seed=0) == [W, W, W, W, C]
    assert len(generator.prompts) == 1


def test_unreachable_is_unscored_never_wrong() -> None:
    assert judge(Unreachable(), 3).judge([QUESTION, QUESTION], ["forty-two", None], seed=0) == [U, W]
