"""Every reply is kept as it arrives, so that a killed stage asks nothing twice."""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from pathlib import Path
from threading import Lock

from pydantic import BaseModel

from tasks.generation.chat import Announcing, ChatModel, Metered, Reply, Request, Unanswered
from tasks.generation.store import open_store, usable
from tasks.records import Finish

TABLE = "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, text TEXT, finish TEXT) WITHOUT ROWID"
AHEAD = 1000  # remembered requests in a row that may be drawn while earlier ones are under way


class Remembered:
    """A chat model with a memory on disk. What could not be answered is not remembered, and asked again next time.

    Requests are the same when model, prompt, sampling, seed and schema are; within a stream they are asked once.
    """

    def __init__(self, model: ChatModel, path: Path, identity: str) -> None:
        """`identity` tells models apart: another one shares no replies.

        Raises:
            InputError: the file is no database, or cannot be written.
        """
        self._model = model
        self._path = path
        self._identity = identity
        self._store = open_store(path, TABLE)
        self._lock = Lock()
        self._counts = {"asked": 0, "remembered": 0, "unanswered": 0}
        if isinstance(model, Announcing):
            model.announce(self._keep)

    @property
    def context_tokens(self) -> int:
        return self._model.context_tokens

    @property
    def max_output_tokens(self) -> int:
        return self._model.max_output_tokens

    def count(self, text: str) -> int:
        return self._model.count(text)

    def counts(self) -> Mapping[str, float]:
        """Requests asked, remembered (repeated ones among them) and left unanswered, and what the model counts."""
        return {**self._counts, **(self._model.counts() if isinstance(self._model, Metered) else {})}

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply | Unanswered]:
        """Answer in order. The model is not called where all requests are remembered.

        Raises:
            InputError: the file can no longer be read or written.
        """
        coming = iter(requests)
        for request in coming:
            if kept := self._find(self._key(request)):
                self._counts["remembered"] += 1
                yield kept
            else:
                yield from self._ask(request, coming)

    def _ask(self, first: Request, coming: Iterator[Request]) -> Iterator[Reply | Unanswered]:
        """Go on with the model, until the stream ends or a long run of remembered requests."""
        stream = _Stream(first, coming)
        for reply in self._model.complete(self._unknown(stream)):
            request = stream.asked.popleft()
            key = self._key(request)
            if isinstance(reply, Unanswered):
                self._counts["unanswered"] += 1
                stream.unanswered[key] = reply
            else:
                self._keep(request, reply)
            stream.under_way.discard(key)
            yield from self._settled(stream)
        yield from self._settled(stream)

    def _unknown(self, stream: "_Stream") -> Iterator[Request]:
        in_a_row = 0
        while in_a_row < AHEAD and (request := stream.next()):
            key = self._key(request)
            stream.order.append(key)
            if key in stream.under_way or key in stream.unanswered or self._find(key):
                self._counts["remembered"] += 1
                in_a_row += 1
            else:
                self._counts["asked"] += 1
                in_a_row = 0
                stream.under_way.add(key)
                stream.asked.append(request)
                yield request

    def _settled(self, stream: "_Stream") -> Iterator[Reply | Unanswered]:
        """Replies to the oldest requests, up to the first that is under way."""
        while stream.order:
            reply = stream.unanswered.get(stream.order[0]) or self._find(stream.order[0])
            if reply is None:
                return
            stream.order.popleft()
            yield reply

    def _key(self, request: Request) -> bytes:
        schema = request.schema and _schema_of(request.schema)
        identity = [self._identity, request.prompt, asdict(request.sampling), request.seed, schema]
        return sha256(json.dumps(identity).encode()).digest()

    def _find(self, key: bytes) -> Reply | None:
        with self._lock, usable(self._path):
            row = self._store.execute("SELECT text, finish FROM replies WHERE key = ?", (key,)).fetchone()
        return Reply(row[0], Finish(row[1])) if row else None

    def _keep(self, request: Request, reply: Reply) -> None:
        row = (self._key(request), reply.text, reply.finish.value)
        with self._lock, usable(self._path):
            self._store.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?)", row)


class _Stream:
    """What is under way between a stream of requests and the model."""

    def __init__(self, first: Request, coming: Iterator[Request]) -> None:
        self._coming = chain([first], coming)
        self.order: deque[bytes] = deque()  # of all requests drawn and not yet given back
        self.asked: deque[Request] = deque()  # in the order of the model's replies
        self.under_way: set[bytes] = set()
        self.unanswered: dict[bytes, Unanswered] = {}

    def next(self) -> Request | None:
        return next(self._coming, None)


@lru_cache
def _schema_of(schema: type[BaseModel]) -> str:
    return json.dumps(schema.model_json_schema())
