"""A real server that fails in the middle: what it did not judge is unscored, and asked again when it is back."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread

import pytest

from tasks.errors import PipelineError
from tasks.generation.base import Sampling
from tasks.generation.chat import Request
from tasks.generation.journal import Remembered
from tasks.generation.ledger import Ledger
from tasks.generation.openai import EndpointChat
from tasks.params import EndpointWriter
from tasks.records import AnswerKind, Finish, Verdict
from tasks.rewards.judge import Judge
from tasks.rewards.judging.canaries import UntrustedJudgeError, check_canaries
from tasks.rewards.judging.verdicts import Attempt, verdict_of, verdicts_of
from tests.rewards.judges import asked, honest

C, W, U = Verdict.CORRECT, Verdict.WRONG, Verdict.UNSCORED
QUESTION = asked(AnswerKind.TEXT, "Bergen")


class Server(ThreadingHTTPServer):
    """An honest judge over HTTP. After `healthy` replies it answers `status`, or drops the connection for 0."""

    daemon_threads = True
    request_queue_size = 128  # connections at once; beyond, the system resets them
    healthy = 10**9
    status = 503
    served = 0
    lock = Lock()


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.served += 1
            healthy = self.server.served <= self.server.healthy
        if not healthy and self.server.status == 0:
            self.connection.close()
            return
        text = honest(Request(body["messages"][0]["content"], Sampling(0.0, 1.0, 1)))
        reply = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
        said = json.dumps(reply if healthy else {"error": {"message": "overloaded"}}).encode()
        self.send_response(200 if healthy else self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def judge_at(port: int, folder: Path, concurrency: int = 1) -> Judge:
    writer = EndpointWriter(
        type="openai", base_url=f"http://127.0.0.1:{port}/v1", model="judge", key_variable="NO_SUCH_KEY",
        concurrency=concurrency, attempts=1, timeout_seconds=20.0, context_tokens=4096, max_output_tokens=64,
        input_price=0.0, output_price=0.0, budget=None,
    )  # fmt: skip
    chat = EndpointChat(writer, Ledger(folder / "ledger.sqlite", 0.0, 0.0, None))
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
