"""A real HTTP server on loopback that answers chat requests as a test says, faults included."""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tasks.params import EndpointWriter


@dataclass
class Answer:
    """What the server does with a request."""

    body: object = None  # text as it is, or a tree as JSON
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    reset: bool = False  # end the connection without a word


def completion(text: str | None, finish: str | None = "stop", tokens: tuple[int, int] | None = (10, 5)) -> Answer:
    usage = tokens and {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return Answer({"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage})


def failure(status: int, message: str, **details: str) -> Answer:
    return Answer({"error": {"message": message, **details}}, status)


Script = Callable[[int, dict[str, Any]], Answer]


class ChatServer(ThreadingHTTPServer):
    """Calls its script with the number of the request, from 1, and the body. Keeps bodies and headers."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.lock = threading.Lock()
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.open = 0
        self.most_open = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    @property
    def prompts(self) -> list[str]:
        return [body["messages"][0]["content"] for body in self.bodies]

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hung up is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ChatServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.bodies.append(body)
            self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
            number = len(self.server.bodies)
            self.server.open += 1
            self.server.most_open = max(self.server.most_open, self.server.open)
        try:
            self._send(self.server.script(number, body))
        finally:
            with self.server.lock:
                self.server.open -= 1

    def _send(self, answer: Answer) -> None:
        time.sleep(answer.delay)
        if answer.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        data = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data.encode())))
        self.end_headers()
        self.wfile.write(data.encode())

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def serving(script: Script) -> Iterator[ChatServer]:
    with ChatServer(script) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def writer(url: str, **changes: Any) -> EndpointWriter:
    settings = {
        "type": "openai", "base_url": url, "model": "m", "key_variable": "WRITER_KEY", "concurrency": 4, "attempts": 1,
        "timeout_seconds": 60.0, "input_price": 1.0, "output_price": 2.0, "budget": None, "context_tokens": 4096,
        "max_output_tokens": 100,
    }  # fmt: skip
    return EndpointWriter.model_validate({**settings, **changes})
