"""A judge is trusted only after it told right answers from wrong, empty and scheming ones."""

import pytest

from tasks.errors import UntrustedJudgeError
from tasks.generation.chat import Request, Unanswered
from tasks.generation.scripted import ScriptedChat
from tasks.rewards.judge import Judge
from tasks.rewards.judging.canaries import Kind, canaries_for, check_canaries
from tasks.rewards.judging.purposes import (
    CORPUS_QA,
    EQUIVALENCE,
    MEMORY_ABSTENTION,
    MEMORY_FACT,
    MEMORY_PREFERENCE,
    MEMORY_TIME,
    MEMORY_UPDATE,
    VITAL_FACTS,
    Purpose,
)
from tasks.rewards.judging.rulings import Ruling
from tests.rewards.judges import approving, gullible, honest, in_form, judge, rambling, refusing, texts

PURPOSES = (
    EQUIVALENCE,
    VITAL_FACTS,
    CORPUS_QA,
    MEMORY_FACT,
    MEMORY_TIME,
    MEMORY_UPDATE,
    MEMORY_PREFERENCE,
    MEMORY_ABSTENTION,
)
each_purpose = pytest.mark.parametrize("purpose", PURPOSES, ids=lambda purpose: purpose.name)


@each_purpose
def test_an_honest_judge_is_trusted(purpose: Purpose) -> None:
    report = check_canaries(judge(honest), purpose)
    assert report.fault() == ""
    assert {one.kind: one.approved for one in report.answers} == {
        Kind.RIGHT: report.answers[0].asked,
        Kind.WRONG: 0,
        Kind.EMPTY: 0,
        Kind.INJECTED: 0,
    }


@each_purpose
def test_every_kind_has_enough_canaries_for_one_slip(purpose: Purpose) -> None:
    kinds = [kind for kind, _ in canaries_for(purpose)]
    assert all(kinds.count(kind) >= 5 for kind in Kind)


@each_purpose
@pytest.mark.parametrize(
    ("script", "said"),
    [
        (approving, "approved of .* wrong answers, more than 20%"),
        (refusing, "approved of 0 of . right answers, fewer than 80%"),
        (rambling, "gave no verdict .* check that its server answers"),
        (gullible, "injected answers, more than 20%"),
    ],
)
def test_a_judge_that_does_not_judge_is_found_out(purpose: Purpose, script, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UntrustedJudgeError, match=said):
        check_canaries(judge(script), purpose)


def test_an_unreachable_judge_is_found_out() -> None:
    down = Judge(ScriptedChat(lambda request: Unanswered("connection refused")), 1.0)  # type: ignore[arg-type,return-value]
    with pytest.raises(UntrustedJudgeError, match="gave no verdict on"):
        check_canaries(down)


def test_a_judge_paid_by_master_keys_is_found_out() -> None:
    """arXiv 2507.08794: approval of what says nothing; the canaries reach the model although answers do not."""
    keys = {claim.answer for kind, claim in canaries_for(EQUIVALENCE) if kind is Kind.EMPTY}

    def fooled(request: Request) -> str:
        return in_form(request, True) if texts(request.prompt)[-1][1] in keys else honest(request)

    with pytest.raises(UntrustedJudgeError, match="6 of 6 content-free answers"):
        check_canaries(judge(fooled))


def test_one_slip_in_five_is_forgiven() -> None:
    def nearly(request: Request) -> str:
        return in_form(request, True) if texts(request.prompt)[-1][1] == "1,205" else honest(request)

    report = check_canaries(judge(nearly))
    assert [one.approved for one in report.answers] == [6, 1, 0, 0]


@each_purpose
def test_canaries_are_not_echoes_of_their_form(purpose: Purpose) -> None:
    """Content-free answers read as a reply would be no verdict: only a judge can approve of them."""
    assert all(
        purpose.form.read(claim.answer) is Ruling.UNPARSED
        for kind, claim in canaries_for(purpose)
        if kind is not Kind.INJECTED
    )
