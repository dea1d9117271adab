"""max(rule, judge): the judge sees only answers with content that a rule cannot decide."""

import pytest

from tasks.generation.chat import Unanswered
from tasks.generation.scripted import ScriptedChat
from tasks.records import AnswerKind, Finish, Verdict
from tasks.rewards.judge import Judge
from tasks.rewards.judging import verdicts
from tasks.rewards.judging.verdicts import Attempt, verdict_of, verdicts_of
from tests.rewards.judges import approving, asked, judge, refusing, texts

C, W, U = Verdict.CORRECT, Verdict.WRONG, Verdict.UNSCORED
DONE, CUT = Finish.FINISHED, Finish.TRUNCATED
BERGEN = asked(AnswerKind.TEXT, "Bergen")


@pytest.mark.parametrize(
    ("reply", "finish", "verdict", "calls"),
    [
        ("The answer is Bergen.", DONE, C, 0),  # the rule's
        ("Bergen", DONE, C, 0),
        ("The answer is the port of Bergen.", DONE, C, 1),
        ("Somewhere by the sea.", DONE, W, 0),  # states no answer
        ("The answer is the port of Ber", CUT, W, 0),
        ("<think>The answer is the port of Bergen.", CUT, W, 0),
        ("<think>The answer is the port of Bergen.", DONE, W, 0),
        ("", DONE, W, 0),
        ("The answer is :", DONE, W, 0),
        ("The answer is **.**", DONE, W, 0),
        (r"\boxed{}", DONE, W, 0),
        (r"\boxed{Solution}", DONE, W, 0),
        ("Answer: " + "so " * 40, DONE, W, 0),
    ],
)
def test_who_is_asked(reply: str, finish: Finish, verdict: Verdict, calls: int) -> None:
    yes = judge(approving)
    assert verdict_of(BERGEN, reply, finish, yes) is verdict
    assert yes.counts()["asked"] == calls
    assert yes.counts()["approved_without_answer"] == 0


@pytest.mark.parametrize(
    ("kind", "gold", "reply", "verdict", "calls"),
    [
        (AnswerKind.LETTER, ("B",), "The answer is (A).", W, 0),
        (AnswerKind.NUMBER, ("1250",), "The answer is 1205.", W, 0),
        (AnswerKind.NUMBER, ("1250",), "The answer is as many as in the year before, about 1.2 thousand.", C, 1),
        (AnswerKind.TEXT, ("1250",), "The answer is 1205.", W, 0),
        (AnswerKind.NUMBER, ("1250",), "The answer is 1205 or 1250.", W, 0),
        (AnswerKind.DATE, ("2021-03-04",), "The answer is 4 April 2021.", W, 0),
        (AnswerKind.DATE, ("2021-03-04",), "The answer is the day after the fair.", C, 1),
        (AnswerKind.YES_NO, ("yes",), "The answer is no.", W, 0),
        (AnswerKind.FREE_TEXT, ("It rained too much.",), "The answer is heavy rainfall.", C, 1),
        (AnswerKind.FREE_TEXT, ("It rained too much.",), "Heavy rainfall.", W, 0),  # states none
        (AnswerKind.CODE, ("return 1",), "The answer is return 2", U, 0),  # for the sandbox
        (AnswerKind.ORDERED_LIST, ("Rome", "Oslo"), "The answer is Roma, Oslo.", C, 1),
        (AnswerKind.LIST, ("Rome", "Oslo"), "The answer is Roma, Oslo.", C, 1),
        (AnswerKind.LIST, (), "The answer is no city at all.", C, 1),
        (AnswerKind.TEXT, (), "The answer is Bergen.", U, 0),
        (AnswerKind.TEXT, ("?!",), "The answer is Bergen.", U, 0),
    ],
)
def test_kinds(kind: AnswerKind, gold: tuple[str, ...], reply: str, verdict: Verdict, calls: int) -> None:
    yes = judge(approving)
    assert verdict_of(asked(kind, *gold), reply, DONE, yes) is verdict
    assert yes.counts()["asked"] == calls


def test_a_refusing_judge_takes_nothing_from_the_rule() -> None:
    replies = ["The answer is Bergen.", "The answer is Oslo."]
    assert list(verdicts_of([Attempt(BERGEN, reply, DONE) for reply in replies], judge(refusing))) == [C, W]


def test_an_outage_leaves_unscored_what_the_rule_did_not_decide() -> None:
    down = Judge(ScriptedChat([Unanswered("down")]), 1.0)
    replies = ["The answer is Bergen.", "The answer is the port.", "No idea."]
    assert list(verdicts_of([Attempt(BERGEN, reply, DONE) for reply in replies], down)) == [C, U, W]


def test_without_a_judge_the_rule_speaks() -> None:
    replies = ["The answer is Bergen.", "The answer is the port."]
    assert list(verdicts_of([Attempt(BERGEN, reply, DONE) for reply in replies], None)) == [C, W]


def test_thousands_stream_in_order_window_by_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "WINDOW", 100)
    drawn = 0

    def coming():  # type: ignore[no-untyped-def]
        nonlocal drawn
        for number in range(3000):
            drawn += 1
            answer = ("Bergen", "the port of Bergen", "Oslo")[number % 3]
            yield Attempt(BERGEN, f"The answer is {answer}.", DONE)

    def by_the_sea(request):  # type: ignore[no-untyped-def]
        return "CORRECT" if "port" in texts(request.prompt)[-1][1] else "INCORRECT"

    stream = verdicts_of(coming(), judge(by_the_sea))
    assert next(stream) is C
    assert drawn == 100
    assert [C, *stream] == [C, C, W] * 1000


def test_the_monitor_counts_approval_of_a_reply_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks at the outcome, not at the guard: were the guard broken, it would tell."""
    said = iter(["the port", None])
    monkeypatch.setattr(verdicts, "extract_answer", lambda reply, finish: next(said))
    yes = judge(approving)
    assert verdict_of(BERGEN, "by the sea", DONE, yes) is C
    assert yes.counts()["approved_without_answer"] == 1
