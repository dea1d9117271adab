"""An honest judge over HTTP that fails when it is told to."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

from tasks.generation.base import Sampling
from tasks.generation.chat import Request
from tasks.params import EndpointJudge
from tests.rewards.judges import honest


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


@contextmanager
def serving() -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def settings(port: int, concurrency: int = 1) -> EndpointJudge:
    return EndpointJudge(
        type="openai", base_url=f"http://127.0.0.1:{port}/v1", model="judge", key_variable="NO_SUCH_KEY",
        concurrency=concurrency, attempts=1, timeout_seconds=20.0, context_tokens=4096, max_output_tokens=64,
        input_price=0.0, output_price=0.0, budget=None, alarm_share=0.05,
    )  # fmt: skip
