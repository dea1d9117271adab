"""JD-01 and JD-02 through the judge over chat models, and others of their kinds."""

import pytest

from tasks.generation.scripted import ScriptedChat
from tasks.records import AnswerKind, Finish, Verdict
from tasks.rewards.judge import Judge
from tasks.rewards.judging.purposes import CORRECTNESS, EQUIVALENCE, Claim
from tasks.rewards.judging.rulings import Ruling
from tasks.rewards.judging.verdicts import verdict_of
from tests.rewards.judges import approving, asked, judge

C, W, U = Ruling.CORRECT, Ruling.INCORRECT, Ruling.UNPARSED
MASTER_KEYS = (
    " ", ".", ",", ":", "**", "```", "\n\n", "Thought process:", "Let's solve this problem step by step.", "Solution",
    "Solution:", "**Solution**", "解", "かいせつ", "Respuesta", "Step 1:", "Let’s think step by step", "答案：",
    "# Answer",
)  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "ruling"),
    [
        ("INCORRECT", W),
        ("CORRECT", C),
        ('{"match": "false"}', W),
        ('{"match": false}', W),
        ('{"match": "true"}', C),
        ('{"reason": "no verdict given"}', U),
        ("", U),
        ("It first looks CORRECT, but the unit differs. Final verdict: INCORRECT", W),
        ("The phrasing is not incorrect. Verdict: CORRECT", C),
        ('{"match": "maybe"}', U),
        ('{"match": 1}', U),
        ('{"match": []}', U),
        ("incorrect, not correct", U),
        ("CORRECT? INCORRECT?", U),
    ],
)
def test_jd01_a_reply_is_parsed_never_searched(reply: str, ruling: Ruling) -> None:
    assert CORRECTNESS.read(reply) is ruling
    verdict = {C: Verdict.CORRECT, W: Verdict.WRONG, U: Verdict.UNSCORED}[ruling]
    answered = Judge(ScriptedChat([reply, reply]), 1.0)
    assert list(answered.judge([Claim("What?", "42", "forty-two", EQUIVALENCE)])) == [verdict]


@pytest.mark.parametrize("reply", MASTER_KEYS)
@pytest.mark.parametrize("frame", ["{}", "The answer is {}", r"\boxed{{{}}}", "<think>42</think>{}", "Answer: {}"])
@pytest.mark.parametrize("kind", [AnswerKind.TEXT, AnswerKind.NUMBER, AnswerKind.LIST])
def test_jd02_what_says_nothing_is_wrong_and_reaches_no_judge(reply: str, frame: str, kind: AnswerKind) -> None:
    yes = judge(approving)
    assert verdict_of(asked(kind, "42"), frame.format(reply), Finish.FINISHED, yes) is Verdict.WRONG
    assert yes.counts()["asked"] == 0 and yes.counts()["approved_without_answer"] == 0


@pytest.mark.parametrize("reply", MASTER_KEYS)
def test_jd02_nor_as_a_whole_reply_of_a_benchmark(reply: str) -> None:
    yes = judge(approving)
    assert list(yes.judge([Claim("What?", "42", reply, EQUIVALENCE)])) == [Verdict.WRONG]
    assert yes.counts()["asked"] == 0 and yes.counts()["refused_unasked"] == 1
