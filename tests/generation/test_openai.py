"""The endpoint client against a real server on loopback that fails in every way servers fail."""

import json
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from tasks.errors import ParameterError, PipelineError
from tasks.generation.base import Sampling
from tasks.generation.chat import Reply, Request, Unanswered
from tasks.generation.journal import Remembered
from tasks.generation.ledger import Ledger
from tasks.generation.openai import EndpointChat, on_this_machine, read_key
from tasks.records import Finish
from tests.generation.server import Answer, Script, completion, failure, serving, writer

KEY = "sk-0123456789-secret"
SOON = {"retry-after-ms": "10"}


class Fact(BaseModel):
    name: str
    note: str = ""


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WRITER_KEY", KEY)


def request(prompt: str, schema: type[BaseModel] | None = None) -> Request:
    return Request(prompt, Sampling(0.3, 0.9, 20), 7, schema)


def requests(number: int) -> list[Request]:
    return [request(f"p{n}") for n in range(number)]


def endpoint(url: str, folder: Path, **changes: object) -> EndpointChat:
    settings = writer(url, **changes)
    prices = settings.input_price, settings.output_price, settings.budget
    return EndpointChat(settings, Ledger(folder / "spending.sqlite", *prices))


def outcomes(script: Script, folder: Path, asked: list[Request], **changes: object) -> list[Reply | Unanswered]:
    with serving(script) as server:
        return list(endpoint(server.url, folder, **changes).complete(asked))


def echo(number: int, body: dict) -> Answer:
    return completion(f"re: {body['messages'][0]['content']}")


def test_what_is_sent_and_what_comes_back(tmp_path):
    with serving(echo) as server:
        model = endpoint(server.url, tmp_path)
        assert list(model.complete([request("ask é 世")])) == [Reply("re: ask é 世", Finish.FINISHED)]
        assert list(model.complete([])) == []
    assert server.bodies == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "ask é 世"}],
            "temperature": 0.3,
            "top_p": 0.9,
            "seed": 7,
            "max_tokens": 20,
        }
    ]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert model.counts() == {"input_tokens": 10, "output_tokens": 5, "cost": pytest.approx(20e-6)}


def test_slow_replies_come_in_order_from_a_bounded_window(tmp_path):
    """Replies arrive backwards; requests are drawn as places get free, never all at once."""
    drawn = 0

    def stream() -> Iterator[Request]:
        nonlocal drawn
        for one in requests(60):
            drawn += 1
            yield one

    def script(number: int, body: dict) -> Answer:
        answer = echo(number, body)
        answer.delay = 0.04 * (4 - number % 4) / 4
        return answer

    with serving(script) as server:
        for number, reply in enumerate(endpoint(server.url, tmp_path).complete(stream())):
            assert reply == Reply(f"re: p{number}", Finish.FINISHED)
            assert drawn <= number + 1 + 4 * 4
    assert number == 59
    assert 1 < server.most_open <= 4


@pytest.mark.parametrize(
    "fault",
    [
        Answer({"error": {"message": "slow down"}}, 429, {"retry-after": "0.01"}),
        Answer({"error": {"message": "oops"}}, 500, SOON),
        Answer("<html>bad gateway</html>", 502, SOON),
        Answer(reset=True),
        Answer(delay=3.0),
    ],
    ids=["429", "500", "502", "reset", "hang"],
)
def test_what_passes_is_tried_again_and_what_does_not_is_unanswered(tmp_path, fault):
    def twice(number: int, body: dict) -> Answer:
        return fault if number <= 2 else echo(number, body)

    limits = {"attempts": 3, "timeout_seconds": 1.0 if fault.delay else 60.0}
    assert outcomes(twice, tmp_path, requests(1), **limits) == [Reply("re: p0", Finish.FINISHED)]
    limits["attempts"] = 1
    [unanswered] = outcomes(lambda *_: fault, tmp_path, requests(1), **limits)
    assert isinstance(unanswered, Unanswered) and "tried 1 times" in unanswered.reason


def test_a_failure_says_what_the_server_said(tmp_path):
    [unanswered] = outcomes(lambda *_: failure(503, "model is loading"), tmp_path, requests(1))
    assert isinstance(unanswered, Unanswered)
    assert "503" in unanswered.reason and "model is loading" in unanswered.reason


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer("{not json"), "no chat completion: {not json"),
        (Answer(""), "no chat completion"),
        (Answer("[]"), "no chat completion"),
        (Answer({"error": {"message": "upstream is down"}}), "upstream is down"),  # under status 200
        (Answer({"choices": None}), "no chat completion"),
        (Answer({"choices": []}), "holds no text"),
        (Answer({"choices": [{"message": {}}]}), "holds no text"),
        (completion(None, "length"), "holds no text (finish_reason length)"),
        (completion("I will", "content_filter"), "filter"),
    ],
)
def test_an_answer_without_a_reply_is_unanswered(tmp_path, answer, reason):
    [unanswered] = outcomes(lambda *_: answer, tmp_path, requests(1))
    assert isinstance(unanswered, Unanswered) and reason in unanswered.reason


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (completion("a", "length"), Reply("a", Finish.TRUNCATED)),
        (completion("a", None), Reply("a", Finish.FINISHED)),
        (completion("a", ""), Reply("a", Finish.FINISHED)),
        (completion("", "stop"), Reply("", Finish.FINISHED)),
        (completion("a", tokens=None), Reply("a", Finish.FINISHED)),
        (Answer({"choices": [{"message": {"content": "a"}}], "usage": {}}), Reply("a", Finish.FINISHED)),
    ],
)
def test_whatever_else_is_missing_a_text_is_a_reply(tmp_path, answer, reply):
    assert outcomes(lambda *_: answer, tmp_path, requests(1)) == [reply]


@pytest.mark.parametrize(
    ("answer", "remedy"),
    [
        (failure(401, f"Incorrect API key provided: {KEY}"), "WRITER_KEY"),
        (failure(402, "no funds"), "credit"),
        (failure(404, "The model `m` does not exist"), "synthesis.writer.model"),
        (failure(429, "You exceeded your quota", code="insufficient_quota"), "credit"),
    ],
)
def test_what_concerns_every_request_ends_the_stream_and_never_shows_the_key(tmp_path, answer, remedy):
    with pytest.raises(PipelineError, match=remedy) as caught:
        outcomes(lambda *_: answer, tmp_path, requests(20))
    assert KEY not in str(caught.value)


def test_a_refused_request_is_unanswered_but_refusing_all_is_an_error(tmp_path):
    def script(number: int, body: dict) -> Answer:
        return failure(400, "the context is too long") if "p3" in body["messages"][0]["content"] else echo(number, body)

    replies = outcomes(script, tmp_path, requests(5))
    assert [isinstance(reply, Unanswered) for reply in replies] == [False, False, False, True, False]
    assert isinstance(replies[3], Unanswered) and "the context is too long" in replies[3].reason
    with pytest.raises(PipelineError, match=r"unknown field, to all of \d+ requests; check synthesis\.writer"):
        outcomes(lambda *_: failure(400, "unknown field"), tmp_path, requests(9))


# ── structured output ──


def test_the_schema_is_sent_in_strict_form(tmp_path):
    with serving(lambda *_: completion('{"name": "a", "note": ""}')) as server:
        list(endpoint(server.url, tmp_path).complete([request("p", Fact)]))
    form = server.bodies[0]["response_format"]
    assert form["type"] == "json_schema" and form["json_schema"]["strict"] is True
    schema = form["json_schema"]["schema"]
    assert schema["required"] == ["name", "note"] and schema["additionalProperties"] is False
    assert server.prompts == ["p"]


@pytest.mark.parametrize("status", [400, 422, 501])
def test_a_server_without_schemas_is_told_in_the_prompt_from_then_on(tmp_path, caplog, status):
    def script(number: int, body: dict) -> Answer:
        return Answer({"detail": "nope"}, status, SOON) if "response_format" in body else echo(number, body)

    with serving(script) as server:
        model = endpoint(server.url, tmp_path, concurrency=1)
        with caplog.at_level(logging.WARNING):
            replies = list(model.complete([request("one", Fact), request("two", Fact), request("three")]))
    assert all(isinstance(reply, Reply) for reply in replies)
    assert ["response_format" in body for body in server.bodies] == [True, False, False, False]
    assert server.prompts[1].startswith("one\n") and '"required": ["name", "note"]' in server.prompts[1]
    assert server.prompts[3] == "three"
    assert [record.message for record in caplog.records if "response_format" in record.message] == [
        f"{server.url} does not take response_format: the prompt shows the schema instead, "
        "and replies are checked as before"
    ]


def test_a_request_refused_either_way_does_not_switch_schemas_off(tmp_path):
    def script(number: int, body: dict) -> Answer:
        return failure(400, "too long") if "long" in body["messages"][0]["content"] else echo(number, body)

    with serving(script) as server:
        model = endpoint(server.url, tmp_path, concurrency=1)
        first, second = model.complete([request("long", Fact), request("short", Fact)])
    assert isinstance(first, Unanswered) and isinstance(second, Reply)
    assert "response_format" in server.bodies[-1]


def test_parameters_that_a_model_does_not_take_are_left_out(tmp_path):
    """As OpenAI's reasoning models: another name for the limit, no temperature."""

    def script(number: int, body: dict) -> Answer:
        for name in ("max_tokens", "temperature"):
            if name in body:
                return failure(400, f"Unsupported parameter: '{name}'", param=name)
        return echo(number, body)

    with serving(script) as server:
        list(endpoint(server.url, tmp_path, concurrency=1).complete([request("one", Fact), request("two", Fact)]))
    assert len(server.bodies) == 4
    last = server.bodies[-1]
    assert last["max_completion_tokens"] == 20 and "response_format" in last
    assert not {"max_tokens", "temperature"} & last.keys()


# ── money ──


def test_the_budget_stops_before_the_request_that_may_cross_it(tmp_path):
    """A request may cost 66 + 2 · 20 millionths and costs 10 + 2 · 5: after three, 60 are spent, and 106 do not fit."""
    with serving(echo) as server:
        model = endpoint(server.url, tmp_path, budget=165e-6)
        stream = model.complete(requests(9))
        assert [next(stream) for _ in range(3)] == [Reply(f"re: p{n}", Finish.FINISHED) for n in range(3)]
        with pytest.raises(PipelineError, match=r"0\.0001 of synthesis\.writer\.budget = 0\.000165.*raise the budget"):
            next(stream)
    assert len(server.bodies) == 3


def test_with_a_higher_budget_only_the_rest_is_asked(tmp_path):
    def stage(url: str, budget: float) -> list[Reply | Unanswered]:
        model = Remembered(endpoint(url, tmp_path, budget=budget), tmp_path / "replies.sqlite", "m")
        return list(model.complete(requests(20)))

    with serving(echo) as server:
        with pytest.raises(PipelineError, match="what was answered is kept"):
            stage(server.url, 400e-6)
        assert 0 < len(server.bodies) < 20
        assert stage(server.url, 1.0) == [Reply(f"re: p{n}", Finish.FINISHED) for n in range(20)]
    assert sorted(server.prompts) == sorted(f"p{n}" for n in range(20))


def test_what_was_spent_is_remembered_by_the_next_process(tmp_path):
    outcomes(echo, tmp_path, requests(3))
    with pytest.raises(PipelineError, match="budget"):
        outcomes(echo, tmp_path, requests(1), budget=100e-6)
    with serving(echo) as server:
        model = endpoint(server.url, tmp_path, budget=1.0)
        assert model.counts() == {"input_tokens": 30, "output_tokens": 15, "cost": pytest.approx(60e-6)}
    assert server.bodies == []


# ── the key ──


def test_the_key_is_nowhere_but_in_the_header(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    with serving(lambda *_: failure(500, f"cannot use {KEY}")) as server:
        model = endpoint(server.url, tmp_path)
        [unanswered] = model.complete(requests(1))
    assert isinstance(unanswered, Unanswered) and "cannot use ***" in unanswered.reason
    assert KEY not in repr(model) + str(model._ledger) + caplog.text
    assert all(KEY not in json.dumps(body) for body in server.bodies)
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_without_a_key_only_this_machine_is_asked(monkeypatch):
    monkeypatch.delenv("WRITER_KEY")
    for url in ("http://127.0.0.1:1/v1", "http://localhost:1/v1", "http://[::1]:1/v1"):
        assert on_this_machine(url) and read_key(writer(url)) == "none"
    for url in ("https://api.example.com/v1", "http://127.0.0.1.example.com/v1", "http://10.0.0.1/v1"):
        with pytest.raises(ParameterError, match="WRITER_KEY"):
            read_key(writer(url))


@pytest.mark.parametrize("key", ["two words", "ключ", "a\nb", "a\x00b"])
def test_a_key_that_is_none_is_refused_without_showing_it(monkeypatch, key):
    monkeypatch.setattr(os, "environ", {"WRITER_KEY": key})
    with pytest.raises(ParameterError, match="no key has") as caught:
        read_key(writer("https://api.example.com/v1"))
    assert key not in str(caught.value)


def test_a_pasted_key_may_end_in_a_line_break(monkeypatch):
    monkeypatch.setenv("WRITER_KEY", f" {KEY}\n")
    assert read_key(writer("https://api.example.com/v1")) == KEY


# ── ends ──


def test_a_stream_that_is_given_up_leaves_nothing_behind(tmp_path):
    release = threading.Event()

    def script(number: int, body: dict) -> Answer:
        if number > 1:
            release.wait(5)
        return echo(number, body)

    with serving(script) as server:
        stream = endpoint(server.url, tmp_path).complete(requests(100))
        assert next(stream) == Reply("re: p0", Finish.FINISHED)
        stream.close()
        release.set()
    assert len(server.bodies) <= 1 + 4 + 4


def test_replies_are_announced_as_they_arrive(tmp_path):
    """The first request hangs: the others are known long before it is."""
    arrived: list[str] = []
    release = threading.Event()

    def listener(asked: Request, reply: Reply) -> None:
        arrived.append(asked.prompt)
        if len(arrived) == 3:
            release.set()

    def script(number: int, body: dict) -> Answer:
        if body["messages"][0]["content"] == "p0":
            release.wait(5)
        return echo(number, body)

    with serving(script) as server:
        model = endpoint(server.url, tmp_path)
        model.announce(listener)
        assert [reply.text for reply in model.complete(requests(4)) if isinstance(reply, Reply)] == [
            f"re: p{n}" for n in range(4)
        ]
    assert sorted(arrived[:3]) == ["p1", "p2", "p3"] and arrived[3] == "p0"
