"""A real server that fails in the middle: what it did not judge is unscored, and asked again when it is back."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tasks.errors import PipelineError, UntrustedJudgeError
from tasks.generation.journal import Remembered
from tasks.generation.ledger import Ledger
from tasks.generation.openai import EndpointChat
from tasks.records import AnswerKind, Finish, Verdict
from tasks.rewards.judge import Judge
from tasks.rewards.judging.canaries import check_canaries
from tasks.rewards.judging.verdicts import Attempt, verdict_of, verdicts_of
from tests.rewards.judge_server import Server, serving, settings
from tests.rewards.judges import asked

C, W, U = Verdict.CORRECT, Verdict.WRONG, Verdict.UNSCORED
QUESTION = asked(AnswerKind.TEXT, "Bergen")


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def judge_at(port: int, folder: Path, concurrency: int = 1) -> Judge:
    chat = EndpointChat(settings(port, concurrency), Ledger(folder / "ledger.sqlite", 0.0, 0.0, None))
    return Judge(Remembered(chat, folder / "replies.sqlite", "judge"), 0.05)


def attempts(number: int) -> list[Attempt]:
    """Every fourth is the rule's, every fourth states nothing; the judge sees the other half, all different."""
    said = ("The answer is Bergen.", "The answer is place {}.", "By the sea.", "The answer is town {}.")
    return [Attempt(QUESTION, said[index % 4].format(index), Finish.FINISHED) for index in range(number)]


@pytest.mark.parametrize("status", [503, 0])
def test_a_server_that_fails_in_the_middle(server: Server, status: int, tmp_path: Path) -> None:
    server.healthy, server.status = 5, status
    judge = judge_at(server.server_port, tmp_path)
    first = list(verdicts_of(attempts(40), judge))
    assert first == [C, W, W, W, C, W, W, W, C, W, W, U] + [C, U, W, U] * 7
    assert judge.counts()["unscored"] == 15 and judge.counts()["asked"] == 20

    server.healthy = 10**9
    served = server.served
    again = judge_at(server.server_port, tmp_path)
    assert list(verdicts_of(attempts(40), again)) == [C, W, W, W] * 10
    assert server.served == served + 15 and again.counts()["cached"] == 5


def test_many_at_a_time_in_order(server: Server, tmp_path: Path) -> None:
    judge = judge_at(server.server_port, tmp_path, concurrency=16)
    assert list(verdicts_of(attempts(400), judge)) == [C, W, W, W] * 100
    assert judge.counts()["unscored"] == 0


def test_many_threads_with_one_judge_as_agents_of_a_rollout_have_it(server: Server, tmp_path: Path) -> None:
    judge = judge_at(server.server_port, tmp_path, concurrency=16)
    with ThreadPoolExecutor(16) as threads:
        verdicts = threads.map(lambda one: verdict_of(one.question, one.reply, one.finish, judge), attempts(200))
        assert list(verdicts) == [C, W, W, W] * 50
    assert judge.counts()["asked"] == 100 == server.served


def test_canaries_over_http(server: Server, tmp_path: Path) -> None:
    assert check_canaries(judge_at(server.server_port, tmp_path, concurrency=8)).fault() == ""


def test_nobody_there(server: Server, tmp_path: Path) -> None:
    server.healthy, server.status = 0, 0
    with pytest.raises(UntrustedJudgeError, match="no verdict on 23 of 23 answers; check that its server answers"):
        check_canaries(judge_at(server.server_port, tmp_path, concurrency=8))


def test_a_refused_key_ends_the_run_instead_of_leaving_all_unscored(server: Server, tmp_path: Path) -> None:
    server.healthy, server.status = 0, 401
    with pytest.raises(PipelineError, match="answered 401"):
        check_canaries(judge_at(server.server_port, tmp_path))
